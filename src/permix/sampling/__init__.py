"""Chains: the loop, the store that survives being killed, and what is shown of them."""

from __future__ import annotations

from permix.sampling.chain import REFRESH
from permix.sampling.draws import Draws
from permix.sampling.loop import run_chains
from permix.sampling.protocol import ChainState

__all__ = ["REFRESH", "ChainState", "Draws", "run_chains"]
