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
# Proposals may take as much work as a sweep, and four times as much if any was accepted in so many steps: on
# small tables this gives as many effective draws a second, and three times as many in all.
PATIENCE, EARNED_SHARE = 50, 4.0
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
        not be left invariant. None has it learned during burn-in: as many as take the work of a Gibbs sweep,
        or four times that where any is accepted; then the mean of the number in a step is fixed, and may be
        less than 1. Without burn-in it is 1.

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
        n_proposals = self.n_proposals
        if n_proposals is None:
            n_proposals = int(self.rate + rng.random())
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
        return Info("split-merge", made, accepted, work=state.n + SCORE_ALONE * work)

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

    Work is counted, not timed: the same seed gives the same chain on every machine.
    """

    move: SplitMerge
    exact = False

    def __post_init__(self) -> None:
        self._since = 0  # steps since a proposal was accepted
        self._made, self._work = 0.0, 0.0

    def step(self, rng: np.random.Generator, state: MixtureState) -> Info:
        """Do a step of the move, then learn from recent ones."""
        info = self.move.step(rng, state)
        self._since = 0 if info.accepted else self._since + 1
        self._made, self._work = MEMORY * self._made + info.proposed, MEMORY * self._work + info.work
        if self._work > 0.0:
            share = EARNED_SHARE if self._since < PATIENCE else 1.0
            rate = share * work_of_sweep(state) * self._made / self._work
            self.move.rate = min(rate, float(MOST_PROPOSALS))
        return info

    def checkpoint(self) -> dict[str, np.ndarray]:
        """What the number is learned from; the move keeps the number."""
        return {"learned": np.array([self._since, self._made, self._work, self.move.rate])}

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        since, self._made, self._work, self.move.rate = arrays["learned"].tolist()
        self._since = int(since)


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
