"""P(item a before item b | top list) under a Dirichlet-process mixture of generalized Mallows models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from permix.data.labels import Array
from permix.data.rankings import Rankings
from permix.dp_mallows.predict import BLOCK_BYTES, ListPredictive, blocks, distinct, plain
from permix.estimators.agent_answers import (
    Questions,
    one_of,
    questions_about,
    refuse_too_large,
    whole_number,
)
from permix.runtime.seeds import RandomState, stream_key
from permix.runtime.threads import over_rows

# "auto" is exact up to this many elementary steps, a few seconds on one core.
EXACT_STEPS = 2e9


@dataclass
class How:
    """How pairs are answered.

    "exact" sums over clusters, in each by recursion over the stages that are left (n³/6 steps for n items);
    "sampled" draws ``n_samples`` full rankings that begin as the row does; "auto" is exact where that takes
    seconds.
    """

    method: str = "auto"
    n_samples: int = 400
    random_state: RandomState = 0
    return_error: bool = False

    def __post_init__(self) -> None:
        one_of("method", self.method, ("auto", "exact", "sampled"))
        self.n_samples = whole_number("n_samples", self.n_samples, 2)
        self.key = stream_key(self.random_state)


def predict_pairwise(predictive: ListPredictive, rankings: Rankings, pairs: Any = None, **how: Any) -> Any:
    """P(a ≻ b | list) for some (row, a, b), or for all pairs of all rows; ``how`` is of :class:`How`."""
    asked = How(**how)
    n, n_items = len(rankings), predictive.n_items
    if pairs is not None:
        questions, order = questions_about(pairs, rankings)
        values, exact = _answered(predictive, *plain(rankings), questions, asked)
        answer = np.empty(len(order))
        answer[order] = values
    else:
        size = 8 * n * n_items * n_items * (2 if asked.return_error else 1)
        refuse_too_large(size, f"{n} rows × {n_items} × {n_items} items", "pairs=[(row, a, b), ...]")
        orders, lengths, inverse = distinct(rankings)
        questions = Questions.all_pairs(len(orders), n_items)
        values, exact = _answered(predictive, orders, lengths, questions, asked)
        values = values.reshape(len(orders), -1)[inverse]
        answer = np.zeros((n, n_items, n_items))
        answer[:, questions.first, questions.second] = values
        answer[:, questions.second, questions.first] = 1.0 - values
    if not asked.return_error:
        return answer
    errors = np.zeros_like(answer) if exact else np.sqrt(answer * (1.0 - answer) / asked.n_samples)
    return answer, errors


def takes_seconds(predictive: ListPredictive, n_answers: int) -> bool:
    """Say whether so many pairs can be answered exactly within seconds."""
    n_items, n_clusters = predictive.n_items, len(predictive.clusters.centers)
    return n_clusters * (n_items**3 / 6.0 + float(n_answers)) <= EXACT_STEPS


def _answered(
    predictive: ListPredictive, orders: Array, lengths: Array, questions: Questions, how: How
) -> tuple[Array, bool]:
    """Return P(a before b) of all questions, and whether it is exact."""
    if how.method == "exact" or (how.method == "auto" and takes_seconds(predictive, questions.n_answers)):
        return _exact(predictive, orders, lengths, questions), True
    from permix.dp_mallows.lists.pairs_jit import sampled_pairs_rows

    n_items, n = predictive.n_items, len(orders)
    out = np.empty(questions.n_answers)
    tables, beyond = predictive.tables(int(lengths.max())), predictive.beyond(n_items)
    asked = questions.of(np.arange(n))
    work = (how.key, orders, lengths, how.n_samples, tables, beyond, *asked, out)
    over_rows(lambda first, last: sampled_pairs_rows(first, last, *work), n, how.n_samples * n_items)
    return out, False


def _exact(predictive: ListPredictive, orders: Array, lengths: Array, questions: Questions) -> Array:
    from permix.dp_mallows.lists.pairs_jit import add_pairs_rows, pair_chances, settle_pairs_rows
    from permix.dp_mallows.lists.scores_jit import weight_rows

    n_items, n_clusters = predictive.n_items, len(predictive.clusters.centers)
    tables = predictive.tables(n_items - 1)
    out = np.empty(questions.n_answers)
    for rows in blocks(len(orders), 8 * n_clusters):
        block, size = orders[rows], rows.stop - rows.start
        weights, new = np.empty((size, n_clusters)), np.empty(size)
        scored = (block, lengths[rows], tables, weights, new)
        predictive._over(weight_rows, scored, size, lengths[rows])
        span, first, second, starts = questions.of(np.arange(rows.start, rows.stop))
        asked = (span, first, second, starts, out)
        settle_pairs_rows(0, size, block, lengths[rows], new, n_items, *asked)
        distinct_lengths, length_of = np.unique(lengths[rows], return_inverse=True)
        active = np.flatnonzero(weights.any(axis=0))
        step = max(1, BLOCK_BYTES // (8 * len(distinct_lengths) * n_items * n_items))
        for at in range(0, len(active), step):
            clusters = active[at : at + step]
            all_chances = np.empty((len(clusters), len(distinct_lengths), n_items, n_items))

            chances_work = (clusters, tables, distinct_lengths, all_chances)

            def fill(low: int, high: int, work: Any = chances_work) -> None:
                pair_chances(low, high, *work)

            over_rows(fill, len(clusters), n_items**3)
            read = (block, lengths[rows], length_of.reshape(-1), clusters, weights, tables, all_chances)
            work = (*read, *asked)

            def add(low: int, high: int, work: Any = work) -> None:
                add_pairs_rows(low, high, *work)

            over_rows(add, size, len(clusters) * n_items)
    return np.clip(out, 0.0, 1.0)
