"""Pictures of fitted models. Needs matplotlib: ``pip install "permix[plot]"``."""

from __future__ import annotations

from permix.plots.mixture import clusters, n_clusters, overview, similarity

__all__ = ["clusters", "n_clusters", "overview", "similarity"]
