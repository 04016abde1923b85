"""`PageHost`: a page from its start to its end. Nodes of one process that name the same address share its server."""

from __future__ import annotations

import contextlib
import logging
import socket
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bridges.web.http.auth import Invite, Role, check_bind, check_certificate, check_origins
from bridges.web.http.lan import LAN, certificate_for, own_names
from bridges.web.http.open_page import Session
from bridges.web.http.page import Page
from bridges.web.http.qr_code import for_terminal
from bridges.web.http.server import WebServer
from runtime.clock import Clock
from runtime.errors import ParameterError, UserError
from runtime.extras import missing
from runtime.node import Node

LIBRARIES = ("starlette", "uvicorn", "websockets")
LAST_WORDS_S = 2.0
"""How long the end of a run waits for open pages to draw the last news."""


def missing_libraries() -> list[str]:
    """A problem for `check` and `doctor` where what serves pages is not installed."""
    lacks = missing(LIBRARIES)
    return [lacks] if lacks else []


@dataclass(slots=True)
class WebServers:
    """The servers of one process, by host and port."""

    by_address: dict[tuple[str, int], WebServer] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)


def port_options(node: Node, port: int) -> str:
    """What chooses any free port for this node, and for those of its run that share its address."""
    parameters: Mapping[str, Mapping[str, Any]] = node.run_info.parameters
    names = {name for name, own in parameters.items() if own.get("port") == port} | {str(node.name)}
    return " ".join(f"--set {name}.port=0" for name in sorted(names))


