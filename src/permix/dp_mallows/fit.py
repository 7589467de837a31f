"""The work behind :class:`permix.DPMallowsMixture`, free of scikit-learn, whose import takes a second."""

from __future__ import annotations

import dataclasses
import warnings
from functools import cached_property, partial
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from permix.convergence import FEWEST_DRAWS, mcse_mean
from permix.data.agent_table import refuse_too_many_agents
from permix.data.labels import Array, Label
from permix.data.rankings import Rankings
from permix.data.shards.sharded import Sharded
from permix.distributions.base import Estimate
from permix.dp_mallows.decay_prior import LearnDecayPrior
from permix.dp_mallows.draws import ClusterDraws
from permix.dp_mallows.jumps import Jumps
from permix.dp_mallows.lists.top_lists_jit import top_lists
from permix.dp_mallows.moves import (
    Centers,
    CollapsedSeating,
    ListSplitMerge,
    ParallelSeating,
    SettledSeating,
    seat,
)
from permix.dp_mallows.parameters import DPMallowsParameters
from permix.dp_mallows.state import ListModel, ListState, list_model
from permix.errors import Argument, DataError, PermixWarning
from permix.estimators.known import NOTHING, Known
from permix.moves import Concentration, Cycle, Move, Repeat
from permix.moves.state import first_concentration
from permix.partitions import MixtureOfFiniteMixtures
from permix.partitions.point_estimate import PointEstimate, point_estimate
from permix.posterior import warn_if_chains_disagree
from permix.posterior.estimated import EstimatedPartition, evenly_spaced
from permix.posterior.overlap import Overlap
from permix.runtime.fingerprint import digest
from permix.runtime.progress import Display
from permix.runtime.threads import at_most
from permix.sampling import Draws, run_chains

# From this many agents on all are assigned at once, in threads, and so many of them are then visited one by
# one, so that clusters open and close.
MANY_AGENTS, VISITED_SHARE = 10_000, 1 / 16
# Sweeps are cheap beside what a draw takes to keep: iterations make several, as long as they go through no
# more than so many agents; but few where agents are few, who need no more.
SWEPT_AGENTS, MIN_SWEEPS, MAX_SWEEPS, FEW_AGENTS = 12_000, 2, 8, 100
# Splits and merges are tried in one iteration of four from so many agents on: each costs as much as a sweep.
SOME_AGENTS, SPLIT_MERGE_CHANCE = 1000, 0.25
# Where groups overlap, chains take long to meet: as long as they disagree they may be so many times as long
# as those of other models. Those of more than MANY_AGENTS do not meet then either (44,000 ballots: R-hat 2.3
# after four times as many draws, and two minutes), so they are told to disagree at once.
PATIENCE = 24
# With more groups than this the prior of the decays is drawn in some iterations only: that takes as long as
# several sweeps. (Of thirty groups, one iteration of ten was too seldom: chains then wait for it.)
LEARNING_GROUPS = 5
# Centers and decays are drawn for at most this many draws, each after so many rounds of moves.
MAX_CLUSTER_DRAWS = 100
CENTER_ROUNDS = 10
# Up to so many distinct lists every iteration jumps, beyond as often as keeps the mean time of jumps.
JUMPING_LISTS, LEAST_JUMPS = 250, 0.01
# Clusters that every other of these chains starts from.
MANY_CLUSTERS = 20
# Of chains that do not jump every other one starts from clusters of so many agents, but no more than so many
# clusters: more than there will be. Groups that are too many join soon; those that are missing come slowly.
AGENTS_PER_CLUSTER, MOST_CLUSTERS = 20, 60
# Clusters of fewer agents than this get so many rounds more: their centers move slowly.
SMALL, SMALL_ROUNDS = 20, 30
# The point estimate minimizes the expected loss over at most this many labels, but at least so many draws.
MAX_ESTIMATE_LABELS = 4_000_000
MIN_ESTIMATE_DRAWS = 50
MAX_ESTIMATE_DRAWS = 1000
# An estimate is typical when its effective number of clusters is not far below or above the draws' mean.
TYPICAL = 0.75


