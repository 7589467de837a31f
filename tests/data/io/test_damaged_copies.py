"""Damage in one ballot: the file is refused, or all other ballots are read as before.

A hundred copies of each format, each with some characters of one ballot changed, cut or doubled; twenty
of them in every run.
"""

from __future__ import annotations

import json
import re
import warnings
from collections import Counter

import numpy as np
import pytest

import permix
from permix.errors import PermixError
from tests.data.io.ballots import writers
from tests.data.io.ballots.test_formats import profile_of
from tests.data.io.test_preflib_made import said

ITEMS = ["Ann Lee", "Bo", "Cy", "Dora"]
ORDERS = [np.random.default_rng(seed).permutation(ITEMS)[: 2 + seed % 3].tolist() for seed in range(8)]
COUNTS = [3, 20, 4, 15, 6, 11, 2, 9]
CHARACTERS = list("0123456789:,;>=<{}[]()\"' -.xAB/|*")


# How each format is divided into what goes before the ballots, a piece for each ballot, and the rest.
DIVIDED = {
    "dominion": r'\{"TabulatorId".*?(?=, \{"TabulatorId"|\]\}\Z)',
    "cdf": r'\{"CVRSnapshot".*?(?=, \{"CVRSnapshot"|\], "Election")',
    "cdf_xml": r"<CVR>.*?</CVR>",
    "clear_ballot": r"(?m)^[0-9]+,B.*$",
    "dominion_csv": r"(?m)^[0-9]+,2,.*$",
    "votekit": r"(?m)^.*,&,1\.0,&$",
    "rank_columns": r"(?m)^[0-9]+,P.*$",
}


def ballots_file(name, folder):
    """Return the path that is read, the file that is damaged, and the pattern of a ballot in it."""
    path = next(w for w in (*writers.WHOLE, *writers.TABLES) if w.__name__ == name)(
        profile_of(8, ITEMS, n=8), ITEMS, folder
    )
    if name == "hart":
        return path, sorted(path.iterdir())[3], r"(?s).+"
    return path, sorted(path.glob("Cvr*"))[-1] if path.is_dir() else path, DIVIDED[name]


def polis():
    votes = [(voter, statement, (voter * statement) % 3 - 1) for voter in range(8) for statement in range(3)]
    rows = [f"{100 + at},x,{statement},{voter},{vote}" for at, (voter, statement, vote) in enumerate(votes)]
    return "timestamp,datetime,comment-id,voter-id,vote\n" + "\n".join(rows) + "\n"


def ranks():
    rng = np.random.default_rng(1)
    rows = [",".join([f"voter {k}", *map(str, 1 + rng.permutation(4))]) for k in range(8)]
    return f"voter,{','.join(ITEMS)}\n" + "\n".join(rows) + "\n"


def ward():
    """A Scottish ward: numbers of candidates, then their names."""
    lines = [
        f"{count},{','.join(str(ITEMS.index(name) + 1) for name in order)},"
        for order, count in zip(ORDERS, COUNTS, strict=True)
    ]
    names = [f'"Candidate {at}","{name}","Party (P)",' for at, name in enumerate(ITEMS, start=1)]
    return "\n".join(["4,1,", *lines, *names, '"Old Town",']) + "\n"


def records():
    rows = [
        {"voter": at, **{f"rank{k}": name for k, name in enumerate(order, 1)}}
        for at, order in enumerate(ORDERS)
    ]
    return "\n".join(map(json.dumps, rows)) + "\n"


def battles():
    """Each judge compares two pairs; the winner is a side."""
    rows = [
        f"{ITEMS[at % 4]},{ITEMS[(at + 1) % 4]},model_{'ab'[at % 3 % 2]},judge {at // 2}" for at in range(16)
    ]
    return "model_a,model_b,winner,judge\n" + "\n".join(rows) + "\n"


def tasks():
    triples = [np.random.default_rng(seed).permutation(ITEMS)[:3].tolist() for seed in range(8)]
    rows = [f"{at},1,{','.join(order)},{order[0]},{order[1]}" for at, order in enumerate(triples)]
    return "respondent,task,item1,item2,item3,best,worst\n" + "\n".join(rows) + "\n"


def ratings():
    rows = [f"{voter},{name},{(voter * at) % 5 + 1}" for voter in range(8) for at, name in enumerate(ITEMS)]
    return "voter,item,rating\n" + "\n".join(rows) + "\n"


def blt():
    rows = [f"{n} {' '.join(str(ITEMS.index(name) + 1) for name in order)} 0" for order, n in VOTED]
    return "\n".join(["4 1", *rows, "0", *(f'"{name}"' for name in ITEMS), '"Town"']) + "\n"


