"""How many groups DPMixture finds where the answer is known, with nothing chosen by the user."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn import datasets

import permix
from permix.dp_mixture.fit import _first_states
from permix.dp_mixture.odd_columns import is_flat, odd_columns
from permix.dp_mixture.report import answer
from permix.dp_mixture.tables import report
from permix.errors import ConvergenceWarning
from permix.moves.start import start_of_chain
from permix.reporting.context import Context
from tests.every_run import first_in_every_run
from tests.oracles.mixtures import naive_predictive


@pytest.fixture(autouse=True)
def _chains_may_disagree():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


def blob(n, d, seed):
    return np.random.default_rng(100 + seed).normal(size=(n, d))


BLOBS = [
    *((200, 2, 1), (200, 5, 0), (200, 10, 0), (200, 2, 0), (200, 5, 1), (200, 10, 1)),
    *((200, 20, 0), (200, 20, 1), (1000, 10, 0), (1000, 10, 1)),
]


@pytest.mark.parametrize(
    ("n", "d", "seed", "n_draws"),
    first_in_every_run(
        [
            (200, 2, 1, 300),  # chains of the default length take ten seconds
            *((*case, "auto") for case in BLOBS),
        ]
    ),
)
def test_one_blob_is_one_group(n, d, seed, n_draws):
    model = permix.DPMixture(n_draws=n_draws, random_state=seed, progress=False).fit(blob(n, d, seed))
    assert model.n_clusters_ == 1
    # Both chains, that from many groups too: so far from 1 in the mean would be more than one in four draws.
    by_chain = model.posterior_["posterior"]["n_groups"].values.mean(axis=1)
    assert by_chain.max() < 1.25


def test_the_blob_rejects_what_was_the_default():
    """A Dirichlet process with a learned concentration, narrow groups, and chains that start alike."""
    X = blob(200, 5, 0)
    model = permix.DPMixture(
        permix.GaussianNIW(prior_strength=0.05, degrees_of_freedom=7.0, scale=0.1 * X.var(axis=0)),
        permix.DirichletProcess(permix.Gamma(1.0, 1.0)),
        init="sequential",
        n_draws=60,
        n_burn_in=60,
        random_state=0,
        progress=False,
    )
    assert model.fit(X).n_clusters_ > 50


# That four separated groups are found is in docs/tutorials/first-groups.md.


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_wine_is_not_absurd(seed):
    """178 wines of three cultivars, 13 columns in their own units."""
    wine = datasets.load_wine()
    model = permix.DPMixture(random_state=seed, progress=False).fit(wine.data)
    assert 2 <= model.n_clusters_ <= 9
    assert permix.adjusted_rand(model.labels_, wine.target) > 0.75


# --- what is learned ------------------------------------------------------------------------------


def chosen(X, family=None, **options):
    settings = {"n_draws": 5, "n_burn_in": 60, "progress": False, "random_state": 0} | options
    return permix.DPMixture(family, **settings).fit(X).family_


@pytest.mark.parametrize("family", [permix.GaussianNIW(), permix.GaussianDiagonal()])
def test_scales_are_learned(family):
    rng = np.random.default_rng(3)
    narrow = np.concatenate([rng.normal(c, 0.3, (40, 2)) for c in (-6.0, 0.0, 6.0)])
    wide = rng.normal(size=(120, 2))

    def share(X):
        found = chosen(X, family, n_draws=100, n_burn_in=100).learnable
        extra = found["degrees_of_freedom"] - (1.0 if isinstance(family, permix.GaussianNIW) else 0.0)
        return (found["scale"] / X.var(axis=0) / extra).mean()

    assert share(narrow) < 0.05
    assert share(wide) > 0.6


def test_units_do_not_matter():
    X = np.concatenate([blob(40, 3, 0), blob(30, 3, 1) + 4.0])
    units, origin = np.array([1e-6, 1.0, 1e5]), np.array([1.0, -50.0, 1e6])
    models = [
        permix.DPMixture(n_draws=30, n_burn_in=20, random_state=0, progress=False).fit(Y)
        for Y in (X, X * units + origin)
    ]
    first, second = (model.posterior_["posterior"] for model in models)
    np.testing.assert_array_equal(first["labels"], second["labels"])
    np.testing.assert_allclose(first["prior_strength"], second["prior_strength"], rtol=1e-6)
    np.testing.assert_allclose(first["scale"] * units**2, second["scale"], rtol=1e-5)


def test_draws_of_what_is_learned_are_used_and_kept(tmp_path):
    X = np.concatenate([blob(30, 2, 0), blob(20, 2, 1) + 5.0])
    # One chain: short ones disagree and would not count alike.
    settings = {"n_draws": 40, "n_burn_in": 20, "n_chains": 1, "random_state": 0, "progress": False}
    model = permix.DPMixture(**settings).fit(X)
    new = X[:3] + 0.1
    # The predictive density of every draw under the hyper-parameters of that draw.
    draws = model.posterior_["posterior"].to_dataset().stack(all=("chain", "draw"))
    densities = []
    for i in range(draws.sizes["all"]):
        family = permix.GaussianNIW(
            model.family_.prior_mean,
            float(draws["prior_strength"].values[i]),
            float(draws["degrees_of_freedom"].values[i]),
            draws["scale"].values[:, i],
        )
        labels = draws["labels"].values[:, i]
        weights = np.exp(model.prior_.sequential_log_weights(np.bincount(labels)))
        groups = [X[labels == k] for k in range(labels.max() + 1)] + [X[:0]]
        predictive = naive_predictive(family.resolve(X))
        densities.append([np.dot(weights, [np.exp(predictive(x, g)) for g in groups]) for x in new])
    np.testing.assert_allclose(model.score_samples(new), np.log(np.mean(densities, axis=0)), rtol=1e-8)
    for name in ("degrees_of_freedom", "prior_strength"):
        assert getattr(model.family_, name) == pytest.approx(float(draws[name].mean()))
    model.save(tmp_path / "learned.permix")
    again = permix.load(tmp_path / "learned.permix")
    np.testing.assert_array_equal(again.score_samples(new), model.score_samples(new))


def test_a_store_with_learned_values_goes_on(tmp_path):
    X = np.concatenate([blob(20, 2, 0), blob(20, 2, 1) + 5.0])
    settings = {"n_burn_in": 40, "random_state": 0, "progress": False}
    permix.DPMixture(n_draws=40, store=tmp_path / "chains", **settings).fit(X)
    longer = permix.DPMixture(n_draws=90, store=tmp_path / "chains", **settings).fit(X)
    whole = permix.DPMixture(n_draws=90, **settings).fit(X)
    for name in ("labels", "scale", "degrees_of_freedom", "prior_strength"):
        one, other = (model.posterior_["posterior"][name].values for model in (longer, whole))
        np.testing.assert_array_equal(one, other)


def test_the_default_family_follows_rows_and_columns():
    assert isinstance(chosen(blob(15, 5, 0)), permix.GaussianNIW)
    assert isinstance(chosen(blob(14, 5, 0)), permix.GaussianDiagonal)


def test_odd_columns_are_named():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(400, 6)), columns=["plain", "flat", "steps", "far", "even", "two"])
    frame["flat"], frame["steps"] = 3.0, rng.integers(0, 4, 400).astype(float)
    frame["far"], frame["even"] = rng.standard_t(2, 400), rng.permutation(400.0 + np.arange(400))
    frame.loc[:199, "two"] += 6.0
    with pytest.warns(permix.errors.PermixWarning, match="do not suit Gaussian groups") as caught:
        chosen(frame)
    (said,) = [str(w.message) for w in caught if "suit" in str(w.message)]
    assert "column 'flat': constant" in said
    assert "column 'steps': of few" in said
    assert "column 'far': of heavy tails" in said
    assert "column 'even': spread evenly" in said
    assert "plain" not in said
    assert "two" not in said


def test_evenly_spread_columns_are_told_from_normal_ones():
    rng = np.random.default_rng(1)
    assert np.mean([is_flat(rng.random(200)) for _ in range(200)]) > 0.8
    assert not any(is_flat(rng.normal(size=200)) for _ in range(200))
    assert not is_flat(rng.random(199))


def test_shapes_of_columns_are_told_from_those_of_groups():
    """Incomes, counts and amounts spent are named; columns of normal groups, far apart or not, are not."""
    rng, n = np.random.default_rng(2), 400
    apart = np.where(np.arange(n) < 300, 2.0, 12.0) + rng.normal(size=n)
    spent = np.where(rng.random(n) < 0.3, 0.0, rng.normal(50.0, 9.0, n))
    columns = {
        "skewed": np.exp(rng.normal(10.0, 0.5, n)),
        "one value": spent,
        "counts": rng.poisson(6.0, n).astype(float),
    }
    for kind, column in columns.items():
        assert odd_columns(column[:, None])[kind] == [0]
        assert not any(odd_columns(column[:49, None]).values())
    assert not any(odd_columns(np.column_stack([rng.normal(40.0, 9.0, n), apart, apart**0.5])).values())
    # Counts beyond hundreds are as good as numbers, and so is a skewed column of both signs.
    large = rng.poisson(300.0, n) - 1.0
    assert not any(odd_columns(np.column_stack([large, columns["skewed"] - 9000.0])).values())


def test_copies_of_rows_are_counted():
    rows = blob(40, 3, 0)
    with pytest.warns(permix.errors.PermixWarning, match="3 of the 43 rows are copies of others"):
        chosen(np.concatenate([rows, rows[:3]]))
    with warnings.catch_warnings():
        warnings.filterwarnings("error", ".*copies of others")
        chosen(np.concatenate([rows, rows[:2]]))


@pytest.mark.parametrize(("n", "said"), [(1, "one row is too few"), (9, "9 rows are too few")])
def test_hardly_any_rows_are_said_to_be_too_few(n, said):
    with pytest.warns(permix.errors.PermixWarning, match=said):
        model = permix.DPMixture(n_draws=4, n_burn_in=2, random_state=0, progress=False).fit(blob(n, 2, 0))
    assert report(model._fit)["verdict"].startswith(f"TOO FEW ROWS: {said}")
    verdict = answer(model._fit, Context("table")).verdict
    assert verdict.level == "bad"
    assert verdict.reasons[0].lower().startswith(said)


def test_the_verdict_says_which_columns_do_not_suit_the_model():
    """Of a square that groups cut up."""
    rng, even = np.random.default_rng(0), np.linspace(0.0, 1.0, 400)
    square = np.column_stack([rng.permutation(even), rng.permutation(even)])
    settings = {"n_draws": 4, "n_burn_in": 2, "random_state": 0, "progress": False}
    frame = pd.DataFrame(square, columns=["east", "north"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cut = permix.DPMixture("gaussian-niw", init=4, **settings).fit(frame)._fit
    assert cut.n_clusters > 1
    said = [reason for reason in answer(cut, Context("table")).verdict.reasons if "too many groups" in reason]
    assert said == [
        "There may be too many groups, which follow the shape of columns 'east', 'north' (spread evenly)."
    ]
    assert answer(cut, Context("table")).verdict.level != "good"


def test_enough_rows_are_not():
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "too few")
        model = permix.DPMixture(n_draws=4, n_burn_in=2, random_state=0, progress=False).fit(blob(10, 2, 0))
    assert "TOO FEW" not in report(model._fit)["verdict"]


def test_checks_see_that_a_flat_shape_is_not_gaussian():
    """Groups that make up a square reach beyond its edges; a round cloud is what the model draws."""
    rng = np.random.default_rng(0)
    settings = {"n_draws": 60, "n_burn_in": 60, "random_state": 0, "progress": False, "init": "sequential"}
    reproduced = {}
    for shape, X in (("square", rng.random((500, 2))), ("round", rng.normal(size=(500, 2)))):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = permix.DPMixture(**settings).fit(X)
        aspects = model.fit_checks(n_replicates=200, random_state=0).aspects.set_index("aspect")
        reproduced[shape] = bool(aspects.loc["column flatness", "reproduced"])
    assert reproduced == {"square": False, "round": True}


def test_what_the_user_gives_is_not_changed():
    X = blob(60, 2, 0)
    family = chosen(X, permix.GaussianNIW(scale=[0.3, 0.4]))
    np.testing.assert_array_equal(family.scale, np.diag([0.3, 0.4]))
    assert family.degrees_of_freedom == 4.0
    family = chosen(X, permix.GaussianNIW(degrees_of_freedom=9.0, prior_strength=0.2, prior_mean=[1.0, 2.0]))
    assert (family.degrees_of_freedom, family.prior_strength) == (9.0, 0.2)
    np.testing.assert_array_equal(family.prior_mean, [1.0, 2.0])


def test_chains_start_on_both_sides():
    assert [start_of_chain("both", chain) for chain in range(3)] == [
        "sequential",
        "one-group",
        "sequential",
    ]
    assert [start_of_chain("random", chain) for chain in range(2)] == ["random", "random"]
    X = blob(80, 4, 0)
    family = permix.Gaussian(noise_scale=0.2).resolve(X)
    makers = _first_states(family, family.encode(X), 80, permix.MixtureOfFiniteMixtures(), "both", 4)
    numbers = [make(np.random.default_rng(0)).n_clusters for make in makers]
    assert numbers[1] == numbers[3] == 1
    assert numbers[0] == numbers[2] > 5
