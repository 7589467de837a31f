"""What a Bayesian Mallows model found: the answer in sentences, and its report's sections."""

from __future__ import annotations

import numpy as np

from permix.bayes_mallows.by_agent.summary import drawn_weights
from permix.bayes_mallows.careless import agent_error_rows
from permix.bayes_mallows.consensus import credible_set, rank_probabilities
from permix.bayes_mallows.fit import BayesianMallowsFit
from permix.bayes_mallows.group_prior import around
from permix.bayes_mallows.results import GroupSummaries
from permix.bayes_mallows.words import careless_line, dispersion_words, errors_line, remarks
from permix.data.labels import Array
from permix.estimators.known import labels_of
from permix.reporting.agent_weights import weight_blocks, weight_sentences
from permix.reporting.ballots import with_ballots
from permix.reporting.charts import heat
from permix.reporting.chosen_number import chosen_by
from permix.reporting.content import Answer, Block, Figure, Note, Paragraph, Section, Table
from permix.reporting.context import Context
from permix.reporting.distance_words import FACTS, largest, under
from permix.reporting.rank_answer import sentences
from permix.reporting.rank_groups import RankedGroup, RankedGroups, as_far_as_told
from permix.reporting.rank_sections import (
    IN_PICTURE,
    group_sections,
    numbers_figure,
    pairs_section,
    split_section,
)
from permix.reporting.shared import covariate_blocks, gaps_section
from permix.reporting.verdicts import of_chains, of_recurrence, verdict
from permix.reporting.words import capital, count_of, interval, listed, percent, shown

REFERENCE = (
    "Vitelli, Sørensen, Crispino, Frigessi and Arjas (2018), Probabilistic preference learning with the "
    "Mallows rank model, Journal of Machine Learning Research 18(158), 1–49. Comparisons with errors: "
    "Crispino, Arjas, Vitelli, Barrett and Frigessi (2019), A Bayesian Mallows approach to nontransitive "
    "pair comparison data: how human are sounds?, Annals of Applied Statistics 13, 492–519."
)
CREDIBLE = 0.9
# Groups whose ranks are drawn, and agents in the table of those who err.
MOST_HEATS, MOST_AGENTS = 4, 20
# Items that a sentence names.
MOST_NAMED = 3


def found_groups(fit: BayesianMallowsFit, summaries: GroupSummaries, *, sure: bool = True) -> RankedGroups:
    """Return the groups as reports describe them; with ``sure`` also how sure every row's group is."""
    groups, n_items, distance = [], len(fit.items), fit.settings.distance
    n_chains = fit.draws.arrays["labels"].shape[0]
    put_first = summaries.put_first(fit.groups.decays) if distance == "kendall" else None
    for e in range(fit.n_clusters):
        low, high = summaries.share_intervals[:, e].tolist()
        apart = f"{summaries.expected_distances[e]:.1f} of {largest(distance, n_items):,}"
        only = fit.n_clusters == 1
        groups.append(
            RankedGroup(
                float(summaries.shares[e]),
                None if only else low,
                None if only else high,
                agents=int(fit.cluster_sizes[e]),
                how_sure=float(summaries.how_sure[e]),
                order=np.asarray(summaries.centers.orders[e]),
                places=summaries.place_intervals(e),
                found=int(fit.recurrence.n_chains[e]),
                facts=(("dispersion", dispersion_words(summaries, e)), (FACTS[distance], apart)),
                first=None if put_first is None else put_first[e],
            )
        )

    def draw(e: int, size: int, rng: np.random.Generator) -> Array:
        rows, shares = summaries.members(e)
        chosen = rng.multinomial(size, shares)
        drawn = [
            around(distance, float(fit.groups.decays[row]), fit.groups.centers[row], times, rng)
            for row, times in zip(rows.tolist(), chosen.tolist(), strict=True)
            if times
        ]
        return np.concatenate(drawn)

    return RankedGroups(
        [shown(name) for name in labels_of(fit, fit.items)],
        groups,
        fit.n_agents,
        draw,
        share_is="Intervals hold 90% of the posterior draws.",
        center_is="The center is the ranking that members are spread around; items by mean place over draws.",
        places_are="May be: between which places the item stands in the center in 90% of the draws.",
        runs=int(n_chains),
        probabilities=fit.probabilities if sure else None,
        counts=fit.counts,
    )


