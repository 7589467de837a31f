"""What ``permix fit dp-mixture`` does."""

from __future__ import annotations

import re
import shutil
import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import typer

from permix.cli.inspect import check_model_name, check_picture, check_targets, fit_report, print_fit
from permix.cli.output import print_json, running_fit
from permix.errors import DataError, FileFormatError
from permix.files import check_target

if TYPE_CHECKING:
    from permix.dp_mixture.fit import MixtureFit


class FitOptions(NamedTuple):
    """Options of the command, as given; None means the default."""

    family: str
    noise_scale: float | None
    prior_mean: float | None
    prior_scale: float | None
    pseudo_count: float | None
    prior: str
    concentration: float | None
    discount: float | None
    components: int | None
    moves: str
    burn_in_moves: str
    init: str
    draws: int
    burn_in: int
    thin: int
    chains: int
    seed: int
    jobs: int | None


MAY_BE_TEXT = (
    "Name it with --id if it labels the rows, leave it out with --ignore {column}, "
    "or use --family categorical."
)
# Which options belong to which family and prior: one given for another is a mistake, not a wish to ignore.
FAMILY_OPTIONS = {
    "gaussian": ("noise_scale", "prior_mean", "prior_scale"),
    "gaussian-niw": (),
    "multinomial": ("pseudo_count",),
    "categorical": ("pseudo_count",),
}
PRIOR_OPTIONS = {
    "dp": ("concentration",),
    "pitman-yor": ("concentration", "discount"),
    "finite": ("components",),
}


class Targets(NamedTuple):
    """The files a fit writes."""

    output: Path
    labels: Path | None
    picture: Path | None
    keep_chains: bool
    force: bool


def run_fit(
    data: Path,
    targets: Targets,
    options: FitOptions,
    id_column: str | None,
    ignore: list[str],
    quiet: bool,
    as_json: bool,
) -> None:
    """Fit, save, and show what was found."""
    family = _family(options)
    prior = _prior(options)
    output = targets.output
    check_model_name(output)
    check_picture(targets.picture)
    check_target(output)
    chains = output.with_name(output.name + ".chains")
    wanted = [target for target in (output, targets.labels, targets.picture) if target is not None]
    # Chains that are still there are a run that was cut short: the same command may replace what it left.
    check_targets(wanted, [data], targets.force or chains.exists())
    table, ids = read_table_of_numbers(data, options.family, id_column, ignore)

    from permix.dp_mixture.fit import MixtureSettings, fit_mixture
    from permix.estimators.load import save_mixture

    if chains.exists() and not (as_json or quiet):
        print(f"found chains in {chains}", file=sys.stderr)
    settings = MixtureSettings(
        family,
        prior,
        options.moves,
        options.burn_in_moves,
        int(options.init) if options.init.isdecimal() else options.init,  # type: ignore[arg-type]
        n_draws=options.draws,
        n_burn_in=options.burn_in,
        n_thin=options.thin,
        n_chains=options.chains,
        random_state=options.seed,
        n_jobs=options.jobs,
        progress=False if quiet or as_json else None,
        store=chains,
    )
    columns = tuple(map(str, table.columns)) if hasattr(table, "columns") else None
    with running_fit(chains):
        fit = fit_mixture(table, settings, columns)
    save_mixture(fit, output)
    if not fit.draws.interrupted and not targets.keep_chains:
        if fit.draws.n_stored > options.draws:
            print(f"{chains} holds {fit.draws.n_stored:,} draws and is kept", file=sys.stderr)
        else:
            shutil.rmtree(chains)
    if targets.labels is not None:
        write_labels(fit, ids, id_column or "row", targets.labels)
    if targets.picture is not None:
        from permix.plots import overview

        overview(fit, targets.picture)
    report = fit_report(fit)
    if as_json:
        print_json({"file": str(output), **report})
    else:
        print_fit(fit, report, output.name)
    if fit.draws.interrupted:
        print(f"permix: interrupted; the same command goes on from {chains}", file=sys.stderr)
        raise typer.Exit(130)


def _family(options: FitOptions) -> Any:
    from permix.families import FAMILIES

    return FAMILIES[options.family](**_given(options, FAMILY_OPTIONS, options.family, "family"))


