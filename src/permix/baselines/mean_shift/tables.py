"""How groups of top lists are shown: everything as plain values, and tables for people."""

from __future__ import annotations

from typing import Any

from permix.baselines.mean_shift.fit import MeanShiftFit
from permix.cli import fit_tables
from permix.cli.output import count_of, print_table, say

# A terminal shows at most so many groups.
MAX_GROUPS = 30


def report(fit: MeanShiftFit) -> dict[str, Any]:
    """Everything ``summary`` shows, as plain values."""
    n_agents = int(fit.row_counts.sum())
    return {
        "model": fit.model,
        **fit_tables.items_report(fit.items, fit.row_counts, fit),
        "number_of_groups": len(fit.centers),
        "groups": [
            {"agents": size, "share": size / n_agents, "center": names}
            for names, size in zip(fit.center_names, fit.centers.counts.tolist(), strict=True)
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
    print_table(
        f"{fit_tables.data_title(report, title)}, {count_of(len(found), 'group')} by blurring mean-shift",
        ["group", "agents", "share"],
        [[k + 1, part["agents"], f"{part['share']:.1%}"] for k, part in enumerate(found[:MAX_GROUPS])],
    )
    orders = [fit_tables.called(report, part["center"]) for part in found[:MAX_GROUPS]]
    fit_tables.print_orders("Centers, best first", orders)
    if len(found) > MAX_GROUPS:
        print(f"... and {count_of(len(found) - MAX_GROUPS, 'smaller group')}; --json shows all")
    say(fit_tables.likelihood_line(report, " of Mallows models at the centers"))
    steps = count_of(report["iterations"], "iteration")
    fit_tables.print_ending(report, steps, "no list moved any more", "lists still moved")
