"""Tables for people, JSON for machines."""

from __future__ import annotations

import json
import math
import shutil
import sys
from collections.abc import Sequence
from typing import Any

# Room for a long line where there is no terminal.
PIPE_WIDTH = 320
ORDER = " ≻ "
# From this R-hat on, reports say that chains disagree before anything else.
NOT_CONVERGED = 1.5


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


def rounded(value: float, digits: int) -> str:
    """Write a number with so many digits; what rounds to zero has no sign."""
    return f"{round(value, digits) + 0.0:,.{digits}f}"


def terminal_width() -> int:
    """Return how many characters fit into a line."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else PIPE_WIDTH


def fitting(names: Sequence[str], width: int) -> str:
    """All names, best first, or the first ones and the last, as many as fit; long names are cut."""
    whole = ORDER.join(names)
    if len(whole) <= width or len(names) < 3:
        return whole
    gap = f"{ORDER}… {len(names) - 2} more …{ORDER}"
    most = max((width - len(gap)) // 2, 4)  # so that the first and the last fit in any case
    names = [name if len(name) <= most else f"{name[: most - 1]}…" for name in names]
    cut = f"{names[0]}{gap}{names[-1]}"
    for shown in range(2, len(names) - 1):
        head = ORDER.join(names[:shown])
        longer = f"{head}{ORDER}… {len(names) - shown - 1} more …{ORDER}{names[-1]}"
        if len(longer) > width:
            break
        cut = longer
    return cut
