"""Priors over partitions, as the user writes them.

Each specification is a frozen dataclass of plain numbers. Samplers read it as tables, ``spec.tables(n)``, so
that compiled code is the same for all priors.

Dirichlet process and Pitman-Yor process are one two-parameter family (Pitman 1995, with concentration
alpha and discount sigma, 0 for the Dirichlet process). With data seated in K clusters of sizes n_k the
next one

    joins cluster k        with weight n_k - sigma,
    opens a new cluster    with weight alpha + K sigma.

Finite mixtures have the first weight with sigma = -g for a pseudo-count g, and as the second whatever the
prior on the number of components makes of it, be the number known (a finite symmetric Dirichlet: g (m - K)
for m components) or not (a mixture of finite mixtures: g V_n(K+1)/V_n(K), Miller & Harrison 2018).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from numbers import Integral, Real
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from permix.errors import DataError, Wording
from permix.partitions.concentration import SMALLEST_CONCENTRATION, log_rising_factorial
from permix.partitions.labels import IntArray, as_labels
from permix.registries import PRIORS
from permix.runtime.seeds import RandomState, generator

FloatArray = npt.NDArray[np.float64]

# Beyond this, sums over numbers of groups overflow; weights are equal long before.
MOST_PSEUDO_COUNT = 1e100


@dataclass(frozen=True)
class Gamma:
    """Gamma distribution with density proportional to ``x ** (shape - 1) * exp(-rate * x)``.

    Stands in place of a number to say "learn it, with this prior".

    Parameters
    ----------
    shape, rate : float, default 1.0
        Both positive; the mean is ``shape / rate``.

    Examples
    --------
    >>> from permix import DirichletProcess
    >>> from permix.partitions import Gamma
    >>> DirichletProcess(Gamma(shape=2.0, rate=4.0))
    DirichletProcess(concentration=Gamma(shape=2.0, rate=4.0))
    """

    shape: float = 1.0
    rate: float = 1.0

    def __post_init__(self) -> None:
        _store_positive(self, "shape")
        _store_positive(self, "rate")

    @property
    def mean(self) -> float:
        """Mean of the distribution."""
        return self.shape / self.rate

    def describe(self) -> dict[str, Any]:
        """Plain values for a JSON file; :func:`prior_from_description` is the way back."""
        return {"prior": "Gamma", **vars(self)}


class PriorTables(NamedTuple):
    """A prior over partitions of n data as samplers read it, in logs.

    The weights are those of the last datum given all others.
    """

    joining: FloatArray  # (n + 1,) of joining a cluster of m members; 0 for the first, who has no choice
    opening: FloatArray  # (n + 1,) of opening one beside K; minus infinity where there can be no more
    concentration: float  # of the two-parameter family
    discount: float
    log_one: float  # of all n in one cluster, less Σ joining

    def log_prob(self, sizes: npt.NDArray[np.int64]) -> float:
        """Log probability of the partition of the n data with these cluster sizes."""
        total = 0.0
        for n_clusters, size in enumerate(sizes.tolist()):
            if n_clusters:
                total += self.opening[n_clusters]
            total += log_rising_factorial(1.0 - self.discount, size - 1)
        return float(total + self.log_one) if len(sizes) else 0.0

    def log_new_clusters(self, n_clusters: int) -> float:
        """Log of the product of the weights of opening the first so many clusters."""
        return float(np.cumsum(self.opening[:n_clusters])[-1]) if n_clusters else 0.0

    def opening_between(self, n_clusters: float) -> float:
        """Log weight of opening a cluster beside a number of clusters that need not be whole."""
        if self.discount >= 0.0:
            return _log_two_parameter_opening(self.concentration, self.discount, n_clusters)
        # In a straight line between whole numbers.
        whole = int(n_clusters)
        share = n_clusters - whole
        below = float(self.opening[whole])
        if share == 0.0 or below == -math.inf:
            return below
        return below + math.log(1.0 - share + share * math.exp(self.opening[whole + 1] - below))


class PartitionPrior(ABC):
    """What priors over partitions share; each is a frozen dataclass of its parameters."""

    @classmethod
    def named(cls, **settings: Any) -> Self:
        """Return the prior of a user who gives its name, and perhaps some of its parameters."""
        return cls(**settings)

    @abstractmethod
    def tables(self, n: int) -> PriorTables:
        """Return what samplers of partitions of ``n`` observations read; never written to.

        A concentration that is to be learned stands at its prior mean.
        """

    def sample(self, n: int, random_state: RandomState = None, size: int | None = None) -> IntArray:
        """Draw partitions of ``n`` observations.

        Parameters
        ----------
        n : int
            Number of observations.
        random_state : int, Generator, SeedSequence or None
            Source of randomness.
        size : int, optional
            Number of draws; None gives one label vector.

        Returns
        -------
        ndarray of int32, shape (n,) or (size, n)
            Labels numbered by first appearance.
        """
        labels = np.empty((1 if size is None else _count(size, "size"), _count(n, "n")), np.int32)
        self._draw(generator(random_state), labels)
        return labels[0] if size is None else labels

    @abstractmethod
    def _draw(self, rng: np.random.Generator, labels: IntArray) -> None:
        """Draw a partition into each row of ``labels``."""

    @abstractmethod
    def expected_clusters(self, n: int) -> float:
        """Prior mean of the number of groups of ``n`` observations."""

    def most_clusters(self, n: int) -> int:
        """Largest number of groups that ``n`` observations can have."""
        return n

    def log_prob(self, labels: npt.ArrayLike) -> float:
        """Exact log probability of a partition.

        Parameters
        ----------
        labels : array-like of int, shape (n,)
            Group of each observation. The names of groups do not matter.

        Returns
        -------
        float
            Minus infinity when the partition is impossible (too many groups for a finite prior).
        """
        return self._log_prob_of_sizes(np.bincount(as_labels(labels)))

    def _log_prob_of_sizes(self, sizes: npt.NDArray[np.int64]) -> float:
        return self.tables(int(sizes.sum())).log_prob(sizes)

    def sequential_log_weights(self, sizes: npt.ArrayLike, normalized: bool = True) -> FloatArray:
        """Log weights with which the next observation joins each group or opens a new one.

        Parameters
        ----------
        sizes : array-like of int, shape (K,)
            Present sizes of the groups, all positive.
        normalized : bool, default True
            Whether to divide by the total, so that the weights are probabilities.

        Returns
        -------
        ndarray, shape (K + 1,)
            The existing groups in the order given, then the new one.
        """
        array = np.asarray(sizes)
        if array.size == 0:
            array = np.zeros(0, np.int64)
        elif array.ndim != 1 or not np.issubdtype(array.dtype, np.integer) or array.min() < 1:
            raise DataError(f"sizes must be positive whole numbers, one for each group, not {sizes!r}")
        weights = self._log_weights(array.astype(np.int64))
        if normalized:
            weights -= np.logaddexp.reduce(weights)
        return weights

    def _log_weights(self, sizes: npt.NDArray[np.int64]) -> FloatArray:
        tables = self.tables(int(sizes.sum()) + 1)
        return np.append(tables.joining[sizes], tables.opening[len(sizes)])

    def describe(self) -> dict[str, Any]:
        """Plain values for a JSON file; :func:`prior_from_description` is the way back."""
        plain = {name: v.describe() if isinstance(v, Gamma) else v for name, v in vars(self).items()}
        return {"prior": type(self).__name__, **plain}


class _TwoParameter(PartitionPrior):
    """What members of Pitman's two-parameter family share; finite symmetric Dirichlets are among them."""

    @abstractmethod
    def _two_parameters(self) -> tuple[float, float, float]:
        """Concentration, discount and largest number of groups in the two-parameter form."""

    def tables(self, n: int) -> PriorTables:
        concentration, discount, most = self._two_parameters()
        log_one = -log_rising_factorial(concentration + 1.0, n - 1)
        opening = _two_parameter_openings(concentration, discount, most, n)
        return PriorTables(_joining(discount, n), opening, concentration, discount, log_one)

    def _draw(self, rng: np.random.Generator, labels: IntArray) -> None:
        from permix.partitions.priors_jit import sample_two_parameter

        sample_two_parameter(rng, *self._two_parameters(), labels)

    def expected_clusters(self, n: int) -> float:
        concentration, discount, _ = self._two_parameters()
        # Exact by recursion, because P(new | K) is linear in K.
        expected = 1.0 if _count(n, "n") else 0.0
        for seated in range(1, n):
            expected += (concentration + discount * expected) / (concentration + seated)
        return expected


