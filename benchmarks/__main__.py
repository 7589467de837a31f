"""Run all benchmarks, or those named: ``python -m benchmarks gibbs kendall --page build/benchmarks.md``."""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import sys
from pathlib import Path

NOT_BENCHMARKS = {"__main__", "page", "timing"}
ABOUT = "Times of permix beside those of others in the same run."


def main() -> None:
    """Print one table per benchmark, and write them to one page."""
    from benchmarks.page import Page
    from permix.cli.output import print_table

    folder = Path(__file__).parent
    known = sorted(
        m.name for m in pkgutil.iter_modules([str(folder)]) if not m.ispkg and m.name not in NOT_BENCHMARKS
    )
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(known)}; default: all")
    parser.add_argument("--page", type=Path, metavar="FILE", help="also write the tables to this page")
    options = parser.parse_args()
    unknown = sorted(set(options.names) - set(known))
    if unknown:
        sys.exit(f"no benchmark {unknown[0]!r}; there are {', '.join(known)}")
    page = Page(options.page, "Benchmarks", ABOUT) if options.page else None
    for name in options.names or known:
        module = importlib.import_module(f"benchmarks.{name}")
        rows = module.run()
        columns = list(rows[0])
        table = (
            f"{name}: {(module.__doc__ or '').splitlines()[0]}",
            columns,
            [[r[c] for c in columns] for r in rows],
        )
        print_table(*table)
        if page is not None:
            page.add(*table)


if __name__ == "__main__":
    main()
