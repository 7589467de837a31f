"""What a file holds: what ``permix info --json`` says of it, and which questions it asks."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

from permix.serve.forms import FORMS, Field, Values, read_forms, reading_words
from permix.serve.worker import PERMIX, environment, last_words

# A file that takes longer to look at is no file for a page.
MOST_SECONDS = 900
_KINDS = {"rankings": "votes", "preferences": "votes", "matrix": "matrix", "table": "table"}


def look(folder: Path, file: str, values: Values) -> dict[str, Any]:
    """Describe a file, read as the form says; where it says nothing of what it holds, find out.

    Returns a dictionary with ``form``, ``facts`` (empty where the file could not be read), ``error``,
    ``warnings``, and ``values``: what the form should say from now on.
    """
    form = next(iter(values.get("form", ())), "")
    facts, error, warnings = _info(folder, file, form, values)
    if not form:
        form = _KINDS.get(facts.get("kind", ""), "votes")
        if facts.get("layout") == "ratings":  # what each row gave each column: a matrix says more of them
            form = "matrix"
            values = {**values, "matrix.layout": ["long"]}
            facts, error, warnings = _info(folder, file, form, values)
    values = {**values, "form": [form]}
    return {"form": form, "facts": facts, "error": error, "warnings": warnings, "values": values}


def _info(folder: Path, file: str, form: str, values: Values) -> tuple[dict[str, Any], str, list[str]]:
    words = [f"--as={form or 'any'}", *(reading_words(form, values) if form else ())]
    command = [*PERMIX, "info", file, "--json", *words]
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env=environment(folder),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=MOST_SECONDS,
        )
    except subprocess.TimeoutExpired:
        return {}, f"reading the file took more than {MOST_SECONDS // 60} minutes", []
    warned = "permix: warning: "
    warnings = [line.removeprefix(warned) for line in done.stderr.splitlines() if line.startswith(warned)]
    if done.returncode != 0:
        killed = "the process that read the file was ended; perhaps there was not enough memory"
        return {}, last_words(done.stderr) or killed, warnings
    facts = json.loads(done.stdout)
    facts.pop("file", None)
    return facts, "", warnings


def asked(looked: dict[str, Any]) -> list[Field]:
    """Return the fields that an error, or several contests, ask to be filled in."""
    form = looked["form"] if looked["form"] in FORMS else "votes"
    fields = read_forms()[form].reading
    if len(looked["facts"].get("contests", ())) > 1 and "kind" not in looked["facts"]:
        return [field for field in fields if field.name == "contest"]
    flags = set(re.findall(r"--[a-z][a-z-]*", looked["error"]))
    return [field for field in fields if flags & set(field.flag.split("/"))]


def with_choices(field: Field, looked: dict[str, Any], values: Values) -> Field:
    """Return a field with what is known of the file to choose from: its contests, its columns."""
    facts = looked["facts"]
    if field.name == "contest" and facts.get("contests"):
        return field._replace(kind="choice", choices=tuple(map(str, facts["contests"])))
    columns = columns_of(looked)
    columns = tuple(dict.fromkeys((*columns, *values.get(field.key, ()))))  # what is set apart is not listed
    if columns and field.name in ("group_columns", "ignore"):
        return field._replace(kind="several", choices=columns)
    return field


def columns_of(looked: dict[str, Any]) -> tuple[str, ...]:
    """Return the columns of the file that are known by name and may be set apart."""
    facts = looked["facts"]
    listed = facts.get("columns_for_--group-column") or [
        about["column"] for about in facts.get("column_facts", ())
    ]
    return tuple(map(str, listed))
