"""Predictions of Dirichlet-process mixtures of generalized Mallows models, against naive code and sums."""

from __future__ import annotations

import dataclasses
from itertools import permutations

import numpy as np
import pytest

from permix.data.rankings import Rankings
from permix.dp_mallows import pairs as dp_mallows_pairs
from permix.dp_mallows.pairs import predict_pairwise
from permix.dp_mallows.predict import ListPredictive, distinct
from permix.errors import DataError
from permix.partitions import DirichletProcess
from permix.posterior.overlap import Overlap
from permix.runtime.threads import at_most
from tests.dp_mallows.cases import FOUR, LISTS, as_draws, cluster_draws, fit_of, members_of
from tests.reference import dp_mallows_predictive as naive

SHORT = [(0, 1), (2,), (3, 2), (3,), (0, 2)]  # no list has more than two items
CASES = {
    "full lists": {"lists": LISTS},
    "short lists": {"lists": SHORT},
    "Pitman–Yor": {"lists": SHORT, "discount": 0.4},
    "strong prior": {"lists": SHORT, "prior_strength": 3.0, "prior_rate": [0.5, 0.7, 2.0]},
}


class Case:
    def __init__(self, options):
        self.fit = fit_of(**options)
        self.predictive = ListPredictive(self.fit)
        self.draws = as_draws(self.fit.clusters)
        # Naive code takes one rate; where it matters only the third stage lies beyond the data. Of what was
        # learned these are medians, the rate that of the last stage that some list reaches.
        drawn, settings = self.fit.draws.arrays, self.fit.settings
        learned = np.median(drawn["prior_rate"][..., -1]) if "prior_rate" in drawn else settings.rates(3)[2]
        strength = drawn.get("prior_strength", settings.prior_strength)
        self.prior = (float(np.median(strength)), float(learned))

    def naive(self, what, order):
        return getattr(naive, what)(order, self.draws, 4, *self.prior)


@pytest.fixture(params=CASES)
def case(request):
    return Case(CASES[request.param])


@pytest.fixture
def short():
    return Case(CASES["short lists"])


def rows(lists, items=FOUR):
    table = Rankings.from_orders([list(row) for row in lists], n_items=len(items))
    return table._replaced(items=tuple(items))


EVERY = [row for length in (1, 2, 3, 4) for row in naive.all_lists(4, length)]


# Probabilities of lists.


def test_log_probability_of_every_list(case):
    found, errors = case.predictive.log_probability(rows(EVERY))
    by_draw = np.array([case.naive("predictive_by_draw", row) for row in EVERY])
    np.testing.assert_allclose(found, np.log(by_draw.mean(axis=1)), atol=1e-8)
    spread = by_draw.std(axis=1, ddof=1) / np.sqrt(by_draw.shape[1]) / by_draw.mean(axis=1)
    np.testing.assert_allclose(errors, spread, rtol=1e-7)
    # Broken twins: nobody is of a new kind; logarithms are averaged; the weights are forgotten.
    renounced = [([(w / (1 - new), *rest) for w, *rest in clusters], 0.0) for clusters, new in case.draws]
    alike = [([(1 / (len(clusters) + 1), *rest) for _, *rest in clusters], 1 / (len(clusters) + 1))
             for clusters, _ in case.draws]  # fmt: skip
    for twin in (
        np.log([naive.predictive(row, renounced, 4, *case.prior) for row in EVERY]),
        np.log(by_draw).mean(axis=1),
        np.log([naive.predictive(row, alike, 4, *case.prior) for row in EVERY]),
    ):
        assert np.abs(found - twin).max() > 0.02


@pytest.mark.parametrize("length", [1, 2, 3, 4])
def test_probabilities_of_all_lists_of_a_length_sum_to_one(case, length):
    found, _ = case.predictive.log_probability(rows(naive.all_lists(4, length)))
    assert np.exp(found).sum() == pytest.approx(1.0, abs=1e-12)


def test_a_full_list_is_worth_as_much_as_one_that_leaves_the_last_item_out(case):
    full = naive.all_lists(4, 4)
    long, _ = case.predictive.log_probability(rows(full))
    cut, _ = case.predictive.log_probability(rows([row[:3] for row in full]))
    np.testing.assert_allclose(long, cut, atol=1e-14)


