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
