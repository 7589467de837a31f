"""What the command line says about how it read a file."""

from __future__ import annotations

import json
import zipfile

import numpy as np
import pytest

POLIS = """# FILE NAME: x.cat
# DATA TYPE: cat
# NUMBER ALTERNATIVES: 2
# NUMBER VOTERS: 3
# NUMBER CATEGORIES: 3
# CATEGORY NAME 0: {}
# CATEGORY NAME 1: {}
# CATEGORY NAME 2: {}
# ALTERNATIVE NAME 0: tea
# ALTERNATIVE NAME 1: milk
2: 0,{{}},1
1: {{}},1,0
"""


@pytest.fixture
def polis(tmp_path):
    def write(*names):
        path = tmp_path / "x.cat"
        path.write_text(POLIS.format(*names))
        return path

    return write


def test_info_shows_categories_and_direction(run, polis):
    file = polis("Disapproved", "Neutral/Skipped", "Approved")
    code, out, err = run("info", file)
    assert code == 0
    assert "warning" in err
    assert "Approved, Neutral/Skipped, Disapproved" in out
    assert "worst first" in out
    facts = json.loads(run("info", file, "--json")[1])
    assert facts["categories_best_first"] == ["Approved", "Neutral/Skipped", "Disapproved"]
    assert facts["first_choices"] == {"tea": 1, "milk": 2}
    code, out, err = run("info", file, "--categories", "best-first", "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["first_choices"] == {"tea": 2, "milk": 1}  # the twin: the order of the file


def test_categories_are_asked_for(run, polis):
    file = polis("Non", "Bof", "Oui")
    code, _, err = run("info", file)
    assert code == 1
    assert "'Non', 'Bof', 'Oui'" in err
    assert "--categories best-first or --categories worst-first" in err
    facts = json.loads(run("info", file, "--categories", "Oui, Bof, Non", "--json")[1])
    assert facts["first_choices"] == {"tea": 1, "milk": 2}
    assert run("info", file, "--categories", "Oui,Non")[0] == 1


def test_convert_says_what_ratings_mean(run, polis, tmp_path):
    target = tmp_path / "y.csv"
    file = polis("Disapproved", "Neutral", "Approved")
    code, out, _ = run("convert", file, target, "--to-layout", "ratings")
    assert code == 0
    assert "ratings: 3 = Approved, 2 = Neutral, 1 = Disapproved" in out
    rows = target.read_text().splitlines()[1:]
    assert sorted(rows) == ["1,milk,3,2", "1,tea,1,2", "2,milk,2,1", "2,tea,3,1"]


def test_votes_without_a_header_or_with_a_precinct(run, tmp_path):
    numbers = tmp_path / "numbers.csv"
    numbers.write_text("1,2,3\n2,3,1\n3,1,2\n")
    code, _, err = run("info", numbers, "--layout", "orders")
    assert code == 1
    assert "say --header or --no-header" in err
    for option, agents in (("--header", 2), ("--no-header", 3)):
        out = run("info", numbers, "--layout", "orders", option, "--json")[1]
        assert json.loads(out)["agents"] == agents
    ballots = tmp_path / "ballots.csv"
    ballots.write_text("Precinct,rank1,rank2\nP1,tea,milk\nP2,milk,tea\n")
    code, _, err = run("consensus", ballots, "--layout", "orders")
    assert code == 1
    assert "--ignore Precinct" in err
    out = run("info", ballots, "--layout", "orders", "--ignore", "Precinct", "--json")[1]
    assert json.loads(out)["items"] == ["tea", "milk"]


def test_a_table_without_a_header_keeps_its_first_row(run, tmp_path):
    rows = np.random.default_rng(0).normal(size=(30, 2)).round(3)
    data, fit = tmp_path / "rows.csv", tmp_path / "rows.permix"
    np.savetxt(data, rows, delimiter=",", fmt="%.3f")
    quick = ("--draws", 5, "--burn-in", 5, "--chains", 1, "-q", "--json")
    code, out, err = run("fit", "dp-mixture", data, "-o", fit, *quick)
    assert code == 0
    assert "no line names the columns" in err
    assert json.loads(out)["observations"] == 30
    code, out, err = run("predict", fit, data, "--no-header", "--json")
    assert (code, err) == (0, "")
    assert len(json.loads(out)["rows"]) == 30


# -- standard input, matrices, sheets ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "title"),
    [
        ("3:A>B\n1:B>A\n", "ABIF"),
        (
            "# FILE NAME: x\n# DATA TYPE: soc\n# ALTERNATIVE NAME 1: a\n# ALTERNATIVE NAME 2: b\n4: 1,2\n",
            "PrefLib",
        ),
        ("pos1,pos2,count\na,b,3\nb,a,1\n", "Table"),
        ('{"better": "a", "worse": "b", "agent": 1}\n', "Table"),
    ],
)
def test_standard_input(run, monkeypatch, content, title):
    import io
    import sys
    from types import SimpleNamespace

    fake = SimpleNamespace(buffer=io.BytesIO(content.encode()), isatty=lambda: False)
    monkeypatch.setattr(sys, "stdin", fake)
    code, out, err = run("info", "-", "--json")
    assert code == 0, err
    facts = json.loads(out)
    assert facts["format"].startswith(title)
    assert facts["number_of_items"] == 2
    fake.buffer = io.BytesIO(b" ")
    assert "standard input is empty" in run("info", "-")[2]


