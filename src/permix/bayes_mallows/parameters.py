"""What a user may choose about Bayesian Mallows models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from permix.errors import Argument, DataError
from permix.estimators.checks import Check, Choice, Made, Names, Real, Switch, Whole, either
from permix.estimators.parameters import LOSS, ChainParameters, declare

if TYPE_CHECKING:
    from permix.data.labels import Label
    from permix.partitions import Gamma, PartitionPrior

DISTANCES = ("kendall", "footrule", "spearman", "cayley", "hamming", "ulam")
# Priors over partitions that need nothing more than a name.
NAMED = ("mfm", "dp", "pitman-yor")
# Priors of errors: Beta(1, 3) of a rate, cut off at 1/2; exponential ones of level and slope.
ERROR_PRIORS = {"bernoulli": (1.0, 3.0), "logistic": (1.0, 1.0)}


class GroupsCheck(Check):
    """A number of groups, or a prior over partitions."""

    noun = "int, partition prior or name"
    _number = Whole(1, 2**31 - 1)

    def convert(self, value: Any) -> Any:
        from permix.partitions import PartitionPrior

        if (isinstance(value, str) and value in NAMED) or isinstance(value, PartitionPrior):
            return value
        return NotImplemented if isinstance(value, str) else self._number.convert(value)

    def must_be(self) -> str:
        return f"a whole number, 1 or more, {either(*NAMED)}, or one of permix's priors over partitions"

    def to_json(self, value: Any) -> Any:
        return value if isinstance(value, int | str) else value.describe()

    def from_json(self, value: Any) -> Any:
        from permix.partitions import prior_from_description

        return prior_from_description(value) if isinstance(value, dict) else value

    def parse(self, text: str) -> Any:
        return int(text) if text.isdecimal() else text


def _gamma(value: Any) -> Any:
    from permix.partitions import Gamma

    if not isinstance(value, Gamma):
        raise DataError(Argument("decay_prior", value), " must be a Gamma(shape, rate)")
    return value


def _gamma_from_json(value: Any) -> Any:
    from permix.partitions import prior_from_description

    return prior_from_description(value) if isinstance(value, dict) else value


def _gamma_from_text(text: str) -> Any:
    from permix.partitions.concentration_text import concentration_of

    return concentration_of(text)


def _ranking(value: Any) -> tuple[Label, ...]:
    from permix.data.rankings import Rankings

    if isinstance(value, Rankings):
        if len(value) != 1:
            raise DataError(Argument("center_prior"), f" must be one ranking, not {len(value):,}")
        value = [value.items[item] for item in value.orders[0].tolist() if item >= 0]
    if isinstance(value, str) or not hasattr(value, "__iter__"):
        raise DataError(Argument("center_prior", value), " must be a ranking of all items, best first")
    names = tuple(value.tolist() if hasattr(value, "tolist") else value)
    if not all(isinstance(name, str | int) for name in names):
        raise DataError(Argument("center_prior"), " must name items, best first")
    return names


def _names_from_text(text: str) -> Any:
    return tuple(name.strip() for name in text.split(","))


def _two_positive(value: Any) -> tuple[float, float]:
    try:
        first, second = (float(each) for each in value)
    except (TypeError, ValueError):
        first = second = 0.0
    if not (0.0 < first < 1e6 and 0.0 < second < 1e6):
        raise DataError(Argument("error_prior", value), " must be two positive numbers")
    return first, second


def _two_from_text(text: str) -> Any:
    return tuple(text.split(","))


class BayesianMallowsParameters(ChainParameters):
    """Parameters of :class:`permix.BayesianMallowsMixture`."""

    n_components: int | str | PartitionPrior = declare(
        1,
        GroupsCheck(),
        "Number of groups; or how many is left open: mfm, a finite number that is not known; dp, a Dirichlet "
        "process, whose concentration is learned; pitman-yor. In Python also an object such as "
        ":class:`~permix.MixtureOfFiniteMixtures` or :class:`~permix.FiniteDirichlet`.",
        flag="--groups",
        short="-k",
        positional=True,
    )
    distance: Literal["kendall", "footrule", "spearman", "cayley", "hamming", "ulam"] = declare(
        "kendall",
        Choice(*DISTANCES),
        "How far a ranking is from the center of its group: pairs of items in another order (kendall), sum "
        "of differences of ranks (footrule) or of their squares (spearman), exchanges of two items (cayley), "
        "items at another rank (hamming), items to be taken out and put elsewhere (ulam).",
    )
    errors: Literal["bernoulli", "logistic"] | None = declare(
        None,
        Choice("bernoulli", "logistic", special=(None,)),
        "Whether comparisons may contradict what an agent holds: all with one probability (bernoulli), or "
        "the more seldom the further apart two items are (logistic). Rankings, ratings and levels are taken "
        "at their word.",
    )
    errors_per_agent: bool = declare(
        False, Switch(), "Whether agents err each at a rate of their own, rather than all at the same."
    )
    decay_prior: Gamma | None = declare(
        None,
        Made(
            _gamma,
            "Gamma",
            special=(None,),
            to_json=lambda value: value.describe(),
            from_json=_gamma_from_json,
            parse=_gamma_from_text,
        ),
        "Prior of the decay of a group, -ln of its dispersion, such as gamma(2,5). In Python "
        "``permix.Gamma(2.0, 5.0)``. By default an exponential one, whose mean is the decay at which "
        "rankings are half as far from their center as rankings drawn evenly.",
    )
    center_prior: Any = declare(
        None,
        Made(_ranking, "ranking", special=(None,), to_json=list, parse=_names_from_text),
        "A ranking of all items, best first, around which centers are expected, such as a,b,c. In Python "
        "also Rankings of one row. By default centers may be anywhere alike.",
    )
    center_dispersion: float = declare(
        0.5,
        Real(above=0.0, below=1.0),
        "How far centers may be from the expected one before anything is known: P(center) falls by this "
        "factor with each unit of the distance.",
    )
    error_prior: Any = declare(
        None,
        Made(_two_positive, "two floats", special=(None,), to_json=list, parse=_two_from_text),
        "Prior of errors, two numbers a,b: of a rate Beta(a, b), cut off at 1/2 (by default 1,3); under "
        "logistic errors the rates of two exponential distributions (by default 1,1).",
    )
    weights_by: tuple[str, ...] | None = declare(
        None,
        Names(),
        "Columns known of the agents, such as region or age, that the shares of groups depend on (a "
        "multinomial logit, whose coefficients are normal beforehand with a standard deviation of 2 for each "
        "value or standard deviation of a column). Needs a given number of groups.",
    )
    loss: Literal["vi", "binder"] = LOSS

    def check_together(self) -> None:
        """Refuse combinations that make no sense."""
        if self.center_prior is None and not self.is_default("center_dispersion"):
            raise DataError(
                Argument("center_dispersion", self.center_dispersion),
                " says how far centers are from ",
                Argument("center_prior"),
                ", which is not given",
            )
        if self.errors is None:
            for name in ("errors_per_agent", "error_prior"):
                if not self.is_default(name):
                    raise DataError(
                        Argument(name, getattr(self, name)),
                        " needs a model of errors, such as ",
                        Argument("errors", "bernoulli"),
                    )

        if self.weights_by and not isinstance(self.n_components, int):
            raise DataError(
                Argument("weights_by"),
                " needs a number of groups, because a group that may come or go has no coefficients. Give "
                "one, such as ",
                Argument("n_components", 3),
                "; permix.select_components compares several",
            )

    def partition_prior(self) -> PartitionPrior:
        """Return the prior over partitions; weights of a fixed number of groups are uniform."""
        from permix.partitions import FiniteDirichlet, PartitionPrior
        from permix.registries import PRIORS

        if isinstance(self.n_components, PartitionPrior):
            return self.n_components
        if isinstance(self.n_components, str):
            named: PartitionPrior = PRIORS[self.n_components].named()
            return named
        return FiniteDirichlet(self.n_components)

    def error_numbers(self) -> tuple[float, float]:
        """Return the two numbers of the prior of errors."""
        return self.error_prior or ERROR_PRIORS[self.errors or "bernoulli"]
