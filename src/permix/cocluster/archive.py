"""Archives of co-clusterings and ensembles: written from a fit, and checked before they become one."""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np

from permix.cocluster.bases import Bases
from permix.cocluster.cells.encoded_matrix import EncodedMatrix, encode_matrix
from permix.cocluster.cells.families import CellFamily, cell_family_from_description
from permix.cocluster.ensemble import EnsembleFit
from permix.cocluster.fit import MIXED, BlockFit, CoClusterFit
from permix.cocluster.settings import BlockSettings, CoClusterSettings, EnsembleSettings, is_number
from permix.data.cells import Cells
from permix.data.labels import Array
from permix.dp_mixture.archive import ESTIMATE, STATISTICS, _under
from permix.estimators.archive_checks import is_whole, require
from permix.files import write_archive
from permix.partitions import FiniteDirichlet, Gamma, prior_from_description
from permix.partitions.mondrian import MondrianTree
from permix.partitions.point_estimate import PointEstimate
from permix.sampling import Draws

KIND, ENSEMBLE_KIND = "CoClustering", "CoClusteringEnsemble"
WHOLE = ("n_draws", "n_burn_in", "n_thin", "n_chains")
NUMBERS = ("pseudo_count", "budget")
PLAIN = (*WHOLE, *NUMBERS, "prior", "loss", "n_jobs", "progress")
OWN = ("n_row_clusters", "n_column_clusters", "membership")
COUNTS = ("n_cuts", "n_row_clusters", "n_column_clusters", "n_blocks")
OWN_OF_ENSEMBLES = ("n_base", "label_pseudo_count", "label_cells")
SCALARS = ("n_row_clusters", "n_column_clusters", "n_blocks", "log_likelihood", "log_joint")
TREE = ("tree_axis", "tree_cut", "tree_time")


def save_cocluster(fit: BlockFit, path: str | os.PathLike[str]) -> None:
    """Write a fitted co-clustering or ensemble; :func:`permix.load` reads it."""
    draws = fit.draws
    arrays = {f"draws/{name}": array for name, array in draws.arrays.items()}
    arrays |= {f"statistics/{name}": np.asarray(draws.statistics[name]) for name in STATISTICS}
    manifest: dict[str, Any] = {
        "kind": KIND,
        "settings": _described(fit.settings),
        "shape": list(fit.shape),
        "best_draw": fit.best_draw,
        "moves_done": list(draws.statistics["moves"]),
        "seeds": list(draws.seeds),
        "interrupted": draws.interrupted,
    }
    for what, estimate in (("row", fit.row_estimate), ("column", fit.column_estimate)):
        if estimate is not None:
            arrays[f"{what}_estimate"] = np.asarray(estimate.labels)
            manifest[f"{what}_estimate"] = {name: getattr(estimate, name) for name in ESTIMATE}
    if fit.cells is not None:
        manifest["fitted_family"] = fit.family.describe()
        arrays |= _packed(fit.cells)
    if isinstance(fit, EnsembleFit):
        manifest["kind"] = ENSEMBLE_KIND
        arrays |= {f"bases/{name}": array for name, array in fit.bases.pack().items()}
    write_archive(path, manifest, arrays)


def cocluster_from_archive(manifest: dict[str, Any], arrays: dict[str, Array]) -> CoClusterFit:
    """Check what the file says, piece by piece, and put the fit together.

    Compiled code does not check anything, so nothing may reach it that a fit could not have written.
    """
    settings = _settings(manifest["settings"], CoClusterSettings)
    cells, matrix = _matrix(manifest, arrays, settings)
    draws = _draws(manifest, arrays, settings, settings.is_mixed)
    if settings.is_mixed:
        _check_memberships(draws.arrays, settings, matrix)
    _require_arrays(manifest, arrays, draws)
    fit = CoClusterFit(settings, cells, matrix, draws, *_estimates(manifest, arrays, settings))
    _tried(fit)
    return fit


def ensemble_from_archive(manifest: dict[str, Any], arrays: dict[str, Array]) -> EnsembleFit:
    """Check what the file says, piece by piece, and put the ensemble together."""
    settings = _settings(manifest["settings"], EnsembleSettings)
    cells, matrix = _matrix(manifest, arrays, settings) if "fitted_family" in manifest else (None, None)
    draws = _draws(manifest, arrays, settings, False)
    _require_arrays(manifest, arrays, draws)
    bases = Bases.unpack(_under("bases/", arrays))
    require([bases.n_rows, bases.n_columns] == manifest["shape"], "bases")
    fit = EnsembleFit(settings, cells, matrix, draws, *_estimates(manifest, arrays, settings), bases)
    _tried(fit)
    return fit


