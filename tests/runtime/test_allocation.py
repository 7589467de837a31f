"""Workers of Dask keep the memory of arrays that come and go."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has these settings")

ARRAYS, PAGES = 50, 256  # of one megabyte, which nobody would ask the kernel for by itself

FAULTS = f"""
import resource
import numpy as np
from permix.runtime.allocation import keep_freed_memory

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

called_for = keep_freed_memory() if {{keep}} else None
for _ in range(3):
    np.ones({PAGES} * 512)
before = faults()
for _ in range({ARRAYS}):
    np.ones({PAGES} * 512)
print(called_for, faults() - before)
"""


def faults_of(keep: bool, **settings: str) -> tuple[str, int]:
    """Make arrays, one after another, in a process with these settings."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
    ran = subprocess.run(
        [sys.executable, "-c", FAULTS.format(keep=keep)],
        capture_output=True,
        text=True,
        check=True,
        env={**kept, **settings},
    )
    called_for, faults = ran.stdout.split()
    return called_for, int(faults)


def test_arrays_are_taken_from_memory_that_is_there() -> None:
    as_dask_starts_workers = {"MALLOC_TRIM_THRESHOLD_": "65536"}
    assert faults_of(False, **as_dask_starts_workers)[1] >= ARRAYS * (PAGES - 1)  # every page, every time
    called_for, faults = faults_of(True, **as_dask_starts_workers)
    assert called_for == "True"
    assert faults < 2 * PAGES


def test_what_others_have_set_stays() -> None:
    assert faults_of(True)[0] == "False"  # glibc learns it by itself
    own = {"MALLOC_TRIM_THRESHOLD_": "65536", "MALLOC_MMAP_THRESHOLD_": "131072"}
    called_for, faults = faults_of(True, **own)
    assert called_for == "False"
    assert faults >= ARRAYS * (PAGES - 1)
