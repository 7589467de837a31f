"""What a mixture of angle-based models says about the rest of a row, against enumeration."""

from itertools import permutations

import numpy as np
import pytest

import permix
from permix.angle.completions import complete, predict_pairwise, sample_completions
from permix.angle.components import AngleComponents
from permix.distributions.angle.scores import standard_scores
from permix.errors import DataError

T = 4
ALL = np.array(list(permutations(range(T))))
SCORES = standard_scores(T)


@pytest.fixture(scope="module")
def components():
    rng = np.random.default_rng(3)
    directions = rng.normal(size=(2, T))
    directions -= directions.mean(axis=1, keepdims=True)
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    return AngleComponents(tuple("abcd"), np.array([0.6, 0.4]), directions, np.array([3.0, 5.0]), "exact")


def posterior(components, listed, below):
    """P(component, ranking | row) over all rankings, by enumeration."""
    joint = np.zeros((2, len(ALL)))
    for k in range(2):
        weights = np.exp((components.tilts[k][ALL] * SCORES).sum(axis=1))
        joint[k] = components.weights[k] * weights / weights.sum()
    places = np.argsort(ALL, axis=1)
    agrees = np.all(np.diff(places[:, listed], axis=1) > 0, axis=1)
    if below:
        agrees &= np.all(ALL[:, : len(listed)] == listed, axis=1)
    joint *= agrees
    return joint / joint.sum()


ROWS = [([2, 0], False), ([1], True), ([3, 1, 0], False), ([0, 2, 1, 3], True), ([3, 2], True)]


@pytest.fixture(scope="module")
def rows():
    names = [[("abcd")[item] for item in listed] for listed, _ in ROWS]
    unlisted = ["below" if below else "unknown" for _, below in ROWS]
    return permix.Rankings.from_orders(names, items=list("abcd"), unlisted=unlisted)


def pairs_by_enumeration(components, listed, below):
    table = posterior(components, listed, below).sum(axis=0)
    places = np.argsort(ALL, axis=1)
    return np.einsum("r,rab->ab", table, (places[:, :, None] < places[:, None, :]).astype(float))


def test_pairs_against_enumeration(components, rows):
    n = 3000
    found = predict_pairwise(components, rows, None, n, 1)
    exact = np.stack([pairs_by_enumeration(components, *row) for row in ROWS])
    # Successive draws are nearly independent; five standard errors with half of them effective.
    bound = 5.0 * np.sqrt(exact * (1.0 - exact) / (n / 2)) + 1e-12
    assert (np.abs(found - exact) <= bound).all()
    wrong = np.stack([pairs_by_enumeration(components, listed, not below) for listed, below in ROWS])
    assert (np.abs(found - wrong) > bound).any(), "reading top lists as subsets must show"


def test_asked_pairs_are_those_of_the_table(components, rows):
    asked = [(4, "a", "b"), (0, "c", "a"), (0, "d", "b")]
    table = predict_pairwise(components, rows, None, 200, 7)
    found = predict_pairwise(components, rows, asked, 200, 7)
    np.testing.assert_array_equal(found, [table[4, 0, 1], table[0, 2, 0], table[0, 3, 1]])
    assert found[1] == 1.0
    with pytest.raises(DataError, match="no row 9"):
        predict_pairwise(components, rows, [(9, "a", "b")], 200, 7)


def test_completed_rankings_agree_and_have_the_expected_ranks(components, rows):
    n = 3000
    completed, ranks = complete(components, rows, n, 1)
    for row, (listed, below) in enumerate(ROWS):
        table = posterior(components, listed, below).sum(axis=0)
        places = np.argsort(ALL, axis=1) + 1.0
        mean = table @ places
        spread = np.sqrt(table @ (places - mean) ** 2)
        assert (np.abs(ranks.mean[row] - mean) <= 5.0 * spread / np.sqrt(n / 2) + 1e-12).all()
        order = completed.orders[row].tolist()
        assert [item for item in order if item in listed] == listed
        if below:
            assert order[: len(listed)] == listed
        assert (ranks.low[row] <= ranks.mean[row]).all()
        assert (ranks.high[row] >= ranks.mean[row]).all()


def test_draws_have_the_joint_distribution_of_component_and_ranking(components, rows):
    size = 4000
    drawn = sample_completions(components, rows, size, random_state=2)
    code = {tuple(order): at for at, order in enumerate(ALL.tolist())}
    for row, (listed, below) in enumerate(ROWS):
        exact = posterior(components, listed, below)
        counts = np.zeros_like(exact)
        for order, label in zip(drawn.orders[row].tolist(), drawn.labels[row], strict=True):
            counts[label, code[tuple(order)]] += 1
        assert counts[exact == 0.0].sum() == 0
        bound = 5.0 * np.sqrt(exact * (1.0 - exact) / (size / 2)) + 1e-12
        assert (np.abs(counts / size - exact) <= bound).all()
    assert drawn.to_rankings().n_agents == size * len(ROWS)
