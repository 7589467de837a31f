"""WAIC and leaving one out, against agents that were left out, by enumeration."""

from __future__ import annotations

import math

import numpy as np
import pytest

import permix
from permix.bayes_mallows.information import leave_one_out, waic
from permix.errors import DataError
from tests.bayes_mallows.cases import data_of, model_of, settings_of
from tests.oracles import bayes_mallows as oracle


def fitted(form, distance="kendall", prior="one", errors="none", **runs):
    settings = settings_of(distance, prior, errors)
    given = {name: getattr(settings, name) for name in settings.declared}
    runs = {"n_draws": 2000, "n_thin": 2, "n_burn_in": 100, "n_chains": 1, "random_state": 0} | runs
    return permix.BayesianMallowsMixture(**(given | runs)).fit(data_of(form).table)


@pytest.mark.parametrize(
    ("form", "distance", "prior", "errors"),
    [
        ("top", "kendall", "one", "none"),
        ("mixed", "cayley", "two", "none"),
        ("pairs", "footrule", "one", "bernoulli"),
    ],
)
@pytest.mark.filterwarnings("ignore::permix.errors.PermixWarning")
def test_agents_left_out_are_as_probable_as_enumeration_says(form, distance, prior, errors):
    fit = fitted(form, distance, prior, errors)
    model, agents = model_of(distance, prior, errors), data_of(form).agents
    every = oracle.posterior(model, agents).evidence
    right = [
        math.log(every / oracle.posterior(model, (*agents[:j], *agents[j + 1 :])).evidence)
        for j in range(len(agents))
    ]
    found = leave_one_out(fit._fit)
    rows = fit._fit.preferences.rows_of_agents()
    # 1,000 draws, whose ratios are truncated: errors of some hundredths.
    assert found.pointwise[rows] == pytest.approx(right, abs=0.12)
    assert found.log_density == pytest.approx(sum(right), abs=0.2)
    in_sample = fit.score_samples(data_of(form).table)[rows]
    assert sum(right) < in_sample.sum() - 0.2  # the twin that leaves nobody out
    assert waic(fit._fit).log_density == pytest.approx(sum(right), abs=0.5)
    assert found.n_parameters > 0.2


@pytest.mark.filterwarnings("ignore::permix.errors.PermixWarning")
def test_criteria_know_how_many_groups_there_are():
    rng = np.random.default_rng(0)
    orders = np.concatenate(
        [permix.Mallows(center, 0.3).sample(40, rng).orders for center in ([0, 1, 2, 3], [3, 2, 1, 0])]
    )
    runs = {"n_draws": 200, "n_burn_in": 100, "random_state": 0, "progress": False}
    one, two = (permix.BayesianMallowsMixture(k, **runs).fit(orders) for k in (1, 2))
    assert one.waic() - two.waic() > 20
    assert one.loo().deviance - two.loo().deviance > 20
    assert two.loo().deviance == pytest.approx(two.waic(), abs=2.0)
    # Two decays and a share are known to be unknown; centers hardly are.
    assert 1.0 < two.loo().n_parameters < 6.0


@pytest.mark.filterwarnings("ignore::permix.errors.PermixWarning")
def test_errors_of_each_agent_are_refused():
    fit = fitted("contradictions", errors="bernoulli per agent", n_draws=5)
    with pytest.raises(DataError, match="errors_per_agent"):
        fit.waic()
