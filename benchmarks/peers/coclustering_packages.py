"""Co-clustering packages: ``python benchmarks/peers/coclustering_packages.py NAME DATA.npz``.

This file imports nothing but NumPy and the package asked for: their requirements contradict each other, so
that each may need an environment of its own. Data: ``full``, levels 0, 1, ... in every cell; ``held_out``,
True where a package that can do without a cell must; ``n_row_clusters`` and ``n_column_clusters``, the true
numbers, for packages that must be told. Prints one line of JSON: seconds, labels of rows and columns, log
predictive of every held-out cell (packages that can tell), and a note.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import numpy as np


def spectral_biclustering(full: np.ndarray, n_rows: int, n_columns: int, seed: int) -> dict[str, Any]:
    """scikit-learn's checkerboard, told both numbers."""
    from sklearn.cluster import SpectralBiclustering

    start = time.perf_counter()
    model = SpectralBiclustering(n_clusters=(n_rows, n_columns), random_state=seed).fit(full + 1.0)
    return {
        "seconds": time.perf_counter() - start,
        "row_labels": model.row_labels_,
        "column_labels": model.column_labels_,
        "note": "scikit-learn, told both numbers, no cell missing",
    }


def spectral_coclustering(full: np.ndarray, n_rows: int, n_columns: int, seed: int) -> dict[str, Any]:
    """scikit-learn's block diagonal, which has as many clusters of columns as of rows."""
    from sklearn.cluster import SpectralCoclustering

    start = time.perf_counter()
    model = SpectralCoclustering(n_clusters=n_rows, random_state=seed).fit(full + 1.0)
    return {
        "seconds": time.perf_counter() - start,
        "row_labels": model.row_labels_,
        "column_labels": model.column_labels_,
        "note": "scikit-learn, told the number of row groups, no cell missing",
    }


def coclust(full: np.ndarray, n_rows: int, n_columns: int, seed: int) -> dict[str, Any]:
    """Information-theoretic co-clustering, ten starts."""
    from coclust.coclustering import CoclustInfo

    start = time.perf_counter()
    model = CoclustInfo(n_row_clusters=n_rows, n_col_clusters=n_columns, n_init=10, random_state=seed)
    model.fit(full + 1.0)
    return {
        "seconds": time.perf_counter() - start,
        "row_labels": model.row_labels_,
        "column_labels": model.column_labels_,
        "note": "information-theoretic, ten starts, told both numbers, no cell missing",
    }


def lace(
    full: np.ndarray, held_out: np.ndarray, seed: int, n_states: int = 8, n_iters: int = 500
) -> dict[str, Any]:
    """Cross-categorisation (pylace): columns in views, each view with clusters of rows of its own."""
    import polars as pl
    from lace import Engine

    names = [f"c{column}" for column in range(full.shape[1])]
    table: dict[str, list[str | None]] = {"ID": [f"r{row}" for row in range(len(full))]}
    for column, name in enumerate(names):
        table[name] = [
            None if missing else str(level)
            for level, missing in zip(full[:, column], held_out[:, column], strict=True)
        ]
    frame = pl.DataFrame(table)
    start = time.perf_counter()
    engine = Engine.from_df(frame, n_states=n_states, rng_seed=seed)
    engine.update(n_iters, quiet=True)
    seconds = time.perf_counter() - start
    views = np.array(engine.column_assignment(0))
    largest = int(np.bincount(views).argmax())
    scores = np.full(full.shape, np.nan)
    for column, name in enumerate(names):
        rows = np.flatnonzero(held_out[:, column])
        if rows.size:
            found = engine.surprisal(
                name, rows=[f"r{row}" for row in rows], values=[str(level) for level in full[rows, column]]
            )
            scores[rows, column] = -found["surprisal"].to_numpy()
    return {
        "seconds": seconds,
        "row_labels": np.array(engine.row_assignments(0)[largest]),
        "column_labels": views,
        "log_predictive": scores[held_out],
        "note": f"{n_states} states of {n_iters} iterations; rows by the largest of {views.max() + 1} views",
    }


TOLD = {
    "sklearn.SpectralBiclustering": spectral_biclustering,
    "sklearn.SpectralCoclustering": spectral_coclustering,
    "coclust": coclust,
}
PACKAGES = (*TOLD, "lace")


def main() -> None:
    """Fit one package."""
    name, path = sys.argv[1], sys.argv[2]
    with np.load(path) as data:
        full, held_out = data["full"], data["held_out"]
        seed = int(data["seed"])
        if name == "lace":
            found = lace(full, held_out, seed)
        else:
            found = TOLD[name](full, int(data["n_row_clusters"]), int(data["n_column_clusters"]), seed)
    plain = {key: value.tolist() if isinstance(value, np.ndarray) else value for key, value in found.items()}
    print(json.dumps(plain))


if __name__ == "__main__":
    main()
