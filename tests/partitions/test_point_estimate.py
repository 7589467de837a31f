"""The point estimate against exhaustive search, and its guarantees."""

from __future__ import annotations

import importlib
import signal
from itertools import combinations

import numpy as np
import pytest

from permix.errors import DataError, PermixWarning
from permix.partitions import DirichletProcess, PitmanYor, canonical_labels, point_estimate
from permix.partitions import geometry_jit as geometry_kernel
from permix.partitions import search_jit as search_kernel
from permix.partitions.geometry import loss_table, losses_to
from permix.partitions.labels import as_draws
from permix.partitions.point_estimate import _lay_out, collapse_draws
from permix.partitions.search import Search
from tests.oracles.partitions import expected_loss, naive_binder, naive_vi, optimal_partition

NAIVE = {"vi": naive_vi, "binder": naive_binder}
both_losses = pytest.mark.parametrize("loss", ["vi", "binder"])


def weighted_loss(labels, distinct, weights, loss):
    """Mean loss of a canonical partition over weighted draws."""
    return float(np.average(losses_to(labels, distinct, loss), weights=weights))


def noisy_draws(n, n_draws, n_clusters, noise, seed):
    """Draws around one partition: each observation wavers between two clusters, more or less."""
    rng = np.random.default_rng(seed)
    truth, other = rng.integers(n_clusters, size=(2, n))
    waver = rng.random((n_draws, n)) < noise * rng.beta(0.5, 1.5, size=n)
    return np.where(waver, other, truth)


def random_draw_sets():
    for seed in range(12):
        yield np.random.default_rng(seed).integers(4, size=(5 + seed, 6))
        yield noisy_draws(6, 12, 3, 1.0, seed)
        yield DirichletProcess(1.5).sample(6, seed, size=9)


@both_losses
def test_finds_the_optimum_of_small_problems(loss):
    missed = 0
    for draws in random_draw_sets():
        optimum = optimal_partition(draws.tolist(), NAIVE[loss])[1]
        found = point_estimate(draws, loss, random_state=1)
        exact = expected_loss(found.labels.tolist(), draws.tolist(), NAIVE[loss])
        best_draw = min(expected_loss(draw, draws.tolist(), NAIVE[loss]) for draw in draws.tolist())
        assert found.expected_loss == pytest.approx(exact, abs=1e-12)
        assert found.best_draw_loss == pytest.approx(best_draw, abs=1e-12)
        assert found.expected_loss <= found.best_draw_loss + 1e-12
        assert found.expected_loss >= optimum - 1e-12
        missed += found.expected_loss > optimum + 1e-9
    assert missed <= 1  # of 36


def test_seven_observations():
    draws = noisy_draws(7, 15, 3, 1.5, 3)
    for loss, naive in NAIVE.items():
        optimum = optimal_partition(draws.tolist(), naive)[1]
        assert point_estimate(draws, loss, random_state=0).expected_loss == pytest.approx(optimum)


def test_the_exhaustive_oracle_tells_a_poor_estimate():
    """The best draw alone is often not the optimum, so reaching the optimum means something."""
    gaps = []
    for draws in random_draw_sets():
        best_draw = min(expected_loss(draw, draws.tolist(), naive_vi) for draw in draws.tolist())
        gaps.append(best_draw - optimal_partition(draws.tolist(), naive_vi)[1])
    assert sum(gap > 1e-6 for gap in gaps) >= 5


@both_losses
@pytest.mark.parametrize("n_clusters", [3, 30])  # tables, and mostly lists
def test_never_worse_than_the_best_draw(loss, n_clusters):
    draws = noisy_draws(150, 40, n_clusters, 1.0, 5)
    found = point_estimate(draws, loss, random_state=2, n_runs=3)
    losses = [weighted_loss(draw, as_draws(draws), np.ones(40), loss) for draw in as_draws(draws)]
    assert found.best_draw_loss == pytest.approx(min(losses))
    assert found.expected_loss < found.best_draw_loss
    assert found.n_clusters == len(found.sizes) == len(set(found.labels.tolist()))
    assert found.sizes.sum() == 150
    np.testing.assert_array_equal(found.labels, canonical_labels(found.labels))


