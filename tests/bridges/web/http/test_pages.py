"""Several pages at one address: which comes first, whom a token lets in where, and what is left when one closes."""

from __future__ import annotations

import asyncio
import http.client
import json
import logging
import re
import socket as socket_library
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, TypeVar

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect
from websockets.sync.connection import Connection
from websockets.typing import Origin

from bridges.web.http.auth import RESERVED, TokenBucket, Tokens
from bridges.web.http.listener import PageHost, WebServers
from bridges.web.http.open_page import CameraStream, Session
from bridges.web.http.page import Page
from bridges.web.http.server import MOST_WAITING, TOO_FAST, WebServer
from bridges.web.http.wire import Emergency, NoteMark, StopPressed, decode
from runtime.clock import SystemClock
from runtime.errors import ParameterError, UserError
from runtime.node import Node
from runtime.run_facts import RunFacts
from tests.support.ports import free_ports
from tests.support.running import eventually
from tests.support.sentences import pattern, sentence

S = TypeVar("S")

pytestmark = pytest.mark.processes


class PageHandler:
    """Shows nothing but its name."""

    def __init__(self, name: str) -> None:
        self.name = name

    def welcome(self, session: Session) -> dict[str, Any]:
        return {"t": "welcome", "handler": self.name, "role": session.role}

    def state(self, session: Session, now_ns: int) -> dict[str, Any]:
        return {"t": "state", "n": session.state_number}

    def joined(self, session: Session) -> None: ...
    def left(self, session: Session) -> None: ...
    def handle(self, session: Session, message: Any) -> None: ...
    def frame(self, camera: str, view: CameraStream, now_ns: int) -> tuple[dict[str, Any], bytes] | None: ...
    def beat(self, now_ns: int) -> None: ...


class FaultyHandler(PageHandler):
    """Fails wherever it can."""

    def state(self, session: Session, now_ns: int) -> dict[str, Any]:
        raise ValueError("this cannot be shown")

    def beat(self, now_ns: int) -> None:
        raise ValueError("no beat")


def page(path: str, page: str, roles: dict[str, str]) -> Page:
    return Page(path, path.capitalize(), page, PageHandler(path), decode, roles)


class Fellow(Node):
    """A node whose process has these servers."""

    def __init__(self, servers: WebServers | None = None, name: str = "fellow", **parameters: Any) -> None:
        self.servers = servers or WebServers()
        self.called = name
        self.run_info = RunFacts.of({"parameters": parameters})

    @property
    def name(self) -> str:
        return self.called

    def of_process(self, kind: type[S]) -> S:
        assert isinstance(self.servers, kind)
        return self.servers


class Pages:
    """A study that comes first, and a console beside it, as two nodes of one process open them."""

    def __init__(self, port: int, caplog: pytest.LogCaptureFixture) -> None:
        self.port = port
        self.study, self.console = PageHost("127.0.0.1", port), PageHost("127.0.0.1", port)
        log, node = logging.getLogger("pages"), Fellow()
        self.servers = node.servers
        with caplog.at_level(logging.INFO, "pages"):
            own = page("study", "study/page.html", {"operator": "experimenter", "participant": "participant"})
            self.study.start(own, SystemClock(), log, node=node)
            self.console.start(
                page("console", "console/page.html", {"operator": "operator", "viewer": "viewer"}),
                SystemClock(),
                log,
                node=Fellow(self.servers),
            )
        found = [re.match(r"(\w+): http://127.0.0.1:\d+/(\w*)#(\w{32})", one.getMessage()) for one in caplog.records]
        self.addresses = {(one[2], one[1]): one[3] for one in found if one}

    def page(self, path: str) -> tuple[int, bytes]:
        signer = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        signer.request("GET", path)
        answer = signer.getresponse()
        body = answer.read()
        signer.close()
        return answer.status, body

    def enter(self, path: str, token: str) -> dict[str, Any]:
        """The welcome, or the code and reason of being sent away."""
        sock = socket_library.create_connection(("127.0.0.1", self.port), timeout=10.0)
        host = f"127.0.0.1:{self.port}"
        uri = f"ws://{host}{path}/socket"
        with connect(uri, sock=sock, origin=Origin(f"http://{host}"), compression=None, proxy=None) as socket:
            socket.send(json.dumps({"t": "hello", "token": token}))
            try:
                found: dict[str, Any] = json.loads(socket.recv(timeout=10.0))
            except ConnectionClosed as closed:
                said = closed.rcvd
                return {"code": said.code, "reason": said.reason} if said is not None else {}
            return found


