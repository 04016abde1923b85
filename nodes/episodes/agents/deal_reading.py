"""What people and models say of a deal: amounts, offers, divisions, yes and no, giving way. Pure: texts in, values out.

A number with the deal's unit always counts. One without counts only for money, where nothing that is counted follows it
("20 minutes") and where it is near what was named before. A sentence that asks ("Agreed?") accepts nothing, one with a
condition offers, and a no beside a yes is a no. To name the other's number and little else is a yes; to add a wish to
it is an offer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Literal, TypeVar

from nodes.msgs.episode import Deal, Facts, Turn

_CURRENCIES = {  # what is said of each, behind the number or before it
    "INR": r"inr|rupees?|₹|rs\.?", "EUR": "eur|euros?|€", "USD": r"usd|dollars?|bucks|\$", "GBP": "gbp|pounds?|quid|£",
    "CHF": r"chf|(?:swiss )?francs?|sfr|fr\.?", "JPY": "jpy|yen|¥", "CNY": "cny|rmb|yuan|¥",
    "SEK": "sek|kron(?:or|a)|kr", "NOK": "nok|kron(?:er|e)|kr", "DKK": "dkk|kron(?:er|e)|kr",
    "PLN": "pln|zł|z[lł]ot(?:ys?|ies|ych)?", "MXN": r"mxn|pesos?|\$", "TRY": "try|liras?|₺", "KRW": "krw|won|₩",
}  # fmt: skip
MONEY = "|".join(_CURRENCIES.values())
_BEFORE = r"(?<!\w)(?!won|try)"
"""Before a unit that stands before its number: "I won 5" and "let us try 300" name no money."""
_ONES = (
    "no one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
)
_NAMED_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_TENS = {word: 10 * ten for ten, word in enumerate(_NAMED_TENS.split(), start=2)}
WORDS = {word: value for value, word in enumerate(_ONES.split())} | {"zero": 0, "a": 1, "an": 1} | _TENS
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

_FOLLOWS = (
    "a all altogether and at be because but by can cash could does do down flat for from if in is it just may more "
    "my not now on only or per plus please right she so sound sounds still suits take that the then this to today "
    "tomorrow total up was we settle enough okay ok fine good fair when which will with work works would you your"
)
_BARE = re.compile(
    r"(?<![\w.,:%#/'’-])(?<!\bin )(?<!\bsince )(?<!\bpage )(?<!\broom )(?<!\bnumber )(?<!\baged )(?<!\bborn )"
    rf"{AMOUNT}(?![\w%°/:])(?!\.\d)(?=\s*(?:$|[.,;:!?)\"”'’*\u2014\u2013-]|(?:{_FOLLOWS.replace(' ', '|')})\b))",
    re.I,
)
_NEAR = 8.0
"""A number without a unit is a price only within this factor of one that was named before."""

_PARTS = re.compile(
    rf"{AMOUNT} *(?:\w+ )?(?:now|today|at once|up ?front|down|in advance|first)\b[^.!?]*?"
    rf"(?:\band|\bthen|\bplus|,) +(?:\w+ )?{AMOUNT} *(?:\w+ )?(?:later|when|on|at|after|next|in|by|tomorrow|then)\b",
    re.I,
)
_NOT_OFFERED = re.compile(
    r"\b(?:(?:you(?:r \w+)? (?:said|say|want|wanted|ask|asked|offered)|instead of|rather than|(?:ad|sign|tag|list) "
    r"says|costs?|paid|heard|read|worth|never|(?:should|could|would) have)\b[^#]*#|not (?:for |at )?#|no to #|# (?:is|"
    r"was|sounds|seems) (?:far |way |much |a bit )?(?:too|out of|steep|a lot|not))",
    re.I,
)


def numbers_in(text: str, deal: Deal, near: float | None = None) -> list[float]:
    """The numbers of the deal that a text names, in order; `near` is what was named before (default: the opening)."""
    return [value for _, value in _found(text, deal, near)]


def offer_in(text: str, deal: Deal, near: float | None = None) -> float | None:
    """The number that somebody offers: the last that is not quoted or turned down, or the sum of two parts."""
    plain = in_digits(text, deal.opening if near is None else near)
    if match := _PARTS.search(plain):
        parts = [value_of(part) for part in match.groups()]
        if set(parts) <= set(numbers_in(plain, deal, near)):
            return sum(parts)
    offered = None
    for clause in re.split(r"[;:!?\u2014]|,(?!\d{3}(?!\d))|\.(?!\d)|\bbut\b", plain):
        for start, value in _found(clause, deal, near)[-1:]:
            marked = f"{clause[:start]}#{re.sub(rf'^{AMOUNT}', '', clause[start:])}"
            offered = offered if _NOT_OFFERED.search(marked) else value
    return offered


def _found(text: str, deal: Deal, near: float | None) -> list[tuple[int, float]]:
    """Where each number of the deal stands in the text, and what it is."""
    if not deal.unit:
        return []
    near = deal.opening if near is None else near
    currency = next((said for said in _CURRENCIES.values() if re.fullmatch(said, deal.unit, re.I)), "")
    unit = "|".join(filter(None, (currency, re.escape(deal.unit), re.escape(deal.unit.removesuffix("s")))))
    text = re.sub(rf"(\d+) (?:{unit}) (\d\d)(?![\d%])", r"\1.\2", in_digits(text, near), flags=re.I)  # 12 dollars 50
    named = re.finditer(rf"(?<![\d.,])(?:{AMOUNT}\s*(?:{unit})(?!\w)|{_BEFORE}(?:{unit})\s*{AMOUNT})", text, re.I)
    found = {match.end(): (match.start(), value_of(match[1] or match[2])) for match in named}
    if currency:  # of a price also numbers without it
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
        value = part if near and near * near < part * whole else whole
        return f"{value:g}"

    return _SPELLED.sub(lambda found: str(_count(found[0])), _PAIR.sub(pair, text))


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
    plain = re.sub(r"[,'’\u00a0\u202f ](?=\d{3})", "", text.lower())
    plain = plain.replace(".", "") if re.fullmatch(r"[1-9]\d{0,2}(?:\.\d{3})+", plain) else plain
    return float(plain.removesuffix("k")) * (1000.0 if plain.endswith("k") else 1.0)


Stance = Literal["yes", "no", "open"]
Share = dict[str, int]

_WHOLE = tuple(
    (re.compile(short, re.I), whole)
    for short, whole in (
        ("’", "'"), (r"\bwon't\b", "will not"), (r"\bcan't\b", "can not"), (r"\bshan't\b", "shall not"),
        (r"n't\b", " not"), (r"'ll\b", " will"), (r"'m\b", " am"), (r"'re\b", " are"), (r"'ve\b", " have"),
        (r"'d\b", " would"), (r"\blet's\b", "let us"), (r"\b(it|that)'?s\b", r"\1 is"),
        (r"\b(\w*here|he|she)'s\b", r"\1 is"),
    )
)  # fmt: skip
"""Short forms and what they stand for: all patterns below are of whole ones."""
_NO = re.compile(
    r"\b(no (?:deal|way|chance|thanks?)|never|cannot|(?:can|could|do|would) not (?:accept|agree|do|go|take|pay|sell|"
    r"shake)|(?:will|shall|absolutely|afraid|rather) not|not (?:agreed|(?:a|my|our) deal|for (?:that|this|less|more)|"
    r"interested|(?:quite )?yet|enough|today|at NUMBER)|out of the question|forget it|i (?:have to |must )?(?:decline|"
    r"refuse|disagree|doubt)|hardly|nobody|ridiculous|robbery|too (?:much|low|little|high|far)|deals?(?: is)? off|take "
    r"(?:it|that) back|walk away|still no|nothing (?:of|doing)|keep it|kidding|pigs|firstborn)\b|^\s*(?:no|nope|nah)\b",
    re.I,
)
_LEAD = (
    r"(?:(?:ok(?:ay)?|yes|yeah|yep|fine|all right|alright|(?:very )?well|then|so|good|great|sure|right|oh|and|but|hm+|"
    r"you know what|in that case|perfect|wonderful|excellent)[\s,.!]+)*"
)
_YES = re.compile(
    rf"^{_LEAD}(?:(?:(?:it|that) is )?a (?:deal|bargain)|(?:we|you)(?: have)?(?: got)?(?: yourself)? an? \w+|deal|(?:i "
    r"am |we are |consider it |(?:it|that) is )?(?:agreed|settled|done|sold)|i accept(?: that| (?:it|this|your|the) "
    r".*)?|i agree(?: to .+)?|accepted|(?:it|she|he|they|(?:the|your|my) \w+(?: \w+)?) (?:is|are) (?:all )?yours.*|i "
    r"will take (?:it|that|them|both|two|all)\b(?! (?:to|back|as)\b).*|tell .+ (?:has|have|is|got) a deal|let me "
    r"(?:just )?get my .*|wrap .+ up.*|(?:here|there) you are|here is .+|i can not (?:argue|refuse|complain)(?: with "
    r"that)?|a deal it is|(?:(?:that|it|this) )?(?:works|is fine|is good|suits me|will do)(?: (?:for|by|with) me)?|"
    r"(?:sounds|that is) (?:good|fair|fine|reasonable)(?: to me| enough)?|(?:fine|good) (?:by|with) me|i can (?:live "
    r"with|do|accept|work with) (?:it|that|this).*|let us (?:do (?:it|that)|shake.*)|i (?:am|would be) (?:happy|glad) "
    r"to (?:accept|agree).*|done and done|(?:shake|hand) on it|give me your hand.*|so be it|you have (?:talked|"
    r"persuaded|convinced).*|you win|where do i sign|i am in|count me in|gladly|with pleasure|fair enough|have it your "
    r"way|as you wish|i will (?:pay|give you|have|buy) (?:it|that)|i am (?:happy|fine|content) with (?:it|that))(?: "
    r"then| too)*$",
    re.I,
)
_NUMBER_YES = re.compile(
    rf"^{_LEAD}(?:(?:deal|agreed|sold) (?:at|for) |(?:let us |we will )?(?:proceed|go) with |i (?:will|can) (?:take|"
    r"accept|agree to) )?NUMBER(?: (?:sounds|is) (?:fine|good|fair|right)(?: by me| with me)?| works(?: for me)?| and "
    r"not a cent more)?(?: euros)?$",
    re.I,
)
_MONEY = re.compile(rf"(?:{_BEFORE}(?:{MONEY})\s*)?{AMOUNT}(?:\s*(?:{MONEY})(?!\w))?", re.I)
_IF = re.compile(
    r"\b(if|on (?:1|one|a|the) condition|unless|provided|only when|once you|as long as|(?:would|could) be|might|maybe|"
    r"perhaps|let me think|almost|nearly)\b",
    re.I,
)
_NEGATED = re.compile(r"\b(?:not|never|no|none|nothing|neither|hardly)\b", re.I)
_STRONG_YES = re.compile(
    r"\b(?:(?:i|to|we|gladly|happily) (?:gladly |happily )?accept (?:your|the|this|that) (?:\w+ )?(?:offer|price|terms|"
    r"proposal)|(?:have|reached|come to) an (?:agreement|understanding)|you have(?: got)? a (?:buyer|taker|sale)|i(?: "
    r"would)? say yes|consider it \w+ed|(?:is|are) accepted|(?:can|will) make (?:that|it|this) work|(?:happy|glad) to "
    r"meet (?:you there|your))\b|^(?:then )?take it (?:away|with you)\b|^you are on$",
    re.I,
)
_ASKS_CONSENT = re.compile(r"(?<!\w)(?:what|how|why|where|which|who|when)\b", re.I)
_SHORT_YES = re.compile(
    rf"^{_LEAD}(?:(?:i (?:suppose|guess|think|believe) )?(?:we|it|that|i|you)(?: have)? (?:shall|is|am|do|would|will|"
    r"can|are|have|did|could)(?: indeed| then)?)?$|^(?:please do|let us)$",
    re.I,
)
_RESTATED_WORDS = (
    "ok okay yes yeah fine alright all right well then so good great sure very oh and perfect for at it is its come up "
    "down to that this be shall will make say let us we i am call settle go with on pay give you take do accept agree "
    "have has can may he she they are yours your the both two just today now cash please here there done deal agreed "
    "sold happy glad gladly my hand works me got price in total altogether thank thanks"
)
_RESTATED = frozenset(_RESTATED_WORDS.split())
"""With these words alone, naming the other's number accepts it."""
_NEUTRAL = re.compile(
    r"^(?:yes|yeah|yep|ok(?:ay)?|fine|all right|alright|sure|of course|certainly|absolutely|very well|good|great|"
    r"perfect)$",
    re.I,
)
_BUT = re.compile(r"\b(?:but|however|only|except|although|though)\b", re.I)
_TAKEN_BACK = re.compile(r"\b(deal(?: is|s)? off|take (?:it|that) back|changed my mind|second thoughts|joking)\b", re.I)
_ECHO_LESS_WORDS = "then well okay fine right good that this very the and you are for price could would"
_ECHO_LESS = frozenset(_ECHO_LESS_WORDS.split())
_GIVES_WAY = re.compile(
    r"\b(have it your way|you (?:can |may |shall )?have it|you win|as you wish|i give (?:way|in)|you have (?:convinced|"
    r"persuaded|talked) me|for your sake|i will do as you (?:ask|say)|all right, (?:then )?take it)\b",
    re.I,
)


