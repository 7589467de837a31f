"""Columns beside approvals and ratings that weigh voters or say something of them are no items."""

from __future__ import annotations

import pytest

import permix
from permix.errors import DataError

APPROVED = "voter,Ana,Ben,Cem,{}\nv1,1,0,1,{}\nv2,0,1,1,{}\nv3,1,1,0,{}\nv4,0,1,0,{}\n"
RATED = "voter,Ana,Ben,Cem,{}\nv1,2,3,4,{}\nv2,2,1,1,{}\nv3,5,4,5,{}\nv4,1,5,2,{}\n"


@pytest.fixture
def read(tmp_path):
    def of(text, **options):
        path = tmp_path / "x.csv"
        path.write_text(text, encoding="utf-8")
        return permix.read(path, **options)

    return of


@pytest.mark.parametrize(
    ("text", "name", "entries"),
    [
        (APPROVED, "wt", (2, 1, 1, 3)),
        (APPROVED, "people_like_me", (2, 1, 1, 3)),
        (APPROVED, "z", (0.7, 1.2, 1.1, 0.4)),
        (RATED, "w", (1, 1, 2, 2)),
        (RATED, "survey_wt", (1.5, 1, 2, 2)),
        (RATED, "adjustment", (0.71, 1.23, 1.1, 0.9)),
        (RATED, "minutes", (31, 17, 44, 58)),
        *(
            (text, name, (0, 1, 1, 0))
            for text in (APPROVED, RATED)
            for name in ("married", "cluster", "female")
        ),
    ],
)
def test_such_columns_are_asked_about(read, text, name, entries):
    with pytest.raises(
        DataError, match=rf"column '{name}' .* would be an item.* leave it out with ignore='{name}'"
    ):
        read(text.format(name, *entries), layout="ratings")
    assert read(text.format(name, *entries), layout="ratings", ignore=name).items == ("Ana", "Ben", "Cem")
    if text is APPROVED and "." not in str(entries):
        with pytest.raises(DataError, match=r"count_column|ignore="):
            read(text.format(name, *entries))


@pytest.mark.parametrize("entries", [(5, 5, 4, 5), (1, 3.5, 2, 4), (0, 0, 0, 0), (10, 9, 10, 8)])
def test_items_of_the_same_scale_are_read(read, entries):
    assert len(read(RATED.format("Dan", *entries), layout="ratings").items) == 4
    assert (
        len(read(RATED.format("Dan", *entries).replace("Ana,Ben,Cem,Dan", "u,v,x,w"), layout="ratings").items)
        == 4
    )
