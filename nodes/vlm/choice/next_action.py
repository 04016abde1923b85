"""What to do next, as a pure function of what is known: the subtask, what was said, what is seen, and how it goes.

It also decides how often a grasp is tried (`MOST_TRIES`): the policy makes one try of each action.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from nodes.msgs import (
    Action,
    Argument,
    FeedbackCode,
    Reference,
    Relation,
    SeenObject,
    SkillArgument,
    SkillSpec,
    Subtask,
)

Progress = Literal["idle", "working", "finished", "failed", "held"]
Outcome = Literal["running", "success", "failure"]

MOST_TRIES = 3
"""After so many failures a thing is left, and the planner told."""
SURE = 0.5
ON_FLAT_M = 0.04
"""What stands on something flat begins at most so far above it."""
SPOT_STEP_M, ROOM_M = 0.08, 0.14
"""Where things are set down: points of a grid, this far from what stands there."""
CLEARLY_M = 0.04
"""A place to set something down is left for another that has so much more room; less is how eyes and hands waver."""
IN_BOX = 0.73
"""A thing nearer to the middle of a box than this share of its narrower side lies in it, or in a corner of it."""
FLOOR_M = 0.05
"""What begins below this, and in no box, lies on the floor, which is at 0 in the odometry frame."""
GAZES = ((0.0, -0.65, 0.5), (0.65, -0.55, 0.4), (-0.55, -0.60, 0.4), (0.9, 0.1, 0.3))
"""Where to look for things, base frame, m: where the arm reaches, then ahead and behind of it, then straight ahead."""
LOOK_ROUND, LOOKS_ROUND = "look_round", "I look round."
"""The skill by which the head alone turns, before anything is known, and what is said of it."""
HAND = "hand"
"""What a hand is called that is held out."""
AWAY_M = 0.12
"""A hand that is further from where it was is drawn away; what the gripper hides of it moves it by a third of that."""
FALLEN_M = 0.2
"""What falls from a hand is seen this near to it."""
LOOKS_TO_BE_SURE = 2
"""How many gazes must show nothing more to do before the subtask counts as finished."""


@dataclass(frozen=True, slots=True)
class Situation:
    """All that the choice depends on; positions in the odometry frame, m and rad."""

    subtask: Subtask | None = None
    skills: Mapping[str, SkillSpec] = field(default_factory=dict)  # what the policy declares; {}: not known yet
    vetoed: tuple[Reference, ...] = ()  # what a person does not want touched
    preferred: str = ""  # colour that a person asked for
    objects: tuple[SeenObject, ...] = ()
    relations: tuple[Relation, ...] = ()  # between them, where the eyes tell
    holding: SeenObject | None = None
    moved: tuple[SeenObject, ...] = ()  # brought to the place for this subtask
    doing: Action | None = None
    outcome: Outcome = "running"  # of `doing`
    why: str = ""  # it failed
    code: FeedbackCode = ""  # and what programs ask of that
    is_counted: bool = False  # this failure is among `steps`
    ended_ns: int = 0  # when the last action did
    succeeded_ns: int = 0  # when one did last
    now_ns: int = 0
    is_for_task: bool = True  # `doing` was chosen for this subtask
    did: tuple[str, ...] = ()  # actions that succeeded for it
    failures: Mapping[str, int] = field(default_factory=dict)  # by name
    reasons: Mapping[str, str] = field(default_factory=dict)  # of the last one
    steps: Mapping[str, int] = field(default_factory=dict)  # failures by skill and thing
    gone: tuple[SeenObject, ...] = ()  # what left its place without the robot, and was not seen again
    looks: int = 0  # gazes completed since the robot last changed the scene
    is_looking_over: bool = True  # False: the image of the last gaze is not in yet
    is_stopped: bool = False
    is_waiting: bool = False  # for the planner, after a new order
    is_unconfirmed: bool = False  # a person has been asked, and has not said yes
    hand: SeenObject | None = None  # that is held out to be given something, and still
    palm_m: tuple[float, float, float] | None = None  # in the newest image; the robot's own hand may hide it
    is_grasping: bool = True  # the gripper still has what it holds
    is_to_look: bool = False  # nobody knows yet what there is, and the head may turn
    base: tuple[float, float, float] = (0.0, 0.0, 0.0)  # x, y, heading


@dataclass(frozen=True, slots=True)
class Decision:
    """The next skill ("keep": go on with what is under way), what to say about it and what to tell the planner."""

    skill: str
    progress: Progress
    text: str  # for the planner: what the robot is doing, "picking up the red cup"
    target: SeenObject | None = None
    say: str = ""
    arguments: tuple[Argument, ...] = ()  # where it takes more, or others, than the target
    code: FeedbackCode = ""  # "failed": what programs ask of the reason
    why: str = ""  # "failed": the reason alone, where `text` tells more
    counts: str = ""  # the action under way has failed, and that is a failure of this step


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


def decide(now: Situation) -> Decision:
    """What to do now."""
    task = now.subtask
    if (held := held_up(now)) is not None or task is None:
        return held or _rest(now)
    if task.skill == "pick" and now.holding is not None and _means(task.things, now.holding):
        return Decision("keep", "finished", f"holding the {now.holding.name}")
    if task.skill == "hand_over" and task.skill in now.skills:
        return _give(now, task)
    if task.skill not in ("place", "pick"):
        return _perform(now, task)
    box = destination(now)
    if now.holding is not None and task.skill == "place":
        return _bring(now, now.holding, box, task)
    chosen = wanted(now)
    if (box is None and task.skill == "place") or not chosen:
        return _search(now, box, task)
    if _is_picking(now):
        assert now.doing is not None
        mine = [thing for thing in chosen if now.doing.target is not None and _is_same(thing, now.doing.target)]
        has_better = now.preferred and not any(t.colour == now.preferred for t in mine) and _has(chosen, now.preferred)
        if mine and not has_better:
            return Decision("keep", "working", f"picking up the {mine[0].name}")
    return _pick(now, chosen[0])


def is_excluded(now: Situation, thing: SeenObject) -> bool:
    """Whether it is not to be touched: the planner's word, or what was said since."""
    planned = now.subtask.excluding if now.subtask is not None else ()
    return _means((*planned, *now.vetoed), thing)


