"""Gibbs sampling for mixtures of angle-based models: completions, components, parameters (section 4).

One iteration draws the completions of incomplete rows given their components, the components of all rows
given completions, and weights, concentrations and directions given both. The last is where the modes of
inference differ:

* ``quadrature``: κ from p(κ | Y) on a grid, then θ | κ, which is von Mises–Fisher: an exact draw;
* ``sir``: κ out of candidates from a Gamma law, the present κ among them, by weight. Resampling with the
  present state among the candidates leaves the posterior as it is, however few candidates there are;
* ``vi``: κ from the variational Gamma law, as the paper does: close to the posterior, not exact;
* with the exact or the balanced normaliser, Metropolis steps of κθ. Where exact sums are dear, the steps are
  those of a cheaper posterior, and where they end is one proposal for the exact one: an odd number of steps
  of two kinds in turn is the same forwards and backwards, so that the ratio of the two posteriors decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from permix.angle.ascent import updated
from permix.angle.components import (
    AngleComponents,
    AnglePrior,
    is_dear,
    largest_concentration,
    work_space,
)
from permix.angle.data import AngleData
from permix.angle.direct import Evidence
from permix.angle.exact_jit import log_sum_with_mean, maximise, metropolis_tilts
from permix.angle.mixture_jit import allocate
from permix.angle.settings import AngleSettings
from permix.data.labels import Array
from permix.distributions.angle import concentration_jit as kernels
from permix.distributions.angle.balanced_jit import balanced_log_sum
from permix.distributions.angle.completions_jit import completions_sweep, start_completions
from permix.distributions.angle.subset_table_jit import log_sum_only
from permix.errors import DataError
from permix.kernels.random import log_dirichlet
from permix.kernels.streams import draw_key
from permix.moves.base import Info
from permix.runtime.seeds import generator

# Agents of a chain.
MOST_AGENTS = 50_000_000
# Proposals for each incomplete row and iteration, per item.
PROPOSALS_PER_ITEM = 1.0
# Candidates of κ in each iteration of SIR within Gibbs; the paper takes 100.
N_CANDIDATES = 100
# Nodes of the grid that a draw of κ comes from.
N_NODES = 256
# Metropolis steps of κθ in each iteration under the exact normaliser, and under the balanced one.
EXACT_STEPS, BALANCED_STEPS = 40, 12
# The same, an odd number, before an exact sum decides about them where such sums are dear.
PROPOSING_STEPS = 13
# Most steps to the balanced maximum, around which the cheaper posterior is made.
CENTER_STEPS = 50
# Where exact sums are dear, stochastic EM takes balanced ones but for its last sweeps.
EXACT_SWEEPS = 30


class AngleChainModel:
    """Data, prior and settings, shared by all chains; agents with the same row are told apart."""

    def __init__(self, data: AngleData, settings: AngleSettings) -> None:
        # Of one component's full rankings Σ y says all; otherwise agents with the same row are told apart.
        self.summed = settings.n_components == 1 and data.is_full
        if data.n_agents > MOST_AGENTS and not self.summed:
            raise DataError(
                f"chains tell agents with the same row apart, and {data.n_agents:,} are too many for that; "
                f"take up to {MOST_AGENTS:,}, or full rankings with inference='em' or 'vi'"
            )
        expands = np.any(data.rankings.counts != 1) and not self.summed
        self.rankings = data.rankings.expand() if expands else data.rankings
        self.data = AngleData.of(self.rankings, data.n_jobs)
        self.settings = settings
        self.prior = AnglePrior.of(settings, data.items)
        self.normalizer = settings.normalizer_for(data.n_items)
        # Own, writable arrays: compiled code is specialised for those.
        self.listed = np.array(self.rankings.orders, dtype=np.int32, order="C")
        self.lengths = np.array(self.rankings.lengths, dtype=np.int64)
        self.below = np.array(self.rankings.unlisted_below, dtype=np.bool_)
        self.n_proposals = max(8, int(PROPOSALS_PER_ITEM * data.n_items))

    @property
    def n_rows(self) -> int:
        """Number of agents."""
        return len(self.lengths)


class AngleState:
    """One chain's completions, components of rows, and parameters."""

    def __init__(self, model: AngleChainModel, rng: np.random.Generator, start: AngleComponents) -> None:
        self.model, self.normalizer = model, model.normalizer
        self._components: AngleComponents | None = None
        k, t = model.settings.n_components, model.data.n_items
        self.weights = start.weights.copy()
        most = largest_concentration(t) if model.normalizer == "vmf" else np.inf
        self.kappas = np.clip(start.concentrations, 1e-6, most)
        self.directions = start.directions.copy()
        self.labels = rng.integers(k, size=model.n_rows).astype(np.int64)
        self.sums, self.masses = np.zeros((t, k)), np.zeros(k)
        self.log_sums = np.zeros(k)  # of the parameters at the last sweep
        self.log_likelihood = 0.0
        if model.data.is_full:
            self.orders = model.listed
        else:
            self.orders = np.empty((model.n_rows, t), dtype=np.int32)
            key, tilts = draw_key(rng), self.tilts

            def begin(part: tuple[int, int]) -> None:
                start_completions(
                    key,
                    0,
                    *part,
                    model.listed,
                    model.lengths,
                    model.below,
                    self.labels,
                    tilts,
                    model.data.scores,
                    self.orders,
                )

            model.data.over_parts(begin)

    @property
    def tilts(self) -> Array:
        """κ_k θ_k (K, items)."""
        return self.kappas[:, None] * self.directions

    def components(self) -> AngleComponents:
        """Return the present parameters as a mixture; its sums are found once while these stay."""
        last, present = self._components, (self.weights, self.directions, self.kappas)
        if (
            last is None
            or last.normalizer != self.normalizer
            or not all(map(np.array_equal, (last.weights, last.directions, last.concentrations), present))
        ):
            last = self._components = AngleComponents(self.model.data.items, *present, self.normalizer)
        return last

    def sweep(self, rng: np.random.Generator, *, soft: bool = False, shares: Array | None = None) -> None:
        """Draw completions and components, and add up the scores by component."""
        model, k = self.model, len(self.weights)
        parameters = self.components()
        tilts, offsets, self.log_sums = parameters.tilts, parameters.offsets, parameters.log_sums
        if model.summed:
            self.sums = model.data.sum_of_scores[:, None]
            self.masses = np.array([float(model.data.n_agents)])
            self.log_likelihood = model.data.total_log_density(tilts, offsets)
            return
        by_item = np.ascontiguousarray(tilts.T)
        keys = draw_key(rng), draw_key(rng)
        kept = np.empty((0, k)) if shares is None else shares

        def run(part: tuple[int, int]) -> tuple[float, Array, Array]:
            if not model.data.is_full:
                completions_sweep(
                    keys[0],
                    0,
                    *part,
                    self.orders,
                    model.listed,
                    model.lengths,
                    model.below,
                    self.labels,
                    tilts,
                    model.data.scores,
                    model.n_proposals,
                )
            sums, masses = np.zeros((model.data.n_items, k)), np.zeros(k)
            total = allocate(
                keys[1],
                0,
                *part,
                self.orders,
                self.labels,
                by_item,
                offsets,
                model.data.scores,
                soft,
                kept,
                sums,
                masses,
            )
            return total, sums, masses

        results = model.data.over_parts(run)
        self.log_likelihood = float(sum(result[0] for result in results))
        self.sums = sum(result[1] for result in results)
        self.masses = sum(result[2] for result in results)

    def draw_parameters(self, rng: np.random.Generator) -> tuple[int, int]:
        """Draw weights, concentrations and directions given the sums; return proposals and acceptances."""
        model, prior = self.model, self.model.prior
        k = len(self.weights)
        if k > 1:
            logs = np.empty(k)
            log_dirichlet(rng, prior.pseudo_count + self.masses, logs)
            self.weights = np.exp(logs)
            self.weights /= self.weights.sum()
        if model.normalizer != "vmf":
            return self._metropolis(rng)
        for g in range(k):
            evidence = Evidence.of(self.sums[:, g], self.masses[g], prior, model.data.scores, g)
            self.kappas[g] = self._kappa(rng, evidence, g)
            self.directions[g] = evidence.directions_given(self.kappas[g : g + 1], rng)[0]
        return k, k

    def _kappa(self, rng: np.random.Generator, evidence: Evidence, g: int) -> float:
        inference = self.model.settings.inference
        if inference == "quadrature":
            nodes, probabilities, _ = evidence.grid(N_NODES)
            return float(kernels.draw_from_grid(rng, nodes, probabilities))
        if inference == "sir":
            shape, rate = evidence.proposal()
            candidates = np.append(rng.gamma(shape, 1.0 / rate, size=N_CANDIDATES), self.kappas[g])
            candidates = np.maximum(candidates, kernels.LEAST)
            log_weights = evidence.log_density(candidates) - (
                (shape - 1.0) * np.log(candidates) - rate * candidates
            )
            below = np.cumsum(np.exp(log_weights - log_weights.max()))
            return float(candidates[np.searchsorted(below, rng.random() * below[-1], side="right")])
        q = updated(
            None,
            _one(self.model.prior, g),
            self.sums[:, g : g + 1],
            self.masses[g : g + 1],
            self.model.data.scores,
        )
        return float(np.clip(rng.gamma(q.shapes[0], 1.0 / q.rates[0]), kernels.LEAST, evidence.cap))

    def _metropolis(self, rng: np.random.Generator) -> tuple[int, int]:
        model = self.model
        if is_dear(self.normalizer, model.data.n_items):
            return self._proposed_and_decided(rng)
        n_steps = EXACT_STEPS if self.normalizer == "exact" else BALANCED_STEPS
        accepted = 0
        for g in range(len(self.weights)):
            tilts = np.ascontiguousarray(self.tilts[g])
            accepted += self._steps(rng, g, self.sums[:, g], tilts, self._tables, n_steps)
            self._move(g, tilts)
        return n_steps * len(self.weights), accepted

    def _proposed_and_decided(self, rng: np.random.Generator) -> tuple[int, int]:
        """Let steps under a cheaper posterior propose, and one exact sum decide.

        The cheaper posterior has the balanced sum, plus the difference to the exact one expanded to first
        order at the balanced maximum, which depends on the rankings alone.
        """
        scores, t = self.model.data.scores, self.model.data.n_items
        cheap, dear = work_space("balanced", t), self._tables
        accepted = 0
        for g in range(len(self.weights)):
            center, expected, balanced = np.zeros(t), np.zeros(t), np.zeros(t)
            if self.masses[g] > 0.0:
                mean = np.ascontiguousarray(self.sums[:, g] / self.masses[g])
                maximise(mean, scores, center, *cheap, CENTER_STEPS)
                log_sum_with_mean(center, scores, *dear, expected)
                log_sum_with_mean(center, scores, *cheap, balanced)
            slope = expected - balanced
            slope -= slope.mean()  # the balanced sum is in the zero-sum plane up to rounding alone
            before = np.ascontiguousarray(self.tilts[g])
            after = before.copy()
            n_accepted = self._steps(
                rng, g, self.sums[:, g] - self.masses[g] * slope, after, cheap, PROPOSING_STEPS
            )
            gain = log_sum_only(after, scores, dear[0]) - balanced_log_sum(after, scores)
            gain -= self.log_sums[g] - balanced_log_sum(before, scores)
            gain -= slope @ (after - before)
            if decided(rng, -self.masses[g] * gain):
                accepted += n_accepted
                self._move(g, after)
        return PROPOSING_STEPS * len(self.weights), accepted

    def _steps(
        self,
        rng: np.random.Generator,
        g: int,
        sums: Array,
        tilts: Array,
        tables: tuple[Array, Array],
        n_steps: int,
    ) -> int:
        """Move ``tilts`` of component g by Metropolis steps given Σ y; return how many were accepted."""
        prior = self.model.prior
        return int(
            metropolis_tilts(
                rng,
                self.masses[g],
                np.ascontiguousarray(sums),
                prior.pulls[g],
                prior.strength,
                prior.shape,
                prior.rate,
                self.model.data.scores,
                tilts,
                *tables,
                n_steps,
            )
        )

    def _move(self, g: int, tilts: Array) -> None:
        self.kappas[g] = np.linalg.norm(tilts)
        self.directions[g] = tilts / self.kappas[g]

    @cached_property
    def _tables(self) -> tuple[Array, Array]:
        """Work space of the normaliser: tables over subsets, or nothing where it is balanced."""
        return work_space(self.normalizer, self.model.data.n_items)

    def record(self) -> Mapping[str, float | int | Array]:
        """Return one draw."""
        drawn: dict[str, float | int | Array] = {
            "weights": self.weights,
            "concentrations": self.kappas,
            "directions": self.directions,
            # Of the completed rankings, where rows are incomplete: not what the rows alone say.
            "log_likelihood" if self.model.data.is_full else "completed_log_likelihood": self.log_likelihood,
        }
        if len(self.weights) > 1:
            drawn["labels"] = self.labels
        return drawn

    def progress(self) -> Mapping[str, float]:
        """Return numbers worth watching."""
        return {"log-likelihood": self.log_likelihood, "concentration": float(self.kappas.max())}

    def refresh(self) -> None:
        """Have nothing to compute afresh: sums are added up anew in every iteration."""
        self.directions -= self.directions.mean(axis=1, keepdims=True)
        self.directions /= np.linalg.norm(self.directions, axis=1, keepdims=True)

    def checkpoint(self) -> Mapping[str, Array]:
        """Return all that a chain needs to go on."""
        return {
            "weights": self.weights,
            "kappas": self.kappas,
            "directions": self.directions,
            "labels": self.labels,
            "orders": self.orders,
            "log_likelihood": np.array(self.log_likelihood),
        }

    def restore(self, arrays: Mapping[str, Array]) -> None:
        """Go back to a checkpoint."""
        for name in ("weights", "kappas", "directions", "labels", "orders"):
            here = getattr(self, name)
            if arrays[name].shape != here.shape:
                raise DataError(f"the stored chain does not fit: {name} has shape {arrays[name].shape}")
            setattr(self, name, np.array(arrays[name], dtype=here.dtype, order="C"))
        self.log_likelihood = float(arrays["log_likelihood"])


