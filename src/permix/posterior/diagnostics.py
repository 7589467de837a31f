"""Do the chains agree, and how much do the draws say? Rank-normalized split R-hat and ESS."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from permix.convergence import ess_bulk, ess_tail, mcse_mean, rank_r_hat
from permix.errors import Argument, ConvergenceWarning, DataError, Message
from permix.sampling.draws import Draws

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

# Vehtari, Gelman, Simpson, Carpenter & Bürkner (2021), "Rank-normalization, folding, and
# localization: an improved R-hat", recommend to trust draws only below this value.
REPORTABLE = 1.01
# Chains of partitions mix slowly, and an R-hat between the two values says "more draws", not "disagree".
THRESHOLD = 1.05
# ... and to have at least so many effective draws per chain.
FEWEST_EFFECTIVE = 100
# R-hat splits each chain, and a variance needs two draws.
FEWEST_DRAWS = 4
# How rarely chains that agree may be reported: the probability per quantity is about this.
FALSE_ALARM = 1e-3
PROBABILITY = 0.89
DISAGREE = "chains disagree"  # the note of quantities that are warned of
# Digits in which numbers that should be equal are, though computed in another order.
DIGITS = 10


def summary(tree: xr.DataTree | Draws, var_names: Sequence[str] | None = None) -> pd.DataFrame:
    """Summarize every scalar quantity over all chains, or those of ``var_names``.

    One row per quantity: ``mean``, ``sd``, ``eti89_lb`` and ``eti89_ub`` (89 % equal-tailed interval),
    ``ess_bulk`` and ``ess_tail`` (effective sample sizes), ``r_hat`` (rank-normalized, split), ``mcse_mean``
    (Monte Carlo error of the mean) and ``note``, which says ``constant``, ``too few draws``, ``not finite``,
    ``more draws needed`` (R-hat above 1.01, or fewer than 100 effective draws per chain) or ``chains
    disagree`` (R-hat above 1.05) where that is so. Labels have no mean and are left out.
    """
    import pandas as pd

    rows = {name: _row(values) for name, values in _scalars(tree, var_names)}
    columns = ["mean", "sd", "eti89_lb", "eti89_ub", "ess_bulk", "ess_tail", "r_hat", "mcse_mean", "note"]
    return pd.DataFrame.from_dict(rows, orient="index", columns=columns)


def warn_if_chains_disagree(tree: xr.DataTree | Draws, threshold: float = THRESHOLD) -> dict[str, float]:
    """Issue a :class:`permix.errors.ConvergenceWarning` that names the quantities chains disagree on.

    Returns the R-hat of each of these. ``threshold`` is the largest that passes; with few draws R-hat is
    large by chance alone, and what independent draws would reach once in a thousand times passes too.
    """
    scalars = dict(_scalars(tree, None))
    found = {name: r_hat(values) for name, values in scalars.items()}
    offending = {name: r for name, r in found.items() if r > largest_allowed(scalars[name], threshold)}
    if offending:
        n_chains = len(scalars[next(iter(offending))])
        warnings.warn(ConvergenceWarning(verdict(offending, n_chains, threshold)), stacklevel=3)
    return offending


def verdict(offending: Mapping[str, float], n_chains: int, threshold: float = THRESHOLD) -> Message:
    """Say, in warnings and in reports, on what the chains disagree; ``offending`` has the R-hat of each."""
    named = ", ".join(f"{name} (R-hat {value:.4g})" for name, value in offending.items())
    who = "The chains disagree" if n_chains > 1 else "The parts of the chain disagree"
    return Message(
        f"{who} on {named}; R-hat should be at most {threshold:g}. The draws do not yet represent the "
        "posterior: use a longer burn-in (",
        Argument("n_burn_in"),
        ") and more draws (",
        Argument("n_draws"),
        ").",
    )


def r_hat(values: npt.NDArray[np.float64]) -> float:
    """Return the rank-normalized split R-hat of an array over chain and draw.

    It is 1 for a constant, infinite when every chain is stuck at a place of its own, and NaN for
    values that are not finite or fewer than four draws per chain. The halves of a single chain count
    as two chains.
    """
    values = _at_least_two(values)
    if values.shape[1] < FEWEST_DRAWS or not np.all(np.isfinite(values)):
        return math.nan
    if np.all(values == values[0, 0]):
        return 1.0
    half = values.shape[1] // 2
    if all(np.all(part == part[0]) for chain in values for part in (chain[:half], chain[-half:])):
        return math.inf
    return rank_r_hat(values)


def largest_allowed(values: npt.NDArray[np.float64], threshold: float = THRESHOLD) -> float:
    """Return the R-hat of these chains above which they are said to disagree."""
    return max(threshold, noise_ceiling(*_at_least_two(values).shape))


def _at_least_two(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    if len(values) > 1:
        return values
    half = values.shape[1] // 2
    return np.stack([values[0, :half], values[0, values.shape[1] - half :]])


def noise_ceiling(n_chains: int, n_draws: int) -> float:
    """Return what R-hat of independent draws exceeds with probability 0.001.

    For m half chains of n independent normal draws, between over within variance follows an F distribution
    with m - 1 and m (n - 1) degrees of freedom, and R-hat² = (n - 1)/n + F/n.
    """
    from scipy.special import fdtri

    m, n = 2 * n_chains, n_draws // 2
    if n < 2:
        return math.inf
    ratio = float(fdtri(m - 1, m * (n - 1), 1.0 - FALSE_ALARM))
    return math.sqrt((n - 1 + ratio) / n)


def _scalars(
    tree: xr.DataTree | Draws, var_names: Sequence[str] | None
) -> Iterator[tuple[str, npt.NDArray[np.float64]]]:
    """Yield the quantities that are one number per draw, over chain and draw."""
    if isinstance(tree, Draws):
        arrays = {name: values for name, values in tree.arrays.items() if values.ndim == 2}
    else:
        arrays = {
            str(name): values.transpose("chain", "draw").to_numpy()
            for name, values in tree["posterior"].data_vars.items()
            if set(values.dims) == {"chain", "draw"}
        }
    for name in arrays if var_names is None else var_names:
        if name not in arrays:
            raise DataError(f"{name!r} is not one number per draw; there are: {', '.join(arrays) or 'none'}.")
        yield name, _without_rounding_errors(arrays[name].astype(np.float64))


def _without_rounding_errors(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Make equal what differs by rounding alone.

    Chains that are nearly always at the same partition have its likelihood with the rounding errors of the
    way they came. Ranks would take these for a difference between chains.
    """
    largest = np.abs(values[np.isfinite(values)]).max(initial=0.0)
    if largest == 0.0:
        return values
    return np.round(values, min(DIGITS - 1 - math.floor(math.log10(largest)), 300))


