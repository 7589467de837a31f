"""How a Bayesian Mallows model is shown: everything as plain values, and tables for people."""

from __future__ import annotations

from typing import Any

from permix.bayes_mallows.by_agent.summary import drawn_weights
from permix.bayes_mallows.careless import agent_error_rows
from permix.bayes_mallows.consensus import credible_set
from permix.bayes_mallows.fit import BayesianMallowsFit
from permix.bayes_mallows.results import GroupSummaries
from permix.bayes_mallows.words import errors_line, remarks
from permix.cli import fit_tables
from permix.cli.agent_weights import print_weights, weights_report
from permix.cli.output import count_of, print_table, say
from permix.reporting.distance_words import distance_line, under
from permix.reporting.words import interval, percent, told_apart

# A terminal shows at most so many groups, numbers of groups, and agents who err.
MAX_GROUPS, MAX_NUMBERS, MAX_AGENTS = 30, 12, 10
CREDIBLE = 0.9


def report(fit: BayesianMallowsFit) -> dict[str, Any]:
    """Everything ``summary`` shows, as plain values."""
    summaries, settings = GroupSummaries(fit), fit.settings
    found: dict[str, Any] = {
        "model": fit.model,
        "distance": settings.distance,
        "prior": settings.partition_prior().describe(),
        "loss": fit.estimate.loss,
        **fit_tables.items_report(fit.items, fit.counts, fit),
        **fit_tables.chains_report(fit.draws),
        **weights_report(drawn_weights(fit)),
        "interrupted": fit.draws.interrupted,
        "groups_overlap": fit.overlapping,
        "number_of_groups": fit.n_clusters,
        "posterior_number_of_groups": fit_tables.posterior_of_number(fit.draws.arrays["n_groups"]),
        "groups": [_group_report(fit, summaries, e) for e in range(fit.n_clusters)],
        "remarks": remarks(fit, summaries),
    }
    if fit.n_possible_groups is not None:
        shown = {str(k): float(p) for k, p in enumerate(fit.n_possible_groups) if p >= 1e-6}
        found["posterior_number_of_possible_groups"] = shown
    if settings.errors is not None:
        found["errors"] = settings.errors
        found["errors_in_words"] = errors_line(fit)
        found["careless_agents"] = agent_error_rows(fit) if settings.errors_per_agent else None
    return found


def _group_report(fit: BayesianMallowsFit, summaries: GroupSummaries, e: int) -> dict[str, Any]:
    """One group; intervals are from 5 % to 95 %."""
    center = summaries.center_columns(e, min(3, len(fit.items)))
    share_low, share_high = summaries.share_intervals[:, e].tolist()
    low, high = summaries.dispersion_intervals[:, e].tolist()
    first, last = summaries.place_intervals(e)
    centers, chances, note = credible_set(summaries, e, CREDIBLE)
    return {
        "agents": int(fit.cluster_sizes[e]),
        "share": float(summaries.shares[e]),
        "share_low": share_low,
        "share_high": share_high,
        "how_sure": float(summaries.how_sure[e]),
        **fit_tables.recurrence_report(fit.recurrence, e),
        "dispersion": float(summaries.dispersions[e]),
        "dispersion_low": low,
        "dispersion_high": high,
        "expected_distance": float(summaries.expected_distances[e]),
        "center": [str(item) for item in center["item"]],
        **{name: center[name].tolist() for name in ("expected_rank", "rank_low", "rank_high")},
        "in_top_3": center["in_top"].tolist(),
        "place": list(range(1, len(first) + 1)),
        "place_low": first.tolist(),
        "place_high": last.tolist(),
        "most_probable_center": [str(fit.items[item]) for item in centers[0].tolist()],
        "most_probable_center_has": float(chances[0]),
        "centers_that_hold_90_percent": len(chances),
        "note_on_centers": note,
    }


