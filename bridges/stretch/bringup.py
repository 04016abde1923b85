"""`polyrhythm bringup`: the first hour on a robot, step by step, each undone again.

Speaks to the robot itself, without a guard: one joint at a time, at a tenth of its speed, with a person's hand on the
runstop. What was done is kept in a file, so that the next call goes on where this one was left. `Bringup` is any
robot's; a subclass knows the computer that it runs on, and what only that robot tells.
"""

from __future__ import annotations

import argparse
import grp
import math
import os
import resource
import shutil
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

import msgspec

from bridges.stretch import calibration as measured
from bridges.stretch.doctor import LOW_BATTERY_V, VARIABLES
from bridges.stretch.link import found_python
from bridges.stretch.robot import StretchRobot, calibration_file
from nodes.msgs import JOINTS, JointCommand, RobotState, RobotStatus
from nodes.robot.protocol import Robot, RobotError
from nodes.robot.robot_from_launch import STRETCH, claim_of, joint_names
from runtime.clock import NS_PER_S, SystemClock, to_s
from runtime.command_line.arguments import answered
from runtime.errors import UserError
from runtime.launch.tables.nodes_table import load_name
from runtime.operating_system.whole_file import write_whole
from runtime.supervision.registry import Claims

R = TypeVar("R", bound=Robot)

SHARE = 0.1
"""Of a joint's own speed: how fast it is moved here."""
DRIVE_MPS = SHARE * 0.3
WAY = {"lift": 0.05, "arm": 0.05, "gripper": 0.03}
"""How far a joint is moved and back, m; others: 0.2 rad."""
BASE_WAY_M = 0.10
PERIOD_S = 0.02
REST = {"lift": 0.002, "arm": 0.002, "gripper": 0.005, "base": 0.005, "sideways": 0.005}
"""Slower is at rest, m/s; others: 0.02 rad/s."""
TRIALS = 3
WAIT_S = 60.0
HOMES_S = 180.0
CLOCK = SystemClock()


class BringupStep(msgspec.Struct):
    """What became of one step."""

    name: str
    is_done: bool = False
    lines: list[str] = []


class Stop(msgspec.Struct):
    """One stop, by the robot's own encoders."""

    joint: str
    speed: float
    """When stop was said; m/s or rad/s."""
    seconds: float
    """Until the encoders told of rest."""
    way: float
    """From where it was said to where it rested."""


class Progress(msgspec.Struct):
    """What is kept between calls."""

    fleet_id: str
    software: str = ""
    steps: list[BringupStep] = []
    stops: list[Stop] = []

    def step(self, name: str) -> BringupStep:
        found = next((step for step in self.steps if step.name == name), None)
        if found is None:
            found = BringupStep(name)
            self.steps.append(found)
        return found


class Refused(Exception):
    """A step that did not do what it should; the text says why, and what to do."""


