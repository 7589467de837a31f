"""One small fitted model of every kind that is registered, for the tests that hold for all of them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

import permix
from permix.estimators.registry import MODELS


class Example(NamedTuple):
    """How to make an estimator quickly, and data for it."""

    make: Callable[..., Any]  # takes further parameters
    data: Callable[[], Any]
    target: Callable[[], Any] = lambda: None


def _votes() -> permix.Rankings:
    rng = np.random.default_rng(3)
    orders = np.array([rng.permutation(4) for _ in range(18)])
    names = np.array(["tea", "milk", "water", "juice"])
    return permix.Rankings.from_orders(names[orders].tolist(), counts=[2, 1, 3] * 6)


def _points() -> np.ndarray:
    rng = np.random.default_rng(5)
    return np.concatenate([rng.normal(-4, 1, (14, 2)), rng.normal(4, 1, (10, 2))])


def _matrix() -> np.ndarray:
    rng = np.random.default_rng(7)
    return rng.integers(0, 2, (9, 7))


CHAINS = {"n_draws": 12, "n_burn_in": 6}
EXAMPLES: dict[str, Example] = {
    "MallowsMixture": Example(
        lambda **more: permix.MallowsMixture(**{"n_components": 2, "n_init": 2, **more}), _votes
    ),
    "DPMallowsMixture": Example(lambda **more: permix.DPMallowsMixture(**{**CHAINS, **more}), _votes),
    "BayesianMallowsMixture": Example(
        lambda **more: permix.BayesianMallowsMixture(**{"n_components": 2, **CHAINS, **more}), _votes
    ),
    "AngleMixture": Example(
        lambda **more: permix.AngleMixture(**{"n_components": 2, "n_init": 2, **more}), _votes
    ),
    "AngleClassifier": Example(
        lambda **more: permix.AngleClassifier(**more), _votes, lambda: np.arange(18) % 2
    ),
    "MallowsKDE": Example(lambda **more: permix.MallowsKDE(**more), _votes),
    "BlurringMeanShift": Example(lambda **more: permix.BlurringMeanShift(**more), _votes),
    "DPMixture": Example(lambda **more: permix.DPMixture(**{**CHAINS, **more}), _points),
    "CoClustering": Example(lambda **more: permix.CoClustering(**{**CHAINS, **more}), _matrix),
    "CoClusteringEnsemble": Example(
        lambda **more: permix.CoClusteringEnsemble(**{**CHAINS, "n_base": 3, **more}), _matrix
    ),
}
NAMES = sorted(MODELS)


@cache
def fitted(name: str) -> Any:
    """Return the example of a model, fitted; the same object every time."""
    example = EXAMPLES[name]
    estimator = example.make()
    if "random_state" in estimator.get_params():
        estimator.set_params(random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        target = example.target()
        return estimator.fit(example.data()) if target is None else estimator.fit(example.data(), target)
