"""Concentration of angle-based models: estimates, bounds and posterior, against SciPy and plain
quadrature."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate, special, stats

from permix.angle import published
from permix.distributions.angle import concentration, gamma_jit
from permix.distributions.angle.concentration import ConcentrationPosterior
from permix.distributions.angle.scores import draw_direction, standard_scores, vmf_log_sum
from tests.every_run import first_in_every_run
from tests.oracles import angle as oracle

# Items, rankings, length β, and the prior: β₀, a₀, b₀.
CASES = {
    "few": (3, 20.0, 9.0, 0.0, 1.0, 1e-3),
    "one ranking": (4, 1.0, 1.0, 0.0, 2.0, 0.5),
    "prior direction": (4, 12.0, 9.5, 3.0, 1.5, 0.2),
    "sushi": (10, 3258.0, 1458.8, 0.0, 1e-3, 1e-3),
    "flat": (5, 50.0, 2.0, 0.0, 1.0, 1e-3),
    "pulled": (6, 40.0, 25.0, 0.7, 3.0, 1.0),
}
cases = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


def order_of(t):
    return 0.5 * (t - 3.0)


def posterior(case):
    """p(κ | Y) of a case."""
    return ConcentrationPosterior(order_of(case[0]), *case[1:])


def log_density(case, kappa):
    """Ln p(κ | Y) without its constant, by SciPy."""
    t, n, length, prior_length, a0, b0 = case
    value = (a0 - 1) * np.log(kappa) - b0 * kappa
    value = value + oracle.log_moment(t, length * kappa) - n * oracle.log_moment(t, kappa)
    return value - oracle.log_moment(t, prior_length * kappa)


def integrals(case, *functions, cap=np.inf):
    """∫ p(κ | Y) f(κ) dκ for each function, by Simpson's rule in ln κ, relative to e^top."""
    u = np.linspace(-36.0, 9.0, 50_001)
    values = log_density(case, np.exp(u)) + u
    inside = u[values > values.max() - 60]
    u = np.linspace(inside[0], min(inside[-1], np.log(cap)), 20_001)
    values = log_density(case, np.exp(u)) + u
    top = values.max()
    kappa = np.exp(u)
    return top, [integrate.simpson(np.exp(values - top) * f(kappa), x=u) for f in functions]


# Maximum likelihood.


@pytest.mark.parametrize("t", [3, 4, 10, 50])
@pytest.mark.parametrize("r", [1e-6, 0.01, 0.3, 0.7, 0.95, 0.999])
def test_newton_solves_equation_3(t, r):
    kappa = concentration.newton_concentration(order_of(t), r)
    assert oracle.ratio(order_of(t), kappa) == pytest.approx(r, rel=1e-11)
    # Banerjee's start alone does not.
    start = r * (t - 1 - r * r) / (1 - r * r)
    if 0.01 < r < 0.99:
        assert oracle.ratio(order_of(t), start) != pytest.approx(r, rel=1e-5)


def test_newton_at_the_ends():
    assert concentration.newton_concentration(1.0, 0.0) == 0.0
    assert concentration.newton_concentration(1.0, -0.1) == 0.0
    assert concentration.newton_concentration(1.0, 1.0) == np.inf
    large = concentration.newton_concentration(5000.0, 1 - 1e-9)
    assert np.isfinite(large)
    assert large > 1e8


@pytest.mark.parametrize("t", [3, 4, 6, 8])
def test_at_the_cap_the_most_probable_ranking_is_certain(t):
    rng = np.random.default_rng(t)
    directions = [standard_scores(t), *(rng.standard_normal((5, t)) @ (np.eye(t) - 1 / t))]
    finite = 0
    for direction in directions:
        direction = direction / np.linalg.norm(direction)
        cosines = oracle.standardized(t) @ direction
        cap = concentration.concentration_cap(t, np.sort(direction) @ oracle.scores(t))
        if np.isinf(cap):
            kappas = np.geomspace(1e-3, 1e6, 400)
            assert (kappas * cosines.max() - oracle.vmf_log_sum(t, kappas)).max() <= 1e-9
            continue
        finite += 1
        assert cap * cosines.max() - oracle.vmf_log_sum(t, cap) == pytest.approx(0.0, abs=1e-9)
        below = cap * np.linspace(0.01, 0.999, 50)
        assert (below * cosines.max() - oracle.vmf_log_sum(t, below)).max() < 0
        assert 1.05 * cap * cosines.max() - oracle.vmf_log_sum(t, 1.05 * cap) > 0  # and above it, too much
    assert finite > 0


