"""Mixtures of Mallows models made by hand, for tests that need no fitting."""

from __future__ import annotations

import numpy as np

from permix.distributions.base import Estimate
from permix.distributions.conditioning.components import MallowsComponents
from permix.mallows.parameters import MallowsParameters
from permix.mallows.results import MallowsFit


def two_kinds(items=("tea", "coffee", "water", "milk")):
    """Two opposed kinds of people."""
    m = len(items)
    centers = np.array([np.arange(m), np.arange(m)[::-1]], dtype=np.int32)
    return MallowsComponents(tuple(items), np.array([0.7, 0.3]), centers, np.array([1.2, 0.4]))


def fit_of(components, n_rows=6, seed=0, **changes):
    """A fit that says it found these components."""
    rng = np.random.default_rng(seed)
    probabilities = rng.dirichlet(np.ones(components.n_components), n_rows)
    values = {
        "settings": MallowsParameters(n_components=components.n_components, n_init=3, random_state=5),
        "components": components,
        "probabilities": probabilities,
        "counts": rng.integers(1, 9, n_rows),
        "log_likelihood": Estimate(-33.5, 0.25),
        "history": np.array([[-40.0, 0.5], [-35.0, 0.3], [-33.6, 0.25]]),
        "start_log_likelihoods": np.array([-36.0, -33.5, -34.0]),
        "group_matches": rng.random((3, components.n_components)),
        "converged": True,
        "interrupted": False,
    }
    return MallowsFit(**(values | changes))
