"""Base co-clusterings as people have them, brought into one form."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from permix.cocluster.bases import Bases, as_bases, by_blocks, to_lines
from permix.errors import DataError

ROWS, COLUMNS = [0, 0, 1, 2], [5, 5, 7]
GRID = (ROWS, COLUMNS)
# Not a grid: rows 1 and 2 are one block throughout, rows 3 and 4 are cut in two.
NESTED = [[9, 9, 9], [9, 9, 9], [3, 3, 4], [3, 3, 4]]


class Draw(NamedTuple):
    row_classes: np.ndarray
    column_classes: np.ndarray
    table: np.ndarray
    row_log_weights: np.ndarray
    new_row_log_weight: float


def expanded(bases, m):
    return bases.tables[m][bases.row_classes[m]][:, bases.column_classes[m]]


def same_partition(a, b):
    pairs = {(x, y) for x, y in zip(np.ravel(a).tolist(), np.ravel(b).tolist(), strict=True)}
    return len(pairs) == len(set(np.ravel(a).tolist())) == len(set(np.ravel(b).tolist()))


def test_a_grid_by_labels_and_by_block_ids_is_the_same():
    rows, columns = np.array(ROWS), np.array([0, 0, 1])
    ids = 40 + 10 * rows[:, None] + columns
    bases = as_bases([GRID, ids, ids.tolist(), ids.astype(float), np.char.mod("block %d", ids)])
    for m in range(1, 5):
        assert np.array_equal(bases.row_classes[m], bases.row_classes[0])
        assert np.array_equal(bases.column_classes[m], bases.column_classes[0])
        assert np.array_equal(bases.tables[m], bases.tables[0])
    assert bases.n_blocks.tolist() == [6] * 5
    assert (bases.n_bases, bases.n_rows, bases.n_columns) == (5, 4, 3)
    assert bases.row_table().tolist() == [[0] * 5, [0] * 5, [1] * 5, [2] * 5]
    assert bases.column_table().tolist() == [[0] * 5, [0] * 5, [1] * 5]


def test_blocks_that_are_no_grid_have_classes():
    bases = as_bases([GRID, NESTED])
    assert bases.row_classes[1].tolist() == [0, 0, 1, 1]
    assert bases.column_classes[1].tolist() == [0, 0, 1]
    assert bases.tables[1].tolist() == [[0, 0], [1, 2]]
    assert same_partition(expanded(bases, 1), NESTED)


@pytest.mark.parametrize("seed", range(5))
def test_any_table_of_ids_is_kept_cell_by_cell(seed):
    rng = np.random.default_rng(seed)
    small = rng.integers(0, 4, (3, 4))
    ids = small[rng.integers(0, 3, 12)][:, rng.integers(0, 4, 9)]
    rows, columns, table = by_blocks(ids)
    assert same_partition(table[rows][:, columns], ids)
    assert len(np.unique(table, axis=0)) == len(table) == rows.max() + 1
    assert len(np.unique(table, axis=1).T) == table.shape[1] == columns.max() + 1


def test_draws_and_fitted_models():
    # Classes 1 and 2 of the rows are alike, and column class 3 has no column.
    draw = Draw(
        np.array([1, 0, 2, 0]),
        np.array([0, 2, 1]),
        np.array([[0, 1, 1, 5], [2, 2, 3, 6], [2, 2, 3, 7]]),
        np.zeros(3),
        0.0,
    )

    class Fitted:
        blocks_ = draw

        def fit(self, X):
            return self

    bases = as_bases([draw, Fitted()], shape=(4, 3))
    for m in range(2):
        assert bases.row_classes[m].tolist() == [0, 1, 0, 1]
        assert bases.tables[m].tolist() == [[0, 1, 0], [2, 3, 3]]
        assert same_partition(expanded(bases, m), draw.table[draw.row_classes][:, draw.column_classes])

    class Unfitted:
        def fit(self, X):
            return self

    with pytest.raises(DataError, match="base 2: Unfitted is not fitted"):
        as_bases([GRID, Unfitted()])


def test_every_cell_keeps_its_block_in_base_lines():
    bases = as_bases([GRID, NESTED, ([0, 1, 0, 1], [0, 1, 2])])
    by_row, by_column = to_lines(bases)
    first = 0
    for m in range(3):
        for r in range(4):
            for c in range(3):
                for lines, line, other in ((by_row, r, c), (by_column, c, r)):
                    of_line = lines.classes[line, m] * lines.n_other_classes[m]
                    place = lines.table_starts[m] + of_line + lines.other_classes[other, m]
                    assert lines.tables[place] == first + expanded(bases, m)[r, c]
        first += bases.n_blocks[m]
    assert by_row.tables.max() + 1 == first == bases.n_blocks.sum()


def test_two_lists_are_a_pair_where_they_cannot_be_a_table():
    assert as_bases([[ROWS, COLUMNS], GRID]).tables[0].shape == (3, 2)
    square = as_bases([[[0, 0, 1], [0, 1, 2]]] * 2, shape=(3, 3))
    assert square.tables[0].shape == (2, 3)
    table = as_bases([[[0, 0, 1], [0, 1, 2]]] * 2)
    assert table.row_classes[0].tolist() == [0, 1]
    assert (table.n_rows, table.n_columns) == (2, 3)


def test_text_labels_and_frames():
    import pandas as pd

    words = (["north", "north", "south"], pd.Series(["x", "y"]))
    frame = pd.DataFrame([[0, 1], [0, 1], [2, 3]])
    bases = as_bases([words, frame])
    assert bases.row_table().tolist() == [[0, 0], [0, 0], [1, 1]]


@pytest.mark.parametrize(
    ("given", "shape", "message"),
    [
        ([GRID], None, "at least two base co-clusterings, got 1"),
        ([], None, "at least two"),
        ("ab", None, "must be a list of co-clusterings, got str"),
        (7, None, "must be a list of co-clusterings, got int"),
        ([GRID, GRID], (4, 5), "base 1 is of 4 rows and 3 columns, but the matrix has 4 rows and 5 columns"),
        ([GRID, ([0, 1], COLUMNS)], None, "base 2 is of 2 rows and 3 columns, but the matrix has 4 rows"),
        ([GRID, (ROWS, [0, np.nan, 1])], None, "base 2, column 2 .'blue'.: the label is missing"),
        ([GRID, ([0, None, 1, 1], COLUMNS)], None, "base 2, row 2: the label is missing"),
        ([([0, -1, 1, 1], COLUMNS), GRID], None, "base 1, row 2: -1 is no label"),
        ([GRID, ([0, 0.5, 1, 1], COLUMNS)], None, "base 2, row 2: 0.5 is not a whole number"),
        ([GRID, ([0, np.inf, 1, 1], COLUMNS)], None, "base 2, row 2: inf is not a whole number"),
        (
            [GRID, [[0, 1, 2], [0, 1, -3], [0, 0, 0], [1, 1, 1]]],
            None,
            "row 2, column 3 .'green'.: -3",
        ),
        ([GRID, [[0, 1, 2], [0, 1]]], None, "base 2"),
        ([GRID, np.zeros((2, 2, 2))], None, "base 2 has shape .2, 2, 2."),
        ([GRID, 3], None, "base 2 has shape"),
        ([GRID, ([], COLUMNS)], None, "base 2: the row labels have shape .0,."),
        ([GRID, ([0, "a", 1, None], COLUMNS)], None, "base 2, row 4"),
        ([GRID, (np.array([0, "a", 1, 1], dtype=object), COLUMNS)], None, "base 2: some labels are text"),
        (
            [GRID, (np.array([0, (1,), 1, 1], dtype=object), COLUMNS)],
            None,
            "2: labels are whole numbers",
        ),
        ([GRID, (np.array([0, 1, 1, 1], dtype=complex), COLUMNS)], None, "not complex128"),
    ],
)
def test_messages_name_the_base_and_the_place(given, shape, message):
    with pytest.raises(DataError, match=message):
        as_bases(given, shape, names=(None, ("red", "blue", "green")))


def test_packed_bases_come_back_and_damaged_ones_do_not():
    bases = as_bases([GRID, NESTED])
    arrays = bases.pack()
    again = Bases.unpack(arrays)
    for name in ("row_classes", "column_classes", "tables"):
        for one, other in zip(getattr(bases, name), getattr(again, name), strict=True):
            assert np.array_equal(one, other)
            assert one.dtype == other.dtype == np.int32
    damages = {
        "base_rows": [arrays["base_rows"][:, :1], arrays["base_rows"] + 1, arrays["base_rows"].astype(float)],
        "base_columns": [arrays["base_columns"][:0], arrays["base_columns"].ravel()],
        "base_shapes": [arrays["base_shapes"] * 2, -arrays["base_shapes"], arrays["base_shapes"][:1]],
        "base_blocks": [arrays["base_blocks"][1:], arrays["base_blocks"] + 1, arrays["base_blocks"][None]],
    }
    for name, values in damages.items():
        for value in values:
            with pytest.raises(DataError, match="do not fit together"):
                Bases.unpack({**arrays, name: value})
