"""Synthetic rankings and preferences: mixtures of Mallows, generalized Mallows and angle-based models."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from permix.data.csr import indptr_of
from permix.data.preferences import Preferences
from permix.data.rankings import Rankings
from permix.datasets.truth import Floats, Ints, at_least, draw_labels, fraction, mixture_weights, readable
from permix.errors import DataError
from permix.runtime.seeds import RandomState, generator

Orders = NDArray[np.int32]
Lengths = int | tuple[int, int] | NDArray[np.integer[Any]] | None

# Section 6 of Meilă & Chen (2010), 20 items and 10 clusters of 500: list length, first θ, fall of θ per rank.
MEILA_CHEN = {
    "meila-chen-1": (10, 1.0, 0.0),
    "meila-chen-2": (19, 1.0, 0.0),
    "meila-chen-3": (10, 1.5, 0.1),
    "meila-chen-4": (19, 1.5, 0.05),
}


@readable
class MallowsMixtureData(NamedTuple):
    """Rankings or preferences with the Mallows mixture that made them.

    Attributes
    ----------
    data : Rankings or Preferences
        What is observed.
    labels : array (n_samples,)
    centers : int array (n_components, n_items)
        Central orderings, best first.
    dispersions : array (n_components,)
        φ in [0, 1]: 0 always gives the center, 1 is uniform.
    weights : array (n_components,)
    complete : int array (n_samples, n_items)
        The full orderings of which ``data`` shows a part.
    """

    data: Rankings | Preferences
    labels: Ints
    centers: Orders
    dispersions: Floats
    weights: Floats
    complete: Orders


@readable
class GeneralizedMallowsMixtureData(NamedTuple):
    """Top lists with the generalized Mallows mixture that made them.

    Attributes
    ----------
    data : Rankings
    labels : array (n_samples,)
    centers : int array (n_components, n_items)
        Central orderings, best first.
    theta : array (n_components, longest list)
        Decay of each stage.
    weights : array (n_components,)
    """

    data: Rankings
    labels: Ints
    centers: Orders
    theta: Floats
    weights: Floats


@readable
class AngleMixtureData(NamedTuple):
    """Full rankings with the mixture of angle-based models that made them.

    Attributes
    ----------
    data : Rankings
    labels : array (n_samples,)
    directions : array (n_components, n_items)
        Unit vectors that sum to zero; the item with the smallest entry is preferred.
    concentrations : array (n_components,)
    weights : array (n_components,)
    exact : bool
        Whether the draws are exact (up to 20 items) or each the end of a Markov chain.
    """

    data: Rankings
    labels: Ints
    directions: Floats
    concentrations: Floats
    weights: Floats
    exact: bool


def _centers(rng: np.random.Generator, centers: ArrayLike | None, n_components: int, n_items: int) -> Orders:
    identity = np.tile(np.arange(n_items, dtype=np.int32), (n_components, 1))
    if centers is None:
        return rng.permuted(identity, axis=1)
    given = np.array(centers)
    if given.shape != identity.shape or np.any(np.sort(given, axis=1) != identity):
        raise DataError(f"centers must be {n_components} orderings of 0..{n_items - 1}, one per row")
    return given.astype(np.int32)


def make_mallows_mixture(
    n_samples: int = 500,
    n_items: int = 8,
    n_components: int = 3,
    *,
    observed: Literal["full", "top", "pairs"] = "full",
    top: int | None = None,
    dispersion: ArrayLike = 0.5,
    weights: ArrayLike | None = None,
    pair_fraction: float = 0.2,
    centers: ArrayLike | None = None,
    random_state: RandomState = None,
) -> MallowsMixtureData:
    """Draw rankings from a mixture of Mallows models, exactly, by repeated insertion.

    The data may show only a part of each.

    Parameters
    ----------
    n_samples, n_items, n_components : int
    dispersion : float or one per group
        φ in P(r) ∝ φ^d(r, center), between 0 and 1.
    observed : {"full", "top", "pairs"}
        What the data show of each ranking: all of it; its first ``top`` items, the rest below; or
        each pair of items with probability ``pair_fraction``, independently.
    top : int, optional
        Length of the top lists, for ``observed="top"``.
    pair_fraction : float
        For ``observed="pairs"``.
    weights : array, optional
        Mixture weights, equal by default.
    centers : int array (n_components, n_items), optional
        Central orderings; uniformly random by default.
    random_state : int, Generator or None

    Examples
    --------
    >>> from permix.datasets import make_mallows_mixture
    >>> votes = make_mallows_mixture(100, 6, 2, dispersion=[0.3, 0.6], random_state=1)
    >>> votes.data.is_full, votes.centers.shape
    (True, (2, 6))
    """
    from permix.kernels.insertion import sample_mallows

    rng = generator(random_state)
    at_least("n_items", n_items, 1)
    shares = mixture_weights(weights, n_components)
    dispersions = np.broadcast_to(np.asarray(dispersion, dtype=float), (n_components,)).copy()
    if np.any(dispersions < 0) or np.any(dispersions > 1):
        raise DataError(f"dispersion lies between 0 (always the center) and 1 (uniform), not {dispersion!r}")
    if observed not in ("full", "top", "pairs"):
        raise DataError(f"observed is 'full', 'top' or 'pairs', not {observed!r}")
    if (observed == "top") != (top is not None):
        raise DataError("top=... and observed='top' go together")
    if top is not None and not 1 <= top <= n_items:
        raise DataError(f"top must lie between 1 and {n_items}, not {top}")
    middle = _centers(rng, centers, n_components, n_items)
    labels = draw_labels(rng, n_samples, shares)
    complete = np.empty((n_samples, n_items), dtype=np.int32)
    with np.errstate(divide="ignore"):
        thetas = -np.log(dispersions)
    for component in range(n_components):
        drawn = np.empty((np.count_nonzero(labels == component), n_items), dtype=np.int32)
        sample_mallows(rng, middle[component], thetas[component], drawn)
        complete[labels == component] = drawn
    data: Rankings | Preferences = Rankings._from_arrays(complete[:, :top], range(n_items))
    if observed == "pairs":
        data = _reveal_pairs(rng, complete, pair_fraction)
    return MallowsMixtureData(data, labels, middle, dispersions, shares, complete)


def make_generalized_mallows_mixture(
    n_samples: int = 500,
    n_items: int = 10,
    n_components: int = 3,
    *,
    lengths: int | tuple[int, int] | NDArray[np.integer[Any]] | None = None,
    theta: ArrayLike = 1.0,
    weights: ArrayLike | None = None,
    centers: ArrayLike | None = None,
    preset: str | None = None,
    center_weight: float = 1.0,
    random_state: RandomState = None,
) -> GeneralizedMallowsMixtureData:
    """Draw top lists from a mixture of generalized Mallows models, exactly, stage by stage.

    Parameters
    ----------
    n_samples, n_items, n_components : int
    theta : float, array (stages,) or array (n_components, stages)
        Decay of each stage; at least as many stages as the longest list.
    lengths : int, (low, high) or array (n_samples,), optional
        Length of every list; or uniform between low and high, both included; or given one by one.
        Full rankings by default.
    weights : array, optional
        Mixture weights, equal by default.
    centers : int array (n_components, n_items), optional
        Central orderings; uniformly random by default.
    preset : {"meila-chen-1", "meila-chen-2", "meila-chen-3", "meila-chen-4"}, optional
        The data sets of section 6 of Meilă & Chen (2010): 20 items, 500 lists from each of 10
        groups, lists of 10 or 19 items, θ = 1 or falling from 1.5. All arguments above are then
        fixed by the preset.
    center_weight : float
        For presets: the strength with which the centers are pulled together (see Notes).
    random_state : int, Generator or None

    Notes
    -----
    The paper draws each center "from the conjugate posterior of σ, conditioned on 100 permutations
    drawn randomly from a GM with θ = 0.7" so that groups overlap. With the full weight of 100
    observations that posterior is all but a point mass and the ten centers coincide, so the 100
    permutations enter here as one observation with their average statistics (the equivalent
    sample size ν = 1 that the paper uses for its priors). ``center_weight`` scales this: 100 is
    the full weight, 0 gives uniformly random centers.

    Examples
    --------
    >>> from permix.datasets import make_generalized_mallows_mixture
    >>> lists = make_generalized_mallows_mixture(50, 12, 2, lengths=(2, 5), random_state=1)
    >>> int(lists.data.lengths.min()), int(lists.data.lengths.max())
    (2, 5)
    """
    from permix.kernels.insertion import sample_top_lists

    rng = generator(random_state)
    if preset is None:
        at_least("n_items", n_items, 1)
        shares = mixture_weights(weights, n_components)
        labels = draw_labels(rng, n_samples, shares)
        sizes = _lengths(rng, lengths, n_samples, n_items)
        middle = _centers(rng, centers, n_components, n_items)
        decay = _stages(theta, n_components, int(sizes.max()))
    else:
        if preset not in MEILA_CHEN:
            raise DataError(f"preset is one of {', '.join(MEILA_CHEN)}, not {preset!r}")
        t, first, fall = MEILA_CHEN[preset]
        n_samples, n_items, n_components = 5000, 20, 10
        shares = mixture_weights(None, n_components)
        labels = rng.permutation(np.repeat(np.arange(n_components), n_samples // n_components))
        sizes = np.full(n_samples, t)
        middle = _overlapping_centers(rng, n_components, n_items, center_weight)
        decay = np.tile(first - fall * np.arange(t), (n_components, 1))
    orders = np.full((n_samples, int(sizes.max())), -1, dtype=np.int32)
    for component in range(n_components):
        members = np.flatnonzero(labels == component)
        drawn = orders[members]
        sample_top_lists(rng, middle[component], decay[component], sizes[members], drawn)
        orders[members] = drawn
    data = Rankings._from_arrays(orders, range(n_items))
    return GeneralizedMallowsMixtureData(data, labels, middle, decay, shares)


def make_angle_mixture(
    n_samples: int = 500,
    n_items: int = 8,
    n_components: int = 2,
    *,
    weights: ArrayLike | None = None,
    directions: ArrayLike | None = None,
    concentration: ArrayLike = 5.0,
    random_state: RandomState = None,
) -> AngleMixtureData:
    """Draw full rankings from a mixture of angle-based models (Xu, Alvo & Yu 2018).

    With R the rank vector, 1 = best, and y = (R - (t+1)/2) / √(t(t²-1)/12), the model is
    P(R) ∝ exp(κ θ'y). Up to 20 items the draws are exact; beyond, each ranking is the end of its own
    Markov chain: see :meth:`permix.Angle.sample`.

    Parameters
    ----------
    n_samples, n_items, n_components : int
    concentration : float or one per group
        κ, not negative.
    weights : array, optional
        Mixture weights, equal by default.
    directions : array (n_components, n_items), optional
        θ; centered to sum zero and scaled to length one. Uniformly random by default.
    random_state : int, Generator or None

    Examples
    --------
    >>> from permix.datasets import make_angle_mixture
    >>> rankings = make_angle_mixture(100, 6, 2, concentration=20.0, random_state=1)
    >>> rankings.exact
    True
    """
    from permix.distributions.angle.angle import Angle

    rng = generator(random_state)
    at_least("n_items", n_items, 2)
    shares = mixture_weights(weights, n_components)
    kappa = np.broadcast_to(np.asarray(concentration, dtype=float), (n_components,)).copy()
    if not np.all((kappa >= 0) & (kappa < np.inf)):
        raise DataError(f"concentration must be finite and not negative, not {concentration!r}")
    if directions is None:
        given = rng.normal(size=(n_components, n_items))
    else:
        given = np.array(directions, dtype=float)
        if given.shape != (n_components, n_items):
            raise DataError(f"directions must have shape {(n_components, n_items)}, not {given.shape}")
    models = [Angle(direction, value) for direction, value in zip(given, kappa, strict=True)]
    labels = draw_labels(rng, n_samples, shares)
    orders = np.empty((n_samples, n_items), dtype=np.int32)
    for component, model in enumerate(models):
        members = np.flatnonzero(labels == component)
        orders[members] = model.sample(members.size, rng).orders
    theta = np.stack([model.direction for model in models])
    data = Rankings._from_arrays(orders, range(n_items))
    return AngleMixtureData(data, labels, theta, kappa, shares, models[0].exact_draws)


def _lengths(rng: np.random.Generator, lengths: Lengths, n_samples: int, n_items: int) -> Ints:
    if isinstance(lengths, tuple):
        sizes = rng.integers(*lengths, size=n_samples, endpoint=True)
    else:
        given = n_items if lengths is None else lengths
        sizes = np.broadcast_to(np.asarray(given, dtype=np.int64), (n_samples,))
    if sizes.min() < 1 or sizes.max() > n_items:
        raise DataError(f"lengths must lie between 1 and {n_items}, not {sizes.min()} to {sizes.max()}")
    return sizes


def _stages(theta: ArrayLike, n_components: int, longest: int) -> Floats:
    given = np.asarray(theta, dtype=float)
    if given.ndim == 0:
        given = np.full(longest, float(given))
    if given.shape[-1] < longest or (given.ndim == 2 and len(given) != n_components) or given.ndim > 2:
        raise DataError(
            f"theta has shape {given.shape}, but lists of up to {longest} items need {longest} stages "
            f"(for all groups, or for each of the {n_components})"
        )
    if np.any(np.isnan(given)) or np.any(given < 0):
        raise DataError("theta must not be negative or NaN")
    return np.ascontiguousarray(np.broadcast_to(given[..., :longest], (n_components, longest)))


def _overlapping_centers(
    rng: np.random.Generator, n_components: int, n_items: int, center_weight: float, theta: float = 0.7
) -> Orders:
    """Draw centers given 100 permutations around one ordering, by stages (Meilă & Chen 2010, lemma 2)."""
    from permix.kernels.insertion import sample_mallows

    at_least("center_weight", center_weight, 0)
    identity = np.arange(n_items, dtype=np.int32)
    permutations = np.empty((100, n_items), dtype=np.int32)
    sample_mallows(rng, identity, theta, permutations)
    place = np.argsort(permutations, axis=1)
    # before[a, b]: share of the permutations in which a comes before b.
    before = np.mean(place[:, :, None] < place[:, None, :], axis=0)
    centers = np.empty((n_components, n_items), dtype=np.int32)
    for component in range(n_components):
        left = list(range(n_items))
        for rank in range(n_items):
            cost = before[np.ix_(left, left)].sum(axis=0)
            log_weight = -theta * center_weight * cost
            weight = np.exp(log_weight - log_weight.max())
            centers[component, rank] = left.pop(rng.choice(len(left), p=weight / weight.sum()))
    return centers


def _reveal_pairs(rng: np.random.Generator, complete: Orders, pair_fraction: float) -> Preferences:
    fraction("pair_fraction", pair_fraction)
    n_samples, n_items = complete.shape
    upper, lower = np.triu_indices(n_items, 1)  # the item at place upper is better than that at lower
    chosen = _successes(rng, n_samples * upper.size, pair_fraction)
    agent, pair = np.divmod(chosen, max(upper.size, 1))
    pairs = np.column_stack([complete[agent, upper[pair]], complete[agent, lower[pair]]])
    indptr = indptr_of(np.bincount(agent, minlength=n_samples))
    return Preferences._from_arrays(items=range(n_items), pair_indptr=indptr, pairs=pairs)


def _successes(rng: np.random.Generator, n_trials: int, probability: float) -> Ints:
    """Return which of ``n_trials`` independent trials succeed, ascending; costs follow the successes."""
    if probability == 0 or n_trials == 0:
        return np.zeros(0, dtype=np.int64)
    found: list[Ints] = []
    last = -1
    while last < n_trials:
        expected = (n_trials - last) * probability
        gaps = rng.geometric(probability, size=int(expected + 4 * np.sqrt(expected)) + 8)
        positions = last + np.cumsum(gaps)
        found.append(positions[positions < n_trials])
        last = int(positions[-1])
    return np.concatenate(found)
