"""Chains of co-clusterings: seeds, threads, stores, interruptions; and what is refused."""

from __future__ import annotations

import signal
import threading
import tracemalloc
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

import permix
from permix.cocluster import fit as cocluster_fit
from permix.cocluster.block_predict import BlockDraw, mondrian_draw
from permix.cocluster.cells.families import GaussianCells
from permix.cocluster.grid.moves import OnRows
from permix.cocluster.mondrian import moves
from permix.cocluster.parameters import CoClusterParameters
from permix.data.cells import Cells
from permix.errors import ConvergenceWarning, DataError, PermixWarning
from permix.moves import Concentration, Cycle
from permix.partitions.mondrian import sample_mondrian
from permix.sampling import Draws
from permix.sampling import chain as chains
from tests.cocluster.cases import planted_grid, quick, quiet_fit
from tests.every_run import first_in_every_run

KINDS = {
    "mfm": {"rate": 2.0, "concentration": (0.5, 1.0)},
    "dp": {"concentration": permix.Gamma(1.0, 1.0)},
    "dirichlet": {"n_row_clusters": 4, "n_column_clusters": 3},
    "mixed": {"n_row_clusters": 3, "n_column_clusters": 2, "membership": "mixed"},
    "mondrian": {},
}


@pytest.fixture(autouse=True)
def _short_chains_may_disagree():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


@pytest.fixture(scope="module")
def X():
    return planted_grid(np.random.default_rng(1), shape=(24, 16))[0]


def model(kind, **options):
    prior = "dirichlet" if kind == "mixed" else kind
    return quick(prior, **(KINDS[kind] | {"n_draws": 70, "n_burn_in": 40} | options))


def same_draws(first, second):
    assert first._fit.draws.arrays.keys() == second._fit.draws.arrays.keys()
    for name, array in first._fit.draws.arrays.items():
        np.testing.assert_array_equal(array, second._fit.draws.arrays[name], err_msg=name)


@pytest.mark.parametrize("kind", first_in_every_run(["dp", "mondrian", "mfm", "dirichlet", "mixed"], 2))
def test_same_seed_same_draws_whatever_the_threads(kind, X):
    short = {"n_chains": 3, "n_draws": 20, "n_burn_in": 10}
    first, second = model(kind, n_jobs=1, **short).fit(X), model(kind, n_jobs=3, **short).fit(X)
    same_draws(first, second)
    np.testing.assert_array_equal(first.row_labels_, second.row_labels_)
    np.testing.assert_array_equal(first.block_labels_, second.block_labels_)
    other = model(kind, random_state=1, **short).fit(X)
    assert not np.array_equal(first._fit.draws.arrays["log_joint"], other._fit.draws.arrays["log_joint"])


class Interrupt(BaseException):
    """Stands for a kill: nothing handles it."""


@pytest.mark.parametrize("kind", KINDS)
def test_a_killed_run_goes_on_as_if_nothing_had_happened(kind, X, tmp_path, monkeypatch):
    short = {"n_draws": 20, "n_burn_in": 10}
    whole = model(kind, **short).fit(X)
    store = tmp_path / "store"
    lock, steps = threading.Lock(), [0]
    step = chains.own_copy

    def killed(record):
        with lock:
            steps[0] += 1
            if steps[0] == 23:
                raise Interrupt
        return step(record)

    with monkeypatch.context() as patch:
        patch.setattr(chains, "own_copy", killed)
        patch.setattr(chains.Chain, "__init__", _eager(chains.Chain.__init__))
        with pytest.raises(Interrupt):
            model(kind, store=store, **short).fit(X)
    assert list(store.glob("chain-*/state.npz"))
    resumed = model(kind, store=store, **short).fit(X)
    same_draws(whole, resumed)
    # A finished store is read again, and a longer run begins with what is there.
    again = model(kind, store=store, **short).fit(X)
    same_draws(whole, again)
    with pytest.raises(DataError, match="belongs to another run"):
        model(kind, store=store, **short).fit(np.where(np.isnan(X), 1.0, X))


def _eager(original):
    def init(self, *arguments):
        *others, _, stop = arguments
        original(self, *others, 0.0, stop)

    return init