def test_the_direction_of_a_ranking_has_the_least_cap():
    caps = [concentration.concentration_cap(5, reach) for reach in (1.0, 0.99, 0.97, 0.95)]
    assert caps == sorted(caps)
    assert concentration.concentration_cap(4, 1.0) == pytest.approx(12.0, rel=1e-9)  # 1 = 2κ e^-κ e^κ / 4!


# The published fixed point.


@cases
def test_updates_are_equations_9_and_10(case):
    t, *known = case
    for kappa in (0.3, 2.0, 11.0):
        found = published.variational_update(posterior(case), kappa)
        if known[2] > 0:
            np.testing.assert_allclose(found, oracle.variational_update(t, *known, kappa), rtol=1e-10)
            assert not np.allclose(
                found, oracle.variational_update(t, *known, kappa, misprint=True), rtol=1e-3
            )
        else:  # by continuity
            tiny = [known[0], known[1], 1e-12, *known[3:]]
            np.testing.assert_allclose(found, oracle.variational_update(t, *tiny, kappa), rtol=1e-9)


@pytest.mark.parametrize("name", [name for name in CASES if name != "flat"])  # whose iteration creeps to 0
def test_the_fixed_point_is_that_of_algorithm_1(name):
    case = CASES[name]
    t, *known = case
    if known[2] == 0.0:
        known[2] = 1e-12
    kappa = known[3] / known[4]  # step 1.3 starts from the prior mean
    for _ in range(20_000):
        a, b = oracle.variational_update(t, *known, kappa)
        kappa, before = ((a - 1) / b if a > 1 else a / b), kappa
        if abs(kappa - before) < 1e-13 * kappa:
            break
    shape, rate, n_iter = published.variational_fixed_point(posterior(case), 5.0, 2000)
    np.testing.assert_allclose([shape, rate], [a, b], rtol=1e-7)
    assert n_iter < 2000
    once = published.variational_update(posterior(case), 5.0)
    assert not np.allclose(once, [a, b], rtol=1e-4)


def test_mode():
    assert published.gamma_mode(3.0, 2.0) == 1.0
    assert published.gamma_mode(0.5, 2.0) == 0.25


# Expectations under Gamma distributions.


@pytest.mark.parametrize("shape", [0.3, 1.0, 7.0, 900.0, 2e5])
@pytest.mark.parametrize("mean", [0.05, 3.0, 400.0])
def test_expectations_against_quadrature(shape, mean):
    t, length, prior_length = 6, 4.0, 0.6
    distribution = stats.gamma(shape, scale=mean / shape)
    found = gamma_jit.gamma_expectations(order_of(t), length, prior_length, shape, shape / mean)
    functions = (
        lambda k: k * oracle.ratio(order_of(t), length * k),
        lambda k: oracle.log_moment(t, k),
        lambda k: oracle.log_moment(t, length * k) - oracle.log_moment(t, prior_length * k),
    )
    u = np.linspace(math.log(distribution.ppf(1e-15)) - 1.0, math.log(distribution.isf(1e-16)) + 0.1, 20_001)
    kappa = np.exp(u)
    weights = np.exp(distribution.logpdf(kappa) + u)
    for value, f in zip(found, functions, strict=True):
        exact = integrate.simpson(weights * f(kappa), x=u)
        assert value == pytest.approx(exact, rel=1e-9)
        at_mean = float(f(mean))
        if shape < 900.0 and not 0.999 < exact / at_mean < 1.001:
            assert value != pytest.approx(at_mean, rel=1e-4)  # what "plug in the mean" would say


def test_nodes_sum_to_one_and_have_the_mean():
    for shape in (0.4, 2.0, 5.0, 13.0, 20.0, 1e4):
        kappas, weights = gamma_jit.gamma_nodes(shape, 3.0)
        assert kappas @ weights == pytest.approx(shape / 3.0, rel=1e-10)
        if shape > 1.0:
            assert weights.sum() == pytest.approx(1.0, rel=1e-10)


@pytest.mark.parametrize("x", [1e-3, 0.5, 1.0, 9.99, 10.0, 1234.5])
def test_digamma(x):
    assert gamma_jit.digamma(x) == pytest.approx(special.psi(x), rel=1e-13)


