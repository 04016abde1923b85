"""`Console`: serves the page, shows it the run, and speaks for the person who sits at it.

The web server has a thread of its own (`bridges.web.server`); handlers here only note what arrives. In virtual time
nobody can sit at a page, so there the console does nothing.
"""

from __future__ import annotations

import tomllib
from math import hypot
from pathlib import Path
from typing import Any, Literal

from bridges.web import drive
from bridges.web.access import Tokens, check_bind
from bridges.web.asking import Asking
from bridges.web.board import Board, age_ms, guard_document, robot_document, scene_document
from bridges.web.messages import Mark
from bridges.web.picture import JpegCache
from bridges.web.seating import SEATS, Seating
from bridges.web.server import Server, bind
from bridges.web.session import Session, View
from bridges.web.wire import (
    Act,
    Drive,
    Emergency,
    Give,
    Incoming,
    NoteMark,
    Plan,
    Resume,
    Say,
    Seat,
    Stop,
    Take,
)
from runtime import Node, Publisher, QoS, Stamped, Subscription, on
from runtime.call import Call, current_call
from runtime.clock import to_ns
from runtime.errors import ParameterError
from runtime.health import Health
from runtime.launch_file import load_name
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
    SeenObject,
    Subtask,
    Utterance,
)
from runtime.robot import RobotLimits

OPTIONAL = QoS(required=False)
CANNED = Path(__file__).with_name("canned.toml")
NEAR_M = 0.15
"""A click means the thing of that name this near to where the page saw it."""
OLDEST_SETPOINT_S = 0.25
RATE_OVER_NS = 2_500_000_000
ANSWER_S = 1.0
"""How long the guard's answer to a request may take before it is asked again."""
HANDS: dict[Seat, str] = {"planner": "human_planner", "vlm": "human_vlm", "policy": "human_policy"}
"""The nodes that speak for the person, by seat; they are candidates in the launch file."""


