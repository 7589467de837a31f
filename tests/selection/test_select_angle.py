"""The number of components of angle-based mixtures: by agents held out, and by criteria."""

from __future__ import annotations

import dataclasses
import warnings

import numpy as np
import pytest

import permix
from permix import AngleMixture, Rankings, select_components
from permix.angle import ascent
from permix.angle import selection as angle_selection
from permix.angle.parameters import AngleParameters
from permix.angle.selection import SELECTION
from permix.errors import ConvergenceWarning, DataError, PermixWarning
from tests.estimators.conventions import by_name
from tests.every_run import first_in_every_run

pytestmark = pytest.mark.usefixtures("one_split")

DIRECTIONS = np.array([[0, 1, 2, 3, 4, 5], [5, 3, 1, 0, 2, 4]])
QUICK = {"model": "angle", "n_init": 4, "progress": False}
HELD_OUT_COLUMNS = [
    "n_groups",
    "train",
    "validation",
    "standard_error",
    "monte_carlo_error",
    "difference",
    "difference_error",
    "n_iter",
    "converged",
    "normalizer",
    "normalizer_error",
]


def planted(n=400, concentration=8.0, n_components=2):
    return permix.datasets.make_angle_mixture(
        n,
        6,
        n_components,
        concentration=concentration,
        directions=DIRECTIONS[:n_components],
        random_state=1,
    ).data


def silently(*args, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PermixWarning)
        return select_components(*args, random_state=0, **QUICK, **quick(options))


def quick(options):
    """Add few draws, where fits to full rankings draw at all."""
    draws = options.get("inference", "em") not in ("em", "vi")
    return ({"n_draws": 200, "n_burn_in": 100} if draws else {}) | by_name(options)


def model_for(selection, **options):
    """The estimator that a selection with random_state=0 fits."""
    seed = np.random.default_rng(0).integers(2**32, size=3).tolist()[1]
    given = {name: value for name, value in QUICK.items() if name != "model"}
    return AngleMixture(selection.chosen, random_state=seed, **given, **quick(options))


WAYS = [("em", "held-out"), ("em", "bic"), ("sir", "held-out"), ("sir", "dic"), ("sir", "waic")]


# AIC chooses one too many now and then, however many data there are.
@pytest.mark.parametrize(
    ("truth", "inference", "criterion"),
    first_in_every_run([*((k, *way) for k in (2, 1) for way in WAYS), (2, "em", "aic")], 3),
)
def test_the_planted_number_is_found(truth, inference, criterion):
    found = silently(planted(n_components=truth), [1, 2, 3], criterion=criterion, inference=inference)
    if criterion == "held-out":
        assert found.one_standard_error == truth
        table = found.table.set_index("n_groups")
        assert truth == 1 or table["difference"][1] < -5 * table["difference_error"][1]
    else:
        # One more component that stays empty costs a criterion next to nothing.
        values = found.table.set_index("n_groups")[criterion]
        assert found.best >= truth
        assert values[truth] < values.min() + 2.0
        assert truth == 1 or values[1] > values.min() + 20.0
        assert found.one_standard_error is None
        assert (found.n_train, found.n_validation, found.n_folds) == (400, 0, 0)
    assert (found.table["normalizer"] == "exact").all()
    assert (found.table["normalizer_error"] == 0.0).all()
    assert isinstance(found.model, AngleMixture)
    assert found.model.n_components == found.best
    assert (found.estimator, found.criterion) == ("AngleMixture", criterion)


