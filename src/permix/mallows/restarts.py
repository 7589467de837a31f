"""Several runs of EM from different starts, at the same time; the best one is the fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from permix.data.labels import Array
from permix.distributions.conditioning.agent_posteriors import Profile
from permix.distributions.conditioning.components import MallowsComponents
from permix.errors import Argument, DataError
from permix.mallows.agreement import group_matches
from permix.mallows.em import Follow, MallowsEM, Run
from permix.mallows.parameters import MOST_TIMES, MallowsParameters
from permix.mallows.results import same_optimum
from permix.mallows.start import first_components, seeded_center
from permix.runtime.interrupts import Interrupts
from permix.runtime.progress import Display
from permix.runtime.seeds import seed_sequence, stream_key
from permix.runtime.threads import at_most, run_in_threads

# Rows in exact or in sampled steps beyond which starts are tried on a part of the agents.
MOST_EXACT = 20_000
MOST_SAMPLED = 1_500
# A run ends after so many attempts in vain, one after another, to move groups elsewhere.
IN_VAIN = 4
# How often two groups are moved at once.
TWO_AT_ONCE = 0.5
N_STOCHASTIC_AGAIN = 5
# Unless so many runs have come to the best optimum, there are more starts, up to MOST_TIMES ``n_init``.
ENOUGH_AGREE = 3
# One of so many starts is fresh where others have a smaller mixture to begin with.
FRESH_SHARE = 3

Task = Callable[[Follow], Run]


class Search(NamedTuple):
    """What came of all starts."""

    best: Run
    reached: Array  # log-likelihood of every run
    matches: Array  # (runs, groups): how well the groups of the best are matched in every run
    key: Array  # names the random numbers to come
    interrupted: bool  # whether the user stopped it


def best_of_restarts(
    profile: Profile, settings: MallowsParameters, smaller: MallowsComponents | None = None
) -> Search:
    """Climb from ``settings.n_init`` starts and go on from the best.

    With a ``smaller`` mixture most starts are that one with more components, at agents drawn at random.
    """
    if not len(profile.stated):
        raise DataError("no row says anything about any pair of items, so there is nothing to fit")
    if settings.n_components > profile.n_agents:
        raise DataError(
            Argument("n_components", settings.n_components),
            f" is more than the {profile.n_agents} agents who said something",
        )
    # One start is enough where there is only one component: the consensus of all.
    n_restarts = settings.n_init if settings.n_components > 1 else 1
    if smaller is not None:
        n_restarts = max(2, n_restarts)
    source = seed_sequence(settings.random_state)
    rng = np.random.default_rng(source.spawn(1)[0])
    part = _race_track(profile, n_restarts, rng)
    with at_most(settings.n_jobs), Interrupts() as interrupts, Display(settings.progress) as display:
        run_all = partial(_run_all, settings.n_jobs, interrupts, display)

        def climb(fresh: bool, seed: np.random.SeedSequence, follow: Follow) -> Run:
            rng = np.random.default_rng(seed)
            em = MallowsEM(part, settings, stream_key(rng))
            if smaller is None or fresh:
                run = em.climb(first_components(part, settings, rng), follow)
            else:
                larger = _extended(part, smaller, settings.n_components, rng)
                run = em.climb(larger, follow, n_stochastic=N_STOCHASTIC_AGAIN)
            return _relocated(em, run, rng, follow) if em.exact and settings.n_components > 1 else run

        em = MallowsEM(part, settings, stream_key(rng))
        n_fresh = max(1, n_restarts // FRESH_SHARE)
        runs: list[Run] = []
        # A mixture that a smaller one led to is one of many that are compared: agreement can wait.
        for _ in range(MOST_TIMES if smaller is None else 1):
            seeds = enumerate(source.spawn(n_restarts))
            runs += run_all("trying starts", [partial(climb, at < n_fresh, seed) for at, seed in seeds])
            reached = np.array([float(run.log_likelihood) for run in runs])
            n_best = int(np.sum(reached >= reached.max() - same_optimum(em.n_agents)))
            if n_best >= min(ENOUGH_AGREE, n_restarts) or not em.exact or interrupts.interrupted:
                break
        best = runs[int(np.argmax(reached))]
        of_part = em
        if part is not profile:
            n_part = em.n_agents
            em = MallowsEM(profile, settings, stream_key(rng))
            reached *= em.n_agents / n_part
            best = run_all("all agents", [partial(em.climb, best.components, n_stochastic=0)])[0]
        if not em.exact:
            best = run_all("averaging", [partial(em.average, best)])[0]
        best = best._replace(components=best.components.sorted_by_weight())
        matches = group_matches(of_part, best.components, [run.components for run in runs])
    return Search(best, reached, matches, stream_key(rng), interrupts.interrupted)


def _race_track(profile: Profile, n_restarts: int, rng: np.random.Generator) -> Profile:
    """Return a random part of very many agents, to try starts on; the best goes on with everybody."""
    cost = len(profile.partitioned) / MOST_EXACT + len(profile.sampled) / MOST_SAMPLED
    if n_restarts == 1 or cost <= 2.0:
        return profile
    rows = np.sort(rng.choice(profile.stated, int(len(profile.stated) / cost), replace=False))
    return Profile.of(profile.preferences[rows])


def _relocated(em: MallowsEM, run: Run, rng: np.random.Generator, follow: Follow) -> Run:
    """Take components away and put them elsewhere; keep what climbs higher.

    The usual bad optimum has two components on one group of agents and one on two groups. Starting anew
    rarely mends that; moving one component does, and sometimes only moving two.
    """
    reach, in_vain = run.gained, 0
    while in_vain < IN_VAIN and not follow.stopped():
        moved = _moved(em, run.components, rng)
        if rng.random() < TWO_AT_ONCE:
            moved = _moved(em, moved, rng)
        em.key = stream_key(rng)
        marks = {"to_beat": float(run.log_likelihood), "reach": reach}
        found = em.climb(moved, follow, n_stochastic=N_STOCHASTIC_AGAIN, **marks)
        reach, in_vain = max(reach, found.gained), in_vain + 1
        if found.log_likelihood > run.log_likelihood:
            if found.log_likelihood > run.log_likelihood + same_optimum(em.n_agents):
                in_vain = 0
            run = found
    return run


def _extended(
    profile: Profile, smaller: MallowsComponents, k: int, rng: np.random.Generator
) -> MallowsComponents:
    n_more = k - smaller.n_components
    centers = np.concatenate([smaller.centers, [seeded_center(profile, rng) for _ in range(n_more)]])
    decays = np.append(smaller.decays, np.full(n_more, np.median(smaller.decays)))
    weights = np.append(smaller.weights * smaller.n_components, np.ones(n_more)) / k
    return MallowsComponents(smaller.items, weights, centers, decays)


def _moved(em: MallowsEM, components: MallowsComponents, rng: np.random.Generator) -> MallowsComponents:
    centers, decays, weights = components.centers.copy(), components.decays.copy(), components.weights.copy()
    k = components.n_components
    # One that nobody belongs to is moved first, and gets members to begin with.
    idle = np.flatnonzero(weights * em.n_agents < 0.5)
    which = int(rng.choice(idle if len(idle) else k))
    centers[which] = seeded_center(em.profile, rng)
    decays[which] = np.median(decays)
    weights[which] = max(weights[which], 1.0 / k)
    return MallowsComponents(components.items, weights / weights.sum(), centers, decays)


def _run_all(
    n_jobs: int | None, interrupts: Interrupts, display: Display, phase: str, tasks: Sequence[Task]
) -> list[Run]:
    """Run tasks in threads, with a line about them on the terminal.

    After Ctrl-C those that had begun end soon, with what they reached, and only the first still begins.
    """
    reached: dict[int, tuple[int, float]] = {}
    display.begin(f"EM, {phase}", len(tasks) if len(tasks) > 1 else None)

    def work(index: int) -> Run:
        def report(iteration: int, value: float) -> None:
            reached[index] = (iteration, value)
            iterations, values = zip(*list(reached.values()), strict=True)
            display.update(f"iteration {max(iterations)} · log-likelihood {max(values):,.1f}")

        run = tasks[index](Follow(report, lambda: interrupts.stopped))
        display.step()
        return run

    return run_in_threads(work, range(len(tasks)), n_jobs, interrupts=interrupts, least=1)
