"""A page of plain HTML for this machine alone: the server of `browse`, `rate` and `scenarios edit`."""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping
from html import escape
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, HTTPServer, ThreadingHTTPServer
from urllib.parse import parse_qsl, urlsplit

from runtime.errors import PolyrhythmError, UserError

Page = Callable[[str, Mapping[str, str], Mapping[str, str] | None], str]
"""A path, its query and the form that was sent (None: nothing was) in; the page's body out. Raises UserError."""

LONGEST_FORM = 200_000
"""Bytes: seven reasons for each of eight people have room in it."""


def make_server(page: Page, port: int, *, title: str, style: str, takes_forms: bool = False) -> HTTPServer:
    """The server, bound to loopback; with forms it takes one request at a time. Raises UserError for a taken port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:  # the standard library's name
            self._answer(None)

        def do_POST(self) -> None:
            length = self.headers.get("content-length", "")
            if not takes_forms:
                self._send(HTTPStatus.METHOD_NOT_ALLOWED, "<p>This page takes nothing.</p>")
            elif not length.isdecimal() or int(length) > LONGEST_FORM:
                self._send(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"<p>Expected at most {LONGEST_FORM} bytes.</p>")
            else:
                text = self.rfile.read(int(length)).decode("utf-8", errors="replace")
                self._answer(dict(parse_qsl(text, keep_blank_values=True)))

        def _answer(self, sent: Mapping[str, str] | None) -> None:
            host = (self.headers.get("host") or "").rpartition(":")[0] or self.headers.get("host") or ""
            origin = self.headers.get("origin")
            is_foreign = sent is not None and origin is not None and urlsplit(origin).netloc != self.headers.get("host")
            if host not in ("127.0.0.1", "localhost") or is_foreign:  # no page elsewhere reads or sends here
                self._send(HTTPStatus.FORBIDDEN, "<p>This page is for this machine only.</p>")
                return
            parts = urlsplit(self.path)
            try:
                self._send(HTTPStatus.OK, page(parts.path, dict(parse_qsl(parts.query)), sent))
            except UserError as problem:
                self._send(HTTPStatus.NOT_FOUND, f"<p>{escape(str(problem))}</p>")
            except PolyrhythmError as problem:
                self._send(HTTPStatus.INTERNAL_SERVER_ERROR, f"<p>{escape(str(problem))}</p>")

        def _send(self, status: HTTPStatus, body: str) -> None:
            head = f"<!doctype html><html lang='en'><meta charset='utf-8'><title>{escape(title)}</title>"
            data = f"{head}<style>{style}</style>{body}</html>".encode()
            may = "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'"
            self.send_response(status)
            self.send_header("content-type", "text/html; charset=utf-8")
            self.send_header("content-length", str(len(data)))
            self.send_header("content-security-policy", may)
            self.send_header("x-content-type-options", "nosniff")
            self.send_header("referrer-policy", "same-origin")
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the standard library's name
            """Requests are not logged: some hold a person's key."""

    kind = HTTPServer if takes_forms else ThreadingHTTPServer  # a run's file is written by one thread
    try:
        return kind(("127.0.0.1", port), Handler)
    except (OSError, OverflowError) as problem:
        raise UserError(f"--port {port}: cannot be used: {problem}") from problem


def serve(server: HTTPServer, *lines: str) -> int:
    """Print the lines, then serve until Ctrl-C; 0."""
    for number in (signal.SIGINT, signal.SIGTERM):  # a shell's background job begins with Ctrl-C ignored
        signal.signal(number, signal.default_int_handler)
    try:
        print(*lines, sep="\n", flush=True)
        server.serve_forever()
    except KeyboardInterrupt:
        pass
    finally:
        server.server_close()
    return 0
