"""What is shown while chains run, and what is not."""

from __future__ import annotations

import io
import re
import sys
import threading

import numpy as np
import pytest

from permix.sampling import compiling, progress
from permix.sampling.chain import Monitor
from permix.sampling.compiling import announce_compilation
from tests.sampling.toy import run, same


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def fake_terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Put a terminal in the place of stderr (not as a fixture: pytest captures after fixtures)."""
    fake = Terminal()
    monkeypatch.setattr(sys, "stderr", fake)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "200")
    return fake


def test_short_runs_show_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = fake_terminal(monkeypatch)
    run(n_draws=50, progress=None)
    assert terminal.getvalue() == ""


def test_live_display_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = fake_terminal(monkeypatch)
    shown = run(n_draws=60, seconds=0.002, progress=True)
    text = terminal.getvalue()
    for expected in ("chain 1", "chain 2", "200/200", "sampling", "clusters", "log joint", "accepted"):
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
    assert lines[-1].startswith("chain 2: 200/200 sampling clusters ")
    assert "\x1b" not in "".join(lines)


def test_resumed_run_starts_where_it_was(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = fake_terminal(monkeypatch)
    run(tmp_path, 50)
    run(tmp_path, 60, progress=True, seconds=0.01)
    counts = [int(count) for count in re.findall(r"(\d+)/200", terminal.getvalue())]
    assert min(counts) >= 170
    assert max(counts) == 200


def test_numbers() -> None:
    monitor = Monitor(n_iterations=10, n_burn_in=4, iteration=3)
    assert progress._phase(monitor) == "burn-in"
    assert progress._numbers(monitor) == ""
    monitor.iteration = 4
    monitor.numbers = {"clusters": 12, "log_joint": -1234.5678}
    monitor.tally = {"a": [10, 1], "b": [10, 4]}
    assert progress._phase(monitor) == "sampling"
    assert progress._numbers(monitor) == "clusters 12 · log joint -1,234.57 · accepted 25%"


def broadcast(*seconds: float) -> None:
    """Pretend that compilations of these lengths happen one after the other."""
    from numba.core import event

    for length in seconds:
        with event.trigger_event("numba:compile", data={}):
            threading.Event().wait(length)


def test_long_compilation_is_announced_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("numba")
    monkeypatch.setattr(compiling, "PATIENCE_SECONDS", 0.1)
    with announce_compilation():
        broadcast(0.2, 0.2)
    assert capsys.readouterr().err == compiling.MESSAGE + "\n"
    with announce_compilation():
        broadcast(*[0.06] * 5)
    assert capsys.readouterr().err == compiling.MESSAGE + "\n", "many short ones add up"


def test_short_compilation_is_not_announced(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("numba")
    monkeypatch.setattr(compiling, "PATIENCE_SECONDS", 0.5)
    with announce_compilation():
        broadcast(0.01)
    monkeypatch.setattr(compiling, "PATIENCE_SECONDS", 0.05)
    with announce_compilation(wanted=False):
        broadcast(0.2)
    broadcast(0.2)
    assert capsys.readouterr().err == ""


def test_real_compilation_broadcasts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The event names are Numba's; a release that changed them would silence us."""
    numba = pytest.importorskip("numba")
    monkeypatch.setattr(compiling, "PATIENCE_SECONDS", 0.0)

    @numba.njit
    def double(x):
        return 2 * x

    with announce_compilation():
        assert double(np.float64(2.0)) == 4.0
    assert capsys.readouterr().err == compiling.MESSAGE + "\n"
