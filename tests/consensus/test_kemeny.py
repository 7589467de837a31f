"""Kemeny: brute force for few items, dynamic against integer programming for more, and what is refused."""

import itertools
import signal
from types import SimpleNamespace

import numpy as np
import pytest

from permix.consensus import kemeny as module
from permix.consensus.kemeny import kemeny
from permix.consensus.linear_ordering import Bounds, LinearOrdering, order_score, violated_triangles
from permix.data import Preferences, Rankings
from permix.errors import DataError, PermixWarning
from permix.kernels.kemeny_search import (
    fill_best_order_compiled,
    improve_by_insertion,
    iterated_local_search,
)
from permix.kernels.subset_orders import best_order_by_subsets, fill_best_order
from permix.runtime.interrupts import Interrupts
from tests.reference import permutations as naive


def random_weights(rng, n, kind):
    """Pairwise weights: from voters, from few voters (many ties), fractional, or sparse with zeros."""
    if kind == "voters":
        return Rankings.from_orders([rng.permutation(n) for _ in range(9)], n_items=n).pairwise_counts()
    weights = {
        "ties": lambda: rng.integers(0, 2, (n, n)).astype(float),
        "fractions": lambda: rng.random((n, n)),
        "sparse": lambda: rng.integers(0, 5, (n, n)) * (rng.random((n, n)) < 0.3) * 1.0,
    }[kind]()
    np.fill_diagonal(weights, 0)
    return weights


KINDS = ["voters", "ties", "fractions", "sparse"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", range(1, 8))
def test_exact_against_all_orderings(n, kind):
    rng = np.random.default_rng(n)
    for _ in range(6 if n < 7 else 2):
        weights = random_weights(rng, n, kind)
        best, optima = naive.kemeny_brute_force(weights)
        result = kemeny(weights, method="exact")
        assert result.optimal
        assert result.score == pytest.approx(best, rel=1e-12)
        assert result.lower_bound == result.score
        assert result.order.tolist() in optima
        assert naive.kemeny_score(result.order, weights) == pytest.approx(best, rel=1e-12)
        automatic = kemeny(weights)
        assert automatic.order.tolist() == result.order.tolist()
        for method in ("local", "borda"):
            other = kemeny(weights, method=method)
            assert other.score == pytest.approx(naive.kemeny_score(other.order, weights), rel=1e-12)
            assert other.lower_bound <= best * (1 + 1e-12)
            assert not other.optimal or other.score == pytest.approx(best, rel=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [2, 5, 7])
def test_subsets_alone(n, kind):
    """The dynamic program without the decomposition; ties go to the smallest items."""
    rng = np.random.default_rng(n)
    for _ in range(4):
        weights = random_weights(rng, n, kind)
        best, optima = naive.kemeny_brute_force(weights)
        for fill in (fill_best_order, fill_best_order_compiled):
            order = np.empty(n, np.int64)
            assert fill(weights, order) == pytest.approx(best, rel=1e-12)
            assert order.tolist() == min(optima)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [10, 12, 14])
def test_integer_program_against_subsets(n, kind):
    rng = np.random.default_rng(n)
    weights = random_weights(rng, n, kind)
    _, expected = best_order_by_subsets(weights)
    start = np.arange(n)[::-1].copy()
    program = LinearOrdering(
        weights, Bounds(start, order_score(weights, start), 0.0), whole=kind != "fractions"
    )
    program.run(None, Interrupts())
    assert program.proven
    assert program.best.score == pytest.approx(expected, rel=1e-9)
    assert program.best.lower_bound == program.best.score
    assert naive.kemeny_score(program.best.order, weights) == pytest.approx(expected, rel=1e-9)


class RecordingOrdering(LinearOrdering):
    branched = False

    def _solve(self, integral, deadline):
        self.branched |= integral
        return super()._solve(integral, deadline)


