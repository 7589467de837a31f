"""Each format goes through ``permix convert`` to PrefLib and back, and says the same."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import permix
from tests.data.io.ballots import writers
from tests.data.io.ballots.test_formats import profile_of
from tests.data.io.test_damaged_copies import ITEMS, TEXTS, VOTED

PAIRWISE = ("battles.csv", "tasks.csv")  # PrefLib has no place for these
MADE = {writer.__name__: writer for writer in (*writers.WHOLE, *writers.TABLES)}
TIED = {
    "x.blt": '3 1\n4 1 3 0\n2 2 1=3 0\n0\n"Ann"\n"Bo"\n"Cy"\n"Town"\n',
    "t.abif": "42:Memphis>Nash>Knox\n26:Nash=Knox>Memphis\n5:Nash/5,Knox/2\n",
    "t.cvotes": "A > B = C * 42\nB * 3\n",
    "t.csv": "voter,tea,milk,cola\nann,1,1,3\nbo,2,1,3\n",
    "survey.csv": "Timestamp,Rank [Tea],Rank [Milk]\n2024/01/05 10:11,1st,2nd\n2024/01/05 10:12,2nd,1st\n",
    "numbered.csv": 'id,ranking\n1,"1. Tea, 2. Milk"\n2,"1. Milk, 2. Tea"\n',
}


def goes_and_comes(run, path, folder, *options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        contest = {"contest": options[1]} if options else {}
        read = permix.read(path, **contest)
    ties = not isinstance(read, permix.Rankings)
    there = folder / f"there.{'toi' if ties else 'soi'}"
    code, _, err = run("convert", path, there, *options)
    assert code == 0, err
    back = folder / "back.csv"
    code, _, err = run("convert", there, back)
    assert code == 0, err
    again = folder / f"again{there.suffix}"
    code, _, err = run("convert", back, again)
    assert code == 0, err
    for found in (permix.read(there), permix.read(again)):
        assert found.n_agents == read.n_agents
        place = [list(map(str, found.items)).index(str(name)) for name in read.items]
        assert len(place) == found.n_items
        assert np.array_equal(found.pairwise_counts()[np.ix_(place, place)], read.pairwise_counts())


@pytest.mark.parametrize("name", MADE)
def test_ballots(name, run, tmp_path):
    path = MADE[name](profile_of(3, ITEMS, n=12), ITEMS, tmp_path)
    several = path.is_dir() or name == "dominion_csv"
    goes_and_comes(run, path, tmp_path, *(("--contest", "Mayor") if several else ()))


@pytest.mark.parametrize("name", [name for name in (*TEXTS, *TIED) if name not in PAIRWISE])
def test_texts_and_tables(name, run, tmp_path):
    path = tmp_path / name
    path.write_text(TEXTS[name][0] if name in TEXTS else TIED[name], encoding="utf-8")
    goes_and_comes(run, path, tmp_path)


@pytest.mark.parametrize("ending", ["parquet", "xlsx", "tsv", "abif", "blt"])
def test_what_permix_writes(ending, run, tmp_path):
    votes = permix.Rankings.from_orders([order for order, _ in VOTED], counts=[n for _, n in VOTED])
    path = tmp_path / f"x.{ending}"
    permix.write(votes, path)
    goes_and_comes(run, path, tmp_path)


@pytest.mark.parametrize("name", PAIRWISE)
def test_what_preflib_cannot_hold_is_refused_and_goes_into_a_table(name, run, tmp_path):
    path = tmp_path / name
    path.write_text(TEXTS[name][0], encoding="utf-8")
    code, _, err = run("convert", path, tmp_path / "y.toi")
    assert code == 1
    assert "--to-layout pairs" in err
    assert not (tmp_path / "y.toi").exists()
    code, _, err = run("convert", path, tmp_path / "y.csv", "--to-layout", "pairs")
    assert code == 0, err
    again, read = permix.read(tmp_path / "y.csv"), permix.read(path)
    place = [again.items.index(name) for name in read.items]
    assert np.array_equal(again.pairwise_counts()[np.ix_(place, place)], read.pairwise_counts())


def test_a_conversation_in_which_not_all_answered(run, tmp_path):
    path, there, back = tmp_path / "votes.csv", tmp_path / "x.toi", tmp_path / "back.csv"
    path.write_text("".join(TEXTS["votes.csv"][0].splitlines(keepends=True)[:-2]))
    code, _, err = run("convert", path, there)
    assert code == 0
    assert "unlisted" not in err  # the header says so
    assert run("convert", there, back)[0] == 0
    read = permix.read(path)
    for found in (permix.read(there), permix.read(back)):
        place = [list(map(str, found.items)).index(str(name)) for name in read.items]
        assert np.array_equal(found.pairwise_counts()[np.ix_(place, place)], read.pairwise_counts())
