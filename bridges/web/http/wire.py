"""What browser and server say to each other: JSON with a tag `t` from the browser, bounded in every field."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Annotated, Any, Literal

import msgspec

MAX_MESSAGE_BYTES = 64 * 1024

Short = Annotated[str, msgspec.Meta(max_length=80)]
Text = Annotated[str, msgspec.Meta(max_length=1000)]
Fraction = Annotated[float, msgspec.Meta(ge=-1.0, le=1.0)]
Metres = Annotated[float, msgspec.Meta(ge=-100.0, le=100.0)]
Turn = Literal["ahead", "left", "up", "pitch", "yaw"]
Seat = Literal["planner", "vlm", "policy"]


class FromBrowser(msgspec.Struct, frozen=True, tag_field="t", forbid_unknown_fields=True, kw_only=True):
    """Any message of the page. A `press` has a number, and is acknowledged by it once it has been done or refused."""

    press: Annotated[int, msgspec.Meta(ge=0)] = 0


class PageHello(FromBrowser, frozen=True, tag="hello"):
    """The first message: the code from the address, or the key that was given for it; a name; which loading of the
    page this is; and with a code the key that the same tab had before."""

    token: Short
    name: Annotated[str, msgspec.Meta(max_length=40)] = ""
    page: Short = ""
    key: Short = ""


class FrameSeen(FromBrowser, frozen=True, tag="seen"):
    """The state number `n` has been drawn; with a camera, its frame `n`."""

    n: int
    camera: Short = ""


class WatchCameras(FromBrowser, frozen=True, tag="watch"):
    """The cameras that are on screen; none while the page is hidden."""

    cameras: Annotated[tuple[Short, ...], msgspec.Meta(max_length=8)]


class ActRequest(FromBrowser, frozen=True, tag="act"):
    """An action, as the VLM, on one of the things seen."""

    skill: Short
    label: Short = ""
    colour: Short = ""
    x_m: Metres = 0.0
    y_m: Metres = 0.0


class Say(FromBrowser, frozen=True, tag="say"):
    """Something to be said, with the gestures that the robot makes once it says it."""

    voice: Literal["robot", "collaborator"]
    text: Text
    acts: Annotated[tuple[ActRequest, ...], msgspec.Meta(max_length=3)] = ()


class Talk(FromBrowser, frozen=True, tag="talk"):
    """A person begins to speak into their microphone: the first sound is there."""


class SoundPiece(FromBrowser, frozen=True, tag="sound"):
    """What they go on to say: 16-bit samples at 16 kHz, lowest byte first, in base64."""

    pcm: Annotated[bytes, msgspec.Meta(min_length=2, max_length=16_000)]

    def __post_init__(self) -> None:
        if len(self.pcm) % 2:
            raise ValueError(f"{len(self.pcm)} bytes are no 16-bit samples")


class Talked(FromBrowser, frozen=True, tag="talked"):
    """They have ended, and began so long ago; what is not wanted is forgotten."""

    ago_s: Annotated[float, msgspec.Meta(ge=0.0, le=60.0)] = 0.0
    is_wanted: bool = True


Talks = Talk | SoundPiece | Talked


class Unsay(FromBrowser, frozen=True, tag="unsay"):
    """Take back the sentence of the robot that waits its moment (`undo_s` of the console)."""


class BeQuiet(FromBrowser, frozen=True, tag="quiet"):
    """The robot stops speaking, and nothing more is said of what waits."""


class SetVoice(FromBrowser, frozen=True, tag="voice"):
    """How loud, fast and high the robot speaks; 1: as ever."""

    volume: Annotated[float, msgspec.Meta(ge=0.0, le=1.0)] = 1.0
    speed: Annotated[float, msgspec.Meta(ge=0.5, le=2.0)] = 1.0
    pitch: Annotated[float, msgspec.Meta(ge=0.5, le=1.5)] = 1.0


class ListenIn(FromBrowser, frozen=True, tag="listen"):
    """Hear what the robot's microphone hears of people, or no more."""

    on: bool


class AskRobot(FromBrowser, frozen=True, tag="service"):
    """What the robot does by itself: find its zeros, or fold."""

    verb: Literal["home", "stow"]


class InvitePerson(FromBrowser, frozen=True, tag="invite"):
    """Make an address of somebody's own, who is called so."""

    role: Short
    name: Annotated[str, msgspec.Meta(min_length=1, max_length=40)]


class RevokeInvite(FromBrowser, frozen=True, tag="revoke"):
    """Take that address back, and close the pages that it opened."""

    number: int


class CallMe(FromBrowser, frozen=True, tag="call me"):
    """What who sits here is called from now on."""

    name: Annotated[str, msgspec.Meta(max_length=40)]


class StopPressed(FromBrowser, frozen=True, tag="stop"):
    """Stop, now."""

    why: Short = "stop button"


