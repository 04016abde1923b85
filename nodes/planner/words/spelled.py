"""Words that only who sees the scene can tell, written out: a name that was given, "the second cup from the left".

What is on the left is so for who speaks. Where nobody sees them, the robot's side and the one across are both told, and
it is asked which is meant.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial

import msgspec

from nodes.msgs import Scene, SeenObject, SeenPerson
from nodes.planner.scene_text import from_left
from nodes.planner.words.cues import cues
from nodes.planner.words.languages import english_words
from nodes.planner.words.lexicon import WORDS, plural_of
from nodes.planner.words.referents import is_so, marks_of, place_of, standing

BESIDE_M = 0.05
"""What stands next to something is nearer to it than all others by this."""
BETWEEN_M = 0.12
"""What stands between two things is no further from the line that joins them."""
_NUMBERS = {"first": 0, "second": 1, "third": 2, "fourth": 3, "fifth": 4, "last": -1}
_NUMBER = rf"(?:(?P<number>{'|'.join(_NUMBERS)}) )?"
_SIDE = r"(?P<side>left|right|middle)"
_ON_SIDE = rf"(?:on|to|at|from|in) (?:the|your|my) (?:far |very )?{_SIDE}(?:[- ]hand)?(?: side)?\b(?! of)"
_IS = r"(?:(?:that|which)(?:'s| is| stands| sits| lies) |standing |lying |sitting |over |there )*"
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
_NAME = r"(?P<name>(?-i:[A-Z])[a-z]+ (?-i:[A-Z])[a-z]+|[a-z]+)"
_NAMES_IT = r"(?:is |'s )?(?:called|named|known as|go(?:es)? by(?: the name(?: of)?)?|answers to)"
_NAMING = (
    r"(?:please )?(?:(?:let us|let's|we|i|you)(?:'m|'ll|'re| am| are| can| may| will| shall| always| usually)* )?"
    rf"(?:call|calling|name|named|naming|christen) {{thing}} {_NAME}",
    rf"{{thing}} ?{_NAMES_IT} {_NAME}",
    rf"the name of {{thing}} is {_NAME}",
    rf"(?:{{thing}}'s|his|her|its) name is {_NAME}",
)
_TOPIC = re.compile(
    r"(?:(?:do you |can you )?see )?(?:the|this|that) (?P<words>[a-z ]+?)(?: (?:over )?(?:there|here))?[,:?;–—-]+ "
    r"(?:from (?:now|today) on,? )?", re.I
)  # fmt: skip
"""What it is may stand ahead of its name: "That cup there, we call it Joe"."""
_SHOWN_AS = r"(?:this|that)(?: one)?(?: here)?(?:'s| is) (?P<name>[A-Z][a-z]+)"
_AROUND_NAME = re.compile(
    r"^(?:(?:and|so|oh|okay|hey|right|listen|well|from now on)\b\W*)+"
    r"|\W*\b(?:okay|ok|right|all right|from now on|got (?:it|that))\W*$",
    re.I,
)
"""How somebody says what a thing is called, and asks for it."""


_TO_WHOM = re.compile(
    r"\b((?i:give|hand|bring|serve|pass|fetch|get|take)) ([A-Z][a-z]+|him|her|them) "
    r"(?=(?:the|an?|another|some|his|her|that|this|both|one)\b)"
)
"""To whom of those who are there a thing is brought makes no difference to the deed: it is held out."""
_ONE_OF = re.compile(
    rf"(?<!is )(?<!are )(?<!was )(?<!not )(?<!'s )\b(?:the|that|this) (?P<colour>{'|'.join(WORDS['colours'])}) one\b"
    r"(?!'s\b| (?:of|is|are|was|has|will|stays?|belongs|needs|can|should)\b)", re.I
)  # fmt: skip
_STATE = r"(?P<state>dirty|unwashed|clean|washed|full|empty|half[- ]full|open|closed)"
_AT = r"(?: (?:things?|stuff))?(?: (?:on|in) the (?P<place>[a-z]+))?(?! is\b| are\b|[a-z])"
_BY_STATE = (
    r"\b(?:everything|anything|all|whatever|what)(?: of it)?(?: (?:that|which))?(?:'s| is)?(?: still)? " + _STATE + _AT,
    r"\b(?:all )?(?:of )?(?:the|those|these|any)(?: two| three)? "
    + _STATE + r" (?P<kind>ones|things|stuff|dishes|{several})" + _AT,
    r"\bthe " + _STATE + r" (?P<kind>{one}|one)\b",
    r"\bthe (?P<kind>{one}|one) (?:that(?:'s| is|'s still| is still) )?" + _STATE + r"\b",
    r"\b(?:the (?P<kind>{one}|one)|anything|everything|whatever) "
    r"(?:with (?:the )?|that(?:'s| has| is)(?: still)?(?: got)? (?:full of )?)"
    r"(?P<within>coffee|tea|water|milk|juice|something)(?: (?:still )?in(?:side)?(?: it)?)?\b",
)  # fmt: skip
_WISHED_SO = re.compile(
    rf"\b(?:wants?|needs?|like|keep|leave)\b(?:(?! (?:that|which|is)\b)[^,.;!?])*? (?:\w+) {_STATE}$", re.I
)
"""How something is to be, and not which it is: "I want everything clean", "keep the jar closed"."""
_MASS = re.compile(r"\b(?:everything|anything|all|whatever|stuff)\b", re.I)
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
    ("colour_is", r"the \1 one is"), ("does_herself", r"\1 do"), ("whatever", "the thing"),
    ("furthest", r"on \1 far \2"), ("middle", "in the middle"),
)  # fmt: skip
"""Other words for who does it herself, and for a place in the row."""


class SpelledOut(msgspec.Struct, frozen=True):
    """The words with plain references; what is said beside a question which one is meant; what is said to all of it."""

    text: str
    aside: str = ""
    reply: str = ""
    is_untold: bool = False  # it is to be asked which is meant
    is_objection: bool = False  # that one is to be left alone
    views: tuple[str, ...] = ()  # ids of what is meant as the robot sees it, and from the other side


def spelled_out(
    text: str, scene: Scene, names: Mapping[str, str], speaker: str = "", kind: str = "", *, is_owner: bool = False,
    heard: Collection[str] = (),
) -> SpelledOut:  # fmt: skip
    """An utterance with names and places in the room as what they mean; `kind` is what "the one" is, "" where open.

    `is_owner`: somebody has said what is theirs, so that "mine" means that. `heard`: who has spoken so far.
    """
    for name, plainly in _PLAINLY:
        text = cues("spelled")[name].sub(plainly, text)
    labels = [one.label for one in scene.things if not one.is_place]
    if any(labels.count(one) > 2 for one in labels):  # "And the other." was all of them
        text = re.sub(r"\b(the other)(?=\W*$)", r"\1 one", text, flags=re.I)
    text = _by_state(_spilt(_pair_out(named_out(text, scene, names), scene), scene), scene, kind)
    if text.strip() and not re.search(r"\w", text):
        return SpelledOut(text, reply="Please say that in words.")
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
    there = {speaker.lower(), *(one.id.lower() for one in scene.people), *(one.owner.lower() for one in scene.things)}
    others = {one.lower() for one in heard} - {speaker.lower(), ""}
    there |= others | ({"him", "her", "them"} if others else set())
    text = _TO_WHOM.sub(lambda found: f"{found[1]} me " if found[2].lower() in there else found[0], text)
    text = _ONE_OF.sub(partial(_only_one, scene=scene, kind=kind), text)
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


def named_out(text: str, scene: Scene, names: Mapping[str, str]) -> str:
    """With the names that people gave as what has them."""
    by_id = {one.id: one for one in scene.things if one.id}
    for name, ident in names.items():
        if ident in by_id and _is_unique(by_id[ident], scene):
            text = re.sub(rf"\b{name}\b", f"the {by_id[ident].name}", text, flags=re.I)
    return text


_ONE = (
    r"\b(?:that one|this one|that thing|the (?:closer|nearer|further|farther) one"
    r"|the one (?:that|which)(?:'s| is| was) (?:closer|nearer|further|farther)"
    r"|(?<!do )(?<!for )(?<!to )(?:it|him|her)(?!'|’| is| was| will| would| has| looks)"
    r"|(?<!do )(?:that|this)"
    r"(?=\W*$|[.,!?]| (?:in|on|to|into|onto|away|out|back|up|down|over|as well|too|please|first|instead)\b))\b"
)
_SOME = (
    r"\b(?:both of (?:them|those|these)|them both|them all|all of (?:them|those|these)|those two|these two"
    r"|the two of them|them|those|these|both)\b(?! \w+s\b)"
)
_OTHERS = r"\bthe (?:others|other ones|other two)\b(?! \w+s\b)"
_OTHER_ONE = r"\bthe other (?:one|thing)\b|\bthe other\b(?! \w)"


def pronoun_in(text: str) -> re.Match[str] | None:
    """The first word that means what was told last."""
    found = [one for way in (_ONE, _SOME, _OTHERS, _OTHER_ONE) if (one := re.search(way, text, re.I))]
    return min(found, key=lambda one: one.start(), default=None)


def bound_out(text: str, told: Sequence[SeenObject], others: Sequence[SeenObject]) -> str:
    """With "that one", "them" and "the other" as what was told last, where that is clear."""
    if len(told) == 1:
        text = re.sub(_ONE, f"the {told[0].name}", text, count=2, flags=re.I)
        names = " and ".join(f"the {one.name}" for one in others)
        text = re.sub(_OTHERS, names, text, flags=re.I) if others else text
        return re.sub(_OTHER_ONE, names, text, flags=re.I) if len(others) == 1 else text
    names = " and ".join(f"the {one.name}" for one in told)
    return re.sub(_SOME, names, text, count=1, flags=re.I) if told else text


def _by_state(text: str, scene: Scene, kind: str) -> str:
    """With "everything dirty", "the full ones" and "the mug with coffee in it" as what they are called."""
    names = {one.label: plural_of(one.label) for one in scene.things if not one.is_place}
    one, several = ("|".join(map(re.escape, sorted(words, key=len, reverse=True))) for words in (names, names.values()))
    for way in _BY_STATE if names else ():
        meant = partial(_told_by_state, scene=scene, kind=kind)
        said, text = text, re.sub(way.format(one=one, several=several), meant, text, flags=re.I)
        if text != said and _MASS.search(said) and " and the " in text:  # "The dirty stuff there? Rinse it."
            head, joint, tail = text.rpartition(" and the ")
            text = head + joint + re.sub(r"\bit\b", "them", tail)
    return text


def _told_by_state(found: re.Match[str], scene: Scene, kind: str) -> str:
    """What is so by its name; the words where that is open, or nothing is."""
    if _WISHED_SO.search(found.string[: found.start()] + found[0]):
        return found[0]
    groups = found.groupdict()
    state, within, word = ((groups.get(one) or "").lower() for one in ("state", "within", "kind"))
    things = [one for one in scene.things if not one.is_place]
    label = kind if word == "one" else next((x.label for x in things if word in (x.label, plural_of(x.label))), "")
    is_one = word in ("one", label) and bool(word)
    marked = {one.label for one in things if set(one.state) & marks_of(state or "full")}
    alike = [one for one in things if (one.label == label if label else not is_one or one.label in marked)]
    if place := (groups.get("place") or "").lower():
        alike = [one for one in alike if place_of(one.id, scene) == place]
    inside = {within, *(("full", "half full") if within == "something" else ())}
    fitting = [one for one in alike if (set(one.state) & inside if within else is_so(one, state))]
    is_clear = len(fitting) == 1 and (len(alike) > 1 or word == "one") if is_one else label or state != "empty"
    is_known = any(one.state for one in things) and not _APART.match(found.string[found.end() :])
    is_told = bool(fitting) and is_clear and (is_one or is_known) and all(_is_unique(one, scene) for one in fitting)
    return " and ".join(f"the {one.name}" for one in fitting) if is_told else found[0]


def _only_one(found: re.Match[str], scene: Scene, kind: str) -> str:
    """ "The white one", where one thing alone is white and nothing of another kind is spoken of."""
    things = [one for one in scene.things if not one.is_place and one.colour == found["colour"].lower()]
    is_it = len(things) == 1 and kind in ("", things[0].label) and _is_unique(things[0], scene)
    before = found.string[: found.start()].lower()
    last = max((one.label for one in scene.things if one.label in before), key=before.rfind, default="")
    is_it = is_it and things[0].label != last  # "A mug. The blue one.": the grammar sees that both are one
    return f"the {things[0].name}" if is_it else found[0]


def _pair_out(text: str, scene: Scene) -> str:
    """With "between the two blocks" as the names of both, where there are no more."""
    kinds = {plural_of(one.label): _candidates(one.label, scene) for one in scene.things if not one.is_place}

    def named(found: re.Match[str]) -> str:
        pair = kinds.get(found[1].lower(), [])
        is_told = len(pair) == 2 and all(_is_unique(one, scene) for one in pair)
        return f"between the {pair[0].name} and the {pair[1].name}" if is_told else found[0]

    return re.sub(
        r"(?:in[- ])?between (?:the )?(?:both |two )?(?:of the )?([a-z]+)(?! and\b)\b", named, text, flags=re.I
    )


def _spilt(text: str, scene: Scene) -> str:
    """ "Tip the coffee out": of what holds some, or of what is named, as an order to empty that."""
    looks = {"full", "half full", "dirty", "clean", "open", "closed"}
    contents = {word for one in scene.things for word in one.state} - looks
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
        one for one in scene.things if one.label == found["kind"].lower() and one.owner.lower() == speaker.lower() != ""
    ]
    return f"the {own[0].name}" if len(own) == 1 and _is_unique(own[0], scene) else found[0]


def _several(text: str, scene: Scene, speaker: str, kind: str) -> tuple[str, bool]:
    """With "the two cups on the left" as what they are called; and whether that cannot be told."""
    labels = {plural_of(one.label): one.label for one in scene.things if not one.is_place}
    plural = rf"(?P<kind>{'|'.join(map(re.escape, sorted(labels, key=len, reverse=True)))}|ones)"
    count = rf"\bthe (?:first )?(?P<count>{'|'.join(_SEVERAL)})"
    ways = rf"{count} {_SIDE}(?:[- ]?most|[- ]hand)?(?: {plural})?\b", rf"{count}(?: {plural})? {_IS}{_ON_SIDE}"
    found = next((one for way in ways if (one := re.search(way, text, re.I))), None)
    if found is None:
        return text, False
    label = labels.get((found["kind"] or "").lower(), kind)
    if _is_in_hand(label, scene) and _OBJECTS.search(part_with(found)):
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
    is_end = word in ("one", *_ANYTHING) and re.search(r"\b(?:far|very)\b|most\b", found[0], re.I) is not None
    label = "" if word in _ANYTHING or is_end else kind if word == "one" else word  # the end is that of the whole row
    alike = _candidates(label, scene)
    if _is_in_hand(label, scene) and _OBJECTS.search(part_with(found)):
        return f"the one by {found[0]}"  # nobody knows whether what is in the hand is counted: it is asked
    is_relative = find in (_beside, _between, _side_of)
    if is_relative:
        marks = [_mark(found[each], scene, label) for each in ("a", "b") if each in found.re.groupindex]
        things = list({one.id: one for one in (*alike, *marks) if one is not None}.values())
        is_open = _is_goal(found)
    else:
        things, is_open = alike, not (label or is_end) or (label == kind and found[0].lower().endswith("right one"))
        is_open = is_open or (len(alike) == 1 and _is_goal(found))  # "Put the ball on my left."
    if is_open or not things:  # "the right one" is the one that is meant
        return found[0]
    rows = _rows(found[0], things, scene, speaker) if find is not _beside else [things]
    chosen = [one for row in rows if (one := find(found, row, scene, label))]
    if not chosen and word == "one" and kind and find in (_between, _side_of):  # none of that kind is there
        return _meant(found, find, scene, speaker, "", asides, views)
    if (
        is_end
        and word == "one"
        and kind
        and len(_candidates(kind, scene)) > 1
        and any(one.label != kind for one in chosen)
    ):
        return f"the one by {found[0]}"  # of that kind, or of all that stands there?
    if len({one.id for one in chosen}) == 1 and len(chosen) == len(rows) and _is_unique(chosen[0], scene):
        return f"the {chosen[0].name}"
    if find in (_in_row, _side_of) and len(chosen) > 1:
        views += [chosen[0].id, chosen[-1].id]
        asides.append(f"From where I look, that is the {chosen[0].name}; from the other side, the {chosen[-1].name}.")
    return f"the {label}" if is_relative and len(alike) > 1 and label else found[0]


def naming(text: str, scene: Scene, names: Mapping[str, str], shown: str = "") -> tuple[Mapping[str, str], str, str]:
    """The names after an utterance, what to answer ("": it gives none), and what is said behind it.

    `shown` is what is pointed at or was spoken of.
    """
    text = text.strip()
    for end in (*(one.start() for one in re.finditer(r"[.!?;,]\s", text)), len(text)):
        known, said = _naming(text[:end], scene, names, shown)
        if said:
            return (
                known,
                said,
                re.sub(r"^\W*(?:and |but |so |(?:okay|ok|right|all right|got it)\W*$)?", "", text[end:], flags=re.I),
            )
    return names, "", text


def _naming(text: str, scene: Scene, names: Mapping[str, str], shown: str) -> tuple[Mapping[str, str], str]:
    plain = _AROUND_NAME.sub("", text.strip().rstrip(".!?").replace("’", "'")).rstrip(".!?, ")
    topic = _TOPIC.match(plain)
    if topic is not None:
        about = [one.id for one in scene.things if topic["words"].lower() in (one.name.lower(), one.label)]
        shown, plain = about[0] if len(about) == 1 else "", re.sub(r"^(?:it|he|she)\b", "that", plain[topic.end() :])
    described = r"(?:(?:the|this|that|my|our) (?P<words>[a-z ]+?)|(?:this|that)(?: [a-z]+)?|it|him|her)"
    is_lasting = re.search(r"\bfrom (?:now|today) on\b", text, re.I) is not None
    ways = (*_NAMING, rf"{{thing}}(?: is|'s) {_NAME}") if is_lasting else _NAMING
    found = next((one for way in ways if (one := re.fullmatch(way.format(thing=described), plain, re.I))), None)
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
        (rf"\bthe {_NUMBER}{any_kind} {_IS}{_ON_SIDE}", _in_row),
        (rf"\bthe {_NUMBER}{_SIDE}(?:[- ]?most|[- ]hand)? {any_kind}\b", _in_row),
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
    found = [one for one in scene.things if not one.is_place and label in ("", one.label) and one.id not in held]
    return standing(found, scene)


def part_with(found: re.Match[str]) -> str:
    """The words between two marks that a match stands in."""
    ahead, behind = found.string[: found.start()], found.string[found.end() :]
    return f"{re.split(r'[.,;!?]', ahead)[-1]}{found[0]}{re.split(r'[.,;!?]', behind)[0]}"


def _is_goal(found: re.Match[str]) -> bool:
    """Whether it says where something is to be put: "put the cup next to the bottle"."""
    return bool(_PUTS.search(found.string[: found.start()])) and not _WHERE_TO.search(found.string[found.end() :])


def _viewers(words: str, things: Sequence[SeenObject], scene: Scene, speaker: str) -> list[SeenPerson]:
    """From where it is meant: the robot, who speaks, or both where it is open. Who is not seen stands opposite."""
    robot = SeenPerson(id="robot", x_m=0.0, y_m=0.0)
    people = [one for one in scene.people if one.id == speaker and one.id] or list(scene.people)
    across = [(2 * sum(xy) / len(things)) for xy in zip(*((one.x_m, one.y_m) for one in things), strict=True)]
    opposite = people[:1] or [SeenPerson(id=speaker, x_m=across[0], y_m=across[1])]
    mine, yours = (re.search(rf"\b(?:{one})\b", words, re.I) for one in (_MY_SIDE, _YOUR_SIDE))
    if mine is not None or yours is not None:
        return opposite if yours is None or (mine is not None and mine.start() > yours.start()) else [robot]
    return people or [robot, opposite[0]]


_MY_SIDE = (
    r"(?:on|to|at|from|in) my|(?:to|from|for|nearest|closest|nearer|closer) me|my (?:side|left|right|end)"
    r"|i (?:am|stand|look|see|sit)"
)
_YOUR_SIDE = (
    r"(?:on|to|at|from|in) your|(?:to|from) you|(?:where|as) you(?: are| stand| look| see| sit)?"
    r"|your (?:side|left|right|end|hand)|nearest you|closest you"
)


def _rows(words: str, things: list[SeenObject], scene: Scene, speaker: str) -> list[list[SeenObject]]:
    """The things from left to right, as each sees them from whose side it may be meant; the robot's comes first."""
    rows = [row for one in _viewers(words, things, scene, speaker) if (row := from_left(one, things))]
    own = from_left(SeenPerson(id="robot", x_m=0.0, y_m=0.0), things)
    return rows or ([own, own[::-1]] if own else [own])


