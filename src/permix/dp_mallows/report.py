"""What a mixture of generalized Mallows models found: the answer in sentences, and its report's sections."""

from __future__ import annotations

import numpy as np

from permix.data.labels import Array
from permix.dp_mallows.fit import DPMallowsFit
from permix.dp_mallows.predict import ListPredictive
from permix.dp_mallows.results import ClusterSummaries
from permix.estimators.known import labels_of
from permix.reporting.ballots import with_ballots
from permix.reporting.content import Answer, Block, Note, Paragraph, Section
from permix.reporting.context import Context
from permix.reporting.rank_answer import sentences
from permix.reporting.rank_groups import RankedGroup, RankedGroups, as_far_as_told
from permix.reporting.rank_sections import group_sections, numbers_figure, pairs_section, split_section
from permix.reporting.shared import covariate_blocks, gaps_section
from permix.reporting.verdicts import of_chains, of_recurrence, verdict
from permix.reporting.words import OF_ALL, count_of, shown

REFERENCE = (
    "Meilă and Chen (2010), Dirichlet process mixtures of generalized Mallows models, Proceedings of the "
    "26th Conference on Uncertainty in Artificial Intelligence, 358–367."
)


def found_groups(fit: DPMallowsFit, summaries: ClusterSummaries, *, sure: bool = True) -> RankedGroups:
    """Return the groups as reports describe them; with ``sure`` also how sure every row's group is."""
    groups = []
    n_chains = fit.draws.arrays["labels"].shape[0]
    put_first = summaries.put_first(fit.clusters.theta[:, 0])
    for e in range(fit.n_clusters):
        low, high = summaries.share_intervals[:, e]
        groups.append(
            RankedGroup(
                float(summaries.shares[e]),
                float(low),
                float(high),
                agents=int(fit.scaled_sizes[e]),
                how_sure=float(summaries.how_sure[e]),
                order=np.asarray(summaries.centers.orders[e]),
                places=summaries.place_intervals(e),
                found=int(fit.recurrence.n_chains[e]),
                facts=(("pairs unlike the center", f"{summaries.expected_distances[e]:.1f}"),),
                first=put_first[e],
            )
        )
    predictive = ListPredictive(fit)

    def draw(e: int, size: int, rng: np.random.Generator) -> Array:
        return predictive.sample_full(size, rng, among=summaries.members(e))

    return RankedGroups(
        [shown(name) for name in labels_of(fit, fit.items)],
        groups,
        fit.n_agents,
        draw,
        share_is=f"Intervals hold 90% of the posterior draws{_of_sample(fit)}. {OF_ALL.format('agents')}",
        center_is="The center is the ranking that members are spread around; items by mean place over draws.",
        places_are="May be: between which places the item stands in the center in 90% of the draws.",
        runs=int(n_chains),
        probabilities=fit.probabilities if sure else None,
        counts=np.asarray(fit.rankings.counts),
    )


def _of_sample(fit: DPMallowsFit) -> str:
    """Say so where numbers of members are those of a sample."""
    n = int(fit.rankings.n_agents)
    if fit.n_agents == n:
        return ""
    return f"; numbers of agents in groups are those in a random sample of {n:,}, scaled to all"


def answer(fit: DPMallowsFit, context: Context) -> Answer:
    """Say what was found, and how far to trust it."""
    summaries = ClusterSummaries(fit)
    n_chains = fit.draws.arrays["labels"].shape[0]
    judged = [of_chains(fit.draws), *of_recurrence(fit.recurrence.n_chains.tolist(), n_chains, "chain")]
    advice = []
    if fit.shows_a_draw:
        judged.append(
            (
                "care",
                "The groups overlap, so that no partition is near all draws: those shown are of the draw "
                "nearest to all others. Who belongs where is uncertain; what the groups prefer need not be.",
            )
        )
    if judged[0][0] == "bad":
        advice.append("Run the chains for longer, or with another seed, before you build on numbers below.")
    found = as_far_as_told(found_groups(fit, summaries, sure=False), context)
    return Answer(verdict(judged, advice), (*sentences(found), *_how_many(fit)))


def _how_many(fit: DPMallowsFit) -> tuple[str, ...]:
    """Say how sure the number of groups is, where draws have others than those shown."""
    drawn = np.asarray(fit.draws.arrays["n_groups"]).ravel()
    low, high = (int(end) for end in np.quantile(drawn, (0.05, 0.95), method="inverted_cdf"))
    if fit.shows_a_draw or (low == high == fit.n_clusters):
        return ()
    span = f"{low}" if low == high else f"{low} to {high}"
    if low >= fit.n_clusters:
        small = "the others small ones that come and go; those shown are what lasts"
        return (f"There may be more groups: 90% of the draws have {span}, {small}.",)
    return (f"How many groups there are is not sure: 90% of the draws have {span}.",)


def subtitle(fit: DPMallowsFit) -> str:
    """Say what the report is about."""
    data = f"{count_of(fit.n_agents, 'agent')}, {count_of(len(fit.items), 'item')}"
    return f"{data}; mixture of generalized Mallows models with as many groups as the data ask for"


def completed(fit: DPMallowsFit, context: Context) -> Context:
    """Add what the data say, which the fit keeps."""
    rows = fit.probabilities
    return with_ballots(
        context, fit.rankings, rows.argmax(axis=1), rows.max(axis=1), np.asarray(fit.rankings.counts)
    )


def sections(fit: DPMallowsFit, context: Context) -> list[Section]:
    """Describe the groups."""
    summaries = ClusterSummaries(fit)
    found = as_far_as_told(found_groups(fit, summaries), context)
    notes: list[Block] = [
        Note(f"{remark[0].upper()}{remark[1:]}.")
        for remark in summaries.remarks()
        if not remark.startswith("groups overlap")
    ]
    return [
        group_sections(found, context, *notes, *covariate_blocks(fit)),
        split_section(found),
        pairs_section(found),
        _numbers(fit),
        gaps_section(context),
    ]


def _numbers(fit: DPMallowsFit) -> Section:
    """Draw the posterior of the number of groups."""
    drawn = np.asarray(fit.draws.arrays["n_groups"]).ravel()
    values, times = np.unique(drawn, return_counts=True)
    posterior = dict(zip(values.tolist(), (times / drawn.size).tolist(), strict=True))
    low, high = (int(end) for end in np.quantile(drawn, (0.05, 0.95), method="inverted_cdf"))
    span = f"{low}" if low == high else f"{low} to {high}"
    said = Paragraph(
        f"90% of the draws have {span} groups, small ones included; {fit.n_clusters} are shown: the "
        "partition nearest to all draws leaves out small groups that come and go."
    )
    note = "Posterior probability of each number of groups."
    return Section("numbers", "How many groups there are", (said, numbers_figure(posterior, "groups", note)))
