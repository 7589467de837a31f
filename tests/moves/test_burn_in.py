"""What is learned or climbed during burn-in: schedules, β, projections, where chains start, resuming."""

from __future__ import annotations

import copy
from dataclasses import dataclass

import numpy as np
import pytest

from permix.errors import DataError
from permix.families import Gaussian
from permix.moves import Balanced, Cycle, Gibbs, Info, Move, Permutation, Projection, SplitMerge
from permix.moves.balance import MOST_REPEATS, LearningBalance, Opening
from permix.moves.gibbs import work_of_sweep
from permix.moves.permutation import LearningPermutation
from permix.moves.recipe import MAX_CLIMBS, moves_of
from permix.moves.split_merge import (
    ALONE,
    EARNED_SHARE,
    FEW,
    LEAST_SHARE,
    MANY,
    SCORE_ALONE,
    SOME,
    USUAL_SHARE,
    LearningSplitMerge,
    earned_share,
    n_moved,
)
from permix.moves.start import check_start, seat_all_data
from permix.moves.state import MixtureState
from permix.partitions import DirichletProcess, FiniteDirichlet, Gamma, adjusted_rand
from permix.sampling import run_chains


@dataclass
class Labor(Move):
    """Does nothing, and says how much work that was."""

    name: str
    work: float

    def step(self, rng, state):
        return Info(self.name, 1, 1, work=self.work)


def names(info):
    return [part.name for part in info.parts]


# --- balance -------------------------------------------------------------------------------------


def test_cheap_moves_are_repeated_once_burn_in_has_taught_it():
    move = Balanced([Labor("expensive", 120.0), Labor("cheap", 30.0), Labor("free", 0.0), Labor("dust", 0.1)])
    learning = move.during_burn_in()
    assert move.exact
    assert not learning.exact
    rng = np.random.default_rng(0)
    assert names(move.step(rng, None)) == ["expensive", "cheap", "free", "dust"]  # nothing learned yet
    learning.step(rng, None)
    info = move.step(rng, None)
    assert names(info) == ["expensive", *["cheap"] * 4, "free", *["dust"] * MOST_REPEATS]
    assert info.work == pytest.approx(120.0 + 4 * 30.0 + MOST_REPEATS * 0.1)


def test_a_schedule_stays_as_it_was_when_burn_in_ended():
    labor = Labor("cheap", 10.0)
    move = Balanced([Labor("expensive", 20.0), labor])
    learning = move.during_burn_in()
    learning.step(None, None)
    labor.work = 1.0
    assert names(move.step(None, None)) == ["expensive", "cheap", "cheap"]
    for _ in range(200):
        learning.step(None, None)
    assert names(move.step(None, None)) == ["expensive", *["cheap"] * 20]


def test_compound_moves_learn_through_their_parts():
    inner = Permutation()
    learning = Cycle([Gibbs(), inner]).during_burn_in()
    assert isinstance(learning, Cycle)
    assert isinstance(learning.moves[1], LearningPermutation)
    assert learning.moves[1].move is inner
    assert not learning.exact
    settled = Cycle([Gibbs(), Permutation(n_clusters=3.0), Permutation("exact")])
    assert settled.during_burn_in() is settled


# --- β -------------------------------------------------------------------------------------------


def some_state(n=60, prior=None, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2)) + 6.0 * rng.integers(0, 3, (n, 1))
    family = Gaussian().resolve(X)
    state = MixtureState(family, family.encode(X), n, prior or DirichletProcess(Gamma(1.0, 1.0)))
    state.sweep(rng)
    return state


def test_beta_is_learned_in_burn_in_and_fixed_afterwards():
    state = some_state()
    rng = np.random.default_rng(1)
    move = Permutation()
    learning = move.during_burn_in()
    seen = []
    for _ in range(30):
        Gibbs().step(rng, state)
        learning.step(rng, state)
        seen.append(state.n_clusters)
    expected = float(move.checkpoint()["expected"])
    assert expected == pytest.approx(np.average(seen, weights=np.arange(1, 31)))  # later steps count more
    state.set_labels(np.arange(state.n) % 20)
    for _ in range(5):
        move.step(rng, state)
    assert float(move.checkpoint()["expected"]) == expected


