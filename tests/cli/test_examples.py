"""``permix example`` writes files and says what to ask of them."""

from __future__ import annotations

from permix.datasets.examples import EXAMPLES


def test_examples_are_listed_with_their_questions(run):
    code, out, _ = run("example")
    assert code == 0
    assert all(name in out and about.question in out for name, about in EXAMPLES.items())


def test_what_comes_next_names_the_file(run, tmp_path):
    code, out, _ = run("example", "election", tmp_path)
    assert code == 0
    assert f"next: permix fit mallows {tmp_path / 'election.csv'}" in out
    assert (tmp_path / "candidates.csv").is_file()


def test_files_that_exist_stay(run, tmp_path):
    (tmp_path / "food.csv").write_text("mine")
    code, _, err = run("example", "food", tmp_path)
    assert (code, (tmp_path / "food.csv").read_text()) == (1, "mine")
    assert "use --force" in err
    assert run("example", "food", tmp_path, "--force")[0] == 0
