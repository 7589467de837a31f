"""Cell families: what they refuse, predict and report."""

from __future__ import annotations

import json

import numpy as np
import pytest

from permix.cocluster.cells.block_sums_jit import log_blocks
from permix.cocluster.cells.encoded_matrix import encode_matrix
from permix.cocluster.cells.families import (
    BernoulliCells,
    CategoricalCells,
    CellValueError,
    GaussianCells,
    PoissonCells,
    cell_family,
    family_as_described,
)
from permix.cocluster.cells.registry import CELL_FAMILIES
from permix.errors import DataError
from tests.cocluster.grid.cases import CASES, encoded
from tests.oracles.cocluster import log_cells

VALUES = {
    "categorical": [1.0, 3.0, 3.0, 2.0, 3.0],
    "bernoulli": [1.0, 0.0, 0.0, 1.0, 0.0],
    "poisson": [4.0, 0.0, 2.0, 7.0, 3.0],
    "gaussian": [1.4, -2.0, 0.3, 5.5, 1.1],
}
FAMILIES = pytest.mark.parametrize("name", VALUES)


def sums_of(family, codes):
    """What cells of one block add up to."""
    if family.has_levels:
        return np.bincount(codes, minlength=family.n_slots)
    return np.array([codes.sum(), (codes**2).sum()])


@FAMILIES
def test_marginal_of_a_block_is_that_of_its_values(name):
    family, naive, _ = CASES[name]
    values = np.array(VALUES[name])
    codes = family.encode(values)
    sums = sums_of(family, codes)[None].astype(family.sums_dtype)
    found = log_blocks(family.block_prior(len(codes)), np.array([len(codes)]), sums)
    assert found + family.log_constant(codes) == pytest.approx(log_cells(naive, VALUES[name]), abs=1e-10)


@FAMILIES
def test_predictive_equals_naive(name):
    family, naive, _ = CASES[name]
    codes = family.encode(np.array(VALUES[name]))
    for n in range(len(codes)):
        sums = sums_of(family, codes[:n])
        got = family.log_predictive(codes[n : n + 1], np.array([n]), sums[None])
        assert got[0] == pytest.approx(naive.predictive(VALUES[name][n], VALUES[name][:n]), abs=1e-10)


@FAMILIES
def test_means_are_means_of_the_predictive(name):
    family, naive, _ = CASES[name]
    seen = VALUES[name] * 3
    codes = family.encode(np.array(seen))
    mean = family.means(np.array([len(codes)]), sums_of(family, codes)[None])[0]
    support = {
        "categorical": [1.0, 2.0, 3.0],
        "bernoulli": [0.0, 1.0],
        "poisson": np.arange(60.0),
        "gaussian": np.linspace(-40, 40, 801),
    }[name]
    weights = np.exp([naive.predictive(x, seen) for x in support])
    assert mean == pytest.approx(np.dot(weights, support) / weights.sum(), abs=1e-3)


@FAMILIES
def test_description_gives_the_family_back(name):
    family = cell_family(name, 0.3).resolve(np.array(VALUES[name]))
    description = json.loads(json.dumps(family.describe()))
    assert family_as_described(description) == family
    assert description["name"] == name


@FAMILIES
def test_parameters_have_one_row_a_block(name):
    family, _, _ = CASES[name]
    codes = family.encode(np.array(VALUES[name]))
    sums = np.stack([sums_of(family, codes), sums_of(family, codes[:0])])
    for value in family.parameters(np.array([len(codes), 0]), sums).values():
        assert len(value) == 2
        assert np.all(np.isfinite(value))


def test_defaults_come_from_all_cells():
    assert CategoricalCells().resolve(np.array([3.0, 1.0, 3.0])).levels == (1, 3)
    assert CategoricalCells().resolve(np.array(["b", "a"], dtype=object)).levels == ("a", "b")
    assert PoissonCells().resolve(np.array([1.0, 3.0])).prior_mean == 2.0
    assert PoissonCells().resolve(np.array([0.0, 0.0])).prior_mean == 1.0
    resolved = GaussianCells().resolve(np.array([1.0, 3.0]))
    assert (resolved.prior_mean, resolved.prior_scale) == (2.0, 1.0)
    assert GaussianCells().resolve(np.array([5.0, 5.0])).prior_scale == 1.0
    np.testing.assert_allclose(resolved.encode(np.array([3.0])), [1.0])
    with pytest.raises(DataError, match="no filled cell"):
        CategoricalCells().resolve(np.array([]))


