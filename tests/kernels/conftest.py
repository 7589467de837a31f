"""Shared by tests of compilation."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.forks import Forks


@pytest.fixture(scope="session")
def forks() -> Iterator[Forks]:
    """Runs programs in processes of their own."""
    with Forks() as forks:
        yield forks
