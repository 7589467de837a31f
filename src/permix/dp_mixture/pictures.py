"""Pictures of a fitted mixture: the clusters, how many there are, and who belongs together."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from permix.angle.fit import AngleFit
from permix.angle.pictures import angle_overview
from permix.cocluster.fit import BlockFit
from permix.cocluster.pictures import blocks
from permix.dp_mallows.fit import DPMallowsFit
from permix.dp_mallows.pictures import kinds
from permix.dp_mixture.fit import MixtureFit
from permix.errors import DataError
from permix.families import Categorical
from permix.families.multinomial_jit import Counts
from permix.mallows.fit import MallowsFit
from permix.mallows.pictures import components
from permix.partitions import similarity_matrix
from permix.plots.style import COLOURS, MARKERS, finished, new_axes, new_figure, whole_numbers

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# A similarity picture has no more pixels than this; larger data are drawn as an even sample of rows.
MAX_SIMILARITY_ROWS = 1500


def clusters(model: Any, ax: Axes | None = None) -> Axes:
    """Draw the data, coloured by ``labels_``: two columns as they are, more as their principal axes.

    Parameters
    ----------
    model : DPMixture
        Fitted, to numbers, counts or categories; categories and counts are drawn on principal axes as well.
    ax : matplotlib axes, optional
        Where to draw.

    Returns
    -------
    matplotlib axes
    """
    fit = _fit_of(model)
    if isinstance(fit, DPMallowsFit):
        raise DataError("rankings are no points in a plane; draw a DPMallowsMixture with plots.kinds")
    axes = new_axes(ax)
    points, names = _plane(fit)
    for k in range(fit.n_clusters):
        members = fit.labels == k
        axes.scatter(
            points[members, 0],
            points[members, 1],
            s=14,
            alpha=0.75,
            linewidths=0,
            color=COLOURS[k % len(COLOURS)],
            marker=MARKERS[(k // len(COLOURS)) % len(MARKERS)],
            label=f"{k + 1} ({members.sum():,})",
        )
    axes.set_xlabel(names[0])
    axes.set_ylabel(names[1])
    axes.set_title(f"{fit.n_clusters} clusters of {len(fit.labels):,} observations")
    if fit.n_clusters <= 16:
        axes.legend(
            title="cluster (size)",
            fontsize="small",
            framealpha=0.9,
            edgecolor="none",
            ncols=1 + fit.n_clusters // 9,
        )
    return axes


def n_clusters(model: Any, ax: Axes | None = None) -> Axes:
    """Draw the posterior of the number of clusters, one bar a number, chains side by side.

    Parameters
    ----------
    model : DPMixture or DPMallowsMixture
    ax : matplotlib axes, optional
        Where to draw.

    Returns
    -------
    matplotlib axes
    """
    axes = new_axes(ax)
    draws = _fit_of(model).draws.arrays["n_clusters"]
    numbers = np.arange(draws.min(), draws.max() + 1)
    width = 0.8 / len(draws)
    for chain, row in enumerate(draws):
        share = [(row == number).mean() for number in numbers]
        shift = (chain - (len(draws) - 1) / 2) * width
        axes.bar(
            numbers + shift, share, width, color=COLOURS[chain % len(COLOURS)], label=f"chain {chain + 1}"
        )
    if len(numbers) <= 15:
        axes.set_xticks(numbers)
    axes.set_xlabel("number of clusters")
    axes.set_ylabel("posterior probability")
    axes.set_title("How many clusters?")
    if len(draws) > 1:
        axes.legend(fontsize="small", frameon=False)
    return axes


def similarity(model: Any, ax: Axes | None = None, of: Literal["rows", "columns"] | None = None) -> Axes:
    """Draw the probability that two observations are in one cluster, observations sorted by cluster.

    Parameters
    ----------
    model : DPMixture, DPMallowsMixture, CoClustering or CoClusteringEnsemble
    ax : matplotlib axes, optional
        Where to draw.
    of : "rows" or "columns", optional
        Of a co-clustering; rows by default.

    Returns
    -------
    matplotlib axes
    """
    fit = getattr(model, "_fit", model)
    if of not in (None, "rows", "columns"):
        raise DataError(f"of must be 'rows' or 'columns', got {of!r}")
    if isinstance(fit, BlockFit):
        what: Literal["row", "column"] = "column" if of == "columns" else "row"
        clusters_of, draws = getattr(fit, f"{what}_labels"), fit.cluster_draws(what)
        shown = f"{what}s"
    else:
        fit = _fit_of(model)
        if of is not None:
            raise DataError(f"of={of!r} is for co-clusterings; a mixture has clusters of observations alone")
        clusters_of, draws, shown = fit.labels, fit.draws.arrays["labels"], "observations"
    axes = new_axes(ax)
    order = np.argsort(clusters_of, kind="stable")
    if len(order) > MAX_SIMILARITY_ROWS:
        order = order[np.linspace(0, len(order) - 1, MAX_SIMILARITY_ROWS).astype(np.int64)]
    image = axes.imshow(
        similarity_matrix(draws[..., order]), cmap="Blues", vmin=0, vmax=1, interpolation="nearest"
    )
    axes.figure.colorbar(image, ax=axes, label="probability of the same cluster")
    axes.set_title("Who belongs together?" if shown == "observations" else f"Which {shown} belong together?")
    axes.set_xlabel(f"{shown}, sorted by cluster")
    axes.set_xticks([])
    axes.set_yticks([])
    return axes


def overview(model: Any, path: str | os.PathLike[str] | None = None) -> Figure:
    """Draw a fitted mixture; with ``path``, write the picture to a file as well.

    For a DPMixture all three pictures side by side, for a DPMallowsMixture :func:`kinds`, for a
    MallowsMixture :func:`components`, for an AngleMixture its shares beside :func:`consensus_scores`, for a
    co-clustering :func:`blocks`.
    """
    fit = getattr(model, "_fit", model)
    if isinstance(fit, DPMallowsFit):
        return kinds(fit, path)
    if isinstance(fit, AngleFit):
        return angle_overview(fit, path)
    if isinstance(fit, BlockFit):
        return blocks(fit, path)
    if not isinstance(fit, MixtureFit):
        return components(model, path)
    figure = new_figure(14, 4.2)
    left, middle, right = figure.subplots(1, 3)
    clusters(model, left)
    n_clusters(model, middle)
    similarity(model, right)
    return finished(figure, path)


def traces(model: Any, path: str | os.PathLike[str] | None = None) -> Figure:
    """Draw the number of clusters (of blocks) and the log joint of every draw, a line for each chain.

    Chains that agree lie on top of each other; a chain that stays above or below the others is stuck.

    Parameters
    ----------
    model : DPMixture, DPMallowsMixture, CoClustering or CoClusteringEnsemble
    path : path, optional
        Also write the picture to this .png, .svg or .pdf file.

    Returns
    -------
    matplotlib figure
    """
    fit = getattr(model, "_fit", model)
    draws = (fit if isinstance(fit, BlockFit) else _fit_of(model)).draws.arrays
    counted = "n_blocks" if isinstance(fit, BlockFit) else "n_clusters"
    figure = new_figure(8, 4.6)
    for axes, name in zip(figure.subplots(2, 1, sharex=True), (counted, "log_joint"), strict=True):
        for chain, row in enumerate(draws[name]):
            axes.plot(
                np.arange(1, len(row) + 1),
                row,
                linewidth=0.8,
                color=COLOURS[chain % len(COLOURS)],
                alpha=0.8,
                label=f"chain {chain + 1}",
            )
        axes.ticklabel_format(axis="y", useOffset=False, style="plain")
        axes.spines[["top", "right"]].set_visible(False)
    upper, lower = figure.axes
    upper.set_ylabel(f"number of {counted.removeprefix('n_')}")
    upper.yaxis.set_major_locator(whole_numbers())
    lower.set_ylabel("log joint")
    lower.set_xlabel("draw")
    if len(draws[counted]) > 1:
        upper.legend(fontsize="small", frameon=False, ncols=4, loc="lower right", bbox_to_anchor=(1, 1))
    return finished(figure, path)


def _fit_of(model: Any) -> MixtureFit | DPMallowsFit:
    """What a fitted estimator holds; a fit is taken as it is."""
    fit = getattr(model, "_fit", model)
    if not isinstance(fit, MixtureFit | DPMallowsFit):
        if isinstance(fit, MallowsFit):
            raise DataError("a MallowsMixture has components, not clusters; draw it with plots.components")
        if isinstance(fit, AngleFit):
            raise DataError("an AngleMixture has components, not clusters; draw it with plots.overview")
        if isinstance(fit, BlockFit):
            raise DataError("a co-clustering has clusters of rows and of columns; draw it with plots.blocks")
        raise DataError(f"{type(model).__name__} is not a fitted mixture; call fit first")
    return fit


def _plane(fit: MixtureFit) -> tuple[np.ndarray, tuple[str, str]]:
    """Two coordinates for every observation and their names."""
    data = fit.data
    if isinstance(data, Counts):  # sparse counts, as shares of the row
        from scipy import sparse

        shape = (len(data.totals), fit.family.n_features)
        dense = sparse.csr_array((data.values, data.indices, data.indptr), shape=shape).toarray()
        points = np.sqrt(dense / np.maximum(dense.sum(axis=1, keepdims=True), 1.0))
    elif isinstance(fit.family, Categorical) and fit.family.levels:  # codes, one indicator a level
        points = np.concatenate(
            [(data[:, [j]] == np.arange(len(levels))) for j, levels in enumerate(fit.family.levels)],
            axis=1,
        ).astype(float)
    else:
        points = fit.family.decode_data(data)
        names = fit.feature_names
        if points.shape[1] == 1:
            # One column: spread the points sideways a little so that they can be told apart.
            spread = np.random.default_rng(0).uniform(-1, 1, len(points))
            return np.column_stack([points[:, 0], spread]), (
                str(names[0]) if names is not None else "column 1",
                "",
            )
        if points.shape[1] == 2:
            return points, (str(names[0]), str(names[1])) if names is not None else ("column 1", "column 2")
    centred = points - points.mean(axis=0)
    u, s, _ = np.linalg.svd(centred, full_matrices=False)
    axes = u[:, :2] * s[:2]
    if axes.shape[1] < 2:
        axes = np.column_stack([axes, np.zeros(len(axes))])
    share = s**2 / max(float((s**2).sum()), 1e-300)
    second = share[1] if len(share) > 1 else 0.0
    return axes, (f"first principal axis ({share[0]:.0%})", f"second principal axis ({second:.0%})")
