"""Sections about groups of rankings: what each is like, how people split, and who beats whom."""

from __future__ import annotations

import numpy as np

from permix.data.labels import Array
from permix.reporting.ballots import NO_BALLOTS, typical_of
from permix.reporting.charts import Axis, Interval, bars, dots, heat, nice_ticks, shade_of
from permix.reporting.content import Block, Cell, Figure, Note, Paragraph, Section, Table
from permix.reporting.context import Context
from permix.reporting.rank_answer import group_sentence
from permix.reporting.rank_groups import MOST_ITEMS, RankedGroups
from permix.reporting.shared import columns_of
from permix.reporting.words import capital, count_of, interval, number, one_digit, percent, spelled

# Groups that have a part of their own, groups side by side in one table, and in all such tables.
MOST_GROUPS, MOST_ACROSS, SIDE_BY_SIDE = 12, 10, 20
# Groups in the picture of sizes, and in the table of numbers.
IN_SIZES, IN_NUMBERS = 24, 100
# Items in the picture of a group, and in its table.
IN_PICTURE, IN_TABLE = 15, 40
MOST_PAIRS = 8
# Why a share and the number of agents shown with a group are two things.
SHOWN_WITH = (
    "Shown with it: agents for whom no other group is more probable, each in one group alone. Whoever "
    "belongs to group 1 with a probability of 60% and to group 2 with 40% is shown with group 1, but counts "
    "in shares as 0.6 and 0.4 of an agent; where groups overlap, the two numbers differ."
)

# Where shares of pairs are those of the data.
OF_DATA = (
    "What agents said themselves is under “Does the model look like the data?”, as observed pairwise "
    "majorities, where that was checked."
)


def group_sections(found: RankedGroups, context: Context, *more: Block) -> Section:
    """Describe the groups: their sizes, centers side by side, and each by itself; ``more`` comes last."""
    blocks: list[Block] = [sizes(found), *side_by_side(found)]
    if len(found.groups) > 1:
        blocks.append(table_of_groups(found))
    parts = [group_part(found, k, context) for k in range(min(len(found.groups), MOST_GROUPS))]
    if len(found.groups) > MOST_GROUPS:
        left = len(found.groups) - MOST_GROUPS
        blocks.append(
            Note(f"The {MOST_GROUPS} largest groups follow; {left} smaller ones are in the tables.")
        )
    return Section("groups", "The groups", (*blocks, *more), tuple(parts))


def sizes(found: RankedGroups) -> Figure:
    """Draw the shares."""
    shown = found.groups[:IN_SIZES]
    rows = [Interval(capital(found.title(k)), g.share, g.low, g.high) for k, g in enumerate(shown)]
    title = "How large the groups are"
    return bars(
        title,
        f"Share of the agents in each group. {found.share_is}{left_out(found, IN_SIZES)}",
        rows,
        ("group", "share of the agents", "90% interval"),
    )


def side_by_side(found: RankedGroups) -> list[Block]:
    """Put the places of all items in all centers side by side, some groups below the others where many."""
    return [_side_by_side(found, groups) for groups in _tables_of(found)]


def _side_by_side(found: RankedGroups, groups: range) -> Table:
    n = found.n_items
    items = found.consensus.tolist() if n <= IN_TABLE else found.compared.tolist()
    rows, shades = [], []
    for item in items:
        places = [found.places[k, item] for k in groups]
        listed = [item in found.groups[k].order for k in groups]
        texts = [_place(found, float(p)) if has else "–" for p, has in zip(places, listed, strict=True)]
        rows.append((found.names[item], *texts))
        tints = [
            shade_of(-float(p), -n, -1.0) if has else None for p, has in zip(places, listed, strict=True)
        ]
        shades.append((None, *tints))
    some = "" if len(items) == n else f" The {len(items)} items at the top of the centers, of {n:,}."
    return Table(
        f"Where each item stands in the center of each group (1 = best){_which(groups, found)}",
        ("item", *(capital(found.title(k)) for k in groups)),
        tuple(rows),
        f"{found.center_is} Items in the order of all groups together; the stronger the color, the better."
        f"{_below(found)}{some}{left_out(found)}",
        tuple(shades),
    )


