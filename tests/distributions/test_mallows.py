"""Mallows: numbers against many digits, everything else against enumeration, draws against both."""

from __future__ import annotations

import json

import mpmath
import numpy as np
import pytest

from permix import Mallows, Preferences, Rankings, RepeatedInsertion
from permix.data.distances import distance
from permix.distributions import insertion_jit as insertion_distributions
from permix.distributions.base import distribution_from_description
from permix.distributions.mallows import mean_displacements
from permix.errors import DataError
from permix.kernels import mallows
from permix.kernels.streams import fill_uniform, new_stream, open_stream, uniform
from permix.runtime.threads import at_most
from tests.oracles import mallows as oracle
from tests.oracles import ranking_models

DECAYS = [0.0, 1e-300, 1e-16, 1e-12, 1e-8, 1e-5, 1e-3, 0.02, 0.1, 0.33, 0.5, 0.7, 1.0, 3.0, 50.0, np.inf]
SIZES = (2, 3, 10, 100, 10_000)
CENTER = ("c", "a", "d", "b")
ITEMS = ("a", "b", "c", "d")
WEIGHTS = (0.9, 0.3, 0.8, 0.5)
DISPERSIONS = [0.0, 0.3, 0.8, 1.0, WEIGHTS, (0.5, 0.0, 1.0, 0.25)]


def relative_error(found, exact):
    return float(abs(mpmath.mpf(float(found)) - exact) / exact) if exact else abs(float(found))


def distribution_of(dispersion, center=CENTER):
    if np.ndim(dispersion):
        return oracle.weighted_mallows(center, dispersion)
    return ranking_models.mallows(center, dispersion)


# Kernels.


@pytest.mark.parametrize(
    ("decay", "sizes"),
    [
        *((decay, (*SIZES[:-1], 1000)) for decay in DECAYS),
        *(pytest.param(decay, SIZES[-1:], marks=pytest.mark.slow) for decay in DECAYS),
    ],
)
def test_normalizer_and_moments_in_many_digits(decay, sizes):
    for n, (log_total, mean, variance) in oracle.moments(decay, sizes).items():
        assert relative_error(mallows.log_normalizer(decay, n), log_total) < 1e-12
        for found, exact in zip(mallows.distance_moments(decay, n), (mean, variance), strict=True):
            assert relative_error(found, exact) < 1e-12
        decays = np.full(n, decay)
        assert relative_error(mallows.weighted_log_normalizer(decays), log_total) < 1e-12
        assert relative_error(mean_displacements(decays).sum(), mean) < 1e-12


def test_the_textbook_formula_would_fail():
    _, mean, _ = oracle.moments(1e-8, (10,))[10]
    assert relative_error(oracle.naive_mean_distance(1e-8, 10), mean) > 1e-12


@pytest.mark.parametrize("decay", [d for d in DECAYS if d == 0 or d > 1e-20])
def test_discordance_in_many_digits(decay):
    found = mallows.discordance_by_gap(decay, 1000)
    for gap in (1, 2, 3, 10, 333, 999):
        exact = oracle.discordance(decay, gap)
        if exact == 0 or exact > 1e-300:
            assert relative_error(found[gap], exact) < 1e-12


@pytest.mark.parametrize("n", SIZES)
def test_decay_from_mean_undoes_mean(n):
    for decay in DECAYS[1:-1]:
        mean = mallows.distance_moments(decay, n)[0]
        found = mallows.dispersion_from_mean(mean, n)
        assert mallows.distance_moments(found, n)[0] == pytest.approx(mean, rel=1e-14)
        if decay >= 1e-3:  # where the mean, a double, still determines it
            assert found == pytest.approx(decay, rel=1e-11)


def test_decay_from_mean_at_the_ends():
    assert mallows.dispersion_from_mean(0.0, 10) == np.inf
    assert mallows.dispersion_from_mean(22.5, 10) == 0.0
    assert mallows.dispersion_from_mean(30.0, 10) == 0.0
    assert mallows.dispersion_from_mean(1e-300, 10) == pytest.approx(np.log(9) + 300 * np.log(10), rel=1e-14)
    assert 0 < mallows.dispersion_from_mean(np.nextafter(22.5, 0), 10) < 1e-14