def test_mean_log_probability_and_its_error(case):
    table = rows(EVERY)._replaced(counts=np.arange(1, len(EVERY) + 1))
    scores, _ = case.predictive.log_probability(table)
    mean = case.predictive.mean_log_probability(table)
    assert float(mean) == pytest.approx(np.average(scores, weights=table.counts))
    by_draw = np.array([case.naive("predictive_by_draw", row) for row in EVERY])
    influence = table.counts @ (by_draw / by_draw.mean(axis=1, keepdims=True)) / table.counts.sum()
    assert mean.standard_error == pytest.approx(influence.std(ddof=1) / np.sqrt(len(influence)))


def test_the_error_over_draws_covers():
    """Scores from 40 draws, many times over, scatter by what their errors say."""
    labels = np.zeros((4000, 5), dtype=np.int32)
    many = cluster_draws(labels, 5, 4, seed=3, decays=(0.3, 1.2))
    table = rows([(1, 0), (4, 2, 3)], range(5))
    fit = fit_of(lists=[(0, 1, 2, 3)] * 5, items=range(5), counts=[1] * 5, labels=labels, estimate=[0] * 5)
    truth, _ = ListPredictive(dataclasses.replace(fit, clusters=many)).log_probability(table)
    z = []
    for at in range(0, 4000, 40):
        part = dataclasses.replace(
            many,
            starts=np.arange(41),
            sizes=many.sizes[at : at + 40],
            centers=many.centers[at : at + 40],
            theta=many.theta[at : at + 40],
            labels=many.labels[at : at + 40],
            concentration=many.concentration[at : at + 40],
        )
        value, error = ListPredictive(dataclasses.replace(fit, clusters=part)).log_probability(table)
        z.append((value - truth) / error)
    assert 0.75 < np.sqrt(np.mean(np.square(z))) < 1.35


def test_rows_are_scored_alike_wherever_they_stand(case):
    table = rows(EVERY)
    order = np.random.default_rng(1).permutation(len(EVERY))
    found, errors = case.predictive.log_probability(table)
    again, again_errors = case.predictive.log_probability(table[np.concatenate([order, order])])
    np.testing.assert_array_equal(again, np.tile(found[order], 2))
    np.testing.assert_array_equal(again_errors, np.tile(errors[order], 2))


def relabeled(fit, items, clusters):
    """The same fit with items and clusters of draws under other names."""
    old = fit.clusters
    new_of = np.argsort(items)  # old item -> new item, where new item i was items[i]
    centers, theta, sizes = (np.empty_like(getattr(old, name)) for name in ("centers", "theta", "sizes"))
    labels = old.labels.copy()
    for d, names in enumerate(clusters):
        start = old.starts[d]
        for k, name in enumerate(names):
            centers[start + name] = new_of[old.centers[start + k]]
            theta[start + name] = old.theta[start + k]
            sizes[start + name] = old.sizes[start + k]
        labels[d] = np.asarray(names)[old.labels[d]]
    new = dataclasses.replace(old, centers=centers.astype(np.int32), theta=theta, sizes=sizes, labels=labels)
    return dataclasses.replace(
        fit, clusters=new, rankings=moved(fit.rankings, new_of), items=tuple(fit.items[i] for i in items)
    )


def moved(table, new_of):
    names = [table.items[i] for i in np.argsort(new_of)]
    return table._replaced(orders=np.append(new_of, -1)[table.orders], items=tuple(names))


def test_names_of_items_and_of_clusters_do_not_matter(case):
    items = np.array([2, 0, 3, 1])
    twin = ListPredictive(relabeled(case.fit, items, [(1, 0), (2, 0, 1), (1, 0)]))
    new_of = np.argsort(items)
    table = rows(EVERY)
    other = moved(table, new_of)
    np.testing.assert_allclose(
        twin.log_probability(other)[0], case.predictive.log_probability(table)[0], atol=1e-12
    )
    np.testing.assert_allclose(twin.assign(other), case.predictive.assign(table), atol=1e-12)
    np.testing.assert_allclose(twin.next_item(other)[:, new_of], case.predictive.next_item(table), atol=1e-12)
    some = rows([(0,), (3, 2)])
    np.testing.assert_allclose(
        predict_pairwise(twin, moved(some, new_of))[:, new_of][:, :, new_of],
        predict_pairwise(case.predictive, some),
        atol=1e-12,
    )