@lru_cache(maxsize=4096)
def _sentences(text: str) -> list[tuple[str, str]]:
    """The sentences in whole forms ("I will", not "I'll"), with the mark at the end of each."""
    for short, whole in _WHOLE:
        text = short.sub(whole, text)
    found = re.findall(r"((?:[^.!?]|\.(?=\d))+)([.!?]*)", text)
    return [(sentence.strip(), mark) for sentence, mark in found if sentence.strip()]


@lru_cache(maxsize=4096)
def stance(text: str, number: float | None = None, before: str = "") -> Stance:
    """Whether a text accepts what stands in the room (`number`, where it is one), turns it down, or leaves it open.

    `before` is what the other said last: a question is answered in few words ("We shall."), and who says the other's
    own closing words again agrees. The last clause that says either counts; of "X, but Y" only Y does.
    """
    found: Stance = "open"
    text = in_digits(text, number).replace("\u2014", ", ").replace(" - ", ", ")
    is_first = True
    for sentence, mark in _sentences(text):
        if "?" in mark:
            continue
        said = _BUT.split(sentence)[-1]
        if said is not sentence and found == "yes":
            found = "open"
        if _IF.search(said):
            found = "no" if _NO.search(said) else found
            continue
        for clause in re.split(r",(?!\d)|[;:]|\band (?=(?:it|she|he)\b)", said):
            clause = clause.strip(" \"'“”*")
            named = number is not None and bool(re.search(AMOUNT, clause))
            masked = _MONEY.sub("NUMBER", clause) if named else clause
            if _NO.search(masked):
                found = "no"
            elif (
                _YES.match(clause)
                or (_STRONG_YES.search(clause) and not _NEGATED.search(clause))
                or (
                    named
                    and not ("!" in mark and masked == "NUMBER")
                    and (_NUMBER_YES.match(masked) or _is_restated(masked))
                )
                or (number is not None and found == "open" and _NEUTRAL.match(clause))
                or (is_first and number is not None and _answers(clause, before))
            ):
                found = "yes"
            is_first = False
        if found == "open" and number is not None and not re.search(AMOUNT, said) and _echoes(said, before):
            found = "yes"
    return found


