"""What a soft hold costs in time: a robot drives its way while somebody says what nobody understands."""

from __future__ import annotations

from collections.abc import Sequence

from nodes.guard.node import Guard
from nodes.interrupts.reflex import Reflex
from nodes.msgs import Interrupt, JointCommand, RobotState, Utterance
from nodes.robot.driver import Driver
from nodes.sim.kinematic import KinematicRobot
from runtime import Node, NodeSpec, Publisher, Simulation, every

UTTERANCES_A_MINUTE = 10
"""People who talk all the time beside the robot, and mean nothing of it for the robot."""
UNKNOWN = "Blimp wozzle!"
WAY_M, SPEED_MPS = 6.0, 0.2
LATEST_S = 120.0


class Straight(Node):
    """Drives ahead."""

    command = Publisher(JointCommand, "command")

    @every(hz=20)
    def tick(self) -> None:
        self.command.publish(JointCommand(position=KinematicRobot.folded, base_v_mps=SPEED_MPS))


class UtteranceSource(Node):
    """Says the same again and again."""

    role = "ears"
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
