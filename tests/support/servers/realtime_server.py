"""A speech-to-speech server on loopback that speaks OpenAI's Realtime protocol as a test wants it.

Every event in both directions is checked against the types of OpenAI's own package, but for the older names of the
Beta. As OpenAI's it has one answer at a time, and refuses a second one.
"""

from __future__ import annotations

import base64
import itertools
import json
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from openai.types.realtime import RealtimeClientEvent, RealtimeServerEvent
from pydantic import TypeAdapter
from websockets.exceptions import ConnectionClosed
from websockets.sync.server import Server, ServerConnection, serve

Event = dict[str, Any]
CLIENT: TypeAdapter[Any] = TypeAdapter(RealtimeClientEvent)
SERVER: TypeAdapter[Any] = TypeAdapter(RealtimeServerEvent)
RATE_HZ = 24_000


def sound(seconds: float) -> bytes:
    """A tone, as 16-bit samples at 24 kHz."""
    at = np.arange(round(seconds * RATE_HZ)) / RATE_HZ
    return (np.sin(at * 440 * 2 * np.pi) * 8000).astype("<i2").tobytes()


@dataclass(frozen=True)
class Answer:
    """What the model does when it is asked: words with so much sound, calls of the tool, or a failure."""

    text: str = ""
    seconds: float = 0.0
    calls: tuple[Event | str, ...] = ()  # arguments of the tool, or any text in their place
    fails: str = ""
    ends: bool = True  # False: it goes on until it is cancelled
    garbage: str = ""  # sent before it: what is no event
    refused: str = ""  # it does not begin: the code of the error, and "silence" for none


@dataclass
class Session:
    """One connection, as the server saw it."""

    events: list[Event] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)
    path: str = ""

    def of(self, kind: str) -> list[Event]:
        """The events of that type."""
        return [event for event in self.events if event["type"] == kind]

    @property
    def samples(self) -> int:
        """How many were sent since the buffer was cleared last."""
        count = 0
        for event in self.events:
            if event["type"] == "input_audio_buffer.clear":
                count = 0
            elif event["type"] == "input_audio_buffer.append":
                count += len(base64.b64decode(event["audio"])) // 2
        return count


