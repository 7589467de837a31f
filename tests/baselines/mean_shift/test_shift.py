"""BlurringMeanShift against plain Python, and as users meet it."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from itertools import combinations, permutations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils.validation import validate_data

from permix import BlurringMeanShift
from permix.baselines.mean_shift import fit as mean_shift
from permix.baselines.mean_shift import shift as blurring
from permix.baselines.mean_shift.fit import fit_mean_shift
from permix.baselines.mean_shift.parameters import MeanShiftParameters
from permix.baselines.mean_shift.shift import BlurringShift, distinct_lists
from permix.baselines.mean_shift.shift_jit import fill_behind, opposed_pairs, stagewise_order
from permix.data import Preferences, Rankings
from permix.datasets import make_generalized_mallows_mixture
from permix.errors import DataError, PermixWarning
from permix.estimators.ranking_lists import as_top_lists
from permix.partitions import adjusted_rand
from permix.runtime import progress
from permix.runtime.progress import Display
from tests.estimators.conventions import conventions
from tests.oracles import mallows_kde as oracle
from tests.reference import mean_shift as reference


def random_lists(seed, n_lists, n_items, lengths):
    """Lists around three centers, of different lengths, some of them several times."""
    rng = np.random.default_rng(seed)
    centers = [rng.permutation(n_items) for _ in range(3)]
    found = []
    for _ in range(n_lists):
        center = centers[rng.integers(3)]
        noisy = center[np.argsort(np.arange(n_items) + rng.gumbel(size=n_items) * 1.2)]
        found.append(tuple(noisy[: rng.integers(lengths[0], lengths[1] + 1)].tolist()))
    return found


def as_rankings(lists, n_items, **options):
    return Rankings.from_orders(lists, n_items=n_items, **options)


def fitted(lists, n_items, **options):
    return BlurringMeanShift(progress=False, **options).fit(as_rankings(lists, n_items))


def centers_of(model):
    """Where every agent came to rest."""
    rows = model.centers_.orders[model.labels_]
    return [tuple(item for item in row if item >= 0) for row in rows.tolist()]


def shift_once(lists, n_items, length, decay):
    """One iteration of compiled code, as a dictionary."""
    table = as_rankings(lists, n_items)
    data, _ = distinct_lists(table.orders, table.counts)
    shift = BlurringShift(data, n_items, length, MeanShiftParameters(), Display(False))
    moved = shift.shifted(decay).tolist()
    return {
        tuple(item for item in old if item >= 0): tuple(item for item in new if item >= 0)
        for old, new in zip(data.orders.tolist(), moved, strict=True)
    }


# Distances.


def all_lists(n_items):
    return [order for t in range(1, n_items + 1) for order in permutations(range(n_items), t)]


def compiled_distances(lists, n_items):
    """Distance of every list (rows) from every other as a center (columns)."""
    table = as_rankings(lists, n_items)
    found = np.empty((len(lists), len(lists)), dtype=np.int64)
    for k, (center, size) in enumerate(zip(table.orders, table.lengths, strict=True)):
        ranks = np.full(n_items, size, dtype=np.int64)
        ranks[center[:size]] = np.arange(size)
        found[:, k] = [
            opposed_pairs(row, length, ranks, size)
            for row, length in zip(table.orders, table.lengths, strict=True)
        ]
    return found


def test_distances_are_pairs_in_opposite_orders_and_sums_of_stage_codes():
    lists = all_lists(4)
    found = compiled_distances(lists, 4)
    for i, one in enumerate(lists):
        for j, other in enumerate(lists):
            assert found[i, j] == reference.distance(one, other) == reference.stage_code_sum(one, other, 4)
    np.testing.assert_array_equal(found, found.T)
    for i, j in combinations(range(len(lists)), 2):
        assert found[i, j] > 0 or len(lists[i]) != len(lists[j])


@pytest.mark.parametrize("lengths", [(2, 6), (40, 60), (66, 140)])
def test_distances_of_long_lists(lengths):
    lists = random_lists(0, 3, 150, lengths) + random_lists(1, 2, 150, (3, 70))
    found = compiled_distances(lists, 150)
    np.testing.assert_array_equal(found, [[reference.distance(a, b) for b in lists] for a in lists])


# One iteration, and all of them, against the reference and its broken twins.


CASES = {
    "short": (random_lists(2, 25, 7, (3, 3)), 7, 3),
    "mixed": (random_lists(3, 25, 7, (1, 4)), 7, 4),
    "cut": (random_lists(4, 20, 6, (3, 6)), 6, 2),
    "longer": (random_lists(5, 20, 7, (2, 3)), 7, 5),
    "full": (random_lists(6, 20, 5, (4, 4)), 5, 4),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("decay", [0.05, 0.6, 3.0])
def test_one_iteration(case, decay):
    lists, n_items, length = CASES[case]
    points = Counter(lists)
    found = shift_once(lists, n_items, length, decay)
    assert found.keys() == points.keys()
    for point, moved in found.items():
        weights = reference.weights_around(point, points, decay)
        assert moved == reference.consensus(point, weights, length)


@pytest.mark.parametrize("case", CASES)
def test_stagewise_orders(case):
    lists, n_items, _ = CASES[case]
    rng = np.random.default_rng(0)
    differ = 0
    for _ in range(10):
        weights = dict(zip(lists, rng.exponential(size=len(lists)), strict=True))
        table = as_rankings(list(weights), n_items)
        totals = np.array(list(weights.values()))
        behind, place = np.empty((n_items, n_items)), np.arange(n_items)
        fill_behind(table.orders, table.lengths, totals, place, behind, n_items)
        lead, backing = np.zeros(n_items), np.zeros(n_items)
        for order, weight in weights.items():
            for rank, item in enumerate(order):
                lead[item] += weight * (len(order) - rank)
                backing[item] += weight
        cost = totals @ table.lengths - lead
        found = stagewise_order(place, backing, behind, cost, n_items, 0.0)
        expected = reference.stagewise((), weights, n_items, 0.0)
        assert found[: len(expected)].tolist() == expected  # what nobody lists comes last
        differ += not np.array_equal(found, np.argsort(-lead))
    assert differ > 0  # sorting by mean ranks would not do


@pytest.mark.parametrize("case", CASES)
def test_all_iterations(case):
    lists, n_items, length = CASES[case]
    model = fitted(lists, n_items, length=length)
    # The last item of a full ranking says nothing.
    where, decays, converged = reference.blurring_mean_shift([row[: n_items - 1] for row in lists], length)
    assert centers_of(model) == where
    np.testing.assert_allclose(model.history_["decay"], decays, rtol=1e-12)
    assert model.converged_ is converged is True
    assert model.n_iter_ == len(decays) > 1
    assert model.n_clusters_ == len(set(where)) < len(set(lists))
    assert model.cluster_sizes_.tolist() == sorted(Counter(where).values(), reverse=True)


@pytest.mark.parametrize("twin", [{"find": reference.without_weights}, {"width": reference.ignoring_counts}])
def test_broken_twins_end_elsewhere(twin):
    lists, n_items, length = CASES["short"]
    model = fitted(lists, n_items, length=length)
    where, decays, _ = reference.blurring_mean_shift(lists, length, **twin)
    assert centers_of(model) != where or not np.allclose(model.history_["decay"], decays)


def test_moving_single_items_beats_the_stagewise_order_alone():
    gained = 0
    for lists, _, length in CASES.values():
        points = Counter(lists)
        for point in points:
            weights = reference.weights_around(point, points, 0.05)
            greedy = reference.stagewise(point, weights, 2 * length, 0.0)
            better = reference.improved(greedy, weights, 1e-9)
            gained += reference.against(greedy, weights) > reference.against(better, weights) + 1e-6
    assert gained > 0


def test_a_fixed_decay():
    lists, n_items, length = CASES["mixed"]
    model = fitted(lists, n_items, length=length, decay=0.9)
    assert centers_of(model) == reference.blurring_mean_shift(lists, length, decay=0.9)[0]
    assert set(model.history_["decay"]) == {0.9}


def test_the_heuristic_by_hand():
    # Three agents, one of whom is 4 pairs away from two others, lists of two items: d = 8/3, t = 2.
    with pytest.warns(PermixWarning, match="no list moved"):
        model = fitted([(0, 1), (0, 1), (2, 3)], 4)
    assert model.history_["decay"][0] == pytest.approx(math.log(1 + 2 / (8 / 3)))


# Invariance.


DATA = make_generalized_mallows_mixture(300, 9, 3, theta=0.9, lengths=(3, 5), random_state=7).data


def test_the_order_of_data_does_not_matter():
    model = BlurringMeanShift(progress=False).fit(DATA)
    shuffled = np.random.default_rng(0).permutation(len(DATA))
    other = BlurringMeanShift(progress=False).fit(DATA[shuffled])
    assert other.centers_ == model.centers_
    np.testing.assert_array_equal(other.labels_, model.labels_[shuffled])
    np.testing.assert_array_equal(other.history_, model.history_)
    assert other.decay_ == model.decay_


def test_counts_stand_for_agents():
    model = BlurringMeanShift(progress=False).fit(DATA)
    collapsed = DATA.collapse()
    assert len(collapsed) < len(DATA)
    other = BlurringMeanShift(progress=False).fit(collapsed)
    assert other.centers_ == model.centers_
    np.testing.assert_array_equal(other.history_, model.history_)
    again = BlurringMeanShift(progress=False).fit(collapsed.expand())
    np.testing.assert_array_equal(np.repeat(other.labels_, collapsed.counts), again.labels_)
    assert other.score(collapsed) == pytest.approx(model.score(DATA), rel=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_names_of_items_do_not_matter(seed):
    model = BlurringMeanShift(progress=False).fit(DATA)
    new = np.append(np.random.default_rng(seed).permutation(9), -1).astype(np.int32)
    other = BlurringMeanShift(progress=False).fit(Rankings._from_arrays(new[DATA.orders], range(9)))
    assert adjusted_rand(other.labels_, model.labels_) == 1.0
    renamed = {tuple(row) for row in new[model.centers_.orders].tolist()}
    assert renamed == {tuple(row) for row in other.centers_.orders.tolist()}
    np.testing.assert_allclose(other.history_["decay"], model.history_["decay"], rtol=1e-12)


def test_the_number_of_threads_does_not_matter(monkeypatch):
    model = BlurringMeanShift(progress=False, n_jobs=1).fit(DATA)
    monkeypatch.setattr(blurring, "PIECE_PAIRS", 100)
    other = BlurringMeanShift(progress=False, n_jobs=3).fit(DATA)
    assert other.centers_ == model.centers_
    np.testing.assert_array_equal(other.history_, model.history_)


def test_a_full_ranking_says_no_more_than_all_but_its_last_item():
    full = make_generalized_mallows_mixture(80, 5, 2, theta=1.0, random_state=1).data
    model = BlurringMeanShift(progress=False).fit(full)
    assert model.centers_.is_full
    cut = Rankings._from_arrays(full.orders[:, :4], full.items)
    other = BlurringMeanShift(progress=False).fit(cut)
    assert other.centers_.lengths.tolist() == [4] * other.n_clusters_
    np.testing.assert_array_equal(other.centers_.orders, model.centers_.orders[:, :4])
    np.testing.assert_array_equal(other.labels_, model.labels_)
    assert other.decay_ == model.decay_


# Clusters of what a user has.


def test_three_kinds_are_found():
    made = make_generalized_mallows_mixture(1000, 12, 3, theta=1.0, lengths=5, random_state=0)
    model = BlurringMeanShift(progress=False).fit(made.data)
    assert adjusted_rand(model.labels_, made.labels) > 0.9
    # The standard error of θ from 5000 stages is about 0.02.
    assert model.decay_ == pytest.approx(1.0, abs=0.08)
    test = make_generalized_mallows_mixture(
        1000, 12, 3, theta=1.0, lengths=5, centers=made.centers, random_state=1
    )
    assert adjusted_rand(model.predict(test.data), test.labels) > 0.9


def test_many_items(monkeypatch):
    made = make_generalized_mallows_mixture(300, 300, 4, theta=1.0, lengths=(4, 6), random_state=0)
    model = BlurringMeanShift(progress=False).fit(made.data)
    assert adjusted_rand(model.labels_, made.labels) > 0.9
    # Looking at all items instead of the most promising finds the same.
    monkeypatch.setattr(blurring, "CANDIDATES", 300)
    assert BlurringMeanShift(progress=False).fit(made.data).centers_ == model.centers_


def test_one_list_and_lists_that_only_go_on():
    one = fitted([(2, 0, 1)], 5)
    assert (one.n_clusters_, one.n_iter_, one.converged_) == (1, 1, True)
    assert one.centers_.orders.tolist() == [[2, 0, 1]]
    longer = fitted([(2,), (2, 0), (2, 0, 1)], 5)
    assert longer.centers_.orders.tolist() == [[2, 0, 1]]
    assert math.isinf(longer.history_["decay"][0])
    assert fitted([(2, 0, 1)], 5, length=1).centers_.orders.tolist() == [[2]]


def test_items_without_backing_are_left_out():
    assert fitted([(2, 0, 1)], 6, length=5).centers_.orders.tolist() == [[2, 0, 1]]
    filled = fitted([(0, 1), (0, 1), (2, 3)], 5, length=4, decay=0.5)
    assert filled.centers_.orders.tolist() == [[0, 1, 2, 3], [2, 3, 0, 1]]
    with pytest.warns(PermixWarning, match="no list moved"):  # a weight of e^-32 is none
        apart = fitted([(0, 1), (0, 1), (2, 3)], 5, length=4, decay=8.0)
    assert apart.centers_.orders.tolist() == [[0, 1], [2, 3]]


def test_huge_counts():
    data = Rankings.from_orders([[0, 1], [1, 0], [2, 3]], n_items=4, counts=[4 * 10**9, 10**9, 3 * 10**9])
    model = BlurringMeanShift(progress=False).fit(data)
    assert model.cluster_sizes_.tolist() == [5 * 10**9, 3 * 10**9]


# Densities and prediction.


def poset_of(order, n_items):
    rest = [item for item in range(n_items) if item not in order]
    pairs = set(combinations(order, 2)) | {(a, b) for a in order for b in rest}
    return frozenset((int(a), int(b)) for a, b in pairs)


def test_score_samples_is_the_enumerated_mixture():
    lists = random_lists(8, 40, 4, (2, 3))
    model = fitted(lists, 4, length=2)
    assert model.n_clusters_ > 1
    centers = [poset_of(order, 4) for order in model.centers_.orders.tolist()]
    queries = all_lists(4)
    true = oracle.density(
        centers, model.cluster_sizes_, [poset_of(order, 4) for order in queries], 4, math.exp(-model.decay_)
    )
    found = model.score_samples(as_rankings(queries, 4))
    np.testing.assert_allclose(found, np.log(true), rtol=1e-10)
    for t in (1, 2, 3, 4):
        assert np.exp(found[[len(order) == t for order in queries]]).sum() == pytest.approx(1.0)
    twin = oracle.density(
        centers,
        np.ones(len(centers)),
        [poset_of(order, 4) for order in queries],
        4,
        math.exp(-model.decay_),
    )
    assert not np.allclose(found, np.log(twin))
    assert isinstance(model.score(as_rankings(lists, 4)), float)
    mean = model.score_samples(as_rankings(lists, 4)).mean()
    assert model.score(as_rankings(lists, 4).collapse()) == pytest.approx(mean)


def test_the_decay_of_the_mixture_makes_the_data_most_probable():
    model = BlurringMeanShift(progress=False).fit(DATA)
    best = model.score(DATA)
    for factor in (0.5, 0.99, 1.01, 2.0):
        changed = replace(model._fit, decay=model.decay_ * factor)
        assert changed.log_probability(DATA).mean() < best


def test_predict_is_the_most_probable_center():
    lists = random_lists(8, 40, 4, (2, 3))
    model = fitted(lists, 4, length=2)
    queries = all_lists(4)
    table = oracle.density_table(
        [poset_of(order, 4) for order in model.centers_.orders.tolist()],
        [poset_of(order, 4) for order in queries],
        4,
        math.exp(-model.decay_),
    )
    chances = table * model.cluster_sizes_
    found = model.predict(as_rankings(queries, 4))
    np.testing.assert_allclose(chances[np.arange(len(queries)), found], chances.max(axis=1), rtol=1e-10)
    assert len(set(found)) > 1
    probabilities = model.predict_proba(as_rankings(queries, 4))
    np.testing.assert_allclose(probabilities, chances / chances.sum(axis=1, keepdims=True), rtol=1e-9)
    np.testing.assert_array_equal(probabilities.argmax(axis=1), found)


def test_tables():
    model = BlurringMeanShift(progress=False).fit(DATA)
    table = model.summary()
    assert table["agents"].tolist() == model.cluster_sizes_.tolist()
    assert table["share"].sum() == pytest.approx(1.0)
    first = model.centers_.orders[0]
    assert table["center"][0] == " ≻ ".join(str(item) for item in first[first >= 0])
    row = model.diagnostics().iloc[0]
    assert (row["iterations"], row["converged"], row["interrupted"]) == (model.n_iter_, True, False)
    assert model.log_likelihood_ == pytest.approx(DATA.n_agents * model.score(DATA))


# Interrupts, warnings, progress.


def test_an_interrupt_keeps_finished_iterations(monkeypatch):
    lists, n_items, length = CASES["mixed"]
    shifted = BlurringShift.shifted

    def interrupted(self, decay):
        if len(self.decays) == 1:
            raise KeyboardInterrupt
        return shifted(self, decay)

    monkeypatch.setattr(BlurringShift, "shifted", interrupted)
    with pytest.warns(PermixWarning, match="interrupted"):
        model = fitted(lists, n_items, length=length)
    assert (model.n_iter_, model.converged_) == (1, False)
    assert centers_of(model) == reference.blurring_mean_shift(lists, length, max_iter=1)[0]

    def at_once(self, decay):
        raise KeyboardInterrupt

    monkeypatch.setattr(BlurringShift, "shifted", at_once)
    with pytest.raises(KeyboardInterrupt):
        fitted(lists, n_items, length=length)


@pytest.mark.parametrize("after", [0, 1, 3])
def test_an_interrupt_of_the_last_step_keeps_the_clusters(monkeypatch, after):
    whole = BlurringMeanShift(progress=False).fit(DATA)
    log_densities = mean_shift.RowPairs.log_densities
    calls = []

    def interrupted(self, decays, meter):
        if len(calls) == after:
            raise KeyboardInterrupt
        calls.append(decays)
        return log_densities(self, decays, meter)

    monkeypatch.setattr(mean_shift.RowPairs, "log_densities", interrupted)
    with pytest.warns(PermixWarning, match="interrupted"):
        model = BlurringMeanShift(progress=False).fit(DATA)
    assert model.converged_
    assert model.centers_ == whole.centers_
    if after:
        assert model.decay_ in np.concatenate(calls)
        assert model.decay_ == pytest.approx(whole.decay_, rel=0.6)
    else:
        assert model.decay_ == model.history_["decay"].iloc[-1]


def test_warnings():
    lists, n_items, length = CASES["mixed"]
    with pytest.warns(PermixWarning, match="still move after 1 iterations"):
        model = fitted(lists, n_items, length=length, max_iter=1)
    assert not model.converged_
    with pytest.warns(PermixWarning, match="no list moved"):
        model = fitted(all_lists(3)[3:9], 3, decay=50)
    assert model.n_clusters_ == 6


def test_plain_lines_of_progress(monkeypatch, capsys):
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.0)
    BlurringMeanShift(progress=True).fit(DATA)
    err = capsys.readouterr().err
    assert "iteration 1, distances of" in err
    assert "iteration 2, consensus of" in err
    BlurringMeanShift(progress=False).fit(DATA)
    assert capsys.readouterr().err == ""


# As users meet it.


class FromScores(BlurringMeanShift):
    """Rows are scores of items, the highest is best; scikit-learn's checks make tables of numbers."""

    def _checked(self, X, *, reset):
        scores = validate_data(self, X, reset=reset, dtype=np.float64)
        return Rankings.from_orders(np.argsort(-scores, axis=1, kind="stable"))


