"""What people and models say of a deal: offers, divisions, yes and no, giving way. Pure: texts in, values out.

A sentence that asks ("Agreed?") accepts nothing, one with a condition offers, and a no beside a yes is a no. To name
the other's number and little else is a yes; to add a wish to it is an offer.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

from nodes.episodes.agents.amounts import AMOUNT, WORDS, in_digits, numbers_in, offer_in
from runtime.msgs.episode import Deal, Facts, Turn

Stance = Literal["yes", "no", "open"]
Share = dict[str, int]

_NO = re.compile(
    r"\b(no deal|never|no way|not agreed|(?:can|could|do|will|would)(?:no|n['’])t (?:accept|agree|do (?:that|it|this)|"
    r"go|take (?:that|it)|pay|sell|shake|call (?:that|it))|cannot|won['’]t|not (?:a|my|our) deal|isn['’]t a deal|not "
    r"for (?:that|this|less|more)|out of the question|forget it|i pass|i['’]ll pass|i['’]m out|i (?:have to |"
    r"must )?(?:decline|refuse)|not a chance|not interested|i['’]d rather not|too (?:much|low|little|high|far)|i "
    r"disagree|absolutely not|i['’]m afraid not|not (?:quite )?yet|no thanks?|no,? thank you|deal['’]?s off|not "
    r"enough|i take (?:it|that) back|rather not|i doubt|hardly|in your dreams|dream on|you must be joking|as if|"
    r"nobody|not today|not happening|no chance|not (?:going to|gonna)|nowhere near|walk away|still no|nothing (?:is|"
    r"of)|nothing doing|shall not|shan['’]t|leave it|keep (?:it|the|my)|(?:you['’]re|you are|got to be|gotta be) "
    r"kidding|yeah,? right|pigs|very funny|nice try|hilarious|ridiculous|robbery|insult(?:ing|ed)?|laugh\w*|out of "
    r"your mind|firstborn|not (?:for|at) NUMBER)\b|^\s*(?:no|nope|nah)\b",
    re.I,
)
_LEAD = (
    r"(?:(?:ok(?:ay)?|yes|yeah|yep|fine|all right|alright|well|then|so|good|great|sure|right|very well|oh|and|but|hm+|"
    r"you know what|in that case|perfect|wonderful|excellent)[\s,.!]+)*"
)
_YES = re.compile(
    rf"^{_LEAD}(?:it['’]?s a deal|that['’]?s a deal|(?:we|you)(?:['’]ve| have)? (?:got )?(?:yourself )?a deal|deal(?: "
    rf"then)?"
    r"|(?:i['’]m |i am |we['’]re |consider it |that['’]?s )?(?:agreed|settled|done|sold)(?: then)?|i accept(?: that)?|"
    r"i accept (?:it|your offer|this|the offer|the price).*|i agree(?: to (?:it|that|this).*)?|accepted|(?:it|she|he|"
    r"they)(?:['’]s|['’]re| is| are) (?:all )?yours.*|i(?:['’]ll| will) take (?:it|that|them|both|two|all)\b(?! (?:to|"
    r"back|as)\b).*|(?:the|your|my) \w+(?: \w+)? (?:is|are) yours(?: too)?(?: then)?|(?:tell|say to) .+ (?:has|have|"
    r"['’]s|got) a deal|let me (?:just )?(?:get|fetch|find) (?:my|the) (?:wallet|purse|money|cash|cheque ?book|card|"
    r"pen|coat)|wrap (?:it|them|her|him) up.*|here you are|here(?:['’]s| is) (?:the|my|your) money|there you are|"
    r"i (?:can|could)(?:['’]t|not) (?:argue|say no|refuse|complain|object)(?: (?:with|to|about) that)?|(?:we have|"
    r"that['’]s) an agreement|a deal it is|(?:that |it |this )?(?:works|is fine|is good|suits me|will do)(?: for me| "
    r"by me| with me)?|(?:sounds|that['’]?s) (?:good|fair|fine|great|reasonable)(?: to me| enough)?|(?:fine|"
    r"good) (?:by|with|for) me|i can (?:live with|do|accept|work with) (?:that|it|this).*|let['’]s (?:do it|do that|"
    r"shake(?: hands)?(?: on (?:it|that))?)|i(?:['’]m| am|['’]d be| would be) (?:happy|glad) to (?:accept|"
    r"agree)(?: (?:to )?(?:it|that|(?:your|the) offer))?|you(?:['’]ve| have) got yourself an? \w+|done and done|shake "
    r"on it|(?:here['’]s|give me) (?:my|your) hand.*|so be it|you(?:['’]ve| have) (?:talked|persuaded|convinced).*|"
    r"you win|(?:it['’]s |that['’]s )?a bargain|where do i sign|i(?:['’]m| am) in|count me in|gladly|with pleasure|"
    r"fair enough|have it your way|as you wish|i(?:['’]ll| will) (?:pay|give you|have|buy) (?:it|that)|(?:my )?hand "
    r"on it|i(?:['’]m| am) (?:happy|fine|content) with (?:it|that)|wrap it up|we have an understanding|consider it "
    r"done|my pleasure|it['’]s done|then it['’]s settled|that is settled(?: then)?)$",
    re.I,
)
_NUMBER_YES = re.compile(
    rf"^{_LEAD}(?:for |at |make it |(?:let['’]s |we['’]ll )?(?:say |call it |settle (?:at|on|for) "
    r"|(?:proceed|go) with )|i(?:['’]ll| will| can) (?:take|pay|give you|do|accept|agree to)(?: it (?:for|at))? |"
    r"i(?:['’]m| am) (?:happy|fine|content) with |i (?:accept|agree to|agree on) |(?:it|she|he|they)(?:['’]s|['’]re| "
    r"is| are) yours (?:for|at) |sold (?:for|at) |you(?:['’]ve| have)? (?:can have|may have|got|get) it (?:for|at) |"
    r"agreed at |deal at )?NUMBER(?: it is| then| and (?:it|she|he)(?:['’]s| is) yours| sounds (?:good|fair|right)| "
    r"works(?: for me)?| is (?:fine|good|fair)(?: by me| with me)?| and be done| is right| is good| suits me| done| "
    r"and not a cent more)?(?: with it| euros)?$",
    re.I,
)
_MONEY = re.compile(
    rf"(?:[€$£¥₹]\s*|(?:chf|eur|usd|gbp) )?{AMOUNT}(?:\s*(?:euros?|eur|€|dollars?|usd|bucks|\$|pounds?"
    rf"|quid|gbp|£|francs?|chf"
    r"|yen|yuan|rupees?|kron\w+|kr|pesos?|z[lł]ot\w+|liras?))?",
    re.I,
)
_IF = re.compile(
    r"\b(if|on (?:1|one|a|the) condition|unless|provided|only when|once you|as long as|would be"
    r"|could be|might|maybe|perhaps|let me think|almost|nearly)\b",
    re.I,
)
_NEGATED = re.compile(r"\b(?:not|never|no|neither|hardly)\b|n['’]t\b", re.I)
_STRONG_YES = re.compile(
    r"\b(?:(?:i|to|we|gladly|happily) (?:gladly |happily )?accept (?:your|the|this|that) (?:\w+ )?(?:offer|price|"
    r"terms|proposal|figure)|(?:have|reached|come to|['’]ve got|got) an (?:agreement|understanding)|you(?:['’]ve| "
    r"have)(?: got)? (?:yourself )?a (?:buyer|deal|customer|taker|sale)|(?:i['’]d|i would|i) say yes|consider "
    r"it \w+ed|(?:can|could|we['’]ll|i['’]ll) make (?:that|it|this) work|let['’]s finali[sz]e|(?:is|are) accepted|"
    r"(?:happy|glad|pleased) to meet (?:you there|your))\b|^sold\b|^(?:then )?take (?:it|them) (?:away|with you)\b|"
    r"^you['’]re on$",
    re.I,
)
_ASKS_CONSENT = re.compile(r"(?<!\w)(?:what|how|why|where|which|who|when)\b", re.I)
_ELLIPSIS = re.compile(
    rf"^{_LEAD}(?:i (?:suppose|guess|think|believe) )?(?:we|it|that|i|you|so it)"
    r"(?:['’]ve|['’]m)? (?:shall|is|am|do|would|will|can|are|have|did|does|could|might as well)(?: indeed"
    r"| then| too)?$",
    re.I,
)
_SHORT_YES = re.compile(
    rf"^{_LEAD}$|^(?:yes|yeah|yep|sure|of course|certainly|by all means|absolutely|please do|i am|let['’]s)$", re.I
)
_RESTATED_WORDS = (
    "ok okay yes yeah yep fine alright all right well then so good great sure very oh and hm perfect wonderful "
    "excellent for at it is it's its come up down to that's that this be shall will make say let's let us we we'll i "
    "i'll i'm call settle go with on pay give you you'll take do accept agree have has can may he she they they're "
    "him her hers yours mine yours the your both two just today now cash please here there's there here's done deal "
    "agreed sold bargain right happy glad gladly because friend my hand dear sir madam yours lot it'll stands stand "
    "by works suits me fits goes who wins win we've got price money counted in total altogether flat even round "
    "exactly thank thanks"
)
_RESTATED = frozenset(_RESTATED_WORDS.split())
"""With these words alone, naming the other's number accepts it."""
_NEUTRAL = re.compile(r"^(?:yes|yeah|ok(?:ay)?|fine|all right|alright|sure|very well|good|great|perfect)$", re.I)
_BUT = re.compile(r"\b(but|however|only|except|although|though)\b", re.I)
_TAKEN_BACK = re.compile(
    r"\b(deal['’]?s off|(?:i )?take (?:it|that) back|changed my mind|on second thoughts?|scrap that|i was joking)\b",
    re.I,
)
_ECHO_LESS_WORDS = "then well okay fine right good that this very you're you’re i'm i’m the and you are for price it's"
_ECHO_LESS = frozenset(_ECHO_LESS_WORDS.split())
_GIVES_WAY = re.compile(
    r"\b(have it your way|you (?:can |may |shall )?have it|you win|as you wish|i give way|i give in"
    r"|you(?:['’]ve| have) (?:convinced|persuaded|talked) me|for your sake|i(?:['’]ll| will) do as you (?:ask|say)"
    r"|all right, (?:then )?(?:take|keep|have) it)\b",
    re.I,
)


