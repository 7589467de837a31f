"""A page to speak to, without a browser and without a port."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette", reason="needs permix[serve]")
pytest.importorskip("python_multipart", reason="needs permix[serve]")

PORT, TOKEN = 4321, "the-token"
HERE = f"http://127.0.0.1:{PORT}"


@pytest.fixture
def client_of() -> Callable[..., Any]:
    """Return a function that makes a client of a folder of jobs; it has the cookie unless told otherwise."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # which of two HTTP clients the test client prefers
        from starlette.testclient import TestClient

    from permix.serve.app import create_app

    def make(folder: Path, limit: int = 2**20, enter: bool = True, **options: Any) -> Any:
        app = create_app(folder, token=TOKEN, port=PORT, limit=limit)
        client = TestClient(app, base_url=HERE, headers={"origin": HERE}, **options)
        if enter:
            assert client.get(f"/?token={TOKEN}").status_code == 200
        return client

    return make


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Files are not looked at: what would be found is said here."""
    from permix.serve import app

    facts = {"kind": "rankings", "agents": 3, "number_of_items": 2, "first_choices": {"a": 2, "b": 1}}
    told: dict[str, Any] = {"form": "votes", "facts": facts, "error": "", "warnings": []}

    def look(folder: Path, file: str, values: Any) -> dict[str, Any]:
        return {**told, "values": {**values, "form": [told["form"]]}}

    monkeypatch.setattr(app, "look", look)
    return told


def wait_while(client: Any, url: str, *states: str, seconds: float = 120.0) -> dict[str, Any]:
    """Wait until a job is in another state; return its status."""
    end = time.monotonic() + seconds
    while (status := client.get(f"{url}/status").json())["state"] in states:
        assert time.monotonic() < end, status
        time.sleep(0.02)
    return status