class Console(Node):
    """A page for wizards, viewers and participants; the log says where.

    `host` other than this machine needs `certificate` and `key`. `port` 0 is any free one. `robot` names the limits of
    the robot that is driven. `utterances` is a file of canned sentences. `head_camera_m` says where the head camera is,
    for what is drawn over its image: ahead, left and up of the crossing of its axes, and how far ahead of it.
    """

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

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = 8420,
        certificate: str = "",
        key: str = "",
        robot: str = "nodes.stretch:STRETCH_3",
        utterances: str = "",
        speaker: str = "robot",
        head_camera_m: tuple[float, float, float, float] = (-0.07, 0.13, 1.33, 0.035),
    ) -> None:
        check_bind(host, certificate, key)
        if not 0 <= port <= 65535:
            raise ParameterError(f"console: port is {port}; expected 0 to 65535")
        self._host, self._port = host, port
        self._certificate, self._key = certificate, key
        limits = load_name(robot)
        if not isinstance(limits, RobotLimits):
            raise ParameterError(
                f"console: robot {robot!r} is no RobotLimits; expected one like nodes.stretch:STRETCH_3"
            )
        self._limits = limits
        self._canned = read_canned(Path(utterances) if utterances else CANNED)
        self._speaker = speaker
        self._head_camera = dict(zip(("x_m", "y_m", "z_m", "ahead_m"), head_camera_m, strict=True))
        self._cameras = {"head": self.head_image, "wrist": self.wrist_image, "room": self.room_image}
        self._rates: dict[str, tuple[int, int, float]] = {}  # camera -> received, when, Hz
        self._seating = Seating()
        self._leases: dict[Seat, Lease] = {}
        self._asked_ns: dict[Seat, int] = {}
        self._asking = Asking({})
        self._server: Server | None = None
        self._count = 0
        self.tokens = Tokens()

    def on_start(self) -> None:
        """Open the page and say where it is. Raises UserError where that cannot be."""
        self._board = Board(self.clock.now_ns())
        self._asking = Asking(getattr(self, "run_info", {}))
        if self.clock.is_virtual:
            self.log.warning("the console needs real time; nobody can sit at it in virtual time")
            return
        self._pictures = JpegCache()
        bound = bind(self._host, self._port)
        port = bound.getsockname()[1]
        server = Server(self, self.tokens, self.clock, certificate=self._certificate, key=self._key)
        server.start(bound, self._host)
        self._server = server
        scheme = "https" if self._certificate else "http"
        host = f"[{self._host}]" if ":" in self._host else self._host
        for role, token in self.tokens.by_role.items():
            self.log.info("%s: %s://%s:%d/#%s", role, scheme, host, port, token)

    def on_stop(self) -> None:
        """Close the page."""
        if self._server is not None:
            self._server.stop()

    # --- what arrives from the graph (the node's own thread)

    @on(head_image)
    def head_seen(self, image: Image) -> None:
        self._poke()

    @on(wrist_image)
    def wrist_seen(self, image: Image) -> None:
        self._poke()

    @on(room_image)
    def room_seen(self, image: Image) -> None:
        self._poke()

    @on(heard)
    def note_heard(self, message: Utterance) -> None:
        self._note(message)

    @on(said)
    def note_said(self, message: Utterance) -> None:
        self._note(message)

    @on(subtask)
    def note_subtask(self, message: Subtask) -> None:
        self._note(message)

    @on(action)
    def note_action(self, message: Action) -> None:
        self._note(message)

    @on(feedback)
    def note_feedback(self, message: Feedback) -> None:
        self._note(message)

    @on(interrupts)
    def note_interrupt(self, message: Interrupt) -> None:
        self._note(message)

    @on(leases)
    def note_lease(self, lease: Lease) -> None:
        self._leases[lease.seat] = lease
        if not lease.is_repetition:
            text = f"{lease.holder} holds {lease.seat}" + (f", instead of {lease.displaced}" if lease.displaced else "")
            self._board.tell("seat", lease.by or "guard", f"{text} ({lease.why})", self.clock.now_ns())
            self._poke()

    @on(marks)
    def note_mark(self, message: Mark) -> None:
        self._note(message)

    @on(guard)
    def note_guard(self, message: GuardState) -> None:
        self._note(message)

    def _note(self, message: Any) -> None:
        call = current_call.get()
        trigger = call.trigger if call is not None else None
        if trigger is None:
            return
        envelope = trigger.envelope
        self._board.take(message, topic=envelope.topic, at_ns=envelope.published_ns, provenance=envelope.provenance)
        self._poke()

    def _poke(self) -> None:
        if self._server is not None:
            self._server.poke()

    # --- what the server asks for (the server's thread)

    def welcome(self, session: Session) -> dict[str, Any]:
        """All that a page needs to know once."""
        return {
            "t": "welcome",
            "role": session.role,
            "name": session.name,
            "session": session.ident,
            "cameras": list(self._cameras) if session.role != "participant" else [],
            "joints": [
                {"name": joint.name, "lowest": joint.lowest, "highest": joint.highest} for joint in self._limits.joints
            ],
            "head_camera": self._head_camera,
            "canned": self._canned if session.is_operator else [],
        }

    def state(self, session: Session, now_ns: int) -> dict[str, Any]:
        """What is so now, as this person may see it."""
        events, session.told = self._board.since(session.told, dialogue_only=session.role == "participant")
        notices, session.notices = session.notices, []
        document: dict[str, Any] = {"t": "state", "n": session.state_number, "events": events, "notices": notices}
        if session.role == "participant":
            return document
        recorder = age_ms(self.recorder.stamped(), now_ns)
        document.update(
            self._board.decisions(),
            link_ms=None if session.round_trip_ms is None else round(session.round_trip_ms, 1),
            robot=robot_document(self.robot.stamped(), now_ns),
            guard=guard_document(self.guard.stamped(), now_ns),
            scene=scene_document(self.scene.stamped(), now_ns),
            cameras={name: self._camera_document(name, port, now_ns) for name, port in self._cameras.items()},
            seats={seat: self._seat_document(seat, session) for seat in SEATS},
            recording=recorder is not None and recorder < 3000,
            people=[{"name": one.name, "role": one.role} for one in self._server.sessions] if self._server else [],
        )
        return document

    def frame(self, camera: str, view: View, now_ns: int) -> tuple[dict[str, Any], bytes] | None:
        """The newest picture of a camera that this page has not been sent."""
        port = self._cameras.get(camera)
        stamped = port.stamped() if port is not None else None
        if stamped is None or view.shown == (stamped.envelope.source, stamped.envelope.seq):
            return None
        view.shown = (stamped.envelope.source, stamped.envelope.seq)
        view.captured_ns = stamped.message.captured_ns
        image = stamped.message
        height, width = image.rgb.shape[:2]
        header = {
            "camera": camera,
            "age_ms": round((now_ns - image.captured_ns) * 1e-6, 1),
            "captured_ms": round(image.captured_ns * 1e-6, 1),
            "width": width,
            "height": height,
            "focal": round(image.focal_px, 2),
            "quality": view.pace.quality,
        }
        return header, self._pictures.encode(stamped, view.pace.quality)

    def came(self, session: Session) -> None:
        """A page was opened."""
        self._seating.came(session.ident)

    def left(self, session: Session) -> None:
        """A page is gone: its person keeps the seat for a moment, in which nothing is sent."""
        self._seating.left(session.ident, self.clock.now_ns())

    def beat(self, now_ns: int) -> None:
        """Ten times a second: who has no page any more loses the seat, and the leases follow who sits."""
        for seat, gone in self._seating.expire(now_ns):
            if seat == "policy":
                self._interrupt("stop", f"the link to {gone.name}, who drove, is lost")
            self._ask("give", seat, gone.name, now_ns)
        for seat, lease in list(self._leases.items()):
            if now_ns - self._asked_ns.get(seat, 0) < to_ns(ANSWER_S):
                continue
            is_ours, sitter = lease.holder == HANDS[seat], self._seating.sitters.get(seat)
            if is_ours and sitter is None:  # of a console before this one
                if seat == "policy":
                    self._interrupt("stop", "nobody is at the console that drove")
                self._ask("give", seat, self.name, now_ns)
            elif sitter is not None and not is_ours:
                del self._seating.sitters[seat]
                self._notify(sitter.session, f"the seat {seat} is {lease.holder}'s now")

    def _ask(self, do: Literal["take", "give"], seat: Seat, by: str, now_ns: int) -> None:
        self._asked_ns[seat] = now_ns
        self.request.publish(self._asking.seat(do, seat, HANDS[seat], by, now_ns))

    def _notify(self, ident: str, text: str) -> None:
        for session in self._server.sessions if self._server is not None else ():
            if session.ident == ident:
                session.notice(text)

    def handle(self, session: Session, message: Incoming) -> None:
        """Do what a person asks for, where their role allows it."""
        if isinstance(message, Stop):  # anybody may, whatever their role
            self._interrupt("stop", f"{session.name}: {message.why}")
            return
        if isinstance(message, Say) and session.role == "participant":
            message = Say(voice="collaborator", text=message.text)
        elif not session.is_operator:
            session.notice("only an operator may do that")
            return
        match message:
            case Say():
                self._say(session, message.voice, message.text)
            case Resume():
                self._resume(session)
            case Emergency():
                self.estop.publish(EStop(source=self.name, is_pressed=True, why=f"pressed by {session.name}"))
            case NoteMark():
                self.mark.publish(Mark(label=message.label or "mark", note=message.note, by=session.name))
            case Take():
                self._take(session, message)
            case Give():
                if self._seating.give(message.seat, session.ident):
                    self._ask("give", message.seat, session.name, self.clock.now_ns())
            case Drive():
                self._drive(session, message)
            case Plan():
                self._plan(session, message)
            case Act():
                self._act(session, message)
            case _:
                session.notice(f"{type(message).__name__} is not expected now")

    def _say(self, session: Session, voice: Literal["robot", "collaborator"], text: str) -> None:
        text = " ".join(text.split())
        if not text:
            return
        if not session.words.allows(self.clock.now_ns()):
            session.notice("not so fast: that was not said")
        elif voice == "robot":
            self.say_said.publish(Utterance(speaker=self._speaker, text=text))
        else:
            self.say_heard.publish(Utterance(speaker=session.name, text=text))

    def _interrupt(self, depth: Literal["stop", "resume"], text: str) -> None:
        self._count += 1
        self.interrupt.publish(Interrupt(id=f"{self.name}-{self._count}", depth=depth, text=text, by="console"))

    def _resume(self, session: Session) -> None:
        guard = self.guard.latest()
        if guard is not None and guard.estop:
            self.estop.publish(EStop(source=self.name, is_pressed=False))
            self.order.publish(self._asking.order("rearm", session.name, self.clock.now_ns()))
        elif guard is not None and guard.mode == "disarmed":
            self.order.publish(self._asking.order("arm", session.name, self.clock.now_ns()))
        else:
            self._interrupt("resume", f"{session.name}: go on")

    def _take(self, session: Session, message: Take) -> None:
        refusal = self._seating.take(message.seat, session.ident, session.name, force=message.force)
        if refusal:
            session.notice(refusal)
            return
        lease, now_ns = self._leases.get(message.seat), self.clock.now_ns()
        if lease is None:
            self._seating.give(message.seat, session.ident)
            session.notice(f"nobody hands out the seat {message.seat} in this run")
        elif lease.holder != HANDS[message.seat]:
            self._ask("take", message.seat, session.name, now_ns)
        else:
            self._board.tell("seat", session.name, f"takes {message.seat} over", now_ns)

    def _drive(self, session: Session, message: Drive) -> None:
        if not self._seating.holds("policy", session.ident):
            session.notice("take the policy's seat first")
            return
        now_ns = self.clock.now_ns()
        state = self.robot.stamped()
        if state is None or state.age_s(now_ns) > OLDEST_SETPOINT_S:
            session.notice("the robot's state is not known: not driving")
            return
        if unknown := drive.unknown_joints(message, self._limits.joints):
            session.notice(f"no joints: {', '.join(unknown)}")
            return
        asked = self.setpoint.stamped()
        is_known = asked is not None and asked.age_s(now_ns) <= OLDEST_SETPOINT_S
        here = asked.message.position if asked is not None and is_known else state.message.position
        # A person's command is as old as the robot's state it starts from, and as the picture they look at.
        call = Call(now_ns)
        call.read(state)
        call.image_ns = max((view.seen_captured_ns for view in session.views.values()), default=0)
        token = current_call.set(call)
        try:
            self.command.publish(drive.command(message, self._limits, here, state.message.velocity))
        finally:
            current_call.reset(token)

    def _plan(self, session: Session, message: Plan) -> None:
        if not self._seating.holds("planner", session.ident):
            session.notice("take the planner's seat first")
            return
        self._count += 1
        self.plan.publish(
            Subtask(
                id=f"{self.name}-{self._count}",
                text=message.text or message.verb,
                verb=message.verb,
                what=message.what,
                where=message.where,
                excluding=message.excluding,
            )
        )
        if message.sentence:
            self._say(session, "robot", message.sentence)

    def _act(self, session: Session, message: Act) -> None:
        if not self._seating.holds("vlm", session.ident):
            session.notice("take the VLM's seat first")
            return
        target = None if message.skill == "hold" else self._thing(message)
        if target is None and message.skill != "hold":
            session.notice(f"there is no {message.colour} {message.label} there any more")
            return
        verb = {"pick": "pick up", "place": "place it at", "look": "look at", "hold": "hold still"}[message.skill]
        what = f" the {target.colour} {target.label}".replace("  ", " ") if target is not None else ""
        self._count += 1
        self.act.publish(
            Action(id=f"{self.name}-{self._count}", skill=message.skill, target=target, text=f"{verb}{what}")
        )

    def _thing(self, message: Act) -> SeenObject | None:
        """The thing seen that the page means."""
        scene = self.scene.latest()
        near = [
            (hypot(thing.x_m - message.x_m, thing.y_m - message.y_m), thing)
            for thing in (scene.objects if scene is not None else ())
            if (thing.label, thing.colour) == (message.label, message.colour)
        ]
        best = min(near, key=lambda pair: pair[0], default=None)
        return best[1] if best is not None and best[0] <= NEAR_M else None

    def _seat_document(self, seat: Seat, session: Session) -> dict[str, Any]:
        sitter = self._seating.sitters.get(seat)
        lease = self._leases.get(seat)
        return {
            "holder": "" if lease is None else lease.holder,
            "kind": "" if lease is None else lease.kind,
            "by": "" if sitter is None else sitter.name,
            "mine": self._seating.holds(seat, session.ident),
            "lost": sitter is not None and sitter.lost_ns > 0,
        }

    def _camera_document(self, name: str, port: Subscription[Image], now_ns: int) -> dict[str, Any]:
        received, at_ns, hz = self._rates.get(name, (0, 0, 0.0))
        if now_ns - at_ns >= RATE_OVER_NS:
            count = port.received
            hz = (count - received) / ((now_ns - at_ns) * 1e-9) if at_ns else 0.0
            self._rates[name] = (count, now_ns, hz)
        stamped: Stamped[Image] | None = port.stamped()
        return {
            "hz": round(hz, 1),
            "age_ms": None if stamped is None else round((now_ns - stamped.message.captured_ns) * 1e-6),
        }


def read_canned(path: Path) -> list[dict[str, str]]:
    """The sentences of a file, with voice and key. Raises ParameterError for what is not understood in it."""
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8")).get("utterance", [])
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as problem:
        raise ParameterError(f"console: utterances {path}: cannot be read as TOML: {problem}") from problem
    found: list[dict[str, str]] = []
    keys: set[str] = set()
    for number, table in enumerate(tables, 1):
        where = f"console: utterances {path}, sentence {number}"
        if not isinstance(table, dict) or not isinstance(table.get("text"), str) or not table["text"]:
            raise ParameterError(f"{where} has no text")
        unknown = sorted(set(table) - {"text", "as", "key"})
        if unknown:
            raise ParameterError(f"{where} has the unknown key {unknown[0]!r}; known: as, key, text")
        voice, key = table.get("as", "robot"), str(table.get("key", ""))
        if voice not in ("robot", "collaborator"):
            raise ParameterError(f"{where} is spoken as {voice!r}; known: robot, collaborator")
        if len(key) > 1 or (key and (key not in "0123456789" or key in keys)):
            raise ParameterError(f"{where} has the key {key!r}; expected a digit of its own")
        keys.update(key)
        found.append({"text": table["text"], "as": voice, "key": key})
    return found
