"""A real fit, killed again and again with SIGKILL, ends with the bytes of one that was left alone."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from tests.dp_mixture.kill_child import N_BURN_IN, N_DRAWS, fit
from tests.sampling.kill import kill_and_resume


@pytest.mark.slow
def test_killed_fit_equals_the_undisturbed_one(tmp_path):
    store = tmp_path / "chains"
    undisturbed = fit(None)  # first: it also compiles what the child will load
    command = [sys.executable, str(Path(__file__).with_name("kill_child.py")), str(store)]
    reached = kill_and_resume(command, store, 22, np.random.default_rng(6), N_BURN_IN + N_DRAWS)
    assert len(reached) == 22
    assert len(set(reached)) > 5, "the kills must fall on different moments"
    resumed = fit(str(store))
    assert resumed.draws.arrays.keys() == undisturbed.draws.arrays.keys()
    for name, array in undisturbed.draws.arrays.items():
        assert resumed.draws.arrays[name].dtype == array.dtype
        assert resumed.draws.arrays[name].tobytes() == array.tobytes(), name
    np.testing.assert_array_equal(resumed.labels, undisturbed.labels)
