"""Claims about whose a thing is, who may lift what keeps it, and who is asked."""

from __future__ import annotations

import pytest

from tests.nodes.planner.test_dialogues import BOTH, moved, played
from tests.nodes.planner.two_hands import KitchenHands, TableHands, Turn
from tests.support.sentences import sentence

EVERYTHING = "Put everything {goal}, would you?"
RIGHTMOST = {TableHands: "green", KitchenHands: "white"}


@BOTH
@pytest.mark.parametrize(
    ("words", "owner"),
    [
        ("Just so you know, the white {thing}'s mine, and I'd rather nobody touched it.", "Ann"),
        ("Oh, and the white {thing} belongs to my brother.", "Ann's brother"),
        ("Mine's the white one.", "Ann"), ("The white {thing} is for the cat, hands off.", "the cat"),
        ("My aunt's {thing} is the white one.", "Ann's aunt"), ("This is my {thing}, the white one.", "Ann"),
        ("The white one was Grandad's, so please never use it.", "Grandad"),
    ],
)  # fmt: skip
def test_what_is_somebodys_is_told_and_left_by_whoever_else_speaks(
    hands: type[TableHands], words: str, owner: str
) -> None:
    world = played(hands, [("Ann", words), ("Ben", f"Whose is the white {hands.thing}?")])
    assert world.last.startswith(sentence("planner.owns", owner=owner, thing=f"white {hands.thing}"))
    world = played(
        hands, [("Ann", words), "Go on.", ("Ben", EVERYTHING), 3, ("Ben", "And the white one."), ("Ben", "Yes.")]
    )
    assert f"white {world.thing}" not in world.ends()
    assert f"blue {world.thing}" in world.ends()


@BOTH
@pytest.mark.parametrize(
    "lifts",
    [
        "Fine, take it.",
        "Put the white {thing} {goal}.",
        "You can put the white one {goal} now.",
        "Yes.",
        "Sure, go ahead.",
    ],
)
def test_who_kept_a_thing_gives_it_and_is_not_quoted(hands: type[TableHands], lifts: str) -> None:
    order = ("Ben", "Put the white {thing} {goal}.")
    world = played(hands, [("Ann", "The white {thing} is mine."), order])
    assert sentence("planner.asks_keeper", keeper="Ann", thing=world.thing, goal=world.goal) in " ".join(world.says)
    assert world.ends() == {}
    world = played(hands, [("Ann", "Leave the white {thing} alone, please."), "Go on.", order, ("Ann", lifts)])
    assert world.where[f"{world.thing}-white"] != "table"
    assert "“" not in world.says[-1]


@BOTH
@pytest.mark.parametrize(
    "lifts",
    ["I don't want it any more.", "He may.", "She is allowed to.", "I have no objection.", "Oh, I'm done with it.",
     "All right, he can have it."],
)  # fmt: skip
def test_an_owner_agrees_in_other_words_than_yes(hands: type[TableHands], lifts: str) -> None:
    order = ("Ben", "Put the white {thing} {goal}.")
    world = played(
        hands, [("Ann", "The white {thing} is mine."), order, ("Ben", "She's fine with it."), ("Ann", lifts)]
    )
    assert world.where[f"{world.thing}-white"] != "table"


@BOTH
def test_what_nobody_may_do_is_asked_of_who_forbade_it_to_herself_as_well(hands: type[TableHands]) -> None:
    ban, order = (
        ("Ann", "Nobody ever touches the white {thing}, not even me."),
        ("Ann", "Put the white {thing} {goal}."),
    )
    world = played(hands, [ban, order])
    assert sentence("planner.asks_keeper", keeper="Ann", thing=world.thing, goal=world.goal) in " ".join(world.says)
    assert world.ends() == {}
    for lifts in ("Yes, I am sure, I take it back.", "I changed my mind, put the white {thing} {goal}."):
        world = played(hands, [ban, order, ("Ann", lifts)])
        assert world.where[f"{world.thing}-white"] != "table", lifts


