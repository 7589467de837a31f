"""What ``permix fit mallows`` does, and how a mixture of Mallows models is shown."""

from __future__ import annotations

import math
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import typer

from permix.cli.inspect import ReadOptions, check_model_name, check_picture, check_targets
from permix.cli.output import count_of, print_json, print_table, running_fit

if TYPE_CHECKING:
    from permix.data import Preferences
    from permix.models.angle_fit import AngleFit
    from permix.models.kernel_density import KernelDensity
    from permix.models.mallows_fit import MallowsFit
    from permix.models.select_components import ComponentSelection

# Room for the center of a component where there is no terminal.
PIPE_WIDTH = 320
# So many of the dispersions that cross-validation tried are shown.
MAX_TRIED = 12
ORDER = " ≻ "


class RankTargets(NamedTuple):
    """The files a fit writes."""

    output: Path
    labels: Path | None
    picture: Path | None
    force: bool


class HowMany(NamedTuple):
    """How many components: so many, or chosen among several; None means not given."""

    components: int | None
    select: str | None
    rule: str | None
    folds: int | None
    criterion: str | None = None

    def candidates(self) -> list[int] | None:
        """Return the numbers to choose from, if it is to be chosen."""
        if self.components is not None and self.select is not None:
            raise typer.BadParameter(
                "-k and --select exclude each other: -k says how many components, with --select the data do"
            )
        if self.select is not None:
            return numbers_of_components(self.select)
        given = (("--rule", self.rule), ("--folds", self.folds), ("--criterion", self.criterion))
        for option, value in given:
            if value is not None:
                raise typer.BadParameter(f"{option} belongs to --select")
        if self.components is None:
            raise typer.BadParameter(
                "say how many components with -k, or let the data choose with --select 1-10"
            )
        return None


def numbers_of_components(text: str) -> list[int]:
    """Read what ``--select`` asks for: ``1-10``, ``2,4,8`` or both."""
    numbers: set[int] = set()
    try:
        for part in text.split(","):
            first, dash, last = part.partition("-")
            low, high = int(first), int(last if dash else first)
            if not 1 <= low <= high:
                raise ValueError
            numbers.update(range(low, high + 1))
    except ValueError:
        raise typer.BadParameter(
            f"--select takes numbers of components such as 1-10 or 2,4,8, not {text!r}"
        ) from None
    return sorted(numbers)


def run_fit_mallows(
    votes_file: ReadOptions,
    targets: RankTargets,
    how_many: HowMany,
    choices: dict[str, Any],
    quiet: bool,
    as_json: bool,
) -> None:
    """Fit, save, and show what was found."""
    candidates = how_many.candidates()
    votes_file.refuse_keep()
    check_model_name(targets.output)
    check_picture(targets.picture)
    curve = None
    if candidates is not None and targets.picture is not None:
        picture = targets.picture
        curve = picture.with_name(f"{picture.stem}-selection{picture.suffix}")
    wanted = [target for target in (*targets[:3], curve) if target is not None]
    check_targets(wanted, [votes_file.file], targets.force)

    from permix.models.mallows_files import save_mallows
    from permix.models.preference_input import as_preferences

    votes = as_preferences(votes_file.read())
    choices = {**choices, "progress": False if quiet or as_json else None}
    with running_fit():
        fit, selection = _fitted(votes, how_many, candidates, choices)
    if selection is not None and curve is not None:
        from permix.plots import component_choice

        component_choice(selection, curve)
    if fit is None:
        assert selection is not None
        if as_json:
            print_json({"file": None, "selection": selection_report(selection)})
        else:
            print_selection(selection)
        print(
            f"permix: interrupted before a model was fitted to all; -k {selection.chosen} fits one",
            file=sys.stderr,
        )
        raise typer.Exit(130)
    save_mallows(fit, targets.output)
    partial = selection is not None and selection.interrupted
    if targets.labels is not None and not partial:
        write_labels(fit, votes_file.agents_of(votes), targets.labels)
    if targets.picture is not None:
        from permix.plots import overview

        overview(fit, targets.picture)
    report = mallows_report(fit)
    if as_json:
        extra = {} if selection is None else {"selection": selection_report(selection)}
        print_json({"file": str(targets.output), **report, **extra})
    else:
        if selection is not None:
            print_selection(selection)
        print_mallows(report, targets.output.name)
        if curve is not None:
            print(f"{curve}: log-likelihood by number of components")
    if partial or fit.interrupted:
        to_whom = ", fitted to the agents that were not held out" if partial else ""
        print(f"permix: interrupted; {targets.output} holds the best so far{to_whom}", file=sys.stderr)
        if partial and targets.labels is not None:
            print(f"permix: {targets.labels} needs a fit to all agents and is not written", file=sys.stderr)
        raise typer.Exit(130)


