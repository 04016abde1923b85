"""`Console`: serves the page, shows it the run, and speaks for the person who sits at it.

The web server has a thread of its own (`bridges.web.http.server`); handlers here only note what arrives.
In virtual time nobody can sit at a page, so there the console does nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, cast

from bridges.web.console.actions import Actions
from bridges.web.console.canned_phrases import CANNED, Canned, read_canned
from bridges.web.console.draft_review import DraftReview, ReviewedSeat, check_review
from bridges.web.console.driving.poses import POSES, read_poses
from bridges.web.console.driving.teleop import TURN_RADPS
from bridges.web.console.feed import Recorders, RunFeed
from bridges.web.console.page_handler import ConsoleHandler
from bridges.web.console.ports import ConsolePorts
from bridges.web.console.response_time import ResponseTimes
from bridges.web.console.robot_sound import RobotSound, RobotWords
from bridges.web.console.seat_requests import Seats
from bridges.web.console.shadows import Shadows
from bridges.web.console.signing import RequestSigner
from bridges.web.http.auth import RESERVED, ROLES, Role
from bridges.web.http.graph_messages import StudySetting
from bridges.web.http.listener import PageHost, missing_libraries
from bridges.web.http.message_ids import MessageIds
from bridges.web.http.page import Page
from bridges.web.http.wire import Seat, decode
from bridges.web.recordings.list_page import RecordingsHandler
from bridges.web.recordings.list_page import recordings as the_recordings
from bridges.web.speech.push_to_talk import STOP_WORDS, PushToTalk, load_stop_words
from nodes.msgs import (
    JOINTS,
    Action,
    GuardAnswer,
    Image,
    JointCommand,
    RecorderState,
    RobotState,
    Saying,
    Sound,
    Subtask,
    Utterance,
)
from nodes.robot.protocol import Hand
from nodes.robot.robot_from_launch import joint_names, load_limits
from runtime import Lease, Message, ParameterError, Stamped, on, to_s, wall_time_ns
from runtime.launch.tables.nodes_table import load_as

MOST_UNDO_S = 5.0
GREETING = (
    "Welcome. You can speak with the robot here: write below, or hold the button and talk. STOP stops it at once."
)
STATES_KEPT = 100
"""Two seconds of the robot's states: longer than any picture is under way."""


