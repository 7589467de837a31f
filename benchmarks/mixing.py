"""How well the chains of DPMallowsMixture mix on real ballots: R-hat, effective draws per CPU second, score.

``python -m benchmarks.mixing [WORD ...] [NAME=VALUE ...]`` fits samples of two Irish constituencies under
``PERMIX_DATA`` with default settings, or others (``n_burn_in=2000``), and prints the worst R-hat over all
quantities that are one number per draw, the fewest effective draws, and the mean log probability of ballots
held out. Words choose among "west" and "north", "400" and "4000".
"""

from __future__ import annotations

import ast
import os
import sys
import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from permix import DPMallowsMixture, Rankings, read_preflib
from permix.convergence import ess_bulk
from permix.posterior.diagnostics import r_hat

FILES = {"west": "00001-00000002.soi.gz", "north": "00001-00000001.soi.gz"}
GOALS = {400: (1.02, 30.0), 4000: (1.1, 240.0)}  # R-hat, CPU seconds (two cores)
N_HELD_OUT = 2000


class Mixing(NamedTuple):
    """What one fit showed."""

    r_hat: float
    ess: float
    seconds: float  # of CPU
    groups: str  # mean and standard deviation in each chain
    score: float  # mean log probability of a ballot held out
    agreement: float  # adjusted Rand index of the estimates of each chain
    model: Any


def ballots(name: str, n: int, seed: int = 0) -> tuple[Rankings, Rankings]:
    """Sample ballots to fit and ballots to hold out."""
    whole = read_preflib(Path(os.environ["PERMIX_DATA"]) / "preflib" / FILES[name]).expand()
    rows = np.random.default_rng(seed).permutation(len(whole))
    return whole[rows[:n]], whole[rows[n : n + N_HELD_OUT]]


def measure(fitted: Rankings, held_out: Rankings, **options: Any) -> Mixing:
    """Fit and look at the draws."""
    from permix import adjusted_rand, point_estimate

    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = DPMallowsMixture(**{"random_state": 0, **options}).fit(fitted)
    seconds = time.process_time() - start
    draws = model.posterior_["posterior"]
    known = {name: draws[name].to_numpy().astype(float) for name in draws if draws[name].ndim == 2}
    groups = known["n_groups"]
    each = [point_estimate(labels[::10], random_state=0).labels for labels in draws["labels"].to_numpy()[:2]]
    return Mixing(
        max(r_hat(values) for values in known.values()),
        min(ess_bulk(values) for values in known.values()),
        seconds,
        ", ".join(f"{chain.mean():.1f} ± {chain.std():.1f}" for chain in groups),
        float(model.score(held_out)),
        adjusted_rand(*each) if len(each) > 1 else float("nan"),
        model,
    )


def rows(words: tuple[str, ...] = (), **options: Any) -> list[dict[str, object]]:
    """One row for each sample whose name has one of the words."""
    table: list[dict[str, object]] = []
    for name in FILES:
        for n, (goal, most) in GOALS.items():
            if words and not all(word in (name, str(n)) for word in words):
                continue
            found = measure(*ballots(name, n), **options)
            table.append(
                {
                    "what": f"Dublin {name.title()}, {n} ballots",
                    "ours": f"R-hat {found.r_hat:.3f}, {found.ess:.0f} effective draws",
                    "reference": f"goal: R-hat {goal}",
                    "ratio": found.ess / found.seconds,
                    "note": f"{found.seconds:.0f} CPU s (goal {most:.0f}); groups {found.groups}; held out "
                    f"{found.score:.4f}; chains' estimates agree to {found.agreement:.2f}; "
                    "ratio: effective draws per CPU second",
                }
            )
    return table


def run() -> list[dict[str, object]]:
    """Rows for the table of benchmarks."""
    return rows()


if __name__ == "__main__":
    asked = dict(word.split("=", 1) for word in sys.argv[1:] if "=" in word)
    for row in rows(
        tuple(word for word in sys.argv[1:] if "=" not in word),
        **{name: ast.literal_eval(value) for name, value in asked.items()},
    ):
        print(*row.values(), sep="; ", flush=True)
