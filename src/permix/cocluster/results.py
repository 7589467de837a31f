"""The groups of rows and of columns that a fit found, and how sure they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from permix.cocluster.fit import BlockFit, Side
from permix.data.attributes import item_labels
from permix.data.labels import Array
from permix.partitions import MixtureOfFiniteMixtures, how_sure
from permix.posterior.estimated import Recurrence, recurrence_of
from permix.posterior.placed import shares_of_groups

if TYPE_CHECKING:
    import pandas as pd

SIDES: tuple[Side, ...] = ("row", "column")


def all_rows(fit: BlockFit) -> int:
    """Return how many rows were fitted: of rows in shards, those of a fit are a sample."""
    return getattr(fit, "sampled_from", None) or fit.shape[0]


def sample_note(fit: BlockFit) -> str:
    """Say that the rows of a fit are a sample of those fitted, where they are."""
    n_rows, here = all_rows(fit), fit.shape[0]
    return (
        f"groups of rows are shown for a random sample of {here:,} of {n_rows:,} rows"
        if here < n_rows
        else ""
    )


class Groups(NamedTuple):
    """The groups of one side of the matrix."""

    labels: Array  # group of each row, or of each column
    names: list[str]  # numbers, counted from 1, where there are none
    placed: Array  # whether each is in its group in most draws, and not just most likely there
    how_sure: Array  # probability of each to be with a fellow member of its group who is placed
    sizes: list[int]  # of each group
    n_placed: list[int]  # of each group
    members: list[list[str]]  # names, of each group; those who are placed first
    group_how_sure: list[float]  # mean of the members of each group who are placed
    recurrence: Recurrence  # in how many chains each group, of those who are placed, was found


def groups_of(fit: BlockFit, what: Side) -> Groups:
    """Return the groups of rows, or of columns, of the point estimate; looked for once."""
    kept: dict[Side, Groups] = fit.__dict__.setdefault("_groups", {})
    if what not in kept:
        kept[what] = _groups(fit, what)
    return kept[what]


def _groups(fit: BlockFit, what: Side) -> Groups:
    labels = fit.labels(what)
    names = None if fit.cells is None else fit.cells.row_names if what == "row" else fit.cells.column_names
    listed = [str(line + 1) for line in range(len(labels))] if names is None else list(names)
    if what == "column" and fit.known.items:
        listed = item_labels(listed, fit.known.items)
    draws = fit.cluster_draws(what)
    placed = fit.placed(what)
    groups = range(int(labels.max()) + 1)
    every = [[np.flatnonzero((labels == k) & which).tolist() for k in groups] for which in (placed, ~placed)]
    members = [[listed[line] for line in [*sure, *unsure]] for sure, unsure in zip(*every, strict=True)]
    sizes, n_placed = list(map(len, members)), list(map(len, every[0]))
    compared = fit.compared(what)
    sure = np.empty(len(labels))
    if compared.all():
        sure[:] = how_sure(draws, labels)
    else:
        flat = draws.reshape(-1, draws.shape[-1])
        shares = shares_of_groups(flat.astype(np.int64), np.where(compared, labels, -1))
        sure[:] = shares[np.arange(len(labels)), labels]
    means = [float(sure[compared & (labels == k)].mean()) for k in groups]
    recurrence = recurrence_of(draws[..., compared], labels[compared])
    return Groups(labels, listed, placed, sure, sizes, n_placed, members, means, recurrence)


def number_probabilities(fit: BlockFit, what: Side) -> Array:
    """Return the posterior probabilities of the number of groups of rows, or of columns; entry k is of k.

    Under a mixture of finite mixtures groups without a row yet count, too. Given the groups that have rows
    their number depends on nothing else, so that its distribution is averaged over draws.
    """
    seen, draws = np.unique(fit.draws.arrays[f"n_{what}_groups"], return_counts=True)
    prior = None if fit.settings.prior == "mondrian" else fit.settings.line_priors()[SIDES.index(what)]
    n = fit.shape[SIDES.index(what)]
    found = np.zeros(0)
    for number, count in zip(seen.tolist(), draws.tolist(), strict=True):
        if isinstance(prior, MixtureOfFiniteMixtures):
            shares = prior.n_components_probabilities(number, n)
        else:
            shares = np.bincount([number]).astype(np.float64)
        longer = max(len(found), len(shares))
        found = np.pad(found, (0, longer - len(found))) + np.pad(count * shares, (0, longer - len(shares)))
    return found / draws.sum()


def group_table(fit: BlockFit) -> pd.DataFrame:
    """Return one row a group: of rows or of columns, its number, size, share, how sure it is, and members.

    ``placed`` are members that are with the others in most draws; the rest could be elsewhere, mostly because
    they have few cells, and this is where they are most likely.
    """
    import pandas as pd

    tables = []
    for what in SIDES:
        found = groups_of(fit, what)
        sizes = np.array(found.sizes)
        columns = {
            "of": f"{what}s",
            "group": np.arange(len(sizes)),
            "size": sizes,
            "placed": np.array(found.n_placed),
            "share": sizes / sizes.sum(),
            "how_sure": found.group_how_sure,
            "found_in_chains": found.recurrence.n_chains,
            "agreement": found.recurrence.agreement,
            "members": found.members,
        }
        tables.append(pd.DataFrame(columns))
    return pd.concat(tables, ignore_index=True)
