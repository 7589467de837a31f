# mypy: ignore-errors
"""Exact draws around a center under Cayley's, Hamming's and the footrule distance."""

from __future__ import annotations

import math

import numpy as np

from permix.kernels.jit import kernel
from permix.kernels.streams import new_stream, open_stream, uniform


@kernel
def cayley_rows(key, first, last, decay, order, out):
    """Fill rows of ``out``: item by item stays, or changes places with one before it, each with weight q."""
    n, q = order.size, math.exp(-decay)
    stream = new_stream()
    for at in range(first, last):
        open_stream(stream, key[0], key[1], 0, at)
        for i in range(n):
            out[at, i] = order[i]
            u = uniform(stream) * (1.0 + i * q)
            if u >= 1.0 and i > 0:
                j = min(np.int64((u - 1.0) / q), i - 1)
                out[at, i], out[at, j] = out[at, j], out[at, i]


@kernel
def hamming_rows(key, first, last, ends, order, out):
    """Fill rows of ``out``: how many items are elsewhere (distribution function ``ends``), which, where."""
    n = order.size
    stream = new_stream()
    moved, places = np.empty(n, np.int64), np.empty(n, np.int64)
    for at in range(first, last):
        open_stream(stream, key[0], key[1], 0, at)
        u, d = uniform(stream), 0
        while d < n and u >= ends[d]:
            d += 1
        for i in range(n):
            moved[i] = i
            out[at, i] = order[i]
        for i in range(d):
            j = i + np.int64(uniform(stream) * (n - i))
            moved[i], moved[j] = moved[j], moved[i]
        fixed = d > 0
        while fixed:  # a permutation without fixed places: a share of about 1 / e has none
            for i in range(d):
                places[i] = i
            fixed = False
            for i in range(d - 1, -1, -1):
                j = np.int64(uniform(stream) * (i + 1))
                places[i], places[j] = places[j], places[i]
                if places[i] == i:
                    fixed = True
                    break
        for i in range(d):
            out[at, moved[places[i]]] = order[moved[i]]


@kernel
def footrule_table(n, decay):
    """Return F_i(h), i = 0..n, each row scaled to a largest entry of one: see ``log_sums._footrule``."""
    half = n // 2
    table = np.zeros((n + 1, half + 2))
    table[0, 0] = 1.0
    for i in range(1, n + 1):
        largest = 0.0
        for h in range(half + 1):
            before = table[i - 1, h - 1] if h > 0 else 0.0
            value = (2 * h + 1) * table[i - 1, h] + h * before + (h + 1) * table[i - 1, h + 1]
            table[i, h] = value * math.exp(-2.0 * decay * h)
            largest = max(largest, table[i, h])
        for h in range(half + 1):
            table[i, h] /= largest
    return table


@kernel
def footrule_rows(key, first, last, table, order, out):
    """Fill rows of ``out``: back through the table for what is open, then forward to match it evenly."""
    n = order.size
    stream = new_stream()
    # Items and places that are not matched yet, and how many there are after each step.
    items, places, n_open = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n + 1, np.int64)
    for at in range(first, last):
        open_stream(stream, key[0], key[1], 0, at)
        h = 0
        n_open[n] = 0
        for i in range(n, 0, -1):
            stays = (2 * h + 1) * table[i - 1, h]
            opened = h * table[i - 1, h - 1] if h > 0 else 0.0
            closed = (h + 1) * table[i - 1, h + 1]
            u = uniform(stream) * (stays + opened + closed)
            if u < opened:
                h -= 1
            elif u < opened + closed:
                h += 1
            n_open[i - 1] = h
        for i in range(n):
            h, following = n_open[i], n_open[i + 1]
            if following > h:
                items[h], places[h] = i, i
            elif following < h:
                j, k = np.int64(uniform(stream) * h), np.int64(uniform(stream) * h)
                out[at, places[j]] = order[i]
                out[at, i] = order[items[k]]
                places[j], items[k] = places[h - 1], items[h - 1]
            else:
                way = np.int64(uniform(stream) * (2 * h + 1))
                if way == 2 * h:
                    out[at, i] = order[i]
                elif way < h:  # the item goes to an open place, and its own stays open
                    out[at, places[way]] = order[i]
                    places[way] = i
                else:
                    out[at, i] = order[items[way - h]]
                    items[way - h] = i
