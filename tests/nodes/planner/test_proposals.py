"""What is made of words that the grammar leaves unread: left, answered, proposed, or said not to be understood."""

from __future__ import annotations

import pytest

from tests.nodes.planner.two_hands import KitchenHands, TableHands

BOTH = pytest.mark.parametrize("hands", [TableHands, KitchenHands])
ALL = "Put all the {thing}s {goal}"
LONG_S = 60


def played(hands: type[TableHands], *turns: str | int | tuple[str, str]) -> TableHands:
    world = hands()
    names = {"thing": world.thing, "goal": world.goal}
    for turn in turns:
        world.play(turn.format(**names) if isinstance(turn, str) else turn)
    return world


def moved(world: TableHands) -> set[str]:
    """The colours of cups or mugs that are where they were ordered to."""
    place = world.goal.split()[-1]
    return {name.split()[0] for name, where in world.ends().items() if where == place}


@BOTH
@pytest.mark.parametrize("way", ["bar", "minus", "save for", "except", "apart from", "other than", "short of"])
def test_an_exception_by_any_word_is_one(hands: type[TableHands], way: str) -> None:
    assert "white" not in moved(played(hands, f"Put all the {{thing}}s, {way} the white one, {{goal}}", LONG_S))


@BOTH
@pytest.mark.parametrize(
    "text",
    ["I'll see to the white one.", "I'll take care of the white {thing}.", "Let me handle the white one.",
     "I'm going to deal with the white one.", "White's spoken for.", "The white one's got my tea in it."],
)  # fmt: skip
def test_what_somebody_does_or_keeps_in_any_words_is_left(hands: type[TableHands], text: str) -> None:
    assert "white" not in moved(played(hands, ALL, 1, text, LONG_S))


@BOTH
@pytest.mark.parametrize(
    "text",
    ["Be an angel and see that the red and the blue {thing} land {goal}.",
     "It is time that the red {thing} and the blue {thing} found their way {goal}, my friend, if you ask me."],
)  # fmt: skip
def test_a_deed_that_is_only_guessed_waits_for_a_yes(hands: type[TableHands], text: str) -> None:
    world = played(hands, text)
    assert world.last.endswith("?")
    assert moved(world) == set()
    world.play("Yes.", LONG_S)
    assert moved(world) == {"red", "blue"}


@BOTH
def test_a_stop_takes_a_proposal_back(hands: type[TableHands]) -> None:
    world = played(hands, "Be an angel and see that the red and the blue {thing} land {goal}.", "Stop!", 1, "Go ahead.")
    world.work(LONG_S)
    assert moved(world) == set()


@BOTH
def test_why_something_is_left_is_told_in_the_words_of_who_said_so(hands: type[TableHands]) -> None:
    world = played(hands, ALL, 1, ("Bob", "I'll see to the white one."), LONG_S)
    assert "Bob" in world.play("Why is the white one still here?")
    assert "I'll see to the white one." in world.last


@BOTH
@pytest.mark.parametrize("text", ["You forgot the handle side.", "Mind the gap between us two, {thing}."])
def test_i_see_is_no_answer_to_what_names_something(hands: type[TableHands], text: str) -> None:
    assert played(hands, text).last != "I see."


@BOTH
@pytest.mark.parametrize(
    "text",
    ["And the white {thing}, did you touch that at all?", "The white one. Have you moved it?",
     "The white {thing} ... has that been washed?", "And the white one, was that in the bin before?",
     "The white {thing} in the bin, is that right?", "Throw the white one away, did you?"],
)  # fmt: skip
@pytest.mark.parametrize("before", [["Put the red {thing} {goal}", LONG_S], [ALL, 1, "Oh, and the white one?"]])
def test_a_question_about_what_was_done_or_is_so_is_no_order(
    hands: type[TableHands], text: str, before: list[str | int]
) -> None:
    plain = played(hands, *before, "Hm.", 6)
    asked = played(hands, *before, text, 6)
    assert asked.ends() == plain.ends()
    assert len(asked.mind.orders) <= len(plain.mind.orders)


@BOTH
@pytest.mark.parametrize(
    "turns",
    [["Put all the {thing}s {goal}, but do the red one last."], [ALL, "Oh, do the red one last."]],
)
def test_what_is_to_be_done_last_comes_last_and_what_was_excepted_stays(
    hands: type[TableHands], turns: list[str]
) -> None:
    world = played(hands, *turns, 20)
    assert moved(world)
    assert "red" not in moved(world)
    world.work(LONG_S)
    assert moved(world) >= {"red", "blue", "white"}
    world = played(hands, ALL + ", except the white one", "Do the red one last.", LONG_S)
    assert "red" in moved(world)
    assert "white" not in moved(world)


def test_the_only_white_thing_is_left_when_the_white_one_is_somebodys() -> None:
    world = KitchenHands()
    world.play("First put the apple on the tray, and after that the mugs go in the sink.", 1)
    world.play("Actually, make that just the green apple. The white one's Sam's, that stays put.", LONG_S)
    assert world.ends() == {"green apple": "tray", "red mug": "sink", "blue mug": "sink"}


