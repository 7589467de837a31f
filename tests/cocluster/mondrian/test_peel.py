"""Cuts above others: mistakes in their ratio are found, and the tree is changed as it should be."""

from __future__ import annotations

import importlib.util
import inspect

import numpy as np
import pytest

from permix.cocluster.mondrian import peel_jit
from permix.cocluster.mondrian.moves import ChangeCuts
from permix.cocluster.mondrian.state import MondrianState
from permix.moves.base import Info, Move
from tests.cocluster.mondrian.test_invariance import MOST, data_of, deviations
from tests.every_run import first_in_every_run

# The mistake, and what of the code is written otherwise.
MISTAKES = {
    "the probability of the division is left out": [
        ("threshold < log_ratio - log_q", "threshold < log_ratio"),
        ("threshold < log_q - log_ratio", "threshold < -log_ratio"),
    ],
    "positions anywhere in the node": [
        ("n_cuts * (reaches[0] + reaches[1])", "n_cuts * (extent(tree, node, 0) + extent(tree, node, 1))")
    ],
    "cuts across keep their length": [("log_ratio += abs(cut - edge) * ", "log_ratio += 0.0 * ")],
    "a side as long as the interval": [("log_sides[PEELED] = ", "log_sides[PEELED] = 0.0 * ")],
    "time until the budget is used up": [
        ("time_before(tree, node), first_time)", "time_before(tree, node), budget)"),
        ("log_ratio -= width * (budget - first_time)", "log_ratio -= 0.0"),
    ],
}


class Twin(Move):
    """The move, compiled from its text with a mistake."""

    def __init__(self, mistake, folder):
        text = inspect.getsource(peel_jit)
        for right, wrong in MISTAKES[mistake]:
            assert text.count(right) == 1, f"the code no longer has {right!r}: mend the twin"
            text = text.replace(right, wrong)
        path = folder / "twin_jit.py"
        path.write_text(text)
        spec = importlib.util.spec_from_file_location("twin_jit", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        self.peel = module.peel_cuts

    def step(self, rng, state):
        state.make_room(20)
        parts = (state.block_prior, state.budget, state.tree, state.lines, state.places)
        return Info("twin", 10, self.peel(rng, 10, 1, *parts)[0])


# Others are compiled for seconds as well.
@pytest.mark.parametrize("mistake", first_in_every_run(MISTAKES))
def test_mistakes_in_the_ratio_are_found(mistake, tmp_path):
    # Without data, unless the mistake is about them: all draws weigh the same then.
    kind, n = ("cells", 2000) if "division" in mistake else ("none", 6000)
    assert deviations(kind, Twin(mistake, tmp_path), n).max() > MOST


def cuts_of(*nodes):
    """Nodes in pre-order: an axis, a position and a time, or None for a leaf."""
    axis, cuts, times = zip(*[(-1, np.nan, np.nan) if each is None else each for each in nodes], strict=True)
    return {"axis": np.array(axis), "cuts": np.array(cuts), "times": np.array(times)}


@pytest.mark.parametrize("seed", range(3))
def test_a_cut_with_one_leaf_below_is_removed_and_comes_back(seed):
    """From three blocks, a cut above two of them, the move goes to two blocks and back, and to more."""
    rng = np.random.default_rng(seed)
    state = MondrianState(data_of("none"), 2.0, rng)
    state.restore({**state.checkpoint(), **cuts_of((0, 0.4, 0.1), None, (1, 0.3, 0.5), None, None)})
    seen = set()
    for _ in range(300):
        ChangeCuts(1, above=1.0).step(rng, state)
        axes, cuts, times = state.preorder()
        state.partition()  # checks the tree
        # The cut that there was from the beginning keeps its place and its time, wherever it comes to.
        assert 0.3 in cuts[axes == 1]
        assert 0.5 in times[axes == 1]
        seen.add(len(cuts))
    assert {3, 5, 7} <= seen


def test_a_partition_without_cuts_is_left_alone():
    rng = np.random.default_rng(0)
    state = MondrianState(data_of("cells"), 2.0, rng)
    assert ChangeCuts(5, above=1.0).step(rng, state).accepted == 0
    assert state.n_blocks == 1
