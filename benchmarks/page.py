"""One page of Markdown about a run: when, on what machine, and the tables, written table by table."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import permix

# Packages whose versions change figures.
PACKAGES = ("numpy", "scipy", "numba", "scikit-learn")


class Page:
    """A page that grows: what was measured before a run was interrupted stays in the file."""

    def __init__(self, path: Path, title: str, about: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path = path
        path.write_text(f"# {title}\n\n{about}\n\n{machine()}\n", encoding="utf-8")

    def add(
        self, title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], remarks: Sequence[str] = ()
    ) -> None:
        """Add a table and what is to be said about it."""
        lines = [f"\n## {title}\n", _row(columns), _row(["---"] * len(columns)), *map(_row, rows)]
        lines += ["", *(f"- {remark}" for remark in remarks)] if remarks else []
        with self._path.open("a", encoding="utf-8") as handle:
            handle.write("\n".join(lines) + "\n")


def machine() -> str:
    """Say when and on what the figures were taken."""
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in PACKAGES)
    return (
        f"{datetime.now().astimezone():%Y-%m-%d %H:%M}, {_processor()}, {os.cpu_count()} processors, "
        f"{platform.system()} {platform.release()}, Python {platform.python_version()}, "
        f"permix {permix.__version__}, {versions}."
    )


def _processor() -> str:
    about = Path("/proc/cpuinfo")
    if about.is_file():
        for line in about.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _row(cells: Sequence[Any]) -> str:
    return "| " + " | ".join(_cell(cell) for cell in cells) + " |"


def _cell(value: Any) -> str:
    text = f"{value:.4g}" if isinstance(value, float) else "" if value is None else str(value)
    return text.replace("|", "\\|").replace("\n", " ")