@BOTH
def test_nobody_frees_what_another_keeps_and_who_keeps_it_does(hands: type[TableHands]) -> None:
    ban, order = ("Ann", "Leave the white {thing} alone."), ("Ben", "Put the white {thing} {goal}.")
    for who, frees in (("Ben", False), ("Ann", True)):
        world = played(hands, [ban, (who, "You may touch the white {thing} now."), order])
        assert (world.where[f"{world.thing}-white"] != "table") == frees, who


@BOTH
def test_of_two_that_are_ordered_the_free_one_is_done_and_the_kept_one_asked_for(hands: type[TableHands]) -> None:
    order = ("Ben", "Put the red {thing} and the white {thing} {goal}.")
    world = played(hands, [("Ann", "The white {thing} is mine."), order])
    assert list(world.ends()) == [f"red {world.thing}"]
    assert sentence("planner.asks_keeper", keeper="Ann", thing=world.thing, goal=world.goal) in " ".join(world.says)
    world = played(hands, [("Ann", "The white {thing} is mine."), order, ("Ann", "Sure.")])
    assert sorted(world.ends()) == [f"red {world.thing}", f"white {world.thing}"]


def test_what_an_owner_lends_for_one_deed_is_asked_for_again_for_another() -> None:
    for lends in ("You can put my banana on the tray.", "I don't need the banana any more."):
        world = KitchenHands()
        world.play(("Ben", "The banana is mine."), ("Ben", lends))
        world.work(60)
        world.play(("Ann", "Now put the banana in the sink."))
        assert bool(world.mind.orders) == ("any more" in lends), lends


def test_of_two_of_three_the_one_that_comes_first_is_one_of_the_two() -> None:
    for words in ("Put two mugs on the tray, the white one first.", "Two mugs on the tray, but the white one last."):
        world = KitchenHands()
        world.play(words)
        ids = [one.things[0].id for one in world.mind.orders]
        assert len(ids) == 2, words
        assert ids["last" in words] == "mug-white", words


def test_a_thing_of_his_is_given_by_him_and_by_nobody_else() -> None:
    turns = [("Ben", "The banana and the white mug are mine."), ("Ann", "Can I have Ben's banana?"), ("Ann", "Yes.")]
    world = played(KitchenHands, turns)
    assert world.where["banana-1"] == "table"
    world = played(KitchenHands, [*turns[:2], ("Ben", "Sure, give it to her.")])
    assert world.where["banana-1"] == "person"
    assert world.where["mug-white"] == "table"


def test_a_question_whose_it_is_tells_nothing() -> None:
    world = KitchenHands()
    world.play(("Ann", "The red mug is mine and the blue one is Ben's."), ("Cid", "Which mug is Ben's?"))
    assert world.mind.owners == {"mug-red": "Ann", "mug-blue": "Ben"}
    world.play(("Cid", "Is it Ann's turn?"), ("Cid", "It's Ann's turn."))
    assert world.mind.owners == {"mug-red": "Ann", "mug-blue": "Ben"}


@pytest.mark.parametrize(
    ("words", "turn"),
    [
        ("Put the fruit on the tray, the banana last.", ["apple-1", "banana-1"]),
        ("All the mugs in the sink, the white one first of all.", ["mug-white", "mug-red", "mug-blue"]),
        ("First the red mug in the sink, then the blue, the apple last of all.", ["mug-red", "mug-blue", "apple-1"]),
        ("Put the apple on the tray, but the mugs in the sink first.", ["mug-red", "mug-blue", "mug-white", "apple-1"]),
        ("Mugs in the sink, but do the white one first and the red one last.", ["mug-white", "mug-blue", "mug-red"]),
        ("The mugs in the sink, starting with the blue and ending with the red.", ["mug-blue", "mug-white", "mug-red"]),
        ("All the mugs in the sink, white first, blue last.", ["mug-white", "mug-red", "mug-blue"]),
        ("All the mugs in the sink, the blue one before the red one.", ["mug-blue", "mug-red", "mug-white"]),
    ],
)  # fmt: skip
def test_what_comes_first_or_last_in_the_same_words_does_and_nothing_is_lost(words: str, turn: list[str]) -> None:
    world = KitchenHands()
    world.play(words)
    assert [order.things[0].id for order in world.mind.orders] == turn


