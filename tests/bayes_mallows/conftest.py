"""The command line, called in this process as a shell would call it."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from tests.cli.conftest import run as called


class Done(NamedTuple):
    exit_code: int
    stdout: str
    stderr: str


@pytest.fixture
def run(called: Any) -> Any:
    return lambda *words: Done(*called(*words))


__all__ = ["called", "run"]
