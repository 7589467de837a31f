# mypy: ignore-errors
"""Work on all clusters of a partition of lists: their likelihoods, decays and centers."""

from __future__ import annotations

import numpy as np

from permix.distributions.generalized.finite_beta_jit import StageTables, draw_theta, log_integral
from permix.dp_mallows.lists.center_moves_jit import (
    attract,
    draw_window,
    find_center,
    reinsert,
    stagewise,
)
from permix.dp_mallows.lists.pair_counts_jit import alone_in, survey, total_skips
from permix.dp_mallows.lists.predictive_rows_jit import RowScratch
from permix.dp_mallows.lists.seating_jit import draw_center
from permix.dp_mallows.lists.top_lists_jit import undefined
from permix.kernels.jit import implements, kernel
from permix.kernels.streams import new_stream, open_stream

# As many rounds as this set a center to the best item at every stage.
START = -1


@kernel
def log_likelihoods(tables, totals, counts, out):
    """Write ln p(lists of cluster k | its center), decays integrated out (equation 15 with its constant)."""
    for k in range(out.size):
        out[k] = 0.0
        for j in range(totals.shape[1]):
            if counts[k, j] > 0.0:
                out[k] += (
                    log_integral(tables, j, tables.prior_a[j] + totals[k, j], tables.prior_c + counts[k, j])
                    - tables.prior_log_integral[j]
                )


@kernel
def log_integrals(tables, a, c, out):
    """Write ln ∫ exp(-a θ) ψ(θ)^-c dθ; all arrays are (any, stages)."""
    for k in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[k, j] = log_integral(tables, j, a[k, j], c[k, j])


@kernel
def log_likelihoods_by_place(tables, totals, counts, strength, rates, wanted, out):
    """Write ln p(lists | centers) of the places that are ``wanted``, summed over clusters.

    The prior of the decays is the one with this strength and these rates, whatever ``tables`` say.
    """
    for j in range(out.size):
        if wanted[j]:
            prior_a = strength * rates[j]
            empty = log_integral(tables, j, prior_a, strength)
            out[j] = 0.0
            for k in range(totals.shape[0]):
                if counts[k, j] > 0.0:
                    a, c = prior_a + totals[k, j], strength + counts[k, j]
                    out[j] += log_integral(tables, j, a, c) - empty


def log_prior_chances(tables: StageTables, n_items: int) -> np.ndarray:
    """Return ln P(skip = s) of every stage, θ integrated out; minus infinity for skips that cannot be.

    It is B̃eta(ν r + s, ν + 2, m) / B̃eta(ν r, ν + 1, m) (Meilă & Chen 2010, lemma 6): the likelihood of a
    cluster of one list that has this skip at this stage, and no other stage.
    """
    skips = np.arange(n_items)[:, None]
    out = np.empty((n_items, len(tables.skips)))
    log_integrals(tables, tables.prior_a + skips, np.full(out.shape, tables.prior_c + 1.0), out)
    out = np.where(skips <= tables.skips, out - tables.prior_log_integral, -np.inf).T
    # The sum is one already, up to the error of the integrals.
    return out - np.log(np.exp(out).sum(axis=1, keepdims=True))


@kernel
def draw_some_decays(key, tables, clusters, which, theta):
    """Draw the decays of these clusters given their centers into the columns of ``theta``."""
    stream = new_stream()
    for column in range(which.size):
        k = which[column]
        open_stream(stream, key[0], key[1], 0, k)
        for j in range(theta.shape[0]):
            a, c = tables.prior_a[j] + clusters.totals[k, j], tables.prior_c + clusters.counts[k, j]
            theta[j, column] = draw_theta(stream, a, c, tables.skips[j])


# How centers move is chosen by the type of ``rows``, as in seating_jit.


def draw_decays(rows, stream, tables, totals, counts, theta):
    """Draw θ of every stage given the center."""
    undefined("draw_decays")


def move_center(rows, stream, mentions, theta, order, places):
    """Move a center given θ; returns whether a stagewise proposal was taken."""
    undefined("move_center")


@implements(draw_decays, RowScratch, "rows")
def _draw_decays(rows, stream, tables, totals, counts, theta):
    for j in range(theta.size):
        theta[j] = draw_theta(
            stream, tables.prior_a[j] + totals[j], tables.prior_c + counts[j], tables.skips[j]
        )


@implements(move_center, RowScratch, "rows")
def _move_center(rows, stream, mentions, theta, order, places):
    low, high = draw_window(stream, order.size)
    accepted = stagewise(stream, mentions, theta, order, places, low, high)
    reinsert(stream, mentions, theta, order, places)
    return accepted


@kernel
def update_centers(rows, source, lists, tables, opening, clusters, key, n_rounds, redraw, first, last, taken):
    """Move the centers of clusters ``first`` to ``last``, each from its own stream; leave sums and θ right.

    A round draws θ given the center and moves the center given θ; at the end θ is drawn again, unless
    ``redraw`` is False: then it stays the one that the center was moved given, which is a draw as well.
    Without rounds only the sums are computed; START sets a center to the best item at every stage, given
    decays of 1.
    """
    n_items = clusters.places.shape[0]
    order = np.empty(n_items, np.int32)
    places = np.empty(n_items, np.int16)
    code = np.empty((2, n_items), np.int64)
    stream = new_stream()
    for k in range(first, last):
        totals, counts, theta = clusters.totals[k], clusters.counts[k], clusters.theta[k]
        open_stream(stream, key[0], key[1], 0, k)
        rounds = max(n_rounds, 0)
        if rounds > 0 and not rows.given and alone_in(source, k) >= 0:
            # The center of one list has a known distribution (lemma 7).
            draw_center(stream, lists, alone_in(source, k), opening, code, clusters.places, k)
            rounds = 0
        for item in range(n_items):
            places[item] = clusters.places[item, k]
            order[places[item]] = item
        if rounds > 0 or n_rounds < 0:
            mentions = survey(source, k, n_items)
            if n_rounds < 0:
                for j in range(theta.size):
                    theta[j] = 1.0
                find_center(stream, mentions, theta, order, places)
            for turn in range(rounds):
                if turn > 0 or not rows.given:
                    draw_decays(rows, stream, tables, totals, counts, theta)
                attract(mentions, theta)
                taken[k] += move_center(rows, stream, mentions, theta, order, places)
                total_skips(source, k, places, totals, counts)
        if rounds == 0:
            total_skips(source, k, places, totals, counts)
        if n_rounds > 0 and (redraw or rounds == 0):
            draw_decays(rows, stream, tables, totals, counts, theta)
        for item in range(n_items):
            clusters.places[item, k] = places[item]
