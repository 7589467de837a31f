"""What a user may choose about a mixture of angle-based models, checked."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields
from typing import Any, Literal

import numpy as np

from permix.errors import DataError
from permix.runtime.settings import check_run_settings

Inference = Literal["em", "sir", "vi", "quadrature"]
Normalizer = Literal["auto", "exact", "balanced", "vmf"]
INFERENCES = ("em", "sir", "vi", "quadrature")
NORMALIZERS = ("auto", "exact", "balanced", "vmf")
BOUNDS = ("tight", "published")
# Inference that rests on the von Mises–Fisher normaliser, which must be asked for by its name.
BY_VMF = ("vi", "quadrature")
# Most items for the exact normaliser, whose cost more than doubles with every item, and for the balanced one,
# whose cost grows with the cube of their number.
MOST_EXACT_ITEMS, MOST_BALANCED_ITEMS = 20, 2000
# By default the prior mean of κ is ten times the number of items.
VAGUE_RATE = 0.1


@dataclass(frozen=True)
class AngleSettings:
    """What a user may choose; see :class:`permix.AngleMixture` for what each means."""

    n_components: int = 1
    inference: Inference = "em"
    normalizer: Normalizer = "auto"
    bound: Literal["tight", "published"] = "tight"
    prior_shape: float = 1.0
    prior_rate: float | None = None
    prior_direction: Any = None
    prior_strength: float = 0.0
    pseudo_count: float = 1.0
    n_restarts: int = 10
    max_iter: int = 500
    tol: float = 1e-7
    n_draws: int = 1000
    n_burn_in: int = 500
    n_thin: int = 1
    n_chains: int = 2
    n_candidates: int = 10_000
    random_state: Any = None
    n_jobs: int | None = None
    progress: bool | None = None
    store: str | os.PathLike[str] | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, np.generic):
                object.__setattr__(self, field.name, value.item())
        for name, least in (
            ("n_components", 1),
            ("n_restarts", 1),
            ("max_iter", 1),
            ("n_draws", 1),
            ("n_burn_in", 0),
            ("n_thin", 1),
            ("n_chains", 1),
            ("n_candidates", 2),
        ):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise DataError(f"{name}={value!r} must be a whole number, {least} or more")
        for name in ("prior_shape", "prior_rate", "pseudo_count"):
            if name == "prior_rate" and self.prior_rate is None:
                continue
            self._check_number(name)
            if not 0.0 < getattr(self, name) < np.inf:
                raise DataError(f"{name}={getattr(self, name)!r} must be a positive number")
        for name in ("prior_strength", "tol"):
            self._check_number(name)
            if not 0.0 <= getattr(self, name) < np.inf:
                raise DataError(f"{name}={getattr(self, name)!r} must be 0 or more")
        if self.inference not in INFERENCES:
            raise DataError(f"inference={self.inference!r} must be one of {', '.join(map(repr, INFERENCES))}")
        if self.normalizer not in NORMALIZERS:
            raise DataError(
                f"normalizer={self.normalizer!r} must be one of {', '.join(map(repr, NORMALIZERS))}"
            )
        if self.bound not in BOUNDS:
            raise DataError(f"bound={self.bound!r} must be one of {', '.join(map(repr, BOUNDS))}")
        if self.inference in BY_VMF and self.normalizer != "vmf":
            raise DataError(
                f"inference={self.inference!r} rests on the von Mises–Fisher normalizer, an approximation "
                "under which probabilities do not sum to one; ask for it with normalizer='vmf', or use "
                "inference='em' (maximum likelihood) or 'sir' (draws from the posterior), which need no "
                f"approximation; got normalizer={self.normalizer!r}"
            )
        if self.inference == "em":
            given = {
                "prior_shape": self.prior_shape != 1.0,
                "prior_rate": self.prior_rate is not None,
                "prior_direction": self.prior_direction is not None,
                "pseudo_count": self.pseudo_count != 1.0,
            }
            for name, is_given in given.items():
                if is_given:
                    raise DataError(
                        f"inference='em' is maximum likelihood and has no prior; leave {name} out"
                    )
        if self.prior_strength > 1e9:
            raise DataError(
                f"prior_strength={self.prior_strength!r} counts like so many rankings; 1e9 at most"
            )
        if self.prior_strength > 0.0 and self.prior_direction is None:
            raise DataError("prior_strength needs a prior_direction: scores of the items, small = preferred")
        if self.prior_direction is not None and self.prior_strength == 0.0:
            raise DataError(
                "prior_direction has no effect without prior_strength: say by how many rankings it counts"
            )
        check_run_settings(self.n_jobs, self.progress)

    def _check_number(self, name: str) -> None:
        value = getattr(self, name)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise DataError(f"{name}={value!r} must be a number")
        object.__setattr__(self, name, float(value))

    def way_for(
        self, n_items: int, is_full: bool, are_top_lists: bool
    ) -> Literal["climb", "sweeps", "chains", "draws"]:
        """Say how a fit goes: it climbs, runs sweeps of stochastic EM or chains, or draws independently.

        ``are_top_lists``: whether no row leaves the place of an unlisted item open but for "below".
        """
        if self.inference == "em":
            tabled = are_top_lists and self.normalizer_for(n_items) == "exact"
            return "climb" if is_full or tabled else "sweeps"
        if not is_full:
            return "chains"
        if self.inference == "vi":
            return "climb"
        return "chains" if self.n_components > 1 or self.normalizer_for(n_items) != "vmf" else "draws"

    def rate_for(self, n_items: int) -> float:
        """Return the rate of the prior of κ for so many items; concentrations grow with their number."""
        return VAGUE_RATE / n_items if self.prior_rate is None else self.prior_rate

    def normalizer_for(self, n_items: int) -> Literal["vmf", "exact", "balanced"]:
        """Return the normaliser to use for so many items: never "vmf" unless it was asked for."""
        if self.normalizer == "vmf":
            return "vmf"
        if self.normalizer == "exact" and n_items > MOST_EXACT_ITEMS:
            raise DataError(
                f"the exact normalizer sums over all subsets of the items, which for {n_items} are too "
                f"many; it serves up to {MOST_EXACT_ITEMS} items. Use normalizer='balanced'"
            )
        if self.normalizer != "balanced" and n_items <= MOST_EXACT_ITEMS:
            return "exact"
        if n_items > MOST_BALANCED_ITEMS:
            raise DataError(
                f"the balanced normalizer works on tables of {n_items} × {n_items}, too large to be done "
                f"thousands of times; it serves up to {MOST_BALANCED_ITEMS} items. What is left is "
                "normalizer='vmf', an approximation under which probabilities do not sum to one"
            )
        return "balanced"
