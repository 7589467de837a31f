"""Archives of :class:`permix.BlurringMeanShift`: written from a fit, and checked before they become one."""

from __future__ import annotations

import os
from dataclasses import asdict
from typing import Any

import numpy as np

from permix.baselines.mean_shift_fit import MeanShiftFit, MeanShiftSettings
from permix.data.labels import Array, clean_items
from permix.data.rankings import Rankings
from permix.estimators.archive_checks import is_whole, require
from permix.files import write_archive

KIND = "BlurringMeanShift"
ARRAYS = {
    "centers": np.int32,
    "cluster_sizes": np.int64,
    "row_labels": np.int64,
    "row_counts": np.int64,
    "decays": np.float64,
}


def save_mean_shift(fit: MeanShiftFit, path: str | os.PathLike[str]) -> None:
    """Write a fitted clustering; :func:`permix.load` reads it."""
    write_archive(path, *mean_shift_to_archive(fit))


def mean_shift_to_archive(fit: MeanShiftFit) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return what a file holds: plain JSON values, and arrays."""
    manifest = {
        "kind": KIND,
        "settings": asdict(fit.settings),
        "items": list(fit.items),
        "decay": float(fit.decay),
        "converged": bool(fit.converged),
        "interrupted": bool(fit.interrupted),
    }
    arrays = {
        "centers": fit.centers.orders,
        "cluster_sizes": fit.centers.counts,
        "row_labels": fit.row_labels,
        "row_counts": fit.row_counts,
        "decays": fit.decays,
    }
    return manifest, {name: np.asarray(array, dtype=ARRAYS[name]) for name, array in arrays.items()}


def mean_shift_from_archive(manifest: dict[str, Any], arrays: dict[str, Array]) -> MeanShiftFit:
    """Check what the file says, piece by piece, and put the fit together.

    Compiled code does not check anything, so nothing may reach it that a fit could not have written.
    """
    require(set(arrays) == set(ARRAYS), "arrays")
    for name, kind in ARRAYS.items():
        require(arrays[name].dtype == kind and arrays[name].ndim == (2 if name == "centers" else 1), name)
    names = manifest["items"]
    require(isinstance(names, list) and len(names) > 1, "items")
    items = clean_items(names)
    # Floats and the like would be tidied to names that no fit writes.
    require(all(type(name) is type(item) for name, item in zip(names, items, strict=True)), "items")
    settings = _settings(manifest["settings"])
    decays, decay = arrays["decays"], manifest["decay"]
    require(0 < len(decays) <= settings.max_iter and bool(np.all(decays > 0)), "decays")
    require(settings.decay is None or bool(np.all(decays == settings.decay)), "decays")
    require(isinstance(decay, float) and 0.0 < decay < np.inf, "decay")
    for name in ("converged", "interrupted"):
        require(isinstance(manifest[name], bool), name)
    _check_centers(arrays["centers"], len(items))
    _check_clusters(arrays, len(arrays["centers"]))
    return MeanShiftFit(
        settings,
        Rankings._from_arrays(arrays["centers"], items, counts=arrays["cluster_sizes"]),
        arrays["row_labels"],
        arrays["row_counts"],
        decays,
        decay,
        manifest["converged"],
        manifest["interrupted"],
    )


def _settings(asked: Any) -> MeanShiftSettings:
    names = set(MeanShiftSettings.__dataclass_fields__)
    require(isinstance(asked, dict) and set(asked) == names, "settings")
    require(asked["n_jobs"] is None or is_whole(asked["n_jobs"]), "n_jobs")
    require(asked["progress"] is None or isinstance(asked["progress"], bool), "progress")
    return MeanShiftSettings(**asked)


def _check_centers(centers: Array, n_items: int) -> None:
    require(bool(np.all((centers >= -1) & (centers < n_items))), "item numbers")
    listed = centers >= 0
    require(centers.shape[1] > 0 and bool(np.all(listed[:, 0])), "lengths of centers")
    require(bool(np.all(listed[:, :-1] >= listed[:, 1:])), "padding")
    row = np.nonzero(listed)[0]
    require(len(np.unique(row * n_items + centers[listed])) == len(row), "items of centers")
    require(len(np.unique(centers, axis=0)) == len(centers), "centers")


def _check_clusters(arrays: dict[str, Array], n_clusters: int) -> None:
    sizes, labels, counts = arrays["cluster_sizes"], arrays["row_labels"], arrays["row_counts"]
    require(sizes.shape == (n_clusters,) and bool(np.all(np.diff(sizes) <= 0)), "cluster sizes")
    require(labels.shape == counts.shape and bool(np.all(counts > 0)), "counts")
    # As floats they cannot overflow while they are summed.
    require(float(counts.astype(np.float64).sum()) < 2.0**62, "counts")
    require(bool(np.all((labels >= 0) & (labels < n_clusters))), "labels")
    totals = np.zeros(n_clusters, dtype=np.int64)
    np.add.at(totals, labels, counts)
    require(bool(np.all(totals == sizes) and np.all(sizes > 0)), "cluster sizes")
