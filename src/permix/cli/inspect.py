"""What ``info``, ``convert``, ``consensus`` and ``summary`` do."""

from __future__ import annotations

import csv
import shutil
import sys
import zipfile
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import typer

from permix.cli.output import count_of, print_json, print_table
from permix.errors import DataError

if TYPE_CHECKING:
    from permix.models.mixture_fit import MixtureFit

# A table of clusters in the terminal shows at most this many columns of parameters and this many rows.
MAX_COLUMNS = 5
MAX_CLUSTERS = 30
PICTURES = (".png", ".svg", ".pdf")


class ReadOptions(NamedTuple):
    """A file of votes and what the user said about it; None and auto mean what the file suggests."""

    file: Path
    layout: str
    unlisted: str | None
    count_column: str | None
    agent_column: str | None
    on_cycle: str | None
    header: bool | None = None
    ignore: list[str] | None = None
    categories: str | None = None

    def read(self, **more: Any) -> Any:
        """Read rankings or preferences from any format permix knows."""
        from permix.data import read

        if self.file.suffix == ".permix":
            raise DataError(
                f"{self.file} is a fitted model, not a file of votes; see permix summary {self.file}"
            )
        given = {
            "layout": None if self.layout == "auto" else self.layout,
            "unlisted": self.unlisted,
            "count_column": self.count_column,
            "agent_column": self.agent_column,
            "on_cycle": self.on_cycle,
        }
        chosen: dict[str, Any] = {name: str(value) for name, value in given.items() if value is not None}
        if self.header is not None:
            chosen["header"] = self.header
        if self.ignore:
            chosen["ignore"] = self.ignore
        if self.categories is not None:
            chosen["categories"] = self._category_order(self.categories)
        return read(self.file, **chosen, **more)

    @staticmethod
    def _category_order(said: str) -> str | list[str]:
        from permix.data.categories import DIRECTIONS

        if said in DIRECTIONS:
            return said
        return [name.strip() for name in next(csv.reader([said], skipinitialspace=True), [])]

    def refuse_keep(self) -> None:
        """Refuse agents without an order, before anything is read."""
        if self.on_cycle == "keep":
            raise typer.BadParameter(
                "--on-cycle keep: models of rankings need agents who do not contradict themselves; "
                "--on-cycle drop leaves the others out"
            )

    def agents_of(self, votes: Any) -> list[Any]:
        """Ids of the rows as the file has them; rows of a file that names nobody are numbered from 1."""
        if votes._agents is None and not self._names_agents():
            return list(range(1, len(votes) + 1))
        return list(votes.agents.tolist())

    def _names_agents(self) -> bool:
        """Say whether the file has ids: those from 0 on look like none once they are read."""
        from permix.data.column_names import column_places
        from permix.data.files_io import TABLES
        from permix.data.table_columns import file_rows, guess_delimiter
        from permix.data.text_files import plain_suffix, read_text

        if self.agent_column is not None:
            return True
        if plain_suffix(self.file) not in TABLES:
            return False
        if self.header is False:
            return self.layout in ("pairs", "ratings")
        text = read_text(self.file)
        _, header = next(file_rows(self.file, text, guess_delimiter(self.file, text)))
        return "" in header or bool(column_places(header, "agent"))


def show_info(options: ReadOptions, as_json: bool) -> None:
    """Describe a file of votes or a fitted model."""
    file = options.file
    if file.suffix == ".permix" or (file.is_file() and file.suffix != ".npz" and zipfile.is_zipfile(file)):
        show_fit(file, as_json)
        return
    votes = options.read()
    facts = describe_votes(votes)
    if as_json:
        print_json({"file": str(file), **facts})
        return
    title = votes.metadata.get("TITLE", "") if votes.metadata else ""
    skip = ("first_choices", "items")
    print_table(
        f"{file.name}{f': {title}' if title else ''}",
        ["", ""],
        [[name.replace("_", " "), _readable(value)] for name, value in facts.items() if name not in skip],
    )
    chosen = facts["first_choices"]
    if not chosen:
        return
    agents = facts["agents"]
    rows = sorted(chosen.items(), key=lambda pair: -pair[1])
    print_table(
        "First choices",
        ["item", "agents", "of all"],
        [[name, count, f"{count / agents:.1%}"] for name, count in rows[:20]],
    )
    if len(rows) > 20:
        print(f"... and {count_of(len(rows) - 20, 'more item')}")
    if agents > sum(chosen.values()):
        print(f"{count_of(agents - sum(chosen.values()), 'agent')} named no single first choice")


