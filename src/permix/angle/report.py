"""What a mixture of angle-based models found: the answer in sentences, and the sections of its report."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from permix.angle.fit import AngleFit
from permix.angle.results import component_table, consensus_table, remarks, scalar_draws
from permix.data.labels import Array
from permix.estimators.known import labels_of
from permix.estimators.share_errors import share_errors, share_interval
from permix.estimators.wording import part_of_all
from permix.reporting import ballots
from permix.reporting.charts import Axis, Interval, dots
from permix.reporting.chosen_number import chosen_by
from permix.reporting.content import Answer, Block, Figure, Level, Note, Paragraph, Section
from permix.reporting.context import Context
from permix.reporting.rank_answer import sentences
from permix.reporting.rank_groups import RankedGroup, RankedGroups, as_far_as_told, membership_numbers
from permix.reporting.rank_sections import group_sections, pairs_section, split_section
from permix.reporting.shared import covariate_blocks, gaps_section
from permix.reporting.verdicts import of_baselines, of_chains, verdict
from permix.reporting.words import capital, count_of, number, shown

REFERENCE = (
    "Xu, Alvo and Yu (2018), Angle-based models for ranking data, Computational Statistics and Data Analysis."
)
INTERVAL = 0.9
# Items of a picture of scores, and groups that have one.
MOST_ITEMS, MOST_GROUPS = 20, 6


def found_groups(fit: AngleFit) -> RankedGroups:
    """Return the groups as reports describe them."""
    mixture, counts = fit.components, np.asarray(fit.counts)
    n, several = fit.n_agents, mixture.n_components > 1
    agents, sure = membership_numbers(fit.probabilities, counts)
    agents = np.rint(agents * (n / counts.sum())).astype(np.int64)
    drawn = fit.posterior
    errors = share_errors(fit.probabilities, counts, np.asarray(mixture.weights))
    errors = errors * np.sqrt(counts.sum() / n)  # the information of all, as a sample of them has it
    scores = consensus_table(fit, INTERVAL)
    table = component_table(fit, INTERVAL)
    groups = []
    for k in range(mixture.n_components):
        share = float(mixture.weights[k])
        ends: tuple[float | None, float | None] = (None, None)
        if several and drawn is not None:
            weights = np.asarray(drawn.weights)[..., k]
            low, high = np.quantile(weights, ((1 - INTERVAL) / 2, (1 + INTERVAL) / 2))
            ends = (min(float(low), share), max(float(high), share))
        elif several:
            ends = share_interval(share, float(errors[k]))
        of_group = scores[scores["group"] == k]
        places = None
        if drawn is not None:
            low_high = (of_group[name].to_numpy().round().astype(int) for name in ("rank_low", "rank_high"))
            first, last = low_high
            places = (first, last)
        how = f"{table['concentration'][k]:.3g}"
        if "low" in table:
            how += f" ({table['low'][k]:.3g} to {table['high'][k]:.3g})"
        groups.append(
            RankedGroup(
                share,
                low=ends[0],
                high=ends[1],
                agents=int(agents[k]),
                how_sure=float(sure[k]),
                order=np.asarray(mixture.orders[k]),
                places=places,
                facts=(("concentration", how),),
            )
        )

    def draw(k: int, size: int, rng: np.random.Generator) -> Array:
        return np.asarray(mixture.component(k).sample(size, random_state=rng).orders)

    sampled = (
        f"Intervals take the agents as a sample, and the groups as known{part_of_all(fit)}: other starts, or "
        "another number of groups, may give other sizes."
    )
    return RankedGroups(
        [shown(name) for name in labels_of(fit, mixture.items)],
        groups,
        n,
        draw,
        share_is=sampled if drawn is None else "Intervals hold 90% of the posterior.",
        center_is="The center orders the items by their score in the group.",
        places_are="May be: between which places the item stands in the center in 90% of the posterior.",
        probabilities=fit.probabilities,
        counts=counts,
    )


def answer(fit: AngleFit, context: Context) -> Answer:
    """Say what was found, and how far to trust it."""
    judged: list[tuple[Level, str]] = []
    advice = []
    if fit.draws is not None and fit.draws.seeds:
        judged.append(of_chains(scalar_draws(fit.draws)))
    elif fit.draws is not None:
        judged.append(("good", "The draws are independent, so that nothing had to converge."))
    reached = fit.start_objectives
    if len(reached) > 1:
        near = int((reached >= reached.max() - 1.0).sum())
        level: Level = "good" if near > 1 else "care"
        judged.append(
            (
                level,
                f"{near} of {len(reached)} starts came to the best result, or within 1 of its log-likelihood "
                "(each start searches anew from another random beginning).",
            )
        )
        if near == 1 and fit.components.n_components > 1:
            advice.append("More --starts may find a better optimum.")
    if not (fit.converged or fit.interrupted):
        judged.append(("care", f"The climb did not come to rest within {len(fit.history):,} passes."))
        advice.append("A larger --max-iter goes further.")
    for doubt in remarks(fit, None):
        judged.append(("care", f"{capital(doubt.as_options())}."))
    return Answer(
        verdict([*judged, *of_baselines(fit)], advice), sentences(as_far_as_told(found_groups(fit), context))
    )


def subtitle(fit: AngleFit) -> str:
    """Say what the report is about."""
    data = f"{count_of(fit.n_agents, 'agent')}, {count_of(len(fit.components.items), 'item')}"
    return f"{data}; angle-based mixture of {count_of(fit.components.n_components, 'group')}"


def evidence(fit: AngleFit, data: Any) -> dict[str, Any]:
    """Return what the data say of the groups: the fit does not keep them."""
    return ballots.evidence(data, fit.labels, fit.probabilities.max(axis=1), np.asarray(fit.counts))


def completed(fit: AngleFit, context: Context) -> Context:
    """Add what the data say, where they are given."""
    if context.data is None:
        return context
    return replace(context, about={**context.about, **evidence(fit, context.data)})


def sections(fit: AngleFit, context: Context) -> list[Section]:
    """Describe the groups."""
    found = as_far_as_told(found_groups(fit), context)
    explained = Paragraph(
        "Concentration says how united a group is: at 0, its members rank at random; the larger it is, the "
        "more they rank as the center does. Scores say how far apart items are: small is preferred, and two "
        "items whose scores are close are ordered either way by members."
    )
    pictures: list[Block] = [score_picture(fit, found, k) for k in range(min(len(found.groups), MOST_GROUPS))]
    numbers = chosen_by(context, fit.components.n_components)
    if fit.components.normalizer == "vmf":
        numbers.append(
            Note("Probabilities are approximate (von Mises–Fisher), and are not offered for comparison.")
        )
    return [
        group_sections(found, context, explained, *pictures, *covariate_blocks(fit)),
        split_section(found),
        pairs_section(found),
        Section("numbers", "How many groups there are", tuple(numbers)),
        gaps_section(context),
    ]


def score_picture(fit: AngleFit, found: RankedGroups, k: int) -> Figure:
    """Draw the scores of a center with their intervals."""
    table = consensus_table(fit, INTERVAL)
    part = table[table["group"] == k].head(MOST_ITEMS)
    order = fit.components.orders[k][:MOST_ITEMS].tolist()
    sure = "low" in part
    rows = [
        Interval(
            found.short[item],
            float(part["score"].iloc[at]),
            float(part["low"].iloc[at]) if sure else None,
            float(part["high"].iloc[at]) if sure else None,
        )
        for at, item in enumerate(order)
    ]
    ends = [value for row in rows for value in (row.value, row.low, row.high) if value is not None]
    return dots(
        f"Scores of the items in {found.title(k)}",
        "Small is preferred; how far apart two scores are says how sure their order is to a member.",
        rows,
        Axis("score", min(ends), max(ends), number),
        ("item", "score", "90% of the posterior", ""),
    )