def _is_restated(clause: str) -> bool:
    """Whether little else than the number itself is said, as in "Then 320 it shall be"."""
    words = re.findall(r"[a-z]+", clause.replace("NUMBER", " ").lower())
    return "NUMBER" in clause and bool(words) and _RESTATED.issuperset(words)


def _answers(clause: str, before: str) -> bool:
    """Whether a clause says yes to a question that asks for one: "Shall we say 75?" "We shall."."""
    asked = [sentence for sentence, mark in _sentences(before) if "?" in mark]
    is_asked = bool(asked) and before.rstrip(" \"'”’*").endswith("?") and not _ASKS_CONSENT.match(asked[-1])
    return is_asked and bool(_SHORT_YES.match(clause))


def _echoes(sentence: str, before: str) -> bool:
    """Whether the other's words come back: "and we shake": "Shake."; "if you pay cash": "Cash, then."."""
    words = re.findall(r"[a-z]+", sentence.lower())
    mine = {word for word in words if len(word) > 2} - _ECHO_LESS
    is_all = bool(mine) and len(words) <= 5 and all(word[:5] in before.lower() for word in mine)
    return is_all and "your" not in words and not _NEGATED.search(sentence)


def gives_way(text: str) -> bool:
    """Whether somebody does what the other wants, in so many words."""
    return any(
        _GIVES_WAY.search(sentence) and not ("?" in mark or _IF.search(sentence) or _NO.search(sentence))
        for sentence, mark in _sentences(text)
    )


