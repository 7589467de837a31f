"""Where a shard comes from: tuples of plain values, so that nothing but these travels."""

from __future__ import annotations

import dataclasses
import glob
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from permix.data.cleaning import Rules, clean
from permix.data.preferences import Preferences
from permix.data.rankings import Rankings
from permix.errors import DataError, PermixError
from permix.runtime.executors import Executor

Table = Rankings | Preferences
# Options that are rules of cleaning.
RULES = tuple(field.name for field in dataclasses.fields(Rules))
Options = tuple[tuple[str, Any], ...]


class File(NamedTuple):
    """A file or folder that :func:`permix.read` reads, here or at an address of fsspec."""

    path: str
    options: Options

    def __call__(self) -> Table:
        """Read it."""
        from permix.data.io.read_write import read

        with fetched(self.path) as path:
            return read(path, **dict(self.options))


@contextmanager
def fetched(path: str) -> Iterator[str]:
    """Yield the path of a file here, of a copy where it is at an address of fsspec."""
    if "://" not in path:
        yield path
        return
    import fsspec

    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / os.path.basename(path.rstrip("/"))
        with fsspec.open(path, "rb") as remote, copy.open("wb") as local:
            shutil.copyfileobj(remote, local)
        try:
            yield str(copy)
        except PermixError as error:
            raise DataError(str(error).replace(str(copy), path)) from error


class Rows(NamedTuple):
    """Rows of a table that the client has."""

    table: Table

    def __call__(self) -> Table:
        """Return them."""
        return self.table


class Partition(NamedTuple):
    """A partition of a Dask data frame or bag, which is computed where it is needed."""

    delayed: Any
    options: Options

    def __call__(self) -> Table:
        """Compute it, and clean it by the rules among the options."""
        options = dict(self.options)
        rules = {name: options.pop(name) for name in RULES if name in options}
        part = self.computed()
        if hasattr(part, "columns"):
            from permix.data.io.tables import from_frame

            table: Table = from_frame(part, **options)
        else:
            table = Rankings.from_orders([list(order) for order in part], **options)
        return clean(table, **rules) if rules else table

    def computed(self) -> Any:
        """Return what the partition holds."""
        return self.delayed.compute(scheduler="synchronous")


def executor_of(executor: Executor | None, client: Any) -> Executor | None:
    """Return where shards are worked on: as given, or the workers of a client of Dask."""
    if client is None:
        return executor
    if executor is not None:
        raise DataError("give an executor or a client of Dask, not both")
    from permix.runtime.on_dask import OnDask

    return OnDask(client)


def sources_of(
    data: Any, file: Callable[[str], Any], partition: Callable[[Any], Any]
) -> list[tuple[str, Any]]:
    """Return name and source of every shard: ``file(path)`` or ``partition(delayed)``."""
    if hasattr(data, "to_delayed"):
        return [(f"partition {at}", partition(each)) for at, each in enumerate(data.to_delayed())]
    return [(path, file(path)) for path in _paths(data)]


def _paths(data: Any) -> list[str]:
    """Return the paths of all files, those of folders in the order of their names."""
    if isinstance(data, list | tuple):
        return [path for each in data for path in _paths(each)]
    if not isinstance(data, str | os.PathLike):
        raise DataError(
            "read_sharded takes a folder, a pattern, paths, or a Dask data frame or bag, not "
            f"{type(data).__name__}; Sharded.of(table, n) divides a table that is here"
        )
    path = os.fspath(data)
    if "://" in path:
        import fsspec

        files, root = fsspec.core.url_to_fs(path)
        if files.isdir(root):
            found = [name for name in sorted(files.find(root)) if _is_data(Path(name[len(root) :]))]
        else:
            found = sorted(files.glob(root)) if any(sign in root for sign in "*?[") else [root]
        names = [files.unstrip_protocol(name) for name in found]
    elif Path(path).is_dir():
        names = [
            str(each)
            for each in sorted(Path(path).rglob("*"))
            if each.is_file() and _is_data(each.relative_to(path))
        ]
    elif any(sign in path for sign in "*?[") and not Path(path).exists():
        names = [name for name in sorted(glob.glob(path, recursive=True)) if _is_data(Path(Path(name).name))]
    else:
        names = [path]
    if not names:
        raise DataError(f"{path}: there are no files")
    return names


def _is_data(path: Path) -> bool:
    """Say whether a file is data: not hidden, and none of those that writers of Parquet leave beside it."""
    return not any(part.startswith((".", "_")) for part in path.parts)
