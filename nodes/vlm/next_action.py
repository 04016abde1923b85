"""What to do next, as a pure function of what is known: the subtask, what was said, what is seen, and how it goes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from runtime.msgs import Action, SeenObject, Subtask

Skill = Literal["keep", "pick", "place", "look", "hold"]
Progress = Literal["idle", "working", "finished", "failed", "held"]
Outcome = Literal["running", "success", "failure"]

MOST_TRIES = 3
"""After so many failures a thing is left, and the planner told."""
SURE = 0.5
IN_BOX_M = 0.19
"""A thing this near the middle of a box lies in it."""
GAZES = ((0.0, -0.65, 0.5), (0.65, -0.55, 0.4), (-0.55, -0.60, 0.4), (0.9, 0.1, 0.3))
"""Where to look for things, base frame, m: where the arm reaches, then ahead and behind of it, then straight ahead."""
LOOKS_TO_BE_SURE = 2
"""How many gazes must show nothing more to do before the subtask counts as finished."""


@dataclass(frozen=True, slots=True)
class Situation:
    """All that the choice depends on; positions in the odometry frame, m and rad."""

    subtask: Subtask | None = None
    vetoed: frozenset[str] = frozenset()  # colours that a person does not want touched
    preferred: str = ""  # colour that a person asked for
    objects: tuple[SeenObject, ...] = ()
    holding: SeenObject | None = None
    doing: Action | None = None
    outcome: Outcome = "running"  # of `doing`
    failures: Mapping[str, int] = field(default_factory=dict)  # by name
    looks: int = 0  # gazes completed since the robot last changed the scene
    is_looking_over: bool = True  # False: the image of the last gaze is not in yet
    is_stopped: bool = False
    is_waiting: bool = False  # for the planner, after a new order
    is_unconfirmed: bool = False  # a person has been asked, and has not said yes
    base: tuple[float, float, float] = (0.0, 0.0, 0.0)  # x, y, heading


@dataclass(frozen=True, slots=True)
class Decision:
    """The next skill ("keep": go on with what is under way), what to say about it and what to tell the planner."""

    skill: Skill
    progress: Progress
    text: str  # for the planner: what the robot is doing, "picking up the red cup"
    target: SeenObject | None = None
    say: str = ""


def name_of(thing: SeenObject) -> str:
    """What people call it: "red cup", "bin"."""
    return thing.label if thing.label == "bin" else f"{thing.colour} {thing.label}".strip()


def decide(now: Situation) -> Decision:
    """What to do now."""
    if now.is_stopped:
        return Decision("keep", "held", "stopped, waiting to be told to go on")
    if now.is_waiting:
        return Decision("keep", "held", "holding still until there is a plan for the new order")
    if now.is_unconfirmed:
        return Decision("keep", "held", "waiting for a person to say yes")
    task = now.subtask
    if task is None or task.verb != "put":
        return _rest(now)
    box = destination(now)
    if now.holding is not None:
        return _bring(now, now.holding, box, task)
    chosen = wanted(now)
    if box is None or not chosen:
        return _search(now, box, task)
    if _is_picking(now):
        assert now.doing is not None
        mine = [thing for thing in chosen if now.doing.target is not None and _is_same(thing, now.doing.target)]
        has_better = now.preferred and not any(t.colour == now.preferred for t in mine) and _has(chosen, now.preferred)
        if mine and not has_better:
            return Decision("keep", "working", f"picking up the {name_of(mine[0])}")
    return _pick(now, chosen[0])


def excluded(now: Situation) -> frozenset[str]:
    """Colours not to touch: the planner's and what was said since."""
    planned = frozenset(now.subtask.excluding) if now.subtask is not None else frozenset()
    return planned | now.vetoed


def destination(now: Situation) -> SeenObject | None:
    """Where the subtask wants things, the surest one, or None while it is not seen."""
    where = now.subtask.where if now.subtask is not None else ""
    return max((o for o in now.objects if o.label == where), key=lambda o: o.confidence, default=None)


