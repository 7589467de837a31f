"""What a co-clustering found: the answer in sentences, and the sections of its report."""

from __future__ import annotations

import numpy as np

from permix.cocluster.block_pictures import cut_picture, matrix_picture
from permix.cocluster.cells.group_values import FEWEST_CELLS, SHARE_OF_1, GroupValues
from permix.cocluster.cells.odd_levels import doubts_about
from permix.cocluster.fit import BlockFit, Side
from permix.cocluster.results import SIDES, all_rows, groups_of, sample_note
from permix.data.attributes import item_labels
from permix.data.labels import Array
from permix.reporting.charts import heat, shade_of
from permix.reporting.content import (
    Answer,
    Block,
    Cell,
    Figure,
    Level,
    Listing,
    Note,
    Paragraph,
    Section,
    Table,
)
from permix.reporting.context import Context
from permix.reporting.partition_sections import (
    LineGroup,
    drawn_interval,
    drawn_shares,
    groups_table,
    how_many,
    numbers_section,
    sizes_figure,
    span_of,
)
from permix.reporting.shared import covariate_blocks, gaps_section
from permix.reporting.verdicts import of_chains, of_recurrence, verdict
from permix.reporting.words import capital, count_of, interval, listed, number, others, percent, shown

REFERENCE = (
    "Wang, Laskey, Domeniconi and Jordan (2011), Nonparametric Bayesian co-clustering ensembles, Proceedings "
    "of the SIAM International Conference on Data Mining; Roy and Teh (2008), The Mondrian process."
)
PRIORS = {
    "mfm": "a grid of blocks",
    "dp": "a grid of blocks",
    "dirichlet": "a grid of blocks",
    "mondrian": "nested cuts (Mondrian)",
}
# Groups with a sentence, with a part of their own, and side by side in tables and pictures.
SENTENCES, PARTS, SIDE_BY_SIDE = 5, 12, 12
# Columns that a sentence, a table of a group and one of all groups name.
NAMED, TELLING, DIVIDING = 1, 8, 12
# Members that are listed of a group, and characters of a list of names.
MOST_MEMBERS, MEMBERS_WIDTH = 30, 160
IN_SENTENCES = 45


def column_names(fit: BlockFit) -> list[str]:
    """Return what columns are called, with their texts where they have some."""
    n = fit.shape[1]
    names = [str(j + 1) for j in range(n)]
    if fit.cells is not None and fit.cells.column_names is not None:
        names = [str(name) for name in fit.cells.column_names]
    if fit.known.items:
        names = item_labels(names, fit.known.items, most=10**6)
    return [f"column {name}" if name.isdecimal() else shown(name) for name in names]


def line_groups(fit: BlockFit, what: Side) -> list[LineGroup]:
    """Return the groups of rows, or of columns, with their shares over draws."""
    found = groups_of(fit, what)
    n_chains = found.recurrence.n_chains
    prior_of = fit._row_prior if rows_are_sampled(fit, what) else None
    shares = drawn_shares(fit.cluster_draws(what), found.labels, n_chains, prior_of)
    return [
        LineGroup(
            size,
            *shares[k],
            float(found.group_how_sure[k]),
            int(n_chains[k]),
            _some(found.members[k]),
            int(found.n_placed[k]),
        )
        for k, size in enumerate(found.sizes)
    ]


def rows_are_sampled(fit: BlockFit, what: Side = "row") -> bool:
    """Say whether shares are of a population: that of rows, but for Mondrians and cells in several groups."""
    return what == "row" and fit.settings.prior != "mondrian" and "row_memberships" not in fit.draws.arrays


def _some(members: list[str]) -> str:
    """Return the first names, as many as fit into a cell."""
    text = ""
    for at, name in enumerate(members):
        longer = f"{text}, {shown(name, 60)}" if text else shown(name, 60)
        if text and len(longer) > MEMBERS_WIDTH:
            return f"{text} and {len(members) - at:,} more"
        text = longer
    return text


