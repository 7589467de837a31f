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
from permix.dp_mixture.odd_columns import warn_of_codes, warn_of_copies, warn_of_odd_columns
from permix.dp_mixture.parameters import DPMixtureParameters, as_prior
from permix.errors import Argument, CellError, DataError, PermixWarning
from permix.estimators.known import NOTHING, Known
from permix.families import Categorical, Family, GaussianDiagonal, GaussianNIW, MixedNIW
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
from permix.runtime.fingerprint import digest
from permix.sampling import Draws, run_chains

Array = npt.NDArray[Any]
# Parameters of groups are averaged over so many draws of missing cells given the groups, so many sweeps each.
N_FILLINGS, SWEEPS_APART = 20, 3
# With fewer rows nearly any partition is as good as any other, and chains agree on the prior.
FEWEST_ROWS = 10
MakeState = Callable[[np.random.Generator], MixtureState]


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
    # How many rows were fitted, where they were in shards and those here are a random sample of them.
    sampled_from: int | None = None

    @property
    def n_known(self) -> tuple[int, int]:
        """Numbers of rows and of columns."""
        return self.n, self.family.n_features

    @property
    def n_rows(self) -> int:
        """How many rows were fitted."""
        return self.n if self.sampled_from is None else self.sampled_from

    @property
    def sample_note(self) -> str:
        """Say that the rows here are a sample of those fitted, where they are."""
        said = f"groups are shown for a random sample of {self.n:,} of {self.n_rows:,} rows"
        return said if self.n < self.n_rows else ""

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
        """Posterior means of the clusters' parameters given ``labels``, over some draws of missing cells."""
        stats, labels = self.family.statistics(self.n_clusters), self.labels.astype(np.int32)
        found = []
        for data in self._completions():
            seat_all(stats, data, labels, self.n_clusters)
            found.append(self.family.parameters(stats, self.n_clusters))
        return {name: np.mean([one[name] for one in found], axis=0) for name in found[0]}

    def _completions(self) -> Iterator[Any]:
        """Yield the data with gaps filled in given ``labels``; the data alone where there are none."""
        if self.fillings is None:
            yield self.data
            return
        filled, missing = self.family.completed(self.data), self.family.filled_cells(self.data)
        assert missing is not None
        for cells in self.fillings:
            self.family.put_cells(filled, missing, cells)
            yield filled

    @cached_property
    def fillings(self) -> Array | None:
        """Draws of missing cells given ``labels``, (draw, cell); None where none are missing.

        Those of the chains are given the groups of other partitions: a row that is now and then in another
        group would be filled in like that group.
        """
        if "missing_cells" not in self.draws.arrays:
            return None
        state = MixtureState(self.family, self.data, self.n, self.prior, empty_scores=np.empty(0))
        state.fill_gaps(self.family.typical_cells(self.draws.arrays["missing_cells"]))
        state.set_labels(self.labels)
        assert state.missing is not None
        rng, found = np.random.default_rng(0), []
        for sweep in range(SWEEPS_APART * (N_FILLINGS + 1)):
            state.refill(rng)
            if sweep >= SWEEPS_APART and (sweep + 1) % SWEEPS_APART == 0:
                found.append(self.family.cells_at(state.data, state.missing))
        return np.array(found)

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
    if n < FEWEST_ROWS:
        warnings.warn(PermixWarning(too_few(n)), stacklevel=3)
    check_start(settings.init, n, prior)
    with naming_columns(feature_names):
        asked, family = family, family.resolve(table)
        data = family.encode(table)
    learning = asked.learning(family, data)
    warn_of_data(family, data, table, feature_names)
    updates = {"learns": learning is not None, "fills": family.completed(data) is not data}
    burn_in_move, move = moves_of(settings.moves, settings.burn_in_moves, settings.n_burn_in, **updates)
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
    alone = int(np.count_nonzero(estimate.sizes == 1))
    if n >= FEWEST_ROWS and 2 * alone > n:
        warnings.warn(PermixWarning(mostly_alone(alone, n)), stacklevel=3)
    if learning is not None:
        family = with_means(family, draws.arrays)
    return MixtureFit(settings, family, prior, data, n, draws, estimate, feature_names)


def warn_of_data(family: Family, data: Any, table: Any, feature_names: tuple[str, ...] | None) -> None:
    """Warn of columns that look as if the family did not suit them; ``data`` is the table, encoded."""
    for column, doubt in family.doubts(data)[:1]:
        name = repr(feature_names[column]) if feature_names else str(column + 1)
        scales = (Argument("prior_mean"), ", ", Argument("prior_scale"), " and ", Argument("noise_scale"))
        niw = " in the units of the data, or use the family gaussian-niw, which takes them from the data."
        warnings.warn(PermixWarning(f"column {name}: {doubt}. Set ", *scales, niw), stacklevel=4)
    if (found := gaussian_columns(family, data, feature_names)) is not None:
        warn_of_odd_columns(*found, stacklevel=5)
    if isinstance(family, GaussianNIW | GaussianDiagonal):
        warn_of_copies(data, stacklevel=5)
    if not (family.accepts_sparse or isinstance(family, Categorical)):
        warn_of_codes(table, feature_names, stacklevel=5)


def gaussian_columns(
    family: Family, data: Any, feature_names: Sequence[str] | None
) -> tuple[Array, Sequence[str] | None] | None:
    """Return the columns that Gaussian groups with learned scales are to follow, and their names, if any."""
    if isinstance(family, GaussianNIW | GaussianDiagonal):
        return data, feature_names
    if not isinstance(family, MixedNIW):
        return None
    places = family.number_columns
    return data[:, : len(places)], [feature_names[j] if feature_names else str(j + 1) for j in places]


def too_few(n: int) -> str:
    """Say that so many rows say nothing about groups."""
    rows = "one row is" if n == 1 else f"{n} rows are"
    return f"{rows} too few to tell groups apart: the groups are those of the prior, more or less"


def mostly_alone(n_alone: int, n: int) -> str:
    """Say that groups of one row each are no groups."""
    return (
        f"{n_alone} of the {n} rows are groups of their own, which says nothing about groups in the data: "
        "there are too many columns for so few rows, or the family does not suit them. "
        "Try fewer columns or another family"
    )


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


def _warn_if_nothing_moved(draws: Draws) -> None:
    """Warn where the only moves that change clusters were refused all along."""
    counts = dict(zip(draws.statistics["moves"], draws.statistics["accepted"].sum(axis=0), strict=True))
    for name in ("concentration", "hyperparameters", "missing-cells"):
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
