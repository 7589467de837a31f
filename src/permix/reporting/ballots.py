"""What people actually said: typical ballots of each group, and how much they left open.

Fits of some models keep the ballots. For others ``permix fit`` keeps these tables in the file of the fit, and
``permix report FIT DATA`` makes them anew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from permix.data.display import statement
from permix.data.labels import Array
from permix.data.preferences import Preferences
from permix.data.rankings import Rankings
from permix.errors import DataError
from permix.reporting.content import Table
from permix.reporting.context import Context, Rows
from permix.reporting.words import count_of, in_a_list, listed, number, percent, shown

# Ballots shown of each group.
N_TYPICAL = 5
# Agents who name one item only, who are told of where they are more than so large a part of all.
ONE_ITEM, MANY = "agents who name one item only", 0.1
# How long rankings are, and what stands below them, as files and tables have it.
LENGTHS, UNLISTED = "shortest and longest ranking", "items that are not ranked are taken to be"
BELOW = "below those that are"
NO_BALLOTS = (
    "Typical ballots are not shown: this fit does not keep what people said. "
    "permix report {file} DATA, with the data that were fitted, shows them."
)


def typical(table: Any, labels: Array, sure: Array) -> list[dict[str, Any]]:
    """Return the most frequent ballots of each group; of equally frequent ones those surest to belong there.

    ``labels`` is the most probable group of every row and ``sure`` how probable it is.
    """
    same = table.equal_rows()
    counts = np.asarray(table.counts)
    found = []
    for k in range(int(labels.max()) + 1 if len(labels) else 0):
        members = np.flatnonzero(labels == k)
        if not len(members):
            continue
        said, first, which = np.unique(same[members], return_index=True, return_inverse=True)
        agents = np.bincount(which, counts[members], len(said))
        probable = np.bincount(which, counts[members] * sure[members], len(said)) / agents
        total = int(counts[members].sum())
        for at in np.lexsort((-probable, -agents))[:N_TYPICAL].tolist():
            row = int(members[first[at]])
            found.append(
                {
                    "group": k + 1,
                    "ballot": statement(table, row),
                    "agents": int(agents[at]),
                    "of_members": total,
                    "how_sure": round(float(probable[at]), 4),
                }
            )
    return found


def typical_of(context: Context, k: int) -> Table | None:
    """Return the typical ballots of a group as a table, or None where they are not known."""
    if "typical" not in context.about:
        return None
    rows = [row for row in context.about["typical"] if row["group"] == k + 1]
    if not rows:
        return None
    cells = tuple(
        (
            shown(row["ballot"]),
            row["agents"],
            percent(row["agents"] / row["of_members"]) if row.get("of_members") else "–",
            percent(row["how_sure"]) if isinstance(row.get("how_sure"), float | int) else "–",
        )
        for row in rows
    )
    title, note = f"The most frequent ballots of group {k + 1}", ""
    if len(rows) > 1 and all(row["agents"] == 1 for row in rows):
        title = f"Some ballots of group {k + 1}"
        note = "No two members say the same; these are as sure to belong to the group as any. "
    if any(row["ballot"].endswith("≻ rest") for row in rows):
        note += "Rest: all items that are not named; of the order among these, the ballot says nothing. "
    return Table(
        title,
        ("ballot", "agents", "of the group", "how sure"),
        cells,
        f"{note}≻: is preferred to. How sure: how probably whoever says this belongs to the group.",
    )


def gaps(table: Any) -> list[dict[str, str]]:
    """Return how much agents said and how much they left open, in words."""
    counts = np.asarray(table.counts)
    n_agents, n_items = int(counts.sum()), table.n_items
    said: dict[str, str] = {"agents": f"{n_agents:,}", "items": f"{n_items:,}"}
    if len(table) != n_agents:
        said["different rows of the data"] = f"{len(table):,}"
    if isinstance(table, Rankings):
        lengths = np.asarray(table.lengths)
        full = int(counts[lengths >= n_items - 1].sum())
        said["agents who rank all items"] = f"{full:,} ({percent(full / n_agents)})"
        said["items ranked, on average"] = number(float(np.average(lengths, weights=counts)))
        if full < n_agents:
            said[LENGTHS] = f"{int(lengths.min())} and {int(lengths.max())} items"
            meaning = {"below": BELOW, "unknown": "not asked about"}
            said[UNLISTED] = meaning.get(table.unlisted, "either")
        lonely = (lengths == 1) & table.unlisted_below
        named = np.zeros(n_items)
        for place in range(table.orders.shape[1]):
            there = table.orders[:, place] >= 0
            named += np.bincount(table.orders[there, place], counts[there], n_items)
    else:
        assert isinstance(table, Preferences)
        rated, pairs = np.diff(table.level_indptr), np.diff(table.pair_indptr)
        if rated.sum():
            full = int(counts[rated >= n_items - 1].sum())
            said["agents who rank or rate all items"] = f"{full:,} ({percent(full / n_agents)})"
            said["items ranked or rated, on average"] = number(float(np.average(rated, weights=counts)))
        if pairs.sum():
            said["comparisons by an agent, on average"] = number(float(np.average(pairs, weights=counts)))
        silent = int(counts[(rated == 0) & (pairs == 0)].sum())
        if silent:
            said["agents who said nothing"] = f"{silent:,}"
        contradicting = int(counts[~table.consistent].sum())
        if contradicting:
            said["agents who contradict themselves"] = f"{contradicting:,}"
        lonely = (rated == 1) & (pairs == 0) & table.rest_below
        named = np.zeros(n_items)
        row = np.repeat(np.arange(len(table)), rated)
        named += np.bincount(table.level_items, counts[row], n_items)
        if len(table.pairs):
            row = np.repeat(np.arange(len(table)), pairs)
            both = np.unique(np.stack([np.repeat(row, 2), table.pairs.ravel()]), axis=1)
            named += np.bincount(both[1], counts[both[0]], n_items)
    n_lonely = int(counts[lonely].sum())
    if n_items > 2 and n_lonely > MANY * n_agents:
        said[ONE_ITEM] = f"{n_lonely:,} ({percent(n_lonely / n_agents)})"
    least = int(np.argmin(named))
    said["item that fewest mention"] = f"{table.items[least]}: {count_of(int(named[least]), 'agent')}"
    return [{"what": what, "value": value} for what, value in said.items()]


def evidence(table: Any, labels: Array, sure: Array, counts: Array) -> dict[str, list[dict[str, Any]]]:
    """Return typical ballots and gaps; rows of the table must be those of the fit."""
    if len(table) != len(counts) or not np.array_equal(np.asarray(table.counts), counts):
        raise DataError(
            f"the data have {count_of(len(table), 'row')} of {int(np.sum(table.counts)):,} agents, and the "
            f"fit {count_of(len(counts), 'row')} of {int(counts.sum()):,}: give the data that were fitted, "
            "read in the same way"
        )
    return {"typical": typical(table, labels, sure), "data": gaps(table)}


def longest_of(about: Mapping[str, Rows]) -> int | None:
    """Return how many items the longest ballot ranks, where that leaves places that nobody speaks of."""
    facts = {row["what"]: str(row["value"]) for row in about.get("data", ())}
    if facts.get(UNLISTED) != BELOW or LENGTHS not in facts:
        return None
    longest, n_items = int(facts[LENGTHS].split()[2]), int(facts["items"].replace(",", ""))
    return longest if longest < n_items - 1 else None


def with_ballots(context: Context, *known: Any) -> Context:
    """Return a context that has the :func:`evidence` of the data."""
    return replace(context, about={**context.about, **evidence(*known)})


def data_sentences(about: Mapping[str, Rows], items: Sequence[Any] | None) -> tuple[str, ...]:
    """Say of which ballots groups tell more than they say, and which items are write-ins."""
    from permix.data.io.marks import is_several_write_ins

    said = []
    longest = longest_of(about)
    if longest is not None:
        n = next(int(row["value"].replace(",", "")) for row in about["data"] if row["what"] == "items")
        to = "and" if n == longest + 2 else "to"
        places = f"places {longest + 1} {to} {n}"
        said.append(
            f"No ballot ranks more than {longest} of {n:,} items: {places} of a center follow from the "
            "model, and from which items few name; nobody said them."
        )
    for row in about.get("data", ()):
        if row["what"] == ONE_ITEM:
            number_of, _, share = shown(row["value"]).partition(" ")
            said.append(
                f"{number_of} agents {share} name one item only: their ballots say which item comes first, "
                "and nothing of the order of the others, which the model takes from agents who say more."
            )
    written = [
        in_a_list(shown(item, 40))
        for item in items or ()
        if isinstance(item, str) and is_several_write_ins(item)
    ]
    if written:
        one = "stands" if len(written) == 1 else "stand"
        said.append(
            f"{listed(written)} {one} for people who were written in, and not for one candidate; a fit with "
            "--write-ins drop leaves them out."
        )
    return tuple(said)
