"""What a user may choose about a mixture of vectors."""

from __future__ import annotations

import warnings
from typing import Any, Literal

from permix.errors import Argument, DataError, PermixWarning
from permix.estimators.checks import Made, Whole
from permix.estimators.parameters import LOSS, ChainParameters, declare
from permix.registries import FAMILIES, PRIORS, move_names, part

STARTS = ("both", "sequential", "one-group", "random")


def as_family(family: Any) -> Any:
    """Return a family given as an object, by name, or not at all."""
    from permix.families import Family, GaussianNIW

    if family is None:
        return GaussianNIW()
    if isinstance(family, str):
        return FAMILIES.find(family)()
    if not isinstance(family, Family):
        raise DataError(Argument("family", family), " must be a permix family or its name")
    return family


def as_prior(prior: Any) -> Any:
    """Return a prior given as an object, by name, or not at all."""
    from permix.partitions import MixtureOfFiniteMixtures, PartitionPrior

    if prior is None:
        return MixtureOfFiniteMixtures()
    if isinstance(prior, str):
        cls = PRIORS.find(prior)
        try:
            return cls.named()
        except TypeError:
            raise DataError(
                Argument("prior", prior), f" does not say enough: write permix.{cls.__name__}(...)"
            ) from None
    if not isinstance(prior, PartitionPrior):
        names = ", ".join(cls.__name__ for cls in PRIORS.values())
        raise DataError(
            Argument("prior", prior),
            f" must be one of permix's priors ({names}) or its name; for a fixed concentration write "
            "DirichletProcess(2.0)",
        )
    return prior


def _named_or(find: Any, kind: str, from_json: str) -> Made:
    """Return what ``family`` or ``prior`` may be: nothing, a name, or an object that files describe."""

    def convert(value: Any) -> Any:
        find(value)
        return value

    return Made(
        convert,
        kind,
        special=(None,),
        to_json=lambda value: value if isinstance(value, str) else value.describe(),
        from_json=lambda value: value if isinstance(value, str) else part(from_json)(value),
    )


def _moves(name: str) -> Made:
    """Return what ``moves`` or ``burn_in_moves`` may be."""
    return Made(
        lambda value: part("permix.moves.recipe:checked_moves")(value, name),
        "a name, a move, or a sequence of these",
        special=("auto",),
        to_json=lambda value: part("permix.moves.naming:described_moves")(value),
        from_json=_moves_of_file,
    )


def _moves_of_file(value: Any) -> Any:
    from permix.moves import move_from_description

    if isinstance(value, str):
        return value
    try:
        if isinstance(value, dict):
            return move_from_description(value)
        return [move if isinstance(move, str) else move_from_description(move) for move in value]
    except DataError as error:
        warnings.warn(f"{error} A new fit will use moves='auto'.", PermixWarning, stacklevel=5)
        return "auto"


class DPMixtureParameters(ChainParameters):
    """Parameters of :class:`permix.DPMixture`."""

    family: Any = declare(
        None,
        _named_or(as_family, "Family or name", "permix.families:family_from_description"),
        "What a group is made of: an object such as :class:`~permix.Gaussian`, or a name out of "
        f"{', '.join(FAMILIES)}. By default a :class:`~permix.GaussianNIW`, or a "
        ":class:`~permix.GaussianDiagonal` where there are fewer rows than the d(d+1)/2 entries of a "
        "covariance matrix of d columns; for a table with columns that are no numbers a "
        ":class:`~permix.Mixed`. What you do not set of their scales and strengths is learned in the chains.",
        positional=True,
    )
    prior: Any = declare(
        None,
        _named_or(as_prior, "partition prior or name", "permix.partitions:prior_from_description"),
        "How groups divide the data before these are seen: an object such as "
        f":class:`~permix.DirichletProcess`, or a name out of {', '.join(PRIORS)}. By default a "
        ":class:`~permix.MixtureOfFiniteMixtures`.",
        positional=True,
    )
    moves: Any = declare(
        "auto",
        _moves("moves"),
        f"What an iteration does: auto, or names joined by commas out of {', '.join(move_names())}. "
        "With auto, a sweep of collapsed Gibbs, splits and merges, and an update of the concentration, which "
        "is added at the end where nothing else updates it. In Python also a move of :mod:`permix.moves`, or "
        "a sequence of moves and names.",
        positional=True,
    )
    burn_in_moves: Any = declare(
        "auto",
        _moves("burn_in_moves"),
        f"What burn-in begins with: auto, or names out of {', '.join(move_names(burn_in=True))}. "
        "With auto, it climbs along random projections, which finds good groups in a few iterations, and "
        "goes on with ``moves``. Other moves last for all of burn-in, or for its first half if ``moves`` "
        "have something to learn.",
    )
    init: Any = declare(
        "both",
        Whole(1, special=STARTS),
        "Where chains start: sequential, one-group, both (in turn), random, or a number of groups. "
        "Sequential predicts the data one by one in random order, random draws from the prior, a number is "
        "so many groups at random. Where chains from many and from few groups do not meet, R-hat shows it.",
    )
    loss: Literal["vi", "binder"] = LOSS

    def check_together(self) -> None:
        """Refuse moves that do not go together."""
        if self.moves == "auto" and self.burn_in_moves == "auto":
            return
        from permix.moves.recipe import moves_of

        moves_of(self.moves, self.burn_in_moves, self.n_burn_in)