def answer(fit: BlockFit, context: Context) -> Answer:
    """Say what was found, and how far to trust it."""
    n_chains = fit.draws.arrays["row_labels"].shape[0]
    judged: list[tuple[Level, str]] = [of_chains(fit.draws)]
    groups = {what: groups_of(fit, what) for what in SIDES}
    for what in SIDES:
        found = groups[what].recurrence.n_chains.tolist()
        judged += of_recurrence(found, n_chains, "chain", f" (of {what}s)")
    if fit.matrix is not None:
        doubts = doubts_about(fit.matrix.family, fit.matrix.n_cells)
        judged += [("care", f"{capital(doubt.as_options())}.") for doubt in doubts]
    advice = []
    if judged[0][0] == "bad":
        advice.append("Run the chains for longer (--draws, --burn-in) before you build on this.")
    n_columns = fit.shape[1]
    found = groups["row"].recurrence.n_chains.tolist()
    data = f"{count_of(all_rows(fit), 'row')} and {count_of(n_columns, 'column')}"
    said = [how_many(len(found), found, n_chains, "rows", data)]
    names = column_names(fit)
    said.append(column_sentence(fit, names))
    if fit.matrix is not None and len(found) > 1:
        values, rows = GroupValues(fit), line_groups(fit, "row")
        # Groups of nested cuts are numbered by their place.
        order = sorted(range(len(rows)), key=lambda k: -rows[k].size)
        said += [group_sentence(values, rows, names, k) for k in order[:SENTENCES]]
        if len(rows) > SENTENCES:
            share = percent(sum(rows[k].share for k in order[SENTENCES:]))
            said.append(f"{others(len(rows) - SENTENCES)} {share} of the rows.")
    sure = float(np.mean(groups["row"].how_sure[groups["row"].placed])) if groups["row"].placed.any() else 0.0
    how = "sure" if sure >= 0.9 else "fairly sure" if sure >= 0.7 else "unsure"
    said.append(
        f"Which row belongs where is {how}: a row is with its fellow members in {percent(sure)} of "
        f"draws{_open_rows(fit, groups['row'].placed)}."
    )
    if note := sample_note(fit):
        said.append(f"{capital(note)}; predictions are by their cells.")
    return Answer(verdict(judged, advice), tuple(said))


def _open_rows(fit: BlockFit, placed: Array) -> str:
    """Say how many rows are unsure, and whether they have fewer cells than the others."""
    unsure = int((~placed).sum())
    if not unsure:
        return ""
    fewer = ""
    if fit.matrix is not None and placed.any():
        each = np.diff(fit.matrix.by_row.starts)
        own, others = float(np.median(each[~placed])), float(np.median(each[placed]))
        if own < others:
            fewer = f", which have fewer cells ({own:g} in the median, the others {others:g}),"
    return f"; {unsure:,} of {fit.shape[0]:,} rows{fewer} could be in several groups"


def group_sentence(values: GroupValues, rows: list[LineGroup], names: list[str], k: int) -> str:
    """Say what one group of rows is like: the columns that set it apart."""
    share = interval(rows[k].share, rows[k].low, rows[k].high)
    who = f"Group {k + 1}, {share} of the rows"
    means, others = values.by_column[1], values.elsewhere
    told = [
        f"“{shown(names[column], IN_SENTENCES)}” ({values.said(measure, float(means[measure, k, column]))}; "
        f"elsewhere {values.written(float(others[measure, k, column]))})"
        for measure, column in values.telling(k, NAMED)
    ]
    where = _of_blocks(values, names, k)
    apart = f"stands apart in {listed(told)}" if told else "does not stand apart in any single column"
    return f"{who}, {f'{where}, and ' if where else ''}{apart}."


def _of_blocks(values: GroupValues, names: list[str], k: int) -> str:
    """Say in which groups of columns a group of rows has most and least, where that is not the same."""
    n, means = values.by_column_group
    measure = values.leading
    enough = np.flatnonzero(n[k] >= FEWEST_CELLS)
    if len(enough) < 2:
        return ""
    most, least = (int(enough[pick(means[measure, k, enough])]) for pick in (np.argmax, np.argmin))
    high, low = (values.written(float(means[measure, k, j])) for j in (most, least))
    if high == low:
        return ""
    what = values.names[measure]
    first, last = (_column_group(values, names, j) for j in (most, least))
    if not values.is_share:
        return f"is highest in {first} ({what} {high}) and lowest in {last} ({low})"
    word = "1" if what == SHARE_OF_1 else f"“{what}”"
    return f"has {word} most often in {first} ({high}) and least often in {last} ({low})"


