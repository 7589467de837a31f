"""Pictures of fitted models. Needs matplotlib: ``pip install "permix[plot]"``."""

from __future__ import annotations

from permix.plots.angle import consensus_scores, roc
from permix.plots.blocks import blocks, mondrian
from permix.plots.list_mixture import kinds
from permix.plots.mixture import clusters, n_clusters, overview, similarity, traces
from permix.plots.rankings import component_choice, components, em_history

__all__ = [
    "blocks",
    "clusters",
    "component_choice",
    "components",
    "consensus_scores",
    "em_history",
    "kinds",
    "mondrian",
    "n_clusters",
    "overview",
    "roc",
    "similarity",
    "traces",
]
