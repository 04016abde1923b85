"""Words that only who sees the scene can tell, written out: a name that was given, "the second cup from the left".

What is on the left is so for who speaks. Where nobody sees them, the robot's side and the one across are both told, and
it is asked which is meant.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import msgspec

from nodes.msgs import Scene, SeenObject, SeenPerson
from nodes.planner.cues import cue
from nodes.planner.languages import english_words
from nodes.planner.lexicon import WORDS, plural_of
from nodes.planner.scene_text import from_left

BESIDE_M = 0.05
"""What stands next to something is nearer to it than all others by this."""
BETWEEN_M = 0.12
"""What stands between two things is no further from the line that joins them."""
_NUMBERS = {"first": 0, "second": 1, "third": 2, "fourth": 3, "fifth": 4, "last": -1}
_NUMBER = rf"(?:(?P<number>{'|'.join(_NUMBERS)}) )?"
_SIDE = r"(?P<side>left|right|middle)"
_ON_SIDE = rf"(?:on|to|at|from|in) (?:the|your|my) (?:far |very )?{_SIDE}(?:[- ]hand)?(?: side)?\b(?! of)"
_IS = r"(?:(?:that|which) (?:is|stands) |standing )?"
_PUTS = re.compile(r"\b(?:put|place|set|move|stand|drop)\b", re.I)
_WHERE_TO = re.compile(r"\b(?:in|on|into|onto|to|away|off|back)\b", re.I)
_NEAR = r"(?:next to|beside|by|near|nearest(?: to)?|closest to)"
_SIDE_OF = r"(?:(?:on|to|at) (?:the |your |my )?)?(?P<side>left|right)(?:[- ]hand)?(?: side)? of"
_ANY_WAY = rf"(?:{_NEAR}|between|{_SIDE_OF.replace('?P<side>', '?:')})"
_UNTOLD = re.compile(rf"\b(?:the|that|this) (?:one|thing|object)s? {_IS}{_ANY_WAY} ", re.I)
_OBJECTS = re.compile(r"\b(?:not?|never|leave|except|but|without|keep|mine|my|is|are)\b|n't\b", re.I)
_MINE = re.compile(r"(?<!is )(?<!are )(?<!was )(?<!'s )(?<!of )\bmine\b(?! is\b)", re.I)
_MY = re.compile(r"\b(?:my|our) (?P<kind>[a-z]+)\b(?! is\b)", re.I)
_NOT_MY = re.compile(r"\W*(?:no\W+|but )?not (?:my|our) [a-z]+\W*", re.I)
"""Said of what the robot is at, holds or is shown: the referents tell which."""
_KEEPS = re.compile(r"\b(?:not?|never|leave|except|but|without|keep|stays?)\b|n't\b", re.I)
_SEVERAL = {"two": 2, "three": 3, "four": 4, "five": 5}
_ELLIPSIS = re.compile(rf"(?:no,? |it is |i mean )?(?={_ANY_WAY} )", re.I)
_ASKS_WHAT = re.compile(rf"what (?:is|stands|do you see) (?={_ANY_WAY} )(.*)", re.I)
_ASKS_WHO = re.compile(
    r"(?:and |but |oh,? |well,? )?(?:says who|(?:on|by|at) whose (?:orders?|commands?|request|authority|say[- ]so)"
    r"|whose (?:order|idea|wish) (?:was|is) (?:that|this|it)|according to whom?|who(?: ever)? wants? (?:that|this|it)"
    r"|who (?:sent|gave) you(?: that| this)?(?: order)?|(?:and )?who are you to say that)\W*", re.I
)  # fmt: skip
_NAMING = (
    r"(?:please |let us |we )?(?:call|name) {thing} (?P<name>[a-z]+)",
    r"{thing}(?: is|'s)(?: called| named) (?P<name>[a-z]+)",
    r"the name of {thing} is (?P<name>[a-z]+)", r"{thing}'s name is (?P<name>[a-z]+)",
    r"(?:do you |can you )?see {thing}\W+(?:from now on,? )?(?:that|this|it|he|she)(?:'s| is)(?: called| named)?"
    r" (?P<name>[a-z]+)",
)  # fmt: skip
_SHOWN_AS = r"(?:this|that)(?: one)?(?: here)?(?:'s| is) (?P<name>[A-Z][a-z]+)"
_AROUND_NAME = re.compile(
    r"^(?:(?:and|so|oh|okay|hey|right|listen|well|from now on)\b\W*)+"
    r"|\W*\b(?:okay|ok|right|all right|from now on|got (?:it|that))\W*$",
    re.I,
)
_ASKS_NAME = re.compile(
    r"(?:and |so )?what(?:'s| is| was| do (?:we|you|i) call| did (?:we|you|i) call) "
    r"(?:the name of )?(?:the |that |this )(?P<words>[a-z ]+?)(?: again)?(?P<asks>'s name| called| named)?(?: again)?",
    re.I
)  # fmt: skip
_WHOSE = re.compile(
    r"(?i:\b(?:the|that) (?P<words>[a-z]+(?: [a-z]+)?))(?:(?:'s| is) (?:mine|(?P<who>[A-Z][a-z]+)'s)"
    r"| belongs to (?:me|(?P<whom>[A-Z][a-z]+)))(?=\s*(?:$|[.,;!?]| (?:and|but|so)\b))"
)
_MY_IS = re.compile(r"\b(?:mine|my (?P<kind>[a-z]+))(?:'s| is) the (?P<words>[a-z]+(?: [a-z]+)?)\b", re.I)
"""How somebody says what a thing is called, asks for it, and says whose it is."""


_TO_WHOM = re.compile(
    r"\b((?i:give|hand|bring|serve|pass|fetch|get|take)) [A-Z][a-z]+ "
    r"(?=(?:the|an?|another|some|his|her|that|this|both|one)\b)"
)
"""To whom a thing is brought makes no difference to the deed: it is held out."""
_ONE_OF = re.compile(
    rf"(?<!is )(?<!are )(?<!was )(?<!not )(?<!'s )\b(?:the|that|this) (?P<colour>{'|'.join(WORDS['colours'])}) one\b"
    r"(?!'s\b| (?:of|is|are|was|has|will|stays?|belongs|needs|can|should)\b)", re.I
)  # fmt: skip
_STATES = "dirty|unwashed|clean|washed|full|empty"
_IN_STATE = (
    r"\b(?:(?:everything|anything|all|whatever|what)(?: of it)?(?: (?:that|which))?(?:'s| is)?(?: still)? "
    rf"(?P<a>{_STATES})|(?:all )?(?:of )?(?:the|those|these|any)(?: two| three)? (?P<b>{_STATES}) "
    r"(?P<kind>ones?|things|stuff|dishes|{kinds}))"
    r"(?: (?:things?|stuff))?(?: (?:on|in) the (?P<place>[a-z]+))?(?! is\b| are\b|[a-z])"
)
_APART = re.compile(r"\W*(?:except|but|apart|other than|without)\b", re.I)
_TIPS = (
    r"\b(?:pour|tip|throw|empty|chuck|drain|dump|get rid of)(?: (?:out|away))?"
    r"(?: (?:the|that|this|all|any|old|cold|rest of))* (?P<what>{what})"
    r"(?: (?:out(?! of)|away|down the (?:sink|drain)))?"
    r"(?: (?:that is |left )?(?:in|from|out of) (?P<vessel>(?:the|that|this|my|both|these|those|all the)"
    r"(?: [a-z]+)? (?:mugs?|cups?|glass(?:es)?|ones?|bottles?)))?(?: (?:out|away))?"
)
"""What is told by how it is, and what is emptied by what is in it."""

_PLAINLY = (
    ("except", "except"), ("colour_is", r"the \1 one is"),
    ("goes_on_with", "do "), ("does_herself", r"\1 do"), ("mine_is", r"\2 is \1"),
    ("is_my", r"\1 is mine"), ("whichever", "the one"), ("furthest_of", r"the \1most \2"),
    ("furthest", r"the \1most one"),
)  # fmt: skip
"""Other words for an exception, for who does it herself, for what is mine, and for a place in the row."""


class SpelledOut(msgspec.Struct, frozen=True):
    """The words with plain references; what is said beside a question which one is meant; what is said to all of it."""

    text: str
    aside: str = ""
    reply: str = ""
    is_untold: bool = False  # it is to be asked which is meant
    is_objection: bool = False  # that one is to be left alone
    views: tuple[str, ...] = ()  # ids of what is meant as the robot sees it, and from the other side


def spelled_out(
    text: str, scene: Scene, names: Mapping[str, str], speaker: str = "", kind: str = "", *, is_owner: bool = False
) -> SpelledOut:
    """An utterance with names and places in the room as what they mean; `kind` is what "the one" is, "" where open.

    `is_owner`: somebody has said what is theirs, so that "mine" means that.
    """
    for name, plainly in _PLAINLY:
        text = cue("spelled", name).sub(plainly, text)
    by_id = {one.id: one for one in scene.things if one.id}
    for name, ident in names.items():
        if ident in by_id and _is_unique(by_id[ident], scene):
            text = re.sub(rf"\b{name}\b", f"the {by_id[ident].name}", text, flags=re.I)
    if text.strip() and not re.search(r"\w", text):
        return SpelledOut(text, reply="Please say that in words.")
    if (called := _called(text, scene, names)) is not None:
        return SpelledOut(text, reply=called)
    if _ASKS_WHO.fullmatch(text.strip()):
        return SpelledOut("Who told you that?")
    named = _MINE.search(text) or (_MY.search(text) if _KEEPS.search(text) else None)
    if named is not None and not _NOT_MY.fullmatch(text):
        label = (named.groupdict().get("kind") or "").lower()
        own = [one for one in scene.things if label in ("", one.label) and one.owner.lower() == speaker.lower() != ""]
        alike = len(_candidates(label, scene))
        is_open = alike and (alike > 1 or not label) and (len(own) != 1 or not _is_unique(own[0], scene))
        if is_open and not is_owner:
            return SpelledOut(text, reply="I cannot tell which one is yours.", is_untold=True, is_objection=True)
        text = f"{text[: named.start()]}the {own[0].name}{text[named.end() :]}" if len(own) == 1 else text
    text = re.sub(r"\bmy (?P<kind>[a-z]+)\b(?! is\b)", partial(_own, scene=scene, speaker=speaker), text, flags=re.I)
    text = _TO_WHOM.sub(r"\1 me ", text)
    text = _ONE_OF.sub(partial(_only_one, scene=scene, kind=kind), text)
    text, missing = _by_state(text, scene)
    if missing:
        return SpelledOut(text, reply=f"I see nothing {missing}.")
    asked = _ASKS_WHAT.fullmatch(text.strip(" ?.!"))
    if asked is not None:
        text = f"the thing {asked[1]}"
    elif kind and (begins := _ELLIPSIS.match(text.strip())):  # "Left of the blue one.", of cups that are asked for
        text = f"the {kind} {text.strip()[begins.end() :]}"
    asides: list[str] = []
    views: list[str] = []
    for pattern, find in _ways(scene):
        meant = partial(_meant, find=find, scene=scene, speaker=speaker, kind=kind, asides=asides, views=views)
        text = re.sub(pattern, meant, text, flags=re.I)
    text, is_open = _several(text, scene, speaker, kind)
    aside = " ".join(dict.fromkeys(asides))
    untold = _UNTOLD.search(text)
    if is_open or (untold is not None and not _is_goal(untold)):
        reply = f"{aside} I cannot tell which one that is.".strip()
        return SpelledOut(text, reply=reply, is_untold=True, is_objection=_OBJECTS.search(text) is not None)
    if asked is not None:
        return SpelledOut(text, reply=f"That is {text}.")
    return SpelledOut(text, aside, views=tuple(views))


def _only_one(found: re.Match[str], scene: Scene, kind: str) -> str:
    """ "The white one", where one thing alone is white and nothing of another kind is spoken of."""
    things = [one for one in scene.things if not one.is_place and one.colour == found["colour"].lower()]
    is_it = len(things) == 1 and kind in ("", things[0].label) and _is_unique(things[0], scene)
    return f"the {things[0].name}" if is_it else found[0]


def _by_state(text: str, scene: Scene) -> tuple[str, str]:
    """With "everything dirty", "the full ones" and "the coffee in it" as what they are called; what nothing is like."""
    text = _spilt(text, scene)
    things = [one for one in scene.things if not one.is_place]
    if not any(one.state for one in things):
        return text, ""
    labels = {name: one.label for one in things for name in (one.label, plural_of(one.label))}
    kinds = "|".join(map(re.escape, sorted(labels, key=len, reverse=True)))
    found = re.search(_IN_STATE.format(kinds=kinds), text, re.I)
    if found is None or _APART.match(text[found.end() :]):
        return text, ""
    state, label = (found["a"] or found["b"]).lower(), labels.get((found["kind"] or "").lower(), "")
    place = next((one.id for one in scene.things if one.is_place and one.label == (found["place"] or "").lower()), "")
    at = {one.subject for one in scene.relations if one.object == place}
    there = [one for one in things if label in ("", one.label) and (not found["place"] or one.id in at)]
    meant = [one for one in there if _is_so(one, state)]
    is_one = bool(found["kind"]) and found["kind"].lower() in ("one", label)
    if state == "empty" and not label:
        return text, ""
    if not meant and not is_one:
        return text, state
    if not meant or (is_one and len(meant) > 1) or not all(_is_unique(one, scene) for one in meant):
        return text, ""
    return f"{text[: found.start()]}{' and '.join(f'the {one.name}' for one in meant)}{text[found.end() :]}", ""


def _is_so(thing: SeenObject, state: str) -> bool:
    """Whether it is dirty, clean, full or empty, as far as that can be seen of its kind."""
    if state in ("clean", "washed"):
        return "dirty" not in thing.state
    is_full = bool({"full", "half full"} & set(thing.state))
    return is_full if state == "full" else not is_full if state == "empty" else "dirty" in thing.state


def _spilt(text: str, scene: Scene) -> str:
    """ "Tip the coffee out": of what holds some, or of what is named, as an order to empty that."""
    contents = {word for one in scene.things for word in one.state} - {
        "full",
        "half full",
        "dirty",
        "clean",
        "open",
        "closed",
    }
    what = "|".join(map(re.escape, sorted(contents) or ["coffee"]))
    text = re.sub(
        rf"(?i)\b({what})\b(.*)\b(pour|tip|throw|chuck) (?:it|that)(?= (?:out|away)\b)", r"\1\2\3 the \1", text
    )
    found = re.search(_TIPS.format(what=what), text, re.I)
    if found is None:
        return text
    full = [one for one in scene.things if found["what"].lower() in one.state and _is_unique(one, scene)]
    vessels = found["vessel"] or " and ".join(f"the {one.name}" for one in full)
    return f"{text[: found.start()]}empty {vessels}{text[found.end() :]}" if vessels else text


def _own(found: re.Match[str], scene: Scene, speaker: str) -> str:
    """ "My mug", where one is known to be the speaker's."""
    own = [
        one
        for one in scene.things
        if one.label == found["kind"].lower() and one.owner and one.owner.lower() == speaker.lower()
    ]
    return f"the {own[0].name}" if len(own) == 1 and _is_unique(own[0], scene) else found[0]


