"""The work behind :class:`permix.DPMixture`, free of scikit-learn, whose import takes a second.

The command line uses this directly; the estimator adds scikit-learn's conventions on top.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from permix.dp_mixture.choose_family import chosen_family
from permix.dp_mixture.odd_columns import warn_of_odd_columns
from permix.dp_mixture.parameters import DPMixtureParameters, as_prior
from permix.errors import Argument, CellError, DataError, PermixWarning
from permix.estimators.known import NOTHING, Known, Memberships
from permix.families import Family, GaussianDiagonal, GaussianNIW
from permix.families.contract_jit import seat_all
from permix.families.learning import Learning, with_means
from permix.families.profiles import Profile
from permix.moves import describe_move
from permix.moves.recipe import describe_burn_in, moves_of
from permix.moves.start import Start, check_start, seat_all_data, start_of_chain
from permix.moves.state import MixtureState, score_empty
from permix.partitions import FiniteDirichlet, PartitionPrior
from permix.partitions.geometry import how_sure
from permix.partitions.point_estimate import PointEstimate
from permix.posterior import warn_if_chains_disagree
from permix.posterior.estimated import EstimatedPartition, nearest_partition
from permix.runtime.progress import Display
from permix.sampling import Draws, run_chains
from permix.sampling.fingerprint import digest

Array = npt.NDArray[Any]
MakeState = Callable[[np.random.Generator], MixtureState]
# Hyper-parameters are chosen by chains of at most this many iterations, two under each candidate.
MAX_TRIAL_STEPS = 20


@dataclasses.dataclass
class MixtureFit(EstimatedPartition):
    """Draws of a mixture with all that is needed to use them; family and prior have their defaults filled in.

    ``data`` are what ``family.encode`` made of the ``n`` observations.
    """

    model: ClassVar[str] = "DPMixture"

    settings: DPMixtureParameters
    family: Family
    prior: PartitionPrior
    data: Any
    n: int
    draws: Draws
    estimate: PointEstimate
    feature_names: tuple[str, ...] | None = None
    known: Known = NOTHING  # of the rows, beside what was fitted

    @property
    def n_known(self) -> tuple[int, int]:
        """Numbers of rows and of columns."""
        return self.n, self.family.n_features

    def memberships(self) -> Memberships:
        """Return to which groups rows belong."""
        drawn = self.draws.arrays["labels"]
        return Memberships(self.labels, self.n_clusters, draws=drawn.reshape(-1, drawn.shape[-1]))

    @property
    def interrupted(self) -> bool:
        """Whether the user stopped the chains: the draws made until then are here."""
        return self.draws.interrupted

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns of the data, numbers from 1 on where they have none."""
        return self.feature_names or tuple(f"column {j + 1}" for j in range(self.family.n_features))

    def serving(self, data: Any) -> MixtureFit:
        """Return the fit whose family scores new data, which may lack cells."""
        family = self.family.serving(data)
        return self if family is self.family else dataclasses.replace(self, family=family)

    @cached_property
    def cluster_parameters(self) -> dict[str, Array]:
        """Posterior means of the clusters' parameters given ``labels``."""
        stats = self.family.statistics(self.n_clusters)
        seat_all(stats, self.data, self.labels.astype(np.int32), self.n_clusters)
        return self.family.parameters(stats, self.n_clusters)

    @cached_property
    def profile(self) -> Profile:
        """How the groups of ``labels`` differ from all rows, for each of ``features``."""
        return self.family.profile(self.data, np.asarray(self.labels, dtype=np.int64), self.n_clusters)

    @property
    def features(self) -> list[str]:
        """Names of what groups are described by: columns, or categories of columns."""
        return self.family.parameter_names(self.columns)

    @cached_property
    def how_sure(self) -> Array:
        """How sure the label of each row is: the mean probability that it is with its fellow members."""
        return np.asarray(how_sure(self.draws.arrays["labels"], self.labels))


