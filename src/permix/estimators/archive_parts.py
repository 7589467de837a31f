"""Parts that archives of several models share: names of items, a log-likelihood, draws, a point estimate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from permix.convergence import ASKED, ENDINGS
from permix.data.labels import Label, clean_items
from permix.distributions.base import Estimate
from permix.estimators import fields
from permix.estimators.archive import Content, Saved
from permix.estimators.checks import Check, Choice, Made, Real, Switch, Whole
from permix.estimators.fields import Array, Field, field, require

if TYPE_CHECKING:
    from permix.partitions.point_estimate import PointEstimate
    from permix.sampling.draws import Draws


def _items(names: Any) -> tuple[Label, ...]:
    require(isinstance(names, list) and len(names) > 0, "items")
    items = clean_items(names)
    # Floats and the like would be tidied to names that no fit writes.
    require(all(type(name) is type(item) for name, item in zip(names, items, strict=True)), "items")
    return items


ITEMS = Made(_items, "a list of names", to_json=list)


def log_likelihood_pair(value: Estimate) -> Array:
    """Return a log-likelihood and its error as files hold them."""
    return np.array([float(value), value.standard_error])


def log_likelihood_of(pair: Array, *, may_be_unknown: bool = False) -> Estimate:
    """Return a log-likelihood with its error; NaN, twice, where a model may not know it."""
    known = bool(np.isfinite(pair).all()) and pair[1] >= 0.0
    require(known or (may_be_unknown and bool(np.isnan(pair).all())), "log-likelihood")
    return Estimate(float(pair[0]), float(pair[1]))


LOG_LIKELIHOOD = field("real", 2)
# Facts and arrays of a finite mixture of distributions of rankings.
MIXTURE_FACTS: Mapping[str, Check] = {"items": ITEMS, "converged": Switch(), "interrupted": Switch()}
MIXTURE_FIELDS = {
    "weights": field("real", "groups", where=fields.simplex),
    "probabilities": field("real", "rows", "groups", where=fields.simplex),
    "counts": field("int64", "rows", where=fields.counts),
    "log_likelihood": LOG_LIKELIHOOD,
    # Mean scores under permix.estimators.baselines.KEPT; the command line finds them.
    "baselines": field("real", 3, where=fields.finite, optional=True),
}


def pack_mixture(fit: Any) -> Content:
    """Return what files of all such mixtures hold."""
    facts = {name: bool(getattr(fit, name)) for name in ("converged", "interrupted")}
    arrays = {"probabilities": fit.probabilities, "counts": fit.counts, "weights": fit.components.weights}
    arrays["log_likelihood"] = log_likelihood_pair(fit.log_likelihood)
    arrays |= {} if fit.baselines is None else {"baselines": fit.baselines}
    return Content({"items": fit.components.items, **facts}, arrays)


# How many agents there are, of whom the rows of a fit are a sample.
SAMPLED_FROM = field("int64", 1, optional=True)


def pack_sampled_from(fit: Any) -> dict[str, Array]:
    """Return that number, where there is one."""
    return {} if fit.sampled_from is None else {"sampled_from": np.array([fit.sampled_from])}


def sampled_from(arrays: Mapping[str, Array]) -> int | None:
    """Return it as it was saved; there are no fewer agents than in the sample."""
    if "sampled_from" not in arrays:
        return None
    n_agents = int(arrays["sampled_from"][0])
    require(n_agents >= int(arrays["counts"].sum()), "agents of a sample")
    return n_agents


def _list_of(kind: type, what: str) -> Made:
    def checked(value: Any) -> list[Any]:
        require(isinstance(value, list) and all(isinstance(entry, kind) for entry in value), what)
        return list(value)

    return Made(checked, f"a list of {what}", to_json=list)


# Facts about draws; ``moves`` are the names of the moves made.
DRAW_FACTS: Mapping[str, Check] = {
    "moves": _list_of(str, "names"),
    "seeds": _list_of(dict, "seeds"),
    "interrupted": Switch(),
    "n_made": Whole(0),
    "ended": Choice(*ENDINGS),
}
# Those of a fit without draws, which may have been interrupted all the same.
NO_DRAWS: Mapping[str, Any] = {"moves": [], "seeds": [], "n_made": 0, "ended": ASKED}


def draw_fields(optional: bool = False, **quantities: Field) -> dict[str, Field]:
    """Return the fields of draws; quantities have the dimensions "chains" and "draws" before their own."""
    counted = field("int", "chains", "moves?", where=fields.not_negative, optional=optional)
    return {
        f"draws/{name}": about._replace(shape=("chains", "draws", *about.shape), optional=optional)
        for name, about in quantities.items()
    } | {f"statistics/{name}": counted for name in ("proposed", "accepted")}


def number(*, optional: bool = False) -> Field:
    """Return the field of a finite number of each draw."""
    return field("number", where=fields.finite, optional=optional)


def pack_draws(draws: Draws) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return the facts and the arrays of draws."""
    arrays = {f"draws/{name}": array for name, array in draws.arrays.items()}
    for name in ("proposed", "accepted"):
        arrays[f"statistics/{name}"] = np.asarray(draws.statistics[name])
    ended = {"interrupted": bool(draws.interrupted), "n_made": draws.n_made, "ended": draws.ended}
    return {"moves": list(draws.statistics["moves"]), "seeds": list(draws.seeds), **ended}, arrays


