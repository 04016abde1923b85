"""Amounts as people say them: "1,500 euros", "€1500", "fifteen hundred", "two fifty". Pure: texts in, values out.

A number with the deal's unit always counts. One without counts only for money, where nothing that is counted follows it
("20 minutes") and where it is near what was named before.
"""

from __future__ import annotations

import re
from functools import lru_cache

from runtime.msgs.episode import Deal

_CURRENCIES = {  # what is said of each, and what stands before the number
    "EUR": (r"eur|euros?|€", "€|eur"),
    "USD": (r"usd|dollars?|bucks|\$", r"\$|usd"),
    "GBP": (r"gbp|pounds?|quid|£", "£|gbp"),
    "CHF": (r"chf|(?:swiss )?francs?|sfr", r"chf|sfr|fr\.?"),
    "JPY": (r"jpy|yen|¥", "¥|jpy"),
    "CNY": (r"cny|rmb|yuan|¥", "¥|rmb"),
    "INR": (r"inr|rupees?|₹", r"₹|rs\.?|inr"),
    "SEK": (r"sek|kron(?:or|a)|kr", "sek|kr"),
    "NOK": (r"nok|kron(?:er|e)|kr", "nok|kr"),
    "DKK": (r"dkk|kron(?:er|e)|kr", "dkk|kr"),
    "PLN": (r"pln|zł|z[lł]ot(?:ys?|ies|ych)?", "pln"),
    "MXN": (r"mxn|pesos?", r"\$|mxn"),
    "TRY": (r"try|liras?|₺", "₺"),
    "KRW": (r"krw|won|₩", "₩"),
}
WORDS = {"no": 0, "zero": 0, "a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6}
WORDS |= {"seven": 7, "eight": 8, "nine": 9, "ten": 10, "eleven": 11, "twelve": 12, "thirteen": 13, "fourteen": 14}
WORDS |= {"fifteen": 15, "sixteen": 16, "seventeen": 17, "eighteen": 18, "nineteen": 19}
_TENS = {"twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90}
WORDS |= _TENS
_COUNTS = "|".join(word for word in WORDS if word not in ("no", "a", "an"))
_SPELLED = re.compile(
    rf"\b(?:{_COUNTS}|an?(?= (?:hundred|thousand)\b))(?:(?:[ -]|(?<=hundred) and |(?<=thousand) and )"
    rf"(?:hundred|thousand|(?<=hundred )(?:{_COUNTS})|(?<=thousand )(?:{_COUNTS})|(?<= and )(?:{_COUNTS})"
    rf"|(?<=ty[ -])(?:{_COUNTS})))*\b",
    re.I,
)
_BELOW_100 = rf"(?:{'|'.join(_TENS)})(?:-(?:one|two|three|four|five|six|seven|eight|nine))?"
_PAIR = re.compile(rf"\b({_BELOW_100}|{_COUNTS}) ({_BELOW_100})(?! hundred| thousand)\b", re.I)  # "two fifty"
AMOUNT = r"([1-9]\d{0,2}(?:\.\d{3})+(?!\d)|\d{1,3}(?:[,'’\u00a0\u202f ]\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?k?)"
_THOUSANDS = re.compile(r"[,'’\u00a0\u202f ](?=\d{3})")

_FOLLOWS = (
    "a above again all altogether and as at be because before below but buys by can cash could does down even feels"
    " firm flat for from gets has if in instead is it just later leaves less makes may minus more my not now on only"
    " or per plus please right seems shall she so sounds sound still suits take that the then this to today tomorrow"
    " tops total up was we settle settles suffice suffices do enough okay ok fine good fair cover covers"
    " make get sound seem when which will with work works would you your"
)
_BARE = re.compile(
    r"(?<![\w.,:%#/'’-])(?<!\bin )(?<!\bsince )(?<!\bpage )(?<!\broom )(?<!\bnumber )(?<!\baged )"
    r"(?<!\bborn )(?<!\bpast )"
    rf"{AMOUNT}(?![\w%°/:])(?!\.\d)(?=\s*(?:$|[.,;:!?)\"”'’*\u2014\u2013-]|(?:{_FOLLOWS.replace(' ', '|')})\b))",
    re.I,
)
_NEAR = 8.0
"""A number without a unit is a price only within this factor of one that was named before."""

_TOTAL = re.compile(rf"{AMOUNT}[ ,]*(?:\w+ )?(?:altogether|in total|all in|all told|in all|total)\b", re.I)
_PARTS = re.compile(
    rf"{AMOUNT} *(?:\w+ )?(?:now|today|at once|up ?front|down|in advance|first)\b[^.!?]*?"
    rf"(?:\band|\bthen|\bplus|,) +(?:\w+ )?{AMOUNT} *(?:\w+ )?(?:later|when|on|at|after|next|in|by|tomorrow|then)\b",
    re.I,
)
_NOT_OFFERED = re.compile(  # the other's words, somebody else's price, a price turned down
    r"\b(?:(?:you(?:r \w+)? (?:said|told|say|says|want|wanted|ask|asked|offered|wrote|promised)|instead of|rather than"
    r"|(?:ad|advert|sign|tag|list|catalogue) (?:says|said)|cost|costs|paid|heard|read|worth|never|(?:should|could|"
    r"would|might) have|(?:i|we)['’]d have)\b[^#]*#|not (?:for |at )?#|no to #|# (?:is|was|sounds|seems) (?:far |way |"
    r"much |a bit )?(?:too|out of|steep|a lot|robbery|an insult|ridiculous|not))",
    re.I,
)
_LIMIT = re.compile(
    r"\b(?:below|less than|under|above|over|more than|beyond|higher than|lower than|further than)\b", re.I
)


def unit_pattern(deal: Deal) -> tuple[str, str]:
    """What is said behind a number of this deal, and what stands before it, as regular expressions."""
    known = _CURRENCIES.get(deal.unit.upper()) or next(
        (both for both in _CURRENCIES.values() if re.fullmatch(both[0], deal.unit, re.I)), None
    )
    unit = re.escape(deal.unit)
    if known:
        return f"{known[0]}|{unit}", f"{known[1]}|{unit}"
    return rf"{unit}|{re.escape(deal.unit.removesuffix('s'))}", unit


def is_money(deal: Deal) -> bool:
    """Whether the deal's number is a price in a currency that is known here."""
    return deal.unit.upper() in _CURRENCIES or any(
        re.fullmatch(said, deal.unit, re.I) for said, _ in _CURRENCIES.values()
    )


def numbers_in(text: str, deal: Deal, near: float | None = None) -> list[float]:
    """The numbers of the deal that a text names, in order; `near` is what was named before (default: the opening)."""
    return [value for _, value in _found(text, deal, near)]


def offer_in(text: str, deal: Deal, near: float | None = None) -> float | None:
    """The number that somebody offers with a text: the last that is not quoted or turned down, or the"
    " sum of two parts."""
    plain = in_digits(text, deal.opening if near is None else near)
    for pattern in (_TOTAL, _PARTS):
        for match in pattern.finditer(plain):
            parts = [value_of(part) for part in match.groups()]
            if all(part in numbers_in(plain, deal, near) for part in parts):
                return sum(parts)
    offered = None
    for clause in re.split(r"[;:!?\u2014]|,(?!\d{3}(?!\d))|\.(?!\d)|\bbut\b", plain):
        numbers = _found(clause, deal, near)
        if not numbers:
            continue
        start, value = numbers[-1]
        marked = f"{clause[:start]}#{re.sub(rf'^{AMOUNT}', '', clause[start:])}"
        if _LIMIT.search(clause) or not _NOT_OFFERED.search(marked):
            offered = value
    return offered


def _found(text: str, deal: Deal, near: float | None) -> list[tuple[int, float]]:
    """Where each number of the deal stands in the text, and what it is."""
    if not deal.unit:
        return []
    near = deal.opening if near is None else near
    unit, sign = unit_pattern(deal)
    text = re.sub(rf"(\d+) (?:{unit}) (\d\d)(?![\d%])", r"\1.\2", in_digits(text, near), flags=re.I)  # 12 dollars 50
    named = re.finditer(rf"(?<![\d.,])(?:{AMOUNT}\s*(?:{unit})(?!\w)|(?<!\w)(?:{sign})\s*{AMOUNT})", text, re.I)
    found = {match.end(): (match.start(), value_of(match[1] or match[2])) for match in named}
    if is_money(deal):
        taken = [(start, end) for end, (start, _) in found.items()]
        for match in _BARE.finditer(text):
            value = value_of(match[1])
            is_near = value >= 10 if not near else near / _NEAR <= value <= near * _NEAR and value >= min(10, near)
            if is_near and not any(start <= match.start() < end for start, end in taken):
                found[match.end()] = (match.start(), value)
    return [found[end] for end in sorted(found)]


@lru_cache(maxsize=4096)
def in_digits(text: str, near: float | None = None) -> str:
    """The text with its numbers in digits; "two fifty" is 250 or 2.5, whatever is nearer to `near`."""

    def pair(match: re.Match[str]) -> str:
        first, second = _count(match[1]), _count(match[2])
        if not 0 < first < 100 or second < 10 or first == second:
            return match[0]
        whole, part = float(first * 100 + second), first + second / 100
        value = part if near and abs(_ratio(part, near)) < abs(_ratio(whole, near)) else whole
        return f"{value:g}"

    return _SPELLED.sub(lambda found: str(_count(found[0])), _PAIR.sub(pair, text))


def _ratio(value: float, near: float) -> float:
    return max(value / near, near / value)


def _count(words: str) -> int:
    """ "a thousand five hundred and fifty" as 1550."""
    whole = part = 0
    for word in re.split(r"[ -]", words.lower()):
        if word == "hundred":
            part *= 100
        elif word == "thousand":
            whole, part = whole + part * 1000, 0
        elif word != "and":
            part += WORDS[word]
    return whole + part


def value_of(text: str) -> float:
    """ "1.500", "1,500", "1'500" and "1.5k" as 1500."""
    plain = _THOUSANDS.sub("", text.lower())
    plain = plain.replace(".", "") if re.fullmatch(r"[1-9]\d{0,2}(?:\.\d{3})+", plain) else plain
    return float(plain.removesuffix("k")) * (1000.0 if plain.endswith("k") else 1.0)
