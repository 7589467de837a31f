"""Cases of a test of which some are tried in every run, and the others in the slow one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def first_in_every_run(cases: Iterable[Any], n: int = 1) -> list[Any]:
    """Return cases for ``parametrize``: the first ``n`` as they are, the others marked slow."""
    cases = list(cases)
    slow = [
        pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.slow)
        for case in cases[n:]
    ]
    return cases[:n] + slow
