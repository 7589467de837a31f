"""What a fitted mixture of Mallows models gives without further data: new rankings, and a table."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np

from permix.data.labels import Array
from permix.data.rankings import Rankings
from permix.distributions.base import sample_size
from permix.distributions.conditioning.components import MallowsComponents
from permix.errors import Argument, ConvergenceWarning, Message, PermixWarning
from permix.estimators.wording import groups_named
from permix.mallows.fit import MallowsFit
from permix.runtime.seeds import RandomState, generator

if TYPE_CHECKING:
    import pandas as pd


def sample_rankings(
    components: MallowsComponents, size: int = 1, random_state: RandomState = None
) -> tuple[Rankings, Array]:
    """Draw full rankings from the mixture, independently and exactly, and the component of each."""
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
        index=pd.RangeIndex(components.n_components, name="group"),
    )


def climbing_iterations(fit: MallowsFit) -> int:
    """Iterations until the climb ended; ``history`` goes on with rounds that average out noise."""
    return fit.n_iterations if fit.converged else min(fit.n_iterations, fit.settings.max_iter)


def remarks(fit: MallowsFit) -> list[str]:
    """What a reader of the groups should know about them; they are counted from 1 here."""
    mixture = fit.components
    said = []
    by_center: dict[tuple[int, ...], list[int]] = {}
    for k, center in enumerate(mixture.centers.tolist()):
        by_center.setdefault(tuple(center), []).append(k)
    for same in by_center.values():
        if len(same) > 1:
            said.append(f"{groups_named(same)} have the same center and differ in dispersion alone")
    lowest = np.flatnonzero(mixture.dispersions <= fit.settings.min_dispersion * (1.0 + 1e-9)).tolist()
    if lowest:
        whose = "dispersion is" if len(lowest) == 1 else "dispersions are"
        said.append(
            f"{groups_named(lowest)}: the {whose} at the lower limit, {fit.settings.min_dispersion:g}"
        )
    agents = np.bincount(fit.labels, weights=fit.counts, minlength=mixture.n_components)
    nobodys = np.flatnonzero(agents == 0).tolist()
    if nobodys:
        verb = "is" if len(nobodys) == 1 else "are"
        said.append(f"{groups_named(nobodys)} {verb} nobody's most probable group; fewer may be enough")
    return said


def starts_near_the_best(fit: MallowsFit, gap: float = 1.0) -> int:
    """Count starts whose log-likelihood came within ``gap`` of the best start's."""
    reached = np.asarray(fit.restart_log_likelihoods)
    return int((reached >= reached.max(initial=-np.inf) - gap).sum())


def warn_if_unsettled(fit: MallowsFit) -> None:
    """Say so where EM did not come to rest: stopped by the user, or out of iterations."""
    n = climbing_iterations(fit)
    reached = f"log-likelihood {float(fit.log_likelihood):,.1f} after {n} iteration{'' if n == 1 else 's'}"
    if fit.interrupted:
        warnings.warn(
            f"stopped by the user; kept the best found so far ({reached})", PermixWarning, stacklevel=3
        )
    elif not fit.converged:
        last = np.diff(fit.history[max(n - 2, 0) : n, 0])
        # With Monte Carlo noise a single step may go down although the climb goes on.
        rose = f", which still rose by {last[0]:.3g} in the last one" if len(last) and last[0] > 0.0 else ""
        warnings.warn(
            Message(
                f"EM did not converge: {reached}{rose}. Raise ",
                Argument("max_iter", fit.settings.max_iter),
                " or ",
                Argument("tol"),
            ),
            ConvergenceWarning,
            stacklevel=3,
        )
