"""``fit cocluster``, and what other commands make of such models."""

from __future__ import annotations

import csv
import dataclasses
import json
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

import permix
from permix.cocluster import answers as cocluster_answers
from permix.cocluster.answers import levels_of
from permix.cocluster.cells.families import CategoricalCells
from permix.cocluster.command import COMMAND
from permix.cocluster.parameters import ConcentrationCheck
from permix.cocluster.tables import first_names
from permix.cocluster.tables import report as block_report
from permix.cocluster.tables import show as print_blocks
from permix.data.cells import Cells
from permix.data.io.cells_io import read_cells
from permix.estimators.archive import read_model

SHORT = ("--draws", 40, "--burn-in", 30, "--seed", 3)
SHAPE = (36, 14)


@pytest.fixture(scope="module")
def made():
    """Three kinds of rows, two of columns, ratings 1 to 4, a fifth of them missing."""
    rng = np.random.default_rng(5)
    rows, columns = np.arange(SHAPE[0]) % 3, np.arange(SHAPE[1]) % 2
    likely = np.array([[1, 4], [4, 1], [2, 3]])[np.ix_(rows, columns)]
    values = np.where(rng.random(SHAPE) < 0.9, likely, rng.integers(1, 5, SHAPE)).astype(float)
    values[rng.random(SHAPE) < 0.2] = np.nan
    return rows, columns, values


@pytest.fixture(scope="module")
def cells(made):
    rows, columns = np.nonzero(~np.isnan(made[2]))
    names = ([f"p{i}" for i in range(SHAPE[0])], [f"film {j}" for j in range(SHAPE[1])])
    return Cells(rows, columns, made[2][rows, columns], SHAPE, *names)


@pytest.fixture(scope="module")
def files(cells, tmp_path_factory):
    """The same matrix as a wide file, a long file and a sparse archive."""
    folder = tmp_path_factory.mktemp("matrix")
    dense = cells.dense()
    with open(folder / "wide.csv", "w", newline="") as handle:
        writer = csv.writer(handle)
        writer.writerow(["name", *cells.column_names])
        for name, row in zip(cells.row_names, dense, strict=True):
            writer.writerow([name, *("" if np.isnan(value) else int(value) for value in row)])
    with open(folder / "long.csv", "w", newline="") as handle:
        writer = csv.writer(handle)
        writer.writerow(["user", "film", "rating"])
        for row, column, value in zip(cells.rows, cells.columns, cells.values, strict=True):
            writer.writerow([cells.row_names[row], cells.column_names[column], int(value)])
    stored = (cells.values, (cells.rows, cells.columns))
    sp.save_npz(folder / "sparse.npz", sp.coo_array(stored, shape=SHAPE).tocsr())
    return folder


@pytest.fixture(scope="module")
def model(cells):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", permix.errors.ConvergenceWarning)
        return permix.CoClustering(n_draws=40, n_burn_in=30, random_state=3, progress=False).fit(cells)


@pytest.fixture
def fit(model, tmp_path):
    path = tmp_path / "films.permix"
    model.save(path)
    return path


def table_in(path):
    with open(path, newline="", encoding="utf-8") as handle:
        return list(csv.DictReader(handle))


def test_fit_finds_the_blocks_and_agrees_with_python(run, files, model, made, tmp_path):
    fit, picture = tmp_path / "f.permix", tmp_path / "blocks.svg"
    rows, columns = tmp_path / "rows.csv", tmp_path / "columns.csv"
    command = ["fit", "cocluster", files / "wide.csv", "-o", fit, *SHORT]
    code, out, err = run(*command, "--labels", rows, "--column-labels", columns, "--plot", picture, "--quiet")
    assert code == 0, err
    assert err == ""
    for words in (
        "36 rows, 14 columns",
        "a grid, mixtures of finite mixtures",
        "Groups of columns",
        "Blocks: mean",
    ):
        assert words in out
    assert "<svg" in picture.read_text()
    assert not (tmp_path / "f.permix.chains").exists()
    found = table_in(rows)
    assert list(found[0]) == ["row", "group", "how_sure", "placed"]
    assert [line["row"] for line in found] == [f"p{i}" for i in range(SHAPE[0])]
    assert [int(line["group"]) - 1 for line in found] == model.row_labels_.tolist()
    assert [int(line["group"]) - 1 for line in table_in(columns)] == model.column_labels_.tolist()
    assert permix.adjusted_rand(model.row_labels_, made[0]) == 1.0
    assert permix.adjusted_rand(model.column_labels_, made[1]) == 1.0

    report = json.loads(run("summary", fit, "--json")[1])
    assert (report["model"], report["prior"], report["family"]) == ("CoClustering", "mfm", "categorical")
    assert (report["row_groups"], report["column_groups"], report["blocks"]) == (3, 2, 6)
    assert report["row_group_sizes"] == np.bincount(model.row_labels_).tolist()
    assert report["block_table"] == model.blocks_.table.tolist()
    assert np.allclose(report["block_parameters"]["probabilities"], model.block_parameters_["probabilities"])
    assert report["log_likelihood"] == pytest.approx(model.log_likelihood_)
    assert sum(report["posterior_number_of_row_groups"].values()) == pytest.approx(1.0)
    assert run("summary", fit)[1] == out
    assert run("info", fit)[1] == out

    assert run(*command)[0] == 1  # it exists
    again = json.loads(run(*command, "--force", "--json")[1])
    assert {**again, "file": ""} == {**report, "file": ""}