def _sentences(text: str) -> list[tuple[str, str]]:
    """The sentences with the mark at the end of each."""
    return [
        (part[0].strip(), part[1]) for part in re.findall(r"((?:[^.!?]|\.(?=\d))+)([.!?]*)", text) if part[0].strip()
    ]


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
        said = _BUT.split(sentence)[-1] if _BUT.search(sentence) else sentence
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
    words = re.findall(r"[a-z'’]+", clause.replace("NUMBER", " ").replace("’", "'").lower())
    return clause.count("NUMBER") >= 1 and bool(words) and all(word in _RESTATED for word in words)


def _answers(clause: str, before: str) -> bool:
    """Whether a clause says yes to a question that asks for one: "Shall we say 75?" "We shall."."""
    asked = [sentence for sentence, mark in _sentences(before) if "?" in mark]
    if not asked or not before.rstrip(" \"'”’*").endswith("?") or _ASKS_CONSENT.match(asked[-1]):
        return False
    words = [word for word in re.findall(r"[a-z]{4,}", clause.lower()) if word not in _ECHO_LESS]
    is_repeated = bool(words) and len(clause.split()) <= 5 and all(word[:5] in asked[-1].lower() for word in words)
    return bool(_ELLIPSIS.match(clause) or _SHORT_YES.match(clause) or is_repeated)


