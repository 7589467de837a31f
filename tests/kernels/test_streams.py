"""Per-datum streams: NumPy's Philox is the oracle; threads must not matter."""

import numpy as np
import pytest
from scipy import stats

from permix.kernels import streams
from permix.kernels.jit import kernel
from permix.runtime.threads import at_most, over_rows

KEY = (0x0123456789ABCDEF, 0xFEDCBA9876543210)


@kernel
def _words(key0, key1, sweep, datum, n):
    stream = streams.new_stream()
    streams.open_stream(stream, key0, key1, sweep, datum)
    out = np.empty(n, np.uint64)
    for i in range(n):
        out[i] = streams.next_word(stream)
    return out


@pytest.mark.parametrize("sweep", [0, 1, 2**40])
@pytest.mark.parametrize("datum", [0, 7, 10**12])
@pytest.mark.parametrize("key", [(0, 0), KEY, (2**64 - 1, 2**63)])
def test_words_are_those_of_numpy_philox(key, datum, sweep):
    ours = _words(np.uint64(key[0]), np.uint64(key[1]), sweep, datum, 23)
    bits = np.random.Philox(key=np.array(key, np.uint64), counter=np.array([0, datum, sweep, 0], np.uint64))
    assert ours.tolist() == bits.random_raw(23).tolist()


@kernel
def _draws(kind, key0, key1, n, bound, log_weights):
    stream = streams.new_stream()
    streams.open_stream(stream, key0, key1, 3, 5)
    out = np.empty(n)
    for i in range(n):
        if kind == 0:
            out[i] = streams.uniform(stream)
        elif kind == 1:
            out[i] = streams.normal(stream)
        elif kind == 2:
            out[i] = streams.exponential(stream)
        elif kind == 3:
            out[i] = streams.integers(stream, bound)
        elif kind == 4:
            out[i] = streams.categorical_log(stream, log_weights, log_weights.size)
        else:
            out[i] = streams.truncated_geometric_log(stream, 0.3, bound)
    return out


def draws(kind, n, bound=1, log_weights=None):
    log_weights = np.zeros(1) if log_weights is None else log_weights
    return _draws(kind, np.uint64(KEY[0]), np.uint64(KEY[1]), n, bound, log_weights)


def test_uniforms_are_those_of_a_numpy_generator():
    bits = np.random.Philox(key=np.array(KEY, np.uint64), counter=np.array([0, 5, 3, 0], np.uint64))
    np.testing.assert_array_equal(draws(0, 1000), np.random.Generator(bits).random(1000))


@pytest.mark.parametrize(("kind", "distribution"), [(1, stats.norm), (2, stats.expon)])
def test_continuous_distributions(kind, distribution):
    sample = draws(kind, 50_000)
    assert stats.kstest(sample, distribution.cdf).pvalue > 1e-4
    assert stats.kstest(sample * 1.02 + 0.02, distribution.cdf).pvalue < 1e-4  # the test has power


@pytest.mark.parametrize("bound", [1, 2, 10, 1000])
def test_integers(bound):
    sample = draws(3, 100_000, bound).astype(int)
    assert sample.min() >= 0
    assert sample.max() < bound
    if bound > 1:
        assert stats.chisquare(np.bincount(sample, minlength=bound)).pvalue > 1e-4


def test_integers_reject_the_overhang():
    """At n = 3/8 · 2^64 a quarter of the words must be drawn again, else some come too often."""
    bound = 3 * 2**61
    sample = draws(3, 20_000, bound)
    assert stats.kstest(sample / bound, "uniform").pvalue > 1e-4
    words = _words(np.uint64(KEY[0]), np.uint64(KEY[1]), 3, 5, 20_000)
    kept = [(int(w) * bound) >> 64 for w in words if (int(w) * bound) % 2**64 >= 2**64 % bound]
    assert sample[: len(kept)].tolist() == [float(k) for k in kept]
    assert 0.7 < len(kept) / 20_000 < 0.8


def test_discrete_distributions():
    weights = np.array([0.5, 0.0, 0.3, 0.2])
    with np.errstate(divide="ignore"):
        sample = draws(4, 50_000, 1, np.log(weights)).astype(int)
    counts = np.bincount(sample, minlength=4)
    assert counts[1] == 0
    assert stats.chisquare(counts[[0, 2, 3]], 50_000 * weights[[0, 2, 3]]).pvalue > 1e-4
    sample = draws(5, 50_000, 6).astype(int)
    distribution = np.exp(-0.3 * np.arange(6))
    assert (
        stats.chisquare(np.bincount(sample, minlength=6), 50_000 * distribution / distribution.sum()).pvalue
        > 1e-4
    )


@kernel
def _sums(first, last, key, sweep, out):
    for datum in range(first, last):
        stream = streams.new_stream()
        streams.open_stream(stream, key[0], key[1], sweep, datum)
        for _ in range(1 + datum % 7):
            out[datum] += streams.normal(stream)


@kernel
def _reusing_sums(first, last, key, sweep, out):
    stream = streams.new_stream()
    for datum in range(first, last):
        streams.open_stream(stream, key[0], key[1], sweep, datum)
        for _ in range(1 + datum % 7):
            out[datum] += streams.normal(stream)


@kernel
def _careless_sums(first, last, key, sweep, out):
    """A broken twin: one stream per part, run through."""
    stream = streams.new_stream()
    streams.open_stream(stream, key[0], key[1], sweep, first)
    for datum in range(first, last):
        for _ in range(1 + datum % 7):
            out[datum] += streams.normal(stream)


def test_threads_do_not_matter():
    key = streams.draw_key(np.random.default_rng(1))
    n = 5000
    by_datum, by_part, careless = np.zeros((3, 2, n))
    for i, n_threads in enumerate((1, 2)):
        with at_most(n_threads):
            over_rows(lambda first, last, i=i: _sums(first, last, key, 4, by_datum[i]), n, 100)
            over_rows(lambda first, last, i=i: _reusing_sums(first, last, key, 4, by_part[i]), n, 100)
            over_rows(lambda first, last, i=i: _careless_sums(first, last, key, 4, careless[i]), n, 100)
    np.testing.assert_array_equal(by_datum[0], by_datum[1])
    np.testing.assert_array_equal(by_part[0], by_datum[0])
    np.testing.assert_array_equal(by_part[1], by_datum[0])
    assert not np.array_equal(careless[0], careless[1])


def test_sweeps_data_and_keys_give_different_streams():
    first = [
        int(_words(np.uint64(key), np.uint64(0), sweep, datum, 1)[0])
        for key in range(5)
        for sweep in range(5)
        for datum in range(5)
    ]
    assert len(set(first)) == 125


def test_key_comes_from_the_generator():
    one = streams.draw_key(np.random.default_rng(7))
    assert one.dtype == np.uint64
    assert one.tolist() == streams.draw_key(np.random.default_rng(7)).tolist()
    assert one.tolist() != streams.draw_key(np.random.default_rng(8)).tolist()
