"""How the choice of a number of groups is shown: as plain values, and as tables for people."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from permix.cli.output import count_of, print_table, rounded, say

if TYPE_CHECKING:
    from permix.selection.select_components import ComponentSelection


def selection_report(selection: ComponentSelection) -> dict[str, Any]:
    """Everything about the choice of a number of groups, as plain values."""
    return {
        "criterion": selection.criterion,
        "best": selection.best,
        "within_one_standard_error": selection.one_standard_error,
        "chosen": selection.chosen,
        "folds": selection.n_folds,
        "agents_fitted": selection.n_train,
        "agents_held_out": selection.n_validation,
        "interrupted": selection.interrupted,
        "not_tried": list(selection.untried),
        "tried_beyond_those_asked_for": selection.n_beyond,
        "best_is_the_largest_tried": selection.at_limit,
        "all_groups_recur": {str(number): recurs for number, recurs in selection.recurs.items()},
        "table": selection.table.to_dict(orient="records"),
    }


def selection_rows(report: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the table as files keep it, from ``selection_report``: plain values, a row for each number."""
    table, recurs = report["table"], report["all_groups_recur"]
    n_asked = len(table) - report["tried_beyond_those_asked_for"]
    return [
        {name: None if value != value else value for name, value in row.items()}  # JSON has no NaN
        | {"chosen": row["n_groups"] == report["chosen"], "asked": at < n_asked}
        | {"all_recur": recurs.get(str(row["n_groups"]))}
        for at, row in enumerate(table)
    ]


def print_selection(selection: ComponentSelection) -> None:
    """Show every number of groups with what it was judged by: people held out, or a criterion."""
    table, name = selection.table, selection.criterion
    shown: dict[str, list[Any]] = {"groups": table["n_groups"].tolist()}
    if name == "held-out":
        who = f"{selection.n_train:,} fitted and {selection.n_validation:,} held out"
        if selection.n_folds > 1:
            who = f"each of {selection.n_validation:,} agents held out once, in {selection.n_folds} parts"
        title = f"Log-likelihood of an agent, {who}"
        others = table["n_groups"] != selection.best
        shown["fitted"] = [f"{value:.4f}" for value in table["train"]]
        shown["held out"] = [f"{value:.4f}" for value in table["validation"]]
        shown["difference"] = _known(table["difference"].where(others), ".4f")
        shown["error"] = _known(table["difference_error"].where(others), ".4f")
    else:
        title = f"{name.upper()} of {count_of(selection.n_train, 'agent')}, small = good"
        effective = "effective parameters" if name in ("dic", "waic") else "parameters"
        shown["log-likelihood"] = [rounded(value, 2) for value in table["log_likelihood"]]
        shown[effective] = [rounded(value, 1) for value in table["parameters"]]
        shown[name.upper()] = [rounded(value, 1) for value in table[name]]
    shown["remark"] = [_remark(selection, number) for number in shown["groups"]]
    print_table(title, list(shown), list(zip(*shown.values(), strict=True)))
    if selection.n_beyond:
        asked = len(shown["groups"]) - selection.n_beyond
        largest, last = shown["groups"][asked - 1], shown["groups"][-1]
        tried = f"{largest + 1}" if last == largest + 1 else f"{largest + 1} to {last}"
        say(f"{largest} groups were the best of those asked for, so {tried} followed")
        print()
    if selection.not_tried:
        say(selection.not_tried)
        print()
    if selection.chosen != selection.best:
        fewest = "the fewest groups that are within one standard error of the best"
        why = "differences are between the same agents, and one of that size may be chance"
        say(f"chosen: {fewest} ({why}); --rule best takes {selection.best}")
        print()


def _known(values: Any, style: str) -> list[str]:
    """Write numbers; nothing for those that are not known."""
    return ["" if math.isnan(value) else format(value, style) for value in values]


def _remark(selection: ComponentSelection, number: int) -> str:
    said = ["best"] if number == selection.best else []
    if number == selection.one_standard_error != selection.best:
        said.append("fewest within one standard error of the best")
    if number == selection.chosen:
        said.append("chosen")
    return ", ".join(said)
