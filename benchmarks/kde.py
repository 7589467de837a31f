"""The density estimator of rankings: fits with cross-validated dispersion, and one density evaluation.

The reference is the same closed form in vectorized NumPy: Kendall distances of all pairs from the signs of
all pairs of items, kept as a matrix, and a sum of exponentials over it at every dispersion tried. It works
for full rankings only; for other data the note says what was fitted.
"""

from __future__ import annotations

import numpy as np

from benchmarks.timing import best_time, timed
from permix.baselines.kde.fit import KDEFit, fit_kde
from permix.baselines.kde.parameters import KDEParameters
from permix.data.preferences import Preferences
from permix.data.rankings import Rankings
from permix.distributions.mallows import Mallows
from permix.kernels.mallows import log_normalizer


def fit(data: Rankings | Preferences) -> KDEFit:
    """Fit with the dispersion chosen by leaving agents out."""
    table = Preferences.from_rankings(data) if isinstance(data, Rankings) else data
    return fit_kde(table, KDEParameters(random_state=0, progress=False))


def dense_scores(rankings: Rankings, dispersions: np.ndarray) -> np.ndarray:
    """Mean ln p of agents left out, from the matrix of all distances."""
    n_items = rankings.n_items
    ranks = rankings.ranks()
    first, second = np.triu_indices(n_items, 1)
    signs = np.where(ranks[:, first] < ranks[:, second], np.float32(1), np.float32(-1))
    distances = (len(first) - signs @ signs.T) / 2
    np.fill_diagonal(distances, np.inf)
    nearest = distances.min(axis=1)
    distances -= nearest[:, None]
    scores = []
    for decay in -np.log(dispersions):
        total = np.log(np.exp(-np.float32(decay) * distances).sum(axis=1)) - decay * nearest
        scores.append(total.mean() - np.log(len(ranks) - 1) - log_normalizer(decay, n_items))
    return np.array(scores)


def run() -> list[dict[str, object]]:
    """Time fits to full rankings, top lists, levels and ratings of some items."""
    rng = np.random.default_rng(0)
    rows: list[dict[str, object]] = []
    full = Mallows(range(10), 0.75).sample(5000, 0)
    ours = best_time(lambda: fit(full))
    model = fit(full)
    some = model.tried[:-1:4, 0]  # some of them; at dispersion 1 infinite distances would count
    seconds, scores = timed(dense_scores, full, some)
    assert np.allclose(scores, model.tried[:-1:4, 1], atol=1e-3)
    seconds *= len(model.tried) / len(some)
    rows.append(
        {
            "what": "fit, 5000 full rankings of 10 items",
            "ours": f"{ours:.3f} s",
            "reference": f"{seconds:.1f} s",
            "ratio": seconds / ours,
            "note": f"{len(model.tried)} dispersions; NumPy with all distances in memory, from some of them",
        }
    )
    scored = best_time(lambda: model.log_probability(model.preferences))
    rows.append(
        {
            "what": "score_samples, 5000 full rankings of 10 items",
            "ours": f"{scored:.3f} s",
            "reference": f"{ours:.3f} s",
            "ratio": ours / scored,
            "note": "reference is the fit",
        }
    )
    noise = rng.gumbel(size=(20_000, 500)) + np.linspace(6, 0, 500)
    lists = Rankings.from_orders(np.argsort(-noise, axis=1)[:, :10], n_items=500)
    few, many = (timed(fit, lists[:size])[0] for size in (5000, 20_000))
    rows.append(
        {
            "what": "fit, 20,000 top-10 lists of 500 items",
            "ours": f"{many:.2f} s",
            "reference": f"{few:.2f} s",
            "ratio": float(np.log(many / few) / np.log(4)),
            "note": "reference is 5000 lists, ratio the exponent of time in lists: pairs are compared, so 2",
        }
    )
    short = Rankings.from_orders(np.array(lists.orders[:5000]), n_items=5000)
    wide = timed(fit, short)[0]
    rows.append(
        {
            "what": "fit, 5000 top-10 lists of 5000 items",
            "ours": f"{wide:.2f} s",
            "reference": f"{few:.2f} s",
            "ratio": wide / few,
            "note": "reference is 500 items; time follows the lists, so about 1",
        }
    )
    ranks = Mallows(range(10), 0.8).sample(5000, 0).ranks()
    rows.append(_row("fit, 5000 rows of 10 items at 5 levels", Preferences.from_ranks(np.ceil(ranks / 2))))
    ranks = Mallows(range(50), 0.9).sample(100, 0).ranks()
    ranks[np.argsort(rng.random(ranks.shape), axis=1) >= 15] = np.nan
    ratings = Preferences.from_ranks(np.ceil(ranks / 10), unlisted="unknown")
    rows.append(_row("fit, 100 agents who rate 15 of 50 items at 5 levels, sampled", ratings))
    return rows


def _row(what: str, data: Preferences) -> dict[str, object]:
    seconds, model = timed(fit, data)
    return {
        "what": what,
        "ours": f"{seconds:.2f} s",
        "reference": "",
        "ratio": "",
        "note": f"{len(model.tried)} dispersions, {model.dispersion:.3f} chosen",
    }


if __name__ == "__main__":
    for row in run():
        print(row)
