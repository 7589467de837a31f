"""What ``consensus`` says beside the ranking: how the file was read, and whether people agree."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from permix.cli.app import build
from permix.consensus.agreement import median_majority


def consensus(file, *words: str) -> str:
    result = CliRunner().invoke(build(), ["consensus", str(file), *words], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.mark.parametrize(
    ("layout", "said"),
    [
        ("ranks", "a column for each item with its rank, 1 is the best"),
        ("ratings", "ratings from 1 to 3, the highest is the best"),
    ],
)
def test_how_the_file_was_read_is_one_line(tmp_path, layout, said):
    file = tmp_path / "votes.csv"
    rows = "".join(f"p{k},{1 + k % 3},{1 + (k + 1) % 3},{1 + (k + 2) % 3}\n" for k in range(9))
    file.write_text(f"who,tea,milk,cola\n{rows}")
    words = ("--layout", layout, "--agent-column", "who")
    line = f"Read as: {said}, over tea, milk and cola; who names the agents."
    assert consensus(file, *words).splitlines()[0] == line
    assert json.loads(consensus(file, *words, "--json"))["read_as"] == line


def test_columns_set_apart_are_named(tmp_path):
    file = tmp_path / "votes.csv"
    file.write_text("age,tea,milk\n" + "".join(f"{20 + k},{1 + k % 2},{2 - k % 2}\n" for k in range(9)))
    out = consensus(file, "--layout", "ranks", "--group-column", "age")
    assert out.startswith(
        "Read as: a column for each item with its rank, 1 is the best, over tea and milk; set apart: age."
    )


@pytest.mark.parametrize("share", [0.5, 0.9])
def test_people_who_disagree_are_said_to(tmp_path, share):
    file = tmp_path / "votes.csv"
    n = int(100 * share)
    file.write_text("pos1,pos2,pos3\n" + "tea,milk,cola\n" * n + "cola,milk,tea\n" * (100 - n))
    out, found = consensus(file), json.loads(consensus(file, "--json"))["median_majority"]
    assert found == pytest.approx(share)
    assert ("People disagree" in out) == ("permix fit mallows" in out) == (share == 0.5)


def test_median_majority_beside_plain_loops():
    counts = np.random.default_rng(0).integers(0, 9, (6, 6))
    shares = [
        max(counts[a, b], counts[b, a]) / (counts[a, b] + counts[b, a])
        for a in range(6)
        for b in range(a)
        if counts[a, b] + counts[b, a]
    ]
    assert median_majority(counts) == pytest.approx(np.median(shares))
    assert np.isnan(median_majority(np.zeros((3, 3), int)))
