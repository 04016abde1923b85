"""Parameters of the loudspeaker that cannot be, and what it lacks, are sentences before it starts."""

from __future__ import annotations

import math

import pytest

from nodes.voice.loudspeaker import Loudspeaker
from runtime import Simulation
from runtime.errors import ParameterError


@pytest.mark.parametrize(
    ("parameters", "why"),
    [
        ({"by": "magic"}, "loudspeaker: by is 'magic'; known: command, api"),
        ({"lifespan_s": 0.0}, "loudspeaker: lifespan_s is 0.0; expected a positive number of seconds"),
        ({"deadline_s": math.inf}, "loudspeaker: deadline_s is inf; expected a positive number of seconds"),
        ({"latency_s": -1.0}, "loudspeaker: latency_s is -1.0; expected 0 or more seconds"),
        (
            {"barge_in_s": math.nan},
            "loudspeaker: barge_in_s is nan; expected 0 or more seconds, or inf: never",
        ),
    ],
)
def test_parameters_that_cannot_be_are_refused(parameters: dict[str, object], why: str) -> None:
    with pytest.raises(ParameterError) as problem:
        Loudspeaker(**parameters)  # type: ignore[arg-type]
    assert str(problem.value) == why


def test_a_real_loudspeaker_is_refused_in_virtual_time() -> None:
    sim = Simulation(Loudspeaker(command="true"))
    with pytest.raises(ParameterError, match="a loudspeaker does not wait for virtual time; give device = 'none'"):
        sim.run(seconds=1.0)
    sim.close()


def test_no_command_is_enough_only_where_nothing_is_played() -> None:
    assert Loudspeaker(command="", device="none").problems() == []
    assert Loudspeaker(command="").problems() == [
        "command is empty; name a program that reads text and writes WAV, such as espeak-ng --stdin --stdout"
    ]


def test_a_program_that_is_not_there_is_known_before_the_start() -> None:
    assert Loudspeaker(command="no-such-voice --loud").problems() == [
        "the command's program 'no-such-voice' is not there: install it, or name another that reads "
        "text and writes WAV, such as espeak-ng --stdin --stdout"
    ]
    (problem,) = Loudspeaker(command="'unclosed").problems()
    assert problem.startswith('command is "\'unclosed", which is no command line')


def test_espeak_that_is_not_installed_is_told_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    (problem,) = Loudspeaker(device="none").problems()
    assert problem == (
        "the command's program 'espeak-ng' is not there: apt install espeak-ng, or name another that "
        "reads text and writes WAV, such as espeak-ng --stdin --stdout"
    )
