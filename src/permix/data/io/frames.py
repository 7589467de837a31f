"""Tables of numbers or answers: a CSV or TSV file as a pandas frame."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

import numpy as np

from permix.data.io.table_columns import BLANK, file_rows, guess_delimiter
from permix.data.io.text_files import PathLike, read_text
from permix.errors import FileFormatError

if TYPE_CHECKING:
    import pandas as pd

DECIMAL_COMMA = r"[+-]?[0-9]+(,[0-9]+)?([eE][+-]?[0-9]+)?"
# Not "None" or "none", which are answers that people give.
NOTHING = BLANK | {"N/A", "n/a", "#N/A", "NULL", "null", "<NA>"}


def read_frame(path: PathLike, delimiter: str | None = None) -> pd.DataFrame:
    """Read a table of numbers or answers from a text file with a header line, plain or gzipped.

    Parameters
    ----------
    path : path
    delimiter : str, optional
        Left out, a tab for ``.tsv`` and otherwise the most frequent of comma, semicolon, tab and ``|`` in
        the header.

    Returns
    -------
    pandas.DataFrame
        Columns of numbers are numeric, others text as it stands; blank cells (and NA, N/A, NaN, NULL) are
        NaN. In files separated by semicolons, a column all of whose entries are numbers such as ``1,5`` or
        ``12`` is numeric too: that is how spreadsheets write where the decimal mark is a comma. A column
        without a name is called ``unnamed1`` if it is the first, ``unnamed2`` if it is the second, and so
        on; a saved pandas index is such a column.

    Raises
    ------
    FileFormatError
        With file, line number and reason: nothing in the file, not UTF-8, two columns of one name, a row
        that is longer or shorter than the header, no rows after the header.
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
    # One reading of delimiters, quotes and blanks: what was checked line by line is what pandas gets.
    checked = io.StringIO()
    csv.writer(checked, lineterminator="\n").writerows(
        fields for _, fields in file_rows(path, text, delimiter)
    )
    checked.seek(0)
    names = _all_named(path, next(csv.reader(checked)))
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
