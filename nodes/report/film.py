"""The film of a simulated run: the room drawn anew from what was recorded, with what was said and done in it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from nodes.recording.video_encoders import encoder
from nodes.report.contact_sheet import COLOURS, FAINT, INSET_TOPICS, PAPER, font, wrapped
from nodes.report.key_frames import frames
from nodes.report.room_pictures import room_pictures
from nodes.report.run import Run
from runtime.clock import to_ns

SIZE_PX = (960, 720)
HZ = 12.0
LONGEST_S = 30.0
"""A longer run is shown faster: its film takes a bounded time to draw, about 0.07 s of a core for each frame."""
INSET_PX = (240, 180)
CAPTION_BAR_PX, LINE_PX, CAPTION_ROWS = 96, 40, 2
SHOWN_S = 3.0
"""So long a line stays to be read, in the film's time."""
CLIP_PX, CLIP_EACH, CLIP_QUALITY = (640, 480), 2, 50
"""Size of the animated picture, which of the film's frames it has (every second one), and their quality of 100."""

Progress = Callable[[float], None]


@dataclass(frozen=True, slots=True)
class Caption:
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
    speed = max(1, ceil(run.duration_s / LONGEST_S))
    count = max(1, int(run.duration_s * HZ / speed))
    wanted = [run.begin_ns + to_ns(number * speed / HZ) for number in range(0, count, each)]
    number, pictures = room_pictures(run, wanted, SIZE_PX)
    return number, _captioned(run, wanted, pictures, speed)


def _captioned(
    run: Run, wanted: Sequence[int], pictures: Iterator[NDArray[np.uint8]], speed: int
) -> Iterator[NDArray[np.uint8]]:
    """The room at each of these times, with what was said and done until then."""
    inset = next((topic for topic in INSET_TOPICS if topic in run.image_topics), None)
    insets = frames(run, inset, wanted) if inset is not None else [None] * len(wanted)
    lines = _lines(run)
    starts = [line.ns for line in lines]
    for picture, ns, small in zip(pictures, wanted, insets, strict=False):
        shown = lines[bisect_right(starts, ns - to_ns(SHOWN_S * speed)) : bisect_right(starts, ns)]
        yield _frame(picture, small, shown[-CAPTION_ROWS:], f"{run.at_s(ns):.1f} s" + (f"  ×{speed}" * (speed > 1)))


def _lines(run: Run) -> list[Caption]:
    """All that is to be read, in order of time."""
    found = [Caption(one.envelope.published_ns, one.message.speaker, one.message.text, COLOURS["order"])
             for one in run.heard.messages]  # fmt: skip
    found += [Caption(one.envelope.published_ns, "robot", one.message.text, COLOURS["success"])
              for one in run.said.messages]  # fmt: skip
    found += [
        Caption(one.envelope.published_ns, "stop" if one.message.depth == "stop" else "hold", f"by {one.message.by}",
             COLOURS["stop" if one.message.depth == "stop" else "amend"])
        for one in run.interrupts.messages
        if one.message.depth in ("stop", "hold")
    ]  # fmt: skip
    return sorted(found, key=lambda line: line.ns)


def _frame(
    picture: NDArray[np.uint8], small: NDArray[np.uint8] | None, lines: Sequence[Caption], time: str
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
    rows: list[tuple[Caption, bool, str]] = []  # whether it begins there
    for line in reversed(lines):  # the newest is read whole; the one before where there is room
        room = SIZE_PX[0] - 180 - draw.textlength(f"{line.who}  ", bold)
        texts = wrapped(draw, line.text, plain, room, lines=CAPTION_ROWS)
        if len(rows) + len(texts) > CAPTION_ROWS:
            break
        rows[:0] = [(line, number == 0, text) for number, text in enumerate(texts)]
    for number, (line, is_first, text) in enumerate(rows):
        at = (20, top + 10 + LINE_PX * number)
        draw.text(at, line.who if is_first else "", line.colour, bold)
        draw.text((20 + draw.textlength(f"{line.who}  ", bold), at[1]), text, (32, 33, 36), plain)
    return np.asarray(image)
