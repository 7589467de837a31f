"""List the reproductions, or run those named: ``python -m benchmarks.reproduce fig3 table1 --quick``.

``--page FILE`` also writes all tables to one page.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from pathlib import Path

from benchmarks.page import Page
from benchmarks.reproduce.report import run_from_command_line

# Modules that scripts share.
SHARED = (
    "__main__",
    "elections",
    "liang_data",
    "liang_runs",
    "liang_split_merge",
    "likelihoods",
    "movielens",
    "report",
    "sushi",
    "top_lists",
    "wang_shared",
    "xu_shared",
)


def known() -> list[str]:
    """Names of the scripts, one for each figure, table or data set."""
    folder = Path(__file__).parent
    names = [module.name for module in pkgutil.iter_modules([str(folder)])]
    return sorted(name for name in names if name not in SHARED)


def script_named(name: str, scripts: list[str]) -> str:
    """Find a script by its name or the end of it, such as fig3."""
    if name in scripts:
        return name
    found = [script for script in scripts if script.endswith(f"_{name}")]
    if len(found) > 1:
        sys.exit(f"{name!r} may be {' or '.join(found)}; give the whole name")
    if not found:
        sys.exit(f"no reproduction {name!r}; there are {', '.join(scripts)}")
    return found[0]


def main(arguments: list[str]) -> None:
    """Run what is named, with the options that follow; list all where nothing is named."""
    scripts = known()
    n_names = next((at for at, word in enumerate(arguments) if word.startswith("-")), len(arguments))
    names, options = arguments[:n_names], arguments[n_names:]
    page = None
    if "--page" in options:
        at = options.index("--page")
        if at + 1 == len(options):
            sys.exit("--page needs the name of a file")
        page = Page(
            Path(options[at + 1]), "The papers' results", "What the papers print beside what permix finds."
        )
        del options[at : at + 2]
    if not names:
        for script in scripts:
            module = importlib.import_module(f"benchmarks.reproduce.{script}")
            print(f"{script:24}{(module.__doc__ or '').splitlines()[0]}")
        print("\npython -m benchmarks.reproduce NAME [NAME …] [--quick]; all of them: all")
        return
    for script in scripts if names == ["all"] else [script_named(name, scripts) for name in names]:
        module = importlib.import_module(f"benchmarks.reproduce.{script}")
        draw = getattr(module, "draw", None)
        outcome = run_from_command_line(
            module.__doc__, module.Sizes(), module.QUICK, module.run, draw, options
        )
        if page is not None and outcome is not None:
            remarks = [*outcome.remarks, f"{outcome.seconds:.0f} seconds"]
            page.add(f"{script}: {outcome.title}", outcome.columns, outcome.rows, remarks)


if __name__ == "__main__":
    main(sys.argv[1:])
