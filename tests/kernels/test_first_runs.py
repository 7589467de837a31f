"""What first runs compile is known beforehand, and processes that compile at once share the work."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import time

import pytest
from numba.core import types

from benchmarks.start import FITS, RECORD, fit_command, write_files
from permix.cli import main
from permix.errors import PermixWarning
from permix.kernels import first_runs
from permix.partitions.geometry_jit import canonicalise
from permix.runtime.compiling import Compiling


@pytest.mark.parametrize("what", FITS)
def test_the_list_is_what_runs_use(what, tmp_path, forks):
    """If this fails, kernels or signatures changed: python -m benchmarks.start --list writes the list."""
    write_files(tmp_path)
    (tmp_path / "record.py").write_text(RECORD)
    done = forks.run(tmp_path / "record.py", *shlex.split(fit_command(what).removeprefix("-m permix ")))
    assert done.returncode == 0, done.stderr
    used = json.loads(done.stdout.splitlines()[-1])
    listed = json.loads(first_runs.FILE.read_text())[what]
    assert sorted(map(json.dumps, used)) == sorted(map(json.dumps, listed))
    for call in first_runs.first_runs()[what]:
        assert call.place()[2].exists(), "another process, which imports other files, looks elsewhere"


def test_types_are_read_as_they_were_written():
    for run in first_runs.first_runs().values():
        for call in run:
            again = tuple(first_runs.written(first_runs.as_type(text)) for text in call.signature)
            assert again == call.signature
    for kind in [
        types.int64,
        types.boolean,
        types.none,
        types.Array(types.float64, 2, "F", readonly=True),
        types.UniTuple(types.intp, 3),
        types.Tuple([types.float64, types.Tuple([types.uint8])]),
    ]:
        assert first_runs.as_type(json.loads(json.dumps(first_runs.written(kind)))) == kind


def test_a_listed_kernel_is_found_where_runs_look_for_it():
    signature = (types.Array(types.int32, 1, "C"), types.Array(types.int32, 1, "C"))
    call = first_runs.planned(canonicalise.py_func, signature)
    dispatcher, kinds, path = call.place()
    assert dispatcher is canonicalise
    assert kinds == signature
    assert path == canonicalise._cache.path(signature, canonicalise.targetctx.codegen())
    assert path != canonicalise._cache.path(signature[:1], canonicalise.targetctx.codegen())


@pytest.fixture
def command(tmp_path):
    path = tmp_path / "command.py"
    path.write_text("from permix.cli import main\nmain()\n")
    return path


def test_warm_up_compiles_all_that_the_first_fit_needs(tmp_path, forks, command):
    environment = os.environ | {"PERMIX_COMPILED": str(tmp_path / "compiled"), "PERMIX_COMPILE_ALONE": "1"}
    done = forks.run(command, "warm-up", "angle", environment=environment)
    assert done.returncode == 0, done.stderr
    n_listed = len(first_runs.first_runs()["fit angle"])
    assert done.stdout.startswith(f"{n_listed} functions are ready")
    ready = set(os.listdir(tmp_path / "compiled"))
    assert not [name for name in ready if name.endswith((".lock", ".tmp"))]
    write_files(tmp_path)
    arguments = shlex.split(fit_command("fit angle").removeprefix("-m permix "))
    done = forks.run(command, *arguments, environment=environment)
    assert done.returncode == 0, done.stderr
    assert set(os.listdir(tmp_path / "compiled")) == ready


def test_warm_up_of_what_is_unknown(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["permix", "warm-up", "nono"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert "nono" in capsys.readouterr().err


def test_the_first_run_tells_which_list_is_meant(monkeypatch):
    begun = []
    monkeypatch.delenv(first_runs.ALONE)
    monkeypatch.setattr(first_runs, "n_processors", lambda: 3)
    monkeypatch.setattr(first_runs, "start", lambda *arguments: begun.append(arguments))
    monkeypatch.setattr(first_runs, "_missing", [])
    monkeypatch.setattr(first_runs, "_started", set())
    runs = first_runs.first_runs()

    def miss(call):
        kinds = tuple(map(first_runs.as_type, call.signature))
        first_runs.note_missing(call.dispatcher.py_func, kinds)

    shared = next(call for call in runs["fit dp-mixture"] if call in runs["fit dp-mallows"])
    own = next(call for call in runs["fit dp-mixture"] if call not in runs["fit dp-mallows"])
    miss(shared)
    assert not begun, "it may be one of two"
    miss(own)
    assert begun == [(["fit dp-mixture"], 2)]
    miss(own)
    assert len(begun) == 1


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("import sys; sys.exit(3)", "ended with 3"),
        ("raise SystemError('no such luck')", "no such luck"),
        ("print('hello'); print('permix compiled 2 7'); print('permix compiling')", None),
        ("import sys; sys.stderr.write('x' * 10**6)", None),
    ],
    ids=["in silence", "with a word", "talkative", "very talkative"],
)
def test_processes_that_fail_or_talk(program, said, monkeypatch, recwarn):
    """They cost time at most."""
    now = Compiling()
    monkeypatch.setattr(first_runs, "COMPILING", now)
    monkeypatch.setattr(first_runs, "_LAUNCH", program)
    for thread in first_runs.start(["fit angle"], 1):
        thread.join(30)
        assert not thread.is_alive()
    assert [said in str(warning.message) for warning in recwarn] == [True] * (said is not None)
    assert (now.done, now.total) == ((2, 7) if "7" in program else (0, None))


def test_a_process_that_cannot_be_started(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/there/is/no/python")
    with pytest.warns(PermixWarning, match="costs time and nothing else"):
        assert first_runs.start(["fit angle"], 2) == []
    monkeypatch.setattr(sys, "executable", "")
    assert not first_runs._may_start()


def test_workers_start_no_processes():
    code = "from multiprocessing import get_context as c\n"
    code += "from permix.kernels.first_runs import _may_start as m\n"
    code += "if __name__ == '__main__': print(m(), c('fork').Pool(1).apply(m))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "False"]


def test_nothing_is_read_where_nothing_is_kept(tmp_path, forks, command):
    """A folder of the present directory is not taken for the cache."""
    (tmp_path / "toy.py").write_text(TOY)
    (tmp_path / "file").touch()
    code = "import toy; print(toy.double(2.0), toy.double._cache.path((), toy.double.targetctx.codegen()))"
    (tmp_path / "doubled.py").write_text(code)
    environment = os.environ | {"PERMIX_COMPILED": str(tmp_path / "file" / "x")}
    done = forks.run(tmp_path / "doubled.py", environment=environment)
    assert done.stdout.split() == ["4.0", "None"], done.stderr
    warm_up = forks.run(command, "warm-up", "angle", environment=environment)
    assert warm_up.returncode == 1
    assert "cannot be written" in warm_up.stderr


SLOW = """
import sys, time
from pathlib import Path
from permix.kernels import compile_cache
from permix.kernels.jit import kernel
from numba.core import event
import toy

