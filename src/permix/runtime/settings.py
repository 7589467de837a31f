"""The settings every fit has about how it runs, checked in one place and before anything is done."""

from __future__ import annotations

from permix.runtime.progress import checked_progress
from permix.runtime.threads import n_threads


def check_run_settings(n_jobs: object, progress: object) -> None:
    """Refuse an ``n_jobs`` or a ``progress`` that means nothing."""
    n_threads(n_jobs)
    checked_progress(progress)
