"""Files of votes on the command line: the options that say how to read them, and what was read."""

from __future__ import annotations

import csv
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import typer

from permix.cli.command import (
    BESIDE,
    IGNORE,
    MIN_ANSWERS,
    MIN_SUPPORT,
    MISSING,
    MODERATED,
    SHEET,
    Option,
    Source,
)
from permix.cli.stdin import spooled
from permix.errors import DataError, PermixWarning
from permix.registries import BALLOT_RULES

# Layouts of tables that are read and written, and those that are read.
LAYOUTS = ("orders", "ranks", "pairs", "ratings")
COMPARED = ("matches", "choices", "best-worst")
VOTE_OPTIONS: Mapping[str, Option] = {
    "layout": Option(
        str,
        "Layout of a table: CSV, Excel, Parquet or JSON lines [default: what it looks like].",
        choices=("auto", *LAYOUTS, *COMPARED),
    ),
    "unlisted": Option(
        str,
        "What items missing from a ranking mean: below (the rest is worse) or unknown (not asked). By "
        "default below for rankings and unknown for ratings.",
        choices=("below", "unknown"),
    ),
    "count_column": Option(str, "Column of a CSV file that says how many agents a row stands for."),
    "agent_column": Option(str, "Column of a CSV file that names the agents."),
    "item_columns": Option(
        list[str],
        "Column of a CSV file that is an item though it is called as something else is, such as Weight, "
        "Votes or Education. May be repeated.",
        ("--item",),
        metavar="COLUMN",
    ),
    "rename": Option(
        list[str],
        "Column of a table that is read as if it were called otherwise, such as essay=item or mark=rating. "
        "May be repeated.",
        metavar="OLD=NEW",
    ),
    "transpose": Option(
        bool,
        "Turn a table around: a row is an item, named in the first column, and each other column an agent.",
        ("--transpose/--no-transpose",),
    ),
    "on_cycle": Option(
        str,
        "Agents whose comparisons contradict each other: error, drop, or keep.",
        choices=("error", "drop", "keep"),
    ),
    "header": Option(
        bool,
        "Whether the first line of a CSV file names the columns [default: what it looks like].",
        ("--header/--no-header",),
    ),
    "ignore": IGNORE,
    "missing": MISSING,
    **BESIDE,
    "sheet": SHEET,
    "ties": Option(
        str,
        "Matches (model_a, model_b, winner): ties are left out (drop), count for either side (both), or are "
        "an error [default: drop].",
        choices=("drop", "both", "error"),
    ),
    "contest": Option(
        str,
        "Ballots: id or name of the contest, where a file has several; surveys: the question.",
        metavar="NAME",
    ),
    "overvotes": Option(
        str,
        "Several candidates at one rank: the ballot ends before it (truncate), the rank is passed over "
        "(skip), one of them is drawn (random), or the ballot is left out (drop) [default: truncate].",
        choices=BALLOT_RULES["overvotes"],
    ),
    "skipped": Option(
        str,
        "Ranks left out: the ballot ends where two in a row are, or one, or later ranks move up (close-up) "
        "[default: stop-after-two].",
        choices=BALLOT_RULES["skipped"],
    ),
    "repeats": Option(
        str,
        "A candidate ranked again: the first rank counts, or the ballot ends before the second (truncate) "
        "[default: first].",
        choices=BALLOT_RULES["repeats"],
    ),
    "tied_ranks": Option(
        str,
        "Several items at one rank, where none is wrong: they stay tied, are put in random order (break), or "
        "the ranking ends before them (truncate) [default: keep]. On ballots, instead of --overvotes.",
        choices=BALLOT_RULES["tied_ranks"],
    ),
    "write_ins": Option(
        str, "Candidates who were written in [default: keep].", choices=BALLOT_RULES["write_ins"]
    ),
    "names": Option(
        str,
        "Candidates whose names differ by case, blanks, punctuation or the order of their parts "
        "[default: keep, and say so].",
        choices=BALLOT_RULES["names"],
    ),
    "min_support": MIN_SUPPORT,
    "below_support": Option(
        str,
        "Candidates under --min-support: left out, or one candidate called other (merge) [default: drop].",
        choices=BALLOT_RULES["below_support"],
    ),
    "min_answers": MIN_ANSWERS,
    "moderated": MODERATED,
    "strict": Option(
        bool,
        "PrefLib: whether a header that disagrees with the lines after it is an error [default: it is].",
        ("--strict/--no-strict",),
    ),
    "categories": Option(
        str,
        "Order of the categories in a .cat file: best-first, worst-first, or all their names, best first, "
        "joined by commas; names also of ratings in words [default: what the names say].",
        metavar="ORDER",
    ),
}


@dataclass
class Kept:
    """Ids of the agents or rows that were read, and what is known of them beside the data."""

    ids: list[Any] = field(default_factory=list)
    covariates: Any = ()  # Attributes