def test_without_burn_in_beta_is_that_of_the_prior():
    prior = DirichletProcess(2.0)
    state = some_state(prior=prior)
    move = Permutation()
    assert move.checkpoint() == {}
    move.step(np.random.default_rng(2), state)
    assert float(move.checkpoint()["expected"]) == pytest.approx(prior.expected_clusters(state.n))


@pytest.mark.parametrize("shape", [1e-6, 0.1, 0.5])
def test_a_vague_concentration_is_no_trouble(shape):
    """With one cluster and a small shape the mean over the concentration is finite, but only just."""
    state = some_state(n=12, prior=DirichletProcess(Gamma(shape, 1.0)))
    state.set_labels(np.zeros(12, dtype=int))
    learning = Permutation().during_burn_in()
    rng = np.random.default_rng(8)
    for _ in range(20):
        learning.step(rng, state)
        assert state.concentration > 0.0


@pytest.mark.parametrize("move", [Permutation(), Projection(), SplitMerge()])
def test_data_must_be_seated(move):
    X = np.zeros((5, 1))
    family = Gaussian().resolve(X)
    state = MixtureState(family, family.encode(X), 5, DirichletProcess(1.0))
    with pytest.raises(DataError, match="every datum in a group"):
        move.step(np.random.default_rng(0), state)


def test_a_move_may_be_changed_between_steps():
    state = some_state()
    rng = np.random.default_rng(9)
    move = Permutation(width=2)
    move.step(rng, state)
    for move.width, move.method, move.order in ((9, "beam", "uniform"), (3, "exact", "markov")):
        move.step(rng, state)
        state_after = state.log_joint()
        state.refresh()
        assert state.log_joint() == pytest.approx(state_after, abs=1e-8)


# --- projections ---------------------------------------------------------------------------------


@pytest.mark.parametrize("max_turns", [0, 3])
@pytest.mark.parametrize("init", ["one-group", "sequential", 50])
def test_projections_find_clusters_from_anywhere(init, max_turns):
    rng = np.random.default_rng(3)
    centers = rng.normal(0.0, 4.0, (12, 8))
    truth = rng.integers(0, 12, 600)
    X = centers[truth] + rng.standard_normal((600, 8))
    family = Gaussian().resolve(X)
    state = MixtureState(family, family.encode(X), 600, DirichletProcess(1.0))
    state.set_labels(truth)
    best = state.log_joint()
    seat_all_data(rng, state, init)
    climb = Cycle([Projection(max_turns=max_turns), Gibbs()])
    for _ in range(25):
        climb.step(rng, state)
    assert state.log_joint() > best - 10.0
    assert adjusted_rand(state.labels, truth) > 0.99


def test_projections_respect_a_finite_prior_whatever_its_weights():
    state = some_state(prior=FiniteDirichlet(3, 1e5))
    rng = np.random.default_rng(10)
    taken = sum(Projection().step(rng, state).accepted for _ in range(20))
    assert state.n_clusters <= 3
    assert taken > 10


def test_projections_are_refused_after_burn_in():
    with pytest.raises(DataError, match="optimizer"):
        run_chains(
            lambda rng: some_state(),
            Cycle([Gibbs(), Projection()]),
            n_draws=2,
            n_burn_in=0,
            n_thin=1,
            n_chains=1,
            fingerprint={},
        )
    with pytest.raises(DataError, match="Projection"):
        Permutation(order="projection")


# --- splits and merges ---------------------------------------------------------------------------