def _means(references: Iterable[Reference], thing: SeenObject) -> bool:
    return any(is_meant_by(one, thing) for one in references)


def is_meant_by(one: Reference, thing: SeenObject) -> bool:
    """Whether the reference means the thing: by its id, else by what it is and its colour."""
    if one.id and thing.id:
        return one.id == thing.id
    return one.label in ("", "*", thing.label) and one.colour in ("", thing.colour)


def destination(now: Situation) -> SeenObject | None:
    """Where the subtask wants things, the surest one, or None while it is not seen."""
    where = now.subtask.place if now.subtask is not None else ""
    places = (one for one in now.objects if one.is_place and one.label == where)
    return max(places, key=lambda one: one.confidence, default=None)


def is_in(thing: SeenObject, place: SeenObject) -> bool:
    """Whether a thing is in, or on, a place."""
    away_m = math.hypot(thing.x_m - place.x_m, thing.y_m - place.y_m)
    if place.height_m == 0.0:  # something flat: what stands on it is as high as it; without a width it has no end
        is_level = abs(thing.z_m - thing.height_m / 2 - place.z_m) < ON_FLAT_M
        return is_level and (place.width_m == 0.0 or away_m < place.width_m / 2)
    return away_m < IN_BOX * place.width_m


def is_on_floor(thing: SeenObject) -> bool:
    """Whether it lies there, where it is in no box."""
    return not thing.is_place and thing.z_m - thing.height_m / 2 < FLOOR_M


def place_of(thing: SeenObject, objects: Iterable[SeenObject]) -> SeenObject | None:
    """What it is in, else what it is on."""
    around = [one for one in objects if one.is_place and one is not thing and is_in(thing, one)]
    return min(around, key=lambda one: (one.height_m == 0.0, one.width_m == 0.0), default=None)


def wanted(now: Situation) -> tuple[SeenObject, ...]:
    """Things the subtask is about that may be taken now, best first: asked for, clearly seen, near."""
    task = now.subtask
    if task is None:
        return ()
    places = [one for one in now.objects if one.is_place]
    there = [one for one in places if one.label == task.place]
    open_ones = [one for one in task.things if one.count == 0 or one.count > _count(one, now.moved)]
    found = [
        thing
        for thing in now.objects
        if not thing.is_place
        and any(_means((one,), thing) and _is_from(one, thing, places) for one in open_ones)
        and not is_excluded(now, thing)
        and now.failures.get(thing.name, 0) < MOST_TRIES
        and not (
            task.relation != "beside"
            and any(is_in(thing, one) for one in there)
            and not _is_elsewhere(thing, there, places)
        )
    ]
    x, y, _ = now.base

    def rank(thing: SeenObject) -> tuple[bool, bool, int, float]:
        distance = math.hypot(thing.x_m - x, thing.y_m - y)
        tries = now.failures.get(thing.name, 0)
        return thing.colour != now.preferred, thing.confidence < SURE, tries, distance

    return tuple(sorted(found, key=rank))


