"""Families, partition priors and moves by the names that users write: one line each.

Commands, their options and help texts, saved files, tests and the reference page of the documentation ask
here, and nothing else lists them. A class is written "module:Class" and imported when it is first asked for,
so that reading this file costs nothing.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from permix.errors import DataError

# What may be done about marks on ballots that are no plain ranking; the first of each is the default.
BALLOT_RULES: Mapping[str, tuple[str, ...]] = {
    "overvotes": ("truncate", "skip", "random", "drop"),
    "skipped": ("stop-after-two", "stop-after-one", "close-up"),
    "repeats": ("first", "truncate"),
    "tied_ranks": ("keep", "break", "truncate"),
    "write_ins": ("keep", "merge", "drop"),
    "names": ("keep", "merge"),
    "below_support": ("drop", "merge"),
}


def part(place: str) -> Any:
    """Import what "module:name" says."""
    module, _, name = place.partition(":")
    found = importlib.import_module(module)
    return getattr(found, name) if name else found


class Setting(NamedTuple):
    """A number that the command line can set, by an option of its own."""

    type: type  # ``float`` or ``int``
    help: str  # what it is, without the name of the class it belongs to
    default: str = ""  # what it is unless given, in words; "" if it must be given
    argument: str = ""  # the argument of the class; "" if it has the name of the option
    flags: tuple[str, ...] = ()  # the option, derived from the name unless given


class Named(NamedTuple):
    """One class."""

    place: str  # "module:Class"
    settings: Mapping[str, Setting] = MappingProxyType({})  # what the command line can set, by option
    for_burn_in: bool = False  # of a move: whether it does not leave the posterior invariant


class Registry(Mapping[str, Any]):
    """Classes by name, imported when they are first asked for."""

    def __init__(self, what: str, entries: Mapping[str, Named]) -> None:
        self.what = what
        self.entries = dict(entries)

    def __getitem__(self, name: str) -> Any:
        return part(self.entries[name].place)

    def __iter__(self) -> Iterator[str]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def find(self, name: Any) -> Any:
        """Return the class of a name; the error lists those that are known."""
        if not isinstance(name, str) or name not in self.entries:
            raise DataError(f"unknown {self.what} {name!r}; known are {', '.join(self)}")
        return self[name]

    def name_of(self, cls: type) -> str | None:
        """Return the name of a class, or None if it has none."""
        place = f"{cls.__module__}:{cls.__qualname__}"
        return next((name for name, entry in self.entries.items() if entry.place == place), None)


_DIRICHLET = {"pseudo_count": Setting(float, "Dirichlet parameter", "learned")}

# What one group is made of.
FAMILIES = Registry(
    "family",
    {
        "gaussian-niw": Named("permix.families.niw:GaussianNIW"),
        "gaussian-diagonal": Named("permix.families.diagonal:GaussianDiagonal"),
        "gaussian": Named(
            "permix.families.gaussian:Gaussian",
            {
                "noise_scale": Setting(float, "standard deviation within a group", "learned"),
                "prior_mean": Setting(float, "where centers are expected", "mean of the data"),
                "prior_scale": Setting(float, "standard deviation of centers", "that of the data"),
            },
        ),
        "multinomial": Named("permix.families.multinomial:Multinomial", _DIRICHLET),
        "categorical": Named("permix.families.categorical:Categorical", _DIRICHLET),
        "mixed": Named("permix.families.mixed:Mixed", _DIRICHLET),
        "mixed-niw": Named("permix.families.mixed_niw:MixedNIW", _DIRICHLET),
    },
)

# How groups divide the data, before the data are seen. The first is the default.
PRIORS = Registry(
    "prior",
    {
        "mfm": Named(
            "permix.partitions.priors:MixtureOfFiniteMixtures",
            {"rate": Setting(float, "mean of the number of possible groups beyond the first", "1")},
        ),
        "dp": Named(
            "permix.partitions.priors:DirichletProcess",
            {"concentration": Setting(float, "concentration", "learned")},
        ),
        "pitman-yor": Named(
            "permix.partitions.priors:PitmanYor",
            {
                "concentration": Setting(float, "concentration", "1"),
                "discount": Setting(float, "discount, from 0 to below 1", "0.25"),
            },
        ),
        "finite": Named(
            "permix.partitions.priors:FiniteDirichlet",
            {"groups": Setting(int, "number of groups", argument="n", flags=("--groups", "-k"))},
        ),
    },
)

# What changes the groups. Moves made of moves are in permix.moves.naming.
MOVES = Registry(
    "move",
    {
        "gibbs": Named("permix.moves.gibbs:Gibbs"),
        "split-merge": Named("permix.moves.split_merge:SplitMerge"),
        "permutation": Named("permix.moves.permutation:Permutation"),
        "projection": Named("permix.moves.projection:Projection", for_burn_in=True),
        "hyperparameters": Named("permix.moves.hyperparameters:Hyperparameters"),
        "missing-cells": Named("permix.moves.missing_cells:MissingCells"),
        "concentration": Named("permix.moves.concentration:Concentration"),
    },
)


def move_names(*, burn_in: bool = False) -> list[str]:
    """Return the names of the moves that may be made, after burn-in or during it."""
    return [name for name, entry in MOVES.entries.items() if burn_in or not entry.for_burn_in]
