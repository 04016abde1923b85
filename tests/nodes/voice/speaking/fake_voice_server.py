"""A real HTTP server on a port of its own that speaks `/v1/audio/speech` as a test wants it: well, or badly."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Asked:
    """One request as the server got it; `is_over` is set when it was answered or the client has gone."""

    body: dict[str, object]
    key: str
    is_over: threading.Event = field(default_factory=threading.Event)


Answer = Callable[[Asked, BaseHTTPRequestHandler], None]


class FakeVoice:
    """`with FakeVoice(speaks(wav(1.0))) as server:` then `server.url` and `server.asked`; the last answer stays."""

    def __init__(self, *script: Answer) -> None:
        self.asked: list[Asked] = []
        self.is_over = threading.Event()
        left = list(script)
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:  # the library's name
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                assert self.path == "/v1/audio/speech"
                asked = Asked(body, self.headers.get("authorization", ""))
                outer.asked.append(asked)
                try:
                    (left.pop(0) if len(left) > 1 else left[0])(asked, self)
                except ConnectionError:
                    self.close_connection = True  # the client went
                finally:
                    asked.is_over.set()

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the library's name
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        vars(self._server)["voice"] = self
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})

    def __enter__(self) -> FakeVoice:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.is_over.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(60)


def speaks(sound: bytes, *, code: int = 200, headers: Mapping[str, str] | None = None) -> Answer:
    """This body, with this status."""

    def answer(asked: Asked, handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(code)
        handler.send_header("content-type", "audio/wav" if code == 200 else "application/json")
        handler.send_header("content-length", str(len(sound)))
        for name, value in (headers or {}).items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(sound)

    return answer


def refuses(code: int, message: str = "no", **headers: str) -> Answer:
    """An error with the API's body."""
    return speaks(json.dumps({"error": {"message": message, "type": "x"}}).encode(), code=code, headers=headers)


def is_silent(asked: Asked, handler: BaseHTTPRequestHandler) -> None:
    """No answer until the test is over, or the client has gone."""
    handler.connection.settimeout(0.05)
    while not vars(handler.server)["voice"].is_over.is_set():
        try:
            if not handler.connection.recv(1):
                break
        except TimeoutError:
            pass
    handler.close_connection = True


def never_ends(asked: Asked, handler: BaseHTTPRequestHandler) -> None:
    """Sound for as long as the client takes it."""
    handler.send_response(200)
    handler.send_header("content-type", "audio/wav")
    handler.end_headers()
    while True:
        handler.wfile.write(bytes(1 << 16))


def breaks_off(asked: Asked, handler: BaseHTTPRequestHandler) -> None:
    """The beginning of an answer, then a closed connection."""
    handler.send_response(200)
    handler.send_header("content-length", "100000")
    handler.end_headers()
    handler.wfile.write(b"RIFF")
    handler.close_connection = True
