"""What a classifier of rankings knows of its classes."""

from __future__ import annotations

import numpy as np

from permix.angle.classifier.fit import AngleClassifierFit
from permix.data.labels import Array
from permix.estimators.agent_answers import sample_rankings
from permix.reporting.content import Answer, Block, Level, Note, Paragraph, Section
from permix.reporting.context import Context
from permix.reporting.rank_answer import group_sentence
from permix.reporting.rank_groups import RankedGroup, RankedGroups
from permix.reporting.rank_sections import pairs_section, ranks_picture, side_by_side, sizes, split_section
from permix.reporting.shared import gaps_section
from permix.reporting.verdicts import verdict
from permix.reporting.words import capital, count_of, shown

REFERENCE = (
    "Xu, Alvo and Yu (2018), Angle-based models for ranking data, Computational Statistics and Data "
    "Analysis, section 6.3."
)


def found_classes(fit: AngleClassifierFit) -> RankedGroups:
    """Return the classes as groups with names."""
    agents = [int(of_class.counts.sum()) for of_class in fit.fits]
    total = sum(agents)

    def draw(k: int, size: int, rng: np.random.Generator) -> Array:
        return np.asarray(sample_rankings(fit.fits[k].components, size, rng)[0].orders)

    groups = [
        RankedGroup(n / total, None, None, n, 1.0, np.asarray(of_class.components.orders[0]))
        for n, of_class in zip(agents, fit.fits, strict=True)
    ]
    return RankedGroups(
        [shown(name) for name in fit.items],
        groups,
        total,
        draw,
        share_is="These are the classes that were given.",
        center_is="The center orders the items by their score in the largest group of the class.",
        kind="class",
        titles=[f"class {shown(name)}" for name in fit.classes.tolist()],
    )


def answer(fit: AngleClassifierFit, context: Context) -> Answer:
    """Say what the classes are like, and how far to trust it."""
    found = found_classes(fit)
    judged: list[tuple[Level, str]] = [
        (
            "care",
            "How well classes are told apart is not known here: score(X, y) of rankings not fitted says it.",
        )
    ]
    slow = [found.title(k) for k, of_class in enumerate(fit.fits) if not of_class.converged]
    if slow:
        judged.append(("care", f"The model of {', '.join(slow)} did not come to rest."))
    n = count_of(len(fit.fits), "class").replace("classs", "classes")
    data = f"{count_of(found.n_agents, 'agent')} and {count_of(found.n_items, 'item')}"
    each = [group_sentence(found, k) for k in range(min(len(found.groups), 5))]
    return Answer(verdict(judged), (f"Each of {n} has a model of its own, fitted to {data} in all.", *each))


def subtitle(fit: AngleClassifierFit) -> str:
    """Say what the report is about."""
    n = sum(int(of_class.counts.sum()) for of_class in fit.fits)
    return f"{count_of(n, 'agent')}, {count_of(len(fit.items), 'item')}; classifier of rankings"


def sections(fit: AngleClassifierFit, context: Context) -> list[Section]:
    """Describe the classes."""
    found = found_classes(fit)
    parts = tuple(
        Section(
            f"group-{k + 1}",
            capital(found.title(k)),
            (Paragraph(group_sentence(found, k)), ranks_picture(found, k)),
        )
        for k in range(min(len(found.groups), 12))
    )
    blocks: tuple[Block, ...] = (
        sizes(found),
        *side_by_side(found),
        Note("The classes were given, not found."),
    )
    return [
        Section("groups", "The classes", blocks, parts),
        split_section(found),
        pairs_section(found),
        gaps_section(context),
    ]
