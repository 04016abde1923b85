"""The room of a simulated run, drawn anew from the worlds that were recorded: crisp, at any size and any time."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nodes.mcap.file import BagReader
from nodes.mcap.parts import parts_of
from nodes.report.run import Run
from nodes.robot.robot_from_launch import is_file
from nodes.sim.camera import WorldView, model_of
from nodes.sim.messages import World
from runtime.errors import RecordingError, UserError

WORLD = "sim/world"
AT_ONCE = 24
"""Pictures that a process draws in one go; one of 960 x 720 is 2 MB."""


class RoomView(NamedTuple):
    """Which room it is, with which robot in it, and how large its pictures are."""

    size_px: tuple[int, int]
    robot: str
    scenario: str
    things: str
    seed: int


def room_pictures(
    run: Run, wanted_ns: Sequence[int], size_px: tuple[int, int]
) -> tuple[int, Iterator[NDArray[np.uint8]]]:
    """How many there are, and the pictures: one for each of these times (in their order), (height, width, 3).

    None where no world was recorded, or one of a room or a robot that cannot be drawn here.
    """
    if WORLD not in run.stamps:
        return 0, iter(())
    room = _room_of(run, size_px)
    worlds = _worlds(run, wanted_ns)
    try:
        if not worlds or not _view(room).fits(worlds[0]):
            return 0, iter(())
    except UserError:  # its robot file is not on this machine
        return 0, iter(())
    return len(worlds), _pictures(room, worlds)


def _room_of(run: Run, size_px: tuple[int, int]) -> RoomView:
    robot, parameters = run.noted("robot"), run.noted("parameters")
    told: dict[str, Any] = {}
    for params in parameters.values() if isinstance(parameters, dict) else ():
        told = {**params, **told} if isinstance(params, dict) else told
    driver = parameters.get("driver", {}) if isinstance(parameters, dict) else {}  # others call other things so
    scenario, things, seed = driver.get("scenario", ""), told.get("things", ""), run.noted("seed")
    file = robot if isinstance(robot, str) and is_file(robot) else ""
    return RoomView(
        size_px, file, str(scenario), things if isinstance(things, str) else "", seed if isinstance(seed, int) else 0
    )


def _worlds(run: Run, wanted: Sequence[int]) -> list[World]:
    """The newest world at each of these times; the first one before there was any. A damaged one is passed over."""
    found: list[World] = []
    newest: World | None = None
    waiting = list(reversed(wanted))
    for part in parts_of(run.path):
        for record in BagReader(part):
            if record.topic != WORLD:
                continue
            while newest is not None and waiting and record.envelope.published_ns > waiting[-1]:
                waiting.pop()
                found.append(newest)
            if not waiting:
                return found
            try:
                newest = record.message(World)
            except RecordingError:
                continue  # the report's own list of damage names the file
    return found + [newest] * len(waiting) if newest is not None else []


def _pictures(room: RoomView, worlds: Sequence[World]) -> Iterator[NDArray[np.uint8]]:
    """The room at each of them, drawn side by side on all cores; one process where no other can be started."""
    batches = [(room, worlds[start : start + AT_ONCE]) for start in range(0, len(worlds), AT_ONCE)]
    cores = min(len(batches), os.cpu_count() or 1)
    if cores < 2 or not hasattr(sys.modules["__main__"], "__file__"):  # its children begin with that file
        for batch in batches:
            yield from _draw(batch)
        return
    with ProcessPoolExecutor(cores, multiprocessing.get_context("spawn")) as pool:
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # Ctrl-C is for who started them
        try:
            drawn = pool.map(_draw, batches)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        for pictures in drawn:
            yield from pictures


def _draw(batch: tuple[RoomView, Sequence[World]]) -> list[NDArray[np.uint8]]:
    """What the room's camera sees of each of these worlds."""
    room, worlds = batch
    return [_view(room).see(world)[0] for world in worlds]


@cache
def _view(room: RoomView) -> WorldView:
    """The view of the room's camera, made once in each process. Raises UserError without its robot file."""
    return WorldView(model_of(room.robot, room.scenario, room.things, room.seed), "room", *room.size_px)
