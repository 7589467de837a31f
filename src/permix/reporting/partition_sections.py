"""What reports of partitions have in common: shares over draws, numbers of groups, and groups of lines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from permix.data.labels import Array
from permix.estimators.by_covariate import as_groups
from permix.partitions.population import dirichlet_given, summarized_shares
from permix.partitions.priors import PartitionPrior
from permix.posterior.estimated import spaced
from permix.reporting.charts import Interval, bars
from permix.reporting.content import Cell, Figure, Paragraph, Section, Table
from permix.reporting.words import (
    OF_ALL,
    THESE,
    all_of,
    capital,
    count_of,
    how_often,
    interval,
    percent,
    spelled,
)

# Draws that shares are looked up in.
MOST_DRAWS = 200
MOST_GROUPS = 30
TAIL = 0.05
# Members that could be elsewhere.
UNSURE = (
    "Placed: {0} that are in the group in most draws. Unsure: {0} that may be in several, and are most often "
    "here; in shares they count where each draw has them, so that shares differ from these numbers. Both"
)


class LineGroup(NamedTuple):
    """A group of rows, or of columns."""

    size: int
    share: float
    low: float | None
    high: float | None
    how_sure: float
    found: int  # in how many chains
    members: str = ""  # some names
    placed: int | None = None  # members that are sure to be here; None where nobody asked


def drawn_shares(
    draws: Array,
    labels: Array,
    n_chains: Sequence[int] | Array,
    prior_of: Callable[[int], PartitionPrior] | None = None,
) -> list[tuple[float, float | None, float | None]]:
    """Return the mean share of every group over draws of labels (…, observation), and 5 % and 95 % ends.

    With ``prior_of`` a draw, counted over all chains, shares are those in the population: what is missing to
    one is of groups that nobody was seen of. Without it they are of these observations.

    A group of a draw counts as the group of the answer that it is most like. Of groups that recur in no chain
    (``n_chains``: in how many) draws know nothing: they have the share of their members, and no interval.
    """
    n_groups = len(n_chains)
    flat = draws.reshape(-1, draws.shape[-1])
    shares, given = [], []
    rng = np.random.default_rng(0)
    for at in spaced(len(flat), MOST_DRAWS):
        found = as_groups(flat[at].astype(np.int64), labels, n_groups)
        sizes = np.bincount(found, minlength=n_groups)
        shares.append(sizes / len(found))
        if prior_of is not None:
            clusters = np.bincount(found[np.unique(flat[at], return_index=True)[1]], minlength=n_groups)
            given.append(dirichlet_given(prior_of(int(at)), sizes, rng, clusters))
    if given:
        mean, low, high = summarized_shares(given, TAIL)
    else:
        mean = np.mean(shares, axis=0)
        low, high = np.quantile(shares, (TAIL, 1.0 - TAIL), axis=0)
    members = np.bincount(labels, minlength=n_groups) / len(labels)
    return [
        (float(mean[k]), float(min(low[k], mean[k])), float(max(high[k], mean[k])))
        if n_chains[k]
        else (float(members[k]), None, None)
        for k in range(n_groups)
    ]


def how_many(n: int, found: Sequence[int], n_chains: int, what: str, data: str) -> str:
    """Say how many groups there are, and whether chains agree on them."""
    if n == 1:
        return f"One group describes all {data}."
    start = f"{capital(spelled(n))} groups of {what}"
    if n_chains < 2:
        return f"{start} were found among {data}."
    runs = all_of(n_chains, "chain")
    if all(times == n_chains for times in found):
        return f"{start} recur in {runs}, among {data}."
    never = [k for k, times in enumerate(found) if times == 0]
    if len(never) == n:
        return f"{start} are shown, of {data}, and none of them recurs: chains do not agree on them."
    return f"{start} were found among {data}; {how_often(found, n_chains, 'chain', 0)}."


def sizes_figure(groups: Sequence[LineGroup], what: str) -> Figure:
    """Draw the shares of groups."""
    rows = [Interval(f"Group {k + 1}", g.share, g.low, g.high) for k, g in enumerate(groups[:MOST_GROUPS])]
    return bars(
        f"How large the groups of {what} are",
        f"Share of the {what} in each group; intervals hold 90% of the posterior draws."
        + (" Groups that recur in no chain have none." if any(row.low is None for row in rows) else ""),
        rows,
        ("group", f"share of the {what}", "90% interval"),
    )


def groups_table(
    groups: Sequence[LineGroup], n_chains: int, what: str, more: str = "", of_population: bool = True
) -> Table:
    """Put the numbers of groups side by side."""
    which = any(group.members for group in groups)
    some = any(group.placed not in (None, group.size) for group in groups)
    rows: list[tuple[Cell, ...]] = [
        (
            f"Group {k + 1}",
            *([group.placed, group.size - (group.placed or 0)] if some else [group.size]),
            interval(group.share, group.low, group.high),
            percent(group.how_sure),
            f"{group.found} of {n_chains}",
            *([group.members] if which else []),
        )
        for k, group in enumerate(groups[:100])
    ]
    lost = any(group.low is None for group in groups)
    members = UNSURE.format(what) if some else f"{capital(what)}: members"
    theirs = "; of groups that no chain has, the share of the members" if lost else ""
    return Table(
        f"The groups of {what} in numbers",
        (
            "group",
            *(["placed", "unsure"] if some else [what]),
            "share",
            "how sure",
            "found in chains",
            *([f"which {what}"] if which else []),
        ),
        tuple(rows),
        f"{members} in the partition nearest to all draws. Share: of all {what}, mean over draws, with a 90% "
        f"interval{theirs}. How sure: how probably a member is with its fellow members. Found in chains: "
        f"those most of whose draws have a group that shares 60% of the members of both. "
        f"{(OF_ALL if of_population else THESE).format(what)}{more}",
    )


def drawn_interval(values: Array) -> tuple[int, int]:
    """Return between which numbers of groups 90 % of the draws are."""
    low, high = np.quantile(np.asarray(values).ravel(), (TAIL, 1.0 - TAIL), method="inverted_cdf")
    return int(low), int(high)


def span_of(low: int, high: int) -> str:
    """Return "6 to 8 groups".

    Examples
    --------
    >>> span_of(6, 8), span_of(3, 3)
    ('6 to 8 groups', '3 groups')
    """
    return count_of(low, "group") if low == high else f"{low:,} to {high:,} groups"


def numbers_section(drawn: dict[str, Array], shown: dict[str, int]) -> Section:
    """Draw the posterior of numbers of groups, by what the groups are of."""
    blocks: list[Paragraph | Figure] = []
    for what, values in drawn.items():
        flat = np.asarray(values).ravel()
        numbers, times = np.unique(flat, return_counts=True)
        span = span_of(*drawn_interval(flat))
        blocks.append(Paragraph(f"90% of the draws have {span} of {what}; {shown[what]} are shown."))
        kept = times / flat.size >= 0.005
        rows = [
            Interval(f"{n:,}", float(p))
            for n, p in zip(numbers[kept].tolist(), (times / flat.size)[kept].tolist(), strict=True)
        ][:40]
        title = f"How many groups of {what}"
        note = "Posterior probability of each number, small groups included."
        columns = (f"number of groups of {what}", "posterior probability", "")
        blocks.append(bars(title, note, rows, columns))
    return Section("numbers", "How many groups there are", tuple(blocks))
