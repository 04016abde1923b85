"""Claims about what is not done: a word that nobody knows, a negation, a thing that was named beside an order."""

from __future__ import annotations

import re

import pytest

from nodes.evaluation.labelled_sets import read_set
from nodes.evaluation.understanding import KITCHEN, SETS, LabelledUtterance
from nodes.planner.words.parser import parser_of
from nodes.planner.words.understanding import Conversation, Intent, understand_in

PARSER = parser_of(KITCHEN)
NO_HARM = ("stop", "wait", "nod", "retreat")


def meant(*said: str) -> Intent:
    """The intent of the last of these utterances, after the others."""
    talk, intent = Conversation(), Intent("nothing")
    for text in said:
        intent, talk = understand_in(text, KITCHEN, talk, PARSER)
    return intent


@pytest.mark.parametrize(
    "text",
    [
        "I wonder whether you put the cup in the sink.",
        "Thanks for putting the can in the bin.",
        "It would have been nice if you had put the cup in the sink.",
        "I was hoping you had rinsed the bowl.",
        "Could you have put the cup in the bin by accident?",
        "It would be awful if you put the glass in the bin.",
        "It would be a shame if somebody put the mug in the bin.",
        "I would be grateful if you did not put the cup on the shelf.",
        "Would it be a problem if I put the cup on the shelf?",
        "Your job was to rinse the cup.",
        "Nobody asked you to wipe the table.",
        "I hope you never put a plate in the bin.",
        "It's not your job to wipe the table.",
        "It would be a mistake to put the bottle in the bin.",
        "It would be better not to put the cup on the shelf.",
        "You could have rinsed the cup.",
        "We were so happy when you put the apple on the tray.",
        "Sorry that I put the mug in the bin.",
        "It would help if I put the mug on the shelf.",
        "You wouldn't put the mug in the bin, would you?",
        "The plan is to put the red cup in the sink later.",
        "The idea is not to put the cup in the bin.",
        "I trust you not to put the plate in the bin.",
        "Could I ask you not to put the mug on the shelf?",
        "Would you be so kind as not to rinse the cup?",
        "The mug found its way to the sink.",
        "The cup went on the shelf.",
        "The plates were put on the shelf.",
        "I propose that Tom rinses the cup.",
        "Any chance Tom put the mug in the bin?",
        "The shelf was where the cup belonged.",
        "I would find it rude if you put the mug in the bin.",
        "I'd consider it a crime if you threw the red mug away.",
        "It would be rude if you put the mug in the bin.",
        "It would be dangerous if you put the glass on the shelf.",
        "It would be strange if you put the sponge on the tray.",
        "It would be funny if you put the banana in the sink.",
        "It would make me angry if you put the cup in the bin.",
        "It would make me cry if you threw the mug away.",
        "It would mean trouble if you put the can in the sink.",
        "It would be no help if you put the plate on the shelf.",
        "It would save nothing if you rinsed the cup.",
        "It would be my fault if you put the mug in the bin.",
        "It would be odd of you to put the cup in the bin.",
        "Would it be okay if Tom put the mug in the bin?",
        "Would it be fine if I put the cup on the shelf?",
        "Would it be alright if the apple went bad?",
        "Could the plate go missing?",
        "Somebody please tell me who put the mug in the bin.",
        "I'd be unhappy if you put the mug in the bin.",
        "I would be more than sad if you rinsed the sponge.",
        "I'd hate it if you put the plate on the shelf.",
        "I wouldn't appreciate it if you put the cup in the bin.",
        "I wouldn't be happy if you put the cup in the bin.",
        "I would not like it if you put the cup on the shelf.",
        "I'd never forgive you if you threw the mug away.",
        "You'd make me sad by putting the mug in the bin.",
    ],
)
def test_what_sounds_like_a_polite_request_and_asks_for_nothing_is_not_done(text: str) -> None:
    assert meant(text).deed != "do"


def test_words_of_any_length_are_read_in_time() -> None:
    for text in ("sorry to " + "a" * 3000 + "é", "it would really " * 40, "i would " + "very " * 100 + "glad if you"):
        assert meant(text).deed != "do"


