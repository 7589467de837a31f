"""From a file to a report: what the page does with real commands."""

from __future__ import annotations

import gzip
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from permix.serve import worker
from permix.serve.jobs import DONE, QUEUED, Jobs
from permix.serve.worker import Worker
from tests.serve.conftest import HERE, wait_while
from tests.serve.test_worker import wait_for

HOSTILE = ("<script>alert(1)</script>", "שלום", "🍵" * 3, "x" * 300)
FIT = "votes.permix"
ORDERS = ("1,2,3,4", "1,2,4,3", "2,1,3,4", "4,3,2,1", "4,3,1,2", "3,4,2,1")


def votes(names=HOSTILE) -> bytes:
    lines = [f"# ALTERNATIVE NAME {k + 1}: {name}" for k, name in enumerate(names)]
    head = ["# DATA TYPE: soc", f"# NUMBER ALTERNATIVES: {len(names)}", *lines]
    return "\n".join([*head, *(f"{3 + k}: {order}" for k, order in enumerate(ORDERS))]).encode() + b"\n"


def upload(client, name, content) -> str:
    answer = client.post("/files", files={"file": (name, content)})
    assert answer.status_code == 200
    url = str(answer.url).removeprefix(HERE)
    wait_while(client, url, "looking")
    return url


def ask(client, url, **values) -> None:
    fields = {name.replace("__", "."): value for name, value in values.items()}
    assert client.post(url, data=fields).status_code == 200


def test_from_a_file_to_a_report(client_of, tmp_path):
    with client_of(tmp_path) as client:
        url = upload(client, "votes.soc", votes())
        page = client.get(url).text
        assert "33 agents, 4 items" in page
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
        ask(
            client,
            url,
            form="votes",
            model="mallows",
            mallows__n_components="2",
            mallows__n_init="1",
            do="fit",
        )
        wait_while(client, url, "queued", "running")
        page = client.get(url).text
        assert f'src="{url}/report"' in page, page
        report = client.get(f"{url}/report").text
        for text in (page, report):
            assert "<script>alert" not in text
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in report
        fit = client.get(f"{url}/files/votes.permix")
        assert fit.content.startswith(b"PK")
        assert 'filename="votes.permix"' in fit.headers["content-disposition"]
        # A fitted model, given back, is described.
        given = client.post("/files", files={"file": ("colleague.permix", fit.content)})
        url_of_given = str(given.url).removeprefix(HERE)
        wait_while(client, url_of_given, "queued", "running")
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in client.get(f"{url_of_given}/report").text
        # Earlier fits are found again, and their data may be fitted in another way.
        assert url in client.get("/").text
        again = str(client.post(f"{url}/again").url).removeprefix(HERE)
        wait_while(client, again, "looking")
        assert 'name="mallows.n_components" value="2"' in client.get(again).text
        assert client.post(f"{again}/delete").status_code == 200
        assert client.get(again).status_code == 404
        assert client.get(url).status_code == 200


def test_what_an_error_asks_is_asked_and_answered(client_of, tmp_path):
    lines = "\n".join(f"p{k % 9},q{k % 7},{k % 4}" for k in range(60))
    with client_of(tmp_path) as client:
        url = upload(client, "marks.csv", f"pupil,task,mark\n{lines}\n".encode())
        ask(client, url, form="votes", votes__layout="pairs", do="look")
        wait_while(client, url, "looking")
        page = client.get(url).text
        assert "It cannot be read like this" in page
        assert re.search(r'<button class="main" name="do" value="fit" disabled>', page)
        ask(
            client,
            url,
            form="matrix",
            matrix__row="pupil",
            matrix__column_of_cell="task",
            matrix__value="mark",
        )
        wait_while(client, url, "looking")
        page = client.get(url).text
        assert "A matrix of 9 rows and 7 columns" in page, page


