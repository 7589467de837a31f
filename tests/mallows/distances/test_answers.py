"""What mixtures under other distances answer, against enumeration; and what they refuse, in words."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.stats import chi2

import permix
from permix import MallowsMixture, Preferences, Rankings
from permix.distributions.distances.names import DISTANCES
from permix.errors import DataError
from permix.mallows import predict
from permix.mallows.distances import listed
from permix.mallows.report import answer
from permix.reporting.context import Context
from tests.mallows.distances.test_em import DECAY, FORMS, MIXTURES, components_of, drawn, some_agents
from tests.oracles import bayes_mallows as said
from tests.oracles import distance_mixtures as oracle

OTHERS = DISTANCES[1:]


@pytest.mark.parametrize("distance", OTHERS)
@pytest.mark.parametrize("form", FORMS)
def test_answers_about_agents(distance, form, monkeypatch):
    """Groups, pairs and expected ranks, a few rows at a time."""
    mixture, n = MIXTURES[4], 4
    agents, data = some_agents(form, n)
    components = components_of(mixture, distance)
    monkeypatch.setattr(listed, "MOST_PLACES", 200)
    posteriors = [oracle.posterior(distance, mixture, agent) for agent in agents]
    groups = predict.predict_proba(components, data)
    np.testing.assert_allclose(groups, [each.sum(axis=1) for each in posteriors], atol=1e-10)
    before, errors = predict.predict_pairwise(components, data, return_error=True)
    wanted = np.array([oracle.before(distance, mixture, agent) for agent in agents])
    np.testing.assert_allclose(before, wanted, atol=1e-10)
    assert not errors.any()
    asked = [(5, 2, 0), (1, 3, 2), (5, 0, 2)]
    found = predict.predict_pairwise(components, data, asked)
    np.testing.assert_allclose(found, [wanted[row, a, b] for row, a, b in asked], atol=1e-10)
    completed, ranks = predict.complete(components, data, return_ranks=True)
    places = np.array([said.ranks(order) for order in said.orderings(n)]) + 1
    at = [each.sum(axis=0) @ places for each in posteriors]
    np.testing.assert_allclose(ranks.mean, at, atol=1e-9)
    for row, agent in enumerate(agents):
        assert said.no_errors(tuple(completed.orders[row].tolist()), agent)
        p = posteriors[row].sum(axis=0)
        for item in range(n):
            upto = np.cumsum([p @ (places[:, item] == rank + 1) for rank in range(n)])
            low, high = 1 + (upto <= 0.05 + 1e-9).sum(), 1 + (upto < 0.95 - 1e-9).sum()
            assert ranks.low[row, item] == min(low, int(np.floor(at[row][item] + 1e-9)))
            assert ranks.high[row, item] == max(high, int(np.ceil(at[row][item] - 1e-9)))
    # The twin: what the largest group alone says.
    alone = np.array([oracle.before(distance, mixture[:1], agent) for agent in agents])
    assert form == "full" or np.abs(alone - before).max() > 0.01


@pytest.mark.parametrize("distance", OTHERS)
def test_draws_are_from_the_posterior(distance):
    mixture, n, size = MIXTURES[4], 4, 4000
    agents, data = some_agents("top", n)
    drawn_of = predict.sample_completions(components_of(mixture, distance), data, size, random_state=1)
    assert drawn_of.exact.all()
    code = {order: at for at, order in enumerate(said.orderings(n))}
    for row in (0, 3):
        wanted = oracle.posterior(distance, mixture, agents[row]).ravel() * size
        cells = [code[tuple(order)] for order in drawn_of.orders[row].tolist()] + 24 * drawn_of.labels[row]
        seen = np.bincount(cells, minlength=48)
        possible = wanted > 0
        assert not seen[~possible].any()
        statistic = ((seen - wanted)[possible] ** 2 / wanted[possible]).sum()
        assert chi2.sf(statistic, possible.sum() - 1) > 1e-4


@pytest.mark.parametrize("distance", OTHERS)
def test_agents_who_say_nothing_have_the_probabilities_of_the_mixture(distance):
    components = components_of(MIXTURES[4], distance)
    nobody = Preferences.from_levels([[[0, 1, 2, 3]], [[0], [1, 2, 3]]], items=range(4))
    np.testing.assert_allclose(predict.predict_proba(components, nobody)[0], components.weights)
    assert predict.score_samples(components, nobody)[0][0] == pytest.approx(0.0, abs=1e-12)
    found = predict.predict_pairwise(components, nobody)[0]
    np.testing.assert_allclose(found, oracle.before(distance, MIXTURES[4], said.nothing()), atol=1e-10)


# -- a model from the beginning to the end ---------------------------------------------------------


@pytest.fixture(scope="module")
def model():
    data = drawn("footrule", 6, 60, 5, (0.6, 0.6))
    return MallowsMixture(2, distance="footrule", n_init=3, random_state=0, progress=False).fit(data)


def test_a_model_is_what_it_says(model, tmp_path):
    assert {tuple(center) for center in model.centers_.orders.tolist()} == {
        tuple(range(6)),
        tuple(range(5, -1, -1)),
    }
    np.testing.assert_allclose(-np.log(model.dispersions_), 0.6, atol=0.15)
    first = model.components_[0]
    assert first.distance == "footrule"
    assert model.summary()["expected_distance"][0] == pytest.approx(first.expected_distance())
    made = model.sample(50, random_state=1)
    mixed = np.exp([part.log_prob(made) for part in model.components_]) * model.weights_[:, None]
    np.testing.assert_allclose(model.score_samples(made), np.log(mixed.sum(axis=0)), atol=1e-9)
    np.testing.assert_array_equal(model.predict(made), mixed.argmax(axis=0))
    assert len(model.diagnostics()) == 3
    model.save(tmp_path / "m.permix")
    again = permix.load(tmp_path / "m.permix")
    assert again.distance == "footrule"
    np.testing.assert_array_equal(again.score_samples(made), model.score_samples(made))
    assert again.components_[0].distance == "footrule"
    assert "places away" in dict(again_facts(again))
    assert answer(model._fit, Context("votes")).sentences


def again_facts(model):
    from permix.mallows.report import found_groups

    return [(name[:11], value) for name, value in found_groups(model._fit).groups[0].facts]


@pytest.mark.parametrize("distance", ["spearman", "hamming"])
def test_shares_depend_on_columns(distance):
    rng = np.random.default_rng(0)
    data = drawn(distance, 5, 150, 7, (2 * DECAY[distance], 2 * DECAY[distance]))
    second = np.arange(300) >= 150
    region = np.where(rng.random(300) < np.where(second, 0.8, 0.2), "south", "north")
    votes = data.with_covariates({"region": region})
    model = MallowsMixture(
        2, distance=distance, weights_by=["region"], n_init=2, random_state=0, progress=False
    ).fit(votes)
    table = model.weights_by_
    group = model.predict(votes)[-1]
    found = table[(table.group == group) & (table.column == "region")].set_index("value").share
    # Of those in the south four of five are in the second group, and one of five in the north.
    assert found["south"] == pytest.approx(0.8, abs=0.12)
    assert found["north"] == pytest.approx(0.2, abs=0.12)
    assert model._fit.components.by_agent.p_value < 1e-6


def test_very_many_rankings_are_tried_on_a_part(monkeypatch):
    from permix.mallows.distances import em

    monkeypatch.setattr(em, "MOST_ENTRIES", 30)
    data = drawn("footrule", 5, 300, 5, (0.6, 0.6), "top")
    fit = MallowsMixture(2, distance="footrule", n_init=3, random_state=0, progress=False).fit(data)
    scores = fit.score_samples(data)
    assert float(fit.log_likelihood_) == pytest.approx(scores.sum(), abs=1e-6)
    assert np.allclose(fit.start_log_likelihoods_, scores.sum(), rtol=0.2)
    monkeypatch.undo()
    whole = MallowsMixture(2, distance="footrule", n_init=3, random_state=0, progress=False).fit(data)
    assert float(whole.log_likelihood_) == pytest.approx(scores.sum(), abs=1.0)


# -- what is refused -------------------------------------------------------------------------------


def fit(data, distance="footrule", **options):
    return MallowsMixture(2, **{"distance": distance, "n_init": 2, "progress": False, **options}).fit(data)


def test_what_cannot_be_summed_is_refused_with_a_way_out():
    long = Rankings.from_orders([[0, 1], [2, 3], [1, 0]], n_items=15)
    with pytest.raises(DataError, match=r"too many of them.*use distance='kendall'"):
        fit(long)
    many = drawn("hamming", 21, 5, 0, (1.0, 1.0))
    with pytest.raises(DataError, match="up to 20 items, but there are 21; use distance='footrule'"):
        fit(many, "spearman")
    many = drawn("hamming", 65, 5, 0, (1.0, 1.0))
    with pytest.raises(DataError, match="up to 64 items"):
        fit(many, "ulam")


def test_what_is_for_kendall_alone_is_refused():
    with pytest.raises(DataError, match="center_search='exact' is not known for distance='ulam'"):
        fit(drawn("ulam", 4, 10, 0, (1.0, 1.0)), "ulam", center_search="exact")
    with pytest.raises(DataError, match="method='sp' is for distance='kendall'"):
        predict.sample_completions(
            components_of(MIXTURES[4], "cayley"), Rankings.from_orders([[0]], n_items=4), 1, "sp"
        )


def test_data_in_shards_are_refused(tmp_path):
    (tmp_path / "a.csv").write_text("a,b,c\n1,2,3\n2,1,3\n")
    (tmp_path / "b.csv").write_text("a,b,c\n3,2,1\n2,1,3\n")
    shards = permix.read_sharded([tmp_path / "a.csv", tmp_path / "b.csv"])
    with pytest.raises(DataError, match="distance is for data in one table"):
        fit(shards)


def test_the_command(run, tmp_path):
    """Every answer of the command line, of a file of top lists."""
    data = drawn("cayley", 5, 60, 5, (1.5, 1.5), "top")
    names = "abcde"
    lines = [",".join(names[item] for item in row if item >= 0) for row in data.orders.tolist()]
    votes, model = tmp_path / "votes.csv", tmp_path / "model.permix"
    votes.write_text("\n".join(lines) + "\n")
    said_by = {}
    for words in (
        f"fit mallows {votes} --layout orders -k 2 --distance cayley --starts 2 --seed 0 -o {model} "
        f"--report {tmp_path / 'r.html'} --picture {tmp_path / 'p.png'}",
        f"summary {model}",
        f"summary {model} --json",
        *(
            f"predict {model} {votes} --layout orders --what {what}"
            for what in ("groups", "ranking", "pairwise", "recommend", "score", "checks")
        ),
        f"sample {model} -n 3",
    ):
        code, said_by[words], error = run(*words.split())
        assert code == 0, error
    shown = said_by[f"summary {model}"]
    assert "Mallows mixture of 2 groups under Cayley's distance" in shown
    assert "exchanges of two items" in shown
    assert json.loads(said_by[f"summary {model} --json"])["distance"] == "cayley"
    assert "exchanges from the center" in (tmp_path / "r.html").read_text()
