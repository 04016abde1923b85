"""What the tools compute: gaps, spreads, rows of `top`, and messages from a person's JSON."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import msgspec
import numpy as np
import pytest

from nodes.msgs import ActionChunk, GuardState, Utterance
from nodes.terminal.top_rows import COLUMNS, ENDED, TimerRow, budgets, cells, node_row, trouble
from runtime.clock import to_ns
from runtime.commands import topic_commands as listen
from runtime.commands.nodes import listed, table
from runtime.commands.pub import parse
from runtime.commands.topic_commands import Distribution, PublishRate, in_units
from runtime.coordination.health import Health, PathHealth, PortHealth, Spending, TimerHealth
from runtime.errors import UserError
from runtime.message import Envelope, Kind, Stamped
from runtime.supervision.registry import ProcessState
from tests.support.sentences import sentence

KINDS: dict[str, Kind] = {"a": "state", "b": "state", "c": "event"}
RUNNING = ProcessState(7, "running")


def health(ns: int, *, ticks: int, pid: int = 7, cpu_s: float = 0.0, errors: int = 0) -> Stamped[Health]:
    timer = TimerHealth(
        name="tick",
        hz_target=20.0,
        hz_achieved=19.0,
        ticks=ticks,
        overruns=2,
        lateness_p50_ms=0.1,
        lateness_p99_ms=1.5,
        lateness_max_ms=9.0,
    )
    ports = (
        PortHealth(topic="a", received=9, delivered=5, waiting=1, dropped={"link": 1, "expired": 2}, age_ms=12.0),
        PortHealth(topic="b", received=4, delivered=3, waiting=0, dropped={"link": 1}, age_ms=None),
        PortHealth(topic="c", received=0, delivered=0, waiting=0, dropped={}, age_ms=9000.0),
    )
    message = Health(
        node="policy",
        pid=pid,
        timers=(timer,),
        ports=ports,
        sent={"command": ticks},
        errors=errors,
        cpu_s=cpu_s,
        rss_mb=40.0,
    )
    return Stamped(message, Envelope("health/policy", "policy", 1, ns))


def test_rates_and_cpu_are_those_between_two_accounts() -> None:
    before, last = health(0, ticks=10, cpu_s=1.0), health(2_000_000_000, ticks=50, cpu_s=1.5)
    row = node_row("policy", "arm", RUNNING, before, last, 2_500_000_000, KINDS)
    assert (row.timers[0].hz, row.sent_per_s, row.cpu_percent, row.silent_s) == (20.0, 20.0, 25.0, 0.5)
    assert row.dropped == {"link": 2, "expired": 2}
    assert (row.waiting, row.oldest_ms) == (1, 12.0)
    assert dict(zip(COLUMNS, cells(row), strict=True)) == {
        "node": "policy",
        "process": "arm",
        "pid": "7",
        "state": "running",
        "rate/target Hz": "20/20",
        "late p99 ms": "1.50",
        "overruns": "2",
        "input age ms": "12.0",
        "queue": "1",
        "dropped": "expired 2, link 2",
        "unacknowledged": "-",
        "errors": "0",
        "CPU %": "25.0",
        "MB": "40",
    }
    assert trouble([row]) == []


def test_accounts_before_and_after_a_restart_are_not_subtracted() -> None:
    row = node_row("policy", "arm", RUNNING, health(0, ticks=900), health(10**9, ticks=5, pid=8), 10**9, KINDS)
    assert row.cpu_percent is None
    assert row.sent_per_s == 0.0
    assert row.timers[0].hz == 19.0


def test_a_node_that_never_told_of_itself_has_a_row() -> None:
    row = node_row("policy", "arm", ProcessState(7, "failed: was killed by SIGKILL", 2), None, None, 0, KINDS)
    assert "restarts: 2" in cells(row)[3]
    assert trouble([row]) == ["policy: its process arm is failed: was killed by SIGKILL"]


def test_a_process_that_tells_nothing_is_not_taken_for_one_that_runs() -> None:
    quiet = "policy: not a word for 4 s; its process arm is frozen or busy"
    for last in (None, health(10**9, ticks=20)):
        row = node_row("policy", "arm", RUNNING, None, last, 5 * 10**9, KINDS, since_ns=10**9)
        assert cells(row)[3] == "silent for 4 s"
        assert quiet in trouble([row])
    just_asked = node_row("policy", "arm", RUNNING, None, None, 2 * 10**9, KINDS, since_ns=10**9)
    assert (cells(just_asked)[3], trouble([just_asked])) == ("running", [])


def test_budgets_are_told_and_those_that_are_not_kept_are_trouble() -> None:
    plain = health(10**9, ticks=20)
    path = PathHealth(
        name="sight", topics=("a", "b"), p99_budget_ms=100.0, count=50, over=5, p50_ms=60.0, p99_ms=120.0, max_ms=130.0
    )
    spending = Spending(model="m", calls=3, max_calls=3, spent="the budget of 3 calls is spent")
    message = msgspec.structs.replace(cast(Any, plain.message), paths=(path,), spending=spending)
    row = node_row("policy", "arm", RUNNING, None, Stamped(message, plain.envelope), 10**9, KINDS)
    assert budgets([row]) == [
        "path sight: p50 60.0, p99 120.0, max 130.0 ms of 100 ms at p99; 5 of 50 over it: NOT MET",
        "model policy (m): 3 of 3 calls, 0 tokens (0 in, 0 out); SPENT: the budget of 3 calls is spent",
    ]
    assert trouble([row]) == [
        sentence("runtime.over_budget", path="sight", ms=100),
        "policy: the budget of 3 calls is spent; it asks no more",
    ]
    assert budgets([node_row("policy", "arm", RUNNING, None, plain, 10**9, KINDS)]) == []


def test_events_that_nobody_acknowledged_are_told_by_reason_and_those_that_were_given_up_are_trouble() -> None:
    plain = health(10**9, ticks=20)
    unacknowledged = {"word": {"ear: lifespan": 2, "scribe: lifespan": 1, "ear: restarted": 4}}
    message = msgspec.structs.replace(cast(Any, plain.message), unacknowledged=unacknowledged)
    row = node_row("policy", "arm", RUNNING, None, Stamped(message, plain.envelope), 10**9, KINDS)
    assert dict(zip(COLUMNS, cells(row), strict=True))["unacknowledged"] == "lifespan 3, restarted 4"
    assert trouble([row]) == [
        sentence("runtime.not_acknowledged", node="policy", receiver="ear", number=2, topic="word", reason="lifespan"),
        sentence(
            "runtime.not_acknowledged", node="policy", receiver="scribe", number=1, topic="word", reason="lifespan"
        ),
    ]


def test_what_is_slow_or_fails_or_falls_silent_is_told() -> None:
    row = node_row("policy", "arm", RUNNING, health(0, ticks=0), health(10**9, ticks=10, errors=3), 9 * 10**9, KINDS)
    assert trouble([row]) == [
        "policy.tick runs at 10 Hz instead of 20",
        f"policy: 3 {sentence('runtime.calls_failed')}",
        "policy: not a word for 8 s; its process arm is frozen or busy",
    ]
    assert cells(row)[3] == "silent for 8 s"


@pytest.mark.parametrize(("hz_target", "ticks", "is_slow"), [(1.0, 1, False), (1.0, 2, True), (20.0, 1, True)])
def test_a_slow_timer_at_its_first_tick_holds_something_for_long(hz_target: float, ticks: int, is_slow: bool) -> None:
    row = TimerRow("serve", 0.0, hz_target, ticks, overruns=0, lateness_p99_ms=0.1, lateness_max_ms=0.1)
    assert row.is_slow is is_slow


def test_a_timer_that_hardly_ticked_in_between_is_judged_since_its_start() -> None:
    row = node_row("policy", "arm", RUNNING, health(0, ticks=3), health(10**8, ticks=3), 10**8, KINDS)
    assert row.timers[0].hz == 19.0


def test_gaps_are_between_messages_of_one_source_and_missing_numbers_are_counted() -> None:
    gaps = PublishRate()
    for seq, stamp_ns in ((1, 10**9), (2, 2 * 10**9), (5, 3 * 10**9)):
        gaps.note(Envelope("x", "a", seq, stamp_ns))
    gaps.note(Envelope("x", "b", 1, 3 * 10**9))
    assert (gaps.count, gaps.lost, gaps.hz) == (4, 2, 1.5)
    assert (gaps.gaps_s.lowest, gaps.gaps_s.highest, gaps.gaps_s.deviation) == (1.0, 1.0, 0.0)


def test_a_restarted_source_counts_anew_and_loses_nothing() -> None:
    gaps = PublishRate()
    gaps.note(Envelope("x", "a", 90, 10**9))
    gaps.note(Envelope("x", "a", 1, 2 * 10**9))
    assert gaps.lost == 0


def test_a_spread_of_nothing_is_zero() -> None:
    spread = Distribution()
    assert (spread.lowest, spread.highest, spread.mean, spread.percentile(99), PublishRate().hz) == (0, 0, 0, 0, 0)
    for value in (1.0, 2.0, 3.0, 4.0):
        spread.add(value)
    assert (spread.percentile(50), spread.percentile(99), spread.mean) == (2.0, 4.0, 2.5)


def test_bytes_are_told_in_units() -> None:
    assert [in_units(size) for size in (12, 1500, 2.5e6, 3e9)] == ["12 B", "1.5 kB", "2.5 MB", "3 GB"]


def test_json_becomes_a_message_with_arrays_of_the_declared_type() -> None:
    chunk = parse(ActionChunk, '{"position": [[1, 2]], "base_v_mps": [0], "base_w_radps": [0], "step_s": 0.1}')
    assert isinstance(chunk, ActionChunk)
    assert chunk.position.dtype == np.float64
    assert chunk.position.shape == (1, 2)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"speaker": "Ann"}', "missing required field `text`; its fields .*: captured_ns\\?, .*speaker, .*text"),
        ('{"speaker": "Ann", "text": 3}', "Expected `str`, got `int`"),
        ('{"speaker": "Ann", "text": "", "loud": true}', "Utterance has no field 'loud'"),
        ("[1]", "Expected `object`"),
        ("Stop!", "no Utterance"),
        ("[" * 100_000, "nested too deep"),
        ('{"speaker": "Ann", "text": "\\ud800"}', "no Utterance"),
    ],
)
def test_json_that_is_no_such_message_is_refused_with_the_fields_there_are(text: str, told: str) -> None:
    with pytest.raises(UserError, match=told):
        parse(Utterance, text)


@pytest.mark.parametrize("text", ["stop", "{speaker: Ann}", "{'speaker': 'Ann'}", ""])
def test_what_is_no_json_is_told_as_such_with_the_fields_and_how_to_write_it(text: str) -> None:
    with pytest.raises(UserError) as refusal:
        parse(Utterance, text)
    told = str(refusal.value)
    assert told.startswith(f"no Utterance: {text!r} is no JSON (")
    assert "its fields (?: optional), captured_ns?, " in told
    assert ", speaker, stamp_ns?, text, as in '{\"FIELD\": VALUE}'" in told


def test_silent_nodes_of_another_host_are_one_line_that_names_the_host() -> None:
    silent = [
        msgspec.structs.replace(
            node_row(node, "gateway-robot", RUNNING, None, None, 4_000_000_000, KINDS, 0), host="robot"
        )
        for node in ("driver", "guard")
    ]
    assert trouble(silent) == [sentence("runtime.not_a_word", host="robot", nodes="driver, guard")]


def test_what_ended_while_somebody_looked_is_no_trouble() -> None:
    assert trouble([node_row("policy", "arm", ProcessState(0, ENDED), None, None, 0, KINDS)]) == []


def test_a_node_that_hears_everything_does_not_fill_the_screen() -> None:
    assert listed([]) == "-"
    assert listed(["beat", "word"]) == "beat word"
    assert listed([f"health/node_{number}" for number in range(20)]) == (
        "health/node_0 health/node_1 health/node_2 health/node_3 and 16 more"
    )
    assert listed(["x" * 90, "y"]) == "x" * 90 + " and 1 more"


class Counted:
    """Counts what arrives, as `hz` does."""

    def __init__(self) -> None:
        self.number = 0

    def add(self, arrival: object) -> None:
        self.number += 1

    def line(self) -> str:
        return f"{self.number} messages"

    def data(self) -> dict[str, float]:
        return {"messages": self.number}


@pytest.mark.parametrize(
    ("arrivals", "lines"),
    [([1, 1, 0], ["1 messages", "2 messages", "2 messages"]), ([0, 1], ["nothing on beat yet", "1 messages"])],
)
def test_the_last_line_is_said_once(
    arrivals: list[int], lines: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = iter(range(100))  # a second at each look
    monkeypatch.setattr(listen, "attach", lambda wanted: None)
    monkeypatch.setattr(listen, "SystemClock", lambda: SimpleNamespace(now_ns=lambda: to_ns(next(clock))))
    monkeypatch.setattr(listen, "hear", lambda *_: ("beat" if one else None for one in arrivals))
    assert listen.measure("hz", "how often", Counted(), ["beat"]) == 0
    assert capsys.readouterr().out.splitlines() == lines


def test_what_the_guard_does_is_said_without_saying_the_mode_twice() -> None:
    assert GuardState(mode="armed", reason=sentence("runtime.armed")).sentence == sentence("runtime.armed")
    assert GuardState(mode="stopped", reason="re-armed by ann").sentence == "stopped: re-armed by ann"
    assert GuardState(mode="disarmed", reason="").sentence == "disarmed"


def test_a_table_that_is_wider_than_the_terminal_leaves_modules_away_and_then_cuts_its_lines() -> None:
    rows = [{"topic": "robot/state", "type": "nodes.msgs:RobotState", "subscribers": "guard policy recorder"}]
    columns = ("topic", "type", "subscribers")
    whole = [
        "topic        type                   subscribers",
        "robot/state  nodes.msgs:RobotState  guard policy recorder",
    ]
    assert table(rows, columns).splitlines() == table(rows, columns, 57).splitlines() == whole
    narrower = ["topic        type        subscribers", "robot/state  RobotState  guard policy recorder"]
    assert table(rows, columns, 56).splitlines() == table(rows, columns, 46).splitlines() == narrower
    assert table(rows, columns, 40).splitlines()[1] == "robot/state  RobotState  guard policy r…"
