"""Angle-based models: a variational fit against one pass and against SIR; large tables, many items, sweeps.

Large tables are made and fitted in a process of their own, whose peak memory is told.
"""

from __future__ import annotations

import json
import platform
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.timing import best_time, timed
from permix import AngleMixture, Rankings
from permix.angle.mixture_jit import add_scores
from permix.distributions.angle.scores import standard_scores

# What the large table may take: seconds and bytes.
MOST_SECONDS, MOST_BYTES = 60.0, 2e9


def noisy_orders(n_rows: int, n_items: int, n_kinds: int, seed: int = 0) -> np.ndarray:
    """Orderings of noisy scores around one or several consensus scores: quick, spread about as at κ = t."""
    rng = np.random.default_rng(seed)
    centers = rng.standard_normal((n_kinds, n_items)).astype(np.float32)
    out = np.empty((n_rows, n_items), dtype=np.int32)
    for first in range(0, n_rows, 20_000):
        part = out[first : first + 20_000]
        noise = rng.standard_normal(part.shape, dtype=np.float32)
        part[:] = (centers[rng.integers(n_kinds, size=len(part))] + noise).argsort(axis=1)
    return out


def model(**settings: Any) -> AngleMixture:
    """Return a model that shows no progress; with the approximate normalizer, unless told otherwise."""
    return AngleMixture(random_state=0, progress=False, **({"normalizer": "vmf"} | settings))


def peak_bytes() -> float:
    """Return the largest memory this process has held."""
    if sys.platform == "win32":
        return float("nan")
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return float(peak if platform.system() == "Darwin" else 1024 * peak)


def small_fits() -> Iterator[dict[str, object]]:
    """Variational inference on 5000 rankings of 10 items against one pass over them, and against SIR."""
    rankings = Rankings.from_orders(noisy_orders(5000, 10, 1))
    orders, counts, scores = rankings.orders, rankings.counts.astype(float), standard_scores(10)

    def compiled_pass() -> np.ndarray:
        sums = np.zeros(10)
        add_scores(0, len(orders), orders, counts, scores, sums)
        return sums

    def numpy_pass() -> np.ndarray:
        weights = np.multiply.outer(counts, scores)
        return np.bincount(orders.ravel(), weights.ravel(), minlength=10)

    def fit_by(inference: str, **settings: Any) -> float:
        return best_time(lambda: model(inference=inference, **settings).fit(rankings), 20)

    vi = fit_by("vi")
    for name, one_pass in (("a pass by NumPy", numpy_pass), ("our compiled pass", compiled_pass)):
        seconds = best_time(one_pass, 20)
        yield {
            "what": f"variational fit of 5000 x 10 against {name}",
            "ours": f"{1e3 * vi:.2f} ms",
            "reference": f"{1e3 * seconds:.3f} ms",
            "ratio": seconds / vi,
            "note": f"{vi / seconds:.1f} passes; aim: 3 at most",
        }
    n_bytes = orders.astype(np.int64)
    checked = best_time(lambda: Rankings.from_orders(n_bytes), 20)
    yield {
        "what": "the same with the array checked and turned into rankings first",
        "ours": f"{1e3 * (vi + checked):.2f} ms",
        "reference": f"{1e3 * checked:.2f} ms",
        "ratio": checked / (vi + checked),
        "note": "reference: the check alone",
    }
    sir = fit_by("sir", normalizer="vmf", n_draws=1000, n_candidates=10_000)
    yield {
        "what": "variational against SIR, 1000 of 10,000 candidates",
        "ours": f"{1e3 * vi:.2f} ms",
        "reference": f"{1e3 * sir:.1f} ms",
        "ratio": sir / vi,
        "note": "aim: 100, the paper 50 to 100; our SIR weighs candidates one by one in Python",
    }


def large_table(n_rows: int, n_items: int, n_components: int) -> dict[str, float]:
    """Fit a large table; told by a process of its own."""
    orders = noisy_orders(n_rows, n_items, n_components)
    made = peak_bytes()
    seconds_of_check, rankings = timed(Rankings.from_orders, orders)
    del orders
    # The same kind of table, so that all is compiled.
    some = Rankings.from_orders(noisy_orders(6000, n_items, n_components, 1))
    model(n_components=n_components, n_init=2).fit(some)
    fitted = model(n_components=n_components)
    seconds, _ = timed(fitted.fit, rankings)
    return {
        "seconds": seconds,
        "check": seconds_of_check,
        "made": made,
        "peak": peak_bytes(),
        "passes": float(fitted.n_iter_),
        "least_weight": float(fitted.weights_.min()),
    }


