"""What ``permix fit mallows`` does, and how a mixture of Mallows models is shown."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import typer

from permix.cli.inspect import ReadOptions, check_picture, check_targets
from permix.cli.output import count_of, print_json, print_table

if TYPE_CHECKING:
    from permix.data import Preferences
    from permix.models.kernel_density import KernelDensity
    from permix.models.mallows_fit import MallowsFit
    from permix.models.select_components import ComponentSelection

# Room for the center of a component where there is no terminal.
PIPE_WIDTH = 320


class RankTargets(NamedTuple):
    """The files a fit writes."""

    output: Path
    labels: Path | None
    picture: Path | None
    force: bool


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
    components: int | None,
    select: str | None,
    choices: dict[str, Any],
    quiet: bool,
    as_json: bool,
) -> None:
    """Fit, save, and show what was found."""
    if (components is None) == (select is None):
        raise typer.BadParameter(
            "say how many components with -k, or let the data choose with --select 1-10; one of the two"
        )
    candidates = None if select is None else numbers_of_components(select)
    wanted = [target for target in targets[:3] if target is not None]
    check_targets(wanted, [votes_file.file], targets.force)
    check_picture(targets.picture)

    from permix.models.mallows_files import save_mallows
    from permix.models.preference_input import as_preferences

    votes = as_preferences(votes_file.read())
    choices = {**choices, "progress": False if quiet or as_json else None}
    try:
        fit, selection = _fitted(votes, components, candidates, choices)
    except KeyboardInterrupt:
        print("permix: interrupted before there was anything to keep", file=sys.stderr)
        raise typer.Exit(130) from None
    save_mallows(fit, targets.output)
    partial = selection is not None and selection.interrupted
    if targets.labels is not None and not partial:
        write_labels(fit, votes_file.agents_of(votes), targets.labels)
    if targets.picture is not None:
        from permix.plots import overview

        overview(fit, targets.picture)
    report = mallows_report(fit)
    if as_json:
        extra = {} if selection is None else {"selection": _selection_report(selection)}
        print_json({"file": str(targets.output), **report, **extra})
    else:
        if selection is not None:
            print_selection(selection)
        print_mallows(report, targets.output.name)
    if partial or fit.interrupted:
        to_whom = ", fitted to the agents that were not held out" if partial else ""
        print(f"permix: interrupted; {targets.output} holds the best so far{to_whom}", file=sys.stderr)
        if partial and targets.labels is not None:
            print(f"permix: {targets.labels} needs a fit to all agents and is not written", file=sys.stderr)
        raise typer.Exit(130)


def _fitted(
    votes: Preferences, components: int | None, candidates: list[int] | None, choices: dict[str, Any]
) -> tuple[MallowsFit, ComponentSelection | None]:
    """Fit so many components, or as many as predict best."""
    if candidates is None:
        from permix.models.mallows_fit import MallowsSettings, fit_mallows

        return fit_mallows(votes, MallowsSettings(n_components=components or 1, **choices)), None

    from permix.models.select_components import select_components

    selection = select_components(votes, candidates, refit=True, **choices)
    assert selection.fit is not None  # a single split has a fit from the first number on
    return selection.fit, selection


def _selection_report(selection: ComponentSelection) -> dict[str, Any]:
    return {
        "best": selection.best,
        "within_one_standard_error": selection.one_standard_error,
        "agents_fitted": selection.n_train,
        "agents_held_out": selection.n_validation,
        "interrupted": selection.interrupted,
        "table": selection.table.to_dict(orient="records"),
    }


def print_selection(selection: ComponentSelection) -> None:
    """Show the held-out log-likelihood of every number of components."""
    columns = ("n_components", "train", "validation", "standard_error")
    rows = zip(*(selection.table[name].tolist() for name in columns), strict=True)
    print_table(
        f"Log-likelihood of an agent, {selection.n_train:,} fitted and {selection.n_validation:,} held out",
        ["components", "fitted", "held out", "standard error", ""],
        [
            [number, f"{train:.4f}", f"{score:.4f}", f"{error:.4f}", _remark(selection, number)]
            for number, train, score, error in rows
        ],
    )


def _remark(selection: ComponentSelection, number: int) -> str:
    if number == selection.best:
        return "best, chosen"
    return "fewest within one standard error of the best" if number == selection.one_standard_error else ""


def mallows_report(fit: MallowsFit) -> dict[str, Any]:
    """Everything ``summary`` shows of a mixture of Mallows models, as plain values."""
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
        "iterations": fit.n_iterations,
        "restart_log_likelihoods": fit.restart_log_likelihoods.tolist(),
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
    print_table(
        "Centers, best first",
        ["component", "center"],
        [[k + 1, fitting(part["center"], width)] for k, part in enumerate(parts)],
    )
    most = report["number_of_items"] * (report["number_of_items"] - 1) // 2
    print(
        "agents: those for whom the component is the most probable one\n"
        "dispersion: from 0, all rank as the center does, to 1, no agreement\n"
        f"expected distance: how many of {count_of(most, 'pair')} of items someone ranks unlike the center\n"
    )
    error = report["log_likelihood_standard_error"]
    restarts = report["restart_log_likelihoods"]
    print(
        f"log-likelihood {report['log_likelihood']:,.2f}"
        f"{f' ± {error:.2g}' if error > 0 else ''} ({report['log_likelihood_per_agent']:.4f} an agent), "
        f"best of {count_of(len(restarts), 'restart')}"
    )
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
    if report["cross_validation"]:
        print_table(
            "Log-density of an agent left out",
            ["dispersion", "log-density"],
            [[row["dispersion"], row["log_density_per_agent"]] for row in report["cross_validation"]],
        )


def _cell(value: bool | float) -> str:
    return ("yes" if value else "no") if isinstance(value, bool) else f"{value:.4g}"


def terminal_width() -> int:
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else PIPE_WIDTH


def fitting(names: Sequence[str], width: int) -> str:
    """All names, best first, or as many as fit; at least one."""
    whole = " ≻ ".join(names)
    if len(whole) <= width:
        return whole
    text = names[0]
    for shown, name in enumerate(names[1:], start=1):
        longer = f"{text} ≻ {name}"
        if len(f"{longer} ≻ … {len(names) - shown - 1} more") > width:
            return f"{text} ≻ … {len(names) - shown} more"
        text = longer
    return whole


def write_labels(fit: MallowsFit, agents: list[Any], path: Path) -> None:
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