def test_rows_of_uniforms_are_those_of_the_streams():
    rng = np.random.Generator(np.random.Philox(key=[7, 9], counter=[0, 5, 3, 0]))
    out = np.empty(24)
    fill_uniform(np.uint64(7), np.uint64(9), 3, 5, out)
    assert np.array_equal(out, rng.random(24))
    stream = new_stream()
    open_stream(stream, np.uint64(7), np.uint64(9), 3, 5)
    assert out[0] == uniform(stream)


@pytest.mark.parametrize("decay", [0.0, 1e-20, 1e-6, 0.3, 5.0, np.inf])
def test_one_table_gives_the_displacements_of_every_step(decay):
    n = 40
    thresholds, guide = insertion_distributions.displacement_table(decay, n)
    assert thresholds[-1] == 1.0
    for i in (0, 1, 7, n - 1):
        k = np.arange(i + 1)
        weights = np.exp(np.where(k > 0, -decay * np.maximum(k, 1), 0.0))
        assert np.allclose(
            thresholds[: i + 1] / thresholds[i], np.cumsum(weights) / weights.sum(), atol=1e-14
        )
    edges = np.arange(guide.size) / guide.size
    assert np.array_equal(guide, np.searchsorted(thresholds, edges, side="right"))


# The class against enumeration.


@pytest.mark.parametrize("dispersion", DISPERSIONS)
def test_probabilities_of_full_rankings_and_top_lists(dispersion):
    model, distribution = Mallows(CENTER, dispersion, items=ITEMS), distribution_of(dispersion)
    assert model.items == ITEMS
    assert np.allclose(
        np.exp(model.log_prob(list(distribution))), list(distribution.values()), rtol=1e-12, atol=0
    )
    for length in (1, 2, 3):
        tops = sorted({r[:length] for r in distribution})
        exact = [oracle.top_list_probability(distribution, top) for top in tops]
        assert np.allclose(np.exp(model.log_prob(tops)), exact, rtol=1e-12, atol=1e-300)
    assert np.exp(-model.log_normalizer()) == pytest.approx(distribution[CENTER], rel=1e-12)


@pytest.mark.parametrize("dispersion", DISPERSIONS)
def test_summaries(dispersion):
    model, distribution = Mallows(CENTER, dispersion, items=ITEMS), distribution_of(dispersion)
    assert model.entropy() == pytest.approx(oracle.entropy(distribution), rel=1e-12, abs=1e-300)
    exact = oracle.expected_distance(distribution, CENTER)
    assert model.expected_distance() == pytest.approx(exact, rel=1e-12, abs=1e-300)
    assert np.allclose(model.pairwise(), oracle.pairwise(distribution, ITEMS), atol=1e-14)
    assert np.allclose(model.rank_marginals(), oracle.rank_marginals(distribution, ITEMS), atol=1e-14)
    assert distribution[model.mode] == max(distribution.values())


def test_five_items():
    center = (3, 0, 4, 1, 2)
    model, distribution = Mallows(center, 0.6), distribution_of(0.6, center)
    assert np.allclose(
        np.exp(model.log_prob(np.array(list(distribution)))), list(distribution.values()), rtol=1e-12
    )
    assert np.allclose(model.pairwise(), oracle.pairwise(distribution, range(5)), atol=1e-14)
    assert np.allclose(model.rank_marginals(), oracle.rank_marginals(distribution, range(5)), atol=1e-14)


def test_dispersions_belong_to_the_items_of_the_center():
    model = Mallows(CENTER, WEIGHTS)
    twin = oracle.weights_by_rank(CENTER, WEIGHTS)
    assert np.max(np.abs(np.exp(model.log_prob(list(twin))) - list(twin.values()))) > 0.01
    with_other_first = Mallows(CENTER, (0.1, *WEIGHTS[1:]))
    assert np.array_equal(model.log_prob(list(twin)), with_other_first.log_prob(list(twin)))


