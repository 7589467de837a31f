"""Completions of incomplete rankings under angle-based models: speed, mixing, and the error of annealing.

The reference is the step of the paper (section 4.1): Metropolis with completions proposed uniformly. It is
compiled too, and one of its proposals is set against 100 of ours, for it draws as many items anew.
"""

from __future__ import annotations

import numpy as np

from benchmarks.timing import best_time, timed
from permix.data.rankings import Rankings
from permix.distributions.angle.completions import log_compatible_sums
from permix.distributions.angle.completions_jit import (
    completions_sweep,
    move_completion,
    start_completions,
    uniform_completion,
)
from permix.distributions.angle.scores import standard_scores
from permix.kernels.jit import kernel
from permix.kernels.streams import new_stream, open_stream, uniform
from permix.runtime.threads import over_rows

N_ITEMS, N_LISTED = 100, 10


@kernel
def uniform_proposals(stream, order, listed, length, below, tilts, scores, n_proposals, proposal, scratch):
    """Metropolis as in the paper; return how many proposals were accepted."""
    accepted = 0
    weight = 0.0
    for rank in range(order.size):
        weight += tilts[order[rank]] * scores[rank]
    for _ in range(n_proposals):
        uniform_completion(stream, listed, length, below, proposal, scratch)
        other = 0.0
        for rank in range(order.size):
            other += tilts[proposal[rank]] * scores[rank]
        if other >= weight or uniform(stream) < np.exp(other - weight):
            order[:] = proposal
            weight = other
            accepted += 1
    return accepted


@kernel
def exponents(start, listed, length, below, tilts, scores, n_proposals, paper, out):
    """Follow Σ tilts scores along chains, one in every row of ``out``; return the paper's acceptances."""
    stream = new_stream()
    scratch = np.empty((3, tilts.size), np.int32)
    proposal = np.empty_like(start)
    accepted = 0
    for chain in range(out.shape[0]):
        order = start.copy()
        for sweep in range(out.shape[1]):
            open_stream(stream, 1, 2, sweep, chain)
            if paper:
                accepted += uniform_proposals(
                    stream, order, listed, length, below, tilts, scores, n_proposals, proposal, scratch
                )
            else:
                move_completion(stream, order, listed, length, below, tilts, scores, n_proposals, scratch)
            total = 0.0
            for rank in range(order.size):
                total += tilts[order[rank]] * scores[rank]
            out[chain, sweep] = total
    return accepted


