"""What a user may choose about a mixture of Mallows models, checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from permix.errors import DataError
from permix.runtime.settings import check_run_settings


@dataclass(frozen=True)
class MallowsSettings:
    """What a user may choose; see :class:`permix.MallowsMixture` for what each means."""

    n_components: int = 1
    n_restarts: int = 10
    max_iter: int = 200
    tol: float = 1e-6
    n_particles: int = 8
    center_search: Literal["local", "exact"] = "local"
    min_dispersion: float = 1e-3
    random_state: Any = None
    n_jobs: int | None = None
    progress: bool | None = None

    def __post_init__(self) -> None:
        for name, least in (("n_components", 1), ("n_restarts", 1), ("max_iter", 1), ("n_particles", 2)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
                raise DataError(f"{name}={value!r} must be a whole number, {least} or more")
            object.__setattr__(self, name, int(value))
        for name in ("tol", "min_dispersion"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
                raise DataError(f"{name}={value!r} must be a number")
            object.__setattr__(self, name, float(value))
        if not self.tol >= 0.0:
            raise DataError(f"tol={self.tol!r} must be 0 or more")
        if not 0.0 < self.min_dispersion < 1.0:
            raise DataError(f"min_dispersion={self.min_dispersion!r} must lie between 0 and 1")
        if self.center_search not in ("local", "exact"):
            raise DataError(f"center_search must be 'local' or 'exact', got {self.center_search!r}")
        check_run_settings(self.n_jobs, self.progress)
