"""The one process that works for the page: ``permix fit …``, as anybody would run it in the job's folder.

A job's process holds the lock of the job's folder as long as it lives, by a descriptor that it inherits. So a
server that was killed and started again knows whether the process of its predecessor still works, and waits
for it; otherwise it gives the same command again, which goes on from what is on disk.
"""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from permix.runtime.ending import AT_ONCE
from permix.runtime.progress import FILE_VARIABLE
from permix.serve.jobs import DONE, FAILED, QUEUED, REPORT, RUNNING, STOPPED, UNDER_WAY, Job, Jobs

PROGRESS, OUTPUT, ERRORS = "progress.json", "output.txt", "errors.txt"
INTERRUPTED = 130
CTRL_C = signal.SIGINT if os.name == "posix" else signal.SIGTERM  # Windows sends no other to one process
# After Ctrl-C a process has so long to write what was done, and then so long to end at all.
PATIENCE_SECONDS = 20.0
POLL_SECONDS = 0.1
# -P: nothing in the job's folder is taken for a module.
PERMIX = (sys.executable, "-P", "-m", "permix")


def environment(folder: Path) -> dict[str, str]:
    """Return the environment of a job's process."""
    more = {FILE_VARIABLE: str(folder / PROGRESS), "PYTHONIOENCODING": "utf-8", "NO_COLOR": "1"}
    more[AT_ONCE] = "1"  # a server that ends starts its jobs again later
    return {**os.environ, **more}


class Worker:
    """Runs jobs one after another, in the order in which they were asked for."""

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs
        self._queue: queue.Queue[str | None] = queue.Queue()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._work, name="permix-worker", daemon=True)
        self._cancelled: dict[str, float] = {}

    def start(self) -> None:
        """Go on with what was left unfinished, the oldest first, then wait for more."""
        for job in reversed(self._jobs.all()):
            if job.state in UNDER_WAY:
                self._queue.put(job.id)
        self._thread.start()

    def stop(self) -> None:
        """End the process; its job goes on when the server is started again."""
        self._stopping.set()
        self._queue.put(None)
        self._thread.join(2 * PATIENCE_SECONDS)

    def submit(self, key: str) -> None:
        """Let a job wait its turn."""
        self._queue.put(key)

    def cancel(self, key: str) -> None:
        """Stop a job, as Ctrl-C does: what was done is kept."""
        if self._jobs.change(key, only=(QUEUED,), state=STOPPED, cancelled=True, ended=time.time()) is None:
            self._cancelled[key] = time.monotonic()
            self._jobs.change(key, only=(RUNNING,), cancelled=True)

    def _work(self) -> None:
        while (key := self._queue.get()) is not None and not self._stopping.is_set():
            try:
                job = self._jobs.get(key)
            except KeyError:  # deleted meanwhile
                continue
            if job.state in UNDER_WAY:
                try:
                    self._run(job)
                except Exception as error:  # a full disk, a folder that is gone: the next job must not suffer
                    traceback.print_exc()
                    with suppress(KeyError, OSError):
                        self._end(key, FAILED, f"The job could not be run: {error}")

    def _run(self, job: Job) -> None:
        folder = self._jobs.folder_of(job.id)
        with _locked(folder / "lock") as descriptor:
            if descriptor is None:
                self._wait_for_another(job, folder)
                return
            if is_finished(folder, job.fit):  # and nobody was there to note it
                self._end(job.id, DONE, "")
                return
            began = {"began": job.began or time.time(), "message": ""}
            if self._jobs.change(job.id, only=UNDER_WAY, state=RUNNING, **began) is None:
                return  # cancelled a moment ago
            (folder / PROGRESS).unlink(missing_ok=True)
            with open(folder / OUTPUT, "wb") as output, open(folder / ERRORS, "wb") as errors:
                process = subprocess.Popen(
                    [*PERMIX, *job.arguments],
                    cwd=folder,
                    env=environment(folder),
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=errors,
                    start_new_session=True,  # Ctrl-C in the server's terminal is not meant for it
                    pass_fds=() if descriptor < 0 else (descriptor,),
                )
                self._jobs.change(job.id, pid=process.pid)
                code = self._watch(job.id, process)
        if code is not None:
            self._judge(job.id, code)

    def _watch(self, key: str, process: subprocess.Popen[bytes]) -> int | None:
        """Wait for a process; return its exit code, or None if the server ends before it does."""
        told = False
        while True:
            try:
                return process.wait(POLL_SECONDS)
            except subprocess.TimeoutExpired:
                asked = self._cancelled.get(key)
            if self._stopping.is_set():
                process.terminate()  # chains are on disk; the same command goes on from them
                try:
                    process.wait(PATIENCE_SECONDS)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
                return None
            if asked is None:
                continue
            waited = time.monotonic() - asked
            if not told:
                process.send_signal(CTRL_C)
                told = True
            elif waited > 2 * PATIENCE_SECONDS:
                process.kill()
            elif waited > PATIENCE_SECONDS:
                process.terminate()

    def _wait_for_another(self, job: Job, folder: Path) -> None:
        """Wait for the process of a server that was killed; then see what it left, and go on."""
        told = 0
        self._jobs.change(job.id, state=RUNNING)
        while not self._stopping.wait(POLL_SECONDS):
            with _locked(folder / "lock") as descriptor:
                if descriptor is not None:
                    break
            asked = self._cancelled.get(job.id)
            if asked is None or job.pid is None:
                continue
            # The lock is held, so the process of this number is still the one that was started.
            waited = time.monotonic() - asked
            for number, after in ((CTRL_C, 0.0), (signal.SIGTERM, PATIENCE_SECONDS)):
                if waited >= after and told < number:
                    os.kill(job.pid, number)
                    told = number
        else:
            return
        if self._jobs.get(job.id).cancelled:
            self._judge(job.id, INTERRUPTED)
        else:
            self._run(self._jobs.get(job.id))

    def _judge(self, key: str, code: int) -> None:
        """Say how a job ended."""
        said = last_words(self._jobs.text(key, ERRORS))
        self._cancelled.pop(key, None)
        if code == 0:
            self._end(key, DONE, "")
        elif self._jobs.get(key).cancelled or code == INTERRUPTED:
            self._end(key, STOPPED, said)
        else:
            killed = f"The process was ended by signal {-code}; perhaps there was not enough memory."
            self._end(key, FAILED, said if code > 0 and said else killed)

    def _end(self, key: str, state: str, message: str) -> None:
        self._jobs.change(key, state=state, message=message, ended=time.time(), pid=None)


