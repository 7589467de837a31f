"""Columns of numbers to warn of: constant, of few values, flat, of heavy tails, skewed, codes for missing."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from permix.data.cells_codes import suspected_codes
from permix.errors import PermixWarning
from permix.families.scale_learning import MANY_COPIES
from permix.families.table_columns import ENTRIES_PER_VALUE, FEW_VALUES, columns_of

# Rows further from the median than so many ranges between quartiles are far out; of normal data one in 1e11.
FAR = 5.0
# Tails are heavy where more than this share of rows is far out.
FAR_SHARE = 0.002
# A column of so many entries is evenly spread where its distribution function is no farther than this over
# the root of their number from a straight line (Kolmogorov & Smirnov: nine of ten such columns are). A normal
# column of 200 entries is at 2.
FEWEST_SPREAD, STRAIGHT = 200, 1.22
# Shapes of columns with fewer entries are not judged.
FEWEST_JUDGED = 50
# A column of many values has one that stands out where so large a share of rows has it, and so many times as
# many as any other value.
STANDS_OUT_SHARE, STANDS_OUT_TIMES = 0.2, 5
# A positive column is skewed where its third standardized moment is above this, and that of the logarithms is
# at most half as far from zero.
SKEWED = 1.0
# Whole numbers from zero on with a median below this are counts, whose spread grows with their mean.
SMALL_COUNT = 10.0
# So many columns are named.
SHOWN = 6


def odd_columns(table: np.ndarray) -> dict[str, list[int]]:
    """Places of the columns that are constant, of few values, counts, flat, of heavy tails or skewed."""
    kinds = ("constant", "discrete", "one value", "counts", "flat", "heavy", "skewed")
    found: dict[str, list[int]] = {kind: [] for kind in kinds}
    for j, cells in enumerate(table.T):
        column = cells[~np.isnan(cells)]
        values, counts = np.unique(column, return_counts=True)
        few = len(values) <= FEW_VALUES and len(column) >= ENTRIES_PER_VALUE * len(values)
        if len(values) == 1:
            found["constant"].append(j)
        elif few or 2 * counts.max() > len(column) >= ENTRIES_PER_VALUE:
            found["discrete"].append(j)
        elif stands_out(counts):
            found["one value"].append(j)
        elif are_counts(column):
            found["counts"].append(j)
        elif is_flat(column):
            found["flat"].append(j)
        else:
            low, middle, high = np.quantile(column, [0.25, 0.5, 0.75])
            if np.mean(np.abs(column - middle) > FAR * (high - low)) > FAR_SHARE:
                found["heavy"].append(j)
            elif is_skewed(column):
                found["skewed"].append(j)
    return found


def stands_out(counts: np.ndarray) -> bool:
    """Whether one value, such as zero, is far more frequent than every other."""
    if counts.sum() < FEWEST_JUDGED or len(counts) < 2:
        return False
    second, first = np.partition(counts, -2)[-2:]
    return bool(first >= STANDS_OUT_SHARE * counts.sum() and first >= STANDS_OUT_TIMES * second)


def are_counts(column: np.ndarray) -> bool:
    """Whether entries are small whole numbers from zero on."""
    whole = len(column) >= FEWEST_JUDGED and column.min() == 0.0 and bool(np.all(column == np.floor(column)))
    return whole and float(np.median(column)) < SMALL_COUNT


def is_skewed(column: np.ndarray) -> bool:
    """Whether logarithms of positive entries are far more symmetric than the entries."""
    if len(column) < FEWEST_JUDGED or column.min() <= 0.0:
        return False
    skewness = _skewness(column)
    return skewness > SKEWED and 2.0 * abs(_skewness(np.log(column))) <= skewness


def _skewness(column: np.ndarray) -> float:
    """The third standardized moment, in units in which cubes do not overflow."""
    off = column - column.mean()
    off = off / np.abs(off).max()
    return float(np.mean(off**3) / np.mean(off**2) ** 1.5)


def is_flat(column: np.ndarray) -> bool:
    """Whether a column could be uniform between its least and its largest entry."""
    n = len(column)
    if n < FEWEST_SPREAD:
        return False
    ordered = np.sort(column)
    share = (ordered - ordered[0]) / (ordered[-1] - ordered[0])
    distance = np.maximum(np.arange(1, n + 1) / n - share, share - np.arange(n) / n).max()
    return bool(distance * np.sqrt(n) <= STRAIGHT)


def warn_of_odd_columns(table: np.ndarray, names: Sequence[str] | None, stacklevel: int) -> None:
    """Warn once, by name, with what to do about each kind."""
    found = odd_columns(table)
    advice = {
        "constant": "constant, and says nothing about groups",
        "discrete": "of few different values, or one value in most rows: groups may form around single "
        "values (the family mixed takes such columns as categories or counts)",
        "one value": "with one value in many rows, such as zero for nothing spent: these rows make groups of "
        "their own (tell them apart in a column of yes and no, and leave the cell empty)",
        "counts": "of small counts, which spread the more the larger they are: Gaussian groups cut them into "
        "pieces (the family mixed takes counts as what they are)",
        "flat": "spread evenly from the least to the largest value: Gaussian groups cut such a column into "
        "pieces, so that their number means little (leave out a column that numbers the rows)",
        "heavy": "of heavy tails: far values make groups of their own (logarithms often help)",
        "skewed": "skewed, as incomes and concentrations are: it takes several Gaussian groups to follow "
        "such a shape, so that there may be too many (take logarithms, which make it far more symmetric)",
    }
    said = [f"{listed_columns(places, names)}: {advice[kind]}" for kind, places in found.items() if places]
    if said:
        warnings.warn(
            f"some columns do not suit Gaussian groups. {'. '.join(said)}.", PermixWarning, stacklevel
        )


def warn_of_copies(table: np.ndarray, stacklevel: int) -> None:
    """Warn where many rows are exactly like others, which numbers that are measured never are."""
    n_copies = len(table) - len(np.unique(table, axis=0))
    if n_copies > MANY_COPIES * len(table):
        warnings.warn(
            f"{n_copies:,} of the {len(table):,} rows are copies of others: Gaussian groups form around "
            "copies, and there will be too many. Leave copies out, or take another family where values are "
            "few (mixed takes such columns as categories or counts)",
            PermixWarning,
            stacklevel,
        )


def listed_columns(places: Sequence[int], names: Sequence[str] | None) -> str:
    """Name columns, the first few of them."""
    listed = [repr(names[j]) if names else str(j + 1) for j in places[:SHOWN]]
    more = f" and {len(places) - SHOWN} more" if len(places) > SHOWN else ""
    return f"column{'s' if len(places) > 1 else ''} {', '.join(listed)}{more}"


def warn_of_codes(table: Any, names: Sequence[str] | None, stacklevel: int) -> None:
    """Warn, by name, of values such as -99 that seem to stand for missing cells."""
    for j, column in enumerate(columns_of(table)):
        for code, n, low, high, _ in suspected_codes(column.present) if column.numeric else ():
            said = f"{listed_columns([j], names)}: {n} cells are {code:g}, while all others are {low:g} to "
            said += f"{high:g}; "
            way_out = "if that stands for missing, make these cells NaN (on the command line: --missing "
            warnings.warn(f"{said}{way_out}{code:g})", PermixWarning, stacklevel)
