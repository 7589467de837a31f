"""What the generators share: readable results, cluster labels, and argument checks."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from permix.errors import DataError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
T = TypeVar("T")


def readable(result: type[T]) -> type[T]:
    """Give a named tuple a repr with one field per line that shows shapes instead of numbers."""

    def shown(self: Any) -> str:
        lines = [f"    {name}={_brief(value)}," for name, value in zip(self._fields, self, strict=True)]
        return "\n".join([f"{type(self).__name__}(", *lines, ")"])

    result.__repr__ = shown  # type: ignore[method-assign]
    return result


def _brief(value: Any) -> str:
    if isinstance(value, np.ndarray) and value.size > 12:
        return f"{value.dtype} array of shape {value.shape}"
    if isinstance(value, tuple) and len(value) > 6:
        return f"tuple of {len(value)}"
    if isinstance(value, tuple) and any(isinstance(entry, np.ndarray) for entry in value):
        return f"tuple of {len(value)} arrays"
    text = repr(value).splitlines()
    return text[0] + (" …" if len(text) > 1 else "")


def at_least(name: str, value: float, least: float) -> None:
    """Refuse a size or scale below ``least``."""
    if not value >= least:
        raise DataError(f"{name} must be at least {least}, not {value}")


def fraction(name: str, value: float) -> None:
    """Refuse what is not a fraction."""
    if not 0 <= value <= 1:
        raise DataError(f"{name} is a fraction between 0 and 1, not {value}")


def mixture_weights(weights: ArrayLike | None, n_clusters: int) -> Floats:
    """Return weights that sum to one; equal ones by default."""
    at_least("the number of groups", n_clusters, 1)
    if weights is None:
        return np.full(n_clusters, 1.0 / n_clusters)
    array = np.asarray(weights, dtype=float)
    if array.shape != (n_clusters,) or np.any(array < 0) or not 0 < array.sum() < np.inf:
        raise DataError(
            f"weights must be {n_clusters} numbers, none negative and not all zero, not {weights!r}"
        )
    return array / array.sum()


def draw_labels(rng: np.random.Generator, n: int, weights: Floats) -> Ints:
    """Draw ``n`` independent cluster labels."""
    at_least("the number of samples", n, 1)
    return rng.choice(weights.size, size=n, p=weights)


def hide(rng: np.random.Generator, data: NDArray[Any], missing: float, code: float) -> NDArray[Any]:
    """Overwrite a random share of the entries, in place, with the code for missing."""
    fraction("missing", missing)
    if missing > 0:
        data[rng.random(data.shape) < missing] = code
    return data


def draw_categories(rng: np.random.Generator, probabilities: Floats) -> Ints:
    """Draw one category per leading index; the last axis holds the probabilities."""
    cumulative = np.cumsum(probabilities, axis=-1)
    uniform = rng.random(probabilities.shape[:-1]) * cumulative[..., -1]
    return np.sum(cumulative <= uniform[..., None], axis=-1)
