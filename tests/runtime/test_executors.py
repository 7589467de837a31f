"""Shards are made once, kept where there is room, and made anew when they were let go."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from permix.errors import ShardError
from permix.runtime.executors import Here, Recipe

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
