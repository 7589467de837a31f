"""``permix report`` and ``fit --report``."""

from __future__ import annotations

import html
import json

import pytest

from permix.estimators.archive import read_about

VOTES = (
    "precinct,rank1,rank2,rank3\n" + "A,Ann,Bo,Cy\nB,Cy,Bo,Ann\nB,Cy,overvote,Ann\nA,Ann,Cy,skipped\n" * 10
)


@pytest.fixture
def files(run, tmp_path):
    votes, fit, page = (tmp_path / name for name in ("votes.csv", "f.permix", "r.html"))
    votes.write_text(VOTES)
    command = ("fit", "mallows", votes, "-k", 2, "--starts", 3, "--group-column", "precinct", "-o", fit)
    code, out, err = run(*command, "--report", page, "--quiet")
    assert code == 0, err
    return votes, fit, page, out


def test_the_answer_is_the_same_in_the_terminal_and_in_the_report(run, files, tmp_path):
    _votes, fit, page, out = files
    assert out.startswith("Can you trust this? ")
    text = page.read_text(encoding="utf-8")
    report = json.loads(run("summary", fit, "--json")[1])["answer"]
    for sentence in (*report["sentences"], report["trust"]["headline"], *report["trust"]["reasons"]):
        assert sentence in out
        assert html.escape(sentence, quote=False) in text
    assert any(
        sentence.startswith("By precinct, group 1 has its largest share in A (")
        for sentence in report["sentences"]
    )
    assert run("summary", fit)[1] == out


def test_files_keep_how_the_fit_came_about(run, files):
    votes, fit, page, _ = files
    about = read_about(fit)
    told = {row["what"]: row["value"] for row in about["run"]}
    assert told["command"] == f"permix fit mallows {votes} --groups 2 --starts 3 --group-column precinct"
    assert told["data"] == "votes.csv"
    assert {"permix", "Python", "numpy"} <= set(told)
    assert next(row["agents"] for row in about["typical"] if row["group"] == 1) >= 10
    text = page.read_text(encoding="utf-8")
    assert f"{told['command']} -o {fit}" in text
    assert "The most frequent ballots of group 1" in text
    assert "overvotes" in text
    assert "The model reproduces" in text or "The model does not reproduce" in text


def test_reports_of_saved_fits(run, files, tmp_path):
    votes, fit, _page, _ = files
    other = tmp_path / "other.html"
    assert run("report", fit, "-o", other)[0] == 0
    text = other.read_text(encoding="utf-8")
    assert "The most frequent ballots of group 1" in text
    assert "Checked when it was fitted" in text
    assert run("report", fit, "-o", other)[0] == 1  # it exists
    code, _, err = run("report", fit, votes, "--group-column", "precinct", "-o", other, "--force")
    assert code == 0, err
    assert "Not checked" not in other.read_text(encoding="utf-8")
    code, out, _ = run("report", fit, "--no-checks", "--title", "Who *won*?")
    assert code == 0
    assert out.startswith("# Who \\*won\\*?\n")
    told = json.loads(run("report", fit, "--format", "json")[1])
    assert [section["key"] for section in told["sections"]][:3] == ["answer", "trust", "groups"]


def test_refusals(run, files, points, tmp_path):
    votes, fit, *_ = files
    assert run("report", fit, "-o", tmp_path / "r.pdf")[0] == 2
    code, _, err = run("report", votes, "-o", tmp_path / "x.html")
    assert code == 1
    assert "permix fit" in err
    table = tmp_path / "p.permix"
    short = ("--draws", 10, "--burn-in", 5, "--quiet")
    assert run("fit", "dp-mixture", points, "--id", "name", "-o", table, *short)[0] == 0
    code, _, err = run("report", table, points, "-o", tmp_path / "x.html")
    assert code == 2
    assert "keeps its data" in err.replace("\n", " ").replace("│", "")
    assert run("fit", "mallows", votes, "-k", 1, "-o", tmp_path / "g.permix", "--report", "x.pdf")[0] == 2


@pytest.mark.parametrize("model", ["kde", "mean-shift", "angle", "dp-mallows"])
def test_every_model_of_votes_writes_its_report_with_the_fit(run, tmp_path, model):
    votes, page = tmp_path / "votes.csv", tmp_path / "r.html"
    votes.write_text(VOTES)
    more = {"angle": ("-k", 2), "dp-mallows": ("--draws", 20, "--burn-in", 10)}.get(model, ())
    command = ("fit", model, votes, *more, "-o", tmp_path / "f.permix", "--quiet")
    code, _out, err = run(*command, "--report", page)
    assert code == 0, err
    text = page.read_text(encoding="utf-8")
    assert "Can you trust this?" in text
    assert "(no name)" not in text


def test_fits_that_keep_their_data_refuse_others(run, tmp_path):
    votes, fit = tmp_path / "votes.csv", tmp_path / "f.permix"
    votes.write_text(VOTES)
    assert run("fit", "kde", votes, "-o", fit, "--quiet")[0] == 0
    code, _out, err = run("report", fit, votes)
    assert code == 2
    assert "keeps its data" in err


def test_why_there_are_so_many_groups_is_said_alike_everywhere(run, tmp_path):
    votes, fit, page = (tmp_path / name for name in ("votes.csv", "f.permix", "r.html"))
    votes.write_text(VOTES)
    command = ("fit", "mallows", votes, "--select", "1-2", "--starts", 2, "-o", fit)
    code, out, err = run(*command, "--report", page, "--quiet")
    assert code == 0, err
    sentence = next(line for line in out.splitlines() if line.startswith("Why "))
    shown = run("summary", fit)[1]
    text = page.read_text(encoding="utf-8")
    assert sentence in shown
    assert text.count(sentence) == 2  # in the answer, and where the table is
    for words in ("held out", "difference", "remark"):
        assert words in shown
        assert words in text
    assert "validation" not in shown + text
