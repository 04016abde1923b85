"""`polyrhythm eval understanding`: labelled utterances, and what the scripted planner would do on each of them.

No physics: an utterance goes through the parser and the planner's rules, in a fixed kitchen. It is right where the
deed, the skill, the things, what is left out and the place are all as labelled; a field that a label does not state is
not compared. A *wrong deed* is one that the robot would carry out and that was not asked for; asking or refusing is
none.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from nodes.evaluation.labelled_sets import read_set
from nodes.planner.orders import Order, OrderVocabulary
from nodes.planner.words.parser import parser_of
from nodes.planner.words.understanding import Conversation, Intent, after_robot, understand_in
from nodes.statistics.paired import wilson
from runtime.command_line.arguments import answered

FIELDS = ("deed", "skill", "things", "except", "place")
FOLDER = Path(__file__).with_name("utterances")
SETS = {
    "tuning": FOLDER / "understanding_tuning.jsonl",
    "heldout": FOLDER / "understanding_heldout.jsonl",
    "fresh-tuning": FOLDER / "fresh_tuning.jsonl",
    "fresh-heldout": FOLDER / "fresh_heldout.jsonl",
}
KITCHEN = OrderVocabulary(
    kinds=frozenset(
        ("cup", "mug", "glass", "plate", "bowl", "bottle", "can", "box", "sponge", "apple", "banana", "orange",
         "cookie jar")
    ),
    places=frozenset(("table", "countertop", "shelf", "sink", "tray", "bin")),
    skills=frozenset(
        ("pick", "place", "put_back", "hand_over", "take", "rinse", "wipe", "open", "close", "look", "point", "nod",
         "wait", "retreat", "drive", "undo")
    ),
    waste=frozenset(("bin",)),
)  # fmt: skip
"""The kitchen that the utterances are about; it has more skills than any robot of ours."""


class LabelledThing(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A thing of a label."""

    kind: str
    color: str = ""


