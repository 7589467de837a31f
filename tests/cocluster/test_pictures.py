"""Pictures of co-clusterings: cells are where they belong, borders where blocks meet."""

from __future__ import annotations

import warnings
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgb

import permix
from permix import plots
from permix.cocluster.block_predict import BlockDraw
from permix.cocluster.cells.families import BernoulliCells, CategoricalCells, GaussianCells, PoissonCells
from permix.cocluster.pictures import BORDER, MISSING, _border_widths, draw_blocks
from permix.data.cells import Cells
from permix.errors import DataError
from permix.partitions.mondrian import sample_mondrian


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


def grid(rows, columns) -> BlockDraw:
    shape = (max(rows) + 1, max(columns) + 1)
    table = np.arange(shape[0] * shape[1]).reshape(shape)
    return BlockDraw(np.array(rows), np.array(columns), table, np.zeros(shape[0]), 0.0)


def picture_of(axes) -> np.ndarray:
    return axes.images[0].get_array()[..., :3]


def borders_of(axes) -> set[tuple[tuple[float, float], ...]]:
    (lines,) = (
        c
        for c in axes.collections
        if isinstance(c, LineCollection) and to_rgb(c.get_colors()[0]) == to_rgb(BORDER)
    )
    return {tuple(map(tuple, np.asarray(segment).tolist())) for segment in lines.get_segments()}


def texts_of(axes) -> str:
    labels = [*axes.get_xticklabels(), *axes.get_yticklabels(), *axes.texts, axes.title, axes.xaxis.label]
    return "|".join(label.get_text() for label in labels)


class TestCells:
    def test_cells_are_in_the_order_of_blocks(self):
        draw = grid([1, 0, 1], [0, 1])
        values = np.array([[0, 1], [1, np.nan], [1, 1]])
        cells = Cells.coerce(values)
        shown = picture_of(draw_blocks(draw, cells, BernoulliCells()))
        ordered = values[[1, 0, 2]]
        pale = np.round(255 * np.array(to_rgb(MISSING)))
        assert shown.shape == (3, 2, 3)
        assert np.abs(shown[0, 1] - pale).max() <= 1
        one, zero = shown[0, 0], shown[1, 0]
        assert not np.array_equal(one, zero)
        for row in range(3):
            for column in range(2):
                if not np.isnan(ordered[row, column]):
                    assert np.array_equal(shown[row, column], one if ordered[row, column] else zero)

    def test_names_and_numbers(self):
        cells = Cells([0, 1, 2], [0, 1, 0], [1, 0, 1], (3, 2), ["ann", "bob", "cy"], ["tea", "milk"])
        words = texts_of(draw_blocks(grid([1, 0, 1], [0, 1]), cells, BernoulliCells()))
        assert "bob|ann|cy" in words
        assert "4 blocks: 2 groups of rows, 2 groups of columns" in words
        assert "missing cells in gray" in words

    def test_large_matrices_are_drawn_as_means_within_blocks(self):
        rng = np.random.default_rng(0)
        rows, columns = np.arange(1500) % 3, np.arange(1200) % 2
        draw = grid(rows, columns)
        keep = rng.random((1500, 1200)) < 0.02
        where = np.nonzero(keep)
        values = draw.block_of(*where).astype(float)
        cells = Cells(*where, values, keep.shape)
        shown = picture_of(draw_blocks(draw, cells, GaussianCells().resolve(values)))
        assert max(shown.shape[:2]) <= 1000
        # A patch never mixes blocks: only six colors, and gray, are there.
        assert len(np.unique(shown.astype(np.int64) @ [65_536, 256, 1])) <= 7

    def test_levels_that_are_text_show_the_most_frequent(self):
        draw = grid(np.zeros(2500, dtype=int), np.zeros(40, dtype=int))
        rng = np.random.default_rng(1)
        where = np.nonzero(rng.random((2500, 40)) < 0.9)
        words = np.where(rng.random(len(where[0])) < 0.97, "often", "never").astype(object)
        cells = Cells(*where, words, (2500, 40))
        shown = picture_of(draw_blocks(draw, cells, CategoricalCells().resolve(words)))
        colors, count = np.unique(shown.reshape(-1, 3), axis=0, return_counts=True)
        assert count.max() / count.sum() > 0.97
        assert np.abs(colors[count.argmax()] / 255 - to_rgb("#E69F00")).max() < 0.01

    @pytest.mark.parametrize(
        ("family", "values"),
        [
            (PoissonCells(), [0, 1, 500, 2]),
            (GaussianCells(), [-1.5, 0.0, 2.0, 2.0]),
            (GaussianCells(), [3.0, 3.0, 3.0, 3.0]),
            (CategoricalCells(), [1, 2, 3, 3]),
            (CategoricalCells(), [float(value) / 3 for value in range(4)]),
        ],
    )
    def test_every_family(self, family, values, tmp_path):
        cells = Cells([0, 0, 1, 1], [0, 1, 0, 1], values, (2, 2))
        path = tmp_path / "blocks.png"
        axes = draw_blocks(grid([0, 1], [0, 1]), cells, family.resolve(cells.values))
        axes.figure.savefig(path)
        assert path.read_bytes()[:4] == b"\x89PNG"
        assert len(axes.figure.axes) == 2  # the matrix and its scale