def offers(turns: Sequence[Turn], deal: Deal) -> list[tuple[str, float]]:
    """Who offered which number, in order; a text with several counts with its last one."""
    found: list[tuple[str, float]] = []
    for turn in turns:
        near = found[-1][1] if found else None
        if turn.kind == "speak" and (number := offer_in(turn.argument, deal, near)) is not None:
            found.append((turn.speaker, number))
    return found


Proposal = TypeVar("Proposal", float, dict[str, Share])


def agreed_number(turns: Sequence[Turn], deal: Deal, bound: Sequence[str] = ()) -> float | None:
    """The number that all whom it binds stand by: one offered it, the others accepted it. None without a deal.

    `bound`: by default whoever speaks. A no, another number, or words that take it back end a consent.
    """

    def choices(text: str) -> Sequence[float]:
        return numbers_in(text, deal) if " or " in text else ()  # "5,000 today, or 6,000 in June"

    return _agreed(turns, bound, lambda turn, last: offer_in(turn.argument, deal, last), choices)


def agreed_shares(
    turns: Sequence[Turn], deal: Deal, names: Sequence[str], bound: Sequence[str] = ()
) -> dict[str, Share] | None:
    """Who gets what by the division that all others whom it binds accepted and none turned down; None without one."""
    return _agreed(turns, bound or names, lambda turn, _: division_in(turn.argument, turn.speaker, deal, names))


