"""What to do next in a room with a map, where eyes give things ids: drive there, pick, carry, use or put down.

Pure, as `next_action` is: `Situation` and the map in, a `Decision` out. One thing of a subtask is worked on, by its id.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import msgspec

from nodes.msgs import Argument, SeenObject, Subtask
from nodes.sim.world.world_file import WorldFile
from nodes.vlm.choice.next_action import HAND, MOST_TRIES, Decision, Situation, await_hand, held_up, is_still_good
from runtime import to_s

MOST_DRIVES = 4
SEEN_WITHIN_S = 1.5
"""How long after an action the eyes may still show what was before."""
NEAR_M, NEAR_DRIVE_M = 0.12, 0.3
"""A target that is as near as this to the one before is the same: what is under way is gone on with."""
WITH_THING = ("pick", "place", "take", "rinse", "hand_over", "open", "close", "point")
ANYWHERE = ("look", "nod", "shake", "retreat", "hold", "drive")
"""Skills that need no driving first."""
RESTS = ("table", "countertop")
"""Where anything may be put down."""
LINE_M, HEADING_RAD, ALONG_M = 0.12, 0.10, 2.2
"""A base this near to the line before a place, turned along it, gets to all of it by driving straight."""
ARGUMENT = {"place": "place", "drive": "place", "rinse": "place", "wipe": "place", "hand_over": "person"}


Words = Callable[[str, Situation], tuple[Sequence[SeenObject], bool]]
"""The things that words may mean, and whether they name the first of them."""


@dataclass(frozen=True, slots=True)
class MappedRoom:
    """A map, and what words mean in it."""

    world: WorldFile
    meant: Words


def decide_in(room: MappedRoom, now: Situation) -> Decision:
    """What to do now."""
    task = now.subtask
    held_up_by = held_up(replace(now, is_to_look=False))  # the head turns by itself here
    if held_up_by is not None or task is None:
        return held_up_by or Decision("keep", "idle", "nothing to do")
    wanted = _meant(room, now, task)
    if isinstance(wanted, Decision):
        return wanted
    thing = next((one for one in now.objects if one.id == wanted), None)
    if wanted and thing is None:
        return Decision("keep", "failed", f"I do not see the {task.text or wanted} any more")
    held = _held(now)
    if held is not None and thing is not None and held.id != thing.id:
        return _put_down(room, now, held)
    return _work(room, now, task, thing, held)


def _meant(room: MappedRoom, now: Situation, task: Subtask) -> str | Decision:
    """The id of the thing of a subtask: as its planner says it, or by its words; "" for none. Or what to ask."""
    named = task.things[0] if task.things else None
    if task.skill not in WITH_THING or (named is not None and named.id):
        return named.id if named is not None else ""
    words = f"{named.colour} {named.label}".strip() if named is not None else task.text
    found, is_named = room.meant(words, now)
    if not found or (len(found) == 1 and is_named):
        return found[0].id if found else ""
    names = " or ".join(f"the {one.name}" for one in found)
    return Decision("keep", "failed", f"I am not sure whether {names} is meant by “{words}”")


def _work(
    room: MappedRoom, now: Situation, task: Subtask, thing: SeenObject | None, held: SeenObject | None
) -> Decision:
    place = next((one for one in now.objects if one.is_place and one.label == task.place), None)
    has_it = held is not None and thing is not None and held.id == thing.id
    match task.skill:
        case "place" if thing is not None:
            return _place(room, now, task, thing, place, has_it=has_it)
        case "pick" | "take" if thing is not None:
            return Decision("keep", "finished", f"holding the {thing.name}") if has_it else _get(room, now, thing)
        case "rinse" | "wipe" if thing is not None and place is not None:
            if _has_succeeded(now, task):
                return Decision("keep", "finished", f"done with {task.text}")
            return _do(room, now, task.skill, place, place) if has_it else _get(room, now, thing)
        case "hand_over" if thing is not None:
            return _hand_over(room, now, task, thing, has_it=has_it)
        case "wait_here" if thing is not None:
            if (fills := room.world.fills(task.place)) in thing.state:
                return Decision("keep", "finished", f"there is {fills} in the {thing.name}")
            return Decision("keep", "working", f"waiting at the {task.place}")
        case "put_back" if held is not None:
            return _put_down(room, now, held)
    if _has_succeeded(now, task):
        return Decision("keep", "finished", f"done with {task.text}")
    target = thing or place
    return _do(room, now, task.skill, target, target)


def _place(
    room: MappedRoom, now: Situation, task: Subtask, thing: SeenObject, place: SeenObject | None, *, has_it: bool
) -> Decision:
    is_there = any((one.subject, one.object) == (thing.id, task.place) and one.relation in ("in", "on")
                   for one in now.relations)  # fmt: skip
    if not has_it and is_there:
        return Decision("keep", "finished", f"put the {thing.name} there")
    if _has_succeeded(now, task) and not _is_seen_since(now):
        return Decision("keep", "working", f"looking where the {thing.name} is")
    if place is None:
        return Decision("keep", "failed", f"I know no {task.place}")
    return _do(room, now, "place", _spot_on(room, now, place), thing) if has_it else _get(room, now, thing)


def _hand_over(room: MappedRoom, now: Situation, task: Subtask, thing: SeenObject, *, has_it: bool) -> Decision:
    is_giving = now.doing is not None and now.doing.skill == "hand_over" and now.is_for_task
    is_theirs = is_giving and not has_it and _is_held(now, thing)
    if is_theirs and now.outcome == "running":
        return Decision("keep", "working", f"drawing back from the {thing.name}")
    if is_theirs or _has_succeeded(now, task):
        return Decision("keep", "finished", f"gave the {thing.name}")
    if not has_it:
        return _get(room, now, thing)
    hand = next((one for one in now.objects if one.label == HAND), None)
    return await_hand(thing) if hand is None else _do(room, now, "hand_over", hand, hand)


def _get(room: MappedRoom, now: Situation, thing: SeenObject) -> Decision:
    was_got = now.doing is not None and now.doing.skill in ("pick", "take") and now.outcome == "success"
    if was_got and not _is_seen_since(now):
        return Decision("keep", "working", f"looking whether I hold the {thing.name}")
    return _do(room, now, "take" if _is_held(now, thing) else "pick", thing, thing)


def _put_down(room: MappedRoom, now: Situation, held: SeenObject) -> Decision:
    """On the nearest flat place: what is held is not what is wanted now."""
    flat = [one for one in now.objects if one.is_place and one.height_m == 0.0 and one.label in RESTS]
    nearest = min(flat, key=lambda one: math.dist((one.x_m, one.y_m), now.base[:2]))
    return _do(room, now, "place", _spot_on(room, now, nearest), held)


def _do(room: MappedRoom, now: Situation, skill: str, target: SeenObject | None, about: SeenObject | None) -> Decision:
    """The action, or the way to it; or what is under way, or why it cannot be."""
    name = about.name if about is not None else ""
    is_taking, doing = skill in ("pick", "take"), now.doing
    text = f"picking up the {name}" if is_taking else f"{skill.replace('_', ' ')} {name}".strip()
    step = skill if target is None or skill in ANYWHERE or _is_reached(room, target, now.base) else "drive"
    key = f"{step} {name}"
    is_same = doing is not None and doing.skill == step and now.is_for_task and _is_near(doing.target, target, step)
    if is_same and now.outcome == "running":
        return Decision("keep", "working", text)
    counts = key if is_same and now.outcome == "failure" and not now.is_counted else ""
    tries = now.steps.get(key, 0) + bool(counts)
    if tries >= (MOST_DRIVES if step == "drive" else MOST_TRIES):
        return Decision("keep", "failed", now.why or f"I cannot {text}", code=now.code, counts=counts)
    if tries and now.code == "out_of_reach" and step != "drive":
        return Decision("keep", "failed", now.why, code=now.code, counts=counts)
    say = ""
    if step == "drive" and target is not None:
        where = target.label if target.is_place else name
        say = "Excuse me, may I pass?" if tries else f"I drive to the {where}." if where != HAND else ""
    elif is_taking:
        say = f"I try the {name} again." if tries else f"I will pick up the {name}."
    arguments = () if target is None else (Argument(name=ARGUMENT.get(step, "thing"), thing=target),)
    return Decision(step, "working", text, target, say, arguments, counts=counts)


def _is_reached(room: MappedRoom, target: SeenObject, base: tuple[float, float, float]) -> bool:
    x, y, heading = room.world.stand_for(target.x_m, target.y_m)
    turned = math.remainder(heading - base[2], 2 * math.pi)
    dx, dy = x - base[0], y - base[1]
    beside = -dx * math.sin(heading) + dy * math.cos(heading)
    along = dx * math.cos(heading) + dy * math.sin(heading)
    return abs(turned) < HEADING_RAD and abs(beside) < LINE_M and abs(along) < ALONG_M


def _spot_on(room: MappedRoom, now: Situation, place: SeenObject) -> SeenObject:
    """Where on a flat place there is room; a box as it is."""
    found, held = room.world.places.get(place.label), _held(now)
    if found is None or place.height_m > 0.0:
        return place
    taken = [(one.x_m, one.y_m) for one in now.objects if not one.is_place and one != held]
    best = found.free_point_m(taken)
    x, y = best
    doing = now.doing if now.outcome == "running" else None
    if doing is not None and doing.skill in ("place", "drive") and doing.target is not None:
        before = (doing.target.x_m, doing.target.y_m)
        x, y = before if found.holds(*before) and is_still_good(before, best, taken) else best
    spot: SeenObject = msgspec.structs.replace(place, x_m=x, y_m=y)  # type: ignore[type-var]  # a Struct
    return spot


def _held(now: Situation) -> SeenObject | None:
    """What is in the gripper, as the eyes see it."""
    ids = {one.subject for one in now.relations if one.relation == "held by" and one.object == "robot"}
    return next((one for one in now.objects if one.id in ids), None)


def _is_held(now: Situation, thing: SeenObject) -> bool:
    return any(one.subject == thing.id and one.relation == "held by" for one in now.relations)


def _has_succeeded(now: Situation, task: Subtask) -> bool:
    is_mine = now.doing is not None and now.is_for_task and now.doing.skill == task.skill
    return is_mine and now.outcome == "success"


def _is_seen_since(now: Situation) -> bool:
    """Whether the eyes show by now what the last success has changed."""
    return to_s(now.now_ns - now.succeeded_ns) >= SEEN_WITHIN_S


def _is_near(one: SeenObject | None, other: SeenObject | None, step: str) -> bool:
    if one is None or other is None:
        return one is other
    return math.dist((one.x_m, one.y_m), (other.x_m, other.y_m)) < (NEAR_DRIVE_M if step == "drive" else NEAR_M)
