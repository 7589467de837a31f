"""Missing counts of multinomial groups, against integrals over probabilities: partitions times a count."""

from __future__ import annotations

import functools
import inspect
import math

import numpy as np
import pytest
from scipy import special, stats

from permix.dp_mixture.left_out_jit import score_without
from permix.families import Multinomial
from permix.families.contract_jit import score_new_data, seat_all
from permix.families.missing import multinomial_gaps_jit
from permix.families.missing.multinomial_gaps_jit import LARGEST_FILLED, with_gaps
from permix.moves import Cycle, Gibbs, Hyperparameters, MissingCells, SplitMerge
from permix.moves.state import MixtureState
from permix.partitions import DirichletProcess
from permix.partitions.labels import canonical_labels
from tests.oracles.mixtures import total_variation, total_variation_bound
from tests.oracles.partitions import restricted_growth_strings

PSEUDO = [1.2, 0.9, 1.5]
X = np.array([[4.0, np.nan, 1.0], [5.0, 3.0, 0.0], [np.nan, 1.0, 6.0], [0.0, 2.0, 7.0]])
FAMILY = Multinomial(PSEUDO, document_length=5).resolve(X)
PRIOR = DirichletProcess(1.0)
PARTITIONS = list(restricted_growth_strings(4))
# Bins of the count that row 1 lacks.
EDGES, N_BINS, MOST = np.array([0.5, 3.5]), 3, 4000
N_STEPS = 8_000


def points(n_nodes=60, pseudo=PSEUDO):
    """Points of the simplex and the weights that a Dirichlet distribution gives them (Gauss and Jacobi)."""

    def beta(a, b):
        nodes, weights = special.roots_jacobi(n_nodes, b - 1.0, a - 1.0)
        return (nodes + 1.0) / 2.0, weights / weights.sum()

    first, w = beta(pseudo[0], pseudo[1] + pseudo[2])
    second, v = beta(pseudo[1], pseudo[2])
    p = np.array([(a, (1 - a) * b, (1 - a) * (1 - b)) for a in first for b in second])
    return p, np.outer(w, v).ravel()


def likelihood(row, p):
    """Probability of the observed counts of a row, given their total, at each point."""
    here = ~np.isnan(row)
    q = p[:, here] / p[:, here].sum(axis=1, keepdims=True)
    return stats.multinomial.pmf(row[here], int(row[here].sum()), q)


@functools.cache
def exact():
    """Probabilities of partitions times bins of the count that row 1 lacks."""
    p, weights = points()
    n = int(np.nansum(X[0]))
    below = [stats.nbinom.cdf(edge, n, 1.0 - p[:, 1]) for edge in EDGES]
    in_bin = np.diff([np.zeros(len(p)), *below, np.ones(len(p))], axis=0)
    rows = [likelihood(row, p) for row in X]
    table = np.zeros((len(PARTITIONS), N_BINS))
    for place, labels in enumerate(PARTITIONS):
        of_bins = np.full(N_BINS, np.exp(PRIOR.log_prob(labels)))
        for k in range(max(labels) + 1):
            members = [i for i in range(4) if labels[i] == k]
            product = weights * np.prod([rows[i] for i in members], axis=0)
            of_bins *= (in_bin * product).sum(axis=1) if 0 in members else product.sum()
        table[place] = of_bins
    return (table / table.sum()).ravel()


def visits(move, state, n_steps=N_STEPS):
    """Shares of partitions times bins in a chain."""
    rng, place = np.random.default_rng(3), {labels: p for p, labels in enumerate(PARTITIONS)}
    counts = np.zeros((len(PARTITIONS), N_BINS))
    state.set_labels(np.zeros(4, dtype=np.int64))
    for _ in range(n_steps):
        move.step(rng, state)
        cell = state.family.cells_at(state.data, state.missing)[0] if state.missing is not None else 0.0
        counts[place[tuple(canonical_labels(state.labels).tolist())], np.searchsorted(EDGES, cell)] += 1
    return (counts / counts.sum()).ravel()


def bound():
    return total_variation_bound(exact(), N_STEPS / 4)


