"""What ``info``, ``convert``, ``consensus`` and ``summary`` do."""

from __future__ import annotations

import shutil
import sys
import warnings
import zipfile
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import typer

from permix.cli.output import count_of, print_json, print_table, say
from permix.cli.stdin import is_stdin
from permix.cli.votes import ReadOptions
from permix.errors import Argument, CycleError, DataError, Message, NotRankings, PermixWarning
from permix.files import MANIFEST
from permix.registries import part

PICTURES = (".png", ".svg", ".pdf")

# What describes a file that holds no votes.
ANY = Argument("as", "any")
# Names of columns that are shown.
MOST_NAMES = 6


def _is_fit(file: Path) -> bool:
    """Whether a zip has the manifest of a fitted model."""
    with zipfile.ZipFile(file) as archive:
        return MANIFEST in archive.namelist()


def show_info(options: ReadOptions, as_json: bool, values: Mapping[str, Any]) -> None:
    """Describe a file of votes, a matrix, a table or a fitted model."""
    from permix.cli.matrices import is_matrix, says_matrix, show_matrix
    from permix.cli.table_info import show_table, table_of_some_size

    file, asked = options.file, values.get("read_as")
    shows: dict[str, Callable[..., None]] = {"matrix": show_matrix, "table": show_table}
    read_any = part("permix.comparison.any_file:read_any")
    if asked in (None, "any") and (says_matrix(values) or is_matrix(file)):
        asked = "matrix"
    if asked in shows:
        shows[asked](options, read_any(file, {**values, "read_as": asked}).data, as_json)
        return
    ballots = _recognized(file, options.given)
    packed = (
        file.is_file() and file.suffix not in (".npz", ".xlsx", ".xlsm", ".ods") and zipfile.is_zipfile(file)
    )
    if packed and ballots is None and file.suffix == ".zip" and not _is_fit(file):
        raise DataError(
            f"{file}: a zip, but of no ballots of Dominion or Hart; unpack it, or read one file in it with "
            f"unzip -p {file} NAME | permix info -"
        )
    if file.suffix == ".permix" or (packed and ballots is None):
        from permix.cli.predict import show_fit

        show_fit(file, as_json)
        return
    about: dict[str, Any] = {}
    if ballots is not None:
        about = {"format": ballots.title, "recognized_by": ballots.why, "contests": ballots.contests()}
        if len(about["contests"]) > 1 and "contest" not in options.given:
            _show_contests(file, about, as_json)
            if way_out := ballots.way_out():
                warnings.warn(PermixWarning(*way_out), stacklevel=2)
            return
    try:
        votes = _with_contradictions(options)
    except NotRankings as error:
        if about or "layout" in options.given or not error.looks_like:
            raise
        said = error.args[0] if isinstance(error.args[0], Message) else Message(str(error))
        if asked == "any":
            found = read_any(file, {**values, "read_as": None})
            shows[found.form.name](options, found.data, as_json, found.why)
        elif asked is None and (table := table_of_some_size(file, values)) is not None:
            show_table(options, table, as_json, no_votes=said.as_options())
        else:
            error.args = (Message(*said.parts, ". If it holds no votes, ", ANY, " describes it"),)
            raise
        return
    layout = votes.metadata.get("LAYOUT")
    laid_out = {"layout": layout} if layout else {}
    facts = {**(about or _kind(options, votes)), **laid_out, **describe_votes(votes)}
    if as_json:
        print_json({"file": str(file), **facts, **cleaning_report(votes)})
        return
    title = votes.metadata.get("TITLE", "") if votes.metadata else ""
    skip = ("first_choices", "items", "contests")
    print_table(
        f"{file.name}{f': {title}' if title else ''}",
        ["", ""],
        [[name.replace("_", " "), _readable(value)] for name, value in facts.items() if name not in skip],
    )
    reading = part("permix.data.reading:how_it_was_read")(votes)
    if reading:
        say(reading)
    print_cleaning(cleaning_report(votes), int(votes.n_agents))
    chosen = facts["first_choices"]
    if not chosen:
        return
    agents = facts["agents"]
    rows = sorted(chosen.items(), key=lambda pair: -pair[1])
    print_table(
        "First choices",
        ["item", "agents", "of all"],
        [[name, count, f"{count / agents:.1%}"] for name, count in rows[:20]],
    )
    if len(rows) > 20:
        print(f"... and {count_of(len(rows) - 20, 'more item')}")
    if agents > sum(chosen.values()):
        print(f"{count_of(agents - sum(chosen.values()), 'agent')} named no single first choice")


