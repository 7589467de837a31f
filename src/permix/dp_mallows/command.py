"""What ``permix fit dp-mallows`` does, and how a mixture of generalized Mallows models is shown."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import typer

from permix.cli.inspect import ReadOptions, check_model_name, check_picture, check_targets
from permix.cli.output import count_of, print_json, print_table, running_fit
from permix.mallows.command import ORDER, terminal_width

if TYPE_CHECKING:
    from permix.dp_mallows.fit import DPMallowsFit
    from permix.dp_mallows.results import ClusterSummaries
    from permix.partitions import Gamma

# A terminal shows at most so many clusters, and of a center so many items.
# From this R-hat on the report says so before anything else.
NOT_CONVERGED = 1.5
MAX_CLUSTERS = 30
MAX_ITEMS = 10
# A posterior of the number of clusters is shown as a table up to so many lines.
MAX_NUMBERS = 12
# Width of a decay with its interval in a table.
DECAY_WIDTH = len("1.05 (0.91–1.20)  ")


class ListTargets(NamedTuple):
    """The files a fit writes, and the folder of its chains."""

    output: Path
    labels: Path | None
    picture: Path | None
    store: Path | None
    keep_chains: bool
    force: bool


def concentration_of(text: str) -> float | Gamma:
    """Read ``--concentration``: a number, or gamma(SHAPE,RATE).

    Examples
    --------
    >>> concentration_of("0.5"), concentration_of("gamma(2, 1)")
    (0.5, Gamma(shape=2.0, rate=1.0))
    """
    number = _number(text)
    if number is not None:
        return number
    found = re.fullmatch(r"\s*gamma\s*\(([^,()]+),([^,()]+)\)\s*", text, flags=re.IGNORECASE)
    numbers = [] if found is None else [_number(part) for part in found.groups()]
    if not numbers or None in numbers:
        raise typer.BadParameter(
            f"--concentration takes a number or gamma(SHAPE,RATE), such as 'gamma(1,1)', not {text!r}"
        )

    from permix.partitions import Gamma

    return Gamma(*(value for value in numbers if value is not None))


def rates_of(text: str) -> float | list[float]:
    """Read ``--prior-rate``: one number, or one for each place.

    Examples
    --------
    >>> rates_of("1"), rates_of("1,0.5")
    (1.0, [1.0, 0.5])
    """
    numbers = [_number(part) for part in text.split(",")]
    rates = [value for value in numbers if value is not None]
    if len(rates) < len(numbers):
        raise typer.BadParameter(f"--prior-rate takes a number, or several such as 1,1,0.5, not {text!r}")
    return rates[0] if len(rates) == 1 else rates


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def run_fit_dp_mallows(
    votes_file: ReadOptions, targets: ListTargets, choices: dict[str, Any], quiet: bool, as_json: bool
) -> None:
    """Fit, save, and show what was found."""
    output = targets.output
    votes_file.refuse_keep()
    check_model_name(output)
    check_picture(targets.picture)
    chains = targets.store or output.with_name(output.name + ".chains")
    wanted = [target for target in (output, targets.labels, targets.picture) if target is not None]
    # Chains that are still there are a run that was cut short: the same command may replace what it left.
    check_targets(wanted, [votes_file.file], targets.force or (targets.store is None and chains.exists()))

    from permix.dp_mallows.fit import fit_dp_mallows
    from permix.dp_mallows.input import as_top_lists
    from permix.dp_mallows.settings import DPMallowsSettings

    settings = DPMallowsSettings(**choices, progress=False if quiet or as_json else None, store=chains)
    votes = as_top_lists(votes_file.read())
    if chains.exists() and not (as_json or quiet):
        print(f"found chains in {chains}", file=sys.stderr)
    with running_fit(chains):
        fit = fit_dp_mallows(votes, settings)
    _save(fit, votes_file, targets, chains)
    report = list_report(fit)
    if as_json:
        print_json({"file": str(output), **report})
    else:
        print_lists(report, output.name)
    if fit.draws.interrupted:
        print(f"permix: interrupted; the same command goes on from {chains}", file=sys.stderr)
        raise typer.Exit(130)


def _save(fit: DPMallowsFit, votes_file: ReadOptions, targets: ListTargets, chains: Path) -> None:
    """Write model, labels and picture; remove chains that are of no use any more."""
    from permix.dp_mallows.archive import save_dp_mallows

    save_dp_mallows(fit, targets.output)
    if not (fit.draws.interrupted or targets.keep_chains or targets.store is not None):
        if fit.draws.n_stored > fit.settings.n_draws:
            print(f"{chains} holds {fit.draws.n_stored:,} draws and is kept", file=sys.stderr)
        else:
            shutil.rmtree(chains)
    if targets.labels is not None:
        write_labels(fit, votes_file.agents_of(fit.rankings), targets.labels)
    if targets.picture is not None:
        from permix.plots import overview

        overview(fit, targets.picture)


def write_labels(fit: DPMallowsFit, agents: list[Any], path: Path) -> None:
    """Write each row's cluster and the probability that an agent of it is with its fellow members.

    The agents of a row with a count may be in several clusters; each has a line, with how many they are.
    """
    import pandas as pd

    from permix.files import atomic_writer
    from permix.partitions import assignment_confidence

    counts = np.asarray(fit.rankings.counts)
    frame = pd.DataFrame(
        {
            "row": np.repeat(np.arange(len(counts)), counts),
            "cluster": fit.labels + 1,
            "confidence": assignment_confidence(fit.clusters.labels, fit.labels),
        }
    )
    lines = frame.groupby(["row", "cluster"], sort=True)["confidence"].agg(["size", "mean"]).reset_index()
    columns: dict[str, Any] = {"agent": [agents[row] for row in lines["row"]]}
    if np.any(counts != 1):
        columns["count"] = lines["size"]
    columns |= {"cluster": lines["cluster"], "confidence": lines["mean"].round(4)}
    with atomic_writer(path) as handle:
        pd.DataFrame(columns).to_csv(handle, index=False)


def list_report(fit: DPMallowsFit) -> dict[str, Any]:
    """Everything ``summary`` shows, as plain values."""
    from permix.dp_mallows.fit import chosen_assignments
    from permix.dp_mallows.results import ClusterSummaries
    from permix.posterior import summary

    draws = fit.draws.arrays["n_clusters"]
    numbers, counts = np.unique(draws, return_counts=True)
    summaries, settings = ClusterSummaries(fit), fit.settings
    n_agents = int(fit.rankings.n_agents)
    return {
        "model": "DPMallowsMixture",
        "sampler": settings.sampler,
        "assignments": chosen_assignments(settings, n_agents),
        "loss": fit.estimate.loss,
        "agents": n_agents,
        "rows": len(fit.rankings),
        "number_of_items": len(fit.items),
        "items": [str(item) for item in fit.items],
        "longest_list": int(fit.rankings.lengths.max()),
        "chains": int(draws.shape[0]),
        "draws_per_chain": int(draws.shape[1]),
        "interrupted": fit.draws.interrupted,
        "shows_a_draw": fit.shows_a_draw,
        "number_of_clusters": fit.n_clusters,
        "posterior_number_of_clusters": {
            str(number): float(count / draws.size) for number, count in zip(numbers, counts, strict=True)
        },
        "clusters": [_cluster_report(fit, summaries, e) for e in range(fit.n_clusters)],
        "diagnostics": {str(name): row.to_dict() for name, row in summary(fit.draws).iterrows()},
        "remarks": summaries.remarks(),
    }


def _cluster_report(fit: DPMallowsFit, summaries: ClusterSummaries, e: int) -> dict[str, Any]:
    """One cluster; intervals are from 5 % to 95 %."""
    center = summaries.center_table(e)
    low, high = summaries.size_intervals[:, e] / len(fit.labels)
    return {
        "agents": int(fit.cluster_sizes[e]),
        "share": float(summaries.shares[e]),
        "share_low": float(low),
        "share_high": float(high),
        "together": float(summaries.together[e]),
        "expected_distance": float(summaries.expected_distances[e]),
        "center": [str(item) for item in center["item"]],
        "expected_rank": center["expected_rank"].tolist(),
        "rank_low": center["rank_low"].tolist(),
        "rank_high": center["rank_high"].tolist(),
        "theta": summaries.theta[e].tolist(),
        "theta_low": summaries.theta_intervals[0, e].tolist(),
        "theta_high": summaries.theta_intervals[1, e].tolist(),
        "lists_at_rank": summaries.lists_at_stage[e].tolist(),
    }


def print_lists(report: dict[str, Any], title: str) -> None:
    """Tables for people."""
    n, found = report["number_of_clusters"], report["clusters"][:MAX_CLUSTERS]
    kinds = count_of(n, "cluster")
    _print_numbers(
        report,
        f"{title}: {count_of(report['agents'], 'agent')}, {count_of(report['number_of_items'], 'item')}",
    )
    loss = "variation of information" if report["loss"] == "vi" else "Binder loss"
    if any(row["r_hat"] > NOT_CONVERGED for row in report["diagnostics"].values()):
        print(
            "NOT CONVERGED: the chains tell different stories; what follows may change with more iterations."
        )
    which = (
        "those of the draw nearest to all others"
        if report["shows_a_draw"]
        else "the partition nearest to all draws"
    )
    print(
        f"The {kinds} below {'is' if n == 1 else 'are'} {which} (least expected {loss}); shares are means "
        "over draws of the clusters most like each, intervals hold 90 %.\n"
    )
    print_table(
        "Clusters",
        ["cluster", "agents", "share", "from", "to", "together", "expected distance"],
        [
            [
                k + 1,
                part["agents"],
                *(f"{part[name]:.1%}" for name in ("share", "share_low", "share_high", "together")),
                round(part["expected_distance"], 2),
            ]
            for k, part in enumerate(found)
        ],
    )
    _print_centers(report, found)
    _print_decays(report, found)
    if n > MAX_CLUSTERS:
        print(f"... and {count_of(n - MAX_CLUSTERS, 'smaller cluster')}; --json shows all\n")
    print(
        "together: the share of the members that one cluster of a draw holds\n"
        f"expected distance: pairs that a list of {report['longest_list']} orders unlike the center\n"
        "decay: at 0 every item left is as likely to come next; the larger, the surer the center's next one\n"
    )
    columns = ["mean", "sd", "ess_bulk", "r_hat", "note"]
    print_table(
        f"Chains ({report['chains']} × {report['draws_per_chain']:,} draws; --json has more)",
        ["quantity", *columns],
        [[name, *[row[column] for column in columns]] for name, row in report["diagnostics"].items()],
    )
    for remark in report["remarks"]:
        print(f"note: {remark}")


def _print_numbers(report: dict[str, Any], title: str) -> None:
    """Write the posterior of the number of clusters: a table, or what it comes to."""
    title = f"{title}, Dirichlet-process mixture of generalized Mallows models"
    posterior = {int(number): share for number, share in report["posterior_number_of_clusters"].items()}
    shown = {number: share for number, share in posterior.items() if share >= 0.005}
    if len(shown) <= MAX_NUMBERS and sum(shown.values()) > 0.9:
        rows = [[number, f"{share:.3f}"] for number, share in shown.items()]
        print_table(title, ["number of clusters", "posterior probability"], rows)
        return
    upto = np.cumsum(list(posterior.values()))
    low, middle, high = (list(posterior)[int(np.argmax(upto >= level - 1e-9))] for level in (0.05, 0.5, 0.95))
    print_table(title, ["number of clusters", "from", "to"], [[middle, low, high]])


def _print_centers(report: dict[str, Any], found: list[dict[str, Any]]) -> None:
    """Write the first items of every center, each with its interval of ranks where that is not one rank."""
    width = terminal_width() - len("cluster  ")
    rows = []
    for k, part in enumerate(found):
        names = [
            name if low == high else f"{name} ({low}–{high})"
            for name, low, high in zip(part["center"], part["rank_low"], part["rank_high"], strict=True)
        ]
        rows.append([k + 1, from_the_top(names, width)])
    print_table(
        "Centers, best first; in brackets where an item may stand instead", ["cluster", "center"], rows
    )


def from_the_top(names: list[str], width: int) -> str:
    """Join the first names, at most ten and as many as fit, and say how many are left.

    Examples
    --------
    >>> from_the_top(["tea", "coffee", "milk", "juice"], 60)
    'tea ≻ coffee ≻ milk ≻ juice'
    >>> from_the_top(["tea", "coffee", "milk", "juice"], 25)
    'tea ≻ coffee ≻ … 2 more'
    """
    for shown in range(min(len(names), MAX_ITEMS), 0, -1):
        left = len(names) - shown
        text = ORDER.join([*names[:shown], *([f"… {left:,} more"] if left else [])])
        if len(text) <= width:
            break
    return text


def _print_decays(report: dict[str, Any], found: list[dict[str, Any]]) -> None:
    """Write the decays of the first places, as many as fit, with their intervals."""
    n_places = len(found[0]["theta"])
    shown = max(1, min(n_places, (terminal_width() - len("cluster  ")) // DECAY_WIDTH))
    rows = []
    for k, part in enumerate(found):
        places = zip(part["theta"], part["theta_low"], part["theta_high"], strict=True)
        cells = [f"{mean:.2f} ({low:.2f}–{high:.2f})" for mean, low, high in places]
        rows.append([k + 1, *cells[:shown]])
    some = f", the first {shown} of {n_places} ranks; --json shows all" if shown < n_places else ""
    print_table(f"Decay by rank{some}", ["cluster", *(f"rank {j + 1}" for j in range(shown))], rows)
