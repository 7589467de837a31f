"""The store: resume, extension, refusal, damage, full disks, locks."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from permix import files
from permix.errors import DataError, FileFormatError, PermixWarning
from tests.sampling.toy import SETTINGS, Climb, Info, NeverRefreshed, ToyState, Walk, run, same

N_ITERATIONS = SETTINGS["n_burn_in"] + 100 * SETTINGS["n_thin"]


class Crash(Exception):
    pass


class CrashingWalk(Walk):
    """Ends the process of its chain, so to speak, after a number of steps."""

    def __init__(self, steps: int) -> None:
        super().__init__()
        self.left = steps

    def step(self, rng: np.random.Generator, state: ToyState) -> Info:
        if self.left == 0:
            raise Crash
        self.left -= 1
        return super().step(rng, state)


def crash_after(steps: int, store: Path, **changes: object) -> None:
    with pytest.raises(Crash):
        run(store, move=CrashingWalk(steps), checkpoint_seconds=0, **changes)


@pytest.mark.parametrize("steps", [0, 1, 31, 32, 33, 64, 100, N_ITERATIONS - 1])
def test_resume_after_a_crash_at_any_iteration(tmp_path: Path, steps: int) -> None:
    crash_after(steps, tmp_path)
    assert same(run(tmp_path), run())


def test_resume_again_and_again(tmp_path: Path) -> None:
    for steps in [50, 70, 40, 90, 33, 33]:
        crash_after(steps, tmp_path)
    resumed, plain = run(tmp_path), run()
    assert same(resumed, plain)
    np.testing.assert_array_equal(resumed.statistics["accepted"], plain.statistics["accepted"])


def test_moves_of_both_phases_are_restored(tmp_path: Path) -> None:
    settings = {"n_burn_in": 100, "burn_in_move": Climb()}
    crash_after(10, tmp_path, **settings)
    assert same(run(tmp_path, **settings), run(**settings))


def test_broken_twin_is_caught(tmp_path: Path) -> None:
    crash_after(200, tmp_path, make_state=NeverRefreshed)
    assert not same(run(tmp_path, make_state=NeverRefreshed), run(make_state=NeverRefreshed))


@pytest.mark.parametrize("seconds", [0.0, 1000.0])
def test_store_does_not_change_the_draws(tmp_path: Path, seconds: float) -> None:
    assert same(run(tmp_path, checkpoint_seconds=seconds), run())


def test_finished_store_is_loaded_without_running(tmp_path: Path) -> None:
    def no_state(rng: np.random.Generator) -> ToyState:
        raise AssertionError("nothing is left to run")

    first = run(tmp_path)
    again = run(tmp_path, make_state=no_state)
    assert same(first, again)
    assert again.statistics["seconds"].tolist() == first.statistics["seconds"].tolist()
    np.testing.assert_array_equal(again.statistics["accepted"], first.statistics["accepted"])
    assert again.seeds == first.seeds
    # Fewer draws are the first of those.
    assert same(run(tmp_path, n_draws=30, make_state=no_state), run(n_draws=30))


@pytest.mark.parametrize("n_draws", [1, 4, 64, 99, 101])
def test_more_draws_extend_the_chains(tmp_path: Path, n_draws: int) -> None:
    run(tmp_path, n_draws)
    longer, plain = run(tmp_path, 150), run(n_draws=150)
    assert same(longer, plain)
    np.testing.assert_array_equal(longer.statistics["proposed"], plain.statistics["proposed"])


def test_seed_none_is_kept_by_the_store(tmp_path: Path) -> None:
    crash_after(100, tmp_path, random_state=None)
    resumed = run(tmp_path, random_state=None)
    entropy = json.loads((tmp_path / "manifest.json").read_text())["seed"]["entropy"]
    assert same(resumed, run(random_state=entropy))


class Killed(BaseException):
    """Stands for a power cut: nothing after it reaches the disk."""


def test_crash_at_every_rename(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain, replace, n_crashes = run(n_draws=20), os.replace, 0
    for n_renames in range(20):
        left = n_renames

        def cut(source: object, target: object) -> None:
            nonlocal left
            if left == 0:
                raise Killed
            left -= 1
            replace(source, target)

        store = tmp_path / str(n_renames)
        with monkeypatch.context() as patch:
            patch.setattr(files.os, "replace", cut)
            try:
                run(store, 20, checkpoint_seconds=0, n_jobs=1)
            except Killed:
                n_crashes += 1
        assert same(run(store, 20), plain)
    assert 6 < n_crashes < 20, "the crashes must reach from the first file to the last"


def test_leftovers_of_a_kill_are_removed_or_ignored(tmp_path: Path) -> None:
    crash_after(100, tmp_path)
    chain = tmp_path / "chain-0"
    (chain / ".state.npz.99-1.tmp").write_bytes(b"half a file")
    n_blocks = len(list(chain.glob("draws-*.npz")))
    (chain / f"draws-{n_blocks:06d}.npz").write_bytes(b"a block that no state counts")
    assert same(run(tmp_path), run())
    assert not list(chain.glob(".*.tmp"))


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"random_state": 8}, "random_state was 7 and is now 8"),
        ({"n_chains": 3}, "n_chains was 2 and is now 3"),
        ({"n_burn_in": 21}, "n_burn_in was 20 and is now 21"),
        ({"n_thin": 2}, "n_thin was 3 and is now 2"),
        ({"fingerprint": {"model": "other"}}, 'model was "toy" and is now "other"'),
        ({"fingerprint": {"model": "toy", "data": "9f"}}, 'data was null and is now "9f"'),
    ],
)
def test_another_run_is_refused(tmp_path: Path, changes: dict[str, object], named: str) -> None:
    run(tmp_path, 5)
    with pytest.raises(DataError, match=named) as caught:
        run(tmp_path, 5, **changes)
    assert "another folder" in str(caught.value)
    assert same(run(tmp_path, 5), run(n_draws=5)), "a refusal must leave the store as it was"


def test_fingerprint_survives_json(tmp_path: Path) -> None:
    fingerprint = {"shape": (3, 4), "scale": 0.1, "name": "Žluťoučký"}
    run(tmp_path, 5, fingerprint=fingerprint)
    run(tmp_path, 5, fingerprint=fingerprint)
    with pytest.raises(DataError, match="fingerprint"):
        run(tmp_path / "other", 5, fingerprint={"array": np.zeros(2)})


def test_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(DataError, match=r"thesis\.tex"):
        run(tmp_path, 5)
    with pytest.raises(DataError, match="is a file"):
        run(tmp_path / "thesis.tex", 5)


@pytest.mark.parametrize("name", ["manifest.json", "chain-1/state.npz", "chain-1/draws-000001.npz"])
@pytest.mark.parametrize("damage", ["truncate", "garble", "delete"])
def test_damaged_files_are_named(tmp_path: Path, name: str, damage: str) -> None:
    run(tmp_path, checkpoint_seconds=0)
    path = tmp_path / name
    content = bytearray(path.read_bytes())
    if damage == "truncate":
        path.write_bytes(content[: len(content) // 2])
    elif damage == "garble":
        content[len(content) // 3] ^= 0x55
        content[len(content) // 3 + 1] ^= 0xFF
        path.write_bytes(content)
    else:
        path.unlink()
    if (name, damage) == ("chain-1/state.npz", "delete"):
        # Nothing says that this chain ever ran: it runs again and gives the same draws.
        assert same(run(tmp_path), run())
        return
    if (name, damage) == ("manifest.json", "delete"):
        with pytest.raises(DataError, match="no permix store"):
            run(tmp_path)
        return
    with pytest.raises(FileFormatError) as caught:
        run(tmp_path)
    assert path.name in str(caught.value)
    assert caught.value.path == str(path)
    if name != "manifest.json":
        assert "delete the folder" in str(caught.value)
        # The way out that the message names.
        for file in (tmp_path / "chain-1").iterdir():
            file.unlink()
        assert same(run(tmp_path), run())


@pytest.mark.parametrize("name", ["manifest.json", "chain-0/state.npz"])
def test_newer_version(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    run(tmp_path, 5)
    path = tmp_path / name
    if name == "manifest.json":
        manifest = json.loads(path.read_text())
        manifest["version"] = 9
        path.write_text(json.dumps(manifest))
    else:
        manifest, arrays = files.read_archive(path)
        monkeypatch.setattr(files, "VERSION", 9)
        content = {key: value for key, value in manifest.items() if key not in files.RESERVED}
        files.write_archive(path, content, arrays)
        monkeypatch.undo()
    with pytest.raises(FileFormatError, match=r"format version 9; .* up to [12]: update permix"):
        run(tmp_path, 5)


def full_disk(monkeypatch: pytest.MonkeyPatch, fails) -> None:
    """Let writes to files whose number ``fails`` accepts end half-way with ENOSPC."""
    n_files = 0
    fsync = os.fsync

    def failing_fsync(descriptor: int) -> None:
        nonlocal n_files
        n_files += 1
        if fails(n_files):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        fsync(descriptor)

    monkeypatch.setattr(files.os, "fsync", failing_fsync)


def test_full_disk_for_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = run()
    with monkeypatch.context() as patch:
        full_disk(patch, lambda n: 8 < n < 20)
        # The main thread may miss a failure that was made good at once.
        draws = run_and_ignore_warnings(tmp_path)
    assert same(draws, plain)
    assert same(run(tmp_path), plain)
    assert not list(tmp_path.glob("**/*.tmp"))


def run_and_ignore_warnings(store: Path):
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PermixWarning)
        return run(store, checkpoint_seconds=0)


def test_full_disk_to_the_end_returns_the_draws_and_leaves_a_good_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = run()
    with monkeypatch.context() as patch:
        full_disk(patch, lambda n: n > 12)
        with pytest.warns(PermixWarning, match=r"No space left on device.*Make room and run again"):
            draws = run(tmp_path, checkpoint_seconds=0)
    assert same(draws, plain)
    assert not list(tmp_path.glob("**/*.tmp"))
    held = [files.read_archive(path)[0]["n_draws"] for path in tmp_path.glob("chain-*/state.npz")]
    assert max(held) < 100
    assert same(run(tmp_path), plain)


def test_full_disk_at_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        full_disk(patch, lambda n: True)
        with pytest.raises(OSError, match="No space left on device"):
            run(tmp_path / "store")
    assert same(run(tmp_path / "store"), run())


def test_two_processes_cannot_use_one_store(tmp_path: Path) -> None:
    code = (
        "import sys, pathlib; from permix.sampling.lock import locked\n"
        "with locked(pathlib.Path(sys.argv[1]), 'it'):\n"
        "    print('held', flush=True); sys.stdin.read()"
    )
    tmp_path.mkdir(exist_ok=True)
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / "lock")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert process.stdout.readline().strip() == b"held"
        with pytest.raises(DataError, match=f"in use by process {process.pid}"):
            run(tmp_path, 5)
    finally:
        # Killed, so the lock file stays behind; the lock does not.
        process.kill()
        process.communicate()
    assert (tmp_path / "lock").exists()
    assert same(run(tmp_path, 5), run(n_draws=5))


def test_blocks_open_with_plain_numpy(tmp_path: Path) -> None:
    draws = run(tmp_path)
    with np.load(tmp_path / "chain-0" / "draws-000000.npz", allow_pickle=False) as block:
        np.testing.assert_array_equal(block["arrays/total"], draws.arrays["total"][0])


def test_blocks_in_another_order_are_refused(tmp_path: Path) -> None:
    run(tmp_path, 300, checkpoint_seconds=0)
    first, second = (tmp_path / "chain-0" / f"draws-00000{index}.npz" for index in (1, 2))
    held = first.read_bytes(), second.read_bytes()
    first.write_bytes(held[1])
    second.write_bytes(held[0])
    with pytest.raises(FileFormatError, match=r"draws-000001\.npz: it does not begin at draw"):
        run(tmp_path, 300)


def test_draws_say_how_many_the_store_holds(tmp_path: Path) -> None:
    assert run(None, 40).n_stored == 0
    assert run(tmp_path, 90).n_stored == 90
    shorter = run(tmp_path, 40)
    assert (shorter.n_draws, shorter.n_stored) == (40, 90)
