"""What people and models say of a deal: numbers, divisions, yes and no, giving way. Pure: texts in, values out.

A sentence that asks ("Agreed?") accepts nothing, one with a condition offers, and a no beside a yes is a no.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

from runtime.msgs.episode import Deal, Facts, Turn

Stance = Literal["yes", "no", "open"]
Share = dict[str, int]

_UNITS = {
    "EUR": r"eur|euros?|€",
    "USD": r"usd|dollars?|bucks|\$",
    "GBP": r"gbp|pounds?|quid|£",
}
_SIGNS = {"EUR": "€", "USD": r"\$", "GBP": "£"}
_WORDS = {"no": 0, "zero": 0, "a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6}
_WORDS |= {"seven": 7, "eight": 8, "nine": 9, "ten": 10, "eleven": 11, "twelve": 12, "thirteen": 13, "fourteen": 14}
_WORDS |= {"fifteen": 15, "sixteen": 16, "seventeen": 17, "eighteen": 18, "nineteen": 19, "twenty": 20, "thirty": 30}
_WORDS |= {"forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90}
_COUNTS = "|".join(word for word in _WORDS if word not in ("no", "a", "an"))
_SPELLED = re.compile(
    rf"\b(?:{_COUNTS}|an?(?= (?:hundred|thousand)\b))(?:(?:[ -]|(?<=hundred) and |(?<=thousand) and )"
    rf"(?:hundred|thousand|(?<=hundred )(?:{_COUNTS})|(?<=thousand )(?:{_COUNTS})|(?<= and )(?:{_COUNTS})"
    rf"|(?<=ty[ -])(?:{_COUNTS})))*\b",
    re.I,
)
_AMOUNT = r"([1-9]\d{0,2}(?:\.\d{3})+(?!\d)|\d{1,3}(?:[,  ]\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?k?)"

_NO = re.compile(
    r"\b(no deal|never|no way|not agreed|(?:can|could|do|will|would)(?:no|n['’])t (?:accept|agree"
    r"|do (?:that|it|this)|go"
    r"|take (?:that|it)|pay|sell|shake|call (?:that|it))|cannot|won['’]t|not (?:a|my|our) deal|isn['’]t a deal"
    r"|not for (?:that|this|less|more)|out of the question|forget it|i pass|i['’]ll pass|i['’]m out"
    r"|i (?:have to |must )?(?:decline|refuse)|not a chance|not interested|i['’]d rather not"
    r"|too (?:much|low|little|high|far)"
    r"|i disagree|absolutely not|i['’]m afraid not|not (?:quite )?yet|no thanks?|no,? thank you|deal['’]?s off"
    r"|not enough|i take (?:it|that) back|rather not|i doubt|hardly|in your dreams|dream on|you must be joking|as if"
    r"|nobody|not today|not happening|no chance|not (?:going to|gonna)|nowhere near|walk away|still no)\b"
    r"|^\s*(?:no|nope|nah)\b",
    re.I,
)
_LEAD = (
    r"(?:(?:ok(?:ay)?|yes|yeah|yep|fine|all right|alright|well|then|so|good|great|sure|right"
    r"|very well|oh|and|but|hm+|you know"
    r" what|in that case|perfect|wonderful|excellent)[\s,.!]+)*"
)
_YES = re.compile(
    rf"^{_LEAD}(?:it['’]?s a deal|that['’]?s a deal|(?:we|you)(?:['’]ve"
    rf"| have)? (?:got )?(?:yourself )?a deal|deal(?: then)?"
    r"|(?:i['’]m |i am |we['’]re |consider it |that['’]?s )?(?:agreed|settled|done|sold)(?: then)?"
    r"|i accept(?: (?:it|your offer|this|the offer|the price).*)?|i agree(?: to (?:it|that|this).*)?|accepted"
    r"|(?:it|she|he|they)(?:['’]s|['’]re| is| are) (?:all )?yours.*|i(?:['’]ll| will) take (?:it|that|them)\b.*"
    r"|(?:that |it |this )?(?:works|is fine|is good|suits me|will do)(?: for me| by me| with me)?"
    r"|(?:sounds|that['’]?s) (?:good|fair|fine|great|reasonable)(?: to me| enough)?|(?:fine|good) (?:by|with|for) me"
    r"|i can (?:live with|do|accept|work with) (?:that|it|this).*|let['’]s (?:do it|do that"
    r"|shake(?: hands)?(?: on (?:it|that))?)"
    r"|i(?:['’]m| am|['’]d be| would be) (?:happy|glad) to (?:accept|agree)(?: (?:to )?(?:it|that|(?:your|the) offer))?"
    r"|you(?:['’]ve| have) got yourself an? \w+|done and done|shake on it"
    r"|(?:here['’]s|give me) (?:my|your) hand.*|so be it|you(?:['’]ve| have) (?:talked"
    r"|persuaded|convinced).*|you win"
    r"|(?:it['’]s |that['’]s )?a bargain|where do i sign|i(?:['’]m| am) in|count me in|gladly|with pleasure|fair enough"
    r"|have it your way|as you wish|i(?:['’]ll| will) (?:pay|give you|have|buy) (?:it|that)"
    r"|(?:my )?hand on it|i(?:['’]m| am) (?:happy|fine|content) with (?:it|that)|wrap it up|we have an understanding"
    r"|consider it done|my pleasure|it['’]s done|then it['’]s settled|that is settled(?: then)?)$",
    re.I,
)
_NUMBER_YES = re.compile(
    rf"^{_LEAD}(?:for |at |make it |(?:let['’]s |we['’]ll )?(?:say |call it |settle (?:at|on|for) "
    r"|(?:proceed|go) with )"
    r"|i(?:['’]ll| will| can) (?:take|pay|give you|do|accept|agree to)(?: it (?:for|at))? "
    r"|i(?:['’]m| am) (?:happy|fine|content) with "
    r"|i (?:accept|agree to|agree on) |(?:it|she|he|they)(?:['’]s|['’]re| is| are) yours (?:for|at) |sold (?:for|at) "
    r"|you(?:['’]ve| have)? (?:can have|may have|got|get) it (?:for|at) |agreed at |deal at )?"
    r"NUMBER(?: it is| then| and (?:it|she|he)(?:['’]s| is) yours| sounds (?:good|fair|right)| works(?: for me)?"
    r"| is (?:fine|good|fair)(?: by me| with me)?| and be done| is right| is good| suits me| done"
    r"| and not a cent more)?(?: with it| euros)?$",
    re.I,
)
_MONEY = re.compile(rf"(?:[€$£]\s*)?{_AMOUNT}(?:\s*(?:euros?|eur|€|dollars?|usd|\$|pounds?|gbp|£))?", re.I)
_IF = re.compile(
    r"\b(if|unless|provided|only when|once you|as long as|would be|could be|might|maybe|perhaps"
    r"|let me think|almost|nearly|before|until)\b",
    re.I,
)
_NEUTRAL = re.compile(r"^(?:yes|yeah|ok(?:ay)?|fine|all right|alright|sure|very well|good|great|perfect)$", re.I)
_BUT = re.compile(r"\b(but|however|only|except|although|though)\b", re.I)
_GIVES_WAY = re.compile(
    r"\b(have it your way|you (?:can |may |shall )?have it|you win|as you wish|i give way|i give in"
    r"|you(?:['’]ve| have) (?:convinced|persuaded|talked) me|for your sake|i(?:['’]ll| will) do as you (?:ask|say)"
    r"|all right, (?:then )?(?:take|keep|have) it)\b",
    re.I,
)


def numbers_in(text: str, deal: Deal) -> list[float]:
    """The numbers of the deal's unit that a text names, in order: "1,500 euros", "€1500", "1.5k EUR", "two nights"."""
    if not deal.unit:
        return []
    text = _in_digits(text)
    unit, sign = _unit(deal)
    found = re.findall(rf"{_AMOUNT}\s*(?:{unit})(?!\w)|(?:{sign})\s*{_AMOUNT}", text, re.I)
    return [_value(first or second) for first, second in found]


