"""Fitted models as files: a schema for each model, and one way to write and to read them all.

A file may come from a stranger. Compiled code checks nothing, so nothing may reach it that a fit could not
have written: arrays are checked against the schema (type, shape, constraints), parameters by their
declarations, and what must fit together by the model's own ``build``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from permix.errors import FileFormatError
from permix.estimators import known
from permix.estimators.checks import Check
from permix.estimators.fields import Array, Field, check_arrays, require
from permix.estimators.parameters import Parameters
from permix.estimators.registry import MODELS, Model, find_plug_ins, model_of, part
from permix.files import VERSION, read_archive, write_archive
from permix.runtime.progress import Display

PathLike = str | os.PathLike[str]


class Content(NamedTuple):
    """What a file holds beside the parameters: facts (values of JSON) and arrays, both by name.

    ``members`` are fits of another model that the fit is made of.
    """

    facts: dict[str, Any]
    arrays: dict[str, Array]
    members: Sequence[Any] = ()


class Saved(NamedTuple):
    """What was read, each piece checked by itself; the fact "members" holds fits that the fit is made of."""

    settings: Any
    facts: dict[str, Any]
    arrays: dict[str, Array]
    sizes: dict[str, int]


# Tables that files may have about how a fit came about, and columns that each needs.
ABOUT = {
    "reading": ("said",),
    "cleaning": ("found", "done", "ballots", "which"),
    "selection": ("n_groups",),
    "missing_codes": ("code",),
    "chosen": ("said",),
    "comparison": ("model", "kind", "score"),
    "no_better": ("said",),
    "ending": ("what", "value"),
    "run": ("what", "value"),
    "checks": ("said", "lacking"),
    "data": ("what", "value"),
    "typical": ("group", "ballot", "agents"),
}


@dataclass(frozen=True)
class Schema:
    """What a model's archive holds."""

    parameters: type[Parameters]
    pack: Callable[[Any], Content]  # takes a fit apart
    build: Callable[[Saved], Any]  # makes a fit; checks with ``require`` what pieces must have in common
    arrays: Mapping[str, Field] = field(default_factory=dict)  # every array a file may hold
    facts: Mapping[str, Check] = field(default_factory=dict)  # every further value, all of them needed
    members: Schema | None = None  # that of the fits which a fit of this model is made of


def write_model(fit: Any, path: PathLike, about: Mapping[str, Any] | None = None) -> None:
    """Write a fit of any model; :func:`permix.load` reads it.

    ``about`` is what else a reader of the file should know, in values that JSON holds, by name: what was done
    to the ballots (``cleaning``), what the number of groups was chosen by (``selection``), which values stood
    for missing cells (``missing_codes``), the command and versions (``run``), how much agents said (``data``)
    and typical ballots of each group (``typical``); how the model was chosen, in sentences (``chosen``), and
    the comparison behind that (``comparison``).
    """
    model = model_of(fit)
    manifest, arrays = described(part(model.archive), fit)
    told: dict[str, Any] = {"about": dict(about)} if about else {}
    if known.known_of(fit) != known.NOTHING:
        told["known"], columns = known.pack(known.known_of(fit))
        arrays |= columns
    with Display(None) as display:
        megabytes = _Megabytes(display, f"writing {Path(path).name}")
        n_bytes = sum(array.nbytes for array in arrays.values())
        tell = partial(megabytes.tell, of_all=n_bytes)
        write_archive(path, {"kind": model.name, **manifest, **told}, arrays, tell=tell)


