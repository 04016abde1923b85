"""A scenario file: what stands where, what a person says and does when, and what counts as right and as wrong.

Conditions are about the simulator's world: "red mug in sink", "red mug held by person", "apple clean", "glass emptied",
"blue mug moved", "table clean", "jar open", "mug contains coffee", "hand touched"; "not" before any of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from nodes.kitchen.messages import KitchenThing, KitchenTruth
from nodes.kitchen.world import Kitchen, ThingSpec, lay_out, load_world
from runtime.errors import UserError, choices
from runtime.serialization.toml_errors import read_toml

SHIPPED = Path(__file__).with_name("scenarios")
WHENS = ("start", "then", "said", "is", "ever")
"""At the start; after the event before; when the robot has said a pattern; when a condition of the world holds; when
it has held for once."""
DOES = (
    "offer hand", "hold out", "point at", "nod", "shake", "look at", "withdraw", "rest at", "step in", "step aside",
    "put", "bring",
)  # fmt: skip
_CONDITION = re.compile(
    r"(?P<no>not )?(?:(?P<thing>.+?) (?P<how>in|on|held by|contains) (?P<what>.+)|"
    r"(?P<part>hand|body|foot|face) touched|"
    r"(?P<subject>.+?) (?P<state>clean|dirty|open|closed|emptied|moved|full|empty))"
)


class ScenarioEvent(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One thing that a person says (the name of a list of wordings, or the words), does, or both."""

    when: str
    after_s: float = 1.0
    say: str = ""
    do: str = ""


