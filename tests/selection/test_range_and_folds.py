"""How far numbers of groups are tried, and who is held out, where nobody says."""

import pytest

from permix import select_components
from permix.datasets import make_mallows_mixture
from permix.errors import DataError

QUICK = {"n_init": 2, "progress": False, "random_state": 0}


def three_groups(n_agents=240):
    return make_mallows_mixture(n_agents, 6, 3, dispersion=0.15, random_state=2).data


def test_larger_numbers_follow_while_the_largest_is_the_best():
    data = three_groups()
    found = select_components(data, [1, 2], **QUICK)
    assert found.table["n_groups"].tolist()[:3] == [1, 2, 3]
    assert found.best >= 3
    assert found.table["n_groups"].max() <= 4  # twice the largest asked for
    stopped = select_components(data, [1, 2], most=2, **QUICK)
    assert stopped.table["n_groups"].tolist() == [1, 2]
    assert stopped.at_limit
    assert "the best number, 2, is the largest that was tried" in repr(stopped)
    enough = select_components(data, [3, 4, 5], most=5, **QUICK)
    assert enough.at_limit == (enough.best == 5)
    with pytest.raises(DataError, match="most"):
        select_components(data, [1, 2], most=1, **QUICK)


def test_few_agents_are_all_held_out_once():
    few = select_components(three_groups(128), [1, 2], most=2, **QUICK)
    assert few.n_folds == 5
    assert few.n_validation == 128
    assert (few.table["standard_error"] > 0.0).all()
    asked = select_components(three_groups(128), [1, 2], most=2, test_size=32, **QUICK)
    assert (asked.n_folds, asked.n_validation) == (1, 32)
    many = select_components(three_groups(800), [1, 2], most=2, **QUICK)
    assert (many.n_folds, many.n_validation) == (1, 200)
