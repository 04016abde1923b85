"""What an utterance means in a conversation: orders, what is to be left alone, a question, or nothing. Pure values.

Nothing is guessed. An unknown kind, place or verb is refused; what lacks, is ambiguous or contradicts itself is asked.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import msgspec

from nodes.msgs import Reference
from nodes.planner.orders import ALL, LEAVE, MOST_ORDERS, Order, OrderVocabulary, Unnamed, covers, is_vague
from nodes.planner.words.lexicon import SETS, lexicon_file
from nodes.planner.words.parser import Clause, Noun, Parser
from nodes.planner.words.verbs import BACK, Targets, bag_of, row_of

Deed = Literal["do", "ask", "refuse", "answer", "nothing"]
Awaits = Literal["", "place", "thing", "yes"]

TOOLS = frozenset(lexicon_file().household["tools"])
"""What things and places are cleaned with and at: an order to clean is not about them."""
INSIDE = frozenset(lexicon_file().household["inside"])
"""Places that things are put in, and not on."""
WASTE = frozenset(lexicon_file().household["waste"])
"""Where what is thrown away goes, if no place that is seen says that nothing comes back from it."""
DISPOSABLE = frozenset(lexicon_file().household["disposable"])
"""Kinds that may go into a waste bin in numbers without a question."""


class Intent(msgspec.Struct, frozen=True):
    """What an utterance asks of the robot; `why` is a code, `what` the word or thing that it is about.

    `why` of a deed is "instead" where what was ordered before is taken back with it.
    """

    deed: Deed
    orders: tuple[Order, ...] = ()
    protected: tuple[Reference, ...] = ()  # what is to be left alone from now on
    released: tuple[Reference, ...] = ()
    unnamed: tuple[Unnamed, ...] = ()  # to be left alone too; of an order that asks which: what it is about
    why: str = ""
    what: str = ""
    awaits: Awaits = ""
    is_correction: bool = False  # of what was said before
    is_addition: bool = False  # to what was ordered before: "and the ball too"
    asks_about: tuple[Reference, ...] = ()
    told_of: tuple[Reference, ...] = ()  # what something was said of that orders nothing; without a name: "it"
    taken: tuple[Reference, ...] = ()  # what the speaker does, or owns, and no order here names


@dataclass(frozen=True, slots=True)
class Conversation:
    """What was said before that the next utterance may refer to."""

    orders: tuple[Order, ...] = ()  # the last ones
    question: Order | None = None  # an order that waits for an answer
    awaits: Awaits = ""
    choices: tuple[Reference, ...] = ()
    mentioned: tuple[Noun, ...] = ()  # newest last
    protected: tuple[Reference, ...] = ()
    owners: tuple[tuple[str, Reference], ...] = ()
    held: tuple[Reference, ...] = ()  # what is in the robot's hand
    chosen: Reference | None = None  # what the utterance says is for its speaker, who had asked for any


_SIDE = r"(?:to|on|at) (?:the|my|your|its) (?:(?:far|very) )?(?:left|right|front|rear)(?: ?hand)?(?: side)?"
_BESIDE = re.compile(r"\b(?:beside|next to|by|near|alongside|close to|adjacent to|(?:to|at) the side of)\b")
_CLOSER = re.compile(r"\b(?:(?:a )?(?:bit|little|touch) )?(?:closer|nearer|further|farther)\b")
_RELATIVE = re.compile(
    rf"\b(?:{_SIDE}(?: of\b|$)|(?:left|right) of\b|between\b|behind\b|in front of\b|under(?:neath)?\b"
    r"|next to (?:me|us|him|her)\b|(?:over )?here$)"
)
"""Where something is to go by where another thing or a person is."""


@dataclass(slots=True)
class _Draft:
    """An order while it is put together."""

    clause: Clause
    skill: str = ""
    nouns: list[Noun] = field(default_factory=list)
    excepts: list[Noun] = field(default_factory=list)
    place: Noun | None = None
    relation: str = ""
    source: str = ""
    why: str = ""  # what is missing
    what: str = ""
    refused: str = ""
    last: Literal["thing", "place", "except", "announced"] = "thing"
    together: list[Noun] = field(default_factory=list)  # what had been named side by side then: "them"
    sentence: int | None = None  # how much up to the end of its sentence
    heard: int | None = None  # how much was spoken of up to its last word: what comes later is nothing that "it" means


def understand_in(
    text: str, world: OrderVocabulary, before: Conversation, parser: Parser, *, corrects: bool = False
) -> tuple[Intent, Conversation]:
    """The intent of a person's utterance, and the conversation after it.

    `corrects`: it is known to object to what is being done, as what is said beside a stop does.
    """
    reader = _Reader(world, before, parser)
    intent = reader.read(text, corrects=corrects)
    protected = tuple(dict.fromkeys((*before.protected, *intent.protected)))
    protected = tuple(one for one in protected if not any(_fits(one, free) for free in intent.released))
    is_open = intent.deed == "ask"
    return intent, replace(
        before,
        orders=intent.orders if intent.orders else before.orders,
        question=intent.orders[0] if is_open and intent.orders else None,
        awaits=intent.awaits if is_open else "",
        choices=(),
        mentioned=tuple(reader.mentioned[-12:]),
        protected=protected,
        owners=tuple(dict.fromkeys((*before.owners, *reader.owners))),
    )


def after_robot(text: str, before: Conversation, parser: Parser) -> Conversation:
    """The conversation after the robot said something: what it named, and what it asked."""
    mentioned = list(before.mentioned)
    nouns = [noun for clause in parser.clauses(text) for noun in _nouns_of(clause)]
    mentioned += [noun for noun in nouns if noun.kind or noun.place]
    if not text.rstrip().endswith("?"):
        return replace(before, mentioned=tuple(mentioned[-12:]))
    words = re.split(r"[.!?]\s+", text.lower().rstrip("?"))[-1].split()
    question = before.question or (before.orders[0] if before.orders else None)
    if words[:2] == ["shall", "i"]:
        intent, _ = understand_in(" ".join(words[2:]).replace(" you ", " me "), _world_of(parser), before, parser)
        question = intent.orders[0] if intent.orders else question
    awaits: Awaits = "thing" if "which" in words else "place" if words[0] == "where" else "yes"
    choices = tuple(_reference(noun) for noun in nouns if noun.kind or noun.colour)
    return replace(before, question=question, awaits=awaits, choices=choices, mentioned=tuple(mentioned[-12:]))


def _world_of(parser: Parser) -> OrderVocabulary:
    lexicon = parser.lexicon
    return OrderVocabulary(
        lexicon.kinds, lexicon.places, frozenset(lexicon.skill_of.values()) | {"place", "hand_over", "take", "drive"}
    )


def _nouns_of(clause: Clause) -> list[Noun]:
    return [*clause.nouns, *(noun for _, noun in clause.targets if noun is not None)]


def _reference(noun: Noun, source: str = "") -> Reference:
    count = ALL if noun.count == "all" else 2 if noun.count == "both" else int(noun.count)
    is_any = not (noun.is_definite or noun.pronoun) and count != ALL
    return Reference(label=noun.kind, colour=noun.colour, count=count, source=source or noun.source, is_any=is_any)


def _fits(one: Reference, pattern: Reference) -> bool:
    """Whether what the reference means may be one of what the pattern means."""
    return (pattern.label in ("*", "", one.label)) and (
        not pattern.colour or not one.colour or one.colour == pattern.colour
    )


def spared_by(intent: Intent) -> tuple[Unnamed, ...]:
    """All that is to be left alone and that the words alone do not tell."""
    vague = [one for one in intent.protected if is_vague(one)]
    shown = [Unnamed("shown" if x.count == 1 and not x.is_any else "described", x.label, x.count) for x in vague]
    return (*intent.unnamed, *shown)


def forbids_ordered(intent: Intent, clauses: Sequence[Clause]) -> bool:
    """Whether all that it contradicts is an order before: that is to be left, and nothing is ordered anew."""
    is_order = any(clause.type == "order" and not clause.is_negated for clause in clauses)
    return intent.why == "contradiction" and bool(intent.protected) and not is_order


def _is_same(one: Reference, other: Reference) -> bool:
    return (one.label, one.colour) == (other.label, other.colour)


def _is_of_rest(clause: Clause) -> bool:
    """ "All except the blue one."""
    return bool(clause.excepts) and all(noun.count == "all" and noun.kind in ("", "*") for noun in clause.nouns)


