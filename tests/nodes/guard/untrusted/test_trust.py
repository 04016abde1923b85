"""Every row of the table "Who is trusted with what" of docs/guard.md, and of the table of what the guard watches."""

from __future__ import annotations

import re
import stat
from pathlib import Path

import pytest

from nodes.guard.lasting_faults import LASTS_S, RUNSTOP_S
from nodes.guard.node import Guard
from nodes.interrupts.reflex import Reflex
from nodes.robot.driver import Driver
from nodes.sim.collaborator import Collaborator
from nodes.voice.recogniser import Recogniser
from runtime import Node, Publisher
from runtime.coordination.lease import Lease
from runtime.launch.graph import Graph, NodeSpec
from runtime.msgs import GuardState, JointCommand, RobotState
from runtime.msgs.signature import TOKEN_FILE, make_token
from runtime.node import ports_of

PAGE = (Path(__file__).resolve().parents[4] / "docs" / "guard.md").read_text()


class Forger(Node):
    """A node that would like to be the guard and the driver."""

    lease = Publisher(Lease, "lease")
    command = Publisher(JointCommand, "robot/command")
    state = Publisher(RobotState, "robot/state")
    guard = Publisher(GuardState, "guard/state")


def test_a_node_of_the_graph_that_publishes_what_is_the_guards_or_the_drivers_is_refused_before_the_start() -> None:
    specs = [NodeSpec("guard", Guard), NodeSpec("driver", Driver), NodeSpec("forger", Forger)]
    problems = [problem for node, problem in Graph(specs).problems() if node == "forger"]
    for topic, owner in (
        ("lease", "guard"),
        ("robot/command", "guard"),
        ("robot/state", "driver"),
        ("guard/state", "guard"),
    ):
        wanted = f"topic {topic!r}: forger publishes it, but only {owner} may; remap the one of forger"
        assert wanted in problems


def test_the_page_names_every_exclusive_topic() -> None:
    ports = [*ports_of(Guard, Publisher).values(), *ports_of(Driver, Publisher).values()]
    exclusive = {port.topic for port in ports if port.qos.exclusive}
    named = set(re.findall(r"`([a-z/*]+)`", PAGE.partition("**One source.**")[2].partition("are exclusive")[0]))
    assert {topic.partition("/")[0] + "/*" if topic.startswith("driver/") else topic for topic in exclusive} == named
    assert {port.topic for port in ports if not port.qos.exclusive} == {"interrupt"}, "anybody may stop"


def test_only_nodes_that_are_declared_as_ears_and_hold_no_seat_have_a_part_in_lifting_a_stop() -> None:
    class Planner(Node):
        seat = "planner"
        is_ears = True
        lifts_stops = True

    specs = [NodeSpec("sam", Collaborator), NodeSpec("words", Recogniser), NodeSpec("reflex", Reflex)]
    graph = Graph([*specs, NodeSpec("planner", Planner), NodeSpec("forger", Forger), NodeSpec("guard", Guard)])
    assert graph.roles == {"ears": ["sam", "words"], "lifters": ["reflex"]}


def test_no_other_user_reads_the_token(tmp_path: Path) -> None:
    make_token(tmp_path)
    assert stat.S_IMODE((tmp_path / TOKEN_FILE).stat().st_mode) == 0o600


@pytest.mark.parametrize("fault", LASTS_S)
def test_the_page_says_when_each_fault_stops_the_robot_and_presses_its_runstop(fault: str) -> None:
    (row,) = [line for line in PAGE.splitlines() if line.startswith(f"| `{fault}` |")]
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells[2:] == [f"{LASTS_S[fault]:g} s", f"{RUNSTOP_S[fault]:g} s later"]  # type: ignore[index]  # from the table
