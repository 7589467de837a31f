"""What a user may choose about a mixture of Mallows models."""

from __future__ import annotations

from typing import Literal

from permix.errors import Argument, DataError
from permix.estimators.checks import Choice, Names, Real, Whole
from permix.estimators.parameters import N_COMPONENTS, RunParameters, declare

# The most runs that a file may have, in times of ``n_init``: one more, or as many as in permix before 0.2.
MOST_TIMES = 4


class MallowsParameters(RunParameters):
    """Parameters of :class:`permix.MallowsMixture`."""

    n_components: int = N_COMPONENTS
    distance: Literal["kendall", "footrule", "spearman", "cayley", "hamming", "ulam"] = declare(
        "kendall",
        Choice("kendall", "footrule", "spearman", "cayley", "hamming", "ulam"),
        "What separates rankings from a center, as in :func:`permix.distance`. All but ``kendall`` are for "
        "full rankings, and for incomplete ones that few full rankings agree with.",
    )
    n_init: int = declare(
        10,
        Whole(1),
        "EM is run this many times, and the best run is kept. Where all is exact, a run climbs from a few "
        "starts and from crossings of what these found; where fewer than five runs reach the same best "
        "optimum, what they found is crossed too.",
        flag="--starts",
    )
    max_iter: int = declare(
        200,
        Whole(1),
        "The most iterations of one run. Random first rounds and the averaging at the end are not counted.",
    )
    tol: float = declare(
        1e-6,
        Real(least=0.0),
        "A run has converged when an iteration raises the log-likelihood per agent by less than this, or by "
        "less than its Monte Carlo error.",
    )
    n_particles: int = declare(
        8,
        Whole(2),
        "Rankings sampled per agent and group where no exact sum is at hand. More make the likelihood more "
        "precise and the fit slower.",
    )
    center_search: Literal["local", "exact"] = declare(
        "local",
        Choice("local", "exact"),
        "How central rankings are found: by local search, or proven optimal where that is possible. With "
        "``distance`` footrule, spearman and hamming they are always optimal, given who is in the group.",
    )
    min_dispersion: float = declare(
        1e-3,
        Real(above=0.0, below=1.0),
        "No group may be narrower than this; 0 would be a single ranking.",
    )
    weights_by: tuple[str, ...] | None = declare(
        None,
        Names(),
        "Columns known of the agents, such as region or age, that the shares of groups depend on (a "
        "multinomial logit). Without them all agents have the same shares.",
    )

    def check_together(self) -> None:
        """Refuse proofs that there are none of."""
        if self.center_search == "exact" and self.distance in ("cayley", "ulam"):
            raise DataError(
                Argument("center_search", "exact"),
                f" is not known for distance={self.distance!r}, whose centers are searched for; use ",
                Argument("center_search", "local"),
            )
