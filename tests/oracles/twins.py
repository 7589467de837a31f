"""Broken twins: families and priors with one deliberate mistake, which exactness tests must reject.

``TwinFamily`` wraps any family: TEMPERED, it scores data as if they counted for 60 %; CARELESS, it forgets to
leave a datum out of its own cluster. ``GreedySpec`` wraps any prior, weighs a cluster of m members as m + 1
and a new one as if it were the first.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba.extending import overload

from permix.families import contract_jit as contract
from permix.families.base import Family
from permix.kernels.jit import is_instance


class BrokenStats(NamedTuple):
    """Both mistakes in one type, so that sweeps are compiled for it once."""

    inner: Any
    power: float  # 1: none
    careless: bool


def _broken(stats: Any) -> bool:
    return is_instance(stats, BrokenStats)


@overload(contract.add)
def _add(stats, data, i, k):
    if _broken(stats):
        return lambda stats, data, i, k: contract.add(stats.inner, data, i, k)
    return None


@overload(contract.remove)
def _remove(stats, data, i, k):
    if _broken(stats):
        return lambda stats, data, i, k: contract.remove(stats.inner, data, i, k)
    return None


@overload(contract.clear)
def _clear(stats, k):
    if _broken(stats):
        return lambda stats, k: contract.clear(stats.inner, k)
    return None


@overload(contract.copy_cluster)
def _copy_cluster(stats, source, target):
    if _broken(stats):
        return lambda stats, source, target: contract.copy_cluster(stats.inner, source, target)
    return None


@overload(contract.log_marginal)
def _log_marginal(stats, k):
    if _broken(stats):
        return lambda stats, k: contract.log_marginal(stats.inner, k)
    return None


@overload(contract.log_predictive)
def _log_predictive(stats, data, i, n_clusters, out):
    def tempered(stats, data, i, n_clusters, out):
        contract.log_predictive(stats.inner, data, i, n_clusters, out)
        for k in range(n_clusters):
            out[k] *= stats.power

    return tempered if _broken(stats) else None


@overload(contract.log_predictive_above)
def _log_predictive_above(stats, data, i, n_clusters, out):
    if _broken(stats):
        return lambda stats, data, i, n_clusters, out: contract.log_predictive(
            stats, data, i, n_clusters, out
        )
    return None


@overload(contract.log_predictive_without)
def _log_predictive_without(stats, data, i, k):
    def broken(stats, data, i, k):
        if stats.careless:
            out = np.empty(k + 1)
            contract.log_predictive(stats.inner, data, i, k + 1, out)
            return stats.power * out[k]
        return stats.power * contract.log_predictive_without(stats.inner, data, i, k)

    return broken if _broken(stats) else None


class TwinFamily:
    """A family whose statistics make a mistake."""

    def __init__(self, family: Family, power: float = 1.0, careless: bool = False) -> None:
        self.family = family
        self.mistake = power, careless

    def filled_cells(self, data: Any) -> Any:
        return None

    def completed(self, data: Any) -> Any:
        return data

    def statistics(self, capacity: int) -> Any:
        return BrokenStats(self.family.statistics(capacity), *self.mistake)


# Arguments of a TwinFamily.
TEMPERED = {"power": 0.6}
CARELESS = {"careless": True}


class GreedySpec:
    """Whichever prior, with a cluster of m members weighed as m + 1 and a new one as the first."""

    def __init__(self, spec: Any) -> None:
        self.spec = spec

    def tables(self, n: int) -> Any:
        tables = self.spec.tables(n + 1)
        opening = np.full(n + 1, self.spec.tables(n).opening[0])
        return tables._replace(joining=np.append(0.0, tables.joining[2:]), opening=opening)

    def most_clusters(self, n: int) -> int:
        return self.spec.most_clusters(n)