def test_dic_and_waic_are_those_of_the_estimator():
    data, inference = planted(n=200), "sir"
    for criterion in ("dic", "waic"):
        few = {"n_draws": 100, "n_burn_in": 50}
        found = silently(data, [2, 1], criterion=criterion, inference=inference, **few)
        assert list(found.table.columns) == [
            "n_groups",
            "log_likelihood",
            criterion,
            "parameters",
            "n_iter",
            "converged",
            "normalizer",
            "normalizer_error",
        ]
        row = found.table.set_index("n_groups").loc[2]
        assert found.best == 2
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PermixWarning)
            again = model_for(found, inference=inference, **few).fit(data)
        known = again.criteria(data)
        assert row[criterion] == getattr(again, criterion)(data) == getattr(known, criterion)
        assert row["parameters"] == getattr(known, f"{criterion}_parameters")
        assert row["log_likelihood"] == again.log_likelihood_
        assert row["n_iter"] == again.n_iter_
        # Nothing is fitted again: the model is the one that was judged.
        np.testing.assert_array_equal(found.model.directions_, again.directions_)


def test_aic_and_bic_are_those_of_the_estimator():
    """Also on merged and incomplete rows."""
    full = planted(n=200)
    lists = Rankings.from_orders(full.orders[:60, :3], n_items=6, unlisted="unknown")
    data = Rankings.concat([full[60:], lists]).collapse()
    for criterion in ("aic", "bic"):
        found = silently(data, [1, 2], criterion=criterion, inference="em", n_draws=100, n_burn_in=50)
        assert found.best == 2
        value = found.table.set_index("n_groups")[criterion][2]
        assert value == pytest.approx(getattr(found.model, criterion)(data), rel=1e-12)
        assert found.table["parameters"].tolist() == [5.0, 11.0]


def test_held_out_scores_are_those_of_the_estimator():
    """Full rows by the predictive density, incomplete ones at the point estimates."""
    data = planted()
    lists = Rankings.from_orders(data.orders[300:350, :3], n_items=6, unlisted="unknown")
    test = Rankings.concat([data[350:], lists])
    for inference in ("sir", "em"):
        found = silently(data[:300], [1, 2], validation=test, inference=inference)
        assert list(found.table.columns) == HELD_OUT_COLUMNS
        row = found.table.set_index("n_groups").loc[2]
        assert found.chosen == 2
        assert row["validation"] == pytest.approx(found.model.score(test), rel=1e-12)
        scores = found.model.score_samples(test)
        assert row["standard_error"] == pytest.approx(scores.std(ddof=1) / 10)
        assert (found.n_train, found.n_validation, found.n_folds) == (300, 100, 1)
        assert found.model.get_params()["n_init"] == 4


def test_the_same_seed_gives_the_same_table():
    data = planted(n=120)
    few = {"n_draws": 40, "n_burn_in": 20}
    for options in ({}, {"criterion": "waic", "inference": "sir", **few}, {"inference": "sir", **few}):
        first, second = (silently(data, [1, 2], **options).table for _ in range(2))
        assert first.equals(second)
    other = select_components(data, [1, 2], random_state=6, **QUICK, **options).table
    assert not first.equals(other)


def test_folds_and_refits_use_all_data():
    data = planted(n=103)
    found = silently(data, [1, 2], n_folds=3, inference="em", rule="one-se")
    assert (found.n_train, found.n_validation, found.n_folds) == (206, 103, 3)
    assert found.chosen == found.one_standard_error == 2
    whole = model_for(found, inference="em").fit(data)
    np.testing.assert_array_equal(found.model.weights_, whole.weights_)
    assert "3 folds" in repr(found)
    part = silently(data, [2], inference="em")
    again = silently(data, [2], inference="em", refit=True)
    assert (part.fit.counts.sum(), again.fit.counts.sum()) == (77, 103)
    assert part.table.equals(again.table)


def test_it_shows_itself():
    data = planted(n=160)
    text = repr(silently(data, [1, 2], criterion="dic", inference="sir"))
    assert text.startswith("ComponentSelection: best 2 by DIC (160 agents)\n")
    assert all(name in text for name in ("log_likelihood", " dic ", "parameters"))
    text = repr(silently(data, [1, 2], inference="em"))
    assert text.startswith("ComponentSelection: best 2, within one standard error 2 (40 agents held out)")


