"""Synthetic college applications: many courses of unequal popularity, short lists, themes of unequal size."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from permix.data.rankings import Rankings
from permix.datasets.generators_rankings import Orders, make_generalized_mallows_mixture
from permix.datasets.truth import Floats, Ints, at_least, mixture_weights, readable
from permix.errors import DataError
from permix.runtime.seeds import RandomState, generator

# Subjects in the order of their numbers of courses; neighbors are alike, the last is a neighbor of the first.
SUBJECTS = (
    *("Business", "Computing", "Engineering", "Science", "Nursing", "Medicine", "Teaching"),
    *("Arts", "Design", "Media", "Law", "Tourism"),
)
TOWNS = ("Dublin", "Cork", "Galway", "Limerick", "Waterford", "Maynooth", "Athlone", "Sligo")
TOWN_SHARES = (0.36, 0.14, 0.11, 0.12, 0.09, 0.07, 0.06, 0.05)
ANYWHERE, OUTSIDE = "anywhere", "outside Dublin"

# What a course gains from being what a group of applicants looks for, as a difference of log popularity.
SAME_SUBJECT, RELATED_SUBJECT, SAME_PLACE = 6.0, 2.5, 3.0
TASTE = 0.4  # spread of what is left to the group's own taste

# Shares of the five largest clusters in table 1 of Meilă & Chen (2010); the others fall to 1 %.
LARGEST_SHARES = (8.1, 6.2, 6.0, 5.8, 5.7)
OTHER_SHARES = (5.6, 1.1)
# Mean of 6.4 for lists of up to ten: the paper's clusters have 6.15 (small ones) and 6.63 (large ones).
FILLED = 0.6


@readable
class CollegeApplicationsData(NamedTuple):
    """Lists of courses with the generalized Mallows mixture that made them.

    Attributes
    ----------
    data : Rankings
        Items are courses, such as ``"Engineering, Dublin 3"``; within a subject and town, course 1 is the
        most popular.
    labels : array (n_samples,)
    centers : int array (n_components, n_items)
        Central orderings, best first.
    theta : array (n_components, longest)
        Decay of each stage.
    weights : array (n_components,)
        Falling.
    themes : tuple of str
        What each group looks for, such as ``"Business, Dublin"``.
    popularity : array (n_items,)
        Share of each course in the general demand, from which all centers are tilted.
    """

    data: Rankings
    labels: Ints
    centers: Orders
    theta: Floats
    weights: Floats
    themes: tuple[str, ...]
    popularity: Floats


# What groups of applicants look for, largest first: five as in the paper's table 1, then others.
_THEMES = [
    *(("Business", "Dublin"), ("Computing", OUTSIDE), ("Business", OUTSIDE), ("Engineering", ANYWHERE)),
    ("Computing", "Dublin"),
    *((what, where) for what in SUBJECTS[3:] for where in ("Dublin", OUTSIDE)),
    *(("", town) for town in TOWNS[1:]),
]


def make_college_applications(
    n_samples: int = 53_757,
    n_items: int = 533,
    n_components: int = 30,
    longest: int = 10,
    *,
    theta: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    random_state: RandomState = None,
) -> CollegeApplicationsData:
    """Draw applications to courses, of the shape of the Irish college data of the year 2000.

    Section 8 of Meilă & Chen (2010) analyzes 53,757 lists of up to ten out of 533 courses; they are not
    public. Here every course has a subject and a town, and courses differ widely in popularity. Each group of
    applicants looks for a subject in Dublin or outside it, or for a town, and its center is the order of
    popularity, tilted toward what it looks for: centers share popular courses further down. Lists are drawn
    from a generalized Mallows model around the center of the applicant's group.

    Parameters
    ----------
    n_samples, n_items, n_components : int
        Applicants, courses, and groups of applicants.
    longest : int
        Length of the longest lists. Lengths have P(l) ∝ exp(c l) on 1 ... ``longest``, c such that the
        mean is 6.4 for lists of up to ten.
    theta : float, array (longest,) or array (n_components, longest), optional
        Decay of each stage. By default it falls evenly from 1.5 to 0.6: first choices are clearer.
    weights : array, optional
        Shares of the groups; by default like those in the paper, falling from 8 % to 1 % for 30.
    random_state : int, Generator or None

    Examples
    --------
    >>> from permix.datasets import make_college_applications
    >>> applications = make_college_applications(1000, 100, 5, random_state=1)
    >>> applications.themes[0], int(applications.data.lengths.max())
    ('Business, Dublin', 10)
    """
    rng = generator(random_state)
    at_least("n_items", n_items, 1)
    if not 1 <= longest <= n_items:
        raise DataError(f"longest must lie between 1 and {n_items}, not {longest}")
    shares = mixture_weights(_shares(n_components) if weights is None else weights, n_components)
    subject, town, log_popularity, names = _courses(rng, n_items)
    themes = [_THEMES[k % len(_THEMES)] for k in range(n_components)]
    appeal = np.stack([_appeal(theme, subject, town) for theme in themes]) + log_popularity
    centers = np.argsort(-(appeal + TASTE * rng.gumbel(size=appeal.shape)), axis=1)
    made = make_generalized_mallows_mixture(
        n_samples,
        n_items,
        n_components,
        theta=np.linspace(1.5, 0.6, longest) if theta is None else theta,
        lengths=_lengths(rng, n_samples, longest),
        weights=shares,
        centers=centers,
        random_state=rng,
    )
    popularity = np.exp(log_popularity)
    described = tuple(f"{what}, {where}" if what else where for what, where in themes)
    data = made.data._replaced(items=names)
    return CollegeApplicationsData(data, *made[1:], described, popularity / popularity.sum())


def _shares(n_components: int) -> Floats:
    others = np.geomspace(*OTHER_SHARES, max(n_components - len(LARGEST_SHARES), 0))
    return np.concatenate([LARGEST_SHARES[:n_components], others])


def _courses(rng: np.random.Generator, n_items: int) -> tuple[Ints, Ints, Floats, tuple[str, ...]]:
    """Subject, town, log popularity and name of every course, in the order of names."""
    shares = np.geomspace(3.0, 1.0, len(SUBJECTS))
    subject = rng.choice(len(SUBJECTS), size=n_items, p=shares / shares.sum())
    town = rng.choice(len(TOWNS), size=n_items, p=TOWN_SHARES)
    # Zipf's law: the course at place k has a demand of 1/k.
    log_popularity = -np.log(rng.permutation(n_items) + 1.0)
    order = np.lexsort((-log_popularity, town, subject))
    subject, town, log_popularity = subject[order], town[order], log_popularity[order]
    so_far: Counter[str] = Counter()
    names = []
    for what, where in zip(subject.tolist(), town.tolist(), strict=True):
        kind = f"{SUBJECTS[what]}, {TOWNS[where]}"
        so_far[kind] += 1
        names.append(f"{kind} {so_far[kind]}")
    return subject, town, log_popularity, tuple(names)


def _appeal(theme: tuple[str, str], subject: Ints, town: Ints) -> Floats:
    """What a theme adds to the log popularity of every course."""
    what, where = theme
    gain = np.zeros(len(subject))
    if what:
        apart = np.abs(subject - SUBJECTS.index(what))
        apart = np.minimum(apart, len(SUBJECTS) - apart)
        gain += np.select([apart == 0, apart == 1], [SAME_SUBJECT, RELATED_SUBJECT])
    else:  # a town alone: it weighs as much as a subject does
        gain += (SAME_SUBJECT - SAME_PLACE) * (town == TOWNS.index(where))
    if where == OUTSIDE:
        gain += SAME_PLACE * (town > 0)
    elif where != ANYWHERE:
        gain += SAME_PLACE * (town == TOWNS.index(where))
    return gain


def _lengths(rng: np.random.Generator, n_samples: int, longest: int) -> Ints:
    """Lengths with P(l) ∝ exp(c l) and mean 1 + 0.6 (longest - 1)."""
    from scipy.optimize import brentq

    at_least("the number of samples", n_samples, 1)
    steps = np.arange(longest)
    if longest == 1:
        return np.ones(n_samples, dtype=np.int64)

    def probabilities(c: float) -> Floats:
        weight = np.exp(c * steps)
        return np.asarray(weight / weight.sum())

    c = brentq(lambda c: probabilities(c) @ steps - FILLED * steps[-1], 0.0, 5.0)
    return 1 + rng.choice(longest, size=n_samples, p=probabilities(c))
