"""What ``permix fit dp-mixture`` does."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from permix.cli.inspect import fit_report, print_fit
from permix.cli.output import print_json
from permix.errors import DataError, FileFormatError

if TYPE_CHECKING:
    from permix.models.mixture_fit import MixtureFit


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
    draws: int
    burn_in: int
    thin: int
    chains: int
    seed: int
    jobs: int | None


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


def run_fit(
    data: Path,
    output: Path,
    options: FitOptions,
    id_column: str | None,
    ignore: list[str],
    labels: Path | None,
    picture: Path | None,
    keep_chains: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Fit, save, and show what was found."""
    family = _family(options)
    prior = _prior(options)
    if not output.parent.is_dir():
        raise DataError(f"the folder {output.parent} for the fitted model does not exist")
    table, ids = read_table_of_numbers(data, options.family, id_column, ignore)

    from permix.models.mixture_fit import MixtureSettings, fit_mixture
    from permix.models.persistence import save_mixture

    chains = output.with_name(output.name + ".chains")
    if chains.exists() and not (as_json or quiet):
        print(f"going on from the chains in {chains}", file=sys.stderr)
    settings = MixtureSettings(
        family,
        prior,
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
    fit = fit_mixture(table, settings, columns)
    save_mixture(fit, output)
    if fit.draws.interrupted:
        print(f"interrupted: the chains stay in {chains}; the same command goes on", file=sys.stderr)
    elif not keep_chains:
        shutil.rmtree(chains)
    if labels is not None:
        write_labels(fit, ids, labels)
    if picture is not None:
        from permix.plots import overview

        overview(fit, picture)
    report = fit_report(fit)
    if as_json:
        print_json({"file": str(output), **report})
    else:
        print_fit(fit, report, output.name)
    if fit.draws.interrupted:
        raise KeyboardInterrupt


def _family(options: FitOptions) -> Any:
    from permix.families import FAMILIES

    if options.family not in FAMILY_OPTIONS:
        raise DataError(f"unknown family {options.family!r}; known are {', '.join(FAMILY_OPTIONS)}")
    return FAMILIES[options.family](**_given(options, FAMILY_OPTIONS, options.family, "family"))


def _prior(options: FitOptions) -> Any:
    from permix.partitions import DirichletProcess, FiniteDirichlet, Gamma, PitmanYor

    if options.prior not in PRIOR_OPTIONS:
        raise DataError(f"unknown prior {options.prior!r}; known are {', '.join(PRIOR_OPTIONS)}")
    given = _given(options, PRIOR_OPTIONS, options.prior, "prior")
    if options.prior == "dp":
        return DirichletProcess(given.get("concentration", Gamma(1.0, 1.0)))
    if options.prior == "pitman-yor":
        return PitmanYor(**given)
    if "components" not in given:
        raise DataError("--prior finite needs --components, the number of components")
    return FiniteDirichlet(given["components"])


def _given(options: FitOptions, table: dict[str, tuple[str, ...]], chosen: str, what: str) -> dict[str, Any]:
    for owner, names in table.items():
        for name in names:
            if name not in table[chosen] and getattr(options, name) is not None:
                raise DataError(f"--{name.replace('_', '-')} belongs to --{what} {owner}, not to {chosen}")
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

    import pandas as pd

    if not path.is_file():
        raise DataError(f"there is no file {path}")
    separator = "\t" if ".tsv" in path.suffixes else ","
    try:
        frame = pd.read_csv(path, sep=separator)
    except (ValueError, EOFError, OSError, pd.errors.ParserError) as error:
        raise FileFormatError(f"{path} cannot be read as a table: {error}", path) from error
    unknown = [name for name in [*ignore, *([id_column] if id_column else [])] if name not in frame.columns]
    if unknown:
        raise DataError(
            f"{path.name} has no column {unknown[0]!r}; its columns are {', '.join(map(str, frame.columns))}"
        )
    ids = list(frame[id_column]) if id_column else list(range(1, len(frame) + 1))
    frame = frame.drop(columns=[*ignore, *([id_column] if id_column else [])])
    if frame.shape[1] == 0:
        raise DataError(f"{path.name} has no column left")
    if len(frame) == 0:
        raise DataError(f"{path.name} has a header but no rows")
    if family != "categorical":
        text = [str(name) for name in frame.columns if not pd.api.types.is_numeric_dtype(frame[name])]
        if text:
            column = frame[text[0]]
            bad = column[pd.to_numeric(column, errors="coerce").isna() & column.notna()]
            example = f" (line {int(bad.index[0]) + 2}: {bad.iloc[0]!r})" if len(bad) else ""
            raise DataError(
                f"column {text[0]!r} of {path.name} is not numeric{example}. Name it with --id if it labels "
                f"the rows, leave it out with --ignore {text[0]!r}, or use --family categorical."
            )
    return frame, ids


def _read_numpy(path: Path) -> Any:
    try:
        if path.suffix == ".npy":
            table = np.load(path, allow_pickle=False)
            if table.ndim != 2:
                raise DataError(f"{path} holds an array of shape {table.shape}; expected rows and columns")
            return table
        from scipy import sparse

        return sparse.csr_array(sparse.load_npz(path))
    except (ValueError, KeyError, EOFError, TypeError, zipfile_error()) as error:
        raise FileFormatError(f"{path} cannot be read: {error}", path) from error


def zipfile_error() -> type[Exception]:
    """The error of damaged zip files, imported late."""
    from zipfile import BadZipFile

    return BadZipFile


def write_labels(fit: MixtureFit, ids: list[Any], path: Path) -> None:
    """Write each row's cluster and the probability that it is with its fellow members."""
    import pandas as pd

    from permix.files import atomic_writer
    from permix.partitions import assignment_confidence

    confidence = assignment_confidence(fit.draws.arrays["labels"], fit.labels)
    frame = pd.DataFrame({"row": ids, "cluster": fit.labels + 1, "confidence": np.round(confidence, 4)})
    with atomic_writer(path) as handle:
        frame.to_csv(handle, index=False)
