"""Jobs run one after another, can be stopped, and go on after the server was killed."""

from __future__ import annotations

import os
import signal
import sys
import textwrap
import time
from pathlib import Path

import pytest

from permix.serve import worker
from permix.serve.jobs import DONE, FAILED, QUEUED, RUNNING, STOPPED, Jobs
from permix.serve.worker import Worker, last_words

# A command that works until it is told to end: it notes what it was told, and keeps what was done.
PATIENT = """
import pathlib, signal, sys, time
def told(number, frame):
    pathlib.Path("told").write_text(str(int(number)))
    if "stubborn" in sys.argv and number == signal.SIGINT: return
    pathlib.Path("x.permix").write_text("half")
    sys.exit(130)
signal.signal(signal.SIGINT, told)
signal.signal(signal.SIGTERM, told)
pathlib.Path("here").touch()
while not pathlib.Path("enough").exists(): time.sleep(0.01)
for name in ("x.permix", "report.html"): pathlib.Path(name).write_text("whole")
"""


@pytest.fixture
def jobs(tmp_path, monkeypatch):
    monkeypatch.setattr(worker, "PERMIX", (sys.executable, "-I", "-S", "-c", PATIENT))
    monkeypatch.setattr(worker, "POLL_SECONDS", 0.01)
    monkeypatch.setattr(worker, "PATIENCE_SECONDS", 0.3)
    return Jobs(tmp_path)


@pytest.fixture
def working(jobs):
    """Return a function that starts a worker; all end with the test."""
    started = []

    def start() -> Worker:
        started.append(Worker(jobs))
        started[-1].start()
        return started[-1]

    yield start
    for one in started:
        one.stop()


def add(jobs, *arguments, state=QUEUED):
    with jobs.new() as folder:
        return jobs.add(folder, "x", folder / "data", state=state, arguments=list(arguments))


def wait_for(condition):
    end = time.monotonic() + 60.0
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def state_of(jobs, job):
    return jobs.get(job.id).state


def test_jobs_run_in_turn_and_end(jobs, working):
    first, second = add(jobs), add(jobs)
    here = {job.id: jobs.folder_of(job.id) / "here" for job in (first, second)}
    working()
    wait_for(lambda: any(path.exists() for path in here.values()))
    time.sleep(0.05)
    assert sum(path.exists() for path in here.values()) == 1
    for job in (first, second):
        (jobs.folder_of(job.id) / "enough").touch()
    for job in (first, second):
        wait_for(lambda job=job: state_of(jobs, job) == DONE)
        told = jobs.get(job.id)
        assert told.began <= told.ended
        assert told.pid is None


def test_cancelling_is_a_ctrl_c_and_what_was_done_is_kept(jobs, working):
    job = add(jobs)
    one = working()
    wait_for((jobs.folder_of(job.id) / "here").exists)
    one.cancel(job.id)
    wait_for(lambda: state_of(jobs, job) == STOPPED)
    assert jobs.text(job.id, "told") == str(int(signal.SIGINT))
    assert jobs.text(job.id, "x.permix") == "half"


def test_what_does_not_listen_is_terminated(jobs, working):
    job = add(jobs, "stubborn")
    one = working()
    wait_for((jobs.folder_of(job.id) / "here").exists)
    one.cancel(job.id)
    wait_for(lambda: state_of(jobs, job) == STOPPED)
    assert jobs.text(job.id, "told") == str(int(signal.SIGTERM))


def test_what_waits_its_turn_can_be_cancelled(jobs, working):
    job = add(jobs)
    one = Worker(jobs)
    one.cancel(job.id)
    assert state_of(jobs, job) == STOPPED
    working()
    later = add(jobs)
    one = working()
    wait_for((jobs.folder_of(later.id) / "here").exists)
    assert not (jobs.folder_of(job.id) / "here").exists()


