"""Distances between partitions, and what posterior draws say about pairs of observations."""

from __future__ import annotations

import math
from functools import partial
from typing import Literal

import numpy as np
import numpy.typing as npt

from permix.errors import DataError
from permix.partitions.labels import IntArray, as_draws, as_labels
from permix.runtime.threads import run_in_threads

FloatArray = npt.NDArray[np.float64]
Loss = Literal["vi", "binder"]


def variation_of_information(a: npt.ArrayLike, b: npt.ArrayLike, base: float = 2.0) -> float:
    """Variation of information between two partitions (Meilă 2007).

    The information that each partition holds about the observations and the other does not,
    H(a | b) + H(b | a). A metric; 0 for equal partitions, at most log(n).

    Parameters
    ----------
    a, b : array-like of int, shape (n,)
        Group of each observation; the names of groups do not matter.
    base : float, default 2.0
        Base of the logarithm; 2 gives bits, as in Wade & Ghahramani (2018) and the R package salso.

    Examples
    --------
    >>> from permix import variation_of_information
    >>> variation_of_information([0, 0, 1, 1], [5, 5, 5, 5])
    1.0
    """
    if not base > 1.0 or math.isinf(base):
        raise DataError(f"base must be a finite number greater than 1, not {base}")
    return _loss(a, b, "vi") / math.log2(base)


def binder_loss(a: npt.ArrayLike, b: npt.ArrayLike) -> float:
    """Fraction of the pairs of observations that one partition joins and the other separates.

    Binder's loss with equal costs, divided by the number n (n - 1) / 2 of pairs: one minus the Rand
    index. (salso divides by n² / 2 instead.)

    Parameters
    ----------
    a, b : array-like of int
        As for :func:`variation_of_information`.

    Examples
    --------
    >>> from permix.partitions import binder_loss
    >>> binder_loss([0, 0, 1], [0, 0, 0])
    0.6666666666666666
    """
    return _loss(a, b, "binder")


def adjusted_rand(a: npt.ArrayLike, b: npt.ArrayLike) -> float:
    """Adjusted Rand index (Hubert & Arabie 1985): 1 for equal partitions, about 0 for unrelated ones.

    Parameters
    ----------
    a, b : array-like of int, shape (n,)
        Group of each observation.

    Examples
    --------
    >>> from permix.partitions import adjusted_rand
    >>> adjusted_rand([0, 0, 1, 1], [1, 1, 0, 0])
    1.0
    """
    first, second = _pair(a, b)
    pairs = len(first) * (len(first) - 1) / 2
    f = loss_table("binder", len(first))
    joined_a, joined_b = (float(f[np.bincount(labels)].sum()) for labels in (first, second))
    joined_both = (joined_a + joined_b - binder_loss(first, second) * pairs) / 2
    expected = joined_a * joined_b / pairs if pairs else 0.0
    largest = (joined_a + joined_b) / 2
    # Both trivial in the same way (all together, or all apart): nothing is left to chance.
    return 1.0 if largest == expected else (joined_both - expected) / (largest - expected)


def similarity_matrix(draws: npt.ArrayLike) -> npt.NDArray[np.float32]:
    """Posterior probability that two observations share a group.

    Parameters
    ----------
    draws : array-like of int, shape (draws, n) or (chains, draws, n)
        Label vectors; labels need not agree between draws.

    Returns
    -------
    ndarray of float32, shape (n, n)
        Symmetric, ones on the diagonal. Takes 4 n² bytes: 400 MB for 10,000 observations.

    Examples
    --------
    >>> from permix import similarity_matrix
    >>> similarity_matrix([[0, 0, 1], [1, 0, 0]])
    array([[1. , 0.5, 0. ],
           [0.5, 1. , 0.5],
           [0. , 0.5, 1. ]], dtype=float32)
    """
    from permix.partitions.geometry_jit import similarity_rows

    labels = as_draws(draws)
    n = labels.shape[1]
    out = np.zeros((n, n), np.float32)
    if n == 0:
        return out
    narrow = labels.astype(np.uint16 if labels.max() < 2**16 else np.int32)
    # Counts are kept in the type of the labels, so they must not run past it.
    for block in np.array_split(narrow, -(-len(narrow) // 65_535)):
        rows = partial(similarity_rows, block)
        run_in_threads(lambda i, rows=rows: rows(i, min(i + 64, n), 512, out), range(0, n, 64))  # type: ignore[misc]
    out /= len(labels)
    return out


def how_sure(draws: npt.ArrayLike, labels: npt.ArrayLike) -> FloatArray:
    """Return how sure the group of each observation is.

    The posterior probability that the observation shares a group with another member of its
    group in ``labels``, averaged over those members. For an observation that is alone: the
    posterior probability of being alone. Costs O(draws × n), without an n × n matrix.

    Parameters
    ----------
    draws : array-like of int, shape (draws, n) or (chains, draws, n)
        Posterior label vectors.
    labels : array-like of int, shape (n,)
        The partition in question, usually a point estimate.

    Returns
    -------
    ndarray, shape (n,)
        Numbers between 0 and 1.

    Examples
    --------
    >>> from permix.partitions import how_sure
    >>> how_sure([[0, 0, 0, 1], [0, 0, 1, 1]], [0, 0, 0, 1])
    array([0.75, 0.75, 0.5 , 0.5 ])
    """
    from permix.partitions.geometry_jit import add_agreement

    all_draws = as_draws(draws)
    partition = check_partition(labels, all_draws.shape[1])
    sizes = np.bincount(partition)
    agreement = np.zeros(len(partition))
    for draw in all_draws:
        add_agreement(partition, sizes, draw, n_clusters_of(draw), agreement)
    return agreement / len(all_draws)


# --- shared with the point estimate and the credible ball ---------------------------------------


def loss_table(loss: str, n: int) -> FloatArray:
    """The function f of the loss (see geometry_kernel) at 0, 1, ..., n."""
    x = np.arange(n + 1, dtype=np.float64)
    if loss == "vi":
        return x * np.log2(np.maximum(x, 1.0))
    if loss == "binder":
        return x * (x - 1.0) / 2.0
    raise DataError(f"loss must be 'vi' or 'binder', not {loss!r}")


def loss_scale(loss: str, n: int) -> float:
    """What an unscaled loss is divided by."""
    return max(float(n) if loss == "vi" else n * (n - 1) / 2.0, 1.0)


def losses_to(labels: IntArray, draws: IntArray, loss: str) -> FloatArray:
    """Loss between one canonical partition and each canonical draw."""
    from permix.partitions.weighted_draws import WeightedDraws

    return WeightedDraws(draws, np.ones(len(draws)), loss).losses_of(labels)


def check_partition(labels: npt.ArrayLike, n: int) -> IntArray:
    """A label vector for the observations of the draws, in canonical form."""
    partition = as_labels(labels)
    if len(partition) != n:
        raise DataError(f"labels has {len(partition)} observations but draws has {n}")
    return partition


def n_clusters_of(labels: IntArray) -> int:
    return int(labels.max()) + 1 if len(labels) else 0


def _pair(a: npt.ArrayLike, b: npt.ArrayLike) -> tuple[IntArray, IntArray]:
    first, second = as_labels(a, "a"), as_labels(b, "b")
    if len(first) != len(second):
        raise DataError(f"a has {len(first)} observations but b has {len(second)}")
    return first, second


def _loss(a: npt.ArrayLike, b: npt.ArrayLike, loss: str) -> float:
    first, second = _pair(a, b)
    return float(losses_to(first, second[np.newaxis], loss)[0])