def test_a_fit_proposes_as_many_cuts_as_burn_in_learned(X, monkeypatch):
    """Fits once left the learning out, and proposed as few cuts in an iteration as learning begins with."""
    monkeypatch.setattr(moves, "FIRST_PROPOSALS", 1)
    learned = model("mondrian").fit(X)._fit.draws.statistics
    without = model("mondrian", n_burn_in=0).fit(X)._fit.draws.statistics
    cuts = learned["moves"].index("cuts")
    assert np.all(without["proposed"][:, cuts] == 70)
    assert np.all(learned["proposed"][:, cuts] > 70)
    assert np.all(learned["proposed"][:, cuts] % 70 == 0)  # the same number in all iterations


def test_another_prior_is_another_run(X, tmp_path):
    quick(n_draws=3, n_burn_in=2, store=tmp_path / "s").fit(X)
    with pytest.raises(DataError, match="belongs to another run"):
        quick(concentration=2.0, n_draws=3, n_burn_in=2, store=tmp_path / "s").fit(X)
    with pytest.raises(DataError, match="belongs to another run"):
        quick(pseudo_count=2.0, n_draws=3, n_burn_in=2, store=tmp_path / "s").fit(X)


def test_chains_that_disagree_are_named(X, monkeypatch):
    """Chains that never move stay where they began, each at a place of its own."""
    engine_of = cocluster_fit.engine_of
    frozen = Cycle([OnRows([Concentration()])])
    monkeypatch.setattr(cocluster_fit, "engine_of", lambda *given: engine_of(*given)._replace(move=frozen))
    with pytest.warns(ConvergenceWarning, match=r"chains disagree on.*log_likelihood"):
        quick().fit(np.random.default_rng(0).permutation(X.ravel()).reshape(X.shape))


POSITIVE = "must be a positive number"
MISTAKES = [
    ({"prior": "gaussian"}, 'prior=\'gaussian\' must be "mfm", "dp", "dirichlet" or "mondrian"'),
    ({"prior": ["dp"]}, r"prior=\['dp'\] must be"),
    ({"family": "cauchy"}, 'family=\'cauchy\' must be "auto", "categorical", '),
    ({"family": 3.0}, "family=3.0 must be .*or a cell family"),
    ({"family": GaussianCells(2.0), "pseudo_count": 3.0}, "pseudo_count=3.0 would change nothing"),
    ({"pseudo_count": 0.0}, f"pseudo_count=0.0 {POSITIVE}"),
    ({"pseudo_count": -1.0}, f"pseudo_count=-1.0 {POSITIVE}"),
    ({"pseudo_count": np.nan}, f"pseudo_count=nan {POSITIVE}"),
    ({"pseudo_count": "much"}, f"pseudo_count='much' {POSITIVE}"),
    ({"concentration": 0.0}, f"concentration=0.0 {POSITIVE}"),
    ({"concentration": np.inf}, f"concentration=inf {POSITIVE}"),
    ({"concentration": True}, f"concentration=True {POSITIVE}"),
    ({"concentration": (1.0, 2.0, 3.0)}, "pair"),
    ({"concentration": (1.0, -2.0)}, rf"concentration=\(1.0, -2.0\) {POSITIVE}"),
    ({"prior": "mondrian", "budget": -1.0}, "budget=-1.0 must be a number, above 0"),
    ({"prior": "mondrian", "budget": np.nan}, "budget=nan must be a number, above 0"),
    ({"prior": "mondrian", "budget": 99.0}, "budget=99.0 must be a number, above 0 and 50 or less"),
    ({"prior": "mondrian", "budget": np.inf}, "budget=inf must be a number, above 0"),
    ({"prior": "mondrian", "concentration": 2.0}, "concentration=2.0 would change nothing.*'dp'"),
    ({"prior": "dp", "rate": 2.0}, "rate=2.0 would change nothing.*'mfm'"),
    ({"prior": "mfm", "rate": 0.0}, "rate=0.0 must be a number, above 0"),
    ({"prior": "mfm", "rate": 1e5}, "rate=100000.0 must be a number, above 0 and 10000 or less"),
    ({"prior": "mfm", "concentration": permix.Gamma()}, "Gamma prior.*goes with prior='dp'"),
    ({"prior": "mondrian", "n_row_clusters": 2}, "n_row_clusters=2 would change nothing"),
    ({"prior": "mondrian", "membership": "mixed"}, "membership='mixed' would change nothing"),
    ({"prior": "dp", "budget": 2.0}, "budget=2.0 would change nothing.*'mondrian'"),
    ({"prior": "dp", "n_column_clusters": 2}, "n_column_clusters=2 would change nothing.*'dirichlet'"),
    ({"prior": "dp", "membership": "mixed"}, "membership='mixed' would change nothing"),
    ({"prior": "dirichlet"}, "prior='dirichlet' needs n_row_clusters"),
    ({"prior": "dirichlet", "n_row_clusters": 2}, "needs n_column_clusters"),
    (
        {"prior": "dirichlet", "n_row_clusters": 0, "n_column_clusters": 2},
        "n_row_clusters=0 must be a whole number from 1 to 32767",
    ),
    (
        {"prior": "dirichlet", "n_row_clusters": 2.5, "n_column_clusters": 2},
        "n_row_clusters=2.5 must be a whole number",
    ),
    (
        {"prior": "dirichlet", "n_row_clusters": 2, "n_column_clusters": 2, "concentration": permix.Gamma()},
        "Gamma prior of the concentration goes with prior='dp'",
    ),
    (
        {"prior": "dirichlet", "n_row_clusters": 2, "n_column_clusters": 2, "budget": 3.0},
        "budget=3.0 would change nothing",
    ),
    ({"membership": "soft"}, 'membership=\'soft\' must be "hard" or "mixed"'),
    ({"loss": "zero-one"}, 'loss=\'zero-one\' must be "vi" or "binder"'),
    ({"progress": "x"}, "progress='x' must be"),
    ({"n_draws": 0}, "n_draws"),
    ({"n_chains": -1}, "n_chains"),
    ({"n_jobs": "x"}, "n_jobs='x' must be"),
    ({"random_state": -3}, "random_state"),
]


