"""A scenario file: what stands where, what people say and do when, and what counts as right and as wrong.

Conditions are about the simulator's world: "red mug in sink", "red mug held by person", "apple clean", "glass emptied",
"blue mug moved", "table clean", "jar open", "mug contains coffee", "hand touched", "robot moves" or "drives", "person
holds something"; "not" before any of them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import field

from nodes.sim.messages import ObjectTruth, Truth
from nodes.sim.world.world_file import Layout, ThingSpec, WorldFile, lay_out, load_world, read_file, sentences_of
from runtime.errors import UserError, choices
from runtime.serialization.toml_errors import Seconds, Table, convert, read_toml

SCENARIOS = Path(__file__).parents[1] / "scenarios"
NINE_SKILLS = SCENARIOS / "nine_skills"
DEMO, CUBES = "clear-table", "cubes"
WHENS = ("start", "then", "said", "is", "ever", "silent")
"""At the start; after the event before; when the robot has said a pattern; when a condition of the world holds; when
it has held for once; when the robot has said nothing since."""
BODILESS = ("wait", "leave")
DOES = (
    "offer hand", "hold out", "point at", "nod", "shake", "look at", "withdraw", "rest at", "step in", "step aside",
    "put", "bring", "reach out", *BODILESS,
)  # fmt: skip
HOLDERS = ("robot", "person")
TOUCH_M = 0.01
DRIVES_MPS = 0.06
_CONDITION = re.compile(
    r"(?P<no>not )?(?:(?P<thing>.+?) (?P<how>in|on|held by|contains) (?P<what>.+)|"
    r"(?P<part>hand|body|foot|face) touched|robot (?P<way>moves|drives)|(?P<holder>robot|person) holds something|"
    r"(?P<subject>.+?) (?P<state>clean|dirty|open|closed|emptied|moved|full|empty))"
)


Delay = Annotated[float, msgspec.Meta(ge=0.0, le=1e6, description="a number of seconds, 0 or more")]


class ScenarioEvent(Table, frozen=True):
    """One thing that a person says (the name of a list of wordings, or the words), does, or both."""

    when: str
    after_s: Delay = 1.0
    say: str = ""
    do: str = ""
    who: str = ""  # says it; "": the person
    after: str = ""  # what an event says or does that must have happened; "": the start
    by_s: Delay = 0.0  # so long after that it happens anyway; 0: never
    again: bool = False  # each time that it comes about, or that what it comes after has happened anew
    only: Literal["", "right", "not right"] = ""  # where all is right then that has to be in the end, or is not yet
    scripts: tuple[str, ...] = ()  # that have it; (): all


class SuccessCriteria(Table, frozen=True):
    """`right` holds in the end, nothing of `wrong` ever does."""

    right: tuple[str, ...]
    wrong: tuple[str, ...] = ()


class WorldScenario(Table, frozen=True):
    """One file. Without a verdict it is a room to be in, and no person plays it."""

    sentence: str
    things: tuple[ThingSpec, ...]
    skill: int = 0  # of the nine; 0: of none
    events: tuple[ScenarioEvent, ...] = ()
    verdict: SuccessCriteria | None = None
    words: dict[str, tuple[str, ...]] = field(default_factory=dict)
    dirty: tuple[str, ...] = ()
    person: str = "Ann"
    forgives: bool = True  # what her words or the robot's touch have stopped, after a moment
    patience_s: Seconds = 120.0
    quiet_s: Seconds = 25.0
    arrival_s: Delay = 2.0  # from when the robot is there until anybody says or does anything
    done_s: Seconds = 10.0  # all is right and nothing moves for so long: it is over
    scripts: dict[str, SuccessCriteria] = field(default_factory=dict)  # what is right and wrong besides; the first
    # is played where nobody says which
    world: str = "kitchen"  # a shipped one, or a file beside this one


def file_of(name: str | Path) -> Path:
    """The file of a shipped scenario's name, or the path itself. Raises UserError for a name that none has."""
    if Path(name).suffix:
        return Path(name)
    shipped = {file.stem: file for folder in (SCENARIOS, NINE_SKILLS) for file in folder.glob("*.toml")}
    if str(name) not in shipped:
        raise UserError(f"there is no scenario {str(name)!r}; expected a file, or one of {choices(sorted(shipped))}")
    return shipped[str(name)]


