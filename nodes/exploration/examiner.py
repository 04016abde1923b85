"""`Examiner`: the room around a robot, and who asks about it: explore, be asked, explore again, answer again.

It knows the room's truth and where the robot's body and head are, and tells what a trial finds and what the head camera
sees: rays in its field of view, each ended by what it meets first. Place, direction, range and what hides what are the
camera's. That a thing is recognised is taken for granted. In the end: Acc_exp + (Acc_ref - Acc_exp) exp(-k T3).
"""

from __future__ import annotations

import math
from collections.abc import Collection

import numpy as np

from nodes.exploration.explorer import ARM, DONE
from nodes.exploration.messages import Deed, ExplorationResult, StepDone, ThingInSight
from nodes.exploration.room import (
    CELL_M,
    MOST,
    MOVES,
    Cell,
    Room,
    RoomQuestion,
    RoomThing,
    cell_after,
    cell_at,
    is_inside,
    metres,
    questions_of,
)
from nodes.msgs import RobotState, Scene, SeenObject, Utterance
from nodes.robot.products import product
from nodes.robot.protocol import Body
from nodes.robot.robot_from_launch import load_body
from runtime import RELIABLE, Node, Publisher, Subscription, UserError, every, on, to_s

ACROSS_RAD, UP_RAD = math.radians(69.0), math.radians(55.0)
COLUMNS, ROWS = 40, 32
"""Rays: one for about 1.7 degrees."""
RANGE_M = 3.0
"""What is farther away is not made out."""
LEAST_RAYS = 4
"""So many must end on a thing."""
WIDTH_M, HEIGHT_M = CELL_M / 2, 0.5
HIGHER_M = {"cupboard": 1.8, "lamp": 1.5, "drawer": 0.9}
"""Of things that are not `HEIGHT_M` high; what is behind a high one is hidden."""


def _rays() -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """(n, 3), camera frame: right, down, forward; forward is 1."""
    across, up = math.tan(ACROSS_RAD / 2), math.tan(UP_RAD / 2)
    right, down = np.meshgrid(np.linspace(-across, across, COLUMNS), np.linspace(-up, up, ROWS))
    return np.column_stack([right.ravel(), down.ravel(), np.ones(right.size)])


RAYS = _rays()


def height_m(kind: str) -> float:
    """How high things of that kind are."""
    return HIGHER_M.get(kind, HEIGHT_M)


def in_view(body: Body, state: RobotState, began_at: Cell, things: Collection[RoomThing]) -> tuple[set[str], set[Cell]]:
    """Names of the things, and the cells in whose middle nothing stands, as the head camera sees it now.

    `things` are all of the room.
    """
    rotation, eye = body.head_camera(state)
    rays = product(RAYS, rotation.T)
    spots_m = {one.name: metres(one.at, began_at) for one in things}
    near = [one for one in things if math.dist(spots_m[one.name], eye[:2]) < RANGE_M + WIDTH_M] or [*things][:1]
    low = np.array([(*spots_m[one.name], 0.0) for one in near]) - (WIDTH_M / 2, WIDTH_M / 2, 0.0)
    high = low + [(WIDTH_M, WIDTH_M, height_m(one.kind)) for one in near]
    with np.errstate(divide="ignore", invalid="ignore"):
        first, last = ((side - eye) / rays[:, None, :] for side in (low, high))  # (ray, thing, axis)
        enters, leaves = np.minimum(first, last).max(axis=2), np.maximum(first, last).min(axis=2)
        floor = np.where(rays[:, 2] < 0.0, -eye[2] / rays[:, 2], np.inf)
    enters = np.where((leaves >= enters) & (enters > 0.0), enters, np.inf)
    nearest = enters.min(axis=1)
    is_near = np.minimum(nearest, floor) * np.linalg.norm(rays, axis=1) < RANGE_M
    is_thing = nearest < floor
    counts = np.bincount(enters.argmin(axis=1)[is_near & is_thing], minlength=len(near))
    seen = {one.name for one, count in zip(near, counts.tolist(), strict=True) if count >= LEAST_RAYS}
    is_floor = is_near & ~is_thing
    spots = (eye + rays[is_floor] * floor[is_floor, None])[:, :2]
    spots = spots[np.abs(spots - CELL_M * np.round(spots / CELL_M)).max(axis=1) < WIDTH_M / 2]
    cells = {cell_at((x, y), began_at) for x, y in spots.tolist()}
    return seen, {cell for cell in cells if is_inside(cell)}


