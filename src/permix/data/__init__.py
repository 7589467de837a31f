"""What people bring: rankings and preferences, with their names, counts and files."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from permix.data.preferences import Preferences
from permix.data.rankings import Rankings

if TYPE_CHECKING:
    from permix.data.files_io import read as read
    from permix.data.files_io import write as write
    from permix.data.preflib import read_preflib as read_preflib
    from permix.data.preflib import write_preflib as write_preflib
    from permix.data.tables import from_frame as from_frame
    from permix.data.tables import read_table as read_table
    from permix.data.tables import write_table as write_table

# Readers and writers load on first use.
_HOME = {
    "read": "permix.data.files_io",
    "write": "permix.data.files_io",
    "read_preflib": "permix.data.preflib",
    "write_preflib": "permix.data.preflib",
    "from_frame": "permix.data.tables",
    "read_table": "permix.data.tables",
    "write_table": "permix.data.tables",
}

__all__ = [
    "Preferences",
    "Rankings",
    "from_frame",
    "read",
    "read_preflib",
    "read_table",
    "write",
    "write_preflib",
    "write_table",
]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'permix.data' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