def large_fits(n_rows: int = 1_000_000, n_items: int = 100) -> Iterator[dict[str, object]]:
    """One and three components on a million rankings of 100 items."""
    for k in (1, 3):
        command = [sys.executable, "-m", "benchmarks.angle", "--large", *map(str, (n_rows, n_items, k))]
        told = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        yield {
            "what": f"variational fit of {n_rows:,} x {n_items}, {k} group{'s' * (k > 1)}: time",
            "ours": f"{told['seconds']:.1f} s",
            "reference": f"{MOST_SECONDS:.0f} s",
            "ratio": MOST_SECONDS / told["seconds"],
            "note": f"10 starts, {told['passes']:.0f} passes over all; check of the table "
            f"{told['check']:.1f} s; smallest weight {told['least_weight']:.2f}",
        }
        yield {
            "what": f"variational fit of {n_rows:,} x {n_items}, {k} group{'s' * (k > 1)}: memory",
            "ours": f"{told['peak'] / 1e9:.2f} GB",
            "reference": f"{MOST_BYTES / 1e9:.0f} GB",
            "ratio": MOST_BYTES / told["peak"],
            "note": f"peak of the process; before the fit {told['made'] / 1e9:.2f} GB, of which the table "
            f"is {4e-9 * n_rows * n_items:.1f}",
        }


def many_items(n_items: int = 10_000, n_rows: int = 100) -> Iterator[dict[str, object]]:
    """Every mode of inference on ten thousand items."""
    full = Rankings.from_orders(noisy_orders(n_rows, n_items, 1))
    lists = Rankings.from_orders(noisy_orders(n_rows, n_items, 1)[:, :20].tolist(), n_items=n_items)
    wanted: list[tuple[str, Rankings, dict[str, Any]]] = [
        *((f"full, {inference}", full, {"inference": inference}) for inference in ("vi", "em", "sir")),
        ("full, quadrature", full, {"inference": "quadrature"}),
        ("full, vi, 2 groups", full, {"inference": "vi", "n_components": 2}),
        *(
            (
                f"top 20, {inference}, 50 sweeps",
                lists,
                {"inference": inference, "n_draws": 30, "n_burn_in": 20},
            )
            for inference in ("vi", "em", "sir", "quadrature")
        ),
    ]
    for name, rankings, settings in wanted:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            seconds, fitted = timed(model(**settings).fit, rankings)
        yield {
            "what": f"{n_rows} rankings of {n_items:,} items: {name}",
            "ours": f"{seconds:.2f} s",
            "reference": "",
            "ratio": float("nan"),
            "note": f"concentration {fitted.concentrations_[0]:.0f}; first call, compilation included",
        }


def sweeps(n_rows: int = 5000, n_items: int = 100, n_sweeps: int = 1000) -> Iterator[dict[str, object]]:
    """Measure augmentation sweeps of AngleMixture on lists like those of the sushi data."""
    lists = noisy_orders(n_rows, n_items, 1)
    rng = np.random.default_rng(0)
    chosen = np.zeros((n_rows, n_items), dtype=bool)
    np.put_along_axis(chosen, rng.permuted(np.tile(np.arange(n_items), (n_rows, 1)), axis=1)[:, :10], True, 1)
    shown = lists[np.take_along_axis(chosen, lists.astype(np.int64), axis=1)].reshape(n_rows, 10)
    for kind, listed, unlisted in (("subset", shown, "unknown"), ("top", lists[:, :10], "below")):
        rankings = Rankings.from_orders(listed.tolist(), n_items=n_items, unlisted=unlisted)
        for n_components in (1, 2):
            settings = {"n_components": n_components}
            quiet = model(**settings, n_draws=2, n_burn_in=0)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                quiet.fit(rankings)
                before = timed(quiet.fit, rankings)[0]
                seconds = timed(model(**settings, n_draws=n_sweeps - 200).fit, rankings)[0]
            yield {
                "what": f"{n_sweeps} sweeps, {n_rows} {kind} rankings of 10 of {n_items}, "
                f"{n_components} group{'s' * (n_components > 1)}",
                "ours": f"{seconds:.1f} s",
                "reference": "30 s",
                "ratio": 30.0 / seconds,
                "note": f"the whole fit; with 2 sweeps {before:.1f} s",
            }


def run() -> list[dict[str, object]]:
    """Measure all."""
    return [*small_fits(), *large_fits(), *many_items(), *sweeps()]


if __name__ == "__main__":
    if sys.argv[1:2] == ["--large"]:
        print(json.dumps(large_table(*map(int, sys.argv[2:]))))
    else:
        for measure in (small_fits, large_fits, many_items, sweeps):
            start = time.perf_counter()
            for row in measure():
                print(row, flush=True)
            print(f"{measure.__name__}: {time.perf_counter() - start:.0f} s", flush=True)
