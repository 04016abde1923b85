"""What every page with a server of its own needs: where to listen, the addresses in the log, a clean end."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from typing import Any

from bridges.web.access import Role, Tokens, check_bind
from bridges.web.server import Desk, Server, bind
from runtime.clock import Clock
from runtime.errors import ParameterError

LAST_WORDS_S = 2.0
"""How long the end of a run waits for open pages to draw the last news."""


class PageHost:
    """One desk's server, from start to stop. Raises ParameterError and UserError as the console does."""

    def __init__(self, host: str, port: int, certificate: str, key: str) -> None:
        check_bind(host, certificate, key)
        if not 0 <= port <= 65535:
            raise ParameterError(f"port is {port}; expected 0 to 65535")
        self._host, self._port, self._certificate, self._key = host, port, certificate, key
        self._server: Server | None = None

    def start(
        self,
        desk: Desk,
        roles: Iterable[Role],
        clock: Clock,
        log: logging.Logger | logging.LoggerAdapter[Any],
        *,
        page: str,
        decode: Callable[[str], Any],
    ) -> None:
        """Listen, and log an address with its token for each role."""
        tokens = Tokens.of(roles)
        bound = bind(self._host, self._port)
        port = bound.getsockname()[1]
        server = Server(desk, tokens, clock, certificate=self._certificate, key=self._key, page=page, decode=decode)
        server.start(bound, self._host)
        self._server = server
        scheme = "https" if self._certificate else "http"
        host = f"[{self._host}]" if ":" in self._host else self._host
        for role, token in tokens.by_role.items():
            log.info("%s: %s://%s:%d/#%s", role, scheme, host, port, token)

    def poke(self) -> None:
        """There is something new to send (any thread)."""
        if self._server is not None:
            self._server.poke()

    def roles_here(self) -> list[Role]:
        """The roles of the open pages."""
        return [session.role for session in self._server.sessions] if self._server is not None else []

    def stop(self, version: int = 0) -> None:
        """Close every page, once those that answer have drawn the document of that version."""
        if self._server is None:
            return
        pause = threading.Event()
        for _ in range(int(LAST_WORDS_S / 0.02)):
            if all(one.told == version and not one.is_state_under_way for one in self._server.sessions):
                break
            pause.wait(0.02)
        self._server.stop()
