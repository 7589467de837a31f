"""Archives of every model, from their schemas: they come back as they were, and hostile ones are refused."""

from __future__ import annotations

import json
import zipfile

import numpy as np
import pytest

import permix
from permix.errors import FileFormatError
from permix.estimators.archive import read_model
from permix.estimators.fields import TYPES
from permix.estimators.registry import MODELS, part
from permix.files import read_archive, write_archive
from tests.estimators.examples import EXAMPLES, NAMES, fitted
from tests.every_run import first_in_every_run


def test_every_model_has_an_example():
    assert set(EXAMPLES) >= set(MODELS)


@pytest.fixture(scope="module")
def contents(tmp_path_factory):
    """Manifest and arrays of the archive of each model, and its file."""
    folder = tmp_path_factory.mktemp("archives")
    found = {}
    for name in NAMES:
        path = folder / f"{name}.permix"
        fitted(name).save(path)
        manifest, arrays = read_archive(path)
        for key in ("format", "version", "permix", "arrays"):
            del manifest[key]
        found[name] = (manifest, arrays, path)
    return found


def field_of(schema, name):
    """What is declared of an array, one of a member included; None for strangers."""
    number, slash, rest = name.partition("/")
    if schema.members is not None and slash and number.isdecimal():
        return field_of(schema.members, rest)
    return schema.arrays.get(name)


def refused(tmp_path, manifest, arrays):
    path = tmp_path / "hostile.permix"
    write_archive(path, manifest, arrays)
    with pytest.raises(FileFormatError):
        permix.load(path)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_saved_comes_back(name, contents, tmp_path):
    _, _, path = contents[name]
    model = permix.load(path)
    assert type(model).__name__ == name
    original = fitted(name)
    for parameter, value in original.get_params(deep=False).items():
        assert repr(getattr(model, parameter)) == repr(value), parameter
    again = tmp_path / "again.permix"
    model.save(again)
    assert again.read_bytes() == path.read_bytes()
    if hasattr(original, "labels_"):
        np.testing.assert_array_equal(model.labels_, original.labels_)


@pytest.mark.parametrize("name", NAMES)
def test_every_declared_array_is_needed_typed_and_shaped(name, contents, tmp_path):
    manifest, arrays, _ = contents[name]
    schema = part(MODELS[name].archive)
    fields = {key: field_of(schema, key) for key in arrays}
    assert None not in fields.values()
    for key, array in arrays.items():
        if not fields[key].optional:
            refused(tmp_path, manifest, {other: value for other, value in arrays.items() if other != key})
        kinds = TYPES[fields[key].type]
        for wrong in (np.float32, np.int8, np.bool_, "<U3"):
            if not kinds(np.dtype(wrong)):
                refused(tmp_path, manifest, {**arrays, key: np.zeros(array.shape, dtype=wrong)})
        refused(tmp_path, manifest, {**arrays, key: array[None]})
        first = fields[key].shape[:1]
        member = key.partition("/")[0] if schema.members else ""  # of which dimensions are its own
        shared = [
            other
            for other in arrays
            if other != key and other.startswith(member) and set(first) & set(fields[other].shape)
        ]
        if array.ndim and array.shape[0] > 1 and shared:
            refused(tmp_path, manifest, {**arrays, key: array[:-1]})
    refused(tmp_path, manifest, {**arrays, "stranger": np.zeros(3)})


@pytest.mark.parametrize("name", NAMES)
def test_every_constraint_refuses_what_breaks_it(name, contents, tmp_path):
    manifest, arrays, _ = contents[name]
    schema = part(MODELS[name].archive)
    for key, array in arrays.items():
        if not field_of(schema, key).constraints or array.size == 0:
            continue
        broken = array.copy()
        if array.dtype.kind == "f":
            broken.reshape(-1)[0] = np.nan
        elif array.dtype.kind == "i":
            broken.reshape(-1)[0] = np.iinfo(array.dtype).min
        elif array.dtype.kind == "u":
            broken.reshape(-1)[0] = np.iinfo(array.dtype).max
        else:
            continue
        refused(tmp_path, manifest, {**arrays, key: broken})


HOSTILE = (None, True, -1, 10**30, 1.5, "x", [], [[]], {}, {"kind": "x"})


# In every run each value meets every third of the hostile ones; which, takes turns.
@pytest.mark.parametrize("every", first_in_every_run([3, 1]))
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("part_of", ["parameters", "facts"])
def test_every_value_is_checked(name, part_of, every, contents, tmp_path):
    """A value of another type is refused, or is one that the declaration accepts: nothing else happens."""
    manifest, arrays, _ = contents[name]
    for turn, (key, value) in enumerate(manifest[part_of].items()):
        less = {other: kept for other, kept in manifest[part_of].items() if other != key}
        refused(tmp_path, {**manifest, part_of: less}, arrays)
        n_refused = 0
        for wrong in HOSTILE[turn % every :: every]:
            if wrong == value and type(wrong) is type(value):
                continue
            path = tmp_path / "hostile.permix"
            write_archive(path, {**manifest, part_of: {**manifest[part_of], key: wrong}}, arrays)
            try:
                read_model(path)
            except FileFormatError:
                n_refused += 1
        assert n_refused >= 4 // every, key
    refused(tmp_path, {**manifest, part_of: {**manifest[part_of], "stranger": 1}}, arrays)
    refused(tmp_path, {**manifest, part_of: None}, arrays)


@pytest.mark.parametrize("name", NAMES)
def test_damaged_bytes_are_refused(name, contents, tmp_path):
    _, _, path = contents[name]
    whole = path.read_bytes()
    rng = np.random.default_rng(11)
    for _ in range(40):
        damaged = bytearray(whole)
        for place in rng.integers(len(whole), size=3):
            damaged[place] ^= int(rng.integers(1, 256))
        target = tmp_path / "damaged.permix"
        target.write_bytes(bytes(damaged))
        try:
            read_model(target)
        except FileFormatError:
            continue
        # Bytes that no reader looks at, such as attributes of members, may differ.
        with zipfile.ZipFile(target) as archive:
            json.loads(archive.read("manifest.json"))
    for cut in (0, 10, len(whole) // 2, len(whole) - 1):
        target.write_bytes(whole[:cut])
        with pytest.raises(FileFormatError):
            read_model(target)


def test_a_stranger_is_told_what_the_file_holds(tmp_path):
    path = tmp_path / "x.permix"
    write_archive(path, {"kind": "Elsewhere"}, {})
    with pytest.raises(FileFormatError, match="holds a 'Elsewhere', which this permix does not know"):
        permix.load(path)


def test_a_missing_file_is_one_sentence(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"^there is no file .*nofile; load reads what"):
        permix.load(tmp_path / "nofile")
