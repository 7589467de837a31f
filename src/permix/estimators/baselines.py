"""A score says little by itself: how probable are the same data without any model, or with a simpler one?

Baselines of rankings are proper distributions of what agents say, given its form (how many items a list has,
which items were ranked, which pairs compared): all answers alike; one group; and the shares with which
answers occur in data, one agent's worth of them spread over all answers alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from permix.data.labels import Array
from permix.data.preferences import Preferences
from permix.errors import DataError
from permix.estimators.wording import listed

if TYPE_CHECKING:
    import pandas as pd

# What baselines are called in sentences: "... times more probable than ...".
WORDS = {
    "uniform": "if all answers were equally probable",
    "one group": "under one group",
    "empirical": "by the shares of equal answers in the data",
    "independent columns": "if columns were independent",
}
# Particles for what is compared in pairs: how many rankings agree with an agent.
N_PARTICLES = 256

# Baselines of rankings that files keep, in this order.
KEPT = ("uniform", "one group", "empirical")
MEMORIZED = "empirical"

OneGroup = Callable[[Preferences], Array]


@dataclass(frozen=True, eq=False)
class ScoreComparison:
    """A score beside those of baselines.

    Attributes
    ----------
    verdict : str
        In words, how many times more probable the data are than under each baseline.
    table : DataFrame
        ``score``, the mean log-probability of an agent or a row in nats, of the model and of each baseline;
        ``difference``, by how much the model's is larger; ``times``, exp of that: how many times more
        probable the model makes what an agent says, in the geometric mean.
    """

    verdict: str
    table: pd.DataFrame

    def __repr__(self) -> str:
        return f"ScoreComparison: {self.verdict}\n{self.table.to_string(float_format='{:.4g}'.format)}"


def compared(score: float, baselines: Mapping[str, float], subject: str) -> ScoreComparison:
    """Put a score beside those of baselines; ``subject`` is what is more or less probable."""
    import pandas as pd

    scores = {"this model": score, **baselines}
    table = pd.DataFrame({"score": scores}, index=pd.Index(list(scores), name="model"))
    table["difference"] = score - table["score"]
    table["times"] = np.exp(table["difference"])
    return ScoreComparison(in_words(score, baselines, subject), table)


def in_words(score: float, baselines: Mapping[str, float], subject: str) -> str:
    """Say how many times more probable data are than under baselines.

    Examples
    --------
    >>> in_words(-2.0, {"one group": -2.6}, "What an agent says")
    'What an agent says is 1.8 times as probable as under one group.'
    """
    said = [
        f"{times_as_probable(score - other)} times as probable as {WORDS[name]}"
        for name, other in baselines.items()
    ]
    return f"{subject} is {listed(said)}."


def times_as_probable(difference: float) -> str:
    """Write exp of a difference in nats: how many times as probable something is.

    Examples
    --------
    >>> times_as_probable(0.002), times_as_probable(0.01), times_as_probable(1.0)
    ('1.002', '1.01', '2.7')
    >>> times_as_probable(8.0), times_as_probable(100.0)
    ('2,981', 'exp(100)')
    """
    if difference > 13.0:  # more than a handful of digits says nothing
        return f"exp({difference:.0f})"
    times = float(np.exp(difference))
    if 0.95 < times < 1.05:
        return f"{times:.3f}" if 0.995 <= times < 1.005 else f"{times:.2f}"
    return f"{times:,.0f}" if times >= 100.0 else f"{times:.2g}"


def mean_scores(rows: Mapping[str, Array], counts: Array | None) -> dict[str, float]:
    """Return means over agents of log-probabilities of rows."""
    return {name: float(np.average(values, weights=counts)) for name, values in rows.items()}


def ranking_baselines(table: Preferences, known: Preferences, one_group: OneGroup | None) -> dict[str, Array]:
    """Return ln P of every row under each baseline; those that are fitted know the agents of ``known``."""
    uniform = uniform_log_probabilities(table)
    found = {"uniform": uniform}
    if one_group is not None:
        found["one group"] = one_group(table)
    return found | {"empirical": empirical_log_probabilities(table, known, uniform)}


def kept_baselines(table: Preferences, one_group: float) -> Array:
    """Return the mean scores of the agents fitted under ``KEPT``; that of one group is known."""
    rows = ranking_baselines(table, table, None)
    means = {**mean_scores(rows, table.counts), "one group": one_group}
    return np.array([means[name] for name in KEPT])


def uniform_log_probabilities(table: Preferences) -> Array:
    """Return ln of the share of all rankings that agree with each row.

    Of k items ranked in levels of sizes s, those are Π s! / k!; items below the others are a level too. Where
    pairs are compared, rankings are drawn if there are too many to count.
    """
    n, t = len(table), table.n_items
    log_factorial = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, t + 1)))])
    lengths = np.diff(table.level_indptr)
    row = np.repeat(np.arange(n), lengths)
    of_level, sizes = np.unique(row * (t + 1) + table.levels, return_counts=True)
    values = 0.0 + np.bincount(of_level // (t + 1), log_factorial[sizes], minlength=n)
    values += np.where(
        table.rest_below, log_factorial[t - lengths] - log_factorial[t], -log_factorial[lengths]
    )
    compares = np.flatnonzero(np.diff(table.pair_indptr) > 0)
    if len(compares):
        from permix.distributions.conditioning.agent_posteriors import log_normalizers
        from permix.distributions.conditioning.components import MallowsComponents

        alike = MallowsComponents(table.items, np.ones(1), np.arange(t)[None], np.zeros(1))
        key = np.zeros(2, dtype=np.uint64)
        values[compares] = log_normalizers(alike, table[compares], N_PARTICLES, key)[0][:, 0]
    return np.asarray(values)


def empirical_log_probabilities(table: Preferences, known: Preferences, uniform: Array) -> Array:
    """Return ln of the share of the agents of ``known`` who said the same, of those asked the same.

    One agent more is taken to have said anything with equal probability, so that nothing is impossible.
    """
    said: dict[tuple[bytes, bytes], int] = {}
    asked: dict[bytes, int] = {}
    for key, count in zip(_keys(known), known.counts.tolist(), strict=True):
        said[key] = said.get(key, 0) + count
        asked[key[0]] = asked.get(key[0], 0) + count
    keys = _keys(table)
    same = np.array([said.get(key, 0) for key in keys], dtype=float)
    all_asked = np.array([asked.get(key[0], 0) for key in keys], dtype=float)
    return np.log(same + np.exp(uniform)) - np.log(all_asked + 1.0)


def _keys(table: Preferences) -> list[tuple[bytes, bytes]]:
    """Return what each row was asked, and what it says, as bytes."""
    found = []
    for row in range(len(table)):
        start, end = table.level_indptr[row : row + 2]
        items, levels = table.level_items[start:end], table.levels[start:end]
        first, last = table.pair_indptr[row : row + 2]
        stated = asked = b""
        if last > first:
            pairs = np.unique(table.pairs[first:last], axis=0)
            stated, asked = pairs.tobytes(), np.unique(np.sort(pairs, axis=1), axis=0).tobytes()
        below = bool(table.rest_below[row])
        # Whoever ranks some items only was asked about these; a list names those it likes.
        about = b"" if below else np.sort(items).tobytes()
        form = (bytes([below]), levels.tobytes(), about, asked)
        found.append((b"|".join(form), b"|".join((items.tobytes(), stated))))
    return found


def one_generalized_mallows(known: Preferences) -> OneGroup | None:
    """Return how one generalized Mallows model, fitted to data, scores rows; None if they are no lists."""
    from permix.distributions.generalized.generalized_mallows import GeneralizedMallows
    from permix.estimators.ranking_lists import as_top_lists

    try:
        lists = as_top_lists(known)
    except DataError:  # rankings of a subset, ties, comparisons
        return None
    fitted = GeneralizedMallows.fit(lists, max_nodes=0)
    return lambda table: np.asarray(fitted.model.log_prob(as_top_lists(table, table.items)))
