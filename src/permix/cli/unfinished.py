"""A fit that was killed after it was saved: the same command finds it, and writes the rest."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from permix.errors import DataError

# Options that change how a command goes, and nothing of what it finds.
OF_THE_RUN = ("force", "quiet", "json", "keep_chains", "n_jobs")


class Mark:
    """A small file beside a fitted model, there from its saving until all other files are written.

    It says which command it was, data included, and what exactly was in each file that it wrote.
    """

    def __init__(self, output: Path, name: str, values: Mapping[str, Any]) -> None:
        self.output, self.path = output, output.with_name(f"{output.name}.unfinished")
        options = sorted((key, str(value)) for key, value in values.items() if key not in OF_THE_RUN)
        data = values["file"]
        # What is no file cannot be read twice: no other command is known to be this one.
        self._command = _digest(data, repr((name, options))) if data.is_file() else None
        said = self._read()
        self._wrote: dict[str, str] = said.get("wrote", {})
        self.ours = [path for path in map(Path, self._wrote) if self._is_unchanged(path)]
        same = self._command is not None and said.get("command") == self._command
        self.is_mine = same and output.resolve() in self.ours

    def _is_unchanged(self, path: Path) -> bool:
        return path.is_file() and _digest(path) == self._wrote[str(path)]

    def _read(self) -> dict[str, Any]:
        """Return what the mark says; refuse a file of its name that is none."""
        if not os.path.lexists(self.path):
            return {}
        said: dict[str, Any] | None
        try:
            said = None if self.path.is_symlink() else json.loads(self.path.read_bytes())
        except (OSError, ValueError, RecursionError):
            said = None
        if (
            not isinstance(said, dict)
            or set(said) != {"command", "wrote"}
            or not isinstance(said["wrote"], dict)
        ):
            raise DataError(
                f"{self.path} is not of permix, which needs this name; move it, or give another --output"
            )
        return said

    def note(self, file: Path, whole: bool) -> None:
        """Say that a file is written, and is not all there is to write; ``whole`` if not interrupted."""
        from permix.files import atomic_writer

        if self._command is not None:
            self._wrote[str(file.resolve())] = _digest(file)
            said = {"command": self._command if whole else "", "wrote": self._wrote}
            with atomic_writer(self.path) as handle:
                handle.write(json.dumps(said).encode())

    def remove(self) -> None:
        """Say that everything is written."""
        self.path.unlink(missing_ok=True)

    def saved_fit(self) -> Any:
        """Return the fit that this command saved before it was killed, or None."""
        from permix.estimators.archive import read_model

        return read_model(self.output)[1] if self.is_mine else None


def _digest(file: Path, more: str = "") -> str:
    with open(file, "rb") as handle:
        return hashlib.sha256(hashlib.file_digest(handle, "sha256").digest() + more.encode()).hexdigest()
