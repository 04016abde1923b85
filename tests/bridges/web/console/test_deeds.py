"""What people at the console do: a stop is never too much, and no name of theirs comes twice in a run."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from bridges.web.console.actions import Actions
from bridges.web.console.node import Console
from bridges.web.console.signing import Asking
from bridges.web.http.client import WORDS_BURST, Session
from bridges.web.http.ids import Idents
from bridges.web.http.wire import Resume, Say
from bridges.web.speech.push_to_talk import STOP_WORDS, load_stop_words
from runtime.clock import to_ns
from runtime.errors import ParameterError, UserError
from runtime.msgs import GuardState
from tests.bridges.web.console.test_seats import Sent


@pytest.mark.parametrize("role", ["operator", "participant"])
@pytest.mark.parametrize("words", ["Stop!", "Ouch! That's my toe!", "stop stop stop"])
def test_a_stop_is_heard_however_much_was_said_before_it(role: str, words: str) -> None:
    ports = SimpleNamespace(name="console", clock=SimpleNamespace(now_ns=lambda: 1), say_heard=Sent(), say_said=Sent())
    nothing: Any = SimpleNamespace(idents=Idents("console", 0))
    deeds = Actions(cast(Any, ports), nothing, nothing, nothing, nothing, nothing, "robot", load_stop_words(STOP_WORDS))
    talker = Session("t", role, "Tom")
    for number in range(int(WORDS_BURST) + 5):
        deeds.handle(talker, Say("collaborator", f"word {number}"))
    for _ in range(3):
        deeds.handle(talker, Say("collaborator", words))
    heard = [one.text for one in ports.say_heard.messages]
    assert heard == [*(f"word {number}" for number in range(int(WORDS_BURST))), *[words] * 3]
    assert set(talker.notices) == {"not so fast: that was not said"}


def test_re_arming_lets_go_of_the_console_s_button_and_of_what_was_typed_at_a_terminal() -> None:
    latched = SimpleNamespace(
        latest=lambda: GuardState(mode="stopped", reason="emergency stop", estop="terminal: pressed by Ana")
    )
    ports = SimpleNamespace(
        name="console", clock=SimpleNamespace(now_ns=lambda: 1), guard=latched, estop=Sent(), order=Sent()
    )
    seats: Any = SimpleNamespace(asking=Asking({}), idents=Idents("console", 0))
    nothing: Any = SimpleNamespace()
    deeds = Actions(cast(Any, ports), nothing, seats, nothing, nothing, nothing, "robot", load_stop_words(STOP_WORDS))
    deeds.handle(Session("t", "operator", "Tom"), Resume())
    assert [(one.source, one.is_pressed) for one in ports.estop.messages] == [("console", False), ("terminal", False)]
    assert [one.do for one in ports.order.messages] == ["rearm"]


def test_a_console_that_is_started_again_gives_no_name_twice() -> None:
    runs = [Idents("console", to_ns(start_s)) for start_s in (4021.5, 4023.25)]
    names = [idents.next(kind) for idents in runs for kind in ("", "interrupt") for _ in range(3)]
    assert len(set(names)) == len(names)


def test_what_tells_a_stop_has_to_be_there() -> None:
    with pytest.raises(UserError, match=r"nodes\.nothing"):
        Console(stop_words="nodes.nothing:is_stop")
    with pytest.raises(ParameterError, match=r"no function; expected one like nodes\.interrupts\.intent:is_stop"):
        Console(stop_words="nodes.stretch.limits:STRETCH_3")
