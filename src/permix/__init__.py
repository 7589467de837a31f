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
    from permix.cocluster.ensemble_estimator import CoClusteringEnsemble as CoClusteringEnsemble
    from permix.cocluster.estimator import CoClustering as CoClustering
    from permix.consensus.kemeny import KemenyResult as KemenyResult
    from permix.consensus.kemeny import kemeny as kemeny
    from permix.data import Preferences as Preferences
    from permix.data import Rankings as Rankings
    from permix.data import from_frame as from_frame
    from permix.data import read as read
    from permix.data import read_preflib as read_preflib
    from permix.data import read_table as read_table
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
    from permix.families import Categorical as Categorical
    from permix.families import Gaussian as Gaussian
    from permix.families import GaussianNIW as GaussianNIW
    from permix.families import Multinomial as Multinomial
    from permix.mallows.estimator import MallowsMixture as MallowsMixture
    from permix.partitions import DirichletProcess as DirichletProcess
    from permix.partitions import FiniteDirichlet as FiniteDirichlet
    from permix.partitions import Gamma as Gamma
    from permix.partitions import MixtureOfFiniteMixtures as MixtureOfFiniteMixtures
    from permix.partitions import PitmanYor as PitmanYor
    from permix.partitions import adjusted_rand as adjusted_rand
    from permix.partitions import assignment_confidence as assignment_confidence
    from permix.partitions import binder_loss as binder_loss
    from permix.partitions import canonical_labels as canonical_labels
    from permix.partitions import credible_ball as credible_ball
    from permix.partitions import point_estimate as point_estimate
    from permix.partitions import similarity_matrix as similarity_matrix
    from permix.partitions import variation_of_information as variation_of_information
    from permix.selection.select_components import select_components as select_components

# Where each public name lives. Adding a name: one line here and one above for type checkers.
_HOME = {
    "Angle": "permix.distributions.angle.angle",
    "AngleClassifier": "permix.angle.classifier.estimator",
    "AngleMixture": "permix.angle.estimator",
    "BlurringMeanShift": "permix.baselines.mean_shift.estimator",
    "Cells": "permix.data.cells",
    "CoClustering": "permix.cocluster.estimator",
    "CoClusteringEnsemble": "permix.cocluster.ensemble_estimator",
    "Categorical": "permix.families",
    "DPMallowsMixture": "permix.dp_mallows.estimator",
    "DPMixture": "permix.dp_mixture.estimator",
    "DirichletProcess": "permix.partitions",
    "FiniteDirichlet": "permix.partitions",
    "Gamma": "permix.partitions",
    "Gaussian": "permix.families",
    "GaussianNIW": "permix.families",
    "GeneralizedMallows": "permix.distributions.generalized.generalized_mallows",
    "KemenyResult": "permix.consensus.kemeny",
    "Mallows": "permix.distributions.mallows",
    "MallowsKDE": "permix.baselines.kde.estimator",
    "MallowsMixture": "permix.mallows.estimator",
    "MixtureOfFiniteMixtures": "permix.partitions",
    "Multinomial": "permix.families",
    "PitmanYor": "permix.partitions",
    "Preferences": "permix.data",
    "Rankings": "permix.data",
    "RepeatedInsertion": "permix.distributions.insertion",
    "adjusted_rand": "permix.partitions",
    "assignment_confidence": "permix.partitions",
    "binder_loss": "permix.partitions",
    "canonical_labels": "permix.partitions",
    "credible_ball": "permix.partitions",
    "distance": "permix.data.distances",
    "distance_matrix": "permix.data.distances",
    "from_frame": "permix.data",
    "kemeny": "permix.consensus.kemeny",
    "load": "permix.estimators.archive",
    "point_estimate": "permix.partitions",
    "read": "permix.data",
    "read_cells": "permix.data.io.cells_io",
    "read_preflib": "permix.data",
    "read_table": "permix.data",
    "select_components": "permix.selection.select_components",
    "similarity_matrix": "permix.partitions",
    "variation_of_information": "permix.partitions",
    "write": "permix.data",
    "write_preflib": "permix.data",
    "write_table": "permix.data",
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
