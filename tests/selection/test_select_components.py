"""The number of components, chosen by agents who were not fitted."""

from __future__ import annotations

import dataclasses
import warnings

import numpy as np
import pytest

import permix
from permix import Preferences, Rankings
from permix.errors import ConvergenceWarning, DataError, PermixWarning
from permix.estimators.preference_input import as_preferences
from permix.mallows import selection as module
from permix.mallows.fit import fit_mallows
from permix.mallows.parameters import MallowsParameters
from permix.mallows.predict import score_samples
from permix.selection import select_components as choosing
from permix.selection.criteria import ByCriterion
from permix.selection.held_out import HeldOut, HeldOutTrial
from permix.selection.select_components import mean_and_errors, select_components
from tests.every_run import first_in_every_run

pytestmark = pytest.mark.usefixtures("one_split")

QUICK = {"n_init": 4, "progress": False}
CENTERS = [[0, 1, 2, 3, 4, 5], [5, 3, 1, 0, 2, 4], [2, 4, 0, 5, 1, 3]]


def planted(n_components, n=600, **options):
    return permix.datasets.make_mallows_mixture(
        n, 6, n_components, dispersion=0.3, centers=CENTERS[:n_components], random_state=1, **options
    ).data


@pytest.mark.parametrize("truth", first_in_every_run([2, 1, 3]))
@pytest.mark.parametrize("options", [{}, {"observed": "top", "top": 4}])
def test_the_planted_number_is_found(truth, options):
    found = select_components(planted(truth, **options), range(1, 6), random_state=0, **QUICK)
    assert found.one_standard_error == truth
    table = found.table.set_index("n_groups")
    # Fewer components than there are lose more than chance could explain.
    for k in range(1, truth):
        assert table["difference"][k] < -5 * table["difference_error"][k]
    assert found.best >= truth
    assert table["difference"][found.best] == table["difference_error"][found.best] == 0.0
    assert not found.interrupted


def test_comparisons_alone_are_enough():
    data = planted(2, n=250, observed="pairs", pair_fraction=0.4)
    found = select_components(data, [1, 2], random_state=0, n_init=2, progress=False)
    assert found.best == 2
    assert found.table["difference"][0] < -3 * found.table["difference_error"][0]


def test_the_table_says_what_can_be_recomputed():
    data = planted(2)
    train, test = data.split(0.25, 3)
    found = select_components(train, [3, 1, 2, 2], validation=test, random_state=0, **QUICK)
    assert found.table["n_groups"].tolist() == [1, 2, 3]
    assert list(found.table.columns) == [
        "n_groups",
        "train",
        "validation",
        "standard_error",
        "monte_carlo_error",
        "difference",
        "difference_error",
        "n_iter",
        "converged",
    ]
    assert (found.n_train, found.n_validation, found.n_folds) == (450, 150, 1)
    model = found.model
    row = found.table.set_index("n_groups").loc[found.best]
    assert model.n_components == found.best
    assert row["validation"] == pytest.approx(model.score(test))
    assert row["train"] == pytest.approx(model.score(train))
    scores = model.score_samples(test)
    assert row["standard_error"] == pytest.approx(scores.std(ddof=1) / np.sqrt(150))
    assert (found.table["monte_carlo_error"] == 0.0).all()
    # The fit is not worse than that of the estimator with the same seed.
    again = permix.MallowsMixture(**model.get_params()).fit(train)
    assert model.log_likelihood_ > again.log_likelihood_ - 0.01


def test_larger_fits_begin_with_smaller_ones(monkeypatch):
    begun = []

    def fit(preferences, settings, smaller=None):
        begun.append(smaller.n_components if smaller else 0)
        return fit_mallows(preferences, settings, smaller)

    monkeypatch.setattr(module, "fit_mallows", fit)
    data = planted(3)
    found = select_components(data, [1, 2, 5], random_state=0, **QUICK)
    assert begun == [0, 1, 2]
    assert found.table["train"].is_monotonic_increasing
    folds = select_components(data, [2, 3], n_folds=2, random_state=0, n_init=1, progress=False)
    assert begun[3:] == [0, 0, 2, 2, 0]  # the last one is fitted to all data
    assert folds.best == 3
    # One fresh start alone may end anywhere, but not behind the smaller mixture.
    train = as_preferences(data)
    one = MallowsParameters(2, n_init=1, random_state=0)
    two = fit_mallows(train, one)
    three = fit_mallows(train, one.replaced(n_components=3), two.components)
    assert three.log_likelihood > two.log_likelihood
    assert len(three.start_log_likelihoods) == 2


