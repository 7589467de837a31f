"""Default settings on tables with known groups: what a newcomer gets, beside scikit-learn.

``python -m benchmarks.panel [WORD ...]`` runs the rows whose names have one of the words (``labelled`` for
the five real tables, ``made`` for the others); ``--seeds N`` runs ours with N seeds, ``--no-peers`` ours
alone, and ``--no-held-out`` leaves out the second fit, to nine tenths of the rows, on which the held-out log
density per row rests. ``banknote`` needs PERMIX_DATA. Adjusted Rand compares with the known groups, noise of
HDBSCAN as a group of its own; P(true) is the posterior probability of the true number of groups. Ours sees
the columns as they are, the others see them standardized, and their densities are turned back. CPU seconds,
compiled before.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

LABELLED = ("iris", "wine", "breast cancer", "digits", "banknote")


class Labelled(NamedTuple):
    """A table and the group of each of its rows."""

    X: np.ndarray
    y: np.ndarray


def shipped(name: str) -> Callable[[], Labelled]:
    """Return the loader of a table that scikit-learn ships."""

    def load() -> Labelled:
        import sklearn.datasets

        return Labelled(*getattr(sklearn.datasets, f"load_{name}")(return_X_y=True))

    return load


def banknote() -> Labelled:
    """Six measures of 200 Swiss banknotes, half of them forged (Flury & Riedwyl 1988)."""
    import pandas as pd

    if "PERMIX_DATA" not in os.environ:
        raise FileNotFoundError("PERMIX_DATA is not set")
    frame = pd.read_csv(Path(os.environ["PERMIX_DATA"]) / "tables" / "banknote.csv")
    return Labelled(frame.iloc[:, 1:].to_numpy(float), pd.factorize(frame.iloc[:, 0])[0])


def groups(
    sizes: tuple[int, ...], n_columns: int, distance: float, seed: int, noise: Any = None
) -> Callable[[], Labelled]:
    """Return a maker of groups around normal centers ``distance`` noise deviations apart in each column.

    ``noise(rng, group, size)`` gives the deviations from the center; by default independent and normal.
    """

    def make() -> Labelled:
        rng = np.random.default_rng(seed)
        centers = rng.normal(0, distance, (len(sizes), n_columns))
        parts = []
        for group, (center, size) in enumerate(zip(centers, sizes, strict=True)):
            off = rng.normal(size=(size, n_columns)) if noise is None else noise(rng, group, size)
            parts.append(center + off)
        return Labelled(np.concatenate(parts), np.repeat(np.arange(len(sizes)), sizes))

    return make


def corners(n_each: int) -> Callable[[], Labelled]:
    """Return a maker of four round groups at the corners of a square ten deviations wide."""

    def make() -> Labelled:
        rng = np.random.default_rng(0)
        centers = 5.0 * np.array([[-1, -1], [-1, 1], [1, -1], [1, 1]])
        parts = [center + rng.normal(size=(n_each, 2)) for center in centers]
        return Labelled(np.concatenate(parts), np.repeat(np.arange(4), n_each))

    return make


def ellipses(n_columns: int, seed: int) -> Callable[..., np.ndarray]:
    """Return noise whose covariance differs from group to group."""
    turns = np.random.default_rng(seed).normal(size=(20, n_columns, n_columns)) / np.sqrt(n_columns)
    return lambda rng, group, size: rng.normal(size=(size, n_columns)) @ turns[group]


def scaled(n_columns: int) -> Callable[..., np.ndarray]:
    """Return noise three times as large from one group to the next."""
    return lambda rng, group, size: 3.0**group / 3.0 * rng.normal(size=(size, n_columns))


def heavy(n_columns: int) -> Callable[..., np.ndarray]:
    """Return noise of Student's t with three degrees of freedom."""
    return lambda rng, group, size: rng.standard_t(3, size=(size, n_columns))


def with_noise_columns(make: Callable[[], Labelled], n_more: int) -> Callable[[], Labelled]:
    """Return the same groups with columns that know nothing of them."""

    def more() -> Labelled:
        X, y = make()
        return Labelled(np.hstack([X, np.random.default_rng(1).normal(size=(len(X), n_more))]), y)

    return more


def in_units(make: Callable[[], Labelled]) -> Callable[[], Labelled]:
    """Return the same groups with columns in units a million times apart, off zero."""

    def changed() -> Labelled:
        X, y = make()
        units = 10.0 ** np.linspace(-3, 3, X.shape[1])
        return Labelled(X * units + 50 * units, y)

    return changed


def skewed_columns(make: Callable[[], Labelled]) -> Callable[[], Labelled]:
    """Return the same groups with columns as incomes and concentrations are: the exponential of normal."""

    def changed() -> Labelled:
        X, y = make()
        return Labelled(np.exp(0.3 * X), y)

    return changed