def _tried(fit: BlockFit) -> None:
    """Compute what the command line and the estimator show, while a failure is still the file's."""
    fit.blocks  # noqa: B018
    if fit.matrix is not None:
        fit.block_parameters  # noqa: B018


# -- settings ------------------------------------------------------------------------------------


def _described(settings: BlockSettings) -> dict[str, Any]:
    described: dict[str, Any] = {name: getattr(settings, name) for name in PLAIN}
    concentrations = settings.concentrations()
    described["concentration"] = [
        value.describe() if isinstance(value, Gamma) else float(value) for value in concentrations
    ]
    family = settings.family
    described["family"] = family.describe() if isinstance(family, CellFamily) else family
    described["random_state"] = settings.random_state if is_whole(settings.random_state) else None
    if isinstance(settings, CoClusterSettings):
        described |= {name: getattr(settings, name) for name in OWN}
    if isinstance(settings, EnsembleSettings):
        described |= {name: getattr(settings, name) for name in OWN_OF_ENSEMBLES}
        described["base"] = None if settings.base is None else _described(settings.base)
    return described


def _settings(found: Any, cls: Any) -> Any:
    require(isinstance(found, dict), "settings")
    extra = OWN if cls is CoClusterSettings else (*OWN_OF_ENSEMBLES, "base")
    require(set(found) == {*PLAIN, *extra, "concentration", "family", "random_state"}, "settings")
    for name in WHOLE:
        require(is_whole(found[name]) and found[name] >= 0, name)
    for name in NUMBERS:
        require(is_number(found[name]), name)
    for name in ("prior", "loss"):
        require(isinstance(found[name], str), name)
    require(found["n_jobs"] is None or is_whole(found["n_jobs"]), "n_jobs")
    seed = found["random_state"]
    require(seed is None or (is_whole(seed) and seed >= 0), "random_state")
    kept = dict(found)
    pair = found["concentration"]
    require(isinstance(pair, list) and len(pair) == 2, "concentration")
    values = [value if is_number(value) else prior_from_description(value) for value in pair]
    require(all(is_number(value) or isinstance(value, Gamma) for value in values), "concentration")
    kept["concentration"] = values[0] if values[0] == values[1] else tuple(values)
    family = found["family"]
    if not isinstance(family, str):
        kept["family"] = _family(family)
    if cls is EnsembleSettings and found["base"] is not None:
        kept["base"] = _settings(found["base"], CoClusterSettings)
    return cls(**kept)


def _family(description: Any) -> CellFamily:
    require(isinstance(description, dict), "family")
    family = cell_family_from_description(description)
    require(json.dumps(family.describe()) == json.dumps(description), "family")
    return family


# -- the matrix ----------------------------------------------------------------------------------


def _packed(cells: Cells) -> dict[str, Array]:
    values = cells.values.astype(str) if cells.is_text else cells.values
    arrays = {"data/rows": cells.rows, "data/columns": cells.columns, "data/values": values}
    for what, names in (("row", cells.row_names), ("column", cells.column_names)):
        if names is not None:
            arrays[f"data/{what}_names"] = np.array(names)
    return arrays


def _matrix(
    manifest: dict[str, Any], arrays: dict[str, Array], settings: BlockSettings
) -> tuple[Cells, EncodedMatrix]:
    data = _under("data/", arrays)
    rows, columns, values = data["rows"], data["columns"], data["values"]
    for places in (rows, columns):
        require(places.dtype == np.int32 and places.shape == (len(values),) and len(values) > 0, "cells")
    require(values.dtype == np.float64 or values.dtype.kind == "U", "values")
    names: list[Any] = []
    for what, size in zip(("row", "column"), _shape(manifest, arrays), strict=True):
        found = data.get(f"{what}_names")
        require(found is None or (found.dtype.kind == "U" and found.shape == (size,)), f"{what} names")
        names.append(None if found is None else found.tolist())
    shape = _shape(manifest, arrays)
    texts = values.astype(object) if values.dtype.kind == "U" else values
    cells = Cells(rows, columns, texts, shape, names[0], names[1])
    # A fit writes cells in order, all of them filled.
    same = np.array_equal(cells.rows, rows) and np.array_equal(cells.columns, columns)
    require(same and np.array_equal(cells.values, texts), "cells")
    require(all(kept is None or list(kept) == given for kept, given in _pairs(cells, names)), "names")
    family = _family(manifest["fitted_family"])
    require(settings.cell_family().resolve(cells.values) == family, "family")
    return cells, encode_matrix(family, cells.rows, cells.columns, cells.values, cells.shape)


def _pairs(cells: Cells, names: list[Any]) -> list[tuple[Any, Any]]:
    return [(cells.row_names, names[0]), (cells.column_names, names[1])]