def test_integer_program_branches_where_fractions_remain():
    """The 3-fence: three pales u → l, and every l over the other u. The triangle inequalities alone allow 1.5
    disagreements (all one half where it matters), an ordering has 2.
    """
    weights = np.zeros((6, 6))
    for i, j in itertools.product(range(3), repeat=2):
        weights[(i, 3 + i) if i == j else (3 + i, j)] = 1
    assert naive.kemeny_brute_force(weights)[0] == 2
    program = RecordingOrdering(weights, Bounds(np.arange(6), 6.0, 0.0), whole=False)
    program.run(None, Interrupts())
    assert program.branched
    assert program.proven
    assert program.best.score == 2
    # Whole weights: no ordering has 1.5, so 2 is proven without branching.
    program = RecordingOrdering(weights, Bounds(np.arange(6), 6.0, 0.0), whole=True)
    program.run(None, Interrupts())
    assert program.proven
    assert program.best.score == 2
    assert not program.branched


def test_integer_program_beyond_the_subsets(monkeypatch):
    """Through the front door: components too large for subsets, with the same result as subsets give."""
    rng = np.random.default_rng(3)
    weights = random_weights(rng, 13, "voters")
    by_subsets = kemeny(weights, method="exact")
    monkeypatch.setattr(module, "SUBSETS_UP_TO", 2)
    for method in ("exact", "auto"):
        by_integers = kemeny(weights, method=method)
        assert by_integers.optimal
        assert by_integers.score == by_subsets.score
        assert by_integers.method == "integer programming"


def test_decomposition_costs_nothing():
    """Components found from strict majorities, with ties between and within them."""
    rng = np.random.default_rng(11)
    seen = set()
    for _ in range(60):
        weights = rng.integers(0, 3, (6, 6)).astype(float)
        np.fill_diagonal(weights, 0)
        parts = list(module._components(weights))
        assert sorted(np.concatenate(parts).tolist()) == list(range(6))
        seen.add(len(parts))
        for (i, above), (j, below) in itertools.combinations(enumerate(parts), 2):
            assert i < j
            assert (weights[np.ix_(above, below)] >= weights[np.ix_(below, above)].T).all()
        assert kemeny(weights, method="exact").score == naive.kemeny_brute_force(weights)[0]
    assert len(seen) > 2


def test_condorcet_order_needs_no_search():
    votes = Rankings.from_orders([[0, 1, 2, 3]] * 3 + [[3, 2, 1, 0]] * 2, n_items=4)
    result = kemeny(votes)
    assert result.order.tolist() == [0, 1, 2, 3]
    assert result.optimal
    assert result.method == "majorities"
    assert result.score == 12
    assert isinstance(result.score, int)


@pytest.mark.parametrize("kind", KINDS)
def test_local_search_leaves_nothing_to_gain(kind):
    rng = np.random.default_rng(5)
    weights = random_weights(rng, 12, kind)
    net = weights - weights.T
    order = rng.permutation(12)
    improve_by_insertion(net, order, 1e-12)
    assert sorted(order.tolist()) == list(range(12))
    score = naive.kemeny_score(order, weights)
    for place, target in itertools.product(range(12), repeat=2):
        moved = order.tolist()
        moved.insert(target, moved.pop(place))
        assert naive.kemeny_score(moved, weights) >= score - 1e-9


def test_local_search_finds_the_optimum_of_moderate_problems():
    rng = np.random.default_rng(8)
    for _ in range(5):
        weights = random_weights(rng, 14, "voters")
        assert kemeny(weights, method="local").score == kemeny(weights, method="exact").score


def test_local_search_reports_the_score_of_its_order():
    rng = np.random.default_rng(2)
    weights = random_weights(rng, 30, "fractions")
    order = rng.permutation(30)
    score = iterated_local_search(rng, weights, weights - weights.T, order, 5, 1e-12)
    assert score == pytest.approx(naive.kemeny_score(order, weights))


def test_a_search_of_the_transpose_is_rejected():
    """Reading weights the wrong way round is the classic mistake; brute force tells."""
    weights = random_weights(np.random.default_rng(1), 5, "fractions")
    _, optima = naive.kemeny_brute_force(weights)
    assert kemeny(np.ascontiguousarray(weights.T)).order.tolist() not in optima
    assert kemeny(weights).order.tolist() in optima


