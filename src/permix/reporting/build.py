"""Reports put together: the sections of a model, and those that all models share, in one order."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from permix.errors import DataError
from permix.estimators.registry import Model, model_of, part
from permix.reporting import items_of
from permix.reporting.ballots import data_sentences
from permix.reporting.check_sections import checks_section, is_quick, kept_checks
from permix.reporting.chosen_number import number_sentences, number_to_print
from permix.reporting.content import Answer, Report, Section
from permix.reporting.context import Context, Rows
from permix.reporting.shared import (
    answer_section,
    choice_section,
    cleaning_section,
    covariate_sentences,
    settings_section,
)
from permix.reporting.verdicts import checked, not_yet, stopped_early, unchecked
from permix.reporting.words import shown
from permix.runtime.progress import Display

# The order of sections; a model leaves out those that it has nothing to say about.
ORDER = (
    "answer",
    "trust",
    "groups",
    "split",
    "pairs",
    "numbers",
    "chosen",
    "checks",
    "cleaning",
    "gaps",
    "settings",
)

NO_BETTER = (
    "Groups of a model that predicts no better than a simple description of the data may not exist; "
    "intervals below say how sure sizes are if they do."
)
OTHER_MODELS = (
    "Other models may divide the same data otherwise, and a simple description, such as a plain list of the "
    "answers, may predict better than any of them: permix compare, with the data, says."
)


def reporter(model: Model) -> Any:
    """Return the module that describes fits of a model; None where it has none."""
    if not model.report or importlib.util.find_spec(model.report) is None:
        return None
    return part(model.report)


def has_checks(fit: Any) -> bool:
    """Say whether data can be drawn from a fit and held against its own."""
    model = model_of(fit)
    return bool(model.checks) and importlib.util.find_spec(model.checks.partition(":")[0]) is not None


def answer_of(fit: Any, about: Mapping[str, Rows]) -> Answer | None:
    """Return how far to trust a fit, and what it found, in words; None for models without a report.

    ``about`` is what its file says of how it came about: why it ended, and whether any model is of use.
    """
    described = reporter(model_of(fit))
    if described is None:
        return None
    context = Context("", about)
    if "data" not in about and hasattr(described, "completed"):  # fits that keep their data
        context = described.completed(fit, context)
        about = context.about
    found: Answer = described.answer(fit, context)
    verdict = stopped_early(found.verdict, bool(getattr(fit, "interrupted", False)), context.facts("ending"))
    for row in about.get("checks", ()):
        verdict = checked(verdict, row)
    if "checks" not in about and has_checks(fit):
        verdict = unchecked(verdict)
    doubts = [shown(row["said"]) for row in about.get("no_better", ())]
    if doubts:
        verdict = not_yet(verdict, NO_BETTER, "Do not build on these groups, nor print their sizes.")
    elif "comparison" not in about and hasattr(fit, "memberships"):
        verdict = verdict._replace(advice=(*verdict.advice, OTHER_MODELS))
    first, *others = found.sentences
    said = number_to_print(about)
    to_print = [shown(said)] if said else []
    data = data_sentences(about, items_of(fit))
    why = (*data, *number_sentences(about), *covariate_sentences(fit))
    return Answer(verdict, (*doubts, first, *to_print, *others, *why))


def evidence_of(fit: Any, data: Any) -> dict[str, Any]:
    """Return what the file of a fit keeps of its data: tables by name; nothing where the fit keeps all."""
    described = reporter(model_of(fit))
    return described.evidence(fit, data) if data is not None and hasattr(described, "evidence") else {}


def checks_of(fit: Any, data: Any) -> dict[str, Rows]:
    """Hold data against a fit; nothing where that is slow, or where the data say too little."""
    if not (has_checks(fit) and is_quick(fit)):
        return {}
    given = data if items_of(fit) is not None else None
    found = checks_section(fit, Context("", data=given))[1]
    return {} if found is None else {"checks": kept_checks(found)}


def build(fit: Any, context: Context, progress: bool | None = None) -> Report:
    """Describe a fit."""
    model = model_of(fit)
    described = reporter(model)
    if described is None:
        raise DataError(f"there is no report of {model.named}")
    sections: list[Section] = []
    kept: dict[str, Rows] = {}
    with Display(progress) as display:
        display.begin("describing the groups")
        context = described.completed(fit, context) if hasattr(described, "completed") else context
        if has_checks(fit):
            display.begin("drawing data from the model")
            checks, found = checks_section(fit, context)
            sections.append(checks)
            if found is not None:
                kept["checks"] = kept_checks(found)
        context = replace(context, about={**context.about, **kept})
        answer = answer_of(fit, context.about)
        assert answer is not None
        verdict = answer.verdict
        sections += [answer_section(answer), *described.sections(fit, context)]
        sections.append(Section("trust", "Can you trust this?", (verdict,)))
        sections += choice_section(context)
        sections += [cleaning_section(context), settings_section(fit, context, described.REFERENCE)]
    by_key = {section.key: section for section in sections}
    ordered = tuple(by_key[key] for key in ORDER if key in by_key)
    return Report(context.title, described.subtitle(fit), ordered, kept)