def autocorrelation_time(values: np.ndarray) -> float:
    """Integrated autocorrelation time over the chains in the rows (Geyer's initial positive sequence)."""
    centered = values - values.mean()
    length = values.shape[1]
    transform = np.fft.rfft(centered, 2 * length, axis=1)
    covariance = np.fft.irfft(np.abs(transform) ** 2, axis=1)[:, :length].mean(axis=0)
    correlation = covariance / covariance[0] * length / np.arange(length, 0, -1)
    time = 1.0
    for lag in range(1, length // 2, 2):
        pair = correlation[lag] + correlation[lag + 1]
        if pair < 0.0:
            break
        time += 2.0 * pair
    return float(time)


def some_tilts(concentration: float) -> np.ndarray:
    """Concentration times a random direction."""
    direction = np.random.default_rng(0).normal(size=N_ITEMS)
    direction -= direction.mean()
    return concentration * direction / np.linalg.norm(direction)


def some_lists(n_rows: int) -> np.ndarray:
    """Draw lists of ten items."""
    rng = np.random.default_rng(1)
    return np.array([rng.permutation(N_ITEMS)[:N_LISTED] for _ in range(n_rows)], dtype=np.int32)


def sweeps(concentration: float, below: bool, n_rows: int, n_sweeps: int) -> float:
    """Seconds of sweeps of 100 proposals for every row, over threads."""
    listed, tilts, scores = some_lists(n_rows), some_tilts(concentration)[None], standard_scores(N_ITEMS)
    lengths, behind = np.full(n_rows, N_LISTED), np.full(n_rows, below)
    labels, key = np.zeros(n_rows, np.int64), np.array([1, 2], np.uint64)
    orders = np.empty((n_rows, N_ITEMS), np.int32)
    rows = (listed, lengths, behind, labels, tilts, scores)
    start_completions(key, 0, 0, n_rows, *rows, orders)
    completions_sweep(key, 0, 0, 0, orders, *rows, 100)

    def all_sweeps() -> None:
        for sweep in range(n_sweeps):

            def move(first: int, last: int, sweep: int = sweep) -> None:
                completions_sweep(key, sweep, first, last, orders, *rows, 100)

            over_rows(move, n_rows, N_ITEMS)

    return timed(all_sweeps)[0]


def mixing(concentration: float, below: bool) -> dict[str, object]:
    """Compare autocorrelation times, in units of as much work as 100 of our proposals."""
    listed, tilts, scores = some_lists(1)[0], some_tilts(concentration), standard_scores(N_ITEMS)
    rest = np.setdiff1d(np.arange(N_ITEMS), listed)
    start = np.concatenate([listed, rest[np.argsort(tilts[rest])]]).astype(np.int32)
    arguments = (start, listed, N_LISTED, below, tilts, scores)
    ours = np.empty((20, 1100))
    exponents(*arguments, N_ITEMS, False, ours)
    papers = np.empty((20, 5000))
    accepted = exponents(*arguments, 1, True, papers)
    # Chains of the paper that hardly move have no time that could be measured: the acceptance is its bound.
    share = accepted / papers.size
    time = autocorrelation_time(ours[:, 100:])
    kind = "top list" if below else "subset"
    return {
        "what": f"mixing at concentration {concentration:g}, {kind} of {N_LISTED} of {N_ITEMS}",
        "ours": f"{time:.1f} sweeps",
        "reference": f"> {1.0 / max(share, 1.0 / papers.size):.0f} proposals",
        "ratio": 1.0 / max(share, 1.0 / papers.size) / time,
        "note": f"the paper's uniform proposals: {100 * share:.4f} % accepted, from a good start",
    }


def run() -> list[dict[str, object]]:
    """Measure all."""
    rows: list[dict[str, object]] = []
    for below in (False, True):
        kind = "top lists" if below else "subset rankings"
        seconds = sweeps(50.0, below, 5000, 1000)
        rows.append(
            {
                "what": f"1000 sweeps of 5000 {kind}, {N_LISTED} of {N_ITEMS} items",
                "ours": f"{seconds:.1f} s",
                "reference": "30 s",
                "ratio": 30.0 / seconds,
                "note": f"100 proposals a sweep, {seconds / 5e8 * 1e9:.0f} ns each over all cores; aim 30 s",
            }
        )
    for concentration in (25.0, 200.0):
        rows.extend(mixing(concentration, below) for below in (False, True))
    for concentration in (25.0, 200.0):
        for unlisted in ("unknown", "below"):
            lists = Rankings.from_orders(some_lists(20).tolist(), n_items=N_ITEMS, unlisted=unlisted)
            tilts = some_tilts(concentration)[None]
            seconds = best_time(lambda lists=lists, tilts=tilts: log_compatible_sums(lists, tilts), 1)
            first, errors = log_compatible_sums(lists, tilts, random_state=1)
            other, _ = log_compatible_sums(lists, tilts, random_state=2)
            spread = float(np.sqrt(np.mean((first - other) ** 2) / 2.0))
            rows.append(
                {
                    "what": f"annealed sum at concentration {concentration:g}, unlisted {unlisted}",
                    "ours": f"{1000 * seconds / len(lists):.1f} ms a row",
                    "reference": "",
                    "ratio": float("nan"),
                    "note": f"64 particles, standard error {errors.mean():.3f}, found {spread:.3f} nats",
                }
            )
    return rows


if __name__ == "__main__":
    for row in run():
        print(row)
