"""Lines of a file that are no respondents: second names of columns, totals, averages, notes."""

from __future__ import annotations

import pytest

import permix
from permix.data.io.frames import read_frame
from permix.errors import PermixWarning

ROWS = "".join(f"E{i},{i % 3 + 1},{(i + 1) % 3 + 1},{(i + 2) % 3 + 1}\n" for i in range(18))


def test_second_and_third_names_of_qualtrics_are_no_rows_of_numbers(tmp_path):
    path = tmp_path / "q.csv"
    lines = [
        "ResponseId,Q4_1,Q4_2",
        "Response ID,How satisfied - Price,How satisfied - Taste",
        '"{""ImportId"":""_recordId""}","{""ImportId"":""QID4_1""}","{""ImportId"":""QID4_2""}"',
        *("R1,4,5", "R2,2,1", "R3,3,3"),
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    with pytest.warns(PermixWarning, match="lines 1 to 3 together name the columns"):
        frame = read_frame(path)
    assert frame.iloc[:, 1].tolist() == [4, 2, 3]
    assert list(frame)[1:] == ["How satisfied [Price]", "How satisfied [Taste]"]


@pytest.mark.parametrize(
    "end",
    [
        "Average,2.1,2.0,1.9\nNote: 1 = best,,,\n",
        "\nAverage,2.1,2.0,1.9\nNote: 1 = best,,,\n",
        "AVERAGE:,2.1,2.0,1.9\n",
        "Overall rank,1,2,3\n",
        "Mean score,2.1,2.0,1.9\n",
        "N,18,18,18\n",
    ],
)
def test_lines_that_sum_up_are_nobody(tmp_path, end):
    path = tmp_path / "x.csv"
    path.write_text("Name,A,B,C\n" + ROWS + end, encoding="utf-8")
    with pytest.warns(PermixWarning, match="left out"):
        frame = read_frame(path)
    assert len(frame) == 18
    assert all(frame[name].dtype.kind == "i" for name in "ABC")
    with pytest.warns(PermixWarning, match="left out"):
        assert permix.read(path, layout="ranks").n_agents == 18


def test_somebody_called_n_is_a_person(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("Name,A,B,C\n" + ROWS + "N,1,2,3\n", encoding="utf-8")
    assert permix.read(path, layout="ranks").n_agents == 19


NOTES = [
    *("N=120", "n = 3", "Base: all respondents", "END", "* preliminary", "† without late answers"),
    *("Data source: city clerk", "Total responses: 3", "3 responses", "Sample size: 3"),
]
BALLOTS = {
    "one.csv": ("ranking\nA>B>C\nB>A>C\nC>A>B\n", {}),
    "lists.txt": ("A>B>C\nB>A>C\nC>A>B\n", {}),
    "ranks.csv": ("rank1,rank2,rank3\nA,B,C\nB,A,C\nC,A,B\n", {}),
    "precincts.csv": ("precinct,rank1,rank2,rank3\nP1,A,B,C\nP2,B,A,C\nP1,C,A,B\n", {}),
    "ragged.csv": ("A,B,C\nB,A,C\nC,A\n", {"layout": "orders", "header": False}),
}


@pytest.mark.parametrize("note", NOTES)
@pytest.mark.parametrize("name", BALLOTS)
def test_notes_below_are_no_candidates(tmp_path, name, note):
    text, options = BALLOTS[name]
    path = tmp_path / name
    path.write_text(f"{text}{note}\n", encoding="utf-8")
    with pytest.warns(PermixWarning) as told:
        votes = permix.read(path, **options)
    assert sorted(votes.items) == ["A", "B", "C"]
    assert votes.n_agents == 3
    assert sum("left out" in str(each.message) for each in told) == 1  # said once


@pytest.mark.parametrize("ballot", ["N", "Base", "Endive", "Notes", "Star*", "3 Doors"])
def test_a_last_vote_for_one_that_is_called_like_a_note_counts(tmp_path, ballot):
    path = tmp_path / "one.csv"
    path.write_text(f"rank1,rank2\nA,B\nB,A\n{ballot},\n", encoding="utf-8")
    assert permix.read(path).n_agents == 3


LONE = ["Confidential", "Weighted by age and gender", "Report generated 2024-05-01"]


@pytest.mark.parametrize("note", LONE)
@pytest.mark.parametrize("name", [name for name in BALLOTS if name != "ragged.csv"])
def test_a_last_line_that_stands_alone_is_said(tmp_path, name, note):
    text, options = BALLOTS[name]
    path = tmp_path / name
    path.write_text(text + note + "," * text.partition("\n")[0].count(",") + "\n", encoding="utf-8")
    with pytest.warns(PermixWarning, match=rf"line [45] holds '{note}' alone, which stands nowhere else"):
        permix.read(path, **options)


def test_last_votes_for_one_alone_are_silent_where_others_are(tmp_path, recwarn):
    path = tmp_path / "x.csv"
    path.write_text("rank1,rank2\nA,B\nB,A\nC,\nA,B\nDora,\n", encoding="utf-8")
    assert permix.read(path).n_agents == 5
    assert not recwarn.list


@pytest.mark.parametrize("end", ["N,120,", "Base,5,5", "Respondents,5,"])
def test_numbers_below_names_are_a_line_of_totals(tmp_path, end):
    path = tmp_path / "x.csv"
    path.write_text(f"rank1,rank2,rank3\nA,B,C\nB,A,C\nC,B,A\nC,A,B\n{end}\n", encoding="utf-8")
    with pytest.warns(PermixWarning, match=r"line 6 .* is taken for a line of totals and left out"):
        assert permix.read(path).n_agents == 4
    text = "rank1,rank2,rank3\nA,B,7\nB,7,C\nC,B,7\nC,7,B\nN,7,A\n"  # an item called by a number
    path.write_text(text, encoding="utf-8")
    assert permix.read(path).n_agents == 5
