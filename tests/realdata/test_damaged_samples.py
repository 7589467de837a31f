"""A hundred damaged copies of each sample: refused, or everything beside the damage is read as before.

Some lie in the first lines, where a table names its columns and a file its items; there other names are a
right reading, and ballots of the same shape are what counts. A few copies are tried in every run.
"""

from __future__ import annotations

import gzip
import re
import shutil
import warnings
from collections import Counter

import numpy as np
import pytest

import permix
from permix.errors import PermixError
from tests.data.io.test_damaged_copies import damaged
from tests.data.io.test_preflib_made import said

pytestmark = pytest.mark.realdata
LINE = r"(?m)^[^\n]+$"
SESSION = r'\{"TabulatorId".*?(?=,\{"TabulatorId"|\]\}\Z)'
RECORD = r'(?s)"CVRSnapshot".*?"CurrentSnapshotId" : "[^"]*"'
# The file that is damaged (of a folder one), what a ballot looks like in it, options, lines that are kept.
SAMPLES = {
    "dominion": ("ballots/dominion-alaska-2024/CvrExport_1735.json", SESSION, {"contest": "7"}, None),
    "hart": (
        "ballots/hart/1_1a0e576b-0b2d-474d-8d65-89c968b42262.xml",
        r"(?s).+",
        {"contest": "b651b997-417a-46d9-a676-a43d4df94ddc"},
        None,
    ),
    "nist": ("ballots/cdf/cdf_json_cvr.json", RECORD, {}, None),
    "clear-ballot": ("ballots/clear-ballot/kansas_primary.cvr.csv", LINE, {}, None),
    "votekit": ("ballots/csv/albany_profile.csv", LINE, {}, 200),
    "minneapolis": ("ballots/csv/minneapolis_2017_ward_9.csv.gz", LINE, {}, 200),
    "portland": ("ballots/csv/portland_oregon_2024_d1.csv.gz", LINE, {}, 200),
    "scottish": ("ballots/csv/scottish_sample.csv", LINE, {}, None),
    "ess": ("ballots/ess/2015_portland_maine_mayor_cvr.xlsx", LINE, {}, None),
    "polis-votes": ("polis/15-per-hour-seattle/votes.csv.gz", LINE, {}, 200),
    "polis-participants": ("polis/15-per-hour-seattle/participants-votes.csv", LINE, {}, 100),
    "soc": ("preflib/00006-00000003.soc", LINE, {}, None),
    "soi": ("preflib/00002-00000003.soi", LINE, {}, None),
    "toc": ("preflib/00003-00000001.toc", LINE, {}, None),
    "toi": ("preflib/00005-00000001.toi", LINE, {}, None),
    "cat": ("preflib-more/00069-00000018.cat", LINE, {}, None),
    "sushi": ("sushi/sushi3b.5000.10.order", LINE, {}, 100),
    "ranks": ("rank-small/ConsRank_Idea.csv", LINE, {}, None),
    "counts": ("rank-small/pmr_big4.csv", LINE, {}, None),
    "orders": ("rank-small/PLMIX_d_carconf.csv", LINE, {"layout": "orders"}, None),
}


def put(data_folder, folder, name):
    """Return what is read, the file to be damaged, the pattern of a ballot in it, and options."""
    inside, pattern, options, n_lines = SAMPLES[name]
    source = data_folder / inside
    if name in ("dominion", "hart"):
        shutil.copytree(source.parent, folder / "cvr")
        return folder / "cvr", folder / "cvr" / source.name, pattern, options
    if name == "ess":  # the sheet as CSV: that a damaged zip is refused says nothing of the reader
        pandas = pytest.importorskip("pandas")
        pytest.importorskip("openpyxl")
        text = pandas.read_excel(source, dtype=str, keep_default_na=False).to_csv(index=False)
    else:
        raw = source.read_bytes()
        text = (gzip.decompress(raw) if source.suffix == ".gz" else raw).decode("utf-8")
    path = folder / (source.name.removesuffix(".gz") if name != "ess" else "ess.csv")
    path.write_text("\n".join(text.split("\n")[:n_lines]) + "\n" if n_lines else text, encoding="utf-8")
    return path, path, pattern, options


def reading(path, options):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        votes = permix.read(path, **options)
    found: Counter[tuple[frozenset[str], ...]] = Counter()
    for levels, count in zip(said(votes), votes.counts.tolist(), strict=True):
        found[tuple(map(frozenset, levels))] += count
    return found, {str(warning.message) for warning in caught}


def shapes(found):
    counted: Counter[tuple[int, ...]] = Counter()
    for row, count in found.items():
        counted[tuple(map(len, row))] += count
    return counted


def look_at(data_folder, folder, name, n_copies):
    """Damage one ballot, or one of the first lines, after the other."""
    path, file, pattern, options = put(data_folder, folder, name)
    whole = file.read_text(encoding="utf-8")
    spans = [match.span() for match in re.finditer(pattern, whole)]
    before, warned = reading(path, options)
    most = 2 if name == "polis-votes" else 1  # a vote of another voter changes what two of them say
    rng = np.random.default_rng(11)
    refused = 0
    for copy in range(n_copies):
        first = pattern == LINE and copy % 3 == 0
        start, end = spans[int(rng.integers(min(14, len(spans)) if first else len(spans)))]
        new = damaged(whole[start:end], rng)
        file.write_text(whole[:start] + new + whole[end:], encoding="utf-8")
        try:
            after, told = reading(path, options)
        except (PermixError, OSError):
            refused += 1
            continue
        few = len(before - after) <= most and len(after - before) <= most
        assert few or shapes(before) == shapes(after) or told - warned, (whole[start:end][:200], new[:200])
    return refused


@pytest.mark.parametrize("name", SAMPLES)
def test_a_few_copies(data_folder, tmp_path, name):
    look_at(data_folder, tmp_path, name, 4)


@pytest.mark.slow
@pytest.mark.parametrize("name", SAMPLES)
def test_a_hundred_copies(data_folder, tmp_path, name):
    assert look_at(data_folder, tmp_path, name, 100) > 10


def test_a_rank_that_is_lost_is_caught(data_folder, tmp_path, monkeypatch):
    """The twin: a reader that passes over a rank whose name was damaged, as it once did."""
    from permix.data.io.ballots import rank_columns

    sample = SAMPLES["portland"]
    monkeypatch.setitem(SAMPLES, "portland", (sample[0], r"\A[^\n]+", *sample[2:]))
    monkeypatch.setattr(rank_columns, "_ask_about", lambda *args: None)
    monkeypatch.setattr(
        "tests.realdata.test_damaged_samples.damaged", lambda piece, rng: piece.replace("rank6", "rank")
    )
    with pytest.raises(AssertionError):
        look_at(data_folder, tmp_path, "portland", 1)
