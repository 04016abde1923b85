"""Claims about `nodes/planner/rules.py` and the node around it."""

from __future__ import annotations

import pytest

from nodes.interrupts.intent import understand
from nodes.planner.rules import OrderUnderWay, describe, hear, report
from nodes.planner.scripted import ScriptedPlanner
from runtime.message import Message
from runtime.msgs import SceneDescription, Subtask, Utterance
from runtime.ports import Publisher, Sources

ORDER = "Please clear the table: put the cups in the bin"


def told(*texts: str) -> OrderUnderWay:
    plan = OrderUnderWay()
    for text in texts:
        plan, _ = hear(plan, text)
    return plan


def described(plan: OrderUnderWay, progress: str, text: str = "") -> SceneDescription:
    subtask = plan.subtask
    assert subtask is not None
    assert progress in ("idle", "working", "finished", "failed", "held")
    return SceneDescription(text=text, subtask_id=subtask.id, progress=progress)  # type: ignore[arg-type]  # checked


def test_an_order_becomes_a_subtask_and_an_answer() -> None:
    plan, reply = hear(OrderUnderWay(), ORDER)
    assert plan.subtask == Subtask(
        id="task-1.0", text="Put every cup in the bin", verb="put", what="cup", where="bin", excluding=()
    )
    assert reply == "Sure. I will put the cups in the bin."


def test_a_correction_excludes_from_then_on() -> None:
    plan = told(ORDER, "No, not the blue one", "Mhm", "and leave the red one")
    subtask = plan.subtask
    assert subtask is not None
    assert (subtask.excluding, subtask.id) == (("blue", "red"), "task-1.2")
    assert subtask.text == "Put every cup except the blue and the red one in the bin"


def test_a_colour_can_be_allowed_again() -> None:
    plan = told(ORDER, "No, not the blue one", "No, the blue one too")
    assert plan.excluding == ()


@pytest.mark.parametrize(
    ("text", "what", "where", "excluding"),
    [
        ("Put the balls in the box", "ball", "bin", ()),
        ("Put everything except the yellow one in the bin", "", "bin", ("yellow",)),
        ("Could you please move the bottles to the bin?", "bottle", "bin", ()),
        ("Clear the table", "", "bin", ()),
    ],
)
def test_rules_are_general_over_what_where_and_excluding(
    text: str, what: str, where: str, excluding: tuple[str, ...]
) -> None:
    plan = told(text)
    assert (plan.what, plan.where, plan.excluding) == (what, where, excluding)


def test_an_order_that_names_a_colour_is_about_that_colour_alone() -> None:
    plan, reply = hear(OrderUnderWay(), "Please put the white cup in the bin")
    assert reply == "Sure. I will put the white cup in the bin."
    assert "white" not in plan.excluding
    assert {"red", "blue", "green", "yellow"} <= set(plan.excluding)
    assert describe(plan) == "Put every white cup in the bin"
    again, _ = hear(OrderUnderWay(), describe(plan))
    assert again.excluding == plan.excluding


def test_an_order_beyond_the_robot_is_declined_and_the_old_one_goes_on() -> None:
    before = told(ORDER)
    plan, reply = hear(before, "Make me a coffee")
    assert plan == before
    assert "I cannot do that" in reply
    assert "I go on: put every cup in the bin" in reply


def test_a_new_order_replaces_the_old_one() -> None:
    plan = told(ORDER, "No, not the blue one", "Put the balls in the bin")
    assert (plan.number, plan.what, plan.excluding) == (2, "ball", ())


def test_stop_and_go_on_change_no_plan() -> None:
    assert told(ORDER, "Ouch! That's my toe!", "All right, go on") == told(ORDER)


def test_a_finished_subtask_is_reported_once() -> None:
    plan = told(ORDER, "No, not the blue one")
    over, reply = report(plan, described(plan, "finished"))
    assert reply == "I am done. The cups are in the bin, all but the blue one."
    assert over.subtask is not None
    assert over.subtask.verb == "done"
    assert report(over, described(over, "finished")) == (over, "")


def test_a_description_of_an_older_subtask_ends_nothing() -> None:
    old = told(ORDER)
    plan, _ = hear(old, "No, not the blue one")
    assert report(plan, described(old, "finished")) == (plan, "")


def test_a_failure_is_told_with_its_reason() -> None:
    plan = told(ORDER)
    _, reply = report(plan, described(plan, "failed", "The robot is I cannot get the red cup. It sees: bin."))
    assert reply == "I have to give up: I cannot get the red cup."


@pytest.mark.parametrize("text", [ORDER, "Put everything except the blue one in the bin"])
def test_the_words_of_a_plan_read_back_as_the_plan(text: str) -> None:
    plan = told(text, "No, not the red one")
    meaning = understand(describe(plan))
    assert meaning.can_do
    assert (meaning.kind, meaning.where, meaning.excluding) == (plan.what, plan.where, plan.excluding)


def test_a_restarted_planner_learns_its_order_from_the_description() -> None:
    plan = told(ORDER, "No, not the blue one")
    words = f"The robot is picking up the red cup. Subtask: {describe(plan)}. It sees: red cup."
    recovered, reply = report(OrderUnderWay(), described(plan, "working", words))
    assert (recovered, reply) == (plan, "")


def test_the_node_answers_and_repeats_its_subtask_each_tick() -> None:
    planner = ScriptedPlanner()
    sent: list[Message] = []

    def sink(port: Publisher[Subtask] | Publisher[Utterance], message: Message, stems_from: Sources = None) -> None:
        sent.append(message)

    planner.subtask.sink = planner.said.sink = sink
    planner.tick()
    assert sent == []  # nothing was ordered
    planner.listen(Utterance(speaker="Sam", text=ORDER))
    planner.tick()
    assert [type(message).__name__ for message in sent] == ["Utterance", "Subtask", "Subtask"]
    assert sent[1] == sent[2]
