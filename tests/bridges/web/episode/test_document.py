"""The page of an episode without a browser: what a participant may see, and what a person's act becomes."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from bridges.web.episode.document import EpisodeDocument, people_of
from bridges.web.episode.node import PersonAtPage, Play, decode
from bridges.web.http.open_page import Session
from nodes.episodes.agents.agent import Agent, ScriptedBrain
from nodes.episodes.dialogue.messages import BeginEpisode
from nodes.episodes.dialogue.moderator import Moderator
from nodes.episodes.dialogue.planning import plan_of_task
from nodes.episodes.dialogue.rules import EpisodeRules
from nodes.msgs.episode import ACT_KINDS, Observation, Outcome, Reply, Score, Scores, Turn
from runtime import Simulation
from runtime.launch.graph import NodeSpec
from tests.support.episode_cast import act, plan
from tests.support.sentences import sentence

BRIEFING = plan_of_task("cello-with-a-crack", order="round-robin", mode="AGENTS", max_turns=20).briefings[1]


def asked(ask: int = 1, **more: Any) -> Observation:
    return Observation(
        episode="e1",
        ask=ask,
        turn=ask,
        asks="act",
        briefing=BRIEFING if ask == 1 else None,
        recipients=tuple(name for name in BRIEFING.participants if name != BRIEFING.name),
        **more,
    )


class Seat:
    """A person's seat in virtual time; the page's part is played by calling the handler."""

    def __init__(self) -> None:
        self.node = PersonAtPage()
        self.sim = Simulation(self.node)
        self.replies: list[Reply] = self.sim.record(PersonAtPage.reply)
        self.session = Session("s", "participant", "Ada")
        self.sim.run(seconds=0.1)

    def hears(self, topic: str, message: Any) -> None:
        self.sim.publish(topic, message)
        self.sim.run(seconds=0.1)

    def does(self, **act: Any) -> None:
        self.node.handle(self.session, Play(**act))
        self.sim.run(seconds=0.1)

    @property
    def page(self) -> dict[str, Any]:
        self.session.told = 0
        episode: dict[str, Any] = self.node.state(self.session, 0)["episode"]
        return episode


def test_a_page_shows_profile_goal_and_of_others_what_the_relationship_shows() -> None:
    seat = Seat()
    seat.hears("episode/seat", asked())
    page = seat.page
    assert (page["name"], page["goal"], page["ask"]) == (BRIEFING.name, BRIEFING.goal, 1)
    mine, other = page["people"]
    assert mine["is_self"]
    assert dict(mine["lines"])["occupation"] == "tax inspector"
    assert (other["name"], other["lines"]) == ("Abena Boateng", [])  # a stranger


def test_backgrounds_become_fields_also_where_a_text_holds_semicolons() -> None:
    background = (
        "Scenario: a room\nBo Li's background: age: 3; secret: she fled; nobody knows: not even Al.\n"
        "Al's background: Unknown\nAl is your friend. You met at sea.\nWhat Bo Li knows:\n- the key: under the mat\n"
    )
    bo, al = people_of(background, "Bo Li", ("Al", "Bo Li"))
    assert bo["lines"] == [
        ["age", "3"],
        ["secret", "she fled"],
        ["nobody knows", "not even Al."],
        ["knows", "- the key: under the mat"],
    ]
    assert al["lines"] == [["to you", "friend. You met at sea."]]


@pytest.mark.parametrize("kind", ACT_KINDS)
def test_what_a_person_does_answers_the_question_that_is_open(kind: Any) -> None:
    seat = Seat()
    seat.hears("episode/seat", asked(heard=(Turn(index=0, number=1, speaker="Abena Boateng", kind="speak"),)))
    seat.does(ask=1, kind=kind, text=" well ", to=("Abena Boateng",))
    [reply] = seat.replies
    assert (reply.episode, reply.seat, reply.ask, reply.held) == ("e1", 1, 1, (0,))
    assert (reply.act.kind, reply.act.argument, reply.act.to) == (kind, "well", ("Abena Boateng",))
    assert seat.page["ask"] == 0


def test_a_second_answer_or_a_late_one_says_nothing() -> None:
    seat = Seat()
    seat.hears("episode/seat", asked())
    for _ in range(2):
        seat.does(ask=1, kind="speak", text="yes")
    seat.hears("episode/seat", asked(2))
    seat.does(ask=1, kind="speak", text="late")
    assert [reply.act.argument for reply in seat.replies] == ["yes"]
    assert seat.session.notices[-1] == sentence("bridges.not_your_turn")


class Scripted(Agent):
    """Bids to say four lines, one after the other."""

    def on_start(self) -> None:
        self._brain = ScriptedBrain([act("speak", f"line {at}. and more of it.") for at in range(4)])


def test_a_silent_person_holds_up_nobody_and_speaks_whenever_there_is_something_to_say() -> None:
    moderator = Moderator(plan(rules=EpisodeRules(order="asynchronous", max_turns=6)))
    moderator.conduct.answer_s = 600.0
    agent = NodeSpec("agent", Scripted, remap={"episode/seat": "episode/seat0"})
    person = PersonAtPage()
    at_page = NodeSpec("person", PersonAtPage, instance=person, remap={"episode/seat": "episode/seat1"})
    sim = Simulation(NodeSpec("moderator", Moderator, instance=moderator), agent, at_page)
    sim.publish("episode/begin", BeginEpisode())
    sim.run(seconds=6.0)
    said = [turn.argument for turn in moderator.conduct.turns]
    assert said[:2] == ["line 0. and more of it.", "line 1. and more of it."]
    session = Session("s", "participant", "Ada")
    page = person.state(session, 0)["episode"]
    assert (page["ask"], [turn["argument"] for turn in page["turns"]][:2]) == (1, said[:2])
    person.handle(session, Play(ask=1, kind="speak", text="At last, let me say something."))
    sim.run(seconds=10.0)
    [mine] = [turn for turn in moderator.conduct.turns if turn.speaker == "Ben Okafor"]
    assert mine.argument == "At last, let me say something."
    sim.close()


def test_empty_words_are_no_act_and_a_refusal_is_shown() -> None:
    seat = Seat()
    seat.hears("episode/seat", asked(problem="Zed is not here"))
    seat.does(ask=1, kind="action", text="  ")
    assert not seat.replies
    assert seat.page["problem"] == "Zed is not here"


def test_what_was_said_to_another_alone_never_reaches_the_page() -> None:
    seat = Seat()
    seat.hears("episode/seat", asked())
    for index, to in enumerate(((), ("Abena Boateng",), (BRIEFING.name,))):
        turn = Turn(index=index, number=1, speaker="Cy", kind="speak", argument=f"words {index}", to=to)
        seat.hears("episode/turn", turn)
    assert [turn["argument"] for turn in seat.page["turns"]] == ["words 0", "words 2"]


def test_turns_of_both_topics_stand_once_and_in_order() -> None:
    seat = Seat()
    turns = [Turn(index=at, number=at, speaker="Abena Boateng", kind="speak", argument=str(at)) for at in range(3)]
    seat.hears("episode/seat", asked())
    seat.hears("episode/turn", turns[2])
    seat.hears("episode/seat", asked(2, heard=tuple(turns)))
    assert [turn["argument"] for turn in seat.page["turns"]] == ["0", "1", "2"]


def test_the_end_shows_reason_scores_and_why() -> None:
    seat = Seat()
    seat.hears("episode/seat", asked())
    seat.hears("episode/outcome", Outcome(episode="e1", state="done", reason="left: Ada", turns=4))
    scores = (
        Score(name="Ada", dimension="BEL", score=9.0, reasoning="fine"),
        Score(name="Bo", dimension="BEL", score=None, reasoning=""),
    )
    seat.hears("episode/scores", Scores(episode="e1", judge="rules", state="done", scores=scores))
    page = seat.page
    assert page["outcome"] == {"reason": "left: Ada", "turns": 4}
    assert page["scores"]["rows"] == [{"name": "Ada", "values": [9]}, {"name": "Bo", "values": [None]}]
    assert page["scores"]["reasons"] == [{"name": "Ada", "dimension": "BEL", "text": "fine"}]


def test_a_page_is_sent_only_what_is_new_and_after_a_reload_everything() -> None:
    seat = Seat()
    seat.hears("episode/seat", asked())
    assert seat.node.state(seat.session, 0)["episode"]["name"] == BRIEFING.name
    assert seat.node.state(seat.session, 0)["episode"] is None
    assert seat.node.state(Session("s", "participant", "Ada"), 0)["episode"]["ask"] == 1


@pytest.mark.parametrize(
    "text",
    [
        '{"t":"act","ask":1,"kind":"shout"}',
        '{"t":"act","ask":1,"kind":"speak","text":"' + "x" * 2001 + '"}',
        '{"t":"drive"}',
        '{"t":"act","ask":1,"kind":"none","sudo":true}',
    ],
)
def test_what_no_page_sends_is_refused(text: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        decode(text)


def test_only_one_of_two_answers_at_the_same_moment_counts() -> None:
    document = EpisodeDocument()
    document.ask(3, available=(), others=(), problem="", is_last=False)
    assert [document.answer(3), document.answer(3), document.answer(0)] == [True, False, False]