def _with_contradictions(options: ReadOptions) -> Any:
    """Read votes, those of agents who contradict themselves included, unless the user says otherwise."""
    try:
        return options.read()
    except CycleError:
        if "on_cycle" in options.given:
            raise
    return options._replace(given={**options.given, "on_cycle": "keep"}).read()


def _recognized(file: Path, given: Mapping[str, Any]) -> Any:
    """Return the format of ballots that a file, folder or zip has, if any."""
    from permix.data.io.read_write import recognize_ballots

    known = file.suffix in (".permix", ".npz") or not file.exists()
    return None if known else recognize_ballots(file, given)


def _kind(options: ReadOptions, votes: Any) -> dict[str, Any]:
    """Say which kind of file holds the votes, and by what it was recognized."""
    from permix.data.io.kinds import kind_of

    file = options.file
    found = kind_of(file)
    why = "the content" if is_stdin(file) else found.why
    told = _telling_columns(votes) if found.name == "table" else []
    if told:
        more = ", …" if len(told) > MOST_NAMES else ""
        why = f"{why}, columns called {', '.join(told[:MOST_NAMES])}{more}"
    return {"format": found.title, "recognized_by": why}


def _telling_columns(votes: Any) -> list[str]:
    """Return the columns of a table whose names say what they hold."""
    from permix.data.io.tables import is_known

    table = votes.metadata.get("TABLE")
    names = table["columns"] if isinstance(table, dict) else []
    return [name for name in names if is_known(name) and not name.isdecimal()]


def _show_contests(file: Path, about: dict[str, Any], as_json: bool) -> None:
    """List the contests of a file that has several."""
    if as_json:
        print_json({"file": str(file), **about})
        return
    print(f"{file.name}: {about['format']} ({about['recognized_by']})\n")
    contests = [[number, name] for number, name in about["contests"].items()]
    print_table(f"{len(contests)} contests; say which with --contest", ["id", "contest"], contests)


def cleaning_report(votes: Any) -> dict[str, Any]:
    """Return what rules did to the ballots, as plain values; nothing where no rule was needed."""
    done = (getattr(votes, "metadata", None) or {}).get("CLEANING", [])
    done = done if isinstance(done, list) else []  # a header of a file may have such a line as well
    return {"cleaning": [{**entry, "which": list(entry["which"])} for entry in done]} if done else {}


def _listed(names: Any) -> str:
    return names if isinstance(names, str) else ", ".join(names)


def print_cleaning(report: dict[str, Any], kept: int | None = None, what: str = "votes") -> None:
    """Write what rules did to how many ballots, and how many are kept."""
    if "cleaning" in report:
        print()
        gone = sum(int(entry.get("left_out") or 0) for entry in report["cleaning"])
        unit = "agents " if what == "votes" else ""
        read = f": {kept + gone:,} {unit}read, {gone:,} left out, {kept:,} kept" if kept is not None else ""
        print_table(
            f"What was done to the {what}{read}",
            ["found", "how many", "what was done", "which"],
            [
                [entry["found"], entry["ballots"], entry["done"], _listed(entry["which"])]
                for entry in report["cleaning"]
            ],
        )


def print_reading(about: Mapping[str, Any]) -> None:
    """Write how the votes that a model was made of were read."""
    for row in about.get("reading") or []:
        print()
        say(row["said"])


def kept_of(report: dict[str, Any]) -> tuple[int | None, str]:
    """Return how many ballots (of a matrix: rows) a fit was made of, and what they are called."""
    if "columns" in report:
        return report.get("rows"), "rows"
    return report.get("agents"), "votes"


