"""The work behind :class:`permix.AngleMixture`, free of scikit-learn, whose import takes a second."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import lgamma
from typing import Any, ClassVar

import numpy as np

from permix.angle.ascent import VariationalPosterior, best_of_restarts
from permix.angle.components import AngleComponents, AnglePrior, largest_concentration
from permix.angle.data import AngleData, TopLists, are_top_lists, as_rankings
from permix.angle.direct import Evidence, resample
from permix.angle.gibbs.state import AngleChainModel, AngleState
from permix.angle.gibbs.stochastic_em import stochastic_em
from permix.angle.parameters import MOST_EXACT_ITEMS, AngleParameters
from permix.angle.passes.sharded import ShardedRankings
from permix.angle.passes.sums import Passes
from permix.angle.predictive import MOST_NUMBERS, AnglePosteriorDraws, DirectionPosterior, Predictive
from permix.angle.rows import joint_log_probabilities, normalized, row_probabilities, shared_by_equal_rows
from permix.data.labels import Array
from permix.data.rankings import Rankings
from permix.data.shards.sharded import Sharded
from permix.distributions.angle.completions import annealing_cost, is_cheap
from permix.distributions.angle.concentration import draw_from_grid
from permix.distributions.base import Estimate
from permix.errors import Argument, DataError, Message, PermixWarning
from permix.estimators.known import NOTHING, Known
from permix.posterior import warn_if_chains_disagree
from permix.posterior.estimated import Memberships, recurrence_of
from permix.runtime.fingerprint import digest
from permix.runtime.interrupts import Interrupts
from permix.runtime.progress import Display
from permix.runtime.seeds import seed_sequence
from permix.runtime.threads import at_most
from permix.sampling import Draws, run_chains

# SIR is not to be trusted where its candidates are worth fewer than this.
FEW_CANDIDATES = 100
# Rows whose log-likelihood is found by annealing, where there are more; proposals spent on that, and the
# fewest rows that are worth it.
ANNEALED_ROWS = 100
ANNEALING_PROPOSALS = 2e8
FEWEST_ROWS = 10
# Up to so many items the error of the approximation is known at once.
CHECKED_ITEMS = 16
# Of agents in shards: so many different rows are fitted as a table; of more, so many agents are the rows of
# the fit.
MOST_ROWS, SHOWN_AGENTS = 40_000, 20_000


@dataclass(frozen=True, eq=False)
class AngleFit:
    """A fitted mixture with all that is needed to use it."""

    model: ClassVar[str] = "AngleMixture"

    settings: AngleParameters
    # Point estimates, the largest component first: maximum likelihood, or the posterior means of κθ. (Of κ
    # alone they would make a component about which nothing is known as concentrated as the prior's mean.)
    components: AngleComponents
    # P(component | what the row says) for the rows that were fitted (rows, K), and the agents of each row.
    probabilities: Array
    counts: Array
    # ln P(data) at the point estimates.
    log_likelihood: Estimate
    # Components that the approximate normalizer would have made more concentrated than probabilities allow.
    guarded: Array
    # How many items all members of a component put first, where that makes the likelihood unbounded in the
    # concentration; else 0.
    agreed: Array
    # Evidence lower bound of variational inference; ln P(data) with the parameters integrated out, by
    # quadrature (κ up to the largest at which probabilities stay below one); None otherwise.
    objective: float | None = None
    # Log-likelihood or evidence bound after every pass of the best run, and what each start reached.
    history: Array = field(default_factory=lambda: np.empty(0))
    start_objectives: Array = field(default_factory=lambda: np.empty(0))
    variational: VariationalPosterior | None = None
    # Of one component by quadrature: N, β, m and the prior, which say all.
    evidence: Evidence | None = None
    # Of SIR, quadrature and all chains.
    draws: Draws | None = None
    converged: bool = True
    interrupted: bool = False
    # Mean scores of the data under permix.estimators.baselines.KEPT, where they were asked for.
    baselines: Array | None = None
    # Share of the chains, or of the other starts, that find each component; None where it is not known.
    recur: Array | None = None
    # How many agents were fitted, where data were in shards and rows are a random sample of those agents.
    sampled_from: int | None = None
    known: Known = NOTHING  # of the rows and items, beside what was fitted

    @property
    def n_agents(self) -> int:
        """How many agents were fitted."""
        return int(self.counts.sum()) if self.sampled_from is None else self.sampled_from

    @property
    def n_known(self) -> tuple[int, int]:
        """Numbers of rows and of items."""
        return len(self.counts), len(self.components.items)

    def memberships(self) -> Memberships:
        """Return to which groups rows belong."""
        k = self.probabilities.shape[1]
        return Memberships(self.labels, k, self.counts, probabilities=self.probabilities, recur=self.recur)

    @property
    def labels(self) -> Array:
        """The most probable component of every row."""
        return np.asarray(self.probabilities.argmax(axis=1))

    @cached_property
    def concentrations(self) -> Array:
        """Posterior means of κ, or maximum likelihood."""
        if self.variational is not None:
            return self.variational.mean_concentrations
        if self.evidence is not None:
            nodes, probabilities, _ = self.evidence.grid()
            return np.array([float(nodes @ probabilities)])
        if self.draws is not None:
            return np.asarray(self.draws.arrays["concentrations"].mean(axis=(0, 1)))
        return self.components.concentrations

    @cached_property
    def posterior(self) -> AnglePosteriorDraws | None:
        """Draws of the parameters: those of the chains, or out of the variational posterior; None for EM."""
        if self.draws is not None:
            return AnglePosteriorDraws(*(self.draws.arrays[name] for name in AnglePosteriorDraws._fields))
        return None if self.variational is None else AnglePosteriorDraws.out_of(self.variational)

    @cached_property
    def predictive(self) -> Predictive:
        """The density of a new ranking."""
        if self.variational is not None:
            return Predictive(self.components, DirectionPosterior.of_variational(self.variational), None)
        if self.evidence is not None:
            return Predictive(self.components, DirectionPosterior.of_evidence(self.evidence), None)
        return Predictive(self.components, None, self.posterior)

    @cached_property
    def normalizer_errors(self) -> list[Estimate]:
        """True ln of the sum over all rankings less the one used, by component; 0 where it is exact."""
        if self.components.normalizer == "exact":
            return [Estimate(0.0)] * self.components.n_components
        if self.components.n_items <= CHECKED_ITEMS:
            return [Estimate(gap) for gap in self.components.log_sums_by("exact") - self.components.log_sums]
        # Importance sampling says how far the von Mises–Fisher sum is off; here, how far the one in use.
        shifts = self.components.log_sums - self.components.log_sums_by("vmf")
        errors = [self.components.component(k).normalizer_error() for k in range(len(shifts))]
        found = zip(errors, shifts, strict=True)
        return [Estimate(float(error) - shift, error.standard_error) for error, shift in found]


def way_of(rankings: Rankings, settings: AngleParameters) -> str:
    """Say how a fit to these rankings goes; see :meth:`AngleParameters.way_for`."""
    return settings.way_for(rankings.n_items, rankings.is_full, are_top_lists(rankings))


def fit_as_asked(rankings: Rankings | Sharded, settings: AngleParameters) -> AngleFit:
    """Fit; parameters that a fit to these rankings does not use are refused."""
    if isinstance(rankings, Sharded):
        return _fit_shards(rankings, settings)
    settings.refuse_unused(way_of(rankings, settings))
    return fit_angle(rankings, settings)


def fit_angle(
    rankings: Rankings, settings: AngleParameters, smaller: AngleComponents | None = None
) -> AngleFit:
    """Fit a mixture of angle-based models to rankings as ``as_rankings`` returns them.

    Most climbs begin with a ``smaller`` mixture of fewer components, where there is one; chains do not.
    """
    data = AngleData(rankings, settings.n_jobs)
    way = way_of(rankings, settings)
    _check(data, settings, way)
    if way == "climb":
        return _ascent(data, settings, smaller)
    ways = {"sweeps": _stochastic_em, "chains": _chains, "draws": _direct}
    return ways[way](data, settings)


def _check(data: Passes, settings: AngleParameters, way: str) -> None:
    """Refuse what does not go together, before any work."""
    if settings.n_components > data.n_agents:
        asked = Argument("n_components", settings.n_components)
        raise DataError(asked, f" is more than the {data.n_agents} agents; ask for fewer")
    settings.normalizer_for(data.n_items)
    AnglePrior.of(settings, data.items)
    if settings.store is not None and way != "chains":
        raise DataError("store keeps chains while they run, and this fit has none; leave store out")


def _fitted(data: Passes, settings: AngleParameters, components: AngleComponents, **found: Any) -> AngleFit:
    """Return a fit with what all ways to it have in common."""
    found.setdefault("agreed", np.zeros(components.n_components, dtype=np.int64))
    if isinstance(data, AngleData):
        found.setdefault("counts", np.array(data.rankings.counts))
    return AngleFit(settings, components, log_likelihood=_log_likelihood(components, data), **found)


def _ascent(data: AngleData, settings: AngleParameters, smaller: AngleComponents | None) -> AngleFit:
    given = data.rankings
    which = given.equal_rows() if data.n_items <= MOST_EXACT_ITEMS else np.arange(len(given))
    first = np.unique(which, return_index=True)[1]
    counts = np.bincount(which, given.counts).astype(np.int64)
    once = given[first]._replaced(counts=counts, agents=None) if len(first) < len(given) else given
    data = (AngleData if data.is_full else TopLists)(once, data.n_jobs)
    return _climbed(data, data, settings, smaller, which, np.array(given.counts))


def _climbed(
    data: Passes,
    shown: AngleData,
    settings: AngleParameters,
    smaller: AngleComponents | None,
    which: Array,
    counts: Array,
) -> AngleFit:
    """Fit all data; probabilities are those of the rows ``shown``, each of which is several (``which``)."""
    climbed = best_of_restarts(data, settings, smaller)
    run, point = climbed.run, climbed.run.point
    q = point.posterior if settings.inference == "vi" else None
    if q is not None:
        lengths = np.linalg.norm(point.tilts, axis=1)
        components = AngleComponents(data.items, q.mean_weights, q.directions, lengths, "vmf")
    else:
        components = point.components
    order = np.argsort(-components.weights, kind="stable")
    # P(component | row) at the end of the climb, that is under q for variational inference.
    probabilities = np.ones((shown.n_rows, settings.n_components))
    if settings.n_components > 1:
        shown.posterior(point.tilts[order], point.offsets[order], probabilities=probabilities)
    components = components.taken(order)
    recur = None
    if smaller is None and len(climbed.points) > 1 and settings.n_components > 1:
        # A mixture that a smaller one led to is one of many that are compared.
        recur = _found_by_others(climbed.points, shown, probabilities.argmax(axis=1))
    found: dict[str, Any] = {"agreed": _agreed(components, data)} if q is None else {}
    if q is not None:
        found = {"objective": run.objective, "variational": q.taken(order)}
    return _fitted(
        data,
        settings,
        components,
        **found,
        probabilities=probabilities[which],
        counts=counts,
        history=np.array(run.history),
        start_objectives=climbed.reached,
        guarded=point.guarded[order],
        converged=run.converged,
        interrupted=climbed.interrupted,
        recur=recur,
    )


def _found_by_others(points: Sequence[Any], shown: AngleData, labels: Array) -> Array:
    """Return the share of the other starts that find each component, by agents in common."""
    counts, others = np.asarray(shown.counts, dtype=np.int64), []
    for point in points:
        probabilities = np.empty((shown.n_rows, len(point.offsets)))
        shown.posterior(point.tilts, point.offsets, probabilities=probabilities)
        others.append(np.repeat(probabilities.argmax(axis=1), counts))
    found = recurrence_of(np.array(others)[:, None], np.repeat(labels, counts)).n_chains
    found = np.pad(found, (0, len(points[0].offsets) - len(found)))  # the last may be nobody's
    return np.maximum(found - 1, 0) / (len(points) - 1)


def _fit_shards(data: Sharded, settings: AngleParameters) -> AngleFit:
    """Fit agents in shards: the rows of the fit are a sample of them.

    Where what they say fits into the memory of the client, as it would for a table, it is fitted there.
    """
    try:
        few = data.distinct(MOST_ROWS)
        if few is not None:
            return replace(fit_as_asked(as_rankings(few), settings), sampled_from=data.n_agents)
        if data.n_items < 3:
            raise DataError("an angle needs three items or more")
        rows = ShardedRankings(data, settings.n_jobs)
        way = settings.way_for(data.n_items, rows.is_full, rows.are_top_lists)
        settings.refuse_unused(way)
        _check(rows, settings, way)
        if way != "climb":
            raise DataError(
                f"{data.n_rows:,} rows in shards are fitted by climbing alone, but these data and parameters "
                "need draws: rankings must be full, or top lists of at most "
                f"{MOST_EXACT_ITEMS} items, with ",
                Argument("inference", "em"),
                "; fit a part of them as one table",
            )
        rng = np.random.default_rng(seed_sequence(settings.random_state).spawn(1)[0])
        shown = rows.some(SHOWN_AGENTS, rng)
        counts = np.array(shown.rankings.counts)
        fit = _climbed(rows, shown, settings, None, np.arange(shown.n_rows), counts)
        return replace(fit, sampled_from=data.n_agents)
    finally:
        data.forget()


def _agreed(components: AngleComponents, data: Passes) -> Array:
    """Count the items that all members of a component put first: the likelihood has no maximum there.

    The sums of the smallest mean scores are then those of the best ranks themselves.
    """
    _, sums, masses = data.weighed(components.tilts, components.offsets)
    least = np.cumsum(data.scores)[:-1]
    agreed = np.zeros(components.n_components, dtype=np.int64)
    for k in np.flatnonzero(masses >= 1.0):
        reached = np.cumsum(np.sort(sums[:, k] / masses[k]))[:-1]
        first = np.flatnonzero(reached - least < 1e-6)
        agreed[k] = first[0] + 1 if len(first) else 0
    return agreed


def _direct(data: AngleData, settings: AngleParameters) -> AngleFit:
    """Draw from the posterior of one component: SIR, or quadrature."""
    prior = AnglePrior.of(settings, data.items)
    with at_most(settings.n_jobs), Display(settings.progress) as display:
        evidence = Evidence.of(data.sum_of_scores, float(data.n_agents), prior, data.scores)
        rng = np.random.default_rng(seed_sequence(settings.random_state))
        n_draws = min(settings.n_fixed_draws, max(100, MOST_NUMBERS // data.n_items))
        display.begin("drawing from the posterior")
        nodes, probabilities, log_integral = evidence.grid()
        if settings.inference == "sir":
            drawn = resample(evidence, n_draws, settings.n_candidates, rng)
            if drawn.effective < FEW_CANDIDATES:
                worth = f"the {settings.n_candidates} candidates are worth {drawn.effective:.0f} only"
                way_out = (Argument("n_candidates"), ", or use ", Argument("inference", "quadrature"))
                warnings.warn(Message(f"SIR: {worth}; raise ", *way_out), PermixWarning, stacklevel=4)
            kappas = drawn.kappas
            length = float(np.mean(evidence.mean_tilts(kappas)))
        else:
            kappas = np.array([draw_from_grid(rng, nodes, probabilities) for _ in range(n_draws)])
            length = float(evidence.mean_tilts(nodes) @ probabilities)
        directions = evidence.directions_given(kappas, rng)
    one = (np.ones(1), evidence.direction[None, :], np.array([length]))
    components = AngleComponents(data.items, *one, "vmf")
    by_quadrature = settings.inference == "quadrature"
    constant = prior.shape * np.log(prior.rate) - lgamma(prior.shape)
    constant -= data.n_agents * lgamma(data.n_items + 1.0)
    return _fitted(
        data,
        settings,
        components,
        probabilities=np.ones((len(data.rankings), 1)),
        objective=log_integral + constant if by_quadrature else None,
        evidence=evidence if by_quadrature else None,
        draws=Draws(
            {
                "weights": np.ones((1, n_draws, 1)),
                "concentrations": kappas[None, :, None],
                "directions": directions[None, :, None, :],
            },
            {"moves": [], "proposed": np.zeros((1, 0), int), "accepted": np.zeros((1, 0), int)},
            n_draws=n_draws,
        ),
        guarded=np.array([np.isfinite(evidence.cap) and bool(kappas.max() > 0.999 * evidence.cap)]),
    )


def _start(model: AngleChainModel, rng: np.random.Generator) -> AngleComponents:
    """Return where chains start: a quick fit to the rows, completed at random."""
    from permix.distributions.angle.completions import sample_completions

    settings, data = model.settings, model.data
    if not data.is_full:
        part = data.some(max(1000, 200_000 // data.n_items), rng)
        none = np.zeros((1, data.n_items))
        orders = sample_completions(part.rankings, none, n_sweeps=1, random_state=rng)
        data = AngleData(Rankings._from_arrays(orders, data.items), data.n_jobs)
    quick = AngleParameters(
        settings.n_components,
        normalizer="vmf",
        n_init=min(settings.n_init, 5),
        max_iter=min(settings.max_iter, 200),
        tol=settings.tol,
        random_state=rng,
        n_jobs=settings.n_jobs,
        progress=False,
    )
    return best_of_restarts(data, quick).run.point.components


def _chains(data: AngleData, settings: AngleParameters) -> AngleFit:
    from permix.angle.gibbs.moves import gibbs_sweep

    model = AngleChainModel(data, settings)
    names, pulls = np.array([str(item) for item in data.items]), model.prior.pulls
    draws = run_chains(
        lambda rng: AngleState(model, rng, _start(model, rng)),
        gibbs_sweep(settings, data.n_items),
        **settings.for_chains(data.n_agents * data.n_items),
        fingerprint={
            "model": "AngleMixture",
            "inference": settings.inference,
            "bound": settings.bound,
            "normalizer": model.normalizer,
            "n_components": settings.n_components,
            "prior": [settings.prior_shape, settings.rate_for(data.n_items), settings.pseudo_count],
            "data": digest({"orders": model.listed, "below": model.below, "items": names, "pulls": pulls}),
        },
    )
    draws = aligned(draws)
    arrays = draws.arrays
    kappas = arrays["concentrations"]
    tilts = np.einsum("cdk,cdkt->kt", kappas, arrays["directions"]) / kappas[:, :, 0].size
    tilts -= tilts.mean(axis=1, keepdims=True)
    lengths = np.linalg.norm(tilts, axis=1)
    weights = arrays["weights"].mean(axis=(0, 1))
    means = (weights / weights.sum(), tilts / lengths[:, None], lengths)
    components = AngleComponents(data.items, *means, model.normalizer)
    most = largest_concentration(data.n_items) if model.normalizer == "vmf" else np.inf
    warn_if_chains_disagree(draws)
    probabilities, recur = _shares(draws, data, components.n_components), None
    if components.n_components > 1 and len(kappas) > 1:
        labels = probabilities.argmax(axis=1)[data.rankings.rows_of_agents()]
        found = recurrence_of(arrays["labels"], labels).n_chains
        recur = np.pad(found, (0, components.n_components - len(found))) / len(kappas)
    return _fitted(
        data,
        settings,
        components,
        probabilities=probabilities,
        recur=recur,
        history=arrays["log_likelihood" if data.is_full else "completed_log_likelihood"].mean(axis=0),
        draws=draws,
        guarded=kappas.max(axis=(0, 1)) > 0.999 * most,
        interrupted=draws.interrupted,
    )


def aligned(draws: Draws) -> Draws:
    """Number the components alike in all draws, the largest first: labels in a chain have no meaning.

    Every draw is matched, by the agents that its components have in common, to the last draw of the first
    chain; then to the component that most draws put each agent into.
    """
    from scipy.optimize import linear_sum_assignment

    arrays = dict(draws.arrays)
    k = arrays["weights"].shape[-1]
    if k == 1:
        return draws
    labels = arrays["labels"].astype(np.int64)
    reference, agents = labels[0, -1], np.arange(labels.shape[2])
    new = np.empty((*labels.shape[:2], k), dtype=np.int64)  # number in the draw -> number in the reference
    for _ in range(3):
        votes = np.zeros((len(agents), k))
        for draw in np.ndindex(labels.shape[:2]):
            shared = np.bincount(labels[draw] * k + reference, minlength=k * k).reshape(k, k)
            new[draw] = linear_sum_assignment(-shared)[1]
            votes[agents, new[draw][labels[draw]]] += 1.0
        reference = votes.argmax(axis=1)
    order = np.argsort(new, axis=2)
    weights = np.take_along_axis(arrays["weights"], order, axis=2)
    order = order[:, :, np.argsort(-weights.mean(axis=(0, 1)), kind="stable")]
    for name, by in (("weights", order), ("concentrations", order), ("directions", order[..., None])):
        arrays[name] = np.ascontiguousarray(np.take_along_axis(arrays[name], by, axis=2))
    new_labels = np.take_along_axis(np.argsort(order, axis=2), labels, axis=2)
    arrays["labels"] = new_labels.astype(np.min_scalar_type(k))
    return replace(draws, arrays=arrays)


def _shares(draws: Draws, data: AngleData, k: int) -> Array:
    """Return how often agents who said the same as a row were in each component."""
    if k == 1:
        return np.ones((len(data.rankings), 1))
    labels = draws.arrays["labels"].reshape(-1, draws.arrays["labels"].shape[-1])
    of_agent = np.stack([(labels == g).mean(axis=0) for g in range(k)], axis=1)
    shares = np.zeros((len(data.rankings), k))
    np.add.at(shares, data.rankings.rows_of_agents(), of_agent)
    return shared_by_equal_rows(shares / shares.sum(axis=1, keepdims=True), data.rankings)


def _stochastic_em(data: AngleData, settings: AngleParameters) -> AngleFit:
    model = AngleChainModel(data, settings)
    rng = np.random.default_rng(seed_sequence(settings.random_state))
    with at_most(settings.n_jobs), Display(settings.progress) as display, Interrupts() as interrupts:
        display.begin("stochastic EM", settings.n_burn_in + settings.n_fixed_draws)

        def follow() -> bool:
            display.step()
            return not interrupts.stopped

        point, history, interrupted = stochastic_em(model, _start(model, rng), rng, follow)
    order = np.argsort(-point.components.weights, kind="stable")
    components = point.components.taken(order)
    return _fitted(
        data,
        settings,
        components,
        probabilities=row_probabilities(components, data.rankings),
        history=np.array(history),
        guarded=point.guarded[order],
        converged=not interrupted,
        interrupted=interrupted,
    )


def _log_likelihood(components: AngleComponents, data: Passes) -> Estimate:
    """Return ln P(data) at point estimates.

    Rows whose sum needs annealing cost milliseconds each; where there are many, some stand for all, and the
    standard error says what that leaves open. With thousands of items even a few cost minutes: then NaN.
    """
    if data.is_full or not isinstance(data, AngleData):
        return Estimate(data.total_log_density(components.tilts, components.offsets))
    cheap = is_cheap(data.rankings)
    total, variance = 0.0, 0.0
    rows = np.flatnonzero(cheap)
    if len(rows):
        densities = normalized(joint_log_probabilities(components, data.rankings[rows])[0])[1]
        total = float(data.counts[rows] @ densities)
    rows = np.flatnonzero(~cheap)
    if len(rows):
        n = len(rows)
        most = int(ANNEALING_PROPOSALS / annealing_cost(data.rankings[rows[:1]], components.tilts))
        if most < min(n, FEWEST_ROWS):
            return Estimate(np.nan, np.nan)
        if n > min(most, ANNEALED_ROWS):
            rows = np.sort(np.random.default_rng(0).choice(rows, min(most, ANNEALED_ROWS), replace=False))
        joint, errors = joint_log_probabilities(components, data.rankings[rows])
        shares, densities = normalized(joint)
        values = data.counts[rows] * densities
        scale = n / len(rows)
        total += scale * float(values.sum())
        variance = scale**2 * float(((data.counts[rows, None] * shares * errors) ** 2).sum())
        if scale > 1.0:
            variance += scale * (n - len(rows)) * float(values.var(ddof=1))
    return Estimate(total, float(np.sqrt(variance)))