def test_all_files_hold_the_same_matrix(files, cells):
    wide, long, sparse = (read_cells(files / name) for name in ("wide.csv", "long.csv", "sparse.npz"))
    assert np.array_equal(wide.values, cells.values)
    assert wide.row_names == cells.row_names
    assert np.array_equal(long.aligned(cells).values, cells.values)
    assert np.array_equal(sparse.values, cells.values)


@pytest.mark.parametrize("name", ["long.csv", "sparse.npz"])
def test_fit_says_how_it_read_the_file(run, files, tmp_path, name):
    code, _, err = run("fit", "cocluster", files / name, "-o", tmp_path / "f.permix", *SHORT, "--jobs", 1)
    assert code == 0
    assert "36 rows x 14 columns" in err
    assert ("read as a long table" if name == "long.csv" else "a sparse matrix") in err


def test_held_out_cells(run, files, cells, tmp_path):
    command = ["fit", "cocluster", files / "wide.csv", "-o", tmp_path / "f.permix", *SHORT]
    code, out, _ = run(*command, "--held-out", 0.2, "--json")
    assert code == 0
    report = json.loads(out)
    kept, held_out = cells.split(0.2, random_state=3)
    assert (report["cells"], report["held_out"]["cells"]) == (kept.n_cells, held_out.n_cells)
    model = permix.load(tmp_path / "f.permix")
    assert report["held_out"]["perplexity"] == pytest.approx(model.perplexity(held_out))
    assert report["held_out"]["perplexity"] < 3  # of four levels
    code, _, err = run(*command, "--held-out", 1.5, "--force")
    assert code == 2
    assert "--held-out 1.5 must be a share above 0 and below 1" in err


def test_nested_cuts(run, files, cells, tmp_path):
    fit, picture = tmp_path / "f.permix", tmp_path / "blocks.png"
    command = ["fit", "cocluster", files / "long.csv", "--prior", "mondrian", "--budget", 1.5, *SHORT]
    code, out, err = run(*command, "-o", fit, "--quiet", "--plot", picture)
    assert code == 0, err
    assert "nested cuts, Mondrian process" in out
    assert "Blocks, by their filled cells" in out
    assert picture.read_bytes()[:4] == b"\x89PNG"
    report = json.loads(run("summary", fit, "--json")[1])
    assert report["budget"] == 1.5
    assert len(report["tree"]["axis"]) == 2 * sum(axis >= 0 for axis in report["tree"]["axis"]) + 1
    assert sum(report["block_cells"]) == report["cells"] == cells.n_cells
    assert run("predict", fit, "--json")[0] == 0


def test_ensemble(run, files, tmp_path):
    fit = tmp_path / "f.permix"
    command = ["fit", "cocluster", files / "wide.csv", "-o", fit, *SHORT, "--ensemble", 3]
    code, out, _ = run(*command, "--held-out", 0.2, "--quiet", "--label-pseudo-count", 0.5)
    assert code == 0
    assert "consensus of 3 co-clusterings" in out
    assert "the bases averaged cell by cell" in out
    report = json.loads(run("summary", fit, "--json")[1])
    assert (report["model"], report["bases"]) == ("CoClusteringEnsemble", 3)
    assert (report["row_groups"], report["column_groups"]) == (3, 2)
    assert run("predict", fit, "--json")[0] == 0


