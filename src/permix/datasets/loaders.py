"""Public data sets, ready to use. Their licenses are in the docstrings and in every result."""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from permix.data.preferences import Preferences
from permix.data.rankings import Rankings
from permix.datasets import registry
from permix.datasets.fetch import find, obtain
from permix.datasets.registry import Source
from permix.errors import DataError, FileFormatError
from permix.files import read_unpacked

if TYPE_CHECKING:
    import pandas as pd

APA_PREFLIB_YEARS = {1998 + place: f"00028-{place + 1:08d}" for place in range(12)}


@dataclass(frozen=True, repr=False)
class Dataset:
    """A public data set.

    Attributes
    ----------
    name : str
    data : Rankings, Preferences, scipy.sparse.csr_matrix or array
    row_names, column_names : tuple of str or int
        Names of a matrix's rows and columns; empty for rankings, which carry their own.
    details : mapping
        Further columns about the rows, by name.
    description, license, citation, source : str
        What it is; what is allowed; what to cite; who publishes it.
    """

    name: str
    data: Any
    description: str
    license: str
    citation: str
    source: str
    row_names: tuple[Any, ...] = ()
    column_names: tuple[Any, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        named = isinstance(self.data, Rankings | Preferences)
        data = repr(self.data).splitlines()[0] if named else f"{type(self.data).__name__} {self.data.shape}"
        return (
            f"Dataset {self.name}: {self.description}\n  data: {data}\n  license: {self.license}\n"
            f"  cite: {self.citation}\n  source: {self.source}"
        )


def _dataset(source: Source, data: Any, description: str, **more: Any) -> Dataset:
    return Dataset(source.key, data, description, source.license, source.citation, source.homepage, **more)


def load_sushi(
    kind: Literal["a", "b", "scores"] = "a",
    *,
    unlisted: Literal["unknown", "below"] = "unknown",
    download: bool = True,
) -> Dataset:
    """Load the sushi preferences of Kamishima (2003).

    License: any research purpose, citing the authors; "You must not redistribute without our permission".

    Parameters
    ----------
    kind : {"a", "b", "scores"}
        Full rankings of the 10 items of set A; rankings of 10 out of the 100 items of set B; scores 0-4 of
        the same items of set B. The two sets number their items differently; results carry the names. The
        README says that score 4 is the best, but 99 % of the people ranked the items with their low scores
        first; scores are turned round here, so that they agree with the rankings.
    unlisted : {"unknown", "below"}
        For ``"b"``: people ranked the ten items they were shown, so the rest is unknown; ``"below"`` takes
        the lists as top tens, as some papers do.
    download : bool
        Whether files may be fetched from the publisher.

    Returns
    -------
    Dataset
        ``details`` has the people's ``gender``, ``age`` group, ``region_childhood``,
        ``east_west_childhood`` (0 East, 1 West), ``region_now`` and ``east_west_now``.
    """
    files = {"a": "sushi3a.5000.10.order", "b": "sushi3b.5000.10.order", "scores": "sushi3b.5000.10.score"}
    if kind not in files:
        raise DataError(f"kind is 'a', 'b' or 'scores', not {kind!r}")
    paths = obtain(registry.SUSHI, "README-en.txt", "sushi3.udata", files[kind], download=download)
    names = _sushi_names(paths[0], "A" if kind == "a" else "B")
    users = np.loadtxt(io.BytesIO(read_unpacked(paths[1])), dtype=np.int64)
    known = ("gender", "age", "region_childhood", "east_west_childhood", "region_now", "east_west_now")
    details = dict(zip(known, users[:, [1, 2, 5, 6, 8, 9]].T, strict=True))
    raw = io.BytesIO(read_unpacked(paths[2]))
    data: Any
    if kind == "scores":
        scores = np.loadtxt(raw, dtype=np.int64)
        # The file's 0 is the best: see the docstring.
        data = Preferences.from_ratings(np.where(scores < 0, np.nan, 4 - scores), items=names)
        text = "scores 0-4 of ten sushi each out of 100 (set B)"
    else:
        orders = np.loadtxt(raw, dtype=np.int32, skiprows=1)[:, 2:]
        data = Rankings.from_orders(orders, items=names, unlisted="below" if kind == "a" else unlisted)
        text = "rankings of ten sushi each out of 100 (set B)"
        if kind == "a":
            text = "full rankings of ten sushi (set A)"
    return _dataset(registry.SUSHI, data, f"5000 people's {text}", details=details)


def _sushi_names(readme: Path, item_set: str) -> list[str]:
    """Item names from the list in the README; a name that occurs twice gets its number."""
    text = read_unpacked(readme).decode("utf-8", errors="replace")
    start = text.find(f"ID for the item set {item_set}")
    end = text.find("ID for the item set B", start + 1) if item_set == "A" else text.find("###", start)
    found = re.findall(r"(?m)(?:^|\s)(\d+):(\S+(?: roll)?)", text[start:end]) if start >= 0 else []
    names = [name for _, name in found]
    if [int(number) for number, _ in found] != list(range(10 if item_set == "A" else 100)):
        raise FileFormatError(f"{readme}: the list of items of set {item_set} is not there", readme)
    return [name if names.count(name) == 1 else f"{name} ({number})" for number, name in enumerate(names)]


def load_apa(year: int = 1980, *, ballots: Literal["all", "full"] = "all", download: bool = True) -> Dataset:
    """Load ballots of a presidential election of the American Psychological Association.

    License: 1980 is published with the R package PLMIX under "GPL (>= 2)"; 1998-2009 are PrefLib series
    00028, GPL-3.0 with required citations.

    Parameters
    ----------
    year : int
        1980, or 1998 to 2009.
    ballots : {"all", "full"}
        All ballots, as top lists, or those that rank all five candidates.
    download : bool
        Whether files may be fetched from the publisher (1998-2003; the others must be in place).
    """
    if ballots not in ("all", "full"):
        raise DataError(f"ballots is 'all' or 'full', not {ballots!r}")
    if year in APA_PREFLIB_YEARS:
        found = load_preflib(APA_PREFLIB_YEARS[year], ".soi", download=download)
        data, source = found.data, registry.PREFLIB
        citation = (
            f"{source.citation} S. Popov, A. Popova and M. Regenwetter (2015). Consensus formation in "
            "organizations: Hunting for the social choice conundrum in American Psychological Association "
            "elections. Decision."
        )
    elif year == 1980:
        from permix.data.io.tables import read_table

        (path,) = obtain(registry.APA_1980, "apa1980_top_orderings.csv", download=download)
        numbered = read_table(path, layout="orders", items=range(1, 6), count_column="count")
        data = numbered._replaced(items=tuple(f"Candidate {number}" for number in range(1, 6)))
        source, citation = registry.APA_1980, registry.APA_1980.citation
    else:
        raise DataError(f"there are ballots of 1980 and of 1998 to 2009, not of {year}")
    if ballots == "full":
        data = data[data.lengths == data.n_items]
    which = "full " if ballots == "full" else ""
    text = f"{data.n_agents:,} {which}ballots over 5 candidates, APA election of {year}"
    return Dataset("apa", data, text, source.license, citation, source.homepage)


def load_movielens(size: Literal["100k", "1m"] = "100k", *, download: bool = True) -> Dataset:
    """Load MovieLens ratings as a sparse matrix, users by movies.

    License: research use with acknowledgement; "The user may not redistribute the data without separate
    permission", no commercial use without permission.

    Parameters
    ----------
    size : {"100k", "1m"}
        For ``"1m"`` a file ``ratings_no_timestamp.dat`` (999,714 ratings of 3449 movies, without those of
        257 rarely rated movies) is used where the publisher's ``ratings.dat`` is not at hand; the
        description says which.
    download : bool
        Whether files may be fetched from the publisher.

    Returns
    -------
    Dataset
        ``permix.Preferences.from_ratings(result.data, items=result.column_names)`` makes preferences of it.
    """
    from scipy.sparse import csr_matrix

    if size not in ("100k", "1m"):
        raise DataError(f"size is '100k' or '1m', not {size!r}")
    source, names, separator = registry.MOVIELENS_100K, ["u.data", "u.item"], "|"
    if size == "1m":
        source, names, separator = registry.MOVIELENS_1M, ["ratings.dat", "movies.dat"], "::"
        if find(source, names[0]) is None and find(source, "ratings_no_timestamp.dat") is not None:
            names[0] = "ratings_no_timestamp.dat"
    ratings, movies = obtain(source, *names, download=download)
    table = io.BytesIO(read_unpacked(ratings).replace(b"::", b"\t"))
    rows = np.loadtxt(table, dtype=np.int64, usecols=(0, 1, 2))
    titles = {}
    for line in read_unpacked(movies).decode("latin-1").splitlines():
        number, title = line.split(separator)[:2]
        titles[int(number)] = title
    users, user = np.unique(rows[:, 0], return_inverse=True)
    ids, movie = np.unique(rows[:, 1], return_inverse=True)
    matrix = csr_matrix((rows[:, 2], (user, movie)), shape=(users.size, ids.size))
    for number in ids.tolist():
        if number not in titles:
            raise FileFormatError(f"{movies}: no title for movie {number}", movies)
    # Titles of several movies get the movie's number.
    titled = [titles[number] for number in ids.tolist()]
    seen = Counter(titled)
    named = (t if seen[t] == 1 else f"{t} [{n}]" for t, n in zip(titled, ids.tolist(), strict=True))
    text = f"{matrix.nnz:,} ratings 1-5 by {users.size} users of {ids.size} movies ({ratings.name})"
    names_of = {"row_names": tuple(users.tolist()), "column_names": tuple(named)}
    return _dataset(source, matrix, text, **names_of, details={"movie_id": ids})


def load_jester(*, download: bool = True) -> Dataset:
    """Load the Jester joke ratings, data set 1, part 1, as a matrix with NaN where a joke was not rated.

    License: "freely available for research use" when Goldberg et al. (2001) is cited.

    The publisher offers an Excel sheet without a checksum, so nothing is downloaded: where the file is not
    in place, the error says what to do.
    """
    (path,) = obtain(registry.JESTER, "jester-data-1.csv", download=download)
    table = np.loadtxt(io.BytesIO(read_unpacked(path)), delimiter=",")
    if table.ndim != 2 or table.shape[1] != 101:
        raise FileFormatError(f"{path}: expected 101 columns, found {table.shape[-1]}", path)
    ratings = np.where(table[:, 1:] == 99, np.nan, table[:, 1:])
    rated = np.sum(~np.isnan(ratings), axis=1)
    for row in np.flatnonzero(rated != table[:, 0])[:1].tolist():
        found = f"{table[row, 0]:g} ratings announced, {rated[row]} found"
        raise FileFormatError(f"{path}, line {row + 1}: {found}", path, row + 1)
    text = f"{int(rated.sum()):,} ratings from -10 to 10 by {len(ratings):,} users of 100 jokes"
    jokes = tuple(f"joke {number}" for number in range(1, 101))
    people = tuple(range(1, len(ratings) + 1))
    return _dataset(registry.JESTER, ratings, text, row_names=people, column_names=jokes)


def load_ap(*, download: bool = True) -> Dataset:
    """Load word counts of Associated Press articles as a sparse matrix, documents by terms.

    License: none is stated for the corpus, a subset of the TREC AP collection; for research only.
    """
    from scipy.sparse import csr_matrix

    counts, vocabulary = obtain(registry.AP, "ap.dat", "vocab.txt", download=download)
    terms = read_unpacked(vocabulary).decode("utf-8").split()
    indptr, term, count = [0], [], []
    for number, line in enumerate(read_unpacked(counts).decode("ascii").splitlines(), start=1):
        size, *entries = line.split()
        pairs = [entry.partition(":") for entry in entries]
        if int(size) != len(pairs):
            found = f"{size} terms announced, {len(pairs)} found"
            raise FileFormatError(f"{counts}, line {number}: {found}", counts, number)
        term += [int(left) for left, _, _ in pairs]
        count += [int(right) for _, _, right in pairs]
        indptr.append(len(term))
    matrix = csr_matrix((np.array(count, dtype=np.int64), term, indptr), shape=(len(indptr) - 1, len(terms)))
    text = f"{matrix.shape[0]} documents, {len(terms):,} terms, {int(matrix.sum()):,} tokens"
    return _dataset(
        registry.AP, matrix, text, row_names=tuple(range(matrix.shape[0])), column_names=tuple(terms)
    )


def load_preflib(
    number: str, ending: str, *, unlisted: Literal["below", "unknown"] = "below", download: bool = True
) -> Dataset:
    """Load a PrefLib file by number, for example ``load_preflib("00001-00000002", ".soi")``.

    License: the PrefLib-Data repository is under GPL-3.0; the citations on the data set's page are required.

    Parameters
    ----------
    number : str
        Series and file number.
    ending : str
        ``".soc"``, ``".soi"``, ``".toc"``, ``".toi"`` or ``".cat"``.
    unlisted : {"below", "unknown"}
        As in :func:`permix.read_preflib`.
    download : bool
        Whether the file may be fetched; files whose checksum is not known must be in place.
    """
    from permix.data.io.preflib import read_preflib
    from permix.data.io.text_files import PREFLIB

    kind = ending.removeprefix(".")
    if not re.fullmatch(r"\d{5}-\d{8}", number) or kind not in PREFLIB:
        raise DataError(
            f"a PrefLib file is '12345-12345678' and one of {', '.join(PREFLIB)}, not {number!r}, {ending!r}"
        )
    (path,) = obtain(registry.PREFLIB, f"{number}.{kind}", download=download)
    data = read_preflib(path, unlisted=unlisted)
    title = data.metadata.get("TITLE") or number
    text = f"{title} ({number}.{kind}): {data.n_agents:,} voters, {data.n_items} alternatives"
    return _dataset(registry.PREFLIB, data, text)


def describe() -> pd.DataFrame:
    """Return a table of the public data sets: size, license, publisher, and where the files come from here.

    Examples
    --------
    >>> from permix.datasets import describe
    >>> "sushi" in describe().index
    True
    """
    import pandas as pd

    rows = {}
    for name, source in registry.SOURCES.items():
        here = any(find(source, file) is not None for file in source.members)
        files = "on this machine" if here else "download" if source.url else "by hand"
        rows[name] = (source.title, source.size, source.license, source.homepage, files)
    columns = ["title", "size", "license", "source", "files"]
    return pd.DataFrame.from_dict(rows, orient="index", columns=columns).rename_axis("name")
