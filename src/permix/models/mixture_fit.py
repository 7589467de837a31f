"""The work behind :class:`permix.DPMixture`, free of scikit-learn, whose import takes a second.

The command line uses this directly; the estimator adds scikit-learn's conventions on top.
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from permix.errors import CellError, DataError, PermixWarning
from permix.families import FAMILIES, Family, GaussianNIW
from permix.moves import describe_move
from permix.moves.naming import Moves
from permix.moves.recipe import describe_burn_in, moves_of
from permix.moves.start import Start, check_start, seat_all_data
from permix.moves.state import MixtureState, score_empty
from permix.partitions import DirichletProcess, FiniteDirichlet, Gamma, PartitionPrior
from permix.partitions.point_estimate import PointEstimate, point_estimate
from permix.posterior import warn_if_chains_disagree
from permix.posterior.mixture import MixturePredictive
from permix.runtime.seeds import generator
from permix.runtime.settings import check_run_settings
from permix.sampling import Draws, run_chains

Array = npt.NDArray[Any]
# The predictive density is averaged over at most this many draws, evenly spaced over all chains.
MAX_PREDICTIVE_DRAWS = 200
# The point estimate minimises the expected loss over at most this many.
MAX_ESTIMATE_DRAWS = 1000
# From this many labels on, few searches do: they nearly always agree.
MANY_LABELS, FEW_RUNS = 500_000, 3


@dataclasses.dataclass(frozen=True)
class MixtureSettings:
    """What a user may choose; see :class:`permix.DPMixture` for what each means."""

    family: Family | str | None = None
    prior: PartitionPrior | None = None
    moves: Moves = "auto"
    burn_in_moves: Moves = "auto"
    init: Start = "sequential"
    n_draws: int = 1000
    n_burn_in: int = 500
    n_thin: int = 1
    n_chains: int = 2
    loss: Literal["vi", "binder"] = "vi"
    random_state: Any = None
    n_jobs: int | None = None
    progress: bool | None = None
    store: str | os.PathLike[str] | None = None

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if isinstance(value, np.generic):
                object.__setattr__(self, field.name, value.item())
        if self.loss not in ("vi", "binder"):
            raise DataError(f"loss must be 'vi' or 'binder', got {self.loss!r}")
        check_run_settings(self.n_jobs, self.progress)


class EstimatedPartition:
    """What fits of all mixtures show of their point estimate."""

    estimate: PointEstimate

    @cached_property
    def labels(self) -> npt.NDArray[np.int64]:
        """The point estimate; cluster 0 is the largest."""
        return by_size(self.estimate.labels)

    @cached_property
    def cluster_sizes(self) -> npt.NDArray[np.int64]:
        """Members of each cluster."""
        return np.bincount(self.labels)

    @property
    def n_clusters(self) -> int:
        """Number of clusters of ``labels``."""
        return len(self.cluster_sizes)


@dataclasses.dataclass
class MixtureFit(EstimatedPartition):
    """Draws of a mixture with all that is needed to use them.

    Attributes
    ----------
    settings : MixtureSettings
        As asked for.
    family, prior
        As fitted, defaults filled in.
    data
        What ``family.encode`` made of the ``n`` observations.
    draws : Draws
        Kept draws of all chains.
    estimate : PointEstimate
        Partition that minimises the posterior expected loss.
    feature_names : tuple of str, optional
        Names of the columns.
    """

    settings: MixtureSettings
    family: Family
    prior: PartitionPrior
    data: Any
    n: int
    draws: Draws
    estimate: PointEstimate
    feature_names: tuple[str, ...] | None = None

    @cached_property
    def cluster_parameters(self) -> dict[str, Array]:
        """Posterior means of the clusters' parameters given ``labels``."""
        return self.predictive().cluster_parameters(self.labels)

    def predictive(self) -> MixturePredictive:
        """Return a fresh scorer of new data; it has a state of its own, so threads do not share it."""
        return MixturePredictive(self.family, self.prior, self.data, self.n)

    def joint_under_estimate(self, data: Any, m: int) -> Array:
        """Return ln(weight × density) of new data under each cluster of ``labels`` and, last, a new one."""
        predictive = self.predictive()
        concentration = self.draws.arrays.get("concentration")
        log_weights = predictive.condition(
            self.labels, float(np.mean(concentration)) if concentration is not None else 0.0
        )
        joint = predictive.log_joint(data, m, score_empty(self.family, data, m), log_weights)
        impossible = np.flatnonzero(~np.isfinite(joint.max(axis=1, initial=-np.inf)))
        if impossible.size:
            raise DataError(
                f"row {impossible[0] + 1} has probability zero under every cluster: it is too far away"
            )
        # condition() numbers clusters by first appearance.
        first = np.unique(self.labels, return_index=True)[1]
        place = np.argsort(np.argsort(first))
        return np.column_stack([joint[:, place], joint[:, -1]])

    def log_density(self, data: Any, m: int) -> Array:
        """Return ln of the posterior predictive density of new data, averaged over draws."""
        return self.predictive().log_density(data, m, *self.spaced_draws())

    def sample(self, size: int, random_state: Any) -> Array:
        """Draw new data from the posterior predictive, in the user's terms."""
        if size < 1:
            raise DataError(f"size must be at least 1, got {size}")
        rows = self.predictive().sample(generator(random_state), size, *self.spaced_draws())
        return self.family.decode(rows)

    def spaced_draws(self) -> tuple[Array, Array]:
        """Labels and concentrations of evenly spaced draws, few enough to average over."""
        labels = evenly_spaced(self.draws.arrays["labels"], MAX_PREDICTIVE_DRAWS)
        concentration = self.draws.arrays.get("concentration")
        if concentration is None:
            return labels, np.zeros(len(labels))
        return labels, evenly_spaced(concentration, MAX_PREDICTIVE_DRAWS)