def test_finite_grid(run, files, tmp_path):
    command = ["fit", "cocluster", files / "wide.csv", "-o", tmp_path / "f.permix", *SHORT, "--quiet"]
    finite = ("--prior", "dirichlet", "--row-groups", 3, "--column-groups", 2)
    code, out, err = run(*command, *finite, "--concentration", "2:1", "--json")
    assert code == 0, err
    report = json.loads(out)
    assert (report["prior"], report["membership"]) == ("dirichlet", "hard")
    assert report["row_groups"] <= 3


def test_mixed_membership(run, files, tmp_path):
    fit, new = tmp_path / "f.permix", tmp_path / "new.csv"
    command = ["fit", "cocluster", files / "wide.csv", "-o", fit, *SHORT, "--quiet", "--held-out", 0.2]
    finite = ("--prior", "dirichlet", "--row-groups", 3, "--column-groups", 2, "--membership", "mixed")
    assert run(*command, *finite)[0] == 0
    report = json.loads(run("summary", fit, "--json")[1])
    assert report["membership"] == "mixed"
    assert "finite Dirichlet, mixed membership" in run("summary", fit)[1]
    assert run("predict", fit, "--json")[0] == 0
    new.write_text("name,film 1,film 0\nann,4,1\n")
    rows = json.loads(run("predict", fit, new, "--json")[1])["rows"]
    assert {row["row"] for row in rows} == {"ann"}
    assert len(rows) == SHAPE[1] - 2
    rows = json.loads(run("predict", fit, new, "--what", "groups", "--json")[1])["rows"]
    assert rows[0]["log_probability"] == pytest.approx(
        permix.load(fit).score_samples(read_cells(new))[0], abs=1e-5
    )


def test_missing_cells_of_the_fitted_rows(run, fit, model, cells, tmp_path):
    answer = tmp_path / "missing.csv"
    assert run("predict", fit, "-o", answer)[0] == 0
    rows = table_in(answer)
    assert list(rows[0])[:4] == ["row", "column", "value", "probability"]
    assert list(rows[0])[4:] == ["mean", "p(1)", "p(2)", "p(3)", "p(4)"]
    missing = np.argwhere(np.isnan(cells.dense()))
    assert [(line["row"], line["column"]) for line in rows] == [
        (cells.row_names[i], cells.column_names[j]) for i, j in missing
    ]
    whole = model.predict_cells_proba()[missing[:, 0], missing[:, 1]]
    said = np.array([[float(line[f"p({level})"]) for level in range(1, 5)] for line in rows])
    assert np.allclose(said, whole, atol=1e-6)
    assert [int(line["value"]) for line in rows] == (whole.argmax(axis=1) + 1).tolist()
    code, out, _ = run("predict", fit, "--what", "cells")
    assert code == 0
    assert "Missing cells of the fitted rows" in out


def test_new_rows(run, fit, model, tmp_path):
    # Columns in another order, and not all of them.
    new = tmp_path / "new.csv"
    new.write_text("name,film 1,film 0,film 3\nann,4,1,4\nbob,,4,1\n")
    rows = json.loads(run("predict", fit, new, "--what", "groups", "--json")[1])["rows"]
    cells = read_cells(new)
    assert [row["row"] for row in rows] == ["ann", "bob"]
    assert [row["group"] - 1 for row in rows] == model.predict(cells).tolist()
    assert [row["log_probability"] for row in rows] == pytest.approx(model.score_samples(cells), abs=1e-5)
    answer = tmp_path / "cells.csv"
    assert run("predict", fit, new, "-o", answer)[0] == 0
    found = table_in(answer)
    assert len(found) == 2 * SHAPE[1] - 5
    assert {line["row"] for line in found} == {"ann", "bob"}
    values = model.predict_cells_proba(cells)
    first = next(line for line in found if (line["row"], line["column"]) == ("bob", "film 1"))
    assert float(first["p(1)"]) == pytest.approx(values[1, 1, 0], abs=1e-6)