def _column_group(values: GroupValues, names: list[str], j: int) -> str:
    """Name a group of columns, by one of them where the sentence about all columns does not."""
    sizes = np.bincount(values.column_labels)
    if j in named_groups(sizes):
        return f"column group {j + 1}"
    member = shown(names[int(np.flatnonzero(values.column_labels == j)[0])], IN_SENTENCES).rstrip(".")
    more = f" and {sizes[j] - 1:,} more" if sizes[j] > 1 else ""
    return f"column group {j + 1} (“{member}”{more})"


def named_groups(sizes: Array) -> list[int]:
    """Return the groups of columns whose columns the answer names: the largest, in their order."""
    return sorted(np.argsort(-sizes, kind="stable")[:SENTENCES].tolist())


def column_sentence(fit: BlockFit, names: list[str]) -> str:
    """Say into which groups the columns fall, and whether draws have as many."""
    labels = groups_of(fit, "column").labels
    sizes = np.bincount(labels)
    if len(sizes) == 1:
        return "The columns are one group."
    low, high = drawn_interval(fit.draws.arrays["n_column_groups"])
    often = "" if low <= len(sizes) <= high else f" ({span_of(low, high)} in 90% of the draws)"
    told = []
    for k in named_groups(sizes):
        first = shown(names[int(np.flatnonzero(labels == k)[0])], IN_SENTENCES).rstrip(".")
        such = f"{sizes[k]:,} such as " if sizes[k] > 1 else ""
        told.append(f"column group {k + 1} ({such}“{first}”)")
    if len(sizes) > SENTENCES:
        told.append(count_of(len(sizes) - SENTENCES, "smaller group"))
    return f"The columns fall into {count_of(len(sizes), 'group')}{often}: {listed(told)}."


def subtitle(fit: BlockFit) -> str:
    """Say what the report is about."""
    data = f"{count_of(all_rows(fit), 'row')}, {count_of(fit.shape[1], 'column')}"
    return f"{data}; co-clustering into {PRIORS[fit.settings.prior]}"


def sections(fit: BlockFit, context: Context) -> list[Section]:
    """Describe the groups."""
    n_chains = fit.draws.arrays["row_labels"].shape[0]
    rows, columns = line_groups(fit, "row"), line_groups(fit, "column")
    blocks: list[Block] = [
        sizes_figure(rows, "rows"),
        groups_table(rows, n_chains, "rows", "", rows_are_sampled(fit)),
    ]
    blocks += [groups_table(columns, n_chains, "columns", "", False), *covariate_blocks(fit, "rows")]
    parts = []
    names = column_names(fit)
    values = None if fit.matrix is None else GroupValues(fit)
    if values is not None and len(rows) > 1:
        for k in range(min(len(rows), PARTS)):
            share = interval(rows[k].share, rows[k].low, rows[k].high)
            content: list[Block] = [Paragraph(group_sentence(values, rows, names, k))]
            telling = telling_table(values, names, k)
            content.append(telling if telling is not None else Note("No column sets it apart."))
            parts.append(Section(f"group-{k + 1}", f"Group {k + 1}: {share} of the rows", tuple(content)))
    parts += [_column_part(fit, names, k) for k in range(min(len(columns), PARTS))]
    found = [Section("groups", "The groups", tuple(blocks), tuple(parts))]
    if values is not None:
        found += [split_section(values, names), block_section(fit, values)]
    drawn = {f"{what}s": fit.draws.arrays[f"n_{what}_groups"] for what in SIDES}
    shown_ = {"rows": len(rows), "columns": len(columns)}
    return [*found, numbers_section(drawn, shown_), gaps_section(context, *gaps(fit))]


def telling_table(values: GroupValues, names: list[str], k: int) -> Table | None:
    """List the columns that set a group of rows apart."""
    n, means = values.by_column
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (
            names[column],
            *([values.names[measure]] if values.is_share else []),
            values.written(float(means[measure, k, column])),
            values.written(float(values.elsewhere[measure, k, column])),
            int(n[k, column]),
        )
        for measure, column in values.telling(k, TELLING)
    )
    if not rows:
        return None
    what = ["what"] if values.is_share else []
    return Table(
        f"Columns that set group {k + 1} apart",
        ("column", *what, "this group", "elsewhere", "cells"),
        rows,
        "The surest first. Elsewhere: all other groups. Cells: filled ones of the group.",
    )


