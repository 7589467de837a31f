"""What ``permix fit angle`` does."""

from __future__ import annotations

import shutil
import sys
import warnings
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from permix.angle.tables import angle_report, print_angle
from permix.cli.inspect import ReadOptions, check_model_name, check_picture, check_targets
from permix.cli.output import print_json, running_fit
from permix.mallows.command import HowMany, print_selection, selection_report, write_labels

if TYPE_CHECKING:
    from permix.angle.fit import AngleFit
    from permix.angle.results import Criteria
    from permix.angle.settings import AngleSettings
    from permix.data import Rankings
    from permix.selection.select_components import ComponentSelection

# DIC and WAIC average over hundreds of draws: by default where that takes no more steps than this, seconds.
CRITERION_STEPS = 2e9
CRITERION_DRAWS = 400
# What the library says in warnings and the report says in notes, in words of the command line.
SAID_IN_NOTES = (
    "component [0-9, ]+: the von Mises",
    "the von Mises–Fisher normaliser is off",
    "not converged after",
    "interrupted: this is the best so far",
)


class AngleTargets(NamedTuple):
    """The files a fit writes, and the folder of its chains."""

    output: Path
    labels: Path | None
    picture: Path | None
    store: Path | None
    keep_chains: bool
    force: bool


def run_fit_angle(
    votes_file: ReadOptions,
    targets: AngleTargets,
    how_many: HowMany,
    choices: dict[str, Any],
    criteria: bool | None,
    quiet: bool,
    as_json: bool,
) -> None:
    """Fit, save, and show what was found; of ``choices``, those that are None were not made."""
    candidates = how_many.candidates()
    votes_file.refuse_keep()
    output = targets.output
    check_model_name(output)
    check_picture(targets.picture)
    curve = _curve(targets.picture) if candidates is not None else None
    chains = targets.store or output.with_name(output.name + ".chains")
    wanted = [target for target in (output, targets.labels, targets.picture, curve) if target is not None]
    # Chains that are still there are a run that was cut short: the same command may replace what it left.
    check_targets(wanted, [votes_file.file], targets.force or (targets.store is None and chains.exists()))

    from permix.angle.data import as_rankings
    from permix.angle.settings import AngleSettings

    given = {name: value for name, value in choices.items() if value is not None}
    n_components = how_many.components or max(candidates or [1])
    settings = AngleSettings(**given, n_components=n_components, progress=False if quiet or as_json else None)
    if criteria and settings.inference == "em":
        raise typer.BadParameter(
            "--criteria averages over a posterior, which --inference em has not; it always shows AIC and BIC"
        )
    votes = as_rankings(votes_file.read())
    way = settings.way_for(votes.n_items, votes.is_full)
    _refuse_idle_options(way, settings, choices, targets)
    if way == "chains":
        settings = replace(settings, store=chains)
    if way == "chains" and chains.exists() and not (as_json or quiet):
        print(f"found chains in {chains}", file=sys.stderr)
    with running_fit(chains if way == "chains" else None), warnings.catch_warnings():
        for words in SAID_IN_NOTES:
            warnings.filterwarnings("ignore", words)
        fit, selection = _fitted(votes, settings, how_many, candidates)
    if selection is not None and curve is not None:
        from permix.plots import component_choice

        component_choice(selection, curve)
    if fit is None:
        assert selection is not None
        _show_selection_alone(selection, as_json)
        raise typer.Exit(130)
    partial = selection is not None and selection.interrupted
    goes_on = _save(fit, votes_file, votes, targets, chains, partial)
    report = angle_report(fit)
    if not (fit.interrupted or partial):
        report |= _criteria(fit, votes, criteria)
    if as_json:
        extra = {} if selection is None else {"selection": selection_report(selection)}
        print_json({"file": str(output), **report, **extra})
    else:
        if selection is not None:
            print_selection(selection)
        print_angle(report, output.name)
        if curve is not None:
            print(f"{curve}: what the choice rests on, by number of components")
    if goes_on:
        print(f"permix: interrupted; the same command goes on from {chains}", file=sys.stderr)
        raise typer.Exit(130)
    if partial or fit.interrupted:
        to_whom = ", fitted to the agents that were not held out" if partial else ""
        print(f"permix: interrupted; {output} holds the best so far{to_whom}", file=sys.stderr)
        if partial and targets.labels is not None:
            print(f"permix: {targets.labels} needs a fit to all agents and is not written", file=sys.stderr)
        raise typer.Exit(130)


def _curve(picture: Path | None) -> Path | None:
    """Name the second picture that a choice among several numbers of components draws."""
    return None if picture is None else picture.with_name(f"{picture.stem}-selection{picture.suffix}")