def is_finished(folder: Path, fit: str) -> bool:
    """Say whether a fit was written, with everything that goes with it."""
    rest = (folder / f"{fit}.unfinished", folder / f"{fit}.chains" / "manifest.json")
    return all((folder / name).is_file() for name in (fit, REPORT)) and not any(
        path.exists() for path in rest
    )


def can_go_on(folder: Path, fit: str) -> bool:
    """Say whether a stopped job left chains from which the same command goes on."""
    return (folder / f"{fit}.chains" / "manifest.json").is_file()


def words_of(text: str) -> list[str]:
    """Return what a command said on standard error about its work, warnings left out."""
    own, warned = "permix: ", "permix: warning:"
    lines = (line.strip() for line in text.splitlines())
    return [line.removeprefix(own) for line in lines if line.startswith(own) and not line.startswith(warned)]


def last_words(text: str) -> str:
    """Return the message at the end of what a command wrote to standard error, without its program's name."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    lines = [line for line in lines if not line.startswith("permix: warning:")]
    return (
        lines[-1].removeprefix("permix: ").removeprefix("Error: ").removeprefix("Invalid value: ")
        if lines
        else ""
    )


@contextmanager
def _locked(path: Path) -> Iterator[int | None]:
    """Yield a descriptor that holds a lock as long as any process has it open; None if another does.

    Where the system has no such locks (Windows) the descriptor is -1: there, the process of a killed server
    is found by the lock of its chains, and the job says so.
    """
    try:
        import fcntl
    except ImportError:
        yield -1
        return
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield None
        else:
            yield descriptor
    finally:
        os.close(descriptor)
