"""What to do next: one table from the subtask and what is believed to the next action. It is pure.

A thing is picked, then brought, given or used. A robot that stands is at all of it; one that drives in a room with a
map goes there first, where its arm does not reach: a step as any other. What is under way is gone on with unless it is
about something else, or its place has become clearly worse.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from nodes.msgs import Argument, SeenObject, SkillArgument, Subtask, aimed_at
from nodes.vlm.choice.giving_up import LOOKS_TO_BE_SURE, MOST_DRIVES, MOST_TRIES, given_up
from nodes.vlm.choice.situation import Decision, Situation
from nodes.vlm.choice.things import (
    GAZES,
    HAND,
    before,
    destination,
    free_spot,
    is_excluded,
    is_from,
    is_in,
    is_meant_by,
    is_on_floor,
    is_one_of,
    is_same,
    is_still_good,
    moved_to,
    place_of,
    spot,
    wanted,
)
from runtime import to_s

if TYPE_CHECKING:
    from nodes.sim.world.world_file import WorldFile

LOOK_ROUND, LOOKS_ROUND = "look_round", "I look round."
"""The skill by which the head alone turns, before anything is known, and what is said of it."""
AWAY_M = 0.12
"""A hand that is further from where it was is drawn away; what the gripper hides of it moves it by a third of that."""
FALLEN_M = 0.2
"""What falls from a hand is seen this near to it."""
SEEN_WITHIN_S = 1.5
"""How long after an action the eyes may still show what was before."""
NEAR_M, NEAR_DRIVE_M = 0.12, 0.3
"""A target that is as near as this to the one before is the same: what is under way is gone on with."""
CARRIES = ("place", "pick", "hand_over")
"""Subtasks about things that are taken one after the other."""
WITH_THING = (*CARRIES, "take", "rinse", "open", "close", "point")
ANYWHERE = ("look", "nod", "shake", "retreat", "hold", "drive")
"""Skills that need no driving first."""
RESTS = ("table", "countertop")
"""Where anything may be put down."""
LINE_M, HEADING_RAD, ALONG_M = 0.12, 0.10, 2.2
"""A base this near to the line before a place, turned along it, gets to all of it by driving straight."""

Words = Callable[[str, Situation], tuple[Sequence[SeenObject], bool]]
"""The things that words may mean, and whether they name the first of them."""


@dataclass(frozen=True, slots=True)
class MappedRoom:
    """A room that a robot drives in, with a map: its eyes give things ids, and a subtask is about one of them."""

    world: WorldFile
    meant: Words

    def about(self, now: Situation, task: Subtask) -> SeenObject | Decision | None:
        """The thing of a subtask, as its planner says it or by its words; or what to ask."""
        named = task.things[0] if task.things else None
        ident = named.id if named is not None else ""
        if task.skill in WITH_THING and not ident:
            words = f"{named.colour} {named.label}".strip() if named is not None else task.text
            found, is_named = self.meant(words, now)
            if found and (len(found) > 1 or not is_named):
                names = " or ".join(f"the {one.name}" for one in found)
                return Decision("keep", "failed", f"I am not sure whether {names} is meant by “{words}”")
            ident = found[0].id if found else ""
        thing = next((one for one in now.objects if one.id == ident), None)
        if ident and thing is None:
            return Decision("keep", "failed", f"I do not see the {task.text or ident} any more")
        return thing

    def reaches(self, target: SeenObject, base: tuple[float, float, float]) -> bool:
        """Whether the arm does from there."""
        x, y, heading = self.world.stand_for(target.x_m, target.y_m)
        turned = math.remainder(heading - base[2], 2 * math.pi)
        dx, dy = x - base[0], y - base[1]
        beside = -dx * math.sin(heading) + dy * math.cos(heading)
        along = dx * math.cos(heading) + dy * math.sin(heading)
        return abs(turned) < HEADING_RAD and abs(beside) < LINE_M and abs(along) < ALONG_M


# --- what may be done at all


def held_up(now: Situation) -> Decision | None:
    """What is done while nothing may be chosen: stopped, waiting for a plan or a yes, without work; None otherwise."""
    if now.is_stopped:
        return Decision("keep", "held", "stopped, waiting to be told to go on")
    is_idle = now.subtask is None or now.subtask.state != "work"
    if now.is_waiting and not (is_idle and now.is_to_look):  # whoever plans waits for that look itself
        return Decision("keep", "held", "holding still until there is a plan for the new order")
    if now.is_unconfirmed:
        return Decision("keep", "held", "waiting for a person to say yes")
    return _rest(now) if is_idle else None


def _rest(now: Situation) -> Decision:
    if now.is_doing(LOOK_ROUND):
        return Decision("keep", "idle", "looking round")
    if now.is_to_look:
        return Decision(LOOK_ROUND, "idle", "looking round", say=LOOKS_ROUND)
    if now.doing is not None and now.doing.skill != "hold" and now.outcome == "running":
        return Decision("hold", "idle", "holding still")
    return Decision("keep", "idle", "nothing to do")


def spare(now: Situation) -> Decision | None:
    """What is done at once where what is held, or gone for, is to be left alone; None where nothing is."""
    target = now.doing.target if now.doing is not None else None
    if now.holding is not None and is_excluded(now, now.holding):
        return _put_back(now, now.holding)
    if target is not None and now.is_doing("pick") and is_excluded(now, target):
        return Decision("hold", "working", f"leaving the {target.name} alone")
    return None


# --- the table


def decide(now: Situation, room: MappedRoom | None = None) -> Decision:
    """What to do now; without a room the robot stands where it can reach all that it sees."""
    if room is not None:  # the eyes tell what is held, and turn the head by themselves
        held = next((one for one in now.objects if _is_held(now, one, "robot")), None)
        now = replace(now, holding=held, is_to_look=False)
    task = now.subtask
    if (waits := held_up(now)) is not None or task is None:
        return waits or _rest(now)
    thing = _chosen(now, task) if room is None else room.about(now, task)
    if isinstance(thing, Decision):
        return thing
    place, held = destination(now), now.holding
    takes = room is None or thing is not None
    if held is not None and thing is not held and takes and (task.skill in CARRIES or thing is not None):
        return _aside(now, room, held, thing)
    match task.skill:
        case "place" if takes:
            return _place(now, room, task, thing, place)
        case "hand_over" if takes and (room is not None or task.skill in now.skills):
            return _hand_over(now, room, task, thing)
        case "pick" | "take" if thing is not None and thing is held:
            return Decision("keep", "finished", f"holding the {thing.name}")
        case "pick" | "take" if thing is not None:
            return _get(now, room, thing)
        case "pick" if takes:
            return _search(now, task)
        case "rinse" | "wipe" if thing is not None and thing is not held and not _has_succeeded(now, task):
            return _get(now, room, thing)
        case "rinse" | "wipe" if thing is not None and place is not None:
            return _perform(now, room, task, place)
        case "wait_here" if thing is not None and room is not None:
            if (fills := room.world.fills(task.place)) in thing.state:
                return Decision("keep", "finished", f"there is {fills} in the {thing.name}")
            return Decision("keep", "working", f"waiting at the {task.place}")
        case "put_back" if held is not None and room is not None:
            return _aside(now, room, held, None)
    return _perform(now, room, task, thing or place)


def _chosen(now: Situation, task: Subtask) -> SeenObject | None:
    """Of all things that a subtask is about: what is held, what is picked up by now, or the best."""
    held, doing = now.holding, now.doing
    if task.skill not in CARRIES:
        return None
    if held is not None and is_one_of(task.things, held) and not is_excluded(now, held):
        return held
    found = wanted(now)
    under_way = doing.target if doing is not None and now.is_doing("pick") else None
    mine = next((one for one in found if under_way is not None and is_same(one, under_way)), None)
    if mine is not None and now.preferred and mine.colour != now.preferred == found[0].colour:
        mine = None
    return mine or (found[0] if found else None)


def _get(now: Situation, room: MappedRoom | None, thing: SeenObject) -> Decision:
    was_got = now.doing is not None and now.doing.skill in ("pick", "take") and now.outcome == "success"
    if room is not None and was_got and not _is_seen_since(now):
        return Decision("keep", "working", f"looking whether I hold the {thing.name}")
    return _do(now, room, "take" if _is_held(now, thing) else "pick", thing, thing, f"picking up the {thing.name}")


def _aside(now: Situation, room: MappedRoom | None, held: SeenObject, thing: SeenObject | None) -> Decision:
    """What is held is not what is wanted now: on the nearest flat place with it, or back where it stood."""
    if room is not None:
        flat = [one for one in now.objects if one.is_place and one.height_m == 0.0 and one.label in RESTS]
        nearest = min(flat, key=lambda one: math.dist((one.x_m, one.y_m), now.base[:2]))
        return _do(now, room, "place", _spot_on(now, room, nearest), held)
    if thing is None:
        return _put_back(now, held)
    chosen = _get(now, room, thing)  # the policy puts what it holds back where it took it before it picks another thing
    if chosen.skill == "keep":
        return replace(chosen, text=f"putting the {held.name} back")
    return replace(chosen, say=f"I put the {held.name} back. {chosen.say}")


def _put_back(now: Situation, held: SeenObject) -> Decision:
    return _do(now, None, "place", held, held, f"putting the {held.name} back", f"I put the {held.name} back.")


def _place(
    now: Situation, room: MappedRoom | None, task: Subtask, thing: SeenObject | None, place: SeenObject | None
) -> Decision:
    """Get it, and bring it into the box, or to where there is room on something flat."""
    if room is not None and thing is not None:
        is_there = any((one.subject, one.object) == (thing.id, task.place) and one.relation in ("in", "on")
                       for one in now.relations)  # fmt: skip
        if thing is not now.holding and is_there:
            return Decision("keep", "finished", f"put the {thing.name} there")
        if _has_succeeded(now, task) and not _is_seen_since(now):
            return Decision("keep", "working", f"looking where the {thing.name} is")
        if place is None:
            return Decision("keep", "failed", f"I know no {task.place}")
        if thing is not now.holding and now.is_doing("place") and is_in(thing, place):
            return Decision("keep", "working", f"letting go of the {thing.name}")  # it falls, and is not lost
    if place is None or thing is None:
        return _search(now, task)
    if thing is not now.holding:
        return _get(now, room, thing)
    if task.place in given_up(now) and room is None:
        text = f"I cannot reach the {task.place}, and still hold the {thing.name}"
        return Decision("keep", "failed", text, say=f"{text}.")
    text = f"putting the {thing.name} {task.relation or 'in'} the {task.place}"
    return _do(now, room, "place", _spot_on(now, room, place), thing, text)


def _hand_over(now: Situation, room: MappedRoom | None, task: Subtask, thing: SeenObject | None) -> Decision:
    """Pick it, wait for an open hand, and set it onto that."""
    doing, held, given = now.doing, now.holding, now.moved[-1] if now.moved else None
    is_mine = doing is not None and doing.skill == task.skill and now.is_for_task
    if room is None and is_mine and doing is not None and now.outcome == "running":
        if now.is_grasping and _is_drawn_away(now.palm_m, doing.target):
            return Decision("hold", "working", "the hand is not where it was")
        return Decision("keep", "working", doing.text)
    if room is None and given is not None:
        return _given(now, given)
    if thing is None:
        return _look_for(now, task)
    if room is not None and is_mine and (now.outcome == "success" or (thing is not held and _is_held(now, thing))):
        if now.outcome == "running":
            return Decision("keep", "working", f"drawing back from the {thing.name}")
        return Decision("keep", "finished", f"gave the {thing.name}")
    if thing is not held:
        return _get(now, room, thing)
    if room is None and HAND in given_up(now):
        return Decision("keep", "failed", f"there is no hand for the {thing.name}, and I still hold it")
    hand = now.hand or next((one for one in now.objects if one.label == HAND), None)
    if hand is None:
        return await_hand(thing)
    return _do(now, room, task.skill, hand, hand, f"giving the {thing.name} into a hand")


def await_hand(held: SeenObject) -> Decision:
    """Ask for a hand, and wait for it."""
    say = f"Here is the {held.name}. Please hold out your hand."
    return Decision("keep", "working", "waiting for an open hand", say=say)


def _given(now: Situation, given: SeenObject) -> Decision:
    """It was let go over a hand: whether it is there, and that was all."""
    name, hand = given.name, now.doing.target if now.doing is not None else None
    if not now.is_looking_over:
        return Decision("keep", "working", f"looking whether the {name} stays in the hand")
    below = (one for one in now.objects if (one.label, one.colour) == (given.label, given.colour))
    if hand is not None and any(math.dist((one.x_m, one.y_m), (hand.x_m, hand.y_m)) < FALLEN_M for one in below):
        return Decision("keep", "failed", f"the {name} did not stay in your hand")
    if wanted(now):
        return Decision("keep", "failed", f"I give one thing at a time, and gave the {name}")
    return Decision("keep", "finished", f"gave the {name}")


def _is_drawn_away(palm_m: tuple[float, float, float] | None, target: SeenObject | None) -> bool:
    """Whether the hand that was to be given something is seen elsewhere."""
    if palm_m is None or target is None:
        return False
    return math.dist(palm_m[:2], (target.x_m, target.y_m)) > AWAY_M


def _perform(now: Situation, room: MappedRoom | None, task: Subtask, target: SeenObject | None) -> Decision:
    """A skill that is one action by itself; where the robot stands, the eyes look for what its arguments name."""
    name = task.skill or "do that"
    is_mine = now.doing is not None and now.doing.skill == task.skill and now.is_for_task
    if is_mine and now.outcome == "success":
        return Decision("keep", "finished", f"done with {name if room is None else task.text}")
    if room is not None:
        return _do(now, room, task.skill, target, target)
    if is_mine and now.outcome == "running":
        return Decision("keep", "working", f"doing {name}")
    if is_mine:
        return Decision("keep", "failed", f"I cannot {name}: {now.why}")
    spec = now.skills.get(task.skill)
    if spec is None:
        known = ", ".join(now.skills) or "none are known yet"
        return Decision("keep", "failed", f"I have no skill {name!r}; skills: {known}")
    arguments: list[Argument] = []
    for argument in spec.arguments:
        thing = _argument(now, task, argument)
        if thing is not None:
            arguments.append(Argument(name=argument.name, thing=thing))
        elif argument.type in ("thing", "place", "person") and (argument.is_needed or task.things or task.place):
            return _look_for(now, task)
        elif argument.type == "text":
            arguments.append(Argument(name=argument.name, text=task.text))
    target = arguments[0].thing if arguments else None
    what = f" the {target.name}" if target is not None else ""
    at = " at" if name in ("point", "look") and what else ""
    text = f"{name.replace('_', ' ')}{at}{what}"
    return Decision(task.skill, "working", text, target, arguments=tuple(arguments))


def _argument(now: Situation, task: Subtask, argument: SkillArgument) -> SeenObject | None:
    """What is seen that fills it."""
    if argument.type == "place" or (argument.type == "thing" and not task.things):
        return destination(now)
    if argument.type != "thing":
        return None
    places, loose = ([one for one in now.objects if one.is_place is kind] for kind in (True, False))
    meant = (one for one in loose if any(is_meant_by(ref, one) and is_from(ref, one, places) for ref in task.things))
    return next(meant, None)


def _do(
    now: Situation, room: MappedRoom | None, skill: str, target: SeenObject | None, about: SeenObject | None,
    text: str = "", say: str = "",
) -> Decision:  # fmt: skip
    """The action, or the way to it; or what is under way, or why it cannot be."""
    name, doing = about.name if about is not None else "", now.doing
    text = text or f"{skill.replace('_', ' ')} {name}".strip()
    is_far = room is not None and target is not None and skill not in ANYWHERE and not room.reaches(target, now.base)
    step = "drive" if is_far else skill
    if doing is not None and now.is_doing(step) and _is_still(now, room, doing.target, target, step):
        return Decision("keep", "working", text)
    key = f"{step} {name}"
    tries, most = now.failures.get(name, 0), MOST_TRIES
    if room is not None:
        tries, most = now.steps.get(key, 0), MOST_DRIVES if step == "drive" else MOST_TRIES
        if tries >= most or (tries and now.code == "out_of_reach" and step != "drive"):
            return Decision("keep", "failed", now.why or f"I cannot {text}", code=now.code)
    if step == "drive" and target is not None:
        where = target.label if target.is_place else name
        say = "Excuse me, may I pass?" if tries else f"I drive to the {where}." if where != HAND else ""
    elif step in ("pick", "take"):
        say = f"I try the {name} again." if tries else f"I will pick up the {name}."
    spec = now.skills.get(step)
    argument = spec.arguments[0].name if spec is not None and spec.arguments else "thing"
    return Decision(step, "working", text, target, say, aimed_at(target, argument), step=key)


def _is_still(
    now: Situation, room: MappedRoom | None, one: SeenObject | None, other: SeenObject | None, step: str
) -> bool:
    """Whether what is under way is about the same as what is to be done."""
    if one is None or other is None or room is None:
        return one is other if one is None or other is None else is_same(one, other)
    near_m = NEAR_DRIVE_M if step == "drive" else NEAR_M
    return now.is_for_task and math.dist((one.x_m, one.y_m), (other.x_m, other.y_m)) < near_m


def _spot_on(now: Situation, room: MappedRoom | None, place: SeenObject) -> SeenObject:
    """Where on a flat place there is room, and still is where it is put by now; a box as it is."""
    found = room.world.places.get(place.label) if room is not None else None
    if place.height_m > 0.0 or (room is not None and found is None):
        return place
    if found is None:
        return free_spot(now, place)
    taken = [(one.x_m, one.y_m) for one in now.objects if not one.is_place and one is not now.holding]
    best = found.free_point_m(taken)
    before_ = now.doing.target if now.doing is not None and now.is_doing("place", "drive") else None
    if before_ is not None and found.holds(before_.x_m, before_.y_m):
        at_m = before_.x_m, before_.y_m
        return moved_to(place, at_m if is_still_good(at_m, best, taken) else best)
    return moved_to(place, best)


def _is_held(now: Situation, thing: SeenObject, by: str = "") -> bool:
    relations = (one for one in now.relations if one.subject == thing.id and one.relation == "held by")
    return any(by in ("", one.object) for one in relations)


def _has_succeeded(now: Situation, task: Subtask) -> bool:
    is_mine = now.doing is not None and now.is_for_task and now.doing.skill == task.skill
    return is_mine and now.outcome == "success"


def _is_seen_since(now: Situation) -> bool:
    """Whether the eyes show by now what the last success has changed."""
    return to_s(now.now_ns - now.succeeded_ns) >= SEEN_WITHIN_S


# --- looking for it, and how it ends


def _look_for(now: Situation, task: Subtask) -> Decision:
    """What the subtask is about is not seen: look around for it, then say so."""
    if (looking := _look(now, len(GAZES))) is not None:
        return looking
    names = [f"{one.colour} {one.label}".strip() for one in task.things] or [task.place]
    return Decision("keep", "failed", f"I do not see the {' or the '.join(names)}")


def _search(now: Situation, task: Subtask) -> Decision:
    """Look around for the box, or for anything left to do."""
    needs_box = destination(now) is None and task.skill == "place"
    most = len(GAZES) + bool(lost(now)) if needs_box or lost(now) else LOOKS_TO_BE_SURE
    if (looking := _look(now, most)) is not None:
        return looking
    if needs_box:
        return Decision("keep", "failed", f"I cannot find the {task.place}", say=f"I cannot find the {task.place}.")
    if task.skill == "pick" and not lost(now) and not given_up(now):
        return _look_for(now, task)
    return measured(now)


def _look(now: Situation, most: int) -> Decision | None:
    """The look that is under way, or the next one; None after so many."""
    if now.doing is not None and now.doing.skill == "look" and (now.outcome == "running" or not now.is_looking_over):
        return Decision("keep", "working", "looking around")
    return Decision("look", "working", "looking around", _gaze(now)) if now.looks < most else None


def _gaze(now: Situation) -> SeenObject:
    """The next place to look at: first the middle of what is known, then round the robot."""
    known = [thing for thing in now.objects if now.subtask is None or not thing.is_place]
    if known and now.looks == 0:
        count = len(known)
        middle = (sum(t.x_m for t in known) / count, sum(t.y_m for t in known) / count, known[0].z_m)
        return spot("place", *middle, is_place=False)
    if now.looks == len(GAZES) and (gone := lost(now)):  # the floor on this side of where it stood
        return spot("place", (gone[0].x_m + now.base[0]) / 2, (gone[0].y_m + now.base[1]) / 2, 0.0, is_place=False)
    return spot("place", *before(now.base, GAZES[now.looks % len(GAZES)]), is_place=False)


def measured(now: Situation) -> Decision:
    """How a subtask that moves things has ended, by what the robot did and sees: "moved 2 of 3: ..."."""
    gone, left, open_ones = lost(now), given_up(now), wanted(now)
    moved, of = len(now.moved), how_many(now)
    text = f"moved {moved} of {of}: {_names(now.moved)}" if moved else "moved nothing"
    if left:
        fallen = {one.name for one in now.objects if is_on_floor(one) and place_of(one, now.objects) is None}
        names = " and the ".join(f"{name} on the floor" if name in fallen else name for name in left)
        why = "; ".join(dict.fromkeys(now.reasons[name] for name in left if now.reasons.get(name)))
        because = f", because {why}" if why else ""
        say = f"I cannot get the {names}. Please help me."
        return _failed(f"I cannot get the {names}{because}", text, say)
    if gone:
        why = f"I do not find {_names(gone)} any more"
        return _failed(why, text, f"{why}.")
    if open_ones:
        return _failed(f"{_names(open_ones)} is still to be moved", text)
    return Decision("keep", "finished", text if moved >= of > 0 else f"{text}; nothing else that is seen fits")


def _failed(why: str, so_far: str, say: str = "") -> Decision:
    return Decision("keep", "failed", f"{why}; {so_far}", say=say, why=why)


def lost(now: Situation) -> tuple[SeenObject, ...]:
    """What the subtask is about and has left its place without the robot."""
    things = now.subtask.things if now.subtask is not None else ()
    return tuple(one for one in now.gone if is_one_of(things, one) and not is_excluded(now, one))


def how_many(now: Situation) -> int:
    """How many things the subtask is about, as far as they were seen: moved, still to move, given up or gone."""
    open_ones = {one.name for one in wanted(now)} | {one.name for one in now.moved}
    return len(now.moved) + len(wanted(now)) + len(lost(now)) + len(set(given_up(now)) - open_ones)


def _names(things: Iterable[SeenObject]) -> str:
    return ", ".join(f"the {thing.name}" for thing in things)
