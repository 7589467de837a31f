"""Fitted mixtures as files, and back."""

from __future__ import annotations

import os
import warnings
from typing import Any

import numpy as np

from permix.errors import DataError, FileFormatError, PermixWarning
from permix.families import family_from_description
from permix.files import read_archive, write_archive
from permix.models.mixture_fit import MixtureFit, MixtureSettings
from permix.moves import Move, describe_move, move_from_description
from permix.partitions import PartitionPrior, prior_from_description
from permix.partitions.point_estimate import PointEstimate
from permix.sampling import Draws

KIND = "DPMixture"
PLAIN = ("n_draws", "n_burn_in", "n_thin", "n_chains", "loss", "n_jobs", "progress")
ESTIMATE = ("expected_loss", "best_draw_loss", "loss", "n_runs")
STATISTICS = ("proposed", "accepted", "seconds")


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
            "moves": _described_moves(settings.moves),
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


def load_mixture(path: str | os.PathLike[str]) -> MixtureFit:
    """Read a fitted mixture without scikit-learn."""
    manifest, arrays = read_archive(path)
    if manifest["kind"] != KIND:
        raise FileFormatError(
            f"{os.fspath(path)} holds a {manifest['kind']!r}, which this permix does not know", path
        )
    try:
        return _rebuilt(manifest, arrays)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError) as error:
        raise FileFormatError(
            f"{os.fspath(path)} is a permix file, but what it holds does not fit together "
            f"({type(error).__name__}: {error}). It may have been edited; fit the model again.",
            path,
        ) from error


def load(path: str | os.PathLike[str]) -> Any:
    """Read a fitted model that was written by its ``save``.

    The file may come from a stranger: nothing in it is executed.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    The fitted estimator.

    Raises
    ------
    FileFormatError
        If the file is truncated, damaged, hostile, of another kind, or written by a newer permix.
    """
    from permix.models.dp_mixture import DPMixture

    return DPMixture._from_fit(load_mixture(path))


def _rebuilt(manifest: dict[str, Any], arrays: dict[str, np.ndarray]) -> MixtureFit:
    asked = manifest["family"]
    settings = MixtureSettings(
        family=asked if asked is None or isinstance(asked, str) else family_from_description(asked),
        prior=None if manifest["prior"] is None else _prior(manifest["prior"]),
        moves=_rebuilt_moves(manifest["moves"]),
        random_state=manifest["random_state"],
        **{name: manifest["settings"][name] for name in PLAIN},
    )
    family = family_from_description(manifest["fitted_family"]).resolve_saved()
    draws = Draws(
        arrays=_under("draws/", arrays),
        statistics={
            "moves": manifest["moves_done"],
            **{name: arrays[f"statistics/{name}"] for name in STATISTICS},
        },
        interrupted=manifest["interrupted"],
        n_draws=manifest["n_draws_kept"],
        seeds=tuple(manifest["seeds"]),
    )
    labels = arrays["point_estimate"]
    names = tuple(arrays["feature_names"].tolist()) if "feature_names" in arrays else None
    fit = MixtureFit(
        settings=settings,
        family=family,
        prior=_prior(manifest["fitted_prior"]),
        data=family.unpack(_under("data/", arrays)),
        n=draws.arrays["labels"].shape[-1],
        draws=draws,
        estimate=PointEstimate(
            labels=labels,
            n_clusters=int(labels.max()) + 1,
            sizes=np.bincount(labels),
            **{name: manifest["point_estimate"][name] for name in ESTIMATE},
        ),
        feature_names=names,
    )
    _check(fit)
    return fit


def _under(prefix: str, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def _prior(description: dict[str, Any]) -> PartitionPrior:
    prior = prior_from_description(description)
    if not isinstance(prior, PartitionPrior):
        raise DataError(f"{description!r} is not a prior over partitions")
    return prior


def _check(fit: MixtureFit) -> None:
    """Refuse content that compiled code, which does not check, must never see."""
    draws = fit.draws.arrays
    labels = draws["labels"]
    if labels.ndim != 3 or labels.shape[2] != fit.n or labels.dtype.kind not in "iu" or labels.size == 0:
        raise DataError(f"labels of shape {labels.shape} do not belong to {fit.n} observations")
    if any(array.shape[:2] != labels.shape[:2] for array in draws.values()):
        raise DataError("draws differ in length")
    if fit.estimate.labels.shape != (fit.n,):
        raise DataError("the point estimate does not belong to these data")
    for values in (labels, fit.estimate.labels):
        if int(values.min()) < 0 or int(values.max()) >= fit.n:
            raise DataError("a label is outside the number of observations")
    concentration = draws.get("concentration", np.ones(1))
    if not np.all(np.isfinite(concentration) & (concentration > 0)):
        raise DataError("a concentration is not positive")
    # Resolving again, for one row, checks that all hyper-parameters have the same number of columns.
    fit.family.resolve(np.zeros((1, fit.family.n_features)))
    fit.family.check_encoded(fit.data, fit.n)
    if fit.feature_names is not None and len(fit.feature_names) != fit.family.n_features:
        raise DataError("there are not as many names as columns")


def _described_moves(moves: Any) -> Any:
    if isinstance(moves, str):
        return moves
    if isinstance(moves, Move):
        return describe_move(moves)
    return [move if isinstance(move, str) else describe_move(move) for move in moves]


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
