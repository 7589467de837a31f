"""A row with a count stands for that many agents: in criteria, classes, starts, chains and likelihoods."""

import warnings

import numpy as np
import pytest

import permix
from permix.angle import fit as angle_fit
from permix.angle.data import AngleData
from permix.angle.parameters import AngleParameters
from permix.angle.results import criteria
from permix.errors import DataError

QUICK = {"n_draws": 60, "n_burn_in": 60, "n_chains": 1, "random_state": 0, "progress": False}


@pytest.fixture(scope="module")
def votes():
    """Forty rows over five items, each given by one to six agents."""
    made = permix.datasets.make_angle_mixture(40, 5, 2, concentration=6.0, random_state=3)
    return made.data._replaced(counts=np.random.default_rng(0).integers(1, 7, size=40))


def quietly(function, *arguments, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*arguments, **settings)


def test_criteria_count_agents(votes):
    fit = quietly(angle_fit.fit_angle, votes, AngleParameters(2, inference="vi", normalizer="vmf", **QUICK))
    by_rows, by_agents = (quietly(criteria, fit, data) for data in (votes, votes.expand()))
    assert by_rows == pytest.approx(by_agents, rel=1e-9)
    once = quietly(criteria, fit, votes._replaced(counts=np.ones(40, np.int64)))
    assert once.waic_parameters < 0.9 * by_rows.waic_parameters
    assert once.dic < 0.9 * by_rows.dic


def test_classes_count_agents(votes):
    classes = np.arange(40) < 10
    model = quietly(permix.AngleClassifier().fit, votes, classes)
    agents = np.array([votes.counts[~classes].sum(), votes.counts[classes].sum()]) + 1.0
    np.testing.assert_allclose(model.class_prior_, agents / agents.sum())


def test_chains_say_of_each_row_how_often_its_agents_were_where(votes):
    fit = quietly(angle_fit.fit_angle, votes, AngleParameters(2, inference="sir", **QUICK))
    labels = fit.draws.arrays["labels"].reshape(-1, votes.n_agents)
    rows = np.repeat(np.arange(40), votes.counts)
    for row in (0, 7, 39):
        # All who said the same as this row.
        same = np.flatnonzero((votes.orders == votes.orders[row]).all(axis=1))
        mine = labels[:, np.isin(rows, same)]
        np.testing.assert_allclose(fit.probabilities[row], [(mine == 0).mean(), (mine == 1).mean()])


def test_a_part_for_trials_is_of_agents(votes):
    """Rows with large counts are in it as often as they count."""
    heavy = votes._replaced(counts=np.where(np.arange(40) == 5, 10_000, 1))
    part = AngleData(heavy).some(30, np.random.default_rng(1))
    assert part.n_agents == 30
    share = part.rankings.counts[(part.rankings.orders == votes.orders[5]).all(axis=1)].sum() / 30
    assert share > 0.9


@pytest.mark.parametrize("scale", [1, 10**6, 10**9, 10**12])
def test_the_evidence_bound_stays_below_the_evidence_however_many_agents(scale):
    votes = permix.Rankings.from_orders(
        [[0, 1, 2, 3, 4], [1, 0, 2, 3, 4], [4, 3, 2, 1, 0]], counts=[4 * scale, 2 * scale, scale]
    )
    vi = quietly(permix.AngleMixture(inference="vi", normalizer="vmf").fit, votes)
    truth = quietly(
        permix.AngleMixture(inference="quadrature", normalizer="vmf", n_draws=2, random_state=0).fit, votes
    )
    # Log-probabilities of n agents are known to about 1e-15 n.
    slack = 1e-9 + 1e-12 * votes.n_agents
    assert vi.elbo_ <= truth.elbo_ + slack
    assert vi.elbo_ > truth.elbo_ - 0.05 - slack
    assert vi.concentrations_ == pytest.approx(truth.concentrations_, rel=2e-2 if scale == 1 else 1e-5)


def test_one_component_of_full_rankings_needs_no_expansion():
    votes = permix.Rankings.from_orders([[0, 1, 2, 3], [3, 1, 2, 0]], counts=[3 * 10**12, 10**12])
    model = quietly(permix.AngleMixture(inference="sir", **QUICK).fit, votes)
    exact = quietly(permix.AngleMixture(inference="em").fit, votes)
    np.testing.assert_allclose(model.directions_, exact.directions_, atol=1e-3)
    with pytest.raises(DataError, match="too many"):
        permix.AngleMixture(2, inference="sir", **QUICK).fit(votes)


