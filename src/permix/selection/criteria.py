"""Numbers of groups judged by the rows that were fitted, at a price for every parameter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from permix.estimators.selectable import Selectable
from permix.selection.held_out import LAST, finished_fit, n_iterations

if TYPE_CHECKING:
    import pandas as pd


# A difference of criteria that leaves no doubt.
CLEAR_GAP = 10.0


class ByCriterion:
    """Judge by a criterion on all data: all agents are fitted, and nobody is held out."""

    n_validation = n_folds = 0

    def __init__(self, model: Selectable, data: Any, criterion: str) -> None:
        self.model, self.data, self.criterion = model, data, criterion
        self.n_train = self.fewest = int(data.n_agents)
        self.fit: Any = None  # the latest

    def trial(self, settings: Any) -> tuple[dict[str, Any], Any]:
        """Fit all data; return a row of the table, and the fit."""
        self.fit = fit = finished_fit(self.model, self.data, settings, self.fit)
        value, parameters = self.model.criterion(self.criterion, fit, self.data)
        row = {
            "n_groups": settings.n_components,
            "log_likelihood": float(fit.log_likelihood),
            self.criterion: value,
            "parameters": parameters,
            "n_iter": n_iterations(fit),
            "converged": bool(fit.converged),
            **self.model.columns([fit]),
        }
        return row, fit

    def table(self, trials: list[dict[str, Any]]) -> pd.DataFrame:
        """One row for each number of groups."""
        import pandas as pd

        return pd.DataFrame(trials)

    def is_enough(self, trials: list[dict[str, Any]]) -> bool:
        """Say whether the last numbers are clearly worse than the best."""
        values = np.array([trial[self.criterion] for trial in trials])
        return len(values) > LAST and bool((values[-LAST:] > values.min() + CLEAR_GAP).all())

    def best(self, table: pd.DataFrame) -> int:
        """Return the number with the smallest criterion."""
        return int(table["n_groups"][int(np.argmin(table[self.criterion]))])

    def within_error(self, table: pd.DataFrame) -> None:
        """Return nothing: a criterion has no standard error."""
