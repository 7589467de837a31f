"""Models simple enough to be checked by hand: shares of full rankings, with a little for those not seen."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np

from permix.data.labels import Array
from permix.estimators.checks import Real
from permix.estimators.comparable import Comparable, Way
from permix.estimators.parameters import RunParameters, declare
from permix.estimators.registry import Model


class SharesParameters(RunParameters):
    spread: float = declare(1.0, Real(above=0.0), "Agents spread over all rankings.")


def agreeing(table: Any, row: int) -> list[tuple[int, ...]]:
    """All full rankings that agree with what a row says, by trying each."""
    found = []
    start, end = table.level_indptr[row : row + 2]
    items, levels = table.level_items[start:end].tolist(), table.levels[start:end].tolist()
    below = set(range(table.n_items)) - set(items) if table.rest_below[row] else set()
    first, last = table.pair_indptr[row : row + 2]
    for order in permutations(range(table.n_items)):
        rank = {item: place for place, item in enumerate(order)}
        stated = [
            (a, b)
            for a, p in zip(items, levels, strict=True)
            for b, q in zip(items, levels, strict=True)
            if p < q
        ]
        stated += [(a, b) for a in items for b in below]
        stated += [tuple(pair) for pair in table.pairs[first:last].tolist()]
        if all(rank[a] < rank[b] for a, b in stated):
            found.append(order)
    return found


class Shares(Comparable):
    """P(ranking) = (agents of the part fitted who agree, evenly over their rankings, + spread/n!) / ..."""

    form = "votes"
    parameters = SharesParameters
    finds = "nothing"

    def __init__(self, spread: float, label: str, flaw: str = "") -> None:
        self.spread, self.label, self.flaw = spread, label, flaw
        self.seen: list[tuple[Any, Any]] = []  # parts fitted and parts scored

    def suits(self, data: Any) -> str | None:
        return None

    def ways(self, data: Any) -> tuple[Way, ...]:
        return (Way((self.label,), {"spread": self.spread}),)

    def fit(self, data: Any, settings: Any) -> dict[tuple[int, ...], float]:
        self.fitted = data
        return shares(data, settings.spread)

    def score(self, fit: Any, held_out: Any, seed: int) -> tuple[Array, Array]:
        self.seen.append((self.fitted, held_out))
        values = np.array([self._log_p(fit, held_out, row) for row in range(len(held_out))])
        return values, np.zeros(len(values))

    def _log_p(self, fit: Any, table: Any, row: int) -> float:
        agree = agreeing(table, row)
        if self.flaw == "another event":  # one of the rankings that agree, not any of them
            agree = agree[:1]
        return float(np.log(sum(fit[order] for order in agree)))

    def improper(self, fit: Any) -> str | None:
        return "has probabilities that do not sum to one" if self.flaw == "improper" else None


def shares(data: Any, spread: float) -> dict[tuple[int, ...], float]:
    """Return the probability of every full ranking, agent by agent."""
    everything = list(permutations(range(data.n_items)))
    weight = dict.fromkeys(everything, spread / len(everything))
    for row, count in enumerate(data.counts.tolist()):
        agree = agreeing(data, row)
        for order in agree:
            weight[order] += count / len(agree)
    total = sum(weight.values())
    return {order: value / total for order, value in weight.items()}


NARROW, WIDE = Shares(1.0, "narrow"), Shares(30.0, "wide")
ANOTHER_EVENT = Shares(1.0, "another-event", "another event")
IMPROPER = Shares(1.0, "improper", "improper")
HERE = "tests.comparison.toys"


def model(name: str) -> Model:
    return Model(name, "", "", compared=f"{HERE}:{name}")