NEAR_M = 0.10
"""So near to the middle of a cell the robot has got there."""
REACHED_M = 0.12
"""An arm that is out so far, beside a thing, tries it."""
STILL_MPS, STILL_RADPS = 0.03, 0.1
LATE_S = 40.0
"""A step that takes longer has failed: somebody has stopped the robot, or stands in its way."""


def score_of(acc_exp: float, acc_ref: float, t3: int, energy: float) -> float:
    """Acc_exp + (Acc_ref - Acc_exp) exp(-k T3)."""
    return acc_exp + (acc_ref - acc_exp) * math.exp(-energy * t3)


class Examiner(Node):
    """`steps` of the first exploration, `questions` asked, at most `most_steps` of the second; `energy` is k.

    The room follows from the run's seed.
    """

    provenance = "script:examiner-1"
    role = "ears"  # it plays a person who asks

    state = Subscription(RobotState, "robot/state")
    deed = Subscription(Deed, "room/deed", qos=RELIABLE)
    said = Subscription(Utterance, "said", qos=RELIABLE)

    step = Publisher(StepDone, "room/step", qos=RELIABLE)
    heard = Publisher(Utterance, "heard", qos=RELIABLE)
    scene = Publisher(Scene, "scene")
    result = Publisher(ExplorationResult, "room/result", qos=RELIABLE)

    def __init__(self, steps: int = 25, questions: int = 20, energy: float = 0.01, most_steps: int = 300) -> None:
        if min(steps, questions) < 1 or most_steps < 0 or not 0.0 <= energy < math.inf or questions > MOST:
            raise UserError(
                f"steps is {steps}, questions {questions}, most_steps {most_steps}, energy {energy:g}; expected at "
                f"least one step, 1 to {MOST} questions, and no negative number"
            )
        self.steps, self.count, self.energy, self.most_steps = steps, questions, energy, most_steps
        self.room = Room(0)
        self.questions: list[RoomQuestion] = []
        self.answers: list[str] = []
        self.right: list[list[bool]] = []  # of each time that it was asked
        self.doing: tuple[str, int] | None = None  # the action under way, and since when
        self.in_sight: set[str] = set()
        self.known: set[str] = set()  # things that have been in sight
        self.floor: set[Cell] = set()  # seen since the last step
        self.left = 0  # steps of this exploration
        self.late_steps = self.done_before = 0
        self.unreadable = 0

    def on_start(self) -> None:
        """Make the room."""
        self.room = Room(self.run_info.seed)
        self.body = load_body("")
        self.questions = questions_of(self.room, self.run_info.seed, self.count)

    @on(deed)
    def begin(self, deed: Deed) -> None:
        """The robot sets about a step."""
        if deed.number != self.room.steps + 1 or self.doing is not None or self.left <= 0:
            return  # of an exploration that is over
        self.unreadable += deed.is_unreadable
        if deed.action == DONE:
            self._ask()
        elif deed.action in self._actions():
            self.doing = deed.action, self.clock.now_ns()
        else:
            self._end()

    @on(state)
    def follow(self, state: RobotState) -> None:
        """A step ends where the body has got to."""
        if not self.right and self.left == 0 and not self.answers:
            self._begin(self.steps)
        if self.doing is None:
            return
        action, since_ns = self.doing
        is_late = to_s(self.clock.now_ns() - since_ns) > LATE_S
        if is_late or self._is_done(action, state):
            self._end(action, is_late=is_late)

    @every(hz=5)
    def look(self) -> None:
        """What the head camera sees of the room."""
        state = self.state.latest()
        if state is None:
            return
        self.in_sight, floor = in_view(self.body, state, self.room.began_at, self.room.things.values())
        self.known |= self.in_sight
        self.floor |= floor

    def _actions(self) -> list[str]:
        """Moves, and trials of things within reach that have been seen."""
        actions = self.room.actions()
        return [one for one in actions if one in MOVES or one.partition(" ")[2] in self.known]

    def _is_done(self, action: str, state: RobotState) -> bool:
        goal = metres(cell_after(self.room.at, action) if action in MOVES else self.room.at, self.room.began_at)
        is_there = math.dist(goal, (state.base_x_m, state.base_y_m)) < NEAR_M
        is_still = abs(state.base_v_mps) < STILL_MPS and abs(state.base_w_radps) < STILL_RADPS
        return is_there and is_still and (action in MOVES or state.position[ARM] > REACHED_M)

    def _begin(self, steps: int) -> None:
        self.left, self.done_before = steps, self.room.steps
        self._tell(None)

    def _end(self, action: str = "", *, is_late: bool = False) -> None:
        """One step less; what cannot be done here costs one, too."""
        self.doing = None
        self.left -= 1
        self.late_steps += is_late
        found = self.room.do("" if is_late else action)
        self._tell(found, is_late=is_late)
        if self.left <= 0:
            self._ask()

    def _tell(self, found: tuple[str, str] | None, *, is_late: bool = False) -> None:
        self.look()
        places = {name: self.room.things[name].at for name in sorted(self.known)}
        things = tuple(ThingInSight(name=name, x=at[0], y=at[1]) for name, at in places.items())
        self.step.publish(
            StepDone(
                number=self.room.steps, x=self.room.at[0], y=self.room.at[1], actions=tuple(self._actions()),
                things=things, floor=tuple(sorted(self.floor)), left=self.left, found=found, is_late=is_late,
            )
        )  # fmt: skip
        self.floor = set()

    @every(hz=2)
    def show(self) -> None:
        """What is in sight, for viewers."""
        things = []
        for one in (self.room.things[name] for name in sorted(self.in_sight)):
            x_m, y_m = metres(one.at, self.room.began_at)
            things.append(
                SeenObject(
                    id=one.name, label=one.kind, colour=one.colour, x_m=x_m, y_m=y_m, z_m=height_m(one.kind) / 2,
                    width_m=WIDTH_M, height_m=height_m(one.kind), u_px=0.0, v_px=0.0,
                )
            )  # fmt: skip
        self.scene.publish(Scene(things=tuple(things)))

    # --- the questions

    def _ask(self) -> None:
        self.left, self.answers = 0, []
        self.heard.publish(Utterance(speaker="examiner", text=self.questions[0].text))

    @on(said)
    def listen(self, utterance: Utterance) -> None:
        """An answer; then the next question."""
        if self.left > 0 or len(self.answers) == len(self.questions):
            return
        self.answers.append(utterance.text)
        if len(self.answers) < len(self.questions):
            self.heard.publish(Utterance(speaker="examiner", text=self.questions[len(self.answers)].text))
            return
        self.right.append([
            said.strip().lower() == one.answer for said, one in zip(self.answers, self.questions, strict=True)
        ])  # fmt: skip
        if len(self.right) == 1 and self.most_steps:
            self._begin(self.most_steps)
        else:
            self._conclude()

    def _conclude(self) -> None:
        first, last = self.right[0], self.right[-1]
        trying = [number for number, one in enumerate(self.questions) if one.needs_trying]
        t3 = self.room.steps - self.done_before if len(self.right) > 1 else 0
        exp, ref = share(first), share(last)
        score = score_of(exp, ref, t3, self.energy)
        self.result.publish(
            ExplorationResult(
                acc_exp=exp, acc_ref=ref, tried_exp=share([first[one] for one in trying]),
                tried_ref=share([last[one] for one in trying]), t3=t3, score=score, unreadable=self.unreadable,
                late_steps=self.late_steps,
            )
        )  # fmt: skip
        self.finish(ok=True, reason=f"score {score:.3f}: {exp:.0%} right, {ref:.0%} after {t3} steps more")


def share(right: list[bool]) -> float:
    """How many are right; 0 of none."""
    return sum(right) / len(right) if right else 0.0
