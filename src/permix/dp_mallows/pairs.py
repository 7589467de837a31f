"""P(item a before item b | top list) under a Dirichlet-process mixture of generalized Mallows models."""

from __future__ import annotations

from typing import Any

import numpy as np

from permix.data.labels import Array
from permix.data.rankings import Rankings
from permix.dp_mallows.predict import BLOCK_BYTES, ListPredictive, blocks, distinct, plain
from permix.estimators.agent_answers import Questions, one_of, questions_about, refuse_too_large, whole_number
from permix.runtime.seeds import RandomState, stream_key
from permix.runtime.threads import over_rows

# "auto" is exact up to this many elementary steps, a few seconds on one core.
EXACT_STEPS = 2e9


def predict_pairwise(
    predictive: ListPredictive,
    rankings: Rankings,
    pairs: Any = None,
    *,
    method: str = "auto",
    n_samples: int = 400,
    random_state: RandomState = 0,
    return_error: bool = False,
) -> Any:
    """P(a ≻ b | list) for some (row, a, b), or for all pairs of all rows.

    "exact" sums over clusters, in each by recursion over the stages that are left (n³/6 steps for n items);
    "sampled" draws ``n_samples`` full rankings that begin as the row does; "auto" is exact where that takes
    seconds.
    """
    one_of("method", method, ("auto", "exact", "sampled"))
    n_samples = whole_number("n_samples", n_samples, 2)
    key, n, n_items = stream_key(random_state), len(rankings), predictive.n_items

    def answered(orders: Array, lengths: Array, questions: Questions) -> tuple[Array, bool]:
        exact = method == "exact" or (method == "auto" and takes_seconds(predictive, questions.n_answers))
        if exact:
            return _exact(predictive, orders, lengths, questions), True
        return _sampled(predictive, orders, lengths, questions, key, n_samples), False

    if pairs is not None:
        questions, order = questions_about(pairs, rankings)
        values, exact = answered(*plain(rankings), questions)
        answer = np.empty(len(order))
        answer[order] = values
    else:
        size = 8 * n * n_items * n_items * (2 if return_error else 1)
        refuse_too_large(size, f"{n} rows × {n_items} × {n_items} items", "pairs=[(row, a, b), ...]")
        orders, lengths, inverse = distinct(rankings)
        questions = Questions.all_pairs(len(orders), n_items)
        values, exact = answered(orders, lengths, questions)
        values = values.reshape(len(orders), -1)[inverse]
        answer = np.zeros((n, n_items, n_items))
        answer[:, questions.first, questions.second] = values
        answer[:, questions.second, questions.first] = 1.0 - values
    if not return_error:
        return answer
    errors = np.zeros_like(answer) if exact else np.sqrt(answer * (1.0 - answer) / n_samples)
    return answer, errors


def takes_seconds(predictive: ListPredictive, n_answers: int) -> bool:
    """Say whether so many pairs can be answered exactly within seconds."""
    n_items, n_clusters = predictive.n_items, len(predictive.clusters.centers)
    return n_clusters * (n_items**3 / 6.0 + float(n_answers)) <= EXACT_STEPS


def _over(kernel: Any, work: tuple[Any, ...], n: int, steps: int) -> None:
    over_rows(lambda first, last: kernel(first, last, *work), n, steps)


def _sampled(
    predictive: ListPredictive,
    orders: Array,
    lengths: Array,
    questions: Questions,
    key: Array,
    n_samples: int,
) -> Array:
    from permix.dp_mallows.lists.pairs_jit import sampled_pairs_rows

    n_items, n = predictive.n_items, len(orders)
    out = np.empty(questions.n_answers)
    tables, beyond = predictive.tables(int(lengths.max())), predictive.beyond(n_items)
    work = (key, orders, lengths, n_samples, tables, beyond, *questions.of(np.arange(n)), out)
    _over(sampled_pairs_rows, work, n, n_samples * n_items)
    return out


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
        asked = (*questions.of(np.arange(rows.start, rows.stop)), out)
        settle_pairs_rows(0, size, block, lengths[rows], new, n_items, *asked)
        distinct_lengths, length_of = np.unique(lengths[rows], return_inverse=True)
        active = np.flatnonzero(weights.any(axis=0))
        step = max(1, BLOCK_BYTES // (8 * len(distinct_lengths) * n_items * n_items))
        for at in range(0, len(active), step):
            clusters = active[at : at + step]
            chances = np.empty((len(clusters), len(distinct_lengths), n_items, n_items))
            fill = (clusters, tables, distinct_lengths, chances)
            _over(pair_chances, fill, len(clusters), n_items**3)
            add = (block, lengths[rows], length_of.reshape(-1), clusters, weights, tables, chances, *asked)
            _over(add_pairs_rows, add, size, len(clusters) * n_items)
    return np.clip(out, 0.0, 1.0)
