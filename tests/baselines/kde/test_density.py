"""MallowsKDE against enumeration, and as users meet it."""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np
import pytest
from scipy.stats import chisquare
from sklearn.base import clone
from sklearn.utils.validation import validate_data

from permix import Mallows, MallowsKDE
from permix.baselines.kde import bandwidth
from permix.baselines.row_densities import closed_form, sampled
from permix.baselines.row_densities.split_rows import split_rows
from permix.consensus.kemeny import kemeny
from permix.data import Preferences, Rankings
from permix.errors import DataError, PermixWarning
from permix.runtime import progress
from tests.estimators.conventions import conventions
from tests.every_run import first_in_every_run, turns_in_every_run
from tests.oracles import mallows_kde as oracle
from tests.oracles.posets_all import closure, is_partitioned, labeled_posets, random_posets

WEAK_ORDERS = [poset for poset in labeled_posets(4) if is_partitioned(poset, 4)]
COUNTS = np.random.default_rng(0).integers(1, 4, len(WEAK_ORDERS))


def stated_as_pairs(posets, m, counts=None):
    rows = [(i, a, b) for i, poset in enumerate(posets) for a, b in sorted(poset)]
    return Preferences.from_pairs(rows, items=range(m), agents=range(len(posets)), counts=counts)


def blocks_of(poset, m):
    above = [sum((a, b) in poset for a in range(m)) for b in range(m)]
    return [{item for item in range(m) if above[item] == k} for k in sorted(set(above))]


def stated_as_levels(posets, m, counts=None):
    """Levels; the worst block is left out of every second row, as the rest below."""
    rows = []
    for i, poset in enumerate(posets):
        groups = [sorted(block) for block in blocks_of(poset, m)]
        rows.append(groups[:-1] if i % 2 and len(groups) > 1 else groups)
    return Preferences.from_levels(rows, items=range(m), counts=counts)


def poset_of(blocks):
    pairs = combinations(range(len(blocks)), 2)
    return frozenset((a, b) for i, j in pairs for a in blocks[i] for b in blocks[j])


def log_density(training, queries, dispersion, **options):
    model = MallowsKDE(dispersion, random_state=0, progress=False, **options).fit(training)
    return model.score_samples(queries, return_error=True)


# Closed form.


def test_there_are_75_weak_orders_of_four_items():
    assert len(WEAK_ORDERS) == 75


def test_plain_closed_form_is_the_enumerated_sum():
    some = WEAK_ORDERS[::6]
    table = oracle.density_table(some, some, 4, 0.4)
    for i, query in enumerate(some):
        for j, row in enumerate(some):
            value = oracle.log_density_of_blocks(blocks_of(row, 4), blocks_of(query, 4), -np.log(0.4))
            assert value == pytest.approx(np.log(table[i, j]), abs=1e-12)


@pytest.mark.parametrize(
    ("dispersion", "stated"),
    turns_in_every_run([0.0, 1e-3, 0.3, 0.95, 1.0], [stated_as_pairs, stated_as_levels]),
)
def test_partitions_have_the_enumerated_density(stated, dispersion):
    training, queries = stated(WEAK_ORDERS, 4, COUNTS), stated(WEAK_ORDERS, 4)
    values, errors = log_density(training, queries, dispersion)
    true = oracle.density(WEAK_ORDERS, COUNTS, WEAK_ORDERS, 4, dispersion)
    np.testing.assert_allclose(np.exp(values), true, rtol=1e-11)
    assert not errors.any()


@pytest.mark.parametrize("twin", [oracle.without_extensions, oracle.half_ties])
def test_broken_twins_are_rejected(twin):
    true = oracle.density(WEAK_ORDERS, COUNTS, WEAK_ORDERS, 4, 0.3)
    assert np.abs(twin(WEAK_ORDERS, COUNTS, WEAK_ORDERS, 4, 0.3) / true - 1.0).max() > 0.01
    full = [poset for poset in WEAK_ORDERS if len(poset) == 6]  # on full rankings both are right
    counts = np.ones(len(full))
    np.testing.assert_allclose(twin(full, counts, full, 4, 0.3), oracle.density(full, counts, full, 4, 0.3))


def test_comparisons_that_amount_to_partitions_are_found():
    posets = labeled_posets(4)
    rows = split_rows(stated_as_pairs(posets, 4))
    assert rows.partition_rows.tolist() == [i for i, poset in enumerate(posets) if is_partitioned(poset, 4)]
    # One level with the rest unknown says nothing; with the rest below it says something.
    some = Preferences.from_levels([[[0, 1]], [[0, 1]]], items=range(4), rest_below=np.array([False, True]))
    assert np.diff(split_rows(some).partitions.indptr).tolist() == [0, 2]
    assert log_density(some, some[:1], 0.5)[0] == pytest.approx(0.0, abs=1e-12)