def test_divergence_of_gamma_distributions():
    rng = np.random.default_rng(0)
    for a, b, a0, b0 in rng.gamma(2.0, 1.5, size=(8, 4)) + 0.5:
        q, p = stats.gamma(a, scale=1 / b), stats.gamma(a0, scale=1 / b0)
        exact = integrate.quad(lambda k, q=q, p=p: q.pdf(k) * (q.logpdf(k) - p.logpdf(k)), 0, q.isf(1e-13))[0]
        assert gamma_jit.gamma_divergence(a, b, a0, b0) == pytest.approx(exact, rel=1e-6, abs=1e-8)
        assert gamma_jit.gamma_divergence(a0, b0, a, b) != pytest.approx(exact, rel=1e-6)  # not symmetric
    assert gamma_jit.gamma_divergence(2.0, 3.0, 2.0, 3.0) == pytest.approx(0.0, abs=1e-14)


# The posterior of κ.


def log_prior_constant(case):
    _, _, _, _, a0, b0 = case
    return a0 * math.log(b0) - math.lgamma(a0)


@cases
@pytest.mark.parametrize("cap", [np.inf, 6.0])
def test_the_grid_against_adaptive_quadrature(case, cap):
    nodes, probabilities, log_integral = posterior(case).grid(cap, 512)
    top, (total, first, second) = integrals(case, np.ones_like, lambda k: k, lambda k: k * k, cap=cap)
    rel = 1e-8 if cap == np.inf else 1e-3  # a cut through the density is met to the square of a step
    assert log_integral == pytest.approx(top + math.log(total), abs=1e-7 if cap == np.inf else 1e-3)
    assert nodes @ probabilities == pytest.approx(first / total, rel=rel)
    assert nodes**2 @ probabilities == pytest.approx(second / total, rel=rel)
    assert nodes[-1] <= cap
    # The twin: nodes evenly spaced in ln κ, weighed by the density of κ itself.
    twin = probabilities / nodes
    assert nodes @ (twin / twin.sum()) != pytest.approx(first / total, rel=1e-6)


@cases
def test_the_mode_is_the_largest(case):
    mode = posterior(case).mode()
    at = posterior(case).log_density(mode)
    for factor in (0.99, 1.01):
        assert posterior(case).log_density(mode * factor) < at
    h = 1e-5 * mode
    at = 1.3 * mode
    slope = at * (log_density(case, at + h) - log_density(case, at - h)) / (2 * h) + 1.0  # in ln κ
    first, second = posterior(case).slopes(at)
    assert first == pytest.approx(slope, rel=1e-3)
    before, after = (posterior(case).slopes(at * math.exp(step))[0] for step in (-1e-4, 1e-4))
    assert second == pytest.approx((after - before) / 2e-4, rel=1e-5)
    assert posterior(case).mode(0.5 * mode) == pytest.approx(0.5 * mode)


def test_draws_from_the_grid_have_its_distribution():
    case = CASES["prior direction"]
    nodes, probabilities, _ = posterior(case).grid(np.inf, 256)
    rng = np.random.default_rng(3)
    drawn = np.array([concentration.draw_from_grid(rng, nodes, probabilities) for _ in range(40_000)])
    step = math.log(nodes[1] / nodes[0])

    def cdf(kappas):
        """Of the density that is constant in ln κ around every node."""
        edges = np.append(np.log(nodes) - step / 2, math.log(nodes[-1]))
        edges[0] = math.log(nodes[0])
        return np.interp(np.log(kappas), edges, np.append(0.0, np.cumsum(probabilities)))

    assert stats.kstest(drawn, cdf).pvalue > 1e-5
    shifted = stats.kstest(drawn * np.exp(step), cdf).pvalue  # one node off
    assert shifted < 1e-8
    _, (total, first) = integrals(case, np.ones_like, lambda k: k)
    error = drawn.std() / math.sqrt(len(drawn))
    assert abs(drawn.mean() - first / total) < 4.5 * error + 0.002 * drawn.std()


# The distribution nearest to the posterior.


def evidence_term(order, n, length, prior_length, prior_shape, prior_rate, shape, rate):
    """What q(κ) adds to the evidence bound, from the expectations that the fits use."""
    _, moment, gain = gamma_jit.gamma_expectations(order, length, prior_length, shape, rate)
    divergence = gamma_jit.gamma_divergence(shape, rate, prior_shape, prior_rate)
    value = gain - n * moment - divergence
    found = gamma_jit.evidence_at(order, n, length, prior_length, prior_shape, prior_rate, shape, rate)
    assert found[0] == pytest.approx(value, rel=1e-12, abs=1e-12)
    return value