def test_score_of_cells_held_out(run, fit, model, cells, tmp_path):
    open_ = [(i, j) for i, j in np.argwhere(np.isnan(cells.dense())).tolist()][:6]
    held = tmp_path / "held.csv"
    lines = [f"p{i},film {j},{1 + i % 4}" for i, j in open_]
    held.write_text("\n".join(["user,film,rating", *lines]) + "\n")
    _, out, err = run("predict", fit, held, "--what", "score", "--json")
    answer = json.loads(out)
    assert err == ""
    assert answer["perplexity"] == pytest.approx(model.perplexity(read_cells(held)))
    by_place = {(row["row"], row["column"]): row for row in answer["rows"]}
    for i, j in open_:
        p = model.predict_cells_proba(cells=[(i, j)])[0, i % 4]
        assert by_place[f"p{i}", f"film {j}"]["log_probability"] == pytest.approx(np.log(p), abs=1e-5)
    # Cells that were fitted are scored, and said to be.
    known = (cells.row_names[cells.rows[0]], cells.column_names[cells.columns[0]])
    held.write_text("\n".join(["user,film,rating", *lines, f"{known[0]},{known[1]},1"]) + "\n")
    code, out, err = run("predict", fit, held, "--what", "score")
    assert code == 0
    assert "perplexity: " in out
    assert f"1 of 7 cells were fitted, not held out, such as row {known[0]!r}" in " ".join(err.split())
    held.write_text("\n".join(["user,film,rating", *lines, "p99,film 0,1"]) + "\n")
    code, _, err = run("predict", fit, held, "--what", "score")
    assert code == 1
    assert "'p99'" in err
    assert "--what groups is for new rows" in err
    assert "3.0" not in out
    assert {row["value"] for row in answer["rows"]} <= {1, 2, 3, 4}
    assert all(isinstance(row["value"], int) for row in answer["rows"])
    held.write_text("user,film,rating\np0,film 0,\n")
    code, _, err = run("predict", fit, held, "--what", "score")
    assert code == 1
    assert f"{held}: no cell is filled, so that there is nothing to score" in err


def test_numbers_have_no_levels(run, files, tmp_path):
    fit = tmp_path / "f.permix"
    command = ["fit", "cocluster", files / "wide.csv", "--family", "poisson", "-o", fit, *SHORT, "-q"]
    assert run(*command)[0] == 0
    rows = json.loads(run("predict", fit, "--json")[1])["rows"]
    assert list(rows[0]) == ["row", "column", "value"]
    model = permix.load(fit)
    assert rows[0]["value"] == pytest.approx(
        model.predict_cells(cells=[(rows[0]["row"], rows[0]["column"])])[0]
    )


@pytest.mark.parametrize(
    ("options", "exit_code", "said"),
    [
        (
            ["--budget", 2],
            2,
            "--budget 2.0 would change nothing with --prior mfm; it belongs to --prior mond",
        ),
        (
            ["--prior", "mondrian", "--concentration", 2],
            2,
            "it belongs to --prior dp or --prior mfm or --prior dirichlet",
        ),
        (["--prior", "dirichlet"], 2, "--prior dirichlet needs --row-groups; with --prior mfm the data"),
        (["--prior", "dirichlet", "--ensemble", 3], 2, '--prior dirichlet must be "mfm", "dp" or "mondrian"'),
        (["--label-pseudo-count", 2], 2, "--label-pseudo-count says nothing without --ensemble"),
        (["--membership", "mixed", "--ensemble", 3], 2, "--membership says nothing with --ensemble"),
        (["--membership", "mixed"], 2, "it belongs to --prior dirichlet"),
        (["--concentration", "1:2:3"], 2, "ROWS:COLUMNS"),
        (["--concentration", "many"], 2, "gamma(SHAPE,RATE)"),
        (["--plot", "blocks.txt"], 2, "pictures end in"),
        (["--row-groups", 3], 2, "it belongs to --prior dirichlet"),
        (["--concentration", -1], 2, "--concentration -1.0 must be"),
        (["--prior", "other"], 2, '--prior other must be "mfm", "dp", "dirichlet" or "mondrian"'),
        (["--family", "poisson", "--levels", "1,2"], 2, "--levels belongs to --family categorical"),
        (["--family", "categorical", "--levels", "1,nan"], 2, "got nan"),
    ],
)
def test_options_that_do_not_go_together(run, files, tmp_path, options, exit_code, said):
    code, _, err = run("fit", "cocluster", files / "wide.csv", "-o", tmp_path / "f.permix", *options)
    assert code == exit_code
    assert said in " ".join(err.replace("│", " ").split())


def test_trouble_with_the_matrix(run, tmp_path):
    both = tmp_path / "both.csv"
    both.write_text("a,b,c\n1,1,5\n1,2,4\n2,1,3\n")
    code, _, err = run("fit", "cocluster", both, "-o", tmp_path / "f.permix")
    assert code == 1
    assert "say --layout long or --layout wide" in err
    text = tmp_path / "text.csv"
    text.write_text("name,x,y\nann,good,bad\nbob,bad,bad\ncy,good,good\n")
    code, _, err = run("fit", "cocluster", text, "-o", tmp_path / "f.permix", "--family", "gaussian")
    assert code == 1
    assert "row 'ann', column 'x': 'good' is not a number" in err
    counted = tmp_path / "counted.csv"
    counted.write_text("k,x,y,z\n1,5,5,0\n2,5,4,0\n3,1,1,1\n")
    code, _, err = run("fit", "cocluster", counted, "-o", tmp_path / "f.permix")
    assert "say --id k" in err


