"""What ``permix fit mean-shift`` does, and how its clusters are shown."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import typer

from permix.cli.inspect import ReadOptions, check_model_name, check_targets
from permix.cli.output import count_of, print_json, print_table, running_fit
from permix.mallows.command import RankTargets, fitting, terminal_width

if TYPE_CHECKING:
    from permix.baselines.mean_shift_fit import MeanShiftFit

# A terminal shows at most so many clusters.
MAX_CLUSTERS = 30


def run_fit_mean_shift(
    votes_file: ReadOptions, targets: RankTargets, choices: dict[str, Any], quiet: bool, as_json: bool
) -> None:
    """Fit, save, and show what was found."""
    votes_file.refuse_keep()
    check_model_name(targets.output)
    wanted = [target for target in (targets.output, targets.labels) if target is not None]
    check_targets(wanted, [votes_file.file], targets.force)

    from permix.baselines.mean_shift_archive import save_mean_shift
    from permix.baselines.mean_shift_fit import MeanShiftSettings, fit_mean_shift, top_lists
    from permix.estimators.preference_input import as_preferences

    settings = MeanShiftSettings(**choices, progress=False if quiet or as_json else None)
    votes = as_preferences(votes_file.read())
    with running_fit():
        fit = fit_mean_shift(top_lists(votes), settings)
    save_mean_shift(fit, targets.output)
    if targets.labels is not None:
        write_labels(fit, votes_file.agents_of(votes), targets.labels)
    report = mean_shift_report(fit)
    if as_json:
        print_json({"file": str(targets.output), **report})
    else:
        print_mean_shift(report, targets.output.name)
    if fit.interrupted:
        print(f"permix: interrupted; {targets.output} holds the lists where they are now", file=sys.stderr)
        raise typer.Exit(130)


def write_labels(fit: MeanShiftFit, agents: list[Any], path: Path) -> None:
    """Write each row's cluster."""
    import pandas as pd

    from permix.files import atomic_writer

    columns: dict[str, Any] = {"agent": agents}
    if np.any(fit.row_counts != 1):
        columns["count"] = fit.row_counts
    columns["cluster"] = fit.row_labels + 1
    with atomic_writer(path) as handle:
        pd.DataFrame(columns).to_csv(handle, index=False)


def mean_shift_report(fit: MeanShiftFit) -> dict[str, Any]:
    """Everything ``summary`` shows, as plain values."""
    names, centers = [str(item) for item in fit.items], fit.centers
    n_agents = int(fit.row_counts.sum())
    return {
        "model": "BlurringMeanShift",
        "agents": n_agents,
        "rows": len(fit.row_counts),
        "number_of_items": len(names),
        "items": names,
        "number_of_clusters": len(centers),
        "clusters": [
            {
                "agents": int(size),
                "share": float(size / n_agents),
                "center": [names[item] for item in order if item >= 0],
            }
            for order, size in zip(centers.orders.tolist(), centers.counts, strict=True)
        ],
        "decay": float(fit.decay),
        "kernel_decays": fit.decays.tolist(),
        "iterations": len(fit.decays),
        "converged": fit.converged,
        "interrupted": fit.interrupted,
    }


def print_mean_shift(report: dict[str, Any], title: str) -> None:
    """Tables for people."""
    found = report["clusters"]
    width = terminal_width() - len("cluster  agents  share  ")
    print_table(
        f"{title}: {count_of(report['agents'], 'agent')}, {count_of(report['number_of_items'], 'item')}, "
        f"{count_of(len(found), 'cluster')} by blurring mean-shift",
        ["cluster", "agents", "share", "center, best first"],
        [
            [k + 1, part["agents"], f"{part['share']:.1%}", fitting(part["center"], width)]
            for k, part in enumerate(found[:MAX_CLUSTERS])
        ],
    )
    if len(found) > MAX_CLUSTERS:
        print(f"... and {count_of(len(found) - MAX_CLUSTERS, 'smaller cluster')}; --json shows all")
    iterations = count_of(report["iterations"], "iteration")
    if report["interrupted"]:
        print(f"interrupted after {iterations}")
    elif report["converged"]:
        print(f"no list moved any more after {iterations}")
    else:
        print(f"lists still moved after {iterations}; a larger --max-iter goes further")
