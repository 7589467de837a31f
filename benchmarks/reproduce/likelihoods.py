"""Log-likelihoods of mixtures of Mallows models as the paper takes them (equation 26), agent by agent."""

from __future__ import annotations

import numpy as np

from permix.data.preferences import Preferences
from permix.data.rankings import Rankings
from permix.distributions.conditioning.agent_posteriors import log_normalizers
from permix.distributions.conditioning.amp_insertions_jit import geometric_models
from permix.distributions.conditioning.components import MallowsComponents
from permix.distributions.conditioning.draws import Jobs, amp_draws, log_mean_exp
from permix.runtime.seeds import stream_key


def random_mixture(
    n_components: int, n_items: int, rng: np.random.Generator, low: float = 0.0, high: float = 1.0
) -> MallowsComponents:
    """Weights from Dirichlet(5, …), uniform centers, dispersions uniform between two numbers."""
    centers = np.stack([rng.permutation(n_items) for _ in range(n_components)])
    dispersions = rng.uniform(low, high, n_components)
    weights = rng.dirichlet(np.full(n_components, 5.0))
    return MallowsComponents(tuple(range(n_items)), weights, centers, -np.log(dispersions))


def full_log_likelihoods(rankings: Rankings, components: MallowsComponents) -> np.ndarray:
    """Of full rankings, in closed form."""
    each = [components.component(k).log_prob(rankings) for k in range(components.n_components)]
    return _mixed(np.stack(each, axis=1), components)


def exact_log_likelihoods(preferences: Preferences, components: MallowsComponents) -> np.ndarray:
    """By the down-sets of every agent's partial order."""
    models = [components.component(k) for k in range(components.n_components)]
    table = [
        [float(model.condition(preferences[row]).log_normalizer(method="exact")) for model in models]
        for row in range(len(preferences))
    ]
    return _mixed(np.array(table), components)


def monte_carlo_log_likelihoods(
    preferences: Preferences, components: MallowsComponents, n_draws: int, rng: np.random.Generator
) -> np.ndarray:
    """Equation 28 with T = ``n_draws`` draws of AMP for each agent and component."""
    models = geometric_models(components.decays, components.n_items)
    agents, k = np.arange(len(preferences)), components.n_components
    pairs = np.repeat(agents, k), np.tile(np.arange(k), len(agents))
    jobs = Jobs.of(preferences.arrays(), *pairs, components.centers, models)
    estimates, _ = log_mean_exp(amp_draws(stream_key(rng), 0, jobs, n_draws, with_orders=False)[2])
    return _mixed(estimates.reshape(-1, k), components)


def particle_log_likelihoods(
    preferences: Preferences, components: MallowsComponents, n_particles: int, rng: np.random.Generator
) -> np.ndarray:
    """Sequential Monte Carlo with AMP as proposal, four sets of particles for each agent and component."""
    estimates, _ = log_normalizers(components, preferences, n_particles, stream_key(rng), n_sets=4)
    return _mixed(estimates, components)


def _mixed(log_probabilities: np.ndarray, components: MallowsComponents) -> np.ndarray:
    """Turn ln P(v | component), agents by components, into ln P(v)."""
    terms = log_probabilities + components.log_weights
    largest = terms.max(axis=1)
    return np.asarray(largest + np.log(np.exp(terms - largest[:, None]).sum(axis=1)))
