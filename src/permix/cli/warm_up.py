"""What ``permix warm-up`` does: compile now, on all processors, what first fits would compile."""

from __future__ import annotations

import time
from collections.abc import Sequence

import typer

from permix.errors import DataError
from permix.kernels import first_runs
from permix.kernels.compile_cache import cache_folder, usable_folder
from permix.runtime.compiling import COMPILING
from permix.runtime.progress import Display
from permix.runtime.telling import tell
from permix.runtime.threads import n_processors


def run_warm_up(models: Sequence[str]) -> None:
    """Compile what the default fits of some models need, of all models if none is named."""
    names = [name for name in first_runs.first_runs() if not models or name.split()[1] in models]
    if not names:
        raise DataError(f"nothing is known of what {', '.join(models)} compiles; its first fit does that")
    if usable_folder() is None:
        raise DataError(f"{cache_folder()} cannot be written, so nothing compiled would be kept")
    began = time.monotonic()
    COMPILING.begin("warm-up")
    try:
        with Display(None):
            for thread in first_runs.start(names, n_processors()):
                while thread.is_alive():  # a join without end could not be interrupted
                    thread.join(0.1)
    except KeyboardInterrupt:
        tell("interrupted; what was compiled is kept")
        raise typer.Exit(130) from None
    finally:
        COMPILING.end("warm-up")
    if not COMPILING.total or COMPILING.done < COMPILING.total:
        raise DataError(f"only {COMPILING.done} of {COMPILING.total or 'all'} functions could be compiled")
    seconds = time.monotonic() - began
    print(f"{COMPILING.done} functions are ready after {seconds:.0f} s, kept in {cache_folder()}")
