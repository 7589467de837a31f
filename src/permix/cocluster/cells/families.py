"""What the cells of one block are made of: levels, ones and zeros, counts, or numbers.

A cell family is a frozen dataclass of hyper-parameters. ``resolve`` fills in what depends on the data,
``encode`` turns cell values into what compiled code reads, ``block_prior`` is the compiled side of the prior
(``blocks_jit``). The prior of a block is worth ``pseudo_count`` cells: that many at each
level, or that many with the mean and the variance of the whole matrix.
"""

from __future__ import annotations

import abc
import csv
import dataclasses
import io
import json
import math
import shlex
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from permix.cocluster.cells.blocks_jit import GAUSSIAN, POISSON, CountPrior, MomentPrior, count_prior
from permix.cocluster.cells.registry import cell_family_class
from permix.data.cells_codes import stands_for_nothing
from permix.errors import Argument, DataError, Message, Wording
from permix.families.base import check_number

Array = npt.NDArray[Any]
# Logarithms of factorials of larger sums are wrong in digits that matter.
LARGEST_COUNT, LARGEST_TOTAL = 1e9, 1e12
# Farther from the mean, in standard deviations, sums of squares are beyond what floats hold.
FARTHEST = 1e75
GAUSSIAN_INSTEAD = ("take ", Argument("family", "gaussian"))
# Levels that a message lists.
MOST_SHOWN = 12


class CellValueError(DataError):
    """The value of the cell at a position is not what the family takes; ``what`` says why, part by part."""

    def __init__(self, position: int, *what: str | Argument | Wording) -> None:
        super().__init__(Message(f"cell {position + 1}: ", *what))
        self.position = position
        self.what = what

    def at(self, place: str) -> DataError:
        """Return the error with the place as the user calls it."""
        return DataError(f"{place}: ", *self.what)


@dataclasses.dataclass(frozen=True)
class CellFamily(abc.ABC):
    """Base of all cell families; the prior of a block is worth ``pseudo_count`` cells."""

    pseudo_count: float = 1.0

    name: ClassVar[str]
    #: Whether a cell has one of finitely many values, so that predictions are probabilities of each.
    has_levels: ClassVar[bool]
    #: What tables call ln p(cell): of numbers it is a density.
    log_name: ClassVar[str] = "log_probability"

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if isinstance(value, np.generic):
                object.__setattr__(self, field.name, value.item())
        check_number(self.pseudo_count, "pseudo_count")

    def at(self, pseudo_count: float) -> Self:
        """Return the same family with another pseudo-count."""
        return dataclasses.replace(self, pseudo_count=pseudo_count)

    @abc.abstractmethod
    def resolve(self, values: Array) -> Self:
        """Return a copy whose hyper-parameters are all set for cells with these values."""

    @abc.abstractmethod
    def encode(self, values: Array) -> Array:
        """Check values and turn them into codes (int64) or numbers (float64)."""

    @abc.abstractmethod
    def block_prior(self, n_cells: int) -> CountPrior | MomentPrior:
        """Return the prior of a block as compiled code sees it; at most ``n_cells`` cells occur."""

    @property
    @abc.abstractmethod
    def n_slots(self) -> int:
        """Length of what the cells of a block add up to."""

    @property
    def sums_dtype(self) -> type:
        """Type of these sums: whole numbers count exactly."""
        return np.int64 if self.has_levels else np.float64

    @abc.abstractmethod
    def log_constant(self, codes: Array) -> float:
        """Return what ln p(cells) has beyond the block marginals, whatever the blocks."""

    @abc.abstractmethod
    def log_predictive(self, codes: Array, n: Array, sums: Array) -> Array:
        """Return ln p(cell | block) of encoded cells, each with the ``n`` and ``sums`` of its block."""

    @abc.abstractmethod
    def means(self, n: Array, sums: Array) -> Array:
        """Return the posterior mean of each block's cells, in the user's units."""

    @abc.abstractmethod
    def mean_variances(self, n: Array, sums: Array) -> Array:
        """Return the posterior variance of the mean of each block, in the user's units squared."""

    def observed_means(self, n: Array, sums: Array) -> Array:
        """Return the mean of each block's cells as they are, in the user's units; NaN of none."""
        with np.errstate(invalid="ignore"):
            return self.values(sums[..., 0] / n)

    @abc.abstractmethod
    def parameters(self, n: Array, sums: Array) -> dict[str, Array]:
        """Posterior means of the blocks' parameters, one row a block."""

    @abc.abstractmethod
    def draw(self, rng: np.random.Generator, n: Array, sums: Array, block: Array) -> Array:
        """Draw encoded cells, each in the block given, with parameters of all blocks drawn given the data."""

    def values(self, codes: Array) -> Array:
        """Return encoded cells that are numbers in the user's units."""
        return codes

    @property
    def levels_are_numbers(self) -> bool:
        """Whether cells have levels, and all of these are numbers."""
        return all(isinstance(level, int | float) for level in getattr(self, "levels", None) or [""])

    def describe(self) -> dict[str, Any]:
        """Return name and hyper-parameters as plain JSON values."""
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        plain_values = {name: list(v) if isinstance(v, tuple) else v for name, v in values.items()}
        return {"name": self.name, **plain_values}


