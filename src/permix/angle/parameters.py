"""What a user may choose about angle-based models."""

from __future__ import annotations

from typing import Any, Literal

from permix.errors import Argument, DataError, ParameterError, about_parameters
from permix.estimators.checks import Check, Choice, Real, Whole
from permix.estimators.parameters import N_COMPONENTS, ChainParameters, RunParameters, declare

Inference = Literal["em", "sir", "vi", "quadrature"]
Normalizer = Literal["auto", "exact", "balanced", "vmf"]
# Inference that rests on the von Mises–Fisher normalizer, which must be asked for by its name.
BY_VMF = ("vi", "quadrature")
# Most items for the exact normalizer, whose cost more than doubles with every item, and for the balanced one,
# whose cost grows with the cube of their number.
MOST_EXACT_ITEMS, MOST_BALANCED_ITEMS = 20, 2000
# By default the prior mean of κ is ten times the number of items.
VAGUE_RATE = 0.1
# Which inferences do not use a parameter, and why.
UNUSED = {
    **dict.fromkeys(
        ("prior_shape", "prior_rate", "prior_direction", "pseudo_count"),
        (("em",), "is maximum likelihood and has no prior"),
    ),
    "bound": (("em", "sir", "quadrature"), "has no evidence bound"),
    "n_candidates": (("em", "vi", "quadrature"), "does not draw out of candidates"),
}
# Which ways of fitting (see ``way_for``) take so many draws.
SERVES = {
    "n_draws": ("sweeps", "chains", "draws"),
    "n_burn_in": ("sweeps", "chains"),
    "n_thin": ("chains",),
    "n_chains": ("chains",),
    "n_candidates": ("draws",),
}


def refuse_comparisons(normalizer: str) -> None:
    """Refuse to compare by probabilities that do not sum to one: the narrowest groups would win."""
    if normalizer == "vmf":
        raise ParameterError(
            "normalizer",
            "vmf",
            "left out where models are compared (scores, criteria, numbers of groups): under the von "
            "Mises–Fisher approximation probabilities do not sum to one, and it would win for that alone. "
            "The default is exact, with inference em or sir",
        )


