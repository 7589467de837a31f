"""Readers of ballots: a profile that is written in a format comes back as it was marked."""

from __future__ import annotations

import json
import zipfile

import numpy as np
import pytest

import permix
from permix.data.ballots import Ballots
from permix.data.io.ballots import dominion
from permix.data.io.ballots.formats import recognize
from permix.data.io.ballots.rank_columns import rank_in
from permix.data.io.ballots.votekit import from_votekit
from permix.errors import DataError, FileFormatError, PermixError
from tests.data.io.ballots import writers

NAMES = [
    ["Ann Lee", "Bo", "Çelik, Ömer", "Dora"],
    ["O'Hara & Sons", "Smith <J>", "3rd Party", "Write-in"],
]


def profile_of(seed: int, items: list[str], n: int = 30):
    """Ballots with gaps, overvotes and repeated candidates; everybody is marked somewhere."""
    rng = np.random.default_rng(seed)
    made = []
    for number in range(n):
        ballot = []
        for _ in range(4):
            how = rng.random()
            size = 0 if how < 0.2 else 2 if how < 0.3 else 1
            ballot.append([str(name) for name in rng.choice(items, size=size, replace=False)])
        ballot[number % 4] = [items[number % len(items)]]
        made.append(ballot)
    return made


def marked(ballots: Ballots):
    """The profile that was read: rank by rank, names sorted, blanks at the end dropped."""
    found = [[[] for _ in range(ballots.n_ranks)] for _ in range(len(ballots))]
    for row, rank, item in zip(ballots.ballot, ballots.rank, ballots.item, strict=True):
        found[row][rank].append(None if item < 0 else str(ballots.items[item]))
    return [trimmed(ballot) for ballot in found]


def trimmed(ballot):
    ranks = [sorted(names, key=str) for names in ballot]
    while ranks and not ranks[-1]:
        ranks.pop()
    return ranks


@pytest.mark.parametrize("write", [*writers.WHOLE, *writers.TABLES], ids=lambda writer: writer.__name__)
@pytest.mark.parametrize("items", NAMES, ids=["plain", "awkward"])
def test_what_is_written_comes_back(write, items, tmp_path):
    profile = profile_of(1, items)
    path = write(profile, items, tmp_path)
    found = recognize(path)
    assert found is not None
    assert found.why
    ballots = found.read("Mayor" if len(found.contests()) > 1 else None)
    expected = [trimmed(ballot) for ballot in profile]
    if write in writers.TABLES:
        expected = [[[None] if len(names) > 1 else names for names in ballot] for ballot in expected]
    assert marked(ballots) == expected
    assert set(map(str, ballots.items)) >= {
        name for ballot in profile for rank in ballot for name in rank if len(rank) == 1
    }


@pytest.mark.parametrize("write", writers.WHOLE, ids=lambda writer: writer.__name__)
def test_all_formats_give_the_same_rankings(write, tmp_path):
    items = NAMES[0]
    profile = profile_of(2, items)
    expected = permix.clean(Ballots.from_rows(profile, items=items))
    path = write(profile, items, tmp_path)
    several = len(recognize(path).contests()) > 1
    asked = {"contest": "Mayor"} if several else {}
    if write is writers.votekit:  # whose sets are ties
        ties = permix.clean(Ballots.from_rows(profile, items=items), tied_ranks="keep")
        assert permix.read(path).metadata["CLEANING"] == ties.metadata["CLEANING"]
        asked["overvotes"] = "truncate"
    read = permix.read(path, **asked)
    assert sorted(map(str, read.items)) == sorted(items)
    assert named(read) == named(expected)
    assert read.metadata["CLEANING"] == expected.metadata["CLEANING"]


@pytest.mark.parametrize("write", [*writers.WHOLE, *writers.TABLES], ids=lambda writer: writer.__name__)
def test_through_preflib_and_back(write, tmp_path):
    items = NAMES[0]
    path = write(profile_of(3, items), items, tmp_path)
    several = len(recognize(path).contests()) > 1
    read = permix.read(path, **({"contest": "Mayor"} if several else {}))
    target = tmp_path / ("x.soi" if isinstance(read, permix.Rankings) else "x.toi")
    permix.write(read, target)
    again = permix.read(target)
    assert again.items == tuple(map(str, read.items))
    assert again.n_agents == read.n_agents