@dataclasses.dataclass
class DPMallowsFit(EstimatedPartition):
    """Draws of a mixture of generalized Mallows models with all that is needed to use them."""

    model: ClassVar[str] = "DPMallowsMixture"

    settings: DPMallowsParameters
    items: tuple[Label, ...]
    rankings: Rankings  # the top lists fitted; a row with a count stands for that many agents
    draws: Draws  # of all chains: labels of agents in the order of rankings.expand(), and scalars
    estimate: PointEstimate  # partition of the agents that minimizes the posterior expected loss
    clusters: ClusterDraws  # centers and decays of the clusters in evenly spaced draws
    known: Known = NOTHING  # of the rows and items, beside what was fitted
    # Agents in shards: how many there are; ``rankings`` and labels are those of a sample.
    sampled_from: int | None = None

    @property
    def n_agents(self) -> int:
        """Number of agents fitted, those in shards included."""
        return int(self.rankings.n_agents) if self.sampled_from is None else self.sampled_from

    @property
    def scaled_sizes(self) -> Array:
        """Members of each group of the point estimate; of a sample scaled to all agents."""
        return np.rint(self.cluster_sizes * (self.n_agents / len(self.labels))).astype(np.int64)

    @property
    def n_known(self) -> tuple[int, int]:
        """Numbers of rows and of items."""
        return len(self.rankings), len(self.items)

    @property
    def agent_rows(self) -> Array:
        """Row of each agent."""
        return self.rankings.rows_of_agents()

    @property
    def shows_a_draw(self) -> bool:
        """Whether ``labels`` is a draw, because groups overlap too much for a partition near all draws."""
        return self.estimate.n_runs == 0

    @property
    def log_likelihood(self) -> Estimate:
        """Posterior mean of ln p(data | partition, centers), with its Monte Carlo error."""
        values = self.draws.arrays["log_likelihood"]
        enough = values.shape[1] >= 2 * FEWEST_DRAWS
        return Estimate(float(values.mean()), mcse_mean(values) if enough else float("nan"))

    @cached_property
    def strength(self) -> float:
        """How many lists the prior of the decays is worth; of what was learned the posterior median."""
        learned = self.draws.arrays.get("prior_strength")
        return self.settings.strength if learned is None else float(np.median(learned))

    @cached_property
    def rates(self) -> Array:
        """Mean skips of these lists at every place; of what was learned the posterior medians."""
        learned, n_stages = self.draws.arrays.get("prior_rate"), self.clusters.theta.shape[1]
        return self.settings.rates(n_stages) if learned is None else np.median(learned, axis=(0, 1))

    def rates_beyond(self, n_stages: int) -> Array:
        """Return those of the places beyond the data, up to so many in all; learned ones stay as they are."""
        first = len(self.rates)
        if "prior_rate" in self.draws.arrays:
            return np.full(max(n_stages - first, 0), self.rates[-1])
        return self.settings.rates(max(first, n_stages))[first:]

    @cached_property
    def n_possible_groups(self) -> Array | None:
        """P(number of groups | data), those without agents included; None if the prior has no such number."""
        prior = self.clusters.prior
        if not isinstance(prior, MixtureOfFiniteMixtures):
            return None
        return prior.n_components_posterior(self.draws.arrays["n_groups"], self.n_agents)

    @cached_property
    def overlap(self) -> Overlap:
        """Which estimated cluster each cluster of a draw speaks for."""
        return Overlap.of(self.clusters, self.labels)

    @cached_property
    def probabilities(self) -> Array:
        """P(estimated cluster | all data) of every row, (rows, clusters).

        The share of draws in which the cluster of an agent speaks for the estimated one. Agents who gave the
        same list are alike, so the share is taken over all of them, and they have one answer.
        """
        data, n_clusters = self.rankings, self.n_clusters
        orders, lengths, counts = (np.asarray(a) for a in (data.orders, data.lengths, data.counts))
        list_of = top_lists(orders, lengths, counts, data.n_items).list_of.astype(np.int64)
        n_lists = int(list_of.max()) + 1
        votes = np.zeros(n_lists * n_clusters)
        for d in range(self.clusters.n_draws):
            linked = self.overlap.linked[self.clusters.of_draw(d)]
            cells = list_of * n_clusters + linked[self.clusters.labels[d]]
            votes += np.bincount(cells, minlength=len(votes))
        first = np.cumsum(counts) - counts  # the first agent of each row
        of_row: Array = votes.reshape(n_lists, n_clusters)[list_of[first]]
        return of_row / of_row.sum(axis=1, keepdims=True)

    @property
    def row_labels(self) -> Array:
        """The most probable estimated cluster of every row."""
        return np.asarray(self.probabilities.argmax(axis=1))


