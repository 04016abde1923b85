"""Questions are answered from what is believed and was done, and order nothing; what they name may be meant next.

Things stand in a row from Ann's left, who stands opposite the robot, to her right.
"""

from __future__ import annotations

import msgspec
import pytest

from nodes.planner.words.asked import asked_apart, words_of_question
from tests.nodes.planner.test_dialogues import ALL, BOTH, BOTH_WITH_WASTE, LONG_S, moved, played
from tests.nodes.planner.test_rules import thing as table_thing
from tests.nodes.planner.two_hands import KitchenHands, TableHands, Turn, at
from tests.support.sentences import sentence


@pytest.mark.parametrize(
    "text",
    ["Where did the bowl end up?", "So which of these have you put away?", "You never moved my plate, did you?",
     "Oh, and the glass, is that dirty?", "Do you know whose that is?", "The lid's not on the tray?",
     "Lovely. How many are left?", "Are you carrying anything?"],
)  # fmt: skip
def test_a_question_is_told_from_an_order(text: str) -> None:
    assert any(asks for _, asks in asked_apart(text))


@pytest.mark.parametrize(
    "text",
    ["Would you fetch the bowl?", "Can the plate go on the tray?", "The bowl that's over there, could you wash it?",
     "Why don't you take the other one?", "Do you mind moving the glass?", "The red one?", "What about the bowl?",
     "Didn't we say leave the bowl?", "Put it away."],
)  # fmt: skip
def test_a_request_and_a_doubt_are_no_plain_questions(text: str) -> None:
    assert not any(words_of_question(one) for one, _ in asked_apart(text))


@BOTH
@pytest.mark.parametrize(
    "text",
    ["What have you got nearest you?", "Which {thing} stands furthest from the bottle?",
     "Was the red {thing} ever moved?",
     "You're not taking the red {thing}, are you?", "What will you do with the white {thing}?",
     "Is there any {thing} on the right of the others?", "Have you put everything away?"],
)  # fmt: skip
def test_a_question_changes_neither_orders_nor_what_is_asked(hands: type[TableHands], text: str) -> None:
    world = hands()
    world.play(f"Put the {world.thing} {world.goal}", 1)
    asked = world.mind.questions
    assert world.play(text.format(thing=world.thing))
    assert (world.mind.orders, world.mind.questions) == ((), asked)


@BOTH
@pytest.mark.parametrize(
    ("text", "answer"),
    [("Which one did you take first?", "First I put the white"), ("In which order was that done?", "then put the red"),
     ("How many {thing}s have you put there?", "Two"), ("You haven't touched the blue {thing}, have you?", "No"),
     ("Did you move the red {thing}?", "Yes"), ("The red {thing}'s not {goal}?", "Yes"), ("Who wanted that?", "Ann"),
     ("Is there anything you never touched?", "the blue {thing}"), ("Are you finished?", "Yes"),
     ("Which one was that?", "the red {thing}"), ("What have you still got to do?", "nothing left"),
     ("Why did you move the white {thing}?", "Ann")],
)  # fmt: skip
def test_what_was_done_is_told_in_its_order(hands: type[TableHands], text: str, answer: str) -> None:
    world = played(hands, ["Put the white {thing} {goal}.", LONG_S, "And the red {thing} too."])
    said = world.play(text.format(thing=world.thing, goal=world.goal))
    assert answer.format(thing=world.thing) in said


@BOTH
def test_what_is_still_to_be_done_is_counted(hands: type[TableHands]) -> None:
    world = hands()
    world.play(f"Put the white {world.thing} {world.goal} and then the red {world.thing} {world.goal}.", 5)
    assert world.play("How many more have you to put there?").startswith("Two: put the white")
    assert f"put the red {world.thing}" in world.play("What comes after this one?")
    assert world.goal in world.play(f"Where is the white {world.thing} going?")


