"""What is typical of groups: how each differs from all data, feature by feature."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]


class Profile(NamedTuple):
    """Means of features within groups, in the units of the data, and over all of the data.

    A feature is a column of numbers or counts, or one category: its mean is then a share.
    """

    typical: FloatArray  # (groups, features), NaN where a group has no entry
    overall: FloatArray  # (features,)
    spread: FloatArray  # (features,) standard deviation over all data
    entries: npt.NDArray[np.int64]  # (groups, features) how many cells are not missing
    is_share: npt.NDArray[np.bool_]  # (features,)

    @property
    def differences(self) -> FloatArray:
        """Difference of each group from all data, in standard deviations; 0 of what does not vary."""
        spread = np.where(self.spread > 0, self.spread, np.inf)
        return np.asarray((self.typical - self.overall) / spread)


def profile_of(
    features: FloatArray, labels: npt.NDArray[np.int64], n_groups: int, is_share: npt.NDArray[np.bool_]
) -> Profile:
    """Return the profile of groups of rows; NaN is a missing cell, which does not count."""
    present = ~np.isnan(features)
    known = np.where(present, features, 0.0)
    entries = np.zeros((n_groups, features.shape[1]), dtype=np.int64)
    sums = np.zeros((n_groups, features.shape[1]))
    np.add.at(entries, labels, present)
    np.add.at(sums, labels, known)
    n_entries = np.maximum(present.sum(axis=0), 1)
    overall = known.sum(axis=0) / n_entries
    spread = np.sqrt((np.where(present, features - overall, 0.0) ** 2).sum(axis=0) / n_entries)
    # A column that is constant up to rounding has no scale to measure by.
    spread[spread <= 1e-12 * np.abs(overall)] = 0.0
    typical = np.where(entries > 0, sums / np.maximum(entries, 1), np.nan)
    return Profile(typical, overall, spread, entries, is_share)
