"""How groups of top lists are shown: everything as plain values, and tables for people."""

from __future__ import annotations

from typing import Any

from permix.baselines.mean_shift.fit import MeanShiftFit
from permix.cli.output import count_of, fitting, print_table, rounded, terminal_width

# A terminal shows at most so many groups.
MAX_GROUPS = 30


def report(fit: MeanShiftFit) -> dict[str, Any]:
    """Everything ``summary`` shows, as plain values."""
    names, centers = [str(item) for item in fit.items], fit.centers
    n_agents = int(fit.row_counts.sum())
    return {
        "model": "BlurringMeanShift",
        "agents": n_agents,
        "rows": len(fit.row_counts),
        "number_of_items": len(names),
        "items": names,
        "number_of_groups": len(centers),
        "groups": [
            {
                "agents": int(size),
                "share": float(size / n_agents),
                "center": [names[item] for item in order if item >= 0],
            }
            for order, size in zip(centers.orders.tolist(), centers.counts, strict=True)
        ],
        "decay": float(fit.decay),
        "decays": fit.decays.tolist(),
        "log_likelihood": float(fit.log_likelihood),
        "log_likelihood_per_agent": float(fit.log_likelihood) / n_agents,
        "iterations": len(fit.decays),
        "converged": fit.converged,
        "interrupted": fit.interrupted,
    }


def show(report: dict[str, Any], title: str) -> None:
    """Tables for people."""
    found = report["groups"]
    width = terminal_width() - len("group  agents  share  ")
    print_table(
        f"{title}: {count_of(report['agents'], 'agent')}, {count_of(report['number_of_items'], 'item')}, "
        f"{count_of(len(found), 'group')} by blurring mean-shift",
        ["group", "agents", "share", "center, best first"],
        [
            [k + 1, part["agents"], f"{part['share']:.1%}", fitting(part["center"], width)]
            for k, part in enumerate(found[:MAX_GROUPS])
        ],
    )
    if len(found) > MAX_GROUPS:
        print(f"... and {count_of(len(found) - MAX_GROUPS, 'smaller group')}; --json shows all")
    total, each = rounded(report["log_likelihood"], 2), rounded(report["log_likelihood_per_agent"], 4)
    print(f"log-likelihood of Mallows models at the centers {total} ({each} per agent)")
    iterations = count_of(report["iterations"], "iteration")
    if report["interrupted"]:
        print(f"interrupted after {iterations}")
    elif report["converged"]:
        print(f"no list moved any more after {iterations}")
    else:
        print(f"lists still moved after {iterations}; a larger --max-iter goes further")
