"""All 25 PrefLib files: counts match the headers, and what is written is what was read, byte for byte."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import numpy as np
import pytest

from permix import Preferences, Rankings
from permix.data import read_preflib, write_preflib
from permix.datasets import load_preflib, registry

pytestmark = pytest.mark.realdata


def _files():
    folder = Path(os.environ.get("PERMIX_DATA", "/nowhere")) / "preflib"
    return sorted(path.name for path in folder.glob("*-????????.*"))


def _content(path):
    raw = path.read_bytes()
    return gzip.decompress(raw) if path.suffix == ".gz" else raw


def test_there_are_25_files(data_folder):
    assert len(_files()) == 25
    assert {name.removesuffix(".gz") for name in _files()} == set(registry.PREFLIB.sha256)


@pytest.mark.parametrize("name", _files())
def test_round_trip_and_counts(data_folder, tmp_path, name):
    path = data_folder / "preflib" / name
    votes = read_preflib(path)
    kind = name.removesuffix(".gz").rpartition(".")[2]
    assert isinstance(votes, Rankings if kind in ("soc", "soi") else Preferences)
    header = votes.metadata
    unique = header["NUMBER UNIQUE PREFERENCES" if kind == "cat" else "NUMBER UNIQUE ORDERS"]
    assert votes.n_agents == int(header["NUMBER VOTERS"])
    assert len(votes) == int(unique)
    assert votes.n_items == int(header["NUMBER ALTERNATIVES"])
    write_preflib(votes, tmp_path / name)
    assert _content(tmp_path / name) == _content(path)
    assert read_preflib(tmp_path / name) == votes


def test_toc_of_an_soi_says_the_same(data_folder, tmp_path):
    # PrefLib made the .toc by adding the unranked alternatives at the bottom: so do we, up to merged rows.
    votes = read_preflib(data_folder / "preflib" / "00028-00000001.soi")
    write_preflib(votes, tmp_path / "00028-00000001.toc")
    ours = read_preflib(tmp_path / "00028-00000001.toc")
    theirs = read_preflib(data_folder / "preflib" / "00028-00000001.toc")

    def said(preferences):
        return {
            (preferences.level_items[a:b].tobytes(), preferences.levels[a:b].tobytes()): int(count)
            for a, b, count in zip(
                preferences.level_indptr[:-1], preferences.level_indptr[1:], preferences.counts, strict=True
            )
        }

    assert sum(said(ours).values()) == sum(said(theirs).values()) == 18723
    # A list of four of five is a full ranking; PrefLib writes it so, and so does a group of one.
    assert said(ours) == said(theirs)


def test_known_facts(data_folder):
    dublin = load_preflib("00001-00000002", ".soi").data
    first = dublin.items.index("Brian Lenihan F.F.")
    assert dublin.n_agents == 29988
    top = np.bincount(dublin.orders[:, 0], weights=dublin.counts, minlength=9)
    assert np.argmax(top) == first
    french = load_preflib("00026-00000001", ".cat").data
    assert french.metadata["CATEGORY NAME 1"] == "Yes"
    assert len(french.metadata["EMPTY CATEGORIES"]) == 1
