"""What a user may choose for a co-clustering and for an ensemble of co-clusterings."""

from __future__ import annotations

import dataclasses
import math
import os
from typing import Any, Literal

import numpy as np

from permix.cocluster.cells.families import CellFamily, cell_family
from permix.errors import DataError
from permix.partitions import DirichletProcess, FiniteDirichlet, Gamma, PartitionPrior
from permix.runtime.settings import check_run_settings

Concentration = float | Gamma | tuple[float | Gamma, float | Gamma]
# A Mondrian of budget λ has (1 + λ)² blocks on average: more is no summary of any matrix.
LARGEST_BUDGET = 50.0
# What each prior does not have: name -> what it belongs to.
FOREIGN = {
    "dp": {
        "budget": "prior='mondrian'",
        "n_row_clusters": "prior='dirichlet'; with 'dp' the data say how many clusters there are",
        "n_column_clusters": "prior='dirichlet'; with 'dp' the data say how many clusters there are",
        "membership": "prior='dirichlet'",
    },
    "dirichlet": {"budget": "prior='mondrian'"},
    "mondrian": {
        "concentration": "prior='dp' and 'dirichlet'; for more or fewer blocks change the budget",
        "n_row_clusters": "prior='dirichlet'; for more or fewer blocks change the budget",
        "n_column_clusters": "prior='dirichlet'; for more or fewer blocks change the budget",
        "membership": "prior='dirichlet'",
    },
}


@dataclasses.dataclass(frozen=True)
class ChainSettings:
    """How long chains are, and where they run; all samplers of blocks have these."""

    n_draws: int = 1000
    n_burn_in: int = 500
    n_thin: int = 1
    n_chains: int = 2
    loss: Literal["vi", "binder"] = "vi"
    random_state: Any = None
    n_jobs: int | None = None
    progress: bool | None = None
    store: str | os.PathLike[str] | None = None


@dataclasses.dataclass(frozen=True)
class BlockSettings(ChainSettings):
    """What co-clusterings and ensembles of them share."""

    prior: str = "dp"
    family: CellFamily | str = "categorical"
    concentration: Concentration = 1.0
    pseudo_count: float = 1.0
    budget: float = 1.0

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if isinstance(value, np.generic | np.ndarray):
                object.__setattr__(self, field.name, value.tolist())
        _check_choice("loss", self.loss, ("vi", "binder"))
        check_run_settings(self.n_jobs, self.progress)
        for name, home in FOREIGN[self.prior].items():
            default = DEFAULTS.get(name)
            given = getattr(self, name, default)
            if given is not None and given != default:
                raise DataError(
                    f"{name}={given!r} would change nothing with prior={self.prior!r}: {name} "
                    f"belongs to {home}"
                )
        self.cell_family()
        if not is_number(self.budget) or not 0.0 < self.budget < math.inf:
            raise DataError(f"budget must be a number above 0, not {self.budget!r}")
        if self.budget > LARGEST_BUDGET:
            raise DataError(
                f"budget={self.budget!r} expects {(1.0 + self.budget) ** 2:,.0f} blocks before it sees data, "
                f"(1 + budget)²; give at most {LARGEST_BUDGET:g}"
            )
        if self.prior != "mondrian":
            self.line_priors()

    def cell_family(self) -> CellFamily:
        """Return what cells of a block are made of, not resolved yet."""
        if not is_number(self.pseudo_count) or not 0.0 < self.pseudo_count < math.inf:
            raise DataError(f"pseudo_count must be a number above 0, not {self.pseudo_count!r}")
        if not isinstance(self.family, CellFamily | str):
            raise DataError(
                f"family must be a name such as 'categorical' or a cell family such as "
                f"permix.cocluster.cells.families.GaussianCells(), not {self.family!r}"
            )
        if isinstance(self.family, CellFamily) and self.pseudo_count not in (1.0, self.family.pseudo_count):
            raise DataError(
                f"pseudo_count={self.pseudo_count!r} would change nothing: the family given has its own, "
                f"{self.family.pseudo_count!r}"
            )
        return cell_family(self.family, self.pseudo_count)

    def concentrations(self) -> tuple[float | Gamma, float | Gamma]:
        """Return the concentration of rows and that of columns."""
        given = self.concentration
        pair = given if isinstance(given, tuple | list) else (given, given)
        if len(pair) != 2:
            raise DataError(
                f"concentration must be one number or Gamma, or a pair (rows, columns), not {given!r}"
            )
        for value in pair:
            if not isinstance(value, Gamma) and not (is_number(value) and 0.0 < value < math.inf):
                raise DataError(
                    f"concentration must be a number above 0, or permix.Gamma(...) to learn it, not {value!r}"
                )
        rows, columns = pair
        return rows, columns

    def line_priors(self) -> tuple[PartitionPrior, PartitionPrior]:
        """Return the priors over clusters of rows and of columns of a grid."""
        rows, columns = self.concentrations()
        return DirichletProcess(rows), DirichletProcess(columns)


