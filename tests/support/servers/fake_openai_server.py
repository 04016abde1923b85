"""A real HTTP server on a port of its own that speaks the chat-completions API as a test wants it: well, or badly.

It runs an asyncio loop in a thread. Each request is handled by the next behaviour of the script, the last one for ever.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Self


@dataclass
class Request:
    """One request as the server got it; `hung_up` is set when the client closes before the answer is complete."""

    body: dict[str, Any]
    headers: dict[str, str]
    hung_up: threading.Event = field(default_factory=threading.Event)
    target: str = ""  # a whole URL where the server is asked as a proxy

    @property
    def user_text(self) -> str:
        content = self.body["messages"][-1]["content"]
        return content if isinstance(content, str) else "".join(p["text"] for p in content if p["type"] == "text")

    @property
    def image_urls(self) -> list[str]:
        content = self.body["messages"][-1]["content"]
        if isinstance(content, str):
            return []
        return [part["image_url"]["url"] for part in content if part["type"] == "image_url"]


PATH = "/v1/chat/completions"

Behaviour = Callable[[Request, asyncio.StreamWriter], Awaitable[None]]


class Reader(asyncio.StreamReader):
    """A stream that says when the client has closed, without reading what it sent before."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(limit=1 << 24, loop=loop)
        self.ended = asyncio.Event()

    def feed_eof(self) -> None:
        super().feed_eof()
        self.ended.set()

    def set_exception(self, exc: Exception) -> None:
        super().set_exception(exc)
        self.ended.set()


class FakeOpenAI:
    """`with FakeOpenAI(answers("...")) as server:` then `server.url` and `server.requests`."""

    def __init__(self, *script: Behaviour) -> None:
        self.script = list(script)
        self.requests: list[Request] = []
        self.url = ""
        self._got = threading.Condition()
        self._ready = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()))

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(60)
        return self

    def __exit__(self, *_: object) -> None:
        assert self._loop is not None
        assert self._stop is not None
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(60)
        assert not self._thread.is_alive()

    def wait_for(self, number: int, timeout_s: float = 60.0) -> bool:
        """Wait until so many requests have come."""
        with self._got:
            return self._got.wait_for(lambda: len(self.requests) >= number, timeout_s)

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        tasks: set[asyncio.Task[None]] = set()
        transports: list[asyncio.WriteTransport] = []

        class Connection(asyncio.StreamReaderProtocol):
            def connection_made(self, transport: asyncio.BaseTransport) -> None:
                assert isinstance(transport, asyncio.WriteTransport)
                transports.append(transport)
                super().connection_made(transport)

        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            tasks.add(task)
            try:
                await self._talk(reader, writer)
            except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
                pass  # the client went, or the test is over
            finally:
                tasks.discard(task)
                writer.close()

        loop = self._loop

        def connection() -> asyncio.StreamReaderProtocol:
            return Connection(Reader(loop), connected, loop=loop)

        server = await loop.create_server(connection, "127.0.0.1", 0)
        host, port = server.sockets[0].getsockname()[:2]
        self.url = f"http://{host}:{port}/v1"
        self._ready.set()
        await self._stop.wait()
        loop.remove_reader(server.sockets[0])
        for _ in range(3):  # what was accepted last becomes a connection, which asyncio leaves open once it has closed
            await asyncio.sleep(0)
        server.close()
        for task in tuple(tasks):
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=5)
        for transport in transports:  # also where a task was ended before it began, or nobody reads what is left
            transport.abort()
        await asyncio.sleep(0)

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert isinstance(reader, Reader)
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            if not head:
                return
            first, *lines = head.decode("latin-1").split("\r\n")
            headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in lines if line)}
            data = await reader.readexactly(int(headers.get("content-length", "0")))
            method, target, _ = first.split(" ")
            if (method, target.partition("?")[0][-len(PATH) :]) != (
                "POST",
                PATH,
            ):  # proxies ask for lists of models, too
                writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
                await writer.drain()
                continue
            request = Request(json.loads(data), headers, target=target)
            with self._got:
                self.requests.append(request)
                self._got.notify_all()
            behaviour = self.script.pop(0) if len(self.script) > 1 else self.script[0]
            answering = asyncio.ensure_future(behaviour(request, writer))
            leaving = asyncio.ensure_future(reader.ended.wait())
            try:
                await asyncio.wait({answering, leaving}, return_when=asyncio.FIRST_COMPLETED)
                if leaving.done() and not answering.done():
                    request.hung_up.set()
                    return
                try:
                    await answering
                except ConnectionError:
                    request.hung_up.set()  # noticed by a write before the end of the stream was read
                    return
                if writer.is_closing() or headers.get("connection") == "close":
                    return
                await asyncio.sleep(0)
            finally:
                for task in (answering, leaving):
                    task.cancel()
                    await asyncio.wait({task})


