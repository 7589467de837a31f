"""Shards are made once, kept where there is room, and made anew when they were let go."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from permix.runtime.executors import Here, Recipe

MADE = []


def build(number):
    MADE.append(number)
    return np.full(10, number)


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
