"""The HTTP and WebSocket side: an ASGI application on uvicorn, in a thread with an asyncio loop of its own."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import socket
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from bridges.web.http.auth import AllowedOrigins, Opened, Role, Tokens
from bridges.web.http.open_page import STATE_PERIOD_S, CameraStream, Session
from bridges.web.http.page import Page
from bridges.web.http.wire import (
    MAX_MESSAGE_BYTES,
    Emergency,
    FrameSeen,
    FromBrowser,
    PageHello,
    StopPressed,
    WatchCameras,
    encode,
    pack_frame,
)
from runtime.clock import Clock, to_s
from runtime.errors import UserError
from runtime.extras import install
from runtime.operating_system.whole_file import PRIVATE, write_whole

if TYPE_CHECKING:
    import uvicorn
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp
    from starlette.websockets import WebSocket


log = logging.getLogger("console")

MOST_WAITING = 16
"""Sockets that have not brought their token yet; one more sends the oldest of them away."""
MOST_REASON_BYTES = 120  # of why a socket was closed; the protocol takes 123
MOST_IDLE = 24
"""Connections without a request under way."""
HANDSHAKE_S = 5.0
"""How long a connection may take to its first request, and a socket to its token."""
STOP_S = 2.0
# Why a socket was closed, in WebSocket's private range; the page shows the words.
BAD_TOKEN, TOO_LATE, TOO_FAST, NOT_UNDERSTOOD, STALLED, ELSEWHERE = 4401, 4408, 4429, 4400, 4410, 4303
FULL = 4503
TAKEN_BACK = "this address was for somebody whose part is over; ask for your own"


MOST_CLIENTS = 16
MOST_REMEMBERED = 256
"""Sessions whose last press is known when their page comes back."""
VIEWER: Role = "viewer"
KEPT = {"operator": 4, "participant": 4, VIEWER: 0}
"""Places that nobody but this role takes; any other role, as one annotator or one who plays in an episode, has one."""
MOST_KEPT = 8


ASGI = Callable[[Any, Any, Any], Any]
STATIC = Path(__file__).resolve().parents[1] / "static"
KINDS = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
HEADERS = {
    "content-security-policy": "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(self), payment=(), usb=()",
    "cache-control": "no-store",
}
TLS_HEADERS = {"strict-transport-security": "max-age=2592000"}


def read_files() -> dict[str, tuple[bytes, str]]:
    """What each file holds and is, by its path: read once, so that no request leads anywhere on the disk."""
    files = (path for path in STATIC.rglob("*") if path.suffix in KINDS)
    return {path.relative_to(STATIC).as_posix(): (path.read_bytes(), KINDS[path.suffix]) for path in files}


def guarded(application: ASGI, admits_host: Callable[[str | None], bool], *, has_tls: bool = False) -> ASGI:
    """Turn away what is addressed to another host, and add the headers."""

    own = {**HEADERS, **(TLS_HEADERS if has_tls else {})}

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await application(scope, receive, send)
            return
        headers = [(key.encode(), value.encode()) for key, value in own.items()]
        host = next((value.decode("latin-1") for key, value in scope["headers"] if key == b"host"), None)
        if not admits_host(host):
            await send({"type": "http.response.start", "status": 421, "headers": headers})
            await send({"type": "http.response.body", "body": b"this is not the host that you asked for\n"})
            return

        async def send_with_headers(message: Any) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *headers]
            await send(message)

        await application(scope, receive, send_with_headers)

    return answer


class KeptDoor(msgspec.Struct, frozen=True):
    """What a server leaves for the one that is started in its place: both are of one run."""

    port: int = 0
    tokens: Tokens = msgspec.field(default_factory=Tokens)


def _read_kept(path: Path | None) -> tuple[Tokens, int]:
    if path is None or not path.exists():
        return Tokens(), 0
    kept = msgspec.json.decode(path.read_bytes(), type=KeptDoor)
    return kept.tokens, kept.port


class Capacity:
    """The places that are taken, by the role of the token (the server's thread)."""

    def __init__(self, most: int = MOST_CLIENTS) -> None:
        self._most = most
        self._taken: Counter[Role] = Counter()

    def refusal(self, role: Role, roles: Collection[Role]) -> str:
        """Why one more of that role, of the roles that there are, cannot come in now; "" where it can."""
        kept = {other: KEPT.get(other, 1) for other in roles}
        for_others = sum(max(0, count - self._taken[other]) for other, count in kept.items() if other != role)
        if self._taken[role] < kept.get(role, 0) and self._taken.total() < self._most:
            return ""
        if self._taken.total() + min(MOST_KEPT, for_others) < self._most:
            return ""
        if self._taken[role] and for_others:
            return f"all {self._taken[role]} places for {role}s are taken; it is tried again until one is free"
        return f"all {self._most} places are taken; it is tried again until one is free"

    def take(self, role: Role) -> None:
        """One more is here."""
        self._taken[role] += 1

    def leave(self, role: Role) -> None:
        """One less."""
        self._taken[role] -= 1


def _is_worth_a_line(record: logging.LogRecord) -> bool:
    """uvicorn takes a socket that was refused in words, such as one of another origin, for a mistake of ours."""
    return "without completing handshake" not in record.getMessage()


def _brief_http() -> type[asyncio.Protocol]:
    """HTTP in which connections that ask for nothing take nobody's place: they are closed after a while, and the one
    that has been idle for longest as soon as there are too many of them."""
    from uvicorn.protocols.http.h11_impl import H11Protocol

    idle: dict[BriefHTTP, None] = {}  # oldest first; of this server

    class BriefHTTP(H11Protocol):
        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's
            super().connection_made(transport)
            self.loop.call_later(HANDSHAKE_S, self._end_without_request)
            self._rest()

        def data_received(self, data: bytes) -> None:
            idle.pop(self, None)
            super().data_received(data)

        def on_response_complete(self) -> None:
            super().on_response_complete()
            if not self.transport.is_closing():
                self._rest()

        def connection_lost(self, exc: Exception | None) -> None:
            idle.pop(self, None)
            super().connection_lost(exc)

        def _rest(self) -> None:
            idle[self] = None
            while len(idle) > MOST_IDLE:
                oldest = next(iter(idle))
                del idle[oldest]
                oldest.transport.abort()

        def _end_without_request(self) -> None:
            if not vars(self)["scope"] and not self.transport.is_closing():
                self.transport.close()

    return BriefHTTP


class WebServer:
    """Serves its pages until it is stopped; pages may come and go meanwhile (any thread)."""

    def __init__(self, clock: Clock, *, certificate: str = "", key: str = "", kept: Path | None = None) -> None:
        """`kept`: the file, of this user alone, in which tokens and port outlive the process; none for a command's."""
        self.pages: tuple[Page, ...] = ()  # the first of them stands at `/`
        self._kept = kept
        self._tokens, self.port = _read_kept(kept)
        self._clock = clock
        self.certificate, self.key = certificate, key
        self._also: frozenset[str] = frozenset()
        self._heard: dict[str, int] = {}  # session -> its last press that was done or refused
        self._door = AllowedOrigins(frozenset())
        self._places = Capacity()
        self._waiting: list[asyncio.Timeout] = []  # of the sockets without a token, oldest first
        self._loop: asyncio.AbstractEventLoop | None = None
        self._server: uvicorn.Server | None = None
        self._thread = threading.Thread(target=self._run, name="console-server")
        self._files = read_files()

    @property
    def tokens(self) -> Tokens:
        """Who may come in."""
        return self._tokens

    @tokens.setter
    def tokens(self, tokens: Tokens) -> None:
        self._tokens = tokens
        self._keep()

    def _keep(self) -> None:
        """So that the pages that are open come back to a console that died and was started again."""
        if self._kept is None:
            return
        try:
            write_whole(self._kept, msgspec.json.encode(KeptDoor(self.port, self._tokens)), mode=PRIVATE)
        except OSError as problem:  # a full disk closes no page
            log.warning("%s cannot be written (%s): pages do not outlive this process", self._kept, problem.strerror)

    def reach_as(self, origins: Iterable[str]) -> None:
        """Also be reached under these origins, whoever of the pages' nodes names them."""
        self._also |= set(origins)
        self._door = replace(self._door, also=self._also)

    def add(self, page: Page) -> None:
        """Open a page, with a token for each role that has none yet. Raises UserError where there is one already."""
        if any(one.path == page.path for one in self.pages):
            raise UserError(f"there is a page /{page.path} at this address already; give one of the two another port")
        self.tokens = self.tokens.with_roles(page.roles)
        self.pages = tuple(sorted((*self.pages, page), key=lambda one: one.rank))

    def renew(self, role: Role) -> str:
        """Take that role's token back and return another. Pages that are open stay so until `send_away`."""
        self.tokens = self.tokens.renewed(role)
        return self.tokens.by_role[role]

    def serve(self, name: str, content: bytes, kind: str) -> None:
        """Give that out under /static, beside the pages' own files."""
        self._files[name] = content, kind

    def invite(self, role: Role, name: str, by: str) -> str:
        """A token of that person's own. Raises ValueError in words where there cannot be one."""
        self.tokens, token = self.tokens.inviting(role, name, by)
        return token

    def revoke(self, number: int) -> None:
        """Take that person's token back, and close their pages."""
        self.tokens = self.tokens.revoking(number)
        self.send_away()

    def send_away(self) -> None:
        """Close the pages whose token was taken back, for good."""
        self.tokens = self.tokens.parted()
        for page in self.pages:
            for session in tuple(page.sessions):
                session.is_over = self.tokens.was_taken_back(session.token)
        self.poke()

    def remove(self, page: Page) -> None:
        """Close a page: who is in it is sent away at the next look."""
        self.pages = tuple(one for one in self.pages if one is not page)

    def start(self, bound: socket.socket, host: str) -> None:
        """Begin to serve on this socket. Raises UserError where the libraries are not installed."""
        try:
            import uvicorn
            import websockets  # noqa: F401  # uvicorn's WebSocket side

            application = self._application()
        except ImportError as problem:
            bound.close()
            raise UserError(
                f"the console needs {problem.name}, which is not installed; {install('bridges[console]')}"
            ) from problem
        self.port = bound.getsockname()[1]
        self._door = AllowedOrigins.of(host, self.port, has_tls=bool(self.certificate), also=self._also)
        self._bound = bound
        self._keep()
        uvicorns = logging.getLogger("uvicorn.error")
        uvicorns.setLevel(logging.WARNING)
        uvicorns.addFilter(_is_worth_a_line)
        self._server = uvicorn.Server(
            uvicorn.Config(
                application,
                ws="websockets-sansio",
                ws_max_size=MAX_MESSAGE_BYTES,
                ws_per_message_deflate=False,
                ws_ping_interval=5.0,
                ws_ping_timeout=10.0,
                http=_brief_http(),
                lifespan="off",
                loop="asyncio",
                log_config=None,
                access_log=False,
                server_header=False,
                limit_concurrency=4 * MOST_CLIENTS,
                timeout_keep_alive=5,
                timeout_graceful_shutdown=1,
                ssl_certfile=self.certificate or None,
                ssl_keyfile=self.key or None,
            )
        )
        self._loop = asyncio.new_event_loop()
        self._thread.start()

    def stop(self) -> None:
        """Close every page's socket and end the thread."""
        if self._server is not None:
            self._server.should_exit = True
        self.poke()
        if self._thread.ident is not None:
            self._thread.join(STOP_S)

    def poke(self) -> None:
        """There is something new to send (any thread)."""
        if self._loop is None:
            return
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody is left to tell
            self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        for page in self.pages:
            for session in page.sessions:
                session.wake.set()

    def _run(self) -> None:
        assert self._server is not None
        assert self._loop is not None
        try:
            self._loop.run_until_complete(self._serve(self._server))
        finally:
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()

    async def _serve(self, server: uvicorn.Server) -> None:
        beat = asyncio.create_task(self._beat())
        try:
            await server.serve(sockets=[self._bound])
        finally:
            beat.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await beat

    async def _beat(self) -> None:
        while True:
            for page in self.pages:
                try:
                    page.handler.beat(self._clock.now_ns())
                except Exception:  # the other pages, and the next beats, still come
                    log.exception("a beat of the page /%s failed", page.path)
            await asyncio.sleep(0.1)

    # --- HTTP

    def _application(self) -> ASGIApp:
        from starlette.applications import Starlette
        from starlette.routing import Route, WebSocketRoute

        application: Starlette = Starlette(
            routes=[
                Route("/", self._page),
                Route("/static/{name:path}", self._file),
                Route("/{page}", self._page),
                WebSocketRoute("/socket", self._socket),
                WebSocketRoute("/{page}/socket", self._socket),
            ]
        )
        return guarded(application, lambda host: self._door.admits_host(host), has_tls=bool(self.certificate))

    async def _page(self, request: Request) -> Response:
        page = self._page_at(request.path_params.get("page", ""))
        return self._reply(page.page if page is not None else "")

    async def _file(self, request: Request) -> Response:
        return self._reply(request.path_params["name"])

    def _page_at(self, path: str) -> Page | None:
        """The page of that path; the first one for none."""
        return next((page for page in self.pages if path in ("", page.path)), None)

    def _reply(self, name: str) -> Response:
        from starlette.responses import Response

        found = self._files.get(name)
        if found is None:
            return Response("there is no such page\n", status_code=404, media_type="text/plain")
        content, kind = found
        return Response(content, headers={"content-type": kind})

    # --- one WebSocket

    async def _socket(self, socket: WebSocket) -> None:
        from starlette.responses import PlainTextResponse
        from starlette.websockets import WebSocketDisconnect

        headers = socket.headers
        if not self._door.admits_origin(headers.get("host"), headers.get("origin")):
            await socket.send_denial_response(PlainTextResponse("another origin\n", status_code=403))
            return
        path = str(socket.path_params.get("page", ""))
        page = self._page_at(path)
        try:
            await socket.accept()
            if page is None:  # a page that was left open from another run
                await socket.close(BAD_TOKEN, f"this run has no page /{path[:40]}; take an address that it printed")
                return
            hello = await self._hello(socket, page)
            if hello is None:
                return
            message, opened = hello
            self._give_way(page, opened.ident, message.page)
            if refusal := self._places.refusal(opened.role, self.tokens.by_role):
                await socket.close(FULL, refusal)
                return
            await self._talk(socket, page, message, opened)
        except WebSocketDisconnect:
            pass  # the page was closed, or its link

    def _give_way(self, page: Page, ident: str, load: str) -> None:
        """A page that comes back takes the place of the link that it had, also where that still seems to be there."""
        now_ns = self._clock.now_ns()
        for old in tuple(page.sessions):
            is_same = bool(load) and old.load == load
            if ident and old.ident == ident and (is_same or old.is_silent(now_ns)):
                self._leave(page, old)

    def _leave(self, page: Page, session: Session) -> None:
        """That page is gone, however often it is noticed."""
        if session in page.sessions:
            page.sessions.remove(session)
            page.handler.left(session)
            self._places.leave(session.token_role)
        session.is_gone = True
        session.wake.set()

    async def _talk(self, socket: WebSocket, page: Page, message: PageHello, opened: Opened) -> None:
        role = page.roles[opened.role]
        is_twice = any(other.ident == opened.ident for other in page.sessions)  # a duplicated tab is somebody else
        ident = secrets.token_hex(16) if is_twice or not opened.ident else opened.ident
        name = self.tokens.name_for(opened.code, message.name.strip(), role)
        session = Session(ident, role, name, opened.code, opened.role)
        session.load, session.heard = message.page, self._heard.get(ident, 0)
        page.sessions.append(session)
        self._places.take(opened.role)
        page.handler.joined(session)
        feed: asyncio.Task[None] | None = None
        about = {
            "key": self.tokens.key_of(opened.code, ident),
            "heard": session.heard,
            "session": ident,
            "pages": self._links(page, opened.role),
        }
        try:
            await socket.send_text(encode({**page.handler.welcome(session), **about}))
            feed = asyncio.create_task(self._feed_or_close(socket, session, page), name=f"feed {session.name}")
            await self.listen(socket, session, page)
        finally:
            self._leave(page, session)
            if feed is not None:
                feed.cancel()
                with contextlib.suppress(asyncio.CancelledError, Exception):  # its socket is closed
                    await feed

    def _links(self, here: Page, role: Role) -> list[dict[str, Any]]:
        """The pages that this person may enter, where there is more than one."""
        found = [
            {"path": f"/{page.path}", "title": page.title, "here": page is here}
            for page in self.pages
            if page.admits(role, self.pages)
        ]
        return found if len(found) > 1 else []

    async def _hello(self, socket: WebSocket, page: Page) -> tuple[PageHello, Opened] | None:
        if len(self._waiting) >= MOST_WAITING:
            self._waiting.pop(0).reschedule(asyncio.get_running_loop().time())
        try:
            async with asyncio.timeout(HANDSHAKE_S) as limit:
                self._waiting.append(limit)
                try:
                    message = page.decode(await socket.receive_text())
                finally:
                    if limit in self._waiting:
                        self._waiting.remove(limit)
        except TimeoutError:
            await socket.close(TOO_LATE, "no token in time")
            return None
        except (ValueError, KeyError):
            await socket.close(BAD_TOKEN, "the first message is to bring the token")
            return None
        opened = self.tokens.open(message.token) if isinstance(message, PageHello) else None
        if opened is None and isinstance(message, PageHello) and self.tokens.was_taken_back(message.token):
            await socket.close(BAD_TOKEN, TAKEN_BACK)
            return None
        if opened is None or not isinstance(message, PageHello):
            await socket.close(
                BAD_TOKEN, "this address is of another run, or not whole; take the one that the run printed"
            )
            return None
        before = self.tokens.open(message.key)
        if before is not None and before.code == opened.code:  # the address was opened again in the same tab
            opened = before
        if not page.admits(opened.role, self.pages):  # the token decides: it may be good for another page
            other = next((f"/{one.path}" for one in self.pages if one.admits(opened.role, self.pages)), "")
            await socket.close(ELSEWHERE if other else BAD_TOKEN, other or "the token is for no page that is here")
            return None
        return message, opened

    async def listen(self, socket: WebSocket, session: Session, page: Page) -> None:
        while True:
            try:
                text = await socket.receive_text()
                message = page.decode(text)
            except (ValueError, KeyError) as problem:
                why = f"not understood: {problem}".encode()[:MOST_REASON_BYTES].decode(errors="ignore")
                await socket.close(NOT_UNDERSTOOD, why)
                return
            if session.is_gone:  # what comes late by a link that was given up is not done
                return
            now_ns = self._clock.now_ns()
            if not session.pace.allows(now_ns):
                if isinstance(message, StopPressed | Emergency):  # whatever came before it
                    page.handler.handle(session, message)
                await socket.close(TOO_FAST, "too many messages")
                return
            if isinstance(message, FrameSeen):
                if message.camera:
                    session.seen_frame(message.camera, message.n, now_ns)
                else:
                    session.seen_state(message.n, now_ns)
            elif isinstance(message, WatchCameras):
                session.watched = message.cameras
                session.wake.set()
            else:
                self._handle(page, session, message)

    def _handle(self, page: Page, session: Session, message: FromBrowser) -> None:
        """Do what was asked for, and acknowledge a press: with why it was not done, where the page was told so."""
        session.refusal = ""
        page.handler.handle(session, message)
        if not message.press:
            return
        session.acknowledge(message.press)
        self._heard.pop(session.ident, None)
        self._heard[session.ident] = message.press
        while len(self._heard) > MOST_REMEMBERED:
            del self._heard[next(iter(self._heard))]

    async def _feed_or_close(self, socket: WebSocket, session: Session, page: Page) -> None:
        """A page that cannot be fed is let go, so that it comes back: nobody drives by a picture that stands still."""
        try:
            await self._feed(socket, session, page)
        except Exception as problem:  # noqa: BLE001  # whatever it is, the page is not left as it is
            if socket.client_state.name == socket.application_state.name == "CONNECTED":  # it was not just closed
                log.warning("the page of %s cannot be fed: %s: %s", session.name, type(problem).__name__, problem)
            with contextlib.suppress(Exception):  # it is closed already
                await socket.close(1011, "this page could not be fed")

    async def _feed(self, socket: WebSocket, session: Session, page: Page) -> None:
        """Send what is new, as fast as it is answered."""
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(session.wake.wait(), STATE_PERIOD_S / 2)
            session.wake.clear()
            now_ns = self._clock.now_ns()
            if page not in self.pages:
                await socket.close(1001, "this page is closed")
                return
            if session.is_gone:
                await socket.close(STALLED, "this page has come back by another link")
                return
            if session.is_over:
                await socket.close(BAD_TOKEN, TAKEN_BACK)
                return
            if session.is_stalled(now_ns):
                await socket.close(STALLED, "this page has answered nothing for too long")
                return
            is_due = to_s(now_ns - session.state_sent_ns) >= STATE_PERIOD_S or session.has_news
            if is_due and not session.is_state_under_way:
                session.state_number += 1
                document = page.handler.state(session, now_ns)
                document["acks"], session.acks = session.acks, []
                session.state_sent_ns, session.is_state_under_way = now_ns, True
                await socket.send_text(encode(document))
            await self._send_frames(socket, session, page)

    async def _send_frames(self, socket: WebSocket, session: Session, page: Page) -> None:
        for camera in session.watched:
            if session.role == "participant" and camera not in session.shown:
                continue
            view = (
                session.views.setdefault(camera, CameraStream())
                if len(session.views) < 8
                else session.views.get(camera)
            )
            now_ns = self._clock.now_ns()
            if view is None or not view.has_room or to_s(now_ns - view.sent_ns) < view.pace.pause_s:
                continue
            frame = page.handler.frame(camera, view, now_ns)
            if frame is None:
                continue
            header, jpeg = frame
            view.sends(now_ns)
            await socket.send_bytes(pack_frame({**header, "n": view.number}, jpeg))