def answers(text: str, *, finish: str = "stop") -> Behaviour:
    """The text as the model's answer, streamed where that is asked for."""

    async def behave(request: Request, writer: asyncio.StreamWriter) -> None:
        if request.body.get("stream"):
            _begin_stream(writer)
            for start in range(0, len(text), 7):
                _chunk(writer, text[start : start + 7], None)
                await writer.drain()
            _chunk(writer, "", finish)
            _piece(writer, b"data: [DONE]\n\n")
            writer.write(b"0\r\n\r\n")
        else:
            _reply(writer, 200, json.dumps(_completion(text, finish)).encode())
        await writer.drain()

    return behave


def says(text_of: Callable[[Request], str]) -> Behaviour:
    """What the function makes of each request, as the model's answer."""

    async def behave(request: Request, writer: asyncio.StreamWriter) -> None:
        await answers(text_of(request))(request, writer)

    return behave


def status(code: int, message: str = "no", error: dict[str, object] | None = None, **headers: str) -> Behaviour:
    """An error of that status with the API's body; `error`: what else stands in it."""

    async def behave(request: Request, writer: asyncio.StreamWriter) -> None:
        body = {"error": {"message": message, "type": "x"} | (error or {})}
        _reply(writer, code, json.dumps(body).encode(), **headers)
        await writer.drain()

    return behave


def sends_to(url: str) -> Behaviour:
    """A redirect that keeps method and body."""
    return status(307, location=f"{url}/chat/completions")


def raw(body: bytes, content_type: str = "application/json") -> Behaviour:
    """Whatever, with status 200."""

    async def behave(request: Request, writer: asyncio.StreamWriter) -> None:
        _reply(writer, 200, body, content_type=content_type)
        await writer.drain()

    return behave


def when(test: Callable[[Request], bool], then: Behaviour, otherwise: Behaviour) -> Behaviour:
    """The one behaviour for requests that pass the test, the other for the rest."""

    async def behave(request: Request, writer: asyncio.StreamWriter) -> None:
        await (then if test(request) else otherwise)(request, writer)

    return behave


def refuses(parameter: str, otherwise: Behaviour) -> Behaviour:
    """A server that does not know this parameter of a request, and says so; without it, the other behaviour."""
    unknown = status(400, f"[{{'type': 'extra_forbidden', 'loc': ('body', '{parameter}'), 'msg': 'not permitted'}}]")
    return when(lambda request: parameter in request.body, unknown, otherwise)


async def silence(request: Request, writer: asyncio.StreamWriter) -> None:
    """No answer, ever."""
    await asyncio.Event().wait()


async def trickle(request: Request, writer: asyncio.StreamWriter) -> None:
    """A stream of one character each 50 ms, until the client hangs up: the pace is what is tested."""
    _begin_stream(writer)
    while True:
        _chunk(writer, "x", None)
        await writer.drain()
        await asyncio.sleep(0.05)


async def half_a_stream(request: Request, writer: asyncio.StreamWriter) -> None:
    """The beginning of an answer, then a closed connection."""
    _begin_stream(writer)
    _chunk(writer, '{"verb": "pu', None)
    await writer.drain()
    writer.close()


async def polite_half_a_stream(request: Request, writer: asyncio.StreamWriter) -> None:
    """A stream that ends as HTTP should, before the answer is complete."""
    _begin_stream(writer)
    _chunk(writer, '{"verb": "pu', None)
    writer.write(b"0\r\n\r\n")
    await writer.drain()


def bytes_once(data: bytes) -> Behaviour:
    """Whatever instead of HTTP, then a closed connection."""

    async def behave(request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(data)
        await writer.drain()
        writer.close()

    return behave


async def half_closed(request: Request, writer: asyncio.StreamWriter) -> None:
    """A head that promises more than comes before the connection is shut."""
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{")
    await writer.drain()
    writer.write_eof()


def _completion(text: str, finish: str) -> dict[str, Any]:
    return {
        "id": "c1",
        "object": "chat.completion",
        "created": 1,
        "model": "fake",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": finish}],
        "usage": {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18},
    }


def _reply(writer: asyncio.StreamWriter, code: int, body: bytes, **headers: str) -> None:
    headers = {"content_type": "application/json", **headers}
    lines = [f"HTTP/1.1 {code} X", f"content-length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + body)


def _begin_stream(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")


def _chunk(writer: asyncio.StreamWriter, text: str, finish: str | None) -> None:
    delta = {"index": 0, "delta": {"content": text}, "finish_reason": finish}
    body = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "fake", "choices": [delta]}
    _piece(writer, b"data: " + json.dumps(body).encode() + b"\n\n")


def _piece(writer: asyncio.StreamWriter, data: bytes) -> None:
    writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
