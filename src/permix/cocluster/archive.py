"""What archives of :class:`permix.CoClustering` and :class:`permix.CoClusteringEnsemble` hold."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from permix.cocluster.bases import Bases
from permix.cocluster.cells.encoded_matrix import EncodedMatrix, encode_matrix
from permix.cocluster.cells.families import family_as_described
from permix.cocluster.ensemble import EnsembleFit
from permix.cocluster.fit import MIXED, BlockFit, CoClusterFit
from permix.cocluster.parameters import BlockParameters, CoClusterParameters, EnsembleParameters
from permix.data.cells import Cells
from permix.data.labels import Array
from permix.estimators.archive import Content, Saved, Schema
from permix.estimators.archive_parts import (
    DRAW_FACTS,
    ESTIMATE_FACTS,
    Record,
    draw_fields,
    draws_of,
    estimate_from,
    number,
    pack_draws,
    under,
)
from permix.estimators.checks import Made, Whole
from permix.estimators.fields import below, field, finite, not_negative, partition, positive, require
from permix.partitions import FiniteDirichlet, Gamma
from permix.partitions.mondrian import MondrianTree
from permix.partitions.point_estimate import PointEstimate

COUNTS = ("n_cuts", "n_row_groups", "n_column_groups", "n_blocks")
TREE = ("tree_axis", "tree_cut", "tree_time")
ESTIMATES = ("row_estimate", "column_estimate")
PLACED = {"row_estimate": "row_placed", "column_estimate": "column_placed"}
ALWAYS = {
    "row_labels": field("int", "rows", where=not_negative),
    "column_labels": field("int", "columns", where=not_negative),
    **{name: field("int", where=not_negative) for name in COUNTS[1:]},
    "log_likelihood": number(),
    "log_joint": number(),
}
ARRAYS = {
    **draw_fields(  # what only some priors have
        optional=True,
        n_cuts=field("int", where=not_negative),
        tree_axis=field("int", "nodes"),
        tree_cut=field("real", "nodes"),
        tree_time=field("real", "nodes"),
        pseudo_count=field("real", where=positive),
        row_concentration=field("real", where=positive),
        column_concentration=field("real", where=positive),
        row_memberships=field("int", "rows", "row_groups", where=not_negative),
        column_memberships=field("int", "columns", "column_groups", where=not_negative),
        block_cells=field("int", "row_groups", "column_groups", where=not_negative),
        block_sums=field("number", "row_groups", "column_groups", "slots", where=finite),
    ),
    **draw_fields(optional=False, **ALWAYS),
    "data/rows": field("int32", "cells", where=below("rows"), optional=True),
    "data/columns": field("int32", "cells", where=below("columns"), optional=True),
    "data/values": field("real or text", "cells", optional=True),
    "data/row_names": field("text", "rows", optional=True),
    "data/column_names": field("text", "columns", optional=True),
    "row_estimate": field("int", "rows", where=(below("rows"), partition), optional=True),
    "column_estimate": field("int", "columns", where=(below("columns"), partition), optional=True),
    "sampled_from": field("int64", 1, optional=True),
    "row_placed": field("bool", "rows", optional=True),
    "column_placed": field("bool", "columns", optional=True),
}
BASES = {
    "bases/base_rows": field("int32", "rows", "bases"),
    "bases/base_columns": field("int32", "columns", "bases"),
    "bases/base_shapes": field("int64", "bases", 2, where=positive),
    "bases/base_blocks": field("int32", "base_blocks", where=not_negative),
}
FACTS = {
    **DRAW_FACTS,
    "fitted_family": Made(
        lambda family: family,
        "a cell family",
        special=(None,),
        to_json=lambda family: family.describe(),
        from_json=family_as_described,
    ),
    **dict.fromkeys(ESTIMATES, Record(ESTIMATE_FACTS, optional=True)),
    "best_draw": Whole(special=(None,)),
}


# -- writing ---------------------------------------------------------------------------------------


def _pack(fit: BlockFit) -> Content:
    facts, arrays = pack_draws(fit.draws)
    facts |= {"best_draw": fit.best_draw, "fitted_family": None if fit.matrix is None else fit.matrix.family}
    for what in ESTIMATES:
        facts[what] = None
        if (estimate := getattr(fit, what)) is not None:
            facts[what] = {name: getattr(estimate, name) for name in ESTIMATE_FACTS}
            arrays[what] = np.asarray(estimate.labels)
            if estimate.placed is not None:
                arrays[PLACED[what]] = estimate.placed
    if (cells := fit.cells) is not None:
        values = cells.values.astype(str) if cells.is_text else cells.values
        arrays |= {"data/rows": cells.rows, "data/columns": cells.columns, "data/values": values}
        for name in ("row_names", "column_names"):
            if getattr(cells, name) is not None:
                arrays[f"data/{name}"] = np.array(getattr(cells, name))
    if isinstance(fit, CoClusterFit) and fit.sampled_from is not None:
        arrays["sampled_from"] = np.array([fit.sampled_from])
    if isinstance(fit, EnsembleFit):
        arrays |= {f"bases/{name}": array for name, array in fit.bases.pack().items()}
    return Content(facts, arrays)


# -- reading ---------------------------------------------------------------------------------------


def _build(saved: Saved) -> CoClusterFit:
    settings = saved.settings
    cells, matrix = _matrix(saved)
    require(matrix is not None, "cells")
    _check_draws(saved, settings.is_mixed)
    if settings.is_mixed:
        _check_memberships(under("draws/", saved.arrays), settings, matrix)
    parts = (settings, cells, matrix, draws_of(saved), *_estimates(saved))
    return _tried(CoClusterFit(*parts, sampled_from=_sampled_from(saved)))


def _sampled_from(saved: Saved) -> int | None:
    """Return how many rows there are, where those here are a sample of them."""
    if "sampled_from" not in saved.arrays:
        return None
    n_rows = int(saved.arrays["sampled_from"][0])
    require(n_rows >= saved.sizes["rows"] and saved.settings.prior in ("mfm", "dp"), "rows of a sample")
    return n_rows


def _build_ensemble(saved: Saved) -> EnsembleFit:
    _check_draws(saved, mixed=False)
    bases = Bases.unpack(under("bases/", saved.arrays))
    parts = (saved.settings, *_matrix(saved), draws_of(saved), *_estimates(saved))
    return _tried(EnsembleFit(*parts, bases))


def _tried(fit: Any) -> Any:
    """Compute what the command line and the estimator show, while a failure is still the file's."""
    fit.blocks  # noqa: B018
    if fit.matrix is not None:
        fit.block_parameters  # noqa: B018
    return fit


