"""How a comparison of models is shown: as plain values, and as a table for people."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from permix.cli.output import count_of, print_table, rounded, say
from permix.comparison.result import BASELINE, ModelComparison
from permix.estimators.wording import listed

NATS = (
    "score: mean natural logarithm of the probability, in nats; 0.1 more is 10% more probable\n"
    "±: standard error of the difference, which is between the same {unit}s\n"
    "stable: share of the chains, or of the other restarts, that finds the group of {member}, on average"
)


def comparison_report(found: ModelComparison) -> dict[str, Any]:
    """Everything a comparison says, as plain values."""
    return {
        "verdict": found.verdict,
        "best": found.best,
        "as_good_within_error": list(found.tied),
        "best_baseline": found.baseline,
        "better_than_baseline": found.beats_baseline,
        "compared": found.form,
        "all": found.n_all,
        "looked_at": found.n_looked_at,
        "fitted": found.n_fitted,
        "held_out": found.n_held_out,
        "not_scored": found.n_unscored,
        "folds": found.n_folds,
        "folds_asked_for": found.n_folds_asked,
        "interrupted": found.interrupted,
        "models": found.table.reset_index().to_dict(orient="records"),
        "left_out": [{"model": name, "reason": why} for name, why in found.left_out.items()],
        "notes": {name: list(said) for name, said in found.notes.items()},
    }


def print_comparison(report: dict[str, Any], title: str) -> None:
    """Write the verdict, the table, and what should be known about it."""
    unit = _unit(report)
    say(report["verdict"])
    print()
    _print_table(report, title)
    if report["not_scored"]:
        n = count_of(report["not_scored"], f"{unit}")
        say(f"{n} held out, drawn at random, are not scored by any model: it would take one too long")
    for row in report["left_out"]:
        say(f"not compared: {row['model']} {row['reason']}")
    for name, said in report["notes"].items():
        more = f" (and {count_of(len(said) - 1, 'more note')}; --json has all)" if len(said) > 1 else ""
        say(f"note: {name}: {said[0]}{more}")


def print_chosen(said: Sequence[str], report: dict[str, Any] | None, title: str) -> None:
    """Write how a model was chosen: in sentences, then the table that they rest on."""
    for sentence in said:
        say(sentence)
        print()
    if report is None:
        return
    _print_table(report, title)


def _parts(report: dict[str, Any], unit: str) -> str:
    some = report["looked_at"] < report["all"]
    n = (
        f"{report['looked_at']:,} of {count_of(report['all'], unit)}"
        if some
        else count_of(report["all"], unit)
    )
    if report["folds"] == report["folds_asked_for"] > 1:
        return f"{n}, each held out once, in {report['folds']} parts"
    return f"{n}, {report['held_out']:,} of them held out"


def _unit(report: dict[str, Any]) -> str:
    return {"votes": "agent", "matrix": "cell", "table": "row"}[report["compared"]]


def _print_table(report: dict[str, Any], title: str) -> None:
    base, unit = report["best_baseline"], _unit(report)
    columns = ["model", "score", "difference", "±", f"times {base}", "groups", "stable", "seconds"]
    print_table(f"{title}: {_parts(report, unit)}", columns, [_row(row, report) for row in report["models"]])
    for line in NATS.format(unit=unit, member="an agent" if unit == "agent" else "a row").splitlines():
        say(line, "  ")
    if alone := [row["model"] for row in report["models"] if _is_alone(row)]:
        say(f"stable -: {listed(alone)} ran once, or found one group: nothing to compare it with", "  ")


def _is_alone(row: dict[str, Any]) -> bool:
    """Say whether a model has groups, and no other chains or restarts that could find them again."""
    return not math.isnan(row["groups"]) and math.isnan(row["stability"])


def _row(row: dict[str, Any], report: dict[str, Any]) -> list[Any]:
    is_best = row["model"] == report["best"]
    seconds = "" if math.isnan(row["seconds"]) else rounded(row["seconds"], 1)
    return [
        row["model"],
        rounded(row["score"], 4),
        "best" if is_best else rounded(row["difference"], 4),
        "" if is_best else rounded(row["difference_error"], 4),
        "" if row["model"].removesuffix(BASELINE) == report["best_baseline"] else f"{row['times']:.3g}",
        "" if math.isnan(row["groups"]) else f"{row['groups']:g}",
        "" if math.isnan(row["groups"]) else "-" if _is_alone(row) else f"{row['stability']:.0%}",
        f"{seconds} (cut short)" if row["cut_short"] is True else seconds,
    ]