def _several(text: str, scene: Scene, speaker: str, kind: str) -> tuple[str, bool]:
    """With "the two cups on the left" as what they are called; and whether that cannot be told."""
    labels = {plural_of(one.label): one.label for one in scene.things if not one.is_place}
    plural = rf"(?P<kind>{'|'.join(map(re.escape, sorted(labels, key=len, reverse=True)))}|ones)"
    count = rf"\bthe (?:first )?(?P<count>{'|'.join(_SEVERAL)})"
    ways = (
        rf"{count} {_SIDE}(?:[- ]?most|[- ]hand)?(?: {plural})?\b",
        rf"{count}(?: {plural})? {_IS}{_ON_SIDE}",
    )
    found = next((one for way in ways if (one := re.search(way, text, re.I))), None)
    if found is None:
        return text, False
    label = labels.get((found["kind"] or "").lower(), kind)
    if _is_in_hand(label, scene) and _OBJECTS.search(text):
        return text, True
    things, number = _candidates(label, scene), _SEVERAL[found["count"].lower()]
    rows = _rows(found[0], things, scene, speaker) if label and found["side"].lower() != "middle" else []
    ends = [row[:number] if found["side"].lower() == "left" else row[-number:] for row in rows]
    meant = {frozenset(one.name for one in end) for end in ends}
    if len(meant) != 1 or len(ends[0]) < number or not all(_is_unique(one, scene) for one in ends[0]):
        return text, True
    names = " and ".join(f"the {one.name}" for one in ends[0])
    return f"{text[: found.start()]}{names}{text[found.end() :]}", False