def fit_mixture(
    table: Any, settings: MixtureSettings, feature_names: tuple[str, ...] | None = None
) -> MixtureFit:
    """Run chains on a table, summarise them, and warn where chains disagree."""
    family = as_family(settings.family)
    prior = _as_prior(settings.prior)
    n = int(table.shape[0])
    burn_in_move, move = moves_of(settings.moves, settings.burn_in_moves, settings.n_burn_in, n)
    if n == 0:
        raise DataError("there are no rows to cluster")
    if isinstance(prior, FiniteDirichlet) and prior.n > n:
        warnings.warn(f"{prior.n} components are more than the {n} rows", PermixWarning, stacklevel=2)
    check_start(settings.init, n, prior)
    with naming_columns(feature_names):
        family = family.resolve(table)
        data = family.encode(table)
    for column, doubt in family.doubts(data)[:1]:
        name = repr(feature_names[column]) if feature_names else str(column + 1)
        warnings.warn(
            f"column {name}: {doubt}. Set prior_mean, prior_scale and noise_scale in the units of the data, "
            "or use the family gaussian-niw, which takes its scales from the data.",
            PermixWarning,
            stacklevel=3,
        )
    empty_scores = score_empty(family, data, n)

    def first_state(rng: np.random.Generator) -> MixtureState:
        state = MixtureState(family, data, n, prior, empty_scores)
        seat_all_data(rng, state, settings.init)
        return state

    draws = run_chains(
        first_state,
        move,
        n_draws=settings.n_draws,
        n_burn_in=settings.n_burn_in,
        n_thin=settings.n_thin,
        n_chains=settings.n_chains,
        random_state=settings.random_state,
        n_jobs=settings.n_jobs,
        progress=settings.progress,
        store=settings.store,
        burn_in_move=burn_in_move,
        fingerprint={
            "model": "DPMixture",
            "family": family.describe(),
            "prior": prior.describe(),
            "moves": describe_move(move),
            "burn_in_moves": describe_burn_in(burn_in_move),
            "init": settings.init,
            "data": digest(family.pack(data)),
        },
    )
    labels = evenly_spaced(draws.arrays["labels"], MAX_ESTIMATE_DRAWS)
    estimate = point_estimate(
        labels,
        loss=settings.loss,
        # Where clusters overlap, data that might be in several of them would be shown as clusters of their
        # own, and there would be more clusters than in any draw.
        max_clusters=int(np.median(draws.arrays["n_clusters"])),
        n_runs=FEW_RUNS if labels.size > MANY_LABELS else None,
        random_state=0,
        n_jobs=settings.n_jobs,
        progress=settings.progress,
    )
    warn_if_chains_disagree(draws)
    _warn_if_nothing_moved(draws)
    return MixtureFit(settings, family, prior, data, n, draws, estimate, feature_names)


def _warn_if_nothing_moved(draws: Draws) -> None:
    """Warn where the only moves that change clusters were refused all along."""
    counts = dict(zip(draws.statistics["moves"], draws.statistics["accepted"].sum(axis=0), strict=True))
    counts.pop("concentration", None)
    if counts and not any(counts.values()):
        warnings.warn(
            f"{' and '.join(counts)} proposals were refused at every step: the draws are where the chains "
            "started. Add 'gibbs' to moves.",
            PermixWarning,
            stacklevel=3,
        )


def evenly_spaced(draws: Array, most: int) -> Array:
    """Put chains one after another and keep at most so many draws."""
    joined = draws.reshape(-1, *draws.shape[2:])
    kept = np.linspace(0, len(joined) - 1, min(len(joined), most)).astype(np.int64)
    return joined[kept]


@contextmanager
def naming_columns(names: Sequence[str] | None) -> Iterator[None]:
    """Let errors about cells name columns as the user does."""
    try:
        yield
    except CellError as error:
        raise error if names is None else error.with_names(names) from None


def by_size(labels: Array) -> npt.NDArray[np.int64]:
    """Renumber clusters so that 0 is the largest; ties in order of first appearance."""
    values, first, inverse, counts = np.unique(
        labels, return_index=True, return_inverse=True, return_counts=True
    )
    order = np.lexsort((first, -counts))
    rank = np.empty(len(values), dtype=np.int64)
    rank[order] = np.arange(len(values))
    return rank[inverse]


def as_family(family: Family | str | None) -> Family:
    """Return a family given as an object, by name, or not at all."""
    if family is None:
        return GaussianNIW()
    if isinstance(family, str):
        if family not in FAMILIES:
            raise DataError(f"unknown family {family!r}; known are {', '.join(FAMILIES)}")
        return FAMILIES[family]()
    if not isinstance(family, Family):
        raise DataError(f"family must be a permix family or its name, got {family!r}")
    return family


def _as_prior(prior: PartitionPrior | None) -> PartitionPrior:
    if prior is None:
        return DirichletProcess(Gamma(1.0, 1.0))
    if not isinstance(prior, PartitionPrior):
        raise DataError(
            f"prior must be DirichletProcess, PitmanYor or FiniteDirichlet, got {prior!r}; "
            "for a fixed concentration write DirichletProcess(2.0)"
        )
    return prior


def digest(arrays: dict[str, Array]) -> str:
    """Fingerprint of named arrays."""
    digest = hashlib.sha256()
    for name, array in arrays.items():
        digest.update(f"{name}{array.dtype.str}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()