def _count(reference: Reference, moved: Iterable[SeenObject]) -> int:
    return sum(_means((reference,), thing) for thing in moved)


def _is_from(reference: Reference, thing: SeenObject, places: Iterable[SeenObject]) -> bool:
    """Whether it stands where the order says; an id says enough by itself."""
    return not reference.source or any(is_in(thing, one) for one in places if one.label == reference.source)


def _is_elsewhere(thing: SeenObject, there: Sequence[SeenObject], places: Iterable[SeenObject]) -> bool:
    """Whether it is in a box that stands beside the flat place."""
    return any(is_in(thing, one) for one in places if one.height_m > 0.0 and one not in there)


def free_spot(now: Situation, place: SeenObject) -> SeenObject:
    """Where on a flat place there is room: the free point nearest to its middle."""
    taken = [(one.x_m, one.y_m) for one in now.objects if one is not place]
    steps = [number * SPOT_STEP_M for number in range(-4, 5)]
    points = [(place.x_m + dx, place.y_m + dy) for dx in steps for dy in steps[2:7]]
    free = [point for point in points if all(math.dist(point, other) > ROOM_M for other in taken)]
    x, y = min(free or points, key=lambda point: math.dist(point, (place.x_m, place.y_m)))
    spot: SeenObject = msgspec.structs.replace(place, x_m=x, y_m=y)  # type: ignore[type-var]  # a Struct
    return spot


def is_still_good(chosen: tuple[float, float], best: tuple[float, float], taken: Iterable[tuple[float, float]]) -> bool:
    """Whether a point chosen before is kept: the best one now is not clearly further from what stands there."""
    others = list(taken)

    def room_m(at: tuple[float, float]) -> float:
        return min((math.dist(at, other) for other in others), default=ROOM_M)

    return room_m(chosen) > min(room_m(best), ROOM_M) - CLEARLY_M


def _perform(now: Situation, task: Subtask) -> Decision:
    """A declared skill that is one action by itself."""
    doing, name = now.doing, task.skill or "do that"
    is_mine = doing is not None and doing.skill == task.skill and now.is_for_task
    if is_mine and now.outcome == "running":
        return Decision("keep", "working", f"doing {name}")
    if is_mine and now.outcome == "success":
        return Decision("keep", "finished", f"done with {name}")
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


def _give(now: Situation, task: Subtask) -> Decision:
    """Pick it, wait for an open hand, and set it onto that."""
    doing, held, given = now.doing, now.holding, now.moved[-1] if now.moved else None
    if doing is not None and doing.skill == task.skill and now.is_for_task and now.outcome == "running":
        if now.is_grasping and _is_drawn_away(now.palm_m, doing.target):
            return Decision("hold", "working", "the hand is not where it was")
        return Decision("keep", "working", doing.text)
    if given is not None:
        return _given(now, given)
    if held is not None and (is_excluded(now, held) or not _means(task.things, held)):
        return _bring(now, held, None, task)
    if held is None:
        chosen = wanted(now)
        under_way = doing.target if doing is not None and _is_picking(now) else None
        if under_way is not None and any(_is_same(one, under_way) for one in chosen):
            return Decision("keep", "working", f"picking up the {under_way.name}")
        return _pick(now, chosen[0]) if chosen else _look_for(now, task)
    if now.failures.get(HAND, 0) >= MOST_TRIES:
        return Decision("keep", "failed", f"there is no hand for the {held.name}, and I still hold it")
    if now.hand is None:
        return await_hand(held)
    return Decision(
        task.skill, "working", f"giving the {held.name} into a hand", now.hand,
        arguments=tuple(Argument(name=one.name, thing=now.hand) for one in now.skills[task.skill].arguments),
    )  # fmt: skip


def await_hand(held: SeenObject) -> Decision:
    """Ask for a hand, and wait for it."""
    say = f"Here is the {held.name}. Please hold out your hand."
    return Decision("keep", "working", "waiting for an open hand", say=say)


def _given(now: Situation, given: SeenObject) -> Decision:
    """It was let go over a hand: whether it is there, and that was all."""
    name = given.name
    if not now.is_looking_over:
        return Decision("keep", "working", f"looking whether the {name} stays in the hand")
    if any(_has_fallen(thing, given, now.doing) for thing in now.objects):
        return Decision("keep", "failed", f"the {name} did not stay in your hand")
    if wanted(now):
        return Decision("keep", "failed", f"I give one thing at a time, and gave the {name}")
    return Decision("keep", "finished", f"gave the {name}")