def wanted(now: Situation) -> tuple[SeenObject, ...]:
    """Things the subtask is about that may be taken now, best first: asked for, clearly seen, near."""
    task = now.subtask
    if task is None:
        return ()
    boxes = [thing for thing in now.objects if thing.label == task.where]
    barred = excluded(now)
    found = [
        thing
        for thing in now.objects
        if (thing.label == task.what or (not task.what and thing.label != task.where))
        and thing.colour not in barred
        and now.failures.get(name_of(thing), 0) < MOST_TRIES
        and not any(math.hypot(thing.x_m - box.x_m, thing.y_m - box.y_m) < IN_BOX_M for box in boxes)
    ]
    x, y, _ = now.base

    def rank(thing: SeenObject) -> tuple[bool, bool, int, float]:
        distance = math.hypot(thing.x_m - x, thing.y_m - y)
        tries = now.failures.get(name_of(thing), 0)
        return thing.colour != now.preferred, thing.confidence < SURE, tries, distance

    return tuple(sorted(found, key=rank))


def _rest(now: Situation) -> Decision:
    if now.doing is not None and now.doing.skill != "hold" and now.outcome == "running":
        return Decision("hold", "idle", "holding still")
    return Decision("keep", "idle", "nothing to do")


def _bring(now: Situation, held: SeenObject, box: SeenObject | None, task: Subtask) -> Decision:
    """Something is in the gripper: into the box with it, or back where it stood when it is not to be touched."""
    if held.colour in excluded(now):
        others = [thing for thing in wanted(now) if not _is_same(thing, held)]
        under_way = now.doing.target if now.doing is not None and _is_picking(now) else None
        if under_way is not None and any(_is_same(one, under_way) for one in others):
            return Decision("keep", "working", f"putting the {name_of(held)} back")
        if others:  # the policy puts what it holds back where it took it before it picks another thing
            return _pick(now, others[0], before=f"I put the {name_of(held)} back. ")
        is_returning = now.doing is not None and now.doing.skill == "place" and now.doing.target == held
        if is_returning and now.outcome == "running":
            return Decision("keep", "working", f"putting the {name_of(held)} back")
        say = f"I put the {name_of(held)} back."
        return Decision("place", "working", f"putting the {name_of(held)} back", held, say)
    if box is None:
        return _search(now, box, task)
    text = f"putting the {name_of(held)} in the {task.where}"
    if now.doing is not None and now.doing.skill == "place" and now.outcome == "running":
        return Decision("keep", "working", text)
    return Decision("place", "working", text, box)


def _pick(now: Situation, thing: SeenObject, before: str = "") -> Decision:
    name = name_of(thing)
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
    most = LOOKS_TO_BE_SURE if box is not None else len(GAZES)
    if now.looks < most:
        return Decision("look", "working", "looking around", _gaze(now))
    if box is None:
        return Decision("keep", "failed", f"I cannot find the {task.where}", say=f"I cannot find the {task.where}.")
    left = sorted(name for name, tries in now.failures.items() if tries >= MOST_TRIES)
    if left:
        names = " and the ".join(left)
        return Decision("keep", "failed", f"I cannot get the {names}", say=f"I cannot get the {names}. Please help me.")
    return Decision("keep", "finished", "nothing is left to do")


def _gaze(now: Situation) -> SeenObject:
    """The next place to look at: first the middle of what is known, then round the robot."""
    known = [thing for thing in now.objects if now.subtask is None or thing.label != now.subtask.where]
    if known and now.looks == 0:
        count = len(known)
        middle = (sum(t.x_m for t in known) / count, sum(t.y_m for t in known) / count, known[0].z_m)
        return _place(*middle)
    ahead, left, up = GAZES[now.looks % len(GAZES)]
    x, y, heading = now.base
    c, s = math.cos(heading), math.sin(heading)
    return _place(x + c * ahead - s * left, y + s * ahead + c * left, up)


def _place(x_m: float, y_m: float, z_m: float) -> SeenObject:
    """A place to look at, where nothing is known to be."""
    return SeenObject(
        label="place", colour="", x_m=x_m, y_m=y_m, z_m=z_m, width_m=0.0, height_m=0.0, u_px=0.0, v_px=0.0
    )


def _is_picking(now: Situation) -> bool:
    return now.doing is not None and now.doing.skill == "pick" and now.outcome == "running"


def _is_same(one: SeenObject, other: SeenObject) -> bool:
    return one.colour == other.colour and one.label == other.label


def _has(things: tuple[SeenObject, ...], colour: str) -> bool:
    return any(thing.colour == colour for thing in things)