@conventions(
    FromScores(progress=False),
    cannot_apply={
        "check_fit2d_1feature": "one item has one ranking; such data are refused",
        "check_clustering": "blobs in the plane are not clusters of rankings of two items",
    },
)
@pytest.mark.filterwarnings("ignore:no list moved")
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


def test_arrays_and_rankings_are_alike():
    orders = np.array([[0, 1, 2, 3], [0, 1, 3, 2], [3, 2, -1, -1], [0, 1, 2, 3]])
    model = BlurringMeanShift(length=2).fit(orders)
    other = clone(model).fit(Rankings.from_orders(orders, n_items=4))
    assert model.centers_.orders.tolist() == other.centers_.orders.tolist() == [[0, 1], [3, 2]]
    np.testing.assert_array_equal(model.labels_, [0, 0, 1, 0])
    np.testing.assert_array_equal(model.fit_predict(orders), [0, 0, 1, 0])
    np.testing.assert_array_equal(model.score_samples(orders), other.score_samples(orders))
    assert model.n_features_in_ == 4
    assert not hasattr(other, "n_features_in_")
    assert not hasattr(clone(model), "labels_")


@pytest.mark.parametrize(
    ("data", "match"),
    [
        (Rankings.from_orders([["a", "b"], ["c", "a"]], unlisted="unknown"), "says nothing about the rest"),
        (Preferences.from_pairs([("anna", "a", "b")], items=list("abc")), "'anna'.*compares pairs"),
        (
            Preferences.from_levels([[["a"], ["b"]], [["a", "c"], ["b"]]], items=list("abc")),
            "ties 'a' and 'c'",
        ),
        (Preferences.from_levels([[["a"]], []], items=list("abc"), agents=[0, 1]), "says nothing"),
        (Rankings.from_orders([["a"]]), "one item"),
        (np.array([[0.5, 1.5]]), "orderings"),
        ("votes.csv", "path"),
    ],
)
def test_bad_data(data, match):
    with pytest.raises(DataError, match=match):
        BlurringMeanShift().fit(data)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"length": 0}, "length=0"),
        ({"length": 2.5}, "length=2.5"),
        ({"length": True}, "length=True"),
        ({"decay": 0.0}, "decay=0.0"),
        ({"decay": math.nan}, "decay=nan"),
        ({"decay": "wide"}, "decay='wide'"),
        ({"max_iter": 0}, "max_iter=0"),
        ({"progress": 3}, "progress"),
        ({"n_jobs": 0}, "n_jobs"),
    ],
)
def test_bad_settings(options, match):
    with pytest.raises(DataError, match=match):
        BlurringMeanShift(**options).fit(DATA)


def test_other_items_are_refused():
    model = BlurringMeanShift(progress=False).fit(DATA)
    with pytest.raises(DataError, match="does not know 'tea'"):
        model.predict(Rankings.from_orders([["tea", "milk"]]))
    with pytest.raises(DataError, match="says nothing about the rest"):
        model.score_samples(Rankings.from_orders([[0, 1]], n_items=9, unlisted="unknown"))


def test_preferences_that_are_lists():
    table = Preferences.from_rankings(DATA)
    assert (
        BlurringMeanShift(progress=False).fit(table).centers_
        == fit_mean_shift(DATA, MeanShiftParameters(progress=False)).centers
    )
    assert as_top_lists(table) == DATA


# Real data.


@pytest.mark.realdata
def test_sushi(data_folder):
    from permix.datasets import load_sushi

    data = load_sushi().data
    train, test = data.split(0.3, random_state=0)
    model = BlurringMeanShift(length=3, progress=False).fit(train)
    assert model.converged_
    assert 1 <= model.n_clusters_ < len(train.collapse()) / 10
    assert model.score(test) > -math.log(math.factorial(10)) + 0.5