MOVES = {
    "cells": Cycle([Gibbs(), MissingCells()]),
    "splits": Cycle([SplitMerge(n_proposals=2), MissingCells()]),
}


@pytest.mark.parametrize("name", MOVES)
def test_chains_follow_the_posterior(name):
    state = MixtureState(FAMILY, FAMILY.encode(X), 4, PRIOR)
    assert total_variation(visits(MOVES[name], state), exact()) < bound()
    # Totals and coefficients of the rows have followed.
    again = FAMILY.completed(state.observed)
    FAMILY.put_cells(again, state.missing, FAMILY.cells_at(state.data, state.missing))
    for a, b in zip(again, state.data, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


def test_missing_counts_taken_for_zeros_are_noticed():
    state = MixtureState(FAMILY, FAMILY.encode(np.nan_to_num(X)), 4, PRIOR)
    partitions = visits(Gibbs(), state).reshape(-1, N_BINS).sum(axis=1)
    pi = exact().reshape(-1, N_BINS).sum(axis=1)
    assert total_variation(partitions, pi) > total_variation_bound(pi, N_STEPS / 4)


MEMBERS = np.array([[3.0, 1.0, 2.0], [6.0, 2.0, 0.0]])


def drawn_counts(fill, n_draws=10_000):
    """Draws of what row 1 lacks in a group of two others."""
    of_members, row = FAMILY.statistics(1), FAMILY.encode(X[:1])
    seat_all(of_members, FAMILY.encode(MEMBERS), np.zeros(2, dtype=np.int32), 1)
    filled = FAMILY.completed(row)
    scoring, rng, drawn = with_gaps(of_members, filled), np.random.default_rng(5), np.empty(n_draws)
    for step in range(n_draws):
        fill(rng, scoring, row, 0, 0)
        drawn[step] = FAMILY.cells_at(filled, np.isnan(row.values))[0]
    return drawn


def counts_off_by(drawn):
    """Distance of the distribution of draws from the beta negative binomial one."""
    weights = np.array(PSEUDO) + MEMBERS.sum(axis=0)
    n, missing, observed = 5, weights[1], weights[0] + weights[2]
    y = np.arange(MOST)
    log_pmf = special.gammaln(n + y) - special.gammaln(n) - special.gammaln(y + 1)
    log_pmf += special.betaln(observed + n, missing + y) - special.betaln(observed, missing)
    found = np.bincount(drawn.astype(int), minlength=MOST)[:MOST] / len(drawn)
    return np.abs(np.cumsum(found) - np.cumsum(np.exp(log_pmf))).max()


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("", ""),
        ("rng.standard_gamma(data.totals[i])", "data.totals[i]"),
        ("rng.standard_gamma(pseudo + observed)", "rng.standard_gamma(pseudo + observed + data.totals[i])"),
        ("observed -= stats.counts[word, k]", "pass"),
    ],
    ids=["as it is", "rate", "row counted twice", "counts of missing columns"],
)
def test_drawn_counts_follow_the_conditional_of_the_group(right, wrong):
    """The sampler's own text, run as Python, and with one term wrong."""
    text = inspect.getsource(multinomial_gaps_jit._fill)
    assert right in text
    text = text[text.index("def _fill") :].replace(right, wrong) if right else text[text.index("def _fill") :]
    copy = {"math": math, "LARGEST_FILLED": LARGEST_FILLED}
    exec(text, copy)
    # Exceeded once in a million times.
    assert (counts_off_by(drawn_counts(copy["_fill"])) > np.sqrt(np.log(2e6) / 2 / 10_000)) == bool(right)