def bind(host: str, port: int, options: str) -> socket.socket:
    """A listening socket. Raises UserError where the address cannot be had, with the options that choose another."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        bound = socket.socket(family, kind, protocol)
        try:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.bind(address)
            bound.listen()  # a page that is opened at once waits instead of being refused
        except OSError:
            bound.close()
            raise
    except OSError as problem:
        raise UserError(
            f"console: cannot listen on {host} port {port} ({problem.strerror or problem}); end what listens there, "
            f"or choose another port, 0 for any that is free: {options}"
        ) from problem
    return bound


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
        self._server: WebServer | None = None
        self._servers = WebServers()
        self._log: logging.Logger | logging.LoggerAdapter[Any] = logging.getLogger("console")
        self.pages: list[Page] = []

    def start(
        self,
        page: Page,
        clock: Clock,
        log: logging.Logger | logging.LoggerAdapter[Any],
        *,
        beside: Iterable[Page] = (),
        node: Node | None = None,
    ) -> None:
        """Open the page and those beside it, and log an address with its token for each role that the first admits.

        `node`: whose page it is; none for a command's. Raises UserError where that cannot be.
        """
        if node is not None:
            self._servers = node.of_process(WebServers)
        with self._servers.lock:
            if self._host == LAN and not self._certificate:
                self._certificate, self._key = certificate_for(own_names())
            known = self._servers.by_address.get((self._host, self._port))
            server = known or WebServer(
                clock, certificate=self._certificate, key=self._key, kept=self._kept_file(node) if node else None
            )
            self._agree(server)
            server.reach_as(self._reached_as)
            for one in (page, *beside):
                server.add(one)
                self.pages.append(one)
            self._server = server
            if known is None:
                check_certificate(self._certificate, self._key)
                options = "--port 0" if node is None else port_options(node, self._port)
                host = "0.0.0.0" if self._host == LAN else self._host
                server.start(self._bound(host, server.port, options), self._host)
                self._servers.by_address[self._host, self._port] = server
        self._log = log
        for token_role in page.roles:
            if page.admits(token_role, server.pages):  # another page may be for them
                self._tell(server, page, token_role)

    def _kept_file(self, node: Node) -> Path | None:
        """In the run's folder of this user alone."""
        name = f"pages-{self._host.replace(':', '_')}-{self._port}.json"
        return Path(node.run_info.registry) / name if node.run_info.registry else None

    def _bound(self, host: str, before: int, options: str) -> socket.socket:
        """The port that the server before this one had in this run, so that open pages find it; or the wanted one."""
        if before and before != self._port:
            with contextlib.suppress(UserError):  # somebody else has it by now
                return bind(host, before, options)
        return bind(host, self._port, options)

    def _agree(self, server: WebServer) -> None:
        """Pages at one address have one certificate: a node that names none takes that of the others."""
        if not self._certificate:
            self._certificate, self._key = server.certificate, server.key
        elif (self._certificate, self._key) != (server.certificate, server.key):
            raise UserError(
                f"console: certificate {self._certificate} and key {self._key} cannot be used at port {self._port}: "
                f"another node has opened it {f'with {server.certificate}' if server.certificate else 'without'}; "
                "give both nodes the same, or ports of their own"
            )

    def renew(self, role: Role) -> None:
        """Take back the token of that role, which opens no page any more, and log the next one's address."""
        server, page = self._server, self.pages[0] if self.pages else None
        if server is None or page is None:
            return
        server.renew(role)
        self._tell(server, page, role)

    def send_away(self) -> None:
        """Close the pages whose token was taken back."""
        if self._server is not None:
            self._server.send_away()

    def token(self, role: Role) -> str:
        """What opens the page for that role now; "" where there is none."""
        return self._server.tokens.by_role.get(role, "") if self._server is not None else ""

    def url(self, role: Role) -> str:
        """The first page's address for that role, with its token; "" where it is not open to that role."""
        if self._server is None or role not in self.pages[0].roles:
            return ""
        return self._url(self._server, self.pages[0], role)

    def reserve(self, names: Iterable[str]) -> None:
        """Let nobody be called so who comes in."""
        if self._server is not None:
            self._server.tokens = self._server.tokens.reserving(names)

    def serve(self, name: str, content: bytes, kind: str) -> None:
        """Give that out under /static, once the page is open."""
        if self._server is not None:
            self._server.serve(name, content, kind)

    def invite(self, role: Role, name: str, by: str) -> str:
        """An address of that person's own. Raises ValueError in words where there cannot be one."""
        if self._server is None:
            raise ValueError("there is no page to be invited to")
        token = self._server.invite(role, name, by)
        return self._address(self._server, self.pages[0], token)

    def is_free(self, name: str) -> bool:
        """Whether somebody may be called so."""
        return self._server is None or self._server.tokens.is_free(name)

    def revoke(self, number: int) -> None:
        """Take an invited person's address back, and close their pages."""
        if self._server is not None:
            self._server.revoke(number)

    def invites(self) -> list[Invite]:
        """Who is invited, the oldest first."""
        return list(self._server.tokens.invites.values()) if self._server is not None else []

    def _tell(self, server: WebServer, page: Page, token_role: Role) -> None:
        url = self._url(server, page, token_role)
        secret = server.tokens.by_role[token_role]
        self._log.info("%s: %s", page.roles[token_role], url, extra={"secret": secret})
        if self._host == LAN and (picture := for_terminal(url)):
            self._log.info("the same for a phone's camera:\n%s", picture, extra={"secret": picture})

    def _url(self, server: WebServer, page: Page, role: Role) -> str:
        return self._address(server, page, server.tokens.by_role[role])

    def _address(self, server: WebServer, page: Page, token: str) -> str:
        scheme = "https" if self._certificate else "http"
        host = own_names()[0] if self._host == LAN else f"[{self._host}]" if ":" in self._host else self._host
        path = "" if page.path == "console" else page.path
        return f"{scheme}://{host}:{server.port}/{path}#{token}"

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

    def notice_one(self, session: str, text: str) -> None:
        """Tell that session something (the server's thread)."""
        for one in self._sessions():
            if one.ident == session:
                one.notice(text)

    def roles_here(self) -> list[Role]:
        """The roles of the open pages, but for those whose token was taken back."""
        tokens = self._server.tokens if self._server is not None else None
        return [
            session.role
            for session in self._sessions()
            if tokens is not None and not tokens.was_taken_back(session.token)
        ]

    def _sessions(self) -> list[Session]:
        return self.pages[0].sessions if self.pages else []

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
        with self._servers.lock:
            for page in self.pages:
                server.remove(page)
            server.poke()
            if not server.pages:
                if self._servers.by_address.get((self._host, self._port)) is server:
                    del self._servers.by_address[self._host, self._port]
                server.stop()
        self._server = None
