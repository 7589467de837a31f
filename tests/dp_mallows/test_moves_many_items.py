"""Chains over more items than are listed agree with sums over the places of the three that lists mention."""

from __future__ import annotations

import math
from functools import cache
from itertools import permutations

import numpy as np
import pytest
from scipy.special import logsumexp

from permix.dp_mallows.jumps import Jumps
from permix.dp_mallows.moves import Centers, CollapsedSeating, ListSplitMerge, ParallelSeating, SettledSeating
from permix.moves import Cycle
from permix.partitions import DirichletProcess, MixtureOfFiniteMixtures
from tests.distributions.generalized.test_finite_beta import quadrature
from tests.dp_mallows.list_cases import agrees, model_of, seated, visits_of
from tests.oracles.dp_mallows import dirichlet_process, mixture_of_finite_mixtures
from tests.oracles.partitions import restricted_growth_strings

N_MANY = 70
MANY = ((0,), (0, 1), (2, 0), (1,))
MANY_PRIOR = {"strength": 0.6, "rates": (30.0, 8.0)}
integral = cache(quadrature)


@cache
def many_log_marginals(lists, n_items, strength, rates):
    """ln p(lists of a cluster) for every set of agents, by summing over the places of three items."""
    places = np.array(list(permutations(range(n_items), 3)), dtype=np.int16).T
    codes = []
    for row in lists:
        code = []
        for j, item in enumerate(row):
            skip = places[item].astype(np.int64)
            for earlier in row[:j]:
                skip -= places[earlier] < places[item]
            code.append(skip)
        codes.append(code)
    result = {}
    for mask in range(1, 2 ** len(lists)):
        members = [i for i in range(len(lists)) if mask >> i & 1]
        score = np.zeros(places.shape[1])
        for j in range(max(len(lists[i]) for i in members)):
            skips = [codes[i][j] for i in members if len(codes[i]) > j]
            a, c, m = strength * rates[j], strength + len(skips), n_items - 1 - j
            total = sum(skips)
            table = np.array([integral(a + s, c, m) for s in range(int(total.max()) + 1)])
            score += table[total] - integral(a, strength, m)
        result[tuple(members)] = float(logsumexp(score)) - math.log(places.shape[1])
    return result


@cache
def many_posterior(finite):
    """Partitions of lists over 70 items that mention three of them, and their probabilities."""
    marginals = many_log_marginals(MANY, N_MANY, MANY_PRIOR["strength"], MANY_PRIOR["rates"])
    # Lemma 1.
    assert marginals[(0,)] == pytest.approx(-math.log(N_MANY), abs=1e-9)
    assert marginals[(1,)] == pytest.approx(-math.log(N_MANY * (N_MANY - 1)), abs=1e-9)
    partitions = list(restricted_growth_strings(len(MANY)))
    prior = mixture_of_finite_mixtures(2.0, 0.7) if finite else dirichlet_process(1.0)
    logs = [
        math.log(prior(labels))
        + sum(
            marginals[tuple(i for i, label in enumerate(labels) if label == k)]
            for k in range(max(labels) + 1)
        )
        for labels in partitions
    ]
    return partitions, np.exp(np.array(logs) - logsumexp(logs))


MANY_MOVES = {
    "visits": [Centers(), CollapsedSeating()],
    "pins": [CollapsedSeating(), Centers(), ParallelSeating(0.5)],
    "split-merge": [SettledSeating(0.4), Centers(), ListSplitMerge(2, 2)],
    "jumps": [Centers(), Jumps(3, splits=0.5)],
}


def many_chain_agrees(move, n_steps, seed):
    finite = move == "jumps"
    partitions, chances = many_posterior(finite)
    prior = MixtureOfFiniteMixtures(2.0, 0.7) if finite else DirichletProcess(1.0)
    state = seated(model_of(MANY, N_MANY, prior, **MANY_PRIOR))
    visits = visits_of(state, Cycle(MANY_MOVES[move]), partitions, n_steps, seed, checks=20)
    return agrees(visits, partitions, chances)


@pytest.mark.parametrize("move", MANY_MOVES)
def test_chains_over_many_items(move):
    assert many_chain_agrees(move, 3000, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("move", MANY_MOVES)
def test_long_chains_over_many_items(move):
    assert many_chain_agrees(move, 60_000, seed=2)