def place_in_row(
    words: str, things: Sequence[SeenObject], named: Sequence[SeenObject], scene: Scene, speaker: str
) -> str:
    """The answer to a question what stands nearest, furthest left, in the middle or on which side; "" to any other."""
    held = {one.subject for one in scene.relations if one.relation == "held by"}
    inside = {one.subject for one in scene.relations if one.relation == "in"}
    row = [one for one in things if one.id not in held | inside]
    side = re.search(
        r" (left|right) (?:or|and) (?:(?:on|to) )?(?:the |my |your )?(?:left|right) | (left|right) of ", words
    )
    asks_far = re.search(
        r" (near|close|furth|farth|far)(?:er|est|away) ",
        words.replace(" closest ", " closeest ").replace(" closer ", " closeer "),
    )
    if side is not None and side[2] and len(named) == 1 and re.match(r" (?:\w+ )*?(?:what|which|who) ", words):
        return _told_from(words, [*row, *(one for one in named if one not in row)], scene, speaker,
                          lambda seen: _neighbour(named[0], seen, side[2]))  # fmt: skip
    if side is not None and len(named) == 2:
        return _told_from(words, list(named), scene, speaker, lambda one: _side_told(named, one))
    if len(named) == 2 and re.search(r" between ", words):
        middle = [one for one in row if one not in named]
        in_row = from_left(_viewers(words, row, scene, speaker)[0], row) if len(row) > 1 else []
        at = sorted(in_row.index(one) for one in named if one in in_row)
        between = [one for one in in_row[at[0] + 1 : at[1]] if one in middle] if len(at) == 2 else []
        return f"Between them: {_names(between)}." if between else "There is nothing between them."
    places = [one for one in scene.things if one.is_place]
    mark = _named_first(words[asks_far.end() - 1 :], [*named, *places]) if asks_far is not None else None
    if asks_far is not None and len(named) > 1 and re.match(r" (?:is|are) .* or ", words):  # "Is this or that nearer?"
        words, row = f" which {words.strip()} ", [one for one in row if one in named]
    if not re.match(r" (?:\w+ )*?(?:which|what|who|is there) ", words) or not row:
        return ""
    if asks_far is not None and re.search(r" (?:left|right) ", words) is None:
        if mark is not None and not re.search(r" (?:me|you|my|your) ", words):
            of_these = [one for one in named if one.id != mark.id]
            kinds = {one.label for one in of_these}
            others = [one for one in row if one.id != mark.id and (not kinds or one.label in kinds)]
            is_among = len(of_these) > 1 and not re.match(r" (?:which|what) ", words)
            others = [one for one in others if one in of_these] if is_among else others
            return _by_distance((mark.x_m, mark.y_m), others, asks_far[1])
        told = [_by_distance((one.x_m, one.y_m), row, asks_far[1]) for one in _viewers(words, row, scene, speaker)]
        return told[0] if len(set(told)) == 1 else f"Nearest to me or to you? From my side: {told[0]}"
    if re.search(r" (?:in the middle|middle one|between the (?:other )?(?:two|others)) ", words):
        told_row = _rows(words, row, scene, speaker)[0]
        return (
            f"That is the {told_row[len(told_row) // 2].name}."
            if len(told_row) % 2
            else "None of them is in the middle."
        )
    found = re.search(r" (?:on|to|at|furthest|farthest|far) .*?(left|right)|(left|right)most ", words)
    if found is None or re.search(r" (?:is|are|have|has|had|was) (?:still )?left ", words):
        return ""
    end = 0 if "left" in (found[1], found[2]) else -1
    return _told_from(words, row, scene, speaker, lambda seen: f"That is the {seen[end].name}.")


