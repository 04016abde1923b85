"""The shared vocabulary of the robot graph. Lengths in m, angles in rad, velocities per s, stamps in monotonic ns.

Joint vectors are tuples in the order of `JOINTS`. Positions of things are in the *odometry frame*: x forward, y left,
z up, the robot's base at the origin heading along x when its driver started.
"""

from __future__ import annotations

from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from runtime.message import Message

JOINTS = ("lift", "arm", "wrist_yaw", "wrist_pitch", "wrist_roll", "gripper", "head_pan", "head_tilt")
"""m, m, rad, rad, rad, m of opening between the fingertips, rad, rad."""

JointVector = tuple[float, ...]


class Image(Message, kind="state", origin="image"):
    """One frame of a camera, with depth where the camera has it."""

    message_link_codec = "bridges.gateway_images:JpegImages"

    camera: str
    captured_ns: int
    rgb: NDArray[np.uint8]  # (height, width, 3)
    depth_m: NDArray[np.float32] | None = None  # (height, width), along the optical axis; 0 where unknown
    focal_px: float = 0.0  # pinhole, square pixels, principal point in the middle


class RobotState(Message, kind="state"):
    """What the robot's driver reads from its joints, its odometry and its contact sensing."""

    read_ns: int
    position: JointVector  # in the order of JOINTS
    velocity: JointVector
    effort: JointVector  # percent of what the actuator can give, -100 to 100
    base_x_m: float
    base_y_m: float
    base_heading_rad: float
    base_v_mps: float
    base_w_radps: float
    contact: tuple[str, ...] = ()  # joints, or "base", that touch something; "cliff", "tilt": the base must not go on
    is_grasping: bool = False  # both fingers press on something
    base_vy_mps: float = 0.0  # to the left; of a base that may drive sideways


RobotMode = Literal["ready", "unhomed", "homing", "stowing", "runstopped", "lost"]
"""Only a robot that is ready follows commands."""


class RobotStatus(Message, kind="state"):
    """What the robot says of itself besides its joints."""

    read_ns: int
    mode: RobotMode
    why: str = ""  # for people, where it does not follow commands
    is_homed: bool = True
    is_runstopped: bool = False
    battery_v: float | None = None
    battery_a: float | None = None
    is_charging: bool = False
    alerts: tuple[str, ...] = ()  # "cliff", "over tilt", "low voltage", "high current", "bump", "hot lift", ...


class RobotService(Message):
    """Something a person asks of the robot itself. The guard decides; home and stow move the robot."""

    id: str
    verb: Literal["home", "stow", "runstop", "release"]
    by: str
    stamp_ns: int = 0
    proof: str = ""  # see `nodes.msgs.signature`; pressing the runstop needs none


class DriverOrder(Message):
    """What the guard tells its driver to do with the robot; it never leaves their process."""

    verb: Literal["home", "stow", "runstop", "release"]
    why: str


class JointCommand(Message, kind="state"):
    """Desired joint positions and base velocity; holds for its lifespan and not a tick longer."""

    position: JointVector  # in the order of JOINTS
    base_v_mps: float = 0.0
    base_w_radps: float = 0.0
    base_vy_mps: float = 0.0  # to the left; refused where the base does not drive sideways


class ActionChunk(Message, kind="state"):
    """A timed sequence of commands, the first meant for now."""

    position: NDArray[np.float64]  # (steps, 8)
    base_v_mps: NDArray[np.float64]  # (steps,)
    base_w_radps: NDArray[np.float64]  # (steps,)
    step_s: float
    action_id: str = ""  # which action it was made for; "" where the model knows of none
    done: float | None = None  # how sure the model is that the action is done; None where it cannot tell
    felt_ns: int = 0  # when the robot's state behind it was read


class Utterance(Message, origin="utterance"):
    """Something said: on `heard` by somebody, and `nodes.interrupts.people` says whether by a person; on `said` by the
    robot."""

    speaker: str  # a name, which proves nothing
    text: str
    captured_ns: int | None = None  # when the words began, where a microphone heard them; None: when published
    sound: str = ""  # the `id` of the SpokenSound that speaks it; "": a loudspeaker makes the sound
    person: str = ""  # heard: which person, as the ears tell them apart; "": by these ears and the speaker's name
    is_typed: bool = False  # heard: it came as text, so no loudspeaker can be in it
    stamp_ns: int = 0  # heard: when it was signed; 0: it was not
    proof: str = ""  # heard: see `nodes.msgs.signature`


class Reference(Message):
    """Things or a place that somebody means: one that was seen by its id, others by what is known of them."""

    id: str = ""
    label: str = ""  # "cup"; "*": anything
    colour: str = ""
    count: int = 1  # 0: all of them
    source: str = ""  # label of the place where they are now
    owner: str = ""
    is_any: bool = False  # "a cup", not "the cup"


