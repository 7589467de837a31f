"""What a user may choose about a co-clustering and about an ensemble of co-clusterings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Self

from permix.cocluster.cells.registry import CELL_FAMILIES
from permix.errors import Argument, DataError
from permix.estimators.checks import Check, Choice, Concentration, Real, Whole
from permix.estimators.parameters import LOSS, ChainParameters, declare

if TYPE_CHECKING:
    from permix.cocluster.cells.families import CellFamily
    from permix.partitions import Gamma, PartitionPrior

    Concentrations = float | Gamma | tuple[float | Gamma, float | Gamma]

# A Mondrian of budget λ has (1 + λ)² blocks on average: more is no summary of any matrix.
LARGEST_BUDGET = 50.0
# That of :class:`permix.MixtureOfFiniteMixtures`.
LARGEST_RATE = 10_000.0
# Labels of given numbers of groups are kept in 16 bits.
MOST_GROUPS = 2**15 - 1
# Which priors each parameter belongs to, where that is not all of them.
BELONGS_TO = {
    "concentration": ("dp", "mfm", "dirichlet"),
    "rate": ("mfm",),
    "budget": ("mondrian",),
    "n_row_clusters": ("dirichlet",),
    "n_column_clusters": ("dirichlet",),
    "membership": ("dirichlet",),
    "label_cells": ("mondrian",),
}
# What a base does not decide: name -> why.
OF_ENSEMBLES = {
    "n_chains": "an ensemble runs n_base chains",
    "loss": "a base is a draw, not a point estimate",
    **{name: f"{name} of the ensemble counts" for name in ("random_state", "n_jobs", "progress", "store")},
}


class FamilyCheck(Choice):
    """The name of a cell family, or a family with settings of its own."""

    def __init__(self) -> None:
        super().__init__("auto", *CELL_FAMILIES)
        self.option = super().must_be()

    def convert(self, value: Any) -> Any:
        from permix.cocluster.cells.families import CellFamily

        return value if isinstance(value, CellFamily) else super().convert(value)

    def must_be(self) -> str:
        example = "permix.cocluster.cells.families.GaussianCells()"
        return f"{super().must_be()}, or a cell family such as {example}"

    def to_json(self, value: Any) -> Any:
        return value if isinstance(value, str) else value.describe()

    def from_json(self, value: Any) -> Any:
        from permix.cocluster.cells.families import family_as_described

        return value if isinstance(value, str) else family_as_described(value)


class ConcentrationCheck(Concentration):
    """A positive number or a Gamma prior, or one for rows and one for columns."""

    noun = "float, Gamma, or a pair of these"
    option = "a positive number, gamma(SHAPE,RATE) to learn it, or two of these, ROWS:COLUMNS"

    def convert(self, value: Any) -> Any:
        if hasattr(value, "tolist"):
            value = value.tolist()
        if isinstance(value, tuple | list):
            pair = tuple(map(self._one, value))
            return pair if len(pair) == 2 and NotImplemented not in pair else NotImplemented
        return self._one(value)

    def _one(self, value: Any) -> Any:
        found = super().convert(value)
        return NotImplemented if isinstance(found, float) and found <= 0.0 else found

    def must_be(self) -> str:
        return "a positive number, permix.Gamma(...) to learn it, or a pair of these for rows and columns"

    def to_json(self, value: Any) -> Any:
        return list(map(super().to_json, value)) if isinstance(value, tuple) else super().to_json(value)

    def from_json(self, value: Any) -> Any:
        return list(map(super().from_json, value)) if isinstance(value, list) else super().from_json(value)

    def parse(self, text: str) -> Any:
        """Read one for both, or ROWS:COLUMNS.

        Examples
        --------
        >>> ConcentrationCheck().parse("20"), ConcentrationCheck().parse("20:gamma(1,1)")
        (20.0, (20.0, Gamma(shape=1.0, rate=1.0)))
        """
        parts = list(map(super().parse, text.split(":")))
        if len(parts) > 2:
            why = " must be one or two concentrations, ROWS:COLUMNS"
            raise DataError(Argument("concentration", text), why)
        return parts[0] if len(parts) == 1 else tuple(parts)


class PseudoCountCheck(Concentration):
    """A positive number, or a Gamma prior that learns it."""

    noun = "float or Gamma"
    option = "a positive number, or gamma(SHAPE,RATE) to learn it"

    def convert(self, value: Any) -> Any:
        found = super().convert(value)
        return NotImplemented if isinstance(found, float) and found <= 0.0 else found

    def must_be(self) -> str:
        return "a positive number, or permix.Gamma(...) to learn it"

    def to_json(self, value: Any) -> Any:
        return None if value is None else super().to_json(value)


class BaseCheck(Check):
    """How base co-clusterings are made: an estimator that is not fitted, or its parameters."""

    special, noun = (None,), "CoClustering"

    def convert(self, value: Any) -> Any:
        if isinstance(value, CoClusterParameters):
            return value
        if getattr(value, "_parameters_class", None) is CoClusterParameters:
            return value._settings()
        return NotImplemented

    def must_be(self) -> str:
        made = "co-clusterings that are made already go to fit(X, bases=[...])"
        return f"a CoClustering that says how to make bases ({made})"

    def to_json(self, value: Any) -> Any:
        return None if value is None else value.to_json()

    def from_json(self, value: Any) -> Any:
        return None if value is None else CoClusterParameters.from_json(value)


class BlockParameters(ChainParameters):
    """Parameters that co-clusterings and ensembles of them share."""

    prior: str

    family: CellFamily | str = declare(
        "auto",
        FamilyCheck(),
        "What cells are: a few levels such as ratings, 0 and 1, counts, or numbers. auto: numbers "
        "(gaussian) where cells are not all whole numbers and have more than 50 different values, in a small "
        "matrix more than half as many as there are cells; else levels. Of a categorical matrix "
        "every different value is a level; levels in an order of yours, or some that no cell has, are given "
        'as ``permix.cocluster.cells.families.CategoricalCells(levels=["low", "middle", "high"])``.',
        positional=True,
    )
    concentration: Concentrations = declare(
        1.0,
        ConcentrationCheck(),
        "dp, mfm, dirichlet: the larger, the more groups; a pair is for rows and for columns, on the command "
        "line ROWS:COLUMNS, and with dp a Gamma prior, such as gamma(1,1), learns it. In Python that is "
        '``permix.Gamma(1.0, 1.0)``. With "mfm" and "dirichlet" it is the parameter of every group.',
    )
    rate: float = declare(
        1.0,
        Real(above=0.0, most=LARGEST_RATE),
        "mfm: mean of the number of possible groups beyond the first, of rows and of columns.",
    )
    pseudo_count: float = declare(
        1.0, Real(above=0.0), "How many cells the prior of a block is worth: at every level, or altogether."
    )
    budget: float = declare(
        1.0,
        Real(above=0.0, most=LARGEST_BUDGET),
        "mondrian: the larger, the more cuts; (1 + budget)² blocks are expected before there are data.",
    )
    loss: Literal["vi", "binder"] = LOSS

    def check_together(self) -> None:
        """Refuse parameters that the prior does not have, and a second pseudo-count."""
        for name, (owner, *others) in BELONGS_TO.items():
            if name in self.declared and self.prior not in (owner, *others) and not self.is_default(name):
                said: list[str | Argument] = [" would change nothing with ", Argument("prior", self.prior)]
                said += ["; it belongs to ", Argument("prior", owner)]
                for other in others:
                    said += [" or ", Argument("prior", other)]
                raise DataError(Argument(name, getattr(self, name)), *said)
        family = self.family
        given = self.pseudo_count
        if (
            not isinstance(family, str)
            and isinstance(given, float)
            and given not in (1.0, family.pseudo_count)
        ):
            why = f" would change nothing: the family given has its own, {family.pseudo_count!r}"
            raise DataError(Argument("pseudo_count", self.pseudo_count), why)
        if self.prior != "dp" and not all(isinstance(value, float) for value in self.concentrations()):
            why = "a Gamma prior of the concentration goes with "
            raise DataError(why, Argument("prior", "dp"), f"; with {self.prior!r} give a number")

    def cell_family(self, values: Any) -> CellFamily:
        """Return what cells with these values are made of, not resolved yet."""
        from permix.cocluster.cells.choose_family import family_for
        from permix.cocluster.cells.families import cell_family

        given = self.pseudo_count
        family = family_for(values) if self.family == "auto" else self.family
        return cell_family(family, given if isinstance(given, float) else 1.0)

    def with_family(self, family: CellFamily) -> Self:
        """Return the same parameters with a family that has levels of its own."""
        return self.replaced(family=family)

    def concentrations(self) -> tuple[float | Gamma, float | Gamma]:
        """Return the concentration of rows and that of columns."""
        given = self.concentration
        return given if isinstance(given, tuple) else (given, given)

    def line_priors(self) -> tuple[PartitionPrior, PartitionPrior]:
        """Return the priors over groups of rows and of columns of a grid."""
        from permix.partitions import DirichletProcess, MixtureOfFiniteMixtures

        given: Any = self.concentrations()
        if self.prior == "mfm":
            return MixtureOfFiniteMixtures(self.rate, given[0]), MixtureOfFiniteMixtures(self.rate, given[1])
        return DirichletProcess(given[0]), DirichletProcess(given[1])

    def describe_prior(self) -> Any:
        """Return what identifies the prior, in values that JSON holds."""
        if self.prior == "mondrian":
            return {"budget": self.budget}
        return [side.describe() for side in self.line_priors()]


class CoClusterParameters(BlockParameters):
    """Parameters of :class:`permix.CoClustering`."""

    pseudo_count: float | Gamma | None = declare(  # type: ignore[assignment]
        None,
        PseudoCountCheck(special=(None,)),
        "How many cells the prior of a block is worth: at every level, or altogether. By default it is "
        "learned under a Gamma(1, 1) prior, unless the family is given with its own; a Gamma of yours "
        "learns it, too.",
    )

    prior: Literal["mfm", "dp", "dirichlet", "mondrian"] = declare(
        "mfm",
        Choice("mfm", "dp", "dirichlet", "mondrian"),
        "mfm: a grid of as many groups of rows and of columns as the data ask for, whose number does not "
        "grow with the matrix (mixtures of finite mixtures); dp: the same under Dirichlet processes (DPCC); "
        "dirichlet: of as many as you say (LDCC); mondrian: nested cuts, finer in some places than in "
        "others (MPCC).",
        positional=True,
    )
    n_row_clusters: int | None = declare(
        None,
        Whole(1, MOST_GROUPS, special=(None,)),
        "dirichlet: number of groups of rows.",
        flag="--row-groups",
    )
    n_column_clusters: int | None = declare(
        None,
        Whole(1, MOST_GROUPS, special=(None,)),
        "dirichlet: number of groups of columns.",
        flag="--column-groups",
    )
    membership: Literal["hard", "mixed"] = declare(
        "hard",
        Choice("hard", "mixed"),
        "dirichlet: every row and every column has one group (hard), or each of their cells draws one "
        "(mixed), which is LDCC as published.",
    )

    def check_together(self) -> None:
        """A finite grid needs its numbers of groups."""
        super().check_together()
        if self.prior != "dirichlet":
            return
        mfm = Argument("prior", "mfm")
        for name in ("n_row_clusters", "n_column_clusters"):
            if getattr(self, name) is None:
                needs = (Argument("prior", "dirichlet"), " needs ", Argument(name), "; with ", mfm)
                raise DataError(*needs, " the data say how many groups there are")

    def learned_pseudo_count(self) -> Gamma | None:
        """Return the prior of the pseudo-count of cells, where that is learned."""
        from permix.partitions import Gamma

        given = self.pseudo_count
        if given is None and isinstance(self.family, str):
            return Gamma()
        return given if isinstance(given, Gamma) else None

    def with_family(self, family: CellFamily) -> Self:
        return self.replaced(family=family, pseudo_count=self.learned_pseudo_count() or self.pseudo_count)

    def described_pseudo_count(self) -> Any:
        """Return what identifies it, in values that JSON holds."""
        learned = self.learned_pseudo_count()
        return None if learned is None else learned.describe()

    @property
    def is_mixed(self) -> bool:
        """Whether every cell, and not every row, chooses its groups."""
        return self.membership == "mixed"

    def line_priors(self) -> tuple[PartitionPrior, PartitionPrior]:
        """Return the priors over groups of rows and of columns of a grid."""
        if self.prior != "dirichlet":
            return super().line_priors()
        from permix.partitions import FiniteDirichlet

        parts: list[Any] = [(self.n_row_clusters, self.n_column_clusters), self.concentrations()]
        rows, columns = map(FiniteDirichlet, *parts)
        return rows, columns


class EnsembleParameters(BlockParameters):
    """Parameters of :class:`permix.CoClusteringEnsemble`."""

    prior: Literal["mfm", "dp", "mondrian"] = declare(
        "mfm",
        Choice("mfm", "dp", "mondrian"),
        "Of the consensus: a grid of groups of rows by groups of columns, under mixtures of finite mixtures "
        "or Dirichlet processes (DPCCE), or nested cuts (MPCCE).",
        positional=True,
    )
    n_base: int = declare(
        5,
        Whole(2),
        "Fit so many co-clusterings and the consensus of their last draws. Where base co-clusterings are "
        "given, none are made.",
        flag="--ensemble",
    )
    base: Any = declare(
        None,
        BaseCheck(),
        "How base co-clusterings are made; by default with the prior and the parameters of the ensemble. "
        "Number and seed of chains, ``loss``, ``n_jobs``, ``progress`` and ``store`` are those of the "
        "ensemble.",
        flag="",
    )
    label_pseudo_count: float = declare(
        1.0,
        Real(above=0.0),
        "ensemble: how many labels of each base the prior of a consensus group or block is worth. "
        'With "mfm" and "dp" these are all labels of a base together, divided among its T_m labels '
        '(equations 4.7 to 4.10, corrected), with "mondrian" every label (equation 5.12).',
    )
    label_cells: Literal["filled", "all"] = declare(
        "filled",
        Choice("filled", "all"),
        "ensemble, mondrian: whether the labels of the filled cells of the matrix count, or those of all "
        "cells, as published. Where a matrix is mostly empty, the bases say of an empty cell what chance "
        "made of it, and as much of that as there is of the rest. Without a matrix all cells count.",
    )

    def check_together(self) -> None:
        """Refuse parameters of the base that the ensemble decides."""
        super().check_together()
        for name, why in OF_ENSEMBLES.items():
            if self.base is not None and not self.base.is_default(name):
                raise DataError(f"base: {name}={getattr(self.base, name)!r} would change nothing: {why}")

    def base_settings(self, store: str | None, random_state: Any) -> CoClusterParameters:
        """Return what the base co-clusterings are: those asked for, or like the consensus."""
        base = self.base
        if base is None:
            shared = {name: getattr(self, name) for name in BlockParameters.declared}
            base = CoClusterParameters(prior=self.prior, **shared)
        # Each base is the last draw of a chain, and chains may differ: there is nothing to judge them by.
        how: dict[str, Any] = {
            "n_jobs": self.n_jobs,
            "progress": self.progress,
            "store": store,
            "n_draws": base.n_fixed_draws,
        }
        if base.pseudo_count is None:  # consensus blocks are filled under one that is given
            how["pseudo_count"] = self.pseudo_count
        found: CoClusterParameters = base.replaced(n_chains=self.n_base, random_state=random_state, **how)
        return found