class _Reader:
    """Puts the clauses of one utterance together."""

    def __init__(self, world: OrderVocabulary, before: Conversation, parser: Parser) -> None:
        self.world = world
        self.before = before
        self.parser = parser
        self.drafts: list[_Draft] = []
        self.mentioned: list[Noun] = list(before.mentioned)
        self.protected: list[Noun] = []
        self.unnamed: list[Unnamed] = []
        self.released: list[Noun] = []
        self.owners: list[tuple[str, Reference]] = []
        self.asks = self.is_polite = self.is_offered = self.has_statement = self.is_elsewhere = False
        self.topic = self.unknown_verb = self.condition = self.quoted = ""
        self.is_left = self.is_cancelled = self.is_stopped = self.is_unsure = self.is_undo = False
        self.says: str = ""  # "yes" or "no"
        self.nots: list[Noun] = []
        self.bans: list[tuple[Clause, int]] = []
        self.loose: list[Clause] = []
        self.is_correction = self.is_addition = self.adds = self.joins = False
        self.asked_about: list[Noun] = []
        self.together: list[Noun] = []  # what was named side by side: "them"
        self.left_out: list[Noun] = []  # exceptions said before the order
        self.remarks: list[Noun] = []  # parts of a general order that something was said of behind it
        self.unread = ""  # a correction that nobody understands
        self.unkept = ""  # what is to be left, and nobody knows
        self.unheard = ""  # a word of an order that no table has, and that its reading dropped
        self.remarked = 0  # how many things something was told of
        self.subjects: list[str] = []  # kinds that something was told of: what "it" may mean
        self.doubted: list[Noun] = []  # what somebody named and left open: "and do not forget the plate"
        self.told_of: list[Noun] = []  # what something was said of that is no order
        self.taken: list[tuple[Clause, list[Noun]]] = []  # what is somebody's, or what the speaker does
        self.turns: list[tuple[str, bool]] = []  # what comes first of all, or last
        self.is_in_turn = False  # "first the red one, then the blue one"
        self.told: list[Clause] = []  # orders and what was said beside them

    def read(self, text: str, *, corrects: bool) -> Intent:
        text, in_order = _IN_THAT_ORDER.subn("", text)
        text = _AFTERWARDS.sub(self._behind, text)
        if (whole := _IT_ALL.search(text)) is not None:
            ahead = self.parser.named_in(text[: whole.start()].lower().split())  # "Clear the table. Bin the lot."
            is_told = bool(self.before.orders) or any(one.count != 1 or one.is_plural for one in self.before.mentioned)
            there = {f" {'in' if one.place in INSIDE else 'on'} the {one.place}" for one in ahead if one.place}
            if not (is_told or len(there) > 1 or any(one.kind for one in ahead)):  # nothing but all that there is
                text = f"{text[: whole.start()]}{whole[1]}everything{''.join(there)}{text[whole.end() :]}"
        text = self._without_turns(text)
        clauses = [self._as_chosen(clause) for clause in self.parser.clauses(text)]
        opening = _OPENING.match(text)
        self.is_in_turn = bool(in_order) or _IN_TURN.search(text) is not None
        if opening is not None and clauses and clauses[0].type == "fragment":  # "Only the red one.", "First the ..."
            corrects = True
            if opening[1].lower() == "first" and not self.is_in_turn:
                clauses[0].adverbs.append("first")
        asked = self.before.question if self.before.awaits == "thing" else None
        is_open = asked is not None and asked.skill != LEAVE and asked.things
        if asked is not None and is_open and ANY_OF_THEM.match(text.lower().rstrip(" .!")):
            self._again(asked, [Noun(kind=asked.things[0].label)])
            return self._conclude([])
        self.is_polite = "please" in text.lower() or any(clause.word == "please" for clause in clauses)
        self.is_offered = re.search(r"(?:^|[.!?])\s*here,", text.lower()) is not None
        self.adds = adds(text)
        self.joins = re.search(r"[.!] (?:and|also|plus) [^?]*$", text, re.I) is not None  # "Bring me this. And that."
        self.is_addition = bool(self.before.orders) and self.adds
        is_repair = corrects
        for number, clause in enumerate(clauses):
            behind = clauses[number + 1] if number + 1 < len(clauses) else None
            is_contrast = clause.type == "fragment" and clause.nots and not clause.nouns and not self.drafts
            is_led = behind is not None and behind.type == "fragment" and bool(behind.nouns)
            is_led = is_led or (behind is not None and bool(behind.targets) and all(map(_is_place, clause.nots)))
            if is_contrast and is_led:
                is_repair = self.is_correction = True
                continue  # "Not the red one, the white one.", "Not the sink, put it on the shelf."
            clause.is_repair = clause.is_repair or is_repair
            is_sharper = bool(self.before.orders) and behind is not None and behind.type == "fragment" and behind.nouns
            is_pause = (
                clause.type == "order" and clause.verb == "wait" and number + 1 < len(clauses)
                and bool(self.drafts or is_sharper) and not clause.condition
            )  # fmt: skip
            is_no = clause.type == "no" and bool(self.drafts or self.before.orders) and number + 1 < len(clauses)
            is_repair = is_pause or is_no or (clause.is_repair and not _has_content(clause))
            if clause.type == "fragment" and not self.drafts and not (clause.condition and not _has_content(clause)):
                self.is_correction = True
            self.is_correction = self.is_correction or clause.is_repair or is_no
            self._doubt(clause, clauses[number - 1] if number else None, behind)
            if not is_pause:
                self._take(clause)
                for draft in self.drafts:
                    if draft.heard is None:
                        draft.together, draft.heard = self.together, len(self.mentioned)
            for draft in self.drafts if behind is None or behind.is_first else ():
                draft.sentence = len(self.mentioned) if draft.sentence is None else draft.sentence
        return self._conclude(clauses)

    def _as_chosen(self, clause: Clause) -> Clause:
        """ "The one on the right's for me", where that is known, and any was asked for: an order for that one."""
        chosen, is_own = self.before.chosen, clause.word == "my" or clause.words[-2:] == ("for", "me")
        if chosen is None or not is_own or clause.type not in ("fragment", "owner", "protect"):
            return clause
        return Clause("order", "give", "give", is_first=True, is_repair=True, to_me=True, nouns=[_noun(chosen)])

    def _behind(self, found: re.Match[str]) -> str:
        """ "Then", where anything is ordered that it can come behind; else it stays a condition that nobody knows."""
        ahead = self.parser.clauses(found.string[: found.start()])
        is_led = re.search(r"\w", found.string[found.end() :])
        return "then" if self.before.orders or (is_led and any(one.type == "order" for one in ahead)) else found[0]

    def _without_turns(self, text: str) -> str:
        """The words without what they say of the order of deeds, which is kept."""
        for found in reversed(list(_TURN.finditer(text))):
            words = found["what"] or found["named"]
            alone = self.parser.clauses(words)
            is_named = len(alone) == 1 and only_names(replace(alone[0], targets=[]))
            if len(text[: found.start()].split()) < 3 or not is_named:
                continue  # "Oh, do the red one last.", of what was ordered before; "and wash the cup first"
            turn = (found["turn"] or found["before"] or found["with"]).lower()
            self.turns.insert(0, (words, turn in ("first", "before") or turn.startswith(("start", "begin"))))
            has_place = any(noun.place for noun in self.parser.named_in(words.lower().split()))
            text = f"{text[: found.start()]}{found['join'] + words if has_place else ''}{text[found.end() :]}"
        return text

    def _take_turns(self) -> None:
        """The orders as they come first or last; a part of one is an order of its own."""
        for words, is_first in self.turns:
            named = [one for one in self.parser.named_in(words.lower().split()) if one.kind or one.colour]
            if not named or not self.drafts:
                self.unread = self.unread or words
                continue
            for noun in named:
                alone = self._alone(noun)
                self.drafts.insert(0 if is_first else len(self.drafts), alone)

    def _alone(self, noun: Noun) -> _Draft:
        """An order for this thing by itself, taken out of the one that it is part of."""
        groups = self.parser.lexicon.groups
        for draft in self.drafts:
            for other in draft.nouns:
                is_part = other.kind == "*" or noun.kind in groups.get(other.kind, ()) or _is_narrower(noun, other)
                if not (_is_same_noun(noun, other) or (is_part and other.count != 1)):
                    continue
                noun = replace(noun, kind=noun.kind or other.kind)
                if is_part and other.count != 1 and not _is_same(_reference(noun), _reference(other)):
                    if other.count == "both" and not noun.is_definite:
                        self.unread = self.unread or "first"  # "Rinse both glasses, red first."
                    draft.excepts = [*draft.excepts, noun]
                    return replace(draft, nouns=[noun], excepts=[])
                draft.nouns = [one for one in draft.nouns if one is not other]
                alone = replace(draft, nouns=[other])
                if not draft.nouns:
                    self.drafts.remove(draft)
                return alone
        return replace(
            self.drafts[-1],
            nouns=[replace(noun, kind=noun.kind or next((one.kind for one in self.drafts[-1].nouns), ""))],
            excepts=[],
        )

    # --- clause by clause

    def _doubt(self, clause: Clause, before: Clause | None, behind: Clause | None) -> None:
        """What stands beside an order and may take it back, or puts it into somebody else's mouth, is asked about."""
        words, is_last = clause.words, behind is None
        is_beside = before is not None and before.type in ("order", "fragment") and not clause.is_first
        is_beside = is_beside or (behind is not None and behind.type == "order" and not behind.is_first)
        is_dark = clause.type == "unknown" and not self.parser.lexicon.known_at([clause.word], 0)
        if is_dark and not clause.nouns and not clause.targets and is_beside:
            self.unread = self.unread or clause.word  # "Put it there, Anna.", "Someday, put it there."
        is_ahead = not self.drafts and behind is not None and not behind.is_first
        if clause.type == "fragment" and is_ahead and not any(noun.kind or noun.place for noun in clause.nouns):
            dark = [*clause.left, *(_name(noun) for noun in _nouns_of(clause) if noun.unknown)]
            self.unread = self.unread or " ".join(dark)  # "On my signal, put it there."
        is_bare = clause.type == "order" and clause.is_first and words[:1] == tuple(clause.word.split()[:1])
        if is_bare and clause.is_question and is_last and self.asks and not (self.is_polite or clause.is_request):
            self.is_unsure = True  # "What did he say? Bring the box?"
        if not self.drafts:
            return
        is_taken_back = clause.type == "fragment" and clause.is_repair and clause.is_first and not _has_content(clause)
        if is_last and (clause.type == "no" or (is_taken_back and self.parser.announces_repair(words))):
            self.is_unsure = True  # "Put it there? No.", "I have changed my mind."
        is_told = clause.type in ("statement", "question", "social")
        if is_told and (self.parser.tells_of_saying(words) or _is_done_by_another(words)):
            self.unread = self.unread or " ".join(words[:3])
        if clause.type == "question" and not clause.is_first and clause.word == "any":
            self.unread = self.unread or clause.word  # "..., any mug but the green one, okay?"
        if clause.verb == "let" and "do" in clause.left:
            self.unread = self.unread or "let"  # "Let Anna do it."
        if clause.type == "question" and words[:1] in (("should",), ("shall",)) and words != ("shall", "we"):
            self.is_unsure = True

    def _take(self, clause: Clause) -> None:
        self._weigh(clause)
        match clause.type:
            case "order":
                self._order(clause)
            case "unknown":
                self._unknown(clause)
            case "fragment":
                self._fragment(clause)
            case "statement":
                self._state(clause)
            case "protect":
                self._protect(clause)
            case "release":
                self.released += self._resolved(clause.nouns)
                self.is_offered = True
                self._mention(clause)
            case "owner":
                self._take_owned(clause)
            case "question" | "social":
                self._asked(clause)
            case "cancel":
                self._cancel(clause)
            case "unsure":
                self.is_unsure, self.doubted = True, [*self.doubted, *clause.nouns]
            case "wrong":
                self.is_undo = True
            case "yes" if self.before.awaits == "thing" and self.before.question and clause.word in _SHOWS:
                self._again(self.before.question, [_SHOWS[clause.word]])
            case "yes" | "no":
                self.says = self.says or clause.type
                self.is_cancelled = self.is_cancelled or (clause.word in SETS["none"] and self.before.awaits == "thing")

    def _asked(self, clause: Clause) -> None:
        is_shared = bool(self.taken) or clause.words[1:2] in (("take",), ("do",), ("bring",), ("wipe",), ("clear",))
        if is_shared and clause.type == "social" and clause.words[:1] == ("you",):
            for one in self.parser.clauses(" ".join(clause.words[1:])):  # "I take the plate, you take the apple."
                self._take(one)
            return
        self.asks, self.topic = True, self.topic or clause.word or clause.type
        self.asked_about += _nouns_of(clause)
        self._mention(clause)

    def _weigh(self, clause: Clause) -> None:
        """What a clause leaves unread or unsure, whatever it says."""
        if clause.type in ("order", "fragment"):
            self.told.append(clause)
            self.unheard = self.unheard or self.parser.unheard_in(clause)
        if clause.type == "fragment":  # "In half an hour, ..."
            self.condition = self.condition or clause.condition
        if clause.is_repair and clause.type in ("statement", "question") and self.drafts:
            self.unread = self.unread or " ".join(_name(noun) for noun in clause.nouns[:1]) or "that"
        if clause.is_hedged and (clause.type == "order" or (clause.type in ("fragment", "question") and self.drafts)):
            self.is_unsure = True

    def _state(self, clause: Clause) -> None:
        """A statement: a remark about something, a condition, or words of somebody else."""
        words = " ".join(clause.words)
        self.has_statement, self.is_elsewhere = True, self.is_elsewhere or clause.word == "another"
        if clause.nouns and clause.nouns[0].kind and clause.nouns[0].is_definite:  # "The banana is all brown."
            clause.nouns = [one for one in clause.nouns if one.kind or one.is_definite or not one.colour]
        if not _LIKES.match(words):
            named = clause.nouns or self.parser.named_in(list(clause.words))  # "I told you to leave the red cup."
            self.told_of += [noun for noun in named if not noun.unknown]
        if _BY_SPEAKER.match(words):
            self.taken.append((clause, clause.nouns))
        is_wrong = clause.words[-2:-1] == ("wrong",)  # "Wrong one.", "That is the wrong cup."
        if is_wrong and self._is_under_way() and " ".join(clause.words[:-2]) in ("", "the", "that is the", "it is the"):
            self._spare(clause, [Noun(pronoun="it")])
        self.remarked += len(clause.nouns[:1])
        self.subjects += [noun.kind for noun in clause.nouns[:1] if noun.kind and noun.count == 1]
        self._sharpen(clause.nouns)
        self.remarks += [noun for noun in clause.nouns if self._is_part_of_order(noun)]
        self.condition = self.condition or clause.condition
        self.quoted = self.quoted or (" ".join(clause.left) if clause.word == "quoted" else "")
        self.is_offered = self.is_offered or clause.word in ("here", "offered")
        self._mention(clause)

    def _protect(self, clause: Clause) -> None:
        if clause.word in ("forget", "never") and self._is_all_ordered(clause.nouns):
            self.is_cancelled = True  # "Forget the cups", where the cups are what was ordered
        elif clause.word == "no" and clause.targets:  # "No cups on the shelf!"
            there = {noun.place for _, noun in clause.targets if noun is not None}
            self.is_cancelled = bool(self.before.orders) and self.before.orders[-1].place in there
            return
        else:
            self._spare(clause, clause.nouns)
        self._mention(clause)

    def _take_owned(self, clause: Clause) -> None:
        """ "The white one is mine"; "That's mine!" of what the robot is at."""
        self.remarks += [noun for noun in clause.nouns if self._is_part_of_order(noun)]
        self.told_of += clause.nouns
        is_bare = not any(noun.kind or noun.colour for noun in clause.nouns)
        if not is_bare and clause.words[:1] not in (("this",), ("that",), ("it",)):
            self.taken.append((clause, [replace(noun, owner="") for noun in clause.nouns]))
        elif clause.words[:1] in (("this",), ("that",), ("it",), ("the",)) and self._is_under_way():
            bare = [replace(noun, kind="", owner="") for noun in clause.nouns]
            self._spare(clause, [noun for noun in bare if self._is_unnamed(noun)])
        self.has_statement = True
        self._own(clause)

    def _cancel(self, clause: Clause) -> None:
        is_leave = clause.word in ("leave it", "leave that")
        if self.remarks and is_leave:
            self.protected += self._resolved(self.remarks)
        elif self._is_about_another(clause):
            self.protected += self._resolved([Noun(pronoun="it")])  # "The white mug is mine, leave it."
        elif is_leave and self._is_under_way():
            self.is_left = True
            self._spare(clause, [Noun(pronoun="it")])
        else:
            self.is_cancelled = True
            self.drafts.clear()
            self.unknown_verb = ""

    def _is_part_of_order(self, noun: Noun) -> bool:
        """Whether an order before takes it in among others: "the red one" of "all the cups"."""
        if noun.pronoun or noun.is_other or noun.kind == "*":
            return False
        return any(
            other.count == "all"
            and ((other.kind == "*" and noun.kind) or _is_narrower(noun, other))
            and not _same_noun(noun, draft.excepts)
            for draft in self.drafts
            for other in draft.nouns
        )

    def _is_about_another(self, clause: Clause) -> bool:
        """Whether "leave it" means what was just spoken of, and nothing that was ordered."""
        if clause.word not in ("leave it", "leave that") or not self._mentioned_here():
            return False
        it = self._antecedent(Noun(pronoun="it"), wants_place=False)
        ordered = [noun for draft in self.drafts for noun in draft.nouns]
        if not ordered:
            return not self.drafts
        return it is not None and bool(it.kind) and not _same_noun(it, ordered)

    def _is_all_ordered(self, nouns: Sequence[Noun]) -> bool:
        """Whether these are all that the last order is about."""
        things = self.before.orders[-1].things if self.before.orders else ()
        named = [_reference(noun) for noun in self._resolved(nouns) if noun.kind]
        return bool(things) and all(any(covers(pattern, one) for pattern in named) for one in things)

    def _sharpen(self, nouns: Sequence[Noun]) -> None:
        """ "Bring me the box, it is the red one"."""
        meant = self.drafts[-1].nouns if self.drafts else []
        if len(nouns) != 2 or nouns[0].pronoun != "it" or len(meant) != 1 or meant[0].colour or meant[0].count != 1:
            return
        if nouns[1].colour and meant[0].kind and nouns[1].kind in ("", meant[0].kind):
            self.drafts[-1].nouns = [replace(meant[0], colour=nouns[1].colour)]

    def _own(self, clause: Clause) -> None:
        for noun in self._resolved(clause.nouns):
            if noun.kind:
                self.owners.append((clause.word, _reference(replace(noun, owner=""))))
        self._mention(clause)

    def _mention(self, clause: Clause) -> None:
        first = next((noun.kind for noun in clause.nouns if noun.kind), "")
        excepts = [noun if noun.kind or not first else replace(noun, kind=first) for noun in clause.excepts]
        where = [noun for _, noun in clause.targets if noun is not None and noun.unknown and not noun.kind]
        named = [*where, *(noun for noun in _nouns_of(clause) if noun not in where), *excepts]  # "it" is no place
        if clause.type == "statement":  # "it" is what the sentence is about, before what it is at
            ones = [one if one.pronoun or not one.colour else self._resolved([one])[0] for one in clause.nouns]
            named = [*(noun for _, noun in clause.targets if noun is not None), *ones, *excepts]
            about = self._resolved(clause.nouns[:1])  # "This mug has a crack.", "It has a crack."
            if about and about[0].kind and any(noun.unknown for noun in clause.nouns[1:]):
                named.append(about[0])
        if clause.word == "see":
            source = next((noun.place for _, noun in clause.targets if noun is not None and noun.place), "")
            where = [noun for _, noun in clause.targets if noun is not None]
            named = [*where, *(replace(noun, source=source) for noun in clause.nouns)]
        self.mentioned += [noun for noun in named if noun.kind or noun.place or noun.unknown]
        if clause.nouns and not clause.nouns[0].pronoun:
            self.together = [noun for noun in clause.nouns if noun.kind]

    def _spare(self, clause: Clause, nouns: Sequence[Noun]) -> None:
        """These are to be left alone: by their names, or by what the scene shows."""
        for noun in nouns:
            is_open = noun.count == 1 and not (noun.is_plural or noun.colour or noun.pronoun or noun.unknown)
            is_at_thing = any(n is not None and not (n.place or n.pronoun) for _, n in clause.targets)
            is_described = noun.quality or noun.modifier or is_at_thing  # "the one on the left"
            if not noun.kind and not noun.colour and _HAND.search(" ".join(clause.words)):
                self.unnamed.append(Unnamed(how="held"))
            elif is_open and is_described and self._is_under_way():
                self.unnamed.append(Unnamed(how="described", label=noun.kind))  # nobody here can tell "the ugly one"
            elif noun.pronoun and noun.count not in (1, "all"):  # "two of them": of that kind, and not the last named
                self.protected += [replace(one, colour="", count=noun.count) for one in self._resolved([noun])]
            elif not self._is_unnamed(noun):
                self.protected += self._resolved([noun])
            elif not self.unnamed:
                self.unnamed.append(self._unnamed(noun))

    def _is_unnamed(self, noun: Noun) -> bool:
        """Whether it says neither what it is nor which, and nothing that this utterance names can be meant."""
        is_bare = not (noun.kind or noun.colour or noun.place or noun.unknown or noun.owner)
        if not is_bare or noun.is_plural or noun.count != 1 or noun.pronoun in ("them", "those", "these"):
            return False
        if noun.is_other:
            return True
        is_told = not self._is_under_way() and self._antecedent(noun, wants_place=False) is not None
        return not (is_told or self._mentioned_here())

    def _is_under_way(self) -> bool:
        """Whether something is being done, which "that one" may be about, and no question is open."""
        return bool(self.before.orders) and not self.before.awaits

    def _unnamed(self, noun: Noun) -> Unnamed:
        if noun.is_other:
            return Unnamed(how="other")
        if (owned := self._just_owned()) is not None:
            return Unnamed(how="told", named=owned)  # "Anna's mug is the white one." - "Leave it."
        known = self._antecedent(noun, wants_place=False)
        named = _reference(known) if known is not None and known.kind else Reference(count=ALL)
        ordered = [thing for order in self.before.orders[-1:] for thing in order.things]
        is_one = named.colour != "" or (len(ordered) == 1 and ordered[0].count == 1)
        return Unnamed(named=named if is_one and named.count == 1 and not named.is_any else None)

    def _resolved(self, nouns: Sequence[Noun]) -> list[Noun]:
        """Pronouns, replaced by what they stand for, where that is known."""
        found = []
        for noun in nouns:
            is_open = noun.pronoun or not (noun.kind or noun.place or noun.unknown)
            known = self._antecedent(noun, wants_place=False) if is_open else None
            found.append(noun if known is None else known)
        return found

    def _antecedent(self, noun: Noun, *, wants_place: bool, draft: _Draft | None = None) -> Noun | None:
        """What a pronoun, or "the red one", stands for; one that agrees in number before one that does not.

        What its sentence names behind the order is looked at last, and no later one: "Put it there. The plate is new."
        """
        heard = draft.heard if draft is not None else None
        found = self._antecedent_in(self.mentioned[:heard], noun, wants_place=wants_place)
        if found is not None or draft is None:
            return found
        return self._antecedent_in(self.mentioned[: draft.sentence], noun, wants_place=wants_place)

    def _antecedent_in(self, mentioned: Sequence[Noun], noun: Noun, *, wants_place: bool) -> Noun | None:
        for known in reversed(mentioned):
            if wants_place and (known.place or known.unknown):
                return known
            if wants_place or known.place or (known.is_vague and not known.unknown):
                continue
            is_that = noun.is_definite and noun.count == 1 and not (noun.colour or noun.quality or noun.is_plural)
            if noun.pronoun or (known.unknown and is_that):
                return known
            if known.kind and known.colour and not noun.colour and noun.is_definite and noun.count == 1:
                return known  # "that one"
            if known.kind:
                return replace(noun, kind=known.kind, quality=noun.quality or known.quality)
        return None

    def _unknown(self, clause: Clause) -> None:
        if clause.is_repair and self.drafts:
            self.unread = self.unread or clause.word  # "Bring me a glass, no ice."
        has_object = bool(clause.nouns or clause.targets or clause.to_me or clause.particles or clause.adverbs)
        self.loose.append(clause)
        self.told_of += [noun for noun in _nouns_of(clause) if not noun.unknown]
        if has_object:
            self.unknown_verb = self.unknown_verb or clause.word
        self._mention(clause)

    def _order(self, clause: Clause) -> None:
        if clause.is_negated:
            self._ban(clause)
            return
        self.is_undo = self.is_undo or clause.verb == "undo"
        self.is_stopped = self.is_stopped or clause.verb == "cancel"
        if clause.verb == "undo" or (clause.targets == [("on", None)] and not _nouns_of(clause)):
            return  # "Carry on."
        if clause.words[:1] in (("i",), ("we",)) and {"myself", "ourselves"}.intersection(clause.words):
            clause.nouns = [noun for noun in self._resolved(clause.nouns) if noun.kind]
            self._state(clause)  # "I'll take it myself."
            return
        if clause.verb in ("leave", "let") and self._keeps(clause):
            return
        if clause.verb == "touch" and clause.words[:1] == ("you",):  # "You may touch it this once."
            clause.nouns = [noun for noun in self._resolved(clause.nouns) if noun.kind]
            self.released += clause.nouns
            self._mention(clause)
            return
        is_turn = clause.verb == "do" and bool(clause.nouns) and clause.words[-1:] in (("last",), ("first",))
        if is_turn and self._turned(clause):
            return
        subject = self.loose[-1] if self.loose and not self.drafts else None
        is_subject = not (self.drafts or clause.is_first or self.says) and clause.words[:1] in _DETERMINERS
        while is_subject and self.loose and only_names(self.loose[-1]):
            clause.nouns = [*self.loose.pop().nouns, *clause.nouns]  # "The cup, the plate and the glass want washing."
        if clause.word == "go" and subject is not None and subject.type == "fragment" and subject.nouns[:1]:
            clause.verb, clause.word = "place", "due"  # "Both cups, not the plates, go ..."
            clause.nouns = subject.nouns
        if clause.verb != "wait":  # "wait until I am back"
            self.condition = self.condition or clause.condition
        draft = self._framed(clause)
        if draft is None:
            self._mention(clause)
            return
        if draft.skill == "stop":
            self.is_stopped = True
        self._elided(draft)
        if clause.is_repair and self.drafts and draft.skill not in ("wait", "stop"):
            old = self.drafts.pop()
            if not draft.nouns and draft.skill not in SETS["about_nothing"]:
                draft.nouns = old.nouns
        self._merge(draft)
        if draft.skill == "wipe" and draft in self.drafts and draft.place in clause.nouns:
            more = [noun for noun in clause.nouns if noun.place and noun != draft.place]
            self.drafts += [_Draft(clause, skill="wipe", place=noun) for noun in more]  # "the table and the shelf"
        self._mention(clause)

    def _elided(self, draft: _Draft) -> None:
        """ "... rinsed and put on the shelf": what is put there is what was named before."""
        if draft.skill == "place" and not draft.nouns and draft.place and self.drafts and not draft.clause.is_first:
            many = len(self.drafts[-1].nouns) > 1 or any(noun.count != 1 for noun in self.drafts[-1].nouns)
            draft.nouns = [Noun(pronoun="them" if many else "it", is_plural=many)]

    def _turned(self, clause: Clause) -> bool:
        """ "Do the green one last", or first, of what is ordered here or was before: two orders in turn."""
        if not self.drafts and self.before.orders:
            self._again(self.before.orders[-1])
        draft = self.drafts[-1] if self.drafts else None
        kinds = {noun.kind for noun in draft.nouns} if draft is not None else set()
        kind = kinds.pop() if len(kinds) == 1 else ""
        if draft is None or not any(noun.count != 1 for noun in draft.nouns) or not kind:
            return False
        alone = [one if one.kind else replace(one, kind=kind) for one in clause.nouns]
        rest = replace(draft, excepts=[*draft.excepts, *alone])
        one = replace(draft, nouns=alone)
        self.drafts[-1:] = [one, draft] if clause.words[-1] == "first" else [rest, one]
        self._mention(clause)
        return True

    def _merge(self, draft: _Draft) -> None:
        """Add it; a pick before a place of the same, and a vague order before a clear one, are parts of it."""
        last = self.drafts[-1] if self.drafts else None
        if self.left_out:
            draft.excepts, self.left_out = [*draft.excepts, *self.left_out], []
        is_about_last = all(noun.pronoun for noun in draft.nouns)
        if draft.skill == "wait" and last is not None and last.skill != "wait" and draft.clause.condition:
            self.condition = self.condition or draft.clause.word  # "but wait until it has cooled down"
            return
        if last is not None and last.skill == "wait" and last.clause.condition and draft.skill != "nod":
            self.condition = self.condition or last.clause.condition  # "Wait until I say go, then wash the cups."
        if last is not None and self._is_part(draft, last, is_about_last=is_about_last):
            return
        if last is not None and last not in self.drafts and last.why == "words" and last.clause.type == "order":
            draft.why, draft.what = draft.why or last.why, draft.what or last.what
        if draft.why != "tidy":
            self._drop_vague()
        elif self.drafts:
            return
        is_it = is_about_last and bool(draft.nouns) and last in self.drafts
        if last is not None and last.excepts and is_it:
            if not all(noun.is_plural for noun in draft.nouns):
                draft.why = draft.why or "which"  # "Wash all but the blue one and put it on the shelf."
            draft.nouns, draft.excepts = last.nouns, [*last.excepts, *draft.excepts]
        is_thrown = last is not None and last.place is not None and last.place.place in (self.world.waste or WASTE)
        if is_it and (draft.clause.word == "due" or (draft.clause.verb == "want" and is_thrown)):
            draft.why = draft.why or "contradiction"  # "Bring me it. It should be on the tray.", "Bin it. I need it."
        if "first" in draft.clause.adverbs and is_it and last is not None:
            draft.nouns = last.nouns
            self.drafts.insert(self.drafts.index(last), draft)  # "Bring me the cup, but rinse it first."
            return
        self.drafts.append(draft)

    def _drop_vague(self) -> None:
        """ "Clear up, will you?" is what the order behind it spells out."""
        self.drafts = [one for one in self.drafts if one.why != "tidy" or any(noun.kind for noun in one.nouns)]

    def _is_part(self, draft: _Draft, last: _Draft, *, is_about_last: bool) -> bool:
        """Whether the last order says this one already; one that only leads to it is taken into it."""
        place = last.place.place if last.place is not None else ""
        is_same, is_it = last.skill == draft.skill, bool(draft.nouns) and is_about_last
        is_to_me = last.clause.to_me or last.clause.word.endswith(" me")
        is_brought = last.clause.verb in ("bring", "get") and not is_to_me
        if last.skill == "wait" or self._is_vaguer(last, draft):
            self.drafts.pop()
        elif is_same and not draft.nouns and draft.place is None and draft.skill != "place":
            return True
        elif last.clause.type == "fragment" and is_it and (last.place is not None or last.skill == "hand_over"):
            draft.nouns, draft.source = last.nouns, last.source or place
            draft.excepts = [*last.excepts, *draft.excepts]
            self.drafts.pop()
        elif is_same and draft.skill == "place" and is_it and draft.place and draft.place.place == place != "":
            return True
        elif draft.skill in SETS["behind_pick"] and (last.skill in ("pick", "look") or (is_brought and is_it)):
            is_one = all(noun.count == 1 for noun in last.nouns)
            same = [noun for noun in draft.nouns if not noun.pronoun]
            if all(_same_noun(noun, last.nouns) and not (is_one and noun.count == "all") for noun in same):
                draft.place = last.place if draft.skill == "wipe" and draft.place is None else draft.place
                draft.nouns, draft.source = last.nouns, draft.source or last.source
                draft.excepts = [*last.excepts, *draft.excepts]
                self.drafts.pop()
        return False

    def _is_vaguer(self, wish: _Draft, order: _Draft) -> bool:
        """Whether a wish is what the order behind it spells out: "I want the cups clean. Wash them."."""
        if wish.clause.verb != "want" or order.clause.verb == "want":
            return False
        if wish.why or wish.refused or any(noun.unknown for noun in wish.nouns):
            return True  # "I would love a cookie. Open the jar."
        if wish.place is not None and wish.place != order.place:
            return False
        groups = self.parser.lexicon.groups
        meant = self._resolved(order.nouns)
        return bool(meant) and all(
            noun.pronoun or _same_noun(noun, wish.nouns) or any(noun.kind in groups.get(w.kind, ()) for w in wish.nouns)
            for noun in meant
        )

    def _ban(self, clause: Clause) -> None:
        """ "Do not ...": forbids, or contrasts with the order beside it."""
        is_move = clause.verb == "move" and not (clause.nouns or clause.targets)
        is_nothing = clause.verb == "do" and not self.drafts and any(noun.kind == "*" for noun in clause.nouns)
        if is_move and "yet" not in clause.adverbs:
            self.is_stopped = True
            return
        if is_move or is_nothing:  # "do not do anything yet", but for "do not do anything about the box"
            self.drafts += [] if clause.about and is_nothing else [_Draft(clause, skill="wait")]
            return
        if clause.word in ("drop", "break", "spill") and not clause.targets:
            self._mention(clause)
            return  # how to do it: nothing is forbidden
        if clause.nouns and clause.verb not in SETS["no_thing"] and all(map(self._is_unnamed, clause.nouns)):
            self._spare(clause, clause.nouns)
            return
        clause.nouns = self._resolved(clause.nouns)  # "it" is what was spoken of before, not what comes after
        self.bans.append((clause, len(self.drafts)))
        if clause.verb == "leave":
            self.mentioned += clause.nouns
        else:
            self._mention(clause)

    def _keeps(self, clause: Clause) -> bool:
        """Whether "leave" and "keep" mean that something stays as it is."""
        there = [noun for _, noun in clause.targets if noun is not None]
        is_goal = any(noun.unknown for noun in there) and not _HAND.search(" ".join(clause.words))
        is_goal = (is_goal and bool(clause.nouns)) or any(relation == "beside" for relation, _ in clause.targets)
        is_let_be = bool(set(clause.adverbs) & {"be", "alone", *SETS["as_is"]})
        is_goal = is_goal or (any(noun.place for noun in there) and not is_let_be and self._is_set_down(clause))
        if is_goal and clause.word == "leave":
            clause.verb = "place"
            return False
        if clause.verb == "let" and clause.left[:1] == ["keep"] and clause.to_me:
            clause.verb, clause.left = "leave", clause.left[1:]  # "Let me keep that one."
        stays = {"stand", "stay", "sit", "rest"} & set(clause.left)
        if clause.verb == "let" and not (stays or is_let_be):
            return False
        nouns = [*clause.nouns, *clause.excepts]
        source = next((noun.place for noun in there if noun.place), "")
        own = [thing for owner, thing in (*self.before.owners, *self.owners) if owner == "my"]
        if not nouns and clause.left == ["mine"] and own:
            nouns = [_noun(own[-1])]
        elif not nouns and clause.left == ["one"]:
            nouns = [Noun()]  # "Keep one."
        elif left := [word for word in clause.left if word not in ("stand", "stay", "sit", "rest")]:
            self.unread = self.unkept = self.unread or " ".join(left)  # "Leave mine.", "Leave Betsy where she is."
        resolved = [] if any(map(self._is_unnamed, nouns)) else self._resolved(nouns)
        self.mentioned += [noun for noun in resolved if noun.kind and noun.kind != "*"]
        self._spare(clause, [replace(noun, source=source) if noun.kind == "*" else noun for noun in nouns])
        self._mention(clause)
        if clause.nouns and clause.nouns[0].pronoun and not self.drafts and not self.mentioned:
            self.is_cancelled = True
        return True

    def _is_set_down(self, clause: Clause) -> bool:
        """ "Wash the mug and leave it on the tray"; "leave it on the table", of what is in the hand."""
        nouns, held, is_told = clause.nouns, self.before.held, self._mentioned_here()
        if self.drafts and not clause.is_first:
            return bool(nouns) and all(one.pronoun or _same_noun(one, self.drafts[-1].nouns) for one in nouns)
        return bool(held and nouns) and all(
            not is_told if noun.pronoun else any(covers(_reference(noun), one) for one in held) for noun in nouns
        )

    # --- fragments: corrections, exceptions, answers

    def _fragment(self, clause: Clause) -> None:
        draft = self.drafts[-1] if self.drafts else None
        if draft is not None and not draft.source and (source := _where_it_is(clause)) and draft.skill != "place":
            draft.source = source  # "Bring me the cup. The one on the tray."
            return
        if clause.is_same:
            self._same(clause)
            return
        self.nots += clause.nots
        self.mentioned += [noun for noun in clause.nots if noun.kind]
        self.is_offered = self.is_offered or "here" in clause.adverbs
        kinds = {noun.kind for noun in draft.nouns} if draft is not None else set()
        is_whole = draft is not None and (draft.skill not in ("place", "hand_over", "pick") or draft.clause.to_me)
        is_another = (clause.is_first or is_whole) and all(n.kind and n.kind not in kinds for n in clause.nouns)
        is_placed = any(r in ("in", "on", "to", "beside") and n is not None for r, n in clause.targets)
        is_another = draft is not None and (draft.place is not None or is_another)
        if draft is not None and clause.nouns and is_placed and is_another and not clause.is_repair:
            kind = draft.nouns[0].kind if draft.nouns else ""
            clause.nouns = [one if one.kind or one.unknown else replace(one, kind=kind) for one in clause.nouns]
            draft = None
        if draft is None and clause.excepts and not clause.nouns and (self.before.question or not self.before.orders):
            self.left_out += clause.excepts
            return
        if draft is None:
            self._without_draft(clause)
            return
        self._patch_left_out(draft, clause)
        if clause.ends_excepting and not (clause.excepts or clause.nouns or clause.targets):
            draft.last = "announced"  # "Except, well, the blue one."
            return
        if draft.last == "announced" and clause.nouns:
            draft.excepts, draft.last = [*draft.excepts, *clause.nouns], "except"
            return
        if clause.excepts:
            draft.excepts += clause.excepts
            draft.last = "except"
        self._patch_manner(draft, clause)
        self.condition = self.condition or clause.condition
        self._mention(clause)
        if clause.nouns or clause.targets:
            draft.heard = len(self.mentioned)

    def _without_draft(self, clause: Clause) -> None:
        """A fragment that is about no order of this utterance."""
        count = len(self.drafts)
        self._elliptical(clause)
        is_number = [replace(one, is_bare=False) for one in clause.nouns] in _NUMBERS
        is_open = (clause.is_question or is_number) and not clause.is_repair and not self.before.awaits
        if is_open and len(self.drafts) > count and not self.drafts[-1].why:
            why = ("words", " ".join(clause.words)) if is_number else ("what", "")
            self.drafts[-1].why, self.drafts[-1].what = why  # "Five.", "The red one?"
        for new in self.drafts[count:]:
            if left := [word for word in (*clause.left, *clause.unread) if word not in ("go", "goes")]:
                new.why, new.what = new.why or "words", " ".join(left)  # "No, to Anna."

    def _patch_left_out(self, draft: _Draft, clause: Clause) -> None:
        """ "Not that table", "not the red one"."""
        if draft.place is not None and any(noun.place and noun.place == draft.place.place for noun in clause.nots):
            draft.why = draft.why or "where"  # "Put it on the table. Not that table."
        if not clause.nots or not draft.nouns:
            return
        if any(noun.count == "all" for noun in draft.nouns) and not clause.nouns:
            draft.excepts += clause.nots
            draft.last = "except"
            return
        draft.excepts += [
            gone for gone in clause.nots if any(_is_narrower(gone, noun) for noun in draft.nouns)
        ]  # "Wash the cup. Not the red one."
        for one in (draft, *(other for other in self.drafts if other is not draft and other.nouns)):
            left = [noun for noun in one.nouns if not any(_is_taken_back(noun, gone) for gone in clause.nots)]
            if len(left) < len(one.nouns):  # "Bin the red cup and bring me the blue one. Not the red one."
                one.nouns = left
                self.drafts = [other for other in self.drafts if other.nouns or other is not one or other is draft]
                return

    def _patch_manner(self, draft: _Draft, clause: Clause) -> None:
        """Where, which and for whom instead."""
        if "not there" in clause.adverbs:
            draft.place, draft.relation = None, ""
        if "first" in clause.adverbs and clause.nouns and draft.nouns and not clause.is_repair:
            draft.why, draft.what = draft.why or "words", "first"  # "Rinse both glasses, red first."
        if BACK.intersection(clause.adverbs) and draft.skill in ("place", "pick"):
            draft.skill = "put_back"
        if clause.nouns:
            self._patch_nouns(draft, clause)
        for relation, noun in clause.targets:
            self._patch_target(draft, relation, noun)
        if clause.from_me:
            draft.skill = "take"
        if clause.to_me and draft.skill in ("pick", "place", ""):
            draft.skill, draft.why = "hand_over", ""
        if clause.left or clause.unread:
            draft.why, draft.what = draft.why or "words", " ".join(clause.left or clause.unread)

    def _patch_nouns(self, draft: _Draft, clause: Clause) -> None:
        nouns = clause.nouns
        if nouns[0].place and not nouns[0].kind:
            if draft.skill == "wipe" and draft.place is not None and not clause.is_repair:
                self.drafts.append(_Draft(clause, skill="wipe", place=nouns[0]))  # "..., then the shelf"
            elif draft.skill in ("wipe", "look", "drive", "point"):
                draft.place = nouns[0]
            else:
                self._patch_target(draft, "", nouns[0])
            return
        if nouns[0].unknown and draft.place is not None and draft.last == "place" and clause.is_repair:
            self._patch_target(draft, "", nouns[0])
            return
        is_one_of = any(noun.count == "all" for noun in draft.nouns) and not (nouns[0].kind or nouns[0].colour)
        if clause.is_repair and is_one_of and nouns[0].count == 1 and nouns[0].is_definite:
            draft.why = draft.why or "which"  # "All but the blue one, no, that one too."
            return
        if clause.is_repair and is_one_of and nouns[0].count == "all":
            draft.excepts = []  # "All but the blue one, no, all of them."
            return
        if draft.last == "except" and clause.is_repair:
            first = draft.excepts[-1].kind if draft.excepts else ""
            nouns = [replace(noun, kind=noun.kind or first) for noun in nouns]
            draft.excepts = [*draft.excepts[:-1], *nouns]
            return
        old = draft.nouns[-1] if draft.nouns else None
        new = [
            replace(noun, kind=old.kind, colour=old.colour)  # "Two, sorry."
            if old is not None and noun == Noun(count=noun.count) and old.kind
            else replace(noun, kind=old.kind)
            if old is not None and not noun.kind and not noun.unknown and not noun.pronoun and old.kind
            else replace(noun, colour=old.colour)  # "the green plate, I mean bowl"
            if old is not None and noun.is_bare and clause.is_repair and old.kind != noun.kind
            else noun
            for noun in nouns
        ]
        is_open = old is not None and not old.kind and not old.unknown and not old.pronoun
        was_corrected = old is not None and old.is_other and not old.colour and old.count == 1
        is_sharper = (
            old is not None and old.kind and not old.colour and not self.adds and len(nouns) == 1
            and nouns[0].colour and not nouns[0].kind and nouns[0].count == old.count
        )  # fmt: skip  # "Rinse the cup. The white one."
        is_apart = clause.is_first and not (self.adds or self.joins)
        if clause.is_repair or is_open or was_corrected or is_sharper or not draft.nouns:
            if any(noun.pronoun for noun in new):
                return
            draft.nouns = new
            if is_sharper or old is None:
                # "The mug. Not the green one, the blue one."
                draft.excepts = [one for one in draft.excepts if one.count == "all"]
        elif all(noun.count == "all" and noun.pronoun for noun in new):
            draft.nouns = [replace(noun, count="all") for noun in draft.nouns]
        elif is_apart and any(n.kind not in ("", *(d.kind for d in draft.nouns)) for n in new):
            draft.why, draft.what = draft.why or "words", _name(new[0])  # "Bring me the sponge. The red cup."
        else:
            draft.nouns += new
        draft.last = "thing"

    def _patch_target(self, draft: _Draft, relation: str, noun: Noun | None) -> None:
        if relation == "from" and noun is not None:
            draft.source = noun.place
            return
        if noun is None:
            draft.relation = relation or draft.relation
            return
        if draft.skill in ("look", "point") and noun.kind:
            draft.nouns, draft.place = [noun], None
            return
        if noun.pronoun and draft.place is not None:
            draft.relation = relation if relation in ("in", "on", "beside") else draft.relation
            return
        if relation == "" and draft.relation in ("beside",):
            relation = "beside"
        is_bid = draft.skill == "hand_over" and draft.clause.type == "fragment"  # "Black cup, shelf, please."
        is_brought = draft.skill == "hand_over" and draft.clause.verb in ("bring", "get") and not draft.clause.to_me
        is_bid = is_bid or (is_brought and draft.clause.word != "bring me")
        if (draft.skill == "pick" or is_bid) and relation in ("in", "on", "beside", "to", ""):
            draft.skill = "place"
        if relation == "other":
            draft.why, draft.what = draft.why or "words", _name(noun)
        draft.place, draft.relation, draft.last = noun, relation, "place"
        draft.why = "" if draft.why == "where" else draft.why
        draft.skill = "place" if draft.skill == "put_back" else draft.skill

    def _same(self, clause: Clause) -> None:
        orders, nouns = self.before.orders, clause.nouns
        self.is_addition = self.is_addition or not clause.is_repair
        if not orders or any(noun.place and not noun.kind for noun in nouns):  # "And the sink?"
            self.drafts.append(_Draft(Clause("order"), why="what"))
        else:
            self._again(orders[-1], nouns)

    def _again(self, order: Order, named: Sequence[Noun] | None = None) -> None:
        """The order once more, of these things instead; what it excepts of them stays excepted."""
        nouns = [_noun(one) for one in order.things] if named is None else named
        if order.skill == LEAVE:
            self.protected += [replace(n, kind=n.kind or order.things[0].label) for n in nouns]
            return
        draft = _Draft(Clause("order"), skill=order.skill, relation=order.relation)
        draft.place = Noun(place=order.place) if order.place else None
        draft.nouns = [replace(n, kind=n.kind or order.things[0].label) if order.things else n for n in nouns]
        old = () if named is None else order.things  # "All but the blue one." - "No, all of them."
        things = [one for one in map(_reference, draft.nouns) if not any(_is_same(one, two) for two in old)]
        draft.excepts = [_noun(one) for one in order.excluding if any(_is_part(one, whole) for whole in things)]
        self.drafts.append(draft)

    def _elliptical(self, clause: Clause) -> None:
        """A sentence without a verb: an answer, a correction of the last order, or an order in short."""
        targets = [(relation, noun) for relation, noun in clause.targets if relation != "from"]
        readings: tuple[Callable[[Clause, Targets], bool], ...] = (
            *(self._as_the_rest, self._as_apposition, self._as_one_spared, self._as_other_place, self._as_short_order),
            *(self._as_answer, self._as_other_things, self._as_less),
        )
        is_beside = self.adds and self.asks and not clause.is_first  # "Could Tom go there, and the ball as well?"
        if not is_beside and any(reading(clause, targets) for reading in readings):
            return  # what adds to words that nobody understood adds to no order before them
        nouns = [] if _is_of_rest(clause) else clause.nouns
        is_bid = self.is_polite and len(nouns) == 1 and not targets and not clause.excepts
        is_bid = is_bid and not (self.before.orders and self.before.orders[-1].skill != "hand_over")
        if is_bid and nouns[0].kind and not clause.is_repair and not clause.left:  # "An apple, please."
            self.drafts.append(_Draft(clause, skill="hand_over", nouns=list(nouns)))
        self.mentioned += [noun for noun in _nouns_of(clause) if noun.kind or noun.place or noun.unknown]
        if nouns or targets:
            self.loose.append(clause)

    def _as_the_rest(self, clause: Clause, targets: Targets) -> bool:
        """ "Now everything else, except the ball", where only some things were ordered: these as well."""
        last = self.before.orders[-1] if self.before.orders and not self.before.awaits else None
        is_rest = len(clause.nouns) == 1 and clause.nouns[0].is_other and clause.nouns[0].count == "all"
        if last is None or not is_rest or targets or clause.nots or clause.is_question or not last.things:
            return False
        rest = clause.nouns[0]
        is_whole = any(one.count == ALL or one.is_any for one in last.things)
        if rest.kind not in ("", "*") or rest.colour or is_whole or last.skill not in ("place", "rinse"):
            return False
        self._again(last, [Noun(kind=rest.kind, count="all")])
        self.drafts[-1].excepts += clause.excepts
        self.is_addition = True
        return True

    def _as_apposition(self, clause: Clause, targets: Targets) -> bool:
        """ "This plate is dirty, the red one."""
        is_one = len(clause.nouns) == 1 and not clause.targets and bool(self._mentioned_here())
        if not is_one or not clause.nouns[0].colour or clause.nouns[0].kind or clause.nots:
            return False
        named = self.mentioned[-1]
        if not named.kind or named.colour:
            return False
        self.mentioned[-1] = replace(named, colour=clause.nouns[0].colour)
        return True

    def _as_one_spared(self, clause: Clause, targets: Targets) -> bool:
        """ "Not that one", "all except this one", "I want that one"."""
        before, nouns = self.before, clause.nouns
        spared = [*clause.nots, *clause.excepts] if all(n.kind in ("", "*") and n.count == "all" for n in nouns) else []
        spared = spared or (nouns if clause.words[:2] in (("i", "want"), ("i", "need")) else [])
        is_wish = bool(spared) and spared is nouns
        is_free = self._is_under_way() if is_wish or before.orders else not before.awaits
        if not spared or targets or not is_free or not all(map(self._is_unnamed, spared)):
            return False
        self._spare(clause, spared)
        return True

    def _as_other_place(self, clause: Clause, targets: Targets) -> bool:
        """ "Not there"."""
        orders = self.before.orders
        return "not there" in clause.adverbs and bool(orders) and self._as_not_there(orders[-1])

    def _as_not_there(self, order: Order) -> bool:
        things = [_noun(one) for one in order.things]
        self.drafts.append(_Draft(Clause("order"), skill="place", nouns=things, why="where"))
        return True

    def _as_short_order(self, clause: Clause, targets: Targets) -> bool:
        """ "The cup on the tray"."""
        nouns = clause.nouns
        if not nouns or not targets or not (nouns[0].kind or nouns[0].unknown or nouns[0].colour or nouns[0].pronoun):
            return False
        draft = _Draft(clause, skill="place", nouns=list(nouns), excepts=list(clause.excepts))
        for relation, noun in targets:
            self._patch_target(draft, relation, noun)
        sources = [noun.place for relation, noun in clause.targets if relation == "from" and noun is not None]
        draft.source = sources[0] if sources else ""
        self._mention(clause)
        is_told = any(relation in ("in", "on", "to", "beside") for relation, _ in targets)
        if is_told and not clause.is_question and not (clause.left and nouns[0].unknown):
            self._drop_vague()
            self.drafts.append(draft)
        return True

    def _as_answer(self, clause: Clause, targets: Targets) -> bool:
        """ "The blue one", "on the shelf": which or where, of what was asked; where, of what was ordered."""
        before, nouns = self.before, clause.nouns
        last = before.orders[-1] if before.orders and (clause.is_repair or before.awaits) else None
        order, is_which = before.question or last, before.question is not None and before.awaits in ("thing", "yes")
        if order is None or (targets and nouns):
            return False
        if order is last and (targets or (nouns and nouns[0].place)):  # "No, on the shelf.", of what is brought
            order = next((one for one in reversed(before.orders) if one.place or one.skill == "pick"), order)
        if targets:
            self._again(order)
            self.drafts[-1].skill = "place" if order.skill in ("pick", "") else order.skill
            for relation, noun in targets:
                self._patch_target(self.drafts[-1], relation, noun)
        elif nouns and nouns[0].place:
            self._again_at(order, nouns[0])
        elif not is_which or not (clause.nots or (nouns and nouns[0].kind != "*")):
            return False
        elif nouns:
            self._again(order, nouns)
        elif order.skill == LEAVE:
            self.unnamed.append(Unnamed(how="described"))
        else:
            self.drafts.append(_Draft(Clause("order"), skill=order.skill, why="which"))
        return True

    def _again_at(self, order: Order, place: Noun) -> None:
        self._again(order)
        self._patch_target(self.drafts[-1], "", place)

    def _as_other_things(self, clause: Clause, targets: Targets) -> bool:
        """ "And the plate", "the blue one", "the tray": besides, or instead, of what was ordered."""
        orders, nouns, first = self.before.orders, clause.nouns, clause.nouns[0] if clause.nouns else Noun()
        if not nouns or not orders or targets:
            return False
        if self.is_addition and not clause.nots and (first.kind or first.unknown):
            self._again(orders[-1], nouns)
            self._mention(clause)
        elif first.is_other and not (first.colour or first.kind) and self.is_addition:
            self.drafts.append(_Draft(Clause("order"), skill=orders[-1].skill, why="which"))
        elif first.is_other and not (first.colour or first.kind):
            self._spare(clause, [Noun(pronoun="it")])  # "No, the other one": so it is not this one
        elif clause.excepts or first.unknown or (first.kind and not (clause.is_repair or self._is_sharper(nouns))):
            return False
        elif first.place and not first.kind:  # "Why the shelf? The tray!"
            self._again_at(orders[-1], first)
        elif not (first.count == 1 and replace(first, is_bare=False) == Noun()):  # "One is enough."
            self._again(self._ordered_of(nouns), nouns)
            self.mentioned += [noun for noun in nouns if noun.kind]
        return True

    def _is_sharper(self, nouns: Sequence[Noun]) -> bool:
        """Whether it says which, where any was ordered: "An apple, please." - "The red apple."."""
        before = self.before.orders[-1].things
        return len(nouns) == len(before) == 1 and before[0].is_any and _is_narrower(nouns[0], _noun(before[0]))

    def _ordered_of(self, nouns: Sequence[Noun]) -> Order:
        """The last order about things of this kind; else the last one."""
        kinds = {noun.kind for noun in nouns} - {""}
        orders = self.before.orders
        about = [one for one in orders if kinds and kinds <= {ref.label for ref in one.things}]
        return (about or orders)[-1]

    def _as_less(self, clause: Clause, targets: Targets) -> bool:
        """ "Not the red one", "all except the blue one"."""
        orders, barred = self.before.orders, [*clause.nots, *clause.excepts]
        if not barred or not orders or (clause.nouns and not _is_of_rest(clause)):
            return False
        last = orders[-1]
        if any(map(_is_place, barred)):
            return last.place in {noun.place for noun in barred} and self._as_not_there(last)
        barred = [replace(n, kind=n.kind or (last.things[0].label if last.things else "")) for n in barred]
        is_one = [one for one in last.things if one.count == 1]
        if last.things and len(is_one) == len(last.things) and self._is_all_ordered(barred):
            self.protected += map(_noun, last.things)  # "Not the red one", where that is all that was ordered
            return True
        if all(is_vague(_reference(noun)) for noun in barred) and any(one.count != 1 for one in last.things):
            self.protected += barred  # "Not that cup", of several
            return True
        self._again(last)
        self.drafts[-1].excepts += barred
        self.protected += barred
        self.mentioned += [noun for noun in barred if noun.kind]
        return True

    # --- what a verb means with what stands beside it: the rows of verbs.toml

    def _framed(self, clause: Clause) -> _Draft | None:
        kinds = {noun.kind for noun in clause.nouns if not noun.place}
        only = kinds.pop() if len(kinds) == 1 else ""
        excepts = [replace(one, kind=one.kind or only) if one.colour and only != "*" else one for one in clause.excepts]
        draft = _Draft(clause, nouns=list(clause.nouns), excepts=excepts)
        draft.last = "except" if clause.ends_excepting and excepts else "thing"
        verb = clause.verb
        for noun in [noun for relation, noun in clause.targets if relation == "from" and noun is not None]:
            draft.source = noun.place or draft.source
            draft.refused, draft.what = ("place", noun.unknown) if noun.unknown else (draft.refused, draft.what)
        reachable = [(r, n) for r, n in clause.targets if r != "from"]
        if clause.has_choice:
            draft.why = "choice"
        if clause.left or clause.unread:
            draft.why, draft.what = "words", " ".join(clause.left or clause.unread)
        if verb in ("leave", "let"):
            self.told_of += clause.nouns
            if verb == "let" and clause.to_me:
                self.taken.append((clause, clause.nouns))  # "Let me do the red one."
            return None
        row = row_of(verb, bag_of(clause, draft.nouns, reachable, draft.source) | self._known_beside(clause, draft))
        if row is not None:
            draft.skill, draft.why, draft.what = row.skill, row.why or draft.why, row.what or draft.what
            for step in row.then.split():
                self._do_besides(step, draft, reachable)
            return draft if row.then != "drop" else None
        draft.skill = self.parser.lexicon.skill_of.get(verb, verb)
        if draft.skill in ("nod", "stop", "retreat"):  # are about nothing
            draft.nouns, draft.why = [], ""
        if draft.skill == "rinse" and draft.nouns and not draft.source:  # "Wash everything on the table."
            there = [n.place for r, n in reachable if n is not None and n.place and r in ("in", "on")]
            draft.source = next((one for one in there if one not in TOOLS), "")
        self._place_of(draft, reachable)
        return draft

    def _known_beside(self, clause: Clause, draft: _Draft) -> frozenset[str]:
        """The roles that only the conversation tells."""
        told = [one for one in self.mentioned if (one.kind and not one.is_vague) or one.place]
        is_it = clause.verb == "hold" and bool(draft.nouns) and draft.nouns[0].pronoun == "it"
        roles = {
            "offered": self.is_offered, "another": bool(self.drafts), "told_of_kind": bool(told and told[-1].kind),
            "same": bool(self._repeatable()),
            "untold": is_it and self._antecedent(draft.nouns[0], wants_place=False) is None,
            "moved": bool({"onto", "into"}.intersection(clause.words)),
        }  # fmt: skip
        return frozenset(role for role, is_so in roles.items() if is_so)

    def _place_of(self, draft: _Draft, targets: Targets) -> None:
        """For skills that are about a thing or a place: which of the two is meant."""
        if draft.skill in ("wipe", "look", "point"):
            for relation, noun in targets:
                is_pointed_at = bool(draft.nouns) and draft.skill == "point"
                if relation == "other" and SETS["away_from"].intersection(draft.clause.words):
                    draft.refused, draft.what = "relation", _name(noun)
                if noun is not None and noun.place and draft.place is None and not is_pointed_at:
                    draft.place = noun
                elif noun is not None and relation in ("in", "on", "to") and not draft.nouns:
                    draft.nouns = [noun]
                elif relation == "other":
                    draft.refused, draft.what = "relation", _name(noun)
            if draft.nouns and draft.nouns[0].place:
                draft.place, draft.nouns = draft.nouns[0], []
            elif draft.nouns and draft.place is not None and draft.skill in ("look", "point"):
                draft.place = None

    def _places_in(self, draft: _Draft, targets: Targets) -> Targets:
        """Where it may go; a thing before the first place is what goes there, a place before another is where it is."""
        places: Targets = []
        for number, (relation, noun) in enumerate(targets):
            if relation == "other":
                draft.refused, draft.what = "relation", _name(noun)
            elif noun is not None and noun.kind and not noun.place and number == 0 and not draft.nouns:
                draft.nouns = [noun]
            else:
                places.append((relation, noun))
        if len(places) < 2 or draft.clause.word == "due":
            return places
        (relation, first), (second_relation, second) = places[0], places[1]
        if first is None:
            return places[1:]
        if second is None or (first.place and second.place and relation == second_relation == "in"):
            return places
        if relation in ("on", "in") and first.place and draft.nouns and not self._joined(draft.clause):
            draft.source = first.place
            return places[1:]
        if first.place and second.place and self._joined(draft.clause):
            draft.why = draft.why or "contradiction"
        return places

    def _joined(self, clause: Clause) -> bool:
        (relation, first), (other, _) = clause.targets[:2]
        is_twice = relation == other and relation in ("in", "on") and first is not None
        return is_twice and bool(clause.nouns) and clause.nouns[0].count == 1

    def _do_besides(self, step: str, draft: _Draft, targets: Targets) -> None:
        """What a row does with an order besides its skill."""
        at_length = {"place": self._place, "go": self._go, "throw": self._throw, "show": self._show}
        at_length |= {"reach": self._place_of, "same": self._as_before, "all_there": self._all_there}
        if step in at_length:
            at_length[step](draft, targets)
            return
        known = [noun for noun in draft.nouns if not noun.unknown]
        first = draft.nouns[0] if draft.nouns else Noun()
        match step:
            case "bare":
                draft.nouns = []
            case "sure":
                draft.why = ""
            case "allowed":
                draft.refused = ""
            case "rest":
                draft.nouns = draft.clause.nouns = known  # "a wipe" is nothing that "it" could mean
            case "unlid":
                self._unlid(draft)
            case "beside":
                draft.place, draft.relation, draft.nouns = first, "beside", []
            case "found_there":  # "May I have the cup on the tray?"
                draft.source = next((noun.place for _, noun in targets if noun is not None), "")
            case "by_sponge":
                draft.why = "" if draft.why == "words" and draft.what == "sponge" else draft.why
                self._place_of(draft, [])
            case "over":
                draft.nouns = [n for r, n in targets if n is not None and r in ("other", "on")][:1]
            case "refuse":
                draft.refused, draft.what = "skill", draft.clause.word
            case "refuse_deed":  # "Do a somersault."
                deed = next(noun.unknown for noun in draft.nouns if noun.unknown and not noun.is_vague)
                draft.refused, draft.what = "skill", deed

    def _repeatable(self) -> list[_Draft | Order]:
        """What "do the blue one" may mean: the deed that was ordered last, here or before."""
        found: list[_Draft | Order] = [*self.before.orders[-1:], *self.drafts]
        return [one for one in found if one.skill in SETS["again"]]

    def _as_before(self, draft: _Draft, targets: Targets) -> None:
        """ "Now do the ball.", behind what was done with another thing."""
        last = self._repeatable()[-1]
        draft.skill, draft.relation = last.skill, last.relation
        self.is_addition = self.is_addition or not (self.drafts or draft.clause.is_repair)
        draft.place = Noun(place=last.place) if isinstance(last.place, str) and last.place else last.place or None

    def _all_there(self, draft: _Draft, targets: Targets) -> None:
        """ "Clear the table into the bin."."""
        draft.source, draft.nouns = draft.nouns[0].place, [Noun(kind="*", count="all", is_plural=True)]
        draft.why = "tidy" if self.protected else draft.why

    def _unlid(self, draft: _Draft) -> None:
        """The lid of something is that thing's."""
        behind = [noun for _, noun in draft.clause.targets if noun is not None]
        draft.nouns = behind or [noun for noun in draft.nouns if noun.unknown not in SETS["lids"]]

    def _place(self, draft: _Draft, targets: Targets) -> None:
        clause = draft.clause
        adverbs = set(clause.adverbs)
        if any(noun.unknown in SETS["lids"] for noun in draft.nouns):
            draft.skill = "open" if any(relation == "from" for relation, _ in clause.targets) else "close"
            self._unlid(draft)
            return
        if ("back" in clause.particles and not targets) or adverbs & BACK:
            draft.skill = "put_back"
            if "back" not in clause.particles and adverbs & SETS["home"]:
                draft.skill, draft.why = "place", "where"
            return
        draft.skill = "place"
        there = [noun for relation, noun in targets if noun is not None and noun.place and relation in ("in", "on")]
        if clause.words[-1:] == ("away",) and there and draft.nouns:  # "Put everything on the table away."
            draft.source, draft.why, targets = there[0].place, draft.why or "where", []
        if "closer" in clause.particles:
            draft.why, draft.what = draft.why or "words", "closer"
        if clause.word == "return" and not targets:
            draft.skill = "put_back"
            return
        places = self._places_in(draft, targets)
        if places:
            (draft.relation, draft.place), draft.last = places[-1], "place"
            if places[-1] == ("in", None):
                draft.place = self._put_in()  # "Put the ball in."
        if clause.word == "due" and "somewhere" in adverbs:
            draft.why = draft.why or "where"  # "It must be on the shelf somewhere."
        if "away" in clause.particles or adverbs & SETS["anywhere"]:
            draft.why = draft.why or ("" if places else "where")
        if adverbs & (SETS["there"] - {"here", "over here"}) and not places:
            draft.place, draft.relation = self._antecedent(Noun(pronoun="there"), wants_place=True), ""
            draft.why = draft.why or ("where" if draft.place is None else "")
        if clause.to_me and not places:
            draft.skill = "hand_over"

    def _put_in(self) -> Noun | None:
        """Where the last order put things in, "in" by itself means that."""
        drafts = [(one.relation, one.place) for one in self.drafts if one.skill == "place"]
        before = (*self.before.orders, *((self.before.question,) if self.before.question is not None else ()))
        orders = [(one.relation, Noun(place=one.place)) for one in before if one.skill == "place" and one.place]
        relation, place = (*orders, *drafts)[-1] if orders or drafts else ("", None)
        return place if relation == "in" else None

    def _go(self, draft: _Draft, targets: Targets) -> None:
        clause = draft.clause
        draft.skill = "drive"
        is_back = clause.word in ("go", "roll", "drive") and SETS["backwards"].intersection(clause.particles)
        if is_back and not targets:
            draft.skill = "retreat"
            return
        for relation, noun in targets:
            if noun is not None:
                draft.place, draft.relation = noun, "beside" if relation == "beside" else ""
                if relation == "other":
                    draft.refused, draft.what = "relation", _name(noun)
        if draft.place is None and draft.nouns and draft.nouns[0].place:
            draft.place = draft.nouns[0]  # "approach the table"
        if draft.place is None and set(clause.adverbs) & {"there", "over there"}:
            draft.place = self._antecedent(Noun(pronoun="there"), wants_place=True)
        elif draft.place is None and set(clause.adverbs) & {"here", "over here"}:
            said = self.mentioned[len(self.before.mentioned) :]  # "I am at the sink. Come here."; no place of before
            draft.place = self._antecedent_in(said, Noun(pronoun="there"), wants_place=True)
        draft.nouns = []
        if away := [one for one in clause.particles if one in ("upstairs", "downstairs", "outside", "home")]:
            draft.refused, draft.what = "place", away[0]
        elif draft.place is None:
            draft.why = draft.why or "where"

    def _show(self, draft: _Draft, targets: Targets) -> None:
        words = draft.clause.left or draft.clause.unread
        draft.skill = "point"
        if words[:1] in (["where"], ["which"]):
            draft.why = "which" if words[0] == "which" else ""
            named = self.parser.named_in(words)
            if len(named) == 2 and named[0].kind and not named[1].kind:  # "which bottle is the red one"
                draft.nouns, draft.why = [replace(named[1], kind=named[0].kind)], ""
        self._place_of(draft, targets)

    def _throw(self, draft: _Draft, targets: Targets) -> None:
        clause = draft.clause
        draft.skill = "place"
        if targets and any(noun is not None and noun.place for _, noun in targets):
            self._place(draft, targets)
            if draft.place is not None and draft.place.place in INSIDE:
                return
            if clause.word == "throw" and "away" not in clause.particles:
                draft.refused, draft.what = "skill", "throw"
                return
            draft.source = draft.place.place if draft.place is not None else ""
        is_away = clause.word not in ("throw",) or set(clause.particles) & {"away", "out"}
        if is_away and (bins := self.world.waste or WASTE & self.world.places):
            draft.place, draft.relation = Noun(place=sorted(bins)[0]), "in"
        elif targets or clause.to_me or not is_away:
            draft.refused, draft.what = "skill", "throw"

    # --- all clauses together

    def _conclude(self, clauses: list[Clause]) -> Intent:
        self._take_turns()
        self._apply_bans()
        self._take_instead()
        return self._as_known() or self._as_ordered() or self._as_answered(clauses) or self._as_told(clauses)

    def _as_known(self) -> Intent | None:
        """What needs no look at the orders: stop, not sure, undo, and what is taken out of the robot's hands."""
        if self.is_stopped:
            return self._intent("do", orders=(Order("stop"),))
        if self.is_unsure and not (self.drafts and all(draft.skill == "wait" for draft in self.drafts)):
            return self._intent("ask", why="unsure", what=next(map(_name, self.doubted), ""))
        backs = [one for one in self.drafts if one.skill in ("pick", "put_back", "take", "place") and one.place is None]
        if self.is_undo and backs == self.drafts and all(noun.pronoun for one in backs for noun in one.nouns):
            return self._intent("do", orders=(Order("undo"),))
        if self._is_under_way() and self.drafts and all(map(self._takes_from_robot, self.drafts)):
            for draft in self.drafts:
                self._spare(draft.clause, draft.nouns)
            return self._intent("nothing")
        return None

    def _as_ordered(self) -> Intent | None:
        """What is ordered, or what is to be asked first."""
        orders, problem = self._finished()
        if self.unkept and not (orders or self.protected or self.unnamed):
            return self._intent("ask", why="words", what=self.unkept)
        if problem is not None and problem[0] == "refuse":
            return self._intent("refuse", why=problem[1], what=problem[2])
        if self.unknown_verb:
            return self._intent("refuse", why="skill", what=self.unknown_verb)
        if problem is not None:
            awaited: dict[str, Awaits] = {"where": "place", "relative": "place", "which": "thing"}
            awaits = awaited.get(problem[1], "yes")
            return self._intent("ask", orders=orders, why=problem[1], what=problem[2], awaits=awaits)
        if orders and (doubt := self._doubt_about(orders)):
            return self._intent("ask", orders=orders, why=doubt[0], what=doubt[1], awaits="yes")
        if (self.protected or self.unnamed) and all(order.skill == "wait" for order in orders):
            return self._intent("nothing")  # "Wait, I am still drinking from it."
        orders = tuple(dict.fromkeys(_in_turn(orders) if self.is_in_turn else orders))
        if orders and (doubt := self._doubt_left(orders)):
            return self._intent("ask", orders=orders, why=doubt[0], what=doubt[1], awaits="yes")
        if orders and (self.is_cancelled or self.is_left):
            self.unnamed = [] if self.is_left else self.unnamed
            return self._intent("do", orders=orders, why="instead")
        return self._intent("do", orders=orders) if orders else None

    def _doubt_about(self, orders: Sequence[Order]) -> tuple[str, str] | None:
        """Why these are not simply done: what stands beside them contradicts, puts off, or is not understood."""
        if any(not _same_noun(noun, self.protected) for noun in self._resolved(self.remarks)):
            return "contradiction", _name(self.remarks[0])
        if self.condition and any(order.skill != "wait" for order in orders):
            return "condition", self.condition
        dark = self.quoted or self.unread or self.unheard
        return ("words", dark) if dark else None

    def _doubt_left(self, orders: Sequence[Order]) -> tuple[str, str] | None:
        """What was said and is kept in none of them."""
        if which := next((n.quality for n in self.nots if n.quality and not (n.kind or n.colour)), ""):
            return "words", which  # "not the tall one"
        if word := self._overlooked(orders):
            return "words", word
        twice = _in_two_places(orders)
        return ("contradiction", _words_of(twice)) if twice else None

    def _as_answered(self, clauses: list[Clause]) -> Intent | None:
        """No order: what is somebody's is left, a question is answered, and so is a yes or a no."""
        if self.taken and self._is_under_way() and not self.drafts:  # "The white one is mine.", "I do the red one."
            for clause, nouns in self.taken:
                self._spare(clause, nouns)
            if self.protected or self.unnamed:
                return self._intent("nothing")
        if self.is_cancelled:
            return self._intent("nothing", why="cancelled")
        if self.says and self.before.awaits and self.before.question is not None:
            if self.says == "yes" and self.before.awaits == "yes":
                return self._intent("do", orders=(self.before.question,))
            return self._intent("nothing", why="declined", what=self.says)
        if self.asks or (clauses and not any(_has_content(clause) for clause in clauses)):
            return self._intent("answer", what=self.topic)
        is_bare_no = self.says == "no" and len(clauses) == 1 and not self.before.awaits
        if is_bare_no and self._is_under_way():
            self._spare(clauses[0], [Noun(pronoun="it")])
            return self._intent("nothing", what="no")
        return None

    def _as_told(self, clauses: list[Clause]) -> Intent:
        """What is left: a thing without a verb, a word that nobody knows, or something that was only told."""
        if self.unnamed:
            return self._intent("nothing")
        if self.loose and len(clauses) <= 2 and not self.protected:
            words = [clause for clause in self.loose if clause.type == "unknown"]
            if words:
                why = "kind" if self.is_polite and len(words[0].words) == 1 else "skill"  # "Coffee, please."
                return self._intent("refuse", why=why, what=words[0].word)
            wished = [noun.unknown for clause in self.loose for noun in clause.nouns if noun.unknown]
            if self.is_polite and wished and not self.has_statement:
                return self._intent("refuse", why="kind", what=wished[0])
            if not self.has_statement and any(n.kind or n.place for clause in self.loose for n in _nouns_of(clause)):
                self.told_of += [noun for clause in self.loose for noun in clause.nouns]
                return self._intent("ask", why="what")
        if not self.before.orders:
            self.protected += [noun for noun in self.nots if noun.kind]  # "Not the apple!"
        if self.is_elsewhere:
            return self._intent("nothing", why="elsewhere")
        told = " ".join(word for clause in clauses for word in clause.words or clause.word.split())
        is_told = self.has_statement and told != ""
        return self._intent("nothing", why="told", what=told) if is_told else self._intent("nothing")

    def _takes_from_robot(self, draft: _Draft) -> bool:
        """Whether it says of what is under way, "put that one back" or "I want that one", that it is not to be done."""
        order = self.before.orders[-1]
        is_one_of = order.skill == "place" and any(one.count != 1 for one in order.things)
        is_back = draft.skill == "put_back" and draft.place is None
        is_wanted = draft.skill == "hand_over" and draft.clause.verb == "want" and "hand_over" not in self.world.skills
        is_bare = bool(draft.nouns) and all(map(self._is_unnamed, draft.nouns)) and not draft.clause.targets
        return is_one_of and is_bare and (is_back or is_wanted)

    def _overlooked(self, orders: Sequence[Order]) -> str:
        """A thing or a place that was named beside an order and that no order is about, unless it was corrected."""
        if any(order.skill == "rinse" for order in orders) and any(clause.denies for clause in self.told):
            return "not"  # "Wash the cup, but not in the sink."
        if self.is_correction or self.nots or self.bans or any(clause.is_repair or clause.nots for clause in self.told):
            return ""
        used = {one.label for order in orders for one in (*order.things, *order.excluding)}
        used |= {order.place for order in orders} | {one.source for order in orders for one in order.things}
        used |= {noun.kind for noun in (*self.protected, *self.released)}
        if not self.told or not orders:
            return ""
        if any(order.skill in ("wipe", "rinse") for order in orders):
            used |= TOOLS  # what it is done with, and where
        if any(order.skill not in ("place", "drive", "wipe", "rinse") for order in orders):
            used |= self.world.places  # where the thing is now
        named: list[Noun] = []
        for clause in self.told:
            if clause.verb in ("want", "leave", "let", "tidy", "clear") and len(self.told) > 1:
                continue  # what an order behind it makes clear, or what is to stay
            named += clause.nouns + [noun for noun in clause.excepts if noun.kind]
            named += [noun for relation, noun in clause.targets if noun is not None and relation != "from"]
        return next((_name(noun) for noun in named if (noun.kind or noun.place) not in ("", "*", *used)), "")

    def _intent(
        self, deed: Deed, *, orders: tuple[Order, ...] = (), why: str = "", what: str = "", awaits: Awaits = ""
    ) -> Intent:
        protected = tuple(_reference(n) for n in self._colours(self.protected) if n.kind and not n.is_other)
        released = tuple(_reference(n) for n in self._resolved(self.released) if n.kind)
        taken = self._taken(orders)
        names = [(one, one.kind or one.place or one.unknown) for one in self.asked_about]
        asked = [Reference(label=name, colour=one.colour, source=one.source) for one, name in names]
        return Intent(
            deed=deed, orders=tuple(_without(order, taken) for order in orders[:MOST_ORDERS]),
            why=why, what=what, awaits=awaits, is_correction=self.is_correction, is_addition=self.is_addition,
            protected=tuple(dict.fromkeys(protected)), unnamed=tuple(dict.fromkeys(self.unnamed)), released=released,
            asks_about=tuple(asked), told_of=tuple(map(_reference, self._told_of())), taken=taken,
        )  # fmt: skip

    def _taken(self, orders: Sequence[Order]) -> tuple[Reference, ...]:
        """What is somebody's, or what the speaker does, unless it is ordered all the same."""
        nouns = self._colours([noun for _, nouns in self.taken for noun in nouns])
        found = [replace_count(_reference(noun)) for noun in nouns if noun.kind and not noun.is_other]
        named = [thing for order in orders for thing in order.things]
        return tuple(dict.fromkeys(one for one in found if not any(_is_same(one, thing) for thing in named)))

    def _told_of(self) -> list[Noun]:
        """What statements are about; "it" stays open, unless it was named here or just said to be somebody's."""
        found = []
        for noun in self.told_of:
            if not (noun.kind or noun.colour or noun.place):
                known = self._antecedent(noun, wants_place=False) if self._mentioned_here() else None
                noun = known or (_noun(owned) if (owned := self._just_owned()) is not None else Noun())
            found.append(self._resolved([noun])[0] if noun.colour and not noun.kind else noun)
        return [noun for noun in found if not noun.place]

    def _just_owned(self) -> Reference | None:
        """What was the last thing spoken of before, where it was said to be somebody's."""
        last = next((noun for noun in reversed(self.before.mentioned) if noun.kind), None)
        is_new = last is not None and len(self.mentioned) >= len(self.before.mentioned)
        owned = [one for _, one in self.before.owners[-1:] if is_new and last and _is_same(one, _reference(last))]
        return owned[0] if owned else None

    def _colours(self, nouns: Sequence[Noun]) -> list[Noun]:
        """ "The blue one", where nobody spoke of anything before: whatever is blue."""
        known = self._resolved(nouns)
        return [replace(one, kind="*") if one.colour and not (one.kind or one.unknown) else one for one in known]

    def _apply_bans(self) -> None:
        for clause, at in self.bans:
            if clause.verb in SETS["no_thing"]:
                continue
            nouns = self._resolved(clause.nouns)
            is_general = clause.verb in ("touch", "move", "take") and not clause.targets
            after = [draft for draft in self.drafts[at:] if self._is_contrast(clause, nouns, draft)]
            meant = [noun for draft in after for noun in draft.nouns]
            is_meant = any(_is_same_noun(noun, other) or other.pronoun for noun in nouns for other in meant)
            is_meant = is_meant or clause.verb == "pick" or not any(noun.count == "all" for noun in meant)
            if not after or is_general or not is_meant:  # not "Do not give me the red one, give me the blue one"
                self.protected += nouns

    def _is_contrast(self, ban: Clause, nouns: Sequence[Noun], draft: _Draft) -> bool:
        """Whether the order is what is to be done instead: the same deed, or with the same thing."""
        if not nouns or ("never" not in ban.words and draft.clause.verb == ban.verb):
            return True
        kinds = {"", "*", *(noun.kind for noun in nouns)}
        found = [noun if noun.kind else self._antecedent(noun, wants_place=False, draft=draft) for noun in draft.nouns]
        return not all(noun.kind for noun in nouns) or any(noun is None or noun.kind in kinds for noun in found)

    def _take_instead(self) -> None:
        """ "Take the ball, not the cups", "take the ball instead": what was to be done with those is, with the ball."""
        ordered = [_noun(one) for order in self.before.orders for one in order.things]
        self.is_correction |= any(_is_taken_back(one, gone) for one in ordered for gone in self.nots)
        draft = self.drafts[0] if len(self.drafts) == 1 and self.before.orders else _Draft(Clause("order"))
        is_open = draft.skill in ("pick", "place") and draft.place is None and not draft.source
        if not (is_open and draft.nouns):
            return
        order = self._ordered_of(draft.nouns)
        kinds = {one.label for one in order.things}
        is_contrast = any(noun.kind in kinds or not (noun.kind or noun.place) for noun in self.nots)
        is_repair = draft.clause.is_repair and not draft.why and not any(noun.pronoun for noun in draft.nouns)
        if order.skill in SETS["again"] and (is_contrast or is_repair):
            self.is_correction, self.drafts = True, []
            self._again(order, None if _is_place(draft.nouns[0]) else draft.nouns)
            new = self.drafts[0]
            new.place = draft.nouns[0] if _is_place(draft.nouns[0]) else new.place
            new.excepts += draft.excepts
            new.why, new.what = ("", "") if draft.why == "where" else (draft.why, draft.what)

    def _finished(self) -> tuple[tuple[Order, ...], tuple[str, str, str] | None]:
        """The orders, and the worst that is wrong with them: ("refuse" or "ask", why, what)."""
        orders: list[Order] = []
        problem: tuple[str, str, str] | None = None
        for draft in self.drafts:
            order, wrong = self._finish(draft)
            orders.append(order)
            if wrong is not None and (problem is None or (wrong[0] == "refuse" and problem[0] == "ask")):
                problem = wrong
        for number, order in enumerate(orders):  # "All plates on the shelf, but the blue one in the sink."
            others = [o for o in orders[number + 1 :] if o.skill in SETS["moves"] and o.place != order.place]
            things = [thing for other in others for thing in other.things if order.skill in SETS["moves"]]
            orders[number] = _but(order, [one for one in things if any(_is_part(one, whole) for whole in order.things)])
        return tuple(orders), problem

    def _finish(self, draft: _Draft) -> tuple[Order, tuple[str, str, str] | None]:
        world, skill = self.world, draft.skill
        nouns, wrong = self._things(draft)
        place = draft.place
        if place is not None and place.pronoun:
            place = self._antecedent(place, wants_place=True, draft=draft)
        if skill in ("look", "point") and place is None and not draft.nouns and not draft.why:  # "Where is it? Point."
            heard = self.mentioned[: draft.heard]
            known = next((n for n in reversed(heard) if (n.kind and not n.is_vague) or n.place), None)
            place = known if known is not None and known.place else None
            nouns = [known] if known is not None and known.kind else nouns
        if skill in ("wipe", "look", "point") and place is None and nouns and not nouns[0].kind:
            place = next((n for n in nouns if n.place), None)
        relation = draft.relation
        if place is not None and place.place and skill == "place" and relation not in ("in", "on", "beside"):
            relation = "in" if place.place in INSIDE else "on"
        if skill == "wipe" and place is not None:
            nouns = [noun for noun in nouns if noun.kind != "sponge"]  # what it is wiped with
        things = tuple(dict.fromkeys(_reference(n, draft.source) for n in nouns if n.kind))
        excepts = self._exceptions(draft, things)
        has_relation = skill == "place" or (skill == "drive" and relation == "beside")
        where = place.place if place is not None else ""
        order = Order(skill, things, excepts, where, relation if has_relation else "")
        before, here = self.before.mentioned, self.mentioned[len(self.before.mentioned) :]
        is_at_thing = any(one.kind for one in before[-2:]) and not any(one.place for one in here)
        if words := _relative_place(draft.clause, order, is_at_thing=is_at_thing):
            placed = Order("place", things[: -1 if len(things) > 1 else None], excepts)  # the last one is the mark
            return placed, ("refuse" if draft.refused else "ask", "relative", words)
        if draft.refused:
            return order, ("refuse", draft.refused, draft.what)
        for noun in (*nouns, *([place] if place is not None else ()), *draft.excepts):
            if noun.unknown:
                return order, ("refuse", "place" if noun is place else "kind", noun.unknown)
        if skill and skill not in world.skills and skill != "stop":
            return order, ("refuse", "skill", draft.clause.word if draft.clause.verb != "want" else skill)
        if draft.why:
            return order, ("ask", draft.why, draft.what)
        if wrong:
            return order, ("ask", *wrong)
        if place is not None and place.place and (place.is_other or place.is_vague or place.count != 1):
            return order, ("ask", "which_place", place.place)  # "on the other shelf", "on each shelf"
        if word := self._unaccounted(draft, order):
            return order, ("ask", "words", word)
        return order, self._missing(draft, order, place)

    def _unaccounted(self, draft: _Draft, order: Order) -> str:
        """What stood beside the verb and is no part of the order: nobody knows what it changes."""
        clause = draft.clause
        modified = [one.modifier for one in (*draft.nouns, *draft.excepts, draft.place) if one and one.modifier]
        if modified:
            return modified[0]
        if order.things and (order.skill == "drive" or (order.skill == "wipe" and order.place)):
            return _words_of(order.things[0])  # is about a place alone
        if order.place and order.skill in ("hand_over", "take", "pick", "open", "close"):
            return order.place  # goes nowhere
        there = [(relation, noun) for relation, noun in clause.targets if noun is not None]
        targets = [(r, one) for r, one in there if one.kind or one.place or one.unknown or (r == "to" and one.owner)]
        if order.skill in ("wipe", "rinse"):
            return next((noun.unknown for r, noun in targets if noun.unknown and r in ("to", "in", "on", "beside")), "")
        if order.skill == "look" and clause.to_me and clause.verb == "look":
            return "me"
        if order.skill in ("nod", "wait", "retreat"):
            return next((_name(noun) for r, noun in targets if r != "from"), "")
        if order.skill in ("pick", "hand_over", "take", "put_back", "open", "close", "point", "look"):
            used = {order.place, draft.source, *(thing.label for thing in order.things)}
            for relation, noun in targets:
                if relation in ("in", "on") and noun.place and not noun.kind:
                    continue  # where it is now
                if _name(noun) not in used or relation in ("other", "beside"):
                    return _name(noun)
        return ""

    def _missing(self, draft: _Draft, order: Order, place: Noun | None) -> tuple[str, str, str] | None:
        skill, world = order.skill, self.world
        is_at_place = skill in ("look", "point") and not order.place
        needs_thing = is_at_place or not (skill in world.aimless or skill in SETS["about_nothing"])
        if needs_thing and not order.things:
            return "ask", "which", ""
        if skill in ("place", "wipe", "drive") and not order.place:
            return "ask", "where", place.kind if place is not None and skill == "place" else ""
        for thing in order.things:
            if any(_is_part(other, thing) or _is_one_of(other, thing) for other in order.things):
                return "ask", "contradiction", _words_of(thing)  # "Wash all but the blue one. And the red one."
            barred = [one for one in (*self.before.protected, *self._intent("do").protected) if _is_barred(thing, one)]
            barred = [one for one in barred if not self._is_released(one)]
            if barred and thing.count != ALL and skill != "put_back":  # that leaves it where it was
                is_new = not any(_is_barred(thing, one) for one in self.before.protected)
                return "ask", "contradiction" if is_new else "protected", _words_of(thing)
            is_barred = thing.count == ALL and any(_is_same(thing, one) for one in barred)
            if is_barred or any(_is_whole(thing, one) for one in order.excluding):
                return "ask", "contradiction", _words_of(thing)
        if order.place in world.waste and skill == "place" and order.relation == "in":
            many = [thing for thing in order.things if thing.count == ALL and thing.label not in DISPOSABLE]
            if many or any(thing.label == "cookie jar" for thing in order.things):
                return "ask", "waste", _words_of((many or list(order.things))[0])
        return None

    def _things(self, draft: _Draft) -> tuple[list[Noun], tuple[str, str] | None]:
        found: list[Noun] = []
        wrong: tuple[str, str] | None = None
        for noun in draft.nouns:
            if noun.place and not noun.kind and draft.skill not in ("wipe", "look", "point", "drive", "rinse"):
                wrong = wrong or ("which", noun.place)
                continue
            if noun.owner and noun.kind:
                known = self._owned(noun)
                wrong = wrong or (("owner", noun.owner) if known is None else None)
                noun = known or noun
            elif noun.pronoun or (not noun.kind and not noun.unknown and not noun.place):
                meant = self._meant(noun, draft)
                found += meant
                dark = next((n.quality for n in meant if n.quality and n.count not in (1, "all", "both")), "")
                wrong = wrong or (("words", dark) if dark else None)  # "Are there clean cups? Bring me two."
                if not meant:
                    wrong = wrong or ("which", noun.pronoun)
                    is_told = noun.is_plural or noun.is_other or noun.is_vague or noun.quality or noun.colour
                    self.unnamed += [Unnamed()] if noun.count == 1 and not is_told else []
                continue
            if noun.count == 0:
                wrong = wrong or ("words", "zero")
            if noun.is_vague or (noun.is_other and noun.count == 1 and not noun.colour):
                wrong = wrong or ("which", noun.kind)
            if noun.quality and (noun.count == "all" or not noun.is_definite):
                wrong = wrong or ("words", noun.quality)  # nobody here can tell a clean cup
            if noun.is_other and noun.count == "all" and noun.kind and not noun.colour:
                told = [one for one in self.mentioned if one.kind == noun.kind and one.colour]
                draft.excepts += told[-1:]  # "The green glass is mine. Put the other glasses on the tray."
            if noun.kind == "fruit" or noun.kind in self.parser.lexicon.groups:
                noun = replace(noun, kind="fruit")
            found.append(noun)
        if any(noun.count == "all" for noun in found) and not all(noun.count == "all" for noun in found):
            found = [replace(noun, count="all") if noun.is_plural else noun for noun in found]
        return found, wrong

    def _meant(self, noun: Noun, draft: _Draft) -> list[Noun]:
        """What a pronoun or "the other one" means; [] where nobody can tell."""
        if noun.is_other or noun.is_vague:
            return []
        wants_place = draft.skill in ("wipe", "drive")
        last = self.before.orders[-1].things if self.before.orders and not self._mentioned_here() else ()
        if noun.count == "both" and len(last) == 2:
            return [replace(_noun(one), count="both") for one in last]
        if noun.is_plural and len(draft.together) > 1:
            return draft.together
        if noun.pronoun == "it" and len(set(self.subjects)) > 1 and not self._follows(draft):
            return []  # "The cup is dirty. The plate is not. Wash it."
        heard = self.mentioned[: draft.heard]
        told = {(one.kind, one.colour) for one in heard[len(self.before.mentioned) :] if one.kind}
        if noun.quality and (len(told) > 1 or self.remarked > 1):
            return []  # "The blue cup is clean, the red one is not. Wash the dirty one."
        pair = heard[-2:] if noun.count == "both" else []
        if len({one.kind for one in pair if one.kind and one.count == 1}) == 2:
            return pair  # "... between the apple and the banana. Bring me both."
        here = {one.kind for one in heard[len(self.before.mentioned) :] if one.count == "all" and one.kind}
        if noun.pronoun in ("them", "those", "these") and len(here) > 1 and not self._follows(draft):
            return []  # "The bowls are dirty, the cups are clean. Wash them."
        if draft.skill in ("look", "point") and noun.pronoun:
            for known in reversed(heard):
                if known.place or (known.kind and not known.is_vague):
                    return [known]
        known_noun = self._antecedent(noun, wants_place=wants_place, draft=draft)
        if known_noun is None or (known_noun.kind and not _agrees(noun, known_noun)):
            return []
        if wants_place:
            draft.place = known_noun
            return [known_noun]
        is_counted = noun.count != 1 or (noun.colour and not noun.pronoun)
        count = noun.count if is_counted else known_noun.count
        owned = self._owned(known_noun) or known_noun
        return [owned if known_noun.owner else replace(known_noun, count=count, is_vague=False)]

    def _follows(self, draft: _Draft) -> bool:
        return bool(self.drafts) and self.drafts[0] is not draft

    def _mentioned_here(self) -> bool:
        return len(self.mentioned) > len(self.before.mentioned)

    def _owned(self, noun: Noun) -> Noun | None:
        who = {"me": "my"}.get(noun.owner, noun.owner)
        for owner, thing in reversed((*self.before.owners, *self.owners)):
            if owner == who and thing.label == noun.kind and (not noun.colour or noun.colour == thing.colour):
                return replace(noun, colour=thing.colour, owner="")
        return replace(noun, owner="") if noun.colour and who in ("my", "your") else None

    def _exceptions(self, draft: _Draft, things: tuple[Reference, ...]) -> tuple[Reference, ...]:
        first = things[0].label if things else ""
        kinds = tuple(dict.fromkeys(one.label for one in things)) or (first,)
        is_shown = any(_DEMONSTRATIVE.search(" ".join(one.words)) for one in self.told)
        if is_shown and any(one.count != 1 for one in things):
            known = next((one for one in reversed(self.mentioned) if one.kind == first and one.colour), None)
            bare = [one for one in draft.excepts if replace(one, is_definite=False, is_offered=False) == Noun()]
            if bare and known is None:
                self.unnamed.append(Unnamed(label=first))  # "all cups but that one"
            draft.excepts = [one for one in draft.excepts if one not in bare] + ([known] if bare and known else [])
        nouns = []
        for noun in draft.excepts:
            is_bare = not (noun.kind or noun.unknown or noun.pronoun)
            nouns += [replace(noun, kind=kind) for kind in kinds] if is_bare else [noun]
        found = [replace_count(_reference(n)) for n in self._resolved(nouns) if n.kind or n.pronoun]
        own = [replace_count(_reference(n)) for n in self._resolved(self.protected) if n.kind and not n.is_other]
        labels = {one.label for one in found}
        own = [one for one in own if one.label in labels or not any(_is_same(one, thing) for thing in things)]
        general = [thing for thing in things if thing.count == ALL]
        earlier = [one for one in self.before.protected if any(_is_barred(thing, one) for thing in general)]
        earlier = [replace_count(one) for one in earlier if not self._is_released(one)]
        return tuple(dict.fromkeys([*found, *own, *earlier]))

    def _is_released(self, one: Reference) -> bool:
        return any(_fits(one, _reference(noun)) for noun in self._resolved(self.released) if noun.kind)


