"""What ``predict`` and ``sample`` do, for every kind of fitted model."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import typer

from permix.cli.fit import read_table_of_numbers, refuse_text
from permix.cli.inspect import ReadOptions, check_targets
from permix.cli.output import count_of, print_json, print_table
from permix.cli.rank_models import fitting, terminal_width
from permix.errors import DataError

if TYPE_CHECKING:
    from permix.models.kernel_density import KernelDensity
    from permix.models.mallows_fit import MallowsFit
    from permix.models.mixture_fit import MixtureFit

# Rows shown where no file was asked for; probabilities of this many components stand side by side.
MAX_ROWS = 50
MAX_COLUMNS = 8
# Pairwise probabilities are computed for as many agents at a time as make this many numbers.
BLOCK = 500_000


class NewData(NamedTuple):
    """The file to predict for, read as votes or as a table of numbers, whichever the model takes."""

    votes: ReadOptions
    id_column: str | None
    ignore: list[str]

    def refuse_vote_options(self) -> None:
        """Options that say how to read votes say nothing about a table of numbers."""
        for name, value in zip(self.votes._fields[1:], self.votes[1:], strict=True):
            if value not in (None, "auto"):
                raise typer.BadParameter(
                    f"--{name.replace('_', '-')} belongs to models of rankings, not to a DPMixture"
                )

    def refuse_table_options(self) -> None:
        """Options that choose columns of a table of numbers say nothing about votes."""
        for option, value in (("--id", self.id_column), ("--ignore", self.ignore)):
            if value:
                raise typer.BadParameter(
                    f"{option} belongs to tables of numbers, not to models of rankings; see --agent-column"
                )


class Answer(NamedTuple):
    """A table with a row for each agent or row, made while it is written."""

    title: str
    columns: list[str]
    rows: Iterable[Sequence[Any]]


def run_predict(
    fit_file: Path,
    data: NewData,
    output: Path | None,
    what: str,
    top: int | None,
    seed: int,
    force: bool,
    as_json: bool,
) -> None:
    """Say what a fitted model makes of new data."""
    from permix.models.mallows_fit import MallowsFit
    from permix.models.mixture_fit import MixtureFit
    from permix.models.persistence import load_fit

    if top is not None and what != "pairwise":
        raise typer.BadParameter("--top belongs to --what pairwise")
    if output is not None:
        check_targets([output], [fit_file, data.votes.file], force)
    fit = load_fit(fit_file)
    if isinstance(fit, MallowsFit):
        data.refuse_table_options()
        _predict_mallows(fit, data.votes, output, what, top, seed, as_json)
        return
    if what != "components":
        raise typer.BadParameter(f"--what {what} belongs to a MallowsMixture; {fit_file} is of another kind")
    if isinstance(fit, MixtureFit):
        data.refuse_vote_options()
        give(_clusters(fit, data), output, as_json)
    else:
        data.refuse_table_options()
        give(_densities(fit, data.votes), output, as_json)


def give(answer: Answer, output: Path | None, as_json: bool) -> None:
    """Write an answer to a CSV file, print it as JSON, or show its first rows."""
    if output is not None:
        n = write_csv(answer, output)
        if as_json:
            print_json({"file": str(output), "rows": n})
        else:
            print(f"{output}: {count_of(n, 'row')}")
    elif as_json:
        print_json({"rows": [dict(zip(answer.columns, row, strict=True)) for row in answer.rows]})
    else:
        rows = iter(answer.rows)
        print_table(answer.title, answer.columns, list(islice(rows, MAX_ROWS)))
        if next(rows, None) is not None:  # the rest may take long, so it is not counted
            print("... and more; -o writes all to a file, --json prints all")


def write_csv(answer: Answer, path: Path) -> int:
    """Write all rows, whole or not at all; return how many there are."""
    from permix.files import atomic_writer

    with atomic_writer(path) as handle:
        text = io.TextIOWrapper(handle, encoding="utf-8", newline="")
        n = csv_to(text, answer.columns, answer.rows)
        text.flush()
        text.detach()
    return n


def csv_to(stream: Any, columns: Sequence[Any], rows: Iterable[Sequence[Any]]) -> int:
    """Write a header and rows; return the number of rows."""
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(columns)
    n = 0
    for row in rows:
        writer.writerow(row)
        n += 1
    return n


def _clusters(fit: MixtureFit, data: NewData) -> Answer:
    """Say which cluster each row of numbers belongs to, and whether to any."""
    from permix.models.mixture_fit import naming_columns

    file = data.votes.file
    # Columns first, then what is in them: the model says which columns must be numbers.
    table, ids = read_table_of_numbers(file, "categorical", data.id_column, data.ignore)
    table = _same_columns(fit, table, file)
    if hasattr(table, "columns") and not fit.family.accepts_categories:
        refuse_text(table, file, "The model was fitted to numbers there.")
    with naming_columns(fit.feature_names):
        encoded = fit.family.encode(table)
    joint = fit.joint_under_estimate(encoded, int(table.shape[0]))
    known = np.exp(joint[:, :-1] - np.logaddexp.reduce(joint[:, :-1], axis=1)[:, None])
    novelty = np.exp(joint[:, -1] - np.logaddexp.reduce(joint, axis=1))
    rows = zip(
        ids,
        (known.argmax(axis=1) + 1).tolist(),
        np.round(known.max(axis=1), 6).tolist(),
        np.round(novelty, 6).tolist(),
        strict=True,
    )
    return Answer(
        f"{count_of(len(ids), 'row')}: cluster, and the probability that a row belongs to none",
        [data.id_column or "row", "cluster", "probability", "new"],
        rows,
    )


def _same_columns(fit: MixtureFit, table: Any, file: Path) -> Any:
    """Return the columns that were fitted, in that order."""
    names, n = fit.feature_names, fit.family.n_features
    if names is None or not hasattr(table, "columns"):
        if table.shape[1] != n:
            raise DataError(
                f"{file} has {count_of(table.shape[1], 'column')}, but the model was fitted to {n}"
            )
        return table
    here = [str(name) for name in table.columns]
    missing = [name for name in names if name not in here]
    if missing:
        raise DataError(f"{file} has no column {missing[0]!r}, to which the model was fitted")
    extra = [name for name in here if name not in names]
    if extra:
        raise DataError(
            f"the model was not fitted to column {extra[0]!r} of {file}: name it with --id if it labels the "
            f"rows, or leave it out with --ignore {extra[0]!r}"
        )
    return table[[table.columns[here.index(name)] for name in names]]


def _predict_mallows(
    fit: MallowsFit,
    file: ReadOptions,
    output: Path | None,
    what: str,
    top: int | None,
    seed: int,
    as_json: bool,
) -> None:
    from permix.models import mallows_predict

    votes = read_over_items(file, fit.components.items)
    agents = file.agents_of(votes)
    if what == "ranking":
        completed = mallows_predict.complete(fit.components, votes, random_state=seed)
        _give_rankings(completed, agents, output, as_json)
    elif what == "pairwise":
        give(_pairwise(fit, votes, agents, top, seed), output, as_json)
    else:
        give(_membership(fit, votes, agents, seed, wide=output is not None or as_json), output, as_json)


def read_over_items(file: ReadOptions, items: tuple[Any, ...]) -> Any:
    """Read votes as preferences over the items of a model.

    A table names only items that occur in it. Where those are not all, it is read once more with the names
    of all, so that "the rest is below" means all the rest.
    """
    from permix.data.files_io import TABLES
    from permix.data.text_files import plain_suffix
    from permix.models.preference_input import as_preferences

    votes = file.read()
    if plain_suffix(file.file) in TABLES and set(votes.items) < set(items):
        votes = file.read(items=items)
    return as_preferences(votes, items)


def _membership(fit: MallowsFit, votes: Any, agents: list[Any], seed: int, wide: bool) -> Answer:
    """Say which component each agent comes from."""
    from permix.models import mallows_predict

    probabilities = mallows_predict.predict_proba(fit.components, votes, random_state=seed)
    k = fit.components.n_components
    shown = k if wide or k <= MAX_COLUMNS else 0
    columns = ["agent", "component", "probability", *[f"p{j + 1}" for j in range(shown)]]
    rows: Iterable[list[Any]] = (
        [agent, int(row.argmax()) + 1, round(float(row.max()), 6), *np.round(row[:shown], 6).tolist()]
        for agent, row in zip(agents, probabilities, strict=True)
    )
    if np.any(votes.counts != 1):
        columns.insert(1, "count")
        rows = ([row[0], count, *row[1:]] for row, count in zip(rows, votes.counts.tolist(), strict=True))
    return Answer(f"{count_of(len(agents), 'row')}: most probable component", columns, rows)


def _pairwise(fit: MallowsFit, votes: Any, agents: list[Any], top: int | None, seed: int) -> Answer:
    """Say, for pairs an agent did not state, which item comes first and how probable that is."""
    return Answer(
        f"{count_of(len(agents), 'row')}: what the agents did not state",
        ["agent", "better", "worse", "probability"],
        _pairs_by_block(fit, votes, agents, top, seed),
    )


def _pairs_by_block(
    fit: MallowsFit, votes: Any, agents: list[Any], top: int | None, seed: int
) -> Iterator[list[Any]]:
    from permix.models import mallows_predict

    items = fit.components.items
    size = max(1, BLOCK // len(items) ** 2)
    for first in range(0, len(votes), size):
        block = votes[first : first + size]
        streams = np.random.SeedSequence([seed, first])  # every block has numbers of its own
        before = mallows_predict.predict_pairwise(fit.components, block, random_state=streams)
        for row in range(len(block)):
            better, worse, probability = open_pairs(block, row, before[row])
            if top is not None and top < len(better):
                kept = np.argsort(-probability, kind="stable")[:top]
                better, worse, probability = better[kept], worse[kept], probability[kept]
            for a, b, p in zip(better.tolist(), worse.tolist(), probability.tolist(), strict=True):
                yield [agents[first + row], items[a], items[b], round(p, 6)]


def open_pairs(preferences: Any, row: int, before: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pairs whose order one agent's statements leave open: the likelier first, and how likely it is."""
    mentioned, stated = preferences.closure(row)
    known = np.zeros(before.shape, dtype=np.bool_)
    known[np.ix_(mentioned, mentioned)] = stated
    if preferences.rest_below[row]:
        listed = preferences.level_items[preferences.level_indptr[row] : preferences.level_indptr[row + 1]]
        rest = np.setdiff1d(np.arange(len(before)), mentioned)
        known[np.ix_(listed, rest)] = True
    first, second = np.nonzero(np.triu(~(known | known.T), k=1))
    forward = before[first, second] >= 0.5
    better, worse = np.where(forward, first, second), np.where(forward, second, first)
    return better, worse, before[better, worse]


