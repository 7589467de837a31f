"""Full rankings of agents against a sum over all rankings and all groups of all draws."""

from __future__ import annotations

import warnings
from functools import cache

import numpy as np
import pytest

import permix
from permix.bayes_mallows.completions import draw_rankings_of
from tests.oracles import bayes_mallows as oracle

N_DRAWS = 4000
# Of the fifty numbers of a row one is beyond five standard errors in ten thousand tests.
BOUND = 5.0
CASES = [
    ("kendall", None, 7),
    ("footrule", None, 7),
    ("ulam", None, 5),
    ("cayley", None, 7),
    ("kendall", "bernoulli", 7),
    ("hamming", "logistic", 5),
    ("spearman", "logistic", 7),
]


def said(n, errors):
    """What a few agents say, as permix takes it and as the oracle does."""
    cycle = [(2, 0), (0, 2), (2, 0), (3, 1)] if errors else [(2, 0), (3, 1), (4, 3)]
    pairs = [("compares", a, b) for a, b in cycle]
    compares = permix.Preferences.from_pairs(pairs, items=range(n), on_cycle="keep")
    rows = [((1, 4), "below"), ((3, 0, 2), "unknown"), (tuple(reversed(range(n))), "below")]
    ranked = [
        permix.Preferences.from_rankings(
            permix.Rankings.from_orders([order], items=range(n), unlisted=unlisted, agents=[f"agent {at}"])
        )
        for at, (order, unlisted) in enumerate(rows)
    ]
    agents = [oracle.top((1, 4), n), oracle.subset((3, 0, 2)), oracle.full(rows[2][0])]
    table = permix.Preferences.concat([*ranked, compares])
    return table, [*(oracle.surely(each) for each in agents), oracle.compared(*cycle)]


@cache
def fitted(distance, errors, n):
    made = permix.datasets.make_mallows_mixture(14, n, 2, dispersion=0.5, random_state=3)
    options = {"n_draws": 6, "n_burn_in": 30, "n_thin": 5, "random_state": 1, "progress": False}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about few draws
        model = permix.BayesianMallowsMixture("dp", distance=distance, errors=errors, **options)
        return model.fit(made.data)


@cache
def far_from(distance, center):
    """Distances of all rankings from a center."""
    function = oracle.DISTANCES[distance]
    return np.array([function(order, center) for order in oracle.orderings(len(center))], float)


@cache
def chances_of(pairs, n, *error):
    """P(what an agent says | ranking), of all rankings."""
    says = oracle.logistic if error else oracle.no_errors
    return np.array([says(order, pairs, error) for order in oracle.orderings(n)])


def enumerated(model, pairs, *, weighted=True):
    """P(ranking and group | what an agent says): (groups of all draws, rankings), new groups last."""
    fit, n = model._fit, len(model.items_)
    groups, orders = fit.groups, oracle.orderings(n)
    logs, new = [], []
    for d in range(groups.n_draws):
        weights = groups.log_weights(d)
        logs += weights[:-1].tolist()
        new.append(weights[-1])
    draw_of = [*groups.draw_of.tolist(), *range(groups.n_draws)]
    joint = np.zeros((len(draw_of), len(orders)))
    for at, (d, log_weight) in enumerate(zip(draw_of, [*logs, *new], strict=True)):
        scores = np.zeros(len(orders))
        if at < len(logs):
            center = tuple(groups.centers[at].tolist())
            scores = -groups.decays[at] * far_from(fit.settings.distance, center)
        chances = chances_of(pairs, n, *([] if fit.settings.errors is None else groups.errors[d].tolist()))
        weight = np.exp(log_weight) if weighted else 1.0
        joint[at] = weight * np.exp(scores) / np.exp(scores).sum() * chances
    return joint / joint.sum(), [*fit.overlap.linked.tolist(), *[-1] * groups.n_draws]


def numbers(probabilities, orders):
    """P(a before b) of all pairs, and P(rank)."""
    ranks = np.argsort(np.array(orders), axis=1)
    before = np.einsum("r,rab->ab", probabilities, (ranks[:, :, None] < ranks[:, None, :]).astype(float))
    places = [np.bincount(ranks[:, item], probabilities, ranks.shape[1]) for item in range(ranks.shape[1])]
    return np.concatenate([before.ravel(), np.ravel(places)])


