# mypy: ignore-errors
"""Steps of Slice-Gibbs and Beta-Gibbs as published, for comparison.

They are approximations: centers are drawn stagewise without correction (lemma 2 of Meilă & Chen 2010 is not
exact), and Beta-Gibbs draws decays from Beta distributions, which hold for infinitely many items. Nothing
that the exact sampler runs imports this file.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from permix.dp_mallows.lists.center_moves_jit import attract, stage_by_stage
from permix.dp_mallows.lists.clusters_jit import draw_decays, move_center
from permix.dp_mallows.lists.many_items_jit import find_mentions
from permix.dp_mallows.lists.predictive_rows_jit import LEAST, fill_given
from permix.dp_mallows.lists.seating_jit import draw_parameters, fill_stage, member_entry
from permix.dp_mallows.lists.top_lists_jit import Members, sum_skips
from permix.kernels.jit import implements, kernel
from permix.kernels.mallows import log_normalizer_step
from permix.kernels.streams import exponential, normal, uniform

GIBBS_ROUNDS = 10  # T_Gibbs
SLICES = 3  # T_Slices


class PublishedRows(NamedTuple):
    """Rows by the Beta approximation (figure 5), or given the present decays (figure 1)."""

    given: bool


@kernel
def _standard_gamma(stream, shape):
    """Draw from Gamma(shape, 1) (Marsaglia & Tsang 2000), for any positive shape."""
    boost = 1.0
    if shape < 1.0:
        boost = np.exp(-exponential(stream) / shape)
        shape += 1.0
    d = shape - 1.0 / 3.0
    c = 1.0 / np.sqrt(9.0 * d)
    while True:
        x = normal(stream)
        v = (1.0 + c * x) ** 3
        if v > 0.0 and -exponential(stream) < 0.5 * x * x + d - d * v + d * np.log(v):
            return boost * d * v


@kernel
def beta_theta(stream, a, b):
    """Draw θ with exp(-θ) ~ Beta(a, b), equation 12."""
    x = _standard_gamma(stream, a)
    y = _standard_gamma(stream, b)
    return np.log1p(y / x)


@kernel
def slice_theta(stream, theta, a, c, m):
    """Move θ by slice sampling with stepping out, figure 3; density ∝ exp(-a θ) ψ_m(θ)^-c."""
    for _ in range(SLICES):
        level = -a * theta - c * log_normalizer_step(theta, m + 1) - exponential(stream)
        width = 1.0
        low = theta - width * uniform(stream)
        high = low + width
        while low > 0.0 and -a * low - c * log_normalizer_step(low, m + 1) > level:
            low -= width
        low = max(low, 0.0)
        while -a * high - c * log_normalizer_step(high, m + 1) > level:
            high += width
        while True:
            proposed = low + (high - low) * uniform(stream)
            if proposed > 0.0 and -a * proposed - c * log_normalizer_step(proposed, m + 1) > level:
                theta = proposed
                break
            if proposed < theta:
                low = proposed
            else:
                high = proposed
    return theta


@implements(draw_decays, PublishedRows, "rows")
def _draw_decays(rows, stream, tables, totals, counts, theta):
    for stage in range(theta.size):
        a = tables.prior_a[stage] + totals[stage]
        c = tables.prior_c + counts[stage]
        if rows.given:
            theta[stage] = slice_theta(stream, theta[stage], a, c, tables.skips[stage])
        else:
            theta[stage] = beta_theta(stream, a, c + 1.0)


@implements(move_center, PublishedRows, "rows")
def _move_center(rows, stream, mentions, theta, order, places):
    """Draw a center stage by stage and take it as it comes (figure 2)."""
    for place in range(order.size):
        mentions.window[place] = order[place]
    stage_by_stage(stream, mentions, theta, order.size, 0, order)
    for place in range(order.size):
        places[order[place]] = place
    return True


# Rows, and new clusters.


@kernel
def fill_beta(tables, stage, total, count, joining):
    """Fill the row for a further list by the Beta approximation, equation 13; returns ln of the integral."""
    a = tables.prior_a[stage] + total
    c = tables.prior_c + count
    m = tables.skips[stage]
    p = (c + 1.0) / (a + c + 1.0)
    for s in range(m + 1):
        joining[s] = max(p * (m + 1), LEAST)
        p *= (a + s) / (a + s + c + 2.0)
    return log_beta(a, c + 1.0)


@kernel
def log_beta(a, b):
    """Return ln of the Beta function."""
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


@kernel
def own_beta(tables, stage, total, count, skip):
    """Return the relative probability of a member's ``skip`` given the other members, by Beta functions."""
    a = tables.prior_a[stage] + total
    c = tables.prior_c + count
    return max((tables.skips[stage] + 1) * np.exp(log_beta(a, c + 1.0) - log_beta(a - skip, c)), LEAST)


@implements(fill_stage, PublishedRows, "rows")
def _fill_stage(rows, tables, bins, clusters, k, stage):
    joining = clusters.joining[k, stage]
    if rows.given:
        fill_given(clusters.theta[k, stage], tables.skips[stage], bins, joining)
    else:
        clusters.log_integrals[k, stage] = fill_beta(
            tables, stage, clusters.totals[k, stage], clusters.counts[k, stage], joining
        )


@implements(member_entry, PublishedRows, "rows")
def _member_entry(rows, tables, bins, clusters, k, stage, skip):
    if rows.given:
        return clusters.joining[k, stage, skip]
    return own_beta(tables, stage, clusters.totals[k, stage], clusters.counts[k, stage], skip)


@implements(draw_parameters, PublishedRows, "rows")
def _draw_parameters(rows, stream, tables, lists, clusters, k, d):
    """Give a new cluster of list ``d`` decays and a center by step 2 of Slice-Gibbs (figure 1)."""
    if not rows.given:
        return
    n_items = clusters.places.shape[0]
    order = np.empty(n_items, np.int32)
    places = np.empty(n_items, np.int16)
    for item in range(n_items):
        places[item] = clusters.places[item, k]
        order[places[item]] = item
    totals, counts, theta = clusters.totals[k], clusters.counts[k], clusters.theta[k]
    for j in range(theta.size):
        theta[j] = beta_theta(stream, tables.prior_a[j] + 1.0, tables.prior_c + 2.0)
    members = Members(np.full(1, d, np.int32), np.ones(1))
    mentions = find_mentions(lists, members, 0, 1, n_items)
    for _ in range(GIBBS_ROUNDS):
        attract(mentions, theta)
        move_center(rows, stream, mentions, theta, order, places)
        sum_skips(lists, members, 0, 1, places, totals, counts)
        draw_decays(rows, stream, tables, totals, counts, theta)
    for item in range(n_items):
        clusters.places[item, k] = places[item]
