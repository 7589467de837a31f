"""Folders of jobs: written whole, read with care, and gone when they are deleted."""

from __future__ import annotations

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from permix.errors import DataError
from permix.serve.jobs import DONE, LOOKING, READY, RUNNING, Jobs, copy_stream, safe_name


@pytest.fixture
def jobs(tmp_path):
    return Jobs(tmp_path / "jobs")


def add(jobs, **more):
    with jobs.new() as folder:
        copy_stream(io.BytesIO(b"1,2\n"), folder / "data" / "votes.csv")
        return jobs.add(folder, "votes.csv", folder / "data" / "votes.csv", **more)


@given(st.text(max_size=300))
def test_names_stay_in_their_folder(tmp_path_factory, name):
    folder = tmp_path_factory.getbasetemp()
    kept = safe_name(name)
    assert kept == safe_name(kept)
    assert (folder / kept).parent == folder
    assert kept not in ("", ".", "..")
    assert not kept.startswith(("-", "."))
    assert len(kept.encode()) <= 255
    assert not (folder / kept).exists()  # a name that the system takes


def test_a_job_is_what_its_folder_says(jobs):
    job = add(jobs, values={"votes.layout": ["ranks"]})
    assert (job.state, job.file) == (LOOKING, "data/votes.csv")
    assert Jobs(jobs.folder).get(job.id) == job
    assert jobs.folder.stat().st_mode & 0o077 == 0
    changed = jobs.change(job.id, state=READY)
    assert Jobs(jobs.folder).all() == [changed]
    assert jobs.change(job.id, only=(RUNNING,), state=DONE) is None
    assert jobs.get(job.id).state == READY


def test_what_is_no_job_is_passed_over(jobs):
    job = add(jobs)
    (jobs.folder / "server.lock").touch()
    (jobs.folder / "20260101000000-00000000").mkdir()
    assert jobs.all() == [job]
    assert jobs.damaged() == []


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}",
        b"[1]",
        b'{"version": 2}',
        b"\xff",
        lambda told: told | {"state": "nonsense"},
        lambda told: told | {"more": 1},
        lambda told: told | {"id": "20260101000000-00000000"},
    ],
)
def test_damaged_jobs_are_named(jobs, content):
    job = add(jobs)
    path = jobs.folder / job.id / "job.json"
    told = json.loads(path.read_bytes())
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content(told)).encode())
    with pytest.raises(DataError):
        jobs.get(job.id)
    assert jobs.all() == []
    assert len(jobs.damaged()) == 1


def test_files_that_cannot_be_kept_leave_nothing(jobs):
    with pytest.raises(OSError), jobs.new():
        raise OSError("the disk is full")
    assert list(jobs.folder.iterdir()) == []


def test_jobs_under_way_are_not_deleted(jobs):
    job = add(jobs, state=RUNNING)
    assert not jobs.delete(job.id)
    jobs.change(job.id, state=DONE)
    assert jobs.delete(job.id)
    assert list(jobs.folder.iterdir()) == []
    with pytest.raises(KeyError):
        jobs.get(job.id)


@pytest.mark.parametrize("key", ["", "..", "a/../b", "20260101000000-0000000G", "20260101000000-00000000/.."])
def test_ids_are_ids(jobs, key):
    with pytest.raises(KeyError):
        jobs.folder_of(key)