def draws_of(saved: Saved) -> Draws:
    """Return the draws that were saved."""
    from permix.sampling.draws import Draws

    moves = saved.facts["moves"]
    require(saved.sizes["moves?"] == len(moves), "moves")
    return Draws(
        arrays=under("draws/", saved.arrays),
        statistics={"moves": moves, **under("statistics/", saved.arrays)},
        interrupted=saved.facts["interrupted"],
        n_draws=saved.sizes["draws"],
        n_made=saved.facts["n_made"],
        ended=saved.facts["ended"],
        seeds=tuple(saved.facts["seeds"]),
    )


def under(prefix: str, arrays: Mapping[str, Array]) -> dict[str, Array]:
    """Return the arrays whose names begin with a prefix, without it."""
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


class Record(Check):
    """Several values by name, each with a check of its own; None if ``optional``."""

    def __init__(self, checks: Mapping[str, Check], *, optional: bool = False) -> None:
        self.checks = checks
        self.special = (None,) if optional else ()

    def convert(self, value: Any) -> Any:
        if not isinstance(value, dict) or set(value) != set(self.checks):
            return NotImplemented
        return {name: check(name, value[name]) for name, check in self.checks.items()}

    def must_be(self) -> str:
        return f"a record of {', '.join(self.checks)}"


# A point estimate of a partition.
ESTIMATE_FACTS: Mapping[str, Check] = {
    "loss": Choice("vi", "binder"),
    "expected_loss": Real(),
    "best_draw_loss": Real(),
    "n_runs": Whole(0),
}
# Facts and arrays of a model whose draws are partitions: labels, scalars, and a point estimate.
PARTITION_FACTS = {**DRAW_FACTS, **ESTIMATE_FACTS}
PARTITION_FIELDS = {
    **draw_fields(
        optional=False,
        labels=field("int", "observations", where=fields.below("observations")),
        **dict.fromkeys(("n_groups", "largest_group", "log_likelihood", "log_joint"), number()),
    ),
    "draws/concentration": field("real", "chains", "draws", where=fields.positive, optional=True),
    "point_estimate": field("int", "observations", where=(fields.below("observations"), fields.partition)),
}


def pack_partitions(fit: Any) -> Content:
    """Return the draws and the point estimate of a fit."""
    facts, arrays = pack_draws(fit.draws)
    facts |= {name: getattr(fit.estimate, name) for name in ESTIMATE_FACTS}
    return Content(facts, {**arrays, "point_estimate": np.asarray(fit.estimate.labels)})


def partitions_of(saved: Saved, learned: bool, *, of_sample: bool = False) -> tuple[Draws, PointEstimate]:
    """Return draws and point estimate; ``learned``: whether the draws have a concentration.

    Labels that are those of a sample may lack groups.
    """
    draws = draws_of(saved)
    numbers, found = draws.arrays["labels"].max(axis=2).astype(np.int64) + 1, draws.arrays["n_groups"]
    require(bool(np.all(numbers <= found)) if of_sample else np.array_equal(found, numbers), "n_groups")
    require(len(draws.seeds) == saved.sizes["chains"], "seeds")
    require(("concentration" in draws.arrays) == learned, "concentration")
    return draws, estimate_from(saved.arrays["point_estimate"], saved.facts)


def estimate_from(labels: Array, facts: Mapping[str, Any]) -> PointEstimate:
    """Return a point estimate with these labels."""
    from permix.partitions.point_estimate import PointEstimate

    return PointEstimate(
        labels=labels,
        n_clusters=int(labels.max()) + 1,
        sizes=np.bincount(labels),
        **{name: facts[name] for name in ESTIMATE_FACTS},
    )
