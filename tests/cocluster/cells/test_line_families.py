"""Lines of a matrix as data of the family contract: the compiled side against naive cells."""

from __future__ import annotations

import numpy as np
import pytest

from permix.cocluster.cells.blocks_jit import count_prior
from permix.cocluster.cells.line_counts_jit import CELLS, SLOT, START, TOTALS
from permix.cocluster.cells.line_family import LineCountFamily, LineMomentFamily, line_family
from permix.cocluster.cells.line_moments_jit import fill_moment_tables
from tests.cocluster.grid.cases import CASES as CELL_CASES
from tests.cocluster.grid.cases import encoded, random_matrix
from tests.families.driver import (
    add,
    clear,
    clear_members,
    copy_cluster,
    extend,
    log_marginal,
    log_predictive_without,
    merge,
    predictive,
    remove,
)
from tests.oracles.cocluster import log_matrix

GROUPS = np.array([0, 1, 2, 0, 1, 1, 3, 2, 0, 0], dtype=np.int32)
LABELS = [0, 0, 1, 0, 2, 1, 1, 2, 0]
CAPACITY = 4
# Each cell family, and each again with tables too short for the counts that occur.
NAMES = [*CELL_CASES, *(f"{name}-short" for name in CELL_CASES)]
FAMILIES = pytest.mark.parametrize("name", NAMES)


def grouped_lines(family, labels):
    """The lines, with cells grouped by the labels of the other axis."""
    groups, out = np.asarray(labels, dtype=np.int32), family.room_for_lines()
    family.group_by(groups, int(groups.max(initial=-1)) + 1, out)
    return out


class Case:
    """Lines of a random matrix, the first few seated in clusters."""

    def __init__(self, name, labels=LABELS):
        name, _, short = name.partition("-")
        self.X = random_matrix(name, 8, shape=(14, 10), missing=0.3)
        cells, self.naive, _ = CELL_CASES[name]
        matrix = encoded(cells, self.X)
        self.family = line_family(matrix, 24)
        if short and matrix.family.has_levels:
            prior = count_prior(cells.pseudo_count, np.array([cells.n_slots]), 1)
            self.family = LineCountFamily(matrix.by_row, prior, 24)
        elif short:
            tables = np.empty(3), np.empty(4 if name == "poisson" else 0)
            fill_moment_tables(matrix.block_prior, *tables)
            self.family = LineMomentFamily(matrix.by_row, matrix.block_prior, 24, tables)
        self.scale = matrix.family.prior_scale if name == "gaussian" else None
        self.poisson = name == "poisson"
        self.data = grouped_lines(self.family, GROUPS)
        self.stats = self.family.statistics(CAPACITY)
        self.labels = list(labels)
        for i, k in enumerate(labels):
            add(self.stats, self.data, i, k)

    def log_lines(self, lines):
        """ln p(lines in one cluster), as compiled codes see it: without Σ ln x!, on the family's scale."""
        from scipy.special import gammaln

        X = self.X[list(lines)]
        value = log_matrix(self.naive, X, [0] * len(X), GROUPS.tolist()) if len(X) else 0.0
        filled = X[~np.isnan(X)]
        if self.scale:
            value += len(filled) * np.log(self.scale)
        return value + gammaln(filled + 1.0).sum() if self.poisson else value

    def members(self, k):
        return [i for i, label in enumerate(self.labels) if label == k]


@FAMILIES
def test_grouping_adds_up(name):
    """Slots, sums and counts of every line against a dense table."""
    case = Case(name)
    for i, row in enumerate(case.X):
        n_filled = [int(np.count_nonzero(~np.isnan(row[group == GROUPS]))) for group in range(4)]
        if hasattr(case.data, "bounds"):
            n_levels = case.family.n_levels
            bounds = case.data.bounds
            counts = np.zeros(4 * (n_levels + 1), dtype=int)
            for slot, cells in case.data.entries[bounds[i, START] : bounds[i + 1, START]]:
                counts[slot] += cells
            table = counts.reshape(4, n_levels + 1)
            assert table[:, -1].tolist() == n_filled
            assert table[:, :-1].sum(axis=1).tolist() == n_filled
            assert np.array_equal(
                case.data.entries[bounds[i, START] : bounds[i, TOTALS], SLOT] % (n_levels + 1) < n_levels,
                np.ones(bounds[i, TOTALS] - bounds[i, START], bool),
            )
        else:
            first, last = case.data.starts[i : i + 2]
            entries = dict(case.data.entries[first:last].tolist())
            assert [entries.get(group, 0) for group in range(4)] == n_filled
            codes = (row - 1.0) / 2.0 if case.scale else row
            for (group, _), (total, squares) in zip(
                case.data.entries[first:last], case.data.sums[first:last], strict=True
            ):
                inside = codes[(group == GROUPS) & ~np.isnan(row)]
                assert total == pytest.approx(inside.sum(), abs=1e-12)
                assert squares == pytest.approx((inside**2).sum(), abs=1e-12)


