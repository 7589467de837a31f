"""Seeds, threads, thinning, moves, errors."""

from __future__ import annotations

import numpy as np
import pytest

from permix.errors import DataError, PermixWarning
from permix.runtime.interrupts import Deadline
from permix.runtime.seeds import describe, rebuild, seed_sequence
from permix.sampling import REFRESH
from permix.sampling.draws import smallest
from tests.sampling.toy import Climb, Info, ToyState, Walk, run, same


def naive(seed: int, chain: int, n_draws: int, n_burn_in: int, n_thin: int) -> dict[str, np.ndarray]:
    """One chain as the documentation describes it, without threads, buffers or blocks."""
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed).spawn(chain + 1)[chain]))
    state, move, kept = ToyState(rng), Walk(), []
    for iteration in range(n_burn_in + n_draws * n_thin):
        if iteration % REFRESH == 0:
            state.refresh()
        move.step(rng, state)
        if iteration >= n_burn_in and (iteration - n_burn_in) % n_thin == n_thin - 1:
            kept.append({name: np.array(value) for name, value in state.record().items()})
    return {name: np.stack([draw[name] for draw in kept]) for name in kept[0]}


@pytest.mark.parametrize(
    ("n_draws", "n_burn_in", "n_thin"), [(40, 0, 1), (700, 33, 1), (5, 64, 32), (1, 0, 1)]
)
def test_draws_are_those_of_the_plain_loop(n_draws: int, n_burn_in: int, n_thin: int) -> None:
    draws = run(n_draws=n_draws, n_burn_in=n_burn_in, n_thin=n_thin, n_chains=3, random_state=11)
    assert draws.n_draws == n_draws
    assert not draws.interrupted
    for chain in range(3):
        expected = naive(11, chain, n_draws, n_burn_in, n_thin)
        for name, array in draws.arrays.items():
            assert array.shape == (3, *expected[name].shape)
            np.testing.assert_array_equal(array[chain], expected[name])


def test_same_seed_same_draws_whatever_the_number_of_threads() -> None:
    first = run(n_jobs=1, n_chains=4)
    assert same(first, run(n_jobs=4, n_chains=4))
    assert same(first, run(n_jobs=-1, n_chains=4))
    assert not same(first, run(n_chains=4, random_state=8))
    # The first chains do not depend on how many follow.
    fewer = run(n_chains=2)
    np.testing.assert_array_equal(first.arrays["total"][:2], fewer.arrays["total"])
    assert not np.array_equal(first.arrays["total"][0], first.arrays["total"][1])


def test_types_are_small_for_arrays_and_wide_for_scalars() -> None:
    short, long = run(n_draws=10), run(n_draws=300)
    assert short.arrays["labels"].dtype == np.uint8
    assert long.arrays["labels"].dtype == np.uint16
    assert long.arrays["n_groups"].dtype == np.int64
    assert long.arrays["total"].dtype == np.float64


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        ([0, 255], np.uint8),
        ([0, 256], np.uint16),
        ([-1, 127], np.int8),
        ([-1, 128], np.int16),
        ([-129, 3], np.int16),
        ([0, 2**32], np.uint64),
        ([0.5, 1.0], np.float64),
        ([True, False], np.bool_),
    ],
)
def test_smallest_type(values: list[object], dtype: type) -> None:
    array = np.array(values)
    assert smallest(array).dtype == dtype
    np.testing.assert_array_equal(smallest(array), array)


def test_statistics_count_the_parts_after_burn_in() -> None:
    draws = run(n_draws=50, n_burn_in=20, n_thin=3)
    assert draws.statistics["moves"] == ["walk", "label"]
    np.testing.assert_array_equal(draws.statistics["proposed"], np.full((2, 2), 150))
    np.testing.assert_array_equal(draws.statistics["accepted"][:, 1], [150, 150])
    accepted = draws.statistics["accepted"][:, 0]
    assert np.all((accepted > 0) & (accepted < 150))
    assert np.all(draws.statistics["seconds"] > 0)


def test_optimizer_is_refused_after_burn_in_and_welcome_before() -> None:
    with pytest.raises(DataError, match=r"Climb is an optimizer.*burn-in only"):
        run(move=Climb())
    assert run(burn_in_move=Climb()).n_draws == 100


class Ascent(Walk):
    exact = False

    def step(self, rng: np.random.Generator, state: ToyState) -> Info:
        state.x += 1.0
        return Info("ascent", 1, 1)


def test_burn_in_move_acts_during_burn_in_only() -> None:
    with_ascent = run(n_draws=1, n_thin=1, n_burn_in=20, burn_in_move=Ascent())
    assert with_ascent.statistics["moves"] == ["walk", "label"]
    assert not same(with_ascent, run(n_draws=1, n_thin=1, n_burn_in=20))


def test_chains_do_not_share_the_move() -> None:
    move = Walk()
    first = run(move=move)
    assert move.width == 1.0
    assert same(first, run(move=move))


