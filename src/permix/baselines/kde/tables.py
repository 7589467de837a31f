"""How a density estimate of rankings is shown: everything as plain values, and tables for people."""

from __future__ import annotations

from typing import Any

import numpy as np

from permix.baselines.kde.fit import KDEFit
from permix.cli import fit_tables
from permix.cli.output import cell_text, print_table, rounded

# So many of the dispersions that cross-validation tried are shown.
MAX_TRIED = 12


def report(fit: KDEFit) -> dict[str, Any]:
    """Everything ``summary`` shows of a density estimate, as plain values."""
    return {
        "model": fit.model,
        **fit_tables.items_report(fit.preferences.items, fit.preferences.counts, fit),
        "dispersion": float(fit.dispersion),
        "expected_distance": fit.expected_distance,
        "closed_form": fit.is_exact,
        "interrupted": fit.interrupted,
        "cross_validation": [
            dict(zip(("dispersion", "log_probability_per_agent"), tried, strict=True))
            for tried in fit.tried.tolist()
        ],
    }


def show(report: dict[str, Any], title: str) -> None:
    """Tables for people."""
    names = ("dispersion", "expected_distance", "closed_form", "interrupted")
    print_table(
        f"{fit_tables.data_title(report, title)}, density estimate by Mallows models",
        ["", ""],
        [[name.replace("_", " "), cell_text(report[name])] for name in names],
    )
    tried = report["cross_validation"]
    if tried:
        values = [row["log_probability_per_agent"] for row in tried]
        best = int(np.argmax(values))
        shown = _thinned([row["dispersion"] for row in tried], best)
        some = f", {len(shown)} of the {len(tried)} dispersions tried" if len(shown) < len(tried) else ""
        print_table(
            f"Log probability of an agent left out{some}",
            ["dispersion", "log probability", "remark"],
            [[tried[i]["dispersion"], rounded(values[i], 4), "best" if i == best else ""] for i in shown],
        )
        if some:
            print("--json shows all")


def _thinned(dispersions: list[float], best: int) -> list[int]:
    """About a dozen of the dispersions in increasing order: the best, its neighbors, an even choice else.

    Of those that look alike in a table, one: the search ends with many that are nearly the best.
    """
    looks = {cell_text(value): i for i, value in enumerate(dispersions)}
    looks[cell_text(dispersions[best])] = best
    order = sorted(looks.values(), key=dispersions.__getitem__)
    if len(order) <= MAX_TRIED:
        return order
    place = order.index(best)
    near = range(max(place - 1, 0), min(place + 2, len(order)))
    even = np.linspace(0, len(order) - 1, MAX_TRIED - 3).round().astype(int).tolist()
    return [order[i] for i in sorted({*near, *even})]
