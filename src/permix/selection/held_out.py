"""Numbers of groups judged by rows that were not fitted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from permix.data.labels import Array
from permix.estimators.selectable import Selectable

if TYPE_CHECKING:
    import pandas as pd


class HeldOutTrial(NamedTuple):
    """One number of groups: what training reached, and what held-out rows got."""

    n_components: int
    train: float
    scores: Array  # ln P of each held-out row
    errors: Array  # its Monte Carlo error
    n_iter: int
    converged: bool
    columns: dict[str, Any]  # what this model adds to the table


@dataclass(frozen=True)
class HeldOut:
    """Judge by pairs of a part to fit and a part to score."""

    model: Selectable
    folds: list[tuple[Any, Any]]
    score_seed: int

    @property
    def counts(self) -> Array:
        """Agents of every row that is scored, fold by fold."""
        return np.concatenate([test.counts for _, test in self.folds])

    @property
    def n_train(self) -> int:
        """Agents fitted, over all folds."""
        return sum(train.n_agents for train, _ in self.folds)

    @property
    def n_validation(self) -> int:
        """Agents scored, over all folds."""
        return int(self.counts.sum())

    @property
    def n_folds(self) -> int:
        """Number of pairs."""
        return len(self.folds)

    @property
    def fewest(self) -> int:
        """Agents in the smallest part to fit."""
        return min(train.n_agents for train, _ in self.folds)

    def trial(self, settings: Any) -> tuple[HeldOutTrial, Any]:
        """Fit and score all folds; also the fit, where there is one fold only."""
        fits, scores, errors = [], [], []
        for train, test in self.folds:
            fit = finished_fit(self.model, train, settings)
            score, error = self.model.score(fit, test, self.score_seed)
            fits.append(fit)
            scores.append(score)
            errors.append(error)
        trial = HeldOutTrial(
            n_components=settings.n_components,
            train=sum(float(fit.log_likelihood) for fit in fits) / self.n_train,
            scores=np.concatenate(scores),
            errors=np.concatenate(errors),
            n_iter=max(n_iterations(fit) for fit in fits),
            converged=all(fit.converged for fit in fits),
            columns=self.model.columns(fits),
        )
        return trial, fits[0] if len(fits) == 1 else None

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
            rows.append(
                {
                    "n_components": trial.n_components,
                    "train": trial.train,
                    "validation": mean,
                    "standard_error": error + unknown,
                    "monte_carlo_error": noise,
                    "difference": difference,
                    "difference_error": difference_error + (0.0 if trial is best else unknown),
                    "n_iter": trial.n_iter,
                    "converged": trial.converged,
                    **trial.columns,
                }
            )
        return pd.DataFrame(rows)

    def best(self, table: pd.DataFrame) -> int:
        """Return the number with the largest mean."""
        return int(table["n_components"][int(np.argmax(table["validation"]))])

    def within_error(self, table: pd.DataFrame) -> int:
        """Return the smallest number not worse than the best by more than the difference's error."""
        near = table["difference"] + table["difference_error"].fillna(0.0) >= 0.0
        return int(table["n_components"][near].min())


def finished_fit(model: Selectable, data: Any, settings: Any) -> Any:
    """Fit; an interrupted fit is no fit to compare."""
    fit = model.fit(data, settings)
    if fit.interrupted:
        raise KeyboardInterrupt
    return fit


def n_iterations(fit: Any) -> int:
    """Iterations of the best run; draws without a chain take one."""
    return max(len(fit.history), 1)


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
