"""Roles of columns: what is called Weight or Votes may be a count or an item; numbers tell, or the user."""

from __future__ import annotations

import numpy as np
import pytest

import permix
from permix.data.io.layouts.no_items import are_strict
from permix.data.reading import how_it_was_read
from permix.errors import DataError

COUNTS = ["Weight", "Votes", "N", "count", "freq", "ballots"]
RATED = np.random.default_rng(0).integers(1, 6, (12, 4))


@pytest.fixture
def read(tmp_path):
    def of(names, rows, **options):
        path = tmp_path / "x.csv"
        lines = [",".join(names), *(",".join(map(str, row)) for row in np.asarray(rows).tolist())]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return permix.read(path, **options)

    return of


@pytest.mark.parametrize("name", COUNTS)
@pytest.mark.parametrize("rows", [RATED, (RATED > 2).astype(int)], ids=["ratings", "approvals"])
def test_a_column_called_as_counts_are_is_asked_about_on_the_same_scale(read, name, rows):
    with pytest.raises(DataError, match=rf"count_column='{name}'; if it is an item, say item_columns"):
        read(["A", "B", "C", name], rows, layout="ratings")
    as_item = read(["A", "B", "C", name], rows, layout="ratings", item_columns=name)
    assert (as_item.n_agents, len(as_item.items)) == (12, 4)
    assert not (as_item.metadata["TABLE"]["count"])
    as_count = read(["A", "B", "C", name], rows, layout="ratings", count_column=name)
    assert (as_count.n_agents, len(as_count.items)) == (int(rows[:, 3].sum()), 3)
    assert f"{name} counts them" in how_it_was_read(as_count)


@pytest.mark.parametrize("name", COUNTS)
def test_numbers_beyond_the_scale_count(read, name):
    rows = RATED.copy()
    rows[:, 3] *= 10
    votes = read(["A", "B", "C", name], rows, layout="ratings")
    assert votes.items == ("A", "B", "C")
    assert votes.n_agents == rows[:, 3].sum()
    assert f"{name} counts them" in how_it_was_read(votes)


@pytest.mark.parametrize("name", COUNTS)
def test_of_ranks_the_rows_tell(read, name):
    """With an item all rows are rankings; a column of counts breaks them."""
    rng = np.random.default_rng(1)
    ranked = np.array([rng.permutation(4) + 1 for _ in range(8)])
    votes = read(["A", "B", "C", name], ranked)
    assert votes.items == ("A", "B", "C", name)
    counted = np.column_stack([[rng.permutation(3) + 1 for _ in range(8)], rng.integers(1, 4, 8)])
    votes = read(["A", "B", "C", name], counted)
    assert votes.items == ("A", "B", "C")
    assert votes.n_agents == counted[:, 3].sum()
    # The broken twin of the rule, which looks at names alone, would count the item.
    assert are_strict(ranked.astype(float)).all()
    assert not are_strict(counted.astype(float)).all()


@pytest.mark.parametrize("name", COUNTS[1:])  # a weight with fractions is asked about as such
def test_half_stars_are_no_counts(read, name):
    votes = read(["A", "B", "C", name], RATED / 2, layout="ratings")
    assert votes.items == ("A", "B", "C", name)


@pytest.mark.parametrize("name", ["Customer", "Member", "Name", "Student"])
def test_a_column_called_as_agents_are_is_asked_about_on_the_same_scale(read, name):
    with pytest.raises(DataError, match=rf"agent_column='{name}'; if it is an item, say item_columns"):
        read([name, "A", "B", "C"], RATED, layout="ratings")
    assert len(read([name, "A", "B", "C"], RATED, layout="ratings", item_columns=name).items) == 4
    ids = RATED.copy()
    ids[:, 0] = np.arange(12) + 1
    votes = read([name, "A", "B", "C"], ids, layout="ratings")
    assert votes.agents.tolist() == list(range(1, 13))


@pytest.mark.parametrize("name", ["Education", "Religion", "Income", "Language", "Party"])
def test_items_called_as_what_is_known_of_agents_can_be_said(read, name):
    with pytest.raises(DataError, match=rf"if it is an item, say item_columns=\['{name}'\]"):
        read([name, "A", "B", "C"], RATED, layout="ratings")
    assert len(read([name, "A", "B", "C"], RATED, layout="ratings", item_columns=[name]).items) == 4


def test_items_of_a_question_have_no_other_role(read):
    names = [f"How good are these? [{name}]" for name in ("Price", "Weight", "Language")]
    votes = read(names, RATED[:, :3], layout="ratings")
    assert votes.items == ("Price", "Weight", "Language")


@pytest.mark.parametrize(
    ("names", "row"),
    [(["agent", "item", "rating"], (1, "x", 3)), (["rank1", "rank2"], ("x", "y")), (["ranking"], ("x>y",))],
)
def test_columns_are_no_items_where_entries_are(read, names, row):
    with pytest.raises(DataError, match="no column is an item"):
        read(names, np.array([row, row], dtype=object), item_columns=names[0])
    with pytest.raises(DataError, match="no column 'z'"):
        read(names, np.array([row, row], dtype=object), item_columns="z")


def test_the_reading_says_the_range_and_what_is_not_used(read):
    votes = read(["A", "B", "C"], RATED[:, :3], layout="ratings")
    assert "ratings from 1 to 5, the highest is the best" in how_it_was_read(votes)
    long = [
        (row, item, value, "x")
        for row, values in enumerate(RATED.tolist())
        for item, value in enumerate(values)
    ]
    votes = read(["agent", "item", "rating", "genre"], np.array(long, dtype=object))
    assert how_it_was_read(votes).endswith("agent names the agents; not used: genre.")
