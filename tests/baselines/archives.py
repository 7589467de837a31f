"""Archives taken apart and put together again, without a file between."""

from __future__ import annotations

import json

import pytest

from permix.errors import DataError
from permix.estimators.archive import rebuilt


def contents(schema, fit):
    """Manifest and arrays as a file holds them."""
    facts, arrays = schema.pack(fit)[:2]
    said = {name: schema.facts[name].to_json(value) for name, value in facts.items()}
    manifest = json.loads(json.dumps({"parameters": fit.settings.to_json(), "facts": said}))
    return manifest, {name: array.copy() for name, array in arrays.items()}


def parameter(**changes):
    return lambda manifest, arrays: manifest["parameters"].update(changes)


def fact(**changes):
    return lambda manifest, arrays: manifest["facts"].update(changes)


def edited(name, change):
    def edit(manifest, arrays):
        arrays[name] = change(arrays[name].copy())

    return edit


def put(index, value):
    def change(array):
        array[index] = value
        return array

    return change


def assert_refused(schema, content, edit):
    """What a fit wrote is taken, and refused after the edit."""
    rebuilt(schema, *content)
    edit(*content)
    with pytest.raises(DataError):
        rebuilt(schema, *content)
