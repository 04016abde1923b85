"""An age that the runtime cannot know is refused, never guessed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nodes.guard.node import Guard
from nodes.msgs import Image, JointCommand
from nodes.robot.driver import Driver
from runtime import Message, Node, Publisher, Simulation, Stamped, Subscription, every, on, run
from runtime.launch.checks.path_check import kept_silently
from runtime.launch.graph import Graph, NodeSpec
from runtime.launch.tables.handler_latency import Latency
from runtime.message import UNKNOWN_NS
from tests.support.sentences import sentence

COMMAND = JointCommand(position=(0.0,) * 8, base_v_mps=0.1)


class Camera(Node):
    """Ten pictures a second until it freezes."""

    image = Publisher(Image, "head/image")

    def __init__(self, freezes_s: float = 1e9) -> None:
        self.freezes_s = freezes_s

    @every(hz=10)
    def shoot(self) -> None:
        if self.clock.now_s() < self.freezes_s:
            self.image.publish(Image(camera="head", captured_ns=self.clock.now_ns(), rgb=np.zeros((2, 2, 3), np.uint8)))


class Policy(Node):
    """What the policies below have in common."""

    image = Subscription(Image, "head/image")
    command = Publisher(JointCommand, "command")
    picture: Any = None


class KeepsPicture(Policy):  # (a)
    @on(Policy.image)
    def see(self, image: Image) -> None:
        self.picture = image

    @every(hz=20)
    def tick(self) -> None:
        if self.picture is not None:
            self.command.publish(COMMAND)


class KeepsStamped(Policy):  # (b)
    @on(Policy.image)
    def see(self, image: Stamped[Image]) -> None:
        self.picture = image

    @every(hz=20)
    def tick(self) -> None:
        if self.picture is not None:
            self.command.publish(COMMAND)


class Thinks(Policy):  # (c)
    @on(Policy.image, blocking=True)
    def think(self, image: Image) -> None:
        self.picture = float(image.rgb.mean())

    @every(hz=20)
    def tick(self) -> None:
        if self.picture is not None:
            self.command.publish(COMMAND)


class ReadsAgain(KeepsPicture):
    """(a) with the line that the refusal asks for."""

    @every(hz=20)
    def tick(self) -> None:
        picture = self.image.latest()
        if picture is not None:
            self.command.publish(COMMAND)


class SaysWhat(KeepsStamped):
    """(b) with the line that the refusal asks for."""

    @every(hz=20)
    def tick(self) -> None:
        if self.picture is not None:
            self.command.publish(COMMAND, stems_from=self.picture)


class ThinksAndSaysWhat(Policy):
    """(c) with the line that the refusal asks for."""

    @on(Policy.image, blocking=True)
    def think(self, image: Stamped[Image]) -> None:
        self.picture = image

    @every(hz=20)
    def tick(self) -> None:
        if self.picture is not None:
            self.command.publish(COMMAND, stems_from=self.picture)


class Slow(Policy):
    """(d): it takes three seconds for each picture."""

    @on(Policy.image, blocking=True)
    def think(self, image: Image) -> None:
        self.command.publish(COMMAND)


class KeepsFirst(Policy):
    """(d): it sticks to its first picture while newer ones come."""

    @on(Policy.image)
    def see(self, image: Stamped[Image]) -> None:
        self.picture = self.picture or image
        self.command.publish(COMMAND, stems_from=self.picture)


class Note(Message, kind="state"):
    text: str = ""


class OldScene(Node):
    """Says what it saw in the first picture, over and over."""

    image = Subscription(Image, "head/image")
    scene = Publisher(Note, "scene")
    first: Stamped[Image] | None = None

    @on(image)
    def see(self, image: Stamped[Image]) -> None:
        self.first = self.first or image
        self.scene.publish(Note(), stems_from=self.first)


class Looks(Policy):
    """(e): it looks at an old scene for its log only."""

    scene = Subscription(Note, "scene")

    @on(Policy.image)
    def see(self, image: Image) -> None:
        self.scene.peek()
        self.command.publish(COMMAND)


class Run:
    """A policy, a camera, a guard and a robot in virtual time, and what became of the commands."""

    def __init__(
        self, policy: type[Policy], *, freezes_s: float = 1e9, latency_s: float = 0.0, more: tuple[Node, ...] = ()
    ) -> None:
        self.guard = Guard(arm="auto")
        latency = {"think": Latency(latency_s, latency_s)} if latency_s else {}
        driver = Driver(robot="nodes.sim.kinematic:KinematicRobot")
        spec = NodeSpec("policy", policy, latency=latency)
        self.simulation = Simulation(Camera(freezes_s), spec, self.guard, driver, *more)
        self.commands: list[Stamped[JointCommand]] = []
        self.driven: list[Stamped[JointCommand]] = []
        self.simulation.observe(self._hear)

    def _hear(self, stamped: Stamped[Any]) -> None:
        if stamped.envelope.topic == "command":
            self.commands.append(stamped)
        elif stamped.envelope.topic == "robot/command" and stamped.message.base_v_mps > 0:
            self.driven.append(stamped)

    def oldest_driven_s(self) -> float:
        """The age of the oldest picture behind what reached the motors."""
        ages = [one.origin_age_s("image", one.envelope.published_ns) for one in self.driven]
        return max(age for age in ages if age is not None)


@pytest.mark.parametrize("policy", [KeepsPicture, KeepsStamped, Thinks])
def test_what_is_kept_without_a_word_never_drives_and_the_line_and_the_remedy_are_told(
    policy: type[Policy], caplog: pytest.LogCaptureFixture
) -> None:
    run = Run(policy, freezes_s=1.0)
    run.simulation.run(seconds=5.0)
    assert {one.envelope.origins["image"] for one in run.commands} == {UNKNOWN_NS}
    assert not run.driven
    assert "policy: the age of the image behind the command is not known" in run.guard.machine.refusal
    [line] = [one.getMessage() for one in caplog.records if one.name == "node.policy"]
    assert line.startswith(f"policy: {policy.__qualname__}.tick (test_ages.py:")
    assert "(head/image)" in line
    assert sentence("runtime.read_in_the_handler") in line


@pytest.mark.parametrize("policy", [ReadsAgain, SaysWhat, ThinksAndSaysWhat])
def test_with_one_line_it_drives_and_stops_when_the_picture_is_old(policy: type[Policy]) -> None:
    run = Run(policy, freezes_s=2.0)
    run.simulation.run(seconds=6.0)
    assert run.driven[-1].envelope.published_ns > 2_500_000_000
    assert run.oldest_driven_s() <= 1.0
    assert run.guard.machine.mode == "holding"
    assert (
        run.guard.machine.reason == sentence("runtime.origin_is_old", origin="image", seconds=1)
        or "older" in run.guard.machine.refusal
    )


def test_a_handler_of_three_seconds_and_a_kept_picture_have_the_age_of_their_picture() -> None:
    slow = Run(Slow, latency_s=3.0)
    slow.simulation.run(seconds=8.0)
    ages = [one.origin_age_s("image", one.envelope.published_ns) for one in slow.commands]
    assert ages == [3.0, 3.1]  # and the second has waited for its turn
    assert not slow.driven
    first = Run(KeepsFirst)
    first.simulation.run(seconds=5.0)
    assert {one.envelope.origins["image"] for one in first.commands} == {0}
    assert first.oldest_driven_s() <= 1.0
    assert first.driven[-1].envelope.published_ns <= 2_000_000_000  # braking takes its time


def test_a_look_for_the_log_ages_nothing() -> None:
    run = Run(Looks, more=(OldScene(),))
    run.simulation.run(seconds=5.0)
    assert run.driven[-1].envelope.published_ns > 4_900_000_000
    assert run.oldest_driven_s() <= 0.2


def test_an_image_of_virtual_time_zero_has_an_age() -> None:
    run = Run(SaysWhat, freezes_s=0.05)
    run.simulation.run(seconds=3.0)
    assert {one.envelope.origins["image"] for one in run.commands} == {0}
    assert run.oldest_driven_s() <= 1.0
    assert run.guard.machine.mode == "holding"


class Limits(Node):
    """Limits the age of the image behind three commands that are kept without a word, and one that says what it has."""

    kept = Subscription(JointCommand, "kept/command")
    enveloped = Subscription(JointCommand, "enveloped/command")
    thought = Subscription(JointCommand, "thought/command")
    stated = Subscription(JointCommand, "stated/command")

    def __init__(self, max_image_age_s: float = 30.0) -> None:
        self.max_image_age_s = max_image_age_s
        self.heard: dict[str, list[bool]] = {}

    @on(kept, enveloped, thought, stated)
    def judge(self, command: Stamped[Any]) -> None:
        age_s = command.origin_age_s("image", self.clock.now_ns())
        self.heard.setdefault(command.envelope.topic, []).append(age_s is None or age_s > self.max_image_age_s)
        if len(self.heard) == 4 and all(len(some) >= 3 for some in self.heard.values()):
            found = {topic: set(some) for topic, some in sorted(self.heard.items())}
            expected = {topic: {not topic.startswith("stated")} for topic in found}
            self.finish(ok=found == expected, reason=f"refused: {found}")


LAUNCH = """
[nodes.camera]
use = "tests.runtime.test_ages:Camera"
[nodes.kept]
use = "tests.runtime.test_ages:KeepsPicture"
remap = { command = "kept/command" }
[nodes.enveloped]
use = "tests.runtime.test_ages:KeepsStamped"
remap = { command = "enveloped/command" }
[nodes.thought]
use = "tests.runtime.test_ages:Thinks"
remap = { command = "thought/command" }
[nodes.stated]
use = "tests.runtime.test_ages:SaysWhat"
remap = { command = "stated/command" }
[nodes.limits]
use = "tests.runtime.test_ages:Limits"
"""


@pytest.mark.processes
def test_between_processes_in_real_time_the_same_three_are_refused_and_the_stated_one_is_not(tmp_path: Path) -> None:
    file = tmp_path / "ages.toml"
    file.write_text(LAUNCH)
    command = [sys.executable, "-m", "runtime", "run", str(file), "--for", "60"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=90)
    told = ran.stdout + ran.stderr
    assert ran.returncode == 0, told
    assert "refused: {'enveloped/command': {True}, 'kept/command': {True}, 'stated/command': {False}" in told


def test_in_one_process_in_real_time_it_is_the_same() -> None:
    policies = {"kept": KeepsPicture, "enveloped": KeepsStamped, "thought": Thinks, "stated": SaysWhat}
    specs = [NodeSpec(name, cls, remap={"command": f"{name}/command"}) for name, cls in policies.items()]
    outcome = run(NodeSpec("camera", Camera), *specs, Limits(), seconds=60)
    assert outcome is not None
    assert outcome[0], outcome[1]


@pytest.mark.parametrize(
    ("policy", "is_named"),
    [(KeepsPicture, True), (KeepsStamped, True), (Thinks, True), (ReadsAgain, False), (SaysWhat, False), (Slow, False)],
)
def test_check_names_what_will_have_no_age_and_nothing_else(policy: type[Policy], is_named: bool) -> None:
    specs = [NodeSpec("camera", Camera), NodeSpec("policy", policy), NodeSpec("guard", Guard)]
    found = kept_silently(Graph(specs))
    assert len(found) == is_named
    if is_named:
        assert found[0].startswith(f"policy: {policy.__name__}.")
        assert "is given head/image, and command is published elsewhere" in found[0]


PAGE = (Path(__file__).resolve().parents[2] / "docs" / "nodes.md").read_text()
REMEDIES = re.findall(r"```python no-run\n(picture = .*?)```", PAGE, re.DOTALL)[0].splitlines()


@pytest.mark.parametrize(("line", "has_image"), [*zip(REMEDIES, (True, True, False), strict=True)])
def test_each_remedy_of_the_page_makes_the_age_known(line: str, has_image: bool) -> None:
    class Remedied(Policy):
        kept: Stamped[Image] | None = None

        @on(Policy.image)
        def see(self, image: Stamped[Image]) -> None:
            self.kept = image

        @every(hz=20)
        def tick(self) -> None:
            if self.kept is not None:
                exec(line, {}, {"self": self, "command": COMMAND})
                if "publish(" not in line:
                    self.command.publish(COMMAND)

    run = Run(Remedied)
    run.simulation.run(seconds=1.0)
    assert run.commands
    for one in run.commands:
        assert one.envelope.origins.get("image") != UNKNOWN_NS
        assert ("image" in one.envelope.origins) is has_image
