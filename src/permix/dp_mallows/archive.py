"""Archives of :class:`permix.DPMallowsMixture`: written from a fit, and checked before they become one."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from permix.data.labels import Array, Label, clean_items
from permix.data.rankings import Rankings
from permix.dp_mallows.draws import ClusterDraws
from permix.dp_mallows.fit import DPMallowsFit
from permix.dp_mallows.settings import DPMallowsSettings
from permix.dp_mixture.archive import ESTIMATE, STATISTICS, _are_labels, _rebuilt_draws, _under
from permix.estimators.archive_checks import is_whole, require
from permix.files import write_archive
from permix.partitions import Gamma, prior_from_description
from permix.partitions.point_estimate import PointEstimate

KIND = "DPMallowsMixture"
PLAIN = (
    "sampler",
    "prior_strength",
    "discount",
    "assignments",
    "split_merge",
    "permutation",
    "n_initial_clusters",
    "n_draws",
    "n_burn_in",
    "n_thin",
    "n_chains",
    "loss",
    "n_jobs",
    "progress",
)
WHOLE = ("n_draws", "n_burn_in", "n_thin", "n_chains")
CLUSTERS = ("starts", "sizes", "centers", "theta", "labels", "concentration")


def save_dp_mallows(fit: DPMallowsFit, path: str | os.PathLike[str]) -> None:
    """Write a fitted mixture; :func:`permix.load` reads it."""
    settings, draws, data = fit.settings, fit.draws, fit.rankings
    alpha, rate = settings.concentration, np.asarray(settings.prior_rate, dtype=float)
    arrays = {f"draws/{name}": array for name, array in draws.arrays.items()}
    arrays |= {f"statistics/{name}": np.asarray(draws.statistics[name]) for name in STATISTICS}
    arrays |= {f"clusters/{name}": np.asarray(getattr(fit.clusters, name)) for name in CLUSTERS}
    arrays |= {"data/orders": data.orders, "data/counts": data.counts}
    if data._agents is not None:
        # Ids may be numbers and text together; both are kept as text, and which is which.
        ids = data._agents.tolist()
        arrays["data/agents"] = np.array([str(name) for name in ids])
        arrays["data/agents_are_numbers"] = np.array([isinstance(name, int) for name in ids])
    arrays["point_estimate"] = np.asarray(fit.estimate.labels)
    write_archive(
        path,
        {
            "kind": KIND,
            "settings": {name: getattr(settings, name) for name in PLAIN},
            "concentration": alpha.describe() if isinstance(alpha, Gamma) else alpha,
            "prior_rate": rate.tolist(),
            "random_state": settings.random_state if is_whole(settings.random_state) else None,
            "items": list(fit.items),
            "cluster_discount": float(fit.clusters.discount),
            "moves_done": list(draws.statistics["moves"]),
            "seeds": list(draws.seeds),
            "interrupted": draws.interrupted,
            "n_draws_kept": draws.n_draws,
            "point_estimate": {name: getattr(fit.estimate, name) for name in ESTIMATE},
        },
        arrays,
    )


def dp_mallows_from_archive(manifest: dict[str, Any], arrays: dict[str, Array]) -> DPMallowsFit:
    """Check what the file says, piece by piece, and put the fit together.

    Compiled code does not check anything, so nothing may reach it that a fit could not have written.
    """
    settings = _settings(manifest)
    items = _items(manifest["items"])
    rankings = _rankings(items, _under("data/", arrays))
    n = rankings.n_agents
    draws = _rebuilt_draws(manifest, arrays, settings.prior())
    require(draws.arrays["labels"].shape[2] == n, "labels")
    known = {f"draws/{name}" for name in draws.arrays} | {f"statistics/{name}" for name in STATISTICS}
    known |= {f"clusters/{name}" for name in CLUSTERS} | {f"data/{name}" for name in ("orders", "counts")}
    if "data/agents" in arrays:
        known |= {"data/agents", "data/agents_are_numbers"}
    require(set(arrays) == known | {"point_estimate"}, "arrays")
    clusters = _clusters(manifest, _under("clusters/", arrays), rankings)
    require(clusters.discount == settings.discount, "discount")
    labels, estimate = arrays["point_estimate"], manifest["point_estimate"]
    require(_are_labels(labels, (n,), n), "point estimate")
    require(len(np.unique(labels)) == int(labels.max()) + 1, "point estimate")
    require(isinstance(estimate, dict) and set(estimate) == set(ESTIMATE), "point estimate")
    require(estimate["loss"] in ("vi", "binder") and is_whole(estimate["n_runs"]), "point estimate")
    for name in ("expected_loss", "best_draw_loss"):
        require(isinstance(estimate[name], float), "point estimate")
    return DPMallowsFit(
        settings=settings,
        items=items,
        rankings=rankings,
        draws=draws,
        estimate=PointEstimate(
            labels=labels, n_clusters=int(labels.max()) + 1, sizes=np.bincount(labels), **estimate
        ),
        clusters=clusters,
    )


def _settings(manifest: dict[str, Any]) -> DPMallowsSettings:
    asked = manifest["settings"]
    require(isinstance(asked, dict), "settings")
    asked = {"permutation": False, **asked}  # files from before there was the move
    require(set(asked) == set(PLAIN), "settings")
    for name in ("prior_strength", "discount"):
        require(_is_number(asked[name]), name)
    for name in WHOLE:
        require(is_whole(asked[name]) and asked[name] >= 0, name)
    for name in ("split_merge", "permutation"):
        require(isinstance(asked[name], bool), name)
    require(asked["progress"] is None or isinstance(asked["progress"], bool), "progress")
    for value in (asked["n_jobs"], asked["n_initial_clusters"]):
        require(value is None or is_whole(value), "settings")
    for name in ("sampler", "assignments", "loss"):
        require(isinstance(asked[name], str), name)
    seed = manifest["random_state"]
    require(seed is None or (is_whole(seed) and seed >= 0), "random_state")
    alpha = manifest["concentration"]
    if not _is_number(alpha):
        alpha = prior_from_description(alpha)
        require(isinstance(alpha, Gamma), "concentration")
    rate = manifest["prior_rate"]
    require(_is_number(rate) or (isinstance(rate, list) and all(map(_is_number, rate))), "prior_rate")
    return DPMallowsSettings(concentration=alpha, prior_rate=rate, random_state=seed, **asked)


def _items(names: Any) -> tuple[Label, ...]:
    require(isinstance(names, list) and len(names) > 1, "items")
    items = clean_items(names)
    # Floats and the like would be tidied to names that no fit writes.
    require(all(type(name) is type(item) for name, item in zip(names, items, strict=True)), "items")
    return items


def _rankings(items: tuple[Label, ...], data: dict[str, Array]) -> Rankings:
    """Rebuild the lists, which must be as constructors of Rankings leave them."""
    orders, counts = data["orders"], data["counts"]
    require(orders.dtype == np.int32 and orders.ndim == 2 and orders.shape[0] > 0, "lists")
    require(1 <= orders.shape[1] <= len(items), "lists")
    listed = orders >= 0
    require(bool(np.all((orders >= -1) & (orders < len(items)))), "item numbers")
    require(bool(np.all(listed[:, 0])) and not np.any(listed[:, 1:] & ~listed[:, :-1]), "lists")
    require(bool(listed[:, -1].any()), "lists")
    ascending = np.sort(orders, axis=1)
    require(not np.any((ascending[:, 1:] == ascending[:, :-1]) & (ascending[:, 1:] >= 0)), "lists")
    require(
        counts.dtype == np.int64 and counts.shape == (len(orders),) and bool(np.all(counts > 0)), "counts"
    )
    # As floats they cannot overflow while they are summed.
    require(float(counts.astype(np.float64).sum()) < 2.0**48, "counts")
    return Rankings._from_arrays(orders, items, counts, _agents(data, len(orders)))


def _agents(data: dict[str, Array], n: int) -> Array | None:
    if "agents" not in data:
        return None
    names, numbers = data["agents"], data["agents_are_numbers"]
    require(names.dtype.kind == "U" and names.shape == (n,), "agents")
    require(numbers.dtype == np.bool_ and numbers.shape == (n,), "agents")
    ids = np.empty(n, dtype=object)
    for row, (name, number) in enumerate(zip(names.tolist(), numbers.tolist(), strict=True)):
        ids[row] = int(name) if number else name
        require(str(ids[row]) == name, "agents")
    return ids


def _clusters(manifest: dict[str, Any], found: dict[str, Array], rankings: Rankings) -> ClusterDraws:
    """Rebuild centers and decays of the draws."""
    starts, sizes, labels = found["starts"], found["sizes"], found["labels"]
    centers, theta, alpha = found["centers"], found["theta"], found["concentration"]
    n, n_items, discount = rankings.n_agents, rankings.n_items, manifest["cluster_discount"]
    require(
        labels.dtype == np.int32 and labels.ndim == 2 and labels.shape[1] == n and len(labels) > 0, "labels"
    )
    n_draws = len(labels)
    require(starts.dtype == np.int64 and starts.shape == (n_draws + 1,) and starts[0] == 0, "clusters")
    numbers = np.diff(starts)
    require(bool(np.all((numbers > 0) & (numbers <= n))), "clusters")
    rows = int(starts[-1])
    require(sizes.dtype == np.int64 and sizes.shape == (rows,), "cluster sizes")
    for d in range(n_draws):
        require(_are_labels(labels[d], (n,), int(numbers[d])), "labels")
        counted = np.bincount(labels[d], minlength=int(numbers[d]))
        require(
            np.array_equal(counted, sizes[starts[d] : starts[d + 1]]) and bool(counted.min() > 0), "sizes"
        )
    require(centers.dtype == np.int32 and centers.shape == (rows, n_items), "centers")
    require(
        np.array_equal(np.sort(centers, axis=1), np.broadcast_to(np.arange(n_items), centers.shape)),
        "centers",
    )
    n_stages = min(int(rankings.lengths.max()), n_items - 1)
    require(theta.dtype == np.float64 and theta.shape == (rows, n_stages), "decays")
    require(bool(np.all((theta >= 0.0) & np.isfinite(theta))), "decays")
    require(
        alpha.dtype == np.float64 and alpha.shape == (n_draws,) and bool(np.all(np.isfinite(alpha))), "alpha"
    )
    require(_is_number(discount) and 0.0 <= discount < 1.0, "discount")
    require(bool(np.all(alpha + discount * numbers > 0.0)), "concentration")
    return ClusterDraws(starts, sizes, centers, theta, labels, alpha, float(discount))


def _is_number(value: Any) -> bool:
    return isinstance(value, float | int) and not isinstance(value, bool)
