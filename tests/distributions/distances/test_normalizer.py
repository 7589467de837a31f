"""ln Z and moments of the six distances against enumeration."""

from __future__ import annotations

import math
from itertools import permutations

import numpy as np
import pytest

from permix.data.distances import distance_matrix
from permix.distributions.distances.distance_jit import distance
from permix.distributions.distances.log_sums import log_sums
from permix.distributions.distances.names import DISTANCES, code_of, largest_distance
from permix.distributions.distances.normalizer import nearest_rankings, normalizer
from permix.distributions.distances.table_jit import LOG_Z, MEAN, VARIANCE, table_value
from permix.errors import DataError, ParameterError
from tests.oracles import distances as oracle
from tests.reference import permutations as naive

DECAYS = (0.0, 1e-12, 1e-5, 0.003, 0.02, 0.1, 0.4, 0.9, 1.7, 3.0, 6.0, 12.0, 19.0, 25.0, 45.0)


def relative(found, exact):
    return abs(found - exact) / max(abs(exact), 1e-12)


@pytest.mark.parametrize("name", DISTANCES)
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6, 7, pytest.param(8, marks=pytest.mark.slow)])
def test_tables_agree_with_enumeration(name, n):
    sums = normalizer(name, n)
    for decay in DECAYS:
        log_z, mean, variance = oracle.moments(name, n, decay)
        assert abs(sums.log_z(decay) - log_z) < 1e-13
        assert abs(sums.mean_distance(decay) - mean) < 1e-10 * max(mean, 1.0)
        assert abs(sums.variance(decay) - variance) < 1e-8 * max(variance, 1.0)
        assert sums.error == sums.error_at(decay) == 0.0


@pytest.mark.parametrize("name", DISTANCES)
def test_broken_sums_are_noticed(name):
    for decay in (0.1, 0.9):
        exact = oracle.moments(name, 5, decay)[0]
        assert abs(float(log_sums(name, 5, np.array(decay))) - exact) < 1e-13
        assert abs(oracle.BROKEN[name](5, decay) - exact) > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("name", DISTANCES)
def test_tables_agree_with_all_rankings_of_ten_items(name):
    head = np.array(np.meshgrid(*[range(10)] * 3)).reshape(3, -1).T
    head = head[[len(set(row)) == 3 for row in head.tolist()]]
    tails = np.array(list(permutations(range(7))))
    found = np.zeros(largest_distance(name, 10) + 1)
    center = np.arange(10)[None]
    for row in head:
        rest = np.setdiff1d(np.arange(10), row)
        orders = np.concatenate([np.broadcast_to(row, (len(tails), 3)), rest[tails]], axis=1)
        found += np.bincount(distance_matrix(center, orders, metric=name)[0], minlength=len(found))
    assert found.sum() == math.factorial(10)
    for decay in DECAYS:
        exact = math.log1p((found * np.exp(-decay * np.arange(len(found))))[1:].sum())
        assert abs(normalizer(name, 10).log_z(decay) - exact) < 1e-13


@pytest.mark.parametrize(
    ("name", "n"),
    [*((name, 50) for name in DISTANCES if name != "spearman"), ("spearman", 14), ("footrule", 200)],
)
def test_all_rankings_are_counted_and_moments_are_derivatives(name, n):
    sums = normalizer(name, n)
    assert relative(sums.log_z(0.0), math.lgamma(n + 1)) < 1e-14
    scale = math.sqrt(sums.variance(0.0))
    for decay in (0.3 / scale, 2.0 / scale, 10.0 / scale, 1.0, 4.0):
        step = 1e-5 * decay
        ends = log_sums(name, n, np.array([decay - step, decay, decay + step]))
        assert abs(sums.log_z(decay) - ends[1]) < 1e-13 * max(ends[1], 1.0)
        assert relative(sums.mean_distance(decay), (ends[0] - ends[2]) / (2 * step)) < 1e-5
        slope = (sums.mean_distance(decay - step) - sums.mean_distance(decay + step)) / (2 * step)
        assert relative(sums.variance(decay), slope) < 1e-4