def test_thousands_of_clusters_are_scored_block_by_block(monkeypatch):
    """More clusters than one block holds, and 16-bit ranks as well as 32-bit ones, give the same numbers."""
    labels = np.tile(np.arange(60, dtype=np.int32), (40, 1))  # 2400 clusters
    fit = fit_of(
        lists=[(0, 1, 2, 3)] * 60, items=range(6), counts=[1] * 60, labels=labels, estimate=np.arange(60)
    )
    predictive = ListPredictive(fit)
    table = rows([(5, 0), (1, 2, 3, 4), (4, 5, 3, 2)], range(6))
    found, _ = predictive.log_probability(table)
    truth = [naive.predictive(row, as_draws(fit.clusters), 6) for row in ((5, 0), (1, 2, 3, 4), (4, 5, 3, 2))]
    np.testing.assert_allclose(found, np.log(truth), atol=1e-7)
    wide = ListPredictive(fit)
    wide.__dict__["_tables"] = wide._tables._replace(ranks=wide._tables.ranks.astype(np.int32))
    np.testing.assert_array_equal(wide.log_probability(table)[0], found)


# Assignment.


def test_assignment_of_every_list(case):
    members = members_of(case.fit.clusters, case.fit.labels)
    found = case.predictive.assign(rows(EVERY))
    truth = [naive.assignment(row, case.draws, members, 2, 4, *case.prior) for row in EVERY]
    np.testing.assert_allclose(found, truth, atol=1e-8)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, atol=1e-14)
    # The twin who takes a cluster's number for its name is found out.
    confused = [[[min(k, 1)] for k in range(len(those))] for those in members]
    twin = [naive.assignment(row, case.draws, confused, 2, 4, *case.prior) for row in EVERY]
    assert np.abs(found - twin).max() > 0.05


def test_clusters_speak_for_the_one_they_are_most_like():
    clusters = cluster_draws([(0, 0, 1, 1, 1, 1), (1, 0, 0, 1, 1, 2)], 3, 2)
    overlap = Overlap.of(clusters, np.array([0, 0, 0, 1, 1, 2]))
    # Agents in common: draw 0 [2 0 0], [1 2 1]; draw 1 [2 0 0], [1 2 0], [0 0 1].
    assert overlap.linked.tolist() == [0, 1, 0, 1, 2]
    assert overlap.counts.tolist() == [2, 2, 2, 2, 1]
    assert overlap.nearest.tolist() == [[0, 1, 1], [2, 3, 4]]
    assert overlap.in_nearest.tolist() == [[2, 2, 1], [2, 2, 1]]
    found, counts = overlap.of_estimated(1)
    assert (found.tolist(), counts.tolist()) == ([1, 3], [2, 2])
    # For cluster 2 nobody speaks in a draw where all are more like others.
    alone = Overlap.of(cluster_draws([(0, 0, 1, 1, 1, 1)], 3, 2), np.array([0, 0, 0, 1, 1, 2]))
    found, counts = alone.of_estimated(2)
    assert (found.tolist(), counts.tolist()) == ([1], [1])


# Continuations.


def test_next_item_after_every_list(case):
    lists = [row for row in EVERY if len(row) < 4]
    found = case.predictive.next_item(rows(lists))
    truth = np.array([case.naive("next_distribution", row) for row in lists])
    np.testing.assert_allclose(found, truth, atol=1e-8)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, atol=1e-12)
    for distribution, row in zip(found, lists, strict=True):
        assert not distribution[list(row)].any()
    # The twin does not weigh clusters by what the list says.
    prior = [naive.next_distribution((), case.draws, 4, *case.prior)[i] for i in range(4)]
    twin = [np.where(np.isin(range(4), row), 0.0, prior) for row in lists]
    twin = [distribution / distribution.sum() for distribution in twin]
    assert np.abs(found - twin).max() > 0.05
    np.testing.assert_array_equal(case.predictive.next_item(rows(naive.all_lists(4, 4))), 0.0)


def test_complete_takes_the_most_probable_item_each_time(case):
    lists = [row for row in EVERY if len(row) < 3]
    found = case.predictive.complete(rows(lists), 4)
    assert found.is_full
    changed = 0
    for row, order in zip(lists, found.orders.tolist(), strict=True):
        truth, stale = list(row), list(row)
        first = np.array(case.naive("next_distribution", row))
        while len(truth) < 4:
            truth.append(int(np.argmax(case.naive("next_distribution", tuple(truth)))))
        for item in np.argsort(-first, kind="stable"):
            if item not in stale:
                stale.append(int(item))
        assert order == truth
        changed += order != stale
    if isinstance(case.fit.clusters.prior, DirichletProcess) and len(case.fit.clusters.theta[0]) == 3:
        assert changed  # not to weigh clusters anew after every item gives other lists