@dataclasses.dataclass(frozen=True)
class CategoricalCells(CellFamily):
    """Cells with one of a few values, such as ratings or answers; each block has its own probabilities.

    Parameters
    ----------
    pseudo_count : float
        Dirichlet parameter of every level (β of equation 5.12).
    levels : sequence, optional
        The possible values, in order; default those that occur.

    Examples
    --------
    >>> family = CategoricalCells().resolve(np.array([3.0, 5.0, 3.0]))
    >>> family.levels, family.encode(np.array([5.0, 3.0]))
    ((3, 5), array([1, 0]))
    """

    levels: Sequence[Any] | None = None

    name: ClassVar[str] = "categorical"
    has_levels: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.levels is None:
            return
        levels = tuple(plain(level) for level in self.levels)
        if not levels or len(set(levels)) != len(levels):
            raise DataError(f"levels must be at least one and all different, got {levels!r}")
        for level in levels:
            if not isinstance(level, str | int | float) or level != level:
                raise DataError(f"levels are text or numbers, got {level!r}")
        object.__setattr__(self, "levels", levels)

    def resolve(self, values: Array) -> Self:
        """Take the values that occur."""
        if self.levels is not None:
            return self
        present = list(dict.fromkeys(plain(value) for value in np.unique(values).tolist()))
        if not present:
            raise DataError("the matrix has no filled cell")
        return dataclasses.replace(self, levels=tuple(present))

    def encode(self, values: Array) -> Array:
        """Return the position of each value among the levels."""
        assert self.levels is not None
        code_of = {level: code for code, level in enumerate(self.levels)}
        distinct, inverse = np.unique(values, return_inverse=True)
        found = [code_of.get(plain(value), -1) for value in distinct.tolist()]
        codes = np.array(found, dtype=np.int64)[inverse]
        if codes.size and codes.min() < 0:
            raise self._unknown(values, np.flatnonzero(codes < 0))
        return codes

    def _unknown(self, values: Array, positions: Array) -> CellValueError:
        """Return the error about the first value that is no level; of text, the first that is no number."""
        assert self.levels is not None
        numeric = self.levels_are_numbers
        odd = (at for at in positions.tolist() if numeric and not _is_number(values[at]))
        at = next(odd, int(positions[0]))
        value = plain(values[at])
        known = ", ".join(str(level) for level in self.levels[:8])
        more = ", ..." if len(self.levels) > 8 else ""
        code = _if_missing(" If it stands for missing, read the cells with ", value, ".")
        text = f"{value!r} is none of the known values ({known}{more}). "
        return CellValueError(at, text, *self._way_out(value), *code)

    def _way_out(self, value: Any) -> tuple[str | Argument | Wording, ...]:
        """Say what to do about a value that is no level."""
        levels = [*(self.levels or ()), value]
        if isinstance(value, str) and not isinstance(levels[0], str):
            return ("It is text, and they are numbers: write a number, or nothing.",)
        if isinstance(levels[0], str) and not isinstance(value, str):
            return ("It is a number, and they are text: write all cells as text.",)
        return ("Fit with all that are possible, ", _with_levels(levels), ".")

    @property
    def n_slots(self) -> int:
        """Number of levels."""
        assert self.levels is not None
        return len(self.levels)

    def block_prior(self, n_cells: int) -> CountPrior:
        """Return the Dirichlet prior."""
        return count_prior(self.pseudo_count, np.array([self.n_slots]), n_cells)

    def log_constant(self, codes: Array) -> float:
        """Nothing."""
        return 0.0

    def probabilities(self, n: Array, sums: Array) -> Array:
        """Return the predictive probability of each level, by block (equation 5.15)."""
        total = n + self.pseudo_count * self.n_slots
        return (sums + self.pseudo_count) / total[..., None]

    def log_predictive(self, codes: Array, n: Array, sums: Array) -> Array:
        """Return ln of (count of the level + β) / (cells + β × levels)."""
        chosen = np.take_along_axis(sums, codes[..., None], axis=-1)[..., 0]
        return np.log(chosen + self.pseudo_count) - np.log(n + self.pseudo_count * self.n_slots)

    def means(self, n: Array, sums: Array) -> Array:
        """Return the mean value, where levels are numbers."""
        if not self.levels_are_numbers:
            raise DataError("levels that are text have no mean; see the probabilities")
        return self.probabilities(n, sums) @ np.array(self.levels, dtype=np.float64)

    def mean_variances(self, n: Array, sums: Array) -> Array:
        """Return the variance of the mean level, whose probabilities have a Dirichlet distribution."""
        levels = np.array(self.levels, dtype=np.float64)
        probabilities = self.probabilities(n, sums)
        spread = probabilities @ levels**2 - (probabilities @ levels) ** 2
        return np.maximum(spread, 0.0) / (n + self.pseudo_count * self.n_slots + 1.0)

    def shares(self, n: Array, sums: Array) -> Array:
        """Return which share of each block's cells has each level; NaN of none."""
        with np.errstate(invalid="ignore"):
            return np.asarray(sums / np.asarray(n)[..., None])

    def observed_means(self, n: Array, sums: Array) -> Array:
        """Return the mean of each block's cells as they are, where levels are numbers; NaN of none."""
        return self.shares(n, sums) @ np.array(self.levels, dtype=np.float64)

    def draw(self, rng: np.random.Generator, n: Array, sums: Array, block: Array) -> Array:
        """Draw probabilities of the levels of every block, then levels."""
        gammas = rng.standard_gamma(sums + self.pseudo_count)
        upto = np.cumsum(gammas / gammas.sum(axis=1, keepdims=True), axis=1)
        codes = (rng.random(len(block))[:, None] > upto[block][:, :-1]).sum(axis=1)
        return np.asarray(codes, dtype=np.int64)

    def parameters(self, n: Array, sums: Array) -> dict[str, Array]:
        """Posterior mean probability of every level."""
        return {"probabilities": self.probabilities(n, sums)}