_NUMBERS = [[Noun(count=number)] for number in range(2, 21)]
_ADDITION = re.compile(
    r"^(?:(?:oh|well|yes|okay|ok|please|right|ah|no|wait|thanks|thank you|good|great|perfect|fine)\W+)*"
    r"(?:(?:and|also|plus)\b(?! (?:leave|keep|spare))|(?:now|next|then) (?:the|my|that|this)\b(?! (?:one|ones)\b))"
    r"|\b(?:too|as well|in addition|on top of that)\s*(?:please|robot|thanks|thank you|then|now)?\s*(?:[,.;!?]|$)"
    r"|,\s*(?:please\s*)?\s*(?:too|as well)\b|\balso\b|while you are at it|while you're at it",
    re.IGNORECASE,
)


_OPENING = re.compile(r"\s*(?:(?:no|okay|ok|please|and|sorry)\W+)*(only|just|first)\b", re.IGNORECASE)
"""What makes a sentence without a verb a change of the last order."""
_LIKES = re.compile(r"(?:and |but |oh |well )*i (?:really |do |also )*(?:like|love|adore|prefer|admire)\b")
"""What somebody likes changes nothing."""
_BY_SPEAKER = re.compile(
    r"(?:no |but |and |so )*i (?:(?:will|am going to|shall|can|would rather|want to|have to|am) )?"
    r"(?:do|doing|take|taking|handle|handling|bring|bringing|carry|carrying|see to|put|putting|clear|clean|wash)\b"
    r"(?! not\b)"
)
"""What the speaker does, and the robot need not."""
_TURN = re.compile(
    r"(?P<join>[,;.!?]\s*(?:(?:and|but|then|only|just) )*(?:please )?(?:with |leav(?:e|ing) |sav(?:e|ing) |do |take )?"
    r"|\b(?:and|but|with) (?:do |take )?)"
    r"(?:(?P<with>(?:start|begin)(?:ning|ing)?|(?:finish|end)(?:ing)?(?: up| off)?) (?:with|on) (?P<named>[a-z ]+?)"
    r"|(?P<what>[a-z ]+?)(?: (?:goes|comes|going|coming|can go|should go)(?: (?:in|on))?)?"
    r" (?:(?:(?:until|till|for|to|at the) )?(?P<turn>first|last|end)(?: of all)?"
    r"|(?P<before>before|after) (?:the|my|his|her|that|this) [a-z ]+?))"
    r"(?=\s*(?:,? ?please|,? ?okay)?\s*(?:[,.;!?]|$| and | but ))",
    re.IGNORECASE,
)
"""What comes first or last of what is ordered beside it: "..., the green one last", "..., starting with the red"."""
_IN_TURN = re.compile(r"\bfirst\b.*\b(?:then|after that|and next)\b", re.IGNORECASE)


