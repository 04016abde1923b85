"""What the robot shows of itself, and what comes back after a while, stops the robot until a person says go on."""

from __future__ import annotations

from math import nan

import msgspec
import pytest

from nodes.guard.command_sources import RESTARTED_NS
from nodes.guard.immediate_faults import FUTURE_NS, SLEPT_NS
from nodes.guard.stop_latch import GO_ON_NS
from nodes.msgs import JointCommand, RobotStatus
from nodes.msgs.robot import RobotMode
from runtime.clock import to_ns
from tests.support.guard.guard_driven import FAR, MS, TICK, Story, command, interrupt
from tests.support.sentences import sentence
from tests.support.standing import HOME, standing

ELSEWHERE = (0.6, 0.2, 0.1, -0.1, 0.3, 0.02, 0.4, -0.4)


def status(now_ns: int, *, is_runstopped: bool) -> RobotStatus:
    return RobotStatus(
        read_ns=now_ns, mode="runstopped" if is_runstopped else "ready", is_runstopped=is_runstopped
    )  # fmt: skip


class Robot(Story):
    """A story at whose every tick the guard also looks at the robot, as its node does."""

    def __init__(self, *, is_armed: bool = True) -> None:
        super().__init__(is_armed=is_armed)
        self.position = HOME
        self.fault = ""

    def press(self, is_on: bool = True) -> None:
        self.machine.update_status(status(self.now_ns, is_runstopped=is_on))

    def tick(self, *, sees: bool = True) -> JointCommand | None:
        self.now_ns += TICK
        if sees:
            self.machine.update_state(standing(self.now_ns, self.position))
        self.fault = self.machine.check_monitors(self.now_ns)
        return self.machine.tick(self.now_ns)

    def say_go_on(self) -> str:
        """Why it does not lift the stop, or ""."""
        self.now_ns += MS
        self.machine.interrupt(interrupt("resume", by="Ana"), self.now_ns, self.now_ns)
        return self.machine.refusal if self.machine.mode in ("stopped", "estopped") else ""


def driving() -> Robot:
    robot = Robot()
    robot.drive(20)
    return robot


# --- the robot's own runstop


def test_a_runstop_ends_all_output_at_the_next_tick_and_is_latched() -> None:
    robot = driving()
    robot.press()
    assert robot.tick() is None
    assert robot.fault == "runstop"
    said = robot.machine.report()
    assert (said.mode, said.reason) == (
        "stopped",
        sentence("guard.stopped_by", by="runstop", why=sentence("guard.runstop_is_pressed")),
    )
    assert said.held_ns == robot.now_ns
    assert not said.is_armed
    assert robot.tick() is None
    assert robot.fault == "", "told once"
    assert robot.send(v=0.3) == f"policy: {sentence('guard.is_stopped')}"


def test_nobody_lifts_a_runstop_while_it_is_pressed_and_releasing_it_moves_nothing() -> None:
    robot = driving()
    robot.press()
    robot.tick()
    assert robot.say_go_on() == sentence("guard.resume_refused", by="Ana", why=sentence("guard.runstop_is_pressed"))
    robot.press(is_on=False)
    for _ in range(100):
        assert robot.tick() is None
        robot.send(v=0.3)
    assert robot.machine.mode == "stopped"


def test_after_a_runstop_somebody_says_go_on_and_the_guard_is_armed_anew_where_the_robot_is_then() -> None:
    robot = driving()
    robot.press()
    robot.tick()
    assert not robot.machine.arm(robot.now_ns)
    robot.press(is_on=False)
    robot.position = ELSEWHERE  # moved by hand, or sunk while its motors were off
    robot.tick()
    assert robot.say_go_on() == ""
    assert robot.machine.mode == "disarmed"
    assert robot.tick() is None
    assert robot.machine.arm(robot.now_ns)
    assert robot.tick() == JointCommand(position=ELSEWHERE)


def test_a_runstop_that_is_pressed_at_the_start_forbids_arming() -> None:
    robot = Robot(is_armed=False)
    robot.press()
    assert not robot.machine.arm(robot.now_ns)
    robot.tick()
    assert robot.machine.mode == "stopped"


def test_words_from_before_a_runstop_in_a_stop_do_not_lift_it() -> None:
    robot = driving()
    robot.machine.interrupt(interrupt("stop"), robot.now_ns, robot.now_ns)
    said_ns = robot.now_ns + MS
    robot.press()
    assert robot.tick() is None
    assert robot.fault == "", "it was stopped already"
    robot.press(is_on=False)
    robot.tick()
    robot.machine.interrupt(interrupt("resume", by="Ana"), said_ns, robot.now_ns)
    assert robot.machine.refusal == sentence(
        "guard.resume_refused", by="Ana", why=sentence("guard.said_before_the_stop")
    )