@BOTH
def test_who_stopped_it_is_told(hands: type[TableHands]) -> None:
    world = hands()
    world.play(ALL.format(thing=world.thing, goal=world.goal), 5, ("Ben", "Stop!"))
    assert "Ben" in world.play("What are you waiting for?")
    world.play("Go on.", 5)
    assert "Ben" in world.play("Why did you stop before?")


@BOTH
@pytest.mark.parametrize(
    ("text", "named"),
    [("Which {thing} is furthest over on my left?", "red"), ("Which {thing} is nearest to the white one?", "blue"),
     ("What is on the far right, from your side?", "red"),
     ("Is the blue {thing} left of the red one, as I see it?", "right")],
)  # fmt: skip
def test_where_something_stands_is_told_from_the_side_that_was_meant(
    hands: type[TableHands], text: str, named: str
) -> None:
    world = hands(people=())
    assert named in world.play(text.format(thing=world.thing))


@BOTH
@pytest.mark.parametrize(
    "turns",
    [["Which {thing} is the one on my left?", "Put that one {goal}, please."],
     ["Is the red {thing} on the table?", "Good. Put it {goal}."],
     ["Put the {thing} {goal}.", "How many {thing}s are there?", "Which one's on my left?", "That one."],
     ["Is the blue {thing} dirty?", "Leave it there and put the red one {goal}."],
     ["Take the {thing} that's furthest on my left and put it {goal}."]],
)  # fmt: skip
def test_that_one_is_what_the_robot_has_just_named(hands: type[TableHands], turns: list[Turn]) -> None:
    world = played(hands, turns, people=())
    assert [name for name, where in world.ends().items() if where == world.goal.split()[-1]] == [f"red {world.thing}"]


@BOTH
def test_the_others_are_those_of_its_kind_that_were_not_named(hands: type[TableHands]) -> None:
    world = hands(people=())
    world.play(f"Which {world.thing} is on my left?", f"Put the others {world.goal}.", LONG_S)
    names = {name for name, where in world.ends().items() if where == world.goal.split()[-1]}
    assert f"red {world.thing}" not in names
    assert {f"blue {world.thing}", f"white {world.thing}"} <= names


@BOTH
def test_what_is_somebody_s_is_told_with_yes_or_no(hands: type[TableHands]) -> None:
    world = hands()
    world.play(f"The red {world.thing} is Ben's.")
    assert world.play(f"Is the red {world.thing} mine?").startswith("No")
    assert "Ben" in world.play(f"Whose is the red {world.thing}?")
    world.play(f"Put Ben's {world.thing} {world.goal}.", 5)
    assert not world.mind.orders, "it is not Ann's"


def test_a_mug_is_named_by_what_it_holds_and_by_how_it_is() -> None:
    world = KitchenHands()
    state = {"mug-blue": ("full", "coffee"), "mug-white": ("dirty",)}
    world.things = [
        msgspec.structs.replace(one, state=state.get(one.id, ()))  # type: ignore[type-var]  # a Struct
        for one in world.things
    ]
    assert "blue mug" in world.play("Which one has coffee in it?")
    assert "white mug" in world.play("Which mugs are dirty?")
    world.play("Put the mug with the coffee on the tray and the dirty one in the sink.", LONG_S)
    assert (world.ends()["blue mug"], world.ends()["white mug"]) == ("tray", "sink")


@BOTH
def test_what_nobody_may_do_is_a_ban(hands: type[TableHands]) -> None:
    world = hands()
    world.play(f"Well, look after it. Nobody throws the white {world.thing} out.")
    assert world.mind.kept == {f"{world.thing}-white"}


@BOTH
def test_a_name_is_kept_and_what_is_said_behind_it_counts(hands: type[TableHands]) -> None:
    world = hands()
    said = world.play(f"I'm naming the white {world.thing} Uncle Bo, and please never move it.")
    assert "Uncle Bo" in said
    assert world.mind.kept == {f"{world.thing}-white"}
    assert "on the table" in world.play("Where is Uncle Bo?")
    assert "Bo" in world.play("Who is Uncle Bo?")
    world.play(f"Put all the {world.thing}s {world.goal}", LONG_S)
    assert f"white {world.thing}" not in world.ends()
    assert hands().play(f"We'll call the red {world.thing} Pip from now on.").endswith("is called Pip.")


