"""What all commands do alike with numbers and with errors."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable

import pytest

from runtime.command_line.arguments import answered, count, port_number, positive, seconds, share
from runtime.errors import PolyrhythmError, UserError
from tests.support.sentences import sentence


@pytest.mark.parametrize(
    ("read", "text", "value"),
    [
        (seconds, "1.5", 1.5),
        (positive, "1e-3", 0.001),
        (count, "12", 12),
        (share, "0", 0.0),
        (share, "1", 1.0),
        (port_number, "0", 0),
        (port_number, "65535", 65535),
    ],
)
def test_numbers_are_read(read: Callable[[str], float], text: str, value: float) -> None:
    assert read(text) == value


@pytest.mark.parametrize(
    ("read", "text", "told"),
    [
        *(
            (seconds, text, f"{text} {sentence('runtime.no_positive_seconds')}")
            for text in ("0", "-1", "nan", "inf", "soon")
        ),
        (positive, "0", f"0 {sentence('runtime.no_positive_number')}"),
        *((count, text, f"{text} {sentence('runtime.no_positive_whole')}") for text in ("0", "-1", "1.5", "many", "²")),
        *((port_number, text, f"{text} {sentence('runtime.no_port')}") for text in ("-1", "65536", "http")),
        *((share, text, f"{text} {sentence('runtime.no_share')}") for text in ("-0.1", "1.1", "nan", "half")),
    ],
)
def test_what_is_no_such_number_is_told(read: Callable[[str], float], text: str, told: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError) as problem:
        read(text)
    assert str(problem.value) == told


def failing(problem: Exception) -> Callable[[], int]:
    def do() -> int:
        raise problem

    return do


def test_an_error_is_a_sentence_and_an_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert answered("polyrhythm x", lambda: 7) == 7
    assert answered("polyrhythm x", failing(UserError("no such file"))) == 2
    assert answered("polyrhythm x", failing(PolyrhythmError("it broke"))) == 1
    assert capsys.readouterr().err == "polyrhythm x: no such file\npolyrhythm x: it broke\n"
    noted = PolyrhythmError("it broke")
    noted.add_note("in arm.tick at 0.500 s of virtual time")
    assert answered("polyrhythm x", failing(noted)) == 1
    told = capsys.readouterr().err
    assert re.fullmatch(
        r"polyrhythm x: it broke \(in arm\.tick at 0\.500 s of virtual time, test_arguments\.py:\d+\)\n", told
    )
    with pytest.raises(ZeroDivisionError):
        answered("polyrhythm x", failing(ZeroDivisionError()))
