"""What `polyrhythm guard` asks of the guard, in whose name: no more than was typed; and what it tells of the answer."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from nodes.guard import orders as command
from nodes.msgs import TERMINAL, EStop, GuardAnswer, GuardState
from nodes.msgs.signature import order, service
from runtime.command_line import attach
from runtime.command_line.attach import Arrival, StopSignal
from runtime.errors import PolyrhythmError
from runtime.message import Envelope, Message
from runtime.serialization.codec import encode
from tests.support.sentences import sentence

LATCHED = GuardState(mode="estopped", reason="emergency stop: x", estop="x")
REARMED = GuardState(mode="stopped", reason="re-armed by Ana, waiting to be told to go on", is_armed=True)
MOVING = GuardState(mode="moving", reason="", is_armed=True)
HOLDING = GuardState(mode="holding", reason="resumed by Ana, no command yet", is_armed=True)
DISARMED = GuardState(mode="disarmed", reason="not armed")
ORDER = "guard/order:pub-1:1"
STEP_S = 0.25
"""Between two things that the guard says, or two looks that find nothing."""


class Desk:
    """A run whose guard says what a test puts down, and all that is said to it."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.says: list[Message | tuple[GuardState, str] | None] = []
        self.sent: list[tuple[str, Message]] = []
        self.taken = 0  # of what the guard says
        self.attached: list[tuple[str | None, str, bool]] = []
        self.listened: list[tuple[list[str], float]] = []
        self.open: list[str] = []
        self.provenances: set[str] = set()
        self.taken_before: list[int] = []  # for each message that was sent

    @property
    def now_ns(self) -> int:
        return round(self.now_s * 1e9)

    def clock(self) -> Any:
        return SimpleNamespace(now_s=lambda: self.now_s, now_ns=lambda: self.now_ns)

    def attach(self, wanted: str | None, file: str, *, acts: bool) -> Any:
        self.attached.append((wanted, file, acts))
        return SimpleNamespace(folder=Path("run"))

    def sender(self, run: Any, topic: str, *, provenance: str) -> Any:
        assert run.folder == Path("run")
        self.open.append(topic)
        self.provenances.add(provenance)
        envelope = Envelope(topic, "pub-1", 1, 0)

        def publish(message: Message) -> Envelope:
            self.sent.append((topic, message))
            self.taken_before.append(self.taken)
            return envelope

        return SimpleNamespace(publish=publish, close=lambda: self.open.remove(topic))

    def hear(self, run: Any, topics: Sequence[str], asked: object, *, for_s: float) -> Iterator[Arrival | None]:
        assert run.folder == Path("run")
        assert isinstance(asked, StopSignal), "Ctrl-C ends it"
        self.listened.append((list(topics), for_s))
        end_s = self.now_s + for_s
        self.open.append("hear")
        try:
            for number, said in enumerate(self.says, start=1):
                self.now_s += STEP_S
                if self.now_s > end_s:
                    return
                self.taken += 1
                message, cause = said if isinstance(said, tuple) else (said, "")
                topic = "guard/answer" if isinstance(message, GuardAnswer) else "guard/state"
                yield (
                    None
                    if message is None
                    else Arrival(topic, encode(Envelope(topic, "guard", number, 0, cause=cause), message), 0, 0)
                )
        finally:
            self.open.remove("hear")

    def obey(self, do: Any, *says: Any, wanted: str | None = "room", by: str = "Ana", as_json: bool = True) -> int:
        self.says = list(says)
        code = command.obey(do, wanted, by, as_json=as_json)
        assert self.open == [], "everything is closed again"
        assert self.provenances <= {"person"}
        return code


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch) -> Desk:
    desk = Desk()
    monkeypatch.setattr(command, "attach", desk.attach)
    monkeypatch.setattr(command, "token_of", lambda folder: f"token of {folder}")
    monkeypatch.setattr(command, "Sender", desk.sender)
    monkeypatch.setattr(attach, "Sender", desk.sender)
    monkeypatch.setattr(command, "hear", desk.hear)
    monkeypatch.setattr(command, "SystemClock", desk.clock)
    monkeypatch.setattr(command, "user_name", lambda: "the account")
    return desk


Told = pytest.CaptureFixture[str]


def reason(told: Told) -> str:
    return str(json.loads(told.readouterr().out)["reason"])


