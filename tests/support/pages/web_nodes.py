"""Nodes beside the console in tests: what a robot with a battery and a policy that plans ahead would say."""

from __future__ import annotations

import msgspec
import numpy as np

from nodes.msgs import ActionChunk, Mark, RobotState, RobotStatus, RunningTrial, Trial, Utterance
from nodes.msgs.episode import Turn
from nodes.sim.driver import SimDriver
from runtime import ALONE, Node, Publisher, QoS, Subscription, every, on
from runtime.qos import RELIABLE

STEPS, STEP_S, AHEAD_MPS = 20, 0.1, 2.0


class DriverWithoutBattery(SimDriver):
    """A simulated robot's, whose own word on its state nobody hears: it knows of no battery."""

    status = Publisher(RobotStatus, "driver/status", qos=ALONE)


class Battery(Node):
    """A battery of 12.6 V that is not charging."""

    status = Publisher(RobotStatus, "robot/status", qos=ALONE)

    def devices(self) -> tuple[str, ...]:
        """None."""
        return ()

    @every(hz=2)
    def tell(self) -> None:
        self.status.publish(RobotStatus(read_ns=self.clock.now_ns(), mode="ready", battery_v=12.64))


class Planned(Node):
    """Once somebody marks "plan", chunks of four metres ahead, to floor that the camera sees; nobody drives by them."""

    robot = Subscription(RobotState, "robot/state")
    mark = Subscription(Mark, "mark")
    chunk = Publisher(ActionChunk, "chunk")

    def __init__(self) -> None:
        self.is_planning = False

    @on(mark)
    def begin(self, mark: Mark) -> None:
        self.is_planning = mark.note == "plan"

    @every(hz=5)
    def plan(self) -> None:
        state = self.robot.latest()
        if state is None or not self.is_planning:
            return
        self.chunk.publish(
            ActionChunk(
                position=np.tile(np.array(state.position), (STEPS, 1)),
                base_v_mps=np.full(STEPS, AHEAD_MPS),
                base_w_radps=np.zeros(STEPS),
                step_s=STEP_S,
            )
        )


class Leader(Node):
    """A study whose one trial begins at once and never ends, and in which somebody counts aloud."""

    trial = Publisher(Trial, "study/trial", qos=RELIABLE)
    running = Publisher(RunningTrial, "study/running", qos=QoS(late_join=True))
    heard = Publisher(Utterance, "heard")

    def __init__(self) -> None:
        self.count = 0

    @every(hz=10)
    def count_aloud(self) -> None:
        self.count += 1
        if self.count == 1:
            trial = {"participant": "P01", "number": 1, "attempt": 1, "task": "talk", "condition": "only"}
            self.trial.publish(msgspec.convert({**trial, "phase": "started"}, Trial))
            self.running.publish(msgspec.convert(trial, RunningTrial))
        self.heard.publish(Utterance(speaker="collaborator", text=str(self.count)))


class Speaks(Node):
    """Somebody in an episode who says the same again and again."""

    turn = Publisher(Turn, "episode/turn")

    @every(hz=4)
    def speak(self) -> None:
        self.turn.publish(Turn(index=0, number=1, speaker="Ana", kind="speak", argument="What do you ask for it?"))
