"""The state of a chain of angle-based mixtures (section 4): completions, components of rows, parameters."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import numpy as np

from permix.angle.components import AngleComponents, AnglePrior, largest_concentration
from permix.angle.data import AngleData
from permix.angle.mixture_jit import allocate
from permix.angle.parameters import AngleParameters
from permix.data.labels import Array
from permix.data.rankings import Rankings
from permix.distributions.angle.completions_jit import completions_sweep, start_completions
from permix.distributions.angle.normalizers import Tables, work_space
from permix.errors import Argument, DataError
from permix.kernels.streams import draw_key
from permix.runtime.seeds import RandomState, generator

# Agents of a chain.
MOST_AGENTS = 50_000_000
# Proposals for each incomplete row and iteration, per item.
PROPOSALS_PER_ITEM = 1.0
# What a checkpoint holds of a state, beside its log-likelihood.
KEPT = ("weights", "kappas", "directions", "labels", "orders")


class AngleChainModel:
    """Data, prior and settings, shared by all chains."""

    def __init__(self, data: AngleData, settings: AngleParameters) -> None:
        # Of one component's full rankings Σ y says all; otherwise agents with the same row are told apart.
        self.summed = settings.n_components == 1 and data.is_full
        if data.n_agents > MOST_AGENTS and not self.summed:
            raise DataError(
                f"chains tell agents with the same row apart, and {data.n_agents:,} are too many for "
                f"that; take up to {MOST_AGENTS:,}, or full rankings with ",
                Argument("inference", "em"),
            )
        expands = np.any(data.rankings.counts != 1) and not self.summed
        self.rankings = data.rankings.expand() if expands else data.rankings
        self.data = AngleData(self.rankings, data.n_jobs)
        self.settings = settings
        self.prior = AnglePrior.of(settings, data.items)
        self.normalizer = settings.normalizer_for(data.n_items)
        # Own, writable arrays: compiled code is specialized for those.
        self.listed = np.array(self.rankings.orders, dtype=np.int32, order="C")
        self.lengths = np.array(self.rankings.lengths, dtype=np.int64)
        self.below = np.array(self.rankings.unlisted_below, dtype=np.bool_)
        self.n_rows = len(self.lengths)
        self.n_proposals = max(8, int(PROPOSALS_PER_ITEM * data.n_items))


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
            key, known = draw_key(rng), self._known(self.tilts)
            model.data.over_parts(lambda part: start_completions(key, 0, *part, *known, self.orders))

    def _known(self, tilts: Array) -> tuple[Array, ...]:
        """What completions of the rows depend on."""
        model = self.model
        return model.listed, model.lengths, model.below, self.labels, tilts, model.data.scores

    @property
    def tilts(self) -> Array:
        """κ_k θ_k (K, items)."""
        return self.kappas[:, None] * self.directions

    def components(self) -> AngleComponents:
        """Return the present parameters as a mixture; its sums are found once while these stay."""
        last, present = self._components, (self.weights, self.directions, self.kappas)
        same = last is not None and last.normalizer == self.normalizer
        if last is None or not (same and all(map(np.array_equal, last.parameters, present))):
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
        known, scores = self._known(tilts), model.data.scores

        def run(part: tuple[int, int], sums: Array, masses: Array) -> float:
            if not model.data.is_full:
                completions_sweep(keys[0], 0, *part, self.orders, *known, model.n_proposals)
            rows = (self.orders, self.labels, by_item, offsets, scores, soft, kept)
            return allocate(keys[1], 0, *part, *rows, sums, masses)

        self.log_likelihood, self.sums, self.masses = model.data.added_up(run, k)

    def move_to(self, g: int, tilts: Array) -> None:
        """Set κθ of a component."""
        self.kappas[g] = np.linalg.norm(tilts)
        self.directions[g] = tilts / self.kappas[g]

    @cached_property
    def tables(self) -> Tables:
        """Work space of the normalizer: tables over subsets, or nothing where it is balanced."""
        return work_space(self.normalizer, self.model.data.n_items)

    def record(self) -> Mapping[str, float | int | Array]:
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
        return {"log-likelihood": self.log_likelihood, "concentration": float(self.kappas.max())}

    def refresh(self) -> None:
        """Have nothing to compute afresh: sums are added up anew in every iteration."""
        self.directions -= self.directions.mean(axis=1, keepdims=True)
        self.directions /= np.linalg.norm(self.directions, axis=1, keepdims=True)

    def checkpoint(self) -> Mapping[str, Array]:
        """Return all that a chain needs to go on."""
        kept = {name: getattr(self, name) for name in KEPT}
        return {**kept, "log_likelihood": np.array(self.log_likelihood)}

    def restore(self, arrays: Mapping[str, Array]) -> None:
        for name in KEPT:
            here = getattr(self, name)
            if arrays[name].shape != here.shape:
                raise DataError(f"the stored chain does not fit: {name} has shape {arrays[name].shape}")
            setattr(self, name, np.array(arrays[name], dtype=here.dtype, order="C"))
        self.log_likelihood = float(arrays["log_likelihood"])


def state_at(components: AngleComponents, rankings: Rankings, rng: np.random.Generator) -> AngleState:
    """Return a state of these parameters on these rows, each taken once; its sweeps leave the parameters."""
    settings = AngleParameters(components.n_components, normalizer=components.normalizer)
    once = rankings._replaced(counts=np.ones(len(rankings), np.int64))
    return AngleState(AngleChainModel(AngleData(once), settings), rng, components)


def shares_by_sweeps(
    components: AngleComponents, rankings: Rankings, random_state: RandomState, n_sweeps: int = 200
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