def answer(fit: BayesianMallowsFit, context: Context) -> Answer:
    """Say what was found, and how far to trust it."""
    summaries = GroupSummaries(fit)
    n_chains = fit.draws.arrays["labels"].shape[0]
    judged = [of_chains(fit.draws)]
    if fit.n_clusters > 1:
        judged += of_recurrence(fit.recurrence.n_chains.tolist(), n_chains, "chain")
    advice = []
    if fit.overlapping:
        judged.append(
            (
                "care",
                "The groups overlap: the partition nearest to all draws joins some of them. Every agent is "
                "shown in the most probable group instead.",
            )
        )
    if judged[0][0] == "bad":
        advice.append("Run the chains for longer, or with another seed, before you build on numbers below.")
    found = as_far_as_told(found_groups(fit, summaries, sure=False), context)
    said = [*sentences(found), *_united(fit, summaries, found), *_how_many(fit), *_errors(fit)]
    said += weight_sentences(drawn_weights(fit))
    return Answer(verdict(judged, advice), tuple(said))


def _united(fit: BayesianMallowsFit, summaries: GroupSummaries, found: RankedGroups) -> list[str]:
    """Say how sure the center of a single group is, and how united the group is."""
    if fit.n_clusters > 1:
        return []
    order, distance = found.groups[0].order.tolist(), fit.settings.distance
    low, high = summaries.place_intervals(0)
    loose = [at for at in range(len(order)) if low[at] < high[at]]
    widest = sorted(sorted(loose, key=lambda at: (low[at] - high[at], at))[:MOST_NAMED])
    which = [f"{found.short[order[at]]} ({low[at]}–{high[at]})" for at in widest]
    sure = f"{len(order) - len(loose)} of the {len(order):,} places of its center are sure"
    if not loose:
        sure = "All places of its center are sure"
    elif len(loose) == len(order):
        sure = "No place of its center is sure"
    least = (
        ""
        if not which
        else f"; {'the others:' if len(loose) == len(widest) else 'least sure:'} {listed(which)}"
    )
    apart = f"{summaries.expected_distances[0]:.1f} of {largest(distance, len(order)):,} at most"
    return [
        f"{sure}, with a probability of 90%{least}.",
        f"Its dispersion, from 0 for full agreement to 1 for none, is {dispersion_words(summaries, 0)}. "
        f"The distance of an agent from the center is {apart}, on average ({FACTS[distance]}).",
    ]


def _how_many(fit: BayesianMallowsFit) -> list[str]:
    """Say how sure the number of groups is, where draws have others than those shown."""
    drawn = np.asarray(fit.draws.arrays["n_groups"]).ravel()
    low, high = (int(end) for end in np.quantile(drawn, (0.05, 0.95), method="inverted_cdf"))
    if low == high == fit.n_clusters:
        return []
    span = f"{low}" if low == high else f"{low} to {high}"
    if low >= fit.n_clusters:
        small = "the others small ones that come and go; those shown are what lasts"
        return [f"There may be more groups: 90% of the draws have {span}, {small}."]
    return [f"How many groups there are is not sure: 90% of the draws have {span}."]


def _errors(fit: BayesianMallowsFit) -> list[str]:
    """Say how often comparisons are wrong, and who is careless."""
    if fit.settings.errors is None:
        return []
    return [f"{errors_line(fit)}.", *([careless_line(fit)] if fit.settings.errors_per_agent else [])]


def subtitle(fit: BayesianMallowsFit) -> str:
    """Say what the report is about."""
    data = f"{count_of(fit.n_agents, 'agent')}, {count_of(len(fit.items), 'item')}"
    errors = f", with {fit.settings.errors} errors" if fit.settings.errors else ""
    kind = f"Bayesian Mallows model of {count_of(fit.n_clusters, 'group')}"
    return f"{data}; {kind}{under(fit.settings.distance)}{errors}"


def completed(fit: BayesianMallowsFit, context: Context) -> Context:
    """Add what the data say, which the fit keeps."""
    rows = fit.probabilities
    return with_ballots(context, fit.preferences, rows.argmax(axis=1), rows.max(axis=1), fit.counts)