def test_equal_weights_are_no_weights():
    plain, weighted = Mallows(range(60), 0.7), Mallows(range(60), [0.7] * 60)
    draws = plain.sample(50, random_state=1)
    assert np.allclose(plain.log_prob(draws), weighted.log_prob(draws), rtol=1e-13)
    short = Rankings.from_orders(draws.orders[:, :7], n_items=60)
    assert np.allclose(plain.log_prob(short), weighted.log_prob(short), rtol=1e-12)
    assert np.allclose(plain.pairwise(), weighted.pairwise(), atol=1e-13)
    assert plain.entropy() == pytest.approx(weighted.entropy(), rel=1e-13)


@pytest.mark.parametrize("dispersion", [0.3, WEIGHTS])
def test_pairs_with_an_unknown_rest(dispersion):
    model, distribution = Mallows(CENTER, dispersion, items=ITEMS), distribution_of(dispersion)
    mixed = Rankings.from_orders(
        [["b", "c"], ["c", "d"], ["d"], ["d", "a"]], items=ITEMS, unlisted=["unknown"] * 3 + ["below"]
    )
    exact = [
        oracle.pairwise(distribution, ITEMS)[1, 2],
        oracle.pairwise(distribution, ITEMS)[2, 3],
        1.0,
        oracle.top_list_probability(distribution, ("d", "a")),
    ]
    assert np.allclose(np.exp(model.log_prob(mixed)), exact, rtol=1e-12)


@pytest.mark.parametrize("dispersion", [0.0, 0.4, 1.0, WEIGHTS])
def test_draws_follow_the_distribution(dispersion):
    distribution, size = distribution_of(dispersion), 20_000
    draws = Mallows(CENTER, dispersion).sample(size, random_state=3)
    names = np.array(CENTER)[draws.orders]
    assert ranking_models.total_variation(names, distribution) < ranking_models.total_variation_bound(
        size, 24
    )


def test_the_bound_rejects_an_off_by_one_insertion():
    size = 5_000
    draws = oracle.sample_off_by_one(np.random.default_rng(3), CENTER, 0.4, size)
    bound = ranking_models.total_variation_bound(size, 24)
    assert ranking_models.total_variation(draws, distribution_of(0.4)) > bound


@pytest.mark.parametrize("n", [2, 65, 256, 257, 512, 513, 2000])
@pytest.mark.parametrize("weighted", [False, True])
def test_draws_of_any_size_have_the_mean_distance(n, weighted):
    size, phi = 400, 0.97
    model = Mallows(np.arange(n)[::-1], np.full(n, phi) if weighted else phi)
    draws = model.sample(size, random_state=5)
    assert np.array_equal(np.sort(draws.orders, axis=1), np.tile(np.arange(n), (size, 1)))
    variance = mallows.distance_moments(-np.log(phi), n)[1]
    found = distance(draws, np.tile(np.arange(n)[::-1], (size, 1))).mean()
    # Five standard errors: exceeded once in two million.
    assert abs(found - model.expected_distance()) < 5 * np.sqrt(variance / size)


@pytest.mark.parametrize("n", [200, 400, 1000])
def test_ways_of_growing_an_ordering_agree(n):
    rng = np.random.default_rng(0)
    places = insertion_distributions.place_scratch(n, 40)
    lanes = places.shape[1]
    drawn = (rng.random((n, lanes)) * np.arange(1, n + 1)[:, None]).astype(places.dtype)
    places[...] = drawn
    out = np.empty((lanes, n), np.int32)
    center = rng.permutation(n).astype(np.int32)
    insertion_distributions.grow_orderings(
        center[None], np.zeros(lanes, np.int64), places, lanes, 0, np.empty(n, np.int64), out
    )
    for lane in range(lanes):
        naive = []
        for i in range(n):
            naive.insert(int(drawn[i, lane]), int(center[i]))
        assert naive == out[lane].tolist()


def test_draws_do_not_depend_on_threads_or_size():
    model = Mallows(range(100), 0.9)
    with at_most(3):
        many = model.sample(2000, random_state=11)
    with at_most(1):
        alone = model.sample(2000, random_state=11)
    assert many == alone
    assert model.sample(7, random_state=11) == many[:7]
    assert model.sample(2000, random_state=12) != many
    rng = np.random.default_rng(11)
    assert model.sample(7, random_state=rng) == many[:7]
    assert model.sample(7, random_state=rng) != many[:7]