def decided(rng: np.random.Generator, log_ratio: float) -> bool:
    """Accept with probability min(1, exp(log_ratio))."""
    return bool(log_ratio >= -rng.standard_exponential())


class AngleSweep:
    """One iteration of the Gibbs sampler."""

    exact = True

    def step(self, rng: np.random.Generator, state: AngleState) -> Info:
        """Draw completions and components, then parameters."""
        state.sweep(rng)
        proposed, accepted = state.draw_parameters(rng)
        return Info("parameters", proposed, accepted)


def _one(prior: AnglePrior, g: int) -> AnglePrior:
    """Return the prior of component g alone."""
    from dataclasses import replace

    return replace(prior, pulls=prior.pulls[g : g + 1])


def stochastic_em(
    model: AngleChainModel, start: AngleComponents, rng: np.random.Generator, follow: Any = None
) -> tuple[AngleState, Any, list[float], bool]:
    """Maximum likelihood with incomplete rows: stochastic approximation EM (section 4.1, last remark).

    Sums are averaged over the sweeps of the second half with weights 1/1, 1/2, 1/3, …, so that Monte Carlo
    errors die out; the first half finds the neighbourhood.
    """
    from permix.angle.ascent import Likelihood

    settings, data = model.settings, model.data
    state = AngleState(model, rng, start)
    if is_dear(model.normalizer, data.n_items):
        state.normalizer = "balanced"
    law = Likelihood(state.weights, state.directions, state.kappas, state.normalizer, data)
    n_sweeps, history = settings.n_burn_in + settings.n_draws, []
    sums, masses = np.zeros_like(state.sums), np.zeros_like(state.masses)
    interrupted = False
    for sweep in range(n_sweeps):
        if n_sweeps - sweep <= EXACT_SWEEPS and state.normalizer != model.normalizer:
            state.normalizer = model.normalizer
            law = Likelihood(state.weights, state.directions, state.kappas, state.normalizer, data)
        state.sweep(rng, soft=True)
        share = 1.0 if sweep < settings.n_burn_in else 1.0 / (sweep - settings.n_burn_in + 1)
        sums += share * (state.sums - sums)
        masses += share * (state.masses - masses)
        law = law.following(sums, masses, data)
        state.weights, state.kappas = law.components.weights, np.maximum(law.components.concentrations, 1e-12)
        state.directions = law.components.directions
        history.append(state.log_likelihood)
        if follow is not None and not follow():
            interrupted = True
            break
    if state.normalizer != model.normalizer:  # interrupted before the last sweeps
        found = law.components
        law = Likelihood(found.weights, found.directions, found.concentrations, model.normalizer, data)
    return state, law, history, interrupted


def state_at(components: AngleComponents, rankings: Any, rng: np.random.Generator) -> AngleState:
    """Return a state of these parameters on these rows, each taken once; its sweeps leave the parameters."""
    settings = AngleSettings(components.n_components, inference="em", normalizer=components.normalizer)
    once = rankings._replaced(counts=np.ones(len(rankings), np.int64))
    return AngleState(AngleChainModel(AngleData.of(once), settings), rng, components)


def shares_by_sweeps(
    components: AngleComponents, rankings: Any, random_state: Any, n_sweeps: int = 200
) -> Array:
    """Return P(component | row) at fixed parameters, averaged over draws of completions and components."""
    rng = generator(random_state)
    state = state_at(components, rankings, rng)
    for _ in range(n_sweeps // 4):
        state.sweep(rng)
    shares = np.zeros((len(rankings), components.n_components))
    for _ in range(n_sweeps):
        state.sweep(rng, shares=shares)
    return shares / n_sweeps
