"""Modified Bessel functions against mpmath, and against identities where mpmath takes minutes."""

import math

import mpmath
import numpy as np
import pytest

from permix.distributions.angle.bessel_jit import bessel_ratio, log_sphere_moment, sphere_moments


def bessel(order, x):
    """Return ln I, the ratio and its slope, out of the moments of the sphere."""
    moment, ratio, slope = sphere_moments(order, x)
    return moment - math.lgamma(order + 1.0) + order * math.log(0.5 * x), ratio, slope


log_bessel_i = np.vectorize(lambda order, x: bessel(order, x)[0])
bessel_ratio_slope = np.vectorize(lambda order, x: sphere_moments(order, x)[2])

ORDERS = [0, 0.5, 1, 2.5, 3.5, 11, 23.5, 24, 46.5, 100, 498.5, 1000, 4998.5, 10_000]
ARGUMENTS = [1e-8, 1e-3, 0.1, 0.9, 2.7, 11.0, 55.5, 400.0, 3e3, 1e8]
LIMIT = 1e-10


def truth(order, x):
    """ln I, the ratio, its slope and (ln I)'' with 60 digits, from Bessel functions alone."""
    with mpmath.workdps(60):
        order, x = mpmath.mpf(order), mpmath.mpf(x)
        low, here, above = (mpmath.besseli(order + d, x, maxterms=10**6) for d in (0, 1, 2))
        ratio = here / low
        # (I_{ν+1}/I_ν)' = (I'_{ν+1} - A I'_ν) / I_ν with I'_ν = I_{ν+1} + (ν/x) I_ν.
        slope = (above + (order + 1) / x * here - ratio * (here + order / x * low)) / low
        return mpmath.log(low), ratio, slope


def relative(found, exact):
    return float(abs((mpmath.mpf(float(found)) - exact) / exact))


@pytest.mark.parametrize("order", ORDERS)
def test_against_mpmath(order):
    for x in ARGUMENTS:
        errors = [relative(f, e) for f, e in zip(bessel(float(order), x), truth(order, x), strict=True)]
        assert max(errors) < LIMIT, (order, x, errors)


def test_a_wrong_expansion_is_rejected():
    """One term less of Debye's series at order 2 is worse than the limit: the comparison can fail."""
    order, x = 2.0, 3.0
    s = np.hypot(order, x)
    p = order / s
    crude = (
        s + order * np.log(x / (order + s)) - 0.5 * np.log(2 * np.pi * s) + (3 * p - 5 * p**3) / (24 * order)
    )
    assert relative(crude, truth(order, x)[0]) > LIMIT


@pytest.mark.parametrize("order", [0.0, 3.5, 46.5, 998.5, 9999.0])
@pytest.mark.parametrize("x", [1e-6, 1.7, 2e4, 1e6, 3e7])
def test_identities_hold_between_the_points_that_mpmath_reaches(order, x):
    log_low, ratio, slope = bessel(order, x)
    log_high, ratio_above, _ = bessel(order + 1.0, x)
    # I_ν - I_{ν+2} = (2(ν+1)/x) I_{ν+1}, divided by I_{ν+1}.
    assert 1.0 / ratio == pytest.approx(2.0 * (order + 1.0) / x + ratio_above, rel=1e-13)
    size = max(abs(log_low), abs(log_high), 1.0)
    assert log_high - log_low == pytest.approx(np.log(ratio), abs=1e-14 * size + 1e-13 * abs(np.log(ratio)))
    # Riccati's equation, exact up to the rounding of its largest term.
    terms = np.array([1.0, -ratio * ratio, -(2.0 * order + 1.0) / x * ratio])
    assert slope == pytest.approx(terms.sum(), abs=1e-14)
    step = 1e-4 * x
    difference = (bessel(order, x + step)[1] - bessel(order, x - step)[1]) / (2.0 * step)
    assert slope == pytest.approx(difference, rel=1e-5, abs=1e-13 / step)


def test_half_orders_are_elementary():
    x = np.array([1e-6, 0.3, 5.0, 40.0])
    np.testing.assert_allclose(
        log_bessel_i(0.5, x), np.log(np.sqrt(2 / (np.pi * x)) * np.sinh(x)), rtol=1e-13
    )
    np.testing.assert_allclose(bessel_ratio(-0.5, x), np.tanh(x), rtol=1e-13)
    np.testing.assert_allclose(bessel_ratio_slope(-0.5, x[:3]), 1.0 / np.cosh(x[:3]) ** 2, rtol=1e-9)


def test_convexity_turns_where_it_was_found_to():
    """ln I_ν is concave below about 2ν² only, which is where the bound (7) of the model ends."""

    def curvature(order, x):
        return bessel_ratio_slope(order, x) - order / x**2

    for order, turn in ((0.5, 1.491), (3.5, 25.275), (46.5, 4325.25)):
        assert curvature(order, 0.9 * turn) < 0 < curvature(order, 1.1 * turn)
    assert (curvature(0.0, np.logspace(-3, 5, 50)) > 0).all()


def test_moment_of_the_sphere():
    for order in (0.0, 3.5, 498.5):
        for x in (0.0, 1e-9, 0.5, 20.0, 5e3):
            with mpmath.workdps(60):
                exact = mpmath.log(mpmath.hyp0f1(mpmath.mpf(order) + 1, mpmath.mpf(x) ** 2 / 4))
            found = log_sphere_moment(order, x)
            assert found == 0.0 if x == 0.0 else relative(found, exact) < LIMIT


def test_arrays_zero_and_nonsense():
    assert sphere_moments(2.0, 0.0)[0] == 0.0
    assert bessel_ratio(np.array([[3.0], [2.0]]), np.array([0.0, 1.0])).shape == (2, 2)
    assert bessel_ratio(3.0, 0.0) == 0.0
    assert bessel_ratio_slope(3.0, 0.0) == pytest.approx(0.125)
    for order, x in ((-1.0, 1.0), (1.0, -1.0), (1.0, np.nan), (1.0, np.inf)):
        assert np.isnan(sphere_moments(order, x)).all()


@pytest.mark.parametrize("order", [0.0, 3.5, 46.5])
def test_interpreted_moments_are_the_compiled_ones(order):
    for x in (1e-3, 0.9, 11.0, 400.0):
        np.testing.assert_allclose(sphere_moments.py_func(order, x), sphere_moments(order, x), rtol=1e-13)
