"""The prior of the decays is learned: chains against sums over partitions, centers and a grid of priors."""

from __future__ import annotations

import math
from functools import cache
from itertools import permutations

import numpy as np
import pytest
from scipy.special import logsumexp

from permix.dp_mallows import decay_prior
from permix.dp_mallows.decay_prior import ByPlace, LearnDecayPrior
from permix.dp_mallows.moves import Centers, ListSplitMerge, ParallelSeating, SettledSeating
from permix.dp_mallows.parameters import DPMallowsParameters
from permix.dp_mallows.state import ListState, with_prior
from permix.errors import DataError
from permix.moves import Cycle
from permix.partitions import DirichletProcess, canonical_labels
from tests.distributions.generalized.test_finite_beta import quadrature
from tests.dp_mallows.list_cases import agrees, model_of, seated
from tests.oracles.dp_mallows import blocks, dirichlet_process, kolmogorov_bound, stage_statistics
from tests.oracles.partitions import restricted_growth_strings

# Agents in two camps, three items, two places.
LISTS = ((0, 1), (0, 1), (2, 1), (2,), (1, 2))
LEARNED = DPMallowsParameters().learned()
N_NODES = 25


def model(learned=LEARNED):
    """Chains start far from where the posterior is."""
    return model_of(LISTS, 3, DirichletProcess(1.0), 20.0, 0.05, learned=learned)


@cache
def tables_at_the_start():
    return model().tables


def nodes(name):
    """Logarithms on a grid, and their prior log weights."""
    prior = LEARNED[name]
    logs = np.linspace(math.log(prior.low), math.log(prior.high), N_NODES)
    return logs, -0.5 * ((logs - math.log(prior.median)) / prior.deviation) ** 2


def integral(a, c, m):
    """ln ∫ exp(-a θ) ψ_m(θ)^-c dθ, a plain sum over ln θ."""
    u = np.linspace(-25.0, 13.0, 800)
    theta = np.exp(u)
    log_psi = np.log(sum(np.exp(-i * theta) for i in range(m + 1)))
    return logsumexp(u - a[..., None] * theta - c[..., None] * log_psi, axis=-1) + math.log(u[1] - u[0])


def place_scores(total, count, place):
    """ln p(skips of a group at a place | ν, r) on the grid, (ν, r)."""
    if count == 0:
        return np.zeros((N_NODES, N_NODES))
    strength = np.exp(nodes("prior_strength")[0])[:, None]
    a, c = strength * np.exp(nodes("prior_rate")[0]), np.broadcast_to(strength, (N_NODES, N_NODES))
    m = 2 - place
    return integral(a + total, c + count, m) - integral(a, c, m)


class Oracle:
    """Everything on a grid of (ν, r of the first place, r of the second)."""

    def __init__(self):
        self.known = {}
        strength, rate = nodes("prior_strength")[1], nodes("prior_rate")[1]
        self.log_prior = strength[:, None, None] + rate[:, None] + rate

    def of_group(self, members, center):
        """ln p(lists | center) on the grid."""
        parts = []
        for place, (total, count) in enumerate(stage_statistics([LISTS[i] for i in members], center)):
            key = (total, count, place)
            if key not in self.known:
                self.known[key] = place_scores(*key)
            parts.append(self.known[key])
        return parts[0][:, :, None] + parts[1][:, None, :]

    def posterior(self):
        """P(partition), and the marginal probabilities of ν and of both r on the grid."""
        rule = dirichlet_process(1.0)
        partitions = list(restricted_growth_strings(len(LISTS)))
        groups, values = {}, []
        for labels in partitions:
            value = self.log_prior + math.log(rule(labels))
            for members in blocks(labels):
                if members not in groups:
                    centers = [self.of_group(members, c) for c in permutations(range(3))]
                    groups[members] = logsumexp(centers, axis=0) - math.log(6)
                value = value + groups[members]
            values.append(value)
        whole = np.exp(np.array(values) - logsumexp(values))
        return partitions, whole.sum(axis=(1, 2, 3)), [whole.sum(axis=(0, *axes)) for axes in OTHERS]

    def given(self, groups):
        """The marginals given groups: members with their centers."""
        value = self.log_prior + sum(self.of_group(*group) for group in groups)
        whole = np.exp(value - logsumexp(value))[None]
        return [whole.sum(axis=(0, *axes)) for axes in OTHERS]


OTHERS = ((2, 3), (1, 3), (1, 2))
ORACLE = Oracle()


def learned_values(state):
    return np.log([state.strength, *state.rates])


def near(draws, marginals):
    """Whether the distributions of ln ν and both ln r are within what an exact chain would show."""
    worst = 0.0
    for values, chances, name in zip(
        draws.T, marginals, ("prior_strength", *2 * ["prior_rate"]), strict=True
    ):
        logs, half = nodes(name)[0], (nodes(name)[0][1] - nodes(name)[0][0]) / 2
        ends = np.concatenate([[logs[0] - half], logs + half])
        exact = np.concatenate([[0.0], np.cumsum(chances)])
        # Cells end between nodes; where chains are cut off the density has all but vanished.
        below = np.searchsorted(np.sort(values), ends) / len(values)
        batches = np.array([np.searchsorted(np.sort(b), ends) / len(b) for b in np.array_split(values, 30)])
        variance = (batches.var(axis=0, ddof=1) / 30).max()
        n_effective = min(0.25 / variance, len(values))
        if n_effective < 100:
            return False
        worst = max(worst, np.abs(below - exact).max() / (kolmogorov_bound(n_effective) + 0.005))
    return worst < 1.0


GROUPS = ([(0, 1), (0, 1, 2)], [(2, 3, 4), (2, 1, 0)])