@pytest.mark.parametrize(("options", "message"), MISTAKES)
def test_mistakes_are_named(options, message, X):
    with pytest.raises(DataError, match=message):
        quick(**options).fit(X)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (np.full((3, 4), np.nan), "no filled cell"),
        (np.ma.masked_all((3, 4)), "no filled cell"),
        (np.array([[1.0, np.inf]]), "not finite"),
        (np.empty((0, 3)), "0 sample"),
        (np.empty((3, 0)), "0 feature"),
        ([1.0, 2.0], "double brackets"),
        (np.ones(3), "2D array"),
        ([[1.0, 2.0], [3.0]], "row 2 has 1 values and row 1 has 2"),
        (None, "is not a matrix"),
        ("film.csv", "2D|text|path|matrix"),
    ],
)
def test_matrices_that_are_none(data, message):
    with pytest.raises(DataError, match=message):
        quick().fit(data)


@pytest.mark.parametrize(
    ("family", "value", "message"),
    [
        ("bernoulli", 2.0, r"row 2.*column 3: 2 is none of the known values \(0, 1\)"),
        ("poisson", 1.5, r"row 2.*column 3.*1.5 is not a count"),
        ("poisson", -1.0, r"row 2.*column 3.*-1 is not a count"),
    ],
)
def test_cells_that_the_family_does_not_take(family, value, message):
    X = np.ones((4, 5))
    X[1, 2] = value
    with pytest.raises(DataError, match=message):
        quick(family=family).fit(X)
    named = Cells(*np.nonzero(X), X.ravel(), X.shape, list("abcd"), list("vwxyz"))
    with pytest.raises(DataError, match=r"'b'.*'x'"):
        quick(family=family).fit(named)


def test_text_is_no_number():
    X = np.array([["a", "b"], ["b", "a"]], dtype=object)
    with pytest.raises(DataError, match="not a number"):
        quick(family="gaussian").fit(X)


def test_rankings_are_no_matrix():
    votes = permix.datasets.make_mallows_mixture(20, 5, 2, random_state=0).data
    with pytest.raises(DataError, match="no matrix"):
        quick().fit(votes)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("family", ["categorical", "bernoulli", "poisson", "gaussian"])
def test_every_prior_takes_every_family(kind, family):
    X = planted_grid(np.random.default_rng(3), family, shape=(7, 5))[0]
    fitted = model(kind, family=family, n_draws=5, n_burn_in=5).fit(X)
    assert np.isfinite(fitted.log_likelihood_)
    table = fitted.predict_cells()
    assert table.shape == X.shape
    assert np.isfinite(table).all()
    assert np.isfinite(fitted.score_cells(X))
    n_blocks = int(fitted.block_labels_.max()) + 1
    assert all(len(values) == n_blocks for values in fitted.block_parameters_.values())
    assert np.isfinite(fitted.predict_cells(X[:2])).all()
    assert fitted.predict(X[:2]).shape == (2,)


