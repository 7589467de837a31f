"""Who is refused: other names, other pages, no token, too much, and paths that lead elsewhere."""

from __future__ import annotations

import pytest

from tests.serve.conftest import HERE, PORT, TOKEN, wait_while


def test_the_token_becomes_a_cookie_and_leaves_the_address(client_of, tmp_path):
    client = client_of(tmp_path, enter=False, follow_redirects=False)
    assert client.get("/").status_code == 401
    assert client.get("/?token=wrong").status_code == 401
    assert client.get("/?token=%F0%9F%90%88").status_code == 401
    answer = client.get(f"/?token={TOKEN}")
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    cookie = answer.headers["set-cookie"]
    assert f"permix-{PORT}={TOKEN}" in cookie
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert client.get("/").status_code == 200


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/"),
        ("GET", "/static/page.js"),
        ("GET", "/fits/20260101000000-00000000"),
        ("POST", "/files"),
        ("POST", "/examples/election"),
        ("POST", "/fits/20260101000000-00000000/delete"),
    ],
)
def test_nothing_without_the_token(client_of, tmp_path, method, path):
    client = client_of(tmp_path, enter=False)
    assert client.request(method, path).status_code == 401
    client.cookies.set(f"permix-{PORT}", "wrong")
    assert client.request(method, path).status_code == 401
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "host",
    ["evil.example", f"evil.example:{PORT}", "127.0.0.1", f"127.0.0.1:{PORT + 1}", f"127.0.0.1.:{PORT}", ""],
)
def test_other_names_for_this_machine(client_of, tmp_path, host):
    client = client_of(tmp_path)
    assert client.get("/", headers={"host": host, "origin": f"http://{host}"}).status_code == 421
    assert client.get(f"/?token={TOKEN}", headers={"host": host}).status_code == 421


def test_names_under_which_it_listens(client_of, tmp_path):
    client = client_of(tmp_path)
    for name in ("localhost", "[::1]"):
        headers = {
            "host": f"{name}:{PORT}",
            "origin": f"http://{name}:{PORT}",
            "cookie": f"permix-{PORT}={TOKEN}",
        }
        assert client.get("/", headers=headers).status_code == 200


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", f"https://127.0.0.1:{PORT}", "http://127.0.0.1", ""]
)
def test_other_pages(client_of, tmp_path, origin):
    client = client_of(tmp_path)
    for method, path in (("POST", "/examples/birds"), ("GET", "/")):
        assert client.request(method, path, headers={"origin": origin}).status_code == 403
    assert list(tmp_path.iterdir()) == []


def test_a_form_without_an_origin_is_refused(client_of, tmp_path):
    client = client_of(tmp_path)
    del client.headers["origin"]
    assert client.post("/examples/birds").status_code == 403
    assert client.get("/").status_code == 200


def test_other_pages_may_not_embed_anything(client_of, tmp_path):
    client = client_of(tmp_path)
    for site in ("cross-site", "same-site"):  # another port of this machine is the same site
        assert client.get("/static/page.js", headers={"sec-fetch-site": site}).status_code == 403
    assert client.get("/static/page.js", headers={"sec-fetch-site": "same-origin"}).status_code == 200


def test_headers_keep_browsers_careful(client_of, tmp_path):
    client = client_of(tmp_path)
    for path in ("/", "/static/page.css", "/nowhere"):
        headers = client.get(path).headers
        policy = headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self';")
        assert "unsafe" not in policy
        assert "http" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"
    assert client.get("/", headers={"host": "evil.example"}).headers["x-content-type-options"] == "nosniff"


def test_too_large_a_file(client_of, tmp_path):
    client = client_of(tmp_path, limit=1000)
    answer = client.post("/files", files={"file": ("a.csv", b"x" * (2**20 + 2000))})
    assert answer.status_code == 413
    assert "more than the" in answer.text
    assert list(tmp_path.iterdir()) == []