@BOTH
@pytest.mark.parametrize(
    "text",
    ["What did you do with the red one?", "What has become of the red {thing}?", "What happened to the red {thing}?"],
)
def test_what_was_done_with_one_thing_is_told_of_that_one(hands: type[TableHands], text: str) -> None:
    world = hands()
    world.play(f"Put the red {world.thing} {world.goal}.", 6, "Stop! Not the red one, the white one.", "Go on.", 30)
    said = world.play(text.format(thing=world.thing))
    assert said.startswith(f"I put the red {world.thing}")
    assert "back" in said or "on the table" in said
    assert "white" not in said
    untouched = world.play(f"What have you done with the blue {world.thing}?")
    assert untouched == f"The blue {world.thing} is on the table."


@BOTH
def test_why_something_was_done_that_was_not_is_no_reason(hands: type[TableHands]) -> None:
    world = hands()
    world.play(f"Leave the white {world.thing}, it has a crack.")
    said = world.play(f"Why did you move the white {world.thing}?")
    assert said.startswith(f"I have not moved the white {world.thing}.")
    assert "it has a crack" in said
    for text in ("What's wrong with the white one?", "What's the trouble with the white {thing}, then?"):
        assert "it has a crack" in world.play(text.format(thing=world.thing))


def test_the_nearest_and_the_other_are_of_those_that_still_stand_there() -> None:
    world = TableHands()
    world.play("Put the red cup and the blue cup in the bin.", LONG_S)
    assert world.play("Of the two cups still here, which is closer to the bottle?") == "That is the green cup."
    said = world.play("And which one is nearest to the bin: the white cup or the green one?")
    assert said == "That is the green cup."
    world.play("Which cup is furthest from the ball?", "Throw the other one in the bin, please.", LONG_S)
    assert world.ends() == {"red cup": "bin", "blue cup": "bin", "green cup": "bin"}
    assert world.play("What colour is the cup that's left?") == "That is the white cup."


def test_what_was_put_into_a_mug_is_told_of_that_mug() -> None:
    world = KitchenHands()
    world.play("A coffee with cream in the red mug, please.", 6)
    assert world.play("Did my coffee get its cream?").endswith("not put it in yet.")
    world.work(LONG_S)
    for text in ("Did my coffee get its cream?", "Has the cream gone in?", "Have you added cream to it?"):
        assert world.play(text) == "The coffee in the red mug is with cream."
    assert world.play("Which mug got the cream?") == "I have put cream in the red mug."
    assert world.play("Was cream added to the white mug?") == "I have put no cream in the white mug."


@BOTH
@pytest.mark.parametrize(
    "text",
    ["And the {thing} that's nobody's can go {goal}.", "Put the {thing} which belongs to no one {goal}, please."],
)
def test_which_one_it_is_may_be_told_by_whose_it_is(hands: type[TableHands], text: str) -> None:
    world = hands()
    world.play(f"The white {world.thing} is mine.", ("Ben", f"The red {world.thing} belongs to me."))
    if world.thing == "cup":
        world.play("The green cup is Cleo's.")
    world.play(("Ben", text.format(thing=world.thing, goal=world.goal)), 30)
    assert list(world.ends()) == [f"blue {world.thing}"]
    world.play(("Ben", f"Put the {world.thing} that's mine {world.goal}."), 30)
    assert f"red {world.thing}" in world.ends()
    assert f"white {world.thing}" not in world.ends()


@BOTH
def test_what_was_told_is_quoted_from_who_told_it(hands: type[TableHands]) -> None:
    world = hands()
    world.play(
        ("Ben", f"Leave the white {world.thing} alone."), ("Cleo", f"Put the red {world.thing} {world.goal}."), 30
    )
    world.play("Where is the ball?")
    assert world.play("What did Ben tell you?").startswith("Ben said: “Leave the white")
    assert world.play(("Ben", "What did I say?")).startswith("Ben said: “Leave the white")
    assert world.play(("Cleo", "What did I tell you, by the way?")).startswith("Cleo said: “Put the red")