def _fitted(
    votes: Preferences, how_many: HowMany, candidates: list[int] | None, choices: dict[str, Any]
) -> tuple[MallowsFit | None, ComponentSelection | None]:
    """Fit so many components, or as many as predict well; no fit if cross-validation was interrupted."""
    if candidates is None:
        from permix.models.mallows_fit import MallowsSettings, fit_mallows

        return fit_mallows(votes, MallowsSettings(n_components=how_many.components or 1, **choices)), None

    from permix.models.select_components import select_components

    rule: Any = str(how_many.rule or "one-se")
    selection = select_components(votes, candidates, rule=rule, n_folds=how_many.folds, refit=True, **choices)
    return selection.fit, selection


def selection_report(selection: ComponentSelection) -> dict[str, Any]:
    """Everything about the choice of a number of components, as plain values."""
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
    """Show every number of components with what it was judged by: people held out, or a criterion."""
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
    off = _normalizer_errors(selection)
    print_table(
        f"Log-likelihood of an agent, {who}",
        ["components", "fitted", "held out", "difference to best", "its error", *off.header, "remark"],
        [
            [
                number,
                f"{train:.4f}",
                f"{score:.4f}",
                "" if number == selection.best else f"{gap:.4f}",
                "" if number == selection.best or math.isnan(error) else f"{error:.4f}",
                *off.cells[row],
                _remark(selection, number),
            ]
            for row, (number, train, score, gap, error) in enumerate(rows)
        ],
    )
    if selection.chosen != selection.best:
        print(
            "chosen: the fewest components that are within one standard error of the best; "
            f"--rule best takes {selection.best}\n"
        )


def _print_criterion(selection: ComponentSelection) -> None:
    name = selection.criterion
    columns = ("n_components", "log_likelihood", "parameters", name)
    rows = zip(*(selection.table[column].tolist() for column in columns), strict=True)
    effective = "effective parameters" if name in ("dic", "waic") else "parameters"
    off = _normalizer_errors(selection)
    print_table(
        f"{name.upper()} of {count_of(selection.n_train, 'agent')}, small = good",
        ["components", "log-likelihood", effective, name.upper(), *off.header, "remark"],
        [
            [
                number,
                rounded(total, 2),
                rounded(parameters, 1),
                rounded(value, 1),
                *off.cells[row],
                _remark(selection, number),
            ]
            for row, (number, total, parameters, value) in enumerate(rows)
        ],
    )


class _NormalizerErrors(NamedTuple):
    """A column with the errors of an approximate normaliser; none where there is none."""

    header: list[str]
    cells: list[list[str]]


def _normalizer_errors(selection: ComponentSelection) -> _NormalizerErrors:
    table = selection.table
    if "normalizer" not in table or not (table["normalizer"] == "vmf").any():
        return _NormalizerErrors([], [[] for _ in range(len(table))])
    cells = [["" if math.isnan(error) else f"{error:+.2g}"] for error in table["normalizer_error"]]
    return _NormalizerErrors(["normaliser off by"], cells)


