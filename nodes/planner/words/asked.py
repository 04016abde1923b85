"""Which sentences of an utterance ask something, and ask nothing of the robot's hands. Pure functions of the words.

A request in the form of a question ("could you ...?") is an order, and a name with a question mark a doubt: both are
read elsewhere. What is left is answered, and changes nothing.
"""

from __future__ import annotations

import re

from nodes.planner.words.parser import segments_of

_LEADS = re.compile(
    r"^(?:(?:and|but|so|oh|well|then|now|okay|ok|right|hey|hm+|um|uh|ah|wait|sorry|robot|lovely|great|good|nice|fine|aw"
    r"|perfect|cool|alright|all right|thanks|thank you|cheers|actually|just|remind me|tell me|say|no|yes|by the way"
    r"|yeah|i wonder|i (?:would (?:just )?like|(?:just )?want|need) to know|in the end"
    r"|(?:do|can|could|would) you (?:happen to )?(?:know|remember|recall|tell me|say"
    r"|remind me))(?: |$))*"
)
_WH = re.compile(
    r"^(?:(?:in|on|at|to|from|for|with|of|by|about) )?(?:who|whose|whom|what|which|where|why|when|how)\b"
    r"(?!(?: about| if| would you (?:like|feel)| do you (?:like|feel) about)\b)(?! do not (?:you|we)\b| not\b)"
)
_AUXILIARY = re.compile(
    r"^(?:(?:is|are|am|was|were|do|does|did|has|have|had)(?: not)? \w+|any(?:thing|one|body)?\b|(?:all )?done\b"
    r"|(?:all )?ready\b|finished\b|everything (?:done|ready)\b)"
)
_OTHERWISE = re.compile(
    r"^(?:do|does|did|have|has|had)(?: not)? (?:i|we|he|she|[a-z]+) (?:just |not |already )*(?:tell|told|say|said)"
    r"\b|^do you mind\b|^(?:do|did|would) you (?:not )?(?:think|suppose|reckon) you\b"
    r"|^any chance\b|^(?:are|were) you (?:able|willing) to\b"
    r"|^is (?:it|that|this) (?:possible|okay|ok|all right|alright|fine) (?:if|to|for)\b"
)
"""A reproach that may forbid, and requests: no plain questions."""
_STATES = re.compile(
    r"^you (?:have|had|did|are|were|will not)\b|"
    r"^(?!.*\b(?:mine|yours|his|hers|ours)\b)(?:\S+ ){1,5}?(?:(?:is|are)(?: not)?"
    r"(?: (?:still|already|all|both|now))* (?:in|on|at|dirty|clean|empty|full|open|closed|shut|done|finished)\b|gone$)"
)
"""A question in the order of a statement."""
_AGREES = re.compile(r"^is (?:that|this|it) (?:clear|understood|okay|ok|all right|alright|agreed)$")
_TAG = re.compile(r"^(?:is|are|was|were|do|does|did|has|have|had)(?: not)? (?:it|that|they|you|we|i|he|she|there)$")
_WISH = re.compile(r"\b(?:can|could|would|will|might|may) (?:not )?(?:you|i|we)\b(?! (?:see|tell me|reach|hear)\b)")

_ASKS_BESIDE = re.compile(
    r",? (?:and|but|also) (?:also |oh,? )?(?=(?:who|whose|what|which|where|why|when|how|is|are|was|were"
    r"|(?:do|does|did|has|have) (?:you|we|i|it|they|he|she|the|that))\b)", re.I
)  # fmt: skip
_NO_ORDER = re.compile(
    r"(?:the|an?|that|this|those|these|my|your|his|her|our|i|you|it|we|they|he|she|there|nothing|if|when|once|because)\b"
)
"""A question beside an order or another question, and how what is no order begins."""


def sentences_of(text: str) -> list[str]:
    """The utterance in sentences, each with its mark."""
    sentences = [one.strip() for one in re.findall(r"[^.!?…]+[.!?…]*", text) if re.search(r"\w", one)]
    return [part for one in sentences for part in _order_and_question(one)]


def _order_and_question(sentence: str) -> list[str]:
    """ "Bin the block, and where is the cup?" is an order and a question; two questions are two."""
    found = _ASKS_BESIDE.search(sentence) if sentence.endswith("?") else None
    if found is None:
        return [sentence]
    order, question = sentence[: found.start()], sentence[found.end() :]
    is_order = _NO_ORDER.match(_LEADS.sub("", order.lower())) is None and len(order.split()) > 2
    if not words_of_question(question):
        return [sentence]
    if words_of_question(re.sub(r"\b(?:do not|don['’]t) ", "never ", f"{order.lower()}?")):
        return [f"{order}?", question]
    if not is_order:
        return [sentence]
    return [f"{order}{'?' if _WISH.search(order.lower()) else '.'}", question]


def words_of_question(sentence: str) -> str:
    """Its words in small letters, contractions written out, from the question on; "" where it is none."""
    if not sentence.rstrip().endswith("?") and " to know wh" not in sentence and " to know how" not in sentence:
        return ""  # but for "I'd like to know what is there."
    parts = [_LEADS.sub("", " ".join(one.words)) for one in segments_of(sentence)]
    parts = [one for one in parts if one]
    if any(_AGREES.match(one) for one in parts) or any(_WISH.match(one) for one in parts[1:]):
        return ""
    for number, part in enumerate(parts):
        is_wh = _WH.match(part) is not None
        is_tagged = _TAG.match(parts[-1]) is not None and (number < len(parts) - 1 or len(parts) == 1)
        is_asking = is_wh or is_tagged or _AUXILIARY.match(part) is not None or _STATES.match(part) is not None
        wish = _WISH.search(part, len(part.split()[0])) if is_wh else _WISH.search(part)
        if _OTHERWISE.match(part) or (wish and not (is_wh and " and " not in part[: wish.start()])):
            return ""
        if is_asking:
            return " ".join(parts)
    return ""


def asked_apart(text: str) -> list[tuple[str, bool]]:
    """The utterance in runs of sentences, and of each whether it asks: "Where is it? Bring it. Why not?" is three."""
    runs: list[tuple[str, bool]] = []
    for one in sentences_of(text):
        is_asking = bool(words_of_question(one))
        if runs and runs[-1][1] == is_asking and not is_asking:
            runs[-1] = f"{runs[-1][0]} {one}", False
        else:
            runs.append((one, is_asking))
    return runs