def test_complete_stops_where_it_is_told(short):
    table = rows([(1,), (3, 0, 2)])._replaced(counts=[4, 2], agents=np.array(["anna", "bo"], dtype=object))
    default = short.predictive.complete(table)
    assert default.lengths.tolist() == [2, 3]  # the data's longest list has two; bo said more
    assert default.orders[1, :3].tolist() == [3, 0, 2]
    assert (default.counts.tolist(), default.agents.tolist()) == ([4, 2], ["anna", "bo"])
    assert short.predictive.complete(table, 3).lengths.tolist() == [3, 3]
    assert short.predictive.complete(table, 1).lengths.tolist() == [1, 3]
    full = Case(CASES["full lists"]).predictive
    assert full.complete(table).is_full
    for wrong in (0, 5, 2.0, True):
        with pytest.raises(DataError, match="length"):
            short.predictive.complete(table, wrong)


def worst(orders, distribution, n):
    """Largest standardized difference between frequencies and a distribution."""
    counts = dict.fromkeys(distribution, 0)
    for order in map(tuple, orders.tolist()):
        counts[order] += 1
    shares = np.array([distribution[key] for key in counts])
    found = np.array(list(counts.values())) / n
    return np.abs((found - shares) / np.sqrt(shares * (1 - shares) / n)).max()


def continuations(case, row, length, rule="predictive"):
    whole = case.naive(rule, row) if row else 1.0
    rest = [item for item in range(4) if item not in row]
    return {
        (*row, *tail): case.naive(rule, (*row, *tail)) / whole
        for tail in permutations(rest, length - len(row))
    }


@pytest.mark.parametrize(("row", "length"), [((0,), 2), ((3, 1), 4), ((2,), 4)])
def test_sampled_completions_follow_the_predictive(case, row, length):
    n = 30_000
    drawn = case.predictive.sample_completions(rows([row]), n, length, random_state=2)
    assert drawn.orders.shape == (1, n, length)
    distribution = continuations(case, row, length)
    assert worst(drawn.orders[0], distribution, n) < 4.5
    if len(distribution) > 2:  # after (3, 1) both orders of the rest are nearly alike
        assert worst(drawn.orders[0], dict.fromkeys(distribution, 1 / len(distribution)), n) > 6
    # Labels are those of the assignment.
    assigned = case.predictive.assign(rows([row]))[0]
    shares = np.array([(drawn.labels[0] == e).mean() for e in (0, 1, -1)])
    assert np.abs((shares - assigned) / np.sqrt(assigned * (1 - assigned) / n)).max() < 4.5


def test_sampled_completions_as_rankings(short):
    table = rows([(1,), (3, 0, 2)])._replaced(agents=np.array(["anna", "bo"], dtype=object))
    drawn = short.predictive.sample_completions(table, 3, random_state=0)
    listed = drawn.to_rankings()
    assert listed.agents.tolist() == ["anna"] * 3 + ["bo"] * 3
    assert listed.lengths.tolist() == [2, 2, 2, 3, 3, 3]
    assert (drawn.orders[0, :, 0] == 1).all()
    again = short.predictive.sample_completions(table, 3, random_state=0)
    np.testing.assert_array_equal(drawn.orders, again.orders)
    assert short.predictive.sample_completions(table, 0).orders.shape == (2, 0, 3)


@pytest.mark.parametrize("length", [1, 2, 4])
def test_samples_follow_the_predictive(case, length):
    n = 30_000
    drawn, labels = case.predictive.sample(n, length, random_state=4)
    distribution = continuations(case, (), length)
    assert worst(drawn.orders, distribution, n) < 4.5
    assert worst(drawn.orders, dict.fromkeys(distribution, 1 / len(distribution)), n) > 6
    new = np.mean([new for _, new in case.draws])
    assert abs((labels == -1).mean() - new) < 4.5 * np.sqrt(new * (1 - new) / n)


