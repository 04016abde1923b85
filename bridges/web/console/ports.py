"""`ConsolePorts`: what the console hears and says in the graph."""

from __future__ import annotations

from typing import Any

from bridges.robot_ports import OPTIONAL, PagePorts, RobotPorts
from bridges.web.http.graph_messages import DraftDecision, SeatWord, StudySetting
from nodes.msgs import (
    JOINTS,
    Action,
    ActionChunk,
    EStop,
    Image,
    JointCommand,
    RecorderState,
    RobotService,
    RobotState,
    RobotStatus,
    Saying,
    Scene,
    SceneDescription,
    Sound,
    SoundSoFar,
    Subtask,
    TrainingScore,
    Utterance,
    VoiceOrder,
    WizardResponse,
)
from nodes.robot.robot_from_launch import ForRobot
from runtime import RELIABLE, URGENT, Publisher, QoS, Subscription

CANDIDATES = QoS(required=False, depth=8, candidates=True)
"""Also what those say who hold no seat: to be shown, never acted upon."""


class ConsolePorts(ForRobot, PagePorts, RobotPorts):
    """Everything that is heard is optional: a console shows what there is."""

    robot_parameter = "robot"
    made_for_joints = JOINTS

    wrist_image = Subscription(Image, "wrist/image", qos=OPTIONAL)
    robot = Subscription(RobotState, "robot/state", qos=OPTIONAL)
    setpoint = Subscription(JointCommand, "robot/command", qos=OPTIONAL)
    scene = Subscription(SceneDescription, "description", qos=OPTIONAL)
    believed = Subscription(Scene, "scene", qos=OPTIONAL)
    recorder = Subscription(RecorderState, "recorder/state", qos=OPTIONAL)
    chunk = Subscription(ActionChunk, "chunk", qos=OPTIONAL)
    status = Subscription(RobotStatus, "robot/status", qos=OPTIONAL)
    candidate_subtask = Subscription(Subtask, "subtask", qos=CANDIDATES)
    candidate_action = Subscription(Action, "action", qos=CANDIDATES)
    candidate_command = Subscription(JointCommand, "command", qos=CANDIDATES)
    candidate_said = Subscription(Utterance, "said", qos=CANDIDATES)
    saying = Subscription(Saying, "saying", qos=OPTIONAL)
    people_heard = Subscription(Sound, "microphone/speech", qos=OPTIONAL)
    people_so_far = Subscription(SoundSoFar, "microphone/so_far", qos=OPTIONAL)
    score = Subscription(TrainingScore, "training/score", qos=OPTIONAL)
    seat_words = Subscription(SeatWord, "console/seat", qos=OPTIONAL)
    settings = Subscription(StudySetting, "study/setting", qos=OPTIONAL)
    draft_decisions = Subscription(DraftDecision, "console/draft", qos=OPTIONAL)

    say_heard = Publisher(Utterance, "heard", qos=RELIABLE)
    say_said = Publisher(Utterance, "said", qos=RELIABLE)
    estop = Publisher(EStop, "estop", qos=URGENT)
    voice_order = Publisher(VoiceOrder, "voice/order", qos=RELIABLE)
    service = Publisher(RobotService, "robot/service", qos=RELIABLE)
    seat_word = Publisher(SeatWord, "console/seat")
    draft_decision = Publisher(DraftDecision, "console/draft", qos=RELIABLE)
    response = Publisher(WizardResponse, "console/response", qos=RELIABLE)
    plan = Publisher(Subtask, "console/subtask", qos=RELIABLE)
    act = Publisher(Action, "console/action", qos=RELIABLE)
    command = Publisher(JointCommand, "console/command")

    def beside(self, now_ns: int) -> dict[str, Any]:
        """What the page is told besides, ten times a second; it may take what the page shows already."""
        return {}
