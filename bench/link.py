"""`python -m bench.link`: a robot whose policy runs elsewhere, on a bad cable and on one that breaks for three seconds.

launch/stretch-gpu.toml in two network namespaces, with a kinematic robot and small nodes in place of models; the cable
is `bench.netem`. Times are those of one machine's clock. Needs root and /dev/net/tun.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path

from bench.netem import OTHER, ROBOT, Cable, Shape, can_make
from bench.result import percentile
from nodes.mcap.file import BagReader
from nodes.msgs import GuardState
from runtime.clock import SystemClock, to_ns
from tests.nodes.hosts.two_hosts import Hosts

ROOT = Path(__file__).resolve().parent.parent
FILE = ROOT / "launch" / "stretch-gpu.toml"
CLOCK = SystemClock()
BROKEN_S = 3.0
PORT = 7430
BREAKS = {
    "robot to GPU": frozenset({ROBOT}),
    "GPU to robot": frozenset({OTHER}),
    "both ways": frozenset({ROBOT, OTHER}),
}
STANDS = ("holding", "stopped", "estopped")
USES = {
    "driver": ("nodes.robot.driver:Driver", '{ robot = "nodes.sim.kinematic:KinematicRobot" }'),
    "head_camera": ("bench.link_nodes:Pictures", ""),
    "planner": ("bench.link_nodes:Planning", ""),
    "vlm": ("bench.link_nodes:Describing", ""),
    "policy": ("bench.link_nodes:Swaying", ""),
}


@dataclass(frozen=True, slots=True)
class Moment:
    """When one break began and ended, both ends met again, and a person began and was done to say go on."""

    way: str
    broken_ns: int
    mended_ns: int
    back_ns: int
    asked_ns: int
    done_ns: int


@dataclass(frozen=True, slots=True)
class Broken:
    """One break, in seconds: from the cut, or the last command, to the hold; to the words; from the mending to both."""

    way: str
    held_s: float
    held_after_command_s: float
    said_s: float
    back_s: float
    moves_before_resume: bool
    moves_after_resume: bool

    @property
    def is_good(self) -> bool:
        """Held while it was broken, back within a second, and moved by a person's word only."""
        return self.held_s < 0.6 and self.back_s < 1.0 and not self.moves_before_resume and self.moves_after_resume


@dataclass(frozen=True, slots=True)
class Whole:
    """A time on a cable that is bad and whole."""

    minutes: float
    false_holds: int
    reasons: tuple[str, ...]
    commands: int
    gap_p99_ms: float
    longest_gap_ms: float
    image_age_p99_ms: float  # behind a command, when it was published
    oldest_image_ms: float
    packets: int
    packets_lost: int


def launch_text() -> str:
    """The shipped graph with what needs a robot or a model replaced; its hosts are written by `Hosts`."""
    text = re.sub(r"\[hosts\..*?(?=\n# ---)", "", FILE.read_text(), flags=re.DOTALL)
    text = text.replace('host = "gpu"', 'host = "desktop"').replace('arm = "manual"', 'arm = "auto", memory = "run"')
    for name, (use, params) in USES.items():
        head, table, rest = text.partition(f"[nodes.{name}]")
        body, blank, after = rest.partition("\n\n")
        body = re.sub(r'use( *)= "[^"]*"', f'use = "{use}"', body)
        body = re.sub(r"\nparams.*", f"\nparams = {params}" if params else "", body)
        text = head + table + body + blank + after
    return text.replace('[run]\nview = "nodes.terminal.view:TerminalView"', "")


def broken(shape: Shape, folder: Path, *, is_ipv6: bool = False) -> list[Broken]:
    """The cable breaks, each way in turn."""
    cable = Cable(shape, is_ipv6=is_ipv6)
    moments: list[Moment] = []
    try:
        with _hosts(cable, folder) as hosts:
            for way, ends in BREAKS.items():
                CLOCK.block(2.0)
                times = hosts.said("robot").count("connected again")
                broken_ns = CLOCK.now_ns()
                cable.broken = ends
                CLOCK.block(BROKEN_S)
                cable.broken = frozenset()
                mended_ns = CLOCK.now_ns()
                back_ns = 0
                while not back_ns and CLOCK.now_ns() - mended_ns < to_ns(20.0):
                    CLOCK.block(0.01)
                    if hosts.said("robot").count("connected again") > times:
                        back_ns = CLOCK.now_ns()
                CLOCK.block(2.0)
                asked_ns = CLOCK.now_ns()
                _resume(cable, hosts)
                moments.append(Moment(way, broken_ns, mended_ns, back_ns, asked_ns, CLOCK.now_ns()))
            CLOCK.block(2.0)
        heard = _heard(folder)
        return [_broken(moment, heard) for moment in moments]
    finally:
        cable.close()


