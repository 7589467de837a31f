"""What an archive holds of weights that depend on columns of agents."""

from __future__ import annotations

import numpy as np

from permix.data.labels import Array
from permix.distributions.agent_weights.design import Design
from permix.distributions.agent_weights.model import AgentWeights
from permix.estimators.agent_weights.archive import LARGEST
from permix.estimators.archive import Saved
from permix.estimators.fields import field, finite, require

WEIGHT_FIELDS = {
    "weights/coefficients": field("real", "columns", "groups", where=finite, optional=True),
    "weights/covariance": field("real", "estimates?", "estimates?", where=finite, optional=True),
    "weights/effects": field("real", "points", "groups", 3, where=finite, optional=True),
    "weights/gain": field("real", 1, where=finite, optional=True),
}


def pack_agent_weights(found: AgentWeights | None) -> dict[str, Array]:
    """Return the arrays, where there are any."""
    if found is None:
        return {}
    return {
        "weights/coefficients": found.coefficients,
        "weights/covariance": found.covariance,
        "weights/effects": found.effects,
        "weights/gain": np.array([found.gain]),
    }


def agent_weights_of(saved: Saved) -> AgentWeights | None:
    """Return the weights that were saved, where there are any."""
    terms, arrays, names = saved.facts["weight_terms"], saved.arrays, saved.settings.weights_by
    there = [name for name in WEIGHT_FIELDS if name in arrays]
    require(len(there) == (0 if terms is None else len(WEIGHT_FIELDS)), "weights by columns")
    require(names == (None if terms is None else tuple(term.name for term in terms)), "weights by columns")
    if terms is None:
        return None
    design = Design(terms)
    coefficients, covariance, effects, gain = (arrays[name] for name in WEIGHT_FIELDS)
    require(len(coefficients) == design.n_columns, "coefficients")
    require(not coefficients[:, 0].any() and bool(np.all(np.abs(coefficients) <= LARGEST)), "coefficients")
    require(len(covariance) == design.n_columns * (coefficients.shape[1] - 1), "covariance of coefficients")
    require(bool(np.all(np.diag(covariance) >= 0.0)), "covariance of coefficients")
    require(np.allclose(covariance, covariance.T), "covariance of coefficients")
    require(len(effects) == sum(len(term.points) for term in terms), "shares by value")
    inside = (effects[..., 1] <= effects[..., 0]) & (effects[..., 0] <= effects[..., 2])
    require(bool(np.all(inside)) and bool(np.all((effects >= 0.0) & (effects <= 1.0))), "shares by value")
    require(float(gain[0]) >= 0.0, "gain of the likelihood")
    return AgentWeights(design, coefficients, covariance, effects, float(gain[0]))
