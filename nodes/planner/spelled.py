"""Words that only who sees the scene can tell, written out: a name that was given, "the second cup from the left".

What is on the left is so for who speaks. Where nobody sees them, the robot's side and the one across are both told, and
it is asked which is meant.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence

import msgspec

from nodes.planner.languages import english_words
from nodes.planner.scene_text import from_left
from runtime.msgs import Scene, SeenObject, SeenPerson

BESIDE_M = 0.05
"""What stands next to something is nearer to it than all others by this."""
BETWEEN_M = 0.12
"""What stands between two things is no further from the line that joins them."""
_NUMBERS = {"first": 0, "second": 1, "third": 2, "fourth": 3, "fifth": 4, "last": -1}
_NUMBER = rf"(?:(?P<number>{'|'.join(_NUMBERS)}) )?"
_SIDE = r"(?P<side>left|right|middle)"
_IS = r"(?:(?:that|which) (?:is|stands) |standing )?"
_PUTS = re.compile(r"\b(?:put|place|set|move|stand|drop)\b", re.I)
_WHERE_TO = re.compile(r"\b(?:in|on|into|onto|to|away|off|back)\b", re.I)
_NAMING = (
    r"(?:please |let us |we )?(?:call|name) {thing} (?P<name>[a-z]+)",
    r"{thing}(?: is|'s)(?: called| named) (?P<name>[a-z]+)",
    r"the name of {thing} is (?P<name>[a-z]+)", r"{thing}'s name is (?P<name>[a-z]+)",
)  # fmt: skip


class SpelledOut(msgspec.Struct, frozen=True):
    """The words with plain references; and what is to be said beside a question which one is meant."""

    text: str
    aside: str = ""


def spelled_out(text: str, scene: Scene, names: Mapping[str, str], speaker: str = "", kind: str = "") -> SpelledOut:
    """An utterance with names and places in the room as what they mean; `kind` is what "the one" is, "" where open."""
    by_id = {one.id: one for one in scene.things if one.id}
    for name, ident in names.items():
        if ident in by_id and _is_unique(by_id[ident], scene):
            text = re.sub(rf"\b{name}\b", f"the {by_id[ident].name}", text, flags=re.I)
    asides: list[str] = []
    for pattern, find in _ways(scene):

        def meant(found: re.Match[str], find: _Finder = find) -> str:
            label = found["kind"].lower() if found["kind"].lower() != "one" else kind
            things = _candidates(label, scene)
            is_open = not label or (label == kind and found[0].lower().endswith("right one"))  # the one that is meant
            if is_open or not things or (find in (_beside, _between) and _is_goal(found)):
                return found[0]
            chosen = [one for row in _rows(found[0], things, scene, speaker) if (one := find(found, row, scene))]
            if len({one.id for one in chosen}) == 1 and _is_unique(chosen[0], scene):
                return f"the {chosen[0].name}"
            if find is _in_row and len(chosen) > 1:
                asides.append(
                    f"From where I look, that is the {chosen[0].name}; from the other side, the {chosen[-1].name}."
                )
            return found[0]

        text = re.sub(pattern, meant, text, flags=re.I)
    return SpelledOut(text, " ".join(dict.fromkeys(asides)))


def naming(text: str, scene: Scene, names: Mapping[str, str], shown: str = "") -> tuple[Mapping[str, str], str]:
    """The names after an utterance, and what to answer; "" where it gives none. `shown` is what is pointed at."""
    plain = text.strip().rstrip(".!").replace("’", "'")
    described = r"(?:the (?P<words>[a-z ]+?)|(?:this|that)(?: [a-z]+)?|it)"
    found = next((one for way in _NAMING if (one := re.fullmatch(way.format(thing=described), plain, re.I))), None)
    if found is None:
        return names, ""
    name, words = found["name"].lower(), (found["words"] or "").lower()
    things = [one for one in scene.things if (one.name.lower() == words if words else one.id == shown and shown)]
    known = {word for one in (*scene.kinds, *scene.places) for word in one.split()}
    if name in english_words() or name in known or any(name in one.name.split() for one in scene.things):
        return names, f"“{found['name']}” is a word that I know otherwise. Please choose another name."
    if len(things) != 1 or not things[0].id:
        return names, f"I cannot tell which one is to be called {found['name']}. Which one do you mean?"
    if names.get(name, things[0].id) != things[0].id:
        other = next((one.name for one in scene.things if one.id == names[name]), "something else")
        return names, f"{found['name']} is the name of the {other}. Please choose another one for the {things[0].name}."
    return {**names, name: things[0].id}, f"All right, the {things[0].name} is called {found['name']}."


_Finder = Callable[[re.Match[str], Sequence[SeenObject], Scene], SeenObject | None]


def _ways(scene: Scene) -> list[tuple[str, _Finder]]:
    labels = {one.label for one in scene.things if not one.is_place}
    every = {one.name for one in scene.things} | {one.label for one in scene.things}
    kind = rf"(?P<kind>{'|'.join(map(re.escape, sorted(labels, key=len, reverse=True)))}|one)"
    mark = rf"(?:the |a )?(?P<{{}}>{'|'.join(map(re.escape, sorted(every, key=len, reverse=True)))})\b"
    return [
        (rf"\bthe {kind} {_IS}between {mark.format('a')} and {mark.format('b')}", _between),
        (rf"\bthe {kind} {_IS}(?:next to|beside|by|near|nearest(?: to)?|closest to) {mark.format('a')}", _beside),
        (
            rf"\bthe {_NUMBER}{kind} {_IS}(?:on|to|at|from|in) (?:the|your|my) (?:far |very )?{_SIDE}(?:[- ]hand)?"
            r"(?: side)?\b(?! of)",
            _in_row,
        ),
        (rf"\bthe {_NUMBER}{_SIDE}(?:[- ]?most|[- ]hand)? {kind}\b", _in_row),
        (rf"\bthe (?P<far>nearest|closest|furthest|farthest) {kind}\b(?: to (?P<whom>me|you)\b)?", _nearest),
        (rf"\bthe {kind} {_IS}(?P<far>nearest|closest|furthest|farthest)(?: to| from) (?P<whom>me|you)\b", _nearest),
    ]


def _candidates(label: str, scene: Scene) -> list[SeenObject]:
    """All that is called so and stands there; what lies in something only where nothing else is."""
    held = {one.subject for one in scene.relations if one.relation == "held by"}
    inside = {one.subject for one in scene.relations if one.relation == "in"}
    found = [one for one in scene.things if not one.is_place and label in ("", one.label) and one.id not in held]
    return [one for one in found if one.id not in inside] or found


def _is_goal(found: re.Match[str]) -> bool:
    """Whether it says where something is to be put: "put the cup next to the bottle"."""
    return bool(_PUTS.search(found.string[: found.start()])) and not _WHERE_TO.search(found.string[found.end() :])


def _rows(words: str, things: list[SeenObject], scene: Scene, speaker: str) -> list[list[SeenObject]]:
    """The things from left to right, as each sees them from whose side it may be meant; the robot's comes first."""
    if len(things) == 1:
        return [things]
    own = from_left(SeenPerson(id="robot", x_m=0.0, y_m=0.0), things)
    if not own or " your " in words:
        return [own]
    people = [one for one in scene.people if one.id == speaker] or scene.people
    rows = [row for row in (from_left(one, things) for one in people) if row]
    return rows or [own, own[::-1]]


