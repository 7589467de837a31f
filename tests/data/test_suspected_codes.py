"""Numbers that may stand for no answer: one guard for ratings, matrices and tables of numbers."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import permix
from permix.data.cells_codes import suspected_codes
from permix.dp_mixture.odd_columns import warn_of_codes
from permix.errors import DataError, PermixWarning

SCALE = np.repeat([1.0, 2.0, 3.0, 4.0, 5.0], [9, 20, 16, 17, 15])


def codes_in(values):
    return [found.code for found in suspected_codes(np.asarray(values, dtype=float))]


@pytest.mark.parametrize("codes", [(98, 99), (8, 9), (-1, -2), (9,), (-1,), (77, 88, 99), (-8, -9), (0,)])
def test_codes_beside_a_scale_are_found_together(codes):
    """Two codes used to hide each other, and one near the scale was no code."""
    assert sorted(codes_in([*SCALE, *codes * 11])) == sorted(codes)


@pytest.mark.parametrize(
    "values",
    [
        SCALE,
        np.repeat(np.arange(0, 6), [30, 12, 9, 8, 5, 4]),  # scores from 0 to 5, 0 the most frequent
        np.repeat(np.arange(0, 6), [5, 12, 19, 18, 9, 4]),  # counts of one peak
        np.repeat(np.arange(1, 10), 9),  # a scale to 9
        np.repeat([-2, -1, 0, 1, 2], 9),
        np.repeat([-2, -1, 1, 2], 9),
        np.repeat([-1, 1], 9),
        np.repeat([1, 2, 3, 4, 5, 9], 2),  # too few to tell
        np.arange(70, 101),
    ],
)
def test_honest_scales_and_counts_are_left_alone(values):
    assert codes_in(values) == []


@pytest.fixture
def file(tmp_path):
    def of(codes):
        rng = np.random.default_rng(3)
        cells = rng.permutation([*SCALE, *codes * 11])
        cells = cells[: len(cells) // 4 * 4].reshape(-1, 4).astype(int)
        lines = [",".join(map(str, row)) for row in cells.tolist()]
        path = tmp_path / "scale.csv"
        path.write_text("Parks,Roads,Schools,Police\n" + "\n".join(lines) + "\n", encoding="utf-8")
        return path, cells

    return of


def test_all_commands_name_both_codes(file):
    for codes in ((98, 99), (-1, -2)):
        path, cells = file(codes)
        with pytest.raises(
            DataError, match=r"may say that there is no answer, .*from 1 to 5: say"
        ) as refused:
            permix.read(path, layout="ratings")
        told = refused.value.args[0].as_options()
        assert all(f"--missing {code}" in told for code in codes)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            permix.read_cells(path)
            warn_of_codes(cells.astype(float), None, 1)
        told = " ".join(str(warning.message) for warning in said)
        assert all(f"missing={code}" in told and f"--missing {code}" in told for code in codes)


@pytest.mark.parametrize("codes", [(8, 9), (9,), (0,)])
def test_codes_near_the_scale_are_warned_of(file, codes):
    path, _ = file(codes)
    with pytest.warns(PermixWarning, match=r"while the other ratings are 1 to 5; it is read as a rating"):
        permix.read(path, layout="ratings")
    with pytest.warns(PermixWarning) as said:
        permix.read_cells(path)
    assert all(f"missing={code}" in " ".join(str(found.message) for found in said) for code in codes)


@pytest.mark.parametrize(
    ("scale", "codes"),
    [
        *((range(1, 8), (8,)), (range(1, 8), (9,)), (range(1, 6), (7,)), (range(1, 6), (8, 9))),
        *((range(4), (9,)), (range(5), (9,)), ((0, 1), (9,)), ((1, 2), (8,)), (range(3), (-1,))),
    ],
)
def test_codes_beside_scales_of_ratings_are_said(tmp_path, scale, codes):
    entries = [*scale] * 6 + [*codes]
    entries += [scale[0]] * (-len(entries) % 3)
    rows = [",".join(map(str, entries[at : at + 3])) for at in range(0, len(entries), 3)]
    path = tmp_path / "x.csv"
    path.write_text("A,B,C\n" + "\n".join(rows) + "\n", encoding="utf-8")
    with pytest.warns(PermixWarning, match=rf"{codes[0]} stands in [0-9]+ cells?.* no answer, say missing="):
        permix.read(path, layout="ratings")


@pytest.mark.parametrize(
    "scale",
    [range(1, 6), range(1, 8), range(1, 10), range(1, 11), range(6), range(10), (-1, 0, 1), (-2, 0, 2)],
)
def test_scales_without_a_code_are_read_in_silence(tmp_path, scale, recwarn):
    drawn = np.random.default_rng(3).choice(list(scale), (20, 3))
    rows = [",".join(map(str, row)) for row in drawn.tolist()]
    path = tmp_path / "x.csv"
    path.write_text("A,B,C\n" + "\n".join(rows) + "\n", encoding="utf-8")
    assert permix.read(path, layout="ratings").n_agents == 20
    assert not [each for each in recwarn if "stands in" in str(each.message)]
