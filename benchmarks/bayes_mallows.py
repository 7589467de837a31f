"""Chains of Bayesian Mallows models: effective draws per CPU second, beside BayesMallows (R and C++).

``python -m benchmarks.bayes_mallows [CASE ...]``; cases are six, footrule, beach, new-data, many and sampler.
Effective draws are counted for the decay of every group and for the rank of every item in every center, where
it varies; the smallest counts, so that all of consensus and dispersions are known so well. The reference is
the time of BayesMallows for 5,000 iterations, as if each were an independent draw: it really has less.
Memory is the peak of the process. Without the folder that PERMIX_DATA names, rankings are made.
"""

from __future__ import annotations

import os
import resource
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

# Seconds of BayesMallows for 5,000 iterations on two cores, megabytes where known.
REFERENCE = {"six": (73.0, 713.0), "footrule": (5.0, None), "beach": (2.5, None), "sampler": (30.0, None)}
ITERATIONS = 5000
# Draws by published moves, of which so few are effective that shorter chains would not tell.
PUBLISHED = {"six": 5000, "footrule": 20_000, "beach": 100_000}


def sushi() -> Any:
    """Sushi rankings, or as many of as many items from six groups."""
    from permix.datasets import load_sushi, make_mallows_mixture

    if os.environ.get("PERMIX_DATA"):
        return load_sushi("a").data
    return make_mallows_mixture(5000, 10, 6, dispersion=0.7, random_state=1).data


def beach() -> Any:
    """Comparisons of beaches by 60 agents, or as many of as many items."""
    import permix

    path = Path(os.environ.get("PERMIX_DATA", "")) / "bayesmallows" / "beach_preferences.csv"
    if path.is_file():
        lines = [line.split(",") for line in path.read_text().splitlines()[1:]]
        rows = [(agent, top, bottom) for agent, bottom, top in (line[-3:] for line in lines)]
        return permix.Preferences.from_pairs(rows, on_cycle="keep")
    return compared(60, 15, 24, 0)


