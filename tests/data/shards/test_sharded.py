"""Data in shards: what is read is what one file would have, however agents are divided."""

from __future__ import annotations

import warnings
from itertools import permutations
from types import SimpleNamespace

import numpy as np
import pytest

import permix
from permix.data.shards.sharded import Sharded, _unlisted, read_sharded
from permix.datasets import make_mallows_mixture
from permix.errors import DataError, PermixWarning, ShardError
from permix.runtime.executors import Here

KEY = np.array([1, 2], dtype=np.uint64)


@pytest.fixture(scope="module")
def votes():
    drawn = make_mallows_mixture(500, 6, 2, dispersion=0.4, random_state=3).data
    lists = [order[: 1 + at % 6].tolist() for at, order in enumerate(drawn.orders)]
    return permix.Rankings.from_orders(lists, items=drawn.items, counts=1 + np.arange(500) % 3)


@pytest.mark.parametrize("executor", [Here(1), Here(3), Here(1, most_held=2)], ids=["one", "threads", "few"])
def test_the_same_however_agents_are_divided(votes, executor):
    whole = permix.Preferences.from_rankings(votes)
    parts = [Sharded.of(votes, n, executor) for n in (1, 2, 7)]
    for data in parts:
        assert (data.n_agents, data.n_rows, data.items) == (votes.n_agents, 500, votes.items)
        assert np.array_equal(data.pairwise_counts(), votes.pairwise_counts())
        assert data.distinct(10**6) == whole.collapse()
        assert data.distinct(3) is None
        assert data.sample(60, KEY) == parts[0].sample(60, KEY)
    assert parts[0].sample(60, KEY).n_agents == 60
    assert parts[0].sample(60, KEY + np.uint64(1)) != parts[0].sample(60, KEY)
    assert parts[2].sample(10**6, KEY) == whole.collapse()


def test_a_sample_is_one_of_agents(votes):
    """Every agent is as likely to be in it: shares of a row that stands for many are those of its count."""
    data = Sharded.of(votes, 3, Here(1))
    table = data.distinct(10**6)
    row = int(np.argmax(table.counts))
    share, key = table.counts[row] / table.n_agents, table[[row]]._row_keys()[0]
    drawn = 0
    for seed in range(200):
        sample = data.sample(100, np.array([seed, 5], dtype=np.uint64))
        same = [each == key for each in sample._row_keys()]
        drawn += int(sample.counts[same].sum())
    error = np.sqrt(share * (1 - share) / 20_000)
    assert abs(drawn / 20_000 - share) < 4 * error


@pytest.mark.parametrize("form", ["csv", "parquet", "soi"])
def test_a_folder_of_files(votes, tmp_path, form):
    for at, first in enumerate(range(0, 500, 200)):
        permix.write(votes[first : first + 200], tmp_path / f"part-{at}.{form}")
    (tmp_path / "_SUCCESS").write_text("")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PermixWarning)
        data = read_sharded(tmp_path)
        assert data.n_shards == 3
        assert data.n_agents == votes.n_agents
        names = tuple(map(str, votes.items)) if isinstance(data.items[0], str) else votes.items
        assert data.items == names
        assert np.array_equal(data.pairwise_counts(), votes.pairwise_counts())
        again = read_sharded(str(tmp_path / "part-*"))
        assert again.distinct(10**6) == data.distinct(10**6)


def test_items_that_a_shard_does_not_know(tmp_path):
    (tmp_path / "a.csv").write_text("rank1,rank2\nAnn,Bo\nBo,Ann\n")
    (tmp_path / "b.csv").write_text("rank1,rank2\nCy,Bo\nBo,\n")
    data = read_sharded(tmp_path)
    assert data.items == ("Ann", "Bo", "Cy")
    both = permix.Rankings.from_orders([["Ann", "Bo"], ["Bo", "Ann"], ["Cy", "Bo"], ["Bo"]], items=data.items)
    assert np.array_equal(data.pairwise_counts(), both.pairwise_counts())
    with pytest.raises(ShardError, match=r"b\.csv: not among the items given: 'Cy'"):
        read_sharded(tmp_path, items=["Ann", "Bo"])


def test_what_is_wrong_with_a_shard_is_told_with_its_name(tmp_path):
    (tmp_path / "a.soc").write_text("not a PrefLib file\n")
    with pytest.raises(ShardError, match=r"a\.soc, line 1: "):
        read_sharded(tmp_path)
    with pytest.raises(DataError, match="no files"):
        read_sharded(tmp_path / "*.xyz")
    (tmp_path / "a.soc").unlink()
    (tmp_path / "a.csv").write_text("rank1,rank2\nAnn,Bo\nBo,Ann\n")
    data = read_sharded(tmp_path)
    (tmp_path / "a.csv").unlink()
    with pytest.raises(ShardError, match=r"a\.csv: "):
        data.pairwise_counts()