_IT_ALL = re.compile(r"([^.!?;,]*)\b(?:it all|all of (?:it|this|that)|the (?:whole )?lot)\b", re.I)
_AFTERWARDS = re.compile(
    r"(?:(?<=\band )|(?<=\bthen )|(?<=\bbut )|(?<![a-z] ))\b(?:when|once|after|as soon as) "
    r"(?:you(?:'re| are|'ve| have)|that(?:'s| is)|it(?:'s| is)|this is)"
    r"(?: all)? (?:done|finished)(?: (?:with )?(?:that|it|this|them|so))?,?(?= [a-z])",
    re.I,
)
"""What only says that a deed comes behind another."""
_IN_THAT_ORDER = re.compile(r",? (?:exactly )?in (?:that|this|the given) order\b", re.IGNORECASE)


def adds(text: str) -> bool:
    """Whether the words add something to what was said before: "and the ball too"."""
    return _ADDITION.search(text) is not None


def replace_count(reference: Reference) -> Reference:
    """As an exception: which ones, not how many."""
    source = reference.source if reference.label == "*" else ""
    return Reference(label=reference.label, colour=reference.colour, source=source)


def _in_two_places(orders: Sequence[Order]) -> Reference | None:
    """All of a kind that is to be in two places: "the clean mugs on the shelf and the dirty ones in the sink"."""
    for number, order in enumerate(orders):
        for other in orders[number + 1 :]:
            if order.skill == other.skill == "place" and order.place != other.place:
                both = [one for one in order.things if (one.count == ALL or one.is_any) and one in other.things]
                if both:
                    return both[0]
    return None


