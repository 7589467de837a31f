"""A model in a folder of its own and one line of registration: the library and the commands know it."""

from __future__ import annotations

import importlib
import json
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

import permix
from permix.estimators import registry

FILES = {
    "__init__.py": '"""Groups by first choice."""\n',
    "parameters.py": '''
"""What a user may choose."""

from permix.estimators.checks import Whole
from permix.estimators.parameters import RunParameters, declare


class FirstChoiceParameters(RunParameters):
    """Parameters of FirstChoice."""

    least: int = declare(1, Whole(1), "Groups with fewer agents are joined.")
''',
    "fit.py": '''
"""The work."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np


@dataclass(frozen=True, eq=False)
class FirstChoiceFit:
    """Who chose whom first."""

    model: ClassVar[str] = "FirstChoice"

    settings: Any
    items: tuple
    labels: np.ndarray
    sizes: np.ndarray


def fit_first_choice(rankings, settings):
    """Count first choices; small groups are joined in the last one."""
    first = rankings.orders[:, 0]
    sizes = np.bincount(first, weights=rankings.counts, minlength=rankings.n_items).astype(np.int64)
    big = np.flatnonzero(sizes >= settings.least)
    new = np.full(rankings.n_items, len(big))
    new[big] = np.arange(len(big))
    labels = new[first]
    agents = np.bincount(labels, weights=rankings.counts).astype(np.int64)
    return FirstChoiceFit(settings, rankings.items, labels, agents)
''',
    "estimator.py": '''
"""The public class."""

from permix.estimators.ranking_estimator import RankingEstimator
from permix.estimators.ranking_lists import as_top_lists
from toy_first_choice.fit import fit_first_choice
from toy_first_choice.parameters import FirstChoiceParameters


class FirstChoice(RankingEstimator, parameters=FirstChoiceParameters):
    """Groups by first choice.

    Attributes
    ----------
    labels_ : ndarray
        Group of each row.
    """

    _read = staticmethod(as_top_lists)
    _fit_to = staticmethod(fit_first_choice)

    def _adopt(self, fit):
        self._fit = fit
        self.items_, self.labels_ = fit.items, fit.labels
        return self
''',
    "archive.py": '''
"""What an archive holds."""

from permix.estimators.archive import Content, Schema
from permix.estimators.archive_parts import ITEMS
from permix.estimators.fields import below, counts, field
from toy_first_choice.fit import FirstChoiceFit
from toy_first_choice.parameters import FirstChoiceParameters

SCHEMA = Schema(
    parameters=FirstChoiceParameters,
    pack=lambda fit: Content({"items": fit.items}, {"labels": fit.labels, "sizes": fit.sizes}),
    build=lambda saved: FirstChoiceFit(saved.settings, saved.facts["items"], **saved.arrays),
    facts={"items": ITEMS},
    arrays={
        "labels": field("int", "rows", where=below("groups")),
        "sizes": field("int64", "groups", where=counts),
    },
)
''',
    "command.py": '''
"""The command ``permix fit first-choice``."""

from permix.cli.command import ModelCommand
from permix.cli.votes import VOTES
from toy_first_choice.parameters import FirstChoiceParameters

COMMAND = ModelCommand(
    name="first-choice",
    help="Group agents by what they like best.",
    parameters=FirstChoiceParameters,
    source=VOTES,
)
''',
    "answers.py": '''
"""What the command line asks of the model."""

from toy_first_choice.fit import fit_first_choice


def fit_data(votes, settings):
    """Fit to a file."""
    return fit_first_choice(votes.table, settings)
''',
    "tables.py": '''
"""What the command line shows."""

from permix.cli.output import print_table


def report(fit):
    """Plain values."""
    return {"model": fit.model, "sizes": fit.sizes.tolist()}


def show(report, title):
    """A table."""
    print_table(title, ["group", "agents"], [[k + 1, n] for k, n in enumerate(report["sizes"])])
''',
}


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """The toy model, registered and importable while the test runs."""
    folder = tmp_path / "toy_first_choice"
    folder.mkdir()
    for name, text in FILES.items():
        (folder / name).write_text(text.lstrip())
    monkeypatch.syspath_prepend(tmp_path)
    home = "toy_first_choice"
    model = registry.Model(
        "FirstChoice", f"{home}.estimator:FirstChoice", f"{home}.archive:SCHEMA", f"{home}.command:COMMAND"
    )
    monkeypatch.setitem(registry.MODELS, model.name, model)
    yield importlib.import_module(f"{home}.estimator").FirstChoice
    for name in [name for name in sys.modules if name.startswith(home)]:
        del sys.modules[name]


def votes():
    return permix.Rankings.from_orders([["a", "b"], ["b", "a"], ["a", "c"], ["c", "a"]], counts=[4, 2, 1, 1])


def test_the_library_knows_it(toy, tmp_path):
    model = toy(least=2, random_state=3).fit(votes())
    assert model.labels_.tolist() == [0, 1, 0, 2]
    path = tmp_path / "toy.permix"
    model.save(path)
    again = permix.load(path)
    assert type(again) is toy
    assert again.get_params() == model.get_params()
    np.testing.assert_array_equal(again.labels_, model.labels_)
    with pytest.raises(permix.errors.DataError, match="no picture 'overview' of a FirstChoice"):
        permix.plots.overview(model)
    with pytest.raises(permix.errors.ParameterError, match="least=0 must be a whole number, 1 or more"):
        toy(least=0).fit(votes())
    assert "least : int, default 1" in toy.__doc__


def test_the_command_line_knows_it(toy, tmp_path):
    from permix.cli.app import build

    permix.write(votes(), tmp_path / "votes.soi")
    run = CliRunner()
    output = tmp_path / "toy.permix"
    arguments = ["fit", "first-choice", str(tmp_path / "votes.soi"), "-o", str(output), "--least", "2"]
    done = run.invoke(build(), arguments)
    assert done.exit_code == 0, done.output
    assert "group" in done.output
    shown = run.invoke(build(), ["summary", str(output), "--json"])
    assert json.loads(shown.output)["sizes"] == [5, 2, 1]
    helped = run.invoke(build(), ["fit", "first-choice", "--help"])
    assert "--least" in helped.output
    refused = run.invoke(build(), [*arguments[:-1], "0", "--force"])
    assert isinstance(refused.exception, permix.errors.DataError)
    assert str(refused.exception) == "--least 0 must be a whole number, 1 or more"