def random_blocks(rng, m, sizes):
    """Blocks of these sizes, and what remains."""
    order = rng.permutation(m).tolist()
    ends = np.cumsum(sizes)
    return [set(part) for part in np.split(np.array(order), ends)]


MANY = 90
KINDS = {
    "full": lambda rng: [1] * (MANY - 1),
    "lists": lambda rng: [1] * int(rng.integers(1, 64)),
    "long lists": lambda rng: [1] * int(rng.integers(60, 80)),
    "few blocks": lambda rng: [20, 15, 30],
    "some ties": lambda rng: rng.integers(1, 4, 20),
    "mixed": lambda rng: [[1] * 89, [1] * 5, [20, 15], [2, 1, 1, 30], [1] * 70][int(rng.integers(5))],
}


@pytest.mark.parametrize("kind", KINDS)
def test_many_items_in_every_form(kind):
    rng = np.random.default_rng(3)
    rows = [random_blocks(rng, MANY, KINDS[kind](rng)) for _ in range(9)]
    rows[4] = rows[2]  # rows that are alike, and
    rows[5] = [{*rows[2][0]}, *rows[2][1:]]
    data = Preferences.from_levels([[sorted(b) for b in row[:-1]] for row in rows], items=range(MANY))
    counts = rng.integers(1, 5, 7)
    training, queries = data[:7]._replaced(counts=counts), data
    for dispersion in (0.3, 0.99):
        values, _ = log_density(training, queries, dispersion)
        table = [
            [oracle.log_density_of_blocks(row, query, -np.log(dispersion)) for row in rows[:7]]
            for query in rows
        ]
        true = np.logaddexp.reduce(np.array(table) + np.log(counts / counts.sum()), axis=1)
        np.testing.assert_allclose(values, true, rtol=1e-11)


def test_a_short_list_among_many_items_says_little():
    """500 items: the probability of a top-1 list is that of its first place, 1/500 where nothing is known."""
    nothing = Preferences.from_levels([[list(range(500))]])
    first = Rankings.from_orders([[7]], n_items=500)
    values, _ = log_density(nothing, Preferences.from_rankings(first), 0.9)
    assert values[0] == pytest.approx(-np.log(500), abs=1e-10)


# The dispersion by cross-validation.


def coarsened(sizes):
    """Sixteen draws from a Mallows model as blocks of these sizes: distinct rows, and how often each came."""
    drawn = Mallows(range(5), 0.35).sample(16, random_state=4).orders.tolist()
    ends = np.cumsum(sizes)[:-1]
    rows = [poset_of([set(part.tolist()) for part in np.split(np.array(order), ends)]) for order in drawn]
    distinct = sorted(set(rows), key=rows.index)
    return distinct, np.array([rows.count(row) for row in distinct])


CASES = {"full": coarsened([1] * 5), "lists": coarsened([1, 1, 1, 2]), "blocks": coarsened([2, 1, 2])}


@pytest.mark.parametrize("name", CASES)
def test_agents_are_left_out_one_at_a_time(name):
    posets, counts = CASES[name]
    assert counts.max() > 1
    model = MallowsKDE(progress=False).fit(stated_as_levels(posets, 5, counts))
    tried, scores = model.cv_scores_["dispersion"], model.cv_scores_["score"]
    assert np.all(np.diff(tried) > 0)
    assert len(tried) > 35

    def mean(left_out, phi):
        return float(counts @ np.log(left_out(posets, counts, 5, phi)) / counts.sum())

    np.testing.assert_allclose(scores, [mean(oracle.left_out, phi) for phi in tried], rtol=1e-10)
    assert model.dispersion_ == tried[scores.argmax()]
    assert 0.01 < model.dispersion_ < 0.99
    for factor in (0.999, 1.001):
        near = np.exp(np.log(model.dispersion_) * factor)
        assert mean(oracle.left_out, near) < scores.max()
    # The twin that leaves out whole rows chooses another dispersion.
    twin = [mean(oracle.whole_row_left_out, phi) for phi in tried]
    assert tried[int(np.argmax(twin))] > 1.05 * model.dispersion_


def test_kept_comparisons_change_nothing(monkeypatch):
    data = stated_as_levels(CASES["blocks"][0], 5, CASES["blocks"][1])
    first = MallowsKDE(progress=False).fit(data).cv_scores_
    monkeypatch.setattr(closed_form, "MOST_KEPT_BYTES", 0)
    second = MallowsKDE(progress=False).fit(data).cv_scores_
    np.testing.assert_array_equal(first["score"], second["score"])


