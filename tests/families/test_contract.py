"""The family contract, for every family: the compiled side against naive densities."""

from __future__ import annotations

from itertools import chain

import numpy as np
import pytest

from permix.families import GaussianDiagonal, GaussianNIW
from permix.families import contract_jit as contract
from tests.families.cases import CASES, naive_vectors
from tests.families.driver import (
    add,
    as_vector,
    clear,
    clear_members,
    copy_cluster,
    extend,
    log_marginal,
    log_predictive_above,
    log_predictive_without,
    merge,
    predictive,
    remove,
)
from tests.oracles.mixtures import naive_marginal, naive_predictive

FAMILIES = pytest.mark.parametrize("name", CASES)


def filled(name, labels, capacity=4):
    """Statistics with the first rows seated as `labels` say."""
    family, X = CASES[name]
    data = family.encode(X)
    stats = family.statistics(capacity)
    for k in range(capacity):
        clear(stats, data, k)
    for i, k in enumerate(labels):
        add(stats, data, i, k)
    return family, X, data, stats


def arrays_of(stats, k):
    """Every per-cluster array, with clusters along its first or last axis, at cluster k; no scratch space."""
    found = {}
    for field, value in stats._asdict().items():
        if isinstance(value, tuple):
            found |= {f"{field}.{name}": array for name, array in arrays_of(value, k).items()}
        elif isinstance(value, np.ndarray) and 4 in value.shape and field not in ("work", "vector"):
            found[field] = (value[..., k] if value.shape[-1] == 4 else value[k]).copy()
    return found


@FAMILIES
def test_predictive_equals_naive(name):
    labels = [0, 0, 1, 0, 2, 1, 1, 2, 0]
    family, X, data, stats = filled(name, labels)
    naive = naive_predictive(family)
    members = [X[: len(labels)][np.array(labels) == k] for k in range(3)]
    for i in range(len(labels), len(X)):
        expected = [naive(X[i], rows) for rows in members] + [naive(X[i], X[:0])]
        np.testing.assert_allclose(predictive(stats, data, i, 4), expected, rtol=1e-10, atol=1e-10)


@FAMILIES
def test_what_is_above_a_floor_is_scored(name):
    """Exactly as without one; below it, either so or minus infinity."""
    _, _, data, stats = filled(name, [0, 0, 1, 0, 2, 1, 1, 2, 0])
    for i in range(9, 12):
        scores = predictive(stats, data, i, 4)
        for floor in (-np.inf, *(scores - 1e-6), *(scores + 1e-6), np.inf):
            out = np.full(4, floor)
            log_predictive_above(stats, data, i, 4, out)
            above = scores > floor
            np.testing.assert_array_equal(out[above], scores[above])
            assert np.all((out[~above] == scores[~above]) | (out[~above] == -np.inf))


def test_far_clusters_of_many_dimensions_are_left_early():
    """Blocks of rows, and what is left out of them, are exact for any number of dimensions."""
    rng = np.random.default_rng(3)
    for d in (15, 16, 17, 40):
        X = rng.normal(size=(60, d)) @ rng.normal(size=(d, d)) + np.repeat([[0.0], [4.0]], 30, axis=0)
        family = GaussianNIW().resolve(X)
        data, stats = family.encode(X), family.statistics(2)
        labels = np.repeat(np.arange(2, dtype=np.int32), 30)
        labels[::10] = -1
        contract.seat_all(stats, data, labels, 2)
        n_left = 0
        for i in range(0, 60, 10):
            scores = predictive(stats, data, i, 2)
            out = np.full(2, scores.max() - 5.0)
            log_predictive_above(stats, data, i, 2, out)
            left = scores < scores.max() - 5.0
            n_left += left.sum()
            np.testing.assert_array_equal(out, np.where(left, -np.inf, scores))
        assert n_left > 0
        naive = naive_predictive(family)
        expected = [naive(X[0], X[labels == k]) for k in range(2)]
        np.testing.assert_allclose(predictive(stats, data, 0, 2), expected, rtol=1e-9)


