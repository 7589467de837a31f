"""DPMixture against other Dirichlet-process packages: seconds, adjusted Rand index, held-out log density.

10,000 points from equally likely clusters of unit noise with means from N(0, 2) in each dimension. Every
package gets the same data, one after another, and the number of clusters is not told. permix starts from
one cluster.

Columns: seconds to fit; adjusted Rand index of the training data against the clusters that made them
("best": of the classification by the true parameters); nats per held-out point below the true density.

``python -m benchmarks.dp_mixture --features 10 --clusters 20 --python bnpy=PATH``; ``--help`` lists more.
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

from benchmarks.peers.dp_packages import PACKAGES
from benchmarks.reproduce.liang_data import Clusters, gaussian_clusters, log_joint_of_truth
from benchmarks.timing import timed

N = 10_000
FEATURES = (10, 40, 80)
CLUSTERS = (20, 40, 80, 160)
# Packages other than scikit-learn are tried on this one.
ONE_CASE = (40, 40)
LONGEST = 300.0  # seconds for a package
# scikit-learn's truncation: more components than clusters, as its documentation asks.
N_COMPONENTS = {20: 100, 40: 100, 80: 100, 160: 200}
# Burn-in and draws: clusters that overlap, as in 10 dimensions, take more of both.
LENGTHS = {10: (40, 15)}
USUAL_LENGTH = (14, 5)
SETTINGS: dict[str, Any] = {
    "init": "one-group",
    "n_chains": 2,
    "random_state": 0,
    "progress": False,
}


class Scorer:
    """Compares what a package found with what made the data."""

    def __init__(self, made: Clusters) -> None:
        self.made = made
        self.true_density = float(
            np.logaddexp.reduce(log_joint_of_truth(made.held_out, made.means), axis=1).mean()
        )
        self.best = self.rand(log_joint_of_truth(made.data, made.means).argmax(axis=1))

    def rand(self, labels: Sequence[int] | np.ndarray) -> float:
        """Adjusted Rand index of the training data."""
        from sklearn.metrics import adjusted_rand_score

        return float(adjusted_rand_score(self.made.labels, labels))

    def found(
        self, seconds: float, labels: Sequence[int] | np.ndarray, log_density: float | None, note: str
    ) -> dict[str, Any]:
        """One package's numbers."""
        return {
            "seconds": seconds,
            "rand": self.rand(labels),
            "loss": np.nan if log_density is None else self.true_density - log_density,
            "groups": len(np.unique(labels)),
            "note": note,
        }


def fit_permix(scorer: Scorer, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Fit permix; the clusters' noise is known, as in the model that made the data."""
    import permix

    model = permix.DPMixture(permix.Gaussian(noise_scale=1.0), **settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # short chains may disagree on details, and say so
        seconds, _ = timed(model.fit, scorer.made.data)
    # What the peers' labels are: the most probable cluster of each point.
    labels = model.predict(scorer.made.data)
    return scorer.found(seconds, labels, model.score(scorer.made.held_out), "")


def fit_package(scorer: Scorer, name: str, python: str, n_components: int) -> dict[str, Any] | str:
    """Fit another package in a process of its own; returns why not where it could not."""
    file = Path(__file__).parent / "peers" / "dp_packages.py"
    importable = subprocess.run([python, "-c", f"import {name}"], capture_output=True, check=False)
    if importable.returncode != 0:
        return "cannot be imported here, left out"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.npz"
        np.savez(
            path,
            data=scorer.made.data,
            held_out=scorer.made.held_out,
            n_components=n_components,
            seed=0,
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
    return scorer.found(**answer)


def compare(
    n: int,
    n_features: int,
    n_clusters: int,
    peers: Sequence[str] = ("sklearn",),
    pythons: Mapping[str, str] | None = None,
    settings: Mapping[str, Any] = SETTINGS,
    seed: int = 0,
) -> list[dict[str, object]]:
    """Fit permix and its peers to one data set; one row for each peer."""
    scorer = Scorer(gaussian_clusters(n, n_features, n_clusters, seed=seed, n_held_out=n))
    n_burn_in, n_draws = LENGTHS.get(n_features, USUAL_LENGTH)
    settings = {"n_burn_in": n_burn_in, "n_draws": n_draws, **settings}
    what = f"{n:,} × {n_features}, {n_clusters} groups"
    ours = fit_permix(scorer, settings)
    rows: list[dict[str, object]] = []
    for name in peers:
        theirs = fit_package(
            scorer, name, (pythons or {}).get(name, sys.executable), N_COMPONENTS.get(n_clusters, 100)
        )
        if isinstance(theirs, str):
            print(f"{what}: {name} {theirs}")
            continue
        rows.append(
            {
                "what": what,
                "peer": name,
                "ours": ours["seconds"],
                "reference": theirs["seconds"],
                "ratio": theirs["seconds"] / ours["seconds"],
                "rand": f"{ours['rand']:.3f} / {theirs['rand']:.3f} (best {scorer.best:.3f})",
                "held-out loss": f"{ours['loss']:.3f} / {theirs['loss']:.3f}",
                "groups": f"{ours['groups']} / {theirs['groups']}",
                "note": f"times faster; ours / theirs. {theirs['note']}",
            }
        )
    return rows


def run(
    features: Sequence[int] = FEATURES,
    clusters: Sequence[int] = CLUSTERS,
    peers: Sequence[str] = tuple(PACKAGES),
    pythons: Mapping[str, str] | None = None,
    settings: Mapping[str, Any] = SETTINGS,
    seed: int = 0,
) -> list[dict[str, object]]:
    """Compare on every data set with scikit-learn, and on one with all the others."""
    fit_permix(
        Scorer(gaussian_clusters(300, 3, 3, 0, n_held_out=10)), {**settings, "n_burn_in": 10, "n_draws": 4}
    )  # compile
    rows = []
    for n_features in features:
        for n_clusters in clusters:
            all_peers = (n_features, n_clusters) == ONE_CASE
            chosen = [name for name in peers if name == "sklearn" or all_peers]
            rows += compare(N, n_features, n_clusters, chosen, pythons, settings, seed)
    return rows


def main() -> None:
    """Read options and print rows."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--features", type=int, nargs="+", default=FEATURES)
    parser.add_argument("--clusters", type=int, nargs="+", default=CLUSTERS)
    parser.add_argument("--peers", nargs="+", default=tuple(PACKAGES), choices=tuple(PACKAGES))
    parser.add_argument(
        "--python", nargs="+", default=[], metavar="NAME=PATH", help="interpreter that has the package"
    )
    parser.add_argument("--n-burn-in", type=int, help="default: 40 in 10 dimensions, 14 in more")
    parser.add_argument("--n-draws", type=int, help="default: 15 in 10 dimensions, 5 in more")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    pythons = dict(entry.split("=", 1) for entry in options.python)
    lengths = {"n_burn_in": options.n_burn_in, "n_draws": options.n_draws}
    settings = {**SETTINGS, **{name: value for name, value in lengths.items() if value is not None}}
    for row in run(options.features, options.clusters, options.peers, pythons, settings, options.seed):
        print(row)


if __name__ == "__main__":
    main()
