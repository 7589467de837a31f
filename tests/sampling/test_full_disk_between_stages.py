"""A checkpoint that fails at the end of a stage loses nothing: later ones write what it could not."""

from __future__ import annotations

import pytest

from permix.sampling.store import ChainFolder
from tests.sampling.test_auto import run_auto
from tests.sampling.toy import same


@pytest.mark.filterwarnings("ignore::permix.errors.PermixWarning")
def test_the_store_has_no_hole(tmp_path, monkeypatch):
    plain = run_auto(0.6)
    write, n_calls = ChainFolder.write, []

    def fails_at_first(self, *arguments, **options):
        n_calls.append(1)
        if len(n_calls) <= 2:  # the end of the first stage, of both chains
            raise OSError(28, "No space left on device")
        write(self, *arguments, **options)

    monkeypatch.setattr(ChainFolder, "write", fails_at_first)
    assert same(plain, run_auto(0.6, store=tmp_path / "store"))
    monkeypatch.setattr(ChainFolder, "write", write)
    again = run_auto(0.6, store=tmp_path / "store")
    assert same(plain, again)
    assert again.n_made == plain.n_made
    assert again.n_stored == plain.n_made
