"""What the command line says of a fit that Ctrl-C left without a result: the truth about what is kept."""

from __future__ import annotations

import pytest
import typer

from permix.cli.output import running_fit


@pytest.mark.parametrize("with_state", [False, True])
def test_the_message_says_what_is_kept(tmp_path, capsys, with_state):
    chains = tmp_path / "f.permix.chains"
    if with_state:
        (chains / "chain-0").mkdir(parents=True)
        (chains / "chain-0" / "state.npz").touch()
    with pytest.raises(typer.Exit) as stopped, running_fit(chains):
        raise KeyboardInterrupt
    assert stopped.value.exit_code == 130
    err = capsys.readouterr().err
    assert "before the first draw" not in err
    if with_state:
        assert err == (
            f"permix: interrupted before there was a fit to save; the same command goes on from {chains}\n"
        )
    else:
        assert err == "permix: interrupted before there was anything to keep\n"


def test_a_fit_without_chains(capsys):
    with pytest.raises(typer.Exit), running_fit():
        raise KeyboardInterrupt
    assert "anything to keep" in capsys.readouterr().err
    with running_fit():
        pass
    assert capsys.readouterr().err == ""
