"""The command line: ``permix --help``."""

from __future__ import annotations

import sys
import warnings
from typing import Any


def _show_warning(message: Any, *_: Any, **__: Any) -> None:
    """Write a warning as a user of the command line wants it: what it says, not where it came from."""
    print(f"permix: warning: {message}", file=sys.stderr)


def main() -> None:
    """Run the command line; a user's mistake gives one clear message and exit code 1."""
    from permix.cli.app import app
    from permix.errors import PermixError

    warnings.showwarning = _show_warning
    try:
        app()
    except (PermixError, OSError) as error:
        print(f"permix: {error}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        print("permix: interrupted", file=sys.stderr)
        sys.exit(130)