def _meant(
    found: re.Match[str], find: _Finder, scene: Scene, speaker: str, kind: str, asides: list[str], views: list[str]
) -> str:
    """The name of what such words mean; the words, or only its kind, where they do not tell."""
    word = found["kind"].lower()
    label = kind if word == "one" else "" if word in _ANYTHING else word
    alike = _candidates(label, scene)
    if _is_in_hand(label, scene) and _OBJECTS.search(found.string):
        return f"the one by {found[0]}"  # nobody knows whether what is in the hand is counted: it is asked
    is_relative = find in (_beside, _between, _side_of)
    if is_relative:
        marks = [_mark(found[each], scene, label) for each in ("a", "b") if each in found.re.groupindex]
        things = list({one.id: one for one in (*alike, *marks) if one is not None}.values())
        is_open = _is_goal(found)
    else:
        things, is_open = alike, not label or (label == kind and found[0].lower().endswith("right one"))
    if is_open or not things:  # "the right one" is the one that is meant
        return found[0]
    rows = _rows(found[0], things, scene, speaker) if find is not _beside else [things]
    chosen = [one for row in rows if (one := find(found, row, scene, label))]
    if len({one.id for one in chosen}) == 1 and len(chosen) == len(rows) and _is_unique(chosen[0], scene):
        return f"the {chosen[0].name}"
    if find in (_in_row, _side_of) and len(chosen) > 1:
        views += [chosen[0].id, chosen[-1].id]
        asides.append(f"From where I look, that is the {chosen[0].name}; from the other side, the {chosen[-1].name}.")
    return f"the {label}" if is_relative and len(alike) > 1 and label else found[0]


