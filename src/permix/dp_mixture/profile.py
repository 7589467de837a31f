"""What is typical of each group of a mixture, as frames, as plain values and in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from permix.dp_mixture.fit import MixtureFit
from permix.errors import DataError
from permix.families import Multinomial

if TYPE_CHECKING:
    import pandas as pd

# In words, a group has at most so many features, and those that differ by less are not named.
MOST_NAMED = 4
LEAST_DIFFERENCE = 0.25


def group_profile(fit: MixtureFit, group: int) -> list[dict[str, Any]]:
    """Return the features of a group, the one that differs most from all rows first."""
    profile, names = fit.profile, fit.features
    differences = profile.differences[group]
    order = np.argsort(-np.abs(np.nan_to_num(differences)), kind="stable")
    return [
        {
            "feature": names[j],
            "typical": float(profile.typical[group, j]),
            "overall": float(profile.overall[j]),
            "difference": float(differences[j]),
            "entries": int(profile.entries[group, j]),
            "is_share": bool(profile.is_share[j]),
        }
        for j in order
    ]


def profile_frame(fit: MixtureFit) -> pd.DataFrame:
    """Return the profiles of all groups as one frame, by group and feature."""
    import pandas as pd

    rows = [{"group": k, **row} for k in range(fit.n_clusters) for row in group_profile(fit, k)]
    return pd.DataFrame(rows).drop(columns="is_share").set_index(["group", "feature"])


def in_words(group: dict[str, Any]) -> str:
    """Name what is most telling about a group; of categories the frequent ones, not the rare."""
    if "top_words" in group:
        return ", ".join(group["top_words"]) or "nothing: near the shares of all rows"
    said = []
    for row in group["profile"]:
        difference = row["difference"]
        telling = difference is not None and abs(difference) >= LEAST_DIFFERENCE
        if not telling or (row["is_share"] and difference < 0):
            continue
        if row["is_share"]:
            said.append(f"{row['feature']} {row['typical']:.0%} (overall {row['overall']:.0%})")
        else:
            said.append(f"{row['feature']} {row['typical']:.4g} ({difference:+.1f})")
    return ", ".join(said[:MOST_NAMED]) or "nothing: near the mean of all rows"


def typical_words(fit: MixtureFit, n: int) -> list[list[str]]:
    """Return the columns that each group of counts has more of than all rows, most typical first."""
    if not isinstance(fit.family, Multinomial):
        raise DataError(f"top_words is for the multinomial family; of the {fit.family.name} see profile()")
    if n < 1:
        raise DataError(f"n must be at least 1, got {n}")
    typical, overall = np.nan_to_num(fit.profile.typical), fit.profile.overall
    with np.errstate(divide="ignore", invalid="ignore"):
        gain = np.where(typical > 0, typical * np.log(typical / overall), 0.0)
    order = np.argsort(-gain, axis=1, kind="stable")[:, :n]
    # Shares of all rows in one group are those of all rows up to rounding.
    more = typical > overall * (1.0 + 1e-9)
    return [[fit.columns[j] for j in row if more[k, j]] for k, row in enumerate(order)]


def top_words(fit: MixtureFit, n: int) -> pd.DataFrame:
    """Return the columns that are most typical of each group of counts, None after the last of a group."""
    import pandas as pd

    found = typical_words(fit, n)
    width = min(n, len(fit.columns))
    rows = [[*words, *[None] * (width - len(words))] for words in found]
    index = pd.RangeIndex(fit.n_clusters, name="group")
    return pd.DataFrame(rows, index=index, columns=range(1, width + 1), dtype=object)
