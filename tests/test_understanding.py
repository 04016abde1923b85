"""Claims about `nodes/understanding.py`."""

from __future__ import annotations

import pytest

from nodes.understanding import Meaning, clauses_of, understand


def test_an_order_names_kind_and_destination() -> None:
    assert understand("Please clear the table: put the cups in the bin") == Meaning(
        wants="order", can_do=True, kind="cup", where="bin"
    )


@pytest.mark.parametrize(
    ("text", "excluding", "including"),
    [
        ("No, not the blue one", ("blue",), ()),
        ("Leave the blue one alone", ("blue",), ()),
        ("Put everything except the blue and the red one in the bin", ("blue", "red"), ()),
        ("Take the green one, not the yellow one", ("yellow",), ("green",)),
        ("No, the green one", (), ("green",)),
        ("Don't touch the blue cup!", ("blue",), ()),
        ("Nein, nicht die blaue Tasse", ("blue",), ()),
        ("不要蓝色的", ("blue",), ()),
        ("The red ones, but not the blue ones.", ("blue",), ("red",)),
    ],
)
def test_colours_behind_a_negator_are_left_alone(
    text: str, excluding: tuple[str, ...], including: tuple[str, ...]
) -> None:
    meaning = understand(text)
    assert (meaning.excluding, meaning.including) == (excluding, including)


@pytest.mark.parametrize("text", ["No!", "That's wrong.", "Not that one.", "No, no."])
def test_an_objection_without_a_name_is_about_what_is_being_done(text: str) -> None:
    assert understand(text).is_about_current


def test_an_order_beyond_the_robot_is_understood_as_an_order_it_cannot_do() -> None:
    meaning = understand("Make me a coffee")
    assert (meaning.wants, meaning.can_do) == ("order", False)


def test_put_it_back_is_a_correction_that_returns_the_thing() -> None:
    meaning = understand("No, put it back!")
    assert (meaning.wants, meaning.puts_back) == ("amend", True)


def test_everything_is_no_kind() -> None:
    meaning = understand("Clear everything into the box")
    assert (meaning.can_do, meaning.is_everything, meaning.kind, meaning.where) == (True, True, "", "bin")


def test_clauses_are_normalised() -> None:
    assert clauses_of("Arrête ! That’s MY toe…") == ("arrete", "thats my toe")


@pytest.mark.parametrize(
    "text", ["Should I go on?", "May I continue?", "Soll ich weitermachen?", "Dois-je continuer ou continue ?"]
)
def test_who_asks_whether_they_should_go_on_does_not_tell_the_robot_to(text: str) -> None:
    assert understand(text).wants != "resume"


@pytest.mark.parametrize(
    "text", ["Can you go on?", "Would you continue, please?", "Yes, go on.", "I may be slow. Go on."]
)
def test_a_request_in_the_form_of_a_question_is_one(text: str) -> None:
    assert understand(text).wants == "resume"
