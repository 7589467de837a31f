"""Shares of groups of rows: over draws where they recur, of the members where they do not."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import beta

from permix import DirichletProcess
from permix.reporting.partition_sections import LineGroup, drawn_shares, groups_table, sizes_figure


def test_a_group_that_recurs_nowhere_has_the_share_of_its_members():
    """A third group of 20 is shown, which draws hold in the second: over draws its share would be 0."""
    labels = np.repeat([0, 1, 2], [50, 30, 20])
    draws = np.repeat([0, 1], [50, 50])[None, None].repeat(4, axis=1)
    shares = drawn_shares(draws, labels, [1, 1, 0])
    assert shares[0] == pytest.approx((0.5, 0.5, 0.5))
    assert shares[2] == (0.2, None, None)
    assert drawn_shares(draws, labels, [1, 1, 1])[2][0] == 0.0  # what is shown beside 20 members otherwise

    groups = [
        LineGroup(n, *share, 0.9, int(share[1] is not None))
        for n, share in zip((50, 30, 20), shares, strict=True)
    ]
    table = groups_table(groups, 1, "rows")
    assert [row[1:3] for row in table.rows][2] == (20, "20%")
    assert "of groups that no chain has, the share of the members" in table.note
    assert "the share of the members" not in groups_table(groups[:1], 1, "rows").note
    assert "recur in no chain" in sizes_figure(groups, "rows").description


def test_shares_in_the_population_have_the_interval_of_a_sample():
    """All draws have one partition: shares are Dirichlet, and their ends those of beta distributions."""
    labels = np.repeat([0, 1], [60, 40])
    draws = np.tile(labels, (2, 100, 1))
    (mean, low, high), _ = drawn_shares(draws, labels, [2, 2], lambda draw: DirichletProcess(1.0))
    exact = beta(60, 41)
    assert mean == pytest.approx(60 / 101)
    for end, at in ((low, 0.05), (high, 0.95)):
        error = np.sqrt(at * (1 - at) / 2_000) / exact.pdf(exact.ppf(at))
        assert end == pytest.approx(exact.ppf(at), abs=4 * error)
    # Of these rows alone they are known.
    assert drawn_shares(draws, labels, [2, 2])[0] == pytest.approx((0.6, 0.6, 0.6))


def test_the_concentration_is_that_of_each_draw():
    labels = np.repeat([0, 1], [6, 4])
    draws = np.tile(labels, (1, 200, 1))
    asked = []

    def prior_of(draw):
        asked.append(draw)
        return DirichletProcess(1e-9 if draw < 100 else 1e9)

    mean = drawn_shares(draws, labels, [1, 1], prior_of)[0][0]
    assert sorted(set(asked)) == list(range(200))
    assert mean == pytest.approx(0.3, abs=0.05)  # 0.6 in half of the draws, and nothing in the others
