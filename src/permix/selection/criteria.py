"""numbers of groups judged by the rows that were fitted, at a price for every parameter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from permix.estimators.selectable import Selectable
from permix.selection.held_out import finished_fit, n_iterations

if TYPE_CHECKING:
    import pandas as pd


class CriterionTrial(NamedTuple):
    """One number of groups and its criterion."""

    n_components: int
    log_likelihood: float
    value: float
    parameters: float
    n_iter: int
    converged: bool
    columns: dict[str, Any]


@dataclass(frozen=True)
class ByCriterion:
    """Judge by a criterion on all data."""

    model: Selectable
    data: Any
    criterion: str
    n_validation = 0
    n_folds = 0

    @property
    def n_train(self) -> int:
        """Agents fitted: all."""
        return int(self.data.n_agents)

    @property
    def fewest(self) -> int:
        """The same."""
        return self.n_train

    def trial(self, settings: Any) -> tuple[CriterionTrial, Any]:
        """Fit all data; also the fit."""
        fit = finished_fit(self.model, self.data, settings)
        value, parameters = self.model.criterion(self.criterion, fit, self.data)
        trial = CriterionTrial(
            n_components=settings.n_components,
            log_likelihood=float(fit.log_likelihood),
            value=value,
            parameters=parameters,
            n_iter=n_iterations(fit),
            converged=bool(fit.converged),
            columns=self.model.columns([fit]),
        )
        return trial, fit

    def table(self, trials: list[CriterionTrial]) -> pd.DataFrame:
        """One row for each number of groups."""
        import pandas as pd

        return pd.DataFrame(
            [
                {
                    "n_components": trial.n_components,
                    "log_likelihood": trial.log_likelihood,
                    self.criterion: trial.value,
                    "parameters": trial.parameters,
                    "n_iter": trial.n_iter,
                    "converged": trial.converged,
                    **trial.columns,
                }
                for trial in trials
            ]
        )

    def best(self, table: pd.DataFrame) -> int:
        """Return the number with the smallest criterion."""
        return int(table["n_components"].iloc[int(np.argmin(table[self.criterion]))])

    def within_error(self, table: pd.DataFrame) -> None:
        """Return nothing: a criterion has no standard error."""
        return
