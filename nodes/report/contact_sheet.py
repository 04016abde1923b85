"""The contact sheet: key frames of a run on one page, each with its time and what happened."""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from nodes.plotting.figure import FONTS
from nodes.report.key_frames import KeyMoment, Kind, frames, moments
from nodes.report.room_pictures import room_pictures
from nodes.report.run import Run

COLUMNS = 4
FRAME_PX = (400, 300)
STRIP_PX = (200, 150)
MARGIN_PX = 28
GAP_PX = 20
CAPTION_PX = 84
HEADER_PX = 92
MAIN_TOPICS = ("room/image", "head/image")
INSET_TOPICS = ("head/image", "wrist/image")
INSET = 0.36  # width of the inset, of the frame's

PAPER = (250, 249, 246)
INK = (32, 33, 36)
FAINT = (120, 122, 128)
COLOURS: dict[Kind, tuple[int, int, int]] = {
    "order": (45, 95, 175),
    "amend": (196, 120, 20),
    "stop": (196, 38, 38),
    "resume": (38, 130, 74),
    "action": (98, 92, 150),
    "success": (38, 130, 74),
    "failure": (170, 70, 40),
    "between": (120, 122, 128),
    "end": (32, 33, 36),
}


def draw_contact_sheet(run: Run, path: Path) -> bool:
    """Write the sheet as a PNG; False, and no file, where the run has no images."""
    if not run.image_topics:
        return False
    shown = moments(run, in_rows_of=COLUMNS)
    main = next((topic for topic in MAIN_TOPICS if topic in run.image_topics), run.image_topics[0])
    wanted = [moment.ns for moment in shown]
    number, drawn = room_pictures(run, wanted, (2 * FRAME_PX[0], 2 * FRAME_PX[1]))
    pictures = list(drawn) if number == len(wanted) else frames(run, main, wanted)
    insets: list[NDArray[np.uint8]] | list[None] = [None] * len(shown)
    inset = next((topic for topic in INSET_TOPICS if topic != main and topic in run.image_topics), None)
    if inset is not None:
        insets = frames(run, inset, wanted)
    _sheet(run, shown, pictures, insets).save(path)
    return True


def draw_strip(run: Run, topic: str, stamps: Mapping[str, int], *, kind: str = "PNG") -> bytes:
    """The pictures of a topic nearest to these stamps side by side, each with its name above it."""
    (width, height), head = STRIP_PX, CAPTION_PX // 3
    sheet = Image.new("RGB", (len(stamps) * (width + 4), head + height), PAPER)
    draw = ImageDraw.Draw(sheet)
    for number, (name, picture) in enumerate(zip(stamps, frames(run, topic, stamps.values()), strict=True)):
        sheet.paste(_fitted(picture, STRIP_PX), (number * (width + 4), head))
        draw.text((number * (width + 4) + 4, 4), name, fill=INK, font=font(15))
    data = BytesIO()
    sheet.save(data, kind)
    return data.getvalue()