def test_info_describes_matrices(run, tmp_path):
    votes = tmp_path / "votes.csv"
    lines = [f"{k},{k % 4},{k // 4},{(k % 3) - 1}" for k in range(30)]
    votes.write_text("timestamp,comment-id,voter-id,vote\n" + "\n".join(lines) + "\n")
    facts = json.loads(run("info", votes, "--json")[1])
    assert (facts["kind"], facts["rows"], facts["columns"], facts["cells"]) == ("matrix", 8, 4, 30)
    assert facts["levels"] == {"agree": 10, "disagree": 10, "pass": 10}
    assert facts["rows_with_fewer_than_5_cells"] == 8
    assert facts["share_of_cells_present"] == 30 / 32
    wide = tmp_path / "answers.csv"
    wide.write_text("q1,q2\n" + "\n".join(f"{k % 7},{k % 5 - 1}" for k in range(40)) + "\n")
    code, out, _ = run("info", wide)
    assert (code, "a table of 40 rows and 2 columns" in out) == (0, True)
    assert f"permix fit dp-mixture {wide} -o groups.permix" in out
    assert "--layout wide" in out
    facts = json.loads(run("info", wide, "--as", "any", "--json")[1])
    assert (facts["kind"], facts["recognized_by"].split(";")[0]) == ("matrix", "all columns are on one scale")
    facts = json.loads(run("info", wide, "--layout", "wide", "--missing", "-1", "--json")[1])
    assert facts["cells"] == 72
    out = run("info", wide, "--layout", "wide")[1]
    assert "Levels" in out
    assert f"{wide} --layout wide -o groups.permix finds" in out


@pytest.mark.parametrize(
    ("title", "names", "kind"),
    [
        ("id", [f"u{k}" for k in range(30)], "matrix"),  # of the rows
        ("color", ["red", "green"] * 15, "table"),  # a column of its own
    ],
)
def test_names_of_rows_are_no_measurements(run, tmp_path, title, names, kind):
    """``compare`` and ``fit auto`` ended with a traceback: 'u0' is no number."""
    wide = tmp_path / "answers.csv"
    # Many a five, and cells that are empty: no ranks.
    cells = [
        [("5", "5", "2", "5", "", "3")[(3 * k + k * j + j * j) % 6] for j in range(8)] for k in range(30)
    ]
    lines = [",".join([name, *row]) for name, row in zip(names, cells, strict=True)]
    wide.write_text("\n".join([f"{title}," + ",".join(f"f{j}" for j in range(8)), *lines]) + "\n")
    code, out, err = run("info", wide, "--as", "any", "--json")
    assert code == 0, err
    assert json.loads(out)["kind"] == kind