class TestBorders:
    def test_grid(self):
        draw = grid([0, 0, 1], [0, 1])
        cells = Cells.coerce(np.ones((3, 2)))
        assert borders_of(draw_blocks(draw, cells, BernoulliCells())) == {
            ((0, 2), (2, 2)),
            ((1, 0), (1, 3)),
        }

    def test_nested_cuts_end_where_blocks_do(self):
        # Two columns on the left are one block; on the right rows are cut.
        draw = BlockDraw(
            np.array([0, 1]), np.array([0, 1, 2]), np.array([[0, 0, 1], [0, 0, 2]]), np.zeros(2), 0.0
        )
        cells = Cells.coerce(np.ones((2, 3)))
        assert borders_of(draw_blocks(draw, cells, BernoulliCells())) == {
            ((2, 1), (3, 1)),
            ((2, 0), (2, 2)),
        }

    def test_one_block_has_none(self):
        assert borders_of(draw_blocks(grid([0, 0], [0]), Cells.coerce([[1], [0]]), BernoulliCells())) == set()


class TestManyClusters:
    """One cluster of 400 rows, ten of 40 and 200 of one row each, which have no room for borders."""

    rows = np.r_[np.zeros(400, dtype=int), np.repeat(np.arange(1, 11), 40), np.arange(11, 211)]

    @pytest.fixture(scope="class")
    @classmethod
    def axes(cls):
        values = np.random.default_rng(0).integers(0, 2, (len(cls.rows), 300))
        return draw_blocks(grid(cls.rows, np.arange(300) // 150), Cells.coerce(values), BernoulliCells())

    def test_no_borders_between_groups_too_thin_to_see(self, axes):
        across = {start[1] for start, stop in borders_of(axes) if start[1] == stop[1]}
        assert across == {*range(400, 801, 40)}

    def test_lines_are_thinner_where_there_is_less_room(self):
        wide, narrow = (
            _border_widths(np.array([[0], [1], [2]]), np.array([0.0, 1.0, 2.0, 3.0]) * room)
            for room in (25.0, 8.0)
        )
        assert (wide > narrow).all()
        assert (narrow > 0).all()
        assert (_border_widths(np.array([[0], [1]]), np.array([0.0, 1.0, 2.0])) == 0).all()

    def test_the_thin_groups_are_not_black(self, axes, tmp_path):
        figure = axes.figure
        figure.savefig(tmp_path / "many.png", dpi=130)
        pixels = mpl.image.imread(tmp_path / "many.png")[..., :3]
        box = axes.get_window_extent().bounds / np.array(figure.dpi) * 130
        left, low, width, height = box.astype(int)
        bottom = pixels[
            len(pixels) - low - int(0.19 * height) : len(pixels) - low - 4, left + 4 : left + width - 4
        ]
        assert (bottom.max(axis=2) < 0.25).mean() < 0.02  # but for the border of the columns

    def test_groups_without_a_number_are_told(self, axes):
        assert axes.get_ylabel() == "1,000 rows in 211 groups\nthe 11 largest are numbered"
        assert axes.get_xlabel() == "300 columns"
        assert [text.get_text() for text in axes.texts] == [*map(str, range(1, 12)), "1", "2"]

    @pytest.mark.parametrize(
        ("sizes", "said"),
        [([1] * 300, "too thin to be numbered"), ([1000] + [1] * 50, "the largest is numbered")],
    )
    def test_none_and_one(self, sizes, said):
        rows = np.repeat(np.arange(len(sizes)), sizes)
        axes = draw_blocks(grid(rows, [0]), Cells.coerce(np.ones((len(rows), 1))), BernoulliCells())
        assert axes.get_ylabel().endswith(said)

    def test_cells_are_not_mixed(self, axes):
        assert axes.images[0].get_interpolation() == "nearest"


class TestNames:
    def cells(self, n_rows: int, n_columns: int) -> Cells:
        values = np.ones((n_rows, n_columns))
        values[0] = 0
        where = np.nonzero(values >= 0)
        names = [[f"{what} gy {i}" for i in range(n)] for what, n in (("row", n_rows), ("column", n_columns))]
        return Cells(*where, values[where], values.shape, *names)

    @pytest.mark.parametrize("shape", [(60, 20), (60, 60), (60, 400), (20, 60), (3, 3)])
    def test_sixty_names_are_shown_and_do_not_touch(self, shape):
        axes = draw_blocks(grid([0] * shape[0], [0] * shape[1]), self.cells(*shape), BernoulliCells())
        axes.figure.draw_without_rendering()
        for n, labels, side in (
            (shape[0], axes.get_yticklabels(), "y"),
            (shape[1], axes.get_xticklabels(), "x"),
        ):
            assert len(labels) == (n if n <= 60 else 0)
            boxes = [label.get_window_extent() for label in labels]
            spans = np.array(sorted((getattr(box, f"{side}0"), getattr(box, f"{side}1")) for box in boxes))
            assert n > 60 or (spans[1:, 0] > spans[:-1, 1] - 1).all()

    def test_names_without_room_are_left_out(self):
        axes = mpl.figure.Figure(figsize=(3, 2)).subplots()
        draw_blocks(grid([0] * 30, [0, 1]), self.cells(30, 2), BernoulliCells(), ax=axes)
        assert len(axes.get_yticklabels()) == 0
        assert axes.get_ylabel() == "30 rows"
        assert [label.get_text() for label in axes.get_xticklabels()] == ["column gy 0", "column gy 1"]


class TestMondrian:
    def test_rectangles_are_the_leaves(self, tmp_path):
        tree = sample_mondrian(np.random.default_rng(3), 3.0)
        path = tmp_path / "tree.svg"
        axes = plots.mondrian(tree)
        axes.figure.savefig(path)
        boxes = [patch.get_bbox() for patch in axes.patches]
        assert len(boxes) == tree.n_blocks > 3
        leaves = tree.rectangles[tree.axis < 0]
        drawn = np.array([[box.y0, box.y1, box.x0, box.x1] for box in boxes])
        assert np.allclose(drawn, leaves)
        assert "<svg" in path.read_text()

    def test_other_things(self):
        with pytest.raises(DataError, match="ndarray is no model"):
            plots.mondrian(np.eye(3))


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(2)
    X = np.kron([[0, 1], [1, 0]], np.ones((10, 6))).astype(int)
    X = np.where(rng.random(X.shape) < 0.05, 1 - X, X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", permix.errors.ConvergenceWarning)
        return permix.CoClustering(
            family="bernoulli", n_draws=20, n_burn_in=20, random_state=0, progress=False
        ).fit(X)


class TestModels:
    def test_blocks_and_overview(self, model, tmp_path):
        axes = plots.blocks(model)
        assert len(borders_of(axes)) == 2
        figure = plots.overview(model)
        assert len(borders_of(figure.axes[0])) == 2
        plots.save(model, tmp_path / "o.png")
        assert (tmp_path / "o.png").exists()
        axes = mpl.figure.Figure().subplots()
        assert plots.blocks(model, ax=axes) is axes
        figure = mpl.figure.Figure()
        assert plots.overview(model, figure=figure) is figure

    @pytest.mark.parametrize(
        ("ax", "told"),
        [
            ("x.png", r"not the file name 'x\.png'"),
            (Path("x.png"), r"not the file name 'x\.png'"),
            ((1, 2), "not tuple"),
        ],
    )
    def test_what_is_no_axes(self, model, ax, told):
        for draw in (plots.similarity, plots.blocks):
            with pytest.raises(DataError, match=told) as caught:
                draw(model, ax=ax)
            assert 'plots.similarity(model).figure.savefig("x.png")' in str(caught.value)
        with pytest.raises(DataError, match=told):
            plots.mondrian(sample_mondrian(np.random.default_rng(3), 3.0), ax=ax)

    def test_traces(self, model):
        assert plots.traces(model).axes[0].get_ylabel() == "number of blocks"

    @pytest.mark.parametrize(("options", "what"), [({}, "row"), ({"of": "columns"}, "column")])
    def test_similarity(self, model, options, what):
        axes = plots.similarity(model, **options)
        order = np.argsort(getattr(model, f"{what}_labels_"), kind="stable")
        expected = getattr(model, f"{what}_similarity")()[np.ix_(order, order)]
        np.testing.assert_allclose(axes.images[0].get_array(), expected, atol=1e-6)
        assert axes.get_xlabel() == f"{what}s, sorted by group"
        with pytest.raises(DataError, match='of=\'cells\' must be "rows" or "columns"'):
            plots.similarity(model, of="cells")

    @pytest.mark.parametrize(("options", "of"), [({}, "rows"), ({"of": "columns"}, "columns")])
    def test_number_of_groups(self, model, options, of):
        axes = plots.n_groups(model, **options)
        assert axes.get_xlabel() == f"number of groups of {of}"
        heights = sum(bar.get_height() for bar in axes.patches)
        assert heights == pytest.approx(2.0)  # one of each chain

    def test_other_pictures_and_other_models(self, model):
        with pytest.raises(DataError, match="no picture 'groups' of a CoClustering; it has overview"):
            plots.groups(model)
        with pytest.raises(DataError, match="this CoClustering is not fitted yet"):
            plots.blocks(permix.CoClustering())
        with pytest.raises(DataError, match=r"a grid has no nested cuts.*plots\.blocks"):
            plots.mondrian(model)
