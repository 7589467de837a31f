"""Integrals over a decay, what they predict, and draws of decays, against quadrature from the definition."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest
from scipy import optimize, stats

from permix.distributions.generalized.finite_beta_jit import (
    draw_theta,
    log_integral,
    stage_tables,
    theta_mode,
)
from permix.dp_mallows.lists.predictive_rows_jit import (
    ENOUGH_FOR_OWN,
    fill_finite,
    last_own,
    own_relative,
    row_scratch,
    skip_bins,
)
from permix.dp_mallows.lists.published_jit import (
    beta_theta,
    fill_beta,
    fill_given,
    own_beta,
    slice_theta,
)
from permix.kernels.streams import new_stream, open_stream
from tests.every_run import first_in_every_run, pairs_in_every_run
from tests.oracles.dp_mallows import kolmogorov_bound

# Quadrature in u = ln θ: Gauss and Legendre's rule on 150 panels, ψ summed term by term.

NODES, WEIGHTS = np.polynomial.legendre.leggauss(30)


def log_psi(theta, m):
    return np.log(np.exp(-np.outer(theta, np.arange(m + 1))).sum(axis=1))


def exponent(u, a, c, m):
    return u - a * np.exp(u) - c * log_psi(np.exp(u), m)


def relevant(a, c, m):
    """Ends in u of what is not negligible."""
    u = np.linspace(-40.0, 20.0, 2000)
    height = exponent(u, a, c, m)
    inside = np.flatnonzero(height > height.max() - 45.0)
    return u[max(inside[0] - 1, 0)], u[min(inside[-1] + 1, len(u) - 1)]


@cache
def quadrature(a, c, m):
    """ln ∫ exp(-aθ) ψ_m(θ)^-c dθ."""
    ends = np.linspace(*relevant(a, c, m), 151)
    half = (ends[1] - ends[0]) / 2
    u = (ends[:-1] + half)[:, None] + half * NODES
    height = exponent(u.ravel(), a, c, m)
    peak = height.max()
    weights = np.broadcast_to(half * WEIGHTS, u.shape).ravel()
    return float(peak + np.log(weights @ np.exp(height - peak)))


def distribution(a, c, m):
    """Distribution function of θ, by Simpson's rule on a fine grid."""
    u = np.linspace(*relevant(a, c, m), 20_001)
    height = exponent(u, a, c, m)
    density = np.exp(height - height.max())
    middle = np.exp(exponent((u[1:] + u[:-1]) / 2, a, c, m) - height.max())
    areas = np.concatenate([[0.0], np.cumsum(density[1:] + density[:-1] + 4 * middle)])
    return lambda theta: np.interp(np.log(theta), u, areas / areas[-1])


def tables(n_items, n_stages=1, strength=1.0, rate=1.0, n_lists=1000):
    return stage_tables(n_items, n_stages, np.full(n_stages, rate), strength, n_lists)


def stream(seed=0):
    opened = new_stream()
    open_stream(opened, 11, seed, 0, 0)
    return opened


# The integral.


def test_quadrature_has_the_closed_forms():
    assert quadrature(2.5, 0.0, 3) == pytest.approx(-math.log(2.5), abs=1e-12)
    assert quadrature(2.5, 3.0, 0) == pytest.approx(-math.log(2.5), abs=1e-12)
    assert quadrature(1.0, 1.0, 1) == pytest.approx(math.log(math.log(2)), abs=1e-12)
    assert quadrature(1.0, 2.0, 1) == pytest.approx(math.log(0.5), abs=1e-12)


MEAN_SKIPS = {
    "none": lambda m: 0.0,
    "few": lambda m: 0.02,
    "some": lambda m: min(1.0, 0.4 * m),
    "nearly uniform": lambda m: 0.4995 * m,
    "uniform": lambda m: 0.5 * m,
    "above uniform": lambda m: 0.52 * m,
    "nearly all": lambda m: 0.9 * m,
}