@dataclasses.dataclass(frozen=True)
class BernoulliCells(CategoricalCells):
    """Cells that are 0 or 1; each block has its own probability of a 1, with a Beta prior.

    Parameters
    ----------
    pseudo_count : float
        Both parameters of the Beta prior.

    Examples
    --------
    >>> BernoulliCells().encode(np.array([1.0, 0.0]))
    array([1, 0])
    """

    levels: Sequence[Any] | None = (0, 1)

    name: ClassVar[str] = "bernoulli"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.levels != (0, 1):
            raise DataError(f"cells of the family bernoulli are 0 or 1; levels cannot be {self.levels!r}")

    def _way_out(self, value: Any) -> tuple[str | Argument | Wording, ...]:
        return ("Write 0 and 1, or fit with ", Argument("family", "categorical"), ", which takes any values.")


@dataclasses.dataclass(frozen=True)
class PoissonCells(CellFamily):
    """Cells that are counts; each block has its own rate, with a Gamma prior.

    Parameters
    ----------
    pseudo_count : float
        Rate of the Gamma prior: how many cells it is worth.
    prior_mean : float, optional
        Mean of the prior; default the mean of all cells.
    """

    prior_mean: float | None = None

    name: ClassVar[str] = "poisson"
    has_levels: ClassVar[bool] = False
    n_slots: ClassVar[int] = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.prior_mean is not None:
            check_number(self.prior_mean, "prior_mean")

    def resolve(self, values: Array) -> Self:
        """Take the mean of all cells."""
        numbers = self.encode(values)
        if numbers.sum() > LARGEST_TOTAL:
            why = f"{numbers.max():g} and all others are too large for counts; "
            raise CellValueError(int(numbers.argmax()), why, *GAUSSIAN_INSTEAD)
        if self.prior_mean is not None:
            return self
        mean = float(numbers.mean()) if len(values) else 0.0
        return dataclasses.replace(self, prior_mean=mean or 1.0)

    def encode(self, values: Array) -> Array:
        """Check that all are whole and not negative."""
        numbers = as_numbers(values, self.name)
        bad = np.flatnonzero((numbers < 0) | (numbers != np.floor(numbers)))
        if bad.size:
            value = numbers[bad[0]]
            code = _if_missing("; say ", plain(value), " if it stands for missing")
            raise CellValueError(int(bad[0]), f"{value:g} is not a count (0, 1, 2, ...)", *code)
        if numbers.size and numbers.max() > LARGEST_COUNT:
            why = f"{numbers.max():g} is too large for a count; "
            raise CellValueError(int(numbers.argmax()), why, *GAUSSIAN_INSTEAD)
        return numbers

    def block_prior(self, n_cells: int) -> MomentPrior:
        """Return the Gamma prior."""
        assert self.prior_mean is not None
        return MomentPrior(POISSON, 1.0, self.pseudo_count * self.prior_mean, float(self.pseudo_count))

    def log_constant(self, codes: Array) -> float:
        """- Σ ln x!."""
        from scipy.special import gammaln

        return -float(gammaln(codes + 1.0).sum())

    def _posterior(self, n: Array, sums: Array) -> tuple[Array, Array]:
        prior = self.block_prior(0)
        return prior.shape + sums[..., 0], prior.rate + n

    def log_predictive(self, codes: Array, n: Array, sums: Array) -> Array:
        """Return ln of the negative binomial."""
        from scipy.special import gammaln

        shape, rate = self._posterior(n, sums)
        value = gammaln(shape + codes) - gammaln(shape) - gammaln(codes + 1.0)
        return value - shape * np.log1p(1.0 / rate) - codes * np.log1p(rate)

    def draw(self, rng: np.random.Generator, n: Array, sums: Array, block: Array) -> Array:
        """Draw the rate of every block, then counts."""
        shape, rate = self._posterior(n, sums)
        return np.asarray(rng.poisson((rng.standard_gamma(shape) / rate)[block]), dtype=np.float64)

    def means(self, n: Array, sums: Array) -> Array:
        """Posterior mean of the rate."""
        shape, rate = self._posterior(n, sums)
        return shape / rate

    def mean_variances(self, n: Array, sums: Array) -> Array:
        """Return the variance of the rate, which has a Gamma distribution."""
        shape, rate = self._posterior(n, sums)
        return shape / rate**2

    def parameters(self, n: Array, sums: Array) -> dict[str, Array]:
        """Posterior mean of the rate."""
        return {"rates": self.means(n, sums)}


