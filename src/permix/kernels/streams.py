"""Counter-based random streams: one per datum and sweep, the same whatever the number of threads.

Philox 4x64 with ten rounds (Salmon et al. 2011), bit for bit the generator of ``numpy.random.Philox``. A
stream is a place in its counter, not a sequence that must be run through: opening one costs nothing.

A kernel that threads call on parts of the data (``over_rows``) reuses one stream for its part::

    key = draw_key(rng)                       # before, from the chain's generator
    stream = new_stream()                     # in the kernel
    for datum in range(first, last):
        open_stream(stream, key[0], key[1], sweep, datum)
        u = uniform(stream)

Two loops that share key, sweep and datum draw the same numbers: give each its own key.
"""

from __future__ import annotations

import numpy as np

from permix.kernels.bits import multiply
from permix.kernels.jit import kernel
from permix.kernels.random import categorical_log_quantile, truncated_geometric_quantile

# A stream: key (2), counter (4: block, datum, sweep, 0), the present block (4), words used of it (1), and
# padding to two cache lines, so that threads do not write to each other's line.
_KEY, _COUNTER, _BLOCK, _USED, _SIZE = 0, 2, 6, 10, 16

_MULTIPLIER_0 = np.uint64(0xD2E7470EE14C6C93)
_MULTIPLIER_1 = np.uint64(0xCA5A826395121157)
_WEYL_0 = np.uint64(0x9E3779B97F4A7C15)
_WEYL_1 = np.uint64(0xBB67AE8584CAA73B)
_UNIT = 1.0 / 9007199254740992.0
# Arrays passed to :func:`fill_uniform` have a multiple of this many entries.
WORDS = 8


@kernel
def new_stream():
    """Make the memory of one stream; open it before use."""
    return np.empty(_SIZE, np.uint64)


def draw_key(rng):
    """Draw the two words of a key from a Generator; not for compiled code."""
    # 32 bits at a time from the top of a uniform: the same words on every platform.
    high, low = (rng.random((2, 2)) * 4294967296.0).astype(np.uint64).T
    return (high << np.uint64(32)) | low


@kernel
def open_stream(stream, key0, key1, sweep, datum):
    """Set ``stream`` to the beginning of the numbers of this key, sweep and datum.

    Equals ``numpy.random.Philox(key=[key0, key1], counter=[0, datum, sweep, 0])``.
    """
    stream[_KEY] = key0
    stream[_KEY + 1] = key1
    stream[_COUNTER] = 0
    stream[_COUNTER + 1] = datum
    stream[_COUNTER + 2] = sweep
    stream[_COUNTER + 3] = 0
    stream[_USED] = 4


@kernel
def _mix(c0, c1, c2, c3, k0, k1):
    """Do one round of Philox."""
    high0, low0 = multiply(_MULTIPLIER_0, c0)
    high1, low1 = multiply(_MULTIPLIER_1, c2)
    return high1 ^ c1 ^ k0, low1, high0 ^ c3 ^ k1, low0


@kernel
def _unit(word):
    return np.float64(np.int64(word >> np.uint64(11))) * _UNIT  # signed numbers convert faster


@kernel
def _next_block(stream):
    stream[_COUNTER] += np.uint64(1)  # like NumPy, count first: block 1 is the first one used
    c0, c1, c2, c3 = stream[2], stream[3], stream[4], stream[5]
    k0, k1 = stream[_KEY], stream[_KEY + 1]
    for _ in range(10):
        c0, c1, c2, c3 = _mix(c0, c1, c2, c3, k0, k1)
        k0 += _WEYL_0
        k1 += _WEYL_1
    stream[_BLOCK] = c0
    stream[_BLOCK + 1] = c1
    stream[_BLOCK + 2] = c2
    stream[_BLOCK + 3] = c3
    stream[_USED] = 0


@kernel
def next_word(stream):
    """Return the next 64 random bits."""
    if stream[_USED] == 4:
        _next_block(stream)
    word = stream[_BLOCK + np.int64(stream[_USED])]
    stream[_USED] += np.uint64(1)
    return word


@kernel
def uniform(stream):
    """Draw uniformly from [0, 1) with 53 bits, as ``Generator.random`` does from the same words."""
    return _unit(next_word(stream))


@kernel
def exponential(stream):
    """Draw from the exponential distribution with mean 1."""
    return -np.log1p(-uniform(stream))


@kernel
def normal(stream):
    """Draw from the standard normal distribution (Box–Muller, one number from two uniforms)."""
    radius = np.sqrt(2.0 * exponential(stream))
    return radius * np.cos(2.0 * np.pi * uniform(stream))


@kernel
def integers(stream, n):
    """Draw uniformly from 0..n-1 (Lemire's method: exact, and nearly always one word)."""
    bound = np.uint64(n)
    high, low = multiply(next_word(stream), bound)
    if low < bound:
        threshold = (np.uint64(0) - bound) % bound  # 2^64 mod n
        while low < threshold:
            high, low = multiply(next_word(stream), bound)
    return np.int64(high)


@kernel
def categorical_log(stream, log_weights, n):
    """Draw an index in 0..n-1 with probability ∝ ``exp(log_weights[i])``; -1 when all are minus infinity."""
    return categorical_log_quantile(uniform(stream), log_weights, n)


@kernel
def truncated_geometric_log(stream, theta, n):
    """Draw k in 0..n-1 with P(k) ∝ exp(-theta k)."""
    return truncated_geometric_quantile(uniform(stream), theta, n)


# A Philox block is a chain of dependent multiplications, so two of them take the time of one: filling an
# array runs at three times the speed of drawing its numbers one by one.


@kernel
def padded(n):
    """Return the least multiple of ``WORDS`` that is at least ``n``."""
    return (n + WORDS - 1) // WORDS * WORDS


@kernel
def fill_uniform(key0, key1, sweep, datum, out):
    """Fill ``out`` with the first uniforms on [0, 1) of the stream of this key, sweep and datum."""
    for first in range(0, out.size, WORDS):
        block = np.uint64(first // 4)
        a0, a1, a2, a3 = block + np.uint64(1), np.uint64(datum), np.uint64(sweep), np.uint64(0)
        b0, b1, b2, b3 = block + np.uint64(2), np.uint64(datum), np.uint64(sweep), np.uint64(0)
        k0, k1 = key0, key1
        for _ in range(10):
            a0, a1, a2, a3 = _mix(a0, a1, a2, a3, k0, k1)
            b0, b1, b2, b3 = _mix(b0, b1, b2, b3, k0, k1)
            k0 += _WEYL_0
            k1 += _WEYL_1
        out[first] = _unit(a0)
        out[first + 1] = _unit(a1)
        out[first + 2] = _unit(a2)
        out[first + 3] = _unit(a3)
        out[first + 4] = _unit(b0)
        out[first + 5] = _unit(b1)
        out[first + 6] = _unit(b2)
        out[first + 7] = _unit(b3)


@kernel
def first_words(key, sweep, data, out):
    """Fill ``out`` with the first 64 random bits of the stream of each datum."""
    stream = new_stream()
    for at in range(data.size):
        open_stream(stream, key[0], key[1], sweep, data[at])
        out[at] = next_word(stream)