class Condition(Message):
    """That all of the things stand so to the place: what a person sees when a subtask is done."""

    things: tuple[Reference, ...] = ()
    relation: str = ""  # "in", "on", "beside", "held by"
    place: str = ""  # its label; "robot" where the relation is "held by"


class Subtask(Message, origin="plan"):
    """What the planner wants done next. The VLM chooses the actions."""

    id: str
    text: str  # for people: "Put every cup except the blue one in the bin"
    state: Literal["work", "wait", "done"] = "wait"
    skill: str = ""  # the declared skill that it comes down to, where the planner knows one
    things: tuple[Reference, ...] = ()
    excluding: tuple[Reference, ...] = ()  # what is not to be touched
    place: str = ""  # label of the place that it is about
    relation: str = ""  # how things are to stand to it: "in", "on", "beside"
    done_when: Condition | None = None  # None: when the skill has succeeded, or somebody says so
    listened_ns: int = 0  # what was said after that is no part of it; 0: all that was said until it was published


class SeenObject(Message, kind="state"):
    """Something the VLM sees."""

    id: str = ""  # the same for the same thing, as long as it is remembered
    label: str  # "cup", "bin": whatever word the eyes have for it
    colour: str
    x_m: float  # centre, odometry frame
    y_m: float
    z_m: float
    width_m: float
    height_m: float
    u_px: float
    v_px: float
    confidence: float = 1.0
    is_place: bool = False  # things are put there; it is not picked
    state: tuple[str, ...] = ()  # "open", "full", "dirty", "waste", "deep": out of reach
    owner: str = ""
    does: str = ""  # what a machine does, as a clause: "fills a vessel that stands there with coffee"

    @property
    def name(self) -> str:
        """What people call it: "red cup", "bin", "orange"."""
        return self.label if self.is_place or self.colour == self.label else f"{self.colour} {self.label}".strip()


class Relation(Message):
    """How two things of a scene stand to each other, by their ids."""

    subject: str
    relation: Literal["on", "in", "beside", "held by"]
    object: str  # "robot" where it is held by it


class SeenPerson(Message):
    """Somebody who is seen."""

    id: str
    x_m: float
    y_m: float
    holds: str = ""  # id of a thing
    points_at: str = ""
    looks_at: str = ""
    hand_m: tuple[float, float, float] | None = None  # the palm, where a hand is seen
    hand: Literal["", "open", "point"] = ""  # open: to be given something
    gesture: Literal["", "nod", "shake"] = ""  # of the head, in the last moments


class Scene(Message, kind="state"):
    """All that is believed to be there. What is not in it was not seen; that does not say that it is absent."""

    things: tuple[SeenObject, ...] = ()  # places too
    relations: tuple[Relation, ...] = ()
    people: tuple[SeenPerson, ...] = ()
    kinds: tuple[str, ...] = ()  # labels that the eyes can tell apart; () where they are open
    places: tuple[str, ...] = ()  # labels of places that things can be brought to
    is_looked: bool = True  # False: the robot has not looked round yet, so that nothing is known of the rest
    image_ns: int = 0  # when the image was taken in which things have their u_px and v_px; those of others are 0


FeedbackCode = Literal["", "consent", "replaced", "out_of_reach"]
"""What programs ask of a failure: a person must say yes first, a newer action took its place, or no arm gets there."""


class SceneDescription(Message, kind="state"):
    """What the VLM tells the planner about what it sees and does."""

    text: str
    subtask_id: str
    progress: Literal["idle", "working", "finished", "failed", "held"]
    objects: tuple[SeenObject, ...] = ()
    subtask: Subtask | None = None  # what it works on, for a planner that was restarted
    why: str = ""  # how it "failed" or "finished", as a clause without a full stop
    code: FeedbackCode = ""  # and what programs ask of it
    target: SeenObject | None = None  # what the robot holds, or goes for to take it
    left: tuple[Reference, ...] = ()  # what people's words made it leave alone in this subtask
    did: tuple[str, ...] | None = None  # actions that succeeded for this subtask; None: it does not count them
    moved: tuple[Reference, ...] = ()  # what they brought where the subtask wants it
    wanted: int = 0  # how many things that is about, as far as they were seen
    tried: tuple[str, ...] = ()  # what failed and was not made good since, and why: "red cup, 2 times: ..."
    gone: tuple[Reference, ...] = ()  # it was about them; they left their place without it, and are not found


Risk = Literal["still", "free", "contact", "person", ""]
"""What can go wrong at most: only the head moves; the arm moves through free space; things are touched; a person is
touched or given something. "" is not declared, and limited like the last."""

ArgumentType = Literal["thing", "place", "person", "text", "number"]


