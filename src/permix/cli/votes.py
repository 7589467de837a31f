"""Files of votes on the command line: the options that say how to read them, and what was read."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import typer

from permix.cli.command import Option, Source
from permix.errors import DataError

VOTE_OPTIONS: Mapping[str, Option] = {
    "layout": Option(
        str,
        "Layout of a CSV file [default: what it looks like].",
        choices=("auto", "orders", "ranks", "pairs", "ratings"),
    ),
    "unlisted": Option(
        str,
        "What items missing from a ranking mean: below (the rest is worse) or unknown (not asked). By "
        "default below for rankings and unknown for ratings.",
        choices=("below", "unknown"),
    ),
    "count_column": Option(str, "Column of a CSV file that says how many agents a row stands for."),
    "agent_column": Option(str, "Column of a CSV file that names the agents."),
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
    "ignore": Option(list[str], "Column of a CSV file to leave out; may be repeated."),
    "categories": Option(
        str,
        "Order of the categories in a .cat file: best-first, worst-first, or all their names, best first, "
        "joined by commas [default: what the names say].",
        metavar="ORDER",
    ),
}


class ReadOptions(NamedTuple):
    """A file of votes and what the user said about it; None and auto mean what the file suggests."""

    file: Path
    layout: str
    unlisted: str | None
    count_column: str | None
    agent_column: str | None
    on_cycle: str | None
    header: bool | None = None
    ignore: list[str] | None = None
    categories: str | None = None

    def read(self, **more: Any) -> Any:
        """Read rankings or preferences from any format permix knows."""
        from permix.data import read

        if self.file.suffix == ".permix":
            raise DataError(
                f"{self.file} is a fitted model, not a file of votes; see permix summary {self.file}"
            )
        given = {
            "layout": None if self.layout == "auto" else self.layout,
            "unlisted": self.unlisted,
            "count_column": self.count_column,
            "agent_column": self.agent_column,
            "on_cycle": self.on_cycle,
        }
        chosen: dict[str, Any] = {name: str(value) for name, value in given.items() if value is not None}
        if self.header is not None:
            chosen["header"] = self.header
        if self.ignore:
            chosen["ignore"] = self.ignore
        if self.categories is not None:
            from permix.data.io.text_files import plain_suffix

            if plain_suffix(self.file) != "cat":
                raise typer.BadParameter(f"--categories belongs to .cat files; {self.file} is another kind")
            chosen["categories"] = self._category_order(self.categories)
        return read(self.file, **chosen, **more)

    @staticmethod
    def _category_order(said: str) -> str | list[str]:
        from permix.data.io.categories import DIRECTIONS

        if said in DIRECTIONS:
            return said
        return [name.strip() for name in next(csv.reader([said], skipinitialspace=True), [])]

    def refuse_keep(self) -> None:
        """Refuse agents without an order, before anything is read."""
        if self.on_cycle == "keep":
            raise typer.BadParameter(
                "--on-cycle keep: models of rankings need agents who do not contradict themselves; "
                "--on-cycle drop leaves the others out"
            )

    def agents_of(self, votes: Any) -> list[Any]:
        """Ids of the rows as the file has them; rows of a file that names nobody are numbered from 1."""
        if votes._agents is None and not self._names_agents():
            return list(range(1, len(votes) + 1))
        return list(votes.agents.tolist())

    def _names_agents(self) -> bool:
        """Say whether the file has ids: those from 0 on look like none once they are read."""
        from permix.data.io.column_names import column_places
        from permix.data.io.table_columns import file_rows, guess_delimiter
        from permix.data.io.text_files import TABLES, first_line, plain_suffix

        if self.agent_column is not None:
            return True
        if plain_suffix(self.file) not in TABLES:
            return False
        if self.header is False:
            return self.layout in ("pairs", "ratings")
        text = first_line(self.file)
        _, header = next(file_rows(self.file, text, guess_delimiter(self.file, text)))
        return "" in header or bool(column_places(header, "agent"))


class Votes(NamedTuple):
    """What a file of votes holds, and the ids of its rows."""

    table: Any
    agents: list[Any]


def read_options(file: Path, values: Mapping[str, Any]) -> ReadOptions:
    """Return a file of votes with what the user said about it."""
    return ReadOptions(
        file, values.get("layout") or "auto", *(values.get(name) for name in list(VOTE_OPTIONS)[1:])
    )


def read_votes(file: Path, values: Mapping[str, Any]) -> Votes:
    """Read a file of votes once; return it with the ids of its rows."""
    options = read_options(file, values)
    options.refuse_keep()
    table = options.read()
    return Votes(table, options.agents_of(table))


VOTES = Source(
    "PrefLib file, CSV or TSV with rankings or preferences.", VOTE_OPTIONS, "permix.cli.votes:read_votes"
)
