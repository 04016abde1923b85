"""A partner in mind: odds by hand, and a planner that asks before it takes what somebody will miss."""

from __future__ import annotations

import pytest

from nodes.msgs import Reference, Scene, SkillCatalogue, Subtask, Utterance
from nodes.planner.orders import Order, Surroundings
from nodes.planner.partner import PRIOR, RATIOS, Partner, PartnerMind, doubt_about
from nodes.planner.scripted import ScriptedPlanner
from nodes.planner.talk.questions import WAITS
from nodes.policy.skill_catalogue import SPECS, catalogue_of
from runtime import Node, NodeSpec, Publisher, QoS, Simulation, Subscription, every, on
from tests.nodes.planner.test_rules import ORDER, seen

WORLD = Surroundings(seen().scene, tuple(SPECS.values())).world


def after(*texts: str) -> dict[tuple[str, str], float]:
    mind = PartnerMind()
    for text in texts:
        mind.hear(text, WORLD)
    return {(one.thing.label, one.thing.colour): one.probability for one in mind.predict(seen().scene)}


@pytest.mark.parametrize(
    ("text", "why"),
    [("The blue cup is mine", "owns"), ("My coffee is in the blue cup", "owns"), ("I like the blue cup", "uses"),
     ("The blue cup was on sale", "mentions"), ("Leave the blue cup alone", "objects"),
     ("Put the blue cup in the bin", "orders")],
)  # fmt: skip
def test_words_change_the_odds_by_bayes_rule(text: str, why: str) -> None:
    odds = PRIOR / (1 - PRIOR) * RATIOS[why]
    found = after(text)
    assert found["cup", "blue"] == pytest.approx(odds / (1 + odds), abs=1e-4)
    assert found["cup", "red"] == pytest.approx(PRIOR)


def test_only_what_is_likely_covered_and_not_settled_is_asked_about() -> None:
    mind = PartnerMind()
    mind.hear("My coffee is in the blue cup", WORLD)
    told = mind.predict(seen().scene)
    blue = Reference(label="cup", colour="blue")
    cups = Order("place", (Reference(label="cup", count=0),), (), "bin", "in")
    assert doubt_about(cups, told, 0.3, ()) == blue
    assert doubt_about(cups, told, 0.3, {("cup", "blue")}) is None
    assert doubt_about(Order("place", cups.things, (blue,), "bin", "in"), told, 0.3, ()) is None
    bottles = Order("place", (Reference(label="bottle", count=0),), (), "bin", "in")
    assert doubt_about(bottles, told, 0.3, ()) is None
    assert doubt_about(bottles, told, 0.0, ()) == Reference(label="bottle", colour="brown")  # one that always asks


class Talk(Node):
    """Says these lines at these seconds, and hears what comes of them."""

    role = "ears"
    heard = Publisher(Utterance, "heard")
    scene = Publisher(Scene, "scene")
    skills = Publisher(SkillCatalogue, "skills")
    said = Subscription(Utterance, "said", qos=QoS(required=False))
    subtask = Subscription(Subtask, "subtask", qos=QoS(required=False))

    def __init__(self) -> None:
        self.lines: dict[float, str] = {}
        self.told: list[str] = []
        self.newest: Subtask | None = None

    @every(hz=2)
    def talk(self) -> None:
        self.scene.publish(seen().scene)
        self.skills.publish(catalogue_of(SPECS.values()))
        for at_s in [one for one in self.lines if one <= self.clock.now_ns() * 1e-9 - self.began_s]:
            self.heard.publish(Utterance(speaker="Sam", text=self.lines.pop(at_s)))

    def on_start(self) -> None:
        self.began_s = self.clock.now_ns() * 1e-9

    @on(said)
    def listen(self, utterance: Utterance) -> None:
        self.told.append(utterance.text)

    @on(subtask)
    def follow(self, subtask: Subtask) -> None:
        self.newest = subtask


def talked(lines: dict[float, str], seconds: float, *, has_partner: bool = True) -> Talk:
    person = Talk()
    person.lines = lines
    nodes: list[Node | NodeSpec] = [person, NodeSpec("planner", ScriptedPlanner)]
    simulation = Simulation(*nodes, *([NodeSpec("partner", Partner)] if has_partner else []))
    simulation.run(seconds=seconds)
    simulation.close()
    return person


REMARK, QUESTION = "My coffee is in the blue cup", "May I take the blue cup?"


def test_the_planner_asks_first_and_waits_for_the_answer() -> None:
    person = talked({1.0: REMARK, 3.0: ORDER}, 6.0)
    assert QUESTION in person.told
    assert person.newest is not None
    assert person.newest.state == "wait"


@pytest.mark.parametrize(
    ("answer", "is_left"),
    [("Yes, the blue one can go", False), ("Yes, take it", False), ("No", True), ("No, not the blue one", True)],
)
def test_an_answer_lets_it_go_on_with_or_without_the_thing(answer: str, is_left: bool) -> None:
    person = talked({1.0: REMARK, 3.0: ORDER, 6.0: answer}, 9.0)
    assert person.newest is not None
    assert person.newest.state == "work"
    assert any(one.colour == "blue" for one in person.newest.excluding) == is_left
    assert person.told.count(QUESTION) == 1


def test_what_nobody_answers_is_left_alone() -> None:
    person = talked({1.0: REMARK, 3.0: ORDER}, 3.0 + WAITS["may"][1] + 5.0)
    assert person.newest is not None
    assert person.newest.state == "work"
    assert [one.colour for one in person.newest.excluding] == ["blue"]


def test_a_remark_in_mid_work_is_asked_about_and_without_a_partner_nothing_is() -> None:
    assert QUESTION in talked({1.0: ORDER, 5.0: REMARK}, 8.0).told
    assert not any("?" in text for text in talked({1.0: REMARK, 3.0: ORDER}, 8.0, has_partner=False).told)


def test_an_order_that_is_taken_back_ends_the_question() -> None:
    person = talked({1.0: REMARK, 3.0: ORDER, 5.0: "Never mind, stop that", 8.0: "Put the bottle in the bin"}, 12.0)
    assert person.newest is not None
    assert (person.newest.state, person.newest.things[0].label) == ("work", "bottle")
