"""Form fields from what commands declare, and the words of a command from what was filled in.

Nothing is copied by hand: labels, help texts, choices and defaults are those of the options.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields as fields_of
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from permix.cli.app import model_commands
from permix.cli.command import SELECTION, ModelCommand, Option, Source, first_sentence
from permix.comparison.auto_command import OPTIONS as AUTO_OPTIONS
from permix.data.cleaning import Rules
from permix.errors import DataError
from permix.estimators.checks import Choice, Switch
from permix.estimators.parameters import Declared
from permix.serve.jobs import REPORT, Job

# What a file may hold, in the words of the page.
FORMS = {
    "votes": "Votes: rankings, ratings, comparisons or choices",
    "matrix": "A matrix: rows and columns of the same kind of value, such as ratings of films",
    "table": "A table: a row for each thing, columns that measure different properties",
}
AUTO = "auto"  # instead of a model
# More is no name of a column and no number.
LONGEST_VALUE = 10_000
CLEANING = (*(about.name for about in fields_of(Rules)), "ties")
# Where the number of groups is to be chosen, these are tried first.
NUMBERS_OF_GROUPS = "1-6"
Values = Mapping[str, Sequence[str]]


class Field(NamedTuple):
    """One field of a form, and the option it stands for."""

    key: str  # its name in the form, such as "mallows.n_components"
    flag: str  # "--groups", or "--header/--no-header" for one that may be left open
    kind: str  # "text", "choice", "lines", "yes-no", "tick" or "file"
    help: str
    choices: tuple[str, ...] = ()
    default: str = ""  # what counts if nothing is said, where that is known
    preset: str = ""  # what the form says at first
    empty: str = ""  # what an empty value means, where it means something

    @property
    def name(self) -> str:
        """The option's name."""
        return self.key.partition(".")[2]

    @property
    def label(self) -> str:
        """The flag in words."""
        return self.flag.partition("/")[0].removeprefix("--").replace("-", " ").capitalize()

    def words(self, given: Sequence[str]) -> list[str]:
        """Return the words of the command line for what was filled in."""
        said = [value for value in given if value]
        on, _, off = self.flag.partition("/")
        if self.kind == "yes-no":
            return {"yes": [on], "no": [off]}.get(said[0], []) if said else []
        if self.kind == "tick":
            return [on] if said else []
        if EMPTY in said:
            return [f"{on}="]
        # One word each: no value can be taken for an option.
        return [f"{on}={value}" for value in said]


# What a choice says that stands for an empty value.
EMPTY = "(none)"


class ModelForm(NamedTuple):
    """A model that may be chosen: what it finds, and the fields of its parameters."""

    name: str
    forms: tuple[str, ...]  # what it is for: votes, a matrix, a table
    title: str
    main: tuple[Field, ...]
    more: tuple[Field, ...]


class ReadForm(NamedTuple):
    """How a file is read: questions about its content, and rules for cleaning."""

    reading: tuple[Field, ...]
    cleaning: tuple[Field, ...]


def of_option(prefix: str, name: str, option: Option) -> Field | None:
    """Return the field of an option; None where there is nothing to fill in."""
    flag = next((flag for flag in option.flags if flag.startswith("--")), "--" + name.replace("_", "-"))
    key, help_ = f"{prefix}.{name}", option.help
    if option.type is bool:
        return Field(key, flag, "yes-no" if "/" in flag else "tick", help_, ("yes", "no"))
    if option.type is Path:
        return Field(key, flag, "file", help_)
    if option.type == list[str]:
        return Field(key, flag, "lines", help_)
    choices = tuple(choice for choice in option.choices if choice != "auto")
    return Field(key, flag, "choice" if choices else "text", help_, choices, empty=option.empty)


def of_parameter(prefix: str, name: str, about: Declared) -> Field:
    """Return the field of a declared parameter."""
    check, flag = about.check, about.flag_of(name)
    key, help_ = f"{prefix}.{name}", first_sentence(about.help)
    default = "" if about.default is None else str(about.default)
    if isinstance(check, Switch):
        both = f"{flag}/{flag.replace('--', '--no-', 1)}"
        return Field(key, both, "yes-no", help_, ("yes", "no"), default={"True": "yes"}.get(default, "no"))
    words = [word for word in check.special if isinstance(word, str)]
    if isinstance(check, Choice):
        return Field(key, flag, "choice", help_, (*check.words, *words), default)
    return Field(key, flag, "text", help_, default=default)