def held(shape: Shape, folder: Path, minutes: float) -> Whole:
    """How often the guard held on a cable that is bad and whole."""
    cable = Cable(shape)
    try:
        with _hosts(cable, folder):
            CLOCK.block(2.0)
            begun_ns = CLOCK.now_ns()
            CLOCK.block(minutes * 60)
            ended_ns = CLOCK.now_ns()
        heard = _heard(folder)
        told = [state for at_ns, state in heard.states if begun_ns < at_ns < ended_ns]
        false = [after.reason for before, after in pairwise(told) if before.mode == "moving" != after.mode]
        times_ns = [at_ns for at_ns in heard.commanded_ns if begun_ns < at_ns < ended_ns]
        gaps_ms = [(after - before) / 1e6 for before, after in pairwise(times_ns)]
        ages_ms = [heard.image_ages_ns[at_ns] / 1e6 for at_ns in times_ns if at_ns in heard.image_ages_ns]
        return Whole(
            minutes,
            len(false),
            tuple(false),
            len(times_ns),
            *(percentile(gaps_ms, 99), max(gaps_ms)),
            *(percentile(ages_ms, 99), max(ages_ms)),
            *(sum(cable.passed), sum(cable.lost)),
        )
    finally:
        cable.close()


@contextmanager
def _hosts(cable: Cable, folder: Path) -> Iterator[Hosts]:
    """Both ends, moving."""
    address = cable.addresses[ROBOT]
    with Hosts(folder, launch_text(), port=PORT, address=f"[{address}]" if ":" in address else address) as hosts:
        recorded = str(folder / "robot.mcap")
        hosts.start("robot", "--record", recorded, within=cable.within(ROBOT))
        hosts.start("desktop", within=cable.within(OTHER))
        hosts.says("robot", "guard: moving: commanded by policy")
        yield hosts
        hosts.interrupt("robot")
        hosts.code("robot")


def _resume(cable: Cable, hosts: Hosts) -> None:
    """A person's word."""
    environment = {**os.environ, "XDG_RUNTIME_DIR": str(hosts.sockets / "r"), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "runtime", "guard", "resume", "--run", "split-robot"]
    subprocess.run([*cable.within(ROBOT), *command], env=environment, capture_output=True, timeout=60, check=True)


@dataclass(frozen=True, slots=True)
class Heard:
    """What the robot recorded, with the times at which it was published."""

    states: list[tuple[int, GuardState]]
    said_ns: list[int]
    commanded_ns: list[int]
    image_ages_ns: dict[int, int]  # by command


def _heard(folder: Path) -> Heard:
    heard = Heard([], [], [], {})
    for message in BagReader(folder / "robot.mcap"):
        at_ns = message.envelope.published_ns
        if message.topic == "guard/state":
            heard.states.append((at_ns, message.message(GuardState)))
        elif message.topic == "said":
            heard.said_ns.append(at_ns)
        elif message.topic == "command":
            heard.commanded_ns.append(at_ns)
            if (image_ns := message.envelope.origins.get("image")) is not None:
                heard.image_ages_ns[at_ns] = at_ns - image_ns
    return heard


def _broken(moment: Moment, heard: Heard) -> Broken:
    modes = [(at_ns, state.mode) for at_ns, state in heard.states]
    broken_ns, mended_ns, asked_ns = moment.broken_ns, moment.mended_ns, moment.asked_ns
    held_ns = next((at_ns for at_ns, mode in modes if at_ns > broken_ns and mode in STANDS), 0)
    last_ns = max((at_ns for at_ns in heard.commanded_ns if at_ns <= held_ns), default=0)
    return Broken(
        moment.way,
        held_s=_since_s(broken_ns, held_ns),
        held_after_command_s=_since_s(last_ns, held_ns),
        said_s=_since_s(broken_ns, next((at_ns for at_ns in heard.said_ns if at_ns > broken_ns), 0)),
        back_s=_since_s(mended_ns, moment.back_ns),
        moves_before_resume=any(mode == "moving" for at_ns, mode in modes if held_ns < at_ns < asked_ns),
        moves_after_resume=any(
            mode == "moving" for at_ns, mode in modes if asked_ns < at_ns < moment.done_ns + to_ns(1.0)
        ),
    )


def _since_s(begin_ns: int, end_ns: int) -> float:
    return (end_ns - begin_ns) / 1e9 if end_ns else float("inf")


def main(arguments: Sequence[str] | None = None) -> int:
    """0 where the robot held, said so and came back each time, and never held without a reason."""
    parser = argparse.ArgumentParser(prog="python -m bench.link", description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10.0, help="on a whole cable of 40 ms and 2 %% loss; 0: none")
    parser.add_argument("--ipv6", action="store_true", help="break a cable with IPv6 addresses")
    parser.add_argument("--mbit", type=float, default=20.0)
    parser.add_argument("--delay-ms", type=float, default=20.0, help="each way; a round trip takes twice that")
    parser.add_argument("--loss", type=float, default=0.02, help="of packets, each way")
    chosen = parser.parse_args(arguments)
    if not can_make():
        print("bench.link needs root, iproute2 and /dev/net/tun", file=sys.stderr)
        return 2
    shape = Shape(chosen.delay_ms / 1e3, chosen.loss, chosen.mbit)
    is_good = True
    with tempfile.TemporaryDirectory() as folder:
        for one in broken(shape, Path(folder), is_ipv6=chosen.ipv6):
            print(json.dumps(asdict(one)), flush=True)
            is_good = is_good and one.is_good
    if chosen.minutes:
        with tempfile.TemporaryDirectory() as folder:
            whole = held(shape, Path(folder), chosen.minutes)
            print(json.dumps(asdict(whole)))
            is_good = is_good and not whole.false_holds
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
