"""Claims about `nodes/planner/words/referents.py`: "that one" is one thing or is asked about, by both minds alike."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from nodes.msgs import Reference, Relation, SceneDescription, SeenPerson, Utterance
from nodes.planner.orders import Surroundings
from nodes.planner.talk.dialogue import Dialogue
from nodes.planner.talk.questions import ANSWER_WITHIN_S
from nodes.planner.words.replies import describe
from runtime.clock import to_ns
from tests.nodes.planner.heard import given_up, hear, report
from tests.nodes.planner.test_rules import CUPS, ORDER, described, seen, thing, told, works_on
from tests.nodes.vlm.test_local import at_work, target
from tests.support.sentences import sentence

WORDINGS = (
    "Not that one.", "No, not this one.", "Not this.", "No, not that!", "But not that one.", "Leave that one.",
    "Leave it.", "Leave that.", "Leave that one where it is.", "Leave it there.", "Leave the cup.", "Keep it.",
    "Keep that one, please.", "I want to keep that one.", "No, I want to keep that one.", "I'd like to keep this one.",
    "Let me keep that one.", "I am keeping that one.", "I want that one.", "I need this one.", "I still need it.",
    "I am still using that one.", "I'm not finished with that one.", "Not that one, I still want it.",
    "That one is mine.", "That's mine.", "This cup is mine.", "Don't take that one.", "Don't throw that away.",
    "Don't put it in the bin.", "Not the one you are holding.", "Leave the one in your hand.",
    "Keep the one that you have.", "Put that one back.", "Put it back.", "That one stays here.", "Spare that one.",
    "All except that one.", "Not that cup.", "Not my cup.", "Wrong one.", "That's the wrong one.",
    "No, the other one.",
)  # fmt: skip
STOPS = ("Leave it alone.", "Please don't touch that cup.", "Hands off that one.", "Hey, that's my cup.")
"""Words that stop the robot too: the planner alone says what is left."""
ALL_CUPS = "the blue cup, the red cup or the white cup"


def pointing(at: str = "cup-blue") -> Surroundings:
    return with_scene(people=(SeenPerson(id="Ann", x_m=0.0, y_m=0.0, points_at=at),))


def holding() -> Surroundings:
    """The red cup."""
    relations = [one for one in seen().scene.relations if one.subject != "cup-red"]
    return with_scene(relations=(*relations, Relation(subject="cup-red", relation="held by", object="robot")))


def with_scene(**changes: object) -> Surroundings:
    around = seen()
    return replace(around, scene=msgspec.structs.replace(around.scene, **changes))  # type: ignore[type-var]  # a Struct


def left_after(text: str, around: Surroundings, first: str = ORDER) -> tuple[list[tuple[str, str]], str, str]:
    """What is left out, the subtask's state and the answer, where the order came before."""
    plan, _ = told(first)
    plan, reply = hear(plan, text, around, to_ns(60.0))
    return [(one.label, one.colour) for one in works_on(plan).excluding], works_on(plan).state, reply


@pytest.mark.parametrize("text", [*WORDINGS, *STOPS])
def test_that_one_is_what_is_pointed_at_or_held_or_else_asked_about(text: str) -> None:
    for around, colour in ((pointing(), "blue"), (holding(), "red")):
        answer = sentence("planner.leaves_a_thing", what=f"{colour} cup")
        left, state, reply = left_after(text, around)
        assert (left, state, reply[: len(answer)]) == ([("cup", colour)], "work", answer)
    assert left_after(text, seen()) == ([], "wait", sentence("planner.which_to_leave", things=ALL_CUPS))


