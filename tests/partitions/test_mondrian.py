"""The forward Mondrian process: number of blocks, geometry, and a broken twin."""

from __future__ import annotations

import numpy as np
import pytest

import permix
from permix.datasets import make_mondrian_matrix
from permix.errors import DataError
from permix.partitions.mondrian import MondrianTree, sample_mondrian
from tests.every_run import first_in_every_run

N = 6000


def _blocks_of_twin(rng, budget, sides=(1.0, 1.0)):
    """Count blocks when a cut costs only half of what it should."""
    remaining = budget - rng.exponential(1 / sum(sides))
    if remaining < 0:
        return 1
    place = rng.random() * sum(sides)
    axis = int(place >= sides[0])
    cut = place - axis * sides[0]
    rest = sides[1 - axis]
    left = budget - 0.5 * (budget - remaining)
    return sum(_blocks_of_twin(rng, left, (part, rest)) for part in (cut, sides[axis] - cut))


def _is_mean(counts, mean):
    return abs(np.mean(counts) - mean) < 5 * np.std(counts) / np.sqrt(len(counts))


@pytest.mark.parametrize("budget", first_in_every_run([1.0, 0.5, 2.0]))
def test_mean_number_of_blocks_on_the_unit_square(budget):
    rng = np.random.default_rng(1)
    counts = [sample_mondrian(rng, budget).n_blocks for _ in range(N)]
    assert _is_mean(counts, (1 + budget) ** 2)


def test_twin_with_half_the_cost_is_rejected():
    rng = np.random.default_rng(2)
    assert not _is_mean([_blocks_of_twin(rng, 1.0) for _ in range(N)], 4.0)


def test_a_strip_without_width_is_a_poisson_process():
    rng = np.random.default_rng(3)
    cuts = np.array([sample_mondrian(rng, 1.5, (0.0, 2.0, 0.0, 1e-12)).n_blocks - 1 for _ in range(N)])
    assert abs(cuts.mean() - 3.0) < 5 * np.sqrt(3.0 / N)
    assert abs(cuts.var() - 3.0) < 5 * np.sqrt((3.0 + 2 * 9.0) / N)


def test_no_cut_has_probability_exp_of_minus_the_half_perimeter():
    rng = np.random.default_rng(4)
    whole = np.mean([sample_mondrian(rng, 0.5).n_blocks == 1 for _ in range(N)])
    p = np.exp(-1.0)
    assert abs(whole - p) < 5 * np.sqrt(p * (1 - p) / N)


def test_the_tree_tiles_the_square_and_blocks_are_those_of_the_leaves():
    made = make_mondrian_matrix(60, 50, budget=3.0, family="block", random_state=5)
    tree = made.tree
    leaves = np.flatnonzero(tree.axis < 0)
    heights = tree.rectangles[leaves, 1] - tree.rectangles[leaves, 0]
    widths = tree.rectangles[leaves, 3] - tree.rectangles[leaves, 2]
    assert np.sum(heights * widths) == pytest.approx(1)
    assert tree.blocks[leaves].tolist() == list(range(tree.n_blocks))
    assert np.array_equal(made.data, made.blocks)
    for row, column in np.ndindex(60, 50):
        node = 0
        while tree.axis[node] >= 0:
            at = made.row_coordinates[row] if tree.axis[node] == 0 else made.column_coordinates[column]
            node = tree.children[node, int(at >= tree.cuts[node])]
        assert made.blocks[row, column] == tree.blocks[node]
    inner = np.flatnonzero(tree.axis >= 0)
    assert np.all(tree.budgets[tree.children[inner, 0]] == tree.budgets[tree.children[inner, 1]])
    assert np.all(tree.budgets[tree.children[inner, 0]] < tree.budgets[inner])


def test_cells_of_other_families():
    made = make_mondrian_matrix(30, 30, budget=1.0, family="gaussian", missing=0.2, random_state=6)
    residual = made.data - made.parameters[made.blocks]
    seen = residual[~np.isnan(residual)]
    assert abs(seen.std() - 1) < 5 / np.sqrt(2 * seen.size)


def test_tree_comes_back_from_its_preorder():
    tree = sample_mondrian(np.random.default_rng(4), 3.0)
    axis, cuts, times = tree.to_preorder()
    # What follows the last node is ignored: draws are padded.
    again = MondrianTree.from_preorder(
        np.append(axis, [-1, -1]), np.append(cuts, [np.nan] * 2), np.append(times, [np.nan] * 2), 3.0
    )
    for first, second in zip(tree, again, strict=True):
        np.testing.assert_allclose(first, second)


