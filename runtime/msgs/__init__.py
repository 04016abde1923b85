"""The messages of robots, voices, interrupts and episodes: what nodes say to each other.

Those of episodes are in `runtime.msgs.episode`.
No other room of `runtime` imports this one: the runtime knows messages by their traits, not by their names.
A message is loaded when it is first asked for, since those with arrays need numpy.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from runtime.msgs.interrupt import PREEMPTS, Effect, Interrupt, InterruptRecord
    from runtime.msgs.robot import (
        JOINTS,
        MISTAKE,
        TAKEN_BACK,
        TERMINAL,
        Action,
        ActionChunk,
        AnswerCode,
        Argument,
        ArgumentType,
        Comparison,
        Condition,
        DriverOrder,
        EStop,
        Feedback,
        FeedbackCode,
        GuardAnswer,
        GuardOrder,
        GuardState,
        HeldOrder,
        Image,
        JointCommand,
        JointVector,
        Mark,
        OutOfBudget,
        RecorderState,
        Reference,
        Relation,
        Risk,
        RobotMode,
        RobotService,
        RobotState,
        RobotStatus,
        RunningTrial,
        Scene,
        SceneDescription,
        SeatRequest,
        SeenObject,
        SeenPerson,
        SkillArgument,
        SkillCatalogue,
        SkillSpec,
        Subtask,
        TrainingScore,
        Trial,
        Utterance,
        WizardResponse,
        aimed_at,
    )
    from runtime.msgs.voice import (
        SAMPLE_BYTES,
        SOUND_BYTES_PER_S,
        SOUND_RATE_HZ,
        Alarm,
        LoudspeakerState,
        MicrophoneState,
        RecogniserState,
        Saying,
        Sound,
        SoundSoFar,
        Speech,
        SpokenSound,
        VoiceOrder,
    )

__all__ = [
    "JOINTS",
    "MISTAKE",
    "PREEMPTS",
    "SAMPLE_BYTES",
    "SOUND_BYTES_PER_S",
    "SOUND_RATE_HZ",
    "TAKEN_BACK",
    "TERMINAL",
    "Action",
    "ActionChunk",
    "Alarm",
    "AnswerCode",
    "Argument",
    "ArgumentType",
    "Comparison",
    "Condition",
    "DriverOrder",
    "EStop",
    "Effect",
    "Feedback",
    "FeedbackCode",
    "GuardAnswer",
    "GuardOrder",
    "GuardState",
    "HeldOrder",
    "Image",
    "Interrupt",
    "InterruptRecord",
    "JointCommand",
    "JointVector",
    "LoudspeakerState",
    "Mark",
    "MicrophoneState",
    "OutOfBudget",
    "RecogniserState",
    "RecorderState",
    "Reference",
    "Relation",
    "Risk",
    "RobotMode",
    "RobotService",
    "RobotState",
    "RobotStatus",
    "RunningTrial",
    "Saying",
    "Scene",
    "SceneDescription",
    "SeatRequest",
    "SeenObject",
    "SeenPerson",
    "SkillArgument",
    "SkillCatalogue",
    "SkillSpec",
    "Sound",
    "SoundSoFar",
    "Speech",
    "SpokenSound",
    "Subtask",
    "TrainingScore",
    "Trial",
    "Utterance",
    "VoiceOrder",
    "WizardResponse",
    "aimed_at",
]

_FILES = ("interrupt", "robot", "voice")


def __getattr__(name: str) -> Any:
    if name in __all__:
        for file in _FILES:
            module = import_module(f"runtime.msgs.{file}")
            if hasattr(module, name):
                return getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
