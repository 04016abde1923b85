"""Before anything runs: which nodes a path leads over, what takes its time, and why a budget cannot be kept."""

from __future__ import annotations

from typing import Any

import pytest

from nodes.msgs import Action, Image, JointCommand, RobotState, SceneDescription
from runtime import Node, Publisher, QoS, Subscription, every, on
from runtime.cli import main
from runtime.errors import LaunchFileError, UserError
from runtime.launch.checks.path_check import PathAccount, accounts, at_most
from runtime.launch.file import check, find, load, path_accounts
from runtime.launch.graph import Graph, NodeSpec
from runtime.launch.tables.budgets_table import Budgets, parse_budgets
from runtime.launch.tables.handler_latency import Latency
from runtime.launch.tables.links_table import LinkModel
from tests.support.sentences import sentence


class Eye(Node):
    image = Publisher(Image, "head/image")

    @every(hz=10)
    def look(self) -> None: ...

    @every(hz=500, blocking=True)
    def wait_for_a_frame(self) -> None: ...


class Hand(Node):
    seat = "policy"
    image = Subscription(Image, "head/image")
    command = Publisher(JointCommand, "command")

    @every(hz=20)
    def move(self) -> None: ...

    @on(image, blocking=True)
    def see(self, image: Image) -> None: ...


class SlowHand(Hand):
    @every(hz=2)
    def move(self) -> None: ...


class Gate(Node):
    command = Subscription(JointCommand, "command", qos=QoS(lifespan_s=0.15))
    out = Publisher(JointCommand, "robot/command")

    def __init__(self, max_image_age_s: float = 1.0) -> None:
        self.limit_s = max_image_age_s

    @every(hz=50)
    def tick(self) -> None: ...


class Echo(Node):
    """Without a timer: acts at arrival."""

    image = Subscription(Image, "head/image")
    description = Publisher(SceneDescription, "description")

    @on(image)
    def tell(self, image: Image) -> None: ...


class Reader(Node):
    description = Subscription(SceneDescription, "description")
    action = Publisher(Action, "action")

    @every(hz=5)
    def act(self) -> None: ...


class Late(Node):
    """Nobody says how often."""

    image = Publisher(Image, "late/image")


class Doer(Node):
    image = Subscription(Image, "late/image")
    action = Subscription(Action, "action")
    state = Publisher(RobotState, "robot/state")

    @every(hz=5)
    def act(self) -> None: ...


NODES = {
    "eye": Eye, "hand": Hand, "slow": SlowHand, "gate": Gate, "echo": Echo, "reader": Reader, "late": Late,
    "doer": Doer,
}  # fmt: skip


def account(*topics: str, p99_s: float = 1.0, links: tuple[LinkModel, ...] = (), **more: Any) -> PathAccount:
    specs = [NodeSpec(name, cls, **more.get(name, {})) for name, cls in NODES.items()]
    graph = Graph(specs, {"policy": ("hand", "slow")})
    budgets = parse_budgets({"paths": {"p": {"topics": list(topics), "p99_s": p99_s}}}, graph)
    (found,) = accounts(budgets, graph, {"policy": more.get("holder", "hand")}, links)
    return found


def parts(found: PathAccount) -> list[tuple[str, float]]:
    return [(part.node, round(part.seconds, 4)) for part in found.parts]


def test_a_sampled_topic_costs_its_period_and_threads_beside_the_loop_do_not_count() -> None:
    found = account("head/image", "command", "robot/command")
    assert parts(found) == [("eye", 0.1), ("hand", 0.05)]
    assert found.total_s == pytest.approx(0.15)
    assert [(limit.node, limit.seconds) for limit in found.limits] == [("gate", 1.0)]
    assert found.problem == ""


def test_the_sum_beyond_the_budget_is_told_with_the_part_that_eats_most() -> None:
    problem = account("head/image", "command", "robot/command", p99_s=0.14).problem
    assert problem == (
        sentence(
            "runtime.path_is_long",
            budget_s=0.14,
            total_s=0.15,
            parts="eye: head/image comes each 0.1 s; hand: command comes each 0.05 s",
        )
    )


def test_exactly_the_budget_is_within_it() -> None:
    assert account("head/image", "command", "robot/command", p99_s=0.15).problem == ""


def test_the_holder_of_a_seat_counts_and_not_its_shadow() -> None:
    found = account("head/image", "command", "robot/command", holder="slow")
    assert parts(found) == [("eye", 0.1), ("slow", 0.15)], "its commands are read for their lifespan only"
    assert "lifespan" in found.parts[1].why


def test_declared_latencies_and_network_delays_count() -> None:
    found = account(
        "head/image",
        "command",
        "robot/command",
        hand={"latency": {"move": Latency(lowest_s=0.01, highest_s=0.02), "see": Latency(p50_s=0.03, p99_s=0.07)}},
        eye={"latency": {"look": Latency(measured_s=(0.001, 0.002))}, "hz": {"look": 20.0}},
        links=(LinkModel("wifi", senders=("hand",), delay=Latency(highest_s=0.004)),),
    )
    assert parts(found) == [("eye", 0.002), ("eye", 0.05), ("hand", 0.02), ("hand", 0.004), ("hand", 0.05)]


def test_a_node_without_a_timer_waits_for_nothing_and_hands_on_its_input_s_rate() -> None:
    found = account("head/image", "description", "action")
    assert parts(found) == [("echo", 0.1)], "the description comes as often as the image"


