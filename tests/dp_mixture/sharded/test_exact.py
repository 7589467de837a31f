"""Rows in shards under every family that takes them, against enumeration; and twins that must fail."""

from __future__ import annotations

import numpy as np
import pytest

from permix.data.cells import Cells
from permix.data.shards.matrices import ShardedCells
from permix.dp_mixture.sharded import groups
from permix.dp_mixture.sharded.fit import model_of
from permix.dp_mixture.sharded.state import ShardedMixture
from permix.kernels.streams import draw_key
from permix.moves.base import Cycle
from permix.moves.sharded.encodings import Parameters
from permix.moves.sharded.moves import PlaceRows, SplitMergeRows
from permix.moves.sharded.work import Placing
from permix.partitions import canonical_labels
from permix.runtime.executors import Here
from tests.every_run import first_in_every_run
from tests.families.cases import CASES
from tests.moves.mixture_cases import PRIORS, posterior, state_of
from tests.oracles.mixtures import total_variation, total_variation_bound

N = 5
NAMES = [name for name in CASES if not name.startswith("mixed")]


def in_shards(name, prior, n_shards=2, labels=(0,) * N):
    """Five rows of a case with these labels."""
    family, X = CASES[name]
    cells = Cells.coerce(X[:N])
    data, own = ShardedCells.of(cells, n_shards, Here(1)), family.encode(X[:N])
    record = np.arange(N, dtype=np.uint64)
    state = ShardedMixture(model_of(data, family, own, PRIORS[prior], None, record), "chain")
    k = max(labels) + 1
    rows = state.model.groups.encoding.rows(cells)
    counts = state.counts_of(rows, np.array(labels), k)
    rng, every = np.random.default_rng(0), np.arange(k)
    groups = (state.column_groups, state.table(rng, counts), np.zeros(k), draw_key(rng))
    state.place(Placing(*groups, record, np.array(labels), every, (), every))
    return state


def far_from(name, prior, n_steps, move=None, n_groups=None, seed=1):
    """Return how far a chain is from the posterior, and how far it may be."""
    listed, pi = posterior(name, prior, N)
    kept = [n_groups in (None, max(labels) + 1) for labels in listed]
    pi = np.where(kept, pi, 0.0) / pi[kept].sum()
    index = {labels: place for place, labels in enumerate(listed)}
    start = (0,) * N if n_groups is None else (*range(n_groups), *[n_groups - 1] * (N - n_groups))
    state, rng = in_shards(name, prior, labels=start), np.random.default_rng(seed)
    move = move or Cycle([PlaceRows(), SplitMergeRows()])
    visits = np.empty(n_steps, dtype=np.int64)
    for step in range(-10, n_steps):
        move.step(rng, state)
        visits[step] = index[tuple(canonical_labels(state.labels).tolist())]
    frequencies = np.bincount(visits, minlength=len(listed)) / n_steps
    batches = visits.reshape(50, -1)
    common = np.flatnonzero(frequencies > 0.02)
    p = frequencies[common]
    variance = np.stack([(batches == k).mean(axis=1) for k in common]).var(axis=1)
    n = min(float(np.median(p * (1 - p) / variance)) * 50, float(n_steps))
    return total_variation(frequencies, pi), total_variation_bound(pi, n)


@pytest.mark.parametrize("name", NAMES)
def test_sums_say_of_groups_what_their_rows_do(name):
    family = CASES[name][0]
    labels = np.array([0, 1, 0, 2, 1])
    state, whole = in_shards(name, "dp", labels=tuple(labels)), state_of(name, PRIORS["dp"], N)
    whole.set_labels(labels)
    assert state.sizes_in_use.tolist() == [2, 2, 1]
    assert state.log_likelihood() == pytest.approx(whole.log_likelihood(), rel=1e-11)
    assert state.log_prior() == pytest.approx(whole.log_prior(), rel=1e-11)
    parameters = family.parameters(whole.stats, 3)
    stats, serving = state.stats, family
    if name in ("gaussian-unequal", "gaussian-isotropic", "gaussian-diagonal"):
        serving = family.serving(np.full((1, 3), np.nan))  # statistics that take gaps
    for what, values in serving.parameters(stats, 3).items():
        assert values == pytest.approx(parameters[what], rel=1e-9, nan_ok=True)


