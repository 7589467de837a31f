"""The point estimate against exhaustive search, and its guarantees."""

from __future__ import annotations

import importlib
import signal
from functools import cache
from itertools import combinations

import numpy as np
import pytest

from permix.errors import DataError, PermixWarning
from permix.partitions import DirichletProcess, PitmanYor, canonical_labels, point_estimate, weighted_draws
from permix.partitions import search_jit as search_kernel
from permix.partitions.labels import as_draws
from permix.partitions.search import Layout, Search
from permix.partitions.weighted_draws import WeightedDraws
from tests.oracles.partitions import expected_loss, naive_binder, naive_vi, optimal_partition

NAIVE = {"vi": naive_vi, "binder": naive_binder}
both_losses = pytest.mark.parametrize("loss", ["vi", "binder"])


def noisy_draws(n, n_draws, n_clusters, noise, seed):
    """Draws around one partition: each observation wavers between two clusters, more or less."""
    rng = np.random.default_rng(seed)
    truth, other = rng.integers(n_clusters, size=(2, n))
    waver = rng.random((n_draws, n)) < noise * rng.beta(0.5, 1.5, size=n)
    return np.where(waver, other, truth)


@cache
def smallest_losses(loss):
    """Of each of the sets below, by trying all partitions."""
    return [optimal_partition(draws.tolist(), NAIVE[loss])[1] for draws in random_draw_sets()]


def random_draw_sets():
    for seed in range(12):
        yield np.random.default_rng(seed).integers(4, size=(5 + seed, 6))
        yield noisy_draws(6, 12, 3, 1.0, seed)
        yield DirichletProcess(1.5).sample(6, seed, size=9)


@both_losses
def test_finds_the_optimum_of_small_problems(loss):
    missed = 0
    for draws, optimum in zip(random_draw_sets(), smallest_losses(loss), strict=True):
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
    for draws, optimum in zip(random_draw_sets(), smallest_losses("vi"), strict=True):
        best_draw = min(expected_loss(draw, draws.tolist(), naive_vi) for draw in draws.tolist())
        gaps.append(best_draw - optimum)
    assert sum(gap > 1e-6 for gap in gaps) >= 5


@both_losses
@pytest.mark.parametrize("n_clusters", [3, 30])  # tables, and mostly lists
def test_never_worse_than_the_best_draw(loss, n_clusters):
    draws = noisy_draws(150, 40, n_clusters, 1.0, 5)
    found = point_estimate(draws, loss, random_state=2, n_runs=3)
    whole = WeightedDraws(as_draws(draws), np.ones(40), loss)
    losses = [whole.expected_loss(draw) for draw in whole.labels]
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
    collapsed = WeightedDraws.collapsed(repeated, "vi")
    assert len(collapsed.labels) == 6
    assert sorted(collapsed.weights) == [1, 1, 1, 1, 2, 3]
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

    def interrupted(self, start, rebuilds):
        runs.append(start)
        if len(runs) == 20:
            signal.raise_signal(signal.SIGINT)
        return run(self, start, rebuilds)

    monkeypatch.setattr(Search, "run", interrupted)
    draws = noisy_draws(300, 200, 8, 1.0, 3)
    with pytest.warns(PermixWarning, match="interrupted"):
        found = point_estimate(draws, n_runs=5000, random_state=1)
    assert 1 <= found.n_runs < 5000
    assert found.expected_loss <= found.best_draw_loss


def test_an_interrupt_before_the_search_is_raised(monkeypatch):
    compare = weighted_draws.losses_to_draws

    def interrupted(*arguments):
        signal.raise_signal(signal.SIGINT)
        return compare(*arguments)

    monkeypatch.setattr(weighted_draws, "losses_to_draws", interrupted)
    with pytest.raises(KeyboardInterrupt):
        point_estimate(noisy_draws(30, 20, 3, 1.0, 3))


