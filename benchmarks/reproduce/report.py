"""What every reproduction shares: sizes as options, a table of paper against ours, a picture."""

from __future__ import annotations

import argparse
import dataclasses
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from permix.cli.output import print_json, print_table
from permix.datasets.fetch import DataNotFound


@dataclass
class Outcome:
    """What a reproduction found.

    Attributes
    ----------
    title : str
        Of the table.
    columns, rows : list
        The table; the paper's values stand beside ours.
    remarks : list of str
        What the paper leaves open and what was chosen; where the two differ, and why.
    series : dict
        Numbers behind the picture.
    """

    title: str
    columns: list[str]
    rows: list[list[Any]]
    remarks: list[str] = field(default_factory=list)
    series: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0

    def show(self) -> None:
        """Print the table and the remarks."""
        print_table(self.title, self.columns, self.rows)
        for remark in self.remarks:
            print(f"- {remark}")
        print(f"({self.seconds:.0f} seconds)")


def run_from_command_line(
    description: str | None,
    sizes: Any,
    quick: Any,
    run: Callable[[Any], Outcome],
    draw: Callable[[Outcome, Any], None] | None = None,
    arguments: Sequence[str] | None = None,
) -> Outcome | None:
    """Read options, run one reproduction, print and draw.

    Parameters
    ----------
    description : str
        Docstring of the script.
    sizes, quick : dataclass instances
        The paper's sizes, and those of ``--quick``; every field is an option of its own.
    run : callable
        Takes sizes.
    draw : callable, optional
        Draws the outcome on a matplotlib figure.
    arguments : sequence of str, optional
        Instead of those of the command line.
    """
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="small sizes: about a minute")
    parser.add_argument("--json", action="store_true", help="print the outcome as JSON")
    if draw is not None:
        parser.add_argument("--plot", type=Path, metavar="PATH", help="draw the figure into this file")
    for entry in dataclasses.fields(sizes):
        default = getattr(sizes, entry.name)
        several = isinstance(default, tuple)
        parser.add_argument(
            f"--{entry.name.replace('_', '-')}",
            type=type(default[0]) if several else type(default),
            nargs="+" if several else None,
            help=f"paper's size: {_text(default)}; --quick: {_text(getattr(quick, entry.name))}",
        )
    options = vars(parser.parse_args(arguments))
    given = {
        entry.name: tuple(value) if isinstance(value, list) else value
        for entry in dataclasses.fields(sizes)
        if (value := options[entry.name]) is not None
    }
    start = time.perf_counter()
    try:
        outcome = run(dataclasses.replace(quick if options["quick"] else sizes, **given))
    except DataNotFound as error:
        print(f"skipped: {error}")
        return None
    outcome.seconds = time.perf_counter() - start
    if options["json"]:
        print_json(dataclasses.asdict(outcome))
    else:
        outcome.show()
    if draw is not None and options["plot"] is not None:
        save_figure(outcome, draw, options["plot"])
    return outcome


def tell(text: str) -> None:
    """Say on standard error how far a long run is."""
    print(text, file=sys.stderr, flush=True)


def save_figure(outcome: Outcome, draw: Callable[[Outcome, Any], None], path: Path) -> None:
    """Draw an outcome into a file; the ending says the format."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(layout="constrained")
    FigureCanvasAgg(figure)
    draw(outcome, figure)
    figure.savefig(path, dpi=150)


def draw_boxes(figure: Any, panels: Sequence[tuple[str, str, dict[str, Any]]], width: float = 5.0) -> None:
    """Draw box-and-whisker panels: (name of the axis, name of the value, values by setting)."""
    figure.set_size_inches(width * len(panels), 3.6)
    axes = figure.subplots(1, len(panels), squeeze=False)[0]
    for axis, (x_name, y_name, values) in zip(axes, panels, strict=True):
        axis.boxplot(list(values.values()), tick_labels=list(values), sym="+", whis=1.5)
        axis.set_xlabel(x_name)
        axis.set_ylabel(y_name)


def _text(value: Any) -> str:
    return " ".join(map(str, value)) if isinstance(value, tuple) else str(value)
