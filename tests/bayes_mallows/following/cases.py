"""Draws given some agents that follow others, in small enough cases that everything can be enumerated."""

from __future__ import annotations

import numpy as np

from permix.bayes_mallows.data import as_statements, bayes_model
from permix.bayes_mallows.fit import fit_bayes_mallows
from permix.bayes_mallows.following.follow import Particles, follow
from permix.bayes_mallows.following.new_data import growth
from permix.bayes_mallows.following.particles import particles_of
from tests.bayes_mallows.cases import pairs_of, settings_of
from tests.oracles import bayes_mallows as oracle

N = 1500


def settings_for(distance, prior="one", errors="none", **options):
    runs = {"n_draws": N, "n_thin": 2, "n_burn_in": 100, "n_chains": 1, "random_state": 0, "progress": False}
    return settings_of(distance, prior, errors, **runs, **options)


def followed(before, new, settings, seed=0, particles=Particles, move=False, rounds=2):
    """Return particles that began with draws given ``before``, with weights that ``new`` gives them."""
    before, new = as_statements(before), as_statements(new)
    fit = fit_bayes_mallows(before, settings)
    rng = np.random.default_rng(seed)
    grown = growth(before, new, True, settings.errors is None)
    start = particles_of(fit.draws, 0, N, bayes_model(before, settings), rng)
    found = particles(start, grown, rng)
    follow(found, settings, rounds, move=move)
    return found


def means_of(found, n_agents):
    """What enumeration says of numbers of :func:`numbers_of`."""
    above = np.triu_indices(found.model.n, 1)
    values = []
    for agent in range(n_agents):
        values += [found.center_before(agent)[above]]
        values += [[found.mean_decay(agent), found.decay_cdf(0.5, agent)]]
    values.append(found.together[np.triu_indices(n_agents, 1)])
    values.append(found.n_groups[1:])
    return np.concatenate([np.ravel(each) for each in values])


def numbers_of(particle):
    """The order of items in the center of each agent's group, its decay, who is together, how many groups."""
    labels, ranks = particle.labels, np.argsort(particle.centers, axis=1)[particle.labels]
    first, second = pairs_of(ranks.shape[1])
    decays = particle.decays[labels][:, None]
    by_agent = np.hstack([ranks[:, first] < ranks[:, second], decays, decays <= 0.5])
    n = len(labels)
    one, other = pairs_of(n)
    n_groups = np.arange(1, n + 1) == len(particle.decays)
    return np.concatenate([by_agent.ravel(), labels[one] == labels[other], n_groups]).astype(float)


def gaps(found, means, n_blocks=30):
    """How many errors weighted means are from what they should be, by leaving out blocks of particles."""
    numbers = np.array([numbers_of(particle) for particle in found.particles])
    weights = np.exp(found.log_weights - found.log_weights.max())
    blocks = np.arange(len(weights)) * n_blocks // len(weights)
    sums = np.array([weights[blocks == b] @ numbers[blocks == b] for b in range(n_blocks)])
    totals = np.array([weights[blocks == b].sum() for b in range(n_blocks)])
    without = (sums.sum(axis=0) - sums) / (totals.sum() - totals)[:, None]
    spread = np.sqrt((n_blocks - 1) * without.var(axis=0))
    gap = sums.sum(axis=0) / totals.sum() - means
    return gap / np.maximum(spread, 3.0 / len(weights))


def evidence(model, before, new_agents):
    """P(what new agents say | what those before said)."""
    together = oracle.posterior(model, (*before, *new_agents)).evidence
    return together / oracle.posterior(model, before).evidence