class Console(ConsolePorts):
    """A page for wizards, viewers and participants; the log says where.

    `address` other than this machine needs `certificate` and `key`. `port` 0 is any free one; `reached_as` are origins
    under which a tunnel or a proxy leads here. `robot` names the limits of the robot that is driven, `hand` its
    kinematics (a `nodes.robot.protocol.Hand`). `utterances` is a file of canned sentences. `head_camera_m`
    says where the head camera is, for what is drawn over its image: ahead, left and up of the crossing
    of its axes, and how far before it.
    `stop_words` tells which sentences mean "stop", as "module:function": those are let through whatever came before.
    `review` says how a person begins on the planner's or the VLM's seat: "write" (they choose themselves), "approve"
    (the model's drafts wait for a yes) or "undo" (they go out after a second, if nobody takes them back). `undo_s`: so
    long a sentence that an operator lets the robot say can be taken back; a stop never waits.
    `poses` is a file of named postures, in the form of bridges/web/console/driving/poses.toml (""; those of a Stretch).
    `greeting` and `task` stand on the participants' page; `names` says how speakers are called there ("robot"; whoever
    it does not name is "Somebody else", so that nobody learns of a wizard).
    `recordings` is a folder whose finished recordings can be rated on a page beside this one ("": no such page).
    """

    role = "ears"
    lan_parameter = "address"
    page_roles: ClassVar[tuple[Role, ...]] = ROLES

    def __init__(
        self,
        address: str = "127.0.0.1",
        port: int = 8420,
        certificate: str = "",
        key: str = "",
        robot: str = "nodes.stretch.limits:STRETCH_3",
        utterances: str = "",
        speaker: str = "robot",
        hand: str = "nodes.policy.stretch_hand:STRETCH_HAND",
        reached_as: tuple[str, ...] = (),
        head_camera_m: tuple[float, float, float, float] = (-0.07, 0.13, 1.33, 0.035),
        recordings: str = "",
        stop_words: str = STOP_WORDS,
        review: Mapping[str, str] | None = None,
        undo_s: float = 0.0,
        poses: str = "",
        greeting: str = GREETING,
        task: str = "",
        names: Mapping[str, str] | None = None,
    ) -> None:
        check_review(review or {})
        if not 0.0 <= undo_s <= MOST_UNDO_S:
            raise ParameterError(f"console: undo_s is {undo_s:g}; expected 0 to {MOST_UNDO_S:g}")
        self._undo_s = undo_s
        self.pages = PageHost(address, port, certificate, key, reached_as)
        self._limits = limits = load_limits(robot)
        self._is_stretch = joint_names(limits) == JOINTS
        self._hand = cast(Hand, load_as(hand, Hand))
        self._speaker = speaker
        self._recordings = recordings
        self._recordings_page: RecordingsHandler | None = None
        self._setting: dict[str, Any] = {
            "joints": [
                {"name": joint.name, "lowest": joint.lowest, "highest": joint.highest} for joint in limits.joints
            ],
            "review": dict(review or {}),
            "participant": {"greeting": greeting, "task": task},
            "poses": read_poses(Path(poses) if poses else POSES, limits, is_own=bool(poses)),
            "base_speed": {"v_mps": limits.base.wheel_speed_mps, "w_radps": TURN_RADPS, "is_omni": limits.base.is_omni},
            "head_camera": dict(zip(("x_m", "y_m", "z_m", "ahead_m"), head_camera_m, strict=True))
            if self._is_stretch
            else None,
        }
        self._names = {speaker: speaker, **(names or {})}
        self._is_stop = load_stop_words(stop_words)
        self._canned = Canned(read_canned(Path(utterances) if utterances else CANNED))

    def problems(self) -> list[str]:
        """Which libraries its pages miss here."""
        return missing_libraries()

    def on_start(self) -> None:
        """Open the page and say where it is. Raises UserError where that cannot be."""
        self._feed = RunFeed(self.clock.now_ns())
        self._seats = Seats(self, RequestSigner(self.run_info), MessageIds(self.name, self.clock.now_ns()))
        self._reviews: dict[ReviewedSeat, DraftReview] = {
            "planner": DraftReview(self, self._speaker, "planner"),
            "vlm": DraftReview(self, self._speaker, "vlm"),
        }
        self._shadows = Shadows(self._limits.joints)
        self._recorders = Recorders()
        self._responses = ResponseTimes()
        self._sound, self._words = RobotSound(), RobotWords()
        self._talking = PushToTalk(self, self.run_info, self.name)
        self._states: deque[RobotState] = deque(maxlen=STATES_KEPT)
        if self.clock.is_virtual:
            self.log.warning("the console needs real time; nobody can sit at it in virtual time")
            return
        actions = Actions(
            self,
            self._feed,
            self._seats,
            self._reviews,
            self._limits,
            self._hand,
            self._speaker,
            self._is_stop,
            lambda: self._canned.voices,
            self._responses,
            undo_s=self._undo_s,
            invitations=self.pages,
            locked=lambda: self._canned.locked,
            is_canned=self._canned.has,
        )
        handler = ConsoleHandler(
            self,
            self._feed,
            self._seats,
            self._reviews,
            self._shadows,
            actions,
            self._hand if self._is_stretch else None,
            self._states,
            self._setting,
            self._canned,
            self._recorders,
            self._talking,
            self._responses,
            self._sound,
            self._words,
            self._names,
        )
        page = Page(
            "console", "Console", "console/page.html", handler, decode, {role: role for role in self.page_roles}
        )
        page.gives_way = frozenset({"participant"})  # a study beside it decides what they see, and of whom
        self._seats.sessions = page.sessions
        self._recordings_page = (
            RecordingsHandler(Path(self._recordings), lambda: to_s(wall_time_ns())) if self._recordings else None
        )
        beside = (the_recordings(self._recordings_page),) if self._recordings_page is not None else ()
        self.pages.start(page, self.clock, self.log, beside=beside, node=self)
        self.pages.reserve((self._speaker, *RESERVED, *self.run_info.parameters))

    def url(self, role: Role) -> str:
        """The page's address for that role, with its token; "" while it is not open."""
        return self.pages.url(role)

    def on_stop(self) -> None:
        """Close the page."""
        self.pages.stop()
        if self._recordings_page is not None:
            self._recordings_page.close()

    @on(ConsolePorts.robot)
    def robot_read(self, state: RobotState) -> None:
        self._states.append(state)

    @on(ConsolePorts.head_image, ConsolePorts.wrist_image, ConsolePorts.room_image)
    def see(self, image: Image) -> None:
        self._poke()

    @on(ConsolePorts.answers)
    def note_answer(self, answer: GuardAnswer) -> None:
        self._seats.signer.answered(answer)

    @on(ConsolePorts.recorder)
    def note_recorder(self, state: Stamped[RecorderState]) -> None:
        self._recorders.take(state)

    @on(ConsolePorts.people_heard, ConsolePorts.people_so_far)
    def note_sound(self, sound: Sound) -> None:
        self._sound.take(sound)
        self._poke()

    @on(ConsolePorts.saying)
    def note_saying(self, saying: Saying) -> None:
        self._words.learn(saying)
        self._poke()

    @on(ConsolePorts.heard)
    def note_heard(self, heard: Stamped[Utterance]) -> None:
        self._talking.note(heard.message)
        if heard.message.speaker not in {one.name for one in self._seats.sessions if one.is_operator}:
            self._responses.heard(heard.envelope.published_ns)
        self.note(heard)

    @on(
        ConsolePorts.said,
        ConsolePorts.subtask,
        ConsolePorts.action,
        ConsolePorts.feedback,
        ConsolePorts.interrupts,
        ConsolePorts.seat_words,
        ConsolePorts.draft_decisions,
        ConsolePorts.marks,
        ConsolePorts.guard,
    )
    def note(self, stamped: Stamped[Message]) -> None:
        """Put it on the page's feed."""
        about = stamped.envelope
        if about.topic == "said" and isinstance(stamped.message, Utterance) and not stamped.message.sound:
            self._words.queue(stamped.message.text)
        self._feed.take(stamped.message, topic=about.topic, at_ns=about.published_ns, provenance=about.provenance)
        self._poke()

    @on(ConsolePorts.leases)
    def note_lease(self, lease: Lease) -> None:
        self._seats.learn(lease)
        self._feed.take_lease(lease, self.clock.now_ns())
        self._poke()

    @on(ConsolePorts.candidate_subtask)
    def see_subtask(self, subtask: Stamped[Subtask]) -> None:
        self._see("planner", subtask)
        if subtask.envelope.source != self._seats.holder("planner"):
            self._reviews["planner"].propose(subtask.message)

    @on(ConsolePorts.candidate_action)
    def see_action(self, action: Stamped[Action]) -> None:
        self._see("vlm", action)
        if action.envelope.source != self._seats.holder("vlm"):
            self._reviews["vlm"].propose(action.message)

    @on(ConsolePorts.candidate_command)
    def see_command(self, command: Stamped[JointCommand]) -> None:
        self._see("policy", command)

    @on(ConsolePorts.candidate_said)
    def see_said(self, said: Stamped[Utterance]) -> None:
        """A planner or a VLM in shadow would say something."""
        for seat, review in self._reviews.items():
            if said.envelope.seat == seat and said.envelope.source != self._seats.holder(seat):
                review.propose(said.message)

    def _see(self, seat: Seat, stamped: Stamped[Subtask | Action | JointCommand]) -> None:
        self._shadows.note(seat, stamped.envelope.source, stamped.message, stamped.envelope.published_ns)

    @on(ConsolePorts.settings)
    def note_setting(self, message: StudySetting) -> None:
        """A trial begins or ends whose condition may bring sentences of its own."""
        none = ("",) * len(message.utterances)
        each = zip(message.utterances, message.groups or none, message.gestures or none, strict=True)
        own = [
            {"text": text, "as": voice, "key": key, "group": group, "gesture": gesture}
            for (text, voice, key), group, gesture in each
        ]
        self._canned.set(own, message.voices, message.locked)
        self._poke()

    def _poke(self) -> None:
        self.pages.poke()
