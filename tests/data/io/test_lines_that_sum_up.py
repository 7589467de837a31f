"""Lines of means, deviations, winners and totals that are no agents, and agents that look like such lines."""

import re
import warnings

import numpy as np
import pytest

import permix
from permix.errors import DataError, PermixWarning

RATED = "taster,Ann,Bo,Cy\n1,5,2,3\n2,2,1,3\n3,1,3,2\n"


def rated(tmp_path, last, first="", text=RATED, layout="ratings"):
    path = tmp_path / "x.csv"
    head, body = text.split("\n", 1)
    path.write_text(f"{head}\n{first}{body}{last}")
    return permix.read(path, layout=layout)


@pytest.mark.parametrize(
    "last",
    [
        "StdDev,2.08,1,0.58\n",
        "Class average,2.67,2,2.67\n",
        "Average,2.67,2,2.67\nStd. dev.,2.08,1,0.58\n",
        "SD,2.08,1,0.58\nMax,5,3,3\nMin,1,1,2\n",
        "Variance,4.33,1,0.33\n",
        ",2.67,2.00,2.67\n",
    ],
)
def test_statistics_of_all_lines_above_are_no_agents(tmp_path, last):
    with pytest.warns(PermixWarning, match="totals and left out"):
        assert rated(tmp_path, last).n_agents == 3


def test_a_maximum_above_the_ratings_is_no_agent(tmp_path):
    with pytest.warns(PermixWarning, match="line 2 .'max 5 5 5'. is taken for a line of totals"):
        assert rated(tmp_path, "", "max,5,5,5\n").n_agents == 3


def test_statistics_are_known_by_their_numbers_where_agents_have_names(tmp_path):
    rng = np.random.default_rng(1)
    values = rng.integers(1, 10, (9, 4))
    lines = "".join(
        f"{name},{','.join(map(str, row))}\n" for name, row in zip("ABCDEFGHI", values, strict=True)
    )
    head = "Judge,w,x,y,z\n"
    for name, row in {
        "Mittel": values.mean(axis=0),
        "Streuung": values.std(axis=0, ddof=1),
        "s.d.": values.std(axis=0),
    }.items():
        said = ",".join(f"{each:.2f}" for each in row)
        with pytest.warns(PermixWarning, match="totals and left out"):
            assert rated(tmp_path, f"{name},{said}\n", text=head + lines).n_agents == 9
        # Its twin is off by more than rounding: an agent like any other.
        off = ",".join(f"{each + 0.02:.2f}" for each in row)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert rated(tmp_path, f"{name},{off}\n", text=head + lines).n_agents == 10
    # Max may be a person, unless the numbers are the largest.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert rated(tmp_path, "Max,5,5,5,1\n", text=head + lines).n_agents == 10
        largest = ",".join(map(str, values.max(axis=0)))
        assert rated(tmp_path, f"Zoe,{largest}\n", text=head + lines).n_agents == 10
    with pytest.warns(PermixWarning, match="totals and left out"):
        assert rated(tmp_path, f"Max,{largest}\n", text=head + lines).n_agents == 9


@pytest.mark.parametrize(
    "last", ["Winner,Ann,,\n", "Elected:,Ann,,\n", "Result,Ann,Bo,Cy\n", "Weight,Bo,Cy,Ann\n"]
)
def test_a_word_below_numbered_ballots_is_asked_about(tmp_path, last):
    path = tmp_path / "x.csv"
    path.write_text(f"voter,rank1,rank2,rank3\n1,Ann,Bo,Cy\n2,Bo,Ann,Cy\n3,Ann,Cy,Bo\n{last}")
    word = re.escape(last.split(",")[0])
    with pytest.raises(DataError, match=f"line 5: '{word}' stands in column 'voter', where all other lines"):
        permix.read(path)
    path.write_text(path.read_text().replace(last.split(",")[0], "4"))
    assert permix.read(path).n_agents == 4


def test_places_below_ranks_are_asked_about(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("voter,Ann,Bo,Cy\n1,1,2,3\n2,2,1,3\n3,3,1,2\nFinal rank,1,2,3\nPlace,2,1,3\n")
    with pytest.raises(DataError, match="line 6: 'Place' stands in column 'voter'"):
        permix.read(path)
    # Under names the same is said: somebody may be called so.
    path.write_text("voter,Ann,Bo,Cy\nUte,1,2,3\nVal,2,1,3\nWim,3,1,2\nPlace,2,1,3\n")
    with pytest.warns(PermixWarning, match="line 5 is called 'Place', as a line of results is"):
        assert permix.read(path).n_agents == 4


def test_statistics_of_items_one_a_line_are_no_agents(tmp_path):
    path = tmp_path / "x.csv"
    lines = "user,item,rating\n1,a,5\n1,b,3\n2,a,4\n2,b,2\n"
    for last in ("Average,a,4.5\nAverage,b,2.5\n", "StdDev,a,0.7\nStdDev,b,0.7\nMean,a,4.5\nMean,b,2.5\n"):
        path.write_text(lines + last)
        with pytest.warns(PermixWarning, match="taken for lines of totals"):
            assert permix.read(path).n_agents == 2


def test_statistics_below_a_matrix_are_no_row(tmp_path):
    path = tmp_path / "x.csv"
    values = np.random.default_rng(2).integers(1, 6, (30, 4))
    body = "".join(f"{100 + at},{','.join(map(str, row))}\n" for at, row in enumerate(values))
    path.write_text(f"id,a,b,c,d\n{body}StdDev,1.21,1.21,1.21,1.21\n")
    with pytest.warns(PermixWarning, match="a line of totals and left out"):
        assert permix.read_cells(path).shape == (30, 4)
