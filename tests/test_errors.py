"""Messages that name arguments, in the words of the library and of the command line."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import permix
from permix.errors import (
    Argument,
    CellError,
    CycleError,
    DataError,
    FileFormatError,
    Message,
    ParameterError,
    PermixWarning,
    Wording,
)

FLAGS = {"row_column": "--id", "n_components": "--groups"}


@pytest.mark.parametrize(
    ("argument", "python", "option"),
    [
        (Argument("layout"), "layout", "--layout"),
        (Argument("layout", "ranks"), "layout='ranks'", "--layout ranks"),
        (Argument("n_draws", 5), "n_draws=5", "--draws 5"),
        (Argument("count_column", "how many"), "count_column='how many'", "--count-column 'how many'"),
        (Argument("missing", ""), "missing=''", "--missing ''"),
        (Argument("missing", -1), "missing=-1", "--missing -1"),
        (Argument("header", True), "header=True", "--header"),
        (Argument("header", False), "header=False", "--no-header"),
        (Argument("row_column", "k"), "row_column='k'", "--id k"),
        (Wording("row_column=False", '--id ""'), "row_column=False", '--id ""'),
    ],
)
def test_arguments_and_options(argument, python, option):
    message = Message("say ", argument, ".")
    assert message == f"say {python}."
    assert message.as_options(FLAGS) == f"say {option}."


def test_a_message_is_text_that_stays_whole_in_errors():
    error = ParameterError("n_draws", 0, "1 or more")
    assert str(error) == "n_draws=0 must be 1 or more"
    assert error.args[0].as_options() == "--draws 0 must be 1 or more"
    for again in (copy.copy(error.args[0]), pickle.loads(pickle.dumps(error.args[0]))):
        assert again == error.args[0]
        assert again.as_options() == error.args[0].as_options()


def said_by(call, *arguments, **options):
    with pytest.raises(DataError) as caught:
        call(*arguments, **options)
    return caught.value.args[0]


CYCLE = [("ann", "x", "y"), ("ann", "y", "x")]


@pytest.mark.parametrize(
    ("call", "python", "options"),
    [
        (
            lambda: permix.Preferences.from_pairs(CYCLE),
            "pass on_cycle='drop' to leave",
            "pass --on-cycle drop to leave",
        ),
        (
            lambda: permix.MallowsKDE().fit(permix.Preferences.from_pairs(CYCLE, on_cycle="keep")),
            "as data[data.consistent] or with on_cycle='drop'",
            "leave these out, with --on-cycle drop",
        ),
        (
            lambda: permix.Preferences.from_pairs(CYCLE, on_cycle="x"),
            "on_cycle='x' must be",
            "--on-cycle x must be",
        ),
        (
            lambda: permix.Rankings.from_orders([["a", "b"]], unlisted="worse"),
            "unlisted='worse' must be",
            "--unlisted worse must be",
        ),
        (
            lambda: permix.BlurringMeanShift().fit(
                permix.Rankings.from_orders([["a", "b"], ["c"]], unlisted="unknown")
            ),
            "items=[all items] and unlisted='below'; if it is unknown, permix.MallowsMixture takes",
            "with --unlisted below; if it is unknown, permix fit mallows takes",
        ),
        (
            lambda: permix.GeneralizedMallows(list("abcd"), 1.0).log_prob(
                permix.Rankings.from_orders([["a", "b", "c"]], items=list("abcd"), unlisted="unknown")
            ),
            "with unlisted='below'",
            "with --unlisted below",
        ),
    ],
)
def test_messages_of_the_library_and_of_the_command_line(call, python, options):
    message = said_by(call)
    assert python in message
    assert options in message.as_options()


def test_a_cycle_error_keeps_its_agent():
    with pytest.raises(CycleError) as caught:
        permix.Preferences.from_pairs(CYCLE)
    assert caught.value.agent == "ann"
    assert caught.value.cycle == ("x", "y", "x")


@pytest.mark.parametrize(
    ("text", "options", "python", "words"),
    [
        ("1,2,3\n4,5,6\n7,8,9\n", {}, "say header=True or header=False", "say --header or --no-header"),
        (
            "k,b,c\n0,5,6\n1,8,9\n2,1,1\n",
            {"layout": "wide"},
            "say row_column='k' or row_column=False",
            'say --id k or --id ""',
        ),
        (
            "p,q,r\nann,x,1\nann,y,2\nbob,x,3\n",
            {},
            "say layout='long' or layout='wide'",
            "say --layout long or --layout wide",
        ),
        ("k,a,b,c,d\nx,1,2,3,4\n", {"layout": "long"}, "say layout='wide',", "say --layout wide,"),
    ],
)
def test_messages_about_cells(tmp_path, text, options, python, words):
    path = tmp_path / "cells.csv"
    path.write_text(text)
    message = said_by(permix.read_cells, path, **options)
    assert python in message
    assert words in message.as_options(FLAGS)


def test_warnings_about_cells(tmp_path):
    table = np.arange(1.0, 41.0).reshape(10, 4) % 5
    table[::2, 0] = -99
    with pytest.warns(PermixWarning) as caught:
        permix.Cells.coerce(table)
    message = caught[0].message.args[0]
    assert "say missing=-99" in message
    assert message.as_options().endswith("say --missing -99")


@pytest.mark.parametrize(
    "error",
    [
        ParameterError("n_draws", 0, "a whole number, 1 or more"),
        CellError(2, 1, "{place} is empty"),
        CycleError("a cycle", 7, ("a", "b", "a")),
        FileFormatError("torn", "x.soc", 4),
        DataError("use ", Argument("n_thin")),
        PermixWarning("use ", Argument("n_thin")),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_of_other_processes_arrive_whole(error):
    arrived = pickle.loads(pickle.dumps(error))
    assert type(arrived) is type(error)
    assert str(arrived) == str(error)
    assert vars(arrived) == vars(error)
    said = error.args[0]
    if isinstance(said, Message):
        assert arrived.args[0].as_options() == said.as_options()
