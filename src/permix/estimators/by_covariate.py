"""Groups compared with what is known of their members: tables group × precinct, with intervals.

Covariates are not used in a fit, unless shares of groups depend on them. So its probabilities take every
agent for one like all others, and pull each precinct towards the whole: counted by them, a precinct where
most say little looks like all precincts. Therefore shares are estimated anew for each value, the groups
being what they are (in three steps, as Vermunt, 2010, does for latent classes). Agent i with value v is in
group k with probability proportional to π[v, k] p[i, k] / w[k], where p are the probabilities of the fit and
w the shares that they are made with; given the groups, π[v] has a Dirichlet distribution. Both are drawn in
turn; with them, n[v, k], how many agents with value v are in group k. Where a fit keeps draws of labels, p
are how often an agent is in each group in stretches of the draws, one after another (a group of a draw
counts as the group of the answer that it is most like), so that it counts what stretches differ in.

Each share is then drawn given those counts, from Beta(n + 1/2, N - n + 1/2): agents are taken as a sample,
and 1/2 is Jeffreys' prior of a share. Intervals go from 5 % to 95 % of these draws, so they hold both that
memberships are not certain and that agents are few; shares shown are means of n / N alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from permix.data.attributes import MISSING, Attributes, Column
from permix.data.labels import Array
from permix.errors import DataError
from permix.estimators.known import known_of, memberships_of
from permix.posterior.estimated import Memberships
from permix.posterior.intervals import holding

if TYPE_CHECKING:
    import pandas as pd

# Tables that are drawn, fewer where there are many agents, and shuffled covariates.
N_TABLES, FEWEST_TABLES, N_SHUFFLED = 400, 100, 999
MOST_LABELS = 40_000_000
INTERVAL = (0.05, 0.95)
# How many agents' worth is what is known of a value's shares beforehand: that they are like those of all.
PRIOR_AGENTS = 2.0
# Tables left out until shares have found their place, and stretches of at least so many draws.
SETTLING, STRETCHES, FEWEST_DRAWS = 30, 8, 50
# Numbers with more different values than this are put into bands of about equally many agents.
FEW_VALUES, N_BANDS = 12, 4
HOW = {
    "draws": "draws of the posterior",
    "stretches": "draws of the posterior, with shares of groups estimated for each value",
    "probabilities": "groups drawn by the probabilities of each agent, with shares of groups estimated for "
    "each value and the groups themselves taken as known",
    "labels": "the groups as they are, which are taken as certain",
}


class GroupTable(NamedTuple):
    """How groups and the values of one covariate go together.

    Shares have a mean, a low and a high end on the last axis.
    """

    name: str
    values: tuple[str, ...]  # of the covariate, the most frequent first; bands in their order
    agents: Array  # (values,): how many agents have each
    of_value: Array  # (values, groups, 3): share of each value's agents in each group
    of_group: Array  # (values, groups, 3): share of each group's members with each value
    overall: Array  # (groups,): share of all these agents in each group
    how: str  # what intervals hold, by name
    p_value: float  # of an association as strong by chance: labels shuffled over the agents
    n_missing: int  # agents of whom the value is not known, and who are left out
    means: Array | None = None  # (groups, 3): of numbers, the mean of each group's members
    overall_mean: float = float("nan")
    doubt: str = ""  # why other runs may find other groups
    used: bool = False  # whether the fit lets shares of groups depend on it

    @property
    def note(self) -> str:
        """What intervals are, in words."""
        said = f"{self.name} {'was' if self.used else 'was not'} used in the fit"
        return f"90% interval, from {HOW[self.how]}, and as of a sample of agents; {said}"

    @property
    def verdict(self) -> str:
        """Whether groups and values go together, in words."""
        if len(self.values) < 2 or self.of_value.shape[1] < 2:
            return f"nothing to compare: there is one {'group' if len(self.values) > 1 else 'value'} only"
        if self.used:
            return (
                f"Shares of groups depend on {self.name} in this fit, so that its coefficients, and not "
                "shuffled agents, say how sure that is"
            )
        p = f"p = {self.p_value:.2g}, {N_SHUFFLED} shuffles"
        return self._of_these_groups(p) + (f"; but {self.doubt}" if self.doubt else "")

    def _of_these_groups(self, p: str) -> str:
        """Say whether values go with the groups as they are."""
        if self.p_value <= 0.01:
            return f"Groups go with {self.name} more than chance would give ({p})"
        if self.p_value <= 0.1:
            return f"Groups may go with {self.name}, but chance would give as much now and then ({p})"
        return f"No sign that groups go with {self.name}: chance would give as much ({p})"


def group_table(
    fit: Any, name: str, bands: int | None = None, random_state: Any = 0, values: Any = None
) -> GroupTable:
    """Compare the groups of a fit with a covariate of its rows, or with values given for them.

    What a fit knows of its rows is compared once: commands and reports ask several times.
    """
    if values is None and bands is None and isinstance(random_state, int):
        kept: dict[Any, GroupTable] = getattr(fit, "__dict__", {}).setdefault("_group_tables", {})
        if (name, random_state) not in kept:
            kept[name, random_state] = _group_table(fit, name, bands, random_state, values)
        return kept[name, random_state]
    return _group_table(fit, name, bands, random_state, values)


def _group_table(fit: Any, name: str, bands: int | None, random_state: Any, values: Any) -> GroupTable:
    found = memberships_of(fit)
    known = known_of(fit).rows
    if values is not None:
        known = Attributes({name: values}).checked(fit.n_known[0], "rows")
    elif not known:
        raise DataError(
            f"this fit knows no column {name!r}: give the data covariates before fitting, as by "
            "data.with_covariates({...}), read(path, group_columns=[...]) or --group-column"
        )
    column = known.column(name)
    codes, words = banded(column, bands)
    rng = np.random.default_rng(random_state)
    rows = found.agents if found.agents is not None else _rows_of_agents(found)
    numbers = None if column.levels is not None else column.values[rows]
    codes, of_agent = codes[rows], _of_agents(found, rows)
    there = codes != MISSING
    if not there.any():
        raise DataError(f"column {name!r} is empty; there is nothing to compare groups with")
    order = np.arange(len(words))
    agents = np.bincount(codes[there], minlength=len(words))
    if column.levels is not None:
        order = np.lexsort((order, -agents))
    order = order[agents[order] > 0]
    place = np.full(len(words), MISSING)
    place[order] = np.arange(len(order))
    codes, words, agents = place[codes[there]], tuple(words[v] for v in order), agents[order]
    shape = (len(words), found.n_groups)
    values_there = None if numbers is None else numbers[there]
    drawn: list[Array] = []
    weights_by = getattr(getattr(fit, "settings", None), "weights_by", None) or ()
    keep = values_there is not None
    tables, how = _tables(found, rows[there], there, codes, shape, rng, drawn, keep, bool(weights_by))
    labels = of_agent[there]
    observed = _table(codes, labels, shape)
    overall = tables.sum(axis=1).mean(axis=0) / tables[0].sum()
    return GroupTable(
        name,
        words,
        agents,
        _shares(tables, tables.sum(axis=2, keepdims=True), rng),
        _shares(tables, tables.sum(axis=1, keepdims=True), rng),
        overall,
        how,
        _p_value(observed, rng),
        int(np.count_nonzero(~there)),
        None if values_there is None else _means(values_there, drawn, shape[1], rng),
        float("nan") if values_there is None else float(values_there.mean()),
        _doubt(fit, found),
        values is None and name in weights_by,
    )


def _means(values: Array, drawn: list[Array], n_groups: int, rng: np.random.Generator) -> Array:
    """Return the mean of numbers over the members of each group, with the ends of its interval.

    For each draw of labels the mean of a group is drawn from its posterior under a normal distribution of
    unknown variance and Jeffreys' prior: m + s / √n times a variable of Student's distribution with n - 1
    degrees of freedom. NaN where a group has no member; its ends, where it never has two.
    """
    centered = values - values.mean()  # sums of squares keep their digits
    found = np.full((len(drawn), n_groups), np.nan)
    means = np.full((len(drawn), n_groups), np.nan)
    for at, labels in enumerate(drawn):
        n = np.bincount(labels, minlength=n_groups)
        total = np.bincount(labels, centered, n_groups)
        squares = np.bincount(labels, centered**2, n_groups)
        some, many = n > 0, n > 1
        means[at, some] = total[some] / n[some]
        spread = np.sqrt(np.maximum(squares[many] - total[many] ** 2 / n[many], 0) / (n[many] - 1))
        found[at, many] = means[at, many] + spread / np.sqrt(n[many]) * rng.standard_t(n[many] - 1)
    result = np.full((n_groups, 3), np.nan)
    there, told = ~np.isnan(means).all(axis=0), ~np.isnan(found).all(axis=0)
    result[there, 0] = np.nanmean(means[:, there], axis=0)
    low, high = np.nanquantile(found[:, told], INTERVAL, axis=0)
    ends = holding(result[told, 0], low, high)
    result[told, 1], result[told, 2] = ends
    return result + values.mean()


def _doubt(fit: Any, found: Memberships) -> str:
    """Say why other runs may find other groups; shuffling a covariate takes the groups as they are."""
    so = "so another run may find other groups, and other shares of them"
    draws = getattr(fit, "draws", None)
    if draws is not None and draws.seeds:
        from permix.posterior.diagnostics import verdict_on

        if verdict_on(draws).converged is False:
            return f"the chains did not converge, {so}"
    n = 0 if found.recur is None else int(np.count_nonzero(found.recur == 0.0))
    if not n:
        return ""
    which = "these groups" if n == found.n_groups else f"{n} of these {found.n_groups} groups"
    return f"{which} did not recur, {so}"


def banded(column: Column, bands: int | None) -> tuple[Array, tuple[str, ...]]:
    """Return codes of values; numbers of which there are many are put into bands by their quantiles."""
    codes, values = column.codes()
    if column.levels is not None or bands == 0 or (bands is None and len(values) <= FEW_VALUES):
        return codes, values
    numbers = column.values[~np.isnan(column.values)]
    inner = np.quantile(numbers, np.linspace(0, 1, (bands or N_BANDS) + 1)[1:-1], method="inverted_cdf")
    edges = np.unique(inner)  # a band ends with its edge
    edges = edges[edges < numbers.max()]
    placed = np.searchsorted(edges, column.values, side="left").astype(np.int32)
    placed[np.isnan(column.values)] = MISSING
    inside = [numbers[np.searchsorted(edges, numbers, side="left") == band] for band in range(len(edges) + 1)]
    return placed, tuple(f"{part.min():g} to {part.max():g}" for part in inside)


def _rows_of_agents(found: Memberships) -> Array:
    n = len(found.labels)
    if found.counts is None:
        return np.arange(n)
    if float(np.sum(found.counts, dtype=np.float64)) > MOST_LABELS:
        raise DataError("there are too many agents to draw groups for; divide the counts first")
    return np.repeat(np.arange(n), found.counts)


def _of_agents(found: Memberships, rows: Array) -> Array:
    return found.labels if found.agents is not None else found.labels[rows]


def _tables(
    found: Memberships,
    rows: Array,
    known: Array,
    codes: Array,
    shape: tuple[int, int],
    rng: np.random.Generator,
    labels_drawn: list[Array],
    keep: bool,
    by_others: bool,
) -> tuple[Array, str]:
    """Draw tables of counts (tables, values, groups), and say from what.

    ``labels_drawn`` takes the labels of each, where they are to be kept. ``by_others`` says that shares of
    groups depend on columns in the fit: draws then are what they should be.
    """
    small = np.int16 if shape[1] < 2**15 else np.int64
    n_tables = int(np.clip(MOST_LABELS // max(len(rows), 1), FEWEST_TABLES, N_TABLES))
    if found.draws is None and found.probabilities is None:
        labels = found.labels[known] if found.agents is not None else found.labels[rows]
        labels_drawn += [labels] * (N_TABLES if keep else 0)
        return np.repeat(_table(codes, labels, shape)[None], N_TABLES, axis=0), "labels"
    drawn: Iterator[Array]
    if found.draws is not None:
        at = np.linspace(0, len(found.draws) - 1, min(len(found.draws), n_tables)).astype(np.int64)
        mapped = (as_groups(found.draws[d].astype(np.int64), found.labels, shape[1]) for d in at)
        drawn = (labels[known] if found.agents is not None else labels[rows] for labels in mapped)
        if not by_others:
            n_stretches = int(np.clip(len(at) // FEWEST_DRAWS, 1, STRETCHES))
            shares = list(_frequencies(drawn, np.array_split(at, n_stretches), len(rows), shape[1]))
            drawn = _by_value(shares, codes, shape, rng, n_tables)
    else:
        assert found.probabilities is not None
        chances = found.probabilities[rows]
        drawn = (
            _by_value([chances], codes, shape, rng, n_tables)
            if not by_others
            else _by_chance(chances, rng, n_tables)
        )
    tables = []
    for labels in drawn:
        labels_drawn += [labels.astype(small)] if keep else []
        tables.append(_table(codes, labels, shape))
    how = "probabilities" if found.draws is None else "draws" if by_others else "stretches"
    return np.array(tables), how


def _frequencies(
    labels: Iterator[Array], stretches: list[Array], n_agents: int, n_groups: int
) -> Iterator[Array]:
    """Yield how often agents are in each group in each stretch of draws, (agents, groups)."""
    agents = np.arange(n_agents) * n_groups
    for stretch in stretches:
        times = np.zeros(n_agents * n_groups, dtype=np.float32)
        for _ in stretch:
            times[agents + next(labels)] += 1.0
        yield times.reshape(n_agents, n_groups) / len(stretch)


def _by_value(
    chances: list[Array], codes: Array, shape: tuple[int, int], rng: np.random.Generator, n_tables: int
) -> Iterator[Array]:
    """Yield labels of agents drawn with shares of each value's own, evenly from all ``chances``."""
    n_each = -(-n_tables // len(chances))
    for of_agents in chances:
        overall = of_agents.mean(axis=0, dtype=np.float64)
        likely = (of_agents / np.maximum(overall, 1e-12)).astype(np.float32)
        shares = np.repeat(overall[None], shape[0], axis=0)
        for time in range(SETTLING + n_each):
            upto = np.cumsum(likely * np.maximum(shares, 1e-12).astype(np.float32)[codes], axis=1)
            labels = _drawn(upto, rng)
            given = _table(codes, labels, shape) + PRIOR_AGENTS * overall
            weights = rng.standard_gamma(given)
            shares = weights / np.maximum(weights.sum(axis=1, keepdims=True), 1e-300)
            if time >= SETTLING:
                yield labels


def _by_chance(chances: Array, rng: np.random.Generator, n_tables: int) -> Iterator[Array]:
    """Yield labels of agents drawn by their probabilities."""
    upto = np.cumsum(chances, axis=1).astype(np.float32)
    for _ in range(n_tables):
        yield _drawn(upto, rng)


def _drawn(upto: Array, rng: np.random.Generator) -> Array:
    """Draw a group of each agent: how many cumulated weights, but for the last, a uniform number reaches."""
    uniform = rng.random(len(upto), dtype=np.float32) * upto[:, -1]
    return np.asarray((upto[:, :-1] <= uniform[:, None]).sum(axis=1))


def as_groups(drawn: Array, labels: Array, n_groups: int) -> Array:
    """Call each group of a draw as the group of the answer that it is most like.

    By the cosine similarity of the two sets, n_common² / (n_1 n_2), as models of rankings link their draws.
    """
    m = int(drawn.max()) + 1
    shared = np.bincount(labels * m + drawn, minlength=n_groups * m).reshape(n_groups, m)
    sizes = np.maximum(np.bincount(labels, minlength=n_groups), 1)
    return (shared.astype(np.float64) ** 2 / sizes[:, None]).argmax(axis=0)[drawn]


def _table(codes: Array, labels: Array, shape: tuple[int, int]) -> Array:
    return np.bincount(codes * shape[1] + labels, minlength=shape[0] * shape[1]).reshape(shape)


def _shares(tables: Array, totals: Array, rng: np.random.Generator) -> Array:
    """Return means of n / N with the ends of intervals on the last axis; NaN where a group is empty."""
    with np.errstate(invalid="ignore"):
        ratios = tables / totals
        mean = np.where(totals > 0, ratios, 0.0).sum(axis=0) / np.maximum((totals > 0).sum(axis=0), 1)
    mean = np.where((totals > 0).any(axis=0), mean, np.nan)
    drawn = rng.beta(tables + 0.5, totals - tables + 0.5)
    empty = np.broadcast_to(
        totals == 0, drawn.shape
    )  # draws in which there is no such group say nothing of it
    if empty.any():
        drawn[empty & ~empty.all(axis=0)] = np.nan
    low, high = np.nanquantile(drawn, INTERVAL, axis=0)
    return np.stack([mean, *holding(mean, low, high)], axis=-1)


def _p_value(observed: Array, rng: np.random.Generator) -> float:
    """Return how often an association as strong comes by chance, with both margins as they are."""
    observed = observed[:, observed.sum(axis=0) > 0]
    values, groups = observed.sum(axis=1), observed.sum(axis=0)
    expected = np.outer(values, groups) / observed.sum()
    if len(values) < 2 or len(groups) < 2:
        return 1.0
    left = np.repeat(groups[None].astype(np.int64), N_SHUFFLED, axis=0)
    strength = np.zeros(N_SHUFFLED)
    # Members of each value are drawn from what earlier values left: the distribution of shuffled labels.
    for v, n in enumerate(values.tolist()):
        wanted = np.full(N_SHUFFLED, n)
        for k in range(len(groups)):
            others = left[:, k + 1 :].sum(axis=1)
            got = rng.hypergeometric(left[:, k], others, wanted) if k < len(groups) - 1 else wanted
            strength += _information(got, expected[v, k])
            left[:, k] -= got
            wanted = wanted - got
    reached = float(_information(observed, expected).sum())
    return float((1 + np.count_nonzero(strength >= reached - 1e-9)) / (1 + N_SHUFFLED))


def _information(found: Array, expected: Any) -> Array:
    """Return n ln(n / e): summed, N times the mutual information, to which small groups add little noise."""
    return np.asarray(found * np.log(np.maximum(found, 1) / expected))


def group_frame(found: GroupTable) -> pd.DataFrame:
    """Return the table as a frame with a row for each value and group."""
    import pandas as pd

    n_values, n_groups = found.of_value.shape[:2]
    columns: dict[str, Any] = {
        "group": np.tile(np.arange(n_groups), n_values),
        "agents": np.repeat(found.agents, n_groups),
    }
    for what, shares in (("of_value", found.of_value), ("of_group", found.of_group)):
        for end, suffix in enumerate(("", "_low", "_high")):
            columns[f"share_{what}{suffix}"] = shares[..., end].reshape(-1)
    if found.means is not None:
        for end, suffix in enumerate(("", "_low", "_high")):
            columns[f"mean_of_group{suffix}"] = np.tile(found.means[:, end], n_values)
    name = f"{found.name}_value" if found.name in columns else found.name
    columns = {name: np.repeat(np.array(found.values, dtype=object), n_groups), **columns}
    frame = pd.DataFrame(columns)
    frame.attrs |= {"note": found.note, "verdict": found.verdict, "p_value": found.p_value}
    frame.attrs["missing"] = found.n_missing
    return frame
