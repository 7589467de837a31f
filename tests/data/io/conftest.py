"""Shared by tests of files: text is written to a file and read."""

from __future__ import annotations

import pytest

import permix


@pytest.fixture
def read(tmp_path):
    def of(text, name="x.csv", **options):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return permix.read(path, **options)

    return of