def named(rankings):
    return [[str(rankings.items[item]) for item in order if item >= 0] for order in rankings.orders]


def test_a_zip_is_read_like_a_folder(tmp_path):
    items = NAMES[0]
    profile = profile_of(4, items)
    zipped = recognize(writers.dominion(profile, items, tmp_path, packed=True)).read("3")
    folder = recognize(writers.dominion(profile, items, tmp_path)).read("3")
    assert marked(zipped) == marked(folder)
    assert zipped.agents.tolist() == folder.agents.tolist()
    assert set(zipped.covariates["precinct"]) == {"North 1"}


def test_scottish_wards(tmp_path):
    path = tmp_path / "ward.csv"
    path.write_text(
        '3,1,\n5,2,1,\n2,3,\n"Candidate 1","Ann","Red (R)",\n"Candidate 2","Bo","Blue (B)",\n'
        '"Candidate 3","Cy","Green (G)",\n"Old Town",\n'
    )
    ballots = recognize(path).read(None)
    assert ballots.counts.tolist() == [5, 2]
    assert marked(ballots) == [[["Bo"], ["Ann"]], [["Cy"]]]
    assert ballots.attributes["party"].tolist() == ["Red (R)", "Blue (B)", "Green (G)"]
    assert ballots.metadata["TITLE"] == "Old Town"
    path.write_text(path.read_text().replace("5,2,1,", "5,2,4,"))
    with pytest.raises(FileFormatError, match="line 2"):
        recognize(path).read(None)


def test_ranks_that_names_of_columns_say():
    names = {
        "For Mayor Choice 3 (55 (a) b)": ("For Mayor", 3),
        "  Mayor :  2nd   choice ": ("Mayor", 2),
        "rank_10": ("", 10),
        "Ranking #1": ("", 1),
        "Ward (2) - 1st Preference": ("Ward (2)", 1),
        "2e choix": ("", 2),
        "Mairie - 3ª opción": ("Mairie", 3),
        "Rang 1": ("", 1),
        "Choice": None,
        "orang1": None,
        "frank1": None,
        "x" * 500 + " rank 1": None,
        "a" + " " * 100_000 + "b": None,
    }
    assert {name: rank_in(name) for name in names} == names


def test_several_contests_are_listed_and_asked_for(tmp_path):
    path = writers.hart(profile_of(5, NAMES[0]), NAMES[0], tmp_path)
    with pytest.raises(DataError, match=r"2 contests: m \(Mayor\), c \(Clerk\).*contest"):
        permix.read(path)
    with pytest.raises(DataError, match="no contest called 'Sheriff'"):
        permix.read(path, contest="Sheriff")
    with pytest.raises(DataError, match="2 contests whose names contain 'r'"):
        permix.read(path, contest="r")
    assert permix.read(path, contest="mayor").n_items <= 4


def test_a_part_of_a_contests_name_will_do_and_a_wrong_one_is_refused(tmp_path):
    path = writers.hart(profile_of(5, NAMES[0]), NAMES[0], tmp_path)
    assert permix.read(path, contest=" MAY ").n_items <= 4
    ward = tmp_path / "ward.csv"
    ward.write_text('2,1,\n5,2,1,\n"Candidate 1","Ann",\n"Candidate 2","Bo",\n"Old Town",\n')
    assert permix.read(ward, contest="old town").n_agents == 5
    with pytest.raises(DataError, match="no contest called 'foo'"):
        permix.read(ward, contest="foo")


def test_choices_without_ranks_are_choices(tmp_path):
    """Vote for three: not three overvotes, but candidates above the others, in no order."""
    profile = [[["Ann", "Bo", "Cy"]], [["Ann", "Bo"]], [["Cy"]], [[]]]
    path = writers.hart(profile, ["Ann", "Bo", "Cy", "Di"], tmp_path)
    chosen = permix.read(path, contest="Mayor")
    assert chosen.items == ("Ann", "Bo", "Cy")
    assert [chosen.prefers(1, "Ann", other) for other in ("Bo", "Cy")] == [False, True]
    said = {entry["found"]: entry["ballots"] for entry in chosen.metadata["CLEANING"]}
    assert said == {"ballots without a choice": 1, "a contest without ranks": 3}


