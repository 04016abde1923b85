"""The skill of docs/skills.md works as the page says; wrong declarations are told; limits stand above declarations."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from nodes.msgs import (
    Action,
    Argument,
    Feedback,
    JointCommand,
    RobotState,
    Scene,
    SeenObject,
    SkillArgument,
    SkillCatalogue,
    SkillSpec,
    aimed_at,
)
from nodes.planner.orders import Surroundings
from nodes.planner.talk.dialogue import Dialogue
from nodes.policy.allowed import why_not
from nodes.policy.confirmations import Confirmations
from nodes.policy.expert import ExpertPolicy
from nodes.policy.skill_catalogue import SPECS, PolicySkill, load_skills, problems_of
from runtime import Simulation
from runtime.errors import ParameterError, UserError
from runtime.launch.file import check, find, load
from runtime.launch.graph import NodeSpec
from tests.nodes.planner.heard import hear
from tests.support.robots.still_robot import StillRobot
from tests.support.sentences import pattern, sentence

PAGE = Path(__file__).parents[3] / "docs" / "skills.md"
STATE = RobotState(
    read_ns=1, position=(0.0,) * 8, velocity=(0.0,) * 8, effort=(0.0,) * 8, base_x_m=0.0, base_y_m=0.0,
    base_heading_rad=0.0, base_v_mps=0.0, base_w_radps=0.0,
)  # fmt: skip


@pytest.fixture
def _bow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page's module, importable as `bow`."""
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.S)
    (tmp_path / "bow.py").write_text(code, "utf-8")
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.usefixtures("_bow")
def test_the_skill_of_the_page_is_announced_understood_and_taken_on() -> None:
    sim = Simulation(StillRobot(), NodeSpec("policy", ExpertPolicy, params={"sees": False, "skills": ("bow:SKILL",)}))
    told: list[SkillCatalogue] = sim.record_topic("skills", SkillCatalogue)
    feedback: list[Feedback] = sim.record_topic("feedback", Feedback)
    commands: list[JointCommand] = sim.record_topic("command", JointCommand)
    sim.run(seconds=1.5)
    assert [spec.name for spec in told[-1].skills] == [*SPECS, "bow"]
    plan, reply = hear(Dialogue(), "Please take a bow.", Surroundings(Scene(), told[-1].skills))
    assert reply == "Sure. I will bow."
    assert plan.subtask is not None
    sim.publish("action", Action(id="1", skill=plan.subtask.skill))
    sim.run(seconds=1.0)
    assert feedback[0].status == "running"
    assert feedback[0].why == "bowing"
    assert len({command.position[:6] for command in commands}) == 1  # "still": only the head


def wrong(**fields: object) -> list[str]:
    spec: SkillSpec = msgspec.structs.replace(SPECS["nod"], **fields)  # type: ignore[type-var]  # a Struct
    return problems_of(spec)


def test_a_wrong_declaration_is_told_in_sentences() -> None:
    assert wrong(name="Rm -rf") == [sentence("policy.wrong_name", name="Rm -rf")]
    assert wrong(sentence="x" * 10_000) == [sentence("policy.wrong_sentence", number=10000)]
    number = SkillArgument(name="speed", type="number", lowest=2.0, highest=1.0)
    assert wrong(arguments=(number,)) == ["argument 'speed': lowest is 2, above highest, 1"]
    assert wrong(usual_s=float("nan")) == [sentence("policy.wrong_usual", value="nan")]


@pytest.mark.usefixtures("_bow")
@pytest.mark.parametrize(
    ("names", "told"),
    [
        (("bow:SKILL", "bow:SKILL"), sentence("policy.declared_already", name="bow")),
        (("bow:NOTHING",), sentence("policy.not_found", name="bow:NOTHING")),
        (("nowhere:SKILL",), "expected module:NAME"),
        (("bow:BOW",), sentence("policy.no_policy_skill", type="tuple")),
    ],
)
def test_a_skill_that_cannot_be_had_is_told(names: tuple[str, ...], told: str) -> None:
    with pytest.raises(ParameterError, match=re.escape(told)):
        load_skills(names, SPECS)


