"""How the choice of a number of groups is shown: as plain values, and as tables for people."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from permix.cli.output import count_of, print_table, rounded

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
        "table": selection.table.to_dict(orient="records"),
    }


def print_selection(selection: ComponentSelection) -> None:
    """Show every number of groups with what it was judged by: people held out, or a criterion."""
    if selection.criterion == "held-out":
        _print_held_out(selection)
    else:
        _print_criterion(selection)


def _print_held_out(selection: ComponentSelection) -> None:
    columns = ("n_components", "train", "validation", "difference", "difference_error")
    rows = zip(*(selection.table[name].tolist() for name in columns), strict=True)
    who = (
        f"each of {selection.n_validation:,} agents held out once, in {selection.n_folds} parts"
        if selection.n_folds > 1
        else f"{selection.n_train:,} fitted and {selection.n_validation:,} held out"
    )
    header, cells = _normalizer_errors(selection)
    print_table(
        f"Log-likelihood of an agent, {who}",
        ["groups", "fitted", "held out", "difference to best", "its error", *header, "remark"],
        [
            [
                number,
                f"{train:.4f}",
                f"{score:.4f}",
                "" if number == selection.best else f"{gap:.4f}",
                "" if number == selection.best or math.isnan(error) else f"{error:.4f}",
                *cells[row],
                _remark(selection, number),
            ]
            for row, (number, train, score, gap, error) in enumerate(rows)
        ],
    )
    if selection.chosen != selection.best:
        print(
            "chosen: the fewest groups that are within one standard error of the best; "
            f"--rule best takes {selection.best}\n"
        )


def _print_criterion(selection: ComponentSelection) -> None:
    name = selection.criterion
    columns = ("n_components", "log_likelihood", "parameters", name)
    rows = zip(*(selection.table[column].tolist() for column in columns), strict=True)
    effective = "effective parameters" if name in ("dic", "waic") else "parameters"
    header, cells = _normalizer_errors(selection)
    print_table(
        f"{name.upper()} of {count_of(selection.n_train, 'agent')}, small = good",
        ["groups", "log-likelihood", effective, name.upper(), *header, "remark"],
        [
            [
                number,
                rounded(total, 2),
                rounded(parameters, 1),
                rounded(value, 1),
                *cells[row],
                _remark(selection, number),
            ]
            for row, (number, total, parameters, value) in enumerate(rows)
        ],
    )


def _normalizer_errors(selection: ComponentSelection) -> tuple[list[str], list[list[str]]]:
    """Header and cells of a column with the errors of an approximate normalizer; none where there is none."""
    table = selection.table
    if "normalizer" not in table or not (table["normalizer"] == "vmf").any():
        return [], [[] for _ in range(len(table))]
    cells = [["" if math.isnan(error) else f"{error:+.2g}"] for error in table["normalizer_error"]]
    return ["normalizer off by"], cells


def _remark(selection: ComponentSelection, number: int) -> str:
    said = ["best"] if number == selection.best else []
    if number == selection.one_standard_error != selection.best:
        said.append("fewest within one standard error of the best")
    if number == selection.chosen:
        said.append("chosen")
    return ", ".join(said)
