"""How a mixture of Mallows models is shown: everything as plain values, and tables for people."""

from __future__ import annotations

from typing import Any

import numpy as np

from permix.cli import fit_tables
from permix.cli.agent_weights import print_weights, weights_report
from permix.cli.output import count_of, print_table, say
from permix.mallows.results import MallowsFit, climbing_iterations, remarks
from permix.reporting.distance_words import dispersion_text, distance_line, under


def report(fit: MallowsFit) -> dict[str, Any]:
    """Everything ``summary`` shows of a mixture of Mallows models, as plain values."""
    mixture = fit.components
    agents = np.bincount(fit.labels, weights=fit.counts, minlength=mixture.n_components)
    agents = np.rint(agents * (fit.n_agents / fit.counts.sum()))
    known = len(fit.group_matches) > 1
    return {
        "model": fit.model,
        "distance": mixture.distance,
        **fit_tables.items_report(mixture.items, fit.counts, fit),
        "groups": [
            {
                "share": float(mixture.weights[k]),
                "share_interval": fit.share_intervals[k].tolist(),
                "agents": int(agents[k]),
                "dispersion": float(mixture.dispersions[k]),
                "expected_distance": mixture.component(k).expected_distance(),
                "restarts_with_it": int(fit.recurrences[k]) if known else None,
                "agreement": float(fit.agreements[k]) if known else None,
                "center": [str(mixture.items[item]) for item in mixture.centers[k]],
            }
            for k in range(mixture.n_components)
        ],
        **fit_tables.climb_report(fit, fit.start_log_likelihoods),
        **fit_tables.baselines_report(fit),
        "iterations": climbing_iterations(fit),
        "start_log_likelihoods": fit.start_log_likelihoods.tolist(),
        "restarts": len(fit.at_best),
        "restarts_that_reached_this_optimum": int(fit.at_best.sum()),
        "verdict": fit.verdict,
        "remarks": remarks(fit),
        **weights_report(mixture.by_agent),
    }


def show(report: dict[str, Any], title: str) -> None:
    """Tables for people."""
    parts = report["groups"]
    heads = ["share", "agents", "dispersion", "distance"]
    rows = [
        [
            k + 1,
            f"{part['share']:.1%}",
            part["agents"],
            dispersion_text(part["dispersion"], report["distance"]),
            f"{part['expected_distance']:.1f}",
        ]
        for k, part in enumerate(parts)
    ]
    recurs = parts[0]["restarts_with_it"] is not None
    if recurs:
        heads.append("recurs in")
        rows = [[*row, _recurrence(part, report["restarts"])] for row, part in zip(rows, parts, strict=True)]
    kind = f"Mallows mixture of {count_of(len(parts), 'group')}{under(report['distance'])}"
    print_table(f"{fit_tables.data_title(report, title)}, {kind}", ["group", *heads], rows)
    centers = [fit_tables.called(report, part["center"]) for part in parts]
    fit_tables.print_orders("Centers, best first", centers)
    fit_tables.print_remarks(report["remarks"])
    say("share: how large the group is, as a part of all agents; the number to print", "  ")
    say(
        "agents: those for whom it is the most probable group, each in one alone; whoever is in one with 60% "
        "and in another with 40% counts in shares as 0.6 and 0.4 of an agent",
        "  ",
    )
    say("dispersion: from 0, all rank as the center does, to 1, no agreement", "  ")
    say(distance_line(report["distance"], report["number_of_items"]), "  ")
    if recurs:
        say(
            "recurs in: restarts with a group that has 60% of its agents in common with this one (of those "
            "in either); in brackets how many on average",
            "  ",
        )
    print_weights(report)
    print()
    say(fit_tables.likelihood_line(report))
    fit_tables.print_ending(report, count_of(report["iterations"], "iteration"), "converged", "not converged")


def _recurrence(part: dict[str, Any], n_restarts: int) -> str:
    """Write how often a group recurs, and how well it is matched on average."""
    if part["restarts_with_it"] <= 1:
        return "does not recur"
    return f"{part['restarts_with_it']} of {n_restarts} ({part['agreement']:.0%})"
