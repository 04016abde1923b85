"""The terminal shows who said what, what goes on, and who is late, on 80 columns and without a terminal."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from nodes.msgs import Action, Feedback, GuardState, Interrupt, JointCommand, Subtask, Utterance
from nodes.terminal.view import TerminalView
from runtime.clock import SystemClock
from runtime.coordination.health import Health, PortHealth, TimerHealth
from runtime.coordination.lease import Lease
from runtime.message import Envelope, Message, Stamped
from runtime.supervision.view import View

START_NS = 1_000_000_000_000


class _Clock(SystemClock):
    def __init__(self) -> None:
        self.ns = START_NS

    def now_ns(self) -> int:
        return self.ns


def stamped(message: Message, at_s: float, topic: str = "said", start_ns: int = START_NS) -> Stamped[Message]:
    return Stamped(message, Envelope(topic, "node", 1, start_ns + round(at_s * 1e9)))


def health(node: str, pid: int, hz: float = 20.0, achieved: float = 20.0, dropped: int = 0) -> Health:
    timer = TimerHealth(
        name="tick", hz_target=hz, hz_achieved=achieved, ticks=100, overruns=3, lateness_p50_ms=0.1,
        lateness_p99_ms=1.4, lateness_max_ms=2.0,
    )  # fmt: skip
    port = PortHealth(
        topic="x", received=9, delivered=9, waiting=0, dropped={"overwritten": 7, "queue full": dropped}
    )  # fmt: skip
    return Health(
        node=node, pid=pid, timers=(timer,), ports=(port,), sent={}, errors=0, cpu_s=1.0, rss_mb=80.0
    )  # fmt: skip


def lines(*messages: tuple[float, Message], start_ns: int = START_NS) -> list[str]:
    out = io.StringIO()
    view = TerminalView("laptop", live=False, console=Console(file=out, width=80, highlight=False), clock=_Clock())
    for at_s, message in messages:
        view.message(stamped(message, at_s, start_ns=start_ns))
    view.close()
    return out.getvalue().splitlines()[1:]


def board(view: TerminalView, out: io.StringIO, now_s: float) -> list[str]:
    view.refresh(START_NS + round(now_s * 1e9))
    console = Console(file=io.StringIO(), width=80, height=24, highlight=False, record=True)
    console.print(view.board.draw(START_NS + round(now_s * 1e9), 80, 24))
    return console.export_text().splitlines()


def live_view() -> tuple[TerminalView, io.StringIO]:
    out = io.StringIO()
    console = Console(file=out, width=80, height=24, highlight=False, force_terminal=True)
    return TerminalView("laptop in real time", live=True, console=console, clock=_Clock()), out


def test_what_is_said_in_shadow_is_not_shown_as_the_robots_deeds() -> None:
    out = io.StringIO()
    view = TerminalView("laptop", live=False, console=Console(file=out, width=80, highlight=False), clock=_Clock())

    def said(message: Message, topic: str, source: str, seat: str = "policy") -> None:
        view.message(Stamped(message, Envelope(topic, source, 1, START_NS, seat=seat)))

    said(Lease(seat="policy", holder="policy", number=1), "lease", "guard", seat="")
    said(Action(id="a1", skill="pick", text="pick up the red cup"), "action", "vlm", seat="vlm")
    said(Feedback(action_id="a1", status="success"), "feedback", "candidate")
    view.refresh(START_NS + 10**9)
    assert "success" not in out.getvalue()
    said(Feedback(action_id="a1", status="failure", why="it slipped"), "feedback", "policy")
    said(Lease(seat="policy", holder="candidate", number=2), "lease", "guard", seat="")
    said(Feedback(action_id="a1", status="success"), "feedback", "candidate")
    view.close()
    assert [line.partition("] ")[2] for line in out.getvalue().splitlines()[1:]] == [
        "action: pick up the red cup",
        "action: failure: pick up the red cup: it slipped",
        "action: success: pick up the red cup",
    ]


def test_what_was_replaced_or_asked_first_is_told_as_no_failure() -> None:
    assert lines(
        (1.0, Action(id="a1", skill="pick", text="pick up the red cup")),
        (2.0, Feedback(action_id="a1", status="failure", why="replaced by 'look'", code="replaced")),
        (2.5, Action(id="a2", skill="hand_over", text="hand over the ball")),
        (3.0, Feedback(action_id="a2", status="failure", why="Shall I?", code="consent")),
    ) == [
        "[  1.0 s] action: pick up the red cup",
        "[  2.0 s] action: replaced: pick up the red cup: replaced by 'look'",
        "[  2.5 s] action: hand over the ball",
        "[  3.0 s] action: asked: hand over the ball: Shall I?",
    ]


def test_it_is_a_view() -> None:
    view: View = TerminalView("x", live=False, console=Console(file=io.StringIO()))
    view.close()


def test_without_a_terminal_each_event_is_a_line_with_its_run_time() -> None:
    assert lines(
        (2.0, Utterance(speaker="collaborator", text="Clear the table, please")),
        (2.5, Subtask(id="s1", text="Put every cup in the bin")),
        (2.6, Subtask(id="s1", text="Put every cup in the bin")),
        (3.25, Action(id="a1", skill="pick", text="pick up the red cup")),
        (3.3, Feedback(action_id="a1", status="running")),
        (9.0, Feedback(action_id="a1", status="failure", why="it slipped")),
        (9.1, JointCommand(position=(0.0,) * 8)),
        (12.2, Interrupt(id="i0", depth="stop", text="contact: base", by="contact")),
        (12.3, Utterance(speaker="collaborator", text="Ouch!")),
        (12.34, Interrupt(id="i1", depth="stop", text="Ouch!", by="collaborator")),
        (12.4, Interrupt(id="i2", depth="stop", text="Halt!", by="collaborator")),
        (12.31, GuardState(mode="stopped", reason="Ouch!")),
        (12.45, GuardState(mode="stopped", reason="Ouch!")),
        (15.0, GuardState(mode="holding", reason="resumed by Sam")),
        (15.1, GuardState(mode="stopped", reason="stopped by Sam: Halt!")),
    ) == [
        "[  2.0 s] collaborator: “Clear the table, please”",
        "[  2.5 s] plan: Put every cup in the bin",
        "[  3.2 s] action: pick up the red cup",
        "[  9.0 s] action: failure: pick up the red cup: it slipped",
        "[ 12.2 s] interrupt: stop by contact: base",
        "[ 12.3 s] collaborator: “Ouch!”",
        "[ 12.3 s] guard: stopped: Ouch!",
        "[ 12.3 s] interrupt: stop by collaborator",
        "[ 12.4 s] interrupt: stop by collaborator: Halt!",
        "[ 15.0 s] guard: holding: resumed by Sam",
        "[ 15.1 s] guard: stopped by Sam: Halt!",
    ]


def test_an_emergency_stop_of_a_robot_that_stands_and_its_end_are_lines() -> None:
    why = "console: pressed by root"
    assert lines(
        (1.0, GuardState(mode="stopped", reason="stopped by Sam: Halt!")),
        (2.0, GuardState(mode="stopped", reason=f"emergency stop: {why}", estop=why)),
        (2.1, GuardState(mode="stopped", reason=f"emergency stop: {why}", estop=why)),
        (3.0, GuardState(mode="stopped", reason="re-armed by root")),
    ) == [
        "[  1.0 s] guard: stopped by Sam: Halt!",
        "[  2.0 s] guard: estopped: emergency stop: console: pressed by root",
        "[  3.0 s] guard: stopped: re-armed by root",
    ]


def test_words_come_before_what_they_cause_whichever_is_heard_first() -> None:
    out = io.StringIO()
    view = TerminalView("laptop", live=False, console=Console(file=out, width=80, highlight=False), clock=_Clock())
    view.message(stamped(GuardState(mode="stopped", reason="stopped by contact: contact: base"), 1.13))
    view.message(stamped(Interrupt(id="i", depth="stop", text="Stop!", by="Sam"), 1.12))
    view.refresh(START_NS + round(1.2e9))
    assert len(out.getvalue().splitlines()) == 1  # nothing yet: what caused it may be under way
    view.message(stamped(Utterance(speaker="Sam", text="Stop!"), 1.1))
    view.refresh(START_NS + round(1.5e9))
    assert out.getvalue().splitlines()[1:] == [
        "[  1.1 s] Sam: “Stop!”",
        "[  1.1 s] interrupt: stop by Sam",
        "[  1.1 s] guard: stopped by contact: base",
    ]


def test_a_notice_of_several_processes_is_one_line() -> None:
    out = io.StringIO()
    view = TerminalView("laptop", live=False, console=Console(file=out, width=80, highlight=False), clock=_Clock())
    for source in ("robot", "policy"):
        view.log("notice", source, "the machine is busy")
    assert out.getvalue().count("the machine is busy") == 1


def test_in_virtual_time_lines_carry_the_run_s_own_time() -> None:
    assert lines((2.0, Utterance(speaker="robot", text="Yes.")), start_ns=0) == ["[  2.0 s] robot: “Yes.”"]
    assert lines((0.0, Utterance(speaker="robot", text="Yes.")), start_ns=0) == ["[  0.0 s] robot: “Yes.”"]


def test_processes_and_warnings_are_lines_and_small_talk_is_not() -> None:
    out = io.StringIO()
    view = TerminalView("x", live=False, console=Console(file=out, width=80, highlight=False), clock=_Clock())
    view.process("planner", 4711, "started")
    view.process("planner", 4711, "running")
    view.log("info", "planner", "hello")
    view.log("warning", "vlm", "slow")
    view.process("planner", 4711, "failed: was killed by SIGKILL")
    view.process("planner", 4712, "restarted")
    assert out.getvalue().splitlines()[1:] == [
        "[  0.0 s] every node runs",
        "[  0.0 s] vlm: warning: slow",
        "[  0.0 s] planner: failed: was killed by SIGKILL [pid 4711]",
        "[  0.0 s] planner: restarted [pid 4712]",
    ]
    assert "\x1b" not in out.getvalue()


def test_that_every_node_runs_is_told_once_and_not_before_the_last_one_does() -> None:
    out = io.StringIO()
    view = TerminalView("x", live=False, console=Console(file=out, width=80, highlight=False), clock=_Clock())
    for state in ("started", "running"):
        for name in ("planner", "vlm"):
            assert "every node runs" not in out.getvalue()
            view.process(name, 4711, state)
    view.process("vlm", 4712, "restarted")
    view.process("vlm", 4712, "running")
    assert out.getvalue().count("every node runs") == 1


def test_a_long_line_is_not_broken_where_there_is_no_terminal() -> None:
    (line,) = lines((1.0, Utterance(speaker="robot", text="word " * 40)))
    assert len(line) > 200


def test_words_stay_whole_on_a_terminal_beside_the_time() -> None:
    out = io.StringIO()
    console = Console(file=out, width=80, height=24, highlight=False, force_terminal=True, color_system=None)
    view = TerminalView("laptop", live=False, console=console, clock=_Clock())
    view.log("warning", "robot", "Which cup do you mean: the blue cup, the green cup, the red cup or the yellow cup?")
    first, second = [line.rstrip() for line in out.getvalue().splitlines()[-2:]]
    assert first.endswith(" cup,")
    assert second.strip().startswith("the ")
    assert second.startswith(" " * 8)


def test_the_board_fits_80_by_24_and_shows_everything() -> None:
    view, out = live_view()
    names = (
        "planner",
        "vlm",
        "policy",
        "driver",
        "guard",
        "reflex",
        "head_camera",
        "wrist_camera",
        "collaborator",
        "recorder",
    )
    for index, name in enumerate(names):
        view.process(name, 4000 + index, "running")
        view.message(stamped(health(name, 4000 + index, dropped=index), 9.0, f"health/{name}"))
    for index in range(30):
        view.message(
            stamped(Utterance(speaker="robot", text=f"sentence {index} " + "and so on " * 10), 1.0 + index / 10)
        )
    view.message(stamped(Subtask(id="s", text="Put every cup in the bin"), 5.0))
    view.message(stamped(Action(id="a", skill="pick", text="pick up the red cup"), 5.0))
    view.message(stamped(Feedback(action_id="a", status="running"), 5.0))
    view.message(stamped(GuardState(mode="moving", reason="policy in command"), 5.0))
    view.log("warning", "vlm", "the image is old")
    view.refresh(START_NS + 10_000_000_000)
    shown = board(view, out, 10.0)
    assert len(shown) <= 24
    assert max(len(line) for line in shown) <= 80
    text = "\n".join(shown)
    for words in (
        "● recording  10.0 s", "sentence 29", "pick up the red cup  running", "moving",
        "Put every cup in the bin", "vlm: the image is old", "10 of 10 nodes are well; polyrhythm top",
    ):  # fmt: skip
        assert words in text
    assert "4007" not in text, "process ids are for polyrhythm nodes"
    view.close()
    assert "sentence 0" in out.getvalue()  # the conversation stays on the terminal


def test_the_board_tells_silence_failure_and_restart() -> None:
    view, out = live_view()
    view.process("planner", 100, "running")
    view.message(stamped(health("planner", 100), 1.0, "health/planner"))
    assert any(line.startswith("1 of 1 nodes are well") for line in board(view, out, 2.0))
    assert any("planner: silent" in line for line in board(view, out, 9.0))
    view.process("planner", 100, "failed: was killed by SIGKILL")
    assert any("planner: failed: was killed" in line for line in board(view, out, 2.0))
    assert any(line.startswith("0 of 1 nodes are well") for line in board(view, out, 2.0))
    view.process("planner", 101, "restarted")
    assert any("planner: restarted" in line for line in board(view, out, 2.0))
    view.close()


def test_a_process_that_does_not_start_is_told() -> None:
    view, out = live_view()
    view.process("robot", 77, "started")
    assert any(line.rstrip() == "loading" for line in board(view, out, 0.1))
    view.process("robot", 77, "failed: exited with code 1")
    assert any(line.rstrip() == "robot: failed: exited with code 1" for line in board(view, out, 0.1))
    view.process("robot", 77, "running")
    view.board.lines.clear()
    assert not any("robot" in line for line in board(view, out, 0.1))
    view.close()


def test_the_story_on_the_board_holds_who_spoke_what_was_done_and_why_it_stopped() -> None:
    view, out = live_view()
    view.message(stamped(Action(id="a1", skill="pick", text="pick up the red cup"), 3.0))
    view.message(stamped(Utterance(speaker="ann", text="Stop!"), 4.0, "heard"))
    view.message(stamped(Interrupt(id="i1", depth="stop", text="Stop!", by="ann"), 4.0))
    view.message(stamped(GuardState(mode="stopped", reason="stopped by ann: Stop!"), 4.1))
    text = "\n".join(board(view, out, 5.0))
    places = [text.index(words) for words in ("3.0 action", "4.0 ann", "stop by ann", "4.1 guard")]
    assert places == sorted(places)
    view.close()


def test_a_warning_goes_and_a_fault_stays() -> None:
    view, out = live_view()
    view.log("error", "policy", "its model does not answer")
    view.log("warning", "vlm", "the image is old")
    soon, later = "\n".join(board(view, out, 1.0)), "\n".join(board(view, out, 11.0))
    assert "the image is old" in soon
    assert "its model does not answer" in soon
    assert "the image is old" not in later
    assert "its model does not answer" in later
    view.close()


@pytest.mark.parametrize("size", [(40, 10), (200, 60)])
def test_odd_sizes_do_not_break_the_board(size: tuple[int, int]) -> None:
    view, _ = live_view()
    view.message(stamped(health("planner", 100), 1.0, "health/planner"))
    console = Console(file=io.StringIO(), width=size[0], height=size[1], record=True)
    console.print(view.board.draw(START_NS, *size))
    assert all(len(line) <= size[0] for line in console.export_text().splitlines())
    view.close()


ADDRESS = (
    "http://192.168.100.200:8443/page/for/whoever/sits/beside/the/robot?token=abcdefghijklmnopqrstuvwxyz0123456789"
)


@pytest.mark.parametrize("width", [40, 60, 80])
def test_a_web_address_is_never_cut_however_narrow_the_terminal(width: int) -> None:
    out = io.StringIO()
    console = Console(file=out, width=width, height=24, highlight=False, force_terminal=True, color_system=None)
    view = TerminalView("laptop", live=False, console=console, clock=_Clock())
    view.log("notice", "console", f"console: {ADDRESS}")
    view.log("warning", "console", f"open {ADDRESS} to go on")
    assert out.getvalue().count(ADDRESS) == 2, "in one piece, which the terminal itself wraps"
    drawn = Console(file=io.StringIO(), width=width, height=24, highlight=False, record=True)
    drawn.print(view.board.draw(START_NS, width, 24))
    rows = drawn.export_text().splitlines()
    assert "".join(row.rstrip() for row in rows).count(ADDRESS) == 2
    assert len(rows) <= 24


def test_an_answer_longer_than_the_board_is_wide_stands_whole_on_it() -> None:
    view, out = live_view()
    answer = (
        "Which cup do you mean: the blue cup, the green cup, the red cup, the white cup or the yellow cup beside it?"
    )
    plan = "Put the blue cup, the green cup, the red cup, the white cup and the yellow cup into the bin, one by one"
    for at_s in range(20):
        view.message(stamped(Utterance(speaker="Sam", text=f"line {at_s}"), float(at_s), "heard"))
    view.message(stamped(Utterance(speaker="robot", text=answer), 20.0))
    view.message(stamped(Subtask(id="s", text=plan), 1.0))
    view.log("error", "policy", f"its model does not answer: {answer}")
    shown = board(view, out, 21.0)
    words = " ".join(" ".join(shown).split())
    for text in (f"“{answer}”", f"plan {plan}", f"policy: its model does not answer: {answer}"):
        assert text in words
    assert len(shown) <= 24
    assert max(map(len, shown)) <= 80
    view.close()


def test_the_end_of_a_long_typed_line_is_where_one_sees_it() -> None:
    view, _ = live_view()
    view.board.typed = "word " * 100 + "the end"
    console = Console(file=io.StringIO(), width=80, height=24, record=True)
    console.print(view.board.draw(START_NS, 80, 24))
    assert console.export_text().rstrip().endswith("the end▏")
    view.close()