def test_splits_and_merges_take_no_more_work_than_sweeps():
    """A quarter where they move nothing, four times where they move many; fixed once burn-in is over."""
    rng = np.random.default_rng(8)
    for scale, accepted, share in ((0.3, True, EARNED_SHARE), (1e6, False, LEAST_SHARE)):
        X = np.repeat([[-scale], [scale]], 150, axis=0) + rng.normal(size=(300, 1))
        family = Gaussian(noise_scale=1.0, prior_scale=max(scale, 1.0)).resolve(X)
        state = MixtureState(family, family.encode(X), 300, DirichletProcess(1.0))
        state.set_labels(np.repeat([0, 1], 150))
        move = SplitMerge(n_proposals=None)
        learning = move.during_burn_in()
        assert not learning.exact
        for _ in range(200):
            state.sweep(rng)
            learning.step(rng, state)
        rate, works = move.rate, []
        for _ in range(400):
            state.sweep(rng)
            info = move.step(rng, state)
            works.append(info.work / work_of_sweep(state))
            assert accepted or not info.accepted
        assert move.rate == rate
        assert share / 3 < np.mean(works) < 3 * share


def test_proposals_earn_nothing_by_what_gibbs_does_as_well():
    """Groups of one or two that come and go beside a large one do not count; many data that move do."""
    assert n_moved(np.repeat([0, 1], 5), np.repeat([1, 0], 5)) == 0  # other numbers, the same groups
    assert n_moved(np.zeros(10, int), np.repeat([0, 1], [3, 7])) == 3
    assert n_moved(np.repeat([0, 1, 2], [3, 7, 5]), np.repeat([1, 1, 0], [3, 7, 5])) == 3
    assert [earned_share(moved) for moved in (0.0, 0.5 * SOME, SOME, MANY)] == [
        LEAST_SHARE,
        LEAST_SHARE,
        USUAL_SHARE,
        EARNED_SHARE,
    ]
    rng = np.random.default_rng(3)
    X = rng.normal(size=(400, 1))
    family = Gaussian(noise_scale=1.0, prior_scale=1.0).resolve(X)
    for moved, share in ((FEW, LEAST_SHARE), (200, EARNED_SHARE)):
        state = MixtureState(family, family.encode(X), 400, DirichletProcess(1.0))
        state.set_labels(np.zeros(400, int))
        move = Scripted(moved)
        learning = LearningSplitMerge(move)
        for _ in range(200):
            learning.step(rng, state)
        work = ALONE + state.n + SCORE_ALONE * 400
        assert move.rate == pytest.approx(share * work_of_sweep(state) / work, rel=0.5)


class Scripted(SplitMerge):
    """Splits the first ``moved`` data from the others and merges them again, in turn, always accepted."""

    def __init__(self, moved: int) -> None:
        super().__init__(n_proposals=None)
        self.moved = moved

    def propose(self, rng, state, n_proposals):
        if n_proposals == 0:
            return Info("split-merge", 0, 0)
        labels = np.zeros(state.n, int)
        if state.n_clusters == 1:
            labels[: self.moved] = 1
        state.set_labels(labels)
        work = ALONE + state.n + SCORE_ALONE * state.n * n_proposals
        return Info("split-merge", n_proposals, 1, work=work)


# --- the recipe ----------------------------------------------------------------------------------


def test_auto_climbs_first_and_is_exact_afterwards():
    burn_in, move = moves_of("auto", "auto", 500)
    assert move.exact
    assert isinstance(burn_in, Opening)
    assert burn_in.n_steps == MAX_CLIMBS
    assert any(isinstance(part, Projection) for part in burn_in.first.moves)
    assert moves_of("auto", "auto", 10)[0].n_steps == 5
    assert moves_of("auto", "gibbs", 10)[0].first.moves[0] == Gibbs()
    assert moves_of(["auto"], "auto", 10)[1] == move


def test_moves_that_learn_get_half_of_a_given_burn_in():
    move = Balanced([Gibbs(), Permutation()])
    burn_in, following = moves_of(move, ["projection", "gibbs"], 60)
    assert following is move
    assert isinstance(burn_in.then, LearningBalance)
    assert burn_in.n_steps == 30
    assert moves_of("gibbs", ["projection", "gibbs"], 60)[0].moves[0] == Projection()  # nothing to learn
    with pytest.raises(DataError, match="n_burn_in is 0"):
        moves_of("gibbs", "projection,gibbs", 0)


