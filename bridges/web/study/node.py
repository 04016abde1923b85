"""`Study`: leads a participant through a protocol, with a page for them and one for the experimenter.

Everything that is answered, marked or noted is written to the session's file first, then published, so that it is in
the recording, too. The web server has a thread of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, cast

from bridges.robot_ports import OPTIONAL, PagePorts
from bridges.web.console.feed import Recorders, is_stopped
from bridges.web.console.signing import RequestSigner
from bridges.web.http.auth import RESERVED
from bridges.web.http.graph_messages import StudySetting
from bridges.web.http.jpeg import JpegCache
from bridges.web.http.listener import PageHost, missing_libraries
from bridges.web.http.message_ids import MessageIds
from bridges.web.http.open_page import CameraStream, Session
from bridges.web.http.page import Page
from bridges.web.http.qr_code import path_of
from bridges.web.http.wire import NoteMark, Resume, SoundPiece, StopPressed, Talk, Talked, Talks
from bridges.web.recordings.list_page import RecordingsHandler, recordings
from bridges.web.speech.push_to_talk import STOP_WORDS, PushToTalk, load_stop_words
from bridges.web.study import wire
from bridges.web.study.condition import seat_problems
from bridges.web.study.effect import ConditionEffect
from bridges.web.study.protocol import EXAMPLE, MEDIA, Protocol, read_protocol
from bridges.web.study.session import Event, How, SessionProgress, SessionRefused, words_of
from bridges.web.study.session_store import SessionStore
from bridges.web.study.steps import media_name
from bridges.web.study.trial_watch import TrialWatch, has_trial_recorder
from bridges.web.study.views import experimenter_view, participant_view
from nodes.msgs import (
    GuardAnswer,
    Interrupt,
    Mark,
    RecorderState,
    RunningTrial,
    Trial,
    Utterance,
    WizardResponse,
)
from runtime import (
    RELIABLE,
    Lease,
    Message,
    Publisher,
    QoS,
    Stamped,
    Subscription,
    on,
    to_s,
    wall_time_ns,
)

COLLABORATOR = "collaborator"
"""The speaker of a participant's words: a study writes nobody's name down."""
NOT_IN_FORCE = "the trial was broken off: its condition did not come into force. Is a wizard at the console?"


HEARD = "heard"
"""How a mark came into a session that was not made at the study's own pages."""


class StudyAnswer(Message):
    """One answer to one item of a questionnaire; a later one to the same item takes its place."""

    participant: str
    step: str  # "trial-1/nasa-tlx"
    item: str
    value: str  # a number as its digits; "" takes the answer back


class StudyNote(Message):
    """What the experimenter noted."""

    participant: str
    step: str
    text: str
    by: str = ""


class StudyStep(Message):
    """A session went on: it began, consent was given, a questionnaire handed in, a step left out, or it ended early."""

    participant: str
    step: str
    what: str  # "begin", "consent", "submit", "skip", "withdraw", "condition"
    by: str = ""
    text: str = ""  # of a condition: what was set, lost or undone


def _read(protocol: str) -> Protocol:
    return read_protocol(Path(protocol) if protocol else EXAMPLE)


