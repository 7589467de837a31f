"""A wrong use of the command line, and what must come of it."""

from __future__ import annotations


def assert_refused(run, tmp_path, monkeypatch, arguments, words):
    """Run a command among odd files: one clear message, exit code 1, and nothing overwritten."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "headonly.csv").write_text("a,b\n")
    (tmp_path / "old.permix").write_text("precious")
    (tmp_path / "pairs.csv").write_text("agent,better,worse\nann,x,y\nann,y,z\nann,z,x\nbob,x,y\n")
    (tmp_path / "hole.csv").write_text("a,b\n1,2\n3,\n")
    (tmp_path / "broken.npz").write_bytes(b"PK\x03\x04 nothing")
    code, _, err = run(*arguments)
    assert code == 1
    assert err.startswith("permix: ")
    assert "Traceback" not in err
    assert "Errno" not in err
    for word in words:
        assert word in err
    assert (tmp_path / "old.permix").read_text() == "precious"
