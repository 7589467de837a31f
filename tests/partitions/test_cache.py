"""Compiled priors and the search are cached: a second process compiles nothing."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROGRAM = """
import numpy as np
from numba.core import event
from permix.kernels.jit import kernel
from permix.partitions import DirichletProcess, FiniteDirichlet, PitmanYor, credible_ball, point_estimate
from permix.partitions.concentration_jit import draw_concentration

with event.install_recorder("numba:compile") as compiled:
    for prior in (DirichletProcess(1.0), PitmanYor(1.0, 0.5), FiniteDirichlet(3)):
        prior.log_prob([0, 1, 0])
        prior.sequential_log_weights([2, 1])
        draws = prior.sample(12, 1, size=9)
    draw_concentration(np.random.default_rng(1), 1.0, 1.0, 3, 10)
    credible_ball(draws, point_estimate(draws, n_runs=2, random_state=1))
print(len(compiled.buffer))
"""


@pytest.mark.slow
def test_second_process_compiles_nothing(tmp_path):
    environment = os.environ | {"PERMIX_COMPILED": str(tmp_path)}
    counts = [
        int(
            subprocess.run(
                [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, check=True
            ).stdout
        )
        for _ in range(2)
    ]
    assert counts[0] > 0
    assert counts[1] == 0