def _in_turn(orders: Sequence[Order]) -> tuple[Order, ...]:
    """An order for each thing, as they were named one after the other."""
    each = [(order, (thing,)) for order in orders for thing in order.things or (None,)]
    return tuple(
        order if thing is None else msgspec.structs.replace(order, things=(thing,)) for order, (thing,) in each
    )


def _without(order: Order, taken: Sequence[Reference]) -> Order:
    """The order, with what of all that it is about somebody does themselves left out."""
    return _but(order, [one for one in taken if any(t.count == ALL and _is_barred(t, one) for t in order.things)])


def _but(order: Order, left_out: Sequence[Reference]) -> Order:
    """The order with more exceptions."""
    excluding = tuple(dict.fromkeys((*order.excluding, *map(replace_count, left_out))))
    return msgspec.structs.replace(order, excluding=excluding)


def _is_barred(thing: Reference, protected: Reference) -> bool:
    """Whether the order's thing is, or may take in, what is to be left alone."""
    if "*" not in (thing.label, protected.label) and thing.label != protected.label:
        return False
    return not thing.colour or not protected.colour or thing.colour == protected.colour


def _is_part(one: Reference, whole: Reference) -> bool:
    """Whether all of a kind take it in: the red cup is one of the cups, an orange is fruit."""
    is_named = one.label == whole.label and bool(one.colour)
    is_kind = whole.label in ("*", *lexicon_file().groups) and one.label != whole.label
    is_kind = is_kind and one.label in lexicon_file().groups.get(whole.label, (one.label,))
    return whole.count == ALL and (is_named or is_kind) and not (whole.colour or whole.source)


