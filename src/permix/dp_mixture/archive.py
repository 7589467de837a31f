"""What an archive of :class:`permix.DPMixture` holds: the draws, the data, and what was fitted."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import numpy as np

from permix.dp_mixture.choose_family import default_like
from permix.dp_mixture.fit import MixtureFit
from permix.dp_mixture.parameters import DPMixtureParameters, as_family, as_prior
from permix.errors import DataError
from permix.estimators import fields
from permix.estimators.archive import Content, Saved, Schema
from permix.estimators.archive_parts import (
    PARTITION_FACTS,
    PARTITION_FIELDS,
    SAMPLED_FROM,
    pack_partitions,
    pack_sampled_from,
    partitions_of,
    under,
)
from permix.estimators.checks import Made
from permix.estimators.fields import field, require
from permix.families import Family, family_from_description
from permix.families.learning import learned_in, with_means
from permix.moves.start import check_start
from permix.moves.state import learned_concentration
from permix.partitions import PartitionPrior, prior_from_description
from permix.registries import FAMILIES


def _pack(fit: MixtureFit) -> Content:
    facts, arrays, _ = pack_partitions(fit)
    arrays |= {_place(fit.family, name): array for name, array in fit.family.pack(fit.data).items()}
    if fit.feature_names is not None:
        arrays["feature_names"] = np.array(fit.feature_names)
    arrays |= pack_sampled_from(fit)
    return Content({"fitted_family": fit.family, "fitted_prior": fit.prior, **facts}, arrays)


def _build(saved: Saved) -> MixtureFit:
    settings, facts, arrays, sizes = saved[:4]
    family, prior = facts["fitted_family"], facts["fitted_prior"]
    require(prior == as_prior(settings.prior), "prior")
    # Where no family was asked for, the table chose one of three.
    asked = default_like(family) if settings.family is None else as_family(settings.family)
    require(_is_as_asked(family, asked), "family")
    n = sizes["observations"]
    check_start(settings.init, n, prior)
    draws, estimate = partitions_of(saved, learned_concentration(prior) is not None)
    _check_learned(family, asked, draws.arrays)
    packed = {name: arrays.pop(place) for name in family.packed if (place := _place(family, name)) in arrays}
    require(set(packed) == set(family.packed) and not under("data/", arrays), "data")
    data = family.unpack(packed)
    family.check_encoded(data, n)
    filled = draws.arrays.get("missing_cells")
    to_fill = family.filled_cells(data)
    require((filled is None) == (to_fill is None), "missing cells")
    if filled is not None and to_fill is not None:
        require(filled.shape[2] == int(to_fill.sum()), "number of missing cells")
    names = None
    if "feature_names" in arrays:
        names = tuple(arrays["feature_names"].tolist())
        require(len(names) == family.n_features, "number of column names")
    sampled_from = int(arrays["sampled_from"][0]) if "sampled_from" in arrays else None
    require(sampled_from is None or sampled_from >= n, "rows of a sample")
    fit = MixtureFit(settings, family, prior, data, n, draws, estimate, names, sampled_from=sampled_from)
    # What the command line and the estimator show is computed here, while a failure is still the file's.
    fit.cluster_parameters  # noqa: B018
    return fit


def _check_learned(family: Family, asked: Family, draws: dict[str, Any]) -> None:
    """Check draws of hyper-parameters: those left open, or none, with the means that the family has.

    Compiled code does not check what every draw puts into the family.
    """
    learned = learned_in(family, draws)
    require(set(learned) == set(LEARNED) & set(draws), "learned hyper-parameters")
    if not learned:
        return
    require(set(learned) == set(asked.learned_names(family)), "learned hyper-parameters")
    require(with_means(family, draws) == family, "means of learned hyper-parameters")
    for name, array in learned.items():
        least = family.with_values({name: array.min(axis=(0, 1)) if array.ndim > 2 else float(array.min())})
        least.resolve(np.zeros((1, family.n_features)))


def _is_as_asked(family: Family, asked: Family) -> bool:
    """Say whether the family is the one asked for, which left some hyper-parameters to the data."""
    if type(asked) is not type(family):
        return False
    left = {name: getattr(family, name) for name in asked.left_open}
    return dataclasses.replace(asked, **left).resolve(np.zeros((1, family.n_features))) == family


def _family_of_file(description: Any) -> Family:
    """Rebuild the family; resolving it again, for one row, must change nothing."""
    family = family_from_description(description).resolve_saved()
    resolved = family.resolve(np.zeros((1, family.n_features)))
    require(json.dumps(resolved.describe()) == json.dumps(description) and resolved.n_features > 0, "family")
    return resolved


def _place(family: Any, name: str) -> str:
    """Return where an array of encoded data is: those of different families differ in type and shape."""
    return f"data/{family.name}/{name}"


def _made(of: type, what: str, from_json: Any) -> Made:
    """Return the check of an object that a file describes."""

    def convert(value: Any) -> Any:
        if not isinstance(value, of):
            raise DataError(f"{value!r} is no {of.__name__}")
        return value

    return Made(convert, what, to_json=lambda value: value.describe(), from_json=from_json)


# Hyper-parameters that chains may learn, with their dimensions after chains and draws.
LEARNED: dict[str, tuple[str, ...]] = {
    "prior_strength": (),
    "degrees_of_freedom": (),
    "pseudo_count": (),
    **dict.fromkeys(("scale", "noise_scale", "within_share", "shape"), ("columns",)),
}

SCHEMA = Schema(
    parameters=DPMixtureParameters,
    pack=_pack,
    build=_build,
    facts={
        "fitted_family": _made(Family, "a family", _family_of_file),
        "fitted_prior": _made(PartitionPrior, "a prior over partitions", prior_from_description),
        **PARTITION_FACTS,
    },
    arrays={
        **PARTITION_FIELDS,
        "feature_names": field("text", "columns", optional=True),
        "sampled_from": SAMPLED_FROM,
        "draws/missing_cells": field(
            "real", "chains", "draws", "missing cells", where=fields.finite, optional=True
        ),
        **{
            f"draws/{name}": field("real", "chains", "draws", *shape, where=fields.positive, optional=True)
            for name, shape in LEARNED.items()
        },
        # What the encoded data of each family are made of; its ``check_encoded`` checks them as a whole.
        **{
            _place(family, name): field(type_, *shape, optional=True)
            for family in FAMILIES.values()
            for name, (type_, *shape) in family.packed.items()
        },
    },
)
