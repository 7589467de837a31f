"""How posterior predictive checks are shown: the verdict first, then numbers, the most unusual ones first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from permix.cli.answers import Answer
from permix.cli.output import count_of, print_table
from permix.cli.predict import NewData, Question
from permix.cli.rank_answers import read_over_items
from permix.estimators.registry import model_of, part
from permix.posterior.checks import N_REPLICATES

if TYPE_CHECKING:
    from permix.posterior.checks import FitChecks

COLUMNS = ["aspect", "entry", "observed", "mean", "low", "high", "tail"]


def checks_of(fit: Any, items: tuple[Any, ...] | None, data: NewData, question: Question) -> Answer:
    """Answer ``predict --what checks``: about votes over some items, or about the data that were fitted."""
    if items is None and data.file is not None:
        raise typer.BadParameter(
            "checks are about the data that were fitted, which the model has: leave out the file"
        )
    table = None if data.file is None or items is None else read_over_items(data.votes, items)
    n_replicates = question.samples or N_REPLICATES
    found: FitChecks = part(model_of(fit).checks)(fit, table, n_replicates, question.seed)
    rows = found.table.sort_values("tail", kind="stable")[COLUMNS]
    title = f"Observed, and in {found.n_replicates} data sets drawn from the model: mean and 95 % interval"
    tails = dict(zip(found.aspects["aspect"], found.aspects["tail"], strict=True))
    facts = {f"tail_of_{name.replace(' ', '_')}": float(tail) for name, tail in tails.items()}
    return Answer(title, COLUMNS, rows.to_numpy().tolist(), facts=facts, verdict=found.verdict)


def checks_report(fit: Any) -> dict[str, Any]:
    """Everything that checks of the data fitted say, as plain values."""
    found: FitChecks = part(model_of(fit).checks)(fit, None, N_REPLICATES, 0)
    return {
        "verdict": found.verdict,
        "replicates": found.n_replicates,
        "agents": found.n_agents,
        "aspects": found.aspects.to_dict(orient="records"),
        "numbers": found.table.to_dict(orient="records"),
    }


def print_checks(report: dict[str, Any]) -> None:
    """Write the verdict, and how unusual each aspect is."""
    columns = ["aspect", "numbers", "outside", "tail", "reproduced"]
    print(f"{report['verdict']}\n")
    print_table(
        f"Checks by {count_of(report['replicates'], 'data set')} drawn from the model; --json has more",
        columns,
        [[row[column] for column in columns] for row in report["aspects"]],
    )
    print(
        "outside: numbers outside of the 95 % interval of replicated data\n"
        "tail: share of replicated data sets that are as unusual\n"
    )