@pytest.mark.long
@pytest.mark.parametrize(
    ("word", "most"),
    [
        ("zorp", 0.03),
        ("zorply", 0.02),
        ("never", 0.02),
    ],
)
def test_a_word_put_anywhere_into_an_order_is_almost_never_passed_over(word: str, most: float) -> None:
    done = tried = 0
    for line in read_set("tuning", SETS, LabelledUtterance)[0]:
        is_simple = line.deed == "do" and not line.context and re.search(r"[,;:.!?].", line.text) is None
        if not is_simple or line.skill in NO_HARM or meant(line.text).deed != "do":
            continue
        words = re.sub(r"[.!?]$", "", line.text).split()
        for place in range(len(words) + 1):
            tried += 1
            done += meant(" ".join([*words[:place], word, *words[place:]])).deed == "do"
    assert tried > 3000
    assert done / tried <= most


@pytest.mark.parametrize(
    "text",
    [
        "Don't take the red cup and put it in the sink.",
        "Never take the bowl off the table and give it to me.",
        "Would you mind not putting the cup on the shelf?",
        "The cup never goes on the shelf.",
        "No cups on the shelf!",
        "This plate should be washed, but not now.",
        "Wait until I say go, then wash the cups.",
        "Nod if the cup is on the shelf.",
        "Put the cup in the sink, and don't forget the plate.",
        "Put the cup on the top shelf.",
        "Put a cup on each shelf.",
        "Put one cup on the table and one on the shelf.",
        "Put every second cup in the sink.",
        "Put more cups in the sink.",
        "Put the cup together with the plate on the tray.",
        "Put the empty bottles in the bin.",
        "Bring me a clean cup.",
        "Bring me anything but the red cup.",
        "Bring me the left cup.",
        "Bring me the red cup. It should be on the tray.",
        "Wash the cup, but not in the sink.",
        "Wipe under the tray.",
        "Wipe the table except under the tray.",
        "Can you wash cups?",
        "Give it a rest.",
        "Move forward.",
        "Give me the cup or put it on the table.",
        "Hold this for a second.",
        "The bowls are dirty, the cups are clean. Wash them.",
        "The cup is dirty. The plate is not. Wash it.",
        "The blue cup is clean, the red one isn't. Wash the dirty one.",
        "Bring me the small glass, not the tall one.",
        "Are there any clean plates? Put two on the table.",
        "Bring me the sponge. The red cup.",
        "Rinse both glasses, red first.",
        "Move the cup closer to me.",
        "Close the jar in my dream.",
        "Not like that! Gently!",
        "Next time, put the mugs on the shelf.",
        "Always put the mugs on the shelf.",
        "Put the plates on the shelf like yesterday.",
        "Five minutes from now, bring me the orange.",
        "On Sunday, put the cup in the sink.",
        "On my signal, open the jar.",
        "Look for the cup if you see Anna.",
        "Under no circumstances put the cup in the sink.",
        "They say: rinse the cup.",
        "My mother always wants me to take the bowl off the table and give it to me.",
    ],
)
def test_what_is_forbidden_left_open_or_not_understood_is_not_done(text: str) -> None:
    assert meant(text).deed != "do"


@pytest.mark.parametrize(
    "behind",
    [
        "? No.", ". NOT!", ". I've changed my mind.", ". Haha, no, I take it back.", ". Tom will do it.",
        ". Let Anna do it.", ". That was a test.", ". Should we?", ", Anna.", ", said the old man.",
        " - that is what she said.", ". That's what my boss told me.", ", was what he wanted.",
    ],
)  # fmt: skip
def test_what_is_said_behind_an_order_may_take_it_back(behind: str) -> None:
    for order in ("Put the cup in the sink", "Rinse the red plates", "Give me the sponge", "Wipe the table"):
        assert meant(order).deed == "do"
        assert meant(order + behind).deed != "do", order + behind


@pytest.mark.long
def test_a_remark_beside_any_order_changes_nothing_of_it_or_is_asked_about() -> None:
    remarks = (
        "The bottle was a gift.", "I rinsed the glass this morning.", "My aunt gave me the green bowl.",
        "Plates are cheap this week.", "I told Tom to put the box on the shelf.", "Someone broke the mug.",
        "The red mug is still in use.", "Lisa needs the can, so leave it.", "Never put the sponge in the bin.",
    )  # fmt: skip
    done = tried = 0
    for number, line in enumerate(read_set("tuning", SETS, LabelledUtterance)[0]):
        alone = meant(line.text) if line.deed == "do" and not line.context and line.text[-1] in ".!" else Intent("ask")
        if alone.deed != "do" or alone.orders[0].skill in (*NO_HARM, "undo", "put_back"):
            continue
        remark = remarks[number % len(remarks)]
        for text in (f"{line.text} {remark}", f"{remark} {line.text}"):
            intent = meant(text)
            tried += 1
            done += intent.deed == "do"
            if intent.deed == "do":
                assert [(o.skill, o.things, o.place) for o in intent.orders] == [
                    (o.skill, o.things, o.place) for o in alone.orders
                ], text
    assert tried > 1000
    assert done / tried > 0.7