@FAMILIES
def test_predictive_equals_naive(name):
    case = Case(name)
    for i in range(len(LABELS), len(case.X)):
        members = [case.members(k) for k in range(CAPACITY)]
        expected = [case.log_lines([*lines, i]) - case.log_lines(lines) for lines in members]
        np.testing.assert_allclose(predictive(case.stats, case.data, i, CAPACITY), expected, atol=1e-9)


@FAMILIES
def test_predictive_without_equals_naive(name):
    case = Case(name)
    for i, k in enumerate(LABELS):
        others = [j for j in case.members(k) if j != i]
        expected = case.log_lines([*others, i]) - case.log_lines(others)
        assert log_predictive_without(case.stats, case.data, i, k) == pytest.approx(expected, abs=1e-9)


@FAMILIES
def test_marginal_equals_naive(name):
    case = Case(name)
    for k in range(CAPACITY):
        assert log_marginal(case.stats, case.data, k) == pytest.approx(
            case.log_lines(case.members(k)), abs=1e-9
        )
    assert log_marginal(case.stats, case.data, 3) == 0.0


def arrays_of(stats, k):
    """What the statistics hold of cluster k."""
    return [
        getattr(stats, field)[..., k].copy()
        for field in ("counts", "steps", "values")
        if hasattr(stats, field)
    ]


def assert_clusters_equal(mine, theirs):
    for left, right in zip(mine, theirs, strict=True):
        np.testing.assert_allclose(left, right, atol=1e-10)


@FAMILIES
def test_remove_undoes_add(name):
    case = Case(name)
    before = arrays_of(case.stats, 1)
    add(case.stats, case.data, 12, 1)
    assert any(not np.array_equal(x, y) for x, y in zip(before, arrays_of(case.stats, 1), strict=True))
    remove(case.stats, case.data, 12, 1)
    assert_clusters_equal(arrays_of(case.stats, 1), before)


@FAMILIES
def test_merge_copy_and_clear(name):
    case = Case(name)
    both = Case(name, [k if k != 2 else 1 for k in LABELS])
    copy_cluster(case.stats, case.data, 2, 3)
    assert_clusters_equal(arrays_of(case.stats, 3), arrays_of(case.stats, 2))
    before = arrays_of(case.stats, 2)
    merge(case.stats, case.data, 2, 1)
    assert_clusters_equal(arrays_of(case.stats, 1), arrays_of(both.stats, 1))
    assert_clusters_equal(arrays_of(case.stats, 2), before)
    empty = arrays_of(case.family.statistics(1), 0)
    clear(case.stats, case.data, 3)
    assert_clusters_equal(arrays_of(case.stats, 3), empty)
    order = np.array(case.members(2), dtype=np.int64)
    clear_members(case.stats, case.data, order, 0, len(order), 2)
    assert_clusters_equal(arrays_of(case.stats, 2), empty)


@FAMILIES
def test_extend_scores_then_adds(name):
    case, other = Case(name), Case(name)
    starts = np.array([0, -1, 0], dtype=np.int64)
    out = np.empty(3)
    extend(case.stats, case.data, 11, starts, 3, out)
    expected = predictive(other.stats, other.data, 11, 3)
    np.testing.assert_allclose(out[[0, 2]], expected[[0, 2]], atol=1e-12)
    for k in (0, 2):
        add(other.stats, other.data, 11, k)
        np.testing.assert_allclose(
            predictive(case.stats, case.data, 12, 3)[k],
            predictive(other.stats, other.data, 12, 3)[k],
            atol=1e-12,
        )


@pytest.mark.parametrize("pseudo_count", [1e-12, 1e-30])
def test_tiny_pseudo_counts_do_not_drown(pseudo_count):
    """A line alone with its level: what is left of it in the cluster is the pseudo-count, to all digits."""
    X = np.array([[0.0], [1.0], [1.0]])
    matrix = encoded(type(CELL_CASES["bernoulli"][0])(pseudo_count=pseudo_count), X)
    family = line_family(matrix, 24)
    data = grouped_lines(family, [0])
    stats = family.statistics(1)
    for i in range(3):
        add(stats, data, i, 0)
    expected = np.log(pseudo_count) - np.log(2 + 2 * pseudo_count)
    assert log_predictive_without(stats, data, 0, 0) == pytest.approx(expected, rel=1e-14)


def test_other_groups_leave_empty_statistics_valid():
    """Statistics that are empty serve whatever the groups are: moves keep theirs from step to step."""
    case = Case("categorical")
    kept = case.family.statistics(1)
    order = np.array([0, 1], dtype=np.int64)
    for groups in (GROUPS, GROUPS % 2, np.arange(10, dtype=np.int32)):
        case.family.group_by(groups, int(groups.max()) + 1, case.data)
        for i in order:
            add(kept, case.data, i, 0)
        clear_members(kept, case.data, order, 0, 2, 0)
        for left, right in zip(arrays_of(kept, 0), arrays_of(case.family.statistics(1), 0), strict=True):
            np.testing.assert_array_equal(left, right)


def test_entries_hold_counts():
    case = Case("categorical")
    assert case.data.entries[: case.data.bounds[-1, START], CELLS].min() >= 1
