"""What is shown of work under way, and what is not."""

from __future__ import annotations

import gc
import io
import json
import sys
import threading
import time

import numpy as np
import pytest

from permix.errors import DataError, PermixWarning
from permix.runtime import progress
from permix.runtime.compiling import Compiling
from permix.runtime.progress import Display, Line, checked_progress
from permix.runtime.threads import TOLD_PARTS, n_threads, over_rows


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


def test_plain_lines_when_asked_for(monkeypatch, capsys):
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.0)
    monkeypatch.setattr(progress, "REDRAW_SECONDS", 100.0)  # steps alone show something
    with Display(True) as display:
        display.begin("EM")
        display.begin("comparing", 2)
        display.step()
        display.update("closer", 2)
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "EM",
        "comparing: 0 of 2",
        "comparing: 1 of 2 · about 1 s left",
        "comparing: 2 of 2 · closer",
    ]


def test_nothing_unless_it_takes_long(capsys):
    for shown in (None, False):
        with Display(shown) as display:
            assert not display.wanted  # not a terminal
            display.begin("EM")
    with Display(True) as display:
        display.begin("too early")
    assert capsys.readouterr().err == ""


def test_commands_whose_output_goes_to_a_file_say_now_and_then_that_they_work(monkeypatch, capsys):
    monkeypatch.setitem(progress.RUNNING, "command", True)
    monkeypatch.setattr(progress, "RARE_SECONDS", 0.2)
    began, said = time.monotonic(), 0
    with Display(None) as display:
        display.begin("reading votes.csv")
        while said < 2 and time.monotonic() < began + 60.0:  # however busy the machine is
            time.sleep(0.05)
            said += capsys.readouterr().err.count("reading votes.csv\n")
    said += capsys.readouterr().err.count("reading votes.csv\n")
    assert 2 <= said <= (time.monotonic() - began) / 0.2
    with Display(False) as display:
        assert not display.wanted


def test_work_whose_next_step_is_far_away_is_shown(monkeypatch):
    terminal = fake_terminal(monkeypatch)
    monkeypatch.setattr(progress, "PATIENCE_SECONDS", 0.2)
    with Display(None) as display:
        display.begin("one long step", 3)
        time.sleep(0.1)
        assert terminal.getvalue() == ""
        time.sleep(0.6)
        assert "one long step" in terminal.getvalue()
        assert "0 of 3" in terminal.getvalue()
    assert not [thread for thread in threading.enumerate() if thread.name == "permix-display"]


def test_a_terminal_shows_the_remaining_time(monkeypatch):
    terminal = fake_terminal(monkeypatch)
    monkeypatch.setattr(progress, "REDRAW_SECONDS", 0.0)
    with Display(True) as display:
        display.begin("first [red]thing", 4)
        display.step()
        display.begin("second thing", 100)
        display.lines[0].began -= 10
        display.update("log-likelihood -12.5", 10)
    text = terminal.getvalue()
    for expected in (
        "first [red]thing",
        "1 of 4",
        "second thing",
        "10 of 100",
        "about 2 min left",
        "log-likelihood -12.5",
    ):
        assert expected in text


def test_estimates_count_from_where_the_work_began():
    line = Line("chain 1", 200, 100)
    assert line.left == ""
    line.began -= 10
    line.done = 120
    assert line.left == "about 40 s left"
    line.done = 200
    assert line.left == ""
    assert Line("endless").left == ""


def test_nobody_knows_how_long_the_rest_takes_where_parts_differ():
    """Four quick models of five were done, "about 7 s left" of a minute, and more and more."""
    line = Line("comparing models", 5, done=0, began=time.monotonic() - 28.0, alike=False)
    line.done = 4
    assert (line.left, line.seconds_left, line.count) == ("", None, "4 of 5")


def test_threads_may_report():
    with Display(True) as display:
        display.begin("counting", 4000)
        threads = [threading.Thread(target=lambda: [display.step() for _ in range(1000)]) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert display.lines[0].done == 4000


@pytest.mark.parametrize("wrong", ["yes", 1, 0, 0.0, float("nan"), [], np.array([True])], ids=repr)
def test_what_progress_cannot_be(wrong):
    for check in (checked_progress, Display):
        with pytest.raises(DataError, match="progress must be True, False or None"):
            check(wrong)
    with pytest.raises(DataError, match="n_jobs"):
        n_threads(0)
    assert [checked_progress(shown) for shown in (True, np.bool_(False), None)] == [True, False, None]


def test_a_first_run_says_that_it_compiles(monkeypatch, capsys):
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.01)
    monkeypatch.setattr(progress, "COMPILING_SECONDS", 0.05)
    now = Compiling()
    monkeypatch.setattr(progress, "COMPILING", now)
    with Display(True) as display:
        display.begin("counting", 4)
        now.begin("outer")
        now.begin("inner")
        now.end("inner")
        threading.Event().wait(0.2)
        assert "compiling, first run only · 1 functions" in capsys.readouterr().err
        now.done, now.total = 31, 84
        threading.Event().wait(0.2)
        assert "compiling, first run only: 31 of 84" in capsys.readouterr().err
        now.end("outer")
        threading.Event().wait(0.2)
        capsys.readouterr()
        threading.Event().wait(0.2)
        assert capsys.readouterr().err.splitlines()[-1] == "counting: 0 of 4", "nothing compiles any more"


def test_short_compilation_is_not_announced():
    now = Compiling()
    assert now.seconds == 0.0
    now.begin("kernel")
    assert 0.0 < now.seconds < 1.0
    now.end("kernel")
    now.end("what never began")
    assert now.seconds == 0.0
    assert now.n_compiled == 1
    now.begin("another")
    first = now.seconds
    assert first > 0.0, "many short ones add up"
    now.end("another")