def test_a_re_arm_is_told_as_it_took_effect_whatever_is_said_next(desk: Desk, capsys: Told) -> None:
    says = (LATCHED, ""), (LATCHED, "estop:console:1"), (REARMED, ORDER), (MOVING, "heard:ann:3")
    assert desk.obey("rearm", *says) == 0
    assert reason(capsys) == REARMED.reason


def test_a_refused_re_arm_is_told_as_well(desk: Desk, capsys: Told) -> None:
    assert desk.obey("rearm", (LATCHED, ""), (LATCHED, ORDER), (REARMED, "guard/order:console:9")) == 1
    assert reason(capsys) == LATCHED.reason


def test_where_the_answer_was_not_heard_the_last_state_is_told(desk: Desk, capsys: Told) -> None:
    assert desk.obey("rearm", (LATCHED, ""), (LATCHED, ""), (REARMED, "")) == 0
    assert reason(capsys) == REARMED.reason


def test_a_re_arm_lets_go_of_what_a_terminal_and_a_page_have_pressed_and_asks_for_nothing_else(desk: Desk) -> None:
    desk.obey("rearm", (LATCHED, ""), (REARMED, ORDER))
    at_ns = round((100.0 + STEP_S) * 1e9)
    assert desk.sent == [
        ("estop", EStop(source=TERMINAL, is_pressed=False)),
        ("estop", EStop(source="console", is_pressed=False)),
        ("guard/order", order("token of run", "rearm", "Ana", at_ns)),
    ]
    assert desk.taken_before == [0, 0, 1], "the order goes out once the guard is heard, so that its answer is, too"
    assert desk.listened == [(["guard/state"], 2.0)]
    assert desk.attached == [("room", "laptop", False)], "a run that is named may be of another login"


@pytest.mark.parametrize("do", ["arm", "resume"])
def test_another_order_is_that_order_alone(desk: Desk, do: Any) -> None:
    desk.obey(do, (HOLDING, ""), (HOLDING, ORDER))
    assert desk.sent == [("guard/order", order("token of run", do, "Ana", round((100.0 + STEP_S) * 1e9)))]


def test_who_does_not_say_who_they_are_is_their_account(desk: Desk) -> None:
    desk.obey("resume", (HOLDING, ""), (HOLDING, ORDER), by="")
    assert desk.sent[0][1].by == "the account"  # type: ignore[attr-defined]  # an order


def test_an_order_goes_out_after_a_second_of_silence_too_and_its_answer_is_waited_for_a_second(desk: Desk) -> None:
    assert desk.obey("resume", *[None] * 5, (LATCHED, ""), (MOVING, ORDER)) == 0
    assert desk.taken_before == [4]


def test_after_a_second_without_an_answer_what_was_heard_last_is_told(desk: Desk, capsys: Told) -> None:
    assert desk.obey("resume", (LATCHED, ""), *[None] * 3, (MOVING, ORDER), (REARMED, "")) == 0
    assert reason(capsys) == MOVING.reason
    assert desk.obey("resume", (LATCHED, ""), (HOLDING, "heard:ann:3"), *[None] * 4) == 0
    assert reason(capsys) == HOLDING.reason
    desk.taken = 0
    assert desk.obey("resume", (LATCHED, ""), *[None] * 4, (MOVING, ORDER)) == 1
    assert (reason(capsys), desk.taken) == (LATCHED.reason, 5)


@pytest.mark.parametrize("do", ["state", "estop", "arm", "rearm", "resume", "home", "stow", "runstop", "release"])
def test_a_guard_that_says_nothing_is_told(desk: Desk, do: Any) -> None:
    with pytest.raises(PolyrhythmError) as caught:
        desk.obey(do, *[None] * 20)
    assert str(caught.value) == sentence("guard.says_nothing")
    assert desk.open == []


def test_to_ask_for_the_state_says_nothing_to_the_guard(desk: Desk, capsys: Told) -> None:
    assert desk.obey("state", (LATCHED, ""), (HOLDING, "")) == 0
    assert reason(capsys) == HOLDING.reason
    assert (desk.sent, desk.listened) == ([], [(["guard/state"], 1.0)])


def test_an_emergency_stop_by_the_bus_is_pressed_by_the_terminal_and_names_who(desk: Desk) -> None:
    assert desk.obey("estop", (LATCHED, "")) == 0
    assert desk.sent == [("estop", EStop(source=TERMINAL, is_pressed=True, why="pressed by Ana"))]
    assert desk.obey("estop", (MOVING, "")) == 1


