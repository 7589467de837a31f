"""What ``permix fit cocluster`` does."""

from __future__ import annotations

import csv
import shutil
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import typer

from permix.cli.inspect import check_model_name, check_picture, check_targets
from permix.cli.output import print_json, running_fit
from permix.cocluster.tables import block_report, held_out_report, print_blocks
from permix.dp_mallows.command import concentration_of
from permix.errors import PermixWarning

if TYPE_CHECKING:
    from permix.cocluster.cells.families import CellFamily
    from permix.cocluster.fit import BlockFit
    from permix.data.cells import Cells
    from permix.partitions import Gamma

# Which options belong to which prior: one given for another is a mistake, not a wish to ignore.
PRIOR_OPTIONS = {
    "dp": ("concentration", "n_base", "label_pseudo_count"),
    "dirichlet": ("concentration", "n_row_clusters", "n_column_clusters", "membership"),
    "mondrian": ("budget", "n_base", "label_pseudo_count", "label_cells"),
}
NAMES = {
    "n_row_clusters": "--row-clusters",
    "n_column_clusters": "--column-clusters",
    "n_base": "--ensemble",
    "label_pseudo_count": "--label-pseudo-count",
    "label_cells": "--label-cells",
}


class MatrixFile(NamedTuple):
    """A file with a matrix, and what the user said about it."""

    file: Path
    layout: str
    header: bool | None
    id_column: str | None
    missing: list[str]

    def read(self, *, new_rows: bool = False) -> Cells:
        """Read the cells."""
        from permix.data.io.cells_io import read_cells

        layout: Any = str(self.layout)
        return read_cells(
            self.file,
            layout,
            header=self.header,
            row_column=False if self.id_column == "" else self.id_column,
            missing=self.missing,
            new_rows=new_rows,
        )


class BlockTargets(NamedTuple):
    """The files a fit writes."""

    output: Path
    row_labels: Path | None
    column_labels: Path | None
    picture: Path | None
    keep_chains: bool
    force: bool


def run_fit_cocluster(
    matrix: MatrixFile,
    targets: BlockTargets,
    prior: str,
    settings: dict[str, Any],
    choices: dict[str, Any],
    levels: str | None,
    held_out: float | None,
    quiet: bool,
    as_json: bool,
) -> None:
    """Fit, save, and show what was found; of ``choices``, those that are None were not made."""
    given = _given(prior, choices)
    if levels is not None and settings["family"] != "categorical":
        raise typer.BadParameter(f"--levels belongs to --family categorical, not to {settings['family']}")
    output = targets.output
    check_model_name(output)
    check_picture(targets.picture)
    if held_out is not None and not 0.0 < held_out < 1.0:
        raise typer.BadParameter(f"--held-out takes a share above 0 and below 1, not {held_out:g}")
    chains = output.with_name(output.name + ".chains")
    files = (output, targets.row_labels, targets.column_labels, targets.picture)
    # Chains that are still there are a run that was cut short: the same command may replace what it left.
    check_targets(
        [file for file in files if file is not None], [matrix.file], targets.force or chains.exists()
    )
    cells = matrix.read()
    if not (as_json or quiet):
        print(f"permix: {cells!r}", file=sys.stderr)
    family = family_for(cells, settings["family"], settings["pseudo_count"], levels, held_out is not None)
    settings = {**settings, "family": family}
    kept, tested = (cells, None) if held_out is None else cells.split(held_out, settings["random_state"])
    if chains.exists() and not (as_json or quiet):
        print(f"found chains in {chains}", file=sys.stderr)
    progress = False if quiet or as_json else None
    with running_fit(chains):
        fit = _fitted(kept, {**settings, **given, "prior": str(prior), "progress": progress, "store": chains})
    _save(fit, targets, chains)
    report = block_report(fit)
    if tested is not None:
        report["held_out"] = {"share": tested.n_cells / cells.n_cells, **held_out_report(fit, tested)}
    if as_json:
        print_json({"file": str(output), **report})
    else:
        print_blocks(report, output.name)
    if fit.draws.interrupted:
        done = f"{report['draws_per_chain']:,} of {fit.settings.n_draws:,} draws per chain kept"
        print(f"permix: interrupted, {done}; the same command goes on from {chains}", file=sys.stderr)
        raise typer.Exit(130)


def _given(prior: str, choices: dict[str, Any]) -> dict[str, Any]:
    """Return the choices made; one that this prior does not have is refused."""
    given = {name: value for name, value in choices.items() if value is not None}
    for name in given:
        if name not in PRIOR_OPTIONS[prior]:
            owners = " or ".join(owner for owner, names in PRIOR_OPTIONS.items() if name in names)
            option = NAMES.get(name, f"--{name.replace('_', '-')}")
            raise typer.BadParameter(f"{option} belongs to --prior {owners}, not to {prior}")
    needed = [name for name in ("n_row_clusters", "n_column_clusters") if name not in given]
    if prior == "dirichlet" and needed:
        raise typer.BadParameter(
            f"--prior dirichlet needs {NAMES[needed[0]]}; with --prior dp the data say how many there are"
        )
    for name in ("label_pseudo_count", "label_cells"):
        if name in given and "n_base" not in given:
            raise typer.BadParameter(f"{NAMES[name]} belongs to --ensemble")
    if "concentration" in given:
        given["concentration"] = concentrations_of(given["concentration"])
    return given


