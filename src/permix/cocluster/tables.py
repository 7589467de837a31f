"""How a co-clustering, or an ensemble of them, is shown."""

from __future__ import annotations

from typing import Any

import numpy as np

from permix.cli import fit_tables
from permix.cli.output import cell_text, count_of, print_table, say, terminal_width
from permix.cocluster.cells.families import CategoricalCells, CellFamily
from permix.cocluster.ensemble import EnsembleFit
from permix.cocluster.fit import BlockFit, CoClusterFit
from permix.cocluster.predict import BlockPredictions, fitted_codes, perplexity_of
from permix.cocluster.results import SIDES, all_rows, groups_of, number_probabilities
from permix.cocluster.simple import simple_predictives
from permix.data.attributes import in_short, item_labels
from permix.data.cells import Cells
from permix.data.labels import Array

# A terminal shows at most so many groups of rows, or so many blocks of nested cuts.
MAX_ROWS = 30
CELL_WIDTH = 12
# Of so many levels that are text all shares are shown, of more the most frequent one.
SHARES_SHOWN = 3
# Blocks with fewer filled cells than this are marked; one without any has nothing to show.
FEW_CELLS, NOTHING = 5, "–"
# Names of the members of a group take at most so much room.
MEMBERS_WIDTH = 70
# Texts shown of each group of columns.
MAX_TEXTS, MOST_TEXT = 8, 160
PRIORS = {
    "mfm": "a grid, mixtures of finite mixtures",
    "dp": "a grid, Dirichlet processes",
    "dirichlet": "a grid, finite Dirichlet",
    "mondrian": "nested cuts, Mondrian process",
}


def report(fit: BlockFit) -> dict[str, Any]:
    """Everything ``summary`` shows, as plain values."""
    draws = fit.draws.arrays
    report: dict[str, Any] = {
        "model": fit.model,
        "prior": fit.settings.prior,
        "rows": all_rows(fit),
        "columns": fit.shape[1],
        **fit_tables.chains_report(fit.draws),
        "interrupted": fit.interrupted,
        "loss": fit.settings.loss,
    }
    if isinstance(fit, EnsembleFit):
        report["bases"] = int(fit.bases.n_bases)
    if isinstance(fit, CoClusterFit):
        report["membership"] = fit.settings.membership
    for what in SIDES:
        found = groups_of(fit, what)
        report |= {
            f"{what}_groups": len(found.sizes),
            f"{what}_group_sizes": found.sizes,
            f"{what}_group_placed": found.n_placed,
            f"{what}_group_members": found.members,
            f"{what}_group_how_sure": found.group_how_sure,
            f"{what}_group_found_in_chains": found.recurrence.n_chains.tolist(),
            f"{what}_group_agreement": found.recurrence.agreement.tolist(),
            f"posterior_number_of_{what}_groups": fit_tables.posterior_of_number(draws[f"n_{what}_groups"]),
        }
        if fit.matrix is not None and not found.placed.all():
            lines = fit.matrix.by_row if what == "row" else fit.matrix.by_column
            cells = np.diff(lines.starts)
            report[f"median_cells_of_{what}s"] = {
                "placed": float(np.median(cells[found.placed])) if found.placed.any() else None,
                "unsure": float(np.median(cells[~found.placed])),
            }
        if fit.settings.prior == "mfm":
            # A group may exist and have no row: of the number of all groups, which no draw holds.
            shares = number_probabilities(fit, what)
            report[f"probabilities_of_number_of_all_{what}_groups"] = shares.tolist()
    report["column_group_texts"] = _texts(fit)
    report["posterior_number_of_blocks"] = fit_tables.posterior_of_number(draws["n_blocks"])
    report["blocks"] = len(np.unique(fit.blocks.table))
    report["block_table"] = fit.blocks.table.tolist()
    report["log_likelihood"] = fit.log_likelihood
    if fit.tree is not None:
        axis, cuts, times = fit.tree.to_preorder()
        report["budget"] = float(fit.settings.budget)
        report["tree"] = {"axis": axis.tolist(), "cut": cuts.tolist(), "time": times.tolist()}
    if fit.matrix is not None:
        report |= {
            "family": fit.family.name,
            "levels": list(getattr(fit.family, "levels", None) or []),
            "cells": fit.matrix.n_cells,
            "block_cells": fit.sums.n.tolist(),
            "block_parameters": {name: values.tolist() for name, values in fit.block_parameters.items()},
            "block_values": _values(fit),
            "pseudo_count": fit.family.pseudo_count,
        }
        if isinstance(fit.family, CategoricalCells):
            report["block_shares"] = _plain(fit.family.shares(*fit.sums))
    if fit.held_out is not None:
        share = fit.held_out.n_cells / (fit.held_out.n_cells + fit.known_cells.n_cells)
        report["held_out"] = {"share": share, **held_out_report(fit, fit.held_out)}
    return report