def _give_rankings(rankings: Any, agents: list[Any], output: Path | None, as_json: bool) -> None:
    """Write full rankings in any format, print them as JSON, or show the first."""
    if output is not None:
        _write_rankings(rankings, output, as_json)
        return
    names = [str(item) for item in rankings.items]
    orders = [[names[item] for item in row] for row in rankings.orders.tolist()]
    if as_json:
        print_json(
            {"rows": [{"agent": who, "ranking": order} for who, order in zip(agents, orders, strict=True)]}
        )
        return
    width = terminal_width() - max(len("agent"), *(len(str(agent)) for agent in agents[:MAX_ROWS])) - 2
    rows = ([agent, fitting(order, width)] for agent, order in zip(agents, orders, strict=True))
    give(
        Answer(f"{count_of(len(agents), 'row')}: completed ranking", ["agent", "ranking"], rows), None, False
    )


def _write_rankings(rankings: Any, output: Path, as_json: bool) -> None:
    from permix.data import write

    write(rankings, output)
    if as_json:
        print_json({"file": str(output), "rows": len(rankings)})
    else:
        print(f"{output}: {count_of(len(rankings), 'ranking')}")


def _densities(fit: KernelDensity, file: ReadOptions) -> Answer:
    """Log-density of each agent under a kernel estimate."""
    votes = read_over_items(file, fit.preferences.items)
    values, errors = fit.log_density(votes)
    rows = zip(file.agents_of(votes), values.tolist(), errors.tolist(), strict=True)
    return Answer(
        f"{count_of(len(votes), 'row')}: log-density, with its Monte Carlo error",
        ["agent", "log_density", "standard_error"],
        rows,
    )


