"""Pictures of checks: every number can be read, whatever its unit; names over columns are whole."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

from permix.reporting.charts import Axis, Interval, _ticks_written, dots, heat
from permix.reporting.check_sections import FARTHEST, _of_several_units, _picture, _relative
from permix.reporting.words import percent


def table(*rows):
    names = ("entry", "observed", "mean", "low", "high", "tail")
    return pd.DataFrame([dict(zip(names, row, strict=True)) for row in rows])


GRAMS = ("grams", 4185.0, 4180.0, 4100.0, 4260.0, 0.9)
SHARE = ("share", 0.41, 0.40, 0.35, 0.45, 0.8)
OUTSIDE = ("beak", 60.0, 43.6, 43.0, 44.2, 0.01)


def test_numbers_of_several_units_are_drawn_alike_and_listed_as_they_are():
    figure = _picture("column means", table(GRAMS, SHARE))
    assert "equally long" in figure.description
    bars = [part.split('width="')[1].split('"')[0] for part in figure.svg.split('<rect class="rng"')[2:]]
    assert float(bars[0]) == pytest.approx(float(bars[1]), abs=0.2)
    assert [row[1] for row in figure.numbers.rows] == ["4,180", "0.4"]
    # Of one unit they are on one axis.
    alike = _picture("first choices", table(SHARE, ("other", 0.2, 0.21, 0.18, 0.24, 0.7)))
    assert "equally long" not in alike.description
    assert "Share of the agents" in alike.description
    assert [row[1] for row in alike.numbers.rows] == ["40%", "21%"]


def test_what_is_outside_stays_outside():
    row = _relative(Interval("beak", 43.6, 43.0, 44.2, 60.0))
    assert row.other > row.high
    never = _relative(Interval("x", 1.0, 1.0, 1.0, 2.0))
    assert (never.low, never.high, never.other) == (0.0, 0.0, FARTHEST)
    assert _relative(Interval("x", 1.0, 1.0, 1.0, 1.0)).other == 0.0
    assert _of_several_units([Interval("a", 0, 0, 1), Interval("b", 0, 0, 100)])
    assert not _of_several_units([Interval("a", 0, 0, 1), Interval("b", 0, 0, 10)])


def test_names_over_columns_are_cut_only_where_they_are_very_long():
    names = ["Ana Duarte (Green)", "Grace Lin (National)", "Farid Haddad (Center)"]
    made = heat("t", "d", np.eye(3), names, names, corner="item", low=0.0, high=1.0)
    assert "…" not in made.svg
    longer = [*names[:2], "z" * 300]
    assert "…" in heat("t", "d", np.eye(3), longer, longer, corner="item", low=0.0, high=1.0).svg


def test_few_numbers_stay_in_their_order_and_many_begin_with_the_most_unusual():
    few = table(*((f"level {k}", 0.2, 0.2, 0.1, 0.3, 0.9 - 0.1 * k) for k in range(5)))
    assert [row[0] for row in _picture("levels", few).numbers.rows] == [f"level {k}" for k in range(5)]
    many = table(*((f"item {k}", 0.2, 0.2, 0.1, 0.3, 1.0 - 0.01 * k) for k in range(20)))
    assert [row[0] for row in _picture("levels", many).numbers.rows][:2] == ["item 19", "item 18"]


def test_numbers_along_an_axis_can_be_told_apart():
    near = dots(
        "t", "d", [Interval("a", -5.4413), Interval("b", -5.4499)], Axis("", -5.45, -5.44), ("", "", "", "")
    )
    ticks = re.findall(r">(-5[.0-9]*)<", near.svg)
    assert len(ticks) > 2
    assert len(set(ticks)) == len(ticks)
    assert _ticks_written([0.331, 0.332, 0.333], percent) == ["33.1%", "33.2%", "33.3%"]
    assert _ticks_written([0.1, 0.2], percent) == ["10%", "20%"]
