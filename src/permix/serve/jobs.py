"""Jobs: one folder each, with the data, what was asked, and what came of it.

All of a job lies in its folder, so that a server that was killed finds it again: the data, ``job.json``,
what ``permix info`` said (``looked.json``), the output of the command, the fitted model and the report.
"""

from __future__ import annotations

import contextlib
import json
import re
import secrets
import shutil
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import IO, Any

from permix.errors import DataError
from permix.files import atomic_writer, parse_json

VERSION = 1
# The file is being looked at; waits to be started; waits its turn; runs; ended, in one of three ways.
LOOKING, READY, QUEUED, RUNNING, DONE, STOPPED, FAILED = STATES = (
    *("looking", "ready", "queued", "running"),
    *("done", "stopped", "failed"),
)
UNDER_WAY = (QUEUED, RUNNING)
REPORT = "report.html"
# Longer names of files are cut, before their ending.
LONGEST_NAME = 100


@dataclass(frozen=True)
class Job:
    """What is known of a job; a changed one is another object."""

    id: str
    name: str  # of the file, as it is shown
    file: str  # where the data lie, from the job's folder
    created: float
    state: str = LOOKING
    values: dict[str, list[str]] = field(default_factory=dict)  # what the form says, by its fields
    arguments: list[str] = field(default_factory=list)  # of ``permix``, as in ``permix fit mallows …``
    message: str = ""  # what went wrong, or what else is to be known
    began: float | None = None
    ended: float | None = None
    pid: int | None = None  # of the process, while it runs
    cancelled: bool = False

    @property
    def stem(self) -> str:
        """The name of the file without its endings, for what is made of it."""
        return self.name.partition(".")[0] or "data"

    @property
    def fit(self) -> str:
        """The name of the fitted model, which reports take for their title where the data have none."""
        return f"{self.stem}.permix"

    @property
    def model(self) -> str:
        """The model that was asked for; "" if none was."""
        return self.arguments[1] if self.arguments[:1] == ["fit"] else ""


class Jobs:
    """All jobs of a folder. What others may change at the same time is changed by :meth:`change` alone."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._lock = threading.RLock()

    def folder_of(self, key: str) -> Path:
        """Return the folder of a job; ids are checked, so that nothing else is reached."""
        if not re.fullmatch(r"[0-9]{14}-[0-9a-f]{8}", key):
            raise KeyError(key)
        return self.folder / key

    def get(self, key: str) -> Job:
        """Return a job, or raise a KeyError."""
        path = self.folder_of(key) / "job.json"
        try:
            told = parse_json(path.read_bytes())
        except (FileNotFoundError, NotADirectoryError):
            raise KeyError(key) from None
        if told.pop("version", None) != VERSION:
            raise DataError(f"{path} was written by another version of permix")
        wrong = set(told) != {about.name for about in fields(Job)} or told["state"] not in STATES
        if wrong or told["id"] != key:
            raise DataError(f"{path} does not describe a job of permix")
        return Job(**told)

    def all(self) -> list[Job]:
        """Return all jobs, the newest first; folders that hold none are passed over."""
        jobs = []
        for path in sorted(self.folder.iterdir(), reverse=True):
            with contextlib.suppress(KeyError, DataError):
                jobs.append(self.get(path.name))
        return jobs

    def damaged(self) -> list[str]:
        """Return what is wrong with jobs that cannot be read."""
        said = []
        for path in sorted(self.folder.iterdir()):
            try:
                self.get(path.name)
            except KeyError:
                continue
            except DataError as error:
                said.append(str(error))
        return said

    def write(self, job: Job) -> Job:
        """Write a job."""
        with self._lock, atomic_writer(self.folder_of(job.id) / "job.json") as handle:
            handle.write(json.dumps({"version": VERSION, **asdict(job)}, indent=1).encode())
        return job

    def change(self, key: str, *, only: tuple[str, ...] = STATES, **changes: Any) -> Job | None:
        """Change a job that is in one of the states ``only``; return it, or None if it is in another."""
        with self._lock:
            job = self.get(key)
            return self.write(replace(job, **changes)) if job.state in only else None

    @contextlib.contextmanager
    def new(self) -> Iterator[Path]:
        """Yield the folder of a new job, to be filled; it goes if anything fails."""
        key = f"{time.strftime('%Y%m%d%H%M%S', time.gmtime())}-{secrets.token_hex(4)}"
        folder = self.folder_of(key)
        (folder / "data").mkdir(parents=True, mode=0o700)
        try:
            yield folder
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise

    def add(self, folder: Path, name: str, file: Path, **more: Any) -> Job:
        """Write a job whose data lie in its folder already."""
        place = file.relative_to(folder).as_posix()
        return self.write(Job(folder.name, name, place, time.time(), **more))

    def delete(self, key: str) -> bool:
        """Remove a job that is not under way, and everything in its folder."""
        with self._lock:
            if self.get(key).state in UNDER_WAY:
                return False
            folder = self.folder_of(key)
            (folder / "job.json").unlink()  # first: half a folder is no job
            shutil.rmtree(folder)
            return True

    def read_json(self, key: str, name: str) -> Any:
        """Return what a JSON file of a job holds, or None if there is none."""
        try:
            return json.loads((self.folder_of(key) / name).read_bytes())
        except (FileNotFoundError, ValueError):
            return None

    def write_json(self, key: str, name: str, value: Any) -> None:
        """Write a JSON file of a job."""
        with atomic_writer(self.folder_of(key) / name) as handle:
            handle.write(json.dumps(value).encode())

    def text(self, key: str, name: str, most: int = 200_000) -> str:
        """Return the end of a text file of a job, "" if there is none."""
        try:
            with open(self.folder_of(key) / name, "rb") as handle:
                handle.seek(max(handle.seek(0, 2) - most, 0))
                return handle.read().decode("utf-8", "replace")
        except FileNotFoundError:
            return ""

    def has(self, key: str, name: str) -> bool:
        """Say whether a job has a file of this name."""
        return (self.folder_of(key) / name).is_file()


def safe_name(name: str) -> str:
    r"""Return a file name that is one: no folders, nothing hidden, no control characters, not too long.

    Examples
    --------
    >>> [safe_name(name) for name in ("../../etc/passwd", "C:\\temp\\a.csv", ".profile", "", "a\x00b.soi")]
    ['passwd', 'a.csv', 'profile', 'data', 'ab.soi']
    """
    last = re.split(r"[/\\]", name)[-1]
    printable = "".join(
        character for character in last if character.isprintable() and character not in '<>:"|?*'
    )
    kept = printable.strip(" .").lstrip("-") or "data"
    stem, dot, ending = kept.partition(".")
    ending = (dot + ending)[-30:]
    # In bytes: what file systems limit.
    return stem.encode()[:LONGEST_NAME].decode("utf-8", "ignore") + ending


def copy_stream(source: IO[bytes], target: Path) -> int:
    """Write what a stream holds to a new file; return how many bytes."""
    with open(target, "xb") as handle:
        shutil.copyfileobj(source, handle, 2**20)
        return handle.tell()