class Bringup(ABC, Generic[R]):
    """A robot, the person beside it, and the steps between them."""

    claim: ClassVar[str]
    """The robot's name, under which no run and no other bring-up has it meanwhile."""
    longest: ClassVar[Mapping[str, float]] = {}
    """Where joints of every such robot end, m or rad."""
    least_v: ClassVar[float] = 0.0

    def __init__(self, robot: R, progress: Progress, ask: Callable[[str], None]) -> None:
        self.robot, self.progress, self._ask = robot, progress, ask
        self._lines: list[str] = []

    # what a subclass knows

    @classmethod
    @abstractmethod
    def make(cls) -> R:
        """The robot, not started."""

    @classmethod
    @abstractmethod
    def name(cls) -> str:
        """Which one it is; report and progress are called so."""

    @abstractmethod
    def reach(self) -> None:
        """Whether this computer can reach the robot. Raises Refused or RobotError."""

    @abstractmethod
    def who(self) -> str:
        """Model and software. Raises Refused for another robot."""

    @abstractmethod
    def measured_ns(self, name: str) -> int:
        """When a joint, or "base" or "sideways", last measured."""

    def wheel_effort(self) -> float:
        """The greatest of a wheel's now, percent; 0.0 of a robot that does not tell."""
        return 0.0

    def look_at(self, name: str) -> str:
        """What a person is to look at, where a joint is where it was sent."""
        return "did it go the way you expected?"

    def steps(self) -> dict[str, Callable[[], None]]:
        """In order, by name."""
        return {
            "machine": self.machine,
            "robot": self.robot_itself,
            "runstop": self.button,
            "home": self.home,
            "dry-run": self.dry_run,
            "joints": self.joints,
            "base": self.base,
            "stops": self.stops,
        }

    # what is common

    def run(self, names: Sequence[str], save: Callable[[], None]) -> None:
        """Do the steps that are not done. Raises Refused at the first that fails; the robot stands then."""
        for name in names:
            step = self.progress.step(name)
            if step.is_done:
                print(f"{name}: done before")
                continue
            self._lines = step.lines = []
            try:
                self.steps()[name]()
                step.is_done = True
            except RobotError as problem:
                raise Refused(f"{name}: {problem}") from problem
            finally:
                with suppress(RobotError):
                    self.robot.stop()
                save()

    def tell(self, line: str) -> None:
        """A line for the person, and for the report."""
        print(f"  {line}", flush=True)
        self._lines.append(line)

    # the steps

    def machine(self) -> None:
        """This computer: software, rights, clock, network. Touches no robot."""
        self.reach()
        soft, _ = resource.getrlimit(resource.RLIMIT_RTPRIO)
        self.tell(f"real-time priority: up to {soft}" if soft else "real-time priority: none (docs/performance.md)")
        self.tell(f"clock set by the network: {_asked('timedatectl', 'show', '-p', 'NTPSynchronized', '--value')}")
        self.tell(f"address: {_asked('hostname', '-I')}")

    def robot_itself(self) -> None:
        """Take hold of it: model, limits, battery, alerts. Nothing moves."""
        state, status = self.hear(), self.status
        self.progress.software = self.who()
        for joint, at in zip(self.robot.limits.joints, state.position, strict=True):
            self.tell(f"{joint.name}: {joint.lowest:.3f} to {joint.highest:.3f}, at {at:.3f}")
            if joint.highest - joint.lowest < 0.05:
                raise Refused(f"{joint.name} has no range: its limits contradict each other; calibrate it again")
            longest = self.longest.get(joint.name, joint.highest)
            if abs(joint.highest - longest) > 0.01:
                raise Refused(
                    f"{joint.name} ends at {joint.highest:.3f} m, the robot's model at {longest} m; calibrate it again"
                )
        self.tell(f"battery: {status.battery_v:.1f} V{', charging' if status.is_charging else ''}")
        if (status.battery_v or 0.0) < self.least_v:
            raise Refused(f"the battery has {status.battery_v:.1f} V; charge it above {self.least_v} V")
        if status.is_charging:
            raise Refused("the charger is plugged in; the robot is going to move: plug it out")
        if status.alerts:
            raise Refused(f"the robot warns: {', '.join(status.alerts)}")

    def button(self) -> None:
        """The runstop is seen, by the person's hand."""
        self._ask("press the runstop")
        self.tell(f"pressed: seen after {self.until(lambda: self.status.is_runstopped):.2f} s")
        self._ask("hold it for two seconds, to release it")
        self.tell(f"released: seen after {self.until(lambda: not self.status.is_runstopped):.2f} s")

    def home(self) -> None:
        """It knows its zeros, or finds them."""
        self.hear()
        if not self.status.is_homed:
            self._ask("clear a metre around the robot; it is going to home, which takes half a minute")
            self.robot.home()
            self.until(lambda: self.status.mode != "homing", HOMES_S)
            self.hear()
        if not self.status.is_homed:
            raise Refused(f"it is not homed after homing: {', '.join(self.status.alerts) or self.status.why}")
        self.tell("homed")

    def dry_run(self) -> None:
        """What is going to be sent, and is not."""
        state = self.hear()
        for place, joint in enumerate(self.robot.limits.joints):
            there = self.target(state, place)
            seconds = abs(there - state.position[place]) / (SHARE * joint.speed)
            self.tell(f"{joint.name}: {state.position[place]:.3f} to {there:.3f} and back, {seconds:.1f} s each way")

    def joints(self) -> None:
        """One joint after the other, a little way and back, at a tenth of its speed."""
        self.ready()
        for place, joint in enumerate(self.robot.limits.joints):
            before = self.hear()
            self._ask(f"{joint.name} moves; a hand on the runstop")
            there = self.target(before, place)
            self.go(place, there)
            after = self.hear()
            self._ask(f"{joint.name} is where it was sent: {self.look_at(joint.name)}")
            self.go(place, before.position[place])
            back = self.hear()
            self.tell(
                f"{joint.name}: sent to {there:.3f}, came to {after.position[place]:.3f}, "
                f"back to {back.position[place]:.3f} from {before.position[place]:.3f}"
            )
            tolerance = 0.01 if joint.name in WAY else 0.06
            if abs(after.position[place] - there) > tolerance:
                raise Refused(f"{joint.name} did not come to {there:.3f}; is something in its way?")

    def base(self) -> None:
        """Ten centimetres forward and back, of one that can also to the left and back, at a tenth of its speed."""
        self.ready()
        for name, words in (("base", "forward"), ("sideways", "to the left")):
            if name == "base" or self.robot.limits.base.is_omni:
                before = self.hear()
                self._ask(f"the base drives 10 cm {words} and back; a hand on the runstop")
                for sign in (1, -1):
                    self.drive(sign * DRIVE_MPS, BASE_WAY_M / DRIVE_MPS, name)
                self.tell(f"{name}: {_way(before, self.hear(), name):+.3f} m from where it began")

    def stops(self) -> None:
        """How long a stop takes, and how far it goes, by the robot's own encoders."""
        self.ready()
        self._ask("lift, arm, wrist and base are stopped while they move, three times each; a hand on the runstop")
        self.progress.stops = []
        for name in ("lift", "arm", "wrist_yaw", "base", *(["sideways"] if self.robot.limits.base.is_omni else [])):
            for _ in range(TRIALS):
                stop = self.stopped(name)
                self.progress.stops.append(stop)
                unit = "rad" if name == "wrist_yaw" else "m"
                rest = f"at rest after {stop.seconds:.3f} s and {stop.way:.4f} {unit}"
                self.tell(f"{name}: at {stop.speed:.3f} {unit}/s, {rest}")

    # what the steps are made of

    @property
    def status(self) -> RobotStatus:
        """What it says of itself now."""
        return self.robot.status(CLOCK.now_ns())

    def place(self, name: str) -> int:
        """Of a joint, in joint vectors."""
        return joint_names(self.robot.limits).index(name)

    def hear(self) -> RobotState:
        """The state after the robot was heard once more, at rest."""
        for _ in range(15):
            self.tick(None)
        return self.robot.read(CLOCK.now_ns())

    def tick(self, command: JointCommand | None) -> RobotState:
        """One period of a driver. Raises RobotError where the robot does not follow."""
        now_ns = CLOCK.now_ns()
        self.robot.advance(now_ns)
        if command is None:
            self.robot.stop()
        else:
            status = self.robot.status(now_ns)
            if status.mode != "ready" or status.why:
                raise RobotError(f"it does not follow any more: {status.why or status.mode}; go on when it does")
            self.robot.command(command)
        CLOCK.block(PERIOD_S)
        return self.robot.read(CLOCK.now_ns())

    def ready(self) -> None:
        """Raises Refused unless it would move."""
        self.hear()
        status = self.status
        if status.mode != "ready":
            raise Refused(f"the robot is {status.mode}: {status.why}")

    def until(self, is_so: Callable[[], bool], most_s: float = WAIT_S) -> float:
        """Wait for a fact; how many seconds it took. Raises Refused where it does not come."""
        begun_ns = CLOCK.now_ns()
        while not is_so():
            if CLOCK.since_s(begun_ns) > most_s:
                raise Refused(f"it was not seen within {most_s:g} s")
            self.tick(None)
        return CLOCK.since_s(begun_ns)

    def target(self, state: RobotState, place: int) -> float:
        """A little way off, towards the farther end of the joint."""
        joint, at = self.robot.limits.joints[place], state.position[place]
        way = WAY.get(joint.name, 0.2)
        return at + (way if joint.highest - at > at - joint.lowest else -way)

    def go(self, place: int, there: float) -> None:
        """Move one joint by a ramp at a tenth of its speed, and wait until it is there, or as near as it comes."""
        position = list(self.hear().position)
        step = SHARE * self.robot.limits.joints[place].speed * PERIOD_S
        while abs(there - position[place]) > 1e-9:
            position[place] += min(max(there - position[place], -step), step)
            self.tick(JointCommand(position=tuple(position)))
        for _ in range(50):
            self.tick(JointCommand(position=tuple(position)))

    def drive(self, speed_mps: float, seconds: float, name: str = "base") -> float:
        """Drive forward, or to the left where it is "sideways", and stop; the greatest effort of a wheel."""
        position, felt = self.hear().position, 0.0
        for _ in range(round(seconds / PERIOD_S)):
            self.tick(_driving(position, name, speed_mps))
            felt = max(felt, self.wheel_effort())
        self.hear()
        return felt

    def stopped(self, name: str) -> Stop:
        """Set a joint or the base going, say stop, and watch the encoders; then it goes back."""
        before = self.hear()
        position, step, is_base = list(before.position), 0.0, name in ("base", "sideways")
        place = 0 if is_base else self.place(name)
        if not is_base:
            step = math.copysign(
                SHARE * self.robot.limits.joints[place].speed * PERIOD_S, self.target(before, place) - position[place]
            )
        for _ in range(round(0.8 / PERIOD_S)):
            position[place] += step
            command = _driving(tuple(position), name, DRIVE_MPS) if is_base else JointCommand(position=tuple(position))
            state = self.tick(command)
        said, said_ns = state, CLOCK.now_ns()
        self.robot.stop()
        while True:
            state = self.tick(None)
            measured_ns = self.measured_ns(name)
            if measured_ns > said_ns and abs(_speed(state, name, place)) < REST.get(name, 0.02):
                break
            if CLOCK.now_ns() - said_ns > 5 * NS_PER_S:
                raise Refused(f"{name} did not come to rest within 5 s")
        speed, way = _speed(said, name, place), _way(said, state, name, place)
        stop = Stop(name, abs(speed), to_s(measured_ns - said_ns), abs(way))
        if is_base:
            self.drive(-DRIVE_MPS, abs(_way(before, self.hear(), name)) / DRIVE_MPS, name)
        else:
            self.go(place, before.position[place])
        return stop