def test_samples_are_as_long_as_asked_or_as_the_data(short):
    drawn, labels = short.predictive.sample(20_000, random_state=1)
    data = short.fit.rankings
    share = data.counts[data.lengths == 1].sum() / data.n_agents
    assert abs((drawn.lengths == 1).mean() - share) < 4.5 * np.sqrt(share * (1 - share) / 20_000)
    assert labels.shape == (20_000,)
    assert short.predictive.sample(3, [1, 4, 2], random_state=1)[0].lengths.tolist() == [1, 4, 2]
    assert len(short.predictive.sample(0)[0]) == 0
    for wrong in (0, 5, 1.5, [1, 2], "all"):
        with pytest.raises(DataError, match="lengths"):
            short.predictive.sample(3, wrong)
    with pytest.raises(DataError, match="size"):
        short.predictive.sample(-1)


# Pairs.


def test_pairs_of_every_list(case):
    found, errors = predict_pairwise(case.predictive, rows(EVERY), return_error=True)
    truth = np.array([case.naive("pairwise", row) for row in EVERY])
    np.testing.assert_allclose(found, truth, atol=1e-8)
    assert not errors.any()
    listed_below = found[EVERY.index((2,)), 2]
    assert listed_below.tolist() == [1.0, 1.0, 0.0, 1.0]
    # The twin takes the center's word for it.
    centers = [np.argsort(center) for clusters, _ in case.draws for _, center, _ in clusters]
    twin = np.mean([np.less.outer(ranks, ranks) for ranks in centers], axis=0)
    assert np.abs(found[EVERY.index((0,))] - twin)[1:, 1:].max() > 0.05


def test_some_pairs_of_some_rows(case):
    table = rows([(1,), (3, 0), (1,)])
    every = predict_pairwise(case.predictive, table)
    triples = [(2, "tea", "milk"), (0, "water", "tea"), (1, "water", "coffee"), (0, "coffee", "milk")]
    found = predict_pairwise(case.predictive, table, triples)
    number = {name: i for i, name in enumerate(FOUR)}
    np.testing.assert_allclose(found, [every[row, number[a], number[b]] for row, a, b in triples], atol=1e-14)
    assert found[3] == 1.0
    assert predict_pairwise(case.predictive, table, []).shape == (0,)
    with pytest.raises(DataError, match="no row 3"):
        predict_pairwise(case.predictive, table, [(3, "tea", "milk")])
    with pytest.raises(DataError, match="compared with itself"):
        predict_pairwise(case.predictive, table, [(0, "tea", "tea")])


def test_sampled_pairs_are_within_their_errors(case):
    table = rows([row for row in EVERY if len(row) < 3])
    truth = predict_pairwise(case.predictive, table, method="exact")
    found, errors = predict_pairwise(
        case.predictive, table, method="sampled", n_samples=4000, random_state=7, return_error=True
    )
    noisy = errors > 0.0
    assert noisy.any()
    np.testing.assert_array_equal(found[~noisy], truth[~noisy])
    z = (found - truth)[noisy] / errors[noisy]
    assert np.abs(z).max() < 5.0
    assert 0.7 < np.sqrt(np.mean(z**2)) < 1.3


def test_auto_samples_where_exact_sums_are_long(case, monkeypatch):
    table = rows([(0,), (2, 3)])
    monkeypatch.setattr(dp_mallows_pairs, "EXACT_STEPS", 1.0)
    _, errors = predict_pairwise(case.predictive, table, return_error=True)
    assert errors.max() > 0.0
    with pytest.raises(DataError, match="method='guess' must be"):
        predict_pairwise(case.predictive, table, method="guess")


def test_blocks_do_not_matter(case, monkeypatch):
    table = rows(EVERY)
    before = (
        case.predictive.log_probability(table)[0],
        predict_pairwise(case.predictive, table),
    )
    for module in ("predict", "pairs"):
        monkeypatch.setattr(f"permix.dp_mallows.{module}.BLOCK_BYTES", 200)
    np.testing.assert_array_equal(case.predictive.log_probability(table)[0], before[0])
    np.testing.assert_allclose(predict_pairwise(case.predictive, table), before[1], atol=1e-14)


