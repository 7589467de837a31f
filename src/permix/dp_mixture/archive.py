"""Archives of :class:`permix.DPMixture`: written from a fit, and checked before they become one."""

from __future__ import annotations

import json
import os
import warnings
from typing import Any

import numpy as np

from permix.dp_mixture.fit import MixtureFit, MixtureSettings
from permix.errors import DataError, PermixWarning
from permix.estimators.archive_checks import is_whole, require
from permix.families import Family, family_from_description
from permix.files import write_archive
from permix.moves import move_from_description
from permix.moves.naming import described_moves
from permix.moves.start import check_start
from permix.moves.state import learned_concentration
from permix.partitions import PartitionPrior, prior_from_description
from permix.partitions.point_estimate import PointEstimate
from permix.sampling import Draws

KIND = "DPMixture"
PLAIN = ("n_draws", "n_burn_in", "n_thin", "n_chains", "loss", "n_jobs", "progress")
WHOLE = ("n_draws", "n_burn_in", "n_thin", "n_chains")
ESTIMATE = ("expected_loss", "best_draw_loss", "loss", "n_runs")
# Times are left out: the same fit shall give the same bytes.
STATISTICS = ("proposed", "accepted")


def save_mixture(fit: MixtureFit, path: str | os.PathLike[str]) -> None:
    """Write a fitted mixture."""
    settings, draws = fit.settings, fit.draws
    arrays = {f"draws/{name}": array for name, array in draws.arrays.items()}
    arrays |= {f"statistics/{name}": np.asarray(draws.statistics[name]) for name in STATISTICS}
    arrays["point_estimate"] = np.asarray(fit.estimate.labels)
    arrays |= {f"data/{name}": array for name, array in fit.family.pack(fit.data).items()}
    if fit.feature_names is not None:
        arrays["feature_names"] = np.array(fit.feature_names)
    family = settings.family
    write_archive(
        path,
        {
            "kind": KIND,
            "settings": {name: getattr(settings, name) for name in PLAIN},
            "random_state": settings.random_state if isinstance(settings.random_state, int) else None,
            "moves": described_moves(settings.moves),
            "burn_in_moves": described_moves(settings.burn_in_moves),
            "init": settings.init,
            "family": family if family is None or isinstance(family, str) else family.describe(),
            "prior": None if settings.prior is None else settings.prior.describe(),
            "fitted_family": fit.family.describe(),
            "fitted_prior": fit.prior.describe(),
            "moves_done": list(draws.statistics["moves"]),
            "seeds": list(draws.seeds),
            "interrupted": draws.interrupted,
            "n_draws_kept": draws.n_draws,
            "point_estimate": {name: getattr(fit.estimate, name) for name in ESTIMATE},
        },
        arrays,
    )


def mixture_from_archive(manifest: dict[str, Any], arrays: dict[str, np.ndarray]) -> MixtureFit:
    """Check what the file says, piece by piece, and put the fit together.

    Compiled code does not check anything, so nothing may reach it that a fit could not have written.
    """
    asked = manifest["family"]
    settings = MixtureSettings(
        family=asked if asked is None or isinstance(asked, str) else family_from_description(asked),
        prior=None if manifest["prior"] is None else _prior(manifest["prior"]),
        moves=_rebuilt_moves(manifest["moves"]),
        # Files written before there were other starts and a climb during burn-in do not have these.
        burn_in_moves=_rebuilt_moves(manifest.get("burn_in_moves", manifest["moves"])),
        init=manifest.get("init", "sequential"),
        random_state=manifest["random_state"],
        **{name: manifest["settings"][name] for name in PLAIN},
    )
    require(all(is_whole(getattr(settings, name)) for name in WHOLE), "settings")
    for value in (settings.n_jobs, settings.random_state):
        require(value is None or is_whole(value), "settings")
    prior = _prior(manifest["fitted_prior"])
    check_start(settings.init, arrays["draws/labels"].shape[-1], prior)
    draws = _rebuilt_draws(manifest, arrays, prior)
    n = draws.arrays["labels"].shape[2]
    family = _resolved_family(manifest["fitted_family"])
    data = family.unpack(_under("data/", arrays))
    family.check_encoded(data, n)
    labels = arrays["point_estimate"]
    require(_are_labels(labels, (n,), n), "point estimate")
    require(len(np.unique(labels)) == int(labels.max()) + 1, "point estimate")
    estimate = manifest["point_estimate"]
    require(estimate["loss"] in ("vi", "binder") and is_whole(estimate["n_runs"]), "point estimate")
    require(
        all(isinstance(estimate[name], float) for name in ("expected_loss", "best_draw_loss")),
        "point estimate",
    )
    names = None
    if "feature_names" in arrays:
        require(
            arrays["feature_names"].dtype.kind == "U" and arrays["feature_names"].ndim == 1, "column names"
        )
        names = tuple(arrays["feature_names"].tolist())
        require(len(names) == family.n_features, "number of column names")
    fit = MixtureFit(
        settings=settings,
        family=family,
        prior=prior,
        data=data,
        n=n,
        draws=draws,
        estimate=PointEstimate(
            labels=labels,
            n_clusters=int(labels.max()) + 1,
            sizes=np.bincount(labels),
            **{name: estimate[name] for name in ESTIMATE},
        ),
        feature_names=names,
    )
    # What the command line and the estimator show is computed here, while a failure is still the file's.
    fit.cluster_parameters  # noqa: B018
    return fit


