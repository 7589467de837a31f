"""The command line: ``permix --help``."""

from __future__ import annotations

import ast
import csv
import io
import re
import shlex
import sys
import warnings
from typing import Any

# What the library calls its arguments and the command line its options; messages are written for the library.
OPTIONS = {
    "agent_column": "--agent-column",
    "assignments": "--assignments",
    "bound": "--bound",
    "budget": "--budget",
    "center_search": "--center-search",
    "concentration": "--concentration",
    "count_column": "--count-column",
    "criterion": "--criterion",
    "decay": "--decay",
    "discount": "--discount",
    "family": "--family",
    "header": "--header",
    "inference": "--inference",
    "label_cells": "--label-cells",
    "label_pseudo_count": "--label-pseudo-count",
    "layout": "--layout",
    "length": "--length",
    "max_iter": "--max-iter",
    "membership": "--membership",
    "missing": "--missing",
    "n_base": "--ensemble",
    "n_burn_in": "--burn-in",
    "n_candidates": "--candidates",
    "n_chains": "--chains",
    "n_column_clusters": "--column-clusters",
    "n_components": "--components",
    "n_draws": "--draws",
    "n_folds": "--folds",
    "n_initial_clusters": "--initial-clusters",
    "n_jobs": "--jobs",
    "n_particles": "--particles",
    "n_restarts": "--restarts",
    "n_row_clusters": "--row-clusters",
    "n_samples": "--samples",
    "n_thin": "--thin",
    "normalizer": "--normalizer",
    "on_cycle": "--on-cycle",
    "prior": "--prior",
    "prior_rate": "--prior-rate",
    "prior_shape": "--prior-shape",
    "prior_strength": "--prior-strength",
    "pseudo_count": "--pseudo-count",
    "random_state": "--seed",
    "row_column": "--id",
    "rule": "--rule",
    "sampler": "--sampler",
    "to_layout": "--to-layout",
    "tol": "--tol",
    "unlisted": "--unlisted",
}

# These are also quantities that chains have: options only where something is assigned to them.
QUANTITIES = ("n_column_clusters", "n_row_clusters")

# What a message may send the user to, as commands and options.
COMMANDS = {
    "permix.MallowsMixture takes": "permix fit mallows takes",
    "score_samples is for new rows": "--what components is for new rows",
    "header=True": "--header",
    "header=False": "--no-header",
    "row_column=False": '--id ""',
}
LEVELS = re.compile(r"family=permix\.families\.cells\.CategoricalCells\(levels=(\[.*\])\)")


def in_options(message: str) -> str:
    """Put a message of the library into the words of the command line."""
    message = LEVELS.sub(_levels_option, message)
    for name, command in COMMANDS.items():
        message = message.replace(name, command)
    for argument, option in OPTIONS.items():
        message = re.sub(rf"(?<![-\w]){argument} ?= ?['\"]([-\w]+)['\"]", rf"{option} \1", message)
        # A value of several words keeps its quotes.
        message = re.sub(rf"(?<![-\w]){argument}=(?=['\"])", f"{option} ", message)
        message = re.sub(rf"(?<![-\w]){argument}=(?=-?\w)", f"{option} ", message)
        # Words of plain English, such as layout, are options only where something is assigned to them.
        bare = "_" in argument and argument not in QUANTITIES
        message = re.sub(rf"(?<![-\w]){argument}{'=?' if bare else '='}(?!\w)", option, message)
    # Further values of an option, as in --inference em or 'sir', have no quotes either.
    more, found = re.compile(r"(--[-\w]+ [-\w]+(?:(?:,| or) [-\w]+)*)(,| or) '([-\w]+)'"), 1
    while found:
        message, found = more.subn(r"\1\2 \3", message)
    return message


def _levels_option(found: re.Match[str]) -> str:
    """Write the levels of a call as the option they are."""
    levels = ast.literal_eval(found[1])
    if levels == [...]:
        return "--levels"
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(levels)
    return f"--levels {shlex.quote(line.getvalue())}"


def _show_warning(message: Any, *_: Any, **__: Any) -> None:
    """Write a warning as a user of the command line wants it: what it says, not where it came from."""
    print(f"permix: warning: {in_options(str(message))}", file=sys.stderr)


def _explain(error: OSError) -> str:
    """Say what the system refused, without its error numbers."""
    name = error.filename
    if name is None:
        return str(error)
    if isinstance(error, FileNotFoundError):
        return f"there is no file {name}"
    if isinstance(error, IsADirectoryError):
        return f"{name} is a folder"
    if isinstance(error, PermissionError):
        return f"no permission to use {name}"
    return f"{name}: {error.strerror}"


def main() -> None:
    """Run the command line; a user's mistake gives one clear message and exit code 1."""
    from permix.errors import PermixError

    warnings.showwarning = _show_warning
    try:
        from permix.cli.app import app

        app()
    except KeyboardInterrupt:  # while commands were still being loaded
        print("permix: interrupted", file=sys.stderr)
        sys.exit(130)
    except PermixError as error:
        print(f"permix: {in_options(str(error))}", file=sys.stderr)
        sys.exit(1)
    except OSError as error:
        print(f"permix: {_explain(error)}", file=sys.stderr)
        sys.exit(1)