# Means and variances of the distance of a random ranking (Diaconis 1988, chapter 6).
UNIFORM = {
    "kendall": lambda n: (n * (n - 1) / 4, n * (n - 1) * (2 * n + 5) / 72),
    "footrule": lambda n: ((n * n - 1) / 3, (n + 1) * (2 * n * n + 7) / 45),
    "spearman": lambda n: ((n**3 - n) / 6, n * n * (n - 1) * (n + 1) ** 2 / 36),
    "cayley": lambda n: (
        n - sum(1 / i for i in range(1, n + 1)),
        sum(1 / i - 1 / i**2 for i in range(1, n + 1)),
    ),
    "hamming": lambda n: (n - 1, 1.0),
}


@pytest.mark.parametrize("name", UNIFORM)
def test_moments_of_random_rankings(name):
    for n in (3, 9, 12) if name == "spearman" else (3, 10, 60):
        mean, variance = UNIFORM[name](n)
        assert relative(normalizer(name, n).mean_distance(0.0), mean) < 1e-10
        assert relative(normalizer(name, n).variance(0.0), variance) < 1e-6


@pytest.mark.parametrize("name", DISTANCES)
def test_tables_are_smooth_across_knots_and_end_at_the_nearest_rankings(name):
    sums = normalizer(name, 9)
    for knot in sums.table.knots[1:]:
        before, after = np.nextafter(knot, 0.0), np.nextafter(knot, np.inf)
        for value in (sums.log_z, sums.mean_distance, sums.variance):
            assert abs(value(before) - value(after)) < 1e-8 * max(value(knot), 0.1)
    count, step = nearest_rankings(name, 6)
    assert sorted(oracle.counts(name, 6).items())[1] == (step, count)
    assert sums.log_z(math.inf) == sums.mean_distance(math.inf) == 0.0


@pytest.mark.parametrize("name", DISTANCES)
def test_decay_at_undoes_the_mean(name):
    sums = normalizer(name, 9)
    for decay in (0.001, 0.05, 0.3, 1.0, 3.0, 12.0, 30.0):
        assert sums.decay_at(sums.mean_distance(decay)) == pytest.approx(decay, rel=1e-8)
    assert sums.decay_at(sums.mean_distance(0.0)) == sums.decay_at(1e9) == 0.0
    assert sums.decay_at(0.0) == math.inf
    assert sums.decay_at(0.0, most=7.0) == sums.decay_at(1e-9, most=7.0) == 7.0


def test_compiled_code_reads_tables_of_all_distances_alike():
    known = []
    for name in DISTANCES:
        sums = normalizer(name, 6)
        known.append(tuple(type(part) for part in sums.table))
        for decay in (0.0, 0.2, 60.0):
            read = [table_value(sums.table, what, decay) for what in (LOG_Z, MEAN, VARIANCE)]
            assert read == pytest.approx(
                [sums.log_z(decay), sums.mean_distance(decay), sums.variance(decay)], rel=1e-14
            )
    assert len(table_value.signatures) == 1
    assert len(set(known)) == 1


@pytest.mark.parametrize("name", DISTANCES)
@pytest.mark.parametrize("n", [1, 6, 70])
def test_distances_of_rank_vectors(name, n):
    rng = np.random.default_rng(n)
    scratch = np.empty(2 * n, np.int64)
    for _ in range(5):
        a, b = rng.permutation(n), rng.permutation(n)
        expected = naive.METRICS[name](np.argsort(a).tolist(), np.argsort(b).tolist())
        assert distance(code_of(name), a, b, scratch) == expected
    assert len(distance.signatures) == 1


@pytest.mark.parametrize("name", DISTANCES)
def test_largest_distances(name):
    for n in range(1, 7):
        assert largest_distance(name, n) == max(oracle.counts(name, n))


def test_what_is_refused():
    with pytest.raises(ParameterError, match="distance='euclid' must be one of kendall, footrule"):
        normalizer("euclid", 4)
    with pytest.raises(DataError, match="no exact sum over rankings of more than 20 items"):
        log_sums("spearman", 21, np.zeros(1))