def _is_drawn_away(palm_m: tuple[float, float, float] | None, target: SeenObject | None) -> bool:
    """Whether the hand that was to be given something is seen elsewhere."""
    if palm_m is None or target is None:
        return False
    return math.dist(palm_m[:2], (target.x_m, target.y_m)) > AWAY_M


def _has_fallen(thing: SeenObject, given: SeenObject, doing: Action | None) -> bool:
    """Whether it is what was set onto a hand, and stands below that now."""
    hand = doing.target if doing is not None else None
    is_it = (thing.label, thing.colour) == (given.label, given.colour)
    return is_it and hand is not None and math.dist((thing.x_m, thing.y_m), (hand.x_m, hand.y_m)) < FALLEN_M


def _argument(now: Situation, task: Subtask, argument: SkillArgument) -> SeenObject | None:
    """What is seen that fills it."""
    if argument.type == "place" or (argument.type == "thing" and not task.things):
        return destination(now)
    if argument.type == "thing":
        places = [one for one in now.objects if one.is_place]
        return next(
            (
                one
                for one in now.objects
                if not one.is_place and any(_means((ref,), one) and _is_from(ref, one, places) for ref in task.things)
            ),
            None,
        )
    return None


def _look_for(now: Situation, task: Subtask) -> Decision:
    """What the subtask is about is not seen: look around for it, then say so."""
    if now.doing is not None and now.doing.skill == "look" and (now.outcome == "running" or not now.is_looking_over):
        return Decision("keep", "working", "looking around")
    if now.looks < len(GAZES):
        return Decision("look", "working", "looking around", _gaze(now))
    names = [f"{one.colour} {one.label}".strip() for one in task.things] or [task.place]
    return Decision("keep", "failed", f"I do not see the {' or the '.join(names)}")


def _rest(now: Situation) -> Decision:
    if now.doing is not None and now.doing.skill == LOOK_ROUND and now.outcome == "running":
        return Decision("keep", "idle", "looking round")
    if now.is_to_look:
        return Decision(LOOK_ROUND, "idle", "looking round", say=LOOKS_ROUND)
    if now.doing is not None and now.doing.skill != "hold" and now.outcome == "running":
        return Decision("hold", "idle", "holding still")
    return Decision("keep", "idle", "nothing to do")


def _bring(now: Situation, held: SeenObject, box: SeenObject | None, task: Subtask) -> Decision:
    """Something is in the gripper: into the box with it, or back where it stood when it is not to be touched."""
    if is_excluded(now, held) or not _means(task.things, held):
        others = [thing for thing in wanted(now) if not _is_same(thing, held)]
        under_way = now.doing.target if now.doing is not None and _is_picking(now) else None
        if under_way is not None and any(_is_same(one, under_way) for one in others):
            return Decision("keep", "working", f"putting the {held.name} back")
        if others:  # the policy puts what it holds back where it took it before it picks another thing
            return _pick(now, others[0], before=f"I put the {held.name} back. ")
        return _put_back(now, held)
    if box is None:
        return _search(now, box, task)
    if now.failures.get(task.place, 0) >= MOST_TRIES:
        text = f"I cannot reach the {task.place}, and still hold the {held.name}"
        return Decision("keep", "failed", text, say=f"{text}.")
    text = f"putting the {held.name} {task.relation or 'in'} the {task.place}"
    if now.doing is not None and now.doing.skill == "place" and now.outcome == "running":
        return Decision("keep", "working", text)
    return Decision("place", "working", text, box if box.height_m > 0.0 else free_spot(now, box))


def _put_back(now: Situation, held: SeenObject) -> Decision:
    text = f"putting the {held.name} back"
    is_returning = now.doing is not None and now.doing.skill == "place" and now.doing.target == held
    if is_returning and now.outcome == "running":
        return Decision("keep", "working", text)
    return Decision("place", "working", text, held, f"I put the {held.name} back.")


def spare(now: Situation) -> Decision | None:
    """What is done at once where what is held, or gone for, is to be left alone; None where nothing is."""
    doing = now.doing
    if now.holding is not None and is_excluded(now, now.holding):
        return _put_back(now, now.holding)
    if doing is not None and doing.target is not None and _is_picking(now) and is_excluded(now, doing.target):
        return Decision("hold", "working", f"leaving the {doing.target.name} alone")
    return None


