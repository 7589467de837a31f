"""Several runs of EM from different starts, at the same time; the best one is the fit."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from permix.data.labels import Array
from permix.distributions.conditioning.agent_posteriors import Profile
from permix.distributions.conditioning.components import MallowsComponents
from permix.errors import Argument, DataError
from permix.mallows.em import Follow, MallowsEM, Run
from permix.mallows.parameters import MallowsParameters
from permix.mallows.start import first_components, seeded_center
from permix.runtime.interrupts import Interrupts
from permix.runtime.progress import Display
from permix.runtime.seeds import seed_sequence, stream_key
from permix.runtime.threads import at_most, run_in_threads

# Rows in exact or in sampled steps beyond which starts are tried on a part of the agents.
MOST_EXACT = 20_000
MOST_SAMPLED = 1_500
# Attempts to move a component elsewhere; so many from the same place, whatever the number of threads.
N_RELOCATIONS = 24
AT_ONCE = 4
N_STOCHASTIC_AGAIN = 5


class Climbed(NamedTuple):
    """The best run, what every start reached, and numbers that name the random numbers to come."""

    best: Run
    reached: Array
    key: Array
    interrupted: bool


def best_of_restarts(profile: Profile, settings: MallowsParameters) -> Climbed:
    """Climb from ``settings.n_init`` starts and go on from the best."""
    if not len(profile.stated):
        raise DataError("no row says anything about any pair of items, so there is nothing to fit")
    if settings.n_components > profile.n_agents:
        raise DataError(
            Argument("n_components", settings.n_components),
            f" is more than the {profile.n_agents} agents who said something",
        )
    # One start is enough where there is only one component: the consensus of all.
    n_restarts = settings.n_init if settings.n_components > 1 else 1
    seeds = seed_sequence(settings.random_state).spawn(n_restarts + 1)
    rng = np.random.default_rng(seeds[-1])
    part = _race_track(profile, n_restarts, rng)
    with at_most(settings.n_jobs), Interrupts() as interrupts, Display(settings.progress) as display:
        workers = _Workers(settings, interrupts, display)

        def climb(index: int) -> Run:
            rng = np.random.default_rng(seeds[index])
            em = MallowsEM(part, settings, stream_key(rng))
            return em.climb(first_components(part, settings, rng), workers.follow(index))

        workers.phase = "trying starts"
        runs = workers.all(climb, n_restarts)
        reached = np.array([float(run.log_likelihood) for run in runs])
        best = runs[int(np.argmax(reached))]
        em = MallowsEM(part, settings, stream_key(rng))
        if em.exact and settings.n_components > 1:
            best = _relocated(em, best, rng, workers)
        if part is not profile:
            workers.phase = "all agents"
            em = MallowsEM(profile, settings, stream_key(rng))
            reached *= em.n_agents / MallowsEM(part, settings, stream_key(rng)).n_agents
            best = workers.one(partial(em.climb, best.components, n_stochastic=0))
        if not em.exact:
            workers.phase = "averaging"
            best = workers.one(partial(em.average, best))
    return Climbed(best, reached, stream_key(rng), workers.interrupted)


def _race_track(profile: Profile, n_restarts: int, rng: np.random.Generator) -> Profile:
    """Return a random part of very many agents, to try starts on; the best goes on with everybody."""
    cost = len(profile.partitioned) / MOST_EXACT + len(profile.sampled) / MOST_SAMPLED
    if n_restarts == 1 or cost <= 2.0:
        return profile
    rows = np.sort(rng.choice(profile.stated, int(len(profile.stated) / cost), replace=False))
    return Profile.of(profile.preferences[rows])


def _relocated(em: MallowsEM, best: Run, rng: np.random.Generator, workers: _Workers) -> Run:
    """Take a component away and put it elsewhere; keep what climbs higher.

    The usual bad optimum has two components on one group of agents and one on two groups. Starting anew
    rarely mends that; moving one component does.
    """
    workers.phase = "moving components"
    for _ in range(0, N_RELOCATIONS, AT_ONCE):
        attempts = [
            (MallowsEM(em.profile, em.settings, stream_key(rng)), _moved(em, best.components, rng))
            for _ in range(AT_ONCE)
        ]

        def climb(index: int, attempts: list[tuple[MallowsEM, MallowsComponents]] = attempts) -> Run:
            attempt, components = attempts[index]
            return attempt.climb(components, workers.follow(index), N_STOCHASTIC_AGAIN)

        best = max([best, *workers.all(climb, AT_ONCE)], key=lambda run: run.log_likelihood)
        if workers.interrupted:
            break
    return best


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


class _Workers:
    """Runs of EM in threads, a line about them on the terminal, and Ctrl-C that keeps what was reached."""

    def __init__(self, settings: MallowsParameters, interrupts: Interrupts, display: Display) -> None:
        self.n_jobs = settings.n_jobs
        self.interrupts = interrupts
        self.display = display
        self.phase = "starting"
        self._reached: dict[int, tuple[int, float]] = {}

    @property
    def interrupted(self) -> bool:
        """Whether the user pressed Ctrl-C."""
        return self.interrupts.interrupted

    def follow(self, index: int) -> Follow:
        """Let one task report and hear of Ctrl-C."""

        def report(iteration: int, value: float) -> None:
            self._reached[index] = (iteration, value)
            reached = list(self._reached.values())
            iteration, best = max(count for count, _ in reached), max(value for _, value in reached)
            self.display.update(f"iteration {iteration} · log-likelihood {best:,.1f}")

        return Follow(report, lambda: self.interrupts.stopped)

    def all(self, task: Callable[[int], Run], n: int) -> list[Run]:
        """Run tasks 0..n-1; after Ctrl-C those that had begun end soon, and only the first still begins."""
        self._reached.clear()
        self.display.begin(f"EM, {self.phase}", n if n > 1 else None)

        def work(index: int) -> Run:
            run = task(index)
            self.display.step()
            return run

        return run_in_threads(work, range(n), self.n_jobs, interrupts=self.interrupts, least=1)

    def one(self, task: Callable[[Follow], Run]) -> Run:
        """Run a single task, which may use all threads, and also after Ctrl-C: it then ends soon."""
        return self.all(lambda index: task(self.follow(index)), 1)[0]