@pytest.mark.parametrize(
    ("family", "values", "message"),
    [
        (CategoricalCells(levels=(1, 2)), [1.0, 5.0], r"cell 2: 5 is none of the known values \(1, 2\)"),
        (BernoulliCells(), [0.0, 2.0], "none of the known values"),
        (PoissonCells(), [1.0, 2.5], "cell 2: 2.5 is not a count"),
        (PoissonCells(), [-1.0], "not a count"),
        (PoissonCells(prior_mean=1.0), [np.inf], "not a finite number"),
    ],
)
def test_values_of_another_kind_are_refused(family, values, message):
    with pytest.raises(CellValueError, match=message) as caught:
        family.encode(np.array(values))
    assert caught.value.position == len(values) - 1


def test_text_is_refused_where_numbers_are_needed():
    with pytest.raises(CellValueError, match="'seven' is not a number"):
        GaussianCells().resolve(np.array([1.0, "seven"], dtype=object))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: CategoricalCells(pseudo_count=0.0), "pseudo_count must be positive"),
        (lambda: CategoricalCells(levels=(1, 1)), "all different"),
        (lambda: CategoricalCells(levels=(None,)), "text or numbers"),
        (lambda: BernoulliCells(levels=(0, 2)), "0 or 1"),
        (lambda: PoissonCells(prior_mean=-1.0), "prior_mean"),
        (lambda: GaussianCells(prior_mean=np.inf), "prior_mean"),
        (lambda: GaussianCells(prior_scale=0.0), "prior_scale"),
        (lambda: cell_family("normal"), "unknown family 'normal'"),
        (lambda: family_as_described({"name": "normal"}), "unknown family 'normal'"),
    ],
)
def test_bad_settings_are_refused(make, message):
    with pytest.raises(DataError, match=message):
        make()


def test_text_levels_have_no_mean():
    family = CategoricalCells(levels=("a", "b"))
    assert family.probabilities(np.array([2]), np.array([[2, 0]])).shape == (1, 2)
    with pytest.raises(DataError, match="no mean"):
        family.means(np.array([2]), np.array([[2, 0]]))


def test_family_objects_pass_through():
    family = GaussianCells(2.0)
    assert cell_family(family) is family
    assert set(CELL_FAMILIES) == set(VALUES)


def test_encoded_matrix():
    X = np.array([[1.0, np.nan, 2.0], [np.nan, 3.0, np.nan]])
    matrix = encoded(PoissonCells(), X)
    assert matrix.n_cells == 3
    assert matrix.rows.tolist() == [0, 0, 1]
    assert matrix.by_column.starts.tolist() == [0, 1, 2, 3]
    assert matrix.log_constant == pytest.approx(-np.log(2.0) - np.log(6.0))
    same = encode_matrix(
        matrix.family, np.array([0, 0, 1]), np.array([0, 2, 1]), np.array([1.0, 2.0, 3.0]), X.shape
    )
    assert same.block_prior == matrix.block_prior


def test_numbers_of_any_size_have_a_scale():
    """Squares of very large numbers overflow, those of very small ones vanish."""
    values = np.array([1.0, 2.0, 4.0, 9.0])
    for unit in (1e300, 1.0, 1e-300):
        family = GaussianCells().resolve(values * unit)
        assert family.prior_mean == pytest.approx(4.0 * unit, rel=1e-12)
        assert family.prior_scale == pytest.approx(values.std() * unit, rel=1e-12)


def test_numbers_that_lose_their_digits_are_refused():
    for family in (PoissonCells(), PoissonCells(prior_mean=2.0)):
        with pytest.raises(
            DataError, match=r"cell 2: 1e\+300 is too large for a count; take family='gaussian'"
        ):
            family.resolve(np.array([1.0, 1e300]))
        with pytest.raises(DataError, match=r"cell 1: 1e\+09 and all others are too large for counts"):
            family.resolve(np.full(1001, 1e9))
    with pytest.raises(DataError, match="too large for a count"):  # held out, or of a new row
        PoissonCells(prior_mean=2.0).encode(np.array([1e10]))
    with pytest.raises(DataError, match=r"cell 2: -1e\+160 is too far from the others"):
        GaussianCells(prior_mean=0.0, prior_scale=1.0).encode(np.array([3.0, -1e160]))
    with pytest.raises(DataError, match="too far"):
        GaussianCells(prior_mean=0.0, prior_scale=1e-300).encode(np.array([1e300]))


def test_the_largest_counts_keep_their_digits():
    """Differences of log factorials, against those of ten times as many digits."""
    import mpmath

    family = PoissonCells(1.0, prior_mean=1e9)
    n, sums = np.array(999), np.array([999e9, 0.0])
    found = float(family.log_predictive(np.array(1e9), n, sums))
    with mpmath.workdps(60):
        shape, rate, x = mpmath.mpf(10) ** 12, mpmath.mpf(1000), mpmath.mpf(10) ** 9
        exact = mpmath.loggamma(shape + x) - mpmath.loggamma(shape) - mpmath.loggamma(x + 1)
        exact += shape * mpmath.log(rate / (rate + 1)) - x * mpmath.log(rate + 1)
    assert found == pytest.approx(float(exact), abs=0.05)