def test_more_choices_than_allowed_are_overvotes():
    marked = Ballots.from_rows(
        [[["A", "B"]], [["A", "B", "C"]], [["C"]]], items=["A", "B", "C", "D"], n_choices=2
    )
    chosen = permix.clean(marked)
    assert chosen.n_agents == 2
    assert chosen.metadata["CLEANING"][0]["found"] == "ballots with more than 2 choices"
    one = permix.clean(Ballots.from_rows([[["A", "B"]], [["C"]]], n_choices=1))
    assert one.n_agents == 1  # vote for one: two marks are an overvote, which leaves no choice


def test_converted_ballots_are_described(tmp_path):
    """What rules did is no line of a PrefLib header."""
    from permix.cli.inspect import cleaning_report

    items = NAMES[0]
    read = permix.read(writers.dominion(profile_of(2, items), items, tmp_path), contest="3")
    assert cleaning_report(read)
    permix.write(read, tmp_path / "x.soi")
    assert "CLEANING" not in (tmp_path / "x.soi").read_text(encoding="utf-8")
    assert cleaning_report(permix.read(tmp_path / "x.soi")) == {}


def test_plain_tables_are_still_tables(tmp_path):
    """Orders without marks, and numbers that could be ranks, are read or asked about as before."""
    path = tmp_path / "x.csv"
    path.write_text("choice1,choice2\ntea,milk\nmilk,tea\n")
    assert recognize(path) is None
    path.write_text("precinct,rank1,rank2\nA,1,2\nB,2,1\n")
    assert recognize(path) is None
    path.write_text("precinct,rank1,rank2\nA,Ann,Bo\nB,Bo,skipped\n")
    rankings = permix.read(path)
    assert rankings.items == ("Ann", "Bo")
    with pytest.raises(DataError, match="precinct"):
        permix.read(path, layout="orders")


