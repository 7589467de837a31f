"""Sampling Mallows rankings against drawing the random numbers alone, and against prefsampling."""

from __future__ import annotations

import importlib.util

import numpy as np
from numba import njit

from benchmarks.timing import best_time
from permix import Mallows
from permix.kernels.streams import fill_uniform, padded
from permix.runtime.threads import at_most, n_processors

# PerMallows (R, C++) on a machine with two cores, 10,000 rankings of 100 items.
PERMALLOWS_SECONDS = 0.16


@njit(nogil=True)
def draw_numbers(first: int, last: int, n: int, out: np.ndarray) -> None:
    """Draw the uniform numbers that the rows need, and nothing else."""
    uniforms = np.empty(padded(n))
    for row in range(first, last):
        fill_uniform(np.uint64(1), np.uint64(2), 0, row, uniforms)
        out[row] = uniforms[n - 1]


def run() -> list[dict[str, object]]:
    """Compare with random numbers on one thread, with other packages on all."""
    threads = n_processors()
    with at_most(1):
        rows = _against_numbers()
    for dispersion in (0.5, 0.98, 1.0):
        model = Mallows(np.arange(100), dispersion)
        ours = best_time(lambda m=model: m.sample(10_000, random_state=0))
        what = f"10000 rankings of 100 items, dispersion {dispersion}"
        rows.append(_row(what, ours, PERMALLOWS_SECONDS, f"{threads} threads; PerMallows on another machine"))
    return rows + _prefsampling()


def _against_numbers() -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for size, n in ((10_000, 100), (100_000, 10), (5_000, 200), (100, 10_000)):
        last = np.empty(size)
        numbers = best_time(lambda s=size, n=n, out=last: draw_numbers(0, s, n, out))
        numpy_numbers = best_time(lambda s=size, n=n: np.random.default_rng(0).random((s, n)))
        for dispersion in (0.5, 0.98, 1.0):
            model = Mallows(np.arange(n), dispersion)
            ours = best_time(lambda m=model, s=size: m.sample(s, random_state=0))
            what = f"{size} rankings of {n} items, dispersion {dispersion}"
            rows.append(_row(what, ours, numbers, "one thread; the same random numbers alone"))
            rows.append(_row(what, ours, numpy_numbers, "one thread; numpy's uniform numbers alone"))
    return rows


def _prefsampling() -> list[dict[str, object]]:
    if importlib.util.find_spec("prefsampling") is None:
        return []
    from prefsampling.ordinal import mallows

    size, n = 200, 100  # it takes milliseconds a ranking
    reference = best_time(lambda: mallows(size, n, 0.5, seed=0), repeats=1) / size
    model = Mallows(np.arange(n), 0.5)
    ours = best_time(lambda: model.sample(10_000, random_state=0)) / 10_000
    return [_row(f"one ranking of {n} items, dispersion 0.5", ours, reference, "prefsampling")]


def _row(what: str, ours: float, reference: float, note: str) -> dict[str, object]:
    return {"what": what, "ours": ours, "reference": reference, "ratio": reference / ours, "note": note}


if __name__ == "__main__":
    for row in run():
        print(
            "{what:52} ours {ours:.3g} s, reference {reference:.3g} s, ratio {ratio:.2f} ({note})".format(
                **row
            )
        )
