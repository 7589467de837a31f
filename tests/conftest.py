"""Shared by all tests: property tests without surprises, and the real-data folder."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import pytest
from hypothesis import settings

# Tests that run at once share what they compile; they need no further processes for it.
os.environ["PERMIX_COMPILE_ALONE"] = "1"
# The first call of compiled code compiles, so no deadline; the same examples in every run.
settings.register_profile("permix", deadline=None, derandomize=True)
settings.load_profile("permix")

# Python's search for garbage walks over all tests again and again while they are collected: a third of that.
gc.disable()


def pytest_collection_finish() -> None:
    """Look for garbage again, and seldom: not among what was there before the first test."""
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()


@pytest.fixture
def data_folder() -> Path:
    """Folder of real data; the test is skipped where PERMIX_DATA does not name one."""
    folder = os.environ.get("PERMIX_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("PERMIX_DATA does not name a folder")
    return Path(folder)
