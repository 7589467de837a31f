"""What an archive of :class:`permix.AngleMixture` holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from permix.angle.ascent import VariationalPosterior
from permix.angle.components import AngleComponents, AnglePrior, largest_concentration
from permix.angle.direct import Evidence
from permix.angle.fit import AngleFit
from permix.angle.parameters import AngleParameters
from permix.data.labels import Array
from permix.distributions.angle.concentration import MOST
from permix.estimators import archive_parts as parts
from permix.estimators import fields
from permix.estimators.archive import Content, Saved, Schema
from permix.estimators.checks import Choice, Real
from permix.estimators.fields import ROUNDING, field, require

# Arrays of a fit that are kept as they are.
OF_FIT = ("history", "start_objectives", "guarded", "agreed")
VARIATIONAL = {
    "shapes": field("real", "groups", where=fields.positive, optional=True),
    "rates": field("real", "groups", where=fields.positive, optional=True),
    "lengths": field("real", "groups", where=fields.not_negative, optional=True),
    "directions": field("real", "groups", "items", where=fields.directions, optional=True),
    "counts": field("real", "groups", where=fields.positive, optional=True),
    "guarded": field("bool", "groups", optional=True),
}


def _concentrations(array: Array, sizes: Mapping[str, int]) -> bool:
    return fields.not_negative(array, sizes) and bool((array <= MOST).all())


def _pack(fit: AngleFit) -> Content:
    facts, arrays, _ = parts.pack_mixture(fit)
    facts |= {"normalizer": fit.components.normalizer, "objective": fit.objective, **parts.NO_DRAWS}
    arrays |= {name: getattr(fit.components, name) for name in ("directions", "concentrations")}
    arrays |= {name: getattr(fit, name) for name in OF_FIT}
    arrays |= parts.pack_sampled_from(fit)
    if fit.recur is not None:
        arrays["recur"] = fit.recur
    if fit.variational is not None:
        arrays |= {f"variational/{name}": getattr(fit.variational, name) for name in VARIATIONAL}
    if fit.evidence is not None:
        arrays["evidence"] = np.array([fit.evidence.n, fit.evidence.length])
    if fit.draws is not None:
        of_draws, drawn = parts.pack_draws(fit.draws)
        facts |= {name: of_draws[name] for name in parts.NO_DRAWS}
        arrays |= drawn
    return Content(facts, arrays)


def _build(saved: Saved) -> AngleFit:
    settings, facts, arrays, sizes = saved
    items = facts["items"]
    k, t = sizes["groups"], sizes["items"]
    require(settings.n_components == k and len(items) == t >= 3, "groups")
    require(facts["normalizer"] == settings.normalizer_for(t), "normalizer")
    prior = AnglePrior.of(settings, items)
    components = AngleComponents(
        items, arrays["weights"], arrays["directions"], arrays["concentrations"], facts["normalizer"]
    )
    n = float(arrays["counts"].sum())
    variational = _variational(saved, n)
    evidence = None
    if "evidence" in arrays:
        # What one component's rankings say: their number, and the length of the sum of their scores.
        pair, cap = arrays["evidence"], largest_concentration(t)
        require(settings.inference == "quadrature" and k == 1 and pair[0] == n, "evidence")
        require(0.0 <= pair[1] <= (n + prior.strength) * (1.0 + ROUNDING), "evidence")
        evidence = Evidence(float(pair[0]), float(pair[1]), components.directions[0], prior, cap)
    draws = parts.draws_of(saved) if "draws/weights" in arrays else None
    if draws is None:
        require({name: facts[name] for name in parts.NO_DRAWS} == parts.NO_DRAWS, "draws")
        require(not any(name.startswith(("draws/", "statistics/")) for name in arrays), "draws")
    else:
        require({"concentrations", "directions"} <= set(draws.arrays), "draws")
        require("labels" not in draws.arrays or sizes["agents"] == n, "labels")
    require((settings.inference == "em") == (variational is None and draws is None), "posterior")
    by_bound = settings.inference == "vi" and variational is not None
    require((facts["objective"] is not None) == (by_bound or evidence is not None), "objective")
    kept: dict[str, Any] = {name: arrays[name] for name in ("probabilities", "counts", *OF_FIT)}
    kept |= {name: facts[name] for name in ("objective", "converged", "interrupted")}
    return AngleFit(
        settings=settings,
        components=components,
        log_likelihood=parts.log_likelihood_of(arrays["log_likelihood"], may_be_unknown=True),
        variational=variational,
        evidence=evidence,
        draws=draws,
        baselines=arrays.get("baselines"),
        sampled_from=parts.sampled_from(arrays),
        recur=arrays.get("recur"),
        **kept,
    )


def _variational(saved: Saved, n: float) -> VariationalPosterior | None:
    settings = saved.settings
    found = parts.under("variational/", saved.arrays)
    if not found:
        return None
    require(set(found) == set(VARIATIONAL) and settings.inference == "vi", "variational posterior")
    posterior = VariationalPosterior(**found)
    most = (n + settings.prior_strength) * (1.0 + ROUNDING)
    require(bool((posterior.lengths <= most).all()), "variational posterior")
    most = (n + len(posterior.counts) * settings.pseudo_count) * (1.0 + ROUNDING)
    require(float(posterior.counts.sum()) <= most, "variational posterior")
    return posterior


SCHEMA = Schema(
    parameters=AngleParameters,
    pack=_pack,
    build=_build,
    facts={
        **parts.DRAW_FACTS,
        **parts.MIXTURE_FACTS,
        "normalizer": Choice("vmf", "exact", "balanced"),
        "objective": Real(special=(None,)),
    },
    arrays={
        **parts.MIXTURE_FIELDS,
        "directions": field("real", "groups", "items", where=fields.directions),
        "concentrations": field("real", "groups", where=fields.not_negative),
        "history": field("real", "passes?", where=fields.finite),
        "start_objectives": field("real", "starts?", where=fields.finite),
        "guarded": field("bool", "groups"),
        "agreed": field("int64", "groups", where=fields.below("items")),
        "recur": field("real", "groups", where=fields.not_negative, optional=True),
        "sampled_from": parts.SAMPLED_FROM,
        **{f"variational/{name}": about for name, about in VARIATIONAL.items()},
        "evidence": field("real", 2, where=fields.not_negative, optional=True),
        **parts.draw_fields(
            optional=True,
            weights=field("real", "groups", where=fields.simplex),
            concentrations=field("real", "groups", where=_concentrations),
            directions=field("real", "groups", "items", where=fields.directions),
            labels=field("int", "agents", where=fields.below("groups")),
            log_likelihood=parts.number(),
            completed_log_likelihood=parts.number(),
        ),
    },
)