def test_scores_are_those_of_observed_columns():
    """Dirichlet-multinomial in the columns that a row has, given rows as they are filled."""
    rng = np.random.default_rng(0)
    family = Multinomial([0.8, 1.1, 0.4, 2.0], document_length=4).resolve(np.ones((2, 4)))
    whole = rng.poisson(3.0, (12, 4)).astype(float)
    gaps = np.where(rng.random(whole.shape) < 0.35, np.nan, whole)
    gaps[9], gaps[10], gaps[11] = np.nan, [0.0, np.nan, 0.0, 0.0], whole[11]
    labels = np.array([0, 0, 1, 0, 2, 1, 1, 2, 0, -1, -1, -1], dtype=np.int32)
    data = family.encode(gaps)
    filled, missing = family.completed(data), family.filled_cells(data)
    family.put_cells(filled, missing, whole[np.isnan(gaps)])
    of_filled = family.statistics(4)
    seat_all(of_filled, filled, labels, 4)
    scoring = with_gaps(of_filled, filled)
    scores, own = np.empty((12, 4)), np.empty(9)
    score_new_data(scoring, data, 12, 4, scores)

    def observed(row, members):
        here = ~np.isnan(row)
        if not row[here].sum():
            return 0.0
        weights = np.asarray(family.pseudo_count) + members.sum(axis=0)
        return stats.dirichlet_multinomial.logpmf(row[here].astype(int), weights[here], int(row[here].sum()))

    expected = [[observed(row, whole[labels == k]) for k in range(4)] for row in gaps]
    np.testing.assert_allclose(scores, expected, rtol=1e-9, atol=1e-9)
    score_without(scoring, data, labels, np.bincount(labels[:9], minlength=4), np.arange(9), own)
    for i in range(9):
        others = whole[(labels == labels[i]) & (np.arange(12) != i)]
        assert own[i] == pytest.approx(observed(gaps[i], others), rel=1e-9, abs=1e-9)


def test_observed_shares_sum_to_one():
    """Over all ways to share out the same total among the columns that a row has."""
    family, data = FAMILY, FAMILY.encode(MEMBERS)
    of_members = family.statistics(1)
    seat_all(of_members, data, np.zeros(2, dtype=np.int32), 1)
    rows = np.array([[a, np.nan, 6 - a] for a in range(7)], dtype=float)
    encoded = family.encode(rows)
    scores = np.empty((7, 1))
    score_new_data(family.scoring(of_members, encoded, encoded), encoded, 7, 1, scores)
    assert np.exp(scores).sum() == pytest.approx(1.0, abs=1e-12)
    assert np.ptp(scores) > 1.0


# Column 2 is as frequent as the others where it was counted; zeros for what is missing would make it rare.
EVEN = np.array([[12.0, np.nan, 13.0], [14.0, np.nan, 12.0], [4.0, 5.0, 4.0], [13.0, np.nan, 14.0]])


def chain_of_pseudo_counts(moves, n_steps=6_000):
    """Draws of the logarithm of the pseudo-count of one group, with rows that lack counts."""
    asked = Multinomial(document_length=5)
    family = asked.resolve(EVEN)
    data = family.encode(EVEN)
    state = MixtureState(family, data, 4, DirichletProcess(1e-12), learning=asked.learning(family, data))
    state.set_labels(np.zeros(4, dtype=np.int64))
    rng, found = np.random.default_rng(6), np.empty(n_steps)
    for step in range(n_steps):
        for move in moves:
            move.step(rng, state)
        found[step] = math.log(state.family.learnable["pseudo_count"])
    assert state.n_clusters == 1
    return found


@functools.cache
def exact_pseudo_count():
    """Logarithms of the pseudo-count, from the least that gaps allow, and their distribution function."""
    logs = np.linspace(math.log(1 / 2), math.log(100.0), 120)
    density = []
    for log in logs:
        p, weights = points(80, [math.exp(log)] * 3)
        product = np.prod([likelihood(row, p) for row in EVEN], axis=0)
        density.append(float(weights @ product) * stats.norm.pdf(log, 0.0, 1.5))
    masses = np.cumsum(density) - np.array(density) / 2
    return logs, masses / np.sum(density)


@pytest.mark.parametrize("filling", [True, False])
def test_learned_pseudo_counts_know_of_gaps(filling):
    """With missing counts drawn anew, as they should be; if they stay zero, that is noticed."""
    logs, cumulative = exact_pseudo_count()
    drawn = chain_of_pseudo_counts([MissingCells(), Hyperparameters()] if filling else [Hyperparameters()])
    distance = stats.kstest(drawn, lambda log: np.interp(log, logs, cumulative)).statistic
    # Successive draws are not independent: as if every sixth were.
    assert (distance < np.sqrt(np.log(2e6) / 2 / 1_000)) == filling