def _named_first(words: str, named: Sequence[SeenObject]) -> SeenObject | None:
    """Which of these is named first there: to it the distance is asked."""
    found = [
        (at, -len(name), one) for one in named for name in (one.name, one.label, one.colour)
        if name and (at := words.find(f" {name} ")) >= 0
    ]  # fmt: skip
    return min(found, key=lambda each: each[:2])[2] if found else None


def _told_from(
    words: str, things: list[SeenObject], scene: Scene, speaker: str, told: Callable[[list[SeenObject]], str]
) -> str:
    """What is so from each side; once where it is the same."""
    rows = _rows(words, things, scene, speaker)
    said = [told(row) for row in rows if row]
    if not said:
        return "I cannot tell that from here."
    return said[0] if len(set(said)) == 1 else f"From where I look: {said[0]} From the other side: {said[-1]}"


def _neighbour(mark: SeenObject, row: Sequence[SeenObject], side: str) -> str:
    """What stands next to this on that side."""
    at = row.index(mark)
    there = row[max(at - 1, 0) : at] if side == "left" else row[at + 1 : at + 2]
    return f"That is the {there[0].name}." if there else f"There is nothing {side} of the {mark.name}."


def _side_told(named: Sequence[SeenObject], row: Sequence[SeenObject]) -> str:
    one, two = named
    return f"The {one.name} is {'left' if row.index(one) < row.index(two) else 'right'} of the {two.name}."