def _place(found: RankedGroups, place: float) -> str:
    """Write a place, as far as ballots tell it."""
    whole = round(place)
    return str(whole) if whole <= found.n_told else f">{found.n_told}"


def _below(found: RankedGroups) -> str:
    """Say why some places are not told."""
    n = found.n_told
    return "" if n >= found.n_items else f" >{n}: below the first {spelled(n)}; no ballot ranks more."


def _tables_of(found: RankedGroups) -> list[range]:
    return columns_of(min(len(found.groups), SIDE_BY_SIDE), MOST_ACROSS)


def _which(groups: range, found: RankedGroups) -> str:
    """Say which groups a table is about, where there are several such tables."""
    several = len(groups) < min(len(found.groups), SIDE_BY_SIDE)
    return f", {found.kind}s {groups[0] + 1} to {groups[-1] + 1}" if several and not found.titles else ""


def left_out(found: RankedGroups, most: int = SIDE_BY_SIDE) -> str:
    """Say how many groups a table or picture of the largest leaves out, and where they are."""
    left = len(found.groups) - most
    if left <= 0:
        return ""
    are = "one is" if left == 1 else f"{left:,} are"
    return f" The {most} largest groups; {are} left out here, and in permix summary --json."


def table_of_groups(found: RankedGroups) -> Table:
    """Put the numbers of all groups side by side."""
    recurs = found.runs > 1 and all(group.found is not None for group in found.groups)
    facts = [name for name, _ in found.groups[0].facts]
    columns = [
        "group",
        "share",
        "shown with it",
        "how sure",
        *([f"found in {found.run_name}s"] * recurs),
        *facts,
    ]
    total = sum(group.agents for group in found.groups)
    rows: list[tuple[Cell, ...]] = []
    for k, group in enumerate(found.groups[:IN_NUMBERS]):
        cells: list[Cell] = [
            capital(found.title(k)),
            interval(group.share, group.low, group.high),
            f"{group.agents:,} ({percent(group.agents / max(total, 1))})",
            percent(group.how_sure),
        ]
        cells += [f"{group.found} of {found.runs}"] * recurs
        rows.append((*cells, *(value for _, value in group.facts)))
    return Table(
        "The groups in numbers",
        tuple(columns),
        tuple(rows),
        "Share: how large the group is, as a part of all agents, with a 90% interval; the number to print. "
        f"{found.share_is} {SHOWN_WITH} How sure: how probably the agents shown with a group belong to it, "
        f"on average.{left_out(found, IN_NUMBERS)}",
    )


def group_part(found: RankedGroups, k: int, context: Context) -> Section:
    """Describe one group."""
    group = found.groups[k]
    blocks: list[Block] = [
        Paragraph(group_sentence(found, k)),
        ranks_picture(found, k),
        center_table(found, k),
    ]
    ballots = typical_of(context, k)
    if ballots is not None:
        blocks.append(ballots)
    elif k == 0:
        blocks.append(Note(NO_BALLOTS.format(file=context.file or "FIT")))
    share = interval(group.share, group.low, group.high)
    return Section(f"group-{k + 1}", f"{capital(found.title(k))}: {share} of the agents", tuple(blocks))


