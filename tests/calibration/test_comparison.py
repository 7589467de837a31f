"""Comparisons find the model that data come from, and nothing in data that come from none."""

from __future__ import annotations

import numpy as np
import pytest

import permix
from permix.comparison.compare import compare

pytestmark = pytest.mark.slow
SEEDS = range(5)
MODELS = ["mallows", "angle", "kde", "mean-shift"]


@pytest.fixture(autouse=True)
def few_groups(monkeypatch):
    monkeypatch.setattr("permix.comparison.compare.MOST_GROUPS", 4)
    monkeypatch.setattr("permix.selection.select_components.MOST_TIMES", 1)


def mallows_data(seed):
    return permix.datasets.make_mallows_mixture(600, 6, 2, dispersion=0.5, random_state=seed).data


def angle_data(seed):
    rng = np.random.default_rng(seed)
    parts = []
    for _ in range(2):
        direction = rng.normal(size=6)
        parts.append(permix.Angle(direction - direction.mean(), 4.0).sample(300, rng))
    return permix.Rankings.concat(parts)


@pytest.mark.parametrize(("name", "make"), [("mallows", mallows_data), ("angle", angle_data)])
def test_the_model_that_data_come_from_wins_or_ties(name, make):
    wins = 0
    for seed in SEEDS:
        found = compare(make(seed), MODELS, random_state=seed)
        wins += found.best == name or name in found.tied
    # Within two standard errors: each fails with a probability of a few percent.
    assert wins >= len(SEEDS) - 1


def test_nothing_is_found_in_answers_that_are_all_alike():
    beaten = 0
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        votes = permix.Rankings.from_orders([rng.permutation(5) for _ in range(500)])
        found = compare(votes, MODELS, random_state=seed)
        beaten += found.beats_baseline
        assert found.beats_baseline or found.verdict.startswith("No model predicts")
    assert beaten <= 1
