"""A real HTTP server on a port of its own that speaks the audio API as a test wants it: /v1/audio/transcriptions."""

from __future__ import annotations

import io
import json
import threading
import wave
from collections.abc import Callable
from dataclasses import dataclass
from email.message import Message
from email.parser import BytesParser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Asked:
    """One request as the server got it."""

    fields: dict[str, str]
    seconds: float  # of sound
    samples: bytes
    key: str


Answer = Callable[[Asked], tuple[int, bytes]]


class FakeSpeech:
    """`with FakeSpeech(says("Ouch!")) as server:` then `server.url` and `server.asked`."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.asked: list[Asked] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:  # the library's name
                body = self.rfile.read(int(self.headers["content-length"]))
                code, answer = 404, b"{}"
                if self.path == "/v1/audio/transcriptions":
                    asked = _read(self.headers["content-type"], body, self.headers.get("authorization", ""))
                    outer.asked.append(asked)
                    code, answer = outer.answer(asked)
                self.send_response(code)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the library's name
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})

    def __enter__(self) -> FakeSpeech:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(60)


def says(*texts: str) -> Answer:
    """These, one after the other; the last one for ever."""
    left = list(texts)

    def answer(asked: Asked) -> tuple[int, bytes]:
        text = left.pop(0) if len(left) > 1 else left[0]
        return 200, json.dumps({"text": text}).encode()

    return answer


def _read(content_type: str, body: bytes, key: str) -> Asked:
    message = BytesParser().parsebytes(b"Content-Type: " + content_type.encode() + b"\r\n\r\n" + body)
    fields: dict[str, str] = {}
    samples = b""
    for part in message.get_payload():
        assert isinstance(part, Message)
        name = str(part.get_param("name", header="content-disposition"))
        value = part.get_payload(decode=True)
        assert isinstance(value, bytes)
        if name != "file":
            fields[name] = value.decode()
            continue
        with wave.open(io.BytesIO(value)) as file:
            assert (file.getframerate(), file.getnchannels(), file.getsampwidth()) == (16_000, 1, 2)
            samples = file.readframes(file.getnframes())
    return Asked(fields, len(samples) / 32_000, samples, key)
