"""Tables of numbers or answers: a CSV, TSV, Excel, Parquet or JSON file as a pandas frame."""

from __future__ import annotations

import csv
import io
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from permix.data.io import headers
from permix.data.io.containers.lines import read_lines
from permix.data.io.forms import surveys
from permix.data.io.table_columns import DECIMAL_COMMAS_BESIDE, decimal_points
from permix.data.io.text_files import PathLike
from permix.data.labels import as_objects
from permix.errors import FileFormatError

if TYPE_CHECKING:
    import pandas as pd


def read_frame(
    path: PathLike, delimiter: str | None = None, *, header: bool | None = None, sheet: str | None = None
) -> pd.DataFrame:
    """Read a table of numbers or answers from a text file, plain or gzipped, or from Excel, Parquet or JSON.

    ``delimiter`` and ``header`` are found where they are left out, as :func:`permix.read_table` does. Columns
    of numbers are numeric, others text as it stands; blank cells (and NA, N/A, NaN, NULL) are NaN. In files
    separated by semicolons or tabs, a column all of whose entries are numbers such as ``1,5`` or ``12`` is
    numeric too: that is how spreadsheets write where the decimal mark is a comma. Elsewhere, and
    where they could be thousands, such columns are text. A column without a name is called
    ``unnamed1`` if it is the first, and so on; a saved pandas index is such a column. Where no line names the
    columns, they are called ``column1``, ``column2``, and so on.
    """
    import pandas as pd
    from pandas.api.types import infer_dtype

    whole = read_lines(path, delimiter, sheet)
    if header is None and not whole.named:
        whole = surveys.header_lines(path, whole)
    delimiter = whole.delimiter
    number = partial(headers.is_number, delimiter=delimiter)
    decide = partial(headers.has_header, path, number=number)
    found, lines = headers.split_header(path, whole, header, decide)
    rows = lines.fields
    names = [f"column{place}" for place in range(1, len(rows[0]) + 1)]
    if found is not None:
        names = [name or f"unnamed{place}" for place, name in enumerate(found, start=1)]
        if len(set(names)) < len(names):
            place = found.index("") + 1
            raise FileFormatError(
                f"{path}: column {place} has no name, and another is called 'unnamed{place}'; name it", path
            )
    elif header is None:
        headers.warn_of_no_header(path, rows[0], "column1, column2")
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
        na_values=sorted(headers.NOTHING),
        low_memory=False,
    )
    for name in names if delimiter in DECIMAL_COMMAS_BESIDE else ():
        known = frame[name].dropna()
        if infer_dtype(known) == "string" and known.str.contains(",").any():
            read = decimal_points(as_objects(known.tolist()), delimiter)
            if not any("," in entry for entry in read):
                frame[name] = pd.Series(read.astype(np.float64), index=known.index)
    return frame
