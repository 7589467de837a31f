# mypy: ignore-errors
"""Compiled side of ``block_predict``: what blocks add up to, and how rows fit into them."""

from __future__ import annotations

import numpy as np

from permix.cocluster.cells.blocks_jit import log_gain
from permix.kernels.jit import kernel


@kernel
def score_rows(prior, table, n, sums, own_n, own_sums, log_weights, joint):
    """Fill ``joint`` with ln(weight × probability of a new row's cells) by new row and row class.

    ``own_n`` and ``own_sums`` are what the new rows' cells add up to, by new row and column class; column
    classes that are in one block of a row class are taken together.
    """
    n_slots = sums.shape[1]
    slots = np.arange(n_slots)
    merged_n = np.zeros(n.shape[0], np.int64)
    merged_sums = np.zeros_like(sums)
    touched = np.empty(own_n.shape[1], np.int64)
    for row in range(own_n.shape[0]):
        for k in range(table.shape[0]):
            n_touched = 0
            for group in range(own_n.shape[1]):
                if own_n[row, group] == 0:
                    continue
                block = table[k, group]
                if merged_n[block] == 0:
                    touched[n_touched] = block
                    n_touched += 1
                merged_n[block] += own_n[row, group]
                for slot in range(n_slots):
                    merged_sums[block, slot] += own_sums[row, group, slot]
            total = log_weights[k]
            for position in range(n_touched):
                block = touched[position]
                further = (merged_n[block], slots, merged_sums[block], 0, n_slots)
                total += log_gain(prior, n[block], sums[block], *further)
                merged_n[block] = 0
                merged_sums[block] = 0
            joint[row, k] = total


@kernel
def merge_own(own_n, own_sums, who, place, n, sums):
    """Add the cells of new rows ``who`` to those of their blocks; ``place`` is that of a column class."""
    for position in range(who.shape[0]):
        row = who[position]
        for group in range(place.shape[0]):
            if own_n[row, group] > 0:
                n[position, place[group]] += own_n[row, group]
                for slot in range(sums.shape[2]):
                    sums[position, place[group], slot] += own_sums[row, group, slot]


@kernel
def add_weighted(values, who, place, weights, out):
    """Add what the blocks of one row class predict, by new row and column class, times the row's weight."""
    for position in range(who.shape[0]):
        row = who[position]
        weight = weights[row]
        for group in range(place.shape[0]):
            for value in range(values.shape[2]):
                out[row, group, value] += weight * values[position, place[group], value]


@kernel
def add_table(by_class, row_classes, column_classes, out):
    """Add ``by_class[row class, column class]`` to every cell of the table ``out``; values are last."""
    for row in range(row_classes.shape[0]):
        line = by_class[row_classes[row]]
        for column in range(column_classes.shape[0]):
            for value in range(line.shape[1]):
                out[row, column, value] += line[column_classes[column], value]