@pytest.mark.parametrize("text", WORDINGS)
def test_the_vlm_leaves_what_it_is_at_and_the_planner_leaves_that_to_it_and_learns_it(text: str) -> None:
    bench = at_work()
    bench.hear(text)
    assert target(bench) != ("blue", "cup")
    bench.vlm.tick()
    assert [(one.label, one.colour) for one in bench.descriptions[-1].left] == [("cup", "blue")]
    plan, _ = told(ORDER)
    at_it = replace(seen(), target=CUPS[1])
    plan, reply = hear(plan, text, at_it, to_ns(60.0))
    assert (describe(plan.orders[0]), reply) == ("Put every cup in the bin", "")
    learned = msgspec.structs.replace(described(plan, "working"), left=bench.descriptions[-1].left)  # type: ignore[type-var]  # a Struct
    plan, _ = report(plan, learned, at_it, to_ns(61.0))
    assert describe(plan.orders[0]) == "Put every cup except the blue cup in the bin"
    assert works_on(plan).id == "task-1.0", "the VLM goes on with what it does"


@pytest.mark.parametrize("text", ["Leave the ugly one.", "Keep the small one.", "Keep the one on the left."])
def test_what_nobody_can_tell_is_asked_about_even_while_something_is_held(text: str) -> None:
    bench = at_work()
    bench.hear(text)
    assert (len(bench.actions), bench.vlm.work.vetoed) == (1, ())
    question = sentence("planner.which_to_leave", things=ALL_CUPS)
    left, state, reply = left_after(text, replace(holding(), target=CUPS[0]))
    assert (left, state, reply.endswith(question)) == ([], "wait", True)
    assert left_after(text, pointing())[0] == [("cup", "blue")]


@pytest.mark.parametrize("text", ["Not the other one.", "Leave the other one.", "The other one is mine."])
def test_the_other_one_is_none_that_is_held_or_pointed_at_or_left_already(text: str) -> None:
    assert left_after(text, holding())[2] == sentence("planner.which_to_leave", things="the blue cup or the white cup")
    assert left_after(text, pointing())[2] == sentence("planner.which_to_leave", things="the red cup or the white cup")
    plan, _ = told(ORDER, "Not the white one.")
    plan, _ = hear(plan, text, holding(), to_ns(90.0))
    assert [one.colour for one in works_on(plan).excluding] == ["white", "blue"]


@pytest.mark.parametrize(
    ("answer", "colours"),
    [
        ("The red one.", ["red"]), ("Red.", ["red"]), ("The red one and the blue one.", ["red", "blue"]),
        ("Leave the white one.", ["white"]), ("None.", []), ("Never mind.", []), ("All of them.", [""]),
    ],
)  # fmt: skip
def test_the_answer_says_which_one_is_left_and_the_rest_goes_on(answer: str, colours: list[str]) -> None:
    plan, _ = told(ORDER, "Leave that one.", "What do you see?", answer)
    assert works_on(plan).state == ("done" if colours == [""] else "work")
    assert [one.colour for one in works_on(plan).excluding] == colours
    assert plan.order is None or describe(plan.order).startswith("Put every cup")


@pytest.mark.parametrize("answer", ["Yes.", "No.", "That one.", "The bottle.", "Not the red one.", "I am not sure."])
def test_an_answer_that_does_not_tell_is_asked_again_and_nothing_is_touched(answer: str) -> None:
    plan, replies = told(ORDER, "Leave that one.", answer)
    assert replies[-1].endswith(sentence("planner.which_to_leave", things=ALL_CUPS))
    assert works_on(plan).state == "wait"
    assert [one.label for one in works_on(plan).excluding if one.label == "cup"] == []


def test_a_finger_answers_and_silence_leaves_all_that_was_asked_about() -> None:
    plan, _ = told(ORDER, "Leave that one.")
    answered, _ = hear(plan, "That one.", pointing("cup-white"), to_ns(35.0))
    assert [one.colour for one in works_on(answered).excluding] == ["white"]
    silent, reply = given_up(plan, to_ns(32.0 + ANSWER_WITHIN_S))
    names = "the red cup, the blue cup and the white cup"
    assert reply == sentence("planner.nobody_said_which", seconds=30, things=names)
    assert [one.colour for one in works_on(silent).excluding] == ["red", "blue", "white"]


