"""College applications: shape of the data, the truth reported, and refusals."""

from __future__ import annotations

import numpy as np
import pytest

from permix.datasets.generators_college import make_college_applications
from permix.errors import DataError


@pytest.fixture(scope="module")
def applications():
    return make_college_applications(random_state=1)


def test_the_shape_is_that_of_the_paper(applications):
    data = applications.data
    assert (len(data), data.n_items, applications.centers.shape) == (53_757, 533, (30, 533))
    assert (data.lengths.min(), data.lengths.max()) == (1, 10)
    # Lengths lie between 1 and 10, so their standard deviation is at most 4.5.
    assert abs(data.lengths.mean() - 6.4) < 5 * 4.5 / np.sqrt(53_757)
    assert np.all(np.diff(np.bincount(data.lengths)[1:]) > 0)  # longer lists are more common
    assert data.unlisted_below.all()
    assert len(set(applications.themes)) == 30


def test_sizes_are_those_of_the_papers_clusters(applications):
    assert np.all(np.diff(applications.weights) < 0)
    np.testing.assert_allclose(applications.weights[:5], [0.081, 0.062, 0.060, 0.058, 0.057], rtol=0.03)
    assert applications.weights[-1] > 0.01
    shares = np.bincount(applications.labels, minlength=30) / 53_757
    spread = np.sqrt(applications.weights * (1 - applications.weights) / 53_757)
    assert np.all(np.abs(shares - applications.weights) < 5 * spread)


def test_courses_have_names_and_unequal_popularity(applications):
    names = applications.data.items
    assert len(set(names)) == 533
    assert "Engineering, Dublin 1" in names
    # Course 1 of a subject and town is the most popular one there.
    first = {name.rsplit(" ", 1)[0]: applications.popularity[i] for i, name in reversed([*enumerate(names)])}
    for name, popularity in zip(names, applications.popularity, strict=True):
        place, number = name.rsplit(" ", 1)
        assert popularity <= first[place]
        assert (popularity == first[place]) == (number == "1")
    top = np.sort(applications.popularity)[::-1]
    np.testing.assert_allclose(top, 1 / np.arange(1, 534) / np.sum(1 / np.arange(1, 534)))
    listed = np.sort(np.bincount(applications.data.orders[applications.data.orders >= 0], minlength=533))
    assert listed[-53:].sum() > 0.5 * listed.sum()  # a tenth of the courses has most of the demand


def test_a_center_follows_its_theme(applications):
    names = applications.data.items
    for theme, center in zip(applications.themes, applications.centers, strict=True):
        top = [names[item] for item in center[:10]]
        what, _, where = theme.rpartition(", ")
        if what:
            assert sum(name.startswith(what) for name in top) >= 5
        if where == "outside Dublin":
            assert sum("Dublin" not in name for name in top) >= 7
        elif where != "anywhere":
            assert sum(f", {where}" in name for name in top) >= 5
    # The same courses end up in front of many kinds: centers are not about disjoint sets of items.
    heads = np.bincount(applications.centers[:, :30].ravel(), minlength=533)
    assert heads.max() >= 8


def test_stages_fall_from_clear_to_vague(applications):
    """Mean skips of each stage against those of the model, and against a twin with θ upside down."""
    np.testing.assert_allclose(applications.theta[3], np.linspace(1.5, 0.6, 10))
    data, n = applications.data, 533
    ranks = np.argsort(applications.centers, axis=1)[applications.labels]
    place = np.take_along_axis(ranks, np.maximum(data.orders, 0), axis=1)
    for stage, theta in enumerate(np.linspace(1.5, 0.6, 10)):
        rows = data.lengths > stage
        skipped = place[rows, stage] - np.sum(place[rows, :stage] < place[rows, stage, None], axis=1)
        values = np.arange(n - stage)
        for decay, agrees in ((theta, True), (2.1 - theta, False)):
            distribution = np.exp(-decay * values)
            distribution /= distribution.sum()
            mean = distribution @ values
            error = np.sqrt(distribution @ (values - mean) ** 2 / rows.sum())
            assert (abs(skipped.mean() - mean) < 5 * error) == agrees


def test_seeds_and_sizes():
    small = make_college_applications(200, 40, 35, 3, theta=0.8, random_state=5)
    again = make_college_applications(200, 40, 35, 3, theta=0.8, random_state=np.random.default_rng(5))
    assert small.data == again.data
    assert np.array_equal(small.labels, again.labels)
    assert small.data != make_college_applications(200, 40, 35, 3, theta=0.8, random_state=6).data
    assert (small.theta == 0.8).all()
    assert small.theta.shape == (35, 3)
    assert set(make_college_applications(50, 3, 2, 1, random_state=0).data.lengths) == {1}
    assert make_college_applications(50, 30, 2, weights=[0, 1], random_state=0).labels.min() == 1
    assert repr(small).startswith("CollegeApplicationsData(")


def test_refusals():
    with pytest.raises(DataError, match="longest must lie between 1 and 5, not 10"):
        make_college_applications(10, 5, 2)
    with pytest.raises(DataError, match="samples must be at least 1"):
        make_college_applications(0, 50, 2)
    with pytest.raises(DataError, match="weights must be 2 numbers"):
        make_college_applications(10, 50, 2, weights=[1.0])
    with pytest.raises(DataError, match="10 stages"):
        make_college_applications(10, 50, 2, theta=[1.0, 0.5], random_state=0)
