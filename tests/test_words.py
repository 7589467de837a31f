"""One word for one thing: what people read says group, prior and how sure, as CONTRIBUTING asks."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import pytest
import typer

from permix.cli.app import build
from permix.estimators.registry import MODELS, part
from tests.estimators.examples import NAMES, fitted

ROOT = Path(__file__).parents[1]
SOURCES = [path for path in sorted((ROOT / "src").rglob("*.py")) if not path.name.endswith("_jit.py")]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FORBIDDEN = re.compile(r"(?<![A-Za-z-])(clusters?|components?|laws?|confidence)(?![A-Za-z])", re.I)
# Names of Python, of classes and of arguments, which sentences may mention.
PYTHON = re.compile(r"\b(n|max)_(\w+_)?(clusters|components)\b|\bselect_components\b|`[^`]*`")
# Titles of papers, words about other programs, and the line that explains the names.
ALLOWED = ("Splitting and merging components", "BayesianGaussianMixture", "In code and in names such as")


def refused(text):
    return FORBIDDEN.search(PYTHON.sub("", text)) and not any(words in text for words in ALLOWED)


def commands(command):
    yield command
    for inner in getattr(command, "commands", {}).values():
        yield from commands(inner)


def test_help_of_every_command():
    for command in commands(typer.main.get_command(build())):
        for text in (command.help, command.epilog, *(f"{p.opts} {p.help}" for p in command.params if p.name)):
            assert not refused((text or "").replace("fit cocluster", "")), text


def sentences(path):
    """Texts of a file that have several words, but for docstrings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    statements = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        text = node.value if isinstance(node, ast.Constant) and id(node) not in statements else None
        if isinstance(text, str) and " " in text.strip():
            yield text


def test_messages_and_titles():
    found = [f"{path}: {text}" for path in SOURCES for text in sentences(path) if refused(text)]
    assert not found


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_pages(path):
    prose = re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.M | re.S)
    assert not [line for line in prose.splitlines() if refused(line)]


@pytest.mark.parametrize("name", NAMES)
def test_tables_draws_and_json(name):
    model = fitted(name)
    names = [str(word) for table in (model.summary(), model.diagnostics()) for word in (*table, *table.index)]
    if getattr(model._fit, "draws", None) is not None:
        posterior = model.posterior_["posterior"]
        names += [*map(str, posterior.data_vars), *map(str, posterior.dims)]
    if MODELS[name].command:
        report = part(MODELS[name].command).function("report")(model._fit)
        names += re.findall(r'"([^"]+)":', json.dumps(report, default=str))
    assert not [word for word in names if FORBIDDEN.search(word)]


def test_the_words_are_found():
    assert all(map(refused, ("3 clusters", "the law of κ", "its confidence")))
    assert FORBIDDEN.search("n_row_clusters")
    assert not refused("n_components=3 of `cluster_sizes_`, a co-clustering")
