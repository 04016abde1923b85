"""The nodes of the graph that faults are injected into; what they do wrong, the switchboard tells them."""

from __future__ import annotations

import os
import resource
import threading
import time
from collections.abc import Callable
from math import inf, nan
from typing import Any, get_args

import numpy as np

from bench.faults.black_box import Switchboard, folder, guard_box, motor_box, order_box
from bench.faults.garbage import garble, send_bombs
from nodes.guard.node import Guard
from nodes.msgs import (
    GuardMode,
    Image,
    Interrupt,
    JointCommand,
    RobotState,
    RobotStatus,
    SceneDescription,
    Subtask,
    Utterance,
)
from nodes.stretch.limits import STOW, STRETCH_3
from runtime import RELIABLE, Message, Node, Publisher, QoS, Subscription, every, on
from runtime.message import Envelope, Stamped
from tests.support.guard.hostile import SENTENCES

MODES = get_args(GuardMode)
SPEED_MPS = 0.3
ZEROS = (0.0,) * 8

DROP, DUPLICATE, REORDER, FLOOD, NANS, RANGE, JERK, STALE, MIXED, GARBLE, BOMB = range(1, 12)
"""What the policy's `mode` flag says is wrong with its commands."""


LIMITS = STRETCH_3
"""A robot of its own name, for trials that claim it."""


class MotorRobot:
    """A robot whose motors are another process; its joints are where they are told to be."""

    is_hardware = False
    limits = STRETCH_3

    def __init__(self) -> None:
        self._orders = order_box(folder())
        self._switches = Switchboard(folder() / "switches")
        self._read_ns, self._told_m = 0, 0.0
        self._motors = motor_box(folder())
        self._position: tuple[float, ...] = STOW

    def start(self, now_ns: int) -> None:
        """Nothing to do: the motors stand until the first order."""

    def read(self, now_ns: int) -> RobotState:
        _, _, speed, place, _ = self._motors.last() or (0, 0.0, 0.0, 0.0, 0)
        if self._switches["blind"]:  # what is told is what it was asked for, and not what it does
            order = self._orders.last() or (0, 0.0)
            self._told_m += order[1] * max(0.0, (now_ns - self._read_ns) * 1e-9)
            speed, place = order[1], self._told_m
        self._told_m = place
        if not self._switches["numb"]:
            self._read_ns = now_ns
        return RobotState(
            read_ns=self._read_ns,
            position=self._position,
            velocity=ZEROS,
            effort=ZEROS,
            base_x_m=place,
            base_y_m=0.0,
            base_heading_rad=0.0,
            base_v_mps=speed,
            base_w_radps=0.0,
            contact=("lift",) if self._switches["touch"] else (),
        )

    def command(self, command: JointCommand) -> None:
        if self._switches["runstop"] or self._switches["button"]:
            return self.stop()
        self._position = command.position
        self._orders.write(time.monotonic_ns(), command.base_v_mps)
        return None

    def advance(self, now_ns: int) -> None:
        """The motors have a clock of their own."""

    def stop(self) -> None:
        self._orders.write(time.monotonic_ns(), 0.0)

    def status(self, now_ns: int) -> RobotStatus:
        is_on = self._switches["runstop"] != 0 or self._switches["button"] != 0
        return RobotStatus(read_ns=now_ns, mode="runstopped" if is_on else "ready", is_runstopped=is_on)

    def home(self) -> None:
        """It has no zeros to find."""

    def stow(self) -> None:
        """It is stowed."""

    def runstop(self, pressed: bool) -> None:
        self._switches["runstop"] = int(pressed)

    def close(self) -> None:
        self.stop()


