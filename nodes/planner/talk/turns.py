"""In which turn things are to be done, as somebody says it of what is ordered already: "the ball before the green one".

What is new and is to come first takes the skill and the place of what is under way, unless others are said.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from nodes.planner.orders import Order
from nodes.planner.talk.proposals import meant_by, parts_heard
from nodes.planner.words.asked import sentences_of
from nodes.planner.words.referents import held_by_robot, place_of

if TYPE_CHECKING:
    from nodes.msgs import SeenObject
    from nodes.planner.talk.dialogue import Dialogue

_LEAD = re.compile(
    r"^\W*(?:(?:no|oh|and|but|well|so|wait|actually|sorry|hang on|hey|please|just|also|could you|can you|would you"
    r"|will you|you (?:can|could|should|must|may)|i (?:want|need) you to|make sure you|let's|first)\b\W*)+", re.I
)  # fmt: skip
_TAIL = re.compile(r"\W*\b(?:please|though|instead|would you|will you|thanks|thank you|okay|ok)?\W*$", re.I)
_TURNED = re.compile(
    r"\b(?:swap|switch|reverse|turn|change) (?:those|these|them|that|the two|the order|it)(?: two)?"
    r"(?: (?:a?round|over))?|\b(?:the )?other way (?:a?round|about)|\bvice versa|\bin reverse\b"
    r"|\bin the (?:other|opposite|reverse) order", re.I
)  # fmt: skip
_BEFORE = re.compile(r"^(?P<first>.+?)(?<!\bnot),?\s+(?:before|ahead of|prior to)\s+(?P<behind>.+)$", re.I)
_BEFORE_AHEAD = re.compile(r"^before (?P<behind>[^,]+), (?P<first>.+)$", re.I)
_AFTER = re.compile(r"^(?P<behind>.+?)\s+after\s+(?P<first>.+)$", re.I)
_FIRST = re.compile(
    r"^(?P<first>.+?)(?:,? (?:has|have|needs?|ought|is|are) to)?"
    r"(?:,? (?:go|goes|come|comes|is|should go|must go|be done))?(?: (?:in|on|there|next))?,? first(?: of all)?"
    r"(?:, (?:i|we|she|he|it|they) [a-z' ]+)?$", re.I
)  # fmt: skip
_GOES = re.compile(r",? \b(?:should|must|can|(?:has|have|needs?|ought|is|are) to|gets?|goes?)\b(?!.* the\b).*$", re.I)
_ANY_DEED = re.compile(
    r"^(?:you )?(?:do|get to|start|begin|go on|carry on)?(?: with)? ?(?:that|this|it|any.*|every.*)?$", re.I
)
_IT = r"(?:it|that|this|they|those|these|(?:the|my|his|her|your|that|this) [a-z ]+?)"
_OVER = r"(?P<over>done|finished|ready|made|poured|there|away|gone)"
_HAS = r"(?:'s| is| are|'re|'s been| has been| have been)(?: all| nicely| safely| nice and| back| up| now)*"
_CONDITION = re.compile(
    r"(?P<join>,? ?(?:and|but|then)? ?)\b(?P<when>once|when|after|as soon as|the moment) "
    rf"(?:(?P<what>{_IT}){_HAS} (?:(?P<clean>clean(?:ed)?|washed(?: up)?|rinsed)|{_OVER}"
    r"|(?:in|on|at|to|into|onto) the (?P<place>[a-z]+(?: machine| dispenser)?))"
    r"|you(?:'re| are|'ve| have)(?: been)? (?P<with>done|finished|through) with (?P<done_with>[a-z' ]+?)"
    rf"|you(?:'ve| have)? (?P<deed>[a-z]+(?:ed|en)|put|made|brought|done) (?P<object>{_IT})"
    r"(?: (?:away|up|down|out|there|(?:in|on|into|onto) the (?P<there>[a-z]+)))?)"
    r"(?=,? ?please\b|,|[.!?;]|$|(?P<runs_on> (?:put|bring|wash|rinse|take|give|hand|move|place|fetch|get|wipe)\b))"
    r"(?:,? please)?,? *", re.I
)  # fmt: skip
"""What a deed is done after: "once it's clean", "when the apple is on the tray"."""
_PRONOUNS = frozenset({"it", "that", "this", "they", "those", "these"})
_NOT_THAT = re.compile(
    r"\b(?:not|leave) (?P<what>(?:the|that|this) (?:[a-z]+ )?[a-z]+)(?:,? though| out of it)?[.,;:!]+ "
    r"(?:(?:it|that|they|this|because)(?:'s| is| has| are|'re)?\b[a-z' ]+[.,;!]+ )?(?:that one|that|it|this one|this)"
    r"(?=(?:'s| is) for the bin\b| (?:goes|belongs|can go|should go|needs to go|must go|has to go)\b)", re.I
)  # fmt: skip
_FOR_BIN = re.compile(r"(?<=[a-z])(?:'s| is| are) for the bin\b")
_CLEANS = re.compile(r"\b(?:wash|rins|clean|scrub)", re.I)
_MORE = re.compile(r"\b(?:then|the first|last)\b", re.I)
_REQUEST = re.compile(r"\b(?:could|can|would|will) you\b", re.I)


@dataclass(frozen=True, slots=True)
class DeedsInTurn:
    """What is to come first, and before what ("": all that is ordered); or all the other way round."""

    how: Literal["before", "turned"]
    first: str = ""
    behind: str = ""


def turn_of(text: str) -> DeedsInTurn | None:
    """The turn that somebody asks for of what is ordered; None of other words."""
    if _TURNED.search(text) and not text.rstrip().endswith("?"):
        return DeedsInTurn("turned")
    lead = _LEAD.match(text)
    said = _TAIL.sub("", text[lead.end() :] if lead is not None else text)
    ahead = lead[0] if lead is not None else ""
    is_question = text.rstrip().endswith("?") and not _REQUEST.search(ahead)
    if not said or _MORE.search(said) or is_question or re.match(r"(?:once|when|if|as soon as)\b", said, re.I):
        return None
    for pattern in (_BEFORE_AHEAD, _BEFORE, _AFTER):
        if (found := pattern.match(said)) is not None:
            is_all = _ANY_DEED.match(found["behind"]) is not None
            return DeedsInTurn("before", _GOES.sub("", found["first"]), "" if is_all else found["behind"])
    found = _FIRST.match(said)
    if found is not None and "," not in found["first"]:
        return DeedsInTurn("before", found["first"])
    return DeedsInTurn("before", said) if re.search(r"\bfirst\b", ahead, re.I) and "," not in said else None


def before_all(text: str) -> str:
    """With "wipe the table before you do anything" as that deed, where nothing is ordered that it could come before."""
    said = [(one, turn_of(one)) for one in sentences_of(text)]
    is_all = [turn is not None and turn.how == "before" and not turn.behind and "before" in one for one, turn in said]
    return (
        " ".join(
            f"{turn.first}." if turn is not None and so else one for (one, turn), so in zip(said, is_all, strict=True)
        )
        if any(is_all)
        else text
    )


def elsewhere(text: str, places: Collection[str]) -> str:
    """ "Not the cup. It is cracked, that one's for the bin": what is not to go here goes there, as one order."""

    def thing(found: re.Match[str]) -> str:
        return found[0] if found["what"].split()[-1] in places else f"actually, {found['what']}"

    text = _NOT_THAT.sub(thing, text.replace("’", "'"))
    return _FOR_BIN.sub(" goes in the bin", text)


def behind_deed(mind: Dialogue, text: str) -> tuple[str, str]:
    """An order to be done after another deed, as one more order; and the words of a deed that nobody has ordered."""
    found = _CONDITION.search(text)
    if found is None:
        return text, ""
    ahead, after = text[: found.start()], text[found.end() :]
    rest = f"{ahead}{found['join'] if ahead and after[:1].isalpha() else ''}{after}".strip(" ,")
    is_here = bool(ahead.strip(" ,") and after) and mind.read_alone(ahead).deed == "do"
    worked_on = _worked_on(mind, found)
    about = (found["what"] or found["object"] or "").lower()
    spoken = " ".join(said for _, said in mind.heard)
    named = [one for one in mind.around.scene.things if about == f"the {one.label}" and one.name in spoken]
    named = worked_on if about == "it" else named
    if not is_here and (len(named) == 1 or about.startswith("the ")):
        it = f"the {named[0].name}" if len(named) == 1 else about
        rest = re.sub(r"\bit\b", it, rest, count=1)
    orders = mind.read_alone(rest)
    is_turned = turn_of(rest) is not None and _is_coming(mind, found, ahead, named)
    if is_turned or orders.deed != "do" or not orders.orders or orders.orders[0].skill in ("wait", "stop"):
        return rest if is_turned else text, ""
    if not (is_here and (found["what"] or "").lower() in _PRONOUNS) and not _is_coming(mind, found, ahead, named):
        is_told = bool(found["clean"] or found["place"] or found["deed"])
        return (rest, found[0][len(found["join"]) :].strip(" ,.").lower()) if is_told else (text, "")
    return (rest if ahead and not mind.orders else f"And {rest[0].lower()}{rest[1:]}"), ""


def _worked_on(mind: Dialogue, found: re.Match[str]) -> list[SeenObject]:
    """What "it" of a condition is: the one thing that is washed, or worked on."""
    orders = [one for one in mind.orders if one.skill == "rinse" or not found["clean"]] or mind.orders
    ids = {ident for one in orders for ident in mind.ids_of(one.things)}
    at = mind.target()
    if at is not None and at.id in ids and (found["what"] or found["object"] or "").lower() == "it":
        return [at]
    return [one for one in mind.around.scene.things if one.id in ids]


def _is_coming(mind: Dialogue, found: re.Match[str], ahead: str, named: Sequence[SeenObject]) -> bool:
    """Whether the deed is ordered, here or before, or what it brings about is so already."""
    words = found["what"] or found["done_with"] or found["object"] or ""
    place = found["place"] or found["there"] or ""
    is_clean = bool(found["clean"]) or _CLEANS.match(found["deed"] or "") is not None
    if is_clean and _CLEANS.search(ahead):
        return True
    is_named = words.lower().startswith(("the ", "my ", "his ", "her "))
    things = meant_by(mind, words) or named if is_named else _worked_on(mind, found)
    ids = {one.id for one in things}
    orders = [one for one in mind.orders if not is_named or ids & mind.ids_of(one.things)]
    if is_clean:
        is_so = bool(things) and not any("dirty" in one.state for one in things)
        return is_so or any(one.skill == "rinse" for one in orders)
    if place:
        there = bool(ids) and all(place_of(one, mind.around.scene) == place for one in ids)
        return there or any(one.place == place for one in orders) or (bool(ids) and place in ahead)
    return bool(orders)


def in_turn(mind: Dialogue, text: str, speaker: str, now_ns: int) -> str | None:
    """What to say to a turn in which what is ordered is to be done, and do it so; None of other words."""
    turn, pieces = turn_of(text), mind.pieces()
    if turn is None or not pieces:
        return None
    if turn.how == "turned":
        return mind.take_turns(tuple(reversed(pieces)), now_ns, speaker) if len(pieces) > 1 else None
    ahead = _ahead(mind, turn.first, pieces)
    moved = {ident for one in ahead for ident in mind.ids_of(one.things)}
    rest = [one for one in pieces if not moved & mind.ids_of(one.things)]
    behind = {one.id for part in parts_heard(mind, turn.behind) for one in part.things} if turn.behind else set()
    places = [number for number, one in enumerate(rest) if behind & mind.ids_of(one.things)]
    if not ahead or (not rest and set(ahead) <= set(pieces)) or (turn.behind and not places):
        return None
    in_hand = held_by_robot(mind.around.scene)
    is_begun = not turn.behind and any(ident in in_hand for one in rest[:1] for ident in mind.ids_of(one.things))
    at = places[0] if places else int(is_begun)  # what is in the hand is brought first, unless that is what waits
    if not turn.behind and not set(ahead) <= set(pieces):  # "Rinse it first": before what else is done with it
        at = next((number for number, one in enumerate(pieces) if moved & mind.ids_of(one.things)), at)
    if not turn.behind and (whole := mind.whole_without((*rest[:at], *ahead))):
        return mind.take_turns((*rest[:at], *ahead, *whole), now_ns, speaker)
    return mind.take_turns((*rest[:at], *ahead, *rest[at:]), now_ns, speaker)


def _ahead(mind: Dialogue, words: str, pieces: Sequence[Order]) -> tuple[Order, ...]:
    """The deeds that are to come first; none where it is open which these are."""
    parts = parts_heard(mind, sentences_of(words)[-1])
    things = tuple(dict.fromkeys(one for part in parts for one in part.things))
    is_open = any(part.is_open or part.unknown or part.act not in ("deed", "name") for part in parts)
    if not any(part.is_named for part in parts):  # "There is coffee in that. Rinse it first."
        read = mind.read_alone(words)
        meant = mind.ids_of(ref for one in read.orders for ref in one.things) if read.deed == "do" else set()
        things = tuple(one for one in mind.around.scene.things if meant == {one.id})
    if is_open or not things:
        return ()
    skill = next((part.skill for part in parts if part.skill), "place")
    place = next((part.place for part in parts if part.place), "")
    found: list[Order] = []
    for one in things:
        known = [each for each in pieces if one.id in mind.ids_of(each.things)]
        way = next((each for each in pieces if each.skill == skill and each.place), None)
        if known and not place and skill in ("place", known[0].skill):
            found += known
        elif one.id in mind.kept or (skill == "place" and not place and way is None):
            return ()
        else:
            if skill == "rinse" and {"full", "half full"} & set(one.state) and not mind.empties():
                return ()  # it is asked about
            to = place or (way.place if way is not None and skill == "place" else "")
            steps = mind.steps(skill, one, to)
            found += (*steps[:1], *known) if skill == "rinse" and known else steps
    return tuple(found)
