"""`python -m examples.train_visuomotor.evaluate FILE.onnx`: how often a single pick and place succeeds.

The simulated robot, the guard, both cameras as in launch/laptop.toml and `OnnxPolicy`; an asker says what the VLM would
say. What an attempt was worth is judged by where the thing really is in the end. A contact at which the guard stops the
robot ends it: only a person could go on.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from examples.train_visuomotor.lessons import BLEND_S, HEIGHT_PX, NAMES, STEP_S, WIDTH_PX
from nodes.guard.node import Guard
from nodes.msgs import Action, Feedback, GuardState, SeenObject, aimed_at
from nodes.policy.expert import ExpertPolicy
from nodes.policy.onnx.policy import OnnxPolicy, place_of
from nodes.sim.camera import SimCamera
from nodes.sim.driver import SimDriver
from nodes.sim.messages import Truth
from nodes.sim.world.table_scene import BIN_XY_M, BIN_Z_M, SIZES_M
from nodes.statistics.paired import wilson
from runtime import Node, Publisher, QoS, Simulation, Subscription, every, on
from runtime.command_line.arguments import answered
from runtime.launch.graph import NodeSpec

CUPS = tuple(name for name in NAMES if name.endswith("cup"))
LIMIT_S = 100.0
BEGINS_S = 1.0


@dataclass
class Attempt:
    """What was asked, and what became of it."""

    cup: str
    told: list[str] = field(default_factory=list)
    stops: list[str] = field(default_factory=list)
    is_held: bool = False
    is_in_bin: bool = False
    is_over: bool = False


class Asker(Node):
    """Asks to pick a cup, then to place it in the bin."""

    truth = Subscription(Truth, "sim/truth")
    feedback = Subscription(Feedback, "feedback")
    guard = Subscription(GuardState, "guard/state", qos=QoS(required=False))
    action = Publisher(Action, "action")

    def __init__(self, attempt: Attempt) -> None:
        self.attempt = attempt
        self.asked = ""
        self.begin_ns = 0
        self.over_ns = 0

    @every(hz=5)
    def tick(self) -> None:
        truth, attempt = self.truth.latest(), self.attempt
        if truth is None:
            return
        thing = next(one for one in truth.objects if f"{one.colour} {one.label}" == attempt.cup)
        attempt.is_held |= thing.held_by == "robot" and thing.z_m > 0.58
        attempt.is_in_bin = thing.is_in_bin
        now_ns = self.clock.now_ns()
        self.begin_ns = self.begin_ns or now_ns
        if self.over_ns and now_ns > self.over_ns + 2e9:
            attempt.is_over = True
        elif not self.asked and now_ns > self.begin_ns + BEGINS_S * 1e9:
            width_m, height_m = SIZES_M[thing.name]
            target = _seen(thing.label, thing.colour, (thing.x_m, thing.y_m, thing.z_m), width_m, height_m)
            self._ask("pick", f"picking up the {attempt.cup}", target)

    @on(feedback)
    def answered(self, feedback: Feedback) -> None:
        if feedback.status == "running" or feedback.action_id != self.asked:
            return
        self.attempt.told.append(f"{self.asked}: {feedback.status} {feedback.why}")
        if self.asked == "pick" and feedback.status == "success":
            target = _seen("bin", "teal", (*BIN_XY_M, sum(BIN_Z_M) / 2), 0.26, BIN_Z_M[1] - BIN_Z_M[0])
            self._ask("place", f"putting the {self.attempt.cup} in the bin", target)
        else:
            self.over_ns = self.over_ns or self.clock.now_ns()

    @on(guard)
    def guarded(self, guard: GuardState) -> None:
        if guard.is_stopped and not self.attempt.stops:
            self.attempt.stops.append(f"{self.asked}: {guard.reason}")
            self.over_ns = self.over_ns or self.clock.now_ns()

    def _ask(self, skill: str, text: str, target: SeenObject) -> None:
        self.asked = skill
        name = "place" if skill == "place" else "thing"
        self.action.publish(Action(id=skill, skill=skill, arguments=aimed_at(target, name), text=text))


def _seen(label: str, colour: str, at: tuple[float, float, float], width_m: float, height_m: float) -> SeenObject:
    return SeenObject(
        label=label, colour=colour, x_m=at[0], y_m=at[1], z_m=at[2], width_m=width_m, height_m=height_m,
        u_px=0.0, v_px=0.0, is_place=label == "bin",
    )  # fmt: skip


def attempt(seed: int, model: str, **params: Any) -> Attempt:
    """One attempt at the table of a seed; without a model it is the scripted policy's."""
    found = Attempt(random.Random(f"attempt/{seed}").choice(CUPS))
    policy: Node = (
        OnnxPolicy(model, image_width_px=WIDTH_PX, image_height_px=HEIGHT_PX, step_s=STEP_S, blend_s=BLEND_S, **params)
        if model else ExpertPolicy()
    )  # fmt: skip
    head = SimCamera("head", 160, 120)
    wrist = SimCamera("wrist", 96, 72)
    nodes = (
        NodeSpec("driver", SimDriver, instance=SimDriver(robot_params={"seed": seed}), hz={"show_world": 25}),
        NodeSpec("guard", Guard, instance=Guard(arm="auto")),
        NodeSpec("head_camera", SimCamera, instance=head, hz={"capture": 25}, after={"capture": "sim/world"}),
        NodeSpec("wrist_camera", SimCamera, instance=wrist, hz={"capture": 5}, remap={"head/image": "wrist/image"}),
        NodeSpec("policy", type(policy), instance=policy),
        NodeSpec("asker", Asker, instance=Asker(found)),
    )
    sim = Simulation(*nodes, seed=seed)
    sim.run(seconds=LIMIT_S, until=lambda: found.is_over)
    sim.close()
    return found


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m examples.train_visuomotor.evaluate", description=__doc__)
    parser.add_argument("model", help="an ONNX file, or see-and-place, which ships; expert: the scripted policy")
    parser.add_argument("--seeds", type=int, default=40, help="default: %(default)s")
    parser.add_argument("--first", type=int, default=0, help="the first seed; held out are those below 10,000")
    asked = parser.parse_args(argv)
    return answered("examples.train_visuomotor.evaluate", lambda: _measure(asked))


def _measure(asked: argparse.Namespace) -> int:
    model = "" if asked.model == "expert" else place_of(asked.model)
    counts: Counter[str] = Counter()
    for seed in range(asked.first, asked.first + asked.seeds):
        one = attempt(seed, model)
        counts.update({"picked": one.is_held, "in the bin": one.is_in_bin, "contacts": len(one.stops)})
        print(f"seed {seed}: {one.cup}, {'in the bin' if one.is_in_bin else 'picked' if one.is_held else 'nothing'}; "
              f"{'; '.join([*one.told, *one.stops])}", flush=True)  # fmt: skip
    for what in ("picked", "in the bin"):
        low, high = wilson(counts[what], asked.seeds)
        print(f"{what}: {counts[what]} of {asked.seeds}, {low:.0%} to {high:.0%}")
    print(f"contacts: {counts['contacts']}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
