"""What is shown while chains run, and what is not."""

from __future__ import annotations

import re

import pytest

from permix.runtime import progress
from permix.sampling import progress as chain_progress
from permix.sampling.chain import Monitor
from tests.runtime.test_progress import fake_terminal
from tests.sampling.toy import run, same


def test_short_runs_show_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = fake_terminal(monkeypatch)
    run(n_draws=50, progress=None)
    assert terminal.getvalue() == ""


def test_live_display_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = fake_terminal(monkeypatch)
    shown = run(n_draws=60, seconds=0.002, progress=True)
    text = terminal.getvalue()
    for expected in ("chain 1", "chain 2", "200 of 200", "sampling", "clusters", "log joint", "accepted"):
        assert expected in text
    assert same(shown, run(n_draws=60)), "watching must not change the draws"


def test_display_appears_by_itself_after_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = fake_terminal(monkeypatch)
    monkeypatch.setattr(progress, "PATIENCE_SECONDS", 0.05)
    run(n_draws=60, seconds=0.002, progress=None)
    assert "chain 1" in terminal.getvalue()


def test_false_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = fake_terminal(monkeypatch)
    monkeypatch.setattr(progress, "PATIENCE_SECONDS", 0.0)
    run(n_draws=60, seconds=0.001, progress=False)
    assert terminal.getvalue() == ""


def test_log_files_get_plain_lines_only_on_request(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "PATIENCE_SECONDS", 0.0)
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.05)
    run(n_draws=60, seconds=0.001, progress=None)
    assert capfd.readouterr().err == ""
    run(n_draws=60, seconds=0.001, progress=True)
    lines = capfd.readouterr().err.splitlines()
    assert len(lines) >= 4, "some lines on the way, one per chain at the end"
    assert lines[-1].startswith("chain 2: 200 of 200 · sampling clusters ")
    assert "\x1b" not in "".join(lines)


def test_resumed_run_starts_where_it_was(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = fake_terminal(monkeypatch)
    run(tmp_path, 50)
    run(tmp_path, 60, progress=True, seconds=0.01)
    counts = [int(count) for count in re.findall(r"(\d+) of 200", terminal.getvalue())]
    assert min(counts) >= 170
    assert max(counts) == 200


def test_numbers() -> None:
    monitor = Monitor(n_iterations=10, n_burn_in=4, iteration=3)
    assert chain_progress._phase(monitor) == "burn-in"
    assert chain_progress._numbers(monitor) == ""
    monitor.iteration = 4
    monitor.numbers = {"clusters": 12, "log_joint": -1234.5678}
    monitor.tally = {"a": [10, 1], "b": [10, 4]}
    assert chain_progress._phase(monitor) == "sampling"
    assert chain_progress._numbers(monitor) == "clusters 12 · log joint -1,234.57 · accepted 25%"


def test_stages_to_come_are_told() -> None:
    monitor = Monitor(n_iterations=10, n_burn_in=4, iteration=2, most_iterations=4000)
    display = chain_progress.ChainDisplay([monitor], False)
    line = display.lines[0]
    line.began -= 10.0
    line.done_before = 0
    assert line.text == "burn-in, at most 4,000"
    assert line.left == "about 40 s left, at most 5 h 33 min"
    monitor.n_iterations = 4000  # the last stage
    display.look()
    assert line.text == "burn-in"
    assert line.left == "about 5 h 33 min left"