def learned_given_groups(move, n_steps=1200):
    state = ListState(model())
    state.set_labels(np.array([0, 0, 1, 1, 1]), np.random.default_rng(0))
    for k, (_, center) in enumerate(GROUPS):
        state.clusters.places[list(center), k] = np.arange(3)
    state.refresh()
    rng, draws = np.random.default_rng(2), []
    for _ in range(n_steps):
        move.step(rng, state)
        draws.append(learned_values(state))
    return near(np.array(draws), ORACLE.given(GROUPS))


def test_hyper_parameters_given_groups():
    assert learned_given_groups(LearnDecayPrior())


class Broken(ByPlace):
    """Broken twin: the normalizer of the prior is taken as it was at the start."""

    def __call__(self, strength, rates):
        tables, totals, _ = self._given
        now, then = with_prior(tables, strength, rates), tables_at_the_start()
        more = now.prior_log_integral - then.prior_log_integral
        return super().__call__(strength, rates) + len(totals) * more


def test_normalizers_of_the_prior_count(monkeypatch):
    monkeypatch.setattr(decay_prior, "ByPlace", Broken)
    assert not learned_given_groups(LearnDecayPrior(), 600)


class Stale(LearnDecayPrior):
    """Broken twin: new groups follow the prior that the chain started from."""

    def step(self, rng, state):
        info = super().step(rng, state)
        state.tables, state.opening = state.model.tables, state.model.opening
        return info


def joint_chain(move, n_steps, seed=3):
    state = seated(model())
    partitions, chances, marginals = ORACLE.posterior()
    index = {labels: k for k, labels in enumerate(partitions)}
    rng, visits, draws = np.random.default_rng(seed), [], []
    LearnDecayPrior().step(rng, state)
    cycle = Cycle([SettledSeating(), ParallelSeating(), ListSplitMerge(), Centers(), move])
    for _ in range(n_steps):
        cycle.step(rng, state)
        visits.append(index[tuple(canonical_labels(state.labels).tolist())])
        draws.append(learned_values(state))
    return agrees(np.array(visits), partitions, chances), near(np.array(draws), marginals)


def test_learned_with_the_groups():
    """The fewer there are, the more often: that depends on nothing that changes."""
    assert joint_chain(LearnDecayPrior(1.5), 1500) == (True, True)


def test_groups_must_know_what_is_learned():
    assert not all(joint_chain(Stale(), 1000))


@pytest.mark.slow
def test_learned_now_and_then_in_a_long_chain():
    assert joint_chain(LearnDecayPrior(1.0), 40_000, seed=4) == (True, True)


def test_likelihoods_by_place_are_those_of_groups():
    state = seated(model())
    state.take_decay_prior(2.5, np.array([0.4, 3.0]))
    totals, counts = (a[: state.n_clusters] for a in (state.clusters.totals, state.clusters.counts))
    by_place = ByPlace(state.model.tables, totals, counts)(2.5, np.array([0.4, 3.0]))
    assert by_place.sum() == pytest.approx(state.log_likelihood(), abs=1e-8)
    exact = sum(
        quadrature(2.5 * r + totals[k, j], 2.5 + counts[k, j], 2 - j) - quadrature(2.5 * r, 2.5, 2 - j)
        for k in range(len(totals))
        for j, r in enumerate((0.4, 3.0))
        if counts[k, j]
    )
    assert by_place.sum() == pytest.approx(exact, abs=1e-7)


def test_likelihoods_that_are_known_are_those_computed_anew():
    state = seated(model())
    given = (state.tables, *(a[: state.n_clusters] for a in (state.clusters.totals, state.clusters.counts)))
    by_place = ByPlace(*given)
    seen = set()
    for strength, rates in ((2.5, (0.4, 3.0)), (2.5, (0.4, 1.0)), (2.5, (2.0, 1.0)), (0.7, (2.0, 1.0))):
        found = by_place(strength, np.array(rates))
        assert np.array_equal(found, ByPlace(*given)(strength, np.array(rates)))
        seen.add(tuple(found.tolist()))
    assert len(seen) == 4  # a memory that forgets to ask would repeat itself


@pytest.mark.parametrize(
    ("given", "open_"),
    [
        ({}, ["prior_rate", "prior_strength"]),
        ({"prior_strength": 2.0}, ["prior_rate"]),
        ({"prior_rate": (1.0, 0.5)}, ["prior_strength"]),
        ({"prior_strength": 2.0, "prior_rate": 1.0}, []),
        ({"sampler": "beta-gibbs"}, []),
    ],
)
def test_what_is_given_is_not_learned(given, open_):
    settings = DPMallowsParameters(**given)
    assert sorted(settings.learned()) == open_
    state = seated(model(settings.learned()))
    before = state.strength, state.rates.copy()
    LearnDecayPrior().step(np.random.default_rng(0), state)
    assert (state.strength != before[0]) == ("prior_strength" in open_)
    assert bool((state.rates != before[1]).all()) == ("prior_rate" in open_)
    assert sorted(name for name in state.record() if name.startswith("prior")) == open_


def test_checkpoints_hold_what_is_learned():
    state = seated(model())
    LearnDecayPrior().step(np.random.default_rng(1), state)
    kept = state.checkpoint()
    other = ListState(state.model)
    other.restore(kept)
    assert other.log_joint() == pytest.approx(state.log_joint(), abs=1e-12)
    for name, damaged in (
        ("prior_rate", -np.ones(2)),
        ("prior_rate", np.ones(3)),
        ("prior_strength", np.nan),
    ):
        with pytest.raises(DataError, match=name):
            ListState(state.model).restore({**kept, name: np.asarray(damaged)})
