"""What people say of a recipe, whenever they say it: how many, in which vessel each, with or without, and for whom.

"In the blue mug, and no cream for me", "one for Otto", "make that two": what has the recipe's words and no others says
something of what is being made. Pure functions of the words and of what is seen.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec

from nodes.msgs import Reference, SeenObject
from nodes.planner.orders import Order
from nodes.planner.talk.household import Recipe, plain
from nodes.planner.words.asked import sentences_of, words_of_question
from nodes.planner.words.lexicon import SETS, WORDS, lexicon_file
from nodes.planner.words.replies import list_words

_COUNTS = {"two": 2, "both": 2, "a couple of": 2, "three": 3, "four": 4, "2": 2, "3": 3, "4": 4}
_MANY = r"\b(?P<n>a couple of|two|three|four|[2-4])"
_KIND_OF = r"(?:(?:more|cups? of|mugs? of|black|white|nice|hot|strong|fresh|large|small|good|decent|proper) )*"
_TOTAL = re.compile(rf"\bmake (?:it|that|them) {_MANY[2:]}\b", re.I)
_PORTION = (
    r"(?:[,.;]+ ?(?:and |then )*| and (?:then )?| plus )"
    r"(?=(?:(?:the )?(?:other|second|first)(?: one)?|another|one|mine|hers|his)\b|for [A-Z]|(?:(?:a|an) )?{what})"
)
_ANOTHER = re.compile(
    r"\b(?:another|one more|one (?=for|with|without|in|to|as|too|please|each|of)|a second|one$)", re.I
)
_THAT_ONE = re.compile(
    r"\b(?:the|that|this|my|no|which|any|(?:make|have) (?:it|that|this|mine)(?: an?)?) (?:\w+ )?one\b", re.I
)
_AS_WELL = re.compile(r"\b(?:do|make) (?:it|that|one) again\b|\bsame (?:again|for)\b|\b(?:as well|also)\b"
    r"|\btoo\b(?=\W*$|\s*[,.;!?]| (?:please|and|with|without|in|for)\b)", re.I
)  # fmt: skip
_CHANGES = re.compile(r"\b(?:that|this|the) (?:\w+ )?one\b|\bmine\b|\bout of\b|\bit\b", re.I)
_BRINGS = re.compile(
    r"\b(?:bring|give|hand|have|get|take|put|place|pass|fetch|set|move|want|like|need|serve|here|leave|touch|keep|pour"
    r"|drinks?|drinking|mine|sav(?:e|ing)|belongs?|is for)\b",
    re.I,
)
"""What is said of one that is made, so that it comes or goes somewhere."""
_EVERY = re.compile(r"\b(?:either|both|each|all|everyone)\b", re.I)
_WITHOUT = re.compile(
    r"\b(?:without|no|not|never|hold|skip|leave|omit|forget|drop(?! of)|minus|free|hate|hates|stop|allergic"
    r"|too much|enough)\b|n't\b",
    re.I,
)
_KEEPS = re.compile(r"\b(?:not|never|don't) (?:forget|leave out|skip|hold|omit|too much|only)\b", re.I)
_WHOM = (
    re.compile(
        r"\bfor (?:both )?((?:my|our) \w+|me|myself|us|him|her|[A-Z]\w+)(?:,? and (?:for )?(me|myself|[A-Z]\w+))?"
    ),
    re.compile(
        r"\b(?:[Mm]ake|[Bb]ring|[Gg]et|[Gg]ive|[Dd]o|[Ff]ix|[Bb]rew|[Hh]and|[Ff]etch) "
        r"((?:my|our) \w+|me|us|him|her|[A-Z]\w+)(?: and (me|[A-Z]\w+))? (?=an?\b|another|one|some|two|coffee)"
    ),
    re.compile(r"^(?:And |Oh,? )?([A-Z]\w+) (?:wants|would like|'d like|'d love|fancies|needs|takes|has)\b"),
)
_SAYS_LITTLE = SETS["beside_parts"]
"""Words that say nothing else beside a part of a recipe."""
_DEEDS = frozenset(
    {"wash", "rinse", "wipe", "clean", "open", "close", "table", "tray", "shelf", "sink", "bin", "counter", "off"}
)
"""Words of other deeds."""
_SMALL = SETS["beside_extras"]
_IN_IT = rf"\bwith ((?:(?:{'|'.join(sorted(_SMALL))}) |\w+ and )*\w+)"


@dataclass(frozen=True, slots=True)
class Cup:
    """What was said of one of them; `whom`: "" where nobody was named."""

    vessel: str = ""  # its id
    has_extra: bool | None = None
    whom: str = ""
    problem: str = ""  # why the vessel that was named will not do


class Brewing(msgspec.Struct, frozen=True):
    """What a wish comes to: the steps, what is said, what is asked first, and for whom each vessel is."""

    orders: tuple[Order, ...] = ()
    said: str = ""
    asks: str = ""
    cups: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Bar:
    """What the words are read against."""

    recipe: Recipe
    seen: Sequence[SeenObject]
    spared: Collection[str]  # ids of what is to be left alone
    why: Mapping[str, str]  # ids, and who said that, as a sentence
    cups: Mapping[str, str]  # ids of the vessels of what is being made, and for whom
    speaker: str
    washed: Collection[str] = ()  # ids of what will be clean by then
    last: str = ""  # the id of the vessel that was spoken of last, or is pointed at

    @property
    def vessels(self) -> list[SeenObject]:
        """All of them."""
        return [one for one in self.seen if one.label == self.recipe.vessel]

    def free(self, whom: str = "") -> list[SeenObject]:
        """What can be filled for somebody now, their own first."""
        found = [one for one in self.vessels if not (self._is_used(one) or self._is_foreign(one, whom))]
        return sorted(found, key=lambda one: (one not in self.own(whom), one.owner != ""))

    def own(self, whom: str) -> list[SeenObject]:
        """Those that are somebody's, but for what is being filled."""
        return [one for one in self.vessels if whom and one.owner.lower() == whom.lower() and one.id not in self.cups]

    def _is_used(self, one: SeenObject) -> bool:
        unfit = {"full", "half full", "dirty"} if one.id not in self.washed else set()
        return bool(unfit & set(one.state)) or one.id in self.spared or one.id in self.cups

    def _is_foreign(self, one: SeenObject, whom: str) -> bool:
        return bool(one.owner) and one.owner.lower() not in (whom.lower(), self.speaker.lower())

    def is_told_of(self, text: str) -> bool:
        """Whether the words name the recipe, or its parts and nothing else."""
        return bool(re.search(self.recipe.words, plain(text))) or is_of_recipe(text, self)

    def name(self, ident: str) -> str:
        """What a vessel is called."""
        return next((one.name for one in self.seen if one.id == ident), self.recipe.vessel)


