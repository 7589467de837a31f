"""Random draws against exact probabilities, scipy's distributions and high precision; broken twins fail."""

import itertools

import mpmath
import numpy as np
import pytest
from scipy import special, stats

from permix.kernels import random as draws
from permix.kernels.jit import kernel

LEVEL = 1e-4  # of each test; seeds are fixed, so a passing test goes on passing


@kernel
def _categorical(rng, log_weights, overwrite, out):
    for i in range(out.size):
        if overwrite:
            out[i] = draws.categorical_log_overwrite(rng, log_weights.copy(), log_weights.size)
        else:
            out[i] = draws.categorical_log(rng, log_weights, log_weights.size)


def categorical(seed, log_weights, size, overwrite=False):
    out = np.empty(size, np.int64)
    _categorical(np.random.default_rng(seed), np.asarray(log_weights, float), overwrite, out)
    return out


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("shift", [0.0, -1e5, 700.0])
def test_categorical(shift, overwrite):
    weights = np.array([0.0, 0.1, 0.0, 0.2, 0.65, 0.05, 0.0])
    with np.errstate(divide="ignore"):
        sample = categorical(3, np.log(weights) + shift, 40_000, overwrite)
    counts = np.bincount(sample, minlength=7)
    assert counts[weights == 0].sum() == 0
    there = weights > 0
    assert stats.chisquare(counts[there], 40_000 * weights[there]).pvalue > LEVEL
    wrong = np.roll(weights[there], 1)
    assert stats.chisquare(counts[there], 40_000 * wrong).pvalue < LEVEL


def test_categorical_of_nothing_and_of_one():
    assert set(categorical(0, [-np.inf] * 4, 5)) == {-1}
    assert set(categorical(0, [-np.inf] * 4, 5, overwrite=True)) == {-1}
    assert set(categorical(0, [-np.inf, -1e300, -np.inf], 5)) == {1}
    assert set(categorical(0, [], 5)) == {-1}


def test_categorical_looks_at_the_first_n_only():
    rng = np.random.default_rng(0)
    assert {draws.categorical_log(rng, np.array([0.0, 0.0, 50.0]), 2) for _ in range(50)} == {0, 1}


def test_categorical_quantile_at_the_ends():
    """The largest uniform below one must not fall off the end, nor land on an impossible entry."""
    log_weights = np.array([-np.inf, -0.3, -1.7, -np.inf])
    assert draws.categorical_log_quantile(0.0, log_weights, 4) == 1
    assert draws.categorical_log_quantile(np.nextafter(1.0, 0.0), log_weights, 4) == 2


def quantile_range(u, theta, n):
    """Smallest and largest whole quantile consistent with a few roundings, from 60-digit arithmetic."""
    with mpmath.workdps(60):
        u, theta = mpmath.mpf(u), mpmath.mpf(theta)
        if theta == 0:
            exact, error = u * n, u * n
        else:
            z = -u * mpmath.expm1(-n * theta)
            exact = -mpmath.log1p(-z) / theta
            error = exact + z / (1 - z) / theta  # conditioning of the logarithm
        error *= 4 * np.finfo(float).eps
        low, high = int(mpmath.floor(exact - error)), int(mpmath.floor(exact + error))
        return max(0, min(low, n - 1)), min(high, n - 1)


@pytest.mark.parametrize("n", [1, 2, 10, 10**5, 10**9])
@pytest.mark.parametrize("theta", [0.0, 5e-324, 1e-30, 1e-16, 1e-12, 1e-8, 1e-3, 0.5, 30.0, 1e4])
def test_truncated_geometric_inverts_its_distribution(theta, n):
    rng = np.random.default_rng(11)
    for u in [0.0, 0.5, np.nextafter(1, 0), *rng.random(40)]:
        low, high = quantile_range(u, theta, n)
        assert low <= draws.truncated_geometric_quantile(u, theta, n) <= high


def test_the_textbook_inversion_is_rejected():
    """Computed as log(1 - u (1 - phi^n)) / log(phi), the quantile is off by whole numbers near phi = 1."""
    phi, n = 1 - 2.0**-53, 10**6
    theta = -np.log(phi)
    wrong = 0
    for u in np.random.default_rng(12).random(50):
        low, high = quantile_range(u, theta, n)
        assert low <= draws.truncated_geometric_quantile(u, theta, n) <= high
        wrong += not low <= int(np.log(1 - u * (1 - phi**n)) / np.log(phi)) <= high
    assert wrong > 10