def _unit(deal: Deal) -> tuple[str, str]:
    known = _UNITS.get(deal.unit.upper())
    if known:
        return known, f"{_SIGNS[deal.unit.upper()]}|{deal.unit}"
    unit = re.escape(deal.unit)
    return rf"{unit}|{re.escape(deal.unit.removesuffix('s'))}", unit


@lru_cache(maxsize=4096)
def _in_digits(text: str) -> str:
    return _SPELLED.sub(lambda found: str(_count(found[0])), text)


def _count(words: str) -> int:
    """ "a thousand five hundred and fifty" as 1550."""
    whole = part = 0
    for word in re.split(r"[ -]", words.lower()):
        if word == "hundred":
            part *= 100
        elif word == "thousand":
            whole, part = whole + part * 1000, 0
        elif word != "and":
            part += _WORDS[word]
    return whole + part


def _value(text: str) -> float:
    plain = re.sub(r"[,  ](?=\d{3})", "", text.lower())
    plain = plain.replace(".", "") if re.fullmatch(r"[1-9]\d{0,2}(?:\.\d{3})+", plain) else plain
    return float(plain.removesuffix("k")) * (1000.0 if plain.endswith("k") else 1.0)


def _sentences(text: str) -> list[tuple[str, str]]:
    """The sentences with the mark at the end of each."""
    return [
        (part[0].strip(), part[1]) for part in re.findall(r"((?:[^.!?]|\.(?=\d))+)([.!?]*)", text) if part[0].strip()
    ]


