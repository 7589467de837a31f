"""What reports and tables of several models have in common: chains, climbs, and numbers of groups."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from permix.cli.output import ORDER, count_of, print_table, print_title, rounded, say, terminal_width, wrapped
from permix.estimators.known import known_of, labels_of

if TYPE_CHECKING:
    from permix.posterior.estimated import Recurrence
    from permix.sampling import Draws

# Of a ranking of more items, the first ones are written.
MOST_ITEMS = 40
# What a log-likelihood is measured in, said where it is shown.
NATS = "1 nat more: 2.7 times as probable"
LOSSES = {"vi": "variation of information", "binder": "Binder loss"}


def _n_agents(fit: Any, counts: np.ndarray) -> int:
    """Return how many agents were fitted: of data in shards, the rows of a fit are a sample."""
    return getattr(fit, "sampled_from", None) or int(counts.sum())


def items_report(items: Any, counts: np.ndarray, fit: Any = None) -> dict[str, Any]:
    """Return how many agents there are, the items, and what is known of them."""
    names = [str(item) for item in items]
    report: dict[str, Any] = {"agents": _n_agents(fit, counts), "rows": len(counts)}
    report |= {"number_of_items": len(names), "items": names}
    known = known_of(fit).items
    if known:
        report["item_labels"] = labels_of(fit, items)
        report["item_attributes"] = {name: known[name].tolist() for name in known}
    return report


def called(report: dict[str, Any], names: list[str]) -> list[str]:
    """Return what items are called in tables: with their party, where that is known."""
    labels = dict(zip(report["items"], report.get("item_labels", report["items"]), strict=True))
    return [labels[name] for name in names]


def data_title(report: dict[str, Any], title: str) -> str:
    """Begin the title of a table with how many agents and items there are."""
    return f"{title}: {count_of(report['agents'], 'agent')}, {count_of(report['number_of_items'], 'item')}"


# -- chains ----------------------------------------------------------------------------------------


def chains_report(draws: Draws) -> dict[str, Any]:
    """Return how many chains and draws there are, and the diagnostics of every quantity."""
    from permix.posterior.diagnostics import summary_rows, verdict_on

    n_chains, n_draws = next(iter(draws.arrays.values())).shape[:2]
    verdict = verdict_on(draws)
    return {
        "verdict": verdict.message.as_options(),
        "converged": verdict.converged,
        "chains": int(n_chains),
        "draws_per_chain": int(n_draws),
        "draws_made_per_chain": max(int(draws.n_made), int(n_draws)),
        "ended_by": draws.ended,
        "diagnostics": summary_rows(draws),
    }


def posterior_of_number(draws: np.ndarray) -> dict[str, float]:
    """Return the posterior probability of every number that occurs."""
    numbers, counts = np.unique(draws, return_counts=True)
    return {str(n): float(count / draws.size) for n, count in zip(numbers, counts, strict=True)}


def number_interval(posterior: dict[str, float]) -> list[int]:
    """Return the 5 %, 50 % and 95 % quantiles of a number."""
    numbers = [int(n) for n in posterior]
    upto = np.cumsum(list(posterior.values()))
    return [numbers[int(np.argmax(upto >= level - 1e-9))] for level in (0.05, 0.5, 0.95)]


def recurrence_report(recurrence: Recurrence, group: int) -> dict[str, Any]:
    """Return in how many chains a group was found, and how alike it was in the draws."""
    return {
        "found_in_chains": int(recurrence.n_chains[group]),
        "agreement": float(recurrence.agreement[group]),
    }


def found_in(n_found: int, report: dict[str, Any]) -> str:
    """Say in how many chains a group was found."""
    return f"{n_found} of {report['chains']} chains" if n_found else "none: unstable"


def print_chains(report: dict[str, Any]) -> None:
    """Write how far to trust the chains."""
    columns = ["mean", "sd", "ess_bulk", "r_hat"]
    if any(row["note"] for row in report["diagnostics"].values()):
        columns.append("note")
    print_table(
        f"Chains ({report['chains']} × {report['draws_per_chain']:,} draws; --json has more)",
        ["quantity", *columns],
        [[name, *[row[column] for column in columns]] for name, row in report["diagnostics"].items()],
    )


# -- climbs ----------------------------------------------------------------------------------------


def climb_report(fit: Any, reached: np.ndarray) -> dict[str, Any]:
    """Return the log-likelihood, how the climb ended, and how many starts ended near the best."""
    total = fit.log_likelihood
    return {
        "log_likelihood": float(total),
        "log_likelihood_standard_error": total.standard_error,
        "log_likelihood_per_agent": float(total) / _n_agents(fit, fit.counts),
        "converged": bool(fit.converged),
        "interrupted": bool(fit.interrupted),
        "starts_within_1_of_best": int((reached >= reached.max(initial=-np.inf) - 1.0).sum()),
    }


def baselines_report(fit: Any) -> dict[str, Any]:
    """Return the scores of simpler models on the data fitted, and how the fit compares with them in words."""
    if fit.baselines is None:
        return {"baselines": None, "against_baselines": None}
    from permix.estimators.baselines import KEPT, in_words

    scores = dict(zip(KEPT, fit.baselines.tolist(), strict=True))
    own = float(fit.log_likelihood) / _n_agents(fit, fit.counts)
    return {
        "baselines": scores,
        "against_baselines": in_words(own, scores, "Under this model, what an agent says"),
    }


def likelihood_line(report: dict[str, Any], of: str = "") -> str:
    """Write the log-likelihood with its error, and for one agent."""
    error = report.get("log_likelihood_standard_error", 0.0)
    total, each = rounded(report["log_likelihood"], 2), rounded(report["log_likelihood_per_agent"], 4)
    return (
        f"log-likelihood{of} {total}{f' ± {error:.2g}' if error > 0 else ''} nats ({each} per agent; {NATS})"
    )


def print_starts(report: dict[str, Any], n_starts: int, what: str = "log-likelihood") -> None:
    """Say how many starts ended near the best, where there were several."""
    near = report["starts_within_1_of_best"]
    alone = "; more --starts may find a better one" if near == 1 else ""
    if n_starts > 1:
        print(f"{near} of {n_starts} starts came within 1 of the best {what}{alone}")


def print_ending(report: dict[str, Any], steps: str, settled: str, unsettled: str) -> None:
    """Say whether a climb came to rest."""
    if report["interrupted"]:
        print(f"interrupted after {steps}")
    elif report["converged"]:
        print(f"{settled} after {steps}")
    else:
        print(f"{unsettled} after {steps}; a larger --max-iter goes further")


def print_orders(title: str, orders: list[list[str]]) -> None:
    """Write one ranking for each group, over as many lines as it takes; of very many items the first ones."""
    print_title(title)
    width = terminal_width() if sys.stdout.isatty() else 10**6
    digits = len(str(len(orders)))
    for k, order in enumerate(orders):
        left = len(order) - MOST_ITEMS
        shown = [*order[:MOST_ITEMS], f"… {left:,} more; --json shows all"] if left > 0 else order
        head = f"{k + 1:>{digits}}  "
        print("\n".join(wrapped([head + shown[0], *shown[1:]], width, ORDER, " " * len(head))))
    print()


def print_remarks(remarks: list[str]) -> None:
    """Write what a reader of the groups should know about them."""
    for remark in remarks:
        say(f"note: {remark}", "  ")
    if remarks:
        print()
