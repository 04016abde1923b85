"""`polyrhythm eval reflex`: how well the words that stop, change or resume a robot are understood, on labelled sets."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from nodes.evaluation.figures import SuccessRate, rate_of
from nodes.evaluation.labelled_sets import read_set
from nodes.evaluation.reflex_cost import UTTERANCES_A_MINUTE, hold_delay_s
from nodes.interrupts.intent import Meaning, understand
from nodes.interrupts.stop_classifier import StopClassifier
from nodes.mcap.file import BagReader
from runtime.clock import NS_PER_S
from runtime.command_line.arguments import answered
from runtime.errors import PolyrhythmError, UserError

Expect = Literal["stop", "order", "amend", "resume", "not_resume", "none"]
Heard = Literal["stop", "replan", "amend", "resume", "hold", "nothing"]

DATA = Path(__file__).parents[1] / "interrupts" / "data"
SHA256 = {
    "heldout": "e5a0edad5bcf60352f423bfcd7fc56eb78f8dd3a030b868ff8e3d20ffbfbe41a",
    "unseen": "1813baa780f5121643b6deee41aef0a9dc1aab3e4bd030f5f691d6196e11b7fd",
}
"""Of the sets that nobody tunes on, as docs/decisions/held-out-sets.md committed them before their first scoring."""
SETS = ("tuning", *SHA256)

_DEPTH_OF: dict[Expect, Heard] = {"stop": "stop", "order": "replan", "amend": "amend", "resume": "resume"}
_HARMLESS: tuple[Expect, ...] = ("none", "order", "amend", "resume")

STORY = "laptop"
TALKER = "visitor=nodes.evaluation.reflex_cost:UtteranceSource"
LATEST_S = 600.0
PATIENCE_S = 1800.0


class StoryCost(msgspec.Struct, frozen=True):
    """One telling of the story, in virtual time."""

    lasted_s: float  # until the collaborator had what they wanted
    holds: int

    @property
    def holds_a_minute(self) -> float:
        """None of them was needed: nobody in the story shouts what is not understood."""
        return self.holds / self.lasted_s * 60


class Line(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One labelled utterance."""

    text: str
    language: str
    kind: str
    expect: Expect


class Scored(msgspec.Struct, frozen=True):
    """What a line was taken for, by a robot that moves."""

    line: Line
    heard: Heard  # by the table and its fail-safe
    is_added: bool  # the second judge makes a stop of it
    is_held_by_judge: bool  # or a soft hold
    is_shortened: bool  # the second judge ends its hold early
    lifts: bool  # it would lift a stop

    @property
    def is_latched(self) -> bool:
        """Whether the robot ends up stopped."""
        return self.heard == "stop" or self.is_added

    @property
    def is_held(self) -> bool:
        """Whether the robot at least holds softly."""
        return self.is_latched or self.is_held_by_judge or self.heard == "hold"


class DepthFigures(msgspec.Struct, frozen=True):
    """One depth: how much of what was taken for it is, and how much of what is was taken for it."""

    depth: str
    precision: SuccessRate
    recall: SuccessRate


class StopFigures(msgspec.Struct, frozen=True):
    """Lines that mean a stop, of one language or kind."""

    group: str
    latched_by_table: SuccessRate
    latched: SuccessRate
    latched_or_held: SuccessRate


class HarmlessFigures(msgspec.Struct, frozen=True):
    """What lines of one kind cost that mean no stop."""

    group: str
    latched: SuccessRate
    held_softly: SuccessRate
    shortened: SuccessRate  # of those that were held


class ReflexFigures(msgspec.Struct, frozen=True):
    """All that is told of one set."""

    set: str
    lines: int
    depths: list[DepthFigures]
    stops: list[StopFigures]
    harmless: list[HarmlessFigures]
    shouts_taken_for_orders: int  # or for an amendment, and not made a stop by the second judge
    shouts_taken_by_table: int  # the same without a second judge
    lifted_by_mistake: int
    resumes: SuccessRate
    story: tuple[StoryCost, StoryCost] | None = None  # as it is, and beside a talker; None: not measured
    hold_delay_s: float = 0.0  # by which a robot arrives later for each soft hold; 0: not measured

    @property
    def needless_holds_a_minute(self) -> float:
        """Beside people who say so many utterances a minute, and mean no stop by any."""
        return self.harmless[0].held_softly.share * UTTERANCES_A_MINUTE


def main(argv: list[str]) -> int:
    """0; 2 where it was asked wrongly, or the held-out half is another one than was committed."""
    asked = _parser().parse_args(argv)
    return answered("polyrhythm eval reflex", lambda: _tell(asked.set, tells_story=asked.story, as_json=asked.json))


