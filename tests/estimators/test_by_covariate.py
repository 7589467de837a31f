"""Groups beside covariates: what was generated is found, what was shuffled is not, and files keep it all."""

from __future__ import annotations

import dataclasses
import warnings

import numpy as np
import pytest

import permix
from permix.data.attributes import Attributes, Column
from permix.errors import DataError, FileFormatError
from permix.estimators import by_covariate
from permix.estimators.archive import write_model
from permix.estimators.by_covariate import N_SHUFFLED, _means, _p_value, banded, group_table
from permix.estimators.known import Known, pack, unpack
from permix.files import read_archive, write_archive
from tests.estimators.examples import EXAMPLES, NAMES

WITH_GROUPS = sorted(set(NAMES) - {"MallowsKDE", "AngleClassifier"})
SHARES = np.array([[0.8, 0.2], [0.5, 0.5], [0.1, 0.9]])  # of groups, by precinct


@pytest.fixture(scope="module")
def generated():
    """Two groups that overlap, in three precincts, and the group of everybody."""
    rng = np.random.default_rng(0)
    n = 600
    precinct = rng.integers(3, size=n)
    group = (rng.random(n) >= SHARES[precinct, 0]).astype(int)
    centers = np.array([[0, 1, 2, 3, 4], [4, 3, 0, 1, 2]])
    each = [
        permix.Mallows(center.tolist(), 0.55).sample(n, random_state=k).orders
        for k, center in enumerate(centers)
    ]
    orders = np.where(group[:, None] == 0, each[0], each[1])
    words = np.array(["north", "mid", "south"])[precinct]
    votes = permix.Rankings.from_orders(orders, n_items=5)
    shuffled = rng.permuted(np.repeat(np.arange(20), n // 20))
    ages = 20 + 30 * group + rng.integers(0, 40, size=n)
    known = {"precinct": words, "shuffled": [f"s{s}" for s in shuffled], "age": ages.astype(float)}
    return votes.with_covariates(known), group


@pytest.fixture(scope="module")
def model(generated):
    return permix.MallowsMixture(2, n_init=3, random_state=0).fit(generated[0])


def test_an_association_that_was_generated_is_found(model, generated):
    table = model.by_covariate("precinct").set_index(["precinct", "group"])
    first = int(model.centers_.orders[0, 0] != 0)  # which of the groups the model calls 0
    for place, name in enumerate(("north", "mid", "south")):
        row = table.loc[(name, 0)]
        # 200 agents or so, who say with 80 % or so where they belong: a standard error of 0.05.
        assert abs(row.share_of_value - SHARES[place, first]) < 4 * 0.05
        assert row.share_of_value_low <= row.share_of_value <= row.share_of_value_high
    sums = table.groupby("precinct").share_of_value.sum()
    np.testing.assert_allclose(sums, 1.0)
    np.testing.assert_allclose(table.groupby("group").share_of_group.sum(), 1.0)
    frame = model.by_covariate("precinct")
    assert frame.attrs["p_value"] <= 2 / (1 + N_SHUFFLED)
    assert "go with precinct more than chance" in frame.attrs["verdict"]
    assert "was not used in the fit" in frame.attrs["note"]


def overlapping(n=3000, n_items=4, dispersion=0.5):
    """Votes of two groups that are hardly apart; in two precincts 90 % and 10 % are in the first."""
    rng = np.random.default_rng(1)
    where = rng.integers(2, size=n)
    group = (rng.random(n) >= np.array([0.9, 0.1])[where]).astype(int)
    each = [
        permix.Mallows(center, dispersion).sample(n, random_state=k).orders
        for k, center in enumerate(([0, 1, 2, 3], [3, 2, 1, 0]))
    ]
    votes = permix.Rankings.from_orders(np.where(group[:, None] == 0, each[0], each[1]), n_items=n_items)
    return votes.with_covariates({"precinct": np.array(["east", "west"])[where]})


@pytest.mark.parametrize("kept", ["probabilities", "draws"])
def test_shares_of_precincts_are_not_pulled_to_the_whole(kept, monkeypatch):
    """Where agents say little, counting them by their probabilities makes precincts look alike."""
    votes = overlapping()
    if kept == "probabilities":
        fitted = permix.MallowsMixture(2, random_state=0).fit(votes)
    else:
        fitted = permix.BayesianMallowsMixture(
            2, n_chains=2, n_burn_in=200, n_draws=400, random_state=0, progress=False
        ).fit(votes)
    first = int(fitted.centers_.orders[0, 0] != 0)

    def share():
        found = group_table(fitted._fit, "precinct", random_state=np.random.default_rng(0))
        return found.of_value[found.values.index("east"), first]

    mean, low, high = share()
    # 1,500 agents, of whom c = 0.1 or so look like members of the other group: a standard error of
    # √(q (1 - q) / 1500) / (1 - 2 c) = 0.012 with q = 0.82.
    assert abs(mean - 0.9) < 5 * 0.012
    assert 2 * 0.006 < high - low < 8 * 0.012

    def by_chance(chances, codes, shape, rng, n_tables):
        return by_covariate._by_chance(chances[0], rng, n_tables)

    monkeypatch.setattr(by_covariate, "_by_value", by_chance)
    assert share()[0] < 0.9 - 5 * 0.012


def test_shuffled_covariates_give_none(model):
    found = group_table(model._fit, "shuffled")
    assert found.p_value > 0.05
    assert found.verdict.startswith("No sign")
    # 20 values: of intervals of 90 %, 18 hold the share of all on average, with a standard deviation of 1.4.
    low, high = found.of_value[:, 0, 1], found.of_value[:, 0, 2]
    assert np.count_nonzero((low <= found.overall[0]) & (found.overall[0] <= high)) >= 14
    # Intervals are not so wide that they hold everything: about 2 x 1.64 standard errors of 30 agents, who
    # say so much of where they belong.
    fit = model._fit
    ratios = fit.probabilities / (fit.counts @ fit.probabilities / fit.counts.sum())
    information = np.average((ratios[:, 0] - ratios[:, 1]) ** 2, weights=fit.counts)
    assert (high - low).max() < 2 * 1.645 / np.sqrt(30 * information) * 1.35


def test_numbers_are_put_into_bands(model):
    frame = model.by_covariate("age")
    assert len(frame) == 4 * 2
    assert frame.attrs["p_value"] <= 0.01
    assert frame.agents.sum() == 2 * 600
    codes, words = banded(Column(np.array([3.0, 1.0, np.nan, 2.0, 2.0])), 2)
    assert words == ("1 to 2", "3 to 3")
    assert codes.tolist() == [1, 0, -1, 0, 0]
    assert len(model.by_covariate("age", bands=0)) > 8


def test_means_have_the_intervals_of_student():
    """Where labels are certain, 5 % and 95 % are known; without the root of n they would be far away."""
    from scipy import stats

    rng = np.random.default_rng(5)
    values = np.concatenate([rng.normal(10, 2, 12), rng.normal(50, 5, 30), [7.0]])
    labels = np.repeat([0, 1, 2], [12, 30, 1])
    means = _means(values, [labels] * 20_000, 4, rng)
    for group in (0, 1):
        mine = values[labels == group]
        scale = mine.std(ddof=1) / np.sqrt(len(mine))
        expected = [mine.mean(), *stats.t.ppf([0.05, 0.95], len(mine) - 1, mine.mean(), scale)]
        np.testing.assert_allclose(means[group], expected, atol=0.06 * scale)
    assert means[2, 0] == pytest.approx(7.0)
    assert np.isnan(means[2, 1:]).all()  # one member says nothing of the spread
    assert np.isnan(means[3]).all()


def test_numbers_have_means_by_group(model, generated):
    frame = model.by_covariate("age").drop_duplicates("group").set_index("group")
    ages, group = generated[0].covariates["age"], generated[1]
    first = int(model.centers_.orders[0, 0] != 0)  # which of the groups the model calls 0
    older = 0 if group[np.argmax(ages)] == first else 1
    row = frame.loc[older]
    assert row.mean_of_group_low < row.mean_of_group < row.mean_of_group_high
    assert row.mean_of_group_low > frame.loc[1 - older].mean_of_group_high
    assert "mean_of_group" not in model.by_covariate("precinct")


def test_chance_is_that_of_shuffled_labels():
    """P values of the test that draws tables with fixed margins, against shuffling labels one by one."""
    rng = np.random.default_rng(1)
    observed = np.array([[9, 3, 2], [4, 6, 5]])
    value, group = (np.repeat(np.indices((2, 3))[axis].ravel(), observed.ravel()) for axis in (0, 1))
    expected = np.outer(observed.sum(1), observed.sum(0)) / observed.sum()

    def strength(table):
        return sum(n * np.log(n / e) for n, e in zip(table.ravel(), expected.ravel(), strict=True) if n)

    def shuffled():
        return np.bincount(value * 3 + rng.permutation(group), minlength=6).reshape(2, 3)

    naive = np.mean([strength(shuffled()) >= strength(observed) - 1e-9 for _ in range(4000)])
    found = np.mean([_p_value(observed, rng) for _ in range(4)])
    assert abs(found - naive) < 4 * np.sqrt(0.25 / 4000 + 0.25 / 4000)
    assert (
        abs(_p_value(observed[:, ::-1] * 3, rng) - naive) > 0.05
    )  # a stronger association is another answer


def test_draws_are_called_by_the_groups_of_the_answer():
    """Numbers of groups in draws mean nothing: permuting them changes no table."""
    from permix.estimators.by_covariate import as_groups

    labels = np.array([0, 0, 0, 1, 1, 2])
    drawn = np.array([5, 5, 5, 2, 2, 2])
    assert as_groups(drawn, labels, 3).tolist() == [0, 0, 0, 1, 1, 1]


@pytest.mark.parametrize("name", WITH_GROUPS)
def test_every_model_with_groups_keeps_covariates_in_its_file(name, tmp_path):
    example = EXAMPLES[name]
    data = example.data()
    n, m = data.shape if isinstance(data, np.ndarray) else (len(data), data.n_items)
    words, ages = [("north", "south", "")[i % 3] for i in range(n)], np.arange(n) + 18.0
    if name.startswith("CoClustering"):
        data = permix.Cells.coerce(data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if name == "DPMixture":  # takes tables of numbers, which have no covariates of their own
            model = example.make(random_state=0).fit(data)
            frame = model.by_covariate("precinct", words)
            assert set(frame.precinct) == {"north", "south"}
            return
        data = data.with_covariates({"precinct": words, "age": ages})
        data = data.with_item_attributes({"party": [f"P{k}" for k in range(m)]})
        parameters = example.make().get_params()
        model = example.make(**({"random_state": 0} if "random_state" in parameters else {})).fit(data)
    path = tmp_path / "x.permix"
    model.save(path)
    again = permix.load(path)
    for column in ("precinct", "age"):
        before, after = (each.by_covariate(column) for each in (model, again))
        assert before.equals(after)
        assert before.attrs == after.attrs
    n_known = frame_total(before)
    assert n_known == (int(np.sum(data.counts)) if hasattr(data, "counts") else n)
    with pytest.raises(DataError, match="no column 'region'"):
        again.by_covariate("region")


def frame_total(frame):
    return int(frame[frame.group == 0].agents.sum())


@pytest.mark.parametrize(
    "spoil",
    [
        lambda manifest, arrays: manifest.pop("known"),
        lambda manifest, arrays: manifest["known"]["rows"].append("more"),
        lambda manifest, arrays: manifest["known"]["rows"].__setitem__(0, 7),
        lambda manifest, arrays: arrays.update({"known/rows/0": arrays["known/rows/0"][:-1]}),
        lambda manifest, arrays: arrays.update({"known/rows/0": arrays["known/rows/0"] + np.int32(9)}),
        lambda manifest, arrays: arrays.update({"known/rows/1": np.full(600, np.inf)}),
        lambda manifest, arrays: arrays.pop("known/rows/0/levels"),
        lambda manifest, arrays: arrays.pop("known/rows/0/ends"),
        lambda manifest, arrays: arrays["known/rows/0/ends"].__setitem__(0, -1),
        lambda manifest, arrays: arrays["known/rows/0/ends"].__setitem__(-1, 10**15),
        lambda manifest, arrays: arrays["known/rows/0/ends"].__setitem__(0, 12),
        lambda manifest, arrays: arrays.update(
            {"known/rows/0/ends": arrays["known/rows/0/ends"][::-1].copy()}
        ),
        lambda manifest, arrays: arrays["known/rows/0/levels"].__setitem__(1, 0xFF),
        lambda manifest, arrays: arrays.update({"known/rows/9": np.zeros(600)}),
    ],
)
def test_files_with_other_columns_are_refused(spoil, model, generated, tmp_path):
    path = tmp_path / "x.permix"
    known = model._fit.known._replace(rows=model._fit.known.rows.select(["precinct", "age"]))
    write_model(dataclasses.replace(model._fit, known=known), path)
    manifest, arrays = read_archive(path)
    for key in ("format", "version", "permix", "arrays"):
        del manifest[key]
    arrays = {name: array.copy() for name, array in arrays.items()}
    spoil(manifest, arrays)
    write_archive(path, manifest, arrays)
    with pytest.raises(FileFormatError):
        permix.load(path)


def test_models_without_groups_say_so():
    model = permix.MallowsKDE(dispersion=0.5).fit(EXAMPLES["MallowsKDE"].data())
    with pytest.raises(DataError, match="has no groups"):
        model.by_covariate("precinct")


def test_one_long_comment_takes_its_own_length_alone():
    words = ["ü" * 60_000, *(f"comment {n}" for n in range(600)), "half \ud800 a pair"]
    known = Known(Attributes({"comment": words, "empty": [""] * len(words)}))
    said, arrays = pack(known)
    assert sum(array.nbytes for array in arrays.values()) < 200_000
    assert unpack(said, arrays) == known


@pytest.mark.parametrize("name", ["group", "agents", "share_of_value"])
def test_a_covariate_may_be_called_as_a_column_of_the_table(name, model):
    words = np.where(np.arange(600) % 2, "odd", "even")
    frame = model.by_covariate(name, words)
    assert set(frame[f"{name}_value"]) == {"odd", "even"}
    assert frame.group.tolist() == [0, 1, 0, 1]
    assert frame.agents.tolist() == [300] * 4


def test_groups_that_do_not_recur_are_no_finding(model, generated):
    fit = model._fit
    assert "recur" not in group_table(fit, "precinct").verdict
    alone = fit.group_matches.copy()
    alone[np.arange(len(alone)) != int(alone[:, 0].argmax()), 0] = 0.0
    said = group_table(dataclasses.replace(fit, group_matches=alone), "precinct").verdict
    assert said.startswith("Groups go with precinct")
    assert "; but 1 of these 2 groups did not recur" in said


def test_chains_that_did_not_converge_are_no_finding():
    example = EXAMPLES["DPMixture"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = example.make(random_state=0).fit(example.data())._fit
    words = np.where(np.arange(fit.n) % 2, "odd", "even")
    # Chains of which one has another likelihood throughout.
    apart = {name: array.copy() for name, array in fit.draws.arrays.items()}
    apart["log_likelihood"][0] += 1000.0
    fit = dataclasses.replace(fit, draws=dataclasses.replace(fit.draws, arrays=apart))
    assert "; but the chains did not converge" in group_table(fit, "parity", values=words).verdict
