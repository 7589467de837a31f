"""Numbers of groups judged by rows that were not fitted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from permix.data.labels import Array
from permix.estimators.selectable import Selectable

if TYPE_CHECKING:
    import pandas as pd


# Numbers in a row that are clearly worse than the best before no more are tried, and how many standard errors
# are clear.
LAST = 3
CLEARLY = 2.0


class HeldOutTrial(NamedTuple):
    """One number of groups: what training reached, and what held-out rows got."""

    scores: Array  # ln P of each held-out row
    errors: Array  # its Monte Carlo error
    columns: dict[str, Any]  # what the table says of it beside


class HeldOut:
    """Judge by pairs of a part to fit and a part to score; numbers of agents are those of all folds."""

    def __init__(self, model: Selectable, folds: list[tuple[Any, Any]], score_seed: int) -> None:
        self.model, self.folds, self.score_seed = model, folds, score_seed
        self.counts = np.concatenate([test.counts for _, test in folds])  # of every row that is scored
        n_train = [train.n_agents for train, _ in folds]
        self.n_train, self.fewest = sum(n_train), min(n_train)  # fitted, and in the smallest part
        self.n_validation, self.n_folds = int(self.counts.sum()), len(folds)
        self.fits: list[Any] = [None] * len(folds)  # the latest

    def trial(self, settings: Any) -> tuple[HeldOutTrial, Any]:
        """Fit and score all folds; also the fit, where there is one fold only."""
        fits, scored = [], []
        for (train, test), smaller in zip(self.folds, self.fits, strict=True):
            fits.append(finished_fit(self.model, train, settings, smaller))
            scored.append(self.model.score(fits[-1], test, self.score_seed))
        self.fits = fits
        columns = {
            "n_groups": settings.n_components,
            "train": sum(float(fit.log_likelihood) for fit in fits) / self.n_train,
            "n_iter": max(n_iterations(fit) for fit in fits),
            "converged": all(fit.converged for fit in fits),
            **self.model.columns(fits),
        }
        scores, errors = (np.concatenate(of_folds) for of_folds in zip(*scored, strict=True))
        return HeldOutTrial(scores, errors, columns), fits[0] if len(fits) == 1 else None

    def table(self, trials: list[HeldOutTrial]) -> pd.DataFrame:
        """One row for each number of groups; differences to the best are paired."""
        import pandas as pd

        counts = self.counts
        means = [mean_and_errors(trial.scores, trial.errors, counts) for trial in trials]
        unknown = np.nan if len(counts) < 2 else 0.0  # one row alone says nothing about the spread of rows
        best = trials[int(np.argmax([mean for mean, _, _ in means]))]
        rows = []
        for trial, (mean, error, noise) in zip(trials, means, strict=True):
            # Draws are common to both, so their errors cancel in part: added as if they did not, to be safe.
            both = np.zeros_like(trial.errors) if trial is best else np.hypot(trial.errors, best.errors)
            difference, difference_error, _ = mean_and_errors(trial.scores - best.scores, both, counts)
            measured = {
                "validation": mean,
                "standard_error": error + unknown,
                "monte_carlo_error": noise,
                "difference": difference,
                "difference_error": difference_error + (0.0 if trial is best else unknown),
            }
            first = {name: trial.columns[name] for name in ("n_groups", "train")}
            rows.append(first | measured | trial.columns)
        return pd.DataFrame(rows)

    def is_enough(self, trials: list[HeldOutTrial]) -> bool:
        """Say whether the last numbers are clearly worse than the best, as errors of differences tell."""
        table = self.table(trials)
        behind = table["difference"] < -CLEARLY * table["difference_error"].fillna(np.inf)
        return len(trials) > LAST and bool(behind[-LAST:].all())

    def best(self, table: pd.DataFrame) -> int:
        """Return the number with the largest mean."""
        return int(table["n_groups"][int(np.argmax(table["validation"]))])

    def within_error(self, table: pd.DataFrame) -> int:
        """Return the smallest number not worse than the best by more than the difference's error."""
        near = table["difference"] + table["difference_error"].fillna(0.0) >= 0.0
        return int(table["n_groups"][near].min())


def finished_fit(model: Selectable, data: Any, settings: Any, smaller: Any = None) -> Any:
    """Fit, from a smaller fit if there is one; an interrupted fit is no fit to compare."""
    fit = model.fit(data, settings) if smaller is None else model.fit_more(data, settings, smaller)
    if fit.interrupted:
        raise KeyboardInterrupt
    return fit


def n_iterations(fit: Any) -> int:
    """Iterations of the best run, or draws of each chain; draws without a chain take one."""
    draws = getattr(fit, "draws", None)
    return max(len(fit.history) if draws is None else int(draws.n_made), 1)


def mean_and_errors(scores: Array, errors: Array, counts: Array) -> tuple[float, float, float]:
    """Mean score of an agent, its standard error, and the part of it that is Monte Carlo error.

    The spread between rows holds the Monte Carlo error of each row already. Agents who gave the same row
    share that row's error, so it does not average out between them: this is the term added.

    Examples
    --------
    >>> mean_and_errors(np.array([1.0, 3.0]), np.zeros(2), np.array([1, 1]))
    (2.0, 1.0, 0.0)
    """
    n = float(counts.sum())
    mean = float(counts @ scores) / n
    spread = float(counts @ (scores - mean) ** 2) / (n - 1.0)
    noise = float(counts**2.0 @ errors**2) / n**2
    shared = noise - float(counts @ errors**2) / n**2
    return mean, float(np.sqrt(spread / n + shared)), float(np.sqrt(noise))
