"""Files like those that people bring, drawn from groups that are known.

They have what such files have: precincts, skipped ranks, overvotes, people who answered little, gaps. So the
same commands serve them and the real ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from permix.errors import DataError, Wording
from permix.files import atomic_writer, check_target


class Example(NamedTuple):
    """An example: the question it asks, the model that answers it, and what it was drawn from."""

    question: str
    command: str  # that answers it, with the name of the file where there is FILE
    truth: str
    make: Callable[[np.random.Generator], Mapping[str, Any]]  # frames by names of files, the main one first


CANDIDATES = {
    "Ana Duarte": "Green",
    "Ben Okafor": "Green",
    "Carla Weiss": "Labor",
    "Dev Patel": "Labor",
    "Elin Berg": "Center",
    "Farid Haddad": "Center",
    "Grace Lin": "National",
    "Hugo Marsh": "National",
}
DISHES = ("tuna", "salmon", "shrimp", "eel", "squid", "egg", "cucumber roll", "sea urchin")
STATEMENTS = (
    "Buses should be free at weekends.",
    "The center of town should be closed to cars.",
    "Parking is too expensive.",
    "New roads bring new traffic.",
    "The town needs more cycle lanes.",
    "Speed limits are too low.",
    "Children should be able to walk to school safely.",
    "Shops lose customers when parking goes.",
    "The town should build more flats.",
    "Rents are too high.",
    "New houses should look like the old ones.",
    "Empty offices should become flats.",
    "Fields around the town must stay fields.",
    "Landlords need fewer rules.",
    "The library should be open on Sundays.",
    "The town spends too much on culture.",
    "More trees would make the streets better.",
    "The swimming pool must be repaired.",
)


def _mallows(rng: np.random.Generator, sizes: np.ndarray, centers: Any, dispersion: Any) -> Any:
    from permix.datasets.generators_rankings import make_mallows_mixture

    made = make_mallows_mixture(
        int(sizes.sum()),
        len(centers[0]),
        len(centers),
        centers=centers,
        dispersion=dispersion,
        weights=sizes / sizes.sum(),
        random_state=int(rng.integers(2**31)),
    )
    return np.asarray(made.data), np.asarray(made.labels)


def _election(rng: np.random.Generator) -> Mapping[str, Any]:
    import pandas as pd

    names = np.array(list(CANDIDATES))
    centers = [[0, 1, 2, 3, 4, 5, 6, 7], [6, 7, 4, 5, 3, 2, 1, 0], [2, 3, 4, 0, 5, 1, 7, 6]]
    orders, group = _mallows(rng, np.array([920, 680, 400]), centers, [0.45, 0.5, 0.55])
    ranks = 5
    columns = names[orders[:, :ranks]].astype(object)
    length = rng.choice(np.arange(1, ranks + 1), size=len(orders), p=[0.12, 0.14, 0.22, 0.14, 0.38])
    columns[np.arange(ranks) >= length[:, None]] = "skipped"
    overvoted = rng.random(len(orders)) < 0.015
    columns[overvoted, np.minimum(length - 1, 2)[overvoted]] = "overvote"
    # Where people live goes with how they vote, a little.
    precincts = np.array(["Harbor", "Old Town", "Hill", "Station", "West Fields"])
    shares = np.array([[0.4, 0.3, 0.1, 0.1, 0.1], [0.1, 0.1, 0.3, 0.1, 0.4], [0.2, 0.2, 0.2, 0.3, 0.1]])
    precinct = [precincts[rng.choice(5, p=shares[one])] for one in group]
    ballots = pd.DataFrame(columns, columns=[f"rank{rank}" for rank in range(1, ranks + 1)])
    ballots.insert(0, "precinct", precinct)
    parties = pd.DataFrame({"item": names, "party": list(CANDIDATES.values())})
    return {"election.csv": ballots, "candidates.csv": parties}


def _food(rng: np.random.Generator) -> Mapping[str, Any]:
    import pandas as pd

    centers = [[0, 1, 2, 3, 7, 4, 5, 6], [5, 6, 2, 1, 0, 3, 4, 7]]
    orders, group = _mallows(rng, np.array([420, 180]), centers, [0.55, 0.5])
    ranks = np.argsort(orders, axis=1) + 1
    answers = pd.DataFrame(ranks, columns=list(DISHES))
    region = np.where(rng.random(len(orders)) < np.where(group == 0, 0.65, 0.35), "East", "West")
    answers.insert(0, "region", region)
    answers.insert(1, "age", rng.integers(18, 80, len(orders)) - 8 * group)
    answers.insert(0, "person", [f"p{row + 1:03d}" for row in range(len(orders))])
    return {"food.csv": answers}


def _films(rng: np.random.Generator) -> Mapping[str, Any]:
    import pandas as pd

    kinds = ["Space", "Love", "Murder", "Family"]
    titles = [f"{kind} Story {number}" for kind in kinds for number in range(1, 13)]
    kind = np.repeat(np.arange(4), 12)
    taste = np.array([[4.5, 2.0, 4.0, 2.5], [2.0, 4.5, 3.0, 4.0], [3.0, 2.5, 4.6, 1.6]])
    person = rng.choice(3, size=240, p=[0.4, 0.35, 0.25])
    stars = np.clip(np.rint(taste[person][:, kind] + rng.normal(0, 0.8, (240, 48))), 1, 5).astype(int)
    # Some people rate three films, some thirty; some films are seen by many.
    keen, known = rng.beta(1.2, 2.5, 240), rng.beta(3.0, 2.0, 48)
    seen = rng.random((240, 48)) < np.clip(1.6 * keen[:, None] * known, 0.05, 0.95)
    users, films = np.nonzero(seen)
    frame = {"user": users + 1, "film": [titles[film] for film in films], "stars": stars[users, films]}
    return {"films.csv": pd.DataFrame(frame)}


def _conversation(rng: np.random.Generator) -> Mapping[str, Any]:
    import pandas as pd

    n_people, n_statements = 180, len(STATEMENTS)
    camp = rng.choice(3, size=n_people, p=[0.45, 0.35, 0.2])
    agree = np.array(
        [
            [0.9, 0.85, 0.1, 0.9, 0.92, 0.1, 0.95, 0.15, 0.8, 0.9, 0.3, 0.9, 0.7, 0.1, 0.85, 0.1, 0.95, 0.9],
            [0.3, 0.1, 0.9, 0.15, 0.2, 0.85, 0.9, 0.9, 0.3, 0.4, 0.85, 0.6, 0.8, 0.7, 0.3, 0.85, 0.8, 0.9],
            [0.6, 0.2, 0.7, 0.3, 0.5, 0.4, 0.95, 0.7, 0.95, 0.95, 0.15, 0.95, 0.1, 0.1, 0.6, 0.5, 0.7, 0.8],
        ]
    )
    seen = rng.random((n_people, n_statements)) < rng.beta(2.5, 1.5, n_people)[:, None]
    people, statements = np.nonzero(seen)
    order = rng.permutation(len(people))
    people, statements = people[order], statements[order]
    votes = np.where(rng.random(len(people)) < agree[camp[people], statements], 1, -1)
    votes[rng.random(len(people)) < 0.08] = 0  # passed
    start = 1_700_000_000
    return {
        "votes.csv": pd.DataFrame(
            {
                "timestamp": start + np.sort(rng.integers(0, 10**6, len(people))),
                "comment-id": statements,
                "voter-id": people,
                "vote": votes,
            }
        ),
        "comments.csv": pd.DataFrame(
            {
                "timestamp": start + np.arange(n_statements),
                "comment-id": np.arange(n_statements),
                "author-id": rng.integers(0, n_people, n_statements),
                "agrees": [int(np.sum((statements == one) & (votes == 1))) for one in range(n_statements)],
                "disagrees": [
                    int(np.sum((statements == one) & (votes == -1))) for one in range(n_statements)
                ],
                "moderated": 1,
                "comment-body": list(STATEMENTS),
            }
        ),
    }


def _measurements(rng: np.random.Generator) -> Mapping[str, Any]:
    import pandas as pd

    kind = rng.choice(3, size=240, p=[0.45, 0.35, 0.2])
    # Wing and weight in mm and g, beak in mm; the habitat goes with the kind of bird.
    means = np.array([[188.0, 3650.0, 38.5], [215.0, 5100.0, 47.0], [196.0, 3750.0, 49.0]])
    spreads = np.array([[6.0, 320.0, 1.9], [6.0, 380.0, 2.2], [6.5, 330.0, 2.4]])
    common = rng.normal(size=(240, 1))
    values = means[kind] + spreads[kind] * (0.6 * common + 0.8 * rng.normal(size=(240, 3)))
    shares = np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.2, 0.2, 0.6]])
    habitat = [("cliff", "beach", "ice")[rng.choice(3, p=shares[one])] for one in kind]
    frame = pd.DataFrame(
        {
            "wing_mm": values[:, 0].round(),
            "weight_g": (values[:, 1] / 25).round() * 25,
            "beak_mm": values[:, 2].round(1),
            "habitat": habitat,
        }
    )
    for column in frame.columns:
        frame[column] = frame[column].astype(object)
        frame.loc[rng.random(240) < 0.03, column] = None
    return {"birds.csv": frame}


EXAMPLES: Mapping[str, Example] = {
    "election": Example(
        "Which groups of voters stand behind the result, and where do they live?",
        "permix fit mallows FILE --select 1-6 --group-column precinct -o election.permix --report page.html",
        "three groups of 46, 34 and 20 percent, more common in some precincts than in others",
        _election,
    ),
    "food": Example(
        "Do people in the East like other dishes than people in the West?",
        "permix fit mallows FILE --layout ranks --ignore person --group-column region --group-column age "
        "--select 1-5 -o food.permix",
        "two groups of 70 and 30 percent; the first is more common in the East",
        _food,
    ),
    "films": Example(
        "Who likes which films, and what should they see next?",
        "permix fit cocluster FILE --layout long -o films.permix",
        "three groups of people, four of films; some people rated three films, some thirty",
        _films,
    ),
    "conversation": Example(
        "Which opinion groups are there in a town's online conversation, and what do they agree on?",
        "permix fit cocluster FILE -o conversation.permix",
        "three groups of people of 45, 35 and 20 percent",
        _conversation,
    ),
    "birds": Example(
        "How many kinds of birds were measured?",
        "permix fit dp-mixture FILE -o birds.permix",
        "three kinds of 45, 35 and 20 percent; three in a hundred cells are missing",
        _measurements,
    ),
}


def example(name: str) -> Example:
    """Return an example by its name."""
    if name not in EXAMPLES:
        raise DataError(f"there is no example {name!r}; there are {', '.join(EXAMPLES)}")
    return EXAMPLES[name]


def write_example(
    name: str, folder: str | Path = ".", *, random_state: int = 0, force: bool = False
) -> list[Path]:
    """Write the files of an example to a folder and return their paths, the main one first.

    Parameters
    ----------
    name : {"election", "food", "films", "conversation", "birds"}
        Which example: ranked ballots with precincts, rankings from a survey, film ratings, the votes of a
        conversation in the form of Polis, or a table of measurements with gaps.
    folder : path
        Where to; it is made where there is none.
    random_state : int
        Seed; the same seed writes the same files.
    force : bool
        Whether to replace files that exist.

    Examples
    --------
    >>> import tempfile, permix
    >>> folder = tempfile.mkdtemp()
    >>> [path.name for path in permix.datasets.write_example("election", folder)]
    ['election.csv', 'candidates.csv']
    """
    frames = example(name).make(np.random.default_rng(random_state))
    paths = [Path(folder) / file for file in frames]
    Path(folder).mkdir(parents=True, exist_ok=True)
    for path in paths:
        check_target(path)
        if path.exists() and not force:
            raise DataError(
                f"{path} exists; name another folder or ", Wording("pass force=True", "use --force")
            )
    for path, frame in zip(paths, frames.values(), strict=True):
        with atomic_writer(path) as handle:
            handle.write(frame.to_csv(index=False, lineterminator="\n").encode("utf-8"))
    return paths
