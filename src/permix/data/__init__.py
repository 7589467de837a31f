"""What people bring: rankings and preferences, with their names, counts and files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from permix.data.preferences import Preferences
from permix.data.rankings import Rankings
from permix.runtime.lazy import exports

if TYPE_CHECKING:
    from permix.data.ballots import Ballots as Ballots
    from permix.data.cleaning import clean as clean
    from permix.data.io.ballots.formats import read_ballots as read_ballots
    from permix.data.io.ballots.votekit import from_votekit as from_votekit
    from permix.data.io.ballots.votekit import to_votekit as to_votekit
    from permix.data.io.preflib import read_preflib as read_preflib
    from permix.data.io.preflib import write_preflib as write_preflib
    from permix.data.io.read_write import read as read
    from permix.data.io.read_write import write as write
    from permix.data.io.tables import from_frame as from_frame
    from permix.data.io.tables import read_table as read_table
    from permix.data.io.tables import write_table as write_table
    from permix.data.shards.matrices import ShardedCells as ShardedCells
    from permix.data.shards.matrices import read_sharded_cells as read_sharded_cells
    from permix.data.shards.sharded import Sharded as Sharded
    from permix.data.shards.sharded import read_sharded as read_sharded

# Readers and writers load on first use.
_MODULES = {
    "ballots": ("Ballots",),
    "cleaning": ("clean",),
    "io.ballots.formats": ("read_ballots",),
    "io.ballots.votekit": ("from_votekit", "to_votekit"),
    "io.preflib": ("read_preflib", "write_preflib"),
    "io.read_write": ("read", "write"),
    "io.tables": ("from_frame", "read_table", "write_table"),
    "shards.matrices": ("ShardedCells", "read_sharded_cells"),
    "shards.sharded": ("Sharded", "read_sharded"),
}
__all__ = ["Preferences", "Rankings", *sorted(name for names in _MODULES.values() for name in names)]
__getattr__, __dir__ = exports(__name__, _MODULES)