@lru_cache(maxsize=4096)
def stance(text: str, number: float | None = None) -> Stance:
    """Whether a text accepts what stands in the room (`number`, where it is one), turns it down, or leaves it open.

    The last clause that says either counts; of "X, but Y" only Y does.
    """
    found: Stance = "open"
    text = _in_digits(text).replace("\u2014", ", ").replace(" - ", ", ")
    if number is not None and any(_value(one) not in (number, 0.0) for one in re.findall(_AMOUNT, text)):
        return "no" if _NO.search(text) else "open"  # another number is a counter-offer
    for sentence, mark in _sentences(text):
        if "?" in mark:
            continue
        said = _BUT.split(sentence)[-1] if _BUT.search(sentence) else sentence
        if said is not sentence and found == "yes":
            found = "open"
        if _IF.search(said):
            found = "no" if _NO.search(said) else found
            continue
        for clause in re.split(r",(?!\d)|[;:]|\band (?=(?:it|she|he)\b)", said):
            clause = clause.strip(" \"'“”*")
            named = number is not None and bool(re.search(_AMOUNT, clause))
            masked = _MONEY.sub("NUMBER", clause) if named else clause
            if _NO.search(clause):
                found = "no"
            elif (
                _YES.match(clause)
                or (named and _NUMBER_YES.match(masked))
                or (number is not None and found == "open" and _NEUTRAL.match(clause))
            ):
                found = "yes"
    return found


def says_yes(text: str) -> bool:
    """Whether a text accepts what was offered."""
    return stance(text) == "yes"


def gives_way(text: str) -> bool:
    """Whether somebody does what the other wants, in so many words."""
    return any(
        _GIVES_WAY.search(sentence) and not ("?" in mark or _IF.search(sentence) or _NO.search(sentence))
        for sentence, mark in _sentences(text)
    )


def offers(turns: Sequence[Turn], deal: Deal) -> list[tuple[str, float]]:
    """Who named which number, in order; a text with several counts with its last one."""
    found = []
    for turn in turns:
        if turn.kind == "speak" and (numbers := numbers_in(turn.argument, deal)):
            found.append((turn.speaker, numbers[-1]))
    return found


def agreed_number(turns: Sequence[Turn], deal: Deal) -> float | None:
    """The number that one side accepts of what another offered last; None without a deal, or where it is taken back."""
    named: list[tuple[str, float]] = []
    agreed: float | None = None
    for turn in turns:
        if turn.kind != "speak":
            continue
        numbers = numbers_in(turn.argument, deal)
        if agreed is not None:
            if re.search(r"\b(deal['’]?s off|i take (?:it|that) back|changed my mind)\b", turn.argument, re.I):
                agreed = None
            continue
        others = [number for speaker, number in named if speaker != turn.speaker]
        if others and (not numbers or numbers[-1] == others[-1]) and stance(turn.argument, others[-1]) == "yes":
            agreed = others[-1]
        named.extend((turn.speaker, number) for number in numbers[-1:])
    return agreed


