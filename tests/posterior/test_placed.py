"""Groups are found from those who can be told apart; the others are placed afterwards, or not at all."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from permix.posterior import placed
from permix.posterior.estimated import by_size, nearest_partition
from permix.posterior.placed import placed_partition, shares_of_groups, tellable

SETTINGS = SimpleNamespace(loss="vi", n_jobs=1, progress=False)
# Three groups of ten that all draws agree on, but for two waverers; and forty who could be in any.
SURE, UNSURE, N_DRAWS = 30, 40, 60


def drawn(n_unsure=UNSURE):
    rng = np.random.default_rng(3)
    labels = np.tile(np.repeat([0, 1, 2], SURE // 3), (N_DRAWS, 1))
    labels[:, 0] = np.where(rng.random(N_DRAWS) < 0.8, 0, 1)
    labels = np.hstack([labels, rng.integers(3, size=(N_DRAWS, n_unsure))])
    arrays = {"labels": labels.reshape(2, N_DRAWS // 2, -1), "n_groups": np.full((2, N_DRAWS // 2), 3)}
    return SimpleNamespace(arrays=arrays)


def test_those_who_could_be_anywhere_do_not_swallow_the_groups():
    draws = drawn()
    found = placed_partition(draws, SETTINGS, "labels", "n_groups")
    expected = np.repeat([0, 1, 2], SURE // 3)
    np.testing.assert_array_equal(by_size(found.labels, found.placed)[:SURE], expected)
    assert found.placed.tolist() == [True] * SURE + [False] * UNSURE
    assert found.n_clusters == 3
    # The twin: of everybody together, the nearest partition has one group.
    assert nearest_partition(draws, SETTINGS, "labels", "n_groups").n_clusters == 1


def test_where_everybody_can_be_told_nothing_changes():
    draws = drawn(0)
    found, plain = (of(draws, SETTINGS, "labels", "n_groups") for of in (placed_partition, nearest_partition))
    np.testing.assert_array_equal(found.labels, plain.labels)
    assert found.placed is None


def test_where_nobody_can_be_told_the_nearest_partition_is_shown():
    labels = np.random.default_rng(5).integers(4, size=(2, 50, 12))
    draws = SimpleNamespace(arrays={"labels": labels, "n_groups": np.full((2, 50), 4)})
    found = placed_partition(draws, SETTINGS, "labels", "n_groups")
    np.testing.assert_array_equal(
        found.labels, nearest_partition(draws, SETTINGS, "labels", "n_groups").labels
    )


def test_who_is_mostly_alone_can_be_told():
    draws = np.tile(np.array([0, 0, 1, 2]), (10, 1))
    draws[:3, 3] = 0
    assert tellable(draws).all()
    draws[:6, 3] = 0  # with the first two in six draws of ten, and alone in four
    assert tellable(draws).tolist() == [True, True, True, False]


def test_some_of_many_say_the_same(monkeypatch):
    labels = drawn().arrays["labels"].reshape(N_DRAWS, -1)
    every = tellable(labels)
    monkeypatch.setattr(placed, "COMPARED_WITH_ALL", 10)
    monkeypatch.setattr(placed, "SOME_MEMBERS", 3)
    np.testing.assert_array_equal(tellable(labels), every)


@pytest.mark.parametrize("seed", range(3))
def test_shares_are_means_over_members(seed):
    rng = np.random.default_rng(seed)
    draws, groups = rng.integers(4, size=(7, 9)), np.append([0, 1, 2], rng.integers(-1, 2, size=6))
    found = shares_of_groups(draws, groups)
    for one in range(9):
        for group in range(3):
            others = [j for j in np.flatnonzero(groups == group) if j != one]
            if others:
                naive = np.mean([draws[:, one] == draws[:, j] for j in others])
            else:
                naive = np.mean([(draw == draw[one]).sum() == 1 for draw in draws])
            assert found[one, group] == pytest.approx(naive)