def naming(text: str, scene: Scene, names: Mapping[str, str], shown: str = "") -> tuple[Mapping[str, str], str]:
    """The names after an utterance, and what to answer; "" where it gives none. `shown` is what is pointed at."""
    plain = _AROUND_NAME.sub("", text.strip().rstrip(".!?").replace("’", "'")).rstrip(".!?, ")
    described = r"(?:(?:the|this|that) (?P<words>[a-z ]+?)|(?:this|that)(?: [a-z]+)?|it)"
    found = next((one for way in _NAMING if (one := re.fullmatch(way.format(thing=described), plain, re.I))), None)
    found = found or (re.fullmatch(_SHOWN_AS, plain[:1].lower() + plain[1:]) if shown else None)
    if found is None or (found.re.pattern == _SHOWN_AS and found["name"].lower() in english_words()):
        return names, ""
    name, words = found["name"].lower(), (found.groupdict().get("words") or "").lower()
    things = [one for one in scene.things if words in (one.name.lower(), one.label)]
    things = things if words and words != "one" else [one for one in scene.things if shown and one.id == shown]
    known = {word for one in (*scene.kinds, *scene.places) for word in one.split()}
    if name in english_words() or name in known or any(name in one.name.split() for one in scene.things):
        return names, f"“{found['name']}” is a word that I know otherwise. Please choose another name."
    if len(things) != 1 or not things[0].id:
        return names, f"I cannot tell which one is to be called {found['name']}. Which one do you mean?"
    if names.get(name, things[0].id) != things[0].id:
        other = next((one.name for one in scene.things if one.id == names[name]), "something else")
        return names, f"{found['name']} is the name of the {other}. Please choose another one for the {things[0].name}."
    return {**names, name: things[0].id}, f"All right, the {things[0].name} is called {found['name']}."