def test_who_names_what_is_still_needed_beside_an_order_for_something_else_keeps_it() -> None:
    for text in (
        "Lisa needs the mug, so leave it. Rinse the plate.",
        "Rinse the plate. Lisa needs the mug, so leave it.",
        "Never throw the mug away. Rinse the plate.",
        "The red mug, no, the mug is still in use. Rinse the plate.",
    ):
        intent = meant(text)
        assert [(one.skill, one.things[0].label) for one in intent.orders] == [("rinse", "plate")], text
        assert [one.label for one in intent.protected] == ["mug"], text


@pytest.mark.parametrize(
    ("text", "skill", "place"),
    [
        ("Lift the cup onto the shelf.", "place", "shelf"),
        ("“Put the cup on the shelf.”", "place", "shelf"),
        ("Bring me the cup and tell me when you are done.", "hand_over", ""),
    ],
)
def test_an_order_is_what_it_was_however_it_is_wrapped_up(text: str, skill: str, place: str) -> None:
    (order,) = meant(text).orders
    assert (meant(text).deed, order.skill, order.things[0].label, order.place) == ("do", skill, "cup", place)


def test_a_wish_and_an_order_for_something_else_are_two() -> None:
    first, then = meant("I want the green plate on the table. Wipe the shelf.").orders
    assert (first.skill, first.place, then.skill, then.place) == ("place", "table", "wipe", "shelf")
    first, then = meant("Hand me the bottle. Er, put the box on the shelf.").orders
    assert (first.things[0].label, then.things[0].label) == ("bottle", "box")
    (order,) = meant("I'd like some fruit. Bring me the apple.").orders
    assert order.things[0].label == "apple"


@pytest.mark.parametrize(
    ("before", "text"),
    [
        ("Put the red cup on the shelf.", "No cups on the shelf!"),
        ("Put the red cup on the shelf.", "The red one?"),
        ("Put the red cup on the shelf.", "And the sink?"),
        ("Put the red cup on the shelf.", "Do the same with."),
        ("Put the red cup on the shelf.", "All cups, please."),
        ("Bring me the cup.", "No, to Anna."),
        ("Bring me the cup.", "The left one."),
        ("Wash the plate.", "No, the other plate."),
    ],
)
def test_a_reply_that_leaves_open_what_is_meant_is_asked_about(before: str, text: str) -> None:
    assert meant(before, text).deed != "do"


def test_an_exception_or_another_place_said_afterwards_changes_the_order() -> None:
    (order,) = meant("Put all the cups in the sink.", "Except the red one.").orders
    assert [(one.label, one.colour) for one in order.excluding] == [("cup", "red")]
    (order,) = meant("Put the cup on the shelf.", "Why the shelf? The tray!").orders
    assert order.place == "tray"
    (order,) = meant("Put the cup on the shelf.", "Thanks. And now the plate.").orders
    assert (order.things[0].label, order.place) == ("plate", "shelf")
    (order,) = meant("Put the cup on the shelf.", "I'd rather have the plate there.").orders
    assert (order.skill, order.place) == ("place", "shelf")


def test_what_is_to_come_first_comes_first() -> None:
    first, then = meant("Bring me the red cup. But rinse it first.").orders
    assert (first.skill, then.skill) == ("rinse", "hand_over")
    assert first.things == then.things


def test_numbers_say_how_many_and_a_correction_keeps_the_colour() -> None:
    assert meant("Put two of the three cups in the sink.").orders[0].things[0].count == 2
    thing = meant("Put three white plates on the shelf. Two, sorry.").orders[0].things[0]
    assert (thing.count, thing.colour) == (2, "white")
    assert [one.count for one in meant("Wash both the cup and the plate.").orders[0].things] == [1, 1]
    assert meant("Bring me any cup.").orders[0].things[0].count == 1


def test_a_slip_of_the_pen_is_read_and_another_word_is_not() -> None:
    (order,) = meant("put teh red botle on the shlef pls").orders
    assert (order.things[0].label, order.things[0].colour, order.place) == ("bottle", "red", "shelf")
    for text in ("Put the cup in the stable.", "Blow on the cup.", "Bring me the cusp.", "Wash the plat."):
        assert meant(text).deed != "do", text


