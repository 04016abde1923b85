"""At its end a run tells what became of its messages: received = delivered + dropped + waiting."""

from __future__ import annotations

import io
import json
import subprocess
import sys

import pytest

from runtime.commands.message_counts import MessageCounts
from runtime.coordination.health import Health, PortHealth
from runtime.message import Envelope, Stamped
from runtime.supervision.view import SilentView


def account(
    pid: int, received: int, delivered: int, dropped: dict[str, int], source: str = "eye", errors: int = 0
) -> Stamped[Health]:
    waiting = received - delivered - sum(dropped.values())
    port = PortHealth(
        topic="image", received=received, delivered=delivered, waiting=waiting, dropped=dropped, age_ms=None
    )
    health = Health(node="eye", pid=pid, timers=(), ports=(port,), sent={}, errors=errors, cpu_s=0.0, rss_mb=0.0)
    return Stamped(health, Envelope("health/eye", source, 1, 0))


def test_it_asks_for_what_the_view_shows_and_for_the_accounts() -> None:
    class Everything(SilentView):
        shows = None  # type: ignore[assignment]  # as of a view that does not say

    assert MessageCounts(SilentView()).shows == (Health,)
    assert MessageCounts(Everything()).shows is None


def test_the_last_account_of_each_life_of_a_node_counts() -> None:
    tally = MessageCounts(SilentView())
    for stamped in (
        account(1, 5, 3, {"overwritten": 1}),
        account(1, 9, 6, {"overwritten": 2}),
        account(2, 4, 1, {"overwritten": 1, "link": 2}),
        account(3, 1000, 1000, {}, source="pub-7"),
    ):
        tally.message(stamped)
    dropped = {"overwritten": 3, "link": 2}
    assert tally.as_data() == {"eye": {"image": {"received": 13, "delivered": 7, "waiting": 1, "dropped": dropped}}}
    assert tally.lines() == [
        "messages: 13 received; 7 delivered, 5 dropped, 1 waiting",
        "  eye, of 13 on image: link 2, overwritten 3",
    ]


def test_whose_handlers_failed_is_told_over_all_lives() -> None:
    tally = MessageCounts(SilentView())
    for pid, errors in ((1, 3), (1, 80), (2, 4)):
        tally.message(account(pid, 5, 5, {}, errors=errors))
    assert tally.errors() == {"eye": (84, "")}


def test_where_nobody_subscribes_there_is_nothing_to_tell() -> None:
    assert MessageCounts(SilentView()).lines() == []


def ended(*options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "runtime", "run", "hello", *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)


def test_a_run_tells_it_at_its_end_in_words_and_as_data() -> None:
    virtual = ("--virtual", "--for", "5")
    assert "messages: 10 received; 10 delivered, 0 dropped, 0 waiting\n" in ended(*virtual).stderr
    counted = {"received": 10, "delivered": 10, "waiting": 0, "dropped": {}}
    assert json.loads(ended(*virtual, "--json").stdout)["messages"] == {"listener": {"beat": counted}}


@pytest.mark.processes
def test_processes_tell_it_to_the_last_message() -> None:
    beat = json.loads(ended("--for", "1.2", "--json").stdout)["messages"]["listener"]["beat"]
    assert beat["received"] >= 1
    assert beat["received"] == beat["delivered"] + beat["waiting"] + sum(beat["dropped"].values())


def test_a_reader_that_has_gone_ends_no_run(monkeypatch: pytest.MonkeyPatch) -> None:
    class Gone(SilentView):
        def log(self, level: str, source: str, text: str, at_s: float | None = None) -> None:
            raise BrokenPipeError

    monkeypatch.setattr(sys, "stdout", io.StringIO())
    view = MessageCounts(Gone())
    view.log("info", "talker", "hello")
    print("nobody reads this")
    view.close()
    sys.stdout.close()
