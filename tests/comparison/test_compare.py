"""Comparisons of the models of permix: what is said, what is kept, and that seeds decide."""

from __future__ import annotations

import json
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest

import permix
from permix.comparison.auto import late_ones
from permix.comparison.compare import STOPPED, Clock, Engine, compare
from permix.comparison.tables import comparison_report, print_comparison
from permix.datasets import make_mallows_mixture
from permix.errors import DataError, PermixWarning
from permix.runtime.executors import Here
from permix.runtime.interrupts import Deadline, Interrupts

QUICK = ["kde", "mean-shift"]


@pytest.fixture(scope="module")
def camps():
    rng = np.random.default_rng(5)
    two = [permix.Mallows(range(5), 0.15), permix.Mallows([4, 3, 2, 1, 0], 0.15, items=range(5))]
    return permix.Rankings.concat([camp.sample(60, rng) for camp in two])


@pytest.fixture(scope="module")
def found(camps):
    return compare(camps, QUICK, random_state=0)


def test_the_verdict_says_what_the_difference_means(found):
    assert found.beats_baseline
    assert found.best in QUICK
    assert f"{found.best} predicts best: what an agent says is on average" in found.verdict
    assert "times as probable as" in found.verdict
    assert repr(found).startswith(f"ModelComparison: {found.verdict}")
    table = found.table
    assert table["score"].is_monotonic_decreasing
    assert set(table["kind"]) == {"model", "baseline"}
    factor = np.exp(table.loc[found.best, "score"] - table.loc[f"{found.baseline} (baseline)", "score"])
    assert table.loc[found.best, "times"] == pytest.approx(factor)


def test_the_seed_decides_and_not_threads_or_other_models(camps, found):
    alone = compare(camps, ["kde"], random_state=0, n_jobs=1)
    assert alone.table.loc["kde", "score"] == found.table.loc["kde", "score"]
    other = compare(camps, ["kde"], random_state=1)
    assert other.table.loc["kde", "score"] != alone.table.loc["kde", "score"]


def test_answers_without_order_beat_no_baseline():
    rng = np.random.default_rng(0)
    votes = permix.Rankings.from_orders([rng.permutation(4) for _ in range(200)])
    found = compare(votes, QUICK, random_state=0)
    assert not found.beats_baseline
    assert found.verdict.startswith("No model predicts agents that were held out better than")


def test_where_stability_is_not_known_the_table_says_why(found, capsys):
    print_comparison(comparison_report(found), "votes")
    out = capsys.readouterr().out
    assert out.count("stable -: mean-shift ran once, or found one group") == 1
    assert any(line.split()[:1] == ["mean-shift"] and "-" in line.split() for line in out.splitlines())


def test_a_part_is_drawn_and_told(camps):
    found = compare(camps, ["mean-shift"], max_size=50, random_state=0)
    assert (found.n_all, found.n_looked_at, found.n_held_out) == (120, 50, 50)


def test_finite_mixtures_choose_their_number_on_the_part_fitted(camps, monkeypatch):
    parts = []
    select = permix.select_components

    def recorded(data, numbers, **settings):
        parts.append(data.n_agents)
        return select(data, [1, 2], most=2, n_init=2, test_size=0.25, **settings)

    monkeypatch.setattr("permix.selection.select_components.select_components", recorded)
    found = compare(camps, ["mallows"], random_state=0, test_size=0.25)
    assert parts == [90]
    assert found.table.loc["mallows", "groups"] == 2.0


def test_matrices_are_compared_by_cells():
    rng = np.random.default_rng(1)
    cells = permix.Cells.coerce(np.kron(rng.integers(0, 2, (2, 3)), np.ones((10, 5))))
    found = compare(cells, ["cocluster"], random_state=0, test_size=0.25)
    assert found.form == "matrix"
    assert found.best == "cocluster"
    assert found.beats_baseline
    assert {"uniform (baseline)", "one group (baseline)", "independent columns (baseline)"} <= set(
        found.table.index
    )


def test_levels_that_only_held_out_cells_have_are_known():
    values = np.zeros((12, 6))
    values[0, 0] = 7.0  # in one cell, which is held out in one part
    found = compare(permix.Cells.coerce(values), ["cocluster"], random_state=0, test_size=0.25)
    assert np.isfinite(found.table["score"]).all()


