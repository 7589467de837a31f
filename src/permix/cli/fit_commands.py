"""The commands ``permix fit ...`` and their options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from permix.cli.options import (
    AgentColumn,
    Assignments,
    Bound,
    BurnIn,
    Categories,
    CenterSearch,
    Chains,
    CountColumn,
    Criterion,
    Draws,
    FamilyName,
    Folds,
    Force,
    Header,
    Ignore,
    Inference,
    Jobs,
    Json,
    KeepChains,
    Layout,
    LayoutOption,
    ModelOutput,
    Normalizer,
    OnCycleOption,
    Picture,
    PriorName,
    Quiet,
    Sampler,
    Seed,
    Select,
    SelectRule,
    Thin,
    UnlistedOption,
    Votes,
)

fit_app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="Fit a model and write it to a file.",
    pretty_exceptions_enable=False,
)


@fit_app.command(
    "dp-mixture",
    epilog="Examples: `permix fit dp-mixture points.csv -o points.permix`, "
    "`permix fit dp-mixture survey.csv --family categorical --id person -o survey.permix`",
)
def fit_dp_mixture(
    data: Annotated[
        Path, typer.Argument(metavar="DATA", help="CSV or TSV (plain or .gz), .npy, or scipy sparse .npz.")
    ],
    output: ModelOutput,
    family: Annotated[FamilyName, typer.Option(help="What a cluster is made of.")] = FamilyName.GAUSSIAN_NIW,
    noise_scale: Annotated[
        float | None, typer.Option(help="gaussian: standard deviation within a cluster [default: 1].")
    ] = None,
    prior_mean: Annotated[
        float | None, typer.Option(help="gaussian: where centres are expected [default: 0].")
    ] = None,
    prior_scale: Annotated[
        float | None, typer.Option(help="gaussian: standard deviation of cluster centres [default: 10].")
    ] = None,
    pseudo_count: Annotated[
        float | None, typer.Option(help="multinomial, categorical: Dirichlet parameter [default: 1].")
    ] = None,
    prior: Annotated[
        PriorName,
        typer.Option(
            help="Prior over partitions: a mixture of finite mixtures (mfm), Dirichlet process, Pitman–Yor "
            "process, or a given number of components."
        ),
    ] = PriorName.MFM,
    rate: Annotated[
        float | None,
        typer.Option(help="mfm: mean of the number of components beyond the first [default: 1]."),
    ] = None,
    concentration: Annotated[
        float | None,
        typer.Option(help="Concentration of dp and pitman-yor; default: learned (dp), 1 (pitman-yor)."),
    ] = None,
    discount: Annotated[
        float | None, typer.Option(help="pitman-yor: discount in [0, 1) [default: 0.25].")
    ] = None,
    components: Annotated[
        int | None, typer.Option("--components", "-k", min=1, help="finite: number of components.")
    ] = None,
    moves: Annotated[
        str,
        typer.Option(
            metavar="MOVES",
            help="What an iteration does: auto, or names joined by commas out of gibbs, split-merge, "
            "permutation, concentration.",
        ),
    ] = "auto",
    burn_in_moves: Annotated[
        str,
        typer.Option(
            metavar="MOVES",
            help="The same during burn-in, where projection may be named too; auto climbs along random "
            "projections first.",
        ),
    ] = "auto",
    init: Annotated[
        str,
        typer.Option(
            metavar="START",
            help="Where chains start: sequential, one-cluster, both (in turn), random, or a number of "
            "clusters.",
        ),
    ] = "both",
    draws: Draws = 1000,
    burn_in: BurnIn = 500,
    thin: Thin = 1,
    chains: Chains = 2,
    seed: Seed = 0,
    jobs: Jobs = None,
    id_column: Annotated[
        str | None, typer.Option("--id", help="Column that names the rows and is not data.")
    ] = None,
    ignore: Ignore = None,
    header: Header = None,
    labels: Annotated[
        Path | None, typer.Option(help="Also write each row's cluster and how sure that is to this CSV file.")
    ] = None,
    picture: Picture = None,
    keep_chains: KeepChains = False,
    force: Force = False,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Find clusters, without being told how many, in a table of numbers, counts or categories.

    While it runs, the chains are kept in the folder OUTPUT.chains: killed at any moment, the same command
    goes on.
    """
    from permix.cli.fit import FitOptions, Targets, run_fit

    options = FitOptions(
        family=family,
        noise_scale=noise_scale,
        prior_mean=prior_mean,
        prior_scale=prior_scale,
        pseudo_count=pseudo_count,
        prior=prior,
        rate=rate,
        concentration=concentration,
        discount=discount,
        components=components,
        moves=moves,
        burn_in_moves=burn_in_moves,
        init=init,
        draws=draws,
        burn_in=burn_in,
        thin=thin,
        chains=chains,
        seed=seed,
        jobs=jobs,
    )
    targets = Targets(output, labels, picture, keep_chains, force)
    run_fit(data, targets, options, id_column, ignore or [], header, quiet, json)


