"""Fit a mixture into a store, checkpointing as often as possible; run as a program by the kill test."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np

from permix.dp_mixture.fit import MixtureFit, fit_mixture
from permix.dp_mixture.parameters import DPMixtureParameters
from permix.families import Gaussian
from permix.sampling.loop import run_chains

N_DRAWS, N_BURN_IN = 1500, 100


def fit(store: str | None) -> MixtureFit:
    X = np.random.default_rng(11).normal(0.0, 3.0, (400, 6))
    run_chains.__kwdefaults__["checkpoint_seconds"] = 0.0
    settings = DPMixtureParameters(
        Gaussian(), n_draws=N_DRAWS, n_burn_in=N_BURN_IN, random_state=9, progress=False, store=store
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fit_mixture(X, settings)


if __name__ == "__main__":
    fit(sys.argv[1])
