"""What is said of centers, against their draws looked at one by one."""

from __future__ import annotations

import warnings
from functools import cache

import numpy as np
import pytest

import permix
from permix.bayes_mallows.consensus import WAYS, drawn_centers
from permix.errors import DataError
from tests.oracles import bayes_mallows as oracle


@cache
def fitted(distance="kendall", groups=1):
    made = permix.datasets.make_mallows_mixture(9, 5, 1, dispersion=0.75, random_state=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about few draws
        return permix.BayesianMallowsMixture(
            groups, distance=distance, n_draws=80, n_burn_in=50, random_state=0, progress=False
        ).fit(made.data)


def centers_of(model, group):
    """All centers drawn of a group with their weights, by looking at every member in every draw."""
    groups, labels = model._fit.groups, model._fit.labels
    found = {}
    for d in range(groups.n_draws):
        for member in np.flatnonzero(model._fit.overlap.linked[groups.starts[d] + groups.labels[d]] == group):
            if labels[member] == group:
                center = tuple(groups.centers[groups.starts[d] + groups.labels[d][member]].tolist())
                found[center] = found.get(center, 0) + 1
    total = sum(found.values())
    return {center: times / total for center, times in found.items()}


@pytest.mark.parametrize("distance", oracle.DISTANCES)
def test_least_distance_is_the_least(distance):
    model = fitted(distance)
    drawn = centers_of(model, 0)
    function = oracle.DISTANCES[distance]
    expected = {
        order: sum(share * function(center, order) for center, share in drawn.items())
        for order in oracle.orderings(5)
    }
    table = model.consensus(by="least-distance")
    order = tuple(table["item"])
    assert expected[order] == pytest.approx(min(expected.values()))
    assert table.attrs["expected_distance"] == pytest.approx(expected[order])
    assert table.attrs["probability"] == pytest.approx(drawn.get(order, 0.0))


@pytest.mark.parametrize("groups", [1, 2])
def test_probabilities_of_ranks_and_pairs(groups):
    model = fitted(groups=groups)
    for group in range(model.n_clusters_):
        drawn = centers_of(model, group)
        orders, shares = np.array(list(drawn)), np.array(list(drawn.values()))
        ranks = np.argsort(orders, axis=1)
        table, above = model.rank_probabilities(group), model.center_pairwise(group)
        assert table.index.tolist() == above.columns.tolist() == list(model.centers_.orders[group])
        for item in range(5):
            expected = np.bincount(ranks[:, item], shares, 5)
            np.testing.assert_allclose(table.loc[item], expected, atol=1e-12)
            for other in range(5):
                wins = shares[ranks[:, item] < ranks[:, other]].sum()
                assert above.loc[item, other] == pytest.approx(wins)
        np.testing.assert_allclose(table.sum(axis=0), 1.0)
        np.testing.assert_allclose(model.center(group, top=2)["in_top"], table[[1, 2]].sum(axis=1))


def test_credible_sets_are_the_smallest():
    model = fitted()
    drawn = sorted(centers_of(model, 0).values(), reverse=True)
    for probability in (0.3, 0.9, 1.0):
        found = model.credible_set(probability=probability)
        n = len(found)
        assert found["together"].iloc[-1] >= probability - 1e-9
        assert n == 1 or sum(drawn[: n - 1]) < probability
        np.testing.assert_allclose(found["probability"], drawn[:n], atol=1e-12)
    assert len(model.credible_set(probability=1.0)) == len(drawn)


def test_draws_that_hardly_repeat_are_told():
    votes = permix.Rankings.from_orders([np.random.default_rng(k).permutation(12).tolist() for k in range(4)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = permix.BayesianMallowsMixture(n_draws=40, n_burn_in=20, random_state=0, progress=False)
        model.fit(votes)
    assert "hardly repeat" in model.credible_set().attrs["note"]
    assert fitted().credible_set().attrs["note"] == ""


def test_cumulative_fills_places_from_the_first():
    model = fitted()
    table, order = model.rank_probabilities(), model.consensus(by="cumulative")["item"].tolist()
    upto = table.cumsum(axis=1)
    for place, item in enumerate(order):
        left = order[place:]
        assert upto.loc[item, place + 1] >= upto.loc[left, place + 1].max() - 1e-12
    np.testing.assert_allclose(
        model.consensus(by="cumulative")["up_to_rank"],
        [upto.loc[item, place + 1] for place, item in enumerate(order)],
    )


def test_the_most_probable_center():
    model = fitted()
    orders, shares = drawn_centers(model._summaries, 0)
    table = model.consensus(by="most-probable")
    assert table["item"].tolist() == orders[0].tolist()
    assert table.attrs["probability"] == pytest.approx(shares[0])
    assert shares[0] == pytest.approx(max(centers_of(model, 0).values()))
    assert model.consensus()["item"].tolist() == model.centers_.orders[0].tolist()


def test_assignments_have_a_row_for_each_row():
    model = fitted(groups=2)
    table = model.assignments()
    shares = table.filter(like="group_").to_numpy()
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    np.testing.assert_array_equal(table["group"], model.labels_)
    np.testing.assert_allclose(table["how_sure"], shares.max(axis=1))


def test_wrong_questions_are_refused():
    model = fitted()
    with pytest.raises(DataError, match="there is no group 1"):
        model.consensus(1)
    with pytest.raises(DataError, match='must be "expected-rank", "cumulative"'):
        model.consensus(by="median")
    with pytest.raises(DataError, match="above 0 and 1 or less"):
        model.credible_set(probability=0.0)
    assert set(WAYS) == {"expected-rank", "cumulative", "most-probable", "least-distance"}
