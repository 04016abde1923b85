"""What an utterance asks for, from its words alone; `intent.toml` has the phrases.

A stop outranks everything; then come a request to go on, a bare "mhm", a correction, an order. Colours after a negator
are to be left alone ("not the blue one"); other colours of a correction are wanted ("no, the green one").
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import Literal

from nodes.interrupts.phrase_matcher import (
    Match,
    MatchedClause,
    clauses_in,
    clipped,
    find,
    is_cjk,
    is_clipped,
    is_hangul,
    sounded,
    split_clauses,
    words_of,
)

Wants = Literal["stop", "resume", "amend", "order", "nothing"]
Talk = Literal["", "backchannel", "greeting", "question", "statement", "denial"]
Depth = Literal["stop", "replan", "amend"]
Certainty = Literal["", "maybe", "plainly"]

MOST_BEHIND = 4
"""So many words may stand behind a polite verb of stopping ("for a moment please"); more are what it is about."""
_MOST_BEHIND_CJK = 12
TOLD_REACH = 3
"""Who said "she told me" so many words ago, and then cries out or stops twice, does it now."""
MOST_MISHEARD = 10
"""So many words may be a stop that a recogniser wrote otherwise."""
SHORT_WORDS = 4
"""An utterance of at most this many words that nobody understood may be a shout; two characters of Chinese, Japanese or
Korean are one word."""
CALLED_WORDS = 8
"""The same of a child that calls somebody."""
KNOWN_UTTERANCES = 1024
_NOT_RUSSIAN = frozenset("іїєґўђћјљњџ")
MOST_LETTERS = 20
"""So many letters may be a shout: a language that joins its words says much in four of them."""
_KNOWN_SCRIPTS = ("LATIN", "CYRILLIC", "DEVANAGARI", "ARABIC", "CJK", "HANGUL", "HIRAGANA", "KATAKANA")
_DEPTHS: dict[Wants, Depth | None] = {"stop": "stop", "order": "replan", "amend": "amend"}

_STOPS = ("stop", "stop_end", "stop_alone", "cry")
_CALLS = (*_STOPS, "distress")
_BESIDE_CALL = ("courtesy", "lead", "tail", "no", "body", "me", "stop_unsure")
_BEHIND = ("cry_behind", "stop_between", *_STOPS)
_BEFORE_STOP = ("courtesy", "lead")
_BESIDE_RESUME = ("courtesy", "allowed", "assent", "resume_tail", "anywhere")
_FILLERS = ("courtesy", "lead", "tail", "no", "backchannel")
"""What says nothing by itself beside a stop."""
_APART = ("negator", "order", "no")
"""What begins something new behind the words of a stop; anything else may be what is to be stopped: "stop that cup"."""
_CORRECTS = ("correction", "correction_end", "colour")
_SHOUTED_NO = 3
_ENDS_GUIDING = ("stop", "stop_alone", "stop_unsure", "cry")
_NOT_NOW = frozenset({"elsewhere", "needless", "device"})
"""Tables of words that speak of another time or of something else to stop, or say that nothing need stop."""
_DANGERS = ("distress", "harm", "hurting", "path")
_HURT_BY = ("hurting", ("victim", "body"))
_IN_THE_WAY = ("path", ("victim",))
"""What is said of whom in the same language where somebody is hurt or in danger, whoever says it."""
_SOUNDS_LIKE_HERE = frozenset({"pt"})
"""Languages whose sound of pain is also a place: "põe aí"."""
_HAN = {"ja", "zh"}
"""Languages that share their characters, so that the words of one are found in the other."""
_VERB_LAST = ("hi", "ja", "ko", "tr")
"""Languages in which the verb of telling stands behind what was said, and who is hurt just before what hurts them."""


@dataclass(frozen=True, slots=True)
class Meaning:
    """What one utterance asks for; what an order is about, the planner reads."""

    wants: Wants
    is_about_current: bool = False  # objects to what is being done, without naming it
    takes_back: bool = False  # says that what made the robot stop was a false alarm
    is_sure: bool = True  # stop: said plainly, and not a bare "ah" or "hey"
    is_pain: bool = False  # stop: somebody is hurt, caught or touched
    is_caught: bool = False  # stop: the gripper is to let go of somebody, or somebody cannot get away
    asks_in_vain: bool = False  # a clause asks to go on, and more is said beside it, which may make a story of it
    is_listening: bool = False  # says only "mhm" or "okay"
    talk: Talk = ""  # nothing wanted: what it is instead; "": not known
    may_stop: bool = False  # a stop may stand behind other words: no comma is heard
    is_told: bool = False  # somebody tells what was said or of another time, or says that nothing need stop
    is_short: bool = field(default=False, compare=False)  # as short as a shout, or in a script without a table

    @property
    def depth(self) -> Depth | None:
        """The depth of interrupt that it raises; None where it raises none."""
        return _DEPTHS.get(self.wants)

    @property
    def lifts_stop(self) -> bool:
        """Whether it plainly asks a stopped robot to go on."""
        return self.wants == "resume"

    @property
    def is_unclear(self) -> bool:
        """Whether it may be a shout that nobody understood."""
        is_unknown = self.wants == "nothing" and not self.talk and self.is_short and not self.takes_back
        return self.may_stop or is_unknown


def says_yes(text: str) -> bool:
    """Whether the utterance answers yes and says nothing else."""
    return not is_clipped(text) and find(words_of(text)).is_all(("yes",))


def is_stop(text: str) -> bool:
    """Whether the utterance asks the robot to stop."""
    return understand(text).wants == "stop"


def understand(text: str) -> Meaning:
    """What the utterance asks for; unknown languages and small talk ask for nothing. Results are cached."""
    return _understand(clipped(text))


def known() -> int:
    """How many utterances are cached; at most `KNOWN_UTTERANCES`."""
    return _understand.cache_info().currsize


def forget() -> None:
    """Empty the cache, for measurements."""
    _understand.cache_clear()


@lru_cache(maxsize=KNOWN_UTTERANCES)
def _understand(text: str) -> Meaning:
    clauses, takes_back = _take_back(clauses_in(text))
    if _is_plain_stop(clauses):
        return Meaning(wants="stop", is_pain=_is_pain(clauses), is_caught=_is_caught(clauses))
    names_colour, names_kind = _names_colour(clauses), any(clause.has("kind") for clause in clauses)
    is_whole = not is_clipped(text)  # what nobody looked at may say anything
    wants = _wants(clauses, names_colour, is_whole)
    talk = _talk(clauses) if wants == "nothing" else ""
    return Meaning(
        wants=wants,
        is_about_current=wants == "amend" and not (names_colour or names_kind),
        takes_back=takes_back and wants != "stop" and is_whole,
        is_sure=wants != "stop",
        asks_in_vain=wants not in ("stop", "resume")
        and any(clause.is_all(("resume",), *_BESIDE_RESUME) and not clause.is_asked for clause in clauses),
        is_pain=wants == "stop" and _is_pain(clauses),
        is_caught=wants == "stop" and _is_caught(clauses),
        is_listening=talk == "backchannel",
        talk=talk,
        is_told=any(not _NOT_NOW.isdisjoint(clause.found) or bool(_reports(clause)) for clause in clauses),
        is_short=_is_short(clauses, text) and not (wants == "nothing" and names_kind),
        may_stop=wants not in ("resume", "stop")
        and (_calls_parent(clauses) or any(_may_stop(one) for one in (*clauses, *_wishes_in_two(clauses)))),
    )


# --- stops


def _is_plain_stop(clauses: Sequence[MatchedClause]) -> bool:
    """Whether it contains a stop that is more than a short sound which may be meant for anybody."""
    is_soothed = any("needless" in clause.found for clause in clauses)  # "Easy, it does not hurt"
    for before, clause in pairwise((None, *clauses)):
        is_told = (
            before is not None
            and clause is not None
            and (clause.is_behind_colon or before.ends("reported", "me"))
            and bool(_reports(before))
        )
        is_tag = clause is not None and clause.is_asked and clause.is_all(("question",))  # "..., sai?"
        if clause is None or is_told or is_tag or clause.is_quoted:
            continue
        if _stops(clause) and not (is_soothed and clause.is_all(("allowed",), "courtesy", "tail")):
            return True
    if _tells_parent(clauses) or _is_misheard(clauses) or "plainly" in map(_is_wished, _wishes_in_two(clauses)):
        return True
    said_no = sum(len({one.start for one in clause.of("no")}) for clause in clauses)
    return said_no >= _SHOUTED_NO and all(clause.is_all(("no",), "courtesy") for clause in clauses)


def _tells_parent(clauses: Sequence[MatchedClause]) -> bool:
    """Whether somebody is called, and then told that somebody or something is hurt: "Mommy, it's squashing Leo!"."""
    if len(clauses) < 2 or not clauses[0].is_all(("parent",), *_BEFORE_STOP):
        return False
    return any(_is_now(clause, one) for clause in clauses[1:] for one in clause.of("hurting", "harm"))


def _is_misheard(clauses: Sequence[MatchedClause]) -> bool:
    """Whether all of a short utterance sounds like a stop, or like a cry that is said twice before "my hand"."""
    words = tuple(word for clause in clauses for word in clause.words)
    if not 2 <= len(words) <= MOST_MISHEARD or any(clause.is_all(("back",)) for clause in clauses):
        return False
    is_doubled = words[0] == words[1] and len(words) <= MOST_BEHIND + 1
    if is_doubled and find(words[2:]).ends("body") and not find(words[:2]).has("backchannel"):
        return True
    is_again = 2 * len(set(words)) <= len(words) + 1
    if not is_again and not any(clause.unknown or "sounds" in clause.found for clause in clauses):
        return False
    read, others = sounded(words)
    clause = find(read)
    calls = {one.start for one in clause.of(*_CALLS)}
    return (
        read != words
        and clause.is_all(_CALLS, *_BESIDE_CALL)
        and (not others or len(calls) + others > 2)  # "Wade, please" may be a name
        and not _denies(clause, "stop", "stop_end")
    )


def _stops(clause: MatchedClause) -> bool:
    found = clause.found
    if "needless" in found:  # "no need to stop"
        return "cry" in found or _is_distress(clause)
    if "device" in found:  # "stop the music"
        return clause.opens("cry", *_BEFORE_STOP) or _is_distress(clause)
    if "cry" in found or "stop" in found:
        first = clause.opening(*_BEFORE_STOP)
        calls = [one.start for one in clause.of("cry", "stop") if one.start in first]
        is_said = any(not _is_negated(clause, start) and not _is_told(clause, start) for start in calls)
        if is_said and not clause.is_corrected:
            return True
    if "stop_end" in found:
        last = clause.ending("tail")
        if any(
            one.end in last and not _is_negated(clause, one.start) and not _is_told(clause, one.start)
            for one in found["stop_end"]
        ):
            return True
    if clause.is_all(_STOPS, "courtesy", "lead", "tail") and not _denies(clause, "stop", "stop_end"):
        return True
    if _is_distress(clause) or _forbids_going_on(clause):
        return True
    return "plainly" in (_stands_behind(clause), _is_wished(clause))


def _may_stop(clause: MatchedClause) -> bool:
    if "needless" in clause.found:
        return False
    if clause.is_quoted and _stops(clause):
        return True
    is_named = "elsewhere" not in clause.found and _hurts_somebody_named(clause)
    return (
        is_named
        or bool(_stands_behind(clause) or _is_wished(clause))
        or ("device" in clause.found and clause.opens("stop", *_BEFORE_STOP))
    )


def _stands_behind(clause: MatchedClause) -> Certainty:
    """Whether a stop follows other words, or somebody cries out in it: nobody says commas.

    It is plain where they stop twice ("wait wait"), cry out, or end an order with it, or guide the robot until there.
    One stop may belong to what was said before it, and so may both where somebody tells of them, unless they break off.
    """
    if _ends_guiding(clause):
        return "plainly"
    if "not_this" in clause.found and any(
        _is_behind_nos(clause, one.start) and not _is_told(clause, one.start) for one in clause.of("not_this")
    ):
        return "plainly"
    if clause.found.keys().isdisjoint(_BEHIND):
        return ""
    found: Certainty = ""
    for start in sorted({one.start for one in clause.of(*_BEHIND) if one.start > 0}):
        is_startled = any(one.end == start for one in clause.of("startled"))
        is_sure = any(one.start == start for one in clause.of("cry_behind")) or _is_said_twice(clause, start)
        if not is_sure and not clause.is_all(_CALLS, *_BEFORE_STOP, "tail", first=start):
            continue
        is_sure = (
            is_sure
            or is_startled
            or any(
                is_so(clause, start)
                for is_so in (_is_repeated, _is_behind_no, _is_unmistakable, _ends_order, _is_not_this)
            )
        )
        if not is_sure and (_is_negated(clause, start, 0) or _belongs_to_sentence(clause, start)):
            continue
        if is_sure and (is_startled or not _is_told(clause, start, TOLD_REACH)):
            return "plainly"
        found = "maybe"
    return _stands_between(clause) or found


def _ends_guiding(clause: MatchedClause) -> bool:
    """Whether somebody guides or urges the robot, and a stop or a sound ends that: "a bit more a bit more stop".

    A sound ends an order, too ("pass me the salt ow").
    """
    if clause.found.keys().isdisjoint(_ENDS_GUIDING):
        return False
    first, last = clause.opening("courtesy"), clause.ending("tail")
    stops = [one.start for one in clause.of(*_STOPS) if one.end in last and not _is_told(clause, one.start)]
    begins = min(stops, default=0)
    if _is_urged(clause.words[:begins]):
        return True
    guided = {one.name for one in clause.of("guiding")}
    ordered = {one.name for one in clause.of("order") if one.start in first} - _SOUNDS_LIKE_HERE
    return any(one.end in last and one.name in guided for one in clause.of(*_STOPS)) or any(
        one.end in last and one.start > 1 and one.name in guided | ordered for one in clause.of("stop_unsure", "cry")
    )


def _is_urged(words: Sequence[str]) -> bool:
    """Whether the last words were said twice in a row, as by somebody who guides; one character does not count."""
    return any(
        len(words) >= 2 * many and words[-many:] == words[-2 * many : -many] and len("".join(words[-many:])) > 1
        for many in (1, 2, 3)
    )


def _reports(clause: MatchedClause) -> Sequence[Match]:
    """The verbs by which somebody tells what another one said; "I said stop" is no telling."""
    own = [(one.start, one.end, one.name) for one in clause.of("lead")]
    return [
        one
        for one in clause.of("reported")
        if not any(start <= one.start and one.end <= end and name == one.name for start, end, name in own)
    ]


def _is_told(clause: MatchedClause, start: int, reach: int = MOST_MISHEARD * MOST_MISHEARD) -> bool:
    """Whether what stands there is told of: by a verb before it, and no more than `reach` words before.

    Where verbs come last, what was said may stand before the verb as well.
    """
    return any(
        one.start <= start < one.end + reach or (one.name in _VERB_LAST and start < one.start)
        for one in _reports(clause)
    )


def _stands_between(clause: MatchedClause) -> Certainty:
    """Whether a word that calls a stop may begin a sentence of its own, whatever stands around it.

    Who breaks off with the robot's name or a cry, stops and says why, means it now: "and he said robot stop the lid".
    """
    found = clause.found.keys()
    broken_off = {it.end for it in clause.of("startled")}
    if broken_off and any(
        one.start in broken_off and one.end < len(clause.words)
        for one in clause.of("stop", "stop_sure", "stop_end", "stop_between")
    ):
        return "plainly"
    for one in clause.found.get("stop_between", ()):
        leads = {it.name for it in clause.of("leads_on") if it.end == one.start}
        if _is_told(clause, one.start, TOLD_REACH) or one.name in leads or _is_negated(clause, one.start, 0):
            continue
        says_no = {(it.start, it.name) for it in clause.of("no")} - {(it.start, it.name) for it in clause.of("negator")}
        corrects = one.start in clause.opening(*_BEFORE_STOP) and not found.isdisjoint(_CORRECTS)
        return "plainly" if corrects or (one.start, one.name) in says_no else "maybe"
    return ""


def _is_said_twice(clause: MatchedClause, start: int) -> bool:
    """Whether an imperative stands there and again, or another one, right behind: "... wait wait it is hot"."""
    ends = {(one.end, one.name) for one in clause.of("stop", "stop_end") if one.start == start}
    return any((one.start, one.name) in ends for one in clause.of("stop", "stop_end"))


def _is_unmistakable(clause: MatchedClause, start: int) -> bool:
    """Whether what ends the clause there is no noun and no statement; joined to an order it may be a part of that."""
    languages = {one.name for one in clause.of("stop_sure") if one.start == start}
    languages -= {one.name for one in clause.of("leads_on") if one.end == start}
    if clause.opens("order", "courtesy"):
        languages -= {one.name for one in clause.of("joins") if one.end == start}
    return bool(languages) and not _is_negated(clause, start, 0)


def _ends_order(clause: MatchedClause, start: int) -> bool:
    """Whether an order stands before an imperative of its language, and no word joins the two ("and wait")."""
    if not clause.opens("order", "courtesy"):
        return False
    languages = {one.name for one in clause.of("stop") if one.start == start}
    languages &= {one.name for one in clause.of("order") if one.start < start}
    joined = {one.name for one in clause.of("joins", "leads_on") if one.end == start}
    return bool(languages - joined) and not languages & joined and not _is_negated(clause, start)


def _is_not_this(clause: MatchedClause, start: int) -> bool:
    """Whether all that stands before it is about what is not meant: "not that one stop"."""
    if "not_this" not in clause.found or start > SHORT_WORDS:
        return False
    first = clause.opening("courtesy")
    return any(one.start in first and one.end <= start for one in clause.of("not_this"))


def _is_wished(clause: MatchedClause) -> Certainty:
    """Whether somebody may ask for a stop politely: a wish and a verb of stopping, which nobody tells of or denies.

    It is plain where nothing is named that should stop, and nobody but the robot is spoken of beside the wish.
    """
    found = clause.found
    if "wish" not in found or "stop_verb" not in found or "reported" in found:
        return ""
    languages = {one.name for one in clause.of("wish")} - _away(clause)
    verbs = [one for one in clause.of("stop_verb") if one.name in languages and not _is_negated(clause, one.start)]
    most = _MOST_BEHIND_CJK if is_cjk(clause.words[-1]) else MOST_BEHIND
    reasons = {one.start for one in clause.of("while") if one.name in languages}
    if not any(
        len(clause.words) - one.end <= most or any(one.end <= at <= one.end + MOST_BEHIND for at in reasons)
        for one in verbs
    ):
        return ""
    subjects = {place for one in clause.of("not_robot") for place in (one.end, -one.start)}
    is_asked = any(one.start not in subjects and -one.end not in subjects for one in clause.of("wish"))
    last = clause.ending("tail", "courtesy", "wish") | reasons
    last |= {one.start for one in clause.of("tail") if one.end in reasons}
    return "plainly" if is_asked and any(one.end in last for one in verbs) else "maybe"


def _wishes_in_two(clauses: Sequence[MatchedClause]) -> Iterator[MatchedClause]:
    """Two clauses as one where the first has the wish, and the second what is wished: "Would you mind, if you wait"."""
    for one, other in pairwise(clauses):
        if one.has("wish") and other.has("stop_verb") and not one.has("stop_verb"):
            yield find((*one.words, *other.words))


def _calls_parent(clauses: Sequence[MatchedClause]) -> bool:
    """Whether a child calls somebody and speaks of itself or of the robot: what is done need not be understood."""
    calling = [one for one in clauses if "parent" in one.found and one.opens("parent", *_BEFORE_STOP)]
    return (
        bool(calling)
        and not any(one.has("elsewhere") for one in clauses)
        and any(one.has("me") or one.has("robot_itself") for one in clauses)
    )


def _is_repeated(clause: MatchedClause, first: int) -> bool:
    """Whether two stops follow from there on, of which one is an imperative, or the same words twice."""
    found: list[Match] = []
    imperatives = list(clause.of("stop", "stop_end"))
    for one in sorted((*imperatives, *clause.of("stop_alone")), key=lambda one: (one.start, -one.end)):
        is_denied = not is_cjk(clause.words[one.start]) and one in imperatives and _is_negated(clause, one.start, 0)
        if not is_denied and one.start >= max(first, found[-1].end if found else first):
            found.append(one)
    if len(found) > 1 and found[0].name == found[1].name and any(one in imperatives for one in found):
        return True
    places = {(one.start, one.end) for one in clause.of("stop_alone") if one.start >= first}
    return len(places) > len({clause.words[start:end] for start, end in places})


def _is_behind_no(clause: MatchedClause, start: int) -> bool:
    """Whether the words before it cry out, or say no twice: "... no no stop"."""
    nos = {one.end for one in clause.of("no") if one.end in (start, start - 1) and one.end == one.start + 1}
    return len(nos) == 2 or any(one.end == start for one in clause.of("stop_unsure"))


def _is_behind_nos(clause: MatchedClause, start: int) -> bool:
    """Whether other words and then two noes stand before what is not meant: "that goes up there no no not there"."""
    is_doubled = start > 1 and clause.words[start - 1] == clause.words[start]
    said = [at for at in (start, start + 1) if at > 2 and (at == start or is_doubled)]
    ends = {one.end for one in clause.of("no") if one.end == one.start + 1}
    return any({at, at - 1} <= ends and (at - 2 in ends or at - 2 > 0) for at in said)


def _belongs_to_sentence(clause: MatchedClause, start: int) -> bool:
    """Whether the word before a stop makes it a part of the sentence, as in "the bus stop". What is harmless inside of
    one ("my foot") counts only behind a word that begins something new, such as "and" or "no".
    """
    languages = {one.name for one in clause.of(*_STOPS) if one.start == start}
    if any(one.end == start and one.name in languages for one in clause.of("courtesy", "no")):
        return False
    is_imperative = any(one.start == start for one in clause.of("stop", "stop_end", "cry"))
    return not is_imperative or any(one.end == start for one in clause.of("leads_on"))


def _is_distress(clause: MatchedClause) -> bool:
    """Whether it says that somebody is hurt or caught, here and now."""
    found = clause.found
    if found.keys().isdisjoint(_DANGERS) or (clause.is_asked and "question" in found and "me" not in found):
        return False
    cried = {
        one.end for one in clause.of("startled", "stop_unsure", "cry") if not _is_told(clause, one.start, TOLD_REACH)
    }
    if any(
        one.start > 2 and not cried.isdisjoint((one.start, one.start - 1)) for one in clause.of("distress", "hurting")
    ):
        return True  # "did you water them this morning ah you're pinching me"
    if any(_is_now(clause, one) for one in clause.of("distress")) or any(
        _is_said_of(clause, what, whom) for what, whom in (_HURT_BY, _IN_THE_WAY)
    ):
        return True
    if clause.opens("parent", *_BEFORE_STOP):
        return any(_is_now(clause, one) for one in clause.of("hurting", "harm"))
    is_named = "robot_itself" in found and _hurts_somebody_named(clause)
    return is_named or ("others" not in found and _is_said_of(clause, "harm", ("body",)))


def _hurts_somebody_named(clause: MatchedClause) -> bool:
    """Whether a word that no table knows stands in or right behind a phrase of hurting, as a name: "squashing Leo"."""
    return any(
        _is_now(clause, one) and not clause.unknown.isdisjoint(range(one.start, one.end + 1))
        for one in clause.of("hurting")
    )


def _away(clause: MatchedClause) -> set[str]:
    """The languages in which it speaks of another time or place; "hier" is yesterday in French, and here in German.

    A phrase of several words speaks of it whatever language another word was found in.
    """
    if any(one.end - one.start > 1 and not is_cjk(clause.words[one.start]) for one in clause.of("elsewhere")):
        return {one.name for matches in clause.found.values() for one in matches}
    away = {one.name for one in clause.of("elsewhere")}
    return away | _HAN if away & _HAN else away


def _is_now(clause: MatchedClause, one: Match) -> bool:
    """Whether it is neither told of, nor of another time, nor denied; "no me duele" denies as a whole."""
    is_needless = any(it.start <= one.start < it.end for it in clause.of("needless"))
    return (
        not is_needless
        and one.name not in _away(clause)
        and not _is_told(clause, one.start)
        and not _is_negated(clause, one.start)
    )


def _is_said_of(clause: MatchedClause, what: str, whom: Sequence[str]) -> bool:
    """Whether a phrase of the first table and one of the others stand there in one language, now and not denied."""
    if what not in clause.found:
        return False
    served = _served(clause) if what == "path" else ()
    said = [(one.name, one.end, one.end - one.start) for one in clause.of(*whom) if one.start not in served]
    does = {(name, end) for name, end, words in said if words > 1 and name not in _VERB_LAST and what == "hurting"}
    return any(
        any(name == one.name and (end != one.start or (name, end) not in does) for name, end, _ in said)
        and _is_now(clause, one)
        for one in clause.found[what]
    )


def _served(clause: MatchedClause) -> set[int]:
    """Where "me" is whom something is given or told: "hand me the cup in front of you", and not "get me out"."""
    orders = [one for one in clause.of("order") if one.start in clause.opening("courtesy")]
    served = {at for one in orders for at in (one.end - 1, one.end)}
    things = {one.start for one in clause.of("leads_on", "question", "kind", "colour")}
    return {one.start for one in clause.of("me") if one.start in served and one.end in things}


def _is_pain(clauses: Sequence[MatchedClause]) -> bool:
    """Whether the words of a stop cry out or report distress; "my foot", and "aaah" next to a part of the body, do."""
    if _is_caught(clauses) or any(
        _is_distress(clause) or (clause.has("cry") and not _denies(clause, "cry")) for clause in clauses
    ):
        return True
    bodies = [clause for clause in clauses if clause.has("body") and not clause.has("others")]
    is_cried = any(clause.has("stop_unsure") for clause in clauses)
    return any(is_cried or (clause.ends("body") and len(clause.words) == 2) for clause in bodies)


def _is_caught(clauses: Sequence[MatchedClause]) -> bool:
    """Whether the words of a stop ask to let go, or say that somebody cannot get away."""
    here = [clause for clause in clauses if not clause.has("others") and not clause.has("elsewhere")]
    return any(not _is_negated(clause, one.start) for clause in here for one in clause.of("caught"))


def _forbids_going_on(clause: MatchedClause) -> bool:
    """Whether it opens with "don't go on" and says little more."""
    first = clause.opening("courtesy")
    negators = [one.end for one in clause.of("negator") if one.start in first]
    beside = {one.start for one in clause.of(*_BEFORE_STOP) if one.end == one.start + 1}
    between = {(one.start, end) for one in clause.of("resume") for end in negators}
    return len(clause.words) < 6 and any(start == end or (start == end + 1 and end in beside) for start, end in between)


def _is_negated(clause: MatchedClause, start: int, most_between: int = 2) -> bool:
    """Whether one of the three words before that place negates it; in Chinese and Japanese only the last one.

    It is of a language in which something is found there; "non" negates in Italian, and says no in French.
    """
    if "negator" not in clause.found:
        return False
    before = [one for one in clause.found["negator"] if start - most_between <= one.end <= start]
    if not before:
        return False
    languages = {one.name for matches in clause.found.values() for one in matches if one.start == start}
    said_no = {(one.start, one.name) for one in clause.of("no") if one.name in languages}
    return any(
        one.name in languages
        and clause.words[one.start : one.end] not in (("but",), ("no",))
        and not _is_doubled(clause, one)
        and not any(place == one.start and name != one.name for place, name in said_no)
        and (one.end == start or not is_cjk(clause.words[one.start]))
        for one in before
    )


def _is_doubled(clause: MatchedClause, match: Match) -> bool:
    """Whether the word is said twice: "nie, nie" refuses, and negates nothing that follows."""
    word, around = clause.words[match.start], clause.words[max(match.start - 1, 0) : match.start]
    return match.end == match.start + 1 and word in (*around, *clause.words[match.end : match.end + 1])


def _denies(clause: MatchedClause, *tables: str) -> bool:
    return any(_is_negated(clause, one.start) for one in clause.of(*tables))


def beside_stop(text: str) -> str:
    """What a stop says beside that, in its own words: "Stop! Not the red one." -> "Not the red one."

    Cries and reports of pain are a part of the stop. "" where nothing else was said.
    """
    parts = [part for part in split_clauses(text) if words_of(part)]
    left = [_without_stop(part) for part in parts]
    said = [number for number, rest in enumerate(left) if words_of(rest) and not find(words_of(rest)).is_all(_FILLERS)]
    if not said:
        return ""
    if any(
        rest != part for part, rest in zip(parts[said[0] + 1 : said[-1]], left[said[0] + 1 : said[-1]], strict=True)
    ):
        return text  # between two things that are said, "wait" takes back the first
    return " ".join(rest for rest in left if words_of(rest))


def _without_stop(part: str) -> str:
    """A clause, as it was written, without the words of a stop; "" where it is nothing else, or hurt."""
    clause = find(words_of(part))
    if clause.has("back"):
        return part  # "Put it back" stops as well, and says what is to be done
    is_stop = clause.is_all((*_STOPS, "stop_unsure"), "courtesy", "lead", "tail")
    if is_stop or _is_distress(clause) or _is_hurt(clause):
        return ""
    opening, ending = clause.opening(*_BEFORE_STOP), clause.ending("tail")
    begins = [one.end for one in clause.of("cry", "stop") if one.start in opening]
    ends = [one.start for one in clause.of("stop_end") if one.end in ending and one.start > 0]
    tokens = part.split()
    if begins:
        rest = _behind(tokens, max(begins))
        is_denied = any(one.start < max(begins) for one in clause.of("negator"))  # "Don't you dare take it."
        is_apart = not is_denied and any(find(words_of(" ".join(rest))).opens(one, "courtesy") for one in _APART)
        return " ".join(rest if is_apart else tokens)
    if ends:
        return " ".join(tokens[: len(tokens) - len(_behind(tokens, min(ends)))])
    return part


def _is_hurt(clause: MatchedClause) -> bool:
    """Whether a clause beside a stop only points at a part of somebody: "my toe", "that's my toe"."""
    return clause.ends("body") and not clause.has("others") and not (clause.has("kind") or clause.has("colour"))


def _behind(tokens: Sequence[str], words: int) -> Sequence[str]:
    """The tokens behind so many words; a token may hold two ("half-full") or none."""
    for number, token in enumerate(tokens):
        if words <= 0:
            return tokens[number:]
        words -= len(words_of(token))
    return ()


# --- going on


def _lifts(clauses: Sequence[MatchedClause]) -> bool:
    """Whether it plainly asks to go on: all that is said is on the list of such phrases, in one language.

    Only what is listed may stand beside it. So nothing has to be known of the ways to tell of going on, to ask about
    it, to delay it or to refuse it.
    """
    asking = [clause for clause in clauses if clause.has("resume")]
    if not asking or any(clause.is_asked and not clause.opens("request", "courtesy", "assent") for clause in asking):
        return False
    languages = {one.name for one in asking[0].of("resume")}
    said = clauses
    if clauses[0].is_all(("no",)):  # "No, go on."
        if any(one.name in languages for one in clauses[0].of("no_or_not")):  # "No, siga" may have been "No siga"
            return False
        said = clauses[1:]
    return any(
        all(one.is_all(("resume",) if one in asking else _BESIDE_RESUME, *_BESIDE_RESUME, language=language)
            for one in said)
        for language in languages
    )  # fmt: skip


# --- the rest


def _wants(clauses: Sequence[MatchedClause], names_colour: bool, is_whole: bool) -> Wants:
    if _is_bare_sound(clauses):
        return "stop"
    if is_whole and _lifts(clauses):
        return "resume"
    if not clauses or any(_denies(clause, "stop", "stop_end") for clause in clauses):
        return "nothing"
    if all(clause.is_all(("backchannel",), "courtesy") for clause in clauses):
        return "nothing"
    if clauses[0].opens("correction", "courtesy"):
        return "amend"
    if any(clause.opens("order", "courtesy") or clause.ends("order_end") for clause in clauses):
        return "order"
    if names_colour or any(_corrects(clause) for clause in clauses):
        return "amend"
    return "nothing"


def _is_bare_sound(clauses: Sequence[MatchedClause]) -> bool:
    """Whether there is an "ah" or "hey", with nothing beside it that explains it."""
    sounds = [clause for clause in clauses if clause.is_all(("stop_unsure",), "courtesy") and not clause.is_quoted]
    others = [clause for clause in clauses if clause not in sounds]
    is_explained = any(clause.opens("order", "courtesy") or clause.has("correction_end") for clause in others)
    return bool(sounds) and not (is_explained or _talk(others))


def _corrects(clause: MatchedClause) -> bool:
    return clause.opens("correction", "courtesy") or clause.ends("correction_end")


def _talk(clauses: Sequence[MatchedClause]) -> Talk:
    """What kind of talk an utterance is that asks for nothing."""
    if not clauses:
        return ""
    if any("needless" in clause.found or _denies(clause, "stop", "stop_end") for clause in clauses):
        return "denial"
    if all(clause.is_all(("backchannel",), "courtesy") for clause in clauses):
        return "backchannel"
    if any(clause.is_asked or clause.has("question") for clause in clauses):
        return "question"
    if clauses[0].opens("greeting", "courtesy", "backchannel"):
        return "greeting"
    if clauses[0].opens("backchannel", "courtesy") or clauses[-1].is_all(("closing",), "courtesy", "tail"):
        return "statement"  # "Thank you for your attention"
    if any(clause.has("telling") or clause.has("withheld") or clause.has("ordinary") for clause in clauses):
        return "statement"
    return "statement" if all(clause.is_all(("allowed", "false_alarm"), "courtesy") for clause in clauses) else ""


def _is_short(clauses: Sequence[MatchedClause], text: str) -> bool:
    said = [word for clause in clauses for word in clause.words]
    words = sum(0.5 * len(word) if is_cjk(word) or is_hangul(word) else 1.0 for word in said)
    if clauses and "parent" in clauses[0].found:
        return words <= CALLED_WORDS
    is_shout = 0 < words <= SHORT_WORDS and sum(map(len, said)) <= MOST_LETTERS
    return is_shout or (words > 0 and not _is_known_script(text))


def _is_known_script(text: str) -> bool:
    """Whether most of its letters belong to a script that the tables cover."""
    if text.isascii():
        return True
    letters = [character for character in text[:100] if character.isalpha()]
    known = sum(unicodedata.name(letter, "").startswith(_KNOWN_SCRIPTS) for letter in letters)
    return 2 * known >= len(letters) and _NOT_RUSSIAN.isdisjoint(text.casefold())


def _names_colour(clauses: Sequence[MatchedClause]) -> bool:
    """Whether a colour is wanted, or to be left alone; "I like the blue cup" wants none."""
    return any(clause.has("colour") and not clause.opens("liking", "courtesy", "backchannel") for clause in clauses)


def _take_back(clauses: Sequence[MatchedClause]) -> tuple[tuple[MatchedClause, ...], bool]:
    """The clauses without the words that take something back, and whether there were such words."""
    if not any(clause.has("false_alarm") for clause in clauses):
        return tuple(clauses), False
    left: list[MatchedClause] = []
    languages: set[str] = set()
    is_asked = False
    for clause in clauses:
        taken = [one for one in clause.of("false_alarm") if not _is_negated(clause, one.start)]
        if not taken:
            left.append(clause)
            continue
        is_asked = is_asked or clause.is_asked
        languages.update(one.name for one in taken)
        gone = {place for one in taken for place in range(one.start, one.end)}
        if words := tuple(word for place, word in enumerate(clause.words) if place not in gone):
            left.append(find(words))
            left[-1].is_asked = clause.is_asked
    is_plain = any(
        all(one.is_all(("resume", *_BESIDE_RESUME), language=language) and not one.is_asked for one in left)
        for language in languages
    )  # as with going on: who tells of a false alarm says more than that
    return tuple(left), is_plain and not is_asked
