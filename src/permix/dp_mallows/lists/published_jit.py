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

from permix.dp_mallows.lists.center_moves_jit import attract, center_scratch, find_mentions, stage_by_stage
from permix.dp_mallows.lists.clusters_jit import center_of_one, read_center
from permix.dp_mallows.lists.predictive_rows_jit import LEAST
from permix.dp_mallows.lists.seating_jit import fill_stage, member_entry, open_by_skips, open_stages
from permix.dp_mallows.lists.top_lists_jit import sum_skips
from permix.kernels.jit import implements, kernel
from permix.kernels.mallows import log_normalizer_step
from permix.kernels.streams import exponential, new_stream, normal, open_stream, uniform

GIBBS_ROUNDS = 10  # T_Gibbs
SLICES = 3  # T_Slices
BETA_GIBBS, SLICE_GIBBS = 1, 2


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


@kernel
def published_decays(stream, tables, mode, totals, counts, theta):
    """Draw or move θ of every stage as the published sampler does."""
    for stage in range(theta.size):
        a = tables.prior_a[stage] + totals[stage]
        c = tables.prior_c + counts[stage]
        if mode == BETA_GIBBS:
            theta[stage] = beta_theta(stream, a, c + 1.0)
        else:
            theta[stage] = slice_theta(stream, theta[stage], a, c, tables.skips[stage])


@kernel
def stagewise_as_drawn(stream, lists, members, multiplicity, mentions, theta, order, places, scratch):
    """Draw a center stage by stage and take it as it comes (figure 2)."""
    n = order.size
    for place in range(n):
        scratch.window[place] = order[place]
    stage_by_stage(stream, lists, members, multiplicity, mentions, theta, n, 0, order, scratch)
    for place in range(n):
        places[order[place]] = place


@kernel
def published_center(
    stream,
    lists,
    members,
    multiplicity,
    first,
    last,
    tables,
    n_rounds,
    mode,
    order,
    places,
    totals,
    counts,
    theta,
    scratch,
):
    """Step 2 of figures 1 and 5: ``n_rounds`` (T_Gibbs) of a stagewise center and θ given each other."""
    n = order.size
    mentions = find_mentions(lists, members, first, last, n)
    if mode == BETA_GIBBS:
        # θ is integrated out elsewhere, so the first center needs one.
        sum_skips(lists, members, multiplicity, first, last, places, scratch.skips, totals, counts)
        published_decays(stream, tables, mode, totals, counts, theta)
    for _ in range(n_rounds):
        attract(lists, members, multiplicity, mentions, theta, scratch)
        stagewise_as_drawn(stream, lists, members, multiplicity, mentions, theta, order, places, scratch)
        sum_skips(lists, members, multiplicity, first, last, places, scratch.skips, totals, counts)
        published_decays(stream, tables, mode, totals, counts, theta)


@kernel
def update_centers_as_published(
    mode, lists, starts, members, multiplicity, tables, opening, clusters, key, n_rounds, first, last, taken
):
    """Step 2 of Beta-Gibbs or Slice-Gibbs for clusters ``first`` to ``last``, each from its own stream."""
    n_items = clusters.places.shape[0]
    scratch = center_scratch(n_items)
    order = np.empty(n_items, np.int32)
    places = np.empty(n_items, np.int16)
    code = np.empty(n_items, np.int64)
    stream = new_stream()
    for k in range(first, last):
        read_center(clusters, k, order, places)
        totals, counts, theta = clusters.totals[k], clusters.counts[k], clusters.theta[k]
        begin, end = starts[k], starts[k + 1]
        open_stream(stream, key[0], key[1], 0, k)
        if mode == BETA_GIBBS and end - begin == 1 and multiplicity[begin] == 1.0:
            center_of_one(stream, lists, members[begin], opening, clusters, k, code, scratch.skips)
            published_decays(stream, tables, mode, totals, counts, theta)
            continue
        published_center(
            stream,
            lists,
            members,
            multiplicity,
            begin,
            end,
            tables,
            n_rounds,
            mode,
            order,
            places,
            totals,
            counts,
            theta,
            scratch,
        )
        taken[k] = n_rounds
        for item in range(n_items):
            clusters.places[item, k] = places[item]


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
def fill_given(theta, m, joining):
    """Fill the row for any list, given the decay of the stage."""
    p = np.exp(-log_normalizer_step(theta, m + 1)) * (m + 1)
    fade = np.exp(-theta)
    for s in range(m + 1):
        joining[s] = max(p, LEAST)
        p *= fade


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
        fill_given(clusters.theta[k, stage], tables.skips[stage], joining)
    else:
        clusters.log_integrals[k, stage] = fill_beta(
            tables, stage, clusters.totals[k, stage], clusters.counts[k, stage], joining
        )


@implements(member_entry, PublishedRows, "rows")
def _member_entry(rows, tables, bins, clusters, k, stage, skip):
    if rows.given:
        return clusters.joining[k, stage, skip]
    return own_beta(tables, stage, clusters.totals[k, stage], clusters.counts[k, stage], skip)


@implements(open_stages, PublishedRows, "rows")
def _open_stages(rows, stream, tables, bins, lists, clusters, opening, k, d, code):
    if rows.given:
        open_by_slices(stream, tables, lists, clusters, k, d)
        for stage in range(clusters.totals.shape[1]):
            fill_stage(rows, tables, bins, clusters, k, stage)
    else:
        open_by_skips(rows, tables, bins, clusters, opening, k, lists.starts[d + 1] - lists.starts[d], code)


@kernel
def open_by_slices(stream, tables, lists, clusters, k, d):
    """Give a new cluster of list ``d`` decays and a center by step 2 of Slice-Gibbs (figure 1)."""
    n_items = clusters.places.shape[0]
    order = np.empty(n_items, np.int32)
    places = np.empty(n_items, np.int16)
    read_center(clusters, k, order, places)
    for j in range(clusters.theta.shape[1]):
        clusters.theta[k, j] = beta_theta(stream, tables.prior_a[j] + 1.0, tables.prior_c + 2.0)
    published_center(
        stream,
        lists,
        np.full(1, d, np.int32),
        np.ones(1),
        0,
        1,
        tables,
        GIBBS_ROUNDS,
        SLICE_GIBBS,
        order,
        places,
        clusters.totals[k],
        clusters.counts[k],
        clusters.theta[k],
        center_scratch(n_items),
    )
    for item in range(n_items):
        clusters.places[item, k] = places[item]


@kernel
def write_beta_opening(tables, opening):
    """Fill the distribution of new clusters by Beta functions."""
    n_stages, n_items = opening.cumulative.shape
    for stage in range(n_stages):
        m = tables.skips[stage]
        fill_beta(tables, stage, 0.0, 0.0, opening.joining[stage])
        total = 0.0
        for v in range(m + 1):
            total += opening.joining[stage, v]
            opening.cumulative[stage, v] = total
        for v in range(n_items):
            opening.cumulative[stage, v] = opening.cumulative[stage, v] / total if v < m else 1.0
