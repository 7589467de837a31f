"""One chain: the loop, its snapshots, and what it keeps."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

import numpy as np

from permix.runtime.interrupts import Interrupts
from permix.sampling.draws import LARGE, Block, Tally, length, on_disk, own_copy, stack
from permix.sampling.protocol import Array, ChainState, Move, MoveInfo
from permix.sampling.store import ChainFolder, Snapshot

# Where time is short, burn-in is so many times shorter at most.
LEAST_BURN_IN = 10
# Cached statistics are computed afresh at iterations that are multiples of this, in every run, and a
# chain resumes only from such an iteration: that is why a resumed chain repeats an undisturbed one
# to the last bit.
REFRESH = 32
# Draws joined into one block in memory when there is no store.
BLOCK = 256
# Seconds between two looks at the live numbers of a state, which may cost as much as a step.
WATCH_SECONDS = 0.25


class Settings(NamedTuple):
    """How long chains run and what they keep."""

    targets: tuple[int, ...]  # numbers of draws, the last of them if those before do not suffice
    n_burn_in: int
    n_thin: int
    n_chains: int

    @property
    def most_draws(self) -> int:
        return self.targets[-1]

    def iterations(self, n_draws: int) -> int:
        """Return how many iterations so many draws take."""
        return self.n_burn_in + n_draws * self.n_thin


@dataclass
class Monitor:
    """What a running chain lets others see. Only the chain writes to it."""

    n_iterations: int  # of the present stage
    n_burn_in: int
    iteration: int = 0
    most_iterations: int = 0  # of all stages, where there are more
    tally: Tally = field(default_factory=dict)
    numbers: Mapping[str, float] = field(default_factory=dict)
    # The last write to the store that failed and has not been made good since.
    write_error: OSError | None = None
    watched: bool = False
    # Bytes of one draw, known once the chain has begun.
    draw_bytes: int = 0


class Chain:
    """One chain, from its seed (or from its folder in a store) to its kept draws."""

    def __init__(
        self,
        seed: np.random.SeedSequence,
        make_state: Callable[[np.random.Generator], ChainState],
        move: Move,
        burn_in_move: Move | None,
        settings: Settings,
        folder: ChainFolder | None,
        checkpoint_seconds: float,
        interrupts: Interrupts,
    ) -> None:
        self.settings = settings
        lengths = [settings.iterations(target) for target in settings.targets]
        self.monitor = Monitor(lengths[0], settings.n_burn_in, most_iterations=lengths[-1])
        self.blocks: list[Block] = []
        self.seconds = 0.0
        self.n_burnt_in: int | None = None  # iterations of burn-in, where time was too short for all
        self._make_state, self._folder, self._interrupts = make_state, folder, interrupts
        self._rng = np.random.Generator(np.random.PCG64(seed))
        # Copied together, so that parts which both share stay shared within the chain.
        self._move, self._burn_in_move = copy.deepcopy((move, burn_in_move or move))
        self._checkpoint_seconds = checkpoint_seconds
        self._pending: list[dict[str, Array]] = []
        self.tally: Tally = {}  # changes proposed and made since burn-in ended
        self._snapshot: Snapshot | None = None
        self._state: ChainState | None = None  # once the chain has begun, so that it can go on
        self._iteration = 0
        self._last_look = -np.inf

    @property
    def n_draws(self) -> int:
        """Draws kept so far, those of earlier runs included."""
        return sum(map(length, self.blocks)) + len(self._pending)

    def load(self) -> None:
        """Read what the store holds of this chain."""
        saved = None if self._folder is None else self._folder.load()
        if saved is not None:
            self._snapshot, self.blocks, self.tally, self.seconds = saved
            reached = max(self._snapshot.iteration, self._iteration_of_draw(self.n_draws))
            self.monitor.iteration = min(self.monitor.n_iterations, reached)

    def run(self, n_draws: int) -> None:
        """Run until so many draws are there, or work is to stop. More may be asked for later."""
        if self.n_draws >= n_draws or self._interrupts.stopped:
            return
        started = last_write = time.monotonic()
        seconds_before = self.seconds
        if self._state is None:
            self._state = self._make_state(self._rng)
            self._iteration = self._resume(self._state)
        state, iteration = self._state, self._iteration
        self.monitor.draw_bytes = sum(value.nbytes for value in own_copy(state.record()).values())
        # Draws between the snapshot and the end of an earlier run are there already.
        known_until = self._iteration_of_draw(self.n_draws)
        settings, monitor = self.settings, self.monitor
        end = self._iteration_of_draw(n_draws)
        while True:
            enough = settings.n_burn_in // LEAST_BURN_IN <= iteration < settings.n_burn_in
            if enough and self._interrupts.hurried and self._folder is None:
                # What there is time for: draws from where the chain has come to. A store is to be exact.
                self.n_burnt_in, iteration = iteration, settings.n_burn_in
            if iteration % REFRESH == 0:
                if self._folder is not None:
                    self._snapshot = self._take_snapshot(iteration, state)
                    now = time.monotonic()
                    if now - last_write >= self._checkpoint_seconds:
                        self.seconds = seconds_before + now - started
                        self._write()
                        last_write = now
                elif len(self._pending) >= BLOCK or self.monitor.draw_bytes * len(self._pending) >= LARGE:
                    self._close_block()
                state.refresh()
            if iteration == end or self._interrupts.stopped:
                break
            if iteration == settings.n_burn_in:
                self.tally = {}
            move = self._burn_in_move if iteration < settings.n_burn_in else self._move
            count(self.tally, move.step(self._rng, state))
            iteration += 1
            if iteration > known_until:
                since = iteration - settings.n_burn_in
                if since > 0 and since % settings.n_thin == 0:
                    self._pending.append(own_copy(state.record()))
                monitor.iteration = iteration
            if monitor.watched:
                self._look(state)
        self._iteration = iteration
        self.seconds = seconds_before + time.monotonic() - started
        if self._folder is not None:
            self._write()  # what cannot be written stays pending, to be written before what follows
        else:
            self._close_block()

    def all_blocks(self) -> list[Block]:
        """Return all draws, also those that could not be written yet."""
        return [*self.blocks, stack(self._pending)] if self._pending else self.blocks

    def scalars(self, n_draws: int) -> dict[str, Array]:
        """Return, over the first so many draws, all quantities that are one number per draw."""
        blocks = self.all_blocks()
        names = [name for name, values in blocks[0].items() if values.ndim == 1]
        return {name: np.concatenate([block[name] for block in blocks])[:n_draws] for name in names}

    def _iteration_of_draw(self, n_draws: int) -> int:
        return self.settings.iterations(n_draws) if n_draws else 0

    def _resume(self, state: ChainState) -> int:
        if self._snapshot is None:
            return 0
        iteration, generator, arrays, tally = self._snapshot
        self._rng.bit_generator.state = generator
        for place, part in self._parts(state).items():
            own = {name: array for name, array in arrays.items() if name.startswith(place)}
            part.restore({name.removeprefix(place): array for name, array in own.items()})
        self.tally = copy.deepcopy(tally)
        return iteration

    def _parts(self, state: ChainState) -> dict[str, ChainState | Move]:
        """What a snapshot is made of, by what the names of its arrays begin with."""
        burn_in = {} if self._burn_in_move is self._move else {"burn_in_move/": self._burn_in_move}
        return {"state/": state, "move/": self._move, **burn_in}

    def _take_snapshot(self, iteration: int, state: ChainState) -> Snapshot:
        kept = [(place, part.checkpoint()) for place, part in self._parts(state).items()]
        arrays = {place + name: np.array(array) for place, part in kept for name, array in part.items()}
        generator = cast(dict[str, Any], self._rng.bit_generator.state)
        return Snapshot(iteration, copy.deepcopy(generator), arrays, copy.deepcopy(self.tally))

    def _write(self) -> None:
        """Write new draws, then the snapshot that follows them; what cannot be written stays pending."""
        assert self._folder is not None
        assert self._snapshot is not None
        block = stack(self._pending) if self._pending else None
        try:
            self._folder.write(block, self._snapshot, tally=self.tally, seconds=self.seconds)
        except OSError as error:
            self.monitor.write_error = error
        else:
            self.monitor.write_error = None
            self._close_block()

    def _close_block(self) -> None:
        if self._pending:
            self.blocks.append(on_disk(stack(self._pending)))
            self._pending = []

    def _look(self, state: ChainState) -> None:
        now = time.monotonic()
        if now - self._last_look >= WATCH_SECONDS:
            self._last_look = now
            self.monitor.numbers = dict(state.progress())
            self.monitor.tally = copy.deepcopy(self.tally)


def count(tally: Tally, info: MoveInfo) -> None:
    """Add what one step reported; of a move made of moves, its parts."""
    for part in info.parts:
        count(tally, part)
    if not info.parts:
        totals = tally.setdefault(info.name, [0, 0])
        totals[0] += int(info.proposed)
        totals[1] += int(info.accepted)