class Study(PagePorts):
    """One participant at a time; the log says where the pages are.

    `protocol` is a TOML file (empty: the example that is shipped), `folder` where sessions are kept. A run that was
    killed leaves its session there; the next one goes on with it. `stop_words` tells which sentences mean "stop", as
    "module:function": those stop the robot whatever came before. `reached_as` are origins under which a tunnel or a
    proxy leads here.
    """

    role = "ears"
    lan_parameter = "address"

    responses = Subscription(WizardResponse, "console/response", qos=OPTIONAL)
    recorder = Subscription(RecorderState, "trial_recorder/state", qos=OPTIONAL)

    trial = Publisher(Trial, "study/trial", qos=RELIABLE)
    running = Publisher(RunningTrial, "study/running", qos=QoS(late_join=True))
    answer = Publisher(StudyAnswer, "study/answer", qos=RELIABLE)
    note = Publisher(StudyNote, "study/note", qos=RELIABLE)
    step = Publisher(StudyStep, "study/step", qos=RELIABLE)
    setting = Publisher(StudySetting, "study/setting", qos=RELIABLE)
    speak = Publisher(Utterance, "heard", qos=RELIABLE)

    def __init__(
        self,
        protocol: str = "",
        folder: str = "runs/study",
        address: str = "127.0.0.1",
        port: int = 0,
        certificate: str = "",
        key: str = "",
        stop_words: str = STOP_WORDS,
        reached_as: tuple[str, ...] = (),
    ) -> None:
        self._is_stop = load_stop_words(stop_words)
        self._protocol = _read(protocol)
        self._folder = Path(folder)
        self.pages = PageHost(address, port, certificate, key, reached_as)
        self._recordings: RecordingsHandler | None = None
        self._canned = {one.id: one.canned(self._protocol.folder) for one in self._protocol.condition}
        self._recorders = Recorders()
        self._setting_is_on = False
        self._is_part_over = False
        self._told_beat = ""  # what kept a trial from ending by itself
        self.store: SessionStore | None = None
        self._epoch_s = 0.0

    def problems(self) -> list[str]:
        """Which libraries its pages miss here."""
        return missing_libraries()

    def seat_problems(self, seats: Mapping[str, tuple[str, ...]]) -> list[str]:
        """What the protocol's conditions name that the launch file does not have."""
        return seat_problems(self._protocol.condition, seats, self._protocol.path)

    def on_start(self) -> None:
        """Open the pages, and the session that was left unfinished. Raises UserError where that cannot be."""
        info = self.run_info
        self._message_ids = MessageIds(self.name, self.clock.now_ns())
        self._signer = RequestSigner(info)
        self._watch = TrialWatch(self.guard.stamped, self._recorders, is_recorded=has_trial_recorder(info.launch_text))
        self._effect = ConditionEffect(
            self._signer, self.request.publish, lambda event: self.store and self.store.do(lambda progress: event)
        )
        self._talking = PushToTalk(self, info, self.name)
        if self.clock.is_virtual:
            self.log.warning("a study needs real time; nobody can take part in virtual time")
            return
        self._epoch_s = to_s(wall_time_ns()) - self.clock.now_s()
        self._pictures = JpegCache()
        self.store = SessionStore(self._protocol, self._folder, self.tell)
        if code := self.store.go_on(self._now_s()):
            self.log.info("going on with the unfinished session of %s", code)
        elif left := self.store.left_behind():
            self.log.warning("%s", left)
        roles = {"operator": "experimenter", "participant": "participant"}  # one token for console and study
        page = Page("study", "Study", "study/page.html", self, wire.decode, roles)
        self._recordings = RecordingsHandler(self._folder, self._now_s)
        self.pages.start(page, self.clock, self.log, beside=(recordings(self._recordings),), node=self)
        self.pages.reserve((*RESERVED, *info.parameters))
        for name, file in self._protocol.media.items():
            self.pages.serve(media_name(name), file.read_bytes(), MEDIA[file.suffix.lower()])

    def on_stop(self) -> None:
        """Close the pages."""
        if self.store is not None:
            self.pages.stop(self.store.version)
            self.store.close()
            self.log.info("sessions, their answers and recordings are in %s", self._folder)
        if self._recordings is not None:
            self._recordings.close()

    def _now_s(self) -> float:
        """Unix time as the clock counts on from the start: sessions outlive runs."""
        return round(self._epoch_s + self.clock.now_s(), 3)

    @on(PagePorts.heard)
    def note_heard(self, message: Utterance) -> None:
        self._talking.note(message)
        self._spoken(message, "heard")

    @on(PagePorts.said)
    def note_said(self, message: Utterance) -> None:
        self._spoken(message, "said")

    @on(PagePorts.leases)
    def note_lease(self, lease: Lease) -> None:
        self._effect.learn(lease)

    @on(PagePorts.answers)
    def note_answer(self, answer: GuardAnswer) -> None:
        self._signer.answered(answer)

    @on(recorder)
    def note_recorder(self, state: Stamped[RecorderState]) -> None:
        self._recorders.take(state)

    @on(responses)
    def note_response(self, message: WizardResponse) -> None:
        """How long the participant waited for the wizard belongs to the trial that runs."""
        store = self.store
        if store is None or store.progress is None or store.progress.phase != "running":
            return
        after_s = round(message.after_s, 3)
        acted = Event("wizard", self._now_s(), by=message.by, how=message.act, value=after_s)
        try:
            store.note(acted)
        except SessionRefused as refusal:
            self._not_kept("how long the wizard took", refusal)

    @on(PagePorts.marks)
    def note_mark(self, mark: Stamped[Mark]) -> None:
        """What a wizard marks in a trial, their own mistakes too, belongs to it; what the study has marked is there."""
        store, message = self.store, mark.message
        if mark.envelope.source == self.name or store is None or store.progress is None:
            return
        if store.progress.phase != "running":
            return
        told = Event("mark", self._now_s(), by=message.by, step=store.progress.step.ident, item=message.label,
                     text=message.note, how=HEARD)  # fmt: skip
        try:
            store.note(told)
        except SessionRefused as refusal:
            self._not_kept(f"the mark {message.label!r}", refusal)

    def _spoken(self, message: Utterance, topic: str) -> None:
        """What is said while a session runs belongs to it, so that a page that comes back shows it."""
        if self.store is None or self.store.progress is None or self.store.progress.is_over:
            return
        spoken = Event("said", self._now_s(), by=message.speaker, text=message.text, how=topic)
        try:
            self.store.note(spoken)
        except SessionRefused as refusal:
            self._not_kept(f"what {message.speaker} said", refusal)

    def _not_kept(self, what: str, refusal: SessionRefused) -> None:
        """The disk is full: the experimenter is told each time."""
        self.log.warning("%s: %s", what, refusal)
        self.pages.notice("experimenter", f"{what}: {refusal}")

    def tell(self, progress: SessionProgress, event: Event) -> None:
        """Publish an event that is on the disk."""
        if event.what == "begin":
            self.pages.send_away()  # who took part before sees nothing of this session
            self._is_part_over = progress.is_over
        elif progress.is_over and not self._is_part_over:
            self._is_part_over = True
            self.pages.renew("participant")
        if event.what == "answer":
            self.answer.publish(
                StudyAnswer(participant=progress.code, step=event.step, item=event.item, value=str(event.value))
            )
        elif event.what == "note":
            self.note.publish(StudyNote(participant=progress.code, step=event.step, text=event.text, by=event.by))
        elif event.what == "mark" and event.how == HEARD:
            pass  # whoever made it has published it
        elif event.what == "mark":
            self.mark.publish(Mark(label=event.item, note=event.text, by=event.by))
        elif event.what == "trial":
            self._tell_trial(progress, event)
        elif event.what not in ("said", "wizard", "robot", "recorder"):
            text = words_of(event) if event.what == "condition" else ""
            self.step.publish(
                StudyStep(participant=progress.code, step=event.step, what=event.what, by=event.by, text=text)
            )
            if event.what == "withdraw" and self._setting_is_on:
                self._set(progress, is_on=False)
        self.pages.poke()

    def _tell_trial(self, progress: SessionProgress, event: Event) -> None:
        step = next(one for one in progress.steps if one.ident == event.step)
        assert step.task is not None
        assert step.condition is not None
        is_start = event.how == "started"
        if not is_start:  # so that it is still in the trial's own recording
            self._set(progress, is_on=False)
        named: dict[str, Any] = {
            "participant": progress.code, "number": event.number, "attempt": event.attempt,
            "task": step.task.id, "condition": step.condition.id,
            "shares_words": progress.protocol.consent.shares_words,
        }  # fmt: skip
        phase = cast(Literal["started", "completed", "aborted", "time", "interrupted"], event.how)
        self.trial.publish(Trial(**named, phase=phase))
        self.running.publish(RunningTrial(**named) if is_start else RunningTrial())
        if is_start:
            self._set(progress, is_on=True)

    def _set(self, progress: SessionProgress, *, is_on: bool) -> None:
        """The condition comes into force, or ceases to be."""
        self._setting_is_on = is_on
        now_s, now_ns = self._now_s(), self.clock.now_ns()
        condition = progress.step.condition
        if is_on and condition is not None:
            canned = tuple((one["text"], one["as"], one["key"]) for one in self._canned.get(condition.id, ()))
            seats = {str(seat): holder for seat, holder in condition.seats.items()}
            self.setting.publish(
                StudySetting(
                    participant=progress.code,
                    condition=condition.id,
                    is_on=True,
                    seats=seats,
                    utterances=canned,
                    gestures=tuple(one.get("gesture", "") for one in self._canned.get(condition.id, ())),
                    groups=tuple(one.get("group", "") for one in self._canned.get(condition.id, ())),
                    voices=self._protocol.wizard.voices,
                    locked=self._protocol.wizard.lock,
                )
            )
            self._effect.begin(progress, now_s, now_ns)
        else:
            self.setting.publish(StudySetting(participant=progress.code, condition="", is_on=False, seats={}))
            self._effect.end(progress, now_s, now_ns)

    # --- what the server asks for (the server's thread)

    def welcome(self, session: Session) -> dict[str, Any]:
        """All that a page needs to know once."""
        return {"t": "welcome", "role": session.role, "lang": self._protocol.language}

    def state(self, session: Session, now_ns: int) -> dict[str, Any]:
        """What this person may see, where their page does not have it yet."""
        notices, session.notices = session.notices, []
        document: dict[str, Any] = {"t": "state", "n": session.state_number, "notices": notices, "view": None}
        store = self.store
        document["stopped"] = is_stopped(self.guard.stamped(), now_ns)
        document["voice"] = self._talking.document(session, is_told_why=session.role == "experimenter")
        if store is None:
            return document
        progress, version = store.progress, store.version
        if session.told != version:
            session.told = version
            if session.role == "experimenter":
                document["view"] = experimenter_view(self._protocol, progress, store.sessions())
            else:  # who has the next address was not there when that session ended
                is_next = progress is not None and progress.is_over and session.token == self.pages.token("participant")
                document["view"] = participant_view(self._protocol, None if is_next else progress)
        is_running = progress is not None and progress.phase == "running"
        session.shown = (progress.allowed.camera,) if progress is not None and is_running else ()
        document["elapsed_s"] = (
            round(progress.elapsed_s(self._now_s()), 1) if progress is not None and is_running else None
        )
        if session.role == "experimenter":
            guard = self.guard.latest()
            document["recorder"] = self._recorders.document(now_ns)
            document["guard"] = None if guard is None else {"mode": guard.mode, "reason": guard.reason}
            document["seats"] = self._effect.documents(progress) if self._protocol.experimenter.sees_condition else []
            if (url := self.pages.url("participant")) != session.told_address:
                session.told_address = url
                document["address"] = {"url": url, "code": path_of(url)}
            document["participants"] = self.pages.roles_here().count("participant")
        return document

    def frame(self, camera: str, view: CameraStream, now_ns: int) -> tuple[dict[str, Any], bytes] | None:
        """The newest picture: of the head camera for the experimenter, of the protocol's choice for the participant."""
        port = {"head": self.head_image, "room": self.room_image}.get(camera)
        stamped = port.stamped() if port is not None else None
        if stamped is None or view.shown == (stamped.envelope.source, stamped.envelope.seq):
            return None
        view.shown = (stamped.envelope.source, stamped.envelope.seq)
        try:
            jpeg = self._pictures.encode(stamped, view.pace.quality)
        except ValueError:
            return None  # no picture; the page goes on without
        height, width = stamped.message.rgb.shape[:2]
        return {"camera": camera, "width": width, "height": height}, jpeg

    def joined(self, session: Session) -> None:
        """A page was opened."""

    def left(self, session: Session) -> None:
        """A page is gone; the session waits."""
        self._talking.left(session)

    def beat(self, now_ns: int) -> None:
        """Ten times a second: a trial ends when its time is over, or when its condition cannot be had."""
        self._talking.beat(now_ns)
        self._signer.beat(now_ns, lambda session, text: self.pages.notice_one(session, text))
        progress = self.store.progress if self.store is not None else None
        if self.store is None or progress is None:
            return
        self.store.catch_up()
        try:
            if progress.phase == "running":
                for event in self._watch.news(progress, self._now_s(), now_ns):
                    self._happened(self.store, event)
            if progress.is_due(self._now_s()):
                self._time_is_over(self.store, now_ns)
            elif self._effect.beat(progress, self._now_s(), now_ns):
                self._end_trial(self.store, "condition", "aborted")
                self.pages.notice("experimenter", NOT_IN_FORCE)
        except SessionRefused as refusal:  # it ended in this very moment, or the disk is full
            if str(refusal) != self._told_beat:  # it is tried again ten times a second
                self.log.warning("%s", refusal)
                self.pages.notice("experimenter", str(refusal))
            self._told_beat = str(refusal)
        else:
            self._told_beat = ""

    def _happened(self, store: SessionStore, event: Event) -> None:
        try:
            store.note(event)
        except SessionRefused as refusal:  # it is kept as soon as there is room
            self.log.warning("%s %s: %s", event.what, event.how, refusal)

    def _time_is_over(self, store: SessionStore, now_ns: int) -> None:
        """The trial has had its time: it counts where the robot can move."""
        problem = self._watch.why_not_end(now_ns)
        if problem:
            self.pages.notice("experimenter", f"the time is over, and the trial does not count: {problem}")
        self._end_trial(store, "clock", "aborted" if problem else "time")

    def _end_trial(self, store: SessionStore, by: str, how: How) -> None:
        store.do(lambda now: now.finish(self._now_s(), by, how, self._watch.recorder))

    def handle(self, session: Session, message: Any) -> None:
        """Do what a person asks for, where their role allows it; a refusal is told in words."""
        if self.store is None:
            return
        try:
            if isinstance(message, StopPressed):  # anybody may
                self._stop(f"{session.role}: {message.why}")
            elif session.role == "experimenter":
                self._experimenter(self.store, session, message)
            else:
                self._participant(self.store, session, message)
        except SessionRefused as refusal:
            session.notice(str(refusal) if session.role == "experimenter" else refusal.code)

    def _experimenter(self, store: SessionStore, session: Session, message: Any) -> None:
        now_s, by = self._now_s(), session.role
        match message:
            case wire.BeginSession():
                store.begin(message.number, now_s, by)
            case wire.StartTrial():
                problem = self._effect.why_not(store.progress) if store.progress is not None else ""
                if problem := problem or self._watch.why_not_begin(self.clock.now_ns()):
                    raise SessionRefused(problem)
                self._watch.begin(self.clock.now_ns())
                store.do(lambda progress: progress.start(now_s, by))
            case wire.EndTrial():
                if message.how == "completed" and (problem := self._watch.why_not_end(self.clock.now_ns())):
                    raise SessionRefused(f"{problem}; or abort the trial")
                self._end_trial(store, by, message.how)
            case wire.PauseTrial():
                store.do(lambda progress: progress.pause(now_s, by, is_on=message.is_on))
                if message.is_on:
                    self._stop("the experimenter pauses the trial")
                else:
                    self._resume(session)
            case wire.Skip():
                store.do(lambda progress: progress.skip(now_s, by))
            case wire.Withdraw():
                self._withdraw(store, now_s, by)
            case wire.ExperimenterNote():
                store.do(lambda progress: progress.note(now_s, by, message.text))
            case NoteMark():
                store.do(lambda progress: progress.mark(now_s, by, message.label, message.note))
            case Resume():
                self._resume(session)
            case _:
                raise SessionRefused("only the participant does that")

    def _participant(self, store: SessionStore, session: Session, message: Any) -> None:
        now_s = self._now_s()
        match message:
            case wire.Agree():
                store.do(lambda progress: progress.consent(now_s, message.ticked))
            case wire.AnswerItem():
                is_known = store.progress is not None and store.progress.has(message.step, message.item, message.value)
                if not is_known:  # a page says again what it cannot know to have arrived
                    self._answer(store, now_s, message)
            case wire.Submit():
                store.do(lambda progress: progress.submit(now_s, message.step, message.width_px))
            case wire.Withdraw():
                self._withdraw(store, now_s, store.progress.code if store.progress is not None else "")
            case wire.Speak():
                self._say(store, session, message.text)
            case Talk() | SoundPiece() | Talked():
                self._talk(store, session, message)
            case _:
                raise SessionRefused("only the experimenter does that", "not_yours")

    def _answer(self, store: SessionStore, now_s: float, message: wire.AnswerItem) -> None:
        """Keep an answer; a number that does not fit its question leaves none, since the page shows none of before."""
        try:
            store.do(lambda progress: progress.answer(now_s, message.step, message.item, message.value))
        except SessionRefused as refusal:
            progress = store.progress
            is_there = progress is not None and message.item in progress.answers.get(message.step, {})
            if refusal.code == "unfit" and is_there and isinstance(message.value, int):
                store.do(lambda now: now.answer(now_s, message.step, message.item, ""))
            raise

    def _talk(self, store: SessionStore, session: Session, message: Talks) -> None:
        if store.listens:
            self._talking.handle(session, message, COLLABORATOR, self.clock.now_ns())
        else:
            self._talking.refuse(session, message, "not_heard")

    def _withdraw(self, store: SessionStore, now_s: float, by: str) -> None:
        """Nobody takes part any more: a trial that runs ends, with its recording, and the robot stops."""
        if store.progress is not None and store.progress.phase == "running":
            self._stop(f"{by} does not take part any more")
            self._end_trial(store, by, "aborted")
        store.do(lambda progress: progress.withdraw(now_s, by))

    def _say(self, store: SessionStore, session: Session, text: str) -> None:
        text = " ".join(text.split())
        is_stop = self._is_stop(text)
        if not store.listens:
            if is_stop:
                self._stop(f"{session.role}: {text}")
                raise SessionRefused("nobody listens at the moment, but the robot stops", "not_heard_stops")
            raise SessionRefused("nobody listens at the moment; that was not said", "not_heard")
        if not text or (not session.words.allows(self.clock.now_ns()) and not is_stop):
            raise SessionRefused("not so fast: that was not said", "too_fast")
        person = f"{self.name}/{session.ident}"
        self.speak.publish(Utterance(speaker=COLLABORATOR, text=text, person=person, is_typed=True))

    def _resume(self, session: Session) -> None:
        self.order.publish(self._signer.order("resume", session.role, self.clock.now_ns(), session.ident))

    def _stop(self, text: str) -> None:
        self.interrupt.publish(Interrupt(id=self._message_ids.next(), depth="stop", text=text, by="console"))