@pytest.mark.parametrize("far", [2.0, 5.0, 30.0, 1e9])
def test_rows_far_away_in_many_columns_have_a_density(far):
    """However large the product over columns becomes: 500 columns were minus infinity from e^200 on."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(6, 500))
    family = GaussianDiagonal().resolve(X)
    members, row = X[:5], far * np.ones((1, 500))
    data, stats = family.encode(np.concatenate([members, row])), family.statistics(4)
    for k in range(4):
        clear(stats, data, k)
    for i in range(5):
        add(stats, data, i, 0)
    naive = naive_predictive(family)
    expected = [naive(row[0], members), naive(row[0], X[:0])]
    np.testing.assert_allclose(predictive(stats, data, 5, 2), expected, rtol=1e-10)
    out = np.array(expected) - [1.0, -1.0]
    log_predictive_above(stats, data, 5, 2, out)
    assert out[0] == pytest.approx(expected[0], rel=1e-10)
    assert out[1] in (-np.inf, pytest.approx(expected[1], rel=1e-10))


@FAMILIES
def test_chain_rule_equals_marginal(name):
    family, X, data, stats = filled(name, [])
    assert log_marginal(stats, data, 1) == 0.0
    total = 0.0
    for i in range(len(X)):
        total += predictive(stats, data, i, 2)[1]
        add(stats, data, i, 1)
        assert log_marginal(stats, data, 1) == pytest.approx(total, rel=1e-10, abs=1e-9)
    assert total == pytest.approx(naive_marginal(family, X), rel=1e-10)


@FAMILIES
def test_predictive_without_equals_naive(name):
    labels = [0, 0, 1, 0, 2, 1, 1, 2, 0]
    family, X, data, stats = filled(name, labels)
    naive = naive_predictive(family)
    for i, k in enumerate(labels):
        others = X[: len(labels)][[other != i and labels[other] == k for other in range(len(labels))]]
        assert log_predictive_without(stats, data, i, k) == pytest.approx(
            naive(X[i], others), rel=1e-9, abs=1e-9
        )


@pytest.mark.parametrize("name", ["multinomial", "categorical"])
@pytest.mark.parametrize("pseudo_count", [1e-12, 1e-16, 1e-30])
def test_tiny_pseudo_counts_do_not_drown(name, pseudo_count):
    """A datum alone with its answer: what is left of it in the cluster is the pseudo-count, to all digits."""
    family = type(CASES[name][0])(pseudo_count=pseudo_count)
    X = (
        np.array([[3.0, 0.0], [0.0, 2.0], [0.0, 4.0]])
        if name == "multinomial"
        else np.array([[0.0], [1.0], [1.0]])
    )
    family = family.resolve(X)
    data = family.encode(X)
    stats = family.statistics(2)
    clear(stats, data, 0)
    clear(stats, data, 1)
    for i in range(3):
        add(stats, data, i, 0)
        if i:
            add(stats, data, i, 1)
    without = log_predictive_without(stats, data, 0, 0)
    assert without == pytest.approx(predictive(stats, data, 0, 2)[1], rel=1e-12)


@FAMILIES
def test_add_then_remove_leaves_no_trace(name):
    _, _, data, stats = filled(name, [0, 0, 1, 0, 1])
    before = arrays_of(stats, 0)
    for i in (6, 9, 11):
        add(stats, data, i, 0)
    for i in (9, 6, 11):
        remove(stats, data, i, 0)
    for field, value in arrays_of(stats, 0).items():
        np.testing.assert_allclose(value, before[field], rtol=1e-9, atol=1e-9, err_msg=field)


@FAMILIES
def test_removing_the_last_member_gives_an_empty_cluster(name):
    _, _, data, stats = filled(name, [0, 1])
    empty = arrays_of(stats, 3)
    remove(stats, data, 1, 1)
    for field, value in arrays_of(stats, 1).items():
        np.testing.assert_allclose(value, empty[field], atol=1e-12, err_msg=field)


@FAMILIES
def test_merge_equals_the_union(name):
    _, _, data, apart = filled(name, [0, 1, 0, 1, 1, 0])
    _, _, _, together = filled(name, [0, 0, 0, 0, 0, 0])
    source = arrays_of(apart, 1)
    merge(apart, data, 1, 0)
    merge(apart, data, 3, 0)  # an empty cluster adds nothing
    for field, value in arrays_of(apart, 0).items():
        np.testing.assert_allclose(value, arrays_of(together, 0)[field], rtol=1e-9, atol=1e-9, err_msg=field)
    for field, value in arrays_of(apart, 1).items():
        np.testing.assert_array_equal(value, source[field])


@FAMILIES
def test_copy_cluster(name):
    _, _, data, stats = filled(name, [0, 1, 0, 1, 1, 0])
    copy_cluster(stats, data, 1, 2)
    for field, value in arrays_of(stats, 2).items():
        np.testing.assert_array_equal(value, arrays_of(stats, 1)[field], err_msg=field)


# --- draws -----------------------------------------------------------------------------------------

N_DRAWS = 40_000
# Standard errors: one of some hundred ratios is further away about once in ten thousand runs.
MOST_ERRORS = 4.9


def contrast(name):
    """Two rows that are as unlike as any two of the case: eight of the one hardly predict the other."""
    family, X = CASES[name]
    data = family.encode(X)
    stats = family.statistics(len(X))
    copies = np.repeat(np.arange(len(X), dtype=np.int32), 8)
    contract.seat_all(stats, family.encode(X[copies]), copies, len(X))
    scores = np.empty((len(X), len(X)))
    contract.score_new_data(stats, data, len(X), len(X), scores)
    own = np.diag(scores)
    return np.unravel_index(np.argmax(own + own[:, None] - scores - scores.T), scores.shape)


def draw_excess(name, members, others=(), drawn=0):
    """How far draws of the cluster with these rows are from its density, in standard errors.

    For rows t, p(x | members, t)/p(x | members) = p(t | members, x)/p(t | members) has mean 1 over x drawn
    from p(x | members), and does not grow without bound. It is large where x is like t: for every row of the
    case, the share of draws around it is compared with what the density says. That needs to know neither what
    data are nor how many different ones there are.
    """
    family, X = CASES[name]
    seated = [list(members), list(others), [], *([*members, t] for t in range(len(X)))]
    clusters = np.repeat(np.arange(len(seated), dtype=np.int32), [len(rows) for rows in seated])
    stats = family.statistics(len(seated))
    contract.seat_all(stats, family.encode(X[list(chain.from_iterable(seated))]), clusters, len(seated))
    rows = np.empty((N_DRAWS, X.shape[1]))
    contract.draw_many(np.random.default_rng(7), stats, np.full(N_DRAWS, drawn), rows)
    scores = np.empty((N_DRAWS, len(seated)))
    contract.score_new_data(stats, family.encode(family.decode(rows)), N_DRAWS, len(seated), scores)
    ratios = np.exp(scores[:, 3:] - scores[:, :1])
    errors = ratios.std(axis=0) / np.sqrt(N_DRAWS)
    return np.max(np.abs(ratios.mean(axis=0) - 1.0) / np.maximum(errors, 1e-12))


@FAMILIES
def test_draws_match_the_density(name):
    a, b = contrast(name)
    for members in ([], [a], [a, b], range(5)):
        assert draw_excess(name, members) < MOST_ERRORS


@FAMILIES
def test_draws_of_a_broken_family_do_not(name):
    """A family whose ``draw`` looks at the wrong cluster (1), or at no members at all (2)."""
    a, b = contrast(name)
    for members, others in (([a], [b]), ([a, b], [b, b])):
        assert draw_excess(name, members, others, drawn=1) > 2 * MOST_ERRORS
        assert draw_excess(name, members, others, drawn=2) > 2 * MOST_ERRORS


@FAMILIES
def test_extending_segments_scores_as_adding_one_by_one(name):
    """Segments begin at different places, one ends, its slot is used again: each is as if it were alone."""
    family, X = CASES[name]
    data = family.encode(X)
    naive = naive_predictive(family)
    stats = family.statistics(3)
    for k in range(3):
        clear(stats, data, k)
    order = np.array([4, 0, 9, 3, 7, 2, 11, 1])
    starts = np.full(3, -1)
    out = np.empty(3)
    for place, i in enumerate(order):
        if place in (0, 2):
            clear_members(stats, data, order, 0, 0, place // 2)
            starts[place // 2] = place
        if place == 4:  # the first segment ends
            starts[0] = -1
        if place == 6:
            clear_members(stats, data, order, 0, 4, 0)
            starts[0] = 6
        extend(stats, data, i, starts, 3, out)
        for k in np.flatnonzero(starts >= 0):
            members = X[order[starts[k] : place]]
            assert out[k] == pytest.approx(naive(X[i], members), rel=1e-10, abs=1e-10)


@FAMILIES
def test_clearing_members_leaves_an_empty_cluster(name):
    _, _, data, stats = filled(name, [0, 1, 0, 0, 1])
    clear_members(stats, data, np.array([1, 0, 2, 3]), 1, 4, 0)
    untouched = filled(name, [0, 1, 0, 0, 1])[3]
    empty = filled(name, [])[3]
    for k, expected in ((0, empty), (1, untouched)):
        for field, value in arrays_of(expected, k).items():
            np.testing.assert_array_equal(arrays_of(stats, k)[field], value, err_msg=field)


def vectors_of(name):
    """Data as vectors, as ``add_vector`` says."""
    family, X, data, stats = filled(name, [])
    vectors = np.zeros((len(X), len(family.direction_scales(data))))
    for i, vector in enumerate(vectors):
        assert as_vector(stats, data, i, vector, 1.0) == 0.0
    return vectors


@FAMILIES
def test_projection_is_an_inner_product(name):
    family, X, data, stats = filled(name, [])
    assert np.all(family.direction_scales(data) > 0)
    vectors = vectors_of(name)
    # Rows that differ are told apart.
    n_rows = len({row.tobytes() for row in X if not np.all(row == 0.0)})
    assert len({vector.tobytes() for vector in vectors if vector.any()}) == n_rows
    direction = np.random.default_rng(5).normal(size=vectors.shape[1])
    for i, vector in enumerate(vectors):
        longer = direction.copy()
        assert as_vector(stats, data, i, longer, 0.3) == pytest.approx(vector @ direction, abs=1e-12)
        np.testing.assert_allclose(longer, direction + 0.3 * vector, atol=1e-12)


@FAMILIES
def test_what_rows_are_as_vectors(name):
    """Points as they are encoded, word frequencies, indicators of answers."""
    np.testing.assert_allclose(vectors_of(name), naive_vectors(name, CASES[name][1]), atol=1e-12)


def test_contract_functions_are_for_compiled_code():
    with pytest.raises(NotImplementedError, match="compiled"):
        contract.add(None, None, 0, 0)
