"""What an archive of :class:`permix.MallowsMixture` holds."""

from __future__ import annotations

import numpy as np

from permix.distributions.conditioning.components import MallowsComponents
from permix.estimators.agent_weights.archive import WEIGHT_TERMS
from permix.estimators.archive import Content, Saved, Schema
from permix.estimators.archive_parts import (
    MIXTURE_FACTS,
    MIXTURE_FIELDS,
    SAMPLED_FROM,
    log_likelihood_of,
    pack_mixture,
    pack_sampled_from,
    sampled_from,
)
from permix.estimators.fields import field, finite, not_negative, permutations, require
from permix.mallows.by_agent.archive import (
    WEIGHT_FIELDS,
    agent_weights_of,
    pack_agent_weights,
)
from permix.mallows.parameters import MOST_TIMES, MallowsParameters
from permix.mallows.results import MallowsFit


def _pack(fit: MallowsFit) -> Content:
    facts, arrays, _ = pack_mixture(fit)
    arrays |= {
        "centers": fit.components.centers,
        "decays": fit.components.decays,
        "history": fit.history,
        "start_log_likelihoods": fit.start_log_likelihoods,
        "group_matches": fit.group_matches,
    }
    more = {name: getattr(fit, name) for name in ("share_errors", "restart_shares", "resampled_shares")}
    arrays |= pack_sampled_from(fit)
    arrays |= pack_agent_weights(fit.components.by_agent)
    facts["weight_terms"] = None if fit.components.by_agent is None else fit.components.by_agent.design.terms
    return Content(facts, arrays | {name: array for name, array in more.items() if array is not None})


def _build(saved: Saved) -> MallowsFit:
    settings, facts, arrays, sizes = saved[:4]
    require(sizes["groups"] == settings.n_components and sizes["items"] == len(facts["items"]), "groups")
    require(sizes["starts"] <= MOST_TIMES * settings.n_init, "restarts")
    require(not np.any(arrays["start_log_likelihoods"] == np.inf), "restarts")
    history = arrays["history"]
    require(bool(np.all(np.isfinite(history))) and bool(np.all(history[:, 1] >= 0.0)), "history")
    require(bool(np.all(np.diff(arrays["weights"]) <= 0.0)), "weights")
    # Files of older versions do not have it.
    matches = arrays.get("group_matches", np.empty((0, sizes["groups"])))
    require(len(matches) in (0, sizes["starts"]) and bool(np.all(matches <= 1.0 + 1e-9)), "matches of groups")
    shares = arrays.get("restart_shares")
    if shares is not None:
        require(len(shares) == sizes["starts"] and not np.any((shares < 0.0) | (shares > 1.0)), "shares")
    resampled = arrays.get("resampled_shares")
    if resampled is not None:
        require(len(resampled) > 0 and not np.any((resampled < 0.0) | (resampled > 1.0)), "shares")
    return MallowsFit(
        settings=settings,
        components=MallowsComponents(
            facts["items"],
            arrays["weights"],
            arrays["centers"],
            arrays["decays"],
            agent_weights_of(saved),
            settings.distance,
        ),
        probabilities=arrays["probabilities"],
        counts=arrays["counts"],
        log_likelihood=log_likelihood_of(arrays["log_likelihood"]),
        history=history,
        start_log_likelihoods=arrays["start_log_likelihoods"],
        group_matches=matches,
        converged=facts["converged"],
        interrupted=facts["interrupted"],
        baselines=arrays.get("baselines"),
        share_errors=arrays.get("share_errors"),
        restart_shares=shares,
        resampled_shares=resampled,
        sampled_from=sampled_from(arrays),
    )


SCHEMA = Schema(
    parameters=MallowsParameters,
    pack=_pack,
    build=_build,
    facts={**MIXTURE_FACTS, "weight_terms": WEIGHT_TERMS},
    arrays={
        **MIXTURE_FIELDS,
        **WEIGHT_FIELDS,
        "centers": field("int32", "groups", "items", where=permutations),
        "decays": field("real", "groups", where=not_negative),
        "history": field("real", "iterations", 2, where=finite),
        "start_log_likelihoods": field("real", "starts"),
        "group_matches": field("real", "matched?", "groups", where=not_negative, optional=True),
        "share_errors": field("real", "groups", where=not_negative, optional=True),
        "restart_shares": field("real", "starts", "groups", optional=True),
        "resampled_shares": field("real", "samples", "groups", optional=True),
        "sampled_from": SAMPLED_FROM,
    },
)
