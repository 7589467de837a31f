"""A fitted mixture of Mallows models, and what it says without further data."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from permix.data.labels import Array
from permix.distributions.base import Estimate
from permix.distributions.conditioning.components import MallowsComponents
from permix.errors import ConvergenceWarning, PermixWarning
from permix.estimators.known import NOTHING, Known
from permix.estimators.share_errors import middle_of_samples, share_errors, share_interval
from permix.estimators.wording import alike, cut_short, groups_named, nobodys
from permix.mallows.parameters import MallowsParameters
from permix.posterior.estimated import Memberships

if TYPE_CHECKING:
    import pandas as pd

# Two runs reached the same optimum if their log-likelihoods differ by less than this for each agent, and two
# standard errors where they have errors.
SAME = 1e-5
# A group recurs in a run if the agents of one of its groups are the same to this extent (Jaccard).
RECURS = 0.6
# So many restarts at one optimum, from beginnings of their own, make those that ended lower unimportant.
SEVERAL = 3


def same_optimum(n_agents: int, error: float = 0.0) -> float:
    """Return the difference of log-likelihoods below which two runs have reached the same optimum."""
    return SAME * n_agents + 0.01 + 2.0 * error


@dataclass(frozen=True, eq=False)
class MallowsFit:
    """A fitted mixture with all that is needed to use it."""

    model: ClassVar[str] = "MallowsMixture"

    settings: MallowsParameters
    components: MallowsComponents  # the largest first
    probabilities: Array  # (rows, K): P(component | what the row says) for the rows that were fitted
    counts: Array  # (rows,): how many agents each of those rows stands for
    log_likelihood: Estimate  # ln P(data), equation 26; its standard error is 0 where all E-steps were exact
    history: Array  # (iterations, 2): log-likelihood and its standard error along the best run
    # What every restart reached; the best one is kept. Where starts were tried on a part of very many agents,
    # scaled to all of them.
    start_log_likelihoods: Array
    # (restarts, K): how well each group is matched in every restart, as Jaccard index of agents; without rows
    # where a file of an older permix does not say.
    group_matches: Array
    converged: bool  # whether the best run stopped because nothing improved any more
    interrupted: bool  # whether the user stopped the fit: what was best then is here
    # Mean scores of the data under permix.estimators.baselines.KEPT, where they were asked for.
    baselines: Array | None = None
    # Standard errors of the shares of groups, from the information of agents: centers are taken as known, as
    # are dispersions where rows are sampled; None in files of older versions.
    share_errors: Array | None = None
    # (restarts, K): how large what matches each group is in restarts that fit as well, else NaN.
    restart_shares: Array | None = None
    # (samples, K): how large what matches each group is in fits to other samples of agents, else NaN; None
    # where rows are drawn, and in files of older versions.
    resampled_shares: Array | None = None
    # How many agents were fitted, where data were in shards and rows are a random sample of those agents.
    sampled_from: int | None = None
    known: Known = NOTHING  # of the rows and items, beside what was fitted

    @property
    def n_agents(self) -> int:
        """How many agents were fitted."""
        return int(self.counts.sum()) if self.sampled_from is None else self.sampled_from

    @property
    def n_known(self) -> tuple[int, int]:
        """Numbers of rows and of items."""
        return len(self.counts), len(self.components.items)

    def memberships(self) -> Memberships:
        """Return to which groups rows belong."""
        k = len(self.components.weights)
        others = len(self.group_matches) - 1  # a restart finds its own groups
        recur = np.maximum(self.recurrences - 1, 0) / others if others > 0 else None
        return Memberships(self.labels, k, self.counts, probabilities=self.probabilities, recur=recur)

    @property
    def labels(self) -> Array:
        """The most probable component of every row."""
        return np.asarray(self.probabilities.argmax(axis=1))

    @property
    def at_best(self) -> Array:
        """Whether each restart reached the optimum that was kept."""
        reached = self.start_log_likelihoods
        within = same_optimum(int(self.counts.sum()), float(np.max(self.history[:, 1])))
        return np.asarray(reached >= reached.max(initial=-np.inf) - within)

    @property
    def as_good(self) -> Array:
        """Whether each restart fits as well as the best, as far as chance can tell."""
        if self.restart_shares is None:
            return self.at_best
        return np.asarray(self.at_best | np.isfinite(self.restart_shares).any(axis=1))

    @property
    def judged_restarts(self) -> Array:
        """Which restarts say whether groups recur: all, or those that fit as well where several are best."""
        if self.at_best.sum() < SEVERAL or not len(self.group_matches):
            return np.arange(len(self.group_matches))
        return np.flatnonzero(self.as_good)

    @property
    def recurrences(self) -> Array:
        """In how many restarts each group recurs."""
        return np.asarray((self.group_matches >= RECURS).sum(axis=0))

    @property
    def agreements(self) -> Array:
        """Mean match of each group over restarts; NaN where it is not known."""
        n = len(self.group_matches)
        return np.asarray(
            self.group_matches.sum(axis=0) / n if n else np.full(len(self.components.weights), np.nan)
        )

    @cached_property
    def share_intervals(self) -> Array:
        """5 % and 95 % ends of the shares, (K, 2), the wider of what errors, samples and restarts say."""
        shares, errors = self.components.weights, self.share_errors
        if errors is None:
            errors = share_errors(self.probabilities, self.counts, shares)
        ends = [np.array([share_interval(float(s), float(e)) for s, e in zip(shares, errors, strict=True)])]
        if self.resampled_shares is not None:
            ends.append(middle_of_samples(self.resampled_shares, shares))
        if self.restart_shares is not None:
            low = np.fmin.reduce(self.restart_shares, axis=0, initial=np.inf)
            ends.append(np.stack([low, np.fmax.reduce(self.restart_shares, axis=0, initial=-np.inf)], axis=1))
        found = np.array(ends)
        return np.stack(
            [np.fmin.reduce(found[:, :, 0], axis=0), np.fmax.reduce(found[:, :, 1], axis=0)], axis=1
        )

    @property
    def verdict(self) -> str:
        """How far to trust that there is no better optimum, in words; nothing for a single restart."""
        n, m = int(self.at_best.sum()), len(self.at_best)
        more = int(self.as_good.sum()) - n
        if m < 2:
            return ""
        others = f", and {more} others fit as well as chance can tell" if more else ""
        others = others.replace("others fit", "other fits") if more == 1 else others
        if n == 1:
            return (
                f"Only 1 of {m} restarts reached this optimum{others}: there may be a better one, and groups "
                "that do not recur may be chance"
            )
        return f"{n} of {m} restarts reached this optimum{others}"

    @property
    def n_iterations(self) -> int:
        """Iterations of the best run."""
        return len(self.history)


def component_table(fit: MallowsFit) -> pd.DataFrame:
    """One row for each component: its size, its spread and its center by name."""
    import pandas as pd

    components = fit.components
    each = [components.component(k) for k in range(components.n_components)]
    return pd.DataFrame(
        {
            "share": components.weights,
            "share_low": fit.share_intervals[:, 0],
            "share_high": fit.share_intervals[:, 1],
            "agents": fit.counts @ fit.probabilities * (fit.n_agents / fit.counts.sum()),
            "dispersion": components.dispersions,
            "expected_distance": [distribution.expected_distance() for distribution in each],
            "restarts_with_it": fit.recurrences,
            "agreement": fit.agreements,
            "center": [" ≻ ".join(map(str, distribution.center)) for distribution in each],
        },
        index=pd.RangeIndex(components.n_components, name="group"),
    )


def climbing_iterations(fit: MallowsFit) -> int:
    """Iterations until the climb ended; ``history`` goes on with rounds that average out noise."""
    return fit.n_iterations if fit.converged else min(fit.n_iterations, fit.settings.max_iter)


def remarks(fit: MallowsFit) -> list[str]:
    """What a reader of the groups should know about them; they are counted from 1 here."""
    mixture = fit.components
    said = alike(mixture.centers, "have the same center and differ in dispersion alone")
    lowest = np.flatnonzero(mixture.dispersions <= fit.settings.min_dispersion * (1.0 + 1e-9)).tolist()
    if lowest:
        whose = "dispersion is" if len(lowest) == 1 else "dispersions are"
        said.append(
            f"{groups_named(lowest)}: the {whose} at the lower limit, {fit.settings.min_dispersion:g}"
        )
    said += nobodys(np.bincount(fit.labels, minlength=mixture.n_components))
    alone = np.flatnonzero(fit.recurrences <= 1).tolist() if len(fit.group_matches) > 1 else []
    if alone:
        does = "does not recur" if len(alone) == 1 else "do not recur"
        said.append(f"{groups_named(alone)} {does} in any other restart")
    return said


def warn_if_unsettled(fit: MallowsFit) -> None:
    """Say so where EM did not come to rest: stopped early, or out of iterations."""
    n = climbing_iterations(fit)
    reached = f"log-likelihood {float(fit.log_likelihood):,.1f} after {n} iteration{'' if n == 1 else 's'}"
    if fit.interrupted:
        warnings.warn(f"stopped early; kept the best found so far ({reached})", PermixWarning, stacklevel=3)
    elif not fit.converged:
        last = np.diff(fit.history[max(n - 2, 0) : n, 0])
        # With Monte Carlo noise a single step may go down although the climb goes on.
        rose = f", which still rose by {last[0]:.3g} in the last one" if len(last) and last[0] > 0.0 else ""
        warnings.warn(
            cut_short(f"EM did not converge: {reached}{rose}. Raise ", fit.settings.max_iter),
            ConvergenceWarning,
            stacklevel=3,
        )
