"""Tables 2 and 3 of Wang, Laskey, Domeniconi & Jordan (2011): perplexities of seven co-clusterings.

LDCC, DPCC, averaged DPCC, DPCCE, MPCC, averaged MPCC and MPCCE on a synthetic Mondrian matrix of 250 × 250,
on MovieLens 100k and on 1000 users × 100 jokes of Jester; perplexity of training cells (table 2) and of 25%
held out (table 3, real data). Five base co-clusterings an ensemble, five repeats.
"""

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from benchmarks.reproduce import wang_shared as shared
from benchmarks.reproduce.report import Outcome, run_from_command_line, tell

MODELS = ("LDCC", "DPCC", "averaged DPCC", "DPCCE", "MPCC", "averaged MPCC", "MPCCE")
# (data, part): values in the order of MODELS, table 2 and table 3.
PAPER = {
    ("synthetic", "train"): (4.782, 3.723, 3.687, 3.573, 1.626, 1.486, 1.255),
    ("MovieLens", "train"): (3.045, 2.797, 2.312, 2.130, 2.473, 2.386, 2.124),
    ("Jester", "train"): (18.896, 15.984, 14.223, 13.677, 12.035, 10.968, 9.785),
    ("MovieLens", "test"): (3.247, 2.908, 2.838, 2.707, 2.793, 2.738, 2.626),
    ("Jester", "test"): (23.743, 20.174, 19.165, 18.092, 13.781, 13.433, 12.036),
}


@dataclass(frozen=True)
class Sizes:
    """Sizes of the experiment; the paper's by default."""

    data_sets: tuple[str, ...] = ("synthetic", "MovieLens", "Jester")
    n_repeats: int = 5
    n_bases: int = 5
    n_iterations: int = 3000  # DPCC and DPCCE
    n_mondrian_iterations: int = 1000  # MPCC and MPCCE
    n_mixed_iterations: int = 1000  # LDCC; the paper does not say
    n_kept: int = 50  # draws of a chain that a posterior average takes
    n_synthetic: int = 250
    synthetic_budget: float = 3.0
    n_users: int = 1000
    jester_step: float = 1.0
    pseudo_count: float = 1.0
    label_pseudo_count: float = 1.0
    seed: int = 0


QUICK = Sizes(
    n_repeats=2,
    n_bases=3,
    n_iterations=60,
    n_mondrian_iterations=40,
    n_mixed_iterations=60,
    n_kept=10,
    n_synthetic=100,
    n_users=300,
)


class Found(defaultdict[tuple[str, str], list[float]]):
    """Perplexities of all repeats by (way, part), and seconds by way."""

    def __init__(self) -> None:
        super().__init__(list)
        self.seconds: dict[str, list[float]] = defaultdict(list)
        self.blocks: dict[str, list[float]] = defaultdict(list)

    def row(self, way: str, part: str) -> str:
        """Mean, and standard deviation of the mean as the paper has it."""
        values = np.array(self.get((way, part), []))
        if values.size == 0:
            return ""
        spread = f" ({values.std(ddof=1) / np.sqrt(values.size):.3f})" if values.size > 1 else ""
        return f"{values.mean():.3f}{spread}"


def problems(sizes: Sizes) -> list[shared.Problem]:
    """Load and split the data."""
    made = {
        "synthetic": lambda: shared.synthetic(sizes.n_synthetic, sizes.synthetic_budget, sizes.seed),
        "MovieLens": lambda: shared.movielens(sizes.n_users, sizes.seed),
        "Jester": lambda: shared.jester(sizes.n_users, sizes.jester_step, sizes.seed),
    }
    # Real data first: without them the script says so at once.
    return [made[name]() for name in sorted(sizes.data_sets)]


