"""What a fitted mixture of Mallows models gives without further data: new rankings, and a table."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np

from permix.data.labels import Array
from permix.data.rankings import Rankings
from permix.distributions.base import RandomState, generator, sample_size
from permix.distributions.components import MallowsComponents
from permix.errors import ConvergenceWarning, PermixWarning
from permix.models.mallows_fit import MallowsFit

if TYPE_CHECKING:
    import pandas as pd


def sample_rankings(
    components: MallowsComponents, size: int = 1, random_state: RandomState = None
) -> tuple[Rankings, Array]:
    """Draw full rankings from the mixture, independently and exactly.

    Parameters
    ----------
    components : MallowsComponents
    size : int
        How many.
    random_state : int, SeedSequence, Generator or None
        The same seed gives the same rankings, whatever the number of threads.

    Returns
    -------
    rankings : Rankings
    labels : ndarray of int
        The component each was drawn from.
    """
    rng = generator(random_state)
    shares = components.weights / components.weights.sum()  # to the last bit, which choice() asks for
    labels = rng.choice(components.n_components, size=sample_size(size), p=shares)
    orders = np.empty((len(labels), components.n_items), dtype=np.int32)
    for k in range(components.n_components):
        rows = np.flatnonzero(labels == k)
        if len(rows):
            orders[rows] = components.component(k).sample(len(rows), random_state=rng).orders
    return Rankings._from_arrays(orders, components.items), labels


def component_table(fit: MallowsFit) -> pd.DataFrame:
    """One row for each component: its size, its spread and its center by name."""
    import pandas as pd

    components = fit.components
    each = [components.component(k) for k in range(components.n_components)]
    return pd.DataFrame(
        {
            "weight": components.weights,
            "agents": fit.counts @ fit.probabilities,
            "dispersion": components.dispersions,
            "expected_distance": [distribution.expected_distance() for distribution in each],
            "center": [" ≻ ".join(map(str, distribution.center)) for distribution in each],
        },
        index=pd.RangeIndex(components.n_components, name="component"),
    )


def warn_if_unsettled(fit: MallowsFit) -> None:
    """Say so where EM did not come to rest: stopped by the user, or out of iterations."""
    reached = f"log-likelihood {float(fit.log_likelihood):,.1f} after {fit.n_iterations} iterations"
    if fit.interrupted:
        warnings.warn(
            f"stopped by the user; kept the best found so far ({reached})", PermixWarning, stacklevel=3
        )
    elif not fit.converged:
        last = np.diff(fit.history[-2:, 0])
        rose = f", which still rose by {last[0]:.3g} in the last one" if len(last) else ""
        warnings.warn(
            f"EM did not converge: {reached}{rose}. Raise max_iter={fit.settings.max_iter} or tol",
            ConvergenceWarning,
            stacklevel=3,
        )
