"""Start-up: import, help, first fit of a fresh install (everything compiles), later fits."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np


def seconds(command: list[str], environment: dict[str, str]) -> float:
    """Return the time of one command."""
    start = time.perf_counter()
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - start


def run() -> list[dict[str, object]]:
    """Time the command line from an empty compilation cache and from a full one."""
    rows: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        environment = {**os.environ, "PERMIX_COMPILED": str(folder / "numba")}
        python = sys.executable
        bare = min(seconds([python, "-c", "import numpy"], environment) for _ in range(3))
        for what, command, goal in (
            ("import permix", [python, "-c", "import permix"], 0.5),
            ("permix --help", [python, "-m", "permix", "--help"], 0.5),
        ):
            taken = min(seconds(command, environment) for _ in range(3))
            note = f"times `import numpy`; goal: under {goal} s"
            rows.append({"what": what, "ours": taken, "reference": bare, "ratio": taken / bare, "note": note})
        rng = np.random.default_rng(0)
        points = np.concatenate([rng.normal(-4, 1, (100, 2)), rng.normal(4, 1, (100, 2))])
        np.savetxt(folder / "points.csv", points, delimiter=",", header="x,y", comments="")
        fit = [
            python,
            "-m",
            "permix",
            "fit",
            "dp-mixture",
            str(folder / "points.csv"),
            "-o",
            str(folder / "fit.permix"),
        ]
        fit += ["--draws", "20", "--burn-in", "10", "--quiet"]
        for family in ("gaussian-niw", "gaussian"):
            # A cache of its own, so that the second family is as cold as the first.
            environment["PERMIX_COMPILED"] = str(folder / family)
            command = [*fit, "--family", family, "--force"]
            cold = seconds(command, environment)
            warm = min(seconds(command, environment) for _ in range(3))
            note = "cold; goals: cold under 20 s, warm under 2 s"
            rows.append(
                {
                    "what": f"permix fit, {family}",
                    "ours": warm,
                    "reference": cold,
                    "ratio": cold / warm,
                    "note": note,
                }
            )
    return rows


if __name__ == "__main__":
    for row in run():
        print(row)
