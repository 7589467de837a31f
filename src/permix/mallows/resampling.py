"""How large groups would be had other agents been asked: a Bayesian bootstrap (Rubin 1981).

Every agent gets a weight from an exponential distribution, and EM climbs anew: centers and dispersions move
with the shares. It begins at whichever of the mixtures that the restarts found fits the weighted agents best.
Where other agents would make another optimum the best, that one is reached.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from permix.data.labels import Array
from permix.distributions.conditioning.components import MallowsComponents
from permix.mallows.agreement import LEAST_ALIKE, in_common
from permix.mallows.climbs import Follow
from permix.mallows.em import MallowsEM

# So many weighted samples say how far shares spread; fewer where there were few restarts to pay for.
N_SAMPLES = 32
SAMPLES_OF_RESTART = 4
# Samples of one task, for a thread.
OF_TASK = 8


class Begun(NamedTuple):
    """What the samples begin with."""

    new_em: Callable[[], MallowsEM]  # EM over the rows, which are all or a part of the agents
    mixtures: list[MallowsComponents]  # the first is the fit
    evidence: Array  # (mixtures, rows): ln P(row)
    labels: Array  # (rows,): the most probable group under the fit
    counts: Array  # (rows,): agents


Task = Callable[[Follow], list[Array]]


def resampled_shares(
    begun: Begun, n_restarts: int, n_agents: int, key: Array, run: Callable[[list[Task]], list[list[Array]]]
) -> Array | None:
    """Return the shares of what matches each group in samples, (samples, K); NaN where nothing does.

    Where the rows are a part of ``n_agents``, shares come nearer to those of the fit, as those of so many
    agents would be.
    """
    n_samples = min(N_SAMPLES, SAMPLES_OF_RESTART * (n_restarts + 2))
    seeds = np.random.SeedSequence(key.tolist()).spawn(-(-n_samples // OF_TASK))
    each = [min(OF_TASK, n_samples - at) for at in range(0, n_samples, OF_TASK)]
    tasks: list[Task] = [partial(_sampled, begun, *of) for of in zip(each, seeds, strict=True)]
    found = [shares for some in run(tasks) for shares in some]
    if not found:  # the user stopped it
        return None
    scale = math.sqrt(min(float(begun.counts.sum()) / n_agents, 1.0))
    return np.clip(scale * np.array(found) + (1.0 - scale) * begun.mixtures[0].weights, 0.0, 1.0)


def _sampled(begun: Begun, n_samples: int, seed: np.random.SeedSequence, follow: Follow) -> list[Array]:
    """Return the shares of each group in some samples."""
    rng, em, found = np.random.default_rng(seed), begun.new_em(), []
    k, counts = begun.mixtures[0].n_components, begun.counts
    for _ in range(n_samples):
        weights = rng.gamma(counts)
        weights *= counts.sum() / weights.sum()
        em.weigh(weights)
        best = begun.mixtures[int(np.argmax(begun.evidence @ weights))]
        components = em.climb(best, follow, 0).components
        if follow.stopped():
            break
        alike = in_common(begun.labels, em.labels(components), counts, k)
        there = components.weights[alike.argmax(axis=1)]
        found.append(np.where(alike.max(axis=1) >= LEAST_ALIKE, there, np.nan))
    return found


def begin(new_em: Callable[[], MallowsEM], mixtures: Sequence[MallowsComponents]) -> Begun:
    """Prepare samples of the rows of an EM, which is exact."""
    em = new_em()
    joint, counts = em.log_joint(mixtures[0])
    evidence = [np.logaddexp.reduce(joint, axis=1)]
    labels = joint.argmax(axis=1)
    evidence += [np.logaddexp.reduce(em.log_joint(other)[0], axis=1) for other in mixtures[1:]]
    return Begun(new_em, list(mixtures), np.array(evidence), labels, counts)