@BOTH
def test_where_something_came_from_and_what_stands_beside_it_is_told(hands: type[TableHands]) -> None:
    world = hands()
    world.play(f"Put the red {world.thing} {world.goal}.", 30)
    for text in ("Where was the red {thing} before?", "Where did the red {thing} come from?"):
        said = world.play(text.format(thing=world.thing))
        assert said.startswith(f"The red {world.thing} was ")
        assert said.endswith(" the table.")
    if world.thing == "cup":
        assert world.play("What's on the left of the ball?") == "That is the green cup."
        assert world.play("Is the white cup or the bottle closer to the bin?") == "That is the brown bottle."
        assert world.play("Which cup is furthest from the bin?") == "That is the blue cup."


def test_what_is_in_a_mug_is_told_from_what_was_poured_and_washed() -> None:
    world = KitchenHands()
    world.play("A coffee without cream in the red mug, please.", LONG_S)
    assert world.play("What's in the red mug?") == "I filled the red mug at the coffee machine."
    world.play("Wash the blue mug.", LONG_S)
    assert world.play("Is there anything in the blue mug?") == "No: I washed the blue mug."
    assert world.play("For whom did you wash the blue mug?") == "Ann asked me. I washed the blue mug."


@BOTH
def test_what_about_a_thing_that_somebody_keeps_asks_why_it_is_left(hands: type[TableHands]) -> None:
    world = hands()
    world.play(("Ben", f"The blue {world.thing} is mine."), ALL.format(thing=world.thing, goal=world.goal), 4)
    said = world.play("And what about the blue one?")
    assert said.startswith(f"I leave the blue {world.thing}, as Ben said")
    world.work(LONG_S)
    assert f"red {world.thing}" in world.ends()
    assert f"blue {world.thing}" not in world.ends()
    assert f"the blue {world.thing} is on the table" in world.play(f"Which {world.thing}s are left?").lower()


@BOTH
@pytest.mark.parametrize(
    ("text", "answer"),
    [("Who asked you to move the white {thing}?", "Ann asked"), ("Who had the blue {thing} put there?", "Ben asked"),
     ("Which of us asked for the blue {thing}?", "Ben asked"),
     ("Why did you do the blue one second?", "Then Ben said: “And the blue {thing}, too.”"),
     ("Did I tell you to move the blue {thing}?", "No. Ben said"), ("Why is the white {thing} there?", "“Put the"),
     ("And which was the last one?", "the blue {thing}"), ("What was in your hand just now?", "the blue {thing}"),
     ("Did you move anything else?", "and nothing else"), ("Did you do anything with the red {thing}?", "No"),
     ("What have you got in your hand?", "empty")],
)  # fmt: skip
def test_each_deed_is_told_with_who_asked_for_it(hands: type[TableHands], text: str, answer: str) -> None:
    world = hands()
    world.play(f"Put the white {world.thing} {world.goal}.", 2, ("Ben", f"And the blue {world.thing}, too."), LONG_S)
    assert answer.format(thing=world.thing) in world.play(text.format(thing=world.thing))


@BOTH
def test_why_something_is_done_no_more_is_told_by_the_words_that_ended_it(hands: type[TableHands]) -> None:
    world = hands()
    changed = f"No, stop, I meant the white {world.thing}!"
    world.play(f"Put the blue {world.thing} {world.goal}.", 5, ("Ann", changed), "Go on.", LONG_S)
    assert changed in world.play(f"Why did the blue {world.thing} not end up there?")


@BOTH
def test_a_turn_among_what_was_done_or_named_is_meant_by_the_first_one(hands: type[TableHands]) -> None:
    world = hands()
    world.play(f"Put the white {world.thing} {world.goal}, then the red {world.thing} {world.goal}.", LONG_S)
    world.play("How many have you put there?", "Get the first one out again.", LONG_S)
    assert [*world.ends()] == [f"red {world.thing}"]


