"""What the pages show: templates filled with plain values, every one of them escaped."""

from __future__ import annotations

import time
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from permix.datasets.examples import EXAMPLES
from permix.runtime.progress import duration
from permix.serve import forms
from permix.serve.jobs import (
    DONE,
    FAILED,
    LOOKING,
    READY,
    REPORT,
    RUNNING,
    STOPPED,
    UNDER_WAY,
    Job,
    Jobs,
)
from permix.serve.looking import asked, with_choices
from permix.serve.worker import ERRORS, OUTPUT, PROGRESS, can_go_on, words_of

STATES = {
    "looking": "Reading the file",
    "ready": "Your turn",
    "queued": "Waiting for another fit to end",
    "running": "Working",
    "done": "Finished",
    "stopped": "Stopped",
    "failed": "Did not work",
}
# Items and levels that are shown, the most frequent first.
MOST_BARS = 12
# Facts that are shown in a form of their own, or say nothing to people.
_APART = (
    "first_choices",
    "items",
    "contests",
    "cleaning",
    "levels",
    "column_facts",
    "fits",
    "columns_for_--group-column",
)


@cache
def _templates() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(states=STATES, nothing=forms.EMPTY)
    environment.filters.update(when=_when, size=_size)
    return environment


def _page(template: str, **values: Any) -> str:
    return _templates().get_template(template).render(**values)


def home(jobs: Jobs, limit: int) -> str:
    """Return the first page."""
    examples = {name: about.question for name, about in EXAMPLES.items()}
    return _page("home.html", jobs=jobs.all(), examples=examples, limit=limit, folder=str(jobs.folder))


def refused(said: str) -> str:
    """Return a page that says what is wrong."""
    return _page("refused.html", said=said)


def job_page(jobs: Jobs, job: Job) -> str:
    """Return the page of a job, by what it is at."""
    if job.state == READY:
        return _page("choose.html", job=job, **choices(job, jobs.read_json(job.id, "looked.json")))
    if job.state in (LOOKING, *UNDER_WAY):
        return _page("progress.html", job=job, status=status(jobs, job), looking=job.state == LOOKING)
    return _page(
        "result.html",
        job=job,
        took=_took(job),
        report=job.state in (DONE, STOPPED) and jobs.has(job.id, REPORT),
        fit=job.state in (DONE, STOPPED) and jobs.has(job.id, job.fit),
        resumable=job.state in (STOPPED, FAILED) and can_go_on(jobs.folder_of(job.id), job.fit),
        output=jobs.text(job.id, OUTPUT),
        errors=jobs.text(job.id, ERRORS),
    )


def status(jobs: Jobs, job: Job) -> dict[str, Any]:
    """Return how far a job is, as plain values."""
    lines = jobs.read_json(job.id, PROGRESS) if job.state == RUNNING else None
    began = job.began if job.state == RUNNING else None
    return {
        "state": job.state,
        "said": "Stopping; what was done is kept" if job.cancelled else STATES[job.state],
        "took": "" if began is None else f"for {duration(time.time() - began)}",
        "lines": [_line(line) for line in lines or ()],
        "words": words_of(jobs.text(job.id, ERRORS)) if job.state == RUNNING else [],
    }


def _line(line: dict[str, Any]) -> dict[str, Any]:
    """Return a line of progress in words."""
    left, of = line["seconds_left"], line["of"]
    return {
        "stage": line["stage"],
        "done": line["done"],
        "of": of,
        "count": "" if of is None else f"{line['done']:,} of {of:,}",
        "text": line["text"],
        "left": line.get("left") or ("" if left is None else f"about {duration(left)} left"),
    }


def choices(job: Job, looked: dict[str, Any]) -> dict[str, Any]:
    """Return what was recognized in a file, and all that may be chosen."""
    facts, form = looked["facts"], looked["form"]
    questions = [with_choices(field, looked, job.values) for field in asked(looked)]
    reading = {
        name: [
            with_choices(field, looked, job.values) if name == form else field
            for field in about.reading
            if name != form or field.key not in {question.key for question in questions}
        ]
        for name, about in forms.read_forms().items()
    }
    beside = {
        name: [field for field in shown if field.kind == "several" and field.name == "group_columns"]
        for name, shown in reading.items()
    }
    reading = {
        name: [field for field in shown if field not in beside[name]] for name, shown in reading.items()
    }
    rules = {field.name: field for field in forms.read_forms()[form].cleaning}
    audit = [
        {**entry, "field": rules.pop(entry.get("rule", ""), None)} for entry in facts.get("cleaning", ())
    ]
    cleaning = {name: about.cleaning for name, about in forms.read_forms().items()}
    suited = [about for about in forms.model_forms().values() if form in about.forms]
    chosen = next(iter(job.values.get("model", ())), "")
    if chosen not in {about.name for about in suited}:
        chosen = suited[0].name
    return {
        "looked": looked,
        "readable": bool(facts) and not questions,
        "title": _title(facts),
        "facts": _facts(facts),
        "bars": _bars(facts),
        "columns": facts.get("column_facts", []),
        "contests": facts.get("contests", {}),
        "audit": audit,
        "questions": questions,
        "forms": forms.FORMS,
        "beside": beside,  # columns that groups may be compared with, where they are known
        "reading": reading,
        "cleaning": {**cleaning, form: tuple(rules.values())},
        "models": list(forms.model_forms().values()),
        "model": chosen,
        "values": job.values,
    }


def _title(facts: dict[str, Any]) -> str:
    """Say in one line what a file holds."""
    kind = facts.get("kind")
    if kind in ("rankings", "preferences"):
        return f"{facts['agents']:,} agents, {facts['number_of_items']:,} items"
    if kind == "matrix":
        return f"A matrix of {facts['rows']:,} rows and {facts['columns']:,} columns"
    if kind == "table":
        return f"A table of {facts['rows']:,} rows and {facts['columns']:,} columns"
    return f"{len(facts.get('contests', ()))} contests" if facts else "This file needs a word from you"


def _facts(facts: dict[str, Any]) -> list[tuple[str, str]]:
    shown = {name: value for name, value in facts.items() if name not in _APART}
    return [(name.replace("_", " "), _readable(name, value)) for name, value in shown.items()]


def _readable(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return "; ".join(f"{key}: {_readable('', entry)}" for key, entry in value.items())
    if isinstance(value, list):
        if name.startswith("cells_of_") and len(value) == 3:
            return f"{value[0]:,} to {value[2]:,}, median {value[1]:g}"
        return (" to " if name == "range" else ", ").join(str(entry) for entry in value)
    if isinstance(value, float):
        return f"{value:.1%}" if name.startswith("share_") else f"{value:g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _bars(facts: dict[str, Any]) -> dict[str, Any] | None:
    """Return first choices, or the values of a matrix, the most frequent first."""
    for name, title, unit in (
        ("first_choices", "First choices", "agents"),
        ("levels", "Values of the cells", "cells"),
    ):
        counts = facts.get(name)
        if counts:
            ordered = sorted(counts.items(), key=lambda pair: -pair[1])
            total = sum(counts.values())
            rows = [(label, n, n / total, n / ordered[0][1]) for label, n in ordered[:MOST_BARS]]
            return {"title": title, "unit": unit, "rows": rows, "more": len(ordered) - len(rows)}
    return None


def _took(job: Job) -> str:
    return "" if job.began is None or job.ended is None else duration(job.ended - job.began)


def _when(moment: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(moment))


def _size(n_bytes: int) -> str:
    return f"{n_bytes / 2**30:.3g} GiB" if n_bytes >= 2**30 else f"{n_bytes / 2**20:.3g} MiB"