def test_mixed_membership(X):
    fitted = quiet_fit(model("mixed"), X)
    assert fitted.n_row_clusters_ <= 3
    assert fitted.posterior_["posterior"]["row_memberships"].dims == ("chain", "draw", "row", "row_group")
    np.testing.assert_allclose(fitted.predict_cells_proba().sum(axis=-1), 1.0)
    # One draw by hand.
    posterior = fitted.posterior_["posterior"]
    total = 0.0
    for chain in range(2):
        for draw in range(70):
            one = posterior.isel(chain=chain, draw=draw)
            rows = one["row_memberships"].to_numpy()[3] + 1.0
            columns = one["column_memberships"].to_numpy()[5] + 1.0
            n, sums = one["block_cells"].to_numpy(), one["block_sums"].to_numpy()
            beta = float(one["pseudo_count"])
            values = (sums + beta) / (n + 3.0 * beta)[..., None]
            total = total + np.einsum("g,h,ghv->v", rows / rows.sum(), columns / columns.sum(), values)
    np.testing.assert_allclose(fitted.predict_cells_proba(cells=[(3, 5)])[0], total / 140, rtol=1e-10)
    assert fitted.perplexity(X) < 3.0


@pytest.mark.parametrize("pseudo_count", [1, 1.0])
def test_counts_of_draws_do_not_run_over(pseudo_count):
    """With one cluster of rows and one of columns all is known: 255 cells fill the type they are kept in."""
    X = np.resize([1.0, 2.0, 2.0], (51, 5))
    settings = {"n_row_clusters": 1, "n_column_clusters": 1, "membership": "mixed", "n_draws": 6}
    fitted = quiet_fit(quick("dirichlet", pseudo_count=pseudo_count, **settings), X)
    twos = (X == 2).sum()
    np.testing.assert_allclose(fitted.predict_cells_proba()[..., 1], (twos + 1) / 257)
    new = np.array([[2.0, 2.0, 2.0, np.nan, np.nan]])
    np.testing.assert_allclose(fitted.predict_cells_proba(new)[0, :, 1], (twos + 4) / 260)
    exact = sum(np.log((twos + 1 + i) / (257 + i)) for i in range(3))
    assert fitted.score_samples(new)[0] == pytest.approx(exact, abs=1e-9)
    np.testing.assert_allclose(fitted.predict_proba(new), [[1.0]])


def test_new_rows_under_mixed_membership():
    X, row_labels, _ = planted_grid(np.random.default_rng(8), shape=(42, 16))
    fitted = quiet_fit(model("mixed"), X[:30])
    new = X[30:].copy()
    new[:, ::4] = np.nan  # asked for
    asked = np.nonzero(np.isnan(new) & ~np.isnan(X[30:]))
    assert (fitted.predict_cells(new)[asked] == X[30:][asked]).mean() > 0.6  # at best 0.8
    clusters = fitted.predict(new)
    assert adjusted_rand_score(row_labels[30:], clusters) > 0.5
    assert np.isfinite(fitted.score_samples(new)).all()