@pytest.mark.parametrize(
    ("do", "state", "code"),
    [
        ("rearm", LATCHED, 1), ("rearm", REARMED, 0),
        ("arm", DISARMED, 1), ("arm", HOLDING, 0),
        ("resume", REARMED, 1), ("resume", HOLDING, 0),
        ("state", DISARMED, 0), ("state", LATCHED, 0),
    ],
)  # fmt: skip
def test_the_exit_code_says_whether_it_is_so_now(desk: Desk, do: Any, state: GuardState, code: int) -> None:
    assert desk.obey(do, (state, ""), (state, ORDER)) == code


@pytest.mark.parametrize(
    ("do", "state", "out", "err"),
    [
        ("rearm", REARMED, f"stopped: {REARMED.reason}\n", f"{command.GO_ON}\n"),
        ("rearm", LATCHED, "estopped: emergency stop: x\n", ""),
        ("rearm", HOLDING, f"holding: {HOLDING.reason}\n", ""),
        ("resume", REARMED, f"stopped: {REARMED.reason}\n", ""),
        ("state", MOVING, "moving\n", ""),
        ("state", GuardState(mode="stopped", reason="stopped by E\x1b[2Jve"), "stopped by E\\x1b[2Jve\n", ""),
    ],
)  # fmt: skip
def test_people_are_told_the_mode_the_reason_what_is_latched_and_what_lifts_it(
    desk: Desk, capsys: Told, do: Any, state: GuardState, out: str, err: str
) -> None:
    desk.obey(do, (state, ""), (state, ORDER), as_json=False)
    assert capsys.readouterr() == (out, err)


def answer(do: str, *, by: str = "Ana", is_accepted: bool = True, now_ns: int = round((100.0 + STEP_S) * 1e9)) -> Any:
    return GuardAnswer(
        request=f"{by}-{now_ns}",
        do=do,
        by=by,
        is_accepted=is_accepted,
        code="done" if is_accepted else "moving",
        why="" if is_accepted else "it moves",
    )


@pytest.mark.parametrize(
    ("verb", "topic"),
    [
        ("home", "robot/service"), ("stow", "robot/service"),
        ("runstop", "robot/runstop"), ("release", "robot/runstop"),
    ],
)  # fmt: skip
def test_a_service_is_asked_for_once_signed_when_the_guard_is_heard(
    desk: Desk, capsys: Told, verb: Any, topic: str
) -> None:
    says = (HOLDING, ""), None, answer("home", by="Bob", is_accepted=False), (HOLDING, ""), answer(verb)
    assert desk.obey(verb, *says, as_json=False) == 0
    assert capsys.readouterr().out == f"{verb}: accepted\n"
    assert desk.sent == [(topic, service("token of run", verb, "Ana", round((100.0 + STEP_S) * 1e9)))]
    assert desk.taken_before == [1]
    assert desk.listened == [(["guard/answer", "guard/state"], 2.0)]


def test_a_service_that_is_refused_says_why(desk: Desk, capsys: Told) -> None:
    refused = answer("stow", is_accepted=False)
    assert desk.obey("stow", None, (HOLDING, ""), None, answer("stow", now_ns=round((100.0 + 2 * STEP_S) * 1e9),
                     is_accepted=False), as_json=False) == 1  # fmt: skip
    assert capsys.readouterr().out == "stow: refused: it moves\n"
    desk.now_s = 100.0
    assert desk.obey("stow", (HOLDING, ""), refused) == 1
    assert json.loads(capsys.readouterr().out) == msgspec.to_builtins(refused)


def test_what_a_refusal_says_is_read_and_not_obeyed_by_the_terminal(desk: Desk, capsys: Told) -> None:
    refused = msgspec.structs.replace(answer("stow", is_accepted=False), why="\x1b[2Jit moves")
    assert desk.obey("stow", (HOLDING, ""), refused, as_json=False) == 1
    assert capsys.readouterr().out == "stow: refused: \\x1b[2Jit moves\n"


def test_the_runs_that_there_are_end_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "find_runs", list)
    assert command.running() == "none is running"
    monkeypatch.setattr(command, "find_runs", lambda: [SimpleNamespace(title="b"), SimpleNamespace(title="a")])
    assert command.running() == "running: a, b"