def made_meant(text: str, bar: Bar, made: Mapping[str, str]) -> tuple[re.Match[str], str] | None:
    """Where "my coffee", "Ben's coffee" or "the coffee" is to be brought or moved, and the id of what it is in.

    `made`: ids of what was filled or is, and for whom. None where that is no one vessel, or another one is wished.
    """
    who = r"(?<!with )(?<!of )\b(?P<who>(?i:my|our|his|her|the|that|this)|[A-Z]\w+'s)"
    found = re.search(rf"{who} (?:\w+ )?{bar.recipe.words}(?! [a-z]+ine)", text)
    is_told = _BRINGS.search(text) and (not bar.cups or not _WITHOUT.search(text))
    if found is None or asks_of_recipe(text) or not is_told:
        return None
    if bar.recipe.left_out in text.lower() or _vessel(text, bar) != ("", ""):
        return None
    full = {one.id: "" for one in bar.vessels if any(re.search(bar.recipe.words, word) for word in one.state)}
    made, who = {**full, **{one.id: made[one.id] for one in bar.vessels if one.id in made}}, found["who"]
    who = who if who.endswith("'s") else who.lower()
    if who.endswith("'s"):
        found_ids = [ident for ident, whom in made.items() if whom.lower() == who[:-2].lower()]
    elif who in ("his", "her"):  # "Give Ann her coffee."
        told = {word.lower() for word in re.findall(r"[A-Z]\w+", text)} & {whom.lower() for whom in made.values()}
        others = [ident for ident, whom in made.items() if whom.lower() in told - {""}]
        found_ids = others or [ident for ident, whom in made.items() if whom not in ("", bar.speaker)]
    else:
        own = [ident for ident, whom in made.items() if whom == bar.speaker]
        found_ids = own or ([ident for ident in made if not made[ident]] if who in ("my", "our") else list(made))
    return (found, found_ids[0]) if len(found_ids) == 1 else None