def test_too_large_a_file_that_does_not_say_so(client_of, tmp_path):
    """A body in pieces has no length beforehand; it is refused once it is too long."""
    client = client_of(tmp_path, limit=1000)
    read = 0

    def body():
        nonlocal read
        yield b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.csv"\r\n\r\n'
        for _ in range(64):
            read += 2**18
            yield b"x" * 2**18
        yield b"\r\n--b--\r\n"

    headers = {"content-type": "multipart/form-data; boundary=b", "transfer-encoding": "chunked"}
    answer = client.post("/files", content=body(), headers=headers)
    assert answer.status_code == 413
    assert "permix serve takes" in answer.text
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("../../../etc/passwd", "passwd"),
        ("..\\..\\boot.ini", "boot.ini"),
        ("/etc/shadow", "shadow"),
        ("-o.csv", "o.csv"),
        ("..", "data"),
        ("<script>alert(1)</script>.csv", "script.csv"),
        ("a" * 400 + ".soi", "a" * 100 + ".soi"),
    ],
)
def test_names_of_files_are_names(client_of, tmp_path, looks, name, kept):
    client = client_of(tmp_path)
    answer = client.post("/files", files={"file": (name, b"1,2\n")})
    assert answer.status_code == 200
    (job,) = tmp_path.iterdir()
    assert [path.name for path in (job / "data").iterdir()] == [kept]
    assert "<script>" not in answer.text.replace('<script src="/static/page.js" defer></script>', "")


def test_several_files_are_a_folder(client_of, tmp_path, looks):
    client = client_of(tmp_path)
    answer = client.post("/files", files=[("file", ("a.json", b"{}")), ("file", ("x/b.json", b"{}"))])
    (job,) = tmp_path.iterdir()
    assert sorted(path.name for path in (job / "data" / "files").iterdir()) == ["a.json", "b.json"]
    assert "a.json and 1 more" in answer.text
    twice = client.post("/files", files=[("file", ("a.json", b"{}")), ("file", ("x/a.json", b"{}"))])
    assert twice.status_code == 400
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize(
    "key", ["%2e%2e", "%2e%2e%2fx", "x%00", "20260101000000-0000000g", "20260101000000-00000000"]
)
def test_no_way_out_of_the_folder(client_of, tmp_path, key):
    client = client_of(tmp_path)
    for more in ("", "/status", "/report", "/files/fit.permix", "/files/..%2fjob.json"):
        assert client.get(f"/fits/{key}{more}").status_code == 404


def test_only_results_are_handed_out(client_of, tmp_path, looks):
    client = client_of(tmp_path)
    url = str(client.post("/files", files={"file": ("a.csv", b"1,2\n")}).url).removeprefix(HERE)
    wait_while(client, url, "looking")
    for name in ("job.json", "looked.json", "data", "%2e%2e", "%2e%2e%2fa.csv", "a.permix", "report.html"):
        assert client.get(f"{url}/files/{name}").status_code == 404


def test_a_report_is_shown_as_if_it_came_from_nowhere(client_of, tmp_path, looks):
    from permix.serve.jobs import DONE, Jobs

    client = client_of(tmp_path)
    url = str(client.post("/files", files={"file": ("ballots.csv", b"1,2\n")}).url).removeprefix(HERE)
    wait_while(client, url, "looking")
    (job,) = Jobs(tmp_path).all()
    (tmp_path / job.id / "report.html").write_text("<h1>found</h1>")
    Jobs(tmp_path).change(job.id, state=DONE)
    answer = client.get(f"{url}/report")
    assert answer.text == "<h1>found</h1>"
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("sandbox allow-scripts; default-src 'none';")
    assert "allow-same-origin" not in policy
    assert 'sandbox="allow-scripts"' in client.get(url).text
    saved = client.get(f"{url}/files/report.html")
    assert saved.headers["content-disposition"] == 'attachment; filename="ballots-report.html"'
