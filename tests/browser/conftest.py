"""A real browser: Debian's Chromium, driven by Playwright; without them these tests are skipped."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import pytest

ARGUMENTS = (
    *("--no-sandbox", "--headless", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    "--disable-dev-shm-usage",  # where shared memory is small, pages of several browsers do not fit into it
)
ROOT = Path(__file__).parents[2]
# How long a page may take that answers at all: on a busy machine, fits compile for minutes.
PATIENCE = 300_000.0  # milliseconds
# How long what is measured may take to stand still: busy browsers draw pages after they say they are loaded.
STILL = 20.0  # seconds


@pytest.fixture(scope="session")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    program = os.environ.get("PERMIX_CHROMIUM") or shutil.which("chromium")
    if program is None:
        pytest.skip("there is no chromium; apt-get install chromium, or set PERMIX_CHROMIUM")
    playwright.expect.set_options(timeout=PATIENCE)
    with playwright.sync_playwright() as running:
        opened = running.chromium.launch(executable_path=program, args=list(ARGUMENTS), timeout=PATIENCE)
        yield opened
        opened.close()


@pytest.fixture(scope="session")
def axe():
    """The text of axe-core, which looks for barriers."""
    named = os.environ.get("PERMIX_AXE")
    places = [Path(named)] if named else [ROOT / "node_modules" / "axe-core" / "axe.min.js"]
    found = next((place for place in places if place.is_file()), None)
    if found is None:
        pytest.skip("there is no axe-core; npm install axe-core, or set PERMIX_AXE to axe.min.js")
    return found.read_text(encoding="utf-8")


class Visit:
    """A page, and what it asked for and complained about."""

    def __init__(self, browser, *, width=1200, scheme="light", javascript=True):
        self.context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, java_script_enabled=javascript
        )
        self.context.set_default_timeout(PATIENCE)
        self.page = self.context.new_page()
        self.said, self.requests, self.crashed = [], [], False
        self.page.on("crash", self._crash)
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))

    def open(self, path):
        """Open a file, or an address of this machine."""
        address = path if str(path).startswith("http:") else Path(path).resolve().as_uri()
        self._here = (address[: address.index("/", 7) + 1],) if address.startswith("http:") else ("file:",)
        self.page.goto(address)
        self.painted()
        return self

    def _crash(self, page):
        self.crashed = True

    def painted(self):
        """Wait until something was drawn: what is pressed before that may be lost."""
        assert still(self.page, "performance.getEntriesByName('first-contentful-paint').length > 0", bool)

    @property
    def elsewhere(self):
        """Requests to anything but the file or server itself and what is written in it."""
        return [url for url in self.requests if not url.startswith((*self._here, "data:"))]

    def wait_for(self, selector):
        """Wait for what a page shows, then for its style sheet and its scripts, which may come later."""
        self.page.wait_for_selector(selector)
        self.page.wait_for_load_state("load")
        self.painted()

    @property
    def fits(self):
        """Whether nothing sticks out to the right, once the page and its style sheet are there."""
        return still(self.page, "document.documentElement.scrollWidth <= window.innerWidth", bool)


@pytest.fixture
def visit(browser):
    made = []

    def opened(path, **options):
        made.append(Visit(browser, **options))
        return made[-1].open(path)

    opened.made = made
    yield opened
    for each in made:
        each.context.close()


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem):
    """Try once more where the machine ended the process of a page, as it may when memory is short."""
    try:
        return (yield)
    except Exception:
        visits = getattr(pyfuncitem.funcargs.get("visit"), "made", [])
        if not any(each.crashed for each in visits):
            raise
    pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames})
    return True


def still(page, script, good):
    """Return what a script says, asked again for a while until that is good."""
    begun = time.monotonic()
    while True:
        page.wait_for_load_state("load")
        answer = page.evaluate(script)
        if good(answer) or time.monotonic() - begun > STILL:
            return answer
        page.wait_for_timeout(500.0)


def violations(page, axe):
    """Return what axe-core finds that is serious, once the page and its style sheet are there."""

    def serious(found):
        return [
            (each["id"], each["nodes"][0]["html"][:200])
            for each in found
            if each["impact"] in ("serious", "critical")
        ]

    page.wait_for_load_state("load")
    page.evaluate(axe)
    run = "async () => (await axe.run(document, {resultTypes: ['violations']})).violations"
    return serious(still(page, run, lambda found: not serious(found)))
