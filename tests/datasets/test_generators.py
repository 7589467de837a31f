"""Generators: shapes, the truth they report, and refusals."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from permix import Preferences, Rankings
from permix import datasets as ds
from permix.errors import DataError

MAKERS = [
    lambda seed: ds.make_gaussian_clusters(60, 3, 4, random_state=seed),
    lambda seed: ds.make_dp_gaussian(60, 2, random_state=seed),
    lambda seed: ds.make_documents(40, 30, 3, random_state=seed),
    lambda seed: ds.make_categorical_clusters(50, 5, 3, missing=0.2, random_state=seed),
    lambda seed: ds.make_mallows_mixture(50, 6, 2, random_state=seed),
    lambda seed: ds.make_mallows_mixture(50, 6, 2, observed="pairs", random_state=seed),
    lambda seed: ds.make_generalized_mallows_mixture(50, 9, 2, lengths=(1, 4), random_state=seed),
    lambda seed: ds.make_angle_mixture(50, 6, 2, random_state=seed),
    lambda seed: ds.make_angle_mixture(20, 20, 2, random_state=seed),
    lambda seed: ds.make_grid_coclusters(20, 15, 3, 2, missing=0.1, random_state=seed),
    lambda seed: ds.make_mondrian_matrix(20, 15, random_state=seed),
]


def _same(a, b):
    if sparse.issparse(a):
        return (a != b).nnz == 0
    if isinstance(a, np.ndarray):
        return np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
    if isinstance(a, tuple):
        return all(map(_same, a, b))
    return a == b


@pytest.mark.parametrize("make", MAKERS)
def test_same_seed_same_data_and_another_seed_another(make):
    assert _same(make(3), make(3))
    assert not _same(make(3)[0], make(4)[0])
    assert _same(make(np.random.default_rng(3)), make(3))
    text = repr(make(3))
    assert text.startswith(type(make(3)).__name__)
    assert len(text.splitlines()) == len(make(3)) + 2


def test_gaussian_clusters_have_the_stated_separation_and_noise():
    made = ds.make_gaussian_clusters(20_000, 40, 200, separation=8.0, noise_scale=0.5, random_state=1)
    centered = made.data - made.means[made.labels]
    assert centered.std() == pytest.approx(0.5, abs=5 * 0.5 / np.sqrt(2 * centered.size))
    # Mean squared distance of two means is (separation noise)²; 200 means in 40 dimensions pin it down.
    squared = 2 * made.means.var(axis=0, ddof=1).sum()
    assert squared == pytest.approx(16.0, rel=5 * np.sqrt(2 / (199 * 40)))


def test_weights_are_followed():
    made = ds.make_gaussian_clusters(30_000, 1, 3, weights=[5, 3, 2], random_state=1)
    shares = np.bincount(made.labels, minlength=3) / 30_000
    assert np.all(np.abs(shares - made.weights) < 5 * np.sqrt(made.weights * (1 - made.weights) / 30_000))


def test_dp_gaussian_has_as_many_tables_as_the_restaurant():
    n, alpha, repeats = 200, 2.0, 300
    tables = [
        ds.make_dp_gaussian(n, 1, concentration=alpha, random_state=seed).labels.max() + 1
        for seed in range(repeats)
    ]
    p = alpha / (alpha + np.arange(n))
    assert abs(np.mean(tables) - p.sum()) < 5 * np.sqrt(np.sum(p * (1 - p)) / repeats)
    # The next guest joins a table in proportion to its size: pairs sit together with probability 1/(1+alpha).
    together = np.mean(
        [
            ds.make_dp_gaussian(2, 1, concentration=alpha, random_state=seed).labels[1] == 0
            for seed in range(3000)
        ]
    )
    assert abs(together - 1 / 3) < 5 * np.sqrt(2 / 9 / 3000)


def test_documents_follow_their_topics():
    made = ds.make_documents(400, 20, 2, document_length=200, random_state=1)
    assert made.data.format == "csr"
    assert made.data.has_canonical_format
    for topic in range(2):
        words = np.asarray(made.data[made.labels == topic].sum(axis=0)).ravel()
        p = made.topics[topic]
        bound = 5 * np.sqrt(p * (1 - p) / words.sum()) + 5 / words.sum()
        assert np.all(np.abs(words / words.sum() - p) < bound)


def test_categorical_clusters_with_their_own_numbers_of_categories():
    made = ds.make_categorical_clusters(20_000, 3, 2, n_categories=[2, 3, 5], missing=0.25, random_state=1)
    assert made.data.max(axis=0).tolist() == [1, 2, 4]
    hidden = np.mean(made.data < 0)
    assert abs(hidden - 0.25) < 5 * np.sqrt(0.25 * 0.75 / made.data.size)
    seen = made.data[made.labels == 0][:, 2]
    seen = seen[seen >= 0]
    p = made.probabilities[0, 2]
    shares = np.bincount(seen, minlength=5) / seen.size
    assert np.all(np.abs(shares - p) < 5 * np.sqrt(p * (1 - p) / seen.size) + 5 / seen.size)
    assert np.all(made.probabilities[:, 0, 2:] == 0)


def test_mallows_mixture_shows_what_was_asked_of_the_same_rankings():
    full = ds.make_mallows_mixture(80, 7, 3, random_state=5)
    top = ds.make_mallows_mixture(80, 7, 3, observed="top", top=3, random_state=5)
    pairs = ds.make_mallows_mixture(80, 7, 3, observed="pairs", pair_fraction=0.3, random_state=5)
    assert isinstance(full.data, Rankings)
    assert full.data.is_full
    assert isinstance(top.data, Rankings)
    assert top.data.unlisted == "below"
    assert np.array_equal(top.data.orders, full.data.orders[:, :3])
    assert isinstance(pairs.data, Preferences)
    place = np.argsort(pairs.complete, axis=1)
    for row in range(80):
        mine = pairs.data.pairs[pairs.data.pair_indptr[row] : pairs.data.pair_indptr[row + 1]]
        assert np.all(place[row, mine[:, 0]] < place[row, mine[:, 1]])
        assert len(np.unique(mine, axis=0)) == len(mine)
    n_possible = 80 * 21
    assert abs(len(pairs.data.pairs) - 0.3 * n_possible) < 5 * np.sqrt(n_possible * 0.21)


@pytest.mark.parametrize(("share", "expected"), [(0.0, 0), (1.0, 30 * 10)])
def test_no_pair_and_every_pair(share, expected):
    made = ds.make_mallows_mixture(30, 5, 1, observed="pairs", pair_fraction=share, random_state=1)
    assert len(made.data.pairs) == expected
    assert len(made.data) == 30


@pytest.mark.parametrize(
    ("preset", "t", "theta"),
    [
        ("meila-chen-1", 10, np.full(10, 1.0)),
        ("meila-chen-2", 19, np.full(19, 1.0)),
        ("meila-chen-3", 10, 1.5 - 0.1 * np.arange(10)),
        ("meila-chen-4", 19, 1.5 - 0.05 * np.arange(19)),
    ],
)
def test_presets_of_meila_and_chen(preset, t, theta):
    made = ds.make_generalized_mallows_mixture(preset=preset, random_state=1)
    assert made.data.n_items == 20
    assert np.all(made.data.lengths == t)
    assert np.bincount(made.labels).tolist() == [500] * 10
    assert np.allclose(made.theta, theta)
    assert len({tuple(center) for center in made.centers.tolist()}) == 10


def test_center_weight_draws_the_centers_together():
    def spread(weight):
        centers = ds.make_generalized_mallows_mixture(
            preset="meila-chen-1", center_weight=weight, random_state=1
        ).centers
        return len({tuple(center) for center in centers.tolist()})

    assert spread(100) == 1  # the full weight of 100 permutations leaves one ordering
    assert spread(0) == 10


def test_angle_prefers_the_smallest_entry():
    made = ds.make_angle_mixture(
        200, 30, 1, concentration=2000.0, directions=[np.arange(30.0)], random_state=1
    )
    assert not made.exact
    assert made.directions.sum() == pytest.approx(0)
    assert np.median(made.data.orders[:, 0]) < 3


@pytest.mark.parametrize("family", ["categorical", "gaussian", "poisson", "bernoulli"])
def test_grid_cells_follow_their_block(family):
    made = ds.make_grid_coclusters(200, 150, 2, 2, family=family, missing=0.3, random_state=2)
    hidden = made.data < 0 if family == "categorical" else np.isnan(made.data)
    assert abs(hidden.mean() - 0.3) < 5 * np.sqrt(0.21 / hidden.size)
    if family == "gaussian":
        assert np.any(made.data < 0)
    for row in range(2):
        for column in range(2):
            inside = (made.row_labels == row)[:, None] & (made.column_labels == column) & ~hidden
            cells, truth = made.data[inside], made.parameters[row, column]
            if family == "categorical":
                shares = np.bincount(cells, minlength=5) / cells.size
                assert np.all(
                    np.abs(shares - truth) < 5 * np.sqrt(truth * (1 - truth) / cells.size) + 5 / cells.size
                )
            else:
                scale = {"gaussian": 1.0, "poisson": truth, "bernoulli": truth * (1 - truth)}[family]
                assert abs(cells.mean() - truth) < 5 * np.sqrt(scale / cells.size) + 5 / cells.size


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: ds.make_gaussian_clusters(0), "number of samples"),
        (lambda: ds.make_gaussian_clusters(n_clusters=0), "number of groups"),
        (lambda: ds.make_gaussian_clusters(weights=[1, 2]), "5 numbers"),
        (lambda: ds.make_dp_gaussian(concentration=0), "positive"),
        (lambda: ds.make_documents(document_length=0), "document_length"),
        (lambda: ds.make_categorical_clusters(missing=1.5), "missing"),
        (lambda: ds.make_mallows_mixture(dispersion=1.2), "dispersion"),
        (lambda: ds.make_mallows_mixture(observed="top"), "go together"),
        (lambda: ds.make_mallows_mixture(top=3), "go together"),
        (lambda: ds.make_mallows_mixture(observed="top", top=99), "between 1 and 8"),
        (lambda: ds.make_mallows_mixture(observed="some"), "'full', 'top' or 'pairs'"),
        (lambda: ds.make_mallows_mixture(centers=[[0, 1]]), "orderings of 0..7"),
        (lambda: ds.make_mallows_mixture(observed="pairs", pair_fraction=-1), "pair_fraction"),
        (lambda: ds.make_generalized_mallows_mixture(lengths=11), "between 1 and 10"),
        (lambda: ds.make_generalized_mallows_mixture(theta=[1.0, 2.0]), "need 10 stages"),
        (lambda: ds.make_generalized_mallows_mixture(theta=-1.0), "negative"),
        (lambda: ds.make_generalized_mallows_mixture(preset="nobody"), "meila-chen-1"),
        (lambda: ds.make_angle_mixture(concentration=-1), "concentration"),
        (
            lambda: ds.make_angle_mixture(n_items=3, n_components=1, directions=[[1, 1, 1]]),
            "all entries equal",
        ),
        (lambda: ds.make_grid_coclusters(family="gamma"), "categorical, gaussian"),
        (lambda: ds.make_mondrian_matrix(budget=-1), "budget"),
    ],
)
def test_refusals(call, words):
    with pytest.raises(DataError, match=words):
        call()
