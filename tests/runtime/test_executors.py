"""Shards are made once, kept where there is room, and made anew when they were let go."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from permix.errors import ShardError
from permix.runtime.executors import Held, Here, Recipe

MADE = []


def build(number):
    MADE.append(number)
    return np.full(10, number)


def fails(number):
    raise ZeroDivisionError


def total(shard, shared):
    return int(shard.sum()) * shared


def test_shards_beyond_those_in_memory_wait_in_files() -> None:
    MADE.clear()
    here = Here(1, most_held=2)
    recipes = [Recipe(f"shard-{at}", f"shard {at}", build, (at,)) for at in range(5)]
    for factor in (1, 3):
        assert here.map_shards(total, recipes, factor) == [10 * at * factor for at in range(5)]
    assert list(range(5)) == MADE
    files = sorted(Path(here._held._folder.name).iterdir())
    assert [file.name.split("-", 1)[1] for file in files] == ["shard-2", "shard-3", "shard-4"]
    assert Path(here._held._folder.name).stat().st_mode & 0o077 == 0  # nobody else
    here.forget(recipes[:4])
    assert len(list(Path(here._held._folder.name).iterdir())) == 1
    assert here.map_shards(total, recipes, 1, int.__add__) == 100
    assert [*range(5), *range(4)] == MADE


def test_what_is_wrong_is_told_with_the_name_of_the_shard() -> None:
    with pytest.raises(ShardError, match=r"^shard 3: ZeroDivisionError, mend it$"):
        Recipe("a", "shard 3", fails, (3,), ", mend it").make()
    with pytest.raises(KeyboardInterrupt):
        Recipe("a", "shard 3", interrupted).make()


def interrupted():
    raise KeyboardInterrupt


def test_a_worker_is_told_its_shards_once() -> None:
    pytest.importorskip("distributed")
    from permix.runtime import on_dask

    recipes = [Recipe(f"told-{at}", f"shard {at}", build, (at,)) for at in range(3)]
    asked = total, on_dask.Task(0, 0, recipes).run
    assert isinstance(on_dask._reduced_on_worker(*asked, None, 1, int.__add__), on_dask.Unknown)
    assert on_dask._reduced_on_worker(*asked, recipes, 1, int.__add__) == 30
    assert on_dask._reduced_on_worker(*asked, None, 2, int.__add__) == 60
    on_dask._forget_on_worker(["told-1"])
    assert isinstance(on_dask._reduced_on_worker(*asked, None, 1, int.__add__), on_dask.Unknown)
    on_dask._forget_on_worker([recipe.token for recipe in recipes])
    other = on_dask.Task(0, 0, recipes[:2]).run
    assert other != asked[1]


def test_shards_for_which_there_is_no_room_wait_in_files() -> None:
    room = iter([True, False, True])
    held = Held(room=lambda: next(room))
    recipes = [Recipe(f"room-{at}", f"shard {at}", build, (at,)) for at in range(3)]
    for _ in range(2):
        assert [int(held.get(recipe)[0]) for recipe in recipes] == [0, 1, 2]
    assert (list(held._kept), list(held._files)) == (["room-0", "room-2"], ["room-1"])


class PausedClient:
    """A client whose one worker is given no work."""

    def scheduler_info(self, n_workers):
        return {"workers": {"tcp://one": {"nthreads": 1, "status": "paused"}}}

    def submit(self, *task, **where):
        return Waits()

    def cancel(self, futures):
        self.cancelled = futures


class Waits:
    def cancel(self):
        pass


def test_a_worker_that_dask_has_paused_is_not_waited_for_for_ever(monkeypatch) -> None:
    pytest.importorskip("distributed")
    from permix.runtime import on_dask

    monkeypatch.setattr(on_dask, "PAUSED_SECONDS", 0.05)
    monkeypatch.setattr(on_dask.OnDask, "_done", staticmethod(lambda futures: time.sleep(0.01) or set()))
    monkeypatch.setattr(on_dask.OnDask, "_forget", lambda self, workers, tokens: None)
    client = PausedClient()
    with pytest.raises(
        ShardError, match=r"^shard 0: Dask has given worker tcp://one no work for .* --memory"
    ):
        on_dask.OnDask(client).map_shards(total, [Recipe("a", "shard 0", build, (0,))], 1)
    assert len(client.cancelled) == 1
