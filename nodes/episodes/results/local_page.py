"""A page of plain HTML for this machine: the server of `browse`, `rate` and `scenarios edit`, its looks, its turns."""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping, Sequence
from html import escape
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, HTTPServer, ThreadingHTTPServer
from urllib.parse import parse_qsl, urlsplit

from nodes.episodes.dialogue.plan import EpisodePlan
from nodes.episodes.results.show import transcript
from runtime.errors import PolyrhythmError, UserError
from runtime.msgs.episode import Turn
from runtime.operating_system.terminal import signals_of_end

_LOOKS = (
    ":root{color-scheme:light dark;--ground:#fafbfc;--panel:#fff;--line:#d5dbe3;--text:#1c2430;--soft:#55606f;"
    "--link:#0b5cad;"
    "--bad:#a3201a;--seat0:#0b74c4;--seat1:#b25a00;--seat2:#2c7d3f;--seat3:#8a3fb0}"
    "@media(prefers-color-scheme:dark){:root{--ground:#10151d;--panel:#18202b;--line:#344154;--text:#eaeff6;"
    "--soft:#aebace;"
    "--link:#6cd0ff;--bad:#ff8a80;--seat0:#6cd0ff;--seat1:#ffc857;--seat2:#7be495;--seat3:#d9a5ff}}"
    "*{box-sizing:border-box}body{font:16px/1.55 system-ui,sans-serif;margin:1.5rem auto;padding:0 1rem;"
    "background:var(--ground);color:var(--text);overflow-wrap:anywhere}"
    "h1{font-size:1.6rem;margin:.5rem 0}h2{font-size:1.15rem;margin:1.2rem 0 .4rem}a{color:var(--link)}"
    "small{color:var(--soft);font-size:.87rem}.wrong{color:var(--bad)}"
    "button,.button{display:inline-block;padding:.5rem 1.1rem;font:inherit;border:1px solid var(--link);"
    "border-radius:6px;"
    "background:var(--link);color:var(--ground);cursor:pointer;text-decoration:none}"
    "input,textarea,select{font:inherit;padding:.4rem .5rem;border:1px solid var(--line);border-radius:6px;"
    "background:var(--panel);color:inherit}:focus-visible{outline:3px solid var(--link);outline-offset:2px}"
    "section,fieldset{background:var(--panel);border:1px solid var(--line);border-radius:8px;"
    "padding:.8rem 1rem;margin:1rem 0}"
    "p.t{margin:.4rem 0;padding:.1rem 0 .1rem .7rem;border-left:4px solid var(--line)}"
    "p.s0{border-color:var(--seat0)}p.s1{border-color:var(--seat1)}p.s2{border-color:var(--seat2)}"
    "p.s3{border-color:var(--seat3)}"
)
"""What both pages look like, by day and by night; a seat has a colour beside its words, which always name it too."""

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
            head += "<meta name='viewport' content='width=device-width, initial-scale=1'>"
            data = f"{head}<style>{_LOOKS}{style}</style><main>{body}</main></html>".encode()
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


def turns_html(plan: EpisodePlan, turns: Sequence[Turn]) -> str:
    """The turns to read, a paragraph each."""
    lines = []
    for line in transcript(plan, turns):
        seat, name = next(((seat, name) for seat, name in enumerate(plan.names) if f" {name}" in line), (9, ""))
        told = escape(line).replace(escape(name), f"<b>{escape(name)}</b>", 1) if name else escape(line)
        lines.append(f"<p class='t s{seat % 4 if seat < 9 else 9}'>{told}</p>")
    return "".join(lines)


def serve(server: HTTPServer, *lines: str) -> int:
    """Print the lines, then serve until Ctrl-C; 0."""
    for number in signals_of_end():  # a shell's background job begins with Ctrl-C ignored
        signal.signal(number, signal.default_int_handler)
    try:
        print(*lines, sep="\n", flush=True)
        server.serve_forever()
    except KeyboardInterrupt:
        pass
    finally:
        server.server_close()
    return 0
