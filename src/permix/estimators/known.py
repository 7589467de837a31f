"""What is known of the rows and items of a fit beside the answers, and groups compared with it.

No model uses it: it goes with a fit into its file, and comes back when groups are compared with covariates
or items are shown.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from permix.data.attributes import NONE, Attributes, Column, item_labels
from permix.data.labels import Array, Label
from permix.errors import DataError
from permix.estimators.fields import require
from permix.files import unpacking_limit
from permix.posterior.estimated import Memberships

PREFIX = "known/"
# More columns than anybody gives, and longer names.
MOST_COLUMNS, LONGEST_NAME = 200, 1000
# Halves of surrogate pairs, which broken texts hold, come back as they were.
UTF_8 = ("utf-8", "surrogatepass")


class Known(NamedTuple):
    """Covariates of rows (agents), and attributes of items (columns of a matrix)."""

    rows: Attributes = NONE
    items: Attributes = NONE


NOTHING = Known()


def known_of(fit: Any) -> Known:
    """Return what a fit knows beside the answers."""
    found: Known = getattr(fit, "known", NOTHING)
    return found


def with_known(fit: Any, data: Any) -> Any:
    """Return a fit with what its data know beside the answers."""
    rows, items = (getattr(data, name, NONE) for name in ("covariates", "item_attributes"))
    if not hasattr(fit, "known") or not (rows or items):
        return fit
    n_rows, n_items = fit.n_known
    rows = rows.checked(n_rows, "rows") if n_rows else NONE
    return dataclasses.replace(fit, known=Known(rows, items.checked(n_items, "items")))


def labels_of(fit: Any, items: Any) -> list[str]:
    """Return what items are called in tables and pictures."""
    known = known_of(fit).items
    names: list[Label] = list(items)
    return item_labels(names, known) if known else [str(name) for name in names]


# -- files -----------------------------------------------------------------------------------------


def pack(known: Known) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return what a file says about the columns, by part, and their arrays."""
    said: dict[str, Any] = {}
    arrays: dict[str, Array] = {}
    for part, columns in known._asdict().items():
        said[part] = list(columns)
        for place, name in enumerate(columns):
            column = columns.column(name)
            arrays[f"{PREFIX}{part}/{place}"] = column.values
            if column.levels is not None:
                arrays |= _packed_words(f"{PREFIX}{part}/{place}", column.levels)
    return said, arrays


def unpack(said: Any, arrays: Mapping[str, Array]) -> Known:
    """Return the columns of a file, which may come from anybody; they must all be as long as each other."""
    require(isinstance(said, dict) and set(said) == set(Known._fields), "columns")
    left, parts = dict(arrays), {}
    for part, names in said.items():
        require(isinstance(names, list) and len(names) <= MOST_COLUMNS, "columns")
        require(all(isinstance(n, str) and 0 < len(n) <= LONGEST_NAME for n in names), "names of columns")
        require(len(set(names)) == len(names), "names of columns")
        columns = {}
        for place, name in enumerate(names):
            values = left.pop(f"{PREFIX}{part}/{place}", None)
            levels, ends = (left.pop(f"{PREFIX}{part}/{place}/{of}", None) for of in ("levels", "ends"))
            require(values is not None and values.ndim == 1, f"column {name!r}")
            require((levels is None) == (ends is None), f"column {name!r}")
            columns[name] = _column(name, values, levels, ends)
        require(len({len(column.values) for column in columns.values()}) <= 1, "columns")
        parts[part] = Attributes.of(columns)
    require(not left, "columns")
    return Known(**parts)


def _packed_words(place: str, words: tuple[str, ...]) -> dict[str, Array]:
    """Return the bytes of words one after the other, and where each ends.

    One long comment takes its own length alone; in an array of texts, all would take as much as the longest.
    """
    written = [word.encode(*UTF_8) for word in words]
    ends = np.cumsum([len(each) for each in written], dtype=np.int64)
    return {f"{place}/levels": np.frombuffer(b"".join(written), np.uint8), f"{place}/ends": ends}


def _column(name: str, values: Any, levels: Any, ends: Any) -> Column:
    if levels is None:
        require(values.dtype == np.float64 and not np.isinf(values).any(), f"column {name!r}")
        return Column(values)
    require(levels.ndim == ends.ndim == 1, f"column {name!r}")
    require(levels.dtype == np.uint8 and ends.dtype == np.int64, f"column {name!r}")
    require(levels.nbytes <= unpacking_limit() and len(ends) <= len(levels), f"column {name!r}")
    bounds = [0, *ends.tolist()]
    require(bounds == sorted(bounds) and bounds[-1] == len(levels), f"ends of words of column {name!r}")
    content = levels.tobytes()
    # Bytes that are no UTF-8 raise a ValueError, which is the file's.
    words = tuple(content[a:b].decode(*UTF_8) for a, b in pairwise(bounds))
    require(len(set(words)) == len(words) and "" not in words, f"column {name!r}")
    require(
        values.dtype == np.int32 and bool(np.all((values >= -1) & (values < len(words)))), f"column {name!r}"
    )
    return Column(values, words)


def memberships_of(fit: Any) -> Memberships:
    """Return to which groups the rows of a fit belong; refused for models without groups."""
    if not hasattr(fit, "memberships"):
        raise DataError(
            f"a {getattr(fit, 'model', type(fit).__name__)} has no groups to compare with covariates"
        )
    found: Memberships = fit.memberships()
    return found
