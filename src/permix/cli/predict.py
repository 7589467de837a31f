"""What ``predict`` and ``sample`` do, for every kind of fitted model."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import typer

from permix.cli.answers import DELIMITERS, Answer, csv_to, give, give_rankings, write_rankings
from permix.cli.fit import read_table_of_numbers, refuse_text
from permix.cli.inspect import ReadOptions, check_targets
from permix.cli.output import count_of, data_stream, print_json
from permix.errors import DataError

if TYPE_CHECKING:
    from permix.distributions.components import MallowsComponents
    from permix.models.kernel_density import KernelDensity
    from permix.models.mallows_fit import MallowsFit
    from permix.models.mixture_fit import MixtureFit

# Probabilities of this many components stand side by side where no file was asked for.
MAX_COLUMNS = 8
# Pairwise probabilities are computed for as many agents at a time as make this many numbers.
BLOCK = 500_000
# Draws behind probabilities of pairs and of components, where nothing else is asked for.
N_SAMPLES = 200
N_PARTICLES = 256


class NewData(NamedTuple):
    """The file to predict for, read as votes, table or matrix, whichever the model takes."""

    votes: ReadOptions
    id_column: str | None
    ignore: list[str]
    missing: list[str]
    header: bool | None = None
    there: bool = True  # a co-clustering fills in its own matrix where no file is given

    def refuse_vote_options(self) -> None:
        """Options that say how to read votes say nothing about a table of numbers."""
        for name, value in zip(self.votes._fields[1:], self.votes[1:], strict=True):
            if name not in ("header", "ignore") and value not in (None, "auto"):
                raise typer.BadParameter(
                    f"--{name.replace('_', '-')} belongs to models of rankings, not to a DPMixture"
                )

    def refuse_table_options(self) -> None:
        """Options that say what a table of numbers holds say nothing about votes."""
        if self.id_column:
            raise typer.BadParameter(
                "--id belongs to tables of numbers, not to models of rankings; see --agent-column"
            )


class Question(NamedTuple):
    """What is asked of the model; None means not given."""

    what: str | None
    top: int | None
    samples: int | None
    given_seed: int | None
    length: int | None = None

    @property
    def seed(self) -> int:
        """The seed, also where none was given."""
        return self.given_seed or 0

    @property
    def draws(self) -> dict[str, Any]:
        """Number of draws as an argument of the library, where it was given."""
        return {} if self.samples is None else {"n_samples": self.samples}


def run_predict(
    fit_file: Path,
    data: NewData,
    question: Question,
    output: Path | None,
    force: bool,
    as_json: bool,
) -> None:
    """Say what a fitted model makes of new data."""
    from permix.models.angle_fit import AngleFit
    from permix.models.cocluster_fit import BlockFit
    from permix.models.dp_mallows_fit import DPMallowsFit
    from permix.models.mallows_fit import MallowsFit
    from permix.models.mean_shift import MeanShiftFit
    from permix.models.mixture_fit import MixtureFit
    from permix.models.persistence import load_fit

    what = question.what or "components"
    if question.top is not None and what != "pairwise":
        raise typer.BadParameter("--top belongs to --what pairwise")
    if question.length is not None and what != "ranking":
        raise typer.BadParameter("--length belongs to --what ranking")
    data.votes.refuse_keep()
    _refuse_data_first(fit_file)
    if output is not None:
        if what != "ranking" and output.suffix not in DELIMITERS:
            raise typer.BadParameter(
                f"--output {output}: this answer is a table; end its name in .csv or .tsv"
            )
        check_targets([output], [fit_file, *([data.votes.file] if data.there else [])], force)
    fit = load_fit(fit_file)
    if isinstance(fit, BlockFit):
        from permix.cli.cocluster_predict import predict_blocks

        predict_blocks(fit, data, question, output, as_json)
        return
    if not data.there:
        raise typer.BadParameter(f"give a file of new data as well; {fit_file} holds no cells to fill in")
    if what in ("cells", "score") or data.votes.layout in ("wide", "long"):
        option = f"--what {what}" if what in ("cells", "score") else f"--layout {data.votes.layout}"
        raise typer.BadParameter(f"{option} belongs to a co-clustering; {fit_file} is of another kind")
    if data.missing:
        raise typer.BadParameter(f"--missing belongs to a co-clustering; {fit_file} is of another kind")
    question = question._replace(what=what)
    if isinstance(fit, DPMallowsFit):
        from permix.cli.list_predict import predict_lists

        data.refuse_table_options()
        predict_lists(fit, data.votes, question, output, as_json)
        return
    if question.length is not None:
        raise typer.BadParameter(f"--length belongs to a DPMallowsMixture; {fit_file} is of another kind")
    if isinstance(fit, MallowsFit):
        data.refuse_table_options()
        _predict_mallows(fit, data.votes, question, output, as_json)
        return
    if isinstance(fit, AngleFit):
        from permix.cli.angle_predict import predict_angle

        data.refuse_table_options()
        predict_angle(fit, data.votes, question, output, as_json)
        return
    if what != "components":
        raise typer.BadParameter(
            f"--what {what} belongs to mixtures of models of rankings; {fit_file} is of another kind"
        )
    for option, number in (("--samples", question.samples), ("--seed", question.given_seed)):
        if number is not None:
            raise typer.BadParameter(
                f"{option} belongs to mixtures of models of rankings; {fit_file} is of another kind"
            )
    if isinstance(fit, MixtureFit):
        data.refuse_vote_options()
        give(_clusters(fit, data), output, as_json)
        return
    data.refuse_table_options()
    if isinstance(fit, MeanShiftFit):
        from permix.cli.list_predict import nearest_centers

        give(nearest_centers(fit, data.votes), output, as_json)
    else:
        give(_densities(fit, data.votes), output, as_json)


def _refuse_data_first(file: Path) -> None:
    """Notice a file of votes where the model should be."""
    from permix.data.files_io import TABLES
    from permix.data.preflib_writer import SUFFIXES
    from permix.data.text_files import plain_suffix

    if plain_suffix(file) in (*SUFFIXES, *TABLES) and file.is_file() and not zipfile.is_zipfile(file):
        raise DataError(
            f"{file} is no fitted model; the model comes first: permix predict MODEL.permix {file.name}"
        )


def _clusters(fit: MixtureFit, data: NewData) -> Answer:
    """Say which cluster each row of numbers belongs to, and whether to any."""
    from permix.models.mixture_fit import naming_columns

    file = data.votes.file
    # Columns first, then what is in them: the model says which columns must be numbers.
    table, ids = read_table_of_numbers(file, "categorical", data.id_column, data.ignore, data.header)
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
    fit: MallowsFit, file: ReadOptions, question: Question, output: Path | None, as_json: bool
) -> None:
    from permix.models import mallows_predict

    votes = read_over_items(file, fit.components.items)
    agents = file.agents_of(votes)
    if question.what == "ranking":
        completed = mallows_predict.complete(
            fit.components, votes, random_state=question.seed, **question.draws
        )
        give_rankings(completed, agents, output, as_json)
    elif question.what == "pairwise":
        give(_pairwise(fit, votes, agents, question), output, as_json)
    else:
        wide = output is not None or as_json
        give(_membership(fit, votes, agents, question, wide), output, as_json)


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


def _membership(fit: MallowsFit, votes: Any, agents: list[Any], question: Question, wide: bool) -> Answer:
    """Say which component each agent comes from."""
    from permix.models import mallows_predict

    probabilities = mallows_predict.predict_proba(
        fit.components, votes, random_state=question.seed, **question.draws
    )
    k = fit.components.n_components
    shown = k if wide or k <= MAX_COLUMNS else 0
    columns = ["agent", "component", "probability", *[f"p{j + 1}" for j in range(shown)]]
    rows: Iterable[list[Any]] = (
        [agent, int(row.argmax()) + 1, round(float(row.max()), 6), *np.round(row[:shown], 6).tolist()]
        for agent, row in zip(agents, probabilities, strict=True)
    )
    answer = Answer(f"{count_of(len(agents), 'row')}: most probable component", columns, rows)
    return answer.with_counts(votes.counts)


def _pairwise(fit: MallowsFit, votes: Any, agents: list[Any], question: Question) -> Answer:
    """Say, for pairs an agent did not state, which item comes first and how probable that is."""
    n_samples = question.samples or N_SAMPLES

    def ask(block: Any, first: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        rng = np.random.default_rng([question.seed, first])  # every block has numbers of its own
        return pairs_of(fit.components, block, n_samples, rng)

    return pairs_answer(votes, agents, question.top, n_samples, ask)


def pairs_answer(votes: Any, agents: list[Any], top: int | None, n_samples: int, ask: Any) -> Answer:
    """Answer about pairs; ``ask(block, first)`` gives what :func:`pairs_of` does for a block of agents."""
    return Answer(
        f"{count_of(len(agents), 'row')}: what the agents did not state",
        ["agent", "better", "worse", "probability", "standard_error"],
        _pairs_by_block(votes, agents, top, n_samples, ask),
        if_empty="nothing is open: what the agents stated settles the order of every pair",
    )


def _pairs_by_block(
    votes: Any, agents: list[Any], top: int | None, n_samples: int, ask: Any
) -> Iterator[list[Any]]:
    """Rows of the answer, the pairs of one agent after those of another."""
    items = votes.items
    size = max(1, BLOCK // len(items) ** 2)
    for first in range(0, len(votes), size):
        block = votes[first : first + size]
        before, errors, drawn = ask(block, first)
        for row in range(len(block)):
            better, worse, probability = open_pairs(block, row, before[row])
            if top is not None and top < len(better):
                kept = surest(better, worse, probability, before[row])[:top]
                better, worse, probability = better[kept], worse[kept], probability[kept]
            error = errors[row, better, worse]
            if drawn[row]:
                probability, error = not_certain(probability, error, n_samples)
            for a, b, p, e in zip(
                better.tolist(), worse.tolist(), probability.tolist(), error.tolist(), strict=True
            ):
                yield [agents[first + row], items[a], items[b], round(p, 6), round(e, 6)]


def pairs_of(
    components: MallowsComponents, votes: Any, n_samples: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """P(a before b) of all pairs of all agents, standard errors, and which agents' come from draws.

    An error of 0 does not say that a value is exact: draws that all agree give one as well.
    """
    from permix.models.mallows_posterior import DRAWS, MixturePosterior, Questions

    n, n_items = len(votes), components.n_items
    posterior = MixturePosterior.of(components, votes, max(N_PARTICLES, n_samples), rng)
    questions = Questions.all_pairs(n, n_items)
    means, spreads = posterior.before(questions, n_samples, rng)
    before, errors = np.zeros((2, n, n_items, n_items))
    a, b = questions.first, questions.second
    before[:, a, b] = means.reshape(n, -1)
    before[:, b, a] = 1.0 - before[:, a, b]
    errors[:, a, b] = errors[:, b, a] = spreads.reshape(n, -1)
    return before, errors, posterior.ways == DRAWS


def surest(better: np.ndarray, worse: np.ndarray, probability: np.ndarray, before: np.ndarray) -> np.ndarray:
    """Order pairs, the surest first: by probability, and where draws agree by how far apart the items are."""
    wins = before.sum(axis=1)
    return np.lexsort([wins[worse] - wins[better], -probability])


def not_certain(probability: np.ndarray, error: np.ndarray, n_draws: int) -> tuple[np.ndarray, np.ndarray]:
    """Take back certainty that n draws cannot give: all of them agree with n + 1 of n + 2 (Laplace).

    Examples
    --------
    >>> not_certain(np.array([0.75, 1.0]), np.array([0.1, 0.0]), 98)
    (array([0.75, 0.99]), array([0.1 , 0.01]))
    """
    most = (n_draws + 1.0) / (n_draws + 2.0)
    return np.minimum(probability, most), np.maximum(error, np.where(probability > most, 1.0 - most, 0.0))


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


def run_sample(
    fit_file: Path, size: int, length: int | None, output: Path | None, seed: int, force: bool, as_json: bool
) -> None:
    """Draw new rankings or rows from a fitted model."""
    from permix.models import angle_results
    from permix.models.angle_fit import AngleFit
    from permix.models.cocluster_fit import BlockFit
    from permix.models.dp_mallows_fit import DPMallowsFit
    from permix.models.mallows_fit import MallowsFit
    from permix.models.mallows_results import sample_rankings
    from permix.models.mean_shift import MeanShiftFit
    from permix.models.mixture_fit import MixtureFit
    from permix.models.persistence import load_fit

    if output is not None:
        check_targets([output], [fit_file], force)
    fit = load_fit(fit_file)
    if length is not None and not isinstance(fit, DPMallowsFit):
        raise typer.BadParameter(f"--length belongs to a DPMallowsMixture; {fit_file} is of another kind")
    if isinstance(fit, MixtureFit):
        _give_rows(fit, size, output, seed, as_json)
        return
    if isinstance(fit, BlockFit):
        raise DataError(
            f"{fit_file} describes the cells of one matrix; permix predict {fit_file} says what the missing "
            "ones hold"
        )
    if isinstance(fit, MeanShiftFit):
        raise DataError(
            f"{fit_file} is a clustering by blurring mean-shift, which is no model to draw from; "
            "permix fit dp-mallows fits one"
        )
    if isinstance(fit, DPMallowsFit):
        from permix.models.dp_mallows_predict import ListPredictive

        rankings, _ = ListPredictive.of(fit).sample(size, length, seed)
    elif isinstance(fit, AngleFit):
        rankings, _ = angle_results.sample_rankings(fit.components, size, random_state=seed)
    elif isinstance(fit, MallowsFit):
        rankings, _ = sample_rankings(fit.components, size, random_state=seed)
    else:
        rankings = fit.sample(size, seed)
    if output is not None:
        write_rankings(rankings, output, as_json)
        return
    orders = rankings.orders.tolist()
    if as_json:
        print_json({"rankings": [[rankings.items[item] for item in row if item >= 0] for row in orders]})
    else:
        names = [*rankings.items, ""]  # a place that a list leaves empty has number -1
        places = [f"pos{place + 1}" for place in range(rankings.orders.shape[1])]
        csv_to(data_stream(), places, ([names[item] for item in row] for row in orders))


def _give_rows(fit: MixtureFit, size: int, output: Path | None, seed: int, as_json: bool) -> None:
    """Draw rows of numbers or categories and write them as CSV."""
    if output is not None and output.suffix not in DELIMITERS:
        raise DataError(f"{output}: rows of a DPMixture are written as .csv or .tsv")
    drawn = fit.sample(size, seed)
    names = list(fit.feature_names or [f"column {j + 1}" for j in range(drawn.shape[1])])
    answer = Answer("", names, drawn.tolist())
    if output is not None or as_json:
        give(answer, output, as_json)
    else:
        csv_to(data_stream(), answer.columns, answer.rows)
