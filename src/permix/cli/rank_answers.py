"""Answers that models of rankings share: whose group an agent is in, and the pairs an agent left open."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from permix.cli.answers import Answer
from permix.cli.output import count_of
from permix.cli.votes import ReadOptions
from permix.errors import DataError

if TYPE_CHECKING:
    from permix.cli.predict import NewData, Question
    from permix.estimators.agent_answers import RankSummary

# Probabilities of this many groups stand side by side where no file was asked for.
MAX_COLUMNS = 8
# Pairwise probabilities are computed for as many agents at a time as make this many numbers.
BLOCK = 500_000
# Draws behind probabilities of pairs and of groups, where nothing else is asked for.
N_SAMPLES = 200
N_PARTICLES = 256

Ask = Callable[[Any, int], tuple[np.ndarray, np.ndarray, np.ndarray]]


def membership(
    agents: list[Any], probabilities: np.ndarray, counts: np.ndarray, *, wide: bool = False
) -> Answer:
    """Say which group each agent is in, and how sure that is; all probabilities where there is room."""
    shown = probabilities.shape[1] if wide else 0
    columns = ["agent", "group", "how_sure", *[f"p{j + 1}" for j in range(shown)]]
    rows: Iterable[list[Any]] = (
        [agent, int(row.argmax()) + 1, round(float(row.max()), 6), *np.round(row[:shown], 6).tolist()]
        for agent, row in zip(agents, probabilities, strict=True)
    )
    answer = Answer(f"{count_of(len(agents), 'row')}: most probable group", columns, rows)
    return answer.with_counts(counts)


def score_facts(mean: float, votes: Any, errors: bool = False) -> dict[str, float]:
    """Return a mean log probability beside that of answers that are all alike.

    Where comparisons may be wrong (``errors``), each is a coin toss then, whatever the others say.
    """
    from permix.estimators.baselines import uniform_log_probabilities
    from permix.estimators.preference_input import without_pairs

    alike = uniform_log_probabilities(without_pairs(votes) if errors else votes)
    if errors:
        alike = alike - np.log(2.0) * np.diff(votes.pair_indptr)
    uniform = float(np.average(alike, weights=votes.counts))
    return {
        "mean_log_probability": mean,
        "uniform_log_probability": uniform,
        "times_as_probable_as_uniform": float(np.exp(min(mean - uniform, 700.0))),
    }


def score_of(fit: Any, items: tuple[Any, ...], data: NewData, question: Question) -> Answer:
    """Answer ``predict --what score``: how probable what each agent said is."""
    from permix.estimators.comparable import comparable_of
    from permix.estimators.registry import model_of

    about = model_of(fit)
    compared = comparable_of(about)
    assert compared is not None
    improper = compared.improper(fit)
    if improper is not None:
        raise DataError(f"this {about.name} {improper}")
    votes = read_over_items(data.votes, items)
    values, errors = compared.score(fit, votes, question.seed)
    agents = data.votes.agents_of(votes)
    columns = ["agent", "log_probability", "standard_error"]
    rows = zip(agents, values.tolist(), errors.tolist(), strict=True)
    title = f"{count_of(len(agents), 'row')}: log probability of what the row says, and its Monte Carlo error"
    facts = score_facts(float(np.average(values, weights=votes.counts)), votes, data.contradictions)
    return Answer(title, columns, rows, facts=facts).with_counts(votes.counts)


def recommended(
    items: tuple[Any, ...], data: NewData, question: Question, ranks: Callable[[Any, Any], RankSummary]
) -> Answer:
    """Answer ``predict --what recommend``: the items that each agent does not mention, by expected rank.

    ``ranks(votes, generator)`` says where items stand in the full rankings of agents.
    """
    from permix.estimators.recommend import N_ITEMS, note_on_ties, ranked_items

    votes = read_over_items(data.votes, items)
    rng = np.random.default_rng(question.seed)
    agents, n = data.votes.agents_of(votes), question.top or N_ITEMS
    found = list(ranked_items(votes, lambda block: ranks(block, rng), agents, n))
    return Answer(
        f"{count_of(len(agents), 'row')}: items not mentioned, by expected rank (1 = best; 90 % of ranks lie "
        "from low to high), and how many have that rank",
        ["agent", "place", "item", "expected_rank", "low", "high", "tied"],
        [[*one[:3], round(one.expected, 4), int(one.low), int(one.high), one.tied] for one in found],
        if_empty="nothing is left to recommend: the agents mention all items",
        verdict=note_on_ties(found),
    )


def read_over_items(file: ReadOptions, items: tuple[Any, ...]) -> Any:
    """Read votes as preferences over the items of a model.

    A table names only items that occur in it. Where those are not all, "the rest is below" means all the
    rest of the model's items.
    """
    from permix.data.io.text_files import TABLES, plain_suffix
    from permix.data.more_items import over_more_items
    from permix.estimators.preference_input import as_preferences, as_statements

    votes = file.read()
    if plain_suffix(file.file) in TABLES and set(votes.items) < set(items):
        votes = over_more_items(votes, items)
    return (as_statements if file.contradictions else as_preferences)(votes, items)


def pairs_answer(votes: Any, agents: list[Any], top: int | None, n_samples: int, ask: Ask) -> Answer:
    """Answer about pairs; ``ask(block, first)`` gives the answers for a block of agents.

    These are P(a before b) of all pairs of all agents, standard errors, and which agents' come from draws: an
    error of 0 does not say that a value is exact, since draws that all agree give one as well.
    """
    items = votes.items
    size = max(1, BLOCK // len(items) ** 2)

    def rows() -> Iterator[list[Any]]:
        for first in range(0, len(votes), size):
            block = votes[first : first + size]
            before, errors, drawn = ask(block, first)
            for row in range(len(block)):
                better, worse, probability = open_pairs(block, row, before[row])
                if top is not None and top < len(better):
                    # By probability, and where draws agree by how far apart the items are.
                    wins = before[row].sum(axis=1)
                    kept = np.lexsort([wins[worse] - wins[better], -probability])[:top]
                    better, worse, probability = better[kept], worse[kept], probability[kept]
                error = errors[row, better, worse]
                if drawn[row]:
                    probability, error = not_certain(probability, error, n_samples)
                columns = (array.tolist() for array in (better, worse, probability, error))
                for a, b, p, e in zip(*columns, strict=True):
                    yield [agents[first + row], items[a], items[b], round(p, 6), round(e, 6)]

    return Answer(
        f"{count_of(len(agents), 'row')}: what the agents did not state",
        ["agent", "better", "worse", "probability", "standard_error"],
        rows(),
        if_empty="nothing is open: what the agents stated settles the order of every pair",
    )


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