@both_losses
@pytest.mark.parametrize(("n_clusters", "capacity"), [(3, 20), (30, 70)])
def test_bookkeeping_of_the_search(loss, n_clusters, capacity):
    """Each step reports the change of the exact objective, and counts stay right."""
    draws = noisy_draws(90, 25, n_clusters, 1.5, 11)
    whole = WeightedDraws.collapsed(np.concatenate([draws, draws[:4]]), loss)
    layout = Layout(whole, capacity)
    assert (layout.n_tables > 0) == (n_clusters == 3)
    search = Search(layout, np.random.default_rng(2), np.zeros(1, np.uint8))
    state = search.state

    def objective():
        f = whole.f
        own = f[np.bincount(state.labels)].sum()
        total = whole.weights.sum() * own
        for draw, weight in zip(whole.labels, whole.weights, strict=True):
            table = np.zeros((capacity, draw.max() + 1), int)
            np.add.at(table, (state.labels, draw), 1)
            total -= 2 * weight * f[table].sum()
        return total

    order = np.random.default_rng(3).permutation(90)
    change = search.allocate(order)
    assert change == pytest.approx(objective())
    before = objective()
    change = search.settle(order)
    assert change <= 0.0
    assert change == pytest.approx(objective() - before, abs=1e-7)
    np.testing.assert_array_equal(state.sizes, np.bincount(state.labels, minlength=capacity))

    # Split the largest cluster at random, so that some union must help; it does what it says.
    largest = np.flatnonzero(state.labels == state.sizes.argmax())[::2]
    before = objective()
    empty = int(np.flatnonzero(state.sizes == 0)[0])
    change = search.move(largest, np.full(len(largest), -1, np.int32))
    assert (state.labels[largest] == -1).all()
    change += search.move(largest, np.full(len(largest), empty, np.int32))
    assert change == pytest.approx(objective() - before)
    before = objective()
    first, second, change = search_kernel.best_merge(layout.draws, state, np.flatnonzero(state.sizes))
    assert change < 0
    state.labels[state.labels == first] = second
    assert objective() - before == pytest.approx(change)


def test_unions_by_trying_all():
    draws = noisy_draws(40, 15, 5, 1.0, 2)
    whole = WeightedDraws.collapsed(draws, "vi")
    layout = Layout(whole, 10)
    search = Search(layout, np.random.default_rng(0), np.zeros(1, np.uint8))
    labels = np.random.default_rng(1).integers(6, size=40).astype(np.int32)
    search.move(np.arange(40), labels)
    before = whole.expected_loss(labels)
    changes = {
        (a, b): whole.expected_loss(canonical_labels(np.where(labels == a, b, labels))) - before
        for a, b in combinations(range(6), 2)
    }
    occupied = np.flatnonzero(search.state.sizes)
    first, second, change = search_kernel.best_merge(layout.draws, search.state, occupied)
    assert (first, second) == min(changes, key=changes.get)
    assert change / (whole.weights.sum() * 40) == pytest.approx(changes[first, second])


@both_losses
def test_very_many_draws(monkeypatch, loss):
    """Few draws are compared with all, and runs use some draws only; all draws have the last word."""
    module = importlib.import_module("permix.partitions.point_estimate")
    draws = noisy_draws(25, 50, 4, 1.0, 6)
    draws = np.concatenate([draws, draws[:5], draws[:1]])
    whole = point_estimate(draws, loss, random_state=1)
    monkeypatch.setattr(weighted_draws, "MOST_COMPARISONS", 1)
    monkeypatch.setattr(module, "LABELS_OF_A_RUN", 1)
    monkeypatch.setattr(module, "DRAWS_OF_A_RUN", 10)
    some = point_estimate(draws, loss, random_state=1)
    best_draw = expected_loss(some.best_draw.tolist(), draws.tolist(), NAIVE[loss])
    assert some.best_draw_loss == pytest.approx(best_draw, abs=1e-12)
    assert some.best_draw_loss >= whole.best_draw_loss
    assert some.expected_loss <= whole.best_draw_loss
    exact = expected_loss(some.labels.tolist(), draws.tolist(), NAIVE[loss])
    assert some.expected_loss == pytest.approx(exact, abs=1e-12)
    for i in range(25):  # no observation gains by moving
        for cluster in range(some.n_clusters + 1):
            moved = some.labels.tolist()
            moved[i] = cluster
            assert expected_loss(moved, draws.tolist(), NAIVE[loss]) >= exact - 1e-9


def test_spaced_draws_stand_for_all():
    draws = WeightedDraws(as_draws(noisy_draws(20, 40, 3, 1.0, 1)), np.arange(40.0), "vi")
    few = draws.evenly_spaced(13)
    assert few.weights.sum() == 13
    rows = {draw.tobytes(): weight for draw, weight in zip(draws.labels, draws.weights, strict=True)}
    shares = 13 * np.array([rows[draw.tobytes()] for draw in few.labels]) / draws.weights.sum()
    assert (np.abs(few.weights - shares) < 1.0).all()
    assert draws.evenly_spaced(40) is draws


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