class SkillArgument(Message):
    """One typed argument of a skill."""

    name: str
    type: ArgumentType
    is_needed: bool = True
    lowest: float | None = None  # of a number
    highest: float | None = None
    sentence: str = ""


class SkillSpec(Message):
    """What one skill does, for planners, VLMs and people; the limits of the policy stand above all that it says."""

    name: str
    sentence: str  # "Grasp the thing and lift it"
    arguments: tuple[SkillArgument, ...] = ()
    before: tuple[str, ...] = ()  # what must hold: "hand empty", "holding", "thing seen"
    after: tuple[str, ...] = ()
    usual_s: float = 0.0  # 0: not measured
    risk: Risk = ""
    undo: str = ""  # the skill that takes it back; "" where nothing does
    words: tuple[str, ...] = ()  # verbs that mean it, for planners without a language model


class SkillCatalogue(Message, kind="state"):
    """Every skill of whoever sits on the policy's seat, on `skills`."""

    skills: tuple[SkillSpec, ...] = ()


class Argument(Message):
    """The value of one argument; a thing or a place as it was seen."""

    name: str
    thing: SeenObject | None = None
    text: str = ""
    number: float | None = None


class Action(Message):
    """What the VLM wants the control policy to do now; a new action replaces the one under way."""

    id: str
    skill: str
    arguments: tuple[Argument, ...] = ()
    text: str = ""  # "pick up the red cup"

    @property
    def target(self) -> SeenObject | None:
        """The first thing or place among the arguments: what the hand goes to."""
        return next((one.thing for one in self.arguments if one.thing is not None), None)


def aimed_at(thing: SeenObject | None, name: str = "thing") -> tuple[Argument, ...]:
    """The arguments of a skill that is about one thing or place."""
    return () if thing is None else (Argument(name=name, thing=thing),)


Ending = Literal["running", "success", "failure", "replaced", "asked"]
"""How an action fares, as stories tell it."""


class Feedback(Message):
    """How the control policy fares with an action."""

    action_id: str
    status: Literal["running", "success", "failure"]
    why: str = ""
    code: FeedbackCode = ""

    @property
    def ending(self) -> Ending:
        """For people: what gave way to a newer action, or waits for a person's yes, has not failed."""
        if self.status == "failure" and self.code in ("replaced", "consent"):
            return "replaced" if self.code == "replaced" else "asked"
        return self.status


Counts = dict[str, int]
"""How often, by the source of a message."""


GuardMode = Literal["disarmed", "armed", "moving", "holding", "retreating", "stopped", "estopped"]


class GuardState(Message, kind="state"):
    """What the guard lets through, and why not.

    While it is "retreating" it takes the robot back the way that it came, and commands wait.
    """

    mode: GuardMode
    reason: str
    stopped_by: str = ""  # stopped: who or what did it, a speaker or "contact", "effort", "console", "estop"
    holder: str = ""  # source of the commands applied
    stop_cause: str = ""  # id of the interrupt that stopped it
    stop_heard_ns: int = 0  # stamp of what caused the stop
    held_ns: int = 0  # when the output entered its braking profile
    at_rest_ns: int = 0  # since when nothing is asked to move and nothing is measured to
    estop: str = ""  # why the emergency stop is latched
    is_armed: bool = False
    rejected: int = 0  # commands refused so far
    is_retreating: bool = False  # of older recordings alone: their mode says "moving" then
    clamped: Counts = msgspec.field(
        default_factory=dict
    )  # by source: commands a little beyond a joint's range, followed to its end
    mistaken: Counts = msgspec.field(
        default_factory=dict
    )  # by source: commands so far beyond it, or a base's speed, that they are a mistake, refused

    def __post_init__(self) -> None:
        """Older recordings say "moving" of a way back and "stopped" of an emergency stop."""
        if self.mode == "moving" and self.is_retreating:
            msgspec.structs.force_setattr(self, "mode", "retreating")  # type: ignore[arg-type]  # a Struct
        elif self.mode == "stopped" and self.estop:
            msgspec.structs.force_setattr(self, "mode", "estopped")  # type: ignore[arg-type]  # a Struct

    @property
    def is_stopped(self) -> bool:
        """Whether a stop is latched, an emergency stop or another."""
        return self.mode in ("stopped", "estopped")

    @property
    def is_moving(self) -> bool:
        """Whether it lets the robot move, by commands or on its way back."""
        return self.mode in ("moving", "retreating")

    @property
    def beyond_ranges(self) -> tuple[str, ...]:
        """Who has asked for more than a joint's range or a base's speed, and what became of it; a sentence each."""
        became = (self.clamped, "followed to its end"), (self.mistaken, "refused as a mistake")
        return tuple(
            f"{source} asked {count} times for more than a joint's range or a base's speed: {what}"
            for counts, what in became
            for source, count in sorted(counts.items())
        )

    @property
    def sentence(self) -> str:
        """Mode and reason for people; the reason alone where it begins with the mode, or the mode without a reason."""
        return self.reason if self.reason.startswith(self.mode) else f"{self.mode}: {self.reason}".removesuffix(": ")


