"""``Mallows(distance=...)`` against enumeration, and its draws against its distribution."""

from __future__ import annotations

import copy
import pickle
from itertools import permutations

import numpy as np
import pytest
from scipy.stats import chi2

from permix import Mallows, Preferences, Rankings
from permix.data.distances import distance_matrix
from permix.distributions.base import distribution_from_description
from permix.distributions.distances.names import DISTANCES
from permix.errors import DataError, ParameterError
from permix.runtime.threads import at_most
from tests.oracles import distances as oracle

OTHERS = DISTANCES[1:]
CENTER = ("c", "a", "d", "b")
ITEMS = ("a", "b", "c", "d")
ALL = np.array(list(permutations(range(4))))
INDEX = [ITEMS.index(item) for item in CENTER]


def model(distance, dispersion):
    return Mallows(CENTER, dispersion, items=ITEMS, distance=distance)


def exact(distance, dispersion):
    found = oracle.distribution(distance, INDEX, dispersion)
    return np.array([found[tuple(order)] for order in ALL.tolist()])


def surprise(orders, expected):
    """P of a chi-square statistic at least as large, over all rankings of four items."""
    code = {tuple(order): at for at, order in enumerate(ALL.tolist())}
    seen = np.bincount([code[tuple(order)] for order in orders.tolist()], minlength=24)
    wanted = len(orders) * expected
    if seen[wanted == 0].any():
        return 0.0
    possible = wanted > 0
    return chi2.sf(((seen - wanted)[possible] ** 2 / wanted[possible]).sum(), max(possible.sum() - 1, 1))


@pytest.mark.parametrize("distance", OTHERS)
@pytest.mark.parametrize("dispersion", [0.0, 0.3, 0.8, 1.0])
def test_numbers_and_draws_against_enumeration(distance, dispersion):
    made, p = model(distance, dispersion), exact(distance, dispersion)
    assert np.allclose(np.exp(made.log_prob(ALL)), p, atol=1e-13)
    apart = distance_matrix(np.array([INDEX]), ALL, metric=distance)[0]
    assert made.expected_distance() == pytest.approx(p @ apart, rel=1e-9, abs=1e-12)
    assert made.entropy() == pytest.approx(-(p[p > 0] @ np.log(p[p > 0])), abs=1e-9)
    ranks = np.argsort(ALL, axis=1)
    before = [[p @ (ranks[:, a] < ranks[:, b]) for b in range(4)] for a in range(4)]
    assert np.allclose(made.pairwise(), before, atol=1e-12)
    at = [[p @ (ranks[:, a] == r) for r in range(4)] for a in range(4)]
    assert np.allclose(made.rank_marginals(), at, atol=1e-12)
    assert surprise(made.sample(4000, random_state=5).orders, p) > 1e-4


@pytest.mark.parametrize("distance", OTHERS)
def test_broken_draws_are_noticed(distance):
    rng = np.random.default_rng(0)
    moved = oracle.BROKEN_DRAWS[distance](rng, 4, 0.8, 4000)
    assert surprise(np.array(INDEX)[moved], exact(distance, 0.8)) < 1e-6


@pytest.mark.parametrize(
    ("distance", "n"), [("footrule", 40), ("spearman", 12), ("cayley", 40), ("hamming", 40), ("ulam", 30)]
)
def test_distances_of_draws_of_many_items(distance, n):
    sums = Mallows(range(n), 0.5, distance=distance)
    spread = 3.0 / np.sqrt(sums._sums.variance(0.0))
    for decay in (spread, 1.0):
        made = Mallows(np.random.default_rng(1).permutation(n), np.exp(-decay), distance=distance)
        drawn = made.sample(1000, random_state=2).orders
        found = distance_matrix(drawn, np.array([made.center_order]), metric=distance)[:, 0]
        variance = made._sums.variance(decay)
        assert abs(found.mean() - made.expected_distance()) < 4.5 * np.sqrt(variance / 1000)
        assert 0.7 < found.var() / variance < 1.4


@pytest.mark.parametrize("distance", OTHERS)
def test_draws_do_not_depend_on_threads_or_on_how_many_there_are(distance):
    made = model(distance, 0.7)
    many = made.sample(300, random_state=3).orders
    with at_most(1):
        assert np.array_equal(made.sample(300, random_state=3).orders, many)
    assert np.array_equal(made.sample(7, random_state=3).orders, many[:7])
    assert len(made.sample(0)) == 0


@pytest.mark.parametrize("distance", OTHERS)
@pytest.mark.parametrize(
    "said",
    [
        Rankings.from_orders([["b"], ["b", "a"]], items=ITEMS, unlisted="below"),
        Rankings.from_orders([["b", "a", "c"], ["d", "a"]], items=ITEMS, unlisted="unknown"),
        Preferences.from_pairs([("x", "d", "a"), ("x", "c", "a"), ("y", "b", "a")], items=ITEMS),
        Preferences.from_levels([[["a", "b"], ["c", "d"]], [["d"], ["a", "b"]]], items=ITEMS),
    ],
    ids=["top", "subset", "pairs", "levels"],
)
def test_what_is_less_than_a_ranking_has_the_probability_of_all_that_agree(distance, said):
    p = exact(distance, 0.6)
    found = np.exp(model(distance, 0.6).log_prob(said))
    table = Preferences.from_rankings(said) if isinstance(said, Rankings) else said
    for row in range(len(said)):
        mentioned, better = table.closure(row)
        ranks = np.argsort(ALL, axis=1)
        agrees = np.ones(24, bool)
        for a, b in zip(*np.nonzero(better), strict=True):
            agrees &= ranks[:, mentioned[a]] < ranks[:, mentioned[b]]
        if table.rest_below[row]:
            for a in mentioned:
                for b in set(range(4)) - set(mentioned.tolist()):
                    agrees &= ranks[:, a] < ranks[:, b]
        assert found[row] == pytest.approx(p[agrees].sum(), rel=1e-12)
        assert not agrees.all()


@pytest.mark.parametrize("distance", OTHERS)
def test_descriptions_and_copies(distance):
    made = model(distance, 0.25)
    assert made.distance == distance
    assert isinstance(made, Mallows)
    for twin in (distribution_from_description(made.describe()), pickle.loads(pickle.dumps(made))):
        assert twin == made == copy.deepcopy(made)
    assert made != model(distance, 0.26)
    assert made != Mallows(CENTER, 0.25, items=ITEMS)
    assert repr(made).startswith(f"Mallows: 4 items, {distance} distance, dispersion 0.25, center c")
    assert made.mode == CENTER


def test_what_is_refused():
    made = model("cayley", 0.5)
    with pytest.raises(DataError, match="log_prob takes what an agent said"):
        made.condition(Rankings.from_orders([["a"]], items=ITEMS, unlisted="below"))
    with pytest.raises(DataError, match="no insertion probabilities"):
        made.insertion_log_probabilities()
    with pytest.raises(DataError, match="one dispersion"):
        Mallows(CENTER, [0.1, 0.2, 0.3, 0.4], distance="ulam")
    with pytest.raises(ParameterError, match="distance='l2' must be one of kendall, footrule"):
        Mallows(CENTER, 0.5, distance="l2")
    top = Rankings.from_orders([list(range(3))], items=range(40), unlisted="below")
    with pytest.raises(DataError, match="too many of them"):
        Mallows(range(40), 0.5, distance="footrule").log_prob(top)
    with pytest.raises(DataError, match="draws rankings of up to 70 items"):
        Mallows(range(71), 0.5, distance="ulam").sample()
