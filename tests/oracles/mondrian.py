"""What a Mondrian chain must reproduce: forward draws of the prior, and the posterior by weighing them."""

from __future__ import annotations

import math
from collections import defaultdict

import numpy as np

from permix.partitions import canonical_labels
from permix.partitions.mondrian import sample_mondrian


def induced(tree, rows, columns):
    """The partition of cells, by first appearance."""
    return tuple(canonical_labels(tree.locate(rows, columns).ravel()).tolist())


def features_of(tree):
    """Numbers whose means tell one distribution of trees from another."""
    n = tree.n_blocks
    cut = tree.n_cuts > 0
    times = tree.times()
    low, high = (np.where(tree.axis == 0, tree.rectangles[:, i], tree.rectangles[:, 2 + i]) for i in (0, 1))
    return np.array(
        [
            np.nansum((tree.cuts - low) / (high - low) - 0.5),
            n,
            n == 1,
            n == 2,
            n * n,
            tree.cuts[0] if cut else 0.0,
            tree.cuts[0] ** 2 if cut else 0.0,
            times[0] if cut else 0.0,
            times[0] ** 2 if cut else 0.0,
            tree.axis[0] == 0,
            np.nansum(times),
            np.nansum(np.where(tree.axis == 1, tree.cuts, 0.0) ** 2),
            np.nansum(times * np.where(tree.axis == 0, tree.cuts, 0.0)),
        ],
        dtype=float,
    )


def forward_features(rng, budget, n):
    """Features of independent draws by algorithm 1."""
    return np.array([features_of(sample_mondrian(rng, budget)) for _ in range(n)])


def batch_error(values, n_batches=25):
    """Standard error of the mean of dependent draws, from the means of batches."""
    size = len(values) // n_batches
    means = values[: size * n_batches].reshape(n_batches, size, -1).mean(axis=1)
    return means.std(axis=0, ddof=1) / math.sqrt(n_batches)


def largest_z(chain, reference, independent=False):
    """The largest difference of means, in standard errors of the difference."""
    own = chain.std(axis=0) / math.sqrt(len(chain)) if independent else batch_error(chain)
    error = np.hypot(own, reference.std(axis=0) / math.sqrt(len(reference)))
    return float(np.max(np.abs(chain.mean(axis=0) - reference.mean(axis=0)) / error))


def drawn_partitions(rng, budget, shape, n):
    """Partitions of cells that draws of the prior induce, for :func:`importance_posterior`."""
    return [
        induced(sample_mondrian(rng, budget), rng.random(shape[0]), rng.random(shape[1])) for _ in range(n)
    ]


def importance_posterior(draws, shape, log_likelihood):
    """Probability of each induced partition, and its standard error, by weighing draws of the prior."""
    weight_of = {}
    sums, squares = defaultdict(float), defaultdict(float)
    total = 0.0
    square_total = 0.0
    for key in draws:
        if key not in weight_of:
            weight_of[key] = math.exp(log_likelihood(np.array(key).reshape(shape)))
        weight = weight_of[key]
        sums[key] += weight
        squares[key] += weight * weight
        total += weight
        square_total += weight * weight
    posterior = {key: value / total for key, value in sums.items()}
    # Σ w² (1 - p)² over draws in the key, Σ w² p² over the others.
    errors = {
        key: math.sqrt(squares[key] * (1 - p) ** 2 + (square_total - squares[key]) * p * p) / total
        for key, p in posterior.items()
    }
    return posterior, errors


def largest_partition_z(keys, posterior, errors, least=0.005):
    """Largest deviation of a chain's frequencies from the posterior, among partitions that matter."""
    keys_that_matter = [key for key, probability in posterior.items() if probability >= least]
    number = {key: i for i, key in enumerate(keys_that_matter)}
    seen = np.array([number.get(key, -1) for key in keys])
    hits = (seen[:, None] == np.arange(len(number))).astype(float)
    probabilities = np.array([posterior[key] for key in keys_that_matter])
    own = np.hypot(batch_error(hits), 1.0 / len(keys))
    error = np.hypot(own, [errors[key] for key in keys_that_matter])
    return float(np.max(np.abs(hits.mean(axis=0) - probabilities) / error))


def published_chain(rng, budget, n, flaw=None):
    """Start from a draw of the prior, take ``n`` steps by the proposals of section 5.2, return the features.

    Add: a leaf of K, E ~ Exp(τ), refused where it exceeds what is left; remove: one of D cuts between leaves.
    The ratio of adding is (ω' ω''/ω) K/D. Flaws: "no count" leaves K/D out; "misprint" takes τ'' for both.
    """
    from permix.partitions.mondrian import MondrianTree

    tree = sample_mondrian(rng, budget)
    axis, cuts, times = (list(part) for part in tree.to_preorder())
    for _ in range(n):
        tree = MondrianTree.from_preorder(axis, cuts, times, budget)
        tau = tree.rectangles[:, 1] - tree.rectangles[:, 0] + tree.rectangles[:, 3] - tree.rectangles[:, 2]
        leaves = np.flatnonzero(tree.axis < 0)
        inner = np.flatnonzero(tree.axis >= 0)
        cherries = [v for v in inner if np.all(tree.axis[tree.children[v]] < 0)]
        adding = rng.random() < 0.5
        if adding:
            node = int(rng.choice(leaves))
            cost = rng.exponential(1.0 / tau[node])
            left = tree.budgets[node] - cost
            chi = rng.random() * tau[node]
            if left >= 0:
                height = tree.rectangles[node, 1] - tree.rectangles[node, 0]
                kind = 0 if chi < height else 1
                along = chi if kind == 0 else chi - height
                low, high = tree.rectangles[node, 2 * kind : 2 * kind + 2]
                part = along, (high - low) - along
                across = tau[node] - (high - low)
                taus = (part[0] + across, part[1] + across)
                n_cherries = len(cherries) + 1 - any(node in tree.children[v] for v in cherries)
                log_ratio = _log_ratio(
                    taus, tau[node], left, tree.budgets[node], len(leaves), n_cherries, flaw
                )
                if -rng.exponential() < log_ratio:
                    axis[node : node + 1] = [kind, -1, -1]
                    cuts[node : node + 1] = [low + along, math.nan, math.nan]
                    times[node : node + 1] = [budget - left, math.nan, math.nan]
        elif cherries:
            node = int(rng.choice(cherries))
            children = tree.children[node]
            left = tree.budgets[children[0]]
            log_ratio = _log_ratio(
                tau[children], tau[node], left, tree.budgets[node], len(leaves) - 1, len(cherries), flaw
            )
            if -rng.exponential() < -log_ratio:
                axis[node : node + 3] = [-1]
                cuts[node : node + 3] = [math.nan]
                times[node : node + 3] = [math.nan]
    return features_of(MondrianTree.from_preorder(axis, cuts, times, budget))


def _log_ratio(taus, tau, left, before, n_leaves, n_cherries, flaw):
    first = taus[1] if flaw == "misprint" else taus[0]
    value = -(first + taus[1]) * left + tau * before
    # ω is that of the whole leaf, with the budget it had: e^(-τ λ) cancels e^(-τ E) of the cost drawn.
    if flaw != "no count":
        value += math.log(n_leaves / n_cherries)
    return value