def _called(text: str, scene: Scene, names: Mapping[str, str]) -> str | None:
    """The answer to what a thing is called; None where nobody asks."""
    found = _ASKS_NAME.fullmatch(text.strip().rstrip("?!. ").replace("’", "'"))
    if found is None or not (found["asks"] or "name of" in text.lower() or " call " in text.lower()):
        return None
    things = [one for one in scene.things if found["words"].lower() in (one.name.lower(), one.label)]
    told = [f"The {one.name} is called {name.capitalize()}." for name, ident in names.items() for one in things
            if one.id == ident]  # fmt: skip
    return " ".join(told) or f"Nobody has told me a name of the {found['words'].lower()}."


def owners_after(text: str, scene: Scene, speaker: str, owners: Mapping[str, str]) -> Mapping[str, str]:
    """Whose each thing is, by its id, after an utterance: "the green mug is Otto's and the yellow one's mine"."""
    told, kind = dict(owners), ""
    text = text.replace("’", "'")
    for found in (*_WHOSE.finditer(text), *_MY_IS.finditer(text)):
        words, groups = found["words"].lower(), found.groupdict()
        label = (groups.get("kind") or kind).lower()
        name = f"{words.removesuffix(' one')} {label}" if words.endswith(" one") or " " not in words else words
        things = [one for one in scene.things if not one.is_place and one.name.lower() in (words, name.strip())]
        if not things:
            things = [one for one in scene.things if words in (one.label, f"{one.colour} one", one.colour)]
        who = groups.get("who") or groups.get("whom") or speaker
        if len(things) == 1 and things[0].id and who and who.lower() not in english_words():
            told[things[0].id], kind = who, things[0].label
    return told


