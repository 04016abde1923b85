"""The film of a simulated run: the room drawn anew from what was recorded, with what was said and done in it."""

from __future__ import annotations

import multiprocessing
import os
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from math import ceil
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from nodes.recording.bag.export.video_encoders import encoder
from nodes.report.contact_sheet import COLOURS, FAINT, INSET_TOPICS, PAPER, cut_to, font
from nodes.report.key_frames import frames
from nodes.report.run import Run
from nodes.sim.camera import WorldView
from nodes.sim.messages import World
from runtime.bag.file import BagReader
from runtime.bag.parts import parts_of
from runtime.clock import to_ns
from runtime.errors import RecordingError

WORLD = "sim/world"
SIZE_PX = (960, 720)
HZ = 12.0
LONGEST_S = 30.0
"""A longer run is shown faster: its film takes a bounded time to draw, about 0.07 s of a core for each frame."""
INSET_PX = (240, 180)
CAPTION_BAR_PX, LINE_PX = 96, 40
SHOWN_S = 3.0
"""So long a line stays to be read, in the film's time."""
CLIP_PX, CLIP_EACH, CLIP_QUALITY = (640, 480), 2, 50
"""Size of the animated picture, which of the film's frames it has (every second one), and their quality of 100."""
AT_ONCE = 24
"""Frames that a process draws in one go; a frame is 2 MB."""

Progress = Callable[[float], None]


@dataclass(frozen=True, slots=True)
class Line:
    """Something said or done, from when it is to be read."""

    ns: int
    who: str
    text: str
    colour: tuple[int, int, int]


def draw_film(run: Run, path: Path, progress: Progress = lambda share: None) -> bool:
    """Write the film as MP4 (VP9); False, and no file, where no simulated world was recorded or none can be encoded.

    `progress` is told the share that is done. Raises RecordingError where the file cannot be written.
    """
    number, frames = _film(run)
    video = encoder(path, HZ, *SIZE_PX) if number else None
    if video is None:
        return False
    try:
        for done, frame in enumerate(frames, 1):
            video.write(frame)
            progress(done / number)
    finally:
        video.close()
    return True


def draw_clip(run: Run, path: Path, progress: Progress = lambda share: None) -> bool:
    """Write the film as an animated picture (WebP) for a page, about 0.6 MB; False where no world was recorded.

    `progress` is told the share that is done. Raises OSError where the file cannot be written.
    """
    number, frames = _film(run, each=CLIP_EACH)
    pictures = []
    for frame in frames:
        pictures.append(Image.fromarray(frame).resize(CLIP_PX, Image.Resampling.LANCZOS))
        progress(len(pictures) / number)
    if not pictures:
        return False
    pictures[0].save(
        path, "WEBP", save_all=True, append_images=pictures[1:],
        duration=round(1000 * CLIP_EACH / HZ), loop=0, quality=CLIP_QUALITY, method=4,
    )  # fmt: skip
    return True


def _film(run: Run, each: int = 1) -> tuple[int, Iterator[NDArray[np.uint8]]]:
    """How many frames the film has, or every so many-th of it, and the frames; 0 where no world was recorded."""
    if WORLD not in run.stamps:
        return 0, iter(())
    speed = max(1, ceil(run.duration_s / LONGEST_S))
    count = max(1, int(run.duration_s * HZ / speed))
    wanted = [run.begin_ns + to_ns(number * speed / HZ) for number in range(0, count, each)]
    worlds = _worlds(run, wanted)
    if worlds and not _room().fits(worlds[0]):
        return 0, iter(())  # of another robot, or another room, than the one that can be drawn
    return len(worlds), _captioned(run, wanted, worlds, speed)


def _captioned(run: Run, wanted: Sequence[int], worlds: Sequence[World], speed: int) -> Iterator[NDArray[np.uint8]]:
    """The room at each of these times, with what was said and done until then."""
    inset = next((topic for topic in INSET_TOPICS if topic in run.image_topics), None)
    insets = frames(run, inset, wanted) if inset is not None else [None] * len(wanted)
    lines = _lines(run)
    starts = [line.ns for line in lines]
    for picture, ns, small in zip(_pictures(worlds), wanted, insets, strict=False):
        shown = lines[bisect_right(starts, ns - to_ns(SHOWN_S * speed)) : bisect_right(starts, ns)]
        yield _frame(picture, small, shown[-2:], f"{run.at_s(ns):.1f} s" + (f"  ×{speed}" * (speed > 1)))


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


def _pictures(worlds: Sequence[World]) -> Iterator[NDArray[np.uint8]]:
    """The room at each of them, drawn side by side on all cores; one process where no other can be started."""
    batches = [worlds[start : start + AT_ONCE] for start in range(0, len(worlds), AT_ONCE)]
    cores = min(len(batches), os.cpu_count() or 1)
    if cores < 2 or not hasattr(sys.modules["__main__"], "__file__"):  # its children begin with that file
        for batch in batches:
            yield from _draw(batch)
        return
    with ProcessPoolExecutor(cores, multiprocessing.get_context("spawn")) as pool:
        for pictures in pool.map(_draw, batches):
            yield from pictures


def _draw(worlds: Sequence[World]) -> list[NDArray[np.uint8]]:
    """What the room's camera sees of each of these worlds."""
    room = _room()
    return [room.see(world)[0] for world in worlds]


@cache
def _room() -> WorldView:
    """The view of the room's camera, made once in each process."""
    return WorldView("room", *SIZE_PX)


def _lines(run: Run) -> list[Line]:
    """All that is to be read, in order of time."""
    found = [Line(one.envelope.published_ns, one.message.speaker, one.message.text, COLOURS["order"])
             for one in run.heard.messages]  # fmt: skip
    found += [Line(one.envelope.published_ns, "robot", one.message.text, COLOURS["success"])
              for one in run.said.messages]  # fmt: skip
    found += [
        Line(one.envelope.published_ns, "stop" if one.message.depth == "stop" else "hold", f"by {one.message.by}",
             COLOURS["stop" if one.message.depth == "stop" else "amend"])
        for one in run.interrupts.messages
        if one.message.depth in ("stop", "hold")
    ]  # fmt: skip
    return sorted(found, key=lambda line: line.ns)


def _frame(
    picture: NDArray[np.uint8], small: NDArray[np.uint8] | None, lines: Sequence[Line], time: str
) -> NDArray[np.uint8]:
    image = Image.fromarray(picture)
    draw = ImageDraw.Draw(image)
    if small is not None:
        left, top = SIZE_PX[0] - INSET_PX[0] - 16, 16
        draw.rectangle((left - 3, top - 3, left + INSET_PX[0] + 2, top + INSET_PX[1] + 2), PAPER)
        image.paste(Image.fromarray(small).resize(INSET_PX, Image.Resampling.BICUBIC), (left, top))
    top = SIZE_PX[1] - CAPTION_BAR_PX
    draw.rectangle((0, top, *SIZE_PX), PAPER)
    bold, plain = font(24, bold=True), font(24)
    small_font = font(18)
    draw.text((SIZE_PX[0] - 20 - draw.textlength(time, small_font), top + 12), time, FAINT, small_font)
    for number, line in enumerate(lines):
        at = (20, top + 10 + LINE_PX * number)
        draw.text(at, line.who, line.colour, bold)
        begin = 20 + draw.textlength(f"{line.who}  ", bold)
        room = SIZE_PX[0] - begin - (160 if number == 0 else 20)
        draw.text((begin, at[1]), cut_to(draw, line.text, plain, room), (32, 33, 36), plain)
    return np.asarray(image)
