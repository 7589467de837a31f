"""What a model says in several ways is the same: means lie in their intervals, reports agree with estimators.

Over everything that is registered: a new model is held to this without further code.
"""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

import permix
from permix.cli.command import ModelCommand
from permix.estimators.registry import MODELS, part
from permix.posterior import summary
from permix.posterior.intervals import holding, ranks_holding
from permix.sampling import Draws
from tests.estimators.examples import NAMES, fitted

# Tables that estimators give without being asked about data.
TABLES = ("summary", "diagnostics", "consensus", "decays")
# The number that an interval without a name of its own is of, and those under another name.
OF_LOW = ("concentration", "score")
OTHER_NAMES = {"rank": "expected_rank"}


def tables_of(model):
    for name in TABLES:
        if hasattr(model, name):
            yield name, getattr(model, name)()
    if hasattr(model, "center") and hasattr(model, "n_clusters_"):
        for group in range(model.n_clusters_):
            yield f"center({group})", model.center(group)


def intervals_in(columns):
    """Yield (number, low, high): names of columns that belong together."""
    known = set(columns)
    if {"mean", "eti89_lb", "eti89_ub"} <= known:
        yield "mean", "eti89_lb", "eti89_ub"
    for low in known:
        match = re.fullmatch(r"(?:(.+)_)?low", str(low))
        if match is None:
            continue
        of = match.group(1)
        high = "high" if of is None else f"{of}_high"
        assert high in known, low
        names = OF_LOW if of is None else (OTHER_NAMES.get(of, of), of)
        number = next((name for name in names if name in known), None)
        assert number is not None, f"nothing says what {low} is an interval of"
        yield number, low, high


def check_table(where, table):
    for number, low, high in intervals_in(table.columns):
        finite = table[[number, low, high]].dropna()
        assert (finite[low] <= finite[number]).all(), (where, number)
        assert (finite[number] <= finite[high]).all(), (where, number)


@pytest.mark.parametrize("name", NAMES)
def test_means_lie_inside_their_intervals_in_tables(name):
    for where, table in tables_of(fitted(name)):
        check_table(where, table)


def records_in(value):
    """Yield every dictionary of a report, at whatever depth."""
    if isinstance(value, dict):
        yield value
        for each in value.values():
            yield from records_in(each)
    elif isinstance(value, list):
        for each in value:
            yield from records_in(each)


def share_of_groups_not_seen(model):
    """What is missing to one: mean over draws of the chance that a new agent is of a group of their own."""
    if not isinstance(model, permix.DPMallowsMixture):
        return 0.0
    clusters = model._fit.clusters
    return float(np.mean([np.exp(clusters.log_weights(d)[-1]) for d in range(clusters.n_draws)]))


@pytest.mark.parametrize("name", [name for name in NAMES if MODELS[name].command])
def test_means_lie_inside_their_intervals_in_reports(name):
    model = fitted(name)
    command: ModelCommand = part(MODELS[name].command)
    report = command.function("report")(model._fit)
    for record in records_in(report):
        for number, low, high in intervals_in(record):
            values = [record[each] for each in (number, low, high)]
            if isinstance(values[0], dict):
                values = [list(value.values()) for value in values]
            if any(value is None for value in values) or number == "mean":
                continue
            middle, least, most = (np.asarray(value, dtype=float) for value in values)
            assert np.all((least <= middle + 1e-12) & (middle <= most + 1e-12)), number
    said = {key for record in records_in(report) for key in record}
    assert "weight" not in said  # one word: share
    shares = [group["share"] for group in report.get("groups", []) if "share" in group]
    if shares:
        assert sum(shares) == pytest.approx(1.0 - share_of_groups_not_seen(model))


def test_equal_tails_alone_would_leave_means_outside():
    """The twin: draws of which nearly all are alike."""
    numbers = np.ones((2, 100))
    numbers[0, :3] = 2.0
    row = summary(Draws({"n_groups": numbers})).loc["n_groups"]
    assert row["eti89_lb"] <= row["mean"] <= row["eti89_ub"] < 2.0
    assert np.quantile(numbers, 0.945) < row["mean"]
    with pytest.raises(AssertionError):
        check_table("twin", pd.DataFrame({"share": [1.015], "share_low": [1.0], "share_high": [1.0]}))
    low, high = holding([1.0, 3.0], [0.5, 3.5], [2.0, 4.0])
    assert (low.tolist(), high.tolist()) == ([0.5, 3.0], [2.0, 4.0])
    low, high = ranks_holding(np.array([1.3, 2.0]), np.array([1, 2]), np.array([1, 2]))
    assert (low.tolist(), high.tolist()) == ([1, 2], [2, 2])
