"""Where a shard comes from: tuples of plain values, so that nothing but these travels."""

from __future__ import annotations

import dataclasses
import glob
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from permix.data.cleaning import Rules, clean
from permix.data.preferences import Preferences
from permix.data.rankings import Rankings
from permix.errors import DataError, PermixError
from permix.runtime.executors import Executor, Recipe

Table = Rankings | Preferences
# Options that are rules of cleaning.
RULES = tuple(field.name for field in dataclasses.fields(Rules))
Options = tuple[tuple[str, Any], ...]
LEAVE_OUT = " (a shard; a pattern such as 'folder/*.csv' leaves files out)"


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
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / os.path.basename(_inner(path).rstrip("/"))
        with addresses(path) as fsspec:
            try:
                with fsspec.open(path, "rb") as remote, copy.open("wb") as local:
                    shutil.copyfileobj(remote, local)
            except (FileNotFoundError, KeyError) as error:  # zips raise KeyError
                raise DataError(f"{path}: there is no file") from error
        try:
            yield str(copy)
        except PermixError as error:
            raise DataError(str(error).replace(str(copy), path)) from error


@contextmanager
def addresses(path: str) -> Iterator[Any]:
    """Yield fsspec; what it lacks for an address, or does not know, is said with the address."""
    try:
        import fsspec

        yield fsspec
    except (ImportError, ValueError) as error:
        if isinstance(error, PermixError):
            raise
        raise DataError(f"{path}: {error}; fsspec and its parts read addresses") from error


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
            table = Rankings.from_orders([_order(said, row) for row, said in enumerate(part)], **options)
        return clean(table, **rules) if rules else table

    def computed(self) -> Any:
        """Return what the partition holds."""
        return self.delayed.compute(scheduler="synchronous")


def _order(said: Any, row: int) -> list[Any]:
    """Return one ordering of a bag."""
    if isinstance(said, str | bytes | dict) or not isinstance(said, Iterable):
        raise DataError(f"row {row + 1}: a bag holds lists of items, best first, not {type(said).__name__}")
    return list(said)


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
    if hasattr(data, "to_delayed") and not hasattr(data, "chunks"):  # arrays have no names of items
        return [(f"partition {at}", partition(each)) for at, each in enumerate(data.to_delayed())]
    paths = _paths(data)
    _refuse_repeats(paths)
    return [(path, file(path)) for path in paths]


def looks_at(sources: Sequence[tuple[str, Any]], look: Callable[[Any], Any], token: str) -> list[Recipe]:
    """Return how to look at every shard once."""
    several = len(sources) > 1
    return [
        Recipe(
            f"{token}-facts-{at}",
            name,
            look,
            (source,),
            LEAVE_OUT if several and hasattr(source, "path") else "",
        )
        for at, (name, source) in enumerate(sources)
    ]


def _refuse_repeats(paths: list[str]) -> None:
    """Refuse a file that is given twice, by whatever path or link: its agents would count twice."""
    known: dict[str, str] = {}
    for path in paths:
        file = path if "://" in path else os.path.realpath(path)
        if file in known:
            also = "" if known[file] == path else f", the second time as {path}"
            raise DataError(f"{known[file]} is given twice{also}; each file is one shard")
        known[file] = path


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
        with addresses(path):
            names = _found_at(path)
    elif Path(path).is_dir():
        # Links to folders are not entered, as they may lead back; those to files that are gone are refused.
        names = [
            str(each)
            for each in sorted(Path(path).rglob("*"))
            if (each.is_symlink() or each.is_file()) and _is_data(each.relative_to(path))
        ]
        linked = next((name for name in names if Path(name).is_dir()), None)
        if linked is not None:
            raise DataError(
                f"{linked} is a link to a folder, which is not entered; give both folders in a list"
            )
    elif any(sign in path for sign in "*?[") and not Path(path).exists():
        names = [name for name in sorted(glob.glob(path, recursive=True)) if _is_data(Path(Path(name).name))]
    else:
        names = [path]
    if not names:
        raise DataError(f"{path}: there are no files")
    return names


def _found_at(path: str) -> list[str]:
    """Return the addresses of all files at an address of fsspec, such as ``zip://*.csv::s3://bucket/votes.zip``."""
    import fsspec

    links = path.split("::")
    at = links.index(_inner(path))
    files, root = fsspec.core.url_to_fs("::".join(links[at:]))
    if files.isdir(root):
        found = [name for name in sorted(files.find(root)) if _is_data(Path(name[len(root) :]))]
    else:
        found = sorted(files.glob(root)) if any(sign in root for sign in "*?[") else [root]
    return ["::".join([*links[:at], files.unstrip_protocol(name), *links[at + 1 :]]) for name in found]


def _inner(path: str) -> str:
    """Return the link that names the file, of caches, files within others, and these."""
    return next(link for link in path.split("::") if "://" in link)


def _is_data(path: Path) -> bool:
    """Say whether a file is data: not hidden, and none of those that writers of Parquet leave beside it."""
    return not any(part.startswith((".", "_")) for part in path.parts)
