"""`Lesson`: a robot at a simulated table is given actions; teacher or pupil moves it, and the teacher labels each tick.

What is written down at a tick is what the robot feels, in a learned policy's own inputs, and what the teacher would
command there, so that the pupil's own mistakes are corrected where it makes them (DAgger). The pupil's chunks are
played as in its seat. The graph has a simulated robot and the guard, no cameras: an action's target is where the thing
really is, as far off as the VLM sees it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from examples.train_policy.base_lesson import BaseLesson
from examples.train_policy.imagined import ImaginedRobot
from examples.train_policy.teacher import is_done, taught
from nodes.guard.node import Guard
from nodes.msgs import Action, GuardState, JointCommand, JointVector, RobotState, SeenObject, aimed_at
from nodes.policy.learn.rows import HISTORY, RATE_HZ, Rows, counts, flat
from nodes.policy.onnx.chunks import Playback, as_message
from nodes.policy.onnx.inputs import feel
from nodes.policy.onnx.policy import UnderWay
from nodes.policy.onnx.session import PolicySession
from nodes.sim.driver import SimDriver
from nodes.sim.messages import ObjectTruth, Truth
from nodes.sim.world.table_scene import BIN_XY_M, BIN_Z_M, SIZES_M, TABLE_HEIGHT_M, TABLE_X_M, TABLE_Y_M
from runtime import Node, Publisher, QoS, Simulation, Subscription, every, on

SEEN_OFF_M = 0.003
"""How far off the VLM sees a thing, one standard deviation: three times what its targets were off in whole runs."""
HIDDEN_M = 0.12
"""Of a bin that the image's edge cuts so much may be missing: its middle is seen half of that off."""
CUT = 0.4
"""So many bins are cut."""
LONGEST_S = {"pick": 30.0, "place": 30.0, "look": 6.0}
SHORTEST_S = 5.0
SEEN_AFTER_S = 0.4
MOST_LESSONS = 1000


@dataclass
class Notes:
    """What a lesson gives: rows to learn from, and how each action went."""

    felt: list[tuple[float, ...]] = field(default_factory=list)
    wanted: list[tuple[float, ...]] = field(default_factory=list)  # ten columns and done
    runs: list[int] = field(default_factory=list)  # rows of the same number follow each other
    counts: list[float] = field(default_factory=list)
    outcomes: list[tuple[str, str, str]] = field(default_factory=list)  # skill, who, how it ended

    def rows(self) -> Rows:
        """All of it, as arrays."""
        felt, wanted = np.array(self.felt, np.float32), np.array(self.wanted, np.float32)
        counts = np.array(self.counts, np.float32)
        return Rows(felt, wanted, np.array(self.runs, np.int64), counts, tuple(self.outcomes))


