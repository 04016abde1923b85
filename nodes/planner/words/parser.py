"""From an English utterance to its clauses: what each one orders, forbids, states or asks. Pure functions of the words.

A clause keeps what was said: nouns with kind, colour, number and owner, places with their relation, exceptions, and
every word that nothing in the lexicon explains. What it means in a conversation is decided in `understanding`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Literal

from nodes.planner.orders import OrderVocabulary
from nodes.planner.words.lexicon import SETS, WORDS, Lexicon, lexicon_file

ClauseType = Literal[
    "order", "fragment", "statement", "question", "protect", "release", "owner", "social", "cancel", "unsure", "yes",
    "no", "wrong", "unknown",
]  # fmt: skip
Count = int | Literal["all", "both"]

_WORD = re.compile(r"[^\W\d_]+(?:['’\-][^\W\d_]+)*|\d+|\.\.\.|[.,!?;:…—–\"“”«»]")
_ENDS = frozenset(".,!?;:…—–") | {"..."}
_QUOTES = frozenset('"“”«»')
WHOLE_SEGMENTS: dict[str, ClauseType] = {
    "greetings": "social", "thanks": "social", "cancels": "cancel", "interjections": "statement", "unsure": "unsure",
    "apologies": "social", "consents": "release",
}  # fmt: skip
LONGEST = 120
"""Words of an utterance that are read; what comes after them is not understood."""


@dataclass(frozen=True, slots=True)
class Noun:
    """A thing or a place as it was named."""

    kind: str = ""  # "" for "one", "*" for anything
    place: str = ""
    colour: str = ""
    count: Count = 1
    owner: str = ""
    source: str = ""  # the place where it is now
    pronoun: str = ""
    unknown: str = ""  # the word that no table has
    is_plural: bool = False
    is_definite: bool = False
    is_other: bool = False
    is_vague: bool = False  # "some of the", "that thing"
    is_offered: bool = False  # "this cup"
    is_bare: bool = False  # the name alone: "bowl"
    modifier: str = ""  # words before the name that no table has: "biggest"
    quality: str = ""  # how it is, where that says which: "a clean cup", "the dirty plates"


@dataclass(slots=True)
class Clause:
    """One clause."""

    type: ClauseType
    verb: str = ""
    word: str = ""  # the verb as it was said
    is_negated: bool = False
    is_repair: bool = False
    is_first: bool = False  # of its sentence
    is_question: bool = False
    is_request: bool = False  # "could you ..."
    nouns: list[Noun] = field(default_factory=list)
    excepts: list[Noun] = field(default_factory=list)
    nots: list[Noun] = field(default_factory=list)  # "not the green one"
    targets: list[tuple[str, Noun | None]] = field(default_factory=list)
    particles: list[str] = field(default_factory=list)
    adverbs: list[str] = field(default_factory=list)
    to_me: bool = False
    from_me: bool = False
    has_choice: bool = False  # "this or that"
    is_same: bool = False  # "do the same with"
    condition: str = ""  # the words that make it depend on something, or put it off
    is_hedged: bool = False  # "or maybe two"
    unread: list[str] = field(default_factory=list)  # what nothing explains behind the last noun
    about: str = ""  # "anything about the box"
    left: list[str] = field(default_factory=list)
    denies: bool = False  # "not on the tray"
    ends_excepting: bool = False  # its last words are an exception, or announce one: "except, well, ..."
    words: tuple[str, ...] = ()  # as they were said


@dataclass(frozen=True, slots=True)
class PunctuatedWords:
    """The words between two punctuation marks, and the mark behind them."""

    words: tuple[str, ...]
    end: str
    is_named: bool  # begins with a capital letter that a name may have
    is_quoted: bool = False


def segments_of(text: str) -> list[PunctuatedWords]:
    """The utterance in segments, contractions written out."""
    table = lexicon_file().contractions
    words: list[str] = []
    found: list[PunctuatedWords] = []
    raw_first = ""
    text = re.sub(r"([aeiou])\1{2,}", r"\1", text)  # "Pleeease"
    tokens = _WORD.findall(text.replace("’", "'").replace(" - ", " – "))[:LONGEST]
    if len(tokens) > 1 and tokens[0] in _QUOTES and tokens[-1] in _QUOTES and not _QUOTES.intersection(tokens[1:-1]):
        tokens = tokens[1:-1]  # all of it is quoted: how it was written down
    is_quoted = False
    for number, token in enumerate(tokens):
        if token in _QUOTES:
            if words:
                found.append(PunctuatedWords(tuple(words), ",", raw_first[:1].isupper(), is_quoted))
            words, raw_first, is_quoted = [], "", not is_quoted
            continue
        if token in _ENDS:
            if words:
                found.append(PunctuatedWords(tuple(words), token, raw_first[:1].isupper(), is_quoted))
            elif found and token in "?!":
                found[-1] = replace(found[-1], end=token)
            words, raw_first = [], ""
            continue
        raw_first = raw_first or token
        words += _written_out(token.lower(), tokens[number + 1].lower() if number + 1 < len(tokens) else "", table)
    if words:
        found.append(PunctuatedWords(tuple(words), "", raw_first[:1].isupper(), is_quoted))
    return found


def _written_out(token: str, behind: str, table: dict[str, str]) -> list[str]:
    if token in table:
        return table[token].split()
    for ending, word in (("'m", "am"), ("'re", "are"), ("'ve", "have"), ("'ll", "will"), ("'d", "would")):
        if token.endswith(ending):
            return [token[: -len(ending)], word]
    if token.endswith("'s"):
        base = token[:-2]
        is_verb = base in SETS["before_s"] or behind in SETS["behind_is"]
        return [base, "is"] if is_verb or behind == "" else [base, "'s"]
    return [token]


@dataclass(slots=True)
class _ClauseBegin:
    """Where a clause begins, as its readings see it."""

    words: list[str]
    i: int
    j: int  # past a negation
    is_negated: bool
    is_question: bool
    is_first: bool  # of its segment


@dataclass(frozen=True, slots=True)
class _Subject:
    """What a sentence is about, and where its verb begins."""

    words: list[str]
    i: int
    j: int  # of the verb
    nouns: list[Noun]
    excepts: list[Noun]
    has_choice: bool
    is_negated: bool


@dataclass(slots=True)
class _Phrase:
    """A noun phrase while it is read."""

    words: list[str]
    start: int
    i: int  # how far it is read
    noun: Noun
    is_det: bool = False  # it has a determiner
    has_head_words: bool = False
    colours: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    alone: str = ""  # the last adjective: "the ugly one"

    @property
    def is_begun(self) -> bool:
        """Whether words before this one say that a name comes."""
        return self.is_det or self.i > self.start

    def take(self, n: int, **known: Any) -> None:
        """Past so many words, which say this."""
        self.noun, self.i = replace(self.noun, **known), self.i + n


_SEEN = (
    *(("you", "see"), ("you", "find"), ("you", "can", "see"), ("you", "can", "find"), ("that", "you", "see")),
    *(("you", "are", "holding"), ("you", "have"), ("you", "hold"), ("i", "mean")),
)
"""What says no more of a thing behind it."""
_PAST = frozenset({"did", "have", "has", "had", "was", "were"})
_NOW = frozenset({"is", "are", "does"})
_THAT = frozenset({"it", "that", "this", "them"})
_TAG = frozenset({"did", "have", "had", "not", "you"})
"""What a question about a deed or a state begins with, what it may point back to, and all the words of a bare one."""
_AUXILIARIES = [[word] for word in WORDS["auxiliaries"]]
_SET_PHRASES: dict[str, ClauseType] = {
    "cancels": "cancel", "unsure": "unsure", "wrong": "wrong", "greetings": "social", "thanks": "social",
    "yes": "yes", "no": "no",
}  # fmt: skip
_ABOUT_IT = ("about", "and", "then", "to", "for")
_TO_WHOM = ("robot", "so", "for", "very", "to", "there", "everyone", "buddy", "with")
_GOES_ON_BEHIND = {"cancels": _ABOUT_IT, "unsure": _ABOUT_IT, "greetings": _TO_WHOM, "thanks": _TO_WHOM}
"""What may stand behind a set phrase, and says no more than the phrase does."""


def _may_i(words: Sequence[str], i: int) -> bool:
    return words[i] in ("may", "can", "could", "might") and words[i + 1] == "i"


class Parser:
    """Parses utterances with one lexicon."""

    def __init__(self, lexicon: Lexicon) -> None:
        self.lexicon = lexicon

    def clauses(self, text: str) -> list[Clause]:
        """All clauses of the utterance, in order."""
        found: list[Clause] = []
        spelled = self.lexicon.spelled
        segments = [replace(one, words=tuple(map(spelled, one.words))) for one in segments_of(text)]
        begun = 0  # where the clauses of this sentence begin
        for number, segment in enumerate(segments):
            is_first = number == 0 or segments[number - 1].end in (".", "!", "?")
            begun = len(found) if is_first else begun
            has_more = any(not self._is_manners(one.words) for one in segments[number + 1 :])
            if self._is_to_another(segment, is_first=is_first, has_more=has_more):
                # somebody else is spoken to, up to the end of the utterance
                return [*found, Clause("statement", word="another")]
            if found and found[-1].type == "statement" and found[-1].word == "reported" and not is_first:
                continue
            words = list(segment.words)
            if len(segments) > 1 and self._says_nothing(segment, is_last=number + 1 == len(segments)):
                if words[0] == "if":  # "An apple, if you would be so kind."
                    found.append(Clause("fragment", word="please"))
                continue
            if segment.is_quoted:
                found.append(Clause("statement", word="quoted", left=words))
                continue
            if not is_first and self._is_report(words):  # "Put it away, she always says."
                found[begun:] = [Clause("statement", word="reported")]
                continue
            if not is_first and self.lexicon.has("stays", words, 0) and self._are_names(found[begun:]):
                named = [noun for clause in found[begun:] for noun in clause.nouns]
                colour = next((noun.colour for noun in named if noun.colour), "")
                found[begun:] = [Clause("protect", nouns=[replace(named[0], colour=colour, owner="")])]
                continue  # "My mug, the yellow one, stays here."
            i, _ = self._openers(words, 0)
            others = (*segments[:number], *segments[number + 1 :])
            is_alone = not any(self._without_openers(other.words) for other in others)
            if is_alone and self.lexicon.has("moments", words, i) == len(words) - i > 0:
                return [Clause("order", verb="wait", word="wait")]
            is_repair = bool(found) and not is_first and self._openers(words, 0) == (len(words), True)
            is_end = segment.end in (".", "!", "?", "") or self.lexicon.has("repair", words, 0) == len(words) > 1
            if is_repair and is_end and (segment.end != "," or (found[-1].type == "fragment" and words[0] == "i")):
                found[-1].is_repair = True  # "The black one, I mean."
                continue
            new = self._segment(words, is_question=_ends_with(segments, number) == "?")
            for clause in new[:1]:
                clause.is_first = is_first
                clause.is_repair = clause.is_repair and not (is_first and self._hesitates(words))
                if number and segments[number - 1].end in ("...", "…", "—", "–") and clause.type == "fragment":
                    clause.is_repair = True
            found += new
        return _asked_of_what_is_so(found)

    def _says_nothing(self, segment: PunctuatedWords, *, is_last: bool) -> bool:
        """Whether it only asks to be heard: "sorry to be a pain", "look, ..."."""
        words = segment.words
        is_call = words in (("look",), ("see",)) and segment.end == "," and not is_last
        return is_call or self.lexicon.has("apologies", words, 0) == len(words) > 0

    def _without_openers(self, words: Sequence[str]) -> list[str]:
        """What is left of a segment without courtesy."""
        left = list(words)
        if self._is_all_tails(left, 0) or self.lexicon.has("courtesy", left, 0) == len(left):
            return []
        return left[self._openers(left, 0)[0] :]

    def _is_report(self, words: list[str]) -> bool:
        """Nothing but who said it: "he said", "my mother always says"."""
        n = len(words)
        if not 1 < n <= 5:
            return False
        if self.lexicon.has("reports", words, 0) and words[1] not in ("i", "we", "you", "me", "us", "to"):
            return True  # "..., said the old man"
        is_who = n == 2 or words[0] in (*WORDS["subjects"], *WORDS["owners"], "the")
        is_who = is_who and words[0] not in ("i", "we", "you")
        return is_who and any(self.lexicon.has("reports", words, k) == n - k for k in range(1, n))

    def _are_names(self, clauses: Sequence[Clause]) -> bool:
        """Whether they name one thing, and what colour it has."""
        nouns = [noun for clause in clauses for noun in clause.nouns]
        is_bare = all(clause.type == "fragment" and len(clause.nouns) == 1 and not clause.targets for clause in clauses)
        return is_bare and bool(nouns) and bool(nouns[0].kind) and not any(noun.kind for noun in nouns[1:])

    def _hesitates(self, words: list[str]) -> bool:
        """Whether they begin with a hesitation ("er", "excuse me"), and no correction behind it."""
        i = 0
        while n := self.lexicon.has("hesitations", words, i):
            i += n
        return i > 0 and not (i < len(words) and self._openers(words[i:], 0)[1])

    def announces_repair(self, words: Sequence[str]) -> bool:
        """Whether they say that what was said is to be corrected: "I have changed my mind"."""
        return any(self.lexicon.has("repair", words, k) for k in range(len(words)))

    def tells_of_saying(self, words: Sequence[str]) -> bool:
        """Whether they put what was said into somebody's mouth: "that is what she said", "was what he wanted"."""
        at = words.index("what") if "what" in words[:3] else -1
        return at > 0 and any(self.lexicon.has("reports", words, k) for k in range(at, len(words)))

    def _is_manners(self, words: Sequence[str]) -> bool:
        """ "Please", "thanks": of who asks for something, and calls nobody."""
        return bool(words) and self.lexicon.has("tails", words, 0) == len(words)

    def _is_to_another(self, segment: PunctuatedWords, *, is_first: bool, has_more: bool) -> bool:
        words = segment.words
        is_oh = self.lexicon.has("interjections", words, 0) == len(words)  # "Oh dear"
        words = words[1:] if len(words) == 2 and words[0] in ("hey", "hi", "hello", "oh") else words
        if is_oh or len(words) != 1 or segment.end != "," or not is_first or not has_more:
            return False
        is_known = self.lexicon.is_closed(words[0]) or self.lexicon.known_at(words, 0)
        is_known = is_known or words[0] in ("robot", "stretch")
        return self.lexicon.has("people", words, 0) > 0 or (segment.is_named and not is_known)

    def unheard_in(self, clause: Clause) -> str:
        """The first word of a clause that no table has and that its reading does not keep; "" where there is none."""
        words = clause.words
        kept = {word for noun in (*clause.nouns, *clause.excepts, *clause.nots) for word in _words_kept(noun)}
        kept |= {word for _, noun in clause.targets if noun is not None for word in _words_kept(noun)}
        kept |= {*clause.left, *clause.unread, *clause.word.split(), *clause.about.split(), *clause.condition.split()}
        kept |= SETS["small"]
        is_scoped = clause.nots or clause.excepts or clause.denies
        i = 0
        while i < len(words):
            if i and (words[i] in WORDS["reasons"] or self.lexicon.has("conditions", words, i)):
                return ""  # why, or when: what the clause keeps of it stands in its condition
            if "exception" in words[i:]:
                i = words.index("exception", i)
            n = 1 if words[i] in kept or words[i].isdigit() else self.lexicon.known_at(words, i)
            is_dropped = n == 1 and words[i] in SETS["negations"] and not (is_scoped and words[i] != "never")
            if not n or (is_dropped and not clause.is_negated):
                return words[i]
            i += n
        return ""

    def deed_off(self, clause: Clause) -> str:
        """The verb of what need not be done: "never mind the wiping", "I have wiped it already"; "" of other words."""
        words, said = clause.words, set(clause.words)
        if clause.verb == "leave" and clause.left in (["open"], ["closed"], ["shut"]):
            return "close" if clause.left == ["open"] else "open"  # "No, leave it open."
        is_self = "you" not in said and (words[:1] in (("i",), ("we",)) or bool(said & {"will", "already"}))
        is_told = clause.type == "statement" and clause.word != "reported" and (is_self or bool(said & {"not", "no"}))
        is_off = clause.is_negated or clause.type in ("cancel", "protect") or clause.verb in ("leave", "cancel")
        if not (is_off or clause.nots or is_told):
            return ""
        lexicon = self.lexicon
        is_state = {"is", "are", "was", "were"} & said  # "The table is not clean yet."
        tables = (lexicon.gerunds,) if is_state else (lexicon.verbs, lexicon.gerunds, lexicon.pasts)
        verbs = (table.at(words, k)[1] for k in range(len(words)) for table in tables)
        return next((verb for verb in verbs if verb in SETS["states"]), "")

    # --- segments and clauses

    def _segment(self, words: list[str], *, is_question: bool) -> list[Clause]:
        if (whole := self._whole_segment(words, is_question=is_question)) is not None:
            return [whole]
        words = [word for k, word in enumerate(words) if word != "really" or words[k - 1] not in ("would", "could")]
        if words[:2] in (["instead", "of"], ["rather", "than"]) and self.lexicon.gerunds.at(words, 2)[0]:
            return [Clause("statement", nouns=self._told(words, 2))]  # "Instead of leaving the mug on the table, ..."
        if is_question:
            words = self._unasked(words)
        words, nots = self._uncontrasted(self._uncleft(words))
        if nots and not words:
            return [Clause("fragment", nots=nots)]
        found = self._clauses_of(words, is_question=is_question)
        return [*found, Clause("fragment", nots=nots)] if nots else found

    def _whole_segment(self, words: list[str], *, is_question: bool) -> Clause | None:
        """A segment that one table explains as a whole."""
        for table, kind in WHOLE_SEGMENTS.items():
            if self.lexicon.has(table, words, 0) == len(words) and words != ["sorry"]:
                return Clause(kind, word=" ".join(words))
        polite = self._openers(words, 0)[0]
        if 0 < polite < len(words) and self.lexicon.has("interjections", words, polite) == len(words) - polite:
            return Clause("statement", word=" ".join(words[polite:]))  # "Please be careful."
        n_courtesy = self.lexicon.has("courtesy", words, 0)
        if words == ["listen"] or (n_courtesy == len(words) > 2) or words in (["all", "right"], ["alright"]):
            return Clause("fragment")
        if words[:1] in (["what"], ["how"]) and not is_question and words[1:2] in (["a"], ["an"], ["lovely"], ["nice"]):
            return Clause("statement", word=words[0], nouns=self.named_in(words, 1))  # "What a lovely bowl!"
        return None

    def _unasked(self, words: list[str]) -> list[str]:
        """A question in the order of a statement, where that is what it comes to."""
        if words[:1] in (["could"], ["can"], ["may"], ["might"]):
            k = self._noun(words, 1)[1]
            if k > 1 and words[k : k + 1] == ["go"]:  # "Could the plate go on the shelf?"
                words = [*words[1:k], words[0], *words[k:]]
        is_tagged = words[:1] == ["you"] and words[2:3] == ["not"]
        if is_tagged and (words[1] in ("could", "can") or words[1:4] == ["would", "not", "mind"]):
            words = [words[1], "you", *words[3:]]  # "You couldn't pass me the sponge, could you?"
        return words

    def _clauses_of(self, words: list[str], *, is_question: bool) -> list[Clause]:
        """Clause after clause, each joined to those before it."""
        found: list[Clause] = []
        i, is_repair = self._openers(words, 0)
        is_hedged = self._is_hedged(words, 0, i)
        while i < len(words) or (is_repair and not found):
            begin = i
            clause, i = self._clause(words, i, is_question=is_question, is_first=not found)
            clause.words = tuple(words[begin:i] or words)
            self._join(clause, found, words[begin - 1], is_question=is_question)
            clause.is_repair = clause.is_repair or is_repair
            is_suggested = not found and words[0] != "or" and {"could", "can", "might", "should"}.intersection(words)
            clause.is_hedged = clause.is_hedged or (is_hedged and not is_suggested)
            found.append(clause)
            if i >= len(words):
                break
            before = i
            i, is_repair = self._openers(words, i)
            is_hedged = self._is_hedged(words, before, i)
            if i == begin and i < len(words):
                clause.left.append(words[i])
                i += 1
        return found

    def _join(self, clause: Clause, found: Sequence[Clause], joint: str, *, is_question: bool) -> None:
        """What a clause becomes behind others of its segment; `joint` is the word before it."""
        clause.is_question = clause.is_question or (is_question and clause.type in ("fragment", "order"))
        is_joined = bool(found) and found[-1].is_negated and joint in ("and", "or", "then")
        is_choice = bool(found) and found[-1].type == "order" and joint == "or"
        clause.has_choice = clause.has_choice or (is_choice and clause.type == "order")
        if is_joined and clause.type == "order" and all(noun.pronoun for noun in clause.nouns):
            clause.type = "unsure"  # "Do not take the cup and put it in the sink": is that forbidden, too?
        elif clause.word == "say" and found and {"done", "finished", "ready"}.intersection(clause.words):
            clause.type = "statement"  # "... and tell me when you are done": it says so anyway
        elif clause.type == "question" and not is_question and found and found[-1].type == "order":
            clause.type = "unsure"  # "take the bowl and do you know what"

    def _uncleft(self, words: list[str]) -> list[str]:
        """ "It was the green bowl I meant", or want, as "I meant the green bowl"; "use a sponge to wipe" as "wipe"."""
        if words[:1] in (["it"], ["that"]) and words[1:2] in (["is"], ["was"]):
            j = self._noun(words, 2)[1]
            j += words[j : j + 1] == ["that"]
            n = self.lexicon.has("wants", words, j) or self.lexicon.has("repair", words, j)
            if n and j > 2 and words[j] in ("i", "we"):
                return [*words[j : j + n], *words[2:j], *words[j + n :]]
        if words[:1] in (["go"], ["come"]) and self.lexicon.verbs.at(words, 0)[0] == 1:
            verb = self.lexicon.verbs.at(words, 1)[1]
            is_way = self.lexicon.relations.at(words, 1)[0] or self.lexicon.has("particles", words, 1)
            return words if is_way or verb in ("", "go", "run", "hold") else words[1:]  # "go wash the cup"
        if "where" in words and words[words.index("where") - 1] == "is":  # "The bin is where the can belongs."
            at = words.index("where")
            place, k = self._noun(words, 0)
            n = self.lexicon.has("dues", words, len(words) - 1)
            if n and place is not None and place.place and k == at - 1:
                return [*words[at + 1 : -1], "goes", "to", *words[: at - 1]]
        if words[:1] == ["use"] and "to" in words:
            at = words.index("to")
            is_tool = {"sponge", "cloth", "rag", "towel"}.intersection(words[1:at])
            if is_tool and self.lexicon.verbs.at(words, at + 1)[1] in ("wipe", "clean", "rinse"):
                return words[at + 1 :]
        return words

    def _uncontrasted(self, words: list[str]) -> tuple[list[str], list[Noun]]:
        """Without "instead of the shelf", "rather than the mug" and "not the bottle but", and what these leave out."""
        if "but" in words[1:-1] and "not" in words[:2]:
            at = words.index("but")
            begin = next((k for k in range(1, at) if self._noun(words, k)[1] == at and words[k] != "not"), 0)
            begin = begin - (words[begin - 1] in SETS["articles"]) if begin > 1 else begin
            noun = self._noun(words, begin)[0] if begin else None
            other = self._noun(words, at + 1)[0]
            if noun is not None and other is not None and (noun.kind or noun.colour) and (other.kind or other.colour):
                before = words[2:begin] if words[:2] == ["do", "not"] else words[: begin - 1]
                return [*before, *words[at + 1 :]], [noun]
        for k in range(len(words) - 1):
            n = 2 if words[k : k + 2] in (["instead", "of"], ["rather", "than"]) else 0
            n = n or (1 if words[k] == "than" and {"rather", "prefer"}.intersection(words[:k]) else 0)
            if not n:
                continue
            begin = k + n + self.lexicon.relations.at(words, k + n)[0]
            noun, end = self._noun(words, begin)
            if noun is not None and (end == len(words) or self._is_all_tails(words, end)):
                return [*words[:k], *words[end:]], [noun]
        return words, []

    def _openers(self, words: list[str], i: int) -> tuple[int, bool]:
        """Past courtesy, fillers and words that announce a correction; whether one was announced."""
        is_repair = False
        while i < len(words):
            if n := self.lexicon.has("repair", words, i) or (i == 0 and self._is_no(words)):
                is_repair, i = True, i + n
            elif (n := self.lexicon.has("fillers", words, i)) >= max(1, self.lexicon.verbs.at(words, i)[0]) and (
                i + n == len(words)
                or (not self.lexicon.has("tails", words, i + n) and words[i : i + n] not in (["wait"], ["hold", "on"]))
            ):
                if i + n == len(words) and words[i] in ("wait", "hold", "hang"):
                    return i, is_repair
                is_repair, i = True, i + n
            elif (n := self.lexicon.has("hedges", words, i)) and not self._is_request(words, i):
                i += n
            elif (
                (n := self.lexicon.has("courtesy", words, i))
                and i + n < len(words)
                and self.lexicon.has("times", words, i) <= n  # "next time"
                and self.lexicon.has("thanks", words, i) <= n  # "good job with the cups"
                and not (n > 1 and words[i + n] in WORDS["perceive"])
                and self.lexicon.relations.at(words, i)[0] <= n  # "next to it"
            ):
                if self.lexicon.has("yes", words, i) == len(words) - i or self._is_request(words, i):
                    return i, is_repair
                i += n
            else:
                break
        return i, is_repair

    def _is_no(self, words: list[str]) -> bool:
        """ "No, ..." that announces a correction; not "no need", "no cups on the shelf"."""
        is_no = words[0] in ("no", "nope", "nah") and len(words) > 1
        return is_no and words[1] not in ("one", "need", "matter", "more", "longer") and not self._is_banned(words, 1)

    def _is_banned(self, words: list[str], i: int) -> bool:
        """Whether "no" stands before a bare name: "no cups on the shelf"; not before "no, the sink"."""
        noun, j = self._noun(words, i)
        if noun is None or noun.is_definite or words[i] in (*SETS["articles"], "such") or not (noun.kind or noun.place):
            return False
        return not self.lexicon.verbs.at(words, i)[0] and words[j : j + 1] != ["i"]

    def _is_hedged(self, words: list[str], begin: int, end: int) -> bool:
        """Whether what leads in leaves it open: "or", "maybe"; a correction ("or rather") does not."""
        opening = words[begin:end]
        if any(self.lexicon.has("hedges", opening, k) for k in range(len(opening))):
            return True
        return "or" in opening and not self.announces_repair(opening)

    def _is_request(self, words: list[str], i: int) -> bool:
        return bool(self.lexicon.has("requests", words, i))

    def _clause(self, words: list[str], i: int, *, is_question: bool, is_first: bool) -> tuple[Clause, int]:
        """The clause that begins there, by the first reading that fits, and where the next one begins."""
        if i >= len(words):
            return Clause("fragment", is_repair=True), len(words)
        is_negated, j = self._negation_at(words, i)
        at = _ClauseBegin(words, i, j, is_negated, is_question, is_first)
        readings: tuple[Callable[[_ClauseBegin], tuple[Clause, int] | None], ...] = (
            *(self._set_phrase, self._lone_word, self._banning, self._conditional),
            *(() if is_negated else (self._wished_for, self._request, self._want, self._opinion_or_wish)),
            *(self._asked, self._verb_first, self._forbidden, self._inverted),
            *(lambda at: self._declarative(at.words, at.i), self._by_gerund),
        )
        for reading in readings:
            if (found := reading(at)) is not None:
                return found
        return self._named_or_unknown(at)

    def _negation_at(self, words: list[str], i: int) -> tuple[bool, int]:
        """Whether an order there is turned round, and where it goes on."""
        if n := self.lexicon.has("forbids", words, i):
            return True, i + n
        if self.lexicon.has("opinions", words, i) or (words[i] == "do" and self.lexicon.has("requests", words, i)):
            return False, i
        return self._negation(words, i)

    def _set_phrase(self, at: _ClauseBegin) -> tuple[Clause, int] | None:
        """ "Never mind", "not sure", "wrong", "good morning", "thanks for the cup", "yes", "no"."""
        words, i, end, lexicon = at.words, at.i, len(at.words), self.lexicon
        for table, kind in _SET_PHRASES.items():
            n = lexicon.has(table, words, i)
            if not n:
                continue
            behind = words[i + n] if i + n < end else ""
            is_tail = table in ("greetings", "cancels", "unsure") and lexicon.has("tails", words, i + n) == end - i - n
            is_said = behind in _GOES_ON_BEHIND.get(table, ())
            if behind and not is_tail and not (is_said and (kind == "social" or not lexicon.has("requests", words, i))):
                continue
            if table == "cancels" and behind in ("and", "then") and lexicon.verbs.at(words, i + n + 1)[0]:
                return Clause(kind, word=" ".join(words[i : i + n])), i + n  # "Leave that and take the red one."
            named = self.named_in(words, i + n) if table == "cancels" else []
            if behind == "to" and any(one.kind or one.colour for one in named):
                return Clause("statement", nouns=named), end  # "No need to wash the blue one."
            return Clause(kind, word=" ".join(words[i:])), end
        return None

    def _lone_word(self, at: _ClauseBegin) -> tuple[Clause, int] | None:
        words, i, end = at.words, at.i, len(at.words)
        if self._is_all_tails(words, i):
            return Clause("fragment"), end
        if end - i > 1:
            return None
        if words[i] in WORDS["numbers"]:  # "No, only one."
            return Clause("fragment", nouns=[Noun(count=WORDS["numbers"].index(words[i]))]), end
        if self.lexicon.colour(words[i]) and not self.lexicon.noun_at(words, i)[0]:  # "Blue, I mean."
            return Clause("fragment", nouns=[Noun(colour=self.lexicon.colour(words[i]), is_definite=True)]), end
        return None

    def _banning(self, at: _ClauseBegin) -> tuple[Clause, int] | None:
        """ "No cups on the shelf", "stay away from the glass"; and "the same with the cup"."""
        words, i, lexicon = at.words, at.i, self.lexicon
        clause, n = Clause("protect", word=words[i]), lexicon.has("bans", words, i)
        if words[i] == "no" and i + 1 < len(words) and self._is_banned(words, i + 1):
            n = 1
        elif not n and (n := lexicon.has("same", words, i)) and words[i] not in ("and", "also", "what", "how"):
            clause = Clause("fragment", is_same=True)
        elif not lexicon.has("bans", words, i):
            return None
        return clause, self._constituents(clause, words, i + n)

    def _conditional(self, at: _ClauseBegin) -> tuple[Clause, int] | None:
        """ "When it is dry", "because the cup is dirty"; and the questions that begin like them."""
        words, i, end, lexicon = at.words, at.i, len(at.words), self.lexicon
        if at.is_question and words[i] == "when" and words[i + 1 : i + 2] and words[i + 1] in WORDS["auxiliaries"]:
            return self._asking(words, i), end
        if (n := lexicon.has("conditions", words, i)) and not lexicon.has("requests", words, i):
            is_condition = not lexicon.has("unconditional", words, i)
            clause = Clause("statement", condition=" ".join(words[i : i + n]) if is_condition else "")
            clause.nouns = self.named_in(words, i + n)
            return clause, end
        if words[i] in WORDS["reasons"] and not lexicon.has("exceptions", words, i):
            return Clause("statement", nouns=self.named_in(words, i + 1)), end
        is_doubted = at.is_question and words[i : i + 3] == ["do", "not", "you"]
        if is_doubted and not lexicon.has("opinions", words, i) and not lexicon.has("requests", words, i):
            return self._asking(words, i), end
        return None

    def _wished_for(self, at: _ClauseBegin) -> tuple[Clause, int] | None:
        """ "I want to see the cup", "I need the cup"."""
        words, i, lexicon = at.words, at.i, self.lexicon
        if (n := lexicon.has("sights", words, i)) and lexicon.has("requests", words, i) <= n:
            return self._desire(words, i + n, word="see")
        if (n := lexicon.has("wants", words, i)) > lexicon.has("requests", words, i) > 0:
            if "need" in words[i : i + n] and "later" in words:  # "I will need the bowl later"
                return Clause("statement", nouns=self.named_in(words, i + n)), len(words)
            return self._desire(words, i + n, word="have" if _may_i(words, i) else "want")
        return None

    def _request(self, at: _ClauseBegin) -> tuple[Clause, int] | None:
        """ "Could you ...", "I would like you to ...", "how about ..."."""
        words, i, end, lexicon = at.words, at.i, len(at.words), self.lexicon
        n = lexicon.has("requests", words, i)
        if not n or n < lexicon.has("wishes", words, i):
            return None
        j = i + n
        while m := max(lexicon.has(table, words, j) for table in ("courtesy", "requests", "hedges")):
            j += m
        if n := lexicon.has("bans", words, j):  # "I would like you to stay away from the glass"
            return self._whole(Clause("protect", word=words[j]), words, j + n)
        is_negated, j = (True, j + 1) if words[j : j + 1] == ["not"] else self._negation(words, j)
        at.is_negated, at.j = is_negated, j
        is_past = words[j - 1] in ("you", "someone", "somebody") and lexicon.pasts.at(words, j)[0]
        form = lexicon.pasts.at(words, j) if is_past else lexicon.gerunds.at(words, j)
        if form[0]:  # "if you passed me", "would you mind passing me"
            return self._order(words, j, *form, is_request=True, is_negated=is_negated)
        n, verb = lexicon.verbs.at(words, j)
        if (asked := self._asked_politely(at, n, verb)) is not None:
            return asked
        if n:
            clause, k = self._order(words, j, n, verb, is_request=True, is_negated=is_negated)
            if at.is_question and words[i : i + 2] == ["can", "you"] and self._is_of_kinds(clause, words):
                return self._asking(words, i), end  # "Can you wash cups?"
            return clause, k
        if words[i] in ("how", "what"):  # "how about the shelf?"
            return self._whole(Clause("fragment", is_repair=True), words, i + 2)
        if at.is_question and j + 1 >= end:
            return Clause("question"), end
        if words[i] != "you" or (j < end and not lexicon.is_closed(words[j])):
            return self._unknown_order(words, j)
        return None

    def _asked_politely(self, at: _ClauseBegin, n: int, verb: str) -> tuple[Clause, int] | None:
        """What begins like a request and wants to know something: "Do you mind if I take it?"."""
        words, i, j, end = at.words, at.i, at.j, len(at.words)
        if words[j : j + 2] in (["if", "i"], ["if", "we"]):
            return self._asking(words, i), end
        is_asking = words[j : j + 1] and words[j] in WORDS["perceive"]
        is_wish = words[j : j + 1] in (["like"], ["want"], ["need"], ["mind"])
        if is_wish or (verb == "say" and words[i] not in ("i", "you")):
            return self._asking(words, i), end
        is_help = verb == "tidy" and words[j] == "help" and j + 1 < end and words[j + 1] not in ("me", "us")
        if is_asking and not is_help and (not n or verb == "see"):
            is_told = words[i] == "you" and not at.is_question  # "You can hear the rain from here."
            return Clause("statement") if is_told else self._asking(words, i), end
        return None

    def _want(self, at: _ClauseBegin) -> tuple[Clause, int] | None:
        """ "I would like the cup", "I need to ..."."""
        words, i, end, lexicon = at.words, at.i, len(at.words), self.lexicon
        n = lexicon.has("wants", words, i)
        if n <= lexicon.has("wishes", words, i) < end - i:  # not "I want that.", which wishes nothing behind it
            return None
        j = i + n
        if "need" in words[i:j] and "later" in words:
            return Clause("statement", nouns=self.named_in(words, j)), end
        if lexicon.has("uses", words, j) and words[j] == "to":  # "I would like to keep the black one"
            return self._of_person(words, i)
        if j < end and words[j] not in ("to", "not", "care"):
            is_asked = words[i : i + 2] == ["let", "me"] or _may_i(words, i)
            return self._desire(words, j, word="have" if is_asked else "want")
        return Clause("statement", nouns=self.named_in(words, j)), end

    def _opinion_or_wish(self, at: _ClauseBegin) -> tuple[Clause, int] | None:
        """ "I think the cup goes in the sink", "make sure the cup is clean"."""
        words, i, end, lexicon = at.words, at.i, len(at.words), self.lexicon
        if (n := lexicon.has("opinions", words, i)) and lexicon.has("requests", words, i) <= n:
            declared = self._declarative(words, i + n) if i + n < end else None
            if declared is not None and declared[0].type == "order":
                return declared
            asked = self._asking(words, i) if words[i] == "do" else None
            return asked or Clause("statement", nouns=self.named_in(words, i + n)), end
        if n := lexicon.has("wishes", words, i):
            self._wished(words, i + n)
            clause, k = self._clause(words, i + n, is_question=False, is_first=False)
            is_order = clause.type != "statement" or words[i : i + 2] == ["i", "wish"]
            return (clause, k) if is_order else (Clause("order", verb="tidy"), end)
        return None

    def _asked(self, at: _ClauseBegin) -> tuple[Clause, int] | None:
        words, i = at.words, at.i
        is_open = at.is_question and words[i] in ("any", "anything", "anybody", "anyone", "is", "are")
        is_open = is_open or (at.is_question and words[i : i + 2] in (["in", "what"], ["in", "which"], ["on", "which"]))
        return (self._asking(words, i), len(words)) if is_open or words[i] in WORDS["wh"] else None

    def _verb_first(self, at: _ClauseBegin) -> tuple[Clause, int] | None:
        """An imperative whose verb is known."""
        words, i, j, end, lexicon = at.words, at.i, at.j, len(at.words), self.lexicon
        n, verb = lexicon.verbs.at(words, j)
        is_do = words[j : j + 1] == ["do"]
        if is_do and not at.is_negated and lexicon.verbs.at(words, j + 1)[1] in SETS["firm"]:
            return self._clause(words, j + 1, is_question=at.is_question, is_first=at.is_first)  # "do put it there"
        if n and words[j : j + n] == ["do"] and j + n < end and words[j + n] in ("i", "you", "we", "they"):
            n = 0
        if n and words[j : j + n] == ["do"] and at.is_question and self._is_asked_of(words, j + 1):
            return self._asking(words, i), end
        length, _, is_plural = self.lexicon.noun_at(words, j)
        if not n or (length >= n and is_plural):  # a noun: "glasses on the tray", "orange ones"
            return None
        if verb == "see" or (verb == "say" and not at.is_negated):
            return self._whole(Clause("question", word=verb), words, j + n)
        return self._order(words, j, n, verb, is_negated=at.is_negated)

    def _forbidden(self, at: _ClauseBegin) -> tuple[Clause, int] | None:
        """ "Don't", and a verb that nothing explains behind it: "Do not eat the apple"."""
        words, j, end = at.words, at.j, len(at.words)
        if not at.is_negated:
            return None
        if j >= end:  # "No, don't."
            return Clause("cancel", word="do not"), end
        if words[j] not in WORDS["careless"]:
            named = self.named_in(words, j + 1)
            clause = Clause("protect", nouns=[noun for noun in named if noun.kind or (noun.colour and not noun.place)])
            if clause.nouns:
                return clause, end
        if words[j] == "forget":
            return Clause("unsure", nouns=self.named_in(words, j + 1)), end  # "and do not forget the plate"
        return Clause("statement"), end  # "Do not bother with the table": no order, and nothing is forbidden

    def _inverted(self, at: _ClauseBegin) -> tuple[Clause, int] | None:
        words, i, end = at.words, at.i, len(at.words)
        if words[i] in ("should", "were", "had") and not at.is_question:  # "Should it be empty, ..."
            return Clause("statement", condition=words[i], nouns=self.named_in(words, i + 1)), end
        is_can = words[i] == "can" and words[i + 1 : i + 2] not in (["i"], ["we"], ["it"], ["they"], ["he"], ["she"])
        return (self._asking(words, i), end) if words[i] in WORDS["auxiliaries"] and not is_can else None

    def _by_gerund(self, at: _ClauseBegin) -> tuple[Clause, int] | None:
        """ "Rinsing the cup would be nice", "washing it is not needed"."""
        words, i, end, lexicon = at.words, at.i, len(at.words), self.lexicon
        gerund, verb = lexicon.gerunds.at(words, i)
        tail = next((k for k in range(i + gerund + 1, end) if words[k] in ("is", "would", "was")), 0) if gerund else 0
        if tail and words[tail : tail + 2] == ["would", "be"] and lexicon.has("welcome", words, tail + 2):
            clause, _ = self._order(words[:tail], i, gerund, verb, is_request=True)
            return clause, end
        if tail and words[tail + 1 : tail + 2] in (["not"], ["unnecessary"], ["no"]):
            return Clause("statement", nouns=self.named_in(words[:tail], i + gerund)), end
        return None

    def _named_or_unknown(self, at: _ClauseBegin) -> tuple[Clause, int]:
        """A fragment, or an order whose verb nothing explains."""
        words, i, end, lexicon = at.words, at.i, len(at.words), self.lexicon
        is_named = self._noun(words, i)[0] is not None or lexicon.relations.at(words, i)[0] or words[i] == "not"
        if is_named or any(lexicon.has(table, words, i) for table in ("exceptions", "adverbs", "particles", "me")):
            return self._whole(Clause("fragment"), words, i)
        if lexicon.is_closed(words[i]):
            is_lone = at.is_first or end - i == 1
            return Clause("statement" if is_lone else "unsure"), end  # "... and strangely put it there"
        return self._unknown_order(words, i)

    def _is_of_kinds(self, clause: Clause, words: list[str]) -> bool:
        """Whether it is about kinds of things, and about none that are there: "cups"."""
        are_bare = all(noun.is_plural and not noun.is_definite and noun.kind not in ("", "*") for noun in clause.nouns)
        return bool(clause.nouns) and are_bare and not {"all", "both", "every", "any", "some"}.intersection(words)

    def _is_asked_of(self, words: list[str], i: int) -> bool:
        """Whether a thing and what it does follow: "the plates go on the tray"."""
        noun, j = self._noun(words, i)
        return noun is not None and bool(noun.kind) and self.lexicon.verbs.at(words, j)[0] > 0

    def _asking(self, words: list[str], i: int) -> Clause:
        """A question; what it names may be referred to."""
        nouns = self.named_in(words, i + 1)
        if words[i] in ("is", "are", "was", "were") and any(noun.unknown for noun in nouns):
            bare = self.named_in(words[:-1], i + 1)
            nouns = bare if any(noun.kind for noun in bare) else nouns  # "Is the sponge dusty?"
        return Clause("question", word=words[i], nouns=nouns)

    def named_in(self, words: list[str], i: int = 0) -> list[Noun]:
        """Everything that is named from there on."""
        found = []
        while i < len(words):
            noun, j = self._noun(words, i)
            if noun is not None and not noun.pronoun:
                found.append(noun)
            if noun is not None and noun.unknown and "of" in words[i:j]:  # "care of the red one"
                j = words.index("of", i) + 1
            i = max(j, i + 1)
        return found

    def _is_all_tails(self, words: list[str], i: int) -> bool:
        while i < len(words):
            n = self.lexicon.has("tails", words, i)
            if not n and (m := self.lexicon.has("courtesy", words, i)) == len(words) - i and m > 1:
                n = m
            if not n:
                return False
            i += n
        return True

    def _negation(self, words: list[str], i: int) -> tuple[bool, int]:
        if words[i : i + 2] in (["do", "not"], ["please", "not"]) or words[i : i + 1] == ["never"]:
            j = i + (2 if words[i] != "never" else 1)
            is_more = words[j : j + 1] in (["you"], ["ever"], ["even"])
            if words[j : j + 1] != ["you"] or self.lexicon.verbs.at(words, j + 1)[0]:
                return True, j + is_more
        return False, i

    def _order(
        self, words: list[str], i: int, n: int, verb: str, *, is_request: bool = False, is_negated: bool = False
    ) -> tuple[Clause, int]:
        clause = Clause("order", verb, " ".join(words[i : i + n]), is_negated=is_negated, is_request=is_request)
        return self._whole(clause, words, i + n)

    def _unknown_order(self, words: list[str], i: int) -> tuple[Clause, int]:
        """An imperative whose verb nothing explains; a word by itself is none, unless it stands alone."""
        end = len(words)
        if i >= end:
            return Clause("statement"), end
        rest = words[i + 1 :]
        is_report = self.lexicon.has("reports", rest, 0) > 0
        if is_report or (rest and rest[0] in SETS["finite"]):
            clause = Clause("statement", word="reported" if is_report else "")
            self._constituents(clause, words, i + 2)
            return clause, end
        is_finite = self.lexicon.pasts.at(rest, 0)[0] > 0 or self.lexicon.has("finite", rest, 0) > 0
        is_finite = is_finite or (len(rest) > 1 and len(rest[0]) > 4 and rest[0].endswith("ed"))
        is_finite = is_finite or self.lexicon.verbs.at([one.removesuffix("s") for one in rest[:1]], 0)[0] > 0
        is_plural = words[i].endswith("s") and not words[i].endswith("ss")
        if is_finite or (is_plural and rest):  # "Grandma gave us these", "crumbs everywhere": no imperative
            return Clause("statement", nouns=self.named_in(words, i + 1)), end
        return self._whole(Clause("unknown", word=words[i]), words, i + 1)

    def _desire(self, words: list[str], i: int, *, word: str = "want") -> tuple[Clause, int]:
        clause = Clause("order", verb="want", word=word)
        to_be = next((k for k in range(i + 1, len(words)) if words[k : k + 2] in (["to", "be"], ["to", "go"])), 0)
        if to_be and self._noun(words, i)[1] == to_be:  # "I want the mug to be on the shelf"
            words[to_be : to_be + 2] = ["be", "be"]
        end = self._constituents(clause, words, i)
        state = " ".join(clause.left)
        n, verb = self.lexicon.pasts.at(clause.left, 0)
        if state == "gone":  # "I want the mug gone."
            clause.verb, clause.left, clause.particles = "place", [], [*clause.particles, "away"]
        if state in ("open", "shut"):
            n, verb = 1, {"open": "open", "shut": "close"}[state]
        if clause.left and n == len(clause.left) and verb in SETS["states"]:  # "I would like the mug rinsed"
            clause.verb, clause.word, clause.left = verb, state, []
        return clause, end

    def _declarative(self, words: list[str], i: int) -> tuple[Clause, int] | None:
        """A sentence with a subject before its verb; None where there is no such thing."""
        if (opened := self._opened(words, i)) is not None:
            return opened
        subject = self._subject(words, i)
        if not isinstance(subject, _Subject):
            return subject
        for predicate in (
            *(self._welcome, self._bound, self._spared, self._needing, self._belonging, self._due, self._being),
        ):
            if (found := predicate(subject)) is not None:
                return found
        j, lexicon = subject.j, self.lexicon
        is_small = lexicon.relations.at(words, j)[0] or lexicon.is_closed(words[j]) or lexicon.has("tails", words, j)
        if is_small or words[j] in ("not", "'s"):
            return None
        return Clause("statement", nouns=subject.nouns), len(words)  # "the vase broke", "these cups look dirty"

    def _opened(self, words: list[str], i: int) -> tuple[Clause, int] | None:
        """What the first words tell: nobody, there is, mine is, wrong one; and what a person does."""
        lexicon, end = self.lexicon, len(words)
        if n := lexicon.has("nobody", words, i):
            return self._of_nobody(words, i + n)
        if words[i] in ("there", "here") and words[i + 1 : i + 2] and words[i + 1] in ("is", "are", "comes"):
            clause = Clause("statement", word="here" if words[i] == "here" else "")
            self._constituents(clause, words, i + 2)
            return clause, end
        if words[i] in ("mine", "ours") and words[i + 1 : i + 2] in (["is"], ["are"]):
            nouns, _, _ = self._nouns(words, i + 2)
            if nouns:
                return Clause("owner", nouns=nouns, word="my" if words[i] == "mine" else "our"), end
        if words[i + 1 : i + 2] == ["with"] and words[i] in ("easy", "careful", "gentle"):
            return Clause("statement", nouns=self.named_in(words, i + 2)), end
        if words[i] == "wrong" and end - i > 1:  # "Wrong bottle."
            return Clause("statement", nouns=self.named_in(words, i + 1)), end
        k = i + 2 if words[i + 1 : i + 2] in (["all"], ["both"], ["really"], ["just"]) else i + 1
        if words[i] == "they" and (lexicon.has("dues", words, k) or lexicon.has("stays", words, k)):
            words[i] = "those"  # "They go on the shelf."
        subjects = WORDS["subjects"]
        if words[i] in subjects or words[i] == "you" or self._is_person(words, i):
            return self._of_person(words, i)
        if words[i] in SETS["days"] and i + 1 < end:
            return self._of_person(words, i + 1) if words[i + 1] in subjects else (Clause("statement"), end)
        return None

    def _subject(self, words: list[str], i: int) -> _Subject | tuple[Clause, int] | None:
        """What a sentence is about, up to its verb; the clause itself where no verb is needed to tell."""
        lexicon, end, numbers = self.lexicon, len(words), WORDS["numbers"]
        nouns, j, has_choice = self._nouns(words, i)
        if words[i] == "any":
            nouns = [replace(noun, count="all") for noun in nouns]  # "Any can goes in the bin."
        if words[i] in numbers and lexicon.has("suffices", words, i + 1):  # "Two is enough."
            return Clause("fragment", nouns=[Noun(count=numbers.index(words[i]))], is_repair=True), end
        n = lexicon.has("suffices", words, j)
        if n and nouns and not nouns[0].pronoun and j + n == end:  # "A banana would be better."
            nouns = [replace(noun, count=1) for noun in nouns] if words[i] == "any" else nouns
            return Clause("fragment", nouns=nouns, is_repair=True), end
        excepts: list[Noun] = []
        is_but = bool(nouns) and words[j : j + 1] == ["but"] and nouns[-1].count == "all"
        if nouns and (n := 1 if is_but else lexicon.has("exceptions", words, j)):
            excepts, j, _ = self._nouns(words, j + n)
        if not nouns or j >= end:
            return None
        if words[i] == "nothing" and words[i + 1] != "but" and not excepts:
            return Clause("statement", nouns=self.named_in(words, i + 1)), end  # "Nothing here needs washing."
        nouns, j = self._where_it_stands(words, i, nouns, j)
        while j < end and (words[j] in SETS["ever"] or (words[j].endswith("ly") and lexicon.is_closed(words[j]))):
            j += 1
        joined = next((k for k in range(j, end) if words[k] in ("and", "so") and lexicon.has("dues", words, k + 1)), 0)
        if joined and words[j] in WORDS["auxiliaries"]:  # "are empty and can go in the bin"
            j = joined + 1
        is_negated = words[j : j + 2] in (["does", "not"], ["do", "not"])
        j += 2 * is_negated
        if j >= end:
            return (Clause("protect", nouns=nouns), end) if is_negated else None  # "The green one doesn't."
        return _Subject(words, i, j, nouns, excepts, has_choice, is_negated)

    def _where_it_stands(self, words: list[str], i: int, nouns: list[Noun], j: int) -> tuple[list[Noun], int]:
        """The things with the place behind them, where a verb follows that: "the cup on the tray goes ..."."""
        lexicon = self.lexicon
        n, relation = lexicon.relations.at(words, j)
        place, k = self._noun(words, j + n) if n and relation in ("in", "on", "from") else (None, j)
        if place is None or not place.place or k >= len(words):
            return nouns, j
        is_verb = any(lexicon.has(table, words, k) for table in ("dues", "stays", "needs", "finite"))
        if not is_verb and words[k] not in WORDS["auxiliaries"]:
            return nouns, j
        nouns = [replace(noun, source=place.place) for noun in nouns]
        if words[i] == "anything":
            nouns = [replace(noun, is_vague=False) for noun in nouns]  # "Anything on the tray can go ..."
        return nouns, k

    def _welcome(self, subject: _Subject) -> tuple[Clause, int] | None:
        """ "A banana would be nice", "a cloth would come in handy"."""
        words, j, lexicon = subject.words, subject.j, self.lexicon
        n_be = 3 if words[j : j + 3] == ["would", "come", "in"] else 0 if lexicon.has("welcome", words, j) else 2
        if words[j : j + 1] != ["would"] or not (n := lexicon.has("welcome", words, j + n_be)):
            return None
        clause = Clause("order", verb="want", word="want", nouns=subject.nouns)
        if all(noun.kind for noun in subject.nouns) and not subject.excepts:
            stop = self._constituents(clause, words, j + n_be + n)
            if not clause.left and not clause.targets:
                return clause, stop
        return Clause("statement", nouns=subject.nouns), len(words)

    def _bound(self, subject: _Subject) -> tuple[Clause, int] | None:
        """ "The can is for the bin"."""
        words, j = subject.words, subject.j
        n = self.lexicon.has("bound", words, j)
        place, stop = self._noun(words, j + n) if n and not subject.is_negated else (None, j)
        if place is None or not place.place or self.lexicon.verbs.at(words, j + n)[0]:
            return None
        clause = Clause("order", verb="place", word="due", nouns=subject.nouns, excepts=subject.excepts)
        clause.targets.append(("to", place))
        return clause, self._constituents(clause, words, stop)

    def _spared(self, subject: _Subject) -> tuple[Clause, int] | None:
        """ "The cup must not be washed", "the plates stay here", "the apple is for later"."""
        words, j, lexicon = subject.words, subject.j, self.lexicon
        for_what = words[j + 2 :] if words[j] in ("is", "are") and words[j + 1 : j + 2] == ["for"] else []
        is_kept = for_what[:1] not in ([], ["you"]) and not lexicon.gerunds.at(for_what, 0)[0]
        if is_kept and not any(one.place or one.kind or one.colour for one in self.named_in(for_what)):
            return Clause("protect", nouns=subject.nouns), len(words)
        is_barred = words[j + 1 : j + 3] == ["not", "be"] and lexicon.pasts.at(words, j + 3)[0] > 0
        is_barred = is_barred or words[j + 1 : j + 4] == ["not", "to", "be"]
        if is_barred or (lexicon.has("stays", words, j) and not subject.is_negated):
            return Clause("protect", nouns=subject.nouns), len(words)
        return None

    def _needing(self, subject: _Subject) -> tuple[Clause, int] | None:
        """ "The cup needs a good wash", "the plate needs no rinsing"."""
        words, lexicon, end = subject.words, self.lexicon, len(subject.words)
        n = lexicon.has("needs", words, subject.j)
        k = subject.j + n
        if not n:
            return None
        if subject.is_negated or (words[k : k + 1] == ["no"] and lexicon.gerunds.at(words, k + 1)[0]):
            return Clause("statement", nouns=subject.nouns), end
        while k < end and words[k] in SETS["before_need"]:
            k += 1
        m, verb = lexicon.verbs.at(words, k)
        if not m:
            m, verb = lexicon.gerunds.at(words, k)
        for ending in (r"(p?ed|d)$", r"d$"):
            if not m and k < end:
                m, verb = lexicon.verbs.at([re.sub(ending, "", words[k])], 0)
        if m and verb in ("rinse", "wipe", "clean", "open", "close"):
            return self._whole(Clause("order", verb=verb, nouns=subject.nouns, excepts=subject.excepts), words, k + m)
        return None

    def _belonging(self, subject: _Subject) -> tuple[Clause, int] | None:
        words, j, end = subject.words, subject.j, len(subject.words)
        if words[j] not in ("belongs", "belong") or words[j + 1 : j + 2] != ["to"]:
            return None
        owner = {"me": "my", "us": "our"}.get(words[j + 2] if j + 2 < end else "", words[-1])
        return Clause("owner", nouns=subject.nouns, word=owner), end

    def _due(self, subject: _Subject) -> tuple[Clause, int] | None:
        """ "The cup goes in the sink", "it should be on the tray"."""
        words, j, nouns = subject.words, subject.j, subject.nouns
        n = self.lexicon.has("dues", words, j)
        if not n:
            return None
        k, end = j + n, len(words)
        clause = Clause("order", "place", "due", nouns=list(nouns), excepts=subject.excepts)
        clause.has_choice = subject.has_choice
        is_state = n == 1 and words[j] in ("were", "was", "went", "stood", "sat", "landed")
        is_state = is_state or words[j] in ("ended", "found", "made") or words[j + 1 : j + 2] == ["put"]
        if words[k : k + 2] == ["not", "to"]:  # "It would be better not to put the cup there."
            return Clause("protect", nouns=self.named_in(words, k + 2)), end
        stop = self._constituents(clause, words, k)
        is_wish = any(self.lexicon.has("wishes", words, k) == subject.i - k for k in range(subject.i))
        if subject.is_negated or (is_state and words[:1] != ["it"] and not is_wish):
            return Clause("statement", nouns=nouns), end
        is_back = any(adverb in WORDS["backs"] for adverb in clause.adverbs)
        past, verb = self.lexicon.pasts.at(clause.left, 0)
        is_moved = bool(clause.targets or clause.particles or verb == "throw")
        # "Those can be thrown away.", "The cup is to be put on the tray."
        if past and past == len(clause.left) and is_moved:
            clause.verb, clause.word, clause.left = verb, " ".join(clause.left), []
            return clause, stop
        if words[k : k + 2] == ["the", "same"] and not clause.targets:
            same = Clause("fragment", nouns=list(nouns), is_same=True, about=" ".join(words[k:]))
            return same, end  # "The cup can go the same way."
        is_there = bool((SETS["there"] - {"here", "over here", "in here"}).intersection(clause.adverbs))
        if clause.targets or is_back or is_there or "away" in clause.particles or "back" in clause.particles:
            return clause, stop
        if (clause.is_repair or {"too", "as well"}.intersection(clause.adverbs)) and not clause.left:
            return Clause("fragment", nouns=list(nouns), is_same=True), end  # "The cup can go too."
        return Clause("statement", nouns=nouns), end

    def _being(self, subject: _Subject) -> tuple[Clause, int] | None:
        """What something is, or has: whose, which colour, where."""
        words, nouns, k, end = subject.words, subject.nouns, subject.j + 1, len(subject.words)
        if words[k - 1] not in WORDS["auxiliaries"] and words[k - 1] not in SETS["seems"]:
            return None
        if words[k : k + 1] in (["mine"], ["ours"]):
            stays = any(self.lexicon.has("stays", words, m) for m in range(k + 1, end))
            return Clause("protect" if stays else "owner", nouns=nouns, word="my"), end
        others, _, _ = self._nouns(words, k)
        if k + 1 == end and self.lexicon.colour(words[k]):
            others = [Noun(colour=self.lexicon.colour(words[k]))]  # "The mug is orange."
        first, other = nouns[0], others[0] if others else Noun()
        if first.owner and first.kind and other.colour and not other.kind:  # "my cup is the blue one"
            return Clause("owner", nouns=[replace(first, colour=other.colour, owner="")], word=first.owner), end
        if other.owner and other.kind and first.colour and not first.kind:  # "the red one is my cup"
            return Clause("owner", nouns=[replace(other, colour=first.colour, owner="")], word=other.owner), end
        if other.owner and first.pronoun:
            return Clause("owner", nouns=others, word=other.owner), end
        is_offered = "for" in words[k:] and "you" in words[k:]
        clause = Clause("statement", nouns=[*nouns, *others], word="offered" if is_offered else "")
        if not others:
            self._constituents(probe := Clause("statement"), words, k)
            clause.targets = probe.targets
        return clause, end

    def _wished(self, words: list[str], i: int) -> None:
        """ "Make sure (that) the cup is clean" as "the cup should be clean", in place."""
        noun, j = self._noun(words, i)
        is_done = self.lexicon.pasts.at(words, j + 1)[1] in SETS["states"]
        is_so = is_done and words[j : j + 1] in (["was"], ["were"], ["got"])
        is_so = is_so or words[j : j + 1] in (["is"], ["are"], ["gets"], ["get"])
        is_so = is_so and words[j + 1 : j + 2] not in (["not"], ["never"], ["no"], ["still"], [])
        if is_so and noun is not None and (noun.kind or noun.place):
            words[j : j + 1] = ["should", "be"]

    def _is_person(self, words: list[str], i: int) -> bool:
        """ "my sister is", "Peter wants": somebody who is no thing of ours, before a verb."""
        lexicon, subjects = self.lexicon, WORDS["subjects"]
        j = i + 1 if words[i] in WORDS["owners"] or words[i] == "the" else i
        if j >= len(words) or (lexicon.is_closed(words[j]) and not (j > i and words[j] in subjects)):
            return False
        if lexicon.noun_at(words, j)[0] or lexicon.colour(words[j]) or (j == i and lexicon.verbs.at(words, j)[0]):
            return False
        k = j + 1
        while words[k : k + 1] and words[k] in SETS["often"]:
            k += 1
        if k >= len(words) or (words[i] == "the" and lexicon.has("dues", words, k)):  # "The spoon goes in the sink."
            return False
        behind, more = words[k], words[k + 1] if k + 1 < len(words) else ""
        if behind in ("still", "really") and more in ("needs", "wants", "uses", "need", "want"):
            return True
        is_at_it = any(lexicon.has("uses", words, m) for m in (j + 2, j + 3)) or lexicon.has("done", words, j + 2) > 0
        if lexicon.has("reports", words, k) or (is_at_it and behind in SETS["of_who"]):
            return True
        if j == i:
            return False
        is_verb = len(behind) > 4 and (behind.endswith("ed") or (behind.endswith("s") and bool(more)))
        is_verb = is_verb and not lexicon.noun_at(words, j + 1)[0] and not lexicon.is_closed(behind)
        is_past = lexicon.has("finite", words, j + 1) > 0 or lexicon.pasts.at(words, j + 1)[0] > 0
        return is_verb or is_past or behind == "used"

    def _of_person(self, words: list[str], i: int) -> tuple[Clause, int]:
        """What somebody does or has done: it protects what they use, frees what they are done with."""
        lexicon, end = self.lexicon, len(words)
        if words[i + 1 : i + 2] == ["wonder"] and words[i + 2 : i + 3] and words[i + 2] in WORDS["wh"]:
            return self._asking(words, i + 2), end
        if words[i] == "you":
            is_free = words[i + 1 : i + 4] in (["do", "not", "have"], ["do", "not", "need"])
            is_free = is_free or words[i + 1 : i + 3] == ["need", "not"] or bool(SETS["past"].intersection(words))
            is_free = is_free or bool(SETS["of_robot"].intersection(words[i + 1 : i + 2]))
            kind: ClauseType = "statement" if is_free else "social"
            return Clause(kind, word=" ".join(words), nouns=self.named_in(words, i + 1)), end
        if words[i : i + 3] == ["i", "told", "you"]:
            return Clause("statement"), end
        is_negated = "not" in words[i : i + 5] or "no" in words[i : i + 4]
        if not is_negated and (n := lexicon.has("permits", words, i + 1)):
            named = [noun for noun in self.named_in(words, i + 1 + n) if noun.kind or noun.colour]
            return Clause("release", nouns=named), end  # "She may use the blue one."
        for j in range(i + 1, min(end, i + 8)):
            if n := lexicon.has("done", words, j):
                clause = Clause("protect" if is_negated else "release")
                self._constituents(clause, words, j + n)
                clause.nouns = _kinds_in(clause)
                if clause.nouns or words[j : j + 2] not in (["finished"],):
                    return clause, end
            if (n := lexicon.has("uses", words, j)) and "while" not in words[i:j] and words[j - 1] != "used":
                clause = Clause("release" if is_negated or words[i + 1] in ("was", "were") else "protect", word="uses")
                is_at = words[j + n : j + n + 1] in (["from"], ["off"], ["in"], ["out"], ["on"])
                self._constituents(clause, words, j + n + (lexicon.relations.at(words, j + n)[0] if is_at else 0))
                clause.nouns = _kinds_in(clause)
                if not clause.nouns:
                    break
                return clause, end
            if words[j] in ("need", "want", "needs", "wants", "uses"):
                if words[j] != "uses" and lexicon.has("uses", words, j + 1):
                    continue  # "I want to drink from it"
                is_over = words[-2:] in (["any", "more"], ["any", "longer"]) or words[-1] == "anymore"
                is_over = is_over or "longer" in words[i:j]  # "I no longer want it."
                is_open = (words[j] == "want" and not is_over) if is_negated else "still" not in words[i:j]
                if is_open or words[j + 1 : j + 2] == ["to"]:
                    break
                clause = Clause("release" if is_negated else "protect", word="needs")
                return clause, max(end, self._constituents(clause, words, j + 1))
        is_offer = any(word in SETS["offers"] for word in words[i : i + 5]) or words[-2:] == ["for", "you"]
        if "you" in words[i:end] and is_offer:
            return Clause("statement", word="offered", nouns=self.named_in(words, i + 1)), end
        is_reported = any(lexicon.has("reports", words, j) for j in range(i + 1, min(end, i + 3)))
        is_other = words[i] not in ("i", "we")
        is_reported = is_reported or (is_other and words[i + 1 : i + 2] in (["say"], ["tell"], ["ask"]))
        nouns = self._told(words, i + 1)
        return Clause("statement", word="reported" if is_reported else "", nouns=nouns), end

    def _told(self, words: list[str], i: int) -> list[Noun]:
        """Everything that is named, and last what "it" means next: not where something is."""
        found: list[tuple[bool, Noun]] = []
        while i < len(words):
            noun, j = self._noun(words, i)
            if noun is not None and not noun.pronoun:
                before = [k for k in range(max(0, i - 3), i) if self.lexicon.relations.at(words, k)[0] == i - k]
                found.append((bool(noun.kind) and not before, noun))
            i = max(j, i + 1)
        return [noun for _, noun in sorted(found, key=lambda pair: pair[0])]

    def _of_nobody(self, words: list[str], i: int) -> tuple[Clause, int]:
        lexicon, end = self.lexicon, len(words)
        if lexicon.has("reports", words, i):
            return Clause("statement", word="reported", nouns=self.named_in(words, i)), end
        for j in range(i, min(end, i + 5)):
            if (n := lexicon.has("uses", words, j)) or words[j] in ("needs", "wants", "uses", "need"):
                clause = Clause("release")
                self._constituents(clause, words, j + max(n, 1))
                return clause, end
            verb = re.sub(r"(e?s)$", "", words[j])
            for form in (words[j], words[j].removesuffix("s"), verb):
                n, found = lexicon.verbs.at([form, *words[j + 1 :]], 0)
                if n and found != "do":
                    clause = Clause("protect")
                    self._constituents(clause, words, j + n)
                    return clause, end
        return Clause("statement"), end

    # --- what a clause is made of

    def _whole(self, clause: Clause, words: list[str], i: int) -> tuple[Clause, int]:
        """The clause with what stands from there on, and where the next one begins."""
        return clause, self._constituents(clause, words, i)

    def _constituents(self, clause: Clause, words: list[str], i: int) -> int:
        """Read nouns, places, exceptions and adverbs into the clause; where the next clause begins."""
        parts = (self._joint, self._when, self._mark, self._adverb, self._place_or_person, self._thing)
        is_over = False
        while i < len(words) and not is_over:
            i, is_over = next(found for part in parts if (found := part(clause, words, i)) is not None)
        return i

    def _joint(self, clause: Clause, words: list[str], i: int) -> tuple[int, bool] | None:
        """Where to read on behind "and", "or", "but", and whether the clause ends there."""
        if words[i] == "but" and clause.adverbs and clause.adverbs[-1].startswith(("any", "some")):
            clause.denies = True
            return self._not(clause, words, i + 1), False  # "anywhere but the table"
        return self._conjunction(clause, words, i) if words[i] in ("and", "then", "but", "so", "or", "plus") else None

    def _when(self, clause: Clause, words: list[str], i: int) -> tuple[int, bool] | None:
        """ "Tomorrow", "if it is dry", "because I said so", "should it be dirty"."""
        lexicon, end = self.lexicon, len(words)
        n_tail = lexicon.has("tails", words, i)
        if (n := self._postponed(words, i)) and n >= n_tail:
            if clause.type in ("order", "fragment") and clause.verb != "wait":
                clause.condition = " ".join(words[i : i + n])
            return i + n, False
        if not n_tail and not lexicon.has("adverbs", words, i) and not lexicon.has("exceptions", words, i):
            n = lexicon.has("conditions", words, i)
            if n and not lexicon.has("unconditional", words, i):
                clause.condition = " ".join(words[i : i + n])
                return end, True
            if words[i] == "as":  # "as you did last time"
                clause.unread += words[i:]
            if n or words[i] in WORDS["reasons"]:
                return end, True
        if words[i] == "should" and clause.type == "order" and words[i + 1 : i + 2] in (["it"], ["they"]):
            clause.condition = "should"  # "... should it be dirty"
            return end, True
        return None

    def _mark(self, clause: Clause, words: list[str], i: int) -> tuple[int, bool] | None:
        """Words that change what the rest means: manners, "maybe", "except", "not", "I mean", "never mind"."""
        lexicon, end = self.lexicon, len(words)
        if n := lexicon.has("manners", words, i):
            clause.unread += words[i : i + n]
            return i + n, False
        if n := lexicon.has("hedges", words, i):
            clause.is_hedged = True
            return i + n, False
        if n := lexicon.has("exceptions", words, i):
            return self._exception(clause, words, i + n), False
        if words[i] == "not":
            return self._not(clause, words, i + 1), False
        if n := lexicon.has("repair", words, i):
            clause.is_repair = clause.is_repair or i + n == end
            return (end, False) if i + n == end else (i, True)
        n = max(lexicon.has("unsure", words, i), lexicon.has("cancels", words, i))
        return (i, True) if n > 1 and i + n >= end else None

    def _adverb(self, clause: Clause, words: list[str], i: int) -> tuple[int, bool] | None:
        lexicon, has_more = self.lexicon, i + 1 < len(words)
        n = lexicon.has("adverbs", words, i)
        if n and words[i] not in ("first", "right") and not (n == 1 and words[i] == "inside" and has_more):
            clause.adverbs.append(" ".join(words[i : i + n]))
            return i + n, False
        n = lexicon.has("tails", words, i)
        is_head = words[i] in ("right", "one", "all", "once", "the", "my") and n == 1 and has_more
        if n and n >= lexicon.relations.at(words, i)[0] and not is_head:
            clause.adverbs.append(" ".join(words[i : i + n]).replace("for us", "for me"))
            return i + n, False
        return None

    def _place_or_person(self, clause: Clause, words: list[str], i: int) -> tuple[int, bool] | None:
        """ "On the tray", "to me", "away"."""
        n, relation = self.lexicon.relations.at(words, i)
        is_last = words[i] in ("over", "off", "in", "on", "by", "to") and i + n == len(words) and relation == "other"
        if n and not is_last:
            return self._target(clause, words, i, n, relation), False
        if n := self.lexicon.has("me", words, i):
            clause.to_me = True
            return i + n, False
        if n := self.lexicon.has("particles", words, i):
            clause.particles.append(words[i])
            return i + n, False
        return None

    def _thing(self, clause: Clause, words: list[str], i: int) -> tuple[int, bool]:
        """A noun with what stands behind it; or a word that nothing explains."""
        if self.lexicon.is_closed(words[i]) and words[i].endswith("ly"):
            return i + 1, False
        if (k := self._colour_of(clause, words, i)) > i:
            return k, False
        noun, j = self._noun(words, i)
        if noun is not None:
            clause.nouns.append(noun)
            return self._behind_noun(clause, words, j), False
        if words[i] in SETS["relatives"] or words[i] in WORDS["subjects"]:  # "the cup I used"
            clause.unread += words[i:]
            return len(words), True
        clause.left.append(words[i])
        return i + 1, False

    def _postponed(self, words: list[str], i: int) -> int:
        """How many words say that it is for later: "tomorrow", "in ten minutes"."""
        if n := self.lexicon.has("times", words, i):
            return n
        j = i + 1
        numbers = (*WORDS["numbers"], "a", "an", "half", "few")
        while words[i] in ("in", "after") and j < len(words) and (words[j].isdigit() or words[j] in numbers):
            j += 1
        return j + 1 - i if j > i + 1 and self.lexicon.has("units", words, j) else 0

    def _conjunction(self, clause: Clause, words: list[str], i: int) -> tuple[int, bool]:
        """Past "and", "or", "but": where to read on, and whether a new clause begins there."""
        lexicon, end, joint = self.lexicon, len(words), words[i]
        j = i + 1
        while j < end and (words[j] in ("then", "also", "please", "just", "so", "maybe", "perhaps")):
            j += 1
        if j >= end:
            clause.has_choice = clause.has_choice or joint == "or"
            return end, True
        if words[j] == "not" and joint in ("and", "but"):
            return self._not(clause, words, j + 1, is_exception=joint == "but"), False
        if any(lexicon.has(table, words, j) for table in ("repair", "requests", "cancels")):
            return i if joint == "or" else j, True
        is_verb = lexicon.verbs.at(words, j)[0] > 0 and not lexicon.noun_at(words, j)[0]
        if is_verb or self._negation(words, j)[0]:
            return j, True
        noun, k = self._noun(words, j)
        is_placed = clause.type in ("order", "fragment") and clause.targets and joint in ("and", "but")
        listed = self._nouns(words, j)[1] if noun is not None and is_placed else 0
        if any(lexicon.relations.at(words, one)[0] for one in (k, listed) if listed):
            return j, True  # "... on the tray and the blue one (and the green one) on the shelf"
        is_stated = any(lexicon.has(table, words, k) for table in ("dues", "stays")) or words[k : k + 1] in _AUXILIARIES
        if noun is not None and joint != "so" and is_stated:
            return j, True
        if noun is not None and joint == "but" and any(one.count == "all" for one in clause.nouns):
            return self._exception(clause, words, j), False
        if joint == "or":
            clause.has_choice = True
            return j, False
        goes_on = any(lexicon.has(table, words, j) for table in ("adverbs", "tails", "exceptions"))
        return j, noun is None and not goes_on and not lexicon.relations.at(words, j)[0]

    def _exception(self, clause: Clause, words: list[str], i: int) -> int:
        if words[i - 1] == "that" and self._begins_head(words, i):
            i -= 1  # "except that one"
        n, relation = self.lexicon.relations.at(words, i)
        if n and relation != "free":
            clause.left += words[i : i + n]  # "except on the shelf": where it is not to go
            return self._target(Clause("fragment"), words, i, n, "")
        nouns, j, _ = self._nouns(words, i)
        if nouns:
            probe = Clause("fragment", nouns=nouns)
            j = self._behind_noun(probe, words, j)
            nouns = probe.nouns
            if probe.excepts or any(noun.is_vague for noun in nouns):
                clause.left.append("that")  # "except those that are chipped": nobody can tell which
        clause.excepts += nouns
        clause.ends_excepting = j >= len(words)
        if not nouns and i < len(words):
            clause.left.append(words[i])
            return i + 1
        return max(j, i)

    def _not(self, clause: Clause, words: list[str], i: int, *, is_exception: bool = False) -> int:
        """Behind a "not": a place that is not meant, or a thing that is not."""
        n, relation = self.lexicon.relations.at(words, i)
        if n and relation != "free":
            clause.denies = True
            return self._target(Clause("fragment"), words, i, n, relation)
        if words[i : i + 1] and words[i] in ("now", "yet", "today", "tonight", "immediately"):
            clause.condition, clause.denies = f"not {words[i]}", True
            return i + 1
        if self.lexicon.has("adverbs", words, i):
            clause.denies = True
            clause.adverbs.append("not there")
            return i + self.lexicon.has("adverbs", words, i)
        nouns, j, _ = self._nouns(words, i)
        if nouns and not (nouns[-1].kind or nouns[-1].colour or nouns[-1].unknown or nouns[-1].pronoun):
            m, where = self.lexicon.relations.at(words, j)
            j = self._target(Clause("fragment"), words, j, m, where) if where in ("in", "on", "beside") else j
        (clause.excepts if is_exception else clause.nots).extend(nouns)
        if not nouns:
            clause.left.append("not")
        return max(j, i)

    def _target(self, clause: Clause, words: list[str], i: int, n: int, relation: str) -> int:
        """A preposition and its noun."""
        lexicon, end = self.lexicon, len(words)
        j = i + n
        is_deed = relation == words[i] == "to" and lexicon.verbs.at(words, j)[0] and not lexicon.noun_at(words, j)[0]
        if is_deed:
            clause.left += words[i : j + 1]
            return j + 1
        if m := lexicon.has("me", words, j):
            if relation == "from":
                clause.from_me = True
            elif relation in ("beside", "other"):
                clause.left += words[i : j + m]  # "next to me", "in front of me"
            elif relation != "free":
                clause.to_me = True
            return j + m
        if (m := lexicon.has("adverbs", words, j)) and words[j] in ("there", "here", "over"):
            clause.adverbs.append("there")
            return j + m
        noun, k = self._noun(words, j)
        if relation == "free":
            return self._target_of_free(clause, words, i, j, noun, k)
        if noun is None:
            while j < end and lexicon.is_closed(words[j]) and words[j] in WORDS["articles"]:
                j += 1
            clause.targets.append((relation, None))
            return j
        clause.targets.append((relation, noun))
        return k

    def _target_of_free(self, clause: Clause, words: list[str], i: int, j: int, noun: Noun | None, k: int) -> int:
        """ "With", "about", "like": what stands behind these is no place."""
        if noun is not None and "exception" in words[k:]:  # "with the white one as the only exception"
            clause.excepts.append(noun)
            return words.index("exception", k) + 1
        if words[i] == "about" and noun is not None:
            clause.about = noun.kind or noun.place or noun.unknown
        if noun is None:
            has_word = j < len(words)
            is_open = has_word and not self.lexicon.is_closed(words[j])
            if (words[i] == "like" and has_word) or (words[i] == "with" and is_open):
                clause.left.append(words[j])  # "like yesterday", "with flowers on it"
            return j + is_open
        if not clause.nouns and not clause.verb and words[i] == "with":
            clause.nouns.append(noun)
        elif words[i] == "with" and (noun.unknown or (clause.nouns and noun.kind not in ("", "*", "sponge"))):
            clause.left.append(noun.unknown or noun.kind)  # "with a lemon", "with the plate"
        return k

    def _behind_noun(self, clause: Clause, words: list[str], i: int) -> int:
        """Relative clauses and places behind a noun: they say which one is meant."""
        lexicon, end = self.lexicon, len(words)
        if (k := self._colour_of(clause, words, i)) > i:
            return k
        if i < end and words[i] in WORDS["owners"]:  # "the one my husband used"
            clause.unread += words[i:]
            clause.nouns[-1] = replace(clause.nouns[-1], is_vague=True)
            return end
        is_told = words[i : i + 1] in (["that"], ["which"], ["who"])
        is_told = is_told and bool(SETS["stands"].intersection(words[i + 1 : i + 2]))
        j = i + 2 if is_told else i
        is_lying = words[j : j + 1] in (["standing"], ["lying"], ["sitting"])  # "the apple lying on the tray"
        if is_told or is_lying:
            n, relation = lexicon.relations.at(words, j + is_lying)
            is_at = n > 0 and (is_told or relation in ("in", "on"))
            place, k = self._noun(words, j + is_lying + n) if is_at else (None, i)
            if place is not None and place.place:
                clause.nouns[-1] = replace(clause.nouns[-1], source=place.place)
                return k
        if is_told:
            clause.nouns[-1] = replace(clause.nouns[-1], is_vague=True)
            return j + is_lying
        phrase = next((one for one in _SEEN if tuple(words[i : i + len(one)]) == one), ())
        clause.is_repair = clause.is_repair or phrase == ("i", "mean")  # "The yellow one, I mean."
        return i + len(phrase)

    def _colour_of(self, clause: Clause, words: list[str], i: int) -> int:
        """Past "that is blue", which says which one is meant, or "that are not red", which is an exception."""
        if i + 2 >= len(words) or not clause.nouns or words[i] not in ("that", "which"):
            return i
        if words[i + 1] not in ("is", "are"):
            return i
        j = i + 2 + (words[i + 2] == "not")
        colour = self.lexicon.colour(words[j]) if j < len(words) else ""
        if not colour or self._begins_name(words, j + 1, is_det=True):
            return i
        last = clause.nouns[-1]
        if words[i + 2] == "not" and last.count == "all":
            clause.excepts.append(replace(last, colour=colour))
        elif words[i + 2] == "not":
            clause.nouns[-1] = replace(last, is_vague=True)
        else:
            clause.nouns[-1] = replace(last, colour=colour)
        return j + 1

    # --- nouns

    def _nouns(self, words: list[str], i: int) -> tuple[list[Noun], int, bool]:
        """A list of nouns, where it ends, and whether it leaves a choice."""
        found: list[Noun] = []
        ones: set[int] = set()
        has_choice = False
        while True:
            noun, j = self._noun(words, i)
            if noun is None:
                break
            if words[j - 1] in ("one", "ones"):
                ones.add(len(found))  # "the blue one and all the plates": no blue plate
            found.append(noun)
            i = j
            if i < len(words) and words[i] in ("and", "or", "nor") and self._noun(words, i + 1)[0] is not None:
                has_choice = has_choice or words[i] == "or"
                i += 1
                continue
            break
        for number, noun in enumerate(found[:-1]):  # "the red and the blue one"
            is_bare = noun.colour and not (noun.kind or noun.pronoun or noun.unknown or noun.place)
            if is_bare and number not in ones:
                found[number] = replace(noun, kind=found[-1].kind, is_plural=found[-1].is_plural)
        return found, i, has_choice

    def _noun(self, words: list[str], i: int) -> tuple[Noun | None, int]:
        """The noun phrase that begins there, and where it ends; None where none does."""
        if i >= len(words):
            return None, i
        numbers = WORDS["numbers"]
        if words[i] == "any" and words[i + 1 : i + 2] and words[i + 1] in numbers[2:]:
            return self._noun(words, i + 1)  # "any two mugs"
        phrase = _Phrase(words, i, i, Noun())
        for part in (self._quantity, self._pronoun, self._determiners, self._rest_of, self._names):
            if (found := part(phrase)) is not None:
                return found
        return self._whole_noun(phrase)

    def _quantity(self, at: _Phrase) -> tuple[Noun | None, int] | None:
        """ "All", "both", "two", "the other", "one of them"."""
        words, i, lexicon, numbers = at.words, at.start, self.lexicon, WORDS["numbers"]
        if n := lexicon.has("vague", words, i):
            at.take(n, is_vague=True)
        elif n := lexicon.has("rest", words, i):
            is_other = words[i : i + n] == ["the", "other"] and i + n < len(words) and words[i + n] != "ones"
            is_one = is_other and not lexicon.noun_at(words, i + n)[2]
            at.take(n, is_other=True, is_definite=True, count=1 if is_one else "all")
        elif n := lexicon.has("all", words, i):
            at.take(n, count=1 if words[i : i + n] == ["any"] else "all")
        elif words[i] == "both":
            at.take(1, count="both")
        elif words[i] in numbers and (words[i] != "one" or lexicon.noun_at(words, i + 1)[0]):
            at.take(1, count=numbers.index(words[i]))
        elif words[i] == "one" and lexicon.relations.at(words, i + 1)[1] in ("in", "on", "beside", "to"):
            return at.noun, i + 1  # "... and one on the shelf"
        elif words[i].isdecimal():
            at.take(1, count=int(words[i][:6]))  # no message has room for a number of any length
        elif words[i : i + 2] == ["one", "of"] or words[i : i + 3] == ["any", "one", "of"]:
            inner, k = self._noun(words, i + 2)
            if inner is None:
                return None, i
            return replace(inner, count=1, is_plural=False, is_definite=False, is_vague=bool(inner.pronoun)), k
        at.i += at.i > i and words[at.i : at.i + 1] == ["of"]
        return None

    def _pronoun(self, at: _Phrase) -> tuple[Noun | None, int] | None:
        """ "It", "both of them", "everything that is on the tray", "something clean"."""
        words, i, noun = at.words, at.i, at.noun
        word = words[i] if i < len(words) else ""
        if word in ("everything", "anything") and i == at.start:
            every, k = self._everything(words, i + 1)
            is_open = word == "anything" and k == i + 1  # "anything but the red cup": whatever one likes
            return replace(every, is_vague=is_open or every.is_vague), k
        n = 2 if words[i + 1 : i + 2] == ["else"] else 1
        is_left = word == "what" and i > 0 and words[i + n : i + n + 2] in (["is", "left"], ["is", "still"])
        if (word == "whatever" or is_left) and i == at.start and words[i + n : i + n + 1] == ["is"]:
            every, k = self._everything([*words[: i + n], "that", *words[i + n :]], i + 1)  # "whatever is in the sink"
            return (every, k - 1) if every.source else (None, i)
        if word in ("something", "nothing"):
            return replace(noun, kind="*", is_vague=True), self._past_adjectives(words, i + 1)
        if word in ("it", "them"):
            pronoun = replace(noun, pronoun=word, is_plural=word == "them")
            if words[i + 1 : i + 2] in (["both"], ["all"]):
                return replace(pronoun, count="both" if words[i + 1] == "both" else "all"), i + 2
            return pronoun, i + 1
        return None

    def _determiners(self, at: _Phrase) -> tuple[Noun | None, int] | None:
        """ "The", "these", "my", "Anna's", "the three"; a "this" that stands alone is a pronoun."""
        words, end, numbers = at.words, len(at.words), WORDS["numbers"]
        is_part = at.i > at.start and words[at.i - 1] == "of" and at.noun.count != 1
        while at.i < end:
            i, word = at.i, words[at.i]
            if word in ("this", "that", "these", "those"):
                if not self._begins_head(words, i + 1):
                    if i + 1 < end and words[i + 1] in WORDS["auxiliaries"] and i > at.start:
                        return None
                    is_many, is_near = word in ("these", "those"), word in ("this", "these")
                    return replace(at.noun, pronoun=word, is_plural=is_many, is_offered=is_near), i + 1
                is_many = at.noun.is_plural or (word in ("these", "those") and at.noun.count == 1)
                at.take(1, is_definite=True, is_offered=word in ("this", "these"), is_plural=is_many)
            elif word in WORDS["articles"]:
                is_vague = at.noun.is_vague or words[i : i + 2] == ["some", "more"]
                at.take(1, is_definite=at.noun.is_definite or word == "the", is_vague=is_vague)
            elif word in WORDS["owners"]:
                at.take(1, owner=word, is_definite=True)
            elif i + 1 < end and words[i + 1] == "'s":
                at.take(2, owner=word, is_definite=True)
            elif at.is_det and word != "one" and word in numbers and self._begins_head(words, i + 1):
                at.take(1, count=at.noun.count if is_part else numbers.index(word))  # "two of the three": two
            else:
                return None
            at.is_det = True
        return None

    def _rest_of(self, at: _Phrase) -> tuple[Noun | None, int] | None:
        words, i = at.words, at.i
        if not at.is_det or words[i : i + 1] != ["rest"] or words[i - 1] == "a":
            return None
        inner, k = self._noun(words, i + 2) if words[i + 1 : i + 2] == ["of"] else (None, i)
        if inner is not None:
            return replace(inner, is_other=True, count="all"), k
        return replace(at.noun, is_other=True, is_vague=True, count="all", kind="*"), i + 1

    def _names(self, at: _Phrase) -> tuple[Noun | None, int] | None:
        """Adjectives and colours, then the name."""
        words, lexicon = at.words, self.lexicon
        while at.i < len(words):
            i = at.i
            if words[i] == "can" and not at.is_det and i == at.start:
                return None, at.start  # "can" by itself is no tin
            if self._is_modal(words, i):
                return None
            colour = lexicon.colour(words[i])
            n, name, is_plural = lexicon.noun_at(words, i)
            if n and not (colour and self._begins_name(words, i + n, at.is_det or bool(at.colours))):
                at.has_head_words = True
                if i + n < len(words) and self._goes_on(words, i + n) and not self._is_modal(words, i + n):
                    at.unknown.append(words[i])
                    at.i += n
                    continue
                return self._name(at, n, name, is_plural)
            if colour:
                at.colours.append(colour)
                at.i += 1
                is_choice = i + 2 < len(words) and words[i + 1] in ("and", "or") and lexicon.colour(words[i + 2])
                if is_choice and self._begins_head(words, i + 2):
                    return None
                continue
            if self._stands_for_name(at):
                return None
            if (m := lexicon.has("vague_nouns", words, i)) and at.is_begun:
                return replace(at.noun, kind="*", is_vague=True), i + m
            if not self._adjective(at):
                return None
        return None

    def _name(self, at: _Phrase, n: int, name: str, is_plural: bool) -> tuple[Noun | None, int] | None:
        words, i = at.words, at.i
        at.noun = replace(self._named(at.noun, name, is_plural), modifier=" ".join(at.unknown) or at.noun.modifier)
        at.i, at.unknown = i + n, []
        if words[at.i : at.i + 1] == ["of"]:  # "a cup of tea"; "the top of the shelf"
            inner, k = self._noun(words, at.i + 1)
            if inner is not None and not inner.pronoun:
                return replace(at.noun, kind="", place="", unknown=" ".join(words[i:k])), k
        return None

    def _stands_for_name(self, at: _Phrase) -> bool:
        """Past "one", "ones", "others", "things"."""
        words, i, noun, lexicon = at.words, at.i, at.noun, self.lexicon
        if noun.is_other and words[i] in WORDS["numbers"] and words[i] != "one" and not self._begins_head(words, i + 1):
            at.take(1, count=WORDS["numbers"].index(words[i]), is_plural=True)  # "the other two"
        elif lexicon.has("ones", words, i) and (at.is_begun or at.colours or words[i] == "ones"):
            at.take(
                1, is_plural=words[i] != "one", is_other=noun.is_other or words[i] == "others",
                modifier=" ".join(at.unknown), quality=noun.quality or ("" if at.colours else at.alone),
            )  # fmt: skip
        elif lexicon.has("anything", words, i) and (at.is_begun or words[i].endswith("s")):
            is_many = words[i].endswith("s")
            is_vague = not is_many or noun.is_vague or not (at.is_det or noun.count != 1)
            modifier = " ".join(at.unknown)  # "the cup things"
            at.take(1, kind="*", modifier=modifier, is_plural=is_many, is_vague=is_vague)
        else:
            return False
        at.has_head_words, at.unknown = True, []
        return True

    def _adjective(self, at: _Phrase) -> bool:
        """Past an adjective, or a word that may be the name of something unknown; False at the end of the phrase."""
        words, i, noun, lexicon = at.words, at.i, at.noun, self.lexicon
        if words[i] in ("first", "last") and at.colours and i + 1 >= len(words):
            return False  # "red first"
        if lexicon.has("adjectives", words, i) and (at.is_begun or self._begins_head(words, i + 1)):
            is_open = lexicon.has("selectors", words, i) and (at.is_det or noun.count == "all")
            if words[i] == "other":
                noun = replace(noun, is_other=True)
            elif words[i] == "more" or is_open:
                noun = replace(noun, is_vague=True)  # in an order that nobody has told
            if lexicon.has("qualities", words, i):
                noun = replace(noun, quality=words[i])
            at.alone = "" if words[i] in ("other", "more", "whole", "own") else words[i]  # "the ugly one"
            if words[i] in ("wrong", "same"):
                noun = replace(noun, modifier=words[i])  # which one that is was not said
            at.noun, at.i = noun, i + 1
            return True
        if lexicon.is_closed(words[i]) or words[i] == "of":
            return False
        is_plural = i == 0 and words[0].endswith("s") and len(words[0]) > 3
        is_plural = is_plural and not words[0].endswith(("ss", "us", "is"))
        if not (at.is_begun or is_plural):  # a name without an article: bare plurals only ("knives")
            return False
        at.unknown.append(words[i])
        at.has_head_words, at.i = True, i + 1
        return True

    def _whole_noun(self, at: _Phrase) -> tuple[Noun | None, int]:
        """What the parts come to."""
        words, start, i, noun, colours = at.words, at.start, at.i, at.noun, at.colours
        noun = replace(noun, is_bare=i == start + 1 and not colours)
        if colours:
            more = " ".join(one for one in colours[1:] if one != colours[0])  # "the yellow red cup"
            noun = replace(noun, colour=colours[0], modifier=noun.modifier or more)
        if at.unknown and not noun.kind and not noun.place:
            noun = replace(noun, unknown=" ".join(at.unknown))
            inner, k = self._noun(words, i + 1) if words[i : i + 1] == ["of"] else (None, i)
            i = k if inner is not None else i
        if noun.is_vague and not at.has_head_words and i > start:
            return replace(noun, kind="*"), i
        if not at.has_head_words and not colours and not (noun.count != 1 and i > start) and not noun.is_other:
            return None, start
        is_each = words[start] == "any" and words[i : i + 1] == ["you"]  # "any bottle you see"
        is_all = noun.is_plural and noun.count == 1 and not noun.is_vague
        if is_each or (is_all and (noun.is_definite or not at.is_det)):
            noun = replace(noun, count="all")
        if noun.count == "both" and not noun.is_plural and words[i : i + 1] == ["and"]:
            noun = replace(noun, count=1)  # "both the cup and the plate"
        if noun.kind and noun.count not in (0, 1, "all") and not noun.is_plural and not noun.is_vague:
            noun = replace(noun, modifier=noun.modifier or " ".join(words[start:i]))  # "two cup"
        if words[i : i + 1] == ["else"]:
            noun, i = replace(noun, is_other=True), i + 1
        return noun, i

    def _everything(self, words: list[str], i: int) -> tuple[Noun, int]:
        noun = Noun(kind="*", count="all", is_plural=True)
        while i < len(words):
            if words[i] == "else":
                noun, i = replace(noun, is_other=True), i + 1
            elif colour := self.lexicon.colour(words[i]):
                noun, i = replace(noun, colour=colour), i + 1
            elif words[i] == "that" and words[i + 1 : i + 2] in (["is"], ["stands"], ["lies"]):
                i += words[i + 2 : i + 3] in (["left"], ["still"])
                n, _ = self.lexicon.relations.at(words, i + 2)
                place, k = self._noun(words, i + 2 + n)
                if not n or place is None or not place.place:
                    return replace(noun, is_vague=True), i + 2
                noun, i = replace(noun, source=place.place), k
            else:
                break
        return noun, i

    def _named(self, noun: Noun, name: str, is_plural: bool) -> Noun:
        if name in self.lexicon.places:
            return replace(noun, place=name, is_plural=is_plural)
        return replace(noun, kind=name, is_plural=is_plural or noun.is_plural or name in self.lexicon.groups)

    def _past_adjectives(self, words: list[str], i: int) -> int:
        while i < len(words) and not self.lexicon.is_closed(words[i]):
            i += 1
        return i

    def _begins_head(self, words: list[str], i: int) -> bool:
        """Whether a name could begin there."""
        if i >= len(words):
            return False
        return (
            bool(self.lexicon.noun_at(words, i)[0] or self.lexicon.colour(words[i]))
            or any(self.lexicon.has(table, words, i) for table in ("ones", "adjectives", "anything"))
            or not (self.lexicon.is_closed(words[i]) or words[i] in ("up", "should", "of"))
        )  # fmt: skip

    def _begins_name(self, words: list[str], i: int, is_det: bool) -> bool:
        """Whether a colour there is followed by what it is the colour of: "orange cup", not "the orange"."""
        if i >= len(words) or words[i] == "or":
            return False
        if self.lexicon.noun_at(words, i)[0] or self.lexicon.has("ones", words, i) or self.lexicon.colour(words[i]):
            return True
        return self._goes_on(words, i)

    def _goes_on(self, words: list[str], i: int) -> bool:
        """Whether the name goes on there: "banana peel", "milk bottle"."""
        if self._is_modal(words, i):
            return False
        if self.lexicon.noun_at(words, i)[0]:
            return True
        if self.lexicon.is_closed(words[i]) or words[i] in ("of", "'s", "standing", "lying", "sitting", "gone"):
            return False
        is_other = any(self.lexicon.has(table, words, i) for table in ("adjectives", "finite", "dues", "manners"))
        is_other = is_other or (words[i].endswith("s") and self.lexicon.verbs.at([words[i][:-1]], 0)[0] > 0)  # "keeps"
        return not is_other and not (words[i].endswith("ed") and self.lexicon.pasts.at(words, i)[0])

    def _is_modal(self, words: list[str], i: int) -> bool:
        """ "The sponge can go there": no tin."""
        behind = words[i + 1 : i + 2]
        is_verb = self.lexicon.verbs.at(words, i + 1)[0] > 0 or bool(SETS["behind_can"].intersection(behind))
        return words[i : i + 1] == ["can"] and is_verb