@dataclasses.dataclass(frozen=True)
class CoClusterSettings(BlockSettings):
    """Arguments of :class:`permix.CoClustering`, which says what each means."""

    n_row_clusters: int | None = None
    n_column_clusters: int | None = None
    membership: Literal["hard", "mixed"] = "hard"

    def __post_init__(self) -> None:
        _check_choice("prior", self.prior, tuple(FOREIGN))
        _check_choice("membership", self.membership, ("hard", "mixed"))
        super().__post_init__()

    @property
    def is_mixed(self) -> bool:
        """Whether every cell, and not every row, chooses its clusters."""
        return self.membership == "mixed"

    def line_priors(self) -> tuple[PartitionPrior, PartitionPrior]:
        """Return the priors over clusters of rows and of columns of a grid."""
        if self.prior == "dp":
            return super().line_priors()
        priors = []
        for what, concentration in zip(("row", "column"), self.concentrations(), strict=True):
            n = getattr(self, f"n_{what}_clusters")
            if isinstance(n, bool) or not isinstance(n, int | np.integer) or not 1 <= n < 2**15:
                raise DataError(
                    f"prior='dirichlet' needs n_{what}_clusters, a whole number from 1 to 32,767, not {n!r}; "
                    "with prior='dp' the data say how many clusters there are"
                )
            if isinstance(concentration, Gamma):
                raise DataError(
                    "a Gamma prior of the concentration goes with prior='dp'; with 'dirichlet' give a number"
                )
            priors.append(FiniteDirichlet(int(n), float(concentration)))
        return priors[0], priors[1]


@dataclasses.dataclass(frozen=True)
class EnsembleSettings(BlockSettings):
    """Arguments of :class:`permix.CoClusteringEnsemble`, which says what each means."""

    n_base: int = 5
    base: CoClusterSettings | None = None
    label_pseudo_count: float = 1.0
    label_cells: Literal["filled", "all"] = "filled"

    def __post_init__(self) -> None:
        _check_choice("prior", self.prior, ("dp", "mondrian"))
        _check_choice("label_cells", self.label_cells, ("filled", "all"))
        if self.prior == "dp" and self.label_cells != "filled":
            raise DataError("label_cells goes with prior='mondrian': with 'dp' rows and columns have labels")
        super().__post_init__()
        if isinstance(self.n_base, bool) or not isinstance(self.n_base, int) or self.n_base < 2:
            raise DataError(f"n_base must be a whole number of at least 2, not {self.n_base!r}")
        if not is_number(self.label_pseudo_count) or not 0.0 < self.label_pseudo_count < math.inf:
            raise DataError(f"label_pseudo_count must be a number above 0, not {self.label_pseudo_count!r}")
        for name, why in OF_ENSEMBLES.items():
            given = getattr(self.base, name, DEFAULTS[name])
            if given is not DEFAULTS[name] and given != DEFAULTS[name]:
                raise DataError(f"base: {name}={given!r} would change nothing: {why}")

    def base_settings(self, store: str | None, random_state: Any) -> CoClusterSettings:
        """Return what the base co-clusterings are: those asked for, or like the consensus."""
        base = self.base
        if base is None:
            shared = {field.name: getattr(self, field.name) for field in dataclasses.fields(BlockSettings)}
            base = CoClusterSettings(**shared)
        return dataclasses.replace(
            base,
            n_chains=self.n_base,
            random_state=random_state,
            n_jobs=self.n_jobs,
            progress=self.progress,
            store=store,
        )


DEFAULTS = {field.name: field.default for field in dataclasses.fields(CoClusterSettings)}
ENSEMBLE_DEFAULTS = {field.name: field.default for field in dataclasses.fields(EnsembleSettings)}
# What a base does not decide: name -> why.
OF_ENSEMBLES = {
    "n_chains": "an ensemble runs n_base chains",
    "loss": "a base is a draw, not a point estimate",
    **{name: f"{name} of the ensemble counts" for name in ("random_state", "n_jobs", "progress", "store")},
}


def is_number(value: object) -> bool:
    """Say whether this is a number, which truth values are not."""
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def _check_choice(name: str, value: object, allowed: tuple[object, ...]) -> None:
    # Compared one by one: a list or an array is neither in the tuple nor an error of its own.
    if not any(type(value) is type(choice) and value == choice for choice in allowed):
        raise DataError(f"{name} must be one of {', '.join(map(repr, allowed))}, not {value!r}")
