"""Without data, chains over Mondrian partitions must reproduce forward draws of the prior."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from permix.cocluster.cells.encoded_matrix import encode_matrix
from permix.cocluster.cells.families import CategoricalCells
from permix.cocluster.mondrian.moves import (
    ChangeCuts,
    PlaceLines,
    RedrawSubtree,
    RotateCuts,
    ShiftCuts,
    mondrian_moves,
)
from permix.cocluster.mondrian.state import MondrianData, MondrianState
from permix.moves.base import Cycle
from tests.every_run import first_in_every_run
from tests.oracles.mondrian import features_of, forward_features, largest_z, published_chain

# The largest of thirteen deviations exceeds this once in some 100,000 runs.
MOST = 5.0
MOVES = {
    "all": mondrian_moves(),
    "cuts": ChangeCuts(6, 1),
    "cuts without scans": ChangeCuts(6, 0),
    "cuts and places": Cycle([ChangeCuts(6, 1), PlaceLines()]),
    "subtrees": RedrawSubtree(3),
    "cuts and shifts": Cycle([ChangeCuts(6, 1), ShiftCuts(4)]),
    "cuts and rotations": Cycle([ChangeCuts(6, 1), RotateCuts(20)]),
    "cuts and peels": Cycle([ChangeCuts(6, 1), ChangeCuts(6, 1, above=1.0)]),
}


@cache
def no_data():
    nothing = np.empty(0, dtype=np.int64)
    family = CategoricalCells(levels=(1, 2))
    return MondrianData.of(encode_matrix(family, nothing, nothing, np.empty(0), (3, 4)))


@cache
def forward(budget):
    return forward_features(np.random.default_rng(7), budget, 4000)


def chain_features(move, budget, n, seed=3):
    rng = np.random.default_rng(seed)
    state = MondrianState(no_data(), budget, rng)
    features = []
    for step in range(n):
        move.step(rng, state)
        if step >= n // 20:
            features.append(features_of(state.partition()))
    return np.array(features), state


# Single moves: what they leave as it was is looked at in every run elsewhere, without and with data.
@pytest.mark.parametrize("name", first_in_every_run(MOVES))
def test_chain_reproduces_the_prior(name):
    features, _ = chain_features(MOVES[name], 1.0, 2500)
    assert largest_z(features, forward(1.0)) < MOST


def test_rotations_are_made():
    """Otherwise the test above says nothing about them."""
    rng = np.random.default_rng(8)
    state = MondrianState(no_data(), 2.0, rng)
    made = 0
    for _ in range(500):
        ChangeCuts(6, 1).step(rng, state)
        made += RotateCuts(20).step(rng, state).accepted
    assert made > 100


@pytest.mark.slow
def test_chain_reproduces_the_prior_of_a_larger_budget():
    features, _ = chain_features(mondrian_moves(), 2.0, 3000)
    assert largest_z(features, forward(2.0)) < MOST


def test_oracle_rejects_another_budget():
    features, _ = chain_features(mondrian_moves(), 1.2, 2000)
    assert largest_z(features, forward(1.0)) > MOST


@pytest.mark.slow
def test_published_proposals_reproduce_the_prior_and_their_twins_do_not():
    """(ω' ω''/ω) K/D with a cost from Exp(τ) is right; without K/D, or with the misprint of ω', it is not."""
    rng = np.random.default_rng(11)
    z = {}
    for flaw in (None, "no count", "misprint"):
        features = np.array([published_chain(rng, 2.0, 25, flaw) for _ in range(1200)])
        z[flaw] = largest_z(features, forward(2.0), independent=True)
    assert z[None] < MOST < min(z["no count"], z["misprint"]), z


def test_places_stay_uniform():
    rng = np.random.default_rng(5)
    state = MondrianState(no_data(), 1.5, rng)
    move = mondrian_moves()
    rows = []
    for _ in range(2000):
        move.step(rng, state)
        rows.append(np.concatenate(state.places))
    rows = np.array(rows)
    error = 1.0 / np.sqrt(12 * len(rows) / 10)  # ten steps are worth one independent draw, at least
    assert np.all(np.abs(rows.mean(axis=0) - 0.5) < 5 * error)
    assert np.all((rows >= 0) & (rows < 1))


def test_budget_zero_never_cuts():
    _, state = chain_features(mondrian_moves(), 0.0, 50)
    assert state.n_blocks == 1
