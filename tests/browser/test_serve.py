"""The page of ``permix serve`` in a real browser: from a file to a report, for everybody, on any screen."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.browser.conftest import PATIENCE, violations
from tests.every_run import first_in_every_run
from tests.serve.test_flow import HOSTILE, votes

pytest.importorskip("starlette", reason="needs permix[serve]")
TOKEN = "the-token"
BALLOTS = ["Ann,Ann,Bob"] * 4 + ["Bob,overvote,Ann"] * 3 + ["Ann,skipped,Bob"] * 2 + ["Cy,Bob,Ann"]


@pytest.fixture(scope="module")
def site(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server, with its token."""
    import uvicorn

    from permix.serve import worker
    from permix.serve.app import create_app
    from permix.serve.command import listening

    folder = tmp_path_factory.mktemp("jobs")
    with pytest.MonkeyPatch.context() as changed, listening(0) as listener:
        changed.setattr(worker, "PATIENCE_SECONDS", PATIENCE / 1000.0)
        port = listener.getsockname()[1]
        app = create_app(folder, token=TOKEN, port=port, limit=2**20)
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.01)
        yield f"http://127.0.0.1:{port}/?token={TOKEN}"
        server.should_exit = True
        thread.join(30.0)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    (folder / "votes.soc").write_bytes(votes())
    (folder / "ballots.csv").write_text("\n".join(["rank1,rank2,rank3", *BALLOTS]) + "\n")
    (folder / "large.csv").write_bytes(b"1,2\n" * 2**19)
    return folder


@pytest.fixture
def visited(visit: Any) -> Iterator[Any]:
    """Open pages that must load without a word on the console and without a request to any other host."""
    made = []

    def opened(address: str, **options: Any) -> Any:
        made.append(visit(address, **options))
        return made[-1]

    yield opened
    for one in made:
        assert (one.said, one.elsewhere) == ([], [])


def choose(seen: Any, file: Path) -> None:
    """Choose a file, and wait until it was looked at."""
    seen.page.set_input_files("#file", file)
    seen.page.click("text=Look at it")
    seen.wait_for("#recognized")


@contextmanager
def held(page: Any, requests: str) -> Iterator[None]:
    """Leave requests unanswered: a page that cannot ask how far a fit is does not reload by itself."""
    waiting: list[Any] = []
    page.route(requests, lambda route: waiting.append(route))
    yield
    for route in waiting:
        route.continue_()
    page.unroute(requests)


@pytest.mark.parametrize("scheme", first_in_every_run(["light", "dark"]))
def test_from_a_dropped_file_to_a_report(visited, axe, site, files, scheme):
    from playwright.sync_api import expect

    seen = visited(site, scheme=scheme)
    page = seen.page
    assert "token" not in page.url
    assert violations(page, axe) == []
    # Dropped anywhere on the page, as from a file manager.
    transfer = page.evaluate_handle(
        """text => {
            const data = new DataTransfer();
            data.items.add(new File([text], "votes.soc"));
            return data;
        }""",
        (files / "votes.soc").read_text(),
    )
    page.dispatch_event("h1", "drop", {"dataTransfer": transfer})
    seen.wait_for("#recognized")
    assert violations(page, axe) == []
    # Names from a stranger are text.
    assert page.locator(".bars th", has_text=HOSTILE[0]).count() == 1
    page.check("input[value=mallows]")
    page.fill("[name='mallows.select']", "")
    page.fill("[name='mallows.n_components']", "2")
    with held(page, "**/status"):
        page.click("text=Find the groups")
        page.wait_for_selector("[data-status], iframe.report")
        if page.locator("[data-status]").count():
            assert violations(page, axe) == []
    seen.wait_for("iframe.report")  # with what is in it
    report = page.frame_locator("iframe.report")
    report.locator("h1").wait_for()
    assert HOSTILE[0] in report.locator("body").inner_text()
    # What runs in the report is a stranger to the page.
    frame = next(frame for frame in page.frames if frame != page.main_frame)
    assert frame.evaluate("self.origin") == "null"
    assert violations(page, axe) == []
    with page.expect_download() as download:
        page.click("text=Download the fitted model")
    assert Path(download.value.path()).read_bytes().startswith(b"PK")
    page.click("a.brand")
    seen.wait_for(".fits a")
    n_fits = page.locator(".fits a").count()
    assert violations(page, axe) == []
    page.once("dialog", lambda dialog: dialog.dismiss())
    page.locator("text=Delete").first.click()
    assert page.locator(".fits a").count() == n_fits
    page.once("dialog", lambda dialog: dialog.accept())
    page.locator("text=Delete").first.click()
    expect(page.locator(".fits a")).to_have_count(n_fits - 1)


def test_a_narrow_screen(visited, axe, site, files):
    seen = visited(site, width=390, scheme="dark")
    page = seen.page
    # As on a busy machine: the page is there before its style sheet is, and is measured with it.
    page.route("**/page.css", later)
    assert seen.fits
    choose(seen, files / "votes.soc")
    assert seen.fits
    closed = page.locator("details:not([open]) > summary:visible")
    while closed.count():  # those that lie within others appear when these are opened
        closed.first.click()
    assert seen.fits
    assert violations(page, axe) == []


def later(route: Any) -> None:
    """Answer a request after a while."""
    time.sleep(0.5)
    route.continue_()


def test_cleaning_with_counts_and_other_forms(visited, axe, site, files):
    seen = visited(site)
    page = seen.page
    choose(seen, files / "ballots.csv")
    row = page.locator("tr", has_text="candidates ranked again")
    assert "4" in row.locator("td.n").inner_text()
    row.locator("select").select_option("truncate")
    page.click("text=Look again")
    seen.wait_for("tr:has-text('the ballot ends before the second')")
    # Said to be a table, it gets the model of tables, and fields of its own.
    page.check("#form-table")
    assert page.locator("input[name=model]:checked").get_attribute("value") in ("auto", "dp-mixture")
    assert page.locator("[name='votes.layout']").is_visible() is False
    assert violations(page, axe) == []


def test_what_is_too_large_is_not_sent(visited, site, files):
    page = visited(site).page
    page.set_input_files("#file", files / "large.csv")
    page.click("text=Look at it")
    assert "more than the 1 MiB" in page.locator(".wrong").inner_text()
    assert page.locator("h1").inner_text() == "Drop a file"


def test_everything_works_without_javascript(visited, site, files):
    seen = visited(site, javascript=False)
    page = seen.page
    page.set_input_files("#file", files / "votes.soc")
    page.click("text=Look at it")
    seen.wait_for("#recognized")  # the page reloads by itself
    assert page.locator("text=33 agents, 4 items").count() == 1


def test_a_running_fit_can_be_stopped(visited, axe, site, files):
    seen = visited(site)
    page = seen.page
    choose(seen, files / "votes.soc")
    page.check("input[value=dp-mallows]")
    page.click(".model:has(input[value=dp-mallows]) summary")
    page.fill("[name='dp-mallows.n_draws']", "1000000")
    page.fill("[name='dp-mallows.n_chains']", "1")
    page.click("text=Find the groups")
    page.wait_for_selector(".lines li:has-text('chain 1')")
    assert violations(page, axe) == []
    page.click("text=Stop, and keep what was done")
    seen.wait_for("text=Go on where it stopped")
    assert violations(page, axe) == []