def test_full_rankings_too_long_for_bits(monkeypatch):
    posets, counts = CASES["full"]
    data = stated_as_levels(posets, 5, counts)
    first = log_density(data, data, 0.3)[0]
    monkeypatch.setattr(closed_form, "MOST_KEPT_BYTES", 0)
    np.testing.assert_allclose(log_density(data, data, 0.3)[0], first, rtol=1e-12)


def test_without_smoothing_only_what_was_seen_is_possible(partial):
    training, counts, queries = partial
    with np.errstate(all="raise"):
        values, errors = log_density(
            stated_as_pairs(training, 5, counts), stated_as_pairs(queries, 5), 0.0, n_samples=500
        )
    true = oracle.density(training, counts, queries, 5, 0.0)
    assert np.all(np.isneginf(values[true == 0]))
    assert not np.isnan(values).any()
    assert not np.isnan(errors).any()


def test_rankings_that_are_all_alike():
    data = Rankings.from_orders([[0, 1, 2]], counts=[8])
    with pytest.warns(PermixWarning, match="smallest dispersion"):
        model = MallowsKDE(progress=False).fit(data)
    assert model.dispersion_ == pytest.approx(1 / (10 * 8 * 2))
    assert model.score(data) > -0.05


def test_rankings_that_say_nothing_about_each_other():
    data = Rankings.from_orders(list(permutations(range(3))))
    with pytest.warns(PermixWarning, match="uniform"):
        model = MallowsKDE(progress=False).fit(data)
    assert model.dispersion_ == 1.0
    np.testing.assert_allclose(model.score_samples(data), -np.log(6))


def test_what_cannot_be_fitted():
    one = Rankings.from_orders([[0, 1, 2]])
    with pytest.raises(DataError, match="one agent only"):
        MallowsKDE().fit(one)
    assert MallowsKDE(0.5).fit(one).cv_scores_["score"].size == 0
    with pytest.raises(DataError, match="one item"):
        MallowsKDE(0.5).fit(Rankings.from_orders([[0]]))
    for bad in ("auto", 1.5, -0.1, None, True, np.nan):
        with pytest.raises(DataError, match="dispersion"):
            MallowsKDE(bad).fit(one)
    with pytest.raises(DataError, match="n_samples"):
        MallowsKDE(0.5, n_samples=1).fit(one)
    with pytest.raises(DataError, match="progress"):
        MallowsKDE(0.5, progress="yes").fit(one)
    with pytest.raises(DataError, match="does not know"):
        MallowsKDE(0.5).fit(one).score_samples(Rankings.from_orders([["a", "b", "c"]]))


def test_an_interrupted_search_keeps_the_best_so_far(monkeypatch):
    data = stated_as_levels(CASES["blocks"][0], 5, CASES["blocks"][1])
    evaluate = bandwidth._Search.evaluate

    def interrupted(self, decays):
        if len(decays) == 1:
            raise KeyboardInterrupt
        return evaluate(self, decays)

    monkeypatch.setattr(bandwidth._Search, "evaluate", interrupted)
    with pytest.warns(PermixWarning, match="interrupted"):
        model = MallowsKDE(progress=False).fit(data)
    scores = model.cv_scores_
    assert model.dispersion_ == scores["dispersion"][scores["score"].argmax()]
    monkeypatch.setattr(bandwidth._Search, "evaluate", lambda self, decays: interrupted(self, [0.0]))
    with pytest.raises(KeyboardInterrupt):
        MallowsKDE(progress=False).fit(data)


# Any preferences, by sampling.


@pytest.fixture(scope="module")
def partial():
    """Random posets of five items, for training and for questions, of both kinds."""
    training = [poset_of([{0, 1}, {2}, {3, 4}]), *random_posets(5, 12, 3)]
    queries = [poset_of([{4}, {0, 1, 2, 3}]), *random_posets(5, 20, 4)]
    counts = np.random.default_rng(2).integers(1, 4, len(training))
    assert 0 < sum(is_partitioned(poset, 5) for poset in training) < len(training) - 3
    assert 0 < sum(is_partitioned(poset, 5) for poset in queries) < len(queries) - 3
    return training, counts, queries


