"""Figure 4 of Wang, Laskey, Domeniconi & Jordan (2011): log likelihoods of MPCC chains and of their ensemble.

Five MPCC chains on Jester, 1000 iterations, continued for another 1000; and one MPCCE chain of 1000
iterations on the five co-clusterings at iteration 1000. Log likelihood of the ratings given the blocks,
parameters integrated out. The paper's potential scale reduction factor of the five chains is 3.0043.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.reproduce import wang_shared as shared
from benchmarks.reproduce.report import Outcome, run_from_command_line, tell


@dataclass(frozen=True)
class Sizes:
    """Sizes of the experiment; the paper's by default."""

    n_users: int = 1000
    n_bases: int = 5
    n_iterations: int = 1000
    jester_step: float = 1.0
    label_pseudo_count: float = 1.0
    seed: int = 0


QUICK = Sizes(n_users=200, n_iterations=50)
PAPER_R_HAT = 3.0043


def reduction_factor(chains: np.ndarray) -> float:
    """Potential scale reduction of Gelman, Carlin, Stern & Rubin (2003), chains along axis 0."""
    n = chains.shape[1]
    within = chains.var(axis=1, ddof=1).mean()
    between = n * chains.mean(axis=1).var(ddof=1)
    return float(np.sqrt(((n - 1) / n * within + between / n) / within)) if within > 0 else np.inf


def rank_r_hat(chains: np.ndarray) -> float:
    """R-hat of today, by ranks of split chains."""
    from arviz_stats.base import array_stats

    return float(array_stats.rhat(chains, chain_axis=0, draw_axis=1))


def run(sizes: Sizes) -> Outcome:
    """Run the chains and the ensemble."""
    problem = shared.jester(sizes.n_users, sizes.jester_step, sizes.seed)
    n = sizes.n_iterations
    tell(f"{sizes.n_bases} MPCC chains")
    fit = shared.sampled(
        problem.train,
        prior="mondrian",
        n_burn_in=0,
        n_draws=2 * n,
        n_chains=sizes.n_bases,
        n_jobs=2,
        random_state=sizes.seed,
        **shared.own_settings("mondrian"),
    )
    traces = fit.draws.arrays["log_likelihood"]
    n_draws = traces.shape[1]
    bases = [fit.block_draw(chain * n_draws + n - 1) for chain in range(sizes.n_bases)]
    tell("MPCCE")
    ensemble = shared.consensus(
        fit,
        bases,
        sizes.label_pseudo_count,
        label_cells="all",
        n_burn_in=0,
        n_draws=n,
        random_state=sizes.seed,
    )
    consensus = np.array([shared.log_likelihood(ensemble, draw) for draw in shared.all_draws(ensemble)])
    first, second = traces[:, :n], traces[:, n:]
    late = slice(n // 2, None)
    rows: list[list[Any]] = [
        [f"MPCC {chain + 1}", f"{first[chain, -1]:.0f}", f"{second[chain, -1]:.0f}", bases[chain].n_blocks]
        for chain in range(sizes.n_bases)
    ]
    rows.append(["MPCCE", "", f"{consensus[-1]:.0f}", shared.last_draw(ensemble).n_blocks])
    factors = {
        "all of the first half": reduction_factor(first),
        "both halves": reduction_factor(traces),
        "last half of the second": reduction_factor(second[:, late]),
    }
    return Outcome(
        f"Figure 4: log likelihood on Jester, {problem.train.n_rows} users, {n} iterations and {n} more",
        ["chain", f"at {n}", f"at {2 * n}", f"blocks (MPCC at {n}, MPCCE at the end)"],
        rows,
        [
            f"Scale reduction factor of the {sizes.n_bases} chains: "
            + ", ".join(f"{name} {value:.3f}" for name, value in factors.items())
            + f"; by ranks of the last half {rank_r_hat(second[:, late]):.3f} (paper: {PAPER_R_HAT} of the "
            "values in its figure).",
            f"MPCCE at the end is above {int((consensus[-1] > second[:, -1]).sum())} of the {sizes.n_bases} "
            f"MPCC chains at the end, and above {int((consensus[-1] > first[:, -1]).sum())} of them at "
            f"iteration {n}, where it starts (paper: above all).",
            "The paper gives a plot without numbers besides the factor. Choices as in wang_table2_3: ratings "
            f"rounded to multiples of {sizes.jester_step:g}, 75% of the cells.",
        ],
        {"MPCC": traces.tolist(), "MPCCE": consensus.tolist(), "R-hat": factors},
    )


def draw(outcome: Outcome, figure: Any) -> None:
    """Draw the traces."""
    figure.set_size_inches(8, 4.5)
    axis = figure.subplots()
    traces = np.array(outcome.series["MPCC"])
    consensus = np.array(outcome.series["MPCCE"])
    n = len(consensus)
    for chain, trace in enumerate(traces):
        axis.plot(np.arange(1, len(trace) + 1), trace, lw=0.8, label=f"MPCC {chain + 1}")
    axis.plot(np.arange(n + 1, 2 * n + 1), consensus, lw=1.4, color="black", label="MPCCE")
    axis.axvline(n, color="gray", lw=0.6, ls=":")
    late = np.concatenate([traces[:, n // 10 :].ravel(), consensus[n // 10 :]])
    margin = 0.05 * np.ptp(late)
    axis.set_ylim(late.min() - margin, late.max() + margin)
    axis.set_xlabel("iteration")
    axis.set_ylabel("log likelihood of the ratings")
    axis.legend(fontsize=8, ncols=2)


if __name__ == "__main__":
    run_from_command_line(__doc__, Sizes(), QUICK, run, draw)
