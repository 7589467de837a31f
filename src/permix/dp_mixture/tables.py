"""How a mixture of vectors is shown: everything as plain values, and tables for people."""

from __future__ import annotations

from typing import Any

import numpy as np

from permix.cli import fit_tables
from permix.cli.output import count_of, print_table, say
from permix.dp_mixture.fit import FEWEST_ROWS, MixtureFit, too_few
from permix.dp_mixture.profile import group_profile, in_words, typical_words
from permix.families import Multinomial

# A table of groups in the terminal shows at most this many columns of parameters and this many rows.
MAX_COLUMNS = 5
MAX_GROUPS = 30
# The profile of a group in a report has at most this many features.
MAX_FEATURES = 50
# So many columns of counts tell what a group of documents is about.
TOP_WORDS = 10


def report(fit: MixtureFit) -> dict[str, Any]:
    """Everything ``summary`` shows, as plain values."""
    parameters = fit.cluster_parameters
    words = typical_words(fit, TOP_WORDS) if isinstance(fit.family, Multinomial) else None
    return {
        "model": fit.model,
        "family": fit.family.name,
        "observations": fit.n_rows,
        "shown": fit.sample_note,
        "columns": fit.features,
        "columns_read_as": [
            {"column": column, "read_as": reading, "missing": missing}
            for column, (reading, missing) in zip(fit.columns, fit.family.readings(fit.data), strict=False)
        ],
        **_chains_report(fit),
        "number_of_groups": fit.n_clusters,
        "groups": [
            {
                "size": int(fit.cluster_sizes[k]),
                "how_sure": float(fit.how_sure[fit.labels == k].mean()),
                **fit_tables.recurrence_report(fit.recurrence, k),
                "parameters": {name: values[k].tolist() for name, values in parameters.items()},
                "profile": group_profile(fit, k)[:MAX_FEATURES],
                **({"top_words": words[k]} if words else {}),
            }
            for k in range(fit.n_clusters)
        ],
        "main_parameter": fit.family.main_parameter,
        "shares_within_groups": _shares(fit),
        "posterior_number_of_groups": fit_tables.posterior_of_number(fit.draws.arrays["n_groups"]),
        "loss": fit.estimate.loss,
    }


def _chains_report(fit: MixtureFit) -> dict[str, Any]:
    """Return how far to trust the chains; where there are hardly any rows, that comes first."""
    report = fit_tables.chains_report(fit.draws)
    if fit.n < FEWEST_ROWS:
        said = too_few(fit.n)
        report["verdict"] = f"TOO FEW ROWS: {said}. {report['verdict']}"
    return report


def _shares(fit: MixtureFit) -> list[list[float | None]] | None:
    """Return the shares of categories within groups, None for other features; None if there are no others.

    Parameters are smoothed by the prior; tables show what is in the data, the same in each of them.
    """
    typical, is_share = fit.profile.typical, fit.profile.is_share
    if not is_share.any():
        return None
    rows = np.where(is_share, typical, np.nan).tolist()
    return [[None if value != value else value for value in row] for row in rows]


def show(report: dict[str, Any], title: str) -> None:
    """Tables for people."""
    if report["columns_read_as"]:
        print_table(
            "What the columns are read as (--column NAME=KIND changes it)",
            ["column", "read as", "missing"],
            [[row["column"], row["read_as"], row["missing"] or ""] for row in report["columns_read_as"]],
        )
    shares = report["posterior_number_of_groups"].items()
    found = report["groups"]
    groups, rows_ = count_of(len(found), "group"), count_of(report["observations"], "observation")
    print_table(
        f"{title}: {rows_}, {groups}, {report['family']} family",
        ["number of groups", "posterior probability"],
        [[int(number), f"{share:.3f}"] for number, share in shares if share >= 0.005],
    )
    say(
        f"The {groups} below {'is' if len(found) == 1 else 'are'} the partition nearest to all draws "
        f"(least expected {fit_tables.LOSSES[report['loss']]})."
    )
    if report["shown"]:
        say(f"{report['shown'][0].upper()}{report['shown'][1:]}.")
    print()
    main = report["main_parameter"]
    values = np.asarray([group["parameters"][main] for group in found])
    if report["shares_within_groups"] is not None:
        shares_ = np.array(report["shares_within_groups"], dtype=np.float64)
        values = np.where(np.isnan(shares_), values, shares_)
        main = main if np.isnan(shares_).all(axis=0).any() else "shares"
    # The columns in which the groups differ most are the ones worth the width of a terminal.
    names = report["columns"]
    far = [{row["feature"]: row["difference"] for row in group["profile"]} for group in found]
    spread = np.ptp(np.nan_to_num([[of.get(name, 0.0) for name in names] for of in far]), axis=0)
    shown = np.sort(np.argsort(-spread, kind="stable")[:MAX_COLUMNS])
    some = "the most telling of " if len(shown) < len(names) else ""
    print_table(
        f"Groups ({main} of {some}{count_of(len(names), 'column')})",
        ["group", "size", "how sure", "found in", *[names[j] for j in shown]],
        [
            [
                k + 1,
                group["size"],
                f"{group['how_sure']:.2f}",
                fit_tables.found_in(group["found_in_chains"], report),
                *[float(value) for value in values[k, shown]],
            ]
            for k, group in enumerate(found[:MAX_GROUPS])
        ],
    )
    if len(found) > MAX_GROUPS:
        print(f"... and {len(found) - MAX_GROUPS} smaller groups; --json shows all\n")
    if len(found) > 1:
        print_table(
            "What is typical of each group (averages, and standard deviations from all rows)",
            ["group", "typical"],
            [[k + 1, in_words(group)] for k, group in enumerate(found[:MAX_GROUPS])],
        )
    fit_tables.print_chains(report)
