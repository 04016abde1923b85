"""What a model planner is told of people, things and what was done; and when that is news."""

from __future__ import annotations

import msgspec

from nodes.planner.model_prompt import History, news, report_text
from runtime.msgs import Relation, Scene, SceneDescription, SeenObject, SeenPerson
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
