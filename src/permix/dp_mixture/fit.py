"""The work behind :class:`permix.DPMixture`, free of scikit-learn, whose import takes a second.

The command line uses this directly; the estimator adds scikit-learn's conventions on top.
"""

from __future__ import annotations

import dataclasses
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from permix.dp_mixture.predict import MixturePredictive
from permix.errors import CellError, DataError, PermixWarning
from permix.families import FAMILIES, Family, GaussianNIW
from permix.moves import describe_move
from permix.moves.naming import Moves
from permix.moves.recipe import describe_burn_in, moves_of
from permix.moves.start import Start, check_start, seat_all_data, start_of_chain
from permix.moves.state import MixtureState, score_empty
from permix.partitions import FiniteDirichlet, MixtureOfFiniteMixtures, PartitionPrior
from permix.partitions.point_estimate import PointEstimate
from permix.posterior import warn_if_chains_disagree
from permix.posterior.estimated import EstimatedPartition, evenly_spaced, nearest_partition
from permix.runtime.seeds import generator
from permix.runtime.settings import check_run_settings
from permix.sampling import Draws, run_chains
from permix.sampling.fingerprint import digest

Array = npt.NDArray[Any]
# The predictive density is averaged over at most this many draws, evenly spaced over all chains.
MAX_PREDICTIVE_DRAWS = 200
# Hyper-parameters are chosen by chains of at most this many iterations, two under each candidate.
MAX_TRIAL_STEPS = 20


@dataclasses.dataclass(frozen=True)
class MixtureSettings:
    """What a user may choose; see :class:`permix.DPMixture` for what each means."""

    family: Family | str | None = None
    prior: PartitionPrior | None = None
    moves: Moves = "auto"
    burn_in_moves: Moves = "auto"
    init: Start = "both"
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
    if n == 0:
        raise DataError("there are no rows to cluster")
    if isinstance(prior, FiniteDirichlet) and prior.n > n:
        warnings.warn(f"{prior.n} components are more than the {n} rows", PermixWarning, stacklevel=2)
    check_start(settings.init, n, prior)
    with naming_columns(feature_names):
        candidates = family.candidates(table)
        data = candidates[0].encode(table)
    if len(candidates) > 1:
        family = _most_probable(candidates, data, n, prior, settings)
    else:
        family = candidates[0]
    for column, doubt in family.doubts(data)[:1]:
        name = repr(feature_names[column]) if feature_names else str(column + 1)
        warnings.warn(
            f"column {name}: {doubt}. Set prior_mean, prior_scale and noise_scale in the units of the data, "
            "or use the family gaussian-niw, which takes its scales from the data.",
            PermixWarning,
            stacklevel=3,
        )
    burn_in_move, move = moves_of(settings.moves, settings.burn_in_moves, settings.n_burn_in, n)
    draws = run_chains(
        _first_states(family, data, n, prior, settings.init, settings.n_chains),
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
    estimate = nearest_partition(draws, settings)
    warn_if_chains_disagree(draws)
    _warn_if_nothing_moved(draws)
    return MixtureFit(settings, family, prior, data, n, draws, estimate, feature_names)


def _first_states(
    family: Family, data: Any, n: int, prior: PartitionPrior, init: Start, n_chains: int
) -> list[Callable[[np.random.Generator], MixtureState]]:
    """How each chain makes its first state."""
    empty_scores = score_empty(family, data, n)

    def first_state(start: Start, rng: np.random.Generator) -> MixtureState:
        state = MixtureState(family, data, n, prior, empty_scores)
        seat_all_data(rng, state, start)
        return state

    return [partial(first_state, start_of_chain(init, chain)) for chain in range(n_chains)]


def _most_probable(
    candidates: Sequence[Family], data: Any, n: int, prior: PartitionPrior, settings: MixtureSettings
) -> Family:
    """Return the candidate whose best partition has the largest log joint with the data.

    Two short chains, from either side, look for partitions under each. They have a seed of their own and a
    length that depends on burn-in alone, so that a run which is continued or made longer chooses the same.
    """
    n_steps = min(settings.n_burn_in // 12, MAX_TRIAL_STEPS)
    burn_in_move, move = moves_of(settings.moves, settings.burn_in_moves, settings.n_burn_in, n)
    trials = run_chains(
        [state for family in candidates for state in _first_states(family, data, n, prior, "both", 2)],
        move,
        n_draws=max(1, n_steps // 2),
        n_burn_in=n_steps // 2,
        n_thin=1,
        n_chains=2 * len(candidates),
        random_state=0,
        n_jobs=settings.n_jobs,
        progress=settings.progress,
        burn_in_move=burn_in_move,
        fingerprint={},
    )
    if trials.interrupted:
        raise KeyboardInterrupt
    reached = trials.arrays["log_joint"].reshape(len(candidates), -1).max(axis=1)
    return candidates[int(np.argmax(reached))]


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


@contextmanager
def naming_columns(names: Sequence[str] | None) -> Iterator[None]:
    """Let errors about cells name columns as the user does."""
    try:
        yield
    except CellError as error:
        raise error if names is None else error.with_names(names) from None


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
        return MixtureOfFiniteMixtures()
    if not isinstance(prior, PartitionPrior):
        raise DataError(
            "prior must be MixtureOfFiniteMixtures, DirichletProcess, PitmanYor or FiniteDirichlet, "
            f"got {prior!r}; "
            "for a fixed concentration write DirichletProcess(2.0)"
        )
    return prior
