"""Several chains at once: threads, Ctrl-C, errors, progress."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from numbers import Integral
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from permix.convergence import INTERRUPTED
from permix.errors import Argument, DataError, Message, PermixWarning
from permix.runtime.cost import ESTIMATE_AFTER, warn_of_disk, warn_of_memory, warn_of_time
from permix.runtime.interrupts import Interrupts
from permix.runtime.progress import Display
from permix.runtime.seeds import describe, rebuild, seed_sequence
from permix.runtime.threads import n_threads, run_in_threads
from permix.sampling import auto
from permix.sampling.chain import REFRESH, Chain, Settings
from permix.sampling.draws import Draws, assemble, numbers_in
from permix.sampling.progress import ChainDisplay
from permix.sampling.protocol import ChainState, Move
from permix.sampling.store import ChainFolder, open_store

MakeState = Callable[[np.random.Generator], ChainState]
LESS_MEMORY = Message("a larger ", Argument("n_thin"), " and a smaller ", Argument("n_draws"), " take less")
LESS_TIME = Message("fewer iterations (", Argument("n_draws"), ", ", Argument("n_burn_in"), ") take less")


def run_chains(
    make_state: MakeState | Sequence[MakeState],
    move: Move,
    *,
    n_draws: int | Literal["auto"],
    n_burn_in: int,
    n_thin: int,
    n_chains: int,
    size: int = 0,
    patience: int = 1,
    random_state: object = None,
    n_jobs: int | None = None,
    progress: bool | None = None,
    store: str | os.PathLike[str] | None = None,
    fingerprint: Mapping[str, Any],
    burn_in_move: Move | None = None,
    checkpoint_seconds: float = 5.0,
) -> Draws:
    """Run chains and return their draws.

    A chain makes ``n_burn_in`` steps, then ``n_draws * n_thin`` more and keeps the state after every
    ``n_thin``-th of these. With ``n_draws="auto"`` chains go on until their draws suffice, or up to a limit
    that is the lower the larger ``size`` is, the numbers that an iteration goes through, and ``patience``
    times as high for chains that disagree; see :mod:`permix.sampling.auto`. The draws depend on
    ``random_state`` and the settings alone: not on the number of threads, and not on how often a run with a
    store was killed and started again.

    ``make_state``, or one for each chain, makes the initial state of a chain from its generator; ``move``
    must be exact, ``burn_in_move``, the step during burn-in if it differs, need not be. ``n_jobs`` chains
    run at the same time (by default as many as there are processors). ``progress`` shows a live display, by
    default after two seconds in a terminal or a notebook.

    ``store`` is a folder that keeps draws and states while the chains run, written every
    ``checkpoint_seconds``. The same call on the same folder goes on where the last one ended; a larger
    ``n_draws`` makes the chains longer. A store made for another ``fingerprint``, which identifies model and
    data in values that JSON holds, is refused with a DataError, a damaged one with a FileFormatError.

    Ctrl-C ends the chains early; before all have kept a draw, or a second time, it is a KeyboardInterrupt.
    """
    targets = auto.stages(size, patience) if n_draws == "auto" else (_whole("n_draws", n_draws, 1),)
    lengths = (_whole("n_burn_in", n_burn_in, 0), _whole("n_thin", n_thin, 1))
    settings = Settings(targets, *lengths, _whole("n_chains", n_chains, 1))
    if not move.exact:
        raise DataError(
            f"{type(move).__name__} is an optimizer: it does not leave the posterior invariant, so the "
            "draws would be wrong. Use it during burn-in only and an exact move afterwards."
        )
    if not checkpoint_seconds >= 0:
        raise DataError(f"checkpoint_seconds must not be negative, but is {checkpoint_seconds}.")
    n_threads(n_jobs)  # a wrong one is refused before a store is made
    with ExitStack() as stack:
        interrupts = stack.enter_context(Interrupts())
        root = seed_sequence(random_state)
        folders: list[ChainFolder | None] = [None] * n_chains
        if store is not None:
            lasting = {**settings._asdict(), "refresh": REFRESH}
            del lasting["targets"]  # a run may be made longer
            asked = None if random_state is None else describe(root)
            opened = open_store(store, lasting, asked, describe(root), fingerprint)
            root = rebuild(stack.enter_context(opened))
            folders = [ChainFolder(Path(store) / f"chain-{index}") for index in range(n_chains)]
        seeds = root.spawn(n_chains)
        makers = [make_state] * n_chains if callable(make_state) else make_state
        chains = [
            Chain(seed, maker, move, burn_in_move, settings, folder, checkpoint_seconds, interrupts)
            for seed, maker, folder in zip(seeds, makers, folders, strict=True)
        ]
        for chain in chains:
            chain.load()
        usual = auto.stages(size)[-1] if n_draws == "auto" else None
        kept = _run_all(chains, usual, n_jobs, interrupts, progress)
    with Display(progress) as display:
        display.begin("collecting draws")
        return _collect(chains, settings, seeds, kept, store)


def _whole(name: str, value: object, least: int) -> int:
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise DataError(f"{name} must be an integer of at least {least}, but is {value!r}.")
    return int(value)


def _run_all(
    chains: Sequence[Chain],
    usual: int | None,
    n_jobs: object,
    interrupts: Interrupts,
    progress: bool | None,
) -> auto.Kept:
    """Run the chains until they have made enough draws, or until Ctrl-C; return which to keep.

    They need not go as far as they may if there is a ``usual`` number of draws, beyond which only chains that
    disagree go on.
    """
    targets = chains[0].settings.targets
    most = targets[-1]

    def run(index: int, target: int) -> None:
        try:
            chains[index].run(target)
        except BaseException as error:
            error.add_note(f"This happened in chain {index} of {len(chains)} (counted from 0).")
            raise

    first, n_made = None, 0
    with ExitStack() as stack:
        display: ChainDisplay | None = None
        watch = _Watch(chains)
        for target in targets:
            if any(chain.n_draws < target for chain in chains):
                for chain in chains:
                    chain.monitor.n_iterations = chain.settings.iterations(target)
                if display is None:
                    monitors = [chain.monitor for chain in chains]
                    display = stack.enter_context(ChainDisplay(monitors, progress))
                work = partial(run, target=target)
                run_in_threads(work, range(len(chains)), n_jobs, interrupts=interrupts, watch=watch.look)
            n_made = min(target, *(chain.n_draws for chain in chains))
            if usual is not None and n_made == target:
                scalars = _scalars(chains, n_made)
                first = auto.first_to_keep(scalars)
                if first is None and n_made >= usual and not auto.disagree(scalars):
                    most = n_made
                    break
            if first is not None or n_made < target:
                break
        if display is not None:
            display.look()
            display.print_lines()
    blocks = chains[0].all_blocks()
    room = auto.room_for(numbers_in(blocks[0]) * len(chains)) if blocks else most
    if usual is None and n_made > room:
        n_kept = len(auto.evenly(0, n_made, room))
        warnings.warn(
            f"{n_kept:,} of {n_made:,} draws of each chain are kept, evenly spaced: all chains together keep "
            f"{auto.MOST_NUMBERS_KEPT:,} labels and other numbers at most, as memory is limited",
            PermixWarning,
            stacklevel=4,
        )
    return auto.Kept.of(first, n_made, most, usual is not None, room)


def _scalars(chains: Sequence[Chain], n_made: int) -> dict[str, npt.NDArray[Any]]:
    """Return quantities that are one number per draw, over chain and draw."""
    found = [chain.scalars(n_made) for chain in chains]
    return {name: np.stack([of_chain[name] for of_chain in found]) for name in found[0]}


class _Watch:
    """Warns, once of each, of a failed write, of draws that will not fit into memory, and of long chains."""

    def __init__(self, chains: Sequence[Chain]) -> None:
        self._chains = chains
        self._since = (time.monotonic(), self._iterations())
        self._warm = self._sized = self._timed = self._failed = False

    def _iterations(self) -> int:
        return sum(chain.monitor.iteration for chain in self._chains)

    def look(self) -> None:
        """Warn if it is time to."""
        settings = self._chains[0].settings
        error = _write_error(self._chains)
        if error is not None and not self._failed:
            self._failed = True
            warnings.warn(
                f"A checkpoint could not be written: {error}. The chains go on in memory and try again "
                "at every checkpoint; the store stays as it was.",
                PermixWarning,
                stacklevel=6,  # of who called run_chains, through the threads' watcher
            )
        size = max(chain.monitor.draw_bytes for chain in self._chains)
        if size and not self._sized:
            self._sized = True
            n_draws, n_chains = settings.most_draws, len(self._chains)
            what = f"{n_draws:,} draws of {n_chains} chains"
            of_draw = size * n_chains
            n_kept = min(n_draws, auto.room_for(of_draw))  # of one byte each, about
            warn_of_memory(of_draw * n_kept, what, LESS_MEMORY, stacklevel=7)
            warn_of_disk(of_draw * n_draws, what, LESS_MEMORY, stacklevel=7)
        now, done = time.monotonic(), self._iterations()
        elapsed, fresh = now - self._since[0], done - self._since[1]
        if self._timed or elapsed < ESTIMATE_AFTER or fresh < len(self._chains):
            return
        if not self._warm:  # the first iterations compile: they say nothing about the others
            self._warm, self._since = True, (now, done)
            return
        self._timed = True
        left = sum(chain.monitor.n_iterations for chain in self._chains) - done
        warn_of_time(elapsed * left / fresh, LESS_TIME, stacklevel=7)


def _write_error(chains: Sequence[Chain]) -> OSError | None:
    return next((c.monitor.write_error for c in chains if c.monitor.write_error is not None), None)


def _collect(
    chains: Sequence[Chain],
    settings: Settings,
    seeds: Sequence[np.random.SeedSequence],
    kept: auto.Kept,
    store: str | os.PathLike[str] | None,
) -> Draws:
    n_draws, interrupted = len(kept.draws), kept.ended == INTERRUPTED
    unwritten = _write_error(chains)
    if unwritten is not None:
        warnings.warn(
            f"The last checkpoint could not be written: {unwritten}. All draws are in memory and are "
            f"returned, but {os.fspath(store or '')} holds fewer. Make room and run again to complete it.",
            PermixWarning,
            stacklevel=3,
        )
    if interrupted:
        if n_draws == 0:
            raise KeyboardInterrupt
        steps = ", ".join(str(chain.monitor.iteration) for chain in chains)
        way_on = "with store=... an interrupted run can be continued"
        if store is not None:
            way_on = f"the same call with store={os.fspath(store)!r} continues the run"
        warnings.warn(
            f"interrupted after {steps} of {chains[0].monitor.n_iterations} iterations: {n_draws} draws kept "
            f"per chain; {way_on}.",
            PermixWarning,
            stacklevel=3,
        )
    burnt_in = [chain.n_burnt_in for chain in chains if chain.n_burnt_in is not None]
    if burnt_in:
        warnings.warn(
            f"time was short: burn-in ended after {min(burnt_in):,} of {settings.n_burn_in:,} iterations",
            PermixWarning,
            stacklevel=3,
        )
    names = list(dict.fromkeys(name for chain in chains for name in chain.tally))
    totals = np.array([[chain.tally.get(name, [0, 0]) for name in names] for chain in chains], np.int64)
    totals = totals.reshape(len(chains), len(names), 2)
    return Draws(
        arrays=assemble([chain.all_blocks() for chain in chains], kept.draws),
        statistics={
            "moves": names,
            "proposed": totals[:, :, 0],
            "accepted": totals[:, :, 1],
            "seconds": np.array([chain.seconds for chain in chains]),
        },
        interrupted=interrupted,
        n_draws=n_draws,
        n_made=int(kept.draws[-1]) + 1,
        ended=kept.ended,
        n_stored=0 if store is None else min(chain.n_draws for chain in chains),
        seeds=tuple(describe(seed) for seed in seeds),
    )
