"""What ``predict`` and ``sample`` do, for every model."""

from __future__ import annotations

import warnings
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import typer

from permix.cli.answers import DELIMITERS, Answer, csv_to, give, give_rankings, write_rankings
from permix.cli.command import ModelCommand
from permix.cli.covariates import covariates_report, print_covariates
from permix.cli.inspect import check_targets, kept_of, print_choice, print_cleaning, print_reading
from permix.cli.output import data_stream, print_json
from permix.cli.run import speaking_options
from permix.cli.votes import Kept, ReadOptions, read_options
from permix.errors import DataError, PermixWarning
from permix.estimators.registry import part
from permix.runtime.progress import Display
from permix.runtime.telling import tell


class Question(NamedTuple):
    """What is asked of a model; None means not given."""

    what: str
    top: int | None
    samples: int | None
    seed: int
    length: int | None
    wide: bool  # whether there is room for many columns

    @property
    def draws(self) -> dict[str, Any]:
        """Number of draws as an argument of the library, where it was given."""
        return {} if self.samples is None else {"n_samples": self.samples}


class NewData(NamedTuple):
    """The file to predict for, if there is one, and what the user said about how to read it."""

    file: Path | None
    values: Mapping[str, Any]
    kept: Kept
    contradictions: bool = False  # whether the model is one of errors

    @property
    def votes(self) -> ReadOptions:
        """The file as one of votes."""
        if self.file is None:
            raise typer.BadParameter("give a file of new agents as well")
        options = read_options(self.file, self.values)
        options = options.keeping() if self.contradictions else options
        options.refuse_keep()
        return options._replace(kept=self.kept)


def run_predict(
    fit: Path,
    file: Path | None,
    what: str | None,
    output: Path | None,
    force: bool,
    json: bool,
    **values: Any,
) -> None:
    """Say what a fitted model makes of new data."""
    first = file if file is not None and file.suffix == ".permix" else "MODEL.permix"
    found, command = loaded(fit, f"the model comes first, as in permix predict {first} {fit}")
    who = f"a fit of {command.name}"
    if not command.answers:
        raise DataError(f"{fit} holds {who}, which predicts nothing")
    if what is None and values.get("top") is not None and "recommend" in command.answers:
        what = "recommend"
    what = what or next(iter(command.answers))
    if what not in command.answers:
        known = ", ".join(command.answers)
        raise typer.BadParameter(f"--what {what}: {fit} holds {who}, which answers {known}")
    answering = command.answers[what]
    for name, value in values.items():
        if value in (None, []):
            continue
        flag = command.flags.get(name, f"--{name.replace('_', '-')}")
        if name not in answering.uses and name not in command.source.options:
            raise typer.BadParameter(f"{flag} says nothing to {who} about --what {what}")
        reading = command.source.options.get(name)
        if reading is not None and reading.choices and value not in reading.choices:
            known = ", ".join(reading.choices)
            raise typer.BadParameter(f"{flag} {value} says nothing to {who}, whose files may be {known}")
        if reading is not None and file is None:
            raise typer.BadParameter(f"{flag} says how to read a file of new data, and none is given")
    if output is not None:
        if not answering.rankings and output.suffix not in DELIMITERS:
            raise typer.BadParameter(
                f"--output {output}: this answer is a table; end its name in .csv or .tsv"
            )
        check_targets([output], [fit, file], force)
    if file is None and answering.needs_data:
        raise typer.BadParameter(f"give a file of new data as well; --what {what} is about new rows")
    top, samples, seed, length = (values[name] for name in ("top", "samples", "seed", "length"))
    question = Question(what, top, samples, seed or 0, length, wide=output is not None or json)
    with speaking_options({**command.flags, "n_replicates": "--samples"}):
        if file is not None and _may_have_codes(file) and not values.get("missing"):
            values |= _codes_of(fit, file)
        needed = getattr(getattr(found, "settings", None), "weights_by", None)
        values |= {"weights_by": needed} if needed else {}
        kept = Kept()
        soft = getattr(getattr(found, "settings", None), "errors", None) is not None
        with Display(None) as display, display.counting_rows("predicting"):
            answer = command.function(what)(found, NewData(file, values, kept, soft), question)
        if isinstance(answer, Answer):
            give(
                answer.with_covariates(kept.ids, kept.covariates) if kept.covariates else answer, output, json
            )
        else:
            rankings, agents = answer
            if kept.covariates and len(rankings) == len(kept.ids):
                rankings = rankings._replaced(covariates=kept.covariates)
            give_rankings(rankings, agents, output, json)