@cache
def load_scenario(name: str | Path) -> WorldScenario:
    """The scenario of a file, or the shipped one of a name; one that can succeed. Raises UserError."""
    file = file_of(name)
    text, found = read_file(file, WorldScenario)
    if problems := _wrong_of(found, file, text):
        raise UserError(sentences_of(file, text, problems))
    return found


def scripted(scenario: WorldScenario, script: str = "") -> WorldScenario:
    """The scenario with the events, and with the verdict, of one of its scripts. Raises UserError."""
    if script and script not in scenario.scripts:
        raise UserError(f"script is {script!r}; known: {', '.join(scenario.scripts) or 'none'}")
    script = script or next(iter(scenario.scripts), "")
    verdict = scenario.verdict
    if verdict is not None and script:
        more = scenario.scripts[script]
        verdict = SuccessCriteria(right=verdict.right + more.right, wrong=verdict.wrong + more.wrong)
    events = tuple(event for event in scenario.events if not event.scripts or script in event.scripts)
    return msgspec.structs.replace(scenario, events=events, verdict=verdict)


def with_rows(name: str | Path, events: tuple[ScenarioEvent, ...], right: tuple[str, ...]) -> WorldScenario:
    """What stands in a scenario, with these events and this in the end instead of its own. Raises UserError."""
    layout = layout_of(name)
    known = _known(layout)
    problems = [what for event in events for what in _event_problems(event, known, layout.world)]
    problems += [what for condition in right for what in _condition_problems(condition, known, layout.world)]
    if problems:
        raise UserError("; ".join(problems))
    return WorldScenario(
        sentence="", things=load_scenario(name).things, events=events, verdict=SuccessCriteria(right),
        forgives=False, patience_s=240.0, quiet_s=12.0,
    )  # fmt: skip


def _known(layout: Layout) -> dict[str, ThingSpec]:
    """The things by what they are called."""
    return {one.words: one.spec for one in layout.things} | {one.thing.label: one.spec for one in layout.things}


def scenario_problems(name: str) -> list[str]:
    """What is wrong with a scenario, before anything starts; none where there is none ("")."""
    try:
        if name:
            load_scenario(name)
    except UserError as problem:
        return [str(problem)]
    return []


def world_of(name: str | Path) -> WorldFile:
    """The world of a scenario. Raises UserError."""
    return _world(load_scenario(name), file_of(name))


def world_file_of(name: str | Path) -> str:
    """Its world: the path of a file, or the name of a shipped one."""
    return _world_name(load_scenario(name), file_of(name))


def _world(scenario: WorldScenario, file: Path) -> WorldFile:
    return load_world(_world_name(scenario, file))


def _world_name(scenario: WorldScenario, file: Path) -> str:
    beside = file.parent / scenario.world
    return str(beside) if beside.suffix and beside.exists() else scenario.world


def layout_of(name: str | Path, seed: int = 0, things: str = "") -> Layout:
    """The world of a scenario as a seed lays it out. Raises UserError.

    `things`: with these alone, "blue_cup red_cup" say; what stands near to the robot must be one of them.
    """
    scenario = load_scenario(name)
    world = _world(scenario, file_of(name))
    specs = _some(scenario.things, things.split()) if things else scenario.things
    return replace(lay_out(world, specs, seed), dirty=scenario.dirty, scenario=str(name))


