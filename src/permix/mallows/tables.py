"""How a mixture of Mallows models is shown: everything as plain values, and tables for people."""

from __future__ import annotations

from typing import Any

import numpy as np

from permix.cli.output import ORDER, count_of, fitting, print_table, rounded, terminal_width
from permix.mallows.fit import MallowsFit
from permix.mallows.results import climbing_iterations, remarks, starts_near_the_best


def report(fit: MallowsFit) -> dict[str, Any]:
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
        "groups": [
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


def show(report: dict[str, Any], title: str) -> None:
    """Tables for people."""
    parts = report["groups"]
    columns = ("weight", "agents", "dispersion", "expected_distance")
    print_table(
        f"{title}: {count_of(report['agents'], 'agent')}, {count_of(report['number_of_items'], 'item')}, "
        f"Mallows mixture of {count_of(len(parts), 'group')}",
        ["group", *(column.replace("_", " ") for column in columns)],
        [[k + 1, *(part[column] for column in columns)] for k, part in enumerate(parts)],
    )
    width = terminal_width() - len("group  ")
    centers = [fitting(part["center"], width) for part in parts]
    print_table("Centers, best first", ["group", "center"], [[k + 1, text] for k, text in enumerate(centers)])
    if any(text != ORDER.join(part["center"]) for text, part in zip(centers, parts, strict=True)):
        print("centers are cut to the width of the terminal; --json shows all\n")
    for remark in report["remarks"]:
        print(f"note: {remark}")
    if report["remarks"]:
        print()
    most = report["number_of_items"] * (report["number_of_items"] - 1) // 2
    print(
        "agents: those for whom the group is the most probable one\n"
        "dispersion: from 0, all rank as the center does, to 1, no agreement\n"
        f"expected distance: how many of {count_of(most, 'pair')} of items someone ranks unlike the center\n"
    )
    error = report["log_likelihood_standard_error"]
    restarts = report["restart_log_likelihoods"]
    total, each = rounded(report["log_likelihood"], 2), rounded(report["log_likelihood_per_agent"], 4)
    print(f"log-likelihood {total}{f' ± {error:.2g}' if error > 0 else ''} ({each} per agent)")
    if len(restarts) > 1:
        near = report["starts_within_1_of_best"]
        alone = "; more --starts may find a better one" if near == 1 else ""
        print(f"{near} of {len(restarts)} starts came within 1 of the best log-likelihood{alone}")
    iterations = count_of(report["iterations"], "iteration")
    if report["interrupted"]:
        print(f"interrupted after {iterations}")
    elif report["converged"]:
        print(f"converged after {iterations}")
    else:
        print(f"not converged after {iterations}; a larger --max-iter goes further")
