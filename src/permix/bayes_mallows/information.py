"""How well a fit would predict its own agents, had they been left out: WAIC, and leaving one out.

Given shares, centers, dispersions and errors of a draw, agents are independent: ln P(what an agent says |
draw) is all that both need. An agent's own ranking and group are summed out.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from permix.bayes_mallows.fit import BayesianMallowsFit
from permix.bayes_mallows.groups import GroupDraws
from permix.bayes_mallows.predict import Distinct, all_groups
from permix.bayes_mallows.scores import log_scores
from permix.data.labels import Array
from permix.errors import Argument, DataError
from permix.posterior.stacking import left_out_log_density
from permix.runtime.seeds import stream_key

# Draws that are averaged over, evenly spaced.
MOST_DRAWS = 1000


class Criterion(NamedTuple):
    """An estimate of the log probability of new agents, as many as were fitted."""

    log_density: float  # Σ over agents of ln P(agent | the others), estimated
    standard_error: float  # over agents
    n_parameters: float  # how much more probable agents are for having been fitted: effective parameters
    pointwise: Array  # (rows,): of one agent of each row

    @property
    def deviance(self) -> float:
        """-2 × the log density: smaller is better."""
        return -2.0 * self.log_density


def log_densities(fit: BayesianMallowsFit) -> tuple[Array, Array]:
    """Return ln P(row | draw) of each different row, (draws, rows), and which of them each row is."""
    if fit.settings.errors_per_agent:
        raise DataError(
            "an agent whose errors are like nobody's tells nothing of others; criteria are not made for ",
            Argument("errors_per_agent", True),
            "; agents held out are: permix.select_components",
        )
    asked = Distinct.of(fit.preferences, None if fit.columns is None else fit.columns.matrix)
    groups = GroupDraws.of(fit.draws.arrays, fit.settings, MOST_DRAWS)
    if asked.numbers is None:
        spent = np.add.reduceat(groups.shares, groups.starts[:-1])
        with np.errstate(divide="ignore"):
            logs = np.log(np.concatenate([groups.shares, np.maximum(1.0 - spent, 0.0)]))[None]
    else:
        logs = asked.log_weights(groups)
    draw_of = np.append(groups.draw_of, np.arange(groups.n_draws))
    scores = log_scores(asked.rows, all_groups(fit, groups), stream_key(0)) + logs
    out = np.full((groups.n_draws, len(asked.rows)), -np.inf)
    for column in range(scores.shape[1]):
        d = draw_of[column]
        out[d] = np.logaddexp(out[d], scores[:, column])
    return out, asked.which


def waic(fit: BayesianMallowsFit) -> Criterion:
    """Return Watanabe's criterion (Gelman, Hwang & Vehtari 2014, by variances)."""
    found, which = log_densities(fit)
    together = np.logaddexp.reduce(found, axis=0) - np.log(len(found))
    return _criterion(fit, (together - found.var(axis=0, ddof=1))[which], together[which])


def leave_one_out(fit: BayesianMallowsFit) -> Criterion:
    """Return ln P(agent | the others), by importance sampling with truncated ratios (Ionides 2008)."""
    found, which = log_densities(fit)
    together = np.logaddexp.reduce(found, axis=0) - np.log(len(found))
    return _criterion(fit, left_out_log_density(found)[which], together[which])


def _criterion(fit: BayesianMallowsFit, pointwise: Array, together: Array) -> Criterion:
    counts = fit.preferences.counts.astype(np.float64)
    total, n = float(counts @ pointwise), counts.sum()
    spread = float(counts @ (pointwise - total / n) ** 2) / max(n - 1.0, 1.0)
    return Criterion(total, float(np.sqrt(n * spread)), float(counts @ together) - total, pointwise)
