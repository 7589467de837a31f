"""What is known of the center of a group: one ranking to show, ranks of items, and sets of rankings.

A center is drawn as :mod:`permix.bayes_mallows.results` says: that of a random member's group in a random
draw.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from permix.bayes_mallows.results import GroupSummaries
from permix.data.labels import Array
from permix.distributions.distances.names import code_of
from permix.estimators.checks import Choice, Real
from permix.kernels.distances import row_distances

if TYPE_CHECKING:
    import pandas as pd

WAYS = ("expected-rank", "cumulative", "most-probable", "least-distance")
# A set of rankings is worth less where so many draws or more have a center that no other draw has.
SCATTERED = 0.5


def drawn_centers(summaries: GroupSummaries, group: int) -> tuple[Array, Array]:
    """Return the different centers of a group, as orderings, the most probable first, and their shares."""
    rows, shares = summaries.members(group)
    orders, which = np.unique(summaries.fit.groups.centers[rows], axis=0, return_inverse=True)
    found = np.bincount(np.asarray(which).reshape(-1), shares)
    order = np.argsort(-found, kind="stable")
    return orders[order], found[order]


def rank_probabilities(summaries: GroupSummaries, group: int) -> Array:
    """Return P(item has this rank in the center), (items, ranks)."""
    orders, shares = drawn_centers(summaries, group)
    n = orders.shape[1]
    out = np.zeros((n, n))
    for place in range(n):
        out[:, place] = np.bincount(orders[:, place], shares, n)
    return out


def before(summaries: GroupSummaries, group: int) -> Array:
    """Return P(the center has a above b), (items, items)."""
    orders, shares = drawn_centers(summaries, group)
    ranks = np.argsort(orders, axis=1)
    out = np.zeros((ranks.shape[1],) * 2)
    for row, share in zip(ranks, shares, strict=True):
        out += share * (row[:, None] < row)
    return out


def consensus_order(summaries: GroupSummaries, group: int, by: str) -> Array:
    """Return one ranking for the center of a group."""
    Choice(*WAYS)("by", by)
    if by == "cumulative":
        return cumulative(rank_probabilities(summaries, group))
    if by == "most-probable":
        return np.asarray(drawn_centers(summaries, group)[0][0])
    if by == "least-distance":
        return least_distance(summaries, group)
    return np.asarray(summaries.centers.orders[group])


def cumulative(probabilities: Array) -> Array:
    """Fill places from the first on, each with the item left that is most probably there or above.

    Items of equal probability are taken in the order of their expected ranks.

    Examples
    --------
    >>> cumulative(np.array([[0.4, 0.6, 0.0], [0.6, 0.0, 0.4], [0.0, 0.4, 0.6]])).tolist()
    [1, 0, 2]
    """
    n = len(probabilities)
    upto, expected = np.cumsum(probabilities, axis=1), probabilities @ np.arange(n)
    left = list(range(n))
    order = []
    for place in range(n):
        best = min(left, key=lambda item: (-round(float(upto[item, place]), 12), expected[item], item))
        left.remove(best)
        order.append(best)
    return np.array(order)


def least_distance(summaries: GroupSummaries, group: int) -> Array:
    """Return the ranking from which the center is least far on average, by the distance of the model.

    Exact, except with Cayley's and Ulam's distance, under which it is searched for, and Kendall's, if there
    are so many items that Kemeny's problem is.
    """
    distance = summaries.fit.settings.distance
    if distance == "kendall":
        from permix.consensus.kemeny import kemeny

        return np.asarray(kemeny(before(summaries, group), random_state=0).order)
    from permix.distributions.distances.centers import centers_for

    orders, shares = drawn_centers(summaries, group)
    first = np.asarray(summaries.centers.orders[[group]], dtype=np.int64)
    found, _ = centers_for(distance, orders.astype(np.int64)).nearest(shares[None], first, thorough=True)
    return np.asarray(found[0])


def consensus_columns(
    summaries: GroupSummaries, group: int, by: str
) -> tuple[dict[str, Any], dict[str, float]]:
    """Return the columns of :func:`consensus_table`, and what is known of the ranking as a whole."""
    summaries.check(group)
    order = consensus_order(summaries, group, by)
    chances = rank_probabilities(summaries, group)[order]
    orders, shares = drawn_centers(summaries, group)
    same = (orders == order).all(axis=1)
    ranks = np.argsort(orders, axis=1).astype(np.int32)
    code = code_of(summaries.fit.settings.distance)
    center = np.argsort(order).astype(np.int32)[None]
    apart = row_distances(code, np.ascontiguousarray(orders, dtype=np.int32), ranks, center)
    columns = {
        "item": [summaries.fit.items[item] for item in order.tolist()],
        "expected_rank": summaries.expected_ranks[group, order] + 1.0,
        "at_rank": np.diagonal(chances),
        "up_to_rank": np.minimum(np.diagonal(np.cumsum(chances, axis=1)), 1.0),
    }
    whole = {"probability": float(shares[same].sum()), "expected_distance": float(shares @ apart)}
    return columns, whole


def consensus_table(summaries: GroupSummaries, group: int, by: str) -> pd.DataFrame:
    """Return a ranking for the center of a group, item by item."""
    import pandas as pd

    columns, whole = consensus_columns(summaries, group, by)
    frame = pd.DataFrame(columns, index=pd.RangeIndex(1, len(columns["item"]) + 1, name="rank"))
    frame.attrs.update(whole)
    return frame


def credible_set(summaries: GroupSummaries, group: int, probability: float) -> tuple[Array, Array, str]:
    """Return the fewest centers that hold a probability, theirs, and a note where draws hardly repeat."""
    summaries.check(group)
    Real(above=0.0, most=1.0)("probability", probability)
    orders, shares = drawn_centers(summaries, group)
    n = int(np.searchsorted(np.cumsum(shares), probability * (1.0 - 1e-12))) + 1
    n_draws = summaries.fit.groups.n_draws
    once = shares <= shares.min() * (1.0 + 1e-9)
    note = ""
    if len(shares) > 1 and shares.min() < 1.5 / n_draws and shares[once].sum() >= SCATTERED:
        note = (
            f"{len(shares):,} different centers in {n_draws:,} draws: so many are possible that draws hardly "
            "repeat, and the set is not all that it should hold; intervals of the ranks of items say more"
        )
    return orders[:n], shares[:n], note


def credible_table(summaries: GroupSummaries, group: int, probability: float) -> pd.DataFrame:
    """Return the fewest centers that hold a probability."""
    import pandas as pd

    orders, shares, note = credible_set(summaries, group, probability)
    names = summaries.fit.items
    frame = pd.DataFrame(
        {
            "center": [" ≻ ".join(str(names[item]) for item in order) for order in orders.tolist()],
            "probability": shares,
            "together": np.minimum(np.cumsum(shares), 1.0),
        }
    )
    frame.attrs["note"] = note
    return frame


def named_matrix(
    summaries: GroupSummaries, group: int, values: Array, columns: Any, what: str
) -> pd.DataFrame:
    """Return numbers by item as a data frame, items in the order of the consensus."""
    import pandas as pd

    order = np.asarray(summaries.centers.orders[group])
    names = [summaries.fit.items[item] for item in order.tolist()]
    if columns is None:
        values, columns = values[:, order], names
    frame = pd.DataFrame(values[order], index=pd.Index(names, name="item"), columns=columns)
    frame.columns.name = what
    return frame