def concentrations_of(text: str) -> float | Gamma | tuple[float | Gamma, float | Gamma]:
    """Read ``--concentration``: one for both, or one for rows and one for columns.

    Examples
    --------
    >>> concentrations_of("20"), concentrations_of("20:gamma(1,1)")
    (20.0, (20.0, Gamma(shape=1.0, rate=1.0)))
    """
    parts = text.split(":")
    if len(parts) == 1:
        return concentration_of(text)
    if len(parts) != 2:
        raise typer.BadParameter(f"--concentration takes one or two, ROWS:COLUMNS, not {text!r}")
    return concentration_of(parts[0]), concentration_of(parts[1])


def family_for(
    cells: Cells, name: str, pseudo_count: float, levels: str | None, held_out: bool
) -> CellFamily | str:
    """Check all cells before anything runs, and take the levels from all of them, also those held out."""
    from permix.cocluster.cells.families import CategoricalCells, cell_family
    from permix.cocluster.fit import naming_cells

    family = cell_family(name, pseudo_count)
    if levels is not None:
        family = CategoricalCells(pseudo_count, levels=levels_of(levels, cells.is_text))
    with naming_cells(cells):
        resolved = family.resolve(cells.values)
        resolved.encode(cells.values)
    if isinstance(resolved, CategoricalCells) and name == "categorical" and (held_out or levels is not None):
        return resolved
    return name


def levels_of(text: str, is_text: bool) -> tuple[str | float, ...]:
    """Read ``--levels``: separated by commas; one that holds a comma itself goes into quotes.

    Examples
    --------
    >>> levels_of("no, rather not,yes", is_text=True), levels_of("1,2,2.5", is_text=False)
    (('no', 'rather not', 'yes'), (1.0, 2.0, 2.5))
    """
    listed = [level.strip() for level in next(csv.reader([text], skipinitialspace=True), [])]
    if not listed or "" in listed:
        raise typer.BadParameter(f"--levels takes the possible values, separated by commas, not {text!r}")
    if is_text:
        return tuple(listed)
    try:
        return tuple(float(level) for level in listed)
    except ValueError:
        raise typer.BadParameter(
            f"--levels {text!r}: the cells are numbers, and not all of these are"
        ) from None


def _fitted(cells: Cells, arguments: dict[str, Any]) -> BlockFit:
    with warnings.catch_warnings():
        # It speaks of calls; the command line says by itself how to go on.
        warnings.filterwarnings("ignore", "interrupted after", PermixWarning)
        return _run(cells, arguments)


def _run(cells: Cells, arguments: dict[str, Any]) -> BlockFit:
    if "n_base" in arguments:
        from permix.cocluster.ensemble import fit_ensemble
        from permix.cocluster.settings import EnsembleSettings

        return fit_ensemble(cells, None, EnsembleSettings(**arguments))

    from permix.cocluster.fit import fit_cocluster
    from permix.cocluster.settings import CoClusterSettings

    return fit_cocluster(cells, CoClusterSettings(**arguments))


def _save(fit: BlockFit, targets: BlockTargets, chains: Path) -> None:
    """Write model, labels and picture; remove chains that are of no use any more."""
    from permix.cocluster.archive import save_cocluster

    save_cocluster(fit, targets.output)
    if not (fit.draws.interrupted or targets.keep_chains):
        if fit.draws.n_stored > fit.settings.n_draws:
            print(f"{chains} holds {fit.draws.n_stored:,} draws and is kept", file=sys.stderr)
        else:
            shutil.rmtree(chains)
    if targets.row_labels is not None:
        write_labels(fit, "row", targets.row_labels)
    if targets.column_labels is not None:
        write_labels(fit, "column", targets.column_labels)
    if targets.picture is not None:
        from permix.cocluster import pictures as blocks

        blocks(fit, targets.picture)


def write_labels(fit: BlockFit, what: Literal["row", "column"], path: Path) -> None:
    """Write each row's or column's cluster and the probability that it is with its fellow members."""
    import pandas as pd

    from permix.files import atomic_writer
    from permix.partitions import assignment_confidence

    cells = fit.known_cells
    labels, name_of = (
        (fit.row_labels, cells.row_name) if what == "row" else (fit.column_labels, cells.column_name)
    )
    confidence = assignment_confidence(fit.cluster_draws(what), labels)
    frame = pd.DataFrame(
        {
            what: [name_of(line) for line in range(len(labels))],
            "cluster": labels + 1,
            "confidence": np.round(confidence, 4),
        }
    )
    with atomic_writer(path) as handle:
        frame.to_csv(handle, index=False)
