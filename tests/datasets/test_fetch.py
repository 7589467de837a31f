"""Downloads against a server on this machine that is good, damaged, cut short or empty-handed."""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
import threading
import zipfile
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from permix import datasets
from permix.datasets import fetch, registry
from permix.datasets.fetch import DataNotFound, find, obtain
from permix.datasets.registry import Source
from permix.errors import DataError, FileFormatError
from permix.files import read_unpacked

CONTENT = b"3 votes\nfor tea\n"


def _zip(**files):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, raw in files.items():
            archive.writestr(f"inside/{name}", raw)
    return stream.getvalue()


def _tgz(**files):
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        for name, raw in files.items():
            info = tarfile.TarInfo(f"inside/{name}")
            info.size = len(raw)
            archive.addfile(info, io.BytesIO(raw))
    return stream.getvalue()


class _Handler(BaseHTTPRequestHandler):
    pages: dict[str, bytes] = {}  # noqa: RUF012
    cut: set[str] = set()  # noqa: RUF012
    asked: list[str] = []  # noqa: RUF012

    def do_GET(self):
        self.asked.append(self.path)
        raw = self.pages.get(self.path)
        if raw is None:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw[: len(raw) // 2] if self.path in self.cut else raw)

    def log_message(self, *args):
        pass


@pytest.fixture
def server(monkeypatch, tmp_path):
    handler = type("Handler", (_Handler,), {"pages": {}, "cut": set(), "asked": []})
    running = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=running.serve_forever, daemon=True)
    thread.start()
    monkeypatch.delenv("PERMIX_DATA", raising=False)
    monkeypatch.setenv("PERMIX_CACHE", str(tmp_path / "cache"))
    handler.url = f"http://127.0.0.1:{running.server_port}"
    yield handler
    running.shutdown()
    running.server_close()
    thread.join()


def _source(url, **changes):
    source = Source(
        key="tea",
        title="Tea votes",
        size="3",
        license="none",
        citation="nobody",
        homepage="https://example.org",
        url=url,
        files={"inside/votes.txt": hashlib.sha256(CONTENT).hexdigest()},
    )
    return replace(source, **changes)


def _nothing_kept():
    folder = fetch.cache_folder()
    return not folder.exists() or not [path for path in folder.rglob("*") if path.is_file()]


@pytest.mark.parametrize(("name", "pack"), [("tea.zip", _zip), ("tea.tgz", _tgz)])
def test_good_archive_is_checked_kept_and_not_asked_for_again(server, capsys, name, pack):
    archive = pack(**{"votes.txt": CONTENT, "other.txt": b"x"})
    server.pages[f"/{name}"] = archive
    source = _source(f"{server.url}/{name}", checksum=f"md5:{hashlib.md5(archive).hexdigest()}")
    (path,) = obtain(source, "votes.txt")
    assert read_unpacked(path) == CONTENT
    assert path == fetch.cache_folder() / "tea" / "votes.txt"
    assert "downloading" in capsys.readouterr().err
    assert [found.name for found in path.parent.iterdir()] == ["votes.txt"]
    assert obtain(source, "votes.txt") == [path]
    assert server.asked == [f"/{name}"]


def test_single_files_below_a_folder_with_blanks_in_the_name(server):
    server.pages["/datasets/00001%20-%20tea/votes.txt"] = CONTENT
    source = _source(
        f"{server.url}/datasets/", files={"00001 - tea/votes.txt": hashlib.sha256(CONTENT).hexdigest()}
    )
    assert read_unpacked(obtain(source, "votes.txt")[0]) == CONTENT


def test_damaged_member_is_refused(server):
    server.pages["/tea.zip"] = _zip(**{"votes.txt": CONTENT + b"!"})
    with pytest.raises(FileFormatError, match="sha256 checksum"):
        obtain(_source(f"{server.url}/tea.zip"), "votes.txt")
    assert _nothing_kept()


