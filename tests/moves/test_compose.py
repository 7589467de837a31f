"""Moves made of moves, moves by name, and the state's own bookkeeping."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
import pytest

from permix.errors import DataError
from permix.moves import (
    Balanced,
    Concentration,
    Cycle,
    Gibbs,
    Info,
    Move,
    Permutation,
    Projection,
    RandomScan,
    Repeat,
    SplitMerge,
)
from permix.moves.naming import describe_move, move_from, move_from_description
from permix.moves.state import MixtureState
from permix.partitions import DirichletProcess, FiniteDirichlet, Gamma, canonical_labels
from tests.families.cases import CASES


@dataclass
class Note(Move):
    """Writes its letter into the state, a list."""

    letter: str
    exact: bool = True

    def step(self, rng, state):
        state.append(self.letter)
        return Info(self.letter, 2, 1)


def letters(move, steps=1, seed=0):
    written: list[str] = []
    rng = np.random.default_rng(seed)
    infos = [move.step(rng, written) for _ in range(steps)]
    return "".join(written), infos


def test_cycle_takes_moves_in_turn():
    written, infos = letters(Cycle([Note("a"), Repeat(Note("b"), 3), Note("c")]), steps=2)
    assert written == "abbbcabbbc"
    assert infos[0].proposed == 10
    assert infos[0].accepted == 5
    assert [part.name for part in infos[0].parts] == ["a", "repeat", "c"]


def test_random_scan_follows_its_weights():
    written, _ = letters(RandomScan([Note("a"), Note("b"), Note("c")], weights=[1, 3, 0]), steps=4000)
    assert written.count("c") == 0
    # Binomial(4000, 3/4): five standard deviations.
    assert abs(written.count("b") - 3000) < 5 * np.sqrt(4000 * 0.75 * 0.25)


def test_optimizers_make_their_composition_an_optimizer():
    climber = Note("x", exact=False)
    assert not Cycle([Note("a"), climber]).exact
    assert not RandomScan([Note("a"), climber]).exact
    assert not Repeat(climber, 2).exact
    assert Cycle([Note("a")]).exact


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Cycle([]), "at least one"),
        (lambda: Cycle(["gibbs"]), "made of moves"),
        (lambda: RandomScan([Note("a")], weights=[1, 2]), "one non-negative weight"),
        (lambda: RandomScan([Note("a")], weights=[-1]), "one non-negative weight"),
        (lambda: RandomScan([Note("a")], weights=[0]), "positive"),
        (lambda: RandomScan([Note("a")], weights=[float("nan")]), "non-negative"),
        (lambda: Repeat(Note("a"), 0), "at least 1"),
        (lambda: Repeat(Note("a"), 1.5), "whole number"),
        (lambda: move_from("gibs"), "unknown move 'gibs' in moves; known names are auto, gibbs"),
        (lambda: move_from(["gibbs", "auto"]), "'auto' in moves stands alone"),
        (lambda: move_from(None), "moves=None must be a name, a move or a list of these"),
        (lambda: move_from(Gibbs), "write Gibbs\\(\\)|must be a name"),
        (lambda: move_from(["gibbs", Permutation]), "write Permutation\\(\\)"),
        (lambda: move_from([], "burn_in_moves"), "burn_in_moves is empty"),
        (lambda: move_from("concentration"), "nothing in moves changes the groups"),
        (lambda: Balanced(None), "Balanced needs a list of moves"),
        (lambda: Balanced(Gibbs()), "Balanced needs a list of moves"),
        (lambda: Balanced(["gibbs"]), "made of moves, such as permix.moves.Gibbs"),
        (lambda: Projection(max_turns=-1), "max_turns must be a whole number, at least 0"),
        (lambda: Projection(max_turns=1.5), "max_turns must be a whole number"),
        (lambda: Permutation(width=0), "width must be a whole number, at least 1"),
        (lambda: Permutation(tolerance="a"), "tolerance must be a number"),
        (lambda: Permutation(tolerance=1.0), "below 1"),
        (lambda: Permutation(n_clusters="3"), "n_clusters must be one number"),
        (lambda: Permutation(n_clusters=-1.0), "n_clusters must be positive"),
        (lambda: Permutation(integrate="no"), "integrate must be True or False"),
        (lambda: Permutation(method="quick"), "method must be"),
        (lambda: move_from([]), "empty"),
    ],
)
def test_mistakes_are_named(make, message):
    with pytest.raises(DataError, match=message):
        make()


def test_moves_by_name_end_with_the_concentration():
    move = move_from("gibbs")
    assert [type(part) for part in move.moves] == [Gibbs, Concentration]
    assert [type(part) for part in move_from(["concentration", "gibbs"]).moves] == [Concentration, Gibbs]
    assert move_from("gibbs, split-merge") == move_from(["gibbs", SplitMerge()])
    # Ready-made moves as well: a concentration that should be learned and is not would be a wrong chain.
    ready = Repeat(Gibbs(), 2)
    assert move_from(ready) == Cycle([ready, Concentration()])
    for complete in (Cycle([ready, Concentration()]), Balanced([Gibbs(), Permutation()])):
        assert move_from(complete) is complete
    assert isinstance(move_from(Permutation(integrate=False)), Cycle)


def test_descriptions_round_trip():
    move = Cycle(
        [
            RandomScan([Gibbs(), Repeat(Gibbs(), 3)], weights=[1.0, 2.0]),
            Balanced(
                [SplitMerge("restricted-gibbs", 3, 7), Permutation("approximate", "markov", n_clusters=4.5)]
            ),
            Projection(width=9, max_turns=1),
            Concentration(),
        ]
    )
    description = json.loads(json.dumps(describe_move(move)))
    assert move_from_description(description) == move
    with pytest.raises(DataError, match="cannot rebuild the move 'gibbs'"):
        move_from_description({"move": "gibbs", "speed": 3})
    with pytest.raises(DataError, match="Note"):
        move_from_description(describe_move(Note("a")))


def fresh_state(name="gaussian-isotropic", prior=None):
    family, X = CASES[name]
    return MixtureState(family, family.encode(X), len(X), prior or DirichletProcess(1.0))


@pytest.mark.parametrize("name", CASES)
def test_state_grows_and_keeps_its_statistics_right(name):
    state = fresh_state(name, DirichletProcess(1e6))  # nearly everyone alone: more clusters than first slots
    rng = np.random.default_rng(0)
    rows = state.n
    state._allocate(3)
    state.sweep(rng, rng.permutation(rows))
    assert state.n_clusters > 3
    for _ in range(50):
        state.sweep(rng)
        before = state.log_joint()
        sizes = state.sizes[: state.n_clusters].copy()
        np.testing.assert_array_equal(np.bincount(state.labels, minlength=state.n_clusters), sizes)
        state.refresh()
        assert state.log_joint() == pytest.approx(before, rel=1e-9)


def test_finite_prior_never_opens_too_many():
    state = fresh_state(prior=FiniteDirichlet(2, 1.0))
    rng = np.random.default_rng(1)
    for _ in range(200):
        state.sweep(rng)
        assert state.n_clusters <= 2


def test_checkpoint_restores_the_same_future():
    state = fresh_state(prior=DirichletProcess(Gamma(1.0, 1.0)))
    rng = np.random.default_rng(2)
    move = move_from("gibbs")
    for _ in range(10):
        move.step(rng, state)
    saved, generator = state.checkpoint(), rng.bit_generator.state
    state.refresh()
    future = [(move.step(rng, state), state.labels.copy(), state.concentration) for _ in range(10)]
    other = fresh_state(prior=DirichletProcess(Gamma(1.0, 1.0)))
    other.restore(saved)
    rng.bit_generator.state = generator
    for info, labels, concentration in future:
        assert move.step(rng, other) == info
        np.testing.assert_array_equal(other.labels, labels)
        assert other.concentration == concentration


def test_set_labels_accepts_any_numbering():
    state = fresh_state()
    labels = np.array([7, -2, 7, 7, 9, -2, 9, 9, 9, 7, 7, -2])
    state.set_labels(labels)
    np.testing.assert_array_equal(state.labels, canonical_labels(labels))
    assert state.n_clusters == 3


def test_impossible_data_are_an_error_not_a_crash():
    family, X = CASES["gaussian-isotropic"]
    X = X.copy()
    X[4] = 1e200  # its squared distance overflows, so it has probability zero everywhere
    state = MixtureState(family, family.encode(X), len(X), DirichletProcess(1.0))
    with pytest.raises(DataError, match="row 5 has probability zero"):
        state.sweep(np.random.default_rng(0))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("labels", np.zeros(11, dtype=np.int32)),
        ("labels", np.full(12, 10**7)),
        ("labels", np.full(12, -1)),
        ("n_clusters", np.array(3)),
        ("capacity", np.array(0)),
        ("capacity", np.array(10**12)),
    ],
)
def test_damaged_checkpoints_are_refused(name, value):
    state = fresh_state()
    state.sweep(np.random.default_rng(0))
    saved = state.checkpoint()
    state.restore(saved)
    with pytest.raises(DataError, match="checkpoint"):
        state.restore({**saved, "labels": np.zeros(12, np.int32), "n_clusters": np.array(1), name: value})
