"""The state of a chain of a Bayesian Mallows model: groups with centers and decays, and who is in them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from permix.bayes_mallows.chain.errors_jit import BERNOULLI, log_all_said
from permix.bayes_mallows.chain.groups_jit import update_groups
from permix.bayes_mallows.chain.statistics_jit import gather, has_costs, renumber
from permix.bayes_mallows.data import BayesModel
from permix.bayes_mallows.group_prior import LEAST_DECAY, MOST_DECAY, draw_groups
from permix.data.labels import Array
from permix.distributions.agent_weights.bayes import WIDTH, log_density
from permix.distributions.agent_weights.logit import log_weights
from permix.distributions.conditioning.amp_insertions_jit import geometric_models
from permix.distributions.conditioning.draws import Jobs, amp_draws
from permix.errors import DataError
from permix.kernels.distances import row_distances
from permix.kernels.streams import draw_key
from permix.moves.state import (
    PartitionState,
    first_concentration,
    learned_concentration,
    log_gamma_density,
    roomy,
)
from permix.partitions.labels import canonical_labels
from permix.partitions.population import dirichlet_given, draw_shares
from permix.partitions.priors import (
    DirichletProcess,
    FiniteDirichlet,
    Gamma,
    PriorTables,
)

# Taken along by what draws nothing; a new one each time would take longer than all else.
NO_DRAWS = np.random.default_rng(0)
MISFIT = "the checkpoint's groups are not those of these data"


class GroupState(PartitionState):
    """A partition of agents; a center and a decay of each group; a ranking of agents who leave some open.

    ``labels[agent]`` is a group from 0 on, numbered by first appearance in the order of rows. The first
    ``n_clusters`` slots of ``centers`` (rank vectors), ``decays``, ``sizes``, ``costs``, ``totals`` (sums of
    distances) and ``log_norms`` are in use, and right between steps. ``rankings`` are those known and, after
    them, the present ones of open agents. ``errors`` has the log-odds of a comparison to be right, and how
    they rise with each rank between its items: one row for everybody, or one for each agent.
    """

    def __init__(self, model: BayesModel) -> None:
        self.model = model
        self.prior_spec = model.partition_prior
        self.n = model.n_agents
        self.concentration = first_concentration(self.prior_spec)
        self.n_clusters = 0
        self.n_moved = 0
        self.labels = np.zeros(self.n, dtype=np.int32)
        n_known, n_open = len(model.known), len(model.open_agents)
        self.rankings = np.empty((n_known + n_open, model.n_items), dtype=np.int32)
        self.rankings[:n_known] = model.known
        self.shares = np.ones(0)
        self.errors = np.zeros((self.n if model.errors_per_agent else 1, 2))
        # Where shares depend on columns, coefficients of all groups, those that nobody is in last.
        self.coefficients: Array | None = None
        if model.columns is not None:
            assert isinstance(model.partition_prior, FiniteDirichlet)
            shape = model.columns.matrix.shape[1], model.partition_prior.n
            self.coefficients = np.zeros(shape)
        self._prior: tuple[float, PriorTables] | None = None
        self._allocate(1)

    def _allocate(self, capacity: int) -> None:
        n = self.model.n_items
        self.capacity = roomy(capacity) if capacity > 1 else 1
        self.centers = np.zeros((self.capacity, n), dtype=np.int32)
        self.decays, self.totals, self.log_norms = np.zeros((3, self.capacity))
        self.sizes = np.zeros(self.capacity, dtype=np.int64)
        side = n if has_costs.py_func(self.model.metric) else 0
        self.costs = np.zeros((self.capacity, side, side))

    def make_room(self, capacity: int) -> None:
        """Give the state at least so many slots."""
        if capacity > self.capacity:
            names = ("centers", "decays", "totals", "log_norms", "sizes", "costs")
            old = [getattr(self, name) for name in names]
            self._allocate(capacity)
            for name, array in zip(names, old, strict=True):
                getattr(self, name)[: len(array)] = array

    @property
    def prior(self) -> PriorTables:
        """The prior over partitions as moves read it, at the present concentration."""
        if self._prior is None or self._prior[0] != self.concentration:
            learned = learned_concentration(self.prior_spec) is not None
            spec = DirichletProcess(self.concentration) if learned else self.prior_spec
            self._prior = (self.concentration, spec.tables(self.n))
        return self._prior[1]

    @property
    def members(self) -> tuple[Array, Array, Array]:
        """Rankings, which one is an agent's, and labels: as compiled code takes them."""
        return self.rankings, self.model.ranking_of, self.labels

    @property
    def sizes_in_use(self) -> Array:
        return self.sizes[: self.n_clusters]

    @property
    def is_steady(self) -> bool:
        """Whether nobody can move, nor change a ranking."""
        return self.model.most_groups == 1 and not len(self.model.open_agents)

    # What groups are.

    def draw_from_prior(self, rng: np.random.Generator, size: int) -> tuple[Array, Array]:
        """Draw centers, as rank vectors, and decays of groups that nobody is in."""
        return draw_groups(self.model.prior, self.model.sums.distance, size, rng)

    def set_labels(self, labels: Array, rng: np.random.Generator) -> None:
        """Put agents into groups (any integers), with centers by mean ranks and decays to suit."""
        self.labels[:] = canonical_labels(labels)
        self.n_clusters = int(self.labels.max()) + 1
        self.make_room(self.n_clusters + 1)
        total = np.zeros((self.n_clusters, self.model.n_items))
        np.add.at(total, self.labels, self.rankings[self.model.ranking_of])
        ties = rng.random(total.shape)
        order = np.lexsort((ties, total), axis=1)
        self.centers[: self.n_clusters] = np.argsort(order, axis=1)
        self.decays[: self.n_clusters] = 1.0
        self.settle()
        sums = self.model.sums
        for k in range(self.n_clusters):  # as if one more member were drawn from the prior mean
            mean = sums.mean_distance(self.model.prior.shape / self.model.prior.rate)
            decay = sums.decay_at((self.totals[k] + mean) / (self.sizes[k] + 1.0), MOST_DECAY)
            self.decays[k] = max(decay, LEAST_DECAY)
        self.refresh()

    def take_draw(
        self,
        rng: np.random.Generator,
        labels: Array,
        centers: Array,
        decays: Array,
        errors: Array | None = None,
    ) -> None:
        """Go on from a draw: labels in the order of rows, orderings and decays of groups, rows of errors.

        Rankings of open agents agree with what they said, and are else drawn evenly: a few steps bring them
        to where the groups are.
        """
        self.complete(rng)
        self.n_clusters = len(decays)
        self.make_room(self.n_clusters + 1)
        self.labels[self.model.in_turn] = labels
        self.centers[: self.n_clusters] = np.argsort(centers, axis=1)
        self.decays[: self.n_clusters] = decays
        if errors is not None:
            self.errors[:] = errors if len(errors) == 1 else errors[np.argsort(self.model.in_turn)]
        self.settle()
        self.draw_shares(rng)

    def settle(self) -> None:
        """Number groups anew, leave out those without members, and bring statistics up to date."""
        model = self.model
        first_of = np.empty(self.n_clusters, dtype=np.int64)
        found = renumber(self.labels, model.in_turn, self.n_clusters, first_of)
        for array in (self.centers, self.decays):
            array[:found] = array[first_of[:found]]
        if self.coefficients is not None:
            others = np.setdiff1d(np.arange(self.coefficients.shape[1]), first_of[:found])
            self.coefficients = self.coefficients[:, np.concatenate([first_of[:found], others])]
        self.n_clusters = found
        self.recount()

    def recount(self) -> None:
        """Compute sizes, costs and sums of distances from labels and rankings."""
        n = self.model.n_items
        gather(self.model.metric, *self.members, self.n_clusters, self.sizes, np.empty((n, n)), self.costs)
        self.update_groups(NO_DRAWS, 0)

    def update_groups(self, rng: np.random.Generator, rounds: int) -> int:
        """Move centers and decays so many times; returns what changed."""
        model = self.model
        of_groups = (self.sizes, self.costs, self.centers, self.decays, self.totals, self.log_norms)
        given = (model.metric, model.sums.table, model.prior, self.members)
        return int(update_groups(rng, *given, *of_groups, self.n_clusters, rounds))

    def refresh(self) -> None:
        """Recompute all statistics."""
        self.settle()

    # What agents leave open.

    def complete(self, rng: np.random.Generator) -> None:
        """Give open agents rankings that agree with what they said for certain."""
        model, n = self.model, self.model.n_items
        if not len(model.open_agents):
            return
        arrays = model.arrays
        if model.soft:
            arrays = arrays._replace(
                pair_indptr=np.zeros_like(arrays.pair_indptr), pairs=np.zeros((0, 2), np.int32)
            )
        rows = model.row_of[model.open_agents]
        for start in range(0, len(rows), 1 << 14):
            some = rows[start : start + (1 << 14)]
            centers = np.arange(n, dtype=np.int32)[None]
            jobs = Jobs.of(arrays, some, np.zeros(len(some)), centers, geometric_models(np.zeros(1), n))
            orders = amp_draws(draw_key(rng), start, jobs, 1)[0][:, 0]
            ranks = np.argsort(orders, axis=1).astype(np.int32)
            self.rankings[len(model.known) + start : len(model.known) + start + len(some)] = ranks

    @property
    def rates(self) -> Array:
        """Bernoulli error rates, of everybody or of each agent in the order of rows."""
        rates = np.asarray(1.0 / (1.0 + np.exp(self.errors[:, 0])))
        return rates[self.model.in_turn] if len(rates) > 1 else rates

    # What is reported.

    def log_prior(self) -> float:
        """Log prior of the partition, of centers and decays, and of errors."""
        model, gamma = self.model, Gamma(self.model.prior.shape, self.model.prior.rate)
        of_labels = super().log_prior() if self.coefficients is None else self.log_prior_by_columns()
        value = of_labels - self.n_clusters * model.sums.log_z(model.prior.center_decay)
        value -= model.prior.center_decay * self._from_expected()
        value += sum(log_gamma_density(gamma, decay) for decay in self.decays[: self.n_clusters].tolist())
        if model.errors == BERNOULLI:
            a, b = model.error_prior
            rates = self.rates
            value += float(((a - 1.0) * np.log(rates) + (b - 1.0) * np.log1p(-rates)).sum())
        elif model.soft:
            value -= float((self.errors * model.error_prior).sum())
        return float(value)

    @property
    def members_by_pattern(self) -> Array:
        """Agents of each combination of values of columns in each group, (patterns, groups)."""
        columns, coefficients = self.model.columns, self.coefficients
        assert columns is not None
        assert coefficients is not None
        shape = len(columns.matrix), coefficients.shape[1]
        cells = np.bincount(columns.pattern_of * shape[1] + self.labels, minlength=shape[0] * shape[1])
        return cells.reshape(shape).astype(np.float64)

    def log_prior_by_columns(self) -> float:
        """Log prior of coefficients, and of labels given them."""
        columns, coefficients = self.model.columns, self.coefficients
        assert columns is not None
        assert coefficients is not None
        constant = coefficients.size * math.log(WIDTH * math.sqrt(2.0 * math.pi))
        return log_density(columns.matrix, self.members_by_pattern, coefficients) - constant

    def _from_expected(self) -> float:
        """How far all centers are together from where they are expected; 0 if anywhere alike."""
        prior = self.model.prior
        if prior.center_decay == 0.0:
            return 0.0
        centers = self.centers[: self.n_clusters]
        orders = np.argsort(centers, axis=1).astype(np.int32)
        return float(row_distances(self.model.metric, orders, centers, prior.center[None]).sum())

    def log_likelihood(self) -> float:
        """Ln p(rankings, and what was said of them | groups), the rankings of open agents included."""
        used = slice(None, self.n_clusters)
        value = -(self.decays[used] @ self.totals[used]) - self.sizes[used] @ self.log_norms[used]
        if self.model.soft:
            value += log_all_said(self.model.arrays, self.model.row_of, self.members, self.errors)
        return float(value)

    def record(self) -> dict[str, float | int | Array]:
        """One draw."""
        used = slice(None, self.n_clusters)
        draw = super().record()
        draw["labels"] = self.labels[self.model.in_turn]
        sizes = self.sizes[used]
        draw["dispersion"] = float(sizes @ np.exp(-self.decays[used]) / self.n)
        draw["distance"] = float(self.totals[used].sum() / self.n)
        if self.model.errors == BERNOULLI:
            rates = self.rates
            draw["error_rate"] = float(rates.mean())
            if self.model.errors_per_agent:
                draw["agent_error_rate"] = rates
        elif self.model.soft:
            draw["error_level"], draw["error_slope"] = self.errors.mean(axis=0).tolist()
            if self.model.errors_per_agent:
                in_turn = self.model.in_turn
                draw["agent_error_level"] = self.errors[in_turn, 0]
                draw["agent_error_slope"] = self.errors[in_turn, 1]
        draw["group_sizes"] = sizes
        draw["group_shares"] = self.shares
        draw["group_decays"] = self.decays[used]
        if self.coefficients is not None:
            draw["coefficients"] = self.coefficients
        draw["group_centers"] = np.argsort(self.centers[used], axis=1).T
        return draw

    def draw_shares(self, rng: np.random.Generator) -> None:
        """Draw the shares of groups in the population given who is in which.

        Where they depend on columns, they are means over the agents, given the coefficients.
        """
        if self.model.columns is not None:
            assert self.coefficients is not None
            matrix, pattern_of = self.model.columns
            times = np.bincount(pattern_of, minlength=len(matrix)) / self.n
            self.shares = (times @ np.exp(log_weights(matrix, self.coefficients)))[: self.n_clusters]
            return
        if self.model.most_groups == 1:
            self.shares = np.ones(1)
            return
        opening = float(self.prior.opening[self.n_clusters])
        given = dirichlet_given(self.prior_spec, self.sizes_in_use, rng, log_opening=opening)
        self.shares = draw_shares(given, rng)

    def checkpoint(self) -> dict[str, Array]:
        """Everything that cannot be recomputed."""
        return {
            "labels": self.labels.copy(),
            "centers": self.centers[: self.n_clusters].copy(),
            "decays": self.decays[: self.n_clusters].copy(),
            "capacity": np.array(self.capacity),
            "rankings": self.rankings[len(self.model.known) :].copy(),
            "errors": self.errors.copy(),
            "shares": self.shares.copy(),
            "concentration": np.array(self.concentration),
            **({} if self.coefficients is None else {"coefficients": self.coefficients.copy()}),
        }

    def restore(self, arrays: Mapping[str, Any]) -> None:
        """Take back what ``checkpoint`` gave."""
        given = {name: np.asarray(array) for name, array in arrays.items()}
        labels, centers, decays = given["labels"], given["centers"], given["decays"]
        n_groups, n = len(decays), self.model.n_items
        every = np.arange(n)
        # Compiled code does not check: a damaged checkpoint must not get there.
        proper = (
            labels.shape == (self.n,)
            and np.array_equal(np.unique(labels), np.arange(n_groups))
            and centers.shape == (n_groups, n)
            and np.array_equal(np.sort(centers, axis=1), np.tile(every, (n_groups, 1)))
            and bool(np.all((decays >= LEAST_DECAY) & np.isfinite(decays)))
            and given["rankings"].shape == (len(self.model.open_agents), n)
            and np.array_equal(
                np.sort(given["rankings"], axis=1), np.tile(every, (len(self.model.open_agents), 1))
            )
            and given["errors"].shape == self.errors.shape
            and bool(np.all(np.isfinite(given["errors"])))
            and given["shares"].shape == (n_groups,)
            and ("coefficients" in given) == (self.coefficients is not None)
        )
        if self.coefficients is not None and proper:
            drawn = given["coefficients"]
            proper = drawn.shape == self.coefficients.shape and bool(np.all(np.isfinite(drawn)))
        if not proper:
            raise DataError(MISFIT)
        self.labels[:] = labels
        self.n_clusters = n_groups
        self._allocate(max(int(given["capacity"]), n_groups))
        self.centers[:n_groups], self.decays[:n_groups] = centers, decays
        self.rankings[len(self.model.known) :] = given["rankings"]
        self.errors[:] = given["errors"]
        self.shares = given["shares"].astype(np.float64)
        self.concentration = float(given["concentration"])
        if self.coefficients is not None:
            self.coefficients = given["coefficients"].astype(np.float64)
        self.refresh()
