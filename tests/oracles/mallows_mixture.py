"""Mixtures of Mallows models given preferences, by enumeration of rankings and components.

A mixture is a list of (weight, center, dispersion); preferences are a closed relation as in
``tests.oracles.posets_all``. Distributions are dictionaries from (ordering, component) to probabilities. The
broken twins at the end have one deliberate mistake each, which the tests must notice.
"""

from __future__ import annotations

import numpy as np

from tests.oracles import posets_all
from tests.oracles.ranking_models import kendall, mallows


def joint(relation, mixture):
    """π_k P(v | component k), one number per component."""
    n = len(mixture[0][1])
    agreeing = posets_all.linear_extensions(relation, n)
    distributions = [mallows(center, dispersion) for _, center, dispersion in mixture]
    return np.array(
        [
            w * sum(distribution[r] for r in agreeing)
            for (w, _, _), distribution in zip(mixture, distributions, strict=True)
        ]
    )


def posterior(relation, mixture):
    """P(r, z | v), section 3.3."""
    agreeing = posets_all.linear_extensions(relation, len(mixture[0][1]))
    distribution = {}
    for k, (weight, center, dispersion) in enumerate(mixture):
        component = mallows(center, dispersion)
        distribution |= {(r, k): weight * component[r] for r in agreeing}
    return _normalized(distribution)


def of_rankings(distribution):
    """Forget the component."""
    out = {}
    for (r, _), p in distribution.items():
        out[r] = out.get(r, 0.0) + p
    return out


def sp_distribution(relation, mixture, metropolis):
    """Distribution to which algorithm 3 tends, from its matrix of transitions.

    With ``metropolis`` the step of the ranking is MMP, equation 23; else it is a draw of AMP.
    """
    agreeing = posets_all.linear_extensions(relation, len(mixture[0][1]))
    of_component, proposals = [], []
    for _, center, dispersion in mixture:
        distribution = mallows(center, dispersion)
        of_component.append(np.array([distribution[r] for r in agreeing]))
        amp = posets_all.amp_distribution(relation, center, posets_all.geometric(dispersion))
        proposals.append(np.array([amp.get(r, 0.0) for r in agreeing]))
    given_ranking = np.array([w * p for (w, _, _), p in zip(mixture, of_component, strict=True)])
    given_ranking /= given_ranking.sum(axis=0)
    step = np.zeros((len(agreeing), len(agreeing)))
    to_pair = []
    for k in range(len(mixture)):
        q = proposals[k]
        move = np.broadcast_to(q, step.shape).copy()
        if metropolis:
            ratio = (of_component[k] / q)[None, :] / (of_component[k] / q)[:, None]
            move *= np.minimum(1.0, ratio)
            np.fill_diagonal(move, 0.0)
            np.fill_diagonal(move, 1.0 - move.sum(axis=1))
        to_pair.append(given_ranking[k][:, None] * move)
        step += to_pair[-1]
    distribution = np.full(len(agreeing), 1.0 / len(agreeing))
    for _ in range(60):
        step = step @ step
        step /= step.sum(axis=1, keepdims=True)
    distribution = distribution @ step
    pairs = {
        (r, k): float((distribution @ to_pair[k])[i])
        for k in range(len(mixture))
        for i, r in enumerate(agreeing)
    }
    return _normalized(pairs)


def _normalized(distribution):
    total = sum(distribution.values())
    return {key: p / total for key, p in distribution.items()}


# Broken twins.


def without_weights(relation, mixture):
    """Forget π."""
    return posterior(relation, [(1.0, center, dispersion) for _, center, dispersion in mixture])


def without_normalizers(relation, mixture):
    """Forget that components have different Z_k: φ_k^d alone."""
    agreeing = posets_all.linear_extensions(relation, len(mixture[0][1]))
    return _normalized(
        {
            (r, k): w * phi ** kendall(r, center)
            for k, (w, center, phi) in enumerate(mixture)
            for r in agreeing
        }
    )


def prior_labels(relation, mixture):
    """Take components with probability π, as if the preferences said nothing about them."""
    distribution = {}
    for k, (weight, center, dispersion) in enumerate(mixture):
        given = posterior(relation, [(1.0, center, dispersion)])
        distribution |= {(r, k): weight * p for (r, _), p in given.items()}
    return distribution
