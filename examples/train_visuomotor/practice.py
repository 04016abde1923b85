"""`practise`: lessons with physics and the guard, in which the pupil acts by its own eyes (DAgger).

What it sees there, where the things really were, and what the teacher would have done by what the pupil believes, are
what it learns from afterwards.
"""

from __future__ import annotations

import random
from dataclasses import fields

import numpy as np
import torch

from examples.train_visuomotor.learning import acts, picture, words_for
from examples.train_visuomotor.lessons import BIN, NAMES, Lesson, Rows, plane_of
from examples.train_visuomotor.network import MEMORY, SKILL_INPUTS, Pupil, text_of
from examples.train_visuomotor.pictures import CAMERAS, Scenes, project, scenes_of, small
from examples.train_visuomotor.teacher import Aim
from nodes.guard.node import Guard
from nodes.msgs import Action, GuardState, JointCommand, RobotState
from nodes.policy.onnx.inputs import feel, pose_of
from nodes.sim.camera import WorldView, model_of
from nodes.sim.driver import SimDriver
from nodes.sim.messages import ObjectTruth, Truth, World
from nodes.sim.world.table_scene import BIN_XY_M, TABLE_HEIGHT_M
from nodes.stretch.kinematics import from_odometry
from runtime import Node, Publisher, QoS, Simulation, Subscription, every, on
from runtime.launch.graph import NodeSpec

WRIST_EVERY = 5
KEEPS_EVERY = 6
ORDER = {name: number for number, name in enumerate(NAMES)}


class SeeingLesson(Lesson):
    """A lesson in which the belief is what the pupil's eyes make of the pictures."""

    def __init__(self, seed: int, pupil: Pupil, share: float) -> None:
        super().__init__(seed, acts(pupil), share)
        self.eyes = pupil.eval()
        self.pictures: dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]] = {}
        self.memory = torch.zeros(1, MEMORY)
        self.began = (0.0, 0.0, 0.0)
        self.words: tuple[str, int] = ("", 2)
        self.looked = -1
        self.kept: dict[str, list[object]] = {one.name: [] for one in fields(Scenes)}
        self.ticks = 0
        self.is_stopped = False
        self.errors: list[tuple[float, float, float]] = []  # how far off the belief was, and how far the hand

    def _next(self, state: RobotState, things: list[ObjectTruth]) -> None:
        super()._next(state, things)
        self.memory, self.began = torch.zeros(1, MEMORY), pose_of(state)
        if self.skill != "look":
            self.words = words_for(self.about, self.held if self.held >= 0 else 0, self.dice)

    def _aim(self, state: RobotState, things: list[ObjectTruth]) -> Aim:
        if self.skill == "look":
            return super()._aim(state, things)
        felt = torch.tensor([[*state.position, *state.velocity, float(state.is_grasping), state.base_v_mps]])
        text = torch.tensor([text_of(self.words[0])])
        skill = torch.eye(SKILL_INPUTS)[[self.words[1]]]
        base = torch.tensor([feel(state, Action(id="", skill=self.skill), self.began).base])
        with torch.no_grad():
            words, known = self.eyes.told(text, skill)
            seen = [
                self.eyes.look(name, picture(rgb[None], None), words, known, felt)[:2]
                for name, (rgb, _, _) in self.pictures.items()
            ]
            updates = torch.tensor([[0.0 if state.is_grasping and self.skill == "pick" else 1.0]])
            belief, _, self.memory = self.eyes.believe(seen, known, base, self.memory, updates)
        ahead, left = belief[0].tolist()
        truth = from_odometry(*pose_of(state), np.array((*self._truth(things), 0.0)))
        self.errors.append((ahead - truth[0], left - truth[1], float(state.position[0])))
        return Aim(self.skill, ahead, left, float(known[0, 0]), float(known[0, 1]) if self.skill == "pick" else 0.0)

    def keep(self, state: RobotState, things: list[ObjectTruth], held: int) -> None:
        """What is seen and where everything is, every so often."""
        self.ticks += 1
        if self.ticks % KEEPS_EVERY:
            return
        points = np.array([*((one.x_m, one.y_m, one.z_m) for one in things), (*BIN_XY_M, 0.0)])
        for name, (rgb, pixel, seen) in self.pictures.items():
            self.kept[name].append(rgb)
            self.kept[f"{name}_px"].append(pixel)
            self.kept[f"{name}_seen"].append(seen)
        self.kept["felt"].append((*state.position, *state.velocity, float(state.is_grasping), state.base_v_mps))
        self.kept["place"].append(from_odometry(*pose_of(state), points)[:, :2])
        stands = [one.z_m > TABLE_HEIGHT_M and number != held for number, one in enumerate(things)]
        self.kept["stands"].append([*stands, True])
        self.kept["about"].append(self.about)
        self.kept["held"].append(held)


