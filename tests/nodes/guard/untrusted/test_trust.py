"""Every row of the table "Who is trusted with what" of docs/guard.md, and of the table of what the guard watches."""

from __future__ import annotations

import ast
import re
import stat
from pathlib import Path
from typing import Any

import pytest

from bridges.mqtt.bridge import MqttBridge
from nodes.guard.lasting_faults import LASTS_S, RUNSTOP_S
from nodes.guard.node import Guard
from nodes.interrupts.reflex import Reflex
from nodes.interrupts.second_judge import SecondJudge
from nodes.msgs import EStop, GuardState, Interrupt, JointCommand, RobotState, RobotStatus
from nodes.msgs.signature import TOKEN_FILE, make_token
from nodes.robot.driver import Driver
from nodes.sim.people.person import ScenarioPerson
from nodes.voice.recogniser import Recogniser
from runtime import ALONE, Node, Publisher, Subscription
from runtime.coordination.lease import Lease
from runtime.errors import ParameterError
from runtime.launch.graph import Graph, NodeSpec
from runtime.node import ports_of
from tests.support.sentences import pattern, sentence

ROOT = Path(__file__).resolve().parents[4]
PAGE = (ROOT / "docs" / "guard.md").read_text()
HELD_BY = {
    "node of the graph, ears": (
        "nodes/guard/stops/test_who_lifts.py::test_words_of_a_person_whom_ears_have_heard_lift_a_stop",
        "nodes/guard/untrusted/test_trust.py::test_only_nodes_that_are_declared_as_ears_and_hold_no_seat_have_a_part_in_lifting_a_stop",
    ),
    "node of the graph, any other": (
        "nodes/guard/stops/test_who_lifts.py::test_words_of_any_other_node_stop_and_never_lift_a_stop",
        "nodes/guard/stops/test_who_lifts.py::test_a_node_that_raises_go_on_by_itself_in_the_name_of_a_person_lifts_nothing",
        "nodes/guard/untrusted/test_trust.py::test_a_node_of_the_graph_that_publishes_what_is_the_guards_or_the_drivers_is_refused_before_the_start",
    ),
    "another process of the same user": (
        "nodes/guard/untrusted/test_perimeter.py::test_nobody_takes_the_guards_word_from_a_forger_and_a_stop_stays_a_stop",
        "nodes/guard/untrusted/test_perimeter.py::test_tools_are_told_who_alone_publishes_there",
        "nodes/guard/stops/test_who_lifts.py::test_a_person_at_a_console_lifts_a_stop_with_a_signature_and_nobody_without",
    ),
    "another user of this machine": (
        "nodes/guard/untrusted/test_perimeter.py::test_another_user_of_this_machine_reads_nothing_stops_nothing_and_signs_nothing",
        "nodes/guard/untrusted/test_trust.py::test_no_other_user_reads_the_token",
    ),
    "the same, by `[hosts]` on loopback without keys, or by a broker on loopback without a login": (
        "runtime/hosts/test_hosts_table.py::test_on_one_machine_a_graph_with_a_guard_needs_keys_unless_it_has_one_user",
        "bridges/mqtt/test_bridge.py::test_whatever_moves_or_lifts_needs_a_login_on_loopback_too_unless_the_machine_has_one_user",
    ),
    "another host, without a key of the launch file": (
        "nodes/hosts/test_gateway.py::test_a_peer_with_another_key_is_refused_and_both_ends_say_so",
        "nodes/hosts/test_two_hosts.py::test_a_missing_or_a_wrong_key_is_refused_before_anything_starts",
    ),
    "another host, with a key": (
        "nodes/hosts/test_gateway.py::test_what_the_other_host_has_no_right_to_publish_is_refused_and_named",
        "runtime/launch/test_process_plan.py::test_another_host_speaks_as_its_own_nodes_and_never_as_one_of_a_third_host",
        "nodes/hosts/test_reliable_link.py::test_what_lay_on_its_way_for_longer_than_its_lifespan_is_dropped_unless_it_stops_a_robot",
    ),
}
"""Each row of the table "Who is trusted with what", and the tests that hold it."""