def _sheet(
    run: Run,
    shown: list[KeyMoment],
    pictures: list[NDArray[np.uint8]],
    insets: list[NDArray[np.uint8]] | list[None],
) -> Image.Image:
    rows = -(-len(shown) // COLUMNS)
    width = 2 * MARGIN_PX + COLUMNS * FRAME_PX[0] + (COLUMNS - 1) * GAP_PX
    height = HEADER_PX + rows * (FRAME_PX[1] + CAPTION_PX) + (rows - 1) * GAP_PX + MARGIN_PX
    sheet = Image.new("RGB", (width, height), PAPER)
    draw = ImageDraw.Draw(sheet)
    _header(draw, run, width)
    for index, (moment, picture, inset) in enumerate(zip(shown, pictures, insets, strict=True)):
        row, column = divmod(index, COLUMNS)
        left = MARGIN_PX + column * (FRAME_PX[0] + GAP_PX)
        top = HEADER_PX + row * (FRAME_PX[1] + CAPTION_PX + GAP_PX)
        _frame(sheet, (left, top), picture, inset)
        _caption(draw, (left, top + FRAME_PX[1]), moment, run.at_s(moment.ns))
    return sheet


def _header(draw: ImageDraw.ImageDraw, run: Run, width: int) -> None:
    is_success, reason = run.outcome
    words = {True: "success", False: "failed", None: "ended"}[is_success]
    colour = {"success": COLOURS["success"], "failed": COLOURS["stop"]}.get(words, FAINT)
    title = run.heard.messages[0].message.text if run.heard.messages else run.path.name
    right = f"{words} after {run.end_s:.0f} s"
    big, small = font(26, bold=True), font(18)
    room = width - 2 * MARGIN_PX - draw.textlength(right, big) - 24
    draw.text((MARGIN_PX, 22), cut_to(draw, title, big, room), INK, big)
    draw.text((width - MARGIN_PX - draw.textlength(right, big), 22), right, colour, big)
    seed = run.noted("seed")
    facts = [f"{run.about.get('clock', 'real')} time", *([] if seed is None else [f"seed {seed}"])]
    facts += [reason] if reason else []
    draw.text((MARGIN_PX, 57), cut_to(draw, "  ·  ".join(facts), small, width - 2 * MARGIN_PX), FAINT, small)


def _frame(
    sheet: Image.Image, at: tuple[int, int], picture: NDArray[np.uint8], inset: NDArray[np.uint8] | None
) -> None:
    sheet.paste(_fitted(picture, FRAME_PX), at)
    if inset is None:
        return
    size = (round(FRAME_PX[0] * INSET), round(FRAME_PX[1] * INSET))
    left, top = at[0] + FRAME_PX[0] - size[0], at[1] + FRAME_PX[1] - size[1]
    sheet.paste(PAPER, (left - 3, top - 3, left + size[0], top + size[1]))
    sheet.paste(_fitted(inset, size), (left, top))


def _fitted(picture: NDArray[np.uint8], size: tuple[int, int]) -> Image.Image:
    """The picture scaled to fill that size, cut at the edges where its shape differs."""
    image = Image.fromarray(picture)
    scale = max(size[0] / image.width, size[1] / image.height)
    wanted = (max(size[0], round(image.width * scale)), max(size[1], round(image.height * scale)))
    image = image.resize(wanted, Image.Resampling.LANCZOS)
    left, top = (image.width - size[0]) // 2, (image.height - size[1]) // 2
    return image.crop((left, top, left + size[0], top + size[1]))


def _caption(draw: ImageDraw.ImageDraw, at: tuple[int, int], moment: KeyMoment, at_s: float) -> None:
    left, top = at
    colour = COLOURS[moment.kind]
    draw.rectangle((left, top, left + FRAME_PX[0] - 1, top + 4), colour)
    bold, plain = font(18, bold=True), font(17)
    time = f"{at_s:.1f} s"
    draw.text((left, top + 11), time, INK, bold)
    tag = "" if moment.kind == "between" else moment.kind
    draw.text((left + draw.textlength(f"{time}  ", bold), top + 11), tag, colour, bold)
    for line, text in enumerate(wrapped(draw, moment.text, plain, FRAME_PX[0], lines=2)):
        draw.text((left, top + 35 + 22 * line), text, INK, plain)


def wrapped(
    draw: ImageDraw.ImageDraw, text: str, font: ImageFont.FreeTypeFont, width: float, *, lines: int
) -> list[str]:
    """The text in at most so many lines of at most that many pixels; the end of the last is left out where needed."""
    found: list[str] = []
    rest = text.split()
    while rest and len(found) < lines:
        take = 1
        while take < len(rest) and draw.textlength(" ".join(rest[: take + 1]), font) <= width:
            take += 1
        is_last = len(found) == lines - 1
        found.append(cut_to(draw, " ".join(rest if is_last else rest[:take]), font, width))
        rest = rest[take:]
    return found


def cut_to(draw: ImageDraw.ImageDraw, text: str, font: ImageFont.FreeTypeFont, width: float) -> str:
    """The text, with its end left out where it is wider than that many pixels."""
    if draw.textlength(text, font) <= width:
        return text
    while text and draw.textlength(f"{text}…", font) > width:
        text = text[:-1]
    return f"{text.rstrip()}…"


def font(size: int, *, bold: bool = False) -> ImageFont.FreeTypeFont:
    """DejaVu Sans, which matplotlib carries, so that the sheet looks the same on every machine."""
    name = "DejaVuSans-Bold.ttf" if bold else "DejaVuSans.ttf"
    return ImageFont.truetype(FONTS / name, size)
