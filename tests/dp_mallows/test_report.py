"""What the answer says of the number of groups."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from permix.dp_mallows.report import _how_many, found_groups
from permix.dp_mallows.results import ClusterSummaries
from tests.dp_mallows.cases import fit_of


def test_what_members_put_first_has_a_formula():
    """Lists of 4,000 members: a share has a standard error of 0.008 at most."""
    fit = fit_of()
    found = found_groups(fit, ClusterSummaries(fit))
    rng = np.random.default_rng(0)
    for k, group in enumerate(found.groups):
        drawn = found.draw(k, 4000, rng)[:, 0]
        shares = np.bincount(drawn, minlength=len(fit.items)) / 4000
        np.testing.assert_allclose(group.first, shares, atol=4 * 0.008)
        assert group.first.sum() == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("drawn", "shown", "said"),
    [
        ([3] * 100, 3, ""),
        ([4] * 50 + [9] * 50, 3, "There may be more groups: 90% of the draws have 4 to 9, the others small"),
        ([4] * 100, 3, "There may be more groups: 90% of the draws have 4, the others"),
        ([2] * 50 + [5] * 50, 3, "How many groups there are is not sure: 90% of the draws have 2 to 5."),
    ],
)
def test_how_sure_the_number_of_groups_is(drawn, shown, said):
    draws = SimpleNamespace(arrays={"n_groups": np.array([drawn])})
    fit = SimpleNamespace(draws=draws, n_clusters=shown, shows_a_draw=False)
    found = " ".join(_how_many(fit))
    assert found.startswith(said)
    assert bool(found) == bool(said)
    assert _how_many(SimpleNamespace(draws=draws, n_clusters=shown, shows_a_draw=True)) == ()
