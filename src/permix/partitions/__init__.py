"""Priors over partitions, and the geometry of partitions."""

from permix.partitions.credible_ball import CredibleBall, credible_ball
from permix.partitions.geometry import (
    adjusted_rand,
    binder_loss,
    how_sure,
    similarity_matrix,
    variation_of_information,
)
from permix.partitions.labels import canonical_labels
from permix.partitions.point_estimate import PointEstimate, point_estimate
from permix.partitions.priors import (
    DirichletProcess,
    FiniteDirichlet,
    Gamma,
    MixtureOfFiniteMixtures,
    PartitionPrior,
    PitmanYor,
    prior_from_description,
)

__all__ = [
    "CredibleBall",
    "DirichletProcess",
    "FiniteDirichlet",
    "Gamma",
    "MixtureOfFiniteMixtures",
    "PartitionPrior",
    "PitmanYor",
    "PointEstimate",
    "adjusted_rand",
    "binder_loss",
    "canonical_labels",
    "credible_ball",
    "how_sure",
    "point_estimate",
    "prior_from_description",
    "similarity_matrix",
    "variation_of_information",
]