def test_every_row_of_who_is_trusted_with_what_is_held_by_tests_that_exist() -> None:
    lines = PAGE.partition("## Who is trusted with what")[2].partition("What another host")[0].splitlines()
    rows = [line.split("|")[1].strip() for line in lines if line.startswith("|")][2:]
    assert rows == list(HELD_BY)
    for test in (test for tests in HELD_BY.values() for test in tests):
        path, _, name = test.partition("::")
        tree = ast.parse((ROOT / "tests" / path).read_text())
        assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, test


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
        wanted = sentence("guard.another_publishes", topic=topic, node="forger", owner=owner)
        assert wanted in problems


class OwnDriver(Node):
    """A driver of somebody's own, as one writes it first."""

    command = Subscription(JointCommand, "robot/command")
    state = Publisher(RobotState, "robot/state")


class SafeDriver(OwnDriver):
    """The same, as it has to be."""

    state = Publisher(RobotState, "robot/state", qos=ALONE)

    def devices(self) -> tuple[str, ...]:
        return ("robot of_mine",)


def test_a_driver_of_somebodys_own_has_to_speak_alone_and_to_say_whether_it_moves_a_real_robot() -> None:
    def told(*specs: NodeSpec) -> list[str]:
        return [problem for node, problem in Graph(specs).problems() if node == "mine"]

    why = "topic 'robot/state': guard stops by it, and OwnDriver "
    assert told(NodeSpec("guard", Guard), NodeSpec("mine", OwnDriver)) == [
        f"{why}{sentence('guard.anybody_publishes')}",
        f"{why}{sentence('guard.devices_are_unknown')}",
    ]
    assert told(NodeSpec("guard", Guard), NodeSpec("mine", SafeDriver)) == []
    assert "stops by it" not in " ".join(told(NodeSpec("mine", OwnDriver))), "nobody does"


def test_the_page_names_every_exclusive_topic() -> None:
    ports = [*ports_of(Guard, Publisher).values(), *ports_of(Driver, Publisher).values()]
    exclusive = {port.topic for port in ports if port.qos.exclusive}
    named = set(re.findall(r"`([a-z/*]+)`", PAGE.partition("**One source.**")[2].partition("are exclusive")[0]))
    assert {topic.partition("/")[0] + "/*" if topic.startswith("driver/") else topic for topic in exclusive} == named
    assert {port.topic for port in ports if not port.qos.exclusive} == {"interrupt"}, "anybody may stop"


def test_only_nodes_that_are_declared_as_ears_and_hold_no_seat_have_a_part_in_lifting_a_stop() -> None:
    class Planner(Node):
        seat = "planner"
        role = "ears"
        role, believes = "lifter", "ears"

    specs = [NodeSpec("sam", ScenarioPerson), NodeSpec("words", Recogniser), NodeSpec("reflex", Reflex)]
    specs.append(NodeSpec("mqtt", MqttBridge, {"commands": ("say",)}))  # what its clients say lifts nothing
    graph = Graph([*specs, NodeSpec("planner", Planner), NodeSpec("forger", Forger), NodeSpec("guard", Guard)])
    assert graph.roles == {"ears": ["sam", "words"], "lifter": ["reflex"]}


def test_no_other_user_reads_the_token(tmp_path: Path) -> None:
    make_token(tmp_path)
    assert stat.S_IMODE((tmp_path / TOKEN_FILE).stat().st_mode) == 0o600


@pytest.mark.parametrize("fault", LASTS_S)
def test_the_page_says_when_each_fault_stops_the_robot_and_presses_its_runstop(fault: str) -> None:
    (row,) = [line for line in PAGE.splitlines() if line.startswith(f"| `{fault}` |")]
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells[2:] == [f"{LASTS_S[fault]:g} s", f"{RUNSTOP_S[fault]:g} s later"]  # type: ignore[index]  # from the table


