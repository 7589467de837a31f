"""The package as a whole: what importing it costs, and that every public name is there."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import permix

ROOT = Path(__file__).parents[1]
HEAVY = {
    "numpy",
    "numba",
    "scipy",
    "pandas",
    "polars",
    "sklearn",
    "xarray",
    "matplotlib",
    "rich",
    "arviz_base",
}

COMMAND = "sys.argv = ['permix', *{!r}]\nfrom permix.cli import main\ntry: main()\nexcept SystemExit: pass"


def loaded_after(*codes: str) -> set[str]:
    """What one process has loaded after these programs."""
    shown = "print('', *{name.split('.')[0] for name in sys.modules}, sep='\\n')"
    program = "\n".join(["import sys", *codes, shown])
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_importing_permix_loads_nothing_heavy():
    assert not loaded_after("import permix") & HEAVY


def test_help_loads_no_numbers_and_no_plots():
    code = (
        "sys.argv = ['permix', '--help']\nfrom permix.cli import main\ntry: main()\nexcept SystemExit: pass"
    )
    assert not loaded_after(code) & (HEAVY - {"rich"})


def test_fitting_loads_no_plots_and_the_command_line_no_scikit_learn():
    assert "matplotlib" not in loaded_after("import permix; permix.DPMixture")
    light = loaded_after("import permix.dp_mixture.command, permix.estimators.archive, permix.data.io.tables")
    assert not light & {"sklearn", "matplotlib", "xarray"}


@pytest.mark.parametrize("name", [name for name in permix.__all__ if name != "plots"])
def test_every_public_name_is_there(name):
    assert getattr(permix, name) is not None
    assert name in dir(permix)


def test_unknown_names_are_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'Malows'"):
        permix.Malows  # noqa: B018


def test_small_questions_need_no_compiled_code(tmp_path):
    """Consensus and description of a small file, and the summary of a fit: no Numba, scipy or pandas."""
    votes, fit = tmp_path / "votes.csv", tmp_path / "fit.permix"
    votes.write_text("1st,2nd,3rd\ntea,milk,water\nmilk,water,tea\nwater,tea,milk\n")
    permix.MallowsMixture(2, random_state=1, progress=False).fit(permix.read(votes)).save(fit)
    questions = ("consensus", str(votes)), ("info", str(votes)), ("summary", str(fit))
    loaded = loaded_after(*map(COMMAND.format, questions))
    assert "numpy" in loaded
    assert not loaded & {"numba", "scipy", "pandas", "sklearn"}


def test_what_a_table_or_a_matrix_holds_is_said_without_compiled_code(tmp_path):
    """No model is loaded to read it."""
    table = tmp_path / "table.csv"
    table.write_text("height,weight\n" + "".join(f"{i}.5,{7 * i % 13}.25\n" for i in range(30)))
    loaded = loaded_after(
        *(COMMAND.format(("info", str(table), "--as", form)) for form in ("matrix", "table"))
    )
    assert "pandas" in loaded
    assert not loaded & {"numba", "scipy", "sklearn"}


def test_readme_names_extras_that_there_are():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    named = {name for words in re.findall(r'install "\.\[([a-z,]+)\]"', readme) for name in words.split(",")}
    assert named
    assert named <= set(project["optional-dependencies"])