def mixed(problem: shared.Problem, sizes: Sizes, seed: int, repeat: int, found: Found) -> None:
    """LDCC as published, and with one cluster for each row and column."""
    n_rows, n_columns = problem.n_clusters
    if problem.test is None:  # section 6.2: 5 to 10 clusters on the synthetic data
        n_rows = n_columns = int(np.linspace(5, 10, max(2, sizes.n_repeats)).round()[repeat])
    for way, membership in (("LDCC", "mixed"), ("LDCC, hard", "hard")):
        start = time.perf_counter()
        fit = shared.sampled(
            problem.train,
            prior="dirichlet",
            membership=membership,
            n_row_clusters=n_rows,
            n_column_clusters=n_columns,
            pseudo_count=sizes.pseudo_count,
            n_chains=1,
            random_state=seed,
            **shared.length(sizes.n_mixed_iterations, sizes.n_kept),
        )
        found.seconds[way].append((time.perf_counter() - start) / sizes.n_mixed_iterations)
        predictive = fit.predictive
        for name, draws in ((way, predictive.draws[-1:]), (f"{way}, over draws", predictive.draws)):
            for part, cells in problem.parts.items():
                codes = fit.family.encode(cells.values)
                scores = type(predictive)(fit.matrix, draws).log_probability(cells.rows, cells.columns, codes)
                found[name, part].append(shared.perplexity(scores))


def bases_and_ensemble(
    problem: shared.Problem, prior: shared.Prior, sizes: Sizes, seed: int, found: Found
) -> None:
    """DPCC or MPCC, their averages, and their consensus."""
    name = "MPCC" if prior == "mondrian" else "DPCC"
    n_iterations = sizes.n_mondrian_iterations if prior == "mondrian" else sizes.n_iterations
    lengths = shared.length(n_iterations, sizes.n_kept)
    start = time.perf_counter()
    fit = shared.sampled(
        problem.train,
        prior=prior,
        pseudo_count=sizes.pseudo_count,
        n_chains=sizes.n_bases,
        random_state=seed,
        n_jobs=2,
        **shared.own_settings(prior),
        **lengths,
    )
    found.seconds[name].append((time.perf_counter() - start) / sizes.n_bases / n_iterations)
    bases = [shared.last_draw(fit, chain) for chain in range(sizes.n_bases)]
    found.blocks[name].append(float(np.mean([draw.n_blocks for draw in bases])))
    # As published, and with the labels of filled cells alone.
    ways = {f"{name}E": {}}
    if prior == "mondrian":
        ways = {f"{name}E": {"label_cells": "all"}, f"{name}E, filled": {"label_cells": "filled"}}
    ensembles = {}
    for way, more in ways.items():
        start = time.perf_counter()
        ensembles[way] = shared.consensus(
            fit,
            bases,
            sizes.label_pseudo_count,
            pseudo_count=sizes.pseudo_count,
            random_state=seed,
            **lengths,
            **more,
        )
        found.seconds[way].append((time.perf_counter() - start) / n_iterations)
        found.blocks[way].append(float(shared.last_draw(ensembles[way]).n_blocks))
    for part, cells in problem.parts.items():
        scores = np.array([shared.log_p(fit, [draw], cells) for draw in bases])
        found[name, part].append(float(np.mean([shared.perplexity(row) for row in scores])))
        over_draws = [
            shared.perplexity(shared.log_p(fit, shared.all_draws(fit, chain), cells))
            for chain in range(sizes.n_bases)
        ]
        found[f"{name}, over draws", part].append(float(np.mean(over_draws)))
        found[f"averaged {name}", part].append(shared.averaged(scores, "matrix"))
        found[f"averaged {name}, cells", part].append(shared.averaged(scores, "cells"))
        found[f"averaged {name}, log", part].append(shared.averaged(scores, "log"))
        for way, ensemble in ensembles.items():
            last, draws = [shared.last_draw(ensemble)], shared.all_draws(ensemble)
            found[way, part].append(shared.perplexity(shared.log_p(ensemble, last, cells)))
            found[f"{way}, over draws", part].append(shared.perplexity(shared.log_p(ensemble, draws, cells)))


def compile_all(sizes: Sizes) -> None:
    """Run everything once on a small matrix, so that no time is spent on compiling later."""
    short = replace(sizes, n_bases=2, n_iterations=4, n_mondrian_iterations=4, n_mixed_iterations=4, n_kept=2)
    small = shared.synthetic(12, sizes.synthetic_budget, 1)
    mixed(small, short, 0, 0, Found())
    bases_and_ensemble(small, "dp", short, 0, Found())
    bases_and_ensemble(small, "mondrian", short, 0, Found())


