"""Summaries of clusters without labels, against plain loops over agents and draws."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import scipy.stats

from permix.dp_mallows.results import ClusterSummaries
from permix.errors import DataError
from permix.partitions import Gamma
from permix.posterior import summary
from permix.posterior.intervals import weighted_quantiles
from tests.dp_mallows.cases import LISTS, fit_of, members_of
from tests.dp_mallows.test_predict import relabeled


@pytest.fixture
def fit():
    return fit_of()


def by_members(fit, e):
    """Center ranks and decays of clusters that speak for ``e``: one row for each agent in common."""
    clusters, ranks, theta = fit.clusters, [], []
    links = members_of(clusters, fit.labels)
    for agent in np.flatnonzero(fit.labels == e):
        for d in range(clusters.n_draws):
            k = clusters.labels[d, agent]
            if links[d][k] == [e]:
                ranks.append(np.argsort(clusters.centers[clusters.starts[d] + k]))
                theta.append(clusters.theta[clusters.starts[d] + k])
    return np.array(ranks), np.array(theta)


def quantile(values, level):
    """Smallest value that at least this share does not exceed."""
    ordered = sorted(values)
    return next(v for i, v in enumerate(ordered) if (i + 1) / len(ordered) >= level - 1e-12)


def test_centers_and_decays_are_those_of_clusters_that_speak_for_it(fit):
    found = ClusterSummaries(fit)
    low, high = found.theta_intervals
    for e in range(2):
        ranks, theta = by_members(fit, e)
        np.testing.assert_allclose(found.expected_ranks[e], ranks.mean(axis=0))
        np.testing.assert_array_equal(found.centers.orders[e], np.argsort(ranks.mean(axis=0), kind="stable"))
        np.testing.assert_allclose(found.theta[e], theta.mean(axis=0))
        for j in range(3):
            assert low[e, j] == quantile(theta[:, j], 0.05)
            assert high[e, j] == quantile(theta[:, j], 0.95)
    # The twin lets every cluster of a draw count once, however many members it has.
    rows, _ = found.members(0)
    assert np.abs(fit.clusters.theta[rows].mean(axis=0) - found.theta[0]).max() > 0.01


def test_center_table(fit):
    for e in range(2):
        table = ClusterSummaries(fit).center_table(e, top=2)
        ranks, _ = by_members(fit, e)
        assert table.index.tolist() == [1, 2, 3, 4]
        for _, row in table.iterrows():
            own = ranks[:, fit.items.index(row["item"])]
            assert row["expected_rank"] == pytest.approx(own.mean() + 1)
            # Ranks are whole numbers, and the mean lies between the ends.
            assert row["rank_low"] == min(quantile(own, 0.05) + 1, math.floor(own.mean() + 1))
            assert row["rank_high"] == max(quantile(own, 0.95) + 1, math.ceil(own.mean() + 1))
            assert row["in_top"] == pytest.approx((own < 2).mean())
        assert (np.diff(table["expected_rank"]) >= 0).all()
        assert table["in_top"].sum() == pytest.approx(2.0)
    assert ClusterSummaries(fit).center_table(0, top=3)["in_top"].sum() == pytest.approx(3.0)
    with pytest.raises(DataError, match="there is no group 2"):
        ClusterSummaries(fit).center_table(2, top=3)
    with pytest.raises(DataError, match="group=-1"):
        ClusterSummaries(fit).center_table(-1, top=3)
    with pytest.raises(DataError, match="top=0"):
        ClusterSummaries(fit).center_table(0, top=0)


def test_places_are_not_widened_to_means(fit):
    """An item that is first in nearly all draws stands first, though its mean place is 1.03."""
    often = fit_of(labels=((0, 0, 0, 1, 1, 1, 0),) * 30)
    often.clusters.centers[:] = [0, 1, 2, 3]
    often.clusters.centers[0] = [1, 0, 2, 3]
    for each in (fit, often):
        found = ClusterSummaries(each)
        for e in range(2):
            ranks, _ = by_members(each, e)
            low, high = found.place_intervals(e)
            for place, item in enumerate(found.centers.orders[e].tolist(), start=1):
                own = ranks[:, item] + 1
                assert low[place - 1] <= place <= high[place - 1]
                assert np.mean((own >= low[place - 1]) & (own <= high[place - 1])) >= 0.9 - 1e-12
    # The twin is the interval of the mean, which is a wider one.
    assert [ends.tolist() for ends in ClusterSummaries(often).place_intervals(0)] == [[1, 2, 3, 4]] * 2
    table = ClusterSummaries(often).center_table(0, top=3)
    assert (table["rank_low"].tolist(), table["rank_high"].tolist()) == ([1, 1, 3, 4], [2, 2, 3, 4])


def test_cluster_table(fit):
    table = ClusterSummaries(fit).group_table()
    assert table["size"].tolist() == [4, 3]
    links = members_of(fit.clusters, fit.labels)
    for e in range(2):
        members = np.flatnonzero(fit.labels == e)
        sizes, held = [], []
        for labels, of_draw in zip(fit.clusters.labels, links, strict=True):
            sizes.append(sum((labels == k).sum() for k, linked in enumerate(of_draw) if linked == [e]))
            common = [(labels[members] == k).sum() for k in range(len(of_draw))]
            likeness = [n**2 / (labels == k).sum() for k, n in enumerate(common)]
            held.append(common[int(np.argmax(likeness))] / len(members))
        # Of the population: at concentration 1, a new agent is in a new group with chance 1 / (n + 1).
        assert table["share"][e] == pytest.approx(np.mean(sizes) / (len(fit.labels) + 1))
        drawn = [scipy.stats.beta(n, len(fit.labels) + 1 - n) for n in sizes]
        for end, at in ((table["share_low"][e], 0.05), (table["share_high"][e], 0.95)):
            reached = np.mean([one.cdf(end) for one in drawn])
            assert reached == pytest.approx(at, abs=4 * np.sqrt(at * (1 - at) / 2_000))
        assert table["how_sure"][e] == pytest.approx(np.mean(held))
        _, theta = by_members(fit, e)
        skips = [
            np.average(np.arange(4 - j), weights=np.exp(-row[j] * np.arange(4 - j)))
            for row in theta
            for j in range(3)
        ]
        assert table["expected_distance"][e] == pytest.approx(np.sum(skips) / len(theta))
        assert table["theta_first"][e] == pytest.approx(theta[:, 0].mean())
        assert table["theta_last"][e] == pytest.approx(theta[:, 2].mean())
    orders = ClusterSummaries(fit).centers.orders
    assert table["center"][0] == " ≻ ".join(fit.items[item] for item in orders[0])


def test_long_centers_are_cut_in_the_table():
    fit = fit_of(lists=[(0, 1), (11, 3)], items=range(12), counts=(1, 1), labels=((0, 1),), estimate=(0, 1))
    text = ClusterSummaries(fit).group_table()["center"][0]
    assert text.count("≻") == 10
    assert text.endswith("≻ …")


def test_theta_table_counts_the_lists_that_reach_a_stage(fit):
    table = ClusterSummaries(fit).decay_table()
    assert table.index.names == ["group", "rank"]
    # Cluster 0: two lists of two items, one of three, one full. Cluster 1: two of two, one of one.
    assert table["lists"].tolist() == [4, 4, 2, 3, 2, 0]
    np.testing.assert_allclose(table["theta"], ClusterSummaries(fit).theta.ravel())
    assert (table["theta_low"] <= table["theta"]).all()
    assert (table["theta"] <= table["theta_high"]).all()


def test_names_of_draws_clusters_do_not_matter(fit):
    other = relabeled(fit, np.arange(4), [(1, 0), (2, 0, 1), (1, 0)])
    first, second = ClusterSummaries(fit), ClusterSummaries(other)
    np.testing.assert_allclose(first.theta, second.theta)
    np.testing.assert_allclose(first.expected_ranks, second.expected_ranks)
    np.testing.assert_array_equal(first.share_intervals, second.share_intervals)
    np.testing.assert_allclose(first.theta_intervals, second.theta_intervals)


def test_the_estimate_may_number_clusters_as_it_likes(fit):
    swapped = dataclasses.replace(fit.estimate, labels=1 - fit.estimate.labels)
    other = dataclasses.replace(fit, estimate=swapped)
    np.testing.assert_array_equal(other.labels, fit.labels)  # the largest comes first, whatever its number
    assert ClusterSummaries(other).group_table().equals(ClusterSummaries(fit).group_table())


def test_counts_are_agents(fit):
    rows = [row for row, count in zip(LISTS, (2, 1, 2, 1, 1), strict=True) for _ in range(count)]
    apart = fit_of(lists=rows, counts=[1] * 7)
    assert ClusterSummaries(apart).decay_table().equals(ClusterSummaries(fit).decay_table())


def test_weighted_quantiles():
    values = np.array([[3.0, 1.0, 2.0], [5.0, 5.0, 5.0]])
    weights = np.array([0.2, 0.05, 0.75])
    found = weighted_quantiles(values, weights, (0.05, 0.06, 0.8, 0.95))
    assert found.tolist() == [[1.0, 5.0], [2.0, 5.0], [2.0, 5.0], [3.0, 5.0]]
    whole = weighted_quantiles(np.tile(np.arange(10), (1, 1)), np.full(10, 0.1), (0.5, 1.0))
    assert whole.tolist() == [[4], [9]]


# Remarks.


def remarks(fit):
    return "\n".join(ClusterSummaries(fit).remarks())


def test_a_plain_fit_needs_few_words():
    fit = fit_of(labels=((0, 0, 0, 1, 1, 1, 0),) * 3)
    assert remarks(fit) == ""


def test_remarks():
    assert "'beta-gibbs' is the published approximation" in remarks(fit_of(sampler="beta-gibbs"))
    alone = fit_of(labels=((0, 0, 0, 1, 1, 1, 2),) * 3, estimate=(0, 0, 0, 1, 1, 1, 2))
    assert "1 of 3 groups holds one agent, who" in remarks(alone)
    two = fit_of(labels=((0, 0, 3, 1, 1, 1, 2),) * 3, estimate=(0, 0, 3, 1, 1, 1, 2))
    assert "2 of 4 groups hold one agent each" in remarks(two)
    split = fit_of(labels=((0, 1, 2, 3, 4, 5, 6),) * 3)
    assert "groups 1 and 2: draws often divide" in remarks(split)
    assert "draws have 7 to 7 groups, the estimate 2" in remarks(split)
    short = fit_of(lists=[(0, 1), (2,), (3, 2), (3,), (0, 2)])
    assert "more than 2 of 4 items" in remarks(short)
    fit = fit_of()
    stopped = dataclasses.replace(fit, draws=dataclasses.replace(fit.draws, interrupted=True))
    assert "stopped early, after 3 draws" in remarks(stopped)


def test_chains_that_disagree_are_noted_once():
    """In the verdict about chains, which reports begin with, and not once more in other words."""
    fit = fit_of(concentration=Gamma(1.0, 1.0))
    rng = np.random.default_rng(0)
    apart = rng.normal(0.0, 1.0, (2, 200)) + np.array([[0.0], [9.0]])
    arrays = {**fit.draws.arrays, "log_joint": apart, "concentration": rng.gamma(2.0, 1.0, (2, 200))}
    other = dataclasses.replace(fit, draws=dataclasses.replace(fit.draws, arrays=arrays))
    assert summary(other.draws)["note"].to_dict()["log_joint"] == "chains disagree"
    assert "disagree" not in remarks(other)