def _in_row(found: re.Match[str], row: Sequence[SeenObject], scene: Scene) -> SeenObject | None:
    number, side = _NUMBERS[(found["number"] or "first").lower()], found["side"].lower()
    if side == "middle":
        return row[len(row) // 2] if len(row) % 2 else None
    ordered = list(row) if side == "left" else list(row)[::-1]
    return ordered[number] if number < len(ordered) else None


def _nearest(found: re.Match[str], row: Sequence[SeenObject], scene: Scene) -> SeenObject | None:
    """As seen by the robot, or by the only person that there is."""
    is_robot = (found["whom"] or "").lower() == "you"
    if not is_robot and len(scene.people) != 1:
        return None
    person = SeenPerson(id="robot", x_m=0.0, y_m=0.0) if is_robot else scene.people[0]
    at = person.hand_m[:2] if person.hand_m is not None else (person.x_m, person.y_m)
    ordered = sorted(row, key=lambda one: math.dist(at, (one.x_m, one.y_m)))
    return ordered[0 if found["far"].lower() in ("nearest", "closest") else -1]


def _mark(words: str, scene: Scene) -> SeenObject | None:
    found = [one for one in scene.things if words.lower() in (one.name, one.label)]
    return found[0] if len(found) == 1 else None


def _beside(found: re.Match[str], row: Sequence[SeenObject], scene: Scene) -> SeenObject | None:
    mark = _mark(found["a"], scene)
    if mark is None:
        return None
    far = sorted((math.dist((one.x_m, one.y_m), (mark.x_m, mark.y_m)), one.id, one) for one in row if one.id != mark.id)
    is_clear = len(far) == 1 or (len(far) > 1 and far[1][0] - far[0][0] > BESIDE_M)
    return far[0][2] if is_clear else None


def _between(found: re.Match[str], row: Sequence[SeenObject], scene: Scene) -> SeenObject | None:
    one, two = _mark(found["a"], scene), _mark(found["b"], scene)
    if one is None or two is None or one.id == two.id:
        return None
    (ax, ay), (bx, by) = (one.x_m, one.y_m), (two.x_m, two.y_m)
    length = math.dist((ax, ay), (bx, by)) or 1.0
    inside = []
    for thing in row:
        along = ((thing.x_m - ax) * (bx - ax) + (thing.y_m - ay) * (by - ay)) / length
        aside = abs((thing.x_m - ax) * (by - ay) - (thing.y_m - ay) * (bx - ax)) / length
        if 0.0 < along < length and aside < BETWEEN_M and thing.id not in (one.id, two.id):
            inside.append(thing)
    return inside[0] if len(inside) == 1 else None


def _is_unique(thing: SeenObject, scene: Scene) -> bool:
    """Whether nothing else is called so."""
    return sum(one.name == thing.name for one in scene.things) == 1
