"""Reports of every model: the order of sections, strangers' names, the three formats, equal bytes."""

from __future__ import annotations

import dataclasses
import json
import re
from html.parser import HTMLParser
from itertools import pairwise

import numpy as np
import pytest

import permix
from permix.errors import DataError
from permix.estimators.registry import MODELS
from permix.reporting import described, written
from permix.reporting.build import ORDER, answer_of, reporter
from permix.reporting.content import Figure, Paragraph, Table
from permix.reporting.html import _beside
from tests.estimators.examples import EXAMPLES, fitted

NAMES = sorted(name for name, model in MODELS.items() if reporter(model) is not None)
HOSTILE = (
    "<script>alert(1)</script>",
    "\"><img src=x onerror='alert(2)'>",
    "عدالة للجميع",
    "😀 & {{ 7 * 7 }} | `x` *y*",
    "z" * 300,
    "tab\tand\u202eturn\x07",
)


class Page(HTMLParser):
    """What a browser would see: tags, texts, and whether tags are closed."""

    VOID = ("meta", "link", "br", "img", "input")

    def __init__(self, text):
        super().__init__()
        self.tags, self.open, self.texts, self.ids = [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.ids += [value for name, value in attrs if name == "id"]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)

    def all(self, tag):
        return [attrs for name, attrs in self.tags if name == tag]


def blocks(report):
    def of(section):
        yield from section.blocks
        for part in section.sections:
            yield from of(part)

    return [block for section in report.sections for block in of(section)]


@pytest.fixture(scope="module")
def reports():
    """Every model's report, described once."""
    return {name: described(fitted(name), checks=False, progress=False) for name in NAMES}


def test_models_have_reports():
    assert {"MallowsMixture", "DPMallowsMixture"} <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_sections_are_in_order_and_begin_with_the_answer(reports, name):
    report = reports[name]
    keys = [section.key for section in report.sections]
    assert keys == [key for key in ORDER if key in keys]
    assert keys[:3] == ["answer", "trust", "groups"]
    assert {"cleaning", "gaps", "settings"} <= set(keys)
    answer = answer_of(fitted(name)._fit, {})
    brief, *said = report.sections[0].blocks
    assert [block.text for block in said] == list(answer.sentences)
    # Above the answer, in a line, what the section below it begins with.
    trust = report.sections[1].blocks[0]
    assert (brief.key, brief.title) == (report.sections[1].key, report.sections[1].title)
    assert (brief.level, brief.headline, brief.reason) == (trust.level, trust.headline, trust.reasons[0])
    assert report.sections[1].blocks == (answer.verdict,)
    assert answer.verdict.reasons


@pytest.mark.parametrize("name", NAMES)
def test_tables_and_figures_are_whole(reports, name):
    for block in blocks(reports[name]):
        table = block.numbers if isinstance(block, Figure) else block
        if isinstance(table, Table):
            assert all(len(row) == len(table.columns) for row in table.rows), table.caption
            assert not table.shades or [len(row) for row in table.shades] == [len(r) for r in table.rows]
        if isinstance(block, Figure):
            assert block.svg.startswith("<svg")
            assert "<title>" in block.svg
            assert "<desc>" in block.svg
            assert "nan" not in block.svg.lower()


@pytest.mark.parametrize("name", NAMES)
def test_the_page_is_accessible_html_and_needs_nothing_else(reports, name):
    text = written(reports[name], "html")
    page = Page(text)
    assert not page.open
    assert text.startswith("<!DOCTYPE html>")
    assert page.all("html")[0]["lang"] == "en"
    levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch("h[1-6]", tag)]
    assert levels.count(1) == 1
    assert all(b <= a + 1 for a, b in pairwise(levels))
    assert len(page.ids) == len(set(page.ids))
    assert {tag for tag, _ in page.tags} >= {"header", "nav", "main", "footer"}
    assert len(page.all("caption")) == len(page.all("table"))
    assert all(cell.get("scope") in ("col", "row") for cell in page.all("th"))
    for tag, attrs in page.tags:
        assert tag not in ("img", "iframe", "object", "embed")
        for attribute in ("src", "href", "xlink:href", "action"):
            assert attrs.get(attribute, "#").startswith(("#", "data:")), (tag, attrs)
        assert not [key for key in attrs if key.startswith("on")]


@pytest.mark.parametrize("name", NAMES)
def test_formats_have_the_same_content(reports, name):
    report = reports[name]
    told = json.loads(written(report, "json"))
    assert [section["key"] for section in told["sections"]] == [section.key for section in report.sections]
    markdown = written(report, "md")
    plain = re.sub(r"\\(.)", r"\1", markdown).replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    text = " ".join(" ".join(Page(written(report, "html")).texts).split())
    for sentence in answer_of(fitted(name)._fit, {}).sentences:
        assert sentence in plain
        assert sentence in text
        assert sentence in [block.get("text") for block in told["sections"][0]["blocks"]]
    assert markdown.count("\n|---|") == len(
        [block for block in blocks(report) if isinstance(block, Figure | Table)]
    )