@pytest.mark.parametrize(
    "text", ["Leave two of them.", "Keep two cups.", "Leave one cup.", "Keep one.", "Leave a cup."]
)
def test_some_of_them_are_not_taken_for_all(text: str) -> None:
    assert left_after(text, seen()) == ([], "wait", sentence("planner.which_to_leave", things=ALL_CUPS))


def test_two_fingers_and_a_finger_at_what_is_gone_tell_nothing() -> None:
    people = tuple(SeenPerson(id=name, x_m=0.0, y_m=0.0, points_at=f"cup-{name}") for name in ("blue", "white"))
    excluding, state, reply = left_after("Leave that one.", with_scene(people=people))
    things = "the blue cup or the white cup"
    assert (excluding, state, reply) == ([], "wait", sentence("planner.which_to_leave", things=things))
    for at in ("cup-99", "bin-1", "x" * 10_000):
        assert left_after("Leave that one.", pointing(at))[2] == sentence("planner.which_to_leave", things=ALL_CUPS)


def test_where_nothing_was_seen_it_asks_and_takes_the_answer() -> None:
    blind = with_scene(things=(), relations=())
    plan, reply = hear(told(ORDER)[0], "I want to keep that one.", blind, to_ns(60.0))
    assert (reply, works_on(plan).state) == (sentence("planner.which_one_to_leave"), "wait")
    plan, reply = hear(plan, "The red one.", blind, to_ns(70.0))
    assert describe(plan.orders[0]) == "Put every cup except the red cup in the bin"


@pytest.mark.parametrize("text", ["No.", "Leave it.", "Not that."])
def test_of_an_order_about_no_thing_it_is_the_order(text: str) -> None:
    plan, replies = told("Nod.", text)
    assert (works_on(plan).state, replies[-1]) == ("done", sentence("planner.leaves_it"))


def test_a_no_to_nothing_asks_nothing() -> None:
    plan, _ = told("Nod.")
    plan, _ = report(plan, described(plan, "finished"), seen(), to_ns(9.0))
    assert hear(plan, "No.", seen(), to_ns(60.0))[1] == sentence("planner.all_right")


def test_two_of_two_are_both() -> None:
    plan, _ = told(ORDER, "Not the white one.", "Leave both of them.")
    assert sorted(one.colour for one in works_on(plan).excluding) == ["blue", "red", "white"]


@pytest.mark.parametrize("text", ["Any.", "Whichever you like.", "I don't care."])
def test_who_does_not_mind_which_one_is_taken_at_their_word(text: str) -> None:
    plan, _ = told("Put the cup in the bin.", text)
    assert (works_on(plan).text, works_on(plan).things[0].is_any) == ("Put a cup in the bin", True)


def test_what_is_to_be_first_is_done_before_the_rest() -> None:
    plan, _ = told(ORDER, "The blue one first.")
    assert [describe(one) for one in plan.orders] == ["Put the blue cup in the bin", "Put every cup in the bin"]


@pytest.mark.parametrize("text", ["Go ahead.", "Yes, go ahead."])
def test_go_ahead_is_a_yes_to_a_question(text: str) -> None:
    plan, _ = told("Put the red cup in the bin when it is empty.", text)
    assert works_on(plan).text == "Put the red cup in the bin"


@pytest.mark.parametrize("text", ["Okay, never mind.", "Hm, never mind."])
def test_never_mind_behind_a_murmur_ends_the_order(text: str) -> None:
    plan, replies = told(ORDER, text)
    assert (works_on(plan).state, replies[-1]) == ("done", sentence("planner.leaves_it"))


def test_a_question_asked_in_between_leaves_the_planner_s_own_open() -> None:
    plan, _ = told("Put the cup in the bin.", "What do you see?", "The white one.")
    assert works_on(plan).text == "Put the white cup in the bin"


def test_a_new_order_ends_the_question() -> None:
    plan, _ = told(ORDER, "Leave that one.", "Put the bottle in the bin instead.")
    assert (works_on(plan).text, works_on(plan).state, plan.questions) == ("Put the bottle in the bin", "work", ())