def _agrees(pronoun: Noun, known: Noun) -> bool:
    """Whether they are one, or both several: "it" is no cups, "them" is no cup."""
    is_several = known.is_plural or known.count != 1
    if pronoun.pronoun in ("it", "this", "that"):
        return not is_several or known.kind == "fruit"
    return is_several or pronoun.count != 1 or pronoun.pronoun not in ("them", "those", "these")


def _is_one_of(one: Reference, other: Reference) -> bool:
    """ "The white glass" and "a glass" in one order: nobody knows whether these are two."""
    return one.label == other.label and bool(one.colour) and not other.colour and other.count != ALL


def _is_whole(thing: Reference, left_out: Reference) -> bool:
    """Whether an exception takes all of it out."""
    return thing.label == left_out.label and left_out.colour in ("", thing.colour) and not left_out.source


def _is_narrower(one: Noun, other: Noun) -> bool:
    """Whether it says more of the same: "the red one" of "the cup"."""
    return one.kind in ("", other.kind) and bool(one.colour) and not other.colour and bool(other.kind)


def _where_it_is(clause: Clause) -> str:
    """The place of "the one on the tray"; "" where the clause says more, or something else."""
    noun = clause.nouns[0] if len(clause.nouns) == 1 == len(clause.targets) else None
    if noun is None or noun.kind or noun.colour or noun.unknown or noun.pronoun or noun.is_other or clause.nots:
        return ""
    relation, place = clause.targets[0]
    return place.place if place is not None and relation in ("in", "on", "from") and noun.count == 1 else ""


