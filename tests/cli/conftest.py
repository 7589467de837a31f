"""The command line, called in this process as a shell would call it."""

from __future__ import annotations

import sys
import warnings
from functools import cache

import numpy as np
import pytest
import typer

import permix
from permix.cli import app, main
from permix.estimators.registry import MODELS

build = app.build


@cache
def built(models):
    """The command line of these models: most of the time of a call that is refused goes into building it."""
    return typer.main.get_command(build())


@pytest.fixture
def run(monkeypatch, capsys):
    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["permix", *map(str, arguments)])
        monkeypatch.setattr(app, "build", lambda: built(tuple(map(id, MODELS.values()))))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", permix.errors.ConvergenceWarning)
            try:
                main()
                code = 0
            except SystemExit as stop:
                code = stop.code or 0
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return call


@pytest.fixture
def points(tmp_path):
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(-5, 1, (30, 2)), rng.normal(5, 1, (20, 2))])
    path = tmp_path / "points.csv"
    rows = [f"p{i},{x:.4f},{y:.4f}" for i, (x, y) in enumerate(X)]
    path.write_text("name,height,weight\n" + "\n".join(rows) + "\n")
    return path