def show(report: dict[str, Any], title: str) -> None:
    """Tables for people."""
    n, found = report["number_of_groups"], report["groups"][:MAX_GROUPS]
    kind = f"Bayesian Mallows model of {count_of(n, 'group')}{under(report['distance'])}"
    title = f"{fit_tables.data_title(report, title)}, {kind}"
    _print_numbers(report, title)
    several = n > 1
    rows = []
    for k, part in enumerate(found):
        share = [interval(part["share"], part["share_low"], part["share_high"])] * several
        mean, low, high = told_apart([part[f"dispersion{end}"] for end in ("", "_low", "_high")])
        sure = [f"{part['how_sure']:.0%}", f"{part['found_in_chains']} of {report['chains']}"] * several
        distance = f"{part['expected_distance']:.1f}"
        rows.append([k + 1, part["agents"], *share, f"{mean} ({low}–{high})", distance, *sure])
    columns = ["group", "agents", *(["share"] * several), "dispersion", "distance"]
    print_table("Groups" if several else "The group", [*columns, *(["how sure", "chains"] * several)], rows)
    _print_centers(report, found)
    if n > MAX_GROUPS:
        print(f"... and {count_of(n - MAX_GROUPS, 'smaller group')}; --json shows all\n")
    if report.get("errors"):
        _print_errors(report)
    _explain(report, several)
    print_weights(report)
    fit_tables.print_chains(report)
    for remark in report["remarks"]:
        say(f"note: {remark}")


def _explain(report: dict[str, Any], several: bool) -> None:
    """Say what the columns are."""
    if several:
        alone = "those for whom it is the most probable group"
        members = (
            alone if report["groups_overlap"] else "members in the partition that is nearest to all draws"
        )
        say(f"agents: {members}", "  ")
        say("share: how large a part of all agents the group is, with a 90% interval", "  ")
    say("dispersion: from 0, all rank as the center does, to 1, no agreement; with a 90% interval", "  ")
    say(distance_line(report["distance"], report["number_of_items"]), "  ")
    if several:
        say("how sure: the share of the members that one group of a draw holds", "  ")
        say("chains: those most of whose draws have a group that shares 60% of the members of both", "  ")
    print()


def _print_numbers(report: dict[str, Any], title: str) -> None:
    """Write the posterior of the number of groups, where it is not one number."""
    shown = {int(n): share for n, share in report["posterior_number_of_groups"].items() if share >= 0.005}
    if len(shown) == 1:
        print(f"{title}\n")
        return
    if len(shown) <= MAX_NUMBERS:
        rows = [[number, f"{share:.3f}"] for number, share in shown.items()]
        print_table(title, ["number of groups", "posterior probability"], rows)
        return
    low, middle, high = fit_tables.number_interval(report["posterior_number_of_groups"])
    print_table(title, ["number of groups", "from", "to"], [[middle, low, high]])


def _print_centers(report: dict[str, Any], found: list[dict[str, Any]]) -> None:
    """Write the items of every center, each with its interval of places where that is not one place."""
    orders = []
    for part in found:
        names = fit_tables.called(report, part["center"])
        places = zip(names, part["place_low"], part["place_high"], strict=True)
        orders.append([name if low == high else f"{name} ({low}–{high})" for name, low, high in places])
    fit_tables.print_orders("Centers, best first; in brackets where an item may stand instead", orders)
    for k, part in enumerate(found):
        which = f"group {k + 1}: " if len(found) > 1 else ""
        if part["note_on_centers"]:
            say(f"{which}{part['note_on_centers']}", "  ")
            continue
        chance = percent(part["most_probable_center_has"])
        same = part["most_probable_center"] == part["center"]
        most = f"the center shown is the most probable one ({chance})"
        most = most if same else f"the most probable center ({chance}) is another one"
        n = part["centers_that_hold_90_percent"]
        say(
            f"{which}{most}; {count_of(n, 'center')} hold{'s' if n == 1 else ''} 90% of the probability", "  "
        )
    print()


def _print_errors(report: dict[str, Any]) -> None:
    """Write how often comparisons are wrong, and who errs most."""
    say(f"errors: {report['errors_in_words']}")
    agents = report["careless_agents"]
    if agents:
        careless = [row for row in agents if row["careless"]]
        shown = (careless or agents)[:MAX_AGENTS]
        rows = [
            [
                row["agent"],
                row["comparisons"],
                f"{row['rate']:.0%} ({100 * row['low']:.0f}–{100 * row['high']:.0f})",
            ]
            for row in shown
        ]
        what = "Careless agents" if careless else "Nobody is careless; those who err most"
        more = f", {len(shown)} of {len(careless)}" if len(shown) < len(careless) else ""
        print()
        print_table(f"{what}{more}; --json has all", ["agent", "comparisons", "wrong"], rows)
    print()
