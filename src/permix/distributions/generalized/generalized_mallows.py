"""The generalized Mallows model: rankings made stage by stage, with a decay for every stage."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from permix.data.labels import Array
from permix.data.rankings import Rankings
from permix.distributions.base import Center, Items, RankingDistribution, read_only, sample_size
from permix.distributions.generalized import generalized_mallows_jit as stages
from permix.distributions.insertion_jit import insertion_marginals
from permix.distributions.mallows import Mallows
from permix.errors import Argument, DataError, Message, ParameterError
from permix.runtime.seeds import RandomState, stream_key
from permix.runtime.threads import over_rows

if TYPE_CHECKING:
    from permix.distributions.generalized.continuation import ListContinuation
    from permix.distributions.generalized.maximum_likelihood import GeneralizedMallowsFit
    from permix.distributions.generalized.posterior import GeneralizedMallowsPosterior


class GeneralizedMallows(RankingDistribution):
    """Rankings made from the top by stages that each stray from the center in their own measure.

    Stage j takes one of the items that are left. It skips s_j of those that stand before it in the center
    with P(s_j) ∝ exp(-θ_j s_j), independently of the other stages (Fligner & Verducci 1986; Meilă & Chen
    2010, equation 2). A list of the best t items needs the first t stages only, so full rankings and top
    lists of any length have probabilities in closed form.

    Parameters
    ----------
    center : sequence of items, or Rankings with one row
        The central ordering, best first, by name or number; it ranks every item.
    theta : float or one number per stage
        Decays from 0 (all items that are left are equally likely) to infinity (always the best one that is
        left). There are n - 1 stages for n items, since the last place has nothing to choose. With one
        number for all stages this is :class:`Mallows` with dispersion exp(-theta).
    items : sequence of str or int, optional
        Names and order of the items where the center does not say, as in :class:`Mallows`.
    beyond : float
        Decay of the stages that a shorter ``theta`` does not reach; 0 leaves open how lists go on.

    Attributes
    ----------
    theta : ndarray, one per stage
        All n - 1 decays.
    items, center, center_order
        See :class:`RankingDistribution`.

    Examples
    --------
    >>> from permix import GeneralizedMallows
    >>> model = GeneralizedMallows(["salmon", "tuna", "egg", "eel"], [2.0, 0.5, 0.0])
    >>> model
    GeneralizedMallows: 4 items, theta 2, 0.5, 0, center salmon ≻ tuna ≻ egg ≻ eel
    >>> model.log_prob([["salmon"], ["tuna", "salmon"], ["salmon", "tuna", "egg", "eel"]]).round(3)
    array([-0.145, -2.825, -1.518])
    >>> model.sample(3, random_state=1, lengths=2).lengths
    array([2, 2, 2])
    """

    name: ClassVar[str] = "generalized-mallows"
    _about_subsets: ClassVar[Message] = Message(
        "a generalized Mallows model has no formula for that. If the other items are meant to be below, "
        "build the rankings with ",
        Argument("unlisted", "below"),
    )

    def __init__(
        self,
        center: Center,
        theta: float | Sequence[float] | Array,
        items: Items = None,
        *,
        beyond: float = 0.0,
    ) -> None:
        super().__init__(center, items)
        self._theta = _decays(theta, beyond, self.n_items)

    @classmethod
    def fit(
        cls,
        rankings: Rankings,
        *,
        n_starts: int = 8,
        max_nodes: int | None = None,
        random_state: RandomState = 0,
    ) -> GeneralizedMallowsFit:
        """Estimate center and decays together by maximum likelihood.

        Given the center, each decay is found by itself: the one whose mean skip is that of the lists. Given
        the decays, the best center solves a weighted Kemeny problem, by dynamic programming where the lists
        name at most 14 items. The two alternate until nothing changes, from several starts. Then a search
        through all centers, which leaves out what cannot be better, either proves the result or improves it,
        or gives up.

        Parameters
        ----------
        rankings : Rankings
            Full rankings and top lists of any lengths, unlisted items below.
        n_starts : int
            Starts of the alternation: decays of 1, falling, rising, and random ones.
        max_nodes : int, optional
            Beginnings of centers that the search may look at; 0 leaves it out. Left out, as many as take a
            few seconds.
        random_state : int, SeedSequence, Generator or None
            For the random starts. By default the same data give the same answer.

        Examples
        --------
        >>> from permix import GeneralizedMallows, Rankings
        >>> lists = Rankings.from_orders([["a", "b"], ["a", "c"], ["b", "a"]], items=["a", "b", "c"])
        >>> fit = GeneralizedMallows.fit(lists)
        >>> fit.model.center, fit.proven
        (('a', 'b', 'c'), True)
        """
        from permix.distributions.generalized.maximum_likelihood import fit_generalized_mallows

        return fit_generalized_mallows(rankings, n_starts, max_nodes, random_state)

    @classmethod
    def posterior(
        cls,
        rankings: Rankings,
        *,
        prior_strength: float = 1.0,
        prior_rate: float | Sequence[float] | Array = 1.0,
        n_draws: int = 1000,
        n_burn_in: int = 500,
        n_thin: int = 1,
        n_chains: int = 4,
        prior_rankings: Rankings | None = None,
        random_state: RandomState = None,
    ) -> GeneralizedMallowsPosterior:
        """Draw from the posterior of center and decays given lists that one model made.

        The prior (Meilă & Chen 2010, equation 7) weighs as ``prior_strength`` lists, ν. At stage j they skip
        r_j items each whatever the center is, which says how large decays are and nothing about the center;
        and, where ``prior_rankings`` is given, as many items as those lists skip on average, which draws the
        center towards them. With N_j lists that reach stage j and skip S_j items there in total, its decay
        has density ∝ exp(-(ν r_j + ν S⁰_j + S_j) θ) ψ(θ)^-(ν + N_j), where S⁰_j is the average over the prior
        lists that reach the stage.

        Up to 8 items all centers are gone through and draws are independent. Beyond that Markov chains move
        the center with decays integrated out, draw the decays given it, and reinsert every item given them.

        Parameters
        ----------
        rankings : Rankings
            Full rankings and top lists of any lengths, unlisted items below.
        prior_strength : float
            ν, positive.
        prior_rate : float or one per stage
            r_j, positive. The decays are the larger the smaller it is.
        prior_rankings : Rankings, optional
            Lists over the same items that stand for what is known about the center.
        n_draws, n_burn_in, n_thin, n_chains : int
            Draws of each chain, rounds before the first, rounds from one to the next, and chains. Where all
            centers are gone through, n_draws × n_chains are drawn and the rest does not matter.
        random_state : int, SeedSequence, Generator or None
            The same seed gives the same draws, whatever the number of threads.

        Returns
        -------
        GeneralizedMallowsPosterior

        Examples
        --------
        >>> from permix import GeneralizedMallows, Rankings
        >>> lists = Rankings.from_orders([["a", "b"], ["a", "c"], ["b", "a"]], items=["a", "b", "c"])
        >>> posterior = GeneralizedMallows.posterior(lists, random_state=1)
        >>> posterior.rank_probabilities.round(2)
        array([[0.71, 0.23, 0.06],
               [0.23, 0.53, 0.23],
               [0.06, 0.23, 0.71]])
        """
        from permix.distributions.generalized.posterior import draw_posterior

        prior, rounds = (prior_strength, prior_rate, prior_rankings), (n_draws, n_burn_in, n_thin, n_chains)
        return draw_posterior(rankings, prior, rounds, random_state)

    @property
    def theta(self) -> Array:
        """Decay of each of the n - 1 stages."""
        return read_only(self._theta)

    def sample(
        self,
        size: int = 1,
        random_state: RandomState = None,
        lengths: int | Sequence[int] | Array | None = None,
    ) -> Rankings:
        """Draw full rankings or top lists independently and exactly, stage by stage.

        Parameters
        ----------
        size : int
            Number of rows.
        lengths : int or one per row, optional
            How many of the best items each row lists; left out, all.
        random_state : int, SeedSequence, Generator or None
            The same seed gives the same rows, whatever the number of threads; the first rows of a larger
            sample are those of a smaller one, and a longer list begins with the shorter one.

        Returns
        -------
        Rankings
        """
        key = stream_key(random_state)
        sizes = list_lengths(lengths, sample_size(size), self.n_items)
        out = np.full((len(sizes), int(sizes.max(initial=0))), -1, dtype=np.int32)
        thresholds, guide = stages.skip_tables(self._theta[: out.shape[1]], self.n_items)

        def draw(first: int, last: int) -> None:
            stages.sample_list_rows(key, first, last, self._order, self._theta, thresholds, guide, sizes, out)

        over_rows(draw, len(out), out.shape[1])
        return Rankings._from_arrays(out, self.items)

    @property
    def n_stages(self) -> int:
        """Number of stages that have something to choose, n - 1."""
        return len(self._theta)

    def entropy(self) -> float:
        """Entropy of full rankings in nats, Σ_j ln ψ_j + θ_j E[s_j], exact."""
        # An infinite decay never skips.
        paid = np.where(self._theta < np.inf, self._theta, 0.0) * self.expected_skips()
        return float((stages.log_psi(self._theta, self._places_left()) + paid).sum())

    def expected_skips(self) -> Array:
        """Mean number of better items that each stage skips, one per stage."""
        return np.asarray(stages.mean_skip(self._theta, self._places_left()))

    def _places_left(self) -> Array:
        return self.n_items - np.arange(self.n_stages)

    def expected_distance(self) -> float:
        """Expected Kendall distance of a full ranking from the center, the sum of all skips."""
        return float(self.expected_skips().sum())

    def pairwise(self) -> Array:
        """Matrix of P(item a before item b), exact, in n³ operations.

        Returns
        -------
        ndarray, shape (items, items)
            Rows and columns by position in ``items``; 0 on the diagonal.

        Examples
        --------
        >>> from permix import GeneralizedMallows
        >>> GeneralizedMallows(["a", "b"], np.log(4)).pairwise().round(6)
        array([[0. , 0.8],
               [0.2, 0. ]])
        """
        against = stages.worse_first(self._theta, self.n_items)
        return self._by_item(against + np.triu(1.0 - against.T, 1))

    def rank_marginals(self) -> Array:
        """Matrix of P(item a has rank r), exact, in n³ operations.

        Returns
        -------
        ndarray, shape (items, items)
            Rows by position in ``items``; column 0 is the best rank. Rows and columns sum to one.
        """
        places = insertion_marginals(stages.skip_probabilities(self._theta, self.n_items))[0]
        return np.ascontiguousarray(places[np.argsort(self._order), ::-1])

    def insertion_log_probabilities(self) -> Array:
        """Log insertion probabilities, as :class:`Mallows` has them, where all decays are equal.

        With decays that differ, a generalized Mallows model is not a repeated-insertion model.
        """
        same = self._as_mallows()
        if same is None:
            raise DataError(
                "a generalized Mallows model whose theta differs between stages is not a repeated-insertion "
                "model: it grows from the top, not by inserting the items of the center"
            )
        return same.insertion_log_probabilities()

    def condition(self, preferences: object) -> ListContinuation | Any:
        """Return this distribution given the top list that one agent began.

        Parameters
        ----------
        preferences : Rankings or Preferences
            One row: the best items in order, the rest below. Where all decays are equal, any preferences,
            as with :class:`Mallows`.

        Returns
        -------
        ListContinuation, with ``sample``, ``log_prob``, ``log_normalizer``, ``pairwise`` and
        ``rank_marginals``, all exact

        Examples
        --------
        >>> from permix import GeneralizedMallows, Rankings
        >>> model = GeneralizedMallows(["a", "b", "c"], [1.0, 0.5])
        >>> given = model.condition(Rankings.from_orders([["b"]], items=["a", "b", "c"]))
        >>> given.rest
        GeneralizedMallows: 2 items, theta 0.5, center a ≻ c
        """
        from permix.distributions.generalized.continuation import ListContinuation

        same = self._as_mallows()
        is_list = isinstance(preferences, Rankings) and preferences.unlisted_below.all()
        return ListContinuation(self, preferences) if is_list or same is None else same.condition(preferences)

    def _described(self) -> dict[str, Any]:
        # JSON has no infinity.
        return {"theta": [value if value < np.inf else "inf" for value in self._theta.tolist()]}

    def _as_mallows(self) -> Mallows | None:
        """Return the Mallows model that this is where all decays are equal."""
        if not (self._theta == self._theta[:1]).all():
            return None
        decay = self._theta[0] if self.n_stages else 0.0
        return Mallows(self.center, np.exp(-decay), self.items)

    def _score_top_lists(self, table: Rankings, out: Array) -> None:
        work = (table.orders, table.lengths, np.argsort(self._order), self._theta, out)
        over_rows(stages.list_log_prob_rows, len(table), table.orders.shape[1], *work)

    def _before(self, first: Array, second: Array) -> Array:
        return np.asarray(self.pairwise()[first, second])

    def _parameters_text(self) -> str:
        theta = self._theta
        if not len(theta):
            return ""
        shown = theta[: (len(theta) if len(theta) <= 8 else 6)]
        if (theta == theta[0]).all():
            shown = theta[:1]
        text = ", ".join(f"{value:.4g}" for value in shown)
        return f"theta {text}{', …' if 1 < len(shown) < len(theta) else ''}, "


def _decays(theta: object, beyond: object, n: int) -> Array:
    """Check decays and fill them up to one for each of the n - 1 stages."""
    try:
        values = np.array(theta, dtype=np.float64) + 0.0  # no negative zero
        rest = float(np.asarray(beyond, dtype=np.float64)) + 0.0
    except (TypeError, ValueError):
        raise DataError(
            f"theta={theta!r} and beyond={beyond!r} must be numbers, 0 or more: for theta one, or one per "
            "stage"
        ) from None
    if values.ndim > 1 or values.size > max(n - 1, 1):
        raise DataError(
            f"theta has shape {values.shape}, but must be one number or at most one for each of the {n - 1} "
            f"stages of {n} items (the last place has nothing to choose)"
        )
    for stage, value in enumerate(np.atleast_1d(values).tolist()):
        if not value >= 0.0:
            where = f" of stage {stage + 1}" if values.ndim else ""
            raise DataError(
                f"theta {value:g}{where} is not 0 (all items that are left are alike) or more, up to "
                "infinity; where a model prefers the worse items, reverse its center"
            )
    if not rest >= 0.0:
        raise DataError(f"beyond={beyond!r} must be 0 or more: the theta of stages that have none")
    filled = np.full(n - 1, float(values) if values.ndim == 0 else rest)
    if values.ndim:
        filled[: len(values)] = values[: n - 1]
    return filled


def list_lengths(lengths: object, size: int, n: int) -> Array:
    """Check how long the rows shall be."""
    if lengths is None:
        return np.full(size, n, dtype=np.int64)
    try:
        asked = np.asarray(lengths)
    except ValueError:  # rows of unlike lengths
        asked = np.empty(1)
    if asked.dtype.kind not in "iu" and asked.size:
        raise DataError(f"lengths={lengths!r} must be whole numbers from 1 to {n}")
    if asked.ndim > 1 or (asked.ndim == 1 and len(asked) != size):
        raise DataError(
            f"lengths has shape {asked.shape}, but must be one number or one for each of the {size} rows"
        )
    out = np.full(size, asked, dtype=np.int64)
    wrong = np.flatnonzero((out < 1) | (out > n))
    if len(wrong) and asked.ndim == 0:
        raise ParameterError("lengths", int(asked), f"from 1 to {n}")
    if len(wrong):
        raise DataError(f"row {wrong[0] + 1} cannot list {out[wrong[0]]} items; lengths are from 1 to {n}")
    return out
