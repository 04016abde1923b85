"""What people at the console do: a stop is never too much, and no name of theirs comes twice in a run."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from bridges.web.deeds import Deeds
from bridges.web.idents import Idents
from bridges.web.node import Console
from bridges.web.session import WORDS_BURST, Session
from bridges.web.stop_words import STOP_WORDS, load_stop_words
from bridges.web.wire import Say
from runtime.clock import to_ns
from runtime.errors import ParameterError, UserError
from tests.test_web_seats import Sent


@pytest.mark.parametrize("role", ["operator", "participant"])
@pytest.mark.parametrize("words", ["Stop!", "Ouch! That's my toe!", "stop stop stop"])
def test_a_stop_is_heard_however_much_was_said_before_it(role: str, words: str) -> None:
    ports = SimpleNamespace(name="console", clock=SimpleNamespace(now_ns=lambda: 1), say_heard=Sent(), say_said=Sent())
    nothing: Any = SimpleNamespace(idents=Idents("console", 0))
    deeds = Deeds(cast(Any, ports), nothing, nothing, nothing, nothing, nothing, "robot", load_stop_words(STOP_WORDS))
    talker = Session("t", role, "Tom")
    for number in range(int(WORDS_BURST) + 5):
        deeds.handle(talker, Say("collaborator", f"word {number}"))
    for _ in range(3):
        deeds.handle(talker, Say("collaborator", words))
    heard = [one.text for one in ports.say_heard.messages]
    assert heard == [*(f"word {number}" for number in range(int(WORDS_BURST))), *[words] * 3]
    assert set(talker.notices) == {"not so fast: that was not said"}


def test_a_console_that_is_started_again_gives_no_name_twice() -> None:
    runs = [Idents("console", to_ns(start_s)) for start_s in (4021.5, 4023.25)]
    names = [idents.next(kind) for idents in runs for kind in ("", "interrupt") for _ in range(3)]
    assert len(set(names)) == len(names)


def test_what_tells_a_stop_has_to_be_there() -> None:
    with pytest.raises(UserError, match=r"nodes\.nothing"):
        Console(stop_words="nodes.nothing:is_stop")
    with pytest.raises(ParameterError, match=r"no function; expected one like nodes\.understanding:is_stop"):
        Console(stop_words="nodes.stretch:STRETCH_3")
