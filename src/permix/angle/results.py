"""What a fitted mixture of angle-based models gives without further data, and criteria to choose one by."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from permix.angle.components import AngleComponents
from permix.angle.data import AngleData
from permix.angle.fit import CHECKED_ITEMS, AngleFit
from permix.angle.rows import row_log_probabilities
from permix.data.rankings import Rankings
from permix.distributions.angle.completions import is_cheap
from permix.errors import Argument, ConvergenceWarning, DataError, Message, PermixWarning
from permix.estimators.agent_answers import starts_table
from permix.estimators.checks import Real
from permix.estimators.wording import alike, cut_short, groups_named, nobodys
from permix.posterior.intervals import holding
from permix.sampling import Draws

if TYPE_CHECKING:
    import pandas as pd

# Criteria average over so many draws of the posterior.
CRITERION_DRAWS = 400
# An approximate normalizer that is off by more than this, in nats per ranking, is worth a note.
NOTABLE_ERROR = 0.05
# Up to so many items the error of the von Mises–Fisher normalizer is found in no time, by balancing.
WARNED_ITEMS = 300


def consensus_table(fit: AngleFit, interval: float = 0.9) -> pd.DataFrame:
    """Return the score of every item in the center of every component, with intervals.

    Columns: group (from 0), item, rank (1 = most preferred), score (θ, small = preferred), and ``low``
    and ``high``, between which the score lies with posterior probability ``interval``; ``rank_low`` and
    ``rank_high``, the same for the rank. Without a posterior (EM) these are missing.
    """
    import pandas as pd

    interval = Real(above=0.0, below=1.0)("interval", interval)
    components, posterior = fit.components, fit.posterior
    tail = 0.5 * (1.0 - interval)
    tables = []
    for k in range(components.n_components):
        order = components.orders[k]
        columns = {
            "group": np.full(len(order), k),
            "item": [components.items[i] for i in order],
            "rank": np.arange(1, len(order) + 1),
            "score": components.directions[k, order],
        }
        if posterior is not None:
            drawn = posterior.directions[:, :, k].reshape(-1, components.n_items)
            # The posterior mean of θ is shorter than one where the direction is not sure.
            columns["score"] = columns["score"] * np.linalg.norm(drawn.mean(axis=0))
            ranks = drawn.argsort(axis=1).argsort(axis=1) + 1
            for of, name, values in (("score", "", drawn), ("rank", "rank_", ranks)):
                ends = np.quantile(values[:, order], [tail, 1.0 - tail], axis=0)
                columns[f"{name}low"], columns[f"{name}high"] = holding(columns[of], *ends)
        tables.append(pd.DataFrame(columns))
    return pd.concat(tables, ignore_index=True)


def component_table(fit: AngleFit, interval: float = 0.9) -> pd.DataFrame:
    """Return share, agents, concentration with interval, and the center's ranking by component."""
    import pandas as pd

    components, posterior = fit.components, fit.posterior
    agents = np.bincount(fit.labels, weights=fit.counts, minlength=components.n_components)
    agents = np.rint(agents * (fit.n_agents / fit.counts.sum())).astype(int)
    kappas = fit.concentrations
    columns: dict[str, Any] = {"share": components.weights, "agents": agents, "concentration": kappas}
    if posterior is not None:
        tail = 0.5 * (1.0 - interval)
        drawn = posterior.concentrations.reshape(-1, components.n_components)
        ends = np.quantile(drawn, [tail, 1.0 - tail], axis=0)
        columns["low"], columns["high"] = holding(kappas, *ends)
    items = [str(item) for item in components.items]
    columns["center"] = [" ≻ ".join(items[i] for i in order) for order in components.orders]
    return pd.DataFrame(columns, index=pd.RangeIndex(components.n_components, name="group"))


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
        raise DataError("DIC and WAIC average over a posterior, which EM does not have; use aic or bic")
    data = AngleData(rankings, fit.settings.n_jobs)
    weights, kappas, directions = posterior.evenly_spaced(CRITERION_DRAWS)
    n = len(weights)
    if not data.is_full:
        instead = "Compare held-out likelihoods (score) on some rows instead"
        refuse_expensive_rows(rankings, f"a criterion needs hundreds. {instead}")
    total, largest = 0.0, np.full(len(rankings), -np.inf)
    mean, squares, densities = np.zeros((3, len(rankings)))
    for draw, parts in enumerate(zip(weights, directions, kappas, strict=True)):
        drawn = AngleComponents(data.items, *parts, fit.components.normalizer)
        if data.is_full:
            data.posterior(drawn.tilts, drawn.offsets, densities=densities)
        else:
            densities = row_log_probabilities(drawn, rankings)[0]
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


def refuse_expensive_rows(rankings: Rankings, *why: str | Argument) -> None:
    """Refuse rows whose probability is found by annealing alone."""
    rows = np.flatnonzero(~is_cheap(rankings))
    if len(rows):
        raise DataError(
            f"{rankings.row_name(int(rows[0]))} ranks {rankings.lengths[rows[0]]} of {rankings.n_items} "
            f"items ({len(rows)} such rows): its likelihood has no affordable sum, and ",
            *why,
        )