def _some(specs: tuple[ThingSpec, ...], names: Sequence[str]) -> tuple[ThingSpec, ...]:
    known = {f"{spec.colour}_{spec.kind}".replace(" ", "_"): spec for spec in specs}
    for name in names:
        if name not in known:
            raise UserError(f"things: {name!r} is on no table here; known: {choices(known)}")
    for name, spec in known.items():
        if spec.stands == "near" and name not in names:
            raise UserError(f"things: the {name} must be one of them")
    return tuple(spec for name, spec in known.items() if name in names)


def wordings_of(path: Path, name: str) -> dict[str, tuple[str, ...]]:
    """The wordings of one scenario in a file with a table for each. Raises UserError."""
    data: dict[str, Any] = read_toml(path)
    said = convert(data.get(name, {}), dict[str, tuple[str, ...]], f"wordings {path}", name)
    return {slot: texts for slot, texts in said.items() if texts}


def _wrong_of(scenario: WorldScenario, file: Path, text: str) -> list[tuple[str, str]]:
    """Why the file cannot be played, or cannot succeed: words of the line where it stands, and a sentence."""
    world = _world(scenario, file)
    try:
        layout = lay_out(world, scenario.things, 0)
    except UserError as problem:
        named = re.search(r"'([^']+)'", str(problem))
        return [(f'"{named[1]}"' if named and f'"{named[1]}"' in text else "things", str(problem))]
    found: list[tuple[str, str]] = []
    if not 0 <= scenario.skill <= 9:
        found.append(("skill", f"skill is {scenario.skill}; expected 1 to 9"))
    for one, other in combinations((one.thing for one in layout.things if not one.spec.hidden), 2):
        if math.dist((one.x_m, one.y_m), (other.x_m, other.y_m)) < (one.width_m + other.width_m) / 2 - TOUCH_M:
            what = f"the {one.colour} {one.label} and the {other.colour} {other.label} stand in one spot"
            found.append((other.label, f"{what}; give one of them another place"))
    for name in scenario.dirty:
        if name not in world.places:
            found.append(("dirty", f"dirty: there is no place {name!r}; places: {choices(world.places)}"))
    known = _known(layout)
    for script in {script: None for event in scenario.events for script in event.scripts}:
        if script not in scenario.scripts:
            found.append(("scripts", f"event scripts {script!r}; known in [scripts]: {choices(scenario.scripts)}"))
    for event in scenario.events:
        found += [
            (event.when if "event when" in what else event.do, what) for what in _event_problems(event, known, world)
        ]
    found += [
        (name, f"[words] {name}: no wording; expected one at least")
        for name, said in scenario.words.items()
        if not all(text.strip() for text in said or ("",))
    ]
    if scenario.person.strip().lower() in ("", "robot"):
        found.append(("person", f"person is {scenario.person!r}; expected a name, and not the robot's"))
    for script in scenario.scripts or ("",):
        played = scripted(scenario, script)
        told = _order_problems(played)
        if played.verdict is not None:
            told += _verdict_problems(played, played.verdict, layout, known)
        found += [problem for problem in told if problem not in found]
    return found


def _order_problems(played: WorldScenario) -> list[tuple[str, str]]:
    """Events that come after none, or after one that is not there."""
    named_so = {words for event in played.events for words in (event.say, event.do) if words}
    found = [
        (event.after, f"event after {event.after!r}: no event says or does that; known: {choices(named_so)}")
        for event in played.events
        if event.after and event.after not in named_so
    ]
    if played.events and played.events[0].when == "then":
        found.append(("then", "the first event is when 'then', and there is none before it; expected 'start'"))
    return found


