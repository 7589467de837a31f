"""Cuts above others and cuts that cross: mistakes in ratios are found, trees stay trees."""

from __future__ import annotations

import importlib.util
import inspect
import sys

import numpy as np
import pytest

from permix.cocluster.mondrian import cross_jit, peel_jit
from permix.cocluster.mondrian.moves import ChangeCuts
from permix.cocluster.mondrian.state import MondrianState
from permix.moves.base import Info, Move
from tests.cocluster.mondrian.test_invariance import MOST, data_of, deviations
from tests.every_run import first_in_every_run

# The mistake, the module and the kernel, and what of the text is written otherwise.
MISTAKES = {
    "the probability of the division is left out": (
        peel_jit,
        ("threshold < log_ratio - log_q", "threshold < log_ratio"),
        ("threshold < log_q - log_ratio", "threshold < -log_ratio"),
    ),
    "places of exchanges without the length of their interval": (
        cross_jit,
        (" - math.log(ends[chosen] - starts[chosen])", ""),
    ),
    "positions anywhere in the node": (
        peel_jit,
        ("n_cuts * (reaches[0] + reaches[1])", "n_cuts * (extent(tree, node, 0) + extent(tree, node, 1))"),
    ),
    "cuts across keep their length": (
        peel_jit,
        ("log_ratio += abs(cut - edge) * ", "log_ratio += 0.0 * "),
    ),
    "a side as long as the interval": (
        peel_jit,
        ("log_sides[PEELED] = ", "log_sides[PEELED] = 0.0 * "),
    ),
    "time until the budget is used up": (
        peel_jit,
        ("time_before(tree, node), first_time)", "time_before(tree, node), budget)"),
        ("log_ratio -= width * (budget - first_time)", "log_ratio -= 0.0"),
    ),
    "spans of exchanges are taken to be as long": (
        cross_jit,
        ("math.log((high - low) / (above - below))", "0.0"),
    ),
    "the densities of places by the data are left out": (
        cross_jit,
        ("log_ratio += place_anew(", "log_ratio += 0.0 * place_anew("),
        ("log_ratio -= place_anew(", "log_ratio -= 0.0 * place_anew("),
    ),
}


class Twin(Move):
    """A move, compiled from its text with a mistake."""

    def __init__(self, mistake, folder):
        module, *changes = MISTAKES[mistake]
        text = inspect.getsource(module)
        for right, wrong in changes:
            assert text.count(right) == 1, f"the code no longer has {right!r}: mend the twin"
            text = text.replace(right, wrong)
        # Under a name of its own, by which its compiled code is found again in later runs.
        name = f"twin{list(MISTAKES).index(mistake)}_jit"
        path = folder / f"{name}.py"
        path.write_text(text)
        spec = importlib.util.spec_from_file_location(name, path)
        twin = sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(twin)
        self.peel = getattr(twin, "peel_cuts", None)
        self.cross = getattr(twin, "cross_cuts", None)

    def step(self, rng, state):
        state.make_room(20)
        rest = (state.lines, state.places)
        if self.peel is not None:
            parts = (state.block_prior, state.budget, state.tree)
            return Info("twin", 10, self.peel(rng, 10, 1, *parts, *rest)[0])
        parts = (state.block_prior, state.budget, state.tree, state.spare)
        return Info("twin", *self.cross(rng, 30, 1, *parts, *rest))


# Others are compiled for seconds as well.
@pytest.mark.parametrize("mistake", first_in_every_run(MISTAKES, 2))
def test_mistakes_in_the_ratio_are_found(mistake, tmp_path):
    # Without data, unless the mistake is about them: all draws weigh the same then.
    kind, n = ("none", 3000 if "without the length" in mistake else 6000)
    if "division" in mistake or "data" in mistake:
        kind, n = ("cells", 1200 if "division" in mistake else 8000)
    assert deviations(kind, Twin(mistake, tmp_path), n, 3.5).max() > MOST


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
