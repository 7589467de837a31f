"""The work behind :class:`permix.DPMallowsMixture`, free of scikit-learn, whose import takes a second."""

from __future__ import annotations

import dataclasses
import warnings

import numpy as np
import numpy.typing as npt

from permix.data.agent_table import refuse_too_many_agents
from permix.data.labels import Label
from permix.data.rankings import Rankings
from permix.dp_mallows.draws import ClusterDraws
from permix.dp_mallows.permutation import ListPermutation
from permix.dp_mallows.seating import Centers, CollapsedSeating, ParallelSeating, seat
from permix.dp_mallows.settings import DPMallowsSettings
from permix.dp_mallows.split_merge import ListClimb, ListSplitMerge
from permix.dp_mallows.state import ListModel, ListState, list_model
from permix.errors import DataError, PermixWarning
from permix.moves import Concentration, Cycle, Move
from permix.partitions.point_estimate import PointEstimate, point_estimate
from permix.posterior import warn_if_chains_disagree
from permix.posterior.estimated import EstimatedPartition, evenly_spaced
from permix.runtime.progress import Display
from permix.runtime.threads import at_most
from permix.sampling import Draws, run_chains
from permix.sampling.fingerprint import digest

# From this many agents on all are assigned at once, and splits and merges are tried in one iteration of four:
# each costs as much as a sweep.
MANY_AGENTS = 1000
SPLIT_MERGE_CHANCE = 0.25
# The part of the agents that the parallel variant also visits one by one, so that clusters open and close.
VISITED_SHARE = 1 / 16
# Climbing finds its top in a few iterations; what follows finds the posterior from there.
MAX_CLIMBS = 25
# T_Gibbs of the published samplers.
PUBLISHED_ROUNDS = 10
# Centers and decays are drawn for at most this many draws, each after so many rounds of moves.
MAX_CLUSTER_DRAWS = 100
CENTER_ROUNDS = 10
# Clusters of fewer agents than this get so many rounds more: their centers move slowly.
SMALL, SMALL_ROUNDS = 20, 30
# The point estimate minimises the expected loss over at most this many labels, but at least so many draws.
MAX_ESTIMATE_LABELS = 4_000_000
MIN_ESTIMATE_DRAWS = 50
MAX_ESTIMATE_DRAWS = 1000
# An estimate is typical when its effective number of clusters is not far below or above the draws' mean.
TYPICAL = 0.75


@dataclasses.dataclass
class DPMallowsFit(EstimatedPartition):
    """Draws of a mixture of generalized Mallows models with all that is needed to use them.

    Attributes
    ----------
    settings : DPMallowsSettings
        As asked for.
    items : tuple
        Item names.
    rankings : Rankings
        The top lists fitted; a row with a count stands for that many agents.
    draws : Draws
        Kept draws of all chains: labels of agents in the order of ``rankings.expand()``, and scalars.
    estimate : PointEstimate
        Partition of the agents that minimises the posterior expected loss.
    clusters : ClusterDraws
        Centers and decays of the clusters in evenly spaced draws.
    """

    settings: DPMallowsSettings
    items: tuple[Label, ...]
    rankings: Rankings
    draws: Draws
    estimate: PointEstimate
    clusters: ClusterDraws

    @property
    def shows_a_draw(self) -> bool:
        """Whether ``labels`` is a draw, because kinds overlap too much for a partition near all draws."""
        return self.estimate.n_runs == 0


