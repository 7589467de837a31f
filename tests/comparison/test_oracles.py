"""Comparisons against enumeration, agent by agent; each oracle has a twin that it must reject."""

from __future__ import annotations

import numpy as np
import pytest

import permix
from permix.comparison.compare import Clock, compare, suiting
from permix.comparison.forms import FORMS, divided
from permix.comparison.result import Scored, paired
from permix.estimators import registry
from tests.comparison import toys

TOYS = ("NARROW", "WIDE", "ANOTHER_EVENT", "IMPROPER")


@pytest.fixture
def toy_models(monkeypatch):
    """A registry with the toys beside the models of permix."""
    for name in TOYS:
        monkeypatch.setitem(registry.MODELS, name, toys.model(name))
        monkeypatch.setattr(getattr(toys, name), "seen", [])


@pytest.fixture
def votes():
    orders = [["a", "b", "c"], ["a"], ["b", "c", "a"], ["c"], ["a", "c", "b"]]
    return permix.Rankings.from_orders(orders, items=["a", "b", "c"], counts=[9, 7, 4, 6, 3])


def expanded(table):
    """Rows of agents, one by one."""
    return [row for row, count in enumerate(table.counts.tolist()) for _ in range(count)]


def by_hand(seen, spread):
    """ln p of every agent held out, by adding up what agrees with it, from the part fitted alone."""
    values = []
    for train, test in seen:
        weights = toys.shares(train, spread)
        for row in expanded(test):
            values.append(np.log(sum(weights[order] for order in toys.agreeing(test, row))))
    return np.array(values)


def test_scores_and_paired_errors_are_those_of_agents_one_by_one(toy_models, votes):
    found = compare(votes, ["NARROW", "WIDE"], random_state=1)
    narrow, wide = by_hand(toys.NARROW.seen, 1.0), by_hand(toys.WIDE.seen, 30.0)
    n = votes.n_agents
    assert found.n_folds == 3
    assert found.n_held_out == len(narrow) == n
    table = found.table
    for label, values in (("narrow", narrow), ("wide", wide)):
        assert table.loc[label, "score"] == pytest.approx(values.mean(), abs=1e-12)
        assert table.loc[label, "error"] == pytest.approx(values.std(ddof=1) / np.sqrt(n), abs=1e-12)
    best, other = sorted([("narrow", narrow), ("wide", wide)], key=lambda pair: -pair[1].mean())
    difference = other[1] - best[1]
    assert found.best == best[0]
    assert table.loc[other[0], "difference"] == pytest.approx(difference.mean(), abs=1e-12)
    error = difference.std(ddof=1) / np.sqrt(n)
    assert table.loc[other[0], "difference_error"] == pytest.approx(error, abs=1e-12)
    # The twin that does not pair: its error is another one, by far.
    unpaired = np.hypot(narrow.std(ddof=1), wide.std(ddof=1)) / np.sqrt(n)
    assert unpaired > 1.5 * error


def test_a_comparison_cut_short_says_on_how_much_it_rests(toy_models, votes, monkeypatch):
    whole = compare(votes, ["NARROW", "WIDE"], random_state=1, minutes=9.0)
    assert (whole.n_folds, whole.n_folds_asked) == (3, 3)
    assert "parts of the agents" not in whole.verdict
    monkeypatch.setattr(Clock, "left", property(lambda clock: 1e-6))
    found = compare(votes, ["NARROW", "WIDE"], random_state=1, minutes=9.0)
    assert (found.n_folds, found.n_folds_asked) == (1, 3)
    assert "Only 1 of 3 parts of the agents was held out and scored, since time ran out" in found.verdict


def test_all_models_score_the_same_agents_who_were_not_fitted(toy_models, votes):
    compare(votes, ["NARROW", "WIDE"], random_state=3)
    for (train, test), (train_too, test_too) in zip(toys.NARROW.seen, toys.WIDE.seen, strict=True):
        assert train == train_too
        assert test == test_too
        together = type(train).concat([train, test]).collapse()
        whole = FORMS["votes"].read(votes)
        assert {said(together, row) for row in range(len(together))} == {
            said(whole, row) for row in range(len(whole))
        }
    # The twin that scores those who were fitted gets more than they say of others.
    seen = toys.NARROW.seen
    fitted = by_hand([(train, train) for train, _ in seen], 1.0).mean()
    assert fitted > by_hand(seen, 1.0).mean() + 0.05


