"""Fitted models as files, and back: what kinds of file there are, and who reads each."""

from __future__ import annotations

import importlib
import os
from typing import Any, NamedTuple

from permix.dp_mixture.archive import save_mixture as save_mixture
from permix.dp_mixture.fit import MixtureFit
from permix.errors import FileFormatError
from permix.files import MAX_BYTES, read_archive

PathLike = str | os.PathLike[str]


class Kind(NamedTuple):
    """Where to find, as "module:name", what reads an archive and the estimator that shows what was read."""

    rebuild: str
    estimator: str


# What an archive says it holds -> who reads it. A new model adds one entry.
KINDS = {
    "DPMixture": Kind(
        "permix.dp_mixture.archive:mixture_from_archive", "permix.dp_mixture.estimator:DPMixture"
    ),
    "BlurringMeanShift": Kind(
        "permix.baselines.mean_shift_archive:mean_shift_from_archive",
        "permix.baselines.mean_shift:BlurringMeanShift",
    ),
    "DPMallowsMixture": Kind(
        "permix.dp_mallows.archive:dp_mallows_from_archive", "permix.dp_mallows.estimator:DPMallowsMixture"
    ),
    "CoClustering": Kind(
        "permix.cocluster.archive:cocluster_from_archive", "permix.cocluster.estimator:CoClustering"
    ),
    "CoClusteringEnsemble": Kind(
        "permix.cocluster.archive:ensemble_from_archive",
        "permix.cocluster.ensemble_estimator:CoClusteringEnsemble",
    ),
    "AngleMixture": Kind("permix.angle.archive:angle_from_archive", "permix.angle.estimator:AngleMixture"),
    "MallowsMixture": Kind(
        "permix.mallows.archive:mallows_from_archive", "permix.mallows.estimator:MallowsMixture"
    ),
    "MallowsKDE": Kind("permix.baselines.kde_archive:kde_from_archive", "permix.baselines.kde:MallowsKDE"),
}


def _read(path: PathLike, max_bytes: int) -> tuple[Kind, Any]:
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


def load_fit(path: PathLike, max_bytes: int = MAX_BYTES) -> Any:
    """Read a fit of any kind without scikit-learn; see :func:`load`."""
    return _read(path, max_bytes)[1]


def load_mixture(path: PathLike, max_bytes: int = MAX_BYTES) -> MixtureFit:
    """Read the fit of a :class:`permix.DPMixture` without scikit-learn."""
    fit = load_fit(path, max_bytes)
    if not isinstance(fit, MixtureFit):
        raise FileFormatError(f"{os.fspath(path)} holds no DPMixture but a {type(fit).__name__}", path)
    return fit


def load(path: PathLike, max_bytes: int = MAX_BYTES) -> Any:
    """Read a fitted model that was written by its ``save``.

    The file may come from a stranger: nothing in it is executed, and all of it is checked before use.

    Parameters
    ----------
    path : path
        The file.
    max_bytes : int
        The most that the file may unpack to; 8 GiB by default.

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