def held_out_report(fit: BlockFit, held_out: Cells, score: float | None = None) -> dict[str, Any]:
    """How well cells were predicted that the fit did not see; ``score`` where it is known already."""
    if score is None:
        score = BlockPredictions(fit).score_cells(held_out)
    cells, codes = fitted_codes(fit, held_out)
    asked = (cells.rows, cells.columns)
    simple = simple_predictives(fit.known_matrix)
    report: dict[str, Any] = {
        "cells": held_out.n_cells,
        f"mean_{fit.family.log_name}": score,
        "perplexity": perplexity_of(score),
        **measures(fit.family, fit.predictive.values(*asked), cells.values, codes),
        "baselines": {
            name: {
                "perplexity": perplexity_of(float(one.log_probability(*asked, codes).mean())),
                **measures(one.family, one.values(*asked), cells.values, codes),
            }
            for name, one in simple.items()
        },
    }
    if isinstance(fit, EnsembleFit):
        report |= {
            "averaged_bases_perplexity": perplexity_of(fit.averaged_score(held_out)),
            "base_perplexities": [perplexity_of(each) for each in fit.base_scores(held_out)],
        }
    return report


def measures(family: CellFamily, said: Array, values: Array, codes: Array) -> dict[str, float]:
    """Return how far predictions are off: root mean squared error of numbers, accuracy of levels.

    ``said`` has the probability of every level, or the mean, of each cell.
    """
    found = {}
    expected = said[:, 0]
    if isinstance(family, CategoricalCells):
        found["accuracy"] = float((said.argmax(axis=1) == codes).mean())
        if not family.levels_are_numbers:
            return found
        expected = said @ np.array(family.levels, dtype=np.float64)
    return {"rmse": float(np.sqrt(np.mean((expected - values.astype(np.float64)) ** 2))), **found}


def _texts(fit: BlockFit) -> list[list[str]]:
    """Return columns with their whole texts, by group; nothing where columns have none."""
    if "text" not in fit.known.items or fit.cells is None:
        return []
    labels = fit.labels("column")
    texts = item_labels([fit.cells.column_name(at) for at in range(len(labels))], fit.known.items, most=10**6)
    return [[texts[at] for at in np.flatnonzero(labels == k)] for k in range(int(labels.max()) + 1)]


def _values(fit: BlockFit) -> list[Any]:
    """One value a block, of its cells as they are: their mean, or the most frequent level that is text."""
    family = fit.family
    if isinstance(family, CategoricalCells) and not family.levels_are_numbers:
        levels, (n, sums) = list(family.levels or ()), fit.sums
        return [
            levels[best] if cells else None
            for best, cells in zip(sums.argmax(axis=1), n.tolist(), strict=True)
        ]
    values: list[Any] = _plain(family.observed_means(*fit.sums))
    return values


def _plain(numbers: Array) -> Any:
    """Return a list, or list of lists, with None for what is not a number, as JSON has it."""
    plain = numbers.astype(object)
    plain[np.isnan(numbers)] = None
    return plain.tolist()


def show(report: dict[str, Any], title: str) -> None:
    """Tables for people."""
    filled = ""
    if "cells" in report:
        share = report["cells"] / (report["rows"] * report["columns"])
        filled = f", {report['cells']:,} cells filled ({100 * share:.3g}%), {report['family']} family"
    ensemble = f"consensus of {report['bases']} co-clusterings, " if "bases" in report else ""
    mixed = ", mixed membership" if report.get("membership") == "mixed" else ""
    names = {"groups of rows": "row_groups", "groups of columns": "column_groups", "blocks": "blocks"}
    numbers = [
        [what, *fit_tables.number_interval(report[f"posterior_number_of_{name}"]), report[name]]
        for what, name in names.items()
    ]
    print_table(
        f"{title}: {count_of(report['rows'], 'row')}, {count_of(report['columns'], 'column')}{filled}; "
        f"{ensemble}{PRIORS[report['prior']]}{mixed}",
        ["number of", "from", "median", "to", "shown"],
        numbers,
    )
    nested = "tree" in report
    shown = "is the draw nearest to all others" if nested else "is the grid nearest to all draws"
    loss = fit_tables.LOSSES[report["loss"]]
    say(f"What is shown {shown} (least expected {loss}); intervals hold 90% of the draws.")
    unsure = [what for what in SIDES if f"median_cells_of_{what}s" in report]
    for what in unsure:
        _print_unsure(report, what)
    if any(n < low for _, low, _, _, n in numbers):
        say("It has fewer groups than most draws, whose smallest groups change from draw to draw.")
    print()
    for what in SIDES:
        _print_groups(report, what)
    if report["column_group_texts"]:
        _print_texts(report)
    if "block_values" in report:
        (_print_nested if nested else _print_grid)(report)
    fit_tables.print_chains(report)
    if "held_out" in report:
        _print_held_out(report["held_out"])


