"""Fields come from declared options, and become the words of a command that takes them."""

from __future__ import annotations

import shlex
from typing import Any

import pytest
import typer

from permix.cli.app import build
from permix.datasets.examples import EXAMPLES
from permix.errors import DataError
from permix.serve import forms
from permix.serve.jobs import Job
from permix.serve.looking import asked, with_choices

JOB = Job("20260101000000-00000000", "x.csv", "data/-x.csv", 0.0)
CHOICES = {"form": tuple(forms.FORMS), "model": tuple(forms.model_forms())}


@pytest.fixture(scope="module")
def commands() -> Any:
    return typer.main.get_command(build())


def parse(command: Any, words: list[str]) -> dict[str, Any]:
    """Return what the command line understands of words, without running anything."""
    while hasattr(command, "commands"):
        command, words = command.commands[words[0]], words[1:]
    return command.make_context("permix", list(words)).params


def test_every_option_that_says_how_to_read_a_file_has_a_field():
    for command in forms.model_commands():
        about = forms.read_forms()[command.source.form]
        assert {field.name for field in (*about.reading, *about.cleaning)} >= set(command.source.options)


@pytest.mark.parametrize("model", list(forms.model_forms()))
def test_what_is_filled_in_is_what_the_command_understands(commands, model):
    about = forms.model_forms()[model]
    for form in about.forms:
        reading = forms.read_forms()[form]
        own = (*about.main, *about.more)
        values = {
            field.key: [field.choices[0] if field.choices else "9"]
            for field in (*own, *reading.reading, *reading.cleaning)
        }
        given = parse(commands, forms.fit_words(model, form, JOB, values))
        assert str(given["file"]) == JOB.file
        assert str(given["output"]) == "x.permix"
        for field in (*own, *reading.reading, *reading.cleaning):
            assert given[field.name] not in (None, [], ()), field
            if field.kind == "lines":
                assert list(given[field.name]) == ["9"]
            elif field.kind in ("choice", "text"):
                assert str(given[field.name]) in (field.choices[0] if field.choices else "9", "9.0")


def test_values_are_never_options(commands):
    field = "votes.contest"
    values = forms.cleaned([(field, "--output=/etc/passwd"), ("votes.ignore", "-f\n--labels=x\n\n")], CHOICES)
    given = parse(commands, forms.fit_words("mallows", "votes", JOB, values))
    assert str(given["output"]) == "x.permix"
    assert given["contest"] == "--output=/etc/passwd"
    assert list(given["ignore"]) == ["-f", "--labels=x"]
    assert given["labels"] is None


def test_what_no_field_has_is_dropped():
    given = [
        *(("form", "nonsense"), ("model", "mallows"), ("other", "x"), ("votes.layout", "nonsense")),
        *(("votes.item_table", "/etc/passwd"), ("mallows.select", "x" * 20_000), ("votes.contest", "a\0b")),
        ("votes.header", "yes"),
    ]
    values = forms.cleaned(given, CHOICES)
    assert {key: said for key, said in values.items() if said} == {
        "model": ["mallows"],
        "votes.header": ["yes"],
    }
    assert forms.reading_words("votes", values) == ["--header"]
    assert forms.reading_words("votes", {"votes.header": ["no"]}) == ["--no-header"]


def test_a_column_that_no_column_is(commands):
    given = parse(commands, forms.fit_words("cocluster", "matrix", JOB, {"matrix.row_column": [forms.EMPTY]}))
    assert given["row_column"] == ""


def test_models_that_do_not_suit_are_refused():
    with pytest.raises(DataError, match="mallows is for votes, and the file is read as table"):
        forms.fit_words("mallows", "table", JOB, {})


@pytest.mark.parametrize("name", list(EXAMPLES))
def test_examples_come_with_their_answers(commands, name):
    words = shlex.split(EXAMPLES[name].command)
    values = forms.from_words(words)
    model, form = values["model"][0], values["form"][0]
    expected = parse(commands, words[1:])
    given = parse(commands, forms.fit_words(model, form, JOB, values))
    same = expected.keys() - {"file", "output", "report", "force", "item_table"}
    assert {key: given[key] for key in same} == {key: expected[key] for key in same}


def test_what_an_error_asks_for_is_asked():
    looked = {"form": "votes", "facts": {}, "error": "say --layout ratings or --header; not --nonsense"}
    assert [field.name for field in asked(looked)] == ["layout", "header"]
    contests = {"form": "votes", "error": "", "facts": {"contests": {"7": "Mayor", "9": "Council"}}}
    (field,) = asked(contests)
    assert with_choices(field, contests, {}).choices == ("7", "9")
    settled = {**contests, "facts": {**contests["facts"], "kind": "rankings"}}
    assert asked(settled) == []


def test_columns_of_the_file_are_offered():
    facts = {"columns_for_--group-column": ["precinct"]}
    reading = forms.read_forms()["votes"].reading
    (field,) = (field for field in reading if field.name == "group_columns")
    offered = with_choices(field, {"facts": facts}, {})
    assert (offered.kind, offered.choices) == ("several", ("precinct",))
    assert offered.words(["precinct"]) == ["--group-column=precinct"]
