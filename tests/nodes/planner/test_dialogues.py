"""Dialogues at the table and in the kitchen, in virtual time, judged by where things are in the end.

`thing` is a cup at the table and a mug in the kitchen, `goal` the bin and the tray: both minds hear the same words.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from nodes.msgs import SceneDescription
from tests.nodes.planner.test_rules import thing
from tests.nodes.planner.two_hands import STEP_S, KitchenHands, TableHands, Turn, at
from tests.support.sentences import sentence

BOTH = pytest.mark.parametrize("hands", [TableHands, KitchenHands])
LONG_S = 70
ALL = "Put all the {thing}s {goal}"


def played(hands: type[TableHands], turns: Sequence[Turn], **more: object) -> TableHands:
    """After all turns, and long enough for every question to be left."""
    world = hands(**more)  # type: ignore[arg-type]  # as it is
    names = {"thing": world.thing, "goal": world.goal}
    for turn in turns:
        if isinstance(turn, tuple):
            turn = turn[0], turn[1].format(**names)
        world.play(turn.format(**names) if isinstance(turn, str) else turn)
    world.work(LONG_S)
    return world


def moved(world: TableHands) -> list[str]:
    """The colours of cups or mugs that are where they were ordered to."""
    place = world.goal.split()[-1]
    return [name.split()[0] for name, where in world.ends().items() if where == place]


@BOTH
@pytest.mark.parametrize(
    "text",
    [
        "I will do the white one myself.", "The white one is mine.",
        "Let me do the white one.",
        "I take the white {thing}.",
        "The white {thing} is half full.", "Anna drinks from the white one.", "Anna wants the white {thing}.",
        "White is for me, please.", "Paint the white {thing}.", "The white {thing}?", "The white one has a crack.",
        "I take the white {thing}, you do the rest.", "I told you to leave the white {thing}.",
    ],
)  # fmt: skip
def test_what_somebody_said_something_of_is_left_unless_a_yes_follows(hands: type[TableHands], text: str) -> None:
    world = played(hands, [ALL, 5, text])
    assert "white" not in moved(world)
    assert {"red", "blue"} <= set(moved(world)), "the others are done"


@BOTH
@pytest.mark.parametrize(
    "turns",
    [
        ["Hm, the red one ..."], [("Ben", "No, the red one goes on the table.")],
        ["Stop! The red one ... oh, I don't know.", 1, "Go on."],
    ],
)  # fmt: skip
def test_what_is_in_the_hand_stays_there_until_somebody_answers(hands: type[TableHands], turns: list[Turn]) -> None:
    world = hands()
    world.play(f"Put the red {world.thing} {world.goal}.", 5, *turns)
    assert world.mind.subtask is not None
    assert world.mind.subtask.state == "wait", "it has asked"
    world.work(2 * LONG_S)
    assert [(place, world.says[-1]) for place in world.ends().values()] == [
        ("robot", sentence("planner.keeps_hold", seconds=30, things=f"the red {world.thing}"))
    ]
    world.play("Yes.", LONG_S)
    assert "robot" not in world.ends().values()


@BOTH
def test_of_two_people_nobody_is_followed_where_neither_answers(hands: type[TableHands]) -> None:
    order = "Put the white {thing} and the red {thing} {goal}."
    world = played(hands, [order, ("Ben", "Put the red {thing} on the table.")])
    assert moved(world) == ["white"]


@BOTH
@pytest.mark.parametrize("text", ["5", "Five.", "2, please."])
def test_a_number_that_answers_nothing_is_asked_about(hands: type[TableHands], text: str) -> None:
    order = "Put the red {thing} {goal}."
    assert moved(played(hands, [order, text])) == []
    assert moved(played(hands, [order, text, 2, "Yes."])) == ["red"]


@BOTH
@pytest.mark.parametrize(
    "text",
    [
        "You were told to leave the white one.", "You promised to leave the white {thing}.",
        "Didn't I tell you to leave the white one?", "What about the white one?", "Hm, the white one ...", "No white.",
    ],
)  # fmt: skip
def test_what_may_forbid_a_thing_is_never_passed_over(hands: type[TableHands], text: str) -> None:
    assert "white" not in moved(played(hands, [ALL, 5, text]))
    assert {"red", "blue", "white"} <= set(moved(played(hands, [ALL, 5, text, 2, "Yes."])))


@BOTH
@pytest.mark.parametrize(
    "text", ["Nicht die rote Tasse!", "Nein!", "Lass die rote Tasse stehen.", "Laisse la tasse rouge.", "不要红色的",
             "What about the others?"],
)  # fmt: skip
def test_what_may_forbid_the_work_in_any_language_holds_it_and_is_asked(hands: type[TableHands], text: str) -> None:
    assert moved(played(hands, [ALL, 5, text])) == []
    assert {"red", "blue", "white"} <= set(moved(played(hands, [ALL, 5, text, 2, "Yes."])))


@BOTH
@pytest.mark.parametrize("text", ["That's all.", "That will be all for now.", "There it is."])
def test_nothing_more_to_order_is_no_reason_to_hold(hands: type[TableHands], text: str) -> None:
    assert {"red", "blue", "white"} <= set(moved(played(hands, [ALL, 5, text])))


@BOTH
@pytest.mark.parametrize("seconds", [1, 5])
def test_of_any_one_that_is_forbidden_another_is_taken(hands: type[TableHands], seconds: int) -> None:
    assert moved(played(hands, ["Put a {thing} {goal}", seconds, "No, not the red one."])) == ["blue"]


@BOTH
@pytest.mark.parametrize("text", ["The white {thing}?", "Anna wants the white {thing}."])
def test_a_yes_lets_it_go_on(hands: type[TableHands], text: str) -> None:
    assert {"red", "blue", "white"} <= set(moved(played(hands, [ALL, 5, text, 2, "Yes"])))


@BOTH
@pytest.mark.parametrize("text", ["The red one?", "Hm, the red one ..."])
def test_a_no_and_a_leave_for_another_are_both_done_and_said_once(hands: type[TableHands], text: str) -> None:
    world = played(
        hands, ["Put the red {thing} {goal}.", 5, text, "No, leave it. But you can put the white one {goal}."]
    )
    assert moved(world) == ["white"]
    assert " ".join(world.says).count("Then I will put the white") == 1


@BOTH
@pytest.mark.parametrize("text", ["I need it.", "I want that.", "I need the red one.", "Wait, I need it!"])
def test_what_somebody_needs_stays_and_is_handed_over_after_a_yes_alone(hands: type[TableHands], text: str) -> None:
    order = "Put the red {thing} {goal}."
    assert not {"bin", "tray", "person"} & set(played(hands, [order, 5, text]).ends().values())
    world = played(hands, [order, 5, text, 2, "Yes.", "Go on."])
    assert list(world.ends().values()) == ["person"]


def test_what_is_to_be_binned_and_is_needed_in_one_breath_is_left() -> None:
    assert played(TableHands, ["Put the red cup in the bin. I need it."]).ends() == {}


@BOTH
@pytest.mark.parametrize(
    "text",
    ["Put the red {thing} {goal}. And the blue one. Not the red one after all.",
     "Put the red {thing} {goal} and give me the blue one. Not the red one."],
)  # fmt: skip
def test_what_is_taken_back_in_one_breath_is_not_done_and_the_rest_is(hands: type[TableHands], text: str) -> None:
    assert {one.split()[0] for one in played(hands, [text]).ends()} == {"blue"}


@BOTH
@pytest.mark.parametrize("text", ["Please, not my favourite!", "Ask Mia before you do that."])
def test_what_is_not_understood_and_may_forbid_holds_the_work(hands: type[TableHands], text: str) -> None:
    assert moved(played(hands, ["Put the red {thing} {goal}.", 5, ("Ben", text)])) == []


@BOTH
def test_what_one_of_several_is_said_of_holds_them_all(hands: type[TableHands]) -> None:
    assert moved(played(hands, ["Put the red and the blue {thing} {goal}.", 5, "One of them is mine."])) == []


FAR_LEFT = "Hang on, I said that wrong. I want the {thing} at the far left gone, not this."


@BOTH
def test_a_side_that_is_asked_about_beside_a_stop_holds_what_was_under_way(hands: type[TableHands]) -> None:
    turns: list[Turn] = ["Put the blue {thing} {goal}.", 5, FAR_LEFT, 2]
    assert played(hands, [*turns, "Yes, go on."], people=()).ends() == {}
    assert moved(played(hands, [*turns, "From where I stand.", "Go on."], people=())) == ["red"]


def test_an_order_is_no_answer_from_whose_side_something_is_seen() -> None:
    world = played(TableHands, ["Put the cup on the left in the bin.", 3, "Could you pass me that?"], people=())
    assert world.ends() == {}


@BOTH
def test_what_is_said_of_anothers_thing_is_no_yes_about_ones_own(hands: type[TableHands]) -> None:
    turns: list[Turn] = [("Leo", "The red {thing} is mine!"), ("Mia", "And the blue one's mine.")]
    turns += [("Leo", "Put Mia's {thing} {goal}!"), ("Mia", "You are mean. Put his one in there, then!")]
    world = played(hands, turns)
    assert world.ends() == {}
    assert "Leo, shall I put the red" in " ".join(world.says)


@BOTH
def test_who_asks_to_have_a_thing_is_given_it(hands: type[TableHands]) -> None:
    assert list(played(hands, ["Put the red {thing} {goal}.", 5, "Can I have it?"]).ends().values()) == ["person"]


@BOTH
@pytest.mark.parametrize("text", ["Only the white one.", "Just the white {thing}, please.", "Only white."])
def test_only_one_of_all_is_only_that_one(hands: type[TableHands], text: str) -> None:
    assert moved(played(hands, [ALL, 5, text])) == ["white"]


@BOTH
@pytest.mark.parametrize(
    "text", ["First the white one, then the blue one.", "First the white {thing} and then the blue {thing}."]
)
def test_first_and_then_are_done_in_order_and_nothing_else_is(hands: type[TableHands], text: str) -> None:
    world = hands()
    world.play(ALL.format(thing=world.thing, goal=world.goal), 5, text.format(thing=world.thing), 4 + 12)
    assert moved(world) == ["white"]
    world.work(LONG_S)
    assert sorted(moved(world)) == ["blue", "white"]


@BOTH
@pytest.mark.parametrize(
    "text", ["Anna's {thing} is the white one.", "The white {thing} belongs to Anna.", "Anna wants the white {thing}."]
)
def test_it_is_what_was_spoken_of_and_never_what_the_robot_happens_to_do(hands: type[TableHands], text: str) -> None:
    world = played(hands, [ALL, 5, text, 3, "Leave it."])
    assert "white" not in moved(world)
    assert {"red", "blue"} <= set(moved(world))


def test_what_each_of_two_does_is_said_in_one_breath() -> None:
    text = "You take the apple to the tray, I will take care of the mugs."
    assert played(KitchenHands, [text]).ends() == {"green apple": "tray"}


@pytest.mark.parametrize("text", ["Clear the table. I take the mugs.", "I take care of the mugs. Clear the table."])
def test_what_the_speaker_does_is_no_part_of_a_chore(text: str) -> None:
    assert not {"red mug", "blue mug", "white mug"} & set(played(KitchenHands, [text]).ends())


SPACE = [
    ("the left {thing}", "red"), ("the leftmost {thing}", "red"), ("the {thing} on the left", "red"),
    ("the second {thing} from the left", "blue"), ("the first {thing} from the left", "red"),
    ("the nearest {thing}", "white"), ("the {thing} between the red {thing} and the white {thing}", "blue"),
    ("the {thing} next to the red {thing}", "blue"), ("the {thing} on my left", "red"),
    ("the one next to the red {thing}", "blue"), ("the thing beside the red one", "blue"),
    ("the {thing} left of the blue one", "red"), ("the {thing} to the right of the red {thing}", "blue"),
    ("the one between the red and the white {thing}", "blue"),
]  # fmt: skip


@BOTH
@pytest.mark.parametrize(("words", "colour"), SPACE)
def test_where_a_thing_stands_is_as_the_speaker_sees_it(hands: type[TableHands], words: str, colour: str) -> None:
    assert moved(played(hands, [f"Put {words} {{goal}}."])) == [colour]


@BOTH
@pytest.mark.parametrize("text", ["The one on the left.", "The one left of the blue one.", "Left of the blue one."])
def test_an_answer_may_say_where_it_stands(hands: type[TableHands], text: str) -> None:
    assert moved(played(hands, ["Put the {thing} {goal}.", 2, text])) == ["red"]


@BOTH
@pytest.mark.parametrize("text", ["What is left of the blue {thing}?", "Where is the {thing} left of the blue one?"])
def test_where_things_stand_is_answered(hands: type[TableHands], text: str) -> None:
    world = hands()
    assert f"the red {world.thing}" in world.play(text.format(thing=world.thing)).lower()


@BOTH
def test_the_robots_left_is_the_speakers_right(hands: type[TableHands]) -> None:
    expected = "green" if hands is TableHands else "white"
    assert moved(played(hands, ["Put the {thing} on your left {goal}."])) == [expected]


@BOTH
@pytest.mark.parametrize(
    "words", ["the left {thing}", "the first {thing} from the left", "the {thing} left of the blue one"]
)
def test_where_nobody_sees_the_speaker_both_sides_are_told_and_it_is_asked(hands: type[TableHands], words: str) -> None:
    world = hands(people=())
    reply = world.play(f"Put {words} {world.goal}.".format(thing=world.thing))
    assert reply.startswith(sentence("planner.two_sides", mine="", other="").split(",")[0])
    world.work(LONG_S)
    assert moved(world) == []
    assert moved(played(hands, [f"Put {words} {{goal}}.", 2, "The red one."], people=())) == ["red"]


@BOTH
@pytest.mark.parametrize(
    "words",
    ["{thing} next to the banana and the gronk", "{thing} behind the door", "{thing} left of everything",
     "one next to the gronk", "one left of the gronk", "{thing} next to the blue {thing}", "thing by the window"],
)  # fmt: skip
def test_a_place_in_the_room_that_nobody_can_tell_is_asked(hands: type[TableHands], words: str) -> None:
    world = played(hands, [f"Put the {words} {{goal}}."])
    assert "?" in world.says[0] or words.split()[-1] in world.says[0], "asked, or refused by name"
    assert world.ends() == {}


@BOTH
@pytest.mark.parametrize(
    ("seconds", "text"),
    [(2, "Not the one next to the gronk."), (5, "Not the left one."), (5, "Leave the two on the left."),
     (5, "All but the last one."), (5, "The {thing} left of the blue one is mine."), (5, "Except mine."),
     (5, "My {thing} stays here.")],
)  # fmt: skip
def test_what_may_be_forbidden_by_a_place_that_nobody_can_tell_is_held_and_asked(
    hands: type[TableHands], seconds: int, text: str
) -> None:
    assert moved(played(hands, [ALL, seconds, text])) == []
    after = moved(played(hands, [ALL, seconds, text, 2, "The red one."]))
    assert "red" not in after
    assert {"blue", "white"} <= set(after)


@BOTH
@pytest.mark.parametrize("words", ["the two {thing}s on the left", "the two left {thing}s"])
def test_several_that_stand_on_one_side_are_these_and_no_others(hands: type[TableHands], words: str) -> None:
    assert moved(played(hands, [f"Put {words} {{goal}}."])) == ["red", "blue"]
    assert "red" not in moved(world := played(hands, [ALL, 2, f"Not {words}."]))
    assert "blue" not in moved(world)


def test_only_so_many_of_all_are_only_so_many() -> None:
    assert moved(played(KitchenHands, [ALL, 5, "Only two of them."])) == ["red", "blue"]


@BOTH
@pytest.mark.parametrize(
    "text",
    [
        "The rest stays.",
        "Leave the rest.",
        "These two are Anna's.",
        "All are mine.",
        "Half of them only.",
        "Only that one.",
    ],
)
def test_what_is_said_of_several_or_of_the_rest_holds_them_all_until_a_yes(hands: type[TableHands], text: str) -> None:
    assert moved(played(hands, [ALL, 5, text])) == []
    assert {"red", "blue", "white"} <= set(moved(played(hands, [ALL, 5, text, 2, "Yes."])))


@BOTH
@pytest.mark.parametrize(
    "text", ["The blue {thing} is called Otto.", "Call the blue {thing} Otto.", "Name the blue {thing} Otto"]
)
def test_a_name_is_learned_and_means_the_thing(hands: type[TableHands], text: str) -> None:
    assert moved(played(hands, [text, 1, "Put Otto {goal}."])) == ["blue"]
    assert "blue" not in moved(played(hands, [text, 1, "Put all the {thing}s except Otto {goal}."]))


@BOTH
def test_a_name_is_given_once_and_is_no_word_that_means_something_else(hands: type[TableHands]) -> None:
    taken: list[Turn] = ["Call the blue {thing} Otto.", 1, "Call the red {thing} Otto.", 1, "Put Otto {goal}."]
    assert moved(played(hands, taken)) == ["blue"]
    assert moved(played(hands, ["Call the red {thing} Blue.", 1, "Put the blue {thing} {goal}."])) == ["blue"]


@BOTH
@pytest.mark.parametrize("text", ["Put the red {thing} on the table.", "No, put the red {thing} on the table!"])
@pytest.mark.parametrize(("answer", "ends"), [("No", ["red"]), ("Yes", []), ("", None)])
def test_two_people_who_contradict_each_other_are_asked(
    hands: type[TableHands], text: str, answer: str, ends: list[str] | None
) -> None:
    world = hands()
    turn = ("Ben", text.format(thing=world.thing))
    reply = world.play(f"Put the red {world.thing} {world.goal}", 5, turn)
    assert "?" in reply
    assert "Ann" in reply
    world.work(12)
    assert moved(world) == [], "it holds while it asks"
    if ends is not None:
        world.play(answer, LONG_S)
        assert moved(world) == ends


@BOTH
@pytest.mark.parametrize("text", ["No, give it to me.", "Give me the red {thing}."])
def test_what_one_orders_somewhere_and_another_wants_is_asked(hands: type[TableHands], text: str) -> None:
    red = "Put the red {thing} {goal}"
    assert moved(played(hands, [red, 5, ("Ben", text), 2, "No."])) == ["red"]
    assert moved(played(hands, [red, 5, ("Ben", text), 2, "Yes."])) == []


@BOTH
def test_an_order_of_somebody_else_comes_behind_the_first(hands: type[TableHands]) -> None:
    ben: Turn = ("Ben", "Put the blue {thing} {goal}")
    assert moved(played(hands, ["Put the red {thing} {goal}", 5, ben])) == ["red", "blue"]


@BOTH
@pytest.mark.parametrize("text", ["No, on the moon.", "No, bring it to Ben.", "No, throw it up.", "Not in there."])
def test_what_cannot_be_done_of_a_correction_is_no_reason_to_go_on(hands: type[TableHands], text: str) -> None:
    assert moved(played(hands, ["Put the red {thing} {goal}", 5, text])) == []


@pytest.mark.parametrize(
    ("text", "mug"),
    [("Make me a coffee in the blue mug.", "blue"), ("Make me a coffee, but not in the red mug.", "blue"),
     ("Make me a coffee.", "red")],
)  # fmt: skip
def test_a_coffee_comes_in_the_mug_that_was_named_and_not_in_one_that_was_forbidden(text: str, mug: str) -> None:
    world = KitchenHands()
    world.play(text)
    assert world.mind.order is not None
    assert world.mind.order.things[0].id == f"mug-{mug}"


@BOTH
def test_what_was_protected_by_one_is_asked_about_when_another_orders_it(hands: type[TableHands]) -> None:
    world = played(hands, ["Leave the red {thing} alone.", 2, ("Ben", "Put the red {thing} {goal}.")])
    assert "?" in " ".join(world.says[1:])
    assert moved(world) == []


def test_what_is_dropped_for_another_order_is_said() -> None:
    world = played(TableHands, ["Put the red cup in the bin", 5, "Put the blue cup in the bin"])
    assert world.says[1].endswith(sentence("planner.no_longer", what="put the red cup in the bin"))
    assert moved(world) == ["blue"]


@BOTH
@pytest.mark.parametrize(
    "text", ["That's wrong.", "That is not right.", "Undo that.", "Never mind.", "Put it back.", "Let go of it."]
)
def test_what_is_in_the_hand_when_it_was_wrong_is_put_back(hands: type[TableHands], text: str) -> None:
    world = played(hands, ["Put the red {thing} {goal}", 5, text])
    assert world.ends() == {}


@BOTH
@pytest.mark.parametrize("order", ["Pick up the red {thing}", "Give me the red {thing}"])
def test_what_is_in_the_hand_is_put_back_whatever_it_was_taken_for(hands: type[TableHands], order: str) -> None:
    assert played(hands, [order, 5, "That's wrong."]).ends() == {}
    before: list[Turn] = ["Put the blue {thing} {goal}", 9]
    assert moved(played(hands, [*before, order, 5, "That's wrong."])) == ["blue"]


@pytest.mark.parametrize("text", ["No, the blue one.", "Not the red one, the blue one!", "Oh, I meant the blue mug."])
@pytest.mark.parametrize("seconds", [5, 14])
def test_a_correction_during_the_deed_or_after_it_takes_it_back(text: str, seconds: int) -> None:
    assert moved(played(KitchenHands, ["Put the red mug on the tray", seconds, text])) == ["blue"]


@BOTH
def test_one_of_two_that_is_forbidden_is_left(hands: type[TableHands]) -> None:
    order = "Put the red {thing} and the blue {thing} {goal}"
    assert moved(played(hands, [order, 5, "Not the red one."])) == ["blue"]


@BOTH
@pytest.mark.parametrize(
    "text",
    ["Shut up!", "Please be quiet.", "Who told you that?", "Coffee, please.", "Tea, please.", "Two teas, please.",
     "bitte"],
)  # fmt: skip
def test_what_is_no_order_is_answered_in_a_sentence_about_it(hands: type[TableHands], text: str) -> None:
    reply = hands().play(text)
    assert "skill for" not in reply
    assert reply != "I see."


@BOTH
@pytest.mark.parametrize("text", ["Who told you that?", "Says who?", "On whose orders?", "According to whom?"])
def test_who_ordered_is_told(hands: type[TableHands], text: str) -> None:
    world = hands()
    reply = world.play(("Ben", f"Put the red {world.thing} {world.goal}"), 2, text)
    assert reply.startswith("Ben ")


@BOTH
def test_in_that_order_is_an_order_of_things(hands: type[TableHands]) -> None:
    world = hands()
    world.play(f"Put the white {world.thing} and the blue {world.thing} {world.goal}, in that order, bitte.", 12)
    assert moved(world) == ["white"]
    world.work(LONG_S)
    assert sorted(moved(world)) == ["blue", "white"]


def test_two_coffees_are_two_mugs_and_what_there_is_none_of_is_asked_about() -> None:
    world = KitchenHands()
    world.play("Make two coffees, please.")
    planned = [one.things[0].id for one in world.mind.orders if one.skill == "hand_over"]
    assert planned == ["mug-red", "mug-blue"]
    for text in ("Make me a coffee with milk.", "A coffee with cream and sugar, please."):
        world = KitchenHands()
        reply = world.play(text)
        assert reply == sentence("kitchen.has_none", what=text.split()[-1 if "milk" in text else -2].strip(".,"))
        assert world.mind.order is None
        world.play("Yes")
        assert world.mind.order is not None


# --- after a stop


@BOTH
@pytest.mark.parametrize(
    "text", ["Stop! I meant the blue one.", "No, wait, the blue {thing}, not that.", "Stop, blue!"]
)
def test_what_was_taken_for_another_goes_back_and_that_is_said_before_and_after_the_stop(
    hands: type[TableHands], text: str
) -> None:
    world = hands()
    world.play(f"Put the red {world.thing} {world.goal}", 5, text.format(thing=world.thing), 3)
    assert world.held() is not None, "stopped"
    assert "Once you tell me, I put" in world.last
    assert f"put the blue {world.thing} {world.goal}" in world.last
    world.play("Carry on.", 40)
    assert any(one.startswith("I go on: put") for one in world.says)
    assert moved(world) == ["blue"]
    assert world.held() is None


@BOTH
@pytest.mark.parametrize(
    "text", ["Stop! Leave that where it was.", "Stop, that's mine!", "Hold it. I changed my mind, leave it."]
)
def test_what_is_in_the_hand_goes_back_once_its_order_is_taken_back(hands: type[TableHands], text: str) -> None:
    world = hands()
    world.play(f"Put the red {world.thing} {world.goal}", 5, text, 3)
    assert world.held() is not None, "stopped"
    world.play("Go on", 20)
    assert (world.ends(), world.held()) == ({}, None)
    assert not any("moved nothing" in one for one in world.says)


@BOTH
def test_orders_to_a_stopped_robot_are_said_back_in_turn_and_done_after_go_on(hands: type[TableHands]) -> None:
    world = hands()
    world.play(f"Put the red {world.thing} {world.goal}", 5, "Hold on a moment.", 2)
    world.play(f"And then the white {world.thing}, please.", 2)
    told = f"put the red {world.thing} {world.goal}, then put the white {world.thing} {world.goal}"
    assert world.last.endswith(sentence("planner.told_as_paused", what=told))
    world.play("Carry on", 40)
    assert moved(world) == ["red", "white"]


def test_another_place_beside_a_stop_is_the_place_of_all_that_was_ordered() -> None:
    world = KitchenHands()
    world.play("Put the mugs on the tray", 5, "Stop! Not the tray, the countertop.", 2, "Go on", 50)
    assert set(world.ends().values()) == {"countertop"}
    assert len(world.ends()) == 3


@BOTH
@pytest.mark.parametrize("lead", ["Actually, leave that and", "Never mind,", "Forget it,"])
def test_an_order_in_place_of_what_is_taken_back_is_done_alone(hands: type[TableHands], lead: str) -> None:
    world = hands()
    red = f"Put the red {world.thing} {world.goal}"
    world.play(f"{red}, then the blue one", 5, f"{lead} put the white one {world.goal}.", 50)
    assert moved(world) == ["white"]
    assert world.held() is None


@BOTH
def test_a_question_beside_a_stop_is_closed_by_another_order_for_its_thing(hands: type[TableHands]) -> None:
    world = hands()
    world.play(f"Put the red {world.thing} {world.goal}", 5, "Stop! That is hot.", 3)
    world.play("Give it to me instead.", 3, "Go on", 3)
    assert not any("Shall I still" in one for one in world.says[-2:])


@BOTH
@pytest.mark.parametrize("text", ["Yes, go on.", "It's fine, carry on."])
def test_a_yes_beside_go_on_answers_what_was_asked_at_the_stop(hands: type[TableHands], text: str) -> None:
    world = hands()
    world.play(f"Put the red {world.thing} {world.goal}", 5, "Stop! That is hot.", 3, text, 30)
    assert moved(world) == ["red"]


@BOTH
def test_go_on_with_nothing_stopped_says_what_is_done_or_waited_for(hands: type[TableHands]) -> None:
    world = hands()
    assert world.play("Go ahead.") == sentence("planner.nothing_to_do")
    asked = world.play(f"Put the {world.thing} {world.goal}")
    assert world.play("Go ahead.") == sentence("planner.waits_for_answer", asked=asked)
    world.play("The blue one.", 2)
    assert world.play("Carry on.") == sentence("planner.goes_on_with", what=f"put the blue {world.thing} {world.goal}")


# --- in which turn


@BOTH
@pytest.mark.parametrize(
    ("text", "turn"),
    [
        ("Do the white one before the blue one.", ["red", "white", "blue"]),
        ("The blue one should go in after the white one, please.", ["red", "white", "blue"]),
        ("Could you do the white {thing} first?", ["red", "white", "blue"]),
        ("But put the white {thing} in first.", ["red", "white", "blue"]),
        ("Stop! The white one before the red one.", ["white", "red", "blue"]),
    ],
)
def test_what_is_to_come_before_something_else_comes_before_it(
    hands: type[TableHands], text: str, turn: list[str]
) -> None:
    world = hands()
    all_three = f"Put the red {world.thing}, the blue {world.thing} and the white {world.thing} {world.goal}"
    world.play(all_three, 5, text.format(thing=world.thing))
    assert "?" not in world.last
    found: list[str] = []
    world.play("Go on")
    for _ in range(60):
        world.work(1)
        found += [one for one in moved(world) if one not in found]
    assert found == turn


@BOTH
def test_something_else_that_is_to_come_first_takes_nothing_from_what_is_under_way(hands: type[TableHands]) -> None:
    world = hands()
    last = "ball" if hands is TableHands else "apple"
    both = f"Put the red {world.thing} and the blue {world.thing} {world.goal}"
    world.play(both, 5, f"Before you do that, give me the {last}.", 60)
    assert moved(world) == ["red", "blue"]
    assert "person" in world.ends().values()


@BOTH
def test_another_turn_by_somebody_else_is_asked_and_who_ordered_keeps_hers(hands: type[TableHands]) -> None:
    world = hands()
    world.play(f"First put the red {world.thing} {world.goal}, then the blue one", 2)
    world.play(("Ben", f"No, the blue {world.thing} first!"))
    assert "Ann said it in another order." in world.last
    world.play("Ignore him, do it the way I said.", 40)
    assert moved(world) == ["red", "blue"]
    assert not world.last.endswith("?")


# --- answers to its own questions


@BOTH
@pytest.mark.parametrize("text", ["Any of them, I don't mind.", "Either, I'm not fussed.", "Oh, any one will do."])
def test_who_does_not_mind_gets_one_and_not_all(hands: type[TableHands], text: str) -> None:
    world = hands()
    world.play(f"Put the {world.thing} {world.goal}", 2, text, 50)
    assert len(moved(world)) == 1


@BOTH
def test_an_order_beside_an_open_question_leaves_it_open(hands: type[TableHands]) -> None:
    world = hands()
    last = "ball" if hands is TableHands else "apple"
    world.play(f"Put the {world.thing} {world.goal}", 2, f"Oh, and the {last} too.", 2, "Blue.", 40)
    assert sorted(one.split()[-1] for one in world.ends()) == sorted([last, world.thing])
    assert "blue" in moved(world)


@BOTH
def test_what_is_no_choice_leaves_the_question_open(hands: type[TableHands]) -> None:
    world = hands()
    world.play(f"Put the {world.thing} {world.goal}", 2, "Not the red one.", 3, "The white one.", 20)
    assert moved(world) == ["white"]


@BOTH
@pytest.mark.parametrize("text", ["You needn't do the blue one.", "There is no need to do the blue one, by the way."])
def test_what_need_not_be_done_is_not_done(hands: type[TableHands], text: str) -> None:
    world = hands()
    world.play(f"Put the red {world.thing} and the blue {world.thing} {world.goal}", 5, text)
    assert "?" not in world.last
    world.work(40)
    assert moved(world) == ["red"]


@BOTH
def test_who_stopped_it_is_said_and_what_waits(hands: type[TableHands]) -> None:
    world = hands()
    world.play(f"Put the red {world.thing} {world.goal}", 5, ("Ben", "Watch out!"), 3)
    said = world.play("What are you waiting for?")
    assert said.startswith("Ben said: “Watch out!” I am stopped.")
    assert world.play("Carry on, as I told you").startswith("I am stopped") or not world.is_stopped


@BOTH
@pytest.mark.parametrize("text", ["Yes, that one too.", "It can go.", "{place} with it."])
def test_the_deed_that_was_asked_about_in_other_words_is_a_yes(hands: type[TableHands], text: str) -> None:
    world = hands()
    world.play(ALL.format(thing=world.thing, goal=world.goal), 5, "The white one has a crack.", 2)
    assert world.last.startswith("Shall I still")
    world.play(text.format(place=world.goal.capitalize()), 60)
    assert {"red", "blue", "white"} <= set(moved(world))


@BOTH
def test_only_the_one_that_was_asked_about_is_only_that_one(hands: type[TableHands]) -> None:
    world = played(hands, [ALL, 5, "The white one has a crack.", 2, "Just the white one."])
    assert moved(world) == ["white"]


@BOTH
def test_an_order_beside_a_question_of_what_is_under_way_comes_behind_it(hands: type[TableHands]) -> None:
    last = "ball" if hands is TableHands else "apple"
    turns: list[Turn] = [ALL, 5, "The white one has a crack.", 2, f"Put the {last} {{goal}}, too.", 2, "Yes."]
    world = played(hands, turns)
    assert {"red", "blue", "white"} <= set(moved(world))
    assert len(moved(world)) == (5 if hands is TableHands else 4)


@BOTH
@pytest.mark.parametrize("text", ["Put it back, please.", "Put the red {thing} back where it was."])
def test_what_was_brought_goes_back_to_where_it_stood(hands: type[TableHands], text: str) -> None:
    world = hands()
    world.play(f"Put the red {world.thing} {world.goal}", 25, text.format(thing=world.thing), 25)
    assert world.ends() == {}


@BOTH
def test_what_is_in_no_hand_and_was_not_moved_is_not_put_back(hands: type[TableHands]) -> None:
    world = hands()
    assert world.play(f"Put the red {world.thing} back.").startswith("I do not hold")
    world.play(f"Put the red {world.thing} {world.goal}", 1, "Put it back.", 20)
    assert world.ends() == {}


@BOTH
def test_a_correction_of_somebody_elses_answer_takes_its_place(hands: type[TableHands]) -> None:
    world = hands()
    world.play(f"Put the {world.thing} {world.goal}", 2, ("Ben", "The blue one."), 2, "No, the red one.", 40)
    assert moved(world) == ["red"]


def test_going_back_is_held_by_no_question_whether_it_is_still_meant() -> None:
    world = TableHands()
    world.play("Put the ball in the bin", 5, "Don't you dare, that is my ball!", 2)
    said = world.play(("Ben", "It is only a ball."))
    assert "Shall I still put back" not in said


@BOTH
@pytest.mark.parametrize(
    ("stop", "text"),
    [("Stop!", "Don't throw it away."), ("Hold on.", "Leave that one."), ("Stop! Put it down.", "Thanks.")],
)
def test_what_is_forbidden_to_a_stopped_robot_goes_back(hands: type[TableHands], stop: str, text: str) -> None:
    world = hands()
    world.play(f"Put the red {world.thing} in the bin", 5, stop, 2, text, 2, "Go on.", 30)
    assert world.ends() == {}


def test_only_the_cup_is_the_one_that_was_ordered_with_something_else() -> None:
    world = TableHands()
    world.play("Put the red cup and the ball in the bin", 5, "Actually only the cup.", 40)
    assert moved(world) == ["red"]


@pytest.mark.parametrize("text", ["No no, stop, I meant the blue one!", "Stop, the blue one, I mean."])
def test_a_correction_beside_a_stop_is_of_what_was_asked_where_nothing_was_under_way(text: str) -> None:
    world = TableHands()
    world.play("Move the red cup", 2, text)
    assert world.last.startswith("Stopped. Where shall I put the blue cup?")
    world.play("In the bin.", 2, "Go on.", 30)
    assert moved(world) == ["blue"]


@pytest.mark.parametrize(
    ("text", "so"),
    [
        ("Shift the ball a little nearer to Ann.", "a little nearer"),
        ("Place the ball left of the white cup.", "left of"), ("Put the ball near the bottle.", "near the"),
        ("Would you put the bottle to the right of the green cup?", "to the right of"),
        ("Move the bottle a bit further away from me.", "a bit further"), ("Put the ball over here.", "over here"),
        ("Set the bottle down between the white cup and the green cup.", "between"),
    ],
)  # fmt: skip
def test_a_place_by_where_another_thing_is_is_refused_and_no_yes_makes_a_deed_of_it(text: str, so: str) -> None:
    world = TableHands()
    assert f"things “{so}" in world.play(text)
    world.play("Yes.", 20)
    assert world.ends() == {}


@pytest.mark.parametrize(
    "text", ["The bottle can go in too.", "Drop the bottle in as well.", "Put the bottle in with it"]
)
def test_in_as_well_is_where_the_last_order_put_something_in(text: str) -> None:
    world = TableHands()
    world.play("Put the white cup in the bin", 40, text, 40)
    assert world.ends() == {"white cup": "bin", "brown bottle": "bin"}


def test_in_by_itself_is_no_place_where_nothing_was_put_in() -> None:
    world = TableHands()
    assert world.play("Put the bottle in as well.", 20).startswith("Where shall I put the bottle?")
    assert world.ends() == {}


@pytest.mark.parametrize(
    ("text", "said", "ends"),
    [
        ("Oh, keep it.", "All right. I will put back", {}), ("Sorry, not now.", "All right. I will put back", {}),
        ("I don't need it after all.", "All right. I will put back", {}),
        ("Drop it in the bin, please.", "Sure. I will put the bottle in the bin", {"brown bottle": "bin"}),
        ("Thanks, I've got it.", "I still hold the brown bottle.", {"brown bottle": "person"}),
        ("Pass it on to Ben.", "I hold the brown bottle out. Ben can", {"brown bottle": "person"}),
        (("Ben", "Actually, keep it."), "", {"brown bottle": "person"}),
    ],
)  # fmt: skip
def test_what_is_held_out_is_taken_back_put_elsewhere_or_held_out_to_another(
    text: Turn, said: str, ends: dict[str, str]
) -> None:
    world = TableHands()
    world.play("Hand me the bottle")
    while world.held() is None and world.now_s < 30:
        world.play(1)
    assert world.play(text).startswith(said)
    world.play(20)
    assert world.ends() == ends


@BOTH
def test_the_other_of_several_is_asked_and_is_never_all_of_them(hands: type[TableHands]) -> None:
    world = hands()
    assert world.play(f"Put the red {world.thing} {world.goal}", 40, "And the other.").startswith("Which one")
    world.play(20)
    assert moved(world) == ["red"]


class RedThings(TableHands):
    """A red cup, a red block and a blue cup: "the red one" is open, and so is "the cup"."""

    def lay(self) -> None:
        super().lay()
        names = [("cup", "red"), ("block", "red"), ("cup", "blue")]
        self.things = [at(thing(f"{label}-{c}", c, label), -0.3 + 0.12 * n) for n, (label, c) in enumerate(names)]


@pytest.mark.parametrize(
    ("turns", "ends"),
    [
        (["Throw the red one away.", "The cup."], ["red cup"]),
        (["Throw the red one away.", "Not the block."], ["red cup"]),
        (["Put the cup in the bin.", ("Bob", "Not the red one! The other one!")], ["blue cup"]),
        (["Put the red cup in the bin.", 20, "Same with the other cup."], ["red cup", "blue cup"]),
        (["Put the red cup in the bin.", 6, "What have you got there?", 20, "Same with the other cup."],
         ["red cup", "blue cup"]),
        (["Put the red cup in the bin.", 20, "The block can go too."], ["red cup", "red block"]),
        (["Put the red cup in the bin.", 20, "The red block can go instead, then."], ["red cup", "red block"]),
    ],
)  # fmt: skip
def test_what_answers_a_question_is_one_of_those_that_were_asked_about(turns: list[Turn], ends: list[str]) -> None:
    assert sorted(played(RedThings, turns).ends()) == sorted(ends)


@pytest.mark.parametrize(
    ("turns", "ends"),
    [
        (["Could you get the ball off the table for me? The bin's fine."], {"purple ball": "bin"}),
        (["Put the red cup in the bin.", 5, "Whoa, stop! Sorry, that one's the dog's. It was the white one I meant.",
          "Go on."], {"white cup": "bin"}),
        (["Put the red cup in the bin.", 20, "Same again with whatever's furthest to my right."],
         {"red cup": "bin", "brown bottle": "bin"}),
        (["Put the ball in the bin.", 5, "Hang on, that's wrong. I want the one at the far left gone, not this.",
          "Yes, go on."], {"red cup": "bin"}),
        (["Put the ball in the bin.", 5, "No, put that one back, I'd rather you did the one on the far left."],
         {"red cup": "bin"}),
        (["Put the red cup in the bin.", 20, "Now the one on the far right."], {"red cup": "bin"}),
        (["What is between the red cup and the white one?", "Put the cup in the bin.", "Is the ball there?",
          "Could you pass me that?"], {"purple ball": "person"}),
        (["The red cup is called Bo.", "Bo was naughty. He has to go in the bin.", 20, "Take him out again!"], {}),
        (["Put the red cup in the bin.", 9, "Oh, that was my son's. Could you fetch it back out again?"], {}),
        (["Put the red cup in the bin.", 20, "Let's have it out again, would you?"], {}),
        (["First the red cup in the bin, and after that Betsy."], {}),
        (["Put the red cup in the bin.", 5, "Do you know what, leave Betsy where she is."], {"red cup": "bin"}),
        (["Put one of the cups in the bin.", 2, "Doesn't matter, whichever you like."], {"red cup": "bin"}),
        (["Put the ball in the bin.", 5, ("Bob", "Stop! I wanted that!"),
          "What's going on in here? Go on, put it back on the table for him.", "Go on."], {}),
    ],
)  # fmt: skip
def test_no_part_of_what_was_said_is_lost(turns: list[Turn], ends: dict[str, str]) -> None:
    assert played(TableHands, turns).ends() == ends


@pytest.mark.parametrize(
    "text",
    ["Hm, no, I'd rather have that one on the table.", "Could you pass me that?", "Yes, go on.", "That'll do me."],
)
def test_whose_side_was_meant_is_answered_by_no_other_words_with_me_or_you(text: str) -> None:
    world = TableHands(people=())
    world.play("Put the ball in the bin.", 5, "Hang on, that's wrong, I want the one at the far left gone.", text, 20)
    assert world.where["ball-1"] != "bin"
    assert world.where["cup-red"] == "table"


@pytest.mark.parametrize(("text", "binned"), [("From where I stand.", "red"), ("The one on my left.", "red"),
                                              ("As you see it.", "green"), ("Mine.", "red")])  # fmt: skip
def test_whose_side_was_meant_is_answered(text: str, binned: str) -> None:
    world = TableHands(people=())
    world.play("Throw the cup on the far left away.", text, 20)
    assert world.where[f"cup-{binned}"] == "bin"


class TableWithWaste(TableHands):
    """Its bin is as deep as that of the shipped table: the hand takes nothing out of it."""

    def lay(self) -> None:
        super().lay()
        self.places = [msgspec.structs.replace(self.places[0], state=("waste", "deep")), *self.places[1:]]  # type: ignore[type-var]  # a Struct


class KitchenWithDeepBin(KitchenHands):
    """That of the shipped kitchen is not so deep."""

    def lay(self) -> None:
        super().lay()
        self.places = [
            msgspec.structs.replace(one, state=("waste", "deep")) if one.label == "bin" else one  # type: ignore[type-var]  # a Struct
            for one in self.places
        ]


BOTH_WITH_WASTE = pytest.mark.parametrize("hands", [TableWithWaste, KitchenWithDeepBin])


@pytest.mark.parametrize("text", ["Get it out again.", "No, that was wrong, undo it."])
def test_what_lies_in_a_bin_that_the_hand_reaches_into_comes_back(text: str) -> None:
    world = played(KitchenHands, ["Put the red {thing} in the bin.", 12, text, 40])
    assert "red mug" not in world.ends(), "it stands on the table again"


@BOTH_WITH_WASTE
@pytest.mark.parametrize(
    "text",
    [
        "Get it out again.", "Give me the red {thing}.", "Put the red {thing} back.", "No, that was wrong, undo it.",
        "Take the red {thing}.", "Put all the {thing}s on the table.",
    ],
)  # fmt: skip
def test_what_lies_in_the_bin_is_asked_for_and_not_promised(hands: type[TableHands], text: str) -> None:
    world = played(hands, ["Put the red {thing} in the bin.", 12, text])
    assert sentence("planner.out_of_reach", thing=f"red {hands.thing}") in " ".join(world.says)
    assert world.ends()[f"red {hands.thing}"] == "bin"


@BOTH_WITH_WASTE
def test_what_lies_in_the_bin_is_in_no_any_and_holds_up_nothing_else(hands: type[TableHands]) -> None:
    binned = "Put the red {thing} in the bin."
    world = played(hands, [binned, 12, "Give me the red {thing} and the blue {thing}.", 20])
    assert world.ends() == {f"red {hands.thing}": "bin", f"blue {hands.thing}": "person"}
    assert "person" in played(hands, [binned, 12, "Give me a {thing}.", 20]).ends().values()


def test_what_is_wanted_back_while_it_is_brought_to_the_bin_is_asked_for() -> None:
    world, back = TableWithWaste(), ("Ben", "And then put the red cup on the table.")
    world.play("Put the red cup in the bin.", STEP_S + 2, back, 20)
    assert sentence("planner.out_of_reach", thing="red cup") in " ".join(world.says)
    assert world.ends() == {"red cup": "bin"}


def test_no_deed_is_told_that_failed() -> None:
    world = TableHands()
    world.play("Put the red cup in the bin.")
    task = world.subtask()
    assert task is not None
    world.told(SceneDescription(text="", subtask_id=task.id, progress="failed", why="it is stuck"))
    assert world.mind.deeds == ()


@BOTH
def test_who_has_ordered_it_contradicts_nobody_though_another_has_ordered_since(hands: type[TableHands]) -> None:
    """Each thing has its own orderer: the white one Ann, the red one Ben."""
    for who, colour, is_asked in (("Ann", "white", False), ("Ben", "white", True), ("Ann", "red", True)):
        world = hands()
        world.play(f"Put the white {world.thing} {world.goal}.", 1, ("Ben", f"And the red {world.thing}, too."), 6)
        reply = world.play((who, f"Put the {colour} {world.thing} on the table."))
        assert ("instead?" in reply) == is_asked, (who, colour)


@BOTH
@pytest.mark.parametrize("text", ["What about the red {thing}?", "The red one?", "The red {thing} ..."])
def test_what_is_only_named_beside_the_work_is_asked_about_and_done_after_a_yes_alone(
    hands: type[TableHands], text: str
) -> None:
    for answer, ends in ((), ["white"]), (("Yes.",), ["white", "red"]):
        assert sorted(moved(played(hands, ["Put the white {thing} {goal}.", 3, text, *answer]))) == sorted(ends)


@BOTH
@pytest.mark.parametrize("text", ["Do it the way I said.", "Ignore him.", "No, as I asked."])
def test_who_ordered_first_and_says_so_again_is_followed_and_that_is_no_yes(hands: type[TableHands], text: str) -> None:
    world = played(hands, ["Put the white {thing} {goal}.", 2, ("Ben", "Put the white {thing} on the table."), text])
    assert moved(world) == ["white"]


@pytest.mark.parametrize(
    ("turns", "ends"),
    [
        (["Wash the red mug and leave it on the tray."], {"red mug": "tray"}),
        (["Wash the red mug, leave it on the tray."], {"red mug": "tray"}),
        (["Take the red mug and leave it on the shelf, please."], {"red mug": "shelf"}),
        (["Put the red mug on the tray.", 5, "No, leave it on the table."], {}),
        (["Give me the red mug.", 5, "Leave it on the shelf."], {"red mug": "shelf"}),
        (["Put the blue mug on the tray and leave the red mug in the sink."], {"blue mug": "tray"}),
        (["Wash the red mug and don't leave it in the sink."], {"red mug": "countertop"}),
    ],
)  # fmt: skip
def test_to_leave_it_where_it_is_not_yet_is_to_put_it_there(turns: list[Turn], ends: dict[str, str]) -> None:
    assert played(KitchenHands, turns).ends() == ends


ONE_OR_OTHER = pytest.mark.parametrize(
    ("hands", "one", "other"), [(TableHands, "ball", "brown bottle"), (KitchenHands, "apple", "yellow banana")]
)


@ONE_OR_OTHER
@pytest.mark.parametrize(
    "text",
    [
        "Take the {other} instead.", "No, take the {other}.", "The {other} instead.", "Not the {one}, the {other}.",
        "Take the {other} instead of the {one}.", "Put the {other} {goal}, not the {one}.", "Do the {other} instead.",
    ],
)  # fmt: skip
def test_another_thing_instead_goes_where_the_first_was_to_go_and_that_one_stays(
    hands: type[TableHands], one: str, other: str, text: str
) -> None:
    world = hands()
    world.play(f"Put the {one} {world.goal}.", 5, text.format(one=one, other=other, goal=world.goal), LONG_S)
    assert world.ends() == {other: world.goal.split()[-1]}


def test_another_thing_instead_is_handed_over_or_washed_as_the_first_was_to_be() -> None:
    world = KitchenHands()
    world.play("Give me the apple.", 2, "Take the banana instead.", LONG_S)
    assert world.ends() == {"yellow banana": "person"}
    world = KitchenHands()
    world.play("Wash the red mug.", 2, "Take the blue one instead.")
    assert {(one.skill, one.things[0].id) for one in world.mind.orders} == {
        ("rinse", "mug-blue"), ("place", "mug-blue")
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "is_kept"), [("The cups instead.", True), ("No, on the table.", True), ("No, everything.", False)]
)
def test_what_was_excepted_stays_so_unless_that_is_what_is_put_right(text: str, is_kept: bool) -> None:
    world = TableHands()
    world.play("Put everything but the red cup in the bin.", 2, text)
    assert world.mind.order is not None
    assert [one.colour for one in world.mind.order.excluding] == ["red"] * is_kept


@BOTH_WITH_WASTE
def test_an_order_with_a_question_mark_behind_it_is_an_order(hands: type[TableHands]) -> None:
    assert moved(played(hands, ["Put the white {thing} {goal} for me?"])) == ["white"]
    world = hands()
    world.play("Can you clear this table for me? Just bin the lot.", 5, "Yes.", LONG_S)
    assert {*world.ends()} >= {f"red {world.thing}", f"white {world.thing}"}
    assert {*world.ends().values()} == {"bin"}


@BOTH
@pytest.mark.parametrize("text", ["Sorry, I was on the phone, carry on.", "Right you are. Carry on, please."])
def test_who_is_told_to_go_on_says_with_what_or_that_there_is_nothing(hands: type[TableHands], text: str) -> None:
    world = hands()
    assert "nothing to do" in world.play(text)
    assert "at it" in world.play(f"Put the white {world.thing} {world.goal}.", 1, text)


def test_a_mug_that_is_not_to_be_used_is_not_used() -> None:
    world = KitchenHands()
    world.play("Make me a coffee in the white mug.", 2, ("Ben", "Don't use the white mug!"), LONG_S)
    assert "white mug" not in world.ends()


@pytest.mark.parametrize(
    ("order", "text", "ends"),
    [
        ("Put the fruit on the tray.", "Ugh, the banana's all brown. Put that in the bin instead.",
         {"green apple": "tray", "yellow banana": "bin"}),
        ("Put the banana on the tray.", "The banana is brown. Bin it instead.", {"yellow banana": "bin"}),
        ("Put the banana on the tray.", "The apple is all red on one side. Give me that.",
         {"green apple": "person", "yellow banana": "tray"}),
    ],
)  # fmt: skip
def test_what_is_said_of_a_thing_names_what_that_means_and_is_no_way_to_look_for_it(
    order: str, text: str, ends: dict[str, str]
) -> None:
    world = KitchenHands()
    world.play(order, 2, text, LONG_S)
    assert world.ends() == ends


@ONE_OR_OTHER
@pytest.mark.parametrize("more", ["And the {other}.", "Also the {other}."])
def test_a_second_sentence_with_and_adds_to_the_first(hands: type[TableHands], one: str, other: str, more: str) -> None:
    world = hands()
    world.play(f"Put the {one} {world.goal}. {more.format(other=other)}", LONG_S)
    assert set(world.ends()) >= {other}
    assert len(world.ends()) == 2


@pytest.mark.parametrize("ordered", ["Make me a coffee.", "Make me a black coffee."])
def test_a_drop_of_cream_is_some_and_to_drop_it_is_none(ordered: str) -> None:
    world = KitchenHands()
    world.play(ordered, 2, "White mug, please. And a drop of cream.")
    assert "cream dispenser" in {one.place for one in world.mind.orders}
    world.play("No, drop the cream.")
    assert "cream dispenser" not in {one.place for one in world.mind.orders}


@BOTH
def test_a_short_word_of_thanks_beside_a_question_is_in_no_other_language(hands: type[TableHands]) -> None:
    world = hands()
    asked = world.play(f"Give me the {world.thing}.")
    assert asked.endswith("?")
    assert world.play("Ta.") == "All right."
    assert "English" in world.play("Da.")


@BOTH
@pytest.mark.parametrize(
    ("order", "seconds"),
    [("Put the red {thing} {goal}.", 20), ("Put the red {thing} {goal}.", 6), ("Take the red {thing}.", 20)],
)
def test_of_several_what_was_moved_last_or_is_in_the_hand_goes_back(
    hands: type[TableHands], order: str, seconds: int
) -> None:
    world = hands()
    order = order.format(thing=world.thing, goal=world.goal)
    world.play(order, seconds)
    assert set(world.ends()) == {f"red {world.thing}"}
    world.play(f"Put the {world.thing} back where you found it.", LONG_S)
    assert world.ends() == {}


def test_what_was_filled_goes_back_to_no_machine() -> None:
    world = KitchenHands()
    world.play("Make me a coffee in the red mug.", 60, "Put the red mug back where you found it.", LONG_S)
    assert world.ends() == {}


def test_what_is_opened_is_what_was_named_last_and_not_what_is_in_the_hand() -> None:
    world = KitchenHands()
    world.things.append(at(thing("jar-1", "brown", "cookie jar"), 0.4))
    world.where["jar-1"] = "table"
    world.play("Make me a coffee in the white mug.", 5, "Hm, is the cookie jar empty, I wonder.", 2)
    said = world.play("Well, open it up and let's see.")
    assert "open the brown cookie jar" in said
    assert "white mug" not in said
