"""Answers of ``predict`` and ``sample``: written to a file, printed as JSON, or shown."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from permix.cli.output import ORDER, count_of, fitting, print_json, print_table, terminal_width
from permix.errors import Argument, DataError

# Rows shown where no file was asked for.
MAX_ROWS = 50
DELIMITERS = {".csv": ",", ".tsv": "\t"}


class Answer(NamedTuple):
    """A table with a row for each agent or row, made while it is written."""

    title: str
    columns: list[str]
    rows: Iterable[Sequence[Any]]
    if_empty: str = ""
    facts: Mapping[str, float] = MappingProxyType({})  # about all rows together
    verdict: str = ""  # what they say, in words

    def with_counts(self, counts: Any) -> Answer:
        """Return the answer with how many agents each row stands for, where that is not one."""
        if all(count == 1 for count in counts.tolist()):
            return self
        rows = ([row[0], count, *row[1:]] for row, count in zip(self.rows, counts.tolist(), strict=True))
        return self._replace(columns=[self.columns[0], "count", *self.columns[1:]], rows=rows)

    def with_covariates(self, ids: Sequence[Any], known: Any) -> Answer:
        """Return the answer with what is known of each agent or row, found by the id in the first column."""
        names = [name for name in known if name not in self.columns]
        if not names:
            return self
        if len(set(ids)) < len(ids):
            twice = next(who for who, n in Counter(ids).items() if n > 1)
            raise DataError(
                f"{twice!r} has several rows, so that {names[0]!r} cannot be written beside the answers; "
                "give each row an id of its own, or leave out ",
                Argument("group_columns"),
            )
        told = zip(*(known[name].tolist() for name in names), strict=True)
        of = {
            who: ["" if value != value else value for value in entry]
            for who, entry in zip(ids, told, strict=True)
        }
        rows = ([*row, *of[row[0]]] for row in self.rows)
        return self._replace(columns=[*self.columns, *names], rows=rows)


def give(answer: Answer, output: Path | None, as_json: bool) -> None:
    """Write an answer to a CSV file, print it as JSON, or show its first rows."""
    if output is not None:
        n = write_csv(answer, output)
        if as_json:
            print_json({"file": str(output), "rows": n, **_verdict(answer), **answer.facts})
        else:
            empty = f"; {answer.if_empty}" if answer.if_empty and not n else ""
            _print_verdict(answer)
            print(f"{output}: {count_of(n, 'row')}{empty}")
            _print_facts(answer)
    elif as_json:
        rows = [dict(zip(answer.columns, row, strict=True)) for row in answer.rows]
        print_json({**_verdict(answer), **answer.facts, "rows": rows})
    else:
        left = iter(answer.rows)
        shown = list(islice(left, MAX_ROWS))
        if answer.if_empty and not shown:
            print(answer.if_empty)
            return
        _print_verdict(answer)
        print_table(answer.title, answer.columns, shown)
        if next(left, None) is not None:  # the rest may take long, so it is not counted
            print("... and more; -o writes all to a file, --json prints all")
        _print_facts(answer)


def _verdict(answer: Answer) -> dict[str, str]:
    return {"verdict": answer.verdict} if answer.verdict else {}


def _print_verdict(answer: Answer) -> None:
    if answer.verdict:
        print(f"{answer.verdict}\n")


def _print_facts(answer: Answer) -> None:
    for name, value in answer.facts.items():
        print(f"{name.replace('_', ' ')}: {value:.4g}")


def write_csv(answer: Answer, path: Path) -> int:
    """Write all rows, whole or not at all, with commas or tabs; return how many there are."""
    from permix.files import atomic_writer

    with atomic_writer(path) as handle:
        text = io.TextIOWrapper(handle, encoding="utf-8", newline="")
        n = csv_to(text, answer.columns, answer.rows, DELIMITERS[path.suffix])
        text.flush()
        text.detach()
    return n


def csv_to(stream: Any, columns: Sequence[Any], rows: Iterable[Sequence[Any]], delimiter: str = ",") -> int:
    """Write a header and rows; return the number of rows."""
    writer = csv.writer(stream, lineterminator="\n", delimiter=delimiter)
    writer.writerow(columns)
    n = 0
    for row in rows:
        writer.writerow(row)
        n += 1
    return n


def give_rankings(rankings: Any, agents: list[Any], output: Path | None, as_json: bool) -> None:
    """Write rankings in any format, print them as JSON, or show the first."""
    if output is not None:
        write_rankings(rankings, output, as_json)
        return
    names = [str(item) for item in rankings.items]
    orders = [[names[item] for item in row if item >= 0] for row in rankings.orders.tolist()]
    if as_json:
        pairs = zip(agents, orders, strict=True)
        print_json({"rows": [{"agent": who, "ranking": order} for who, order in pairs]})
        return
    width = terminal_width() - max(len("agent"), *(len(str(agent)) for agent in agents[:MAX_ROWS])) - 2
    rows = ([agent, fitting(order, width)] for agent, order in zip(agents, orders, strict=True))
    title = f"{count_of(len(agents), 'row')}: completed ranking"
    give(Answer(title, ["agent", "ranking"], rows), None, False)
    if any(fitting(order, width) != ORDER.join(order) for order in orders[:MAX_ROWS]):
        print("rankings are cut to the width of the terminal; --json shows all, -o writes all")


def write_rankings(rankings: Any, output: Path, as_json: bool) -> None:
    from permix.data import write

    write(rankings, output)
    if as_json:
        print_json({"file": str(output), "rows": len(rankings)})
    else:
        print(f"{output}: {count_of(len(rankings), 'ranking')}")
