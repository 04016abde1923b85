"""The policy that ships as a file: what it is, what it can, and that its lessons are the same each time."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest

from examples.train_policy.lessons import teach
from nodes.guard.node import Guard
from nodes.msgs import Action, Feedback, SeenObject, aimed_at
from nodes.policy.onnx.policy import OnnxPolicy, shipped
from nodes.sim.driver import SimDriver
from nodes.sim.messages import ObjectTruth, Truth
from nodes.sim.world.table_scene import BIN_XY_M, BIN_Z_M, SIZES_M
from runtime import Simulation
from tests.support.models.model_files import linear_model, write_model

PAGE = Path(__file__).resolve().parents[4] / "docs" / "learned-policy.md"
SEED = 3


class Kitchen:
    """The simulated robot beside its table, with the learned policy and the guard; nobody looks."""

    def __init__(self, model: str = "clear-table") -> None:
        self.sim = Simulation(
            SimDriver(robot_params={"seed": SEED}), Guard(arm="auto"), OnnxPolicy(model), seed=SEED
        )  # fmt: skip
        self.feedback: list[Feedback] = self.sim.record(OnnxPolicy.feedback)
        self.truths: list[Truth] = self.sim.record(SimDriver.truth)
        self.sim.run(seconds=0.5)

    def thing(self, name: str) -> ObjectTruth:
        return next(thing for thing in self.truths[-1].objects if thing.name == name)

    def act(self, skill: str, target: SeenObject | None = None) -> Feedback:
        ident = f"a{len(self.feedback)}"  # no two alike
        self.sim.publish(
            "action",
            Action(id=ident, skill=skill, arguments=aimed_at(target, "place" if skill == "place" else "thing")),
        )

        def is_over() -> bool:
            return any(told.action_id == ident and told.status != "running" for told in self.feedback)

        self.sim.run(seconds=40.0, until=is_over)
        return self.feedback[-1]


def seen(thing: ObjectTruth) -> SeenObject:
    width, height = SIZES_M[thing.name]
    return SeenObject(
        label=thing.label, colour=thing.colour, x_m=thing.x_m, y_m=thing.y_m, z_m=thing.z_m,
        width_m=width, height_m=height, u_px=0.0, v_px=0.0,
    )  # fmt: skip


BIN = SeenObject(
    label="bin", colour="teal", x_m=BIN_XY_M[0], y_m=BIN_XY_M[1], z_m=sum(BIN_Z_M) / 2,
    width_m=0.26, height_m=BIN_Z_M[1] - BIN_Z_M[0], u_px=0.0, v_px=0.0,
)  # fmt: skip


@pytest.mark.long
def test_it_picks_the_cup_that_it_is_told_to_and_puts_it_in_the_bin() -> None:
    kitchen = Kitchen()
    before = {thing.name: thing for thing in kitchen.truths[-1].objects}
    picked = kitchen.act("pick", seen(kitchen.thing("white_cup")))
    assert picked.status == "success", picked.why
    assert kitchen.thing("white_cup").z_m > before["white_cup"].z_m + 0.03
    placed = kitchen.act("place", BIN)
    assert placed.status == "success", placed.why
    kitchen.sim.run(seconds=1.0)
    assert kitchen.thing("white_cup").is_in_bin
    others = [thing for thing in kitchen.truths[-1].objects if thing.name != "white_cup"]
    assert not any(thing.is_in_bin for thing in others)
    kitchen.sim.close()


def test_what_it_has_not_learned_it_says_each_time() -> None:
    kitchen = Kitchen()
    for _ in range(2):
        told = kitchen.act("nod")
        assert told.status == "failure"
        assert told.why == "clear-table has not learned to nod; it knows look, pick, place"
    kitchen.sim.close()


def test_a_model_that_does_not_say_what_it_has_learned_is_asked_for_all(tmp_path: Path) -> None:
    kitchen = Kitchen(write_model(tmp_path, linear_model({"joints": (1, 8), "skill": (1, 7)})))
    kitchen.sim.publish("action", Action(id="a", skill="nod"))
    kitchen.sim.run(seconds=1.0)
    assert [told.status for told in kitchen.feedback] == ["running"]
    kitchen.sim.close()


def test_its_file_is_the_one_that_the_page_measured() -> None:
    data = shipped()["clear-table"].read_bytes()
    assert hashlib.sha256(data).hexdigest() in PAGE.read_text()
    assert len(data) < 300_000
    assert OnnxPolicy("clear-table").problems() == []


def test_a_model_of_another_name_is_looked_for_as_a_file() -> None:
    assert OnnxPolicy("clear-tables").problems() == ["model 'clear-tables' does not exist"]


@pytest.mark.parametrize("model", [None, "clear-table"])
def test_lessons_of_a_seed_are_the_same_each_time(model: str | None) -> None:
    data = shipped()[model].read_bytes() if model else None
    one, two = (teach([77], 12.0, data, 1.0 if model else 0.0) for _ in range(2))
    assert np.array_equal(one.felt, two.felt)
    assert np.array_equal(one.wanted, two.wanted)
    assert one.outcomes == two.outcomes
    assert len(one.felt) > 200


def test_another_seed_gives_other_lessons() -> None:
    one, two = (teach([seed], 6.0).felt[:50] for seed in (77, 78))
    assert one.shape == two.shape == (50, one.shape[1])
    assert (one != two).any()