def _relative_place(clause: Clause, order: Order, *, is_at_thing: bool) -> str:
    """The words that say where it is to go in relation to another thing or a person, "" of none: no deed does that."""
    said, skill = " ".join(clause.words), order.skill
    nouns = [(relation, noun) for relation, noun in clause.targets if noun is not None]
    is_at_place = any(one.place for relation, one in nouns if relation != "to")
    if skill not in ("place", "move", "hand_over") or clause.verb in ("hand_over", "give") or is_at_place:
        return ""
    ways = [_CLOSER]
    is_beside = any(relation == "beside" and (noun.kind or (noun.pronoun and is_at_thing)) for relation, noun in nouns)
    if skill != "hand_over" and (is_beside or not order.place):
        ways += [_RELATIVE, _BESIDE] if is_beside else [_RELATIVE]
    found = next((one for way in ways if (one := way.search(said))), None)
    return said[found.start() :] if found is not None else ""


def _is_done_by_another(words: Sequence[str]) -> bool:
    """ "Tom will do it", "I did that"; not "you can do it"."""
    does = any(words[k] in ("do", "did") and words[k + 1 : k + 2] in (("it",), ("that",)) for k in range(1, len(words)))
    return does and "you" not in words and "not" not in words


def _has_content(clause: Clause) -> bool:
    return bool(
        clause.type != "fragment" or clause.nouns or clause.targets or clause.excepts or clause.nots or clause.adverbs
        or clause.particles or clause.to_me or clause.from_me
    )  # fmt: skip