def test_a_runstop_in_an_emergency_stop_leaves_the_emergency_stop() -> None:
    robot = driving()
    robot.machine.estop("button", robot.now_ns)
    robot.press()
    assert robot.tick() is None
    assert robot.machine.report().estop == "button"
    robot.press(is_on=False)
    robot.tick()
    assert robot.machine.rearm("Ana", robot.now_ns)
    assert robot.say_go_on() == ""
    assert robot.machine.mode == "disarmed"


def test_a_robot_that_was_let_go_rests_once_it_is_measured_to_stand() -> None:
    robot = driving()
    robot.press()
    moving = msgspec.structs.replace(standing(robot.now_ns + TICK), base_v_mps=0.2)  # type: ignore[type-var]  # a Message is a Struct
    robot.now_ns += TICK
    robot.machine.update_state(moving)
    robot.machine.check_monitors(robot.now_ns)
    robot.machine.tick(robot.now_ns)
    assert robot.machine.report().at_rest_ns == 0
    robot.tick()
    assert robot.machine.report().at_rest_ns == robot.now_ns


# --- a driver that was away


def test_a_driver_that_comes_back_finds_no_target_from_before() -> None:
    robot = driving()
    for _ in range(60):
        robot.tick(sees=False)
    assert robot.machine.reason == sentence(
        "guard.stopped_by", by="driver", why=sentence("guard.driver_is_silent", seconds=1)
    )
    robot.position = ELSEWHERE
    assert robot.tick() is None
    assert robot.say_go_on() == ""
    assert robot.machine.arm(robot.now_ns)
    assert robot.tick() == JointCommand(position=ELSEWHERE)


@pytest.mark.parametrize(
    ("position", "ahead_s", "why"),
    [
        ((nan, *HOME[1:]), 0.0, sentence("guard.driver_tells_no_posture", joints=8)),
        (HOME[:5], 0.0, sentence("guard.driver_tells_no_posture", joints=8)),
        (HOME, 1.0, sentence("guard.driver_is_ahead", seconds="1.0")),
    ],
)
def test_a_driver_that_tells_nothing_usable_is_not_called_silent(
    position: tuple[float, ...], ahead_s: float, why: str
) -> None:
    robot = driving()
    for _ in range(60):
        robot.now_ns += TICK
        robot.machine.update_state(standing(robot.now_ns + to_ns(ahead_s), position))
        robot.machine.check_monitors(robot.now_ns)
        robot.machine.tick(robot.now_ns)
    assert robot.machine.reason == sentence("guard.stopped_by", by="driver", why=why)


def test_the_same_where_the_robot_was_stopped_before_its_driver_fell_silent() -> None:
    robot = driving()
    robot.machine.interrupt(interrupt("stop", by="Ana"), robot.now_ns, robot.now_ns)
    for _ in range(60):
        robot.tick(sees=False)
    assert robot.machine.reason == sentence("guard.stopped_by", by="Ana", why="words")
    robot.position = ELSEWHERE
    assert robot.tick() is None


@pytest.mark.parametrize(("ahead_ns", "is_known"), [(FUTURE_NS, True), (FUTURE_NS + 1, False)])
def test_a_posture_that_is_stamped_ahead_of_time_is_not_known(ahead_ns: int, is_known: bool) -> None:
    robot = Robot(is_armed=False)
    robot.machine.update_state(standing(robot.now_ns + ahead_ns))
    assert robot.machine.arm(robot.now_ns) is is_known


# --- a guard that was away


def test_a_guard_that_was_frozen_stops_and_waits_to_be_told() -> None:
    robot = driving()
    robot.now_ns += to_ns(3.0)
    assert robot.send(v=0.3) == ""
    robot.tick()
    assert robot.fault == "guard"
    assert robot.machine.reason == sentence(
        "guard.stopped_by", by="guard", why=sentence("guard.guard_stood_still", seconds="3.0")
    )


def test_a_guard_that_was_frozen_does_not_brake_from_the_speed_it_remembers() -> None:
    robot = driving()
    for _ in range(5):
        robot.send(position=ELSEWHERE, v=0.3)
        before = robot.tick()
    assert before is not None
    assert before.base_v_mps > 0.1
    robot.now_ns += to_ns(1.5)
    outputs = [robot.tick() for _ in range(20)]
    assert {(one.position, one.base_v_mps, one.base_w_radps) for one in outputs if one} == {(before.position, 0.0, 0.0)}
    assert None not in outputs


