"""Synthetic groups of points, documents and questionnaires."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from permix.datasets import truth
from permix.datasets.truth import Floats, Ints, at_least, draw_labels, mixture_weights, readable
from permix.errors import DataError
from permix.runtime.seeds import RandomState, generator

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


@readable
class GaussianClusters(NamedTuple):
    """Points with the groups that made them.

    Attributes
    ----------
    data : array (n_samples, n_features)
    labels : array (n_samples,)
    means : array (n_clusters, n_features)
    weights : array (n_clusters,)
        Mixture weights; for :func:`make_dp_gaussian` the shares of the points.
    noise_scale : float
        Standard deviation of every coordinate about its mean.
    """

    data: Floats
    labels: Ints
    means: Floats
    weights: Floats
    noise_scale: float


@readable
class Documents(NamedTuple):
    """Word counts with the topics that made them.

    Attributes
    ----------
    data : scipy.sparse.csr_matrix (n_documents, n_words)
    labels : array (n_documents,)
        The one topic of each document.
    topics : array (n_topics, n_words)
        Word probabilities.
    weights : array (n_topics,)
    """

    data: csr_matrix
    labels: Ints
    topics: Floats
    weights: Floats


@readable
class CategoricalClusters(NamedTuple):
    """Answers to questions with the groups that made them.

    Attributes
    ----------
    data : int array (n_samples, n_features)
        Categories from 0; -1 is missing.
    labels : array (n_samples,)
    probabilities : array (n_clusters, n_features, largest number of categories)
        Zero beyond a feature's own number of categories.
    weights : array (n_clusters,)
    """

    data: Ints
    labels: Ints
    probabilities: Floats
    weights: Floats


def _restaurant(rng: np.random.Generator, n: int, concentration: float) -> Ints:
    """Seat n guests: each opens a table with probability α/(α+i), or joins one earlier guest at random."""
    joined = (rng.random(n) * np.arange(n)).astype(np.int64).tolist()
    opens = (rng.random(n) * (concentration + np.arange(n)) < concentration).tolist()
    tables = np.cumsum(opens).tolist()
    labels: list[int] = []
    for guest in range(n):
        labels.append(tables[guest] - 1 if opens[guest] else labels[joined[guest]])
    return np.array(labels, dtype=np.int64)


def make_gaussian_clusters(
    n_samples: int = 500,
    n_features: int = 2,
    n_clusters: int = 5,
    *,
    separation: float = 6.0,
    noise_scale: float = 1.0,
    weights: ArrayLike | None = None,
    random_state: RandomState = None,
) -> GaussianClusters:
    """Draw points from spherical Gaussian groups.

    Parameters
    ----------
    n_samples, n_features, n_clusters : int
    separation : float
        Root-mean-square distance between two group means, in units of ``noise_scale``.
    noise_scale : float
        Standard deviation within a group.
    weights : array, optional
        Mixture weights, equal by default.
    random_state : int, Generator or None

    Examples
    --------
    >>> from permix.datasets import make_gaussian_clusters
    >>> points = make_gaussian_clusters(200, 3, 4, random_state=1)
    >>> points.data.shape, points.means.shape
    ((200, 3), (4, 3))
    """
    rng = generator(random_state)
    at_least("n_features", n_features, 1)
    at_least("separation", separation, 0)
    at_least("noise_scale", noise_scale, 0)
    shares = mixture_weights(weights, n_clusters)
    # E|m - m'|² = 2 d s², hence this s.
    scale = separation * noise_scale / np.sqrt(2 * n_features)
    means = rng.normal(scale=scale, size=(n_clusters, n_features))
    labels = draw_labels(rng, n_samples, shares)
    data = means[labels] + rng.normal(scale=noise_scale, size=(n_samples, n_features))
    return GaussianClusters(data, labels, means, shares, noise_scale)


def make_dp_gaussian(
    n_samples: int = 500,
    n_features: int = 2,
    *,
    concentration: float = 1.0,
    random_state: RandomState = None,
    mean_scale: float = 10.0,
    noise_scale: float = 1.0,
) -> GaussianClusters:
    """Draw points from a Dirichlet-process mixture of Gaussians.

    Group sizes follow the Chinese restaurant process; means are normal around 0 with standard
    deviation ``mean_scale`` in every coordinate. Groups are numbered in order of first appearance.

    Examples
    --------
    >>> from permix.datasets import make_dp_gaussian
    >>> points = make_dp_gaussian(100, concentration=2.0, random_state=1)
    >>> len(points.means) == len(set(points.labels.tolist()))
    True
    """
    rng = generator(random_state)
    at_least("n_samples", n_samples, 1)
    at_least("n_features", n_features, 1)
    if not 0 < concentration < np.inf:
        raise DataError(f"concentration must be positive and finite, not {concentration}")
    labels = _restaurant(rng, n_samples, concentration)
    means = rng.normal(scale=mean_scale, size=(labels.max() + 1, n_features))
    data = means[labels] + rng.normal(scale=noise_scale, size=(n_samples, n_features))
    return GaussianClusters(data, labels, means, np.bincount(labels) / n_samples, noise_scale)


def make_documents(
    n_documents: int = 500,
    n_words: int = 200,
    n_topics: int = 5,
    *,
    weights: ArrayLike | None = None,
    document_length: float = 50.0,
    random_state: RandomState = None,
    topic_concentration: float = 0.1,
) -> Documents:
    """Draw word counts from a mixture of multinomials: every document has one topic.

    Words of a document are drawn independently.

    Parameters
    ----------
    n_documents, n_words, n_topics : int
    weights : array, optional
        Mixture weights, equal by default.
    document_length : float
        Mean length: one word and a Poisson number more.
    random_state : int, Generator or None
    topic_concentration : float
        Parameter of the symmetric Dirichlet prior of each topic; small values give topics that share
        few words.

    Examples
    --------
    >>> from permix.datasets import make_documents
    >>> documents = make_documents(100, 50, 3, random_state=1)
    >>> documents.data.shape
    (100, 50)
    """
    from scipy.sparse import coo_matrix

    rng = generator(random_state)
    at_least("n_words", n_words, 1)
    at_least("document_length", document_length, 1)
    shares = mixture_weights(weights, n_topics)
    topics = rng.dirichlet(np.full(n_words, topic_concentration), size=n_topics)
    labels = draw_labels(rng, n_documents, shares)
    lengths = 1 + rng.poisson(document_length - 1, size=n_documents)
    document = np.repeat(np.arange(n_documents), lengths)
    word = np.empty(document.size, dtype=np.int64)
    for topic in range(n_topics):
        here = labels[document] == topic
        word[here] = rng.choice(n_words, size=int(here.sum()), p=topics[topic])
    ones = np.ones(document.size, dtype=np.int64)
    counts = coo_matrix((ones, (document, word)), shape=(n_documents, n_words)).tocsr()
    return Documents(counts, labels, topics, shares)


def make_categorical_clusters(
    n_samples: int = 500,
    n_features: int = 10,
    n_clusters: int = 4,
    *,
    n_categories: int | Sequence[int] = 4,
    weights: ArrayLike | None = None,
    answer_concentration: float = 0.5,
    missing: float = 0.0,
    random_state: RandomState = None,
) -> CategoricalClusters:
    """Draw answers to multiple-choice questions from latent classes.

    Within a class, answers to different questions are independent.

    Parameters
    ----------
    n_samples, n_features, n_clusters : int
    n_categories : int or one int per feature
    weights : array, optional
        Mixture weights, equal by default.
    answer_concentration : float
        Parameter of the symmetric Dirichlet prior of each class's answers to a question.
    missing : float
        Share of answers missing at random, coded -1.
    random_state : int, Generator or None

    Examples
    --------
    >>> from permix.datasets import make_categorical_clusters
    >>> answers = make_categorical_clusters(50, 6, 2, missing=0.1, random_state=1)
    >>> int(answers.data.min()), int(answers.data.max())
    (-1, 3)
    """
    rng = generator(random_state)
    at_least("n_features", n_features, 1)
    sizes = np.broadcast_to(np.asarray(n_categories, dtype=np.int64), (n_features,))
    at_least("n_categories", int(sizes.min()), 1)
    shares = mixture_weights(weights, n_clusters)
    probabilities = np.zeros((n_clusters, n_features, int(sizes.max())))
    for feature, size in enumerate(sizes):
        probabilities[:, feature, :size] = rng.dirichlet(np.full(size, answer_concentration), size=n_clusters)
    labels = draw_labels(rng, n_samples, shares)
    data = truth.hide(rng, truth.draw_categories(rng, probabilities[labels]), missing, -1)
    return CategoricalClusters(data, labels, probabilities, shares)