def _pick(now: Situation, thing: SeenObject, before: str = "") -> Decision:
    name = thing.name
    if now.failures.get(name, 0):
        say = f"I try the {name} again."
    else:
        say = f"I will pick up the {name}."
    return Decision("pick", "working", f"picking up the {name}", thing, before + say)


def _search(now: Situation, box: SeenObject | None, task: Subtask) -> Decision:
    """Look around for the box, or for anything left to do."""
    if now.doing is not None and now.doing.skill == "look":
        is_under_way = now.outcome == "running" or not now.is_looking_over
        if is_under_way:
            return Decision("keep", "working", "looking around")
    needs_box = box is None and task.skill == "place"
    most = len(GAZES) + bool(lost(now)) if needs_box or lost(now) else LOOKS_TO_BE_SURE
    if now.looks < most:
        return Decision("look", "working", "looking around", _gaze(now))
    if needs_box:
        return Decision("keep", "failed", f"I cannot find the {task.place}", say=f"I cannot find the {task.place}.")
    if task.skill == "pick" and not lost(now) and not _given_up(now):
        return _look_for(now, task)
    return measured(now)


def measured(now: Situation) -> Decision:
    """How a subtask that moves things has ended, by what the robot did and sees: "moved 2 of 3: ..."."""
    gone, left, open_ones = lost(now), _given_up(now), wanted(now)
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
    return tuple(one for one in now.gone if _means(things, one) and not is_excluded(now, one))


def how_many(now: Situation) -> int:
    """How many things the subtask is about, as far as they were seen: moved, still to move, given up or gone."""
    open_ones = {one.name for one in wanted(now)} | {one.name for one in now.moved}
    return len(now.moved) + len(wanted(now)) + len(lost(now)) + len(set(_given_up(now)) - open_ones)


def tried(now: Situation) -> tuple[str, ...]:
    """What failed and was not made good since, and why: "red cup, 2 times: ..."."""
    return tuple(
        f"{name}, {times} {'time' if times == 1 else 'times'}: {now.reasons.get(name, '')}"
        for name, times in now.failures.items()
    )


def _given_up(now: Situation) -> list[str]:
    return sorted(name for name, tries in now.failures.items() if tries >= MOST_TRIES)


def _names(things: Iterable[SeenObject]) -> str:
    return ", ".join(f"the {thing.name}" for thing in things)


def arm_side(base: tuple[float, float, float]) -> tuple[float, float, float]:
    """Where the arm reaches, odometry frame, m: things are there if anywhere."""
    return _before(base, GAZES[0])


def _before(base: tuple[float, float, float], at: tuple[float, float, float]) -> tuple[float, float, float]:
    (x, y, heading), (ahead, left, up) = base, at
    c, s = math.cos(heading), math.sin(heading)
    return x + c * ahead - s * left, y + s * ahead + c * left, up


def _gaze(now: Situation) -> SeenObject:
    """The next place to look at: first the middle of what is known, then round the robot."""
    known = [thing for thing in now.objects if now.subtask is None or not thing.is_place]
    if known and now.looks == 0:
        count = len(known)
        middle = (sum(t.x_m for t in known) / count, sum(t.y_m for t in known) / count, known[0].z_m)
        return spot("place", *middle, is_place=False)
    if now.looks == len(GAZES) and (gone := lost(now)):  # the floor on this side of where it stood
        return spot("place", (gone[0].x_m + now.base[0]) / 2, (gone[0].y_m + now.base[1]) / 2, 0.0, is_place=False)
    return spot("place", *_before(now.base, GAZES[now.looks % len(GAZES)]), is_place=False)


def spot(label: str, x_m: float, y_m: float, z_m: float, *, ident: str = "", is_place: bool = True) -> SeenObject:
    """A place by where it is alone: to look at, or to set a thing onto."""
    return SeenObject(
        id=ident, label=label, colour="", x_m=x_m, y_m=y_m, z_m=z_m, width_m=0.0, height_m=0.0, u_px=0.0, v_px=0.0,
        is_place=is_place,
    )  # fmt: skip


def _is_picking(now: Situation) -> bool:
    return now.doing is not None and now.doing.skill == "pick" and now.outcome == "running"


def _is_same(one: SeenObject, other: SeenObject) -> bool:
    return one.id == other.id if one.id and other.id else (one.colour, one.label) == (other.colour, other.label)


def _has(things: tuple[SeenObject, ...], colour: str) -> bool:
    return any(thing.colour == colour for thing in things)
