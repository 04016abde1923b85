"""Claims about where in a sink a thing is rinsed."""

from __future__ import annotations

from nodes.msgs import SeenObject
from nodes.policy.room_policy import ABOVE_FLOOR_M, rinse_spot
from nodes.sim.world.world_file import load_world

SINK = load_world("kitchen").places["sink"]


def test_an_empty_sink_is_rinsed_in_at_its_middle_and_deep() -> None:
    assert rinse_spot(SINK, ()) == (*SINK.centre_m, SINK.floor_z_m + ABOVE_FLOOR_M)


def test_what_is_rinsed_keeps_off_what_lies_in_the_sink_and_stays_below_its_rim() -> None:
    x, y = SINK.centre_m
    sponge = SeenObject(
        id="sponge-1", label="sponge", colour="yellow", x_m=x, y_m=y, z_m=SINK.floor_z_m + 0.02, width_m=0.06,
        height_m=0.045, u_px=0.0, v_px=0.0,
    )  # fmt: skip
    aside, _, bottom_m = rinse_spot(SINK, (sponge,))
    assert aside != x
    assert sponge.z_m + sponge.height_m / 2 <= bottom_m < SINK.z_m - 0.01
