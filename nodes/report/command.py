"""`polyrhythm report RUN.mcap`: the summary and the pictures of a run, from its recording."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from nodes.report.run import Run, read_run
from nodes.report.summary import Summary, summarise
from runtime.clock import to_ns
from runtime.command_line.arguments import check_new
from runtime.errors import PolyrhythmError, UserError, os_sentence

CONTACT_SHEET = "contact_sheet.png"
TIMELINE = "timeline.png"
FILM = "film.mp4"
CLIP = "clip.webp"
LAST = "last.jpg"
LAST_S = (6.0, 3.0, 0.0)
"""Before its end: what a picture of how a run went shows."""
BY_HAND = "by hand"


def report_run(
    recording: Path,
    folder: Path,
    *,
    outcome: tuple[bool | None, str] | None = None,
    as_json: bool = False,
    not_kept: Sequence[str] = (),
    film: bool = False,
) -> bool | None:
    """Report a run that has just ended, with its pictures in its folder; whether it succeeded, None: nobody says.

    `film`: also as a film, which takes a while. `not_kept`: what the run promised and did not keep. `outcome` stands in
    where the recording was cut off before the end. Raises RecordingError.
    """
    run = _read(recording, outcome)
    pictures = _draw(run, folder)
    if film and (made := _film(run, folder, shows_progress=not as_json)):
        pictures.append(made)
    summary = summarise(run, pictures=pictures, not_kept=not_kept)
    _print(summary, as_json=as_json, is_new=True)
    return summary.is_success


def report_session(recording: Path, folder: Path, *, outcome: tuple[bool, str] | None = None, **more: Any) -> bool:
    """Like `report_run`, of what people end when they have done: it succeeded unless something says that it failed."""
    return report_run(recording, folder, outcome=outcome or (None, BY_HAND), **more) is not False


def report_figures(
    recording: Path,
    folder: Path,
    *,
    outcome: tuple[bool | None, str] | None = None,
    not_kept: Sequence[str] = (),
    **_: Any,
) -> bool | None:
    """The summary as JSON and one small picture, whatever was asked: for whoever runs many."""
    run, summed = summary_of(recording, outcome)
    summary = replace(summed, not_kept=tuple(not_kept))
    _draw_last(run, folder / LAST)
    print(summary.to_json())
    return summary.is_success


def summary_of(recording: Path, outcome: tuple[bool | None, str] | None) -> tuple[Run, Summary]:
    """A recorded run and its summary; `outcome` is what the command knows of one that the recording does not tell."""
    run = _read(recording, outcome)
    return run, summarise(run)


def _read(recording: Path, outcome: tuple[bool | None, str] | None) -> Run:
    run = read_run(recording)
    if outcome is not None and run.outcome[0] is None:
        run.end["outcome"] = json.dumps({"ok": outcome[0], "reason": outcome[1]})
    return run


def _print(summary: Summary, *, as_json: bool, is_new: bool = False) -> None:
    """Of a run that has just ended the result, else all tables."""
    if as_json:
        print(summary.to_json())
        return
    from nodes.report.summary_tables import print_result, print_summary

    (print_result if is_new else print_summary)(summary)


def _draw(run: Run, out: Path) -> list[str]:
    # Loaded here: a summary as JSON needs neither of them.
    from nodes.report.contact_sheet import draw_contact_sheet
    from nodes.report.timeline import draw_timeline

    out.mkdir(parents=True, exist_ok=True)
    pictures = []
    if draw_contact_sheet(run, out / CONTACT_SHEET):
        pictures.append(str(out / CONTACT_SHEET))
    draw_timeline(run, out / TIMELINE)
    pictures.append(str(out / TIMELINE))
    return pictures


def _draw_last(run: Run, file: Path) -> None:
    """How it stood in the end, as the robot or the room saw it; nothing where nobody did, or nothing here can draw."""
    try:
        from nodes.report.contact_sheet import MAIN_TOPICS, draw_strip
    except ModuleNotFoundError:
        return
    if not run.image_topics:
        return
    topic = next((topic for topic in MAIN_TOPICS if topic in run.image_topics), run.image_topics[0])
    stamps = {f"{run.at_s(ns):.1f} s": ns for ns in (max(run.end_ns - to_ns(ago), run.begin_ns) for ago in LAST_S)}
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(draw_strip(run, topic, stamps, kind="JPEG"))
    except OSError as problem:
        print(f"! {file}: {os_sentence(problem)}; the run counts without its picture", file=sys.stderr)


def _film(run: Run, out: Path, *, shows_progress: bool, name: str = FILM) -> str | None:
    """Draw the film, with a bar on a terminal; its path, or None where the recording holds nothing to draw it from.

    `name` is FILM, or CLIP: the same as an animated picture.
    """
    from rich.console import Console
    from rich.progress import Progress

    from nodes.report.film import draw_clip, draw_film

    out.mkdir(parents=True, exist_ok=True)
    console = Console(stderr=True)
    with Progress(console=console, disable=not (shows_progress and console.is_terminal), transient=True) as bar:
        task = bar.add_task("the film", total=1.0)
        draw = draw_clip if name == CLIP else draw_film
        is_drawn = draw(run, out / name, lambda share: bar.update(task, completed=share))
    return str(out / name) if is_drawn else None


def _asked_for(run: Run, out: Path, asked: argparse.Namespace) -> list[str]:
    """Draw what the command line wants; the paths. Raises UserError where there can be no film."""
    pictures = _draw(run, out)
    for name in [name for name, is_asked in ((FILM, asked.film), (CLIP, asked.clip)) if is_asked]:
        made = _film(run, out, shows_progress=not asked.json, name=name)
        if made is None:
            raise UserError(f"{asked.recording}: no film: it holds no simulated world, or nothing here encodes VP9")
        pictures.append(made)
    return pictures


def _beside(recording: Path) -> Path:
    """A run has a folder of its own; of several recordings in one folder, such as trials, each gets one."""
    return recording.parent if recording.stem == "run" else recording.with_name(f"{recording.stem}-report")


def main(argv: list[str]) -> int:
    """Run the command. Returns 0, 1 where the recording cannot be read, 2 where it was asked wrongly."""
    parser = argparse.ArgumentParser(
        prog="polyrhythm report",
        description="Sum up a recorded run and draw its contact sheet and timeline.",
        epilog="example: polyrhythm report runs/20261121-113639-laptop/run.mcap --out pictures",
    )
    parser.add_argument("recording", type=Path, help="a .mcap file that `polyrhythm run` wrote")
    parser.add_argument("--json", action="store_true", help="print the summary as JSON and draw nothing without --out")
    parser.add_argument("--film", action="store_true", help="of a simulated run: also film.mp4, with captions")
    parser.add_argument("--clip", action="store_true", help="the same as clip.webp, small, for a page")
    parser.add_argument(
        "--out", type=Path, help="folder for the pictures (default: that of run.mcap; of NAME.mcap, NAME-report)"
    )
    try:
        asked = parser.parse_args(argv)
    except SystemExit as end:
        return int(end.code or 0)
    try:
        run = read_run(asked.recording)
        if asked.out is not None:
            for name in (CONTACT_SHEET, TIMELINE, *([FILM] if asked.film else []), *([CLIP] if asked.clip else [])):
                check_new(asked.out / name)
        out = asked.out or (None if asked.json else _beside(asked.recording))
        pictures = _asked_for(run, out, asked) if out is not None else []
        summary = summarise(run, pictures=pictures)
    except PolyrhythmError as error:
        print(f"polyrhythm report: {error}", file=sys.stderr)
        return 2 if isinstance(error, UserError) else 1
    except OSError as error:
        print(f"polyrhythm report: cannot be written: {os_sentence(error)}", file=sys.stderr)
        return 1
    _print(summary, as_json=asked.json)
    return 0
