"""The command line: ``permix --help``."""

from __future__ import annotations

import sys
import warnings
from typing import Any


def _in_options(said: Any) -> str:
    """Write a message with options for the arguments it names; those of all commands are alike."""
    from permix.cli.app import model_commands
    from permix.errors import Message

    if isinstance(said, BaseException):
        said = said.args[0] if said.args else said
    if not isinstance(said, Message):
        return str(said)
    return said.as_options(
        {name: flag for command in model_commands() for name, flag in command.flags.items()}
    )


def _show_warning(message: Any, *_: Any, **__: Any) -> None:
    """Write a warning as a user of the command line wants it: what it says, not where it came from."""
    print(f"permix: warning: {_in_options(message)}", file=sys.stderr)


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
    from permix.errors import PermixError

    warnings.showwarning = _show_warning
    try:
        build()()
    except PermixError as error:
        print(f"permix: {_in_options(error)}", file=sys.stderr)
        sys.exit(1)
    except OSError as error:
        print(f"permix: {_explain(error)}", file=sys.stderr)
        sys.exit(1)
