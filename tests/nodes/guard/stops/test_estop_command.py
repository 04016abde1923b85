"""`polyrhythm guard estop` and what else is typed: whom it stops, what it says, that only what was named may move."""

from __future__ import annotations

import json
import signal
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from nodes.guard import command, estop_signal, orders
from nodes.guard.estop_signal import ANSWER_S, GuardProcess
from runtime.errors import UserError
from tests.support.sentences import pattern, sentence


class Presses:
    """Guards that all answer, and whom somebody stopped."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *running: GuardProcess) -> None:
        self.stopped: list[str] = []
        monkeypatch.setattr(estop_signal, "guard_processes", lambda: list(running))
        monkeypatch.setattr(estop_signal, "press", self._press)

    def _press(self, processes: list[GuardProcess], answer_s: float = ANSWER_S) -> list[GuardProcess]:
        self.stopped += [one.run for one in processes]
        return []


@pytest.fixture
def two(monkeypatch: pytest.MonkeyPatch) -> Presses:
    return Presses(monkeypatch, GuardProcess(11, 10, "kitchen", -1), GuardProcess(21, 20, "hall", -1))


def test_without_a_name_every_robot_of_this_user_is_stopped_and_with_one_that_alone(two: Presses) -> None:
    assert command.main(["estop"]) == 0
    assert two.stopped == ["kitchen", "hall"]
    assert command.main(["estop", "--run", "hall"]) == 0
    assert command.main(["estop", "--run", "10"]) == 0
    assert two.stopped[2:] == ["hall", "kitchen"]


def test_a_name_that_no_run_has_stops_nobody_and_is_told(two: Presses, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["estop", "--run", "cellar"]) == 1
    assert capsys.readouterr().err == (
        sentence("guard.no_such_run", run="cellar", runs="hall (pid 20), kitchen (pid 10)\n")
    )
    assert two.stopped == []


def test_a_run_whose_guard_is_being_started_is_stopped_as_soon_as_it_listens(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    starts, listens = GuardProcess(30, 30, "attic", -1), GuardProcess(31, 30, "attic", -1)
    looks = iter([[starts], [starts], [listens]])
    pressed: list[GuardProcess] = []
    monkeypatch.setattr(estop_signal, "guard_processes", lambda: next(looks))

    def press(processes: list[GuardProcess], answer_s: float = ANSWER_S) -> list[GuardProcess]:
        pressed.extend(processes)
        return []

    monkeypatch.setattr(estop_signal, "press", press)
    assert command.main(["estop"]) == 0
    assert pressed == [listens], "the supervisor is sent no signal"
    told = capsys.readouterr()
    assert told.out == f"attic (pid 30): {sentence('guard.guard_is_being_started')}\n"
    assert told.err == f"attic (pid 30): {sentence('guard.started_and_latched')}\n"


@pytest.mark.parametrize("order", ["arm", "rearm"])
def test_what_lets_a_robot_move_needs_a_name(order: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(orders, "find_runs", list)
    with pytest.raises(UserError, match=f"^{order}{pattern('guard.run_is_needed')}"):
        command.main([order])


def test_another_order_goes_to_the_guard_as_it_was_typed(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def obey(*given: Any, **how: Any) -> int:
        asked.append((given, how))
        return 7

    monkeypatch.setattr(orders, "obey", obey)
    assert command.main(["rearm", "--run", "hall", "--by", "Ana"]) == 7
    assert command.main(["resume", "--json"]) == 7
    assert asked == [(("rearm", "hall", "Ana"), {"as_json": False}), (("resume", None, ""), {"as_json": True})]


@pytest.mark.parametrize("do", ["state", "arm", "rearm", "resume", "home", "stow", "runstop", "release"])
def test_each_order_is_known_by_its_name(do: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def obey(do: str, *_: object, **__: object) -> int:
        asked.append(do)
        return 0

    monkeypatch.setattr(orders, "obey", obey)
    assert command.main([do, "--run", "hall"]) == 0
    assert asked == [do]


def test_where_nothing_has_a_guard_it_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Presses(monkeypatch)
    assert command.main(["estop"]) == 1
    assert capsys.readouterr() == ("", f"{command.NOBODY}\n")


def test_who_is_held_is_told_to_people_and_to_programs(two: Presses, capsys: pytest.CaptureFixture[str]) -> None:
    command.main(["estop"])
    assert capsys.readouterr().out == (
        f"kitchen (pid 10): {sentence('guard.held_and_latched')}\nhall (pid 20): {sentence('guard.held_and_latched')}\n"
    )
    command.main(["estop", "--json"])
    assert json.loads(capsys.readouterr().out) == [
        {"run": "kitchen", "pid": 10, "ended": None, "latched": True},
        {"run": "hall", "pid": 20, "ended": None, "latched": True},
    ]


class Frozen:
    """One guard that answers and one that does not, which the supervisor starts again after some looks, or never."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, comes_back_after: int) -> None:
        self.whole, self.frozen = GuardProcess(11, 10, "kitchen", -1), GuardProcess(21, 20, "hall", -1)
        self.again = GuardProcess(22, 20, "hall", -1)
        self.looks_left = comes_back_after
        self.signals: list[tuple[int, int]] = []
        self.pressed: list[list[int]] = []
        self.now_s = 0.0
        self.answer_s: list[float] = []
        monkeypatch.setattr(estop_signal, "guard_processes", self.look)
        monkeypatch.setattr(estop_signal, "press", self.press)
        monkeypatch.setattr(GuardProcess, "signal", lambda one, number: self.signals.append((one.pid, number)))
        monkeypatch.setattr(command, "SystemClock", lambda: SimpleNamespace(now_s=lambda: self.now_s))
        monkeypatch.setattr(threading.Event, "wait", self.wait)

    def wait(self, seconds: float | None = None) -> bool:
        self.now_s += seconds or 0.0
        return False

    def look(self) -> list[GuardProcess]:
        if not self.signals:
            return [self.whole, self.frozen]
        self.looks_left -= 1
        return [self.whole, GuardProcess(20, 20, "hall", -1), *([self.again] if self.looks_left < 0 else [])]

    def press(self, processes: list[GuardProcess], answer_s: float = ANSWER_S) -> list[GuardProcess]:
        self.pressed.append([one.pid for one in processes])
        self.answer_s.append(answer_s)
        return [one for one in processes if one == self.frozen]