def _print_groups(report: dict[str, Any], what: str) -> None:
    sizes, sure = report[f"{what}_group_sizes"], report[f"{what}_group_how_sure"]
    width = min(terminal_width() - 48, MEMBERS_WIDTH)
    found_in = [fit_tables.found_in(n_chains, report) for n_chains in report[f"{what}_group_found_in_chains"]]
    placed = report[f"{what}_group_placed"]
    some = placed != sizes
    rows = []
    for k, size in enumerate(sizes[:MAX_ROWS]):
        members = report[f"{what}_group_members"][k]
        names = first_names(members[: placed[k]] or members, width - 8 * some)
        counts = [placed[k], size - placed[k]] if some else [size]
        rows.append([k + 1, *counts, f"{sure[k]:.2f}", found_in[k], names])
    counted = ["placed", "unsure"] if some else [f"{what}s"]
    columns = ["group", *counted, "how sure", "found in", "which"]
    print_table(f"Groups of {what}s{_first(sizes)}", columns, rows)


def _print_texts(report: dict[str, Any]) -> None:
    """Write columns that have texts one below the other, as much of each as fits."""
    width = max(min(terminal_width(), MOST_TEXT) - len("group  "), 20)
    rows = []
    for k, members in enumerate(report["column_group_texts"][:MAX_ROWS]):
        rows += [[k + 1, in_short(name, width)] for name in members[:MAX_TEXTS]]
        if len(members) > MAX_TEXTS:
            rows.append([k + 1, f"… {len(members) - MAX_TEXTS} more"])
    print_table("Columns by group", ["group", "column"], rows)


def _print_unsure(report: dict[str, Any], what: str) -> None:
    """Say how many could be in several groups, and why."""
    n, cells = sum(report[f"{what}_group_sizes"]), report[f"median_cells_of_{what}s"]
    n_unsure = n - sum(report[f"{what}_group_placed"])
    are, them, they = ("is", "it", "it has") if n_unsure == 1 else ("are", "them", "they have")
    middle = "" if n_unsure == 1 else " in the median"
    if cells["placed"] is not None:
        middle += f", the others {cells['placed']:g}{' in the median' if n_unsure == 1 else ''}"
    say(
        f"{n_unsure:,} of {n:,} {what}s {are} unsure: no group has {them} in most draws ({they} "
        f"{count_of_cells(cells['unsure'])}{middle}). Groups were found without {them}."
    )


def _first(listed: list[Any]) -> str:
    """Say that not all are shown."""
    return f", the first {MAX_ROWS} of {len(listed)}; --json shows all" if len(listed) > MAX_ROWS else ""


def first_names(names: list[str], width: int) -> str:
    """As many names as fit, at least one.

    Examples
    --------
    >>> first_names(["tea", "milk", "coffee"], 10)
    'tea, milk, …'
    """
    text = names[0]
    for name in names[1:]:
        if len(text) + len(name) + 2 > width:
            return f"{text}, …"
        text += f", {name}"
    return text


def count_of_cells(n: float) -> str:
    """Say how many cells, which may be a half more: medians are.

    Examples
    --------
    >>> count_of_cells(1.0), count_of_cells(2.5)
    ('1 cell', '2.5 cells')
    """
    return f"{n:g} cell" if n == 1 else f"{n:g} cells"


def shown_blocks(report: dict[str, Any]) -> list[Any]:
    """Return what each block is shown by: a mean, shares of few levels, or the most frequent of many.

    Examples
    --------
    >>> levels = ["agree", "disagree", "pass"]
    >>> of_two = {"levels": levels, "block_cells": [8, 0], "block_shares": [[0.5, 0.125, 0.375], [None] * 3]}
    >>> shown_blocks({**of_two, "block_values": ["agree", None]})
    ['50/12/38', '–']
    """
    values, n_levels = report["block_values"], len(report["levels"])
    if not _is_text(report):
        return [NOTHING if value is None else value for value in values]
    shown = []
    for value, shares in zip(values, report["block_shares"], strict=True):
        if value is None:
            shown.append(NOTHING)
        elif n_levels <= SHARES_SHOWN:
            shown.append("/".join(f"{100 * share:.0f}" for share in shares))
        else:
            shown.append(f"{value} ({100 * max(shares):.0f}%)")
    return shown