def read(name: str) -> list[Line]:
    """The lines of a set or a file. Raises UserError where a set that nobody tunes on is not the committed one."""
    lines, found = read_set(name, {one: DATA / f"reflex_{one}.jsonl" for one in SETS}, Line)
    if found != SHA256.get(name, found):
        raise UserError(
            f"--set {name}: sha256 is {found}; expected {SHA256[name]}: figures of another set mean nothing"
        )
    return lines


def score(lines: Iterable[Line], judge: Callable[[str], float], classifier: type[StopClassifier]) -> list[Scored]:
    """What each line is taken for; `judge` is the second judge's certainty that it means a stop."""
    return [_scored(line, understand(line.text), judge(line.text), classifier) for line in lines]


def figures_of(name: str, scored: Sequence[Scored]) -> ReflexFigures:
    """The figures of a set."""
    stops = [one for one in scored if one.line.expect == "stop"]
    harmless = [one for one in scored if one.line.expect in _HARMLESS]
    refused = [one for one in scored if one.line.expect == "not_resume"]
    taken = [one for one in scored if one.line.kind == "stop_plain" and one.heard in ("replan", "amend")]
    languages = sorted({one.line.language for one in scored})
    return ReflexFigures(
        set=name,
        lines=len(scored),
        depths=[_depth(scored, expect, depth) for expect, depth in _DEPTH_OF.items()],
        stops=[
            _stops("all", stops),
            *(_stops(kind, [one for one in stops if one.line.kind == kind]) for kind in _kinds(stops)),
            *(_stops(name, [one for one in stops if one.line.language == name]) for name in languages),
        ],
        harmless=[
            _harmless("all", harmless),
            *(_harmless(kind, [one for one in harmless if one.line.kind == kind]) for kind in _kinds(harmless)),
            *(_harmless(name, [one for one in harmless if one.line.language == name]) for name in languages),
            _harmless("not_resume", refused),
        ],
        shouts_taken_for_orders=sum(not one.is_added for one in taken),
        shouts_taken_by_table=len(taken),
        lifted_by_mistake=sum(one.lifts and one.line.expect != "resume" for one in scored),
        resumes=_share([one.lifts for one in scored if one.line.expect == "resume"]),
    )


def _scored(line: Line, meaning: Meaning, certainty: float, classifier: type[StopClassifier]) -> Scored:
    heard: Heard = meaning.depth or ("hold" if meaning.is_unclear else "nothing")
    if meaning.may_stop and heard != "stop":
        heard = "hold"
    if meaning.lifts_stop:
        heard = "resume"
    return Scored(
        line=line,
        heard=heard,
        is_added=certainty >= classifier.stops_from(meaning),
        is_held_by_judge=certainty >= classifier.holds_from(meaning),
        is_shortened=heard == "hold" and certainty < classifier.harmless_below(meaning),
        lifts=meaning.lifts_stop,
    )


def _depth(scored: Sequence[Scored], expect: Expect, depth: Heard) -> DepthFigures:
    def is_taken(one: Scored) -> bool:
        return one.is_latched if depth == "stop" else one.heard == depth and not one.is_added

    return DepthFigures(
        depth=depth,
        precision=_share([one.line.expect == expect for one in scored if is_taken(one)]),
        recall=_share([is_taken(one) for one in scored if one.line.expect == expect]),
    )


def _stops(group: str, stops: Sequence[Scored]) -> StopFigures:
    return StopFigures(
        group=group,
        latched_by_table=_share([one.heard == "stop" for one in stops]),
        latched=_share([one.is_latched for one in stops]),
        latched_or_held=_share([one.is_held for one in stops]),
    )


def _harmless(group: str, lines: Sequence[Scored]) -> HarmlessFigures:
    held = [one for one in lines if one.is_held and not one.is_latched]
    return HarmlessFigures(
        group=group,
        latched=_share([one.is_latched for one in lines]),
        held_softly=_share([one in held for one in lines]),
        shortened=_share([one.is_shortened for one in held]),
    )


def _kinds(scored: Iterable[Scored]) -> list[str]:
    return sorted({one.line.kind for one in scored})


def _share(claims: Sequence[bool]) -> SuccessRate:
    return rate_of(sum(claims), len(claims))