def _event_problems(event: ScenarioEvent, known: Mapping[str, ThingSpec], world: WorldFile) -> list[str]:
    found = []
    kind, _, what = event.when.partition(": ")
    if kind not in WHENS or (kind in ("said", "is", "ever") and not what):
        found.append(f"event when {event.when!r}; expected one of {', '.join(WHENS)}; said, is and ever with ': ...'")
    elif kind == "said":
        try:
            re.compile(what)
        except re.error as problem:
            found.append(f"event when {event.when!r}: {problem}")
    elif kind in ("is", "ever"):
        found += [f"event when {event.when!r}: {problem}" for problem in _condition_problems(what, known, world)]
    does = next((one for one in DOES if event.do == one or event.do.startswith(one + " ")), "")
    if event.do and not does:
        found.append(f"event do {event.do!r}; expected one of {', '.join(DOES)}")
    if does and (thing := thing_of(event.do, does)) and thing not in known and thing not in world.places:
        found.append(f"event do {event.do!r}: there is no {thing!r}; things: {choices(known)}")
    if event.do.startswith(("put ", "bring ")) and re.split(r" (?:on|in) ", event.do)[-1] not in world.places:
        found.append(f"event do {event.do!r}: expected on or in one of {choices(world.places)}")
    if event.do and does not in BODILESS and "hand" not in world.person:
        found.append(f"event do {event.do!r}: this world's [person] has no hand, and so no body")
    if event.again and kind in ("is", "ever", "start") and not event.after:
        found.append(f"event when {event.when!r} happens again at every moment; say after what: after = 'order'")
    if not event.say.strip() and not event.do:
        found.append(f"event when {event.when!r} neither says nor does anything")
    return found


def _verdict_problems(
    scenario: WorldScenario, verdict: SuccessCriteria, layout: Layout, known: Mapping[str, ThingSpec]
) -> list[tuple[str, str]]:
    """Conditions that are none, that never can hold, or that nothing has to be done for."""
    world, found = layout.world, []
    if not verdict.right:
        found.append(("right", "[verdict] right is empty; expected what holds in the end, as ['red mug on tray']"))
    for condition in (*verdict.right, *verdict.wrong):
        found += [(condition, what) for what in _condition_problems(condition, known, world)]
    for condition in verdict.right:
        found += [(condition, what) for what in _unreachable(condition, known, world, scenario)]
        if condition in verdict.wrong:
            found.append((condition, f"it cannot succeed: {condition!r} is right in the end and always wrong"))
    for one, other in combinations(verdict.right, 2):
        a, b = _CONDITION.fullmatch(one), _CONDITION.fullmatch(other)
        if a is None or b is None or not a["thing"] or a["no"] or b["no"]:
            continue
        if a["thing"] == b["thing"] and a["what"] != b["what"] and "contains" not in (a["how"], b["how"]):
            found.append((other, f"it cannot succeed: {one!r} and {other!r} are never both so"))
    if found:
        return found
    truth = truth_at_start(replace(layout, dirty=scenario.dirty))
    for condition in verdict.wrong:
        if holds(condition, truth):
            found.append((condition, f"it cannot succeed: {condition!r} is wrong, and so from the start"))
    if not verdict.wrong and all(holds(condition, truth) for condition in verdict.right):
        what = "nothing has to be done: what is right holds from the start"
        found.append((verdict.right[0], f"{what}; say in wrong what must never be"))
    return found


def truth_at_start(layout: Layout) -> Truth:
    """What is so at the start."""
    things = []
    for one in layout.things:
        thing, spec, is_held = one.thing, one.spec, one.spec.at == "hand" or one.spec.hidden
        things.append(
            ObjectTruth(
                name=thing.name, label=thing.label, colour=thing.colour, x_m=thing.x_m, y_m=thing.y_m, z_m=thing.z_m,
                held_by="person" if is_held else "", place="" if is_held else spec.at, fill=spec.fill,
                contents=(spec.contents,) if spec.fill else (), is_dirty=spec.dirty,
            )
        )  # fmt: skip
    return Truth(objects=tuple(things), dirty_places=layout.dirty)


def thing_of(do: str, does: str) -> str:
    """What a deed is about: "red mug" of "put red mug on tray"."""
    return re.split(r" (?:on|in|at|near) ", do.removeprefix(does).strip())[0]


