"""The command line: ``permix --help``."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping
from typing import Any


def show_warning(message: Any, *_: Any, flags: Mapping[str, str] | None = None, **__: Any) -> None:
    """Write a warning as a user of the command line wants it: what it says, not where it came from."""
    from permix.errors import Message

    text = message.args[0] if isinstance(message, Warning) and message.args else message
    said = text.as_options(flags) if isinstance(text, Message) else text
    print(f"permix: warning: {said}", file=sys.stderr)


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
    from permix.cli.app import build
    from permix.errors import Message, PermixError

    warnings.showwarning = show_warning
    try:
        build()()
    except PermixError as error:
        said = error.args[0] if error.args else error
        print(f"permix: {said.as_options() if isinstance(said, Message) else said}", file=sys.stderr)
        sys.exit(1)
    except OSError as error:
        print(f"permix: {_explain(error)}", file=sys.stderr)
        sys.exit(1)
