"""What a planner's model is told of scene and work, in plain English; every word from outside is quoted."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from nodes.models.answers import quoted
from nodes.msgs import Reference, Scene, SceneDescription, SeenObject, SeenPerson, Subtask

MOST_THINGS, MOST_PEOPLE = 30, 8
APART_RAD = 0.05
"""Things that stand nearer to each other than this, as somebody sees them, are neither left nor right."""
ASLANT_RAD = 1.3
"""A row has turns along itself up to so far aslant; beyond, it points away from who looks."""
ROW_SHARE = 0.6
"""Of how far things are apart, so much lies along one line where they are a row."""
NOT_LOOKED = "The robot has not looked yet: nobody knows what is there."
LISTED = "What is believed to be there; what is not listed was not seen, which does not say that it is absent:"
_GESTURES = {"nod": "nods", "shake": "shakes the head", "open": "holds out an open hand", "point": "points"}


def report_text(
    subtask: Subtask | None,
    description: SceneDescription | None,
    scene: Scene | None = None,
    taught: Mapping[str, str] | None = None,
) -> str:
    """What the robot does and sees now, and what people `taught` it: the place of each kind."""
    told = ", ".join(f"{quoted(kind)}: {quoted(place)}" for kind, place in sorted((taught or {}).items()))
    lessons = [f"What people taught the robot, where a kind of thing belongs: {told}."] if told else []
    return "\n".join((*_work_lines(subtask, description), *lessons, *scene_lines(scene)))


def _work_lines(subtask: Subtask | None, told: SceneDescription | None) -> list[str]:
    """The subtask, what the vision model says of it, and what was measured."""
    lines = []
    if subtask is not None:
        lines.append(f"The subtask now: {subtask.state}, {quoted(subtask.text)}.")
    elif told is not None and told.subtask_id:
        lines.append("You were restarted; the robot works on a subtask that you set before, see the report.")
    else:
        lines.append("There is no subtask yet.")
    if told is None:
        return [*lines, "The vision model has reported nothing yet."]
    lines.append(f"The vision model reports ({told.progress}): {quoted(told.text)}")
    if told.why:
        ended = "It failed, because" if told.progress == "failed" else "It ended so:"
        lines.append(f"{ended} {quoted(told.why)}.")
    if told.target is not None:
        lines.append(f"The robot holds, or goes for: {_names([told.target])}.")
    if told.did is not None and told.subtask_id:
        done = ", ".join(quoted(one) for one in told.did)
        lines.append(f"It has done for this subtask: {done}." if done else "It has done nothing for this subtask yet.")
    if told.wanted:
        names = f": {_names(told.moved)}" if told.moved else ""
        lines.append(f"Moved {len(told.moved)} of {told.wanted} things{names}.")
    lines += [f"Tried in vain: {quoted(one)}." for one in told.tried]
    if told.gone:
        lines.append(f"No longer where it stood, and not found: {_names(told.gone)}.")
    if told.left:
        lines.append(f"Left alone, because somebody said so: {_names(told.left)}.")
    return lines


def _names(things: Iterable[Reference | SeenObject]) -> str:
    return ", ".join(quoted(f"{one.colour} {one.label}".strip()) for one in things)


def scene_lines(scene: Scene | None) -> list[str]:
    """Places with what stands there, things, people, and who sees what on which side."""
    if scene is None:
        return [NOT_LOOKED]
    lines = [] if scene.is_looked else [NOT_LOOKED]
    if not (scene.things or scene.people):
        return lines or ["It has seen nothing yet, which does not say that nothing is there."]
    places = [one for one in scene.things if one.is_place]
    things = [one for one in scene.things if not one.is_place]
    lines.append(LISTED if scene.is_looked else "So far it has seen:")
    lines += [_place_line(one, scene) for one in places[:MOST_THINGS]]
    lines += [_thing_line(one, scene) for one in things[:MOST_THINGS]]
    lines += [_person_line(one, things) for one in scene.people[:MOST_PEOPLE]]
    shown = sorted((one for one in things if one.u_px or one.v_px), key=lambda one: one.u_px)
    if len(shown) > 1:
        names = ", ".join(quoted(one.id) for one in shown[:MOST_THINGS])
        lines.append(f"In the image, from left to right: {names}. Who faces the robot sees it the other way round.")
    return lines


def _place_line(place: SeenObject, scene: Scene) -> str:
    there = [one for one in scene.relations if one.object == place.id and one.relation in ("in", "on")]
    names = ", ".join(quoted(one.subject) for one in there[:MOST_THINGS])
    holds = f"{there[0].relation} it: {names}" if there else "nothing is seen there"
    does = [f"it {quoted(place.does)}"] if place.does else []
    return f"- place {quoted(place.id)}: {', '.join([*_looks(place), *does, holds])}"


def _thing_line(thing: SeenObject, scene: Scene) -> str:
    where = [f"{one.relation} {quoted(one.object)}" for one in scene.relations if one.subject == thing.id][:4]
    what, *more = _looks(thing)
    return f"- thing {quoted(thing.id)}: {', '.join([what, *where, *more])}"


def _looks(thing: SeenObject) -> list[str]:
    """What it is, how it is, whose, how large, and where in the image, so that its id can be found there."""
    size = f"{100 * thing.width_m:.0f} cm wide and {100 * thing.height_m:.0f} cm high"
    return [
        quoted(f"{thing.colour} {thing.label}".strip()),
        *(quoted(state) for state in thing.state[:4]),
        *([f"of {quoted(thing.owner)}"] if thing.owner else []),
        *([size] if thing.width_m and thing.height_m else []),
        *([f"at ({thing.u_px:.0f}, {thing.v_px:.0f}) in the image"] if thing.u_px or thing.v_px else []),
    ]


def _person_line(person: SeenPerson, things: list[SeenObject]) -> str:
    """A person: what they do, which things are nearest to them, and how they see them."""
    x, y = person.hand_m[:2] if person.hand_m is not None else (person.x_m, person.y_m)
    near = sorted((math.hypot(one.x_m - x, one.y_m - y), one.id) for one in things)
    named = ", ".join(f"{quoted(ident)} ({far:.1f} m)" for far, ident in near[:3])
    row = ", ".join(quoted(one.id) for one in from_left(person, things)[:MOST_THINGS])
    does = [
        *(
            _GESTURES[word]
            for word in (person.gesture, person.hand)
            if word and not (word == "point" and person.points_at)
        ),
        *([f"points at {quoted(person.points_at)}"] if person.points_at else []),
        *([f"looks at {quoted(person.looks_at)}"] if person.looks_at else []),
        *([f"holds {quoted(person.holds)}"] if person.holds else []),
        *([f"nearest to them: {named}"] if named else []),
        *([f"as they see it, from left to right: {row}"] if row else []),
    ]
    return f"- person {quoted(person.id)}: {', '.join(does) or 'does nothing that is noticed'}"


def from_left(person: SeenPerson, things: list[SeenObject]) -> list[SeenObject]:
    """The things as a person who faces them sees them, from left to right; [] where it cannot be told."""
    stands = person.x_m, person.y_m
    if len(things) < 2 or (person.hand_m is not None and person.hand_m[:2] == stands):
        return []  # of a hand alone nobody knows where its person stands
    middle = [sum(values) / len(things) for values in zip(*((one.x_m, one.y_m) for one in things), strict=True)]
    faces = math.atan2(middle[1] - stands[1], middle[0] - stands[0])
    seen = sorted(
        (math.remainder(faces - math.atan2(one.y_m - stands[1], one.x_m - stands[0]), math.tau), one.id, one)
         for one in things
    )  # fmt: skip
    ahead = [(angle, one) for angle, _, one in seen if abs(angle) < math.pi / 2]
    is_apart = len(ahead) > 1 and ahead[-1][0] - ahead[0][0] > APART_RAD
    return _along_row([one for _, one in ahead], middle, faces - math.pi / 2) if is_apart else []


def _along_row(seen: list[SeenObject], middle_m: list[float], right_rad: float) -> list[SeenObject]:
    """What stands in a row, seen aslant, in its turns along the row; anything else as it is seen."""
    at = [(one.x_m - middle_m[0], one.y_m - middle_m[1]) for one in seen]
    along, across = sum(x * x - y * y for x, y in at), 2 * sum(x * y for x, y in at)
    turned = math.remainder(math.atan2(across, along) / 2 - right_rad, math.pi)
    is_row = math.hypot(along, across) > ROW_SHARE * sum(x * x + y * y for x, y in at)
    if not is_row or abs(turned) > ASLANT_RAD:
        return seen
    way = math.cos(right_rad + turned), math.sin(right_rad + turned)
    return sorted(seen, key=lambda one: one.x_m * way[0] + one.y_m * way[1])
