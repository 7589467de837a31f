"""Several runs of EM from different starts, at the same time; the best one is the fit.

Where E-steps are exact, a run is a small search of its own: climbs from a few starts, then from crossings of
the optima that these found (``Optima``). Runs know nothing of each other, so that it says something if
they agree.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple, Protocol, TypeVar

import numpy as np

from permix.data.labels import Array
from permix.data.preferences import Preferences
from permix.distributions.conditioning.agent_posteriors import Profile
from permix.distributions.conditioning.components import MallowsComponents
from permix.distributions.conditioning.optima import Optima
from permix.errors import Argument, DataError
from permix.mallows.agreement import Agreement, agreement
from permix.mallows.climbs import Follow, Run
from permix.mallows.em import N_STOCHASTIC, MallowsEM
from permix.mallows.parameters import MallowsParameters
from permix.mallows.resampling import begin, resampled_shares
from permix.mallows.results import same_optimum
from permix.mallows.rounds.sharded import ShardedRounds
from permix.mallows.start import first_components, seeded_center
from permix.runtime.executors import Executor, Recipe, new_token
from permix.runtime.interrupts import Interrupts
from permix.runtime.progress import REDRAW_SECONDS, Display
from permix.runtime.seeds import seed_sequence, stream_key
from permix.runtime.threads import at_most, run_in_threads

# Rows in exact or in sampled steps beyond which starts are tried on a part of the agents.
MOST_EXACT = 20_000
MOST_SAMPLED = 1_500
# The first of these, where numbers of groups are compared: many fits, each of which a smaller one leads to.
MOST_COMPARED = 4_000
# Different optima of a part that go on with everybody, where steps are exact: the best need not stay it.
N_POLISHED = 3
# Climbs of a run from starts of its own, and then from crossings of what they found.
N_STARTS = 3
N_CROSSINGS = 6
# Unless so many runs have come to the best optimum, all that they found is crossed, so often for each, and
# again where that leads higher. Only what is best in each would be too much alike.
ENOUGH_AGREE = 5
MORE_CROSSINGS = 8
MOST_TIMES_CROSSED = 3
# One of so many starts is fresh where others have a smaller mixture to begin with.
FRESH_SHARE = 3

T = TypeVar("T")


class Search(NamedTuple):
    """What came of all starts."""

    best: Run
    reached: Array  # log-likelihood of every run
    agreement: Agreement  # of the groups of the best with those of every run
    key: Array  # names the random numbers to come
    resampled: Array | None  # (samples, K): shares had other agents been asked
    interrupted: bool  # whether the user stopped it


class Everybody(NamedTuple):
    """All rows, where those that starts are tried on are a sample of them; and how many agents they are."""

    rows: ShardedRounds
    n_agents: int


class Rows(Protocol):
    """What agents said, as the restarts see it."""

    @property
    def profile(self) -> Profile:
        """The rows."""

    @property
    def n_agents(self) -> int:
        """How many agents said something."""

    def em(self, key: Array, log_weights: Array | None = None) -> MallowsEM:
        """Return EM over the rows; ``key`` names its random numbers."""

    def start(self, rng: np.random.Generator) -> MallowsComponents:
        """Return components to climb from."""

    def center(self, rng: np.random.Generator) -> Array:
        """Return a ranking near to that of an agent drawn at random."""

    def part(self, rng: np.random.Generator) -> Rows:
        """Return the rows, or those of a random part of the agents where they are very many."""


@dataclass(frozen=True)
class KendallRows:
    """Rows of any kind under Kendall's distance."""

    profile: Profile
    settings: MallowsParameters
    compared: bool = False  # whether this is one of many fits

    @property
    def n_agents(self) -> int:
        """How many agents said something."""
        return self.profile.n_agents

    def em(self, key: Array, log_weights: Array | None = None) -> MallowsEM:
        """Return EM over the rows."""
        return MallowsEM(self.profile, self.settings, key, log_weights)

    def start(self, rng: np.random.Generator) -> MallowsComponents:
        """Return components from k-means on a random part of the agents."""
        return first_components(self.profile, self.settings, rng)

    def center(self, rng: np.random.Generator) -> Array:
        """Return the ranking of an agent drawn at random, completed by the consensus of some others."""
        return seeded_center(self.profile, rng)

    def part(self, rng: np.random.Generator) -> KendallRows:
        """Return the rows, or those of a random part of the agents where they are very many."""
        profile, most = self.profile, MOST_COMPARED if self.compared else MOST_EXACT
        cost = len(profile.partitioned) / most + len(profile.sampled) / MOST_SAMPLED
        if cost <= 2.0:
            return self
        said = profile.preferences[profile.stated]
        share = share_with_rows(said.counts, len(said) / cost)
        # Agents and not rows: what many say is a large part of what there is, and would be in it or not.
        rows, _ = said.split(max(1, said.n_agents - round(share * said.n_agents)), rng)
        return KendallRows(Profile.of(rows), self.settings, self.compared)


