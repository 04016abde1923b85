"""The demo's table of a seed as a model's text, and what stands on it."""

from __future__ import annotations

from typing import NamedTuple

from nodes.sim.world.mjcf import build_stretch
from nodes.sim.world.scenario import layout_of
from nodes.sim.world.world_file import Thing


class TableModel(NamedTuple):
    xml: str
    things: tuple[Thing, ...]


def build_scene(seed: int = 0) -> TableModel:
    layout = layout_of("clear-table", seed)
    return TableModel(build_stretch(layout), tuple(one.thing for one in layout.things))