def fit_dp_mallows(rankings: Rankings, settings: DPMallowsSettings) -> DPMallowsFit:
    """Run chains on top lists, summarise them, and warn where chains disagree.

    Parameters
    ----------
    rankings : Rankings
        Full rankings and top lists, as :func:`permix.estimators.ranking_lists.as_top_lists` returns them.
    settings : DPMallowsSettings
    """
    model = prepared(rankings, settings)
    move = sweep_move(settings, model.n_agents)
    draws = run_chains(
        lambda rng: first_state(model, settings, rng),
        move,
        n_draws=settings.n_draws,
        n_burn_in=settings.n_burn_in,
        n_thin=settings.n_thin,
        n_chains=settings.n_chains,
        random_state=settings.random_state,
        n_jobs=settings.n_jobs,
        progress=settings.progress,
        store=settings.store,
        burn_in_move=burn_in_move(settings, model.n_agents, move),
        fingerprint={
            "model": "DPMallowsMixture",
            "sampler": settings.sampler,
            "assignments": chosen_assignments(settings, model.n_agents),
            "split_merge": settings.split_merge,
            # Named only where it is used, so that chains from before there was the move can be resumed.
            **({"permutation": True} if settings.permutation else {}),
            "n_initial_clusters": settings.n_initial_clusters,
            "prior": settings.prior().describe(),
            "prior_strength": float(settings.prior_strength),
            "prior_rate": settings.rates(model.n_stages).tolist(),
            "data": digest(
                {"starts": model.lists.starts, "items": model.lists.items, "of": model.lists.list_of}
            ),
        },
    )
    n_kept = max(MIN_ESTIMATE_DRAWS, min(MAX_ESTIMATE_DRAWS, MAX_ESTIMATE_LABELS // model.n_agents))
    labels = evenly_spaced(draws.arrays["labels"], n_kept)
    nearest = point_estimate(
        labels, loss=settings.loss, random_state=0, n_jobs=settings.n_jobs, progress=settings.progress
    )
    estimate = readable(nearest, labels)
    if settings.sampler != "exact":  # what is reported of the published samplers' partitions is exact
        model = prepared(rankings, dataclasses.replace(settings, sampler="exact"))
    clusters = draw_clusters(model, settings, draws)
    warn_if_chains_disagree(draws)
    fit = DPMallowsFit(settings, rankings.items, rankings, draws, estimate, clusters)
    if fit.shows_a_draw:
        warnings.warn(
            "kinds overlap, so that no partition is near all draws: the labels are those of the draw nearest "
            "to all others. predict() has the most probable cluster of every ranking.",
            PermixWarning,
            stacklevel=3,
        )
    return fit


def readable(estimate: PointEstimate, draws: npt.NDArray[np.int64]) -> PointEstimate:
    """Return the estimate, or the best draw where the estimate has much fewer or more kinds than draws.

    Where kinds overlap, so that nobody can tell who belongs where, the partition nearest to all draws may put
    everybody into one cluster: that says nothing of the kinds, of which every draw may be quite sure.
    """
    best = estimate.best_draw
    usual = np.mean([effective_number(np.bincount(row)) for row in draws])
    found = effective_number(estimate.sizes)
    if best is None or TYPICAL * usual <= found <= usual / TYPICAL + 1.0:
        return estimate
    sizes = np.bincount(best)
    return dataclasses.replace(
        estimate,
        labels=best,
        n_clusters=len(sizes),
        sizes=sizes,
        expected_loss=estimate.best_draw_loss,
        n_runs=0,  # found by no search
    )


def effective_number(sizes: npt.NDArray[np.int64]) -> float:
    """Return exp of the entropy of the shares: how many equal clusters would be as diverse."""
    shares = sizes[sizes > 0] / sizes.sum()
    return float(np.exp(-np.sum(shares * np.log(shares))))


def prepared(rankings: Rankings, settings: DPMallowsSettings) -> ListModel:
    """Return data and prior as the samplers see them."""
    refuse_too_many_agents(np.asarray(rankings.counts))
    initial = settings.n_initial_clusters
    if initial is not None and initial > rankings.n_agents:
        raise DataError(f"n_initial_clusters={initial} are more than the {rankings.n_agents} agents")
    return list_model(
        np.asarray(rankings.orders),
        np.asarray(rankings.lengths),
        np.asarray(rankings.counts),
        rankings.n_items,
        settings.rates,
        float(settings.prior_strength),
        settings.prior(),
        law={"exact": "finite", "beta-gibbs": "beta", "slice-gibbs": "given"}[settings.sampler],
    )


def chosen_assignments(settings: DPMallowsSettings, n_agents: int) -> str:
    """Say what "auto" means for so many agents."""
    if settings.assignments != "auto":
        return settings.assignments
    return "parallel" if settings.sampler == "exact" and n_agents >= MANY_AGENTS else "collapsed"


def sweep_move(settings: DPMallowsSettings, n_agents: int = 0) -> Cycle:
    """Return what one iteration of a chain does."""
    moves: list[Move] = []
    if settings.sampler != "exact":
        moves = [CollapsedSeating(), Centers(PUBLISHED_ROUNDS, settings.sampler)]
    else:
        if chosen_assignments(settings, n_agents) == "parallel":
            moves += [ParallelSeating(), CollapsedSeating(VISITED_SHARE)]
        else:
            moves += [CollapsedSeating()]
        if settings.split_merge:
            moves += [ListSplitMerge(chance=SPLIT_MERGE_CHANCE if n_agents >= MANY_AGENTS else 1.0)]
        if settings.permutation:
            moves += [ListPermutation()]
        moves += [Centers()]
    return Cycle([*moves, Concentration()])


def burn_in_move(
    settings: DPMallowsSettings, n_agents: int = 0, following: Cycle | None = None
) -> Move | None:
    """Return what an iteration of burn-in does, where that differs from those ``following``.

    The first ones also climb; and what moves of those that follow have to learn is learned.
    """
    if settings.sampler != "exact" or not (settings.split_merge or settings.permutation):
        return None
    move: Move = sweep_move(dataclasses.replace(settings, permutation=False), n_agents)
    if settings.split_merge:
        move = ListClimb(min(settings.n_burn_in // 2, MAX_CLIMBS), move)
    following = following or sweep_move(settings, n_agents)
    learning = [part.during_burn_in() for part in following.moves if isinstance(part, ListPermutation)]
    return Cycle([move, *learning]) if learning else move


def start_state(rankings: Rankings, settings: DPMallowsSettings, rng: np.random.Generator) -> ListState:
    """Return the state that a chain on these rankings starts from."""
    return first_state(prepared(rankings, settings), settings, rng)


def first_state(model: ListModel, settings: DPMallowsSettings, rng: np.random.Generator) -> ListState:
    """Seat the agents one by one in random order, or at random in a given number of clusters."""
    state = ListState(model)
    if settings.n_initial_clusters is None:
        seat(rng, state, rng.permutation(state.n))
        state.refresh()
    else:
        state.set_labels(rng.integers(settings.n_initial_clusters, size=state.n), rng)
    if settings.sampler != "exact":
        Centers(1, settings.sampler).step(rng, state)
    return state


def draw_clusters(model: ListModel, settings: DPMallowsSettings, draws: Draws) -> ClusterDraws:
    """Draw centers and decays given the labels of evenly spaced draws, by exact moves.

    A cluster's center starts from that of the cluster of the draw before with which it shares most agents (in
    the first, from the best item at every stage), so that small clusters over many items, whose centers move
    slowly, need not begin anew. The seed is fixed: a fit depends on its draws alone.
    """
    labels = evenly_spaced(draws.arrays["labels"], MAX_CLUSTER_DRAWS)
    if "concentration" in draws.arrays:
        concentration = evenly_spaced(draws.arrays["concentration"], MAX_CLUSTER_DRAWS).astype(float)
    else:
        concentration = np.full(len(labels), float(settings.concentration))  # type: ignore[arg-type]
    rng = np.random.default_rng(0)
    starts, sizes, centers, theta = [0], [], [], []
    before: ListState | None = None
    with at_most(settings.n_jobs), Display(settings.progress) as display:
        display.begin("drawing centers", len(labels))
        for row in labels:
            state = ListState(model)
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
        discount=model.discount,
    )
