"""Archives of :class:`permix.AngleMixture`: written from a fit, and checked before they become one."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from permix.angle.ascent import VariationalPosterior
from permix.angle.components import (
    USED_NORMALIZERS,
    AngleComponents,
    AnglePrior,
    largest_concentration,
)
from permix.angle.direct import Evidence
from permix.angle.fit import AngleFit
from permix.angle.settings import AngleSettings
from permix.data.labels import Array, Label
from permix.distributions.angle.concentration_jit import MOST
from permix.distributions.base import Estimate
from permix.dp_mixture.archive import STATISTICS
from permix.estimators.archive_checks import is_whole, require
from permix.files import write_archive
from permix.mallows.archive import _are_errors, _is_real, _items, _plain
from permix.sampling import Draws

KIND = "AngleMixture"
PLAIN = (
    "n_components",
    "inference",
    "normalizer",
    "bound",
    "prior_shape",
    "prior_rate",
    "prior_strength",
    "pseudo_count",
    "n_restarts",
    "max_iter",
    "tol",
    "n_draws",
    "n_burn_in",
    "n_thin",
    "n_chains",
    "n_candidates",
    "n_jobs",
    "progress",
)
WHOLE = (
    "n_components",
    "n_restarts",
    "max_iter",
    "n_draws",
    "n_burn_in",
    "n_thin",
    "n_chains",
    "n_candidates",
)
NUMBERS = ("prior_shape", "prior_strength", "pseudo_count", "tol")
BASIC = {
    "weights",
    "directions",
    "concentrations",
    "probabilities",
    "counts",
    "history",
    "restart_objectives",
    "guarded",
    "log_likelihood",
}
VARIATIONAL = ("shapes", "rates", "lengths", "directions", "counts", "guarded")
ROUNDING = 1e-6


def save_angle(fit: AngleFit, path: str | os.PathLike[str]) -> None:
    """Write a fitted mixture of angle-based models; :func:`permix.load` reads it."""
    settings, components = fit.settings, fit.components
    arrays: dict[str, Array] = {
        "weights": components.weights,
        "directions": components.directions,
        "concentrations": components.concentrations,
        "probabilities": fit.probabilities,
        "counts": fit.counts,
        "history": np.asarray(fit.history, dtype=np.float64),
        "restart_objectives": np.asarray(fit.restart_objectives, dtype=np.float64),
        "guarded": fit.guarded,
        "log_likelihood": np.array([float(fit.log_likelihood), fit.log_likelihood.standard_error]),
    }
    if settings.prior_strength > 0.0:
        arrays["prior_pulls"] = AnglePrior.of(settings, components.items).pulls
    if fit.variational is not None:
        arrays |= {f"variational/{name}": getattr(fit.variational, name) for name in VARIATIONAL}
    if fit.evidence is not None:
        e = fit.evidence
        arrays["evidence"] = np.array([e.n, e.length, e.cap])
    manifest = {
        "kind": KIND,
        "settings": {name: _plain(getattr(settings, name)) for name in PLAIN},
        "random_state": int(settings.random_state) if is_whole(settings.random_state) else None,
        "items": list(components.items),
        "used_normalizer": components.normalizer,
        "objective": fit.objective,
        "converged": bool(fit.converged),
        "interrupted": bool(fit.interrupted),
        "draws": None,
    }
    if fit.draws is not None:
        arrays |= {f"draws/{name}": value for name, value in fit.draws.arrays.items()}
        statistics = fit.draws.statistics
        arrays |= {
            f"statistics/{name}": np.asarray(statistics[name]) for name in STATISTICS if name in statistics
        }
        manifest["draws"] = {
            "moves": list(statistics.get("moves", [])),
            "seeds": list(fit.draws.seeds),
            "interrupted": fit.draws.interrupted,
            "n_draws": fit.draws.n_draws,
        }
    write_archive(path, manifest, arrays)


def angle_from_archive(manifest: dict[str, Any], arrays: dict[str, Array]) -> AngleFit:
    """Check what the file says, piece by piece, and put the fit together."""
    items = _items(manifest["items"])
    k, t = len(arrays["weights"]), len(items)
    settings = _settings(manifest, arrays, items)
    require(settings.n_components == k and t >= 3, "components")
    for name in ("weights", "directions", "concentrations", "history", "restart_objectives"):
        require(_is_real(arrays[name]) and bool(np.isfinite(arrays[name]).all()), name)
    require(arrays["history"].ndim == 1 and arrays["restart_objectives"].ndim == 1, "history")
    require(manifest["used_normalizer"] in USED_NORMALIZERS, "normalizer")
    require(manifest["used_normalizer"] == settings.normalizer_for(t), "normalizer")
    components = AngleComponents(
        items, arrays["weights"], arrays["directions"], arrays["concentrations"], manifest["used_normalizer"]
    )
    probabilities, counts = arrays["probabilities"], arrays["counts"]
    require(_is_real(probabilities) and probabilities.ndim == 2 and probabilities.shape[1] == k, "rows")
    require(len(probabilities) > 0 and bool(np.all(probabilities >= 0.0)), "probabilities")
    require(bool(np.all(np.abs(probabilities.sum(axis=1) - 1.0) < ROUNDING)), "probabilities")
    require(counts.dtype == np.int64 and counts.shape == (len(probabilities),), "counts")
    require(bool(np.all(counts > 0)) and float(counts.astype(np.float64).sum()) < 2.0**62, "counts")
    guarded, total, objective = arrays["guarded"], arrays["log_likelihood"], manifest["objective"]
    require(guarded.dtype == np.bool_ and guarded.shape == (k,), "guarded")
    require(_is_real(total) and total.shape == (2,), "log-likelihood")
    # Not a number where too many items are unlisted to find it.
    unknown = bool(np.isnan(total).all())
    require(unknown or (bool(np.isfinite(total[0])) and _are_errors(total[1:])), "log-likelihood")
    require(objective is None or isinstance(objective, float), "objective")
    for name in ("converged", "interrupted"):
        require(isinstance(manifest[name], bool), name)
    known = set(BASIC)
    if settings.prior_strength > 0.0:
        known |= {"prior_pulls"}
    variational = evidence = draws = None
    if any(name.startswith("variational/") for name in arrays):
        known |= {f"variational/{name}" for name in VARIATIONAL}
        variational = _variational(arrays, k, t)
        n = float(counts.sum())
        most = (n + settings.prior_strength) * (1.0 + ROUNDING)
        require(bool((variational.lengths <= most).all()), "variational posterior")
        most = (n + k * settings.pseudo_count) * (1.0 + ROUNDING)
        require(float(variational.counts.sum()) <= most, "variational posterior")
        require(objective is not None, "objective")
    if "evidence" in arrays:
        known |= {"evidence"}
        require(_is_real(arrays["evidence"]), "evidence")
        n, length, cap = (float(value) for value in arrays["evidence"])
        require(k == 1 and n == counts.sum(), "evidence")
        require(0.0 <= length <= (n + settings.prior_strength) * (1.0 + ROUNDING), "evidence")
        require(cap == largest_concentration(t), "evidence")
        evidence = Evidence(n, length, components.directions[0], AnglePrior.of(settings, items), cap)
    if manifest["draws"] is not None:
        draws = _draws(manifest["draws"], arrays, k, t)
        labels = draws.arrays.get("labels")
        require(labels is None or labels.shape[2] == counts.sum(), "labels")
        known |= {f"draws/{name}" for name in draws.arrays}
        known |= {f"statistics/{name}" for name in STATISTICS if name in draws.statistics}
    require(set(arrays) == known, "arrays")
    require((settings.inference == "em") == (variational is None and draws is None), "posterior")
    return AngleFit(
        settings=settings,
        components=components,
        probabilities=probabilities,
        counts=counts,
        log_likelihood=Estimate(float(total[0]), float(total[1])),
        objective=objective,
        history=arrays["history"],
        restart_objectives=arrays["restart_objectives"],
        variational=variational,
        evidence=evidence,
        draws=draws,
        guarded=guarded,
        converged=manifest["converged"],
        interrupted=manifest["interrupted"],
    )


def _settings(manifest: dict[str, Any], arrays: dict[str, Array], items: tuple[Label, ...]) -> AngleSettings:
    asked = manifest["settings"]
    require(isinstance(asked, dict) and set(asked) == set(PLAIN), "settings")
    for name in WHOLE:
        require(is_whole(asked[name]), name)
    for name in NUMBERS:
        require(isinstance(asked[name], float | int) and not isinstance(asked[name], bool), name)
    rate = asked["prior_rate"]
    require(rate is None or (isinstance(rate, float | int) and not isinstance(rate, bool)), "prior_rate")
    require(asked["n_jobs"] is None or is_whole(asked["n_jobs"]), "n_jobs")
    require(asked["progress"] is None or isinstance(asked["progress"], bool), "progress")
    seed = manifest["random_state"]
    require(seed is None or (is_whole(seed) and seed >= 0), "random_state")
    direction = None
    if asked["prior_strength"] > 0.0:
        pulls = arrays["prior_pulls"]
        require(_is_real(pulls) and pulls.shape == (asked["n_components"], len(items)), "prior")
        require(bool(np.isfinite(pulls).all()), "prior")
        direction = pulls / asked["prior_strength"]
    return AngleSettings(random_state=seed, prior_direction=direction, **asked)


def _variational(arrays: dict[str, Array], k: int, t: int) -> VariationalPosterior:
    parts = {name: arrays[f"variational/{name}"] for name in VARIATIONAL}
    for name, value in parts.items():
        require(value.shape == ((k, t) if name == "directions" else (k,)), "variational posterior")
        require(value.dtype == (np.bool_ if name == "guarded" else np.float64), "variational posterior")
        require(bool(np.isfinite(value).all()), "variational posterior")
    for name in ("shapes", "rates", "counts"):
        require(bool((parts[name] > 0.0).all()), "variational posterior")
    require(bool((parts["lengths"] >= 0.0).all()), "variational posterior")
    size, total = np.linalg.norm(parts["directions"], axis=1), parts["directions"].sum(axis=1)
    require(bool(np.all(np.abs(size - 1.0) < ROUNDING) and np.all(np.abs(total) < ROUNDING)), "directions")
    return VariationalPosterior(**parts)


def _draws(about: Any, arrays: dict[str, Array], k: int, t: int) -> Draws:
    require(isinstance(about, dict) and set(about) == {"moves", "seeds", "interrupted", "n_draws"}, "draws")
    require(is_whole(about["n_draws"]) and about["n_draws"] >= 1, "draws")
    require(isinstance(about["interrupted"], bool), "draws")
    require(
        isinstance(about["moves"], list) and all(isinstance(name, str) for name in about["moves"]), "draws"
    )
    require(
        isinstance(about["seeds"], list) and all(isinstance(seed, dict) for seed in about["seeds"]), "draws"
    )
    drawn = {
        name.removeprefix("draws/"): value for name, value in arrays.items() if name.startswith("draws/")
    }
    names = {"weights", "concentrations", "directions"}
    require(names <= set(drawn) <= names | {"log_likelihood", "completed_log_likelihood", "labels"}, "draws")
    head = drawn["weights"].shape[:2]
    require(len(head) == 2 and head[0] >= 1 and head[1] == about["n_draws"], "draws")
    shapes = {"weights": (k,), "concentrations": (k,), "directions": (k, t)}
    for name, value in drawn.items():
        if name == "labels":
            require(value.dtype.kind in "iu" and value.ndim == 3 and value.shape[:2] == head, "labels")
            require(value.size > 0 and int(value.min()) >= 0 and int(value.max()) < k, "labels")
            continue
        require(_is_real(value) and value.shape == head + shapes.get(name, ()), "draws")
        require(bool(np.isfinite(value).all()), "draws")
    require(bool((drawn["weights"] >= 0.0).all() and (drawn["concentrations"] >= 0.0).all()), "draws")
    require(bool((drawn["concentrations"] <= MOST).all()), "draws")
    require(bool(np.all(np.abs(drawn["weights"].sum(axis=2) - 1.0) < ROUNDING)), "draws")
    size = np.linalg.norm(drawn["directions"], axis=3)
    total = drawn["directions"].sum(axis=3)
    require(bool(np.all(np.abs(size - 1.0) < ROUNDING) and np.all(np.abs(total) < ROUNDING)), "draws")
    statistics: dict[str, Any] = {}
    if about["moves"]:
        statistics["moves"] = about["moves"]
        for name in STATISTICS:
            value = arrays[f"statistics/{name}"]
            wanted = (head[0], len(about["moves"]))
            require(value.shape == wanted and value.dtype.kind in "iu", "statistics")
            statistics[name] = value
    return Draws(
        drawn,
        statistics,
        interrupted=about["interrupted"],
        n_draws=about["n_draws"],
        seeds=tuple(about["seeds"]),
    )
