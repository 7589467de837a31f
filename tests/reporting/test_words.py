"""Names from strangers, numbers in words, and lines that fit."""

from __future__ import annotations

import pytest

from permix.cli.output import wrapped
from permix.reporting.words import FIRST_STRONG, POP, interval, named, number, percent, shown, told_apart


@pytest.mark.parametrize("name", ["a\u202eb", "\u2066a\u2069b", "a\u200fb", "a\x00b\x1b[31m", "a\ud800b"])
def test_names_cannot_turn_or_control_the_page(name):
    text = shown(name)
    assert text.isprintable()
    assert text.encode()
    assert text.startswith("a")


def test_names_from_right_to_left_are_isolated():
    assert shown("عدالة 2") == f"{FIRST_STRONG}عدالة 2{POP}"
    assert shown("Łódź 😀") == "Łódź 😀"
    assert shown(" \n ") == "(no name)"


def test_long_names_are_cut_only_where_asked():
    name = "x" * 300
    assert shown(name) == name
    assert len(shown(name, 60)) == 60


def test_nothing_is_rounded_to_certainty():
    assert percent(1.0) == "100%"
    assert percent(float("nan")) == "–"
    assert interval(0.5, None, None) == "50%"
    assert named(list(range(12)), 3) == "groups 1, 2, 3 and 9 more"


@pytest.mark.parametrize("width", [20, 30, 60])
def test_orders_are_wrapped_and_not_cut(width):
    names = ["Brian Lenihan", "Joe Higgins", "a" * 45, "Joan Burton", "é"]
    lines = wrapped(names, width, " ≻ ", "    ")
    assert all(len(line) <= width for line in lines)
    assert "".join("".join(lines).split()) == "≻".join("".join(name.split()) for name in names)


@pytest.mark.parametrize(
    ("value", "written"), [(5137.2, "5,137"), (999.6, "1,000"), (999.4, "999"), (0.123456, "0.123"), (7, "7")]
)
def test_numbers_are_written_for_people(value, written):
    assert number(value) == written


@pytest.mark.parametrize(
    ("first", "second"), [(129.72, 130.19), (5137.4, 5138.9), (1.0, 1.00001), (8.3, 9.42)]
)
def test_two_numbers_that_differ_look_different(first, second):
    a, b = told_apart([first, second])
    assert a != b
    assert "e" not in a + b


def test_numbers_of_a_column_have_one_precision():
    assert told_apart([141.517, 140.484, 138.43]) == ["141.5", "140.5", "138.4"]
    assert told_apart([8.305, 10.849, 9.418]) == ["8.3", "10.8", "9.4"]
    assert told_apart([float("nan"), 2.0, 2.0]) == ["–", "2.00", "2.00"]
    assert told_apart([1e-12, 3e-12]) == ["1e-12", "3e-12"]
    assert told_apart([0.0, -0.0]) == ["0", "0"]