VOTED = list(zip(ORDERS, COUNTS, strict=True))
TEXTS = {
    "x.abif": (
        "".join(f"{n}:{'>'.join(f'[{name}]' for name in order)}\n" for order, n in VOTED),
        r"(?m)^[0-9]+:.*$",
    ),
    "x.cvotes": ("".join(f"{' > '.join(order)} * {n}\n" for order, n in VOTED), r"(?m)^.+$"),
    "civs.txt": ("".join(f"{n}X {' > '.join(order)}\n" for order, n in VOTED), r"(?m)^.+$"),
    "ward.csv": (ward(), r"(?m)^[0-9]+,[1-4],.*,$"),
    "votes.csv": (polis(), r"(?m)^[0-9]+,x,.*$"),
    "battles.csv": (battles(), r"(?m)^.*,judge [0-9]$"),
    "tasks.csv": (tasks(), r"(?m)^[0-9],1,.*$"),
    "ratings.csv": (ratings(), r"(?m)^[0-9],.*,[0-9]$"),
    "town.blt": (blt(), r"(?m)^[0-9]+ [1-4 ]+ 0$"),
    "ranks.csv": (ranks(), r"(?m)^voter [0-9].*$"),
    "records.jsonl": (records(), r"(?m)^.+$"),
    "cells.csv": (
        "id,ranking\n" + "".join(f"{at},{'>'.join(order)}\n" for at, order in enumerate(ORDERS)),
        r"(?m)^[0-9].*$",
    ),
    "orders.csv": (
        "voter,pos1,pos2,pos3,pos4\n"
        + "".join(f"{at},{','.join([*order, '', ''][:4])}\n" for at, order in enumerate(ORDERS)),
        r"(?m)^[0-9].*$",
    ),
}


def read_rows(path, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        votes = permix.read(path, **options)
    if not isinstance(votes, permix.Rankings) and len(votes.pairs):  # comparisons
        names = np.array([str(item) for item in votes.items], dtype=object)
        pairs = np.split(names[votes.pairs], votes.pair_indptr[1:-1])
        return Counter(tuple(sorted(map(tuple, each.tolist()))) for each in pairs)
    rows = [tuple(map(frozenset, levels)) for levels in said(votes)]
    found: Counter[tuple[frozenset[str], ...]] = Counter()
    for row, count in zip(rows, votes.counts.tolist(), strict=True):
        found[row] += count
    return found


def damaged(piece, rng):
    at, length = int(rng.integers(len(piece))), int(rng.integers(1, 8))
    how = rng.integers(3)
    new = (
        "".join(rng.choice(CHARACTERS, length))
        if how == 0
        else ""
        if how == 1
        else piece[at : at + length] * 2
    )
    return piece[:at] + new + piece[at + length :]


def look_at_copies(path, file, pattern, options, seed, most=1, n_copies=100):
    """Damage one ballot after another; ``most`` rows may be others than before."""
    whole = file.read_text(encoding="utf-8")
    spans = [match.span() for match in re.finditer(pattern, whole)]
    assert spans
    before = read_rows(path, **options)
    rng = np.random.default_rng(seed)
    refused = 0
    for copy in range(n_copies):
        start, end = spans[copy % len(spans)]
        file.write_text(whole[:start] + damaged(whole[start:end], rng) + whole[end:], encoding="utf-8")
        try:
            after = read_rows(path, **options)
        except (PermixError, OSError):
            refused += 1
            continue
        lost = before - after
        assert len(lost) <= most, (file.read_text(encoding="utf-8")[start : end + 20], lost)
        gained = after - before
        assert len(gained) <= most, (file.read_text(encoding="utf-8")[start : end + 20], gained)
    assert refused > n_copies // 10


COPIES = [20, pytest.param(100, marks=pytest.mark.slow)]
# Where a line is a part of what somebody says: with the name of another voter, two say something else.
SHARED = ("votes.csv", "battles.csv", "ratings.csv")


@pytest.mark.parametrize("n_copies", COPIES)
@pytest.mark.parametrize("name", [*DIVIDED, "hart"])
def test_formats_of_ballots(name, n_copies, tmp_path):
    path, file, pattern = ballots_file(name, tmp_path)
    options = {"contest": "Mayor"} if path.is_dir() or name == "dominion_csv" else {}
    look_at_copies(path, file, pattern, options, seed=3, n_copies=n_copies)


@pytest.mark.parametrize("n_copies", COPIES)
@pytest.mark.parametrize("name", TEXTS)
def test_texts_and_tables(name, n_copies, tmp_path):
    text, pattern = TEXTS[name]
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    look_at_copies(path, path, pattern, {}, seed=4, most=2 if name in SHARED else 1, n_copies=n_copies)


def test_a_reader_that_touches_other_ballots_is_caught(tmp_path, monkeypatch):
    """The twin: damage that changes what all ballots say does not pass."""
    text, pattern = TEXTS["orders.csv"]
    path = tmp_path / "orders.csv"
    path.write_text(text, encoding="utf-8")
    read = permix.read
    whole = read(path)

    def shifted(path, **options):
        found = read(path, **options)
        return found if found == whole else found[: len(found) - 3]

    monkeypatch.setattr(permix, "read", shifted)
    with pytest.raises(AssertionError):
        look_at_copies(path, path, pattern, {}, seed=4)


def test_sheets_are_refused_or_read_as_before(tmp_path):
    """A sheet is packed with sums that tell damage."""
    path = writers.spreadsheet(profile_of(8, ITEMS, n=8), ITEMS, tmp_path)
    whole, before = path.read_bytes(), read_rows(path)
    rng = np.random.default_rng(5)
    refused = 0
    for _ in range(100):
        at = int(rng.integers(len(whole)))
        path.write_bytes(whole[:at] + bytes(rng.integers(0, 256, 4, dtype=np.uint8)) + whole[at + 4 :])
        try:
            assert read_rows(path) == before
        except (PermixError, OSError):
            refused += 1
    assert refused > 20
