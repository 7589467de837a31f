"""Groups that chains find again are told apart from those that they do not."""

from __future__ import annotations

import numpy as np

from permix.posterior.estimated import recurrence_of

ESTIMATE = np.repeat([0, 1, 2], 10)


def naive(draws: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Jaccard's index by sets, over all draws."""
    k = labels.max() + 1
    found = np.zeros((*draws.shape[:2], k))
    for place in np.ndindex(draws.shape[:2]):
        groups = [set(np.flatnonzero(draws[place] == g)) for g in np.unique(draws[place])]
        for own in range(k):
            members = set(np.flatnonzero(labels == own))
            found[(*place, own)] = max(len(members & g) / len(members | g) for g in groups)
    return found.mean(axis=(0, 1)), (np.median(found, axis=1) >= 0.6).sum(axis=0)


def test_recurrence_is_jaccards_index_by_sets() -> None:
    rng = np.random.default_rng(0)
    draws = rng.integers(4, size=(3, 20, 30))
    draws[0] = ESTIMATE  # one chain is always at the estimate
    draws[1, :, :20] = ESTIMATE[:20]  # one finds two of its groups
    draws[1, :, 20:] = 3 + np.arange(10) % 5
    found = recurrence_of(draws.astype(np.uint8), ESTIMATE)
    agreement, n_chains = naive(draws, ESTIMATE)
    np.testing.assert_allclose(found.agreement, agreement, rtol=1e-12)
    np.testing.assert_array_equal(found.n_chains, n_chains)
    assert found.n_chains.tolist() == [2, 2, 1]


def test_numbers_of_groups_mean_nothing() -> None:
    draws = np.stack([(ESTIMATE + shift) % 3 for shift in range(3)])[None]
    found = recurrence_of(draws, ESTIMATE)
    assert found.agreement.tolist() == [1.0, 1.0, 1.0]
    assert found.n_chains.tolist() == [1, 1, 1]


def test_most_of_a_chain_counts_not_some_of_it() -> None:
    """Seven draws of ten with the group are most of a chain, three are not."""
    with_it = [0, 1]
    draws = np.zeros((2, 10, 30), np.int64)
    for chain, share in zip(with_it, (7, 3), strict=True):
        draws[chain, :share] = ESTIMATE
    assert recurrence_of(draws, ESTIMATE).n_chains.tolist() == [1, 1, 1]