def _echoes(sentence: str, before: str) -> bool:
    """Whether the other's own closing words come back: "and we shake" - "Shake.", "if you pay cash" -"
    " "Cash, then."."""
    words = re.findall(r"[a-z'’]+", sentence.lower())
    mine = [word for word in words if len(word) > 2 and word not in _ECHO_LESS]
    theirs = set(re.findall(r"[a-z'’]+", before.lower()))
    return (
        bool(mine)
        and len(words) <= 5
        and all(word in theirs for word in mine)
        and (
            len(words) == 1
            or "then" in words
            or words[-2:] == ["it", "is"]
            or words[0] in ("you're", "you’re", "i'm", "i’m")
        )
        and not re.search(r"\b(?:not|no|your|nothing|none|neither|never)\b|n['’]t\b", sentence, re.I)
    )


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
    """Who offered which number, in order; a text with several counts with its last one."""
    found: list[tuple[str, float]] = []
    for turn in turns:
        near = found[-1][1] if found else None
        if turn.kind == "speak" and (number := offer_in(turn.argument, deal, near)) is not None:
            found.append((turn.speaker, number))
    return found


def agreed_number(turns: Sequence[Turn], deal: Deal, bound: Sequence[str] = ()) -> float | None:
    """The number that all whom it binds stand by: one offered it, the others accepted it. None without a deal.

    `bound`: by default whoever speaks. A no, another number, or words that take it back end a consent.
    """
    named: list[tuple[str, float]] = []
    accepted: dict[str, float] = {}  # who -> the number that they said yes to
    agreed: float | None = None
    before = ""
    speakers = {turn.speaker for turn in turns if turn.kind == "speak"}
    parties = set(bound) or speakers
    for turn in turns:
        if turn.kind != "speak":
            continue
        own = offer_in(turn.argument, deal, named[-1][1] if named else None)
        if agreed is not None and _TAKEN_BACK.search(turn.argument):
            agreed = None
            accepted.clear()
        elif agreed is None:
            standing = _standing(turn, before, named, own, deal)
            answer = "open" if standing is None else stance(turn.argument, standing, before)
            if standing is not None and own in (None, standing) and answer == "yes":
                accepted[turn.speaker] = standing
                offered = dict(named)
                by = {name for name in parties if standing in (accepted.get(name), offered.get(name))}
                by.add(next(speaker for speaker, _ in reversed(named) if speaker != turn.speaker))  # of several numbers
                agreed = standing if parties <= by else None
            elif answer == "no" or own not in (None, accepted.get(turn.speaker)):
                accepted.pop(turn.speaker, None)
                if answer == "no":
                    named = [one for one in named if one[0] != turn.speaker] if len(parties) > 2 else named
        if own is not None:
            named.append((turn.speaker, own))
        before = turn.argument
    return agreed


