"""`ChatWire`: chat-completions over plain asyncio streams with kept-alive connections, for thousands of episodes.

Why not the SDK: it costs several ms of CPU per call, which is most of what an episode costs (docs/episodes.md has the
figures). HTTP/1.1 only, no proxies; TLS with the system's certificates. Reads whole answers and event streams.
"""

from __future__ import annotations

import asyncio
import ssl
from dataclasses import dataclass
from urllib.parse import urlsplit

import msgspec

from nodes.models.answers import ModelError
from runtime.messages.msgspec_cache import from_json

LARGEST_BODY = 1 << 20
LONGEST_REFUSAL = 10_000
_IDLE = 64
"""So many idle connections are kept."""


class Message(msgspec.Struct):
    content: str | None = None


class WireChoice(msgspec.Struct):
    message: Message | None = None
    delta: Message | None = None
    finish_reason: str | None = None


class Usage(msgspec.Struct):
    prompt_tokens: int = 0
    completion_tokens: int = 0


class Completion(msgspec.Struct):
    choices: list[WireChoice] = []
    usage: Usage | None = None


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """What the model said and what it cost."""

    text: str
    prompt_tokens: int
    completion_tokens: int


@dataclass(frozen=True, slots=True)
class HttpConnection:
    """One open connection."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter


def url_problem(url: str) -> str:
    """What is wrong with a server's address, in a sentence; "" where nothing is."""
    try:
        parts = urlsplit(url)
        is_good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is no number, or none there is
        is_good = False
    return "" if is_good else f"base URL is {url!r}; expected http://host:port/v1 or https://..."


