"""Stand-ins for a planner's and a vision model, each a function of one request: its messages and its image.

They remember nothing between two requests and know no clock, no robot and no simulator. What the prompt does not say
and the image does not show, they do not know. `StandInPlanner` understands a handful of English sentences;
`StandInEyes` tells things apart by colour, as a model that was trained on nothing else.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import cv2
import numpy as np

from nodes.perception.colors import COLOURS, colour_codes
from tests.support.servers.fake_openai_server import Request

_WORDS = r'("(?:[^"\\]|\\.)*")'


def found(pattern: str, text: str) -> list[Any]:
    """All matches of a pattern in which a quoted text is written as QUOTED; quoted texts without their quotes."""
    whole = re.compile(pattern.replace("QUOTED", _WORDS), re.MULTILINE)
    read = [tuple(_bare(one) for one in match.groups()) for match in whole.finditer(text)]
    return [one[0] if len(one) == 1 else one for one in read]


def _bare(text: str | None) -> str:
    return json.loads(text) if text is not None and text.startswith('"') else text or ""


@dataclass(frozen=True)
class Wish:
    """What the person wants now, as far as their words say it."""

    skill: str = ""
    label: str = ""
    colour: str = ""
    place: str = ""
    relation: str = ""
    count: int = 1  # 0: all
    spared: frozenset[str] = frozenset()
    asks: str = ""
    since: int = 0  # where in the history the words that it comes of are

    @property
    def text(self) -> str:
        """The subtask in one sentence."""
        all_ = "every" if self.count == 0 else "the"
        but = f" but not the {' or the '.join(sorted(self.spared))} one" if self.spared else ""
        what = " ".join(one for one in (all_, self.colour, self.label) if one)
        where = {"place": f" {self.relation} the {self.place}", "hand_over": " to the person"}.get(self.skill, "")
        return f"{ {'place': 'Put', 'hand_over': 'Give', 'point': 'Point at'}[self.skill] } {what}{where}{but}"


@dataclass
class StandInPlanner:
    """Reads the conversation and the report; answers as the prompt asks for."""

    asked: list[str] = field(default_factory=list)  # every question, for a test to read

    def __call__(self, request: Request) -> str:
        text = request.user_text
        self.asked.append(text)
        return json.dumps(self.answer(text))

    def answer(self, text: str) -> dict[str, object]:
        """The answer to one question."""
        history, _, report = text.partition("\n\n")
        if "The robot has not looked yet" in report:
            return {"do": "keep"}
        things = self._things(report)
        wish = self._wish(history, things)
        if wish is None:
            return {"do": "keep"}
        if wish.asks:
            return {"do": "keep", "say": "" if f'You said "{wish.asks}"' in history else wish.asks}
        planned = found(r"\[you set the subtask: \w+, QUOTED\]", history[wish.since :])
        if wish.text not in planned:
            missing = wish.label not in {label for label, _ in things} and wish.skill != ""
            return self._work(wish) if not missing else {"do": "keep", "say": f"I see no {wish.label}."}
        return self._report(wish, report)

    def _work(self, wish: Wish) -> dict[str, object]:
        return {
            "do": "work",
            "skill": wish.skill,
            "things": [{"label": wish.label, "colour": wish.colour, "count": wish.count}],
            "excluding": [{"label": wish.label, "colour": colour} for colour in sorted(wish.spared)],
            "place": wish.place,
            "relation": wish.relation,
            "text": wish.text,
            "say": "All right." if wish.spared else f"Sure. I will {wish.text[0].lower()}{wish.text[1:]}.",
        }

    def _report(self, wish: Wish, report: str) -> dict[str, object]:
        """What became of it, as measured."""
        if not found(r"The subtask now: (work), ", report):
            return {"do": "keep"}
        ((progress, told),) = found(r"The vision model reports \((\w+)\): QUOTED", report)
        if progress == "failed":
            why = found(r"It failed, because QUOTED", report)
            return {"do": "wait", "text": "Wait", "say": f"I give up: {why[0] if why else told}"}
        if progress != "finished":
            return {"do": "keep"}
        moved = re.findall(r"^Moved (\d+) of (\d+) things: (.*)\.$", report, re.MULTILINE)
        done = {
            "place": f"I am done. I moved {moved[0][0]} of {moved[0][1]}: {moved[0][2]}." if moved else "",
            "point": f"That is the {wish.label}.",
            "hand_over": f"You have the {wish.label}.",
        }[wish.skill]
        if not done:
            return {"do": "wait", "text": "Wait", "say": f"I moved nothing: {told}"}
        return {"do": "done", "text": "Done", "say": done}

    def _things(self, report: str) -> list[tuple[str, str]]:
        """Label and colour of each thing that the report lists."""
        names = [name for _, name in found(r"^- thing QUOTED: QUOTED", report)]
        return [(name.split()[-1], " ".join(name.split()[:-1])) for name in names]

    def _wish(self, history: str, things: list[tuple[str, str]]) -> Wish | None:
        """What all that people said comes to; None where nothing is wanted."""
        wish: Wish | None = None
        for line in re.finditer(r"^.*$", history, re.MULTILINE):
            for _, said in found(r"^QUOTED said QUOTED", line[0]):
                new = self._heard(said.lower(), wish, things)
                wish = new if new is None or new is wish else replace(new, since=line.start())
        return wish

    def _heard(self, words: str, wish: Wish | None, things: list[tuple[str, str]]) -> Wish | None:
        spared = frozenset(re.findall(r"\bnot the (\w+) one\b", words))
        if place := re.search(r"\bput the (\w+?)(s?) (in|on) the (\w+)", words):
            label, many, relation, where = place.groups()
            return self._meant(Wish("place", label, "", where, relation, 0 if many else 1, spared), things)
        if shown := re.search(r"\bpoint at the (\w+)", words):
            return Wish("point", shown[1])
        if given := re.search(r"\bgive me the (\w+)", words):
            return Wish("hand_over", given[1])
        if wish is not None and spared:
            return replace(wish, spared=wish.spared | spared)
        if wish is not None and wish.asks and (one := re.match(r"the (\w+) one\b", words)):
            return replace(wish, colour=one[1], asks="")
        return None if words.startswith("thank") else wish

    def _meant(self, wish: Wish, things: list[tuple[str, str]]) -> Wish:
        """The wish, or the question where it could mean several things."""
        colours = sorted(colour for label, colour in things if label == wish.label)
        if wish.count == 0 or len(colours) < 2:
            return wish
        return replace(wish, asks=f"Which {wish.label} do you mean, the {' or the '.join(colours)} one?")


@dataclass
class StandInEyes:
    """Reads one question and looks at one image; `names` says what is of which colour, and `places` what is a place."""

    names: Mapping[str, str]
    places: frozenset[str]
    least_px: int = 25
    asked: list[str] = field(default_factory=list)

    def __call__(self, request: Request) -> str:
        self.asked.append(request.user_text)
        (url,) = request.image_urls
        data = np.frombuffer(base64.b64decode(url.partition(",")[2]), np.uint8)
        image = cv2.imdecode(data, cv2.IMREAD_COLOR)
        assert image is not None
        return json.dumps(self.answer(request.user_text, self.seen(np.asarray(image, np.uint8))))

    def seen(self, image: np.ndarray[Any, np.dtype[np.uint8]]) -> list[dict[str, Any]]:
        """Patches of one strong colour, or of a white that is brighter than all around, as things."""
        hsv = np.asarray(cv2.cvtColor(image, cv2.COLOR_BGR2HSV), np.uint8)
        codes = colour_codes(hsv.reshape(-1, 3)).reshape(image.shape[:2])
        strong = (hsv[:, :, 1] > 120) & (hsv[:, :, 2] > 30)
        pale = (hsv[:, :, 1] < 30) & (hsv[:, :, 2] > 165)
        table = (abs(hsv[:, :, 0].astype(int) - 108) < 12) & (abs(hsv[:, :, 1].astype(int) - 60) < 25)
        things: list[dict[str, Any]] = []
        boxes: list[tuple[float, float, float, float]] = []
        for colour, label in self.names.items():
            mask = pale if colour == "white" else strong & (codes == COLOURS.index(colour))
            _, numbers, statistics, middles = cv2.connectedComponentsWithStats(mask.astype(np.uint8), connectivity=8)
            for number, (left, top, width, height, pixels) in enumerate(statistics[1:], start=1):
                u, v = middles[number]
                if colour == "white" and not _stands_on(table, numbers == number, width, height):
                    continue  # walls and tiles are as pale as a white cup
                is_whole = left > 0 and top > 0 and left + width < image.shape[1] and top + height < image.shape[0]
                if pixels >= self.least_px and (is_whole or label in self.places):
                    is_place = label in self.places
                    one = {"label": label, "colour": colour, "u": float(u), "v": float(v), "is_place": is_place}
                    things.append(one)
                    if is_place:
                        boxes.append((left, top, left + width, top + height))
        if boxes:  # what an arm hides a part of is one place in several patches
            left, top = (min(one[side] for one in boxes) for side in (0, 1))
            right, bottom = (max(one[side] for one in boxes) for side in (2, 3))
            things = [
                one for one in things if one["is_place"] or not (left < one["u"] < right and top < one["v"] < bottom)
            ]
        return things

    def answer(self, text: str, things: list[dict[str, Any]]) -> dict[str, object]:
        """What to do next for the subtask, of what is seen and remembered."""
        known = [
            {"label": name.split()[-1], "colour": " ".join(name.split()[:-1]), "is_place": kind == "place", "id": ident,
             "in": place}
            for kind, ident, name, place in found(r"^Remembered (thing|place) QUOTED: QUOTED(?:, in QUOTED)?", text)
        ]  # fmt: skip
        objects = [*things, *known]
        answer: dict[str, object] = {"objects": [{k: v for k, v in one.items() if k != "in"} for one in objects]}
        ((task,),) = (found(r"^The subtask: QUOTED", text) or [""],)
        if not task or re.search(r"^The robot now: .*: running", text, re.MULTILINE):
            return answer
        wants = re.match(
            r"(Put|Give|Point at) (every|the) (?:(\w+) )?(\w+)(?: (?:in|on) the (\w+)| to the person)?(?: but .*)?$",
            task,
        )
        assert wants is not None, task
        deed, many, colour, label, place = wants.groups()
        spared = re.findall(r"\bnot the (\w+)", task) + re.findall(
            r"\w+", "".join(re.findall(r"^Not to be.*: (.*)\.", text))
        )
        held = found(r"^The robot holds: QUOTED", text)
        did = [
            one
            for line in re.findall(r"^Done for this subtask: (.*)\.$", text, re.MULTILINE)
            for one in found("QUOTED", line)
        ]

        def number(wanted: str, tint: str = "", *, is_place: bool) -> int:
            fits = [
                n for n, one in enumerate(objects)
                if one["label"] == wanted and tint in ("", one["colour"]) and bool(one["is_place"]) == is_place
                and (is_place or (one["colour"] not in spared and not one.get("in")))
            ]  # fmt: skip
            return next(iter(fits), -1)

        target = number(label, colour or "", is_place=False)
        if deed == "Point at":
            return {
                **answer,
                **({"done": True} if did else {"skill": "point", "target": target} if target >= 0 else {}),
            }
        if held:
            where = number(place, is_place=True) if place else -1
            step = (
                {"skill": "hand_over"} if deed == "Give" else {"skill": "place", "place": where} if where >= 0 else {}
            )
            return {**answer, **step}
        ends = [one for one in did if one.startswith(("place ", "hand over "))]
        if target < 0 or (ends and many == "the"):
            return {**answer, "done": True}
        name = f"{objects[target]['colour']} {label}".strip()
        return {**answer, "skill": "pick", "target": target, "say": f"I will pick up the {name}."}


def _stands_on(table: np.ndarray[Any, np.dtype[np.bool_]], one: np.ndarray[Any, Any], width: int, height: int) -> bool:
    """Whether a patch is upright, and much of what is around it is a table."""
    around = (cv2.dilate(one.astype(np.uint8), np.ones((5, 5), np.uint8)) > 0) & ~one
    return width < height < 2.5 * width and float(table[around].mean()) > 0.2
