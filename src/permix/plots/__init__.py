"""Pictures of fitted models. Needs matplotlib: ``pip install "permix[plot]"``."""

from __future__ import annotations

import importlib
from typing import Any

# Where each picture is drawn: in the folder of its model.
_HOME = {
    "blocks": "permix.cocluster.pictures",
    "clusters": "permix.dp_mixture.pictures",
    "component_choice": "permix.mallows.pictures",
    "components": "permix.mallows.pictures",
    "consensus_scores": "permix.angle.pictures",
    "em_history": "permix.mallows.pictures",
    "kinds": "permix.dp_mallows.pictures",
    "mondrian": "permix.cocluster.pictures",
    "n_clusters": "permix.dp_mixture.pictures",
    "overview": "permix.dp_mixture.pictures",
    "roc": "permix.angle.pictures",
    "similarity": "permix.dp_mixture.pictures",
    "traces": "permix.dp_mixture.pictures",
}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'permix.plots' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(_HOME)
