"""What chains of Bayesian Mallows models read: agents one by one, what they said, and priors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from permix.bayes_mallows.chain.errors_jit import BERNOULLI, LOGISTIC, NO_ERRORS
from permix.bayes_mallows.group_prior import GroupPrior, group_prior
from permix.bayes_mallows.parameters import BayesianMallowsParameters
from permix.data.labels import Array
from permix.data.preferences import Preferences
from permix.distributions.agent_weights.design import Design
from permix.distributions.distances.normalizer import Normalizer, normalizer
from permix.errors import DataError
from permix.estimators.preference_input import as_preferences
from permix.estimators.preference_input import as_statements as as_statements
from permix.kernels.pairwise_counts import PreferenceArrays
from permix.partitions.priors import PartitionPrior

KINDS = {None: NO_ERRORS, "bernoulli": BERNOULLI, "logistic": LOGISTIC}


class AgentColumns(NamedTuple):
    """What is known of agents that shares of groups depend on."""

    matrix: Array  # (patterns, columns): each combination of values once, as numbers
    pattern_of: Array  # int64 (agents,)


@dataclass(frozen=True)
class BayesModel:
    """Data and priors.

    Agents are in the order of their rankings, so that those who say the same full ranking are together;
    ``in_turn`` are they in the order of rows, each row as often as its count says.
    """

    n_items: int
    sums: Normalizer  # of the distance
    partition_prior: PartitionPrior
    prior: GroupPrior
    arrays: PreferenceArrays  # of rows
    in_turn: Array  # int64 (agents,)
    row_of: Array  # int64 (agents,)
    known: Array  # int32 (rankings, items): ranks of full rankings, each once
    # Which ranking is an agent's: those known come first, then those of open agents, one for each.
    ranking_of: Array  # int64 (agents,)
    open_agents: Array  # int64: agents who leave something open
    errors: int  # NO_ERRORS, BERNOULLI or LOGISTIC
    error_prior: tuple[float, float]
    errors_per_agent: bool
    columns: AgentColumns | None = None  # where shares depend on any

    @property
    def n_agents(self) -> int:
        return len(self.row_of)

    @property
    def metric(self) -> int:
        """The distance as a number in compiled code."""
        return self.sums.code

    @property
    def soft(self) -> bool:
        """Whether comparisons may be wrong."""
        return self.errors != NO_ERRORS

    @property
    def most_groups(self) -> int:
        """The largest number of groups that agents can be in."""
        return self.partition_prior.most_clusters(self.n_agents)

    @property
    def is_open(self) -> bool:
        """Whether there may be as many groups as agents."""
        return 1 < self.n_agents == self.most_groups


def reader_for(settings: BayesianMallowsParameters) -> Any:
    """Return the function that reads data for a model with these settings."""
    return as_preferences if settings.errors is None else as_statements


def full_rankings(table: Preferences) -> tuple[Array, Array]:
    """Return which rows are full rankings without ties, and their rank vectors."""
    n, n_rows = table.n_items, len(table)
    listed = np.diff(table.level_indptr)
    row = np.repeat(np.arange(n_rows), listed)
    place = np.arange(len(table.level_items)) - table.level_indptr[row]
    full = (listed == n) | ((listed == n - 1) & table.rest_below)
    full[row[table.levels != place]] = False
    rows = np.flatnonzero(full)
    ranks = np.full((n_rows, n), n - 1, dtype=np.int32)  # an item that is not listed is last
    ranks[row, table.level_items] = table.levels
    return rows, ranks[rows]


def bayes_model(table: Preferences, settings: BayesianMallowsParameters) -> BayesModel:
    """Prepare data and priors."""
    n = table.n_items
    if n < 2:
        raise DataError("there is one item only; rankings need two or more")
    sums = normalizer(settings.distance, n)
    rows, ranks = full_rankings(table)
    known, which = (
        np.unique(ranks, axis=0, return_inverse=True) if len(ranks) else (ranks, np.zeros(0, dtype=np.int64))
    )
    of_row = np.full(len(table), -1, dtype=np.int64)
    of_row[rows] = np.asarray(which).reshape(-1)
    row_of = table.rows_of_agents().astype(np.int64)
    ranking_of = of_row[row_of]
    is_open = ranking_of < 0
    ranking_of[is_open] = len(known) + np.arange(np.count_nonzero(is_open))
    order = np.argsort(ranking_of, kind="stable")
    in_turn = np.empty_like(order)
    in_turn[order] = np.arange(len(order))
    arrays = table.arrays()
    columns = None
    if settings.weights_by:
        numbers = Design.of(table, settings.weights_by).matrix(table)
        matrix, pattern_of = np.unique(numbers, axis=0, return_inverse=True)
        columns = AgentColumns(matrix, np.asarray(pattern_of).reshape(-1)[row_of[order]])
    return BayesModel(
        n_items=n,
        sums=sums,
        partition_prior=settings.partition_prior(),
        prior=group_prior(settings, table.items, sums),
        arrays=PreferenceArrays(*[np.array(each) for each in arrays]),  # writable, as kernels expect
        in_turn=in_turn,
        row_of=row_of[order],
        known=np.ascontiguousarray(known, dtype=np.int32),
        ranking_of=ranking_of[order],
        open_agents=np.flatnonzero(is_open[order]),
        errors=KINDS[settings.errors],
        error_prior=settings.error_numbers(),
        errors_per_agent=settings.errors_per_agent,
        columns=columns,
    )