def _resolved_family(description: dict[str, Any]) -> Family:
    """Rebuild the family; resolving it again, for one row, must change nothing."""
    family = family_from_description(description).resolve_saved()
    resolved = family.resolve(np.zeros((1, family.n_features)))
    require(json.dumps(resolved.describe()) == json.dumps(description) and resolved.n_features > 0, "family")
    return resolved


def _rebuilt_draws(manifest: dict[str, Any], arrays: dict[str, np.ndarray], prior: PartitionPrior) -> Draws:
    kept = _under("draws/", arrays)
    labels = kept["labels"]
    require(
        labels.ndim == 3 and labels.size > 0 and _are_labels(labels, labels.shape, labels.shape[-1]), "labels"
    )
    scalars = {"n_clusters", "largest_cluster", "log_likelihood", "log_joint"}
    if learned_concentration(prior) is not None:
        scalars.add("concentration")
        require(bool(np.all(kept["concentration"] > 0)), "concentration")
    require(set(kept) == scalars | {"labels"}, "quantities")
    for name in scalars:
        values = kept[name]
        require(values.shape == labels.shape[:2] and bool(np.all(np.isfinite(values))), name)
    require(np.array_equal(kept["n_clusters"], labels.max(axis=2).astype(np.int64) + 1), "n_clusters")
    moves, seeds = manifest["moves_done"], manifest["seeds"]
    require(isinstance(moves, list) and all(isinstance(name, str) for name in moves), "moves")
    require(isinstance(seeds, list) and all(isinstance(seed, dict) for seed in seeds), "seeds")
    require(
        isinstance(manifest["interrupted"], bool) and manifest["n_draws_kept"] == labels.shape[1], "draws"
    )
    statistics = {name: arrays[f"statistics/{name}"] for name in STATISTICS}
    for name in STATISTICS:
        require(
            statistics[name].shape == (labels.shape[0], len(moves)) and statistics[name].dtype.kind in "iu",
            name,
        )
    return Draws(
        arrays=kept,
        statistics={"moves": moves, **statistics},
        interrupted=manifest["interrupted"],
        n_draws=labels.shape[1],
        seeds=tuple(seeds),
    )


def _are_labels(labels: np.ndarray, shape: tuple[int, ...], n: int) -> bool:
    """Say whether these are cluster numbers of n observations: 0 ... n - 1 at most."""
    if labels.shape != shape or labels.dtype.kind not in "iu" or labels.size == 0:
        return False
    return int(labels.min()) >= 0 and int(labels.max()) < n


def _under(prefix: str, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def _prior(description: dict[str, Any]) -> PartitionPrior:
    prior = prior_from_description(description)
    if not isinstance(prior, PartitionPrior):
        raise DataError(f"{description!r} is not a prior over partitions")
    return prior


def _rebuilt_moves(moves: Any) -> Any:
    if isinstance(moves, str):
        return moves
    try:
        if isinstance(moves, dict):
            return move_from_description(moves)
        return [move if isinstance(move, str) else move_from_description(move) for move in moves]
    except DataError as error:
        warnings.warn(f"{error} A new fit will use moves='auto'.", PermixWarning, stacklevel=5)
        return "auto"