def is_of_recipe(text: str, bar: Bar) -> bool:
    """Whether the words name the recipe's parts, and nothing else."""
    words = set(re.findall(r"[a-z]+(?:'[a-z]+)?", text.lower().replace("’", "'")))
    names = {word.lower() for word in re.findall(r"(?<=\w )[A-Z]\w+|^[A-Z]\w+(?=\s+too\b)", text)}
    names |= {f"{name}'s" for name in names}
    colours = {one.colour for one in bar.vessels}
    parts = {bar.recipe.vessel, f"{bar.recipe.vessel}s", "cup", "cups", "milk", bar.recipe.left_out}
    named = {word for word in words if re.search(bar.recipe.words, word)}
    is_told: object = bool(words & ({bar.recipe.left_out, "milk"} | colours | {"black", "two", "three", "without"}))
    is_told = is_told or _is_another(text) or _AS_WELL.search(text) or re.search(r"\b(?:in|use|into) the other\b", text)
    known = _SAYS_LITTLE | colours | parts | names | named | {one.lower() for one in bar.cups.values()}
    others = {word for one in bar.seen for word in one.label.split()} | _DEEDS
    is_of_extra = bar.recipe.left_out in words and not words & (others - parts)
    return bool(is_told) and (words <= known or is_of_extra)


def asks_of_recipe(text: str) -> bool:
    """Whether it asks what is so, and wishes nothing."""
    return any(map(words_of_question, sentences_of(text)))


def _is_another(text: str) -> bool:
    return _ANOTHER.search(_THAT_ONE.sub("", text.strip(" .!?"))) is not None


def is_addition(text: str, bar: Bar) -> bool:
    """Whether it asks for another one, and does not change one."""
    words = bar.recipe.words
    if re.search(rf"\b(?:the|that|this|his|her|my) {words[2:]}", text, re.I):
        return False
    if re.search(words, text, re.I) or _TOTAL.search(text) or _is_another(text):
        return True
    return bool(_AS_WELL.search(text)) and not (_CHANGES.search(text) or _vessel(text, bar)[0] in bar.cups)


def cups_said(text: str, bar: Bar, *, is_new: bool) -> list[Cup]:
    """What is said of each, in turn."""
    text = re.sub(r"\b(?:the )?same as (?:the )?\w+(?: \w+)?", "", text.replace("’", "'")).strip(" .!?,")
    what = bar.recipe.words.strip("\\b")
    pieces = re.split(_PORTION.replace("{what}", what), text)
    many = re.search(rf"{_MANY} {_KIND_OF}(?:{what}|of (?:those|them)|for|please)", text, re.I)
    many = many or re.search(rf"\bfor {_MANY[2:]}\b", text, re.I)
    number = _COUNTS[many["n"].lower()] if many is not None else 1
    told: list[Cup] = []
    for piece in pieces:
        whose = re.match(r"\W*(mine|hers|his)\b", piece, re.I)
        is_own = whose is not None and whose[1].lower() == "mine"
        about = [one for one in told if whose is not None and (one.whom in ("", bar.speaker)) == is_own]
        new = [one for one in _cups_in(piece, bar) if one != Cup()]
        if about and new:  # "A coffee for Ann and one for me. Hers with cream, mine without."
            old = about[0]
            extra = old.has_extra if new[0].has_extra is None else new[0].has_extra
            told[told.index(old)] = replace(new[0], whom=old.whom, vessel=new[0].vessel or old.vessel, has_extra=extra)
        else:
            told += new
    every = [_extra(part, bar.recipe) for part in re.split(r"[,.;]", text) if _EVERY.search(part)]
    if has := [one for one in every if one is not None]:  # "no cream for either"
        told = [replace(one, has_extra=has[-1]) for one in told]
    if total := _TOTAL.search(text):  # "Make that two": one more
        return (told or [Cup()])[:1] * (_COUNTS[total["n"].lower()] - 1)
    if len(told) > 1:
        if len(told) > number and many is not None and is_new:  # "two coffees with cream, one in the red one"
            return told[:number] if told[0].vessel or told[0].whom else told[1:]
        return told + [Cup()] * (number - len(told))
    one = (told or [Cup()])[0]
    is_only = one.vessel and one.has_extra is not None and re.search(r"\b(?:only|just)\b", text, re.I)
    other = replace(one, vessel="", has_extra=not one.has_extra if is_only else one.has_extra)
    return [one, *[other] * (number - 1)]


