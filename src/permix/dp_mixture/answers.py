"""What the command line asks of mixtures of vectors."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import typer

from permix.cli.answers import Answer
from permix.cli.checks import checks_of
from permix.cli.output import count_of
from permix.cli.predict import NewData, Question
from permix.dp_mixture.checks import baselines
from permix.dp_mixture.choose_family import chosen_family
from permix.dp_mixture.fit import MixtureFit, fit_mixture, naming_columns
from permix.dp_mixture.parameters import DPMixtureParameters
from permix.dp_mixture.predict import log_density, membership_of, sample_rows
from permix.dp_mixture.table_source import Table, read_table
from permix.families.table_columns import KINDS, columns_of
from permix.registries import FAMILIES, PRIORS, Registry
from permix.runtime.telling import tell


def choose(given: dict[str, Any]) -> dict[str, Any]:
    """Turn ``--family`` and ``--prior``, and the options of the one that was chosen, into parameters."""
    chosen = dict(given)
    kinds = _kinds_given(chosen)
    family, settings = _settings_given(chosen, FAMILIES)
    settings |= {"kinds": kinds} if kinds else {}
    if settings:
        chosen["family"] = FAMILIES[family](**settings)
    prior, settings = _settings_given(chosen, PRIORS)
    if settings or "prior" in chosen:
        chosen["prior"] = PRIORS[prior].named(**settings)
    return chosen


def _kinds_given(chosen: dict[str, Any]) -> dict[str, str]:
    """Read ``--column NAME=KIND``; it means a family of mixed columns."""
    words = chosen.pop("kinds", None) or []
    if words and chosen.setdefault("family", "mixed-niw") not in ("mixed", "mixed-niw"):
        raise typer.BadParameter(
            f"--column belongs to --family mixed-niw or mixed, not to {chosen['family']}"
        )
    kinds: dict[str, str] = {}
    for word in words:
        name, equals, kind = word.rpartition("=")
        if not equals or not name or kind not in KINDS or name in kinds:
            raise typer.BadParameter(
                f"--column {word} must be a column and what it is, each column once, such as age=number; "
                f"it may be one of {', '.join(KINDS)}"
            )
        kinds[name] = kind
    return kinds


def _settings_given(chosen: dict[str, Any], registry: Registry) -> tuple[str, dict[str, Any]]:
    """Return which class was chosen, and its settings; those of others are refused, they do nothing."""
    name = chosen.get(registry.what) or next(iter(registry))
    own = registry.entries[name].settings
    given = {}
    for setting in {setting for entry in registry.entries.values() for setting in entry.settings}:
        if setting not in chosen:
            continue
        value = chosen.pop(setting)
        if setting not in own:
            owners = [owner for owner, entry in registry.entries.items() if setting in entry.settings]
            raise typer.BadParameter(
                f"--{setting.replace('_', '-')} belongs to --{registry.what} {' or '.join(owners)}, "
                f"not to {name}"
            )
        given[own[setting].argument or setting] = value
    parameters = inspect.signature(registry[name]).parameters
    needed = {argument for argument, about in parameters.items() if about.default is about.empty}
    for setting, about in own.items():
        argument = about.argument or setting
        if argument in needed and argument not in given:
            raise typer.BadParameter(
                f"--{registry.what} {name} needs --{setting.replace('_', '-')}, the {about.help}"
            )
    return name, given


def fit_data(table: Table, settings: DPMixtureParameters) -> MixtureFit:
    """Fit the mixture to a file of rows."""
    if not chosen_family(settings.family, table.rows).accepts_categories:
        table.refuse_text()
    elif settings.family is None and settings.progress is not False:
        _say_mixed(table)
    return fit_mixture(table.rows, settings, table.columns)


def _say_mixed(table: Table) -> None:
    """Say that text among numbers takes part: it should not where groups are to be compared with it."""
    columns = columns_of(table.rows)
    text = [str(column.name) for column in columns if not column.numeric]
    if not 0 < len(text) < len(columns):
        return
    one = len(text) == 1
    part = f"the text column{'' if one else 's'} {', '.join(text)} take{'s' if one else ''} part in the fit"
    ways = f"--group-column {text[0]} compares groups with it afterwards, --ignore {text[0]} leaves it out"
    tell(f"{part}; {ways}")


def labels(fit: MixtureFit, table: Table) -> Answer:
    """Say which group each row that was fitted is in; rows that are alike get one answer."""
    alike = table.alike()
    votes = np.zeros((alike.max() + 1, fit.n_clusters))
    np.add.at(votes, (alike, fit.labels), 1.0)
    group = votes.argmax(axis=1)[alike]  # where most of them are, the larger group if as many are in another
    mine = fit.labels == group
    sure = np.bincount(alike, fit.how_sure * mine) / np.bincount(alike, mine)
    rows = zip(table.ids, (group + 1).tolist(), np.round(sure[alike], 4).tolist(), strict=True)
    return Answer(
        f"{count_of(fit.n, 'row')}: group, and how sure that is", [table.id_name, "group", "how_sure"], rows
    )


def _new_rows(fit: MixtureFit, data: NewData) -> tuple[Table, Any]:
    """Read new rows; return them, and as the family encodes them."""
    assert data.file is not None
    table = read_table(data.file, data.values).like(fit.feature_names, fit.family.n_features)
    data.kept.ids, data.kept.covariates = list(table.ids), table.covariates
    if not fit.family.accepts_categories:
        table.refuse_text(" The model was fitted to numbers there.")
    with naming_columns(fit.feature_names):
        return table, fit.family.encode(table.rows)


def groups(fit: MixtureFit, data: NewData, question: Question) -> Answer:
    """Say which group each row belongs to, and whether to any."""
    table, encoded = _new_rows(fit, data)
    belonging = membership_of(fit.serving(encoded), encoded, int(table.rows.shape[0]))
    rows = zip(
        table.ids,
        (belonging.group + 1).tolist(),
        np.round(belonging.known.max(axis=1), 6).tolist(),
        np.round(belonging.novelty, 6).tolist(),
        strict=True,
    )
    return Answer(
        f"{count_of(len(table.ids), 'row')}: group, its probability (how_sure), and that the row belongs to "
        "none (new)",
        [table.id_name, "group", "how_sure", "new"],
        rows,
    )


def score(fit: MixtureFit, data: NewData, question: Question) -> Answer:
    """Say how probable each row is: ln of its density, beside simpler models of the rows that were fitted."""
    table, encoded = _new_rows(fit, data)
    m, serving = int(table.rows.shape[0]), fit.serving(encoded)
    values, errors = log_density(serving, encoded, m)
    simple = baselines(fit, (serving, encoded, m), None)
    facts = {"mean_log_density": float(values.mean())}
    facts |= {f"mean_under_{name.replace(' ', '_')}": float(each.mean()) for name, each in simple.items()}
    rows = zip(table.ids, np.round(values, 6).tolist(), np.round(errors, 6).tolist(), strict=True)
    title = f"{count_of(m, 'row')}: log density, and its Monte Carlo error"
    return Answer(title, [table.id_name, "log_density", "standard_error"], rows, facts=facts)


def sample(fit: MixtureFit, size: int, seed: int) -> Answer:
    """Draw new rows of numbers or categories."""
    return Answer("", list(fit.columns), sample_rows(fit, size, seed).tolist())


def checks(fit: MixtureFit, data: NewData, question: Question) -> Answer:
    """Say whether the model fits at all."""
    return checks_of(fit, None, data, question)