@both_losses
def test_labels_and_order_of_draws_do_not_matter(loss):
    draws = noisy_draws(60, 30, 4, 1.0, 7)
    rng = np.random.default_rng(1)
    renamed = np.array([rng.permutation(4)[draw] * 3 - 5 for draw in draws])[rng.permutation(30)]
    first = point_estimate(draws, loss, random_state=3)
    second = point_estimate(renamed.reshape(3, 10, 60), loss, random_state=3)
    np.testing.assert_array_equal(first.labels, second.labels)
    assert first.expected_loss == second.expected_loss


def test_duplicates_become_weights():
    draws = np.random.default_rng(1).integers(3, size=(6, 20))
    repeated = np.concatenate([draws, draws[:2], draws[:1]])
    distinct, weights = collapse_draws(as_draws(repeated))
    assert len(distinct) == 6
    assert sorted(weights) == [1, 1, 1, 1, 2, 3]
    found = point_estimate(repeated, random_state=1)
    exact = expected_loss(found.labels.tolist(), repeated.tolist(), naive_vi)
    assert found.expected_loss == pytest.approx(exact, abs=1e-12)
    heavy = point_estimate(np.concatenate([draws, np.tile(draws[4], (50, 1))]), random_state=1)
    np.testing.assert_array_equal(heavy.labels, canonical_labels(draws[4]))


@pytest.mark.parametrize("n_clusters", [3, 15])
def test_result_does_not_depend_on_threads(n_clusters):
    draws = noisy_draws(80, 20, n_clusters, 1.2, 9)
    one = point_estimate(draws, random_state=4, n_jobs=1)
    for n_jobs in (3, -1, None):
        other = point_estimate(draws, random_state=4, n_jobs=n_jobs)
        np.testing.assert_array_equal(one.labels, other.labels)


def test_limit_on_clusters():
    draws = noisy_draws(60, 30, 6, 0.5, 2)
    for limit in (1, 3):
        assert point_estimate(draws, max_clusters=limit, random_state=1).n_clusters <= limit
    free = point_estimate(draws, random_state=1)
    assert free.n_clusters == 6
    assert point_estimate(draws, max_clusters=3, random_state=1).expected_loss > free.expected_loss


def test_reaching_the_default_limit_is_said():
    chaos = np.random.default_rng(0).integers(4, size=(400, 60))  # Binder's optimum leaves most alone
    with pytest.warns(PermixWarning, match="max_clusters"):
        point_estimate(chaos, "binder", random_state=1, n_runs=1)
    assert point_estimate(chaos, "binder", max_clusters=60, random_state=1, n_runs=1).n_clusters > 24


def test_an_interrupt_returns_the_best_so_far(monkeypatch):
    run, runs = Search.run, []

    def interrupted(self, start):
        runs.append(start)
        if len(runs) == 20:
            signal.raise_signal(signal.SIGINT)
        return run(self, start)

    monkeypatch.setattr(Search, "run", interrupted)
    draws = noisy_draws(300, 200, 8, 1.0, 3)
    with pytest.warns(PermixWarning, match="interrupted"):
        found = point_estimate(draws, n_runs=5000, random_state=1)
    assert 1 <= found.n_runs < 5000
    assert found.expected_loss <= found.best_draw_loss


def test_an_interrupt_before_the_search_is_raised(monkeypatch):
    compare = geometry_kernel.total_losses_of_pairs

    def interrupted(*arguments):
        signal.raise_signal(signal.SIGINT)
        return compare(*arguments)

    monkeypatch.setattr(geometry_kernel, "total_losses_of_pairs", interrupted)
    with pytest.raises(KeyboardInterrupt):
        point_estimate(noisy_draws(30, 20, 3, 1.0, 3))


