"""People and animals are no target of a deed that touches, by whatever word, and where the eyes see them."""

from __future__ import annotations

import tomllib
from pathlib import Path

import msgspec
import numpy as np
import pytest

from nodes.interrupts.phrase_matcher import TABLE
from nodes.msgs import Action, Argument, RobotState, SeenObject, SeenPerson, SkillSpec, aimed_at
from nodes.perception.hands import skin_near
from nodes.perception.point_cloud import Shot
from nodes.policy import living
from nodes.policy.allowed import why_not
from nodes.policy.hand_over import HAND_OVER
from nodes.policy.living import is_living, names_living
from nodes.policy.skill_catalogue import SPECS, THING

TAKE = SkillSpec(name="take", sentence="Take what a hand holds out.", arguments=(THING,), risk="person")
SKILLS = {
    **SPECS,
    "hand_over": HAND_OVER.spec,
    "take": TAKE,
    "grab": SkillSpec(name="grab", sentence="Grab it.", arguments=(THING,)),
}
STATE = RobotState(
    read_ns=1, position=(0.0,) * 8, velocity=(0.0,) * 8, effort=(0.0,) * 8,
    base_x_m=0.0, base_y_m=0.0, base_heading_rad=0.0, base_v_mps=0.0, base_w_radps=0.0,
)  # fmt: skip


def thing(label: str, colour: str = "") -> SeenObject:
    return SeenObject(
        label=label, colour=colour, x_m=0.0, y_m=-0.6, z_m=0.7, width_m=0.1, height_m=0.1, u_px=0.0, v_px=0.0
    )


def refused(skill: str, target: SeenObject, people: tuple[SeenPerson, ...] = (), name: str = "thing") -> str:
    return why_not(Action(id="a", skill=skill, arguments=aimed_at(target, name)), STATE, SKILLS, people)


@pytest.mark.parametrize(
    "label",
    ["person", "hand", "face", "baby", "left hand", "a child on the chair", "hand of a child", "cat sleeping", "PERSON",
     "Kinderhand", "die Hand", "main gauche", "petit enfant", "la mano izquierda", "bambino", "mão", "dłoń", "een kind",
     "हाथ", "बच्चे का हाथ", "يد", "الطفل", "左手", "赤ちゃん", "黑猫", "宝宝", "cup (in fact a baby)", "guinea pig",
     "nurse", "hand 2", "person #3", "child1", "a pair of hands", "grupo de personas", "손", "고양이", "el",
     "bebeğin eli", "рука ребёнка", "человек", "perro", "chien", "gatto", "pies", "hond", "犬", "狗", "कुत्ता", "كلب",
     "Hund", "cachorro", "granny", "the neighbour", "my aunt", "tooth", "Nachbarin", "Tante", "Knöchel", "tía",
     "espalda", "grand-mère", "cheville", "zia", "caviglia", "tio", "tornozelo", "buurvrouw", "hiel", "ciocia", "plecy",
     "тётя", "спина", "teyze", "dudak", "奶奶", "下巴", "おばあちゃん", "背中", "딸", "발목",
     "नानी", "पीठ", "عمة", "ظهر"],
)  # fmt: skip
def test_whatever_lives_is_known_by_its_word_in_each_language_of_the_reflex(label: str) -> None:
    assert names_living(label)
    for skill in ("pick", "place", "grab", "take"):
        name = "place" if skill == "place" else "thing"
        assert refused(skill, thing(label), name=name), (skill, label)
    assert refused("pick", thing("thing", label))


@pytest.mark.parametrize(
    "label",
    ["cup", "red cup", "hand towel", "baby bottle", "dog bowl", "biberon de bébé", "sac à main", "teddy bear", "knife",
     "laptop", "vase", "armchair", "Handtuch", "机器人", "取っ手", "bottle of beer", "orange",
     "pair of scissors", "table leg", "sèche-cheveux", "컵", "cup 2", "toothbrush", "Zahnbürste", "Tassenhenkel",
     "laptop stand", "rouge à lèvres", "cuisse de poulet", "歯ブラシ", "딸기", "牙刷", "filo", "tongs", "mouse"],
)  # fmt: skip
def test_a_thing_that_is_called_after_somebody_is_a_thing(label: str) -> None:
    assert not is_living(thing(label))


def test_each_language_of_the_reflex_has_words_of_each_kind() -> None:
    table = tomllib.loads(Path(living.__file__).with_name("living.toml").read_text("utf-8"))
    tables = tomllib.loads(TABLE.read_text("utf-8"))
    languages = {*tables["stop"], *tables["stop_end"], *tables["stop_between"]}
    for kind in ("person", "part", "animal"):
        assert set(table[kind]) == languages


def test_a_hand_is_looked_at_and_pointed_at_and_given_to_and_taken_from() -> None:
    hand, person = thing("hand"), SeenPerson(id="p", x_m=0.0, y_m=-1.2, hand_m=(0.0, -0.6, 0.7))
    assert not refused("look", hand)
    assert not refused("point", hand)
    assert not refused("hand_over", hand, (person,), "person")
    assert not refused("take", thing("cup"), (person,)), "what a hand holds out"
    assert refused("take", hand, (person,)), "and not the hand"


def test_what_the_eyes_see_to_be_a_hand_is_none_whatever_the_model_calls_it() -> None:
    away = SeenPerson(id="p", x_m=0.0, y_m=-1.2, hand_m=(0.3, -0.6, 0.7))
    there = msgspec.structs.replace(away, hand_m=(0.05, -0.62, 0.72))  # type: ignore[type-var]  # a Struct
    body = SeenPerson(id="p", x_m=0.1, y_m=-0.6)
    assert not refused("pick", thing("cup"), (away,))
    for one in (there, body):
        for skill in ("pick", "grab"):
            assert refused(skill, thing("cup"), (one,)), "one of no declared risk, too"
    assert not refused("point", thing("cup"), (there,))


def test_words_that_a_policy_follows_name_nobody_either() -> None:
    told = Action(id="a", skill="pick", arguments=aimed_at(thing("cup")), text="pick up the baby")
    assert why_not(told, STATE, SKILLS)
    told = Action(id="a", skill="pick", arguments=(Argument(name="thing", thing=thing("cup")),), text="pick up the cup")
    assert not why_not(told, STATE, SKILLS)


@pytest.mark.parametrize(("rgb", "is_skin"), [((222, 168, 138), True), ((200, 20, 20), False), ((90, 66, 52), True)])
def test_skin_is_seen_where_it_is_and_not_elsewhere(rgb: tuple[int, int, int], is_skin: bool) -> None:
    picture = np.full((60, 80, 3), 255, np.uint8)
    picture[20:40, 30:50] = rgb
    depth = np.full((60, 80), 1.0, np.float32)
    look = np.eye(3), np.zeros(3)
    assert skin_near(picture, Shot(depth, 80.0, *look), (0.0, 0.0), (0.5, 1.5)) is is_skin
    assert not skin_near(picture, Shot(depth, 80.0, *look), (0.6, 0.0), (0.5, 1.5))
    assert not skin_near(picture, Shot(depth, 80.0, *look), (0.0, 0.0), (1.2, 1.5))
