"""What steps of a fit came to, in a folder, so that a client that was killed need not do them again.

A fit is the same steps every time: what it draws follows from its seed, and all else from what earlier steps
came to. So it is begun again from its beginning, and finds the results of steps that had ended by what they
are of: the work, its parameters and the data. Files are permix archives: numbers and names, no code.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from permix.errors import DataError, FileFormatError
from permix.files import read_archive, write_archive
from permix.runtime.fingerprint import fingerprint

KIND = "step"
# Of one step; a folder is the user's own.
MOST_BYTES = 2**40
PACKAGE = __name__.partition(".")[0]

Arrays = dict[str, npt.NDArray[Any]]


class Journal:
    """A folder of results of steps, for data that ``about`` names."""

    def __init__(self, folder: Path, about: str) -> None:
        if folder.exists() and not folder.is_dir():
            raise DataError(f"{folder} is a file, and steps are kept in a folder; give another name")
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.about = folder, about
        self.n_found = self.n_made = 0

    def get(self, step: Any, compute: Callable[[], Any]) -> Any:
        """Return what a step came to: out of the folder, or computed and kept there.

        ``step`` holds all that it depends on beside the data; results are plain values, arrays, and tuples.
        """
        from permix import __version__

        path = self.folder / f"step-{fingerprint((__version__, self.about, step))}.permix"
        if path.exists():
            manifest, arrays = read_archive(path, kind=KIND, max_bytes=MOST_BYTES)
            try:
                found = _unpacked(manifest["result"], arrays)
            except (KeyError, TypeError, ValueError, AttributeError, ImportError) as error:
                raise FileFormatError(f"{path}: not a step ({error!r}); delete it.", path) from error
            self.n_found += 1
            return found
        arrays = {}
        packed = _packed(compute(), arrays)
        write_archive(path, {"kind": KIND, "result": packed}, arrays, max_bytes=MOST_BYTES)
        self.n_made += 1
        return _unpacked(packed, arrays)  # as it will be when it is read


def _packed(value: Any, arrays: Arrays) -> Any:
    """Return what JSON holds of a value; its arrays and numbers go into ``arrays``."""
    if value is None or isinstance(value, bool | str):
        return {"value": value}
    if isinstance(value, tuple):
        packed: dict[str, Any] = {"parts": [_packed(each, arrays) for each in value]}
        if hasattr(value, "_fields"):
            packed["type"] = f"{type(value).__module__}:{type(value).__qualname__}"
        return packed
    if isinstance(value, int | float | np.ndarray | np.generic):
        name = f"array{len(arrays)}"
        arrays[name] = np.asarray(value)
        return {"array": name, "number": not isinstance(value, np.ndarray)}
    raise TypeError(f"a {type(value).__name__} is no result that can be kept")


def _unpacked(packed: Any, arrays: Arrays) -> Any:
    if "value" in packed:
        return packed["value"]
    if "array" in packed:
        array = arrays[packed["array"]]
        return array.item() if packed["number"] else array
    parts = tuple(_unpacked(each, arrays) for each in packed["parts"])
    if "type" not in packed:
        return parts
    module, _, name = packed["type"].partition(":")
    if module.split(".")[0] != PACKAGE:
        raise ValueError(f"{packed['type']} is not of permix")
    made = getattr(import_module(module), name)
    if not (isinstance(made, type) and issubclass(made, tuple) and hasattr(made, "_fields")):
        raise ValueError(f"{packed['type']} is no tuple")
    return made(*parts)