def held_out_trials(means, spread):
    rng = np.random.default_rng(0)
    common = rng.normal(size=400)
    return [
        HeldOutTrial(
            mean + common + spread * rng.normal(size=400), np.zeros(400), {"n_groups": k, "train": 0.0}
        )
        for k, mean in enumerate(means, 1)
    ]


def test_numbers_that_got_clearly_worse_are_enough():
    judge = HeldOut.__new__(HeldOut)
    judge.counts = np.ones(400)
    worse = [-2.0, -1.0, -1.2, -1.3, -1.4]
    assert judge.is_enough(held_out_trials(worse, 0.1))
    assert not judge.is_enough(held_out_trials(worse[:4], 0.1))  # two in a row
    assert not judge.is_enough(held_out_trials([*worse[:4], -1.0001], 0.1))
    assert not judge.is_enough(held_out_trials(worse, 4.0))  # as errors allow
    assert not judge.is_enough(held_out_trials([-1.2, -1.1, -1.0], 0.1))
    by = ByCriterion.__new__(ByCriterion)
    by.criterion = "bic"
    for values, enough in ([100, 50, 61, 62, 70], True), ([100, 50, 61, 59, 70], False), ([9, 80, 99], False):
        assert by.is_enough([{"bic": value} for value in values]) == enough


def test_larger_numbers_are_not_tried_in_vain(monkeypatch):
    monkeypatch.setattr(HeldOut, "is_enough", lambda judge, trials: len(trials) == 2)
    found = select_components(planted(1, n=400), range(1, 6), random_state=0, **QUICK)
    assert found.table["n_groups"].tolist() == [1, 2]
    assert found.untried == (3, 4, 5)
    assert not found.interrupted
    assert "clearly worse than the best: larger numbers were not tried" in repr(found)


def test_the_same_seed_gives_the_same_table():
    data = planted(2, n=200)
    first, second = (select_components(data, [1, 2], random_state=5, **QUICK).table for _ in range(2))
    other = select_components(data, [1, 2], random_state=6, **QUICK).table
    assert first.equals(second)
    assert not first.equals(other)


def test_cross_validation_holds_everybody_out_once():
    data = planted(2, n=203)
    found = select_components(data, [1, 2, 3], n_folds=4, random_state=0, **QUICK)
    assert found.one_standard_error == 2
    assert (found.n_train, found.n_validation, found.n_folds) == (3 * 203, 203, 4)
    assert "4 folds" in repr(found)
    whole = fit_mallows(as_preferences(data), found.model._fit.settings)
    np.testing.assert_array_equal(found.model.weights_, whole.components.weights)


def test_folds_divide_the_agents():
    data = Preferences.from_rankings(planted(2, n=203)).collapse()
    folds = list(choosing._folds(data, None, 0.25, 4, 9))
    assert sorted(part.n_agents for _, part in folds) == [50, 51, 51, 51]
    total = Preferences.concat([part for _, part in folds]).collapse()
    assert total.n_agents == 203
    assert dict(zip(total._row_keys(), total.counts.tolist(), strict=True)) == dict(
        zip(data._row_keys(), data.counts.tolist(), strict=True)
    )
    for train, part in folds:
        assert train.n_agents + part.n_agents == 203


def test_refit_uses_all_data():
    data = planted(2, n=200)
    part = select_components(data, [2], random_state=0, **QUICK)
    whole = select_components(data, [2], refit=True, random_state=0, **QUICK)
    assert part.fit.counts.sum() == 150
    assert whole.fit.counts.sum() == 200
    assert part.table.equals(whole.table)


def test_counts_are_agents():
    """Rows merged into counts give the same means and, without Monte Carlo, the same errors."""
    data = planted(2)
    train, test = data[:400], data[400:]
    apart = select_components(train, [1, 2], validation=test, random_state=0, **QUICK)
    merged = select_components(train, [1, 2], validation=test.collapse(), random_state=0, **QUICK)
    np.testing.assert_allclose(merged.table.iloc[:, :7], apart.table.iloc[:, :7], atol=1e-9)


