"""`Situation`: all that the choice of the next action depends on; `Decision`: what it comes to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from nodes.msgs import Action, Argument, FeedbackCode, Reference, Relation, SeenObject, SkillSpec, Subtask

Progress = Literal["idle", "working", "finished", "failed", "held"]
Outcome = Literal["running", "success", "failure"]


@dataclass(frozen=True, slots=True)
class Situation:
    """All that is known; positions in the odometry frame, m and rad."""

    subtask: Subtask | None = None
    skills: Mapping[str, SkillSpec] = field(default_factory=dict)  # what the policy declares; {}: not known yet
    vetoed: tuple[Reference, ...] = ()  # what a person does not want touched
    preferred: str = ""  # colour that a person asked for
    objects: tuple[SeenObject, ...] = ()
    relations: tuple[Relation, ...] = ()  # between them, where the eyes tell
    holding: SeenObject | None = None
    moved: tuple[SeenObject, ...] = ()  # brought to the place for this subtask
    doing: Action | None = None
    outcome: Outcome = "running"  # of `doing`
    why: str = ""  # it failed
    code: FeedbackCode = ""  # and what programs ask of that
    ended_ns: int = 0  # when the last action did
    succeeded_ns: int = 0  # when one did last
    now_ns: int = 0
    is_for_task: bool = True  # `doing` was chosen for this subtask
    did: tuple[str, ...] = ()  # actions that succeeded for it
    failures: Mapping[str, int] = field(default_factory=dict)  # by name
    reasons: Mapping[str, str] = field(default_factory=dict)  # of the last one
    steps: Mapping[str, int] = field(default_factory=dict)  # failures by skill and thing, in this subtask
    gone: tuple[SeenObject, ...] = ()  # what left its place without the robot, and was not seen again
    looks: int = 0  # gazes completed since the robot last changed the scene
    is_looking_over: bool = True  # False: the image of the last gaze is not in yet
    is_stopped: bool = False
    is_waiting: bool = False  # for the planner, after a new order
    is_unconfirmed: bool = False  # a person has been asked, and has not said yes
    hand: SeenObject | None = None  # that is held out to be given something, and still
    palm_m: tuple[float, float, float] | None = None  # in the newest image; the robot's own hand may hide it
    is_grasping: bool = True  # the gripper still has what it holds
    is_to_look: bool = False  # nobody knows yet what there is, and the head may turn
    base: tuple[float, float, float] = (0.0, 0.0, 0.0)  # x, y, heading

    def is_doing(self, *skills: str) -> bool:
        """Whether an action of one of these skills is under way."""
        return self.doing is not None and self.doing.skill in skills and self.outcome == "running"


@dataclass(frozen=True, slots=True)
class Decision:
    """The next skill ("keep": go on with what is under way), what to say about it and what to tell the planner."""

    skill: str
    progress: Progress
    text: str  # for the planner: what the robot is doing, "picking up the red cup"
    target: SeenObject | None = None
    say: str = ""
    arguments: tuple[Argument, ...] = ()  # where it takes more, or others, than the target
    code: FeedbackCode = ""  # "failed": what programs ask of the reason
    why: str = ""  # "failed": the reason alone, where `text` tells more
    step: str = ""  # as what a failure of it counts
