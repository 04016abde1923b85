"""`FormServer`: pages of plain HTML and forms, without a script, that a command makes: for this machine, or a network.

The server of `episodes browse`, `rate` and `scenarios edit`. One request at a time, in the thread that serves.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from html import escape
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

from bridges.web.http.auth import AllowedOrigins, check_bind
from bridges.web.http.lan import LAN, certificate_for, own_names
from bridges.web.http.listener import LIBRARIES, bind
from bridges.web.http.server import STATIC
from runtime.errors import PolyrhythmError, UserError
from runtime.extras import missing

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

AnswerForm = Callable[[str, Mapping[str, str], Mapping[str, str] | None], str]
"""A path, its query and the form that was sent (None: nothing was) in; the page's body out. Raises UserError."""

LONGEST_FORM = 200_000
"""Bytes: seven reasons for each of eight people have room in it."""
MOST_READ_AWAY = 16 * LONGEST_FORM

HEADERS = {
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cache-control": "no-store",
}


class FormServer:
    """Bound when it is made; `url` is where. `host` is an address of this machine, or "lan", by TLS."""

    def __init__(self, answer: AnswerForm, host: str, port: int, *, title: str, style: str, takes_forms: bool) -> None:
        """Raises UserError where the address is taken, or the libraries are not installed."""
        if lacks := missing(LIBRARIES):
            raise UserError(f"the page cannot be served: {lacks}")
        import uvicorn
        from starlette.applications import Starlette
        from starlette.routing import Route

        check_bind(host, "", "")
        self._certificate, key = certificate_for(own_names()) if host == LAN else ("", "")
        self._socket = bind("0.0.0.0" if host == LAN else host, port, "--port 0")
        self.port: int = self._socket.getsockname()[1]
        self._door = AllowedOrigins.of(host, self.port, has_tls=bool(self._certificate))
        shown = own_names()[0] if host == LAN else host
        self.url = f"{'https' if self._certificate else 'http'}://{shown}:{self.port}/"
        self._answer, self._takes_forms = answer, takes_forms
        looks = "".join((STATIC / one).read_text(encoding="utf-8") for one in ("tokens.css", "base.css", "forms.css"))
        self._head = (
            f"<!doctype html><html lang='en'><meta charset='utf-8'><title>{escape(title)}</title>"
            "<meta name='viewport' content='width=device-width, initial-scale=1'>"
            f"<style>{looks}{style}</style><main>"
        )
        application = Starlette(routes=[Route("/{path:path}", self._page, methods=["GET", "POST"])])
        self._server = uvicorn.Server(
            uvicorn.Config(
                application,
                lifespan="off",
                log_config=None,
                access_log=False,  # some addresses hold a person's key
                server_header=False,
                timeout_graceful_shutdown=1,
                ssl_certfile=self._certificate or None,
                ssl_keyfile=key or None,
            )
        )

    def serve(self) -> None:
        """Serve until Ctrl-C, or until `stop`."""
        try:
            asyncio.run(self._server.serve(sockets=[self._socket]))
        except KeyboardInterrupt:
            pass
        finally:
            self._socket.close()

    def stop(self) -> None:
        """End it (any thread)."""
        self._server.should_exit = True

    async def _page(self, request: Request) -> Response:
        sent = None
        host, origin = request.headers.get("host"), request.headers.get("origin")
        is_post = request.method == "POST"
        if not self._door.admits_host(host) or (
            is_post and origin is not None and not self._door.admits_origin(host, origin)
        ):  # no page elsewhere reads or sends here
            return self._reply(403, "<p>This page is for the addresses that the terminal printed.</p>")
        if is_post:
            length = request.headers.get("content-length", "")
            if not self._takes_forms:
                return self._reply(405, "<p>This page takes nothing.</p>")
            if not length.isdecimal() or int(length) > LONGEST_FORM:
                await _read_away(request)
                return self._reply(413, f"<p>Expected at most {LONGEST_FORM} bytes.</p>")
            sent = dict(parse_qsl((await request.body()).decode("utf-8", errors="replace"), keep_blank_values=True))
        try:
            return self._reply(200, self._answer(request.url.path, dict(request.query_params), sent))
        except PolyrhythmError as problem:
            return self._reply(404 if isinstance(problem, UserError) else 500, f"<p>{escape(str(problem))}</p>")

    def _reply(self, status: int, body: str) -> Response:
        from starlette.responses import HTMLResponse

        return HTMLResponse(f"{self._head}{body}</main></html>", status, HEADERS)


async def _read_away(request: Request) -> None:
    """Take in what is sent, up to a bound: who still sends when the answer comes sees a broken link in its place."""
    taken = 0
    async for part in request.stream():
        taken += len(part)
        if taken > MOST_READ_AWAY:
            return
