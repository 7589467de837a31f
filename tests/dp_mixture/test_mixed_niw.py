"""Tables whose numbers are correlated within groups, beside categories, counts and gaps."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pytest

import permix
from permix.dp_mixture.choose_family import chosen_family
from permix.families import GaussianNIW, Mixed, MixedNIW
from permix.moves.state import MixtureState
from permix.partitions import DirichletProcess

GROUPS = np.repeat([0, 1], 60)


@pytest.fixture(scope="module")
def table():
    """Two groups, in each of which the two numbers are correlated; some gaps."""
    rng = np.random.default_rng(4)
    common = rng.normal(size=(120, 1))
    numbers = np.array([[0.0, 50.0], [6.0, 50.0]])[GROUPS] + [1.0, 20.0] * (
        0.95 * common + 0.3 * rng.normal(size=(120, 2))
    )
    frame = pd.DataFrame(
        {
            "kind": np.where(rng.random(120) < np.where(GROUPS == 0, 0.8, 0.3), "a", "b"),
            "length": numbers[:, 0],
            "visits": rng.poisson(np.where(GROUPS == 0, 2, 12)),
            "weight": numbers[:, 1],
        }
    )
    frame.loc[[3, 77], "length"] = np.nan
    frame.loc[[5, 77], "kind"] = None
    return frame


@pytest.fixture(scope="module")
def model(table):
    return permix.DPMixture(n_draws=60, n_burn_in=60, random_state=0, progress=False).fit(table)


def test_two_groups_are_found_where_numbers_are_correlated(model, table):
    assert isinstance(model.family_, MixedNIW)
    assert permix.adjusted_rand(model.labels_, GROUPS) > 0.95
    apart = permix.DPMixture("mixed", n_draws=60, n_burn_in=60, random_state=0, progress=False).fit(table)
    assert apart.posterior_["posterior"]["n_groups"].mean() > model.posterior_["posterior"]["n_groups"].mean()


def test_groups_are_described_in_the_order_of_the_columns(model, table):
    names = model.family_.parameter_names(list(table.columns))
    assert names == ["kind=a", "kind=b", "length", "visits", "weight"]
    means = model.cluster_parameters_["means"]
    for k in range(2):
        rows = table[model.labels_ == k]
        assert abs(means[k, 2] - rows["length"].mean()) < 0.2
        assert abs(means[k, 3] - rows["visits"].mean()) < 0.5
        assert abs(means[k, 0] - (rows["kind"] == "a").sum() / rows["kind"].notna().sum()) < 0.05
    covariance = model.cluster_parameters_["covariance"]
    correlation = covariance[:, 0, 1] / np.sqrt(covariance[:, 0, 0] * covariance[:, 1, 1])
    assert np.all(correlation > 0.7)


def test_drawn_rows_are_like_the_data(model, table):
    drawn = model.sample(400, random_state=1)
    rows = pd.DataFrame(drawn[0] if isinstance(drawn, tuple) else drawn, columns=table.columns)
    assert set(rows["kind"]) == {"a", "b"}
    visits = rows["visits"].astype(float)
    assert np.all(visits == np.floor(visits))
    assert abs(rows["weight"].astype(float).mean() - 50.0) < 5 * 25 / np.sqrt(400)


def test_new_rows_are_scored_by_what_they_have(model, table):
    new = table.iloc[[0, 1]].copy()
    whole = model.score_samples(new)
    new["length"] = np.nan
    part = model.score_samples(new)
    assert np.all(np.isfinite(part))
    assert np.all(part > whole - 5)
    new["weight"], new["visits"], new["kind"] = np.nan, np.nan, None
    np.testing.assert_allclose(model.score_samples(new), 0.0, atol=1e-10)


def test_files_give_the_same_model(model, table, tmp_path):
    model.save(tmp_path / "a.permix")
    again = permix.load(tmp_path / "a.permix")
    assert again.family_ == model.family_
    np.testing.assert_array_equal(again.score_samples(table[:9]), model.score_samples(table[:9]))


def test_what_is_learned_of_numbers_is_as_without_other_columns():
    """GaussianNIW's own draws are held against enumeration; these must be the same ones."""
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=(12, 2)) * [1.0, 7.0]
    beside = rng.integers(0, 2, 12).astype(float)
    prior, labels = DirichletProcess(1.0), np.repeat([0, 1], 6)
    alone, joint = GaussianNIW(), MixedNIW(["category", "number", "number"])
    for name, called in (
        ("prior_strength",) * 2,
        ("degrees_of_freedom",) * 2,
        ("scale", "within_share"),
    ):
        states = []
        for asked, X, learned in (
            (alone, numbers, name),
            (joint, np.column_stack([beside, numbers]), called),
        ):
            family = asked.resolve(X)
            learning = asked.learning(family, family.encode(X))
            if asked is joint:
                of_numbers = dataclasses.replace(learning.numbers, names=(name,))
                others = dataclasses.replace(learning.others, names=())
                learning = dataclasses.replace(learning, numbers=of_numbers, others=others)
            learning = dataclasses.replace(learning, names=(learned,))
            state = MixtureState(family, family.encode(X), 12, prior, learning=learning)
            state.set_labels(labels)
            drawing = np.random.default_rng(1)
            for _ in range(3):
                state.adopt_family(learning.draw(drawing, state.family, state.stats, state.n_clusters))
            states.append((state.family, learning.log_prior(state.family)))
        (first, first_prior), (second, second_prior) = states
        np.testing.assert_allclose(first.scale, second.of_numbers.scale, rtol=1e-9)
        assert first.prior_strength == pytest.approx(second.prior_strength, rel=1e-9)
        assert first.degrees_of_freedom == pytest.approx(second.degrees_of_freedom, rel=1e-9)
        assert first_prior == pytest.approx(second_prior, rel=1e-9)


