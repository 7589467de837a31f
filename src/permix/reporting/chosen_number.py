"""How a number of groups was chosen: what files keep of it, in the words of reports and of the terminal."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from permix.estimators.baselines import times_as_probable
from permix.reporting.content import Block, Paragraph, Table
from permix.reporting.context import Context, Rows
from permix.reporting.words import capital, count_of, number, spelled

# Differences of so many standard errors are not put down to chance.
CLEARLY = 2.0
# Columns of files by what people read; others are kept for programs.
HELD_OUT = {"train": "fitted", "validation": "held out", "difference": "difference"}
HELD_OUT |= {"difference_error": "error"}
CRITERION = {"log_likelihood": "log-likelihood", "parameters": "parameters"}
CRITERIA = ("aic", "bic", "dic", "waic")
NATS = (
    "Mean log-likelihood of an agent in nats (1 more: 2.7 times as probable), of those who were fitted and "
    "of those who were held out, and who decide; the difference to the best, between the same agents, and "
    "its error."
)
SMALL_IS_GOOD = "The smallest {name} decides: it weighs how probable the data are against the parameters."


def number_sentences(about: Mapping[str, Rows]) -> tuple[str, ...]:
    """Say why there are so many groups; nothing where nobody chose, or the file does not say what."""
    rows = sorted(about.get("selection", ()), key=lambda row: int(row["n_groups"]))
    chosen = next((row for row in rows if row.get("chosen")), None)
    if chosen is None or len(rows) < 2:
        return ()
    n, tried = int(chosen["n_groups"]), f"{rows[0]['n_groups']} to {rows[-1]['n_groups']}"
    if "validation" not in chosen:
        by = next((name.upper() for name in CRITERIA if name in chosen), "a criterion")
        return (f"Why {spelled(n)}: of {tried} groups, {by} is smallest for this number.",)
    fewer = [row for row in rows if int(row["n_groups"]) < n]
    more = [row for row in rows if int(row["n_groups"]) > n]
    said = [_compared(fewer[-1], chosen)] if fewer else []
    if more:
        said.append(_more(chosen, more))
    elif fewer:
        said.append("more were not tried, and might do better")
    return (f"Why {spelled(n)}: of {tried} groups, agents who were held out decide; {', and '.join(said)}.",)


def _compared(row: Mapping[str, Any], chosen: Mapping[str, Any]) -> str:
    times = times_as_probable(float(row["validation"]) - float(chosen["validation"]))
    return f"with {spelled(int(row['n_groups']))}, what they say is {times} times as probable"


def _more(chosen: Mapping[str, Any], more: Sequence[Mapping[str, Any]]) -> str:
    best = max(more, key=lambda row: float(row["validation"]))
    gain = float(best["validation"]) - float(chosen["validation"])
    if gain <= 0.0:
        return "with more groups it is no more probable"
    times, error = times_as_probable(gain), chosen.get("difference_error")
    said = f"with {spelled(int(best['n_groups']))}, {times} times"
    if error is not None and gain <= float(error):
        return f"{said}, which is within one standard error, so that the smaller number is taken"
    chance = error is None or gain <= CLEARLY * float(error)
    return f"{said}{', which may be chance' if chance else ''}"


def number_table(rows: Rows) -> Table:
    """Put all numbers of groups that were tried side by side."""
    held_out = bool(rows) and "validation" in rows[0]
    criterion = next((name for name in CRITERIA if rows and name in rows[0]), "")
    names = (
        dict(HELD_OUT) if held_out else {**CRITERION, **({criterion: criterion.upper()} if criterion else {})}
    )
    kept = {name: title for name, title in names.items() if rows and name in rows[0]}
    best = max((_value(row, "validation") for row in rows), default=math.nan)
    told = []
    for row in rows:
        is_best = held_out and _value(row, "validation") == best
        hidden = ("difference", "difference_error") if is_best else ()
        cells = ["" if name in hidden else _written(row.get(name)) for name in kept]
        remarks = ["best"] * is_best + ["chosen"] * bool(row.get("chosen"))
        told.append((str(row["n_groups"]), *cells, ", ".join(remarks)))
    note = NATS if held_out else SMALL_IS_GOOD.format(name=criterion.upper()) if criterion else ""
    return Table(
        "What the number of groups was chosen by", ("groups", *kept.values(), "remark"), tuple(told), note
    )


def chosen_by(context: Context, n_groups: int) -> list[Block]:
    """Show what the number of groups was chosen by, or say who chose it."""
    rows, n = context.about.get("selection", ()), count_of(n_groups, "group")
    if not rows and "chosen" in context.about:
        return [Paragraph(f"permix fit auto took {n}, by the part of the data on which it compared models.")]
    if not rows:
        return [
            Paragraph(
                f"You asked for {n}. --select 1-10, instead of -k, lets agents who are held out decide."
            )
        ]
    return [*map(Paragraph, map(capital, number_sentences(context.about))), number_table(rows)]


def _value(row: Mapping[str, Any], name: str) -> float:
    value = row.get(name)
    return math.nan if value is None else float(value)


def _written(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4f}" if abs(value) < 100.0 else number(value)
    return number(value) if isinstance(value, int) or value is None else str(value)
