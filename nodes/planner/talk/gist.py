"""What can be taken from words that the grammar cannot put together: who does what with which thing, and to what place.

The grammar reads orders, and never guesses. What it leaves unread is looked at here part by part, by small classes of
cues and by the things that are named. A part that forbids, owns or is done by somebody else counts at once; a deed is
only proposed, and done after a yes. Pure functions of the words and of what is seen.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from nodes.msgs import Scene, SeenObject
from nodes.planner.orders import Order
from nodes.planner.talk.answers import AskedOf
from nodes.planner.words.cues import cues, cues_in
from nodes.planner.words.lexicon import lexicon_file
from nodes.planner.words.parser import Noun, Parser, segments_of
from nodes.planner.words.referents import held_by_robot, place_of, relation_to, standing

Act = Literal["ask", "spare", "back", "deed", "name", "yes", "no", "on", "social", "dark"]
"""A question; something is to be left; back with it; a deed; a name; yes; no; go on; manners; none."""

_CUES = cues("gist")
_STILL_THERE = re.compile(r"\b(?:last|only|remain(?:s|ing)?|left|still (?:here|there|standing|out|around))\b")
_FROM = re.compile(r"\b(?:clear|tidy|empty)(?: up| out| off)? (?:the|this|that) [a-z]+(?: for (?:me|us))?$")
_STATE = re.compile(r"\b(?:dirty|clean|empty|full)\b")
_POSSESSIVES = frozenset({"my", "our", "his", "hers"})
"""Beside an order they say which is meant, and not that it is to be left: "throw my cup out"."""
_BRINGS = frozenset({"place", "move", "bring", "get", "take", "pick", "clear", "tidy", "put_back", "run"})
_SKILLS = {
    "throw": "place", "rinse": "rinse", "clean": "rinse", "wipe": "wipe", "open": "open", "close": "close",
    "give": "hand_over", "hand_over": "hand_over", "look": "look", "point": "point",
}  # fmt: skip


class SaidPart(msgspec.Struct, frozen=True):
    """One part of an utterance: what it does, the things that it names and those that it may mean, and the words."""

    act: Act
    things: tuple[SeenObject, ...] = ()
    is_open: bool = False  # it names something, and nobody can tell which one
    skill: str = ""
    place: str = ""
    words: str = ""
    is_plain: bool = False  # an order by a verb, with nothing beside it that may change it
    is_named: bool = False  # by a colour or a kind, and not by "it"
    is_before: bool = False  # to be done before what was said before it
    is_owned: bool = False  # a person keeps it, or does it herself
    unknown: str = ""  # a name that no table has, where a thing is named
    apart: tuple[SeenObject, ...] = ()  # what it excepts
    is_aside: bool = False  # a sentence before others, of which nothing is known


@dataclass(frozen=True, slots=True)
class Focus:
    """What "it", "the other one" and "the same" may mean: from what is held, asked, worked on or was spoken of."""

    one: tuple[SeenObject, ...] = ()
    worked_on: tuple[SeenObject, ...] = ()  # what is ordered and not done
    kind: str = ""
    last: Order | None = None  # whose skill and place "the blue one, too" takes
    told: tuple[SeenObject, ...] = ()  # what the robot named last, in an answer
    there: str = ""  # the place that was spoken of last
    surface: str = ""  # the one on which most things stand
    within: Mapping[str, str] = field(default_factory=dict)  # what is or was in which vessel
    kept: frozenset[str] = frozenset()  # ids of what is to be left alone
    beside: tuple[SeenObject, ...] = ()  # what was asked about or named last and is in no hand: only that is opened


def parts_of(text: str, scene: Scene, parser: Parser, focus: Focus) -> list[SaidPart]:
    """The parts of an utterance, in turn."""
    found: list[SaidPart] = []
    segments = [one for one in segments_of(text) if one.words]
    for number, segment in enumerate(segments):
        end = next((one.end for one in segments[number:] if one.end not in (",", "")), "")
        is_asked = end == "?" and (segment.end == "?" or _CUES["asks"].match(" ".join(segment.words)) is not None)
        before = found[-1] if found else None
        part = _part(list(segment.words), "?" if is_asked else ".", scene, parser, focus, before)
        is_aside = part.act == "dark" and not (part.things or part.is_open or _CUES["restricts"].search(part.words))
        is_aside = is_aside and (segment.end in (".", "!") or part.words == "please")
        found.append(msgspec.structs.replace(part, is_aside=is_aside))
    return found


def _part(words: list[str], end: str, scene: Scene, parser: Parser, focus: Focus, before: SaidPart | None) -> SaidPart:
    said = " ".join(words).replace(" 's ", "'s ")
    head, _, tail = (
        said.partition(found[0]) if (found := _CUES["exception"].search(said)) is not None else (said, "", "")
    )
    heard, ahead = cues_in("gist", said), cues_in("gist", head.strip())
    apart, _ = _meant(parser.named_in(tail.split()), "", scene, focus)
    landmark = _CUES["landmark"].search(head)
    plain = head.replace("all right", "")  # names nothing
    nouns = parser.named_in((plain if landmark is None else head[: landmark.start()]).split())
    nouns += [one for one in parser.named_in(head[landmark.end() :].split()) if one.place] if landmark else []
    named, is_open = _meant(nouns, said, scene, focus)
    named = tuple(one for one in named if one not in apart)
    places = [one.place for one in nouns if one.place]
    verb = _verb_in(words, parser)
    if verb in ("clear", "tidy") and len(places) == 1 and _FROM.search(said):
        places = []  # "clear the table": that is where things are, and not where they go
    skill = _skill(verb, heard, places)
    sources = {n.place for one in parser.clauses(said) for how, n in one.targets if how == "from" and n is not None}
    goals = [one for one in places if one not in sources] if skill in ("", "place") else []
    place = goals[-1] if goals else _waste(scene) if verb == "throw" else ""
    is_named = is_named_in(nouns) or bool(landmark is not None and named)
    things = named
    if not named and not is_open and before is not None and before.things and ("single" in heard or skill or place):
        things, is_open = before.apart or before.things, before.is_open
    elif not named and not is_open:
        things = (focus.beside if skill in ("open", "close") else ()) or _pronoun(heard, scene, focus)
        if "everything" in heard and (skill or place):
            things = tuple(one for one in scene.things if not one.is_place and place_of(one.id, scene) != place)
    is_behind = before is not None and before.act == "deed" and is_named_in(nouns) and not (skill or places)
    if before is not None and is_behind and heard & {"before", "also"}:
        skill, place = before.skill, before.place  # "..., but before that the red one does"
    is_order = bool(skill) and parser.lexicon.verbs.at(words, 0)[0] > 0
    is_order = is_order and set(_CUES["own"].findall(head)) <= _POSSESSIVES
    act = _act(head.strip(), ahead, end, skill, verb, is_named=bool(named or is_open), has_place=bool(places))
    act = "deed" if act == "spare" and is_order and not heard & {"not", "self"} else act
    if act in ("deed", "name") and ("everything" in heard or any(one.is_other or one.count == "all" for one in nouns)):
        alone = [one for one in nouns if (one.kind or one.colour) and not (one.is_other or one.count == "all")]
        free = [one for one in things if one.id not in focus.kept or any(_fits(one, noun) for noun in alone)]
        things = tuple(free) or things  # what is left is in no "all"
    is_plain = act == "deed" and bool(verb) and not (heard & {"not", "later"} or is_open or apart)
    is_owned = act == "spare" and bool(ahead & {"own", "self"})
    unknown = next((one.unknown for one in nouns if _is_unknown_thing(one, parser)), "")
    return SaidPart(
        act, things, is_open, skill, place, said, is_plain, is_named, "before" in heard, is_owned, unknown, apart
    )


def _is_unknown_thing(noun: Noun, parser: Parser) -> bool:
    words = noun.unknown.split()  # a deed is no thing: "after that wipe ...", "the wiping"
    if parser.lexicon.verbs.at(words, 0)[0] or parser.lexicon.gerunds.at(words, 0)[0]:
        return False
    is_known = noun.kind or noun.colour or noun.place or noun.owner or noun.is_other
    return bool(noun.unknown) and noun.is_definite and not is_known and not _CUES["nothing"].search(noun.unknown)


def _fits(thing: SeenObject, noun: Noun) -> bool:
    is_kind = noun.kind in ("", "*", thing.label) or thing.label in _group(noun.kind)
    return not thing.is_place and is_kind and noun.colour in ("", thing.colour)


def is_named_in(nouns: Sequence[Noun]) -> bool:
    """Whether a thing is named by its kind or its colour, or as one of the other two."""
    return any(one.kind not in ("", "*") or one.colour or (one.is_other and one.count != 1) for one in nouns)


def _act(said: str, heard: frozenset[str], end: str, skill: str, verb: str, *, is_named: bool, has_place: bool) -> Act:
    is_request, is_wh, is_not = "request" in heard, "wh" in heard, "not" in heard
    is_question = (end == "?" and not is_request) or ("asks" in heard and (end == "?" or is_wh))
    tests: tuple[tuple[object, Act], ...] = (
        (is_question and not (is_request and not is_wh), "ask"),
        ("over" in heard, "social"),
        ("back" in heard and not _CUES["not"].match(said), "back"),
        ("self" in heard and (is_named or verb), "spare"),
        ("own" in heard and not (is_request or skill == "hand_over" or said.startswith("please")), "spare"),
        (_CUES["no"].fullmatch(said), "no"),
        ("on" in heard and not has_place and "spares_it" not in heard, "on"),
        (is_not and (is_named or "spares_it" in heard) and not is_request, "spare"),
        ("yes" in heard and not skill, "yes"),
        ("manners" in heard, "social"),
        (is_not and has_place and not (skill or verb), "spare"),  # "Never in the bin." orders nothing
        (skill or has_place or (verb and is_named), "deed"),
        ("no" in heard, "no"),
        (is_named or heard & {"other", "again"}, "name"),
    )
    return next((act for holds, act in tests if holds), "dark")


def _verb_in(words: Sequence[str], parser: Parser) -> str:
    """The first verb of the tables that is no part of a name."""
    lexicon = parser.lexicon
    for table in (lexicon.verbs, lexicon.gerunds):
        for i in range(len(words)):
            n, verb = table.at(words, i)
            is_noun = (i > 0 and words[i - 1] in ("the", "my", "your", "his", "her", "its")) or (
                i > 0 and words[i - 1] == "a" and verb not in ("rinse", "wipe", "clean", "look")
            )
            if (
                n
                and not is_noun
                and verb not in ("do", "say", "see", "help", "wait", "stand", "show", "go", "let")
                and words[i : i + 2] != ["look", "after"]
                and not lexicon.noun_at(words, i)[0]
            ):
                return verb
    return ""


def _skill(verb: str, heard: frozenset[str], places: Sequence[str]) -> str:
    if "gives" in heard:
        return "hand_over"
    if "has_to_go" in heard:
        return "place"
    if verb in _SKILLS:
        return _SKILLS[verb]
    if places and (not verb or verb in _BRINGS):
        return "place"
    return {"pick": "pick", "place": "place", "move": "place"}.get(verb, "")


def _waste(scene: Scene) -> str:
    places = [one for one in scene.things if one.is_place]
    waste = [one.label for one in places if "waste" in one.state]
    return next(iter(waste), "bin" if any(one.label == "bin" for one in places) else "")


def _meant(nouns: Sequence[Noun], said: str, scene: Scene, focus: Focus) -> tuple[tuple[SeenObject, ...], bool]:
    """The things that are named, and whether one of the names fits several."""
    found: list[SeenObject] = []
    is_open = False
    for noun in nouns:
        if noun.place or noun.owner in ("its",) or not (noun.kind or noun.colour or noun.is_other):
            continue
        if noun.kind == "*" and noun.count != "all":
            continue
        fitting = [one for one in scene.things if _fits(one, noun)]
        state = _STATE.search(said)
        if state is not None and noun.count == "all":
            fitting = [one for one in fitting if state[0] in one.state]
        if noun.is_other or (re.search(r"\bother\b", said) and not noun.colour):
            others = _others(scene, focus)
            fitting = [one for one in fitting if one in others]
        if not noun.kind and focus.kind and len(fitting) > 1:
            fitting = [one for one in fitting if one.label == focus.kind] or fitting
        fitting = fitting if noun.kind else _without_tools(fitting)
        is_counted = noun.is_other and noun.count not in (1, "all", "both")  # "the other two"
        is_all = noun.count == "all" or (noun.is_plural and not is_counted)
        wanted = len(fitting) if is_all else 2 if noun.count == "both" else int(noun.count)
        if len(fitting) > wanted and noun.kind not in ("", "*") and not noun.colour:
            worked_on = [one for one in fitting if one in focus.one or one in focus.worked_on]
            fitting = worked_on if 0 < len(worked_on) <= wanted else fitting
        if re.search(r"\bany\b", said) and not noun.colour:
            fitting = ([one for one in fitting if one.id not in focus.kept] or fitting)[:1]
        is_open = is_open or len(fitting) > wanted
        found += [one for one in fitting if one not in found]
    return tuple(found), is_open


def _group(kind: str) -> tuple[str, ...]:
    return lexicon_file().groups.get(kind, ())


def _others(scene: Scene, focus: Focus) -> list[SeenObject]:
    """What "the other one" may be: of the kind that was told last, or worked on, but not what was spoken of."""
    kind = _kind_of(focus.told)
    told = [one for one in scene.things if kind and one.label == kind and one not in focus.told]
    rest = [one for one in focus.worked_on if one not in focus.one]
    others = [one for one in scene.things if not one.is_place and one not in focus.one]
    return standing(told, scene) or rest or standing([one for one in others if focus.kind in ("", one.label)], scene)


def _pronoun(heard: frozenset[str], scene: Scene, focus: Focus) -> tuple[SeenObject, ...]:
    if "other" in heard:
        return tuple(_others(scene, focus))
    if "plural" in heard and focus.worked_on:
        return focus.worked_on
    return focus.one if "single" in heard else ()


def asked_about(words: str, scene: Scene, parser: Parser, focus: Focus, speaker: str) -> AskedOf:
    """What a question is about: what it names, or what its "that one" and "there" mean."""
    words = words.replace("which one of us ", "who ").replace("which of us ", "who ")
    nouns = parser.named_in(words.split())
    nouns = [one for one in nouns if not (_is_unknown_thing(one, parser) and _CUES["nothing"].search(one.unknown))]
    things: list[SeenObject] = []
    for noun in nouns:
        if noun.place or not (noun.kind or noun.colour or noun.is_other) or noun.kind == "*":
            continue
        fitting = [one for one in scene.things if _fits(one, noun)]
        if noun.is_other:
            fitting = [one for one in _others(scene, focus) if one in fitting]
        if not noun.kind and len(fitting) > 1 and (kind := focus.kind or _kind_of(focus.told)):
            fitting = [one for one in fitting if one.label == kind] or fitting
        if not noun.kind:
            fitting = _without_tools(fitting)
        if _STILL_THERE.search(words) and len(fitting) > 1 and not any(one.place for one in nouns):
            fitting = standing(fitting, scene)
        if noun.count == 1 and not noun.is_plural and len(fitting) > 1 and noun.is_definite:
            fitting = [one for one in fitting if one in (*focus.told, *focus.one)] or fitting
        things += [one for one in fitting if one not in things]
    is_named = bool(things)
    places = [one.place for one in nouns if one.place]
    is_there = re.search(r"\b(?:in|on|up|over) there\b|\bthere now\b", words) is not None
    place = places[-1] if places else focus.there if is_there else ""
    is_rest = is_there and not places and re.search(r"\b(?:left|still) .*\bon there\b", words) is not None
    if is_rest and relation_to(place, scene) == "in":
        place = focus.surface or place  # what things stood on, and not what they went into
    inside = [one for one in scene.things if {*focus.within.get(one.id, "").split()} & {*words.split()}]
    is_of_contents = bool(inside) and not things
    things = things or inside
    if not things:
        stands = [one for one in scene.things if not one.is_place and place_of(one.id, scene) == focus.surface]
        is_rest = _STILL_THERE.search(words) is not None and re.search(r"\bthe one\b", words) is not None
        things = stands if is_rest else list(_meant_by_pronoun(words, scene, focus))
    unseen = next(
        (f"{one.colour} {one.kind or one.unknown}".strip() for one in nouns
         if not one.place and (one.kind not in ("", "*") or _is_unknown_thing(one, parser))
         and not any(_fits(each, one) for each in scene.things)), ""
    )  # fmt: skip
    kinds = {one.kind for one in nouns if one.kind not in ("", "*")}
    labels = {each.label for each in scene.things for kind in kinds if each.label in (kind, *_group(kind))}
    colour = next((one.colour for one in nouns if one.colour), "")
    is_named = is_named or is_of_contents
    unseen = "" if is_of_contents else unseen
    return AskedOf(
        f" {words} ", tuple(things), is_named, frozenset(labels), colour, place, unseen, speaker, is_of_contents
    )


def _without_tools(things: list[SeenObject]) -> list[SeenObject]:
    """ "The yellow one" is no sponge, where it may be something else."""
    tools = lexicon_file().household["tools"]
    return [one for one in things if one.label not in tools] or things


def _kind_of(things: Sequence[SeenObject]) -> str:
    kinds = {one.label for one in things}
    return kinds.pop() if len(kinds) == 1 else ""


def _meant_by_pronoun(words: str, scene: Scene, focus: Focus) -> tuple[SeenObject, ...]:
    heard = cues_in("gist", words)
    if "other" in heard:
        return tuple(_others(scene, focus))
    if "plural" in heard:
        return focus.told if len(focus.told) > 1 else focus.worked_on or focus.told
    if "single" not in heard and not re.search(r"\b(?:he|she|him|her)\b", words):
        return ()
    return focus.told if len(focus.told) == 1 else focus.one


def focus_of(
    scene: Scene, mentioned: Sequence[Noun], orders: Sequence[SeenObject], target: SeenObject | None,
    asked: Sequence[SeenObject], last: Order | None, told: Sequence[SeenObject], there: str, within: Mapping[str, str],
    kept: frozenset[str],
) -> Focus:  # fmt: skip
    """What is spoken of: in the hand, asked about, gone for; else what was named last."""
    held = held_by_robot(scene)
    in_hand = tuple(one for one in scene.things if one.id in held)
    spoken: tuple[SeenObject, ...] = ()
    for noun in reversed(mentioned):
        fitting = tuple(one for one in scene.things if (noun.kind or noun.colour) and _fits(one, noun))
        if len(fitting) == 1 or (noun.unknown and not _CUES["nothing"].search(noun.unknown)):
            spoken = fitting  # none of what is unknown
            break
    one = in_hand or (tuple(asked) if len(asked) == 1 else ()) or ((target,) if target is not None else ()) or spoken
    kinds = {each.label for each in (*one, *orders, *asked)}
    kind = kinds.pop() if len(kinds) == 1 else ""
    places = [place for one in scene.relations if one.relation == "on" and (place := place_of(one.subject, scene))]
    surface = max(places, key=places.count, default="")
    beside = (tuple(asked) if len(asked) == 1 else ()) or spoken
    beside = tuple(each for each in beside if each.id not in held)
    return Focus(one, tuple(orders), kind, last, tuple(told), there, surface, within, kept, beside)
