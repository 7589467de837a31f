# mypy: ignore-errors
"""Passes over rankings for mixtures of angle-based models: sums of scores, responsibilities, augmentation.

Every pass handles rows ``first`` to ``last`` and adds to sums of its own, so that parts may run in threads;
the parts depend on the data alone, and so do the totals, to the last bit.
"""

from __future__ import annotations

import numpy as np

from permix.kernels.jit import kernel
from permix.kernels.random import categorical_log_quantile
from permix.kernels.streams import new_stream, open_stream, uniform


@kernel
def add_scores(first, last, orders, counts, scores, sums):
    """Add the standardized rankings y of these rows, each as often as it counts, to ``sums`` (items,)."""
    t = scores.size
    for row in range(first, last):
        count = counts[row]
        for rank in range(t):
            sums[orders[row, rank]] += count * scores[rank]


@kernel
def _weigh(row, orders, scores, tilts, offsets, values):
    """Fill ``values`` with the ln weights of the components for a row, and return ln of their sum."""
    t, n_components = tilts.shape
    for k in range(n_components):
        values[k] = offsets[k]
    for rank in range(t):
        item, score = orders[row, rank], scores[rank]
        for k in range(n_components):
            values[k] += tilts[item, k] * score
    largest = -np.inf
    for k in range(n_components):
        largest = max(largest, values[k])
    if largest == -np.inf:
        return -np.inf
    total = 0.0
    for k in range(n_components):
        total += np.exp(values[k] - largest)
    return largest + np.log(total)


@kernel
def responsibilities(
    first,
    last,
    orders,
    counts,
    scores,
    tilts,
    offsets,
    rounding,
    probabilities,
    log_densities,
    sums,
    masses,
    totals,
):
    """One E-step and the sums of the M-step after it, in one pass (equations 16 to 20).

    ln weight of component k for a row is offsets[k] + Σ_r tilts[order[r], k] scores[r]. Where they have
    rows, ``probabilities`` (rows, K) is filled with P(component | row) and ``log_densities`` with ln Σ_k of
    the weights; ``sums`` (items, K), ``masses`` (K,) and ``totals`` (2,) are increased by Σ p y, Σ p and
    Σ ln Σ_k of the weights, the latter without what its ``rounding`` leaves, and that.

    ``rounding`` (3,) has what is added to a term and taken off again, which rounds it to a grid on which sums
    have no rounding errors: for shares, for logarithms, and for what their rounding leaves.
    """
    t, n_components = tilts.shape
    values = np.empty(n_components)
    of_shares, of_logs, of_rest = rounding[0], rounding[1], rounding[2]
    for row in range(first, last):
        log_density = _weigh(row, orders, scores, tilts, offsets, values)
        rounded = (log_density + of_logs) - of_logs
        totals[0] += counts[row] * rounded
        totals[1] += counts[row] * (((log_density - rounded) + of_rest) - of_rest)
        if log_densities.size:
            log_densities[row] = log_density
        for k in range(n_components):
            share = np.exp(values[k] - log_density)
            if probabilities.shape[0]:
                probabilities[row, k] = share
            values[k] = share
            masses[k] += counts[row] * ((share + of_shares) - of_shares)
        for rank in range(t):
            item, score = orders[row, rank], scores[rank]
            for k in range(n_components):
                sums[item, k] += counts[row] * ((values[k] * score + of_shares) - of_shares)


@kernel
def allocate(key, sweep, first, last, orders, labels, tilts, offsets, scores, soft, shares, sums, masses):
    """Draw the component of every full ranking, and add up y by component.

    ``tilts`` and ``offsets`` as in :func:`responsibilities`; ``labels`` is changed, and where it has rows
    ``shares`` is increased by the probabilities of the components; ``sums`` (items, K) and ``masses`` (K,) by
    Σ y and the number of rows: of each row's own component, or if ``soft`` (stochastic EM) of all by their
    probabilities. Returns Σ ln Σ_k of the weights.
    """
    t, n_components = tilts.shape
    stream = new_stream()
    values = np.empty(n_components)
    total = 0.0
    for row in range(first, last):
        log_density = _weigh(row, orders, scores, tilts, offsets, values)
        total += log_density
        if n_components > 1:
            open_stream(stream, key[0], key[1], sweep, row)
            labels[row] = categorical_log_quantile(uniform(stream), values, n_components)
        for k in range(n_components):
            values[k] = np.exp(values[k] - log_density)
        if shares.shape[0]:
            for k in range(n_components):
                shares[row, k] += values[k]
        if soft:
            for k in range(n_components):
                masses[k] += values[k]
            for rank in range(t):
                item, score = orders[row, rank], scores[rank]
                for k in range(n_components):
                    sums[item, k] += values[k] * score
        else:
            label = labels[row]
            masses[label] += 1.0
            for rank in range(t):
                sums[orders[row, rank], label] += scores[rank]
    return total
