"""What every bridge to people hears of a robot's graph. All of it is optional: a bridge shows what there is."""

from __future__ import annotations

from nodes.msgs import Action, Feedback, GuardState, Interrupt, Subtask, Utterance
from runtime import Node, QoS, Subscription

OPTIONAL = QoS(required=False)


class TalkPorts(Node):
    """What was said, and whether the robot may move."""

    guard = Subscription(GuardState, "guard/state", qos=OPTIONAL)
    heard = Subscription(Utterance, "heard", qos=OPTIONAL)
    said = Subscription(Utterance, "said", qos=OPTIONAL)


class RobotPorts(TalkPorts):
    """Also what was planned, chosen, done and interrupted."""

    subtask = Subscription(Subtask, "subtask", qos=OPTIONAL)
    action = Subscription(Action, "action", qos=OPTIONAL)
    feedback = Subscription(Feedback, "feedback", qos=OPTIONAL)
    interrupts = Subscription(Interrupt, "interrupt", qos=OPTIONAL)
