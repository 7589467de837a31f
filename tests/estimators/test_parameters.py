"""Declared parameters: every estimator refuses the same bad values, quickly and by name."""

from __future__ import annotations

import datetime
import decimal
import math
import re
import time

import numpy as np
import pytest

from permix.errors import Argument, DataError, Message, ParameterError
from permix.estimators.checks import Choice, Folder, Real, Seed, Switch, Threads, Whole
from permix.estimators.parameters import ChainParameters, Parameters, declare
from permix.estimators.registry import MODELS, part
from tests.estimators.examples import EXAMPLES, NAMES


class Odd:
    """An object that fails when it is looked at."""

    def __eq__(self, other):
        raise RuntimeError("looked at")

    __hash__ = None

    def __repr__(self):
        return "Odd()"


BAD = [
    None, True, False, 0, -1, -(2**63), 2**63, 2**64, 10**30, 1, 2, 0.5, -0.5, 1e308, math.inf, -math.inf,
    math.nan, 1 + 2j, "", "x", "auto", "1", "None", b"x", [], [1], (), (1, 2), {}, {"a": 1}, set(), object(),
    object, len, np.nan, np.array([]), np.array([1, 2]), np.array([[1.0]]), np.datetime64("2020-01-01"),
    datetime.date(2020, 1, 1), decimal.Decimal(1), range(3), np.float32(0.25), np.int8(3), Ellipsis,
]  # fmt: skip


def refused_by(call):
    """Return the error that says what is wrong, or None; any other error is a failure."""
    try:
        call()
    except DataError as error:
        return error
    return None


@pytest.mark.parametrize("name", NAMES)
def test_bad_values_are_refused_quickly_and_by_name(name):
    """Whatever is given, a parameter is accepted by its declaration or refused by a DataError."""
    example = EXAMPLES[name]
    parameters = type(example.make())._parameters_class
    data = (example.data(),) if example.target() is None else (example.data(), example.target())
    for parameter in parameters.declared:
        for value in [*BAD, Odd()]:
            start = time.perf_counter()
            refusal = refused_by(lambda p=parameter, v=value: parameters(**{p: v}))
            if refusal is not None:
                # The estimator says the same, before it does any work.
                given = example.make(**{parameter: value})
                told = refused_by(lambda given=given: given.fit(*data))
                assert type(told) is type(refusal)
                assert len(str(refusal)) < 2000
            assert time.perf_counter() - start < 5.0


@pytest.mark.parametrize("name", NAMES)
def test_constructors_only_store(name):
    estimator = EXAMPLES[name].make()
    for parameter in type(estimator)._parameters_class.declared:
        odd = object()
        assert getattr(EXAMPLES[name].make(**{parameter: odd}), parameter) is odd


@pytest.mark.parametrize("name", NAMES)
def test_every_parameter_is_documented(name):
    cls = part(MODELS[name].estimator)
    for parameter, about in cls._parameters_class.declared.items():
        assert f"\n{parameter} : " in cls.__doc__
        assert about.help.endswith(".")
        # A sentence, or what the parameter is about and then a sentence: "mondrian: the larger, ...".
        assert re.match(r"[A-Z]|[a-z-]+(, [a-z-]+)*: ", about.help)


class Tea(ChainParameters):
    cups: int = declare(2, Whole(1, 9), "How many cups.", positional=True)
    sugar: float = declare(0.0, Real(least=0.0, special=(None,)), "How much sugar.")
    kind: str = declare("black", Choice("black", "green"), "Which kind.")


def test_values_are_checked_converted_and_kept():
    tea = Tea(np.int16(3), sugar=np.float32(0.5), random_state=np.int64(7))
    assert (tea.cups, tea.sugar, tea.kind, tea.random_state) == (3, 0.5, "black", 7)
    assert type(tea.cups) is int
    assert type(tea.sugar) is float
    assert repr(tea) == "Tea(cups=3, sugar=0.5, random_state=7)"
    assert tea.replaced(cups=4).cups == 4
    assert Tea.from_json(tea.to_json()).as_dict() == tea.as_dict()
    with pytest.raises(AttributeError):
        tea.cups = 5


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"cups": 10}, "cups=10 must be a whole number from 1 to 9"),
        ({"cups": True}, "cups=True must be a whole number from 1 to 9"),
        ({"sugar": -1}, "sugar=-1 must be a number, 0 or more, or None"),
        ({"kind": "red"}, 'kind=\'red\' must be "black" or "green"'),
        ({"n_jobs": 0}, "n_jobs=0 must be a number of threads, -1 for all processors, or None"),
        ({"n_jobs": math.nan}, "n_jobs=nan must be a number of threads, -1 for all processors, or None"),
        ({"progress": 1}, "progress=1 must be True or False or None"),
        ({"store": 3}, "store=3 must be a path or None"),
    ],
)
def test_messages_say_what_must_be(given, said):
    with pytest.raises(ParameterError) as caught:
        Tea(**given)
    assert str(caught.value) == said
    assert caught.value.parameter == next(iter(given))


def test_unknown_names_are_type_errors():
    with pytest.raises(TypeError, match="milk"):
        Tea(milk=1)


def test_own_parameters_come_first_and_may_replace_inherited_ones():
    class Strong(Tea):
        n_draws: int = declare(7, Whole(1), "Fewer.")

    assert next(iter(Strong.declared)) == "n_draws"
    assert Strong().n_draws == 7
    assert Tea().n_draws == "auto"
    assert issubclass(Strong, Parameters)


def test_messages_in_the_words_of_the_command_line():
    message = Message(
        "say ", Argument("n_draws", 3), " or ", Argument("header", False), "; not ", Argument("seed")
    )
    assert message == "say n_draws=3 or header=False; not seed"
    assert message.as_options() == "say --draws 3 or --no-header; not --seed"
    assert message.as_options({"n_draws": "--keep"}) == "say --keep 3 or --no-header; not --seed"


@pytest.mark.parametrize("check", [Whole(1), Real(), Choice("a"), Switch(), Seed(), Threads(), Folder()])
def test_every_check_says_what_it_is(check):
    assert check.allowed()
    assert check.kind()
    assert check.parse("a") == "a" or isinstance(check, Folder)
