"""Refusals that say what the file is, and the option that settles it."""

from __future__ import annotations

import pytest

import permix
from permix.data.ballots import no_votes
from permix.errors import DataError


@pytest.fixture
def put(tmp_path):
    def of(text):
        path = tmp_path / "x.csv"
        path.write_text(text, encoding="utf-8")
        return path

    return of


@pytest.mark.parametrize("word", ["Prefer not to say", "Don't know", "No opinion"])
def test_words_for_no_answer_are_no_candidates(put, word):
    path = put(f"first,second,third\nAnn,Bo,{word}\nBo,Ann,\nCy,{word},\nBo,{word},\n")
    with pytest.warns(permix.errors.PermixWarning):
        assert sorted(permix.read(path, layout="orders").items) == ["Ann", "Bo", "Cy"]


def test_numbers_beside_words_for_no_answer_name_missing(put):
    path = put("id,Tea,Milk\n1,5,2\n2,no opinion,3\n3,1,Don't know\n")
    with pytest.raises(DataError, match=r"if they are no answers, say missing=\['no opinion'"):
        permix.read(path, layout="ratings")
    votes = permix.read(path, layout="ratings", missing=["no opinion", "Don't know"])
    assert votes.n_agents == 3


def test_weights_with_decimals_say_what_to_do(put):
    path = put("pos1,pos2,count\nAnn,Bo,1.739\nBo,Ann,1.727\n")
    with pytest.raises(DataError, match=r"Write counts without points; .* are no counts.*ignore='count'"):
        permix.read(path)


@pytest.mark.parametrize("text", ["<!DOCTYPE html><html><body>404</body></html>\n", "\n<html>\n<p>a,b\n"])
def test_web_pages_are_told(put, text):
    with pytest.raises(DataError, match="a web page"):
        permix.read(put(text))


def test_rows_that_nobody_stated_are_counted_in_words():
    assert [no_votes(n).done for n in (1, 2)] == ["1 row left out", "2 rows left out"]


@pytest.mark.parametrize("mark", [", ", ";"])
def test_several_boxes_are_told(put, mark):
    answers = [["Ana", "Cem"], ["Ben"], ["Ben", "Cem"], ["Ana", "Ben", "Cem"]]
    lines = [f'{i},"{mark.join(boxes)}"' for i, boxes in enumerate(answers)]
    path = put("ID,Which would you accept?\n" + "\n".join(lines) + "\n")
    with pytest.raises(DataError, match="several boxes can be checked: what is checked is in no order"):
        permix.read(path)