def rounded(make: Callable[[], Labelled]) -> Callable[[], Labelled]:
    """Return the same groups in whole numbers, with a column that is constant."""

    def changed() -> Labelled:
        X, y = make()
        return Labelled(np.hstack([np.round(X), np.full((len(X), 1), 7.0)]), y)

    return changed


def with_gaps(make: Callable[[], Labelled], share: float) -> Callable[[], Labelled]:
    """Return the same table with a share of its cells missing at random."""

    def changed() -> Labelled:
        X, y = make()
        return Labelled(np.where(np.random.default_rng(0).random(X.shape) < share, np.nan, X), y)

    return changed


def far_and_near() -> Labelled:
    """Two groups twelve deviations apart beside one that is a thousand away."""
    rng = np.random.default_rng(16)
    centers = np.array([[0.0, 0.0], [12.0, 0.0], [1000.0, 1000.0]])
    return Labelled(np.repeat(centers, 60, axis=0) + rng.normal(size=(180, 2)), np.repeat(np.arange(3), 60))


def copied_rows() -> Labelled:
    """One group, every row of which is there twice."""
    rows = np.random.default_rng(17).normal(size=(100, 3))
    return Labelled(np.concatenate([rows, rows]), np.zeros(200))


def incomes() -> Labelled:
    """One group with two log-normal columns: Gaussian groups follow their shape, and a warning says so."""
    rng = np.random.default_rng(18)
    columns = (np.exp(rng.normal(10, 0.5, 600)), rng.normal(45, 12, 600), np.exp(rng.normal(6.5, 0.4, 600)))
    return Labelled(np.column_stack(columns), np.zeros(600))


def small_counts() -> Labelled:
    """Two groups of six Poisson counts, which are no numbers for Gaussian groups: there is a warning."""
    rng, y = np.random.default_rng(19), np.repeat([0, 1], 120)
    means = np.exp(rng.normal(1, 1, (2, 6)))
    return Labelled(rng.poisson(means[y]).astype(float), y)


TABLES: dict[str, Callable[[], Labelled]] = {
    "iris": shipped("iris"),
    "wine": shipped("wine"),
    "breast cancer": shipped("breast_cancer"),
    "digits": shipped("digits"),
    "banknote": banknote,
    "blob 200": groups((200,), 5, 1.0, 0),
    "blob 1000": groups((1000,), 10, 1.0, 0),
    "blob correlated": groups((500,), 10, 1.0, 0, ellipses(10, 5)),
    "separated": corners(75),
    "separated large": corners(500),
    "overlapping": groups((500,) * 4, 5, 1.0, 0),
    "skewed sizes": groups((400, 200, 60, 20, 8), 4, 4.0, 2),
    "unequal scales": groups((150, 150, 150), 4, 6.0, 3, scaled(4)),
    "units": in_units(groups((100, 100, 100), 6, 2.0, 4)),
    "ellipses": groups((200, 200, 200), 6, 1.5, 5, ellipses(6, 6)),
    "noise columns": with_noise_columns(groups((100, 100, 100), 4, 3.0, 6), 20),
    "heavy tails": groups((200, 200, 200), 4, 6.0, 7, heavy(4)),
    "skewed columns": skewed_columns(groups((150, 150), 5, 3.0, 8)),
    "whole numbers": rounded(groups((150, 150, 150), 6, 3.0, 9)),
    "few rows": groups((20, 15, 15), 3, 4.0, 10),
    "few rows, 40 columns": groups((20, 15, 15), 40, 1.5, 11),
    "200 columns": groups((100, 100, 100), 200, 0.6, 12),
    "ten groups": groups((200,) * 10, 8, 3.0, 13, ellipses(8, 14)),
    "far and near": far_and_near,
    "copies of rows": copied_rows,
    "incomes": incomes,
    "small counts": small_counts,
    "gaps: ellipses, 5 % missing": with_gaps(groups((200, 200, 200), 6, 1.5, 5, ellipses(6, 6)), 0.05),
    "gaps: wine, 5 % missing": with_gaps(shipped("wine"), 0.05),
    "gaps: wine, 20 % missing": with_gaps(shipped("wine"), 0.2),
    "50,000 rows": groups((20_000, 15_000, 10_000, 4_000, 1_000), 6, 3.0, 15),
}


class Result(NamedTuple):
    """What a method made of a table."""

    rand: float
    n_groups: int
    held_out: float
    seconds: float
    p_true: float = np.nan


def measured(fit: Callable[[np.ndarray], Any]) -> Callable[[np.ndarray], tuple[Any, float]]:
    """Return the same with the CPU seconds that it took, all threads together."""

    def run(X: np.ndarray) -> tuple[Any, float]:
        start = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = fit(X)
        return model, time.process_time() - start

    return run