@pytest.mark.parametrize(("late_ns", "fault"), [(0, ""), (1, "guard")])
def test_a_late_tick_is_no_frozen_guard(late_ns: int, fault: str) -> None:
    robot = driving()
    robot.now_ns += SLEPT_NS - TICK + late_ns
    robot.tick()
    assert robot.fault == fault


def test_a_frozen_guard_that_was_never_armed_has_nothing_to_stop() -> None:
    robot = Robot(is_armed=False)
    robot.tick()
    robot.now_ns += to_ns(3.0)
    robot.tick()
    assert (robot.fault, robot.machine.mode) == ("", "disarmed")


# --- a policy that was away


def restarted() -> Robot:
    """The policy's process has ended, and another one counts from 1."""
    robot = driving()
    last_ns = robot.now_ns
    while robot.now_ns - last_ns <= RESTARTED_NS:
        robot.tick()
    robot.seq = 0
    assert robot.send(v=0.3) == sentence("guard.heard_after_go_on", source="policy")
    return robot


def test_a_restarted_policy_moves_nothing_until_somebody_says_go_on() -> None:
    robot = restarted()
    for _ in range(100):
        assert robot.send(v=0.3)
        out = robot.tick()
    assert out is not None
    assert out.base_v_mps == 0.0
    assert robot.machine.reason == sentence(
        "guard.stopped_by", by="guard", why=sentence("guard.holder_was_restarted", source="policy")
    )
    assert robot.say_go_on() == ""
    robot.tick()
    assert robot.machine.report().mode == "holding", "what it sent before that stays void"
    robot.drive(3)
    assert robot.machine.report().mode == "moving"