def test_what_only_all_shards_together_can_tell(tmp_path):
    (tmp_path / "a.csv").write_text("rank1,rank2\nAnn,Bo\nBo,Ann\n")
    (tmp_path / "b.csv").write_text("rank1,rank2\nANN,Bo\nBo,ANN\n")
    with pytest.warns(PermixWarning, match="look alike, and are 2 items of different shards"):
        read_sharded(tmp_path)
    refused = (("below_support", "merge"), ("names", "merge"), ("group_columns", ["precinct"]))
    for name, value in refused:
        with pytest.raises(DataError, match=f"{name} cannot be given for data in shards"):
            read_sharded(tmp_path, **{name: value})
    (tmp_path / "a.csv").write_text("10,11\n11,10\n")
    (tmp_path / "b.csv").write_text("a,10\n10,a\n")
    with pytest.raises(ShardError, match="'10': numbers in some shards and text in others"):
        read_sharded(tmp_path, layout="orders", header=False)
    with pytest.raises(DataError, match="not Rankings; Sharded"):
        read_sharded(permix.Rankings.from_orders([[0, 1]]))


def test_a_file_is_one_shard_by_whatever_name(tmp_path):
    (tmp_path / "a.csv").write_text("rank1,rank2\nAnn,Bo\nBo,Ann\n")
    around = tmp_path / "x" / ".." / "a.csv"
    (tmp_path / "x").mkdir()
    with pytest.raises(DataError, match=r"a\.csv is given twice, the second time as .*x.*a\.csv; each file"):
        read_sharded([tmp_path / "a.csv", around])
    with pytest.raises(DataError, match=r"a\.csv is given twice; each file"):
        read_sharded([tmp_path / "a.csv"] * 2)
    (tmp_path / "link.csv").symlink_to(tmp_path / "a.csv")
    with pytest.raises(DataError, match=r"a\.csv is given twice, the second time as .*link\.csv"):
        read_sharded(tmp_path)


def test_links_in_a_folder_are_not_left_out_in_silence(tmp_path):
    folder, other = tmp_path / "votes", tmp_path / "other"
    folder.mkdir()
    other.mkdir()
    for name in (folder / "a.csv", other / "b.csv"):
        name.write_text("rank1,rank2\nAnn,Bo\nBo,Ann\n")
    (folder / "c.csv").symlink_to(tmp_path / "unmounted" / "c.csv")
    with pytest.raises(DataError, match=r"c\.csv: there is no file"):
        read_sharded(folder)
    (folder / "c.csv").unlink()
    (folder / "more").symlink_to(other)
    with pytest.raises(DataError, match="more is a link to a folder, which is not entered"):
        read_sharded(folder)
    assert read_sharded([folder / "a.csv", other]).n_agents == 4


def test_items_given_are_different(tmp_path):
    (tmp_path / "a.csv").write_text("rank1,rank2\nAnn,Bo\nBo,Ann\n")
    with pytest.raises(DataError, match=r"item 'Ann' is listed twice in items"):
        read_sharded(tmp_path, items=["Ann", "Bo", "Ann"])


class Hashed(str):
    """A word with the hash that it may have in another process."""

    def __new__(cls, word, number):
        made = super().__new__(cls, word)
        made.number = number
        return made

    def __hash__(self):
        return self.number


def test_what_rows_mean_is_the_same_in_every_process():
    for numbers in permutations((1, 2)):
        kinds = [Hashed(word, number) for word, number in zip(("unknown", "below"), numbers, strict=True)]
        facts = [SimpleNamespace(unlisted=kind, items=("Ann", "Bo")) for kind in kinds]
        assert _unlisted(facts, ["a.csv", "b.csv"], ("Ann", "Bo")) == "below"


def test_what_is_not_listed_is_as_was_said(tmp_path):
    """Where all rows list all items of their own shard, nothing but the option says what they leave out."""
    (tmp_path / "a.csv").write_text("a,b,c\nb,a,c\n")
    (tmp_path / "b.csv").write_text("a,b,c,d\nb,a,c,d\n")
    options = {"layout": "orders", "header": False}
    below, unknown = (read_sharded(tmp_path, unlisted=what, **options) for what in ("below", "unknown"))
    assert below.pairwise_counts()[:, 3].tolist() == [4, 4, 4, 0]
    assert unknown.pairwise_counts()[:, 3].tolist() == [2, 2, 2, 0]


def test_a_shard_that_changed_is_refused(tmp_path):
    (tmp_path / "a.csv").write_text("rank1,rank2\nAnn,Bo\nBo,Ann\n")
    data = read_sharded(tmp_path)
    (tmp_path / "a.csv").write_text("rank1,rank2\nAnn,Bo\nBo,Ann\nBo,Ann\n")
    with pytest.raises(ShardError, match="has 3 agents, but had 2; it was changed meanwhile"):
        data.pairwise_counts()