def test_trouble_with_predictions(run, fit, tmp_path):
    new = tmp_path / "new.csv"
    new.write_text("name,film 0,play 1\nann,4,1\n")
    code, _, err = run("predict", fit, new)
    assert code == 1
    assert "the column 'play 1' is unknown" in err
    for options, said in (
        (["--what", "groups"], "give a file of new data as well; --what groups is about new rows"),
        (["--what", "score"], "give a file of new data as well"),
        (["--what", "ranking"], "which answers cells, groups, recommend, score"),
        (["--samples", 10], "--samples says nothing to a fit of cocluster"),
        (["--seed", 0], "--seed says nothing to a fit of cocluster about --what cells"),
        (["--no-header"], "--header says how to read a file of new data, and none is given"),
        (["--id", "name"], "--id says how to read a file of new data, and none is given"),
        ([new, "--layout", "orders"], "whose files may be auto, wide, long"),
        ([new, "--count-column", "n"], "--count-column says nothing to a fit of cocluster"),
    ):
        code, _, err = run("predict", fit, *options)
        assert code == 2, options
        assert said in " ".join(err.replace("│", " ").split())
    assert run("sample", fit)[0] == 1


def test_names_of_members_are_shown(run, files, model, tmp_path):
    fit = tmp_path / "f.permix"
    _, out, _ = run("fit", "cocluster", files / "wide.csv", "-o", fit, *SHORT, "--quiet")
    kinds = [[j for j in range(SHAPE[1]) if j % 2 == kind] for kind in (0, 1)]
    for kind in kinds:
        assert ", ".join(f"film {j}" for j in kind) in out
    shown = next(line for line in out.splitlines() if "p0, p3, p6" in line)
    assert shown.rstrip().endswith("p33")
    assert "80.2% of" not in out
    assert "90% of the draws" in out
    title = next(line for line in out.splitlines() if line.startswith("f.permix: "))
    assert "%)" in title
    report = json.loads(run("summary", fit, "--json")[1])
    members = report["row_group_members"]
    assert members == [
        [f"p{i}" for i in np.flatnonzero(model.row_labels_ == k)] for k in range(model.n_row_clusters_)
    ]
    assert first_names(["tea", "milk", "coffee"], 9) == "tea, milk, …"
    assert first_names(["tea", "milk"], 9) == "tea, milk"
    assert first_names(["a name that is too long"], 9) == "a name that is too long"


@pytest.mark.parametrize("shown", [2, 5])
def test_shown_outside_the_interval_is_explained(fit, capsys, shown):
    report = block_report(read_model(fit)[1])
    said = "fewer groups than most draws"
    report["posterior_number_of_row_groups"] = {"4": 0.5, "5": 0.5}
    print_blocks({**report, "row_groups": shown}, "title")
    assert (said in capsys.readouterr().out) is (shown == 2)


def test_held_out_levels_come_from_all_cells(run, tmp_path):
    # One cell has a value that no other has; with this seed it is held out.
    table = np.random.default_rng(0).integers(1, 4, (10, 6))
    table[4, 2] = 9
    seed = next(
        seed for seed in range(100) if 9.0 not in Cells.coerce(table).split(0.3, seed)[0].values.tolist()
    )
    path, fit = tmp_path / "m.csv", tmp_path / "f.permix"
    path.write_text("a,b,c,d,e,f\n" + "\n".join(",".join(map(str, row)) for row in table) + "\n")
    command = ["fit", "cocluster", path, "-o", fit, "--draws", 20, "--burn-in", 10, "--seed", seed]
    code, out, err = run(*command, "--held-out", 0.3)
    assert code == 0, err
    assert "has not seen this 30% of the cells: permix predict lists them among the missing" in out
    assert "does not keep this result" in out
    report = json.loads(run(*command, "--held-out", 0.3, "--json", "--force")[1])
    assert report["levels"] == [1, 2, 3, 9]
    assert report["held_out"]["share"] == 0.3
    assert report["held_out"]["perplexity"] > 1