def parts(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Nine tenths of the rows, drawn at random, and the others."""
    order = np.random.default_rng(0).permutation(len(X))
    n = len(X) // 10
    return X[order[n:]], X[order[:n]]


def ours(table: Labelled, seed: int, held_out: bool) -> Result:
    """Fit DPMixture()."""
    from sklearn.metrics import adjusted_rand_score

    from permix import DPMixture

    fit = measured(lambda X: DPMixture(random_state=seed, progress=False).fit(X))
    model, seconds = fit(table.X)
    score = np.nan
    if held_out:
        train, test = parts(table.X)
        score = fit(train)[0].score(test)
    n_groups = model.posterior_["posterior"]["n_groups"].to_numpy()
    p_true = float((n_groups == len(np.unique(table.y))).mean())
    rand = adjusted_rand_score(table.y, model.labels_)
    return Result(rand, model.n_clusters_, score, seconds, p_true)


def standardized(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Columns with mean 0 and deviation 1, and the deviations of those that are not constant."""
    deviations = np.where(np.ptp(X, axis=0) > 0, X.std(axis=0), 1.0)
    return (X - X.mean(axis=0)) / deviations, deviations


def variational(table: Labelled, held_out: bool) -> Result:
    """Fit scikit-learn's Bayesian mixture of at most 20 groups."""
    from sklearn.metrics import adjusted_rand_score
    from sklearn.mixture import BayesianGaussianMixture

    X, deviations = standardized(table.X)
    settings = {"n_components": min(20, len(X) // 2), "max_iter": 500, "reg_covar": 1e-4, "random_state": 0}
    fit = measured(lambda X: BayesianGaussianMixture(**settings).fit(X))
    model, seconds = fit(X)
    score = np.nan
    if held_out:
        train, test = parts(X)
        score = fit(train)[0].score(test) - np.log(deviations).sum()
    labels = model.predict(X)
    return Result(adjusted_rand_score(table.y, labels), len(np.unique(labels)), score, seconds)


def density_based(table: Labelled) -> Result:
    """Fit scikit-learn's HDBSCAN."""
    from sklearn.cluster import HDBSCAN
    from sklearn.metrics import adjusted_rand_score

    model, seconds = measured(lambda X: HDBSCAN(copy=True).fit(X))(standardized(table.X)[0])
    found = len(set(model.labels_) - {-1})
    return Result(adjusted_rand_score(table.y, model.labels_), found, np.nan, seconds)


def chosen(words: tuple[str, ...]) -> list[str]:
    """Names of the tables with one of the words."""
    sets = {"labelled": LABELLED, "made": tuple(name for name in TABLES if name not in LABELLED)}
    return [
        name
        for name in TABLES
        if not words or any(word in name or name in sets.get(word, ()) for word in words)
    ]


def run(
    words: tuple[str, ...] = (), n_seeds: int = 1, peers: bool = True, held_out: bool = True
) -> list[dict[str, object]]:
    """Run the panel, and say what is left out."""
    ours(groups((20, 20), 2, 5.0, 0)(), 0, held_out=True)  # compiles
    rows: list[dict[str, object]] = []
    for name in chosen(words):
        try:
            table = TABLES[name]()
        except FileNotFoundError as error:
            print(f"{name} is left out: {error}", file=sys.stderr)
            continue
        for seed in range(n_seeds):
            found = ours(table, seed, held_out)
            row: dict[str, object] = {
                "table": name if n_seeds == 1 else f"{name}, seed {seed}",
                "rows x columns": f"{table.X.shape[0]} x {table.X.shape[1]}",
                "true": len(np.unique(table.y)),
                "groups": found.n_groups,
                "Rand": round(found.rand, 3),
                "P(true)": round(found.p_true, 2),
                "held-out": round(found.held_out, 3),
                "CPU s": round(found.seconds, 1),
            }
            if peers and np.isnan(table.X).any():
                row |= {"BGM": "takes no gaps", "HDBSCAN": "takes no gaps"}
            elif peers:
                for other, peer in (("BGM", variational(table, held_out)), ("HDBSCAN", density_based(table))):
                    about = f"{peer.n_groups}, {peer.rand:.2f}, {peer.held_out:.2f}"
                    row[other] = f"{about}, {peer.seconds:.1f} s"
            rows.append(row)
            print("; ".join(f"{key} {value}" for key, value in row.items()), file=sys.stderr, flush=True)
    return rows


def main() -> None:
    """Print the table, and the mean over the labelled tables where all of them are in it."""
    from permix.cli.output import print_table

    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("words", nargs="*")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--no-held-out", action="store_true")
    given = parser.parse_args()
    rows = run(tuple(given.words), given.seeds, not given.no_peers, not given.no_held_out)
    if not rows:
        sys.exit(f"no table has one of these words in its name; there are {', '.join(TABLES)}")
    print_table("DPMixture() by default", list(rows[0]), [list(row.values()) for row in rows])
    labelled = [float(str(row["Rand"])) for row in rows if str(row["table"]).split(", seed")[0] in LABELLED]
    if labelled:
        print(f"mean adjusted Rand of {len(labelled)} fits to labelled tables: {np.mean(labelled):.3f}")


if __name__ == "__main__":
    main()