def test_violated_triangles():
    before = np.array([[0, 1, 0], [0, 0, 1], [1, 0, 0]], float)
    for matrix, cycle in ((before, [0, 1, 2]), (before.T, [0, 2, 1])):
        violation, triangles = violated_triangles(matrix)
        assert triangles.tolist() == [cycle]
        assert violation.tolist() == [1.0]
    assert len(violated_triangles(np.triu(np.ones((3, 3)), 1))[0]) == 0


@pytest.mark.parametrize("n", [3, 6, 9])
def test_violated_triangles_against_all_triples(n):
    rng = np.random.default_rng(n)
    before = np.triu(rng.random((n, n)), 1)
    before += np.tril(1.0 - before.T, -1)
    violation, triangles = violated_triangles(before)
    cycles = [
        [a, b, c]
        for a, b, c in itertools.permutations(range(n), 3)
        if a == min(a, b, c) and before[a, b] + before[b, c] + before[c, a] > 2.0 + 1e-4
    ]
    assert triangles.tolist() == cycles
    excess = [before[a, b] + before[b, c] + before[c, a] - 2.0 for a, b, c in cycles]
    np.testing.assert_allclose(violation, excess, rtol=1e-12)


def test_many_items():
    """Beyond exact methods: the bound is honest, and a planted ordering is found back."""
    rng = np.random.default_rng(4)
    n = 150
    planted = rng.permutation(n)
    weights = np.zeros((n, n))
    weights[np.ix_(planted, planted)] = np.triu(rng.integers(3, 9, (n, n)), 1) + np.tril(
        rng.integers(0, 5, (n, n)), -1
    )
    result = kemeny(weights, method="local")
    assert result.lower_bound <= result.score <= naive.kemeny_score(planted, weights)
    assert not result.optimal or result.lower_bound == result.score


def test_same_data_same_answer():
    weights = random_weights(np.random.default_rng(6), 40, "ties")
    first, second = (kemeny(weights, method="local") for _ in range(2))
    assert first.order.tolist() == second.order.tolist()
    seeded = [kemeny(weights, method="local", random_state=seed).order.tolist() for seed in (3, 3)]
    assert seeded[0] == seeded[1]


def test_time_limit_keeps_the_best_found():
    weights = random_weights(np.random.default_rng(9), 60, "ties")
    local = kemeny(weights, method="local")
    result = kemeny(weights, method="exact", time_limit=0.5)  # a proof would take hours
    assert sorted(result.order.tolist()) == list(range(60))
    assert result.score == naive.kemeny_score(result.order, weights)
    assert result.score <= kemeny(weights, method="borda").score
    assert local.lower_bound <= result.lower_bound <= result.score
    assert not result.optimal


def test_interruption_keeps_the_best_found(monkeypatch):
    weights = random_weights(np.random.default_rng(9), 30, "ties")

    def interrupted(self, integral, deadline):
        signal.raise_signal(signal.SIGINT)
        return None, None, False

    monkeypatch.setattr(LinearOrdering, "_solve", interrupted)
    with pytest.warns(PermixWarning, match="interrupted"):
        result = kemeny(weights, method="exact")
    assert result.score == kemeny(weights, method="local").score
    assert not result.optimal
    assert result.method == "local search"


def test_names_partial_orders_and_counts():
    votes = Preferences.from_pairs(
        [("ann", "b", "a"), ("ann", "a", "c"), ("bo", "c", "b"), ("cy", "b", "c")], items=["a", "b", "c"]
    )
    result = kemeny(votes)
    assert result.ranking == ("b", "a", "c")
    assert result.score == 1
    assert result.to_rankings() == Rankings.from_orders([["b", "a", "c"]], items=["a", "b", "c"])
    heavy = Preferences.from_pairs([("ann", "b", "a"), ("bo", "a", "b")], items=["a", "b"], counts=[2, 5])
    assert kemeny(heavy).ranking == ("a", "b")
    assert kemeny(heavy).score == 2


