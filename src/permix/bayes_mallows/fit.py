"""The work behind :class:`permix.BayesianMallowsMixture`, free of scikit-learn, which imports slowly."""

from __future__ import annotations

import dataclasses
from functools import cached_property, partial
from typing import Any, ClassVar, NamedTuple

import numpy as np

from permix.bayes_mallows.chain.by_agent import AssignmentsByColumns, Coefficients
from permix.bayes_mallows.chain.climb import FEWEST, climbed
from permix.bayes_mallows.chain.errors_jit import LOGISTIC
from permix.bayes_mallows.chain.moves import Assignments, Errors, Groups, LatentRankings, SharedSwaps
from permix.bayes_mallows.chain.optimum import settle_at_optimum
from permix.bayes_mallows.chain.split_merge import SplitMerge
from permix.bayes_mallows.chain.state import GroupState
from permix.bayes_mallows.data import BayesModel, bayes_model, full_rankings
from permix.bayes_mallows.given_number import of_given_number
from permix.bayes_mallows.groups import GroupDraws
from permix.bayes_mallows.parameters import BayesianMallowsParameters
from permix.bayes_mallows.scores import mean_chances
from permix.convergence import FEWEST_DRAWS, mcse_mean
from permix.data.agent_table import refuse_too_many_agents
from permix.data.labels import Array, Label
from permix.data.preferences import Preferences
from permix.distributions.agent_weights.design import Design
from permix.distributions.base import Estimate
from permix.estimators.known import NOTHING, Known
from permix.moves import Concentration, Cycle, Move
from permix.moves.state import learned_concentration
from permix.partitions import MixtureOfFiniteMixtures
from permix.partitions.point_estimate import PointEstimate
from permix.posterior import warn_if_chains_disagree
from permix.posterior.diagnostics import verdict_on
from permix.posterior.estimated import EstimatedPartition, nearest_partition
from permix.posterior.overlap import Overlap
from permix.runtime.fingerprint import digest
from permix.sampling import Draws, run_chains

# Where the number of groups is open, every other chain starts from so many.
MANY_GROUPS = 10


class RowColumns(NamedTuple):
    """What is known of rows that shares of groups depend on."""

    design: Design
    matrix: Array  # (rows, columns)

    @classmethod
    def of(cls, table: Preferences, settings: BayesianMallowsParameters) -> RowColumns | None:
        """Read it from a table, where a model asks for it."""
        if not settings.weights_by:
            return None
        design = Design.of(table, settings.weights_by)
        return cls(design, design.matrix(table))


@dataclasses.dataclass
class BayesianMallowsFit(EstimatedPartition):
    """Draws of a Bayesian Mallows model with all that is needed to use them."""

    model: ClassVar[str] = "BayesianMallowsMixture"

    settings: BayesianMallowsParameters
    items: tuple[Label, ...]
    preferences: Preferences  # what was fitted; a row with a count stands for that many agents
    draws: Draws  # of all chains: labels of agents in the order of preferences.expand(), and of groups
    estimate: PointEstimate  # partition of the agents that minimizes the posterior expected loss
    known: Known = NOTHING  # of the rows and items, beside what was fitted
    followed: tuple[Any, ...] = ()  # of each time that new data came in, what happened
    columns: RowColumns | None = None  # of the rows, where shares of groups depend on any

    @property
    def n_agents(self) -> int:
        """Number of agents fitted."""
        return int(self.preferences.n_agents)

    @property
    def n_known(self) -> tuple[int, int]:
        """Numbers of rows and of items."""
        return len(self.preferences), len(self.items)

    @property
    def agent_rows(self) -> Array:
        """Row of each agent."""
        return self.preferences.rows_of_agents()

    @property
    def overlapping(self) -> bool:
        """Whether the partition nearest to all draws joins groups, so that another one is shown."""
        return self.estimate.n_runs == 0

    @property
    def counts(self) -> Array:
        """Agents of each row."""
        return np.asarray(self.preferences.counts)

    @property
    def converged(self) -> bool:
        """Whether nothing says that the chains disagree."""
        return verdict_on(self.draws).converged is not False

    @property
    def log_likelihood(self) -> Estimate:
        """Posterior mean of ln p(full rankings, comparisons | groups), with its Monte Carlo error."""
        values = self.draws.arrays["log_likelihood"]
        enough = values.shape[1] >= 2 * FEWEST_DRAWS
        return Estimate(float(values.mean()), mcse_mean(values) if enough else float("nan"))

    @cached_property
    def groups(self) -> GroupDraws:
        """Groups of evenly spaced draws, which answers average over."""
        return GroupDraws.of(self.draws.arrays, self.settings)

    def numbers_of(self, table: Preferences) -> Array | None:
        """Return the columns that shares depend on as numbers, (rows, columns); None where there are none."""
        return None if self.columns is None else self.columns.design.matrix(table)

    @cached_property
    def overlap(self) -> Overlap:
        """Which estimated group each group of these draws speaks for."""
        return Overlap.of(self.groups, self.labels)

    @cached_property
    def n_possible_groups(self) -> Array | None:
        """P(number of groups | data), those without agents included; None if the prior has no such number."""
        prior = self.settings.partition_prior()
        if not isinstance(prior, MixtureOfFiniteMixtures):
            return None
        return prior.n_components_posterior(self.draws.arrays["n_groups"], self.n_agents)

    @cached_property
    def probabilities(self) -> Array:
        """P(estimated group | data) of every row, (rows, groups): how often its agents are in each.

        Rows that say the same are alike. Of full rankings it is the mean over draws of how probable groups
        are given the draw.
        """
        table, groups, n_groups = self.preferences, self.groups, self.n_clusters
        which = table.equal_rows()
        said = which[table.rows_of_agents()]
        votes = np.zeros((int(which.max()) + 1) * n_groups)
        for d in range(groups.n_draws):
            linked = self.overlap.linked[groups.of_draw(d)]
            votes += np.bincount(said * n_groups + linked[groups.labels[d]], minlength=len(votes))
        of_row: Array = votes.reshape(-1, n_groups)[which]
        of_row /= of_row.sum(axis=1, keepdims=True)
        full, ranks = full_rankings(table)
        of_full = mean_chances(ranks, groups, self.overlap.linked, n_groups, self.settings)
        if of_full is not None:
            of_row[full] = of_full
        return of_row

    @property
    def row_labels(self) -> Array:
        """The most probable estimated group of every row."""
        return np.asarray(self.probabilities.argmax(axis=1))


