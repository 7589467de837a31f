"""How a mixture of angle-based models is shown: everything as plain values, and tables for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from permix.angle.fit import AngleFit
from permix.angle.results import component_table, consensus_table, n_parameters, remarks, scalar_draws
from permix.cli import fit_tables
from permix.cli.output import count_of, print_table, rounded, say, terminal_width

if TYPE_CHECKING:
    import pandas as pd

INTERVAL = 0.9
# A terminal shows the scores of at most so many items.
MAX_ITEMS = 30
# Width of a score with its interval in a table.
SCORE_WIDTH = len("-0.523 (-0.556 to -0.501)  ")
# Importance draws of n items take n² steps each; beyond this the normalizer's error is left out.
MOST_ITEMS_WITH_ERROR = 2000
METHODS = {
    "vi": "variational inference",
    "em": "maximum likelihood",
    "sir": "sampling importance resampling",
    "quadrature": "quadrature",
}
# Data that are not full, and several groups, need Markov chains, whatever the inference.
IN_CHAINS = {
    "vi": "Markov chains with variational updates",
    "sir": "draws from the posterior (Markov chains)",
    "quadrature": "draws from the posterior (Markov chains by quadrature)",
}


def report(fit: AngleFit) -> dict[str, Any]:
    """Everything ``summary`` shows of a mixture of angle-based models, as plain values."""
    components, settings, total = fit.components, fit.settings, float(fit.log_likelihood)
    parameters, approximate = n_parameters(components), components.normalizer == "vmf"
    report: dict[str, Any] = {
        "model": fit.model,
        "inference": settings.inference,
        "normalizer": components.normalizer,
        "bound": settings.bound if settings.inference == "vi" else None,
        **fit_tables.items_report(components.items, fit.counts, fit),
        "interval": None if fit.posterior is None else INTERVAL,
        "groups": _group_reports(fit),
        **fit_tables.climb_report(fit, fit.start_objectives),
        **fit_tables.baselines_report(fit),
        "elbo": fit.objective if settings.inference == "vi" else None,
        "log_evidence": fit.objective if settings.inference == "quadrature" else None,
        "parameters": parameters,
        # Probabilities that do not sum to one are not offered for comparison.
        "aic": None if approximate else 2.0 * parameters - 2.0 * total,
        "bic": None if approximate else float(np.log(fit.n_agents)) * parameters - 2.0 * total,
        "passes": len(fit.history),
        "start_objectives": fit.start_objectives.tolist(),
    }
    if fit.draws is not None:
        if fit.draws.seeds:
            report |= fit_tables.chains_report(scalar_draws(fit.draws))
        else:
            report |= {"chains": None, "draws_per_chain": fit.draws.arrays["weights"].shape[1]}
    errors = [part["normalizer_error"] for part in report["groups"]]
    known = None if None in errors else errors
    report["remarks"] = [remark.as_options() for remark in remarks(fit, known)]
    return report


def _group_reports(fit: AngleFit) -> list[dict[str, Any]]:
    """Report each group; intervals hold 90 % of the posterior."""
    components = fit.components
    table, scores = component_table(fit, INTERVAL), consensus_table(fit, INTERVAL)
    errors = fit.normalizer_errors if components.n_items <= MOST_ITEMS_WITH_ERROR else None
    reports: list[dict[str, Any]] = []
    ends = ("low", "high") if "low" in table else ()
    for k in range(components.n_components):
        part = scores[scores["group"] == k]
        report: dict[str, Any] = {"share": float(table["share"][k]), "agents": int(table["agents"][k])}
        report["concentration"] = float(table["concentration"][k])
        report |= {f"concentration_{end}": float(table[end][k]) for end in ends}
        report["normalizer_error"] = None if errors is None else float(errors[k])
        error = None if errors is None else errors[k].standard_error
        report["normalizer_error_standard_error"] = error
        report["center"] = [str(item) for item in part["item"]]
        report["score"] = _by_item(part, "score")
        report |= {f"score_{end}": _by_item(part, end) for end in ends}
        report |= {f"rank_{end}": _by_item(part, f"rank_{end}") for end in ends}
        reports.append(report)
    return reports


def _by_item(part: pd.DataFrame, column: str) -> dict[str, float]:
    """Return a column of the table of scores by name of the item; ranks are whole numbers."""
    values = part[column].round().astype(int) if column.startswith("rank") else part[column]
    return dict(zip(map(str, part["item"]), values.tolist(), strict=True))


def show(report: dict[str, Any], title: str) -> None:
    """Tables for people."""
    parts = report["groups"]
    sure = report["interval"] is not None
    methods = IN_CHAINS if "diagnostics" in report else METHODS
    off = report["normalizer"] == "vmf" and parts[0]["normalizer_error"] is not None
    columns = {"share": "share", "agents": "agents", "concentration": "concentration"}
    if sure:
        columns |= {"concentration_low": "from", "concentration_high": "to"}
    told = [{**part, "share": f"{100.0 * part['share']:.1f}%"} for part in parts]
    rows = [[k + 1, *(part[name] for name in columns)] for k, part in enumerate(told)]
    headings = ["group", *columns.values()]
    if off:
        headings.append("normalizer off by")
        rows = [[*row, _error(part)] for row, part in zip(rows, parts, strict=True)]
    what = f"angle-based mixture of {count_of(len(parts), 'group')} by {methods[report['inference']]}"
    print_table(f"{fit_tables.data_title(report, title)}, {what}", headings, rows)
    centers = [fit_tables.called(report, part["center"]) for part in parts]
    fit_tables.print_orders("Centers, best first", centers)
    _print_scores(report)
    fit_tables.print_remarks(report["remarks"])
    for line in (
        "agents: those for whom the group is the most probable one",
        "concentration: 0 = members rank at random; the larger, the more united",
        "score: small = preferred; how far apart two scores are says how sure their order is to a member",
        f"normalizer: {_normalizer(report)}",
    ):
        say(line, "  ")
    print()
    _print_fit_measures(report)
    if "diagnostics" in report:
        print()
        fit_tables.print_chains(report)


def _error(part: dict[str, Any]) -> str:
    error = part["normalizer_error_standard_error"]
    return f"{part['normalizer_error']:+.2g}{f' ± {error:.1g}' if error > 0 else ''}"


def _normalizer(report: dict[str, Any]) -> str:
    if report["normalizer"] == "exact":
        return "exact, the sum over all rankings"
    used = "balanced" if report["normalizer"] == "balanced" else "von Mises–Fisher approximation"
    if report["groups"][0]["normalizer_error"] is None:
        return used
    return f"{used}; off by: true ln of the sum less the one used, nats an agent"


def _print_scores(report: dict[str, Any]) -> None:
    """Write the items by their score in the largest group, as many items and groups as fit."""
    parts = report["groups"]
    items = parts[0]["center"]
    n_items = min(len(items), MAX_ITEMS)
    longest = max(len(name) for name in items[:n_items])
    n_parts = max(1, min(len(parts), (terminal_width() - longest - 2) // SCORE_WIDTH))
    cells = [_score_cells(part) for part in parts[:n_parts]]
    some = [f"the first {n_items} of {len(items):,} items"] if n_items < len(items) else []
    some += [f"the first {n_parts} of {len(parts)} groups"] if n_parts < len(parts) else []
    sure = "" if report["interval"] is None else ", with 90 % intervals"
    print_table(
        f"Scores of the centers, small = preferred{sure}{''.join(f'; {text}' for text in some)}"
        f"{'; --json shows all' if some else ''}",
        ["item", *(f"group {k + 1}" for k in range(n_parts))],
        [[name, *(column[name] for column in cells)] for name in items[:n_items]],
    )


def _score_cells(part: dict[str, Any]) -> dict[str, str]:
    cells = {name: f"{score:+.3f}" for name, score in part["score"].items()}
    if "score_low" not in part:
        return cells
    low, high = part["score_low"], part["score_high"]
    return {name: f"{cell} ({low[name]:+.3f} to {high[name]:+.3f})" for name, cell in cells.items()}


def _print_fit_measures(report: dict[str, Any]) -> None:
    say(fit_tables.likelihood_line(report))
    for name, words in (("elbo", "evidence lower bound"), ("log_evidence", "log evidence")):
        if report[name] is not None:
            print(f"{words} {rounded(report[name], 2)}")
    if report["aic"] is not None:
        print(f"AIC {rounded(report['aic'], 1)}, BIC {rounded(report['bic'], 1)}")
    if "dic" in report:
        print(
            f"DIC {rounded(report['dic'], 1)} ({report['dic_parameters']:.1f} effective parameters), "
            f"WAIC {rounded(report['waic'], 1)} ({report['waic_parameters']:.1f})"
        )
    restarts = report["start_objectives"]
    if len(report["groups"]) > 1:
        what = "evidence bound" if report["inference"] == "vi" else "log-likelihood"
        fit_tables.print_starts(report, len(restarts), what)
    passes = f"{report['passes']:,} pass{'' if report['passes'] == 1 else 'es'}"
    if "draws_per_chain" in report:
        if report["interrupted"]:
            print("interrupted")
    elif restarts or report["interrupted"] or not report["converged"]:
        fit_tables.print_ending(report, passes, "converged", "not converged")
