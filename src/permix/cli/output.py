"""Tables for people, JSON for machines."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any


def print_json(value: Any) -> None:
    """Write one JSON document to standard output; numbers JSON does not know become null."""
    json.dump(_plain(value), sys.stdout, indent=2, ensure_ascii=False)
    sys.stdout.write("\n")


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


@contextmanager
def running_fit(chains: Path | None = None) -> Iterator[None]:
    """Run a fit; one that Ctrl-C leaves without a result ends the command, and says what is left of it."""
    import typer

    try:
        yield
    except KeyboardInterrupt:
        if chains is not None and any(chains.rglob("state.npz")):
            what = f"before there was a fit to save; the same command goes on from {chains}"
        else:
            what = "before there was anything to keep"
        print(f"permix: interrupted {what}", file=sys.stderr)
        raise typer.Exit(130) from None


def count_of(n: int, thing: str) -> str:
    """Return "1 cluster", "2 clusters"."""
    return f"{n:,} {thing}{'' if n == 1 else 's'}"


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Write a table to standard output; numbers to the right, item names as they are."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(header_style="", box=None, pad_edge=False)
    for index, column in enumerate(columns):
        numeric = bool(rows) and all(isinstance(row[index], int | float) for row in rows)
        table.add_column(
            escape(column), justify="right" if numeric else "left", overflow="ellipsis", no_wrap=True
        )
    for row in rows:
        table.add_row(*[escape(_text(cell)) for cell in row])
    # A pipe has no width of its own: leave room, so that nothing is folded there.
    console = Console(soft_wrap=False, width=None if sys.stdout.isatty() else 1000)
    console.print(f"[bold]{escape(title)}[/bold]", highlight=False)
    console.print(table)
    console.print()


def _text(cell: Any) -> str:
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, int):
        return f"{cell:,}"
    if isinstance(cell, float):
        return "" if math.isnan(cell) else f"{cell:.4g}" if abs(cell) < 1e5 else f"{cell:,.0f}"
    return str(cell)
