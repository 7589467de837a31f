"""A ranking distribution given what one agent said: draws, probabilities, marginals, bounds."""

from __future__ import annotations

import warnings
from functools import cached_property
from typing import Any

import numpy as np

from permix.data.labels import Array
from permix.data.preferences import Preferences
from permix.data.rankings import Rankings
from permix.distributions.base import Estimate, Given, RankingDistribution, sample_size, whole_number
from permix.distributions.conditioning import amp_insertions_jit as insertions
from permix.distributions.conditioning.amp_jit import amp_log_prob, weighted_marginals
from permix.distributions.conditioning.annealing import annealed_log_normalizer, can_anneal, is_affordable
from permix.distributions.conditioning.bounds import Bounds, bounds
from permix.distributions.conditioning.chain import by_batches, is_few, run_chain
from permix.distributions.conditioning.exact import FewDownSets, Partition, Problem, exact_way
from permix.distributions.insertion import RepeatedInsertion
from permix.distributions.mallows import Mallows
from permix.errors import Argument, DataError, Message, PermixWarning
from permix.runtime.seeds import RandomState, generator, stream_key

# Burn-in and distance between draws of the chain, with local moves and without.
LOCAL_STEPS, PLAIN_STEPS = (100, 2), (1000, 10)
ROUGH = "answer and its standard error are rough"