def _refuse_idle_options(
    way: str, settings: AngleSettings, choices: dict[str, Any], targets: AngleTargets
) -> None:
    """Refuse options that would do nothing: a wish that cannot be met is not to be passed over."""
    used = {
        "climb": ("--restarts", "--max-iter", "--tol"),
        "sweeps": ("--restarts", "--max-iter", "--draws", "--burn-in"),
        "draws": ("--draws",),
        "chains": (
            "--restarts",
            "--max-iter",
            "--draws",
            "--burn-in",
            "--thin",
            "--chains",
            "--store",
            "--keep-chains",
        ),
    }[way]
    given = {
        "--restarts": choices["n_restarts"],
        "--max-iter": choices["max_iter"],
        "--tol": choices["tol"],
        "--draws": choices["n_draws"],
        "--burn-in": choices["n_burn_in"],
        "--thin": choices["n_thin"],
        "--chains": choices["n_chains"],
        "--store": targets.store,
        "--keep-chains": targets.keep_chains or None,
    }
    reasons = {
        "climb": "which with full rankings climbs to one answer",
        "sweeps": "which with incomplete rankings runs --burn-in + --draws sweeps of stochastic EM",
        "draws": "which with one component and full rankings draws independently",
        "chains": "which runs chains here",
    }
    for option, value in given.items():
        if value is not None and option not in used:
            raise typer.BadParameter(
                f"{option} has nothing to do for --inference {settings.inference}, {reasons[way]}"
            )
    if choices["n_candidates"] is not None and not (way == "draws" and settings.inference == "sir"):
        raise typer.BadParameter(
            "--candidates belongs to --inference sir --normalizer vmf with one component and full rankings"
        )
    if choices["bound"] is not None and settings.inference != "vi":
        raise typer.BadParameter("--bound belongs to --inference vi")


def _fitted(
    votes: Rankings, settings: AngleSettings, how_many: HowMany, candidates: list[int] | None
) -> tuple[AngleFit | None, ComponentSelection | None]:
    """Fit so many components, or as many as predict well; no fit if cross-validation was interrupted."""
    if candidates is None:
        from permix.angle.fit import fit_angle

        return fit_angle(votes, settings), None

    from dataclasses import fields

    from permix.selection.select_components import select_components

    left_out = ("n_components", "store")
    chosen = {
        field.name: getattr(settings, field.name) for field in fields(settings) if field.name not in left_out
    }
    criterion: Any = str(how_many.criterion or "held-out")
    rule: Any = str(how_many.rule or ("one-se" if criterion == "held-out" else "best"))
    selection = select_components(
        votes,
        candidates,
        model="angle",
        criterion=criterion,
        rule=rule,
        n_folds=how_many.folds,
        refit=True,
        **chosen,
    )
    return selection.fit, selection


def _show_selection_alone(selection: ComponentSelection, as_json: bool) -> None:
    if as_json:
        print_json({"file": None, "selection": selection_report(selection)})
    else:
        print_selection(selection)
    print(
        f"permix: interrupted before a model was fitted to all; -k {selection.chosen} fits one",
        file=sys.stderr,
    )


def _save(
    fit: AngleFit,
    votes_file: ReadOptions,
    votes: Rankings,
    targets: AngleTargets,
    chains: Path,
    partial: bool,
) -> bool:
    """Write model, labels and picture; return whether chains were left that the same command continues."""
    from permix.angle.archive import save_angle

    save_angle(fit, targets.output)
    goes_on = fit.interrupted and chains.exists()
    if fit.draws is not None and fit.draws.seeds and chains.exists():
        if fit.draws.n_stored > fit.settings.n_draws:
            print(f"{chains} holds {fit.draws.n_stored:,} draws and is kept", file=sys.stderr)
        elif not (fit.interrupted or targets.keep_chains or targets.store is not None):
            shutil.rmtree(chains)
    if targets.labels is not None and not partial:
        write_labels(fit, votes_file.agents_of(votes), targets.labels)
    if targets.picture is not None:
        from permix.plots import overview

        overview(fit, targets.picture)
    return goes_on


def _criteria(fit: AngleFit, votes: Rankings, wanted: bool | None) -> dict[str, Any]:
    """Return DIC and WAIC, where there is a posterior and they were asked for or take seconds."""
    from permix.angle.results import criteria

    if fit.settings.inference == "em" or wanted is False:
        return {}
    if wanted is None and not (votes.is_full and _criterion_steps(fit, votes) <= CRITERION_STEPS):
        return {}
    found: Criteria = criteria(fit, votes)
    return found._asdict()


def _criterion_steps(fit: AngleFit, votes: Rankings) -> float:
    k, t = fit.components.n_components, votes.n_items
    table = 2.0**t * t if fit.components.normalizer == "exact" else 0.0
    return CRITERION_DRAWS * k * (float(len(votes)) * t + table)
