"""What a soft hold costs: on a way beside somebody who says what nobody understands, and in the story of `laptop`."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import msgspec

from nodes.guard.node import Guard
from nodes.interrupts.reflex import Reflex
from nodes.robot.driver import Driver
from nodes.sim.kinematic import KinematicRobot
from runtime import Node, NodeSpec, Publisher, Simulation, every
from runtime.bag.file import BagReader
from runtime.clock import NS_PER_S
from runtime.errors import PolyrhythmError
from runtime.msgs import Interrupt, JointCommand, RobotState, Utterance

UTTERANCES_A_MINUTE = 10
"""People who talk all the time beside the robot, and mean nothing of it for the robot."""
UNKNOWN = "Blimp wozzle!"
WAY_M, SPEED_MPS = 6.0, 0.2
LATEST_S = 120.0
STORY = "laptop"
TALKER = "visitor=nodes.evaluation.reflex_cost:UtteranceSource"
STORY_LATEST_S = 600.0
PATIENCE_S = 1800.0


class Straight(Node):
    """Drives ahead."""

    command = Publisher(JointCommand, "command")

    @every(hz=20)
    def tick(self) -> None:
        self.command.publish(JointCommand(position=KinematicRobot.folded, base_v_mps=SPEED_MPS))


class UtteranceSource(Node):
    """Says the same again and again."""

    is_ears = True
    heard = Publisher(Utterance, "heard")

    @every(hz=UTTERANCES_A_MINUTE / 60)
    def talk(self) -> None:
        self.heard.publish(Utterance(speaker="visitor", text=UNKNOWN))


def hold_delay_s() -> float:
    """How much later a robot arrives for each soft hold, s; measured in virtual time, with no second judge."""
    alone_s, none = _driven(())
    held_s, holds = _driven((UtteranceSource(),))
    return (held_s - alone_s) / max(holds - none, 1)


def _driven(others: Sequence[Node]) -> tuple[float, int]:
    """How long the way takes, and how often the robot was held softly on it."""
    sim = Simulation(
        NodeSpec("driver", Driver, params={"robot": "nodes.sim.kinematic:KinematicRobot"}),
        NodeSpec("guard", Guard, params={"arm": "auto"}),
        NodeSpec("reflex", Reflex),
        Straight(),
        *others,
    )
    states: list[RobotState] = sim.record_topic("robot/state", RobotState)
    interrupts: list[Interrupt] = sim.record_topic("interrupt", Interrupt)
    passed_s = 0.0
    while passed_s < LATEST_S and not (states and states[-1].base_x_m >= WAY_M):
        sim.run(seconds=0.1)
        passed_s += 0.1
    return passed_s, sum(one.depth == "hold" for one in interrupts)


class StoryCost(msgspec.Struct, frozen=True):
    """One telling of the story, in virtual time."""

    lasted_s: float  # until the collaborator had what they wanted
    holds: int

    @property
    def holds_a_minute(self) -> float:
        """None of them was needed: nobody in the story shouts what is not understood."""
        return self.holds / self.lasted_s * 60


def story_costs(seed: int = 0) -> tuple[StoryCost, StoryCost]:
    """The story as it is, and with somebody beside it who talks all the time. Raises PolyrhythmError where it fails."""
    return _told((), seed), _told(("--add", TALKER), seed)


def _told(changes: Sequence[str], seed: int) -> StoryCost:
    with tempfile.TemporaryDirectory(prefix="story-") as folder:
        asked = ["run", STORY, "--virtual", "--seed", str(seed), "--for", str(STORY_LATEST_S), "--out", folder]
        done = subprocess.run(
            [sys.executable, "-m", "runtime", *asked, "--set", "run.report=", "--json", *changes],
            capture_output=True, text=True, timeout=PATIENCE_S, check=False,
        )  # fmt: skip
        if done.returncode:
            raise PolyrhythmError(f"polyrhythm run {STORY} failed:\n{done.stderr[-1000:]}")
        end_ns = holds = 0
        for record in BagReader(Path(folder) / "run.mcap"):
            end_ns = max(end_ns, record.envelope.published_ns)
            holds += record.topic == "interrupt" and b'"hold"' in record.data
    return StoryCost(end_ns / NS_PER_S, holds)
