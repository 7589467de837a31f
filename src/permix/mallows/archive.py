"""Archives of :class:`permix.MallowsMixture`: written from a fit, and checked before they become one."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from permix.data.labels import Array, Label, clean_items
from permix.distributions.base import Estimate
from permix.distributions.conditioning.components import MallowsComponents
from permix.estimators.archive_checks import is_whole, require
from permix.files import write_archive
from permix.mallows.fit import MallowsFit, MallowsSettings

KIND = "MallowsMixture"
PLAIN = (
    "n_components",
    "n_restarts",
    "max_iter",
    "tol",
    "n_particles",
    "center_search",
    "min_dispersion",
    "n_jobs",
    "progress",
)
ARRAYS = {
    "weights",
    "centers",
    "decays",
    "probabilities",
    "counts",
    "history",
    "restart_log_likelihoods",
    "log_likelihood",
}
# Rows of probabilities sum to one up to rounding.
ROUNDING = 1e-6


def save_mallows(fit: MallowsFit, path: str | os.PathLike[str]) -> None:
    """Write a fitted mixture of Mallows models; :func:`permix.load` reads it."""
    settings, components = fit.settings, fit.components
    seed = settings.random_state
    write_archive(
        path,
        {
            "kind": KIND,
            "settings": {name: _plain(getattr(settings, name)) for name in PLAIN},
            "random_state": int(seed) if isinstance(seed, int | np.integer) else None,
            "items": list(components.items),
            "converged": bool(fit.converged),
            "interrupted": bool(fit.interrupted),
        },
        {
            "weights": components.weights,
            "centers": components.centers,
            "decays": components.decays,
            "probabilities": fit.probabilities,
            "counts": fit.counts,
            "history": fit.history,
            "restart_log_likelihoods": fit.restart_log_likelihoods,
            "log_likelihood": np.array([float(fit.log_likelihood), fit.log_likelihood.standard_error]),
        },
    )


def mallows_from_archive(manifest: dict[str, Any], arrays: dict[str, Array]) -> MallowsFit:
    """Check what the file says, piece by piece, and put the fit together.

    Compiled code does not check anything, so nothing may reach it that a fit could not have written.
    """
    require(set(arrays) == ARRAYS, "arrays")
    settings = _settings(manifest)
    components = _components(_items(manifest["items"]), arrays)
    k = components.n_components
    require(k == settings.n_components, "number of components")
    probabilities, counts = arrays["probabilities"], arrays["counts"]
    require(_is_real(probabilities) and probabilities.ndim == 2 and probabilities.shape[1] == k, "rows")
    require(len(probabilities) > 0 and bool(np.all(probabilities >= 0.0)), "probabilities")
    require(bool(np.all(np.abs(probabilities.sum(axis=1) - 1.0) < ROUNDING)), "probabilities")
    require(counts.dtype == np.int64 and counts.shape == (len(probabilities),), "counts")
    # As floats they cannot overflow while they are summed.
    require(bool(np.all(counts > 0)) and float(counts.astype(np.float64).sum()) < 2.0**62, "counts")
    history, reached = arrays["history"], arrays["restart_log_likelihoods"]
    require(_is_real(history) and history.ndim == 2 and history.shape[1] == 2, "history")
    require(len(history) > 0, "history")
    require(bool(np.all(np.isfinite(history[:, 0]))) and _are_errors(history[:, 1]), "history")
    require(_is_real(reached) and reached.ndim == 1 and 1 <= len(reached) <= settings.n_restarts, "restarts")
    require(not np.any(reached == np.inf), "restarts")
    total = arrays["log_likelihood"]
    require(_is_real(total) and total.shape == (2,), "log-likelihood")
    require(bool(np.isfinite(total[0])) and _are_errors(total[1:]), "log-likelihood")
    for name in ("converged", "interrupted"):
        require(isinstance(manifest[name], bool), name)
    return MallowsFit(
        settings=settings,
        components=components,
        probabilities=probabilities,
        counts=counts,
        log_likelihood=Estimate(float(total[0]), float(total[1])),
        history=history,
        restart_log_likelihoods=reached,
        converged=manifest["converged"],
        interrupted=manifest["interrupted"],
    )


def _settings(manifest: dict[str, Any]) -> MallowsSettings:
    asked = manifest["settings"]
    require(isinstance(asked, dict) and set(asked) == set(PLAIN), "settings")
    for name in ("tol", "min_dispersion"):
        require(isinstance(asked[name], float | int) and not isinstance(asked[name], bool), name)
    require(asked["n_jobs"] is None or is_whole(asked["n_jobs"]), "n_jobs")
    require(asked["progress"] is None or isinstance(asked["progress"], bool), "progress")
    seed = manifest["random_state"]
    require(seed is None or (is_whole(seed) and seed >= 0), "random_state")
    return MallowsSettings(random_state=seed, **asked)


def _items(names: Any) -> tuple[Label, ...]:
    require(isinstance(names, list) and len(names) > 0, "items")
    items = clean_items(names)
    # Floats and the like would be tidied to names that no fit writes.
    require(all(type(name) is type(item) for name, item in zip(names, items, strict=True)), "items")
    return items


def _components(items: tuple[Label, ...], arrays: dict[str, Array]) -> MallowsComponents:
    weights, centers, decays = arrays["weights"], arrays["centers"], arrays["decays"]
    require(_is_real(weights) and _is_real(decays), "components")
    require(centers.dtype == np.int32 and centers.ndim == 2, "centers")
    components = MallowsComponents(items, weights, centers, decays)
    require(bool(np.all(np.diff(weights) <= 0.0)), "weights")
    return components


def _is_real(array: Array) -> bool:
    return array.dtype == np.float64


def _are_errors(values: Array) -> bool:
    return bool(np.all(np.isfinite(values)) and np.all(values >= 0.0))


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
