"""Pictures of angle-based models: the numbers they show are those of the model."""

from __future__ import annotations

import warnings

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("Agg")

from matplotlib.backends.backend_agg import FigureCanvasAgg

import permix
from permix import plots
from permix.angle.classifier.pictures import draw_roc
from permix.angle.results import consensus_table
from permix.errors import DataError, PermixWarning

DRINKS = ("tea", "coffee", "milk", "juice", "cocoa", "water")


@pytest.fixture(scope="module")
def made():
    return permix.datasets.make_angle_mixture(
        200,
        6,
        2,
        concentration=[12.0, 7.0],
        weights=[0.6, 0.4],
        directions=[[-3, -2.6, 0, 0.5, 2, 3.1], [2, 3, 0.5, 0, -2, -3.5]],
        random_state=1,
    )


def fitted(data, k, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PermixWarning)
        return permix.AngleMixture(k, random_state=0, progress=False, **settings).fit(data)


@pytest.fixture(scope="module")
def model(made):
    return fitted(
        permix.Rankings.from_orders(made.data.orders, items=DRINKS), 2, inference="vi", normalizer="vmf"
    )


def names_on(axes):
    return [label.get_text() for label in axes.get_yticklabels()]


def dots(axes):
    return [line for line in axes.lines if line.get_marker() not in ("None", "", None)]


def overlapping(texts):
    """Return pairs of texts that stand on each other."""
    boxes = [text.get_window_extent() for text in texts]
    return [(a, b) for a in range(len(boxes)) for b in range(a) if boxes[a].overlaps(boxes[b])]


def test_scores_and_intervals_are_the_models(model, tmp_path):
    path = tmp_path / "scores.png"
    axes = plots.groups(model)
    plots.save(model, path)
    assert path.read_bytes().startswith(b"\x89PNG")
    table = model.consensus()
    first = table[table["group"] == 0]
    assert names_on(axes) == first["item"].tolist()  # as the largest group ranks them
    shown = dots(axes)
    assert len(shown) == 2
    whiskers = [c for c in axes.collections if len(c.get_segments()) == 6]
    for k, (line, lines) in enumerate(zip(shown, whiskers, strict=True)):
        part = table[table["group"] == k].set_index("item").loc[names_on(axes)]
        np.testing.assert_allclose(line.get_xdata(), part["score"])
        ends = np.array([segment[:, 0] for segment in lines.get_segments()])
        np.testing.assert_allclose(ends, part[["low", "high"]])
        # Groups keep to the line of their item.
        assert np.all(np.abs(line.get_ydata() - np.arange(6)) < 0.5)
        share = 100 * model.weights_[k]
        assert axes.get_legend().get_texts()[k].get_text() == f"group {k + 1} · {share:.1f} %"
    assert not np.allclose(shown[0].get_ydata(), shown[1].get_ydata())


def test_em_has_no_intervals(made):
    axes = plots.groups(fitted(made.data, 2, inference="em"))
    assert [c for c in axes.collections if len(c.get_segments()) == 6] == []
    assert len(dots(axes)) == 2


def test_overview_shows_shares_and_scores(model, tmp_path):
    figure = plots.overview(model)
    plots.save(model, tmp_path / "o.svg")
    assert "<svg" in (tmp_path / "o.svg").read_text()
    left, right = figure.axes
    np.testing.assert_allclose([bar.get_width() for bar in left.patches], 100 * model.weights_)
    table = model.summary()
    for k, text in enumerate(left.texts):
        low, high = table["low"][k], table["high"][k]
        assert text.get_text() == f"concentration {model.concentrations_[k]:.3g} ({low:.3g}–{high:.3g})"
    assert len(dots(right)) == 2
    assert plots.overview(model._fit).axes[1].get_xlabel() == right.get_xlabel()


@pytest.mark.parametrize(("n_items", "k"), [(5, 1), (100, 3), (12, 9)])
def test_nothing_stands_on_anything_else(n_items, k):
    rng = np.random.default_rng(0)
    items = [f"a rather long name of item {i} {'x' * int(rng.integers(30))}" for i in range(n_items)]
    made = permix.datasets.make_angle_mixture(80, n_items, k, concentration=2.0 * n_items, random_state=0)
    data = permix.Rankings.from_orders(made.data.orders, items=items)
    figure = plots.overview(fitted(data, k, n_init=1, max_iter=3))
    FigureCanvasAgg(figure).draw()
    left, right = figure.axes
    assert overlapping([*right.get_yticklabels()]) == []
    assert overlapping([*left.get_yticklabels(), *left.texts]) == []
    legend = right.get_legend().get_window_extent()
    assert legend.y0 >= right.get_window_extent().y1 - 1  # off the points
    title = figure._suptitle.get_window_extent()
    assert title.y0 >= legend.y1 - 1
    assert right.get_window_extent().y0 > 0


def test_many_items_are_cut_to_the_most_extreme(made):
    data = permix.datasets.make_angle_mixture(300, 30, 1, concentration=40.0, random_state=0).data
    model = fitted(data, 1)
    axes = plots.groups(model, max_items=8)
    kept = np.argsort(-np.abs(model.directions_[0]))[:8]
    assert names_on(axes) == [str(i) for i in kept[np.argsort(model.directions_[0, kept])]]
    assert "8 of 30 items, the most extreme" in axes.get_xlabel()
    with pytest.raises(DataError, match="max_items"):
        plots.groups(model, max_items=0)