class RealtimeServer:
    """`with RealtimeServer(answer) as server:`; `answer(session, n)` says what the n-th answer is, from 0."""

    def __init__(
        self,
        answer: Callable[[Session, int], Answer],
        *,
        transcript: str = "",
        is_beta: bool = False,
        cancels_in_s: float = 0.0,
        refused_commits: int = 0,
        takes_images: bool = True,
    ) -> None:
        self.is_beta = is_beta
        self.cancels_in_s = cancels_in_s
        self.refused_commits = refused_commits
        self.takes_images = takes_images
        self.answer = answer
        self.transcript = transcript
        self.sessions: list[Session] = []
        self.problems: list[str] = []
        self.commits = 0
        self._idents = itertools.count(1)
        self._server: Server = serve(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.socket.getsockname()[1]}/v1"
        self._connections: list[ServerConnection] = []
        self._thread = threading.Thread(target=self._server.serve_forever)

    def __enter__(self) -> RealtimeServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self.hang_up()
        self._thread.join()

    def hang_up(self) -> None:
        """Break all connections, as a server that goes down."""
        for connection in self._connections:
            with suppress(OSError):
                connection.socket.shutdown(socket.SHUT_RDWR)

    def _serve(self, connection: ServerConnection) -> None:
        session = Session()
        if connection.request is not None:
            session.path = connection.request.path
            session.headers = dict(connection.request.headers.raw_items())
        self.sessions.append(session)
        self._connections.append(connection)
        try:
            self._talk(connection, session)
        except ConnectionClosed:
            pass
        except Exception as problem:  # noqa: BLE001  # a test reads them
            self.problems.append(f"{type(problem).__name__}: {problem}")

    def _talk(self, connection: ServerConnection, session: Session) -> None:
        running = ""
        asked = 0
        if self.is_beta:
            beta = {"object": "realtime.session", "modalities": ["audio", "text"], "input_audio_format": "pcm16"}
            self._send(connection, "session.created", session=beta)
        for raw in connection:
            event = json.loads(raw)
            if not self.is_beta:
                CLIENT.validate_python(event)
            session.events.append(event)
            if event["type"] == "input_audio_buffer.commit":
                self._commit(connection, event)
            elif event["type"] == "response.create":
                answer = Answer(refused="conversation_already_has_active_response") if running else None
                if answer is None:
                    answer = self.answer(session, asked)
                    asked += 1
                if answer.refused:
                    self._refuse(connection, event, answer.refused)
                else:
                    running = self._answer(connection, event, answer)
            elif event["type"] == "response.cancel":
                if running and event.get("response_id", running) == running:
                    time.sleep(self.cancels_in_s)
                    self._done(connection, running, "cancelled")
                    running = ""
                else:
                    self._refuse(connection, event, "response_cancel_not_active")
            elif event["type"] == "session.update" and self.is_beta and "type" in event["session"]:
                self._refuse(connection, event, "unknown_parameter")
            elif "input_image" in raw and not self.takes_images:
                self._refuse(connection, event, "invalid_value")

    def _commit(self, connection: ServerConnection, event: Event) -> None:
        self.commits += 1
        if self.commits <= self.refused_commits:
            self._refuse(connection, event, "input_audio_buffer_commit_empty")
            return
        item = f"item_{next(self._idents)}"
        self._send(connection, "input_audio_buffer.committed", item_id=item, previous_item_id=None)
        if self.transcript:
            kind = "conversation.item.input_audio_transcription.completed"
            usage = {"type": "duration", "seconds": 1.0}
            text = self.transcript.format(self.commits)
            self._send(connection, kind, item_id=item, content_index=0, transcript=text, usage=usage)

    def _refuse(self, connection: ServerConnection, event: Event, code: str) -> None:
        if code != "silence":
            told = {"type": "invalid_request_error", "code": code, "message": f"no: {code}"}
            self._send(connection, "error", error=told | {"event_id": event.get("event_id")})

    def _answer(self, connection: ServerConnection, asked: Event, answer: Answer) -> str:
        """Everything at once; the id of an answer that goes on."""
        response, item = f"resp_{next(self._idents)}", f"item_{next(self._idents)}"
        where = {"response_id": response, "item_id": item, "output_index": 0, "content_index": 0}
        metadata = asked.get("response", {}).get("metadata")
        started = {"id": response, "object": "realtime.response", "status": "in_progress", "metadata": metadata}
        self._send(connection, "response.created", response=started)
        if answer.garbage:
            connection.send(answer.garbage)
        if answer.fails:
            self._done(connection, response, "failed", {"type": "failed", "error": {"message": answer.fails}})
            return ""
        words = answer.text.split()
        pieces = max(len(words), 1)
        samples = sound(answer.seconds)
        size = len(samples) // pieces // 2 * 2
        for number, word in enumerate(words):
            self._send(connection, "response.output_audio_transcript.delta", delta=f"{word} ", **where)
            piece = samples[number * size : (number + 1) * size if number + 1 < pieces else None]
            if piece:
                encoded = base64.b64encode(piece).decode()
                self._send(connection, "response.output_audio.delta", delta=encoded, **where)
        if not answer.ends:
            return response
        if words:
            if answer.seconds:
                self._send(connection, "response.output_audio.done", **where)
            self._send(connection, "response.output_audio_transcript.done", transcript=answer.text, **where)
        for call in answer.calls:
            ident = f"call_{next(self._idents)}"
            told = {"response_id": response, "item_id": f"item_{next(self._idents)}", "output_index": 1}
            self._send(
                connection,
                "response.function_call_arguments.done",
                call_id=ident,
                name="set_subtask",
                arguments=call if isinstance(call, str) else json.dumps(call),
                **told,
            )
        self._done(connection, response, "completed")
        return ""

    def _done(self, connection: ServerConnection, response: str, status: str, details: Event | None = None) -> None:
        usage = {"input_tokens": 100, "output_tokens": 20, "total_tokens": 120}
        done = {
            "id": response,
            "object": "realtime.response",
            "status": status,
            "usage": usage,
            "status_details": details,
        }
        self._send(connection, "response.done", response=done)

    def _send(self, connection: ServerConnection, kind: str, **fields: object) -> None:
        event = {"type": kind, "event_id": f"event_{next(self._idents)}", **fields}
        if self.is_beta:
            event["type"] = kind.replace("response.output_", "response.")
        else:
            SERVER.validate_python(event)
        connection.send(json.dumps(event))
