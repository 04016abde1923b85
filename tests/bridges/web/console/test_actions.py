"""What people at the console do: a stop is never too much, and no name of theirs comes twice in a run."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from bridges.web.console.actions import GESTURE_S, Actions
from bridges.web.console.canned_phrases import CANNED, Canned, read_canned
from bridges.web.console.node import Console
from bridges.web.console.seat_requests import Seats
from bridges.web.console.signing import RequestSigner
from bridges.web.http.message_ids import MessageIds
from bridges.web.http.open_page import WORDS_BURST, CameraStream, Session
from bridges.web.http.wire import ActRequest, BeQuiet, Drive, Resume, Say, SetVoice, Take, Unsay
from bridges.web.speech.push_to_talk import STOP_WORDS, load_stop_words
from nodes.msgs import TAKEN_BACK, Feedback, GuardState, Image, Mark
from nodes.stretch.limits import STRETCH_3
from runtime.clock import to_ns
from runtime.coordination.lease import Lease
from runtime.errors import ParameterError, UserError
from runtime.message import Envelope, Stamped
from runtime.run_facts import RunFacts
from tests.bridges.web.console.test_seat_requests import Sent
from tests.support.sentences import sentence
from tests.support.standing import standing


@pytest.mark.parametrize("role", ["operator", "participant"])
@pytest.mark.parametrize("words", ["Stop!", sentence("bridges.hurts"), "stop stop stop"])
def test_a_stop_is_heard_however_much_was_said_before_it(role: str, words: str) -> None:
    ports = SimpleNamespace(name="console", clock=SimpleNamespace(now_ns=lambda: 1), say_heard=Sent(), say_said=Sent())
    nothing: Any = SimpleNamespace(message_ids=MessageIds("console", 0))
    actions = Actions(
        cast(Any, ports), nothing, nothing, nothing, nothing, nothing, "robot", load_stop_words(STOP_WORDS)
    )
    talker = Session("t", role, "Tom")
    for number in range(int(WORDS_BURST) + 5):
        actions.handle(talker, Say("collaborator", f"word {number}"))
    for _ in range(3):
        actions.handle(talker, Say("collaborator", words))
    heard = [one.text for one in ports.say_heard.messages]
    assert heard == [*(f"word {number}" for number in range(int(WORDS_BURST))), *[words] * 3]
    assert set(talker.notices) == {sentence("bridges.not_so_fast")}


def test_re_arming_lets_go_of_the_console_s_button_and_of_what_was_typed_at_a_terminal() -> None:
    latched = SimpleNamespace(
        latest=lambda: GuardState(mode="stopped", reason="emergency stop", estop="terminal: pressed by Ana")
    )
    ports = SimpleNamespace(
        name="console", clock=SimpleNamespace(now_ns=lambda: 1), guard=latched, estop=Sent(), order=Sent()
    )
    seats: Any = SimpleNamespace(signer=RequestSigner(RunFacts()), message_ids=MessageIds("console", 0))
    nothing: Any = SimpleNamespace()
    actions = Actions(cast(Any, ports), nothing, seats, nothing, nothing, nothing, "robot", load_stop_words(STOP_WORDS))
    actions.handle(Session("t", "operator", "Tom"), Resume())
    assert [(one.source, one.is_pressed) for one in ports.estop.messages] == [("console", False), ("terminal", False)]
    assert [one.do for one in ports.order.messages] == ["rearm"]


def test_a_console_that_is_started_again_gives_no_name_twice() -> None:
    runs = [MessageIds("console", to_ns(start_s)) for start_s in (4021.5, 4023.25)]
    names = [message_ids.next(kind) for message_ids in runs for kind in ("", "interrupt") for _ in range(3)]
    assert len(set(names)) == len(names)


def test_what_tells_a_stop_has_to_be_there() -> None:
    with pytest.raises(UserError, match=r"nodes\.nothing"):
        Console(stop_words="nodes.nothing:is_stop")
    with pytest.raises(ParameterError, match=r"no function; expected one like nodes\.interrupts\.intent:is_stop"):
        Console(stop_words="nodes.stretch.limits:STRETCH_3")


def test_a_trial_that_locks_the_collaborator_s_voice_hides_its_sentences_and_refuses_it() -> None:
    ports = SimpleNamespace(name="console", clock=SimpleNamespace(now_ns=lambda: 1), say_heard=Sent(), say_said=Sent())
    nothing: Any = SimpleNamespace(message_ids=MessageIds("console", 0))
    canned = Canned(read_canned(CANNED))
    actions = Actions(
        cast(Any, ports), nothing, nothing, nothing, nothing, nothing, "robot", str.istitle, lambda: canned.voices
    )
    wizard, participant = Session("w", "operator", "Wiz"), Session("p", "participant", "P01")
    canned.set([], ("robot",))
    actions.handle(wizard, Say("collaborator", "i am on my way."))
    actions.handle(wizard, Say("robot", "i am on my way."))
    actions.handle(participant, Say("collaborator", "hello"))
    assert {one["as"] for one in canned.now} == {"robot"}
    assert wizard.notices == [sentence("bridges.not_said", voice="robot")]
    assert [one.text for one in ports.say_said.messages] == ["i am on my way."]
    assert [one.text for one in ports.say_heard.messages] == ["hello"]
    version = canned.version
    canned.set([])
    assert (canned.voices, canned.version) == (("robot", "collaborator"), version + 1)


@pytest.mark.parametrize("how", ["success", "failure", "nobody answers", "the seat is lost"])
def test_a_gesture_has_the_seat_until_it_is_done(how: str) -> None:
    feedback = SimpleNamespace(latest=lambda: None)
    ports: Any = SimpleNamespace(
        name="console", clock=SimpleNamespace(now_ns=lambda: 0), request=Sent(), seat_word=Sent(), act=Sent(),
        feedback=feedback,
    )  # fmt: skip
    wizard, nothing = Session("w", "operator", "Wiz"), cast(Any, SimpleNamespace())
    seats = Seats(ports, RequestSigner(RunFacts()), MessageIds("console", 0))
    seats.sessions = [wizard]
    seats.learn(Lease(seat="vlm", holder="vlm", number=1))
    actions = Actions(ports, nothing, seats, nothing, nothing, nothing, "robot", str.istitle)
    actions.handle(wizard, ActRequest("pick", "cup"))
    assert wizard.notices == [sentence("bridges.take_the_seat")]
    actions.handle(wizard, ActRequest("nod"))
    actions.beat(to_ns(0.1))
    assert ([one.do for one in ports.request.messages], ports.act.messages) == (["take"], [])
    seats.learn(Lease(seat="vlm", holder="human_vlm", number=2))
    actions.beat(to_ns(0.2))
    actions.beat(to_ns(0.3))
    (nod,) = ports.act.messages
    assert [one.do for one in ports.request.messages] == ["take"]
    if how == "the seat is lost":
        seats.give("vlm", wizard, to_ns(0.4))
    elif how != "nobody answers":
        feedback.latest = lambda: Feedback(action_id=nod.id, status=cast(Any, how))
    actions.beat(to_ns(0.5 if how != "nobody answers" else GESTURE_S + 0.1))
    assert [one.do for one in ports.request.messages] == ["take", "give"]
    seats.learn(Lease(seat="vlm", holder="vlm", number=3))
    actions.handle(wizard, ActRequest("nod"))  # and it can be done again
    assert [one.do for one in ports.request.messages] == ["take", "give", "take"]


@pytest.mark.parametrize(("head_s", "wrist_s", "is_driven"), [(0.2, 9.0, True), (1.2, 0.1, False), (None, 9.0, True)])
def test_nobody_drives_by_a_picture_that_stands_still_however_new_another_camera_s_is(
    head_s: float | None, wrist_s: float, is_driven: bool
) -> None:
    now_ns = to_ns(20.0)
    robot = Stamped(standing(now_ns), Envelope(topic="robot/state", source="driver", seq=1, published_ns=now_ns))
    ports: Any = SimpleNamespace(
        name="console", clock=SimpleNamespace(now_ns=lambda: now_ns), command=Sent(),
        robot=SimpleNamespace(stamped=lambda: robot), setpoint=SimpleNamespace(stamped=lambda: None),
    )  # fmt: skip
    driver, nothing = Session("w", "operator", "Wiz"), cast(Any, SimpleNamespace())
    for camera, age_s in (("head", head_s), ("wrist", wrist_s)):
        if age_s is not None:
            image = Image(camera=camera, captured_ns=now_ns - to_ns(age_s), rgb=np.zeros((0, 0, 3), np.uint8))
            seen = Stamped(image, Envelope(topic=camera, source=camera, seq=1, published_ns=image.captured_ns))
            driver.views[camera] = CameraStream(seen_image=seen)
    seats: Any = SimpleNamespace(message_ids=MessageIds("console", 0), holds=lambda *_: True)
    actions = Actions(ports, nothing, seats, nothing, STRETCH_3, cast(Any, None), "robot", str.istitle)
    actions.handle(driver, Drive(ahead=1.0))
    assert (len(ports.command.messages) == 1) is is_driven
    why_not = "" if is_driven else "the picture of the head camera is 1 s old: not driving by it"
    assert actions.driving.refusal(driver, ports.clock.now_ns()) == why_not


def test_a_sentence_of_the_robot_can_be_taken_back_for_a_second_and_a_stop_does_not_wait() -> None:
    now_ns = to_ns(10.0)
    ports = SimpleNamespace(
        name="console", clock=SimpleNamespace(now_ns=lambda: now_ns), say_heard=Sent(), say_said=Sent(), mark=Sent()
    )
    nothing: Any = SimpleNamespace(message_ids=MessageIds("console", 0))
    actions = Actions(cast(Any, ports), nothing, nothing, nothing, nothing, nothing, "robot", str.isupper, undo_s=1.0)
    wizard, other = Session("w", "operator", "Wiz"), Session("o", "operator", "Ada")
    actions.handle(wizard, Say("robot", "slip"))
    assert actions.unsaid(wizard, now_ns) == {"text": "slip", "left_s": 1.0}
    actions.handle(other, Unsay())  # not theirs
    actions.handle(wizard, Unsay())
    assert ports.mark.messages == [Mark(label=TAKEN_BACK, note="slip", by="Wiz")]
    actions.handle(wizard, Say("robot", "one"))
    actions.handle(wizard, Say("robot", "two"))  # the one before it is meant
    assert [one.text for one in ports.say_said.messages] == ["one"]
    now_ns += to_ns(0.9)
    actions.beat(now_ns)
    assert actions.unsaid(wizard, now_ns) is not None
    now_ns += to_ns(0.1)
    actions.beat(now_ns)
    assert [one.text for one in ports.say_said.messages] == ["one", "two"]
    actions.handle(wizard, Say("collaborator", "STOP"))
    assert [one.text for one in ports.say_heard.messages] == ["STOP"]


@pytest.mark.parametrize(
    ("held_s", "round_trip_ms", "is_driven"), [(0.1, 0.0, True), (0.7, 0.0, False), (0.7, 300.0, True)]
)
def test_what_was_held_long_ago_is_not_driven_by_and_a_long_link_is_no_reason(
    held_s: float, round_trip_ms: float, is_driven: bool
) -> None:
    now_ns = to_ns(20.0)
    robot = Stamped(standing(now_ns), Envelope(topic="robot/state", source="driver", seq=1, published_ns=now_ns))
    ports: Any = SimpleNamespace(
        name="console", clock=SimpleNamespace(now_ns=lambda: now_ns), command=Sent(),
        robot=SimpleNamespace(stamped=lambda: robot), setpoint=SimpleNamespace(stamped=lambda: None),
    )  # fmt: skip
    seats: Any = SimpleNamespace(message_ids=MessageIds("console", 0), holds=lambda seat, session: True)
    nothing: Any = SimpleNamespace()
    actions = Actions(ports, nothing, seats, nothing, STRETCH_3, nothing, "robot", str.istitle)
    wizard = Session("w", "operator", "Wiz")
    wizard.round_trip_ms = round_trip_ms
    actions.handle(wizard, Drive(ahead=1.0, at_ms=(20.0 - held_s) * 1e3))
    assert bool(ports.command.messages) is is_driven
    assert ("0.7 s late" in actions.driving.refusal(wizard, now_ns)) is not is_driven


def test_a_study_locks_parts_of_the_page_and_a_stop_is_said_all_the_same() -> None:
    ports = SimpleNamespace(name="console", clock=SimpleNamespace(now_ns=lambda: 1), say_heard=Sent(), say_said=Sent())
    nothing: Any = SimpleNamespace(message_ids=MessageIds("console", 0))
    canned = Canned(read_canned(CANNED))
    canned.set([], (), ("free text", "drive"))
    actions = Actions(
        cast(Any, ports), nothing, nothing, nothing, nothing, nothing, "robot", load_stop_words(STOP_WORDS),
        locked=lambda: canned.locked, is_canned=canned.has,
    )  # fmt: skip
    wizard = Session("w", "operator", "Wiz")
    for text in ("Hello there, what I like.", "I will pick up the blue cup.", "Stop!"):
        actions.handle(wizard, Say("collaborator", text))
    actions.handle(wizard, Take("policy"))
    assert [one.text for one in ports.say_heard.messages] == ["I will pick up the blue cup.", "Stop!"]
    assert wizard.notices == [sentence("bridges.part_is_locked", part=part) for part in ("free text", "drive")]


def test_gestures_of_a_sentence_come_one_after_the_other_and_be_quiet_ends_them() -> None:
    feedback = SimpleNamespace(latest=lambda: None)
    ports: Any = SimpleNamespace(
        name="console", clock=SimpleNamespace(now_ns=lambda: 0), request=Sent(), seat_word=Sent(), act=Sent(),
        feedback=feedback, voice_order=Sent(),
    )  # fmt: skip
    wizard, nothing = Session("w", "operator", "Wiz"), cast(Any, SimpleNamespace())
    seats = Seats(ports, RequestSigner(RunFacts()), MessageIds("console", 0))
    seats.sessions = [wizard]
    seats.learn(Lease(seat="vlm", holder="vlm", number=1))
    actions = Actions(ports, nothing, seats, nothing, nothing, nothing, "robot", str.istitle)
    for _ in range(3):
        actions.handle(wizard, ActRequest("nod"))
    seats.learn(Lease(seat="vlm", holder="human_vlm", number=2))
    actions.beat(to_ns(0.2))
    feedback.latest = lambda: Feedback(action_id=ports.act.messages[0].id, status="success")
    actions.beat(to_ns(0.3))
    actions.beat(to_ns(0.4))
    assert (len(ports.act.messages), [one.do for one in ports.request.messages]) == (2, ["take"])
    actions.handle(wizard, SetVoice(volume=0.5, speed=1.2, pitch=0.9))
    actions.handle(wizard, BeQuiet())
    feedback.latest = lambda: Feedback(action_id=ports.act.messages[1].id, status="success")
    actions.beat(to_ns(0.5))
    assert (len(ports.act.messages), [one.do for one in ports.request.messages]) == (2, ["take", "give"])
    told = [(one.by, one.is_silenced, one.volume, one.speed, one.pitch) for one in ports.voice_order.messages]
    assert told == [("Wiz", False, 0.5, 1.2, 0.9), ("Wiz", True, 0.5, 1.2, 0.9)]