def test_classes_of_a_classifier(made):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PermixWarning)
        labels = np.array(["east", "west"])[made.labels]
        classifier = permix.AngleClassifier(random_state=0, progress=False).fit(made.data, labels)
    axes = plots.groups(classifier)
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["east", "west"]
    order = [int(name) for name in names_on(axes)]
    for k, line in enumerate(dots(axes)):
        scores = consensus_table(classifier._fit.fits[k]).set_index("item")["score"]
        np.testing.assert_allclose(line.get_xdata(), scores[order])
        assert line.get_xdata() @ classifier.directions_[k, order] > 0.99


def test_others_are_sent_elsewhere(model):
    with pytest.raises(DataError, match="not fitted"):
        plots.groups(permix.AngleMixture())
    with pytest.raises(DataError, match=r"ax must be matplotlib axes .* not the file name 'x\.png'"):
        plots.groups(model, ax="x.png")
    with pytest.raises(
        DataError, match="no picture 'similarity' of an AngleMixture; it has overview, groups"
    ):
        plots.similarity(model)


def test_the_climb(made):
    model = fitted(made.data, 2, n_init=3)
    axes = plots.history(model)
    np.testing.assert_array_equal(axes.lines[0].get_ydata(), model.history_["log_likelihood"])
    np.testing.assert_array_equal(axes.lines[1].get_ydata(), model.diagnostics()["log_likelihood"])
    assert axes.get_title() == f"converged after {model.n_iter_} passes"
    bound = fitted(made.data, 2, inference="vi", normalizer="vmf", n_init=2)
    assert plots.history(bound).get_ylabel() == "evidence lower bound"
    drawn = fitted(made.data, 1, inference="sir", n_draws=5, n_burn_in=2)
    with pytest.raises(DataError, match="do not climb"):
        plots.history(drawn)


def test_roc_of_a_classifier(made):
    labels = np.array(["east", "west"])[made.labels]
    model = permix.AngleClassifier(random_state=0).fit(made.data[:100], labels[:100])
    new, truth = made.data[100:], labels[100:]
    axes = plots.roc(model, X=new, y=truth)
    expected = draw_roc(truth, model.predict_proba(new), sample_weight=new.counts)
    for mine, other in zip(axes.lines, expected.lines, strict=True):
        np.testing.assert_array_equal(mine.get_ydata(), other.get_ydata())


def test_roc_has_the_area_of_all_pairs():
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=60)
    score = np.round(truth + rng.normal(size=60), 1)
    weights = rng.integers(1, 4, size=60)
    pairs = [
        (wa * wb, (a > b) + 0.5 * (a == b))
        for a, wa in zip(score[truth == 1], weights[truth == 1], strict=True)
        for b, wb in zip(score[truth == 0], weights[truth == 0], strict=True)
    ]
    area = sum(w * v for w, v in pairs) / sum(w for w, _ in pairs)
    axes = draw_roc(truth, score, sample_weight=weights)
    assert axes.get_legend().get_texts()[0].get_text() == f"AUC {area:.3f}"
    curve = axes.lines[1]
    assert np.trapezoid(curve.get_ydata(), curve.get_xdata()) == pytest.approx(area)

    both = np.column_stack([-score, score])
    axes = draw_roc(truth, {"one": score, "same": both})
    said = [text.get_text() for text in axes.get_legend().get_texts()]
    assert [text.split(": ")[0] for text in said] == ["one", "same"]
    assert said[0].split(": ")[1] == said[1].split(": ")[1]


def test_roc_of_three_classes_and_what_it_refuses():
    truth = np.array(["a", "b", "c", "a", "b", "c"])
    sure = (truth[:, None] == np.array(["a", "b", "c"])).astype(float)
    axes = draw_roc(truth, sure)
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [f"{k}: AUC 1.000" for k in "abc"]
    for y, p, words in (
        (truth, sure[:, :2], "3 classes"),
        (truth, sure[:4], "6 rows"),
        (truth, sure[:, 0], "3 classes"),
        (np.zeros(3), np.zeros(3), "two classes"),
        (np.array([0, 1]), np.array([np.nan, 1.0]), "finite"),
        (truth, {"x": sure, "y": sure}, "one at a time"),
    ):
        with pytest.raises(DataError, match=words):
            draw_roc(y, p)
    with pytest.raises(DataError, match="sample_weight"):
        draw_roc([0, 1], [0.1, 0.2], sample_weight=[1])


def test_choice_by_a_criterion(made):
    chosen = permix.select_components(
        made.data,
        range(1, 4),
        model="angle",
        criterion="bic",
        inference="em",
        n_init=2,
        random_state=0,
        progress=False,
    )
    axes = plots.choice(chosen)
    np.testing.assert_allclose(axes.lines[0].get_ydata(), chosen.table["bic"])
    assert axes.lines[1].get_xdata()[0] == chosen.best
    assert axes.get_ylabel() == "BIC (small = good)"
