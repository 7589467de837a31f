"""The forward Mondrian process: number of blocks, geometry, and a broken twin."""

from __future__ import annotations

import numpy as np
import pytest

from permix.datasets import make_mondrian_matrix
from permix.partitions.mondrian import sample_mondrian

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


@pytest.mark.parametrize("budget", [0.5, 1.0, 2.0])
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
