"""``update``: draws that follow new data and are moved, against enumeration and against fitting again."""

from __future__ import annotations

import math

import numpy as np
import pytest

import permix
from permix.bayes_mallows.data import as_statements, bayes_model
from permix.bayes_mallows.following.particles import particles_of
from permix.errors import DataError
from tests.bayes_mallows.cases import data_of, model_of, settings_of
from tests.bayes_mallows.following.cases import evidence, means_of, numbers_of
from tests.oracles import bayes_mallows as oracle

RUNS = {"n_draws": 60, "n_thin": 3, "n_burn_in": 50, "n_chains": 24, "random_state": 3, "progress": False}


def model_with(settings, **runs):
    given = {name: getattr(settings, name) for name in settings.declared}
    return permix.BayesianMallowsMixture(**(given | runs))


@pytest.mark.parametrize(
    ("distance", "form", "prior", "errors"),
    [
        ("kendall", "full", "mfm", "none"),
        ("cayley", "mixed", "one", "none"),
        ("hamming", "contradictions", "dp", "bernoulli"),
    ],
)
@pytest.mark.filterwarnings("ignore::permix.errors.PermixWarning")
def test_updated_fits_have_the_posterior(distance, form, prior, errors):
    data = data_of(form)
    n = int(data.table.counts[0])
    fit = model_with(settings_of(distance, prior, errors), **RUNS).fit(data.table[:1])
    fit.update(data.table[1:2]).update(data.table[2:], n_moves=3)
    assert fit.labels_.shape == (len(data.table),)
    model = model_of(distance, prior, errors)
    right = oracle.posterior(model, data.agents)
    of_all = bayes_model(as_statements(data.table), fit._fit.settings)
    rng = np.random.default_rng(0)
    chains = np.array(
        [
            np.mean([numbers_of(p) for p in particles_of(fit._fit.draws, chain, 60, of_all, rng)], axis=0)
            for chain in range(24)
        ]
    )
    gap = chains.mean(axis=0) - means_of(right, len(data.agents))
    error = np.maximum(chains.std(axis=0, ddof=1) / math.sqrt(24), 3.0 / (24 * 60))
    assert np.abs(gap / error).max() < 5.5
    found = fit.updates_.groupby("chain")["log_evidence"].sum().to_numpy()
    ratios = np.exp(found)
    answer = evidence(model, data.agents[:n], data.agents[n:])
    assert abs(ratios.mean() - answer) < 5.0 * ratios.std(ddof=1) / math.sqrt(24)


def _made(n, seed, items=8):
    rng = np.random.default_rng(seed)
    first = permix.Mallows(list(range(items)), 0.5).sample(n, rng).orders
    second = permix.Mallows(list(range(items))[::-1], 0.4).sample(n // 2, rng).orders
    return permix.Rankings.from_orders(
        rng.permutation(np.concatenate([first, second])), items=list(range(items))
    )


@pytest.mark.slow
@pytest.mark.parametrize("top", [None, 3])
@pytest.mark.filterwarnings("ignore::permix.errors.PermixWarning")
def test_updates_agree_with_fits_to_all(top):
    """Two groups of eight items, full rankings and top lists: 90 agents, then 60 more."""
    orders = _made(100, 0).orders
    if top:
        orders = np.where(np.arange(8) < top, orders, -1)
    votes = permix.Rankings.from_orders(orders, items=list(range(8)))
    runs = {"n_draws": 400, "n_thin": 3, "n_burn_in": 300, "n_chains": 4, "random_state": 1}
    updated = permix.BayesianMallowsMixture(2, **runs).fit(votes[:90]).update(votes[90:], n_moves=5)
    again = permix.BayesianMallowsMixture(2, **runs).fit(votes)
    assert updated.dispersions_ == pytest.approx(again.dispersions_, abs=0.02)
    assert updated.weights_ == pytest.approx(again.weights_, abs=0.02)
    assert updated.centers_ == again.centers_
    ends = [model._summaries.dispersion_intervals for model in (updated, again)]
    assert ends[0] == pytest.approx(ends[1], abs=0.03)
    assert np.abs(updated.predict_proba(votes) - again.predict_proba(votes)).max() < 0.05


@pytest.mark.filterwarnings("ignore::permix.errors.PermixWarning")
def test_updates_are_saved_and_repeat(tmp_path):
    votes = _made(20, 1, items=4)
    runs = {"n_draws": 30, "n_burn_in": 20, "random_state": 1, "progress": False}
    first, again = (
        permix.BayesianMallowsMixture(2, **runs).fit(votes[:20]).update(votes[20:], random_state=7)
        for _ in range(2)
    )
    first.save(tmp_path / "fit.permix")
    loaded = permix.load(tmp_path / "fit.permix")
    assert loaded.updates_.equals(first.updates_)
    assert again.updates_.equals(first.updates_)
    assert np.array_equal(loaded.predict_proba(votes), first.predict_proba(votes))
    assert first.updates_["new_agents"].tolist() == [10, 10]
    assert len(first.labels_) == 30


def _answers(*rows):
    return permix.Preferences.from_pairs(rows, items=["a", "b", "c"])


def _fitted(**options):
    said = _answers(("ann", "a", "b"), ("bo", "b", "c"))
    runs = {"n_draws": 20, "n_burn_in": 5, "n_chains": 1, "random_state": 0, "progress": False}
    return permix.BayesianMallowsMixture(**runs, **options).fit(said)


def test_known_agents_say_more():
    fit = _fitted().update(_answers(("bo", "a", "b"), ("cy", "c", "a")))
    table = fit._fit.preferences
    assert table.agents.tolist() == ["ann", "bo", "cy"]
    assert set(table.to_pairs(1)) == {("a", "b"), ("b", "c")}
    assert fit.updates_[["new_agents", "changed_agents"]].to_numpy().tolist() == [[1, 1]]
    levels = permix.Preferences.from_levels([[["c"], ["a", "b"]]], items=["a", "b", "c"], agents=["ann"])
    assert set(fit.update(levels)._fit.preferences.to_pairs(0)) == {("a", "b"), ("c", "a")}
    other = _fitted().update(_answers(("bo", "a", "b")), same_agents=False)
    assert len(other.labels_) == 3


def test_what_contradicts_what_an_agent_said_is_refused_by_name():
    with pytest.raises(DataError, match=r"agent 'bo'.*contradict"):
        _fitted().update(_answers(("bo", "c", "b")))
    twice = permix.Preferences.concat([_answers(("bo", "a", "b")), _answers(("bo", "a", "c"))])
    with pytest.raises(DataError, match="'bo' is there twice"):
        _fitted().update(twice)
    careless = _fitted(errors="bernoulli").update(_answers(("bo", "c", "b")))
    assert not careless._fit.preferences.consistent[1]
