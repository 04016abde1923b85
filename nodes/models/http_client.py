"""`HttpClient`: bytes posted to a model's server over aiohttp, which knows proxies, TLS and broken servers; WebSockets.

Proxies and certificates come from the environment (HTTPS_PROXY, NO_PROXY, SSL_CERT_FILE); an address on this machine is
asked without a proxy. Redirects are not followed: a key goes to the host that was named.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nodes.models.answers import ModelError
from runtime.errors import UserError
from runtime.extras import lacking
from runtime.hosts.proxies import is_here

if TYPE_CHECKING:
    import aiohttp

LARGEST_BODY = 8 << 20
"""A stream takes some 250 bytes a token."""


def load() -> None:
    """Import aiohttp: nodes do it before they run, since it holds up a loop. Raises UserError where it is not there."""
    try:
        import aiohttp  # noqa: F401
    except ModuleNotFoundError as problem:
        raise UserError(f"a model on a server cannot be asked: {lacking(problem) or problem}") from problem


class UnreachableError(ModelError):
    """No connection was made: the server knows nothing of the call, which costs nothing."""


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """What came back; `headers` by lower-case names."""

    status: int
    headers: dict[str, str]
    body: bytes


class WebSocket:
    """Text in both directions."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse, where: str) -> None:
        self._socket = socket
        self._where = where

    async def send(self, text: str) -> None:
        """Send one message. Raises ModelError where the connection is gone."""
        try:
            await self._socket.send_str(text)
        except (ConnectionError, RuntimeError) as problem:
            raise ModelError(f"{self._where} hung up") from problem

    async def receive(self) -> str | None:
        """The next message; None where the other side has closed. Raises ModelError for what is no text."""
        import aiohttp

        message = await self._socket.receive()
        if message.type is aiohttp.WSMsgType.TEXT:
            return str(message.data)
        if message.type is aiohttp.WSMsgType.ERROR:
            raise ModelError(f"{self._where} broke the connection ({type(message.data).__name__})")
        if message.type is aiohttp.WSMsgType.BINARY:
            raise ModelError(f"{self._where} sent bytes; expected text")
        return None


class HttpClient:
    """The connections of one process to all servers; one loop at a time, anew where the loop is another one."""

    def __init__(self, *, keep_open: bool = True) -> None:
        self._keep_open = keep_open
        self._sessions: dict[bool, aiohttp.ClientSession] = {}  # by whether a proxy may stand before the address
        self._loop: asyncio.AbstractEventLoop | None = None

    async def post(
        self, url: str, where: str, headers: dict[str, str], data: bytes, take: Callable[[bytes], None]
    ) -> HttpAnswer:
        """One request; `take` sees each piece of a body with status 200 as it comes. Raises ModelError.

        Cancelled, it closes the connection, which ends the model's work.
        """
        session = self._opened(url)
        import aiohttp

        try:
            async with session.post(url, data=data, headers=headers, allow_redirects=False) as answer:
                body = bytearray()
                async for piece in answer.content.iter_any():
                    body += piece
                    if len(body) > LARGEST_BODY:
                        raise ModelError(f"{where} sent more than {LARGEST_BODY} bytes")
                    if answer.status == 200:
                        take(piece)
                named = {name.lower(): value for name, value in answer.headers.items()}
                return HttpAnswer(answer.status, named, bytes(body))
        except aiohttp.ClientConnectorError as problem:
            why = problem.os_error.strerror or str(problem.os_error)
            raise UnreachableError(f"{where} cannot be reached: {why}", may_retry=True) from problem
        except (aiohttp.ServerDisconnectedError, aiohttp.ClientPayloadError, aiohttp.ClientOSError) as problem:
            raise ModelError(f"{where} hung up in the middle of its answer", may_retry=True) from problem
        except (aiohttp.ClientError, ValueError) as problem:
            text = f"{where} does not speak HTTP; check address and port, and http or https"
            raise ModelError(text, may_retry=True) from problem
        finally:
            if not self._keep_open:
                await self.close()

    @asynccontextmanager
    async def websocket(
        self,
        url: str,
        where: str,
        headers: dict[str, str],
        *,
        query: Mapping[str, str],
        open_within_s: float,
        silence_s: float,
        largest: int,
    ) -> AsyncIterator[WebSocket]:
        """An open WebSocket at the address; messages are at most `largest` bytes. Raises ModelError.

        A server that answers no ping within half of `silence_s` counts as one that hung up.
        """
        session = self._opened(url)
        import aiohttp

        try:
            async with asyncio.timeout(open_within_s):
                socket = await session.ws_connect(
                    url, headers=headers, params=query, heartbeat=silence_s, max_msg_size=largest, compress=0
                )
        except TimeoutError as problem:
            raise UnreachableError(
                f"{where} opened no WebSocket within {open_within_s:g} s", may_retry=True
            ) from problem
        except aiohttp.WSServerHandshakeError as problem:
            raise ModelError(
                f"{where} opens no WebSocket: it answered {problem.status} {problem.message[:200]}"
            ) from problem
        except aiohttp.ClientConnectorError as problem:
            why = problem.os_error.strerror or str(problem.os_error)
            raise UnreachableError(f"{where} cannot be reached: {why}", may_retry=True) from problem
        except (aiohttp.ClientError, OSError, ValueError) as problem:
            raise ModelError(f"{where} opens no WebSocket ({type(problem).__name__})", may_retry=True) from problem
        try:
            yield WebSocket(socket, where)
        finally:
            await socket.close()

    def _opened(self, url: str) -> aiohttp.ClientSession:
        load()
        import aiohttp

        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop = loop
            self._sessions.clear()
        has_proxy = not is_here(url)
        if has_proxy not in self._sessions or self._sessions[has_proxy].closed:
            self._sessions[has_proxy] = aiohttp.ClientSession(
                trust_env=has_proxy,
                timeout=aiohttp.ClientTimeout(total=None, connect=None),  # deadlines are the caller's
                connector=aiohttp.TCPConnector(limit=0, force_close=not self._keep_open),
                cookie_jar=aiohttp.DummyCookieJar(),
            )
        return self._sessions[has_proxy]

    async def close(self) -> None:
        """Close the connections."""
        while self._sessions:
            await self._sessions.popitem()[1].close()
