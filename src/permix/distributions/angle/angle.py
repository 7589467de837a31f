"""The angle-based model of Xu, Alvo & Yu (2018): P(R) ∝ exp(κ θ'y), y the standardized rank vector."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np

from permix.data.labels import Array, Label, clean_items, some_names
from permix.data.preferences import Preferences
from permix.data.rankings import Rankings
from permix.distributions.angle import subset_table_jit as subsets
from permix.distributions.angle.bessel_jit import bessel_ratio
from permix.distributions.angle.completions import log_compatible_sums
from permix.distributions.angle.draws_jit import balancing_potentials, sample_rows
from permix.distributions.angle.normalizers import log_sum, log_sum_and_gradient, work_space
from permix.distributions.angle.scores import standard_scores, vmf_log_sum
from permix.distributions.base import (
    Distribution,
    Estimate,
    chain_text,
    rankings_over,
    read_only,
    sample_size,
    whole_number,
)
from permix.errors import DataError, ParameterError, PermixWarning
from permix.runtime.seeds import RandomState, stream_key
from permix.runtime.threads import over_rows

# A table over all subsets of 20 items takes 8 MiB and about 12 ms.
MOST_ITEMS_BY_DEFAULT = 20
# Exchanges per item after an importance draw. Positions and θ'y lose their memory within about 8 (half the
# integrated autocorrelation time; measured from 25 to 1000 items, concentration t/2 to 1000 t).
EXCHANGES_PER_ITEM = 50


class Angle(Distribution):
    """Rankings around a direction: P(R) ∝ exp(κ θ'y), κ the concentration and θ the direction.

    y is the vector of the items' standard scores: (rank - (t+1)/2) / √(t(t²-1)/12) for t items, which sums to
    zero and has length one. θ'y is the cosine of the angle between the ranking and the direction.

    Parameters
    ----------
    direction : one number per item, or a mapping (or pandas Series) from item to number
        Small = preferred, like a mean rank. Only differences count: it is centered to sum zero and scaled to
        length one.
    concentration : float
        κ, from 0 (all rankings equally likely).
    normalizer : {"auto", "exact", "balanced", "vmf"}
        How the sum over all t! rankings is found. "exact" sums over subsets of items, up to 22 items.
        "balanced" approximates it by a balanced matrix (McCullagh 2014), within a few hundredths of a nat for
        20 items or more and κ up to 5 t, in t³ operations. "auto" is exact up to 20 items, balanced beyond.
        "vmf" is the von Mises–Fisher approximation of the paper, an integral over the sphere: it depends
        on κ and t alone, and :meth:`normalizer_error` says how far it is off. It is never taken unless asked
        for.
    items : sequence of str or int, optional
        Names of the items; by default the names in ``direction``, else 0, 1, ….

    Attributes
    ----------
    items : tuple
    n_items : int
    direction : ndarray
        θ: sums to zero, has length one.
    concentration : float
    tilts : ndarray
        κ θ: item i at a rank with score y adds tilts[i] y to the log-probability.
    normalizer : str
        The one in use: "exact", "balanced" or "vmf".
    exact_draws : bool
        Whether :meth:`sample` is exact, or the end of a Markov chain.
    mode : tuple
        The most probable ranking.

    Notes
    -----
    The von Mises–Fisher approximation is good where κ is below t or so and no item stands out. Where it is
    not, its probabilities can exceed one, and :meth:`log_prob` warns. What does not need the normalizer —
    draws, rank marginals, pairs — is the same under all.

    Examples
    --------
    >>> from permix import Angle
    >>> model = Angle({"salmon": 1.2, "tuna": 1.9, "egg": 2.9}, 5.0)
    >>> model
    Angle: 3 items, concentration 5, exact normalizer, mode salmon ≻ tuna ≻ egg
    >>> model.sample(2, random_state=1).n_items
    3
    >>> model.log_prob([["salmon", "tuna", "egg"], ["egg", "tuna", "salmon"]]).round(3)
    array([ -0.169, -10.117])
    """

    name: ClassVar[str] = "angle"

    def __init__(
        self,
        direction: Sequence[float] | Mapping[Any, float] | Array,
        concentration: float,
        normalizer: Literal["auto", "exact", "balanced", "vmf"] = "auto",
        items: Iterable[object] | None = None,
    ) -> None:
        values, self._items = _entries_and_items(direction, items)
        self._direction = _unit_direction(values, self._items)
        self._concentration = _concentration(concentration)
        self._tilts = self._concentration * self._direction
        self._scores: Array = standard_scores(self.n_items)
        self._normalizer = _normalizer_in_use(normalizer, self.n_items)

    @property
    def direction(self) -> Array:
        """θ, one number per item; sums to zero and has length one."""
        return read_only(self._direction)

    @property
    def mode(self) -> tuple[Label, ...]:
        """The most probable ranking, best first; where entries of the direction are equal, one of several."""
        return tuple(self._items[index] for index in np.argsort(self._direction, kind="stable"))

    @property
    def concentration(self) -> float:
        """κ, from 0."""
        return self._concentration

    def log_normalizer(self) -> float:
        """Logarithm of Σ over all rankings of exp(κ θ'y), by the normalizer in use."""
        return self._log_sum

    @property
    def normalizer(self) -> str:
        """The normalizer in use: "exact", "balanced" or "vmf"."""
        return self._normalizer

    def normalizer_error(self, n_samples: int = 256, random_state: RandomState = 0) -> Estimate:
        """Say how far the von Mises–Fisher approximation is off: ln(true sum) - ln(approximate sum), in nats.

        Added to ``log_normalizer()`` of a model with ``normalizer="vmf"``, or subtracted from its
        log-probabilities, it corrects them.

        Parameters
        ----------
        n_samples : int
            Importance draws, where there are too many items for the exact sum.
        random_state : int, SeedSequence, Generator or None

        Returns
        -------
        Estimate
            With standard error 0 up to 22 items, where it is exact.

        Examples
        --------
        >>> from permix import Angle
        >>> Angle(range(6), 12.0).normalizer_error()
        0.178... (standard error 0)
        >>> error = Angle(range(50), 100.0).normalizer_error()
        >>> round(error, 1), error.standard_error < 0.02
        (1.7, True)
        """
        n_samples = whole_number("n_samples", n_samples, 2)
        approximate = vmf_log_sum(self._concentration, self.n_items)
        if self.n_items <= subsets.MOST_ITEMS:
            return Estimate(log_sum("exact", self._tilts, self._scores) - approximate)
        _, log_weights = self._importance_draws(n_samples, stream_key(random_state), 0)
        largest = float(log_weights.max())
        weights = np.exp(log_weights - largest)
        mean = float(weights.mean())
        relative_error = float(weights.std(ddof=1)) / mean / math.sqrt(n_samples)
        effective = float(weights.sum() ** 2 / (weights @ weights))
        if effective < 0.1 * n_samples:
            warnings.warn(
                f"the {n_samples} importance draws differ much in weight and count for {effective:.1f}: the "
                "error and its standard error may be too small; use a larger n_samples",
                PermixWarning,
                stacklevel=2,
            )
        return Estimate(largest + math.log(mean) - approximate, relative_error)

    @property
    def tilts(self) -> Array:
        """κ θ, one number per item."""
        return read_only(self._tilts)

    def log_prob(self, rankings: object, n_particles: int = 64, random_state: RandomState = 0) -> Array:
        """Log-probability of each row, whatever its count.

        Parameters
        ----------
        rankings : Rankings, or rows of items by name or number
            Full rankings; or top lists and rankings of a subset of the items, whose probability is that of
            all rankings that agree.
        n_particles, random_state
            For rows that are not full and whose sum over rankings that agree is too long: see
            :func:`permix.distributions.angle.completions.log_compatible_sums`.

        Returns
        -------
        ndarray of float, one per row

        Warns
        -----
        PermixWarning
            Where the von Mises–Fisher approximation gives a probability above one.
        """
        if isinstance(rankings, Preferences):
            raise DataError(
                "angle gives probabilities of rankings; write preferences that are lists as Rankings, with "
                "unlisted='below' or 'unknown'"
            )
        table = rankings_over(rankings, self._items, of="direction")
        if table.is_full:
            out = self._tilts[table.orders] @ self._scores
        else:
            tilts = self._tilts[None, :]
            sums, _ = log_compatible_sums(table, tilts, n_particles=n_particles, random_state=random_state)
            out = sums[:, 0]
        out -= self.log_normalizer()
        above = int(np.count_nonzero(out > 1e-9)) if self._normalizer == "vmf" else 0
        if above:
            better = "exact" if self.n_items <= subsets.MOST_ITEMS else "balanced"
            warnings.warn(
                f"{above} of {len(out)} rows get a probability above 1, the largest "
                f"exp({float(out.max()):.3g}): the von Mises–Fisher approximation fails at "
                f"concentration {self._concentration:g} with {self.n_items} items; use "
                f'normalizer="{better}"',
                PermixWarning,
                stacklevel=2,
            )
        return out

    @property
    def exact_draws(self) -> bool:
        """Whether draws come from a table over all subsets (up to 20 items), or from the end of a chain."""
        return self.n_items <= MOST_ITEMS_BY_DEFAULT

    def sample(self, size: int = 1, random_state: RandomState = None) -> Rankings:
        """Draw full rankings independently; see :meth:`Distribution.sample`.

        Up to 20 items the draws are exact. Beyond, each is an importance draw moved by 50 Metropolis
        exchanges per item, several times what the chain needs to forget where it began.
        """
        key = stream_key(random_state)
        return Rankings._from_arrays(self._draw(sample_size(size), key), self._items)

    def _draw(self, n: int, key: Array) -> Array:
        """Orderings drawn from the streams of a key."""
        t = self.n_items
        if not self.exact_draws:
            return self._importance_draws(n, key, EXCHANGES_PER_ITEM * t)[0]
        table, out = self._table, np.empty((n, t), dtype=np.int32)
        over_rows(lambda first, last: subsets.sample_table_rows(key, first, last, *table, out), n, t)
        return out

    def _importance_draws(self, size: int, key: Array, n_exchanges: int) -> tuple[Array, Array]:
        """Orderings drawn by importance, moved by so many exchanges each, and their log-weights before."""
        orders, log_weights = np.empty((size, self.n_items), dtype=np.int32), np.empty(size)
        work = (self._tilts, self._scores, *self._potentials, n_exchanges, orders, log_weights)
        over_rows(lambda first, last: sample_rows(key, first, last, *work), size, self.n_items**2)
        return orders, log_weights

    def mean_scores(self) -> Array:
        """Mean of y for each item: the gradient of :meth:`log_normalizer` in the tilts.

        Exact under the exact normalizer; I_{(t-1)/2}(κ) / I_{(t-3)/2}(κ) times the direction under the
        von Mises–Fisher approximation.
        """
        if self._normalizer != "vmf":
            tables = work_space(self._normalizer, self.n_items)
            return log_sum_and_gradient(self._tilts, self._scores, tables)[1]
        return np.asarray(bessel_ratio(0.5 * (self.n_items - 3), self._concentration) * self._direction)

    def rank_marginals(self, n_samples: int = 1000, random_state: RandomState = 0) -> Array:
        """Matrix of P(item a has rank r): exact up to 20 items, beyond the frequencies in draws.

        Parameters
        ----------
        n_samples : int
            Draws, above 20 items: a frequency p has standard error √(p(1-p)/n_samples).
        random_state : int, SeedSequence, Generator or None

        Returns
        -------
        ndarray, shape (items, items)
            Rows by position in ``items``; column 0 is the best rank. Rows and columns sum to one.
        """
        if self.exact_draws:
            return np.asarray(subsets.rank_marginals(self._tilts, self._scores))
        orders = self.sample(whole_number("n_samples", n_samples, 1), random_state).orders
        counts = [np.bincount(items, minlength=self.n_items) for items in orders.T]
        return np.stack(counts, axis=1) / n_samples

    def pairwise(self, n_samples: int = 1000, random_state: RandomState = 0) -> Array:
        """Matrix of P(item a before item b): exact up to 20 items, beyond the frequencies in draws.

        Arguments as in :meth:`rank_marginals`. Rows and columns by position in ``items``; 0 on the diagonal.
        At 20 items it takes 0.2 s.

        Examples
        --------
        >>> from permix import Angle
        >>> Angle([0, 1], 1.0).pairwise().round(3)
        array([[0.   , 0.881],
               [0.119, 0.   ]])
        """
        if self.exact_draws:
            return np.asarray(subsets.pairwise(self._tilts, self._scores))
        draws = self.sample(whole_number("n_samples", n_samples, 1), random_state)
        return np.asarray(draws.pairwise_counts() / n_samples)

    def entropy(self) -> float:
        """Entropy in nats, ln Σ - κ θ'E[y], by the normalizer in use (so possibly below 0 under "vmf")."""
        return self.log_normalizer() - float(self._tilts @ self.mean_scores())

    def describe(self) -> dict[str, Any]:
        """Return name and parameters as plain JSON values."""
        return {
            "name": self.name,
            "items": list(self._items),
            "direction": self._direction.tolist(),
            "concentration": self._concentration,
            "normalizer": self._normalizer,
        }

    def __repr__(self) -> str:
        return (
            f"Angle: {self.n_items} items, concentration {self._concentration:g}, "
            f"{self._normalizer} normalizer, mode {chain_text(self.mode)}"
        )

    @cached_property
    def _log_sum(self) -> float:
        return log_sum(self._normalizer, self._tilts, self._scores)

    @cached_property
    def _table(self) -> tuple[Array, Array, Array]:
        items, factors, _ = subsets.scaled_factors(self._tilts, self._scores)
        table = np.empty(1 << self.n_items)
        subsets.fill_table(factors, table)
        return items, factors, table

    @cached_property
    def _potentials(self) -> tuple[Array, Array]:
        return tuple(balancing_potentials(self._tilts, self._scores))


def _entries_and_items(direction: object, items: Iterable[object] | None) -> tuple[Array, tuple[Label, ...]]:
    """Entries of the direction in the order of the items, and their names."""
    names: tuple[Label, ...] | None = None
    entries: Any = direction
    if isinstance(direction, Mapping):
        names, entries = clean_items(direction.keys()), list(direction.values())
    elif hasattr(direction, "index") and hasattr(direction, "to_numpy"):  # a pandas Series
        names, entries = clean_items(direction.index), direction.to_numpy()
    try:
        values = np.array(entries if hasattr(entries, "__len__") else list(entries), dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(f"direction={direction!r} must hold one number for each item") from None
    if values.ndim != 1:
        raise DataError(f"direction has shape {values.shape}, but must hold one number for each item")
    if len(values) < 2:
        raise DataError(f"direction has {len(values)} entries; a ranking needs two items or more")
    if items is None:
        return values, names or tuple(range(len(values)))
    wanted = clean_items(items)
    if names is None:
        if len(wanted) != len(values):
            raise DataError(f"direction has {len(values)} entries, but there are {len(wanted)} items")
        return values, wanted
    if set(wanted) != set(names):
        odd = [name for name in (*names, *wanted) if (name in names) != (name in wanted)]
        raise DataError(f"direction and items= name different items: {some_names(odd)}")
    by_name = dict(zip(names, values.tolist(), strict=True))
    return np.array([by_name[name] for name in wanted]), wanted


def _unit_direction(values: Array, items: tuple[Label, ...]) -> Array:
    """Center to sum zero and scale to length one."""
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad):
        raise DataError(f"the direction of {items[bad[0]]!r} is {values[bad[0]]}, not a finite number")
    if abs(values.sum()) < 1e-12 and abs(float(values @ values) - 1.0) < 1e-12:
        return values + 0.0  # already so: a direction read from a file keeps its last digit
    values = values / np.abs(values).max(initial=np.finfo(float).tiny)  # squares cannot overflow
    centered = values - values.mean()
    centered -= centered.mean()
    size = float(np.linalg.norm(centered))
    if size == 0.0 or values.min() == values.max():
        raise DataError("a direction with all entries equal prefers nothing; make some entries differ")
    return np.asarray(centered / size)


def _concentration(concentration: object) -> float:
    try:
        value = float(concentration)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise ParameterError("concentration", concentration, "a number, 0 or more") from None
    if not 0.0 <= value < math.inf:
        raise ParameterError("concentration", concentration, "finite, and 0 or more")
    return value + 0.0


def _normalizer_in_use(normalizer: object, n_items: int) -> str:
    if normalizer not in ("auto", "exact", "balanced", "vmf"):
        raise DataError(f"normalizer={normalizer!r} must be 'auto', 'exact', 'balanced' or 'vmf'")
    if normalizer == "auto":
        return "exact" if n_items <= MOST_ITEMS_BY_DEFAULT else "balanced"
    if normalizer == "exact" and n_items > subsets.MOST_ITEMS:
        raise DataError(
            f"normalizer='exact' takes up to {subsets.MOST_ITEMS} items, and here are {n_items}; use "
            "'balanced', or 'vmf', whose error normalizer_error() estimates"
        )
    return str(normalizer)