@cache
def read_forms() -> dict[str, ReadForm]:
    """Return how files are read, by what they hold."""
    found: dict[str, Source] = {}
    for command in model_commands():
        found.setdefault(command.source.form, command.source)
    forms = {}
    for form, source in found.items():
        made = (of_option(form, name, option) for name, option in source.options.items())
        fields = [field for field in made if field is not None]
        forms[form] = ReadForm(
            tuple(field for field in fields if field.name not in CLEANING),
            tuple(field for field in fields if field.name in CLEANING),
        )
    return {form: forms[form] for form in FORMS}


@cache
def model_forms() -> dict[str, ModelForm]:
    """Return all models that may be chosen, by their names; auto, the first, chooses by itself."""
    return {about.name: about for about in (_auto(), *map(_model_form, model_commands()))}


def _auto() -> ModelForm:
    made = (of_option(AUTO, name, option) for name, option in AUTO_OPTIONS.items() if name != "read_as")
    minutes, *more = (field for field in made if field is not None and field.kind != "file")
    title = "Compare the models that suit the data, and fit the one that predicts best."
    return ModelForm(AUTO, tuple(FORMS), title, (minutes,), tuple(more))


def _model_form(command: ModelCommand) -> ModelForm:
    options = {**(SELECTION if command.select else {}), **command.options, **command.fit_options}
    if len(command.select) > 1:
        options["criterion"] = Option(str, "What --select compares by.", choices=command.select)
    made = (of_option(command.name, name, option) for name, option in options.items())
    fields = [field for field in made if field is not None and field.kind != "file"]
    main = []
    for name, about in command.declared.items():
        if about.flag_of(name) and name not in command.options:
            fields.append(of_parameter(command.name, name, about))
    for field in fields:
        if command.select and field.name in ("select", "n_components"):
            # One of both: at first the data choose.
            preset = NUMBERS_OF_GROUPS if field.name == "select" else ""
            main.append(field._replace(preset=preset, default=""))
    names = {field.name for field in main}
    more = tuple(field for field in fields if field.name not in names)
    title = command.help.partition("\n")[0]
    return ModelForm(command.name, (command.source.form,), title, tuple(main), more)


def all_fields() -> dict[str, Field]:
    """Return all fields by their keys."""
    reading = (field for form in read_forms().values() for field in (*form.reading, *form.cleaning))
    models = (field for form in model_forms().values() for field in (*form.main, *form.more))
    return {field.key: field for field in (*reading, *models)}


def cleaned(given: Iterable[tuple[str, Any]], choices: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Return what was filled in, of fields there are; ``choices`` has the words of "form" and "model"."""
    known, values = all_fields(), dict[str, list[str]]()
    for key, value in given:
        if not isinstance(value, str) or len(value) > LONGEST_VALUE or "\0" in value:
            continue
        said = [value]
        if key in choices:
            said = [value] if value in choices[key] else []
        elif key not in known or known[key].kind == "file":
            continue
        elif known[key].kind == "lines":
            said = value.splitlines()
        elif known[key].kind in ("choice", "yes-no") and value not in known[key].choices:
            said = []
        entries = values.setdefault(key, [])
        entries += [entry for entry in map(str.strip, said) if entry and entry not in entries]
    return values


def reading_words(form: str, values: Values) -> list[str]:
    """Return the options that say how a file is read."""
    about = read_forms()[form]
    fields = (*about.reading, *about.cleaning)
    return [word for field in fields for word in field.words(values.get(field.key, ()))]


def fit_words(model: str, form: str, job: Job, values: Values) -> list[str]:
    """Return the arguments of ``permix`` that fit a model; nothing of other models' fields is in them."""
    about = model_forms()[model]
    if form not in about.forms:
        raise DataError(f"{model} is for {' or '.join(about.forms)}, and the file is read as {form}")
    own = [word for field in (*about.main, *about.more) for word in field.words(values.get(field.key, ()))]
    files = [job.file, "-o", job.fit, "--report", REPORT, "--force"]  # all of them in a folder of its own
    return [
        "fit",
        model,
        *files,
        *([f"--as={form}"] if model == AUTO else ()),
        *own,
        *reading_words(form, values),
    ]


def from_words(words: Sequence[str]) -> dict[str, list[str]]:
    """Return the values of a form from a command such as ``permix fit mallows FILE --layout ranks``."""
    model = model_forms()[words[2]]
    values: dict[str, list[str]] = {"form": [model.forms[0]], "model": [model.name]}
    reading = read_forms()[model.forms[0]]
    fields = {field.flag: field for field in (*reading.reading, *reading.cleaning, *model.main, *model.more)}
    for flag, value in zip(words, (*words[1:], ""), strict=True):
        if flag in fields:
            values.setdefault(fields[flag].key, []).append(value)
    return values