class Resume(FromBrowser, frozen=True, tag="resume"):
    """Lift the stop."""


class Emergency(FromBrowser, frozen=True, tag="estop"):
    """The emergency stop, which only an operator's re-arming lifts."""


class NoteMark(FromBrowser, frozen=True, tag="mark"):
    """Something worth finding again."""

    label: Short
    note: Text = ""


class Take(FromBrowser, frozen=True, tag="take"):
    """Sit down on a seat; with `force` also where another operator sits."""

    seat: Seat
    force: bool = False


class AskForSeat(FromBrowser, frozen=True, tag="ask"):
    """Ask the one who sits there for the seat; where nobody does, it is taken."""

    seat: Seat


class AnswerSeatRequest(FromBrowser, frozen=True, tag="answer"):
    """Answer who asked for one's seat: it becomes theirs, or not."""

    seat: Seat
    wish: int
    is_granted: bool


class Supervise(FromBrowser, frozen=True, tag="supervise"):
    """On a seat: decide about the model's drafts (`on`), or choose oneself. `at_end`: when the time is up."""

    on: bool
    seat: Literal["planner", "vlm"] = "planner"
    wait_s: Annotated[float, msgspec.Meta(ge=1.0, le=60.0)] = 8.0
    at_end: Literal["drop", "send"] = "drop"


class Decide(FromBrowser, frozen=True, tag="decide"):
    """What becomes of a draft; `edit` sends the text and the sentence given here instead."""

    draft: int
    do: Literal["approve", "edit", "reject"]
    seat: Literal["planner", "vlm"] = "planner"
    text: Text = ""
    sentence: Text = ""


class Give(FromBrowser, frozen=True, tag="give"):
    """Give the seat back to the model."""

    seat: Seat


class PointedPlace(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A thing seen, or with no label a spot on the floor; odometry frame."""

    x_m: Metres
    y_m: Metres
    label: Short = ""
    colour: Short = ""
    heading_rad: Annotated[float, msgspec.Meta(ge=-7.0, le=7.0)] | None = None  # of the base there, where it matters


class Drive(FromBrowser, frozen=True, tag="drive"):
    """What is held down right now; repeated every 50 ms while anything is, and good for nothing afterwards."""

    ahead: Fraction = 0.0
    left: Fraction = 0.0
    aside: Fraction = 0.0  # to the left without turning, of a base that may
    scale: Annotated[float, msgspec.Meta(ge=0.0, le=1.0)] = 0.5
    jog: Annotated[dict[Short, Fraction], msgspec.Meta(max_length=16)] = {}
    goals: Annotated[dict[Short, float], msgspec.Meta(max_length=16)] = {}
    hand: Annotated[dict[Turn, Fraction], msgspec.Meta(max_length=5)] = {}
    to: PointedPlace | None = None
    do: Literal["go", "take", "put"] = "go"  # what the hand does at `to`
    camera: Short = "head"  # the one whose picture is large: by it somebody drives
    at_ms: float = 0.0  # when it was held, by the clock that the console's states tell; 0: nobody says

    @property
    def is_held(self) -> bool:
        """Whether anything is held that moves the robot."""
        return bool(self.ahead or self.left or self.aside or self.jog or self.goals or self.hand or self.to is not None)


class PlanRequest(FromBrowser, frozen=True, tag="plan"):
    """A subtask, as the planner."""

    text: Text
    verb: Literal["put", "wait", "done"] = "wait"
    what: Short = ""
    where: Short = ""
    excluding: Annotated[tuple[Short, ...], msgspec.Meta(max_length=16)] = ()
    sentence: Text = ""


Incoming = (
    PageHello
    | FrameSeen
    | WatchCameras
    | Say
    | Unsay
    | BeQuiet
    | SetVoice
    | ListenIn
    | AskRobot
    | InvitePerson
    | RevokeInvite
    | CallMe
    | Talk
    | SoundPiece
    | Talked
    | StopPressed
    | Resume
    | Emergency
    | NoteMark
    | Take
    | AskForSeat
    | AnswerSeatRequest
    | Give
    | Drive
    | Supervise
    | Decide
    | PlanRequest
    | ActRequest
)

decode: Callable[[str | bytes], Incoming] = msgspec.json.Decoder(Incoming).decode
"""The message in this text. Raises ValueError (msgspec's) in words where it is none."""
_encoder = msgspec.json.Encoder()


def encode(document: dict[str, Any]) -> str:
    """A message to the browser."""
    return _encoder.encode(document).decode()


def pack_frame(header: dict[str, Any], jpeg: bytes) -> bytes:
    """A frame to the browser: the header's length (4 bytes, big endian), the header as JSON, the picture."""
    head = _encoder.encode(header)
    return struct.pack(">I", len(head)) + head + jpeg