def fixed() -> list[tuple[type[Node], str, str]]:
    """Each name that a launch file leaves alone, and by which key it might be changed."""
    classes: list[type[Node]] = [Guard, Driver, Reflex]
    return [
        (cls, name, "hz" if name in ("tick", "settle", "control") else "remap")
        for cls in classes
        for name in sorted(cls.fixed)
    ]


@pytest.mark.parametrize(("cls", "name", "key"), fixed())
def test_no_launch_file_makes_a_stop_unheard_by_another_name_or_rate(cls: type[Node], name: str, key: str) -> None:
    changed: Any = {"remap": {name: "nobody"}} if key == "remap" else {"hz": {name: 0.1}}
    found = [told for _, told in Graph([NodeSpec("it", cls, **changed)]).problems()]
    told = f"{key} of {name!r}: {cls.__name__} has it as it is, {sentence('guard.stop_depends_on_it')}; leave it out"
    assert told in found


class Button(Node):
    estop = Publisher(EStop, "estop")
    interrupt = Publisher(Interrupt, "interrupt")
    battery = Publisher(RobotStatus, "robot/battery")


@pytest.mark.parametrize(
    ("cls", "topic", "hearer"),
    [
        (Recogniser, "heard", "reflex"),
        (ScenarioPerson, "heard", "reflex"),
        (SecondJudge, "interrupt", "guard"),
        (Button, "estop", "guard"),
        (Button, "interrupt", "guard"),
    ],
)
def test_no_launch_file_makes_a_stop_unheard_by_renaming_it_where_it_is_said(
    cls: type[Node], topic: str, hearer: str
) -> None:
    graph = [NodeSpec("guard", Guard), NodeSpec("reflex", Reflex)]
    told = sentence("guard.hears_by_it", topic=topic, node=hearer)
    found = Graph([*graph, NodeSpec("it", cls, remap={topic: "nobody"})]).problems()
    assert [node for node, problem in found if problem == told] == ["it"]
    assert told not in str(Graph([*graph, NodeSpec("it", cls, remap={topic: topic})]).problems())
    assert told not in str(Graph([NodeSpec("it", cls, remap={topic: "nobody"})]).problems()), "nobody hears it"
    assert "hears of a stop" not in str(
        Graph([*graph, NodeSpec("it", Button, remap={"robot/battery": "b"})]).problems()
    )


def test_no_launch_file_lets_a_driver_take_its_commands_from_anybody_but_the_guard() -> None:
    class Policy(Node):
        command = Publisher(JointCommand, "command")

    specs = [
        NodeSpec("guard", Guard, process="robot"),
        NodeSpec("driver", Driver, remap={"robot/command": "command"}, process="robot"),
        NodeSpec("policy", Policy, process="robot"),
    ]
    assert [node for node, problem in Graph(specs).problems() if sentence("guard.stop_depends_on_it") in problem] == [
        "driver"
    ]


def test_what_the_guard_and_the_reflex_are_told_stops_by_is_fixed() -> None:
    assert {"interrupt", "estop", "robot/status", "robot/runstop", "driver/runstop", "tick"} <= Guard.fixed
    assert {"driver/runstop", "control"} <= Driver.fixed
    assert {"robot/command", "robot/state", "robot/status"} <= Driver.fixed & Guard.fixed, "none goes round the guard"
    assert {"heard", "alarm", "interrupt", "robot/state", "guard/state", "saying"} == Reflex.fixed


@pytest.mark.parametrize(("name", "most"), [("max_image_age_s", 60.0), ("estop_silence_s", 10.0)])
def test_a_limit_that_is_none_is_refused(name: str, most: float) -> None:
    fitting: Any = {name: most}
    Guard(**fitting)
    senseless: Any = {name: most + 0.1}
    with pytest.raises(
        ParameterError, match=pattern("guard.no_limit", name=name, value=most + 0.1, most_s=f"{most:g}")
    ):
        Guard(**senseless)
