"""What reports say of groups of rankings, beside what is known exactly."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import permix
from permix.reporting.ballots import data_sentences
from permix.reporting.context import Context
from permix.reporting.rank_answer import group_sentence, sentences
from permix.reporting.rank_groups import RankedGroup, RankedGroups, as_far_as_told, membership_numbers
from permix.reporting.rank_sections import center_table

NAMES = ["tea", "milk", "water", "juice", "cocoa", "cola"]


def groups_of(centers, shares, dispersions, **more):
    models = [
        permix.Mallows(list(c), d, items=range(len(c))) for c, d in zip(centers, dispersions, strict=True)
    ]

    def draw(k, size, rng):
        return models[k].sample(size, random_state=rng).orders

    found = [
        RankedGroup(share, share - 0.05, share + 0.05, 100, 0.9, np.array(center))
        for share, center in zip(shares, centers, strict=True)
    ]
    options = {"share_is": "", "center_is": "", **more}
    return models, RankedGroups(NAMES[: len(centers[0])], found, 200, draw, **options)


def test_pairs_and_ranks_are_those_of_the_model():
    models, found = groups_of([[0, 1, 2, 3, 4], [4, 2, 1, 0, 3]], [0.7, 0.3], [0.4, 0.7])
    order = found.compared
    for k, model in enumerate(models):
        exact = model.pairwise()[np.ix_(order, order)]
        # 4,000 draws: five standard errors of a share.
        off = np.abs(found.before[k] - exact)
        np.fill_diagonal(off, 0.0)
        assert off.max() < 5 * 0.5 / np.sqrt(4000)
        marginals = model.rank_marginals()
        np.testing.assert_allclose(found.mean_ranks[k], marginals @ np.arange(1, 6), atol=0.15)
        np.testing.assert_allclose(found.first[k], marginals[:, 0], atol=0.04)
        low, high = found.rank_range(k)
        inside = [
            marginals[item, int(np.floor(low[item])) - 1 : int(np.ceil(high[item]))].sum()
            for item in range(5)
        ]
        assert min(inside) > 0.85
    # The twin: rows and columns exchanged.
    assert np.abs(found.before[0].T - models[0].pairwise()[np.ix_(order, order)]).max() > 0.2
    np.testing.assert_allclose(found.before_overall, 0.7 * found.before[0] + 0.3 * found.before[1])


def test_what_sets_a_group_apart():
    _, found = groups_of([[0, 1, 2, 3, 4, 5], [5, 1, 2, 3, 4, 0]], [0.6, 0.4], [0.3, 0.3])
    assert found.telling(0) == [0, 5]
    assert found.telling(1) == [5, 0]
    assert group_sentence(found, 0) == (
        "Group 1, 60% (55–65) of the agents: its center ranks tea first, then milk and water, and cola "
        f"last; {found.first[0, 0]:.0%} of its members put tea first. "
        "What sets it apart: tea 1st (6th in group 2) and cola 6th (1st in group 2)."
    )
    pair = {int(found.compared[at]) for at in found.dividing_pairs(1)[0]}
    assert pair == {0, 5}


def test_names_with_commas_are_told_apart():
    """Election offices write "Bryant, Peter G.": two of them in a list would read as four."""
    _, found = groups_of([[0, 1, 2, 3, 4, 5], [5, 1, 2, 3, 4, 0]], [0.6, 0.4], [0.3, 0.3])
    found.short[1:3] = ["Bryant, Peter G.", "Ann and Bo"]
    assert "ranks tea first, then “Bryant, Peter G.” and “Ann and Bo”, and cola last" in group_sentence(
        found, 0
    )
    agreed = [tuple(int(found.compared[at]) for at in pair) for pair in found.agreed_pairs(10)]
    assert (1, 3) in agreed
    assert not {(0, 5), (5, 0)} & set(agreed)


@pytest.mark.parametrize(
    ("times", "said"),
    [
        ([3, 3], "Two groups of agents recur in all 3 chains, among 200 agents and 4 items."),
        ([0, 0], "none of them recurs"),
        ([3, 0], "4 items; group 1 recurs in all 3 chains and group 2 in no chain."),
        ([1, 2], "4 items; group 2 recurs in 2 of 3 chains and group 1 in 1."),
    ],
)
def test_the_first_sentence_says_what_recurs(times, said):
    _, found = groups_of([[0, 1, 2, 3], [3, 2, 1, 0]], [0.6, 0.4], [0.3, 0.3], runs=3)
    for k, n in enumerate(times):
        found.groups[k] = found.groups[k]._replace(found=n)
    assert said in sentences(found)[0]


def test_lists_that_leave_items_out_share_the_places_left():
    def none(k, size, rng):
        raise AssertionError("centers need no draws")

    found = RankedGroups(
        NAMES[:4],
        [RankedGroup(1.0, None, None, 5, 1.0, np.array([2, 0]))],
        5,
        none,
        share_is="",
        center_is="",
    )
    assert found.places.tolist() == [[2.0, 3.5, 1.0, 3.5]]


def test_members_are_counted_by_their_most_probable_group():
    probabilities = np.array([[0.9, 0.1], [0.4, 0.6], [1.0, 0.0]])
    agents, sure = membership_numbers(probabilities, np.array([10, 5, 5]))
    assert agents.tolist() == [15, 5]
    np.testing.assert_allclose(sure, [(9 + 5) / 15, 0.6])


def test_where_others_have_an_item_is_said_of_each_as_in_the_table():
    _, two = groups_of([[0, 1, 2, 3, 4, 5], [5, 1, 2, 3, 4, 0]], [0.6, 0.4], [0.3, 0.3])
    assert "tea 1st (6th in group 2)" in group_sentence(two, 0)
    centers = [[0, 1, 2, 3, 4, 5], [5, 1, 2, 3, 4, 0], [1, 2, 3, 0, 4, 5]]
    _, three = groups_of(centers, [0.4, 0.3, 0.3], [0.3] * 3)
    assert "tea 1st (6th in group 2, 4th in group 3)" in group_sentence(three, 0)
    _, four = groups_of([*centers, [5, 4, 3, 2, 1, 0]], [0.4, 0.3, 0.2, 0.1], [0.3] * 4)
    # Of many groups the mean, with the digits that the table of the center has.
    table = center_table(four, 0)
    mean = dict(zip(table.columns, table.rows[0], strict=True))["place elsewhere"]
    assert mean == "5.3"
    assert f"tea 1st (elsewhere {mean} on average)" in group_sentence(four, 0)


def test_of_many_groups_the_one_most_alike_is_named_and_where_the_two_differ():
    centers = [[0, 1, 2, 3, 4, 5], [5, 1, 2, 3, 4, 0], [1, 2, 3, 0, 4, 5], [5, 4, 3, 2, 1, 0]]
    _, four = groups_of(centers, [0.4, 0.3, 0.2, 0.1], [0.3] * 4)
    assert [four.nearest(k) for k in range(4)] == [2, 3, 0, 1]
    assert group_sentence(four, 0).endswith(
        "Most like it is group 3, with tea 4th (here 1st) and milk 1st (here 2nd)."
    )
    _, three = groups_of(centers[:3], [0.4, 0.3, 0.3], [0.3] * 3)
    assert "Most like it" not in group_sentence(three, 0)
    _, same = groups_of([centers[0], centers[0], centers[1], centers[3]], [0.25] * 4, [0.3] * 4)
    assert "Most like it is group 2, with much the same order." in group_sentence(same, 0)


def test_no_item_is_called_last_by_a_center_that_leaves_items_out():
    _, found = groups_of([[0, 1, 2, 3, 4, 5], [5, 1, 2, 3, 4, 0]], [0.6, 0.4], [0.3, 0.3])
    short = [group._replace(order=group.order[:5]) for group in found.groups]
    partial = dataclasses.replace(found, groups=short)
    said = group_sentence(partial, 0)
    assert " last" not in said
    assert "leaves out 1 item" in said
    assert "cola not ranked (1st in group 2)" in said
    assert "and cola last" in group_sentence(found, 0)
    shorter = dataclasses.replace(found, groups=[group._replace(order=group.order[:2]) for group in short])
    assert "its center is tea ≻ milk ≻ the rest" in group_sentence(shorter, 0)


def test_places_beyond_the_longest_ballot_are_not_told():
    """Ballots of three ranks say nothing of who is fourth or last: the model made it up."""
    centers = [[0, 1, 2, 3, 4, 5], [5, 1, 2, 3, 4, 0], [1, 2, 3, 0, 5, 4], [5, 4, 3, 2, 1, 0]]
    _, found = groups_of(centers, [0.4, 0.3, 0.2, 0.1], [0.3] * 4)
    assert "last" in group_sentence(found, 0)
    data = [
        {"what": "items", "value": "6"},
        {"what": "shortest and longest ranking", "value": "1 and 3 items"},
        {"what": "items that are not ranked are taken to be", "value": "below those that are"},
    ]
    short = as_far_as_told(found, Context("", {"data": data}))
    assert short.longest == 3
    said = group_sentence(short, 0)
    assert "its center is tea ≻ milk ≻ water ≻ the rest" in said
    assert "last" not in said
    assert "cola below the first three" in said
    assert [row[1] for row in center_table(short, 0).rows] == ["1", "2", "3", ">3", ">3", ">3"]
    assert "No ballot ranks more than 3 of 6 items: places 4 to 6" in data_sentences({"data": data}, None)[0]
    # Lists of all but one item say who is last; subsets that were ranked say nothing of how many could be.
    full = [data[0], {**data[1], "value": "1 and 5 items"}, data[2]]
    subsets = [*data[:2], {**data[2], "value": "not asked about"}]
    for told in (full, subsets, []):
        assert as_far_as_told(found, Context("", {"data": told})).longest is None
        assert data_sentences({"data": told}, None) == ()
