"""The console's server against a real run, without a browser: who is turned away, and what a page gets."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket as socket_library
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed, InvalidMessage, InvalidStatus
from websockets.sync.client import ClientConnection, connect
from websockets.sync.connection import Connection
from websockets.typing import Origin

from tests.support.pages.console_run import ConsoleRun
from tests.support.running import eventually
from tests.support.sentences import pattern, sentence

LAUNCH = """
[nodes.console]
use    = "bridges.web.console.node:Console"
params = { port = 0 }
"""

pytestmark = pytest.mark.processes


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsoleRun]:
    """A console alone: everything that it may show is optional."""
    folder = tmp_path_factory.mktemp("console")
    file = folder / "console.toml"
    file.write_text(LAUNCH)
    with ConsoleRun(file, folder / "out") as started:
        yield started


def open_socket(run: ConsoleRun, *, host: str = "", origin: str = "") -> ClientConnection:
    """A WebSocket as a page opens it, or as somebody else does."""
    host = host or f"127.0.0.1:{run.port}"
    uri = f"ws://{host}/socket"
    origin = origin or f"http://{host}"
    sock = socket_library.create_connection(("127.0.0.1", run.port), timeout=60.0)
    return connect(uri, sock=sock, origin=Origin(origin), compression=None, proxy=None)


def hello(run: ConsoleRun, role: str = "operator", **more: str) -> str:
    """The first message of a page."""
    return json.dumps({"t": "hello", "token": run.tokens[role], **more})


def next_of(socket: Connection, kind: str) -> dict[str, Any]:
    """The next message of that kind; states are acknowledged on the way, as a page does."""
    while True:
        message: dict[str, Any] = json.loads(socket.recv(timeout=60.0))
        if message["t"] == "state":
            socket.send(json.dumps({"t": "seen", "n": message["n"]}))
        if message["t"] == kind:
            return message


def code_of(socket: Connection) -> int:
    """The code with which the server ends the conversation."""
    try:
        while True:
            socket.recv(timeout=60.0)
    except ConnectionClosed as closed:
        return closed.rcvd.code if closed.rcvd is not None else 0


@pytest.mark.parametrize("role", ["operator", "viewer", "participant"])
def test_each_token_opens_its_own_role(run: ConsoleRun, role: str) -> None:
    with open_socket(run) as socket:
        socket.send(hello(run, role, name="Ada"))
        welcome = next_of(socket, "welcome")
        assert (welcome["role"], welcome["name"]) == (role, "Ada")
        state = next_of(socket, "state")
    assert ("guard" in state) == (role != "participant")
    assert bool(state.get("canned")) == (role == "operator")


@pytest.mark.parametrize(
    "first",
    [
        '{"t":"hello","token":"00000000000000000000000000000000"}',
        '{"t":"stop"}',
        "{",
        "",
        '{"t":"hello"}',
        '{"t":"hello","token":7}',
        "[]",
    ],
)
def test_without_the_token_in_the_first_message_nobody_comes_in(run: ConsoleRun, first: str) -> None:
    with open_socket(run) as socket:
        socket.send(first)
        assert code_of(socket) == 4401


def test_bytes_instead_of_a_token_are_turned_away(run: ConsoleRun) -> None:
    with open_socket(run) as socket:
        socket.send(b"\xff\x00\xfe")
        assert code_of(socket) == 4401


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:1"])
def test_a_page_from_elsewhere_opens_no_socket(run: ConsoleRun, origin: str) -> None:
    with pytest.raises(InvalidStatus) as refused:
        open_socket(run, origin=origin)
    assert refused.value.response.status_code == 403


def test_a_name_that_was_made_to_point_here_opens_nothing(run: ConsoleRun) -> None:
    with pytest.raises(InvalidStatus) as refused:
        open_socket(run, host=f"evil.example:{run.port}")
    assert refused.value.response.status_code == 403
    page = http.client.HTTPConnection("127.0.0.1", run.port, timeout=60)
    page.request("GET", "/", headers={"Host": f"evil.example:{run.port}"})
    assert page.getresponse().status == 421
    page.close()


def test_the_page_comes_with_its_policy_and_nothing_but_its_own_files(run: ConsoleRun) -> None:
    page = http.client.HTTPConnection("127.0.0.1", run.port, timeout=60)
    for path, status in (
        ("/", 200),
        ("/static/console/console.js", 200),
        ("/static/../node.py", 404),
        ("/static/%2e%2e%2fnode.py", 404),
        ("/static/node.py", 404),
        ("/nothing", 404),
    ):
        page.request("GET", path)
        response = page.getresponse()
        body = response.read()
        assert (path, response.status) == (path, status)
        assert "default-src 'self'" in (response.headers["content-security-policy"] or "")
        assert "unsafe" not in response.headers["content-security-policy"]
        assert all(token.encode() not in body for token in run.tokens.values())
    page.close()


def test_a_message_of_65_kib_ends_the_conversation(run: ConsoleRun) -> None:
    with open_socket(run) as socket:
        socket.send(hello(run))
        next_of(socket, "welcome")
        socket.send("x" * (65 * 1024))
        assert code_of(socket) == 1009


@pytest.mark.parametrize(
    "garbage",
    [
        "nonsense",
        '{"t":"launch"}',
        '{"t":"drive","ahead":7}',
        '{"t":"drive","ahead":NaN}',
        '{"t":"say","voice":"god","text":"x"}',
        '{"t":"stop","more":1}',
        '{"t":"sound","pcm":"AAAA"}',
        json.dumps({"t": "sound", "pcm": "A" * 40_000}),
        json.dumps({"t": "stop", "\u00fc" * 200: 1}, ensure_ascii=False),
        "[" * 5000,
    ],
)
def test_garbage_ends_the_conversation_and_harms_nobody_else(run: ConsoleRun, garbage: str) -> None:
    with open_socket(run) as bystander, open_socket(run) as socket:
        bystander.send(hello(run, "viewer"))
        next_of(bystander, "welcome")
        socket.send(hello(run))
        next_of(socket, "welcome")
        socket.send(garbage)
        assert code_of(socket) == 4400
        assert next_of(bystander, "state")["people"] is not None


def test_a_flood_is_cut_off(run: ConsoleRun) -> None:
    with open_socket(run) as socket:
        socket.send(hello(run))
        next_of(socket, "welcome")
        with suppress(ConnectionClosed):
            for _ in range(20_000):
                socket.send('{"t":"seen","n":0}')
        assert code_of(socket) == 4429


def test_a_flood_of_sound_is_cut_off_and_one_utterance_of_it_is_told(run: ConsoleRun) -> None:
    piece = json.dumps({"t": "sound", "pcm": "AAAA" * 5000})
    with open_socket(run) as socket:
        socket.send(hello(run, "participant"))
        next_of(socket, "welcome")
        socket.send('{"t":"talk"}')
        for _ in range(60):
            socket.send(piece)
        while (voice := next_of(socket, "state")["voice"])["count"] == 0:
            pass
        assert (voice["count"], voice["why"]) == (1, "")
        with suppress(ConnectionClosed):
            for _ in range(2000):
                socket.send(piece)
        assert code_of(socket) == 4429


def test_who_is_invited_comes_in_under_that_name_and_goes_when_it_is_taken_back(run: ConsoleRun) -> None:
    with open_socket(run) as inviter, open_socket(run) as guest, open_socket(run) as viewer:
        inviter.send(hello(run))
        inviter.send(json.dumps({"t": "invite", "role": "viewer", "name": "Zoe"}))
        while "invited" not in (state := next_of(inviter, "state")):
            pass
        invited = state["invited"]
        assert invited["name"] == "Zoe"
        assert invited["code"]["width"] > 20
        token = invited["url"].split("#")[1]
        guest.send(json.dumps({"t": "hello", "token": token, "name": "operator"}))
        welcome = next_of(guest, "welcome")
        assert (welcome["role"], welcome["name"]) == ("viewer", "Zoe")
        viewer.send(hello(run, "viewer"))
        shown = next_of(viewer, "state")
        assert (shown["people"][-2]["name"], shown["invites"]) == ("Zoe", [])  # a viewer is not told who is invited
        while not (state := next_of(inviter, "state"))["invites"]:
            pass
        assert token not in json.dumps(state)  # it was told once
        inviter.send(json.dumps({"t": "revoke", "number": state["invites"][0]["number"]}))
        assert code_of(guest) == 4401
    with open_socket(run) as late:
        late.send(json.dumps({"t": "hello", "token": token}))
        assert code_of(late) == 4401


def test_a_viewer_may_look_and_stop_and_nothing_else(run: ConsoleRun) -> None:
    with open_socket(run) as socket:
        socket.send(hello(run, "viewer", name="Vi"))
        next_of(socket, "welcome")
        for message in (
            {"t": "say", "voice": "robot", "text": "hi"},
            {"t": "resume"},
            {"t": "take", "seat": "policy"},
            {"t": "talk"},
        ):
            socket.send(json.dumps(message))
        notices: list[str] = []
        while len(notices) < 4:
            notices += next_of(socket, "state")["notices"]
        assert set(notices) == {sentence("bridges.operators_only")}


def test_a_participant_speaks_as_a_person_whatever_their_page_says(run: ConsoleRun) -> None:
    with open_socket(run) as socket:
        socket.send(hello(run, "participant", name="Pat"))
        next_of(socket, "welcome")
        socket.send(json.dumps({"t": "say", "voice": "robot", "text": "<script>alert(1)</script>"}))
        events: list[dict[str, Any]] = []
        while not events:
            events = [one for one in next_of(socket, "state")["events"] if one["who"] == "Pat"]
    assert (events[0]["kind"], events[0]["text"]) == ("heard", "<script>alert(1)</script>")


def test_who_asks_says_or_answers_nothing_is_let_go(run: ConsoleRun) -> None:
    with (
        socket_library.create_connection(("127.0.0.1", run.port), timeout=60.0) as asks_nothing,
        open_socket(run) as says_nothing,
        open_socket(run) as answers_nothing,
    ):
        asks_nothing.sendall(b"GET / HTTP/1.1\r\n")
        answers_nothing.send(hello(run, "viewer"))
        kinds = [json.loads(answers_nothing.recv(timeout=60.0))["t"] for _ in range(2)]
        assert kinds == ["welcome", "state"], "one state, and no other before it is answered"
        with pytest.raises(TimeoutError):
            answers_nothing.recv(timeout=2.0)
        assert asks_nothing.recv(100) == b""
        assert code_of(says_nothing) == 4408
        assert code_of(answers_nothing) == 4410


def test_libraries_that_are_missing_are_named_with_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    from bridges.web.console.node import Console
    from runtime.errors import UserError

    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(UserError, match=f"console needs uvicorn.*{pattern('bridges.install_console')}"):
        Console(port=0).on_start()


def test_150_idle_connections_keep_no_operator_out(run: ConsoleRun) -> None:
    idle = [socket_library.create_connection(("127.0.0.1", run.port), timeout=60.0) for _ in range(150)]
    asked = http.client.HTTPConnection("127.0.0.1", run.port, timeout=60.0)
    try:
        asked.request("GET", "/")
        assert asked.getresponse().status == 200
        with open_socket(run) as socket:
            socket.send(hello(run))
            assert next_of(socket, "welcome")["role"] == "operator"
    finally:
        asked.close()
        for one in idle:
            one.close()


def test_after_kill_9_of_the_console_a_page_comes_back_by_itself_and_what_was_not_done_is_known(
    run: ConsoleRun,
) -> None:
    with open_socket(run) as socket:
        socket.send(hello(run))
        key = next_of(socket, "welcome")["key"]
        before = run.pid("console")
        os.kill(before, signal.SIGKILL)
        assert code_of(socket) == 0

    def is_back() -> bool:
        try:
            with open_socket(run) as again:
                again.send(json.dumps({"t": "hello", "token": key}))
                welcome = next_of(again, "welcome")
                return (welcome["role"], welcome["heard"]) == ("operator", 0)
        except (OSError, ConnectionClosed, InvalidMessage):
            return False

    eventually(is_back, "the same address and the same key open it again", 60.0)
