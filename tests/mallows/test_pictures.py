"""Pictures of Mallows mixtures: the numbers they show are those of the model, and names fit."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("Agg")

from matplotlib.backends.backend_agg import FigureCanvasAgg

from permix import Mallows, Rankings, plots, select_components
from permix.distributions.base import Estimate
from permix.distributions.conditioning.components import MallowsComponents
from permix.errors import DataError
from permix.mallows.parameters import MallowsParameters
from permix.mallows.pictures import rank_intervals
from permix.mallows.results import MallowsFit
from permix.plots.style import shortened


def a_fit(items, n_components, *, errors=0.0, seed=0):
    """Fit with known parameters, not fitted to anything."""
    rng = np.random.default_rng(seed)
    m = len(items)
    components = MallowsComponents(
        tuple(items),
        np.sort(rng.dirichlet(np.full(n_components, 3.0)))[::-1],
        np.stack([rng.permutation(m) for _ in range(n_components)]),
        rng.uniform(0.05, 0.8, n_components),
    )
    values = -1000.0 - 100.0 * np.exp(-np.arange(12) / 3)
    return MallowsFit(
        settings=MallowsParameters(n_components, random_state=0),
        components=components,
        probabilities=rng.dirichlet(np.ones(n_components), 30),
        counts=np.ones(30, dtype=np.int64),
        log_likelihood=Estimate(values[-1], errors),
        history=np.column_stack([values, np.full(12, errors)]),
        start_log_likelihoods=values[-1] - np.arange(4.0),
        group_matches=np.ones((4, n_components)),
        converged=True,
        interrupted=False,
    )


def names_on(axes):
    return [label.get_text() for label in axes.get_yticklabels()]


def test_groups_show_centers_and_ranks(tmp_path):
    items = ["tea", "coffee", "milk", "juice", "cocoa"]
    fit = a_fit(items, 4)
    path = tmp_path / "drinks.png"
    figure = plots.overview(fit)
    plots.save(fit, path)
    assert path.read_bytes().startswith(b"\x89PNG")
    shown = [axes for axes in figure.axes if axes.get_visible()]
    assert len(shown) == 4
    for k, axes in enumerate(shown):
        center = fit.components.component(k)
        assert names_on(axes) == list(center.center)
        assert f"{100 * fit.components.weights[k]:.1f} %" in axes.get_title()
        ranks = center.rank_marginals()[center.center_order]
        np.testing.assert_allclose(axes.collections[1].get_offsets()[:, 0], ranks @ np.arange(1, 6))
        ends = np.array([segment[:, 0] for segment in axes.collections[0].get_segments()])
        for (low, high), chances in zip(ends.astype(int), ranks, strict=True):
            assert chances[: low - 1].sum() < 0.05 <= chances[:low].sum()
            assert chances[: high - 1].sum() < 0.95 <= chances[:high].sum()


def test_of_many_items_the_first_are_drawn_and_nothing_overlaps():
    items = [f"{word} with a rather long title, part {i}" for word in ("one", "other") for i in range(100)]
    fit = a_fit(items, 14)
    figure = plots.groups(fit)
    FigureCanvasAgg(figure).draw()
    assert sum(axes.get_visible() for axes in figure.axes) == 12
    assert "12 largest of 14" in figure.get_suptitle()
    assert "top 20 of 200" in figure.get_suptitle()
    boxes = []
    for axes in figure.axes:
        labels = axes.get_yticklabels()
        assert len(labels) == 20
        assert all(len(label.get_text()) <= 28 for label in labels)
        boxes += [label.get_window_extent() for label in labels]
        boxes.append(axes.title.get_window_extent())
        boxes.append(axes.get_window_extent())
    frame = figure.bbox
    assert all(box.x0 >= frame.x0 - 1 and box.x1 <= frame.x1 + 1 for box in boxes)
    for i, box in enumerate(boxes):
        assert box.count_overlaps(boxes[i + 1 :]) == 0
    with pytest.raises(DataError, match="max_items"):
        plots.groups(fit, max_items=0)


def test_ranks_of_many_items_come_from_draws():
    mean, low, high = rank_intervals(Mallows(range(401), 0.9), 5)
    # With this dispersion the far end of 401 items does not reach the first ones: 400 items do as well.
    exact = rank_intervals(Mallows(range(400), 0.9), 5)
    np.testing.assert_allclose(mean, exact[0], atol=5 * 9.0 / np.sqrt(4000))  # spread of a rank is below 9
    assert np.abs(low - exact[1]).max() <= 1
    assert np.abs(high - exact[2]).max() <= 3


def test_long_names_are_cut_in_the_middle():
    assert shortened("tea", 10) == "tea"
    assert shortened("a long name (1984)", 12) == "a long n…84)"
    assert shortened("two\nlines, $5", 20) == r"two lines, \$5"


@pytest.mark.parametrize("errors", [0.0, 20.0])
def test_history(errors):
    fit = a_fit("abc", 2, errors=errors)
    axes = plots.history(fit)
    np.testing.assert_array_equal(axes.lines[0].get_ydata(), fit.history[:, 0])
    np.testing.assert_array_equal(axes.lines[1].get_ydata(), fit.start_log_likelihoods)
    assert len(axes.collections) == (errors > 0)  # the band
    assert axes.get_title() == "converged after 12 iterations"
    assert plots.history(replace(fit, interrupted=True)).get_title().startswith("interrupted")
    with pytest.raises(DataError, match="no history"):
        plots.history(replace(fit, history=np.empty((0, 2))))


def test_number_of_groups():
    table = {
        "n_groups": [1, 2, 3],
        "train": [-5.0, -4.0, -3.5],
        "validation": [-5.1, -4.2, -4.4],
        "standard_error": [0.1, 0.1, 0.2],
    }
    axes = plots.choice(table)
    bars = axes.containers[0]
    np.testing.assert_array_equal(bars.lines[0].get_ydata(), table["validation"])
    lengths = [np.ptp(segment[:, 1]) / 2 for segment in bars.lines[2][0].get_segments()]
    np.testing.assert_allclose(lengths, table["standard_error"])
    assert "best: 2" in [text.get_text() for text in axes.get_legend().get_texts()]
    legend = plots.choice(SimpleNamespace(table=table, chosen=1)).get_legend()
    assert {"best: 2", "chosen: 1"} <= {text.get_text() for text in legend.get_texts()}
    with pytest.raises(DataError, match="n_groups"):
        plots.choice({"train": [1.0]})


def test_pictures_go_into_axes_that_are_there():
    table = {"n_groups": [1], "train": [-5.0], "validation": [-5.1], "standard_error": [0.1]}
    for draw, what in ((plots.choice, table), (plots.history, a_fit("abc", 2))):
        axes = draw(what)
        assert draw(what, ax=axes) is axes
        with pytest.raises(DataError, match="ax must be matplotlib axes"):
            draw(what, ax="x.png")


def test_what_is_not_fitted_is_refused():
    with pytest.raises(DataError, match="a object is no model"):
        plots.groups(object())


def test_other_models_are_pointed_elsewhere():
    votes = Rankings.from_orders([["a", "b", "c"], ["b", "a", "c"]] * 60)
    selection = select_components(votes, [1], random_state=0, progress=False)
    with pytest.raises(DataError, match="does not know the model of a ComponentSelection"):
        plots.groups(selection)
    assert plots.groups(selection.model).axes
    with pytest.raises(DataError, match="not MallowsMixture"):
        plots.choice(selection.model)
    with pytest.raises(DataError, match="no picture 'similarity' of a MallowsMixture; it has overview"):
        plots.similarity(selection.model)
