"""What exactness tests of moves share: priors, enumerated posteriors, and how visits are counted."""

from __future__ import annotations

from functools import cache

import numpy as np

from permix.moves.state import MixtureState, score_empty
from permix.partitions import (
    DirichletProcess,
    FiniteDirichlet,
    MixtureOfFiniteMixtures,
    PitmanYor,
    canonical_labels,
)
from tests.families.cases import CASES
from tests.oracles.mixtures import exact_posterior
from tests.oracles.twins import TwinFamily

PRIORS = {
    "dp": DirichletProcess(0.8),
    "pitman-yor": PitmanYor(0.5, 0.3),
    "finite": FiniteDirichlet(3, 0.7),
    "mfm": MixtureOfFiniteMixtures(1.5, 0.7),
}


@cache
def posterior(name, prior, n):
    """All partitions of the first n data of a case and their probabilities."""
    family, X = CASES[name]
    return exact_posterior(family, X[:n], PRIORS[prior].log_prob)


def state_of(name, prior_spec, n, twin=None):
    """A state of the first n data of a case, none of them seated."""
    family, X = CASES[name]
    data = family.encode(X[:n])
    scored = family if twin is None else TwinFamily(family, **twin)
    return MixtureState(scored, data, n, prior_spec, empty_scores=score_empty(family, data, n))


def visits_of(move, state, partitions, n_steps, seed, n_burn_in=20):
    """Which partition a chain from one cluster is in after each step, as positions in ``partitions``."""
    index = {labels: position for position, labels in enumerate(partitions)}
    seen = {}  # labels as the chain numbers them
    rng = np.random.default_rng(seed)
    state.set_labels(np.zeros(state.n, dtype=np.int64))
    for _ in range(n_burn_in):
        move.step(rng, state)
    visits = np.empty(n_steps, dtype=np.int64)
    for t in range(n_steps):
        move.step(rng, state)
        raw = state.labels.tobytes()
        if raw not in seen:
            seen[raw] = index[tuple(canonical_labels(state.labels).tolist())]
        visits[t] = seen[raw]
    return visits


def chain_frequencies(move, state, partitions, n_steps, seed):
    """Frequencies of partitions over a chain, and the effective number of draws by batch means."""
    visits = visits_of(move, state, partitions, n_steps, seed)
    frequencies = np.bincount(visits, minlength=len(partitions)) / n_steps
    batches = visits.reshape(100, -1)
    common = np.flatnonzero(frequencies > 0.02)
    p = frequencies[common]
    batch_variance = np.stack([(batches == k).mean(axis=1) for k in common]).var(axis=1)
    n_effective = float(np.median(p * (1 - p) / batch_variance)) * 100
    return frequencies, min(n_effective, float(n_steps))