@dataclass(frozen=True)
class DirichletProcess(_TwoParameter):
    """Partition induced by a Dirichlet process (the Chinese restaurant process).

    Parameters
    ----------
    concentration : float or Gamma, default 1.0
        Positive; larger values give more groups. A :class:`Gamma` means that it is unknown and has
        this prior; then every method below averages over it (by quadrature where no formula is known), and
        each draw of ``sample`` has its own.

    Examples
    --------
    >>> from permix import DirichletProcess
    >>> prior = DirichletProcess(concentration=1.0)
    >>> round(prior.log_prob([0, 0, 1]), 4)  # 1/1 * 1/2 * 1/3
    -1.7918
    >>> np.exp(prior.sequential_log_weights([3, 1])).round(2)
    array([0.6, 0.2, 0.2])
    """

    concentration: float | Gamma = 1.0

    def __post_init__(self) -> None:
        if not isinstance(self.concentration, Gamma):
            _store_positive(self, "concentration", " or a Gamma prior")

    @classmethod
    def named(cls, **settings: Any) -> Self:
        """Return the prior of a user who gives its name: unless given, the concentration is learned."""
        return cls(**{"concentration": Gamma(1.0, 1.0), **settings})

    def _two_parameters(self) -> tuple[float, float, float]:
        given = self.concentration
        return given.mean if isinstance(given, Gamma) else given, 0.0, math.inf

    def _log_prob_of_sizes(self, sizes: npt.NDArray[np.int64]) -> float:
        if not isinstance(self.concentration, Gamma):
            return super()._log_prob_of_sizes(sizes)
        from scipy.special import gammaln

        n = int(sizes.sum())
        return float(gammaln(sizes).sum()) + _log_mean_of_power(self.concentration, len(sizes), n)

    def _log_weights(self, sizes: npt.NDArray[np.int64]) -> FloatArray:
        if not isinstance(self.concentration, Gamma):
            return super()._log_weights(sizes)
        n, k = int(sizes.sum()), len(sizes)
        # The posterior mean of the concentration, were the next observation to join a cluster.
        log_new = _log_mean_of_power(self.concentration, k + 1, n + 1)
        return np.append(np.log(sizes), log_new - _log_mean_of_power(self.concentration, k, n + 1))

    def _draw(self, rng: np.random.Generator, labels: IntArray) -> None:
        gamma = self.concentration
        if isinstance(gamma, Gamma):
            drawn = rng.gamma(gamma.shape, 1.0 / gamma.rate, len(labels))
            for row, value in zip(labels, np.maximum(drawn, SMALLEST_CONCENTRATION).tolist(), strict=True):
                DirichletProcess(value)._draw(rng, row[np.newaxis])
        else:
            super()._draw(rng, labels)

    def expected_clusters(self, n: int) -> float:
        if not isinstance(self.concentration, Gamma):
            return super().expected_clusters(n)
        return _mean_clusters(self.concentration, n) if _count(n, "n") else 0.0