def _words_kept(noun: Noun) -> list[str]:
    """The words of a noun that no table has, and that whoever reads it looks at."""
    return [*noun.unknown.split(), noun.owner, "'s"]


def _kinds_in(clause: Clause) -> list[Noun]:
    """The things of a clause; where it has none, what stands behind its prepositions."""
    if any(noun.kind or noun.pronoun or noun.colour for noun in clause.nouns):
        return clause.nouns
    behind = [noun for _, noun in clause.targets if noun is not None]
    return [noun for noun in behind if noun.kind or noun.pronoun or noun.colour] or clause.nouns or behind


def _asked_of_what_is_so(clauses: list[Clause]) -> list[Clause]:
    """With what a question about what was done or is so names before it as its part, and as no order.

    "And the cup, did you touch that?", "The cup. Have you moved it?", "Throw it away, did you?".
    """
    found: list[Clause] = []
    for clause in clauses:
        while found and _names_for(found[-1], clause):
            named = found.pop()
            words, nouns = (*named.words, *clause.words), [*named.nouns, *clause.nouns]
            clause = Clause("question", word=clause.word, nouns=nouns, words=words, is_first=named.is_first)
        found.append(clause)
    return found


def _names_for(named: Clause, clause: Clause) -> bool:
    """Whether what stands before a question only says what that is about."""
    if clause.type != "question" or named.nots or named.excepts or named.is_request:
        return False
    is_past = clause.word in _PAST
    if named.type == "order":
        return is_past and set(clause.words) <= _TAG
    is_about_that = is_past and bool(_THAT.intersection(clause.words))
    return named.type == "fragment" and (is_about_that if clause.is_first else is_past or clause.word in _NOW)


def _ends_with(segments: Sequence[PunctuatedWords], number: int) -> str:
    """The mark at the end of the sentence that the segment is part of."""
    for segment in segments[number:]:
        if segment.end in (".", "!", "?", "...", "…"):
            return segment.end
    return ""


@cache
def parser_of(world: OrderVocabulary) -> Parser:
    """The parser with the words of a world; building one takes some ms."""
    return Parser(Lexicon(world.kinds, world.places, dict(world.skill_words)))
