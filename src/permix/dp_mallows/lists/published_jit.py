# mypy: ignore-errors
"""Steps of Slice-Gibbs and Beta-Gibbs as published, for comparison.

They are approximations: centers are drawn stagewise without correction (lemma 2 of Meilă & Chen 2010 is not
exact), and Beta-Gibbs draws decays from Beta laws, which hold for infinitely many items.
"""

from __future__ import annotations

import numpy as np

from permix.dp_mallows.lists.center_moves_jit import attract, find_mentions, stagewise
from permix.dp_mallows.lists.top_lists_jit import sum_skips
from permix.kernels.jit import kernel
from permix.kernels.mallows import log_normalizer_step
from permix.kernels.streams import exponential, normal, uniform

GIBBS_ROUNDS = 10  # T_Gibbs
SLICES = 3  # T_Slices
BETA_GIBBS, SLICE_GIBBS = 1, 2


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
        stagewise(stream, lists, members, multiplicity, mentions, theta, order, places, 0, n, False, scratch)
        sum_skips(lists, members, multiplicity, first, last, places, scratch.skips, totals, counts)
        published_decays(stream, tables, mode, totals, counts, theta)
