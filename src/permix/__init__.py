"""permix: nonparametric Bayesian discovery in rankings, preferences and matrices.

Parts load on first use, so ``import permix`` is quick; ``dir(permix)`` lists all public names.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

__version__ = "0.2.0"

if TYPE_CHECKING:
    from permix import datasets as datasets
    from permix import errors as errors
    from permix import mondrian as mondrian
    from permix import moves as moves
    from permix import plots as plots
    from permix.angle.classifier.estimator import AngleClassifier as AngleClassifier
    from permix.angle.estimator import AngleMixture as AngleMixture
    from permix.baselines.kde.estimator import MallowsKDE as MallowsKDE
    from permix.baselines.mean_shift.estimator import BlurringMeanShift as BlurringMeanShift
    from permix.bayes_mallows.estimator import BayesianMallowsMixture as BayesianMallowsMixture
    from permix.cocluster.ensemble_estimator import CoClusteringEnsemble as CoClusteringEnsemble
    from permix.cocluster.estimator import CoClustering as CoClustering
    from permix.comparison.auto import fit_auto as fit_auto
    from permix.comparison.compare import compare as compare
    from permix.consensus.kemeny import KemenyResult as KemenyResult
    from permix.consensus.kemeny import kemeny as kemeny
    from permix.data import Ballots as Ballots
    from permix.data import Preferences as Preferences
    from permix.data import Rankings as Rankings
    from permix.data import clean as clean
    from permix.data import from_frame as from_frame
    from permix.data import from_votekit as from_votekit
    from permix.data import read as read
    from permix.data import read_ballots as read_ballots
    from permix.data import read_preflib as read_preflib
    from permix.data import read_sharded as read_sharded
    from permix.data import read_sharded_cells as read_sharded_cells
    from permix.data import read_table as read_table
    from permix.data import to_votekit as to_votekit
    from permix.data import write as write
    from permix.data import write_preflib as write_preflib
    from permix.data import write_table as write_table
    from permix.data.cells import Cells as Cells
    from permix.data.distances import distance as distance
    from permix.data.distances import distance_matrix as distance_matrix
    from permix.data.io.cells_io import read_cells as read_cells
    from permix.distributions.angle.angle import Angle as Angle
    from permix.distributions.generalized.generalized_mallows import (
        GeneralizedMallows as GeneralizedMallows,
    )
    from permix.distributions.insertion import RepeatedInsertion as RepeatedInsertion
    from permix.distributions.mallows import Mallows as Mallows
    from permix.dp_mallows.estimator import DPMallowsMixture as DPMallowsMixture
    from permix.dp_mixture.estimator import DPMixture as DPMixture
    from permix.estimators.archive import load as load
    from permix.estimators.predict_shards import predict_shards as predict_shards
    from permix.families import Categorical as Categorical
    from permix.families import Gaussian as Gaussian
    from permix.families import GaussianDiagonal as GaussianDiagonal
    from permix.families import GaussianNIW as GaussianNIW
    from permix.families import Mixed as Mixed
    from permix.families import MixedNIW as MixedNIW
    from permix.families import Multinomial as Multinomial
    from permix.mallows.estimator import MallowsMixture as MallowsMixture
    from permix.partitions import DirichletProcess as DirichletProcess
    from permix.partitions import FiniteDirichlet as FiniteDirichlet
    from permix.partitions import Gamma as Gamma
    from permix.partitions import MixtureOfFiniteMixtures as MixtureOfFiniteMixtures
    from permix.partitions import PitmanYor as PitmanYor
    from permix.partitions import adjusted_rand as adjusted_rand
    from permix.partitions import binder_loss as binder_loss
    from permix.partitions import canonical_labels as canonical_labels
    from permix.partitions import credible_ball as credible_ball
    from permix.partitions import how_sure as how_sure
    from permix.partitions import point_estimate as point_estimate
    from permix.partitions import similarity_matrix as similarity_matrix
    from permix.partitions import variation_of_information as variation_of_information
    from permix.reporting import report as report
    from permix.selection.select_components import select_components as select_components

# Where public names live. Adding one: a word here and a line above for type checkers.
_HOME = {
    name: module
    for module, names in {
        "permix.angle.classifier.estimator": "AngleClassifier",
        "permix.angle.estimator": "AngleMixture",
        "permix.baselines.kde.estimator": "MallowsKDE",
        "permix.baselines.mean_shift.estimator": "BlurringMeanShift",
        "permix.bayes_mallows.estimator": "BayesianMallowsMixture",
        "permix.cocluster.ensemble_estimator": "CoClusteringEnsemble",
        "permix.cocluster.estimator": "CoClustering",
        "permix.comparison.auto": "fit_auto",
        "permix.comparison.compare": "compare",
        "permix.consensus.kemeny": "KemenyResult kemeny",
        "permix.data": "Ballots Preferences Rankings clean from_frame from_votekit read read_ballots "
        "read_preflib read_sharded read_sharded_cells read_table to_votekit write write_preflib "
        "write_table",
        "permix.data.cells": "Cells",
        "permix.data.distances": "distance distance_matrix",
        "permix.data.io.cells_io": "read_cells",
        "permix.distributions.angle.angle": "Angle",
        "permix.distributions.generalized.generalized_mallows": "GeneralizedMallows",
        "permix.distributions.insertion": "RepeatedInsertion",
        "permix.distributions.mallows": "Mallows",
        "permix.dp_mallows.estimator": "DPMallowsMixture",
        "permix.dp_mixture.estimator": "DPMixture",
        "permix.estimators.archive": "load",
        "permix.estimators.predict_shards": "predict_shards",
        "permix.families": "Categorical Gaussian GaussianDiagonal GaussianNIW Mixed MixedNIW Multinomial",
        "permix.mallows.estimator": "MallowsMixture",
        "permix.partitions": "DirichletProcess FiniteDirichlet Gamma MixtureOfFiniteMixtures PitmanYor "
        "adjusted_rand binder_loss canonical_labels credible_ball how_sure point_estimate "
        "similarity_matrix variation_of_information",
        "permix.reporting": "report",
        "permix.selection.select_components": "select_components",
    }.items()
    for name in names.split()
}
_MODULES = {"datasets", "errors", "mondrian", "moves", "plots"}

__all__ = ["__version__", *sorted(_HOME), *sorted(_MODULES)]


def __getattr__(name: str) -> object:
    if name in _HOME:
        value = getattr(importlib.import_module(_HOME[name]), name)
    elif name in _MODULES:
        value = importlib.import_module(f"permix.{name}")
    else:
        raise AttributeError(f"module 'permix' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