@cases
def test_nearest_gamma_has_no_better_neighbor(case):
    t, *known = case
    order = order_of(t)
    start = posterior(case).laplace_gamma()
    shape, rate = posterior(case).nearest_gamma(*start, 50)
    best = evidence_term(order, *known, shape, rate)
    for a, b in ((1.01, 1.0), (0.99, 1.0), (1.0, 1.01), (1.0, 0.99), (1.02, 1.02), (0.98, 0.98)):
        assert evidence_term(order, *known, shape * a, rate * b) < best
    # The bound is one, and close.
    log_evidence = posterior(case).grid(np.inf, 512)[2] + log_prior_constant(case)
    assert best <= log_evidence + 1e-9
    assert log_evidence - best < 0.05
    printed = published.variational_fixed_point(posterior(case), 5.0, 2000)[:2]
    loose = evidence_term(order, *known, *printed)
    assert loose < best
    # The twin: neighbors of the published distribution are better.
    neighbors = [evidence_term(order, *known, printed[0] * a, printed[1] * a) for a in (0.98, 1.02)]
    assert max(neighbors) > loose


def test_evidence_term_against_plain_quadrature():
    case = CASES["prior direction"]
    _, _, _, _, a0, b0 = case
    shape, rate = 6.0, 0.9
    distribution, prior = stats.gamma(shape, scale=1 / rate), stats.gamma(a0, scale=1 / b0)

    def term(k):
        gain = log_density(case, k) - (a0 - 1) * np.log(k) + b0 * k
        return distribution.pdf(k) * (gain + prior.logpdf(k) - distribution.logpdf(k))

    exact = integrate.quad(term, 1e-9, distribution.isf(1e-13), limit=400)[0]
    found = evidence_term(order_of(case[0]), *case[1:], shape, rate)
    assert found == pytest.approx(exact, abs=1e-6)


# Directions.


# The twin is told apart in the first two.
@pytest.mark.parametrize(
    ("t", "kappa"),
    first_in_every_run(
        [(4, 0.8), (3, 15.0), (9, 0.0), (3, 0.0), (3, 0.8), (4, 0.0), (4, 15.0), (9, 0.8), (9, 15.0)], 3
    ),
)
def test_directions_are_von_mises_fisher_in_the_plane(t, kappa):
    rng = np.random.default_rng(8)
    mean = rng.standard_normal(t)
    mean -= mean.mean()
    mean /= np.linalg.norm(mean)
    n = 8_000
    drawn = np.array([draw_direction(rng, mean, kappa) for _ in range(n)])
    np.testing.assert_allclose(drawn.sum(axis=1), 0.0, atol=1e-11)
    np.testing.assert_allclose(np.linalg.norm(drawn, axis=1), 1.0, atol=1e-11)
    cosine = drawn @ mean

    def distance(order):
        expected = float(oracle.ratio(order, kappa)) if kappa > 0 else 0.0
        return abs(cosine.mean() - expected) / (cosine.std() / math.sqrt(n))

    assert distance(order_of(t)) < 4.5
    if kappa > 0 and t < 9:
        assert distance(order_of(t) + 0.5) > 5  # the paper's count of dimensions
    # Across the mean, the rest of the plane is met evenly: second moments (1 - E cos²)/(t-2) of the
    # projector.
    across = drawn - cosine[:, None] * mean
    projector = np.eye(t) - 1 / t - np.outer(mean, mean)
    seen = across.T @ across / n
    expected = (1 - (cosine**2).mean()) / (t - 2) * projector
    assert np.abs(seen - expected).max() < 5 * math.sqrt(1.0 / n)
    assert np.abs(across.mean(axis=0)).max() < 5 / math.sqrt(n)


@pytest.mark.parametrize("t", [3, 5, 40])
def test_scores_and_approximate_sum(t):
    scores = standard_scores(t)
    np.testing.assert_allclose(scores, oracle.scores(t), atol=1e-15)
    assert scores @ scores == pytest.approx(1.0)
    for kappa in (1e-3, 1.0, 30.0):
        assert vmf_log_sum(kappa, t) == pytest.approx(float(oracle.vmf_log_sum(t, kappa)), rel=1e-11)
