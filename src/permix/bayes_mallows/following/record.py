"""What happened when new data came in, as fits keep it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from permix.estimators.fields import require


@dataclass(frozen=True)
class Followed:
    """One update."""

    new_agents: int
    changed_agents: int
    n_particles: int  # of each chain
    n_steps: tuple[int, ...]  # of each chain: how often particles were drawn anew
    effective_size: tuple[float, ...]  # the smallest of each chain
    log_evidence: tuple[float, ...]  # of each chain: ln P(new data | data before)

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {name: list(v) if isinstance(v, tuple) else v for name, v in asdict(self).items()}

    @classmethod
    def from_json(cls, value: Any, n_chains: int) -> Followed:
        """Return what :meth:`to_json` gave; refused where it is nothing of the kind."""
        whole = ("new_agents", "changed_agents", "n_particles")
        of_chains = {"n_steps": int, "effective_size": float, "log_evidence": float}
        require(isinstance(value, dict) and set(value) == {*whole, *of_chains}, "updates")
        require(all(type(value[name]) is int and value[name] >= 0 for name in whole), "updates")
        for name, kind in of_chains.items():
            each = value[name]
            require(isinstance(each, list) and len(each) == n_chains, "updates")
            require(all(type(number) is kind for number in each), "updates")
        return cls(*(value[name] for name in whole), *(tuple(value[name]) for name in of_chains))
