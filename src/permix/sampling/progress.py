"""What the display says about chains."""

from __future__ import annotations

from collections.abc import Sequence

from permix.runtime.progress import Display, Line
from permix.sampling.chain import Monitor


class ChainDisplay(Display):
    """One line per chain, of what its monitor lets others see."""

    def __init__(self, monitors: Sequence[Monitor], progress: bool | None) -> None:
        super().__init__(progress)
        self._monitors = monitors
        for index, monitor in enumerate(monitors):
            monitor.watched = self.wanted
            self.lines.append(Line(f"chain {index + 1}", monitor.n_iterations, monitor.iteration))
        self.look()

    def look(self) -> None:
        for line, monitor in zip(self.lines, self._monitors, strict=True):
            line.total, line.done = monitor.n_iterations, monitor.iteration
            line.most = monitor.most_iterations
            line.text = f"{_phase(monitor)} {_numbers(monitor)}".rstrip()


def _phase(monitor: Monitor) -> str:
    phase = "burn-in" if monitor.iteration < monitor.n_burn_in else "sampling"
    if monitor.n_iterations >= monitor.most_iterations:
        return phase
    # What is left of this stage may be little, and that of those to come much more.
    return f"{phase}, at most {monitor.most_iterations:,}"


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
