"""`GuardedEnv`: a launch file's graph as an environment that somebody else's loop steps, in virtual time.

The guard is in it, and the person where the file has one. What the loop commands goes the way of the seat's own holder.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nodes.msgs import GuardState, Image, JointCommand, RobotState, Utterance
from nodes.robot.protocol import RobotLimits
from nodes.robot.robot_from_launch import DEFAULT, load_limits
from nodes.sim.messages import Truth
from runtime import Simulation, UserError
from runtime.abilities import devices_of
from runtime.launch.file import Launch, find, load
from runtime.message import Stamped

STEP_S = 0.05
BEGINS_S = 1.0
"""So long it stands after a reset before anything is said or commanded: until the guard is armed and cameras see."""
ASKED = "{topic}/asked"
"""Where what the seat's own holder commands goes, since the loop commands in its place."""


@dataclass(frozen=True, slots=True)
class Stepped:
    """What there is after a step."""

    time_s: float  # of the run's clock
    state: RobotState
    images: Mapping[str, NDArray[np.uint8]]  # by topic, the newest: (height, width, 3)
    truth: Truth | None  # where things really are; None where nobody tells
    let_through: JointCommand | None  # what the guard gave the driver last
    guard: GuardState | None
    asked: JointCommand | None  # what the seat's own holder would have commanded since the step before
    said: tuple[str, ...]  # by the robot, in this step
    outcome: tuple[bool, str] | None  # whether it went well, and why, once a node ends the run


class GuardedEnv:
    """The graph of a launch file, all but the nodes `without`, stepped by `step_s` of virtual time.

    With `seat`, the loop commands in the place of the seat's holder, which goes on and tells what it would do; "" only
    looks on. `say` is said to the robot after each reset, where anybody hears. `changes` are NODE.PARAM=VALUE, as
    `--set` takes them. Raises UserError where the file has no guard, or a real robot.
    """

    def __init__(
        self,
        launch: str | Path = "laptop",
        *,
        without: Sequence[str] = (),
        seat: str = "policy",
        say: str = "",
        changes: Sequence[str] = (),
        step_s: float = STEP_S,
    ) -> None:
        if not 0 < step_s < math.inf:
            raise UserError(f"step_s is {step_s}; expected a positive number of seconds")
        path = find(str(launch))
        loaded = load(path, changes, without=without)
        _check_guarded(loaded)
        self.step_s = step_s
        self.instruction = say
        self._topic = command_topic(loaded)
        self._seat = seat
        self._source = seat and _holder(loaded, seat)
        if self._source:
            moved = f"{self._source}.remap.{self._topic}={ASKED.format(topic=self._topic)}"
            loaded = load(path, [*changes, moved], without=without)
        self.launch = loaded
        self.limits: RobotLimits = load_limits(loaded.shared.get("robot", DEFAULT))
        types = loaded.graph.types
        published = {name for name, topic in loaded.graph.topics.items() if topic.publishers}
        self.cameras = tuple(sorted(name for name in published if types[name] is Image))
        self._simulation: Simulation | None = None
        self._said: list[str] = []
        self._asked: JointCommand | None = None
        self._looked: list[Stamped[Any]] = []

    def reset(self, seed: int = 0) -> Stepped:
        """Begin anew; the same seed lays the same table and draws the same luck."""
        self.close()
        launch = self.launch
        self._simulation = simulation = Simulation(
            *launch.graph.nodes.values(), seed=seed, links=launch.links, seats=launch.seats, budgets=launch.budgets,
            watched=False,
        )  # fmt: skip
        simulation.run_info.update(launch.shared_facts)
        simulation.observe(self._note)
        simulation.run(seconds=BEGINS_S)
        if self.instruction and "heard" in self.launch.graph.topics:
            self.say(self.instruction)
        return self._look()

    def say(self, text: str, *, speaker: str = "Ann") -> None:
        """Say it to the robot, as a person beside it."""
        self._running.publish("heard", Utterance(speaker=speaker, text=text))

    def step(self, command: JointCommand | None = None) -> Stepped:
        """Command, or nothing, and let `step_s` pass.

        Raises UserError for a command with another number of joints or one that is not finite: then no time passes.
        """
        simulation = self._running
        if command is not None:
            if not self._seat:
                raise UserError('step(command): this environment only looks on; make it with seat="policy" to command')
            check_command(command, self.limits)
            simulation.publish(self._topic, command, source=self._source or "test", stems_from=self._looked)
        simulation.run(seconds=self.step_s)
        return self._look()

    def close(self) -> None:
        """End the run."""
        if self._simulation is not None:
            self._simulation.close()
        self._simulation = None
        self._said, self._asked, self._looked = [], None, []

    @property
    def _running(self) -> Simulation:
        if self._simulation is None:
            raise UserError("nothing runs yet; call reset() first")
        return self._simulation

    def _note(self, stamped: Stamped[Any]) -> None:
        topic, message = stamped.envelope.topic, stamped.message
        if topic == "said" and isinstance(message, Utterance):
            self._said.append(message.text)
        elif topic == ASKED.format(topic=self._topic) and isinstance(message, JointCommand):
            self._asked = message

    def _look(self) -> Stepped:
        simulation = self._running
        state = simulation.latest_stamped("robot/state")
        if state is None or not isinstance(state.message, RobotState):
            raise UserError(f"{self.launch.path}: nobody has told the robot's state after {BEGINS_S:g} s")
        seen = {topic: found for topic in self.cameras if (found := simulation.latest_stamped(topic)) is not None}
        self._looked = [state, *seen.values()]
        said, asked = tuple(self._said), self._asked
        self._said, self._asked = [], None
        images = {topic: found.message.rgb for topic, found in seen.items()}
        now_s = simulation.clock.now_ns() * 1e-9
        return stepped(simulation.latest, state.message, images, now_s, said, asked=asked, outcome=simulation.outcome)


