"""A live display of running chains on stderr: nothing for short runs, nothing in log files."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from permix.sampling.chain import Monitor

# A run shorter than this shows nothing unless asked to.
PATIENCE_SECONDS = 2.0
# Time between two plain lines where stderr is not a terminal.
LINE_SECONDS = 5.0


class Display:
    """Shows one row per chain while chains run; use it as a context manager.

    Parameters
    ----------
    monitors : sequence of Monitor
        What the chains let others see.
    progress : bool or None
        True shows always (plain lines where stderr is not a terminal), False never, None after two
        seconds in a terminal or a notebook.
    """

    def __init__(self, monitors: Sequence[Monitor], progress: bool | None) -> None:
        self._monitors = monitors
        self._live = progress is not False and is_live()
        self._plain = progress is True and not self._live
        self._started = time.monotonic()
        self._shows_from = self._started + (0.0 if progress else PATIENCE_SECONDS)
        self._next_line = self._started + LINE_SECONDS
        self._progress: Progress | None = None
        self._tasks: list[TaskID] = []

    @property
    def wanted(self) -> bool:
        """Whether anything may be written to stderr at all."""
        return self._live or self._plain

    def __enter__(self) -> Display:
        for monitor in self._monitors:
            monitor.watched = self.wanted
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._progress is not None:
            self._refresh(self._progress)
            self._progress.stop()
        elif self._plain:
            self._print_lines()

    def update(self) -> None:
        """Show the present numbers, if it is time to."""
        now = time.monotonic()
        if self._live and now >= self._shows_from:
            if self._progress is None:
                self._progress = self._start()
            self._refresh(self._progress)
        elif self._plain and now >= self._next_line:
            self._next_line = now + LINE_SECONDS
            self._print_lines()

    def _start(self) -> Progress:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
        from rich.table import Column

        progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=10),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[phase]}"),
            TextColumn(
                "{task.fields[numbers]}", table_column=Column(no_wrap=True, overflow="ellipsis", ratio=1)
            ),
            expand=True,
            console=Console(stderr=True),
            auto_refresh=False,
        )
        progress.start()
        for index, monitor in enumerate(self._monitors):
            task = progress.add_task(
                f"chain {index + 1}",
                total=monitor.n_iterations,
                completed=monitor.iteration,
                phase=_phase(monitor),
                numbers=_numbers(monitor),
            )
            self._tasks.append(task)
        return progress

    def _refresh(self, progress: Progress) -> None:
        for task, monitor in zip(self._tasks, self._monitors, strict=True):
            fields: dict[str, Any] = {"phase": _phase(monitor), "numbers": _numbers(monitor)}
            progress.update(task, completed=monitor.iteration, **fields)
        progress.refresh()

    def _print_lines(self) -> None:
        seconds = time.monotonic() - self._started
        for index, monitor in enumerate(self._monitors):
            print(
                f"chain {index + 1}: {monitor.iteration}/{monitor.n_iterations} {_phase(monitor)} "
                f"{_numbers(monitor)} ({seconds:.0f} s)",
                file=sys.stderr,
                flush=True,
            )


def is_live() -> bool:
    """Say whether stderr is a terminal, or a notebook that can redraw."""
    if "ipykernel" in sys.modules:
        from rich.console import Console

        if Console(stderr=True).is_jupyter:
            return True
    return sys.stderr is not None and sys.stderr.isatty()


def _phase(monitor: Monitor) -> str:
    return "burn-in" if monitor.iteration < monitor.n_burn_in else "sampling"


def _numbers(monitor: Monitor) -> str:
    parts = [f"{name.replace('_', ' ')} {_written(value)}" for name, value in monitor.numbers.items()]
    proposed = sum(totals[0] for totals in monitor.tally.values())
    accepted = sum(totals[1] for totals in monitor.tally.values())
    if proposed:
        parts.append(f"accepted {accepted / proposed:.0%}")
    return " · ".join(parts)


def _written(value: float) -> str:
    """Six digits, but never as a power of ten."""
    return f"{value:,.0f}" if abs(value) >= 1e5 else f"{value:,.6g}"
