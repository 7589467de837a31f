"""Reports in a real browser: nothing loaded, no barrier, narrow screens, strangers' names, paper."""

from __future__ import annotations

import re

import numpy as np
import pytest

import permix
from permix.estimators.registry import MODELS
from permix.reporting.build import reporter
from tests.browser.conftest import still, violations
from tests.estimators.examples import fitted
from tests.every_run import turns_in_every_run
from tests.reporting.test_reports import HOSTILE, votes

pytestmark = pytest.mark.browser
NAMES = sorted(name for name, model in MODELS.items() if reporter(model) is not None)


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reports")
    for name in NAMES:
        permix.report(fitted(name), folder / f"{name}.html", progress=False)
    table = votes(HOSTILE).with_covariates({HOSTILE[0]: [HOSTILE[k % 3] for k in range(40)]})
    model = permix.MallowsMixture(2, n_init=2, random_state=0, progress=False).fit(table)
    permix.report(model, folder / "hostile.html", data=table, title=HOSTILE[0], progress=False)
    return folder


@pytest.mark.parametrize("name", [*NAMES, "hostile"])
def test_nothing_is_loaded_and_nothing_goes_wrong(visit, pages, name):
    seen = visit(pages / f"{name}.html")
    assert seen.said == []
    assert seen.elsewhere == []
    for button in seen.page.locator("th button:visible").all()[:4]:
        button.click()
    assert seen.said == []


@pytest.mark.parametrize(("name", "scheme"), turns_in_every_run([*NAMES, "hostile"], ["light", "dark"]))
def test_no_serious_barrier(visit, pages, axe, name, scheme):
    seen = visit(pages / f"{name}.html", scheme=scheme)
    for closed in seen.page.locator("summary").all():
        closed.click()
    assert violations(seen.page, axe) == []


@pytest.mark.parametrize("name", [*NAMES, "hostile"])
def test_a_narrow_screen_does_not_scroll_sideways(visit, pages, name):
    seen = visit(pages / f"{name}.html", width=390)
    for closed in seen.page.locator("summary").all():
        closed.click()
    assert seen.page.evaluate("document.documentElement.scrollWidth") <= 390


def test_who_is_in_a_group_can_be_read_on_a_telephone(visit, pages):
    """Lists of members were beyond the right edge of their tables."""
    page = visit(pages / "CoClustering.html", width=390).page
    ends = "all => all.map(one => one.getBoundingClientRect()).map(box => [box.left, box.right, box.width])"
    boxes = page.locator("section .scroll > table td.long").evaluate_all(ends)
    shown = [box for box in boxes if box[2] > 0]  # those of closed parts have no place
    assert shown
    assert all(left >= 0 and right <= 390 for left, right, _ in shown)


@pytest.mark.parametrize("name", NAMES)
def test_tables_beside_pictures_are_whole_on_a_wide_screen(visit, pages, name):
    page = visit(pages / f"{name}.html", width=1200).page
    cut = "all => all.filter(one => one.scrollWidth > one.clientWidth + 1).map(one => one.ariaLabel)"
    assert page.locator(".beside .scroll:not(.picture)").evaluate_all(cut) == []


def test_names_from_strangers_run_nothing(visit, pages):
    seen = visit(pages / "hostile.html")
    asked = []
    seen.page.on("dialog", lambda dialog: (asked.append(dialog.message), dialog.dismiss()))
    seen.page.reload()
    assert asked == []
    assert seen.page.title().startswith("<script>alert(1)</script>")
    assert seen.page.locator("h1").inner_text() == HOSTILE[0]
    assert seen.page.locator("img, iframe").count() == 0


def test_readable_without_javascript(visit, pages):
    seen = visit(pages / "MallowsMixture.html", javascript=False)
    assert seen.page.locator("h2").first.inner_text() == "The answer"
    assert seen.page.locator("svg").first.is_visible()
    assert seen.page.locator("button").count() == 0


def test_tables_can_be_sorted_and_searched(visit, pages):
    table = votes([f"item {k:02}" for k in range(16)])
    model = permix.MallowsMixture(1, n_init=1, random_state=0, progress=False).fit(table)
    permix.report(model, pages / "long.html", data=table, checks=False)
    page = visit(pages / "long.html").page
    long = page.locator("table", has=page.locator("caption", has_text="Where each item stands")).first
    long.locator("th button").first.click()
    first = [text.strip() for text in long.locator("tbody th").all_inner_texts()]
    assert first == sorted(first)
    long.locator("th button").nth(1).click()
    places = np.array([int(text) for text in long.locator("tbody td").all_inner_texts()])
    assert (np.diff(places) >= 0).all()
    page.locator(".search input").first.fill("item 07")
    assert long.locator("tbody th:visible").all_inner_texts() == ["item 07"]


def test_it_prints(visit, pages, tmp_path):
    page = visit(pages / "MallowsMixture.html").page
    page.emulate_media(media="print")
    assert not page.locator("nav").is_visible()
    paper = page.pdf(format="A4")
    assert paper.startswith(b"%PDF")
    assert len(paper) > 20_000


def test_the_first_stop_of_the_keyboard_skips_to_the_answer(visit, pages):
    from playwright.sync_api import expect

    page = visit(pages / "MallowsMixture.html").page
    focused = "document.activeElement.textContent"
    for _ in range(3):  # a busy browser may lose a key: a page that was opened anew has none behind it
        page.keyboard.press("Tab")
        if still(page, focused, lambda text: text == "Skip to the answer") == "Skip to the answer":
            break
        page.reload()
    assert page.evaluate(focused) == "Skip to the answer"
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("#main$"))
    expect(page.locator("main")).to_be_focused()
