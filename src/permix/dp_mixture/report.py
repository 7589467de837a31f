"""What a mixture of rows of a table found: the answer in sentences, and the sections of its report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from permix.dp_mixture.fit import FEWEST_ROWS, MixtureFit, gaussian_columns, mostly_alone, too_few
from permix.dp_mixture.odd_columns import listed_columns, odd_columns
from permix.dp_mixture.profile import LEAST_DIFFERENCE, group_profile, typical_words
from permix.families import Multinomial
from permix.partitions.priors import DirichletProcess, PartitionPrior
from permix.reporting.charts import Axis, Interval, dots, heat
from permix.reporting.content import Answer, Block, Figure, Note, Paragraph, Section, Table
from permix.reporting.context import Context
from permix.reporting.partition_sections import (
    LineGroup,
    drawn_shares,
    groups_table,
    how_many,
    numbers_section,
    sizes_figure,
)
from permix.reporting.shared import covariate_blocks, gaps_section
from permix.reporting.verdicts import Judged, of_chains, of_recurrence, verdict
from permix.reporting.words import capital, count_of, interval, listed, others, percent, shown, told_apart

REFERENCE = (
    "Dirichlet-process and finite mixtures; the permutation-augmented moves are those of Liang, Jordan and "
    "Taskar (2007), A permutation-augmented sampler for DP mixture models, ICML."
)
# Groups that have a sentence, and a part of their own; features of sentences, pictures and tables.
SENTENCES, PARTS = 6, 12
NAMED, DRAWN, LISTED = 3, 14, 40
# Deviations from all rows at which colors end.
FAR = 2.0
# Shapes of columns that take several Gaussian groups, as ``odd_columns`` calls them and in words.
SHAPES = {
    "discrete": "few different values",
    "one value": "one value in many rows",
    "counts": "small counts",
    "flat": "spread evenly",
    "heavy": "heavy tails",
    "skewed": "skewed",
}


def found_groups(fit: MixtureFit) -> list[LineGroup]:
    """Return the groups, the largest first."""
    arrays = fit.draws.arrays
    learned = arrays["concentration"].ravel() if "concentration" in arrays else None

    def prior_of(draw: int) -> PartitionPrior:
        return fit.prior if learned is None else DirichletProcess(float(learned[draw]))

    shares = drawn_shares(arrays["labels"], fit.labels, fit.recurrence.n_chains, prior_of)
    return [
        LineGroup(
            int(fit.cluster_sizes[k]),
            *shares[k],
            float(fit.how_sure[fit.labels == k].mean()),
            int(fit.recurrence.n_chains[k]),
        )
        for k in range(fit.n_clusters)
    ]


def answer(fit: MixtureFit, context: Context) -> Answer:
    """Say what was found, and how far to trust it."""
    n_chains = fit.draws.arrays["labels"].shape[0]
    found = fit.recurrence.n_chains.tolist()
    judged = [*of_data(fit), of_chains(fit.draws), *of_recurrence(found, n_chains, "chain")]
    advice = ["Run the chains for longer (--draws, --burn-in) before you build on this."] * (
        of_chains(fit.draws)[0] == "bad"
    )
    data = f"{count_of(fit.n_rows, 'row')} and {count_of(len(fit.columns), 'column')}"
    groups = found_groups(fit)
    said = [how_many(fit.n_clusters, found, n_chains, "rows", data)]
    if fit.n_clusters > 1:
        said += [group_sentence(fit, groups, k) for k in range(min(fit.n_clusters, SENTENCES))]
        if fit.n_clusters > SENTENCES:
            rest = groups[SENTENCES:]
            share = percent(sum(group.size for group in rest) / len(fit.labels))
            said.append(f"{others(len(rest))} {share} of the rows.")
        sure = float(fit.how_sure.mean())
        how = "sure" if sure >= 0.9 else "fairly sure" if sure >= 0.7 else "unsure"
        said.append(
            f"Which row belongs where is {how}: a row is with its fellow members in {percent(sure)} of draws."
        )
    if fit.sample_note:
        said.append(f"{fit.sample_note[0].upper()}{fit.sample_note[1:]}.")
    return Answer(verdict(judged, advice), tuple(said))


def of_data(fit: MixtureFit) -> list[Judged]:
    """Judge whether rows and columns are such that groups of them mean something."""
    if fit.n < FEWEST_ROWS:
        return [("bad", f"{capital(too_few(fit.n))}.")]
    judged: list[Judged] = []
    alone = int(np.count_nonzero(fit.cluster_sizes == 1))
    if 2 * alone > fit.n:
        judged.append(("bad", f"{mostly_alone(alone, fit.n)}."))
    columns = gaussian_columns(fit.family, fit.data, fit.feature_names)
    if columns is not None and fit.n_clusters > 1:
        odd = {SHAPES[kind]: at for kind, at in odd_columns(columns[0]).items() if at and kind in SHAPES}
        if odd:
            told = listed([f"{listed_columns(at, columns[1])} ({shape})" for shape, at in odd.items()])
            judged.append(("care", f"There may be too many groups, which follow the shape of {told}."))
    return judged


def group_sentence(fit: MixtureFit, groups: list[LineGroup], k: int) -> str:
    """Say what one group is like."""
    group = groups[k]
    share = interval(group.share, group.low, group.high)
    who = f"Group {k + 1}, {share} of the rows,"
    if isinstance(fit.family, Multinomial):
        words = [shown(word, 40) for word in typical_words(fit, 6)[k]]
        if not words:
            return f"{who} has the same shares as all rows."
        return f"{who} has more than others of {listed(words)}."
    rows = [row for row in group_profile(fit, k) if abs(row["difference"]) >= LEAST_DIFFERENCE]
    rows = [row for row in rows if row["difference"] > 0 or not row["is_share"]][:NAMED]
    shares, means = [], []
    for row, (*each, overall) in zip(rows, averages(fit, [row["feature"] for row in rows]), strict=True):
        name = shown(row["feature"], 40)
        if row["is_share"]:
            shares.append(f"{name} in {each[k]} of its rows ({overall} of all)")
        else:
            means.append(f"{name} {each[k]} ({overall} in all rows)")
    said = [listed(shares)] if shares else []
    said += [f"on average {listed(means)}"] if means else []
    if not said:
        return f"{who} is near the average of all rows."
    return f"{who} has {', and '.join(said)}."


def averages(fit: MixtureFit, features: Sequence[str]) -> list[list[str]]:
    """Write the average of features in each group, and then that of all rows, in one precision each."""
    profile, column = fit.profile, {name: j for j, name in enumerate(fit.features)}
    written = []
    for j in (column[name] for name in features):
        values = [*map(float, profile.typical[:, j]), float(profile.overall[j])]
        written.append([*map(percent, values)] if profile.is_share[j] else told_apart(values))
    return written


def subtitle(fit: MixtureFit) -> str:
    """Say what the report is about."""
    data = f"{count_of(fit.n_rows, 'row')}, {count_of(len(fit.columns), 'column')}"
    return f"{data}; mixture ({fit.family.name} family) with as many groups as the data ask for"


def sections(fit: MixtureFit, context: Context) -> list[Section]:
    """Describe the groups."""
    groups = found_groups(fit)
    n_chains = fit.draws.arrays["labels"].shape[0]
    blocks: list[Block] = [sizes_figure(groups, "rows")]
    if fit.n_clusters > 1:
        blocks += [overview(fit), groups_table(groups, n_chains, "rows")]
    blocks += covariate_blocks(fit, "rows")
    parts = []
    if fit.n_clusters > 1:
        for k in range(min(fit.n_clusters, PARTS)):
            share = interval(groups[k].share, groups[k].low, groups[k].high)
            content = (
                Paragraph(group_sentence(fit, groups, k)),
                profile_picture(fit, k),
                profile_table(fit, k),
            )
            parts.append(Section(f"group-{k + 1}", f"Group {k + 1}: {share} of the rows", content))
        if fit.n_clusters > PARTS:
            left = fit.n_clusters - PARTS
            blocks.append(Note(f"The {PARTS} largest groups follow; {left} smaller ones are in the tables."))
    return [
        Section("groups", "The groups", tuple(blocks), tuple(parts)),
        split_section(fit),
        numbers_section({"rows": fit.draws.arrays["n_groups"]}, {"rows": fit.n_clusters}),
        gaps_section(context, *gaps(fit)),
    ]


def _telling(fit: MixtureFit, most: int) -> list[int]:
    """Return the features in which groups differ most, in the order of the columns."""
    differences = np.nan_to_num(fit.profile.differences)
    weights = fit.cluster_sizes / fit.n
    spread = weights @ (differences - weights @ differences) ** 2
    return sorted(np.argsort(-spread, kind="stable")[:most].tolist())


def overview(fit: MixtureFit) -> Figure:
    """Draw the features by group: how far from all rows, and the averages."""
    profile, chosen = fit.profile, _telling(fit, 2 * DRAWN)
    n_groups = min(fit.n_clusters, PARTS)
    texts = [each[:n_groups] for each in averages(fit, [fit.features[j] for j in chosen])]
    names = [shown(fit.features[j]) for j in chosen]
    some = (
        ""
        if len(chosen) == len(fit.features)
        else f" The {len(chosen)} most telling of {len(fit.features):,}."
    )
    return heat(
        "What is typical of each group",
        "Averages (of categories: shares) of the rows of each group; orange below the average of all rows, "
        f"blue above it, up to {FAR:g} standard deviations.{some}",
        profile.differences[:n_groups, chosen].T,
        names,
        [f"Group {k + 1}" for k in range(n_groups)],
        corner="feature",
        low=-FAR,
        high=FAR,
        diverging=True,
        texts=texts,
        cell=58.0,
    )


def profile_picture(fit: MixtureFit, k: int) -> Figure:
    """Draw how far a group is from all rows."""
    rows = group_profile(fit, k)[:DRAWN]
    drawn = [
        Interval(shown(row["feature"], 60), row["difference"], other=0.0)
        for row in rows
        if row["difference"] == row["difference"]
    ]
    far = max([1.0, *(abs(row.value) for row in drawn)])
    return dots(
        f"How group {k + 1} differs from all rows",
        "In standard deviations of all rows, the most telling first; right of 0, more than on average.",
        drawn,
        Axis("standard deviations", -far, far, lambda value: f"{value:+.1f}" if value else "0"),
        ("feature", "this group", "", "all rows"),
    )


def profile_table(fit: MixtureFit, k: int) -> Table:
    """List the averages of a group beside those of all rows."""
    rows = group_profile(fit, k)
    shown_rows = rows[:LISTED]
    written = averages(fit, [row["feature"] for row in shown_rows])
    cells = tuple(
        (shown(row["feature"]), each[k], each[-1], f"{row['difference']:+.1f}")
        for row, each in zip(shown_rows, written, strict=True)
    )
    left = len(rows) - len(cells)
    note = "Apart: in standard deviations of all rows." + (f" {left:,} more not shown." if left > 0 else "")
    return Table(f"Averages of group {k + 1}", ("feature", "this group", "all rows", "apart"), cells, note)


def split_section(fit: MixtureFit) -> Section:
    """Say which columns tell the groups apart."""
    title = "What tells the groups apart"
    if fit.n_clusters == 1:
        return Section("split", title, (Paragraph("There is one group: nothing divides it."),))
    differences = np.nan_to_num(fit.profile.differences)
    weights = fit.cluster_sizes / fit.n
    explained = np.clip(weights @ (differences - weights @ differences) ** 2, 0.0, 1.0)
    order = np.argsort(-explained, kind="stable")[:DRAWN].tolist()
    rows = tuple((shown(fit.features[j]), percent(float(explained[j]))) for j in order)
    best = shown(fit.features[order[0]], 60)
    blocks: tuple[Block, ...] = (
        Paragraph(
            f"What tells the groups apart most is {best}: {percent(float(explained[order[0]]))} of its "
            "variance lies between groups."
        ),
        Table(
            "Variance that lies between groups, by column",
            ("feature", "between groups"),
            rows,
            "100%: the groups say all about it; 0%: they say nothing.",
        ),
    )
    return Section("split", title, blocks)


def gaps(fit: MixtureFit) -> list[Block]:
    """Say how the columns were read, and what is missing."""
    numbers = fit.family.numbers(fit.data)
    readings: list[Any] = fit.family.readings(fit.data)
    if readings:
        rows = tuple(
            (shown(column), reading, int(missing))
            for column, (reading, missing) in zip(fit.columns, readings, strict=False)
        )
        table = Table("What the columns are read as", ("column", "read as", "missing cells"), rows)
        return [table]
    missing = np.isnan(numbers).sum(axis=0)
    if not missing.any():
        return [Paragraph("No cell is missing.")]
    names = fit.features
    lacking = tuple(
        (shown(names[j]), int(missing[j]), percent(float(missing[j] / fit.n)))
        for j in np.flatnonzero(missing)
    )
    return [Table("Missing cells", ("column", "missing", "of all rows"), lacking)]