@pytest.mark.parametrize(
    ("before", "words", "last"),
    [
        ("Wash the red mug.", "Stand it on the shelf as soon as it's washed.", ("place", "mug-red", "shelf")),
        ("Wash the red mug.", "When the red mug's clean, could you bring me the apple?", ("hand_over", "apple-1", "")),
        ("Wash the red mug.", "After you've rinsed it put it on the tray.", ("place", "mug-red", "tray")),
        ("Wash the red mug.", "The apple on the tray once you're done with the mug.", ("place", "apple-1", "tray")),
        ("Put the apple on the tray.", "The moment that's there, hand me the banana.", ("hand_over", "banana-1", "")),
        ("", "Put the apple on the tray, and when it's there, bring me the banana.", ("hand_over", "banana-1", "")),
        ("", "Rinse the red mug, and once it's clean bring it to me.", ("hand_over", "mug-red", "")),
    ],
)  # fmt: skip
def test_what_is_to_follow_another_deed_follows_it(before: str, words: str, last: tuple[str, str, str]) -> None:
    world = KitchenHands()
    world.play(*([before, ("Ben", words)] if before else [words]))
    orders = [(one.skill, one.things[0].id, one.place) for one in world.mind.orders]
    assert len(orders) > 1
    assert orders[-1] == last
    assert "?" not in world.last


@pytest.mark.parametrize(
    "words",
    ["The banana goes on the tray once the apple's in the bin.", "When the apple is in the sink, bring me the banana."],
)  # fmt: skip
def test_a_deed_that_is_to_follow_one_that_nobody_ordered_is_asked_about(words: str) -> None:
    world = KitchenHands()
    world.play(words)
    assert world.mind.orders == ()
    assert "Shall I" in world.last


@BOTH
@pytest.mark.parametrize(
    ("words", "left"),
    [
        ("Now all the rest, save for whatever's white.", {"white"}),
        ("And everything else, apart from the white one.", {"white"}),
        ("All the others as well, but not the white one.", {"white"}),
        ("Now the rest.", set()),
    ],
)  # fmt: skip
def test_the_rest_is_ordered_with_its_exceptions_by_who_ordered_one_of_them(
    hands: type[TableHands], words: str, left: set[str]
) -> None:
    world = played(hands, ["Put the blue {thing} {goal}.", 40, words])
    stays = {one.colour for one in world.things if one.label == hands.thing and one.name not in world.ends()}
    assert stays == left


@pytest.mark.parametrize(
    "words",
    [
        "Put it all in the bin, apart from what's Ben's.", "All of it in the bin, except for Ben's things.",
        "Throw away anything that isn't Ben's.", "Everything that doesn't belong to Ben goes in the bin.",
        "All the things that aren't Ben's go in the bin.",
    ],
)  # fmt: skip
def test_all_but_what_is_somebodys_is_ordered_and_that_is_left(words: str) -> None:
    world = played(TableHands, [("Ben", "The white cup is mine."), words])
    assert "cup-white" not in {one for one, place in world.where.items() if place != "table"}
    assert world.where["cup-blue"] == world.where["ball-1"] == "bin"


@pytest.mark.parametrize(
    ("words", "stays"),
    [
        ("Put the blue cup in the bin, leave the ball alone, and what colour is the bottle?", "brown"),
        ("Bin the blue cup but not the ball, and where's the bottle?", "table"),
        ("Don't touch the ball, put the blue cup in the bin, and is the bottle still on the table?", "table"),
    ],
)  # fmt: skip
def test_an_order_a_ban_and_a_question_in_one_sentence_are_all_heard(words: str, stays: str) -> None:
    world = TableHands()
    world.play(words)
    assert "blue cup in the bin" in world.last
    assert "bottle" in world.last
    assert stays in world.last
    world.play(30)
    assert world.where["cup-blue"] == "bin"
    assert world.where["ball-1"] == "table"


