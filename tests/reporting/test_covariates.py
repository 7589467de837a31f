"""Where groups are strongest, in words."""

from __future__ import annotations

import numpy as np

from permix.estimators.by_covariate import GroupTable
from permix.reporting.shared import _strongest


def table(shares, agents=(100, 100, 100, 5), p_value=0.001):
    """Shares of group 1 by precinct; the others are in group 2."""
    own = np.array(shares)
    of_value = np.stack([own, 1.0 - own], axis=1)[..., None] * np.ones(3)
    values = ("North", "South", "West", "Tiny")
    overall = np.array([0.5, 0.5])
    return GroupTable("precinct", values, np.array(agents), of_value, of_value, overall, "draws", p_value, 0)


def test_values_that_read_the_same_are_named_alike():
    said = _strongest(table([0.631, 0.634, 0.2, 0.9]))
    assert (
        said
        == "By precinct, group 2 has its largest share in West (80% of it, 50% of all) and group 1 in South "
        "and North (63% of each, 50% of all)."
    )
    # The twin is one that names the largest alone; few agents say nothing.
    assert "North (" not in _strongest(table([0.61, 0.634, 0.2, 0.9]))
    assert "Tiny" not in said


def test_the_clearest_pattern_comes_first_and_others_are_counted():
    rng = np.random.default_rng(0)
    of_value = np.repeat(rng.dirichlet(np.full(7, 50.0), 4)[..., None], 3, axis=2)
    of_value[1, 6] += 0.3  # a small group, but far above its share of all
    overall = of_value[..., 0].mean(axis=0)
    agents = np.full(4, 100)
    values = ("North", "South", "West", "East")
    said = _strongest(GroupTable("ward", values, agents, of_value, of_value, overall, "draws", 0.001, 0))
    assert said.startswith("By ward, group 7 has its largest share in South (")
    assert said.endswith("; 3 more groups in the table.")


def test_what_chance_gives_is_not_told():
    assert "largest" not in _strongest(table([0.6, 0.5, 0.4, 0.5], p_value=0.4))