def test_ten_thousand_items():
    center = np.random.default_rng(0).permutation(10_000)
    for phi in (0.0, 1e-300, 0.5, 1 - 1e-12, 1.0):
        model = Mallows(center, phi)
        draws = model.sample(3, random_state=0)
        scores = model.log_prob(draws)
        assert np.all(np.isfinite(scores))
        assert np.isfinite(model.entropy())
        assert np.isfinite(model.log_normalizer())
        # The log-probability has mean -entropy and a variance that is λ² that of the distance.
        decay = model.decay[0]
        spread = 0.0 if phi == 0 else decay * np.sqrt(mallows.distance_moments(decay, 10_000)[1])
        assert np.all(np.abs(scores + model.entropy()) <= 6 * spread + 1e-8)
    uniform_model = Mallows(center, 1.0)
    assert uniform_model.entropy() == pytest.approx(float(mpmath.loggamma(10_001)), rel=1e-12)
    assert Mallows(center, 0.0).sample(1).orders[0].tolist() == center.tolist()


# Behavior.


def test_items_are_aligned_by_name():
    model = Mallows(["b", "a", "c"], 0.5)
    votes = Rankings.from_orders([["a", "b", "c"]], items=["c", "b", "a"])
    assert model.log_prob(votes)[0] == model.log_prob([["a", "b", "c"]])[0]
    assert model.log_prob(votes)[0] == pytest.approx(np.log(0.5) - model.log_normalizer())


def test_center_as_rankings():
    votes = Rankings.from_orders([["b", "a", "c"], ["a", "b", "c"]], items=["a", "b", "c"])
    assert Mallows(votes[0], 0.5) == Mallows(["b", "a", "c"], 0.5, items=["a", "b", "c"])
    assert Mallows(votes[0], 0.5) != Mallows(votes[1], 0.5)
    assert Mallows(votes[0], 0.5) != Mallows(votes[0], 0.6)
    assert hash(Mallows(votes[0], 0.5)) == hash(Mallows(votes[0], 0.5))


@pytest.mark.parametrize("dispersion", [0.1, 0.0, [0.1, 0.2, 1 / 3]])
def test_description_survives_json(dispersion):
    model = Mallows(["b", "a", "c"], dispersion)
    assert distribution_from_description(json.loads(json.dumps(model.describe()))) == model


def test_repr_names_the_items():
    assert repr(Mallows(["salmon", "egg"], 0.25)) == "Mallows: 2 items, dispersion 0.25, center salmon ≻ egg"
    assert "dispersions 0.2 to 0.4" in repr(Mallows(["x", "y", "z"], [1, 0.2, 0.4]))
    assert "(2 more)" in repr(Mallows(range(10), 0.5))


def test_parameters_cannot_be_changed():
    model = Mallows(CENTER, WEIGHTS)
    for array in (model.decay, model.dispersion, model.center_order):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


@pytest.mark.parametrize(
    ("center", "dispersion", "message"),
    [
        (["a", "b"], 1.5, "dispersion 1.5 is not between 0"),
        (["a", "b"], -0.1, "dispersion -0.1"),
        (["a", "b"], 1.0000001, "dispersion 1.0000001"),
        (["a", "b"], np.nan, "dispersion nan"),
        (["a", "b"], "wide", "must be a number"),
        (["a", "b"], [0.5, 2.0], "dispersion 2 of 'b'"),
        (["a", "b"], [0.5, 0.5, 0.5], "one for each of the 2 items"),
        (["a", "b", "a"], 0.5, "'a' is listed twice"),
        ([], 0.5, "empty"),
        ("ab", 0.5, "sequence of items"),
        ({"a", "b"}, 0.5, "sequence of items"),
        ([["a", "b"]], 0.5, "one ordering"),
        (7, 0.5, "sequence of items"),
        (Rankings.from_orders([["a", "b"], ["b", "a"]]), 0.5, "here are 2"),
        (Rankings.from_orders([["a"]], items=["a", "b"]), 0.5, "leaves out 'b'"),
    ],
)
def test_bad_parameters(center, dispersion, message):
    with pytest.raises(DataError, match=message):
        Mallows(center, dispersion)


