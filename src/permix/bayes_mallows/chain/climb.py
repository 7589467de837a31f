"""Where chains with a given number of groups start if agents leave something open: the best of several.

Each went a few steps. Such posteriors have modes between which chains never go, and which mode a chain is in
is settled by its first steps. Where all rankings are known, ``optimum`` finds better starts in less time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from permix.bayes_mallows.chain.state import GroupState
from permix.data.labels import Array
from permix.kernels.distances import row_distances
from permix.moves.base import Move

# Steps of each start, and how many starts go on to the next steps.
STAGES = ((12, 4), (30, 1))
N_STARTS = 12
# Then a group is given up and another divided so many times, and as many steps shown what that came to.
N_CHANGES, STEPS_AFTER = 12, 20
# Fewer agents do not hold a chain where it is.
FEWEST = 50


def climbed(make: Callable[[], GroupState], move: Move, rng: np.random.Generator) -> GroupState:
    """Return the state that is the most probable, labels summed out, of several that went some steps.

    The weakest are given up early. Moves are those of the chain, so that all that is left open moves.
    """
    state = make()
    going = [state.checkpoint(), *[make().checkpoint() for _ in range(N_STARTS - 1)]]
    for n_steps, n_kept in STAGES:
        reached = [_after(state, start, n_steps, move, rng) for start in going]
        best = sorted(reached, key=lambda each: -each[0])[:n_kept]
        going = [place for _, place in best]
    score, place = best[0]
    for _ in range(N_CHANGES if state.model.most_groups > 2 else 0):
        state.restore(place)
        state.set_labels(regrouped(state, rng), rng)
        state.draw_shares(rng)
        new_score, new_place = _after(state, state.checkpoint(), STEPS_AFTER, move, rng)
        if new_score > score:
            score, place = new_score, new_place
    state.restore(place)
    return state


def _after(
    state: GroupState, start: Mapping[str, Array], n_steps: int, move: Move, rng: np.random.Generator
) -> tuple[float, dict[str, Array]]:
    """Return how probable a start is after some steps, and where it is then."""
    state.restore(start)
    for _ in range(n_steps):
        move.step(rng, state)
    return log_mixture(state), state.checkpoint()


def regrouped(state: GroupState, rng: np.random.Generator) -> Array:
    """Return labels after one group went to the others and another was divided between two of its members."""
    labels, scores = state.labels.copy(), log_scores(state)[state.model.ranking_of]
    gone, divided = rng.permutation(state.n_clusters)[:2] if state.n_clusters > 1 else (-1, 0)
    if gone >= 0:
        scores[:, gone] = -np.inf
        labels[labels == gone] = scores[labels == gone].argmax(axis=1)
    members = np.flatnonzero(labels == divided)
    anchors = state.rankings[state.model.ranking_of[rng.choice(members, 2)]]
    first, second = distances_from(state, anchors).T[:, state.model.ranking_of[members]]
    labels[members[first < second]] = state.n_clusters
    return labels


def distances_from(state: GroupState, centers: Array) -> Array:
    """Return how far rankings are from centers, (rankings, centers)."""
    orders = np.argsort(state.rankings, axis=1).astype(np.int32)
    metric = state.model.metric
    far = [row_distances(metric, orders, state.rankings, center[None]) for center in centers]
    return np.stack(far, axis=1)


def log_scores(state: GroupState) -> Array:
    """Return ln of share times p(ranking | group), (rankings, groups), by the present shares."""
    used = slice(None, state.n_clusters)
    scores = np.log(state.sizes[used] / state.n) - state.log_norms[used]
    found: Array = scores - state.decays[used] * distances_from(state, state.centers[used])
    return found


def log_mixture(state: GroupState) -> float:
    """Return ln p(rankings | centers, decays), where agents may be in any group, by the present shares."""
    scores = log_scores(state)
    largest = scores.max(axis=1)
    of_ranking = largest + np.log(np.exp(scores - largest[:, None]).sum(axis=1))
    return float(of_ranking[state.model.ranking_of].sum())
