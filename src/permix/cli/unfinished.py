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
        self._name = name
        self._values = {key: str(value) for key, value in values.items() if key not in OF_THE_RUN}
        self.is_mine = self.path.is_file() and self._content()["command"] == self._said().get("command")

    def set(self) -> None:
        """Say that the model is about to be saved, and is not all there is to do."""
        from permix.files import atomic_writer

        content = self._content()
        with atomic_writer(self.path) as handle:
            handle.write(json.dumps(content).encode())

    def remove(self) -> None:
        """Say, last of all, that everything was written and shown."""
        sys.stdout.flush()
        self.path.unlink(missing_ok=True)

    def saved_fit(self, settings: Any) -> Any:
        """Return the fit that this command saved before it was killed, or None."""
        from permix.estimators.archive import read_model

        if not (self.is_mine and self.output.is_file()) or self._said()["before"] == self._place():
            return None
        _, fit = read_model(self.output)
        found, asked = fit.settings.to_json(), settings.to_json()
        same = all(found.get(name) == asked[name] for name in asked if name not in OF_THE_RUN)
        return fit if same and not getattr(fit, "interrupted", False) else None

    def _said(self) -> dict[str, Any]:
        try:
            said = json.loads(self.path.read_bytes())
        except ValueError:
            return {}
        return said if isinstance(said, dict) else {}

    def _place(self) -> list[int] | None:
        if not self.output.exists():
            return None
        about = self.output.stat()
        return [about.st_ino, about.st_mtime_ns, about.st_size]

    def _content(self) -> dict[str, Any]:
        data = b""
        if Path(self._values["file"]).is_file():  # a pipe cannot be read twice
            with open(self._values["file"], "rb") as handle:
                data = hashlib.file_digest(handle, "sha256").digest()
        command = json.dumps([self._name, self._values, data.hex()], sort_keys=True)
        return {"command": hashlib.sha256(command.encode()).hexdigest(), "before": self._place()}