def _prior(options: FitOptions) -> Any:
    from permix.partitions import DirichletProcess, FiniteDirichlet, Gamma, PitmanYor

    given = _given(options, PRIOR_OPTIONS, options.prior, "prior")
    if options.prior == "dp":
        return DirichletProcess(given.get("concentration", Gamma(1.0, 1.0)))
    if options.prior == "pitman-yor":
        return PitmanYor(**given)
    if "components" not in given:
        raise typer.BadParameter("--prior finite needs --components, the number of components")
    return FiniteDirichlet(given["components"])


def _given(options: FitOptions, table: dict[str, tuple[str, ...]], chosen: str, what: str) -> dict[str, Any]:
    for name in {name for names in table.values() for name in names} - set(table[chosen]):
        if getattr(options, name) is not None:
            owners = " or ".join(owner for owner, names in table.items() if name in names)
            raise typer.BadParameter(
                f"--{name.replace('_', '-')} belongs to --{what} {owners}, not to {chosen}"
            )
    return {name: value for name in table[chosen] if (value := getattr(options, name)) is not None}


def read_table_of_numbers(
    path: Path, family: str, id_column: str | None, ignore: list[str]
) -> tuple[Any, list[Any]]:
    """Read the data of a mixture; returns the table and the names of its rows."""
    if path.suffix in (".npy", ".npz"):
        if id_column is not None or ignore:
            raise DataError(f"--id and --ignore name columns of a CSV file; {path.name} has no column names")
        table = _read_numpy(path)
        return table, list(range(1, table.shape[0] + 1))

    from permix.data.io.frames import read_frame

    frame = read_frame(path)
    unknown = [name for name in [*ignore, *([id_column] if id_column else [])] if name not in frame.columns]
    if unknown:
        raise DataError(
            f"{path.name} has no column {unknown[0]!r}; its columns are {', '.join(map(str, frame.columns))}"
        )
    ids = list(frame[id_column]) if id_column else list(range(1, len(frame) + 1))
    frame = frame.drop(columns=[*ignore, *([id_column] if id_column else [])])
    for name in frame.columns:
        if re.fullmatch(r"unnamed\d+", str(name)):
            print(
                f"permix: warning: a nameless column is taken as data; --ignore {name} leaves it out",
                file=sys.stderr,
            )
    if frame.shape[1] == 0:
        raise DataError(f"{path.name} has no column left")
    if family != "categorical":
        refuse_text(frame, path, MAY_BE_TEXT)
    return frame, ids


def refuse_text(frame: Any, path: Path, way_out: str) -> None:
    """Say which column is text, where it shows, and the ways out."""
    import pandas as pd
    from pandas.api.types import is_numeric_dtype

    text = [name for name in frame.columns if not is_numeric_dtype(frame[name])]
    if not text:
        return
    column = frame[text[0]]
    bad = np.flatnonzero(pd.to_numeric(column, errors="coerce").isna() & column.notna())
    example = f" (row {bad[0] + 1}: {column.iloc[bad[0]]!r})" if len(bad) else ""
    said = way_out.format(column=repr(column.name))
    raise DataError(f"column {column.name!r} of {path.name} is not numeric{example}. {said}")


def _read_numpy(path: Path) -> Any:
    try:
        if path.suffix == ".npy":
            table = np.load(path, allow_pickle=False)
            if table.ndim != 2:
                raise DataError(f"{path} holds an array of shape {table.shape}; expected rows and columns")
            return table
        from scipy import sparse

        return sparse.csr_array(sparse.load_npz(path))
    except (ValueError, KeyError, EOFError, TypeError, zipfile.BadZipFile) as error:
        raise FileFormatError(f"{path} cannot be read: {error}", path) from error


def write_labels(fit: MixtureFit, ids: list[Any], id_name: str, path: Path) -> None:
    """Write each row's cluster and the probability that it is with its fellow members."""
    import pandas as pd

    from permix.files import atomic_writer
    from permix.partitions import assignment_confidence

    confidence = assignment_confidence(fit.draws.arrays["labels"], fit.labels)
    frame = pd.DataFrame({id_name: ids, "cluster": fit.labels + 1, "confidence": np.round(confidence, 4)})
    with atomic_writer(path) as handle:
        frame.to_csv(handle, index=False)
