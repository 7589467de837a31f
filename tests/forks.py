"""Python programs in processes of their own that need not load Numba: it costs a second each time.

One process loads Numba and what of permix compiles, but no kernel, and forks for every program.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

SERVER = """
import json, os, runpy, sys
import numpy, numba, permix.kernels.jit
from numba.core.registry import cpu_target

cpu_target.typing_context.refresh()
cpu_target.target_context.refresh()
sys.dont_write_bytecode = True
for line in sys.stdin:
    program = json.loads(line)
    child = os.fork()
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
    _, status = os.waitpid(child, 0)
    print(os.waitstatus_to_exitcode(status), flush=True)
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

    def run(
        self,
        path: Path,
        *arguments: str,
        folder: Path | None = None,
        environment: dict[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run a file as ``python path arguments`` would, where nothing can be forked in just that way."""
        if not hasattr(os, "fork"):
            command = [sys.executable, str(path), *arguments]
            return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
        with tempfile.TemporaryDirectory() as name:
            out, err = Path(name, "out"), Path(name, "err")
            out.touch()
            err.touch()
            program = {
                "path": str(path),
                "arguments": [str(path), *arguments],
                "folder": str(folder or path.parent),
                "environment": dict(os.environ if environment is None else environment),
                "out": str(out),
                "err": str(err),
            }
            assert self._server.stdin is not None
            assert self._server.stdout is not None
            print(json.dumps(program), file=self._server.stdin, flush=True)
            code = int(self._server.stdout.readline())
            return subprocess.CompletedProcess(program["arguments"], code, out.read_text(), err.read_text())
