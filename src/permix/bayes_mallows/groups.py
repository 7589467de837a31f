"""Groups of posterior draws of a Bayesian Mallows model, one after another."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from permix.bayes_mallows.parameters import BayesianMallowsParameters
from permix.data.labels import Array
from permix.distributions.agent_weights.logit import log_weights
from permix.partitions.priors import DirichletProcess, PartitionPrior
from permix.posterior.estimated import spaced

# Answers average over at most this many draws, evenly spaced.
MOST_DRAWS = 200


@dataclasses.dataclass(frozen=True)
class GroupDraws:
    """Groups of D posterior draws: those of a draw are rows one after another, as its labels count them."""

    starts: Array  # int64 (D + 1,): groups of draw d are rows starts[d] to starts[d + 1], end excluded
    sizes: Array  # int64 (rows,): members
    shares: Array  # (rows,): shares in the population, drawn given the members
    centers: Array  # int32 (rows, items): central orderings, best first
    decays: Array  # (rows,): λ = -ln dispersion
    labels: Array  # int32 (D, agents): groups within the draw
    concentration: Array  # (D,): of a Dirichlet process where it is learned, else 0
    # (D, 2): of a new agent, log-odds of a comparison to be right, and how they rise per rank; else zeros.
    errors: Array
    prior: PartitionPrior
    # (D, columns, K): where shares depend on columns, coefficients of all groups, those without members last.
    coefficients: Array | None = None

    @property
    def n_draws(self) -> int:
        return len(self.starts) - 1

    def of_draw(self, d: int) -> slice:
        """Rows of the groups of draw ``d``."""
        return slice(int(self.starts[d]), int(self.starts[d + 1]))

    @property
    def draw_of(self) -> Array:
        """Draw of each row."""
        return np.repeat(np.arange(self.n_draws), np.diff(self.starts))

    def log_weights(self, d: int) -> Array:
        """Ln prior weights of the groups of draw ``d`` and, last, of a new one; they sum to one.

        Where they depend on columns, of an agent like a random one of those fitted.
        """
        if self.coefficients is not None:
            shares = self.shares[self.of_draw(d)]
            with np.errstate(divide="ignore"):
                return np.log(np.append(shares, self._left(d, 1.0 - shares.sum())))
        prior = self.prior
        if isinstance(prior, DirichletProcess):
            fixed = prior.concentration if isinstance(prior.concentration, float) else self.concentration[d]
            prior = DirichletProcess(float(fixed))
        return prior.sequential_log_weights(self.sizes[self.of_draw(d)])

    def _left(self, d: int, value: Any) -> Any:
        """Return what groups without members have, which is nothing where there are none."""
        assert self.coefficients is not None
        here = self.of_draw(d)
        return np.maximum(value, 0.0) if here.stop - here.start < self.coefficients.shape[2] else 0.0 * value

    def all_log_weights(self, numbers: Array | None) -> Array:
        """Ln weights of the groups of all draws and, after them, of a new one in each, (1 or rows, groups).

        ``numbers`` are columns of rows where weights depend on any; without them all rows have the same.
        """
        if numbers is None:
            each = [self.log_weights(d) for d in range(self.n_draws)]
            new = np.array([logs[-1] for logs in each])
            return np.concatenate([*(logs[:-1] for logs in each), new])[None]
        assert self.coefficients is not None
        rows, which = np.unique(numbers, axis=0, return_inverse=True)
        out = np.full((len(rows), len(self.sizes) + self.n_draws), -np.inf)
        for d, coefficients in enumerate(self.coefficients):
            here, logs = self.of_draw(d), log_weights(rows, coefficients)
            n = here.stop - here.start
            out[:, here] = logs[:, :n]
            if n < logs.shape[1]:
                out[:, len(self.sizes) + d] = np.logaddexp.reduce(logs[:, n:], axis=1)
        return np.asarray(out[np.asarray(which).reshape(-1)])

    @classmethod
    def of(
        cls, arrays: Mapping[str, Any], settings: BayesianMallowsParameters, most: int = MOST_DRAWS
    ) -> GroupDraws:
        """Return the groups of evenly spaced draws; ``arrays`` are those of all draws."""
        joined = {name: _joined(array) for name, array in arrays.items()}
        kept = spaced(len(joined["labels"]), most)
        chosen = {name: np.asarray(array[kept]) for name, array in joined.items()}
        used = chosen["group_sizes"] > 0
        numbers = used.sum(axis=1)
        centers = np.moveaxis(chosen["group_centers"], 1, 2)[used]
        zeros = np.zeros(len(kept))
        return cls(
            starts=np.concatenate([[0], np.cumsum(numbers)]).astype(np.int64),
            sizes=chosen["group_sizes"][used].astype(np.int64),
            shares=chosen["group_shares"][used],
            centers=np.ascontiguousarray(centers, dtype=np.int32),
            decays=chosen["group_decays"][used],
            labels=chosen["labels"].astype(np.int32),
            concentration=chosen.get("concentration", zeros),
            errors=_errors(chosen, settings, len(kept)),
            prior=settings.partition_prior(),
            coefficients=chosen.get("coefficients"),
        )


def _errors(arrays: Mapping[str, Array], settings: BayesianMallowsParameters, n_draws: int) -> Array:
    """Return level and slope of the errors of a new agent in each draw.

    Where agents have rates of their own, those of somebody new are drawn from the prior, by a fixed seed.
    """
    out = np.zeros((n_draws, 2))
    if settings.errors is None:
        return out
    if settings.errors_per_agent:
        return prior_errors(settings, n_draws, np.random.default_rng(0))
    if settings.errors == "logistic":
        return np.stack([arrays["error_level"], arrays["error_slope"]], axis=1)
    rate = arrays["error_rate"]
    out[:, 0] = np.log1p(-rate) - np.log(rate)
    return out


def prior_errors(settings: BayesianMallowsParameters, size: int, rng: np.random.Generator) -> Array:
    """Draw level and slope of errors from their prior, (size, 2)."""
    a, b = settings.error_numbers()
    if settings.errors == "logistic":
        return np.asarray(rng.exponential(1.0 / np.array([a, b]), (size, 2)))
    from scipy.special import betainc, betaincinv

    rate = np.maximum(betaincinv(a, b, rng.random(size) * betainc(a, b, 0.5)), 1e-15)
    return np.stack([np.log1p(-rate) - np.log(rate), np.zeros(size)], axis=1)


def _joined(array: Array) -> Array:
    """Put chains one after another."""
    return array.reshape(-1, *array.shape[2:])