class Scores(Check):
    """Scores of the items, for all groups or a row for each: an array, or a dict by item."""

    special = (None,)

    def convert(self, value: Any) -> Any:
        if hasattr(value, "index") and hasattr(value, "to_dict"):
            value = value.to_dict()
        if isinstance(value, dict):
            return {name: float(score) for name, score in value.items()}
        if isinstance(value, str | bytes | bool):
            return NotImplemented
        import numpy as np  # only here: the command line's help does without

        scores = np.array(value, dtype=np.float64)
        return scores if scores.ndim in (1, 2) else NotImplemented

    def must_be(self) -> str:
        return "scores of the items, small = preferred, as numbers or as a dict by item,"

    def kind(self) -> str:
        return "array of scores, dict by item, or None"

    def to_json(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {"items": list(value), "scores": list(value.values())}
        return None if value is None else value.tolist()

    def from_json(self, value: Any) -> Any:
        if isinstance(value, dict):
            return dict(zip(value["items"], value["scores"], strict=True))
        return value


class AngleParameters(ChainParameters):
    """Parameters of :class:`permix.AngleMixture`."""

    n_components: int = N_COMPONENTS
    inference: Inference = declare(
        "em",
        Choice("em", "sir", "vi", "quadrature"),
        "How to fit: em is maximum likelihood, without intervals; sir draws from the posterior; vi "
        "(variational, algorithms 1 and 2) and quadrature serve the vmf normalizer alone. With quadrature, "
        "draws from the posterior of one group are exact up to rounding; several come from a Gibbs sampler.",
    )
    normalizer: Normalizer = declare(
        "auto",
        Choice("auto", "exact", "balanced", "vmf"),
        "How the sum over all rankings is found; auto is exact up to 20 items and balanced beyond. The "
        "latter balances a matrix (McCullagh 2014) and is right within hundredths of a nat for many items. "
        '"vmf" is the paper\'s von Mises–Fisher approximation, under which probabilities do not sum to one '
        "and concentrated mixtures collapse onto single rankings; never taken unless asked for, and never "
        "compared with other models. The one used is ``normalizer_``.",
    )
    bound: Literal["tight", "published"] = declare(
        "tight",
        Choice("tight", "published"),
        "For vi: whether the distribution of concentrations maximizes the evidence bound itself, or the "
        "looser published one. Under the latter (equations 7 to 11) their intervals are too narrow by a "
        "factor of 2 to 8.",
    )
    prior_shape: float = declare(
        1.0, Real(above=0.0), "Concentrations have the prior Gamma(shape, rate), but for em."
    )
    prior_rate: float | None = declare(
        None,
        Real(above=0.0, special=(None,)),
        "Rate of that prior, by default 0.1 / items: nearly flat up to ten times the number of items.",
    )
    prior_direction: Any = declare(
        None,
        Scores(),
        "Scores of the items (small = preferred) that directions are expected around, with one row per group "
        "if you like. By default all directions are alike.",
        flag="",
    )
    prior_strength: float = declare(
        0.0, Real(least=0.0, most=1e9), "How many rankings ``prior_direction`` counts like.", flag=""
    )
    pseudo_count: float = declare(1.0, Real(above=0.0), "Dirichlet parameter of the weights, but for em.")
    n_init: int = declare(
        10, Whole(1), "Climbs from this many different starts; the best one is kept.", flag="--starts"
    )
    max_iter: int = declare(500, Whole(1), "The most passes of one climb over the data.")
    tol: float = declare(1e-7, Real(least=0.0), "A climb ends when passes gain less than this per agent.")
    n_candidates: int = declare(
        10_000,
        Whole(2, 10**8),
        "For sir with the vmf normalizer, one group and full rankings: draw out of so many candidates.",
    )

    def check_together(self) -> None:
        """Refuse priors that nothing uses, and approximations that were not asked for."""
        if self.inference in BY_VMF and self.normalizer != "vmf":
            raise DataError(
                Argument("inference", self.inference),
                " rests on the von Mises–Fisher normalizer, an approximation under which probabilities "
                "do not sum to one; ask for it with ",
                Argument("normalizer", "vmf"),
                ", or use ",
                Argument("inference", "em"),
                " (maximum likelihood) or ",
                Argument("inference", "sir"),
                " (draws from the posterior), which need no approximation; got ",
                Argument("normalizer", self.normalizer),
            )
        for name, (inferences, why) in UNUSED.items():
            if self.inference in inferences and not self.is_default(name):
                raise DataError(Argument("inference", self.inference), f" {why}; leave out ", Argument(name))
        if self.prior_strength > 0.0 and self.prior_direction is None:
            raise DataError("prior_strength needs a prior_direction: scores of the items, small = preferred")
        if self.prior_direction is not None and self.prior_strength == 0.0:
            missing = "prior_direction has no effect without prior_strength"
            raise DataError(f"{missing}: say by how many rankings it counts")

    def way_for(self, n_items: int, is_full: bool, are_top_lists: bool) -> str:
        """Say how a fit goes: it climbs, runs sweeps of stochastic EM or chains, or draws independently.

        ``are_top_lists``: whether no row leaves the place of an unlisted item open but for "below".
        """
        if self.inference == "em":
            tabled = are_top_lists and self.normalizer_for(n_items) == "exact"
            return "climb" if is_full or tabled else "sweeps"
        if not is_full:
            return "chains"
        if self.inference == "vi":
            return "climb"
        return "chains" if self.n_components > 1 or self.normalizer_for(n_items) != "vmf" else "draws"

    def refuse_unused(self, *ways: str) -> None:
        """Refuse chosen numbers of draws where fits go other ways and take none."""
        goes = {"climb": "climbs and draws nothing", "chains": "runs chains", "draws": "draws independently"}
        for name, users in SERVES.items():
            if not self.is_default(name) and not set(ways) & set(users):
                why = f" {goes.get(ways[0], 'runs sweeps')} on these data; leave out "
                with about_parameters():
                    raise DataError(Argument("inference", self.inference), why, Argument(name))

    def rate_for(self, n_items: int) -> float:
        """Return the rate of the prior of κ for so many items; concentrations grow with their number."""
        return VAGUE_RATE / n_items if self.prior_rate is None else self.prior_rate

    def normalizer_for(self, n_items: int) -> Literal["vmf", "exact", "balanced"]:
        """Return the normalizer to use for so many items: never "vmf" unless it was asked for."""
        if self.normalizer == "vmf":
            return "vmf"
        if self.normalizer == "exact" and n_items > MOST_EXACT_ITEMS:
            raise DataError(
                f"the exact normalizer sums over all subsets of the items, which for {n_items} are too "
                f"many; it serves up to {MOST_EXACT_ITEMS} items. Use ",
                Argument("normalizer", "balanced"),
            )
        if self.normalizer != "balanced" and n_items <= MOST_EXACT_ITEMS:
            return "exact"
        if n_items > MOST_BALANCED_ITEMS:
            raise DataError(
                f"the balanced normalizer works on tables of {n_items} × {n_items}, too large to be done "
                f"thousands of times; it serves up to {MOST_BALANCED_ITEMS} items. What is left is ",
                Argument("normalizer", "vmf"),
                ", an approximation under which probabilities do not sum to one",
            )
        return "balanced"


SHARED = AngleParameters.declared


class AngleClassifierParameters(RunParameters):
    """Parameters of :class:`permix.AngleClassifier`: those of the model of each class, and one more."""

    n_components: int = SHARED["n_components"]  # type: ignore[assignment]
    inference: Inference = SHARED["inference"]  # type: ignore[assignment]
    normalizer: Normalizer = SHARED["normalizer"]  # type: ignore[assignment]
    class_weights: Literal["shares", "equal"] = declare(
        "shares",
        Choice("shares", "equal"),
        "How probable classes are beforehand: as frequent as in the data (plus one each), or all alike.",
    )
    prior_shape: float = SHARED["prior_shape"]  # type: ignore[assignment]
    prior_rate: float | None = SHARED["prior_rate"]  # type: ignore[assignment]
    n_init: int = SHARED["n_init"]  # type: ignore[assignment]
    n_draws: int = SHARED["n_draws"]  # type: ignore[assignment]
    n_burn_in: int = SHARED["n_burn_in"]  # type: ignore[assignment]
    n_chains: int = SHARED["n_chains"]  # type: ignore[assignment]

    def check_together(self) -> None:
        """Refuse what the model of a class refuses."""
        self.of_class(self.random_state)

    def of_class(self, random_state: Any) -> AngleParameters:
        """Return the parameters of the model of one class."""
        values = {name: value for name, value in self.as_dict().items() if name in AngleParameters.declared}
        # The classifier itself shows progress.
        return AngleParameters(**{**values, "random_state": random_state, "progress": False})
