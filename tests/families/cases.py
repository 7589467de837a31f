"""One small data set for each family and flavor; generic tests run over all of them.

A case is a family with its hyper-parameters and a dozen rows: the first five are those that posteriors are
enumerated for. ``test_registry`` says whether they are good enough: unlike enough for broken code to show.
"""

from __future__ import annotations

import numpy as np
import pytest

from permix.families import Categorical, Family, Gaussian, GaussianNIW, Multinomial

_rng = np.random.default_rng(20261115)
_points = _rng.normal(0.0, 2.0, (12, 3)) + np.array([0.0, 1.0, -1.0])
_answers = _rng.integers(0, 3, (12, 4)).astype(float)
_answers[_rng.random((12, 4)) < 0.25] = np.nan
_answers[:3] = [[0, 1, 2, 0], [1, 2, 0, 1], [2, 0, 1, 2]]
_counts = _rng.poisson(1.2, (12, 5)).astype(float)
_counts[3, 2] = 14.0  # beyond the sum-of-logs shortcut
_counts[7] = 0.0  # an empty document says nothing

CASES: dict[str, tuple[Family, np.ndarray]] = {
    "gaussian-isotropic": (Gaussian(noise_scale=1.3, prior_mean=0.4, prior_scale=2.0), _points),
    "gaussian-diagonal": (
        Gaussian(noise_scale=[0.7, 1.0, 1.6], prior_mean=[0.0, 1.0, -1.0], prior_scale=[2.0, 3.0, 1.0]),
        _points,
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
}
CASES = {name: (family.resolve(X), X) for name, (family, X) in CASES.items()}

# Names for tests that compile much for every family: two of the Gaussian flavours wait for `make test-slow`.
SLOW_CASES = {"gaussian-isotropic", "gaussian-niw"}
MOST_CASES = [pytest.param(name, marks=pytest.mark.slow) if name in SLOW_CASES else name for name in CASES]
