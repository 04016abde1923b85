"""`polyrhythm annotate`: rate a recording in the browser; agreement of annotators; export."""

from __future__ import annotations

import argparse
import json
import logging
import re
import signal
import sys
import threading
from dataclasses import asdict
from pathlib import Path

import msgspec

from bridges.web.http.listener import PageHost
from bridges.web.http.page import Page
from bridges.web.http.private_files import write_private
from bridges.web.questionnaire.questionnaire import Questionnaire, read_questionnaire, shipped
from bridges.web.recordings.rating_page import VIEWER, RatingHandler, decode
from bridges.web.recordings.ratings import Rating, Ratings, agreement, exported, ratings_file, read_ratings
from bridges.web.recordings.recording import read_recording
from runtime.clock import SystemClock, to_s, wall_time_ns
from runtime.command_line.arguments import check_new, port_number
from runtime.command_line.columns import or_dash
from runtime.errors import UserError
from runtime.operating_system.terminal import signals_of_end

_NAME = re.compile(r"\w[\w-]{0,31}")


def main(argv: list[str]) -> int:
    """`polyrhythm annotate`: 0; 1 where a recording cannot be read."""
    asked = _parser().parse_args(argv)
    scales = _scales(asked.questionnaire)
    if asked.agreement or asked.export is not None:
        return _report(asked, scales)
    if len(asked.recordings) != 1:
        raise UserError("annotate: one recording at a time is rated; several go with --agreement and --export")
    return _serve(asked, scales)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="polyrhythm annotate",
        description="Rate a recording in the browser: scrub through it, score each agent in seven dimensions, say why. "
        "Ratings go to RUN.ratings.jsonl beside it.",
        epilog="example: polyrhythm annotate run.mcap --annotator ada --annotator ben",
    )
    parser.add_argument("recordings", type=Path, nargs="+", metavar="RUN.mcap")
    parser.add_argument("--annotator", action="append", metavar="NAME", help="an address for each; default: annotator")
    parser.add_argument("--agents", metavar="A,B", help="whom to rate; default: all who say something")
    parser.add_argument("--questionnaire", type=Path, metavar="FILE", help="other scales than the seven dimensions")
    parser.add_argument(
        "--port", type=port_number, default=8422, metavar="N", help="0: any that is free (default: 8422)"
    )
    parser.add_argument("--agreement", action="store_true", help="only print how far annotators and model agree")
    parser.add_argument("--export", type=Path, metavar="FILE", help="only write the ratings, as .jsonl or .csv")
    parser.add_argument("--json", action="store_true", help="with --agreement: as JSON")
    return parser


def _scales(path: Path | None) -> Questionnaire:
    found = read_questionnaire(path) if path is not None else shipped("seven-dimensions")
    assert found is not None
    if any(item.kind != "scale" for item in found.item):
        raise UserError(f'{path}: annotation knows items of kind "scale" only')
    return found


def _serve(asked: argparse.Namespace, scales: Questionnaire) -> int:
    names: list[str] = asked.annotator or ["annotator"]
    for name in names:
        if not _NAME.fullmatch(name) or name in (VIEWER, "participant") or names.count(name) > 1:
            raise UserError(f"--annotator {name!r}: expected a name of letters, digits and -, each once, not {VIEWER}")
    path: Path = asked.recordings[0]
    recorded = read_recording(path)
    if asked.agents is not None:
        recorded.agents = [name.strip() for name in asked.agents.split(",") if name.strip()]
        if not recorded.agents:
            raise UserError(f"--agents {asked.agents!r}: expected names with commas between them")
    ratings = Ratings(ratings_file(path))
    ratings_page = RatingHandler(recorded, ratings, scales.item, lambda: to_s(wall_time_ns()))
    pages = PageHost("127.0.0.1", asked.port)
    log = logging.getLogger("annotate")
    log.setLevel(logging.INFO)
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(logging.Formatter("%(name)s: %(message)s"))
    log.addHandler(handler)
    end = threading.Event()
    for number in signals_of_end():
        signal.signal(number, lambda *_: end.set())
    try:
        roles = {name: name for name in (*names, VIEWER)}
        page = Page("recordings", "Recordings", "recordings/page.html", ratings_page, decode, roles)
        pages.start(page, SystemClock(), log)
        log.info("ratings go to %s; Ctrl-C ends this", ratings.path)
        end.wait()
    finally:
        pages.stop()
        ratings.close()
        log.removeHandler(handler)
    return 0


def _report(asked: argparse.Namespace, scales: Questionnaire) -> int:
    ratings: list[Rating] = []
    apart: list[Rating] = []  # each under its recording: two may tell of the same episode, or have one name
    scores: dict[tuple[str, str, str], float] = {}
    files_of: dict[str, list[str]] = {}
    for path in {path.resolve(): path for path in asked.recordings}.values():
        here = read_ratings(ratings_file(path)).values()
        if not here and path.is_file():
            continue  # one among many that nobody has rated, or can rate
        ratings += here
        apart += [msgspec.structs.replace(rating, episode=str(path)) for rating in here]
        for episode in {rating.episode for rating in here}:
            files_of.setdefault(episode, []).append(str(path))
        scores |= {(str(path), *key): score for key, score in read_recording(path).scores.items()}
    if asked.export is not None:
        form = asked.export.suffix.removeprefix(".")
        if form not in ("jsonl", "csv"):
            raise UserError(f"--export {asked.export}: expected a name that ends in .jsonl or .csv")
        check_new(asked.export, "--export")
        write_private(asked.export, exported(ratings, form))
        for episode, files in files_of.items():
            if len(files) > 1:
                print(
                    f"note: {', '.join(files)} are all called {episode}; their ratings bear one name", file=sys.stderr
                )
        print(f"{sum(one.score is not None for one in ratings)} ratings in {asked.export}", file=sys.stderr)
    if not asked.agreement:
        return 0
    found = agreement(apart, scales.item, scores)
    if asked.json:
        print(json.dumps([asdict(one) for one in found]))
        return 0
    print("dimension  raters  items  kappa  weighted  alpha    ICC  Pearson (people, model)")
    for one in found:
        pearson = f"{or_dash(one.pearson, '.2f')} on {one.matched}" if one.matched else "it gave none"
        people = (f"{or_dash(value, '.2f'):>{width}}" for value, width in (
            (one.kappa, 5), (one.weighted_kappa, 8), (one.alpha, 5), (one.icc, 5)))  # fmt: skip
        print(f"{one.dimension:9}  {one.raters:6}  {one.items:5}  {'  '.join(people)}  {pearson}")
    if not found:
        print("nobody has rated anything yet")
    return 0
