"""What is said of Bayesian Mallows models in words, in terminals and reports alike."""

from __future__ import annotations

import numpy as np

from permix.bayes_mallows.careless import agent_rates, careless_agents
from permix.bayes_mallows.fit import BayesianMallowsFit
from permix.bayes_mallows.results import GroupSummaries
from permix.estimators.wording import groups_named
from permix.posterior.centers import TAIL
from permix.reporting.words import count_of, interval, percent, told_apart

# A group whose members are found together less than this is remarked on.
LOOSE = 0.5


def dispersion_words(summaries: GroupSummaries, e: int) -> str:
    """Write the dispersion of a group with its interval, with the digits by which they differ."""
    mean, low, high = told_apart(
        [float(summaries.dispersions[e]), *summaries.dispersion_intervals[:, e].tolist()]
    )
    return f"{mean} ({low}–{high})"


def errors_line(fit: BayesianMallowsFit) -> str:
    """Say how often comparisons are wrong."""
    arrays, settings = fit.draws.arrays, fit.settings
    if settings.errors == "bernoulli":
        rates = arrays["error_rate"].ravel()
        low, high = np.quantile(rates, (TAIL, 1.0 - TAIL))
        of = " of an agent on average" if settings.errors_per_agent else ""
        return f"{interval(float(rates.mean()), float(low), float(high))} of the comparisons{of} are wrong"
    level, slope = arrays["error_level"].ravel(), arrays["error_slope"].ravel()
    told = []
    for apart in (1, 2, max(3, (len(fit.items) + 1) // 2)):
        rates = 1.0 / (1.0 + np.exp(level + slope * (apart - 1)))
        told.append((apart, percent(float(rates.mean()))))
    first, *others = told
    rest = ", ".join(
        f"{rate} of those {apart} places apart" for apart, rate in others if apart < len(fit.items)
    )
    return f"{first[1]} of the comparisons of neighbors are wrong{f', {rest}' if rest else ''}"


def careless_line(fit: BayesianMallowsFit) -> str:
    """Say how many agents are careless; nothing where they have no rates of their own."""
    if not fit.settings.errors_per_agent:
        return ""
    table = fit.preferences
    counted = np.diff(table.pair_indptr)[table.rows_of_agents()] > 0
    n = int(careless_agents(agent_rates(fit), counted).sum())
    if not n:
        return "Nobody errs clearly more often than the others."
    err = "errs" if n == 1 else "err"
    return (
        f"{count_of(n, 'agent')} {err} clearly more often than the others: at more than twice the usual rate."
    )


def remarks(fit: BayesianMallowsFit, summaries: GroupSummaries) -> list[str]:
    """What a reader of the groups should know about them; they are counted from 1 here."""
    said = []
    if fit.draws.interrupted:
        said.append(f"stopped early, after {fit.draws.n_draws} draws of each chain")
    if fit.n_clusters > 1:
        loose = np.flatnonzero((summaries.how_sure < LOOSE) & (fit.cluster_sizes > 1)).tolist()
        if loose:
            said.append(f"{groups_named(loose)}: draws often divide the members")
    drawn = fit.draws.arrays["n_groups"]
    low, high = np.quantile(drawn, (TAIL, 1.0 - TAIL))
    if not low <= fit.n_clusters <= high:
        span = f"{low:g}" if low == high else f"{low:g} to {high:g}"
        said.append(
            f"draws have {span} groups, the estimate {fit.n_clusters}; those that do not last are not in it"
        )
    asked = fit.settings.n_components
    if isinstance(asked, int) and fit.n_clusters < asked:
        said.append(f"{asked} groups were asked for, and agents are in {fit.n_clusters}: fewer may be enough")
    return said