def test_subset_rankings_count_only_what_they_say():
    rankings = Rankings.from_orders([[0, 1], [1, 2], [2, 0], [0, 2]], n_items=3, unlisted="unknown")
    assert kemeny(rankings).score == 1
    assert kemeny(rankings).order.tolist() == [0, 1, 2]


def test_repr_says_what_was_proven():
    weights = random_weights(np.random.default_rng(9), 30, "ties")
    text = repr(kemeny(weights, method="borda"))
    assert "not proven optimal" in text
    assert "…" in text
    assert "(optimal; " in repr(kemeny(np.array([[0, 3.5], [1, 0]])))


def test_refusals():
    with pytest.raises(DataError, match="no rows"):
        kemeny(Rankings.from_orders([[0, 1]], n_items=2)[:0])
    with pytest.raises(DataError, match="square"):
        kemeny(np.array([[0, 1, 2], [2, 1, 0]]))
    with pytest.raises(DataError, match="square"):
        kemeny(np.zeros((0, 0)))
    with pytest.raises(DataError, match=r"\[0, 1\] is nan"):
        kemeny(np.array([[0, np.nan], [1, 0]]))
    with pytest.raises(DataError, match="negative"):
        kemeny(np.array([[0, -1], [1, 0]]))
    with pytest.raises(DataError, match="diagonal"):
        kemeny(np.array([[0, 1, 2], [2, 1, 0], [1, 0, 2]]))
    with pytest.raises(DataError, match="numbers"):
        kemeny(np.array([["a", "b"], ["c", "d"]]))
    with pytest.raises(DataError, match="list"):
        kemeny([[0, 1], [1, 0]])
    with pytest.raises(DataError, match="method='best'"):
        kemeny(np.zeros((2, 2)), method="best")
    with pytest.raises(DataError, match="time_limit"):
        kemeny(np.zeros((2, 2)), time_limit=0)


def test_a_comparison_stated_nine_times_counts_nine_times():
    stated = [("anna", "x", "y")] * 9 + [("anna", "y", "x"), ("bo", "y", "x")]
    result = kemeny(Preferences.from_pairs(stated, on_cycle="keep"))
    assert (result.ranking, result.score, result.optimal) == (("x", "y"), 2, True)
    # An agent who does not contradict himself has as many votes; what only follows from them is one vote.
    stated = [("anna", "x", "y")] * 3 + [("anna", "y", "z"), *[(agent, "y", "x") for agent in ("bo", "di")]]
    stated += [(agent, "z", "x") for agent in ("bo", "di")]
    counts = Preferences.from_pairs(stated).pairwise_counts()
    assert counts.tolist() == [[0, 3, 1], [2, 0, 1], [2, 0, 0]]


@pytest.mark.realdata
def test_real_elections(data_folder):
    """Full, partial and tied ballots: the exact optimum is proven and no other method beats it."""
    from permix import read_preflib

    files = sorted((data_folder / "preflib").glob("*.*o[ci]"))
    assert files
    proven = 0
    for file in files:
        data = read_preflib(file)
        best = kemeny(data, time_limit=2)
        weights = data.pairwise_counts()
        assert best.score == pytest.approx(naive.kemeny_score(best.order.tolist(), weights.tolist()))
        for method in ("local", "borda"):
            other = kemeny(data, method=method)
            assert other.score >= best.lower_bound
            assert not best.optimal or other.score >= best.score
        proven += best.optimal
    assert proven >= len(files) // 2


def test_repeated_small_work_moves_to_compiled_code(monkeypatch):
    """The first small job is done in plain Python, in a process that has not loaded Numba; many are not."""
    from permix.kernels import pairwise_counts

    monkeypatch.setattr(pairwise_counts, "sys", SimpleNamespace(modules={}))
    monkeypatch.setattr(pairwise_counts, "_plain_steps", 0)
    jobs = [pairwise_counts.worth_compiling(150_000) for _ in range(4)]
    assert jobs == [False, False, True, True]
    monkeypatch.setattr(pairwise_counts, "_plain_steps", 0)
    monkeypatch.setattr(pairwise_counts, "sys", SimpleNamespace(modules={"numba": None}))
    assert pairwise_counts.worth_compiling(1)