def test_table_agrees_with_locate():
    rng = np.random.default_rng(5)
    tree = sample_mondrian(rng, 3.0)
    rows, columns = rng.random(50), rng.random(40)
    by_interval = tree.table()[
        np.ix_(np.searchsorted(tree.row_cuts(), rows), np.searchsorted(tree.column_cuts(), columns))
    ]
    np.testing.assert_array_equal(by_interval, tree.locate(rows, columns))
    assert set(tree.table().ravel()) == set(range(tree.n_blocks))


def test_log_density_is_the_product_of_its_steps():
    """Waiting times Exp(τ), cuts uniform along τ: the τ cancel; a leaf has e^(-τ × what is left)."""
    tree = sample_mondrian(np.random.default_rng(6), 2.5, (0.0, 2.0, 0.0, 0.7))
    tau = tree.rectangles[:, 1] - tree.rectangles[:, 0] + tree.rectangles[:, 3] - tree.rectangles[:, 2]
    expected = 0.0
    for node in range(len(tree.axis)):
        left = 0.0 if tree.axis[node] < 0 else tree.budgets[tree.children[node, 0]]
        expected -= tau[node] * (tree.budgets[node] - left)
    assert tree.n_cuts > 3
    assert tree.log_density() == pytest.approx(expected)


@pytest.mark.parametrize(
    ("axis", "cuts", "times", "message"),
    [
        ([0, -1], [0.5, np.nan], [0.1, np.nan], "breaks off"),
        ([0, -1, -1], [1.5, np.nan, np.nan], [0.1, np.nan, np.nan], "outside its rectangle"),
        ([0, -1, -1], [0.5, np.nan, np.nan], [2.0, np.nan, np.nan], "or its budget"),
        ([0, 0, -1, -1, -1], [0.5, 0.2, 0, 0, 0], [0.5, 0.1, 0, 0, 0], "or its budget"),
        ([3, -1, -1], [0.5, 0, 0], [0.5, 0, 0], "axis 3"),
        ([0, -1, -1], [0.5, 0], [0.5, 0, 0], "one axis, one cut"),
        ([0, -1, -1], [np.nan, 0, 0], [0.5, 0, 0], "outside"),
    ],
)
def test_what_is_no_tree_is_refused(axis, cuts, times, message):
    with pytest.raises(DataError, match=message):
        MondrianTree.from_preorder(axis, cuts, times, 1.0)


@pytest.mark.parametrize("budget", [-1, np.nan, np.inf, "1", True])
def test_absurd_budgets_are_refused(budget):
    with pytest.raises(DataError, match="budget"):
        permix.mondrian.sample(budget)
    with pytest.raises(DataError, match="budget"):
        permix.mondrian.expected_blocks(budget)


def test_rectangles_must_have_an_inside():
    with pytest.raises(DataError, match="rectangle"):
        permix.mondrian.sample(1.0, (0, 0, 0, 1))


def test_budget_for_is_the_inverse_of_expected_blocks():
    for n in (1, 4.0, 30):
        assert permix.mondrian.expected_blocks(permix.mondrian.budget_for(n)) == pytest.approx(n)
    with pytest.raises(DataError, match="n_blocks"):
        permix.mondrian.budget_for(0.5)


def test_same_seed_same_partition():
    first, second = (permix.mondrian.sample(2.0, random_state=9) for _ in range(2))
    np.testing.assert_array_equal(first.cuts, second.cuts)


def test_intervals_that_differ_in_nothing_are_of_one_kind():
    """Rows are cut at 1/2, columns of the lower half at 1/3 and 2/3: the upper half has one block."""
    tree = MondrianTree.from_preorder(
        [0, 1, -1, 1, -1, -1, -1], [0.5, 1 / 3, 0, 2 / 3, 0, 0, 0], [0.1, 0.2, 0, 0.3, 0, 0, 0], 1.0
    )
    assert tree.count_groups([0, 1, 1], [0, 1, 2]) == (2, 3, 4)
    assert tree.count_groups([1, 1], [0, 1, 2]) == (1, 1, 1)
    assert tree.count_groups([0], [0, 2]) == (1, 2, 2)