def test_wrong_archive_is_refused_before_it_is_opened(server):
    server.pages["/tea.zip"] = _zip(**{"votes.txt": CONTENT})
    source = _source(f"{server.url}/tea.zip", checksum="md5:" + "0" * 32)
    with pytest.raises(FileFormatError, match="md5 checksum"):
        obtain(source, "votes.txt")
    assert _nothing_kept()


@pytest.mark.parametrize(
    "raw",
    [b"<html>moved</html>", _zip(**{"votes.txt": CONTENT})[:60], b""],
    ids=["page", "cut short", "empty"],
)
def test_what_is_no_archive_is_refused(server, raw):
    server.pages["/tea.zip"] = raw
    with pytest.raises(FileFormatError, match="archive is damaged"):
        obtain(_source(f"{server.url}/tea.zip"), "votes.txt")
    assert _nothing_kept()


def test_archive_without_the_member(server):
    server.pages["/tea.zip"] = _zip(**{"coffee.txt": CONTENT})
    with pytest.raises(FileFormatError, match=r"no file inside/votes\.txt"):
        obtain(_source(f"{server.url}/tea.zip"), "votes.txt")


def test_transfer_cut_short(server):
    server.pages["/tea.zip"] = _zip(**{"votes.txt": CONTENT})
    server.cut.add("/tea.zip")
    with pytest.raises(DataNotFound, match="could not download"):
        obtain(_source(f"{server.url}/tea.zip"), "votes.txt")
    assert _nothing_kept()


def test_not_found_and_no_server(server):
    with pytest.raises(DataNotFound, match="404"):
        obtain(_source(f"{server.url}/tea.zip"), "votes.txt")
    with pytest.raises(DataNotFound, match="could not download"):
        obtain(_source("http://127.0.0.1:9/tea.zip"), "votes.txt")


def test_a_failed_download_says_which_file_goes_where(server, monkeypatch, tmp_path):
    monkeypatch.setenv("PERMIX_DATA", str(tmp_path / "mine"))
    with pytest.raises(DataNotFound) as caught:
        obtain(_source(f"{server.url}/tea.zip"), "votes.txt")
    places = f"into {tmp_path / 'mine' / 'tea'} or {tmp_path / 'cache' / 'tea'}"
    assert f"put votes.txt from the archive (inside/votes.txt) {places}" in str(caught.value)
    with pytest.raises(DataNotFound) as caught:
        obtain(_source(f"{server.url}/datasets/"), "votes.txt")
    assert f"put votes.txt {places}" in str(caught.value)
    server.pages["/tea.zip"] = _zip(**{"votes.txt": CONTENT})
    server.cut.add("/tea.zip")
    with pytest.raises(DataNotFound) as caught:
        obtain(_source(f"{server.url}/tea.zip"), "votes.txt")
    assert places in str(caught.value)


def test_the_documentation_counts_the_preflib_files():
    page = Path(__file__).parents[2] / "docs" / "how-to" / "public-data.md"
    assert f"{len(registry.PREFLIB.members)} PrefLib files" in page.read_text(encoding="utf-8")


def test_too_much_is_refused(server, monkeypatch):
    monkeypatch.setattr(fetch, "MOST_BYTES", 50)
    server.pages["/tea.zip"] = b"x" * 200
    with pytest.raises(FileFormatError, match="more than 50 bytes"):
        obtain(_source(f"{server.url}/tea.zip"), "votes.txt")
    server.pages["/tea.zip"] = _zip(**{"votes.txt": b"0" * 200})  # a small archive of a large file
    monkeypatch.setattr(fetch, "MOST_BYTES", 199)
    monkeypatch.setattr(fetch, "_get", lambda url, by_hand: server.pages["/tea.zip"])
    with pytest.raises(FileFormatError, match=r"votes\.txt holds more than"):
        obtain(_source(f"{server.url}/tea.zip"), "votes.txt")


def test_only_https_leaves_this_machine(server):
    with pytest.raises(DataError, match="https only"):
        obtain(_source("http://example.org/tea.zip"), "votes.txt")


def test_without_any_checksum_nothing_is_kept(server):
    server.pages["/tea.zip"] = _zip(**{"votes.txt": CONTENT})
    with pytest.raises(DataNotFound, match="not found"):
        obtain(_source(f"{server.url}/tea.zip", files={"inside/votes.txt": ""}), "votes.txt")
    assert _nothing_kept()