@BOTH
@pytest.mark.parametrize("words", ["Anything left?", "Is there anything else to do?", "What have you still to do?"])
def test_what_is_outstanding_is_told(hands: type[TableHands], words: str) -> None:
    world = played(hands, ["Put the blue {thing} {goal}.", words])
    assert "I still have to" in " ".join(world.says)


def test_it_is_what_is_washed_where_it_is_to_follow_the_washing() -> None:
    world = KitchenHands()
    world.play(
        ("Ann", "Don't touch the white mug."),
        ("Cid", "Wash the mugs."),
        1,
        ("Ben", "Stand it on the shelf once it's washed."),
    )
    assert "shelf" in [one.place for one in world.mind.orders if one.things[0].id == "mug-red"]


def test_what_spells_out_a_vague_order_is_that_order() -> None:
    world = played(TableHands, ["Clear the table, would you? Everything in the bin but the white cup."])
    assert "?" not in world.says[0]
    assert world.where["cup-white"] == "table"
    assert world.where["cup-blue"] == "bin"


@BOTH
@pytest.mark.parametrize(
    "words",
    ["Look after the white {thing}, please.", "Keep an eye on the white {thing}.",
     "There's soap in the white {thing}, so don't touch it!"],
)  # fmt: skip
def test_what_is_looked_after_is_left(hands: type[TableHands], words: str) -> None:
    world = played(hands, [("Ann", words), "Go on.", ("Ben", EVERYTHING)])
    assert f"white {world.thing}" not in world.ends()
    assert f"blue {world.thing}" in world.ends()


def test_a_place_that_is_forbidden_is_no_order_to_put_anything_there() -> None:
    world = played(
        KitchenHands, ["The red mug is mine.", ("Ben", "Put the red mug in the sink."), "Just never in the bin."]
    )
    assert world.ends() == {}


@BOTH
@pytest.mark.parametrize(
    "order",
    [
        "Put all the {thing}s {goal}.", "Put a {thing} {goal}.", "Put two {thing}s {goal}.", "Give me the {thing}.",
        "Any {thing} will do, {goal} with it.", "{goal} with it all.",
    ],
)  # fmt: skip
def test_no_all_and_no_number_takes_in_what_somebody_keeps(hands: type[TableHands], order: str) -> None:
    for speaker in ("Ann", "Ben"):
        world = played(hands, [("Ann", "Leave the red {thing} alone."), (speaker, order), (speaker, "Yes.")])
        assert f"red {world.thing}" not in world.ends()
        assert f"blue {world.thing}" in world.ends() or "Give" in order


@BOTH
def test_all_that_somebody_keeps_is_asked_of_her_alone(hands: type[TableHands]) -> None:
    order = [("Ann", "Leave the {thing}s alone."), ("Ben", "Put all the {thing}s {goal}.")]
    assert moved(played(hands, [*order, ("Ben", "Yes.")])) == []
    assert set(moved(played(hands, [*order, ("Ann", "Yes.")]))) >= {"red", "blue", "white"}


@BOTH
def test_one_that_is_free_again_frees_no_other(hands: type[TableHands]) -> None:
    world = played(hands, ["Leave the {thing}s alone.", "Put the red {thing} {goal}.", 20, ("Ben", "Put all {goal}.")])
    assert [one for one in moved(world) if one in ("red", "blue", "white")] == ["red"]


@BOTH
def test_what_is_said_behind_an_exception_is_of_that(hands: type[TableHands]) -> None:
    world = played(
        hands, ["All the {thing}s can go {goal} except the white one, that's Ben's.", 40, "Whose is the white {thing}?"]
    )
    assert set(moved(world)) >= {"red", "blue"}
    assert "white" not in moved(world)
    assert world.last.startswith(sentence("planner.owns", owner="Ben", thing=f"white {hands.thing}"))