def test_what_fails_says_why(jobs, working, monkeypatch):
    said = 'import sys; print("permix: warning: odd\\npermix: row 3 is empty", file=sys.stderr); sys.exit(1)'
    monkeypatch.setattr(worker, "PERMIX", (sys.executable, "-c", said))
    job = add(jobs)
    working()
    wait_for(lambda: state_of(jobs, job) == FAILED)
    assert jobs.get(job.id).message == "row 3 is empty"


def test_what_is_killed_says_so(jobs, working):
    job = add(jobs)
    working()
    wait_for((jobs.folder_of(job.id) / "here").exists)
    wait_for(lambda: jobs.get(job.id).pid is not None)
    os.kill(jobs.get(job.id).pid, signal.SIGKILL)
    wait_for(lambda: state_of(jobs, job) == FAILED)
    assert "ended by signal 9" in jobs.get(job.id).message


def test_a_server_that_ends_leaves_its_job_to_the_next(jobs):
    job = add(jobs)
    one = Worker(jobs)
    one.start()
    wait_for((jobs.folder_of(job.id) / "here").exists)
    one.stop()
    assert state_of(jobs, job) == RUNNING
    assert jobs.text(job.id, "told") == str(int(signal.SIGTERM))
    (jobs.folder_of(job.id) / "enough").touch()
    another = Worker(jobs)
    another.start()
    wait_for(lambda: state_of(jobs, job) == DONE)
    another.stop()
    assert jobs.text(job.id, "x.permix") == "whole"


# A server that is killed while its job runs: it tells the job's process id and waits.
SERVER = """
import sys, time, pathlib
from permix.serve import worker
from permix.serve.jobs import Jobs
worker.PERMIX = (sys.executable, "-I", "-S", "-c", pathlib.Path(sys.argv[2]).read_text())
worker.Worker(Jobs(pathlib.Path(sys.argv[1]))).start()
time.sleep(600)
"""


def killed_server(jobs: Jobs, job, tmp_path: Path) -> None:
    """Start a server in a process of its own, and kill it while the job runs."""
    import subprocess

    script = tmp_path / "patient.py"
    script.write_text(PATIENT)
    process = subprocess.Popen([sys.executable, "-c", SERVER, str(jobs.folder), str(script)])
    try:
        wait_for((jobs.folder_of(job.id) / "here").exists)
        wait_for(lambda: jobs.get(job.id).pid is not None)
    finally:
        process.kill()
        process.wait()


def test_the_process_of_a_killed_server_is_waited_for(tmp_path, working):
    """It still works: nobody starts a second one."""
    jobs = Jobs(tmp_path / "jobs")
    job = add(jobs)
    killed_server(jobs, job, tmp_path)
    here = jobs.folder_of(job.id) / "here"
    here.unlink()
    one = Worker(jobs)
    one.start()
    time.sleep(0.3)
    assert not here.exists()
    assert state_of(jobs, job) == RUNNING
    (jobs.folder_of(job.id) / "enough").touch()
    wait_for(lambda: state_of(jobs, job) == DONE)
    assert not here.exists()
    one.stop()


def test_the_process_of_a_killed_server_can_be_cancelled(tmp_path):
    jobs = Jobs(tmp_path / "jobs")
    job = add(jobs)
    killed_server(jobs, job, tmp_path)
    one = Worker(jobs)
    one.start()
    one.cancel(job.id)
    wait_for(lambda: state_of(jobs, job) == STOPPED)
    assert jobs.text(job.id, "told") == str(int(signal.SIGINT))
    one.stop()


def test_the_last_words():
    said = """
        permix: warning: something is odd
        Usage: permix fit mallows [OPTIONS] DATA

        Error: --select takes numbers
        permix: warning: more
        """
    assert last_words(textwrap.dedent(said)) == "--select takes numbers"
    assert last_words("") == ""


def test_what_a_command_says_about_its_work():
    said = "permix: stage 1 of 2\nfound chains in x\npermix: warning: odd\npermix: stage 2 of 2\n"
    assert worker.words_of(said) == ["stage 1 of 2", "stage 2 of 2"]
