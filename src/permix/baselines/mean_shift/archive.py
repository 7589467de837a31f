"""What an archive of :class:`permix.BlurringMeanShift` holds: centers and labels, not the data."""

from __future__ import annotations

from typing import Any

import numpy as np

from permix.baselines.mean_shift.fit import MeanShiftFit
from permix.baselines.mean_shift.parameters import MeanShiftParameters
from permix.data.labels import Array
from permix.data.rankings import Rankings
from permix.estimators.archive import Content, Saved, Schema
from permix.estimators.archive_parts import ITEMS, LOG_LIKELIHOOD, log_likelihood_of, log_likelihood_pair
from permix.estimators.checks import Real, Switch
from permix.estimators.fields import below, counts, field, require


def _pack(fit: MeanShiftFit) -> Content:
    ending = {"converged": bool(fit.converged), "interrupted": bool(fit.interrupted)}
    return Content(
        {"items": fit.items, "decay": float(fit.decay), **ending},
        {
            "centers": np.asarray(fit.centers.orders, dtype=np.int32),
            "cluster_sizes": np.asarray(fit.centers.counts, dtype=np.int64),
            "row_labels": np.asarray(fit.row_labels, dtype=np.int64),
            "row_counts": np.asarray(fit.row_counts, dtype=np.int64),
            "decays": fit.decays,
            "log_likelihood": log_likelihood_pair(fit.log_likelihood),
        },
    )


def _build(saved: Saved) -> MeanShiftFit:
    settings, facts, arrays, sizes = saved[:4]
    items, decays = facts["items"], arrays["decays"]
    require(len(items) > 1, "items")
    require(sizes["iterations"] <= settings.max_iter and bool(np.all(decays > 0)), "decays")
    require(settings.decay is None or bool(np.all(decays == settings.decay)), "decays")
    _check_centers(arrays["centers"], len(items))
    _check_sizes(arrays)
    pieces: dict[str, Any] = arrays | facts
    names = ("row_labels", "row_counts", "decays", "decay", "converged", "interrupted")
    return MeanShiftFit(
        settings=settings,
        centers=Rankings._from_arrays(arrays["centers"], items, counts=arrays["cluster_sizes"]),
        log_likelihood=log_likelihood_of(arrays["log_likelihood"], may_be_unknown=facts["interrupted"]),
        **{name: pieces[name] for name in names},
    )


def _check_centers(centers: Array, n_items: int) -> None:
    require(bool(np.all((centers >= -1) & (centers < n_items))), "item numbers")
    listed = centers >= 0
    require(bool(np.all(listed[:, 0])), "lengths of centers")
    require(bool(np.all(listed[:, :-1] >= listed[:, 1:])), "padding")
    row = np.nonzero(listed)[0]
    require(len(np.unique(row * n_items + centers[listed])) == len(row), "items of centers")
    require(len(np.unique(centers, axis=0)) == len(centers), "centers")


def _check_sizes(arrays: dict[str, Array]) -> None:
    sizes = arrays["cluster_sizes"]
    totals = np.zeros(len(sizes), dtype=np.int64)
    np.add.at(totals, arrays["row_labels"], arrays["row_counts"])
    require(bool(np.all(totals == sizes) and np.all(np.diff(sizes) <= 0)), "group sizes")


SCHEMA = Schema(
    parameters=MeanShiftParameters,
    pack=_pack,
    build=_build,
    facts={"items": ITEMS, "decay": Real(above=0.0), "converged": Switch(), "interrupted": Switch()},
    arrays={
        "centers": field("int32", "groups", "places"),
        "cluster_sizes": field("int64", "groups", where=counts),
        "row_labels": field("int64", "rows", where=below("groups")),
        "row_counts": field("int64", "rows", where=counts),
        "decays": field("real", "iterations"),
        "log_likelihood": LOG_LIKELIHOOD,
    },
)
