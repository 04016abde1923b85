"""The robot's own voice is told from a person's."""

from __future__ import annotations

import pytest

from nodes.interrupts.people import is_echo

SAID = "I stop at the table, and then I put the blue cup in the bin."


@pytest.mark.parametrize(
    "heard",
    [
        SAID,
        "I stop at the table",
        "i put the blue cup in the pin",  # one word wrong
        "and then I put the blue cup in the",
    ],
)
def test_words_that_the_robot_has_just_said_are_an_echo(heard: str) -> None:
    assert is_echo(heard, [SAID])


@pytest.mark.parametrize("heard", ["stop, stop", "Put the red cup on my desk", "No, not the blue one", "", "..."])
def test_a_person_is_heard_beside_the_robot_and_a_short_stop_always(heard: str) -> None:
    assert not is_echo(heard, [SAID])


def test_nothing_is_an_echo_of_silence() -> None:
    assert not is_echo("Put the red cup on my desk", [])
