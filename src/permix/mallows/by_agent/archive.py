"""What an archive holds of weights that depend on columns of agents."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from permix.data.labels import Array
from permix.distributions.agent_weights.design import MOST_VALUES, Design, Term
from permix.distributions.agent_weights.model import AgentWeights
from permix.estimators.archive import Saved
from permix.estimators.checks import Made
from permix.estimators.fields import field, finite, require

LONGEST_NAME = 1000
LARGEST = 1e6  # of coefficients; those without a finite estimate end long before


def _term(said: Any) -> Term:
    require(isinstance(said, dict) and set(said) == set(Term._fields), "columns that weights depend on")
    name, values, quartiles = said["name"], said["values"], said["quartiles"]
    require(isinstance(name, str) and 0 < len(name) <= LONGEST_NAME, "names of columns")
    require(isinstance(values, list | tuple) and len(values) <= MOST_VALUES and len(values) != 1, "values")
    require(all(isinstance(value, str) and value for value in values), "values")
    require(len(set(values)) == len(values), "values")
    numbers = [said["mean"], said["unit"], *quartiles]
    require(all(isinstance(each, float) and math.isfinite(each) for each in numbers), "numbers of columns")
    require(said["unit"] > 0.0 and len(quartiles) <= 3 and bool(values) != bool(quartiles), "columns")
    return Term(name, tuple(values), said["mean"], said["unit"], tuple(quartiles))


def _terms(said: Any) -> tuple[Term, ...]:
    require(isinstance(said, list | tuple), "columns that weights depend on")
    terms = tuple(_term(each._asdict() if isinstance(each, Term) else each) for each in said)
    require(0 < len({term.name for term in terms}) == len(terms), "columns that weights depend on")
    return terms


WEIGHT_TERMS = Made(
    _terms,
    "columns",
    special=(None,),
    to_json=lambda terms: [
        term._asdict() | {"values": list(term.values), "quartiles": list(term.quartiles)} for term in terms
    ],
)
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