@pytest.mark.parametrize("dispersion", first_in_every_run([0.7, 0.2]))
def test_sampled_densities_are_right_within_their_errors(partial, dispersion):
    training, counts, queries = partial
    values, errors = log_density(
        stated_as_pairs(training, 5, counts), stated_as_pairs(queries, 5), dispersion, n_samples=2000
    )
    true = np.log(oracle.density(training, counts, queries, 5, dispersion))
    assert np.all(np.abs(values - true) < 4.5 * errors + 1e-12)
    assert errors.max() < 0.06
    by_draws = [not is_partitioned(poset, 5) for poset in queries]
    assert np.all(errors[by_draws] > 0)
    for twin in (oracle.without_extensions, oracle.half_ties):
        wrong = np.log(twin(training, counts, queries, 5, dispersion))
        assert np.any(np.abs(values - wrong) > 10 * errors + 1e-9)


def test_standard_errors_are_the_spread_over_seeds(partial):
    training, counts, queries = partial
    data, questions = stated_as_pairs(training, 5, counts), stated_as_pairs(queries, 5)
    runs = np.array(
        [
            MallowsKDE(0.4, n_samples=100, random_state=seed, progress=False)
            .fit(data)
            .score_samples(questions, return_error=True)
            for seed in range(40)
        ]
    )
    spread, claimed = runs[:, 0].std(axis=0, ddof=1), runs[:, 1].mean(axis=0)
    noisy = claimed > 1e-9
    assert noisy.sum() > 10
    # The standard deviation of 40 draws is known to 11 %.
    ratio = spread[noisy] / claimed[noisy]
    assert ratio.min() > 0.55
    assert ratio.max() < 1.5


@pytest.mark.parametrize("dispersion", [0.1, 0.6])
def test_probabilities_of_all_rankings_sum_to_one(partial, dispersion):
    """Also where training rows are sampled: each sampled ranking has a whole Mallows model around it."""
    training, counts, _ = partial
    rankings = Preferences.from_rankings(Rankings.from_orders(list(permutations(range(5)))))
    values, _ = log_density(stated_as_pairs(training, 5, counts), rankings, dispersion, n_samples=16)
    assert np.exp(values).sum() == pytest.approx(1.0, abs=1e-12)


@pytest.mark.filterwarnings("ignore::permix.errors.PermixWarning")  # the best dispersion is at an end
def test_cross_validation_of_sampled_sums(partial):
    training, counts, _ = partial
    model = MallowsKDE(n_samples=500, random_state=0, progress=False).fit(
        stated_as_pairs(training, 5, counts)
    )
    assert not model.is_exact_
    tried, scores = model.cv_scores_["dispersion"], model.cv_scores_["score"]
    # 26 agents: all of them are left out, one at a time.
    true = [counts @ np.log(oracle.left_out(training, counts, 5, phi)) / counts.sum() for phi in tried]
    inside = tried > 0.1  # below, few of the sampled rankings matter
    np.testing.assert_allclose(scores[inside], np.array(true)[inside], atol=0.03)


@pytest.mark.filterwarnings("ignore::permix.errors.PermixWarning")
def test_results_do_not_depend_on_threads(partial):
    training, _, queries = partial
    for posets in (training, CASES["blocks"][0]):
        data = stated_as_pairs(posets, 5)
        one, three = (
            MallowsKDE(n_samples=8, random_state=1, n_jobs=n_jobs, progress=False).fit(data)
            for n_jobs in (1, 3)
        )
        assert one.dispersion_ == three.dispersion_
        np.testing.assert_array_equal(one.score_samples(data), three.score_samples(data))
    other = MallowsKDE(n_samples=8, random_state=2, progress=False).fit(stated_as_pairs(training, 5))
    assert other.score_samples(stated_as_pairs(queries, 5), return_error=True)[1].max() > 0


# Draws.


@pytest.mark.parametrize("chain", [False, True])
def test_draws_follow_the_density(chain, monkeypatch):
    if chain:
        monkeypatch.setattr(sampled, "EXACT_ITEMS", 0)
    posets = [closure({(0, 1), (0, 2)}, 4), closure({(3, 0), (1, 2)}, 4), *WEAK_ORDERS[::20]]
    counts = np.arange(1, 1 + len(posets))
    model = MallowsKDE(0.4, random_state=0).fit(stated_as_pairs(posets, 4, counts))
    size = 4000
    drawn = model.sample(size, random_state=5)
    assert drawn == model.sample(size, random_state=5)
    orders = list(permutations(range(4)))
    full = [poset_of([{item} for item in order]) for order in orders]
    expected = size * oracle.density(posets, counts, full, 4, 0.4)
    number = {order: i for i, order in enumerate(orders)}
    found = np.bincount([number[tuple(order)] for order in drawn.orders.tolist()], minlength=24)
    assert chisquare(found, expected).pvalue > 1e-4
    twin = size * oracle.without_extensions(posets, counts, full, 4, 0.4)
    assert chisquare(found, twin).pvalue < 1e-10