def ranks_picture(found: RankedGroups, k: int) -> Figure:
    """Draw how the members rank the items of the center, beside how all others do."""
    group = found.groups[k]
    items = group.order[:IN_PICTURE].tolist()
    low, high = found.rank_range(k)
    others = len(found.groups) > 1
    rows = [
        Interval(
            found.short[item],
            float(found.mean_ranks[k, item]),
            float(low[item]),
            float(high[item]),
            float(found.mean_ranks_elsewhere[k, item]) if others else None,
        )
        for item in items
    ]
    reach = max(max(row.high or 0.0, row.other or 0.0) for row in rows)
    last = found.n_items if found.n_items <= 2 * IN_PICTURE else min(found.n_items, reach + 1)
    ticks = (1.0, *(tick for tick in nice_ticks(1, last) if tick > 1.5))
    some = "" if len(items) == found.n_items else f", the first {len(items)} of {found.n_items:,}"
    n = found.n_told
    beyond = "" if n >= found.n_items else f", which says all of ranks below {n}: no ballot ranks more"
    title = f"How {found.title(k)} ranks the items"
    return dots(
        title,
        f"Average rank of each item among the members, and between which ranks 90% of them put it; items "
        f"from the top of the center{some}. Drawn from the fitted model{beyond}.",
        rows,
        Axis("rank (1 = best)", 1.0, float(last), one_digit, ticks),
        ("item", "average rank among members", "90% of the members", "average rank of all others"),
    )


def center_table(found: RankedGroups, k: int) -> Table:
    """List the center with what is known of every place."""
    group = found.groups[k]
    items = group.order[:IN_TABLE].tolist()
    known = group.places is not None
    others = len(found.groups) > 1
    columns = ["item", "place", *(["may be"] * known), *(["place elsewhere"] * others), "put first by"]
    rows = []
    for place, item in enumerate(items):
        cells: list[str | int] = [found.names[item], _place(found, place + 1)]
        if group.places is not None:
            low, high = (int(ends[place]) for ends in group.places)
            ends = f"{low} or more" if high > found.n_told else f"{low}–{high}"
            cells.append(_place(found, low) if low == high or low > found.n_told else ends)
        if others:
            cells.append(one_digit(float(found.places_elsewhere[k, item])))
        rows.append((*cells, percent(float(found.first[k, item]))))
    rest = found.n_items - len(items)
    said = [found.places_are] if known else []
    said += ["Place elsewhere: mean place in the centers of the other groups, by their sizes."] * others
    said.append(f"Put first by: share of the members, by the fitted model.{_below(found)}")
    said += [f"{count_of(rest, 'more item')} not shown."] * (rest > 0)
    return Table(f"The center of {found.title(k)}", tuple(columns), tuple(rows), " ".join(said))


# -- how people split ------------------------------------------------------------------------------