def print_choice(about: dict[str, Any]) -> None:
    """Write what the number of groups was chosen by."""
    for row in about.get("chosen") or []:
        print()
        say(row["said"])
    rows = about.get("selection") or []
    if rows:
        table = part("permix.reporting.chosen_number:number_table")(rows)
        print()
        print_table(table.caption, list(table.columns), [list(row) for row in table.rows])
        say(table.note)


def _readable(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return f"{value:,}" if isinstance(value, int) else str(value)


def describe_votes(votes: Any) -> dict[str, Any]:
    """Facts about rankings or preferences as plain values."""
    from permix.data import Rankings
    from permix.data.io.categories import category_names

    names = [str(item) for item in votes.items]
    facts: dict[str, Any] = {
        "kind": "rankings" if isinstance(votes, Rankings) else "preferences",
        "agents": int(votes.n_agents),
        "rows": len(votes),
        "number_of_items": votes.n_items,
        "items": names,
    }
    if isinstance(votes, Rankings):
        lengths, facts["complete"] = votes.lengths, bool(votes.is_full)
        if not votes.is_full:
            facts |= {
                "unlisted_items_are": votes.unlisted,
                "shortest_list": int(lengths.min()),
                "mean_length": round(float(np.average(lengths, weights=votes.counts)), 2),
                "longest_list": int(lengths.max()),
            }
        first = np.bincount(votes.orders[:, 0], weights=votes.counts, minlength=votes.n_items)
    else:
        # A row that stands for several agents says what it says for each of them.
        n_pairs, n_rated = (
            int(np.diff(indptr) @ votes.counts) for indptr in (votes.pair_indptr, votes.level_indptr)
        )
        if n_pairs:
            facts["comparisons"] = n_pairs
        if n_rated:
            facts["ratings_or_ranks_given"] = n_rated
            facts["other_items_are"] = "below" if votes.rest_below.all() else "unknown"
        categories = category_names(votes.metadata)
        if categories is not None:
            order = votes.metadata["CATEGORY ORDER"]
            ways = {"best first": sorted(order), "worst first": sorted(order, reverse=True)}
            facts["categories_best_first"] = categories
            facts["order_in_the_file"] = next((name for name in ways if ways[name] == order), "mixed")
        contradicting = int(votes.counts[~votes.consistent].sum())
        if contradicting:
            facts["agents_who_contradict_themselves"] = contradicting
            facts["what_to_do"] = "--on-cycle drop leaves them out; consensus takes --on-cycle keep"
        # A sole item of the best level is a first choice; ties at the top have none.
        start, sizes = votes.level_indptr[:-1], np.diff(votes.level_indptr)
        second = np.append(votes.levels, 0)[np.minimum(start + 1, len(votes.levels))]
        sole = (sizes == 1) | ((sizes > 1) & (second > 0))
        first = np.bincount(votes.level_items[start[sole]], votes.counts[sole], votes.n_items)
    facts |= known_facts(votes)
    facts["first_choices"] = {names[k]: int(first[k]) for k in np.flatnonzero(first)}
    return facts


def known_facts(votes: Any) -> dict[str, Any]:
    """Return what is known of agents and items beside the votes, and which columns could be."""
    facts: dict[str, Any] = {}
    if votes.covariates:
        facts["known_of_agents"] = votes.covariates.described()
    others = votes.metadata.get("OTHER COLUMNS") if votes.metadata else None
    if isinstance(others, list) and others:
        facts["columns_for_--group-column"] = [str(name) for name in others]
    if votes.item_attributes:
        facts["known_of_items"] = votes.item_attributes.described()
    return facts


def write_items(votes: Any, path: Path) -> None:
    """Write the attributes of items as a table that ``--items`` reads."""
    from permix.cli.answers import Answer, write_csv

    known = votes.item_attributes
    if not known:
        raise DataError(f"nothing is known of the items, so that there is nothing to write to {path}")
    rows = zip(votes.items, *(known[name].tolist() for name in known), strict=True)
    write_csv(Answer("", ["item", *known], rows), path)


def _say_what_is_lost(votes: Any, target: Path, items: Path | None) -> None:
    """Say what is known beside the votes and is not in the file written."""
    from permix.data.io.text_files import PREFLIB, plain_suffix

    if votes.covariates and plain_suffix(target) in PREFLIB:
        names = ", ".join(votes.covariates)
        print(f"note: {names} of the agents: a PrefLib file has no place for it, a .csv file has")
    facts = known_facts(votes)
    left = facts.get("columns_for_--group-column")
    if left:
        print(f"note: not written: {', '.join(left)}; --group-column keeps a column")
    if votes.item_attributes and items is None:
        print(
            f"note: not written: {', '.join(votes.item_attributes)} of the items; --write-items FILE.csv does"
        )


def run_convert(
    options: ReadOptions,
    target: Path,
    to_layout: str,
    force: bool,
    as_json: bool,
    items: Path | None = None,
) -> None:
    """Read one file and write another; and a table of what is known of the items, where that is asked for."""
    from permix.cli.run import speaking_options
    from permix.data import write
    from permix.data.io.categories import category_scale

    check_targets([target, *([items] if items is not None else [])], [options.file], force)
    votes = options.read()
    if items is not None:
        if items.suffix not in (".csv", ".tsv"):
            raise typer.BadParameter(f"--write-items {items}: end its name in .csv or .tsv")
        write_items(votes, items)
    with speaking_options({"layout": "--to-layout"}):
        write(votes, target, **({} if to_layout == "auto" else {"layout": to_layout}))
    scale = category_scale(votes) if to_layout == "ratings" else {}
    if as_json:
        facts = {"file": str(target), "agents": int(votes.n_agents), "number_of_items": votes.n_items}
        print_json(facts | ({"ratings": scale} if scale else {}) | cleaning_report(votes))
        return
    print_cleaning(cleaning_report(votes), int(votes.n_agents))
    print(f"{target}: {count_of(int(votes.n_agents), 'agent')}, {count_of(votes.n_items, 'item')}")
    if scale:
        print("ratings: " + ", ".join(f"{rating} = {name}" for rating, name in scale.items()))
    _say_what_is_lost(votes, target, items)


def check_targets(
    targets: list[Path], sources: list[Path | None], force: bool, ours: Collection[Path] = ()
) -> None:
    """Refuse, before any work is done, to write over an input, one file over another, or what exists.

    With ``force``, and where it is one of ``ours`` (resolved), what exists may be replaced.
    """
    from permix.files import check_target

    seen = {source.resolve(): "is also the input" for source in sources if source is not None}
    for target in targets:
        check_target(target)
        if target.resolve() in seen:
            raise DataError(f"{target} {seen[target.resolve()]}; give another name")
        seen[target.resolve()] = "is given twice"
        if target.exists() and not force and target.resolve() not in ours:
            raise DataError(f"{target} exists already; add --force to overwrite it")


def drop_chains(chains: Path, n_stored: int, n_made: int) -> None:
    """Remove the chains of a finished fit, once everything it has to say is written.

    Killed before that, the same command finds them complete. They go at one stroke: a folder half removed
    would be no chains at all.
    """
    if n_stored > n_made:
        print(f"{chains} holds {n_stored:,} draws and is kept", file=sys.stderr)
        return
    gone = chains.with_name(f".{chains.name}.tmp")
    shutil.rmtree(gone, ignore_errors=True)  # of a command that was killed right here
    chains.rename(gone)
    shutil.rmtree(gone)


def check_names(output: Path, picture: Path | None) -> None:
    """Refuse, before any work is done, a model's name that says another kind of file, or a picture's."""
    from permix.data.io.text_files import PREFLIB, TABLES, plain_suffix

    reports = ("json", "html", "htm", "md")
    endings = {*PREFLIB, *TABLES, *reports, "npy", "npz", "txt", *(ending[1:] for ending in PICTURES)}
    if plain_suffix(output) in endings:
        report = f"; a report is written by --report {output.name}" if plain_suffix(output) in reports else ""
        raise typer.BadParameter(
            f"--output {output}: the fitted model is no such file; name it {output.stem.split('.')[0]}.permix"
            f"{report}"
        )
    check_picture(picture)


def check_picture(picture: Path | None) -> None:
    """Refuse, before any work is done, the name of a picture that cannot be drawn."""
    if picture is not None and picture.suffix not in PICTURES:
        raise typer.BadParameter(f"{picture}: pictures end in {', '.join(PICTURES)}")
