"""Chains that run until their draws suffice: when they end, what they keep, and that nothing else decides."""

from __future__ import annotations

import numpy as np
import pytest

from permix.convergence import ASKED, ENOUGH, LIMIT
from permix.errors import PermixWarning
from permix.files import read_archive
from permix.sampling import auto
from permix.sampling import draws as draws_module
from tests.sampling.toy import Info, ToyState, Walk, run, same


class Number(ToyState):
    """One number, from a place that ``start`` has for every chain."""

    start = 0.0

    def __init__(self, rng: np.random.Generator) -> None:
        self.x = np.array([self.start if rng.integers(2) else -self.start])

    def refresh(self) -> None:
        pass

    def record(self) -> dict[str, float | int | np.ndarray]:
        return {"x": float(self.x[0]), "labels": np.zeros(3, np.int64)}

    def checkpoint(self) -> dict[str, np.ndarray]:
        return {"x": self.x}

    def restore(self, arrays) -> None:
        self.x[:] = arrays["x"]

    def progress(self) -> dict[str, float]:
        return {"x": float(self.x[0])}


class Autoregression(Walk):
    """x' = persistence x + noise: independent draws at 0, hardly a change from draw to draw near 1."""

    def __init__(self, persistence: float) -> None:
        super().__init__()
        self.persistence = persistence

    def step(self, rng: np.random.Generator, state: Number) -> Info:
        state.x[0] = self.persistence * state.x[0] + rng.normal() * np.sqrt(1.0 - self.persistence**2)
        return Info("autoregression", 1, 1)


def run_auto(persistence: float, start: float = 0.0, **changes):
    made = type("Started", (Number,), {"start": start})
    changes = {"n_thin": 1, "n_burn_in": 0, "make_state": made, **changes}
    return run(n_draws="auto", move=Autoregression(persistence), **changes)


@pytest.mark.parametrize(("persistence", "n_least"), [(0.0, 250), (0.6, 500), (0.9, 2000)])
def test_easy_chains_end_early_and_slow_ones_later(persistence: float, n_least: int) -> None:
    """An autoregression of correlation r has (1 - r)/(1 + r) effective draws for each; 100 must be had."""
    draws = run_auto(persistence)
    assert draws.ended == ENOUGH
    # No earlier than 100 effective draws for each chain; R-hat and the tails may take longer.
    assert n_least <= draws.n_made <= 4 * n_least
    assert draws.n_draws == draws.arrays["x"].shape[1] <= auto.MOST_KEPT


def test_chains_that_do_not_meet_end_at_the_limit_which_large_data_lower() -> None:
    assert auto.stages(0)[-1] == 8000
    assert auto.stages(10**12) == (250, 500, 1000)
    draws = run_auto(0.9999, start=5.0, size=10**12)
    assert (draws.ended, draws.n_made, draws.n_draws) == (LIMIT, 1000, 500)
    # The second half is kept: what came before was on the way.
    all_draws = run(n_draws=1000, move=Autoregression(0.9999), n_thin=1, n_burn_in=0, make_state=Far)
    np.testing.assert_array_equal(draws.arrays["x"], all_draws.arrays["x"][:, 500:])


def test_only_chains_that_disagree_go_beyond_the_usual_limit() -> None:
    assert auto.stages(10**5) == (250, 500, 1000)
    assert auto.stages(10**5, patience=4)[-1] == 4000
    assert auto.stages(10**5, patience=24)[-1] == auto.stages(0, patience=4)[-1] == 16000
    stuck = run_auto(0.9999, start=5.0, size=10**5, patience=4)
    assert (stuck.ended, stuck.n_made, stuck.n_draws) == (LIMIT, 4000, 1000)
    slow = run_auto(0.9, size=10**5, patience=4)  # R-hat is near 1, effective draws are too few
    assert (slow.ended, slow.n_made, slow.n_draws) == (LIMIT, 1000, 500)


class Far(Number):
    start = 5.0


def test_a_chain_killed_beyond_the_usual_limit_resumes_to_the_same_draws(tmp_path) -> None:
    options = {"make_state": Far, "size": 10**5, "patience": 4, "n_jobs": 1, "checkpoint_seconds": 0}
    plain = run_auto(0.9999, **options)
    assert plain.n_made == 4000

    class Killed(Autoregression):
        """Each chain has its own: the first dies at 2,600 draws, when the second has 2,000."""

        n_left = 2600

        def step(self, rng: np.random.Generator, state: Number) -> Info:
            self.n_left -= 1
            if self.n_left < 0:
                raise RuntimeError("killed")
            return super().step(rng, state)

    store = tmp_path / "store"
    with pytest.raises(RuntimeError, match="killed"):
        run(store, "auto", move=Killed(0.9999), n_thin=1, n_burn_in=0, **options)
    held = [read_archive(path)[0]["n_draws"] for path in sorted(store.glob("chain-*/state.npz"))]
    assert 2000 < max(held) < 4000
    assert min(held) == 2000
    resumed = run_auto(0.9999, store=store, **options)
    assert same(plain, resumed)
    assert (resumed.ended, resumed.n_made, resumed.n_stored) == (LIMIT, 4000, 4000)