class SuccessCriteria(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`right` holds in the end, nothing of `wrong` ever does."""

    right: tuple[str, ...]
    wrong: tuple[str, ...] = ()


class KitchenScenario(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One file."""

    sentence: str
    skill: int
    things: tuple[ThingSpec, ...]
    events: tuple[ScenarioEvent, ...]
    verdict: SuccessCriteria
    words: dict[str, tuple[str, ...]] = {}
    dirty: tuple[str, ...] = ()
    person: str = "Ann"
    patience_s: float = 120.0
    quiet_s: float = 25.0
    world: str = ""  # another world file


@cache
def load_scenario(path: Path) -> KitchenScenario:
    """The scenario of a file, or the shipped one of a name; one that can succeed. Raises UserError."""
    path = path if path.suffix else SHIPPED / f"{path}.toml"
    try:
        found = msgspec.convert(read_toml(path), KitchenScenario)
    except (UserError, msgspec.ValidationError) as problem:
        raise UserError(f"scenario {path}: {problem}") from problem
    if problems := problems_of(found):
        raise UserError(f"scenario {path}: {'; '.join(problems)}")
    return found


def wordings_of(path: Path, name: str) -> dict[str, tuple[str, ...]]:
    """The wordings of one scenario in a file with a table for each. Raises UserError."""
    try:
        data: dict[str, Any] = read_toml(path)
        return {
            slot: texts
            for slot, texts in msgspec.convert(data.get(name, {}), dict[str, tuple[str, ...]]).items()
            if texts
        }
    except (UserError, msgspec.ValidationError) as problem:
        raise UserError(f"wordings {path}: {problem}") from problem


def problems_of(scenario: KitchenScenario) -> list[str]:
    """Why the file cannot be played, or cannot succeed."""
    world = load_world(Path(scenario.world) if scenario.world else None)
    try:
        laid = lay_out(world, scenario.things, 0).things
    except UserError as problem:
        return [str(problem)]
    found: list[str] = []
    known = {one.words: one.spec for one in laid} | {one.spec.kind: one.spec for one in laid}
    if not 1 <= scenario.skill <= 9:
        found.append(f"skill is {scenario.skill}; expected 1 to 9")
    for event in scenario.events:
        kind, _, what = event.when.partition(": ")
        if kind not in WHENS or (kind in ("said", "is", "ever") and not what):
            found.append(f"event when {event.when!r}; expected one of {', '.join(WHENS)}, the last three with ': ...'")
        elif kind == "said":
            try:
                re.compile(what)
            except re.error as problem:
                found.append(f"event when {event.when!r}: {problem}")
        elif kind in ("is", "ever"):
            found += _condition_problems(what, known, world)
        does = next((one for one in DOES if event.do == one or event.do.startswith(one + " ")), "")
        if event.do and not does:
            found.append(f"event do {event.do!r}; expected one of {', '.join(DOES)}")
        if event.do and (thing := thing_of(event.do, does)) and thing not in known and thing not in world.places:
            found.append(f"event do {event.do!r}: there is no {thing!r}; things: {choices(known)}")
        if not event.say and not event.do:
            found.append(f"event when {event.when!r} neither says nor does anything")
    found += [f"[words] {name}: no wording; expected one at least" for name, said in scenario.words.items() if not said]
    if not scenario.verdict.right:
        found.append("[verdict] right is empty; expected what holds in the end, as ['red mug on tray']")
    for condition in (*scenario.verdict.right, *scenario.verdict.wrong):
        found += _condition_problems(condition, known, world)
    for condition in scenario.verdict.right:
        found += _unreachable(condition, known, world, scenario)
    return found


def thing_of(do: str, does: str) -> str:
    """What a deed is about: "red mug" of "put red mug on tray"."""
    return re.split(r" (?:on|in|at|near) ", do.removeprefix(does).strip())[0]


def _condition_problems(condition: str, known: Mapping[str, ThingSpec], world: Kitchen) -> list[str]:
    found = _CONDITION.fullmatch(condition)
    if found is None:
        return [f"condition {condition!r}; expected such as 'red mug in sink', 'apple clean' or 'blue mug moved'"]
    subject = found["thing"] or found["subject"]
    if found["part"]:
        return []
    if subject not in known and subject not in world.places:
        return [f"condition {condition!r}: there is no {subject!r}; things: {choices(known)}"]
    if found["how"] in ("in", "on") and found["what"] not in (*world.places, "floor"):
        return [f"condition {condition!r}: there is no place {found['what']!r}; places: {choices(world.places)}"]
    return []


def _unreachable(
    condition: str, known: Mapping[str, ThingSpec], world: Kitchen, scenario: KitchenScenario
) -> list[str]:
    """A thing that has to be moved, that no arm gets to or no gripper holds, and that nobody's hands help with."""
    found = _CONDITION.fullmatch(condition)
    if found is None or found["no"]:
        return []
    subject = found["thing"] or (found["subject"] if found["state"] in ("clean", "open") else "")
    spec = known.get(subject or "")
    if spec is None or (found["how"] in ("in", "on") and spec.at == found["what"]):
        return []
    if found["state"] == "clean" and not spec.dirty:
        return []
    is_helped = any(
        (
            event.do.startswith(("put ", "bring ", "hold out "))
            and thing_of(event.do, event.do.split()[0]) in (subject, spec.kind)
        )
        or (event.do.startswith("hold out ") and event.do.removeprefix("hold out ") in (subject, spec.kind))
        for event in scenario.events
    )
    if is_helped:
        return []
    if not spec.reach:
        return [f"it cannot succeed: the {subject} stands out of reach, and no event brings it nearer"]
    if not world.kinds[spec.kind].is_graspable:
        return [f"it cannot succeed: the {subject} is too wide for the gripper, and no event moves it"]
    if spec.stuck and found["state"] == "open":
        return [f"it cannot succeed: the lid of the {subject} is stuck"]
    return []


def holds(condition: str, truth: KitchenTruth) -> bool:
    """Whether a condition holds in the world. Raises UserError for one that is none."""
    found = _CONDITION.fullmatch(condition)
    if found is None:
        raise UserError(f"condition {condition!r} is none")
    is_so = found["part"] in truth.touched if found["part"] else _holds(found, truth)
    return is_so != bool(found["no"])


def _holds(found: re.Match[str], truth: KitchenTruth) -> bool:
    subject, state = found["thing"] or found["subject"], found["state"]
    things = named(subject, truth.things)
    if not things:  # a place
        return (subject in truth.dirty_places) == (state == "dirty")
    match found["how"]:
        case "in" | "on":
            return all(one.place == found["what"] for one in things)
        case "held by":
            return all(one.held_by == found["what"] for one in things)
        case "contains":
            return all(found["what"] in one.contents for one in things)
    match state:
        case "moved":
            return any(one.was_lifted for one in things)
        case "emptied":
            return any(one.is_emptied for one in things)
        case "clean" | "dirty":
            return all(one.is_dirty == (state == "dirty") for one in things)
        case "open" | "closed":
            return all(one.is_open == (state == "open") for one in things)
    return all((one.fill > 0.0) == (state == "full") for one in things)


def named(words: str, things: Sequence[KitchenThing]) -> list[KitchenThing]:
    """The things that are called so: "red mug", or "mug" for all of them."""
    return [one for one in things if words in (one.kind, f"{one.colour} {one.kind}")]
