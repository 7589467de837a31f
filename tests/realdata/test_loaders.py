"""Public data sets against the facts stated about them, and the small CSV files in their layouts."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from permix import Preferences, Rankings, datasets
from permix.data import read_table
from permix.datasets import registry
from permix.datasets.fetch import find
from permix.errors import DataError
from permix.files import read_unpacked

pytestmark = pytest.mark.realdata


@pytest.fixture(autouse=True)
def _here(data_folder):
    """All tests need the folder."""


def test_files_have_the_checksums_of_the_registry():
    checked = 0
    for source in registry.SOURCES.values():
        for name, expected in source.sha256.items():
            path = find(source, name)
            if path is None or (source.key, name) == ("sushi", "README-en.txt"):
                continue  # the folder's copy of that README is an edited one
            assert hashlib.sha256(read_unpacked(path)).hexdigest() == expected, name
            checked += 1
    assert checked >= 25 + 4 + 2 + 1 + 2


def test_sushi():
    a = datasets.load_sushi("a")
    assert isinstance(a.data, Rankings)
    assert a.data.is_full
    assert len(a.data) == 5000
    assert a.data.items[7] == "toro"
    # Fatty tuna is the first choice of 1713 people.
    assert np.sum(a.data.orders[:, 0] == 7) == 1713
    assert np.bincount(a.details["east_west_childhood"]).tolist() == [3258, 1742]
    assert np.bincount(a.details["east_west_now"]).tolist() == [3448, 1552]
    assert "You must not redistribute" in a.license
    b = datasets.load_sushi("b")
    assert b.data.n_items == 100
    assert b.data.unlisted == "unknown"
    assert b.data.items[7] == "tamago"
    assert b.data.items[48] == "ume&shiso roll"
    assert datasets.load_sushi("b", unlisted="below").data.unlisted == "below"
    scores = datasets.load_sushi("scores").data
    assert isinstance(scores, Preferences)
    assert len(scores.level_items) == 50_000
    assert scores.items == b.data.items
    # Those who ranked and scored did both the same way round: the first of their ranking is in a good level.
    levels = np.full((5000, 100), -1)
    levels[np.repeat(np.arange(5000), 10), scores.level_items] = scores.levels
    mine = np.take_along_axis(levels, b.data.orders, axis=1)
    assert np.mean(mine[:, :5].mean(axis=1) < mine[:, 5:].mean(axis=1)) > 0.9
    # Everybody ranked the ten items that they scored.
    assert np.array_equal(
        np.sort(b.data.orders, axis=1), np.sort(scores.level_items.reshape(5000, 10), axis=1)
    )


def test_apa():
    everyone, full = datasets.load_apa(), datasets.load_apa(ballots="full")
    assert everyone.data.n_agents == 15449
    assert full.data.n_agents == 5738
    assert len(full.data) == 120
    first = np.bincount(full.data.orders[:, 0], weights=full.data.counts) / 5738
    assert np.round(100 * first, 1).tolist() == [18.4, 13.5, 28.0, 20.4, 19.7]
    lengths = np.bincount(everyone.data.lengths, weights=everyone.data.counts)
    assert lengths.tolist() == [0, 5141, 2462, 2108, 0, 5738]
    assert datasets.load_apa(1998).data.n_agents == 18723
    assert datasets.load_apa(1998).data.items == everyone.data.items


def test_movielens():
    small = datasets.load_movielens("100k")
    assert small.data.shape == (943, 1682)
    assert small.data.nnz == 100_000
    assert small.column_names[0] == "Toy Story (1995)"
    assert len(set(small.column_names)) == 1682
    large = datasets.load_movielens("1m")
    assert large.data.shape == (6040, 3449)
    assert np.bincount(large.data.data)[1:].tolist() == [56_036, 107_450, 261_080, 348_869, 226_279]
    preferences = Preferences.from_ratings(small.data, items=small.column_names)
    assert len(preferences.level_items) == 100_000


def test_jester():
    jokes = datasets.load_jester()
    rated = ~np.isnan(jokes.data)
    assert jokes.data.shape == (24_983, 100)
    assert rated.sum() == 1_810_455
    assert rated.all(axis=1).sum() == 7200
    assert np.nanmin(jokes.data) == -9.95
    assert np.nanmax(jokes.data) == 10.0


def test_ap():
    articles = datasets.load_ap()
    assert articles.data.shape == (2246, 10_473)
    assert articles.data.nnz == 302_031
    assert articles.data.sum() == 435_838
    assert articles.column_names[0] == "i"


def test_describe_says_that_all_is_here():
    assert set(datasets.describe()["files"]) == {"on this machine"}


# -- CSV files ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "agents", "rows"), [("full", 5738, 120), ("top", 15449, 205)])
def test_apa_tables_are_recognized(data_folder, name, agents, rows):
    votes = read_table(data_folder / "apa1980" / f"apa1980_{name}_orderings.csv")
    assert (votes.n_agents, len(votes)) == (agents, rows)
    assert votes.items == (1, 2, 3, 4, 5)


def test_potatoes_and_beaches_are_recognized(data_folder):
    folder = data_folder / "bayesmallows"
    seen = read_table(folder / "potato_visual.csv")
    assert seen.agents.tolist() == [f"A{number}" for number in range(1, 13)]
    assert seen.is_full
    assert seen.items[0] == "P1"
    assert seen.ranks()[0, :5].tolist() == [10, 18, 19, 15, 6]
    assert read_table(folder / "potato_true_ranking.csv").n_items == 20
    assert len(read_table(folder / "potato_weighing.csv")) == 12
    beaches = read_table(folder / "beach_preferences.csv")
    assert (len(beaches), beaches.n_items, len(beaches.pairs)) == (60, 15, 1442)
    assert beaches.prefers(0, 15, 2)


SMALL = [
    ("PLMIX_d_german", "orders", 2262, 4),
    ("PLMIX_d_gaming", "orders", 91, 6),
    ("PLMIX_d_carconf", "orders", 435, 6),
    ("ConsRank_USAranks", "ranks", 104, 50),
    ("pmr_idea", "ranks", 98, 5),
    ("pmr_song", "ranks", 83, 5),
    ("pmr_leisure.black", "ranks", 13, 3),
    ("pmr_leisure.white", "ranks", 14, 3),
]


@pytest.mark.parametrize(("name", "layout", "agents", "items"), SMALL)
def test_small_tables_whose_layout_must_be_named(data_folder, name, layout, agents, items):
    path = data_folder / "rank-small" / f"{name}.csv"
    with pytest.raises(DataError, match=f"layout='{layout}'"):
        read_table(path)
    votes = read_table(path, layout=layout)
    assert (votes.n_agents, votes.n_items) == (agents, items)


@pytest.mark.parametrize(
    ("name", "agents", "items"), [("ConsRank_sports", 130, 7), ("ConsRank_Idea", 98, 5), ("pmr_big4", 21, 4)]
)
def test_small_tables_that_are_recognized(data_folder, name, agents, items):
    votes = read_table(data_folder / "rank-small" / f"{name}.csv")
    assert isinstance(votes, Rankings)
    assert (votes.n_agents, votes.n_items) == (agents, items)


def test_a_column_of_counts_with_an_unusual_name(data_folder):
    votes = read_table(data_folder / "rank-small" / "ConsRank_BU.csv", count_column="Wk")
    assert (votes.n_agents, len(votes), votes.items) == (948, 6, ("a", "b", "c"))