def test_what_nobody_declares_is_told_and_not_guessed() -> None:
    found = account("late/image", "robot/state")
    assert found.parts == ()
    assert found.unknown == ("late: how often late/image comes",)
    assert "    not known  late: how often late/image comes" in found.lines()


def test_a_node_that_refuses_what_the_path_makes_is_told() -> None:
    found = account("head/image", "command", "robot/command", gate={"params": {"max_image_age_s": 0.12}})
    assert found.problem == sentence("runtime.path_is_refused", total_s=0.15, node="gate", oldest_s=0.12)


@pytest.mark.parametrize(
    ("topics", "words"),
    [
        (
            ("head/image", "robot/command"),
            sentence(
                "runtime.no_node_leads",
                path="p",
                first="head/image",
                last="robot/command",
                readers="echo, hand, slow",
                writer="gate",
                hint="between them lie: head/image, command, robot/command",
            ),
        ),
        (
            ("late/image", "robot/command"),
            sentence(
                "runtime.no_node_leads",
                path="p",
                first="late/image",
                last="robot/command",
                readers="doer",
                writer="gate",
                hint=sentence("runtime.no_way_leads"),
            ),
        ),
        (
            ("head/image", "action", "robot/state"),
            sentence("runtime.path_over_an_event", path="p", topic="action"),
        ),
    ],
)
def test_a_path_that_is_none_is_a_sentence(topics: tuple[str, ...], words: str) -> None:
    with pytest.raises(UserError) as told:
        account(*topics)
    assert str(told.value) == words


class Slow(Node):
    """Takes longer than the images come."""

    image = Subscription(Image, "head/image")
    description = Publisher(SceneDescription, "description")

    @on(image, blocking=True)
    def tell(self, image: Image) -> None:
        self.description.publish(SceneDescription(text="", subtask_id="", progress="idle"))


class Joins(Node):
    """Reads what somebody else made of an image, and the image besides."""

    image = Subscription(Image, "head/image")
    description = Subscription(SceneDescription, "description")
    action = Publisher(Action, "action")

    @every(hz=20)
    def act(self) -> None:
        if self.image.latest() is not None and self.description.latest() is not None:
            self.action.publish(Action(id="a", skill="hold"))


def test_a_handler_that_takes_longer_than_its_topic_comes_hands_on_its_own_rate_and_the_wait() -> None:
    specs = [NodeSpec("eye", Eye), NodeSpec("slow", Slow, latency={"tell": Latency(0.5, 0.5)}), NodeSpec("late", Joins)]
    graph = Graph(specs)
    topics = ["head/image", "description", "action"]
    budgets = parse_budgets({"paths": {"p": {"topics": topics, "p99_s": 2.0}}}, graph)
    (found,) = accounts(budgets, graph, {})
    assert parts(found) == [("slow", 0.1), ("slow", 0.5), ("slow", 0.5)]


def test_the_oldest_counts_by_whichever_way_it_comes() -> None:
    specs = [NodeSpec("eye", Eye), NodeSpec("slow", Slow, latency={"tell": Latency(0.5, 0.5)}), NodeSpec("late", Joins)]
    graph = Graph(specs)
    budgets = parse_budgets({"paths": {"p": {"topics": ["head/image", "action"], "p99_s": 2.0}}}, graph)
    (found,) = accounts(budgets, graph, {})
    assert found.way == ("head/image", "description", "action")
    assert found.total_s == pytest.approx(1.1)


class Mirror(Node):
    """Hands its own output on to itself."""

    image = Subscription(Image, "head/image")
    description = Subscription(SceneDescription, "description")
    out = Publisher(SceneDescription, "description")

    @every(hz=5)
    def tell(self) -> None:
        if self.image.latest() is not None:
            self.description.latest()
            self.out.publish(SceneDescription(text="", subtask_id="", progress="idle"))


def test_what_goes_round_in_a_ring_has_no_oldest_age() -> None:
    graph = Graph([NodeSpec("eye", Eye), NodeSpec("mirror", Mirror)])
    budgets = parse_budgets({"paths": {"p": {"topics": ["head/image", "description"], "p99_s": 2.0}}}, graph)
    (found,) = accounts(budgets, graph, {})
    assert not found.is_bounded
    assert "and more as declared" in found.lines()[0]


def test_what_is_promised_is_not_more_than_what_is_said() -> None:
    assert [at_most(one) for one in (0.0, 0.1, 0.55, 0.38334, 1.0049, 12.341)] == [
        "0", "0.1", "0.55", "0.384", "1.01", "12.4",
    ]  # fmt: skip


def test_a_topic_that_nobody_publishes_has_no_path() -> None:
    graph = Graph([NodeSpec("hand", Hand)])
    budgets = parse_budgets({"paths": {"p": {"topics": ["head/image", "command"], "p99_s": 1.0}}}, graph)
    with pytest.raises(UserError, match="nobody publishes head/image"):
        accounts(budgets, graph, {})
    assert accounts(Budgets(), graph, {}) == []


def test_the_laptop_s_path_adds_up_within_its_budget_and_a_slow_camera_does_not(
    capsys: pytest.CaptureFixture[str],
) -> None:
    (found,) = path_accounts(load(find("laptop")))
    assert found.own_parts[0].node == "head_camera"
    assert found.own_s < found.budget.p99_s
    assert main(["check", "laptop"]) == 0
    assert "path eye_to_hand: head/image -> command -> robot/command; p99 within 0.25 s" in capsys.readouterr().out
    with pytest.raises(LaunchFileError, match=r"most of it is head_camera: head/image comes each 0\.374 s"):
        check(load(find("laptop"), ["head_camera.hz=3"]))
