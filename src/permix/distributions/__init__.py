"""Distributions over rankings: by themselves, and given what an agent said."""

from permix.distributions.angle.angle import Angle
from permix.distributions.base import Estimate, RankingDistribution, distribution_from_description
from permix.distributions.generalized.generalized_mallows import GeneralizedMallows
from permix.distributions.insertion import RepeatedInsertion
from permix.distributions.mallows import Mallows

__all__ = [
    "Angle",
    "Estimate",
    "GeneralizedMallows",
    "Mallows",
    "RankingDistribution",
    "RepeatedInsertion",
    "distribution_from_description",
]
