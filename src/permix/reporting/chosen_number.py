"""How a number of groups was chosen: what files keep of it, in the words of reports and of the terminal."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from permix.estimators.baselines import times_as_probable
from permix.estimators.selectable import MOST_LOOKED_AT
from permix.reporting.content import Block, Code, Paragraph, Table
from permix.reporting.context import Context, Rows
from permix.reporting.words import capital, count_of, listed, number, shown, spelled

# Differences of so many standard errors are not put down to chance.
CLEARLY = 2.0
# Smaller differences, in nats of an agent, matter to nobody; errors of fits that are nearly alike are tiny.
MATTERS = 0.005
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
RECUR = {True: "yes", False: "no", None: ""}
LOOKED = (
    "All recur: whether each group is found in every restart that fits as well, each from a beginning of its "
    "own; looked at from the chosen number down to the first where they do, with the seed and settings that "
    f"-k would have, and of more than {MOST_LOOKED_AT:,} agents in a random part of so many."
)
SMALL_IS_GOOD = "The smallest {name} decides: it weighs how probable the data are against the parameters."


def number_sentences(about: Mapping[str, Rows]) -> tuple[str, ...]:
    """Say why there are so many groups; nothing where nobody chose, or the file does not say what."""
    rows = sorted(about.get("selection", ()), key=lambda row: int(row["n_groups"]))
    chosen = next((row for row in rows if row.get("chosen")), None)
    if chosen is None or len(rows) < 2:
        return ()
    n, tried = int(chosen["n_groups"]), f"{rows[0]['n_groups']} to {rows[-1]['n_groups']}"
    followed = _followed(rows)
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
    why = f"Why {spelled(n)}: of {tried} groups, agents who were held out decide; {', and '.join(said)}."
    if followed:
        why = f"{why} {followed}"
    if number_to_print(about) or min(_tied(rows), default=n) >= n:
        return (why,)
    return why, f"{_equally_well(_tied(rows))}."


def number_to_print(about: Mapping[str, Rows]) -> str:
    """Lead to a number of groups that may be printed, where some of the chosen number do not recur.

    Nothing where all do, or where nobody looked.
    """
    rows = sorted(about.get("selection", ()), key=lambda row: int(row["n_groups"]))
    chosen = next((row for row in rows if row.get("chosen")), None)
    if chosen is None or chosen.get("all_recur") is not False:
        return ""
    tied = _tied(rows)
    said = f"{capital(spelled(int(chosen['n_groups'])))} groups "
    said += "predict best" if _is_best(chosen) else "were chosen"
    said += ", but not all of them recur in every restart"
    if len(tied) > 1:
        equally = _equally_well(tied)
        said += f"; {equally[0].lower()}{equally[1:]}"
    recur = [int(row["n_groups"]) for row in rows if row.get("all_recur")]
    if not recur:
        smaller = [row for row in rows if 1 < int(row["n_groups"]) < int(chosen["n_groups"])]
        if not smaller or any(row.get("all_recur") is None for row in smaller):  # stopped on the way
            return f"{said}."
        return f"{said}. Of no smaller number that was tried do all groups recur: do not print a number."
    n = max(recur)
    said += f". Of the smaller numbers tried, {spelled(n)} is the largest whose groups all recurred: print or"
    return f"{said} build on these, which -k {n} finds, instead of --select."


def _with_number(command: str, n: int) -> str:
    """Return the command with a number of groups instead of numbers to choose from."""
    words = shlex.split(command)
    if "--select" not in words:
        return ""
    at = words.index("--select")
    return shlex.join([*words[:at], "-k", str(n), *words[at + 2 :]])


def _is_best(row: Mapping[str, Any]) -> bool:
    return _value(row, "difference") == 0.0


def _tied(rows: Sequence[Mapping[str, Any]]) -> list[int]:
    """Return which numbers predict as well as the best, as far as chance can tell or anybody would notice."""
    return [
        int(row["n_groups"])
        for row in rows
        if -_value(row, "difference") <= max(CLEARLY * _value(row, "difference_error"), MATTERS)
    ]


def _equally_well(tied: Sequence[int]) -> str:
    runs: list[list[int]] = []
    for n in tied:
        if runs and n == runs[-1][-1] + 1:
            runs[-1].append(n)
        else:
            runs.append([n])
    which: list[str] = []
    for run in runs:
        ends = [spelled(n) for n in run]
        which += [f"{ends[0]} to {ends[-1]}"] if len(run) > 2 else ends
    return f"{capital(listed(which))} groups predict equally well, within half a percent or chance"


def _followed(rows: Sequence[Mapping[str, Any]]) -> str:
    """Say that larger numbers were tried than were asked for."""
    asked = [int(row["n_groups"]) for row in rows if row.get("asked")]
    beyond = [int(row["n_groups"]) for row in rows if row.get("asked") is False]
    if not (asked and beyond):
        return ""
    tried = str(beyond[0]) if len(beyond) == 1 else f"{beyond[0]} to {beyond[-1]}"
    numbers = f"{asked[0]} to {asked[-1]}"
    return f"You asked for {numbers}; {asked[-1]} groups were the best of these, so {tried} followed."


def _compared(row: Mapping[str, Any], chosen: Mapping[str, Any]) -> str:
    n = spelled(int(chosen["n_groups"]))
    times = times_as_probable(float(row["validation"]) - float(chosen["validation"]))
    return f"with {spelled(int(row['n_groups']))}, what they say is {times} times as probable as with {n}"


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
    looked = any(row.get("all_recur") is not None for row in rows)
    told = []
    for row in rows:
        is_best = held_out and _value(row, "validation") == best
        hidden = ("difference", "difference_error") if is_best else ()
        cells = ["" if name in hidden else _written(row.get(name)) for name in kept]
        remarks = ["best"] * is_best + ["chosen"] * bool(row.get("chosen"))
        recurs = [RECUR[row.get("all_recur")]] * looked
        told.append((str(row["n_groups"]), *cells, *recurs, ", ".join(remarks)))
    note = NATS if held_out else SMALL_IS_GOOD.format(name=criterion.upper()) if criterion else ""
    if looked:
        note = f"{note} {LOOKED}".strip()
    columns = ("groups", *kept.values(), *(["all recur"] * looked), "remark")
    return Table("What the number of groups was chosen by", columns, tuple(told), note)


def chosen_by(context: Context, n_groups: int) -> list[Block]:
    """Show what the number of groups was chosen by, or say who chose it."""
    rows, n = context.about.get("selection", ()), count_of(n_groups, "group")
    if not rows and "chosen" in context.about:
        return [Paragraph(f"permix fit auto took {n}, by the part of the data on which it compared models.")]
    if not rows:
        return [
            Paragraph(
                f"You asked for {n}. If you have not compared numbers yet, --select 1-10 instead of -k lets "
                "agents who are held out decide."
            )
        ]
    said = [*map(Paragraph, map(capital, number_sentences(context.about)))]
    to_print = number_to_print(context.about)
    recur = [int(row["n_groups"]) for row in rows if row.get("all_recur")]
    command = _with_number(context.facts("run").get("command", ""), max(recur)) if recur else ""
    more = [Paragraph(shown(to_print))] * bool(to_print)
    again = [Code(shown(command), "Groups that all recur")] if to_print and command else []
    return [*more, *again, *said, number_table(rows)]


def _value(row: Mapping[str, Any], name: str) -> float:
    value = row.get(name)
    return math.nan if value is None else float(value)


def _written(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4f}" if abs(value) < 100.0 else number(value)
    return number(value) if isinstance(value, int) or value is None else str(value)
