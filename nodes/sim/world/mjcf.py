"""A Stretch in a world, as one MJCF text: `stretch.xml` is the robot, and what it needs besides of the things there."""

from __future__ import annotations

from nodes.sim.messages import Truth
from nodes.sim.world.room_mjcf import build_room, model_file, texts_of
from nodes.sim.world.world_file import Layout

BASE_JOINTS = ("base_x", "base_y", "base_yaw")
HIDDEN_GROUP = {"head": 2, "wrist": 3, "room": 5}
"""The geom group that a camera does not see: its own housing (nothing is in group 5)."""


def build_stretch(layout: Layout, shown: Truth | None = None) -> str:
    """The robot in a world; `shown`: as a camera sees that then."""
    tables = {table.tag: texts_of(table) for table in model_file("stretch.xml")}
    hands = {"hold": "wrist_roll"} | ({"give": "hand"} if "hand" in layout.world.person else {})
    # Off until both fingers press on the thing, or it lies in a person's hand (see grip.py and hand_over.py).
    welds = [
        f'<weld name="{name}_{one.thing.name}" body1="{hand}" body2="{one.thing.name}" active="false" solref="0.01 1"/>'
        for name, hand in hands.items()
        for one in layout.things
    ]
    equality = f"<equality>{tables['equality']}{''.join(welds)}</equality>"
    beside = f"{equality}<actuator>{tables['actuator']}</actuator>"
    return build_room(layout, shown, robot=tables["worldbody"], beside=beside)
