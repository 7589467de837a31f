"""Work that would need too much memory or time is announced, with the option that avoids it."""

from __future__ import annotations

import time
import warnings

import pytest

from permix.errors import Argument, Message, PermixWarning
from permix.runtime import cost
from permix.sampling import loop
from tests.sampling.toy import Walk, run


def test_memory_of_this_machine_is_known():
    assert cost.memory_size() > 2**28


def test_only_more_than_half_of_the_memory_is_worth_a_warning(monkeypatch):
    monkeypatch.setattr(cost, "memory_size", lambda: 8 * 2**30)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not cost.warn_of_memory(4 * 2**30, "a table", "ask for less")
    with pytest.warns(
        PermixWarning, match=r"a table will take about 5\.0 GiB of memory, .* has 8\.0 GiB; ask"
    ):
        assert cost.warn_of_memory(5 * 2**30, "a table", "ask for less")


def test_the_way_out_is_an_option_on_the_command_line(monkeypatch):
    monkeypatch.setattr(cost, "memory_size", lambda: 2**30)
    with pytest.warns(PermixWarning) as caught:
        cost.warn_of_memory(2**31, "a fit", Message("use ", Argument("n_thin")))
    message = caught[0].message.args[0]
    assert str(message).endswith("use n_thin")
    assert message.as_options().endswith("use --thin")


def test_an_hour_is_long():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not cost.warn_of_time(3000.0, "x")
    with pytest.warns(PermixWarning, match=r"about 2\.0 hours more; fewer"):
        assert cost.warn_of_time(7200.0, "fewer")


def test_chains_say_so_before_they_run(monkeypatch):
    monkeypatch.setattr(cost, "memory_size", lambda: 1000)
    with pytest.warns(PermixWarning, match=r"100 draws of 2 chains will take .* a larger n_thin"):
        run()


def test_chains_that_take_hours_say_so(monkeypatch):
    monkeypatch.setattr(loop, "ESTIMATE_AFTER", 0.0)
    monkeypatch.setattr(cost, "LONG_SECONDS", 0.0)
    with pytest.warns(PermixWarning, match=r"hours more; fewer iterations \(n_draws, n_burn_in\) take less"):
        run(seconds=0.001)


def test_the_first_iterations_compile_and_are_not_counted(monkeypatch):
    """A first iteration of half a second and others of a millisecond: no hours are foretold."""
    monkeypatch.setattr(loop, "ESTIMATE_AFTER", 0.1)
    monkeypatch.setattr(cost, "LONG_SECONDS", 5.0)

    class SlowAtFirst(Walk):
        def step(self, rng, state):
            if self.width == 1.0:  # not yet tuned
                time.sleep(0.5)
            return super().step(rng, state)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(move=SlowAtFirst(0.001), n_draws=200)
