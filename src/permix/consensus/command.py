"""The command ``permix consensus``."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from itertools import pairwise

from permix.cli.command import Option
from permix.cli.output import count_of, fitting, print_json, print_table, say, terminal_width
from permix.cli.stdin import is_stdin
from permix.cli.votes import ReadOptions

OPTIONS: Mapping[str, Option] = {
    "method": Option(
        str,
        "How to find it [default: auto, which proves it optimal where that is affordable].",
        choices=("auto", "exact", "local", "borda"),
    ),
    "time_limit": Option(float, "Seconds for the exact search."),
}


# Items with a smaller part of the comparisons than this, of the item that has most, were hardly answered.
_FEW = 0.05


def _why_open(wins: list[list[int]], order: list[int], margins: list[float]) -> str:
    """Say why nobody prefers one of two neighbors: few agents have them, or none has both without a tie."""
    said = [sum(wins[item]) + sum(row[item] for row in wins) for item in range(len(wins))]
    at = [place for place, margin in enumerate(margins) if margin != margin]
    if min(said[order[each]] for place in at for each in (place, place + 1)) < _FEW * max(said):
        return (
            "nobody compares the two items, so that their order says little: few agents answered them. "
            "--min-support 0.05 leaves out items that less than 5% of the agents answered."
        )
    return (
        "nobody prefers one of the two items to the other, so that their order says little: no agent was "
        "asked about both, or those who were tie them."
    )


def show_consensus(options: ReadOptions, method: str, time_limit: float | None, as_json: bool) -> None:
    """Print the Kemeny consensus of a file of votes."""
    from permix.cli.inspect import cleaning_report, print_cleaning
    from permix.consensus.agreement import NARROW, median_majority
    from permix.consensus.kemeny import another_as_good, kemeny
    from permix.data.attributes import item_labels
    from permix.data.reading import how_it_was_read

    votes = options.read()
    result = kemeny(votes, method=method, time_limit=time_limit)
    counts = votes.pairwise_counts()
    other = another_as_good(result.order, counts)
    as_good = None if other is None else [str(votes.items[item]) for item in other]
    wins = counts.tolist()
    order = result.order.tolist()
    names = [str(votes.items[item]) for item in order]
    called = item_labels(list(votes.items), votes.item_attributes) if votes.item_attributes else None
    shown = names if called is None else [called[item] for item in order]
    margins = [
        wins[a][b] / (wins[a][b] + wins[b][a]) if wins[a][b] + wins[b][a] else float("nan")
        for a, b in pairwise(order)
    ]
    reading, majority = how_it_was_read(votes), median_majority(counts)
    if as_json:
        print_json(
            {
                "file": str(options.file),
                **({"read_as": reading} if reading else {}),
                "ranking": names,
                "disagreements": result.score,
                "lower_bound": result.lower_bound,
                "proven_optimal": result.optimal,
                "method": result.method,
                "another_as_good": as_good,
                "share_preferring_to_next": margins,
                "median_majority": majority,
                **cleaning_report(votes),
            }
        )
        return
    if reading:
        say(f"{reading}\n")
    shares = [*("nobody prefers either" if margin != margin else f"{margin:.0%}" for margin in margins), ""]
    rows = [[place, *row] for place, row in enumerate(zip(shown, shares, strict=True), start=1)]
    n_open = sum(margin != margin for margin in margins)
    if n_open:
        print(f"At {count_of(n_open, 'place')} below {_why_open(wins, order, margins)}\n")
    title = f"Consensus of {count_of(int(votes.n_agents), 'agent')}"
    print_table(title, ["rank", "item", "prefer it to the next"], rows)
    unproven = f"not proven optimal; no ranking has fewer than {result.lower_bound:,.0f}"
    verdict = "proven optimal" if result.optimal else unproven
    print(f"{count_of(round(result.score), 'pairwise disagreement')}, {verdict} (method: {result.method})")
    if as_good is not None:
        said = "not the only one: other rankings have as few disagreements, such as "
        print(f"{said}{fitting(as_good, terminal_width() - len(said))}")
    if majority < NARROW:
        file = "FILE" if is_stdin(options.file) else shlex.quote(str(options.file))
        say(
            f"People disagree: half of the pairs have a majority of {majority:.0%} or less, so that one "
            f"ranking says little. permix fit mallows {file} -k 2 -o groups.permix finds groups that agree."
        )
    print_cleaning(cleaning_report(votes), int(votes.n_agents))
