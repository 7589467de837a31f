"""What an archive of :class:`permix.DPMixture` holds: the draws, the data, and what was fitted."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from permix.dp_mixture.fit import MixtureFit
from permix.dp_mixture.parameters import DPMixtureParameters
from permix.errors import DataError
from permix.estimators.archive import Content, Saved, Schema
from permix.estimators.archive_parts import (
    DRAW_FACTS,
    ESTIMATE_FACTS,
    ESTIMATE_FIELDS,
    draw_fields,
    draws_of,
    estimate_of,
    number,
    pack_draws,
    pack_estimate,
    under,
)
from permix.estimators.checks import Made
from permix.estimators.fields import below, field, positive, require
from permix.families import Family, family_from_description
from permix.moves.start import check_start
from permix.moves.state import learned_concentration
from permix.partitions import PartitionPrior, prior_from_description
from permix.registries import FAMILIES


def _pack(fit: MixtureFit) -> Content:
    draw_facts, draw_arrays = pack_draws(fit.draws)
    estimate_facts, estimate_arrays = pack_estimate(fit.estimate)
    arrays = {**draw_arrays, **estimate_arrays}
    arrays |= {_place(fit.family, name): array for name, array in fit.family.pack(fit.data).items()}
    if fit.feature_names is not None:
        arrays["feature_names"] = np.array(fit.feature_names)
    return Content(
        {"fitted_family": fit.family, "fitted_prior": fit.prior, **draw_facts, **estimate_facts}, arrays
    )


def _build(saved: Saved) -> MixtureFit:
    settings, facts, arrays, sizes = saved[:4]
    family, prior = facts["fitted_family"], facts["fitted_prior"]
    n = sizes["observations"]
    check_start(settings.init, n, prior)
    draws = draws_of(saved)
    require(len(draws.seeds) == sizes["chains"], "seeds")
    labels = draws.arrays["labels"]
    require(np.array_equal(draws.arrays["n_clusters"], labels.max(axis=2).astype(np.int64) + 1), "n_clusters")
    learned = learned_concentration(prior) is not None
    require(("concentration" in draws.arrays) == learned, "concentration")
    packed = {name: arrays.pop(place) for name in family.packed if (place := _place(family, name)) in arrays}
    require(set(packed) == set(family.packed) and not under("data/", arrays), "data")
    data = family.unpack(packed)
    family.check_encoded(data, n)
    names = None
    if "feature_names" in arrays:
        names = tuple(arrays["feature_names"].tolist())
        require(len(names) == family.n_features, "number of column names")
    fit = MixtureFit(settings, family, prior, data, n, draws, estimate_of(saved), names)
    # What the command line and the estimator show is computed here, while a failure is still the file's.
    fit.cluster_parameters  # noqa: B018
    return fit


def _family_of_file(description: Any) -> Family:
    """Rebuild the family; resolving it again, for one row, must change nothing."""
    family = family_from_description(description).resolve_saved()
    resolved = family.resolve(np.zeros((1, family.n_features)))
    require(json.dumps(resolved.describe()) == json.dumps(description) and resolved.n_features > 0, "family")
    return resolved


def _place(family: Any, name: str) -> str:
    """Return where an array of encoded data is: those of different families differ in type and shape."""
    return f"data/{family.name}/{name}"


def _fitted(value: Any, of: type) -> Any:
    if not isinstance(value, of):
        raise DataError(f"{value!r} is no {of.__name__}")
    return value


# What the encoded data of each family are made of; its ``check_encoded`` checks them as a whole.
_DATA = {
    _place(family, name): field(type_, *shape, optional=True)
    for family in FAMILIES.values()
    for name, (type_, *shape) in family.packed.items()
}

SCHEMA = Schema(
    parameters=DPMixtureParameters,
    pack=_pack,
    build=_build,
    facts={
        "fitted_family": Made(
            lambda value: _fitted(value, Family),
            "a family",
            to_json=lambda family: family.describe(),
            from_json=_family_of_file,
        ),
        "fitted_prior": Made(
            lambda value: _fitted(value, PartitionPrior),
            "a prior over partitions",
            to_json=lambda prior: prior.describe(),
            from_json=prior_from_description,
        ),
        **DRAW_FACTS,
        **ESTIMATE_FACTS,
    },
    arrays={
        **draw_fields(
            labels=field("int", "observations", where=below("observations")),
            n_clusters=number(),
            largest_cluster=number(),
            log_likelihood=number(),
            log_joint=number(),
        ),
        "draws/concentration": field("real", "chains", "draws", where=positive, optional=True),
        **ESTIMATE_FIELDS,
        "feature_names": field("text", "columns", optional=True),
        **_DATA,
    },
)