def test_bad_rankings():
    model = Mallows(["a", "b", "c", "d"], 0.5)
    with pytest.raises(DataError, match=r"does not rank 'x'.*do not know 'd'"):
        model.log_prob(Rankings.from_orders([["a", "b", "c", "x"]]))
    with pytest.raises(DataError, match=r"agent 'anna'.*condition"):
        model.log_prob(
            Rankings.from_orders(
                [["a", "b", "c"]], items=["a", "b", "c", "d"], unlisted="unknown", agents=["anna"]
            )
        )
    with pytest.raises(DataError, match="condition"):
        model.log_prob(Preferences.from_pairs([(0, "a", "b")], items=["a", "b", "c", "d"]))
    with pytest.raises(DataError, match="wrap a single ranking"):
        model.log_prob(["a", "b", "c", "d"])
    with pytest.raises(DataError, match="size"):
        model.sample(-1)
    with pytest.raises(DataError, match="random_state"):
        model.sample(1, random_state="seed")


# Real data.


@pytest.mark.realdata
def test_one_component_on_sushi(data_folder):
    from permix import kemeny
    from permix.datasets import load_sushi

    rankings = load_sushi("a").data
    fitted = {}
    # PerMallows, rankdist and BayesMallows give 0.2412, around the Borda ordering.
    for method, expected in (("borda", 0.24125), ("exact", 0.24192)):
        best = kemeny(rankings, method=method)
        decay = mallows.dispersion_from_mean(best.score / rankings.n_agents, rankings.n_items)
        assert decay == pytest.approx(expected, abs=5e-6)
        model = Mallows(best.ranking, np.exp(-decay), items=rankings.items)
        fitted[method] = rankings.counts @ model.log_prob(rankings)
        # At the maximum the mean log-probability is minus the entropy.
        assert fitted[method] == pytest.approx(-rankings.n_agents * model.entropy(), rel=1e-12)
        for other in (decay - 0.01, decay + 0.01):
            elsewhere = Mallows(best.ranking, np.exp(-other), items=rankings.items)
            assert rankings.counts @ elsewhere.log_prob(rankings) < fitted[method]
    assert fitted["exact"] > fitted["borda"]


def test_rankings_that_are_none():
    model = Mallows(["a", "b"], 0.5)
    for nothing in (None, 3):
        with pytest.raises(DataError, match="rows of items"):
            model.log_prob(nothing)
    assert "dispersion 0," in repr(Mallows(["a", "b"], -0.0))


@pytest.mark.parametrize("n", [2, 3, 9])
def test_pairs_one_by_one_are_those_of_the_table(n):
    """A few pairs under a dispersion for each item, or under any probabilities, without the table of all."""
    rng = np.random.default_rng(n)
    model = Mallows(rng.permutation(n), rng.random(n), items=range(n))
    matrix = RepeatedInsertion(model.center, np.exp(model.insertion_log_probabilities()), model.items)
    table = model.pairwise()
    for a, b in zip(*np.nonzero(~np.eye(n, dtype=bool)), strict=True):
        row = Rankings.from_orders([[a, b]], n_items=n, unlisted="unknown")
        assert np.exp(model.log_prob(row)[0]) == pytest.approx(table[a, b], rel=1e-12)
        assert np.exp(matrix.log_prob(row)[0]) == pytest.approx(table[a, b], rel=1e-12)
    many = Rankings.from_orders([[0, 1], [1, 0]] * n, n_items=n, unlisted="unknown")
    np.testing.assert_allclose(np.exp(model.log_prob(many)[:2]), [table[0, 1], table[1, 0]], rtol=1e-12)


def test_a_pair_of_many_items():
    """Equal dispersions for each item are one dispersion; n³ operations would take an hour."""
    n = 3000
    pair = Rankings.from_orders([[5, 2800], [2800, 5]], n_items=n, unlisted="unknown")
    expected = Mallows(range(n), 0.998).log_prob(pair)
    np.testing.assert_allclose(Mallows(range(n), [0.998] * n).log_prob(pair), expected, rtol=1e-9)
