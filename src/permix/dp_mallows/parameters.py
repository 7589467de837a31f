"""What a user may choose about a Dirichlet-process mixture of generalized Mallows models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from permix.errors import Argument, DataError
from permix.estimators.checks import Check, Choice, Concentration, Real, Switch, Whole
from permix.estimators.parameters import LOSS, ChainParameters, declare

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from permix.partitions import Gamma, PartitionPrior

# Priors weaker or stronger than this say nothing that these do not, and strain the integrals.
LEAST, MOST = 1e-4, 1e6


class RateCheck(Check):
    """A number, or several, one for each place."""

    noun = "float or sequence of float"
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
    concentration: float | Gamma = declare(
        1.0,
        Concentration(),
        "Concentration of the Dirichlet process: the larger, the more groups; a Gamma prior, such as "
        "gamma(1,1), learns it. In Python that is ``permix.Gamma(1.0, 1.0)``.",
        positional=True,
    )
    prior_strength: float = declare(
        1.0, Real(least=LEAST, most=MOST), "How many lists the prior of the decays is worth.", positional=True
    )
    prior_rate: Any = declare(
        1.0,
        RateCheck(),
        "Mean number of items skipped in each of these lists; one number, or one for each place.",
        positional=True,
    )
    discount: float = declare(
        0.0, Real(least=0.0, below=1.0), "Discount of a Pitman–Yor process; 0 is the Dirichlet process."
    )
    assignments: Literal["auto", "collapsed", "parallel"] = declare(
        "auto",
        Choice("auto", "collapsed", "parallel"),
        "How agents move between groups, with the same posterior: one by one (collapsed), all at once in "
        "threads (parallel), or by the number of agents (auto). The first integrates decays out, the second "
        'is given decays and weights; "auto" takes the second from 1000 agents on.',
    )
    split_merge: bool = declare(
        True,
        Switch(),
        "Also divide and join whole groups, so that chains do not get stuck. The first iterations of burn-in "
        "then climb to a state with a high log joint.",
    )
    n_initial_clusters: int | None = declare(
        None,
        Whole(1, special=(None,)),
        "Groups that chains start from; by default agents are seated one after another.",
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

        alpha = self.concentration
        if isinstance(alpha, Gamma):
            if self.discount > 0.0:
                number = "; for a Pitman–Yor process give the concentration as a number"
                raise DataError(
                    "a Gamma prior of the concentration goes with ", Argument("discount", 0), number
                )
        elif alpha <= -self.discount:
            least = f"above {-self.discount:g}, minus the discount" if self.discount else "positive"
            raise DataError(Argument("concentration", alpha), f" must be {least}")

    def prior(self) -> PartitionPrior:
        """Return the prior over partitions that concentration and discount describe."""
        from permix.partitions import DirichletProcess, PitmanYor

        if self.discount == 0.0:
            return DirichletProcess(self.concentration)
        return PitmanYor(self.concentration, self.discount)  # type: ignore[arg-type]

    def rates(self, n_stages: int) -> npt.NDArray[np.float64]:
        """Return r_j of the first stages (equation 7); one number stands for all."""
        import numpy as np

        if isinstance(self.prior_rate, float):
            return np.full(n_stages, self.prior_rate)
        if len(self.prior_rate) < n_stages:
            said = f" has {len(self.prior_rate)} numbers, but {n_stages} places need one each"
            raise DataError(Argument("prior_rate"), said)
        return np.array(self.prior_rate[:n_stages])