@both_losses
@pytest.mark.parametrize(("n_clusters", "capacity"), [(3, 20), (30, 70)])
def test_bookkeeping_of_the_search(loss, n_clusters, capacity):
    """Each step reports the change of the exact objective, and counts stay right."""
    draws = noisy_draws(90, 25, n_clusters, 1.5, 11)
    distinct, weights = collapse_draws(as_draws(np.concatenate([draws, draws[:4]])))
    n_of = distinct.max(axis=1).astype(np.int64) + 1
    shared, space = _lay_out(distinct, n_of, weights, loss_table(loss, 90), capacity)
    assert (space[0] > 0) == (n_clusters == 3)
    stop = np.zeros(1, np.uint8)
    search = Search(shared, capacity, space, np.random.default_rng(2), stop)
    state = search.state

    def objective():
        f = shared.f
        own = f[np.bincount(state.labels)].sum()
        total = weights.sum() * own
        for draw, weight in zip(distinct, weights, strict=True):
            table = np.zeros((capacity, draw.max() + 1), int)
            np.add.at(table, (state.labels, draw), 1)
            total -= 2 * weight * f[table].sum()
        return total

    order = np.random.default_rng(3).permutation(90)
    change = search_kernel.allocate(shared, state, order, 1e-9, stop)
    assert change == pytest.approx(objective())
    before = objective()
    change = search_kernel.sweeten(shared, state, order, 1e-9, stop)
    assert change <= 0.0
    assert change == pytest.approx(objective() - before, abs=1e-7)
    np.testing.assert_array_equal(state.sizes, np.bincount(state.labels, minlength=capacity))

    # Split the largest cluster at random, so that some union must help; it does what it says.
    largest = np.flatnonzero(state.labels == state.sizes.argmax())[::2]
    search_kernel.remove_all(shared, state, largest)
    empty = int(np.flatnonzero(state.sizes == 0)[0])
    search_kernel.insert_all(shared, state, largest, np.full(len(largest), empty, np.int32))
    before = objective()
    first, second, change = search_kernel.best_merge(shared, state, np.flatnonzero(state.sizes))
    assert change < 0
    state.labels[state.labels == first] = second
    assert objective() - before == pytest.approx(change)


def test_unions_by_trying_all():
    draws = noisy_draws(40, 15, 5, 1.0, 2)
    distinct, weights = collapse_draws(as_draws(draws))
    n_of = distinct.max(axis=1).astype(np.int64) + 1
    shared, space = _lay_out(distinct, n_of, weights, loss_table("vi", 40), 10)
    search = Search(shared, 10, space, np.random.default_rng(0), np.zeros(1, np.uint8))
    labels = np.random.default_rng(1).integers(6, size=40).astype(np.int32)
    search_kernel.insert_all(shared, search.state, np.arange(40), labels)
    before = weighted_loss(labels, distinct, weights, "vi")
    changes = {
        (a, b): weighted_loss(canonical_labels(np.where(labels == a, b, labels)), distinct, weights, "vi")
        - before
        for a, b in combinations(range(6), 2)
    }
    first, second, change = search_kernel.best_merge(shared, search.state, np.flatnonzero(search.state.sizes))
    assert (first, second) == min(changes, key=changes.get)
    assert change / (weights.sum() * 40) == pytest.approx(changes[first, second])


def test_very_many_draws_compare_spaced_candidates(monkeypatch):
    module = importlib.import_module("permix.partitions.point_estimate")
    draws = noisy_draws(50, 80, 4, 1.0, 6)
    whole = point_estimate(draws, random_state=1)
    monkeypatch.setattr(module, "LARGEST_COMPARISON", 1)  # leaves the least number of candidates
    spaced = point_estimate(draws, random_state=1)
    assert spaced.best_draw_loss >= whole.best_draw_loss
    assert spaced.expected_loss <= whole.best_draw_loss
    assert spaced.expected_loss == pytest.approx(
        expected_loss(spaced.labels.tolist(), draws.tolist(), naive_vi), abs=1e-12
    )


def test_certain_draws_and_tiny_problems():
    found = point_estimate([[3, 3, 1]] * 4)
    np.testing.assert_array_equal(found.labels, [0, 0, 1])
    assert found.expected_loss == 0.0
    assert point_estimate([[5]]).n_clusters == 1
    assert point_estimate(np.zeros((2, 0), int)).labels.shape == (0,)


def test_power_distribution_draws():
    draws = PitmanYor(2.0, 0.6).sample(200, 1, size=12)
    found = point_estimate(draws, random_state=1, n_runs=2)
    assert found.expected_loss <= found.best_draw_loss


def test_repr_is_readable():
    text = repr(point_estimate([[0, 0, 1], [0, 0, 1]], random_state=1))
    assert "3 observations in 2 groups" in text
    assert "variation of information" in text


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: point_estimate([[0, 1]], loss="rand"), "'vi' or 'binder'"),
        (lambda: point_estimate([[0, 1]], max_clusters=0), "max_clusters must be"),
        (lambda: point_estimate([[0, 1]], n_runs=0), "n_runs must be"),
        (lambda: point_estimate([[0, 1]], n_jobs=0), "n_jobs"),
        (lambda: point_estimate([0, 1]), "draws has shape"),
        (lambda: point_estimate([[0.5, 1.0]]), "must be integers"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(DataError, match=message):
        call()