_DETERMINERS = (("the",), ("my",), ("that",), ("this",), ("both",), ("all",))


def only_names(clause: Clause) -> bool:
    """Whether it names things, and says nothing of them."""
    is_bare = clause.type == "fragment" and not (clause.targets or clause.excepts or clause.nots or clause.is_repair)
    return is_bare and bool(clause.nouns) and all(noun.kind not in ("", "*") or noun.colour for noun in clause.nouns)


def _noun(reference: Reference) -> Noun:
    return Noun(
        kind=reference.label,
        colour=reference.colour,
        count="all" if reference.count == ALL else reference.count,
        source=reference.source,
        is_definite=not reference.is_any,
    )


def _is_place(noun: Noun) -> bool:
    return bool(noun.place) and not noun.kind


def _same_noun(noun: Noun, others: Sequence[Noun]) -> bool:
    return any(_is_same_noun(noun, other) for other in others)


def _is_same_noun(one: Noun, other: Noun) -> bool:
    if (one.place or other.place) and not (one.kind or other.kind):
        return one.place == other.place
    if one.place and not one.kind:
        return False
    return (one.kind == other.kind or not one.kind) and (one.colour == other.colour or not one.colour)


def _is_taken_back(noun: Noun, gone: Noun) -> bool:
    """Whether "not the red one" means it."""
    return _is_same_noun(noun, gone) or (bool(gone.colour) and _is_same_noun(gone, noun))


def _name(noun: Noun | None) -> str:
    return (noun.unknown or noun.kind or noun.place) if noun is not None else ""


def _words_of(reference: Reference) -> str:
    return f"{reference.colour} {reference.label}".strip()


_HAND = re.compile(
    r"\byou (?:are holding|hold|have|are carrying|carry|took|have taken)\b|\b(?:in|from) your (?:hand|gripper)\b"
)
_DEMONSTRATIVE = re.compile(r"\b(?:this|that) one\b")
_NO_MATTER = (
    r"(?:whichever|either|any)(?: one)?(?: of (?:them|those|these|the \w+))?(?: you (?:like|want|prefer|can|find))?"
    r"(?: (?:will|would) do| is (?:fine|ok|okay)|'s (?:fine|ok|okay))?|you (?:choose|pick|decide)|(?:it's )?up to you"
    r"|your (?:choice|call|pick)|surprise me|no preference|(?:it's |it is )?all the same(?: to me)?"
    r"|i (?:really )?(?:do not|don't) (?:care|mind)(?: which(?: one)?)?|(?:i'm|i am) not (?:fussed|bothered|fussy)"
    r"|(?:it )?(?:does not|doesn't) matter(?: which(?: one)?)?"
)
ANY_OF_THEM = re.compile(
    rf"(?:(?:oh|well|hm|um|ah|just|honestly|not sure|no idea|i (?:do not|don't) know)\W+)*"
    rf"(?:{_NO_MATTER})(?:\W+(?:{_NO_MATTER}|really|please|thanks))*$"
)
"""Who answers so does not mind which one."""
_SHOWS = {
    **dict.fromkeys(("that one", "this one", "that", "this"), Noun(is_definite=True)),
    **dict.fromkeys(("both", "both of them"), Noun(count="both", is_plural=True)),
}
"""Words that may say yes, and what they are an answer to "Which one?" as."""
