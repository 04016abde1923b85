"""What the page tells of the scene: how things stand, their state, and what people do."""

from __future__ import annotations

from bridges.web.console.feed import scene_sentences
from nodes.msgs import Relation, Scene, SeenObject, SeenPerson


def thing(ident: str, label: str, colour: str = "", **more: object) -> SeenObject:
    return SeenObject(
        id=ident, label=label, colour=colour, x_m=0.0, y_m=0.0, z_m=0.0, width_m=0.1, height_m=0.1, u_px=0.0, v_px=0.0,
        **more,  # type: ignore[arg-type]  # of the test's own
    )  # fmt: skip


def test_relations_states_owners_and_people_are_sentences() -> None:
    scene = Scene(
        things=(
            thing("cup-1", "cup", "red", state=("half full",), owner="Ana"),
            thing("cup-2", "cup", "blue"),
            thing("table", "table", is_place=True),
        ),
        relations=(
            Relation(subject="cup-1", relation="on", object="table"),
            Relation(subject="cup-1", relation="beside", object="cup-2"),
            Relation(subject="cup-2", relation="held by", object="robot"),
        ),
        people=(
            SeenPerson(id="Ana", x_m=1.0, y_m=0.0, points_at="cup-1", looks_at="cup-9"),
            SeenPerson(id="Ben", x_m=0.0, y_m=1.0),
        ),
    )
    assert scene_sentences(scene) == [
        "red cup on table (half full, of Ana)",
        "blue cup held by robot",
        "Ana points at the red cup and looks at the cup-9",
        "Ben is there",
    ]