def _row(values: npt.NDArray[np.float64]) -> dict[str, Any]:
    row: dict[str, Any] = dict.fromkeys(("ess_bulk", "ess_tail", "r_hat", "mcse_mean"), math.nan)
    finite = bool(np.all(np.isfinite(values)))
    with np.errstate(invalid="ignore"):
        row["mean"] = float(values.mean())
        row["sd"] = float(values.std(ddof=1)) if finite and values.size > 1 else math.nan
    tails = ((1 - PROBABILITY) / 2, (1 + PROBABILITY) / 2)
    row["eti89_lb"], row["eti89_ub"] = map(float, np.quantile(values, tails)) if finite else (math.nan,) * 2
    if not finite:
        row["note"] = "not finite"
    elif np.all(values == values[0, 0]):
        row.update(note="constant", sd=0.0, mcse_mean=0.0)
    elif _at_least_two(values).shape[1] < FEWEST_DRAWS:
        row["note"] = "too few draws"
    else:
        row["r_hat"] = r_hat(values)
        row["ess_bulk"], row["ess_tail"] = ess_bulk(values), ess_tail(values)
        row["mcse_mean"] = mcse_mean(values)
        if row["r_hat"] > largest_allowed(values):
            row["note"] = DISAGREE
        else:
            enough = min(row["ess_bulk"], row["ess_tail"]) >= FEWEST_EFFECTIVE * len(values)
            precise = row["r_hat"] <= largest_allowed(values, REPORTABLE)
            row["note"] = "" if enough and precise else "more draws needed"
    return row