def _standing(
    turn: Turn, before: str, named: Sequence[tuple[str, float]], own: float | None, deal: Deal
) -> float | None:
    """The number of somebody else's that this turn answers; None where there is none."""
    others = [number for speaker, number in named if speaker != turn.speaker]
    choices = numbers_in(before, deal, others[-1]) if others else []  # "5,000 today, or 6,000 in June"
    if own is not None and own in choices and " or " in before:
        return own
    return others[-1] if others else None


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
    if not marks or not any(heads[mark[1].lower()] == speaker for mark in marks):
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
        match = re.search(rf"\b(\d+|all(?: the)?|the|{'|'.join(WORDS)})\s+(?:of the\s+)?{name}(?:e?s)?\b", text, re.I)
        if match:
            word = match[1].lower()
            many = deal.items[item] if word.startswith(("all", "the")) else WORDS.get(word)
            found[item] = min(deal.items[item], int(word) if many is None else many)
    return found


def agreed_shares(
    turns: Sequence[Turn], deal: Deal, names: Sequence[str], bound: Sequence[str] = ()
) -> dict[str, Share] | None:
    """Who gets what by the division that all others whom it binds accepted and none turned down; None without one."""
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
            last, missing = named, set(bound or names) - {turn.speaker}
        elif last is not None and stance(turn.argument) == "no" and turn.speaker in (bound or names):
            missing.add(turn.speaker)
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
