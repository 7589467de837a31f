"""Figure 6 of Lu & Boutilier (2014): sushi, validation log-likelihood by number of components and alpha.

3500 people train, 1500 validate (full rankings). Training people reveal each pair of their ranking with
probability alpha. Best of ten EM runs for each K = 1..20. The paper shows a plot only: average validation
log-likelihoods on an axis from -14.4 to -13.6. (Sushi data: T. Kamishima, KDD 2003.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.reproduce.likelihoods import full_log_likelihoods
from benchmarks.reproduce.report import Outcome, run_from_command_line, tell
from benchmarks.reproduce.sushi import N_TRAIN, reveal, sushi
from permix.data.preferences import Preferences
from permix.mallows.fit import fit_mallows
from permix.mallows.parameters import MallowsParameters


@dataclass(frozen=True)
class Sizes:
    """Sizes of the experiment; the paper's by default."""

    alphas: tuple[float, ...] = (1.0, 0.5, 0.4, 0.3, 0.2)
    n_components: tuple[int, ...] = tuple(range(1, 21))
    n_init: int = 10
    n_train: int = N_TRAIN
    seed: int = 0


QUICK = Sizes(alphas=(1.0, 0.3), n_components=(1, 2, 6), n_init=2)


def run(sizes: Sizes) -> Outcome:
    """Fit every alpha and K."""
    data = sushi()
    train, validation = data[: sizes.n_train], data[N_TRAIN:]
    rng = np.random.default_rng(sizes.seed)
    rows: list[list[Any]] = []
    series: dict[str, dict[str, list[float]]] = {}
    for alpha in sizes.alphas:
        stated = Preferences.from_rankings(train) if alpha == 1.0 else reveal(train, alpha, rng)
        line: dict[str, list[float]] = {"train": [], "validation": []}
        for k in sizes.n_components:
            settings = MallowsParameters(
                n_components=k, n_init=sizes.n_init, random_state=sizes.seed + k, progress=False
            )
            fit = fit_mallows(stated, settings)
            line["train"].append(float(full_log_likelihoods(train, fit.components).mean()))
            line["validation"].append(float(full_log_likelihoods(validation, fit.components).mean()))
            tell(f"α = {alpha}, K = {k}: {line['validation'][-1]:.3f}")
        series[str(alpha)] = line
        best = int(np.argmax(line["validation"]))
        rows += [
            [alpha, k, "-14.4 to -13.6", f"{here:.3f}", f"{there:.3f}", "best" if place == best else ""]
            for place, (k, here, there) in enumerate(
                zip(sizes.n_components, line["validation"], line["train"], strict=True)
            )
        ]
    return Outcome(
        "Figure 6: sushi, average log-likelihood of full rankings",
        ["α", "K", "paper's axis", "validation", "training", ""],
        rows,
        [
            "The paper does not say which people validate; here the last 1500, since section 5.4 trains "
            "on the first 3500.",
            "Training values are those of the full rankings, whatever alpha was.",
        ],
        {"n_components": list(sizes.n_components), "lines": series},
    )


def draw(outcome: Outcome, figure: Any) -> None:
    """Draw the paper's plot."""
    figure.set_size_inches(6, 4.5)
    axis = figure.subplots()
    for alpha, line in outcome.series["lines"].items():
        axis.plot(outcome.series["n_components"], line["validation"], marker=".", label=f"α = {alpha}")
    axis.set_xlabel("groups")
    axis.xaxis.get_major_locator().set_params(integer=True)
    axis.set_ylabel("average validation log-likelihood")
    axis.legend()


if __name__ == "__main__":
    run_from_command_line(__doc__, Sizes(), QUICK, run, draw)
