"""Fitted models as files, and back: what kinds of file there are, and who reads each."""

from __future__ import annotations

import importlib
import os
from typing import Any, NamedTuple

from permix.errors import FileFormatError
from permix.files import read_archive
from permix.models.mixture_files import save_mixture as save_mixture
from permix.models.mixture_fit import MixtureFit

PathLike = str | os.PathLike[str]


class Kind(NamedTuple):
    """Where to find, as "module:name", what reads an archive and the estimator that shows what was read."""

    rebuild: str
    estimator: str


# What an archive says it holds -> who reads it. A new model adds one entry.
KINDS = {
    "DPMixture": Kind(
        "permix.models.mixture_files:mixture_from_archive", "permix.models.dp_mixture:DPMixture"
    ),
    "BlurringMeanShift": Kind(
        "permix.models.mean_shift_files:mean_shift_from_archive",
        "permix.models.blurring_mean_shift:BlurringMeanShift",
    ),
    "DPMallowsMixture": Kind(
        "permix.models.dp_mallows_files:dp_mallows_from_archive", "permix.models.dp_mallows:DPMallowsMixture"
    ),
    "CoClustering": Kind(
        "permix.models.cocluster_files:cocluster_from_archive", "permix.models.co_clustering:CoClustering"
    ),
    "CoClusteringEnsemble": Kind(
        "permix.models.cocluster_files:ensemble_from_archive",
        "permix.models.co_clustering_ensemble:CoClusteringEnsemble",
    ),
    "AngleMixture": Kind(
        "permix.models.angle_files:angle_from_archive", "permix.models.angle_mixture:AngleMixture"
    ),
    "MallowsMixture": Kind(
        "permix.models.mallows_files:mallows_from_archive", "permix.models.mallows_mixture:MallowsMixture"
    ),
    "MallowsKDE": Kind("permix.models.kernel_files:kde_from_archive", "permix.models.mallows_kde:MallowsKDE"),
}


def _read(path: PathLike, max_bytes: int | None) -> tuple[Kind, Any]:
    manifest, arrays = read_archive(path, max_bytes=max_bytes)
    kind = KINDS.get(manifest["kind"])
    if kind is None:
        raise FileFormatError(
            f"{os.fspath(path)} holds a {manifest['kind'][:80]!r}, which this permix does not know", path
        )
    rebuild = _found(kind.rebuild)
    try:
        return kind, rebuild(manifest, arrays)
    except Exception as error:
        raise FileFormatError(
            f"{os.fspath(path)} is a permix file, but what it holds does not fit together "
            f"({type(error).__name__}: {error}). It may have been edited; fit the model again.",
            path,
        ) from error


def _found(place: str) -> Any:
    module, name = place.split(":")
    return getattr(importlib.import_module(module), name)


def load_fit(path: PathLike, max_bytes: int | None = None) -> Any:
    """Read a fit of any kind without scikit-learn; see :func:`load`."""
    return _read(path, max_bytes)[1]


def load_mixture(path: PathLike, max_bytes: int | None = None) -> MixtureFit:
    """Read the fit of a :class:`permix.DPMixture` without scikit-learn."""
    fit = load_fit(path, max_bytes)
    if not isinstance(fit, MixtureFit):
        raise FileFormatError(f"{os.fspath(path)} holds no DPMixture but a {type(fit).__name__}", path)
    return fit


def load(path: PathLike, max_bytes: int | None = None) -> Any:
    """Read a fitted model that was written by its ``save``.

    The file may come from a stranger: nothing in it is executed, and all of it is checked before use.

    Parameters
    ----------
    path : path
        The file.
    max_bytes : int, optional
        The most that the file may unpack to. Left out, 1 GiB or what the environment variable
        ``PERMIX_MAX_BYTES`` says.

    Returns
    -------
    The fitted estimator.

    Raises
    ------
    FileFormatError
        If the file is truncated, damaged, hostile, of another kind, or written by a newer permix.
    """
    kind, fit = _read(path, max_bytes)
    return _found(kind.estimator)._from_fit(fit)
