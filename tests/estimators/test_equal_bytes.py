"""The same data, parameters and seed give the same file, however long the fit took."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

import permix
from permix.sampling import chain

RNG = np.random.default_rng(3)
VOTES = permix.Rankings.from_orders([RNG.permutation(5) for _ in range(12)], n_items=5)
SHORT = {"n_draws": 6, "n_burn_in": 2, "n_chains": 2, "random_state": 1}
MODELS = {
    "dp-mixture": (lambda: permix.DPMixture(**SHORT), RNG.normal(size=(15, 2))),
    "dp-mallows": (lambda: permix.DPMallowsMixture(**SHORT), VOTES),
    "angle": (lambda: permix.AngleMixture(2, inference="sir", n_init=2, **SHORT), VOTES),
    "cocluster": (lambda: permix.CoClustering(**SHORT), RNG.integers(0, 2, (8, 7))),
    "mallows": (lambda: permix.MallowsMixture(2, n_init=2, random_state=1), VOTES),
}


@pytest.mark.filterwarnings("ignore::permix.errors.PermixWarning")
@pytest.mark.parametrize("name", MODELS)
def test_equal_fits_are_equal_in_bytes(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    make, data = MODELS[name]
    first, second = tmp_path / "first.permix", tmp_path / "second.permix"
    make().fit(data).save(first)
    clock = time.monotonic
    monkeypatch.setattr(chain.time, "monotonic", lambda: 3.0 * clock())  # a slower machine
    again = make().fit(data)
    again.save(second)
    assert first.read_bytes() == second.read_bytes()
    permix.load(second).save(first)
    assert first.read_bytes() == second.read_bytes()
