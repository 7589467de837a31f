"""Which agents err more often than others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from permix.bayes_mallows.fit import BayesianMallowsFit
from permix.data.labels import Array

if TYPE_CHECKING:
    import pandas as pd

# Careless: so many times the rate of all and at least so large a rate, with this probability.
TIMES, LEAST, SURE = 2.0, 0.1, 0.95


def agent_rates(fit: BayesianMallowsFit) -> Array:
    """Return rates of each agent in every draw, (draws, agents); of neighbors, if errors are logistic."""
    arrays = fit.draws.arrays
    if "agent_error_rate" in arrays:
        rates = arrays["agent_error_rate"]
    else:
        rates = 1.0 / (1.0 + np.exp(arrays["agent_error_level"]))
    return np.asarray(rates.reshape(-1, rates.shape[-1]))


def careless_agents(rates: Array, counted: Array) -> Array:
    """Say which agents are; those who made no comparison never are."""
    usual = np.median(rates[:, counted], axis=1, keepdims=True) if counted.any() else 0.0
    return np.asarray(counted & ((rates > np.maximum(TIMES * usual, LEAST)).mean(axis=0) >= SURE))


def agent_error_rows(fit: BayesianMallowsFit) -> list[dict[str, Any]]:
    """Return what is known of the errors of each agent, who errs most first."""
    table, rates = fit.preferences, agent_rates(fit)
    rows = table.rows_of_agents()
    compared = np.diff(table.pair_indptr)[rows]
    low, high = np.quantile(rates, (0.05, 0.95), axis=0)
    columns = {
        "agent": table.agents[rows],
        "comparisons": compared,
        "rate": rates.mean(axis=0),
        "low": low,
        "high": high,
        "careless": careless_agents(rates, compared > 0),
    }
    order = np.argsort(-columns["rate"], kind="stable")
    values = [np.asarray(column)[order].tolist() for column in columns.values()]
    return [dict(zip(columns, row, strict=True)) for row in zip(*values, strict=True)]


def agent_error_table(fit: BayesianMallowsFit) -> pd.DataFrame:
    """Return the same as a data frame."""
    import pandas as pd

    return pd.DataFrame(agent_error_rows(fit))