def _agreed(
    turns: Sequence[Turn],
    bound: Sequence[str],
    read: Callable[[Turn, Proposal | None], Proposal | None],
    choices: Callable[[str], Sequence[Proposal]] = lambda _: (),
) -> Proposal | None:
    """What all parties stand by: one proposed it, the others said yes to it, and nobody took that back."""
    named: list[tuple[str, Proposal]] = []
    accepted: dict[str, Proposal] = {}  # who -> what they said yes to
    agreed: Proposal | None = None
    before = ""
    spoken = [turn for turn in turns if turn.kind == "speak"]
    parties = set(bound) or {turn.speaker for turn in spoken}
    for turn in spoken:
        own = read(turn, named[-1][1] if named else None)
        others = [one for one in named if one[0] != turn.speaker]
        if agreed is not None and _TAKEN_BACK.search(turn.argument):
            agreed = None
            accepted.clear()
        elif agreed is None:
            open_one = own if own in choices(before) else others[-1][1] if others else None
            number = open_one if isinstance(open_one, float) else None
            said = "open" if open_one is None else stance(turn.argument, number, before)
            if open_one is not None and own in (None, open_one) and said == "yes":
                accepted[turn.speaker] = open_one
                offered = dict(named)
                by = {name for name in parties if open_one in (accepted.get(name), offered.get(name))}
                agreed = open_one if parties <= by | {others[-1][0]} else None  # of several numbers
            elif said == "no" or own not in (None, accepted.get(turn.speaker)):
                accepted.pop(turn.speaker, None)
                named = others if said == "no" and len(parties) > 2 else named
        if own is not None:
            named.append((turn.speaker, own))
        before = turn.argument
    return agreed


def division_in(text: str, speaker: str, deal: Deal, names: Sequence[str]) -> dict[str, Share] | None:
    """Who would get what: "I take 2 books and 1 hat, you get 1 ball", or with names; None where it is no division.

    What nobody is given goes to the one that nothing was said of.
    """
    others = [name for name in names if name != speaker]
    heads = {name.split()[0].lower(): name for name in names} | {"i": speaker}
    if len(others) == 1:
        heads["you"] = others[0]
    who = "|".join(map(re.escape, heads))
    takes = rf"\b({who})(?:['’](?:d|ll)| would| will)?(?:\s+(?:take|get|keep|have)s?\b|:)"
    _, *parts = re.split(takes, text, flags=re.I)
    told = zip(parts[::2], parts[1::2], strict=True)
    shares = {heads[head.lower()]: _counted(part, deal) for head, part in told}
    if speaker not in shares or len(shares) < len(names) - 1 or not any(shares.values()):
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
        match = re.search(rf"\b(\d+|all(?: the)?|the|{'|'.join(WORDS)})\s+(?:of the\s+)?{name}(?:e?s)?\b", text, re.I)
        if match:
            word = match[1].lower()
            many = deal.items[item] if word.startswith(("all", "the")) else WORDS.get(word)
            found[item] = min(deal.items[item], int(word) if many is None else many)
    return found


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