def test_where_a_thing_is_says_which_one_is_meant() -> None:
    for text in (
        "Hand me the green apple lying on the tray.",
        "Bring me the apple. The one on the tray.",
        "Pick up the apple that is standing on the tray.",
    ):
        (order,) = meant(text).orders
        assert (order.things[0].label, order.things[0].source) == ("apple", "tray"), text
    (order,) = meant("Rinse whatever is in the sink.").orders
    assert (order.things[0].label, order.things[0].source) == ("*", "sink")


def test_what_must_not_be_touched_is_what_was_spoken_of_before() -> None:
    intent = meant("The plate is hot. Don't touch it. Put the cup on the shelf.")
    assert [one.label for one in intent.protected] == ["plate"]
    assert [one.label for one in intent.orders[0].things] == ["cup"]


def test_it_and_both_are_what_was_told_of() -> None:
    assert meant("The cup is dirty. It has a stain. Wash it.").orders[0].things[0].label == "cup"
    (order,) = meant("I can't decide between the apple and the banana. Bring me both.").orders
    assert [(one.label, one.count) for one in order.things] == [("apple", 1), ("banana", 1)]
    first, then = meant("Wipe the table, then the shelf.").orders
    assert (first.place, then.place) == ("table", "shelf")
    assert meant("Wash everything on the table except the blue cup.").orders[0].things[0].source == "table"


def test_the_red_one_is_mine_and_it_is_the_one_that_is_meant() -> None:
    assert meant("The red one is my cup. Wash it.").orders[0].things[0].colour == "red"


def test_a_wish_that_something_be_so_is_an_order() -> None:
    assert meant("Make sure the cup is on the tray.").orders[0].place == "tray"
    assert meant("See to it that the counter gets wiped.").orders[0].skill == "wipe"
    assert meant("I want the purple mug to be on the shelf.").orders[0].place == "shelf"


@pytest.mark.parametrize(
    ("text", "left_out"),
    [
        ("Wash all the cups. Except, well, the blue one.", [("cup", "blue")]),
        ("Wash all the cups except the blue one, sorry, the green one.", [("cup", "green")]),
        ("Wash all the cups except the blue one, no wait, all of them.", []),
        ("Wash all the cups except the blue one, and then the plates.", [("cup", "blue")]),
        ("Wash the cup. Not the red one.", [("cup", "red")]),
    ],
)
def test_what_is_left_out_is_what_was_said_last(text: str, left_out: list[tuple[str, str]]) -> None:
    (order,) = meant(text).orders
    assert [(one.label, one.colour) for one in order.excluding] == left_out


def test_an_exception_holds_for_what_follows_and_one_with_its_own_place_is_left_out_of_the_rest() -> None:
    rinse, place = meant("Wash all the cups except the blue one and put them on the shelf.").orders
    assert rinse.excluding == place.excluding != ()
    shelf, sink = meant("Put every plate on the shelf but put the blue one in the sink.").orders
    assert [(one.label, one.colour) for one in shelf.excluding] == [("plate", "blue")]
    assert (sink.things[0].colour, sink.place) == ("blue", "sink")
    tray, _ = meant("All fruit on the tray, but oranges in the sink.").orders
    assert [one.label for one in tray.excluding] == ["orange"]
    for text in (
        "Wash all the cups except the blue one. And the red one.",
        "Wash all the cups except the blue one and put it on the shelf.",
        "Wash all the cups except the blue one, no, that one too.",
        "Put all plates on the shelf. The blue one, however, stays.",
    ):
        assert meant(text).deed == "ask", text


def test_a_correction_takes_nothing_of_the_old_order_that_the_new_one_has_no_place_for() -> None:
    (order,) = meant("Wash the cup. Scratch that. Wipe the table.").orders
    assert (order.skill, order.things, order.place) == ("wipe", (), "table")
    (order,) = meant("Put the red cup, the blue one, I mean, on the shelf.").orders
    assert [one.colour for one in order.things] == ["blue"]


def test_here_is_where_the_speaker_is_and_no_place_of_an_earlier_order() -> None:
    asked = meant("Drive to the sink.", "Come here.")
    assert (asked.deed, asked.awaits) == ("ask", "place")
    assert meant("I'm at the sink. Come over here, please.").orders[0].place == "sink"
    assert meant("Put the apple on the tray.", "Go there.").orders[0].place == "tray"