def _cups_in(piece: str, bar: Bar) -> list[Cup]:
    recipe = bar.recipe
    cup = Cup(has_extra=_extra(piece, recipe))
    if cup.has_extra is None and re.search(r"\bblack one\b", piece) and all(x.colour != "black" for x in bar.vessels):
        cup, piece = replace(cup, has_extra=False), piece.replace("black one", "one")
    whom = next((found for one in _WHOM if (found := one.search(piece)) is not None), None)
    vessel, problem = _vessel(piece, bar)
    cup = replace(cup, vessel=vessel, problem=problem)
    names = [name for name in (whom.groups() if whom is not None else ()) if name]
    names = [bar.speaker if name in ("me", "myself", "us") else name.removeprefix("my ") for name in names]
    return [replace(cup, whom=name, vessel=cup.vessel if n == 0 else "") for n, name in enumerate(names)] or [cup]


def _extra(piece: str, recipe: Recipe) -> bool | None:
    extra = rf"\b(?:{recipe.left_out}|milk)\b"
    for part in re.split(r"[,;.]| but ", piece):
        plainly = _KEEPS.sub("", part)
        if re.search(extra, plainly, re.I):
            is_without = _WITHOUT.search(plainly) is not None
            if is_without or recipe.left_out in plainly.lower():
                return not is_without
    if re.search(r"\bblack\b(?! (?:mug|cup|one))|\bwithout(?: it| any)?\s*(?:$|,|for\b|in\b|please\b)", piece, re.I):
        return False
    return True if re.search(r"\bwith(?: it)?\s*$", piece, re.I) else None


def _vessel(piece: str, bar: Bar) -> tuple[str, str]:
    """The vessel that is named, by its id; and why it will not do."""
    small, label = piece.lower(), bar.recipe.vessel
    denied = set(re.findall(r"(?:\bnot|n't|\bnever) (?:in |into |with |use )?(?:the |my |a )?(\w+)", small))
    colours = [word for word in WORDS["colours"] if word not in denied]
    pattern = rf"\b({'|'.join(colours)})(?= (?:{label}|cup|one)\b)|(?<=in the )(?!black\b)({'|'.join(colours)})\b"
    named = [one for found in re.findall(pattern, small) for one in found if one]
    others = "|".join(re.escape(one) for one in sorted({one.label for one in bar.seen} - {label}))
    other = re.search(rf"\b(?:in|into) (?:a|an|the|that|my) (?:\w+ )?({others})\b", small) if others else None
    if other is not None:
        return "", f"I can fill a {label} only, and no {other[1]}."
    is_that = re.search(  # "cream in it" is in the coffee
        rf"(?<!{bar.recipe.left_out} )(?<!milk )\b(?:in|into|use|with) (?:it|that|this)(?: one| {label}| cup)?"
        r"(?=\W*$|\W* (?:and|please|for|without|with)\b)", small
    )  # fmt: skip
    that = next((one for one in bar.vessels if is_that and one.id == bar.last), None)
    if not named and that is None:
        kept = [one for one in bar.vessels if one.colour in denied]
        return (next((one.id for one in bar.free() if one not in kept), ""), "") if kept else ("", "")
    meant = next((one for one in bar.vessels if one.colour == named[-1]), None) if named else that
    return _fit(meant, bar) if meant is not None else ("", f"I see no {named[-1]} {label}.")


def _fit(meant: SeenObject, bar: Bar, whom: str = "") -> tuple[str, str]:
    """A vessel that is meant, by its id; and why it will not do."""
    if meant.id in bar.cups or meant in bar.free(whom or bar.speaker):
        return meant.id, ""
    if "dirty" in meant.state and meant.id not in bar.spared:
        return meant.id, f"The {meant.name} is dirty."
    if {"full", "half full"} & set(meant.state):
        return "", f"The {meant.name} is not empty."
    return "", bar.why.get(meant.id, "") or f"The {meant.name} is to be left alone."


def steps_of(recipe: Recipe, vessel: SeenObject, *, has_extra: bool) -> tuple[Order, ...]:
    """One after the other: to each machine and wait there, then to the person."""
    ref = (Reference(id=vessel.id, label=vessel.label, colour=vessel.colour),)
    orders: list[Order] = []
    for machine in recipe.machines:
        if has_extra or machine != recipe.machine_left_out:
            orders += [Order("place", ref, (), machine, "on"), Order("wait_here", ref, (), machine)]
    return (*orders, Order("hand_over", ref))