TERMINAL = "terminal"
"""The source of an emergency stop that somebody types. Typing holds no button: whoever re-arms, from wherever, releases
it as well."""


class EStop(Message):
    """An emergency stop's word; a source that is named in the guard's configuration repeats it."""

    source: str
    is_pressed: bool
    why: str = ""

    @property
    def message_is_urgent(self) -> bool:
        """A pressed button is better late than never."""
        return self.is_pressed


class GuardOrder(Message):
    """A person's order to the guard, proven with the run's token (see `nodes.msgs.signature`)."""

    do: Literal["arm", "rearm", "resume"]
    by: str
    stamp_ns: int
    proof: str
    id: str = ""  # of this order alone; the answer names it


AnswerCode = Literal[
    "done", "unsigned", "not_a_person", "estopped", "not_estopped", "pressed", "runstopped", "not_stopped", "stopped",
    "moving", "busy", "not_ready", "too_early", "too_late", "in_the_future", "another_stop", "another_person",
    "caught", "no_seat",
]  # fmt: skip


class GuardAnswer(Message):
    """What the guard has made of a request: of an order, a service, a seat, or words that ask to go on."""

    request: str  # the request's id
    do: str  # "arm", "rearm", "resume", "home", "take", ...
    by: str
    is_accepted: bool
    code: AnswerCode
    why: str = ""  # for people


class HeldOrder(Message):
    """An order that was heard while the robot was stopped. It is carried out once a person says go on."""

    id: str  # the utterance, as "topic:source:seq"
    speaker: str
    text: str


class SeatRequest(Message):
    """A wish for a seat. The guard decides; a person renews what they hold several times a second, signed each time."""

    seat: str
    do: Literal["take", "give", "renew"]
    holder: str = ""  # take: the source whose messages are to count
    kind: Literal["model", "person", "script", "replay"] = "person"
    by: str = ""
    stamp_ns: int = 0
    proof: str = ""
    id: str = ""  # of this request alone; the answer names it


class OutOfBudget(Message):
    """A seat's model may not be asked any more in this run; its seat's ladder takes over. Told again and again."""

    seat: str
    why: str


class Comparison(Message):
    """How what a shadow would have done differs from what the seat's holder did at about the same time."""

    seat: str
    holder: str
    shadow: str
    measure: str  # "joint_m_or_rad", "base_mps", "same_action", "same_subtask"
    distance: float  # 0: the same
    text: str = ""


class Trial(Message):
    """A trial of a study begins or ends, on `study/trial`: for whoever records it or behaves by its condition."""

    participant: str  # the code that stands for them
    number: int  # from 1, in the order of this participant
    attempt: int  # from 1; a trial that was broken off can be started again
    task: str
    condition: str
    phase: Literal["started", "completed", "aborted", "time", "interrupted"]
    shares_words: bool = False  # the participant has agreed that what is said may be passed on with the data


class Mark(Message):
    """Something worth finding again in the recording, noted by a person."""

    label: str  # MISTAKE and TAKEN_BACK are a wizard's own
    note: str = ""
    by: str = ""


MISTAKE = "wizard mistake"
TAKEN_BACK = "taken back"
"""Labels of marks: what a wizard did last was wrong; a sentence was taken back before it was said."""


class WizardResponse(Message):
    """A wizard's first act after a participant's words, and how long these waited for it."""

    by: str
    act: str  # "say", "act", "plan", "decide", "drive", "stop"
    after_s: float


class TrainingScore(Message, kind="state"):
    """How a wizard who practises with a simulated robot has done so far, on `training/score`."""

    task: str  # "the cups into the bin"
    done: int
    of: int
    elapsed_s: float  # since somebody took over; 0: nobody has yet
    stops: int  # by contact, or of the guard
    dropped: int  # on the floor
    points: int  # 0 to 100
    is_over: bool = False


class RunningTrial(Message, kind="state"):
    """Which trial of a study runs, on `study/running`, for those who come late; `number` 0: none."""

    participant: str = ""
    number: int = 0
    attempt: int = 0
    task: str = ""
    condition: str = ""
    shares_words: bool = False


class RecorderState(Message):
    """What becomes of a recording, from the recorder itself twice a second; where it is silent there is no recorder.

    Not a state, because a graph may have several recorders.
    """

    message_is_traced = False
    mode: Literal["recording", "waiting", "stopped"]
    file: str = ""  # the name of the file that is written, or was written last
    why: str = ""  # why nothing is written