class Practice(Node):
    """Draws what the cameras see at each tick, and does what the lesson says."""

    realtime = True
    seat = "policy"

    state = Subscription(RobotState, "robot/state", qos=QoS(lifespan_s=0.25))
    truth = Subscription(Truth, "sim/truth")
    world = Subscription(World, "sim/world")
    guard = Subscription(GuardState, "guard/state", qos=QoS(required=False))
    command = Publisher(JointCommand, "command")

    def __init__(self, lesson: SeeingLesson, views: dict[str, WorldView]) -> None:
        self.lesson, self.views = lesson, views
        self.ticks = 0

    @every(hz=25)
    def tick(self) -> None:
        state, truth, world = self.state.latest(), self.truth.latest(), self.world.latest()
        if state is None or truth is None or world is None:
            return
        things = sorted(truth.objects, key=lambda one: ORDER[f"{one.colour} {one.label}"])
        held = next((number for number, one in enumerate(things) if one.held_by == "robot"), -1)
        points = np.array([*((one.x_m, one.y_m, one.z_m) for one in things), (*BIN_XY_M, plane_of(BIN))])
        for name in CAMERAS:
            if name == "head" or self.ticks % WRIST_EVERY == 0:
                rgb, depth = self.views[name].see(world)
                pixel, seen = project(name, state.position, pose_of(state), points, depth)
                self.lesson.pictures[name] = (small(rgb), pixel, seen)
        self.ticks += 1
        command = self.lesson.tick(state, things, held)
        self.lesson.keep(state, things, held)
        self.command.publish(command)

    @on(guard)
    def guarded(self, guard: GuardState) -> None:
        if guard.is_stopped and not self.lesson.is_stopped:
            self.lesson.is_stopped = True
            self.lesson.end(f"stopped: {guard.reason}", 0.0)


def practise(seed: int, seconds: float, pupil: Pupil, share: float) -> tuple[Rows, Scenes, SeeingLesson]:
    """A lesson at the table of a seed, to the first contact."""
    lesson = SeeingLesson(seed, pupil, share)
    model = model_of()
    views = {name: WorldView(model, name, *size) for name, size in CAMERAS.items()}
    dice = random.Random(f"begins/{seed}")
    begins: dict[str, int | float | str | bool] = {
        "seed": seed,
        "head_pan_rad": dice.uniform(-2.0, 0.2),
        "head_tilt_rad": dice.uniform(-0.9, 0.1),
    }
    sim = Simulation(
        NodeSpec("driver", SimDriver, instance=SimDriver(robot_params=begins), hz={"show_world": 25}),
        NodeSpec("guard", Guard, instance=Guard(arm="auto")),
        NodeSpec("practice", Practice, instance=Practice(lesson, views), after={"tick": "sim/world"}),
        seed=seed,
    )
    sim.run(seconds=seconds, until=lambda: lesson.is_stopped)
    sim.close()
    return lesson.rows, scenes_of(lesson.kept), lesson
