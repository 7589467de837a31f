"""Data and models of the exactness tests, as permix takes them and as the oracle does; and runs of chains."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

import permix
from permix.bayes_mallows.data import as_statements, bayes_model
from permix.bayes_mallows.fit import first_state, sweep_move
from permix.bayes_mallows.parameters import BayesianMallowsParameters
from tests.oracles import bayes_mallows as oracle
from tests.oracles.partitions import (
    dirichlet_process_rule,
    finite_dirichlet_rule,
    finite_mixtures_rule,
    pitman_yor_rule,
    shifted_poisson,
)

ITEMS = [0, 1, 2, 3]
DECAY_PRIOR = (2.0, 3.0)
ERROR_PRIORS = {"bernoulli": (1.0, 3.0), "logistic": (1.0, 1.5)}
FORMS = ("full", "top", "subset", "levels", "pairs", "mixed")
PRIORS = {
    "one": (1, oracle.one_group),
    "two": (2, finite_dirichlet_rule(2, 1.0)),
    "dp": (permix.DirichletProcess(0.7), dirichlet_process_rule(0.7)),
    "pitman-yor": (permix.PitmanYor(0.5, 0.3), pitman_yor_rule(0.5, 0.3)),
    "mfm": (permix.MixtureOfFiniteMixtures(1.0, 1.5), finite_mixtures_rule(shifted_poisson(1.0), 1.5)),
}
ERRORS = ("none", "bernoulli", "bernoulli per agent", "logistic", "logistic per agent")


@dataclass(frozen=True)
class Data:
    """The same agents for permix and for the oracle."""

    table: permix.Preferences
    agents: tuple


@cache
def five_of(form):
    """Three agents and five items."""
    if form == "full":
        orders = [(0, 1, 2, 3, 4), (1, 0, 2, 4, 3), (4, 2, 3, 1, 0)]
        return Data(_rankings(orders, items=range(5)), tuple(oracle.full(order) for order in orders))
    if form == "top":
        lists = [(4, 1), (0,), (2, 1, 3)]
        return Data(_rankings(lists, items=range(5)), tuple(oracle.top(best, 5) for best in lists))
    if form == "subset":
        lists = [(0, 4, 3), (3, 2), (1, 0, 2, 4)]
        table = _rankings(lists, unlisted="unknown", items=range(5))
        return Data(table, tuple(oracle.subset(each) for each in lists))
    said = [((0, 1), (1, 4), (3, 4)), ((2, 0),), ((0, 2), (4, 3), (1, 2), (1, 2))]
    if form == "contradictions":
        said = [((0, 1), (1, 4), (4, 0), (0, 1)), ((2, 3), (3, 2), (2, 3)), ((0, 4), (1, 3))]
    return Data(_pairs(said, items=range(5)), tuple(oracle.compared(*each) for each in said))


def _rankings(orders, unlisted="below", items=ITEMS, **options):
    table = permix.Rankings.from_orders(orders, items=list(items), unlisted=unlisted, **options)
    return permix.Preferences.from_rankings(table)


@cache
def data_of(form):
    """A few agents; one row stands for two of them."""
    if form == "full":
        orders = [(0, 1, 2, 3), (0, 2, 1, 3), (3, 2, 1, 0)]
        agents = [oracle.full(orders[row]) for row in (0, 1, 1, 2)]
        return Data(_rankings(orders, counts=[1, 2, 1]), tuple(agents))
    if form == "top":
        lists = [(0, 1), (0,), (2, 1)]
        agents = [oracle.top(lists[row], 4) for row in (0, 1, 2, 2)]
        return Data(_rankings(lists, counts=[1, 1, 2]), tuple(agents))
    if form == "subset":
        lists = [(0, 1, 3), (3, 2), (0, 3, 2)]
        return Data(
            _rankings(lists, unlisted="unknown", counts=[2, 1, 1]),
            tuple(oracle.subset(lists[row]) for row in (0, 0, 1, 2)),
        )
    if form == "levels":
        groups = [((0, 1), (2, 3)), ((2,), (0, 1, 3)), ((0,), (1, 2), (3,))]
        table = permix.Preferences.from_levels([[list(g) for g in each] for each in groups], items=ITEMS)
        return Data(table, tuple(oracle.levels(*each) for each in groups))
    if form == "pairs":
        said = [((0, 1), (1, 3)), ((2, 0),), ((0, 2), (0, 3), (1, 2), (1, 2))]
        return Data(_pairs(said), tuple(oracle.compared(*each) for each in said))
    if form == "contradictions":
        said = [((0, 1), (1, 3), (3, 0), (0, 1)), ((2, 0), (0, 2), (2, 0)), ((0, 3), (1, 3), (2, 3), (0, 2))]
        return Data(_pairs(said), tuple(oracle.compared(*each) for each in said))
    parts = [_rankings([(1, 0, 2, 3)]), _rankings([(3,)]), _pairs([((0, 1), (2, 1))])]
    ranked = [oracle.surely(oracle.full((1, 0, 2, 3))), oracle.surely(oracle.top((3,), 4))]
    return Data(permix.Preferences.concat(parts), (*ranked, oracle.compared((0, 1), (2, 1))))


def _pairs(said, items=ITEMS):
    rows = [(agent, *pair) for agent, pairs in enumerate(said) for pair in pairs]
    return permix.Preferences.from_pairs(rows, items=list(items), on_cycle="keep")


def settings_of(distance, prior="one", errors="none", **options):
    kind = errors.split()[0]
    return BayesianMallowsParameters(
        PRIORS[prior][0],
        distance=distance,
        decay_prior=permix.Gamma(*DECAY_PRIOR),
        errors=None if kind == "none" else kind,
        errors_per_agent=errors.endswith("per agent"),
        **{"error_prior": ERROR_PRIORS.get(kind), **options},
    )


DECAYS = oracle.gamma(*DECAY_PRIOR, 8.0, 240)


# Where centers are expected, and the dispersion around it.
EXPECTED = {"center_prior": (2, 0, 3, 1), "center_dispersion": 0.3}


def expected_centers(distance):
    """Prior probabilities of centers that are expected around a ranking."""
    place = oracle.orderings(4).index(EXPECTED["center_prior"])
    weights = EXPECTED["center_dispersion"] ** oracle.distances(distance, 4)[place]
    return weights / weights.sum()


def model_of(distance, prior="one", errors="none", n=4, **options):
    kind = errors.split()[0]
    if kind == "bernoulli":
        options |= {"says": oracle.bernoulli, "errors": oracle.beta_below_half(*ERROR_PRIORS[kind], 30)}
    elif kind == "logistic":
        rates = ERROR_PRIORS[kind]
        grids = [oracle.gamma(1.0, rate, 9.0 / rate, 22) for rate in rates]
        options |= {"says": oracle.logistic, "errors": oracle.both(*grids)}
    return oracle.Model(
        n,
        distance,
        DECAYS,
        rule=PRIORS[prior][1],
        per_agent=errors.endswith("per agent"),
        **options,
    )


@cache
def posterior_of(distance, form, prior="one", errors="none"):
    return oracle.posterior(model_of(distance, prior, errors), data_of(form).agents)


def expected(found, n_agents):
    """Means of what :func:`numbers_of` gives."""
    values, above = [], np.triu_indices(found.model.n, 1)
    for agent in range(n_agents):
        before, center = found.before(agent), found.center_before(agent)
        values += [before[above], center[above]]
        values += [[found.mean_decay(agent), found.decay_cdf(0.5, agent)]]
    values.append(found.together[np.triu_indices(n_agents, 1)])
    values.append(found.n_groups[1:])
    if found.model.errors is not None:
        mean = np.atleast_2d(found.errors) @ found.model.errors.values.reshape(len(found.errors.T), -1)
        values.append(mean.ravel())
    return np.concatenate([np.ravel(each) for each in values])


@cache
def pairs_of(n):
    """The first and the second of all pairs of so many."""
    return np.triu_indices(n, 1)


def numbers_of(state):
    """What the present state says of the same."""
    model, labels = state.model, state.labels[state.model.in_turn]
    n, (first, second) = len(labels), pairs_of(model.n_items)
    rankings, centers = state.rankings[model.ranking_of[model.in_turn]], state.centers[labels]
    decays = state.decays[labels][:, None]
    by_agent = np.hstack(
        [
            rankings[:, first] < rankings[:, second],
            centers[:, first] < centers[:, second],
            decays,
            decays <= 0.5,
        ]
    )
    one, other = pairs_of(n)
    values = [by_agent.ravel(), labels[one] == labels[other], np.arange(1, n + 1) == state.n_clusters]
    if model.errors == 1:
        values.append(state.rates)
    elif model.errors == 2:
        values.append((state.errors[model.in_turn] if len(state.errors) > 1 else state.errors).ravel())
    return np.concatenate(values).astype(float)


def chain_numbers(data, settings, n_iterations, seed=0, move=None):
    """Numbers of every iteration of a chain, (iterations, numbers)."""
    model = bayes_model(as_statements(data.table), settings)
    rng = np.random.default_rng(seed)
    state = first_state(model, rng)
    move = move or sweep_move(model, settings)
    found = []
    for iteration in range(n_iterations):
        move.step(rng, state)
        if iteration >= 50:
            found.append(numbers_of(state))
    return np.array(found)


def z_scores(numbers, means, n_batches=40):
    """How many Monte Carlo errors, of batch means, chain means are from what they should be."""
    kept = len(numbers) // n_batches * n_batches
    batches = numbers[:kept].reshape(n_batches, -1, numbers.shape[1]).mean(axis=1)
    error = batches.std(axis=0, ddof=1) / np.sqrt(n_batches)
    gap = batches.mean(axis=0) - means
    # What never varies has no error of its own: then it must be right up to what a chain this long can miss.
    return gap / np.maximum(error, 2.0 / kept)