class StretchBringup(Bringup[StretchRobot]):
    """Of a Stretch 3."""

    claim = STRETCH
    longest: ClassVar[Mapping[str, float]] = {"lift": 1.10, "arm": 0.52}
    least_v = LOW_BATTERY_V

    @classmethod
    def make(cls) -> StretchRobot:
        return StretchRobot("default")

    @classmethod
    def name(cls) -> str:
        return os.environ.get("HELLO_FLEET_ID", "unknown")

    def steps(self) -> dict[str, Callable[[], None]]:
        return {**super().steps(), "calibrate": self.calibrate}

    def reach(self) -> None:
        self.tell(f"stretch_body is spoken to by {found_python()}")
        missing = [name for name in VARIABLES if not os.environ.get(name)]
        if missing:
            raise Refused(f"{' and '.join(missing)} not set; run as the robot's own account")
        fleet = Path(os.environ["HELLO_FLEET_PATH"], os.environ["HELLO_FLEET_ID"])
        if not (fleet / "stretch_configuration_params.yaml").is_file():
            raise Refused(f"{fleet} has no stretch_configuration_params.yaml: the robot's calibration is not here")
        self.tell(f"calibration: {fleet}")
        groups = {grp.getgrgid(number).gr_name for number in {os.getgid(), *os.getgroups()}}
        if os.getuid() != 0 and "dialout" not in groups:
            raise Refused("the boards cannot be opened: sudo usermod -a -G dialout $USER, and log in again")
        self.tell("serial ports: allowed")

    def who(self) -> str:
        hello = self.robot.hello
        self.tell(f"{hello.model} with {hello.tool}; stretch_body {hello.library} on Python {hello.python}")
        if hello.model != "SE3":
            raise Refused(f"this is a {hello.model}; the bridge was written for a Stretch 3 (SE3)")
        return f"stretch_body {hello.library}, Python {hello.python}"

    def measured_ns(self, name: str) -> int:
        return self.robot.reading.read_ns[{"wrist_yaw": "end_of_arm", "base": "left_wheel"}.get(name, name)]

    def wheel_effort(self) -> float:
        return max(map(abs, self.robot.reading.wheel_effort), default=0.0)

    def stops(self) -> None:
        """The same; and how old orders are once they are written."""
        super().stops()
        for lane, age_ms in self.robot.reading.order_age_ms.items():
            self.tell(f"orders to the {lane} were {age_ms:.0f} ms old when they had been written")

    def calibrate(self) -> None:
        """What gripper and wheels feel when there is nothing to feel; five minutes, for true grasps and contacts."""
        self.ready()
        place = JOINTS.index("gripper")
        begun = self.hear().position[place]
        self._ask("take everything out of the gripper; it opens and closes")
        empty: dict[int, float] = {}
        self.go(place, 0.08)
        for opening in [0.08 - 0.005 * number for number in range(17)]:
            self.go(place, max(opening, 0.0))
            reading = self.robot.reading
            cell = round(reading.gripper_percent / 10) * 10
            empty[cell] = max(empty.get(cell, 0.0), abs(reading.effort[place]))
        self.go(place, 0.08)
        self._ask("hold a sponge or a soft ball between the fingers; it closes on it")
        self.go(place, 0.0)
        felt = abs(self.robot.reading.effort[place])
        usual = min(empty.items(), key=lambda found: abs(found[0] - self.robot.reading.gripper_percent))[1]
        self.go(place, 0.08)
        self._ask("take it out again")
        self.go(place, begun)
        if felt - usual < 4.0:
            raise Refused(
                f"the motor felt {felt:.0f} % with the thing and {usual:.0f} % without: they cannot be told apart"
            )
        self._ask("the base drives 30 cm forward and back on the floor that it will work on")
        pushed = 0.0
        for sign in (1, -1):
            pushed = max(pushed, self.drive(sign * 0.1, 3.0))
        found = measured.Calibration(
            empty=sorted((float(cell), round(effort, 1)) for cell, effort in empty.items()),
            grasp_percent=round((felt - usual) / 2, 1),
            wheel_percent=max(measured.WHEEL_EFFORT_PERCENT, round(1.5 * pushed, 1)),
            is_measured=True,
        )
        measured.save(calibration_file(), found)
        self.tell(
            f"gripper: {usual:.0f} % empty, {felt:.0f} % on the thing; a grasp is {found.grasp_percent:.0f} % more"
        )
        self.tell(f"wheels: up to {pushed:.0f} % on this floor; contact is above {found.wheel_percent:.0f} %")
        self.tell(f"kept in {calibration_file()}")


