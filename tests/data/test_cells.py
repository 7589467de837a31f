"""Matrices with missing cells: every way in, names, splits, and what is refused."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp

from permix.data.cells import Cells
from permix.errors import DataError, PermixWarning

NAN = np.nan
TABLE = np.array([[1.0, NAN, 0.0], [NAN, 5.0, 2.0]])


def same(cells: Cells, table: np.ndarray) -> bool:
    """Whether the cells are those of a dense table, sorted, and nothing else."""
    key = cells.rows.astype(np.int64) * cells.n_columns + cells.columns
    assert np.all(np.diff(key) > 0)
    assert cells.rows.dtype == cells.columns.dtype == np.int32
    return cells.shape == table.shape and np.array_equal(cells.dense(), table, equal_nan=True)


class TestArrays:
    def test_dense(self):
        cells = Cells.coerce(TABLE)
        assert same(cells, TABLE)
        assert (cells.n_rows, cells.n_columns, cells.n_cells) == (2, 3, 4)
        assert cells.values.tolist() == [1, 0, 5, 2]
        assert cells.row_names is None
        assert cells.column_names is None

    @pytest.mark.parametrize("dtype", [bool, np.int8, np.uint16, np.int64, np.float32])
    def test_types_of_numbers(self, dtype):
        table = np.array([[1, 0], [0, 1]], dtype=dtype)
        cells = Cells.coerce(table)
        assert cells.values.dtype == np.float64
        assert same(cells, table.astype(float))

    def test_masked_and_nan(self):
        masked = np.ma.masked_array([[1.0, 2.0], [NAN, 4.0]], mask=[[0, 1], [0, 0]])
        assert same(Cells.coerce(masked), np.array([[1.0, NAN], [NAN, 4.0]]))

    def test_lists_with_none(self):
        assert same(Cells.coerce([[1, None, 0.0], (None, 5, np.int64(2))]), TABLE)

    def test_text(self):
        cells = Cells.coerce([["yes", None], ["no", ""], ["NA", "yes"]])
        assert cells.is_text
        assert cells.values.tolist() == ["yes", "no", "yes"]
        assert all(type(value) is str for value in cells.values)
        assert cells.dense().tolist() == [["yes", None], ["no", None], [None, "yes"]]
        assert Cells.coerce(np.array([["a", "b"]])).values.tolist() == ["a", "b"]

    def test_cells_pass_through(self):
        cells = Cells.coerce(TABLE)
        assert Cells.coerce(cells) is cells

    def test_never_written(self):
        cells = Cells.coerce(TABLE)
        with pytest.raises(ValueError, match="read-only"):
            cells.values[0] = 7.0

    def test_input_stays_writable(self):
        table = np.ones((2, 2))
        Cells.coerce(table)
        table[0, 0] = 3.0

    @pytest.mark.parametrize(
        ("table", "message"),
        [
            (np.full((2, 2), NAN), "no filled cell"),
            (np.zeros((0, 3)), "no rows"),
            (np.zeros((3, 0)), "no columns"),
            (np.array([1.0, 2.0]), r"\[\[...\]\]"),
            (np.zeros((2, 2, 2)), "3 axes"),
            ([], "list of rows"),
            ([[1, 2], [3]], "row 2 has 1 values and row 1 has 2"),
            (["abc"], "text for a row"),
            (5, "a int is not a matrix"),
            ([[1, 2], [3, np.inf]], "row 2, column 2: inf is not finite"),
            ([[1, 2], ["x", 3]], r"row 2, column 1 holds text \('x'\) and row 1, column 1 does not \(1\)"),
            ([[1, 2], [3, {}]], r"the value \{\} of type dict"),
            (np.array([[1j]]), "complex128"),
            (np.array([["2020-01-01"]], dtype="datetime64[D]"), "neither numbers nor text"),
        ],
    )
    def test_refused(self, table, message):
        with pytest.raises(DataError, match=message):
            Cells.coerce(table)

    def test_empty_lines_are_named(self):
        table = np.array([[1.0, NAN], [NAN, NAN]])
        with pytest.warns(PermixWarning) as caught:
            cells = Cells.coerce(table)
        assert [str(w.message).split(";")[0] for w in caught] == [
            "1 row(s) have no filled cell (first: row 2)",
            "1 column(s) have no filled cell (first: column 2)",
        ]
        assert {w.filename for w in caught} == {__file__}
        assert same(cells, table)


class TestSparse:
    @pytest.mark.parametrize("form", ["coo", "csr", "csc", "lil", "dok"])
    @pytest.mark.parametrize("make", ["array", "matrix"])
    def test_formats(self, form, make):
        table = np.array([[3.0, NAN, NAN], [NAN, NAN, 2.0], [NAN, 1.0, NAN]])
        coo = getattr(sp, f"coo_{make}")((np.array([3, 2, 1]), ([0, 1, 2], [0, 2, 1])), shape=(3, 3))
        assert same(Cells.coerce(coo.asformat(form)), table)

    @pytest.mark.parametrize("form", ["coo", "csr", "csc"])
    def test_stored_zeros_are_filled(self, form):
        coo = sp.coo_array((np.array([0.0, 2.0, 0.0]), ([0, 1, 1], [1, 0, 2])), shape=(2, 3))
        assert same(Cells.coerce(coo.asformat(form)), np.array([[NAN, 0.0, NAN], [2.0, NAN, 0.0]]))

    @pytest.mark.parametrize("make", ["array", "matrix"])
    def test_diagonals_keep_their_zeros(self, make):
        matrix = getattr(sp, f"dia_{make}")((np.array([[1, 0, 3], [4, 5, 0]]), [0, -1]), shape=(3, 4))
        table = np.array([[1, NAN, NAN, NAN], [4, 0, NAN, NAN], [NAN, 5, 3, NAN]])
        with pytest.warns(PermixWarning, match="column 4"):
            cells = Cells.coerce(matrix)
        assert same(cells, table)
        assert cells.n_cells == matrix.nnz

    def test_blocks_keep_their_zeros(self):
        matrix = sp.bsr_array(np.kron(np.eye(2), [[1, 0], [2, 3]]), blocksize=(2, 2))
        table = np.array([[1, 0, NAN, NAN], [2, 3, NAN, NAN], [NAN, NAN, 1, 0], [NAN, NAN, 2, 3]])
        assert same(Cells.coerce(matrix), table)

    @pytest.mark.parametrize("form", ["coo", "csr"])
    def test_duplicates_are_refused(self, form):
        if form == "coo":
            matrix = sp.coo_array((np.array([1, 1, 2]), ([0, 1, 1], [0, 1, 1])), shape=(2, 2))
        else:
            matrix = sp.csr_array((np.array([1, 1, 2]), [0, 1, 1], [0, 1, 3]), shape=(2, 2))
        with pytest.raises(DataError, match=r"row 2, column 2 is given twice \(1.0 and 2.0\)"):
            Cells.coerce(matrix)

    def test_infinity_and_nothing(self):
        with pytest.raises(DataError, match="row 1, column 2: inf"):
            Cells.coerce(sp.csr_array(np.array([[0, np.inf]])))
        with pytest.raises(DataError, match="no filled cell"):
            Cells.coerce(sp.csr_array((3, 3)))

    def test_stored_nan_is_missing(self):
        matrix = sp.coo_array((np.array([NAN, 1.0, 2.0]), ([0, 0, 1], [0, 1, 0])), shape=(2, 2))
        assert Cells.coerce(matrix).n_cells == 2

    def test_one_axis(self):
        with pytest.raises(DataError, match="rows and columns"):
            Cells.coerce(sp.coo_array(np.array([1, 0, 2])))


class TestLong:
    def test_text_names_in_order_of_appearance(self):
        cells = Cells.from_long(["b", "a", "b"], ["y", "y", "x"], [1, 2, 3])
        assert cells.row_names == ("b", "a")
        assert cells.column_names == ("y", "x")
        assert same(cells, np.array([[1, 3], [2, NAN]], dtype=float))

    def test_integer_names_ascend(self):
        cells = Cells.from_long([10, 2, 10], [7, 7, 3], [1, 2, 3])
        assert cells.row_names == ("2", "10")
        assert cells.column_names == ("3", "7")
        assert same(cells, np.array([[NAN, 2], [3, 1]], dtype=float))

    def test_plain_numbers_need_no_names(self):
        cells = Cells.from_long([0, 1, 1], [0, 0, 1], [1, 2, 3])
        assert cells.row_names is None
        assert cells.column_names is None

    def test_shape_makes_positions(self):
        with pytest.warns(PermixWarning, match="row 1"):
            cells = Cells.from_long([1, 2], [0, 1], [5, 6], shape=(3, 2))
        assert same(cells, np.array([[NAN, NAN], [5, NAN], [NAN, 6]]))

    def test_names_given(self):
        with pytest.warns(PermixWarning, match="row 'z'"):
            cells = Cells.from_long(
                ["a", "b"], ["y", "x"], [1, 2], row_names="zab".__iter__(), column_names=["x", "y"]
            )
        assert cells.row_names == ("z", "a", "b")
        assert same(cells, np.array([[NAN, NAN], [NAN, 1], [2, NAN]]))

    def test_missing_values_left_out(self):
        cells = Cells.from_long(["a", "a", "b"], ["x", "y", "y"], pd.Series([1.0, None, 3.0]))
        assert cells.n_cells == 2

    @pytest.mark.parametrize(
        ("entries", "message"),
        [
            ((["a", "a"], ["x", "x"], [1, 2]), r"row 'a', column 'x' is given twice \(1.0 and 2.0\)"),
            ((["a", None], ["x", "x"], [1, 2]), "entry 2: the row is missing"),
            ((["a", "b"], ["x"], [1, 2]), "2 row positions, 1 column positions and 2 values"),
            (([], [], []), "no filled cell"),
            ((["a"], ["x"], [np.inf]), "row 'a', column 'x': inf is not finite"),
        ],
    )
    def test_refused(self, entries, message):
        with pytest.raises(DataError, match=message):
            Cells.from_long(*entries)

    def test_positions_refused(self):
        with pytest.raises(DataError, match="entry 2: row 3 does not exist; rows are counted from 0 to 2"):
            Cells([0, 3], [0, 0], [1, 1], (3, 1))
        with pytest.raises(DataError, match="entry 1: column -1"):
            Cells([0], [-1], [1], (3, 1))
        with pytest.raises(DataError, match="from_long"):
            Cells(["a"], [0], [1], (3, 1))
        with pytest.raises(DataError, match="not taken"):
            Cells([0], [0], [1], (10**9, 1))

    def test_unknown_name(self):
        with pytest.raises(DataError, match="entry 1: there is no row 'a'; the rows are 'b'"):
            Cells.from_long(["a"], ["x"], [1], row_names=["b"])


class TestNames:
    cells = Cells([0, 1], [0, 1], [1, 2], (2, 3), ["Ann", "Bo"], ["1", "2", "30"])

    def test_lookup(self):
        assert self.cells.row_index("Bo") == 1
        assert self.cells.row_index(1) == 1  # no row is called by a number
        assert self.cells.column_index("30") == 2
        assert self.cells.column_index(1) == 0  # a name here, not a position
        assert self.cells.column_index(np.int64(30)) == 2

    @pytest.mark.parametrize(("axis", "name"), [("row", "Cy"), ("row", 2), ("column", 0), ("column", 1.5)])
    def test_unknown(self, axis, name):
        with pytest.raises(DataError, match=f"there is no {axis} {name!r}"):
            getattr(self.cells, f"{axis}_index")(name)

    def test_without_names(self):
        cells = Cells.coerce(TABLE)
        assert cells.row_index(1) == 1
        with pytest.raises(DataError, match="numbered 0 to 1"):
            cells.row_index("1")
        assert (cells.row_name(0), cells.column_name(2), cells.place(3)) == ("1", "3", "row 2, column 3")
        assert self.cells.place(1) == "row 'Bo', column '2'"

    @pytest.mark.parametrize(
        ("names", "message"),
        [
            (["a"], "2 rows but 1 names"),
            (["a", "a"], "rows 1 and 2 are both called 'a'"),
            ("ab", "one string"),
            (["a", None], "name of a row is missing"),
        ],
    )
    def test_refused(self, names, message):
        with pytest.raises(DataError, match=message):
            Cells([0], [0], [1], (2, 1), names)


class TestSplit:
    def test_parts_make_the_whole(self):
        cells = Cells.coerce(np.arange(60.0).reshape(6, 10))
        kept, held = cells.split(0.25, random_state=3)
        assert (kept.n_cells, held.n_cells) == (45, 15)
        assert sorted([*kept.values, *held.values]) == list(range(60))
        again = cells.split(0.25, random_state=3)
        assert np.array_equal(again[1].values, held.values)
        assert not np.array_equal(cells.split(0.25, random_state=4)[1].values, held.values)

    def test_every_cell_is_as_likely(self):
        cells = Cells.coerce(np.arange(20.0).reshape(4, 5))
        rng = np.random.default_rng(0)
        n = 2000
        count = sum(np.isin(np.arange(20), cells.split(0.3, rng)[1].values).astype(int) for _ in range(n))
        # Five standard deviations of a binomial; 20 cells.
        assert np.abs(count - 0.3 * n).max() < 5 * np.sqrt(n * 0.3 * 0.7)

    @pytest.mark.parametrize("share", [0, 1, -0.1, NAN, "half", 0.01])
    def test_refused(self, share):
        with pytest.raises(DataError, match="share"):
            Cells.coerce(TABLE).split(share)

    def test_names_stay_and_nobody_warns(self):
        cells = Cells([0, 1], [0, 1], [1, 2], (2, 2), iter("ab"), ["x", "y"])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            kept, held = cells.split(0.5, 0)
        assert held.row_names == kept.row_names == ("a", "b")
        assert kept.shape == held.shape == (2, 2)


class TestAligned:
    fitted = Cells([0, 1], [0, 1], [1, 2], (2, 3), ["a", "b"], ["x", "y", "z"])

    def test_by_name(self):
        other = Cells([0, 0], [0, 1], [5, 6], (1, 2), ["b"], ["z", "x"])
        moved = other.aligned(self.fitted)
        assert same(moved, np.array([[NAN, NAN, NAN], [6, NAN, 5]]))
        assert moved.row_names == ("a", "b")

    def test_new_rows(self):
        other = Cells([0, 1], [0, 1], [5, 6], (2, 2), ["q", "a"], ["z", "x"])
        moved = other.aligned(self.fitted, rows=False)
        assert moved.row_names == ("q", "a")
        assert same(moved, np.array([[NAN, NAN, 5], [6, NAN, NAN]]))

    def test_by_position(self):
        other = Cells([0, 1], [0, 2], [5, 6], (2, 3))
        assert same(other.aligned(self.fitted), np.array([[5, NAN, NAN], [NAN, NAN, 6]]))
        with pytest.raises(DataError, match="2 columns and the one that was fitted 3"):
            Cells([0], [0], [5], (2, 2)).aligned(self.fitted)

    def test_unknown(self):
        with pytest.raises(DataError, match="the column 'w' is unknown"):
            Cells([0], [0], [5], (2, 1), None, ["w"]).aligned(self.fitted)
        with pytest.raises(DataError, match="the row 'q' is unknown"):
            Cells([0], [0], [5], (1, 3), ["q"]).aligned(self.fitted)

    def test_names_that_are_nearly_right(self):
        fitted = Cells([0], [0], [1], (2, 2), ["person 1", "person 2"], ["height", "weight"])
        with pytest.raises(DataError, match=r"did you mean 'height'\?"):
            Cells([0], [0], [5], (1, 1), ["person 1"], ["heigth"]).aligned(fitted)
        with pytest.raises(DataError, match=r"did you mean 'person 1'\?.*score_samples"):
            Cells([0], [0], [5], (1, 1), ["Person 1"], ["height"]).aligned(fitted)
        with pytest.raises(DataError, match=r"did you mean 'weight'\?"):
            fitted.column_index("Weight")

    def test_names_are_never_taken_by_position(self):
        """A fit without names cannot say which column is which: only numbers can be matched."""
        plain = Cells([0, 1], [0, 1], [1, 2], (4, 3))
        named = Cells([0, 0, 0], [0, 1, 2], [5, 6, 7], (1, 3), ["q"], ["z", "x", "y"])
        with pytest.raises(
            DataError, match=r"names of columns \('z', 'x', 'y'\).*fit a matrix that has them"
        ):
            named.aligned(plain, rows=False)
        rows = Cells([0, 1], [0, 1], [5, 6], (4, 3), list("abcd"))
        with pytest.raises(DataError, match=r"names of rows \('a', 'b', 'c'"):
            rows.aligned(plain)
        assert rows.aligned(plain, rows=False).shape == (4, 3)

    @pytest.mark.parametrize(
        ("names", "places"),
        [
            (["2", "0"], [2, 0]),
            (["3", "1"], [2, 0]),
            (["2", "1", "0"], [2, 1, 0]),
            (["3", "2", "1"], [2, 1, 0]),
        ],
    )
    def test_numbers_from_0_or_from_1(self, names, places):
        plain = Cells([0, 1], [0, 1], [1, 2], (4, 3))
        columns = np.arange(len(names))
        moved = Cells(columns * 0, columns, columns, (1, len(names)), None, names).aligned(plain, rows=False)
        assert dict(zip(moved.columns.tolist(), moved.values.tolist(), strict=True)) == {
            place: float(at) for at, place in enumerate(places)
        }

    @pytest.mark.parametrize(
        ("names", "said"),
        [(["1", "2"], "from 0 or from 1"), (["0", "3"], "no column 3"), (["01"], "names of")],
    )
    def test_numbers_that_do_not_say_which(self, names, said):
        plain = Cells([0, 1], [0, 1], [1, 2], (4, 3))
        with pytest.raises(DataError, match=said):
            Cells([0], [0], [5], (1, len(names)), None, names).aligned(plain, rows=False)

    def test_new_rows_keep_numbers_as_names(self):
        """0 and 1 of many columns: dropping the names would leave two columns without any."""
        plain = Cells([0, 1], [0, 1], [1, 2], (4, 3))
        new = Cells.from_long([0, 1], [0, 1], [5, 6], new_rows=True)
        assert same(new.aligned(plain, rows=False), np.array([[5, NAN, NAN], [NAN, 6, NAN]]))


FRAMES = pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])


class TestFrames:
    @FRAMES
    def test_wide(self, frame):
        cells = Cells.coerce(frame({"x": [1.0, None], "y": [2, 3]}))
        assert cells.column_names == ("x", "y")
        assert cells.row_names is None
        assert same(cells, np.array([[1, 2], [NAN, 3]], dtype=float))
        assert "read as a wide table" in repr(cells)

    def test_pandas_index_names_rows(self):
        frame = pd.DataFrame({"x": [1, 2], "y": [3, 4]}, index=["a", "b"])
        assert Cells.coerce(frame).row_names == ("a", "b")
        assert Cells.coerce(frame.reset_index(drop=True)).row_names is None

    @FRAMES
    def test_text_column_beside_numbers_names_rows(self, frame):
        cells = Cells.from_frame(frame({"who": ["Ann", "Bo"], "x": [1, 2], "y": [3, 4], "z": [0, 0]}))
        assert cells.row_names == ("Ann", "Bo")
        assert cells.column_names == ("x", "y", "z")

    @FRAMES
    def test_named_columns_and_false(self, frame):
        made = frame({"x": [1, 2], "key": ["p", "q"], "y": [3, 4], "z": [5, 5]})
        assert Cells.from_frame(made, row_column="key").row_names == ("p", "q")
        text = frame({"id": ["p", "q"], "y": ["p", "p"]})
        assert Cells.from_frame(text, row_column=False).column_names == ("id", "y")
        with pytest.raises(DataError, match="no column 'nope'"):
            Cells.from_frame(made, row_column="nope")

    @FRAMES
    def test_long_by_name(self, frame):
        made = frame({"rating": [5, 4], "user": ["a", "b"], "movie_id": [30, 4]})
        cells = Cells.from_frame(made)
        assert cells.row_names == ("a", "b")
        assert cells.column_names == ("4", "30")
        assert same(cells, np.array([[NAN, 5], [4, NAN]]))
        assert "read as a long table" in repr(cells)

    @FRAMES
    def test_other_columns_of_a_long_frame_are_named(self, frame):
        made = frame({"row": ["a"], "column": ["b"], "value": [1], "time": [99]})
        with pytest.warns(PermixWarning, match="columns 'time' are not used"):
            Cells.from_frame(made)

    @FRAMES
    def test_three_columns_that_could_be_both(self, frame):
        made = frame({"p": [1, 1, 2], "q": [1, 2, 1], "r": [5, 4, 3]})
        with pytest.raises(DataError, match="say layout='long' or layout='wide'"):
            Cells.from_frame(made)
        assert Cells.from_frame(made, layout="wide").shape == (3, 3)
        assert Cells.from_frame(made, layout="long").shape == (2, 2)

    @FRAMES
    def test_three_columns_that_cannot_be_long(self, frame):
        assert Cells.from_frame(frame({"p": [1, 1, 1], "q": [1, 2, 1], "r": [5, 4, 3]})).shape == (3, 3)
        assert Cells.from_frame(frame({"p": [1, None, 2], "q": [1, 2, 1], "r": [5, 4, 3]})).shape == (3, 3)

    def test_coerce_refuses_what_looks_long(self):
        with pytest.raises(DataError, match="looks long"):
            Cells.coerce(pd.DataFrame({"user": ["a"], "item": ["b"], "rating": [1]}))

    def test_first_column_that_counts(self):
        made = pd.DataFrame({"k": [1, 2, 3], "x": [5, 5, 4], "y": [1, 2, 1], "z": [0, 0, 1]})
        with pytest.raises(DataError, match="could number the rows"):
            Cells.from_frame(made)
        assert Cells.from_frame(made, row_column="k").row_names == ("1", "2", "3")
        assert Cells.from_frame(made, row_column=False).shape == (3, 4)

    def test_mixtures_are_located(self):
        made = pd.DataFrame({"x": [1, 2], "y": [3, "three"], "z": [1, 1], "w": [0, 0]})
        with pytest.raises(DataError, match=r"row 2 of the frame, column 'y'"):
            Cells.from_frame(made)

    def test_not_a_frame_or_layout(self):
        with pytest.raises(DataError, match="not a data frame"):
            Cells.from_frame([[1]])
        with pytest.raises(DataError, match="must be 'auto'"):
            Cells.from_frame(pd.DataFrame({"x": [1]}), layout="tall")

    def test_categorical_and_nullable_columns(self):
        made = pd.DataFrame({"x": pd.Categorical(["a", None]), "y": ["b", "c"]})
        assert Cells.from_frame(made).values.tolist() == ["a", "b", "c"]
        made = pd.DataFrame(
            {"x": pd.array([1, None], dtype="Int64"), "y": pd.array([True, False], dtype="boolean")}
        )
        assert same(Cells.from_frame(made), np.array([[1, 1], [NAN, 0]]))


class TestCodes:
    @pytest.mark.parametrize("missing", [-1, "-1", [-1.0], [np.int64(-1), 77]])
    @pytest.mark.filterwarnings("ignore:no cell holds 77")
    @pytest.mark.parametrize("form", [np.array, lambda table: table, sp.csr_array, pd.DataFrame])
    def test_every_way_in(self, form, missing):
        cells = Cells.coerce(form([[1, -1], [3, 4]]), missing=missing)
        assert cells.dense()[0, 0] == 1
        assert (cells.rows.tolist(), cells.columns.tolist()) == ([0, 1, 1], [0, 0, 1])

    def test_from_long(self):
        cells = Cells.from_long(["a", "b", "b"], ["x", "x", "y"], [5, 99, 3], missing=99)
        assert cells.values.tolist() == [5, 3]
        assert cells.shape == (2, 2)

    def test_text(self):
        cells = Cells.coerce([["good", "refused"], ["bad", "good"]], missing="refused")
        assert cells.values.tolist() == ["good", "bad", "good"]

    def test_text_among_numbers(self):
        assert Cells.coerce([[1, "?"], [2, 3]], missing="?").values.tolist() == [1, 2, 3]

    def test_unseen_is_told(self):
        with pytest.warns(PermixWarning, match="no cell holds -9"):
            Cells.coerce([[1, 2]], missing=-9)

    def test_refused(self):
        with pytest.raises(DataError, match="neither a number nor text"):
            Cells.coerce([[1, 2]], missing=[(1, 2)])
        with pytest.raises(DataError, match="Cells already"):
            Cells.coerce(Cells.coerce([[1, 2]]), missing=2)

    @pytest.mark.filterwarnings("ignore:-1 fills 40%")  # beside -9
    @pytest.mark.parametrize(
        ("values", "code"),
        [
            ([-1, 1, 2, 5, -1], "-1"),
            ([-1, 0, 1, 1, -1], "-1"),
            ([99, 99, 1, 5, 3], "99"),
            ([-99, -99, -1.5, 1.5, 0.3], "-99"),
            ([-9, -9, -1, -1, 4], "-9"),
        ],
    )
    def test_lookalikes_are_told(self, values, code):
        with pytest.warns(PermixWarning, match=f"^{code} fills 40% of the cells.*missing={code}$"):
            Cells.coerce([values])

    @pytest.mark.parametrize(
        "values",
        [
            [-1, 1, -1, 1],  # against and for
            [-2, -1, 0, 1, 2, -1],
            [98, 99, 97, 99, 95],
            [0, 0, 5, 6],
            [99, 99, 0, 80, 20],
            [-1, -1, -1, -1],
            [99, *range(1, 6)] * 1 + [3] * 200,
        ],
    )
    def test_others_are_not(self, values):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            Cells.coerce([values])


class TestNewRows:
    def test_nobody_warns(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            cells = Cells.coerce([[1, np.nan], [np.nan, np.nan]], new_rows=True)
            empty = Cells.coerce([[np.nan, np.nan]], new_rows=True)
            frame = Cells.from_frame(pd.DataFrame({"a": [1.0, np.nan], "b": [None, None]}), new_rows=True)
        assert (cells.shape, frame.shape) == ((2, 2), (2, 2))
        assert (empty.shape, empty.n_cells) == ((1, 2), 0)
        assert empty.aligned(cells, rows=False).shape == (1, 2)

    def test_fitted_rows_still_need_cells(self):
        with pytest.raises(DataError, match="no filled cell"):
            Cells.coerce([[np.nan, np.nan]])


class TestLongNumbers:
    @pytest.mark.parametrize(
        "table",
        [
            np.array([[2**53 + 1, 2]]),
            np.array([[2**64 - 1, 2]], dtype=np.uint64),
            [[2**53 + 1, 2]],
            [[-(2**60) - 1, None]],
            pd.DataFrame({"a": [2**53 + 1, 5], "b": [1, 2]}),
            pd.DataFrame({"a": [2**53 + 1, 5], "b": [1.5, None]}),
            sp.csr_array(np.array([[2**53 + 1, 2]])),
        ],
    )
    def test_refused(self, table):
        with pytest.raises(
            DataError, match=r"has more digits than a number keeps.*write such values as text"
        ):
            Cells.coerce(table)

    @pytest.mark.parametrize("dtype", [np.int64, np.uint64, object])
    def test_exact_ones_stay(self, dtype):
        table = np.array([[2**53 + 2, 2**53, 2**60]], dtype=dtype)
        assert [int(value) for value in Cells.coerce(table).values] == table[0].tolist()

    def test_absurd_ones_are_not_written_out(self):
        for table in ([[10**400, 1]], [[10**5000, 1]], [[10**5000, "text"]]):
            with pytest.raises(DataError) as caught:
                Cells.coerce(table)
            assert len(str(caught.value)) < 400
            assert "digits" in str(caught.value)