def run_sample(fit_file: Path, size: int, output: Path | None, seed: int, force: bool, as_json: bool) -> None:
    """Draw new rankings or rows from a fitted model."""
    from permix.models.mallows_fit import MallowsFit
    from permix.models.mallows_results import sample_rankings
    from permix.models.mixture_fit import MixtureFit
    from permix.models.persistence import load_fit

    if output is not None:
        check_targets([output], [fit_file], force)
    fit = load_fit(fit_file)
    if isinstance(fit, MixtureFit):
        _give_rows(fit, size, output, seed, as_json)
        return
    if isinstance(fit, MallowsFit):
        rankings, _ = sample_rankings(fit.components, size, random_state=seed)
    else:
        rankings = fit.sample(size, seed)
    if output is not None:
        _write_rankings(rankings, output, as_json)
        return
    orders = ([rankings.items[item] for item in row] for row in rankings.orders.tolist())
    if as_json:
        print_json({"rankings": list(orders)})
    else:
        csv_to(sys.stdout, [f"pos{place + 1}" for place in range(rankings.n_items)], orders)


def _give_rows(fit: MixtureFit, size: int, output: Path | None, seed: int, as_json: bool) -> None:
    """Draw rows of numbers or categories and write them as CSV."""
    if output is not None and output.suffix != ".csv":
        raise DataError(f"{output}: rows of a DPMixture are written as .csv")
    drawn = fit.sample(size, seed)
    names = list(fit.feature_names or [f"column {j + 1}" for j in range(drawn.shape[1])])
    answer = Answer("", names, drawn.tolist())
    if output is not None or as_json:
        give(answer, output, as_json)
    else:
        csv_to(sys.stdout, answer.columns, answer.rows)