def report(progress: Progress) -> str:
    """The report, as Markdown."""
    lines = [f"# Bring-up of {progress.fleet_id}", "", progress.software, ""]
    if progress.stops:
        lines += ["| stopped | speed (m/s, rad/s) | at rest after (s) | way (m, rad) |", "|---|---:|---:|---:|"]
        lines += [
            f"| {stop.joint} | {stop.speed:.3f} | {stop.seconds:.3f} | {stop.way:.4f} |" for stop in progress.stops
        ]
        lines += [
            "",
            "By the robot's own encoders, from the call of stop; as fine as they are read: 15 to 100 times a second.",
        ]
    for step in progress.steps:
        lines += [
            "",
            f"## {step.name}: {'done' if step.is_done else 'not done'}",
            *[f"- {line}" for line in step.lines],
        ]
    return "\n".join(lines) + "\n"


ROBOTS = {
    "stretch": "bridges.stretch.bringup:StretchBringup",
    "stretch4": "bridges.stretch4.bringup:Stretch4Bringup",
}
STEPS = ("machine", "robot", "runstop", "home", "dry-run", "joints", "base", "stops", "calibrate")


def main(argv: list[str]) -> int:
    """0 when all steps are done; 1 where one was refused; 2 where it was asked wrongly."""
    parser = argparse.ArgumentParser(
        prog="polyrhythm bringup",
        description="The first hour on a robot: checks, then one joint at a time at a tenth of its speed.",
        epilog="example: polyrhythm bringup stretch --only machine robot    (nothing moves)",
    )
    parser.add_argument("robot", choices=ROBOTS)
    parser.add_argument("--only", nargs="+", choices=STEPS, metavar="STEP", help=f"these steps: {', '.join(STEPS)}")
    parser.add_argument("--again", nargs="+", choices=STEPS, metavar="STEP", help="do these steps anew")
    parser.add_argument("--yes", action="store_true", help="do not wait for Enter; for the twin, never for a robot")
    parser.add_argument("--out", type=Path, default=Path("runs/bringup"), help="where report and progress go")
    parser.add_argument("--json", action="store_true", help="print what is kept as JSON at the end")
    asked = parser.parse_args(argv)
    return answered("polyrhythm bringup", lambda: _bring_up(asked))