def _cut_or_whole(whole, loss):
    """Draws of which all but one cut the rows in halves."""
    n_draws = len(whole)
    axis = np.where(np.array(whole)[:, None], -1, np.array([0, -1, -1]))
    halves = np.repeat([0, 1], 3)
    arrays = {
        "row_labels": np.where(np.array(whole)[:, None], 0, halves).reshape(2, n_draws // 2, 6),
        "column_labels": np.zeros((2, n_draws // 2, 4), dtype=int),
        "tree_axis": axis.reshape(2, n_draws // 2, 3),
        "tree_cut": np.where(axis < 0, np.nan, 0.5).reshape(2, n_draws // 2, 3),
        "tree_time": np.where(axis < 0, np.nan, 0.3).reshape(2, n_draws // 2, 3),
    }
    settings = CoClusterParameters(prior="mondrian", loss=loss)
    draws = Draws(arrays=arrays, statistics={}, interrupted=False, n_draws=n_draws // 2, seeds=())
    return cocluster_fit.nearest_draw(draws, settings, (6, 4))


@pytest.mark.parametrize("loss", ["vi", "binder"])
def test_the_nearest_draw_is_like_most_others(loss):
    assert _cut_or_whole([True, False, False, False], loss) == 1
    assert _cut_or_whole([False, False, True, False], loss) == 0
    assert _cut_or_whole([False, True, True, True], loss) == 1
    assert _cut_or_whole([True, True, False, True], loss) == 0


def test_clusters_that_differ_in_nothing_are_one():
    weights = np.log([0.2, 0.1, 0.3, 0.4])
    # The second interval holds no row, but its blocks are those of the first; the last has its own.
    draw = BlockDraw(
        np.array([2, 0, 2, 0]),
        np.array([3, 0, 1, 2]),
        np.array([[0, 1, 1, 1, 8], [0, 1, 1, 1, 2], [4, 5, 5, 5, 6], [4, 4, 4, 4, 4]]),
        weights,
        -np.inf,
    )
    merged = cocluster_fit.told_apart(draw)
    np.testing.assert_array_equal(merged.table, [[0, 1], [2, 3]])
    np.testing.assert_array_equal(merged.row_classes, [1, 0, 1, 0])
    np.testing.assert_array_equal(merged.column_classes, [1, 0, 1, 1])
    np.testing.assert_allclose(np.exp(merged.row_log_weights), [0.3, 0.3])


def test_merged_clusters_keep_blocks_and_order():
    """Trees at random: the same partition of cells, in order of position, every block still a rectangle."""
    rng = np.random.default_rng(0)
    n_merged = 0
    for _ in range(40):
        tree = sample_mondrian(rng, 2.0)
        table = tree.table()
        rows, columns = (rng.integers(size, size=12) for size in table.shape)
        draw = mondrian_draw(rows, columns, table, np.diff(tree.row_edges()))
        merged = cocluster_fit.told_apart(draw)
        before, after = table[rows][:, columns], merged.table[merged.row_classes][:, merged.column_classes]
        pairs = set(zip(before.ravel(), after.ravel(), strict=True))
        assert len(pairs) == len(np.unique(before)) == len(np.unique(after)) == merged.n_blocks
        for old, new in ((rows, merged.row_classes), (columns, merged.column_classes)):
            assert np.all(np.diff(new[np.argsort(old)]) >= 0)
        for block in range(merged.n_blocks):
            inside = merged.table == block
            height, width = (np.ptp(places) + 1 for places in np.nonzero(inside))
            assert inside.sum() == height * width
        assert len(np.unique(merged.table, axis=0)) == len(merged.table)
        assert len(np.unique(merged.table, axis=1).T) == merged.table.shape[1]
        n_merged += len(merged.table) < len(np.unique(rows))
    assert n_merged > 0


def test_interrupted_by_hand_keeps_what_is_there(X, monkeypatch):
    own_copy, kept = chains.own_copy, [0]

    def interrupted(draw):
        kept[0] += 1
        if kept[0] == 200:
            signal.raise_signal(signal.SIGINT)
        return own_copy(draw)

    monkeypatch.setattr(chains, "own_copy", interrupted)
    with pytest.warns(PermixWarning, match="interrupted after"):
        fitted = quick(n_draws=100_000, n_burn_in=0).fit(X)
    assert fitted._fit.draws.interrupted
    assert 0 < fitted._fit.draws.n_draws < 100_000
    assert fitted.predict_cells().shape == X.shape


def test_too_many_levels_are_no_levels():
    numbers = np.random.default_rng(0).normal(size=(40, 30))
    with pytest.raises(DataError, match="1,200 different values, too many to be levels"):
        quick().fit(numbers)
    with pytest.warns(PermixWarning, match="each is taken for a level of its own"):
        quick(n_draws=2, n_burn_in=0, n_chains=1).fit(np.floor(numbers * 50))


def test_mondrian_shows_what_is_its_own():
    assert dir(permix.mondrian) == ["MondrianTree", "budget_for", "expected_blocks", "sample"]


def test_cells_of_a_large_matrix_are_never_listed():
    """Draws of one block over 20,000 rows and 5,000 columns: only some cells are looked at."""
    shape = (20_000, 5_000)
    arrays = {
        "row_labels": np.zeros((1, 3, shape[0]), dtype=np.uint8),
        "column_labels": np.zeros((1, 3, shape[1]), dtype=np.uint8),
        "tree_axis": np.full((1, 3, 1), -1),
        "tree_cut": np.full((1, 3, 1), np.nan),
        "tree_time": np.full((1, 3, 1), np.nan),
    }
    draws = Draws(arrays=arrays, statistics={}, interrupted=False, n_draws=3, seeds=())
    tracemalloc.start()
    try:
        assert cocluster_fit.nearest_draw(draws, SimpleNamespace(budget=1.0, loss="vi"), shape) == 0
        assert tracemalloc.get_traced_memory()[1] < 50e6
    finally:
        tracemalloc.stop()
