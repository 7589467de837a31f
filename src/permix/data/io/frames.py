"""Tables of numbers or answers: a CSV or TSV file as a pandas frame."""

from __future__ import annotations

import csv
import io
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from permix.data.io.headers import (
    DECIMAL_COMMA,
    NOTHING,
    has_header,
    is_number,
    is_number_or_decimal_comma,
    split_header,
    warn_of_no_header,
)
from permix.data.io.table_columns import guess_delimiter
from permix.data.io.text_files import PathLike, read_text
from permix.errors import FileFormatError

if TYPE_CHECKING:
    import pandas as pd


def read_frame(path: PathLike, delimiter: str | None = None, *, header: bool | None = None) -> pd.DataFrame:
    """Read a table of numbers or answers from a text file, plain or gzipped.

    Parameters
    ----------
    path : path
    delimiter : str, optional
        Left out, a tab for ``.tsv`` and otherwise the most frequent of comma, semicolon, tab and ``|`` in
        the first line.
    header : bool, optional
        Whether the first line names the columns. Left out, found by what is in it
        (:mod:`permix.data.io.headers`); a warning says where it was taken for a row.

    Returns
    -------
    pandas.DataFrame
        Columns of numbers are numeric, others text as it stands; blank cells (and NA, N/A, NaN, NULL) are
        NaN. In files separated by semicolons, a column all of whose entries are numbers such as ``1,5`` or
        ``12`` is numeric too: that is how spreadsheets write where the decimal mark is a comma. A column
        without a name is called ``unnamed1`` if it is the first, ``unnamed2`` if it is the second, and so
        on; a saved pandas index is such a column. Where no line names the columns, they are called
        ``column1``, ``column2``, and so on.

    Raises
    ------
    FileFormatError
        With file, line number and reason: nothing in the file, not UTF-8, two columns of one name, a row
        that is longer or shorter than the first line, no rows after the header, a first line that could name
        the columns or be a row.
    OSError
        When there is no such file.

    Examples
    --------
    >>> answers = read_frame("answers.csv")  # doctest: +SKIP
    """
    import pandas as pd
    from pandas.api.types import infer_dtype

    text = read_text(path)
    delimiter = delimiter or guess_delimiter(path, text)
    number = is_number_or_decimal_comma if delimiter == ";" else is_number
    found, _, rows = split_header(path, text, delimiter, header, partial(has_header, path, number=number))
    if found is None:
        names = [f"column{place}" for place in range(1, len(rows[0]) + 1)]
        if header is None:
            warn_of_no_header(path, rows[0], "column1, column2")
    else:
        names = _all_named(path, found)
    # One reading of delimiters, quotes and blanks: what was checked line by line is what pandas gets.
    checked = io.StringIO()
    csv.writer(checked, lineterminator="\n").writerows(rows)
    checked.seek(0)
    frame = pd.read_csv(
        checked,
        names=names,
        index_col=False,
        skip_blank_lines=False,
        keep_default_na=False,
        na_values=sorted(NOTHING),
        low_memory=False,
    )
    if delimiter == ";":
        for name in names:
            known = frame[name].dropna()
            if infer_dtype(known) != "string" or not known.str.contains(",").any():
                continue
            if known.str.fullmatch(DECIMAL_COMMA).all():
                frame[name] = known.str.replace(",", ".").astype(np.float64)
    return frame


def _all_named(path: PathLike, names: list[str]) -> list[str]:
    named = [name or f"unnamed{place}" for place, name in enumerate(names, start=1)]
    if len(set(named)) < len(named):
        place = names.index("") + 1
        raise FileFormatError(
            f"{path}: column {place} has no name, and another is called 'unnamed{place}'; name it", path
        )
    return named