def test_judgements_of_readers_are_repeated_once_and_cleaning_is_counted(tmp_path):
    for name in "abc":
        (tmp_path / f"{name}.csv").write_text("rank1,rank2\nAnn,Bo\nBo,overvote\n")
    data = read_sharded(tmp_path)
    overvotes = [n for step, n in data.cleaned.items() if step.startswith("overvotes")]
    assert overvotes == [3]
    for name in "abc":
        (tmp_path / f"{name}.csv").write_text("voter,item,rating\n1,Tea,2\n1,TEA,3\n2,Tea,3\n2,TEA,1\n")
    with pytest.warns(PermixWarning) as caught:
        read_sharded(tmp_path, layout="ratings")
    said = [str(each.message) for each in caught]
    assert len(said) == len(set(said))
    assert any("a.csv and 2 more" in each and "look alike" in each for each in said)


def test_items_with_little_support_in_all_shards_are_left_out(votes, tmp_path):
    """As :func:`permix.clean` leaves them out of one table, though no shard alone could tell."""
    for at in range(4):
        permix.write(votes[at::4], tmp_path / f"part-{at}.soi")
    plain = permix.read_sharded(tmp_path)
    table = plain.distinct(10**6)
    support = np.zeros(6)
    for row, count in enumerate(table.counts):
        support[table.level_items[table.level_indptr[row] : table.level_indptr[row + 1]]] += count
    least = int(np.sort(support)[1]) + 1  # of six items two are left out
    data = permix.read_sharded(tmp_path, min_support=least, min_answers=2)
    rankings = table.to_rankings()
    cleaned = permix.clean(rankings, min_support=least, min_answers=2)
    assert len(data.items) == 4
    assert (data.items, data.n_agents) == (cleaned.items, cleaned.n_agents)
    assert np.array_equal(data.pairwise_counts(), cleaned.pairwise_counts())
    assert sum(data.cleaned.values()) == 2 + plain.n_agents - data.n_agents
    # The broken twin: each shard by itself loses all items.
    with pytest.raises(DataError, match="no candidate is left"):
        permix.clean(permix.read(tmp_path / "part-0.soi"), min_support=least)


def test_addresses_and_agents_in_two_shards(tmp_path):
    fsspec = pytest.importorskip("fsspec")
    (tmp_path / "a.csv").write_text("voter,item,rating\nann,Tea,2\nann,Milk,3\nbo,Tea,1\nbo,Milk,3\n")
    (tmp_path / "b.csv").write_text("voter,item,rating\ncy,Tea,2\ncy,Milk,3\nbo,Tea,1\nbo,Cola,3\n")
    memory = fsspec.filesystem("memory")
    memory.put(str(tmp_path), "/votes", recursive=True)
    try:
        with pytest.warns(PermixWarning, match=r"'bo' is in .*a\.csv and in .*b\.csv.* 1 of 3 agents"):
            data = read_sharded("memory://votes", layout="ratings")
        assert (data.n_agents, data.items) == (4, ("Cola", "Milk", "Tea"))
        memory.pipe("/votes/a.csv", b"voter,item,rating\nann,Tea,2\nann,Tea,5\n")
        with pytest.raises(ShardError, match=r"memory:///votes/a\.csv.*ann.*Tea.*line 3"):
            read_sharded("memory://votes", layout="ratings")
    finally:
        memory.rm("/votes", recursive=True)


def test_addresses_within_others(tmp_path):
    pytest.importorskip("fsspec")
    from zipfile import ZipFile

    with ZipFile(tmp_path / "votes.zip", "w") as archive:
        for name in "ab":
            archive.writestr(f"part-{name}.csv", "rank1,rank2\nAnn,Bo\nBo,Ann\n")
        archive.writestr("_SUCCESS", "")
    beyond = f"::file://{tmp_path}/votes.zip"
    for address in ("zip://", "zip://*.csv"):
        assert read_sharded(address + beyond).n_agents == 4
    assert read_sharded("zip://part-b.csv" + beyond).n_agents == 2
    with pytest.raises(ShardError, match=r"zip://part-c\.csv.*: there is no file"):
        read_sharded("zip://part-c.csv" + beyond)
    with pytest.raises(DataError, match=r"abc://votes: Protocol not known: abc"):
        read_sharded("abc://votes")


