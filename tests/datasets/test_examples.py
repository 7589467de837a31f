"""Examples are files as people have them, and are read as they are."""

from __future__ import annotations

import numpy as np
import pytest

import permix
from permix.datasets.examples import EXAMPLES, write_example
from permix.errors import DataError


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_same_seed_writes_the_same_files(name, tmp_path):
    first = write_example(name, tmp_path / "a")
    again = write_example(name, tmp_path / "b")
    other = write_example(name, tmp_path / "c", random_state=1)
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in again]
    assert first[0].read_bytes() != other[0].read_bytes()


def test_an_election_has_what_elections_have(tmp_path):
    ballots, candidates = write_example("election", tmp_path)
    votes = permix.read(ballots, group_columns=["precinct"])
    assert votes.n_items == len(candidates.read_text().splitlines()) - 1
    found = {row["found"]: row["ballots"] for row in votes.metadata["CLEANING"]}
    assert any("overvotes" in what and number > 0 for what, number in found.items())
    assert any("without a choice" in what and number > 0 for what, number in found.items())


def test_a_conversation_is_read_with_its_texts(tmp_path):
    votes, _ = write_example("conversation", tmp_path)
    cells = permix.read_cells(votes)
    assert cells.shape == (180, 18)


def test_measurements_have_gaps(tmp_path):
    import pandas as pd

    frame = pd.read_csv(write_example("birds", tmp_path)[0])
    missing = frame.isna().to_numpy().mean()
    assert 0.01 < missing < 0.06  # 3 % of 960 cells, five standard errors
    assert frame["habitat"].dropna().isin(["cliff", "beach", "ice"]).all()


def test_files_are_not_replaced_unless_asked(tmp_path):
    path = write_example("food", tmp_path)[0]
    path.write_text("mine")
    with pytest.raises(DataError, match=r"food\.csv exists"):
        write_example("food", tmp_path)
    assert path.read_text() == "mine"
    write_example("food", tmp_path, force=True)
    assert path.read_text().startswith("person,region")


def test_unknown_examples_are_named():
    with pytest.raises(DataError, match="there is no example 'cars'; there are election, food"):
        write_example("cars")


def test_people_of_a_group_answer_alike(tmp_path):
    """The survey's two groups are far apart: one ranks tuna first, the other eggs."""
    import pandas as pd

    ranks = pd.read_csv(write_example("food", tmp_path)[0])
    tuna, egg = ranks["tuna"].to_numpy(), ranks["egg"].to_numpy()
    assert np.corrcoef(tuna, egg)[0, 1] < -0.3
