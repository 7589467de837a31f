"""Does a co-clustering fit at all? Margins of replicated matrices: means of rows and of columns, levels."""

from __future__ import annotations

from typing import Any

import numpy as np

from permix.cocluster.block_predict import BlockDraw, block_sums
from permix.cocluster.cells.encoded_matrix import EncodedMatrix
from permix.cocluster.fit import BlockFit
from permix.cocluster.mixed_predict import MixedDraw
from permix.cocluster.simple import simple_predictives
from permix.data.attributes import item_labels
from permix.data.labels import Array
from permix.errors import DataError
from permix.estimators.checks import Whole
from permix.posterior.checks import FEWEST_REPLICATES, Aspect, FitChecks, compare, replicated
from permix.runtime.seeds import generator


def fit_checks(fit: BlockFit, data: Any, n_replicates: int, random_state: Any) -> FitChecks:
    """Compare the filled cells with replicated ones, each time from the blocks of one draw."""
    if data is not None:
        raise DataError("checks are about the matrix that was fitted, which the fit has: leave X out")
    n_replicates = Whole(FEWEST_REPLICATES)("n_replicates", n_replicates)
    matrix, predictive = fit.known_matrix, fit.predictive
    draws = predictive.draws
    rows, columns = matrix.rows, matrix.by_row.others
    margins = Margins(fit, rows, columns)

    def draw(stream: np.random.Generator) -> dict[str, Aspect]:
        chosen = draws[int(stream.integers(len(draws)))]
        if isinstance(chosen, MixedDraw):
            sums, block = chosen.blocks, _mixed_blocks(chosen, rows, columns, stream)
            n, totals = sums.n.ravel(), sums.sums.reshape(-1, sums.sums.shape[-1])
        else:
            assert isinstance(chosen, BlockDraw)
            n, totals = block_sums(matrix, chosen)
            block = chosen.table[chosen.row_classes[rows], chosen.column_classes[columns]]
        return margins.of(predictive.family_of(chosen).draw(stream, n, totals, block))

    seen = margins.of(matrix.by_row.codes)
    return compare(seen, replicated(draw, n_replicates, generator(random_state)), matrix.n_rows)


def _mixed_blocks(draw: MixedDraw, rows: Array, columns: Array, rng: np.random.Generator) -> Array:
    """Draw the groups of every cell anew, by the shares of its row and its column."""
    groups = []
    for shares, lines in ((draw.rows, rows), (draw.columns, columns)):
        upto = np.cumsum(shares, axis=1)[lines]
        groups.append((rng.random(len(lines))[:, None] > upto[:, :-1]).sum(axis=1))
    return np.asarray(groups[0] * draw.columns.shape[1] + groups[1])


class Margins:
    """Means of rows and columns, and how often each level occurs."""

    def __init__(self, fit: BlockFit, rows: Array, columns: Array) -> None:
        cells = fit.known_cells
        self.family, self.shape = fit.family, fit.shape
        self.lines = {"row means": rows, "column means": columns}
        named = zip(("row", "column"), (cells.row_names, cells.column_names), self.shape, strict=True)
        self.names = [
            list(names) if names is not None else [f"{what} {number + 1}" for number in range(n)]
            for what, names, n in named
        ]
        if fit.known.items:  # statements are told by their texts, not by their numbers
            self.names[1] = item_labels(self.names[1], fit.known.items)
        levels = getattr(fit.family, "levels", None) if fit.family.has_levels else None
        self.levels = [str(level) for level in levels or ()]
        self.value_of = np.empty(0)
        if levels:
            counts = np.bincount(fit.known_matrix.by_row.codes, minlength=len(levels))
            numeric = fit.family.levels_are_numbers
            # Levels that are text have no mean: how often is the most common one found?
            usual = (np.arange(len(levels)) == counts.argmax()).astype(float)
            self.value_of = np.array(levels, dtype=float) if numeric else usual
            if not numeric:
                usual_name = self.levels[int(counts.argmax())]
                self.lines = {
                    f"{what.split()[0]} shares of {usual_name}": at for what, at in self.lines.items()
                }

    def of(self, codes: Array) -> dict[str, Aspect]:
        """Return the margins of a matrix with these codes in its filled cells."""
        found = {}
        values = self.value_of[codes] if self.levels else self.family.values(codes)
        for (name, at), names, n in zip(self.lines.items(), self.names, self.shape, strict=True):
            filled = np.bincount(at, minlength=n)
            with np.errstate(invalid="ignore"):
                found[name] = Aspect(names, np.bincount(at, values, minlength=n) / filled)
        if self.levels:
            counts = np.bincount(codes, minlength=len(self.levels))
            found["levels"] = Aspect(self.levels, counts / len(codes))
        else:
            found["cells"] = Aspect(["mean", "spread"], np.array([values.mean(), values.std()]))
        return found


def baselines(fit: BlockFit, data: EncodedMatrix, known: Any) -> dict[str, Array]:
    """Return ln p of new rows if all cells were one block, if every column were one, if levels were alike."""
    if known is not None:
        raise DataError("the fit has the matrix that simpler models are fitted to: leave fitted_to out")
    matrix, family = fit.known_matrix, fit.family
    found = {name: simple.row_log_evidence(data) for name, simple in simple_predictives(matrix).items()}
    if family.has_levels:
        found["uniform"] = -np.diff(data.by_row.starts) * float(np.log(family.n_slots))
    return found
