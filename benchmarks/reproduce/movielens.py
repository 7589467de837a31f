"""MovieLens 1M as the paper cuts it: the 200 most rated films, integer ratings, two thirds for training."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from permix.data.preferences import Preferences
from permix.datasets import load_movielens

N_FILMS, N_TRAIN, N_VALIDATION = 200, 3986, 1994


@dataclass(frozen=True)
class Films:
    """The data, and how many users each rule leaves."""

    train: Preferences
    validation: Preferences
    n_rated: int
    n_kept: int
    mean_rated: float

    @property
    def remark(self) -> str:
        """How the users were counted."""
        return (
            f"{self.n_rated} users rated at least one of the {N_FILMS} films; {self.n_kept} gave two "
            "different ratings, so that something is preferred to something. The paper says 5980 for "
            f"either rule, which neither gives. Here {len(self.train)} and {len(self.validation)} of the "
            f"{self.n_kept} are drawn at random."
        )


def films(n_train: int = N_TRAIN, n_validation: int = N_VALIDATION, seed: int = 0) -> Films:
    """Load and split the ratings."""
    loaded = load_movielens("1m", download=False)
    ratings = loaded.data.tocsc()
    often = np.argsort(-np.diff(ratings.indptr), kind="stable")[:N_FILMS]
    top = ratings[:, often].tocsr()
    names = [loaded.column_names[film] for film in often]
    top = top[np.diff(top.indptr) > 0]
    lowest, highest = (extreme.reduceat(top.data, top.indptr[:-1]) for extreme in (np.minimum, np.maximum))
    kept = Preferences.from_ratings(top[lowest < highest], items=names)
    chosen = np.random.default_rng(seed).permutation(len(kept))[: n_train + n_validation]
    rated = np.diff(kept.level_indptr)
    return Films(
        kept[np.sort(chosen[:n_train])],
        kept[np.sort(chosen[n_train:])],
        top.shape[0],
        len(kept),
        float(rated.mean()),
    )
