"""What all readers of saved models check with."""

from __future__ import annotations

from typing import Any

from permix.errors import DataError


def require(condition: bool, what: str) -> None:
    """Refuse an archive in which something is not what a fit writes."""
    if not condition:
        raise DataError(f"{what}: not what a fit writes")


def is_whole(value: Any) -> bool:
    """Say whether a JSON value is a whole number."""
    return isinstance(value, int) and not isinstance(value, bool)
