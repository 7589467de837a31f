"""Bayesian Mallows models by enumeration of everything: centers, dispersions, rankings, errors, partitions.

Straight from the definitions, by NumPy and itertools alone. Items are 0..n-1, orderings are tuples, best
first, and everything over orderings follows ``orderings(n)``. An agent is a tuple of comparisons (better,
worse): ``full``, ``top``, ``subset``, ``levels`` and ``compared`` write them; ``nothing`` is an agent who is
silent (whose ranking is the prediction of a new agent). Who says a thing twice has it twice, and a row with
a count is so many agents.

Continuous parameters are on a grid: of ``Grid.values`` with the probabilities ``Grid.prior``. A mixture is a
prior over partitions of the agents, as a rule of ``tests.oracles.partitions``; a fixed number of components
is ``finite_dirichlet_rule``. Answers name no groups: what holds for agent j's group stands in row j.
The broken twins at the end have one deliberate mistake each, which the tests must notice.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from itertools import combinations, pairwise, permutations, product

import numpy as np

from tests.oracles.partitions import Rule, restricted_growth_strings, sequential_probability

# -- distances -------------------------------------------------------------------------------------


@cache
def orderings(n):
    return list(permutations(range(n)))


def ranks(order):
    """The rank of each item, from 0."""
    found = [0] * len(order)
    for rank, item in enumerate(order):
        found[item] = rank
    return found


def kendall(a, b):
    a, b = ranks(a), ranks(b)
    return sum((a[i] - a[j]) * (b[i] - b[j]) < 0 for i, j in combinations(range(len(a)), 2))


def footrule(a, b):
    return sum(abs(x - y) for x, y in zip(ranks(a), ranks(b), strict=True))


def spearman(a, b):
    return sum((x - y) ** 2 for x, y in zip(ranks(a), ranks(b), strict=True))


def hamming(a, b):
    return sum(x != y for x, y in zip(a, b, strict=True))


def cayley(a, b):
    """The fewest exchanges of two items, found by making them: each puts one item where it belongs."""
    a, steps = list(a), 0
    for place, item in enumerate(b):
        if a[place] != item:
            other = a.index(item)
            a[place], a[other] = a[other], a[place]
            steps += 1
    return steps


def ulam(a, b):
    """How many items must be taken out and put elsewhere: all but a longest common subsequence."""
    n = len(a)
    return n - max(
        size
        for size in range(1, n + 1)
        for kept in combinations(a, size)
        if all(b.index(x) < b.index(y) for x, y in pairwise(kept))
    )


DISTANCES = {each.__name__: each for each in (kendall, footrule, spearman, cayley, hamming, ulam)}


@cache
def distances(name, n):
    """Of every ordering (rows) from every center (columns); not to be changed."""
    function = DISTANCES[name]
    return np.array([[function(r, center) for center in orderings(n)] for r in orderings(n)], float)


# -- what agents say -------------------------------------------------------------------------------


def nothing():
    return ()


def full(order):
    """All pairs of a ranking of all items."""
    return tuple(combinations(order, 2))


subset = full  # a ranking of some items: nothing about the others


def top(best, n):
    """A list of the best items, in order: the rest is below."""
    rest = [item for item in range(n) if item not in best]
    return (*combinations(best, 2), *product(best, rest))


def levels(*groups):
    """Tied levels of some or all items, best first: nothing about two items of one level."""
    return tuple(pair for above, below in combinations(groups, 2) for pair in product(above, below))


def compared(*pairs):
    """Comparisons (better, worse) one by one; those asked twice count twice, contradictions may occur."""
    return tuple(pairs)


def surely(pairs):
    """Pairs that cannot be errors, beside others that may be: levels hold under models of errors, too."""
    return tuple((a, b, "sure") for a, b in pairs)


# -- priors on grids -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Grid:
    """A parameter on a grid."""

    values: np.ndarray  # (points,) or (points, parameters)
    prior: np.ndarray  # (points,)

    def __post_init__(self):
        assert len(self.values) == len(self.prior)
        assert math.isclose(self.prior.sum(), 1.0)


def point(value):
    """A parameter that is known."""
    return Grid(np.array([value], float), np.ones(1))


def middles(density, low, high, size):
    """Grid of the middles of equal intervals, weighted by a density that need not be normalized."""
    values = low + (high - low) * (np.arange(size) + 0.5) / size
    weights = np.array([density(value) for value in values])
    return Grid(values, weights / weights.sum())


def gamma(shape, rate, high, size):
    """Gamma prior of a decay up to ``high``, beyond which nothing should be left."""
    return middles(lambda x: x ** (shape - 1) * np.exp(-rate * x), 0.0, high, size)


def beta_below_half(a, b, size):
    """Beta prior of an error rate, restricted to [0, 1/2)."""
    return middles(lambda x: x ** (a - 1) * (1 - x) ** (b - 1), 0.0, 0.5, size)


def both(first, second):
    """Grid of two independent parameters."""
    values = np.array(list(product(first.values, second.values)))
    return Grid(values, np.array([p * q for p, q in product(first.prior, second.prior)]))


# -- errors ----------------------------------------------------------------------------------------


def no_errors(order, pairs, parameters=None):
    """P(what was said | ranking): 1 where all of it agrees."""
    return float(all(order.index(a) < order.index(b) for a, b, *_ in pairs))


def bernoulli(order, pairs, rate):
    """Each comparison is wrong with one probability."""
    firm, stated = _firm_and_stated(pairs)
    found = no_errors(order, firm)
    return found * math.prod(1 - rate if order.index(a) < order.index(b) else rate for a, b in stated)


def logistic(order, pairs, parameters):
    """A comparison is wrong with probability logistic(-b0 - b1 (|r_a - r_b| - 1)): seldom where far apart."""
    b0, b1 = parameters
    firm, stated = _firm_and_stated(pairs)
    found = no_errors(order, firm)
    for a, b in stated:
        apart = abs(order.index(a) - order.index(b))
        wrong = 1 / (1 + math.exp(b0 + b1 * (apart - 1)))
        found *= 1 - wrong if order.index(a) < order.index(b) else wrong
    return found


def _firm_and_stated(pairs):
    return [pair for pair in pairs if len(pair) == 3], [pair for pair in pairs if len(pair) == 2]


# -- the model -------------------------------------------------------------------------------------


def one_group(sizes):
    return [1.0, *[0.0] * len(sizes)] if sizes else [1.0]


@dataclass(frozen=True)
class Model:
    """A prior over everything."""

    n: int
    distance: str
    decays: Grid  # lambda >= 0: the dispersion is exp(-lambda)
    centers: np.ndarray | None = None  # prior of each of orderings(n); None: all alike
    rule: Rule = one_group  # prior over partitions of the agents
    says: object = no_errors  # P(said | ordering, parameters of errors)
    errors: Grid | None = None  # parameters of errors, of everybody
    per_agent: bool = False  # errors are drawn for each agent anew
    partitions: object = None  # labels -> prior probability, in place of a rule, where agents differ

    def log_rankings(self):
        """ln P(ordering | decay, center), as (decays, orderings, centers)."""
        scores = -self.decays.values[:, None, None] * distances(self.distance, self.n)
        return scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))

    def said(self, agents):
        """P(what each agent said | ordering, parameters of errors), as (parameters, agents, orderings)."""
        parameters = [None] if self.errors is None else self.errors.values
        return np.array(
            [
                [[self.says(r, pairs, each) for r in orderings(self.n)] for pairs in agents]
                for each in parameters
            ]
        )


@dataclass(frozen=True)
class Posterior:
    """What follows from what agents said. Each row of arrays over agents is about the group of that agent."""

    evidence: float  # P(everything said)
    partitions: dict  # labels (by first appearance) -> probability
    centers: np.ndarray  # (agents, orderings): of the center of the agent's group
    decays: np.ndarray  # (agents, grid): of the decay of the agent's group
    rankings: np.ndarray  # (agents, orderings): of the agent's own full ranking
    errors: np.ndarray  # (grid,) of the rate of everybody, or (agents, grid)
    model: Model

    @property
    def together(self):
        """P(two agents are in one group)."""
        n = len(self.rankings)
        found = np.zeros((n, n))
        for labels, probability in self.partitions.items():
            found += probability * np.equal.outer(labels, labels)
        return found

    @property
    def n_groups(self):
        """P(so many groups), from 0."""
        found = np.zeros(len(self.rankings) + 1)
        for labels, probability in self.partitions.items():
            found[max(labels) + 1] += probability
        return found

    def mean_decay(self, agent=0):
        return float(self.decays[agent] @ self.model.decays.values)

    def decay_cdf(self, value, agent=0):
        """P(decay of the agent's group <= value)."""
        return float(self.decays[agent][self.model.decays.values <= value].sum())

    def mean_errors(self):
        """Mean parameters of errors, of everybody or of each agent."""
        return self.errors @ self.model.errors.values

    def before(self, agent=0):
        """P(the agent ranks a before b)."""
        return _before(self.rankings[agent], self.model.n)

    def center_before(self, agent=0):
        """P(the center of the agent's group has a before b)."""
        return _before(self.centers[agent], self.model.n)

    def rank_probabilities(self, agent=0):
        """P(item has rank k in the agent's ranking), as (items, ranks)."""
        return _at_ranks(self.rankings[agent], self.model.n)

    def center_rank_probabilities(self, agent=0):
        return _at_ranks(self.centers[agent], self.model.n)


def _before(probabilities, n):
    found = np.zeros((n, n))
    for r, p in zip(orderings(n), probabilities, strict=True):
        for a, b in combinations(r, 2):
            found[a, b] += p
    return found


def _at_ranks(probabilities, n):
    found = np.zeros((n, n))
    for r, p in zip(orderings(n), probabilities, strict=True):
        for rank, item in enumerate(r):
            found[item, rank] += p
    return found


def posterior(model, agents):
    """Sum over everything. Partitions of more than six agents take long."""
    log_rankings = model.log_rankings()
    return _posterior(model, agents, np.exp(log_rankings))


def _posterior(model, agents, rankings):
    said = model.said(agents)
    error_prior = np.ones(1) if model.errors is None else model.errors.prior
    by_error = said
    if model.per_agent:  # each agent's own are summed out at once, and found again at the end
        said, error_prior = np.tensordot(error_prior, said, 1)[None], np.ones(1)
    n_centers = len(orderings(model.n))
    centers = np.full(n_centers, 1.0 / n_centers) if model.centers is None else model.centers
    prior = model.decays.prior[:, None] * centers  # (decays, centers)
    likelihood = np.einsum("lrc,ejr->ejlc", rankings, said)  # of an agent, the own ranking summed out
    n, n_errors, n_rankings = len(agents), len(error_prior), len(orderings(model.n))
    of_labels = model.partitions or (lambda labels: sequential_probability(labels, model.rule))
    labelings = [labels for labels in restricted_growth_strings(n) if of_labels(labels) > 0.0]
    blocks = {
        members: prior * likelihood[:, list(members)].prod(axis=1)  # (errors, decays, centers)
        for members in {block for labels in labelings for block in _blocks(labels)}
    }
    total = {members: weights.sum(axis=(1, 2)) for members, weights in blocks.items()}
    partitions, of_errors = {}, np.zeros(n_errors)
    of_blocks = {members: np.zeros(n_errors) for members in blocks}  # joint with the data
    for labels in labelings:
        joint = error_prior * of_labels(labels)
        for members in _blocks(labels):
            joint = joint * total[members]
        partitions[labels] = joint.sum()
        of_errors += joint
        for members in _blocks(labels):
            of_blocks[members] += joint
    evidence = float(of_errors.sum())
    assert evidence > 0.0
    of_centers, of_decays = np.zeros((n, n_centers)), np.zeros((n, len(model.decays.values)))
    of_rankings = np.zeros((n, n_rankings))
    own_errors = np.zeros((n, len(by_error)))
    for members, joint in of_blocks.items():
        inside = total[members] > 0.0
        scale = np.zeros(n_errors)
        scale[inside] = joint[inside] / total[members][inside]
        given = scale[:, None, None] * blocks[members]  # P(errors, decay, center, these together, data)
        for j in members:
            of_centers[j] += given.sum(axis=(0, 1))
            of_decays[j] += given.sum(axis=(0, 2))
            without = np.divide(given, likelihood[:, j], where=likelihood[:, j] > 0, out=np.zeros_like(given))
            latent = np.einsum("elc,lrc->er", without, rankings)  # (errors, orderings), but for what j said
            of_rankings[j] += (latent * said[:, j]).sum(axis=0)
            if model.per_agent:
                own_errors[j] += model.errors.prior * (by_error[:, j] @ latent[0])
    return Posterior(
        evidence=evidence,
        partitions={labels: p / evidence for labels, p in partitions.items()},
        centers=of_centers / evidence,
        decays=of_decays / evidence,
        rankings=of_rankings / evidence,
        errors=own_errors / evidence if model.per_agent else of_errors / evidence,
        model=model,
    )


def predictive(model, agents, new):
    """P(what a new agent says | what the others said)."""
    return posterior(model, (*agents, new)).evidence / posterior(model, agents).evidence


def _blocks(labels):
    return [tuple(j for j, z in enumerate(labels) if z == k) for k in range(max(labels) + 1)]


# -- broken twins ----------------------------------------------------------------------------------


def without_normalizers(model, agents):
    """Forget that the normalizer changes with the decay."""
    scores = -model.decays.values[:, None, None] * distances(model.distance, model.n)
    return _posterior(model, agents, np.exp(scores) / len(orderings(model.n)))


def said_once(model, agents):
    """Count a comparison that was asked twice once."""
    return posterior(model, tuple(tuple(dict.fromkeys(pairs)) for pairs in agents))


def footrule_of_places(a, b):
    """Compare what stands at each place instead of where each item stands."""
    return sum(abs(x - y) for x, y in zip(a, b, strict=True))
