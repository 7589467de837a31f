"""Groups of posterior draws linked to those of a point estimate, by the members they have in common."""

from __future__ import annotations

import dataclasses
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


class Groups(Protocol):
    """Groups of some draws, one after another, and who is in them."""

    @property
    def sizes(self) -> Array:
        """Members of each group."""

    @property
    def labels(self) -> Array:
        """Group of everybody within each draw, (draws, members)."""

    @property
    def n_draws(self) -> int:
        """Number of draws."""

    def of_draw(self, d: int) -> slice:
        """Groups of draw ``d``."""


@dataclasses.dataclass(frozen=True)
class Overlap:
    """Links from the clusters of all draws, row by row, to the estimated ones.

    Labels of draws mean nothing by themselves. What a draw says about an estimated cluster it says through
    the agents they have in common: a cluster of a draw speaks for the estimated one it is most like, by the
    cosine similarity of the two sets, n_common² / (n_1 n_2). All results go through these links. (Averaging
    over agents instead blurs groups that overlap: where it is unsure who belongs where, members of all groups
    are in all.)
    """

    linked: Array  # int32 (rows,): the estimated cluster that each row speaks for
    counts: Array  # int64 (rows,): agents they have in common
    nearest: Array  # int64 (draws, estimated clusters): the row of the draw that is most like it
    in_nearest: Array  # int64 (draws, estimated clusters): agents they have in common

    @classmethod
    def of(cls, clusters: Groups, labels: Array) -> Overlap:
        """Compare all draws with the estimated ``labels`` of the agents."""
        sizes = np.bincount(labels)
        n_estimated = len(sizes)
        linked, counts, nearest, in_nearest = [], [], [], []
        for d in range(clusters.n_draws):
            here = clusters.of_draw(d)
            n = here.stop - here.start
            cells = clusters.labels[d].astype(np.int64) * n_estimated + labels
            common = np.bincount(cells, minlength=n * n_estimated).reshape(n, n_estimated)
            likeness = common.astype(float) ** 2 / (clusters.sizes[here][:, None] * sizes)
            best = likeness.argmax(axis=1)
            linked.append(best.astype(np.int32))
            counts.append(common[np.arange(n), best])
            row = likeness.argmax(axis=0)
            nearest.append(here.start + row)
            in_nearest.append(common[row, np.arange(n_estimated)])
        rows = np.array(nearest, dtype=np.int64), np.array(in_nearest, dtype=np.int64)
        return cls(np.concatenate(linked), np.concatenate(counts), *rows)

    def of_estimated(self, e: int) -> tuple[Array, Array]:
        """Rows that speak for ``e``, and the agents each has in common with it.

        A cluster for which none speaks, because all that are like it are more like another, is spoken for by
        the nearest of every draw.
        """
        rows = np.flatnonzero(self.linked == e)
        if len(rows):
            return rows, self.counts[rows]
        return self.nearest[:, e], self.in_nearest[:, e]