def test_threads_do_not_matter(case, monkeypatch):
    table = rows(EVERY)

    def answers():
        return (
            case.predictive.log_probability(table)[0],
            case.predictive.assign(table),
            case.predictive.next_item(table),
            case.predictive.complete(table, 4).orders,
            case.predictive.sample_completions(table, 3, 4, random_state=1).orders,
            case.predictive.sample(50, random_state=1)[0].orders,
            predict_pairwise(case.predictive, table),
            predict_pairwise(case.predictive, table, method="sampled", n_samples=9),
        )

    with at_most(1):
        alone = answers()
    monkeypatch.setattr("permix.runtime.threads.WORTH_THREADS", 0)
    with at_most(3):
        several = answers()
    for one, many in zip(alone, several, strict=True):
        np.testing.assert_array_equal(one, many)


def test_answers_too_large_are_refused(case, monkeypatch):
    monkeypatch.setattr("permix.estimators.agent_answers.MOST_BYTES", 100)
    table = rows([(0,), (1,), (2,), (3,)])
    with pytest.raises(DataError, match="4 rows × 4 items, would take"):
        case.predictive.next_item(table)
    with pytest.raises(DataError, match=r"ask for pairs=\[\(row, a, b\)"):
        predict_pairwise(case.predictive, table)


def test_two_items():
    fit = fit_of(
        lists=[(0,), (1, 0)],
        items=("a", "b"),
        counts=(3, 2),
        labels=((0, 0, 0, 1, 1),),
        estimate=(0, 0, 0, 1, 1),
    )
    predictive, draws = ListPredictive(fit), as_draws(fit.clusters)
    table = rows([(0,), (1,), (0, 1)], ("a", "b"))
    np.testing.assert_allclose(
        predictive.log_probability(table)[0],
        np.log([naive.predictive(row, draws, 2) for row in ((0,), (1,), (0,))]),
    )
    assert predictive.complete(table).orders.tolist() == [[0, 1], [1, 0], [0, 1]]
    np.testing.assert_allclose(predictive.next_item(table), [[0, 1], [1, 0], [0, 0]], atol=1e-15)


def test_rates_are_needed_where_the_data_do_not_reach():
    case = Case(CASES["strong prior"])
    fit = dataclasses.replace(case.fit, settings=case.fit.settings.replaced(prior_rate=[0.5, 0.7]))
    predictive = ListPredictive(fit)
    predictive.log_probability(rows([(0, 1)]))
    with pytest.raises(DataError, match="prior_rate has 2 numbers, but 3 places"):
        predictive.log_probability(rows([(0, 1, 2)]))


def test_distinct_lists():
    orders, lengths, inverse = distinct(rows([(1, 2), (0,), (1, 2), (1,)]))
    assert len(orders) == 3
    np.testing.assert_array_equal(orders[inverse], [[1, 2], [0, -1], [1, 2], [1, -1]])
    np.testing.assert_array_equal(lengths[inverse], [2, 1, 2, 1])


def test_long_lists_of_many_items():
    """Forty items and lists of thirty, most of which clusters explain; and rankings that are rankings."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, (4, 6))
    labels[:, :2] = (0, 1)
    first = [tuple(range(30))] * 6
    fit = fit_of(lists=first, items=range(40), counts=[1] * 6, labels=labels, estimate=(0, 1, 0, 1, 0, 1))
    predictive, draws = ListPredictive(fit), as_draws(fit.clusters)
    table, kinds = predictive.sample(12, 30, random_state=1)
    assert (kinds >= 0).sum() > 5
    truth = [np.log(naive.predictive(row, draws, 40)) for row in map(tuple, table.orders[:5].tolist())]
    np.testing.assert_allclose(predictive.log_probability(table)[0][:5], truth, rtol=1e-10)
    full = predictive.complete(table, 40)
    assert full.is_full
    np.testing.assert_array_equal(np.sort(full.orders, axis=1), np.tile(np.arange(40), (12, 1)))
    pairs = predict_pairwise(predictive, table)
    np.testing.assert_allclose(pairs + pairs.transpose(0, 2, 1) + np.eye(40), 1.0, atol=1e-12)
    drawn = predictive.sample_completions(table, 500, 40, random_state=0).orders
    ranks = np.argsort(drawn, axis=2)
    share = np.array([(each[:, :, None] < each[:, None, :]).mean(axis=0) for each in ranks])
    noisy = (pairs > 0.01) & (pairs < 0.99)
    z = (share - pairs)[noisy] / np.sqrt(pairs * (1 - pairs) / 500)[noisy]
    assert np.abs(z).max() < 5.0
    assert 0.7 < np.sqrt(np.mean(z**2)) < 1.3