class House:
    """Runs that go on, each with a guard that says what a test puts down; and what is said to each of them."""

    def __init__(self) -> None:
        self.runs: list[Any] = []
        self.says: dict[str, Message | None] = {}
        self.sent: dict[str, list[tuple[str, Message]]] = {}
        self.unreached: list[str] = []

    def run(self, title: str, says: Message | None, topics: Sequence[str] = ("estop", "robot/runstop")) -> None:
        self.runs.append(SimpleNamespace(title=title, folder=Path(title), info=SimpleNamespace(topics=topics)))
        self.says[title] = says

    def sender(self, run: Any, topic: str, *, provenance: str) -> Any:
        def publish(message: Message) -> None:
            self.sent.setdefault(run.title, []).append((topic, message))

        return SimpleNamespace(publish=publish, close=lambda: None)

    def hear(self, run: Any, topics: Sequence[str], asked: object, *, for_s: float) -> Iterator[Arrival | None]:
        assert isinstance(asked, StopSignal), "Ctrl-C ends it"
        if (said := self.says[run.title]) is None:
            return
        for message in (MOVING, said):
            topic = "guard/answer" if isinstance(message, GuardAnswer) else "guard/state"
            yield Arrival(topic, encode(Envelope(topic, "guard", 1, 0), message), 0, 0)


@pytest.fixture
def house(monkeypatch: pytest.MonkeyPatch) -> House:
    house = House()
    monkeypatch.setattr(command, "find_runs", lambda: house.runs)
    monkeypatch.setattr(command, "unreached", lambda: house.unreached)
    monkeypatch.setattr(command, "token_of", lambda folder: f"token of {folder}")
    monkeypatch.setattr(command, "Sender", house.sender)
    monkeypatch.setattr(attach, "Sender", house.sender)
    monkeypatch.setattr(command, "hear", house.hear)
    monkeypatch.setattr(command, "SystemClock", lambda: SimpleNamespace(now_ns=lambda: AT_NS))
    return house


AT_NS = 7_000_000_000
PRESSED = EStop(source=TERMINAL, is_pressed=True, why="pressed by Ana")
STOPPED = answer("runstop", now_ns=AT_NS)
REFUSED = answer("runstop", now_ns=AT_NS, is_accepted=False)


def test_a_stop_that_names_no_run_goes_to_each_and_each_is_told_by_its_title(house: House, capsys: Told) -> None:
    house.run("kitchen (pid 10)", LATCHED)
    house.run("hall (pid 20)", LATCHED)
    assert command.obey("estop", None, "Ana", as_json=False) == 0
    told = capsys.readouterr()
    assert sorted(told.out.splitlines()) == [
        "hall (pid 20): estopped: emergency stop: x",
        "kitchen (pid 10): estopped: emergency stop: x",
    ]
    assert told.err == ""
    assert house.sent == {"kitchen (pid 10)": [("estop", PRESSED)], "hall (pid 20)": [("estop", PRESSED)]}


@pytest.mark.parametrize(("kitchen", "hall"), [(LATCHED, MOVING), (MOVING, LATCHED), (MOVING, MOVING)])
def test_one_of_several_that_is_not_stopped_is_told_by_the_exit_code(
    house: House, kitchen: GuardState, hall: GuardState
) -> None:
    house.run("kitchen (pid 10)", kitchen)
    house.run("hall (pid 20)", hall)
    assert command.obey("estop", None, "Ana", as_json=False) == 1


def test_a_runstop_that_names_no_run_is_pressed_at_each_and_who_refuses_is_told(house: House, capsys: Told) -> None:
    house.run("kitchen (pid 10)", STOPPED)
    house.run("hall (pid 20)", REFUSED)
    assert command.obey("runstop", None, "Ana", as_json=False) == 1
    assert sorted(capsys.readouterr().out.splitlines()) == [
        "hall (pid 20): runstop: refused: it moves",
        "kitchen (pid 10): runstop: accepted",
    ]
    assert house.sent == {
        title: [("robot/runstop", service(f"token of {title}", "runstop", "Ana", AT_NS))]
        for title in ("kitchen (pid 10)", "hall (pid 20)")
    }
    house.says["hall (pid 20)"] = STOPPED
    assert command.obey("runstop", None, "Ana", as_json=False) == 0


