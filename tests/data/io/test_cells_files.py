"""Matrices from files: wide and long text, sparse archives, and hostile ones."""

from __future__ import annotations

import gzip
import io
import warnings
import zipfile

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from permix.cocluster.cells.families import CellValueError, GaussianCells
from permix.data.cells import Cells
from permix.data.io.cells_io import read_cells
from permix.errors import DataError, FileFormatError, PermixWarning

NAN = np.nan


@pytest.fixture
def put(tmp_path):
    """Write text to a file and give its path."""

    def write(text: str, name: str = "m.csv"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def same(cells, table) -> bool:
    return np.array_equal(cells.dense(), np.array(table, dtype=float), equal_nan=True)


class TestWide:
    def test_names_on_both_sides(self, put):
        cells = read_cells(put(",tea,milk\nAnn,5,\nBo,NA,2\n"))
        assert (cells.row_names, cells.column_names) == (("Ann", "Bo"), ("tea", "milk"))
        assert same(cells, [[5, NAN], [NAN, 2]])
        assert repr(cells).endswith("m.csv, read as a wide table")

    def test_header_alone(self, put):
        cells = read_cells(put("tea,milk\n5,1\n1,2\n"))
        assert (cells.row_names, cells.column_names) == (None, ("tea", "milk"))

    def test_no_names(self, put):
        cells = read_cells(put("5,1,4,1\n1,2,4,4\n"))
        assert (cells.row_names, cells.column_names) == (None, None)
        assert same(cells, [[5, 1, 4, 1], [1, 2, 4, 4]])

    def test_row_names_without_header(self, put):
        cells = read_cells(put("Ann,5,1,3\nBo,1,2,3\n"), header=False)
        assert cells.row_names == ("Ann", "Bo")
        assert cells.column_names == ("2", "3", "4")  # as they are called in the file

    def test_columns_without_names_are_called_by_their_place_from_1(self, put):
        path = put("74,-7.5,99\n99,2.5,3.5\n", "m.csv")
        assert same(read_cells(path, header=False, ignore=1), [[-7.5, 99], [2.5, 3.5]])
        assert same(read_cells(path, header=False, ignore="v1"), [[-7.5, 99], [2.5, 3.5]])
        cells = read_cells(path, header=False, group_columns="3")
        assert cells.column_names is None
        assert cells.covariates["3"].tolist() == [99.0, 3.5]
        with pytest.raises(DataError, match="no column '0' to ignore; the columns are 1, 2, 3"):
            read_cells(path, header=False, ignore=0)

    def test_advice_about_a_column_without_a_name_leaves_that_column_out(self, put):
        """It named the second column, and the option took the third."""
        path = put("".join(f"{k % 3}.5,{7 * k},{k % 2}\n" for k in range(30)))
        with pytest.warns(PermixWarning, match="column 2 has a different value in every row"):
            assert read_cells(path, header=False).shape == (30, 3)
        assert 7.0 not in read_cells(path, header=False, ignore=2).values

    def test_equal_entries_in_the_first_line(self, put):
        assert same(read_cells(put("1,1\n2,2\n")), [[1, 1], [2, 2]])

    def test_text_levels(self, put):
        cells = read_cells(put("q1,q2\nyes,no\nno,\n"))
        assert cells.column_names == ("q1", "q2")
        assert cells.values.tolist() == ["yes", "no", "no"]
        cells = read_cells(put("yes,no\nno,yes\nyes,yes\n"))
        assert cells.column_names is None
        assert cells.shape == (3, 2)

    def test_text_levels_with_row_names(self, put):
        cells = read_cells(put("name,q1,q2\nAnn,yes,no\nBo,no,no\n"))
        assert cells.row_names == ("Ann", "Bo")

    def test_numbers_above_the_columns_must_be_explained(self, put):
        path = put("1,2,3,4\n5,4,4,1\n")
        with pytest.raises(DataError, match="say header=True or header=False"):
            read_cells(path)
        assert read_cells(path, header=True).column_names == ("1", "2", "3", "4")
        assert read_cells(path, header=False).shape == (2, 4)

    def test_numbers_beside_the_rows_must_be_explained(self, put):
        path = put("k,x,y,z\n1,5,5,0\n2,5,4,0\n3,1,1,1\n")
        with pytest.raises(DataError, match="row_column='k' or row_column=False"):
            read_cells(path)
        assert read_cells(path, row_column="k").row_names == ("1", "2", "3")

    def test_saved_index(self, put):
        cells = read_cells(put(",x,y\n0,5,5\n1,5,4\n"))
        assert cells.row_names == ("0", "1")
        assert same(cells, [[5, 5], [5, 4]])

    def test_slip_in_a_number_is_told(self, put):
        with pytest.warns(PermixWarning, match="line 3, column 'y': '4O' is not a number"):
            cells = read_cells(put("x,y\n1,2\n3,4O\n"))
        assert cells.values.tolist() == ["1", "2", "3", "4O"]

    def test_a_family_of_numbers_names_the_slip(self, put):
        with pytest.warns(PermixWarning, match="4O"):
            cells = read_cells(put("x,y\n1,2\n3,4O\n"))
        with pytest.raises(CellValueError, match="'4O' is not a number") as caught:
            GaussianCells().resolve(cells.values)
        assert cells.place(caught.value.position) == "row 2, column 'y'"

    def test_semicolons_and_decimal_commas(self, put):
        assert same(read_cells(put("x;y\n1,5;2\n;0,25\n")), [[1.5, 2], [NAN, 0.25]])

    def test_tab_gzip_and_bom(self, put):
        text = "\ufeff\tx\ty\nAnn\t1\t2\n"
        cells = read_cells(put(gzip.compress(text.encode()), "m.tsv.gz"))
        assert cells.row_names == ("Ann",)

    def test_infinity_named(self, put):
        with pytest.raises(DataError, match="row 'Bo', column 'milk': inf"):
            read_cells(put(",tea,milk\nAnn,5,1\nBo,1,inf\n"))


class TestLong:
    def test_by_name(self, put):
        cells = read_cells(put("user,item,rating\nu2,i1,3\nu1,i1,4\nu1,i2,5\n"))
        assert (cells.row_names, cells.column_names) == (("u2", "u1"), ("i1", "i2"))
        assert same(cells, [[3, NAN], [4, 5]])
        assert repr(cells).endswith("m.csv, read as a long table")

    def test_numbers_as_names_ascend(self, put):
        cells = read_cells(put("row,column,value\n10,1,3\n9,1,4\n9,2,5\n"))
        assert cells.row_names == ("9", "10")

    def test_could_be_both(self, put):
        path = put("a,b,c\n1,1,5\n1,2,4\n2,1,3\n")
        with pytest.raises(DataError, match="say layout='long' or layout='wide'"):
            read_cells(path)
        assert read_cells(path, layout="long").shape == (2, 2)
        assert read_cells(path, layout="wide").shape == (3, 3)

    def test_without_header(self, put):
        cells = read_cells(put("u1\ti1\t3\nu2\ti1\t4\n", "u.tsv"), layout="long")
        assert cells.row_names == ("u1", "u2")
        assert cells.n_cells == 2

    def test_header_with_odd_names(self, put):
        cells = read_cells(put("who,what,how\na,x,3\nb,x,4\n"), layout="long")
        assert cells.row_names == ("a", "b")

    def test_twice(self, put):
        with pytest.raises(
            DataError, match=r"line 4: row 'a', column 'x' is given twice \(first: .*line 2\)"
        ):
            read_cells(put("row,column,value\na,x,1\nb,x,2\na,x,3\n"))

    def test_blank_name(self, put):
        with pytest.raises(DataError, match="line 3: nothing in column 'column'"):
            read_cells(put("row,column,value\na,x,1\nb,,2\n"))

    def test_blank_value_is_missing(self, put):
        with pytest.warns(PermixWarning, match="row 'b'"):
            cells = read_cells(put("row,column,value\na,x,1\nb,x,\n"))
        assert same(cells, [[1], [NAN]])

    def test_four_columns_without_names(self, put):
        with pytest.raises(DataError, match=r"This looks wide: say layout=.wide., or rename its columns"):
            read_cells(put("a,b,c,d\n1,2,3,4\n"), layout="long")

    def test_four_columns_without_a_header(self, put):
        pairs = [(user, film) for user in range(11, 26) for film in range(40, 45)]
        lines = [f"{user}\t{film}\t{(user + film) % 5}\t{881000000 + user}" for user, film in pairs]
        path = put("\n".join(lines) + "\n", "u.data")
        with pytest.raises(DataError, match=r"four columns .* say layout='long' or layout='wide'"):
            read_cells(path)
        with pytest.warns(PermixWarning, match="first three are taken for row, column and value"):
            cells = read_cells(path, layout="long")
        assert cells.shape == (15, 5)
        assert (cells.row_names[0], cells.column_names[-1], cells.values[0]) == ("11", "44", 1.0)
        assert read_cells(path, layout="wide", header=False).shape == (75, 4)
        # A line given twice does not make it a matrix of 76 rows.
        with pytest.raises(DataError, match="say layout='long'"):
            read_cells(put("\n".join([*lines, lines[3]]) + "\n", "u.data"))

    def test_four_columns_of_answers_are_wide(self, put):
        answers = np.random.default_rng(0).integers(1, 6, (80, 4))
        path = put("\n".join(",".join(map(str, row)) for row in answers) + "\n")
        assert read_cells(path).shape == (80, 4)

    def test_many_columns_without_a_header_are_not_long(self, put):
        with pytest.raises(DataError, match=r"5 without names\. This looks wide: say layout='wide'"):
            read_cells(put("1,2,3,4,5\n2,2,3,4,4\n"), layout="long")

    def test_three_columns_that_look_wide(self, put):
        path = put("person,tea,milk\nann,1,2\nbo,2,2\ncy,1,1\n")
        with pytest.warns(PermixWarning, match="this looks wide: layout='wide'"):
            read_cells(path, layout="long")

    def test_text_values(self, put):
        assert read_cells(put("user,item,rating\na,x,good\nb,x,bad\n")).values.tolist() == ["good", "bad"]


class TestCodes:
    def test_numbers_and_text_in_a_wide_file(self, put):
        path = put("name,tea,milk,rum\nann,-1,2,refused\nbo,-1.0,4,3\n99,2,?,1\n")
        cells = read_cells(path, missing=["-1", "refused", "?"], row_column="name")
        assert same(cells, [[NAN, 2, NAN], [NAN, 4, 3], [2, NAN, 1]])
        assert cells.row_names == ("ann", "bo", "99")

    def test_names_of_rows_are_no_cells(self, put):
        path = put("name,tea,milk\n-1,-1,2\n5,3,4\n")
        cells = read_cells(path, missing=-1)
        assert cells.row_names == ("-1", "5")
        assert same(cells, [[NAN, 2], [3, 4]])

    def test_codes_hide_neither_header_nor_names(self, put):
        path = put("case,tea,milk\nann,?,2\nbo,1,?\ncy,?,4\n")
        cells = read_cells(path, missing="?")
        assert (cells.row_names, cells.column_names) == (("ann", "bo", "cy"), ("tea", "milk"))
        assert same(cells, [[NAN, 2], [1, NAN], [NAN, 4]])

    def test_long_file(self, put):
        cells = read_cells(put("user,item,rating\na,x,-9\na,y,2\nb,x,1\n"), missing=-9)
        assert same(cells, [[NAN, 2], [1, NAN]])

    def test_sparse(self, tmp_path):
        sp.save_npz(tmp_path / "m.npz", sp.coo_array(np.array([[1, -1], [2, 3]])))
        assert same(read_cells(tmp_path / "m.npz", missing=-1), [[1, NAN], [2, 3]])

    def test_warned_of(self, put):
        with pytest.warns(PermixWarning, match=r"99 fills 33.3% of the cells.*1 to 5.*say missing=99"):
            read_cells(put("a,b,c\n1,99,5\n99,2,3\n"))


class TestIdentifiers:
    def text(self, name="household"):
        rng = np.random.default_rng(3)
        rows = [f"{1000 - 3 * i},{','.join(map(str, rng.integers(1, 6, 4)))}" for i in range(20)]
        return f"{name},a,b,c,d\n" + "\n".join(rows) + "\n"

    def test_told(self, put):
        with pytest.warns(
            PermixWarning, match="column 'household' has a different value in every row; if it"
        ):
            assert read_cells(put(self.text())).shape == (20, 5)
        with pytest.warns(PermixWarning, match="say row_column='household'"):
            Cells.from_frame(pd.read_csv(io.StringIO(self.text())))
        with pytest.warns(PermixWarning, match="say row_column='household'"):
            Cells.coerce(pd.read_csv(io.StringIO(self.text())))

    def test_settled(self, put):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert read_cells(put(self.text()), row_column="household").shape == (20, 4)
            assert read_cells(put(self.text()), row_column=False).shape == (20, 5)
            assert read_cells(put(self.text("id"))).shape == (20, 4)
            assert read_cells(put(self.text()), new_rows=True).shape == (20, 5)

    def test_a_matrix_of_such_numbers_is_no_concern(self):
        frame = pd.DataFrame(np.random.default_rng(0).permutation(100).reshape(25, 4), columns=list("abcd"))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            Cells.from_frame(frame)

    def test_few_rows_and_fractions_are_no_concern(self, put):
        frame = pd.DataFrame({"a": np.linspace(0.1, 0.9, 30), "b": 1, "c": np.arange(30) % 4})
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            Cells.from_frame(frame)
            Cells.from_frame(pd.DataFrame({"a": [5, 8, 7, 3], "b": 1, "c": 2}))


class TestLongNumbers:
    def test_refused_with_the_place(self, put):
        path = put("a,b\n9007199254740993,1\n9007199254740992,2\n")
        with pytest.raises(
            DataError, match=r"line 2, column 'a': the value 9007199254740993 has more digits"
        ):
            read_cells(path)

    def test_exact_ones_stay(self, put):
        cells = read_cells(put("a,b\n9007199254740994,1\n9007199254740992,2\n"))
        assert cells.values.tolist() == [2.0**53 + 2, 1, 2.0**53, 2]

    def test_absurd_ones_are_not_written_out(self, put):
        with pytest.raises(DataError) as caught:
            read_cells(put(f"a,b\n{'7' * 5000},1\n2,2\n"))
        assert len(str(caught.value)) < 500
        assert "5000 digits" in str(caught.value)


class TestMalformed:
    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("", "empty"),
            ("a,b\n", "a header, but no rows"),
            ("a,b\n1,2\n3\n", "line 3: 1 field where the first line has 2"),
            ('a,b\n1,"2\n', "line 2"),
            ("x,x\n1,2\n", "two columns are called 'x'"),
            (b"a,b\n\xff,1\n", "not UTF-8"),
            (gzip.compress(b"a,b\n1,2\n" * 50, mtime=0)[:-9], "truncated"),
            (",tea\nAnn,1\nAnn,2\n", "both called 'Ann'"),
            (",tea\nAnn,1\n,2\n", None),
        ],
    )
    def test_refused(self, put, text, message):
        if message is None:
            with pytest.raises(DataError):
                read_cells(put(text), header=True)
        else:
            with pytest.raises(DataError, match=message):
                read_cells(put(text))

    def test_rows_of_the_same_name(self, put):
        with pytest.raises(
            DataError, match=r"m.csv, line 4: .*m.csv, line 2\) are both called 'Ann'; rename one$"
        ):
            read_cells(put("name,x,y,z\nAnn,1,1,1\nBo,1,1,1\nAnn,2,2,2\n"))
        with pytest.raises(DataError, match=r"line 3: .* both called 'Ann'.*looks long.*layout='long'"):
            read_cells(put("user,film,rating\nAnn,x,1\nAnn,y,2\nBo,x,1\n"), "wide")

    def test_no_such_column(self, put):
        with pytest.raises(DataError, match=r"no column 'ID' \(did you mean 'id'\?\)"):
            read_cells(put("id,x,y\nAnn,1,1\nBo,1,1\n"), row_column="ID")

    @pytest.mark.parametrize(
        ("slip", "hint"), [("?", "missing='\\?'"), ("-", "missing='-'"), ("good", "slip$")]
    )
    def test_what_may_stand_for_missing(self, put, slip, hint):
        with pytest.warns(PermixWarning, match=hint):
            read_cells(put(f"id,x,y\nAnn,1,1\nBo,1,{slip}\n"))

    def test_long_files_of_new_rows_keep_numbers(self, put):
        path = put("row,column,value\n0,0,4\n1,1,2\n")
        assert read_cells(path).column_names is None
        assert read_cells(path, new_rows=True).column_names == ("0", "1")

    def test_paths(self, tmp_path):
        for name in ("none.csv", "none.npz"):
            with pytest.raises(FileNotFoundError, match="there is no file"):
                read_cells(tmp_path / name)
        (tmp_path / "d.npz").mkdir()
        with pytest.raises(IsADirectoryError):
            read_cells(tmp_path / "d.npz")