class _Megabytes:
    """Shows how much of a file is read or written."""

    def __init__(self, display: Display, what: str) -> None:
        self._display, self._what, self._done = display, what, 0
        display.begin(what)

    def tell(self, n_bytes: int, of_all: int) -> None:
        if not self._done:
            self._display.begin(f"{self._what}, MB", -(-of_all // 10**6))
        self._done += n_bytes
        self._display.update("", min(self._done, of_all) // 10**6)


def read_about(path: PathLike) -> dict[str, list[dict[str, Any]]]:
    """Return what a file says about how a fit came about: tables by name, rows as plain values.

    It comes from a file that may come from anybody: what is no table of words and numbers is left out.
    """
    told = read_archive(path, with_arrays=False)[0].get("about")
    tables = told.items() if isinstance(told, dict) else ()
    return {name: rows for name, rows in tables if _is_table(rows, ABOUT.get(name))}


def _is_table(rows: Any, columns: tuple[str, ...] | None) -> bool:
    plain = (str, int, float, type(None))
    return (
        columns is not None
        and isinstance(rows, list)
        and all(
            isinstance(row, dict)
            and set(columns) <= set(row)
            and all(isinstance(value, plain) for value in row.values())
            for row in rows
        )
    )


def described(schema: Schema, fit: Any) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return what a file says about a fit, and its arrays; those of member 0 are named ``0/...``."""
    content = schema.pack(fit)
    manifest = {
        "parameters": fit.settings.to_json(),
        "facts": {name: schema.facts[name].to_json(value) for name, value in content.facts.items()},
    }
    arrays = dict(content.arrays)
    if schema.members is not None:
        manifest["members"] = []
        for number, member in enumerate(content.members):
            about, of_member = described(schema.members, member)
            manifest["members"].append(about)
            arrays |= {f"{number}/{name}": array for name, array in of_member.items()}
    return manifest, arrays


def read_model(path: PathLike, max_bytes: int | None = None) -> tuple[Model, Any]:
    """Read a fit of any model, without scikit-learn, whose import takes a second."""
    with Display(None) as display:
        megabytes = _Megabytes(display, f"reading {Path(path).name}")
        manifest, arrays = read_archive(path, max_bytes=max_bytes, tell=megabytes.tell)
        display.begin(f"putting {Path(path).name} together")
        return _model_of(path, manifest, arrays)


def _model_of(path: PathLike, manifest: dict[str, Any], arrays: dict[str, Array]) -> tuple[Model, Any]:
    if manifest["kind"] not in MODELS:
        find_plug_ins()
    model = MODELS.get(manifest["kind"])
    name = os.fspath(path)
    if model is None:
        kind = manifest["kind"][:80]
        raise FileFormatError(f"{name} holds a {kind!r}, which this permix does not know", path)
    try:
        beside = {name: array for name, array in arrays.items() if name.startswith(known.PREFIX)}
        own = {name: array for name, array in arrays.items() if name not in beside}
        fit = rebuilt(part(model.archive), manifest, own)
        require("known" in manifest or not beside, "columns")
        return model, _with_columns(fit, manifest["known"], beside) if "known" in manifest else fit
    except Exception as error:
        why = f"{type(error).__name__}: {error}"
        said = f"{name} is a permix file, but what it holds does not fit together ({why}). "
        way_out = "It may have been edited; fit the model again."
        if manifest.get("version") != VERSION:
            said = f"{name} was written by an earlier permix ({str(manifest.get('permix'))[:40]}) "
            way_out = "in another form; fit the model again."
        raise FileFormatError(said + way_out, path) from error


def _with_columns(fit: Any, said: Any, arrays: dict[str, Array]) -> Any:
    """Return a fit with what its file knows of rows and items, which there must be as many of."""
    require(hasattr(fit, "known"), "columns")
    found = known.unpack(said, arrays)
    for columns, n in zip(found, fit.n_known, strict=True):
        columns.checked(n, "rows")
    return replace(fit, known=found)


def rebuilt(schema: Schema, manifest: Mapping[str, Any], arrays: dict[str, Array]) -> Any:
    """Check what a file says, piece by piece, and put the fit together."""
    settings = schema.parameters.from_json(manifest.get("parameters"))
    said: Any = manifest.get("facts")
    require(isinstance(said, dict) and set(said) == set(schema.facts), "facts")
    facts = {name: check(name, check.from_json(said[name])) for name, check in schema.facts.items()}
    if schema.members is not None:
        facts["members"] = []
        of_members: Any = manifest.get("members")
        require(isinstance(of_members, list), "members")
        for number, about in enumerate(of_members):
            own = {name: array for name, array in arrays.items() if name.startswith(f"{number}/")}
            arrays = {name: array for name, array in arrays.items() if name not in own}
            pieces = {name.partition("/")[2]: array for name, array in own.items()}
            facts["members"].append(rebuilt(schema.members, about, pieces))
    return schema.build(Saved(settings, facts, arrays, check_arrays(schema.arrays, arrays)))


def load(path: PathLike, max_bytes: int | None = None) -> Any:
    """Read a fitted model that was written by its ``save``.

    The file may come from a stranger: nothing in it is executed, and all of it is checked before use.

    Parameters
    ----------
    path : path
        The file.
    max_bytes : int, optional
        The most that the file may unpack to. Left out, 1 GiB or what the environment variable
        ``PERMIX_MAX_BYTES`` says.

    Returns
    -------
    The fitted estimator.

    Raises
    ------
    FileFormatError
        If the file is truncated, damaged, hostile, of another kind, or written by a newer permix.
    """
    if not os.path.exists(path):
        raise FileNotFoundError(f"there is no file {os.fspath(path)}; load reads what a model's save wrote")
    model, fit = read_model(path, max_bytes)
    return part(model.estimator)._from_fit(fit)