class WatchedGuard(Guard):
    """The guard as it is, with a black box that notes what it accepted and what it let through."""

    def on_start(self) -> None:
        super().on_start()
        box, machine = guard_box(folder()), self.machine
        offer, tick = machine.accept_command, machine.tick
        accepted_ns = oldest_ns = count = others = 0

        def watched_offer(stamped: Stamped[JointCommand], now_ns: int, *rest: Any) -> str:
            nonlocal accepted_ns, oldest_ns, count, others
            refusal = offer(stamped, now_ns, *rest)
            if not refusal:
                accepted_ns, count = stamped.envelope.published_ns, count + 1
                oldest_ns = max(oldest_ns, now_ns - accepted_ns)
                others += stamped.envelope.source != "policy"
            return refusal

        def watched_tick(now_ns: int) -> JointCommand | None:
            nonlocal oldest_ns
            out = tick(now_ns)
            v, w = (0.0, 0.0) if out is None else (out.base_v_mps, out.base_w_radps)
            said = machine.report()
            mode = MODES.index(machine.mode)
            stop = (said.stop_heard_ns, said.held_ns)
            lost = self.command.dropped["garbled"] + self.command.dropped["shadow"]
            box.write(
                now_ns,
                mode,
                accepted_ns,
                oldest_ns,
                count,
                *stop,
                v,
                w,
                said.rejected,
                others,
                lost,
                int(out is not None),
            )
            oldest_ns = 0
            return out

        machine.accept_command = watched_offer  # type: ignore[method-assign]  # watched, not changed
        machine.tick = watched_tick  # type: ignore[method-assign]  # the same


class SteadyPolicy(Node):
    """Drives forward at 0.3 m/s, 20 times a second, by what the camera shows; or does it wrong."""

    seat = "policy"

    image = Subscription(Image, "head/image", qos=QoS(required=False))
    command = Publisher(JointCommand, "command")

    def on_start(self) -> None:
        self.switches = Switchboard(folder() / "switches")
        self.leaked: list[bytearray] = []
        self.held_back: tuple[Envelope, Message] | None = None
        self.count = 0
        self.is_lossy = False

    @every(hz=20)
    def tick(self) -> None:
        if not self.is_lossy:  # where the runtime hands frames over to the network, which it knows once it runs
            assert self.command.transmit is not None
            self.command.transmit, self.is_lossy = self._network(self.command.transmit), True
        self.image.latest()
        self._leak()
        self.count += 1
        mode, v, position = self.switches["mode"], SPEED_MPS, STOW
        if mode == NANS:
            v = (nan, inf, -inf)[self.count % 3]
        elif mode == RANGE:
            v, position = 10.0, tuple(9.0 * (-1) ** place for place in range(8))
        elif mode == JERK:
            v = SPEED_MPS * (-1) ** self.count
        self.command.publish(JointCommand(position=position, base_v_mps=v))

    @every(hz=100)
    def flood(self) -> None:
        mode = self.switches["mode"]
        if mode == FLOOD:
            self.image.latest()  # without an age the guard would refuse them for that alone
            for _ in range(50):
                self.command.publish(JointCommand(position=STOW, base_v_mps=SPEED_MPS))
        elif mode == GARBLE:
            for _ in range(100):
                garble(self.clock.now_ns(), self.random)

    @every(hz=2)
    def bomb(self) -> None:
        if self.switches["mode"] == BOMB:
            send_bombs()

    def _leak(self) -> None:
        if not self.switches["leak"]:
            self.leaked.clear()
            return
        resource.setrlimit(resource.RLIMIT_AS, (1 << 31, resource.RLIM_INFINITY))
        while True:
            self.leaked.append(bytearray(1 << 26))

    def _network(self, transmit: Callable[[Envelope, Message], None]) -> Callable[[Envelope, Message], None]:
        turn = threading.Lock()

        def send(envelope: Envelope, message: Message) -> None:
            with turn:
                transmit(envelope, message)

        def lossy(envelope: Envelope, message: Message) -> None:
            mode, luck = self.switches["mode"], self.random.random() < 0.3
            if mode in (DROP, MIXED) and luck:
                return
            if mode == STALE:
                threading.Timer(0.2, send, (envelope, message)).start()
                return
            if self.held_back is None and mode in (REORDER, MIXED) and self.random.random() < 0.3:
                self.held_back = (envelope, message)
                return
            send(envelope, message)
            if mode in (DUPLICATE, MIXED) and self.random.random() < 0.3:
                send(envelope, message)
            if self.held_back is not None:
                late, self.held_back = self.held_back, None
                send(*late)

        return lossy


