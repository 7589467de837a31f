"""What a density estimate of rankings says: how agents rank on the whole, without groups."""

from __future__ import annotations

import numpy as np

from permix.baselines.kde.fit import KDEFit
from permix.data.labels import Array
from permix.estimators.known import labels_of
from permix.reporting.ballots import gaps
from permix.reporting.charts import Axis, Interval, dots
from permix.reporting.content import Answer, Block, Level, Note, Paragraph, Section, Table
from permix.reporting.context import Context
from permix.reporting.rank_groups import MOST_ITEMS, RankedGroup, RankedGroups
from permix.reporting.rank_sections import pairs_section, ranks_picture
from permix.reporting.shared import gaps_section
from permix.reporting.verdicts import verdict
from permix.reporting.words import capital, count_of, listed, shown, told_apart

REFERENCE = (
    "Lebanon and Mao (2008), Non-parametric modeling of partially ranked data, Journal of Machine Learning "
    "Research 9, 2401–2429."
)
# Rankings drawn to order the items.
N_DRAWS = 1000


def everybody(fit: KDEFit) -> RankedGroups:
    """Return all agents as one group, whose center orders items by their mean rank."""
    table = fit.preferences

    def draw(k: int, size: int, rng: np.random.Generator) -> Array:
        return np.asarray(fit.sample(size, rng).orders)

    orders = draw(0, N_DRAWS, np.random.default_rng(0))
    ranks = np.argsort(orders, axis=1)
    order = np.argsort(ranks.mean(axis=0), kind="stable")
    n = int(table.counts.sum())
    return RankedGroups(
        [shown(name) for name in labels_of(fit, table.items)],
        [RankedGroup(1.0, None, None, n, 1.0, order)],
        n,
        draw,
        share_is="",
        center_is="Items by their mean rank in rankings drawn from the estimate.",
        titles=["everybody"],
    )


def answer(fit: KDEFit, context: Context) -> Answer:
    """Say what was found, and how far to trust it."""
    found = everybody(fit)
    names = [found.short[item] for item in found.groups[0].order.tolist()]
    judged: list[tuple[Level, str]] = [
        ("good", "The dispersion was chosen by agents who were left out.")
        if len(fit.tried)
        else ("care", "The dispersion was given, not chosen by the data.")
    ]
    data = f"{count_of(found.n_agents, 'agent')} and {count_of(found.n_items, 'item')}"
    top = f"On average, {names[0]} ranks best" + (f", then {listed(names[1:3])}" if len(names) > 1 else "")
    return Answer(
        verdict(judged),
        (
            f"How probable every ranking is was estimated from {data}; this model has no groups.",
            f"{top}; {names[-1]} ranks last.",
            f"Around what somebody said, {fit.expected_distance:.1f} pairs of items change their order on "
            f"average (dispersion {fit.dispersion:.2g}).",
        ),
    )


def subtitle(fit: KDEFit) -> str:
    """Say what the report is about."""
    n = int(fit.preferences.counts.sum())
    return (
        f"{count_of(n, 'agent')}, {count_of(fit.preferences.n_items, 'item')}; density estimate of rankings"
    )


def completed(fit: KDEFit, context: Context) -> Context:
    """Add what the data say, which the fit keeps."""
    from dataclasses import replace

    return replace(context, about={**context.about, "data": gaps(fit.preferences)})


def sections(fit: KDEFit, context: Context) -> list[Section]:
    """Describe how agents rank."""
    found = everybody(fit)
    order = found.groups[0].order[: 2 * MOST_ITEMS].tolist()
    first = Table(
        "How agents rank on the whole",
        ("item", "mean rank", "put first by"),
        tuple(
            (found.names[item], f"{found.mean_ranks[0, item]:.1f}", f"{100 * found.first[0, item]:.0f}%")
            for item in order
        ),
        found.center_is,
    )
    blocks: tuple[Block, ...] = (
        Note("A density estimate has no groups: it says how probable every ranking is."),
        ranks_picture(found, 0),
        first,
    )
    numbers: tuple[Block, ...] = (Paragraph(capital("the dispersion was given.")),)
    if len(fit.tried):
        # The search ends close to the best one: of those that read the same the best is shown.
        best = sorted(fit.tried.tolist(), key=lambda tried: -tried[1])[:12]
        names = told_apart([dispersion for dispersion, _ in best])
        first_of = dict(reversed(list(zip(names, best, strict=True))))
        scores = [score for _, score in first_of.values()]
        decimals = len(told_apart(scores)[0].partition(".")[2])
        rows = [
            Interval(name, score) for name, (_, score) in sorted(first_of.items(), key=lambda one: one[1])
        ]
        numbers = (
            dots(
                "Log probability of an agent left out, by dispersion",
                "The best of those that were tried.",
                rows,
                Axis("dispersion", min(scores), max(scores), lambda score: f"{score:.{decimals}f}"),
                ("dispersion", "mean log probability of an agent left out (nats)", "", ""),
            ),
        )
    return [
        Section("groups", "How agents rank", blocks),
        pairs_section(found),
        Section("numbers", "How the dispersion was chosen", numbers),
        gaps_section(context),
    ]