EVERY = [("gaussian-niw", "mfm")]
OTHERS = [(name, prior) for name in NAMES for prior in ("dp", "mfm", "finite") if (name, prior) not in EVERY]


@pytest.mark.parametrize(("name", "prior"), first_in_every_run(EVERY + OTHERS, len(EVERY)))
def test_partitions_are_visited_as_often_as_the_posterior_says(name, prior):
    distance, bound = far_from(name, prior, 600 if (name, prior) in EVERY else 2000)
    assert distance < bound


def test_rows_that_are_placed_by_means_of_parameters_are_rejected(monkeypatch):
    """The broken twin does not draw parameters."""
    move, real = PlaceRows(), groups.NumberGroups.table
    distance, bound = far_from("gaussian-diagonal", "dp", 1500, move, n_groups=2)
    assert distance < bound
    monkeypatch.setattr(
        groups.NumberGroups, "table", lambda self, rng, family, sums: real(self, None, family, sums)
    )
    distance, bound = far_from("gaussian-diagonal", "dp", 1500, move, n_groups=2)
    assert distance > bound


def moments(draw, n=4000):
    """Return, over n draws of a table, how many errors means of precisions and of centers are from theirs."""
    family, _ = CASES["gaussian-niw"]
    state = in_shards("gaussian-niw", "dp")
    rng = np.random.default_rng(2)
    tables = np.stack([draw(rng, state)[0] for _ in range(n)])
    factors, centers = tables[:, 2:], tables[:, 1]
    precisions = np.swapaxes(factors, 1, 2) @ factors
    known = state.model.groups.table(None, family, state.seen.counts)[0]
    expected = known[2:].T @ known[2:]
    errors = precisions.std(axis=0) / np.sqrt(n)
    off = centers.mean(axis=0) - known[1], centers.std(axis=0) / np.sqrt(n)
    far = (precisions.mean(axis=0) - expected) / errors, off[0] / off[1]
    return tuple(float(np.abs(each).max()) for each in far)


def test_precisions_have_the_moments_of_a_wishart_distribution():
    found = moments(lambda rng, state: state.table(rng, state.seen.counts))
    assert max(found) < 4.5


def test_a_twin_whose_degrees_of_freedom_run_the_other_way_is_rejected(monkeypatch):
    class Reversed:
        def __init__(self, rng):
            self.rng = rng

        def standard_normal(self, *shape):
            return self.rng.standard_normal(*shape)

        def standard_gamma(self, shape):
            return self.rng.standard_gamma(shape[::-1])

    found = moments(lambda rng, state: state.table(Reversed(rng), state.seen.counts))
    assert found[0] > 4.5


def test_the_bound_of_scores_holds():
    """Grids of sums follow from it."""
    for name in ("gaussian-niw", "gaussian-gaps", "multinomial", "categorical"):
        X = CASES[name][1]
        state = in_shards(name, "dp", labels=(0, 1, 0, 1, 1))
        table = state.table(np.random.default_rng(3), state.seen.counts)
        encoding, cells = state.shape.encoding, Cells.coerce(X[:N])
        rows, out = encoding.rows(cells), np.zeros(N)
        known = Parameters(state.column_groups, table, np.zeros(2))
        encoding.log_shares(rows, known, np.ones(N, dtype=bool), np.zeros(N, dtype=np.int64), out)
        # ln P(side 0) = -ln(1 + e^(s1 - s0)), no less than -|s1 - s0| - ln 2.
        assert -out.min() <= state.most_apart(table) + np.log(2.0), name
