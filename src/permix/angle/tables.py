"""How a mixture of angle-based models is shown: everything as plain values, and tables for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from permix.cli.output import count_of, print_table
from permix.mallows.command import fitting, rounded, terminal_width

if TYPE_CHECKING:
    import pandas as pd

    from permix.angle.fit import AngleFit

INTERVAL = 0.9
# A terminal shows the scores of at most so many items.
MAX_ITEMS = 30
# Width of a score with its interval in a table.
SCORE_WIDTH = len("-0.523 (-0.556 to -0.501)  ")
# Importance draws of n items take n² steps each; beyond this the normaliser's error is left out.
MOST_ITEMS_WITH_ERROR = 2000
# An approximate normaliser that is off by more than this, in nats per ranking, deserves a note.
NOTABLE_ERROR = 0.05
METHODS = {
    "vi": "variational inference",
    "em": "maximum likelihood",
    "sir": "sampling importance resampling",
    "quadrature": "quadrature",
}
IN_CHAINS = {
    "vi": "Gibbs sampling with variational updates",
    "sir": "Gibbs sampling",
    "quadrature": "Gibbs sampling",
}


def angle_report(fit: AngleFit) -> dict[str, Any]:
    """Everything ``summary`` shows of a mixture of angle-based models, as plain values."""
    from permix.angle.results import n_parameters

    components, settings, total = fit.components, fit.settings, fit.log_likelihood
    n_agents, parameters = int(fit.counts.sum()), n_parameters(fit.components)
    report: dict[str, Any] = {
        "model": "AngleMixture",
        "inference": settings.inference,
        "normalizer": components.normalizer,
        "bound": settings.bound if settings.inference == "vi" else None,
        "agents": n_agents,
        "rows": len(fit.counts),
        "number_of_items": components.n_items,
        "items": [str(item) for item in components.items],
        "interval": None if fit.posterior is None else INTERVAL,
        "components": _component_reports(fit),
        "log_likelihood": float(total),
        "log_likelihood_standard_error": total.standard_error,
        "log_likelihood_per_agent": float(total) / n_agents,
        "elbo": fit.objective if settings.inference == "vi" else None,
        "log_evidence": fit.objective if settings.inference == "quadrature" else None,
        "parameters": parameters,
        "aic": 2.0 * parameters - 2.0 * float(total),
        "bic": float(np.log(n_agents)) * parameters - 2.0 * float(total),
        "converged": bool(fit.converged),
        "interrupted": bool(fit.interrupted),
        "passes": len(fit.history),
        "restart_objectives": fit.restart_objectives.tolist(),
        "starts_within_1_of_best": _near_the_best(fit.restart_objectives),
    }
    if fit.draws is not None:
        shape = fit.draws.arrays["weights"].shape
        report |= {"chains": shape[0] if fit.draws.seeds else None, "draws_per_chain": shape[1]}
        if fit.draws.seeds:
            report["diagnostics"] = _diagnostics(fit)
    report["remarks"] = _remarks(fit, report["components"])
    return report


def _near_the_best(reached: np.ndarray, gap: float = 1.0) -> int:
    return int((reached >= reached.max(initial=-np.inf) - gap).sum())


def _component_reports(fit: AngleFit) -> list[dict[str, Any]]:
    """Report each component; intervals hold 90 % of the posterior."""
    from permix.angle.results import component_table, consensus_table

    components = fit.components
    table, scores = component_table(fit, INTERVAL), consensus_table(fit, INTERVAL)
    errors = fit.normalizer_errors if components.n_items <= MOST_ITEMS_WITH_ERROR else None
    reports: list[dict[str, Any]] = []
    for k in range(components.n_components):
        part = scores[scores["component"] == k + 1]
        report: dict[str, Any] = {
            "weight": float(table["weight"][k]),
            "agents": int(table["agents"][k]),
            "concentration": float(table["concentration"][k]),
        }
        if "low" in table:
            report |= {
                "concentration_low": float(table["low"][k]),
                "concentration_high": float(table["high"][k]),
            }
        report |= {
            "normalizer_error": None if errors is None else float(errors[k]),
            "normalizer_error_standard_error": None if errors is None else errors[k].standard_error,
            "consensus": [str(item) for item in part["item"]],
            "score": _by_item(part, "score"),
        }
        if "low" in part:
            names = {"low": "score_low", "high": "score_high"}
            for name in ("low", "high", "rank_low", "rank_high"):
                report[names.get(name, name)] = _by_item(part, name)
        reports.append(report)
    return reports


def _by_item(part: pd.DataFrame, column: str) -> dict[str, float]:
    """Return a column of the consensus table by name of the item; ranks are whole numbers."""
    values = part[column].round().astype(int) if column.startswith("rank") else part[column]
    return dict(zip(map(str, part["item"]), values.tolist(), strict=True))


def _diagnostics(fit: AngleFit) -> dict[str, Any]:
    """Say whether chains agree: about every weight and concentration, and the log-likelihood."""
    from permix.posterior import summary
    from permix.sampling import Draws

    assert fit.draws is not None
    arrays, k = fit.draws.arrays, fit.components.n_components
    shown = {f"weight {c + 1}": arrays["weights"][..., c] for c in range(k)} if k > 1 else {}
    shown |= {f"concentration {c + 1}": arrays["concentrations"][..., c] for c in range(k)}
    likelihood = "log_likelihood" if "log_likelihood" in arrays else "completed_log_likelihood"
    shown[likelihood] = arrays[likelihood]
    return {str(name): row.to_dict() for name, row in summary(Draws(shown)).iterrows()}


def _remarks(fit: AngleFit, parts: list[dict[str, Any]]) -> list[str]:
    """Say what a reader of the components should know about them; they are counted from 1."""
    from permix.angle.settings import MOST_BALANCED_ITEMS

    said = []
    mended = fit.components.n_items <= MOST_BALANCED_ITEMS and fit.components.normalizer == "vmf"
    way_out = "--inference em or sir without --normalizer" if mended else "fewer components"
    held = np.flatnonzero(fit.guarded).tolist()
    if held:
        said.append(
            f"{_named(held)}: the approximate normaliser would give a ranking a probability above one, so "
            f"the concentration was held back; {way_out} {'avoids' if mended else 'avoid'} that"
        )
    errors = [part["normalizer_error"] or 0.0 for part in parts]
    # Components without anybody in them say nothing.
    lived_in = fit.components.weights * fit.counts.sum() >= 1.0
    off = [k for k, error in enumerate(errors) if lived_in[k] and abs(error) > NOTABLE_ERROR]
    if off:
        worst = max(off, key=lambda k: abs(errors[k]))
        aside = f"; use {way_out}" if mended else ""
        said.append(
            f"{_named(off)}: the approximate normaliser is off by up to {errors[worst]:+.2g} nats an agent: "
            f"such a component may not be real{aside}"
        )
    by_order: dict[tuple[str, ...], list[int]] = {}
    for k, part in enumerate(parts):
        by_order.setdefault(tuple(part["consensus"]), []).append(k)
    said += [
        f"{_named(same)} rank the items alike and differ in scores and concentration alone"
        for same in by_order.values()
        if len(same) > 1
    ]
    nobodys = [k for k, part in enumerate(parts) if part["agents"] == 0]
    if nobodys:
        verb = "is" if len(nobodys) == 1 else "are"
        said.append(f"{_named(nobodys)} {verb} nobody's most probable component; fewer may be enough")
    if fit.settings.inference == "vi" and fit.settings.bound == "published":
        said.append("--bound published gives intervals of concentrations that are too narrow; see tight")
    return said


def _named(which: list[int]) -> str:
    """Return "component 2", "components 1 and 3"."""
    numbers = [str(k + 1) for k in which]
    if len(numbers) == 1:
        return f"component {numbers[0]}"
    return f"components {', '.join(numbers[:-1])} and {numbers[-1]}"


def print_angle(report: dict[str, Any], title: str) -> None:
    """Tables for people."""
    parts = report["components"]
    sure = report["interval"] is not None
    methods = IN_CHAINS if "diagnostics" in report else METHODS
    off = report["normalizer"] == "vmf" and parts[0]["normalizer_error"] is not None
    print_table(
        f"{title}: {count_of(report['agents'], 'agent')}, {count_of(report['number_of_items'], 'item')}, "
        f"angle-based mixture of {count_of(len(parts), 'component')} by {methods[report['inference']]}",
        [
            "component",
            "weight",
            "agents",
            "concentration",
            *(["from", "to"] if sure else []),
            *(["normaliser off by"] if off else []),
        ],
        [
            [
                k + 1,
                part["weight"],
                part["agents"],
                part["concentration"],
                *([part["concentration_low"], part["concentration_high"]] if sure else []),
                *([_error(part)] if off else []),
            ]
            for k, part in enumerate(parts)
        ],
    )
    width = terminal_width() - len("component  ")
    print_table(
        "Consensus, best first",
        ["component", "consensus"],
        [[k + 1, fitting(part["consensus"], width)] for k, part in enumerate(parts)],
    )
    _print_scores(report)
    for remark in report["remarks"]:
        print(f"note: {remark}")
    if report["remarks"]:
        print()
    print(
        "agents: those for whom the component is the most probable one\n"
        "concentration: 0 = all rankings alike; the larger, the more united\n"
        "score: small = preferred; how far apart two scores are says how sure their order is to a member\n"
        f"normaliser: {_normalizer(report)}\n"
    )
    _print_fit_measures(report)
    if "diagnostics" in report:
        columns = ["mean", "sd", "ess_bulk", "r_hat", "note"]
        print()
        print_table(
            f"Chains ({report['chains']} × {report['draws_per_chain']:,} draws; --json has more)",
            ["quantity", *columns],
            [[name, *[row[column] for column in columns]] for name, row in report["diagnostics"].items()],
        )


def _error(part: dict[str, Any]) -> str:
    error = part["normalizer_error_standard_error"]
    return f"{part['normalizer_error']:+.2g}{f' ± {error:.1g}' if error > 0 else ''}"


def _normalizer(report: dict[str, Any]) -> str:
    if report["normalizer"] == "exact":
        return "exact, the sum over all rankings"
    kind = "balanced" if report["normalizer"] == "balanced" else "von Mises–Fisher approximation"
    if report["components"][0]["normalizer_error"] is None:
        return kind
    return f"{kind}; off by: true ln of the sum less the one used, nats an agent"


def _print_scores(report: dict[str, Any]) -> None:
    """Write the items by their score in the largest component, as many items and components as fit."""
    parts = report["components"]
    items = parts[0]["consensus"]
    n_items = min(len(items), MAX_ITEMS)
    longest = max(len(name) for name in items[:n_items])
    n_parts = max(1, min(len(parts), (terminal_width() - longest - 2) // SCORE_WIDTH))
    cells = [_score_cells(part) for part in parts[:n_parts]]
    some = [f"the first {n_items} of {len(items):,} items"] if n_items < len(items) else []
    some += [f"the first {n_parts} of {len(parts)} components"] if n_parts < len(parts) else []
    sure = "" if report["interval"] is None else ", with 90 % intervals"
    print_table(
        f"Consensus scores, small = preferred{sure}{''.join(f'; {text}' for text in some)}"
        f"{'; --json shows all' if some else ''}",
        ["item", *(f"component {k + 1}" for k in range(n_parts))],
        [[name, *(column[name] for column in cells)] for name in items[:n_items]],
    )


def _score_cells(part: dict[str, Any]) -> dict[str, str]:
    if "score_low" not in part:
        return {name: f"{score:+.3f}" for name, score in part["score"].items()}
    low, high = part["score_low"], part["score_high"]
    return {
        name: f"{score:+.3f} ({low[name]:+.3f} to {high[name]:+.3f})" for name, score in part["score"].items()
    }


def _print_fit_measures(report: dict[str, Any]) -> None:
    error = report["log_likelihood_standard_error"]
    total, each = rounded(report["log_likelihood"], 2), rounded(report["log_likelihood_per_agent"], 4)
    print(f"log-likelihood {total}{f' ± {error:.2g}' if error > 0 else ''} ({each} an agent)")
    for name, words in (("elbo", "evidence lower bound"), ("log_evidence", "log evidence")):
        if report[name] is not None:
            print(f"{words} {rounded(report[name], 2)}")
    print(f"AIC {rounded(report['aic'], 1)}, BIC {rounded(report['bic'], 1)}")
    if "dic" in report:
        print(
            f"DIC {rounded(report['dic'], 1)} ({report['dic_parameters']:.1f} effective parameters), "
            f"WAIC {rounded(report['waic'], 1)} ({report['waic_parameters']:.1f})"
        )
    restarts = report["restart_objectives"]
    if len(restarts) > 1 and len(report["components"]) > 1:
        near = report["starts_within_1_of_best"]
        alone = "; more --restarts may find a better one" if near == 1 else ""
        what = "evidence bound" if report["inference"] == "vi" else "log-likelihood"
        print(f"{near} of {len(restarts)} starts came within 1 of the best {what}{alone}")
    passes = f"{report['passes']:,} pass{'' if report['passes'] == 1 else 'es'}"
    if report["interrupted"]:
        print("interrupted" if "draws_per_chain" in report else f"interrupted after {passes}")
    elif not report["converged"]:
        print(f"not converged after {passes}; a larger --max-iter goes further")
    elif "draws_per_chain" not in report and restarts:
        print(f"converged after {passes}")
