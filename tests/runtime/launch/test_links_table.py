"""What a link of a launch file does to messages in virtual time: delay, loss, copies and outages, from the seed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from runtime import Message, Node, Publisher, Simulation, Subscription, every, on
from runtime.errors import LaunchFileError
from runtime.launch.file import load
from runtime.launch.graph import NodeSpec
from runtime.launch.tables.handler_latency import Latency
from runtime.launch.tables.links_table import LinkModel
from runtime.qos import RELIABLE, QoS
from tests.support.sentences import sentence


class Count(Message):
    number: int


class Counter(Node):
    """Counts ten times a second."""

    count = Publisher(Count, "count")

    def __init__(self) -> None:
        self.number = 0

    @every(hz=10)
    def tick(self) -> None:
        self.number += 1
        self.count.publish(Count(number=self.number))


class Hearer(Node):
    """Notes when it hears what."""

    count = Subscription(Count, "count")

    def __init__(self) -> None:
        self.heard: list[tuple[float, int]] = []

    @on(count)
    def hear(self, count: Count) -> None:
        self.heard.append((round(self.clock.now_ns() * 1e-9, 6), count.number))


def heard(*links: LinkModel, seconds: float = 0.45, seed: int = 0) -> tuple[Hearer, list[tuple[float, int]]]:
    hearer = Hearer()
    simulation = Simulation(Counter(), hearer, seed=seed, links=links)
    try:
        simulation.run(seconds)
    finally:
        simulation.close()
    return hearer, hearer.heard


def test_a_delay_holds_every_message_up() -> None:
    _, found = heard(LinkModel("wifi", delay=Latency.parse(0.03, "delay")))
    assert found == [(0.03, 1), (0.13, 2), (0.23, 3), (0.33, 4), (0.43, 5)]


def test_jitter_never_swaps_messages_of_one_sender() -> None:
    _, found = heard(LinkModel("wifi", delay=Latency.parse([0.0, 0.5], "delay")), seconds=20)
    numbers = [number for _, number in found]
    assert numbers == sorted(numbers)
    assert len({round(time - (number - 1) * 0.1, 3) for time, number in found}) > 50


def test_two_links_on_one_way_add_up() -> None:
    ten_ms = Latency.parse(0.01, "delay")
    _, found = heard(
        LinkModel("radio", senders=("counter",), delay=ten_ms), LinkModel("cable", topics=("count",), delay=ten_ms)
    )
    assert found[0] == (0.02, 1)


def test_a_link_that_selects_others_changes_nothing() -> None:
    assert heard(LinkModel("wifi", receivers=("other",), loss=1.0))[1] == heard()[1]


def test_what_is_lost_is_counted_by_the_port() -> None:
    hearer, found = heard(LinkModel("wifi", loss=0.3), seconds=100)
    assert 600 < len(found) < 800
    assert dict(hearer.count.dropped) == {"link": 1000 - len(found)}
    assert hearer.count.received == 1000


def test_a_copy_arrives_after_its_original() -> None:
    _, found = heard(LinkModel("wifi", duplicate=1.0), seconds=0.15)
    assert found == [(0.0, 1), (0.0, 1), (0.1, 2), (0.1, 2)]


def test_nothing_passes_in_an_outage() -> None:
    _, found = heard(LinkModel("wifi", outages_s=((0.1, 0.3),)))
    assert [number for _, number in found] == [1, 4, 5]


def test_one_seed_gives_one_fate_and_another_seed_another() -> None:
    link = LinkModel("wifi", loss=0.5, delay=Latency.parse({"p50": 0.02, "p99": 0.2}, "delay"))
    assert heard(link, seconds=5, seed=1)[1] == heard(link, seconds=5, seed=1)[1]
    assert heard(link, seconds=5, seed=1)[1] != heard(link, seconds=5, seed=2)[1]


class SureCounter(Counter):
    """The same, on a topic of which nothing may be lost."""

    count = Publisher(Count, "count", qos=RELIABLE)


class UrgentCounter(Counter):
    """The same, on a topic that waits for nothing."""

    count = Publisher(Count, "count", qos=QoS(reliable=True, hold_s=0.0))


def heard_reliably(counter: Counter, link: LinkModel, seconds: float) -> tuple[Hearer, list[tuple[float, int]]]:
    hearer = Hearer()
    simulation = Simulation(counter, hearer, seed=1, links=[link])
    try:
        simulation.run(seconds)
    finally:
        simulation.close()
    return hearer, hearer.heard


def test_a_reliable_event_that_is_lost_comes_a_period_later_and_once_and_in_order() -> None:
    link = LinkModel("wifi", loss=0.3, duplicate=0.3)
    hearer, found = heard_reliably(SureCounter(), link, 50.05)
    numbers = [number for _, number in found]
    assert numbers == list(range(1, len(numbers) + 1))
    assert len(numbers) > 480
    late_periods = {round((time_s - (number - 1) * 0.1) / 0.1, 6) for time_s, number in found}
    assert {0.0, 1.0, 2.0} <= late_periods
    assert all(periods == int(periods) for periods in late_periods)
    assert not hearer.count.dropped
    assert found == heard_reliably(SureCounter(), link, 50.05)[1], "the seed decides"


def test_a_reliable_event_waits_for_the_end_of_an_outage_but_not_longer_than_its_lifespan() -> None:
    hearer, found = heard_reliably(SureCounter(), LinkModel("wifi", outages_s=((0.05, 7.05),)), 8.0)
    numbers = [number for _, number in found]
    assert numbers[0] == 1
    assert numbers[1:] == list(range(numbers[1], numbers[1] + len(numbers) - 1))
    lost = numbers[1] - 2
    assert dict(hearer.count.dropped) == {"link": lost}
    assert 19 <= lost <= 22, "what was said more than five seconds before the end of the outage"
    assert found[1][0] == pytest.approx(7.1, abs=0.11)


def test_an_urgent_event_does_not_wait_for_an_earlier_one() -> None:
    _, found = heard_reliably(UrgentCounter(), LinkModel("wifi", loss=0.5), 10.05)
    on_time = sum(round(time_s - (number - 1) * 0.1, 6) == 0 for time_s, number in found)
    numbers = [number for _, number in found]
    assert on_time > 0.4 * len(numbers)
    assert numbers != sorted(numbers)
    assert len(set(numbers)) == len(numbers)


FILE = """
[nodes.counter]
use = "tests.runtime.launch.test_links_table:Counter"
[nodes.hearer]
use = "tests.runtime.launch.test_links_table:Hearer"
{more}
"""


def launched(folder: Path, more: str, *overrides: str) -> Any:
    path = folder / "test.toml"
    path.write_text(FILE.format(more=more))
    return load(path, overrides)


def test_a_launch_file_names_links(tmp_path: Path) -> None:
    more = """[links.wifi]
    from = "counter"
    to = ["hearer"]
    topics = "count"
    delay = { p50 = 0.02, p99 = 0.1 }
    loss = 0.01
    duplicate = 0.001
    outages = [[10, 12.5]]"""
    (link,) = launched(tmp_path, more).links
    delay = Latency(p50_s=0.02, p99_s=0.1)
    assert link == LinkModel("wifi", ("counter",), ("hearer",), ("count",), delay, 0.01, 0.001, ((10.0, 12.5),))
    assert launched(tmp_path, more, "links.wifi.loss=0.5").links[0].loss == 0.5


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ("[links]\nwifi = 3", r"\[links.wifi\] is 3; expected a table"),
        ("[links.wifi]\nspeed = 3", r"\[links.wifi\] has the unknown key 'speed'; known: delay, duplicate, from"),
        ("[links.wifi]\nloss = 0.1", sentence("runtime.selects_nothing")),
        ('[links.wifi]\nto = "hearar"', r"to names 'hearar', no node of this file; did you mean 'hearer'"),
        ('[links.wifi]\ntopics = ["cuont"]', r"topics names 'cuont', no topic of this file; did you mean 'count'"),
        ('[links.wifi]\nto = "hearer"\nloss = 10', f"loss is 10; {sentence('runtime.share_expected')}"),
        ('[links.wifi]\nto = "hearer"\ndelay = "long"', r"delay: latency is 'long'; expected seconds"),
        ('[links.wifi]\nto = "hearer"\noutages = [3, 4]', r"outages is \[3, 4\]; expected pairs of seconds"),
        ('[links.wifi]\nto = "hearer"\noutages = [[4, 3]]', r"outages is \[\[4.0, 3.0\]\]; expected pairs"),
    ],
)
def test_a_link_that_is_not_understood_is_refused_in_words(tmp_path: Path, table: str, words: str) -> None:
    with pytest.raises(LaunchFileError, match=words):
        launched(tmp_path, table)


def spec_with_trace(folder: Path, text: str) -> NodeSpec:
    (folder / "trace.json").write_text(text)
    path = folder / "test.toml"
    path.write_text(
        """[nodes.counter]
        use = "tests.runtime.launch.test_links_table:Counter"
        latency = { trace = "trace.json" }"""
    )
    spec: NodeSpec = load(path).graph.nodes["counter"]
    return spec


def test_measured_durations_are_used_in_the_order_of_the_trace(tmp_path: Path) -> None:
    spec = spec_with_trace(tmp_path, '{"handlers": {"counter.tick": [0.01, 0.02, 0.03], "other.tick": [5]}}')
    hearer = Hearer()
    simulation = Simulation(spec, hearer)
    simulation.run(0.55)
    simulation.close()
    delays = [round(time - (number - 1) * 0.1, 6) for time, number in hearer.heard]
    assert sorted(delays[:3]) == [0.01, 0.02, 0.03]
    assert delays[:3] == delays[3:6]
    assert (delays[1] - delays[0]) % 0.03 == pytest.approx(0.01)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[", "cannot be read"),
        ("[]", sentence("runtime.no_trace")),
        (
            '{"handlers": {"other.tick": [1]}}',
            sentence("runtime.no_handler_in_trace", node="counter", handlers="other.tick"),
        ),
        ('{"handlers": {"counter.tick": [-1]}}', sentence("runtime.no_durations", handler="counter.tick")),
    ],
)
def test_a_trace_that_is_not_understood_is_refused_in_words(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(LaunchFileError, match=words):
        spec_with_trace(tmp_path, text)