def test_a_bad_cell_that_would_be_held_out_stops_before_the_fit(run, tmp_path):
    table = np.ones((10, 6), dtype=int).tolist()
    table[4][2] = -2
    seed = next(seed for seed in range(100) if -2.0 not in Cells.coerce(table).split(0.3, seed)[0].values)
    path, fit = tmp_path / "m.csv", tmp_path / "f.permix"
    path.write_text("a,b,c,d,e,f\n" + "\n".join(",".join(map(str, row)) for row in table) + "\n")
    code, _, err = run(
        "fit", "cocluster", path, "-o", fit, "--family", "poisson", "--held-out", 0.3, "--seed", seed
    )
    assert code == 1
    assert "row 5, column 'c': -2 is not a count" in err
    assert [file.name for file in tmp_path.iterdir()] == ["m.csv"]


def test_codes_for_missing(run, files, cells, tmp_path):
    path, fit, new = tmp_path / "m.csv", tmp_path / "f.permix", tmp_path / "new.csv"
    dense = cells.dense()
    lines = [",".join(["name", *cells.column_names])]
    for name, row in zip(cells.row_names, dense, strict=True):
        lines.append(",".join([name, *("-1" if np.isnan(value) else f"{value:g}" for value in row)]))
    path.write_text("\n".join(lines) + "\n")
    code, _, err = run("fit", "cocluster", path, "-o", fit, *SHORT)
    assert code == 0
    assert "if it stands for missing, say --missing -1" in err
    code, out, err = run("fit", "cocluster", path, "-o", fit, *SHORT, "--missing", "-1", "--force", "--json")
    assert code == 0
    assert (json.loads(out)["levels"], json.loads(out)["cells"]) == ([1, 2, 3, 4], cells.n_cells)
    new.write_text("name,film 0,film 1\nann,4,-1\n")
    code, _, err = run("predict", fit, new, "--missing", "-2")
    assert code == 1
    assert "read the cells with --missing -1" in err
    code, out, err = run("predict", fit, new, "--json")
    assert code == 0
    assert "-1 stands for a missing cell in new.csv" in err
    assert len(json.loads(out)["rows"]) == SHAPE[1] - 1
    assert run("predict", fit, "--missing", "-1")[0] == 2


def test_new_rows_with_few_cells_are_fine(run, fit, tmp_path):
    new = tmp_path / "new.csv"
    header = ",".join(["name", *(f"film {j}" for j in range(SHAPE[1]))])
    new.write_text(f"{header}\nann,4,{',' * (SHAPE[1] - 2)}\nbo{',' * SHAPE[1]}\n")
    code, out, err = run("predict", fit, new, "--what", "groups", "--json")
    assert code == 0
    assert err == ""
    assert [row["row"] for row in json.loads(out)["rows"]] == ["ann", "bo"]
    new.write_text(f"{header}\nbo{',' * SHAPE[1]}\n")
    code, out, err = run("predict", fit, new, "--json")
    assert (code, err) == (0, "")
    assert len(json.loads(out)["rows"]) == SHAPE[1]


def test_identifiers_among_the_cells(run, tmp_path):
    path = tmp_path / "m.csv"
    rng = np.random.default_rng(1)
    rows = [f"{i * 7 + 3},{','.join(map(str, rng.integers(1, 3, 5)))}" for i in range(25)]
    path.write_text("household,a,b,c,d,e\n" + "\n".join(rows) + "\n")
    command = ["fit", "cocluster", path, "-o", tmp_path / "f.permix", "--draws", 10, "--burn-in", 5, "-q"]
    _, _, err = run(*command)
    assert "column 'household' has a different value in every row" in err
    assert "say --id household" in err
    code, out, err = run(*command, "--id", "household", "--force")
    assert (code, err) == (0, "")
    assert "25 rows, 5 columns" in out


def test_levels_in_their_order(run, tmp_path):
    path, fit = tmp_path / "m.csv", tmp_path / "f.permix"
    words = ["no", "rather not", "yes"]
    rng = np.random.default_rng(1)
    lines = [",".join(words[k] for k in rng.integers(0, 3, 5)) for _ in range(12)]
    path.write_text("a,b,c,d,e\n" + "\n".join(lines) + "\n")
    command = ["fit", "cocluster", path, "-o", fit, "--draws", 10, "--burn-in", 5, "-q", "--json", "--force"]
    code, out, err = run(*command, "--levels", "yes, rather not, no,never")
    assert code == 0, err
    assert json.loads(out)["levels"] == ["yes", "rather not", "no", "never"]
    code, _, err = run(*command, "--levels", "yes,no")
    assert code == 1
    assert "'rather not' is none of the known values (yes, no)" in err
    assert "possible, --levels 'yes,no,rather not'" in err
    code, _, err = run(*command, "--levels", "yes,,no")
    assert code == 2
    assert "--levels yes,,no must be the possible values, separated by commas" in err
    code, _, err = run(*command, "--levels", "1,2", "--family", "poisson")
    assert code == 2
    assert "--levels belongs to --family categorical, not to poisson" in err
    assert levels_of('"a, b",c', is_text=True) == ("a, b", "c")