def _may_have_codes(file: Path) -> bool:
    """Whether values in a file can stand for missing ones: rankings in formats of their own have no such."""
    from permix.data.io.text_files import PREFLIB, PROFILES, plain_suffix

    return plain_suffix(file) not in {"npz", *PREFLIB, *PROFILES} - {"cat"}


def _codes_of(fit: Path, file: Path) -> dict[str, list[str]]:
    """Return, as an option, which values stood for missing cells in the data of a fit."""
    told = part("permix.estimators.archive:read_about")(fit).get("missing_codes", ())
    codes = [row["code"] for row in told if isinstance(row["code"], str)]
    if codes:
        stand = "stands for a missing cell" if len(codes) == 1 else "stand for missing cells"
        said = f"{', '.join(codes)} {stand} in {file.name}, as in the data of {fit.name}"
        tell(f"{said}; --missing says otherwise")
        # New rows need not have any.
        warnings.filterwarnings("ignore", "no cell holds", PermixWarning)
    return {"missing": codes} if codes else {}


def loaded(file: Path, way_out: str) -> tuple[Any, ModelCommand]:
    """Return a file's fit and its command; notice a file of data where the model should be."""
    from permix.data.io.text_files import PREFLIB, TABLES, plain_suffix
    from permix.estimators.archive import read_model

    kinds = dict.fromkeys(PREFLIB, "a PrefLib file of votes") | dict.fromkeys(TABLES, "a table of data")
    kind = kinds.get(plain_suffix(file))
    if kind is not None and file.is_file() and not zipfile.is_zipfile(file):
        raise DataError(f"{file} is {kind}, not a fitted model; {way_out}")
    model, fit = read_model(file)
    if not model.command:
        raise DataError(f"{file} is {model.named}, which only the library uses: permix.load(path)")
    return fit, part(model.command)


def show_fit(file: Path, as_json: bool, checks: bool = False) -> None:
    """Print what a fitted model found and, if asked for, whether it fits at all."""
    fit, command = loaded(file, f"permix info {file} describes votes, permix fit makes models of data")
    about = part("permix.estimators.archive:read_about")(file)
    with Display(None) as display:
        display.begin("describing the groups")
        answer = part("permix.reporting.build:answer_of")(fit, about)
        said = part("permix.cli.report:answer_report")(answer)
        report = command.function("report")(fit) | said | covariates_report(fit)
    if checks:
        with speaking_options(command.flags):
            report["checks"] = part("permix.cli.checks:checks_report")(fit)
    if as_json:
        kept = {
            name: about[name]
            for name in ("reading", "cleaning", "selection", "missing_codes")
            if name in about
        }
        print_json({"file": str(file), **report, **kept})
        return
    if checks:
        part("permix.cli.checks:print_checks")(report["checks"])
    part("permix.cli.report:print_answer")(answer)
    command.function("show")(report, file.name)
    print_covariates(report)
    print_choice(about)
    print_reading(about)
    print_cleaning(about, *kept_of(report))


def run_sample(
    fit: Path, size: int, length: int | None, output: Path | None, seed: int, force: bool, json: bool
) -> None:
    """Draw new rankings or rows from a fitted model."""
    if output is not None:
        check_targets([output], [fit], force)
    found, command = loaded(fit, "permix fit makes one of data, and permix sample draws from that")
    if not command.draws:
        raise DataError(f"{fit} holds a fit of {command.name}, from which nothing can be drawn")
    if length is not None and not command.draws_lengths:
        raise typer.BadParameter(f"--length says nothing to a fit of {command.name}")
    lengths = [length] if command.draws_lengths else []
    speaking = speaking_options({**command.flags, "lengths": "--length"})
    with speaking, Display(None) as display, display.counting_rows("drawing"):
        drawn = command.function("sample")(found, size, seed, *lengths)
    is_table = isinstance(drawn, Answer)
    if output is not None and is_table and output.suffix not in DELIMITERS:
        raise DataError(f"{output}: rows are written as .csv or .tsv")
    if is_table and (output is not None or json):
        give(drawn, output, json)
    elif is_table:
        csv_to(data_stream(), drawn.columns, drawn.rows)
    elif output is not None:
        write_rankings(drawn, output, json)
    elif json:
        rankings = [[drawn.items[item] for item in row if item >= 0] for row in drawn.orders.tolist()]
        print_json({"rankings": rankings})
    else:
        names = [*drawn.items, ""]  # a place that a list leaves empty has number -1
        places = [f"pos{place + 1}" for place in range(drawn.orders.shape[1])]
        csv_to(data_stream(), places, ([names[item] for item in row] for row in drawn.orders.tolist()))