@BOTH
@pytest.mark.parametrize(
    ("wait_s", "asked"),
    [
        (12, "And the one on the far left?"), (12, "Where is the hat?"), (12, "And the small one?"),
        (6, "Put the one on the far left on the table."),
    ],
)  # fmt: skip
@pytest.mark.parametrize("deed", ["Put that one on the table for me.", "Give it to me."])
def test_it_is_what_was_asked_about_last_though_nobody_found_it(
    hands: type[TableHands], wait_s: int, asked: str, deed: str
) -> None:
    world = played(hands, ["Put the red {thing} {goal}.", wait_s, asked, deed], people=())
    assert moved(world) == ["red"]
    assert len(world.ends()) == 1


@BOTH
@pytest.mark.parametrize("deed", ["Put that one on the table for me.", "Give it to me."])
def test_that_one_is_none_before_it_is_told_which_is_meant(hands: type[TableHands], deed: str) -> None:
    world = hands()
    which = world.play(f"Put the red {world.thing} {world.goal}.", 12, f"Put the {world.thing} {world.goal}.")
    assert which.startswith("Which")
    assert world.play(deed) == which
    world.play("The blue one.", LONG_S)
    assert ("blue " + world.thing) in world.ends() or "table" in deed
    assert moved(world) == ["red"]


def test_whose_left_was_meant_and_what_stands_beside_what() -> None:
    world = TableHands()
    world.play("Put the cup on my far left in the bin.", LONG_S)
    assert world.play("By left, did you mean mine or yours?").startswith("I went by yours")
    assert world.play("What is the bottle next to?") == "The purple ball is next to the brown bottle."
    assert world.play("Is the blue cup next to the bottle?").startswith("No")


@BOTH
@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("The thing between the two bowls? Put it {goal}.", "white"),
        ("Put the one between the bowls {goal}.", "white"),
        ("What's in between the two bowls, put it {goal}.", "white"),
        ("Put what's between the bowls {goal}.", "white"),
        ("What is next to the red {thing}? Put it {goal}.", "blue"),
        ("What's that next to the red {thing}? Put it {goal}.", "blue"),
        ("Put the one furthest to my left {goal}.", "red"), ("Put the one on the far left {goal}.", "red"),
        ("The leftmost one, put it {goal}.", "red"), ("Put the leftmost thing {goal}.", "red"),
    ],
)  # fmt: skip
def test_a_thing_of_any_kind_is_told_by_its_place(hands: type[TableHands], text: str, meant: str) -> None:
    world = hands()
    black, yellow = (table_thing(f"bowl-{colour}", colour, "bowl") for colour in ("black", "yellow"))
    row = [*world.things[:2], black, world.things[2], yellow]
    world.things = [at(one, -0.3 + 0.12 * n) for n, one in enumerate(row)]
    world.where = {one.id: "table" for one in row}
    world.play(text.format(thing=world.thing, goal=world.goal), LONG_S)
    assert moved(world) == [meant]


@BOTH_WITH_WASTE
def test_what_was_thrown_away_is_meant_by_its_name_alone(hands: type[TableHands]) -> None:
    world = hands()
    world.play(f"Put the blue {world.thing} in the bin.", 12)
    assert "blue" not in world.play(f"I'll have the {world.thing}.")
    assert "blue" not in world.play("Give me the other one.")
    white = [one.name for one in world.things if one.colour in ("red", "green") and one.label == world.thing]
    world.play(f"Put the {' and the '.join(white)} in the bin.", 30, f"I'll have the {world.thing}.", LONG_S)
    assert world.ends()[f"white {world.thing}"] == "person"


@BOTH
def test_whether_an_order_is_done_is_answered_by_yes_or_not_yet(hands: type[TableHands]) -> None:
    world = hands()
    world.play(f"Put the red {world.thing} and the blue {world.thing} {world.goal}.", 6)
    assert world.play("Have you done the red one yet?").startswith("Not yet")
    assert world.play("Have you done the blue one yet?").startswith("Not yet")
    world.work(LONG_S)
    assert world.play("Have you done the red one yet?").startswith("Yes")