@pytest.mark.parametrize(("words", "shown"), [(("no", "yes"), ": 'no' is"), (("1", "2"), ": 2 is")])
def test_bernoulli_names_the_first_cell_that_is_neither(run, tmp_path, words, shown):
    path = tmp_path / "m.csv"
    rng = np.random.default_rng(1)
    lines = [",".join(words[k] for k in rng.integers(0, 2, 5)) for _ in range(12)]
    path.write_text("a,b,c,d,e\n" + "\n".join(lines) + "\n")
    code, _, err = run("fit", "cocluster", path, "-o", tmp_path / "f.permix", "--family", "bernoulli")
    assert code == 1
    first = next(
        f"row {i + 1}, column '{'abcde'[j]}'{shown}"
        for i, line in enumerate(lines)
        for j, word in enumerate(line.split(","))
        if f"{word!r} is" in shown or f" {word} is" in shown
    )
    assert f"{first} none of the known values (0, 1). Write 0 and 1, or fit with --family categorical" in err
    assert not (tmp_path / "f.permix.chains").exists()


def test_interrupted_in_the_words_of_the_command_line(run, files, tmp_path, monkeypatch):
    real = cocluster_answers.fit_cocluster

    def cut_short(cells, settings):
        found = real(cells, settings)
        warnings.warn(
            "interrupted after 3 of 70 iterations: the same call with store='x' continues the run.",
            permix.errors.PermixWarning,
            stacklevel=2,
        )
        return dataclasses.replace(found, draws=dataclasses.replace(found.draws, interrupted=True))

    monkeypatch.setattr(cocluster_answers, "fit_cocluster", cut_short)
    code, _, err = run("fit", "cocluster", files / "wide.csv", "-o", tmp_path / "f.permix", *SHORT, "-q")
    assert code == 130
    assert "permix: interrupted; the same command goes on from" in err
    assert "store=" not in err


def test_a_long_file_without_names(run, files, cells, tmp_path):
    path, fit = tmp_path / "u.data", tmp_path / "f.permix"
    entries = zip(cells.rows.tolist(), cells.columns.tolist(), cells.values.tolist(), strict=True)
    path.write_text("".join(f"{i + 11}\t{j + 5}\t{v:g}\t{880000000 + 31 * i + j}\n" for i, j, v in entries))
    code, _, err = run("fit", "cocluster", path, "-o", fit, *SHORT)
    assert code == 1
    assert "say --layout long or --layout wide" in err
    code, out, err = run("fit", "cocluster", path, "-o", fit, *SHORT, "--layout", "long")
    assert code == 0, err
    assert "the first three are taken for row, column and value, and the fourth is not used" in err
    assert "36 rows, 14 columns" in out
    code, _, err = run("fit", "cocluster", files / "wide.csv", "-o", fit, "--force", "--layout", "long")
    assert code == 1
    assert "This looks wide: say --layout wide" in err


def test_words_of_the_command_line():
    """Messages name arguments as options, with the flags of this command."""

    def said_of(action):
        with pytest.raises(permix.errors.DataError) as caught:
            action()
        return caught.value.args[0].as_options(COMMAND.flags)

    assert said_of(lambda: permix.CoClustering(n_row_clusters=70).fit([[1]])).startswith("--row-groups 70")
    seven = np.array([7.0])
    for levels, option in (
        ([1, 2], "--levels 1,2,7."),
        (["a,b", "c"], "It is a number"),
        (list(range(20, 40)), "possible, --levels."),
    ):
        family = CategoricalCells(levels=levels)
        assert option in said_of(lambda family=family: family.encode(seven))
    words = CategoricalCells(levels=["a,b", "c"])
    assert "possible, --levels '\"a,b\",c,d'." in said_of(lambda: words.encode(np.array(["d"], dtype=object)))
    assert ConcentrationCheck().parse("3") == 3.0
    assert ConcentrationCheck().parse("3:0.5") == (3.0, 0.5)
    assert COMMAND.flags["row_column"] == "--id"
    assert COMMAND.flags["header"] == "--header"


def fitted_without_names(run, files, tmp_path):
    fit = tmp_path / "sparse.permix"
    assert run("fit", "cocluster", files / "sparse.npz", "-o", fit, *SHORT, "-q")[0] == 0
    return fit