def test_errors_cover_agents_and_draws():
    """One row per agent: simulated means spread as the error says."""
    rng = np.random.default_rng(0)
    noise, counts = np.full(40, 0.8), np.ones(40, int)
    means, variances = [], []
    for _ in range(4000):
        mean, error, draws = mean_and_errors(rng.normal(0.0, 1.0, 40) + rng.normal(0.0, noise), noise, counts)
        means.append(mean)
        variances.append(error**2)
    assert draws == pytest.approx(0.8 / np.sqrt(40))
    assert np.mean(variances) == pytest.approx((1.0 + 0.8**2) / 40, rel=0.05)
    assert np.mean(variances) == pytest.approx(np.var(means), rel=0.1)


def test_shared_noise_is_not_averaged_away():
    """Agents with equal rows: the spread is theirs, but the noise of a row is the same for all of them."""
    rng = np.random.default_rng(1)
    shares, truth = np.array([0.5, 0.3, 0.2]), np.array([-1.0, -2.0, -4.0])
    noise, n = np.array([0.3, 0.3, 0.3]), 60
    means, variances = [], []
    for _ in range(6000):
        counts = rng.multinomial(n, shares)
        present = counts > 0
        scores = truth + rng.normal(0.0, noise)
        mean, error, _ = mean_and_errors(scores[present], noise[present], counts[present])
        means.append(mean)
        variances.append(error**2)
    assert np.mean(variances) == pytest.approx(np.var(means), rel=0.1)
    # The broken twin, which takes all agents for independent, is too sure of itself.
    spread = shares @ (truth - shares @ truth) ** 2 + 0.3**2
    assert spread / n < 0.8 * np.var(means)


def test_differences_are_paired():
    """The error is that of the mean difference, agent by agent."""
    data = planted(2, n=400)
    found = select_components(data, [1, 2], random_state=0, **QUICK)
    row = found.table.iloc[0]
    seeds = np.random.default_rng(0).integers(2**32, size=3).tolist()
    train, test = as_preferences(data).split(0.25, seeds[0])
    scores = [
        score_samples(
            fit_mallows(train, MallowsParameters(k, random_state=seeds[1], **QUICK)).components, test
        )[0]
        for k in (1, 2)
    ]
    gaps = scores[0] - scores[1]
    assert row["difference"] == pytest.approx(gaps.mean())
    assert row["difference_error"] == pytest.approx(gaps.std(ddof=1) / 10)


def interrupted_at(number, how):
    """A fit that the user stops at so many components."""

    def fit(preferences, settings, smaller=None):
        if settings.n_components == number and how == "by exception":
            raise KeyboardInterrupt
        done = fit_mallows(preferences, settings, smaller)
        if settings.n_components < number:
            return done
        return dataclasses.replace(done, interrupted=True)

    return fit


@pytest.mark.parametrize("how", ["by exception", "by a fit that was cut short"])
def test_what_was_done_is_kept_when_the_user_stops(monkeypatch, how):
    monkeypatch.setattr(module, "fit_mallows", interrupted_at(3, how))
    with pytest.warns(PermixWarning, match="kept what was finished: 1, 2 group"):
        found = select_components(planted(2, n=200), range(1, 6), random_state=0, refit=True, **QUICK)
    assert found.interrupted
    assert found.table["n_groups"].tolist() == [1, 2]
    assert found.model.n_components == 2
    assert "larger numbers were not tried" in repr(found)
    with pytest.warns(PermixWarning, match="kept what was finished"):
        folds = select_components(planted(2, n=60), [1, 3], n_folds=2, random_state=0, **QUICK)
    with pytest.raises(DataError, match=r"MallowsMixture\(1\)"):
        _ = folds.model


def test_nothing_done_is_no_result(monkeypatch):
    monkeypatch.setattr(module, "fit_mallows", interrupted_at(1, "by exception"))
    with pytest.raises(KeyboardInterrupt):
        select_components(planted(1, n=50), [1, 2], random_state=0, **QUICK)


def test_fits_that_did_not_settle_are_named():
    with pytest.warns(ConvergenceWarning, match="with 2, 3 group"):
        found = select_components(planted(3), [2, 3], random_state=0, max_iter=2, **QUICK)
    assert found.table["converged"].tolist() == [False, False]


def test_few_agents_held_out_are_noticed():
    with pytest.warns(PermixWarning, match="only 10 agents are held out.*n_folds=5"):
        select_components(planted(1, n=40), [1], random_state=0, **QUICK)