class Lesson(BaseLesson):
    """A lesson at a table whose things are where the VLM sees them."""

    rate_hz = RATE_HZ

    def __init__(self, seed: int, session: PolicySession | None = None, share: float = 0.0) -> None:
        self.notes = Notes()
        super().__init__(seed, share, self.notes.outcomes, has_pupil=session is not None)
        self.sizes = SIZES_M
        self.session = session
        self.action: Action | None = None
        self.under_way: UnderWay | None = None
        self.playback = Playback()
        self.recent: tuple[JointVector, ...] = ()
        self.actions = 0
        self.is_stopped = False
        self.told: list[float] = []  # what the pupil said of its being done
        self.judged_s = 0.0  # when that is looked at

    def tick(self, state: RobotState, things: Sequence[ObjectTruth]) -> JointCommand:
        """What is done now; both labels and outcomes are noted."""
        if self.under_way is None or self.under_way.elapsed_s > self.ends_s:
            self._next(state, things)
        assert self.under_way is not None
        before, action = self.under_way, self.under_way.action
        now = self.under_way = before.later(1 / RATE_HZ, state)
        self.recent = (*self.recent[1 - HISTORY :], state.position)
        lesson = taught(action, state)
        is_there = is_done(action, state)
        if is_there and not self.is_pupil:
            self._over("success", self.dice.uniform(0.2, 1.5))
        felt = feel(state, action, now.began, self.recent, HISTORY, before.elapsed_s)
        wanted = (*lesson.goal, lesson.base_v_mps, 0.0)
        self.notes.felt.append(flat(felt))
        self.notes.wanted.append((*wanted, float(lesson.is_done)))
        self.notes.runs.append(self.actions)
        self.notes.counts.append(counts(now.still_s, is_done=lesson.is_done))
        if self.is_pupil and self.session is not None:
            answer = self.session.run({}, felt)
            chunk = as_message(answer, 1 / RATE_HZ, state.read_ns, action.id)
            self.playback = self.playback.with_chunk(chunk, seen_ns=state.read_ns, came_ns=state.read_ns)
            self._judge(answer.done or 0.0, now.elapsed_s)
            if self.judged_s and now.elapsed_s > self.judged_s:
                self._over("success" if is_there else "says that it is done, and is not", 0.0)
            elif now.elapsed_s >= LONGEST_S[action.skill]:
                self._over("takes too long", 0.0)
            command = self.playback.command(state.read_ns)
            assert command is not None
            return command
        if now.elapsed_s >= LONGEST_S[action.skill]:
            self._over("takes too long", 0.0)
        return self.pushed(wanted)

    def stop(self, why: str) -> None:
        """Something was touched: only a person could go on, so the lesson is over."""
        if not self.is_stopped:
            self.is_stopped = True
            self._over(f"stopped: {why}", 0.0)

    def _judge(self, done: float, elapsed_s: float) -> None:
        """As `OnnxPolicy` does: three answers in a row; whether it is so is seen a moment later."""
        self.told = [*self.told[-2:], done]
        if len(self.told) == 3 and min(self.told) >= 0.5 and not self.judged_s:
            self.judged_s = elapsed_s + SEEN_AFTER_S
            self.ends_s = max(self.ends_s, self.judged_s + 1.0)

    def _over(self, outcome: str, more_s: float) -> None:
        if self.under_way is not None:
            self.over(self.under_way.action.skill, outcome, self.under_way.elapsed_s, more_s)

    def _next(self, state: RobotState, things: Sequence[ObjectTruth]) -> None:
        skill, target = self._choose(state, things)
        self.actions, self.is_over = self.actions + 1, False
        action = Action(id=str(self.actions), skill=skill, arguments=aimed_at(target))
        self.under_way = UnderWay.begun(action, None, state, is_judged=True)
        self.told, self.judged_s = [], 0.0
        self.choose_who()
        self.begin(LONGEST_S[skill], is_grasping=state.is_grasping)

    def _choose(self, state: RobotState, things: Sequence[ObjectTruth]) -> tuple[str, SeenObject]:
        on_table = [thing for thing in things if not thing.is_in_bin and thing.z_m > TABLE_HEIGHT_M]
        if self.dice.random() < 0.2:
            return "look", self._bin() if self.dice.random() < 0.3 else self._somewhere(state)
        if state.is_grasping:
            return "place", self._bin()
        if not on_table:
            return "look", self._somewhere(state)
        return "pick", self._seen(self.dice.choice(on_table))

    def _seen(self, thing: ObjectTruth) -> SeenObject:
        width_m, height_m = self.sizes[thing.name]
        off = [self.dice.gauss(0.0, SEEN_OFF_M) for _ in range(4)]
        return _object(
            thing.label, thing.colour, thing.x_m + off[0], thing.y_m + off[1], thing.z_m + off[2] / 2,
            width_m + off[3], height_m + off[2],
        )  # fmt: skip

    def _bin(self) -> SeenObject:
        """The VLM sees a bin with its stand; one that is cut at the left or the right."""
        hidden_m = self.dice.uniform(-HIDDEN_M, HIDDEN_M) if self.dice.random() < CUT else 0.0
        off = [self.dice.gauss(0.0, SEEN_OFF_M) for _ in range(3)]
        x_m, width_m = BIN_XY_M[0] + hidden_m / 2 + off[0], 0.26 - abs(hidden_m)
        return _object("bin", "teal", x_m, BIN_XY_M[1] + off[1], BIN_Z_M[1] / 2 + off[2], width_m, BIN_Z_M[1])

    def _somewhere(self, state: RobotState) -> SeenObject:
        """Where the VLM looks for things: on the table, and round the robot."""
        if self.dice.random() < 0.5:
            x_m, y_m = self.dice.uniform(*TABLE_X_M), self.dice.uniform(*TABLE_Y_M)
            return _object("table", "", x_m, y_m, TABLE_HEIGHT_M, 0.0, 0.0)
        x_m, y_m = state.base_x_m + self.dice.uniform(-0.7, 1.0), state.base_y_m + self.dice.uniform(-0.8, 0.2)
        return _object("place", "", x_m, y_m, self.dice.uniform(0.2, 0.6), 0.0, 0.0)


