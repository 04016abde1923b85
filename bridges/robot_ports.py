"""What bridges to people hear of a robot's graph, and say in it. They show what there is: all of it is optional."""

from __future__ import annotations

from nodes.msgs import (
    Action,
    Feedback,
    GuardAnswer,
    GuardOrder,
    GuardState,
    Image,
    Interrupt,
    Mark,
    MicrophoneState,
    RecogniserState,
    SeatRequest,
    Sound,
    SoundSoFar,
    Speech,
    Subtask,
    Utterance,
)
from runtime import LEASE_TOPIC, RELIABLE, SOON, URGENT, Lease, Node, Publisher, QoS, Subscription

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


class PagePorts(TalkPorts):
    """Of a bridge with pages for people: they see and speak there, mark moments, take seats, and stop the robot.

    Where nobody hears `microphone/speech`, its pages say so.
    """

    provenance = "person"

    recogniser = Subscription(RecogniserState, "recogniser", qos=OPTIONAL)
    microphone = Subscription(MicrophoneState, "microphone", qos=OPTIONAL)
    head_image = Subscription(Image, "head/image", qos=OPTIONAL)
    room_image = Subscription(Image, "room/image", qos=OPTIONAL)
    leases = Subscription(Lease, LEASE_TOPIC, qos=OPTIONAL)
    answers = Subscription(GuardAnswer, "guard/answer", qos=OPTIONAL)
    marks = Subscription(Mark, "mark", qos=OPTIONAL)

    sound = Publisher(Sound, "microphone/speech", qos=RELIABLE)
    so_far = Publisher(SoundSoFar, "microphone/so_far")
    speaking = Publisher(Speech, "speech")
    interrupt = Publisher(Interrupt, "interrupt", qos=URGENT)
    mark = Publisher(Mark, "mark", qos=RELIABLE)
    request = Publisher(SeatRequest, "seat/request", qos=RELIABLE)
    order = Publisher(GuardOrder, "guard/order", qos=SOON)
