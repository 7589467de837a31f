"""How a Dirichlet-process mixture of generalized Mallows models is shown: plain values, and tables."""

from __future__ import annotations

from typing import Any

from permix.cli import fit_tables
from permix.cli.output import count_of, print_table, say, terminal_width
from permix.dp_mallows.fit import DPMallowsFit, chosen_assignments
from permix.dp_mallows.results import ClusterSummaries
from permix.reporting.words import OF_ALL, interval

# A terminal shows at most so many groups.
MAX_GROUPS = 30
# A posterior of the number of groups is shown as a table up to so many lines.
MAX_NUMBERS = 12
# What mixtures are called by their priors.
MIXTURES = {"DirichletProcess": "Dirichlet-process mixture", "PitmanYor": "Pitman–Yor mixture"}
# Width of a decay with its interval in a table.
DECAY_WIDTH = len("1.05 (0.91–1.20)  ")


def report(fit: DPMallowsFit) -> dict[str, Any]:
    """Everything ``summary`` shows, as plain values."""
    summaries, settings = ClusterSummaries(fit), fit.settings
    return {
        "model": fit.model,
        "sampler": settings.sampler,
        "assignments": chosen_assignments(settings, fit.n_agents),
        "prior": fit.clusters.prior.describe(),
        "prior_strength": fit.strength,
        "prior_rate": fit.rates.tolist(),
        "loss": fit.estimate.loss,
        **fit_tables.items_report(fit.items, fit.rankings.counts, fit),
        "longest_list": int(fit.rankings.lengths.max()),
        **fit_tables.chains_report(fit.draws),
        "interrupted": fit.draws.interrupted,
        "shows_a_draw": fit.shows_a_draw,
        "number_of_groups": fit.n_clusters,
        "posterior_number_of_groups": fit_tables.posterior_of_number(fit.draws.arrays["n_groups"]),
        **_possible(fit),
        "groups": [_group_report(fit, summaries, e) for e in range(fit.n_clusters)],
        "shares_are": OF_ALL.format("agents"),
        "remarks": summaries.remarks(),
    }


def _possible(fit: DPMallowsFit) -> dict[str, Any]:
    """The posterior of the number of groups with those without agents, where the prior has such a number."""
    if fit.n_possible_groups is None:
        return {}
    shown = {str(k): float(p) for k, p in enumerate(fit.n_possible_groups) if p >= 1e-6}
    return {"posterior_number_of_possible_groups": shown}


def _group_report(fit: DPMallowsFit, summaries: ClusterSummaries, e: int) -> dict[str, Any]:
    """One group; intervals are from 5 % to 95 %."""
    center = summaries.center_columns(e, summaries.length)
    low, high = summaries.share_intervals[:, e]
    first, last = summaries.place_intervals(e)
    return {
        "agents": int(fit.scaled_sizes[e]),
        "share": float(summaries.shares[e]),
        "share_low": float(low),
        "share_high": float(high),
        "how_sure": float(summaries.how_sure[e]),
        **fit_tables.recurrence_report(fit.recurrence, e),
        "expected_distance": float(summaries.expected_distances[e]),
        "center": [str(item) for item in center["item"]],
        **{name: center[name].tolist() for name in ("expected_rank", "rank_low", "rank_high")},
        "place": list(range(1, len(first) + 1)),
        "place_low": first.tolist(),
        "place_high": last.tolist(),
        "theta": summaries.theta[e].tolist(),
        "theta_low": summaries.theta_intervals[0, e].tolist(),
        "theta_high": summaries.theta_intervals[1, e].tolist(),
        "lists_at_rank": summaries.lists_at_stage[e].tolist(),
    }


def show(report: dict[str, Any], title: str) -> None:
    """Tables for people."""
    n, found = report["number_of_groups"], report["groups"][:MAX_GROUPS]
    groups = count_of(n, "group")
    _print_numbers(report, fit_tables.data_title(report, title))
    which = "the partition nearest to all draws"
    if report["shows_a_draw"]:
        which = f"{'that' if n == 1 else 'those'} of the draw nearest to all others"
    say(
        f"The {groups} below {'is' if n == 1 else 'are'} {which} (least expected "
        f"{fit_tables.LOSSES[report['loss']]}); shares are means over draws of the groups most like each, "
        "intervals hold 90%."
    )
    print()
    rows = []
    for k, part in enumerate(found):
        share = interval(part["share"], part["share_low"], part["share_high"])
        found_in = f"{part['found_in_chains']} of {report['chains']}"
        distance = f"{part['expected_distance']:.1f}"
        rows.append([k + 1, part["agents"], share, f"{part['how_sure']:.0%}", found_in, distance])
    columns = ["group", "agents", "share", "how sure", "chains", "distance"]
    print_table("Groups", columns, rows)
    _print_centers([{**part, "center": fit_tables.called(report, part["center"])} for part in found])
    _print_decays(found)
    if n > MAX_GROUPS:
        print(f"... and {count_of(n - MAX_GROUPS, 'smaller group')}; --json shows all\n")
    say("agents: members in the partition shown, which need not be the same part as the share", "  ")
    say("how sure: the share of the members that one group of a draw holds", "  ")
    say("chains: those most of whose draws have a group that shares 60% of the members of both", "  ")
    say(f"distance: pairs that a list of {report['longest_list']} orders unlike the center", "  ")
    say(f"share: {report['shares_are']}", "  ")
    decay = "at 0 every item left is as likely to come next; the larger, the surer the center's next one"
    say(f"decay: {decay}", "  ")
    print()
    fit_tables.print_chains(report)
    for remark in report["remarks"]:
        say(f"note: {remark}")


def _print_numbers(report: dict[str, Any], title: str) -> None:
    """Write the posterior of the number of groups: a table, or what it comes to."""
    mixture = MIXTURES.get(report["prior"]["prior"], "mixture")
    title = f"{title}, {mixture} of generalized Mallows models"
    shown = {int(n): share for n, share in report["posterior_number_of_groups"].items() if share >= 0.005}
    if len(shown) <= MAX_NUMBERS and sum(shown.values()) > 0.9:
        rows = [[number, f"{share:.3f}"] for number, share in shown.items()]
        print_table(title, ["number of groups", "posterior probability"], rows)
        return
    low, middle, high = fit_tables.number_interval(report["posterior_number_of_groups"])
    print_table(title, ["number of groups", "from", "to"], [[middle, low, high]])


def _print_centers(found: list[dict[str, Any]]) -> None:
    """Write the items of every center, each with its interval of places where that is not one place."""
    orders = [
        [
            name if low == high else f"{name} ({low}–{high})"
            for name, low, high in zip(part["center"], part["place_low"], part["place_high"], strict=True)
        ]
        for part in found
    ]
    fit_tables.print_orders("Centers, best first; in brackets where an item may stand instead", orders)


def _print_decays(found: list[dict[str, Any]]) -> None:
    """Write the decays of the first places, as many as fit, with their intervals."""
    n_places = len(found[0]["theta"])
    shown = max(1, min(n_places, (terminal_width() - len("group  ")) // DECAY_WIDTH))
    rows = []
    for k, part in enumerate(found):
        places = zip(part["theta"], part["theta_low"], part["theta_high"], strict=True)
        cells = [f"{mean:.2f} ({low:.2f}–{high:.2f})" for mean, low, high in places]
        rows.append([k + 1, *cells[:shown]])
    some = f", the first {shown} of {n_places} ranks; --json shows all" if shown < n_places else ""
    print_table(f"Decay by rank{some}", ["group", *(f"rank {j + 1}" for j in range(shown))], rows)