def _readable(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return f"{value:,}" if isinstance(value, int) else str(value)


def describe_votes(votes: Any) -> dict[str, Any]:
    """Facts about rankings or preferences as plain values."""
    from permix.data import Rankings
    from permix.data.categories import category_names

    names = [str(item) for item in votes.items]
    facts: dict[str, Any] = {
        "kind": "rankings" if isinstance(votes, Rankings) else "preferences",
        "agents": int(votes.n_agents),
        "rows": len(votes),
        "number_of_items": votes.n_items,
        "items": names,
    }
    if isinstance(votes, Rankings):
        lengths = votes.lengths
        facts["complete"] = bool(votes.is_full)
        if not votes.is_full:
            facts |= {
                "unlisted_items_are": votes.unlisted,
                "shortest_list": int(lengths.min()),
                "mean_length": round(float(np.average(lengths, weights=votes.counts)), 2),
                "longest_list": int(lengths.max()),
            }
        first = np.bincount(votes.orders[:, 0], weights=votes.counts, minlength=votes.n_items)
    else:
        n_pairs, n_rated = int(votes.pair_indptr[-1]), int(votes.level_indptr[-1])
        if n_pairs:
            facts["comparisons"] = n_pairs
        if n_rated:
            facts["rated_or_ranked_items"] = n_rated
            facts["other_items_are"] = "below" if votes.rest_below.all() else "unknown"
        categories = category_names(votes.metadata)
        if categories is not None:
            order = votes.metadata["CATEGORY ORDER"]
            facts["categories_best_first"] = categories
            facts["order_in_the_file"] = (
                "best first"
                if order == sorted(order)
                else "worst first"
                if order == sorted(order, reverse=True)
                else "mixed"
            )
        contradicting = int(votes.counts[~votes.consistent].sum())
        if contradicting:
            facts["agents_who_contradict_themselves"] = contradicting
        # A sole best level item is a first choice; ties at the top have none.
        first = _sole_first_choices(votes)
    facts["first_choices"] = {names[k]: int(first[k]) for k in np.flatnonzero(first)}
    return facts


def _sole_first_choices(votes: Any) -> np.ndarray:
    sizes = np.diff(votes.level_indptr)
    start = votes.level_indptr[:-1][sizes > 0]
    counts = votes.counts[sizes > 0]
    stop = votes.level_indptr[1:][sizes > 0]
    following = np.minimum(start + 1, len(votes.levels) - 1)
    sole = (stop - start == 1) | (votes.levels[following] > 0)
    chosen = votes.level_items[start[sole]]
    return np.bincount(chosen, weights=counts[sole], minlength=votes.n_items)


def run_convert(options: ReadOptions, target: Path, to_layout: str, force: bool, as_json: bool) -> None:
    """Read one file and write another."""
    from permix.data import write
    from permix.data.categories import category_scale

    check_targets([target], [options.file], force)
    votes = options.read()
    try:
        write(votes, target, **({} if to_layout == "auto" else {"layout": str(to_layout)}))
    except DataError as error:
        # The writer's layout is the one this command calls --to-layout.
        raise DataError(str(error).replace("layout=", "to_layout=")) from error
    scale = category_scale(votes) if to_layout == "ratings" else {}
    if as_json:
        meant = {"ratings": scale} if scale else {}
        facts = {"file": str(target), "agents": int(votes.n_agents), "number_of_items": votes.n_items}
        print_json(facts | meant)
        return
    print(f"{target}: {count_of(int(votes.n_agents), 'agent')}, {count_of(votes.n_items, 'item')}")
    if scale:
        print("ratings: " + ", ".join(f"{rating} = {name}" for rating, name in scale.items()))


def check_targets(targets: list[Path], sources: list[Path], force: bool) -> None:
    """Refuse, before any work is done, to write over an input, one file over another, or what exists."""
    from permix.files import check_target

    seen = {source.resolve(): "is also the input" for source in sources}
    for target in targets:
        check_target(target)
        if target.resolve() in seen:
            raise DataError(f"{target} {seen[target.resolve()]}; give another name")
        seen[target.resolve()] = "is given twice"
        if target.exists() and not force:
            raise DataError(f"{target} exists already; add --force to overwrite it")


def drop_chains(chains: Path, n_stored: int, n_draws: int) -> None:
    """Remove the chains of a finished fit, last of all, once everything it has to say is written and shown.

    Killed before that, the same command finds them complete and says it again. They go at one stroke: a
    folder half removed would be no chains at all.
    """
    if n_stored > n_draws:
        print(f"{chains} holds {n_stored:,} draws and is kept", file=sys.stderr)
        return
    sys.stdout.flush()
    gone = chains.with_name(f".{chains.name}.tmp")
    shutil.rmtree(gone, ignore_errors=True)  # of a command that was killed right here
    chains.rename(gone)
    shutil.rmtree(gone)


def check_picture(picture: Path | None) -> None:
    """Refuse, before any work is done, an ending that no picture has."""
    if picture is not None and picture.suffix not in PICTURES:
        raise typer.BadParameter(f"{picture}: pictures end in {', '.join(PICTURES)}")


def check_model_name(output: Path) -> None:
    """Refuse, before any work is done, a name that says the file is something else than a model."""
    from permix.data.files_io import TABLES
    from permix.data.preflib_writer import SUFFIXES
    from permix.data.text_files import plain_suffix

    endings = {*SUFFIXES, *TABLES, "json", "npy", "npz", "txt", *(ending[1:] for ending in PICTURES)}
    if plain_suffix(output) in endings:
        raise typer.BadParameter(
            f"--output {output}: the fitted model is no such file; name it {output.stem.split('.')[0]}.permix"
        )


def show_consensus(options: ReadOptions, method: str, time_limit: float | None, as_json: bool) -> None:
    """Print the Kemeny consensus of a file of votes."""
    from permix.models.kemeny import kemeny

    votes = options.read()
    result = kemeny(votes, method=str(method), time_limit=time_limit)
    wins = np.asarray(votes.pairwise_counts())
    order = [int(item) for item in result.order]
    names = [str(votes.items[item]) for item in order]
    margins = [
        float(wins[a, b] / (wins[a, b] + wins[b, a])) if wins[a, b] + wins[b, a] else float("nan")
        for a, b in pairwise(order)
    ]
    if as_json:
        print_json(
            {
                "file": str(options.file),
                "ranking": names,
                "disagreements": result.score,
                "lower_bound": result.lower_bound,
                "proven_optimal": result.optimal,
                "method": result.method,
                "share_preferring_to_next": margins,
            }
        )
        return
    rows = [
        [place + 1, name, f"{margins[place]:.0%}" if place < len(margins) else ""]
        for place, name in enumerate(names)
    ]
    print_table(
        f"Consensus of {count_of(int(votes.n_agents), 'agent')}",
        ["rank", "item", "prefer it to the next"],
        rows,
    )
    verdict = (
        "proven optimal"
        if result.optimal
        else f"not proven optimal; no ranking has fewer than {result.lower_bound:,.0f}"
    )
    print(f"{count_of(round(result.score), 'pairwise disagreement')}, {verdict} (method: {result.method})")


def show_fit(file: Path, as_json: bool) -> None:
    """Print what a fitted model found."""
    from permix.models.persistence import load_fit

    fit = load_fit(file)
    report, show = _described(fit)
    if as_json:
        print_json({"file": str(file), **report})
    else:
        show(report, file.name)


def _described(fit: Any) -> tuple[dict[str, Any], Callable[[dict[str, Any], str], None]]:
    """Report what a fit of any kind found, and say who prints it."""
    from permix.models.angle_fit import AngleFit
    from permix.models.cocluster_fit import BlockFit
    from permix.models.dp_mallows_fit import DPMallowsFit
    from permix.models.mallows_fit import MallowsFit
    from permix.models.mean_shift import MeanShiftFit
    from permix.models.mixture_fit import MixtureFit

    if isinstance(fit, BlockFit):
        from permix.cli.cocluster_report import block_report, print_blocks

        return block_report(fit), print_blocks
    if isinstance(fit, MixtureFit):
        return fit_report(fit), partial(print_fit, fit)
    if isinstance(fit, AngleFit):
        from permix.cli.angle_report import angle_report, print_angle

        return angle_report(fit), print_angle
    if isinstance(fit, DPMallowsFit):
        from permix.cli.dp_mallows import list_report, print_lists

        return list_report(fit), print_lists
    if isinstance(fit, MeanShiftFit):
        from permix.cli.mean_shift import mean_shift_report, print_mean_shift

        return mean_shift_report(fit), print_mean_shift

    from permix.cli.rank_models import kernel_report, mallows_report, print_kernel, print_mallows

    if isinstance(fit, MallowsFit):
        return mallows_report(fit), print_mallows
    return kernel_report(fit), print_kernel


def fit_report(fit: MixtureFit) -> dict[str, Any]:
    """Everything ``summary`` shows, as plain values."""
    from permix.partitions import assignment_confidence
    from permix.posterior import summary

    draws = fit.draws.arrays["n_clusters"]
    numbers, counts = np.unique(draws, return_counts=True)
    confidence = np.asarray(assignment_confidence(fit.draws.arrays["labels"], fit.labels))
    return {
        "model": "DPMixture",
        "family": fit.family.name,
        "observations": fit.n,
        "columns": column_names(fit),
        "chains": int(draws.shape[0]),
        "draws_per_chain": int(draws.shape[1]),
        "clusters": fit.n_clusters,
        "cluster_sizes": fit.cluster_sizes.tolist(),
        "cluster_confidence": [float(confidence[fit.labels == k].mean()) for k in range(fit.n_clusters)],
        "cluster_parameters": {name: values.tolist() for name, values in fit.cluster_parameters.items()},
        "posterior_number_of_clusters": {
            str(number): float(count / draws.size) for number, count in zip(numbers, counts, strict=True)
        },
        "diagnostics": {str(name): row.to_dict() for name, row in summary(fit.draws).iterrows()},
    }


def column_names(fit: MixtureFit) -> list[str]:
    """Names of the parameter columns: features, or feature=answer for categories."""
    from permix.families import Categorical

    features = fit.feature_names or tuple(f"column {j + 1}" for j in range(fit.family.n_features))
    if isinstance(fit.family, Categorical) and fit.family.levels is not None:
        pairs = zip(features, fit.family.levels, strict=True)
        return [f"{feature}={level}" for feature, levels in pairs for level in levels]
    return list(features)


def print_fit(fit: MixtureFit, report: dict[str, Any], title: str) -> None:
    """Tables for people."""
    shares = report["posterior_number_of_clusters"].items()
    clusters, rows_ = count_of(report["clusters"], "cluster"), count_of(report["observations"], "observation")
    print_table(
        f"{title}: {rows_}, {clusters}, {report['family']} family",
        ["number of clusters", "posterior probability"],
        [[int(number), f"{share:.3f}"] for number, share in shares if share >= 0.005],
    )
    print(
        f"The {clusters} below are the partition nearest to all draws (least expected "
        f"{'variation of information' if fit.estimate.loss == 'vi' else 'Binder loss'}).\n"
    )
    main = "probabilities" if "probabilities" in fit.cluster_parameters else "mean"
    values = fit.cluster_parameters[main]
    # The columns in which the clusters differ most are the ones worth the width of a terminal.
    shown = np.sort(np.argsort(-np.ptp(values, axis=0), kind="stable")[:MAX_COLUMNS])
    names = report["columns"]
    rows = [
        [k + 1, size, f"{report['cluster_confidence'][k]:.2f}", *[float(value) for value in values[k, shown]]]
        for k, size in enumerate(report["cluster_sizes"][:MAX_CLUSTERS])
    ]
    kind = "probability of" if main == "probabilities" else "mean of"
    some = "the most telling of " if len(shown) < len(names) else ""
    print_table(
        f"Clusters ({kind} {some}{count_of(len(names), 'column')})",
        ["cluster", "size", "confidence", *[names[j] for j in shown]],
        rows,
    )
    if report["clusters"] > MAX_CLUSTERS:
        print(f"... and {report['clusters'] - MAX_CLUSTERS} smaller clusters; --json shows all\n")
    columns = ["mean", "sd", "ess_bulk", "r_hat", "note"]
    print_table(
        f"Chains ({report['chains']} × {report['draws_per_chain']:,} draws; --json has more)",
        ["quantity", *columns],
        [[name, *[row[column] for column in columns]] for name, row in report["diagnostics"].items()],
    )