def _shape(manifest: dict[str, Any], arrays: dict[str, Array]) -> tuple[int, int]:
    """Rows and columns: as many as have labels, so that no file can ask for more room than it takes."""
    sizes = tuple(arrays[f"draws/{what}_labels"].shape[-1] for what in ("row", "column"))
    require(manifest["shape"] == list(sizes) and min(sizes) > 0, "shape")
    return sizes[0], sizes[1]


# -- draws ---------------------------------------------------------------------------------------


def _draws(manifest: dict[str, Any], arrays: dict[str, Array], settings: BlockSettings, mixed: bool) -> Draws:
    kept = _under("draws/", arrays)
    sizes = _shape(manifest, arrays)
    mondrian = settings.prior == "mondrian"
    over = kept["row_labels"].shape[:2]
    require(len(over) == 2 and min(over) > 0, "draws")
    for what, size in zip(("row", "column"), sizes, strict=True):
        labels = kept[f"{what}_labels"]
        require(labels.dtype.kind in "iu" and labels.shape == (*over, size), f"{what} labels")
        require(bool(labels.min() >= 0) and int(labels.max()) < 2**31, f"{what} labels")
        if not mondrian:
            _check_grid_labels(labels, kept[f"n_{what}_clusters"], mixed, what)
    scalars = set(SCALARS) | ({"n_cuts"} if mondrian else set())
    if not mondrian:
        for what, value in zip(("row", "column"), settings.concentrations(), strict=True):
            if isinstance(value, Gamma):
                scalars.add(f"{what}_concentration")
                require(bool(np.all(kept[f"{what}_concentration"] > 0)), "concentration")
    expected = scalars | {"row_labels", "column_labels"} | set(TREE if mondrian else MIXED if mixed else ())
    require(set(kept) == expected, "quantities")
    for name in scalars:
        values = kept[name]
        require(values.dtype.kind in "iuf" and values.shape == over, name)
        require(bool(np.all(np.isfinite(values))), name)
    if mondrian:
        _check_trees(kept, float(settings.budget))
    elif not mixed:
        products = kept["n_row_clusters"].astype(np.int64) * kept["n_column_clusters"]
        require(np.array_equal(kept["n_blocks"], products), "n_blocks")
    return _with_statistics(manifest, arrays, kept, over)


def _check_grid_labels(labels: Array, numbers: Array, mixed: bool, what: str) -> None:
    """Clusters of a draw are numbered without gaps, unless a membership chose the label."""
    if mixed:
        return
    require(numbers.dtype.kind in "iu" and numbers.shape == labels.shape[:2], f"n_{what}_clusters")
    for draw, n in zip(labels.reshape(-1, labels.shape[-1]), numbers.ravel().tolist(), strict=True):
        require(int(draw.max()) < len(draw), f"{what} labels")
        require(n == int(draw.max()) + 1 and np.bincount(draw, minlength=n).min() > 0, f"{what} labels")


def _check_trees(kept: dict[str, Array], budget: float) -> None:
    """Build every tree, which checks it, and look whether labels are numbers of its intervals."""
    axis, cuts, times = (kept[name] for name in TREE)
    over = kept["row_labels"].shape[:2]
    require(axis.dtype.kind == "i" and axis.ndim == 3 and axis.shape[:2] == over, "trees")
    for places in (cuts, times):
        require(places.dtype == np.float64 and places.shape == axis.shape, "trees")
    for at in np.ndindex(*over):
        tree = MondrianTree.from_preorder(axis[at], cuts[at], times[at], budget)
        require(int(kept["row_labels"][at].max()) <= len(tree.row_cuts()), "row labels")
        require(int(kept["column_labels"][at].max()) <= len(tree.column_cuts()), "column labels")
        numbers = (tree.n_cuts, *tree.count_kinds(kept["row_labels"][at], kept["column_labels"][at]))
        for name, number in zip(COUNTS, numbers, strict=True):
            require(kept[name][at] == number, name)


