"""What people of a fitted mixture of angle-based models would say about the rest: completions and pairs.

Rows are completed at the point estimates: components and completions are drawn in turn, as in the fit.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from permix.angle.components import AngleComponents
from permix.angle.gibbs.state import AngleState, state_at
from permix.data.labels import Array
from permix.data.rankings import Rankings
from permix.distributions.base import sample_size
from permix.estimators.agent_answers import (
    Completions,
    RankSummary,
    questions_about,
    refuse_too_large,
    whole_number,
)
from permix.posterior.intervals import ranks_holding
from permix.runtime.seeds import RandomState, generator

# Sweeps before the first draw and between two draws; completions lose their memory within about five.
FIRST_SWEEPS, SWEEPS_BETWEEN = 30, 3


def _states(
    components: AngleComponents, rankings: Rankings, n_draws: int, random_state: RandomState
) -> Iterator[AngleState]:
    rng = generator(random_state)
    state = state_at(components, rankings, rng)
    for _ in range(FIRST_SWEEPS):
        state.sweep(rng)
    for _ in range(n_draws):
        for _ in range(SWEEPS_BETWEEN):
            state.sweep(rng)
        yield state


def sample_completions(
    components: AngleComponents, rankings: Rankings, size: int = 1, random_state: RandomState = None
) -> Completions:
    """Draw full rankings that agree with each row, with their components."""
    size = sample_size(size)
    n, t = len(rankings), components.n_items
    refuse_too_large(n * size * t * 4, f"{n} agents × {size} draws × {t} items", "fewer agents at a time")
    orders, labels = np.empty((n, size, t), dtype=np.int32), np.empty((n, size), dtype=np.int64)
    for draw, state in enumerate(_states(components, rankings, size, random_state)):
        orders[:, draw], labels[:, draw] = state.orders, state.labels
    return Completions(orders, labels, rankings.lengths == t, np.full(n, np.nan), rankings)


def predict_pairwise(
    components: AngleComponents, rankings: Rankings, pairs: Any, n_samples: int, random_state: RandomState
) -> Array:
    """Return P(a ≻ b | what the row says), averaged over completions."""
    n_samples = whole_number("n_samples", n_samples, 2)
    n, t = len(rankings), components.n_items
    if pairs is None:
        refuse_too_large(8 * n * t * t, f"{n} agents × {t} × {t} items", "pairs=[(row, a, b), ...]")
        before = np.zeros((n, t, t))
        for state in _states(components, rankings, n_samples, random_state):
            ranks = np.argsort(state.orders, axis=1)
            before += ranks[:, :, None] < ranks[:, None, :]
        return before / n_samples
    questions, order = questions_about(pairs, rankings)
    rows = np.repeat(np.arange(n), np.diff(questions.span, axis=1)[:, 0])
    answers = np.zeros(len(order))
    for state in _states(components, rankings, n_samples, random_state):
        ranks = np.argsort(state.orders, axis=1)
        answers += ranks[rows, questions.first] < ranks[rows, questions.second]
    out = np.empty(len(order))
    out[order] = answers / n_samples
    return out


def complete(
    components: AngleComponents, rankings: Rankings, n_samples: int, random_state: RandomState
) -> tuple[Rankings, RankSummary]:
    """Return the ranking by expected rank of every row, which agrees with what it says, and the ranks.

    It has the least expected squared difference of ranks (Spearman's distance). Items that a row lists keep
    their order, since they have it in every completion.
    """
    n_samples = whole_number("n_samples", n_samples, 2)
    n, t = len(rankings), components.n_items
    what = f"{n} agents × {n_samples} draws × {t} items"
    refuse_too_large(n_samples * n * t * 2, what, "fewer agents at a time")
    drawn = np.empty((n_samples, n, t), dtype=np.min_scalar_type(t))
    for draw, state in enumerate(_states(components, rankings, n_samples, random_state)):
        drawn[draw] = np.argsort(state.orders, axis=1) + 1
    mean = drawn.mean(axis=0)
    low = np.quantile(drawn, 0.05, axis=0, method="lower")
    high = np.quantile(drawn, 0.95, axis=0, method="higher")
    orders = np.argsort(mean, axis=1, kind="stable").astype(np.int32)
    completed = Rankings._from_arrays(orders, components.items, rankings.counts, rankings._agents)
    return completed, RankSummary(mean, *ranks_holding(mean, low, high))
