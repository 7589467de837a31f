"""Do the chains agree, and how much do the draws say? Rank-normalized split R-hat and ESS."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from permix.convergence import (
    CONSTANT,
    DISAGREE,
    ENOUGH,
    FEWEST_EFFECTIVE,
    LIMIT,
    NOT_FINITE,
    REPORTABLE,
    THRESHOLD,
    TOO_FEW,
    largest_allowed,
    mcse_mean,
    r_hat,
    trust_in,
    without_rounding_errors,
)
from permix.errors import Argument, ConvergenceWarning, DataError, Message
from permix.posterior.intervals import holding
from permix.sampling.draws import Draws

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

PROBABILITY = 0.89
MORE = Argument("n_draws", 20000)  # an example
COLUMNS = ["mean", "sd", "eti89_lb", "eti89_ub", "ess_bulk", "ess_tail", "r_hat", "mcse_mean", "note"]


def summary(tree: xr.DataTree | Draws, var_names: Sequence[str] | None = None) -> pd.DataFrame:
    """Summarize every scalar quantity over all chains, or those of ``var_names``.

    One row per quantity: ``mean``, ``sd``, ``eti89_lb`` and ``eti89_ub`` (89 % equal-tailed interval,
    wider where the mean lies outside), ``ess_bulk`` and ``ess_tail`` (effective sample sizes), ``r_hat``
    (rank-normalized, split), ``mcse_mean`` (Monte Carlo error of the mean) and ``note``, which says
    ``constant``, ``too few draws``, ``not finite``, ``more draws needed`` (R-hat above 1.01, or fewer than
    100 effective draws per chain) or ``chains disagree`` (R-hat above 1.05) where that is so. Labels have
    no mean and are left out.
    """
    import pandas as pd

    return pd.DataFrame.from_dict(summary_rows(tree, var_names), orient="index", columns=COLUMNS)


def summary_rows(
    tree: xr.DataTree | Draws, var_names: Sequence[str] | None = None
) -> dict[str, dict[str, Any]]:
    """Return the rows of :func:`summary` as dictionaries, without pandas, whose import takes a while."""
    rows = {name: _row(values) for name, values in _scalars(tree, var_names)}
    return {name: {column: row[column] for column in COLUMNS} for name, row in rows.items()}


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
        warnings.warn(ConvergenceWarning(disagreement(offending, n_chains, threshold)), stacklevel=3)
    return offending


def disagreement(offending: Mapping[str, float], n_chains: int, threshold: float = THRESHOLD) -> Message:
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


class Verdict(NamedTuple):
    """Whether draws represent the posterior (None: not known), in words, and on what the chains disagree."""

    converged: bool | None
    message: Message
    offending: Mapping[str, float]


def verdict_on(draws: Draws) -> Verdict:
    """Judge the draws of all chains by every quantity that is one number per draw, in words."""
    found = {name: trust_in(values) for name, values in _scalars(draws, None)}
    n_chains, n_draws = next(iter(draws.arrays.values())).shape[:2]
    ended, sufficed = _ending(draws, n_draws), _ending(draws, n_draws, suffice=True)
    offending = {name: trust.r_hat for name, trust in found.items() if trust.note == DISAGREE}
    if offending:
        parts = disagreement(offending, n_chains).parts
        return Verdict(False, Message("NOT CONVERGED. ", *parts, *ended), offending)
    unknown = [name for name, trust in found.items() if trust.note in (TOO_FEW, NOT_FINITE)]
    if unknown:
        said = f"Whether the chains converged cannot be said: {', '.join(unknown)} "
        why = "has too few draws or values that are not finite."
        return Verdict(None, Message(said + why, *ended), {})
    who = f"the {n_chains} chains agree" if n_chains > 1 else "the parts of the chain agree"
    known = {name: trust for name, trust in found.items() if trust.note != CONSTANT}
    if not known:
        return Verdict(True, Message(f"Converged: {who}, and nothing changes between draws.", *sufficed), {})
    r_hats = {name: trust.r_hat for name, trust in known.items()}
    effective = {name: min(trust.ess_bulk, trust.ess_tail) for name, trust in known.items()}
    worst, fewest = max(r_hats, key=r_hats.__getitem__), min(effective, key=effective.__getitem__)
    figures = f"R-hat at most {r_hats[worst]:.3f}, at least {effective[fewest]:,.0f} effective draws"
    if all(trust.suffices for trust in known.values()):
        return Verdict(True, Message(f"Converged: {who} ({figures}).", *sufficed), {})
    goal = f"{REPORTABLE:g} and {FEWEST_EFFECTIVE * n_chains:,} would make numbers precise"
    said = f"Nearly converged: {who} roughly ({figures}; {goal})."
    return Verdict(None, Message(said, *ended), {})


def _ending(draws: Draws, n_draws: int, *, suffice: bool = False) -> tuple[str | Argument, ...]:
    """Say what ended the chains; that draws suffice only where the verdict says so, too."""
    made = f"{max(draws.n_made, n_draws):,} draws each"
    if draws.ended == ENOUGH:
        return (f" They ended after {made}{', which suffice' if suffice else ''}.",)
    if draws.ended == LIMIT:
        return (f" They ended after {made}, the most that are made unasked; for more give a number, ", MORE)
    return (f" They were stopped after {made}.",) if draws.interrupted else ()


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
        yield name, without_rounding_errors(arrays[name].astype(np.float64))


def _row(values: npt.NDArray[np.float64]) -> dict[str, Any]:
    trust = trust_in(values)
    row: dict[str, Any] = {**trust._asdict(), "mcse_mean": math.nan}
    finite = trust.note != NOT_FINITE
    with np.errstate(invalid="ignore"):
        row["mean"] = float(values.mean())
        row["sd"] = float(values.std(ddof=1)) if finite and values.size > 1 else math.nan
    tails = ((1 - PROBABILITY) / 2, (1 + PROBABILITY) / 2)
    ends = holding(row["mean"], *np.quantile(values, tails)) if finite else (math.nan, math.nan)
    row["eti89_lb"], row["eti89_ub"] = map(float, ends)
    if trust.note == CONSTANT:
        row.update(sd=0.0, mcse_mean=0.0)
    elif not math.isnan(trust.r_hat):
        row["mcse_mean"] = mcse_mean(values)
    return row