def test_what_was_recognized_and_why(run, tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("model_a,model_b,winner,judge\nx,y,model_a,1\ny,x,tie,2\n")
    code, out, _ = run("info", path)
    assert code == 0
    assert "the ending .csv, columns called winner, judge" in out
    assert "ties" in out
    assert run("info", path, "--ties", "error")[0] == 1
    assert "x" in run("consensus", path)[1]
    code, _, err = run("convert", path, tmp_path / "y.abif")
    assert (code, "pairwise statements" in err) == (1, True)


def test_info_describes_tables_that_hold_no_votes(run, tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("height,town\n" + "".join(f"{160 + k / 7:.2f},{'AB'[k % 2]}\n" for k in range(30)))
    facts = json.loads(run("info", path, "--json")[1])
    assert (facts["kind"], facts["rows"]) == ("table", 30)
    assert [column["read_as"] for column in facts["column_facts"]] == ["number", "category"]
    assert "does not look like rankings" in facts["not_votes_because"]
    assert run("info", path, "--layout", "ranks")[0] == 1


def test_info_describes_comparisons_that_contradict_each_other(run, tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("judge,model_a,model_b,winner\n1,x,y,x\n1,y,z,y\n1,z,x,z\n2,x,y,y\n")
    facts = json.loads(run("info", path, "--json")[1])
    assert (facts["agents"], facts["agents_who_contradict_themselves"], facts["comparisons"]) == (2, 1, 4)
    assert run("info", path, "--on-cycle", "error")[0] == 1
    assert json.loads(run("info", path, "--on-cycle", "drop", "--json")[1])["agents"] == 1


def test_rows_with_a_count_say_what_they_say_for_each_agent(run, tmp_path):
    path = tmp_path / "x.abif"
    path.write_text("10:A=B>C\n5:C\n")
    assert json.loads(run("info", path, "--json")[1])["ratings_or_ranks_given"] == 35


def test_a_conversation_has_a_consensus(run, tmp_path):
    votes = tmp_path / "votes.csv"
    lines = [f"{k},{k % 3},{k // 3},{(1, 0, -1)[k % 3]}" for k in range(30)]
    votes.write_text("timestamp,comment-id,voter-id,vote\n" + "\n".join(lines) + "\n")
    (tmp_path / "comments.csv").write_text("comment-id,comment-body\n0,More buses\n1,Trams\n2,Tolls\n")
    code, out, err = run("consensus", votes)
    assert code == 0, err
    assert out.index("0: More buses") < out.index("1: Trams") < out.index("2: Tolls")
    assert "agreed with are above those passed" in out
    code, _, err = run("consensus", votes, "--ties", "both")
    assert (code, "says nothing about a Polis conversation" in err) == (2, True)


def test_a_zip_of_something_else(run, tmp_path):
    path = tmp_path / "export.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("votes.csv", "rank1,rank2\nAnn,Bo\n")
    code, _, err = run("info", path)
    assert code == 1
    assert "unzip -p" in " ".join(err.split())


def test_a_terminal_is_told_nothing_by_names(run, tmp_path):
    """Names with control characters, or that turn text around, are shown with escapes."""
    path = tmp_path / "x.csv"
    path.write_text(
        "Precinct,rank1,rank2\nN,\x1b[31mAnn,Bo\nN,Bo,Al\x07ice\nN,\u202eCy,Bo\n", encoding="utf-8"
    )
    for arguments in (("info", path), ("consensus", path)):
        code, out, err = run(*arguments)
        assert code == 0
        assert not {"\x1b", "\x07", "\u202e"} & set(out + err)
        assert "\\x1b[31mAnn" in out
        assert "\\u202eCy" in out


def test_a_warning_is_written_once(run, tmp_path):
    """Files are looked at more than once to find what they hold."""
    path = tmp_path / "x.csv"
    path.write_bytes("voter,rank1,rank2\n1,M\xfcller,Bo\n2,Bo,M\xfcller\n".encode("latin-1"))
    assert run("info", path)[2].count("not UTF-8") == 1


def test_options_that_are_named_can_be_copied(run, tmp_path):
    """A # would have begun a comment, and a list was written as Python writes it."""
    path = tmp_path / "x.csv"
    path.write_text("# of people,first,second\n40,A,B\n35,B,A\n")
    assert "--group-column '# of people'" in run("info", path)[2]
    path.write_text("precinct,rank1,rank2,share of all\nN,A,B,40\nS,B,A,35\n")
    assert "--group-column 'share of all'" in run("info", path)[2]


def test_info_lists_contests_and_says_what_to_do_where_they_are_none(run, tmp_path):
    file = tmp_path / "x.csv"
    file.write_text("Race,rank1,rank2\nw,a,b\nw,b,a\nb,x,y\nb,y,x\n")
    _, out, err = run("info", file)
    assert "2 contests; say which with --contest" in out
    assert "If column 'Race' says something of the agents, say --group-column Race" in err
    assert "4 agents" in run("consensus", file, "--ignore", "Race")[1]
