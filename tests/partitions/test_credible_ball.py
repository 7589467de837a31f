"""The credible ball against its definition."""

from __future__ import annotations

import numpy as np
import pytest

from permix.errors import DataError
from permix.partitions import DirichletProcess, credible_ball, point_estimate
from tests.oracles.partitions import naive_binder, naive_vi

DRAWS = DirichletProcess(1.0).sample(8, 3, size=60)


@pytest.mark.parametrize(("loss", "naive"), [("vi", naive_vi), ("binder", naive_binder)])
@pytest.mark.parametrize("level", [0.05, 0.5, 0.95, 1.0])
def test_ball_by_definition(loss, naive, level):
    center = point_estimate(DRAWS, loss, random_state=1)
    ball = credible_ball(DRAWS, center, level)
    distances = np.array([naive(center.labels.tolist(), draw) for draw in DRAWS.tolist()])
    np.testing.assert_allclose(ball.distances, distances, atol=1e-12)

    # The smallest radius among all distances that reaches the level.
    radii = [r for r in np.sort(distances) if np.mean(distances <= r + 1e-9) >= level - 1e-12]
    assert ball.radius == pytest.approx(radii[0], abs=1e-12)
    assert ball.coverage >= level - 1e-12
    inside = distances <= radii[0] + 1e-9
    np.testing.assert_array_equal(ball.members, inside)

    def bound(rows):
        farthest = max(distances[i] for i in rows)
        return {tuple(DRAWS[i]) for i in rows if distances[i] >= farthest - 1e-9}

    rows = np.flatnonzero(inside)
    clusters = DRAWS.max(axis=1) + 1
    fewest = [i for i in rows if clusters[i] == clusters[rows].min()]
    most = [i for i in rows if clusters[i] == clusters[rows].max()]
    assert set(map(tuple, ball.horizontal)) == bound(rows)
    assert set(map(tuple, ball.upper)) == bound(fewest)
    assert set(map(tuple, ball.lower)) == bound(most)
    assert len(ball.upper) == len(bound(fewest))


def test_loss_comes_from_the_estimate_unless_given():
    estimate = point_estimate(DRAWS, "binder", random_state=1)
    assert credible_ball(DRAWS, estimate).loss == "binder"
    assert credible_ball(DRAWS, estimate, loss="vi").loss == "vi"
    assert credible_ball(DRAWS, estimate.labels).loss == "vi"


def test_chains_and_repr():
    ball = credible_ball(DRAWS.reshape(3, 20, 8), np.zeros(8, int), level=0.9)
    assert ball.members.shape == (60,)
    assert "asked for 90.0%" in repr(ball)
    assert "fewest groups" in repr(ball)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"estimate": [0, 1]}, "labels has 2 observations but draws has 8"),
        ({"estimate": [0] * 8, "level": 0.0}, "level must be"),
        ({"estimate": [0] * 8, "level": float("nan")}, "level must be"),
        ({"estimate": [0] * 8, "loss": "rand"}, "'vi' or 'binder'"),
    ],
)
def test_bad_input_is_named(arguments, message):
    with pytest.raises(DataError, match=message):
        credible_ball(DRAWS, **arguments)