def test_names_of_columns_a_fit_does_not_know(run, files, tmp_path):
    fit, new = fitted_without_names(run, files, tmp_path), tmp_path / "new.csv"
    names = [f"film {j}" for j in reversed(range(SHAPE[1]))]
    new.write_text(",".join(names) + "\n" + ",".join(["4"] * SHAPE[1]) + "\n")
    for what in ("groups", "cells"):
        code, out, err = run("predict", fit, new, "--what", what)
        assert (code, out) == (1, "")
        assert "names of columns ('film 13'" in err
    new.write_text("user,film,rating\np1,0,4\n")
    code, _, err = run("predict", fit, new, "--what", "score")
    assert code == 1
    assert "names of rows ('p1')" in err
    for first in (0, 1):  # numbers are written as they were given
        cells = [(first, first, 4), (SHAPE[0] - 1 + first, SHAPE[1] - 1 + first, 1)]
        new.write_text("user,film,rating\n" + "".join(f"{i},{j},{v}\n" for i, j, v in cells))
        code, out, _ = run("predict", fit, new, "--what", "score", "--json")
        assert code == 0
        answer = json.loads(out)
        assert [(row["row"], row["column"]) for row in answer["rows"]] == [
            (str(i), str(j)) for i, j, _ in cells
        ]
        held = Cells([0, SHAPE[0] - 1], [0, SHAPE[1] - 1], [4, 1], SHAPE)
        assert answer["perplexity"] == pytest.approx(permix.load(fit).perplexity(held))


def test_a_first_line_that_counts(run, files, fit, tmp_path):
    sparse, new = fitted_without_names(run, files, tmp_path), tmp_path / "new.csv"
    numbers = [str(j + 1) for j in range(SHAPE[1])]
    new.write_text(",".join(numbers) + "\n" + ",".join(["4"] * SHAPE[1]) + "\n")
    code, _, err = run("predict", sparse, new, "--what", "groups")
    assert code == 1
    assert "say --header or --no-header" in err
    code, out, _ = run("predict", sparse, new, "--what", "groups", "--header", "--json")
    assert (code, len(json.loads(out)["rows"])) == (0, 1)
    new.write_text(",".join(["4"] * SHAPE[1]) + "\n")
    code, _, err = run("predict", fit, new, "--no-header", "--what", "groups")
    assert code == 0
    assert "has no names of columns: they are taken to be those of the fit" in err
    counted = tmp_path / "counted.csv"
    counted.write_text("k,x,y,z\n1,5,5,0\n2,5,4,0\n3,1,1,1\n")
    command = ["fit", "cocluster", counted, "-o", tmp_path / "k.permix", *SHORT, "--json"]
    assert json.loads(run(*command, "--id", "")[1])["columns"] == 4


def test_the_cell_that_is_no_number(run, fit, tmp_path):
    held = tmp_path / "held.csv"
    held.write_text("user,film,rating\np1,film 3,3\np1,film 4,good\n")
    code, _, err = run("predict", fit, held, "--what", "score")
    assert code == 1
    assert "row 'p1', column 'film 4': 'good' is none of the known values (1, 2, 3, 4)" in err
    held.write_text("user,film,rating\np1,film 3,7\n")
    code, _, err = run("predict", fit, held, "--what", "score")
    assert "possible, --levels 1,2,3,4,7." in err


def test_an_absurd_count(run, files, tmp_path):
    fit, held = tmp_path / "f.permix", tmp_path / "held.csv"
    assert run("fit", "cocluster", files / "wide.csv", "--family", "poisson", "-o", fit, *SHORT, "-q")[0] == 0
    held.write_text("user,film,rating\np1,film 3,99999\n")
    code, out, err = run("predict", fit, held, "--what", "score")
    assert code == 0
    assert "overflow" not in err
    assert "perplexity: inf" in out
    assert "99,999" in out
    answer = json.loads(run("predict", fit, held, "--what", "score", "--json")[1])
    assert answer["perplexity"] is None
    assert answer["mean_log_probability"] < -1000


def test_rows_with_names_of_fitted_ones(run, fit, tmp_path):
    new = tmp_path / "new.csv"
    new.write_text("name,film 0\np3,1\nann,2\n")
    code, out, err = run("predict", fit, new, "--what", "groups")
    assert code == 0
    assert "(1 of 2, such as 'p3') are taken for new rows; --what score" in err
    assert "that of a group of its own (new)" in out
