"""The line about work under way."""

from permix.sampling import status
from permix.sampling.status import StatusLine


def test_plain_lines_when_asked_for(monkeypatch, capsys):
    monkeypatch.setattr(status, "LINE_SECONDS", 0.0)
    with StatusLine(True) as line:
        line.update("EM: starting")
        line.begin("comparing", 2)
        line.step()
        line.step()
    assert capsys.readouterr().err.splitlines() == ["EM: starting", "comparing: 1/2", "comparing: 2/2"]


def test_nothing_unless_it_takes_long(capsys):
    for progress in (None, False):
        with StatusLine(progress) as line:
            assert not line.wanted  # not a terminal
            line.update("EM: starting")
    with StatusLine(True) as line:
        line.update("too early")
    assert capsys.readouterr().err == ""


def test_a_terminal_gets_one_line(monkeypatch, capsys):
    monkeypatch.setattr(status, "is_live", lambda: True)
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich takes any stream for a terminal
    with StatusLine(True) as line:
        assert line.wanted
        line.update("EM: starting")
    assert "EM: starting" in capsys.readouterr().err
