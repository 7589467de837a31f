"""Models that were compared, in reports."""

from __future__ import annotations

import math

from permix.reporting.context import Context
from permix.reporting.shared import choice_section


def row(model, score, best, base, *, kind="model", groups=None, stability=None):
    return {
        "model": model,
        "kind": kind,
        "score": score,
        "difference": score - best,
        "difference_error": 0.0 if score == best else 0.01,
        "times": math.exp(score - base),
        "groups": groups,
        "stability": stability,
        "seconds": 1.0,
    }


def table(*rows):
    (section,) = choice_section(Context("", {"comparison": rows}))
    return section.blocks[-1]


def test_times_are_called_by_the_simple_description_that_they_are_of():
    found = table(
        row("empirical (baseline)", -1.98, -2.02, -1.98, kind="baseline"),
        row("angle", -2.02, -2.02, -1.98, groups=3.0, stability=0.991),
        row("mallows", -2.03, -2.02, -1.98, groups=7.0),
        row("one group (baseline)", -2.23, -2.02, -1.98, kind="baseline"),
    )
    assert found.columns[4] == "times empirical"
    assert "by the shares of equal answers in the data" in found.note
    assert "one group" not in found.note  # it is 0.78 times as probable itself, and the measure of nothing
    assert [cells[4] for cells in found.rows] == ["1", "0.9608", "0.9512", "0.7788"]
    assert found.rows[1][2:4] == ("best", "")
    assert [cells[-1] for cells in found.rows] == ["–", "99%", "–", "–"]


def test_where_one_group_is_the_best_simple_description_it_is_named():
    found = table(
        row("mallows", -2.0, -2.0, -2.23, groups=3.0, stability=1.0),
        row("one group (baseline)", -2.23, -2.0, -2.23, kind="baseline"),
        row("uniform (baseline)", -3.2, -2.0, -2.23, kind="baseline"),
    )
    assert found.columns[4] == "times one group"
    assert found.note.count("as probable as under one group") == 1