@pytest.mark.parametrize(("do", "said"), [("estop", LATCHED), ("runstop", STOPPED)])
def test_a_program_is_told_of_each_run_in_a_line_of_its_own(house: House, capsys: Told, do: Any, said: Message) -> None:
    house.run("kitchen (pid 10)", said)
    house.run("hall (pid 20)", said)
    assert command.obey(do, None, "Ana", as_json=True) == 0
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == [msgspec.to_builtins(said)] * 2


@pytest.mark.parametrize("do", ["estop", "runstop"])
def test_a_guard_that_is_silent_is_named_and_keeps_no_other_from_its_stop(house: House, capsys: Told, do: Any) -> None:
    house.run("kitchen (pid 10)", None)
    house.run("hall (pid 20)", LATCHED if do == "estop" else STOPPED)
    assert command.obey(do, None, "Ana", as_json=False) == 1
    told = capsys.readouterr()
    assert told.err == f"polyrhythm guard: kitchen (pid 10): {sentence('guard.says_nothing')}\n"
    assert told.out.startswith("hall (pid 20): "), "and nothing is said for the kitchen"
    assert told.out.count("\n") == 1


def test_a_run_that_has_no_such_stop_is_not_asked_and_one_alone_needs_no_title(house: House, capsys: Told) -> None:
    house.run("kitchen (pid 10)", LATCHED, topics=("estop",))
    house.run("hall (pid 20)", STOPPED, topics=("robot/runstop",))
    assert command.obey("estop", None, "Ana", as_json=False) == 0
    assert capsys.readouterr() == ("estopped: emergency stop: x\n", "")
    assert list(house.sent) == ["kitchen (pid 10)"]
    assert command.obey("runstop", None, "Ana", as_json=False) == 0
    assert capsys.readouterr() == ("runstop: accepted\n", "")
    assert list(house.sent) == ["kitchen (pid 10)", "hall (pid 20)"]


@pytest.mark.parametrize(
    ("do", "acts"),
    [
        ("state", False), ("estop", False), ("runstop", False),
        ("resume", True), ("home", True), ("stow", True), ("release", True),
    ],
)  # fmt: skip
def test_only_what_stops_or_asks_needs_no_name_at_a_run_of_another_login(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, do: Any, acts: bool
) -> None:
    monkeypatch.setattr(command, "find_runs", list)
    monkeypatch.setattr(command, "unreached", list)
    with pytest.raises(PolyrhythmError):
        desk.obey(do, wanted=None)
    assert desk.attached == [(None, "laptop", acts)]


def test_a_run_that_cannot_be_read_is_told_after_the_others_were_stopped(house: House, capsys: Told) -> None:
    house.unreached = ["the attic cannot be read", "nor the cellar"]
    assert command.obey("estop", None, "Ana", as_json=False) == 1
    unread = "polyrhythm guard: the attic cannot be read\npolyrhythm guard: nor the cellar\n"
    assert capsys.readouterr() == ("", unread)
    house.run("hall (pid 20)", LATCHED)
    assert command.obey("estop", None, "Ana", as_json=False) == 1
    assert capsys.readouterr() == ("estopped: emergency stop: x\n", unread)
    assert house.sent == {"hall (pid 20)": [("estop", PRESSED)]}


def test_a_question_goes_to_one_run_and_tells_of_none_that_cannot_be_read(
    house: House, monkeypatch: pytest.MonkeyPatch, capsys: Told
) -> None:
    house.unreached = ["the attic cannot be read"]
    house.run("hall (pid 20)", LATCHED)
    monkeypatch.setattr(command, "attach", lambda wanted, *_, **__: house.runs[0])
    assert command.obey("state", None, "Ana", as_json=False) == 0
    assert capsys.readouterr() == ("estopped: emergency stop: x\n", "")


def test_who_names_a_run_stops_that_one_and_is_told_of_no_other(
    house: House, monkeypatch: pytest.MonkeyPatch, capsys: Told
) -> None:
    house.unreached = ["the attic cannot be read"]
    house.run("kitchen (pid 10)", LATCHED)
    house.run("hall (pid 20)", LATCHED)
    monkeypatch.setattr(command, "attach", lambda wanted, *_, **__: house.runs[wanted == "hall"])
    assert command.obey("estop", "hall", "Ana", as_json=False) == 0
    assert capsys.readouterr() == ("estopped: emergency stop: x\n", "")
    assert list(house.sent) == ["hall (pid 20)"]