@pytest.fixture
def pages(caplog: pytest.LogCaptureFixture) -> Iterator[Pages]:
    opened = Pages(free_ports(1), caplog)
    yield opened
    opened.study.stop()
    opened.console.stop()


def test_one_address_and_one_token_lead_to_every_page(pages: Pages) -> None:
    operator = pages.addresses["", "operator"]
    assert pages.addresses["study", "experimenter"] == operator
    assert b"Polyrhythm console" in pages.page("/")[1]  # it came second, and is first
    assert b"Polyrhythm study" in pages.page("/study")[1]
    assert pages.page("/kitchen")[0] == 404
    links = [
        {"path": "/console", "title": "Console", "here": True},
        {"path": "/study", "title": "Study", "here": False},
    ]
    welcome = pages.enter("", operator)
    assert (welcome["handler"], welcome["role"], welcome["pages"]) == ("console", "operator", links)
    assert pages.enter("/study", operator)["role"] == "experimenter"


def test_a_token_leads_to_the_page_that_it_is_for_and_to_no_other(pages: Pages) -> None:
    participant, viewer = pages.addresses["study", "participant"], pages.addresses["", "viewer"]
    assert pages.enter("", participant) == {"code": 4303, "reason": "/study"}
    assert pages.enter("/study", viewer) == {"code": 4303, "reason": "/console"}
    assert pages.enter("/study", "0" * 32)["code"] == 4401
    assert pages.enter("/study", participant)["pages"] == []  # nothing else is theirs