def test_two_nodes_that_announce_skills_are_refused_before_anything_starts(tmp_path: Path) -> None:
    file = tmp_path / "two.toml"
    rival = '\n[nodes.rival]\nuse = "nodes.policy.expert:ExpertPolicy"\n'
    file.write_text(find("laptop").read_text("utf-8") + rival, "utf-8")
    with pytest.raises(UserError) as told:
        check(load(file))
    assert sentence("runtime.neither_holder_nor_shadow", node="rival") in str(told.value)


def test_an_undo_that_nobody_declares_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    spec: SkillSpec = msgspec.structs.replace(SPECS["nod"], name="bow", undo="unbow")  # type: ignore[type-var]  # a Struct
    monkeypatch.setitem(sys.modules, "any", cast(Any, SimpleNamespace(SKILL=PolicySkill(spec, lambda *_: ""))))
    with pytest.raises(ParameterError, match=pattern("policy.nobody_declares", skill="unbow")):
        load_skills(("any:SKILL",), SPECS)


def cup(**more: object) -> SeenObject:
    seen = {"label": "cup", "colour": "red", "x_m": 0.0, "y_m": -0.6, "z_m": 0.6, "width_m": 0.08, "height_m": 0.1}
    return msgspec.convert({**seen, "u_px": 0.0, "v_px": 0.0, **more}, SeenObject)


def test_a_skill_that_declares_no_risk_is_limited_like_the_riskiest() -> None:
    dash = SkillSpec(name="dash", sentence="Dash at it.", arguments=(SkillArgument(name="thing", type="thing"),))
    far = Action(id="1", skill="dash", arguments=aimed_at(cup(x_m=2.0)))
    assert "goes 1.5 m at most" in why_not(far, STATE, {"dash": dash})
    near = Action(id="1", skill="dash", arguments=aimed_at(cup()))
    assert why_not(near, STATE, {"dash": dash}) == ""
    assert Confirmations().question(near, {"dash": dash}, 0) == "Shall I dash the red cup? Please answer."


def test_any_noun_may_be_picked_as_far_as_it_has_the_shape_of_a_thing() -> None:
    assert why_not(Action(id="1", skill="pick", arguments=aimed_at(cup(label="avocado"))), STATE, SPECS) == ""
    assert "m large" in why_not(Action(id="1", skill="pick", arguments=aimed_at(cup(height_m=1.7))), STATE, SPECS)
    long = aimed_at(cup(label="c" * 10_000))
    assert "label of 10000" in why_not(Action(id="1", skill="pick", arguments=long), STATE, SPECS)


def test_arguments_are_checked_by_their_declaration() -> None:
    turn = SkillSpec(
        name="turn", sentence="Turn.", risk="still",
        arguments=(SkillArgument(name="angle_rad", type="number", lowest=-1.0, highest=1.0),),
    )  # fmt: skip
    skills = {"turn": turn}

    def asked(*arguments: Argument) -> str:
        return why_not(Action(id="1", skill="turn", arguments=arguments), STATE, skills)

    assert asked() == "a turn needs a angle_rad"
    assert asked(Argument(name="angle_rad", number=0.5)) == ""
    assert asked(Argument(name="angle_rad", number=9.0)) == "turn's angle_rad is 9; expected -1 to 1"
    assert asked(Argument(name="angle_rad", number=float("nan"))) == "turn's angle_rad is no finite number"
    assert asked(Argument(name="speed", number=1.0)) == "turn has no argument 'speed'; arguments: angle_rad"


def test_the_surroundings_know_which_skills_are_about_nothing() -> None:
    around = replace(Surroundings(), skills=tuple(SPECS.values()))
    assert {"nod", "shake", "hold"} <= around.world.aimless