def test_the_table_chooses():
    rows = np.arange(10.0)
    frame = pd.DataFrame({"x": rows + 0.5, "y": rows**2 + 0.1, "kind": list("ababababab")})
    assert type(chosen_family(None, frame)) is MixedNIW
    assert type(chosen_family(None, frame[["x", "kind"]])) is Mixed  # nothing to be correlated with
    assert type(chosen_family(None, frame[:2])) is Mixed  # fewer rows than a covariance has entries
    assert type(chosen_family("mixed", frame)) is Mixed


def test_columns_of_two_values_are_categories():
    """As numbers they make groups around each value: four for two."""
    rng = np.random.default_rng(1)
    common = rng.normal(size=(120, 1))
    numbers = 5.0 * GROUPS[:, None] + 0.9 * common + 0.4 * rng.normal(size=(120, 3))
    table = np.column_stack([rng.integers(0, 2, 120), numbers])
    model = permix.DPMixture(n_draws=60, n_burn_in=60, random_state=0, progress=False).fit(table)
    assert model.family_.kinds == ("category", "number", "number", "number")
    assert permix.adjusted_rand(model.labels_, GROUPS) > 0.95
    assert model.family_.name == "mixed-niw"
    # Neither a single odd value nor a constant is a category, and a table of two values has nothing else.
    table[:, 0] = 0.0
    assert chosen_family(None, table).name == "gaussian-niw"
    table[:2, 0] = 1.0
    assert chosen_family(None, table).name == "gaussian-niw"
    answers = rng.integers(0, 2, (40, 3)).astype(float)
    assert chosen_family(None, answers) == Mixed(["category"] * 3)
    # Truth values are categories in an array as in a frame or a list, constant ones too.
    truths = np.column_stack([answers == 1.0, np.ones(40, dtype=bool)])
    for given in (truths, truths.tolist(), pd.DataFrame(truths, columns=list("abcd"))):
        assert chosen_family(None, given) == Mixed()
    assert (
        permix.DPMixture(n_draws=4, n_burn_in=4, progress=False).fit(truths).family_.kinds
        == ("category",) * 4
    )


def test_without_numbers_it_is_as_mixed():
    frame = pd.DataFrame({"a": list("xyxyxx"), "b": list("uuvvuu")})
    first = permix.DPMixture(MixedNIW(), n_draws=5, n_burn_in=5, random_state=0, progress=False).fit(frame)
    second = permix.DPMixture(Mixed(), n_draws=5, n_burn_in=5, random_state=0, progress=False).fit(frame)
    np.testing.assert_array_equal(first.labels_, second.labels_)