def _matrix(saved: Saved) -> tuple[Any, Any]:
    """Return the cells and the encoded matrix, or None and None."""
    data, family = under("data/", saved.arrays), saved.facts["fitted_family"]
    if family is None:
        require(not data, "cells")
        return None, None
    require({"rows", "columns", "values"} <= set(data), "cells")
    values = data["values"]
    texts = values.astype(object) if values.dtype.kind == "U" else values
    given = (data.get("row_names"), data.get("column_names"))
    names: list[Any] = [None if array is None else array.tolist() for array in given]
    shape = (saved.sizes["rows"], saved.sizes["columns"])
    cells = Cells(data["rows"], data["columns"], texts, shape, *names)
    # A fit writes cells in order, all of them filled, and names as they are.
    same = np.array_equal(cells.rows, data["rows"]) and np.array_equal(cells.columns, data["columns"])
    require(same and np.array_equal(cells.values, texts), "cells")
    kept = [None if known is None else list(known) for known in (cells.row_names, cells.column_names)]
    require(kept == names, "names")
    own = saved.settings.cell_family(cells.values).resolve(cells.values)
    # What a family takes from cells is taken from all of them.
    sampled = _sampled_from(saved) is not None and type(own) is type(family)
    require(sampled or own == family, "family")
    return cells, encode_matrix(family, cells.rows, cells.columns, cells.values, cells.shape)


def _check_draws(saved: Saved, mixed: bool) -> None:
    """Check that draws hold what the prior has, and that labels and numbers agree."""
    kept = under("draws/", saved.arrays)
    settings: BlockParameters = saved.settings
    mondrian = settings.prior == "mondrian"
    sometimes = {*TREE, "n_cuts"} if mondrian else set(MIXED) if mixed else set()
    if isinstance(settings, CoClusterParameters) and settings.learned_pseudo_count() is not None:
        sometimes |= {"pseudo_count"}
    if not mondrian:
        learned = zip(("row", "column"), settings.concentrations(), strict=True)
        sometimes |= {f"{what}_concentration" for what, value in learned if isinstance(value, Gamma)}
    require(set(kept) == {*ALWAYS, *sometimes}, "quantities")
    if mondrian:
        _check_trees(kept, settings.budget)
    elif not mixed:
        for what in ("row", "column"):
            labels, numbers = kept[f"{what}_labels"], kept[f"n_{what}_groups"].ravel().tolist()
            # Groups of a draw are numbered without gaps.
            for draw, n in zip(labels.reshape(-1, labels.shape[-1]), numbers, strict=True):
                n_here = int(draw.max()) + 1
                # Groups of rows may have nobody in a sample of them.
                fewer = what == "row" and _sampled_from(saved) is not None and n_here < n
                n = n_here if fewer else n
                require(n == n_here <= len(draw), f"{what} labels")
                require(np.bincount(draw, minlength=n).min() > 0, f"{what} labels")
        products = kept["n_row_groups"].astype(np.int64) * kept["n_column_groups"]
        require(np.array_equal(kept["n_blocks"], products), "n_blocks")