@dataclasses.dataclass(frozen=True)
class GaussianCells(CellFamily):
    """Cells that are numbers; each block has its own mean and variance (normal-inverse-gamma prior).

    Parameters
    ----------
    pseudo_count : float
        How many cells, with the mean and the variance of the prior, the prior is worth.
    prior_mean, prior_scale : float, optional
        Their mean and standard deviation; default those of all cells.
    """

    prior_mean: float | None = None
    prior_scale: float | None = None

    name: ClassVar[str] = "gaussian"
    has_levels: ClassVar[bool] = False
    log_name: ClassVar[str] = "log_density"
    n_slots: ClassVar[int] = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        mean = 0.0 if self.prior_mean is None else self.prior_mean
        if not (isinstance(mean, int | float) and math.isfinite(mean)):
            raise DataError(f"prior_mean must be one finite number, got {mean!r}")
        if self.prior_scale is not None:
            check_number(self.prior_scale, "prior_scale")

    def resolve(self, values: Array) -> Self:
        """Take mean and standard deviation of all cells."""
        numbers = as_numbers(values, self.name)
        mean, scale = self.prior_mean, self.prior_scale
        # In units of the largest: squares of very large or very small numbers are beyond what floats hold.
        unit = float(np.abs(numbers).max(initial=0.0)) or 1.0
        shares = numbers / unit
        if mean is None:
            mean = float(shares.mean() * unit) if len(numbers) else 0.0
        if scale is None:
            scale = (float(shares.std() * unit) if len(numbers) else 1.0) or 1.0
        if not math.isfinite(mean) or not math.isfinite(scale):
            raise DataError("the numbers are too large to have a mean and a variance; divide them by a unit")
        return dataclasses.replace(self, prior_mean=mean, prior_scale=scale)

    def encode(self, values: Array) -> Array:
        """Put numbers on the scale of the prior: sums of squares then lose no digits."""
        mean, scale = self._units
        numbers = as_numbers(values, self.name)
        with np.errstate(over="ignore"):
            codes = (numbers - mean) / scale
        far = np.flatnonzero(np.abs(codes) > FARTHEST)
        if far.size:
            why = f"{numbers[far[0]]:g} is too far from the others to be compared with them"
            raise CellValueError(int(far[0]), why)
        return codes

    def block_prior(self, n_cells: int) -> MomentPrior:
        """Return the normal-inverse-gamma prior."""
        half = 0.5 * self.pseudo_count
        return MomentPrior(GAUSSIAN, float(self.pseudo_count), half, half)

    def log_constant(self, codes: Array) -> float:
        """The change of scale."""
        return -len(codes) * math.log(self._units[1])

    @property
    def _units(self) -> tuple[float, float]:
        """Mean and standard deviation of the prior, once resolved."""
        assert self.prior_mean is not None
        assert self.prior_scale is not None
        return self.prior_mean, self.prior_scale

    def _posterior(self, n: Array, sums: Array) -> tuple[Array, Array, Array, Array]:
        """Mean, strength, shape and rate given the cells of blocks."""
        prior = self.block_prior(0)
        strength = prior.strength + n
        mean = sums[..., 0] / strength
        rate = prior.rate + np.maximum(0.5 * (sums[..., 1] - sums[..., 0] * mean), 0.0)
        return mean, strength, prior.shape + 0.5 * n, rate

    def log_predictive(self, codes: Array, n: Array, sums: Array) -> Array:
        """Return ln of Student's t."""
        from scipy.special import gammaln

        mean, strength, shape, rate = self._posterior(n, sums)
        spread = 2.0 * rate * (strength + 1.0) / strength
        value = gammaln(shape + 0.5) - gammaln(shape) - 0.5 * np.log(np.pi * spread)
        return value - (shape + 0.5) * np.log1p((codes - mean) ** 2 / spread) - math.log(self._units[1])

    def draw(self, rng: np.random.Generator, n: Array, sums: Array, block: Array) -> Array:
        """Draw mean and variance of every block, then numbers."""
        mean, strength, shape, rate = self._posterior(n, sums)
        deviation = np.sqrt(rate / rng.standard_gamma(shape))
        centers = rng.normal(mean, deviation / np.sqrt(strength))
        return rng.normal(centers[block], deviation[block])

    def values(self, codes: Array) -> Array:
        """Undo :meth:`encode`."""
        mean, scale = self._units
        return np.asarray(mean + scale * codes)

    def means(self, n: Array, sums: Array) -> Array:
        """Posterior mean of the mean."""
        mean, scale = self._units
        return mean + scale * self._posterior(n, sums)[0]

    def mean_variances(self, n: Array, sums: Array) -> Array:
        """Return the variance of the mean at the expected precision: over all, few cells have none."""
        _, strength, shape, rate = self._posterior(n, sums)
        return self._units[1] ** 2 * rate / (strength * shape)

    def parameters(self, n: Array, sums: Array) -> dict[str, Array]:
        """Posterior mean of the mean, and the standard deviation at the expected precision."""
        _, _, shape, rate = self._posterior(n, sums)
        return {"means": self.means(n, sums), "scales": self._units[1] * np.sqrt(rate / shape)}