def test_names_in_two_shards_are_found_among_very_many(monkeypatch):
    """Names below the largest hash that every shard gave are compared, which are a sample of all."""
    from permix.data.shards import names

    monkeypatch.setattr(names, "MOST_COMPARED", 50)
    shards = [[f"{part} {at}" for at in range(1000)] for part in range(3)]
    assert names.said_of_several([names.some_of(each) for each in shards], "abc", "agent") == ""
    shards[2][:500] = shards[0][:500]
    said = names.said_of_several([names.some_of(each) for each in shards], "abc", "agent")
    assert "is in a and in c" in said
    assert names.some_of(None) == names.NO_NAMES


@pytest.mark.parametrize(
    ("first", "second", "found"),
    [
        (range(10), range(1, 11), False),  # each counts its rows
        (range(1, 11), range(10, 20), True),  # a file that was cut in two within an agent
        (range(1, 11), range(11, 20), False),
        (["1", "2"], ["2", "3"], True),
    ],
)
def test_numbers_that_count_rows_are_no_names(first, second, found):
    from permix.data.shards import names

    both = [names.some_of(np.array(each)) for each in (first, second)]
    assert bool(names.said_of_several(both, "ab", "agent")) == found


def test_shards_without_rows_are_left_out(tmp_path):
    (tmp_path / "a.csv").write_text("rank1,rank2\nAnn,Bo\nBo,Ann\n")
    (tmp_path / "b.csv").write_text("rank1,rank2\n")
    (tmp_path / "c.csv").write_text("rank1,rank2\nAnn,\n")  # nobody is left of it
    with pytest.warns(
        PermixWarning, match=r"2 of 3 shards have no rows, and are left out: .*b\.csv', .*c\.csv'"
    ):
        data = read_sharded(tmp_path, min_answers=2)
    assert (data.n_shards, data.n_agents) == (1, 2)
    assert data.digest == read_sharded(tmp_path / "a.csv", min_answers=2).digest
    (tmp_path / "a.csv").unlink()
    with pytest.raises(
        ShardError, match=r"no shard has rows; of .*b\.csv it was said: a header, but no rows"
    ):
        read_sharded(tmp_path, min_answers=2)
    (tmp_path / "b.csv").write_text("")  # cut off, perhaps
    with pytest.raises(ShardError, match=r"b\.csv: the file is empty"):
        read_sharded(tmp_path)


def test_what_other_libraries_say_is_told_with_the_shard(tmp_path):
    def broken():
        raise KeyError("no such column")

    with pytest.raises(ShardError, match=r"^partition 1: KeyError: 'no such column'$"):
        Sharded([("partition 0", lambda: permix.Rankings.from_orders([[0, 1]])), ("partition 1", broken)])
    (tmp_path / "a.csv").write_text("rank1,rank2\nAnn,Bo\nBo,Ann\n")
    with pytest.raises(DataError, match=r"a\.csv is given twice"):
        read_sharded([tmp_path / "a.csv", tmp_path / "a.csv"])


def test_warnings_for_programmers_are_not_repeated():
    def warns():
        warnings.warn("inplace is deprecated", DeprecationWarning, stacklevel=1)
        warnings.warn("row 3 is odd", PermixWarning, stacklevel=1)
        return permix.Rankings.from_orders([[0, 1]])

    with pytest.warns(PermixWarning) as caught:
        Sharded([("one", warns)])
    assert [str(each.message) for each in caught] == ["one: row 3 is odd"]


def test_partitions_of_dask(votes):
    frames = pytest.importorskip("dask.dataframe")
    import dask.bag
    import pandas as pd

    lists = [[int(item) for item in order if item >= 0] for order in votes.expand().orders]
    bag = dask.bag.from_sequence(lists, npartitions=4)
    assert np.array_equal(read_sharded(bag).pairwise_counts(), votes.pairwise_counts())
    frame = pd.DataFrame({"rank1": ["Ann", "Bo", "Cy", "Cy"], "rank2": ["Bo", "Cy", "Ann", "Bo"]})
    data = read_sharded(frames.from_pandas(frame, npartitions=2))
    assert (data.n_shards, data.n_agents, data.items) == (2, 4, ("Ann", "Bo", "Cy"))
    few = dask.bag.from_sequence([["a", "b"], ["b", "a"], ["c", "a"], ["a", "c"]], npartitions=4)
    with pytest.warns(PermixWarning, match="1 of 4 shards has no rows, and is left out: 'partition 2'"):
        some = read_sharded(few.filter(lambda order: order[0] != "c"))
    assert (some.n_shards, some.n_agents) == (3, 3)
    with pytest.raises(
        ShardError, match="partition 0: row 1: a bag holds lists of items, best first, not str"
    ):
        read_sharded(dask.bag.from_sequence(["Ann", "Bo"], npartitions=2))
    short = read_sharded(dask.bag.from_sequence(lists, npartitions=5), min_answers=3)
    assert short.n_agents == sum(len(order) >= 3 for order in lists)
