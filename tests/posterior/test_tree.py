"""Draws in ArviZ's schema."""

from __future__ import annotations

import json

import numpy as np
import pytest

from permix import __version__
from permix.posterior import to_datatree
from permix.sampling import Draws
from tests.sampling.toy import run


@pytest.fixture(scope="module")
def draws() -> Draws:
    return run(n_draws=20)


def test_groups_dimensions_and_values(draws: Draws) -> None:
    tree = to_datatree(draws)
    posterior = tree["posterior"]
    assert posterior["labels"].dims == ("chain", "draw", "observation")
    assert posterior["n_groups"].dims == ("chain", "draw")
    assert dict(posterior.sizes) == {"chain": 2, "draw": 20, "observation": 12}
    for name, array in draws.arrays.items():
        assert posterior[name].dtype == array.dtype
        np.testing.assert_array_equal(posterior[name], array)
    assert set(tree.children) == {"posterior", "sample_stats"}


def test_moves_are_in_sample_stats(draws: Draws) -> None:
    stats = to_datatree(draws)["sample_stats"]
    assert stats["move"].values.tolist() == ["walk", "label"]
    assert stats["acceptance_rate"].dims == ("chain", "move")
    np.testing.assert_array_equal(stats["proposed"], draws.statistics["proposed"])
    expected = draws.statistics["accepted"] / draws.statistics["proposed"]
    np.testing.assert_allclose(stats["acceptance_rate"], expected)


def test_move_that_never_proposed_has_no_rate() -> None:
    statistics = {"moves": ["a", "b"], "proposed": np.array([[4, 0]]), "accepted": np.array([[1, 0]])}
    tree = to_datatree(Draws({"x": np.zeros((1, 3))}, statistics, n_draws=3))
    np.testing.assert_array_equal(tree["sample_stats"]["acceptance_rate"], [[0.25, np.nan]])


def test_same_draws_same_tree(draws: Draws) -> None:
    first, second = to_datatree(draws), to_datatree(draws)
    assert first.identical(second)
    assert "created_at" not in first["posterior"].attrs


def test_attributes_coordinates_and_data(draws: Draws) -> None:
    names = [f"agent {i}" for i in range(12)]
    tree = to_datatree(
        draws,
        coords={"observation": names, "column": ["u", "v"]},
        dims={"data": ["observation", "column"]},
        attrs={"n_burn_in": 20},
        observed={"data": np.arange(24).reshape(12, 2)},
    )
    assert tree["posterior"].attrs["inference_library"] == "permix"
    assert tree["posterior"].attrs["inference_library_version"] == __version__
    assert tree["posterior"].attrs["n_burn_in"] == 20
    assert json.loads(tree["posterior"].attrs["seeds"])[0]["entropy"] == 7
    assert tree["observed_data"]["data"].dims == ("observation", "column")
    assert tree["posterior"]["labels"].sel(observation="agent 3").shape == (2, 20)