@fit_app.command(
    "mallows",
    epilog="Examples: `permix fit mallows election.soi -k 3 -o election.permix`, "
    "`permix fit mallows ratings.csv --layout ratings --select 1-10 -o tastes.permix --picture tastes.png`",
)
def fit_mallows(
    file: Votes,
    output: ModelOutput,
    components: Annotated[
        int | None, typer.Option("--components", "-k", min=1, help="Number of components, kinds of agents.")
    ] = None,
    select: Select = None,
    rule: SelectRule = None,
    folds: Folds = None,
    restarts: Annotated[int, typer.Option(help="Starts of which the best is kept.", min=1)] = 10,
    max_iter: Annotated[int, typer.Option(help="The most iterations of one start.", min=1)] = 200,
    tol: Annotated[
        float, typer.Option(help="Stop when the log-likelihood of an agent gains less than this.", min=0.0)
    ] = 1e-6,
    particles: Annotated[
        int,
        typer.Option(help="Rankings drawn for an agent and component where no exact sum is known.", min=2),
    ] = 8,
    center_search: Annotated[
        CenterSearch,
        typer.Option(help="Central rankings by local search, or exact: proven best where that is possible."),
    ] = CenterSearch.LOCAL,
    seed: Seed = 0,
    jobs: Jobs = None,
    layout: LayoutOption = Layout.AUTO,
    unlisted: UnlistedOption = None,
    count_column: CountColumn = None,
    agent_column: AgentColumn = None,
    on_cycle: OnCycleOption = None,
    header: Header = None,
    ignore: Ignore = None,
    categories: Categories = None,
    labels: Annotated[
        Path | None,
        typer.Option(help="Also write each agent's component and its probability to this CSV file."),
    ] = None,
    picture: Picture = None,
    force: Force = False,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Find kinds of agents in rankings, ratings or comparisons: what each kind prefers, and how united it is.

    A mixture of Mallows models, fitted by (Monte Carlo) EM. Interrupted, it keeps the best so far.
    """
    from permix.cli.inspect import ReadOptions
    from permix.cli.rank_models import HowMany, RankTargets, run_fit_mallows

    run_fit_mallows(
        ReadOptions(file, layout, unlisted, count_column, agent_column, on_cycle, header, ignore, categories),
        RankTargets(output, labels, picture, force),
        HowMany(components, select, rule, folds),
        {
            "n_restarts": restarts,
            "max_iter": max_iter,
            "tol": tol,
            "n_particles": particles,
            "center_search": str(center_search),
            "random_state": seed,
            "n_jobs": jobs,
        },
        quiet,
        json,
    )


@fit_app.command(
    "dp-mallows",
    epilog="Examples: `permix fit dp-mallows election.soi -o election.permix`, "
    "`permix fit dp-mallows ballots.csv --concentration 'gamma(1,1)' -o kinds.permix --picture kinds.png`",
)
def fit_dp_mallows(
    file: Votes,
    output: ModelOutput,
    sampler: Annotated[
        Sampler,
        typer.Option(help="exact draws from the posterior; the others are the published approximations."),
    ] = Sampler.EXACT,
    concentration: Annotated[
        str,
        typer.Option(
            metavar="NUMBER",
            help="Concentration of the Dirichlet process: the larger, the more kinds; "
            "gamma(SHAPE,RATE) learns it.",
        ),
    ] = "1",
    discount: Annotated[
        float, typer.Option(help="Discount of a Pitman–Yor process; 0 is the Dirichlet process.", min=0.0)
    ] = 0.0,
    prior_strength: Annotated[
        float, typer.Option(help="How many lists the prior of the decays is worth.")
    ] = 1.0,
    prior_rate: Annotated[
        str,
        typer.Option(
            metavar="NUMBER", help="Mean number of items skipped in each of these; or one per place: 1,1,0.5."
        ),
    ] = "1",
    assignments: Annotated[
        Assignments,
        typer.Option(
            help="How agents move between clusters, with the same posterior: one by one (collapsed), all at "
            "once in threads (parallel), or by the size of the data (auto)."
        ),
    ] = Assignments.AUTO,
    split_merge: Annotated[
        bool, typer.Option("--split-merge/--no-split-merge", help="Also divide and join whole clusters.")
    ] = True,
    permutation: Annotated[
        bool,
        typer.Option("--permutation/--no-permutation", help="Also rearrange a few clusters at once."),
    ] = False,
    initial_clusters: Annotated[
        int | None,
        typer.Option(help="Clusters that chains start from; default: agents are seated one by one.", min=1),
    ] = None,
    draws: Draws = 1000,
    burn_in: BurnIn = 500,
    thin: Thin = 1,
    chains: Chains = 2,
    seed: Seed = 0,
    jobs: Jobs = None,
    layout: LayoutOption = Layout.AUTO,
    unlisted: UnlistedOption = None,
    count_column: CountColumn = None,
    agent_column: AgentColumn = None,
    on_cycle: OnCycleOption = None,
    header: Header = None,
    ignore: Ignore = None,
    categories: Categories = None,
    labels: Annotated[
        Path | None,
        typer.Option(help="Also write each agent's cluster and how sure that is to this CSV file."),
    ] = None,
    picture: Picture = None,
    store: Annotated[
        Path | None,
        typer.Option(help="Keep the chains in this folder, instead of OUTPUT.chains while they run."),
    ] = None,
    keep_chains: KeepChains = False,
    force: Force = False,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Find kinds of agents, without being told how many, in full rankings and top lists.

    A Dirichlet-process mixture of generalized Mallows models. While it runs, the chains are kept in the
    folder OUTPUT.chains: killed at any moment, the same command goes on.
    """
    from permix.cli.dp_mallows import ListTargets, concentration_of, rates_of, run_fit_dp_mallows
    from permix.cli.inspect import ReadOptions

    run_fit_dp_mallows(
        ReadOptions(file, layout, unlisted, count_column, agent_column, on_cycle, header, ignore, categories),
        ListTargets(output, labels, picture, store, keep_chains, force),
        {
            "sampler": str(sampler),
            "concentration": concentration_of(concentration),
            "discount": discount,
            "prior_strength": prior_strength,
            "prior_rate": rates_of(prior_rate),
            "assignments": str(assignments),
            "split_merge": split_merge,
            "permutation": permutation,
            "n_initial_clusters": initial_clusters,
            "n_draws": draws,
            "n_burn_in": burn_in,
            "n_thin": thin,
            "n_chains": chains,
            "random_state": seed,
            "n_jobs": jobs,
        },
        quiet,
        json,
    )


@fit_app.command(
    "angle",
    epilog="Examples: `permix fit angle election.soc -k 3 -o election.permix`, "
    "`permix fit angle votes.csv --select 1-5 -o kinds.permix --picture kinds.png`",
)
def fit_angle(
    file: Votes,
    output: ModelOutput,
    components: Annotated[
        int | None, typer.Option("--components", "-k", min=1, help="Number of components, kinds of agents.")
    ] = None,
    select: Select = None,
    rule: SelectRule = None,
    folds: Folds = None,
    criterion: Annotated[
        Criterion | None,
        typer.Option(
            help="select: compare by agents held out, or by a criterion on all of them; dic and waic are not "
            "for em [default: held-out].",
            show_default=False,
        ),
    ] = None,
    inference: Annotated[
        Inference,
        typer.Option(
            help="em: maximum likelihood, without intervals; sir: draws from the posterior; with "
            "--normalizer vmf also vi: variational posterior, and quadrature: draws, exact for one component."
        ),
    ] = Inference.EM,
    normalizer: Annotated[
        Normalizer,
        typer.Option(
            help="The sum over all rankings: exact up to 20 items, balanced for more (auto), or the von "
            "Mises–Fisher approximation (vmf), under which probabilities do not sum to one."
        ),
    ] = Normalizer.AUTO,
    bound: Annotated[
        Bound | None,
        typer.Option(
            help="vi: the evidence bound itself, or the looser published one, whose intervals of "
            "concentrations are too narrow [default: tight].",
            show_default=False,
        ),
    ] = None,
    prior_shape: Annotated[
        float | None, typer.Option(help="Concentrations ~ Gamma(shape, rate) [default: 1].")
    ] = None,
    prior_rate: Annotated[
        float | None, typer.Option(help="Concentrations ~ Gamma(shape, rate) [default: 0.1 / items].")
    ] = None,
    pseudo_count: Annotated[
        float | None, typer.Option(help="Dirichlet parameter of the weights [default: 1].")
    ] = None,
    restarts: Annotated[
        int | None, typer.Option(help="Starts of which the best is kept [default: 10].", min=1)
    ] = None,
    max_iter: Annotated[
        int | None, typer.Option(help="The most passes of one start [default: 500].", min=1)
    ] = None,
    tol: Annotated[
        float | None,
        typer.Option(help="Stop when a pass gains less than this per agent [default: 1e-7].", min=0.0),
    ] = None,
    draws: Annotated[
        int | None, typer.Option(help="Draws kept, per chain where there are chains [default: 1000].", min=1)
    ] = None,
    burn_in: Annotated[
        int | None, typer.Option(help="Chains: sweeps before the first draw [default: 500].", min=0)
    ] = None,
    thin: Annotated[
        int | None, typer.Option(help="Chains: sweeps per draw kept [default: 1].", min=1)
    ] = None,
    chains: Annotated[int | None, typer.Option(help="Number of chains [default: 2].", min=1)] = None,
    candidates: Annotated[
        int | None,
        typer.Option(help="sir, one component: draw out of so many candidates [default: 10000].", min=2),
    ] = None,
    criteria: Annotated[
        bool | None,
        typer.Option(
            "--criteria/--no-criteria",
            help="DIC and WAIC; default: where rankings are full and it takes seconds.",
            show_default=False,
        ),
    ] = None,
    seed: Seed = 0,
    jobs: Jobs = None,
    layout: LayoutOption = Layout.AUTO,
    unlisted: UnlistedOption = None,
    count_column: CountColumn = None,
    agent_column: AgentColumn = None,
    on_cycle: OnCycleOption = None,
    header: Header = None,
    ignore: Ignore = None,
    categories: Categories = None,
    labels: Annotated[
        Path | None,
        typer.Option(help="Also write each agent's component and its probability to this CSV file."),
    ] = None,
    picture: Picture = None,
    store: Annotated[
        Path | None,
        typer.Option(help="Keep the chains in this folder, instead of OUTPUT.chains while they run."),
    ] = None,
    keep_chains: KeepChains = False,
    force: Force = False,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Find kinds of agents in rankings: how far apart each kind sees the items, and how united it is.

    A mixture of angle-based models: every kind has a score for each item and a concentration, with intervals
    by --inference sir. Rankings of some items are completed at random along the way. Interrupted, it keeps
    the best so far; chains go on from OUTPUT.chains when the command is given again.
    """
    from permix.cli.angle import AngleTargets, run_fit_angle
    from permix.cli.inspect import ReadOptions
    from permix.cli.rank_models import HowMany

    run_fit_angle(
        ReadOptions(file, layout, unlisted, count_column, agent_column, on_cycle, header, ignore, categories),
        AngleTargets(output, labels, picture, store, keep_chains, force),
        HowMany(components, select, rule, folds, criterion),
        {
            "inference": str(inference),
            "normalizer": str(normalizer),
            "bound": None if bound is None else str(bound),
            "prior_shape": prior_shape,
            "prior_rate": prior_rate,
            "pseudo_count": pseudo_count,
            "n_restarts": restarts,
            "max_iter": max_iter,
            "tol": tol,
            "n_draws": draws,
            "n_burn_in": burn_in,
            "n_thin": thin,
            "n_chains": chains,
            "n_candidates": candidates,
            "random_state": seed,
            "n_jobs": jobs,
        },
        criteria,
        quiet,
        json,
    )


@fit_app.command("mean-shift", epilog="Example: `permix fit mean-shift election.soi -o first-look.permix`")
def fit_mean_shift(
    file: Votes,
    output: ModelOutput,
    length: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="How many items centers list, at most; fewer give fewer, larger clusters. Default: all.",
        ),
    ] = None,
    decay: Annotated[
        float | None,
        typer.Option(help="Width of the kernel, fixed; larger gives more clusters. Default: estimated."),
    ] = None,
    max_iter: Annotated[int, typer.Option(help="The most iterations.", min=1)] = 100,
    jobs: Jobs = None,
    layout: LayoutOption = Layout.AUTO,
    unlisted: UnlistedOption = None,
    count_column: CountColumn = None,
    agent_column: AgentColumn = None,
    on_cycle: OnCycleOption = None,
    header: Header = None,
    ignore: Ignore = None,
    categories: Categories = None,
    labels: Annotated[
        Path | None, typer.Option(help="Also write each row's cluster to this CSV file.")
    ] = None,
    force: Force = False,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Find clusters of top lists by blurring mean-shift: quick, without a prior, and without uncertainty."""
    from permix.cli.inspect import ReadOptions
    from permix.cli.mean_shift import run_fit_mean_shift
    from permix.cli.rank_models import RankTargets

    run_fit_mean_shift(
        ReadOptions(file, layout, unlisted, count_column, agent_column, on_cycle, header, ignore, categories),
        RankTargets(output, labels, None, force),
        {"length": length, "decay": decay, "max_iter": max_iter, "n_jobs": jobs},
        quiet,
        json,
    )
