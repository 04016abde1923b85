"""What a goal in prose asks for: a request to somebody, a thing to find out, a thing to keep quiet. Pure.

Goals are written to the participant ("You want to persuade Ana to lend you her drill without mentioning the debt").
What the rules find they turn into first-person speech; what must not be said is set aside first.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

_LEAD = re.compile(
    r"^(?:your goal is to|you(?:'d| would) like to"
    r"|you (?:really |also |only )?(?:want|need|hope|have|wish|try|intend|plan|mean) to"
    r"|try to|the goal is to|make sure (?:that )?(?:you )?)\s+",
    re.I,
)
_THING = re.compile(r"^You (?:really |also |only )?(?:want|need) (?!to\b|your \w+ to\b|it\b)(?P<what>[^.;:,]+)")
_ASK = re.compile(
    r"\b(?i:persuade|convince|get|ask|encourage|urge|want|need|invite|remind)\s+"
    r"(?P<who>[A-Z][\w'’-]+(?: [A-Z][\w'’-]+)?|him|her|them|your(?: [\w'’-]+){1,2}?|both|everyone|everybody"
    r"|the (?:others?|strangers?|robot|friend|two|relative)(?: [\w'’-]+){0,2}?)"
    r"\s+(?:in)?to\s+(?!be\b|know\b|hand\b)(?P<what>[^.;]+)"
)
_FIND = re.compile(
    r"\b(?:find out|learn|discover|figure out|want to know|establish|work out)\s+"
    r"(?P<what>(?:who|whose|what|how|whether|if|why|where|when|which)\b[^.;]+)",
    re.I,
)
_QUIET = re.compile(
    r"\b(?:without|avoid|do not|don't|never|keep|hide|conceal|secret|not (?:want|let|tell|reveal|mention|admit|say)|"
    r"nobody|no one|must not|should not|shouldn't)\b",
    re.I,
)
_CUT = re.compile(
    r"\s*(?:,|;|\b(?:without|but not|while keeping|and not|so that|because|since|although|even though)\b).*$", re.I
)
_AGAINST = re.compile(r"^You (?:do not|don't|would rather not) (?:want to )?(?P<what>[a-z][^.;,]+)")
_ORDER = re.compile(r"^(?:Get|Make|Find|Keep|Bring|Win|Save|Sell|Buy|Take|Reach|Settle|Agree|Help|Let|Put|Have)\b")
_PRIVATE = re.compile(
    r"\b(want|hope|wish|would|rather|secret|ashamed|pretend|afraid|lie|lied|suspect|certain|sure|promised|points?|worth|"
    r"notice[ds]?|mention|robot|know|admit|tonight you|nobody|who you|fear|hurt)\b|\d",
    re.I,
)
_VERBS = "must|may|might|should|have|had|can|could|will|would|need|want|did|do|found|know|saw|took|made|like"
_HINT = re.compile(r"^\s*(?:hint|note|extra information|strategy)\b", re.I)


@dataclass(frozen=True, slots=True)
class Wish:
    """What a seat wants, in words that it may say aloud."""

    request: str = ""  # a verb phrase for "could you ...": "lend me your drill"
    question: str = ""  # a clause for "I was wondering ...": "who broke the window"
    aim: str = ""  # a verb phrase for "I would like to ...": "keep the shop open on Sunday"
    refusal: str = ""  # a verb phrase for "I would rather not ...": "sign"
    reasons: tuple[str, ...] = ()  # sentences about oneself that may be said aloud


@cache
def wish_of(goal: str, forbidden: tuple[str, ...]) -> Wish:
    """What the goal asks for; sentences that are about keeping quiet, and forbidden words, never become speech."""
    request = question = aim = refusal = ""
    reasons: list[str] = []
    for sentence in re.split(r"(?<=[.!?;])\s+", goal.strip()):
        if _HINT.match(sentence):
            continue
        if not request and (found := _ASK.search(sentence)):
            request = _aloud(found["what"], forbidden)
        if not question and (found := _FIND.search(sentence)):
            question = _aloud(found["what"], forbidden)
        if not refusal and (against := _AGAINST.search(sentence)):
            refusal = _aloud(against["what"], forbidden, shortest=1)
        elif not aim and not _QUIET.search(sentence) and (_LEAD.match(sentence) or _ORDER.match(sentence)):
            aim = _aloud(_LEAD.sub("", sentence.rstrip(".!? ")), forbidden)
        elif not aim and not _QUIET.search(sentence) and (thing := _THING.match(sentence)):
            aim = _aloud("have " + thing["what"], forbidden)
        elif reason := _reason(sentence, forbidden):
            reasons.append(reason)
    return Wish(request, question, aim if not request else "", refusal, tuple(reasons[:4]))


def _reason(sentence: str, forbidden: tuple[str, ...]) -> str:
    """A sentence about oneself as one says it: "You paint at night." -> "I paint at night."; "" where it is private."""
    sentence = sentence.strip(" ;.") + "."
    if _PRIVATE.search(sentence) or _QUIET.search(sentence) or not re.match(r"(You|Your|The|It|There)\b", sentence):
        return ""
    if re.match(r"You (?:are the|did|broke|were told|live here)\b", sentence) or len(sentence.split()) < 5:
        return ""
    if len(re.findall(r"\byou\b", sentence, re.I)) > 1 or "believe that" in sentence:
        return ""
    text = re.sub(r"^You(?:'re| are)\b", "I am", sentence)
    text = re.sub(r"^You were\b", "I was", text)
    text = re.sub(r"^You\b", "I", text)
    text = first_person(text)
    return "" if len(text) > 160 or says_any(text, forbidden) else text


def first_person(text: str) -> str:
    """Words addressed to the participant as the participant says them: your -> my, you -> me or I."""
    swaps = [
        (r"\byour(s?)\b", lambda found: "my" if not found[1] else "mine"),
        (r"\byourself\b", lambda found: "myself"),
        (r"\b(that|if|when|what|how|why|where|whether|before|after|because|and|while) you are\b", r"\1 I am"),
        (r"\byou are\b", lambda found: "I am"),
        (r"\byou(?:'re|’re)\b", lambda found: "I'm"),
        (r"\byou(?:'ve|’ve)\b", lambda found: "I've"),
        (r"\byou were\b", "I was"),
        (r"\b(until|till|before|after|when|while|if|that|because|as|where|what|how|why|whether) you\b", r"\1 I"),
        (rf"\byou ({_VERBS})\b", r"I \1"),
        (r"\byou\b", lambda found: "me"),
    ]
    for pattern, swap in swaps:
        text = re.sub(pattern, swap, text, flags=re.I)  # type: ignore[call-overload]  # a text or a function
    return text


def _aloud(clause: str, forbidden: tuple[str, ...], shortest: int = 2) -> str:
    text = first_person(_CUT.sub("", clause).strip(" .!?,\"'"))
    if len(text.split()) < shortest or len(text) > 160 or says_any(text, forbidden) or _QUIET.search(text):
        return ""
    return text[0].lower() + text[1:] if not re.match(r"(I\b|[A-Z][a-z]+ ?[A-Z])", text) else text


def says_any(text: str, words: tuple[str, ...]) -> bool:
    """Whether the text holds one of these words or phrases, as whole words."""
    return any(re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text, re.I) for word in words if word.strip())
