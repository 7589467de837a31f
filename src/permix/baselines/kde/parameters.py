"""What a user may choose about density estimation for rankings."""

from __future__ import annotations

from typing import Literal

from permix.estimators.checks import Real, Whole
from permix.estimators.parameters import RunParameters, declare


class KDEParameters(RunParameters):
    """Parameters of :class:`permix.MallowsKDE`."""

    dispersion: float | Literal["cv"] = declare(
        "cv",
        Real(least=0.0, most=1.0, special=("cv",)),
        'Width φ of the bumps, from 0 (none) to 1 (all rankings equally probable); "cv" chooses it by the '
        "likelihood of agents left out, one at a time.",
        positional=True,
    )
    n_samples: int = declare(
        32,
        Whole(2),
        "Rankings sampled for every row that does not put all items into levels, and for every row where the "
        "question does not. Fewer make estimates noisier and, being logarithms of means, lower.",
    )