def n_parameters(components: AngleComponents) -> int:
    """Count free parameters: t - 1 of each κθ, and weights that sum to one."""
    k = components.n_components
    return k * (components.n_items - 1) + k - 1


def diagnostics_table(fit: AngleFit) -> pd.DataFrame:
    """Return R-hat and ESS where there are draws, else what every start reached."""
    from permix.posterior import summary

    if fit.draws is not None:
        return summary(scalar_draws(fit.draws))
    return starts_table(objective_name(fit), fit.start_objectives)


def objective_name(fit: AngleFit) -> str:
    """Say what is made as large as possible, or followed."""
    if fit.variational is not None:
        return "elbo"
    if fit.draws is not None and "completed_log_likelihood" in fit.draws.arrays:
        return "completed_log_likelihood"
    return "log_likelihood"


def scalar_draws(draws: Draws) -> Draws:
    """Return what is one number a draw: weights, concentrations and the log-likelihood."""
    arrays, k = draws.arrays, draws.arrays["weights"].shape[-1]
    shown = {f"share {g + 1}": arrays["weights"][..., g] for g in range(k)} if k > 1 else {}
    shown |= {f"concentration {g + 1}": arrays["concentrations"][..., g] for g in range(k)}
    shown |= {name: arrays[name] for name in ("log_likelihood", "completed_log_likelihood") if name in arrays}
    return Draws(shown)


def doubts(fit: AngleFit, errors: Sequence[float] | None) -> list[Message]:
    """Say which groups are doubtful: an approximation that is off, or a likelihood without a maximum.

    ``errors`` are those of the normalizer, where they are known.
    """
    components = fit.components
    said = []
    approximate = components.normalizer == "vmf"
    way_out = ("leave out ", Argument("normalizer"), ", with ", Argument("inference", "em"), " or sir")
    held = np.flatnonzero(fit.guarded).tolist()
    if held:
        said.append(
            Message(
                f"{groups_named(held)}: the von Mises–Fisher normalizer would give a ranking a probability "
                "above one, so the concentration was held back; ",
                *(way_out if approximate else ("ask for fewer groups",)),
            )
        )
    # Groups without anybody in them say nothing.
    lived_in = components.weights * fit.n_agents >= 1.0
    off = [k for k, error in enumerate(errors or ()) if lived_in[k] and abs(error) > NOTABLE_ERROR]
    if off and errors is not None:
        used = "von Mises–Fisher" if approximate else components.normalizer
        worst = max(off, key=lambda k: abs(errors[k]))
        said.append(
            Message(
                f"{groups_named(off)}: the {used} normalizer is off by up to "
                f"{errors[worst]:+.2f} nats per agent (concentration "
                f"{components.concentrations[worst]:.1f}): such a group may not be real",
                *(("; ", *way_out) if approximate else ()),
            )
        )
    for k in np.flatnonzero(fit.agreed):
        first = ", ".join(str(components.items[item]) for item in components.orders[k][: fit.agreed[k]][:5])
        said.append(
            Message(
                f"group {k + 1}: all its members put {first} first, so the likelihood is unbounded in the "
                "concentration, which is shown where there was nothing more to gain; ",
                Argument("inference", "sir"),
                " gives an interval for it",
            )
        )
    return said


def remarks(fit: AngleFit, errors: Sequence[float] | None) -> list[Message]:
    """Say what a reader of the groups should know about them; arguments as in :func:`doubts`."""
    components, said = fit.components, doubts(fit, errors)
    what = "rank the items alike and differ in scores and concentration alone"
    members = np.bincount(fit.labels, minlength=components.n_components)
    said += map(Message, [*alike(components.orders, what), *nobodys(members)])
    if fit.settings.inference == "vi" and fit.settings.bound == "published":
        narrow = " gives intervals of concentrations that are too narrow; "
        said.append(Message(Argument("bound", "published"), narrow, Argument("bound", "tight"), " does not"))
    return said


def warn_of(fit: AngleFit) -> None:
    """Warn of what makes a fit doubtful: cut short, an approximation that is off, an unbounded likelihood."""
    if not fit.converged and not fit.interrupted:
        warnings.warn(
            cut_short(f"not converged after {len(fit.history)} passes; raise ", fit.settings.max_iter),
            ConvergenceWarning,
            stacklevel=3,
        )
    if fit.interrupted:
        warnings.warn("interrupted: this is the best so far", PermixWarning, stacklevel=3)
    components, errors = fit.components, None
    if components.normalizer == "vmf" and components.n_items <= WARNED_ITEMS:
        truth = components.log_sums_by("exact" if components.n_items <= CHECKED_ITEMS else "balanced")
        errors = (truth - components.log_sums).tolist()
    for doubt in doubts(fit, errors):
        warnings.warn(doubt, PermixWarning, stacklevel=3)
