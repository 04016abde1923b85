"""What a goal in prose asks for: a request to somebody, a thing to find out, a thing to keep quiet. Pure.

Goals are written to the participant ("You want to persuade Ana to lend you her drill without mentioning the debt").
What the rules find they turn into first-person speech; what must not be said is set aside first.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_LEAD = re.compile(
    r"^(?:your goal is to|you(?:'d| would) like to"
    r"|you (?:really |also |only )?(?:want|need|hope|have|wish|try|intend|plan)(?: to)?"
    r"|try to|the goal is to|make sure (?:that )?(?:you )?)\s*",
    re.I,
)
_ASK = re.compile(
    r"\b(?:persuade|convince|get|ask|talk|encourage|urge|want|need|invite|remind)\s+"
    r"(?P<who>[A-Z][\w'’-]+(?: [A-Z][\w'’-]+)?|him|her|them"
    r"|(?:your|the|both|everyone|everybody|one of)(?: [\w'’-]+){0,3}?)\s+(?:in)?to\s+(?P<what>[^.;]+)"
)
_FIND = re.compile(
    r"\b(?:find out|learn|discover|figure out|know|understand|establish|work out)\s+(?P<what>[^.;]+)", re.I
)
_QUIET = re.compile(
    r"\b(?:without|avoid|do not|don't|never|keep|hide|conceal|secret|not (?:want|let|tell|reveal|mention|admit|say)|"
    r"nobody|no one|must not|should not|shouldn't)\b",
    re.I,
)
_CUT = re.compile(
    r"\s*(?:,|;|\b(?:without|but not|while keeping|and not|so that|because|since|although|even though)\b).*$", re.I
)
_HINT = re.compile(r"^\s*(?:hint|note|extra information|strategy)\b", re.I)


@dataclass(frozen=True, slots=True)
class Wish:
    """What a seat wants, in words that it may say aloud."""

    request: str = ""  # a verb phrase for "could you ...": "lend me your drill"
    question: str = ""  # a clause for "I was wondering ...": "who broke the window"
    aim: str = ""  # a verb phrase for "I would like to ...": "keep the shop open on Sunday"


def wish_of(goal: str, forbidden: tuple[str, ...]) -> Wish:
    """What the goal asks for; sentences that are about keeping quiet, and forbidden words, never become speech."""
    request = question = aim = ""
    for sentence in re.split(r"(?<=[.!?;])\s+", goal.strip()):
        if _HINT.match(sentence):
            continue
        if not request and (found := _ASK.search(sentence)):
            request = _aloud(found["what"], forbidden)
        if not question and (found := _FIND.search(sentence)):
            question = _aloud(found["what"], forbidden)
        if not aim and not _QUIET.search(sentence) and _LEAD.match(sentence):
            aim = _aloud(_LEAD.sub("", sentence.rstrip(".!? ")), forbidden)
    return Wish(request, question, aim if not request else "")


def first_person(text: str) -> str:
    """Words addressed to the participant as the participant says them: your -> my, you -> me or I."""
    swaps = [
        (r"\byour(s?)\b", lambda found: "my" if not found[1] else "mine"),
        (r"\byourself\b", lambda found: "myself"),
        (r"\b(that|if|when|what|how|why|where|whether|before|after|because|and|while) you are\b", r"\1 I am"),
        (r"\byou are\b", lambda found: "I am"),
        (r"\byou(?:'re|’re)\b", lambda found: "I'm"),
        (r"\byou(?:'ve|’ve)\b", lambda found: "I've"),
        (r"\byou (have|had|can|could|will|would|need|want|did|do|were|was|found|know|saw|took|made|like)\b", r"I \1"),
        (r"\byou\b", lambda found: "me"),
    ]
    for pattern, swap in swaps:
        text = re.sub(pattern, swap, text, flags=re.I)  # type: ignore[call-overload]  # a text or a function
    return text


def _aloud(clause: str, forbidden: tuple[str, ...]) -> str:
    text = first_person(_CUT.sub("", clause).strip(" .!?,\"'"))
    if len(text.split()) < 2 or len(text) > 160 or says_any(text, forbidden) or _QUIET.search(text):
        return ""
    return text[0].lower() + text[1:] if not re.match(r"(I\b|[A-Z][a-z]+ ?[A-Z])", text) else text


def says_any(text: str, words: tuple[str, ...]) -> bool:
    """Whether the text holds one of these words or phrases, as whole words."""
    return any(re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text, re.I) for word in words if word.strip())