@BOTH
@pytest.mark.parametrize(
    "words",
    ["We call the white {thing} Shrek, okay?", "And the white {thing}'s called Shrek!",
     "See that white {thing}? From now on that's Shrek.", "The name of the white {thing} is Shrek, right?",
     "The white {thing} there, I call her Shrek.", "And that white {thing}, his name is Shrek!"],
)  # fmt: skip
def test_a_name_that_is_given_is_kept_and_used(hands: type[TableHands], words: str) -> None:
    world = played(hands, words, "What's the white {thing} called?")
    assert "Shrek" in world.last
    world.play(f"Put Shrek {world.goal}, would you?", LONG_S)
    assert moved(world) == {"white"}
    assert "Shrek" not in played(hands, words, "What's the red {thing} called?").last
    world = played(hands, words, "And which one was Shrek again?")
    assert world.last == f"The white {world.thing} is called Shrek."


@BOTH
def test_whose_a_thing_is_is_known_once_it_was_said_and_its_owner_may_order_it(hands: type[TableHands]) -> None:
    world = played(hands, "The white {thing} is Ben's and the red one's mine.", 1, "Whose was the white {thing} again?")
    assert "Ben" in world.last
    world.play(("Ben", f"Put my {world.thing} {world.goal}."), LONG_S)
    assert moved(world) == {"white"}
    world.play(("Ben", f"Put the red {world.thing} {world.goal}."), LONG_S)
    assert moved(world) == {"white"}  # it is Ann's, and she has said nothing


def test_whose_it_is_stands_beside_an_order_and_does_not_leave_it() -> None:
    world = played(TableHands, "Throw my {thing} out.")
    assert world.last.startswith("Which one")
    assert not world.mind.kept


@BOTH
@pytest.mark.parametrize(
    ("question", "answer"),
    [("And the white {thing}, did you touch that at all?", "No"), ("Have you had your hand on the red {thing}?", "Yes"),
     ("Which {thing}'s {goal} now?", "red {thing}"), ("What else is on there?", "red {thing}"),
     ("Which of the {thing}s is nearest to me?", "{thing}"), ("Thanks. Why is the white one here?", "white")],
)  # fmt: skip
def test_a_question_about_a_thing_gets_what_was_asked(hands: type[TableHands], question: str, answer: str) -> None:
    world = played(hands, "Put the red {thing} {goal}", LONG_S, question)
    names = {"thing": world.thing, "goal": world.goal}
    assert answer.format(**names) in world.last
    assert not world.mind.orders


@BOTH
def test_what_comes_next_is_told_while_something_is_in_the_hand(hands: type[TableHands]) -> None:
    world = played(
        hands, "Put the red {thing} {goal} and then the blue {thing} {goal}.", 5, "What's coming after that?"
    )
    assert f"put the blue {world.thing}" in world.last


@BOTH
def test_what_it_says_of_itself_is_so(hands: type[TableHands]) -> None:
    world = played(hands, "Give me the red {thing}", 1, "Not the blue one.", "What are you doing?")
    assert "except" not in world.last
    assert "busy" not in world.last
    world = played(hands, "Be an angel and see that the red and the blue {thing} land {goal}.", "What is left to do?")
    assert "nothing left" not in world.last
    world.play("I was talking to Ben.", LONG_S)
    assert not any("Nobody" in said for said in world.says)


@BOTH
@pytest.mark.parametrize("text", ["It's fine.", "It's fine, do.", "Okay, off you go.", "It is okay by me."])
def test_consent_is_never_a_no(hands: type[TableHands], text: str) -> None:
    world = played(hands, "Be an angel and see that the red and the blue {thing} land {goal}.", text)
    assert "leave" not in world.last
    world = played(hands, "Put the {thing} {goal}.", text)
    assert "leave" not in world.last
    world.play("The red one.", LONG_S)
    assert moved(world) == {"red"}


@BOTH
@pytest.mark.parametrize("text", ["Yes, the red one.", "The red {thing}, yes.", "That's right, {goal}."])
def test_a_yes_to_what_is_under_way_asks_nothing(hands: type[TableHands], text: str) -> None:
    world = played(hands, "Put the red {thing} {goal}.", 5, text)
    assert "?" not in world.last
    world.play(LONG_S)
    assert moved(world) == {"red"}


@BOTH
@pytest.mark.parametrize(
    "text", ["Put it back and carry on with the blue one instead.", "No, put that back and do the blue {thing}."]
)
def test_back_with_it_and_on_with_another_are_both_done(hands: type[TableHands], text: str) -> None:
    world = played(hands, "Put the red {thing} {goal}.", 5, ("Ben", "No, leave that, I still need it."), text, LONG_S)
    assert moved(world) == {"blue"}


@BOTH
@pytest.mark.parametrize("text", ["The blue {thing} can go the same way.", "Carry on with the blue one.",
                                  "The blue one belongs there too."])  # fmt: skip
def test_the_same_way_and_there_are_where_the_last_one_went(hands: type[TableHands], text: str) -> None:
    world = played(hands, "Put the red {thing} {goal}.", LONG_S, text)
    assert "?" not in world.last
    world.play(LONG_S)
    assert moved(world) == {"red", "blue"}


@BOTH
@pytest.mark.parametrize(
    "text",
    [
        "Is there any way you might put the red {thing} {goal}?",
        "Is it at all possible for you to put the red {thing} {goal}?",
        "Don't you want to put the red {thing} {goal}?",
        "Anybody up for putting the red {thing} {goal}?",
    ],
)
def test_an_order_that_looks_like_a_question_is_done(hands: type[TableHands], text: str) -> None:
    assert moved(played(hands, text, LONG_S)) == {"red"}