def _remark(selection: ComponentSelection, number: int) -> str:
    said = ["best"] if number == selection.best else []
    if number == selection.one_standard_error != selection.best:
        said.append("fewest within one standard error of the best")
    if number == selection.chosen:
        said.append("chosen")
    return ", ".join(said)


def mallows_report(fit: MallowsFit) -> dict[str, Any]:
    """Everything ``summary`` shows of a mixture of Mallows models, as plain values."""
    from permix.models.mallows_results import climbing_iterations, remarks, starts_near_the_best

    mixture, total = fit.components, fit.log_likelihood
    n_agents = int(fit.counts.sum())
    agents = np.bincount(fit.labels, weights=fit.counts, minlength=mixture.n_components)
    return {
        "model": "MallowsMixture",
        "agents": n_agents,
        "rows": len(fit.counts),
        "number_of_items": mixture.n_items,
        "items": [str(item) for item in mixture.items],
        "components": [
            {
                "weight": float(mixture.weights[k]),
                "agents": int(agents[k]),
                "dispersion": float(mixture.dispersions[k]),
                "expected_distance": mixture.component(k).expected_distance(),
                "center": [str(mixture.items[item]) for item in mixture.centers[k]],
            }
            for k in range(mixture.n_components)
        ],
        "log_likelihood": float(total),
        "log_likelihood_standard_error": total.standard_error,
        "log_likelihood_per_agent": float(total) / n_agents,
        "converged": fit.converged,
        "interrupted": fit.interrupted,
        "iterations": climbing_iterations(fit),
        "restart_log_likelihoods": fit.restart_log_likelihoods.tolist(),
        "starts_within_1_of_best": starts_near_the_best(fit),
        "remarks": remarks(fit),
    }


def print_mallows(report: dict[str, Any], title: str) -> None:
    """Tables for people."""
    parts = report["components"]
    columns = ("weight", "agents", "dispersion", "expected_distance")
    print_table(
        f"{title}: {count_of(report['agents'], 'agent')}, {count_of(report['number_of_items'], 'item')}, "
        f"Mallows mixture of {count_of(len(parts), 'component')}",
        ["component", *(column.replace("_", " ") for column in columns)],
        [[k + 1, *(part[column] for column in columns)] for k, part in enumerate(parts)],
    )
    width = terminal_width() - len("component  ")
    centers = [fitting(part["center"], width) for part in parts]
    print_table(
        "Centers, best first", ["component", "center"], [[k + 1, text] for k, text in enumerate(centers)]
    )
    if any(text != ORDER.join(part["center"]) for text, part in zip(centers, parts, strict=True)):
        print("centers are cut to the width of the terminal; --json shows all\n")
    for remark in report["remarks"]:
        print(f"note: {remark}")
    if report["remarks"]:
        print()
    most = report["number_of_items"] * (report["number_of_items"] - 1) // 2
    print(
        "agents: those for whom the component is the most probable one\n"
        "dispersion: from 0, all rank as the center does, to 1, no agreement\n"
        f"expected distance: how many of {count_of(most, 'pair')} of items someone ranks unlike the center\n"
    )
    error = report["log_likelihood_standard_error"]
    restarts = report["restart_log_likelihoods"]
    total, each = rounded(report["log_likelihood"], 2), rounded(report["log_likelihood_per_agent"], 4)
    print(f"log-likelihood {total}{f' ± {error:.2g}' if error > 0 else ''} ({each} an agent)")
    if len(restarts) > 1:
        near = report["starts_within_1_of_best"]
        alone = "; more --restarts may find a better one" if near == 1 else ""
        print(f"{near} of {len(restarts)} starts came within 1 of the best log-likelihood{alone}")
    iterations = count_of(report["iterations"], "iteration")
    if report["interrupted"]:
        print(f"interrupted after {iterations}")
    elif report["converged"]:
        print(f"converged after {iterations}")
    else:
        print(f"not converged after {iterations}; a larger --max-iter goes further")


