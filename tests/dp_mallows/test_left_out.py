"""A list given all others: left out of its own cluster, against naive sums; and chains weighed by it."""

from __future__ import annotations

import math
from itertools import permutations

import numpy as np
import pytest

from permix.data.rankings import Rankings
from permix.dp_mallows import left_out
from permix.dp_mallows.draws import ClusterDraws
from permix.dp_mallows.fit import draw_clusters, exact_model, stacked
from permix.dp_mallows.left_out import log_left_out, weights_without
from permix.dp_mallows.parameters import DPMallowsParameters
from permix.partitions import DirichletProcess, MixtureOfFiniteMixtures, PitmanYor
from permix.sampling import Draws
from tests.dp_mallows.list_cases import FIVE, model_of, placed
from tests.oracles.dp_mallows import Enumeration, mixture_of_finite_mixtures, pitman_yor

STRENGTH, RATES = 1.5, (0.5, 1.0, 1.5)
LABELS = (0, 0, 1, 0, 2)
CENTERS = ((0, 1, 2, 3), (3, 2, 0, 1), (2, 0, 3, 1))
PRIORS = {
    "dp": (DirichletProcess(0.7), pitman_yor(0.7, 0.0)),
    "pitman-yor": (PitmanYor(0.4, 0.3), pitman_yor(0.4, 0.3)),
    "mfm": (MixtureOfFiniteMixtures(2.0, 0.6), mixture_of_finite_mixtures(2.0, 0.6)),
}


def clusters_of(prior, labels=LABELS, centers=CENTERS):
    sizes = np.bincount(labels)
    return ClusterDraws(
        starts=np.array([0, len(sizes)]),
        sizes=sizes,
        centers=np.array(centers, dtype=np.int32),
        theta=np.ones((len(sizes), 3)),
        labels=np.array([labels], dtype=np.int32),
        concentration=np.array([getattr(prior, "concentration", 0.0)]),
        prior=prior,
    )


def naive(agent, rule):
    """Σ over clusters without the agent of prior weight × p(list | lists there, center), and a new one."""
    enumeration = Enumeration(FIVE, 4, rule, STRENGTH, RATES)
    index = {order: i for i, order in enumerate(permutations(range(4)))}
    others = [i for i in range(len(FIVE)) if i != agent]
    there = sorted({LABELS[i] for i in others})
    rest = tuple(there.index(LABELS[i]) for i in others)
    first = list(dict.fromkeys(rest))  # the oracle's labels are canonical
    rest = tuple(first.index(label) for label in rest)
    total = 0.0
    for seat in range(len(there) + 1):
        weight = rule((*rest, seat)) / rule(rest)
        if seat == len(there):
            new = enumeration.observed[agent]
            total += weight * math.factorial(4 - len(new)) / math.factorial(4)
            continue
        members = tuple(
            enumeration.observed[i] for i, label in zip(others, rest, strict=True) if label == seat
        )
        center = index[CENTERS[there[first[seat]]]]
        with_it = enumeration._scores((*members, enumeration.observed[agent]))[center]
        total += weight * math.exp(with_it - enumeration._scores(members)[center])
    return total


def found(prior):
    state = placed(model_of(FIVE, 4, prior, STRENGTH, RATES), LABELS, CENTERS)
    return np.exp(log_left_out(state, weights_without(clusters_of(prior), 0), np.arange(len(FIVE))))


@pytest.mark.parametrize("name", PRIORS)
def test_lists_given_all_others(name):
    prior, rule = PRIORS[name]
    exact = [naive(agent, rule) for agent in range(len(FIVE))]
    np.testing.assert_allclose(found(prior), exact, rtol=1e-7)


def test_a_list_must_not_count_in_its_own_cluster(monkeypatch):
    honest = left_out._tables
    monkeypatch.setattr(left_out, "_tables", lambda *known: (honest(*known)[0],) * 2)
    prior, rule = PRIORS["dp"]
    exact = np.array([naive(agent, rule) for agent in range(len(FIVE))])
    wrong = np.abs(np.log(found(prior) / exact))
    assert (wrong[[0, 1, 3]] > 0.05).all()
    assert (wrong[[2, 4]] < 1e-7).all()  # alone in their clusters, which are gone without them


def test_a_chain_that_predicts_nothing_counts_for_nothing():
    """Two camps: one chain has found them, the other has everybody in random groups."""
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1], 30)
    lists = [(0, 1, 2, 3, 4) if camp == 0 else (4, 3, 2, 1, 0) for camp in truth]
    settings = DPMallowsParameters(prior_strength=1.0, prior_rate=1.0)
    model = exact_model(Rankings.from_orders(lists, n_items=5), settings)
    labels = np.stack([np.tile(truth, (40, 1)), rng.integers(2, size=(40, 60))]).astype(np.uint8)
    numbers = np.where(np.arange(2)[:, None] == 0, 1.0, 2.0) + 0.01 * rng.random((2, 40))
    draws = Draws(arrays={"labels": labels, "log_joint": numbers}, statistics={}, n_draws=40, seeds=())
    plain = draw_clusters(model, settings, draws)
    assert (plain.labels == truth).all(axis=1).mean() == 0.5
    agents = left_out.stacked_agents(draws)
    assert agents is not None
    chosen = stacked(model, settings, draws, plain, agents)
    assert (chosen.labels == truth).all(axis=1).mean() > 0.95


def test_chains_that_agree_are_not_weighed():
    rng = np.random.default_rng(1)
    arrays = {"labels": np.zeros((2, 400, 5), np.uint8), "log_joint": rng.normal(size=(2, 400))}
    assert left_out.stacked_agents(Draws(arrays=arrays, statistics={}, n_draws=400, seeds=())) is None