@pytest.mark.slow
def test_tables_are_compared_by_rows():
    rng = np.random.default_rng(1)
    rows = np.concatenate([rng.normal(-4, 1, (40, 2)), rng.normal(4, 1, (40, 2))])
    frame = pd.DataFrame(rows, columns=["x", "y"])
    found = compare(frame, random_state=0)
    assert found.form == "table"
    assert found.best in ("dp-mixture", "dp-mixture --family gaussian-diagonal")
    assert found.beats_baseline
    assert found.table.loc[found.best, "groups"] == 2.0


def test_time_that_runs_out_leaves_models_out_with_that_reason(camps):
    with pytest.raises(
        DataError, match="no model could be compared: dp-mallows was not finished in the time"
    ):
        compare(camps, ["dp-mallows"], minutes=1e-9, random_state=0)


def test_interrupted_what_was_finished_is_kept(camps, monkeypatch):
    scored, enter, open_contexts, begun = Engine.scored, Interrupts.__enter__, [], []

    def entered(self):
        open_contexts.append(self)
        return enter(self)

    def stopped(self, candidate, fold, seconds):
        begun.append(candidate.way.label)
        if len(begun) > 1:  # what a Ctrl-C does, whoever treats signals here
            for context in open_contexts:
                context.note()
        return scored(self, candidate, fold, seconds)

    monkeypatch.setattr(Interrupts, "__enter__", entered)
    monkeypatch.setattr(Engine, "scored", stopped)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = compare(camps, QUICK, random_state=0)
    assert found.interrupted
    assert [entry.label for entry in found.entries] == begun[:1]
    # Whoever was not finished is named: it might be the better one.
    assert found.left_out == {begun[1]: STOPPED}
    assert late_ones(found) == [
        f"{begun[1]} was not finished when the comparison was stopped, and might be better."
    ]
    assert any(
        issubclass(w.category, PermixWarning) and "kept what was finished" in str(w.message) for w in caught
    )
    with pytest.raises(KeyboardInterrupt):
        compare(camps, ["mean-shift"], random_state=0)


def test_clocks_share_what_is_left():
    assert Clock(None).share(3) is None
    share = Clock(60.0).share(3)
    assert share is not None
    assert 19.0 < share <= 20.0
    with Deadline(Clock(0.0).share(2)) as deadline:
        assert deadline.passed


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (np.arange(12).reshape(4, 3), "whole numbers may hold orderings"),
        ([1, 2], "not on a list"),
    ],
)
def test_data_of_no_form_are_refused(data, message):
    with pytest.raises(DataError, match=message):
        compare(data)


def test_shares_and_folds_are_checked(camps):
    with pytest.raises(DataError, match="exclude each other"):
        compare(camps, QUICK, test_size=0.2, n_folds=3)
    with pytest.raises(DataError, match="test_size"):
        compare(camps, QUICK, test_size=1.5)
    with pytest.raises(DataError, match="too few"):
        compare(camps[:3], QUICK)


# -- the command -------------------------------------------------------------------------------------


def test_the_command_shows_the_verdict_first_and_writes_the_table(run, tmp_path, camps):
    file, output, picture = (tmp_path / name for name in ("votes.soc", "table.csv", "models.svg"))
    permix.write(camps, file)
    words = ["compare", file, "--model", "kde", "--model", "mean-shift", "-o", output]
    code, out, err = run(*words, "--picture", picture)
    assert code == 0, err
    assert picture.read_text(encoding="utf-8").rstrip().endswith("</svg>")
    assert out.splitlines()[0].split()[1:3] == ["predicts", "best:"]
    assert "kde" in out
    assert "nats" in out
    table = pd.read_csv(output)
    assert list(table.columns[:3]) == ["model", "kind", "score"]
    code, out, _ = run(*words[:-2], "--json", "--quiet")
    report = json.loads(out)
    assert report["best"] == table["model"][0]
    assert report["better_than_baseline"] is True
    code, _, err = run(*words)
    assert code == 1
    assert "--force" in err
    code, _, err = run(*words[:-2], "--picture", tmp_path / "models.doc")
    assert code == 2
    assert "pictures end in" in err