ENDED = sentence("guard.was_ended", run="hall", pid=20, ms=300, process=21)


def test_a_guard_that_does_not_answer_is_ended_and_the_one_that_comes_back_is_latched(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    room = Frozen(monkeypatch, comes_back_after=3)
    assert command.main(["estop"]) == 0
    assert room.signals == [(21, signal.SIGKILL)], "and no other process"
    assert room.pressed == [[11, 21], [22]]
    assert room.answer_s == [ANSWER_S, pytest.approx(15.0 - 3 * 0.05)]
    told = capsys.readouterr()
    assert told.out == f"kitchen (pid 10): {sentence('guard.held_and_latched')}\n{ENDED}\n"
    assert told.err == f"hall (pid 20): {sentence('guard.started_again_and_latched')}\n"


def test_a_guard_that_never_comes_back_is_told_after_fifteen_seconds(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    room = Frozen(monkeypatch, comes_back_after=10_000)
    assert command.main(["estop", "--json"]) == 1
    assert room.now_s == pytest.approx(15.0, abs=0.06)
    told = capsys.readouterr()
    assert json.loads(told.out) == [
        {"run": "kitchen", "pid": 10, "ended": None, "latched": True},
        {"run": "hall", "pid": 20, "ended": 21, "latched": False},
    ]
    assert told.err == f"hall (pid 20): {sentence('guard.no_guard_came_back', seconds=15)}\n"


def test_what_is_typed_in_need_waits_for_no_parser(two: Presses, monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(**_: object) -> None:
        raise AssertionError("an emergency stop that is typed as it stands on the page is read by hand")

    monkeypatch.setattr("argparse.ArgumentParser", slow)
    assert command.main(["estop"]) == 0
    assert two.stopped == ["kitchen", "hall"]


def test_without_a_signal_an_emergency_stop_goes_by_the_bus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estop_signal, "SIGNAL", None)
    monkeypatch.setattr(orders, "obey", lambda do, *_, **__: 7 if do == "estop" else 0)
    assert command.main(["estop"]) == 7


def test_what_became_of_each_robot_is_told_at_once_and_not_when_all_are_done(
    two: Presses, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: list[Any] = []
    monkeypatch.setattr("builtins.print", lambda *_, **how: flushed.append(how.get("flush")))
    assert command.main(["estop"]) == 0
    room = Frozen(monkeypatch, comes_back_after=3)
    assert command.main(["estop"]) == 0
    assert room.signals
    starts, listens = GuardProcess(30, 30, "attic", -1), GuardProcess(31, 30, "attic", -1)
    looks = iter([[starts], [listens]])
    monkeypatch.setattr(estop_signal, "guard_processes", lambda: next(looks))
    monkeypatch.setattr(estop_signal, "press", lambda *_: [])
    assert command.main(["estop"]) == 0
    assert flushed == [True, True, True, True, None, True, None], (
        "the last word on each goes to stderr, which is not kept back"
    )


def test_help_tells_an_example_and_what_is_no_order_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        command.main(["--help"])
    told = " ".join(capsys.readouterr().out.split())
    assert ended.value.code == 0
    assert told.startswith("usage: polyrhythm guard [-h]")
    assert sentence("guard.help") in told
    assert told.endswith(sentence("guard.help_example"))
    with pytest.raises(SystemExit) as ended:
        command.main(["dance"])
    assert ended.value.code == 2
