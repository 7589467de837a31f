"""P(ranking, component | what an agent said) under a distance: sums over the full rankings that agree."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from permix.data.labels import Array
from permix.data.preferences import Preferences
from permix.distributions.conditioning.agent_posteriors import Profile
from permix.distributions.conditioning.components import MallowsComponents
from permix.distributions.distances.centers import centers_for
from permix.distributions.distances.normalizer import normalizer
from permix.estimators.agent_answers import Questions
from permix.mallows.distances.em import log_scores
from permix.mallows.distances.listed import Listed, in_blocks
from permix.mallows.posterior import DOWN_SETS, MixturePosterior

TAIL = 0.05


class ListedPosterior(MixturePosterior):
    """Posterior of every agent, exact; see :class:`permix.mallows.posterior.MixturePosterior`.

    Agents who said nothing have the probabilities of the mixture; their rankings are listed when needed.
    """

    def __init__(self, components: MallowsComponents, agents: Preferences) -> None:
        self.components = components
        self.profile = profile = Profile.of(agents)
        self.n_agents, k = len(agents), components.n_components
        self.ways = np.full(self.n_agents, DOWN_SETS)
        self.errors = np.zeros((self.n_agents, k))
        self.log_probabilities = values = np.zeros((self.n_agents, k))
        rows = profile.stated
        for part, listed in in_blocks(profile.preferences[rows], components.distance):
            for at, scores in enumerate(self._scores(listed)):
                values[rows[part], at] = listed.log_sums(scores)
        self.log_joint = values + components.log_weights_of(agents)

    @cached_property
    def log_totals(self) -> Array:
        """Logarithm of each component's sum over all rankings."""
        sums = normalizer(self.components.distance, self.components.n_items)
        return np.asarray(sums.values(self.components.decays)[0])

    def _scores(self, listed: Listed) -> Array:
        """Return ln P(ranking | component), (K, rankings)."""
        components = self.components
        distances = centers_for(components.distance, listed.orders).distances(components.centers)
        return log_scores(distances, components.decays, self.log_totals)

    def before(
        self, questions: Questions, n_samples: int, rng: np.random.Generator, ranges: Array | None = None
    ) -> tuple[Array, Array]:
        """P(a before b | v) and its standard error, which is 0, for all questions.

        ``ranges`` (agents, 2, items) is filled with 5 % and 95 % ranks of those who are asked something.
        """
        means = np.zeros(questions.n_answers)
        rows = np.flatnonzero(questions.span[:, 1] > questions.span[:, 0])
        for part, listed in in_blocks(self.profile.preferences[rows], self.components.distance):
            here = rows[part]
            weights = self._weights(here, listed)
            ranks = self._ranks(listed)
            asked = questions.span[here, 1] - questions.span[here, 0]
            row = np.repeat(np.arange(len(here)), asked)
            within = np.arange(len(row)) - np.repeat(np.cumsum(asked) - asked, asked)
            place = np.repeat(questions.span[here, 0], asked) + within
            answer = np.repeat(questions.out_start[here], asked) + within
            first, second = questions.first[place], questions.second[place]
            n = self.components.n_items
            pairs, which = np.unique(first.astype(np.int64) * n + second, return_inverse=True)
            for at, (a, b) in enumerate(zip(*divmod(pairs, n), strict=True)):
                found = np.add.reduceat(weights * (ranks[:, a] < ranks[:, b]), listed.starts[:-1])
                mine = which.ravel() == at
                means[answer[mine]] = found[row[mine]]
            if ranges is not None:
                self._fill_ranges(here, listed, weights, ranks, ranges)
        return np.clip(means, 0.0, 1.0), np.zeros(len(means))

    def _weights(self, rows: Array, listed: Listed) -> Array:
        """Return P(ranking | v) of the rankings of each row, summed over components, (entries,)."""
        total = np.zeros(int(listed.starts[-1]))
        each, shares = np.diff(listed.starts), self.probabilities[rows]
        for k, scores in enumerate(self._scores(listed)):
            values = scores if listed.entries is None else scores[listed.entries]
            total += np.exp(values - np.repeat(listed.log_sums(scores), each)) * np.repeat(shares[:, k], each)
        return total

    def _ranks(self, listed: Listed) -> Array:
        ranks = np.argsort(listed.orders, axis=1)
        return ranks if listed.entries is None else ranks[listed.entries]

    def _fill_ranges(self, rows: Array, listed: Listed, weights: Array, ranks: Array, ranges: Array) -> None:
        """Write the ranks between which items are, less 5 % on either side."""
        n, row = self.components.n_items, listed.row_of
        for item in range(n):
            at = np.bincount(row * n + ranks[:, item], weights, len(rows) * n).reshape(len(rows), n)
            upto = np.cumsum(at, axis=1)
            total = upto[:, -1:]
            ranges[rows, 0, item] = 1 + (upto <= TAIL * total * (1.0 + 1e-9)).sum(axis=1)
            ranges[rows, 1, item] = 1 + (upto < (1.0 - TAIL) * total * (1.0 - 1e-9)).sum(axis=1)

    def draw_exactly(self, rows: Array, size: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Draw rankings and components from P(r, z | v), independently."""
        labels = self.draw_labels(rows, size, rng)
        uniforms = rng.random(labels.shape)
        orders = np.empty((len(rows), size, self.components.n_items), dtype=np.int32)
        for part, listed in in_blocks(self.profile.preferences[rows], self.components.distance):
            scores = self._scores(listed)
            for row in range(part.start, part.stop):
                first, last = listed.starts[row - part.start : row - part.start + 2].tolist()
                ranking = np.arange(first, last)
                if listed.entries is not None:
                    ranking = listed.entries[first:last]
                for k in np.unique(labels[row]).tolist():
                    mine = labels[row] == k
                    values = scores[k][ranking]
                    ends = np.cumsum(np.exp(values - values.max()))
                    chosen = np.searchsorted(ends, uniforms[row, mine] * ends[-1], side="right")
                    orders[row, mine] = listed.orders[ranking[np.minimum(chosen, len(ends) - 1)]]
        return orders, labels
