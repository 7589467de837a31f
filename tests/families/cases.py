"""One small data set for each family and flavor; generic tests run over all of them.

A case is a family with its hyper-parameters and a dozen rows: the first five are those that posteriors are
enumerated for. ``test_registry`` says whether they are good enough: unlike enough for broken code to show.
"""

from __future__ import annotations

import numpy as np
import pytest

from permix.families import (
    Categorical,
    Family,
    Gaussian,
    GaussianDiagonal,
    GaussianNIW,
    Mixed,
    MixedNIW,
    Multinomial,
)

_rng = np.random.default_rng(20261115)
_points = _rng.normal(0.0, 2.0, (12, 3)) + np.array([0.0, 1.0, -1.0])
_holes = _points.copy()
_holes[[1, 3, 3, 6, 9], [0, 1, 2, 1, 0]] = np.nan
_answers = _rng.integers(0, 3, (12, 4)).astype(float)
_answers[_rng.random((12, 4)) < 0.25] = np.nan
_answers[:3] = [[0, 1, 2, 0], [1, 2, 0, 1], [2, 0, 1, 2]]
_counts = _rng.poisson(1.2, (12, 5)).astype(float)
_counts[3, 2] = 14.0  # beyond the sum-of-logs shortcut
_counts[7] = 0.0  # an empty document says nothing
_mixed = np.column_stack([_points[:, :2], _answers[:, 0], _rng.poisson(3.0, 12), _rng.integers(0, 2, 12)])
_joint = np.column_stack(
    [_mixed[:, 2], _points[:, 0], _mixed[:, 3], _points[:, 1] + _points[:, 0], _mixed[:, 4]]
)
_joint[4, 2] = _joint[9, 2] = _joint[10, 4] = _joint[6, 0] = (
    np.nan
)  # gaps among numbers are filled in elsewhere
_mixed[3, 0] = _mixed[1, 1] = _mixed[4, 3] = _mixed[8, 1] = _mixed[9, 3] = _mixed[10, 4] = np.nan
_mixed[6, [0, 1, 3]] = np.nan

CASES: dict[str, tuple[Family, np.ndarray]] = {
    "gaussian-isotropic": (Gaussian(noise_scale=1.3, prior_mean=0.4, prior_scale=2.0), _points),
    "gaussian-unequal": (
        Gaussian(noise_scale=[0.7, 1.0, 1.6], prior_mean=[0.0, 1.0, -1.0], prior_scale=[2.0, 3.0, 1.0]),
        _points,
    ),
    "gaussian-diagonal": (
        GaussianDiagonal(
            prior_mean=[0.0, 0.5, 0.0], prior_strength=0.5, degrees_of_freedom=3.0, scale=[2.0, 1.5, 1.0]
        ),
        _points,
    ),
    "gaussian-gaps": (
        Gaussian(noise_scale=[0.7, 1.0, 1.6], prior_mean=[0.0, 1.0, -1.0], prior_scale=[2.0, 3.0, 1.0]),
        _holes,
    ),
    "gaussian-niw": (
        GaussianNIW(
            prior_mean=[0.0, 0.5, 0.0],
            prior_strength=0.5,
            degrees_of_freedom=5.0,
            scale=np.array([[2.0, 0.3, 0.0], [0.3, 1.5, 0.2], [0.0, 0.2, 1.0]]),
        ),
        _points,
    ),
    "multinomial": (Multinomial(pseudo_count=[0.5, 1.0, 0.3, 2.0, 0.7], document_length=3), _counts),
    "categorical": (Categorical(pseudo_count=0.6), _answers),
    "mixed": (
        Mixed(
            kinds=["number", "number", "category", "count", "ordered"],
            pseudo_count=0.6,
            prior_strength=0.5,
            degrees_of_freedom=3.0,
            within_share=0.4,
        ),
        _mixed,
    ),
    "mixed-niw": (
        MixedNIW(
            kinds=["category", "number", "count", "number", "ordered"],
            pseudo_count=0.6,
            prior_strength=0.5,
            degrees_of_freedom=3.0,
            within_share=0.4,
        ),
        _joint,
    ),
}
CASES = {name: (family.resolve(X), X) for name, (family, X) in CASES.items()}


def naive_vectors(name: str, X: np.ndarray) -> np.ndarray:
    """Rows as the vectors that are projected, one coordinate or several for every column."""
    family = CASES[name][0]
    if name == "multinomial":
        return X / np.maximum(X.sum(axis=1, keepdims=True), 1)
    if name == "categorical":
        return np.hstack([X[:, [j]] == np.array(levels) for j, levels in enumerate(family.levels)]).astype(
            float
        )
    if name in ("mixed", "mixed-niw"):
        parts = []
        for j in np.argsort(family.places):
            kind = family.kinds[j]
            if kind in ("number", "count"):
                scale = family.scale[j] if kind == "number" and name == "mixed" else 1.0
                parts.append(np.nan_to_num((X[:, [j]] - family.prior_mean[j]) / scale))
            else:
                parts.append(np.hstack([X[:, [j]] == np.array(family.levels[j]), np.zeros((len(X), 1))]))
        return np.hstack(parts).astype(float)
    if name == "gaussian-gaps":
        return np.nan_to_num(X - family.prior_mean)
    return np.array(family.encode(X))


# Names for tests that compile much for every family: all but two wait for `make test-slow`.
SLOW_CASES = set(CASES) - {"gaussian-unequal", "multinomial"}
MOST_CASES = [pytest.param(name, marks=pytest.mark.slow) if name in SLOW_CASES else name for name in CASES]
