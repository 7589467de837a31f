"""Run all benchmarks, or those named: ``python -m benchmarks gibbs kendall``."""

from __future__ import annotations

import importlib
import pkgutil
import sys
from pathlib import Path

NOT_BENCHMARKS = {"__main__", "timing"}


def main() -> None:
    """Print one table per benchmark."""
    from permix.cli.output import print_table

    folder = Path(__file__).parent
    known = sorted(
        m.name for m in pkgutil.iter_modules([str(folder)]) if not m.ispkg and m.name not in NOT_BENCHMARKS
    )
    wanted = sys.argv[1:] or known
    unknown = sorted(set(wanted) - set(known))
    if unknown:
        sys.exit(f"no benchmark {unknown[0]!r}; there are {', '.join(known)}")
    for name in wanted:
        module = importlib.import_module(f"benchmarks.{name}")
        rows = module.run()
        columns = list(rows[0])
        print_table(
            f"{name}: {(module.__doc__ or '').splitlines()[0]}",
            columns,
            [[row[c] for c in columns] for row in rows],
        )


if __name__ == "__main__":
    main()
