"""Exact Kemeny ordering by integer programming: HiGHS, with triangle inequalities added as they break."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from permix.runtime.interrupts import Interrupts

Array = npt.NDArray[Any]

_WHOLE = 1e-6  # the solver's tolerance: nearer than this to a whole number is whole
_VIOLATED = 1e-4  # inequalities broken by less are left to branching


class Bounds(NamedTuple):
    """An ordering, its score, and a score no ordering can beat."""

    order: Array
    score: float
    lower_bound: float


def order_score(weights: Array, order: Array) -> float:
    """Return the total weight of preferences against ``order``."""
    return float(np.tril(weights[np.ix_(order, order)], -1).sum())


class LinearOrdering:
    """Branch and cut for one matrix of weights; keeps the best ordering and the best bound found so far.

    One variable per pair a < b says whether a is before b. The relaxation has only those triangle
    inequalities ``x_ab + x_bc + x_ca <= 2`` that some earlier solution violated: first with fractions
    allowed, then, where fractions remain, with whole numbers. Every solution is a lower bound; ``best`` can
    be read at any time.
    """

    def __init__(self, weights: Array, start: Bounds, whole: bool) -> None:
        n = len(weights)
        self.weights, self.whole, self.best = weights, whole, start
        self._net = weights - weights.T
        self._tolerance = 1e-12 * float(weights.sum())
        self._pair = np.full((n, n), -1)
        self._first, self._second = np.triu_indices(n, 1)
        self._pair[self._first, self._second] = np.arange(len(self._first))
        # Scaled to order one, so that the solver's absolute tolerances are relative to the weights.
        self._scale = float(np.abs(self._net).max())
        self._cost = -self._net[self._first, self._second] / self._scale
        self._constant = float(weights[self._first, self._second].sum())
        self._triangles = np.zeros((0, 3), np.int64)

    @property
    def proven(self) -> bool:
        """Whether no ordering can be better than the best one."""
        return self.best.lower_bound >= self.best.score

    def run(self, deadline: float | None, interrupts: Interrupts) -> None:
        """Improve ``best`` until it is proven, work is to stop, or ``time.monotonic()`` is ``deadline``."""
        integral = False
        while not (self.proven or interrupts.stopped) and (deadline is None or time.monotonic() < deadline):
            before, bound, complete = self._solve(integral, deadline)
            if bound is not None:
                self._raise_bound(bound)
            if before is None:
                return  # out of time with nothing in hand
            self._try_order(before)
            if self._add_violated(before):
                continue
            if not integral and not _is_whole(before):
                integral = True  # every triangle holds, yet fractions remain: branch
            elif complete:
                # The optimum of a relaxation that is an ordering: nothing can beat it.
                self.best = self.best._replace(lower_bound=self.best.score)

    def _solve(self, integral: bool, deadline: float | None) -> tuple[Array | None, float | None, bool]:
        """Solve the present relaxation: the matrix "a before b", a lower bound, and whether it is optimal."""
        from scipy.optimize import Bounds as Box
        from scipy.optimize import LinearConstraint, milp

        seconds = np.inf if deadline is None else max(0.01, deadline - time.monotonic())
        matrix, limit = self._constraints()
        result = milp(
            self._cost,
            integrality=np.full(len(self._cost), int(integral)),
            bounds=Box(0.0, 1.0),
            constraints=[LinearConstraint(matrix, -np.inf, limit)] if len(limit) else [],
            options={"mip_rel_gap": 0.0, "time_limit": seconds},
        )
        complete = result.status == 0
        bound = result.mip_dual_bound if integral else (result.fun if complete else None)
        if bound is not None:
            bound = self._constant + self._scale * float(bound)
        if result.x is None:
            return None, bound, complete
        # Whole up to the solver's tolerance; made so, a triangle is violated by 1 or not at all.
        x = np.rint(result.x) if integral else np.clip(result.x, 0.0, 1.0)
        before = np.zeros(self.weights.shape)
        before[self._first, self._second] = x
        before[self._second, self._first] = 1.0 - x
        return before, bound, complete

    def _constraints(self) -> tuple[Any, Array]:
        """Triangle inequalities in terms of the pairs a < b: x_ba stands for 1 - x_ab."""
        from scipy.sparse import csr_array

        start, end = self._triangles, np.roll(self._triangles, -1, axis=1)
        forward = start < end
        column = self._pair[np.minimum(start, end), np.maximum(start, end)]
        value = np.where(forward, 1.0, -1.0)
        row = np.repeat(np.arange(len(start)), 3)
        matrix = csr_array((value.ravel(), (row, column.ravel())), shape=(len(start), len(self._cost)))
        return matrix, 2.0 - (~forward).sum(axis=1)

    def _add_violated(self, before: Array) -> bool:
        """Add the most violated triangle inequalities; say whether there were any."""
        violation, triangles = violated_triangles(before)
        n = len(before)
        most = np.argsort(-violation, kind="stable")[: n * (n - 1)]
        self._triangles = np.concatenate([self._triangles, triangles[most]])
        return bool(len(violation))

    def _try_order(self, before: Array) -> None:
        """Round a solution to an ordering (by how many items each is before), improve it, keep the better."""
        from permix.kernels.kemeny_search import improve_by_insertion

        order = np.argsort(-before.sum(axis=1), kind="stable")
        improve_by_insertion(self._net, order, self._tolerance)
        score = order_score(self.weights, order)
        if score < self.best.score - self._tolerance:
            self.best = Bounds(order, score, self.best.lower_bound)

    def _raise_bound(self, bound: float) -> None:
        bound -= _WHOLE * self._scale  # what rounding in the solver may have added
        if self.whole:
            bound = float(np.ceil(bound))
        if np.isfinite(bound) and bound > self.best.lower_bound:
            self.best = self.best._replace(lower_bound=min(bound, self.best.score))


def violated_triangles(before: Array) -> tuple[Array, Array]:
    """List by how much ``before[a,b] + before[b,c] + before[c,a]`` is above 2, and the cycle a → b → c → a.

    ``before[a, b]`` in [0, 1] says how far a is before b, ``before[b, a] = 1 - before[a, b]``.
    """
    violation, triangles = [np.zeros(0)], [np.zeros((0, 3), np.int64)]
    for a in range(len(before) - 2):  # a is the smallest of the three
        later = slice(a + 1, None)
        excess = before[a, later, None] + before[later, later] + before[later, a] - 2.0
        b, c = np.nonzero(excess > _VIOLATED)
        violation.append(excess[b, c])
        triangles.append(np.column_stack([np.full(len(b), a), a + 1 + b, a + 1 + c]))
    return np.concatenate(violation), np.concatenate(triangles)


def _is_whole(before: Array) -> bool:
    return bool((np.minimum(before, 1.0 - before) < _WHOLE).all())
