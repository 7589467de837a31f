"""Groups beside what is known of their members, as commands show them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from permix.cli.output import count_of, print_table, say, terminal_width
from permix.estimators.known import known_of

if TYPE_CHECKING:
    from permix.estimators.by_covariate import GroupTable

# Values and groups that a table shows; --json has all.
MOST_VALUES, MOST_GROUPS = 15, 20
# Characters of a share with its interval, of names of values, and of the columns beside them.
CELL_WIDTH, MOST_NAME, BESIDE = 13, 24, 17


def covariates_report(fit: Any) -> dict[str, Any]:
    """Return tables of groups by each covariate, as plain values; nothing where there is none."""
    known = known_of(fit).rows
    if not known or not hasattr(fit, "memberships"):
        return {}
    from permix.estimators.by_covariate import group_table

    return {"covariates": [_plain(group_table(fit, name)) for name in known]}


def _plain(found: GroupTable) -> dict[str, Any]:
    names = ("share", "low", "high")
    return {
        "name": found.name,
        "verdict": found.verdict,
        "p_value": found.p_value,
        "intervals": found.note,
        "agents_without_a_value": found.n_missing,
        "share_of_all_in_each_group": found.overall.tolist(),
        **_mean_facts(found),
        "values": [
            {
                "value": value,
                "agents": int(found.agents[v]),
                "in_groups": [dict(zip(names, row, strict=True)) for row in found.of_value[v].tolist()],
                "of_groups": [dict(zip(names, row, strict=True)) for row in found.of_group[v].tolist()],
            }
            for v, value in enumerate(found.values)
        ],
    }


def _mean_facts(found: GroupTable) -> dict[str, Any]:
    """Return the means of numbers, of all agents and of each group."""
    if found.means is None:
        return {}
    ends = ("mean", "low", "high")
    return {
        "mean_of_all": found.overall_mean,
        "means_of_groups": [dict(zip(ends, row, strict=True)) for row in found.means.tolist()],
    }


def _mean(cell: dict[str, float]) -> str:
    if cell["mean"] != cell["mean"]:
        return "-"
    ends = "" if cell["low"] != cell["low"] else f" ({cell['low']:.4g} to {cell['high']:.4g})"
    return f"{cell['mean']:.4g}{ends}"


def print_covariates(report: dict[str, Any]) -> None:
    """Write tables of groups by each covariate."""
    people = "rows" if "columns" in report else "agents"
    for found in report.get("covariates", ()):
        print()
        name, values = found["name"], found["values"]
        shown = values[:MOST_VALUES]
        n_groups = len(found["share_of_all_in_each_group"])
        groups = range(min(n_groups, MOST_GROUPS))
        longest = max(len(str(each["value"])) for each in (*shown, {"value": name}))
        room = max((terminal_width() - min(longest, MOST_NAME) - BESIDE) // CELL_WIDTH, 1)
        for first in range(0, len(groups), room):  # a narrow screen has some groups below the others
            _print_shares(found, people, shown, groups[first : first + room])
        left = []
        if len(values) > len(shown):
            left.append(f"{count_of(len(values) - len(shown), 'more value')} of {name}")
        if n_groups > len(groups):
            left.append(f"{count_of(n_groups - len(groups), 'more group')}")
        if left:
            print(f"... and {' and '.join(left)}; --json shows all")
        if found["agents_without_a_value"]:
            n = found["agents_without_a_value"]
            print(f"{count_of(n, people.removesuffix('s'))} without {name} are not in the tables")
        say(found["verdict"])
        say(f"in brackets: {found['intervals']}")


def _print_shares(found: dict[str, Any], people: str, shown: list[dict[str, Any]], groups: range) -> None:
    """Write the shares of some groups, both ways round."""
    name, values = found["name"], found["values"]
    heads = [name, people, *(f"group {k + 1}" for k in groups)]
    everybody = ["all", sum(each["agents"] for each in values)]
    everybody += [_percent(found["share_of_all_in_each_group"][k]) for k in groups]
    rows = [[e["value"], e["agents"], *(_share(e["in_groups"][k]) for k in groups)] for e in shown]
    print_table(f"Of the {people} of each {name}, those in each group", heads, [*rows, everybody])
    rows = [[e["value"], e["agents"], *(_share(e["of_groups"][k]) for k in groups)] for e in shown]
    total = everybody[1]
    heads.insert(2, "of all")
    rows = [[*row[:2], _percent(row[1] / total), *row[2:]] for row in rows]
    print_table(f"Of the members of each group, those of each {name}", heads, rows)
    if "means_of_groups" in found:
        row = [f"{found['mean_of_all']:.4g}", *(_mean(found["means_of_groups"][k]) for k in groups)]
        print_table(f"Mean {name} of the members of each group", ["of all", *heads[3:]], [row])


def _percent(share: float) -> str:
    return f"{100 * share:.0f}%"


def _share(cell: dict[str, float]) -> str:
    if cell["share"] != cell["share"]:
        return "-"
    return f"{_percent(cell['share'])} ({100 * cell['low']:.0f}–{100 * cell['high']:.0f})"
