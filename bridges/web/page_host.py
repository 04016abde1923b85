"""`PageHost`: a room from its start to its end. Nodes of one process that name the same address share its server."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from bridges.web.access import Role, check_bind, check_certificate, check_origins
from bridges.web.room import Room
from bridges.web.server import Server, bind
from bridges.web.session import Session
from runtime.clock import Clock
from runtime.errors import ParameterError

LAST_WORDS_S = 2.0
"""How long the end of a run waits for open pages to draw the last news."""


@dataclass(slots=True)
class _Hall:
    """The servers of this process, by host and port."""

    servers: dict[tuple[str, int], Server] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)


_HALL = _Hall()


class PageHost:
    """Where a page is to be had. Raises ParameterError where that would be open to others than are meant to see it."""

    def __init__(
        self, host: str, port: int, certificate: str = "", key: str = "", reached_as: Iterable[str] = ()
    ) -> None:
        check_bind(host, certificate, key)
        if not 0 <= port <= 65535:
            raise ParameterError(f"console: port is {port}; expected 0 to 65535")
        self._host, self._port = host, port
        self._certificate, self._key, self._reached_as = certificate, key, tuple(reached_as)
        check_origins(self._reached_as)
        self._server: Server | None = None
        self._rooms: list[Room] = []

    def start(
        self, room: Room, clock: Clock, log: logging.Logger | logging.LoggerAdapter[Any], *, beside: Iterable[Room] = ()
    ) -> None:
        """Open the room and those beside it, and log an address with its token for each role of the first.

        Raises UserError where that cannot be.
        """
        with _HALL.lock:
            known = _HALL.servers.get((self._host, self._port))
            server = known or Server(clock, certificate=self._certificate, key=self._key, reached_as=self._reached_as)
            for one in (room, *beside):
                server.add(one)
                self._rooms.append(one)
            self._server = server
            if known is None:
                check_certificate(self._certificate, self._key)
                server.start(bind(self._host, self._port), self._host)
                _HALL.servers[self._host, self._port] = server
        scheme = "https" if self._certificate else "http"
        host = f"[{self._host}]" if ":" in self._host else self._host
        path = "" if room.path == "console" else room.path
        for token_role, role in room.roles.items():
            log.info("%s: %s://%s:%d/%s#%s", role, scheme, host, server.port, path, server.tokens.by_role[token_role])

    def poke(self) -> None:
        """There is something new to send (any thread)."""
        if self._server is not None:
            self._server.poke()

    @property
    def is_open(self) -> bool:
        """Whether there is a page."""
        return self._server is not None

    def notice(self, role: Role, text: str) -> None:
        """Tell everybody of that role something (the server's thread)."""
        for session in self._sessions():
            if session.role == role:
                session.notice(text)

    def roles_here(self) -> list[Role]:
        """The roles of the open pages."""
        return [session.role for session in self._sessions()]

    def _sessions(self) -> list[Session]:
        return self._rooms[0].sessions if self._rooms else []

    def stop(self, version: int | None = None) -> None:
        """Close every page, once those that answer have drawn the document of that version."""
        server = self._server
        if server is None:
            return
        pause = threading.Event()
        for _ in range(int(LAST_WORDS_S / 0.02) if version is not None else 0):
            if all(one.told == version and not one.is_state_under_way for one in self._sessions()):
                break
            pause.wait(0.02)
        with _HALL.lock:
            for room in self._rooms:
                server.remove(room)
            server.poke()
            if not server.rooms:
                if _HALL.servers.get((self._host, self._port)) is server:
                    del _HALL.servers[self._host, self._port]
                server.stop()
        self._server = None