def fit_mixture(
    table: Any, settings: DPMixtureParameters, feature_names: tuple[str, ...] | None = None
) -> MixtureFit:
    """Run chains on a table, summarize them, and warn where chains disagree."""
    family = chosen_family(settings.family, table)
    prior = as_prior(settings.prior)
    n = int(table.shape[0])
    if n == 0:
        raise DataError("there are no rows to group")
    if isinstance(prior, FiniteDirichlet) and prior.n > n:
        warnings.warn(f"{prior.n} groups are more than the {n} rows", PermixWarning, stacklevel=2)
    check_start(settings.init, n, prior)
    with naming_columns(feature_names):
        candidates = family.candidates(table)
        data = candidates[0].encode(table)
        learning = family.learning(table)
    family = candidates[0]
    if len(candidates) > 1:
        family = _most_probable(candidates, data, n, prior, settings)
    for column, doubt in family.doubts(data)[:1]:
        name = repr(feature_names[column]) if feature_names else str(column + 1)
        scales = (Argument("prior_mean"), ", ", Argument("prior_scale"), " and ", Argument("noise_scale"))
        niw = " in the units of the data, or use the family gaussian-niw, which takes them from the data."
        warnings.warn(PermixWarning(f"column {name}: {doubt}. Set ", *scales, niw), stacklevel=3)
    if isinstance(family, GaussianNIW | GaussianDiagonal):
        warn_of_odd_columns(data, feature_names, stacklevel=4)
    learns = learning is not None
    burn_in_move, move = moves_of(settings.moves, settings.burn_in_moves, settings.n_burn_in, learns=learns)
    draws = run_chains(
        _first_states(family, data, n, prior, settings.init, settings.n_chains, learning),
        move,
        **settings.for_chains(n * family.n_features),
        burn_in_move=burn_in_move,
        fingerprint={
            "model": "DPMixture",
            "family": family.describe(),
            "learned": list(learning.names) if learning else [],
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
    if learning is not None:
        family = with_means(family, draws.arrays)
    return MixtureFit(settings, family, prior, data, n, draws, estimate, feature_names)


def _first_states(
    family: Family,
    data: Any,
    n: int,
    prior: PartitionPrior,
    init: Start,
    n_chains: int,
    learning: Learning | None = None,
) -> list[MakeState]:
    """How each chain makes its first state."""
    empty_scores = score_empty(family, data, n)

    def first_state(start: Start, rng: np.random.Generator) -> MixtureState:
        state = MixtureState(family, data, n, prior, empty_scores, learning)
        seat_all_data(rng, state, start)
        return state

    return [partial(first_state, start_of_chain(init, chain)) for chain in range(n_chains)]


def _most_probable(
    candidates: Sequence[Family], data: Any, n: int, prior: PartitionPrior, settings: DPMixtureParameters
) -> Family:
    """Return the candidate whose best partition has the largest log joint with the data.

    Two short chains, from either side, look for partitions under each. They go on only for candidates that
    would come up with the best so far if they kept gaining as they do. They have a seed of their own and a
    length that depends on burn-in alone, so that a run which is continued or made longer chooses the same.
    """

    def seated(family: Family, labels: Array, rng: np.random.Generator) -> MixtureState:
        state = MixtureState(family, data, n, prior)
        state.set_labels(labels)
        return state

    n_steps = min(settings.n_burn_in // 12, MAX_TRIAL_STEPS)
    n_first = max(n_steps // 3, min(n_steps, 4))
    starts = [_first_states(family, data, n, prior, "both", 2) for family in candidates]
    trials = _try_out(starts, n_first, 0, settings)
    values = trials.arrays["log_joint"].reshape(len(candidates), 2, -1)
    reached = values.max(axis=(1, 2))
    gains = (values[..., -1] - values[..., 0]).max(axis=1) / max(values.shape[2] - 1, 1)
    possible = reached + np.maximum(gains, 0.0) * (n_steps - n_first)
    hopeful = np.flatnonzero(possible >= reached.max()).tolist()
    if len(hopeful) > 1 and n_steps > n_first:
        labels = trials.arrays["labels"].reshape(len(candidates), 2, -1, n)[:, :, -1]
        starts = [[partial(seated, candidates[c], labels[c, chain]) for chain in range(2)] for c in hopeful]
        trials = _try_out(starts, n_steps - n_first, 1, settings)
        later = trials.arrays["log_joint"].reshape(len(hopeful), -1).max(axis=1)
        reached[hopeful] = np.maximum(reached[hopeful], later)
    return candidates[int(np.argmax(reached))]


def _try_out(
    starts: Sequence[Sequence[MakeState]], n_steps: int, seed: int, settings: DPMixtureParameters
) -> Draws:
    """Run short chains, half of them climbing, half to be kept."""
    burn_in_move, move = moves_of(settings.moves, settings.burn_in_moves, settings.n_burn_in)
    makers = [make for of_candidate in starts for make in of_candidate]
    with Display(settings.progress) as display:
        display.begin(f"choosing the scale of groups by {len(makers)} short chains")
        trials = run_chains(
            makers,
            move,
            n_draws=max(1, n_steps - n_steps // 2),
            n_burn_in=n_steps // 2,
            n_thin=1,
            n_chains=len(makers),
            random_state=seed,
            n_jobs=settings.n_jobs,
            progress=False,
            burn_in_move=burn_in_move,
            fingerprint={},
        )
    if trials.interrupted:
        raise KeyboardInterrupt
    return trials


def _warn_if_nothing_moved(draws: Draws) -> None:
    """Warn where the only moves that change clusters were refused all along."""
    counts = dict(zip(draws.statistics["moves"], draws.statistics["accepted"].sum(axis=0), strict=True))
    for name in ("concentration", "hyperparameters"):
        counts.pop(name, None)
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
