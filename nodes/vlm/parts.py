"""What the parts of a VLM owe each other: *eyes* see, *belief* remembers, *choice* decides, *talk* hears.

The node (`nodes.vlm.node:VLM`) joins them by `VLMWork`: eyes tell belief what an image shows, `Situation` is all that
choice knows, and belief and deeds learn how its decisions end. `VlmTalk` is in nodes/vlm/talk.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from nodes.msgs import Action, Image, Relation, RobotState, Scene, SeenObject, SkillSpec, Subtask, Utterance
from nodes.robot.protocol import Body
from nodes.vlm.choice.situation import Decision, Situation
from runtime import Stamped

IMAGES_PER_GAZE = 3

PointM = tuple[float, float, float]
Choice = Callable[[Situation], Decision]
"""From all that is known to what is done next; it changes nothing."""


@dataclass(frozen=True, slots=True)
class Moment:
    """What is known of time and robot; in a tick, what the work wants of eyes, too."""

    now_ns: int
    body: Body
    states: Sequence[RobotState]  # oldest first
    skills: Mapping[str, SkillSpec] | None = None  # what the policy declares; None: not known yet
    image: Stamped[Image] | None = None  # the newest, where eyes are to look
    task: Subtask | None = None
    may_turn: bool = False  # the head, by the eyes' own choice
    is_held: bool = False  # stopped, or waiting for somebody
    is_asked: bool = False  # a person is to say yes

    @property
    def is_grasping(self) -> bool:
        """Whether something is in the gripper."""
        return bool(self.states) and self.states[-1].is_grasping

    @property
    def is_giving(self) -> bool:
        """Whether something is to be given into somebody's hand."""
        return self.task is not None and self.task.state == "work" and self.task.skill == "hand_over"


@dataclass(frozen=True, slots=True)
class EyesAsk:
    """What eyes ask of the rest after a look."""

    gaze: SeenObject | None = None  # turn the head there
    say: str = ""
    is_yes: bool = False  # somebody was seen to say yes


class VLMEyes:
    """Look at what is new, and tell belief. These see nothing."""

    seen: Stamped[Image] | None = None  # the image behind what is believed
    shown_ns = 0  # when it was taken
    has_seen = True  # so that they can tell what there is, and what there is not

    def look(self, now: Moment) -> EyesAsk:
        """Take in what came since the last look."""
        return EyesAsk()

    def hear(self, utterance: Utterance) -> bool:
        """Whether what somebody says answers a question of theirs."""
        return False

    def void(self) -> bool:
        """Drop what they are at, which is about a world that is gone; whether that was anything."""
        return False


class Belief:
    """What there is, as far as anybody knows, and what is held and was moved. This one knows of nothing."""

    def __init__(self) -> None:
        self.holding: SeenObject | None = None
        self.moved: tuple[SeenObject, ...] = ()  # for this subtask
        self.hand: SeenObject | None = None  # that is held out, and still
        self.palm_m: PointM | None = None  # in the newest image; looked for where a hand is needed
        self.unplaced: tuple[str, ...] = ()  # seen by a camera without depth: nobody knows where
        self.images = IMAGES_PER_GAZE  # since the head was turned
        self.has_looked = False  # round, or as far as the head turns

    @property
    def objects(self) -> tuple[SeenObject, ...]:
        """What the planner is told of as seen."""
        return ()

    @property
    def relations(self) -> tuple[Relation, ...]:
        """How things stand to each other, where the eyes tell."""
        return ()

    def things(self) -> tuple[SeenObject, ...]:
        """What actions may be about."""
        return ()

    def scene(self, now_ns: int) -> Scene:
        """All of it, and how it stands to each other."""
        return Scene()

    def gone(self) -> tuple[SeenObject, ...]:
        """What left its place without the robot and was not seen again."""
        return ()

    def stand(self, state: RobotState) -> None:
        """Where the robot is now."""

    def new_work(self) -> None:
        """Another subtask begins."""
        self.moved = ()

    def succeeded(self, action: Action) -> None:
        """What the robot did has changed what there is."""
        held = self.holding
        if action.skill == "pick" and action.target is not None:
            self.holding = action.target
        elif held is not None and action.skill in ("hand_over", "place", "put_back"):
            self.holding = None
            if action.skill == "hand_over" or (action.target is not None and action.target.is_place):
                self.moved += (held,)  # and not back where it was

    def failed(self, action: Action, *, is_grasping: bool) -> None:
        """It did not, and has perhaps lost what it held."""
        if not is_grasping:
            self.holding = None
        elif action.skill == "pick" and action.target is not None and self.holding is None:
            # Either this thing, which did not come up, or one from before a restart: both belong where the task says.
            self.holding = action.target
