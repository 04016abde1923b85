"""`RealtimeConnection`: events to and from a server with OpenAI's Realtime protocol, over one WebSocket.

Two tasks of the node's loop read and write. What comes is kept for the node until it takes it, up to a bound; what is
to be sent waits in order. No event is ever answered here.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any, Literal

import msgspec

from nodes.models.address import headers_of, realtime_of
from nodes.models.answers import ChatSettings, ModelError
from nodes.models.chat_format import read_body
from nodes.models.http_client import HttpClient

MOST_WAITING = 4096
"""Events either way; more is a node or a server that does not keep up."""
LARGEST_EVENT = 4 << 20
OPEN_WITHIN_S = 10.0
SILENCE_S = 20.0
"""A server that answers no ping for so long is taken for gone."""

State = Literal["opening", "open", "closed"]
Event = dict[str, Any]


class RealtimeConnection:
    """Opens at once, in the background; `state` says how far it is, and `fault` why it is closed."""

    def __init__(self, settings: ChatSettings) -> None:
        self.settings = settings
        self.state: State = "opening"
        self.fault = ""
        self.received: deque[Event] = deque()
        self._http = HttpClient()
        self._to_send: asyncio.Queue[Event] = asyncio.Queue(MOST_WAITING)
        self._task = asyncio.create_task(self._serve(), name="realtime connection")

    def send(self, event: Event) -> None:
        """Send it when it is its turn; what a closed connection is given is dropped."""
        if self.state == "closed":
            return
        try:
            self._to_send.put_nowait(event)
        except asyncio.QueueFull:
            self._end(f"{self.settings.where} takes no more events: {MOST_WAITING} wait")

    def take(self) -> list[Event]:
        """All events that have come since, oldest first."""
        taken = list(self.received)
        self.received.clear()
        return taken

    async def close(self) -> None:
        """Hang up, and wait until the tasks have ended."""
        self._end("it was closed here")
        await asyncio.gather(self._task, return_exceptions=True)

    def _end(self, fault: str) -> None:
        if self.state != "closed":
            self.state, self.fault = "closed", fault
            self._task.cancel()

    async def _serve(self) -> None:
        url, query = realtime_of(self.settings.base_url, self.settings.model)
        headers = headers_of(self.settings.base_url, self.settings.api_key)
        where = self.settings.where
        try:
            async with self._http.websocket(
                url,
                where,
                headers,
                query=query,
                open_within_s=OPEN_WITHIN_S,
                silence_s=SILENCE_S,
                largest=LARGEST_EVENT,
            ) as socket:
                self.state = "open"
                writing = asyncio.create_task(self._write(socket.send), name="realtime writer")
                try:
                    while (text := await socket.receive()) is not None:
                        self._note(text)
                finally:
                    writing.cancel()
                    await asyncio.gather(writing, return_exceptions=True)
            self.fault = f"{where} hung up"
        except ModelError as problem:
            self.fault = str(problem)
        finally:
            self.state = "closed"
            await self._http.close()

    async def _write(self, send: Any) -> None:
        while True:
            await send(msgspec.json.encode(await self._to_send.get()).decode())

    def _note(self, text: str) -> None:
        try:
            event = read_body(text)
        except ValueError as problem:
            event = str(problem)
        if not isinstance(event, dict):  # one piece of garbage is told, and ends no conversation
            event = {"type": "error", "error": {"message": f"it sent no event of the Realtime protocol: {event}"}}
        if len(self.received) >= MOST_WAITING:
            raise ModelError(f"{self.settings.where} sends more events than are taken: {MOST_WAITING} wait")
        self.received.append(event)