class ChatWire:
    """One server. `ask` raises ModelError; cancelling it closes its connection."""

    def __init__(self, base_url: str, *, key: str = "") -> None:
        if problem := url_problem(base_url):
            raise ModelError(problem)
        parts = urlsplit(base_url)
        assert parts.hostname
        self._tls = ssl.create_default_context() if parts.scheme == "https" else None
        self._host = parts.hostname
        self._port = parts.port or (443 if self._tls else 80)
        self.where = f"{self._host}:{self._port}"
        path = parts.path.rstrip("/") + "/chat/completions"
        head = [f"POST {path} HTTP/1.1", f"host: {parts.netloc.rpartition('@')[2]}", "content-type: application/json"]
        head += [f"authorization: Bearer {key}"] if key else []
        self._head = ("\r\n".join(head) + "\r\ncontent-length: ").encode()
        self._key = key
        self._idle: list[HttpConnection] = []
        self.requests = 0

    async def ask(self, body: dict[str, object]) -> ModelAnswer:
        """One request; a kept connection that the server has closed meanwhile is replaced once."""
        data = msgspec.json.encode(body)
        self.requests += 1
        while True:
            kept = self._idle.pop() if self._idle else None
            connection = kept or await self._connect()
            is_clean = False
            try:
                connection.writer.write(self._head + str(len(data)).encode() + b"\r\n\r\n" + data)
                status, headers, answer = await self._answer(connection)
                is_clean = headers.get("connection", "").lower() != "close"
            except (ConnectionError, asyncio.IncompleteReadError, EOFError) as problem:
                if kept is not None and not isinstance(problem, asyncio.IncompleteReadError):
                    continue
                raise ModelError(f"{self.where} hung up in the middle of its answer", may_retry=True) from problem
            except (ValueError, asyncio.LimitOverrunError) as problem:
                raise ModelError(f"{self.where} does not speak HTTP: {problem}", may_retry=True) from problem
            finally:
                if is_clean and len(self._idle) < _IDLE:
                    self._idle.append(connection)
                else:
                    connection.writer.close()
            return self._read(status, headers, answer)

    async def close(self) -> None:
        """Close the idle connections."""
        for connection in self._idle:
            connection.writer.close()
        self._idle.clear()

    async def _connect(self) -> HttpConnection:
        try:
            reader, writer = await asyncio.open_connection(self._host, self._port, ssl=self._tls, limit=LARGEST_BODY)
        except OSError as problem:
            why = problem.strerror or str(problem)
            raise ModelError(f"{self.where} cannot be reached: {why}", may_retry=True) from problem
        return HttpConnection(reader, writer)

    async def _answer(self, connection: HttpConnection) -> tuple[int, dict[str, str], bytes]:
        reader = connection.reader
        head = await reader.readuntil(b"\r\n\r\n") if not reader.at_eof() else b""
        if not head:
            raise EOFError
        first, *lines = head.decode("latin-1").split("\r\n")
        status = int(first.split(" ", 2)[1])
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)}
        if headers.get("transfer-encoding", "").lower() == "chunked":
            return status, headers, await self._chunked(reader)
        if "content-length" not in headers:
            headers["connection"] = "close"
            body = await reader.read(LARGEST_BODY + 1)
            self._check_size(len(body))
            return status, headers, body
        length = int(headers["content-length"])
        self._check_size(length)
        return status, headers, await reader.readexactly(length)

    async def _chunked(self, reader: asyncio.StreamReader) -> bytes:
        parts: list[bytes] = []
        size = 0
        while True:
            length = int((await reader.readline()).split(b";")[0] or b"!", 16)
            if length == 0:
                await reader.readline()
                return b"".join(parts)
            size += length
            self._check_size(size)
            parts.append(await reader.readexactly(length))
            await reader.readline()

    def _check_size(self, size: int) -> None:
        if size > LARGEST_BODY:
            raise ModelError(f"{self.where} sent {size} bytes; at most {LARGEST_BODY} are read")

    def _read(self, status: int, headers: dict[str, str], body: bytes) -> ModelAnswer:
        if status != 200:
            raise self._status_error(status, headers, body)
        if headers.get("content-type", "").startswith("text/event-stream"):
            return self._read_stream(body)
        try:
            completion = from_json(body, Completion)
            choice = completion.choices[0]
        except (msgspec.MsgspecError, IndexError) as problem:
            raise ModelError(f"{self.where} sent no chat completion: {problem}", may_retry=True) from problem
        text = (choice.message.content if choice.message else "") or ""
        return self._checked(text, choice.finish_reason, completion.usage)

    def _read_stream(self, body: bytes) -> ModelAnswer:
        parts: list[str] = []
        why_ended: str | None = None
        usage: Usage | None = None
        for line in body.split(b"\n"):
            data = line.removeprefix(b"data:").strip()
            if not line.startswith(b"data:") or data == b"[DONE]":
                continue
            try:
                chunk = from_json(data, Completion)
            except msgspec.MsgspecError as problem:
                raise ModelError(f"{self.where} sent a broken stream: {problem}", may_retry=True) from problem
            usage = chunk.usage or usage
            for choice in chunk.choices:
                parts.append((choice.delta.content if choice.delta else "") or "")
                why_ended = choice.finish_reason or why_ended
        if why_ended is None:
            raise ModelError(f"{self.where} hung up in the middle of its answer", may_retry=True)
        return self._checked("".join(parts), why_ended, usage)

    def _checked(self, text: str, why_ended: str | None, usage: Usage | None) -> ModelAnswer:
        if why_ended == "length":
            raise ModelError(f"{self.where} cut its answer off at the token limit", may_retry=False)
        usage = usage or Usage()
        return ModelAnswer(text, usage.prompt_tokens, usage.completion_tokens)

    def _status_error(self, status: int, headers: dict[str, str], body: bytes) -> ModelError:
        whole = body[:LONGEST_REFUSAL].decode("utf-8", errors="replace")
        said = (whole.replace(self._key, "***") if self._key else whole)[:200]
        if status in (401, 403):
            return ModelError(f"{self.where} refused the key ({status}); check OPENAI_API_KEY")
        if status in (400, 422):
            return RefusedError(f"{self.where} refused the request ({status}): {said}", whole)
        if status == 404:
            return ModelError(f"{self.where} knows no such model or no chat completions (404)")
        after = headers.get("retry-after", "")
        after_s = min(float(after), 3600.0) if after.replace(".", "", 1).isdecimal() else 0.0
        if status == 429:
            return ModelError(f"{self.where} asks for fewer calls (429)", may_retry=True, retry_after_s=after_s)
        return ModelError(f"{self.where} failed ({status})", may_retry=status >= 500, retry_after_s=after_s)


class RefusedError(ModelError):
    """The server does not take the request as it is; perhaps it does in another dialect."""

    def __init__(self, text: str, said: str) -> None:
        super().__init__(text)
        self.said = said  # by the server, whole: not for people, a key may be in it
