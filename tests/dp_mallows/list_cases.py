"""Small mixtures of generalized Mallows models for tests of their moves, and chains against distributions."""

from __future__ import annotations

import math

import numpy as np

from permix.dp_mallows.moves import seat
from permix.dp_mallows.published import published_model
from permix.dp_mallows.state import ListState, list_model
from permix.partitions import DirichletProcess, canonical_labels
from tests.oracles.dp_mallows import visit_frequencies
from tests.oracles.mixtures import total_variation, total_variation_bound

LISTS = ((0, 1, 2, 3), (0, 1), (3, 2, 1, 0), (1, 0, 3))
FIVE = (*LISTS, (2,))


def model_of(lists, n_items, prior=None, strength=1.0, rates=1.0, sampler="exact", counts=None, learned=None):
    """Data and prior as samplers see them."""
    orders = np.full((len(lists), max(map(len, lists))), -1, dtype=np.int32)
    for i, row in enumerate(lists):
        orders[i, : len(row)] = row
    model = list_model(
        orders,
        np.array([len(row) for row in lists]),
        np.ones(len(lists), dtype=np.int64) if counts is None else np.asarray(counts),
        n_items,
        lambda n: (
            np.broadcast_to(np.asarray(rates, dtype=float), n).copy()
            if np.ndim(rates) == 0
            else np.asarray(rates, dtype=float)[:n]
        ),
        strength,
        DirichletProcess(1.0) if prior is None else prior,
        learned,
    )
    return model if sampler == "exact" else published_model(model, sampler)


def seated(model, seed=0):
    """A state with all agents seated one by one."""
    state = ListState(model)
    seat(np.random.default_rng(seed), state, np.arange(state.n))
    state.refresh()
    return state


def placed(model, labels, centers):
    """A state with these labels (0, 1, ... without gaps) and centers, best first."""
    state = ListState(model)
    put(state, labels, centers)
    return state


def put(state, labels, centers):
    state.labels[:] = labels
    state.n_clusters = len(centers)
    state.make_room(len(centers) + 1)
    for k, center in enumerate(centers):
        state.clusters.places[list(center), k] = np.arange(len(center))
    state.refresh()


def naive_statistics(state):
    """Sizes, totals, counts and pairs of every cluster, from labels, centers and lists alone."""
    lists, centers = state.model.lists, state.centers()
    sizes = np.zeros(state.n_clusters, dtype=np.int64)
    totals, counts = np.zeros((2, state.n_clusters, state.model.n_stages))
    pairs = np.zeros((*totals.shape, state.model.n_items, state.model.n_items))
    for agent, k in enumerate(state.labels.tolist()):
        d = lists.list_of[agent]
        row = lists.items[lists.starts[d] : lists.starts[d + 1]].tolist()
        center = centers[k].tolist()
        sizes[k] += 1
        for j, item in enumerate(row):
            before = center[: center.index(item)]
            totals[k, j] += sum(other not in row[:j] for other in before)
            counts[k, j] += 1
            pairs[k, j, item, row[: j + 1]] += 1
    return sizes, totals, counts, pairs


def check_statistics(state):
    """What a state keeps is what its labels and centers say."""
    k, n_items = state.n_clusters, state.model.n_items
    assert np.array_equal(np.unique(state.labels), np.arange(k))
    assert np.array_equal(np.sort(state.centers(), axis=1), np.tile(np.arange(n_items), (k, 1)))
    sizes, totals, counts, pairs = naive_statistics(state)
    np.testing.assert_array_equal(state.clusters.sizes[:k], sizes)
    assert not state.clusters.sizes[k:].any()
    np.testing.assert_allclose(state.clusters.weights[:k], sizes - state.model.discount)
    assert not state.clusters.weights[k:].any()
    np.testing.assert_array_equal(state.clusters.totals[:k], totals)
    np.testing.assert_array_equal(state.clusters.counts[:k], counts)
    assert not state.clusters.settled.any()
    if state.clusters.pairs.size:
        np.testing.assert_array_equal(state.clusters.pairs[:k], pairs)


def visits_of(state, move, partitions, n_steps, seed, checks=50):
    """Numbers of the partitions after each step; statistics are checked after some of them."""
    index = {labels: k for k, labels in enumerate(partitions)}
    rng = np.random.default_rng(seed)
    for _ in range(20):
        move.step(rng, state)
    visits = np.empty(n_steps, dtype=np.int64)
    for t in range(n_steps):
        move.step(rng, state)
        visits[t] = index[tuple(canonical_labels(state.labels).tolist())]
        if t < checks:
            check_statistics(state)
    return visits


def deviations(visits, partitions, chances, n_batches=50):
    """Largest deviation, in standard errors, of P(two agents together) and P(K clusters).

    Standard errors by batch means, but not below those of independent draws.
    """
    labels = np.array(partitions)
    n = labels.shape[1]
    events = [labels[:, i] == labels[:, j] for i in range(n) for j in range(i)]
    events += [labels.max(axis=1) == k for k in range(n)]
    visits = visits[: len(visits) // n_batches * n_batches]
    worst = 0.0
    for event in events:
        if event.all() or not event.any():
            continue
        p = float(chances[event].sum())
        seen = event[visits]
        batch_error = seen.reshape(n_batches, -1).mean(axis=1).std(ddof=1) / math.sqrt(n_batches)
        error = max(batch_error, math.sqrt(p * (1 - p) / len(visits)))
        worst = max(worst, abs(seen.mean() - p) / error)
    return worst


# An exact chain exceeds this many standard errors of one of twenty events in fewer than one of ten thousand
# runs (Student's distribution with 49 degrees of freedom, since standard errors are estimates).
MOST_DEVIATIONS = 5.5


def agrees(visits, partitions, chances):
    """Whether a chain's visits are within what an exact chain would show; and why not."""
    frequencies, n_effective = visit_frequencies(visits, len(chances))
    assert n_effective > 300, f"only worth {n_effective:.0f} draws"
    distance = total_variation(frequencies, chances)
    bound = total_variation_bound(chances, n_effective)
    worst = deviations(visits, partitions, chances)
    print(f"distance {distance:.4f} of {bound:.4f}, {worst:.1f} deviations, worth {n_effective:.0f}")
    return distance < bound and worst < MOST_DEVIATIONS