def _bring_up(asked: argparse.Namespace) -> int:
    kind: type[Bringup[Any]] = load_name(ROBOTS[asked.robot])
    name = kind.name()
    asked.out.mkdir(parents=True, exist_ok=True)
    kept = asked.out / f"{name}.json"
    progress = _progress(kept, name)
    for step in asked.again or ():
        progress.step(step).is_done = False

    def save() -> None:
        write_whole(kept, msgspec.json.format(msgspec.json.encode(progress)))
        write_whole(kept.with_suffix(".md"), report(progress).encode())

    def ask(what: str) -> None:
        print(f"  > {what}{'' if asked.yes else ' [Enter]'}", flush=True)
        if not asked.yes:
            input()

    robot = kind.make()
    bringup = kind(robot, progress, ask)
    names = asked.only or asked.again or list(bringup.steps())
    if unknown := set(names) - set(bringup.steps()):
        raise UserError(f"{asked.robot} has no step {', '.join(sorted(unknown))}; it has {', '.join(bringup.steps())}")
    claims: Claims | None = None
    try:
        if "machine" in names:
            bringup.run(["machine"], save)
        rest = [name for name in names if name != "machine"]
        if rest:
            claims = Claims((), "bringup", [claim_of(kind.claim)])  # no run, and no other bring-up, beside this one
            robot.start(CLOCK.now_ns())
            bringup.run(rest, save)
    except (Refused, RobotError, EOFError, KeyboardInterrupt) as problem:
        print(
            f"stopped: {problem or 'by you'}\nthe robot stands; go on with: polyrhythm bringup {asked.robot}",
            file=sys.stderr,
        )
        return 1
    finally:
        robot.close()
        if claims is not None:
            claims.close()
        save()
    print(msgspec.json.encode(progress).decode() if asked.json else f"report: {kept.with_suffix('.md')}")
    return 0