def stepped(
    latest: Callable[[str], Any],
    state: RobotState,
    images: Mapping[str, NDArray[np.uint8]],
    time_s: float,
    said: tuple[str, ...],
    *,
    asked: JointCommand | None = None,
    outcome: tuple[bool, str] | None = None,
) -> Stepped:
    """What there is now, with the newest message of each topic as `latest` gives it."""
    truth, guard, let = (latest(topic) for topic in ("sim/truth", "guard/state", "robot/command"))
    return Stepped(
        time_s,
        state,
        images,
        truth=truth if isinstance(truth, Truth) else None,
        let_through=let if isinstance(let, JointCommand) else None,
        guard=guard if isinstance(guard, GuardState) else None,
        asked=asked,
        said=said,
        outcome=outcome,
    )


def check_command(command: JointCommand, limits: RobotLimits) -> None:
    """Raise UserError where a command has another number of joints than the robot, or is not finite."""
    names = [joint.name for joint in limits.joints]
    if len(command.position) != len(names):
        raise UserError(
            f"a command with {len(command.position)} joints for a robot with {len(names)}: {', '.join(names)}; "
            "nothing was commanded"
        )
    values = (*command.position, command.base_v_mps, command.base_w_radps, command.base_vy_mps)
    wrong = [
        f"{name} is {value}"
        for name, value in zip((*names, "base_v_mps", "base_w_radps", "base_vy_mps"), values, strict=True)
        if not math.isfinite(value)
    ]
    if wrong:
        raise UserError(f"a command that is not finite ({', '.join(wrong)}); nothing was commanded")


def command_topic(launch: Launch) -> str:
    """The topic by which the guard is commanded. Raises UserError where the file has no guard of a robot."""
    guard = launch.graph.nodes[launch.graph.authority]
    heard = [topic for topic in launch.graph.topics.values() if launch.graph.types[topic.name] is JointCommand]
    found = [topic.name for topic in heard if any(end.node == guard.name for end in topic.subscribers)]
    if not found:
        raise UserError(f"{launch.path}: {guard.name} hears no JointCommand, so that nobody can command the robot")
    return found[0]


def _check_guarded(launch: Launch) -> None:
    graph = launch.graph
    if not graph.is_obeyed(graph.authority):
        raise UserError(
            f"{launch.path}: has no guard, and nothing reaches motors but through one; add a table [nodes.guard] with "
            'use = "nodes.guard.node:Guard" and the process of the driver'
        )
    for name, spec in graph.nodes.items():
        if not spec.unset and (devices := devices_of(spec.build())):
            raise UserError(
                f"{launch.path}: [nodes.{name}] moves {devices[0]}, and this steps virtual time; run the file, and "
                "take its seat with nodes.seats.attached_env:AttachedEnv"
            )


def _holder(launch: Launch, seat: str) -> str:
    """The node on the seat; "" where it was left out. Raises UserError for a seat that commands no joints."""
    if seat != "policy":
        raise UserError(f"seat is {seat!r}; a loop commands in the place of 'policy', or looks on with ''")
    if seat in launch.seats:
        return launch.seats[seat].holder
    return next((name for name, spec in launch.graph.nodes.items() if spec.cls.seat == seat), "")