def test_no_draws():
    model = MallowsKDE(0.4).fit(Rankings.from_orders([[0, 1, 2], [0, 2, 1]]))
    assert len(model.sample(0)) == 0
    with pytest.raises(DataError, match="size"):
        model.sample(-1)


# As users meet it.


class FromScores(MallowsKDE):
    """Rows are scores of items, the highest is best; scikit-learn's checks make tables of numbers."""

    def _checked(self, X, *, reset):
        scores = validate_data(self, X, reset=reset, dtype=np.float64)
        return Rankings.from_orders(np.argsort(-scores, axis=1, kind="stable"))


@conventions(
    FromScores(0.5, random_state=0, progress=False),
    cannot_apply={"check_fit2d_1feature": "one item has one ranking; such data are refused"},
)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


def test_the_score_is_the_mean_over_agents(partial):
    training, counts, _ = partial
    data = stated_as_pairs(training, 5, counts)
    model = MallowsKDE(0.4, random_state=0, progress=False).fit(data)
    scores, errors = model.score_samples(data, return_error=True)
    assert model.score(data) == pytest.approx(counts @ scores / counts.sum())
    assert model.log_likelihood_ == pytest.approx(counts @ scores)
    assert model.log_likelihood_.standard_error == pytest.approx(counts @ errors)
    assert model.log_likelihood_.standard_error > 0


def test_tables():
    posets, counts = CASES["blocks"]
    model = MallowsKDE(progress=False).fit(stated_as_levels(posets, 5, counts))
    row = model.summary().iloc[0]
    assert (row["agents"], row["dispersion"], row["exact"]) == (16, model.dispersion_, True)
    assert row["expected_distance"] == pytest.approx(Mallows(range(5), model.dispersion_).expected_distance())
    tried = model.diagnostics()
    assert tried.loc[tried["below_best"].idxmin(), "dispersion"] == model.dispersion_
    assert tried["below_best"].min() == 0.0
    assert len(MallowsKDE(0.5).fit(stated_as_levels(posets, 5)).diagnostics()) == 0


def test_arrays_and_rankings_are_alike():
    orders = np.array([[0, 1, 2, 3], [1, 0, 3, 2], [3, 2, -1, -1], [0, 1, 2, 3]])
    model = MallowsKDE(0.5).fit(orders)
    other = clone(model).fit(Rankings.from_orders(orders, n_items=4))
    of_rows = other.score_samples(other.preferences_)
    np.testing.assert_array_equal(model.score_samples(orders), of_rows[[0, 1, 2, 0]])
    assert model.preferences_.counts.tolist() == [2, 1, 1]
    assert model.n_features_in_ == 4
    assert not hasattr(other, "n_features_in_")
    assert model.score(other.preferences_) == pytest.approx(model.score(orders))
    with pytest.raises(DataError, match="orderings"):
        model.fit(orders + 0.5)


def test_plain_lines_of_progress(monkeypatch, capsys):
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.0)
    data = stated_as_levels(WEAK_ORDERS, 4, COUNTS)
    MallowsKDE(0.5, progress=True).fit(data).score(data)
    assert "comparing 75 rows with 75" in capsys.readouterr().err
    MallowsKDE(0.5, progress=False).fit(data).score(data)
    assert capsys.readouterr().err == ""


def test_huge_counts():
    pairs = [("a", "x", "y"), ("b", "z", "y"), ("c", "x", "z")]
    data = Preferences.from_pairs(pairs, items=list("xyz"), counts=[4 * 10**9] * 3)
    model = MallowsKDE(random_state=0, progress=False).fit(data)
    assert 0.0 < model.dispersion_ <= 1.0


# Real data.


@pytest.mark.realdata
def test_sushi(data_folder):
    from permix.datasets import load_sushi
    from permix.kernels.mallows import dispersion_from_mean

    data = load_sushi().data
    train, test = data.split(0.3, random_state=0)
    model = MallowsKDE(progress=False).fit(train)
    assert 0.2 < model.dispersion_ < 0.6
    assert model.is_exact_
    consensus = kemeny(train)
    decay = dispersion_from_mean(consensus.score / train.n_agents, 10)
    single = Mallows(consensus.ranking, float(np.exp(-decay)), items=data.items)
    assert model.score(test) > single.log_prob(test).mean() + 0.3
    # Cross-validation is honest: what it promised holds for people it has not seen.
    promised, spread = model.cv_scores_["score"].max(), model.score_samples(test).std() / np.sqrt(len(test))
    assert abs(model.score(test) - promised) < 4 * spread * np.sqrt(1 + len(test) / len(train))