def compared(n_agents: int, n_items: int, n_pairs: int, seed: int) -> Any:
    """Return random comparisons by agents of two groups."""
    import permix

    rng = np.random.default_rng(seed)
    orders = np.concatenate(
        [
            permix.Mallows(rng.permutation(n_items).tolist(), 0.85).sample(size, rng).orders
            for size in (n_agents - n_agents // 3, n_agents // 3)
        ]
    )
    ranks = np.argsort(orders, axis=1)
    first = rng.integers(n_items, size=(n_agents, n_pairs))
    second = (first + rng.integers(1, n_items, size=first.shape)) % n_items
    agents = np.repeat(np.arange(n_agents), n_pairs)
    a, b = first.ravel(), second.ravel()
    right = ranks[agents, a] < ranks[agents, b]
    pairs = np.stack([np.where(right, a, b), np.where(right, b, a)], axis=1).astype(np.int32)
    return permix.Preferences._from_arrays(
        items=range(n_items), pair_indptr=np.arange(n_agents + 1) * n_pairs, pairs=pairs
    )


class Chain(NamedTuple):
    """What a chain came to."""

    n_draws: int
    seconds: float  # of CPU, for these draws
    decays: Any  # effective numbers of draws, of each group
    ranks: Any  # of each item in each center, where it varies

    @property
    def effective(self) -> float:
        """The smallest effective number of draws."""
        return float(min(self.decays.min(), self.ranks.min()))

    @property
    def note(self) -> str:
        """What is to be said of it."""
        return (
            f"{self.n_draws} draws, of decays {self.decays.min():.0f} to {self.decays.max():.0f} effective, "
            f"of ranks {self.ranks.min():.0f} to {self.ranks.max():.0f} of {len(self.ranks)} that vary"
        )


def chain(data: Any, n_draws: int, n_burn_in: int = 500, published: bool = False, **options: Any) -> Chain:
    """Run one chain, with the moves of permix or with those that were published."""
    from benchmarks.peers.published_mallows import Published
    from permix.bayes_mallows.data import reader_for
    from permix.bayes_mallows.fit import bayes_model, first_place, sweep_move
    from permix.bayes_mallows.parameters import BayesianMallowsParameters
    from permix.runtime.threads import at_most

    settings = BayesianMallowsParameters(**options)
    model = bayes_model(reader_for(settings)(data), settings)
    usual = sweep_move(model, settings)
    with at_most(1):
        state = first_place(model, settings, np.random.default_rng(1))
        rng = np.random.default_rng(0)
        for _ in range(n_burn_in // 2):
            usual.step(rng, state)  # compiles, and goes where the posterior is
        move, decays, ranks, labels = Published() if published else usual, [], [], []
        move.step(rng, state)
        seconds = 0.0
        for iteration in range(n_burn_in // 2 + n_draws):
            start = time.process_time()
            move.step(rng, state)
            if iteration >= n_burn_in // 2:
                seconds += time.process_time() - start
                decays.append(state.decays[: state.n_clusters].copy())
                ranks.append(state.centers[: state.n_clusters].copy())
                labels.append(state.labels.astype(np.uint8))
    for one in named_alike(labels):
        decays[one.draw], ranks[one.draw] = decays[one.draw][one.order], ranks[one.draw][one.order]
    flat = np.array(ranks, dtype=np.float64).reshape(n_draws, -1)
    return Chain(n_draws, seconds, _effective(np.array(decays)), _effective(flat))


class Named(NamedTuple):
    """The groups of a draw in the order of the draw before."""

    draw: int
    order: Any


def named_alike(labels: list[Any]) -> list[Named]:
    """Match the groups of each draw with those of the draw before: they are numbered by first appearance."""
    from scipy.optimize import linear_sum_assignment

    named, before = [], labels[0]
    n_groups = int(before.max()) + 1
    for draw, found in enumerate(labels if n_groups > 1 else []):
        shared = np.bincount(before.astype(np.int64) * n_groups + found, minlength=n_groups**2)
        order = linear_sum_assignment(-shared.reshape(n_groups, n_groups))[1]
        named.append(Named(draw, order))
        before = np.argsort(order).astype(np.uint8)[found]
    return named


def _effective(values: Any) -> Any:
    """Return effective numbers of draws of the columns that vary."""
    from permix.convergence import ess_bulk

    varying = values[:, (values != values[0]).any(axis=0)]
    found = [ess_bulk(column[None]) for column in varying.T]
    return np.array(found or [float(len(values))])


def new_data() -> dict[str, object]:
    """Return what 50 more agents cost a fit to 1,000, by updating it and by fitting again."""
    import warnings

    import permix

    votes = sushi()
    runs: dict[str, Any] = {"n_draws": 1000, "random_state": 0, "progress": False, "n_jobs": 1}
    seconds = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = permix.BayesianMallowsMixture(3, **runs).fit(votes[:1000])
        fit.update(votes[1000:1002], random_state=5)  # compiles
        for work in (
            lambda: fit.update(votes[1002:1052]),
            lambda: permix.BayesianMallowsMixture(3, **runs).fit(votes[:1052]),
        ):
            start = time.process_time()
            work()
            seconds.append(time.process_time() - start)
    worth = float(fit.updates_["effective_size"].min())
    note = f"400 particles worth {worth:.0f} of 200 of a chain at least; a refit {seconds[1]:.1f} CPU s"
    return _row("50 new agents of 1,052, three groups", seconds[0], seconds[1], note)


def sampler() -> dict[str, object]:
    """Draw 10,000 rankings of 100 items."""
    import permix

    model = permix.Mallows(list(range(100)), 0.9, distance="footrule")
    model.sample(10, 0)
    start = time.process_time()
    model.sample(10_000, 0)
    return _row("10,000 draws of 100 items, footrule", time.process_time() - start, 30.0, "exact")


def _row(what: str, ours: float, reference: float, note: str) -> dict[str, object]:
    print(f"{what}: {ours:.3g} against {reference:.3g}; {note}", file=sys.stderr, flush=True)
    return {"what": what, "ours": ours, "reference": reference, "ratio": ours / reference, "note": note}


def _effective_row(name: str, what: str, data: Any, n_draws: int, **options: Any) -> dict[str, object]:
    """Return CPU seconds of an effective draw, and of BayesMallows one by what its iterations are worth."""
    ours = chain(data, n_draws, **options)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    note = f"{ours.effective / ours.seconds:,.0f} effective draws a CPU second; {ours.note}; {peak:.0f} MB"
    reference = float("nan")
    if name in REFERENCE and options.get("errors") != "logistic":
        theirs = chain(data, PUBLISHED[name], published=True, **options)
        reference = REFERENCE[name][0] / ITERATIONS * theirs.n_draws / theirs.effective
        note += f"; published moves, {1.0 / reference:,.2f} effective draws a second: {theirs.note}"
    return _row(f"{what}, CPU s an effective draw", ours.seconds / ours.effective, reference, note)


def run(cases: tuple[str, ...] = ()) -> list[dict[str, object]]:
    """Run all cases, or some."""
    rows: list[dict[str, object]] = []
    for case in cases or ("six", "footrule", "beach", "new-data", "sampler"):
        if case == "six":
            rows.append(_effective_row(case, "sushi, six groups, Kendall", sushi(), 5000, n_components=6))
        elif case == "footrule":
            rows.append(
                _effective_row(case, "sushi, one group, footrule", sushi(), 2000, distance="footrule")
            )
        elif case == "beach":
            for errors in (None, "bernoulli", "logistic"):
                what = f"beach comparisons, footrule, errors {errors}"
                rows.append(_effective_row(case, what, beach(), 2000, distance="footrule", errors=errors))
        elif case == "many":
            what = "100,000 agents, 50 items, 20 comparisons each, two groups"
            data = compared(100_000, 50, 20, 1)
            rows.append(_effective_row(case, what, data, 10, n_burn_in=10, n_components=2))
        else:
            rows.append(new_data() if case == "new-data" else sampler())
    return rows


if __name__ == "__main__":
    run(tuple(sys.argv[1:]))
