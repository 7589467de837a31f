"""What people bring: rankings and preferences, with their names, counts and files."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from permix.data.preferences import Preferences
from permix.data.rankings import Rankings

if TYPE_CHECKING:
    from permix.data.io.preflib import read_preflib as read_preflib
    from permix.data.io.preflib import write_preflib as write_preflib
    from permix.data.io.read_write import read as read
    from permix.data.io.read_write import write as write
    from permix.data.io.tables import from_frame as from_frame
    from permix.data.io.tables import read_table as read_table
    from permix.data.io.tables import write_table as write_table

# Readers and writers load on first use.
_MODULES = {
    "preflib": ("read_preflib", "write_preflib"),
    "read_write": ("read", "write"),
    "tables": ("from_frame", "read_table", "write_table"),
}
_HOME = {name: module for module, names in _MODULES.items() for name in names}

__all__ = ["Preferences", "Rankings", *sorted(_HOME)]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'permix.data' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"permix.data.io.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
