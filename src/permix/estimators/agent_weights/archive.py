"""What archives hold of the columns of agents that weights depend on."""

from __future__ import annotations

import math
from typing import Any

from permix.distributions.agent_weights.design import MOST_VALUES, Term
from permix.estimators.checks import Made
from permix.estimators.fields import require

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