@pytest.mark.parametrize(
    ("prior", "n_items", "mean_skip"),
    pairs_in_every_run([(1.0, 1.0), (0.01, 0.1), (0.2, 1.0), (60.0, 2.0)], [1, 2, 3, 8, 65, 601], MEAN_SKIPS),
)
def test_integral(prior, n_items, mean_skip):
    strength, rate = prior
    for n_lists in (3, 100_000):
        made = tables(n_items, 1, strength, rate, n_lists)
        for count in {0, 1, 3, 40, 3000, 100_000}:
            if count > n_lists:
                continue
            total = float(round(count * MEAN_SKIPS[mean_skip](n_items - 1)))
            a, c = strength * rate + total, strength + count
            exact = quadrature(a, c, n_items - 1)
            # Where 100 000 lists skip nearly everything, all the mass is below the end of the grid at 1e-9.
            error = 1e-6 if mean_skip == "nearly all" else 2e-8
            assert log_integral(made, 0, a, c) == pytest.approx(exact, abs=error, rel=1e-14)


def test_stages_have_one_item_less_each():
    made = stage_tables(9, 8, np.linspace(0.5, 2.0, 8), 3.0, 50)
    for stage in range(8):
        assert made.prior_a[stage] == pytest.approx(3.0 * np.linspace(0.5, 2.0, 8)[stage])
        assert made.prior_log_integral[stage] == pytest.approx(
            quadrature(made.prior_a[stage], 3.0, 8 - stage), abs=1e-9
        )
        assert log_integral(made, stage, 20.0, 13.0) == pytest.approx(
            quadrature(20.0, 13.0, 8 - stage), abs=1e-9
        )


# Rows of predictive probabilities.


def of_member(made, bins, stage, total, count, log_whole, own, skip):
    """The relative probability of a member's skip, looked up or computed as a sweep does."""
    if skip <= last_own(bins, made.prior_a[stage] + total, count):
        return own[skip]
    return own_relative(made, bins, stage, total, count, log_whole, skip)


ROW_CASES = [  # items, stage, total, count
    (1, 0, 0.0, 2.0),
    (2, 0, 1.0, 5.0),
    (8, 2, 0.0, 0.0),
    (8, 0, 9.0, 4.0),
    (8, 0, 0.0, 30.0),
    (8, 0, 200.0, 50.0),
    (20, 1, 400.0, 30.0),
    (64, 0, 0.0, 12.0),
    (64, 0, 10.0, 20.0),
    (64, 0, 40.0, 30.0),
    (64, 0, 700.0, 1000.0),
    (64, 0, 31_700.0, 1000.0),
    (64, 0, 45_000.0, 1000.0),
    (300, 0, 5.0, 1.0),
    (300, 0, 30.0, 30.0),
    (300, 4, 900.0, 60.0),
    (300, 0, 9000.0, 60.0),
]


def rows_of(n_items, stage, total, count, exact=False, strength=1.0):
    made = tables(n_items, stage + 1, strength)
    bins = skip_bins(n_items, exact)
    joining, own = np.full(len(bins.middle), np.nan), np.full(bins.n_exact, np.nan)
    log_whole = fill_finite(made, bins, stage, total, count, joining, own, row_scratch())
    return made, bins, joining, own, log_whole