@pytest.mark.parametrize("name", NAMES)
def test_the_same_fit_gives_the_same_bytes(reports, name, tmp_path):
    model = fitted(name)
    again = permix.report(model, tmp_path / "r.html", checks=False)
    assert again == written(reports[name], "html")
    assert (tmp_path / "r.html").read_bytes() == again.encode()
    model.save(tmp_path / "f.permix")
    loaded = permix.report(permix.load(tmp_path / "f.permix"), checks=False)
    assert loaded == again


def test_pictures_and_the_tables_that_follow_them_are_side_by_side():
    figure, table = Figure("f", "d", "<svg/>", Table("n", (), ())), Table("t", (), ())
    text = Paragraph("p")
    assert _beside((text, figure, table, table, figure, text)) == [
        (text,),
        (figure, table),
        (table,),
        (figure,),
        (text,),
    ]


def votes(items, n=40, seed=2):
    rng = np.random.default_rng(seed)
    orders = [rng.permutation(len(items)) for _ in range(n)]
    return permix.Rankings.from_orders([[items[i] for i in order] for order in orders])


def test_names_from_strangers_are_text():
    table = votes(HOSTILE).with_covariates({HOSTILE[0]: [HOSTILE[k % 3] for k in range(40)]})
    model = permix.MallowsMixture(2, n_init=2, random_state=0, progress=False).fit(table)
    text = permix.report(model, data=table, checks=False, title=HOSTILE[1])
    page = Page(text)
    assert len(page.all("script")) == 1
    assert not page.all("img")
    assert not [attrs for _, attrs in page.tags if any(key.startswith("on") for key in attrs)]
    seen = "".join(page.texts)
    assert "<script>alert(1)</script>" in seen
    assert "{{ 7 * 7 }}" in seen
    assert "z" * 300 in seen
    assert "\u202e" not in text
    assert "\x07" not in text
    markdown = permix.report(model, data=table, checks=False, format="md")
    assert "<script" not in markdown
    assert "<img" not in markdown
    rows = [line for line in markdown.splitlines() if line.startswith("|")]
    heads = [line for line in rows if set(line) <= set("|-")]
    assert heads
    json.loads(permix.report(model, data=table, checks=False, format="json"))


def test_large_data_stay_under_a_megabyte():
    rng = np.random.default_rng(0)
    made = permix.datasets.make_mallows_mixture(2000, 20, 4, dispersion=0.6, random_state=1)
    counts = rng.integers(1, 100, 2000)
    table = permix.Rankings.from_orders(np.asarray(made.data.orders), counts=counts)
    model = permix.MallowsMixture(6, n_init=1, max_iter=3, random_state=0, progress=False)
    with pytest.warns(permix.errors.ConvergenceWarning):
        model.fit(table)
    text = permix.report(model, data=table, checks=False)
    assert table.n_agents > 90_000
    assert len(text.encode()) < 1_000_000


def test_what_is_missing_is_said(tmp_path):
    model = fitted("MallowsMixture")
    told = permix.report(model, format="md")
    assert "Typical ballots are not shown" in told
    assert "Not checked:" in told
    assert "The command that made this fit is not recorded" in told
    assert "permix.MallowsMixture(n\\_components=2" in told or "permix.MallowsMixture(n_components=2" in told
    data = EXAMPLES["MallowsMixture"].data()
    told = permix.report(model, data=data, format="md")
    assert "The most frequent ballots of group 1" in told
    assert "Not checked" not in told
    with pytest.raises(DataError, match="give the data that were fitted"):
        permix.report(model, data=data[:4])


def test_wrong_names_are_refused(tmp_path):
    model = fitted("MallowsMixture")
    with pytest.raises(DataError, match="reports end in"):
        permix.report(model, tmp_path / "report.doc")
    with pytest.raises(DataError, match="format='pdf' must be"):
        permix.report(model, format="pdf")
    with pytest.raises(DataError, match="not fitted yet"):
        permix.report(permix.MallowsMixture())


def test_palette_has_contrast():
    """Text on every ground of the style sheet has a contrast of 4.5 to 1, in light and in dark."""
    from permix.reporting.html import HERE

    css = (HERE / "style.css").read_text()
    light, dark = re.findall(r":root \{(.*?)\}", css, flags=re.S)[:2]
    for theme in (light, dark):
        color = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{3,6})", theme))
        pairs = [("ink", "page"), ("muted", "page"), ("link", "page"), ("ink", "soft"), ("muted", "soft")]
        pairs += [(ink, box) for box in ("good", "care", "bad") for ink in ("ink", f"{box}-line")]
        pairs += [(f"{kind}t{k}", f"{kind}{k}") for kind in "sd" for k in range(11)]
        low = {pair: contrast(color[pair[0]], color[pair[1]]) for pair in pairs}
        assert not {pair: ratio for pair, ratio in low.items() if ratio < 4.5}


def contrast(one, other):
    def luminance(text):
        digits = text[1:] if len(text) == 7 else "".join(2 * digit for digit in text[1:])
        parts = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_files_of_older_versions_have_reports():
    """Which restarts had a group, and scores of simpler models, were not always kept."""
    fit = fitted("MallowsMixture")._fit
    old = dataclasses.replace(fit, group_matches=np.empty((0, 2)), baselines=None)
    text = permix.report(old, format="md", checks=False)
    assert "Two groups of agents were found among" in text
    assert "found in restarts" not in text