def test_components_without_agents_do_not_count():
    fit = silently(planted(n=60), [2], criterion="bic", normalizer="balanced").fit
    worst = max(map(float, fit.normalizer_errors), key=abs)
    assert SELECTION.columns([fit])["normalizer_error"] == worst != 0.0
    empty = np.tile([1.0, 0.0], (60, 1))
    first = dataclasses.replace(fit, probabilities=empty)
    assert SELECTION.columns([first])["normalizer_error"] == float(fit.normalizer_errors[0])


def test_effective_parameters_are_not_negative_with_components_to_spare():
    """DIC does not rest on posterior means, which lie between modes where components change places."""
    found = silently(planted(n=100, n_components=1), [1, 3], criterion="dic", inference="sir")
    assert (found.table["parameters"] > 0.0).all()


def test_fits_that_did_not_settle_are_named():
    with pytest.warns(ConvergenceWarning, match="with 2 group") as caught:
        found = select_components(
            planted(), [1, 2], random_state=0, inference="em", criterion="bic", max_iter=2, **QUICK
        )
    assert len(caught) == 1
    assert not found.table["converged"][1]


def top_lists(n, n_items=30, seed=0):
    """Lists so short that their probabilities need annealing."""
    rng = np.random.default_rng(seed)
    orders = np.array([rng.permutation(n_items)[:3] for _ in range(n)])
    return Rankings.from_orders(orders, n_items=n_items)


def test_few_of_many_dear_rows_are_scored(monkeypatch):
    monkeypatch.setattr(angle_selection, "MOST_ANNEALED", 8)
    train = permix.datasets.make_angle_mixture(60, 30, 1, concentration=10.0, random_state=0).data
    with pytest.warns(PermixWarning) as caught:
        found = select_components(
            train, [1, 2], validation=top_lists(40), inference="em", random_state=0, **QUICK
        )
    assert any("8 of 40 agents held out are scored" in str(warning.message) for warning in caught)
    assert found.n_validation == 8
    assert (found.table["monte_carlo_error"] > 0.0).all()
    assert (found.table["monte_carlo_error"] < 0.2).all()


def test_rows_kept_stand_for_all(monkeypatch):
    """Agents are drawn, of expensive and of cheap rows alike, and as many as the expensive rows allow."""
    monkeypatch.setattr(angle_selection, "MOST_ANNEALED", 50)
    expensive, full = (
        top_lists(200),
        Rankings.from_orders([np.arange(30), np.arange(30)[::-1]], counts=[300, 100]),
    )
    data = Rankings.concat([expensive, full])
    shares, lengths = [], []
    for seed in range(20):
        kept = SELECTION.affordable(data, np.random.default_rng(seed))
        is_full = kept.lengths == 30
        assert (~is_full).sum() == 50
        shares.append(kept.counts[is_full].sum() / kept.n_agents)
        lengths.append(kept.n_agents)
    # 400 of 600 agents have full rows; about 150 are kept each time, so 20 shares have an error below 0.01.
    assert np.mean(shares) == pytest.approx(2 / 3, abs=0.03)
    assert np.mean(lengths) == pytest.approx(150, abs=12)
    few = data[150:]
    assert SELECTION.affordable(few, np.random.default_rng(0)) is few


def test_larger_fits_begin_with_smaller_ones(monkeypatch):
    begun, whole = [], angle_selection.fit_angle

    def fit(rankings, settings, smaller=None):
        begun.append(smaller.n_components if smaller else 0)
        return whole(rankings, settings, smaller)

    monkeypatch.setattr(angle_selection, "fit_angle", fit)
    found = select_components(planted(), [1, 2, 4], random_state=0, inference="em", **QUICK)
    assert begun == [0, 1, 2]
    assert found.best == 2
    # Half as many starts, and with weights and tilts of the smaller mixture as far as it goes.
    data, tried = planted(), []
    original = ascent.climb

    def climb(point, *given):
        tried.append(point)
        return original(point, *given)

    monkeypatch.setattr(ascent, "climb", climb)
    settings = AngleParameters(2, n_init=4, random_state=0)
    two = whole(data, settings)
    three = whole(data, settings.replaced(n_components=3), two.components)
    assert len(two.start_objectives) == 4
    assert len(three.start_objectives) == 2
    directions = tried[-1].tilts[:2] / np.linalg.norm(tried[-1].tilts[:2], axis=1, keepdims=True)
    np.testing.assert_allclose(directions, two.components.directions, atol=1e-9)
    np.testing.assert_allclose(tried[-1].components.weights[:2], 2 / 3 * two.components.weights)
    assert three.log_likelihood >= two.log_likelihood - 1e-6