def test_what_a_place_is_cleared_of_keeps_its_exception_through_the_question() -> None:
    order = ["Clear everything off the table except the cups.", "Into the bin with it all. And not the ball.", "Yes."]
    assert played(TableHands, order).ends() == {"brown bottle": "bin"}


@BOTH
def test_what_was_asked_and_never_answered_is_no_order_of_hers(hands: type[TableHands]) -> None:
    turns: list[Turn] = [
        ("Ann", "Put all the {thing}s {goal}."),
        5,
        ("Ann", "Hm, the white one ..."),
        50,
        "Why is the white one there?",
    ]
    meant = sentence("planner.means", who="Ann", words="Hm, the white one ...")
    assert meant in played(hands, turns).last
    assert meant not in played(hands, [*turns[:3], ("Ann", "No, leave it."), *turns[3:]]).last


@BOTH
def test_what_is_left_is_no_side_of_anybody(hands: type[TableHands]) -> None:
    world = played(hands, [("Ann", "The white {thing} is just mine."), ("Ben", "Whose is the one that's left?")])
    assert "Ann" in world.last or "ann" in world.last


@BOTH
@pytest.mark.parametrize("which", ["that don't belong to anybody", "that aren't anyone's"])
def test_what_is_nobodys_is_ordered_behind_what_is_somebodys(hands: type[TableHands], which: str) -> None:
    words = f"The red {{thing}}'s mine. Put all the {{thing}}s {which} {{goal}}."
    world = played(hands, [("Ann", "The white {thing} is mine."), ("Ben", words)])
    assert "blue" in moved(world)
    assert not {"red", "white"} & set(moved(world))


@BOTH
@pytest.mark.parametrize("seconds", [2, 5])
@pytest.mark.parametrize(
    "words",
    [
        "The white one's for me.", "The white one is mine.", "Mine's the white {thing}.",
        "The white one's for me. You can leave the others.", "The one {right} is for me. Leave the others.",
    ],
)  # fmt: skip
def test_of_any_that_is_asked_for_the_one_that_is_hers_is_handed_over(
    hands: type[TableHands], words: str, seconds: int
) -> None:
    meant = RIGHTMOST[hands] if "{right}" in words else "white"
    words = words.replace("{right}", "on the right")
    world = played(hands, ["Give me a {thing}.", seconds, words, 16])
    assert world.ends() == {f"{meant} {world.thing}": "person"}
    for order, who in (("Give me the red {thing}.", "Ann"), ("Give me a {thing}.", "Ben")):
        world = played(hands, [order, seconds, (who, "The white one's for me."), 12])
        assert world.ends() == {f"red {world.thing}": "person"}


@BOTH
def test_what_is_hers_may_be_told_by_its_place_in_the_row(hands: type[TableHands]) -> None:
    thing = f"{RIGHTMOST[hands]} {hands.thing}"
    world = played(hands, ["The {thing} on the right is mine.", ("Ben", f"Whose is the {thing}?")])
    assert world.last.startswith(sentence("planner.owns", owner="Ann", thing=thing))


@pytest.mark.parametrize("text", ["Actually, he's right, you can take it.", "Okay, take it, then."])
def test_it_is_what_she_was_asked_about_and_taking_it_is_a_yes(text: str) -> None:
    world = TableHands()
    world.play("Nobody's to touch the white cup today, it's cracked.")
    world.play(("Ben", "Put the green cup in the bin, but leave the ball."), 20)
    world.play(("Ben", "Ah, throw the white one out anyway."), text, 30)
    assert world.ends() == {"green cup": "bin", "white cup": "bin"}


@pytest.mark.parametrize("text", ["Then just bring me my red mug.", "Well, hand me my red mug then."])
def test_who_asks_for_her_own_thing_is_not_told_that_it_is_left(text: str) -> None:
    world = KitchenHands()
    world.play("Nobody moves the red mug unless I say so.")
    assert "Ann, shall I" in world.play(("Mia", text))
