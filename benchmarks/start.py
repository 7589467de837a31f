"""CPU seconds of whole commands in fresh processes: with nothing compiled yet, and later.

``python -m benchmarks.start [NAME ...]`` runs those named only; ``--functions`` lists what was compiled;
``--list`` writes the list of what first runs compile, ``permix/kernels/first_runs.json``, anew.
"""

from __future__ import annotations

import json
import os
import resource
import shlex
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np

# The command, the budget of its first run with nothing compiled, and the budget of later ones.
COMMANDS: dict[str, tuple[str, float, float]] = {
    "import permix": ("-c 'import permix'", 0.5, 0.5),
    "--help": ("-m permix --help", 0.5, 0.5),
    "consensus": ("-m permix consensus votes.csv", 2.0, 0.6),
    "info": ("-m permix info votes.csv", 0.6, 0.6),
    "info --as table": ("-m permix info points.csv --as table", 0.6, 0.6),
    "fit mallows": ("-m permix fit mallows votes.csv -k 2", 6.0, 2.0),
    "fit bayes-mallows": ("-m permix fit bayes-mallows votes.csv -k 2", 8.0, 2.0),
    "summary": ("-m permix summary votes.permix", 0.6, 0.6),
    "fit angle": ("-m permix fit angle votes.csv -k 2", 5.0, 2.0),
    "fit cocluster": ("-m permix fit cocluster matrix.csv", 12.0, 2.0),
    "fit cocluster --prior mondrian": ("-m permix fit cocluster matrix.csv --prior mondrian", 14.0, 2.0),
    "fit dp-mixture": ("-m permix fit dp-mixture points.csv", 15.0, 2.0),
    "fit dp-mallows": ("-m permix fit dp-mallows votes.csv", 18.0, 2.0),
    "demo": ("-m permix demo", 25.0, 3.0),
}
CHAINS = " --draws 50 --burn-in 20"
# What first_runs.json lists.
FITS = [*(what for what in COMMANDS if what.startswith("fit ")), "fit kde", "fit mean-shift"]


def write_files(folder: Path) -> None:
    """Write the small files that the commands read."""
    rng = np.random.default_rng(0)
    names = np.array(["tea", "milk", "water", "juice", "coffee", "cider"])
    swapped = [sorted(range(6), key=lambda item: sign * item + rng.normal(0, 1.5)) for sign in [1, -1] * 30]
    lines = [",".join(names[order]) for order in swapped]
    (folder / "votes.csv").write_text("\n".join(["first,second,third,fourth,fifth,sixth", *lines]) + "\n")
    points = np.concatenate([rng.normal(-4, 1, (100, 2)), rng.normal(4, 1, (100, 2))])
    np.savetxt(folder / "points.csv", points, delimiter=",", header="x,y", comments="")
    cells = np.kron(rng.random((2, 3)), np.ones((12, 4))) > rng.random((24, 12))
    header = ",".join(f"question{column}" for column in range(12))
    np.savetxt(folder / "matrix.csv", cells, delimiter=",", header=header, comments="", fmt="%d")


def cpu_seconds(command: str, folder: Path, environment: dict[str, str]) -> float:
    """Return the processor time of one command, that of its children included."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        f"{sys.executable} {command}", shell=True, cwd=folder, env=environment, capture_output=True, text=True
    )
    if done.returncode:
        raise RuntimeError(f"permix {command} ended with {done.returncode}:\n{done.stderr}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def fit_command(what: str) -> str:
    """Return a command that fits, in a short run, and writes the fit to a file."""
    chains = CHAINS if "dp-" in what or "coc" in what else ""
    command = COMMANDS[what][0] if what in COMMANDS else f"-m permix {what} votes.csv"
    return f"{command} --force -o votes.permix{chains}"


def run(names: list[str] | None = None, functions: bool = False) -> list[dict[str, object]]:
    """Run each command from a compilation cache of its own, empty at first and then full."""
    rows: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_files(folder)
        for what, (command, first_budget, later_budget) in COMMANDS.items():
            if names and what not in names:
                continue
            cache = folder / what.replace(" ", "_")
            environment = {**os.environ, "PERMIX_COMPILED": str(cache)}
            if what == "summary" and not (folder / "votes.permix").exists():
                cpu_seconds("-m permix fit mallows votes.csv -k 2 -o votes.permix", folder, environment)
            if what.startswith("fit "):
                command = fit_command(what)
            first = cpu_seconds(command, folder, environment)
            compiled = [path.name.rsplit("-", 1)[0] for path in cache.rglob("*.bin")]
            later = min(cpu_seconds(command, folder, environment) for _ in range(3))
            note = f"later; goals {first_budget:g} and {later_budget:g} s; compiled {len(compiled)} functions"
            rows.append(
                {"what": what, "ours": first, "reference": later, "ratio": first / later, "note": note}
            )
            if functions:
                for function, count in sorted(Counter(compiled).items()):
                    print(f"  {count} {function}")
    return rows


RECORD = """
import json, sys
from permix.kernels.first_runs import recording
from permix.cli import main
calls = []
try:
    with recording(calls):
        main()
finally:
    print(json.dumps(calls))
"""


def kernels_called(command: str, folder: Path) -> list[list[object]]:
    """Return the kernels that Python calls in a command, as first_runs.json lists them."""
    arguments = shlex.split(command)
    done = subprocess.run(
        [sys.executable, "-c", RECORD, *arguments], cwd=folder, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout.splitlines()[-1])


def first_runs() -> dict[str, list[list[object]]]:
    """Return what the first runs of commands that compile for long call."""
    with tempfile.TemporaryDirectory() as name:
        write_files(Path(name))
        return {
            what: kernels_called(fit_command(what).removeprefix("-m permix "), Path(name)) for what in FITS
        }


if __name__ == "__main__":
    arguments = sys.argv[1:]
    if "--list" in arguments:
        from permix.kernels.first_runs import write_first_runs

        write_first_runs(first_runs())
        sys.exit()
    for row in run([name for name in arguments if name != "--functions"], "--functions" in arguments):
        print(f"{row['what']:32} first {row['ours']:6.1f}  {row['reference']:5.2f} {row['note']}", flush=True)