class ReadOptions(NamedTuple):
    """A file of votes, and what the user said about how to read it."""

    file: Path
    given: Mapping[str, Any]
    kept: Kept | None = None  # takes ids and covariates of what is read
    contradictions: bool = False  # whether agents may contradict themselves: a model of errors is asked

    def read(self) -> Any:
        """Read rankings or preferences from any format permix knows."""
        from permix.data import read
        from permix.data.io.categories import DIRECTIONS
        from permix.data.io.kinds import kind_of
        from permix.data.io.text_files import plain_suffix

        file = self.file
        if file.suffix == ".permix":
            raise DataError(f"{file} is a fitted model, not a file of votes; see permix summary {file}")
        chosen = dict(self.given)
        if "rename" in chosen:
            chosen["rename"] = _renaming(chosen["rename"])
        order = chosen.get("categories")
        if order is not None:
            named = plain_suffix(file) == "cat" or chosen.get("layout") == "ratings"
            if not named and not (file.is_file() and kind_of(file).name == "preflib"):
                raise typer.BadParameter(
                    f"--categories belongs to .cat files and to --layout ratings; {file} is another kind"
                )
            if order not in DIRECTIONS:
                names = next(csv.reader([order], skipinitialspace=True), [])
                chosen["categories"] = [name.strip() for name in names]
        return read(file, **chosen)

    def keeping(self) -> ReadOptions:
        """Return options that keep agents who contradict themselves, unless the user says otherwise."""
        return self._replace(given={"on_cycle": "keep", **self.given}, contradictions=True)

    def refuse_keep(self) -> None:
        """Refuse agents without an order, before anything is read, where no model of errors is meant."""
        if not self.contradictions and self.given.get("on_cycle") == "keep":
            raise typer.BadParameter(
                "--on-cycle keep: this model needs agents who do not contradict themselves; --on-cycle drop "
                "leaves the others out, and fit bayes-mallows --errors bernoulli takes them as they are"
            )

    def agents_of(self, votes: Any) -> list[Any]:
        """Ids of the rows as the file has them; rows of a file that names nobody are numbered from 1."""
        table = (votes.metadata or {}).get("TABLE")
        if votes._agents is None and not (isinstance(table, dict) and table.get("agent")):
            ids: list[Any] = list(range(1, len(votes) + 1))
        else:
            ids = list(votes.agents.tolist())
        if self.kept is not None:
            self.kept.ids, self.kept.covariates = ids, votes.covariates
            _warn_of_rows_left_out(self.file, votes)
        return ids


def _renaming(said: list[str]) -> dict[str, str]:
    """Return new names of columns by their old ones."""
    parted = [each.rpartition("=") for each in said]
    if not all(old and new for old, _, new in parted):
        raise typer.BadParameter("--rename is OLD=NEW, such as --rename essay=item")
    return {old: new for old, _, new in parted}


class Votes(NamedTuple):
    """What a file of votes holds, and the ids of its rows."""

    table: Any
    agents: list[Any]


def read_options(file: Path, values: Mapping[str, Any]) -> ReadOptions:
    """Return a file of votes with what the user said about it."""
    said = {name: values.get(name) for name in VOTE_OPTIONS}
    beside = [*(values.get("group_columns") or ()), *(values.get("weights_by") or ())]
    said["group_columns"] = list(dict.fromkeys(beside))
    return ReadOptions(
        spooled(file), {name: value for name, value in said.items() if value not in (None, [], "auto")}
    )


def read_statements(file: Path, values: Mapping[str, Any]) -> Votes:
    """Read votes, keeping agents who contradict themselves where a model of errors is asked for."""
    if values.get("errors") is None:
        return read_votes(file, values)
    options = read_options(file, values).keeping()
    table = options.read()
    return Votes(table, options.agents_of(table))


def read_votes(file: Path, values: Mapping[str, Any]) -> Votes:
    """Read a file of votes once; return it with the ids of its rows."""
    options = read_options(file, values)
    options.refuse_keep()
    table = options.read()
    return Votes(table, options.agents_of(table))


VOTES = Source(
    "Rankings or preferences: PrefLib, ABIF, CSV, TSV, Excel, Parquet or JSON lines; or ballots: a file, "
    "folder or zip; - is standard input.",
    VOTE_OPTIONS,
    "permix.cli.votes:read_votes",
)
# For models that may be of errors: with ``--errors`` agents may contradict themselves.
STATEMENTS = VOTES._replace(read="permix.cli.votes:read_statements")


# For models whose groups may have shares that depend on columns.
WEIGHTS_BY = Option(
    list[str],
    "Column known of the agents, such as region or age, that the shares of groups depend on (a multinomial "
    "logit). May be repeated.",
    ("--weights-by",),
    metavar="COLUMN",
)


def choose(given: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters among the options given; columns that were not given are none."""
    return {name: value for name, value in given.items() if name != "weights_by" or value}


def _warn_of_rows_left_out(file: Path, votes: Any) -> None:
    """Say that ballots have no answer: answers put beside the file would be those of others."""
    done = (getattr(votes, "metadata", None) or {}).get("CLEANING", [])
    gone = sum(int(entry.get("left_out") or 0) for entry in done)
    if gone:
        said = f"{gone:,} {'ballot was' if gone == 1 else 'ballots were'} left out as the file was read"
        warnings.warn(
            PermixWarning(f"{file}: {said}, and have no answer; agents are numbered without them"),
            stacklevel=2,
        )