@kernel
def _geometric(rng, phi, n, out):
    for i in range(out.size):
        out[i] = draws.truncated_geometric_log(rng, -np.log(phi), n)


@pytest.mark.parametrize("phi", [0.0, 0.2, 0.98, 1 - 1e-12, 1.0])
def test_truncated_geometric_probabilities(phi):
    n, size = 8, 40_000
    out = np.empty(size, np.int64)
    _geometric(np.random.default_rng(5), phi, n, out)
    exact = phi ** np.arange(n)
    exact /= exact.sum()
    counts = np.bincount(out, minlength=n)
    assert counts[exact == 0].sum() == 0
    there = exact > 1e-5
    if there.sum() > 1:
        expected = exact[there] / exact[there].sum() * counts[there].sum()
        assert stats.chisquare(counts[there], expected).pvalue > LEVEL
        if phi < 0.99:
            assert stats.chisquare(counts[there], expected[::-1]).pvalue < LEVEL
    else:
        assert counts[0] == size


def test_truncated_geometric_at_a_billion():
    """phi = 1 - 1e-12 and a billion values: nearly uniform, with a slope that the mean shows."""
    n, phi, size = 10**9, 1 - 1e-12, 20_000
    out = np.empty(size, np.int64)
    _geometric(np.random.default_rng(6), phi, n, out)
    assert stats.kstest(out / n, "uniform").pvalue > LEVEL


@kernel
def _log_gammas(rng, shape, out):
    for i in range(out.size):
        out[i] = draws.gamma_log(rng, shape)


@pytest.mark.parametrize("shape", [1e-6, 1e-3, 0.3, 1.0, 7.5])
def test_log_gamma(shape):
    out = np.empty(20_000)
    _log_gammas(np.random.default_rng(8), shape, out)
    assert np.isfinite(out).all()
    # E ln G = psi(shape) and Var ln G = psi'(shape) give a z-test of the mean; scipy has the cdf.
    z = (out.mean() - special.digamma(shape)) / np.sqrt(special.polygamma(1, shape) / out.size)
    assert abs(z) < 4
    if shape >= 1e-3:
        assert stats.kstest(out, stats.loggamma(shape).cdf).pvalue > LEVEL
        assert stats.kstest(out, stats.loggamma(shape * 1.1).cdf).pvalue < LEVEL


@kernel
def _dirichlets(rng, alpha, logarithm, out):
    for i in range(out.shape[0]):
        if logarithm:
            draws.log_dirichlet(rng, alpha, out[i])
        else:
            draws.dirichlet(rng, alpha, out[i])


@pytest.mark.parametrize("alpha", [[1.0, 2.0, 3.5], [0.1, 0.5, 4.0], [20.0, 30.0]])
def test_dirichlet_marginals_are_beta(alpha):
    alpha = np.array(alpha)
    out = np.empty((20_000, alpha.size))
    _dirichlets(np.random.default_rng(2), alpha, False, out)
    np.testing.assert_allclose(out.sum(axis=1), 1.0, rtol=1e-12)
    for i in range(alpha.size):
        assert stats.kstest(out[:, i], stats.beta(alpha[i], alpha.sum() - alpha[i]).cdf).pvalue > LEVEL
        assert stats.kstest(out[:, i], stats.beta(alpha[i] * 1.2, alpha.sum() - alpha[i]).cdf).pvalue < LEVEL


def test_log_dirichlet_with_tiny_parameters():
    alpha = np.array([1e-3, 2e-3, 0.0])
    out = np.empty((20_000, 3))
    _dirichlets(np.random.default_rng(4), alpha, True, out)
    assert np.isfinite(out[:, :2]).all()
    assert (out[:, 2] == -np.inf).all()
    np.testing.assert_allclose(np.logaddexp(out[:, 0], out[:, 1]), 0.0, atol=1e-12)
    # Nearly all weight is on one entry, the first with probability 1/3.
    first = (out[:, 0] > out[:, 1]).mean()
    assert abs(first - 1 / 3) < 4 * np.sqrt(2 / 9 / 20_000)
    expected = special.digamma(1e-3) - special.digamma(3e-3)
    spread = np.sqrt((special.polygamma(1, 1e-3) - special.polygamma(1, 3e-3)) / 20_000)
    assert abs(out[:, 0].mean() - expected) < 4 * spread