def _progress(kept: Path, fleet_id: str) -> Progress:
    try:
        return msgspec.json.decode(kept.read_bytes(), type=Progress)
    except OSError:
        return Progress(fleet_id)
    except msgspec.MsgspecError as problem:
        raise UserError(f"{kept}: {problem}; remove it to begin anew") from problem


def _driving(position: tuple[float, ...], name: str, speed_mps: float) -> JointCommand:
    if name == "sideways":
        return JointCommand(position=position, base_vy_mps=speed_mps)
    return JointCommand(position=position, base_v_mps=speed_mps)


def _way(before: RobotState, after: RobotState, name: str, place: int = 0) -> float:
    """How far a joint went; or the base, ahead or to the left of how it stood."""
    if name not in ("base", "sideways"):
        return after.position[place] - before.position[place]
    x, y, heading = after.base_x_m - before.base_x_m, after.base_y_m - before.base_y_m, before.base_heading_rad
    ahead, left = math.cos(heading) * x + math.sin(heading) * y, math.cos(heading) * y - math.sin(heading) * x
    return ahead if name == "base" else left


def _speed(state: RobotState, name: str, place: int) -> float:
    return {"base": state.base_v_mps, "sideways": state.base_vy_mps}.get(name, state.velocity[place])


def _asked(*command: str) -> str:
    """What a tool of this machine says in one line, or that it is not there."""
    if shutil.which(command[0]) is None:
        return f"not known (no {command[0]})"
    told = subprocess.run(command, capture_output=True, text=True, timeout=10)
    return told.stdout.strip() or "not known"
