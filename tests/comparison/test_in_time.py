"""Limits of time: a part of the data first, then as much as there is time for."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from permix.comparison import compare as module
from permix.comparison.command import minutes_left
from permix.comparison.forms import FORMS
from permix.errors import PermixWarning


@pytest.fixture
def trial(monkeypatch):
    """Compare in 100 seconds, by a clock of its own; ``outcome`` says what comes of a size, in how long."""
    now = [0.0]
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now[0]))
    asked = SimpleNamespace(form=FORMS["votes"])

    def run(outcome, n_all=50_000):
        sizes = []

        def compared(_, size, entropy, clock, fewer_for_time=False):
            sizes.append((size, fewer_for_time))
            seconds, entries, error = outcome(size)
            now[0] += min(seconds, clock.limit)
            if error is not None:
                raise error
            entry = SimpleNamespace(cut_short=seconds > clock.limit)
            return Result(size=size, entries=(entry,) * entries, left_out={}, interrupted=entries == 1)

        monkeypatch.setattr(module, "_compared", compared)
        now[0] = 0.0
        found = module._in_time(asked, n_all, np.random.SeedSequence(0), module.Clock(100.0, 0.0))
        assert now[0] <= 100.0
        return found.size, [size for size, _ in sizes], found, sizes

    return run


class Result(SimpleNamespace):
    """A comparison, as far as sizes go."""


def test_what_is_quick_is_done_again_with_more(trial):
    size, sizes, _, _ = trial(lambda n: (0.001 * n, 2, None))
    assert sizes == [2000, size]
    assert 20_000 < size < 50_000
    size, sizes, _, said = trial(lambda n: (1e-6 * n, 2, None))
    assert (size, said[-1]) == (50_000, (50_000, False))  # all
    assert said[0] == (2000, True)


def test_what_is_slow_is_tried_with_fewer_and_what_was_cut_short_is_kept(trial):
    late = module.OutOfTime("no model")
    size, sizes, _, _ = trial(lambda n: (n, 2, late if n > 500 else None))
    assert sizes == [2000, 500]
    assert trial(lambda n: (80.0, 2, None))[1] == [2000]  # cut short: there is no time for more
    size, sizes, _, _ = trial(lambda n: (0.001 * n, 2, late if n > 2000 else None))
    assert size == 2000 < sizes[-1]
    with pytest.raises(module.OutOfTime):
        trial(lambda n: (1.0, 2, late))


def test_a_larger_part_that_the_user_stops_leaves_the_smaller_one(trial, monkeypatch):
    monkeypatch.setattr(module, "replace", lambda found, **changes: Result(**{**vars(found), **changes}))
    with pytest.warns(PermixWarning, match="kept what was found on fewer"):
        size, _, found, _ = trial(lambda n: (0.001 * n, 2 if n == 2000 else 1, None))
    assert (size, found.interrupted) == (2000, True)
    with pytest.warns(PermixWarning, match="kept what was found on fewer"):
        stopped = trial(lambda n: (0.001 * n, 2, None if n == 2000 else KeyboardInterrupt()))
    assert (stopped[0], stopped[2].interrupted) == (2000, True)


def test_reading_counts(monkeypatch):
    monkeypatch.setattr("permix.comparison.command.time", SimpleNamespace(monotonic=lambda: 90.0))
    assert minutes_left(2.0, 30.0) == 1.0
    assert 0.0 < minutes_left(0.5, 30.0) < 1e-3
    assert minutes_left(None, 30.0) is None