def brewed(text: str, cups: Sequence[Cup], bar: Bar) -> Brewing:
    """The steps of what is wished, in clean vessels: those that are named, and none that is forbidden."""
    recipe, label = bar.recipe, bar.recipe.vessel
    used: set[str] = {one.vessel for one in cups if one.vessel}
    chosen: list[tuple[SeenObject, Cup]] = []
    asks: list[str] = []
    orders: list[Order] = []
    for cup in cups:
        whom = cup.whom or bar.speaker
        free = [one for one in bar.free(whom) if one.id not in used]
        own = [one for one in bar.own(whom) if one.id not in used]
        is_told = bool(cup.vessel or cup.problem)
        if own and not is_told and not any(one in own for one in free):  # hers will not do, and no other is taken
            ident, problem = _fit(own[0], bar, whom)
            cup = replace(cup, vessel=ident, problem=problem)
        vessel = next((one for one in bar.vessels if one.id and one.id == cup.vessel), None)
        if vessel is None or (vessel.id in bar.cups and not cup.problem):
            vessel = free[0] if free else None
        if vessel is None:
            dirty = [one for one in bar.vessels if "dirty" in one.state and one.id not in (*bar.spared, *used)]
            if cup.problem or not dirty or chosen:
                continue
            vessel, cup = dirty[0], replace(cup, problem=f"I see no clean {label}.", vessel=dirty[0].id)
        if cup.problem and cup.vessel == vessel.id:
            if not re.search(r"\b(?:wash|rins|clean)", text, re.I):  # "The white mug, rinsed first."
                asks.append(f"{cup.problem} Shall I wash the {vessel.name} first?")
            orders.append(Order("rinse", (Reference(id=vessel.id, label=label, colour=vessel.colour),), (), "sink"))
        elif cup.problem:
            asks.append(f"{cup.problem} Shall I use the {vessel.name}?")
        used.add(vessel.id)
        chosen.append((vessel, cup))
        orders += steps_of(recipe, vessel, has_extra=cup.has_extra is not False and not _is_other(text, recipe))
    if not chosen:
        why = next((one.problem for one in cups if one.problem), "")
        return Brewing(said=f"{why} I see no clean {label} for a coffee. Could you put one on the table?".strip())
    whose = tuple((one.id, cup.whom or bar.speaker) for one, cup in chosen)
    missing = [one for one in _extras(text) if one not in (recipe.left_out, label)]
    missing = [one for one in missing if not re.search(recipe.words, one)]
    if missing and not any(cup.has_extra is False and "milk" in missing for cup in cups):
        asks.append(f"I have no {list_words(missing, 'and no')}. Shall I leave that out?")
    if asks:
        return Brewing(tuple(orders), asks=" ".join(asks), cups=whose)
    fewer = f" I see no clean {label} for more." if len(chosen) < len(cups) else ""
    return Brewing(tuple(orders), said=f"Sure, {_told(chosen, recipe, orders, bar.speaker)}.{fewer}", cups=whose)


def _told(chosen: Sequence[tuple[SeenObject, Cup]], recipe: Recipe, orders: Sequence[Order], speaker: str) -> str:
    """ "a coffee with cream, in the red mug", "2 coffees ..."; each by itself where they differ."""
    creamy = {one.things[0].id for one in orders if one.place == recipe.machine_left_out}
    made = [(one.id in creamy, "" if cup.whom == speaker else cup.whom) for one, cup in chosen]
    if len(set(made)) > 1:
        each = [
            f"a coffee{f' with {recipe.left_out}' if has else f' without {recipe.left_out}'}"
            f"{f' for {whom}' if whom else ''} in the {one.name}"
            for (one, _), (has, whom) in zip(chosen, made, strict=True)
        ]
        return list_words(each)
    what = "a coffee" if len(chosen) == 1 else f"{len(chosen)} coffees"
    whom = f" for {made[0][1]}" if made[0][1] else ""
    with_it = f" with {recipe.left_out}" if made[0][0] else f" without {recipe.left_out}"
    return f"{what}{with_it}{whom}, in {list_words([f'the {one.name}' for one, _ in chosen])}"


def _extras(text: str) -> list[str]:
    found = [word for one in re.findall(_IN_IT, plain(text).replace(",", " and")) for word in one.split()]
    known = {*WORDS["colours"], "without", "for", "in", "mine"} | {
        one for each in lexicon_file().verbs.values() for one in each
    }
    return list(dict.fromkeys(word for word in found if word not in _SMALL | known))


def _is_other(text: str, recipe: Recipe) -> bool:
    """Whether it is to be with something else: "with milk"."""
    extras = [one for one in _extras(text) if not re.search(recipe.words, one)]
    return bool(extras) and recipe.left_out not in extras
