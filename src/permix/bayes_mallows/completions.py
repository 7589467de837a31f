"""Full rankings of agents, given what they said: drawn, and what follows from the draws.

All groups of all posterior draws together are one large mixture, weighted as :func:`predict.all_groups`
says. For an agent a group of it is drawn by how probable it makes what was said, then a ranking given the
group. That is exact for full rankings, for a few items, which are listed, and for levels of all items under
Kendall's distance, which AMP draws. Elsewhere the ranking begins with a draw by AMP and goes through sweeps
over all items, and the group is drawn anew between them: a Gibbs chain of its own for each draw, exact in the
limit of many sweeps.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from permix.bayes_mallows.data import full_rankings
from permix.bayes_mallows.fit import BayesianMallowsFit
from permix.bayes_mallows.predict import Distinct, all_groups
from permix.bayes_mallows.scores import (
    MOST_LISTED,
    Under,
    agreeing_with,
    log_probabilities,
    log_said,
    log_scores,
    matched_decays,
)
from permix.data.labels import Array
from permix.data.preferences import Preferences
from permix.data.rankings import Rankings
from permix.distributions.base import sample_size
from permix.distributions.conditioning.agent_posteriors import Profile
from permix.distributions.conditioning.amp_insertions_jit import geometric_models
from permix.distributions.conditioning.draws import Jobs, amp_draws
from permix.estimators.agent_answers import (
    Questions,
    RankSummary,
    questions_about,
    refuse_too_large,
    whole_number,
)
from permix.estimators.preference_input import without_pairs
from permix.kernels.pairwise_counts import PreferenceArrays
from permix.posterior.intervals import ranks_holding
from permix.runtime.seeds import RandomState, generator, stream_key
from permix.runtime.threads import over_rows

# Rankings drawn of each agent unless another number is asked for.
N_SAMPLES = 200
# Sweeps over all items where a draw is not exact; the group is drawn anew after each. With groups drawn after
# the first two sweeps only, frequencies of 4,000 draws were 6 standard errors off where groups are concentrated.
N_SWEEPS = 10
# Draws times groups at a time.
BLOCK = 2**22
TAIL = 0.05


class Drawn(NamedTuple):
    """Full rankings drawn for every row."""

    ranks: Array  # int32 (rows, draws, items), from 0
    labels: Array  # (rows, draws): estimated group, -1 for one that the data did not have
    exact: Array  # bool (rows,): whether draws are independent and exactly from the posterior


class Pool(NamedTuple):
    """All groups of all draws that somebody may be in."""

    under: Under
    log_weights: Array  # (1 or rows, groups)
    labels: Array  # the estimated group that each speaks for, -1 for new ones

    @classmethod
    def of(cls, fit: BayesianMallowsFit, asked: Distinct, rows: slice) -> Pool:
        logs = asked.log_weights(fit.groups, rows)
        labels = np.append(fit.overlap.linked.astype(np.int64), np.full(fit.groups.n_draws, -1))
        kept = np.any(np.isfinite(logs), axis=0)
        return cls(all_groups(fit, fit.groups).only(kept), logs[:, kept], labels[kept])

    def of_rows(self, rows: Array) -> Array:
        """Ln weights for some rows, (1 or rows, groups)."""
        return self.log_weights if len(self.log_weights) == 1 else self.log_weights[rows]


def draw_rankings_of(
    fit: BayesianMallowsFit, table: Preferences, size: int, random_state: RandomState = 0
) -> Drawn:
    """Draw from P(full ranking, group | what the row says); equal rows have equal draws."""
    size, rng = sample_size(size), generator(random_state)
    n = table.n_items
    refuse_too_large(
        4 * len(table) * size * n, f"{len(table)} rows × {size} draws × {n} items", "fewer rows at a time"
    )
    asked = Distinct.of(table, fit.numbers_of(table))
    distinct, m = asked.rows, len(asked.rows)
    found = Drawn(
        np.empty((m, size, n), dtype=np.int32),
        np.empty((m, size), dtype=np.int64),
        np.ones(m, dtype=np.bool_),
    )
    n_possible = len(Pool.of(fit, asked, slice(0, 1)).labels)
    step = max(1, BLOCK // (n_possible * max(size, 1)))
    for start in range(0, m, step):
        rows = slice(start, min(start + step, m))
        some, pool = distinct[np.arange(rows.start, rows.stop)], Pool.of(fit, asked, rows)
        _draw(pool, some, rng, *(each[rows] for each in found))
    return Drawn(*(each[asked.which] for each in found))


def _draw(
    pool: Pool, table: Preferences, rng: np.random.Generator, ranks: Array, labels: Array, exact: Array
) -> None:
    """Fill rankings and groups of some rows."""
    under, size = pool.under, labels.shape[1]
    soft = under.settings.errors is not None
    scores = log_scores(table, under, stream_key(rng)) + pool.log_weights
    groups = _categorical(scores, size, rng)
    firm = without_pairs(table) if soft else table
    unsure = np.diff(table.pair_indptr) > 0 if soft else np.zeros(len(table), dtype=np.bool_)
    full, given = full_rankings(table)
    ranks[full] = given[:, None]
    rest = np.setdiff1d(np.arange(len(table)), full)
    if len(rest) and table.n_items <= MOST_LISTED:
        _draw_listed(under, table, rest, groups, rng, ranks)
    elif len(rest):
        _begin(under, firm, rest, groups, rng, ranks)
        in_one_step = np.zeros(len(table), dtype=np.bool_)
        if under.settings.distance == "kendall":
            in_one_step[rest[Profile.of(firm[rest]).partitioned]] = True
        moving = rest[~(in_one_step & ~unsure)[rest]]
        exact[moving] = False
        if len(moving):
            _sweep(pool, table, moving, groups, rng, ranks)
    labels[:] = pool.labels[groups]


def _categorical(scores: Array, size: int, rng: np.random.Generator) -> Array:
    """Draw columns of every row, (rows, size), by the exponentials of its scores."""
    ends = np.cumsum(np.exp(scores - scores.max(axis=1, keepdims=True)), axis=1)
    out = np.empty((len(scores), size), dtype=np.int64)
    for row, upto in enumerate(ends):
        out[row] = np.searchsorted(upto, rng.random(size) * upto[-1], side="right")
    return np.minimum(out, scores.shape[1] - 1)


def _draw_listed(
    under: Under, table: Preferences, rows: Array, groups: Array, rng: np.random.Generator, ranks: Array
) -> None:
    """Draw from the rankings that agree, one by one."""
    every, allowed = agreeing_with(table[rows], under.settings)
    log_p = log_probabilities(every, under)
    for at, row in enumerate(rows.tolist()):
        used, which = np.unique(groups[row], return_inverse=True)
        values = log_p[allowed[at]][:, used]
        pairs = table.pairs[table.pair_indptr[row] : table.pair_indptr[row + 1]]
        if under.settings.errors is not None and len(pairs):
            values = values + log_said(every[allowed[at]], pairs, under.errors[used])
        ends = np.cumsum(np.exp(values - values.max(axis=0)), axis=0)[:, np.asarray(which).reshape(-1)]
        chosen = (ends < rng.random(ends.shape[1]) * ends[-1]).sum(axis=0)
        ranks[row] = every[allowed[at]][np.minimum(chosen, len(ends) - 1)]


def _begin(
    under: Under, firm: Preferences, rows: Array, groups: Array, rng: np.random.Generator, ranks: Array
) -> None:
    """Draw rankings by AMP that agree with what is certain."""
    size = groups.shape[1]
    agents, clusters = np.repeat(rows, size), groups[rows].ravel()
    models = geometric_models(matched_decays(under), firm.n_items)
    jobs = Jobs.of(firm.arrays(), agents, clusters, under.centers, models)
    orders = amp_draws(stream_key(rng), 0, jobs, 1)[0][:, 0]
    ranks[rows] = np.argsort(orders, axis=1).reshape(len(rows), size, -1)


def _sweep(
    pool: Pool, table: Preferences, rows: Array, groups: Array, rng: np.random.Generator, ranks: Array
) -> None:
    """Move rankings, and groups between, each draw in a chain of its own."""
    from permix.bayes_mallows.chain.latent_jit import fill_costs, update_latents
    from permix.bayes_mallows.chain.statistics_jit import has_costs

    under, size = pool.under, groups.shape[1]
    n, soft = table.n_items, under.settings.errors is not None
    metric = under.sums.code
    chains = len(rows) * size
    used, labels = np.unique(groups[rows].ravel(), return_inverse=True)
    labels = np.asarray(labels).reshape(-1).astype(np.int32)
    rankings = ranks[rows].reshape(chains, n)
    every, row_of = np.arange(chains), np.repeat(rows, size).astype(np.int64)
    arrays = PreferenceArrays(*[np.array(each) for each in table.arrays()])  # writable, as kernels expect
    for _ in range(N_SWEEPS):
        centers = np.ascontiguousarray(under.ranks[used])
        decays, errors = np.ascontiguousarray(under.decays[used]), under.errors[used][labels]
        side = n if has_costs.py_func(metric) else 0
        costs = np.empty((len(used), side, side))
        fill_costs(metric, centers, len(used), np.empty((n, n)), costs)
        given = (metric, arrays, soft, every, row_of, (rankings, every, labels), centers, decays, costs)
        key = stream_key(rng)

        def move(first: int, last: int, given: Any = given, errors: Array = errors, key: Any = key) -> None:
            update_latents(key, *given, errors, 1, first, last)

        over_rows(move, chains, n * n)
        scores = log_probabilities(rankings, under) + pool.of_rows(row_of)
        if soft:
            scores += _said(table, row_of, rankings, under.errors)
        groups[rows] = _categorical(scores, 1, rng).reshape(len(rows), size)
        used, labels = np.unique(groups[rows].ravel(), return_inverse=True)
        labels = np.asarray(labels).reshape(-1).astype(np.int32)
    ranks[rows] = rankings.reshape(len(rows), size, n)


def _said(table: Preferences, row_of: Array, rankings: Array, errors: Array) -> Array:
    """Return ln P(comparisons | ranking, group) of each ranking."""
    out = np.zeros((len(rankings), len(errors)))
    for row in np.unique(row_of).tolist():
        mine = np.flatnonzero(row_of == row)
        pairs = table.pairs[table.pair_indptr[row] : table.pair_indptr[row + 1]]
        if len(pairs):
            out[mine] = log_said(rankings[mine], pairs, errors)
    return out


# What follows.


def rank_summary(drawn: Drawn) -> RankSummary:
    """Return expected ranks, and between which ranks items lie with probability 90 %, 1 = best."""
    ends = np.quantile(drawn.ranks, (TAIL, 1.0 - TAIL), axis=1, method="inverted_cdf") + 1
    mean = drawn.ranks.mean(axis=1) + 1.0
    return RankSummary(mean, *ranks_holding(mean, *ends))


def complete(
    fit: BayesianMallowsFit, table: Preferences, n_samples: int, random_state: RandomState
) -> tuple[Rankings, RankSummary]:
    """Return the items of each row by expected rank, and these ranks.

    What a row says for certain holds in all draws, so that expected ranks agree with it.
    """
    drawn = draw_rankings_of(fit, table, whole_number("n_samples", n_samples, 2), random_state)
    ranks = rank_summary(drawn)
    orders = np.argsort(ranks.mean, axis=1, kind="stable").astype(np.int32)
    return Rankings._from_arrays(orders, fit.items, table.counts, table._agents), ranks


def in_top(
    fit: BayesianMallowsFit, table: Preferences, k: int, n_samples: int, random_state: RandomState
) -> Array:
    """Return P(item is among the first k of the row's full ranking), (rows, items)."""
    k, size = whole_number("k", k, 1), whole_number("n_samples", n_samples, 2)
    drawn = draw_rankings_of(fit, table, size, random_state)
    return np.asarray((drawn.ranks < k).mean(axis=1))


def pairwise(
    fit: BayesianMallowsFit, table: Preferences, pairs: Any, n_samples: int, random_state: RandomState
) -> tuple[Array, Array, Array]:
    """Return P(a before b | what the row says), Monte Carlo errors, and which rows were drawn exactly."""
    size, n, n_rows = whole_number("n_samples", n_samples, 2), table.n_items, len(table)
    if pairs is None:
        refuse_too_large(
            16 * n_rows * n * n, f"{n_rows} agents × {n} × {n} items", "pairs=[(row, a, b), ...]"
        )
    asked = None if pairs is None else questions_about(pairs, table)
    drawn = draw_rankings_of(fit, table, size, random_state)
    if asked is None:
        means: Array = np.zeros((n_rows, n, n))
        for row, ranks in enumerate(drawn.ranks):
            means[row] = (ranks[:, :, None] < ranks[:, None, :]).mean(axis=0)
    else:
        questions, order = asked
        means = np.empty(len(order))
        means[order] = _asked(drawn.ranks, questions)
    return means, np.sqrt(means * (1.0 - means) / size) * (means < 1.0), drawn.exact


def _asked(ranks: Array, questions: Questions) -> Array:
    rows = np.repeat(np.arange(len(ranks)), np.diff(questions.span, axis=1)[:, 0])
    first, second = (ranks[rows, :, items] for items in (questions.first, questions.second))
    return np.asarray((first < second).mean(axis=1)) if len(rows) else np.zeros(0)
