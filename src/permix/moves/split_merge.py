"""Split-merge: whole groups are split and merged."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Literal
from weakref import WeakKeyDictionary

import numpy as np

from permix.errors import DataError
from permix.moves.base import Info, Move, check_at_least
from permix.moves.gibbs import work_of_sweep
from permix.moves.split_merge_jit import Sequential, split_merge
from permix.moves.state import MixtureState

PROPOSALS = ("sequential", "restricted-gibbs", "informed")
USUAL_SCANS = {"restricted-gibbs": 5, "informed": 2}
# A datum scored and added by itself costs about as much as so many scores of a sweep.
SCORE_ALONE = 10.0
# What a step costs before any proposal, in the same unit.
ALONE = 300.0
# Work of proposals, in sweeps. While it is learned, and where they move some data; where they move next to
# none, since Gibbs does better with the time; and where they move many.
USUAL_SHARE, LEAST_SHARE, EARNED_SHARE = 1.0, 0.25, 4.0
# Which share of the data proposals must move in the time of a sweep for that, beyond a few of each group.
SOME, MANY = 0.001, 0.02
FEW = 3
MOST_PROPOSALS = 100
# Weight of all earlier steps, in what proposals cost, after one more.
MEMORY = 0.99


@dataclasses.dataclass
class SplitMerge(Move):
    """Propose to split a group or to merge two, so that many data change groups at once.

    Parameters
    ----------
    proposal : {"sequential", "restricted-gibbs", "informed"}
        How a split is drawn: data join one side or the other one by one in random order (Dahl 2005), or by a
        scan of Gibbs between both sides from a launch state (Jain & Neal 2004), which costs several times as
        much. "informed" does as the second and draws the two groups to merge by how well they go together,
        not at random: for data each of which says little, such as rows of a matrix with many missing cells.
    n_scans : int, optional
        Scans that lead to the launch state, default 5 for "restricted-gibbs" and 2 for "informed".
    n_proposals : int, optional
        Proposals in one step. The number is fixed: if it followed the state of the chain, the posterior would
        not be left invariant. None has it learned during burn-in: as many as take a quarter of the work of a
        Gibbs sweep; all of it where proposals that are accepted move some of the data in groups of more than
        a few, and four times that where they move many, which Gibbs would not. Then the mean of the number in
        a step is fixed, and may be less than 1. Without burn-in it is 1.

    Notes
    -----
    A proposal scores the members of the groups that it is about three times (2 ``n_scans`` + 5 times for
    "restricted-gibbs" and "informed"), whatever the number of data and of other groups. Half of the proposals
    are merges, most of which one look at marginal likelihoods refuses; published moves draw pairs uniformly,
    so that with many groups nearly all are merges. "informed" compares all pairs after every change.

    Examples
    --------
    >>> SplitMerge("restricted-gibbs", n_scans=3)
    SplitMerge(proposal='restricted-gibbs', n_scans=3, n_proposals=10)
    """

    proposal: Literal["sequential", "restricted-gibbs", "informed"] = "sequential"
    n_scans: int | None = None
    n_proposals: int | None = 10

    def __post_init__(self) -> None:
        if self.proposal not in PROPOSALS:
            raise DataError(f"proposal must be one of {', '.join(PROPOSALS)}, got {self.proposal!r}")
        if self.n_proposals is not None:
            check_at_least(self.n_proposals, "n_proposals", 1)
        self.rate = float(self.n_proposals or 1)
        if self.n_scans is not None:
            check_at_least(self.n_scans, "n_scans", 1)
            if self.proposal == "sequential":
                raise DataError(
                    f"n_scans={self.n_scans} does nothing with sequential allocation; leave it out, or set"
                    " proposal='restricted-gibbs'"
                )

    def step(self, rng: np.random.Generator, state: MixtureState) -> Info:
        """Make ``n_proposals`` proposals; fewer than two data cannot be split or merged."""
        if self.n_proposals is None:
            return self.propose(rng, state, int(self.rate + rng.random()))
        return self.propose(rng, state, self.n_proposals)

    def propose(self, rng: np.random.Generator, state: MixtureState, n_proposals: int) -> Info:
        """Make so many proposals."""
        if state.n < 2 or n_proposals == 0:
            return Info("split-merge", 0, 0)
        state.require_seated("split-merge")
        prior = state.prior
        workspace = _WORKSPACES.get(state)
        if workspace is None or workspace.family_version != state.family_version:
            workspace = _WORKSPACES[state] = Workspace(state)
        # What is not asked for is not compiled.
        propose: Any = split_merge
        how: Any = Sequential(0)
        n_spare = 1
        scratch: tuple[Any, ...] = (workspace.sides, workspace.union)
        if self.proposal == "informed":
            from permix.moves.informed_jit import SPARE
            from permix.moves.informed_jit import informed_split_merge as propose

            how, n_spare, scratch = self._n_scans, SPARE, (workspace.sides,)
        elif self.proposal == "restricted-gibbs":
            from permix.moves.published_jit import RestrictedGibbs

            how = RestrictedGibbs(self._n_scans)
        fixed = (how, prior.joining, workspace.totals, prior.opening)
        made, accepted, work = 0, 0, 0.0
        while made < n_proposals:
            state.make_room(state.n_clusters + n_spare)
            clusters = (state.stats, state.data, state.labels, state.sizes)
            now = propose(rng, n_proposals - made, *fixed, *clusters, *scratch, state.n_clusters)
            made, state.n_clusters, accepted, work = made + now[0], now[1], accepted + now[2], work + now[3]
        return Info("split-merge", made, accepted, work=ALONE + state.n + SCORE_ALONE * work)

    @property
    def _n_scans(self) -> int:
        return USUAL_SCANS[self.proposal] if self.n_scans is None else self.n_scans

    def during_burn_in(self) -> Move:
        """Return the version that learns how many proposals to make, where they are not given."""
        return self if self.n_proposals is not None else LearningSplitMerge(self)

    def checkpoint(self) -> dict[str, np.ndarray]:
        """What was learned."""
        return {"rate": np.array(self.rate)} if self.n_proposals is None else {}

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        known = dict(arrays)
        if self.n_proposals is None:
            self.rate = float(known.pop("rate"))
        super().restore(known)


@dataclasses.dataclass
class LearningSplitMerge(Move):
    """Learns how many proposals a step of ``move`` makes; for burn-in only.

    Burn-in itself makes at least as many as take the work of a sweep: chains are on their way, and there is
    more to learn from. Work is counted, not timed: the same seed gives the same chain on every machine.
    """

    move: SplitMerge
    exact = False

    def __post_init__(self) -> None:
        self._rate = self.move.rate  # of proposals that take the usual share, or more where it is earned
        self._made, self._work, self._moved = 0.0, 0.0, 0.0

    def step(self, rng: np.random.Generator, state: MixtureState) -> Info:
        """Make proposals, then learn from recent ones."""
        before = state.labels.copy()
        info = self.move.propose(rng, state, int(self._rate + rng.random()))
        moved = max(0, n_moved(before, state.labels) - FEW * info.accepted) if info.accepted else 0
        self._made, self._work = MEMORY * self._made + info.proposed, MEMORY * self._work + info.work
        self._moved = MEMORY * self._moved + moved
        if self._work > 0.0:
            sweep = work_of_sweep(state)
            of_a_share = sweep * self._made / self._work
            share = earned_share(self._moved / state.n * sweep / self._work)
            self._rate = min(max(share, USUAL_SHARE) * of_a_share, float(MOST_PROPOSALS))
            self.move.rate = min(share * of_a_share, float(MOST_PROPOSALS))
        return info

    def checkpoint(self) -> dict[str, np.ndarray]:
        """What the number is learned from; the move keeps the number."""
        return {"learned": np.array([self._rate, self._made, self._work, self._moved, self.move.rate])}

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        self._rate, self._made, self._work, self._moved, self.move.rate = arrays["learned"].tolist()


def earned_share(moved: float) -> float:
    """Return how many sweeps' work proposals earn that move such a share of the data in the time of one."""
    return EARNED_SHARE if moved >= MANY else USUAL_SHARE if moved >= SOME else LEAST_SHARE


def n_moved(before: np.ndarray, after: np.ndarray) -> int:
    """Return how many data were split from the others of their group, or merged with them.

    Examples
    --------
    >>> n_moved(np.array([0, 0, 0, 1, 1]), np.array([1, 1, 2, 0, 0]))
    1
    """
    table = np.zeros((int(before.max()) + 1, int(after.max()) + 1), dtype=np.int64)
    np.add.at(table, (before, after), 1)
    return int(2 * len(before) - table.max(axis=1).sum() - table.max(axis=0).sum())


class Workspace:
    """What proposals on one state need, made once."""

    def __init__(self, state: MixtureState) -> None:
        self.family_version = state.family_version
        self.sides = state.empty_clusters(2)
        self.union = None if state.family.quick_marginal else state.empty_clusters(1)
        # These do not depend on the concentration.
        self.totals = np.append(0.0, np.cumsum(state.prior.joining[:-1]))


# Kept outside of moves, which are copied from chain to chain; a workspace goes when its state goes.
_WORKSPACES: WeakKeyDictionary[MixtureState, Workspace] = WeakKeyDictionary()