def share_with_rows(counts: Array, n_rows: float) -> float:
    """Return the share of all agents among whom so many different rows are expected, by halving."""
    low, high = 0.0, 1.0
    for _ in range(30):
        share = (low + high) / 2
        if float((1.0 - (1.0 - share) ** counts).sum()) > n_rows:
            high = share
        else:
            low = share
    return high


def rows_of(profile: Profile, settings: MallowsParameters, compared: bool = False) -> Rows:
    """Return the rows as EM with this distance takes them; ``compared`` fits try starts on fewer."""
    if settings.distance == "kendall":
        return KendallRows(profile, settings, compared)
    from permix.mallows.distances.em import ListedRows

    return ListedRows.of(profile, settings)


def best_of_restarts(
    profile: Profile,
    settings: MallowsParameters,
    other: MallowsComponents | None = None,
    everybody: Everybody | None = None,
) -> Search:
    """Climb from ``settings.n_init`` starts and go on from the best, with ``everybody`` at the end.

    Where numbers of components are compared there is an ``other`` mixture. If it is smaller, most starts are
    that one with more components, at agents drawn at random; if not, it was fitted to a part of the agents,
    and is kept where no start leads higher. Starts are then tried on fewer agents.
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
    smaller = other if other is not None and other.n_components < settings.n_components else None
    if smaller is not None:
        n_restarts = max(2, n_restarts)
    known = []
    if other is not None and smaller is None and settings.n_components > 1:
        known.append(replace(other, by_agent=None))
    source = seed_sequence(settings.random_state)
    rng = np.random.default_rng(source.spawn(1)[0])
    rows = rows_of(profile, settings, compared=other is not None)
    part = rows if n_restarts == 1 else rows.part(rng)
    with at_most(settings.n_jobs), Interrupts() as interrupts, Display(settings.progress) as display:
        run_all = partial(_run_all, settings.n_jobs, interrupts, display)

        def search(
            phase: str, known: list[Run], n_fresh: int, seeds: list[np.random.SeedSequence]
        ) -> list[list[Run]]:
            starts = [Start(known, None if at < n_fresh else smaller, seed) for at, seed in enumerate(seeds)]
            if everybody is not None and everybody.rows.data.executor.remote:
                return _on_workers(everybody.rows.data.executor, part.profile.preferences, settings, starts)
            return run_all(phase, [partial(_crossed, part, settings, start) for start in starts])

        def climbs(phase: str, rows: Rows, begun: list[MallowsComponents]) -> list[Run]:
            tasks = [partial(_climbed, rows.em(stream_key(rng)), each) for each in begun]
            return [run for found in run_all(phase, tasks) for run in found]

        em = part.em(stream_key(rng))
        n_fresh = max(1, n_restarts // FRESH_SHARE)
        found = search("trying starts", [], n_fresh, source.spawn(n_restarts))
        runs = [optima[0] for optima in found]
        if known and part is rows and not interrupts.interrupted:
            found.append(climbs("the optimum of a part", rows, known))
        best = max((optima[0] for optima in found), key=_height)
        within = same_optimum(em.n_agents)
        n_best = sum(_height(run) >= _height(best) - within for run in runs)
        # Of many mixtures that are compared, each led to by a smaller one, agreement can wait.
        if n_best < min(ENOUGH_AGREE, n_restarts) and em.exact and smaller is None:
            for _ in range(MOST_TIMES_CROSSED):
                if interrupts.interrupted:
                    break
                optima = _optima(em.n_agents, found)
                found = search("crossing optima", optima.runs, n_restarts, source.spawn(n_restarts))
                higher = max((optima[0] for optima in found), key=_height)
                if _height(higher) <= _height(best) + within:
                    break
                best = higher
            if not any(best is run for run in runs):
                runs = [*runs, best]
        reached = np.array([_height(run) for run in runs])
        of_part = em
        if part is not rows or everybody is not None:
            n_part = em.n_agents
            em = rows.em(stream_key(rng))
            if everybody is not None:
                em = MallowsEM.over(*everybody, em)
            reached *= em.n_agents / n_part
            if em.exact and everybody is None:
                several = _optima(n_part, [[best], *found]).runs[:N_POLISHED]
                begun = [*known, *(run.components for run in several)]
                best = max(climbs("all agents", rows, begun), key=_height)
            else:
                best = run_all("all agents", [partial(_climbed, em, best.components)])[0][0]
        if not em.exact:
            best = run_all("averaging", [lambda follow: [em.average(best, follow)]])[0][0]
        best = best._replace(components=best.components.sorted_by_weight())
        mixtures = [run.components for run in runs]
        agreed = agreement(of_part, best.components, mixtures)
        key, resampled = stream_key(rng), None
        if of_part.exact and settings.n_components > 1 and not interrupts.interrupted:
            few = part if n_restarts > 1 else rows.part(np.random.default_rng(key))
            beginning = begin(partial(few.em, key), [best.components, *mixtures])
            n_agents = rows.n_agents if everybody is None else everybody.n_agents
            resampled = resampled_shares(
                beginning, n_restarts, n_agents, key, partial(run_all, "other samples of agents")
            )
    return Search(best, reached, agreed, key, resampled, interrupts.interrupted)


def _optima(n_agents: int, found: list[list[Run]]) -> Optima[Run]:
    """Return what several searches found, one of each family."""
    optima: Optima[Run] = Optima(n_agents, same_optimum(n_agents))
    for run in (run for each in found for run in each):
        optima.add(run)
    return optima


def _climbed(em: MallowsEM, components: MallowsComponents, follow: Follow) -> list[Run]:
    """Climb from components as they are."""
    return [em.climb(components, follow, 0)]


def _height(run: Run) -> float:
    return float(run.log_likelihood)


class Start(NamedTuple):
    """Where a search begins: with ``known`` optima of different families, the best first; or from nothing.

    Starts are agents far from each other, or a ``smaller`` mixture with more components.
    """

    known: list[Run]
    smaller: MallowsComponents | None
    seed: np.random.SeedSequence


def _on_workers(
    executor: Executor, rows: Preferences, settings: MallowsParameters, starts: Sequence[Start]
) -> list[list[Run]]:
    """Search from all starts where an executor has its workers, which get the rows once for each."""
    token = new_token()
    given = [Recipe(f"{token}-{at}", f"start {at + 1}", Start, start) for at, start in enumerate(starts)]
    found: list[list[Run]] = executor.map_shards(_searched, given, (rows, settings))
    executor.forget(given)
    return found


def _searched(start: Start, shared: tuple[Preferences, MallowsParameters]) -> list[Run]:
    rows, settings = shared
    nobody = Follow(lambda iteration, value: None, lambda: False)
    return _crossed(rows_of(Profile.of(rows), settings), settings, start, nobody)


def _crossed(rows: Rows, settings: MallowsParameters, start: Start, follow: Follow) -> list[Run]:
    """Climb from some starts, or begin with known optima; cross what was found. The best is the first."""
    known, smaller, seed = start
    rng = np.random.default_rng(seed)
    em, k = rows.em(stream_key(rng)), settings.n_components
    optima = Optima(em.n_agents, same_optimum(em.n_agents), known)
    n_starts = 0 if known else N_STARTS if em.exact and k > 1 else 1
    # A mixture that a smaller one led to is one of many that are compared.
    n_crossings = MORE_CROSSINGS if known else N_CROSSINGS if smaller is None else N_CROSSINGS // 2
    for at in range(n_starts + n_crossings):
        if at < n_starts:
            first = rows.start(rng) if smaller is None else _extended(rows, smaller, k, rng)
        elif len(optima.runs) > 1 and not follow.stopped():
            first = optima.crossed(rng, lambda: rows.center(rng))
        else:
            break
        em.key = stream_key(rng)
        # Crossings are near to optima: random rounds would lead away from what is right in them.
        n_stochastic = N_STOCHASTIC if at < n_starts else 0
        run = em.climb(first, follow, n_stochastic)
        optima.add(run)
        if follow.stopped():
            break
    return optima.runs


def _extended(rows: Rows, smaller: MallowsComponents, k: int, rng: np.random.Generator) -> MallowsComponents:
    n_more = k - smaller.n_components
    centers = np.concatenate([smaller.centers, [rows.center(rng) for _ in range(n_more)]])
    decays = np.append(smaller.decays, np.full(n_more, np.median(smaller.decays)))
    weights = np.append(smaller.weights * smaller.n_components, np.ones(n_more)) / k
    return MallowsComponents(smaller.items, weights, centers, decays, distance=smaller.distance)


def _run_all(
    n_jobs: int | None,
    interrupts: Interrupts,
    display: Display,
    phase: str,
    tasks: Sequence[Callable[[Follow], list[T]]],
) -> list[list[T]]:
    """Run tasks in threads, with a line about them on the terminal.

    After Ctrl-C those that had begun end soon, with what they reached, and only the first still begins.
    """
    reached: dict[int, tuple[int, float]] = {}
    said = -math.inf
    display.begin(f"EM, {phase}", len(tasks) if len(tasks) > 1 else None)

    def work(index: int) -> list[T]:
        def report(iteration: int, value: float) -> None:
            nonlocal said
            reached[index] = (iteration, value)
            now = time.monotonic()
            if now < said + REDRAW_SECONDS:  # nobody would see it
                return
            said = now
            iterations, values = zip(*list(reached.values()), strict=True)
            display.update(f"iteration {max(iterations)} · log-likelihood {max(values):,.1f}")

        found = tasks[index](Follow(report, lambda: interrupts.stopped))
        display.step()
        return found

    return run_in_threads(work, range(len(tasks)), n_jobs, interrupts=interrupts, least=1)