def sections(fit: BayesianMallowsFit, context: Context) -> list[Section]:
    """Describe the groups."""
    summaries = GroupSummaries(fit)
    found = as_far_as_told(found_groups(fit, summaries), context)
    blocks: list[Block] = [Note(f"{capital(remark)}.") for remark in remarks(fit, summaries)]
    blocks += _centers(fit, summaries, found)
    blocks += _error_blocks(fit)
    blocks += weight_blocks(drawn_weights(fit))
    return [
        group_sections(found, context, *blocks, *covariate_blocks(fit)),
        split_section(found),
        pairs_section(found),
        _numbers(fit, context),
        gaps_section(context),
    ]


def _centers(fit: BayesianMallowsFit, summaries: GroupSummaries, found: RankedGroups) -> list[Block]:
    """Draw how probable every rank of every item is in each center, and say which centers are probable."""
    blocks: list[Block] = []
    rows: list[tuple[str, ...]] = []
    notes = []
    for e in range(fit.n_clusters):
        title = capital(found.title(e))
        centers, chances, note = credible_set(summaries, e, CREDIBLE)
        if note:
            notes.append(f"{title}: {note}.")
        else:
            order = " ≻ ".join(found.short[item] for item in centers[0].tolist())
            rows.append((title, order, percent(float(chances[0])), str(len(chances))))
        if len(chances) > 1 and e < MOST_HEATS:
            blocks.append(_heat(summaries, found, e))
    if rows:
        held = Table(
            "The most probable centers",
            ("group", "most probable center", "its probability", "centers that hold 90%"),
            tuple(rows),
            "How many rankings hold the center with a probability of 90%: the fewer, the surer it is as a "
            "whole.",
        )
        blocks.append(held)
    return [*blocks, *(Note(note) for note in notes)]


def _heat(summaries: GroupSummaries, found: RankedGroups, e: int) -> Figure:
    """Draw P(item has this rank in the center)."""
    order = found.groups[e].order[:IN_PICTURE]
    chances = rank_probabilities(summaries, e)[order]
    last = int(np.flatnonzero(chances.max(axis=0) >= 0.005).max(initial=0)) + 1
    names = [found.short[item] for item in order.tolist()]
    some = "" if len(order) == found.n_items else f" The first {len(order)} items."
    return heat(
        f"Where each item stands in the center of {found.title(e)}",
        "Probability, in percent, that an item has a rank in the center; a single strong color in a row "
        f"is a sure place.{some}",
        chances[:, :last],
        names,
        [str(rank + 1) for rank in range(last)],
        corner="item",
        low=0.0,
        high=1.0,
        in_cells=lambda value: "" if value < 0.005 else f"{100 * value:.0f}",
    )


def _error_blocks(fit: BayesianMallowsFit) -> list[Block]:
    """Describe errors of comparisons, and who is careless."""
    if fit.settings.errors is None:
        return []
    said = f"{errors_line(fit)}. {careless_line(fit)}".strip()
    if not fit.settings.errors_per_agent:
        return [Paragraph(said)]
    rows = agent_error_rows(fit)[:MOST_AGENTS]
    table = Table(
        "Who errs most",
        ("agent", "comparisons", "wrong", "careless"),
        tuple(
            (
                shown(row["agent"]),
                row["comparisons"],
                interval(row["rate"], row["low"], row["high"]),
                "yes" if row["careless"] else "",
            )
            for row in rows
        ),
        "Wrong: share of the agent's comparisons, with a 90% interval. Careless: more than twice the usual "
        "rate, and more than 10%, with a probability of 95%.",
    )
    return [Paragraph(said), table]


def _numbers(fit: BayesianMallowsFit, context: Context) -> Section:
    """Say what the number of groups was chosen by, or draw its posterior."""
    title = "How many groups there are"
    drawn = np.asarray(fit.draws.arrays["n_groups"]).ravel()
    if isinstance(fit.settings.n_components, int):
        return Section("numbers", title, tuple(chosen_by(context, fit.settings.n_components)))
    values, times = np.unique(drawn, return_counts=True)
    posterior = dict(zip(values.tolist(), (times / drawn.size).tolist(), strict=True))
    low, high = (int(end) for end in np.quantile(drawn, (0.05, 0.95), method="inverted_cdf"))
    span = f"{low}" if low == high else f"{low} to {high}"
    said = Paragraph(
        f"90% of the draws have {span} groups, small ones included; {fit.n_clusters} are shown: the "
        "partition nearest to all draws leaves out small groups that come and go."
    )
    return Section(
        "numbers",
        title,
        (said, numbers_figure(posterior, "groups", "Posterior probability of each number of groups.")),
    )
