# mypy: ignore-errors
"""All moves that fits make of a Mondrian partition behind one compiled door.

Kernels that Python calls are optimized apart from each other, each with all that it calls, and the moves call
the same functions. With one kernel for all of them a first run compiles these once. ``cross_cuts``, which
fits do not make, is a kernel of its own.
"""

from __future__ import annotations

from permix.cocluster.mondrian.cuts_jit import change_cuts
from permix.cocluster.mondrian.lines_jit import recount, sweep
from permix.cocluster.mondrian.peel_jit import peel_cuts
from permix.cocluster.mondrian.rotate_jit import rotate_cuts
from permix.cocluster.mondrian.shift_jit import draw_times, graft, redraw_subtree, shift_cuts, stretch_cuts
from permix.cocluster.mondrian.tree_jit import mark_leaves
from permix.kernels.jit import kernel

PUT_DOWN, MARK, PLACE, CHANGE, STRETCH, SHIFT, TIMES, ROTATE, REDRAW, PEEL = range(10)


@kernel
def make_move(rng, move, numbers, prior, budget, tree, spare, data, places, cuts):
    """Make a move; returns how many proposals were made, how many were accepted, and the work of CHANGE
    and PEEL.

    Parameters
    ----------
    move : int
        PUT_DOWN replaces the tree by ``cuts`` and counts the cells of its leaves; MARK computes the marginal
        likelihoods of leaves from what was counted; PLACE draws where lines of
        axis ``numbers[0]`` are; the others are proposed ``numbers[0]`` times.
    numbers : pair of int
        The second is the number of scans of CHANGE and PEEL, and the node below which REDRAW puts ``cuts``.
    spare : Tree
        Of the same capacity, to write on.
    data, places : pairs
        Of the rows, of the columns.
    cuts : (axes, cuts, times)
        Of nodes in pre-order, for PUT_DOWN and REDRAW.
    """
    n, second = numbers
    n_made = work = 0
    if move == PUT_DOWN:
        graft(tree, 0, cuts[0], cuts[1], cuts[2])
        recount(prior, tree, 0, data[0], places[0], places[1])
    elif move == MARK:
        mark_leaves(prior, tree, 0)
    elif move == PLACE:
        n_made = sweep(rng, n, prior, tree, data[n], places[n], places[1 - n])
    elif move == CHANGE:
        n_made, work = change_cuts(rng, n, second, prior, budget, tree, data, places)
    elif move == STRETCH:
        n_made = stretch_cuts(rng, n, budget, tree, places)
    elif move == SHIFT:
        n_made = shift_cuts(rng, n, prior, budget, tree, spare, data, places)
    elif move == TIMES:
        draw_times(rng, budget, tree)
    elif move == ROTATE:
        n, n_made = rotate_cuts(rng, n, budget, tree, places)
    elif move == PEEL:
        n_made, work = peel_cuts(rng, n, second, prior, budget, tree, data, places)
    else:
        n_made = redraw_subtree(rng, prior, tree, spare, data, places, second, cuts)
    return n, n_made, work
