"""`Actions`: what people at the pages do becomes messages of the graph, where their role and their seat allow it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from bridges.web.console.canned_phrases import VOICES
from bridges.web.console.draft_review import DraftReview, ReviewedSeat
from bridges.web.console.driving.may_drive import Driving, thing_meant
from bridges.web.console.feed import RunFeed
from bridges.web.console.ports import ConsolePorts
from bridges.web.console.response_time import ResponseTimes
from bridges.web.console.seat_requests import Seats
from bridges.web.http.listener import PageHost
from bridges.web.http.open_page import Session
from bridges.web.http.qr_code import path_of
from bridges.web.http.wire import (
    ActRequest,
    AnswerSeatRequest,
    AskForSeat,
    AskRobot,
    BeQuiet,
    CallMe,
    Decide,
    Drive,
    Emergency,
    Give,
    Incoming,
    InvitePerson,
    ListenIn,
    NoteMark,
    PlanRequest,
    Resume,
    RevokeInvite,
    Say,
    Seat,
    SetVoice,
    StopPressed,
    Supervise,
    Take,
    Unsay,
)
from nodes.msgs import (
    TAKEN_BACK,
    TERMINAL,
    Action,
    EStop,
    Mark,
    Reference,
    Subtask,
    Utterance,
    VoiceOrder,
    aimed_at,
)
from nodes.robot.protocol import Hand, RobotLimits
from runtime.clock import to_ns, to_s

WORDS = {
    "pick": "pick up",
    "place": "place it at",
    "look": "look at",
    "point": "point at",
    "put_back": "put it back",
    "hold": "hold still",
    "nod": "nod",
    "shake": "shake the head",
}
NEED_NOTHING = ("put_back", "hold", "nod", "shake")
GESTURES = ("nod", "shake", "look", "point")
LOCKED = "the study has locked this part of the page: {part}"
MOST_GESTURES = 3
"""So many, one after the other, go with a sentence."""
PART_OF_SEAT: dict[Seat, str] = {"policy": "drive", "vlm": "act", "planner": "plan"}
GESTURE_S = 8.0
"""So long at the most a gesture keeps the VLM's seat, also where nobody says how it went."""


@dataclass(slots=True)
class Gesture:
    """A gesture of somebody who did not sit on the VLM's seat: they have it until the gesture is done."""

    session: Session
    action: Action
    since_ns: int
    is_sent: bool = False


@dataclass(frozen=True, slots=True)
class Unsaid:
    """What the robot is about to say, by whom, and when."""

    by: Session
    text: str
    acts: tuple[ActRequest, ...]
    due_ns: int