def test_one_row_has_no_error():
    votes = Rankings.from_orders([["a", "b", "c"], ["b", "a", "c"]] * 10)
    other = Rankings.from_orders([["a", "b", "c"]], counts=[40])
    found = select_components(votes, [1, 2], validation=other, random_state=0, **QUICK)
    assert found.table["standard_error"].isna().all()
    assert found.table["difference_error"].isna().sum() == 1
    assert found.one_standard_error == found.best


def test_the_rule_says_which_model_is_kept():
    """Of numbers that are all enough, the smallest; and the best as it comes."""
    data = planted(2, n=200)
    for rule, field in (("best", "best"), (None, "one_standard_error")):
        found = select_components(data, range(2, 6), rule=rule, random_state=3, **QUICK)
        assert found.chosen == found.model.n_components == getattr(found, field)
    assert found.best > found.one_standard_error == 2
    with pytest.raises(DataError, match="rule='least'"):
        select_components(data, [1], rule="least")


def test_it_shows_itself():
    text = repr(select_components(planted(1, n=100), [1, 2], random_state=0, **QUICK))
    assert text.startswith("ComponentSelection: best ")
    assert "25 agents held out" in text
    assert "validation" in text


def test_it_is_silent_when_asked_to_be(capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        select_components(planted(1, n=120), [1], random_state=0, n_init=1, progress=False)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_components": 3}, r"several numbers, such as range"),
        ({"n_components": []}, "n_components is empty"),
        ({"n_components": [1, 0]}, "n_components has 0"),
        ({"n_components": [1.5]}, "n_components has 1.5"),
        ({"n_components": [1, 40]}, "40 groups are more than the 30 agents to fit"),
        ({"test_size": 1.5}, "test_size"),
        ({"test_size": 1}, "hold out at least two"),
        ({"n_folds": 1}, "n_folds=1 must be a whole number from 2"),
        ({"n_folds": 41}, "n_folds=41"),
        ({"n_folds": 2, "validation": "data"}, "exclude each other"),
        ({"n_particles": 1}, "n_particles"),
    ],
)
def test_mistakes_are_named(options, message):
    data = planted(1, n=40)
    if "validation" in options:
        options = options | {"validation": data}
    with pytest.raises(DataError, match=message):
        select_components(data, **({"n_components": [1, 2], "random_state": 0} | QUICK | options))


def test_validation_is_read_by_name():
    votes = Rankings.from_orders([["a", "b", "c"], ["b", "a", "c"]] * 10)
    other = Rankings.from_orders([["c", "b", "a"], ["b", "a", "c"]])
    found = select_components(votes, [1], validation=other, random_state=0, **QUICK)
    assert found.table["validation"][0] == pytest.approx(found.model.score(other))
    with pytest.raises(DataError, match="does not know 'z'"):
        select_components(votes, [1], validation=Rankings.from_orders([["z", "a"]] * 2), random_state=0)
    with pytest.raises(TypeError, match="particles"):
        select_components(votes, [1], particles=3)


@pytest.mark.parametrize("criterion", ["dic", "waic", "bic", "aic"])
def test_criteria_are_not_for_central_rankings(criterion):
    with pytest.raises(DataError, match=f"criterion='{criterion}' counts parameters.*held-out"):
        select_components(planted(1, n=40), [1, 2], criterion=criterion)


def test_what_is_not_said_is_held_out_likelihood_of_mallows_mixtures():
    data = planted(2, n=200)
    plain = select_components(data, [1, 2], random_state=0, **QUICK)
    said = select_components(data, [1, 2], model="mallows", criterion="held-out", random_state=0, **QUICK)
    assert plain.table.equals(said.table)
    assert (plain.estimator, plain.criterion) == ("MallowsMixture", "held-out")
    assert isinstance(plain.model, permix.MallowsMixture)


def test_an_estimator_brings_its_parameters():
    data = planted(2, n=200)
    named = select_components(data, [1, 2], random_state=4, **QUICK)
    model = permix.MallowsMixture(7, random_state=4, **QUICK)
    given = select_components(data, [1, 2], model=model)
    assert given.table.equals(named.table)
    assert given.model.get_params() == named.model.get_params()
    with pytest.raises(DataError, match="one of these estimators: AngleMixture, Bayesian"):
        select_components(data, [1, 2], model=permix.AngleClassifier())
