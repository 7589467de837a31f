"""A chain killed at random moments gives the bytes of one that was left alone."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from tests.every_run import first_in_every_run
from tests.sampling.kill import kill_and_resume
from tests.sampling.toy import SETTINGS, run, same

PROGRAM = Path(__file__).with_name("toy.py")


@pytest.mark.parametrize("n_kills", first_in_every_run([5, 24]))
def test_killed_chain_repeats_the_undisturbed_one(tmp_path: Path, n_kills: int) -> None:
    n_draws, store = 900, tmp_path / "store"
    command = [sys.executable, str(PROGRAM), str(store), "--n-draws", str(n_draws), "--seconds", "0.001"]
    n_iterations = SETTINGS["n_burn_in"] + n_draws * SETTINGS["n_thin"]
    reached = kill_and_resume(command, store, n_kills, np.random.default_rng(5), n_iterations)
    assert len(reached) == n_kills
    assert min(reached) < 0.2 * n_iterations, "no early kill"
    assert max(reached) > 0.8 * n_iterations, "no late kill"

    undisturbed = run(n_draws=n_draws)
    resumed = run(store, n_draws)
    assert same(undisturbed, resumed)
    assert resumed.arrays["labels"].dtype == np.uint16
    assert resumed.arrays["labels"].max() > 255
    for name in ("proposed", "accepted"):
        np.testing.assert_array_equal(resumed.statistics[name], undisturbed.statistics[name])
