"""One step of each Mondrian move, from exact draws: nothing may change on average.

States are drawn from the prior by algorithm 1 and weighed by their likelihood, so that they stand for the
posterior; a move that leaves it invariant leaves the weighted mean of every feature where it was. Draws are
independent, so the standard errors are exact.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from scipy.integrate import quad

from permix.cocluster.cells.encoded_matrix import encode_matrix
from permix.cocluster.cells.families import CategoricalCells
from permix.cocluster.mondrian.moves import ChangeCuts, CrossCuts, PlaceLines, RedrawSubtree, RotateCuts
from permix.cocluster.mondrian.moves_jit import SHIFT, STRETCH, TIMES
from permix.cocluster.mondrian.rotate_jit import log_without_times, turn
from permix.cocluster.mondrian.state import MondrianData, MondrianState
from permix.cocluster.mondrian.tree_jit import (
    AXIS,
    CUT,
    FIRST,
    LEAF,
    PARENT,
    SECOND,
    TIME,
    draw_time,
    log_density,
)
from permix.moves.base import Info, Move
from permix.partitions.mondrian import sample_mondrian
from tests.every_run import turns_in_every_run

# The largest of some twenty deviations exceeds this once in some 100,000 runs.
MOST = 5.0


class Made(Move):
    """One of the compiled moves by itself."""

    def __init__(self, move, n):
        self.move, self.n = move, n

    def step(self, rng, state):
        tried, made = state.make(rng, self.move, self.n)
        return Info("made", tried, tried if self.move == TIMES else made)


MOVES = {
    "rotate": RotateCuts(30),
    "stretch": Made(STRETCH, 15),
    "shift": Made(SHIFT, 8),
    "times": Made(TIMES, 1),
    "redraw": RedrawSubtree(3),
    "cuts": ChangeCuts(10, 1),
    "places": PlaceLines(),
    "peel": ChangeCuts(10, 1, above=1.0),
    "cross": CrossCuts(30, 1),
}


def features_of(state):
    """Numbers that tell where cuts are, when they are made, how they cross, and who is where."""
    tree = state.partition()
    inner = tree.axis >= 0
    times = tree.times()
    height, width = (tree.rectangles[:, 2 * i + 1] - tree.rectangles[:, 2 * i] for i in (0, 1))
    length = np.where(tree.axis == 0, width, height)[inner]
    crossing = [
        node
        for node in np.flatnonzero(inner)
        if all(tree.axis[child] == 1 - tree.axis[node] for child in tree.children[node])
    ]
    lower = np.array([times[tree.children[node]] for node in crossing]).reshape(-1, 2)
    rows, columns = state.places
    return np.array(
        [
            inner.sum(),
            (tree.axis == 0).sum(),
            tree.axis[0] == 0,
            np.nansum(times),
            np.nansum(times**2),
            length.sum(),
            (length**2).sum(),
            (length * times[inner]).sum(),
            np.nansum((tree.cuts - 0.5) ** 2),
            ((height * width)[~inner] ** 2).sum(),
            len(crossing),
            lower.sum(),
            (lower**2).sum(),
            sum(tree.axis[node] == 0 for node in crossing),
            len(np.unique(state.intervals(0))),
            len(np.unique(state.intervals(1))),
            rows.mean(),
            (columns**2).mean(),
            state.log_likelihood(),
            np.exp(state.log_likelihood() / 4.0),
        ],
        dtype=float,
    )


@cache
def data_of(kind):
    if kind == "none":
        # One row and many columns: symmetry would hide what exchanges rows for columns.
        shape, rows, columns, values = (1, 12), [], [], []
    else:
        table = np.array([[1, 1, 2, 2, 2], [1, 1, 1, 2, 2], [2, 1, 1, 1, 1]])
        shape = table.shape
        rows, columns = np.nonzero(np.arange(15).reshape(shape) % 7 != 3)
        values = table[rows, columns]
    as_codes = [np.array(part, dtype=np.int64) for part in (rows, columns)]
    family = CategoricalCells(0.7, levels=(1, 2))
    return MondrianData.of(encode_matrix(family, *as_codes, np.array(values, dtype=float), shape))


def deviations(kind, move, n, budget=2.5, seed=1):
    """Weighted mean change of every feature, in standard errors."""
    data = data_of(kind)
    rng = np.random.default_rng(seed)
    state = MondrianState(data, budget, rng)
    changes, log_weights, moved = [], [], 0
    for _ in range(n):
        axis, cuts, times = sample_mondrian(rng, budget).to_preorder()
        places = {"rows": rng.random(data.n_rows), "columns": rng.random(data.n_columns)}
        state.restore({**places, "axis": axis, "cuts": cuts, "times": times})
        before = features_of(state)
        log_weights.append(state.log_likelihood())
        moved += move.step(rng, state).accepted > 0
        changes.append(features_of(state) - before)
    weights = np.exp(np.array(log_weights) - max(log_weights))[:, None]
    changes = np.array(changes)
    error = np.sqrt((weights**2 * changes**2).sum(axis=0))
    total = (weights * changes).sum(axis=0)
    assert moved > n / 20
    return np.abs(total) / np.where(error > 0, error, 1.0)


@pytest.mark.parametrize(("name", "kind"), turns_in_every_run(MOVES, ["none", "cells"]))
def test_a_step_changes_nothing_on_average(name, kind):
    assert deviations(kind, MOVES[name], 1000).max() < MOST


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["none", "cells"])
@pytest.mark.parametrize("name", MOVES)
def test_a_step_changes_nothing_on_average_in_many_draws(name, kind):
    assert deviations(kind, MOVES[name], 20_000).max() < MOST


def test_what_exchanges_are_weighed_by_is_the_prior_without_the_times_drawn():
    """The lower times are drawn from their conditionals, so their density must cancel, before and after."""
    rng = np.random.default_rng(4)
    state = MondrianState(data_of("none"), 3.0, rng)
    axis, cuts, times = [0, 1, -1, 1, -1, -1, 1, -1, -1], [0.4, 0.3, 0, 0.7, 0, 0, 0.6, 0, 0], [0.0] * 9
    times[:7] = [0.2, 0.5, np.nan, 1.3, np.nan, np.nan, 0.9]
    tree = {"axis": np.array(axis), "cuts": np.array(cuts, dtype=float), "times": np.array(times)}
    state.restore({"rows": rng.random(1), "columns": rng.random(12), **tree})
    links, numbers = state.tree.links, state.tree.numbers
    node = int(links[np.flatnonzero(numbers[:, CUT] == 0.3)[0], PARENT])
    left, right = links[node, [FIRST, SECOND]]
    found = log_without_times(state.tree, node, state.budget)

    def density(of, time):
        kept, numbers[of, TIME] = numbers[of, TIME], time
        value = np.exp(log_density(state.tree, node, state.budget))
        numbers[of, TIME] = kept
        return value

    # The integral over both times is a product, the terms of a time being its own.
    at = np.exp(log_density(state.tree, node, state.budget))
    integrals = [
        quad(lambda t: density(left, t), 0.2, 1.3)[0],
        quad(lambda t: density(right, t), 0.2, 3.0)[0],
    ]
    assert found == pytest.approx(np.log(integrals[0] * integrals[1] / at), abs=1e-9)
    for of, time in ((left, 0.21), (left, 1.29), (right, 2.9)):
        numbers[of, TIME] = time
        assert log_without_times(state.tree, node, state.budget) == pytest.approx(found, abs=1e-12)
    # The twin: a density that still holds the times is none of that.
    numbers[left, TIME] = 0.3
    assert abs(log_density(state.tree, node, state.budget) - np.log(at)) > 0.01


def test_parallel_cuts_exchanged_without_weighing_are_rejected():
    """The twin: the exchange is made whatever room it leaves for the time of the lower cut."""

    class Unweighed(Move):
        def step(self, rng, state):
            links, made = state.tree.links, 0
            for _ in range(30):
                node, side = (
                    int(rng.choice(np.flatnonzero(links[:, AXIS] >= LEAF))),
                    int(rng.choice([FIRST, SECOND])),
                )
                child = links[node, side]
                if links[node, AXIS] >= 0 and links[child, AXIS] == links[node, AXIS]:
                    turn(state.tree, node, side)
                    draw_time(rng, state.tree, child, state.budget)
                    made += 1
            return Info("unweighed", 30, made)

    assert deviations("none", Unweighed(), 1000).max() > MOST


def test_a_move_of_another_prior_is_rejected():
    """The twin: everything drawn afresh, from a smaller budget."""

    class Skimpy(Move):
        def step(self, rng, state):
            state.restore({**state.checkpoint(), **smaller(rng)})
            return Info("skimpy", 1, 1)

    def smaller(rng):
        return dict(zip(("axis", "cuts", "times"), sample_mondrian(rng, 2.1).to_preorder(), strict=True))

    assert deviations("none", Skimpy(), 1000).max() > MOST
