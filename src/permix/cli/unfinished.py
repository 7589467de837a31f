"""A fit that was killed after it was saved: the same command finds it, and says what it found."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

# Options that change how a command goes, and nothing of what it finds.
OF_THE_RUN = ("force", "quiet", "json", "keep_chains", "n_jobs", "progress")


class Mark:
    """A small file beside a fitted model, there from its saving to the end of the command.

    It says which command it was, data included, and what the model's name stood for before.
    """

    def __init__(self, output: Path, name: str, values: Mapping[str, Any]) -> None:
        self.output, self.path = output, output.with_name(f"{output.name}.unfinished")
        options = sorted((key, str(value)) for key, value in values.items() if key not in OF_THE_RUN)
        command = hashlib.sha256(repr((name, options)).encode())
        if values["file"].is_file():  # a pipe cannot be read twice
            with open(values["file"], "rb") as handle:
                command.update(hashlib.file_digest(handle, "sha256").digest())
        self._command = command.hexdigest()
        try:
            self._said = dict(json.loads(self.path.read_bytes()))
        except (OSError, ValueError, TypeError):  # there is none, or something else of that name
            self._said = {}
        self.is_mine = self._said.get("command") == self._command

    def set(self) -> None:
        """Say that the model is about to be saved, and is not all there is to do."""
        from permix.files import atomic_writer

        with atomic_writer(self.path) as handle:
            handle.write(json.dumps({"command": self._command, "before": self._place()}).encode())

    def remove(self) -> None:
        """Say, last of all, that everything was written and shown."""
        sys.stdout.flush()
        self.path.unlink(missing_ok=True)

    def saved_fit(self, settings: Any) -> Any:
        """Return the fit that this command saved before it was killed, or None."""
        from permix.estimators.archive import read_model

        if not self.is_mine or self._place() in (None, self._said.get("before")):
            return None
        _, fit = read_model(self.output)
        found, asked = fit.settings.to_json(), settings.to_json()
        same = all(found.get(name) == asked[name] for name in asked if name not in OF_THE_RUN)
        return fit if same and not getattr(fit, "interrupted", False) else None

    def _place(self) -> list[int] | None:
        about = self.output.stat() if self.output.exists() else None
        return None if about is None else [about.st_ino, about.st_mtime_ns, about.st_size]
