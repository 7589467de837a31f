"""What blurring mean-shift found: the answer in sentences, and the sections of its report."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from permix.baselines.mean_shift.checks import around_center
from permix.baselines.mean_shift.fit import MeanShiftFit
from permix.data.labels import Array
from permix.estimators.known import labels_of
from permix.estimators.share_errors import share_interval
from permix.reporting import ballots
from permix.reporting.content import Answer, Level, Paragraph, Section
from permix.reporting.context import Context
from permix.reporting.rank_answer import sentences
from permix.reporting.rank_groups import RankedGroup, RankedGroups, as_far_as_told
from permix.reporting.rank_sections import group_sections, pairs_section, split_section
from permix.reporting.shared import covariate_blocks, gaps_section
from permix.reporting.verdicts import verdict
from permix.reporting.words import count_of, shown

REFERENCE = (
    "Meilă and Chen (2010), Dirichlet process mixtures of generalized Mallows models, Proceedings of the "
    "26th Conference on Uncertainty in Artificial Intelligence, 358–367, where it is a baseline."
)
# A group for every so many agents, or more, is no grouping.
FEW_EACH = 3


def found_groups(fit: MeanShiftFit) -> RankedGroups:
    """Return the groups as reports describe them."""
    sizes = np.asarray(fit.centers.counts)
    n = int(sizes.sum())
    groups = []
    for size, order in zip(sizes.tolist(), np.asarray(fit.centers.orders), strict=True):
        share = size / n
        low, high = share_interval(share, math.sqrt(share * (1.0 - share) / (n + 1.0)))
        groups.append(RankedGroup(share, low, high, int(size), 1.0, order[order >= 0]))

    def draw(k: int, size: int, rng: np.random.Generator) -> Array:
        return around_center(fit, np.full(size, k), rng)

    return RankedGroups(
        [shown(name) for name in labels_of(fit, fit.items)],
        groups,
        n,
        draw,
        share_is="Intervals take the agents as a sample, and who belongs where as certain.",
        center_is="The center is the list where those of the members came to rest.",
    )


def answer(fit: MeanShiftFit, context: Context) -> Answer:
    """Say what was found, and how far to trust it."""
    judged: list[tuple[Level, str]] = [
        ("care", "Mean-shift gives one partition, without saying how sure it is; mixtures do.")
    ]
    advice = ["permix fit dp-mallows finds groups of such lists with their uncertainty."]
    n, k = int(fit.row_counts.sum()), len(fit.centers)
    if k * FEW_EACH > n:
        judged.append(
            ("bad", f"There are {k:,} groups of {n:,} agents: lists are too far apart to be joined.")
        )
        advice.insert(0, "A smaller --decay joins more lists.")
    if fit.interrupted or not fit.converged:
        judged.append(("care", "Lists still moved when it ended."))
    found = as_far_as_told(found_groups(fit), context)
    said = sentences(found)
    return Answer(verdict(judged, advice), said[:-1] if k > 1 else said)


def subtitle(fit: MeanShiftFit) -> str:
    """Say what the report is about."""
    data = f"{count_of(int(fit.row_counts.sum()), 'agent')}, {count_of(len(fit.items), 'item')}"
    return f"{data}; {count_of(len(fit.centers), 'group')} by blurring mean-shift"


def evidence(fit: MeanShiftFit, data: Any) -> dict[str, Any]:
    """Return what the data say of the groups: the fit does not keep them."""
    return ballots.evidence(data, fit.row_labels, np.ones(len(fit.row_labels)), np.asarray(fit.row_counts))


def completed(fit: MeanShiftFit, context: Context) -> Context:
    """Add what the data say, where they are given."""
    if context.data is None:
        return context
    return replace(context, about={**context.about, **evidence(fit, context.data)})


def sections(fit: MeanShiftFit, context: Context) -> list[Section]:
    """Describe the groups."""
    found = as_far_as_told(found_groups(fit), context)
    number = Paragraph(
        f"{count_of(len(fit.centers), 'group')} came to rest; a smaller --decay joins more lists, a larger "
        "one fewer."
    )
    return [
        group_sections(found, context, *covariate_blocks(fit)),
        split_section(found),
        pairs_section(found),
        Section("numbers", "How many groups there are", (number,)),
        gaps_section(context),
    ]