class EarlierLine(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What was said before."""

    who: Literal["person", "robot"]
    text: str


class LabelledUtterance(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One line of a set."""

    text: str
    deed: Literal["do", "ask", "refuse", "answer", "nothing"]
    skill: str = ""
    things: tuple[LabelledThing, ...] = ()
    excepted: tuple[LabelledThing, ...] = msgspec.field(name="except", default=())
    place: str = ""
    relation: str = ""
    count: int | Literal["all", "both"] | None = None
    source: str | None = msgspec.field(name="from", default=None)
    tags: tuple[str, ...] = ()
    context: tuple[EarlierLine, ...] = ()


@dataclass(frozen=True, slots=True)
class UtteranceScore:
    """How one utterance was understood."""

    labelled: LabelledUtterance
    deed: str
    wrong: tuple[str, ...]  # what differs: "deed", "skill", "things", "except", "place"

    @property
    def is_wrong_deed(self) -> bool:
        """Whether the robot would have done what nobody asked for."""
        return bool(self.wrong) and self.deed == "do"


def main(argv: list[str]) -> int:
    """0; 2 where it was asked wrongly."""
    parser = argparse.ArgumentParser(
        prog="polyrhythm eval understanding",
        description="How well the scripted planner understands labelled utterances: right, and wrong deeds.",
        epilog="example: polyrhythm eval understanding --set tuning --wrong. The held-out sets tell no texts.",
    )
    parser.add_argument("--set", default="tuning", help=f"{', '.join(SETS)}, or a file in their form (default: tuning)")
    parser.add_argument("--wrong", action="store_true", help="list what was understood wrongly (of no held-out set)")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    asked = parser.parse_args(argv)
    return answered("polyrhythm eval understanding", lambda: _evaluate(asked))


def _evaluate(asked: argparse.Namespace) -> int:
    lines, sha256 = read_set(asked.set, SETS, LabelledUtterance)
    scores = [score(line) for line in lines]
    figures = {"set": asked.set, "sha256": sha256, **figures_of_scores(scores)}
    if asked.json:
        print(json.dumps(figures))
        return 0
    print(_table(figures))
    if asked.wrong and asked.set not in ("heldout", "fresh-heldout"):
        for one in scores:
            if one.wrong:
                print(f"{one.labelled.deed} -> {one.deed} ({', '.join(one.wrong)}): {one.labelled.text}")
    return 0


_PARSER = parser_of(KITCHEN)


def score(labelled: LabelledUtterance) -> UtteranceScore:
    """One utterance, after what was said before it."""
    talk = Conversation()
    for line in labelled.context:
        if line.who == "robot":
            talk = after_robot(line.text, talk, _PARSER)
        else:
            _, talk = understand_in(line.text, KITCHEN, talk, _PARSER)
    intent, _ = understand_in(labelled.text, KITCHEN, talk, _PARSER)
    return UtteranceScore(labelled, intent.deed, tuple(_differences(labelled, intent)))


def _differences(labelled: LabelledUtterance, intent: Intent) -> list[str]:
    if intent.deed != labelled.deed:
        return ["deed"]
    excepted = {(one.kind, one.color) for one in labelled.excepted}
    if labelled.deed == "nothing":
        named = [one.named for one in intent.unnamed if one.named is not None]  # "leave it", where one was named
        told = [{(one.label, one.colour) for one in left} for left in (intent.protected, (*intent.protected, *named))]
        return [] if excepted in told else ["except"]
    if labelled.deed != "do" or not labelled.skill:  # several orders, which a label does not list
        return []
    order = intent.orders[-1]
    things = {(one.label, one.colour) for one in order.things}
    checks = {
        "skill": len(intent.orders) == 1 and _skill(order.skill) == _skill(labelled.skill),
        "things": things == {(one.kind, one.color) for one in labelled.things} and _is_as_stated(labelled, order),
        "except": {(one.label, one.colour) for one in order.excluding} == excepted,
        "place": order.place == labelled.place and labelled.relation in ("", order.relation),
    }
    return [name for name, is_right in checks.items() if not is_right]


def _skill(name: str) -> str:
    return "put_back" if name == "undo" else name


def _is_as_stated(labelled: LabelledUtterance, order: Order) -> bool:
    """Whether number and origin of the things are as the label says, where it does."""
    count = {"all": 0, "both": 2}.get(str(labelled.count), labelled.count)
    is_counted = count is None or all(one.count == count for one in order.things)
    return is_counted and (labelled.source is None or all(one.source == labelled.source for one in order.things))


def figures_of_scores(scores: Sequence[UtteranceScore]) -> dict[str, object]:
    """Shares with 95 % intervals, in all, by deed and by tag."""
    deeds = dict.fromkeys(one.labelled.deed for one in scores)
    tags = sorted({tag for one in scores for tag in one.labelled.tags})
    return {
        **_figure(scores),
        "wrong_deeds": _share(sum(one.is_wrong_deed for one in scores), len(scores)),
        "differing": {field: sum(field in one.wrong for one in scores) for field in FIELDS},
        "by_deed": {deed: _figure([one for one in scores if one.labelled.deed == deed]) for deed in deeds},
        "by_tag": {tag: _figure([one for one in scores if tag in one.labelled.tags]) for tag in tags},
    }


def _figure(scores: Sequence[UtteranceScore]) -> dict[str, object]:
    return {"count": len(scores), "right": _share(sum(not one.wrong for one in scores), len(scores))}


def _share(part: int, whole: int) -> dict[str, float]:
    low, high = wilson(part, whole)
    return {"count": part, "share": part / whole if whole else 0.0, "low": low, "high": high}


def _table(figures: dict[str, object]) -> str:
    lines = [f"{figures['set']}: {figures['count']} utterances, sha256 {str(figures['sha256'])[:12]}"]
    for name in ("right", "wrong_deeds"):
        lines.append(f"  {name.replace('_', ' '):<16}{_text(figures[name])}")
    differing = figures["differing"]
    assert isinstance(differing, dict)
    lines.append(f"  differing       {', '.join(f'{name} {count}' for name, count in differing.items())}")
    for group in ("by_deed", "by_tag"):
        found = figures[group]
        assert isinstance(found, dict)
        lines.append(f"right {group.replace('_', ' ')}")
        lines += [f"  {name:<16}{_text(one['right'])} of {one['count']}" for name, one in found.items()]
    return "\n".join(lines)


def _text(share: object) -> str:
    assert isinstance(share, dict)
    return f"{share['share']:6.1%}  ({share['low']:.1%} to {share['high']:.1%}) {share['count']:4d}"
