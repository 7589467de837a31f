"""Dirichlet-process packages, one function each: ``python benchmarks/peers/dp_packages.py NAME DATA.npz``.

This file imports nothing but NumPy and the package asked for: their requirements contradict each other, so
that each may need an environment of its own. Prints one line of JSON: seconds, labels, log density per
held-out point (where the package can tell), and a note.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import numpy as np


def sklearn(X: np.ndarray, held_out: np.ndarray, n_components: int, seed: int) -> dict[str, Any]:
    """Truncated variational Dirichlet process of scikit-learn, all defaults but the covariance."""
    import warnings

    from sklearn.mixture import BayesianGaussianMixture

    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # after 100 iterations it says that it has not converged
        model = BayesianGaussianMixture(
            n_components=n_components, covariance_type="spherical", random_state=seed
        ).fit(X)
    seconds = time.perf_counter() - start
    return {
        "seconds": seconds,
        "labels": model.predict(X),
        "log_density": float(model.score(held_out)),
        "note": f"{model.n_iter_} iterations{'' if model.converged_ else ', not converged'}",
    }


def bnpy(X: np.ndarray, held_out: np.ndarray, n_components: int, seed: int) -> dict[str, Any]:
    """Memoized variational inference with birth and merge moves, from one cluster."""
    import tempfile

    import bnpy as package

    data = package.data.XData(X)
    start = time.perf_counter()
    model, info = package.run(
        data,
        "DPMixtureModel",
        "DiagGauss",
        "memoVB",
        K=1,
        nLap=50,
        nTask=1,
        nBatch=1,
        moves="birth,merge,shuffle",
        m_startLap=5,
        b_startLap=2,
        b_Kfresh=10,
        printEvery=0,
        taskID=1,
        dataorderseed=seed,
        output_path=tempfile.mkdtemp(),
    )
    seconds = time.perf_counter() - start
    local = model.calc_local_params(data)
    return {
        "seconds": seconds,
        "labels": local["resp"].argmax(axis=1),
        "log_density": _bnpy_density(model, held_out),
        "note": f"{info['lap_history'][-1]:.0f} laps",
    }


def _bnpy_density(model: Any, held_out: np.ndarray) -> float:
    """Mean log density under the posterior means of weights, centers and variances."""
    weights = model.allocModel.get_active_comp_probs()
    scores = np.empty((len(held_out), len(weights)))
    for k, weight in enumerate(weights):
        variances = np.diag(model.obsModel.get_covar_mat_for_comp(k))
        squared = (held_out - model.obsModel.get_mean_for_comp(k)) ** 2 / variances
        scores[:, k] = np.log(weight) - 0.5 * (squared + np.log(2 * np.pi * variances)).sum(axis=1)
    return float(np.logaddexp.reduce(scores, axis=1).mean())


def lace(X: np.ndarray, held_out: np.ndarray, n_components: int, seed: int) -> dict[str, Any]:
    """One state of one view (no clustering of columns), 1000 iterations."""
    import lace as package
    import polars

    columns = {"ID": [f"row {row}" for row in range(len(X))]}
    columns |= {f"x{column}": X[:, column] for column in range(X.shape[1])}
    start = time.perf_counter()
    engine = package.Engine.from_df(polars.DataFrame(columns), n_states=1, rng_seed=seed, flat_columns=True)
    engine.update(1000, transitions="flat", quiet=True)
    seconds = time.perf_counter() - start
    given = {f"x{column}": held_out[:, column] for column in range(X.shape[1])}
    density = engine.logp(polars.DataFrame(given))
    return {
        "seconds": seconds,
        "labels": np.array(engine.row_assignments(0)[0]),
        "log_density": float(np.mean(np.asarray(density))),
        "note": "1000 iterations",
    }


def dpmmlearn(X: np.ndarray, held_out: np.ndarray, n_components: int, seed: int) -> dict[str, Any]:
    """Gibbs sampling with full covariances (the one family for more than two dimensions), one sweep."""
    from dpmmlearn import DPMM
    from dpmmlearn.probability import NormInvWish

    d = X.shape[1]
    prior = NormInvWish(mu_0=np.zeros(d), kappa_0=0.01, Lam_0=np.eye(d), nu_0=d + 2)
    start = time.perf_counter()
    model = DPMM(prior, alpha=1.0, max_iter=1, max_n_labels=n_components, verbose=False, random_state=seed)
    model.fit(X)
    seconds = time.perf_counter() - start
    return {"seconds": seconds, "labels": model.labels_, "log_density": None, "note": "one sweep"}


def dpgmm(X: np.ndarray, held_out: np.ndarray, n_components: int, seed: int) -> dict[str, Any]:
    """Collapsed Gibbs sampling with diagonal covariances, five sweeps from random clusters."""
    import random

    import torch
    from dpgmm.samplers import DiagCovarianceCollapsedGibbsSampler

    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002
    torch.manual_seed(seed)
    start = time.perf_counter()
    sampler = DiagCovarianceCollapsedGibbsSampler(
        init_strategy="init_data_stats", max_clusters_num=n_components, batch_size=1, verbose=False
    )
    result = sampler.fit(iterations_num=5, data=torch.as_tensor(X))
    seconds = time.perf_counter() - start
    labels = np.empty(len(X), dtype=np.int64)
    for cluster, members in enumerate(result["cluster_assignment"]):
        labels[list(members)] = cluster
    return {"seconds": seconds, "labels": labels, "log_density": None, "note": "5 sweeps"}


PACKAGES = {function.__name__: function for function in (sklearn, bnpy, lace, dpmmlearn, dpgmm)}


def main(name: str, path: str) -> None:
    """Fit one package and print what it found."""
    with np.load(path) as stored:
        X, held_out = stored["data"], stored["held_out"]
        n_components, seed = int(stored["n_components"]), int(stored["seed"])
    found = PACKAGES[name](X, held_out, n_components, seed)
    found["labels"] = np.asarray(found["labels"]).tolist()
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
