"""Tables 3 and 4 and figure 13 of Xu, Alvo & Yu (2018): clusters of voters, APA election of 1980.

5738 full ballots over five candidates; DIC by the number of clusters. Under the paper's approximate
normalizer the best of many starts are spikes on single rankings; the exact normalizer is set beside it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import permix
from benchmarks.reproduce.report import Outcome, run_from_command_line, tell
from benchmarks.reproduce.xu_shared import PAPER_PRIOR, model, quiet
from permix.angle import results as angle_results
from permix.angle.ascent import Variational, VariationalPosterior, climb
from permix.angle.components import AngleComponents, AnglePrior
from permix.angle.data import AngleData
from permix.angle.parameters import AngleParameters
from permix.data.rankings import Rankings
from permix.distributions.angle.scores import draw_direction, standard_scores

PAPER_DIC = {1: 54827, 2: 53497, 3: 53281, 4: 53367, 5: 53375}
# Table 4, by cluster.
M = ((0.06, 0.02, 0.78, -0.54, -0.33), (-0.44, 0.19, -0.64, 0.49, 0.39), (0.26, 0.14, -0.75, 0.55, -0.19))
BETA, D = (1067.10, 1062.34, 414.74), (3231.09, 1317.21, 1189.72)
A, B = (4756.33, 9224.97, 1821.73), (3330.45, 1239.41, 1197.80)


@dataclass(frozen=True)
class Sizes:
    """Sizes of the experiment."""

    n_components: tuple[int, ...] = (1, 2, 3, 4, 5)
    n_init: int = 50
    n_draws: int = 1000
    n_burn_in: int = 1000
    n_folds: int = 5
    seed: int = 0


QUICK = Sizes(n_components=(1, 2, 3, 4), n_init=10, n_draws=200, n_burn_in=200, n_folds=2)


def ballots() -> Rankings:
    """Return the full ballots, candidates A to E."""
    data: Rankings = permix.datasets.load_apa(1980, ballots="full", download=False).data
    return data._replaced(items=tuple("ABCDE"))


def densities(components: AngleComponents, data: Rankings) -> np.ndarray:
    """Return ln P of every row."""
    y = np.empty((len(data), data.n_items))
    np.put_along_axis(y, data.orders.astype(np.int64), standard_scores(data.n_items)[None, :], axis=1)
    joint = y @ components.tilts.T + components.offsets
    return np.asarray(np.logaddexp.reduce(joint, axis=1))


def dic_of(q: VariationalPosterior, data: Rankings, normalizer: Any = "vmf", n_draws: int = 400) -> float:
    """Return DIC = 2 D̄ - D(mean) over draws of a variational posterior."""
    rng = np.random.default_rng(0)

    def deviance(weights: np.ndarray, directions: np.ndarray, kappas: np.ndarray) -> float:
        drawn = AngleComponents(data.items, weights, directions, kappas, normalizer)
        return -2.0 * float(data.counts @ densities(drawn, data))

    total = 0.0
    for _ in range(n_draws):
        kappas = rng.gamma(q.shapes, 1.0 / q.rates)
        each = zip(q.directions, q.lengths * kappas, strict=True)
        directions = np.array([draw_direction(rng, direction, kappa) for direction, kappa in each])
        total += deviance(rng.dirichlet(q.counts), directions, kappas)
    return 2.0 * total / n_draws - deviance(q.mean_weights, q.directions, q.mean_concentrations)


def from_table_4(
    data: Rankings, bound: Any
) -> tuple[VariationalPosterior, VariationalPosterior, float, list[float]]:
    """Return table 4, where a climb from it ends, how far one pass moves a cluster size, and the bound."""
    directions = np.array(M)
    directions -= directions.mean(axis=1, keepdims=True)
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    start = VariationalPosterior(
        np.array(A), np.array(B), np.array(BETA), directions, np.array(D), np.zeros(3, dtype=bool)
    )
    settings = AngleParameters(3, inference="vi", normalizer="vmf", bound=bound, **PAPER_PRIOR)
    prior = AnglePrior.of(settings, data.items)
    posterior, table = Variational(start, prior), AngleData(data)
    masses = table.weighed(posterior.tilts, posterior.offsets)[2]
    moved = float(np.abs(masses - np.array(D)).max())
    run = climb(posterior, table, 5000, 1e-10)
    return start, run.point.posterior, moved, run.history


def held_out(data: Rankings, k: int, n_folds: int, seed: int, **settings: Any) -> float:
    """Return the mean held-out log-likelihood per ballot, judged by the exact normalizer."""
    everyone = data.expand()
    fold = np.random.default_rng(seed).permutation(len(everyone)) % n_folds
    total = 0.0
    for number in range(n_folds):
        with quiet():
            fitted = model(n_components=k, seed=seed, **settings).fit(everyone[fold != number])
        exact = AngleComponents(
            data.items, fitted.weights_, fitted.directions_, fitted.concentrations_, "exact"
        )
        total += float(densities(exact, everyone[fold == number]).sum())
    return total / len(everyone)


def described(weights: Any, kappas: Any, directions: Any) -> str:
    """Return clusters in a line each."""
    order = np.argsort(-np.asarray(weights))
    return "; ".join(
        f"{100 * weights[g]:.1f} % κ {kappas[g]:.2f} θ ({' '.join(f'{v:+.2f}' for v in directions[g])})"
        for g in order
    )


def run(sizes: Sizes) -> Outcome:
    """Fit every number of clusters under both normalizers."""
    data = ballots()
    rows: list[list[Any]] = []
    remarks: list[str] = []
    n = data.n_agents
    for k in sizes.n_components:
        tell(f"{k} groups")
        with quiet():
            vi = model("vi", k, n_init=sizes.n_init, seed=sizes.seed, max_iter=3000).fit(data)
            em = model("em", k, n_init=sizes.n_init, seed=sizes.seed, normalizer="exact", max_iter=3000)
            em.fit(data)
            rough = model("em", k, n_init=sizes.n_init, seed=sizes.seed, max_iter=3000).fit(data)
            sir = model(
                "sir",
                k,
                normalizer="exact",
                n_draws=sizes.n_draws,
                n_burn_in=sizes.n_burn_in,
                seed=sizes.seed,
                n_init=sizes.n_init,
            ).fit(data)
            criteria = sir.criteria(data)
            # The estimator refuses to compare by the approximate normalizer, as the paper does.
            approximate = angle_results.criteria(vi._fit, data)
        rows.append(
            [
                k,
                PAPER_DIC.get(k, ""),
                f"{approximate.dic:,.0f}",
                f"{vi.concentrations_.max():.1f}{' (held back)' if vi._fit.guarded.any() else ''}",
                f"{criteria.dic:,.0f}",
                f"{criteria.waic:,.0f}",
                f"{em.aic(data):,.0f}",
                f"{em.bic(data):,.0f}",
                f"{em.concentrations_.max():.1f}",
                f"{held_out(data, k, sizes.n_folds, sizes.seed, inference='em'):.4f}",
                f"{held_out(data, k, sizes.n_folds, sizes.seed, inference='em', normalizer='exact'):.4f}",
            ]
        )
        true = AngleComponents(data.items, rough.weights_, rough.directions_, rough.concentrations_, "exact")
        remarks.append(
            f"{k} groups, maximum likelihood: {float(rough.log_likelihood_):,.1f} as the approximation "
            f"has it, truly "
            f"{float(data.counts @ densities(true, data)):,.1f}; with the exact normalizer "
            f"{float(em.log_likelihood_):,.1f}."
        )
        if k == 3:
            remarks.append(
                f"vi, best of {sizes.n_init}: {described(vi.weights_, vi.concentrations_, vi.directions_)}."
            )
            remarks.append(f"exact, em: {described(em.weights_, em.concentrations_, em.directions_)}.")
            remarks.append(f"exact, sir: {described(sir.weights_, sir.concentrations_, sir.directions_)}.")
            remarks.append(f"Evidence bound of that best: {float(vi.elbo_):,.1f}.")
    for bound in ("published", "tight"):
        start, q, moved, history = from_table_4(data, bound)
        remarks.append(
            f"From table 4's parameters, {bound} bound: one pass moves a group by {moved:.1f} people at "
            "most; the climb ends at "
            f"{described(q.mean_weights, q.mean_concentrations, q.directions)}; DIC "
            f"{dic_of(q, data):,.0f}; a "
            f"{', '.join(f'{v:,.0f}' for v in q.shapes)}; b {', '.join(f'{v:,.0f}' for v in q.rates)}; β "
            f"{', '.join(f'{v:,.0f}' for v in q.lengths)}; evidence bound {history[0]:,.1f} at table 4, "
            f"{history[1]:,.1f}, {history[10]:,.1f} and "
            f"{history[100]:,.1f} after 1, 10 and 100 passes, {history[-1]:,.1f} after {len(history) - 1}."
        )
    remarks.insert(
        0,
        f"Table 4 itself: {described(start.mean_weights, start.mean_concentrations, start.directions)}; "
        f"DIC of "
        f"its posterior {dic_of(start, data):,.0f} with the approximate normalizer, "
        f"{dic_of(start, data, 'exact'):,.0f} "
        "with the exact one.",
    )
    remarks.append(
        f"N = {n}; held-out: {sizes.n_folds} folds, nats per ballot, judged by the exact normalizer."
    )
    return Outcome(
        "Table 3: DIC by the number of groups, APA 1980",
        [
            "G",
            "paper",
            "vi, vMF: DIC",
            "largest κ",
            "exact: DIC",
            "WAIC",
            "AIC",
            "BIC",
            "largest κ",
            "held out, vMF",
            "exact",
        ],
        rows,
        remarks,
        {"table 4": [list(m) for m in M], "near it": q.directions.tolist()},
    )


def draw(outcome: Outcome, figure: Any) -> None:
    """Draw figure 13: θ of the three clusters, the paper's and those of the optimum near it."""
    figure.set_size_inches(9, 3.6)
    for axis, (name, directions) in zip(
        figure.subplots(1, 2, sharey=True), outcome.series.items(), strict=True
    ):
        for g, direction in enumerate(directions):
            axis.plot(list("ABCDE"), direction, marker="o", label=f"group {g + 1}")
        axis.set(title=name, ylabel="θ (small = preferred)")
        axis.legend(fontsize=7)


if __name__ == "__main__":
    run_from_command_line(__doc__, Sizes(), QUICK, run, draw)