def _tell(name: str, *, tells_story: bool, as_json: bool) -> int:
    classifier = StopClassifier()
    figures = figures_of(name, score(read(name), classifier.certainty, StopClassifier))
    figures = msgspec.structs.replace(figures, hold_delay_s=round(hold_delay_s(), 2))
    if tells_story:
        figures = msgspec.structs.replace(figures, story=story_costs())
    if as_json:
        print(msgspec.json.format(msgspec.json.encode(figures), indent=1).decode())
    else:
        print("\n".join(lines_of(figures)))
    return 0


def lines_of(figures: ReflexFigures) -> Iterable[str]:
    """The figures for people."""
    yield f"{figures.set}: {figures.lines} lines; shares with their 95 % intervals"
    yield ""
    yield f"{'depth':<14} {'precision':>20} {'recall':>20}"
    for depth in figures.depths:
        yield f"{depth.depth:<14} {_text(depth.precision):>20} {_text(depth.recall):>20}"
    yield ""
    yield f"{'means a stop':<14} {'latched by table':>20} {'latched':>20} {'latched or held':>20}"
    for stop in figures.stops:
        shares = (stop.latched_by_table, stop.latched, stop.latched_or_held)
        yield f"{stop.group:<14} " + " ".join(f"{_text(share):>20}" for share in shares)
    yield ""
    yield f"{'means no stop':<14} {'latched':>20} {'held softly':>20} {'of them shortened':>20}"
    for harmless in figures.harmless:
        shares = (harmless.latched, harmless.held_softly, harmless.shortened)
        yield f"{harmless.group:<14} " + " ".join(f"{_text(share):>20}" for share in shares)
    yield ""
    yield (
        f"plain shouts taken for an order or an amendment: {figures.shouts_taken_for_orders}; "
        f"without a second judge: {figures.shouts_taken_by_table}"
    )
    yield f"lines that lift a stop and do not mean to: {figures.lifted_by_mistake}; that mean to and do: " + _text(
        figures.resumes
    )
    if figures.hold_delay_s:
        holds = figures.needless_holds_a_minute
        yield (
            f"beside {UTTERANCES_A_MINUTE} utterances a minute that mean no stop: {holds:.2f} needless holds a minute, "
            f"{figures.hold_delay_s:.2f} s each: what takes a minute takes {holds * figures.hold_delay_s:.1f} s longer"
        )
    if figures.story is not None:
        alone, talked = figures.story
        yield (
            f"the story of {STORY} in virtual time: done after {alone.lasted_s:.1f} s, {alone.holds_a_minute:.2f} "
            f"needless holds a minute; beside {UTTERANCES_A_MINUTE} short utterances a minute that nobody understands: "
            f"after {talked.lasted_s:.1f} s, {talked.holds_a_minute:.2f}"
        )


def _text(share: SuccessRate) -> str:
    return f"{share.share:.3f} ({share.low:.2f}-{share.high:.2f})" if share.runs else "-"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="polyrhythm eval reflex",
        description="Score the words that stop, change or resume a robot on labelled utterances in twelve languages: "
        "precision and recall per depth, kind and language, and what a soft hold costs. Never prints an utterance.",
        epilog="example: polyrhythm eval reflex --set tuning --json",
    )
    parser.add_argument("--set", default="tuning",
                        help=f"{', '.join(SETS)}, or a file in their form (default: tuning). "
                        "A scoring of the last two because of which something is changed is logged in "
                        "docs/decisions/held-out-sets.md")  # fmt: skip
    parser.add_argument("--story", action="store_true", help=f"what holds cost in the story of {STORY}, too; minutes")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    return parser


def story_costs() -> tuple[StoryCost, StoryCost]:
    """The story as it is, and with somebody beside it who talks all the time. Raises PolyrhythmError where it fails."""
    return _told(()), _told(("--add", TALKER))


def _told(changes: Sequence[str]) -> StoryCost:
    with tempfile.TemporaryDirectory(prefix="story-") as folder:
        asked = ["run", STORY, "--virtual", "--seed", "0", "--for", str(LATEST_S), "--out", folder]
        done = subprocess.run(
            [sys.executable, "-m", "runtime", *asked, "--set", "run.report=", "--json", *changes],
            capture_output=True, text=True, timeout=PATIENCE_S, check=False,
        )  # fmt: skip
        if done.returncode:
            raise PolyrhythmError(f"polyrhythm run {STORY} failed:\n{done.stderr[-1000:]}")
        end_ns = holds = 0
        for record in BagReader(Path(folder) / "run.mcap"):
            end_ns = max(end_ns, record.envelope.published_ns)
            holds += record.topic == "interrupt" and b'"hold"' in record.data
    return StoryCost(end_ns / NS_PER_S, holds)