def test_marks_are_no_candidates(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text(
        "rank1,rank2,rank3,weight\nAnn,Undervote,Bo,2\novervote,Ann,,1\nskipped,BLANK,,4\nBo,UWI,Ann,0\n"
    )
    rankings = permix.read(path)
    assert rankings.items == ("Ann", "Bo", "UWI")  # also who stands on ballots of count 0
    assert rankings.n_agents == 2
    said = {entry["found"].split(":")[0]: entry["ballots"] for entry in rankings.metadata["CLEANING"]}
    assert said["overvotes"] == 1
    assert said["ballots without a choice"] == 5  # the overvote at the first rank leaves none


def test_weights_that_are_no_counts_are_refused(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("precinct,rank1,rank2,weight\nA,Ann,Bo,1\nA,Bo,Ann,0.5\n")
    with pytest.raises(DataError, match=r"line 3: the weight '0.5'"):
        permix.read(path)


def test_votekit_objects_are_told_by_what_they_have():
    class One:
        def __init__(self, ranking, weight):
            self.ranking, self.weight = ranking, weight

    class Profile:
        candidates = ("A", "B", "C")
        ballots = (One((frozenset({"A"}), frozenset({"B", "C"})), 3.0), One((frozenset({"C"}),), 1))

    ballots = from_votekit(Profile())
    assert marked(ballots) == [[["A"], ["B", "C"]], [["C"]]]
    assert ballots.counts.tolist() == [3, 1]
    with pytest.raises(DataError, match="no VoteKit profile"):
        from_votekit(object())


def test_votekit_objects_are_built_of_what_is_passed():
    class Ballot:
        def __init__(self, ranking, weight):
            self.ranking, self.weight = ranking, weight

    class Profile:
        def __init__(self, ballots, candidates, max_ranking_length):
            self.ballots, self.candidates, self.longest = ballots, candidates, max_ranking_length

    votes = permix.Preferences.from_levels([[["a"], ["b", "c"]], [["c"]]], items=list("abcd"), counts=[3, 1])
    profile = permix.to_votekit(votes, Ballot, Profile)
    assert profile.longest == 3
    ballots = from_votekit(profile)
    assert ballots.items == tuple("abcd")
    assert marked(ballots) == [[["a"], ["b", "c"]], [["c"]]]
    assert ballots.counts.tolist() == [3, 1]
    back = permix.clean(ballots)
    assert [back.prefers(0, *pair) for pair in ("ab", "bd", "bc", "cb")] == [True, True, False, False]
    with pytest.raises(DataError, match="comparisons"):
        permix.to_votekit(permix.Preferences.from_pairs([(0, "a", "b")]), Ballot, Profile)


@pytest.mark.parametrize("alone", [False, True])
def test_one_export_of_dominion(tmp_path, alone):
    """With the manifests beside it, or by numbers."""
    items = ["Ann", "Bo", "Cy", "Di"]
    folder = writers.dominion([[["Ann"], ["Bo"]], [["Cy"], ["Di"]], [["Bo"]], [["Ann"]]], items, tmp_path)
    if alone:
        for manifest in folder.glob("*Manifest.json"):
            manifest.unlink()
    ballots = permix.read_ballots(folder / "CvrExport_17.json", contest="3")
    names = [f"candidate {100 + code}" for code in range(4)] if alone else items
    assert marked(ballots) == [[[names[0]], [names[1]]], [[names[2]], [names[3]]]]
    assert [entry.found for entry in ballots.audit] == ["no manifest of conditions"]


def test_exports_read_as_plain_json_would_be(tmp_path, monkeypatch):
    items = NAMES[0]
    folder = writers.dominion(profile_of(3, items, n=12), items, tmp_path)
    fast = permix.read_ballots(folder, contest="3")
    monkeypatch.setattr(dominion, "_decoder", lambda: (json.loads, lambda value: value))
    slow = permix.read_ballots(folder, contest="3")
    assert marked(fast) == marked(slow)
    assert fast.agents.tolist() == slow.agents.tolist()


# -- nothing hostile -------------------------------------------------------------------------------


def test_xml_with_entities_is_refused(tmp_path):
    path = writers.hart(profile_of(6, NAMES[0]), NAMES[0], tmp_path)
    file = path / "0001.xml"
    file.write_text('<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "aaaa">]>' + file.read_text()[21:])
    with pytest.raises(FileFormatError, match="DOCTYPE"):
        permix.read(path, contest="Mayor")


def test_a_zip_that_unpacks_to_too_much_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("PERMIX_MAX_BYTES", "100000")
    with zipfile.ZipFile(tmp_path / "x.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("CvrExport_1.json", " " * 10_000_000)
        archive.writestr("ContestManifest.json", "{}")
        archive.writestr("CandidateManifest.json", "{}")
    with pytest.raises(FileFormatError, match=r"x\.zip: it would unpack"):
        permix.read(tmp_path / "x.zip")


def test_names_in_a_zip_are_no_paths(tmp_path):
    items = NAMES[0]
    path = writers.dominion(profile_of(7, items), items, tmp_path, packed=True)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("../../outside.json", "{}")
        archive.writestr("/etc/passwd", "x")
    assert permix.read(path, contest="Mayor").n_items == 4
    assert not (tmp_path.parent.parent / "outside.json").exists()


@pytest.mark.parametrize("write", [*writers.WHOLE, *writers.TABLES[:1]], ids=lambda writer: writer.__name__)
def test_damaged_copies_give_a_typed_error_or_a_reading(write, tmp_path):
    """A hundred copies, each with some bytes changed, cut or doubled."""
    items = NAMES[0]
    path = write(profile_of(8, items, n=8), items, tmp_path)
    file = sorted(path.iterdir())[-1] if path.is_dir() else path
    whole = file.read_bytes()
    rng = np.random.default_rng(9)
    refused = 0
    for _ in range(100):
        content = bytearray(whole)
        at, length = int(rng.integers(len(whole))), int(rng.integers(1, 30))
        how = rng.integers(3)
        if how == 0:
            content[at : at + length] = bytes(rng.integers(32, 127, size=length, dtype=np.uint8))
        elif how == 1:
            del content[at : at + length]
        else:
            content[at:at] = content[at : at + length]
        file.write_bytes(bytes(content))
        try:
            permix.read(path, **({"contest": "Mayor"} if path.is_dir() else {}))
        except (PermixError, OSError):
            refused += 1
    assert refused > 0