@BOTH
def test_why_the_last_one_was_not_done_tells_what_forbade_it_last(hands: type[TableHands]) -> None:
    world = hands()
    world.play(f"Leave the blue {world.thing}.", ("Ben", f"And leave the white {world.thing}."))
    world.play(f"Put the red {world.thing} {world.goal}.", LONG_S)
    assert "Ben said" in world.play("How come you didn't move that last one?")


@BOTH
def test_whose_a_thing_is_may_be_said_behind_an_answer_and_asked_by_a_name(hands: type[TableHands]) -> None:
    world = hands()
    world.play(f"Where is the white {world.thing}?", ("Helen", "Jack, no! That one's mine."))
    assert world.play(f"So whose is the white {world.thing}?").startswith("Helen")
    world.play(f"Omar was using the blue {world.thing}.")
    assert f"the blue {world.thing}" in world.play("Which one was Omar using?")
    said = world.play(("Cleo", f"Which {world.thing} can I have, then?"))
    assert "ed " + world.thing in said
    assert not {"white", "blue"} & {*said.split()}
    world.play(("Helen", f"I'm finished with it now, so you can put it {world.goal}."), LONG_S)
    assert [*world.ends()] == [f"white {world.thing}"]


def test_two_questions_in_one_sentence_are_both_answered() -> None:
    world = TableHands()
    world.play("Put the red cup in the bin.", LONG_S)
    assert world.play("Where is the red cup, and where's the ball?").count(" is ") == 2


@BOTH
@pytest.mark.parametrize(
    ("text", "answer"),
    [("Is mine still on the table?", "Yes. The white"),
     ("What did Ann ask you for first?", "“Put the blue"),
     ("Has anyone told you the red {thing} is theirs?", "nobody"),
     ("You won't forget to move the blue {thing}?", "Yes"),
     ("What's the reason the white {thing}'s still there?", "“The white {thing} is mine.”"),
     ("How's that coming along?", "My task is")],
)  # fmt: skip
def test_who_speaks_is_answered_of_what_is_theirs_and_was_said(hands: type[TableHands], text: str, answer: str) -> None:
    world = hands()
    world.play(("Ben", f"The white {world.thing} is mine."), f"Put the blue {world.thing} {world.goal}.", 2)
    assert answer.format(thing=world.thing) in world.play(("Ben", text.format(thing=world.thing)))


@BOTH
def test_what_its_owner_has_allowed_once_is_kept_again(hands: type[TableHands]) -> None:
    world = hands()
    world.play(("Ben", f"The white {world.thing} is mine."), ("Ben", f"Put my {world.thing} {world.goal}."), LONG_S)
    assert "Ben, shall I" in world.play(f"Bring the white {world.thing} back on the table.", LONG_S)
    assert f"white {world.thing}" in world.ends()


@BOTH
def test_beside_it_is_beside_the_thing_that_was_spoken_of_and_no_place(hands: type[TableHands]) -> None:
    world = hands()
    world.play(f"Put the white {world.thing} {world.goal}.", LONG_S)
    assert "next to it" in world.play(f"Put the red {world.thing} next to it.", LONG_S)
    assert [*world.ends()] == [f"white {world.thing}"]


@BOTH
def test_a_name_behind_an_answer_asks_the_same_of_another_thing(hands: type[TableHands]) -> None:
    world = hands()
    world.play(f"Put the white {world.thing} {world.goal}.", LONG_S, f"Did you move the red {world.thing}?")
    assert world.play(f"And the white {world.thing}?").startswith("Yes")
    assert world.play(f"What about the blue {world.thing}?").startswith("No")
    assert world.play(f"Where did you put the white {world.thing}?").startswith(f"I put the white {world.thing}")