class Actions:
    """One method per thing that a person may do (the server's thread)."""

    def __init__(
        self,
        ports: ConsolePorts,
        feed: RunFeed,
        seats: Seats,
        reviews: Mapping[ReviewedSeat, DraftReview],
        limits: RobotLimits,
        hand: Hand,
        speaker: str,
        is_stop: Callable[[str], bool],
        voices: Callable[[], tuple[str, ...]] = lambda: VOICES,
        responses: ResponseTimes | None = None,
        *,
        undo_s: float = 0.0,
        invitations: PageHost | None = None,
        locked: Callable[[], tuple[str, ...]] = tuple,
        is_canned: Callable[[str], bool] = lambda text: True,
    ) -> None:
        """`voices`: those in which operators may speak now. `undo_s`: so long the robot's next sentence waits.

        `locked`: the parts of the page that a study has locked; `is_canned`: whether a sentence is one of the deck.
        """
        self._locked, self._is_canned = locked, is_canned
        self._invitations = invitations
        self._undo_ns = to_ns(undo_s)
        self._unsaid: Unsaid | None = None
        self._voices = voices
        self._responses = responses
        self._ports = ports
        self._feed = feed
        self._seats = seats
        self._reviews = reviews
        self._speaker = speaker
        self._is_stop = is_stop
        self._message_ids = seats.message_ids
        self._gesture: Gesture | None = None
        self._gestures: deque[Action] = deque(maxlen=MOST_GESTURES)  # those that come after it
        self.voice = VoiceOrder(by="")  # as it was last set
        self.driving = Driving(ports, seats, limits, hand)
        self._done_by: dict[type, Callable[[Session, Any, int], None]] = {
            Say: self._say_for,
            Resume: self._resume,
            Emergency: self._press,
            NoteMark: self._note,
            Take: self._take,
            AskForSeat: lambda session, message, now_ns: seats.ask(message.seat, session, now_ns),
            AnswerSeatRequest: self._answer,
            Give: lambda session, message, now_ns: seats.give(message.seat, session, now_ns),
            Drive: self.driving.drive,
            Unsay: self._take_back,
            BeQuiet: self._be_quiet,
            SetVoice: self._set_voice,
            ListenIn: self._listen,
            AskRobot: self._ask_robot,
            CallMe: self._call,
            Supervise: self._review,
            Decide: self._review,
            PlanRequest: self._plan,
            ActRequest: self._act,
        }
        if invitations is not None:
            self._done_by |= {InvitePerson: self._invite, RevokeInvite: self._invite}

    def beat(self, now_ns: int) -> None:
        """Ten times a second."""
        self.driving.standstill.beat(now_ns)
        if self._unsaid is not None and now_ns >= self._unsaid.due_ns:
            self._say_now()
        if self._gesture is not None:
            self._go_on_with(self._gesture, now_ns)

    def handle(self, session: Session, message: Incoming) -> None:
        """Do what a person asks for."""
        if isinstance(message, StopPressed):  # anybody may, whatever their role
            self._seats.stop(f"{session.name}: {message.why}")
            self._measure(session, message)
            return
        if isinstance(message, Say) and session.role == "participant":
            message = Say(voice="collaborator", text=message.text)
        elif not session.is_operator:
            session.notice("only an operator may do that")
            return
        now_ns = self._ports.clock.now_ns()
        self._measure(session, message)
        if session.is_operator and (part := self._lock_of(message)):
            session.notice(LOCKED.format(part=part))
        elif (do := self._done_by.get(type(message))) is not None:
            do(session, message, now_ns)
        else:
            session.notice(f"{type(message).__name__} is not expected now")

    def _say_for(self, session: Session, message: Say, now_ns: int) -> None:
        if session.is_operator and message.voice not in self._voices():
            only = " or ".join(self._voices())
            session.notice(f"not said: while this trial runs, operators speak as {only} only")
        else:
            self._say(session, message.voice, message.text, message.acts)

    def _press(self, session: Session, message: Emergency, now_ns: int) -> None:
        self._ports.estop.publish(EStop(source=self._ports.name, is_pressed=True, why=f"pressed by {session.name}"))

    def _note(self, session: Session, message: NoteMark, now_ns: int) -> None:
        self._ports.mark.publish(Mark(label=message.label or "mark", note=message.note, by=session.name))

    def _take(self, session: Session, message: Take, now_ns: int) -> None:
        if self._gesture is not None and message.seat == "vlm":
            self._gesture = None  # whoever sits down in earnest stays
        self._seats.take(message.seat, session, now_ns, force=message.force)

    def _answer(self, session: Session, message: AnswerSeatRequest, now_ns: int) -> None:
        self._seats.answer(message.seat, message.wish, session, is_granted=message.is_granted)

    def _take_back(self, session: Session, message: Unsay, now_ns: int) -> None:
        if self._unsaid is not None and self._unsaid.by.ident == session.ident:
            self._ports.mark.publish(Mark(label=TAKEN_BACK, note=self._unsaid.text, by=session.name))
            self._unsaid = None

    def _be_quiet(self, session: Session, message: BeQuiet, now_ns: int) -> None:
        self._unsaid = None
        self._gestures.clear()
        now = self.voice
        hushed = VoiceOrder(by=session.name, is_silenced=True, volume=now.volume, speed=now.speed, pitch=now.pitch)
        self._ports.voice_order.publish(hushed)

    def _set_voice(self, session: Session, message: SetVoice, now_ns: int) -> None:
        self.voice = VoiceOrder(by=session.name, volume=message.volume, speed=message.speed, pitch=message.pitch)
        self._ports.voice_order.publish(self.voice)

    def _listen(self, session: Session, message: ListenIn, now_ns: int) -> None:
        session.listens = message.on

    def _ask_robot(self, session: Session, message: AskRobot, now_ns: int) -> None:
        self._ports.service.publish(self._seats.signer.service(message.verb, session.name, now_ns, session.ident))
        self._feed.tell("seat", session.name, f"asks the robot to {message.verb}", now_ns)

    def _lock_of(self, message: Incoming) -> str:
        """The part of the page that this is of, where a study has locked it; giving back and stopping never are."""
        part = ""
        match message:
            case Take() | AskForSeat():
                part = PART_OF_SEAT[message.seat]
            case Drive():
                part = "drive"
            case ActRequest():
                part = "gestures" if message.skill in GESTURES else "act"
            case PlanRequest():
                part = "plan"
            case Say() if not self._is_canned(message.text) and not self._is_stop(message.text):
                part = "free text"
            case AskRobot():
                part = "robot"
            case SetVoice():
                part = "voice"
        return part if part in self._locked() else ""

    def _measure(self, session: Session, message: Incoming) -> None:
        """The first thing that a wizard does after a participant's words is told, with how long they waited."""
        if self._responses is None or not session.is_operator:
            return
        if response := self._responses.acted(session.name, message, self._ports.clock.now_ns()):
            self._ports.response.publish(response)

    def _say(
        self, session: Session, voice: Literal["robot", "collaborator"], text: str, acts: tuple[ActRequest, ...] = ()
    ) -> None:
        text = " ".join(text.split())
        if not text:
            return
        is_stop = voice == "collaborator" and self._is_stop(text)
        if not session.words.allows(self._ports.clock.now_ns()) and not is_stop:
            session.notice("not so fast: that was not said")
        elif voice == "robot" and self._undo_ns:
            self._say_now()  # the one before it is meant
            self._unsaid = Unsaid(session, text, acts, self._ports.clock.now_ns() + self._undo_ns)
        elif voice == "robot":
            self._said(session, text, acts)
        else:
            person = f"{self._ports.name}/{session.ident}"
            self._ports.say_heard.publish(Utterance(speaker=session.name, text=text, person=person, is_typed=True))

    def _say_now(self) -> None:
        """What nobody has taken back is said."""
        unsaid, self._unsaid = self._unsaid, None
        if unsaid is not None:
            self._said(unsaid.by, unsaid.text, unsaid.acts)

    def _said(self, session: Session, text: str, acts: tuple[ActRequest, ...]) -> None:
        """The robot says it, and makes the gestures that belong to it."""
        self._ports.say_said.publish(Utterance(speaker=self._speaker, text=text))
        now_ns = self._ports.clock.now_ns()
        for one in acts:
            if part := self._lock_of(one):
                session.notice(LOCKED.format(part=part))
            else:
                self._act(session, one, now_ns)

    def unsaid(self, session: Session, now_ns: int) -> dict[str, str | float] | None:
        """This page's sentence that can still be taken back."""
        one = self._unsaid
        if one is None or one.by.ident != session.ident:
            return None
        return {"text": one.text, "left_s": round(max(0.0, to_s(one.due_ns - now_ns)), 1)}

    def _resume(self, session: Session, message: Resume, now_ns: int) -> None:
        guard = self._ports.guard.latest()
        is_estopped = guard is not None and guard.mode == "estopped"
        if is_estopped:
            for source in (self._ports.name, TERMINAL):
                self._ports.estop.publish(EStop(source=source, is_pressed=False))
        is_disarmed = guard is not None and guard.mode == "disarmed"
        do: Literal["arm", "rearm", "resume"] = "rearm" if is_estopped else "arm" if is_disarmed else "resume"
        self._ports.order.publish(self._seats.signer.order(do, session.name, now_ns, session.ident))

    def _invite(self, session: Session, message: InvitePerson | RevokeInvite, now_ns: int) -> None:
        """Another person's own address goes to who invites them alone; the story tells who was invited, and by whom."""
        pages = self._invitations
        if pages is None:
            return
        if isinstance(message, RevokeInvite):
            gone = next((one for one in pages.invites() if one.number == message.number), None)
            pages.revoke(message.number)
            if gone is not None:
                self._feed.tell("seat", session.name, f"takes back the invitation of {gone.name}", now_ns)
            return
        name = " ".join(message.name.split())
        try:
            url = pages.invite(message.role, name, session.name)
        except ValueError as problem:
            session.notice(str(problem))
            return
        session.invited = {"name": name, "role": message.role, "url": url, "code": path_of(url)}
        self._feed.tell("seat", session.name, f"invites {name} as {message.role}", now_ns)

    def invites(self) -> list[dict[str, Any]]:
        """Who is invited, without their addresses."""
        pages = self._invitations
        return [] if pages is None else [msgspec.to_builtins(one) for one in pages.invites()]

    def _call(self, session: Session, message: CallMe, now_ns: int) -> None:
        name, pages = " ".join(message.name.split()), self._invitations
        is_taken = name in {one.name for one in self._seats.sessions if one is not session}
        if pages is not None and session.name in {one.name for one in pages.invites()}:
            session.notice("who was invited keeps the name of the invitation")
        elif name and (is_taken or (pages is not None and not pages.is_free(name))):
            session.notice(f"the name {name!r} is taken: by somebody, or by a part of the robot")
        else:
            session.name = name or session.role

    def _review(self, session: Session, message: Supervise | Decide, now_ns: int) -> None:
        if not self._seats.holds(message.seat, session):
            session.notice(f"take {'the VLM' if message.seat == 'vlm' else 'the planner'}'s seat first")
        elif isinstance(message, Supervise):
            now = self._feed.action if message.seat == "vlm" else self._feed.subtask
            self._reviews[message.seat].set(message, now)
        elif why_not := self._reviews[message.seat].decide(message, session.name, now_ns):
            session.notice(why_not)

    def _plan(self, session: Session, message: PlanRequest, now_ns: int) -> None:
        if not self._seats.holds("planner", session):
            session.notice("take the planner's seat first")
            return
        self._ports.plan.publish(
            Subtask(
                id=self._message_ids.next(),
                text=message.text or message.verb,
                state="work" if message.verb == "put" else message.verb,
                skill="place" if message.verb == "put" else "",
                things=(Reference(label=message.what or "*", count=0),) if message.verb == "put" else (),
                excluding=tuple(Reference(label=message.what or "*", colour=colour) for colour in message.excluding),
                place=message.where,
                relation="in" if message.where else "",
            )
        )
        if message.sentence:
            self._say(session, "robot", message.sentence)

    def _act(self, session: Session, message: ActRequest, now_ns: int) -> None:
        is_holder = self._seats.holds("vlm", session)
        if not is_holder and message.skill not in GESTURES:
            session.notice("take the VLM's seat first")
            return
        target = None if message.skill in NEED_NOTHING else thing_meant(self._ports.scene.latest(), message)
        if target is None and message.skill not in NEED_NOTHING:
            session.notice(f"there is no {message.colour} {message.label} there any more")
            return
        what = f" the {target.colour} {target.label}".replace("  ", " ") if target is not None else ""
        text = f"{WORDS.get(message.skill, message.skill)}{what}"
        arguments = aimed_at(target, "place" if message.skill == "place" else "thing")
        action = Action(id=self._message_ids.next(), skill=message.skill, arguments=arguments, text=text)
        if is_holder and self._gesture is None:
            self._ports.act.publish(action)
        elif self._gesture is not None and self._gesture.session is session and len(self._gestures) < MOST_GESTURES:
            self._gestures.append(action)
        elif self._gesture is not None:
            session.notice(f"the robot is busy with: {self._gesture.action.text}")
        elif self._seats.has_person("policy"):
            session.notice("somebody drives: the robot makes no gesture until driving is given back")
        else:
            self._seats.take("vlm", session, now_ns, force=False)
            if self._seats.holds("vlm", session):
                self._gesture = Gesture(session, action, now_ns)

    def _go_on_with(self, gesture: Gesture, now_ns: int) -> None:
        """Send the gesture once the seat is there, and give the seat back when it is done."""
        if not self._seats.holds("vlm", gesture.session):
            self._gesture = None
            self._gestures.clear()
            return
        if not gesture.is_sent and self._seats.has_person("vlm"):
            gesture.is_sent = True
            self._ports.act.publish(gesture.action)
        answer = self._ports.feedback.latest()
        is_answered = answer is not None and answer.action_id == gesture.action.id and answer.status != "running"
        is_over = is_answered or to_s(now_ns - gesture.since_ns) > GESTURE_S
        if is_over and self._gestures:
            self._gesture = Gesture(gesture.session, self._gestures.popleft(), now_ns)
        elif is_over:
            self._gesture = None
            self._seats.give("vlm", gesture.session, now_ns)