def with_owners(scene: Scene, owners: Mapping[str, str]) -> Scene:
    """The scene, with whose a thing is as people told."""
    if not owners:
        return scene
    things = tuple(
        msgspec.structs.replace(one, owner=one.owner or owners.get(one.id, ""))  # type: ignore[type-var]  # a Struct
        for one in scene.things
    )
    return msgspec.structs.replace(scene, things=things)  # type: ignore[type-var]  # a Struct


_ANYTHING = ("thing", "object")
_Finder = Callable[[re.Match[str], Sequence[SeenObject], Scene, str], SeenObject | None]


def _ways(scene: Scene) -> list[tuple[str, _Finder]]:
    labels = {one.label for one in scene.things if not one.is_place}
    colours = {one.colour for one in scene.things if one.colour}
    every = {one.name for one in scene.things} | {one.label for one in scene.things} | {f"{one} one" for one in colours}
    names = "|".join(map(re.escape, sorted(labels, key=len, reverse=True)))
    kind, any_kind = (rf"(?P<kind>{names}|{more})" for more in ("one", "|".join(("one", *_ANYTHING))))
    called = "|".join(
        [*map(re.escape, sorted(every, key=len, reverse=True)), *(rf"{one}(?= and\b)" for one in colours)]
    )
    mark = rf"(?:the |a |that )?(?P<{{}}>{called})\b"
    return [
        (rf"\bthe {any_kind} {_IS}between {mark.format('a')} and {mark.format('b')}", _between),
        (rf"\bthe {any_kind} {_IS}{_SIDE_OF} {mark.format('a')}", _side_of),
        (rf"\bthe {any_kind} {_IS}{_NEAR} {mark.format('a')}", _beside),
        (
            rf"\bthe {_NUMBER}{kind} {_IS}{_ON_SIDE}",
            _in_row,
        ),
        (rf"\bthe {_NUMBER}{_SIDE}(?:[- ]?most|[- ]hand)? {kind}\b", _in_row),
        (rf"\bthe (?P<far>nearest|closest|furthest|farthest) {kind}\b(?: to (?P<whom>me|you)\b)?", _nearest),
        (rf"\bthe {kind} {_IS}(?P<far>nearest|closest|furthest|farthest)(?: to| from) (?P<whom>me|you)\b", _nearest),
    ]