def test_the_picture_has_every_difference_with_its_error(camps):
    found = compare(camps, QUICK, random_state=0)
    axes = permix.plots.comparison(found)
    assert [label.get_text() for label in axes.get_yticklabels()] == list(found.table.index)
    drawn = [one for one in axes.containers if one.has_xerr]
    far = [text.get_text() for text in axes.texts]
    assert len(drawn) + len(far) == len(found.table)
    for place, bar in enumerate(drawn):
        row = found.table.iloc[place]
        (point,), (ends,) = bar[0].get_data()[0], bar[2][0].get_segments()
        assert point == pytest.approx(row["difference"])
        reach = 2.0 * row["difference_error"]
        np.testing.assert_allclose(ends[:, 0], [point - reach, point + reach], atol=1e-12)
    assert all(text.startswith("◂") for text in far)
    with pytest.raises(DataError, match="draws what"):
        permix.plots.comparison(camps)


@pytest.mark.parametrize(
    ("name", "text", "form"),
    [
        (
            "ratings.csv",
            "user,item,rating\n" + "".join(f"u{i % 9},i{i % 7},{i % 5}\n" for i in range(60)),
            "matrix",
        ),
        ("votes.csv", "pos1,pos2\na,b\nb,a\nb,a\n", "votes"),
        (
            "flowers.csv",
            "length,width,kind\n" + "".join(f"{i / 7},{i / 3},k{i % 2}\n" for i in range(40)),
            "table",
        ),
        (
            "answers.csv",
            "q1,q2,q3\n" + "".join(f"{i % 5},{(i * 7) % 5},{(i * 3) % 4}\n" for i in range(40)),
            "matrix",
        ),
    ],
)
def test_files_are_told_by_what_is_in_them(tmp_path, name, text, form):
    from permix.comparison.any_file import read_any

    file = tmp_path / name
    file.write_text(text)
    read = read_any(file, {"json": True, "quiet": True})
    assert read.form.name == form
    assert read.why


def test_what_the_user_says_the_file_is_counts(tmp_path):
    from permix.comparison.any_file import read_any

    file = tmp_path / "answers.csv"
    file.write_text("q1,q2,q3\n" + "".join(f"{i % 5},{(i * 7) % 5},{(i * 3) % 4}\n" for i in range(40)))
    assert read_any(file, {"json": True, "read_as": "table"}).form.name == "table"
    ambiguous = tmp_path / "unclear.csv"
    ambiguous.write_text("Rank_1,Rank_2,Rank_3\n" + "1,2,3\n2,1,3\n" * 9)
    with pytest.raises(DataError, match="could be"):
        read_any(ambiguous, {"json": True})


def test_tables_of_several_kinds_are_compared_with_the_family_that_fits_use():
    import pandas as pd

    from permix.dp_mixture.choose_family import chosen_family
    from permix.dp_mixture.compared import COMPARED

    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=30), "b": rng.normal(size=30), "c": ["x", "y", "z"] * 10})
    (way,) = COMPARED.ways(frame)
    default = chosen_family(None, frame)
    assert type(way.options["family"]) is type(default) is permix.MixedNIW
    assert way.options["family"].kinds == ("number", "number", "category")
    # Where numbers are too few for correlations, columns are independent in both.
    (way,) = COMPARED.ways(frame[["a", "c"]])
    assert type(way.options["family"]) is permix.Mixed


def test_a_table_that_no_model_takes_is_refused_with_the_reason_of_its_own_model():

    frame = pd.DataFrame({"person": [f"p{i:03}" for i in range(60)], "a": np.arange(60) % 7})
    with pytest.raises(
        DataError, match="no model suits these data as a table: dp-mixture cannot take them"
    ) as said:
        permix.compare(frame)
    assert "is for" not in str(said.value)


class Elsewhere(Here):
    """An executor in another process, as far as can be seen: all that it gets and gives is pickled."""

    def map_shards(self, *arguments, **options):
        sent = pickle.loads(pickle.dumps((arguments, options)))
        return pickle.loads(pickle.dumps(super().map_shards(*sent[0], **sent[1])))


def test_models_are_fitted_by_an_executor_with_the_same_result() -> None:
    votes = make_mallows_mixture(120, 4, 2, dispersion=0.3, random_state=4).data
    here, there = (
        permix.compare(votes, ["kde", "mean-shift"], random_state=0, n_folds=2, executor=executor)
        for executor in (None, Elsewhere(1))
    )
    assert here.table.drop(columns="seconds").equals(there.table.drop(columns="seconds"))
    with pytest.raises(DataError, match="minutes or an executor, not both"):
        permix.compare(votes, ["kde"], minutes=1.0, executor=Here(1))
