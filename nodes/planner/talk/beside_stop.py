"""What is made of the rest of an utterance that stops the robot: "Stop! Not the red cup, the blue cup!".

The robot has stopped already, and only a later "go on" starts it. What else was said is taken on as paused, and said.
What cannot be read forbids what was under way until somebody says what was meant. So does what is said without a stop
of several things or of the rest of them, and changes nothing. Every scripted planner uses this.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from nodes.interrupts.intent import beside_stop, is_stop
from nodes.interrupts.phrase_matcher import split_clauses
from nodes.planner.words.languages import in_another_language
from nodes.planner.words.referents import named_under_way
from nodes.planner.words.replies import question, refusal
from nodes.planner.words.understanding import Conversation, Intent, only_names, understand_in

if TYPE_CHECKING:
    from nodes.planner.orders import Order, Surroundings
    from nodes.planner.words.parser import Clause, Parser

Reading = Literal["nothing", "do", "spare", "answer", "unread"]
"""Nothing else was said; an order; what is to be left alone, or taken back; a question; none of these."""


@dataclass(frozen=True, slots=True)
class BesideStop:
    """What was said beside a stop, and the conversation after it."""

    reading: Reading
    words: str
    intent: Intent
    talk: Conversation
    is_name: bool = False  # and nothing is said of it


def read_beside_stop(text: str, around: Surroundings, talk: Conversation, parser: Parser) -> BesideStop:
    """What else an utterance says that is a stop; the order under way is the last one of `talk`."""
    words = beside_stop(text)
    intent, after = understand_in(text, around.world, talk, parser)
    is_warning = intent.is_correction and _CARE.match(text) is not None  # "Careful, the glass!"
    if intent.deed == "do" and _is_order(text, intent) and not is_warning:
        return BesideStop("do", text, intent, after)  # "Back off a little!" stops, and is an order
    if not words:  # "Leave it alone!" stops, and says what is to be left
        left = Intent("nothing", protected=intent.protected, unnamed=intent.unnamed)
        is_left = bool(left.protected or left.unnamed)
        return BesideStop("spare", text, left, after) if is_left else BesideStop("nothing", "", left, talk)
    intent, after = understand_in(words, around.world, talk, parser, corrects=True)
    is_name = names_another(parser.clauses(words), talk.orders)
    if intent.why == "contradiction" and intent.protected:  # all of the order is to be left alone
        intent = Intent("nothing", protected=intent.protected)
    reading: Reading = "unread"
    if intent.deed == "do" and not _STILL.intersection(order.skill for order in intent.orders):
        reading = "do" if _is_order(words, intent) and not (is_warning or is_name) else "unread"
    elif intent.deed == "do":
        reading = "unread" if any(clause.nouns or clause.left for clause in parser.clauses(words)) else "nothing"
    elif intent.deed == "nothing" and (intent.protected or intent.released or intent.unnamed or intent.why):
        reading = "spare" if intent.why not in ("told", "elsewhere") else "unread"
    elif intent.deed == "answer" and "?" in words:
        order = talk.orders[-1] if talk.orders else None
        is_of_order = named_under_way(intent.asks_about, order, around.scene, around.target)
        reading = "unread" if is_of_order else "answer"
    if reading == "unread":  # what was under way stays in mind, and not what nobody could read
        after = replace(after, orders=talk.orders)
    return BesideStop(reading, words, intent, after, is_name)


_STILL = frozenset({"stop", "wait"})


def _is_order(text: str, intent: Intent) -> bool:
    """Whether it is an order, and neither to be still nor what a word like "watch out" is about."""
    skills = {order.skill for order in intent.orders}
    is_governed = is_stop(next(iter(split_clauses(text)), "")) and skills & {"look", "point", "pick", "take"}
    return not (is_governed or skills & _STILL)


_OF_REST = re.compile(
    r"\b(?:(?<!do the )(?:rest|others)|both|half of (?:it|them|these|those)|(?:only|just) half|half only|enough"
    r"|remaining|these|those|other way (?:a?round)|vice versa"
    r"|only|^\W*(?:no\W+)?not (?:in|on|at|to|there|here|like|so)"
    r"|just (?:one|that one|this one|half|some|a few)|all (?:of (?:it|them)|are)|(?:one|two|some) of them)\b", re.I
)  # fmt: skip


def speaks_of_rest(text: str, clauses: Sequence[Clause]) -> bool:
    """Whether it may restrict what is worked on: said of several or of the rest, and no question and no order."""
    is_order = any(one.type == "order" and one.verb not in ("leave", "let") and not one.is_negated for one in clauses)
    return _OF_REST.search(text) is not None and not is_order and not text.rstrip().endswith("?")


_RESTRICTS = re.compile(
    r"\b(?:leav(?:e|ing)|left|keep|spare|not|never|mine|told|tell|promised?|supposed|last|later|before|until|unless)"
    r"\b|n't\b",
    re.I,
)
_ASKS = re.compile(r"\W*(?:and |but |so )?(?:who|where|why|what|which|how)\b", re.I)


def restricts(text: str) -> bool:
    """Whether words that changed nothing may forbid what they name: "You were told to leave the red one"."""
    return _RESTRICTS.search(text) is not None and _ASKS.match(text) is None


_CARE = re.compile(r"\W*(?:(?:oh|hey|please|and|do|be|very|whoa)\W+)*(?:careful|gentl[ey]|easy|steady)\b", re.I)
_SPILLS = re.compile(r"\b(?:do not|don't) (?:you )?(?:drop|spill|break|knock|tip|shake|crush|bump|scratch)\b", re.I)


def asks_for_care(text: str) -> bool:
    """ "Careful with that one, it is full": how it is to be done, and neither whether nor with what."""
    return _CARE.match(text) is not None and not restricts(_SPILLS.sub("", text))


_NO_COLOUR = re.compile(r"\W*no [a-z]+\W*", re.I)


def names_another(clauses: Sequence[Clause], orders: Sequence[Order]) -> bool:
    """Whether it only names what is of another kind than what is ordered, or one of several: it corrects nothing."""
    things = [ref for one in orders[-1:] for ref in one.things]
    kinds = {noun.kind for one in clauses if only_names(one) for noun in one.nouns}
    is_bare = bool(clauses) and all(map(only_names, clauses))
    return is_bare and (any(ref.count != 1 for ref in things) or kinds.isdisjoint({"", *(ref.label for ref in things)}))


def wonders(text: str, clauses: Sequence[Clause], orders: Sequence[Order]) -> bool:
    """Whether it names something and says nothing of it: "What about the others?", "The red one ...", "No red"."""
    if clauses[:1] and clauses[0].type == "no" and clauses[0].is_repair and names_another(clauses[1:], orders):
        return True  # "Oh no, the glass!"
    is_bare = bool(clauses) and all(one.type == "fragment" for one in clauses)
    is_open = text.rstrip().endswith(("?", "...", "…"))
    is_no = _NO_COLOUR.fullmatch(text) is not None and any(noun.colour for one in clauses for noun in one.nouns)
    return (is_bare and is_open) or is_no


def objects(intent: Intent, clauses: Sequence[Clause]) -> bool:
    """Whether it corrects what is done, so that what cannot be done of it is no reason to go on."""
    is_no = bool(clauses) and clauses[0].type == "no"
    return (intent.is_correction or is_no) and not intent.is_addition


def why_unread(rest: BesideStop, around: Surroundings) -> str:
    """What to say about what nobody could read, before it is asked what to do."""
    world, intent = around.world, rest.intent
    known = frozenset(word for name in (*world.kinds, *world.places) for word in name.split())
    if foreign := in_another_language(rest.words, known):
        return f"Stopped. {foreign}"
    if intent.deed == "refuse":
        return f"Stopped. {refusal(intent, world, around.skills)}"
    if intent.deed == "ask" and intent.orders:
        return f"Stopped. {question(intent, around.scene, world)}"
    return f"Stopped. I am not sure what “{rest.words.rstrip('.!? ')}” means for me."