def interrupted_at(number, how):
    whole = angle_selection.fit_angle

    def fit(rankings, settings, smaller=None):
        if settings.n_components == number and how == "by exception":
            raise KeyboardInterrupt
        done = whole(rankings, settings, smaller)
        return done if settings.n_components < number else dataclasses.replace(done, interrupted=True)

    return fit


@pytest.mark.parametrize("how", ["by exception", "by a fit that was cut short"])
@pytest.mark.parametrize("criterion", ["held-out", "bic"])
def test_what_was_done_is_kept_when_the_user_stops(monkeypatch, how, criterion):
    monkeypatch.setattr(angle_selection, "fit_angle", interrupted_at(3, how))
    options = {"criterion": criterion, "inference": "em", "refit": True}
    with pytest.warns(PermixWarning, match="kept what was finished: 1, 2 group"):
        found = select_components(planted(n=200), range(1, 6), random_state=0, **QUICK, **options)
    assert found.interrupted
    assert found.table["n_groups"].tolist() == [1, 2]
    assert found.model.n_components == found.best == 2
    assert "larger numbers were not tried" in repr(found)


def test_interrupted_folds_say_how_to_go_on(monkeypatch):
    monkeypatch.setattr(angle_selection, "fit_angle", interrupted_at(2, "by exception"))
    found = silently(planted(n=60), [1, 2], n_folds=2, inference="em")
    with pytest.raises(DataError, match=r"AngleMixture\(1\)"):
        _ = found.model
    with pytest.raises(KeyboardInterrupt):
        silently(planted(n=60), [2], inference="em")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model": "plackett"}, r"model='plackett' must be \"mallows\", \"bayes-mallows\" or \"angle\""),
        ({"criterion": "loo"}, r"criterion='loo' must be \"held-out\", \"dic\""),
        ({"criterion": "dic", "inference": "em"}, r"averages over a posterior.*'bic' or aic"),
        ({"criterion": "waic", "inference": "em"}, r"averages over a posterior"),
        ({"criterion": "bic", "rule": "one-se"}, r"rule='one-se' needs errors"),
        ({"criterion": "bic", "n_folds": 4}, r"leave out n_folds"),
        ({"criterion": "bic", "test_size": 0.5}, r"leave out test_size"),
        ({"criterion": "bic", "validation": "data"}, r"leave out validation"),
        ({"criterion": "bic", "n_components": [41]}, r"41 groups are more than the 40 agents"),
        ({"n_components": [31]}, r"31 groups are more than the 30 agents"),
        ({"store": "chains"}, r"store keeps the chains of one fit"),
        ({"inference": "vi"}, r"rests on the von Mises–Fisher normalizer"),
        ({"normalizer": "vmf"}, r"normalizer='vmf' must be left out where models are compared"),
        ({"n_draws": 0}, r"n_draws=0"),
        ({"n_folds": 2, "validation": "data"}, r"exclude each other"),
    ],
)
def test_mistakes_are_named(options, message):
    data = planted(n=40)
    if "validation" in options:
        options = options | {"validation": data}
    with pytest.raises(DataError, match=message):
        select_components(data, **({"n_components": [1, 2], "random_state": 0} | QUICK | options))


def test_expensive_rows_have_no_criterion():
    with pytest.raises(DataError, match=r"row 1.* ranks 3 of 30 items \(40 such rows\).*'held-out'"):
        select_components(top_lists(40), [1], criterion="dic", random_state=0, inference="sir", **QUICK)