def said(table, row):
    return (*toys.agreeing(table, row), int(table.counts[row]))


def test_another_event_is_told_from_the_same_event(toy_models, votes):
    found = compare(votes, ["NARROW", "ANOTHER_EVENT"], random_state=1)
    right = by_hand(toys.NARROW.seen, 1.0).mean()
    assert found.table.loc["narrow", "score"] == pytest.approx(right, abs=1e-12)
    assert found.table.loc["another-event", "score"] < right - 0.1


def test_improper_models_are_left_out_with_the_reason(toy_models, votes):
    found = compare(votes, ["NARROW", "IMPROPER"], random_state=1)
    assert list(found.left_out) == ["improper"]
    assert "sum to one" in found.left_out["improper"]
    assert "improper" not in found.table.index


@pytest.mark.parametrize("form", ["votes", "matrix", "table"])
def test_folds_hold_everything_out_once(form):
    rng = np.random.default_rng(0)
    data = {
        "votes": permix.Rankings.from_orders(
            [rng.permutation(4) for _ in range(50)], counts=rng.integers(1, 4, 50)
        ),
        "matrix": permix.Cells.coerce(rng.integers(0, 3, (9, 7))),
        "table": rng.normal(size=(40, 2)),
    }[form]
    kind = FORMS[form]
    table = kind.read(data)
    parts = divided(kind, table, None, None, rng)
    assert len(parts) == 3
    assert sum(kind.size(test) for _, test in parts) == kind.size(table)
    for train, test in parts:
        assert kind.size(train) + kind.size(test) == kind.size(table)
    if form == "matrix":
        keys = np.concatenate([test.rows * 7 + test.columns for _, test in parts])
        assert len(set(keys.tolist())) == 63


def test_errors_of_draws_are_added_for_both():
    counts = np.ones(4)
    first = Scored("a", "A", np.array([1.0, 2.0, 3.0, 5.0]), np.full(4, 0.1))
    second = Scored("b", "B", np.array([1.0, 1.0, 4.0, 4.0]), np.full(4, 0.2))
    difference, error = paired(first, second, counts)
    spread = np.std([0.0, 1.0, -1.0, 1.0], ddof=1) / 2.0
    assert difference == pytest.approx(0.25)
    assert error == pytest.approx(spread)  # of rows that all differ, the spread has these errors already
    shared = paired(first, second, np.full(4, 3))[1]
    agents = np.var(np.repeat([0.0, 1.0, -1.0, 1.0], 3), ddof=1) / 12
    noise = 0.1**2 + 0.2**2  # of a row, which three agents share: it does not average out between them
    assert shared == pytest.approx(np.sqrt(agents + (3**2 - 3) * 4 * noise / 12**2))


def test_models_say_why_they_do_not_suit():
    ties = permix.Preferences.from_levels([[["a", "b"], ["c"]], [["c"], ["a", "b"]]], items=["a", "b", "c"])
    _, left_out = suiting(FORMS["votes"], FORMS["votes"].read(ties), "all")
    assert "dp-mallows" in left_out or "mallows" not in left_out
    pairs = permix.Preferences.from_pairs([(0, "a", "b"), (1, "b", "c")], items=["a", "b", "c"])
    candidates, left_out = suiting(FORMS["votes"], FORMS["votes"].read(pairs), "all")
    labels = {candidate.way.label for candidate in candidates}
    assert {"mallows", "kde"} <= labels
    assert not {"angle", "dp-mallows", "mean-shift"} & labels
    assert "compares pairs" in left_out["dp-mallows"]
    assert "bayes-mallows" not in labels
    assert "where it is named" in left_out["bayes-mallows"]  # told, and not passed over in silence
    named, none_out = suiting(FORMS["votes"], FORMS["votes"].read(pairs), ["bayes-mallows"])
    assert [candidate.way.label for candidate in named] == ["bayes-mallows -k mfm"]
    assert none_out == {}
    with pytest.raises(permix.errors.DataError, match="no model suits"):
        suiting(FORMS["votes"], FORMS["votes"].read(pairs), ["CoClustering"])
    with pytest.raises(permix.errors.DataError, match="no model 'mallow'"):
        compare(pairs, ["mallow"])