def _is_in_hand(label: str, scene: Scene) -> bool:
    """Whether the robot holds one of these, so that it no longer stands where somebody may count it."""
    held = {one.subject for one in scene.relations if one.relation == "held by" and one.object == "robot"}
    return any(one.id in held and label in ("", one.label) for one in scene.things)


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


def _in_row(found: re.Match[str], row: Sequence[SeenObject], scene: Scene, kind: str) -> SeenObject | None:
    number, side = _NUMBERS[(found["number"] or "first").lower()], found["side"].lower()
    if side == "middle":
        return row[len(row) // 2] if len(row) % 2 else None
    ordered = list(row) if side == "left" else list(row)[::-1]
    return ordered[number] if number < len(ordered) else None


def _nearest(found: re.Match[str], row: Sequence[SeenObject], scene: Scene, kind: str) -> SeenObject | None:
    """As seen by the robot, or by the only person that there is."""
    is_robot = (found["whom"] or "").lower() == "you"
    if not is_robot and len(scene.people) != 1:
        return None
    person = SeenPerson(id="robot", x_m=0.0, y_m=0.0) if is_robot else scene.people[0]
    at = person.hand_m[:2] if person.hand_m is not None else (person.x_m, person.y_m)
    ordered = sorted(row, key=lambda one: math.dist(at, (one.x_m, one.y_m)))
    return ordered[0 if found["far"].lower() in ("nearest", "closest") else -1]


def _mark(words: str, scene: Scene, kind: str) -> SeenObject | None:
    """The only thing or place that is called so; "the red one" is of the kind that is spoken of."""
    name = words.lower().removesuffix(" one")
    found = [
        one
        for one in scene.things
        if name in (one.name, one.label) or (name == one.colour and kind in ("", one.label) and not one.is_place)
    ]
    return found[0] if len(found) == 1 else None


def _side_of(found: re.Match[str], row: Sequence[SeenObject], scene: Scene, kind: str) -> SeenObject | None:
    """Its neighbour on that side, of that kind."""
    mark = _mark(found["a"], scene, kind)
    numbers = [number for number, one in enumerate(row) if mark is not None and one.id == mark.id]
    if not numbers:
        return None
    there = row[: numbers[0]][::-1] if found["side"].lower() == "left" else row[numbers[0] + 1 :]
    return there[0] if there else None


def _beside(found: re.Match[str], row: Sequence[SeenObject], scene: Scene, kind: str) -> SeenObject | None:
    mark = _mark(found["a"], scene, kind)
    if mark is None:
        return None
    far = sorted((math.dist((one.x_m, one.y_m), (mark.x_m, mark.y_m)), one.id, one) for one in row if one.id != mark.id)
    is_clear = len(far) == 1 or (len(far) > 1 and far[1][0] - far[0][0] > BESIDE_M)
    return far[0][2] if is_clear else None


def _between(found: re.Match[str], row: Sequence[SeenObject], scene: Scene, kind: str) -> SeenObject | None:
    one, two = _mark(found["a"], scene, kind), _mark(found["b"], scene, kind)
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
