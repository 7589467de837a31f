"""Parameters, declared once: name, default, check and help, for constructors, commands, files and docstrings.

A model declares a subclass of :class:`Parameters`. An instance holds checked values and never changes; the
estimator gets its constructor and its list of parameters from the same declarations, the command line its
options, and archives what they hold of them.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

from permix.errors import DataError, ParameterError, about_parameters
from permix.estimators.checks import Check, Choice, Folder, Seed, Switch, Threads, Whole


@dataclass(frozen=True)
class Declared:
    """One declared parameter."""

    default: Any
    check: Check
    help: str  # for docstrings; the first sentence is the help of the option
    flag: str | None = None  # the option of the command line; "" for none, derived from the name unless given
    short: str = ""  # a second, short flag such as ``-k``
    positional: bool = False  # whether constructors accept it by position

    def flag_of(self, name: str) -> str:
        """Return the option of the command line, or ""."""
        return "--" + name.removeprefix("n_").replace("_", "-") if self.flag is None else self.flag


def declare(default: Any, check: Check, help: str, **options: Any) -> Any:
    """Declare a parameter in the body of a :class:`Parameters` class; ``options`` are those of Declared."""
    return Declared(default, check, help, **options)


# Parameters that several models have.
N_COMPONENTS: Any = declare(
    1,
    Whole(1),
    "Number of groups. :func:`permix.select_components` chooses it by held-out likelihood.",
    flag="--groups",
    short="-k",
    positional=True,
)
LOSS: Any = declare(
    "vi",
    Choice("vi", "binder"),
    "The loss whose posterior expectation the groups shown minimize: variation of information or Binder's.",
)


def signature_of(declared: Mapping[str, Declared]) -> inspect.Signature:
    """Return the signature of a constructor with these parameters."""
    kinds = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = [
        inspect.Parameter(name, kinds[about.positional], default=about.default)
        for name, about in declared.items()
    ]
    return inspect.Signature(sorted(parameters, key=lambda parameter: parameter.kind))


class Parameters:
    """What a user chose, checked. Subclasses declare parameters; those of base classes come last.

    Examples
    --------
    >>> from permix.estimators.checks import Whole
    >>> class Tea(RunParameters):
    ...     cups: int = declare(2, Whole(1), "How many cups to brew.")
    >>> Tea(cups=3)
    Tea(cups=3)
    >>> Tea(cups=0)
    Traceback (most recent call last):
    permix.errors.ParameterError: cups=0 must be a whole number, 1 or more
    """

    declared: ClassVar[Mapping[str, Declared]] = {}

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        own = {name: value for name, value in vars(cls).items() if isinstance(value, Declared)}
        for name in own:
            delattr(cls, name)
        cls.declared = own | {name: value for name, value in cls.declared.items() if name not in own}
        cls.__signature__ = signature_of(cls.declared)  # type: ignore[attr-defined]

    def __init__(self, *args: Any, **given: Any) -> None:
        values = signature_of(self.declared).bind(*args, **given)
        values.apply_defaults()
        with about_parameters():
            for name, value in values.arguments.items():
                object.__setattr__(self, name, self._checked(name, value))
            self.check_together()

    def _checked(self, name: str, value: Any) -> Any:
        try:
            return self.declared[name].check(name, value)
        except ParameterError:
            raise
        except DataError as error:
            error.parameter = name  # type: ignore[attr-defined]
            raise
        except (TypeError, ValueError, OverflowError, AttributeError) as error:
            # A value so odd that looking at it fails: an array where a word should be, a broken __eq__.
            raise self.declared[name].check.refusal(name, value) from error

    def check_together(self) -> None:
        """Refuse combinations that make no sense; subclasses say which."""

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{type(self).__name__} does not change; make another one")

    def replaced(self, **changes: Any) -> Self:
        """Return a copy with some values changed."""
        return type(self)(**{**self.as_dict(), **changes})

    def is_default(self, name: str) -> bool:
        """Say whether a parameter has its default, given or not."""
        value, default = getattr(self, name), self.declared[name].default
        return value is default or repr(value) == repr(default)

    def as_dict(self) -> dict[str, Any]:
        """Return all values by name."""
        return {name: getattr(self, name) for name in self.declared}

    def to_json(self) -> dict[str, Any]:
        """Return what files hold."""
        return {name: about.check.to_json(getattr(self, name)) for name, about in self.declared.items()}

    @classmethod
    def from_json(cls, values: Any) -> Self:
        """Return what files hold, checked like everything else."""
        if not isinstance(values, dict) or set(values) != set(cls.declared):
            raise DataError(f"parameters: not those of {cls.__name__}")
        return cls(**{name: cls.declared[name].check.from_json(value) for name, value in values.items()})

    def __repr__(self) -> str:
        given = [f"{name}={value!r}" for name, value in self.as_dict().items() if not self.is_default(name)]
        return f"{type(self).__name__}({', '.join(given)})"


class ThreadParameters(Parameters):
    """What an estimator has that uses no randomness: threads, and the display."""

    n_jobs: int | None = declare(
        None, Threads(), "How much runs at once; by default as much as there are processors."
    )
    progress: bool | None = declare(
        None,
        Switch(special=(None,)),
        "Live display: by default on a terminal, once a fit has taken two seconds.",
        flag="",
    )


class RunParameters(ThreadParameters):
    """What all other estimators have: where randomness comes from as well."""

    random_state: Any = declare(
        None, Seed(), "The same seed gives the same result, whatever the number of threads.", flag="--seed"
    )


# Draws where "auto" has nothing to judge by.
FIXED_DRAWS = 1000


class ChainParameters(RunParameters):
    """What every estimator that runs Markov chains has."""

    n_draws: int | Literal["auto"] = declare(
        "auto",
        Whole(1, special=("auto",)),
        "Draws of each chain: a number, or auto, which goes on until the chains agree and have made enough. "
        "With auto, chains are judged after 250, 500, 1000, … draws: by the R-hat of every quantity that is "
        "one number per draw (at most 1.01) and by its effective number of draws (at least 100 per chain), "
        "of all draws or of the second half. They end, at the latest, after 1,000 draws of large data and "
        "8,000 of small ones. At most 1,000 of each chain are kept, and fewer of more than 67,000 rows.",
    )
    n_burn_in: int = declare(500, Whole(0), "Iterations of each chain before the first draw.")
    n_thin: int = declare(1, Whole(1), "Iterations for each draw kept.")
    n_chains: int = declare(2, Whole(1, 10_000), "Number of chains.")
    store: Any = declare(
        None,
        Folder(),
        "A folder that keeps the chains while they run: a fit that was killed goes on where it stopped.",
        flag="",
    )

    def for_chains(self, size: int) -> dict[str, Any]:
        """Return what :func:`permix.sampling.run_chains` takes of them, by name.

        ``size`` is how many numbers an iteration goes through.
        """
        return {"size": size, **{name: getattr(self, name) for name in ChainParameters.declared}}

    @property
    def n_fixed_draws(self) -> int:
        """The number of draws where nothing is there to judge by: what is not a chain."""
        return FIXED_DRAWS if self.n_draws == "auto" else self.n_draws


def parameter_section(declared: Mapping[str, Declared]) -> str:
    """Return the list of parameters of a docstring."""
    lines = ["Parameters", "----------"]
    for name, about in declared.items():
        default = "" if about.default is None else f", default {about.default!r}"
        lines.append(f"{name} : {about.check.kind()}{default}")
        lines.append(textwrap.indent(textwrap.fill(" ".join(about.help.split()), 100), "    "))
    return "\n".join(lines)