class SmallCamera(Node):
    """Black images, ten times a second; or stale ones, or none that deserve the name."""

    image = Publisher(Image, "head/image")

    def on_start(self) -> None:
        self.switches = Switchboard(folder() / "switches")

    @every(hz=10)
    def tick(self) -> None:
        wrong, now_ns = self.switches["image"], self.clock.now_ns()
        rgb: Any = np.zeros((48, 64, 3), np.uint8)
        depth: Any = np.ones((48, 64), np.float32)
        if wrong == 2:
            rgb = (np.zeros((1, 1), np.uint8), np.full((48, 64, 3), nan), np.zeros((48, 64, 4), np.uint16))[
                now_ns // 100_000_000 % 3
            ]
            depth = np.full((3, 7, 5), nan, np.float64)
        if wrong == 3:
            rgb, depth = np.zeros((1000, 1000, 3), np.uint8), np.ones((1, 1), np.float32)
        captured_ns = now_ns - 3_000_000_000 if wrong == 1 else now_ns
        self.image.publish(Image(camera="head", captured_ns=captured_ns, rgb=rgb, depth_m=depth, focal_px=60.0))


class Idle(Node):
    """Thinks of nothing; with the `block` flag it blocks its loop until the flag is gone."""

    heard = Subscription(Utterance, "heard", qos=QoS(required=False))

    def on_start(self) -> None:
        self.switches = Switchboard(folder() / "switches")

    @every(hz=2)
    def tick(self) -> None:
        while self.switches["block"]:
            time.sleep(0.1)


class Planner(Idle):
    """A planner without plans."""

    seat = "planner"


class HostilePlanner(Planner):
    """A model that says what it must not: as its plan, aloud, and as a go on in a person's name.

    It does so 50 times a second while its flag is set, and counts on the flag.
    """

    provenance = "model:hostile-1"
    said = Publisher(Utterance, "said")
    subtask = Publisher(Subtask, "subtask")
    interrupt = Publisher(Interrupt, "interrupt")

    @every(hz=50)
    def talk(self) -> None:
        number = self.switches["hostile"]
        if not number:
            return
        text = SENTENCES[number % len(SENTENCES)]
        self.subtask.publish(Subtask(id=f"{number}", text=text, state="work", skill=text, place=text))
        self.said.publish(Utterance(speaker="Ana", text=text))
        self.interrupt.publish(Interrupt(id=f"hostile-{number}", depth="resume", text=text, by="Ana"))
        self.switches["hostile"] = number + 1


class VLM(Idle):
    """A VLM without eyes, which says so five times a second."""

    seat = "vlm"
    description = Publisher(SceneDescription, "description")

    @every(hz=5)
    def describe(self) -> None:
        self.description.publish(SceneDescription(text="nothing", subtask_id="", progress="idle"))


WORDS = (("Ana", "Stop!"), ("Ben", "Stop!"), ("Ana", "go on"), ("Ben", "go on"), ("Ana", "Ouch! My foot!"))
ANA_STOPS, BEN_STOPS, ANA_GOES_ON, BEN_GOES_ON, ANA_IS_HURT = range(1, 6)
"""What people say to `Ears`: what its flag says counts from 1."""


class Ears(Node):
    """A microphone that hears what the switchboard says, once."""

    role = "ears"
    heard = Publisher(Utterance, "heard", qos=RELIABLE)

    def on_start(self) -> None:
        self.switches = Switchboard(folder() / "switches")
        self.last = 0

    @every(hz=50)
    def listen(self) -> None:
        number = self.switches["heard"]
        if number and number != self.last:
            speaker, text = WORDS[number - 1]
            self.heard.publish(Utterance(speaker=speaker, text=text))
        self.last = number


class Neighbour(Node):
    """Lives in the guard's process: blocks its loop, burns its interpreter, or turns back its wall clock."""

    interrupts = Subscription(Interrupt, "interrupt", qos=QoS(required=False))

    def on_start(self) -> None:
        self.switches = Switchboard(folder() / "switches")
        self.wall = (time.time, time.time_ns)

    @on(interrupts)
    def ignore(self, interrupt: Interrupt) -> None:
        """So that a stop waits at this loop too."""

    @every(hz=10)
    def tick(self) -> None:
        shift_s = self.switches["wall_s"]
        real, real_ns = self.wall
        time.time = (lambda: real() + shift_s) if shift_s else real
        time.time_ns = (lambda: real_ns() + shift_s * 10**9) if shift_s else real_ns
        while self.switches["block_robot"]:
            time.sleep(0.1)

    @every(hz=10, blocking=True)
    def spin(self) -> None:
        while self.switches["spin"]:
            sum(range(1000))


class Crasher(Node):
    """Dies at its first tick, every time."""

    @every(hz=10)
    def tick(self) -> None:
        os._exit(5)
