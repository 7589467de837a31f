"""What a fitted mixture of angle-based models gives without further data, and criteria to choose one by."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from permix.angle.components import AngleComponents
from permix.angle.data import AngleData
from permix.angle.fit import AngleFit
from permix.angle.predict import joint_log_probabilities, normalised
from permix.data.labels import Array
from permix.data.rankings import Rankings
from permix.distributions.angle.completions import is_cheap
from permix.distributions.base import sample_size
from permix.errors import DataError, PermixWarning
from permix.runtime.seeds import RandomState, generator

if TYPE_CHECKING:
    import pandas as pd

# Criteria average over so many draws of the posterior.
CRITERION_DRAWS = 400


def sample_rankings(
    components: AngleComponents, size: int = 1, random_state: RandomState = None
) -> tuple[Rankings, Array]:
    """Draw full rankings from the mixture, with the component of each."""
    rng = generator(random_state)
    labels = rng.choice(components.n_components, size=sample_size(size), p=components.weights)
    orders = np.empty((len(labels), components.n_items), dtype=np.int32)
    for k in range(components.n_components):
        members = np.flatnonzero(labels == k)
        if len(members):
            orders[members] = components.component(k).sample(len(members), random_state=rng).orders
    return Rankings._from_arrays(orders, components.items), labels


def consensus_table(fit: AngleFit, interval: float = 0.9) -> pd.DataFrame:
    """Return the consensus score of every item in every component, with intervals.

    Columns: component (from 1), item, rank (1 = most preferred), score (θ, small = preferred), and ``low``
    and ``high``, between which the score lies with posterior probability ``interval``; ``rank_low`` and
    ``rank_high``, the same for the rank. Without a posterior (EM) these are missing.
    """
    import pandas as pd

    if not 0.0 < interval < 1.0:
        raise DataError(f"interval={interval!r} must lie between 0 and 1")
    components, posterior = fit.components, fit.posterior
    tail = 0.5 * (1.0 - interval)
    tables = []
    for k in range(components.n_components):
        order = components.orders[k]
        columns = {
            "component": np.full(len(order), k + 1),
            "item": [components.items[i] for i in order],
            "rank": np.arange(1, len(order) + 1),
            "score": components.directions[k, order],
        }
        if posterior is not None:
            drawn = posterior.directions[:, :, k].reshape(-1, components.n_items)
            # The posterior mean of θ is shorter than one where the direction is not sure.
            columns["score"] = columns["score"] * np.linalg.norm(drawn.mean(axis=0))
            ranks = drawn.argsort(axis=1).argsort(axis=1) + 1
            for name, values in (("", drawn), ("rank_", ranks)):
                low, high = np.quantile(values[:, order], [tail, 1.0 - tail], axis=0)
                columns[f"{name}low"], columns[f"{name}high"] = low, high
        tables.append(pd.DataFrame(columns))
    return pd.concat(tables, ignore_index=True)


def component_table(fit: AngleFit, interval: float = 0.9) -> pd.DataFrame:
    """Return weight, agents, concentration with interval, and consensus ranking by component."""
    import pandas as pd

    components, posterior = fit.components, fit.posterior
    agents = np.bincount(fit.labels, weights=fit.counts, minlength=components.n_components).astype(int)
    columns: dict[str, object] = {
        "component": np.arange(1, components.n_components + 1),
        "weight": components.weights,
        "agents": agents,
        "concentration": fit.concentrations,
    }
    if posterior is not None:
        tail = 0.5 * (1.0 - interval)
        kappas = posterior.concentrations.reshape(-1, components.n_components)
        columns["low"], columns["high"] = np.quantile(kappas, [tail, 1.0 - tail], axis=0)
    columns["consensus"] = [
        " ≻ ".join(str(components.items[i]) for i in order) for order in components.orders
    ]
    return pd.DataFrame(columns)


class Criteria(NamedTuple):
    """What a fit says about itself on the rows it was fitted to; smaller is better.

    Attributes
    ----------
    dic, dic_parameters : float
        Deviance information criterion 2 D̄ - D̂ and its effective number of parameters D̄ - D̂, where D̂ is the
        deviance of the posterior predictive density (DIC₃ of Celeux, Forbes, Robert & Titterington 2006):
        means of the parameters of a mixture may lie between modes, and the deviance there says nothing.
    waic, waic_parameters : float
        The same by the variance of every row's log-likelihood.
    """

    dic: float
    dic_parameters: float
    waic: float
    waic_parameters: float


def criteria(fit: AngleFit, rankings: Rankings, *, doubts: bool = True) -> Criteria:
    """Return DIC and WAIC over draws of the posterior, each agent a datum.

    With ``doubts``, warn where WAIC is not to be trusted.
    """
    posterior = fit.posterior
    if posterior is None:
        raise DataError("DIC and WAIC average over a posterior, which EM has not; use aic or bic")
    data = AngleData.of(rankings, fit.settings.n_jobs)
    weights, kappas, directions = posterior.evenly_spaced(CRITERION_DRAWS)
    n = len(weights)
    total = 0.0
    largest = np.full(len(rankings), -np.inf)
    mean, squares = np.zeros(len(rankings)), np.zeros(len(rankings))
    densities = np.empty(len(rankings))
    for draw in range(n):
        drawn = AngleComponents(
            data.items, weights[draw], directions[draw], kappas[draw], fit.components.normalizer
        )
        row_densities(drawn, data, densities)
        total += float(data.counts @ densities)
        largest = np.logaddexp(largest, densities)
        change = densities - mean
        mean += change / (draw + 1)
        squares += change * (densities - mean)
    deviance, predictive = -2.0 * total / n, -2.0 * float(data.counts @ (largest - np.log(n)))
    variances = squares / max(n - 1, 1)
    p_waic = float(data.counts @ variances)
    waic = predictive + 2.0 * p_waic
    if doubts and (variances > 0.4).mean() > 0.01:
        warnings.warn(
            "WAIC: more than 1 % of the rows have a log-likelihood that varies much over the posterior; "
            "prefer held-out likelihood",
            PermixWarning,
            stacklevel=3,
        )
    return Criteria(2.0 * deviance - predictive, deviance - predictive, waic, p_waic)


def row_densities(components: AngleComponents, data: AngleData, out: Array) -> None:
    """Fill ``out`` with ln P(row); rows whose sum needs annealing are refused."""
    if data.is_full:
        data.weighed(components.tilts, components.offsets, densities=out)
        return
    dear = np.flatnonzero(~is_cheap(data.rankings))
    if len(dear):
        raise DataError(
            f"{data.rankings.row_name(int(dear[0]))} ranks {data.rankings.lengths[dear[0]]} of "
            f"{data.n_items} items ({len(dear)} such rows): its likelihood has no affordable sum, and a "
            "criterion needs hundreds. Compare held-out likelihoods (score) on some rows instead"
        )
    out[:] = normalised(joint_log_probabilities(components, data.rankings)[0])[1]


def n_parameters(components: AngleComponents) -> int:
    """Count free parameters: t - 1 of each κθ, and weights that sum to one."""
    k = components.n_components
    return k * (components.n_items - 1) + k - 1
