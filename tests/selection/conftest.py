"""What tests of the choice of a number of groups share."""

import pytest


@pytest.fixture
def one_split(monkeypatch):
    """A quarter of the agents is held out, however few they are, and only the numbers given are tried."""
    monkeypatch.setattr("permix.selection.select_components.LEAST_HELD_OUT", 0)
    monkeypatch.setattr("permix.selection.select_components.MOST_TIMES", 1)