@pytest.mark.parametrize("moves", ["projection", ["gibbs", Projection()], Cycle([Gibbs(), Projection()])])
def test_optimizers_are_named_when_refused(moves):
    with pytest.raises(DataError, match="projection in moves is an optimizer, for burn-in only"):
        moves_of(moves, "auto", 10)


def test_an_opening_changes_over_after_its_steps():
    opening = Opening(Labor("first", 1.0), 2, Labor("then", 1.0))
    assert [opening.step(None, None).name for _ in range(4)] == ["first", "first", "then", "then"]
    again = Opening(Labor("first", 1.0), 2, Labor("then", 1.0))
    again.restore(Opening(Labor("first", 1.0), 2, Labor("then", 1.0)).checkpoint())
    assert again.step(None, None).name == "first"
    again.restore(opening.checkpoint())
    assert again.step(None, None).name == "then"


def test_what_was_learned_survives_a_checkpoint():
    def fresh():
        move = Balanced([Gibbs(), SplitMerge(n_proposals=None), Permutation()])
        return move, Opening(Gibbs(), 3, move.during_burn_in())

    def run(move, burn_in, state, rng, steps):
        for step in steps:
            (burn_in if step < 12 else move).step(rng, state)
        return state.labels.copy()

    state = some_state(seed=4)
    rng = np.random.default_rng(5)
    move, burn_in = fresh()
    run(move, burn_in, state, rng, range(8))
    saved = copy.deepcopy(
        (move.checkpoint(), burn_in.checkpoint(), state.checkpoint(), rng.bit_generator.state)
    )
    state.refresh()
    expected = run(move, burn_in, state, rng, range(8, 20))

    again, again_in_burn_in = fresh()
    again.restore(saved[0])
    again_in_burn_in.restore(saved[1])
    other = some_state(seed=4)
    other.restore(saved[2])
    rng.bit_generator.state = saved[3]
    np.testing.assert_array_equal(run(again, again_in_burn_in, other, rng, range(8, 20)), expected)
    assert again.repeats == move.repeats
    assert again.moves[1].rate == move.moves[1].rate != 1.0
    assert isinstance(again_in_burn_in.then, LearningBalance)


def test_moves_without_memory_refuse_a_foreign_checkpoint():
    with pytest.raises(DataError, match="Gibbs keeps nothing"):
        Gibbs().restore({"expected": np.array(1.0)})


# --- starts --------------------------------------------------------------------------------------


def test_starts():
    rng = np.random.default_rng(6)
    state = some_state(prior=DirichletProcess(3.0))
    seat_all_data(rng, state, "one-group")
    assert state.n_clusters == 1
    seat_all_data(rng, state, 7)
    assert state.n_clusters == 7
    assert state.sizes_in_use.max() - state.sizes_in_use.min() <= 1
    numbers = []
    for _ in range(200):
        seat_all_data(rng, state, "random")
        numbers.append(state.n_clusters)
    spread = np.std(numbers) / np.sqrt(len(numbers))
    assert np.mean(numbers) == pytest.approx(DirichletProcess(3.0).expected_clusters(60), abs=5 * spread)
    state.labels[:] = -1
    state.n_clusters = 0
    seat_all_data(rng, state, "sequential")
    assert state.sizes_in_use.sum() == 60


@pytest.mark.parametrize("init", [0, 61])
def test_starts_that_cannot_be(init):
    with pytest.raises(DataError, match=f"init={init} must be from 1 to 60 groups"):
        check_start(init, 60, DirichletProcess(1.0))


def test_no_more_initial_clusters_than_components():
    check_start(4, 60, FiniteDirichlet(4))
    with pytest.raises(DataError, match="from 1 to 4 groups"):
        check_start(5, 60, FiniteDirichlet(4))