def split_section(found: RankedGroups) -> Section:
    """Say which pairs of items divide the groups, what all agree on, and how sure memberships are."""
    if len(found.groups) == 1:
        return Section("split", "How people split", (Paragraph("There is one group: nothing divides it."),))
    blocks: list[Block] = []
    pairs = found.dividing_pairs(MOST_PAIRS)
    if pairs:
        a, b = (found.short[found.compared[at]] for at in pairs[0])
        values = found.before[:, pairs[0][0], pairs[0][1]]
        top, bottom = int(values.argmax()), int(values.argmin())
        blocks.append(
            Paragraph(
                f"What divides the groups most is {a} against {b}: {percent(float(values[top]))} of "
                f"{found.title(top)} would put {a} ahead, and {percent(float(values[bottom]))} of "
                f"{found.title(bottom)}."
            )
        )
        blocks += pair_tables(found, pairs, "The pairs of items that divide the groups most")
    else:
        blocks.append(Paragraph("No pair of items divides the groups: they differ in how united they are."))
    agreed = found.agreed_pairs(MOST_PAIRS // 2)
    if agreed:
        blocks += pair_tables(found, agreed, "What most members of every group agree on")
    blocks += certainty(found)
    return Section("split", "How people split", tuple(blocks))


def pair_tables(found: RankedGroups, pairs: list[tuple[int, int]], caption: str) -> list[Block]:
    """Put the shares of groups that prefer one item of a pair side by side."""
    return [_pair_table(found, pairs, caption, groups) for groups in _tables_of(found)]


def _pair_table(found: RankedGroups, pairs: list[tuple[int, int]], caption: str, groups: range) -> Table:
    rows, shades = [], []
    for x, y in pairs:
        values = [float(found.before_overall[x, y]), *(float(found.before[k, x, y]) for k in groups)]
        a, b = (found.short[found.compared[at]] for at in (x, y))
        rows.append((f"{a} before {b}", *map(percent, values)))
        shades.append((None, *(shade_of(value, 0.0, 1.0) for value in values)))
    columns = ("who would put …", "all", *(capital(found.title(k)) for k in groups))
    note = f"Share of agents that would rank the first item above the second, by the fitted model. {OF_DATA}"
    note += left_out(found)
    return Table(f"{caption}{_which(groups, found)}", columns, tuple(rows), note, tuple(shades))


def certainty(found: RankedGroups) -> list[Block]:
    """Draw how sure it is who belongs where."""
    if found.probabilities is None or found.counts is None:
        return []
    best = found.probabilities.max(axis=1)
    edges = [(0.9, "90% or more"), (0.75, "75–90%"), (0.5, "50–75%"), (0.0, "less than 50%")]
    rows, upper = [], np.inf
    total = float(found.counts.sum())
    for edge, name in edges:
        inside = (best >= edge) & (best < upper)
        rows.append(Interval(name, float(found.counts[inside].sum()) / total))
        upper = edge
    title = "How sure it is who belongs where"
    said = (
        f"{percent(rows[0].value)} of the agents are in one group with a probability of 90% or more; "
        f"{percent(rows[2].value + rows[3].value)} are less sure than 75%."
    )
    return [bars(title, said, rows, ("probability of the most probable group", "share of the agents", ""))]


# -- pairs -----------------------------------------------------------------------------------------


def pairs_section(found: RankedGroups) -> Section:
    """Draw who beats whom, among all agents and in the largest groups."""
    some = (
        "" if found.n_items <= MOST_ITEMS else f" The {len(found.compared)} items at the top of the centers."
    )
    figures = [
        heat_map(
            found,
            found.before_overall,
            "Who beats whom: all agents",
            f"Percent of all agents who would rank the item of the row above that of the column.{some}",
        )
    ]
    if 1 < len(found.groups) <= 4:
        figures += [
            heat_map(
                found,
                found.before[k],
                f"Who beats whom: {found.title(k)}",
                "Percent of its members who would rank the item of the row above that of the column.",
            )
            for k in range(len(found.groups))
        ]
    order = "Items are in the order of all groups together."
    order = order if len(found.groups) > 1 else "The best items come first."
    said = Paragraph(
        "Read along a row: blue where most prefer its item to that of the column, orange where most prefer "
        f"the other. {order} These are shares under the fitted model, also of pairs that an agent said "
        f"nothing about. {OF_DATA}"
    )
    return Section("pairs", "Every pair of items", (said, *figures))


def heat_map(found: RankedGroups, before: Array, title: str, description: str) -> Figure:
    """Draw P(a before b)."""
    values = before.astype(float).copy()
    np.fill_diagonal(values, np.nan)
    names = [found.short[item] for item in found.compared.tolist()]
    return heat(
        title,
        description,
        values,
        names,
        names,
        corner="item",
        low=0.0,
        high=1.0,
        diverging=True,
        in_cells=lambda value: f"{100 * value:.0f}",
    )


def numbers_figure(posterior: dict[int, float], what: str, note: str) -> Figure:
    """Draw the posterior of a number of groups."""
    shown = {n: p for n, p in posterior.items() if p >= 0.005}
    rows = [Interval(number(n), p) for n, p in sorted(shown.items())]
    title = f"How many {what}"
    return bars(title, note, rows, (f"number of {what}", "posterior probability", ""))
