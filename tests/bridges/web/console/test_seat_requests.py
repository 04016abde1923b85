"""The console's seats in step with the guard's leases: whom they go to, and whom not."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from bridges.web.console.feed import RunFeed
from bridges.web.console.occupancy import GRACE_S
from bridges.web.console.seat_requests import Seats
from bridges.web.console.signing import RequestSigner
from bridges.web.http.graph_messages import SeatWord
from bridges.web.http.message_ids import MessageIds
from bridges.web.http.open_page import Session
from nodes.msgs import GuardState, Interrupt, Utterance
from runtime.clock import to_ns
from runtime.coordination.lease import Lease
from runtime.run_facts import RunFacts
from tests.support.sentences import sentence


class Sent:
    """A port that keeps what is published."""

    def __init__(self) -> None:
        self.messages: list[Any] = []

    def publish(self, message: Any, stems_from: Any = ()) -> None:
        self.messages.append(message)


def seated(*sessions: Session) -> tuple[Seats, Any]:
    """The first of them drives."""
    ports = SimpleNamespace(name="console", request=Sent(), interrupt=Sent(), seat_word=Sent())
    seats = Seats(cast(Any, ports), RequestSigner(RunFacts()), MessageIds("console", 0))
    seats.sessions = list(sessions)
    seats.learn(Lease(seat="policy", holder="human_policy", number=1))
    seats.take("policy", sessions[0], 0, force=False)
    return seats, ports


def test_a_tab_that_comes_back_as_a_viewer_does_not_keep_the_seat_of_the_operator_it_was() -> None:
    ada = Session("tab", "operator", "Ada")
    seats, ports = seated(ada)
    seats.left(ada, to_ns(1.0))
    seats.joined(Session("tab", "viewer", "Ada"))
    seats.beat(to_ns(1.0 + GRACE_S + 0.1))
    assert [one.depth for one in ports.interrupt.messages] == ["stop"]
    assert [one.do for one in ports.request.messages] == ["give"]


def test_a_seat_is_not_given_to_somebody_who_has_gone() -> None:
    ada, bo = Session("a", "operator", "Ada"), Session("b", "operator", "Bo")
    seats, _ = seated(ada, bo)
    seats.ask("policy", bo, 0)
    seats.sessions = [ada]  # Bo's page is closed before the next beat
    seats.answer("policy", 1, ada, is_granted=True)
    assert seats.holds("policy", ada)
    assert ada.notices[-1] == "Bo is gone"


def test_a_story_that_grows_while_it_is_told_is_told_as_it_was() -> None:
    feed = RunFeed(0)

    class Grows(dict[str, Any]):
        def __getitem__(self, key: str) -> Any:
            if len(feed.events) == 1:
                feed.take(Utterance(speaker="robot", text="and more"), topic="said", at_ns=1)
            return super().__getitem__(key)

    feed.tell("said", "robot", "first", 0)
    feed.events[0] = Grows(feed.events[0])
    events, number = feed.since(0, dialogue_only=False)
    assert [event["text"] for event in events] == ["first"]
    assert [event["text"] for event in feed.since(number, dialogue_only=False)[0]] == ["and more"]


def test_a_participant_is_not_told_which_of_the_robots_words_a_person_chose() -> None:
    feed = RunFeed(0)
    feed.take(Utterance(speaker="robot", text="Hello"), topic="said", at_ns=1, provenance="person:console")
    (wizard,), (participant,) = (feed.since(0, dialogue_only=only)[0] for only in (False, True))
    assert wizard["person"]
    assert participant == {**wizard, "person": False}


def test_each_stop_and_re_arming_is_told_once_in_the_guard_s_own_words() -> None:
    feed, why = RunFeed(0), "terminal: pressed by Ana"
    for mode, reason, estop in (
        ("moving", "commanded by policy", ""),
        ("stopped", "stopped by console: operator: space bar", ""),
        ("stopped", f"emergency stop: {why}", why),
        ("stopped", f"emergency stop: {why}", why),
        ("stopped", "re-armed by Ana, waiting to be told to go on", ""),
        ("holding", "resumed by console, no command yet", ""),
        ("holding", "no command for 150 ms", ""),
    ):
        state = GuardState(mode=cast(Any, mode), reason=reason, estop=estop)
        feed.take(state, topic="guard/state", at_ns=1)
    assert [event["text"] for event in feed.since(0, dialogue_only=False)[0]] == [
        "moving: commanded by policy",
        "stopped by console: operator: space bar",
        "estopped: emergency stop: terminal: pressed by Ana",
        f"stopped: {sentence('bridges.rearmed', by='Ana')}",
        "holding: resumed by console, no command yet",
    ]


def test_a_person_s_wish_and_the_guard_s_answer_are_one_line_and_a_later_one_is_told() -> None:
    feed = RunFeed(0)
    feed.take(SeatWord(seat="policy", do="take", by="Ada"), topic="console/seat", at_ns=0)
    feed.take_lease(Lease(seat="policy", holder="human_policy", number=2, by="Ada", displaced="policy"), to_ns(0.1))
    assert len(feed.events) == 1
    feed.take_lease(Lease(seat="policy", holder="policy", number=3, displaced="human_policy"), to_ns(9.0))
    assert [event["who"] for event in feed.events] == ["Ada", "policy"]


def test_a_stop_is_one_line_and_the_guard_s_own_stop_for_the_same_reason_is_told_again() -> None:
    feed = RunFeed(0)
    feed.take(Interrupt(id="1", depth="stop", text="stop button", by="Ada"), topic="interrupt", at_ns=0)
    feed.take(GuardState(mode="stopped", reason="by Ada: stop button"), topic="guard", at_ns=to_ns(0.1))
    assert [event["kind"] for event in feed.events] == ["interrupt"]
    feed.take(GuardState(mode="holding", reason="resumed"), topic="guard", at_ns=to_ns(5.0))
    feed.take(GuardState(mode="stopped", reason="by Ada: stop button"), topic="guard", at_ns=to_ns(9.0))
    assert [event["kind"] for event in feed.events] == ["interrupt", "guard", "guard"]
