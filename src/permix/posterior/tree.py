"""Draws as an xarray DataTree in ArviZ's schema."""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from permix.sampling.draws import Draws

if TYPE_CHECKING:
    import xarray as xr

# Names of the axes that follow chain and draw, where the caller does not say otherwise.
DIMS = {
    "labels": ["observation"],
    "missing_cells": ["missing_cell"],
    "row_labels": ["row"],
    "column_labels": ["column"],
    "prior_rate": ["place"],
    **{name: ["column"] for name in ("scale", "noise_scale", "within_share", "shape")},
}


def to_datatree(
    draws: Draws,
    *,
    coords: Mapping[str, Any] | None = None,
    dims: Mapping[str, Sequence[str]] | None = None,
    attrs: Mapping[str, Any] | None = None,
    observed: Mapping[str, Any] | None = None,
) -> xr.DataTree:
    """Turn draws into a DataTree that ArviZ understands.

    ``coords`` are names along dimensions, for example ``{"observation": agents}``; ``dims`` names of the
    axes of a quantity after chain and draw; ``attrs`` settings worth keeping, numbers and strings;
    ``observed`` data for the group ``observed_data``. The other groups are ``posterior`` (every quantity
    over chain and draw) and ``sample_stats`` (``proposed``, ``accepted`` and ``acceptance_rate`` over chain
    and move). The same draws give the same tree: there is no time stamp.
    """
    import xarray as xr
    from arviz_base import dict_to_dataset

    from permix import __version__

    about = {
        "inference_library": "permix",
        "inference_library_version": __version__,
        "interrupted": int(draws.interrupted),
        # Text, since entropy may have more digits than the integers of common file formats.
        "seeds": json.dumps(draws.seeds),
        **(attrs or {}),
    }
    named: dict[Hashable, Any] = {name: list(value) for name, value in {**DIMS, **(dims or {})}.items()}
    chosen = dict(coords or {})
    # ArviZ would warn where there are more chains than draws, which is no mistake here.
    dataset = partial(dict_to_dataset, coords=chosen, dims=named, attrs=about, check_conventions=False)
    groups = {"posterior": dataset(draws.arrays, sample_dims=["chain", "draw"])}
    if draws.statistics.get("moves"):
        groups["sample_stats"] = _move_statistics(draws, about)
    if observed:
        arrays = {name: np.asarray(value) for name, value in observed.items()}
        groups["observed_data"] = dataset(arrays, sample_dims=[])
    for group in groups.values():
        group.attrs.pop("created_at", None)
    return xr.DataTree.from_dict(groups)


def _move_statistics(draws: Draws, attrs: Mapping[str, Any]) -> xr.Dataset:
    import xarray as xr

    proposed, accepted = (np.asarray(draws.statistics[name]) for name in ("proposed", "accepted"))
    # A move that never proposed anything has no rate.
    rate = np.divide(accepted, proposed, out=np.full(proposed.shape, np.nan), where=proposed > 0)
    axes = ("chain", "move")
    return xr.Dataset(
        {"proposed": (axes, proposed), "accepted": (axes, accepted), "acceptance_rate": (axes, rate)},
        coords={"chain": np.arange(len(proposed)), "move": np.array(draws.statistics["moves"], dtype=str)},
        attrs=dict(attrs),
    )