def _check_trees(kept: dict[str, Array], budget: float) -> None:
    """Build every tree, which checks it, and look whether labels are numbers of its intervals."""
    axis, cuts, times = (kept[name] for name in TREE)
    for at in np.ndindex(*axis.shape[:2]):
        tree = MondrianTree.from_preorder(axis[at], cuts[at], times[at], budget)
        require(int(kept["row_labels"][at].max()) <= len(tree.row_cuts()), "row labels")
        require(int(kept["column_labels"][at].max()) <= len(tree.column_cuts()), "column labels")
        numbers = (tree.n_cuts, *tree.count_groups(kept["row_labels"][at], kept["column_labels"][at]))
        for name, count in zip(COUNTS, numbers, strict=True):
            require(kept[name][at] == count, name)


def _check_memberships(kept: dict[str, Array], settings: CoClusterParameters, matrix: EncodedMatrix) -> None:
    """Every filled cell is in one group of its row, one of its column, and the block of both."""
    priors = settings.line_priors()
    numbers = tuple(prior.n for prior in priors if isinstance(prior, FiniteDirichlet))
    cells, sums, n_cells = kept["block_cells"], kept["block_sums"], matrix.n_cells
    require(cells.shape[2:] == numbers and bool(np.all(cells <= n_cells)), "blocks")
    lines = (matrix.by_row, matrix.by_column)
    for axis, (what, line, n) in enumerate(zip(("row", "column"), lines, numbers, strict=True)):
        filled = np.diff(line.starts)
        counts = kept[f"{what}_memberships"]
        require(bool(np.all(counts <= n_cells) and np.all(counts.sum(axis=-1) == filled)), "memberships")
        labels, most = kept[f"{what}_labels"], counts.argmax(axis=-1)
        fitting = np.array_equal(most[..., filled > 0], labels[..., filled > 0])
        require(fitting and int(labels.max()) < n, f"{what} labels")
        in_cluster = cells.sum(axis=3 - axis)  # the axis of the other side is summed over
        require(np.array_equal(counts.sum(axis=2), in_cluster), "blocks")
        n_used = (in_cluster > 0).sum(axis=-1)
        require(np.array_equal(kept[f"n_{what}_groups"], n_used), f"n_{what}_groups")
    require(np.array_equal(kept["n_blocks"], (cells > 0).sum(axis=(2, 3))), "n_blocks")
    family = matrix.family
    require(sums.shape[-1] == family.n_slots, "blocks")
    if family.has_levels:
        require(sums.dtype.kind in "iu" and bool(np.all(sums >= 0) and np.all(sums <= n_cells)), "blocks")
        require(np.array_equal(sums.sum(axis=-1), cells), "blocks")
        counted = np.bincount(matrix.by_row.codes, minlength=family.n_slots)
        require(bool(np.all(sums.sum(axis=(2, 3)) == counted)), "blocks")
        return
    require(sums.dtype == np.float64, "blocks")
    codes = matrix.by_row.codes
    # Numbers are added and taken out again and again, so their sums are known up to rounding.
    for slot, values in enumerate((codes, codes**2)):
        error = np.abs(sums[..., slot].sum(axis=(2, 3)) - values.sum())
        require(bool(np.all(error <= 1e-6 * (np.abs(values).sum() + 1.0))), "blocks")
    totals, squares = sums[..., 0], sums[..., 1]
    require(bool(np.all((cells > 0) | ((totals == 0) & (squares == 0)))), "blocks")
    require(bool(np.all(squares * cells >= totals**2 - 1e-6 * (totals**2 + 1.0))), "blocks")
    if bool(np.all(codes >= 0)):
        require(bool(np.all(totals >= -1e-6 * (codes.sum() + 1.0))), "blocks")


def _estimates(saved: Saved) -> tuple[PointEstimate | None, PointEstimate | None, int | None]:
    """Return the point estimates of a grid, or the draw that stands for a Mondrian."""
    facts, arrays = saved.facts, saved.arrays
    best = facts["best_draw"]
    if saved.settings.prior == "mondrian":
        require(best is not None and best < saved.sizes["chains"] * saved.sizes["draws"], "best draw")
        there = (facts[side] or side in arrays or PLACED[side] in arrays for side in ESTIMATES)
        require(not any(there), "point estimate")
        return None, None, best
    require(best is None, "best draw")
    require(all(facts[side] and side in arrays for side in ESTIMATES), "point estimate")
    rows, columns = (
        dataclasses.replace(estimate_from(arrays[side], facts[side]), placed=arrays.get(PLACED[side]))
        for side in ESTIMATES
    )
    return rows, columns, None


SCHEMA = Schema(parameters=CoClusterParameters, pack=_pack, build=_build, arrays=ARRAYS, facts=FACTS)
ENSEMBLE_SCHEMA = Schema(
    parameters=EnsembleParameters, pack=_pack, build=_build_ensemble, arrays={**ARRAYS, **BASES}, facts=FACTS
)
