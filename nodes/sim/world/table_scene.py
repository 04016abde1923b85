"""The demo's table in numbers, for those who draw lessons from it or measure at it: `worlds/table.toml` has them."""

from __future__ import annotations

from nodes.sim.world.scenario import DEMO, layout_of, world_of
from nodes.sim.world.world_file import Thing

_TABLE, _BIN = (world_of(DEMO).places[name] for name in ("table", "bin"))
TABLE_HEIGHT_M = _TABLE.z_m
TABLE_X_M, TABLE_Y_M = _TABLE.x_m, _TABLE.y_m
BIN_XY_M, BIN_Z_M = _BIN.centre_m, (_BIN.floor_z_m, _BIN.z_m)
"""The middle of the bin; its floor (on its stand) and its rim."""
is_in_bin = _BIN.contains
SIZES_M = {one.thing.name: (one.thing.width_m, one.thing.height_m) for one in layout_of(DEMO).things}
"""Width and height of each thing, by its name."""


def lay_table(seed: int, things: str = "") -> tuple[Thing, ...]:
    """The things and where they stand, by the seed; `things`: with these alone."""
    return tuple(one.thing for one in layout_of(DEMO, seed, things).things)
