"""Section 5.4 and figure 8 of Lu & Boutilier (2014): predicting pairs that sushi eaters did not state.

A mixture is trained on the first 3500 rankings, its size chosen by the log-likelihood of the next 500. The
last 1000 people lose a share 1 - alpha of the pairs of their ranking. The loss of an open pair is the
probability that the model, given what the person stated and implied, gives to the wrong order. Average loss
per person: the paper has 0.43, 0.35, 0.39 and 0.44 for alpha = 0, 0.25, 0.5 and 0.75. (Sushi data:
T. Kamishima, KDD 2003.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.reproduce.likelihoods import full_log_likelihoods
from benchmarks.reproduce.lu_boutilier_table3 import ALPHAS, by_distance, open_pairs, people_to_predict
from benchmarks.reproduce.report import Outcome, run_from_command_line
from benchmarks.reproduce.sushi import N_TRAIN, remove, sushi
from permix.data.preferences import Preferences
from permix.data.rankings import Rankings
from permix.distributions.conditioning.components import MallowsComponents
from permix.mallows.fit import fit_mallows
from permix.mallows.parameters import MallowsParameters
from permix.mallows.predict import predict_pairwise, sample_completions
from permix.mallows.results import MallowsFit

LOSSES = {0.0: 0.43, 0.25: 0.35, 0.5: 0.39, 0.75: 0.44}
N_VALIDATION = 500
PAPER_COMPONENTS = 6


@dataclass(frozen=True)
class Sizes:
    """Sizes of the experiment; the paper's by default. It does not say how many draws SP made."""

    n_components: tuple[int, ...] = tuple(range(1, 21))
    n_init: int = 10
    n_train: int = N_TRAIN
    n_test: int = 1000
    n_draws: int = 200
    seed: int = 0


QUICK = Sizes(n_components=(1, 6), n_init=3, n_draws=50)


def fits_by_size(sizes: Sizes) -> tuple[dict[int, MallowsFit], dict[int, float]]:
    """Fit every number of components; average log-likelihoods of the validation people."""
    data = sushi()
    train = Preferences.from_rankings(data[: sizes.n_train])
    validation = data[N_TRAIN : N_TRAIN + N_VALIDATION]
    fits, scores = {}, {}
    for k in sizes.n_components:
        settings = MallowsParameters(
            n_components=k, n_init=sizes.n_init, random_state=sizes.seed + k, progress=False
        )
        fits[k] = fit_mallows(train, settings)
        scores[k] = float(full_log_likelihoods(validation, fits[k].components).mean())
    return fits, scores


def losses(before: np.ndarray, rankings: Rankings, unknown: np.ndarray) -> tuple[float, int, np.ndarray]:
    """Average loss per person, people with open pairs, and average loss by distance.

    ``before`` are the predictions P(a before b), agents by items by items; ``unknown`` the open pairs.
    """
    rows = np.arange(len(rankings))[:, None, None]
    orders = rankings.orders
    # At ranks i < j stand items a and b with a preferred; the loss is the probability of b before a.
    wrong = np.where(unknown, before[rows, orders[:, None, :], orders[:, :, None]], 0.0)
    n_open = unknown.sum(axis=(1, 2))
    each = wrong.sum(axis=(1, 2))[n_open > 0] / n_open[n_open > 0]
    with np.errstate(invalid="ignore"):
        return float(each.mean()), len(each), by_distance(wrong) / by_distance(unknown)


def sp_pairwise(
    components: MallowsComponents, stated: Preferences, n_draws: int, rng: np.random.Generator
) -> np.ndarray:
    """P(a before b) as the paper has it: the chain SP with AMP for its step, counted."""
    drawn = sample_completions(components, stated, n_draws, method="sp", step="amp", random_state=rng)
    ranks = np.argsort(drawn.orders, axis=2)
    return np.asarray((ranks[:, :, :, None] < ranks[:, :, None, :]).mean(axis=1))


def run(sizes: Sizes) -> Outcome:
    """Choose K, predict for every alpha."""
    fits, scores = fits_by_size(sizes)
    best = max(scores, key=lambda k: scores[k])
    wanted = {k: fits[k] for k in (PAPER_COMPONENTS, best) if k in fits}
    rows: list[list[Any]] = []
    lines: dict[str, list[float]] = {}
    rankings = people_to_predict(sizes.n_test)
    for k, fit in wanted.items():
        for alpha in ALPHAS:
            rng = np.random.default_rng([sizes.seed, round(100 * alpha)])
            stated = remove(rankings, alpha, rng)
            unknown = open_pairs(rankings, stated)
            sampled = sp_pairwise(fit.components, stated, sizes.n_draws, rng)
            as_paper, _, _ = losses(sampled, rankings, unknown)
            average, people, curve = losses(predict_pairwise(fit.components, stated), rankings, unknown)
            shown = ["" if np.isnan(value) else f"{value:.3f}" for value in curve]
            rows.append([k, alpha, LOSSES[alpha], f"{as_paper:.3f}", f"{average:.3f}", people, *shown])
            if k == next(iter(wanted)):
                lines[str(alpha)] = curve.tolist()
    table = ", ".join(f"{k}: {score:.3f}" for k, score in scores.items())
    return Outcome(
        "Section 5.4, figure 8: average loss of predicted pairs, per person and by distance D in the ranking",
        ["K", "α", "paper", "SP with AMP", "exact", "people", *[f"D={gap}" for gap in range(1, 10)]],
        rows,
        [
            f"Average log-likelihood of the {N_VALIDATION} validation people by K: {table}. "
            f"The best is K = {best}; the paper chose K = {PAPER_COMPONENTS}.",
            "The paper counts draws of the chain SP with AMP for its step, which do not follow the "
            "posterior: the column SP with AMP. Exact sums over all rankings predict better; the columns by "
            "distance are theirs.",
            "People whose pairs are all known after closure have no loss and are left out of the average.",
        ],
        {"lines": lines},
    )


def draw(outcome: Outcome, figure: Any) -> None:
    """Draw the loss by distance."""
    figure.set_size_inches(6, 4.5)
    axis = figure.subplots()
    for alpha, curve in outcome.series["lines"].items():
        axis.plot(range(1, 10), curve, marker=".", label=f"α = {alpha}")
    axis.set_xlabel("distance in the ranking")
    axis.set_ylabel("average loss")
    axis.set_ylim(0, 0.5)
    axis.legend()


if __name__ == "__main__":
    run_from_command_line(__doc__, Sizes(), QUICK, run, draw)