def test_some_rows_stand_for_all_with_an_honest_error(monkeypatch):
    """Where every row needs annealing, a part is scored; the standard error covers what that leaves open."""
    rng = np.random.default_rng(2)
    rows = [rng.permutation(40)[:3] for _ in range(60)]
    votes = permix.Rankings.from_orders(rows, n_items=40, counts=rng.integers(1, 9, size=60))
    direction = np.arange(40.0)
    components = angle_fit.AngleComponents(
        votes.items, np.ones(1), _unit(direction)[None, :], np.array([40.0]), "balanced"
    )
    data = AngleData(votes)
    whole = angle_fit._log_likelihood(components, data)
    monkeypatch.setattr(angle_fit, "ANNEALED_ROWS", 15)
    part = angle_fit._log_likelihood(components, data)
    assert part.standard_error > 20 * whole.standard_error > 0.0
    assert abs(part - whole) < 4.0 * part.standard_error


def _unit(values):
    values = values - values.mean()
    return values / np.linalg.norm(values)


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"inference": "em", "prior_shape": 2.0}, "no prior; leave out prior_shape"),
        ({"inference": "em", "prior_rate": 2.0}, "leave out prior_rate"),
        (
            {"inference": "em", "prior_direction": range(5), "prior_strength": 3.0},
            "leave out prior_direction",
        ),
        ({"inference": "sir", "prior_direction": range(5)}, "no effect without prior_strength"),
        ({"inference": "sir", "prior_strength": 1e300, "prior_direction": range(5)}, r"1e\+09 or less"),
        ({"n_jobs": "abc"}, "n_jobs='abc'"),
        ({"n_jobs": 0}, "n_jobs=0"),
        ({"n_draws": 60}, "inference='em' climbs and draws nothing on these data; leave out n_draws"),
        ({"n_chains": 3}, "inference='em' climbs and draws nothing on these data; leave out n_chains"),
        ({"inference": "sir", "n_candidates": 99}, "runs chains on these data; leave out n_candidates"),
        ({"store": "folder"}, "leave store out"),
        ({"store": "folder", "inference": "em"}, "leave store out"),
        ({"store": "folder", "inference": "quadrature", "normalizer": "vmf"}, "leave store out"),
    ],
)
def test_wishes_that_would_do_nothing_are_refused(votes, settings, match):
    with pytest.raises(DataError, match=match):
        permix.AngleMixture(**settings).fit(votes)


def test_draws_that_no_class_uses_are_refused(votes):
    classes = np.arange(40) < 10
    with pytest.raises(DataError, match="draws nothing on these data; leave out n_draws"):
        permix.AngleClassifier(n_draws=60).fit(votes, classes)
    # One class with rankings of some items alone runs sweeps, and these take draws.
    lists = [list(row[: 3 if mine else 5]) for row, mine in zip(votes.orders, classes, strict=True)]
    unlisted = np.where(classes, "unknown", "below").tolist()
    partly = permix.Rankings.from_orders(lists, n_items=5, unlisted=unlisted)
    assert quietly(permix.AngleClassifier(n_draws=20, n_burn_in=10).fit, partly, classes).n_draws == 20


def test_draws_are_refused_where_numbers_of_groups_are_compared(votes):
    with pytest.raises(DataError, match="draws nothing on these data; leave out n_draws"):
        permix.select_components(votes, [1, 2], model="angle", n_draws=60)


def test_methods_of_scores_are_checked(votes):
    fitted = {
        "em": quietly(permix.AngleMixture().fit, votes),
        "sir": quietly(permix.AngleMixture(inference="sir", **QUICK).fit, votes),
    }
    with pytest.raises(DataError, match="method='foo'"):
        fitted["sir"].score_samples(votes, method="foo")
    with pytest.raises(DataError, match="no posterior"):
        fitted["em"].score_samples(votes, method="quadrature")
    for model in fitted.values():
        with pytest.raises(DataError, match="second-order"):
            model.score_samples(votes, method="second-order")


def test_a_likelihood_without_a_maximum_is_said():
    votes = permix.Rankings.from_orders([["a", "b", "c"], ["a", "c", "b"]], counts=[3, 2])
    with pytest.warns(permix.errors.PermixWarning, match="all its members put a first"):
        permix.AngleMixture(inference="em").fit(votes)


def test_scores_lie_within_their_intervals():
    made = permix.datasets.make_angle_mixture(60, 5, 2, concentration=8.0, random_state=2)
    model = permix.AngleMixture(4, inference="vi", normalizer="vmf", random_state=0)
    table = quietly(model.fit, made.data).consensus(0.98)
    assert (table["low"] <= table["score"]).all()
    assert (table["score"] <= table["high"]).all()
