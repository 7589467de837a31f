"""Does a mixture of vectors fit at all? Means, spreads, flatness and correlations of replicated columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from permix.dp_mixture.fit import MixtureFit
from permix.dp_mixture.predict import MixturePredictive, draw_rows, spaced_draws
from permix.errors import DataError
from permix.estimators.checks import Whole
from permix.families.contract_jit import score_new_data
from permix.posterior.checks import FEWEST_REPLICATES, Aspect, FitChecks, compare, replicated
from permix.runtime.seeds import generator

Array = npt.NDArray[Any]
# Correlations are those of the first columns.
MOST_COLUMNS = 30


def fit_checks(fit: MixtureFit, data: Any, n_replicates: int, random_state: Any) -> FitChecks:
    """Compare the data fitted with replicated ones, each from one draw of the posterior."""
    if data is not None:
        raise DataError("checks are about the data that were fitted, which the fit has: leave X out")
    n_replicates = Whole(FEWEST_REPLICATES)("n_replicates", n_replicates)
    rng, family = generator(random_state), fit.family
    names = family.parameter_names(fit.columns)
    seen = family.numbers(fit.data)
    missing = np.isnan(seen)
    predictive, draws = MixturePredictive(fit), spaced_draws(fit)

    def aspects(table: Array) -> dict[str, Aspect]:
        return table_aspects(np.where(missing, np.nan, table), names, counts=family.accepts_sparse)

    def draw(stream: np.random.Generator) -> dict[str, Aspect]:
        rows = draw_rows(predictive, draws[int(stream.integers(len(draws)))], fit.n, stream)
        return aspects(family.numbers(family.lacking(family.encode(family.decode(rows)), fit.data)))

    return compare(aspects(seen), replicated(draw, n_replicates, rng), fit.n)


def table_aspects(table: Array, names: list[str], *, counts: bool = False) -> dict[str, Aspect]:
    """Return means, spreads, flatness and correlations of columns; of counts, means alone.

    Gaussian groups that are put together to a flat shape reach beyond its ends: spreads over ranges tell.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        known = ~np.isnan(table)
        n = known.sum(axis=0)
        means = np.where(known, table, 0.0).sum(axis=0) / n
        found = {"column means": Aspect(names, means)}
        if counts:
            return found
        centered = np.where(known, table - means, 0.0)
        spreads = np.sqrt((centered**2).sum(axis=0) / n)
        # The spread of a column of zeros and ones follows from its mean.
        binary = np.all(~known | (table == 0.0) | (table == 1.0), axis=0)
        if not binary.all():
            found["column spreads"] = Aspect(names, np.where(binary, np.nan, spreads))
            half_range = 0.5 * (np.fmax.reduce(table, axis=0) - np.fmin.reduce(table, axis=0))
            # A third where all values are equally probable. Not the reverse, nor the root: now and then the
            # farthest of many rows is much farther.
            flat = np.where(binary | (spreads == 0.0), np.nan, (spreads / half_range) ** 2)
            found["column flatness"] = Aspect(names, flat)
        k = min(len(names), MOST_COLUMNS)
        if k > 1:
            first, second = np.triu_indices(k, 1)
            scaled = np.where(spreads > 0.0, centered / spreads, np.nan)[:, :k]
            both = known[:, :k].astype(float)
            with np.errstate(invalid="ignore"):
                products = np.where(known[:, :k], scaled, 0.0)
                correlations = (products.T @ products) / (both.T @ both)
            entries = [f"{names[a]} and {names[b]}" for a, b in zip(first, second, strict=True)]
            found["correlations"] = Aspect(entries, correlations[first, second])
    return found


def baselines(fit: MixtureFit, data: tuple[MixtureFit, Any, int], known: Any) -> dict[str, Array]:
    """Return ln p of rows if all rows were one group, and if columns that are numbers were independent.

    ``data``: the fit that scores new rows, the rows as its family encodes them, and their number.
    """
    if known is not None:
        raise DataError("the fit has the data that simpler models are fitted to: leave fitted_to out")
    fit, encoded, m = data
    predictive = MixturePredictive(fit)
    predictive.condition(np.zeros(fit.n, dtype=np.int64), 1.0)
    scores = np.empty((m, 1))
    stats = fit.family.scoring(predictive.state.stats, encoded, encoded)
    score_new_data(stats, encoded, m, 1, scores)
    found = {"one group": scores[:, 0]}
    if fit.family.points(fit.data)[1]:
        from scipy.stats import norm

        seen, new = fit.family.numbers(fit.data), fit.family.numbers(encoded)
        least = 1e-12 * np.maximum(np.abs(np.nanmean(seen, axis=0)), 1.0)
        spreads = np.maximum(np.nanstd(seen, axis=0), least)
        # What is missing says nothing.
        found["independent columns"] = np.nansum(norm.logpdf(new, np.nanmean(seen, axis=0), spreads), axis=1)
    return found
