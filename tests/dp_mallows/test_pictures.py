"""Pictures of mixtures of generalized Mallows models: the numbers they show are those of the model."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("Agg")

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from permix import DPMallowsMixture, plots
from permix.dp_mallows.results import ClusterSummaries
from permix.errors import DataError
from tests.dp_mallows.cases import fit_of


def shown_panels(figure):
    """Return pairs of axes, ranks and decays, of the clusters drawn."""
    axes = [panel for panel in figure.axes if panel.get_visible()]
    upper = [panel for panel in axes if panel.get_title()]
    lower = [panel for panel in axes if panel.get_ylabel() == "decay"]
    assert len(upper) + len(lower) == len(axes)
    return list(zip(upper, lower, strict=True))


def ends_of(collection, coordinate):
    return np.array([segment[:, coordinate] for segment in collection.get_segments()])


def test_groups_show_centers_and_decays(tmp_path):
    fit = fit_of()
    path = tmp_path / "groups.png"
    plots.save(fit, path)
    assert path.read_bytes().startswith(b"\x89PNG")
    figure = plots.overview(fit)
    summaries = ClusterSummaries(fit)
    panels = shown_panels(figure)
    assert len(panels) == fit.n_clusters == 2
    for e, (upper, lower) in enumerate(panels):
        table = summaries.center_table(e, summaries.length)
        assert [label.get_text() for label in upper.get_yticklabels()] == table["item"].tolist()
        np.testing.assert_array_equal(upper.collections[1].get_offsets()[:, 0], table["expected_rank"])
        np.testing.assert_array_equal(
            ends_of(upper.collections[0], 0), table[["rank_low", "rank_high"]].to_numpy()
        )
        share = 100 * summaries.group_table()["share"][e]
        assert upper.get_title().startswith(f"group {e + 1} · {share:.1f} %")
        np.testing.assert_allclose(ends_of(lower.collections[0], 1).T, summaries.theta_intervals[:, e])
        # Filled dots where lists reach, hollow ones where the prior speaks.
        filled, hollow = (np.column_stack([line.get_xdata(), line.get_ydata()]) for line in lower.lines[:2])
        reached = summaries.lists_at_stage[e] > 0
        np.testing.assert_allclose(filled[:, 1], summaries.theta[e][reached])
        np.testing.assert_allclose(hollow[:, 1], summaries.theta[e][~reached])
        np.testing.assert_array_equal(hollow[:, 0], np.flatnonzero(~reached) + 1)
        assert lower.get_ylim() == panels[0][1].get_ylim()
        assert upper.get_xlim() == panels[0][0].get_xlim()


def wide_fit(n_groups, alone=0):
    """Groups of three agents each, and some who are alone, over thirty items with long names."""
    n_agents = 3 * n_groups + alone
    rng = np.random.default_rng(0)
    labels = np.concatenate([np.repeat(np.arange(n_groups), 3), n_groups + np.arange(alone)])
    return fit_of(
        lists=[tuple(rng.permutation(30)[:4]) for _ in range(n_agents)],
        items=tuple(f"an item with a rather long name, number {i}" for i in range(30)),
        counts=(1,) * n_agents,
        labels=(tuple(labels), tuple(labels)),
        estimate=tuple(labels),
    )


def test_the_largest_are_drawn_and_nothing_overlaps():
    fit = wide_fit(14)
    figure = plots.groups(fit, max_items=7)
    FigureCanvasAgg(figure).draw()
    assert len(shown_panels(figure)) == 12
    assert "12 largest of 14 groups, top 7 of 30 items" in figure.get_suptitle()
    renderer = figure.canvas.get_renderer()
    boxes = [axes.get_tightbbox(renderer) for axes in figure.axes if axes.get_visible()]
    for i, box in enumerate(boxes):
        for other in boxes[:i]:
            assert not box.shrunk(0.98, 0.98).overlaps(other.shrunk(0.98, 0.98))


def test_agents_who_are_alone_get_no_panel_unless_all_are():
    figure = plots.groups(wide_fit(2, alone=3))
    assert len(shown_panels(figure)) == 2
    assert "2 largest of 5" in figure.get_suptitle()
    assert len(shown_panels(plots.groups(wide_fit(0, alone=3)))) == 1


def test_traces_number_and_similarity():
    fit = fit_of()
    figure = Figure()
    upper, lower = plots.traces(fit, figure=figure).axes
    assert figure.axes == [upper, lower]
    for axes, name in ((upper, "n_groups"), (lower, "log_joint")):
        values = fit.draws.arrays[name]
        assert len(axes.lines) == len(values)
        for line, row in zip(axes.lines, values, strict=True):
            np.testing.assert_array_equal(line.get_ydata(), row)
    bars = plots.n_groups(fit).patches
    assert sum(bar.get_height() for bar in bars) == pytest.approx(len(fit.draws.arrays["n_groups"]))
    image = plots.similarity(fit).images[0].get_array()
    order = np.argsort(fit.labels, kind="stable")
    labels = fit.draws.arrays["labels"].reshape(-1, len(fit.labels))[:, order]
    np.testing.assert_allclose(image, (labels[:, :, None] == labels[:, None, :]).mean(axis=0), atol=1e-6)


def test_what_cannot_be_drawn_is_said():
    fit = fit_of()
    with pytest.raises(DataError, match="no picture 'blocks' of a DPMallowsMixture; it has overview, groups"):
        plots.blocks(fit)
    with pytest.raises(DataError, match="call fit first"):
        plots.groups(DPMallowsMixture())
    with pytest.raises(DataError, match="max_items"):
        plots.groups(fit, max_items=0)
    with pytest.raises(DataError, match="savefig"):
        plots.groups(fit, figure="groups.png")
