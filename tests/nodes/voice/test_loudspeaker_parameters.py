"""Parameters of the loudspeaker that cannot be, and what it lacks, are sentences before it starts."""

from __future__ import annotations

import math

import pytest

from nodes.voice.loudspeaker import Loudspeaker
from runtime import Simulation
from runtime.errors import ParameterError
from tests.support.sentences import sentence


@pytest.mark.parametrize(
    ("parameters", "why"),
    [
        ({"by": "magic"}, sentence("voice.wrong_by", by="magic")),
        ({"lifespan_s": 0.0}, sentence("voice.wrong_seconds", name="lifespan_s", value="0.0")),
        ({"deadline_s": math.inf}, sentence("voice.wrong_seconds", name="deadline_s", value="inf")),
        ({"latency_s": -1.0}, sentence("voice.wrong_latency", value="-1.0")),
        (
            {"barge_in_s": math.nan},
            sentence("voice.wrong_barge_in", value="nan"),
        ),
    ],
)
def test_parameters_that_cannot_be_are_refused(parameters: dict[str, object], why: str) -> None:
    with pytest.raises(ParameterError) as problem:
        Loudspeaker(**parameters)  # type: ignore[arg-type]
    assert str(problem.value) == why


def test_a_real_loudspeaker_is_refused_in_virtual_time() -> None:
    sim = Simulation(Loudspeaker(command="true"))
    with pytest.raises(ParameterError, match=r"a loudspeaker does not wait .*, or give device = 'none'"):
        sim.run(seconds=1.0)
    sim.close()


def test_no_command_is_enough_only_where_nothing_is_played() -> None:
    assert Loudspeaker(command="", device="none").problems() == []
    assert Loudspeaker(command="").problems() == [
        sentence("voice.command_is_empty", does=sentence("voice.what_speaks"))
    ]


def test_a_program_that_is_not_there_is_known_before_the_start() -> None:
    assert Loudspeaker(command="no-such-voice --loud").problems() == [
        sentence("voice.is_not_there", program="no-such-voice")
        + sentence("voice.or_another", remedy="install it", does=sentence("voice.what_speaks"))
    ]
    (problem,) = Loudspeaker(command="'unclosed").problems()
    assert problem.startswith('command is "\'unclosed", which is no command line')


def test_espeak_that_is_not_installed_is_told_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    (problem,) = Loudspeaker(device="none").problems()
    assert problem == (
        sentence("voice.is_not_there", program="espeak-ng")
        + sentence("voice.or_another", remedy="apt install espeak-ng", does=sentence("voice.what_speaks"))
    )