def fit_dp_mallows(rankings: Rankings | Sharded, settings: DPMallowsParameters) -> DPMallowsFit:
    """Run chains on top lists (``as_top_lists``), summarize them, and warn where chains disagree."""
    if isinstance(rankings, Sharded):
        from permix.dp_mallows.sharded.fit import fit_shards

        return fit_shards(rankings, settings)
    return fit_table(rankings, settings)


def fit_table(rankings: Rankings, settings: DPMallowsParameters) -> DPMallowsFit:
    """Do so for a table."""
    exact = exact_model(rankings, settings)
    model = of_sampler(exact, settings)
    lists, sweeps = model.lists, sweeps_of(settings, model.n_agents)
    swept = max(model.n_agents * sweeps // 2, model.n_agents)  # where decays are given, visits are quick
    draws = run_chains(
        [partial(first_state, model, settings, chain=chain) for chain in range(settings.n_chains)],
        sweep_move(settings, model.n_agents, len(lists.starts) - 1),
        **settings.for_chains(swept * model.n_stages),
        patience=PATIENCE if model.n_agents <= MANY_AGENTS else 1,
        fingerprint={
            "model": "DPMallowsMixture",
            "sampler": settings.sampler,
            "assignments": chosen_assignments(settings, model.n_agents),
            "sweeps": sweeps,
            "split_merge": settings.split_merge,
            "n_initial_clusters": settings.n_initial_clusters,
            "prior": settings.partition_prior().describe(),
            "prior_strength": settings.strength,
            "prior_rate": model.rates.tolist(),
            "learned": sorted(model.learned),
            "data": digest({"starts": lists.starts, "items": lists.items, "of": lists.list_of}),
        },
    )
    # What is reported of the published samplers' partitions is exact.
    return summarized(rankings, settings, draws, draw_clusters(exact, settings, draws))


def summarized(
    rankings: Rankings, settings: DPMallowsParameters, draws: Draws, clusters: ClusterDraws
) -> DPMallowsFit:
    """Return a fit with its point estimate, and warn where chains disagree or groups overlap."""
    n_kept = max(MIN_ESTIMATE_DRAWS, min(MAX_ESTIMATE_DRAWS, MAX_ESTIMATE_LABELS // int(rankings.n_agents)))
    labels = evenly_spaced(draws.arrays["labels"], n_kept)
    nearest = point_estimate(
        labels, loss=settings.loss, random_state=0, n_jobs=settings.n_jobs, progress=settings.progress
    )
    estimate = readable(nearest, labels)
    warn_if_chains_disagree(draws)
    fit = DPMallowsFit(settings, rankings.items, rankings, draws, estimate, clusters)
    if fit.shows_a_draw:
        warnings.warn(
            "groups overlap, so that no partition is near all draws: the groups are those of the draw "
            "nearest to all others, and who belongs where is uncertain.",
            PermixWarning,
            stacklevel=4,
        )
    return fit


def readable(estimate: PointEstimate, draws: npt.NDArray[np.int64]) -> PointEstimate:
    """Return the estimate, or the best draw where the estimate has much fewer or more groups than draws.

    Where groups overlap, so that nobody can tell who belongs where, the partition nearest to all draws may
    put everybody into one: that says nothing of the groups, of which every draw may be quite sure.
    """
    best = estimate.best_draw
    usual = np.mean([effective_number(np.bincount(row)) for row in draws])
    found = effective_number(estimate.sizes)
    if best is None or TYPICAL * usual <= found <= usual / TYPICAL + 1.0:
        return estimate
    sizes, loss = np.bincount(best), estimate.best_draw_loss
    return dataclasses.replace(  # no runs: found by no search
        estimate, labels=best, n_clusters=len(sizes), sizes=sizes, expected_loss=loss, n_runs=0
    )


def effective_number(sizes: npt.NDArray[np.int64]) -> float:
    """Return exp of the entropy of the shares: how many equal clusters would be as diverse."""
    shares = sizes[sizes > 0] / sizes.sum()
    return float(np.exp(-np.sum(shares * np.log(shares))))


def exact_model(rankings: Rankings, settings: DPMallowsParameters) -> ListModel:
    """Return data and prior as the exact sampler sees them."""
    refuse_too_many_agents(np.asarray(rankings.counts))
    initial = settings.n_initial_clusters
    if initial is not None and initial > rankings.n_agents:
        asked = Argument("n_initial_clusters", initial)
        raise DataError(asked, f" are more than the {rankings.n_agents} agents")
    most = settings.partition_prior().most_clusters(rankings.n_agents)
    if initial is not None and initial > most:
        raise DataError(Argument("n_initial_clusters", initial), f" are more than the {most} of the prior")
    orders, lengths, counts = (np.asarray(a) for a in (rankings.orders, rankings.lengths, rankings.counts))
    known = (settings.rates, settings.strength, settings.partition_prior(), settings.learned())
    return list_model(orders, lengths, counts, rankings.n_items, *known)


def of_sampler(model: ListModel, settings: DPMallowsParameters) -> ListModel:
    """Return the model with the scores of the chosen sampler."""
    if settings.sampler == "exact":
        return model
    from permix.dp_mallows.published import published_model

    return published_model(model, settings.sampler)


def chosen_assignments(settings: DPMallowsParameters, n_agents: int) -> str:
    """Say what "auto" means for so many agents."""
    if settings.assignments != "auto":
        return settings.assignments
    many = settings.sampler == "exact" and n_agents >= MANY_AGENTS
    return "parallel" if many or jumps_of(settings) is not None else "collapsed"


def jumps_of(settings: DPMallowsParameters, n_lists: int = 0) -> Jumps | None:
    """Return the jumps between numbers of groups, where there are any; now and then if lists are many."""
    if settings.sampler != "exact" or not settings.split_merge:
        return None
    if not isinstance(settings.partition_prior(), MixtureOfFiniteMixtures):
        return None
    return Jumps(chance=min(1.0, max(LEAST_JUMPS, JUMPING_LISTS / max(n_lists, 1))))


def sweep_move(settings: DPMallowsParameters, n_agents: int = 0, n_lists: int = 0) -> Cycle:
    """Return what one iteration of a chain does, for so many agents and distinct lists."""
    if settings.sampler != "exact":
        from permix.dp_mallows.published import published_moves

        return Cycle([*published_moves(), Concentration()])
    jumps = jumps_of(settings, n_lists)
    learning: list[Move] = [LearnDecayPrior(LEARNING_GROUPS)] if settings.learned() else []
    parallel = chosen_assignments(settings, n_agents) == "parallel"
    if jumps is not None:
        # At the end of a jump all agents are assigned anew.
        seating: list[Move] = [ParallelSeating()] if jumps.chance < 1.0 else []
        return Cycle([*(seating if parallel else [CollapsedSeating()]), jumps, Centers(), *learning])
    sweep: list[Move] = [ParallelSeating(), SettledSeating(VISITED_SHARE)] if parallel else [SettledSeating()]
    moves: list[Move] = [Repeat(Cycle(sweep), sweeps_of(settings, n_agents))]
    if settings.split_merge:
        moves += [ListSplitMerge(chance=SPLIT_MERGE_CHANCE if n_agents >= SOME_AGENTS else 1.0)]
    return Cycle([*moves, *learning, Concentration()])


def sweeps_of(settings: DPMallowsParameters, n_agents: int) -> int:
    """Return how many sweeps an iteration makes."""
    if settings.sampler != "exact" or jumps_of(settings) is not None or n_agents >= MANY_AGENTS:
        return 1
    many = SWEPT_AGENTS // n_agents if n_agents >= FEW_AGENTS else MIN_SWEEPS
    return min(max(many, MIN_SWEEPS), MAX_SWEEPS)


def start_state(rankings: Rankings, settings: DPMallowsParameters, rng: np.random.Generator) -> ListState:
    """Return the state that a chain on these rankings starts from."""
    return first_state(of_sampler(exact_model(rankings, settings), settings), settings, rng)


def first_state(
    model: ListModel, settings: DPMallowsParameters, rng: np.random.Generator, chain: int = 0
) -> ListState:
    """Seat the agents one by one in random order, or put them at random into a number of clusters.

    Chains start from few clusters and from many in turn: where they do not meet, R-hat shows it.
    """
    state, n_clusters = ListState(model), settings.n_initial_clusters
    if n_clusters is None and jumps_of(settings) is not None:
        n_clusters = min(MANY_CLUSTERS, state.n) if chain % 2 else 1
    elif n_clusters is None and settings.sampler == "exact" and chain % 2:
        many = min(max(state.n // AGENTS_PER_CLUSTER, 1), MOST_CLUSTERS)
        n_clusters = int(min(many, model.prior.most_clusters(state.n)))
    if n_clusters is None:
        seat(rng, state, rng.permutation(state.n))
        state.refresh()
    else:
        state.set_labels(rng.integers(n_clusters, size=state.n), rng)
    if settings.sampler != "exact":
        state.update_centers(rng, 1)
    return state


def draw_clusters(model: ListModel, settings: DPMallowsParameters, draws: Draws) -> ClusterDraws:
    """Draw centers and decays given the labels of evenly spaced draws, by exact moves.

    A cluster's center starts from that of the cluster of the draw before with which it shares most agents (in
    the first, from the best item at every stage), so that small clusters over many items, whose centers move
    slowly, need not begin anew. The seed is fixed: a fit depends on its draws alone.
    """
    labels = evenly_spaced(draws.arrays["labels"], MAX_CLUSTER_DRAWS)
    if "concentration" in draws.arrays:
        concentration = evenly_spaced(draws.arrays["concentration"], MAX_CLUSTER_DRAWS).astype(float)
    else:
        concentration = np.full(len(labels), first_concentration(model.prior))
    learned = {name: evenly_spaced(draws.arrays[name], MAX_CLUSTER_DRAWS) for name in model.learned}
    rng = np.random.default_rng(0)
    starts, sizes, centers, theta = [0], [], [], []
    before: ListState | None = None
    with at_most(settings.n_jobs), Display(settings.progress) as display:
        display.begin("drawing centers", len(labels))
        for d, row in enumerate(labels):
            state = ListState(model)
            state.take_learned({name: values[d] for name, values in learned.items()})
            state.set_labels(row, rng)
            if before is not None:
                heirs = np.zeros((state.n_clusters, before.n_clusters), dtype=np.int64)
                np.add.at(heirs, (state.labels, before.labels), 1)
                state.clusters.places[:, : state.n_clusters] = before.clusters.places[:, heirs.argmax(axis=1)]
                state.update_centers(rng, 0)
            state.update_centers(rng, CENTER_ROUNDS)
            state.update_centers(rng, SMALL_ROUNDS, which=np.flatnonzero(state.sizes_in_use < SMALL))
            starts.append(starts[-1] + state.n_clusters)
            sizes.append(state.sizes_in_use.copy())
            centers.append(state.centers())
            theta.append(state.clusters.theta[: state.n_clusters].copy())
            before = state
            display.step()
    return ClusterDraws(
        starts=np.array(starts, dtype=np.int64),
        sizes=np.concatenate(sizes).astype(np.int64),
        centers=np.concatenate(centers),
        theta=np.concatenate(theta),
        labels=np.ascontiguousarray(labels, dtype=np.int32),
        concentration=concentration,
        prior=model.prior,
    )
