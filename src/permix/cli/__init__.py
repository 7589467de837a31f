"""The command line: ``permix --help``."""

from __future__ import annotations

import atexit
import errno
import gc
import sys
import threading
import warnings
from collections.abc import Mapping
from typing import Any

# What shells say of a command whose output nobody reads any more (128 and the number of SIGPIPE).
PIPE_CLOSED = 141


# Warnings that a command has written: files are looked at more than once.
_SHOWN: set[str] = set()


def show_warning(message: Any, *_: Any, flags: Mapping[str, str] | None = None, **__: Any) -> None:
    """Write a warning, once, as a user of the command line wants it: what it says, not where it came from."""
    from permix.errors import visible
    from permix.runtime.telling import tell

    said = visible(_in_options(message, flags))
    if said not in _SHOWN:
        tell(f"warning: {said}")
    _SHOWN.add(said)


def _in_options(said: Any, flags: Mapping[str, str] | None = None) -> str:
    """Write a message with options for the arguments it names; without ``flags``, those of all commands."""
    from permix.errors import Message

    if isinstance(said, BaseException) and said.args:
        said = said.args[0]
    if not isinstance(said, Message):
        return str(said)
    if flags is None:
        from permix.cli.app import model_commands

        flags = {name: flag for command in model_commands() for name, flag in command.flags.items()}
    return said.as_options(flags)


def _explain(error: OSError) -> str:
    """Say what the system refused, without its error numbers."""
    name = error.filename
    if name is None:  # of files it is known
        lost = error.errno in (errno.ENOSPC, errno.EIO)
        return f"standard output: {error.strerror}" if lost else str(error)
    said = {
        FileNotFoundError: f"there is no file {name}",
        IsADirectoryError: f"{name} is a folder",
        PermissionError: f"no permission to use {name}",
    }
    return said.get(type(error), f"{name}: {error.strerror}")


def main() -> None:
    """Run the command line; a user's mistake gives one clear message and exit code 1, or 2 for an option."""
    from permix.cli.output import abandon_output, prepare_streams
    from permix.errors import PermixError, visible
    from permix.runtime.command import RUNNING
    from permix.runtime.telling import tell

    if threading.current_thread() is threading.main_thread():
        from permix.runtime.ending import treat_ending_as_interrupt

        treat_ending_as_interrupt()
    warnings.showwarning = show_warning
    _SHOWN.clear()
    RUNNING["command"] = True
    prepare_streams()
    # Python's last search for garbage, among all of Numba and scipy, is for nothing: 0.3 s after a fit.
    atexit.register(gc.freeze)
    output, code = sys.stdout, 1
    try:
        try:
            from permix.cli.app import build

            build()()
        finally:
            RUNNING["command"] = False
            if sys.stdout is not output:  # Typer puts it aside, without a word, when nobody reads it
                raise BrokenPipeError
            sys.stdout.flush()  # what cannot be written shows here, not in Python's last moments
    except KeyboardInterrupt:  # while commands were still being loaded
        print("permix: interrupted", file=sys.stderr)
        sys.exit(130)
    except PermixError as error:
        said = _in_options(error)
        code = error.exit_code
    except BrokenPipeError:  # as `| head` does: nobody reads on, and nothing is wrong
        abandon_output()
        sys.exit(PIPE_CLOSED)
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
    tell(visible(said))
    sys.exit(code)
