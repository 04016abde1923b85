"""What a model planner is told of people, things and what was done; and when that is news."""

from __future__ import annotations

import subprocess
import sys

import msgspec
import numpy as np

from nodes.msgs import Image, Reference, Relation, Scene, SceneDescription, SeenObject, SeenPerson, Subtask, Utterance
from nodes.perception.marked_image import marked
from nodes.planner.model_prompt import LONGEST_HISTORY, History, news
from nodes.planner.scene_text import report_text
from tests.nodes.planner.test_rules import thing
from tests.support.sentences import sentence

NEAR = msgspec.structs.replace(thing("cup-1", "red"), x_m=1.0, y_m=0.0, u_px=212.0, v_px=180.4)  # type: ignore[type-var]  # a Struct, but not to type checkers
FAR = msgspec.structs.replace(thing("cup-2", "blue"), x_m=3.0, y_m=0.0)  # type: ignore[type-var]  # the same
ANN = SeenPerson(id="ann", x_m=9.0, y_m=0.0, hand_m=(1.0, 0.5, 0.8), hand="point", points_at="cup-2", gesture="nod")


def told(*things: SeenObject, people: tuple[SeenPerson, ...] = (), progress: str = "idle") -> list[str]:
    on = tuple(Relation(subject=one.id, relation="on", object="table") for one in things)
    description = msgspec.convert({"text": "x", "subtask_id": "", "progress": progress}, SceneDescription)
    return report_text(None, description, Scene(things=things, relations=on, people=people)).split("\n")


def test_each_thing_is_told_with_its_size_and_its_place_in_the_image() -> None:
    (line,) = [one for one in told(NEAR) if "cup-1" in one]
    size = {"width": round(100 * NEAR.width_m), "height": round(100 * NEAR.height_m)}
    assert sentence("planner.sized", **size) in line
    assert sentence("planner.in_the_image", u=212, v=180) in line
    assert '"table"' in line


def test_a_person_is_told_by_what_they_do_and_what_is_nearest_to_their_hand() -> None:
    (line,) = [one for one in told(NEAR, FAR, people=(ANN,)) if one.startswith("- person")]
    assert line == sentence("planner.person", person="ann", thing="cup-2", first="cup-1", second="cup-2")


def test_nothing_seen_yet_is_not_told_as_nothing_there() -> None:
    assert told()[-1] == sentence("planner.nothing_seen_yet")


def test_somebody_who_points_is_news_and_somebody_who_stands_there_is_none() -> None:
    quiet = SeenPerson(id="ben", x_m=1.0, y_m=0.0)
    assert news(History(), None, Scene(people=(quiet,))) == news(History(), None, None)
    assert news(History(), None, Scene(people=(quiet, ANN))) != news(History(), None, Scene(people=(quiet,)))


def test_left_and_right_are_told_as_the_person_sees_them() -> None:
    across = SeenPerson(id="ann", x_m=2.0, y_m=-2.0)
    (line,) = [one for one in told(NEAR, FAR, people=(across,)) if one.startswith("- person")]
    assert line.endswith(sentence("planner.row", first="cup-1", second="cup-2"))
    behind = SeenPerson(id="ann", x_m=2.0, y_m=2.0)
    (line,) = [one for one in told(NEAR, FAR, people=(behind,)) if one.startswith("- person")]
    assert line.endswith(sentence("planner.row", first="cup-2", second="cup-1"))


def test_a_place_is_told_with_what_stands_on_it_and_a_machine_with_what_it_does() -> None:
    table = SeenObject(
        id="table", label="table", colour="", x_m=0.0, y_m=0.0, z_m=0.5, width_m=0.0, height_m=0.0, u_px=0.0, v_px=0.0,
        is_place=True, does="washes what is put in",
    )  # fmt: skip
    scene = Scene(things=(table, NEAR), relations=(Relation(subject="cup-1", relation="on", object="table"),))
    text = report_text(None, None, scene)
    assert sentence("planner.on_the_place") in text
    assert sentence("planner.machine") in text


def test_until_the_robot_has_looked_nothing_is_said_to_be_missing() -> None:
    assert sentence("planner.not_looked") in report_text(None, None, None)
    assert sentence("planner.not_looked") in report_text(None, None, Scene(is_looked=False))
    assert news(History(), None, Scene(is_looked=False)) != news(History(), None, Scene())


def test_what_was_measured_is_told_beside_what_the_vision_model_says() -> None:
    description = SceneDescription(
        text="x", subtask_id="p-1", progress="failed", did=("picking up the red cup",), wanted=3,
        moved=(Reference(label="cup", colour="red"),), gone=(Reference(label="cup", colour="blue"),),
        tried=("green cup, 2 times: it slips",),
    )  # fmt: skip
    text = report_text(Subtask(id="p-1", text="x", state="work"), description, None, {"mug": "sink"})
    told = (
        sentence("planner.moved_some"),
        sentence("planner.not_found"),
        sentence("planner.tried_in_vain"),
        sentence("planner.taught"),
    )
    assert [one for one in told if one not in text] == []
    idle = msgspec.structs.replace(description, did=())  # type: ignore[type-var]  # a Struct
    assert sentence("planner.done_nothing") in report_text(None, idle)
    ended = {"failed": sentence("planner.failed_so"), "finished": sentence("planner.ended_so")}
    for progress, line in ended.items():
        assert line in report_text(None, msgspec.structs.replace(description, progress=progress, why="it slips"))  # type: ignore[type-var]  # a Struct


def test_a_long_history_is_told_as_a_summary_and_its_last_lines() -> None:
    history = History()
    for number in range(LONGEST_HISTORY + 5):
        history.heard(Utterance(speaker="Ana", text=f"line {number}"))
    lines = history.text().split("\n")
    assert lines[0].startswith(sentence("planner.summed"))
    assert "line 0" in lines[0]
    assert len(lines) == LONGEST_HISTORY + 1
    assert history.summed == 5


def test_ids_stand_in_the_image_that_the_scene_tells_of_even_where_a_newer_one_is_there() -> None:
    image = Image(camera="head", captured_ns=10**9, rgb=np.zeros((240, 320, 3), np.uint8))
    scene = Scene(things=(NEAR,), image_ns=10**9)
    newer = Image(camera="head", captured_ns=4 * 10**9, rgb=image.rgb)
    drawn, shown = marked(newer, (image, newer), scene)
    assert drawn is not None
    assert drawn.captured_ns == scene.image_ns
    assert drawn.rgb.shape == (480, 640, 3)
    assert drawn.rgb[340:370, 420:500].any()
    assert not drawn.rgb[:300].any()
    assert shown.things[0].u_px == 2 * NEAR.u_px
    plain, unplaced = marked(newer, (newer,), scene)
    assert plain is newer
    assert unplaced.things[0].u_px == 0.0


def test_planners_and_vlms_on_a_model_load_none_of_the_grammar() -> None:
    models = ("planner.openai_api", "planner.realtime_api", "vlm.openai_api", "vlm.onnx.vlm", "vlm.detector.vlm")
    nodes = (*models, "vlm.room.vlm")
    made = "from nodes.vlm.openai_api import OpenAIVLM as V; V(model='m', base_url='http://127.0.0.1:9/v1')"
    grammar = {
        f"nodes.planner.{one}"
        for one in ("lexicon", "parser", "understanding", "verbs", "spelled", "languages", "referents")
    }
    code = f"import sys, nodes.{', nodes.'.join(nodes)}\n{made}\nsys.exit(len({grammar} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