def test_a_page_that_is_left_open_from_another_run_is_told_so_and_not_asked_to_try_again(
    pages: Pages, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.clear()
    own = f"127.0.0.1:{pages.port}"
    with (
        connect(f"ws://{own}/recordings/socket", origin=Origin(f"http://{own}"), proxy=None) as socket,
        pytest.raises(ConnectionClosed) as closed,
    ):
        socket.recv(timeout=10.0)  # without being asked for its token
    assert closed.value.rcvd is not None
    assert (closed.value.rcvd.code, closed.value.rcvd.reason) == (
        4401,
        sentence("bridges.no_page", page="/recordings"),
    )
    assert pages.enter("/study", "0" * 32) == {
        "code": 4401,
        "reason": sentence("bridges.address_of_another"),
    }
    with pytest.raises(InvalidStatus), connect(f"ws://{own}/socket", origin=Origin("http://elsewhere"), proxy=None):
        pass
    pages.page("/")  # all of it has been answered
    assert [one.getMessage() for one in caplog.records if one.levelno >= logging.WARNING] == []


def test_when_one_closes_the_others_stay_and_the_last_frees_the_address(pages: Pages) -> None:
    pages.console.stop()
    assert b"Polyrhythm study" in pages.page("/")[1]
    pages.study.stop()
    socket_library.create_server(("127.0.0.1", pages.port)).close()


def test_two_pages_of_the_same_name_need_two_addresses(pages: Pages) -> None:
    with pytest.raises(UserError, match="there is a page /study at this address already; give one of the two"):
        PageHost("127.0.0.1", pages.port).start(
            page("study", "study/page.html", {}), SystemClock(), logging.getLogger(), node=Fellow(pages.servers)
        )


def test_a_port_that_is_taken_is_told_with_what_chooses_another() -> None:
    with socket_library.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

        def told(node: Node | None) -> str:
            with pytest.raises(UserError) as refused:
                PageHost("127.0.0.1", port).start(
                    page("x", "console/page.html", {}), SystemClock(), logging.getLogger(), node=node
                )
            return str(refused.value)

        ports = {"console": {"port": port}, "study": {"port": port}, "buyer": {"port": 1}, "guard": {}}
        for fellow, option in (
            (None, "--port 0"),
            (Fellow(name="buyer"), "--set buyer.port=0"),
            (Fellow(None, "study", **ports), "--set console.port=0 --set study.port=0"),
        ):
            assert told(fellow).endswith(sentence("bridges.another_port", option=option))


def test_a_port_that_is_none_is_refused() -> None:
    with pytest.raises(ParameterError, match=pattern("bridges.wrong_web_port", port=70000)):
        PageHost("127.0.0.1", 70000)


def test_a_page_that_fails_is_let_go_and_the_others_go_on(pages: Pages) -> None:
    console = next(one for one in pages.console.pages if one.path == "console")
    study = next(one for one in pages.study.pages if one.path == "study")
    beats: list[int] = []
    study.handler.beat = beats.append  # type: ignore[method-assign, assignment]
    console.handler = FaultyHandler("console")
    before = len(beats)
    eventually(lambda: len(beats) > before + 3, "the other page's beats go on")
    sock = socket_library.create_connection(("127.0.0.1", pages.port), timeout=60.0)
    host = f"127.0.0.1:{pages.port}"
    with connect(f"ws://{host}/socket", sock=sock, origin=Origin(f"http://{host}"), compression=None) as socket:
        socket.send(json.dumps({"t": "hello", "token": pages.addresses["", "operator"]}))
        assert json.loads(socket.recv(timeout=60.0))["t"] == "welcome"
        with pytest.raises(ConnectionClosed) as closed:
            socket.recv(timeout=60.0)
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1011


@pytest.mark.parametrize("last", ["stop", "estop"])
def test_a_page_that_says_too_much_is_cut_off_but_its_stop_counts(last: str) -> None:
    class Socket:
        closed = 0

        async def receive_text(self) -> str:
            return json.dumps({"t": last})

        async def close(self, code: int, reason: str) -> None:
            self.closed = code

    handled: list[Any] = []
    here, socket, session = page("console", "console/page.html", {}), Socket(), Session("s", "operator", "Flo")
    here.handler.handle = lambda _, message: handled.append(message)  # type: ignore[method-assign, assignment]
    session.pace = TokenBucket(1.0, 0.0)
    asyncio.run(WebServer(SystemClock()).listen(socket, session, here))  # type: ignore[arg-type]
    assert socket.closed == TOO_FAST
    assert [type(message) for message in handled] == [StopPressed if last == "stop" else Emergency]


def test_where_there_is_a_study_its_participant_does_not_come_into_the_console(pages: Pages) -> None:
    """It shows what was said with those who took part before, and lets people speak where the study may not."""
    console = next(one for one in pages.console.pages if one.path == "console")
    console.roles = {**console.roles, "participant": "participant"}
    console.gives_way = frozenset({"participant"})
    token = pages.addresses["study", "participant"]
    assert pages.enter("/console", token) == {"code": 4303, "reason": "/study"}
    assert pages.enter("/study", token)["pages"] == []
    pages.study.stop()
    assert pages.enter("", token)["role"] == "participant"


def test_an_address_that_leads_elsewhere_is_not_printed(caplog: pytest.LogCaptureFixture) -> None:
    """With a study, the participant's is the study's alone; without one, the console's."""
    port, log = free_ports(1), logging.getLogger("pages")

    def printed(*paths: str) -> list[str]:
        hosts, node = [PageHost("127.0.0.1", port) for _ in paths], Fellow()
        caplog.clear()
        with caplog.at_level(logging.INFO, "pages"):
            for host, path in zip(hosts, paths, strict=True):
                opened = page(path, "console/page.html", {"operator": "operator", "participant": "participant"})
                opened.gives_way = frozenset({"participant"}) if path == "console" else frozenset()
                host.start(opened, SystemClock(), log, node=node)
        for host in hosts:
            host.stop()
        return [re.sub(r"http://127.0.0.1:\d+(/\w*)#\w{32}", r"\1", one.getMessage()) for one in caplog.records]

    assert printed("study", "console") == ["operator: /study", "participant: /study", "operator: /"]
    assert printed("console") == ["operator: /", "participant: /"]


class Crowd:
    """Pages that stay open: each has been welcomed."""

    def __init__(self, pages: Pages, stack: ExitStack) -> None:
        self.pages, self._stack = pages, stack

    def comes(self) -> Connection:
        """A socket that has said nothing yet."""
        sock = socket_library.create_connection(("127.0.0.1", self.pages.port), timeout=60.0)
        host = f"127.0.0.1:{self.pages.port}"
        uri, origin = f"ws://{host}/socket", Origin(f"http://{host}")
        return self._stack.enter_context(connect(uri, sock=sock, origin=origin, compression=None, proxy=None))

    def enters(self, role: str) -> Connection:
        """A page of the console. Raises ConnectionClosed where it is not let in."""
        socket = self.comes()
        socket.send(json.dumps({"t": "hello", "token": self.pages.addresses["", role]}))
        assert json.loads(socket.recv(timeout=60.0))["t"] == "welcome"
        return socket

    def refusal(self, role: str) -> tuple[int, str]:
        """Why it is not let in."""
        with pytest.raises(ConnectionClosed) as closed:
            self.enters(role)
        said = closed.value.rcvd
        return (said.code, said.reason) if said is not None else (0, "")


@pytest.fixture
def crowd(pages: Pages, monkeypatch: pytest.MonkeyPatch) -> Iterator[Crowd]:
    monkeypatch.setattr("bridges.web.http.open_page.STALLED_S", 600.0)  # they answer nothing, and stay
    with ExitStack() as stack:
        yield Crowd(pages, stack)


def test_viewers_leave_places_for_those_who_are_needed_and_are_told_so(crowd: Crowd) -> None:
    viewers = [crowd.enters("viewer") for _ in range(8)]
    assert crowd.refusal("viewer") == (4503, sentence("bridges.places_are_taken", number=8))
    for _ in range(4):
        crowd.enters("operator")
    viewers[0].close()
    eventually(lambda: crowd_has_room(crowd), "there is room again")


def crowd_has_room(crowd: Crowd) -> bool:
    try:
        crowd.enters("viewer")
    except ConnectionClosed:
        return False
    return True


def test_sockets_without_a_token_keep_nobody_out_and_go_themselves(crowd: Crowd) -> None:
    silent = [crowd.comes() for _ in range(MOST_WAITING + 1)]
    crowd.enters("viewer")
    crowd.enters("operator")
    with pytest.raises(ConnectionClosed) as closed:
        silent[0].recv(timeout=60.0)
    assert closed.value.rcvd is not None
    assert (closed.value.rcvd.code, closed.value.rcvd.reason) == (4408, "no token in time")


def test_a_token_that_was_taken_back_opens_no_page_and_those_open_are_closed_when_somebody_else_comes(
    pages: Pages, crowd: Crowd, caplog: pytest.LogCaptureFixture
) -> None:
    before = crowd.enters("viewer")
    old = pages.addresses["", "viewer"]
    with caplog.at_level(logging.INFO, "pages"):
        pages.console.renew("viewer")
    new = pages.console.token("viewer")
    assert any(message.endswith(f"/#{new}") for message in caplog.messages)
    assert new != old
    told = {"code": 4401, "reason": sentence("bridges.part_is_over")}
    assert pages.enter("", old) == told
    assert pages.enter("", new)["role"] == "viewer"
    assert "viewer" not in pages.console.roles_here()
    assert json.loads(before.recv(timeout=60.0))["t"] == "state"  # it shows its last words still
    pages.console.send_away()
    with pytest.raises(ConnectionClosed) as closed:
        before.recv(timeout=60.0)
    assert closed.value.rcvd is not None
    assert {"code": closed.value.rcvd.code, "reason": closed.value.rcvd.reason} == told


class Noting(PageHandler):
    """Remembers what it was asked for, and refuses a mark."""

    def __init__(self) -> None:
        super().__init__("console")
        self.asked: list[str] = []
        self.gone = 0

    def handle(self, session: Session, message: Any) -> None:
        self.asked.append(type(message).__name__)
        if isinstance(message, NoteMark):
            session.notice("no marks here")

    def left(self, session: Session) -> None:
        self.gone += 1


def greeted(socket: Connection, **hello: Any) -> dict[str, Any]:
    socket.send(json.dumps({"t": "hello", **hello}))
    welcome: dict[str, Any] = json.loads(socket.recv(timeout=60.0))
    return welcome


def test_a_page_that_comes_back_has_its_session_and_learns_which_presses_were_done(pages: Pages, crowd: Crowd) -> None:
    console = pages.console.pages[0]
    console.handler = noting = Noting()
    code = pages.addresses["", "operator"]
    first = crowd.comes()
    welcome = greeted(first, token=code, page="7")
    key = welcome["key"]
    assert code not in key
    assert welcome["heard"] == 0
    for number, kind in ((11, "resume"), (12, "mark")):
        first.send(json.dumps({"t": kind, "press": number, **({"label": "m"} if kind == "mark" else {})}))
    acks: list[Any] = []
    while len(acks) < 2:
        state = json.loads(first.recv(timeout=60.0))
        first.send(json.dumps({"t": "seen", "n": state["n"]}))
        acks += state["acks"]
    assert acks == [[11, ""], [12, "no marks here"]]
    ident = console.sessions[0].ident
    again = crowd.comes()  # the first link is half open: nobody has closed it
    assert greeted(again, token=key, page="7")["heard"] == 12
    assert [one.ident for one in console.sessions] == [ident]
    assert noting.gone == 1
    with suppress(ConnectionClosed):
        first.send(json.dumps({"t": "resume", "press": 13}))
        while True:
            first.recv(timeout=60.0)
    assert noting.asked == ["Resume", "NoteMark"], "what comes late by the old link is not done"
    twice = crowd.comes()
    assert greeted(twice, token=key, page="8")["heard"] == 0, "a duplicated tab is somebody else"
    assert len({one.ident for one in console.sessions}) == 2


def test_codes_keys_and_port_outlive_the_process_in_a_file_of_this_user_alone(tmp_path: Path) -> None:
    def opens() -> tuple[PageHost, str]:
        host, node = PageHost("127.0.0.1", 0), Fellow(name="console")
        node.run_info = RunFacts.of({"registry": str(tmp_path)})
        own = page("console", "console/page.html", {"operator": "operator"})
        host.start(own, SystemClock(), logging.getLogger("pages"), node=node)
        return host, host.url("operator")

    first, url = opens()
    (kept,) = tmp_path.iterdir()
    assert kept.stat().st_mode & 0o777 == 0o600
    first.renew("operator")
    renewed = first.url("operator")
    first.stop()
    second, after = opens()
    second.stop()
    assert url != renewed == after


def test_who_was_there_when_a_part_ended_may_come_back_by_its_key_until_the_next_one_begins(pages: Pages) -> None:
    code = pages.addresses["", "viewer"]
    key = pages.enter("", code)["key"]
    pages.console.renew("viewer")
    assert pages.enter("", code)["code"] == 4401, "what stands in a history is worth nothing"
    assert pages.enter("", key)["role"] == "viewer"
    pages.console.send_away()
    assert pages.enter("", key)["code"] == 4401


def test_what_a_node_says_of_an_address_counts_also_where_another_one_has_opened_it(
    pages: Pages, tmp_path: Path
) -> None:
    host = PageHost("127.0.0.1", pages.port, reached_as=["http://tunnel:8000"])
    extra = page("episode", "episode/page.html", {"viewer": "viewer"})
    host.start(extra, SystemClock(), logging.getLogger("pages"), node=Fellow(pages.servers))
    signer = http.client.HTTPConnection("127.0.0.1", pages.port, timeout=10)
    signer.request("GET", "/", headers={"Host": "tunnel:8000"})
    assert signer.getresponse().status == 200
    signer.close()
    host.stop()
    other = PageHost("127.0.0.1", pages.port, str(tmp_path / "a.pem"), str(tmp_path / "a.key"))
    with pytest.raises(UserError, match=pattern("bridges.other_certificate")):
        other.start(extra, SystemClock(), logging.getLogger("pages"), node=Fellow(pages.servers))


@pytest.mark.parametrize("name", ["robot", "Robot", " RO BOT", "ｒｏｂｏｔ", "ro\u200bbot", "arm_driver"])
def test_nobody_is_called_like_the_robot_or_a_part_of_it(name: str) -> None:
    tokens = Tokens({}).with_roles(("participant",)).reserving((*RESERVED, "arm_driver"))
    code = tokens.by_role["participant"]
    assert tokens.name_for(code, name, "participant") == "participant"
    with pytest.raises(ValueError, match="is taken, or none"):
        tokens.inviting("participant", name, "Ada")