@kernel
def _gaps(rng, d, kappa, out):
    for i in range(out.size):
        out[i] = draws.von_mises_fisher_gap(rng, d, kappa)


def angles(d, kappa, size, seed=9):
    """Angles to the mean direction: a gap of 1 - cos a = 2 sin(a/2)²."""
    gaps = np.empty(size)
    _gaps(np.random.default_rng(seed), d, kappa, gaps)
    return 2 * np.arcsin(np.minimum(1, np.sqrt(gaps / 2)))


def angle_cdf(d, kappa):
    """Distribution of the angle a to the mean: density ∝ sin(a)^(d-2) e^(κ cos a), by the trapezoid rule."""
    spread = 40 * max(1.0, np.sqrt(d)) / np.sqrt(max(kappa, 1e-300))
    angle = np.linspace(0, min(np.pi, spread), 200_001)
    log_density = special.xlogy(d - 2, np.sin(angle)) - 2 * kappa * np.sin(angle / 2) ** 2
    density = np.exp(log_density - log_density.max())
    cumulated = np.concatenate([[0], np.cumsum((density[1:] + density[:-1]) / 2)])
    return lambda a: np.interp(a, angle, cumulated / cumulated[-1])


@pytest.mark.parametrize("d", [2, 3, 10, 1000])
@pytest.mark.parametrize("kappa", [0.0, 0.5, 20.0, 1e4, 1e8])
def test_von_mises_fisher_angles(d, kappa):
    size = 1500 if d == 1000 else 8000
    angle = angles(d, kappa, size)
    assert stats.kstest(angle, angle_cdf(d, kappa)).pvalue > LEVEL
    if (kappa == 20.0 and d < 1000) or kappa >= 1e4:
        assert stats.kstest(angle, angle_cdf(d, kappa * 1.3)).pvalue < LEVEL


@pytest.mark.parametrize(("d", "kappa"), [(3, 2.0), (5, 30.0)])
def test_von_mises_fisher_angles_are_those_of_scipy(d, kappa):
    mean = np.eye(d)[0]
    other = stats.vonmises_fisher(mean, kappa).rvs(20_000, random_state=1)
    assert stats.ks_2samp(np.cos(angles(d, kappa, 20_000)), other @ mean).pvalue > LEVEL
    assert stats.ks_2samp(np.cos(angles(d, 1.2 * kappa, 20_000)), other @ mean).pvalue < LEVEL


@kernel
def _shuffles(rng, out):
    for i in range(out.shape[0]):
        draws.shuffle(rng, out[i])


def test_shuffle_is_uniform():
    out = np.tile(np.arange(4, dtype=np.int32), (24_000, 1))
    _shuffles(np.random.default_rng(0), out)
    index = {p: i for i, p in enumerate(itertools.permutations(range(4)))}
    counts = np.bincount([index[tuple(row)] for row in out.tolist()], minlength=24)
    assert stats.chisquare(counts).pvalue > LEVEL


def test_a_biased_shuffle_is_rejected():
    """Swapping each place with any place, not only earlier ones, is the classic mistake."""
    rng = np.random.default_rng(0)
    index = {p: i for i, p in enumerate(itertools.permutations(range(4)))}
    counts = np.zeros(24)
    for _ in range(24_000):
        row = list(range(4))
        for i in range(4):
            j = rng.integers(4)
            row[i], row[j] = row[j], row[i]
        counts[index[tuple(row)]] += 1
    assert stats.chisquare(counts).pvalue < LEVEL


def test_shuffle_keeps_the_values():
    values = np.array([5.0, 5.0, 1.0, 2.0, 9.0])
    draws.shuffle(np.random.default_rng(3), values)
    assert sorted(values) == [1.0, 2.0, 5.0, 5.0, 9.0]
