"""Does the model look like the data? Checks by data sets drawn from it, as a table and as pictures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from permix.errors import DataError, Message
from permix.estimators.registry import model_of, part
from permix.posterior.checks import N_REPLICATES, FitChecks, is_share
from permix.reporting import items_of
from permix.reporting.charts import Axis, Interval, dots
from permix.reporting.content import Block, Figure, Note, Paragraph, Section, Table
from permix.reporting.context import Context, Rows
from permix.reporting.words import capital, listed, number, one_digit, percent, shown

# Entries of the data, of so many agents at most, that checks are made of after every fit.
QUICK_ENTRIES, MOST_AGENTS = 50_000, 4000
# Numbers of an aspect that a picture has.
MOST_NUMBERS = 12
# Bars on one axis are at most so many times as long as others; beyond so many bars, dots stand at the end.
MOST_TIMES, FARTHEST = 15.0, 5.0
# What the numbers of an aspect are.
WHAT = {
    "first choices": "Share of the agents who put each item first",
    "pairwise majorities": "Of those who order both items, the share with the first one ahead",
    "list lengths by first choice": "How many items those list who put each item first, on average",
    "agreement between two agents": "Share of the pairs of items that two agents order alike",
    "column means": "Means of columns, of categories shares",
    "column spreads": "Standard deviations of columns",
    "column flatness": "The square of spread over half the range, "
    "a third where all values are equally frequent",
    "correlations": "Between two columns, from -1 to 1",
    "levels": "Share of the cells with each level",
}


def checks_section(fit: Any, context: Context) -> tuple[Section, FitChecks | None]:
    """Compare the data with data drawn from the model; return also what was found, where it is known."""
    title = "Does the model look like the data?"
    if not context.checks:
        return Section("checks", title, (Note("Not checked, as asked."),)), None
    try:
        found: FitChecks = part(model_of(fit).checks)(fit, context.data, N_REPLICATES, 0)
    except DataError as error:  # shown to the reader: which data are missing, or why they say too little
        said = error.args[0] if error.args else ""
        why = said.as_options() if isinstance(said, Message) else str(error)
        way_out = ""
        before = [shown(row["said"]) for row in context.about.get("checks", ())]
        if before and context.data is None:
            again = f"permix report {context.file or 'FIT'} DATA"
            note = f"Checked when it was fitted. {again}, with the same data, shows the numbers."
            return Section("checks", title, (*map(Paragraph, before), Note(note))), None
        if context.data is None:
            way_out = (
                f" permix report {context.file or 'FIT'} DATA, with the data that were fitted, checks it."
            )
        return Section("checks", title, (Note(f"Not checked: {why}.{way_out}"),)), None
    return Section("checks", title, tuple(_checks(found))), found


def kept_checks(found: FitChecks) -> Rows:
    """Return what files keep of checks: what they came to, and which sides of the data are not reproduced."""
    return [{"said": found.verdict, "lacking": listed(found.lacking) if found.lacking else ""}]


def is_quick(fit: Any) -> bool:
    """Say whether a check takes a second or so: it does of so many entries of what agents or rows say."""
    items = getattr(fit, "items", None) or items_of(fit)
    if items is None:
        return math.prod(getattr(fit, "shape", (QUICK_ENTRIES,))) <= QUICK_ENTRIES
    n = getattr(fit, "n_agents", MOST_AGENTS)
    return min(n, MOST_AGENTS) * len(items) <= QUICK_ENTRIES


def _checks(found: FitChecks) -> list[Block]:
    replicates = f"{found.n_replicates} data sets"
    aspects = Table(
        "What the model reproduces",
        ("aspect", "numbers", "outside", "as unusual", "reproduced"),
        tuple(
            (
                capital(row["aspect"]),
                int(row["numbers"]),
                int(row["outside"]),
                percent(row["tail"]),
                "yes" if row["reproduced"] else "no",
            )
            for row in found.aspects.to_dict(orient="records")
        ),
        f"Compared with {replicates} drawn from the model. Outside: numbers outside of the 95% interval of "
        "these. As unusual: the share of drawn data sets that are as unusual as the observed one.",
    )
    blocks: list[Block] = [Paragraph(found.verdict), aspects]
    for name in found.aspects["aspect"]:
        blocks.append(_picture(name, found.table[found.table["aspect"] == name]))
    return blocks


def _picture(name: str, rows: Any) -> Figure:
    """Draw the most unusual numbers of an aspect, observed and under the model."""
    what, written = WHAT.get(name, ""), percent if is_share(name) else number
    # All of them stay in their order, of many the most unusual ones come first.
    few = len(rows) <= MOST_NUMBERS
    worst = rows if few else rows.sort_values("tail", kind="stable").head(MOST_NUMBERS)
    drawn = [
        Interval(shown(row["entry"], 60), row["mean"], row["low"], row["high"], row["observed"])
        for row in worst.to_dict(orient="records")
    ]
    some = "" if few else f", the {len(drawn)} most unusual of {len(rows):,}"
    said = f"{what}. " if what else ""
    title = f"{capital(name)}: observed, and drawn from the model"
    reproduced = f"{said}A diamond inside its bar is reproduced by the model{some}."
    columns = ("what", "mean of drawn data sets", "95% of drawn data sets", "observed")
    figure = dots(title, reproduced, drawn, _around(drawn, written), columns)
    if not _of_several_units(drawn):
        return figure
    relative = [_relative(row) for row in drawn]
    ends = [value for row in relative for value in (row.low, row.high, row.other) if value is not None]
    reach = max(1.0, *(min(abs(end), FARTHEST) for end in ends))
    note = (
        f"{reproduced} Every bar is drawn equally long, since the numbers have units of their own; they are "
        "in the table."
    )
    axis = Axis("in bars", -reach, reach, one_digit)
    return dots(title, note, relative, axis, columns)._replace(numbers=figure.numbers)


def _around(rows: Sequence[Interval], written: Any) -> Axis:
    ends = [value for row in rows for value in (row.low, row.high, row.other) if value is not None]
    return Axis("", min(ends), max(ends), written)


def _of_several_units(rows: Sequence[Interval]) -> bool:
    """Say whether the bars are of sizes that no one axis can show."""
    widths = [row.high - row.low for row in rows if row.high is not None and row.low is not None]
    return bool(widths) and max(widths) > MOST_TIMES * max(min(widths), 0.0)


def _relative(row: Interval) -> Interval:
    """Measure a number from the mean of those drawn, in half widths of their interval."""
    assert row.low is not None
    assert row.high is not None
    assert row.other is not None
    half = (row.high - row.low) / 2.0
    if half <= 0.0:  # all data sets have the same number
        side = (row.other > row.value) - (row.other < row.value)
        return Interval(row.name, 0.0, 0.0, 0.0, FARTHEST * side)
    low, high, other = ((value - row.value) / half for value in (row.low, row.high, row.other))
    return Interval(row.name, 0.0, low, high, other)
