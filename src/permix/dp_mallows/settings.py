"""What a user may choose for a Dirichlet-process mixture of generalized Mallows models."""

from __future__ import annotations

import dataclasses
import os
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from permix.errors import DataError
from permix.partitions import DirichletProcess, Gamma, PartitionPrior, PitmanYor
from permix.runtime.settings import check_run_settings

SAMPLERS = ("exact", "beta-gibbs", "slice-gibbs")
ASSIGNMENTS = ("auto", "collapsed", "parallel")
# Priors weaker or stronger than this say nothing that these do not, and strain the integrals.
LEAST, MOST = 1e-4, 1e6


@dataclasses.dataclass(frozen=True)
class DPMallowsSettings:
    """Arguments of :class:`permix.DPMallowsMixture`, which says what each means."""

    sampler: Literal["exact", "beta-gibbs", "slice-gibbs"] = "exact"
    concentration: float | Gamma = 1.0
    prior_strength: float = 1.0
    prior_rate: Any = 1.0
    discount: float = 0.0
    assignments: Literal["auto", "collapsed", "parallel"] = "auto"
    split_merge: bool = True
    permutation: bool = False
    n_initial_clusters: int | None = None
    n_draws: int = 1000
    n_burn_in: int = 500
    n_thin: int = 1
    n_chains: int = 2
    loss: Literal["vi", "binder"] = "vi"
    random_state: Any = None
    n_jobs: int | None = None
    progress: bool | None = None
    store: str | os.PathLike[str] | None = None

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if isinstance(value, np.generic):
                object.__setattr__(self, field.name, value.item())
        for name, value, allowed in (
            ("sampler", self.sampler, SAMPLERS),
            ("assignments", self.assignments, ASSIGNMENTS),
            ("loss", self.loss, ("vi", "binder")),
            ("split_merge", self.split_merge, (True, False)),
            ("permutation", self.permutation, (True, False)),
        ):
            if value not in allowed:
                raise DataError(f"{name} must be one of {', '.join(map(repr, allowed))}, not {value!r}")
        check_run_settings(self.n_jobs, self.progress)
        if self.sampler != "exact" and self.assignments == "parallel":
            raise DataError(
                f"sampler={self.sampler!r} visits one ranking after another, as published; "
                "assignments='parallel' belongs to sampler='exact'"
            )
        if self.sampler != "exact" and self.permutation:
            raise DataError(
                f"sampler={self.sampler!r} makes the published moves alone; permutation=True belongs to "
                "sampler='exact'"
            )
        if not (_positive(self.prior_strength) and LEAST <= self.prior_strength <= MOST):
            raise DataError(
                f"prior_strength must be a number from {LEAST:g} to {MOST:,.0f}, not {self.prior_strength!r}"
            )
        initial = self.n_initial_clusters
        if initial is not None and (isinstance(initial, bool) or not isinstance(initial, int) or initial < 1):
            raise DataError(f"n_initial_clusters must be a positive whole number or None, not {initial!r}")
        self.prior()
        self.rates(0)

    def prior(self) -> PartitionPrior:
        """The prior over partitions that concentration and discount describe."""
        if self.discount == 0.0:
            return DirichletProcess(self.concentration)
        if isinstance(self.concentration, Gamma):
            raise DataError(
                "a Gamma prior of the concentration goes with discount=0; for a Pitman–Yor process give the "
                "concentration as a number"
            )
        return PitmanYor(self.concentration, self.discount)

    def rates(self, n_stages: int) -> npt.NDArray[np.float64]:
        """r_j of the first stages (equation 7); one number stands for all."""
        try:
            rates = np.asarray(self.prior_rate, dtype=float)
        except (TypeError, ValueError):
            rates = np.full(1, np.nan)
        if rates.ndim > 1 or rates.size == 0 or not np.all((rates >= LEAST) & (rates <= MOST)):
            raise DataError(
                f"prior_rate must be a number from {LEAST:g} to {MOST:,.0f} or one per rank, not "
                f"{self.prior_rate!r}"
            )
        if rates.ndim == 0:
            return np.full(n_stages, float(rates))
        if len(rates) < n_stages:
            raise DataError(f"prior_rate has {len(rates)} numbers, but {n_stages} ranks need one each")
        return rates[:n_stages].copy()


def _positive(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < float("inf")
