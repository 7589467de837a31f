"""The command line: ``permix --help``."""

from __future__ import annotations

import errno
import sys
import warnings
from typing import Any


def _show_warning(message: Any, *_: Any, **__: Any) -> None:
    """Write a warning as a user of the command line wants it: what it says, not where it came from."""
    from permix.errors import Message

    text = message.args[0] if isinstance(message, Warning) and message.args else message
    said = text.as_options() if isinstance(text, Message) else text
    print(f"permix: warning: {said}", file=sys.stderr)


def _explain(error: OSError) -> str:
    """Say what the system refused, without its error numbers."""
    name = error.filename
    if name is None and error.errno in (errno.ENOSPC, errno.EIO):  # of files the name is known
        return f"standard output: {error.strerror}"
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
    """Run the command line; a user's mistake gives one clear message and exit code 1, or 2 for an option."""
    from permix.cli.output import abandon_output, prepare_streams
    from permix.errors import Message, PermixError

    warnings.showwarning = _show_warning
    prepare_streams()
    output, code = sys.stdout, 1
    try:
        try:
            from permix.cli.app import build

            build()()
        finally:
            if sys.stdout is not output:  # Typer puts it aside, without a word, when nobody reads it
                raise BrokenPipeError
            sys.stdout.flush()  # what cannot be written shows here, not in Python's last moments
    except KeyboardInterrupt:  # while commands were still being loaded
        print("permix: interrupted", file=sys.stderr)
        sys.exit(130)
    except PermixError as error:
        text = error.args[0] if error.args else str(error)
        said = text.as_options() if isinstance(text, Message) else text
        code = getattr(error, "exit_code", 1)
    except BrokenPipeError:
        said = "standard output was closed before all was written"
        abandon_output()
    except OSError as error:
        said = _explain(error)
        if error.filename is None:
            abandon_output()
    except MemoryError as error:
        why = f" ({error})" if str(error) else ""
        said = f"there is not enough memory{why}; a smaller file, fewer draws or chains need less"
    except UnicodeEncodeError as error:
        said = (
            f"standard output takes {error.encoding} only, which has no {error.object[error.start]!a}; set "
            "the environment variable PYTHONIOENCODING=utf-8, or write to a file with --output"
        )
    else:
        return
    print(f"permix: {said}", file=sys.stderr)
    sys.exit(code)
