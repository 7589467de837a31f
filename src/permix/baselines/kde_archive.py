"""Archives of :class:`permix.MallowsKDE`: written from a fit, and checked before they become one."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from permix.baselines.kde_density import KernelDensity, KernelSettings
from permix.data.labels import Array, Label, clean_items
from permix.data.preferences import Preferences
from permix.estimators.archive_checks import is_whole, require
from permix.files import write_archive

KIND = "MallowsKDE"
PLAIN = ("dispersion", "n_samples", "n_jobs", "progress")
STATEMENTS = {
    "level_indptr": np.int64,
    "level_items": np.int32,
    "levels": np.int32,
    "rest_below": np.bool_,
    "pair_indptr": np.int64,
    "pairs": np.int32,
    "counts": np.int64,
}


def save_kde(fit: KernelDensity, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator; :func:`permix.load` reads it."""
    write_archive(path, *kde_to_archive(fit))


def kde_to_archive(fit: KernelDensity) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return what a file holds: plain JSON values, and arrays."""
    settings, table = fit.settings, fit.preferences
    seed = settings.random_state
    manifest = {
        "kind": KIND,
        "settings": {name: _plain(getattr(settings, name)) for name in PLAIN},
        "random_state": int(seed) if isinstance(seed, int | np.integer) else None,
        "items": list(table.items),
        "dispersion": float(fit.dispersion),
        "interrupted": bool(fit.interrupted),
    }
    arrays = {f"training/{name}": np.asarray(getattr(table, name)) for name in STATEMENTS}
    return manifest, arrays | {"keys": fit.keys, "tried": fit.tried}


def kde_from_archive(manifest: dict[str, Any], arrays: dict[str, Array]) -> KernelDensity:
    """Check what the file says, piece by piece, and put the fit together.

    Compiled code does not check anything, so nothing may reach it that a fit could not have written.
    """
    require(set(arrays) == {f"training/{name}" for name in STATEMENTS} | {"keys", "tried"}, "arrays")
    table = _preferences(_items(manifest["items"]), arrays)
    dispersion = manifest["dispersion"]
    require(isinstance(dispersion, float) and 0.0 <= dispersion <= 1.0, "dispersion")
    settings = _settings(manifest)
    require(settings.dispersion == "cv" or float(settings.dispersion) == dispersion, "dispersion")
    keys, tried = arrays["keys"], arrays["tried"]
    require(keys.dtype == np.uint64 and keys.shape == (3, 2), "keys")
    require(tried.dtype == np.float64 and tried.ndim == 2 and tried.shape[1] == 2, "dispersions tried")
    require((len(tried) > 0) == (settings.dispersion == "cv"), "dispersions tried")
    require(not np.isnan(tried).any() and bool(np.all((tried[:, 0] >= 0) & (tried[:, 0] <= 1))), "tried")
    require(bool(np.all(np.diff(tried[:, 0]) >= 0) and np.all(tried[:, 1] < np.inf)), "dispersions tried")
    require(isinstance(manifest["interrupted"], bool), "interrupted")
    return KernelDensity(settings, table, dispersion, keys, tried, manifest["interrupted"])


def _settings(manifest: dict[str, Any]) -> KernelSettings:
    asked = manifest["settings"]
    require(isinstance(asked, dict) and set(asked) == set(PLAIN), "settings")
    require(is_whole(asked["n_samples"]), "n_samples")
    require(asked["n_jobs"] is None or is_whole(asked["n_jobs"]), "n_jobs")
    require(asked["progress"] is None or isinstance(asked["progress"], bool), "progress")
    seed = manifest["random_state"]
    require(seed is None or (is_whole(seed) and seed >= 0), "random_state")
    return KernelSettings(random_state=seed, **asked)


def _items(names: Any) -> tuple[Label, ...]:
    require(isinstance(names, list) and len(names) > 1, "items")
    items = clean_items(names)
    # Floats and the like would be tidied to names that no fit writes.
    require(all(type(name) is type(item) for name, item in zip(names, items, strict=True)), "items")
    return items


def _preferences(items: tuple[Label, ...], arrays: dict[str, Array]) -> Preferences:
    """Rebuild the training rows, which must be as constructors of Preferences leave them."""
    from permix.kernels.posets import consistent_agents

    found: dict[str, Any] = {name: arrays[f"training/{name}"] for name in STATEMENTS}
    for name, kind in STATEMENTS.items():
        require(found[name].dtype == kind, name)
    n, n_items, counts = len(found["counts"]), len(items), found["counts"]
    require(counts.ndim == 1 and n > 0 and bool(np.all(counts > 0)), "counts")
    # As floats they cannot overflow while they are summed.
    require(float(counts.astype(np.float64).sum()) < 2.0**62, "counts")
    listed, levels, pairs = found["level_items"], found["levels"], found["pairs"]
    require(pairs.ndim == 2 and pairs.shape[1] == 2, "pairs")
    for indptr, entries in ((found["level_indptr"], listed), (found["pair_indptr"], pairs)):
        require(indptr.shape == (n + 1,) and indptr[0] == 0 and indptr[-1] == len(entries), "rows")
        require(bool(np.all(np.diff(indptr) >= 0)), "rows")
        require(bool(np.all((entries >= 0) & (entries < n_items))), "item numbers")
    require(bool(np.all(pairs[:, 0] != pairs[:, 1])), "pairs")
    require(listed.ndim == 1 and levels.shape == listed.shape, "levels")
    sizes = np.diff(found["level_indptr"])
    row = np.repeat(np.arange(n), sizes)
    require(len(np.unique(row * n_items + listed)) == len(listed), "items of levels")
    begins = np.zeros(len(levels), dtype=np.bool_)
    begins[found["level_indptr"][:-1][sizes > 0]] = True
    steps = np.diff(levels, prepend=0)
    require(bool(np.all(levels[begins] == 0) and np.all((steps >= 0) & (steps <= 1) | begins)), "levels")
    below = found["rest_below"]
    require(below.shape == (n,) and not np.any(below & (sizes == 0)), "rest")
    require(bool(np.all(below[sizes == n_items])), "rest")
    table = Preferences._from_arrays(items=items, **found)
    require(bool(consistent_agents(table.arrays(), n_items).all()), "comparisons")
    return table


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