@pytest.mark.parametrize("strength", [1.0, 0.1, 7.5])
@pytest.mark.parametrize(("n_items", "stage", "total", "count"), ROW_CASES)
def test_rows_of_joining(n_items, stage, total, count, strength):
    _, bins, joining, _, log_whole = rows_of(n_items, stage, total, count, strength=strength)
    a, c, m = strength + total, strength + count, n_items - 1 - stage
    whole = quadrature(a, c, m)
    assert log_whole == pytest.approx(whole, abs=1e-7)
    for skip in {0, 1, 5, m // 3, m - 1, m} & set(range(m + 1)):
        middle = bins.middle[bins.of_skip[skip]]
        assert (skip == middle) or skip >= bins.n_exact
        truth = max((m + 1) * math.exp(quadrature(a + middle, c + 1, m) - whole), 1e-36)
        assert joining[bins.of_skip[skip]] == pytest.approx(truth, rel=1e-7)


@pytest.mark.parametrize("strength", [1.0, 0.1])
@pytest.mark.parametrize(("n_items", "stage", "total", "count"), ROW_CASES)
def test_rows_of_joining_are_distributions(n_items, stage, total, count, strength):
    """Lemma 5."""
    _, bins, joining, _, _ = rows_of(n_items, stage, total, count, exact=True, strength=strength)
    m = n_items - 1 - stage
    assert len(bins.middle) == n_items
    assert joining[: m + 1].sum() / (m + 1) == pytest.approx(1.0, abs=1e-8)


@pytest.mark.parametrize(("n_items", "stage", "total", "count"), ROW_CASES)
def test_rows_of_members(n_items, stage, total, count):
    made, bins, _, own, log_whole = rows_of(n_items, stage, total, count)
    m = n_items - 1 - stage
    a, c = 1.0 + total, 1.0 + count
    if count == 0:
        return
    # One list may have all skips there are, or as few as leaves the others the largest possible.
    possible = range(int(max(0, total - (count - 1) * m)), int(min(total, m)) + 1)
    assert len(possible) > 0
    for skip in {possible[0], possible[-1], possible[len(possible) // 2], possible[len(possible) // 5]}:
        middle = bins.middle[bins.of_skip[skip]]
        rest = quadrature(a - skip, c - 1, m)
        truth = max((m + 1) * math.exp(quadrature(a - skip + middle, c, m) - rest), 1e-36)
        found = of_member(made, bins, stage, total, count, log_whole, own, skip)
        assert found == pytest.approx(truth, rel=2e-7)


def test_members_come_from_both_ways():
    """Large clusters look members up, small ones and outstanding skips integrate; both are used above."""
    looked_up = [case for case in ROW_CASES if case[3] > ENOUGH_FOR_OWN and case[2] > 4]
    assert len(looked_up) >= 5
    for n_items, stage, total, count in looked_up:
        _, _, _, own, _ = rows_of(n_items, stage, total, count)
        assert np.isfinite(own[:2]).all()
    _, _, _, own, _ = rows_of(8, 0, 9.0, 4.0)
    assert np.isnan(own).all()


def test_joining_after_leaving_is_what_it_was():
    """The row of a cluster without a list, and what the cluster with it says of its member."""
    rng = np.random.default_rng(3)
    for _ in range(40):
        n_items = int(rng.choice([5, 30, 150]))
        count = float(rng.integers(0, 40))
        total = float(rng.integers(0, int(count * (n_items - 1) * 0.6) + 1))
        skip = int(rng.integers(n_items))
        made, bins, joining, own, _ = rows_of(n_items, 0, total, count)
        before = joining[bins.of_skip[skip]]
        joining_with, own_with = np.empty_like(joining), np.empty_like(own)
        log_whole = fill_finite(made, bins, 0, total + skip, count + 1, joining_with, own_with, row_scratch())
        found = of_member(made, bins, 0, total + skip, count + 1, log_whole, own_with, skip)
        assert found == pytest.approx(before, rel=1e-6)


def test_bins_cover_all_skips():
    for n_items in (1, 2, 64, 65, 70, 79, 80, 81, 300, 533, 5000):
        for exact in (False, True):
            bins = skip_bins(n_items, exact)
            single = n_items if exact or n_items <= 64 else 32
            assert bins.n_exact == single
            assert np.array_equal(bins.of_skip[:single], np.arange(single))
            assert np.array_equal(bins.middle[:single], np.arange(single))
            assert np.array_equal(np.unique(bins.of_skip), np.arange(len(bins.middle)))
            for b, middle in enumerate(bins.middle):
                held = np.flatnonzero(bins.of_skip == b)
                # The last bin may be cut short by the number of items.
                assert held[0] <= middle
                assert middle <= held[-1] or b == len(bins.middle) - 1
                assert np.array_equal(held, np.arange(held[0], held[-1] + 1))
    assert len(skip_bins(533, False).middle) < 533 / 5


def test_rows_of_the_published_samplers():
    n_items, stage, total, count, theta = 9, 2, 14.0, 5.0, 0.7
    made = tables(n_items, stage + 1)
    m = n_items - 1 - stage
    a, c = 1.0 + total, 1.0 + count

    def beta(a, b):
        return math.exp(math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b))

    joining = np.full(n_items, np.nan)
    log_whole = fill_beta(made, stage, total, count, joining)
    assert log_whole == pytest.approx(math.log(beta(a, c + 1)))
    for s in range(m + 1):
        assert joining[s] / (m + 1) == pytest.approx(beta(a + s, c + 2) / beta(a, c + 1))
        member = own_beta(made, stage, total, count, s)
        assert member / (m + 1) == pytest.approx(beta(a, c + 1) / beta(a - s, c))
    fill_given(theta, m, skip_bins(n_items, True), joining)
    weights = np.exp(-theta * np.arange(m + 1))
    np.testing.assert_allclose(joining[: m + 1] / (m + 1), weights / weights.sum(), rtol=1e-12)


# Decays.


@pytest.mark.parametrize("m", [1, 2, 19, 532])
def test_mode(m):
    k = np.arange(m + 1)
    for c in (1.0, 3.5, 200.0, 1e5):
        for mean in (1e-3, 0.05, 0.4, 0.49 * m, 0.5 * m, 0.7 * m):
            a = c * mean

            def slope(theta, a=a, c=c):
                weights = np.exp(-theta * k)
                return c * (k @ weights) / weights.sum() - a

            truth = (
                0.0 if slope(0.0) <= 1e-9 * c else optimize.brentq(slope, 0.0, 60.0, xtol=1e-15, rtol=1e-14)
            )
            assert theta_mode(a, c, m) == pytest.approx(truth, rel=1e-8, abs=1e-12)


DECAYS = {  # a, c, m
    "nothing seen": (1.0, 1.0, 9),
    "weak prior": (0.02, 0.1, 9),
    "strong prior": (300.0, 40.0, 4),
    "one item left": (2.0, 5.0, 0),
    "a pair": (2.0, 3.0, 1),
    "some": (14.0, 9.0, 3),
    "many, few skips": (60.0, 2000.0, 19),
    "many": (2500.0, 600.0, 19),
    "nearly uniform": (5690.0, 600.0, 19),
    "above uniform": (6300.0, 600.0, 19),
    "many items": (1.0, 1.0, 532),
    "all the same": (1.0, 500.0, 7),
}


def kolmogorov(draws, parameters):
    draws = np.sort(draws)
    exact = distribution(*parameters)(draws)
    n = len(draws)
    return max(np.abs(exact - np.arange(n) / n).max(), np.abs(exact - np.arange(1, n + 1) / n).max())


@pytest.mark.parametrize("name", DECAYS)
def test_draws_of_decays(name):
    a, c, m = DECAYS[name]
    opened = stream()
    draws = np.array([draw_theta(opened, a, c, m) for _ in range(20_000)])
    assert np.all(draws > 0)
    bound = kolmogorov_bound(len(draws))
    assert kolmogorov(draws, DECAYS[name]) < bound
    assert kolmogorov(1.1 * draws, DECAYS[name]) > bound


def test_beta_decays():
    opened = stream(1)
    for a, b in ((0.2, 2.0), (1.0, 3.0), (40.0, 12.0), (900.0, 0.4)):
        draws = np.array([beta_theta(opened, a, b) for _ in range(20_000)])
        beta = stats.beta(b, a)  # of 1 - exp(-θ)
        distance = stats.kstest(-np.expm1(-draws), beta.cdf).statistic
        assert distance < kolmogorov_bound(len(draws))
        assert stats.kstest(-np.expm1(-draws), stats.beta(b + 0.1, 0.9 * a).cdf).statistic > kolmogorov_bound(
            len(draws)
        )


SLICED = ("nothing seen", "some", "many", "above uniform", "weak prior")


@pytest.mark.parametrize(
    ("name", "n_draws"),
    first_in_every_run([(name, n_draws) for n_draws in (6_000, 20_000) for name in SLICED], len(SLICED)),
)
def test_slices_leave_the_distribution_of_a_decay_invariant(name, n_draws):
    a, c, m = DECAYS[name]
    opened = stream(2)
    starts = np.array([draw_theta(opened, a, c, m) for _ in range(n_draws)])
    moved = np.array([slice_theta(opened, theta, a, c, m) for theta in starts])
    bound = kolmogorov_bound(len(moved))
    assert kolmogorov(moved, DECAYS[name]) < bound
    assert abs(stats.spearmanr(starts, moved).statistic) < 0.3
    # From one place that is far off, a slice finds the way: rounds forget where they began.
    far = np.array([slice_theta(opened, 3.0, a, c, m) for _ in range(n_draws // 4)])
    for _ in range(20):
        far = np.array([slice_theta(opened, theta, a, c, m) for theta in far])
    assert kolmogorov(far, DECAYS[name]) < kolmogorov_bound(len(far))
