"""Fit top lists into a store, checkpointing as often as possible; run as a program by the kill test."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np

from permix.data.rankings import Rankings
from permix.dp_mallows.fit import DPMallowsFit, fit_dp_mallows
from permix.dp_mallows.parameters import DPMallowsParameters
from permix.sampling.loop import run_chains

N_DRAWS, N_BURN_IN = 1200, 100


def fit(store: str | None) -> DPMallowsFit:
    rng = np.random.default_rng(11)
    rows = [rng.permutation(8)[: rng.integers(1, 7)].tolist() for _ in range(100)]
    run_chains.__kwdefaults__["checkpoint_seconds"] = 0.0
    settings = DPMallowsParameters(
        assignments="parallel",
        n_draws=N_DRAWS,
        n_burn_in=N_BURN_IN,
        random_state=9,
        progress=False,
        store=store,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fit_dp_mallows(Rankings.from_orders(rows, n_items=8), settings)


if __name__ == "__main__":
    fit(sys.argv[1])
