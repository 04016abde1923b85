"""`Handover`: passes on what the holder of each seat says, the model's or the person's; the other is shadow.

One node between the policies and those who listen to them. Switching is a comparison at each message, so a hand-over
costs no pause, and as the listener hears one source it makes no jump. Where the console falls silent while a person
holds the policy's seat, the robot is stopped, and a person must let it go on.
"""

from __future__ import annotations

from bridges.web.messages import Occupation
from runtime import Node, Publisher, QoS, Subscription, every, on
from runtime.clock import to_ns
from runtime.msgs import Action, Interrupt, JointCommand, Subtask

SILENT_S = 0.5
OPTIONAL = QoS(required=False)


class Handover(Node):
    """Hears the console on `console/...` and the models on `model/...`; passes on as `subtask`, `action`, `command`."""

    realtime = True

    occupation = Subscription(Occupation, "console/seats", qos=OPTIONAL)
    model_subtask = Subscription(Subtask, "model/subtask", qos=OPTIONAL)
    model_action = Subscription(Action, "model/action", qos=OPTIONAL)
    model_command = Subscription(JointCommand, "model/command", qos=QoS(required=False, lifespan_s=0.15))
    person_subtask = Subscription(Subtask, "console/subtask", qos=OPTIONAL)
    person_action = Subscription(Action, "console/action", qos=OPTIONAL)
    person_command = Subscription(JointCommand, "console/command", qos=QoS(required=False, lifespan_s=0.15))

    subtask = Publisher(Subtask, "subtask")
    action = Publisher(Action, "action")
    command = Publisher(JointCommand, "command")
    interrupt = Publisher(Interrupt, "interrupt")

    def __init__(self) -> None:
        self.held = Occupation()
        self.heard_ns = 0
        self.losses = 0

    @on(occupation)
    def seated(self, occupation: Occupation) -> None:
        """Who sits where from now on."""
        self.held, self.heard_ns = occupation, self.clock.now_ns()

    @every(hz=20)
    def watch(self) -> None:
        """Notice the console's silence."""
        if self.held == Occupation() or self.clock.now_ns() - self.heard_ns <= to_ns(SILENT_S):
            return
        if self.held.policy:
            self.losses += 1
            self.interrupt.publish(
                Interrupt(
                    id=f"{self.name}-{self.losses}",
                    depth="stop",
                    text=f"the console is gone, through which {self.held.policy} drove",
                    by="guard",
                )
            )
        self.held = Occupation()

    @on(model_subtask)
    def plan(self, subtask: Subtask) -> None:
        if not self.held.planner:
            self.subtask.publish(subtask)

    @on(person_subtask)
    def plan_by_hand(self, subtask: Subtask) -> None:
        if self.held.planner:
            self.subtask.publish(subtask)

    @on(model_action)
    def act(self, action: Action) -> None:
        if not self.held.vlm:
            self.action.publish(action)

    @on(person_action)
    def act_by_hand(self, action: Action) -> None:
        if self.held.vlm:
            self.action.publish(action)

    @on(model_command)
    def drive(self, command: JointCommand) -> None:
        if not self.held.policy:
            self.command.publish(command)

    @on(person_command)
    def drive_by_hand(self, command: JointCommand) -> None:
        if self.held.policy:
            self.command.publish(command)
