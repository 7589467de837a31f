"""Every sample goes through `permix convert` to PrefLib and back: nobody says anything else afterwards."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import numpy as np
import pytest

import permix
from permix.data.rankings import Rankings

pytestmark = pytest.mark.realdata
DATA = Path(os.environ.get("PERMIX_DATA", "/nowhere"))
BALLOTS = [
    ("ballots/dominion-alaska-2024", "7"),
    ("ballots/hart", "b651b997-417a-46d9-a676-a43d4df94ddc"),
    ("ballots/cdf/cdf_json_cvr.json", None),
    ("ballots/clear-ballot/kansas_primary.cvr.csv", None),
    ("ballots/ess/simple_ess_cvr.xlsx", None),
    ("ballots/ess/2015_portland_maine_mayor_cvr.xlsx", None),
    ("ballots/csv/albany_profile.csv", None),
    ("ballots/csv/minneapolis_2017_ward_9.csv.gz", None),
    ("ballots/csv/portland_oregon_2024_d1.csv.gz", None),
    ("ballots/csv/scottish_sample.csv", None),
    ("polis/scoop-hivemind.ubi/votes.csv.gz", None),
]
PREFLIB = [
    str(path.relative_to(DATA))
    for folder in ("preflib", "preflib-more")
    for path in sorted((DATA / folder).glob("*-????????.*"))
    if "00063" not in path.name  # its header disagrees with its lines
]


def counts_of(votes):
    return votes.pairwise_counts()


def round_trip(votes, folder, ending):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        permix.write(votes, folder / f"x{ending}")
        unknown = not votes.arrays().rest_below.all() and ending != ".cat"
        return permix.read(folder / f"x{ending}", **({"unlisted": "unknown"} if unknown else {}))


@pytest.mark.parametrize(("name", "contest"), BALLOTS, ids=[name for name, _ in BALLOTS])
def test_ballots_to_preflib_and_back(data_folder, tmp_path, name, contest):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        votes = permix.read(data_folder / name, **({} if contest is None else {"contest": contest}))
    back = round_trip(votes, tmp_path, ".soi" if isinstance(votes, Rankings) else ".toi")
    assert [str(item) for item in back.items] == [str(item) for item in votes.items]
    assert back.n_agents == votes.n_agents
    assert np.array_equal(counts_of(back), counts_of(votes))


@pytest.mark.parametrize("name", PREFLIB)
def test_preflib_files_to_other_formats_and_back(data_folder, tmp_path, name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        votes = permix.read(data_folder / name)
    for ending in (".blt", ".abif", ".csv"):
        if ending != ".csv" and not votes.arrays().rest_below.all():
            continue  # BLT and ABIF cannot say that others are unknown
        back = round_trip(votes, tmp_path, ending)
        order = [
            [str(item) for item in back.items].index(str(item))
            for item in votes.items
            if str(item) in map(str, back.items)
        ]
        kept = [at for at, item in enumerate(votes.items) if str(item) in set(map(str, back.items))]
        assert np.array_equal(counts_of(back)[np.ix_(order, order)], counts_of(votes)[np.ix_(kept, kept)])
        assert back.n_agents == votes.n_agents


def test_the_one_file_that_is_refused_says_why(data_folder):
    path = data_folder / "preflib-more" / "00063-00000001.cat"
    with pytest.raises(permix.errors.FileFormatError, match="header says"):
        permix.read(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert permix.read(path, strict=False).n_agents > 0