@BOTH
def test_the_other_two_are_those_that_the_last_order_was_not_about(hands: type[TableHands]) -> None:
    world = hands()
    world.play(f"Put the white {world.thing} {world.goal}.", LONG_S)
    left = [one.name for one in world.things if one.label == world.thing and "white" not in one.name]
    said = world.play(f"Now the other {'three' if len(left) > 2 else 'two'}.")
    assert "Shall I put" in said
    assert all(name in said for name in left)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("Is there anything green left?", "Yes: The green cup is on the table."),
        ("So what have we got left?", "I see the white cup, the green cup, the purple ball and the brown bottle on"),
        ("What have you got there?", "My hand is empty."),
        ("Both cups gone?", "Yes, I put the red cup in the bin."),
        ("Can you hear me?", "Yes, I hear you."),
        ("What's going on here?", "I am waiting"),
        ("I'd like to know what's on the table.", "I see the white cup, the green cup,"),
    ],
)
def test_what_is_left_held_or_gone_is_told(text: str, answer: str) -> None:
    world = TableHands()
    world.play("Put the red cup and the blue cup in the bin.", LONG_S)
    assert world.play(text).startswith(answer)


def test_of_several_it_is_told_whose_each_is() -> None:
    world = TableHands()
    world.play(("Ben", "The ball's mine, by the way."), "Whose are the ball and the red cup?")
    assert world.last == "Ben owns the purple ball. I do not know whose the red cup is."


def test_what_comes_next_is_told_before_it_was_said_that_the_last_thing_is_there() -> None:
    world = KitchenHands()
    world.play("Put the red mug and the blue mug on the tray.")
    world.where["mug-red"] = "tray"
    assert "blue mug" in world.play("What are you going to do next?")
    assert sentence("planner.waits") not in world.play("What are you doing?")


def test_an_order_that_lacks_all_but_an_exception_is_asked_about() -> None:
    asked = sentence("planner.what_and_where", places="the bin and the table")
    assert TableHands().play("Clear the table, but leave the ball.").endswith(asked)


def test_where_it_was_before_it_was_moved_is_told() -> None:
    world = KitchenHands()
    world.play("Put the red mug in the sink.", 20)
    assert "on the table" in world.play("Where was the red mug before you moved it?")


@BOTH
def test_what_was_answered_of_one_thing_is_asked_of_the_next_while_a_question_is_open(hands: type[TableHands]) -> None:
    world, other = hands(), "ball" if hands is TableHands else "apple"
    asked = world.play(f"Put the {world.thing} {world.goal}.")
    world.play(f"Where is the red {world.thing}?")
    assert world.play(f"And the {other}?").endswith(f"{other} is on the table.")
    assert world.play(f"The {other}?").endswith(f"{other} is on the table.")
    assert [one.text for one in world.mind.questions] == [asked]
    world.play("The red one?", LONG_S)
    assert world.ends() == {f"red {world.thing}": world.goal.split()[-1]}, "that answers what was asked"


@BOTH
@pytest.mark.parametrize("word", ["Go on.", "Yes.", "Yes, go ahead.", "Go ahead."])
def test_the_yes_of_who_was_not_asked_answers_nothing(hands: type[TableHands], word: str) -> None:
    world = hands()
    world.play(f"Put the red {world.thing} {world.goal}.", 5)
    asked = world.play(("Ben", f"No, put the red {world.thing} on the table."))
    assert asked.startswith("Ann said")
    assert world.play(("Mia", word)) == sentence("planner.waits_for_answer", asked=asked)
    assert [one.text for one in world.mind.questions] == [asked]
    world.play("Yes.", 20)
    assert world.ends() == {}, "it stands on the table"


@BOTH
def test_another_ones_go_on_lifts_a_stop_and_what_was_asked_stays_open(hands: type[TableHands]) -> None:
    world = hands()
    world.play(f"Put the red {world.thing} {world.goal}.", 5)
    asked = world.play(("Ben", f"No, put the red {world.thing} on the table."))
    world.play("Stop!", 1, ("Mia", "Go on."), 3)
    assert not world.mind.is_stopped
    assert [one.text for one in world.mind.questions] == [asked]
    world.play(("Ben", "Yes."), 20)
    assert world.ends() == {}, "it stands on the table"
