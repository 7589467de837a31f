"""What a user may choose about a Dirichlet-process mixture of generalized Mallows models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from permix.errors import Argument, DataError
from permix.estimators.checks import Check, Choice, Concentration, Real, Switch, Whole, either
from permix.estimators.parameters import LOSS, ChainParameters, declare

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from permix.families.learning import LogNormal
    from permix.partitions import Gamma, PartitionPrior

# Priors weaker or stronger than this say nothing that these do not, and strain the integrals.
LEAST, MOST = 1e-4, 1e6
# What is learned has a normal logarithm: median, deviation, and where it is cut off. Nobody expects groups
# whose decays are alike to a hundredth, or that skip a thousand items.
STRENGTH = (1.0, 1.0, 0.02, 100.0)
RATE = (1.0, 1.5, 0.01, 1000.0)
# Priors over partitions that need nothing more than a name.
NAMED = ("mfm", "dp", "pitman-yor")


class RateCheck(Check):
    """A number, or several, one for each place."""

    noun = "float or sequence of float"
    special = (None,)
    _one = Real(least=LEAST, most=MOST)

    def convert(self, value: Any) -> Any:
        if not hasattr(value, "__len__"):
            return self._one.convert(value)
        if isinstance(value, str | bytes | dict) or getattr(value, "ndim", 1) != 1 or len(value) == 0:
            return NotImplemented
        return tuple(self._one("prior_rate", rate) for rate in value)

    def must_be(self) -> str:
        return f"{self._one.must_be()}, or several, one for each place"

    def to_json(self, value: Any) -> Any:
        return list(value) if isinstance(value, tuple) else value

    def parse(self, text: str) -> Any:
        try:
            rates = [float(part) for part in text.split(",")]
        except ValueError:
            return text
        return rates[0] if len(rates) == 1 else rates


class PriorCheck(Check):
    """A partition prior, or its name."""

    noun = "partition prior or name"
    special = (None,)

    def convert(self, value: Any) -> Any:
        from permix.partitions import PartitionPrior

        named = isinstance(value, str) and value in NAMED
        return value if named or isinstance(value, PartitionPrior) else NotImplemented

    def must_be(self) -> str:
        return f"{either(*NAMED)}, or one of permix's priors such as MixtureOfFiniteMixtures(2.0)"

    def to_json(self, value: Any) -> Any:
        return value if value is None or isinstance(value, str) else value.describe()

    def from_json(self, value: Any) -> Any:
        from permix.partitions import prior_from_description

        return prior_from_description(value) if isinstance(value, dict) else value


class DPMallowsParameters(ChainParameters):
    """Parameters of :class:`permix.DPMallowsMixture`."""

    sampler: Literal["exact", "beta-gibbs", "slice-gibbs"] = declare(
        "exact",
        Choice("exact", "beta-gibbs", "slice-gibbs"),
        'Either "exact", which draws from the posterior, or one of the two published approximations. These '
        'draw centers stage by stage as if lemma 2 held, which it does not, and "beta-gibbs" replaces an '
        "integral over finitely many places by its limit; they are here for comparison.",
        positional=True,
    )
    concentration: float | Gamma | None = declare(
        None,
        Concentration(special=(None,)),
        "Concentration of a Dirichlet process: the larger, the more groups; a Gamma prior, such as "
        "gamma(1,1), learns it. In Python that is ``permix.Gamma(1.0, 1.0)``.",
        positional=True,
    )
    prior_strength: float | None = declare(
        None,
        Real(least=LEAST, most=MOST, special=(None,)),
        "How many lists the prior of the decays is worth; learned where it is not given. The published "
        "samplers take 1.",
        positional=True,
    )
    prior_rate: Any = declare(
        None,
        RateCheck(),
        "Mean number of items skipped in each of these lists: one number, or one for each place; where it is "
        "not given, that of each place is learned. The published samplers take 1.",
        positional=True,
    )
    discount: float | None = declare(
        None,
        Real(least=0.0, below=1.0, special=(None,)),
        "Discount of a Pitman–Yor process; 0 is the Dirichlet process.",
    )
    prior: Any = declare(
        None,
        PriorCheck(),
        "How groups divide the agents before their lists are seen: mfm, a finite number of groups, which is "
        "not known; dp, a Dirichlet process, whose concentration is learned unless it is given; pitman-yor. "
        "In Python also an object such as :class:`~permix.MixtureOfFiniteMixtures`. By default a Dirichlet "
        "process with concentration 1.",
    )
    assignments: Literal["auto", "collapsed", "parallel"] = declare(
        "auto",
        Choice("auto", "collapsed", "parallel"),
        "How agents move between groups, with the same posterior: one by one (collapsed), all at once in "
        "threads (parallel), or by the number of agents (auto). The first integrates weights out, the second "
        'is given decays and weights; "auto" takes the second from 10,000 agents on.',
    )
    split_merge: bool = declare(
        True,
        Switch(),
        "Also divide and join whole groups, so that chains do not get stuck.",
    )
    n_initial_clusters: int | None = declare(
        None,
        Whole(1, special=(None,)),
        "Groups that chains start from, each agent in one at random. By default chains start from few and "
        "from many in turn: agents seated one after another, and groups of twenty, at most 60 (of a mixture "
        "of finite mixtures: one, and twenty).",
        flag="--initial-groups",
    )
    loss: Literal["vi", "binder"] = LOSS

    def check_together(self) -> None:
        """Refuse combinations that make no sense."""
        if self.sampler != "exact" and self.assignments == "parallel":
            raise DataError(
                Argument("sampler", self.sampler),
                " visits one ranking after another, as published; ",
                Argument("assignments", "parallel"),
                " belongs to ",
                Argument("sampler", "exact"),
            )
        from permix.partitions import Gamma

        for name in ("concentration", "discount"):
            belongs = self.prior in (None, "pitman-yor") or (self.prior == "dp" and name == "concentration")
            if getattr(self, name) is not None and not belongs:
                prior = self.prior if isinstance(self.prior, str) else type(self.prior).__name__
                raise DataError(
                    Argument(name, getattr(self, name)), " does not belong to ", Argument("prior", prior)
                )
        alpha, discount = self.concentration, self.discount or 0.0
        if isinstance(alpha, Gamma):
            if discount > 0.0 or self.prior == "pitman-yor":
                number = "; for a Pitman–Yor process give the concentration as a number"
                raise DataError(
                    "a Gamma prior of the concentration goes with ", Argument("discount", 0), number
                )
        elif alpha is not None and alpha <= -discount:
            least = f"above {-discount:g}, minus the discount" if discount else "positive"
            raise DataError(Argument("concentration", alpha), f" must be {least}")

    def partition_prior(self) -> PartitionPrior:
        """Return the prior over partitions that prior, concentration and discount describe."""
        from permix.partitions import DirichletProcess, PartitionPrior, PitmanYor
        from permix.registries import PRIORS

        if isinstance(self.prior, PartitionPrior):
            return self.prior
        given: dict[str, Any] = {
            name: value
            for name, value in (("concentration", self.concentration), ("discount", self.discount))
            if value is not None
        }
        if self.prior is not None:
            named: PartitionPrior = PRIORS[self.prior].named(**given)
            return named
        return PitmanYor(**given) if self.discount else DirichletProcess(self.concentration or 1.0)

    @property
    def strength(self) -> float:
        """ν of equation 7, or where chains start that learn it."""
        return 1.0 if self.prior_strength is None else self.prior_strength

    def learned(self) -> dict[str, LogNormal]:
        """Return the priors of what is learned of the prior of the decays, by name."""
        from permix.families.learning import LogNormal

        if self.sampler != "exact":
            return {}
        priors = {"prior_strength": LogNormal(*STRENGTH), "prior_rate": LogNormal(*RATE)}
        return {name: prior for name, prior in priors.items() if getattr(self, name) is None}

    def rates(self, n_stages: int) -> npt.NDArray[np.float64]:
        """Return r_j of the first stages (equation 7), or where they start; one number stands for all."""
        import numpy as np

        if not isinstance(self.prior_rate, tuple):
            return np.full(n_stages, self.prior_rate or 1.0)
        if len(self.prior_rate) < n_stages:
            said = f" has {len(self.prior_rate)} numbers, but {n_stages} places need one each"
            raise DataError(Argument("prior_rate"), said)
        return np.array(self.prior_rate[:n_stages])