def _names(things: Sequence[SeenObject]) -> str:
    return ", ".join(f"the {one.name}" for one in things)


def _by_distance(at_m: tuple[float, float], things: Sequence[SeenObject], how: str) -> str:
    ordered = sorted(things, key=lambda one: math.dist(at_m, (one.x_m, one.y_m)))
    return (
        f"That is the {ordered[0 if how in ('near', 'close') else -1].name}." if ordered else "There is nothing else."
    )


def _in_row(found: re.Match[str], row: Sequence[SeenObject], scene: Scene, kind: str) -> SeenObject | None:
    number, side = _NUMBERS[(found["number"] or "first").lower()], found["side"].lower()
    if side == "middle":
        return row[len(row) // 2] if len(row) % 2 else None
    ordered = list(row) if side == "left" else list(row)[::-1]
    return ordered[number] if number < len(ordered) else None


def _nearest(found: re.Match[str], row: Sequence[SeenObject], scene: Scene, kind: str) -> SeenObject | None:
    """As seen by the robot, or by who speaks; None where it is open whose, or both say otherwise."""
    whom = (found["whom"] or "").lower()
    viewers = _viewers(f"to {whom}" if whom else "", row, scene, "")
    ends = []
    for one in viewers:
        at = one.hand_m[:2] if one.hand_m is not None else (one.x_m, one.y_m)
        ordered = sorted(row, key=lambda each, at=at: math.dist(at, (each.x_m, each.y_m)))  # type: ignore[misc]
        ends.append(ordered[0 if found["far"].lower() in ("nearest", "closest") else -1])
    return ends[0] if len({one.id for one in ends}) == 1 else None


def _mark(words: str, scene: Scene, kind: str) -> SeenObject | None:
    """The only thing or place that is called so; "the red one" is of the kind that is spoken of."""
    name = words.lower().removesuffix(" one")
    alike = {one.id for one in scene.things if kind in ("", one.label) and not one.is_place}
    found = [x for x in scene.things if name in (x.name, x.label) or (name == x.colour and x.id in alike)]
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