MORE = {
    "LDCC": ("over draws", "hard", "hard, over draws"),
    "averaged DPCC": ("cells", "log"),
    "averaged MPCC": ("cells", "log"),
    "MPCCE": ("over draws", "filled", "filled, over draws"),
}
WAYS = tuple(
    way
    for model in MODELS
    for way in (model, *(f"{model}, {more}" for more in MORE.get(model, ("over draws",))))
)


def run(sizes: Sizes) -> Outcome:
    """Fit everything to everything."""
    loaded = problems(sizes)
    compile_all(sizes)
    found: dict[str, Found] = {}
    for problem in loaded:
        found[problem.name] = Found()
        for repeat in range(sizes.n_repeats):
            seed = sizes.seed + repeat
            tell(f"{problem.name}, repeat {repeat + 1}: LDCC")
            mixed(problem, sizes, seed, repeat, found[problem.name])
            for prior, name in (("dp", "DPCC"), ("mondrian", "MPCC")):
                tell(f"{problem.name}, repeat {repeat + 1}: {name}")
                bases_and_ensemble(problem, prior, sizes, seed, found[problem.name])  # type: ignore[arg-type]
    cases = [case for case in PAPER if case[0] in found]
    rows: list[list[Any]] = []
    for way in WAYS:
        row: list[Any] = [way]
        for name, part in cases:
            printed = f"{PAPER[name, part][MODELS.index(way)]:.3f}" if way in MODELS else ""
            row += [printed, found[name].row(way, part)]
        rows.append(row)
    columns = ["model"]
    for name, part in cases:
        columns += [f"{name} {part}: paper", "ours"]
    shapes = [
        f"{problem.name}: {' × '.join(map(str, problem.train.shape))}, {problem.train.n_cells:,} for training"
        for problem in loaded
    ]
    return Outcome(
        "Tables 2 and 3: perplexity, means over "
        f"{sizes.n_repeats} repeats (standard deviation of the mean in brackets)",
        columns,
        rows,
        [
            f"Cells: {'; '.join(shapes)}.",
            "'over draws' averages the probability of a cell over draws of one chain; the other rows take "
            "the last iteration alone, as the paper seems to. Block probabilities are posterior means with "
            f"pseudo-count {sizes.pseudo_count:g} for every level, from the training cells.",
            "MPCCE is drawn from the labels of all cells, as published; '..., filled' from those of the "
            "cells that have a value.",
            "'averaged' takes the mean likelihood of the whole matrix, which is what 'the average of the "
            "five likelihood results' says; '..., cells' the mean probability of every cell; '..., log' the "
            "mean log likelihood.",
            f"Left open by the paper and chosen here: β = {sizes.pseudo_count:g} for every level; "
            f"{sizes.label_pseudo_count:g} for the labels of a base together in DPCCE (equation 4.7, "
            "corrected) and for each of them in MPCCE (equation 5.12); budget "
            f"{sizes.synthetic_budget:g} of the synthetic Mondrian; Jester users drawn from those who rated "
            f"all 100 jokes, ratings rounded to multiples of {sizes.jester_step:g}; one split for all "
            f"repeats; {sizes.n_mixed_iterations} iterations of LDCC.",
            f"DPCC and DPCCE: {sizes.n_iterations} iterations, MPCC and MPCCE: {sizes.n_mondrian_iterations} "
            "(paper: 3000 and 1000).",
            *(_cost(name, entry) for name, entry in found.items()),
        ],
        {
            name: dict(zip(map(", ".join, entry), entry.values(), strict=True))
            for name, entry in found.items()
        },
    )


def _cost(name: str, entry: Found) -> str:
    parts = []
    for way, seconds in entry.seconds.items():
        blocks = f", {np.mean(entry.blocks[way]):.0f} blocks" if way in entry.blocks else ""
        parts.append(f"{way} {1000 * np.mean(seconds):.0f} s{blocks}")
    return f"{name}, seconds for 1000 iterations of one chain: {'; '.join(parts)}."


if __name__ == "__main__":
    run_from_command_line(__doc__, Sizes(), QUICK, run)