def test_after_go_on_the_restarted_policys_numbers_count_again() -> None:
    robot = restarted()
    robot.tick()
    robot.say_go_on()
    robot.now_ns += MS
    assert robot.machine.accept_command(command(robot.now_ns, seq=7), robot.now_ns) == ""
    assert robot.machine.accept_command(command(robot.now_ns + MS, seq=7), robot.now_ns + MS) == sentence(
        "guard.out_of_order", source="policy"
    )
    assert robot.machine.accept_command(command(robot.now_ns - MS // 2, seq=8), robot.now_ns) == sentence(
        "guard.out_of_order", source="policy"
    )


def test_a_policy_that_fell_silent_without_a_restart_goes_on_by_itself() -> None:
    robot = driving()
    for _ in range(100):
        robot.tick()
    assert robot.machine.report().mode == "holding"
    assert robot.send(v=0.3) == ""
    robot.tick()
    assert (robot.machine.mode, robot.fault) == ("moving", "")


def test_a_seat_that_is_taken_again_by_a_new_tool_of_the_same_name_is_no_restart() -> None:
    robot = driving()
    for _ in range(40):
        robot.tick()
    robot.machine.transfer_control("policy", robot.now_ns)
    robot.now_ns += MS
    assert robot.machine.accept_command(command(robot.now_ns, seq=1), robot.now_ns) == ""
    robot.tick()
    assert (robot.machine.mode, robot.fault) == ("moving", "")


def test_a_hand_over_does_not_let_old_commands_in_again() -> None:
    robot = driving()
    ahead = command(robot.now_ns + FUTURE_NS, seq=robot.seq + 1)
    assert robot.machine.accept_command(ahead, robot.now_ns) == ""
    robot.machine.transfer_control("policy", robot.now_ns)
    assert robot.machine.accept_command(ahead, robot.now_ns) == sentence("guard.out_of_order", source="policy")
    robot.now_ns += FUTURE_NS + MS
    assert robot.machine.accept_command(command(robot.now_ns, seq=1), robot.now_ns) == "", "it may count from the start"


# --- words that come late or from a clock of their own


@pytest.mark.parametrize(
    ("age_ns", "why"),
    [
        (GO_ON_NS, ""),
        (GO_ON_NS + 1, sentence("guard.resume_refused", by="Ana", why=sentence("guard.said_long_ago", seconds="5.0"))),
        (to_ns(61.2), sentence("guard.resume_refused", by="Ana", why=sentence("guard.said_long_ago", seconds=61.2))),
        (-FUTURE_NS, ""),
        (-FUTURE_NS - 1, sentence("guard.resume_refused", by="Ana", why=sentence("guard.said_in_the_future"))),
    ],
)
def test_old_words_and_words_from_the_future_lift_no_stop(age_ns: int, why: str) -> None:
    robot = driving()
    robot.machine.interrupt(interrupt("stop"), robot.now_ns, robot.now_ns)
    robot.now_ns += to_ns(100.0)
    robot.machine.interrupt(interrupt("resume", by="Ana"), robot.now_ns - age_ns, robot.now_ns)
    assert (robot.machine.mode, robot.machine.refusal) == ("stopped" if why else "holding", why)


def test_a_stop_from_a_clock_that_is_ahead_does_not_keep_the_robot_until_then() -> None:
    robot = driving()
    robot.machine.interrupt(interrupt("stop"), robot.now_ns + to_ns(3600.0), robot.now_ns)
    assert robot.machine.report().stop_heard_ns == robot.now_ns
    assert robot.say_go_on() == ""


@pytest.mark.parametrize(("ahead_ns", "is_taken"), [(FUTURE_NS, True), (FUTURE_NS + 1, False)])
def test_an_image_from_the_future_has_no_age_that_could_be_enforced(ahead_ns: int, is_taken: bool) -> None:
    robot = driving()
    robot.seq += 1
    ahead = command(robot.now_ns, seq=robot.seq, position=FAR, image_ns=robot.now_ns + ahead_ns)
    refusal = robot.machine.accept_command(ahead, robot.now_ns)
    assert refusal == ("" if is_taken else "policy: " + sentence("guard.origin_is_in_the_future", origin="image"))


def test_words_that_take_back_another_stop_than_the_last_are_refused_in_words() -> None:
    robot = driving()
    robot.machine.interrupt(interrupt("stop", ident="one"), robot.now_ns, robot.now_ns)
    robot.now_ns += MS
    back = msgspec.structs.replace(interrupt("resume", by="Ana"), takes_back="two")  # type: ignore[type-var]  # as above
    robot.machine.interrupt(back, robot.now_ns, robot.now_ns)
    assert robot.machine.refusal == (
        sentence("guard.resume_refused", by="Ana", why=sentence("guard.lifts_another_stop"))
    )  # fmt: skip


@pytest.mark.parametrize(
    ("mode", "is_busy"), [("homing", True), ("stowing", True), ("ready", False), ("unhomed", False)]
)
def test_a_robot_that_homes_or_stows_is_busy(mode: RobotMode, is_busy: bool) -> None:
    story = Story()
    story.machine.update_status(RobotStatus(read_ns=story.now_ns, mode=mode))
    assert story.machine.is_busy(story.now_ns) is is_busy


# --- a robot that is somebody else's


def lost(now_ns: int, why: str = "gamepad_7 commands it") -> RobotStatus:
    return RobotStatus(read_ns=now_ns, mode="lost", why=why)


def test_a_robot_that_says_it_is_lost_is_stopped_let_go_of_and_armed_again_by_a_person() -> None:
    robot = driving()
    robot.machine.update_status(lost(robot.now_ns))
    assert robot.tick() is None
    assert robot.fault == "driver"
    assert robot.machine.mode == "stopped"
    assert robot.machine.reason == sentence(
        "guard.stopped_by", by="driver", why=sentence("guard.does_not_obey", why="gamepad_7 commands it")
    )
    assert robot.say_go_on() == ""
    assert (robot.machine.mode, robot.machine.arm(robot.now_ns)) == ("disarmed", False)
    robot.machine.update_status(status(robot.now_ns, is_runstopped=False))
    assert robot.tick() is None, "it does not go on by itself"
    robot.position = ELSEWHERE
    robot.tick()
    assert robot.machine.arm(robot.now_ns)
    out = robot.tick()
    assert out is not None
    assert out.position == ELSEWHERE, "the first target is where the other one left it"


def test_a_robot_that_does_not_say_why_it_is_lost_is_lost_all_the_same() -> None:
    robot = driving()
    robot.machine.update_status(lost(robot.now_ns, why=""))
    assert robot.tick() is None
    assert robot.machine.reason == sentence(
        "guard.stopped_by", by="driver", why=sentence("guard.does_not_obey", why="it is lost")
    )


def test_a_robot_that_is_lost_before_anybody_armed_it_stops_nothing() -> None:
    robot = Robot(is_armed=False)
    robot.machine.update_status(lost(robot.now_ns))
    robot.tick()
    assert robot.machine.mode == "disarmed"
    assert not robot.machine.arm(robot.now_ns)
