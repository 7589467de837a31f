"""Ballots as election offices publish them; what RCTab reads of a Dominion export is read alike."""

from __future__ import annotations

import csv

import numpy as np
import pytest

import permix
from permix.data.io.ballots.formats import recognize

pytestmark = pytest.mark.realdata


def test_rctab_reads_the_same_of_alaska(data_folder):
    """Ballot for ballot and rank for rank; RCTab calls the write-in by its number."""
    ballots = permix.read_ballots(data_folder / "ballots" / "dominion-alaska-2024", contest="7")
    found = {str(agent): [[] for _ in range(ballots.n_ranks)] for agent in ballots.agents}
    names = ["476" if name == "Write-in" else str(name) for name in ballots.items]
    for row, rank, item in zip(ballots.ballot, ballots.rank, ballots.item, strict=True):
        found[str(ballots.agents[row])][rank].append(names[item])
    with open(data_folder / "ballots" / "dominion-alaska-2024.rctab.csv", encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    assert len(rows) == len(found) == 124
    precincts = dict(zip(ballots.agents, ballots.covariates["precinct"], strict=True))
    for row in rows:
        number = f"{row['Tabulator Id']}-{row['Batch Id']}-{row['Record Id']}"
        words = [
            "undervote" if not marked else marked[0] if len(marked) == 1 else "overvote"
            for marked in found[number]
        ]
        assert words[:4] == [row[f"Rank {rank}"] for rank in range(1, 5)]
        assert precincts[number] == row["Precinct Portion"]


@pytest.mark.parametrize(
    ("name", "contest", "title", "n_agents", "n_items"),
    [
        ("hart", "AMENDMENT 1", "Hart Verity cast vote records", None, None),
        ("cdf/cdf_json_cvr.json", None, "NIST common data format of cast vote records", 15, 4),
        ("clear-ballot/kansas_primary.cvr.csv", None, "Clear Ballot cast vote records", 50, 10),
        ("ess/simple_ess_cvr.xlsx", None, "Table of ballots, a column for each rank", 10, 4),
        ("ess/2015_portland_maine_mayor_cvr.xlsx", None, "Table of ballots, a column for each rank", 98, 15),
        ("csv/albany_profile.csv", None, "VoteKit profile", 7159, 5),
        ("csv/minneapolis_2017_ward_9.csv.gz", None, "Table of ballots, a column for each rank", 5514, 5),
        ("csv/portland_oregon_2024_d1.csv.gz", None, "Table of ballots, a column for each rank", 42871, 17),
        ("csv/scottish_sample.csv", None, "Scottish council election", 146, 3),
    ],
)
def test_every_sample_is_recognized_and_read(data_folder, name, contest, title, n_agents, n_items):
    path = data_folder / "ballots" / name
    assert recognize(path).title == title
    rankings = permix.read(path, **({} if contest is None else {"contest": contest}))
    if n_agents is not None:
        assert (rankings.n_agents, rankings.n_items) == (n_agents, n_items)
    assert not {"undervote", "overvote", "skipped", ""} & {str(item).lower() for item in rankings.items}


def test_first_choices_of_a_minneapolis_ward_are_those_of_the_file(data_folder):
    """Counted by hand from the column rank1: whoever stands there and is a candidate."""
    import pandas as pd

    path = data_folder / "ballots" / "csv" / "minneapolis_2017_ward_9.csv.gz"
    frame = pd.read_csv(path)
    rankings = permix.read(path, overvotes="skip", skipped="close-up")
    named = frame[~frame["rank1"].isin(["undervote", "overvote"])]
    first = dict(zip(rankings.items, np.bincount(rankings.orders[:, 0]).tolist(), strict=True))
    for name, n in named.groupby("rank1")["weight"].sum().items():
        assert first[name] >= n
    assert sum(first.values()) - len(named) <= len(frame) - len(named)


@pytest.mark.parametrize(
    ("name", "contest"),
    [
        ("ballots/dominion-alaska-2024", "7"),
        ("ballots/hart", "b651b997-417a-46d9-a676-a43d4df94ddc"),
        ("ballots/ess/2015_portland_maine_mayor_cvr.xlsx", None),
        ("ballots/csv/minneapolis_2017_ward_9.csv.gz", None),
        ("preflib-more/00021-00000001.toi", None),  # San Francisco, where ties are overvotes
        ("preflib-more/00018-00000001.soi.gz", None),  # Minneapolis, with hundreds of names written in
    ],
)
@pytest.mark.parametrize(
    "rules",
    [
        {},
        {"overvotes": "drop"},
        {"min_support": 50, "min_answers": 2},
        {"min_support": 5, "below_support": "merge"},
    ],
)
def test_ballots_are_kept_or_counted_as_left_out(data_folder, name, contest, rules):
    path = data_folder / name
    if name.startswith("preflib"):
        marked, before = permix.read(path), 0
        n_read = marked.n_agents
    else:
        marked = permix.read_ballots(path, contest)
        before = sum(entry.left_out for entry in marked.audit)
        n_read = marked.n_ballots + before
    try:
        kept = permix.clean(marked, **rules)
    except permix.errors.DataError:  # nine ballots of Hart's sample name nobody fifty times
        assert n_read < 100
        return
    assert kept.n_agents + sum(entry["left_out"] for entry in kept.metadata["CLEANING"]) == n_read
