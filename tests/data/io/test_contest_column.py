"""Several contests in one table: a column says which, and they are not pooled."""

from __future__ import annotations

import pytest

import permix
from permix.errors import DataError

RANKS = "{},rank1,rank2\nMayor,a,b\nMayor,b,a\nMayor,b,\nClerk,x,y\nClerk,y,x\n"
LONG = "{},ballot,rank,candidate\nMayor,1,1,a\nMayor,1,2,b\nMayor,2,1,b\nClerk,1,1,x\nClerk,1,2,y\n"


@pytest.mark.parametrize("name", ["Contest", "Race", "Office"])
@pytest.mark.parametrize("text", [RANKS, RANKS.replace("rank", "pos"), LONG])
def test_contests_of_a_column_are_asked_for(tmp_path, name, text):
    path = tmp_path / "x.csv"
    path.write_text(text.format(name), encoding="utf-8")
    with pytest.raises(DataError, match=r"has 2 contests: Mayor, Clerk\. Say which with contest"):
        permix.read(path)
    mayor, clerk = permix.read(path, contest="mayor"), permix.read(path, contest="Clerk")
    assert (sorted(mayor.items), sorted(clerk.items)) == (["a", "b"], ["x", "y"])
    assert mayor.n_agents == (2 if text is LONG else 3)
    with pytest.raises(DataError, match="no contest called 'Foo'"):
        permix.read(path, contest="Foo")


@pytest.mark.parametrize("text", ["race,rank1,rank2\nwhite,a,b\nblack,b,a\nwhite,b,a\n"])
def test_what_voters_are_is_no_contest(tmp_path, text):
    path = tmp_path / "x.csv"
    path.write_text(text, encoding="utf-8")
    assert permix.read(path).n_agents == 3
