"""Incomplete rankings under angle-based models: sums over all rankings that agree, and draws of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from permix.data.labels import Array
from permix.data.rankings import Rankings
from permix.distributions.angle import completions_jit as jit
from permix.distributions.angle.lists_jit import LANES, LEAST, item_sets, weigh_lists
from permix.distributions.angle.scores import standard_scores
from permix.distributions.base import whole_number
from permix.errors import DataError
from permix.runtime.seeds import RandomState, stream_key
from permix.runtime.threads import over_rows

# Terms of a table that is worth filling for one row: some hundredths of a second.
MOST_TERMS = 2**24
# One table over all subsets of so many items serves all top lists.
MOST_TABLED_ITEMS = 20


def log_compatible_sums(
    rankings: Rankings, tilts: object, *, n_particles: int = 64, random_state: RandomState = 0
) -> tuple[Array, Array]:
    """Sum exp(Σ_r tilt of the item at rank r · score of rank r) over all full rankings that agree with a row.

    Less the ln of the same sum over all rankings, this is the log-probability of an incomplete ranking. Rows
    are full rankings, top lists and rankings of a subset, in any mixture; ``tilts`` (components, items) are
    concentration times direction. Rows too long for a table get ``n_particles`` annealed runs each, which
    start from ``random_state``. Returns ln of the sums and standard errors, both (rows, components); an error
    is 0 where the sum is exact: full rows, and rows with few unlisted items.

    Examples
    --------
    Without tilts the sum counts: 5 rankings agree with four items of five.

    >>> from permix import Rankings
    >>> row = Rankings.from_orders([[4, 0, 2, 3]], n_items=5, unlisted="unknown")
    >>> log_sums, errors = log_compatible_sums(row, np.zeros((1, 5)))
    >>> float(np.exp(log_sums[0, 0]).round(6)), float(errors[0, 0])
    (5.0, 0.0)
    """
    table = _tilts(tilts, rankings)
    n_particles = whole_number("n_particles", n_particles, 2)
    key = stream_key(random_state)
    n_items, n_components = rankings.n_items, len(table)
    scores = standard_scores(n_items)
    terms = _n_terms(rankings)
    found, errors = np.zeros((2, len(rankings), n_components))

    lists = np.flatnonzero(rankings.unlisted_below)
    if n_items > MOST_TABLED_ITEMS or terms[lists].sum() <= 2.0**n_items * n_items:
        lists = lists[:0]  # a table for each row is smaller than one for all
    alone = np.ones(len(rankings), dtype=bool)
    if len(lists):
        listed, lengths, _ = _rows(rankings, lists)
        rest, factors = np.empty((1 << n_items, LANES)), np.empty((n_items, n_items, LANES))
        known, sums = (listed, lengths, item_sets(listed)), np.empty((n_components, len(lists)))
        alone[lists] = False
        for first in range(0, n_components, LANES):
            weigh_lists(first, *known, table, scores, factors, rest, sums, np.empty(n_components))
            # Where the common table has lost their digits, rows need one of their own.
            alone[lists] |= (rest[known[2]] <= LEAST).any(axis=1)
        found[lists] = sums.T

    exact = np.flatnonzero(alone & (terms <= MOST_TERMS))
    if len(exact):
        sums = np.empty((len(exact), n_components))
        cost = int(n_components * (n_items + terms[exact].mean()))
        over_rows(jit.exact_log_sums, len(exact), cost, *_rows(rankings, exact), table, scores, sums)
        found[exact] = sums

    others = np.flatnonzero(alone & (terms > MOST_TERMS))
    if len(others):
        work = (*_rows(rankings, others), table, scores, others, n_particles)
        sums, spread = np.empty((2, len(others), n_components))

        def anneal(first: int, last: int) -> None:
            jit.annealed_log_sums(key, first, last, *work, sums, spread)

        over_rows(anneal, len(others), n_components * n_particles * n_items)
        found[others], errors[others] = sums, spread
    return found, errors


def is_cheap(rankings: Rankings) -> Array:
    """Say which rows have a sum by table, exact and quick; the others need annealing."""
    return np.asarray(_n_terms(rankings) <= MOST_TERMS)


def annealing_cost(row: Rankings, tilts: Array, n_particles: int = 64) -> float:
    """Return how many proposals annealing makes for one row, all components together."""
    listed, lengths, below = _rows(row, np.arange(1))
    what, scores = (listed[0], lengths[0], below[0]), standard_scores(row.n_items)
    steps = sum(jit.annealing_plan(*what, np.array(tilt), scores)[2] for tilt in tilts)
    return float(steps) * n_particles * float(row.n_items - lengths[0])


def sample_completions(
    rankings: Rankings, tilts: object, labels: Any = None, *, n_sweeps: int = 50, random_state: Any = None
) -> Array:
    """Draw, for every row, a full ranking that agrees with it.

    ``tilts`` (components, items) are concentration times direction; ``labels`` say the component of each
    row, the first for all when left out. Rows with few unlisted items are drawn exactly; the others by a
    Metropolis chain of ``n_sweeps`` sweeps, each of as many proposals as there are items. Each row has its
    own random numbers, whatever the number of threads. Returns orderings (rows, items), best first.

    Examples
    --------
    >>> from permix import Rankings
    >>> row = Rankings.from_orders([[2, 0]], n_items=3, unlisted="unknown")
    >>> sample_completions(row, [[-90.0, 120.0, -30.0]], random_state=0)
    array([[2, 0, 1]], dtype=int32)
    """
    table = _tilts(tilts, rankings)
    n_sweeps = whole_number("n_sweeps", n_sweeps, 1)
    chosen = np.zeros(len(rankings), np.int64) if labels is None else np.asarray(labels)
    if chosen.shape != (len(rankings),) or chosen.dtype.kind not in "iu":
        raise DataError(f"labels must be {len(rankings)} whole numbers, the group of each row")
    if len(chosen) and not (chosen.min() >= 0 and chosen.max() < len(table)):
        raise DataError(f"labels go from {chosen.min()} to {chosen.max()}; tilts has {len(table)} group(s)")
    chosen = chosen.astype(np.int64)
    key = stream_key(random_state)
    n_items = rankings.n_items
    model = (*_rows(rankings, np.arange(len(rankings))), chosen, table, standard_scores(n_items))
    orders = np.empty((len(rankings), n_items), np.int32)

    def draw(first: int, last: int) -> None:
        jit.start_completions(key, 0, first, last, *model, orders)
        for sweep in range(1, n_sweeps + 1):
            jit.completions_sweep(key, sweep, first, last, orders, *model, n_items)

    over_rows(draw, len(rankings), n_items * n_sweeps)
    return orders


def _tilts(tilts: object, rankings: Rankings) -> Array:
    table = np.array(tilts, dtype=np.float64)
    if table.ndim != 2 or table.shape[1] != rankings.n_items or not len(table):
        raise DataError(
            f"tilts has shape {table.shape}; it needs a row per group and {rankings.n_items} columns, "
            "one per item"
        )
    if not np.isfinite(table).all():
        component, item = np.argwhere(~np.isfinite(table))[0]
        raise DataError(
            f"tilts: group {component} has {table[component, item]} for "
            f"item {rankings.items[item]!r}; every number must be finite"
        )
    return table


def _rows(rankings: Rankings, rows: Array) -> tuple[Array, Array, Array]:
    """Arrays of some rows as compiled code takes them: writable, and with at least one column."""
    listed = np.full((len(rows), max(1, rankings.orders.shape[1])), -1, dtype=np.int32)
    listed[:, : rankings.orders.shape[1]] = rankings.orders[rows]
    return listed, rankings.lengths[rows], rankings.unlisted_below[rows]


def _n_terms(rankings: Rankings) -> Array:
    """Terms of the table of every row, asked for once for each length."""
    out = np.empty(len(rankings))
    for below in (False, True):
        rows = rankings.unlisted_below == below
        for length in np.unique(rankings.lengths[rows]).tolist():
            out[rows & (rankings.lengths == length)] = jit.n_terms.py_func(length, below, rankings.n_items)
    return out