@dataclass(frozen=True)
class PitmanYor(_TwoParameter):
    """Partition induced by a Pitman–Yor process: group sizes with power-law tails.

    Parameters
    ----------
    concentration : float, default 1.0
        Greater than ``-discount``.
    discount : float, default 0.25
        In [0, 1); 0 is the Dirichlet process.

    Examples
    --------
    >>> from permix import PitmanYor
    >>> PitmanYor(1.0, discount=0.5).expected_clusters(100)  # doctest: +ELLIPSIS
    20.6...
    """

    concentration: float = 1.0
    discount: float = 0.25

    def __post_init__(self) -> None:
        if isinstance(self.concentration, Gamma):
            number = " must be a number; only DirichletProcess can learn it"
            raise DataError(_field(self, "concentration"), number)
        _store_number(self, "concentration")
        discount = _store_number(self, "discount")
        if not 0.0 <= discount < 1.0:
            raise DataError(_field(self, "discount"), f" must be at least 0 and less than 1, not {discount}")
        if not self.concentration > -discount:
            least = f" must exceed -discount = {-discount}, not {self.concentration}"
            raise DataError(_field(self, "concentration"), least)

    def _two_parameters(self) -> tuple[float, float, float]:
        return self.concentration, self.discount, math.inf


@dataclass(frozen=True)
class FiniteDirichlet(_TwoParameter):
    """Partition induced by weights from a symmetric Dirichlet over ``n`` groups.

    Groups without observations do not count: ``log_prob`` is the probability of the
    unlabeled partition, summed over the ``n! / (n - K)!`` ways to name its K groups.

    Parameters
    ----------
    n : int
        Number of groups, some of which may have no observations.
    pseudo_count : float, default 1.0
        Positive Dirichlet parameter of every group.

    Examples
    --------
    >>> from permix import FiniteDirichlet
    >>> FiniteDirichlet(2).log_prob([0, 1, 2])
    -inf
    """

    n: int
    pseudo_count: float = 1.0

    def __post_init__(self) -> None:
        if isinstance(self.n, bool) or not isinstance(self.n, Integral) or not 1 <= self.n < 2**31:
            number = f" must be a whole number, at least 1 and below 2³¹, not {self.n!r}"
            raise DataError(Wording("FiniteDirichlet.n", "the number of groups"), number)
        object.__setattr__(self, "n", int(self.n))
        _store_pseudo_count(self)

    def most_clusters(self, n: int) -> int:
        return min(n, self.n)

    def _two_parameters(self) -> tuple[float, float, float]:
        return self.n * self.pseudo_count, -self.pseudo_count, float(self.n)