def division_in(text: str, speaker: str, deal: Deal, names: Sequence[str]) -> dict[str, Share] | None:
    """Who would get what: "I take 2 books and 1 hat, you get 1 ball", or with names; None where it is no division.

    What nobody is given goes to the one that nothing was said of.
    """
    others = [name for name in names if name != speaker]
    heads = {name.split()[0].lower(): name for name in names} | {"i": speaker}
    if len(others) == 1:
        heads["you"] = others[0]
    who = "|".join(re.escape(head) for head in heads)
    marks = list(
        re.finditer(rf"\b({who})(?:['’](?:d|ll)| would| will)?(?:\s+(?:take|get|keep|have)s?\b|:)", text, re.I)
    )
    if not marks or not any(heads[mark[1].lower()] == speaker for mark in marks) or "?" in text[: marks[0].start()]:
        return None
    shares: dict[str, Share] = {}
    for mark, end in zip(marks, [*(one.start() for one in marks[1:]), len(text)], strict=True):
        shares[heads[mark[1].lower()]] = _counted(text[mark.end() : end], deal)
    if len(shares) < len(names) - 1 or not any(shares.values()):
        return None
    missing = next((name for name in names if name not in shares), None)
    left = {item: count - sum(share.get(item, 0) for share in shares.values()) for item, count in deal.items.items()}
    if min(left.values()) < 0:
        return None
    receiver = missing or (others[0] if len(others) == 1 else "")
    full = {name: {item: shares.get(name, {}).get(item, 0) for item in deal.items} for name in names}
    if receiver:
        for item, count in left.items():
            full[receiver][item] += count
    return full


def _counted(text: str, deal: Deal) -> Share:
    found: Share = {}
    for item in deal.items:
        head, space, rest = re.fullmatch(r"(.*?)( (?:of|to|for|in) |$)(.*)", item).groups()  # type: ignore[union-attr]
        name = re.escape(head.removesuffix("s")) + "(?:e?s)?" + re.escape(space + rest.removesuffix("s"))
        match = re.search(rf"\b(\d+|all(?: the)?|the|{'|'.join(_WORDS)})\s+(?:of the\s+)?{name}(?:e?s)?\b", text, re.I)
        if match:
            word = match[1].lower()
            many = deal.items[item] if word.startswith(("all", "the")) else _WORDS.get(word)
            found[item] = min(deal.items[item], int(word) if many is None else many)
    return found


def agreed_shares(turns: Sequence[Turn], deal: Deal, names: Sequence[str]) -> dict[str, Share] | None:
    """Who gets what by the division that all others accepted; None without one."""
    last: dict[str, Share] | None = None
    missing: set[str] = set()
    for turn in turns:
        if turn.kind != "speak":
            continue
        named = division_in(turn.argument, turn.speaker, deal, names)
        if last is not None and turn.speaker in missing and says_yes(turn.argument) and named in (None, last):
            missing.discard(turn.speaker)
            if not missing:
                return last
        elif named is not None:
            last, missing = named, set(names) - {turn.speaker}
    return None


def limits(facts: Facts, deal: Deal) -> tuple[float, float]:
    """Target and reserve; what a scenario leaves out follows from the other one and from what is asked."""
    opening = deal.opening if deal.opening is not None else (facts.target or facts.reserve or 100.0)
    is_low = facts.wants != "high"
    target = facts.target if facts.target is not None else opening * (0.7 if is_low else 1.0)
    reserve = facts.reserve if facts.reserve is not None else target * (1.2 if is_low else 0.8)
    return target, reserve


def worth(share: Share, facts: Facts) -> float:
    """Points of a share for one seat."""
    return sum(count * facts.worth.get(item, 0.0) for item, count in share.items())
