"""Co-clustering against other packages: seconds, adjusted Rand indices, held-out perplexity.

A planted 1000 × 100 matrix of five levels in 8 × 5 blocks, levels of a block from Dirichlet(0.3). permix is
told neither number of clusters and misses 25% of the cells. Spectral methods and coclust are told
the true numbers and see every cell, since they cannot do without; pylace misses the same cells as permix.

Columns: seconds to fit; adjusted Rand indices of rows and columns; perplexity of the missing cells. For
packages without probabilities that is the perplexity under histograms of the other cells in their blocks,
although their blocks were found with the missing cells in sight. The perplexity under the true parameters is
in the note of permix.

``python -m benchmarks.coclustering --python lace=PATH``; ``--help`` lists more.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.peers.coclustering_packages import PACKAGES
from benchmarks.timing import timed

SHAPE, CLUSTERS, N_LEVELS = (1000, 100), (8, 5), 5
MISSING = 0.25
LONGEST = 300.0  # seconds for a package
SETTINGS: dict[str, Any] = {"n_burn_in": 30, "n_draws": 30, "n_chains": 2, "progress": False}


class Scorer:
    """The planted matrix, and what is asked of a package."""

    def __init__(self, shape: tuple[int, int] = SHAPE, seed: int = 0) -> None:
        from permix.datasets import make_grid_coclusters

        self.made = make_grid_coclusters(*shape, *CLUSTERS, n_categories=N_LEVELS, random_state=seed)
        self.full = self.made.data
        self.held_out = np.random.default_rng(seed).random(shape) < MISSING
        self.seed = seed
        blocks = self.made.parameters[self.made.row_labels][:, self.made.column_labels]
        chosen = np.take_along_axis(blocks, self.full[..., None], axis=2)[..., 0]
        self.best = float(np.exp(-np.log(chosen[self.held_out]).mean()))

    def train(self) -> np.ndarray:
        """Return the matrix with NaN where cells are missing."""
        return np.where(self.held_out, np.nan, self.full)

    def test(self) -> np.ndarray:
        """Return the missing cells alone."""
        return np.where(self.held_out, self.full, np.nan)

    def found(
        self, seconds: float, row_labels: Any, column_labels: Any, perplexity: float | None, note: str
    ) -> dict[str, Any]:
        """One package's numbers."""
        from sklearn.metrics import adjusted_rand_score

        if perplexity is None:
            perplexity = self.by_histograms(np.asarray(row_labels), np.asarray(column_labels))
        return {
            "seconds": seconds,
            "rand": (
                float(adjusted_rand_score(self.made.row_labels, row_labels)),
                float(adjusted_rand_score(self.made.column_labels, column_labels)),
            ),
            "perplexity": perplexity,
            "note": note,
        }

    def by_histograms(self, row_labels: np.ndarray, column_labels: np.ndarray) -> float:
        """Perplexity of the missing cells under histograms of the others, one more cell at each level."""
        block = row_labels[:, None] * (column_labels.max() + 1) + column_labels
        counts = np.ones((block.max() + 1, N_LEVELS))
        np.add.at(counts, (block[~self.held_out], self.full[~self.held_out]), 1)
        share = counts / counts.sum(axis=1, keepdims=True)
        return float(np.exp(-np.log(share[block[self.held_out], self.full[self.held_out]]).mean()))


def fit_permix(scorer: Scorer, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Fit permix, which finds the numbers of clusters."""
    from permix.cocluster.estimator import CoClustering

    model = CoClustering(random_state=scorer.seed, **settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # two chains in one mode: nothing varies, and that is said
        seconds, _ = timed(model.fit, scorer.train())
    perplexity = float(model.perplexity(scorer.test()))
    return scorer.found(
        seconds,
        model.row_labels_,
        model.column_labels_,
        perplexity,
        f"{model.n_row_clusters_} × {model.n_column_clusters_} groups, not told, {MISSING:.0%} of cells "
        f"missing; perplexity under the true parameters {scorer.best:.3f}",
    )


def fit_package(scorer: Scorer, name: str, python: str) -> dict[str, Any] | str:
    """Fit another package in a process of its own; returns why not where it could not."""
    file = Path(__file__).parent / "peers" / "coclustering_packages.py"
    module = name.split(".")[0]
    importable = subprocess.run([python, "-c", f"import {module}"], capture_output=True, check=False)
    if importable.returncode != 0:
        return "cannot be imported here, left out"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.npz"
        np.savez(
            path,
            full=scorer.full,
            held_out=scorer.held_out,
            n_row_clusters=CLUSTERS[0],
            n_column_clusters=CLUSTERS[1],
            seed=scorer.seed,
        )
        try:
            done = subprocess.run(
                [python, str(file), name, str(path)],
                capture_output=True,
                text=True,
                timeout=LONGEST,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"not done after {LONGEST:.0f} s"
    if done.returncode != 0:
        return f"failed: {done.stderr.strip().splitlines()[-1]}"
    answer = json.loads(done.stdout.strip().splitlines()[-1])
    scores = answer.pop("log_predictive", None)
    return scorer.found(**answer, perplexity=None if scores is None else float(np.exp(-np.mean(scores))))


def compare(
    scorer: Scorer,
    peers: Sequence[str],
    pythons: Mapping[str, str] | None = None,
    settings: Mapping[str, Any] = SETTINGS,
) -> list[dict[str, Any]]:
    """Fit permix and its peers to one matrix; one row each."""
    what = f"{scorer.full.shape[0]} × {scorer.full.shape[1]} planted, seed {scorer.seed}"
    ours = fit_permix(scorer, settings)
    found: dict[str, dict[str, Any]] = {"permix": ours}
    for name in peers:
        theirs = fit_package(scorer, name, (pythons or {}).get(name, sys.executable))
        if isinstance(theirs, str):
            print(f"{what}: {name} {theirs}")
        else:
            found[name] = theirs
    return [
        {
            "what": what,
            "package": name,
            "ours": ours["seconds"],
            "reference": entry["seconds"],
            "ratio": entry["seconds"] / ours["seconds"],
            "row / column rand": f"{entry['rand'][0]:.3f} / {entry['rand'][1]:.3f}",
            "perplexity": entry["perplexity"],
            "note": entry["note"],
        }
        for name, entry in found.items()
    ]


def run(
    peers: Sequence[str] = PACKAGES,
    pythons: Mapping[str, str] | None = None,
    settings: Mapping[str, Any] = SETTINGS,
    seeds: Sequence[int] = (0, 1, 2),
) -> list[dict[str, Any]]:
    """Compare on matrices of several seeds."""
    fit_permix(Scorer((60, 40)), settings)  # compile
    return [row for seed in seeds for row in compare(Scorer(seed=seed), peers, pythons, settings)]


def main() -> None:
    """Read options and print rows."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--peers", nargs="*", default=PACKAGES, choices=PACKAGES)
    parser.add_argument(
        "--python", nargs="+", default=[], metavar="NAME=PATH", help="interpreter that has the package"
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=(0, 1, 2))
    parser.add_argument("--n-burn-in", type=int, default=SETTINGS["n_burn_in"])
    parser.add_argument("--n-draws", type=int, default=SETTINGS["n_draws"])
    options = parser.parse_args()
    pythons = dict(entry.split("=", 1) for entry in options.python)
    settings = {**SETTINGS, "n_burn_in": options.n_burn_in, "n_draws": options.n_draws}
    for row in run(options.peers, pythons, settings, options.seeds):
        print(row)


if __name__ == "__main__":
    main()
