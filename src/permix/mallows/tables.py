"""How a mixture of Mallows models is shown: everything as plain values, and tables for people."""

from __future__ import annotations

from typing import Any

import numpy as np

from permix.cli import fit_tables
from permix.cli.output import count_of, print_table
from permix.mallows.results import MallowsFit, climbing_iterations, remarks


def report(fit: MallowsFit) -> dict[str, Any]:
    """Everything ``summary`` shows of a mixture of Mallows models, as plain values."""
    mixture = fit.components
    agents = np.bincount(fit.labels, weights=fit.counts, minlength=mixture.n_components)
    return {
        "model": fit.model,
        **fit_tables.items_report(mixture.items, fit.counts),
        "groups": [
            {
                "share": float(mixture.weights[k]),
                "agents": int(agents[k]),
                "dispersion": float(mixture.dispersions[k]),
                "expected_distance": mixture.component(k).expected_distance(),
                "center": [str(mixture.items[item]) for item in mixture.centers[k]],
            }
            for k in range(mixture.n_components)
        ],
        **fit_tables.climb_report(fit, fit.start_log_likelihoods),
        "iterations": climbing_iterations(fit),
        "start_log_likelihoods": fit.start_log_likelihoods.tolist(),
        "remarks": remarks(fit),
    }


def show(report: dict[str, Any], title: str) -> None:
    """Tables for people."""
    parts = report["groups"]
    columns = ("share", "agents", "dispersion", "expected_distance")
    print_table(
        f"{fit_tables.data_title(report, title)}, Mallows mixture of {count_of(len(parts), 'group')}",
        ["group", *(column.replace("_", " ") for column in columns)],
        [[k + 1, *(part[column] for column in columns)] for k, part in enumerate(parts)],
    )
    if fit_tables.print_orders("Centers, best first", "center", [part["center"] for part in parts]):
        print("centers are cut to the width of the terminal; --json shows all\n")
    fit_tables.print_remarks(report["remarks"])
    most = report["number_of_items"] * (report["number_of_items"] - 1) // 2
    print(
        "agents: those for whom the group is the most probable one\n"
        "dispersion: from 0, all rank as the center does, to 1, no agreement\n"
        f"expected distance: how many of {count_of(most, 'pair')} of items someone ranks unlike the center\n"
    )
    print(fit_tables.likelihood_line(report))
    fit_tables.print_starts(report, len(report["start_log_likelihoods"]))
    fit_tables.print_ending(report, count_of(report["iterations"], "iteration"), "converged", "not converged")