def kernel_report(fit: KernelDensity) -> dict[str, Any]:
    """Everything ``summary`` shows of a kernel estimate, as plain values."""
    from permix.distributions import Mallows

    rows = fit.preferences
    return {
        "model": "MallowsKDE",
        "agents": int(rows.n_agents),
        "rows": len(rows),
        "number_of_items": rows.n_items,
        "items": [str(item) for item in rows.items],
        "dispersion": float(fit.dispersion),
        "expected_distance": Mallows(range(rows.n_items), fit.dispersion).expected_distance(),
        "closed_form": fit.is_exact,
        "interrupted": fit.interrupted,
        "cross_validation": [
            {"dispersion": dispersion, "log_density_per_agent": value}
            for dispersion, value in fit.tried.tolist()
        ],
    }


def print_kernel(report: dict[str, Any], title: str) -> None:
    """Tables for people."""
    agents, items = count_of(report["agents"], "agent"), count_of(report["number_of_items"], "item")
    names = ("dispersion", "expected_distance", "closed_form", "interrupted")
    print_table(
        f"{title}: Mallows kernel estimate, {agents}, {items}",
        ["", ""],
        [[name.replace("_", " "), _cell(report[name])] for name in names],
    )
    tried = report["cross_validation"]
    if tried:
        values = [row["log_density_per_agent"] for row in tried]
        best = int(np.argmax(values))
        shown = _thinned([row["dispersion"] for row in tried], best)
        some = f", {len(shown)} of the {len(tried)} dispersions tried" if len(shown) < len(tried) else ""
        print_table(
            f"Log-density of an agent left out{some}",
            ["dispersion", "log-density", "remark"],
            [[tried[i]["dispersion"], values[i], "best" if i == best else ""] for i in shown],
        )
        if some:
            print("--json shows all")


def _thinned(dispersions: list[float], best: int) -> list[int]:
    """About a dozen of the dispersions in increasing order: the best, its neighbours, an even choice else."""
    order = sorted(range(len(dispersions)), key=dispersions.__getitem__)
    if len(order) <= MAX_TRIED:
        return order
    place = order.index(best)
    near = range(max(place - 1, 0), min(place + 2, len(order)))
    even = np.linspace(0, len(order) - 1, MAX_TRIED - 3).round().astype(int).tolist()
    return [order[i] for i in sorted({*near, *even})]


def rounded(value: float, digits: int) -> str:
    """Write a number with so many digits; what rounds to zero has no sign."""
    return f"{round(value, digits) + 0.0:,.{digits}f}"


def _cell(value: bool | float) -> str:
    return ("yes" if value else "no") if isinstance(value, bool) else f"{value:.4g}"


def terminal_width() -> int:
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else PIPE_WIDTH


def fitting(names: Sequence[str], width: int) -> str:
    """All names, best first, or the first ones and the last, as many as fit; long names are cut."""
    whole = ORDER.join(names)
    if len(whole) <= width or len(names) < 3:
        return whole
    gap = f"{ORDER}… {len(names) - 2} more …{ORDER}"
    most = max((width - len(gap)) // 2, 4)  # so that the first and the last fit in any case
    names = [name if len(name) <= most else f"{name[: most - 1]}…" for name in names]
    cut = f"{names[0]}{gap}{names[-1]}"
    for shown in range(2, len(names) - 1):
        head = ORDER.join(names[:shown])
        longer = f"{head}{ORDER}… {len(names) - shown - 1} more …{ORDER}{names[-1]}"
        if len(longer) > width:
            break
        cut = longer
    return cut


def write_labels(fit: MallowsFit | AngleFit, agents: list[Any], path: Path) -> None:
    """Write each row's most probable component and that probability."""
    import pandas as pd

    from permix.files import atomic_writer

    columns: dict[str, Any] = {"agent": agents}
    if np.any(fit.counts != 1):
        columns["count"] = fit.counts
    columns |= {
        "component": fit.labels + 1,
        "probability": np.round(fit.probabilities.max(axis=1), 6),
    }
    with atomic_writer(path) as handle:
        pd.DataFrame(columns).to_csv(handle, index=False)