def gaps(model, drawn, row, joint, labels):
    """How many standard errors frequencies are from the probabilities."""
    n = len(model.items_)
    truth = numbers(joint.sum(axis=0), oracle.orderings(n))
    found = numbers(np.full(N_DRAWS, 1.0 / N_DRAWS), np.argsort(drawn.ranks[row], axis=1))
    n_groups = max(labels) + 1
    by_group = joint.sum(axis=1)
    shares = [by_group[np.array(labels) == group].sum() for group in range(-1, n_groups)]
    frequencies = np.bincount(drawn.labels[row] + 1, minlength=n_groups + 1) / N_DRAWS
    truth, found = np.append(truth, shares), np.append(found, frequencies)
    error = np.sqrt(np.maximum(truth * (1.0 - truth), 1.0 / N_DRAWS) / N_DRAWS)
    return np.abs(found - truth) / error


@pytest.mark.parametrize(("distance", "errors", "n"), CASES)
def test_rankings_drawn_have_the_posterior(distance, errors, n):
    model = fitted(distance, errors, n)
    table, agents = said(n, errors)
    drawn = draw_rankings_of(model._fit, table, N_DRAWS, 5)
    for row, pairs in enumerate(agents):
        assert gaps(model, drawn, row, *enumerated(model, pairs)).max() < BOUND, row
    assert drawn.exact[2]
    assert drawn.exact.all() == (n <= 6)


def test_twins_are_rejected():
    """One forgets what was said, the other how large groups are."""
    model = fitted("footrule", None, 7)
    table, agents = said(7, None)
    drawn = draw_rankings_of(model._fit, table, N_DRAWS, 5)
    assert gaps(model, drawn, 0, *enumerated(model, oracle.nothing())).max() > 4 * BOUND
    assert gaps(model, drawn, 1, *enumerated(model, agents[1], weighted=False)).max() > 2 * BOUND


def test_answers_are_those_of_the_draws():
    model = fitted("footrule", None, 5)
    table, agents = said(5, None)
    completed, ranks = model.complete(table, n_samples=2000, return_ranks=True)
    before, errors = model.predict_pairwise(table, n_samples=2000, return_error=True)
    top = model.predict_top(table, 2, n_samples=2000)
    for row, pairs in enumerate(agents):
        joint, _ = enumerated(model, pairs)
        truth = numbers(joint.sum(axis=0), oracle.orderings(5))
        places = truth[25:].reshape(5, 5)
        np.testing.assert_allclose(before[row].ravel(), truth[:25], atol=0.06)
        np.testing.assert_allclose(top[row], places[:, :2].sum(axis=1), atol=0.06)
        np.testing.assert_allclose(ranks.mean[row], places @ np.arange(1, 6), atol=0.1)
        stated = [order for order in [completed.orders[row].tolist()] if oracle.no_errors(order, pairs)]
        assert stated  # what was said holds
    certain = (before == 0.0) | (before == 1.0)
    assert np.all(errors[certain] == 0.0)
    one = model.predict_pairwise(table, [(1, 4, 1), (0, 0, 2)], n_samples=2000)
    np.testing.assert_array_equal(one, [before[1, 4, 1], before[0, 0, 2]])


def test_equal_rows_have_equal_draws_and_seeds_matter():
    model = fitted("footrule", None, 7)
    table, _ = said(7, None)
    twice = permix.Preferences.concat([table[[0]], table[[0]]._replaced(agents=np.array(["again"]))])
    first = model.sample_completions(twice, 20, random_state=1)
    np.testing.assert_array_equal(first.orders[0], first.orders[1])
    again = model.sample_completions(twice, 20, random_state=1)
    np.testing.assert_array_equal(first.orders, again.orders)
    assert np.any(model.sample_completions(twice, 20, random_state=2).orders != first.orders)


def test_recommendations_leave_out_what_is_known():
    model = fitted("footrule", None, 7)
    table, _ = said(7, None)
    found = model.recommend(table[[0]], n=3)
    assert len(found) == 3
    assert not set(found["item"]) & {1, 4}
    assert found["expected_rank"].is_monotonic_increasing


def test_new_rankings_are_drawn_around_centers():
    model = fitted("footrule", None, 7)
    drawn, labels = model.sample(300, random_state=1, return_labels=True)
    assert len(drawn) == 300
    assert set(labels.tolist()) <= {-1, *range(model.n_clusters_)}