@dataclass(frozen=True)
class MixtureOfFiniteMixtures(PartitionPrior):
    """Partition induced by a finite mixture with an unknown number of groups.

    The number of groups K has K - 1 ~ Poisson(``rate``); given K, weights are from a symmetric Dirichlet
    with parameter ``pseudo_count`` (Miller & Harrison 2018). Unlike a Dirichlet process, the number of groups
    that the data show does not grow with the number of observations, and settles on the true one.

    Parameters
    ----------
    rate : float, default 1.0
        Positive; mean of K - 1. Large values of K are very improbable: at rate 1, K = 20 has 3e-18.
    pseudo_count : float, default 1.0
        Positive Dirichlet parameter of every group (γ); small values allow groups of very unequal sizes.

    Examples
    --------
    >>> from permix import MixtureOfFiniteMixtures
    >>> prior = MixtureOfFiniteMixtures()
    >>> prior.expected_clusters(1000)  # doctest: +ELLIPSIS
    1.997...
    >>> prior.n_components_probabilities(n_clusters=3, n=100)[:6].round(3)
    array([0.   , 0.   , 0.   , 0.962, 0.037, 0.001])
    """

    rate: float = 1.0
    pseudo_count: float = 1.0

    def __post_init__(self) -> None:
        _store_positive(self, "rate")
        _store_pseudo_count(self)
        if self.rate > MOST_RATE:
            raise DataError(_field(self, "rate"), f" must be at most {MOST_RATE:,.0f}, not {self.rate}")

    @lru_cache(maxsize=8)  # noqa: B019 - specifications are few, small and hashable
    def tables(self, n: int) -> PriorTables:
        log_v = self._log_v(n, n)
        log_g = math.log(self.pseudo_count)
        log_one = log_g + float(log_v[1]) if n else 0.0
        discount = -self.pseudo_count
        opening = _up_to(n, log_g + np.diff(log_v))
        return PriorTables(_joining(discount, n), opening, math.nan, discount, log_one)

    def _log_v(self, n: int, most: int) -> FloatArray:
        """Log of V_n(t) = sum over k >= t of p(k) k! / (k - t)! / (γk)^(n), for t = 0 ... ``most``.

        The term of k + 1 is at most 2 rate / (k + 1 - t) times that of k: from k = t + 4 rate on terms are at
        least halved each time, and those left out are less than 2^-MORE_TERMS of the largest.
        """
        n_terms = math.ceil(4.0 * self.rate) + MORE_TERMS
        log_terms = self._log_terms(np.arange(most + n_terms), n)
        windows = np.lib.stride_tricks.sliding_window_view(log_terms, n_terms)
        log_v = np.empty(most + 1)
        step = max(1, 10**6 // n_terms)
        for first in range(0, most + 1, step):
            part = windows[first : first + step] - _log_factorials(n_terms)
            log_v[first : first + step] = np.logaddexp.reduce(part, axis=1)
        return log_v

    def _log_terms(self, k: npt.NDArray[np.int64], n: int) -> FloatArray:
        """Log of p(k) k! / (γk)^(n); there is no mixture of 0 groups."""
        terms = np.full(len(k), -np.inf)
        for place, value in enumerate(k.tolist()):
            if value > 0:  # k! / (k - 1)! = k, and the (k - 1)! is Poisson's
                terms[place] = math.log(value) + (value - 1.0) * math.log(self.rate) - self.rate
                terms[place] -= log_rising_factorial(self.pseudo_count * value, n)
        return terms

    def n_components_probabilities(self, n_clusters: int, n: int) -> FloatArray:
        """Probabilities of the number of all groups given that ``n`` observations show ``n_clusters`` groups.

        A group may exist and have no observation yet. Given the number of groups with observations, neither
        their sizes nor the data say more: p(k | t) is proportional to p(k) k! / (k - t)! / (γk)^(n).

        Parameters
        ----------
        n_clusters : int
            Number of groups with observations t, from 1 to ``n`` (0 if ``n`` is 0).
        n : int
            Number of observations.

        Returns
        -------
        ndarray
            Entry k is the probability of k groups. Ends where what is left is less than 1e-12.
        """
        if not min(1, _count(n, "n")) <= _count(n_clusters, "n_clusters") <= n:
            raise DataError(f"{n:,} observations cannot show {n_clusters} groups")
        n_terms = math.ceil(4.0 * self.rate) + MORE_TERMS
        log_terms = self._log_terms(n_clusters + np.arange(n_terms), n) - _log_factorials(n_terms)
        probabilities = np.exp(log_terms - np.logaddexp.reduce(log_terms))
        kept = int(np.searchsorted(-np.cumsum(probabilities[::-1])[::-1], -1e-12))
        return np.concatenate([np.zeros(n_clusters), probabilities[:kept]])

    def n_components_posterior(self, n_clusters: npt.ArrayLike, n: int) -> FloatArray:
        """Posterior probabilities of the number of all groups, given draws of the number with observations.

        Parameters
        ----------
        n_clusters : array-like of int
            Numbers of groups that the ``n`` observations show, one for each posterior draw.
        n : int
            Number of observations.

        Returns
        -------
        ndarray
            Entry k is the probability of k groups: the mean of :meth:`n_components_probabilities` over draws.
        """
        numbers, counts = np.unique(np.asarray(n_clusters), return_counts=True)
        parts = [self.n_components_probabilities(number, n) for number in numbers.tolist()]
        total = np.zeros(max(map(len, parts)))
        for part, count in zip(parts, counts, strict=True):
            total[: len(part)] += part * (count / counts.sum())
        return total

    def _draw(self, rng: np.random.Generator, labels: IntArray) -> None:
        numbers = 1 + rng.poisson(self.rate, len(labels))
        for row, number in zip(labels, numbers.tolist(), strict=True):
            FiniteDirichlet(number, self.pseudo_count)._draw(rng, row[np.newaxis])

    def expected_clusters(self, n: int) -> float:
        if _count(n, "n") == 0:
            return 0.0
        probabilities = self.n_components_probabilities(0, 0)
        log_rising = [log_rising_factorial(self.pseudo_count * k, n) for k in range(1, len(probabilities))]
        k = np.arange(1, len(probabilities))
        # A component has no observation with probability (γ(k - 1))^(n) / (γk)^(n).
        means = k * -np.expm1(np.diff([-np.inf, *log_rising]) * -1.0)
        return float(np.dot(probabilities[1:], means))


# The series of V_n has some 4 × rate terms.
MOST_RATE = 10_000.0
MORE_TERMS = 64


@lru_cache(maxsize=8)
def _joining(discount: float, n: int) -> FloatArray:
    """Log weights of joining a cluster of 0 ... n members."""
    return np.append(0.0, np.log(np.arange(1, n + 1) - discount))


@lru_cache(maxsize=8)
def _two_parameter_openings(concentration: float, discount: float, most: float, n: int) -> FloatArray:
    """Log weights of opening a cluster beside 0 ... n."""
    if discount < 0.0:  # a finite symmetric Dirichlet
        return _up_to(n, np.log(-discount * (most - np.arange(int(min(n, most))))))
    if discount == 0.0:
        return np.full(n + 1, math.log(concentration))
    weights = concentration + discount * np.arange(n + 1)
    return np.log(weights, out=np.zeros(n + 1), where=weights > 0.0)  # as below


def _log_two_parameter_opening(concentration: float, discount: float, n_clusters: float) -> float:
    weight = concentration + discount * n_clusters
    # The first datum opens a cluster even where concentration <= 0.
    return math.log(weight) if weight > 0.0 else 0.0


def _up_to(n: int, log_new: FloatArray) -> FloatArray:
    """Log weights of opening a cluster beside 0 ... n, minus infinity beyond those given."""
    return np.append(log_new, np.full(n + 1 - len(log_new), -np.inf))


def _log_factorials(n: int) -> FloatArray:
    """Log of 0! ... (n - 1)!."""
    return np.cumsum(np.log(np.maximum(np.arange(n), 1)))


def prior_from_description(description: Mapping[str, Any]) -> PartitionPrior | Gamma:
    """Rebuild a prior from what its ``describe()`` gave.

    Examples
    --------
    >>> from permix import PitmanYor
    >>> from permix.partitions import prior_from_description
    >>> prior_from_description(PitmanYor(2.0, 0.5).describe())
    PitmanYor(concentration=2.0, discount=0.5)
    """
    kinds = {cls.__name__: cls for cls in (*PRIORS.values(), Gamma)}
    if not isinstance(description, Mapping) or description.get("prior") not in kinds:
        raise DataError(
            f"{description!r} does not describe a prior; its 'prior' must be one of {', '.join(kinds)}"
        )
    values = {key: value for key, value in description.items() if key != "prior"}
    if isinstance(values.get("concentration"), Mapping):
        values["concentration"] = prior_from_description(values["concentration"])
    try:
        return kinds[description["prior"]](**values)
    except TypeError as error:
        raise DataError(f"{description!r} does not describe a {description['prior']}: {error}") from None


# --- a concentration with a Gamma prior ---------------------------------------------------------


def _log_mean_of_power(gamma: Gamma, k: int, n: int) -> float:
    """Log of E[alpha^k / (alpha (alpha + 1) ... (alpha + n - 1))] under the Gamma prior of alpha."""
    from permix.partitions.concentration_jit import log_mean_power

    return float(log_mean_power(gamma.shape, gamma.rate, k, n)) if n else 0.0


def _mean_clusters(gamma: Gamma, n: int) -> float:
    """Mean number of clusters of n data under the Gamma prior of alpha, by quadrature over log alpha.

    The integrand is log-concave in log alpha, so that a single mode and the points 40 below it on either
    side bound the whole mass.
    """
    from scipy.integrate import quad
    from scipy.optimize import minimize_scalar
    from scipy.special import digamma

    def log_density(t: float) -> float:
        alpha = math.exp(min(t, 700.0))
        log_clusters = math.log1p(alpha * float(digamma(alpha + n) - digamma(alpha + 1.0)))
        return gamma.shape * t - gamma.rate * alpha + log_clusters

    start = math.log(gamma.mean)
    mode = float(minimize_scalar(lambda t: -log_density(t), bracket=(start - 1.0, start)).x)
    top = log_density(mode)
    tolerance = max(1e-11, 1e-14 * abs(top))  # rounding leaves no more digits than this
    total = 0.0
    for direction in (-1.0, 1.0):
        reach = 1e-6
        while log_density(mode + direction * reach) > top - 40.0:
            reach *= 2.0
        low, high = sorted((mode, mode + direction * reach))
        total += quad(
            lambda t: math.exp(log_density(t) - top), low, high, limit=500, epsabs=0.0, epsrel=tolerance
        )[0]
    log_constant = gamma.shape * math.log(gamma.rate) - math.lgamma(gamma.shape)
    return math.exp(top + math.log(total) + log_constant)


# --- checks -------------------------------------------------------------------------------------


def _store_number(spec: object, name: str, alternative: str = "") -> float:
    """Check a frozen dataclass's field and store it as a float."""
    value = getattr(spec, name)
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
        raise DataError(_field(spec, name), f" must be a finite number{alternative}, not {value!r}")
    object.__setattr__(spec, name, float(value))
    return float(value)


def _store_pseudo_count(prior: Any) -> None:
    _store_positive(prior, "pseudo_count")
    if prior.pseudo_count > MOST_PSEUDO_COUNT:
        raise DataError(f"pseudo_count must be {MOST_PSEUDO_COUNT:g} at most, got {prior.pseudo_count:g}")


def _store_positive(spec: object, name: str, alternative: str = "") -> None:
    value = _store_number(spec, name, alternative)
    if value <= 0.0:
        raise DataError(_field(spec, name), f" must be positive, not {value}")


def _field(spec: object, name: str) -> Wording:
    """Name a field in a message."""
    option = f"the {name} of gamma(SHAPE,RATE)" if isinstance(spec, Gamma) else f"--{name.replace('_', '-')}"
    return Wording(f"{type(spec).__name__}.{name}", option)


def _count(value: int, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 0:
        raise DataError(f"{name} must be a whole number, 0 or more, not {value!r}")
    return int(value)