def fit_bayes_mallows(table: Preferences, settings: BayesianMallowsParameters) -> BayesianMallowsFit:
    """Run chains, summarize them, and warn where they disagree."""
    refuse_too_many_agents(np.asarray(table.counts))
    model = bayes_model(table, settings)
    draws = run_chains(
        [partial(first_place, model, settings, chain=chain) for chain in range(settings.n_chains)],
        sweep_move(model, settings),
        **settings.for_chains(work_of(model)),
        fingerprint=fingerprint_of(model, settings),
    )
    estimate = of_given_number(nearest_partition(draws, settings), draws, settings)
    warn_if_chains_disagree(draws)
    columns = RowColumns.of(table, settings)
    return BayesianMallowsFit(settings, table.items, table, draws, estimate, columns=columns)


def work_of(model: BayesModel) -> int:
    """Return how many numbers an iteration goes through, about."""
    n_open = len(model.open_agents)
    moving = 0 if model.most_groups == 1 else model.n_agents
    return (moving + n_open) * model.n_items + n_open * model.n_items**2 + model.n_items**2


def fingerprint_of(model: BayesModel, settings: BayesianMallowsParameters) -> dict[str, Any]:
    """Return what identifies model and data, for stores."""
    columns = {} if model.columns is None else {"columns": digest(model.columns._asdict())}
    return {
        "model": "BayesianMallowsMixture",
        "distance": settings.distance,
        "prior": settings.partition_prior().describe(),
        "decay_prior": [model.prior.shape, model.prior.rate],
        "center_prior": [model.prior.center_decay, model.prior.center.tolist()],
        "errors": [settings.errors, settings.errors_per_agent, *model.error_prior],
        "data": digest({**model.arrays._asdict(), "row_of": model.row_of}),
        **columns,
    }


def sweep_move(model: BayesModel, settings: BayesianMallowsParameters) -> Cycle:
    """Return what one iteration of a chain does."""
    moves: list[Move] = []
    if len(model.open_agents):
        moves += [LatentRankings(), SharedSwaps()]
    if model.most_groups > 1:
        moves.append(Assignments() if model.columns is None else AssignmentsByColumns())
    if model.is_open and model.columns is None:
        moves.append(SplitMerge())
    moves.append(Groups())
    if model.columns is not None:
        moves.append(Coefficients())
    if model.soft:
        moves.append(Errors())
    if learned_concentration(model.partition_prior) is not None:
        moves.append(Concentration())
    return Cycle(moves)


def first_place(
    model: BayesModel, settings: BayesianMallowsParameters, rng: np.random.Generator, chain: int = 0
) -> GroupState:
    """Return the state that a chain of a fit starts from: the best of many where groups are given."""
    if model.is_open or model.most_groups == 1 or model.n_agents < FEWEST:
        return first_state(model, rng, chain)
    if not len(model.open_agents):
        state = first_state(model, rng)
        settle_at_optimum(state, model.most_groups, rng)
        return state
    return climbed(partial(first_state, model, rng), sweep_move(model, settings), rng)


def first_state(model: BayesModel, rng: np.random.Generator, chain: int = 0) -> GroupState:
    """Return the state that a chain starts from.

    Agents are put into groups at random: into all groups where their number is given, else into one and into
    many in turn. Where chains do not meet, R-hat shows it.
    """
    state = GroupState(model)
    if model.soft:
        state.errors[:, 0] = 2.0
        state.errors[:, 1] = 0.5 if model.errors == LOGISTIC else 0.0
    state.complete(rng)
    n_groups = model.most_groups
    if model.is_open:
        n_groups = min(MANY_GROUPS, n_groups) if chain % 2 else 1
    state.set_labels(rng.integers(n_groups, size=state.n), rng)
    state.draw_shares(rng)
    return state