def _condition_problems(condition: str, known: Mapping[str, ThingSpec], world: WorldFile) -> list[str]:
    found = _CONDITION.fullmatch(condition)
    if found is None:
        return [f"condition {condition!r}; expected such as 'red mug in sink', 'apple clean' or 'blue mug moved'"]
    subject = found["thing"] or found["subject"]
    if not subject:
        return []
    if found["thing"] in world.places and found["thing"] not in known:
        return [f"condition {condition!r}: a place is only clean or dirty; expected a thing: {choices(known)}"]
    if found["how"] == "held by" and found["what"] not in HOLDERS:
        return [f"condition {condition!r}: {found['what']!r} holds nothing here; expected {' or '.join(HOLDERS)}"]
    if subject not in known and subject not in world.places:
        return [f"condition {condition!r}: there is no {subject!r}; things: {choices(known)}"]
    if found["how"] in ("in", "on") and found["what"] not in (*world.places, "floor"):
        return [f"condition {condition!r}: there is no place {found['what']!r}; places: {choices(world.places)}"]
    return []


def _unreachable(
    condition: str, known: Mapping[str, ThingSpec], world: WorldFile, scenario: WorldScenario
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
    fills = {one.fills for one in world.places.values()} | {one.contents for one in scenario.things if one.fill > 0.0}
    if found["how"] == "contains" and found["what"] not in fills:
        return [f"it cannot succeed: nothing here holds or fills {found['what']}"]
    if not world.kinds[spec.kind].is_graspable:
        return [f"it cannot succeed: the {subject} is too wide for the gripper, and no event moves it"]
    if spec.stuck and found["state"] == "open":
        return [f"it cannot succeed: the lid of the {subject} is stuck"]
    return []


def holds(condition: str, truth: Truth) -> bool:
    """Whether a condition holds in the world. Raises UserError for one that is none."""
    found = _CONDITION.fullmatch(condition)
    if found is None:
        raise UserError(f"condition {condition!r} is none")
    if part := found["part"]:
        is_so = part in truth.touched or bool((truth.impulse_n_s or {}).get(part))
    elif way := found["way"]:
        is_so = truth.is_moving if way == "moves" else abs(truth.robot_v_mps) > DRIVES_MPS
    elif holder := found["holder"]:
        is_so = any(one.held_by == holder for one in truth.objects)
    else:
        is_so = _holds(found, truth)
    return is_so != bool(found["no"])


def _holds(found: re.Match[str], truth: Truth) -> bool:
    subject, state = found["thing"] or found["subject"], found["state"]
    things = named(subject, truth.objects)
    if not things:  # a place
        return state in ("clean", "dirty") and (subject in truth.dirty_places) == (state == "dirty")
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


def named(words: str, things: Sequence[ObjectTruth]) -> list[ObjectTruth]:
    """The things that are called so: "red mug", or "mug" for all of them."""
    return [one for one in things if words in (one.label, f"{one.colour} {one.label}")]


def together(conditions: Sequence[str]) -> list[str]:
    """Conditions with those of one kind of thing as one: "green and red cups in bin", "apple clean"."""
    found: dict[tuple[str, str], list[str]] = {}
    for condition in conditions:
        match = _CONDITION.fullmatch(condition)
        colour, _, label = (match["thing"] or "" if match is not None and not match["no"] else "").partition(" ")
        rest = condition.removeprefix(f"{colour} {label}") if label else condition
        found.setdefault((label, rest), []).append(colour)
    return [
        f"{list_words(colours)} {label}{'s' * (len(colours) > 1)}{rest}" if label else rest
        for (label, rest), colours in found.items()
    ]


def list_words(words: Sequence[str]) -> str:
    """ "a, b and c", in alphabetical order."""
    ordered = sorted(words)
    return ordered[0] if len(ordered) == 1 else f"{', '.join(ordered[:-1])} and {ordered[-1]}"
