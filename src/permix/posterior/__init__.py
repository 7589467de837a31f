"""What draws say: ArviZ objects, summaries, diagnostics."""

from __future__ import annotations

from permix.posterior.diagnostics import summary, warn_if_chains_disagree
from permix.posterior.tree import to_datatree

__all__ = ["summary", "to_datatree", "warn_if_chains_disagree"]