def test_real_compilation_is_noticed(tmp_path, monkeypatch):
    """What tells of compilation is Numba's; a release that changed it would silence us."""
    from numba.core.errors import TypingError

    from permix.kernels import compile_cache
    from permix.kernels.jit import kernel

    now = Compiling()
    monkeypatch.setattr(compile_cache, "COMPILING", now)
    monkeypatch.setattr(compile_cache, "usable_folder", lambda: tmp_path)  # nothing is compiled yet

    @kernel
    def double(x):
        return 2 * x

    assert double(np.float64(2.0)) == 4.0
    assert now.n_compiled == 1
    assert gc.isenabled()

    @kernel
    def wrong(x):
        return x.no_such_thing

    with pytest.raises(TypingError):
        wrong(np.float64(2.0))
    assert now.seconds == 0.0, "what failed is over"
    assert gc.isenabled()
    now.begin("kernel")
    assert not gc.isenabled()
    now.end("kernel")
    assert gc.isenabled()
    assert not compile_cache._CLAIMS


def test_a_file_holds_the_newest_lines(tmp_path, monkeypatch):
    file = tmp_path / "progress.json"
    monkeypatch.setenv(progress.FILE_VARIABLE, str(file))
    monkeypatch.setattr(progress, "FILE_SECONDS", 0.0)
    monkeypatch.setattr(progress, "REDRAW_SECONDS", 100.0)
    with Display(None) as display:
        display.begin("comparing", 4)
        display.step()
        display.update("closer")
        (line,) = json.loads(file.read_text())
        assert line["seconds_left"] >= 0.0
        assert line["left"] == "about 1 s left"
        assert line | {"seconds_left": 0} == {
            "stage": "comparing",
            "done": 1,
            "of": 4,
            "text": "closer",
            "seconds_left": 0,
            "left": "about 1 s left",
        }
        display.update("there", 4)
    (line,) = json.loads(file.read_text())
    assert (line["done"], line["seconds_left"]) == (4, None)
    assert list(tmp_path.iterdir()) == [file]


def test_quiet_work_writes_no_file(tmp_path, monkeypatch):
    monkeypatch.setenv(progress.FILE_VARIABLE, str(tmp_path / "progress.json"))
    with Display(False) as display:
        display.begin("comparing", 4)
    assert not list(tmp_path.iterdir())


def test_a_file_that_cannot_be_written_does_not_end_the_work(tmp_path, monkeypatch):
    monkeypatch.setenv(progress.FILE_VARIABLE, str(tmp_path / "nowhere" / "progress.json"))
    monkeypatch.setattr(progress, "FILE_SECONDS", 0.0)
    monkeypatch.setattr(progress, "REDRAW_SECONDS", 100.0)
    with Display(None) as display:
        with pytest.warns(PermixWarning, match="progress cannot be written"):
            display.begin("comparing", 4)
        display.step()
    assert display.lines[0].done == 1


def test_work_within_work_is_shown_on_one_display(monkeypatch):
    fake = fake_terminal(monkeypatch)
    monkeypatch.setattr(progress, "PATIENCE_SECONDS", 0.0)
    monkeypatch.setattr(progress, "REDRAW_SECONDS", 0.01)
    with Display(None) as whole:
        whole.begin("comparing models", 2)
        with Display(None) as part:
            part.begin("chain 1", 4)
            part.step(3)
            until = time.monotonic() + 30.0
            while "3 of 4" not in fake.getvalue() and time.monotonic() < until:
                time.sleep(0.01)
            assert part._rich is None
            assert [line.what for line in whole._all_lines()] == ["comparing models", "chain 1"]
        assert [line.what for line in whole._all_lines()] == ["comparing models"]
    assert "chain 1" in fake.getvalue()
    assert "3 of 4" in fake.getvalue()
    with Display(None) as alone:  # nothing is left of the others
        alone.begin("alone")
        assert alone._outer is None


def test_nothing_is_shown_within_work_that_shows_nothing(monkeypatch):
    fake = fake_terminal(monkeypatch)
    monkeypatch.setattr(progress, "PATIENCE_SECONDS", 0.0)
    with Display(False), Display(None) as part:
        part.begin("chain 1", 4)
        assert not part.wanted
    assert fake.getvalue() == ""
    with Display(None) as part:
        assert part.wanted


def test_the_time_that_work_may_take_is_told():
    line = Line("chain 1", 300, 0, most=1000, began=time.monotonic() - 100.0)
    line.done = 200
    assert line.left == "about 50 s left, at most 7 min"
    line.total = 1000
    assert line.left == "about 7 min left"


def test_rows_are_counted_as_they_are_done(monkeypatch):
    seen: list[tuple[int, int]] = []

    def task(first: int, last: int) -> None:
        seen.append((first, last))

    for work, n_parts in ((1, 1), (10**6, TOLD_PARTS)):
        seen.clear()
        with Display(None) as display, display.counting_rows("rows", 1000):
            over_rows(task, 1000, work)
        assert (display.lines[0].done, display.lines[0].total) == (1000, 1000)
        assert sum(last > first for first, last in seen) == n_parts
    with Display(None) as display, display.counting_rows("rows"):
        over_rows(task, 10, 1)
        over_rows(task, 20, 1)
    assert (display.lines[0].done, display.lines[0].total) == (30, 30)
    over_rows(task, 10, 1)  # nobody is told
    assert display.lines[0].done == 30
