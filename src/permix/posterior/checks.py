"""Does a model fit at all? Posterior predictive checks: observed numbers beside those of replicated data.

A model that is right draws data like those it was fitted to. Models say how to draw a replicated data set,
from one draw of the posterior each (or at the point estimates), and which numbers describe a data set; all
else is here. The numbers of one *aspect*, such as the shares of all first choices, are judged together: is
the observed set of numbers farther from what is usual than those of other replicated data sets?
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from permix.errors import DataError
from permix.runtime.progress import Display

if TYPE_CHECKING:
    import pandas as pd

Array = npt.NDArray[Any]
N_REPLICATES = 200
FEWEST_REPLICATES = 100
# An aspect is not reproduced where at most this share of the data sets are as unusual.
UNUSUAL = 0.02
INTERVAL = (0.025, 0.975)
# Numbers that are off by less say nothing against a model: with many agents, smaller differences are found.
LEAST_SHARE = 0.01
LEAST = {"list lengths by first choice": 0.05, "correlations": 0.05}  # items, and correlations
LEAST_SPREAD = 0.05  # of means and spreads, in standard deviations
# Aspects whose numbers are shares, which people read as percentages.
SHARES = frozenset({"first choices", "pairwise majorities", "agreement between two agents", "levels"})


def is_share(aspect: str) -> bool:
    """Say whether the numbers of an aspect are shares: those above, and "row shares of agree"."""
    return aspect in SHARES or " shares of " in aspect


class Aspect(NamedTuple):
    """Numbers that describe one side of a data set; NaN where the data do not say."""

    entries: list[str]  # what each number is of
    values: Array


Aspects = Mapping[str, Aspect]


@dataclass(frozen=True, eq=False)
class FitChecks:
    """What replicated data sets say about a fit.

    Attributes
    ----------
    verdict : str
        In words, what the model reproduces and what it does not.
    aspects : DataFrame
        A row for each aspect: how many ``numbers`` it has, how many of them are ``outside`` their 95 %
        interval, the ``tail`` share of replicated data sets that are as unusual as the observed one, and
        whether it is ``reproduced``: not where that share is 0.02 or less.
    table : DataFrame
        A row for each number: ``aspect``, ``entry``, ``observed``, its ``mean`` over replicated data sets,
        the ends ``low`` and ``high`` of its 95 % interval, and ``tail``, the share of them that are at least
        as far out on that side, twice.
    n_replicates : int
        How many data sets were drawn.
    n_agents : int
        Agents, or rows, in each: all, or a random part of very many.

    Notes
    -----
    With many agents small differences are found: how large they are is in the table. Data that were fitted
    are a little more usual than others, so that the checks err on the side of the model.
    """

    verdict: str
    aspects: pd.DataFrame
    table: pd.DataFrame
    n_replicates: int
    n_agents: int

    @property
    def lacking(self) -> list[str]:
        """Aspects that are not reproduced, but for those that are off by less than matters."""
        names: list[str] = self.aspects["aspect"][~self.aspects["reproduced"]].tolist()
        return [name for name in names if matters(name, self.table)]

    def __repr__(self) -> str:
        shown = self.aspects.to_string(index=False, float_format="{:.3g}".format)
        return f"FitChecks: {self.verdict}\n{shown}"


def compare(observed: Aspects, replicates: Iterable[Aspects], n_agents: int) -> FitChecks:
    """Hold what was observed against replicated data sets."""
    import pandas as pd

    drawn = list(replicates)
    if len(drawn) < FEWEST_REPLICATES:
        raise DataError(f"{len(drawn)} replicated data sets say too little; draw {FEWEST_REPLICATES} or more")
    rows: list[dict[str, Any]] = []
    judged: list[dict[str, Any]] = []
    for name, aspect in observed.items():
        seen = np.asarray(aspect.values, dtype=np.float64)
        made = np.stack([np.asarray(each[name].values, dtype=np.float64) for each in drawn])
        known = np.isfinite(seen) & np.isfinite(made).all(axis=0)
        if not known.any():
            continue
        seen, made = seen[known], made[:, known]
        entries = [entry for entry, is_known in zip(aspect.entries, known.tolist(), strict=True) if is_known]
        low, high = np.quantile(made, INTERVAL, axis=0)
        tails = tail_shares(seen, made)
        columns = (entries, seen, made.mean(axis=0), low, high, tails)
        names = ("entry", "observed", "mean", "low", "high", "tail")
        rows += [
            {"aspect": name, **dict(zip(names, each, strict=True))} for each in zip(*columns, strict=True)
        ]
        share = unusual_share(seen, made)
        outside = int(((seen < low) | (seen > high)).sum())
        judged.append(
            {
                "aspect": name,
                "numbers": len(seen),
                "outside": outside,
                "tail": share,
                "reproduced": share > UNUSUAL,
            }
        )
    if not judged:
        raise DataError("the data say too little to be compared with what the model would draw")
    table, aspects = pd.DataFrame(rows), pd.DataFrame(judged)
    return FitChecks(verdict_on(aspects, table), aspects, table, len(drawn), n_agents)


def matters(name: str, table: pd.DataFrame) -> bool:
    """Say whether an aspect is off by so much that it matters, such as a percentage point."""
    rows = table[table["aspect"] == name]
    off = (rows["observed"] - rows["mean"]).abs().to_numpy()
    if is_share(name) or name in LEAST:
        return bool(off.max() >= (LEAST_SHARE if is_share(name) else LEAST[name]))
    if name in ("column means", "column spreads"):
        spreads = table[table["aspect"] == "column spreads"].set_index("entry")["observed"]
        # Without a spread, as of zeros and ones or of counts, any difference counts.
        own = rows["entry"].map(spreads).fillna(0.0).to_numpy()
        return bool((off >= LEAST_SPREAD * own).any())
    return True


def tail_shares(seen: Array, made: Array) -> Array:
    """Return, twice, the share of replicated numbers that are at least as far out as the observed ones."""
    n = len(made)
    below, above = (made <= seen).sum(axis=0), (made >= seen).sum(axis=0)
    return np.minimum(2.0 * (1.0 + np.minimum(below, above)) / (n + 1.0), 1.0)


def unusual_share(seen: Array, made: Array) -> float:
    """Return the share of data sets that are as unusual as the observed one, itself counted.

    One half of the replicated data sets says what is usual: mean and spread of every number. The observed and
    the other half are measured by it, Σ ((x - mean) / spread)², so that all of these are alike if the model
    is right.
    """
    half = len(made) // 2
    center, spread = made[:half].mean(axis=0), made[:half].std(axis=0, ddof=1)
    others = np.concatenate([seen[None], made[half:]])
    off = others - center
    with np.errstate(divide="ignore", invalid="ignore"):
        # Numbers that never change are as usual as can be, unless they do change.
        scaled = np.where(np.abs(off) <= 1e-12 * np.maximum(np.abs(center), 1.0), 0.0, off / spread)
    # A number that no replicate had stands for all: infinities add up, and compare as equal.
    distances = (scaled**2).sum(axis=1)
    return float((distances >= distances[0] * (1.0 - 1e-12)).mean())


def verdict_on(aspects: pd.DataFrame, table: pd.DataFrame) -> str:
    """Say in words what is reproduced and what is not, with the number that is farthest off."""
    good = aspects["aspect"][aspects["reproduced"]].tolist()
    others = aspects["aspect"][~aspects["reproduced"]]
    bad = [_with_worst(name, table) for name in others if matters(name, table)]
    good += [f"{name} but for differences that do not matter" for name in others if not matters(name, table)]
    if not bad:
        return f"The model reproduces {_listed(good)}."
    if not good:
        return f"The model does not reproduce {_listed(bad, 'or')}."
    return f"The model reproduces {_listed(good)}, but not {_listed(bad, 'or')}."


def _with_worst(name: str, table: pd.DataFrame) -> str:
    part = table[table["aspect"] == name]
    width = np.maximum((part["high"] - part["low"]).to_numpy(), 1e-12)
    worst = part.iloc[int(np.argmax(np.abs((part["observed"] - part["mean"]).to_numpy()) / width))]
    written = "{:.1%}" if name in SHARES else "{:.3g}"
    seen, low, high = (written.format(worst[column]) for column in ("observed", "low", "high"))
    return f"{name} ({worst['entry']}: {seen}, and {low} to {high} under the model)"


def _listed(names: list[str], word: str = "and") -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {word} {names[-1]}"


def replicated(
    draw: Callable[[np.random.Generator], Aspects], n_replicates: int, rng: np.random.Generator
) -> Iterable[Aspects]:
    """Yield what describes so many data sets; each has random numbers of its own."""
    with Display(None) as display:
        display.begin("replicated data sets", n_replicates)
        for stream in rng.spawn(n_replicates):
            yield draw(stream)
            display.step()