def _object(label: str, colour: str, x_m: float, y_m: float, z_m: float, width_m: float, height_m: float) -> SeenObject:
    return SeenObject(
        label=label, colour=colour, x_m=x_m, y_m=y_m, z_m=z_m, width_m=width_m, height_m=height_m, u_px=0.0, v_px=0.0
    )


class LessonAtTable(Node):
    """The same with the simulated robot and the guard."""

    realtime = True
    seat = "policy"

    state = Subscription(RobotState, "robot/state", qos=QoS(lifespan_s=0.25))
    truth = Subscription(Truth, "sim/truth")
    guard = Subscription(GuardState, "guard/state", qos=QoS(required=False))
    command = Publisher(JointCommand, "command")

    def __init__(self, lesson: Lesson) -> None:
        self.lesson = lesson

    @every(hz=RATE_HZ)
    def tick(self) -> None:
        state, truth = self.state.latest(), self.truth.latest()
        if state is not None and truth is not None:
            self.command.publish(self.lesson.tick(state, truth.objects))

    @on(guard)
    def guarded(self, guard: GuardState) -> None:
        if guard.is_stopped:
            self.lesson.stop(guard.reason)


def teach(
    seeds: Sequence[int], seconds: float, model: bytes | None = None, share: float = 0.0, is_imagined: bool = False
) -> Rows:
    """A lesson of so long at the table of each seed."""
    session = None
    if model is not None:
        cpu = ("CPUExecutionProvider",)
        session = PolicySession(model, name="the pupil", width_px=160, height_px=120, providers=cpu)
    notes: list[Rows] = []
    for seed in seeds:
        left_s, number = seconds, 0
        while left_s > SHORTEST_S:  # whatever was touched, a fresh robot goes on at the same table
            lesson = Lesson(seed * MOST_LESSONS + number, session, share)
            left_s -= (_imagine if is_imagined else _simulate)(lesson, seed, left_s)
            notes.append(lesson.notes.rows())
            number += 1
    return Rows.joined(notes)


def _simulate(lesson: Lesson, seed: int, seconds: float) -> float:
    """How long it took, s."""
    graph = (SimDriver(robot_params={"seed": seed}), Guard(arm="auto"), LessonAtTable(lesson))
    sim = Simulation(*graph, seed=seed)
    sim.run(seconds=seconds, until=lambda: lesson.is_stopped)
    took_s = sim.clock.now_ns() * 1e-9
    sim.close()
    return took_s


def _imagine(lesson: Lesson, seed: int, seconds: float) -> float:
    robot = ImaginedRobot(seed)
    lesson.sizes = robot.sizes
    for _ in range(int(seconds * RATE_HZ)):
        robot.follow(lesson.tick(robot.state(), robot.things), 1 / RATE_HZ)
    return seconds
