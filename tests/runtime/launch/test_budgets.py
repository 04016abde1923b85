"""Budgets of a launch file: read with words for every mistake, measured where a path ends, shown in top and summary."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nodes.msgs import Image, JointCommand, SceneDescription, Utterance
from nodes.terminal.top_rows import is_kept, path_line, spending_line
from runtime import Node, Publisher, Simulation, Subscription, every, on
from runtime.coordination.health import Health, Spending
from runtime.errors import LaunchFileError, UserError
from runtime.execution.path_meter import PathMeter
from runtime.launch.file import find, load
from runtime.launch.graph import Graph, NodeSpec
from runtime.launch.tables.budgets_table import Budgets, PathBudget, parse_budgets
from runtime.message import UNKNOWN_NS, Envelope
from tests.support.sentences import sentence


class Eye(Node):
    """A picture ten times a second."""

    image = Publisher(Image, "head/image")

    @every(hz=10)
    def look(self) -> None:
        self.image.publish(Image(camera="head", captured_ns=self.clock.now_ns(), rgb=np.zeros((2, 2, 3), np.uint8)))


class Hand(Node):
    """Moves by what it saw last, forty times a second."""

    image = Subscription(Image, "head/image")
    command = Publisher(JointCommand, "command")

    @every(hz=40)
    def move(self) -> None:
        if self.image.latest() is not None:
            self.command.publish(JointCommand(position=(0.0,) * 8))


class Teller(Node):
    """Says what it hears."""

    heard = Subscription(Utterance, "heard")
    description = Publisher(SceneDescription, "description")

    @on(heard)
    def tell(self, utterance: Utterance) -> None:
        self.description.publish(SceneDescription(text=utterance.text, subtask_id="", progress="idle"))


GRAPH = Graph([NodeSpec("eye", Eye), NodeSpec("hand", Hand), NodeSpec("teller", Teller)])
PATH = {"topics": ["head/image", "command"], "p99_s": 0.1}

MISTAKES: dict[str, Any] = {
    "[budgets] is 3; expected a table [budgets] with models, paths, run": 3,
    "[budgets] has the unknown key 'path'; did you mean 'paths'? known: models, paths, run": {"path": {}},
    "[budgets.paths] is 3; expected tables like [budgets.paths.NAME]": {"paths": 3},
    f"[budgets.paths.p] topics is ['command']; {sentence('runtime.two_topics_expected')}": {
        "paths": {"p": {**PATH, "topics": ["command"]}}
    },
    f"[budgets.paths.p] p99_s is 0; {sentence('runtime.positive_seconds')}": {"paths": {"p": {**PATH, "p99_s": 0}}},
    "[budgets.paths.p] has the unknown key 'p99_ms'; did you mean 'p99_s'? known: p99_s, topics": {
        "paths": {"p": {**PATH, "p99_ms": 1}}
    },
    "[budgets.paths.p] has the unknown key 'origin'; known: p99_s, topics": {
        "paths": {"p": {**PATH, "origin": "plan"}}
    },
    "[budgets.paths.p] there is no topic 'eye'; topics: command, description, head/image, heard": {
        "paths": {"p": {**PATH, "topics": ["eye", "command"]}}
    },
    "[budgets.paths.p] "
    + sentence("runtime.begins_no_path", topic="description", message="SceneDescription", topics="head/image, heard"): {
        "paths": {"p": {**PATH, "topics": ["description", "command"]}}
    },
    "[budgets.models.m] there is no node 'm'; nodes: eye, hand, teller": {"models": {"m": {"calls": 1}}},
    "[budgets.models.eye] has the unknown key 'cals'; did you mean 'calls'? known: calls, input_price, money, "
    "output_price, tokens": {"models": {"eye": {"cals": 1}}},
    "[budgets.run] has the unknown key 'input_price'; known: calls, money, tokens": {"run": {"input_price": 1.0}},
    f"[budgets.models.eye] calls is -1; {sentence('runtime.no_limit_or_more')}": {"models": {"eye": {"calls": -1}}},
    f"[budgets.models.eye] {sentence('runtime.limits_nothing')}": {"models": {"eye": {"input_price": 1.0}}},
    f"[budgets.models.eye] {sentence('runtime.nothing_has_a_price')}": {"models": {"eye": {"money": 1.0}}},
}


@pytest.mark.parametrize("words", MISTAKES)
def test_every_mistake_is_a_sentence(words: str) -> None:
    with pytest.raises(UserError) as told:
        parse_budgets(MISTAKES[words], GRAPH)
    assert str(told.value) == words


def test_budgets_survive_their_way_to_the_nodes() -> None:
    budgets = parse_budgets({"paths": {"p": PATH}, "models": {"eye": {"calls": 7}}}, GRAPH)
    assert budgets.paths["p"] == PathBudget(("head/image", "command"), 0.1, "image")
    assert Budgets.of({"budgets": budgets.as_data()}) == budgets
    assert Budgets.of({}) == Budgets()


def test_a_launch_file_with_a_mistake_in_its_budgets_names_itself(tmp_path: Path) -> None:
    file = tmp_path / "g.toml"
    file.write_text('[nodes.talker]\nuse = "nodes.hello:Talker"\n[budgets.models.tolker]\ncalls = 1\n')
    with pytest.raises(LaunchFileError, match=r"g\.toml: \[budgets\.models\.tolker\] there is no node 'tolker'"):
        load(file)


def test_budgets_can_be_set_from_the_command_line() -> None:
    launch = load(find("laptop"), ["budgets.models.planner.calls=3", "budgets.paths.eye_to_hand.p99_s=0.2"])
    assert launch.budgets.models["planner"].calls == 3
    assert launch.budgets.paths["eye_to_hand"].p99_s == 0.2


def measured(p99_s: float, seconds: float = 2.0) -> Health:
    """The newest health of the hand after a while in virtual time."""
    found: dict[str, Health] = {}
    paths = {"sight": PathBudget(("head/image", "command"), p99_s)}
    sim = Simulation(Eye(), Hand(), health_hz=1.0, budgets=Budgets(paths=paths))
    sim.observe(lambda stamped: found.update({stamped.envelope.source: stamped.message}) if isinstance(
        stamped.message, Health) else None)  # fmt: skip
    sim.run(seconds=seconds)
    assert found["eye"].paths == ()
    return found["hand"]


def test_a_path_is_measured_where_it_ends_by_the_age_of_the_image_behind() -> None:
    (path,) = measured(p99_s=0.08).paths
    assert (path.name, path.p99_budget_ms, path.over) == ("sight", 80.0, 0)
    assert path.count >= 30
    assert path.max_ms == pytest.approx(75.0)  # a tenth of a second, less one tick of the hand
    assert is_kept(path)
    assert path_line(path).endswith(f"0 of {path.count} over it: met")


def test_a_path_that_takes_too_long_is_told_with_how_often() -> None:
    (path,) = measured(p99_s=0.06).paths
    assert 0.2 < path.over / path.count < 0.3  # one tick in four comes 75 ms after the image
    assert not is_kept(path)
    assert "NOT MET" in path_line(path)


def test_a_hundredth_of_the_messages_may_be_older() -> None:
    meter = PathMeter("p", PathBudget(("head/image", "command"), 0.1))
    for number in range(200):
        age_ns = 150_000_000 if number in (0, 1) else 50_000_000
        meter.add(Envelope("command", "hand", number, 10**9, origins={"image": 10**9 - age_ns}))
    assert is_kept(meter.health())
    meter.add(Envelope("command", "hand", 200, 10**9, origins={"image": 1}))
    assert not is_kept(meter.health())


@pytest.mark.parametrize("origin", ["image", "utterance", "plan", "lidar"])
def test_each_origin_is_measured_by_its_own_stamp_and_nothing_behind_is_no_age(origin: str) -> None:
    meter = PathMeter("p", PathBudget(("a", "b"), 0.1, origin))
    meter.add(Envelope("b", "n", 1, 10**9))
    assert meter.health().count == 0
    assert path_line(meter.health()) == f"{sentence('runtime.nothing_measured', path='p', ms=100)}: NOT MET"
    assert not is_kept(meter.health())
    meter.add(Envelope("b", "n", 1, 10**9, origins={origin: UNKNOWN_NS}))
    assert path_line(meter.health()).endswith(f"{sentence('runtime.unknown_age', number=1)}: NOT MET")
    meter.add(Envelope("b", "n", 2, 10**9, origins={origin: 10**9 - 20_000_000}))
    assert (meter.health().count, meter.health().max_ms) == (1, 20.0)


def test_what_was_spent_is_told_with_its_limits_and_what_is_only_estimated() -> None:
    spending = Spending(
        model="m", calls=3, prompt_tokens=1200, completion_tokens=30, estimated_tokens=10, money=0.5, max_calls=3,
        max_money=2.0, spent="the budget of 3 calls is spent",
    )  # fmt: skip
    assert spending_line("planner", spending) == (
        "model planner (m): 3 of 3 calls, 1,230 tokens (1,200 in, 30 out, 10 of them estimated), "
        "0.5000 of 2 of money; SPENT: the budget of 3 calls is spent"
    )
    assert spending_line("planner", Spending(model="m")).endswith("0 calls, 0 tokens (0 in, 0 out); within it")