def cell_family(family: CellFamily | str, pseudo_count: float = 1.0) -> CellFamily:
    """Return a cell family given as an object or by name."""
    if isinstance(family, CellFamily):
        return family
    return cell_family_class(family)(pseudo_count=pseudo_count)


def family_as_described(description: Any) -> CellFamily:
    """Rebuild a cell family from what ``describe`` gave, and from nothing else."""
    if not isinstance(description, dict):
        raise DataError("family: not what a fit writes")
    fields = dict(description)
    family = cell_family_class(fields.pop("name", None))(**fields)
    if json.dumps(family.describe()) != json.dumps(description):
        raise DataError("family: not what a fit writes")
    return family


def as_numbers(values: Array, family: str) -> npt.NDArray[np.float64]:
    """Return finite numbers; the error names the first that is none."""
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        for position, value in enumerate(np.asarray(values, dtype=object).tolist()):
            if not _is_number(value):
                text = f"{value!r} is not a number, and the family {family} takes numbers; "
                way_out = _if_missing("say ", value, " if it stands for missing")
                other = (Argument("family", "categorical"), " takes text")
                raise CellValueError(position, text, *(way_out or other)) from None
        raise
    bad = np.flatnonzero(~np.isfinite(numbers))
    if bad.size:
        raise CellValueError(int(bad[0]), f"{numbers[bad[0]]} is not a finite number")
    return numbers


def _if_missing(before: str, value: Any, after: str) -> tuple[str | Argument, ...]:
    """Say how to read a value as missing, where it looks as if it were."""
    return (before, Argument("missing", value), after) if stands_for_nothing(value) else ()


def _with_levels(levels: list[Any]) -> Wording:
    """Say how to fit with all these levels."""
    listed, option = "[...]", "--levels"
    if len(levels) <= MOST_SHOWN:
        line = io.StringIO()
        csv.writer(line, lineterminator="").writerow(levels)
        listed, option = repr(levels), f"--levels {shlex.quote(line.getvalue())}"
    return Wording(f"family=permix.cocluster.cells.families.CategoricalCells(levels={listed})", option)


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def plain(value: Any) -> Any:
    """Whole floats count as integers, so that ratings keep their names."""
    value = value.item() if isinstance(value, np.generic) else value
    return int(value) if isinstance(value, float) and value.is_integer() else value