MATRIX = sp.coo_array((np.array([0.0, 2.0, 3.0]), ([0, 1, 2], [1, 2, 0])), shape=(3, 3))


class TestNpz:
    @pytest.mark.parametrize("form", ["coo", "csr", "csc"])
    def test_round_trip(self, tmp_path, form):
        path = tmp_path / "m.npz"
        sp.save_npz(path, MATRIX.asformat(form))
        cells = read_cells(path)
        assert same(cells, [[NAN, 0, NAN], [NAN, NAN, 2], [3, NAN, NAN]])
        assert repr(cells).endswith("m.npz, a sparse matrix")

    def test_diagonals_and_blocks(self, tmp_path):
        sp.save_npz(tmp_path / "d.npz", sp.dia_array((np.array([[1, 0, 3]]), [0]), shape=(3, 3)))
        assert same(read_cells(tmp_path / "d.npz"), np.where(np.eye(3), np.diag([1, 0, 3]), NAN))
        sp.save_npz(tmp_path / "b.npz", sp.bsr_array(np.eye(4), blocksize=(2, 2)))
        assert read_cells(tmp_path / "b.npz").n_cells == 8

    def test_options_of_text_files(self, tmp_path):
        sp.save_npz(tmp_path / "m.npz", MATRIX)
        with pytest.raises(DataError, match="for text files"):
            read_cells(tmp_path / "m.npz", layout="long")

    def _write(self, path, **arrays):
        np.savez(path, **arrays)
        return path

    def test_hostile_indices(self, tmp_path):
        csr = {"format": np.array("csr"), "shape": np.array([2, 2]), "data": np.ones(2)}
        bad = [
            {"indices": np.array([0, 99]), "indptr": np.array([0, 1, 2])},
            {"indices": np.array([0, -1]), "indptr": np.array([0, 1, 2])},
            {"indices": np.array([0, 1]), "indptr": np.array([0, 1, 10**6])},
            {"indices": np.array([0, 1]), "indptr": np.array([0, 5, 2])},
        ]
        for number, arrays in enumerate(bad):
            with pytest.raises(FileFormatError, match="damaged"):
                read_cells(self._write(tmp_path / f"{number}.npz", **csr, **arrays))
        with pytest.raises(FileFormatError, match="damaged"):
            read_cells(
                self._write(
                    tmp_path / "coo.npz",
                    format=np.array("coo"),
                    shape=np.array([2, 2]),
                    data=np.ones(1),
                    row=np.array([7]),
                    col=np.array([0]),
                )
            )

    def test_absurd_shape(self, tmp_path):
        path = self._write(
            tmp_path / "m.npz",
            format=np.array("coo"),
            shape=np.array([2**40, 2]),
            data=np.ones(1),
            row=np.array([7]),
            col=np.array([0]),
        )
        # Refused by the reader already, before the matrix is looked at.
        with pytest.raises(FileFormatError, match=r"shape \(1099511627776, 2\)"):
            read_cells(path)

    def test_pickles_are_not_opened(self, tmp_path):
        class Trap:
            def __reduce__(self):
                return (open, (str(tmp_path / "sprung"), "w"))

        path = self._write(
            tmp_path / "m.npz",
            format=np.array("coo"),
            shape=np.array([2, 2]),
            data=np.array([Trap()], dtype=object),
            row=np.array([0]),
            col=np.array([0]),
        )
        with pytest.raises(FileFormatError, match="damaged"):
            read_cells(path)
        assert not (tmp_path / "sprung").exists()

    def test_other_archives(self, tmp_path, put):
        with pytest.raises(FileFormatError, match="save_npz"):
            read_cells(self._write(tmp_path / "plain.npz", X=np.eye(3)))
        with pytest.raises(FileFormatError, match="damaged"):
            read_cells(put(b"not a zip", "no.npz"))
        with pytest.raises(FileFormatError, match="damaged"):
            read_cells(self._write(tmp_path / "f.npz", format=np.array("nonsense"), shape=np.array([1, 1])))
        sp.save_npz(tmp_path / "c.npz", sp.coo_array(np.array([[1j]])))
        with pytest.raises(FileFormatError, match="no numbers"):
            read_cells(tmp_path / "c.npz")

    def test_cut_short_at_every_length(self, tmp_path):
        sp.save_npz(tmp_path / "m.npz", MATRIX.tocsr())
        whole = (tmp_path / "m.npz").read_bytes()
        path = tmp_path / "cut.npz"
        for length in range(0, len(whole), 97):
            path.write_bytes(whole[:length])
            with pytest.raises(FileFormatError):
                read_cells(path)

    def test_bombs(self, tmp_path, monkeypatch):
        monkeypatch.setenv("PERMIX_MAX_BYTES", str(10**5))
        with zipfile.ZipFile(tmp_path / "bomb.npz", "w", zipfile.ZIP_DEFLATED) as archive:
            stream = io.BytesIO()
            np.save(stream, np.zeros(10**5))
            archive.writestr("data.npy", stream.getvalue())
            archive.writestr("format.npy", b"")
        with pytest.raises(FileFormatError, match="unpack to"):
            read_cells(tmp_path / "bomb.npz")

    @pytest.mark.parametrize("shape", [[10**11, 2], [2, 10**11], [2**62, 2**62]])
    def test_shapes_beyond_the_memory_are_refused_before_it_is_taken(self, tmp_path, shape):
        parts = {"data": np.array([1.0]), "row": np.array([0]), "col": np.array([0])}
        path = self._write(tmp_path / "m.npz", format=np.array("coo"), shape=np.array(shape), **parts)
        with pytest.raises(FileFormatError, match="PERMIX_MAX_BYTES"):
            read_cells(path)