def test_cleaning_is_shown_with_its_counts(client_of, tmp_path):
    rows = ["Ann,Ann,Bob"] * 4 + ["Bob,overvote,Ann"] * 3 + ["Ann,skipped,Bob"] * 2 + ["Cy,Bob,Ann"]
    with client_of(tmp_path) as client:
        url = upload(client, "ballots.csv", "\n".join(["rank1,rank2,rank3", *rows]).encode())
        page = client.get(url).text
        for found, count, rule in (
            ("candidates ranked again", 4, "repeats"),
            ("overvotes: several candidates at one rank", 3, "overvotes"),
            ("skipped ranks", 2, "skipped"),
        ):
            row = next(row for row in page.split("<tr>") if found in row)
            assert f'<td class="n">{count}</td>' in row
            assert f'<select name="votes.{rule}"' in row
        ask(client, url, form="votes", votes__overvotes="drop", do="look")
        wait_while(client, url, "looking")
        assert "the ballot is left out" in client.get(url).text


def test_bombs_meet_the_limits_of_the_reader(client_of, tmp_path, monkeypatch):
    monkeypatch.setenv("PERMIX_MAX_BYTES", "100000")
    with client_of(tmp_path) as client:
        url = upload(client, "bomb.csv.gz", gzip.compress(b"a,b\n" + b"1,2\n" * 200_000))
        assert "it would unpack to more than 100000 bytes" in client.get(url).text


# Checkpoints as often as possible, so that a kill finds one.
EAGER = """
import sys
from permix.sampling.loop import run_chains
run_chains.__kwdefaults__["checkpoint_seconds"] = 0.0
from permix.cli import main
main()
"""
SERVER = f"""
import sys, time, pathlib
from permix.serve import worker
from permix.serve.jobs import Jobs
worker.PERMIX = (sys.executable, "-P", "-c", {EAGER!r})
worker.Worker(Jobs(pathlib.Path(sys.argv[1]))).start()
time.sleep(600)
"""


def test_a_killed_server_resumes_its_job_to_the_same_bytes(tmp_path, monkeypatch):
    monkeypatch.setattr(worker, "PERMIX", (sys.executable, "-P", "-c", EAGER))
    jobs, undisturbed = Jobs(tmp_path / "killed"), Jobs(tmp_path / "undisturbed")
    options = ["--draws=500", "--burn-in=50", "--chains=1", "--seed=3"]
    made = []
    for one in (jobs, undisturbed):
        with one.new() as folder:
            (folder / "data" / "votes.soc").write_bytes(votes())
            words = ["fit", "dp-mallows", "data/votes.soc", "-o", FIT, "--report", "report.html", "--force"]
            arguments = [*words, *options]
            place = folder / "data" / "votes.soc"
            made.append(one.add(folder, "votes.soc", place, state=QUEUED, arguments=arguments))
    job, other = made
    folder = jobs.folder_of(job.id)
    process = subprocess.Popen([sys.executable, "-c", SERVER, str(jobs.folder)])
    try:
        wait_for(lambda: any(folder.glob(f"{FIT}.chains/**/state.npz")))
        wait_for(lambda: jobs.get(job.id).pid is not None)
    finally:
        process.kill()
        process.wait()
    os.kill(jobs.get(job.id).pid, signal.SIGKILL)
    assert not (folder / FIT).exists()
    ends = []
    for one, key in ((jobs, job.id), (undisturbed, other.id)):
        server = Worker(one)
        server.start()
        wait_for(lambda one=one, key=key: one.get(key).state == DONE)
        server.stop()
        ends.append((one.folder_of(key) / FIT).read_bytes())
    assert "found chains in" in jobs.text(job.id, worker.ERRORS)
    assert ends[0] == ends[1]
    assert Path(folder / "report.html").is_file()


@pytest.mark.parametrize("name", ["starlette", "uvicorn", "python_multipart"])
def test_without_the_extra_the_command_says_what_to_install(monkeypatch, name, tmp_path):
    import importlib.util

    from permix.errors import DataError
    from permix.serve.command import run_serve

    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda asked: None if asked == name else found(asked))
    with pytest.raises(DataError, match=r"pip install 'permix\[serve\]'"):
        run_serve(None, tmp_path / "jobs", True)
    assert not (tmp_path / "jobs").exists()
