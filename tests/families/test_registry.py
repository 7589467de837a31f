"""What is registered is complete: commands, files, tests and pages rely on it."""

from __future__ import annotations

import dataclasses
import inspect
from pathlib import Path

import numpy as np
import pytest

import permix
from permix import families, moves, partitions, registries
from permix.errors import DataError
from permix.families import contract_jit as contract
from permix.moves.base import Compound, Move
from permix.moves.naming import COMPOUND
from permix.registries import FAMILIES, MOVES, PRIORS
from tests.families.cases import CASES
from tests.moves.mixture_cases import PRIORS as PRIOR_CASES
from tests.moves.mixture_cases import posterior
from tests.oracles.mixtures import PREDICTIVES, naive_marginal, total_variation

REGISTRIES = {"family": FAMILIES, "prior": PRIORS, "move": MOVES}
SOURCE = Path(permix.__file__).parent


@pytest.mark.parametrize("what", REGISTRIES)
def test_every_name_leads_to_its_class_and_back(what):
    registry = REGISTRIES[what]
    assert registry.what == what
    for name, cls in registry.items():
        assert registry.name_of(cls) == name
        assert registry.find(name) is cls
    with pytest.raises(DataError, match=f"unknown {what} 'nonsense'; known are {next(iter(registry))}"):
        registry.find("nonsense")
    assert registry.name_of(int) is None


@pytest.mark.parametrize(("registry", "module"), [(FAMILIES, families), (PRIORS, partitions), (MOVES, moves)])
def test_what_is_registered_is_exported(registry, module):
    for cls in registry.values():
        assert getattr(module, cls.__name__) is cls
        assert cls.__name__ in module.__all__
        if module is not moves:
            assert getattr(permix, cls.__name__) is cls


def test_what_is_exported_is_registered():
    def classes(module, base):
        found = [getattr(module, name) for name in module.__all__]
        return {cls for cls in found if inspect.isclass(cls) and issubclass(cls, base) and cls is not base}

    assert classes(families, families.Family) == set(FAMILIES.values())
    assert classes(partitions, partitions.PartitionPrior) == set(PRIORS.values())
    assert classes(moves, Move) == {*MOVES.values(), *COMPOUND.values()}
    assert all(issubclass(cls, Compound) for cls in COMPOUND.values())


@pytest.mark.parametrize("what", ["family", "prior"])
def test_settings_are_arguments_with_these_defaults(what):
    for name, entry in REGISTRIES[what].entries.items():
        fields = {field.name: field for field in dataclasses.fields(REGISTRIES[what][name])}
        for option, setting in entry.settings.items():
            default = fields[setting.argument or option].default
            if setting.default == "":
                assert default is dataclasses.MISSING
            elif setting.default[0].isdigit():
                assert float(setting.default) == default
            elif what == "family":  # learned, or taken from the data
                assert default is None
            assert setting.type in (int, float)
            assert not setting.help.endswith(".")


def test_options_of_families_and_priors_do_not_share_names():
    of_families = {setting for entry in FAMILIES.entries.values() for setting in entry.settings}
    of_priors = {setting for entry in PRIORS.entries.values() for setting in entry.settings}
    assert not of_families & of_priors


def test_moves_for_burn_in_are_those_that_are_not_exact():
    for name, entry in MOVES.entries.items():
        assert entry.for_burn_in == (not MOVES[name].exact), name
    assert "projection" in registries.move_names(burn_in=True)
    assert "projection" not in registries.move_names()


def test_compiled_files_are_left_to_numba_by_type_checks():
    for path in SOURCE.rglob("*_jit.py"):
        assert path.read_text().startswith("# mypy: ignore-errors\n"), path


def test_the_reference_page_lists_what_is_registered():
    page = Path(__file__).parents[2] / "docs" / "reference" / "api.md"
    listed = {line.strip() for line in page.read_text(encoding="utf-8").splitlines()}
    for registry in REGISTRIES.values():
        assert {cls.__name__ for cls in registry.values()} <= listed
    assert {cls.__name__ for cls in COMPOUND.values()} <= listed


# --- families ------------------------------------------------------------------------------------


def test_every_family_has_a_case_and_an_oracle():
    assert {family.name for family, _ in CASES.values()} == set(FAMILIES)
    assert set(PREDICTIVES) == set(FAMILIES.values())
    assert {type(prior) for prior in PRIOR_CASES.values()} == set(PRIORS.values())


@pytest.mark.parametrize("name", CASES)
def test_a_family_says_what_tables_pictures_and_files_show(name):
    family, X = CASES[name]
    data = family.encode(X)
    stats = family.statistics(2)
    contract.seat_all(stats, data, (np.arange(len(X)) % 2).astype(np.int32), 2)
    parameters = family.parameters(stats, 2)
    columns = [f"c{j}" for j in range(X.shape[1])]
    names = family.parameter_names(columns)
    assert family.main_parameter in parameters, "main_parameter must be one of parameters()"
    assert parameters[family.main_parameter].shape == (2, len(names))
    assert all(len(values) == 2 for values in parameters.values())
    points, as_they_are = family.points(data)
    assert len(points) == len(X)
    assert points.ndim == 2
    if as_they_are:
        np.testing.assert_allclose(points, X)
    packed = family.pack(data)
    assert set(packed) == set(family.packed)
    again = family.unpack(packed)
    family.check_encoded(again, len(X))


@pytest.mark.parametrize("name", CASES)
def test_the_rows_of_a_case_are_unlike_enough(name):
    """Tests that reject broken code need posteriors that a mistake changes: else choose other rows."""
    family, X = CASES[name]
    partitions_, pi = posterior(name, "dp", 5)
    assert len({row.tobytes() for row in X}) >= 10, "a dozen rows, nearly all of them different"
    assert pi.max() < 0.9, "the first five rows can be grouped in one way only"
    # What a family would find that counts every row for 60 %.
    scores = [
        0.6 * sum(naive_marginal(family, X[:5][np.array(labels) == k]) for k in range(max(labels) + 1))
        + PRIOR_CASES["dp"].log_prob(labels)
        for labels in partitions_
    ]
    tempered = np.exp(np.array(scores) - max(scores))
    assert total_variation(pi, tempered / tempered.sum()) > 0.05, "the first five rows say too little"