@pytest.mark.parametrize("text", ["Leave it.", "I want to keep that one.", "Not that one!", "Don't take it."])
def test_of_an_order_about_one_thing_it_is_that_thing_and_the_order_is_over(text: str) -> None:
    excluding, state, reply = left_after(text, seen(), "Put the red cup in the bin.")
    assert (excluding, state, reply) == (
        [("cup", "red")], "done", sentence("planner.leaves_a_thing", what="red cup"),
    )  # fmt: skip


def test_what_looks_alike_is_left_together_and_of_two_that_do_the_held_one_alone() -> None:
    twin = thing("cup-red-2", "red")
    reds = (CUPS[0], twin)
    two = with_scene(things=(*reds, *(one for one in seen().scene.things if one.is_place)))
    assert left_after("Leave that one.", two)[0] == [("cup", "red")]
    scene = msgspec.structs.replace(  # type: ignore[type-var]  # a Struct
        two.scene, relations=(Relation(subject="cup-red-2", relation="held by", object="robot"),)
    )
    plan, _ = hear(told(ORDER)[0], "Leave that one.", replace(two, scene=scene), to_ns(60.0))
    assert works_on(plan).excluding == (Reference(id="cup-red-2", label="cup", colour="red"),)


def test_of_what_was_done_it_asks_whether_to_take_it_back() -> None:
    plan, _ = told("Put the red cup in the bin.")
    plan, _ = report(plan, described(plan, "finished"), seen("red"))
    plan, asked = hear(plan, "Not that one!", seen("red"), to_ns(60.0))
    assert asked == sentence("planner.shall_take_back", moved="The red cup is in the bin.")
    plan, _ = hear(plan, "Yes.", seen("red"), to_ns(62.0))
    assert works_on(plan).text == "Put the red cup on the table"


@pytest.mark.parametrize(
    ("text", "done"),
    [
        ("Put that one in the bin.", "Put the blue cup in the bin"),
        ("Put it in the bin.", "Put the blue cup in the bin"),
        ("Put the cup in the bin.", "Put the blue cup in the bin"), ("Take that one.", "Pick the blue cup"),
        ("Put the cups in the bin, but not that one.", "Put every cup except the blue cup in the bin"),
        ("Put all cups except this one in the bin.", "Put every cup except the blue cup in the bin"),
    ],
)  # fmt: skip
def test_a_finger_says_which_one_an_order_means_and_without_one_it_is_asked(text: str, done: str) -> None:
    plan, _ = hear(Dialogue(), text, pointing(), to_ns(1.0))
    assert describe(plan.orders[0]) == done
    plan, reply = hear(Dialogue(), text, seen(), to_ns(1.0))
    assert reply.endswith(("?", "bottle."))
    assert plan.subtask is None or plan.subtask.state == "wait"


def test_what_was_kept_is_kept_in_later_orders_and_no_cup_besides() -> None:
    plan, _ = told(ORDER)
    plan, _ = hear(plan, "I want to keep that one.", holding(), to_ns(30.0))
    plan, _ = report(plan, described(plan, "finished"), seen("blue", "white"), to_ns(60.0))
    plan, _ = hear(plan, ORDER, seen(), to_ns(90.0))
    assert describe(plan.orders[0]) == "Put every cup except the red cup in the bin"


def test_words_that_only_the_vlm_could_place_reach_the_planner_through_its_description() -> None:
    told_of = SceneDescription(text="", subtask_id="", progress="idle")
    assert (told_of.left, told_of.target) == ((), None)
    bench = at_work()
    bench.vlm.tick()
    at_it = bench.descriptions[-1].target
    assert at_it is not None
    assert (at_it.label, at_it.colour) == ("cup", "blue")
    bench.vlm.listen(Utterance(speaker="Sam", text="I want to keep that one."))
    assert bench.lines[-1].startswith(sentence("planner.leaves_a_thing", what="blue cup"))
