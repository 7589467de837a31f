"""Who may speak to the page: a browser on this machine that was given the address with its token.

Another website open in the same browser must not read or start anything, whatever name it gives this machine
(DNS rebinding), nor may another user's programs: requests need a cookie that only the printed address sets,
the name under which the server listens, and, where they change something, the page itself as their origin.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from http.cookies import CookieError, SimpleCookie
from typing import Any

from starlette.datastructures import Headers, MutableHeaders, QueryParams
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

# The form with a file may be this much larger than the file itself.
_FORM_BYTES = 2**20
SAFE = ("GET", "HEAD")
# Nothing from elsewhere, no inline scripts or styles, never inside another site's page.
PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
# A report is one file with its style, pictures and a little script inside. It is shown as if it came from
# nowhere: what runs in it can neither read the page and its cookie nor send anything anywhere.
REPORT_POLICY = (
    "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "img-src data:; font-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
)
_HEADERS = {
    "content-security-policy": PAGE_POLICY,
    "x-content-type-options": "nosniff",
    # Not no-referrer: browsers would then send the origin of a form as null.
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


class Guard:
    """Lets requests pass that may, and writes the headers that keep browsers careful."""

    def __init__(self, app: ASGIApp, token: str, port: int, limit: int) -> None:
        self._app, self._token, self._limit = app, token, limit + _FORM_BYTES
        self._hosts = {f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]")}
        self._cookie = f"permix-{port}"  # cookies do not know ports: two servers need two names

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return

        async def careful(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        answer = self._refusal(scope) if scope["type"] == "http" else PlainTextResponse("", 400)
        if answer is not None:
            await answer(scope, receive, careful)
            return
        await self._app(scope, _Limited(receive, self._limit), careful)

    def _refusal(self, scope: Scope) -> Response | None:
        """Return the answer to a request that may not pass, or that only sets the cookie."""
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        if len(hosts) != 1 or hosts[0] not in self._hosts:
            return PlainTextResponse("This server answers under its own address only.\n", 421)
        here = f"http://{hosts[0]}"
        origins = headers.getlist("origin")
        elsewhere = any(origin != here for origin in origins)
        unsafe = scope["method"] not in SAFE
        if elsewhere or (unsafe and not origins):
            return PlainTextResponse("Requests from other pages are refused.\n", 403)
        token = QueryParams(scope["query_string"]).get("token")
        if scope["path"] == "/" and scope["method"] == "GET" and token is not None:
            return self._enter(token)
        if headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
            return PlainTextResponse("Requests from other pages are refused.\n", 403)
        if not self._matches(_cookie(headers.getlist("cookie"), self._cookie)):
            said = "Open the address that permix serve printed; it has a token, which this one lacks.\n"
            return PlainTextResponse(said, 401)
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > self._limit:
            return PlainTextResponse(too_large(self._limit), 413, {"connection": "close"})
        return None

    def _matches(self, token: str) -> bool:
        return secrets.compare_digest(token.encode("utf-8", "replace"), self._token.encode())

    def _enter(self, token: str) -> Response:
        """Exchange the token in the address for a cookie, so that it does not stay in the address."""
        if not self._matches(token):
            said = "This address is of an earlier run; open the one that permix serve printed last.\n"
            return PlainTextResponse(said, 401)
        answer = RedirectResponse("/", 303)
        answer.set_cookie(self._cookie, self._token, httponly=True, samesite="strict")
        return answer


class _Limited:
    """A request body that ends in an error once it is larger than allowed, whatever its headers said."""

    def __init__(self, receive: Receive, limit: int) -> None:
        self._receive, self._left, self._limit = receive, limit, limit

    async def __call__(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.request":
            self._left -= len(message.get("body", b""))
            if self._left < 0:
                raise HTTPException(413, too_large(self._limit), {"connection": "close"})
        return message


def too_large(limit: int) -> str:
    """Say that a request is larger than allowed."""
    return f"This is more than the {(limit - _FORM_BYTES) / 2**20:,.4g} MiB that permix serve takes.\n"


def _cookie(headers: Iterable[str], name: str) -> str:
    for header in headers:
        try:
            found: Any = SimpleCookie(header).get(name)
        except CookieError:
            continue
        if found is not None:
            return str(found.value)
    return ""