def test_a_way_from_far_off_is_left_out() -> None:
    """Chains that stay where they started for 700 draws have forgotten that in the second half of 2000."""

    class Late(Autoregression):
        n_steps = 0

        def step(self, rng: np.random.Generator, state: Number) -> Info:
            self.n_steps += 1
            return super().step(rng, state) if self.n_steps > 700 else Info("wait", 1, 0)

    draws = run(n_draws="auto", move=Late(0.0), n_thin=1, n_burn_in=0, make_state=Far)
    assert (draws.ended, draws.n_made, draws.n_draws) == (ENOUGH, 2000, 1000)
    assert np.abs(draws.arrays["x"]).max() < 4.8  # once in 300 times of so many normal draws


def test_kept_draws_are_evenly_spaced_to_the_last() -> None:
    draws = run_auto(0.9)
    step = draws.n_made // auto.MOST_KEPT
    every = run(n_draws=draws.n_made, move=Autoregression(0.9), n_thin=1, n_burn_in=0, make_state=Number)
    np.testing.assert_array_equal(draws.arrays["x"], every.arrays["x"][:, step - 1 :: step])


def test_neither_threads_nor_a_store_change_the_end(tmp_path) -> None:
    plain = run_auto(0.6)
    assert same(plain, run_auto(0.6, n_jobs=1))
    assert same(plain, run_auto(0.6, store=tmp_path / "whole"))
    # A store of a shorter, and one of a longer run.
    for n_draws in (300, 1700):
        store = tmp_path / str(n_draws)
        run(store, n_draws, move=Autoregression(0.6), n_thin=1, n_burn_in=0, make_state=Number)
        with_store = run_auto(0.6, store=store)
        assert same(plain, with_store)
        assert with_store.n_made == plain.n_made
        assert with_store.n_stored == max(n_draws, plain.n_made)


def test_stages_do_not_show_in_the_draws() -> None:
    """A chain that stops to be judged goes on as if it had not; the toy shows it in the last bit."""
    long = run(n_draws=8000)
    judged = run(n_draws="auto")  # its sum wanders off and never settles
    assert judged.ended == LIMIT
    np.testing.assert_array_equal(judged.arrays["total"], long.arrays["total"][:, 4003::4])


def test_an_interrupted_run_keeps_the_second_half_of_what_there_is() -> None:
    class Impatient(Autoregression):
        n_steps = 0

        def step(self, rng: np.random.Generator, state: Number) -> Info:
            Impatient.n_steps += 1
            if Impatient.n_steps == 300:
                import signal

                signal.raise_signal(signal.SIGINT)
            return super().step(rng, state)

    made = type("Started", (Number,), {"start": 5.0})
    options = {"n_thin": 1, "n_burn_in": 0, "n_chains": 1, "n_jobs": 1, "make_state": made}
    with pytest.warns(PermixWarning, match="interrupted after .* of .* iterations: .* draws kept per chain"):
        draws = run(n_draws="auto", move=Impatient(0.9999), **options)
    assert draws.interrupted
    assert 300 <= draws.n_made < 8000
    assert draws.n_draws == draws.n_made - draws.n_made // 2


def test_draws_of_many_numbers_wait_on_disk_and_fewer_are_kept(monkeypatch, tmp_path) -> None:
    """The draws are those of a run that has all in memory, in a store or not."""
    options = {"n_draws": 300, "n_thin": 1, "n_burn_in": 0}
    whole = run(**options)
    monkeypatch.setattr(draws_module, "LARGE", 64)
    mapped = []
    plain = draws_module._mapped
    monkeypatch.setattr(draws_module, "_mapped", lambda array: mapped.append(array) or plain(array))
    for store in (None, tmp_path / "store", tmp_path / "store"):  # the last one reads what is there
        found = run(store=store, **options)
        assert all(np.array_equal(found.arrays[name], whole.arrays[name]) for name in whole.arrays)
        assert not any(isinstance(array, np.memmap) for array in found.arrays.values())
    assert mapped
    numbers = sum(array[:, 0].size for array in whole.arrays.values())  # of one draw of all chains
    monkeypatch.setattr(auto, "MOST_NUMBERS_KEPT", 100 * numbers)
    with pytest.warns(PermixWarning, match="100 of 300 draws of each chain are kept, evenly spaced"):
        few = run(**options)
    assert few.n_made == 300
    assert few.ended == ASKED
    for name, array in few.arrays.items():
        assert np.array_equal(array, whole.arrays[name][:, 2::3])
    # Chains that are judged are so by all draws.
    monkeypatch.setattr(auto, "MOST_NUMBERS_KEPT", 50 * 4 * run_auto(0.6).arrays["x"].shape[0])
    judged = run_auto(0.6)
    assert judged.ended == ENOUGH
    assert judged.n_draws <= 50 < 500 <= judged.n_made
