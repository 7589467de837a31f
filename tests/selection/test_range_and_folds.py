"""How far numbers of groups are tried, and who is held out, where nobody says."""

import json

import pytest

from permix import select_components
from permix.datasets import make_mallows_mixture
from permix.errors import DataError
from permix.runtime import progress

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


def test_the_display_counts_larger_numbers_too(tmp_path, monkeypatch):
    """It said "45 of 36" where 9 followed 1 to 8, and nothing of the numbers that could follow."""
    file, lines = tmp_path / "progress.json", []
    monkeypatch.setenv(progress.FILE_VARIABLE, str(file))
    monkeypatch.setattr(progress, "FILE_SECONDS", 0.0)
    monkeypatch.setattr(progress, "REDRAW_SECONDS", 100.0)
    update = progress.Display.update

    def noted(display, *arguments, **more):
        update(display, *arguments, **more)
        lines.extend(json.loads(file.read_text()))

    monkeypatch.setattr(progress.Display, "update", noted)
    found = select_components(three_groups(), [1, 2], **(QUICK | {"progress": None}))
    work = [(line["done"], line["of"]) for line in lines if line["stage"].startswith("choosing")]
    tried = found.table["n_groups"].tolist()
    assert work[0] == (0, 3)
    assert work[-1] == (sum(tried), sum(tried))
    assert all(done <= of for done, of in work)
    at_most = [line["left"] for line in lines if "at most" in line["left"]]
    assert at_most  # after 1 and 2 were asked for, 3 and 4 may follow


def test_few_agents_are_all_held_out_once():
    few = select_components(three_groups(128), [1, 2], most=2, **QUICK)
    assert few.n_folds == 5
    assert few.n_validation == 128
    assert (few.table["standard_error"] > 0.0).all()
    asked = select_components(three_groups(128), [1, 2], most=2, test_size=32, **QUICK)
    assert (asked.n_folds, asked.n_validation) == (1, 32)
    many = select_components(three_groups(800), [1, 2], most=2, **QUICK)
    assert (many.n_folds, many.n_validation) == (1, 200)
