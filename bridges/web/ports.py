"""`ConsolePorts`: what the console hears and says in the graph."""

from __future__ import annotations

from bridges.web.messages import Mark
from runtime import Node, Publisher, QoS, Subscription
from runtime.health import Health
from runtime.lease import LEASE_TOPIC, Lease
from runtime.msgs import (
    Action,
    EStop,
    Feedback,
    GuardOrder,
    GuardState,
    Image,
    Interrupt,
    JointCommand,
    RobotState,
    SceneDescription,
    SeatRequest,
    Subtask,
    Utterance,
)

OPTIONAL = QoS(required=False)


class ConsolePorts(Node):
    """Everything that is heard is optional: a console shows what there is."""

    provenance = "person"

    head_image = Subscription(Image, "head/image", qos=OPTIONAL)
    wrist_image = Subscription(Image, "wrist/image", qos=OPTIONAL)
    room_image = Subscription(Image, "room/image", qos=OPTIONAL)
    robot = Subscription(RobotState, "robot/state", qos=OPTIONAL)
    setpoint = Subscription(JointCommand, "robot/command", qos=OPTIONAL)
    guard = Subscription(GuardState, "guard/state", qos=OPTIONAL)
    scene = Subscription(SceneDescription, "description", qos=OPTIONAL)
    leases = Subscription(Lease, LEASE_TOPIC, qos=OPTIONAL)
    recorder = Subscription(Health, "health/recorder", qos=OPTIONAL)
    heard = Subscription(Utterance, "heard", qos=OPTIONAL)
    said = Subscription(Utterance, "said", qos=OPTIONAL)
    subtask = Subscription(Subtask, "subtask", qos=OPTIONAL)
    action = Subscription(Action, "action", qos=OPTIONAL)
    feedback = Subscription(Feedback, "feedback", qos=OPTIONAL)
    interrupts = Subscription(Interrupt, "interrupt", qos=OPTIONAL)
    marks = Subscription(Mark, "mark", qos=OPTIONAL)

    say_heard = Publisher(Utterance, "heard")
    say_said = Publisher(Utterance, "said")
    interrupt = Publisher(Interrupt, "interrupt")
    mark = Publisher(Mark, "mark")
    request = Publisher(SeatRequest, "seat/request")
    order = Publisher(GuardOrder, "guard/order")
    estop = Publisher(EStop, "estop")
    plan = Publisher(Subtask, "console/subtask")
    act = Publisher(Action, "console/action")
    command = Publisher(JointCommand, "console/command")