def _is_text(report: dict[str, Any]) -> bool:
    return any(isinstance(level, str) for level in report["levels"])


def _print_grid(report: dict[str, Any]) -> None:
    """Write the value of every block, groups of rows below each other."""
    table, values = report["block_table"], shown_blocks(report)
    few = [0 < n < FEW_CELLS for n in report["block_cells"]]
    values = [f"({cell_text(value)})" if small else value for value, small in zip(values, few, strict=True)]
    n_columns = max(1, min(len(table[0]), (terminal_width() - 12) // CELL_WIDTH))
    n_rows = min(len(table), MAX_ROWS)
    some = "" if (n_rows, n_columns) == (len(table), len(table[0])) else "; --json shows all"
    print_table(
        f"Blocks: {_meaning(report)}, groups of rows by groups of columns{some}",
        ["rows \\ columns", *(str(j + 1) for j in range(n_columns))],
        [[str(i + 1), *(values[table[i][j]] for j in range(n_columns))] for i in range(n_rows)],
    )
    _print_legend(report, any(few))


def _print_nested(report: dict[str, Any]) -> None:
    """Write the blocks, those with most cells first, and which groups meet in each."""
    table, values, cells = np.array(report["block_table"]), shown_blocks(report), report["block_cells"]
    shown = [block for block in np.argsort(-np.array(cells), kind="stable") if np.any(table == block)]
    rows = []
    for block in shown[:MAX_ROWS]:
        groups = [_range(lines) for lines in np.nonzero(table == block)]
        rows.append([int(block) + 1, *groups, cells[block], values[block]])
    print_table(
        f"Blocks, by their filled cells{_first(shown)}",
        ["block", "groups of rows", "groups of columns", "cells", _meaning(report)],
        rows,
    )
    _print_legend(report, False)


def _range(numbers: Array) -> str:
    first, last = int(numbers.min()) + 1, int(numbers.max()) + 1
    return str(first) if first == last else f"{first}–{last}"


def _meaning(report: dict[str, Any]) -> str:
    if report["family"] == "bernoulli":
        return "share of 1"
    if not _is_text(report):
        return "mean"
    if len(report["levels"]) <= SHARES_SHOWN:
        return f"percent {' / '.join(map(str, report['levels']))}"
    return "most frequent level (percent)"


def _print_legend(report: dict[str, Any], few: bool) -> None:
    """Say what the numbers are, and what predictions make of them."""
    small = f"; in parentheses, of fewer than {FEW_CELLS}" if few else ""
    empty = f"; {NOTHING}: of none" if 0 in report["block_cells"] else ""
    each = " at every level" if report["levels"] else ""
    worth = float(f"{report['pseudo_count']:.2g}")
    prior = f"a prior worth {count_of_cells(worth)}{each}"
    say(f"Of the filled cells as they are{small}{empty}. Predictions pull them towards {prior}.")
    print()


def _print_held_out(held_out: dict[str, Any]) -> None:
    what = "density" if "mean_log_density" in held_out else "probability"
    share = f"{100 * held_out['share']:.3g}%"
    say(
        f"held out: {held_out['cells']:,} cells ({share}), perplexity {held_out['perplexity']:.4f} (exp of "
        f"minus the mean log {what}, {held_out[f'mean_log_{what}']:.4f}; averaged over draws before the "
        "logarithm)"
    )
    names = {"rmse": "RMSE", "accuracy": "accuracy", "perplexity": "perplexity"}
    shown = [name for name in names if name in held_out]
    rows = [["this model", *(held_out[name] for name in shown)]]
    rows += [
        [f"{base} (baseline)", *(of[name] for name in shown)] for base, of in held_out["baselines"].items()
    ]
    print_table("Held-out cells", ["model", *(names[name] for name in shown)], rows)
    if "base_perplexities" in held_out:
        each = ", ".join(f"{value:.4f}" for value in held_out["base_perplexities"])
        print(f"  the bases averaged cell by cell: {held_out['averaged_bases_perplexity']:.4f}; each: {each}")
    say(
        f"The model has not seen this {share} of the cells: permix predict lists them among the missing "
        "ones. The file of the model does not keep this result."
    )
