"""pytest fixture `simulate`: simulations that are closed at the end, and report where a failed test went wrong.

Use it with `pytest_plugins = ["runtime.virtual.pytest_plugin"]` in the top conftest.py. A failed test leaves three
files in `runs/failed/TEST/`. `report.txt` has the seed, the command that repeats the test, the trace hash and the
exception's place in virtual time. It also names the first message that differs from the last run that passed.
`timeline.html` is a page to look at; `timeline.txt` lists all messages.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

from runtime.launch.graph import NodeSpec
from runtime.node import Node
from runtime.virtual.simulation import Simulation
from runtime.virtual.timeline_page import page
from runtime.virtual.trace import MessageTrace, first_difference, timeline

pytest.register_assert_rewrite("nodes.robot.conformance")  # a claim that fails shows its values

Simulate = Callable[..., Simulation]

_FAILED = pytest.StashKey[bool]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--virtual-seed N`, which repeats a test with the seed of its report."""
    parser.addoption("--virtual-seed", type=int, default=None, help="seed of every simulation that `simulate` makes")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Note whether the test failed, for the end of the fixture."""
    report = yield
    if report.when == "call":
        item.stash[_FAILED] = report.failed
    return report


@pytest.fixture
def simulate(request: pytest.FixtureRequest) -> Iterator[Simulate]:
    """Make simulations: simulate(node, ..., seed=7), with the arguments of `Simulation`."""
    made: list[tuple[Simulation, int]] = []
    asked: int | None = request.config.getoption("--virtual-seed")

    def make(*nodes: Node | NodeSpec, seed: int = 0, **options: Any) -> Simulation:
        seed = seed if asked is None else asked
        simulation = Simulation(*nodes, seed=seed, trace=MessageTrace(keep=True), **options)
        made.append((simulation, seed))
        return simulation

    yield make
    for simulation, _ in made:
        simulation.close()
    name = re.sub(r"[^A-Za-z0-9_.-]+", "_", request.node.nodeid)
    passed = request.config.rootpath / "runs" / "passed"
    for number, (simulation, seed) in enumerate(made, start=1):
        own = name if number == 1 else f"{name}-{number}"
        lines = simulation.trace.lines if simulation.trace is not None else None
        if lines is None:
            continue
        if not request.node.stash.get(_FAILED, False):
            passed.mkdir(parents=True, exist_ok=True)
            (passed / f"{own}.trace").write_text("\n".join(lines))
        else:
            folder = request.config.rootpath / "runs" / "failed" / own
            _leave(folder, passed / f"{own}.trace", request.node.nodeid, seed, simulation)
            print(f"virtual run: see {folder / 'report.txt'}")


def _leave(folder: Path, before: Path, test: str, seed: int, simulation: Simulation) -> None:
    assert simulation.trace is not None
    lines = simulation.trace.lines or []
    passed = before.read_text().splitlines() if before.is_file() else None
    facts = [
        ("test", test),
        ("seed", str(seed)),
        ("again", f'python -m pytest "{test}" --virtual-seed {seed}'),
        ("trace", f"{simulation.trace.hash} ({simulation.trace.messages} messages)"),
        ("ended at", f"{simulation.clock.now_ns() * 1e-9:.6f} s of virtual time"),
        ("first difference from the last run that passed", _parted(passed, lines)),
    ]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "timeline.html").write_text(page(f"Failed: {test}", facts, lines, passed))
    (folder / "timeline.txt").write_text(timeline(lines))
    facts.append(("timeline", str(folder / "timeline.html")))
    (folder / "report.txt").write_text("".join(f"{name}: {value}\n" for name, value in facts))


def _parted(passed: list[str] | None, lines: list[str]) -> str:
    if passed is None:
        return "no run of this test that passed is known here"
    difference = first_difference(passed, lines)
    if difference is None:
        return "none: the messages are those of the last run that passed"
    number, old, new = difference
    return f"message {number + 1}\n    passed: {old or '(ended)'}\n    failed: {new or '(ended)'}"
