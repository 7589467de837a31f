"""What every test of a page checks would be noticed if it were wrong."""

from __future__ import annotations

import pytest

from tests.browser.conftest import violations

BROKEN = """<!doctype html><html><head><title>x</title></head><body>
<img src="http://127.0.0.1:9/a.png"><p style="color: #ccc; background: #fff; width: 900px">pale and wide</p>
<script>console.error("odd"); nonsense();</script></body></html>"""


def test_a_broken_page_is_noticed(visit, axe, tmp_path):
    (tmp_path / "broken.html").write_text(BROKEN)
    seen = visit(tmp_path / "broken.html", width=390)
    assert seen.elsewhere == ["http://127.0.0.1:9/a.png"]
    assert {"odd", "nonsense is not defined"} <= set(seen.said)
    assert not seen.fits
    found = [rule for rule, _ in violations(seen.page, axe)]
    assert {"color-contrast", "image-alt", "html-has-lang"} <= set(found)


def test_a_page_that_crashed_is_tried_again(visit, tmp_path):
    (tmp_path / "page.html").write_text("<title>x</title><p>words</p>")
    seen = visit(tmp_path / "page.html")
    if len(visit.made) == 1:
        with pytest.raises(Exception, match="ERR_ABORTED"):
            seen.page.goto("chrome://crash")
    assert seen.page.title() == "x"
    assert [each.crashed for each in visit.made] == [True, False]