@pytest.mark.parametrize(
    "changes",
    [{"n_draws": 0}, {"n_burn_in": -1}, {"n_thin": 0}, {"n_chains": 0}, {"n_draws": 2.5}, {"n_thin": True}],
)
def test_senseless_settings(changes: dict[str, object]) -> None:
    with pytest.raises(DataError, match=next(iter(changes))):
        run(**changes)


def test_senseless_jobs_and_seconds() -> None:
    with pytest.raises(DataError, match="n_jobs"):
        run(n_jobs=0)
    with pytest.raises(DataError, match="checkpoint_seconds"):
        run(checkpoint_seconds=float("nan"))


class Fault(RuntimeError):
    pass


class Failing(Walk):
    """Fails in the second chain only, which is told by its state."""

    def step(self, rng: np.random.Generator, state: ToyState) -> Info:
        if state.number == 1 and state.n_clusters > 50:
            raise Fault("out of luck")
        return super().step(rng, state)


def test_error_in_one_chain_stops_the_others_and_names_the_chain() -> None:
    made = []

    def make_state(rng: np.random.Generator) -> ToyState:
        state = ToyState(rng)
        state.number = len(made)
        made.append(state)
        return state

    # The other chain would take hours.
    with pytest.raises(Fault, match="out of luck") as caught:
        run(n_draws=10**8, move=Failing(), make_state=make_state, n_jobs=2)
    assert any("chain" in note and "of 2" in note for note in caught.value.__notes__)


def test_error_while_a_state_is_made() -> None:
    def make_state(rng: np.random.Generator) -> ToyState:
        raise Fault("no data")

    with pytest.raises(Fault, match="no data") as caught:
        run(make_state=make_state)
    assert "chain 0" in caught.value.__notes__[0]


def test_draws_must_keep_their_shape() -> None:
    class Growing(ToyState):
        def record(self) -> dict[str, object]:
            return {"means": np.zeros(self.n_clusters)}

    with pytest.raises(ValueError, match="shape"):
        run(make_state=Growing)


def test_random_state_of_every_kind() -> None:
    for make in (
        lambda: 3,
        lambda: np.int64(3),
        lambda: np.random.SeedSequence(3),
        lambda: np.random.default_rng(3),
        lambda: np.random.RandomState(3),
    ):
        assert same(run(n_draws=5, random_state=make()), run(n_draws=5, random_state=make()))
    assert same(run(n_draws=5, random_state=3), run(n_draws=5, random_state=np.random.SeedSequence(3)))
    assert not same(run(n_draws=5, random_state=None), run(n_draws=5, random_state=None))
    generator = np.random.default_rng(3)
    assert not same(run(n_draws=5, random_state=generator), run(n_draws=5, random_state=generator))
    for wrong in ("3", -1, 2.0, True):
        with pytest.raises(DataError, match="random_state"):
            run(random_state=wrong)


def test_seed_sequence_is_copied_and_rebuilt() -> None:
    sequence = np.random.SeedSequence(5, spawn_key=(2,))
    sequence.spawn(3)
    copy = seed_sequence(sequence)
    copy.spawn(4)
    assert sequence.n_children_spawned == 3
    again = rebuild(describe(sequence)).spawn(1)[0]
    np.testing.assert_array_equal(again.generate_state(4), sequence.spawn(1)[0].generate_state(4))


def test_seeds_reproduce_a_chain() -> None:
    draws = run(n_draws=5)
    rng = np.random.Generator(np.random.PCG64(rebuild(draws.seeds[1])))
    other = np.random.Generator(np.random.PCG64(np.random.SeedSequence(7).spawn(2)[1]))
    assert rng.random() == other.random()


class Hurrying(Walk):
    """At its eighth step of 60, half of the time has gone."""

    def __init__(self, deadline: Deadline) -> None:
        super().__init__()
        self.deadline, self.n_steps = deadline, [0]

    def __deepcopy__(self, memo: object) -> Hurrying:
        return self

    def step(self, rng: np.random.Generator, state: ToyState) -> Info:
        self.n_steps[0] += 1
        if self.n_steps[0] == 8:
            self.deadline._hurry()
        return super().step(rng, state)


def test_burn_in_ends_where_half_of_the_time_has_gone_but_not_before_a_tenth(tmp_path) -> None:
    for n_burn_in, ended in ((60, 8), (600, 60)):
        deadline = Deadline(1e6)
        move = Hurrying(deadline)
        with deadline, pytest.warns(PermixWarning, match=f"after {ended} of {n_burn_in} "):
            draws = run(n_draws=10, n_burn_in=n_burn_in, n_thin=3, n_chains=1, move=move)
        assert (draws.n_draws, draws.interrupted) == (10, False)
        assert move.n_steps[0] == ended + 30
    with Deadline(1e6) as deadline:  # what is stored can be gone on with, to the same bits
        move = Hurrying(deadline)
        run(tmp_path / "store", n_draws=10, n_burn_in=60, n_thin=3, n_chains=1, move=move)
    assert move.n_steps[0] == 60 + 30
