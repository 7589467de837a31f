"""Examples in these pages run in an empty folder, without real data."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PERMIX_DATA", raising=False)
    monkeypatch.setenv("PERMIX_CACHE", str(tmp_path / "cache"))
