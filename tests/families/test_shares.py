"""How narrow learned groups may be: what rounding and copies of rows allow."""

from __future__ import annotations

import numpy as np
import pytest

import permix
from permix.families.niw import varying_variances
from permix.families.scale_learning import MOST_ROUNDED, SHARE, shares_of


def least_shares(table):
    return shares_of(table, varying_variances(table)).least_shares


def test_rounded_columns_have_groups_no_narrower_than_the_rounding():
    rng = np.random.default_rng(0)
    x = rng.normal(0.0, 30.0, 200)
    table = np.column_stack([x, np.round(x), np.round(x, 1) / 7.0, rng.integers(0, 2, 200), np.ones(200)])
    table[3, 1] = np.nan
    shares = least_shares(table)
    assert shares[0] == SHARE.low
    assert shares[1] == pytest.approx(1.0 / 12.0 / np.nanvar(table[:, 1]))
    # Seven tenths of a rounded number: errors of arithmetic do not count as differences.
    assert shares[2] == pytest.approx((0.1 / 7.0) ** 2 / 12.0 / table[:, 2].var(), rel=1e-6)
    assert shares[3] == MOST_ROUNDED
    assert shares[4] == SHARE.low  # constant: nothing is learned


def test_copies_of_rows_make_no_groups_of_copies():
    table = np.random.default_rng(0).normal(size=(50, 2))
    assert np.all(least_shares(np.concatenate([table, table[:2]])) < 1e-4)
    assert np.all(least_shares(np.concatenate([table, table])) == MOST_ROUNDED)


def test_near_groups_are_told_apart_beside_far_ones():
    rng = np.random.default_rng(1)
    labels = np.repeat([0, 1, 2], 40)
    X = np.array([[0.0, 0.0], [12.0, 0.0], [1000.0, 1000.0]])[labels] + rng.normal(size=(120, 2))
    model = permix.DPMixture(n_draws=40, n_burn_in=60, random_state=0, progress=False).fit(X)
    assert permix.adjusted_rand(model.labels_, labels) == 1.0