def _check_memberships(kept: dict[str, Array], settings: CoClusterSettings, matrix: EncodedMatrix) -> None:
    """Every filled cell is in one cluster of its row, one of its column, and the block of both."""
    priors = settings.line_priors()
    numbers = tuple(prior.n for prior in priors if isinstance(prior, FiniteDirichlet))
    over = kept["row_labels"].shape[:2]
    cells, sums = kept["block_cells"], kept["block_sums"]
    require(cells.dtype.kind in "iu" and cells.shape == (*over, *numbers), "blocks")
    n_cells = matrix.n_cells
    require(bool(np.all(cells >= 0) and np.all(cells <= n_cells)), "blocks")
    lines = (matrix.by_row, matrix.by_column)
    for axis, (what, line, n) in enumerate(zip(("row", "column"), lines, numbers, strict=True)):
        filled = np.diff(line.starts)
        counts = kept[f"{what}_memberships"]
        require(counts.dtype.kind in "iu" and counts.shape == (*over, len(filled), n), "memberships")
        require(bool(np.all(counts >= 0) and np.all(counts <= n_cells)), "memberships")
        require(bool(np.all(counts.sum(axis=-1) == filled)), "memberships")
        labels, most = kept[f"{what}_labels"], counts.argmax(axis=-1)
        require(np.array_equal(most[..., filled > 0], labels[..., filled > 0]), f"{what} labels")
        require(int(labels.max()) < n, f"{what} labels")
        in_cluster = cells.sum(axis=3 - axis)  # the axis of the other side is summed over
        require(np.array_equal(counts.sum(axis=2), in_cluster), "blocks")
        n_used = (in_cluster > 0).sum(axis=-1)
        require(np.array_equal(kept[f"n_{what}_clusters"], n_used), f"n_{what}_clusters")
    require(np.array_equal(kept["n_blocks"], (cells > 0).sum(axis=(2, 3))), "n_blocks")
    family = matrix.family
    require(sums.dtype.kind in "iuf" and sums.shape == (*cells.shape, family.n_slots), "blocks")
    require(bool(np.all(np.isfinite(sums))), "blocks")
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


def _with_statistics(
    manifest: dict[str, Any], arrays: dict[str, Array], kept: dict[str, Array], over: tuple[int, ...]
) -> Draws:
    moves, seeds = manifest["moves_done"], manifest["seeds"]
    require(isinstance(moves, list) and all(isinstance(name, str) for name in moves), "moves")
    require(isinstance(seeds, list) and all(isinstance(seed, dict) for seed in seeds), "seeds")
    require(isinstance(manifest["interrupted"], bool), "interrupted")
    statistics = {name: arrays[f"statistics/{name}"] for name in STATISTICS}
    for name in STATISTICS:
        numbers = statistics[name]
        require(numbers.dtype.kind in "iu" and numbers.shape == (over[0], len(moves)), name)
        require(bool(np.all(numbers >= 0)), name)
    return Draws(
        arrays=kept,
        statistics={"moves": moves, **statistics},
        interrupted=manifest["interrupted"],
        n_draws=over[1],
        seeds=tuple(seeds),
    )


def _require_arrays(manifest: dict[str, Any], arrays: dict[str, Array], draws: Draws) -> None:
    """Refuse arrays that nothing reads."""
    known = {f"draws/{name}" for name in draws.arrays} | {f"statistics/{name}" for name in STATISTICS}
    if "fitted_family" in manifest:
        known |= {"data/rows", "data/columns", "data/values"}
        known |= {name for name in ("data/row_names", "data/column_names") if name in arrays}
    known |= {f"{what}_estimate" for what in ("row", "column") if f"{what}_estimate" in manifest}
    if manifest["kind"] == ENSEMBLE_KIND:
        known |= {name for name in arrays if name.startswith("bases/")}
    require(set(arrays) == known, "arrays")


def _estimates(
    manifest: dict[str, Any], arrays: dict[str, Array], settings: BlockSettings
) -> tuple[PointEstimate | None, PointEstimate | None, int | None]:
    best = manifest["best_draw"]
    if settings.prior == "mondrian":
        n_all = int(np.prod(arrays["draws/row_labels"].shape[:2]))
        require(is_whole(best) and 0 <= best < n_all, "best draw")
        return None, None, best
    require(best is None, "best draw")
    sizes = _shape(manifest, arrays)
    rows = _estimate(manifest["row_estimate"], arrays["row_estimate"], sizes[0])
    return rows, _estimate(manifest["column_estimate"], arrays["column_estimate"], sizes[1]), None


def _estimate(found: Any, labels: Array, n: int) -> PointEstimate:
    require(labels.dtype.kind in "iu" and labels.shape == (n,), "point estimate")
    require(int(labels.min()) >= 0 and int(labels.max()) < n, "point estimate")
    sizes = np.bincount(labels)
    require(bool(sizes.min() > 0), "point estimate")
    require(isinstance(found, dict) and set(found) == set(ESTIMATE), "point estimate")
    require(found["loss"] in ("vi", "binder") and is_whole(found["n_runs"]), "point estimate")
    for name in ("expected_loss", "best_draw_loss"):
        require(isinstance(found[name], float), "point estimate")
    return PointEstimate(labels=labels, n_clusters=len(sizes), sizes=sizes, **found)