wait, hold = float(sys.argv[1]), sys.argv[2] == "hold"
compile_cache.WAIT_SECONDS = wait
save = compile_cache.ContentCache.save_overload

def slow(self, sig, data):
    Path("begun").touch()
    while hold and not Path("go").exists():
        time.sleep(0.05)
    save(self, sig, data)

compile_cache.ContentCache.save_overload = slow
if not hold:
    Path("second").touch()
with event.install_recorder("numba:compile") as compiled:
    assert toy.double(2.0) == 4.0
print(len(compiled.buffer) > 0)
"""
TOY = """
from permix.kernels.jit import kernel

@kernel
def double(x):
    return 2.0 * x
"""


@pytest.mark.parametrize(("wait", "compiles"), [(60, "False"), (0, "True")])
def test_what_another_process_compiles_is_waited_for(tmp_path, forks, wait, compiles):
    """Without waiting, both would compile it."""
    (tmp_path / "toy.py").write_text(TOY)
    (tmp_path / "slow.py").write_text(SLOW)
    environment = os.environ | {"PERMIX_COMPILED": str(tmp_path / "compiled")}

    def run(how):
        return forks.start(tmp_path / "slow.py", str(wait), how, environment=environment)

    def appears(name):
        """Files that the processes make; in vain is a minute."""
        for _ in range(1200):
            if (tmp_path / name).exists():
                return True
            time.sleep(0.05)
        return False

    first = run("hold")
    assert appears("begun"), first().stderr
    second = run("at once")
    if wait:
        assert appears("second"), second().stderr
        time.sleep(1.0)
        (tmp_path / "go").touch()
    assert second().stdout.strip() == compiles
    (tmp_path / "go").touch()
    assert first().stdout.strip() == "True"
    assert not list((tmp_path / "compiled").glob("*.lock"))
