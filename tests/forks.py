"""Python programs in processes of their own that need not load Numba: it costs a second each time.

One process loads Numba and what of permix compiles, but no kernel, and forks for every program.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

SERVER = """
import gc, json, os, runpy, sys
import numpy, numba, pandas, scipy.optimize, permix.kernels.jit, permix.cli.app
from numba.core.registry import cpu_target

cpu_target.typing_context.refresh()
cpu_target.target_context.refresh()
sys.dont_write_bytecode = True
gc.freeze()  # or each program would, at its end, look for garbage among all of this: a quarter of a second
for line in sys.stdin:
    program = json.loads(line)
    child = program["child"] or os.fork()
    if child == 0:
        os.chdir(program["folder"])
        os.environ.clear()
        os.environ.update(program["environment"])
        for number, name in enumerate(["/dev/null", program["out"], program["err"]]):
            os.dup2(os.open(name, os.O_RDONLY if number == 0 else os.O_WRONLY), number)
        sys.stdin = open(0, closefd=False)
        sys.path[:0] = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
        sys.path.insert(0, os.path.dirname(program["path"]))
        sys.argv = program["arguments"]
        runpy.run_path(program["path"], run_name="__main__")
        sys.exit()
    if program["child"]:
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)
    else:
        print(child, flush=True)
"""


class Forks:
    """Runs programs; ends with its ``with`` block."""

    def __enter__(self) -> Forks:
        self._server = subprocess.Popen(
            [sys.executable, "-c", SERVER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        return self

    def __exit__(self, *_: object) -> None:
        self._server.communicate(timeout=60)

    def run(self, path: Path, *arguments: str, **how: Any) -> subprocess.CompletedProcess[str]:
        """Run a file as ``python path arguments`` would."""
        return self.start(path, *arguments, **how)()

    def start(
        self,
        path: Path,
        *arguments: str,
        folder: Path | None = None,
        environment: dict[str, str] | None = None,
    ) -> Callable[[], subprocess.CompletedProcess[str]]:
        """Begin to run a file; what is returned waits for its end.

        Where nothing can be forked, in a process that loads all anew.
        """
        command = [sys.executable, str(path), *arguments]
        if not hasattr(os, "fork"):
            pipe = subprocess.PIPE
            process = subprocess.Popen(
                command, cwd=folder, env=environment, stdout=pipe, stderr=pipe, text=True
            )

            def ended() -> subprocess.CompletedProcess[str]:
                out, err = process.communicate()
                return subprocess.CompletedProcess(command, process.returncode, out, err)

            return ended
        said = tempfile.TemporaryDirectory()
        out, err = Path(said.name, "out"), Path(said.name, "err")
        out.touch()
        err.touch()
        child = self._ask(
            {
                "child": 0,
                "path": str(path),
                "arguments": command[1:],
                "folder": str(folder or path.parent),
                "environment": dict(os.environ if environment is None else environment),
                "out": str(out),
                "err": str(err),
            }
        )

        def waited() -> subprocess.CompletedProcess[str]:
            code = self._ask({"child": child})
            with said:
                return subprocess.CompletedProcess(command, code, out.read_text(), err.read_text())

        return waited

    def _ask(self, program: dict[str, Any]) -> int:
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        print(json.dumps(program), file=self._server.stdin, flush=True)
        return int(self._server.stdout.readline())
