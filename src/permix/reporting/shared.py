"""Sections that all reports have: checks, cleaning, gaps, covariates, settings, how to reproduce."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Any

import numpy as np

from permix.estimators.baselines import WORDS
from permix.estimators.by_covariate import GroupTable, group_table
from permix.estimators.known import known_of
from permix.reporting import items_of
from permix.reporting.charts import shade_of
from permix.reporting.content import Answer, Block, Brief, Code, Note, Paragraph, Section, Table
from permix.reporting.context import Context, Rows
from permix.reporting.words import capital, count_of, in_a_list, listed, percent, shown

# Values of a covariate, and groups, that tables have, and groups whose intervals fit across a page.
MOST_VALUES, MOST_GROUPS, MOST_INTERVALS = 30, 20, 5
# Parameters that change how a fit runs, and nothing of what it finds.
OF_THE_RUN = ("progress", "store", "n_jobs")
# Facts of a run that are no versions.
OF_THE_DATA = ("command", "data", "title", "read by")
# Covariates, and groups, that the answer speaks of; values of fewer agents are not named.
MOST_COVARIATES, MOST_STRONGEST, FEWEST_AGENTS = 2, 4, 10
MOST_ALIKE = 3  # values of a covariate in which a group is equally strong
NOT_BY_CHANCE = 0.01
CITATION = (
    'The permix developers. "permix: nonparametric Bayesian discovery in rankings, preferences and '
    'matrices", version {version}.'
)


def answer_section(answer: Answer) -> Section:
    """Begin with the answer, and above it how far to trust it, in a line."""
    level, headline, reasons, _ = answer.verdict
    brief = Brief(level, headline, reasons[0] if reasons else "", "Can you trust this?", "trust")
    return Section("answer", "The answer", (brief, *map(Paragraph, answer.sentences)))


# -- covariates ------------------------------------------------------------------------------------


def covariate_blocks(fit: Any, people: str = "agents") -> list[Block]:
    """Put groups beside everything that is known of their members."""
    known = known_of(fit).rows
    if not hasattr(fit, "memberships"):
        return []
    if not known:
        return [
            Note(
                f"Nothing else is known of the {people}, such as precincts or ages. --group-column NAME "
                "keeps a column of the data beside the fit, and the groups are compared with it here."
            )
        ]
    return [block for name in known for block in _covariate(group_table(fit, name), people)]


def _covariate(found: GroupTable, people: str) -> list[Block]:
    n_values, n_groups = found.of_value.shape[:2]
    left = []
    if n_values > MOST_VALUES:
        left.append(f"{count_of(n_values - MOST_VALUES, 'more value')} in permix summary --json.")
    if n_groups > MOST_GROUPS:
        left.append(f"{count_of(n_groups - MOST_GROUPS, 'more group')} in permix summary --json.")
    if found.n_missing:
        left.append(f"Without a value: {found.n_missing:,} {people}.")
    note = " ".join([f"In brackets: {found.note}.", *left])
    parts = columns_of(min(n_groups, MOST_GROUPS), MOST_INTERVALS)
    tables = [_shares_of_values(found, people, groups, note, len(parts) > 1) for groups in parts]
    return [Paragraph(f"{capital(found.verdict)}."), *tables]


def columns_of(n_groups: int, most: int) -> list[range]:
    """Return which groups stand side by side in each of several tables, so that none is wider than a page.

    Examples
    --------
    >>> columns_of(11, 6), columns_of(3, 6)
    ([range(0, 6), range(6, 11)], [range(0, 3)])
    """
    each = -(-n_groups // max(1, -(-n_groups // most)))
    return [range(first, min(first + each, n_groups)) for first in range(0, n_groups, each)]


def _shares_of_values(found: GroupTable, people: str, groups: range, note: str, in_part: bool) -> Table:
    """Put values of a covariate beside some groups."""
    name = shown(found.name)
    rows: list[tuple[str | int, ...]] = []
    shades: list[tuple[int | None, ...]] = []
    for v in range(min(len(found.values), MOST_VALUES)):
        cells = found.of_value[v]
        rows.append((shown(found.values[v]), int(found.agents[v]), *(_share(cells[k]) for k in groups)))
        shades.append((None, None, *(shade_of(float(cells[k, 0]), 0.0, 1.0) for k in groups)))
    rows.append(("all", int(found.agents.sum()), *(percent(float(found.overall[k])) for k in groups)))
    shades.append((None, None, *(shade_of(float(found.overall[k]), 0.0, 1.0) for k in groups)))
    which = f", groups {groups[0] + 1} to {groups[-1] + 1}" if in_part else ""
    return Table(
        f"Of the {people} of each {name}, those in each group{which}",
        (name, people, *(f"Group {k + 1}" for k in groups)),
        tuple(rows),
        note,
        tuple(shades),
    )


def covariate_sentences(fit: Any) -> tuple[str, ...]:
    """Say, of what is known of the members, where groups are strongest."""
    known = known_of(fit).rows
    if not known or not hasattr(fit, "memberships"):
        return ()
    return tuple(_strongest(group_table(fit, name)) for name in list(known)[:MOST_COVARIATES])


def _strongest(found: GroupTable) -> str:
    """Say with which values of a covariate groups are strongest, the clearest first, unless it is chance.

    Clear is where also the low end of the interval is far above the share of all.
    """
    n_groups = found.of_value.shape[1]
    if found.p_value > NOT_BY_CHANCE or len(found.values) < 2 or n_groups < 2:
        return f"{capital(found.verdict)}."
    enough = (found.agents >= FEWEST_AGENTS)[:, None]
    shares = np.where(enough, np.nan_to_num(found.of_value[:, :, 0]), -1.0)
    best, every = shares.argmax(axis=0), np.arange(n_groups)
    clear = found.of_value[best, every, 1] - found.overall
    above = [k for k in np.argsort(-clear, kind="stable").tolist() if shares[best[k], k] > found.overall[k]]
    said: list[str] = []
    for k in above[:MOST_STRONGEST]:
        largest = percent(float(shares[best[k], k]))
        # Values that read the same are named alike: which is larger by a little says nothing.
        order = np.argsort(-shares[:, k], kind="stable")
        alike = [v for v in order if percent(float(shares[v, k])) == largest]
        names = [in_a_list(shown(found.values[v], 40)) for v in alike[:MOST_ALIKE]]
        if len(alike) > MOST_ALIKE:
            names.append(f"{len(alike) - MOST_ALIKE:,} more")
        each, overall = "it" if len(alike) == 1 else "each", percent(float(found.overall[k]))
        where = f"in {listed(names)} ({largest} of {each}, {overall} of all)"
        said.append(f"group {k + 1} {where}" if said else f"group {k + 1} has its largest share {where}")
    rest = len(above) - len(said)
    more = f"; {count_of(rest, 'more group')} in the table" if rest > 0 else ""
    doubt = f"; but {found.doubt}" if found.doubt else ""
    return f"By {shown(found.name)}, {listed(said)}{more}{doubt}."


def _share(cell: Any) -> str:
    mean, low, high = map(float, cell)
    return "–" if mean != mean else f"{percent(mean)} ({100 * low:.0f}–{100 * high:.0f})"


# -- the data --------------------------------------------------------------------------------------


def cleaning_section(context: Context) -> Section:
    """Say what was done to the data before they were fitted."""
    rows = context.about.get("cleaning", ())
    title = "What was read and cleaned"
    read = tuple(Paragraph(shown(row["said"])) for row in context.about.get("reading", ()))
    if not rows:
        # A fit made in Python does not know what its data went through; one made by a command does.
        known = "no rule changed the data" if context.about.get("run") else "the fit does not know of any"
        return Section("cleaning", title, (*read, Paragraph(f"Nothing is recorded: {known}.")))
    gone = sum(int(row.get("left_out") or 0) for row in rows)
    left = f"{count_of(gone, 'ballot')} were left out." if gone else "No ballot was left out."
    table = Table(
        "What was done to the votes",
        ("found", "how many", "what was done", "which"),
        tuple(
            (shown(row["found"]), row["ballots"], shown(row["done"]), _or_nothing(row["which"]))
            for row in rows
        ),
    )
    return Section("cleaning", title, (*read, Paragraph(left), table))


def _or_nothing(value: Any) -> str:
    return shown(value) if str(value or "").strip() else "–"


def gaps_section(context: Context, *more: Block) -> Section:
    """Say how much the data leave open."""
    facts = context.facts("data")
    blocks: list[Block] = []
    if facts:
        rows = tuple((capital(shown(what)), shown(value)) for what, value in facts.items())
        blocks.append(Table("What people said, and what they left open", ("what", "how much"), rows))
    codes = [shown(row["code"]) for row in context.about.get("missing_codes", ())]
    if codes:
        blocks.append(Paragraph(f"Read as missing: {', '.join(codes)}."))
    if not (blocks or more):
        blocks.append(
            Note(
                f"This fit does not keep the data. permix report {context.file or 'FIT'} DATA, with the data "
                "that were fitted, describes what they leave open."
            )
        )
    return Section("gaps", "Gaps in the data", (*blocks, *more))


def choice_section(context: Context) -> list[Section]:
    """Say why this model was chosen, where several were compared."""
    said: list[Block] = [Paragraph(shown(row["said"])) for row in context.about.get("chosen", ())]
    rows = context.about.get("comparison", ())
    if rows:
        said.append(_comparison_table(rows))
    return [Section("chosen", "Why this model", tuple(said))] if said else []


def _comparison_table(rows: Rows) -> Table:
    """Put all models that were compared side by side, with the best simple description as their measure."""
    simple = [row for row in rows if row.get("kind") == "baseline"]
    note = (
        "Mean log probability of what was held out, in nats (1 more: 2.7 times as probable); difference "
        "to the best model, with its standard error."
    )
    titles = ["mean log probability", "difference", "±"]
    if simple:
        base = max(simple, key=lambda row: float(row["score"]))["model"].removesuffix(" (baseline)")
        titles.append(f"times {base}")
        note += f" Times {shown(base)}: how many times as probable as {WORDS.get(base, 'under it')}."
    told = []
    for row in rows:
        is_best = row.get("difference_error") == 0.0
        cells = [f"{float(row['score']):.4f}", *(["best", ""] if is_best else map(_small, _gap(row)))]
        times = [_small(row.get("times"))] if simple else []
        groups, stable = row.get("groups"), row.get("stability")
        told.append(
            (
                shown(row["model"]),
                *cells,
                *times,
                "–" if groups is None else f"{groups:g}",
                "–" if stable is None else percent(float(stable)),
            )
        )
    note += " Stable: the share of the chains, or of the other restarts, that finds a member's group again."
    title = "Models compared on data that they had not seen"
    return Table(title, ("model", *map(shown, titles), "groups", "stable"), tuple(told), note)


def _gap(row: Mapping[str, Any]) -> tuple[Any, Any]:
    return row.get("difference"), row.get("difference_error")


def _small(value: Any) -> str:
    """Write a number of about one, or a difference of logarithms, with digits that tell models apart."""
    return (
        "–" if value is None else f"{float(value):.3g}" if abs(float(value)) >= 1.0 else f"{float(value):.4f}"
    )


# -- settings --------------------------------------------------------------------------------------


def settings_section(fit: Any, context: Context, reference: str) -> Section:
    """Say how the fit was made, how to make it again, and whom to cite."""
    from permix import __version__

    settings = fit.settings
    rows = tuple(
        (
            name,
            _setting(getattr(settings, name)),
            settings.is_default(name),
            _first_sentence(about.help),
        )
        for name, about in settings.declared.items()
        if name not in OF_THE_RUN
    )
    run = context.facts("run")
    versions = {what: value for what, value in run.items() if what not in OF_THE_DATA}
    versions = versions or {"permix": f"{__version__} (of this report; the fit does not say)"}
    blocks: list[Block] = [
        Table("Settings", ("parameter", "value", "default", "what it is"), rows),
        Paragraph(f"Versions: {', '.join(f'{shown(w)} {shown(v)}' for w, v in versions.items())}."),
        Paragraph(f"Cite: {CITATION.format(version=__version__)} The model: {reference}"),
    ]
    again: list[Block] = []
    if "command" in run:
        chosen = "The command that fits this model by itself; permix fit auto chose it"
        output = f" -o {shlex.quote(context.file)}" if context.file else " -o FIT"
        title = chosen if "chosen" in context.about else "The command that made this fit"
        again.append(Code(shown(run["command"] + output), title))
    else:
        again.append(Code(_in_python(fit), "The same in Python, with the data in the variable data"))
        again.append(Note("The command that made this fit is not recorded."))
    if "data" in run:
        again.append(Paragraph(f"Data: {shown(run['data'])}."))
    if context.file:
        votes = f" {run['read by']}" if "read by" in run and items_of(fit) is not None else ""
        again.append(
            Code(shown(f"permix report {shlex.quote(context.file)}{votes} -o report.html"), "This report")
        )
    same = "The same data, settings, seed and version give the same fit and, byte for byte, the same report."
    if context.about.get("ending") or getattr(fit, "interrupted", False):
        same = (
            "This fit was cut short, and where depends on the machine and the moment: the same command need "
            "not give the same fit."
        )
    parts = (Section("reproduce", "How to reproduce this", (*again, Paragraph(same))),)
    return Section("settings", "Settings, versions, how to cite", tuple(blocks), parts)


def _setting(value: Any) -> str:
    return shown(repr(value) if isinstance(value, dict | list | tuple) else value, 200)


def _first_sentence(text: str) -> str:
    # Help texts of parameters are written for Sphinx too.
    words = " ".join(re.sub(r":[a-z]+:`~?([^`]*)`", r"\1", text.replace("``", "")).split())
    return words.partition(". ")[0].removesuffix(".") + "."


def _in_python(fit: Any) -> str:
    settings = fit.settings
    given = {name: value for name, value in settings.as_dict().items() if not settings.is_default(name)}
    kept = [f"{name}={value!r}" for name, value in given.items() if name not in OF_THE_RUN]
    return f"permix.{fit.model}({', '.join(kept)}).fit(data)"