def test_no_download_when_told_not_to(server):
    source = _source(f"{server.url}/tea.zip")
    with pytest.raises(DataNotFound, match="download=True"):
        obtain(source, "votes.txt", download=False)
    assert server.asked == []


def test_named_folder_goes_before_the_cache_and_gz_is_read(server, monkeypatch, tmp_path):
    (tmp_path / "mine" / "tea").mkdir(parents=True)
    (tmp_path / "mine" / "tea" / "votes.txt.gz").write_bytes(gzip.compress(CONTENT, mtime=0))
    monkeypatch.setenv("PERMIX_DATA", str(tmp_path / "mine"))
    source = _source(None)
    (path,) = obtain(source, "votes.txt")
    assert path.parent == tmp_path / "mine" / "tea"
    assert read_unpacked(path) == CONTENT
    path.write_bytes(gzip.compress(CONTENT, mtime=0)[:-9])
    with pytest.raises(FileFormatError, match="damaged"):
        read_unpacked(path)
    monkeypatch.delenv("PERMIX_DATA")
    assert find(source, "votes.txt") is None


@pytest.mark.parametrize(
    ("load", "words"),
    [
        (datasets.load_jester, "Excel"),
        (datasets.load_apa, "PLMIX"),
        (lambda: datasets.load_preflib("00014-00000001", ".soc"), "No checksum"),
        (lambda: datasets.load_apa(2007), "No checksum"),
    ],
)
def test_what_cannot_be_downloaded_says_what_to_do_and_where(server, tmp_path, load, words):
    with pytest.raises(DataNotFound, match=words) as caught:
        load()
    assert str(tmp_path / "cache") in str(caught.value)
    assert server.asked == []


def test_loader_end_to_end(server, monkeypatch):
    # The real loader of MovieLens on an archive of three ratings, by another registry entry.
    ratings = b"1\t10\t5\t0\n2\t10\t3\t0\n2\t20\t4\t0\n"
    movies = "10|Twelve|x\n20|Twelve|y\n30|Amélie|z\n".encode("latin-1")
    archive = _zip(**{"u.data": ratings, "u.item": movies})
    server.pages["/ml.zip"] = archive
    source = replace(
        registry.MOVIELENS_100K,
        url=f"{server.url}/ml.zip",
        checksum=f"md5:{hashlib.md5(archive).hexdigest()}",
        files={"inside/u.data": "", "inside/u.item": ""},
    )
    monkeypatch.setattr(registry, "MOVIELENS_100K", source)
    loaded = datasets.load_movielens("100k")
    assert np.array_equal(loaded.data.toarray(), [[5, 0], [3, 4]])
    assert loaded.column_names == ("Twelve [10]", "Twelve [20]")
    assert "redistribute" in loaded.license
    assert "redistribute" in repr(loaded)


def test_every_source_can_be_checked_or_says_what_to_do():
    for source in registry.SOURCES.values():
        assert source.license
        assert source.citation
        if source.url is None:
            assert source.manual
        else:
            assert source.url.startswith("https://")
            for name in source.members:
                assert source.checksum is not None or name in source.sha256
        assert all(len(value) == 64 for value in source.sha256.values())


def test_describe_lists_all_sources(server):
    table = datasets.describe()
    assert set(table.index) == set(registry.SOURCES)
    assert table.loc["jester", "files"] == "by hand"
    assert table.loc["sushi", "files"] == "download"
    assert "redistribute" in table.loc["sushi", "license"]


@pytest.mark.parametrize(
    "call",
    [
        lambda: datasets.load_sushi("c"),
        lambda: datasets.load_movielens("10m"),
        lambda: datasets.load_apa(1990),
        lambda: datasets.load_apa(ballots="some"),
        lambda: datasets.load_preflib("1", ".soi"),
        lambda: datasets.load_preflib("00001-00000002", ".xyz"),
    ],
)
def test_refusals(call):
    with pytest.raises(DataError):
        call()