def _column_part(fit: BlockFit, names: list[str], k: int) -> Section:
    """List the columns of a group."""
    found = groups_of(fit, "column")
    members = np.flatnonzero(found.labels == k)
    entries = [names[j] for j in members[:MOST_MEMBERS].tolist()]
    if len(members) > MOST_MEMBERS:
        entries.append(f"… and {len(members) - MOST_MEMBERS:,} more")
    title = f"Column group {k + 1}: {count_of(len(members), 'column')}"
    return Section(f"columns-{k + 1}", title, (Listing(tuple(entries)),))


def split_section(values: GroupValues, names: list[str]) -> Section:
    """Put the columns that divide groups of rows most side by side."""
    title = "How the groups of rows split"
    chosen = values.dividing(DIVIDING)
    if values.n_groups == 1 or not chosen:
        return Section("split", title, (Paragraph("No column divides the rows into groups."),))
    n_groups = min(values.n_groups, SIDE_BY_SIDE)
    means = values.by_column[1]
    low, high = (0.0, 1.0) if values.is_share else np.nanquantile(means[0], (0.05, 0.95))
    rows, shades = [], []
    for measure, column in chosen:
        cells = [float(means[measure, k, column]) for k in range(n_groups)]
        what = [values.names[measure]] if values.is_share else []
        everybody = values.written(float(values.overall[measure, column]))
        rows.append((names[column], *what, everybody, *map(values.written, cells)))
        tints = [shade_of(value, float(low), float(high)) for value in cells]
        shades.append((None, *([None] if what else []), None, *tints))
    heads = ("column", *(["what"] if values.is_share else []), "all")
    table = Table(
        "The columns that divide the groups of rows most",
        (*heads, *(f"Group {k + 1}" for k in range(n_groups))),
        tuple(rows),
        "The stronger the color, the more." + ("" if n_groups == values.n_groups else " The largest groups."),
        tuple(shades),
    )
    measure, column = chosen[0]
    said = Paragraph(f"What divides the groups of rows most is “{shown(names[column], IN_SENTENCES)}”.")
    return Section("split", title, (said, table))


def block_section(fit: BlockFit, values: GroupValues) -> Section:
    """Draw groups of rows by groups of columns, and the matrix in their order."""
    n, means = values.by_column_group
    n_rows, n_columns = (min(size, 2 * SIDE_BY_SIDE) for size in n.shape)
    figures: list[Figure] = []
    for measure, name in enumerate(values.names):
        shown_ = means[measure, :n_rows, :n_columns]
        ends = (0.0, 1.0) if values.is_share else (float(np.nanmin(shown_)), float(np.nanmax(shown_)))
        what = f"Percent “{name}”" if values.is_share else capital(name)
        figures.append(
            heat(
                f"{what}: groups of rows by groups of columns",
                "Of the filled cells where a group of rows meets a group of columns; empty if none.",
                shown_,
                [f"Rows, group {k + 1}" for k in range(n_rows)],
                [f"Column group {j + 1}" for j in range(n_columns)],
                corner="rows \\ columns",
                low=ends[0],
                high=ends[1],
                written=values.written,
                in_cells=(lambda value: f"{100 * value:.0f}") if values.is_share else number,
                cell=40.0,
            )
        )
    pictures: list[Block] = [*figures, matrix_picture(fit, values)]
    if fit.tree is not None:
        pictures.append(cut_picture(fit, values))
    return Section("pairs", "Groups of rows by groups of columns", tuple(pictures))


def gaps(fit: BlockFit) -> list[Block]:
    """Say how much of the matrix is filled, and who has few cells."""
    if fit.matrix is None:
        return [Note("The ensemble was fitted to base co-clusterings alone; the matrix is not known.")]
    n_rows, n_columns = fit.shape
    cells = fit.matrix.n_cells
    rows = [
        ("filled cells", f"{cells:,} of {n_rows * n_columns:,} ({percent(cells / (n_rows * n_columns))})")
    ]
    for what, lines in (("row", fit.matrix.by_row), ("column", fit.matrix.by_column)):
        each = np.diff(lines.starts)
        rows.append(
            (f"cells of a {what}", f"{each.min():,} to {each.max():,}, {np.median(each):g} in the median")
        )
        placed = fit.placed(what)  # type: ignore[arg-type]
        if not placed.all():
            few = float(np.median(each[~placed]))
            rows.append(
                (
                    f"{what}s that could be in several groups",
                    f"{int((~placed).sum()):,}, {few:g} cells in the median",
                )
            )
    return [Table("How much of the matrix is filled", ("what", "how much"), tuple(rows))]
