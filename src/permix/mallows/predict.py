"""What a mixture of Mallows models says about agents: their component, and everything they did not say.

Functions over :class:`MallowsComponents` for preferences of any kind, many
agents at once. Answers are exact, without random numbers, for agents whose statements partition all items
(full rankings, top lists, levels of all items, nothing at all) and wherever exact sums are affordable (any
preferences over a dozen items); elsewhere they come from draws. The same ``random_state`` gives the same
numbers whatever the number of threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from permix.data.labels import Array
from permix.data.preferences import Preferences
from permix.data.rankings import Rankings
from permix.distributions.base import sample_size
from permix.distributions.conditioning.components import MallowsComponents
from permix.distributions.conditioning.draws import Jobs
from permix.errors import DataError
from permix.estimators.agent_answers import (
    Completions,
    Questions,
    RankSummary,
    one_of,
    questions_about,
    refuse_too_large,
    same_for_equal_rows,
    whole_number,
)
from permix.estimators.preference_input import as_preferences
from permix.mallows.posterior import DRAWS, MixturePosterior, posterior_of, stream_keys
from permix.mallows.posterior_jit import consensus_rows, sp_rows
from permix.posterior.intervals import ranks_holding
from permix.runtime.seeds import RandomState, generator
from permix.runtime.threads import over_rows

# Memory for the pairs of a block of agents while orderings are sought.
BLOCK_BYTES = 2**27
# Particles per agent and component behind P(z | v) where it has no exact sum.
N_SAMPLES = 256


def predict_proba(
    components: MallowsComponents, preferences: object, n_samples: int = 256, random_state: RandomState = None
) -> Array:
    """P(component | what the agent said); rows sum to one, and rows that say the same are the same.

    ``n_samples`` are particles per agent and component where no exact sum is affordable.
    """
    posterior, table, _ = _prepared(components, preferences, n_samples, random_state)
    drawn = bool(np.any(posterior.ways == DRAWS)) and components.by_agent is None
    return same_for_equal_rows(posterior.probabilities, table) if drawn else posterior.probabilities


def score_samples(
    components: MallowsComponents, preferences: object, n_samples: int = 256, random_state: RandomState = None
) -> tuple[Array, Array]:
    """Return ln P(v) of every agent, equation 26, and standard errors, 0 where exact.

    Each row counts once, whatever its ``counts``; minus infinity where no component can have said it.
    """
    posterior, _, _ = _prepared(components, preferences, n_samples, random_state)
    largest = posterior.log_joint.max(axis=1)
    shift = np.where(np.isfinite(largest), largest, 0.0)
    terms = np.exp(posterior.log_joint - shift[:, None])
    totals = terms.sum(axis=1)
    with np.errstate(divide="ignore"):
        scores = shift + np.log(totals)
    squares = np.sum((terms * posterior.errors) ** 2, axis=1)  # estimates of components are independent
    return scores, np.sqrt(squares) / np.where(totals > 0.0, totals, 1.0)


def sample_completions(
    components: MallowsComponents,
    preferences: object,
    size: int = 1,
    method: str = "auto",
    *,
    step: str = "mmp",
    n_burn_in: int = 100,
    n_thin: int = 10,
    random_state: RandomState = None,
) -> Completions:
    """Draw full rankings that agree with each agent, and the components behind them: P(r, z | v).

    Method "exact" draws independently from the posterior; refused where an agent has no exact way.
    "importance" takes the component from P(z | v), the ranking from AMP's draws under that component,
    resampled by importance weights while they are built, then some Gibbs sweeps over all items; draws are
    independent, and exact in the limit of many sweeps. "auto" is exact where possible, else importance, agent
    by agent. "sp" is the paper's chain, algorithm 3, of dependent draws: ``n_burn_in`` steps before the first
    is kept, ``n_thin`` from one to the next; with many items it hardly ever changes the component. Its
    ``step`` of the ranking is "mmp" (independence Metropolis, equation 23), which tends to the posterior, or
    "amp", as in the paper's experiments, which takes every proposal: right only where AMP is exact.
    """
    one_of("method", method, ("auto", "exact", "importance", "sp"))
    one_of("step", step, ("mmp", "amp"))
    if method == "sp" and components.by_agent is not None:
        raise DataError("method='sp' is for weights that are the same for all agents; use method='auto'")
    if method in ("sp", "importance") and components.distance != "kendall":
        raise DataError(f"method={method!r} is for distance='kendall'; use method='auto', which is exact")
    size = sample_size(size)
    n_burn_in, n_thin = whole_number("n_burn_in", n_burn_in, 0), whole_number("n_thin", n_thin, 1)
    posterior, table, rng = _prepared(components, preferences, N_SAMPLES, random_state)
    n, n_items = len(table), components.n_items
    refuse_too_large(
        n * size * n_items * 4, f"{n} agents × {size} draws × {n_items} items", "fewer agents at a time"
    )
    exact = np.asarray(posterior.ways != DRAWS) & (method in ("auto", "exact"))
    if method == "exact" and not exact.all():
        raise DataError(
            f"{table.row_name(int(np.argmin(exact)))} leaves too much open for exact draws "
            f"({int((~exact).sum())} such row(s)); use method='auto'"
        )
    if method == "sp":
        posterior.need_possible()
        orders, labels, rates = _run_sp(posterior, size, (step == "mmp", n_burn_in, n_thin), rng)
        return Completions(orders, labels, exact, rates, table)
    orders = np.empty((n, size, n_items), dtype=np.int32)
    labels = np.empty((n, size), dtype=np.int64)
    rows, others = np.flatnonzero(exact), np.flatnonzero(~exact)
    orders[rows], labels[rows] = posterior.draw_exactly(rows, size, rng)
    if len(others):
        orders[others], labels[others] = posterior.draw_by_moves(others, size, rng)
    return Completions(orders, labels, exact, np.full(n, np.nan), table)


def _run_sp(
    posterior: MixturePosterior, size: int, chain: tuple[bool, int, int], rng: np.random.Generator
) -> tuple[Array, Array, Array]:
    """Return orderings and labels of the chain SP, and acceptance rates; ``chain``: step, burn-in, thin."""
    components = posterior.components
    n, length = posterior.n_agents, chain[1] + size * chain[2]
    orders = np.empty((n, size, components.n_items), dtype=np.int32)
    labels = np.empty((n, size), dtype=np.int64)
    accepted = np.zeros(n, dtype=np.int64)
    rows = np.arange(n)
    jobs = Jobs.of(posterior.profile.arrays, rows, 0 * rows, components.centers, posterior.models)
    logs = (components.log_weights, posterior.log_totals)
    work = (stream_keys(rng, 1)[0], jobs, *logs, *chain, orders, labels, accepted)
    over_rows(sp_rows, n, components.n_items * components.n_components * length, *work)
    return orders, labels, accepted / max(length, 1)


def predict_pairwise(
    components: MallowsComponents,
    preferences: object,
    pairs: Any = None,
    *,
    n_samples: int = 200,
    random_state: RandomState = None,
    return_error: bool = False,
) -> Any:
    """P(a ≻ b | what the agent said), section 5.4; for all pairs of all agents, or (row, a, b) by name.

    ``n_samples`` rankings are averaged over for agents without an exact way, in 8 chains. Standard errors are
    0 where exact; elsewhere they come from the spread between chains and the uncertainty of P(component | v).
    A pair on which all rankings drawn agree gets 0 as well, though ``n_samples`` draws cannot tell a
    probability above 1 - 1/n_samples from 1.

    Where the statements partition all items, a pair of different levels is certain, and two items of one
    level, with g - 1 others of the level between them in the center, are ranked as the center has them with
    the probability h(g+1) - h(g), h(k) = k / (1 - φ^k), mixed over components.
    """
    n_samples = whole_number("n_samples", n_samples, 2)
    table = as_preferences(preferences, components.items)
    n, n_items = len(table), components.n_items
    if pairs is None:
        space = 8 * n * n_items * n_items * (2 if return_error else 1)
        refuse_too_large(space, f"{n} agents × {n_items} × {n_items} items", "pairs=[(row, a, b), ...]")
        questions, order = Questions.all_pairs(n, n_items), None
    else:
        questions, order = questions_about(pairs, table)
    posterior, _, rng = _prepared(components, table, N_SAMPLES, random_state)
    found = posterior.before(questions, n_samples, rng)
    if order is not None:
        means, errors = (values[np.argsort(order)] for values in found)
        return (means, errors) if return_error else means
    means = pair_matrices(n, questions, found[0], 1.0 - found[0])
    return (means, pair_matrices(n, questions, found[1], found[1])) if return_error else means


def pair_matrices(n: int, questions: Questions, values: Array, turned: Array) -> Array:
    """Matrices (n, items, items) of answers about all pairs a < b, ``turned`` those about b and a."""
    n_items = int(questions.second.max(initial=0)) + 1
    out = np.zeros((n, n_items, n_items))
    out[:, questions.first, questions.second] = values.reshape(n, -1)
    out[:, questions.second, questions.first] = turned.reshape(n, -1)
    return out


def complete(
    components: MallowsComponents,
    preferences: object,
    *,
    n_samples: int = 200,
    random_state: RandomState = None,
    return_ranks: bool = False,
) -> Any:
    """Complete what every agent said to a full ranking: the most plausible one that agrees with it.

    It is the consensus of the agent's posterior: the ordering with the least expected number of pairs put
    the other way round (Kendall distance) that local search finds from the ordering by expected rank.
    ``n_samples`` rankings are averaged over for agents without an exact way, and drawn for ranges of ranks.
    """
    n_samples = whole_number("n_samples", n_samples, 2)
    posterior, table, rng = _prepared(components, preferences, N_SAMPLES, random_state)
    n, n_items = len(table), components.n_items
    n_pairs = n_items * (n_items - 1) // 2
    refuse_too_large(16 * n_pairs, f"all pairs of {n_items} items", "fewer items")
    orders = np.empty((n, n_items), dtype=np.int32)
    means = np.empty((n, n_items))
    ranges = np.ones((n, 2, n_items), dtype=np.int32) if return_ranks else None
    step = max(1, BLOCK_BYTES // (16 * max(n_pairs, 1)))
    for first in range(0, n, step):
        last = min(first + step, n)
        before, _ = posterior.before(Questions.all_pairs(n, n_items, first, last), n_samples, rng, ranges)
        work = (before.reshape(last - first, n_pairs), orders[first:last], means[first:last])
        over_rows(consensus_rows, last - first, 10 * n_pairs, *work)
    result = Rankings._from_arrays(orders, components.items, table.counts, table._agents)
    return (
        result
        if ranges is None
        else (result, RankSummary(means, *ranks_holding(means, ranges[:, 0], ranges[:, 1])))
    )


def _prepared(
    components: MallowsComponents, preferences: object, n_samples: int, random_state: RandomState
) -> tuple[MixturePosterior, Preferences, np.random.Generator]:
    """Check the arguments; return the posterior, what the agents said, and a generator for draws."""
    n_samples = whole_number("n_samples", n_samples, 2)
    table = as_preferences(preferences, components.items)
    rng = generator(random_state)
    return posterior_of(components, table, n_samples, rng), table, rng
