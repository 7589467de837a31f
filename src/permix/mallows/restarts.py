"""Several runs of EM from different starts, at the same time; the best one is the fit."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, nullcontext
from functools import partial
from types import TracebackType
from typing import NamedTuple, Self

import numpy as np

from permix.data.labels import Array
from permix.distributions.base import one_thread
from permix.distributions.conditioning.agent_posteriors import Profile
from permix.distributions.conditioning.components import MallowsComponents
from permix.errors import Argument, DataError, Message
from permix.mallows.em import Follow, MallowsEM, Run
from permix.mallows.parameters import MallowsParameters
from permix.mallows.start import first_components, seeded_center
from permix.sampling.compiling import announce_compilation
from permix.sampling.loop import n_threads_for
from permix.sampling.seeds import seed_sequence
from permix.sampling.status import StatusLine

POLL_SECONDS = 0.05
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
    _check(profile, settings)
    # One start is enough where there is only one component: the consensus of all.
    n_restarts = settings.n_init if settings.n_components > 1 else 1
    seeds = seed_sequence(settings.random_state).spawn(n_restarts + 1)
    rng = np.random.default_rng(seeds[-1])
    part = _race_track(profile, n_restarts, rng)
    with _Workers(settings, n_restarts) as workers:

        def climb(index: int) -> Run:
            rng = np.random.default_rng(seeds[index])
            em = MallowsEM(part, settings, _key(rng))
            return em.climb(first_components(part, settings, rng), workers.follow(index))

        workers.phase = "trying starts"
        runs = workers.all(climb, n_restarts)
        reached = np.array([float(run.log_likelihood) for run in runs])
        best = runs[int(np.argmax(reached))]
        em = MallowsEM(part, settings, _key(rng))
        if em.exact and settings.n_components > 1:
            best = _relocated(em, best, rng, workers)
        if part is not profile:
            workers.phase = "all agents"
            em = MallowsEM(profile, settings, _key(rng))
            reached *= em.n_agents / MallowsEM(part, settings, _key(rng)).n_agents
            best = workers.one(partial(em.climb, best.components, n_stochastic=0))
        if not em.exact:
            workers.phase = "averaging"
            best = workers.one(partial(em.average, best))
    return Climbed(best, reached, _key(rng), workers.interrupted)


def _race_track(profile: Profile, n_restarts: int, rng: np.random.Generator) -> Profile:
    """Return a random part of very many agents, to try starts on; the best goes on with everybody."""
    stated = np.union1d(profile.partitioned, profile.sampled)
    cost = len(profile.partitioned) / MOST_EXACT + len(profile.sampled) / MOST_SAMPLED
    if n_restarts == 1 or cost <= 2.0:
        return profile
    rows = np.sort(rng.choice(stated, int(len(stated) / cost), replace=False))
    return Profile.of(profile.preferences[rows])


def _relocated(em: MallowsEM, best: Run, rng: np.random.Generator, workers: _Workers) -> Run:
    """Take a component away and put it elsewhere; keep what climbs higher.

    The usual bad optimum has two components on one group of agents and one on two groups. Starting anew
    rarely mends that; moving one component does.
    """
    workers.phase = "moving components"
    for _ in range(0, N_RELOCATIONS, AT_ONCE):
        attempts = [
            (MallowsEM(em.profile, em.settings, _key(rng)), _moved(em, best.components, rng))
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


def _key(rng: np.random.Generator) -> Array:
    return rng.integers(0, 2**64, size=2, dtype=np.uint64)


class _Workers:
    """Threads that climb, a line about them on the terminal, and Ctrl-C that keeps what was reached."""

    def __init__(self, settings: MallowsParameters, n_tasks: int) -> None:
        self.n_threads = n_threads_for(settings.n_jobs, max(n_tasks, AT_ONCE))
        self._alone = settings.n_jobs == 1  # not even threads within a run
        self.status = StatusLine(settings.progress)
        self.stop = threading.Event()
        self.interrupted = False
        self.phase = "starting"
        self._state: dict[int, tuple[int, float]] = {}
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self._pool = ThreadPoolExecutor(self.n_threads)
        self._stack.enter_context(announce_compilation(self.status.wanted))
        self._stack.enter_context(self.status)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop.set()
        self._stack.close()
        self._pool.shutdown(wait=kind is None, cancel_futures=True)

    def follow(self, index: int) -> Follow:
        """Let one task report and hear of Ctrl-C."""

        def report(iteration: int, value: float) -> None:
            self._state[index] = (iteration, value)

        return Follow(report, self.stop.is_set)

    def all(self, task: Callable[[int], Run], n: int) -> list[Run]:
        """Run tasks 0..n-1; after Ctrl-C those that had begun end soon, and the others do not begin."""
        self._state.clear()

        def work(index: int) -> Run | None:
            if self.stop.is_set() and index:
                return None
            with one_thread() if n > 1 or self._alone else nullcontext():
                return task(index)

        futures = [self._pool.submit(work, index) for index in range(n)]
        while True:
            try:
                if not wait(futures, POLL_SECONDS).not_done:
                    break
                self.status.update(self._describe(futures))
            except KeyboardInterrupt:
                if self.interrupted:
                    raise
                self.interrupted = True
                self.stop.set()
        return [run for future in futures if (run := future.result()) is not None]

    def one(self, task: Callable[[Follow], Run]) -> Run:
        """Run a single task, which may use all threads, and also after Ctrl-C: it then ends soon."""
        return self.all(lambda index: task(self.follow(index)), 1)[0]

    def _describe(self, futures: list[Future[Run | None]]) -> str:
        state = dict(self._state)
        if not state:
            return f"EM, {self.phase}"
        done = sum(future.done() for future in futures)
        iteration = max(count for count, _ in state.values())
        best = max(value for _, value in state.values())
        runs = f" · {done} of {len(futures)} runs done" if len(futures) > 1 else ""
        return f"EM, {self.phase}{runs} · iteration {iteration} · log-likelihood {best:,.1f}"


def _check(profile: Profile, settings: MallowsParameters) -> None:
    stated = np.union1d(profile.partitioned, profile.sampled)
    if not len(stated):
        raise DataError("no row says anything about any pair of items, so there is nothing to fit")
    n_agents = int(profile.counts[stated].sum())
    if settings.n_components > n_agents:
        raise DataError(
            Message(
                Argument("n_components", settings.n_components),
                f" is more than the {n_agents} agents who said something",
            )
        )
