"""EM under other distances than Kendall's: one climb on 5,000 sushi rankings.

``python -m benchmarks.mallows_distances [DISTANCE ...]``. MSmix's EM takes 0.76 s a start with six Spearman
components on these rankings. A climb here is the same: rounds of EM from one start until nothing rises,
and a look at neighbors of centers beside. A start of permix is several climbs, three from agents far from
each other and up to six from crossings of what these found. Without the folder that PERMIX_DATA names,
rankings are made.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Any

import numpy as np

N_COMPONENTS = 6
REFERENCE = {"spearman": 0.76}  # seconds a start of MSmix, by its authors' kind of run
N_CLIMBS = 10


def votes() -> Any:
    """Sushi rankings, or as many of as many items from six groups."""
    from permix.datasets import load_sushi, make_mallows_mixture

    if os.environ.get("PERMIX_DATA"):
        return load_sushi("a").data
    return make_mallows_mixture(5000, 10, N_COMPONENTS, dispersion=0.7, random_state=1).data


def climbs(distance: str, n_climbs: int = N_CLIMBS) -> tuple[list[float], list[float]]:
    """Return CPU seconds of single climbs, and the log-likelihood per ranking that each reached."""
    from permix.distributions.conditioning.agent_posteriors import Profile
    from permix.estimators.preference_input import as_preferences
    from permix.mallows.climbs import Follow
    from permix.mallows.parameters import MallowsParameters
    from permix.mallows.restarts import rows_of

    table = as_preferences(votes())
    rows = rows_of(Profile.of(table.collapse()), MallowsParameters(N_COMPONENTS, distance=distance))
    silent = Follow(lambda iteration, value: None, lambda: False)
    seconds, reached = [], []
    for seed in range(-1, n_climbs):  # the first one compiles
        start = time.process_time()
        rng = np.random.default_rng(max(seed, 0))
        em = rows.em(np.array([1, max(seed, 0)], np.uint64))
        run = em.climb(rows.start(rng), silent)
        if seed >= 0:
            seconds.append(time.process_time() - start)
            reached.append(float(run.log_likelihood) / table.n_agents)
    return seconds, reached


def run(words: tuple[str, ...] = ()) -> list[dict[str, object]]:
    """Time climbs under each distance."""
    rows: list[dict[str, object]] = []
    for distance in words or ("spearman", "footrule", "hamming"):
        seconds, reached = climbs(distance)
        mean, goal = float(np.mean(seconds)), REFERENCE.get(distance, float("nan"))
        note = (
            f"{min(seconds):.2f} to {max(seconds):.2f} CPU s, best {max(reached):.4f} per ranking, "
            f"worst {min(reached):.4f}"
        )
        what = f"EM, {N_COMPONENTS} components, {distance}, a climb"
        rows.append({"what": what, "ours": mean, "reference": goal, "ratio": mean / goal, "note": note})
        print(f"{what}: {mean:.2f} CPU s; {note}", file=sys.stderr, flush=True)
    return rows


if __name__ == "__main__":
    run(tuple(sys.argv[1:]))