class Conditioned(Given):
    """The posterior P(r | v) of a ranking distribution given one agent's preferences v.

    Exact where the preferences partition all items (full and top-t rankings, levels over all items) or the
    down-sets of the partial order are few (about 18 unrelated items, or narrow orders of any length, between
    the first and the last item in the center that the agent speaks of); else by sampling with AMP as
    proposal. Made by ``distribution.condition(preferences)``.

    Attributes
    ----------
    distribution : RankingDistribution
    preferences : Preferences
        One row, items in the order of the distribution.
    acceptance_rate_ : float
        Share of accepted proposals of the last ``sample(method="mmp")``.

    Examples
    --------
    >>> from permix import Mallows, Preferences
    >>> model = Mallows(["a", "b", "c"], 0.5)
    >>> given = model.condition(Preferences.from_pairs([(0, "c", "a")], items=["a", "b", "c"]))
    >>> given
    Mallows: 3 items, dispersion 0.5, center a ≻ b ≻ c
      given c ≻ a
    >>> given.pairwise().round(3)
    array([[0. , 0.4, 0. ],
           [0.6, 0. , 0.4],
           [1. , 0.6, 0. ]])
    """

    acceptance_rate_: float

    def __init__(self, distribution: RankingDistribution, preferences: object) -> None:
        if isinstance(preferences, Rankings):
            preferences = Preferences.from_rankings(preferences)
        if not isinstance(preferences, Preferences):
            raise DataError(
                f"condition(...) needs Preferences or Rankings, not {type(preferences).__name__}; "
                "see Preferences.from_pairs, from_ratings, from_levels"
            )
        self.distribution = distribution
        self.preferences = preferences = self._one_row(preferences, "preferences")
        if not preferences.consistent[0]:
            raise preferences._cycle_error(0)
        self._problem, self._exact = exact_way(_problem(distribution, preferences))

    @property
    def is_partitioned(self) -> bool:
        """Whether the preferences put all items into groups, one above the other: AMP is then exact."""
        return isinstance(self._exact, Partition)

    @property
    def is_exact(self) -> bool:
        """Whether exact sums over all rankings are affordable, so that method="auto" uses them."""
        return self._exact is not None

    def sample(
        self,
        size: int = 1,
        random_state: RandomState = None,
        method: str = "auto",
        n_burn_in: int | None = None,
        n_thin: int | None = None,
        local_moves: bool = True,
    ) -> Rankings:
        """Draw full rankings that agree with the preferences.

        Parameters
        ----------
        size : int
            Number of rankings.
        random_state : int, SeedSequence, Generator or None
        method : {"auto", "exact", "amp", "mmp"}
            "exact": independent draws from the posterior. "amp": independent draws, quick, by
            equation 15, which is the posterior only for preferences that partition all items. "mmp": a
            Metropolis chain with proposals from AMP, which tends to the posterior; draws depend on
            each other. "auto": exact where affordable, else mmp.
        n_burn_in, n_thin : int, optional
            For mmp: steps before the first draw is kept, and steps from one draw to the next; by default 100
            and 2 with local moves, 1000 and 10 without.
        local_moves : bool
            For mmp: let a sweep follow every proposal, in which each item in turn is drawn anew given the
            order of all others (Gibbs); four chains run side by side. Where AMP's proposals are hardly ever
            accepted, the draws are then still nearly independent. False is one chain as published
            (algorithm 2).

        Returns
        -------
        Rankings
            ``metadata`` says by which ``method`` and whether that is ``exact`` ("mmp" is in the limit); for
            mmp also the ``acceptance_rate`` of AMP's proposals, ``local_moves``, and the ``effective_size``:
            how many independent draws tell as much about the mean distance from the center.

        Examples
        --------
        >>> from permix import Mallows, Rankings
        >>> model = Mallows(["a", "b", "c", "d"], 0.3)
        >>> top = Rankings.from_orders([["d", "b"]], items=["a", "b", "c", "d"])
        >>> model.condition(top).sample(2, random_state=0).orders[:, :2]
        array([[3, 1],
               [3, 1]], dtype=int32)
        """
        _one_of("method", method, ("auto", "exact", "amp", "mmp"))
        n_draws = sample_size(size)
        if method == "auto":
            method = "exact" if self._exact is not None else "mmp"
        self._need_possible()
        about: dict[str, Any] = {"method": method, "exact": method == "exact" or self.is_partitioned}
        if method == "exact":
            orders = self._affordable().sample(n_draws, generator(random_state))
        elif method == "amp":
            orders = self._problem.amp(stream_key(random_state), n_draws)[0]
        else:
            default_burn_in, default_thin = LOCAL_STEPS if local_moves else PLAIN_STEPS
            burn_in = whole_number("n_burn_in", default_burn_in if n_burn_in is None else n_burn_in, 0)
            thin = whole_number("n_thin", default_thin if n_thin is None else n_thin, 1)
            orders, more = self._chain(n_draws, random_state, burn_in, thin, local_moves)
            about |= more
        return Rankings._from_arrays(orders, self.items, metadata=about)

    def _chain(
        self, size: int, random_state: RandomState, n_burn_in: int, n_thin: int, local_moves: bool
    ) -> tuple[Array, dict[str, Any]]:
        """States of the chain MMP, and how it went; a warning where it went badly."""
        problem = self._problem
        chain = (size, n_burn_in, n_thin, local_moves)
        orders, about, trouble = run_chain(problem, stream_key(random_state), *chain)
        if problem.is_possible is None or np.isinf(problem.models.decays).any():
            priors = self.distribution.log_prob(Rankings._from_arrays(orders, self.items))
            if not np.isfinite(priors).all():
                raise DataError(
                    f"{n_burn_in} steps of the chain did not find a ranking of positive probability that "
                    "agrees with the preferences; pass a larger ",
                    Argument("n_burn_in"),
                )
        if trouble:
            warnings.warn(trouble, PermixWarning, stacklevel=3)
        self.acceptance_rate_ = about["acceptance_rate"]
        return orders, about

    def log_normalizer(
        self, method: str = "auto", n_samples: int | None = None, random_state: RandomState = None
    ) -> Estimate:
        """Logarithm of P(v): the probability that a ranking drawn without preferences agrees with them.

        Parameters
        ----------
        method : {"auto", "exact", "importance", "annealed"}
            "importance": the mean of P(r)/q(r) over draws from AMP (equation 28). "annealed": runs from the
            uniform model to this one, for Mallows models; slower, and right where preferences go against the
            center, so that AMP's draws miss what matters. "auto": exact where affordable, else importance,
            else, where few of its draws count, annealed.
        n_samples : int, optional
            Draws for importance (10,000 by default), runs for annealed (64).
        random_state : int, SeedSequence, Generator or None

        Returns
        -------
        Estimate
            A float with ``standard_error``, 0 where exact. Minus infinity where no ranking of positive
            probability agrees; with error NaN, and a warning, where no draw had any, which proves nothing.

        Examples
        --------
        >>> from permix import Mallows, Preferences
        >>> model = Mallows(["a", "b"], 0.25)
        >>> float(np.exp(model.condition(Preferences.from_pairs([(0, "b", "a")])).log_normalizer()))
        0.2
        """
        _one_of("method", method, ("auto", "exact", "importance", "annealed"))
        if method == "exact" or (method == "auto" and self._exact is not None):
            return Estimate(self._affordable().log_normalizer)
        if self._problem.is_possible is False:
            return Estimate(-np.inf)
        key = stream_key(random_state)
        if method == "annealed":
            return self._annealed(key, n_samples)
        n_samples = whole_number("n_samples", 10_000 if n_samples is None else n_samples, 2)
        if isinstance(self._exact, Partition):
            return Estimate(self._exact.log_normalizer)  # all draws have the same weight: one is enough
        value, error = self._problem.importance(key, n_samples)
        # Var(w) / (N mean(w)²) is the square of the error, and N / (1 + Var(w) / mean(w)²) draws count.
        effective = n_samples / (1.0 + n_samples * error**2) if value > -np.inf else 0.0
        if method == "auto" and is_few(effective, n_samples) and is_affordable(self._problem):
            return self._annealed(key, None)
        if value == -np.inf:
            unseen = "P(preferences) is zero or too small to be seen"
            _warn(f"none of {n_samples} draws has positive probability: {unseen}", 2)
            return Estimate(value, np.nan)
        self._warn_of_few(effective, n_samples)
        return Estimate(value, error)

    def _annealed(self, key: Array, n_runs: int | None) -> Estimate:
        if not can_anneal(self._problem):
            raise DataError("method='annealed' is for Mallows models with dispersions above 0")
        n_runs = whole_number("n_samples", 64 if n_runs is None else n_runs, 2)
        value, error, good = annealed_log_normalizer(self._problem, key, n_runs)
        if not good:
            _warn(f"few of {n_runs} annealed runs count, so that their {ROUGH}", 3)
        return Estimate(value, error)

    def log_prob(
        self,
        rankings: object,
        method: str = "auto",
        n_samples: int | None = None,
        random_state: RandomState = None,
    ) -> Array:
        """Log-probability of full rankings given the preferences; minus infinity where they disagree.

        Parameters
        ----------
        rankings : Rankings, or rows of items by name or number
        method, n_samples, random_state
            As for :meth:`log_normalizer`, which is subtracted; where that is an estimate, all rows share
            its error.

        Returns
        -------
        ndarray of float, one per row
        """
        table = self.distribution._rankings(rankings)
        if not table.is_full:
            row = int(np.argmax(table.lengths < self.n_items))
            raise DataError(
                f"{table.row_name(row)} is not full; the probability of a partial ranking given preferences "
                "is that of all rankings that agree with both: condition on both together and compare "
                "log_normalizer()"
            )
        total = self.log_normalizer(method, n_samples, random_state)
        self._need_possible(total)
        allowed, priors, _ = self._evaluated(table)
        return np.where(allowed, priors - float(total), -np.inf)

    def amp_log_prob(self, rankings: object) -> Array:
        """Log-probability of full rankings under AMP, equation 15; minus infinity where they disagree."""
        table = self.distribution._rankings(rankings)
        if not table.is_full:
            raise DataError("AMP draws full rankings; give full rankings")
        return self._evaluated(table)[2]

    def _evaluated(self, table: Rankings) -> tuple[Array, Array, Array]:
        """Which full rankings agree, ln P of each without preferences, and ln P under AMP."""
        problem = self._problem
        model = (problem.arrays, 0, problem.center, problem.models, 0)
        priors, weights, proposals = (np.empty(len(table)) for _ in range(3))
        return amp_log_prob(*model, np.array(table.orders), priors, weights, proposals), priors, proposals

    def bounds(self) -> Bounds:
        """Lower and upper bound on ``log_normalizer()`` by theorems 19 and 17; for Mallows models.

        Examples
        --------
        >>> from permix import Mallows, Preferences
        >>> items = ["a", "b", "c"]
        >>> given = Mallows(items, 0.5).condition(Preferences.from_pairs([(0, "c", "a")], items=items))
        >>> lower, upper = given.bounds()
        >>> bool(lower <= given.log_normalizer() <= upper)
        True
        """
        problem = self._problem
        if problem.models.kind == insertions.GENERAL:
            raise DataError("the bounds of theorems 17 and 19 hold for Mallows models only")
        return bounds(problem.arrays, problem.ranks, problem.models.decays[0])

    def pairwise(
        self,
        method: str = "auto",
        n_samples: int = 10_000,
        random_state: RandomState = None,
        return_error: bool = False,
    ) -> Any:
        """Matrix of P(item a before item b | preferences), 0 on the diagonal.

        Parameters
        ----------
        method : {"auto", "exact", "mmp", "importance"}
            Exact sums; the share of ``n_samples`` successive states of the chain of ``sample(method="mmp")``,
            with local moves; or the share of draws from AMP weighted by P(r)/q(r). "auto": exact where
            affordable, else mmp.
        n_samples, random_state
            For mmp and importance.
        return_error : bool
            Return the matrix of standard errors as well (zeros where exact).

        Returns
        -------
        ndarray (items, items), or two of them
        """
        before, _ = self._marginals(method, n_samples, random_state)
        return before if return_error else before[0]

    def rank_marginals(
        self,
        method: str = "auto",
        n_samples: int = 10_000,
        random_state: RandomState = None,
        return_error: bool = False,
    ) -> Any:
        """Matrix of P(item a has rank r | preferences), column 0 = best; arguments as in :meth:`pairwise`."""
        _, at_rank = self._marginals(method, n_samples, random_state)
        return at_rank if return_error else at_rank[0]

    def _marginals(
        self, method: str, n_samples: int, random_state: RandomState
    ) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        """Pairwise and rank marginals, each with standard errors."""
        _one_of("method", method, ("auto", "exact", "mmp", "importance"))
        self._need_possible()
        if method == "exact" or (method == "auto" and self._exact is not None):
            ranks = self._problem.ranks
            at_rank, before = self._affordable().marginals()
            before = np.ascontiguousarray(before[np.ix_(ranks, ranks)])
            none = np.zeros_like(before)
            return (before, none), (np.ascontiguousarray(at_rank[ranks]), none.copy())
        n_samples = whole_number("n_samples", n_samples, 2)
        if method != "importance":
            orders, _ = self._chain(n_samples, random_state, max(LOCAL_STEPS[0], n_samples // 10), 1, True)
            return by_batches(orders)
        orders, log_weights = self._problem.amp(stream_key(random_state), n_samples)
        self._need_possible(float(log_weights.max()))
        weights = np.exp(log_weights - log_weights.max())
        weights /= weights.sum()
        self._warn_of_few(1.0 / float(np.sum(weights**2)), n_samples)
        sums = weighted_marginals(orders, weights)
        return _with_error(sums[0], sums[1], weights), _with_error(sums[2], sums[3], weights)

    def _warn_of_few(self, effective: float, n_samples: int) -> None:
        if is_few(effective, n_samples):
            draws = f"{effective:.0f} effective draws out of {n_samples}"
            _warn(f"importance sampling has {draws}, so that its {ROUGH}", 4)

    def _affordable(self) -> Partition | FewDownSets:
        if self._exact is None:
            raise DataError(
                "exact sums are not affordable: the preferences leave too many items open between the first "
                "and the last item of the center that they speak of; use method='mmp' (draws) or "
                "method='importance' (numbers)"
            )
        return self._exact

    def _need_possible(self, log_normalizer: float | None = None) -> None:
        """Refuse preferences that the distribution gives probability zero."""
        if log_normalizer is None:
            log_normalizer = self._quick_log_normalizer
        if log_normalizer == -np.inf:
            sure = self._problem.is_possible is False or self._exact is not None
            found = "no ranking of positive probability agrees" if sure else "no draw was found that agrees"
            raise DataError(
                f"{found} with the preferences, so there is nothing to draw from or to divide by: {self!r}"
            )

    @cached_property
    def _quick_log_normalizer(self) -> float:
        if self._exact is not None:
            return float(self._exact.log_normalizer)
        possible = self._problem.is_possible
        if possible is None:
            return self._problem.importance(np.zeros(2, dtype=np.uint64), 1000)[0]
        return 0.0 if possible else -np.inf

    def __repr__(self) -> str:
        from permix.data.display import statement

        return f"{self.distribution!r}\n  given {statement(self.preferences, 0)}"


def _problem(distribution: RankingDistribution, preferences: Preferences) -> Problem:
    """Turn a distribution into an insertion model."""
    if isinstance(distribution, Mallows):
        decays = np.array(distribution.decay)
        if distribution.is_weighted:
            models = insertions.weighted_models(decays[None, :])
        else:
            models = insertions.geometric_models(decays[:1], distribution.n_items)
    elif isinstance(distribution, RepeatedInsertion):
        if callable(distribution.probabilities):
            raise DataError(
                "insertion probabilities given as a function cannot be conditioned on preferences; give them "
                "as a matrix, or draw from .sample(...) and keep the rankings that agree"
            )
        models = insertions.general_models(np.array(distribution.probabilities)[None, :, :])
    else:
        raise DataError(f"{type(distribution).__name__} cannot be conditioned on preferences")
    center = np.array(distribution.center_order, dtype=np.int32)
    return Problem(preferences.arrays(), center, models)


def _with_error(sums: Array, squares: Array, weights: Array) -> tuple[Array, Array]:
    """Self-normalized estimates of probabilities, and their standard errors (delta method)."""
    # Σ w² (x - p)² for x in {0, 1}.
    variance = squares * (1.0 - 2.0 * sums) + np.sum(weights**2) * sums**2
    return sums, np.sqrt(np.maximum(variance, 0.0))


def _warn(what: str, stacklevel: int) -> None:
    """Warn of too few draws."""
    advice = Message(f"{what}; pass a larger ", Argument("n_samples"))
    warnings.warn(PermixWarning(advice), stacklevel=stacklevel + 1)


def _one_of(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise DataError(f"{name}={value!r} must be one of {', '.join(map(repr, allowed))}")
