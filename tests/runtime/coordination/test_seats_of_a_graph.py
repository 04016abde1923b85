"""Seats and origins are data of a graph: a seat `navigation` and an origin `lidar` need nothing of the runtime."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from nodes.guard.arbitration import Arbitration
from nodes.msgs import Interrupt
from runtime import Message, Node, Publisher, Simulation, Stamped, Subscription, every, on
from runtime.coordination.fence import FENCE_TOPIC, Fence
from runtime.launch.file import load
from tests.support.sentences import pattern

ROOT = Path(__file__).parents[3]


class Scan(Message, origin="lidar"):
    captured_ns: int


class Heading(Message, kind="state"):
    turn_radps: float
    number: int


class Lidar(Node):
    scan = Publisher(Scan, "scan")

    @every(hz=20)
    def turn(self) -> None:
        self.scan.publish(Scan(captured_ns=self.clock.now_ns() - 30_000_000))


class Navigator(Node):
    """Turns with each scan; from its seat."""

    seat = "navigation"
    scan = Subscription(Scan, "scan")
    heading = Publisher(Heading, "heading")
    number = 0

    @on(scan)
    def steer(self, scan: Scan) -> None:
        self.number += 1
        self.heading.publish(Heading(turn_radps=0.1, number=self.number))


class Keeper(Node):
    """Fences the seat after half a second, and again a second later, as a guard does."""

    fence = Publisher(Fence, FENCE_TOPIC)
    count = 0

    @every(hz=1, phase=0.5)
    def stop(self) -> None:
        self.count += 1
        if self.count <= 2:
            self.fence.publish(Fence(epochs={"navigation": self.count}, interrupt_id=f"i{self.count}", depth="stop"))


class Wheels(Node):
    """Takes no heading that is older than its scan may be, and tells how it went."""

    heading = Subscription(Heading, "heading")
    fence = Subscription(Fence, FENCE_TOPIC)
    oldest_s = 0.0
    newest_epoch = 0

    def __init__(self, max_lidar_age_s: float = 0.5) -> None:
        self.max_lidar_age_s = max_lidar_age_s

    @on(heading)
    def roll(self, heading: Stamped[Heading]) -> None:
        age_s = heading.origin_age_s("lidar")
        if age_s is not None and age_s <= self.max_lidar_age_s:
            self.oldest_s = max(self.oldest_s, age_s)
            self.newest_epoch = max(self.newest_epoch, heading.envelope.epochs.get("navigation", 0))

    @every(hz=5)
    def tell(self) -> None:
        self.log.info("age %.3f epoch %d", self.oldest_s, self.newest_epoch)
        if self.newest_epoch == 2:
            self.finish(ok=self.oldest_s >= 0.03, reason=f"oldest {self.oldest_s:.3f} s")


LAUNCH = """
[nodes.lidar]
use = "{module}:Lidar"
[nodes.navigator]
use = "{module}:Navigator"
[nodes.keeper]
use = "{module}:Keeper"
[nodes.wheels]
use = "{module}:Wheels"
[seats.navigation]
holder = "navigator"
preempted_by = ["stop"]
[budgets.paths.turn]
topics = ["scan", "heading"]
p99_s = 0.3
"""


def launch_file(folder: Path) -> Path:
    path = folder / "drive.toml"
    path.write_text(LAUNCH.format(module="tests.runtime.coordination.test_seats_of_a_graph"))
    return path


def test_a_seat_and_an_origin_of_a_launch_files_own_are_fenced_and_aged_in_virtual_time(tmp_path: Path) -> None:
    launch = load(launch_file(tmp_path))
    simulation = Simulation(*launch.graph.nodes.values(), seats=launch.seats, budgets=launch.budgets, health_hz=1.0)
    heard: list[Stamped[Any]] = []
    simulation.observe(heard.append)
    simulation.run(seconds=3.0)
    headings = [one for one in heard if one.envelope.topic == "heading"]
    assert {one.envelope.seat for one in headings} == {"navigation"}
    assert {one.envelope.published_ns - one.envelope.origins["lidar"] for one in headings} == {30_000_000}
    assert headings[0].envelope.epochs == {}
    assert headings[-1].envelope.epochs == {"navigation": 2}
    assert simulation.outcome == (True, "oldest 0.030 s")
    [path] = simulation.latest("health/navigator").paths  # type: ignore[union-attr]  # Health
    assert path.count > 10
    assert path.max_ms == pytest.approx(30.0)


@pytest.mark.processes
def test_the_same_in_processes(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "runtime", "run", str(launch_file(tmp_path)), "--for", "20"],
        cwd=ROOT, capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    assert "oldest 0.0" in done.stdout + done.stderr
    assert done.returncode == 0, done.stdout + done.stderr


def test_what_preempts_a_seat_is_said_by_its_table_or_is_a_replan_and_a_stop() -> None:
    from nodes.guard.arbitration import SeatConfig

    seats = Arbitration({"navigation": SeatConfig(holder="n", preempted_by=("amend",))}, ("navigation", "talk", "vlm"))
    amended = seats.fence(Interrupt(id="1", depth="amend", text="", by="Ana"))
    assert amended.epochs == {"navigation": 1, "vlm": 1}
    stopped = seats.fence(Interrupt(id="2", depth="stop", text="", by="Ana"))
    assert stopped.epochs == {"navigation": 1, "planner": 1, "policy": 1, "talk": 1, "vlm": 2}


def test_an_origin_is_a_word() -> None:
    with pytest.raises(TypeError, match=pattern("runtime.origin_is_no_name", origin="Lid ar")):

        class Odd(Message, origin="Lid ar"):
            pass
